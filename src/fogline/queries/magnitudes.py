r"""Where the values of a column lie, without knowing anything about it: counts of powers of two, then of cells.

First every value is counted by its sign and its power of two,

.. math:: \text{bin of } x = \bigl(\operatorname{sign} x, \lfloor \log_2 |x| \rfloor\bigr), \qquad
          2^{-32} \le |x| < 2^{64},

with one bin for what is smaller; a larger or missing value is counted nowhere. Bins whose noisy count cannot be noise
span the *coarse range*. It is then cut into cells of equal width, and the values are counted once more: quantiles and
bounds are read from the cells. Both counts are integer vectors of which a record moves one entry by one: the proof is
in ``magnitudes.proof.md`` beside this file.

References
----------
Dwork and Lei (2009), Differential privacy and robust statistics, for a spread found among powers of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from sklearn.isotonic import isotonic_regression

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.queries.query import Records

__all__ = [
    "BINS",
    "CELLS",
    "CellsQuery",
    "ColumnCells",
    "ColumnMagnitudes",
    "MagnitudesQuery",
    "bin_counts",
    "bin_index",
    "cell_counts",
    "cell_index",
    "coarse_range",
    "counts_sensitivity",
]


LEAST_POWER, MOST_POWER = -32, 64
POWERS = MOST_POWER - LEAST_POWER
BINS = 2 * POWERS + 1
"""Bins of the first count: negative powers from the largest to the smallest, zero, positive powers."""

CELLS = 128
"""Cells of the second count."""


@dataclass(frozen=True)
class BoundsTuning:
    """What was tuned in reading bounds from noisy counts; none of it enters the sensitivity.

    Parameters
    ----------
    mistake : float
        Chance that noise alone makes any bin, or any block of cells, look occupied.
    deviations : float
        Noise deviations by which a count is taken to be larger than it looks before a tail is cut off.
    unseen : float
        Share of the values that a tail in which nothing stands out may hold, in the worst case, to be cut off.
    few : float
        With fewer values than this many noise deviations of a cell, a good part of them may go unseen.
    """

    mistake: float = 1e-3
    deviations: float = 2.0
    unseen: float = 0.025
    few: float = 100.0


TUNING = BoundsTuning()


def bin_index(column: FloatArray) -> tuple[IntArray, BoolArray]:
    """Secret: the bin of each value, and whether it has one."""
    with np.errstate(all="ignore"):
        size = np.abs(column)
        counted = size < 2.0**MOST_POWER  # false for NaN and infinities
        _, exponent = np.frexp(np.where(counted, size, 0.0))  # exact: size = m 2^exponent, 1/2 <= m < 1
        power = np.where(size >= 2.0**LEAST_POWER, exponent - 1 - LEAST_POWER, -1)
        # Zero, and what is smaller than the least power, is the bin in the middle, for either sign.
        index = POWERS + np.where(column < 0, -1, 1) * (power + 1)
    return index.astype(np.int64), counted


def bin_counts(column: FloatArray) -> IntArray:
    """Secret: how many values lie in each bin; int64 of shape (BINS,)."""
    index, counted = bin_index(column)
    return np.bincount(index[counted], minlength=BINS).astype(np.int64)


def cell_index(column: FloatArray, low: float, high: float) -> tuple[IntArray, BoolArray]:
    """Secret: the cell of each value in the range, and whether it is in the range; 0 where it is not."""
    with np.errstate(all="ignore"):
        inside = (column >= low) & (column <= high)  # false for NaN
        index = np.floor((np.where(inside, column, low) - low) * (CELLS / (high - low)))
    return np.clip(index, 0, CELLS - 1).astype(np.int64), inside


def cell_counts(column: FloatArray, low: float, high: float) -> IntArray:
    """Secret: how many values of the range lie in each of its cells; int64 of shape (CELLS,)."""
    index, inside = cell_index(column, low, high)
    return np.bincount(index[inside], minlength=CELLS).astype(np.int64)


def counts_sensitivity(neighbours: str, max_contributions: int) -> float:
    r"""How far the counts of neighbours can be apart: :math:`c`, or :math:`\sqrt 2\,c` where records are replaced."""
    steps = max_contributions * (1.0 if neighbours == "add-remove" else math.sqrt(2.0))
    return math.nextafter(steps * (1 + 1e-12), math.inf)


def bin_edges() -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of each bin; that of zero is a point."""
    powers = 2.0 ** np.arange(LEAST_POWER, MOST_POWER + 1)
    lower = np.concatenate([-powers[:0:-1], [0.0], powers[:-1]])
    upper = np.concatenate([-powers[-2::-1], [0.0], powers[1:]])
    return lower, upper


