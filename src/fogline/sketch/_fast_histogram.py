"""The cell counter as one compiled loop: the same IEEE operations as ``cell_keys``, hence the same integers."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from fogline.sketch.spec import SketchSpec

__all__ = ["count_rows"]


def count_rows(rows: NDArray[np.float64], spec: SketchSpec, counts: NDArray[np.int64]) -> None:
    """Add the rows to the flat ``counts`` of the grid."""
    cells = np.array(spec.cells, dtype=np.int64)
    _count(rows, spec.lower, spec.upper, spec.cell_widths, spec.shift, cells, counts)


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _count(rows: Any, lower: Any, upper: Any, widths: Any, shift: Any, cells: Any, counts: Any) -> None:
    n, d = rows.shape
    for i in range(n):
        key = 0
        inside = True
        for j in range(d):
            x = rows[i, j]
            if not (x >= lower[j] and x <= upper[j]):  # NaN is outside
                inside = False
                break
            cell = math.floor((x - lower[j]) / widths[j] + shift[j])
            key = key * cells[j] + min(int(cell), cells[j] - 1)
        if inside:
            counts[key] += 1
