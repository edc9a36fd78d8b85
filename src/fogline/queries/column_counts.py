r"""Exact counts of many columns at once: every record is in one cell of each column.

A column is cut into public cells (:mod:`fogline.density.columns`). With :math:`m` columns a record is a vector of ones
and zeros with at most :math:`m` ones, one per column; the counts are the sum of these vectors. Adding a record moves
them by at most :math:`m` in the sum of absolute values and by at most :math:`\sqrt m` in Euclidean norm, however many
cells there are. A query counts in unions of cells that do not overlap: boxes of leaves, and single cells beyond them.
The proof is in ``column_counts.proof.md`` beside this file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fogline._typing import FloatArray, IntArray
from fogline.accounting._rounding import square_root_up
from fogline.density.leaves import Boxes, BucketCounts, LeafSpec, Noise, check_tiling
from fogline.queries.bucket_counts import bucket_counts
from fogline.queries.fourier_sums import cell_keys
from fogline.queries.magnitudes import BINS, CELLS, bin_index, cell_index
from fogline.queries.query import rows_moved

__all__ = [
    "ColumnAnswer",
    "ColumnGroups",
    "ColumnTables",
    "ColumnsQuery",
    "KeyCounts",
    "magnitude_cells",
    "number_cells",
    "range_cells",
]


def number_cells(values: FloatArray, spec: LeafSpec) -> IntArray:
    """Cell of each value: its leaf, or one of the cells for what is missing, below or above.

    Parameters
    ----------
    values : array of shape (n,)
    spec : LeafSpec
        Of one axis.

    Examples
    --------
    >>> number_cells(np.array([0.0, 9.0, np.nan, -1.0, np.inf]), LeafSpec.plan([(0, 9)], steps=1)).tolist()
    [0, 9, 10, 11, 12]
    """
    leaves = spec.n_leaves
    cells = cell_keys(values[:, None], spec)  # the number of leaves where a value is in none
    with np.errstate(invalid="ignore"):  # false for NaN
        cells[values < spec.lower[0]] = leaves + 1
        cells[values > spec.upper[0]] = leaves + 2
    return cells


def magnitude_cells(values: FloatArray) -> IntArray:
    """Bin of each value by sign and power of two; ``BINS`` for a value in none.

    Examples
    --------
    >>> cells = magnitude_cells(np.array([1.0, 1.5, np.nan]))
    >>> bool(cells[0] == cells[1]), int(cells[2]) == BINS
    (True, True)
    """
    index, counted = bin_index(values)
    return np.where(counted, index, BINS)


def range_cells(values: FloatArray, low: float, high: float) -> IntArray:
    """Cell of each value in a coarse range; ``CELLS`` for a value outside it.

    Examples
    --------
    >>> range_cells(np.array([0.0, 1.0, 2.0]), 0.0, 1.0).tolist()
    [0, 127, 128]
    """
    index, inside = cell_index(values, low, high)
    return np.where(inside, index, CELLS)


class ColumnTables:
    """Secret: exact counts of the cells of each column.

    Parameters
    ----------
    sizes : sequence of int
        Number of cells of each column.

    Examples
    --------
    >>> tables = ColumnTables([3, 2])
    >>> tables.add(np.array([[0, 1], [2, 1], [2, 0]]))
    >>> [table.tolist() for table in tables.counts]
    [[1, 0, 2], [1, 2]]
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.counts = [np.zeros(size, dtype=np.int64) for size in sizes]

    def add(self, cells: IntArray) -> None:
        """Count rows of cells, one cell per column; int64 of shape (rows, columns)."""
        if cells.shape[1] != len(self.counts):
            raise ValueError("cells must have one column for each table")
        for j, table in enumerate(self.counts):
            table += np.bincount(np.ascontiguousarray(cells[:, j]), minlength=len(table))


