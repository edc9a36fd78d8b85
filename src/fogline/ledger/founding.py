"""How a ledger comes into being, and where it may not be."""

from __future__ import annotations

import os
import resource
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fogline.ledger.books import FORMAT, Books
from fogline.ledger.disk import current_disk
from fogline.ledger.high_water import HighWater, Mark, default_directory, new_keeper
from fogline.ledger.locks import network_file_system
from fogline.ledger.refusals import LedgerRefused
from fogline.ledger.store import Store, StoreFailed

__all__ = ["check_file_limit", "found", "located", "marks_for"]


def located(path: str | os.PathLike[str]) -> Path:
    """Return the resolved path of a ledger that exists and can be written safely.

    Examples
    --------
    >>> located("no/such/ledger")
    Traceback (most recent call last):
    fogline.ledger.refusals.LedgerRefused: there is no ledger at ...
    """
    resolved = Path(path).resolve()
    if not resolved.is_file():
        raise LedgerRefused("file", f"there is no ledger at {resolved}")
    _check_place(resolved)
    if not (os.access(resolved, os.R_OK | os.W_OK) and os.access(resolved.parent, os.W_OK | os.X_OK)):
        raise LedgerRefused("read-only", "the ledger cannot be written where it is")
    if stat.S_IMODE(resolved.stat().st_mode) & 0o002:
        raise LedgerRefused("file", "everyone may write to the ledger's file: take that right away (chmod o-w)")
    return resolved


def marks_for(path: Path, high_water: str | os.PathLike[str] | None) -> HighWater:
    """Return where the high-water mark of the ledger at `path` is kept.

    Examples
    --------
    >>> marks_for(Path("/srv/budget/ledger"), "/srv/budget")
    Traceback (most recent call last):
    ValueError: high_water must be another directory than the ledger's: what restores one would restore the other
    """
    directory = default_directory() if high_water is None else Path(high_water)
    directory = directory.resolve()
    if directory == path.parent:
        raise ValueError(
            "high_water must be another directory than the ledger's: what restores one would restore the other"
        )
    return HighWater(directory)


def found(
    path: str | os.PathLike[str], high_water: str | os.PathLike[str] | None, declarations: Sequence[dict[str, Any]]
) -> Path:
    """Write a new ledger with its first declarations, all of it or nothing, and return its resolved path."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise LedgerRefused("file", f"there is no directory {target.parent}")
    _check_place(target)
    marks = marks_for(target, high_water)
    if target.exists():
        raise LedgerRefused("file", f"there is a file at {target} already: open it, or choose another name")
    identity = secrets.token_hex(16)
    draft = target.with_name(f".{target.name}.{identity}.new")
    try:
        keeper = new_keeper()
        genesis = {"kind": "genesis", "ledger": identity, "format": FORMAT, "marks": marks.identity(keeper)}
        seq, digest = _write(draft, [genesis, *declarations])
        with marks.held(identity):
            marks.move(None, Mark(identity, seq, digest, keeper))
        marks.discard(identity)
        os.link(draft, target)  # unlike a rename, this refuses a file that has come meanwhile
        current_disk().force_directory(target.parent)
    except FileExistsError:
        raise LedgerRefused("file", f"there is a file at {target} already") from None
    except StoreFailed as error:
        raise LedgerRefused("file", f"the ledger cannot be written: {error}") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown"
        raise LedgerRefused("file", f"the ledger cannot be written: {reason}") from None
    finally:
        draft.unlink(missing_ok=True)
    return target


def check_file_limit(path: Path, room: int) -> None:
    """Refuse when this process may not write files as large as the ledger would become.

    Examples
    --------
    >>> check_file_limit(Path("."), 4096)
    """
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and path.stat().st_size + room > limit:
        raise LedgerRefused("disk", "this process may not write a file as large as the answer needs")


def _write(draft: Path, contents: Sequence[dict[str, Any]]) -> tuple[int, str]:
    """Write the first entries, as one group; return number and hash of the last."""
    store, books = Store.create(draft), Books()
    try:
        with store.writing():
            for content in contents:
                store.append(books, books.compose(content, current_disk().now()))
    finally:
        store.close()
    return books.next_seq - 1, books.tip.hex()


def _check_place(path: Path) -> None:
    kind = network_file_system(path.parent)
    if kind is not None:
        raise LedgerRefused("network", f"a ledger cannot be kept on a network file system ({kind})")
