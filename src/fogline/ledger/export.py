"""Reading a ledger's entries out, with their chain checked on the way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import MappingProxyType

from fogline.ledger.books import GENESIS, chain
from fogline.ledger.question import canonical
from fogline.ledger.receipts import Entry
from fogline.ledger.refusals import LedgerRefused
from fogline.ledger.store import Store

__all__ = ["entries", "write_lines"]


def entries(store: Store) -> Iterator[Entry]:
    """Yield the entries of a file, oldest first, within a transaction that is open already."""
    previous = GENESIS
    for seq, text, digest in store.connection.execute("SELECT seq, content, hash FROM entries ORDER BY seq"):
        if chain(previous, text) != digest:
            raise LedgerRefused("chain", f"entry {seq} of the ledger was changed")
        content = json.loads(text)
        yield Entry(seq, content["kind"], content["time"], MappingProxyType(content), digest.hex())
        previous = digest


def write_lines(path: Path, listed: Iterable[Entry]) -> None:
    r"""Write entries as JSON, one a line; each line's hash is that of the line before and its content.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_lines(Path(folder, "out"), [Entry(0, "genesis", "2024", {"seq": 0}, "00")])
    ...     Path(folder, "out").read_text()
    '{"content":{"seq":0},"hash":"00"}\n'
    """
    with path.open("xb") as file:
        for entry in listed:
            file.write(canonical({"content": dict(entry.content), "hash": entry.hash}) + b"\n")
