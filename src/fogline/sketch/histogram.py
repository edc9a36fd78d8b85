r"""The secret state of a grid sketch: how many records lie in each cell of the public grid.

A record :math:`x` falls into the cell :math:`\lfloor (x_j - lo_j)/\delta_j + s_j \rfloor` on each axis
(:math:`s_j` is 0, or 1/2 where values are rounded), the last one if rounding carries it past the end. One with
a missing or infinite value, or outside the box, falls nowhere. Counts are integers: exact, order-free,
mergeable, and equal to what ``GROUP BY`` gives in any SQL engine that evaluates the same expression in double
precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import quiet
from fogline.sketch.spec import SketchSpec

__all__ = ["CellCounts", "cell_keys", "row_cells"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CHUNK_ROWS = 2**15
"""Rows turned into cells at a time: what one chunk needs stays in the cache."""

DENSE_CELLS = 2**22
"""Up to this many cells the counts are a plain array of 32 MiB; above, sorted keys and counts."""

MOST_DECLARED = 2**41
"""Most records of counts made elsewhere that are taken on trust."""


def cell_keys(rows: FloatArray, spec: SketchSpec) -> IntArray:
    """Flat cell of each row (C order), or the number of cells for a row that falls nowhere."""
    total = math.prod(spec.cells)
    key = np.zeros(len(rows))
    inside = np.ones(len(rows), dtype=bool)
    with np.errstate(all="ignore"):  # infinities and NaN are not news
        for j, cells in enumerate(spec.cells):
            x = np.ascontiguousarray(rows[:, j])
            inside &= (x >= spec.lower[j]) & (x <= spec.upper[j])  # false for NaN
            x = (x - spec.lower[j]) / spec.cell_widths[j]
            if spec.shift[j]:
                x += spec.shift[j]
            np.floor(x, out=x)
            np.minimum(x, cells - 1.0, out=x)
            key *= cells
            key += x
    np.copyto(key, float(total), where=~inside)
    return key.astype(np.int64)


def row_cells(rows: FloatArray, spec: SketchSpec) -> IntArray:
    """Cells of :func:`cell_keys`, by the compiled loop where there is one."""
    if _fast_counter() is None:
        return cell_keys(rows, spec)
    from fogline.sketch._fast_histogram import write_cells

    cells = np.empty(len(rows), dtype=np.int64)
    write_cells(np.ascontiguousarray(rows), spec, cells)
    return cells


class CellCounts:
    """Integer counts of the cells, as a dense array or, on a large grid, as sorted keys with counts.

    Parameters
    ----------
    spec : SketchSpec
        The public grid.
    """

    def __init__(self, spec: SketchSpec) -> None:
        self.spec = spec
        self.total_cells = math.prod(spec.cells)
        self.is_dense = self.total_cells <= DENSE_CELLS
        self._dense = np.zeros(self.total_cells if self.is_dense else 0, dtype=np.int64)
        self._keys = np.zeros(0, dtype=np.int64)
        self._counts = np.zeros(0, dtype=np.int64)

    @quiet()
    def add_rows(self, rows: FloatArray) -> None:
        """Count the rows of an array of shape (n, d), chunk by chunk."""
        fast = _fast_counter() if self.is_dense else None
        if fast is not None:
            fast(np.ascontiguousarray(rows), self.spec, self._dense)
            return
        for start in range(0, len(rows), CHUNK_ROWS):
            keys = cell_keys(rows[start : start + CHUNK_ROWS], self.spec)
            if self.is_dense:
                self._dense += np.bincount(keys, minlength=self.total_cells + 1)[:-1]
            else:
                unique, counts = np.unique(keys[keys < self.total_cells], return_counts=True)
                self.add_state(unique, counts.astype(np.int64))

    def add_state(self, keys: IntArray, counts: IntArray) -> None:
        """Add counts of distinct cells, such as another sketch's or the answer to a ``GROUP BY``."""
        if self.is_dense:
            self._dense[keys] += counts
            return
        joined, inverse = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        sums = np.zeros(len(joined), dtype=np.int64)
        np.add.at(sums, inverse, np.concatenate([self._counts, counts]))
        self._keys, self._counts = joined, sums

    def take_rows(self, rows: FloatArray) -> None:
        """Take rows back: the inverse of :meth:`add_rows`."""
        gone = CellCounts(self.spec)
        gone.add_rows(rows)
        keys, counts = gone.state()
        self.add_state(keys, -counts)

    def checked(self, keys: Any, counts: Any, *, signed: bool = False) -> tuple[IntArray, IntArray]:
        """Return counts from elsewhere, if records can have made them; with ``signed``, some were taken back."""
        cells, numbers = np.asarray(keys), np.asarray(counts)
        if (
            cells.dtype.kind not in "iu"
            or numbers.dtype.kind not in "iu"
            or cells.shape != numbers.shape
            or cells.ndim != 1
        ):
            raise ValueError("keys and counts must be integers, one count for each key")
        if len(cells) and (cells.min() < 0 or cells.max() >= self.total_cells or (numbers.min() < 0 and not signed)):
            raise ValueError("keys must be cells of the grid and counts must not be negative")
        if len(np.unique(cells)) != len(cells):
            raise ValueError("keys must be distinct")
        if sum(map(abs, numbers.tolist())) > MOST_DECLARED:
            raise ValueError(f"counts must not add up to more than {MOST_DECLARED} records")
        return cells.astype(np.int64), numbers.astype(np.int64)

    def state(self) -> tuple[IntArray, IntArray]:
        """Keys, ascending, and counts of the cells that are not empty: the canonical form."""
        if self.is_dense:
            keys = np.flatnonzero(self._dense)
            return keys.astype(np.int64), self._dense[keys]
        keep = self._counts != 0
        return self._keys[keep], self._counts[keep]

    def table(self) -> IntArray:
        """Counts as a dense array with one axis for each of the box's."""
        if self.is_dense:
            return self._dense.reshape(self.spec.cells).copy()
        full = np.zeros(self.total_cells, dtype=np.int64)
        full[self._keys] = self._counts
        return full.reshape(self.spec.cells)


_counter: Callable[[FloatArray, SketchSpec, IntArray], None] | None = None
_counter_known = False


def _fast_counter() -> Callable[[FloatArray, SketchSpec, IntArray], None] | None:
    """Give the numba counter where the ``fast`` extra is installed, else nothing."""
    global _counter, _counter_known
    if not _counter_known:
        try:
            from fogline.sketch._fast_histogram import count_rows
        except ImportError:
            _counter = None
        else:
            _counter = count_rows
        _counter_known = True
    return _counter
