"""Locks between processes and threads.

`flock` belongs to an open file, not to a process: each acquisition opens the file anew, so that threads of one process
exclude each other as well. The kernel drops the lock when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["drop_after_fork", "exclusive", "network_file_system", "question_lock"]

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
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1]))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind if kind in _REMOTE or kind.startswith("fuse.") else None


def _open_locked(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _held.add(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except BaseException:
        _held.discard(handle)
        os.close(handle)
        raise
    return handle
