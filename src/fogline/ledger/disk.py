"""The disk as a ledger sees it: every byte of the file and of its mark goes through here, and the clock too.

In use this is the operating system. Tests put a disk in its place that fails, forgets or is copied (`installed`).
Locks between questions and the room kept for answers are beside it: losing them costs time, never budget.

Locks between processes and threads.

`flock` belongs to an open file, not to a process: each acquisition opens the file anew, so that threads of one process
exclude each other as well. The kernel drops the lock when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["Disk", "current_disk", "drop_after_fork", "exclusive", "installed", "network_file_system", "question_lock"]

_held: set[int] = set()
_DIGITS = 3
_MOUNTS = Path("/proc/self/mounts")
# fmt: off
_REMOTE = frozenset((
    "nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "ncp", "afs", "coda", "ceph",
    "lustre", "gpfs", "beegfs", "glusterfs", "orangefs", "pvfs2", "panfs", "9p", "virtiofs", "vboxsf", "vmhgfs",
    "prl_fs", "davfs", "davfs2", "webdav", "sshfs", "s3fs", "ocfs2", "gfs", "gfs2", "acfs",
))
# fmt: on


@contextmanager
def exclusive(path: Path) -> Iterator[int]:
    """Hold the lock on `path`, a file that stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, exclusive(Path(folder, "a.lock")) as handle:
    ...     handle > 0
    True
    """
    handle, process = _open_locked(path), os.getpid()
    try:
        yield handle
    finally:
        if os.getpid() == process:  # pragma: no branch - a forked child let go of it when it began
            _held.discard(handle)
            os.close(handle)


@contextmanager
def question_lock(directory: Path, fingerprint: str) -> Iterator[None]:
    """Hold the lock of one question, against all threads and processes.

    The lock files stay, since making and removing them for each question would cost more than the rest. There are at
    most 4096: two questions in flight share one by chance, and then one waits for the other.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, question_lock(Path(folder), "f00d"):
    ...     [path.name for path in Path(folder).iterdir()]
    ['f00']
    """
    with exclusive(directory / fingerprint[:_DIGITS]):
        yield


def drop_after_fork() -> None:  # pragma: no cover - only in a forked child
    """Let go, in a child process, of the files that its parent has locked; the parent keeps its locks."""
    # closing does not unlock: the lock belongs to the open file, which the parent has as well
    for handle in tuple(_held):
        os.close(handle)
    _held.clear()


def network_file_system(path: Path, mounts: str | None = None) -> str | None:
    r"""Return the type of the network file system that `path` lies on, None for a local one.

    Locks and forced writes cannot be relied upon across a network. File systems in user space count as remote, since
    what is behind them is unknown. Where there is no table of mounts (macOS) nothing can be told: None.

    Examples
    --------
    >>> table = "/dev/sda1 / ext4 rw 0 0\nserver:/x /mnt/the\\040share nfs4 rw 0 0\n"
    >>> network_file_system(Path("/mnt/the share/ledger"), table)
    'nfs4'
    >>> network_file_system(Path("/mnt/other"), table) is None
    True
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(errors="surrogateescape")
        except OSError:
            return None
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        # blanks in mount points are written in octal
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1]))
        # the deepest mount wins, and of two at one place the later: it lies on top
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind if kind in _REMOTE or kind.startswith("fuse.") else None


def _open_locked(path: Path) -> int:
    # never removed: who locks a file that was removed holds a lock that nobody else sees
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _held.add(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except BaseException:
        _held.discard(handle)
        os.close(handle)
        raise
    return handle


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
        # rw, not rwc: a ledger that is gone must not come back empty
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
                # write may take less than it is given
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
