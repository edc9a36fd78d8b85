r"""Records seen from a released centre, as whole numbers: every stage has the lattice that fits its own ball.

A record :math:`x` becomes :math:`q = \mathrm{round}(T\,(x - c)/r)`. Coordinates beyond :math:`\pm 2T` are cut, then
what is longer than :math:`T` is shrunk onto the ball: no record outside is left out, and none counts for more than
one on the surface. :math:`T` is the largest power of two with :math:`4dT^2 \le 2^{52}`, so that squared lengths,
distances and projections on integer directions are whole numbers below :math:`2^{53}` and float64 gives them exactly.
A record's vector is then its own, whatever batch it came in.

Each stage of an algorithm has its own centre and radius, taken from released numbers: that is how scales a factor of
thousands apart fit into doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_positive
from fogline.locate.projection import DIRECTION_BITS, clipped

__all__ = ["Each", "Frame", "Thinning", "finite", "hashed", "integer_directions", "random_directions"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EXACT_BITS = 52
"""Sums of squares of coordinates stay up to two to this."""

MOST_BITS = 24
"""Finest lattice: T is at most two to this."""


class Each(Protocol):
    """Anything that hands over all records, batch by batch."""

    def each(self, take: Any) -> None:
        """Call ``take`` with arrays of shape (rows, d)."""


def finite(rows: FloatArray) -> FloatArray:
    """Rows without a missing or infinite cell; the others contribute nothing.

    Examples
    --------
    >>> finite(np.array([[1.0, 2.0], [np.inf, 0.0], [np.nan, 0.0]])).tolist()
    [[1.0, 2.0]]
    """
    return np.asarray(rows[np.isfinite(rows).all(axis=1)])


@dataclass(frozen=True, eq=False)
class Frame:
    """A ball and the lattice that its records are put on.

    Parameters
    ----------
    centre : array of shape (d,)
    radius : float

    Examples
    --------
    >>> frame = Frame.around([0.0, 0.0], 2.0)
    >>> (frame.vectors(np.array([[1.0, 0.0], [0.0, 50.0]])) / frame.steps).tolist()
    [[0.5, 0.0], [0.0, 0.99...]]
    """

    centre: FloatArray
    radius: float

    @classmethod
    def around(cls, centre: Any, radius: Any) -> Frame:
        """Check a public centre and radius."""
        middle = np.asarray(centre, dtype=np.float64)
        if middle.ndim != 1 or not len(middle) or not np.isfinite(middle).all():
            raise ValueError("center must be one finite number a column")
        return cls(middle, check_positive(radius, "radius"))

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.centre)

    @cached_property
    def steps(self) -> int:
        """Steps T from the centre to the surface of the ball."""
        return int(1 << min(MOST_BITS, (EXACT_BITS - 2 - math.ceil(math.log2(self.d))) // 2))

    def vectors(self, rows: FloatArray) -> FloatArray:
        """Whole numbers, as doubles, of norm at most T: one vector for each of these finite rows."""
        reach = float(2 * self.steps)
        with np.errstate(over="ignore"):  # a huge cell becomes infinite here and is cut right after
            scaled = (rows - self.centre) / self.radius * float(self.steps)
        return clipped(np.clip(np.rint(scaled), -reach, reach), self.steps)

    def places(self, vectors: FloatArray) -> FloatArray:
        """Data units of lattice vectors."""
        return np.asarray(self.centre + vectors * (self.radius / self.steps))


def integer_directions(directions: FloatArray) -> FloatArray:
    """Unit vectors, in rows, as whole numbers in units of 2**-20: products with lattice vectors are exact."""
    return np.asarray(np.rint(np.clip(directions, -1.0, 1.0) * 2.0**DIRECTION_BITS))


def random_directions(generator: np.random.Generator, rows: int, d: int) -> FloatArray:
    """Orthonormal directions drawn evenly, as whole numbers in units of 2**-20.

    Examples
    --------
    >>> found = random_directions(np.random.default_rng(0), 2, 5) / 2**20
    >>> bool(np.allclose(found @ found.T, np.eye(2), atol=1e-5))
    True
    """
    basis, upper = np.linalg.qr(generator.standard_normal((d, rows)))
    return integer_directions((basis * np.sign(np.diag(upper))).T)


def hashed(vectors: FloatArray, key: int) -> NDArray[np.uint64]:
    """Keyed hash of each vector of whole numbers: 32 bits, a function of the vector and the key alone.

    Examples
    --------
    >>> found = hashed(np.arange(20000.0).reshape(-1, 2), 7)
    >>> bool(found.max() < 2**32), len(set(found.tolist())) > 9990
    (True, True)
    """
    odd = np.random.default_rng(key).integers(0, 2**63, size=vectors.shape[1] + 1, dtype=np.uint64)
    odd = odd * np.uint64(2) + np.uint64(1)
    mixed = np.full(len(vectors), odd[-1], dtype=np.uint64)
    for column, multiplier in zip(vectors.T, odd[:-1], strict=True):  # wraps around, as it should
        mixed += column.astype(np.int64).astype(np.uint64) * multiplier
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return np.asarray(mixed & np.uint64(2**32 - 1))


@dataclass(frozen=True)
class Thinning:
    r"""Keep a share of the records, by a keyed hash of each: a random subsample that asks one record at a time.

    A record with lattice vector q is kept when :math:`h(q) < \lfloor 2^{32} p \rfloor`, h a hash with the drawn key.
    Whether a record is kept depends on itself and the key alone, so that for every key neighbours remain neighbours.
    Nothing is gained in privacy from the sampling, and nothing is claimed.

    Parameters
    ----------
    key : int
        64 bits, drawn afresh.
    share : float
        Between 0 and 1.

    Examples
    --------
    >>> q = np.arange(20000.0).reshape(-1, 2)
    >>> kept = Thinning(key=7, share=0.25).kept(q)
    >>> bool(2300 < kept.sum() < 2700), Thinning(7, 1.0).kept(q).all()
    (True, np.True_)
    """

    key: int
    share: float

    def kept(self, vectors: FloatArray) -> NDArray[np.bool_]:
        """Say of each lattice vector whether it is kept."""
        if self.share >= 1.0:
            return np.ones(len(vectors), dtype=bool)
        return np.asarray(hashed(vectors, self.key) < np.uint64(int(2.0**32 * self.share)))
