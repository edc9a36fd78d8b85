r"""Where many records lie close together, at a place nobody knows beforehand: one cluster, a terrific ball, or nothing.

**One cluster** is a small ball that holds many records. The radius comes first. With :math:`\#_t B_r(x)` the number of
records within r of the record x, capped at t,

.. math:: L_X(r) = \frac1t \max_{x_1, \dots, x_m \in X} \sum_{j=1}^{m} \#_t B_r(x_j), \qquad m = \min(t, |X|),

reaches t when a ball of radius r holds t records, and moves by at most 2 between neighbours although each of its terms
could change. The first radius in a doubling sequence where it passes a noisy threshold comes out. Then the centre: the
heaviest cell of a randomly shifted grid in a random projection to few axes; within that cell, on every axis of a
randomly turned basis of the *original* space, an interval; and the average, with noise, of the records in the ball
around those intervals. Only this last ball bounds what a record can do to the average: a cell of the projection alone
bounds nothing, records far apart can share it [1]_, [2]_.

**A terrific ball** holds many records, leaves many out, and hardly any lie around it [3]_. For a record x and a radius
r let

.. math:: Q_X(x, r) = \min\{\#_t B_r(x),\; \#_t\,(X \setminus B_{cr}(x)),\; t - \#_t\,(B_{cr}(x) \setminus B_r(x))\},

counts capped at t. The averages :math:`L_X(r)` of the t largest :math:`Q_X(\cdot, r)` move by at most 2 between
neighbours, as in the search for one cluster, and the first radius that passes a noisy threshold comes out; radii grow,
or shrink where the largest such ball is wanted. A ball like that is a cut: what is inside belongs together, what is
outside its c-fold is something else. The centre is found as for one cluster, and the ball is checked by one more
threshold on

.. math:: \min\{|B_r(p)|,\; |X \setminus B_{cr}(p)|,\; t - |B_{cr}(p) \setminus B_r(p)|\},

which moves by at most 1. Both proofs are in ``ball_search.proof.md`` beside this file.

References
----------
.. [1] K. Nissim, U. Stemmer, S. Vadhan, "Locating a small cluster privately", PODS 2016.
.. [2] K. Nissim, U. Stemmer, "Clustering algorithms for the centralized and local models", ALT 2018.
.. [3] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.queries.lattice import CentredBallLattice, Thinning, drop_nonfinite, near_counts
from fogline.queries.moments import ExactSum
from fogline.queries.query import Records, rows_moved

__all__ = [
    "AXES",
    "AverageQuery",
    "Ball",
    "BoxQuery",
    "CellQuery",
    "CountQuery",
    "NotSeparable",
    "RadiusQuery",
    "RingQuery",
    "SeclusionQuery",
    "TerrificRadiusQuery",
    "capped_average",
]


@dataclass(frozen=True, eq=False)
class Ball:
    """A released ball that holds many records.

    Attributes
    ----------
    centre : array of shape (d,)
        In data units.
    radius : float
    count : float
        Noisy number of records inside; for a terrific ball the number that it was tested for.
    count_sd : float
        Its noise; for a terrific ball the slack of that test.
    stretch : float
        For a terrific ball the c for which hardly a record lies between the ball and its c-fold; else 1.
    """

    centre: FloatArray
    radius: float
    count: float
    count_sd: float
    stretch: float = 1.0


@dataclass(frozen=True)
class NotSeparable:
    """Nothing could be told apart. It cost what it cost; it is an answer and no error.

    It is false where a truth value is asked for.

    Attributes
    ----------
    method : str
        What was tried.
    found, wanted : int
        How many parts were seen, and how many were asked for.
    advice : str
        What would help.

    Examples
    --------
    >>> bool(NotSeparable("recursive", 1, 3, "more records"))
    False
    >>> print(NotSeparable("recursive", 1, 3, "take more records"))
    recursive: 1 of 3 parts could be told apart; take more records
    """

    method: str
    found: int
    wanted: int
    advice: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.method}: {self.found} of {self.wanted} parts could be told apart; {self.advice}"


AXES = 6
"""Axes of the random projection."""

BINS = 64
"""Intervals that an axis is cut into at a time."""


def capped_average(scores: IntArray, t: int) -> int:
    """Sum of the t largest scores (of all, where there are fewer), over t, rounded down.

    Parameters
    ----------
    scores : int array
        One for each record, each from 0 to t.
    t : int

    Examples
    --------
    >>> capped_average(np.array([5, 1, 5, 4]), 3), capped_average(np.array([], dtype=np.int64), 3)
    (4, 0)
    """
    # Over t even where there are fewer scores: dividing by their number would divide by something secret.
    kept = np.sort(scores)[::-1][:t]
    return int(kept.sum()) // t


class CountQuery:
    """Number of records without a missing or infinite cell."""

    size = 1

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far neighbours can be apart."""
        return float(rows_moved(neighbours, max_contributions))

    def exact(self, records: Records) -> IntArray:
        """Secret: the number."""
        total = ExactSum(1)
        records.each(lambda rows: total.add(np.array([float(len(drop_nonfinite(rows)))])))
        return total.cut()

    def decode(self, values: IntArray, noise_scale: float) -> tuple[float, float]:
        """Noisy number of records, at least one, and the deviation of its noise."""
        # later steps divide by it
        return max(1.0, float(values[0])), noise_scale


