"""The sum of looked-up directions as one compiled loop: integers only, hence the same as ``add_phases`` in numpy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["add_phases"]


@numba.njit(cache=True, fastmath=False, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_phases(phases: Any, table: Any, shift: Any, mask: Any, cosines: Any, sines: Any) -> None:
    """Add cosine and sine of each column's phases; a table entry holds both, the sine in its lower 16 bits."""
    for i in range(phases.shape[0]):
        for m in range(phases.shape[1]):
            both = table[(np.int32(phases[i, m]) >> shift) & mask]
            cosines[m] += both >> 16
            sines[m] += np.int32(both << 16) >> 16
