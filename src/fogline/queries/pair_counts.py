r"""Exact counts of pairs of columns: every record is in at most one cell of each pair's table.

The cells of a column are put into a few groups (:class:`fogline.density.column_pairs.CellGroups`). With :math:`k`
pairs a record is a vector of zeros and ones with at most :math:`k` ones, one per pair of which it has a value in both
columns. The counts move by at most :math:`k` in the sum of absolute values and by at most :math:`\sqrt k` in Euclidean
norm. The proof is in ``pair_counts.proof.md`` beside this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from fogline._typing import IntArray
from fogline.accounting._rounding import square_root_up
from fogline.density.column_pairs import CellGroups, PairCounts
from fogline.density.leaves import Noise
from fogline.queries.query import rows_moved

__all__ = ["PairTables", "PairsQuery"]

PRODUCT_ROWS = 2**15
"""Most rows that are multiplied at a time: their counts are whole numbers that a float32 holds exactly."""


class PairTables:
    """Secret: exact counts of records by the groups of any two columns.

    Parameters
    ----------
    sizes : sequence of int
        Number of groups of each column.

    Examples
    --------
    >>> tables = PairTables([2, 2])
    >>> tables.add(np.array([[0, 1], [1, 1], [1, 2], [0, 1]]))
    >>> tables.table(0, 1).tolist()
    [[0, 2], [0, 1]]
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        self._counts = np.zeros((self._starts[-1], self._starts[-1]), dtype=np.int64)

    def add(self, groups: IntArray) -> None:
        """Count rows of groups, one per column; a group at or beyond a column's size is none."""
        if groups.shape[1] != len(self.sizes):
            raise ValueError("groups must have one column for each size")
        for start in range(0, len(groups), PRODUCT_ROWS):
            part = groups[start : start + PRODUCT_ROWS]
            ones = np.zeros((len(part), int(self._starts[-1])), dtype=np.float32)
            for j, size in enumerate(self.sizes):
                rows = np.flatnonzero((part[:, j] >= 0) & (part[:, j] < size))
                ones[rows, self._starts[j] + part[rows, j]] = 1.0
            self._counts += (ones.T @ ones).astype(np.int64)

    def table(self, first: int, second: int) -> IntArray:
        """Counts of one pair of columns."""
        (a, b), (c, d) = (self._starts[k : k + 2] for k in (first, second))
        return self._counts[a:b, c:d].copy()


class PairsQuery:
    """Counts of all pairs in one integer vector.

    Parameters
    ----------
    groups : sequence of CellGroups
        Of each column; public.
    pairs : sequence of (int, int)
        Places of the two columns of each pair; public. Each pair once.

    Examples
    --------
    >>> groups = [CellGroups(name, np.array([0, 1]), ("low", "high"), True) for name in "abc"]
    >>> query = PairsQuery(groups, [(0, 1), (0, 2)])
    >>> query.size, query.l1_sensitivity("add-remove", 1), round(query.sensitivity("replace", 3), 6)
    (8, 2, 6.0)
    """

    def __init__(self, groups: Sequence[CellGroups], pairs: Sequence[tuple[int, int]]) -> None:
        self.groups = tuple(groups)
        self.pairs = tuple((int(first), int(second)) for first, second in pairs)
        if not self.pairs or len(set(self.pairs)) != len(self.pairs):
            raise ValueError("pairs must be different, and at least one")
        if not all(0 <= first < second < len(self.groups) for first, second in self.pairs):
            raise ValueError("pairs must name two columns, the first of them first")

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Groups of the two columns of each pair."""
        return [(self.groups[first].size, self.groups[second].size) for first, second in self.pairs]

    @property
    def size(self) -> int:
        """How many whole numbers it gives."""
        return sum(rows * columns for rows, columns in self.shapes)

    def l1_sensitivity(self, neighbours: str, max_contributions: int) -> int:
        """How far the counts of neighbours can be apart, as a sum of absolute values: each pair moves on its own."""
        return len(self.pairs) * rows_moved(neighbours, max_contributions)

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the counts of neighbours can be apart in Euclidean norm, rounded up."""
        per_record = len(self.pairs) * (1 if neighbours == "add-remove" else 2)  # squared
        return square_root_up(Fraction(per_record * max_contributions**2))

    def exact(self, tables: PairTables) -> IntArray:
        """Secret: the numbers without noise, pair after pair."""
        if tables.sizes != tuple(groups.size for groups in self.groups):
            raise ValueError("tables must hold the groups of each column")
        return np.concatenate([tables.table(first, second).ravel() for first, second in self.pairs])

    def decode(self, values: IntArray, noise: Noise) -> list[PairCounts]:
        """Public: what noisy numbers say, for each pair."""
        ends = np.cumsum([rows * columns for rows, columns in self.shapes])
        found = []
        for (first, second), shape, mine in zip(self.pairs, self.shapes, np.split(values, ends[:-1]), strict=True):
            found.append(PairCounts(self.groups[first], self.groups[second], mine.reshape(shape).copy(), noise))
        return found
