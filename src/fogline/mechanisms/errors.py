"""How a release fails: a closed list of public errors before its reservation, one constant error after it.

Before the reservation no step depends on a cell, so an error may say what is wrong: a parameter, a type in the schema,
a file that is not there, a library that is missing, a budget that is spent. :data:`PUBLIC_ERRORS` are the classes of
such errors; a ledger adds its own, :class:`fogline.ledger.LedgerRefused`.

After it every step that touches records is :func:`sealed`: it runs in a fixed numeric error state and with warnings
muted (:func:`fogline._validation.containment.quiet`), and whatever goes wrong in it is one :class:`ReleaseFailed`,
which leads nowhere. What libraries write to :mod:`logging` is theirs and is not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fogline._validation import contained, quiet

__all__ = ["PUBLIC_ERRORS", "ReleaseFailed", "contained", "quiet", "sealed"]

T = TypeVar("T")

# What is listed here is raised by public parameters alone, so its words may be shown.
PUBLIC_ERRORS: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    ImportError,
    FileNotFoundError,
    PermissionError,
    ConnectionError,
)
"""Classes of the errors that a ``fit``, a release or a command may raise before anything is reserved."""


class ReleaseFailed(RuntimeError):
    """Something went wrong after the budget was reserved. What, is not said: it may depend on the data.

    Parameters
    ----------
    message : str
        One constant for each place that raises it.

    Examples
    --------
    >>> print(ReleaseFailed())
    the release failed after its budget was reserved; the reservation is spent
    """

    def __init__(
        self, message: str = "the release failed after its budget was reserved; the reservation is spent"
    ) -> None:
        super().__init__(message)


def sealed(query: Callable[[], T]) -> Callable[[], T]:
    """Return a query that says nothing about why it fails, as a ledger does, for where there is none.

    Neither the words of the error nor its traceback come from below this call. An interrupt stays one. No numeric error
    state and no filter of warnings that the program has set reaches the query.

    Parameters
    ----------
    query : callable
        The step that touches records.

    Examples
    --------
    >>> sealed(lambda: 1 // 0)()
    Traceback (most recent call last):
    fogline.mechanisms.errors.ReleaseFailed: the release failed after its noise was drawn; count its budget as spent
    """
    return lambda: contained(query, _failed_after_noise)


def _failed_after_noise() -> ReleaseFailed:
    return ReleaseFailed("the release failed after its noise was drawn; count its budget as spent")
