"""The high-water mark: how far a ledger has come, kept in another directory than the ledger.

A ledger's file that is put back from an old copy is whole in itself, and would spend the same budget again. Only a mark
elsewhere can tell. It is written after each reservation and before the data are touched, and only ever rises.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fogline._validation import state_directory
from fogline.ledger.locks import exclusive
from fogline.ledger.question import canonical
from fogline.ledger.refusals import LedgerRefused
from fogline.ledger.steps import reached

__all__ = ["HighWater", "Mark", "default_directory", "sync_directory"]


@dataclass(frozen=True)
class Mark:
    """The last reservation that is known of a ledger.

    Examples
    --------
    >>> Mark("a" * 32, 3, "b" * 64).seq
    3
    """

    ledger: str
    seq: int
    hash: str

    def __post_init__(self) -> None:
        if not (
            type(self.seq) is int
            and self.seq >= 0
            and re.fullmatch("[0-9a-f]{32}", self.ledger)
            and re.fullmatch("[0-9a-f]{64}", self.hash)
        ):
            raise ValueError("not a high-water mark")


class HighWater:
    """Where marks are kept.

    Parameters
    ----------
    directory : Path
        Must not be the directory of the ledger itself: what restores one would restore the other.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> marks = HighWater(Path(folder.name))
    >>> marks.raise_to(Mark("a" * 32, 3, "b" * 64))
    >>> marks.raise_to(Mark("a" * 32, 2, "c" * 64))  # another process was faster
    >>> marks.read("a" * 32).seq
    3
    >>> folder.cleanup()
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read(self, ledger: str) -> Mark | None:
        """Return the mark of a ledger, None if there is none; refuse one that cannot be read."""
        try:
            text = self._file(ledger).read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            raise LedgerRefused("high-water", "the high-water mark cannot be read") from None
        try:
            mark = Mark(**json.loads(text))
        except (ValueError, TypeError):
            raise LedgerRefused("high-water", "the high-water mark is damaged") from None
        if mark.ledger != ledger:
            raise LedgerRefused("high-water", "the high-water mark belongs to another ledger")
        return mark

    def prepare(self, ledger: str) -> None:
        """Take the room of a mark on the disk, before anything is charged; raise OSError if there is none."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._draft(ledger), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _write_all(handle, b" " * 256)
        finally:
            os.close(handle)

    def raise_to(self, mark: Mark) -> None:
        """Write a mark so that it survives a power cut, unless a higher one is there already."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(self.directory / f"{mark.ledger}.lock"):
            present = self.read(mark.ledger)
            if present is not None and present.seq >= mark.seq:
                return
            target, temporary = self._file(mark.ledger), self._draft(mark.ledger)
            body = canonical({"ledger": mark.ledger, "seq": mark.seq, "hash": mark.hash}).ljust(256)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _write_all(handle, body)
                os.fsync(handle)
            finally:
                os.close(handle)
            reached("mark written")
            os.rename(temporary, target)
            reached("mark renamed")
            sync_directory(self.directory)
            reached("mark durable")

    def sweep(self, ledger: str) -> None:
        """Remove the drafts of processes that are no more."""
        for path in self.directory.glob(f"{ledger}.*.new"):
            with suppress(ValueError, OSError):
                if not _alive(int(path.suffixes[-2].removeprefix("."))):
                    path.unlink()

    def _file(self, ledger: str) -> Path:
        return self.directory / f"{ledger}.json"

    def _draft(self, ledger: str) -> Path:
        """Name the file that becomes the mark; each process has its own."""
        return self.directory / f"{ledger}.{os.getpid()}.new"


def default_directory() -> Path:
    """Return the directory of marks where none is chosen: ``$XDG_STATE_HOME/fogline``, or its usual place.

    Examples
    --------
    >>> default_directory().name
    'fogline'
    """
    return state_directory()


def sync_directory(directory: Path) -> None:
    """Force a directory's entries to the disk.

    Examples
    --------
    >>> sync_directory(Path("."))
    """
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _write_all(handle: int, body: bytes) -> None:
    while body:
        body = body[os.write(handle, body) :]
