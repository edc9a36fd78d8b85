r"""Exact counts of records in boxes of leaves, from the table of leaves.

The table holds the number of records in each leaf of a public grid. With its prefix sums

.. math:: P(s) = \sum_{t_1 < s_1, \dots, t_d < s_d} n_t

the number of records in a box :math:`\prod_j [a_j, b_j)` is a sum of :math:`2^d` of them with signs. All of it is
int64, without rounding. A record is in one leaf, so in one of the boxes, which tile the grid: adding it moves one
number by 1. The proof is in ``bucket_counts.proof.md`` beside this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fogline.accounting._rounding import square_root_up
from fogline.density.leaves import Boxes, BucketCounts, LeafSpec, Noise, check_tiling
from fogline.queries.query import rows_moved

__all__ = ["BucketQuery", "bucket_counts"]

IntArray = NDArray[np.int64]


def bucket_counts(table: IntArray, boxes: Boxes) -> IntArray:
    """Secret: exact number of records in each box.

    Parameters
    ----------
    table : int64 array
        Records in each leaf.
    boxes : int64 array of shape (boxes, axes, 2)
        Half-open ranges of leaves.

    Examples
    --------
    >>> bucket_counts(np.array([3, 0, 2, 1]), np.array([[[0, 1]], [[1, 4]]])).tolist()
    [3, 3]
    """
    sums = np.zeros([n + 1 for n in table.shape], dtype=np.int64)
    sums[(slice(1, None),) * table.ndim] = table
    # sums over all boxes from the corner: each box then takes 2^d look-ups, however large it is
    for axis in range(table.ndim):
        np.cumsum(sums, axis=axis, out=sums)
    total = np.zeros(len(boxes), dtype=np.int64)
    for corner in np.ndindex(*(2,) * table.ndim):
        # inclusion and exclusion
        sign = (-1) ** (table.ndim - sum(corner))
        total += sign * sums[tuple(boxes[:, axis, side] for axis, side in enumerate(corner))]
    return total


class BucketQuery:
    """Counts of records in the boxes of one partition, or of one partition for each of several strata.

    Parameters
    ----------
    spec : LeafSpec
    partitions : sequence of int64 arrays of shape (boxes, axes, 2)
        Public: boxes that tile the leaves, for each stratum. Refused here where they do not, before anything is paid.

    Examples
    --------
    >>> spec = LeafSpec.plan([(0, 1)], leaves=[4])
    >>> query = BucketQuery(spec, [np.array([[[0, 1]], [[1, 4]]])])
    >>> query.size, query.l1_sensitivity("replace", 1), query.exact(np.array([[3, 0, 2, 1]])).tolist()
    (2, 2, [3, 3])
    """

    def __init__(self, spec: LeafSpec, partitions: Sequence[Boxes]) -> None:
        self.spec = spec
        self.partitions = tuple(check_tiling(boxes, spec.leaves) for boxes in partitions)

    @property
    def size(self) -> int:
        """How many whole numbers it gives."""
        return sum(map(len, self.partitions))

    @staticmethod
    def l1_sensitivity(neighbours: str, max_contributions: int) -> int:
        """How far the counts of neighbours can be apart, as a sum of absolute values.

        Examples
        --------
        >>> BucketQuery.l1_sensitivity("add-remove", 3), BucketQuery.l1_sensitivity("replace", 3)
        (3, 6)
        """
        return rows_moved(neighbours, max_contributions)

    @staticmethod
    def sensitivity(neighbours: str, max_contributions: int) -> float:
        """How far the counts of neighbours can be apart in Euclidean norm, rounded up.

        Examples
        --------
        >>> BucketQuery.sensitivity("add-remove", 3), round(BucketQuery.sensitivity("replace", 3), 6)
        (3.0, 4.242641)
        """
        per_record = 1 if neighbours == "add-remove" else 2  # squared
        return square_root_up(Fraction(per_record * max_contributions**2))

    def exact(self, tables: IntArray) -> IntArray:
        """Secret: the numbers without noise, stratum after stratum, from tables of shape (strata, *leaves)."""
        if tables.shape != (len(self.partitions), *self.spec.leaves):
            raise ValueError("tables must hold one table of leaves for each partition")
        return np.concatenate([bucket_counts(t, b) for t, b in zip(tables, self.partitions, strict=True)])

    def decode(self, values: IntArray, noise: Noise) -> list[BucketCounts]:
        """Public: what noisy numbers say, for each stratum."""
        ends = np.cumsum([len(boxes) for boxes in self.partitions])[:-1]
        parts = np.split(values, ends)
        return [BucketCounts(boxes, part.copy(), noise) for boxes, part in zip(self.partitions, parts, strict=True)]
