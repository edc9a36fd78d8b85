"""Marks of releases that outlive a process: in the files of sketches, and beside them in the user's state directory.

A mark in the file goes where the file goes. A copy that was made before does not have it, so the ids of all records
that were released from files are also kept in one directory for each user (that of the marks of ledgers): there all
copies on one machine are seen. Both marks are on the disk before any noise is drawn, under locks, so that of two
processes one releases.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import state_directory
from fogline.sketch.secret_files import write_secret

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where two processes at once are not told apart
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "UNCOUNTED",
    "AlreadyReleased",
    "check_runs",
    "common_payer",
    "mark",
    "payers_in",
    "payers_noted",
    "require_free",
]

UNCOUNTED = "no ledger"


class AlreadyReleased(RuntimeError):
    """A sketch was asked for a second release, which would cost a second budget that nobody counts."""


def require_free(payers: Iterable[str], payer: str) -> None:
    """Refuse a release that the payers of earlier ones would not count."""
    if any(earlier and (payer == UNCOUNTED or earlier != payer) for earlier in payers):
        raise AlreadyReleased("this sketch was released before; further releases need the ledger that counts them all")


def mark(runs: Sequence[str], payer: str, files: Mapping[Path, tuple[str, ...]]) -> None:
    """Mark records as released, in the user's directory and in files; refused if either says that they were.

    Parameters
    ----------
    runs : sequence of str
        Ids of the records.
    payer : str
    files : mapping
        Files and the ids of the records in each, for files that say no ids.
    """
    try:
        directory = state_directory() / "released"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as held:
            held.enter_context(_locked(directory / ".lock", create=True))
            present = [path for path in sorted(files) if held.enter_context(_locked(path))]
            found = [payers_noted(runs), *(payers_in(path, files[path]) for path in present)]
            require_free([payers.get(run, "") for payers in found for run in runs], payer)
            for path in present:
                _mark_file(path, runs, payer, files[path])
            for run in runs:
                if found[0].get(run) != payer:
                    write_secret(directory / run, payer.encode())
    except (OSError, RuntimeError) as error:
        if isinstance(error, AlreadyReleased):
            raise
        raise OSError(
            "the release cannot be noted before it is made: the file of the sketch and the state directory "
            "($XDG_STATE_HOME/fogline) must be writable"
        ) from None


def payers_noted(runs: Iterable[str]) -> dict[str, str]:
    """Payers of released records by id, as the user's directory has them; a note that cannot be read is UNCOUNTED."""
    found = {}
    with suppress(RuntimeError):  # without a home there are no notes
        for run in runs:
            try:
                found[run] = (state_directory() / "released" / run).read_text("utf-8") or UNCOUNTED
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, UnicodeDecodeError):
                found[run] = UNCOUNTED
    return found


def payers_in(path: Path, held: Iterable[str] = ()) -> dict[str, str]:
    """Payers of released records by id, as a file has them; none where there is no sketch.

    A file of version 1 has one list of payers for all of its records: `held` are the ids that they have here.
    """
    header, _ = _content(path, names=())
    found = check_runs(header.get("runs", {}))
    earlier = common_payer(header.get("payers", ()))
    return {**dict.fromkeys(held, earlier), **found} if earlier else found


def common_payer(payers: Iterable[str]) -> str:
    """The one payer that counts all releases; UNCOUNTED if there were several, empty if there was none."""
    found = set(filter(None, payers))
    return UNCOUNTED if len(found) > 1 else "".join(found)


def check_runs(runs: Any) -> dict[str, str]:
    """Return ids and payers as a file has them, or raise ValueError."""
    if not isinstance(runs, dict) or not all(
        re.fullmatch("[0-9a-f]{32}", run) and isinstance(payer, str) for run, payer in runs.items()
    ):
        raise ValueError("path: the ids of the records are damaged")
    return dict(runs)


def _content(path: Path, names: Sequence[str] | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file, by default all; both empty if it is not there or no sketch any more."""
    try:
        with np.load(path, allow_pickle=False) as data:
            header = json.loads(str(data["header"]))
            wanted = [name for name in data.files if name != "header"] if names is None else names
            arrays = {name: data[name] for name in wanted}
    except FileNotFoundError:
        return {}, {}
    except OSError:
        raise
    except Exception:  # whatever it is, nobody can load a sketch from it
        return {}, {}
    return (header, arrays) if isinstance(header, dict) else ({}, {})


def _mark_file(path: Path, runs: Sequence[str], payer: str, held: tuple[str, ...]) -> None:
    header, arrays = _content(path)
    if not header:
        return
    present = check_runs(header.get("runs", dict.fromkeys(held, "")))
    header["runs"] = {run: payer if run in runs else earlier for run, earlier in present.items()}
    if "payers" in header:  # the file is of version 1, whose readers know no ids
        header["payers"] = sorted({*filter(None, header["payers"]), payer})
    file = io.BytesIO()
    np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]
    write_secret(path, file.getvalue())


@contextmanager
def _locked(path: Path, *, create: bool = False) -> Iterator[bool]:
    """Hold the lock on the file that is at a path now; false if there is none."""
    while True:
        try:
            handle = os.open(path, (os.O_RDWR | os.O_CREAT) if create else os.O_RDONLY, 0o600)
        except FileNotFoundError:
            yield False
            return
        try:
            if fcntl is not None:  # pragma: no branch - Windows
                fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(handle, path):
                yield True
                return
        finally:
            os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one at a path: it may have been replaced while its lock was waited for."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
