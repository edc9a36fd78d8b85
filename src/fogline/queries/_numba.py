"""The sum of looked-up directions as one compiled loop: integers only, hence the same as ``add_phases`` in numpy.

The cells of records as compiled loops: the same IEEE operations as ``cell_keys``, hence the same integers.

The specification is passed as tuples: their length is part of the compiled type, so the loops over the axes unroll.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fogline.density.random_spec import CellSpec

__all__ = ["add_phases", "count_rows", "write_cells"]


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_phases(phases: Any, table: Any, shift: Any, mask: Any, cosines: Any, sines: Any) -> None:
    """Add cosine and sine of each column's phases; a table entry holds both, the sine in its lower 16 bits."""
    for i in range(phases.shape[0]):
        for m in range(phases.shape[1]):
            both = table[(np.int32(phases[i, m]) >> shift) & mask]
            cosines[m] += both >> 16
            sines[m] += np.int32(both << 16) >> 16


def count_rows(rows: NDArray[np.float64], spec: CellSpec, counts: NDArray[np.int64]) -> None:
    """Add the rows to the flat ``counts`` of the grid."""
    lower, upper, widths, shift = _grid(spec)
    _count(rows, lower, upper, widths, shift, spec.cells, counts)


def write_cells(rows: NDArray[np.float64], spec: CellSpec, cells: NDArray[np.int64]) -> None:
    """Write the flat cell of each row, or the number of cells for a row that falls nowhere."""
    lower, upper, widths, shift = _grid(spec)
    _write(rows, lower, upper, widths, shift, spec.cells, cells)


def _grid(spec: CellSpec) -> list[tuple[float, ...]]:
    return [tuple(part.tolist()) for part in (spec.lower, spec.upper, spec.cell_widths, spec.shift)]


@numba.njit(cache=True, fastmath=False, nogil=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def _cell(rows: Any, i: Any, lower: Any, upper: Any, widths: Any, shift: Any, cells: Any) -> Any:
    """Flat cell of a row, -1 for one that falls nowhere."""
    inside = True
    for j in range(len(lower)):
        x = rows[i, j]
        inside &= (x >= lower[j]) & (x <= upper[j])  # false for NaN
    if not inside:
        return -1
    key = 0
    for j in range(len(lower)):
        # nonnegative, so truncation is the floor
        cell = int((rows[i, j] - lower[j]) / widths[j] + shift[j])
        key = key * cells[j] + min(cell, cells[j] - 1)
    return key


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _count(rows: Any, lower: Any, upper: Any, widths: Any, shift: Any, cells: Any, counts: Any) -> None:
    for i in range(rows.shape[0]):
        key = _cell(rows, i, lower, upper, widths, shift, cells)
        if key >= 0:
            counts[key] += 1


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _write(rows: Any, lower: Any, upper: Any, widths: Any, shift: Any, cells: Any, keys: Any) -> None:
    nowhere = 1
    for size in cells:
        nowhere *= size
    for i in range(rows.shape[0]):
        key = _cell(rows, i, lower, upper, widths, shift, cells)
        keys[i] = key if key >= 0 else nowhere
