"""The high-water mark: the last entry of a ledger, kept in another directory than the ledger.

A ledger's file that is put back from an old copy, or used beside its original, is whole in itself and would spend the
same budget again. Only a mark elsewhere can tell. Whoever writes holds the mark's lock from before the file is looked
at until the mark names the file's new last entry; so of a file and its copies only one can go on.

A mark has a keeper, a random name. Keeper and place of the directory together are its identity, which the ledger's
file holds: another directory of marks, or a copy of this one, is not the one that the file belongs to.

How a ledger comes into being, and where it may not be.

Room on the disk, kept so that an answer that is paid for can be stored.

Each process keeps one file beside the ledger, as large as the answers it is working on. A commit normally takes its
room from the disk as everything does; when the disk is full the file is emptied, and the commit tried once more.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import resource
import secrets
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fogline._validation import state_directory
from fogline.ledger.accounts import FORMAT, Accounts
from fogline.ledger.disk import current_disk, network_file_system
from fogline.ledger.question import LedgerRefused, canonical
from fogline.ledger.steps import reached
from fogline.ledger.store import Store, StoreFailed

__all__ = [
    "DiskReservation",
    "HighWater",
    "Mark",
    "check_file_limit",
    "default_directory",
    "found",
    "located",
    "marks_for",
    "new_keeper",
    "sweep",
]

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
    >>> with marks.locked("a" * 32):
    ...     marks.move(None, first)
    ...     marks.move(first, second)
    >>> marks.read("a" * 32).seq
    4
    >>> marks.move(first, second)  # somebody else was faster
    Traceback (most recent call last):
    fogline.ledger.question.LedgerRefused: the high-water mark was moved by somebody else (check: high-water)
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
    def locked(self, ledger: str) -> Iterator[None]:
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
            high_water_mark = Mark(**json.loads(text))
        except (ValueError, TypeError):
            raise LedgerRefused("high-water", "the high-water mark is damaged") from None
        if high_water_mark.ledger != ledger:
            raise LedgerRefused("high-water", "the high-water mark belongs to another ledger")
        return high_water_mark

    def prepare(self, ledger: str) -> None:
        """Take the room of a mark on the disk, before anything is charged; raise OSError if there is none."""
        current_disk().write(self._draft(ledger), b" " * _SIZE, forced=False)

    def move(self, before: Mark | None, high_water_mark: Mark) -> None:
        """Write a mark in place of the one before it, so that it survives a power cut. The lock must be held."""
        # compare, then swap, under the lock
        if self.read(high_water_mark.ledger) != before:
            raise LedgerRefused("high-water", "the high-water mark was moved by somebody else")
        disk, draft = current_disk(), self._draft(high_water_mark.ledger)
        content = {
            "ledger": high_water_mark.ledger,
            "seq": high_water_mark.seq,
            "hash": high_water_mark.hash,
            "keeper": high_water_mark.keeper,
        }
        # as long as what prepare() wrote: no new room is needed on a full disk
        disk.write(draft, canonical(content).ljust(_SIZE), forced=True)
        reached("mark written")
        disk.rename(draft, self._file(high_water_mark.ledger))
        reached("mark renamed")
        disk.force_directory(self.directory)
        self._confirmed = high_water_mark
        reached("mark durable")
        with suppress(OSError):  # room for the mark of the answer, should the disk be full by then
            self.prepare(high_water_mark.ledger)

    def confirm(self, high_water_mark: Mark) -> None:
        """Force a mark that is there to the disk, unless it was written here. The lock must be held.

        Whoever wrote it may have died before it was durable. If the file went on from it and the power failed then,
        the file would be two groups of entries ahead of the mark that is left, and refused.
        """
        if high_water_mark != self._confirmed:
            current_disk().force_directory(self.directory)
            self._confirmed = high_water_mark

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
        # each its own: two processes that write one draft would mix their marks
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
    # there is such a process, and it is somebody else's
    except PermissionError:
        pass
    return True


def located(path: str | os.PathLike[str]) -> Path:
    """Return the resolved path of a ledger that exists and can be written safely.

    Examples
    --------
    >>> located("no/such/ledger")
    Traceback (most recent call last):
    fogline.ledger.question.LedgerRefused: there is no ledger at ...
    """
    resolved = Path(path).resolve()
    if not resolved.is_file():
        raise LedgerRefused("file", f"there is no ledger at {resolved}")
    _check_place(resolved)
    if not (os.access(resolved, os.R_OK | os.W_OK) and os.access(resolved.parent, os.W_OK | os.X_OK)):
        raise LedgerRefused("read-only", "the ledger cannot be written where it is")
    # whoever may write the file may also put an old one in its place
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
        # the mark is there before the file has its name: a ledger without a mark is refused
        with marks.locked(identity):
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


def check_file_limit(path: Path, disk_reservation: int) -> None:
    """Refuse when this process may not write files as large as the ledger would become.

    Examples
    --------
    >>> check_file_limit(Path("."), 4096)
    """
    # beyond it a write would fail in the middle of an answer that is paid for
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and path.stat().st_size + disk_reservation > limit:
        raise LedgerRefused("disk", "this process may not write a file as large as the answer needs")


def _write(draft: Path, contents: Sequence[dict[str, Any]]) -> tuple[int, str]:
    """Write the first entries, as one group; return number and hash of the last."""
    store, accounts = Store.create(draft), Accounts()
    try:
        with store.writing():
            for content in contents:
                store.append(accounts, accounts.compose(content, current_disk().now()))
    finally:
        store.close()
    return accounts.next_seq - 1, accounts.tip.hex()


def _check_place(path: Path) -> None:
    kind = network_file_system(path.parent)
    if kind is not None:
        raise LedgerRefused("network", f"a ledger cannot be kept on a network file system ({kind})")


_PREFIX = "room."


class DiskReservation:
    """The room that this process keeps.

    Parameters
    ----------
    directory : Path

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> disk_reservation = DiskReservation(Path(folder.name))
    >>> disk_reservation.take(4096)
    >>> disk_reservation.give_back(4096)  # the file stays as it is: the next will need it
    >>> disk_reservation.path.stat().st_size
    4096
    >>> disk_reservation.close()
    >>> folder.cleanup()
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / f"{_PREFIX}{os.getpid()}"
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._needed = 0
        self._kept = 0
        self._handle = _own(self.path)

    def take(self, size: int) -> None:
        """Keep `size` bytes more, or raise OSError."""
        with self._lock:
            if self._needed + size > self._kept:
                # kept in a file of our own: nobody else can use up the room between reservation and answer
                _allocate(self._handle, self._kept, self._needed + size)
                self._kept = self._needed + size
            self._needed += size

    def give_back(self, size: int) -> None:
        """Need `size` bytes no longer."""
        with self._lock:
            self._needed -= size

    def release(self) -> None:
        """Leave all the room to whoever needs it now; what is taken later is taken anew."""
        with self._lock:
            os.ftruncate(self._handle, 0)
            self._kept = 0

    def close(self) -> None:
        """Give everything back. In a forked child only the handle is closed, the file is the parent's."""
        handle, self._handle = self._handle, -1
        if handle < 0:
            return
        if self._pid == os.getpid():  # pragma: no branch - a forked child only closes
            with suppress(OSError):
                os.unlink(self.path)
        os.close(handle)


def sweep(directory: Path) -> None:
    """Remove the room of processes that are no more.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> Path(folder.name, "room.1").touch()
    >>> sweep(Path(folder.name))
    >>> list(Path(folder.name).iterdir())
    []
    >>> folder.cleanup()
    """
    for path in directory.glob(_PREFIX + "*"):
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        with suppress(OSError):  # somebody's
            # whoever lives holds it
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(path), os.fstat(handle)):
                os.unlink(path)
        os.close(handle)


def _own(path: Path) -> int:
    """Open and lock a file; again, if another process has swept it away between the two."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            # what was locked may have been removed, and a new file made at its name
            if os.path.samestat(os.stat(path), os.fstat(handle)):
                return handle
        os.close(handle)


def _allocate(handle: int, start: int, end: int) -> None:
    if hasattr(os, "posix_fallocate"):  # pragma: no branch - macOS has none
        os.posix_fallocate(handle, start, end - start)
        return
    os.lseek(handle, start, os.SEEK_SET)  # pragma: no cover - macOS
    for done in range(start, end, 1 << 20):  # pragma: no cover
        os.write(handle, bytes(min(1 << 20, end - done)))
