"""Where a user's own notes are kept between processes.

The source of records as a text that may be shown and compared: never a password, never a resolved path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

__all__ = ["source_text", "state_directory"]


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
    credentials, at, place = rest.rpartition("@")
    kept = urlencode(sorted(pair for pair in parse_qsl(options) if pair[0] in _PLACE))
    scheme = "postgres" if scheme == "postgresql" else scheme
    return f"{scheme}://{credentials.partition(':')[0]}{at}{place}{'?' if kept else ''}{kept}"


def _path(text: str) -> str:
    shorter = re.sub(r"/(\./)+", "/", re.sub(r"/{2,}", "/", text))
    return re.sub(r"^(\./)+(?=.)", "", shorter)
