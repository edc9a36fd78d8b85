r"""Records as integer vectors, and their projection on a few directions, both exact.

A record :math:`x` in the box becomes :math:`q_j = \mathrm{round}(T\,(x_j - m_j)/w_j)`, with the middle :math:`m` and
half the width :math:`w` of each column: the columns are measured by the ranges that their owner declared. :math:`T` is
a power of two with :math:`T\sqrt d \le 2^{15}`. Every norm and every projection of such a vector on integer directions
is then an integer below :math:`2^{53}`, and float64 products give it exactly: whatever the batch, a record's image is
its own and nobody else's. That is what sensitivities are proved from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_bounds

__all__ = ["DIRECTION_BITS", "Projection", "RecordLattice", "clipped"]

FloatArray = NDArray[np.float64]

NORM_BITS = 15
"""No record's vector is longer than 2**15."""

DIRECTION_BITS = 20
"""Directions have coordinates in units of 2**-20."""

MOST_COLUMNS = 2**14
"""Most columns: a coordinate then still has 2**8 steps to either side."""


@dataclass(frozen=True)
class RecordLattice:
    """Integer vectors of the records in a public box.

    Parameters
    ----------
    bounds : tuple of (float, float)
        The box, one pair a column.

    Examples
    --------
    >>> import numpy as np
    >>> lattice = RecordLattice.of([(0, 10), (0, 1)])
    >>> lattice.vectors(np.array([[5.0, 1.0], [11.0, 0.5], [np.nan, 0.5]])).tolist()
    [[0.0, 16384.0]]
    """

    bounds: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        for name in ("box", "middle", "half_widths", "steps"):  # computed only with the first record, they would tell
            getattr(self, name)  #                                in a released projection that there was one

    @classmethod
    def of(cls, bounds: ArrayLike) -> RecordLattice:
        """Check the bounds and make the lattice of their box."""
        box = check_bounds(bounds)
        if len(box) > MOST_COLUMNS:
            raise ValueError(f"bounds has {len(box)} columns, at most {MOST_COLUMNS} are possible")
        return cls(tuple((float(low), float(high)) for low, high in box))

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.bounds)

    @cached_property
    def box(self) -> FloatArray:
        """Bounds as an array of shape (d, 2)."""
        return np.array(self.bounds)

    @cached_property
    def middle(self) -> FloatArray:
        """Middle of the box."""
        return np.asarray(self.box.mean(axis=1))

    @cached_property
    def half_widths(self) -> FloatArray:
        """Half the width of each column."""
        return np.asarray((self.box[:, 1] - self.box[:, 0]) / 2)

    @cached_property
    def steps(self) -> int:
        """Steps T from the middle of a column to its end: a power of two with T sqrt(d) up to 2**15."""
        return 1 << (NORM_BITS - math.ceil(math.log2(self.d) / 2))

    @property
    def longest(self) -> int:
        """Whole number not below the length of any record."""
        return math.isqrt(self.d * self.steps**2 - 1) + 1

    def vectors(self, rows: FloatArray) -> FloatArray:
        """Integer vectors, as doubles, of the rows in the box; other rows are left out."""
        inside = np.all((rows >= self.box[:, 0]) & (rows <= self.box[:, 1]), axis=1)  # false for NaN
        scaled = (rows[inside] - self.middle) / self.half_widths * float(self.steps)
        return np.asarray(np.clip(np.rint(scaled), -float(self.steps), float(self.steps)))

    def places(self, vectors: FloatArray) -> FloatArray:
        """Data units of lattice vectors, whole or not."""
        return np.asarray(self.middle + self.half_widths * vectors / self.steps)


