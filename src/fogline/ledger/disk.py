"""The disk as a ledger sees it: every byte of the file and of its mark goes through here, and the clock too.

In use this is the operating system. Tests put a disk in its place that fails, forgets or is copied (`installed`).
Locks between questions and the room kept for answers are beside it: losing them costs time, never budget.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fogline.ledger.locks import exclusive

__all__ = ["Disk", "current_disk", "installed"]


class Disk:
    """The operating system's files. Every method may raise OSError, `connect` also sqlite3.Error.

    Examples
    --------
    >>> import tempfile
    >>> disk = Disk()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     disk.write(Path(folder, "a"), b"mark", forced=True)
    ...     disk.rename(Path(folder, "a"), Path(folder, "b"))
    ...     disk.force_directory(Path(folder))
    ...     disk.read(Path(folder, "b"))
    b'mark'
    """

    def connect(self, path: Path, timeout: float) -> Any:
        """Open SQLite on a file that exists; the connection has the interface of `sqlite3`."""
        return sqlite3.connect(
            path.as_uri() + "?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
        )

    def identity(self, path: Path) -> tuple[int, int]:
        """Return what tells the file at a path from every other file, whatever the names."""
        status = os.stat(path)
        return status.st_dev, status.st_ino

    def read(self, path: Path) -> bytes:
        """Return all of a file."""
        return path.read_bytes()

    def write(self, path: Path, body: bytes, *, forced: bool) -> None:
        """Write the first bytes of a file, which is made if there is none; force them to the disk if told to."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while body:
                body = body[os.write(handle, body) :]
            if forced:
                os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name, in place of whatever had it."""
        os.rename(source, target)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        os.unlink(path)

    def make_directory(self, path: Path) -> None:
        """Make a directory that only its owner may read, and those above it, where there is none."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def force_directory(self, path: Path) -> None:
        """Force a directory's names to the disk."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def lock(self, path: Path) -> AbstractContextManager[object]:
        """Hold a lock on a file that stays, against all threads and processes."""
        return exclusive(path)

    def now(self) -> str:
        """Return the time, for information."""
        return datetime.now(UTC).isoformat(timespec="microseconds")


_current = Disk()


def current_disk() -> Disk:
    """Return the disk in use.

    Examples
    --------
    >>> type(current_disk()).__name__
    'Disk'
    """
    return _current


@contextmanager
def installed(disk: Disk) -> Iterator[Disk]:
    """Put another disk in the place of the operating system's, for tests.

    Examples
    --------
    >>> class Full(Disk):
    ...     def write(self, path, body, *, forced):
    ...         raise OSError(28, "No space left on device")
    >>> with installed(Full()) as disk:
    ...     current_disk() is disk
    True
    """
    global _current
    before, _current = _current, disk
    try:
        yield disk
    finally:
        _current = before
