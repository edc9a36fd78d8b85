"""How code that touches records is run: in one numeric error state, with warnings muted, failing in one way.

What numpy does on overflow or underflow, and whether a warning is an error, are settings of the calling program. They
are public, but whether they come to bear depends on the records: with ``np.seterr(under="raise")`` one record of 1e-308
would decide whether a fit fails. So none of them reaches a step that touches records.

Every such step runs within :func:`quiet`. One that may fail in a way that depends on a record runs by
:func:`contained`.
The constant errors of a release are made from these in :mod:`fogline.mechanisms.errors`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

import numpy as np

__all__ = ["contained", "quiet"]

T = TypeVar("T")


class _Muting:
    """Warnings of the process are muted while one thread or more is inside.

    The filters of :mod:`warnings` belong to the process. If each thread restored what it found, one that came second
    and left last would leave the process muted; so the first to come saves them, and the last to leave restores them.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._filters = warnings.catch_warnings()
        self.renew_lock()

    def renew_lock(self) -> None:
        """Have a lock that nobody holds: a forked process may inherit one that is held by a thread it does not have."""
        self._lock = Lock()

    def enter(self) -> None:
        """Mute, if nobody has before."""
        with self._lock:
            if self._inside == 0:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def leave(self) -> None:
        """Restore what was there before the first came, if nobody else is inside."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._filters.__exit__(None, None, None)


_MUTING = _Muting()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_MUTING.renew_lock)


@contextmanager
def quiet() -> Iterator[None]:
    """Run a block with numpy's errors ignored and warnings muted, whatever the program has set.

    Examples
    --------
    >>> import numpy as np
    >>> with np.errstate(all="raise"), quiet():
    ...     float(np.float64(1e-308) * np.float64(1e-308))
    0.0
    """
    _MUTING.enter()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _MUTING.leave()


def contained(query: Callable[[], T], failure: Callable[[], BaseException]) -> T:
    """Return what a query returns; if it fails, raise one constant error that leads nowhere.

    Neither the words nor the traceback, the cause or the context of the error come from below this call. An interrupt
    stays one.

    Parameters
    ----------
    query : callable
        The step that touches records.
    failure : callable
        Makes the error, from nothing.

    Examples
    --------
    >>> contained(lambda: float("Ann"), lambda: ValueError("the column could not be read"))
    Traceback (most recent call last):
    ValueError: the column could not be read
    """
    try:
        with quiet():
            return query()
    except KeyboardInterrupt:
        interrupted = True
    # also SystemExit and the like: none of them may tell that a record was met
    except BaseException:
        interrupted = False
    if interrupted:  # raised here, outside the handlers: nothing hangs on to what was caught
        raise KeyboardInterrupt
    raise failure()