def clipped(vectors: FloatArray, radius: int) -> FloatArray:
    """Shrink integer vectors into a ball; what comes out are integers of norm at most `radius`, checked one by one.

    Parameters
    ----------
    vectors : array of shape (n, d)
        Whole numbers with a squared norm below 2**53.
    radius : int

    Examples
    --------
    >>> clipped(np.array([[3.0, 4.0], [30.0, 40.0]]), 5).tolist()
    [[3.0, 4.0], [2.0, 3.0]]
    """
    squared = np.einsum("ij,ij->i", vectors, vectors)
    factor = np.minimum(1.0, radius * (1 - 1e-9) / np.sqrt(np.maximum(squared, 1.0)))
    inside = squared <= float(radius) ** 2
    shrunk = np.where(inside[:, None], vectors, np.trunc(vectors * factor[:, None]))
    fits = np.einsum("ij,ij->i", shrunk, shrunk) <= float(radius) ** 2  # exact: whole numbers below 2**53
    return np.asarray(np.where(fits[:, None], shrunk, 0.0))


@dataclass(frozen=True, eq=False)
class Projection:
    r"""An affine map of the box to r coordinates: :math:`z = A(u - c)`, u the record in half widths from the middle.

    Attributes
    ----------
    lattice : RecordLattice
    centre : array of shape (d,)
        Integer vector that is taken off first.
    directions : array of shape (r, d)
        Integer directions, orthonormal up to rounding when divided by ``2**DIRECTION_BITS``.
    """

    lattice: RecordLattice
    centre: FloatArray
    directions: FloatArray

    @classmethod
    def on(cls, lattice: RecordLattice, directions: FloatArray, centre: FloatArray | None = None) -> Projection:
        """Project on orthonormal directions of shape (r, d), from a centre in half widths (the middle by default)."""
        whole = np.rint(np.clip(directions, -1.0, 1.0) * 2.0**DIRECTION_BITS)
        start = np.zeros(lattice.d) if centre is None else np.rint(np.clip(centre, -1.0, 1.0) * lattice.steps)
        return cls(lattice, start, whole)

    @classmethod
    def public(cls, lattice: RecordLattice, matrix: Any) -> Projection:
        """Project on the row space of a public matrix (r, d) in data units; rows are made orthonormal.

        Examples
        --------
        >>> Projection.public(RecordLattice.of([(0, 1)] * 3), [[1.0, 1.0, 0.0]]).components.round(3).tolist()
        [[0.707, 0.707, 0.0]]
        """
        rows = np.asarray(matrix, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != lattice.d or not 1 <= rows.shape[0] <= lattice.d:
            raise ValueError(f"projection must have shape (r, {lattice.d}) with r up to {lattice.d}, got {rows.shape}")
        if not np.isfinite(rows).all() or np.linalg.matrix_rank(rows) < len(rows):
            raise ValueError("projection must have finite, linearly independent rows")
        basis, upper = np.linalg.qr((rows * lattice.half_widths).T)
        return cls.on(lattice, (basis * np.sign(np.diag(upper))).T)

    @property
    def r(self) -> int:
        """Number of directions."""
        return len(self.directions)

    @property
    def components(self) -> FloatArray:
        """Directions as unit vectors, in half widths, shape (r, d)."""
        return self.directions / 2.0**DIRECTION_BITS

    @property
    def mean(self) -> FloatArray:
        """The centre, in data units."""
        return self.lattice.places(self.centre)

    def extent(self) -> tuple[FloatArray, FloatArray]:
        """Least and greatest coordinate of the box along each direction, a little widened."""
        centre = self.centre / self.lattice.steps
        ends = self.components * (-1 - centre), self.components * (1 - centre)
        low, high = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
        return low - 1e-3, high + 1e-3

    def coordinates(self, rows: FloatArray) -> FloatArray:
        """Coordinates in half widths of the rows in the box, shape (n, r); other rows are left out. Exact."""
        shifted = self.lattice.vectors(rows) - self.centre
        return np.asarray(shifted @ self.directions.T / (2.0**DIRECTION_BITS * self.lattice.steps))

    def image(self, rows: FloatArray) -> FloatArray:
        """Coordinates in half widths of any rows, in the box or not, without rounding: to read with, not to count."""
        units = (rows - self.lattice.middle) / self.lattice.half_widths - self.centre / self.lattice.steps
        return np.asarray(units @ self.components.T)

    def places(self, coordinates: FloatArray) -> FloatArray:
        """Points of the data's space that have given coordinates and else lie at the centre."""
        return self.lattice.places(self.centre + coordinates @ self.components * self.lattice.steps)
