"""The high-water mark: the last entry of a ledger, kept in another directory than the ledger.

A ledger's file that is put back from an old copy, or used beside its original, is whole in itself and would spend the
same budget again. Only a mark elsewhere can tell. Whoever writes holds the mark's lock from before the file is looked
at until the mark names the file's new last entry; so of a file and its copies only one can go on.

A mark has a keeper, a random name. Keeper and place of the directory together are its identity, which the ledger's
file holds: another directory of marks, or a copy of this one, is not the one that the file belongs to.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fogline._validation import state_directory
from fogline.ledger.disk import current_disk
from fogline.ledger.question import canonical
from fogline.ledger.refusals import LedgerRefused
from fogline.ledger.steps import reached

__all__ = ["HighWater", "Mark", "default_directory", "new_keeper"]

_SIZE = 256


@dataclass(frozen=True)
class Mark:
    """The last entry that is known of a ledger, and the name of whoever knows it; "" in marks of earlier versions.

    Examples
    --------
    >>> Mark("a" * 32, 3, "b" * 64, "c" * 32).seq
    3
    """

    ledger: str
    seq: int
    hash: str
    keeper: str = ""

    def __post_init__(self) -> None:
        if not (
            type(self.seq) is int
            and self.seq >= 0
            and re.fullmatch("[0-9a-f]{32}", self.ledger)
            and re.fullmatch("[0-9a-f]{64}", self.hash)
            and re.fullmatch("([0-9a-f]{32})?", self.keeper)
        ):
            raise ValueError("not a high-water mark")


def new_keeper() -> str:
    """Draw the name of a keeper.

    Examples
    --------
    >>> len(new_keeper())
    32
    """
    return secrets.token_hex(16)


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
    >>> first, second = Mark("a" * 32, 3, "b" * 64, "c" * 32), Mark("a" * 32, 4, "d" * 64, "c" * 32)
    >>> with marks.held("a" * 32):
    ...     marks.move(None, first)
    ...     marks.move(first, second)
    >>> marks.read("a" * 32).seq
    4
    >>> marks.move(first, second)  # somebody else was faster
    Traceback (most recent call last):
    fogline.ledger.refusals.LedgerRefused: the high-water mark was moved by somebody else (check: high-water)
    >>> folder.cleanup()
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._confirmed: Mark | None = None

    def identity(self, keeper: str) -> str:
        """Return what a ledger's file calls these marks: the keeper's name at this place.

        Examples
        --------
        >>> HighWater(Path("/a")).identity("c" * 32) == HighWater(Path("/b")).identity("c" * 32)
        False
        """
        place = os.fsencode(self.directory)
        return hashlib.sha256(keeper.encode("ascii") + b"\n" + place).hexdigest()[:32]

    @contextmanager
    def held(self, ledger: str) -> Iterator[None]:
        """Hold the lock of a ledger's mark, against all threads and processes; raise OSError if there is no place."""
        disk = current_disk()
        disk.make_directory(self.directory)
        with disk.lock(self.directory / f"{ledger}.lock"):
            yield

    def read(self, ledger: str) -> Mark | None:
        """Return the mark of a ledger, None if there is none; refuse one that cannot be read."""
        try:
            text = current_disk().read(self._file(ledger))
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
        current_disk().write(self._draft(ledger), b" " * _SIZE, forced=False)

    def move(self, before: Mark | None, mark: Mark) -> None:
        """Write a mark in place of the one before it, so that it survives a power cut. The lock must be held."""
        if self.read(mark.ledger) != before:
            raise LedgerRefused("high-water", "the high-water mark was moved by somebody else")
        disk, draft = current_disk(), self._draft(mark.ledger)
        content = {"ledger": mark.ledger, "seq": mark.seq, "hash": mark.hash, "keeper": mark.keeper}
        disk.write(draft, canonical(content).ljust(_SIZE), forced=True)
        reached("mark written")
        disk.rename(draft, self._file(mark.ledger))
        reached("mark renamed")
        disk.force_directory(self.directory)
        self._confirmed = mark
        reached("mark durable")
        with suppress(OSError):  # room for the mark of the answer, should the disk be full by then
            self.prepare(mark.ledger)

    def confirm(self, mark: Mark) -> None:
        """Force a mark that is there to the disk, unless it was written here. The lock must be held.

        Whoever wrote it may have died before it was durable. If the file went on from it and the power failed then,
        the file would be two groups of entries ahead of the mark that is left, and refused.
        """
        if mark != self._confirmed:
            current_disk().force_directory(self.directory)
            self._confirmed = mark

    def sweep(self, ledger: str) -> None:
        """Remove the drafts of processes that are no more."""
        for path in self.directory.glob(f"{ledger}.*.new"):
            with suppress(ValueError, OSError):
                if not _alive(int(path.suffixes[-2].removeprefix("."))):
                    path.unlink()

    def discard(self, ledger: str) -> None:
        """Remove the draft of this process."""
        with suppress(OSError):
            current_disk().remove(self._draft(ledger))

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


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