@dataclass(frozen=True, eq=False)
class RadiusQuery:
    r"""The averaged capped counts :math:`L_X(r)` at radii of :math:`2^s, 2^{s+1}, \dots` lattice steps.

    Parameters
    ----------
    frame : CentredBallLattice
    thinning : Thinning
    smallest, size : int
        The exponent s, and the number of radii.
    target : int
        The number t, public.
    """

    frame: CentredBallLattice
    thinning: Thinning
    smallest: int
    size: int
    target: int

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:  # noqa: ARG002
        """How far one of the averages can move: no further where a row is replaced."""
        # one record more moves every score by one, and brings a score of up to t: over t that is two at most
        return 2 * max_contributions

    def sample(self, records: Records) -> FloatArray:
        """Lattice vectors of the records that are kept."""
        # An empty part first: no records must take the same path as some.
        parts: list[FloatArray] = [np.zeros((0, self.frame.d))]

        def take(rows: FloatArray) -> None:
            vectors = self.frame.vectors(drop_nonfinite(rows))
            parts.append(vectors[self.thinning.kept(vectors)])

        records.each(take)
        return np.concatenate(parts)

    def scores(self, vectors: FloatArray) -> IntArray:
        """Capped number of neighbours of each record at each radius, shape (n, size)."""
        return np.minimum(near_counts(vectors, self.smallest, self.size), self.target)

    def exact(self, records: Records) -> IntArray:
        """Secret: the averages at all radii."""
        scores = self.scores(self.sample(records))
        return np.array([capped_average(column, self.target) for column in scores.T], dtype=np.int64)

    def radius(self, index: int) -> float:
        """A radius in data units."""
        return float(2.0 ** (self.smallest + index)) * self.frame.radius / self.frame.steps

    def decode(self, values: IntArray, noise_scale: float) -> float | None:  # noqa: ARG002
        """The radius at the index that was told; None where no average was above the threshold."""
        index = int(values[0])
        return None if index < 0 else self.radius(index)


@dataclass(frozen=True, eq=False)
class CellQuery:
    """Cells of a shifted grid in a projection: the key of each record.

    Parameters
    ----------
    frame : CentredBallLattice
    directions : array of shape (p, d)
        Integer directions.
    shift : array of shape (p,)
        Of the grid, in units of a cell.
    side : float
        Of a cell, in the units of the products of lattice vectors and directions.
    """

    frame: CentredBallLattice
    directions: FloatArray
    shift: FloatArray
    side: float

    @property
    def size(self) -> int:
        """Numbers in a key."""
        return len(self.directions)

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How many keys come or go with a unit: one for each row."""
        return rows_moved(neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: one key for each record, shape (n, p)."""
        parts: list[IntArray] = [np.zeros((0, len(self.directions)), dtype=np.int64)]
        records.each(lambda rows: parts.append(np.floor(self._cells(drop_nonfinite(rows))).astype(np.int64)))
        return np.concatenate(parts)

    def decode(self, values: IntArray, noise_scale: float) -> IntArray | None:  # noqa: ARG002
        """The heaviest of the frequent cells; None where no cell is frequent."""
        # the last column has the noisy counts
        return None if not len(values) else values[np.argmax(values[:, -1]), :-1]

    def near(self, rows: FloatArray, cell: IntArray, margin: float) -> BoolArray:
        """Say which finite rows are in a cell, widened by a margin in units of its side."""
        places = self._cells(rows)
        return np.asarray(((places >= cell - margin) & (places <= cell + 1 + margin)).all(axis=1))

    def _cells(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self.frame.vectors(rows) @ self.directions.T / self.side + self.shift)