def coarse_range(noisy: IntArray, scale: float) -> tuple[float, float] | None:
    """Give the range of the bins that cannot be noise, from noisy counts alone; None where there is no such bin.

    It reaches on over neighbours at least one noise deviation above zero: tails seldom end with a power of two.
    """
    occupied = np.flatnonzero(noisy > scale * norm.isf(TUNING.mistake / BINS))
    if not len(occupied):
        return None
    first, last = int(occupied[0]), int(occupied[-1])
    # One deviation is enough beside a bin that is certain.
    while first > 0 and noisy[first - 1] > scale:
        first -= 1
    while last < BINS - 1 and noisy[last + 1] > scale:
        last += 1
    lower, upper = bin_edges()
    low, high = float(lower[first]), float(upper[last])
    # zeros alone: a range around them, since one of no width cannot be cut into cells
    return (low, high) if low < high else (-(2.0**LEAST_POWER), 2.0**LEAST_POWER)


@dataclass(frozen=True, eq=False)
class ColumnMagnitudes:
    """Released counts of a column's powers of two.

    Attributes
    ----------
    noisy : int64 array of shape (BINS,)
    scale : float
        Of the discrete Gaussian noise on each.
    """

    noisy: IntArray
    scale: float

    def range(self) -> tuple[float, float] | None:
        """The coarse range; None where no power of two stands out."""
        return coarse_range(self.noisy, self.scale)

    @property
    def total(self) -> float:
        """Released number of values, at least 1."""
        return max(float(self.noisy.sum()), 1.0)

    @property
    def total_sd(self) -> float:
        """Noise of that number."""
        return self.scale * math.sqrt(BINS)


@dataclass(frozen=True)
class ColumnCells:
    """Released counts of a column's cells, and what can be read from them.

    Parameters
    ----------
    low, high : float
        The coarse range.
    noisy : int64 array of shape (CELLS,)
    scale : float
        Of the discrete Gaussian noise on each.
    """

    low: float
    high: float
    noisy: IntArray
    scale: float

    @property
    def edges(self) -> FloatArray:
        """Ends of the cells, of shape (CELLS + 1,)."""
        return np.linspace(self.low, self.high, CELLS + 1)

    @property
    def total(self) -> float:
        """Released number of values in the range, at least 1."""
        return max(float(self.noisy.sum()), 1.0)

    @property
    def total_sd(self) -> float:
        """Noise of that number."""
        return self.scale * math.sqrt(CELLS)

    def inner(self, coverage: float) -> tuple[int, int]:
        """First and last cell to keep: what is beyond cannot be told from nothing, or is less than the coverage allows.

        A tail is cut off where its noisy count, and two noise deviations more, stay below half of what the coverage
        leaves out; and where they stay below a fortieth of all values, and no block of cells, of any size that halving
        gives, has a count that cannot be noise.
        """
        first, last = self._occupied()
        ends = []
        for noisy, start in ((self.noisy, first), (self.noisy[::-1], CELLS - 1 - last)):
            safe, unseen = (
                _cut(noisy, self.scale, share * self.total) for share in ((1 - coverage) / 2, TUNING.unseen)
            )
            ends.append(max(safe, min(unseen, start)))
        first, last = ends[0], CELLS - 1 - ends[1]
        return (first, last) if first <= last else (0, CELLS - 1)

    def _occupied(self) -> tuple[int, int]:
        """Ends of the smallest blocks of cells whose counts cannot be noise."""
        first, last = CELLS, -1
        level = norm.isf(TUNING.mistake / (2 * CELLS))
        below = np.zeros(CELLS, dtype=bool)
        size = 1
        while size <= CELLS:
            counts = self.noisy.reshape(-1, size).sum(axis=1)
            seen = counts > self.scale * math.sqrt(size) * level
            # a block counts only if no smaller one within it did: the ends stay as narrow as can be seen
            for block in np.flatnonzero(seen & ~below):
                first, last = min(first, int(block) * size), max(last, int(block) * size + size - 1)
            below = (seen | below).reshape(-1, 2).any(axis=1) if size < CELLS else below
            size *= 2
        return (first, last) if last >= 0 else (0, CELLS - 1)

    def bounds(self, coverage: float) -> tuple[float, float]:
        """Range that holds about this share of the values, or all that can be seen."""
        first, last = self.inner(coverage)
        return float(self.edges[first]), float(self.edges[last + 1])

    def outside(self, coverage: float) -> float:
        """How many values of the range may lie outside its bounds: the noisy count and two noise deviations."""
        first, last = self.inner(coverage)
        cells = first + CELLS - 1 - last
        counted = float(self.noisy.sum() - self.noisy[first : last + 1].sum())
        return max(counted, 0.0) + TUNING.deviations * self.scale * math.sqrt(cells)

    def quantile(self, q: float) -> float:
        """Quantile by the rising line that fits the noisy cumulative counts best, straight within a cell."""
        # Noise makes cumulative counts fall here and there; true ones cannot.
        rising = isotonic_regression(np.concatenate([[0.0], np.cumsum(self.noisy)]))
        span = rising[-1] - rising[0]
        if span <= 0:
            return (self.low + self.high) / 2
        rank = rising[0] + q * span
        place = int(np.clip(np.searchsorted(rising, rank), 1, CELLS))
        step = rising[place] - rising[place - 1]
        part = (rank - rising[place - 1]) / step if step > 0 else 0.0
        return float(self.edges[place - 1] + np.clip(part, 0.0, 1.0) * (self.edges[1] - self.edges[0]))

    @property
    def is_few(self) -> bool:
        """Whether so few values stand out that a good part may lie outside the range, unseen."""
        return self.total < TUNING.few * self.scale

    def rank_error(self, q: float) -> float:
        """Standard deviation that the noise gives to the rank of a quantile, as a share of the values."""
        return self.scale * math.sqrt(CELLS * q * (1 - q)) / self.total


