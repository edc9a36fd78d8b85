"""Locks between processes and threads, and the room on the disk that a question keeps while it is being answered.

`flock` belongs to an open file, not to a process: each acquisition opens the file anew, so that threads of one process
exclude each other as well. The kernel drops the lock when its holder dies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

from fogline.ledger.refusals import LedgerRefused

__all__ = ["QuestionLock", "drop_after_fork", "exclusive", "network_file_system", "sweep"]

_held: set[int] = set()
_MOUNTS = Path("/proc/self/mounts")
_REMOTE = frozenset(
    "nfs nfs3 nfs4 cifs smb smb2 smb3 smbfs ncpfs ncp afs coda ceph lustre gpfs beegfs glusterfs orangefs pvfs2 panfs 9p"
    " virtiofs vboxsf vmhgfs prl_fs davfs davfs2 webdav sshfs s3fs ocfs2 gfs gfs2 acfs".split()
)


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
    handle = _open_locked(path)
    try:
        yield handle
    finally:
        _held.discard(handle)
        os.close(handle)


class QuestionLock:
    """The lock of one question, in a file of its own that also keeps room on the disk for the answer.

    Parameters
    ----------
    directory : Path
    fingerprint : str

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with QuestionLock(Path(folder.name), "f00") as lock:
    ...     lock.make_room(4096)
    ...     Path(folder.name, "f00").stat().st_size
    4096
    >>> list(Path(folder.name).iterdir())
    []
    """

    def __init__(self, directory: Path, fingerprint: str) -> None:
        self.path = directory / fingerprint
        self._handle = -1

    def __enter__(self) -> QuestionLock:
        while True:
            handle = _open_locked(self.path)
            if _still_there(handle, self.path):
                self._handle = handle
                return self
            _held.discard(handle)
            os.close(handle)  # the one who held it before removed the file: it locks nothing any more

    def __exit__(self, *_: object) -> None:
        handle, self._handle = self._handle, -1
        try:
            os.unlink(self.path)
        except OSError:
            pass  # a file system turned read-only: the lock ends with its handle all the same
        _held.discard(handle)
        os.close(handle)

    def make_room(self, size: int) -> None:
        """Have `size` bytes of the disk set aside, or raise OSError."""
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._handle, 0, size)
            return
        os.lseek(self._handle, 0, os.SEEK_SET)  # pragma: no cover - macOS
        for _ in range(0, size, 1 << 20):  # pragma: no cover
            os.write(self._handle, b"\0" * (1 << 20))

    def free_room(self) -> None:
        """Give the room back, so that the answer can have it."""
        os.ftruncate(self._handle, 0)


def sweep(directory: Path) -> None:
    """Remove what killed processes left behind: lock files that nobody holds.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> Path(folder.name, "f00").touch()
    >>> sweep(Path(folder.name))
    >>> list(Path(folder.name).iterdir())
    []
    """
    for path in directory.iterdir():
        try:
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _still_there(handle, path):
                os.unlink(path)
        except OSError:
            pass  # in use
        finally:
            os.close(handle)


def drop_after_fork() -> None:
    """Let go, in a child process, of the files that its parent has locked; the parent keeps its locks."""
    for handle in tuple(_held):
        os.close(handle)
    _held.clear()


def network_file_system(path: Path, mounts: str | None = None) -> str | None:
    """Return the type of the network file system that `path` lies on, None for a local one.

    Locks and forced writes cannot be relied upon across a network. File systems in user space count as remote, since
    what is behind them is unknown.

    Examples
    --------
    >>> table = "/dev/sda1 / ext4 rw 0 0\\nserver:/x /mnt/the\\\\040share nfs4 rw 0 0\\n"
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
        point = Path(fields[1].encode("utf-8", "surrogateescape").decode("unicode_escape"))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind if kind in _REMOTE or kind.startswith("fuse.") else None


def _open_locked(path: Path) -> int:
    if fcntl is None:
        raise LedgerRefused("platform", "ledgers need file locks, which this system does not have")
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _held.add(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except BaseException:
        _held.discard(handle)
        os.close(handle)
        raise
    return handle


def _still_there(handle: int, path: Path) -> bool:
    try:
        there, here = os.stat(path), os.fstat(handle)
    except FileNotFoundError:
        return False
    return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)
