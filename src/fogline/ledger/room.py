"""Room on the disk, kept so that an answer that is paid for can be stored.

Each process keeps one file beside the ledger, as large as the answers it is working on. A commit normally takes its
room from the disk as everything does; when the disk is full the file is emptied, and the commit tried once more.
"""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path

__all__ = ["Room", "sweep"]

_PREFIX = "room."


class Room:
    """The room that this process keeps.

    Parameters
    ----------
    directory : Path

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> room = Room(Path(folder.name))
    >>> room.take(4096)
    >>> room.give_back(4096)  # the file stays as it is: the next will need it
    >>> room.path.stat().st_size
    4096
    >>> room.close()
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
