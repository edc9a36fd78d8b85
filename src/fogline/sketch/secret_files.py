"""Files that are as secret as the records: for their owner alone, and whole or not there at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

__all__ = ["write_secret"]


def write_secret(path: str | Path, content: bytes, *, replace: bool = True) -> None:
    """Write a file that only its owner may read (mode 0600), in one step: readers see the old file or the new one.

    Parameters
    ----------
    path : str or Path
    content : bytes
    replace : bool
        Whether a file that is there may be replaced; if not, an error says that it exists.

    Examples
    --------
    >>> import stat, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_secret(f"{folder}/counts", b"1 2 3")
    ...     oct(stat.S_IMODE(Path(folder, "counts").stat().st_mode))
    '0o600'
    """
    target = Path(path)
    if not replace and target.exists():
        raise FileExistsError(f"path: {str(path)!r} is there already")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(target)
        else:
            _place(draft, target)
        if os.name == "posix":  # pragma: no branch - Windows
            _force(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _place(draft: Path, target: Path) -> None:
    """Give a draft its name, unless another process was faster."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise FileExistsError(f"path: {str(target)!r} is there already") from None
    draft.unlink()


def _force(folder: Path) -> None:
    """Bring a folder's names to the disk, so that a mark in a file outlives a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
