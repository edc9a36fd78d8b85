r"""How many records lie near each record, at all radii at once, in blocks that fit into memory.

Lattice vectors have squared distances :math:`D = |x|^2 + |y|^2 - 2x\cdot y`, whole numbers that float64 holds exactly.
Radii are powers of two, so that the bin of a distance is read off the exponent of the double:
:math:`D \le 4^i \iff \lfloor\log_2(D - \tfrac12)\rfloor < 2i`. One product of matrices and one count for each block do
for all radii; a block has at most :data:`BLOCK_CELLS` distances.

Records as integer vectors, and their projection on a few directions, both exact.

A record :math:`x` in the box becomes :math:`q_j = \mathrm{round}(T\,(x_j - m_j)/w_j)`, with the middle :math:`m` and
half the width :math:`w` of each column: the columns are measured by the ranges that their owner declared. :math:`T` is
a power of two with :math:`T\sqrt d \le 2^{15}`. Every norm and every projection of such a vector on integer directions
is then an integer below :math:`2^{53}`, and float64 products give it exactly: whatever the batch, a record's image is
its own and nobody else's. That is what sensitivities are proved from.

Records as integer vectors in a public ball: what lies outside is moved to its surface, never left out.

A record :math:`x` becomes :math:`u = (x - c)/R`, then :math:`u/\max(1, |u|)`, then whole numbers of steps
:math:`1/T`. Compared with a box of the same radius no record is longer than :math:`T` instead of
:math:`T\sqrt d`: sums of records need noise :math:`\sqrt d` times smaller.

Records seen from a released centre, as whole numbers: every stage has the lattice that fits its own ball.

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

import numpy as np
from numpy.typing import ArrayLike

from fogline import _validation
from fogline._typing import BoolArray, FloatArray, IntArray, WordArray
from fogline._validation import check_bounds, check_positive

__all__ = [
    "BLOCK_CELLS",
    "DIRECTION_BITS",
    "BallLattice",
    "CentredBallLattice",
    "Projection",
    "RecordLattice",
    "Thinning",
    "clipped",
    "drop_nonfinite",
    "integer_directions",
    "keyed_hash",
    "near_counts",
    "random_directions",
]


BLOCK_CELLS = 2**20
"""Most distances that are in memory at a time."""

EXPONENT_BIAS, MANTISSA_BITS = 1023, 52
"""Of a double."""


def near_counts(vectors: FloatArray, smallest: int, size: int, stretch: float = 1.0) -> IntArray:
    r"""Count, for each vector x and each :math:`i < size`, the vectors y with :math:`|x - y| \le c\,2^{s+i}`.

    Parameters
    ----------
    vectors : array of shape (n, d)
        Whole numbers with squared distances below 2**53.
    smallest : int
        The exponent s.
    size : int
        Number of radii.
    stretch : float
        The factor c of all radii.

    Returns
    -------
    array of shape (n, size)
        Every vector counts itself.

    Examples
    --------
    >>> near_counts(np.array([[0.0], [1.0], [3.0], [9.0]]), smallest=0, size=4).tolist()
    [[2, 2, 3, 3], [2, 3, 3, 4], [1, 2, 3, 4], [1, 1, 1, 3]]
    """
    n = len(vectors)
    squared = np.einsum("ij,ij->i", vectors, vectors)
    counts = np.zeros((n, size), dtype=np.int64)
    # Blocks of rows, so that memory does not grow with the square of the number of records.
    height = max(1, BLOCK_CELLS // max(n, 1))
    for start in range(0, n, height):
        block = vectors[start : start + height]
        # Exact in any order of summation: all terms are whole numbers below 2**53.
        distances = (squared[start : start + height, None] + squared) - 2.0 * (block @ vectors.T)
        bins = _radius_index(distances, stretch, smallest, size)
        bins += (size + 1) * np.arange(len(block))[:, None]
        table = np.bincount(bins.ravel(), minlength=len(block) * (size + 1)).reshape(len(block), size + 1)
        counts[start : start + height] = np.cumsum(table, axis=1)[:, :size]
    return counts


def _radius_index(squared_distances: FloatArray, stretch: float, smallest: int, size: int) -> IntArray:
    """Index of the first radius that reaches so far; `size` if none does."""
    # Half a unit less: a whole number that is a power of two then has the exponent of those below it, so that the
    # exponent alone decides what is "at most".
    shifted = np.maximum(squared_distances - 0.5, 0.5)
    if stretch != 1.0:
        shifted /= stretch**2
    # read from the bits: a logarithm could round across a power of two
    exponents = (shifted.view(np.int64) >> MANTISSA_BITS) - EXPONENT_BIAS
    return np.asarray(np.clip((exponents >> 1) + 1 - smallest, 0, size))


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
        The box, one pair per column.

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
        # A power of two, so that dividing by it is exact.
        return 1 << (NORM_BITS - math.ceil(math.log2(self.d) / 2))

    @property
    def longest(self) -> int:
        """Whole number not below the length of any record."""
        return math.isqrt(self.d * self.steps**2 - 1) + 1

    def vectors(self, rows: FloatArray) -> FloatArray:
        """Integer vectors, as doubles, of the rows in the box; other rows are left out."""
        inside = np.all((rows >= self.box[:, 0]) & (rows <= self.box[:, 1]), axis=1)  # false for NaN
        # elementwise: a record's vector does not depend on its batch
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
    # A little too short, and then truncated: rounding must not lengthen a vector.
    factor = np.minimum(1.0, radius * (1 - 1e-9) / np.sqrt(np.maximum(squared, 1.0)))
    inside = squared <= float(radius) ** 2
    shrunk = np.where(inside[:, None], vectors, np.trunc(vectors * factor[:, None]))
    fits = np.einsum("ij,ij->i", shrunk, shrunk) <= float(radius) ** 2  # exact: whole numbers below 2**53
    # The sensitivity rests on this test, not on the floats before it.
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
    def public(cls, lattice: RecordLattice, matrix: ArrayLike) -> Projection:
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
        # in half widths, since that is what records are measured in
        basis, upper = np.linalg.qr((rows * lattice.half_widths).T)
        # QR leaves signs to the library: those of the given rows are kept
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
    def around(cls, centre: ArrayLike, radius: object) -> BallLattice:
        """Check centre and radius and make the lattice of their ball."""
        middle = np.asarray(centre, dtype=np.float64)
        if middle.ndim != 1 or not len(middle) or not np.isfinite(middle).all():
            raise ValueError("center must be one finite number per column")
        reach = _validation.check_positive(radius, "radius")
        bounds = tuple((float(m - reach), float(m + reach)) for m in middle)
        if not all(0 < high - low < math.inf for low, high in bounds):
            raise ValueError(f"radius must be one that floats can tell beside center, got {reach:g}")
        return cls(bounds)

    @classmethod
    def spanning(cls, bounds: FloatArray) -> BallLattice:
        """Lattice of the ellipsoid through the corners of a box: a ball once each column is divided by its range.

        Examples
        --------
        >>> BallLattice.spanning(np.array([[0.0, 2.0], [0.0, 20.0]])).vectors(np.array([[2.0, 20.0]])).tolist()
        [[23170.0, 23170.0]]
        """
        middle, half = bounds.mean(axis=1), (bounds[:, 1] - bounds[:, 0]) / 2 * math.sqrt(len(bounds))
        return cls(tuple((float(m - h), float(m + h)) for m, h in zip(middle, half, strict=True)))

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
        off = (points - self.middle) / self.half_widths
        lengths = np.maximum(np.sqrt(np.sum(off**2, axis=-1, keepdims=True)), math.ulp(1.0))
        return np.asarray(self.middle + off * np.minimum(1.0, 1.0 / lengths) * self.half_widths)


EXACT_BITS = 52
"""Sums of squares of coordinates stay up to two to this."""

MOST_BITS = 24
"""Finest lattice: T is at most two to this."""


def drop_nonfinite(rows: FloatArray) -> FloatArray:
    """Rows without a missing or infinite cell; the others contribute nothing.

    Examples
    --------
    >>> drop_nonfinite(np.array([[1.0, 2.0], [np.inf, 0.0], [np.nan, 0.0]])).tolist()
    [[1.0, 2.0]]
    """
    return np.asarray(rows[np.isfinite(rows).all(axis=1)])


@dataclass(frozen=True, eq=False)
class CentredBallLattice:
    """A ball and the lattice that its records are put on.

    Parameters
    ----------
    centre : array of shape (d,)
    radius : float

    Examples
    --------
    >>> frame = CentredBallLattice.around([0.0, 0.0], 2.0)
    >>> (frame.vectors(np.array([[1.0, 0.0], [0.0, 50.0]])) / frame.steps).tolist()
    [[0.5, 0.0], [0.0, 0.99...]]
    """

    centre: FloatArray
    radius: float

    @classmethod
    def around(cls, centre: ArrayLike, radius: object) -> CentredBallLattice:
        """Check a public centre and radius."""
        middle = np.asarray(centre, dtype=np.float64)
        if middle.ndim != 1 or not len(middle) or not np.isfinite(middle).all():
            raise ValueError("center must be one finite number per column")
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


def keyed_hash(vectors: FloatArray, key: int) -> WordArray:
    """Keyed hash of each vector of whole numbers: 32 bits, a function of the vector and the key alone.

    Examples
    --------
    >>> found = keyed_hash(np.arange(20000.0).reshape(-1, 2), 7)
    >>> bool(found.max() < 2**32), len(set(found.tolist())) > 9990
    (True, True)
    """
    odd = np.random.default_rng(key).integers(0, 2**63, size=vectors.shape[1] + 1, dtype=np.uint64)
    # odd multipliers lose no bit modulo 2^64
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

    def kept(self, vectors: FloatArray) -> BoolArray:
        """Say of each lattice vector whether it is kept."""
        if self.share >= 1.0:
            return np.ones(len(vectors), dtype=bool)
        return np.asarray(keyed_hash(vectors, self.key) < np.uint64(int(2.0**32 * self.share)))
