"""Which of two loops over records is used, the compiled one or its twin in numpy: both give the same integers.

To load compiled code takes longer than to count some hundred thousand records without it. A program that starts for
one question may therefore ask for plain loops. It must decide that by public facts: were it by the number of records,
what is loaded would tell something of that number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["compiled_loops", "plain_loops"]

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
