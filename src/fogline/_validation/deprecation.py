"""How a public name leaves: one function that warns, at the line of the user's own code."""

from __future__ import annotations

import re
import sys
import warnings

__all__ = ["user_stacklevel", "warn_deprecated"]


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
