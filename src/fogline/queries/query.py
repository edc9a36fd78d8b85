"""What an exact query is: whole numbers of declared sensitivity, and what is read from them once they are noisy.

A query is made from public parameters and earlier answers alone. It meets the records in one place, ``exact``, which
:class:`fogline.releases.curator.Curator` calls after the noise was drawn, and not at all for a release that is read
again. ``decode`` is post-processing: it sees noisy numbers and what the query was made from. The proof of a query's
sensitivity stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from fogline._typing import FloatArray, IntArray

__all__ = ["CountQuery", "Query", "Records", "rows_moved"]

T_co = TypeVar("T_co", covariant=True)


class Records(Protocol):
    """Secret: all records of a source, as often as a query needs them."""

    @property
    def memory(self) -> dict[str, Any]:
        """What one query keeps for the next; it is forgotten with the records."""

    def each(self, take: Callable[[FloatArray], object], /) -> None:
        """Call ``take`` with all records, batch by batch, as arrays of shape (rows, d)."""


class Query(Protocol[T_co]):
    """An exact question to the records, the noise that it needs, and the reading of a noisy answer."""

    @property
    def size(self) -> int:
        """How many whole numbers it gives."""

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the numbers of neighbours can be apart, where a unit has at most this many records."""

    def exact(self, records: Records) -> IntArray:
        """Secret: the numbers without noise."""

    def decode(self, values: IntArray, noise_scale: float) -> T_co:
        """Public: what noisy numbers say, given the scale of their noise."""


class CountQuery(Query[T_co], Protocol[T_co]):
    """A query that also declares how far its numbers move in the sum of absolute values: Laplace noise can pay for it.

    A count of records in disjoint boxes moves by one per record that comes or goes, however many boxes there are.
    """

    def l1_sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the numbers of neighbours can be apart, as a sum of absolute values."""


def rows_moved(neighbours: str, max_contributions: int) -> int:
    """How many rows come or go with a unit: a replaced row is one that goes and one that comes.

    Examples
    --------
    >>> rows_moved("add-remove", 3), rows_moved("replace", 3)
    (3, 6)
    """
    return max_contributions if neighbours == "add-remove" else 2 * max_contributions
