r"""A skeleton to copy: an exact query of declared sensitivity, in fogline's style. It belongs into ``queries``.

Say here what is counted, with its formula. This one counts, in each column j, the records in even intervals of a range:

.. math:: c_{ji} = \#\{x : x_j \in I_{ji}\}.

A query is made from public parameters and earlier answers. ``exact`` alone meets records; the curator calls it after
the noise was drawn. ``decode`` sees noisy numbers only. The proof of the sensitivity is in ``query.proof.md`` beside
this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline.queries.query import Records

__all__ = ["IntervalCounts", "IntervalCountsQuery"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class IntervalCounts:
    """Released counts: what a query reads is a frozen value, and all of it may be published.

    Attributes
    ----------
    ranges : array of shape (d, 2)
    counts : array of shape (d, intervals)
    noise : float
        Standard deviation of the noise of each count.
    """

    ranges: FloatArray
    counts: FloatArray
    noise: float

    def densest(self) -> FloatArray:
        """Ends of the interval with the largest count, in each column, shape (d, 2)."""
        widths = (self.ranges[:, 1] - self.ranges[:, 0]) / self.counts.shape[1]
        low = self.ranges[:, 0] + widths * np.argmax(self.counts, axis=1)
        return np.column_stack([low, low + widths])


@dataclass(frozen=True, eq=False)
class IntervalCountsQuery:
    """Numbers of records in even intervals of each column.

    Parameters
    ----------
    ranges : array of shape (d, 2)
        Public, or from earlier answers.
    intervals : int

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> query = IntervalCountsQuery(np.array([[0.0, 4.0]]), intervals=4)
    >>> rows = np.array([[0.5], [1.5], [1.7], [np.nan], [9.0]])
    >>> query.exact(SimpleNamespace(each=lambda take: take(rows))).tolist()
    [1, 2, 0, 0]
    >>> query.decode(np.array([1, 2, 0, 0]), noise_scale=0.5).densest().tolist()
    [[1.0, 2.0]]
    """

    ranges: FloatArray
    intervals: int

    @property
    def size(self) -> int:
        """Length of the vector."""
        return len(self.ranges) * self.intervals

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the counts of neighbours can be apart, in Euclidean norm; rounded up."""
        moved = len(self.ranges) * (1 if neighbours == "add-remove" else 2)
        return math.nextafter(max_contributions * math.sqrt(moved) * (1 + 1e-12), math.inf)

    def exact(self, records: Records) -> IntArray:
        """Secret: the counts. Whole numbers, the same in any order and for any batches."""
        counts = np.zeros((len(self.ranges), self.intervals), dtype=np.int64)

        def take(rows: FloatArray) -> None:
            for j, (low, high) in enumerate(self.ranges):
                column = rows[:, j]
                inside = column[(column >= low) & (column <= high)]  # false for NaN: it counts nowhere
                index = np.floor((inside - low) / (high - low) * self.intervals).astype(np.int64)
                counts[j] += np.bincount(np.minimum(index, self.intervals - 1), minlength=self.intervals)

        records.each(take)
        return counts.ravel()

    def decode(self, values: IntArray, noise_scale: float) -> IntervalCounts:
        """The noisy counts, column by column."""
        return IntervalCounts(self.ranges, values.reshape(len(self.ranges), -1).astype(np.float64), noise_scale)
