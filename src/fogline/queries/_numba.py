"""The sum of looked-up directions as one compiled loop: integers only, hence the same as ``add_phases`` in numpy.

The cells of records as compiled loops: the same IEEE operations as ``cell_keys``, hence the same integers.

The specification is passed as tuples: their length is part of the compiled type, so the loops over the axes unroll.
"""

from __future__ import annotations

from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray, IntArray
from fogline.density.random_spec import CellSpec

__all__ = ["add_phases", "cell_of", "count_rows", "grid_parts", "write_cells", "writeable"]

Axes: TypeAlias = tuple[float, ...]
"""One number per axis, as a tuple: its length is known when a loop is compiled."""


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_phases(
    phases: FloatArray,
    table: NDArray[np.int32],
    shift: np.int32,
    mask: np.int32,
    cosines: NDArray[np.int32],
    sines: NDArray[np.int32],
) -> None:
    """Add cosine and sine of each column's phases; a table entry holds both, the sine in its lower 16 bits."""
    for i in range(phases.shape[0]):
        for m in range(phases.shape[1]):
            both = table[(np.int32(phases[i, m]) >> shift) & mask]
            cosines[m] += both >> 16
            sines[m] += np.int32(both << 16) >> 16


def count_rows(rows: FloatArray, spec: CellSpec, counts: IntArray) -> None:
    """Add the rows to the flat ``counts`` of the grid."""
    lower, upper, widths, shift = grid_parts(spec)
    _count(writeable(rows), lower, upper, widths, shift, spec.cells, counts)


def write_cells(rows: FloatArray, spec: CellSpec, cells: IntArray) -> None:
    """Write the flat cell of each row, or the number of cells for a row that falls nowhere."""
    lower, upper, widths, shift = grid_parts(spec)
    _write(writeable(rows), lower, upper, widths, shift, spec.cells, cells)


def writeable(rows: FloatArray) -> FloatArray:
    """Rows as an array that may be written: for any other kind numba would compile the loop once more."""
    return np.require(rows, requirements=["C", "W"])


def grid_parts(spec: CellSpec) -> list[tuple[float, ...]]:
    """Lower and upper bounds, widths of cells and shifts, as the loops take them."""
    return [tuple(part.tolist()) for part in (spec.lower, spec.upper, spec.cell_widths, spec.shift)]


@numba.njit(cache=True, fastmath=False, nogil=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def cell_of(
    rows: FloatArray, i: int, lower: Axes, upper: Axes, widths: Axes, shift: Axes, cells: tuple[int, ...]
) -> int:
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
def _count(
    rows: FloatArray, lower: Axes, upper: Axes, widths: Axes, shift: Axes, cells: tuple[int, ...], counts: IntArray
) -> None:
    for i in range(rows.shape[0]):
        key = cell_of(rows, i, lower, upper, widths, shift, cells)
        if key >= 0:
            counts[key] += 1


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _write(
    rows: FloatArray, lower: Axes, upper: Axes, widths: Axes, shift: Axes, cells: tuple[int, ...], keys: IntArray
) -> None:
    nowhere = 1
    for size in cells:
        nowhere *= size
    for i in range(rows.shape[0]):
        key = cell_of(rows, i, lower, upper, widths, shift, cells)
        keys[i] = key if key >= 0 else nowhere
