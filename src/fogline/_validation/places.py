"""Where a user's own notes are kept between processes."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["state_directory"]


def state_directory() -> Path:
    """Return the user's directory of notes: ``$XDG_STATE_HOME/fogline``, or its usual place.

    Examples
    --------
    >>> state_directory().name
    'fogline'
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "fogline"
