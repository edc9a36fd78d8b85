"""What the library shares with the process that calls it: a directory of notes, the kind of loops, warnings.

Two loops over records give the same integers, a compiled one and its twin in numpy. Loading compiled code takes longer
than counting some hundred thousand records without it, so a program that starts for one question may ask for plain
loops. It must decide by public facts: if it decided by the number of records, what is loaded would tell something of
that number.

A source of records is named by a text that may be shown and compared: never a password, never a resolved path. A public
name that goes away warns at the line of the user's own code.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

__all__ = ["compiled_loops", "plain_loops", "source_text", "state_directory", "user_stacklevel", "warn_deprecated"]


def user_stacklevel() -> int:
    """Return the ``stacklevel`` with which the caller's ``warnings.warn`` names the first line outside fogline."""
    level, frame = 1, sys._getframe(1)
    # numpy's frame is that of the error state in which a fit runs
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in (
        "fogline",
        "numpy",
    ):
        level, frame = level + 1, frame.f_back
    return level


def _minor(version: str, name: str) -> tuple[int, int]:
    """Return the first two numbers of a version."""
    match = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?", version)
    if match is None:
        raise ValueError(f"{name} must be a version such as '0.2', got {version!r}")
    return int(match[1]), int(match[2])


def warn_deprecated(old: str, *, since: str, removed_in: str, instead: str) -> None:
    """Warn that a public name, parameter or option goes away. Call it before any record is touched.

    Parameters
    ----------
    old : str
        What is deprecated, as a user writes it.
    since, removed_in : str
        The first version that warns, and the version that may remove it: a later minor version.
    instead : str
        What to use in its place.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("fogline.old", since="0.2", removed_in="0.3", instead="fogline.new")
    >>> print(caught[0].category.__name__, caught[0].message)
    FutureWarning fogline.old is deprecated since version 0.2 and may be removed in 0.3: use fogline.new
    """
    if _minor(removed_in, "removed_in") <= _minor(since, "since"):
        raise ValueError(f"removed_in must be a later minor version than since = {since!r}, got {removed_in!r}")
    words = f"{old} is deprecated since version {since} and may be removed in {removed_in}: use {instead}"
    warnings.warn(words, FutureWarning, stacklevel=user_stacklevel())


_plain = ContextVar("fogline_plain_loops", default=False)


def compiled_loops() -> bool:
    """Whether compiled loops are to be used where they are installed.

    Examples
    --------
    >>> compiled_loops()
    True
    """
    return not _plain.get()


@contextmanager
def plain_loops() -> Iterator[None]:
    """Load no compiled loops in a block.

    Examples
    --------
    >>> with plain_loops():
    ...     compiled_loops()
    False
    """
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def state_directory() -> Path:
    """Return the user's directory of notes: ``$XDG_STATE_HOME/fogline``, or its usual place.

    Examples
    --------
    >>> state_directory().name
    'fogline'
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "fogline"


_PLACE = ("host", "hostaddr", "port", "dbname", "user", "service")
"""Parameters of a server's address that say where it is; all others, passwords among them, are left out."""


def source_text(source: str | os.PathLike[str]) -> str:
    """Return a path as it was given, or the address of a database without its password.

    Two spellings are one source where that needs no look at the disk: ``./a.csv`` is ``a.csv``, and slashes count once.
    Links, ``..`` and the current directory are left alone: the text is what is compared, not the file.

    Examples
    --------
    >>> source_text("./visits//2024/a.csv"), source_text("postgres://ada:secret@host/visits?sslmode=require")
    ('visits/2024/a.csv', 'postgres://ada@host/visits')
    >>> source_text("sqlite:///visits.db")
    'sqlite:///visits.db'
    """
    text = os.fspath(source)
    address = re.fullmatch(r"(?is)([a-z][a-z0-9+.-]+)://(.*)", text)
    if address is None:
        return _path(text)
    scheme, rest = address[1].lower(), address[2]
    if scheme == "sqlite":
        return f"sqlite:///{_path(rest.removeprefix('/'))}"
    rest, _, options = rest.partition("?")
    # the last sign: a password may hold one itself
    credentials, at, place = rest.rpartition("@")
    # sorted, so that two spellings of one place are one source
    kept = urlencode(sorted(pair for pair in parse_qsl(options) if pair[0] in _PLACE))
    scheme = "postgres" if scheme == "postgresql" else scheme
    return f"{scheme}://{credentials.partition(':')[0]}{at}{place}{'?' if kept else ''}{kept}"


def _path(text: str) -> str:
    shorter = re.sub(r"/(\./)+", "/", re.sub(r"/{2,}", "/", text))
    return re.sub(r"^(\./)+(?=.)", "", shorter)
