"""The steps of the protocol by name, so that tests can stop the world at each of them.

In use, `reached` does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["STEPS", "observing", "reached"]

STEPS = (
    "validated",
    "locked",
    "room made",
    "reserve begun",
    "reserve written",
    "reserve committed",
    "mark written",
    "mark renamed",
    "mark durable",
    "released",
    "commit begun",
    "commit written",
    "commit committed",
    "unlocked",
)

_observers: list[Callable[[str], None]] = []


def reached(step: str) -> None:
    """Tell whoever observes that a step was reached.

    Examples
    --------
    >>> reached("validated")
    """
    for observer in _observers:
        observer(step)


@contextmanager
def observing(observer: Callable[[str], None]) -> Iterator[None]:
    """Call `observer` with the name of each step, from any thread, within this context.

    Examples
    --------
    >>> with observing(print):
    ...     reached("locked")
    locked
    """
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)