class KeyCounts:
    """Secret: how often each text occurs in a column; a missing one counts nowhere.

    Examples
    --------
    >>> counts = KeyCounts()
    >>> counts.add(np.array([b"a", b"", b"a"], dtype="S48"))
    >>> sorted(counts.elements())
    [b'a', b'a']
    """

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()

    def add(self, keys: np.ndarray) -> None:
        """Count texts, an array of bytes."""
        # an empty text stands for a missing one
        found, times = np.unique(keys, return_counts=True)
        self._counts.update({key: count for key, count in zip(found.tolist(), times.tolist(), strict=True) if key})

    def elements(self) -> list[bytes]:
        """One key per record."""
        return list(self._counts.elements())


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """Where a query counts in one column: boxes that tile its first cells, and each of the others by itself.

    Parameters
    ----------
    leaves : int
        Cells that boxes tile; 0 where all cells are counted by themselves.
    boxes : int64 array of shape (boxes, 1, 2) or None
    others : int
        Cells after them.
    """

    leaves: int
    boxes: Boxes | None
    others: int

    @property
    def size(self) -> int:
        """How many numbers the query gives for the column."""
        return self.others + (0 if self.boxes is None else len(self.boxes))


@dataclass(frozen=True, eq=False)
class ColumnAnswer:
    """Released counts of one column.

    Parameters
    ----------
    boxes : BucketCounts or None
    others : int64 array
    noise : Noise
    """

    boxes: BucketCounts | None
    others: IntArray
    noise: Noise

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.others.sum()) + (0 if self.boxes is None else self.boxes.total)

    @property
    def total_variance(self) -> float:
        """Variance of the noise in :attr:`total`."""
        return (len(self.others) + (0 if self.boxes is None else len(self.boxes))) * self.noise.variance


class ColumnsQuery:
    """Counts of all columns in one integer vector.

    Parameters
    ----------
    parts : sequence of ColumnGroups
        One per column; public. Boxes that do not tile are refused here, before anything is paid.

    Examples
    --------
    >>> query = ColumnsQuery([ColumnGroups(4, np.array([[[0, 1]], [[1, 4]]]), 1), ColumnGroups(0, None, 2)])
    >>> query.size, query.l1_sensitivity("add-remove", 1), round(query.sensitivity("replace", 3), 6)
    (5, 2, 6.0)
    >>> query.exact([np.array([3, 0, 2, 1, 5]), np.array([7, 4])]).tolist()
    [3, 3, 5, 7, 4]
    """

    def __init__(self, parts: Sequence[ColumnGroups]) -> None:
        if not parts:
            raise ValueError("parts must hold at least one column")
        for part in parts:
            if (part.boxes is None) != (part.leaves == 0) or part.others < 0:
                raise ValueError("parts must have boxes where they have leaves, and nowhere else")
            if part.boxes is not None:
                check_tiling(part.boxes, (part.leaves,))
        self.parts = tuple(parts)

    @property
    def size(self) -> int:
        """How many whole numbers it gives."""
        return sum(part.size for part in self.parts)

    def l1_sensitivity(self, neighbours: str, max_contributions: int) -> int:
        """How far the counts of neighbours can be apart, as a sum of absolute values: each column moves on its own."""
        # a record is in one cell of every column
        return len(self.parts) * rows_moved(neighbours, max_contributions)

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the counts of neighbours can be apart in Euclidean norm, rounded up."""
        per_record = len(self.parts) * (1 if neighbours == "add-remove" else 2)  # squared
        return square_root_up(Fraction(per_record * max_contributions**2))

    def exact(self, tables: Sequence[IntArray]) -> IntArray:
        """Secret: the numbers without noise, column after column, from the exact table of each."""
        if [len(table) for table in tables] != [part.leaves + part.others for part in self.parts]:
            raise ValueError("tables must hold one table of cells for each column")
        found: list[IntArray] = []
        for part, table in zip(self.parts, tables, strict=True):
            if part.boxes is not None:
                found.append(bucket_counts(table[: part.leaves], part.boxes))
            found.append(table[part.leaves :])
        return np.concatenate(found)

    def decode(self, values: IntArray, noise: Noise) -> list[ColumnAnswer]:
        """Public: what noisy numbers say, for each column."""
        answers = []
        for part, mine in zip(
            self.parts, np.split(values, np.cumsum([part.size for part in self.parts])[:-1]), strict=True
        ):
            edge = part.size - part.others
            boxes = None if part.boxes is None else BucketCounts(part.boxes, mine[:edge].copy(), noise)
            answers.append(ColumnAnswer(boxes, mine[edge:].copy(), noise))
        return answers