@dataclass(frozen=True, eq=False)
class BoxQuery:
    """Counts in intervals of every axis of a turned basis, over the records near a cell.

    Parameters
    ----------
    cells : CellQuery
    cell : int array
    margin : float
    basis : array of shape (d, d)
        Integer directions.
    low : array of shape (d,)
        Where the intervals of each axis start, in the units of the products.
    width : float
        Of one interval.
    """

    cells: CellQuery
    cell: IntArray
    margin: float
    basis: FloatArray
    low: FloatArray
    width: float

    @property
    def size(self) -> int:
        """Length of the vector of counts."""
        return len(self.basis) * BINS

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far neighbours can be apart: a record counts once on each axis."""
        moved = rows_moved(neighbours, max_contributions)
        return math.nextafter(moved * math.sqrt(len(self.basis)) * (1 + 1e-12), math.inf)

    def exact(self, records: Records) -> IntArray:
        """Secret: counts, axis by axis."""
        counts = np.zeros(self.size, dtype=np.int64)
        offsets = BINS * np.arange(len(self.basis))

        def take(rows: FloatArray) -> None:
            rows = drop_nonfinite(rows)
            near = rows[self.cells.near(rows, self.cell, self.margin)]
            places = np.floor((self.cells.frame.vectors(near) @ self.basis.T - self.low) / self.width)
            # A place beyond the last interval counts nowhere on that axis, and may count on others.
            inside = (places >= 0) & (places < BINS)
            bins = (np.where(inside, places, 0).astype(np.int64) + offsets)[inside]
            counts[:] += np.bincount(bins, minlength=self.size)

        records.each(take)
        return counts

    def decode(self, values: IntArray, noise_scale: float) -> FloatArray:  # noqa: ARG002
        """Middle of the two neighbouring intervals that hold most, on every axis."""
        table = values.reshape(-1, BINS)
        pairs = table[:, :-1] + table[:, 1:]
        return np.asarray(self.low + self.width * (1 + np.argmax(pairs, axis=1)))


@dataclass(frozen=True, eq=False)
class AverageQuery:
    """Number and sum of the records near a cell and in a ball of the original space.

    Parameters
    ----------
    cells : CellQuery
    cell : int array
    margin : float
    frame : CentredBallLattice
        Twice as wide as the ball: records beyond half its radius contribute nothing.
    """

    cells: CellQuery
    cell: IntArray
    margin: float
    frame: CentredBallLattice

    @property
    def size(self) -> int:
        """Length of the vector."""
        return 1 + self.frame.d

    @property
    def reach(self) -> int:
        """Radius of the ball in steps; also what a record adds to the count."""
        # half of the frame: the other half is where records are recognised as being too far
        return self.frame.steps // 2

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far neighbours can be apart: a count and a vector, both of length up to `reach`."""
        moved = rows_moved(neighbours, max_contributions)
        return math.nextafter(moved * self.reach * math.sqrt(2) * (1 + 1e-12), math.inf)

    def exact(self, records: Records) -> IntArray:
        """Secret: count and sum."""
        total = ExactSum(self.size)

        def take(rows: FloatArray) -> None:
            rows = drop_nonfinite(rows)
            q = self.frame.vectors(rows[self.cells.near(rows, self.cell, self.margin)])
            # Left out, not moved to the surface: far records would pull the average.
            q = q[np.einsum("ij,ij->i", q, q) <= float(self.reach) ** 2]
            total.add(np.concatenate([[float(self.reach * len(q))], q.sum(axis=0)]))

        records.each(take)
        return total.cut()

    def decode(self, values: IntArray, noise_scale: float) -> FloatArray:
        """The average, in data units."""
        # never below the noise: a count near zero would throw the average anywhere
        count = max(float(values[0]), 2 * noise_scale) / self.reach
        return self.frame.places(np.clip(values[1:] / count, -self.reach, self.reach))


