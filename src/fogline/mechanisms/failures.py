"""How a release fails once records were touched: one constant error, which leads nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["ReleaseFailed", "sealed"]

T = TypeVar("T")


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

    Neither the words of the error nor its traceback come from below this call. An interrupt stays one.

    Parameters
    ----------
    query : callable
        The step that touches records.

    Examples
    --------
    >>> sealed(lambda: 1 // 0)()
    Traceback (most recent call last):
    fogline.mechanisms.failures.ReleaseFailed: the release failed after its noise was drawn; count its budget as spent
    """

    def run() -> T:
        try:
            return query()
        except KeyboardInterrupt:
            interrupted = True
        except BaseException:
            interrupted = False
        if interrupted:  # raised here, outside the handlers: nothing hangs on to what was caught
            raise KeyboardInterrupt
        raise ReleaseFailed("the release failed after its noise was drawn; count its budget as spent")

    return run
