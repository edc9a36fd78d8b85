"""The sum of looked-up directions as one compiled loop: integers only, hence the same as ``add_phases`` in numpy.

The cells of records as compiled loops: the same IEEE operations as ``cell_keys``, hence the same integers.

The specification is passed as tuples: their length is part of the compiled type, so the loops over the axes unroll.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray, IntArray
from fogline.density.random_spec import CellSpec

__all__ = [
    "BLOCK",
    "MOST_CELLS",
    "Axes",
    "add_phases",
    "column_chunks",
    "count_rows",
    "grid_parts",
    "write_block",
    "write_cells",
]

Axes: TypeAlias = tuple[float, ...]
"""One number per axis, as a tuple: its length is known when a loop is compiled."""

Keys: TypeAlias = NDArray[np.int32]
"""Flat cells."""


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


BLOCK = 2048
"""Rows whose cells are found at a time: their cells stay in the nearest cache."""

MOST_CELLS = 2**31 - 1
"""Most cells of a grid: a flat cell is a number of 32 bits, and -1 is none."""

COLUMN_ROWS = 2**14
"""Rows that are brought into columns at a time where they lie row by row."""


def count_rows(rows: FloatArray, spec: CellSpec, counts: IntArray) -> None:
    """Add the rows to the flat ``counts`` of the grid."""
    parts = grid_parts(spec)
    for columns in column_chunks(rows):
        _count(columns, *parts, counts)


def write_cells(rows: FloatArray, spec: CellSpec, cells: IntArray) -> None:
    """Write the flat cell of each row, or the number of cells for a row that falls nowhere."""
    parts, start = grid_parts(spec), 0
    for columns in column_chunks(rows):
        stop = start + columns.shape[1]
        _write(columns, *parts, cells[start:stop])
        start = stop


def column_chunks(rows: FloatArray) -> Iterator[FloatArray]:
    """Rows as arrays of shape (d, rows), each column in one piece: loops over a column become wide instructions.

    Rows that lie column by column already, as a file gives them, are taken as they are.
    """
    if rows.flags.f_contiguous:
        yield writeable(rows.T)
        return
    for start in range(0, len(rows), COLUMN_ROWS):
        yield writeable(rows[start : start + COLUMN_ROWS].T)


def writeable(rows: FloatArray) -> FloatArray:
    """Rows as an array that may be written: for any other kind numba would compile the loop once more."""
    return np.require(rows, requirements=["C", "W"])


GridParts: TypeAlias = tuple[Axes, Axes, Axes, Axes, tuple[int, ...]]
"""Lower and upper bounds, widths of cells, shifts and numbers of cells, per axis."""


def grid_parts(spec: CellSpec) -> GridParts:
    """A grid as the loops take it; whoever has a larger one takes ``cell_keys``."""
    if math.prod(spec.cells) > MOST_CELLS:
        raise ValueError(f"a grid of compiled loops has at most {MOST_CELLS} cells")
    lower, upper, widths, shift = (
        tuple(part.tolist()) for part in (spec.lower, spec.upper, spec.cell_widths, spec.shift)
    )
    return lower, upper, widths, shift, spec.cells


# Without Python's error for a division by zero, which no width of a cell is: the check would keep the loop narrow.
@numba.njit(cache=True, fastmath=False, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def write_block(
    columns: FloatArray,
    start: int,
    stop: int,
    lower: Axes,
    upper: Axes,
    widths: Axes,
    shift: Axes,
    cells: tuple[int, ...],
    keys: Keys,
) -> None:
    """Write the flat cells of some rows, -1 for a row that falls nowhere; the grid is one of :func:`grid_parts`."""
    keys[: stop - start] = 0
    for j in range(len(lower)):
        column = columns[j, start:stop]
        least, most, width, offset = lower[j], upper[j], widths[j], shift[j]
        size, last = np.int32(cells[j]), float(cells[j] - 1)
        for i in range(len(column)):
            x = column[i]
            inside = (x >= least) & (x <= most)  # false for NaN
            # nonnegative, so truncation is the floor; the upper bound itself belongs to the last cell
            cell = np.int32(min((x - least) / width + offset, last) if inside else 0.0)
            keys[i] = keys[i] * size + cell if inside & (keys[i] >= 0) else np.int32(-1)


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _count(
    columns: FloatArray, lower: Axes, upper: Axes, widths: Axes, shift: Axes, cells: tuple[int, ...], counts: IntArray
) -> None:
    keys = np.empty(BLOCK, np.int32)
    for start in range(0, columns.shape[1], BLOCK):
        stop = min(start + BLOCK, columns.shape[1])
        write_block(columns, start, stop, lower, upper, widths, shift, cells, keys)
        for key in keys[: stop - start]:
            counts[max(key, 0)] += key >= 0  # without a branch that records decide


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _write(
    columns: FloatArray, lower: Axes, upper: Axes, widths: Axes, shift: Axes, cells: tuple[int, ...], found: IntArray
) -> None:
    nowhere = 1
    for size in cells:
        nowhere *= size
    keys = np.empty(BLOCK, np.int32)
    for start in range(0, columns.shape[1], BLOCK):
        stop = min(start + BLOCK, columns.shape[1])
        write_block(columns, start, stop, lower, upper, widths, shift, cells, keys)
        for i in range(stop - start):
            found[start + i] = keys[i] if keys[i] >= 0 else nowhere
