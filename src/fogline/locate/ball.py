r"""Records as integer vectors in a public ball: what lies outside is moved to its surface, never left out.

A record :math:`x` becomes :math:`u = (x - c)/R`, then :math:`u/\max(1, |u|)`, then whole numbers of steps
:math:`1/T`. Compared with a box of the same radius no record is longer than :math:`T` instead of
:math:`T\sqrt d`: sums of records need noise :math:`\sqrt d` times smaller.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline import _validation
from fogline.locate.projection import NORM_BITS, RecordLattice, clipped

__all__ = ["BallLattice"]

FloatArray = NDArray[np.float64]


class BallLattice(RecordLattice):
    """Integer vectors of records in a public ball.

    Examples
    --------
    >>> import numpy as np
    >>> lattice = BallLattice.around([0.0, 0.0], radius=10.0)
    >>> lattice.vectors(np.array([[5.0, 0.0], [0.0, 1000.0], [np.nan, 0.0]])).tolist()
    [[16384.0, 0.0], [0.0, 32768.0]]
    """

    @classmethod
    def around(cls, centre: Any, radius: Any) -> BallLattice:
        """Check centre and radius and make the lattice of their ball."""
        middle = np.asarray(centre, dtype=np.float64)
        if middle.ndim != 1 or not len(middle) or not np.isfinite(middle).all():
            raise ValueError("center must be one finite number a column")
        reach = _validation.check_positive(radius, "radius")
        bounds = tuple((float(m - reach), float(m + reach)) for m in middle)
        if not all(0 < high - low < math.inf for low, high in bounds):
            raise ValueError(f"radius must be one that floats can tell beside center, got {reach:g}")
        return cls(bounds)

    @cached_property
    def steps(self) -> int:
        """Steps T from the centre of the ball to its surface."""
        return 1 << NORM_BITS

    @property
    def longest(self) -> int:
        """Whole number not below the length of any record."""
        return self.steps

    def vectors(self, rows: FloatArray) -> FloatArray:
        """Integer vectors, as doubles, of norm at most T; rows that are not finite are left out.

        Lengths are summed column by column: elementwise operations round alike in any batch, so that a record's vector
        is its own.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            u = (rows - self.middle) / self.half_widths
        u = u[np.isfinite(u).all(axis=1)]
        largest = np.maximum(np.abs(u).max(axis=1, initial=0.0), 1.0)
        u /= largest[:, None]  # no square overflows
        squared = np.zeros(len(u))
        for column in u.T:
            squared += column * column
        inner = np.minimum(largest, 1 / np.sqrt(np.maximum(squared, 1e-300)))
        return clipped(np.rint(u * inner[:, None] * float(self.steps)), self.steps)

    def inside(self, points: FloatArray) -> FloatArray:
        """Points of the data's space moved into the ball: to read with, not to count."""
        off = points - self.middle
        reach = float(self.half_widths[0])
        lengths = np.maximum(np.sqrt(np.sum(off**2, axis=-1, keepdims=True)), math.ulp(reach))
        return np.asarray(self.middle + off * np.minimum(1.0, reach / lengths))
