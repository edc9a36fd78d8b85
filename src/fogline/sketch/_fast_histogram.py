"""The cell counter as one compiled loop: the same IEEE operations as ``cell_keys``, hence the same integers.

The specification is passed as tuples: their length is part of the compiled type, so the loops over the axes unroll.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fogline.sketch.spec import SketchSpec

__all__ = ["count_rows"]


def count_rows(rows: NDArray[np.float64], spec: SketchSpec, counts: NDArray[np.int64]) -> None:
    """Add the rows to the flat ``counts`` of the grid."""
    lower, upper = tuple(spec.lower.tolist()), tuple(spec.upper.tolist())
    _count(rows, lower, upper, tuple(spec.cell_widths.tolist()), tuple(spec.shift.tolist()), spec.cells, counts)


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _count(rows: Any, lower: Any, upper: Any, widths: Any, shift: Any, cells: Any, counts: Any) -> None:
    for i in range(rows.shape[0]):
        inside = True
        for j in range(len(lower)):
            x = rows[i, j]
            inside &= (x >= lower[j]) & (x <= upper[j])  # false for NaN
        if inside:
            key = 0
            for j in range(len(lower)):
                # nonnegative, so truncation is the floor
                cell = int((rows[i, j] - lower[j]) / widths[j] + shift[j])
                key = key * cells[j] + min(cell, cells[j] - 1)
            counts[key] += 1