def _cut(noisy: IntArray, scale: float, allowed: float) -> int:
    """How many cells of the lower end can go before this many values might be lost."""
    # with two deviations more: what may be lost, not what seems to be
    lost = np.cumsum(noisy) + TUNING.deviations * scale * np.sqrt(np.arange(1, CELLS + 1))
    return int(np.argmax(lost > allowed)) if (lost > allowed).any() else 0


def _of_all_columns(
    records: Records, name: str, made_for: object, shape: tuple[int, int], add: Callable[[IntArray, FloatArray], None]
) -> IntArray:
    """Secret: counts of all columns, made in one pass and kept for the queries of the other columns."""
    kept = records.memory.get(name)
    # one pass serves all columns; other ranges ask for another
    if kept is None or kept[0] != made_for:
        total = np.zeros(shape, dtype=np.int64)
        records.each(lambda rows: add(total, rows))
        kept = records.memory[name] = (made_for, total)
    found: IntArray = kept[1]
    return found


@dataclass(frozen=True)
class MagnitudesQuery:
    """Counts of one column by sign and power of two.

    Parameters
    ----------
    column : int
    width : int
        Number of columns.
    """

    column: int
    width: int

    @property
    def size(self) -> int:
        """Number of bins."""
        return BINS

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the counts of neighbours can be apart."""
        return counts_sensitivity(neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the counts."""

        def add(total: IntArray, rows: FloatArray) -> None:
            for j in range(self.width):
                total[j] += bin_counts(rows[:, j])

        counts = _of_all_columns(records, "magnitudes", self.width, (self.width, BINS), add)
        return np.asarray(counts[self.column])

    def decode(self, values: IntArray, noise_scale: float) -> ColumnMagnitudes:
        """Noisy counts, from which the coarse range is read."""
        return ColumnMagnitudes(values, noise_scale)


@dataclass(frozen=True)
class CellsQuery:
    """Counts of one column in cells of its coarse range.

    Parameters
    ----------
    column : int
    ranges : tuple of (low, high) or None
        Released coarse ranges of all columns; that of this one is known.
    """

    column: int
    ranges: tuple[tuple[float, float] | None, ...]

    @property
    def size(self) -> int:
        """Number of cells."""
        return CELLS

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the counts of neighbours can be apart."""
        return counts_sensitivity(neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the counts."""

        def add(total: IntArray, rows: FloatArray) -> None:
            for j, found in enumerate(self.ranges):
                if found is not None:
                    total[j] += cell_counts(rows[:, j], *found)

        counts = _of_all_columns(records, "cells", self.ranges, (len(self.ranges), CELLS), add)
        return np.asarray(counts[self.column])

    def decode(self, values: IntArray, noise_scale: float) -> ColumnCells:
        """Noisy counts of the cells."""
        found = self.ranges[self.column]
        assert found is not None
        return ColumnCells(*found, values, noise_scale)