@dataclass(frozen=True, eq=False)
class RingQuery:
    """Numbers of records in rings around a centre; the last ring has no end.

    Parameters
    ----------
    centre : array of shape (d,)
    radii : array
        In data units, growing; less than a quarter of the largest is never resolved below the lattice.
    target : int
        How many records the ball should hold.
    """

    centre: FloatArray
    radii: FloatArray
    target: int

    @property
    def size(self) -> int:
        """Number of rings."""
        return len(self.radii) + 1

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far neighbours can be apart: a record is in one ring."""
        return float(rows_moved(neighbours, max_contributions))

    def exact(self, records: Records) -> IntArray:
        """Secret: counts, ring by ring."""
        frame = CentredBallLattice(self.centre, 4.0 * float(self.radii[-1]))
        limits = (self.radii / frame.radius * frame.steps) ** 2
        counts = np.zeros(self.size, dtype=np.int64)

        def take(rows: FloatArray) -> None:
            q = frame.vectors(drop_nonfinite(rows))
            rings = np.searchsorted(limits, np.einsum("ij,ij->i", q, q))
            counts[:] += np.bincount(rings, minlength=self.size)

        records.each(take)
        return counts

    def decode(self, values: IntArray, noise_scale: float) -> Ball:
        """The ball with the smallest of the radii at which enough records are inside."""
        inside = np.cumsum(values[:-1])
        # noise adds up ring by ring
        noise = noise_scale * np.sqrt(np.arange(1, len(self.radii) + 1))
        # With slack: noise alone must not push the ball to the next, wider radius.
        enough = np.flatnonzero(inside >= self.target - 3 * noise)
        chosen = int(enough[0]) if len(enough) else len(self.radii) - 1
        return Ball(self.centre, float(self.radii[chosen]), float(max(0, inside[chosen])), float(noise[chosen]))


@dataclass(frozen=True, eq=False)
class TerrificRadiusQuery(RadiusQuery):
    """The averages of Q at radii of a doubling sequence, or of the same sequence from its largest.

    Parameters
    ----------
    stretch : float
        The factor c.
    largest : bool
        Whether to begin with the largest radius.
    """

    stretch: float = 5.0
    largest: bool = False

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far one of the averages can move; a replaced row is one that goes and one that comes."""
        return 2 * rows_moved(neighbours, max_contributions)

    def scores(self, vectors: FloatArray) -> IntArray:
        """Q of each record at each radius, shape (n, size)."""
        t = self.target
        inner = near_counts(vectors, self.smallest, self.size)
        outer = near_counts(vectors, self.smallest, self.size, self.stretch)
        around, beyond = outer - inner, len(vectors) - outer
        # many inside, many far away, few in between: the least of the three is the score
        scores = np.minimum(np.minimum(inner, t), np.minimum(np.minimum(beyond, t), t - np.minimum(around, t)))
        return np.asarray(scores[:, ::-1] if self.largest else scores)

    def radius(self, index: int) -> float:
        """A radius in data units."""
        return super().radius(self.size - 1 - index if self.largest else index)


@dataclass(frozen=True, eq=False)
class SeclusionQuery:
    """Whether balls around a released centre are terrific: the least of three counts, for each radius.

    Parameters
    ----------
    centre : array of shape (d,)
    radii : array
        In data units, in the order in which they are tried.
    stretch : float
    target : int
    """

    centre: FloatArray
    radii: FloatArray
    stretch: float
    target: int

    @property
    def size(self) -> int:
        """Number of radii."""
        return len(self.radii)

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far one of the numbers can move."""
        return rows_moved(neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the least of the three counts, for each radius."""
        frame = CentredBallLattice(self.centre, 2.0 * self.stretch * float(self.radii.max()))
        inner = (self.radii / frame.radius * frame.steps) ** 2
        outer = (self.stretch * self.radii / frame.radius * frame.steps) ** 2
        counts = np.zeros((3, self.size), dtype=np.int64)

        def take(rows: FloatArray) -> None:
            q = frame.vectors(drop_nonfinite(rows))
            squared = np.einsum("ij,ij->i", q, q)[:, None]
            inside, within = squared <= inner, squared <= outer
            counts[0] += inside.sum(axis=0)
            counts[1] += (~within).sum(axis=0)
            counts[2] += (within & ~inside).sum(axis=0)

        records.each(take)
        return np.asarray(np.minimum(np.minimum(counts[0], counts[1]), self.target - counts[2]))

    def decode(self, values: IntArray, noise_scale: float) -> Ball | None:  # noqa: ARG002
        """The ball at the index that was told; None where none is terrific."""
        index = int(values[0])
        if index < 0:
            return None
        return Ball(self.centre, float(self.radii[index]), float(self.target), 0.5 * self.target, self.stretch)
