r"""Disjoint parts of the records, cut by released numbers, and sums over all parts at once.

A record belongs to one part, and which one is a function of the record and of what was released before. A vector with
one block for each part is therefore moved by a record in one block only: many parts cost what one costs.

Terrific slabs: where a part of the records falls apart along a direction.

The records of each part are projected on a few released directions and counted in even intervals, with noise: a ball of
a one-dimensional projection is an interval, and from these counts every interval can be judged at once. With
:math:`H_m(i)` the noisy number of records in the m intervals around i, the part is cut at i when

.. math:: H_m(i) + 5\,\sigma\sqrt{m(1 + b^2)} \le b\,\min\{\max_{j<i} H_m(j),\; \max_{j>i} H_m(j)\}

for some m: the valley is lower than a part b of what is on either side, by five deviations of the noise, and it may
well be lower than the smaller part a that the tails of separate components would leave (two deviations allowed). Both
sides must hold enough records. This is the three-fold test of a terrific ball (many inside, many outside, next to none
around) in time linear in the number of records. The proof is in ``partition.proof.md`` beside this file.

Whitened records in whole numbers, and parts by whitened distance.

A map :math:`z = A^{-1}(x - c)` by arbitrary doubles is no function of the record: the same row rounds differently in
batches of different shape. Here lattice vectors are multiplied with a matrix of whole numbers, every product stays
below :math:`2^{53}`, and the image of a record is its own. Proof: ``gaussian.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.queries.lattice import DIRECTION_BITS, CentredBallLattice, clipped, drop_nonfinite
from fogline.queries.moments import ExactSum
from fogline.queries.query import Records

__all__ = [
    "BINS",
    "SCATTER_STEPS",
    "Cut",
    "NearestParts",
    "Partition",
    "Parts",
    "Profiles",
    "Reassigned",
    "Slabs",
    "SlabsQuery",
    "Valley",
    "Whitening",
    "block_sensitivity",
    "block_sum",
    "valleys",
    "whitening_of",
]


class Parts(Protocol):
    """Disjoint parts of the records: which one a record is in depends on the record and on released numbers alone."""

    @property
    def d(self) -> int:
        """Number of columns."""

    @property
    def parts(self) -> int:
        """Number of parts."""

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows."""


@dataclass(frozen=True, eq=False)
class Cut:
    """One part cut into slabs across a direction.

    Attributes
    ----------
    part : int
        Which part is cut; it becomes the first slab.
    frame : CentredBallLattice
    direction : array of shape (d,)
        In whole numbers.
    edges : array
        Where it is cut, in the units of the products of lattice vectors and direction, growing.
    children : tuple of int
        Parts of the slabs beyond the first.
    """

    part: int
    frame: CentredBallLattice
    direction: FloatArray
    edges: FloatArray
    children: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Partition:
    """All records, cut one part after another.

    Attributes
    ----------
    d : int
        Number of columns.
    cuts : tuple of Cut
        In the order in which they were made.

    Examples
    --------
    >>> frame = CentredBallLattice.around([0.0], 8.0)
    >>> halves = Partition(1).divided(0, frame, np.array([2.0**20]), np.array([0.0]))
    >>> halves.parts, halves.labels(np.array([[-3.0], [5.0]])).tolist()
    (2, [0, 1])
    """

    d: int
    cuts: tuple[Cut, ...] = ()

    @property
    def parts(self) -> int:
        """Number of parts."""
        return 1 + sum(len(cut.children) for cut in self.cuts)

    def divided(self, part: int, frame: CentredBallLattice, direction: FloatArray, edges: FloatArray) -> Partition:
        """The partition with one part cut further."""
        children = tuple(range(self.parts, self.parts + len(edges)))
        return Partition(self.d, (*self.cuts, Cut(part, frame, direction, edges, children)))

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows."""
        labels = np.zeros(len(rows), dtype=np.int64)
        for cut in self.cuts:
            here = np.flatnonzero(labels == cut.part)
            # Cuts are replayed in their order: a later one divides a part that an earlier one made.
            slabs = np.searchsorted(cut.edges, cut.frame.vectors(rows[here]) @ cut.direction, side="right")
            labels[here] = np.array([cut.part, *cut.children])[slabs]
        return labels


@dataclass(frozen=True, eq=False)
class NearestParts:
    """Records by the nearest of several released centres, in whole numbers.

    Parameters
    ----------
    frame : CentredBallLattice
    centres : array of shape (parts, d)

    Examples
    --------
    >>> parts = NearestParts(CentredBallLattice.around([0.0], 10.0), np.array([[-5.0], [5.0]]))
    >>> parts.labels(np.array([[-1.0], [2.0], [80.0]])).tolist()
    [0, 1, 1]
    """

    frame: CentredBallLattice
    centres: FloatArray

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.frame.d

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.centres)

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows."""
        q = self.frame.vectors(rows)
        squares = [((q - centre) ** 2).sum(axis=1) for centre in self.frame.vectors(self.centres)]
        # Ties go to the first centre, in whole numbers: no batch decides them otherwise.
        return np.asarray(np.argmin(np.stack(squares), axis=0), dtype=np.int64)


def block_sum(
    partition: Parts, records: Records, size: int, contribution: Callable[[int, FloatArray], FloatArray]
) -> IntArray:
    """Secret: the sum of one block for each part.

    Parameters
    ----------
    partition : Parts
    records : Records
    size : int
        Of a block.
    contribution : callable
        Given a part and its rows, their summed block: whole numbers below 2**53.
    """
    total = ExactSum(partition.parts * size)

    def take(rows: FloatArray) -> None:
        # a record with a missing cell is in no part, under every query alike
        rows = drop_nonfinite(rows)
        labels = partition.labels(rows)
        blocks = [contribution(part, rows[labels == part]) for part in range(partition.parts)]
        total.add(np.concatenate(blocks))

    records.each(take)
    return total.cut()


def block_sensitivity(longest_squared: int, neighbours: str, max_contributions: int) -> float:
    """How far neighbours can be apart where a record's block is no longer than a given root of a whole number.

    One block comes or goes under add-remove; under replace one goes and one comes, in the same place or not.
    """
    # blocks may be opposite, so that the two lengths add up in full
    moved = 1 if neighbours == "add-remove" else 2
    return math.nextafter(moved * max_contributions * math.sqrt(longest_squared) * (1 + 1e-12), math.inf)


BINS = 256
"""Intervals across a frame."""

DEVIATIONS, ALLOWED = 5.0, 2.0
"""By how many deviations of the noise a valley must be one, and how many are forgiven its depth."""


@dataclass(frozen=True, eq=False)
class SlabsQuery:
    """Counts in intervals along each of a few directions, for each part.

    Parameters
    ----------
    partition : Partition
    frames : tuple of CentredBallLattice
        One for each part.
    directions : array of shape (parts, p, d)
        In whole numbers.
    """

    partition: Partition
    frames: tuple[CentredBallLattice, ...]
    directions: FloatArray

    @property
    def axes(self) -> int:
        """Directions of a part."""
        return int(self.directions.shape[1])

    @property
    def block(self) -> int:
        """Length of a block."""
        return self.axes * BINS

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.block * self.partition.parts

    @property
    def width(self) -> float:
        """Of an interval, in the units of the products of lattice vectors and directions."""
        # A little more than the diameter: directions are unit vectors up to rounding only.
        return 2.002 * self.frames[0].steps * 2.0**DIRECTION_BITS / BINS

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the counts of neighbours can be apart: a record counts once on each direction of its part."""
        return block_sensitivity(self.axes, neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the counts."""
        offsets = BINS * np.arange(self.axes)

        def contribution(part: int, rows: FloatArray) -> FloatArray:
            products = self.frames[part].vectors(rows) @ self.directions[part].T
            # what lies outside counts at the end: every record counts once on each direction, as the sensitivity says
            places = np.clip(np.floor(products / self.width) + BINS // 2, 0, BINS - 1).astype(np.int64)
            return np.bincount((places + offsets).ravel(), minlength=self.block).astype(np.float64)

        return block_sum(self.partition, records, self.block, contribution)

    def decode(self, values: IntArray, noise_scale: float) -> Profiles:
        """Noisy profiles of each part."""
        return Profiles(values.reshape(self.partition.parts, self.axes, BINS).astype(np.float64), noise_scale)

    def products(self, edges: FloatArray) -> FloatArray:
        """Edges between intervals in the units of the products of lattice vectors and directions."""
        return np.asarray((edges - BINS // 2) * self.width)


@dataclass(frozen=True, eq=False)
class Profiles:
    """Released counts along the directions of each part.

    Attributes
    ----------
    counts : array of shape (parts, p, BINS)
    noise : float
        Standard deviation of each.
    """

    counts: FloatArray
    noise: float


@dataclass(frozen=True, eq=False)
class Slabs:
    """Where a profile falls apart.

    Attributes
    ----------
    edges : array
        Edges between intervals at which it is cut, growing.
    scores : array
        By how many deviations each is a valley.
    counted : array
        The profile where it stands out of the noise, else zero.
    """

    edges: FloatArray
    scores: FloatArray
    counted: FloatArray

    def best(self, most: int) -> FloatArray:
        """The clearest edges, at most this many."""
        # stable: which of two equal valleys is taken must not differ between machines
        return np.sort(self.edges[np.argsort(-self.scores, kind="stable")[: max(most, 0)]])

    def middle(self, low: float, high: float) -> float:
        """Mean place of the records between two edges, in intervals."""
        places = np.arange(len(self.counted)) + 0.5
        mass = np.where((places >= low) & (places < high), np.maximum(self.counted, 0.0), 0.0)
        return float(mass @ places / mass.sum()) if mass.sum() > 0 else (low + high) / 2


@dataclass(frozen=True)
class Valley:
    """What counts as a valley.

    Attributes
    ----------
    clear : float
        The part b of the lower of the peaks beside it, below which it must be beyond doubt.
    depth : float
        The part a, below which it may be.
    stretch : float
        Least width, as a multiple of the narrower side's width.
    """

    clear: float
    depth: float
    stretch: float = 0.0


def valleys(profile: FloatArray, noise: float, least: float, kind: Valley) -> Slabs:
    """Cut a noisy profile wherever it has a clear valley.

    Parameters
    ----------
    profile : array
        Noisy counts in even intervals.
    noise : float
        Standard deviation of each.
    least : float
        Records that each side must hold.
    kind : Valley

    Examples
    --------
    >>> profile = np.zeros(400)
    >>> profile[100:110], profile[300:320] = 500.0, 200.0
    >>> valleys(profile, noise=10.0, least=1000.0, kind=Valley(0.5, 0.1)).edges.tolist()
    [206.0]
    """
    counted = _counted(profile, noise)
    found: list[tuple[float, float]] = []
    _cut(profile, counted, noise, least, kind, (0, len(profile)), found)
    found.sort()
    return Slabs(np.array([edge for edge, _ in found]), np.array([score for _, score in found]), counted)


def _counted(profile: FloatArray, noise: float) -> FloatArray:
    """The profile where it stands out of the noise: sums over it do not add up the noise of empty intervals."""
    smooth = np.convolve(profile, np.ones(4), mode="same")
    return np.where(smooth > 3 * 2 * noise, profile, 0.0)


def _cut(
    profile: FloatArray,
    counted: FloatArray,
    noise: float,
    least: float,
    kind: Valley,
    span: tuple[int, int],
    found: list[tuple[float, float]],
) -> None:
    """Find the clearest valley between two intervals, and go on with both sides."""
    low, high = span
    best = _clearest(profile[low:high], counted[low:high], noise, least, kind)
    if best is None:
        return
    place, score = best
    found.append((float(low + place), score))
    for part in ((low, low + place), (low + place, high)):
        _cut(profile, counted, noise, least, kind, part, found)


def _clearest(
    profile: FloatArray, counted: FloatArray, noise: float, least: float, kind: Valley
) -> tuple[int, float] | None:
    """Place and score of the clearest valley; None where there is none."""
    mass = np.concatenate([[0.0], np.cumsum(counted)])
    best: tuple[int, float] | None = None
    m = 1
    while 4 * m <= len(profile):
        sums = np.convolve(profile, np.ones(m), mode="valid")
        left = np.maximum.accumulate(sums)
        right = np.maximum.accumulate(sums[::-1])[::-1]
        here = np.arange(m, len(sums) - m)
        # the lower of the two peaks, beside the window and not overlapping it
        lower = np.minimum(left[here - m], right[here + m])
        sd = noise * math.sqrt(m)
        middle = here + (m + 1) // 2
        possible = np.minimum(mass[middle], mass[-1] - mass[middle]) >= least
        # as deep as is asked for, but for what noise may have filled in
        possible &= sums[here] - ALLOWED * sd <= kind.depth * lower
        scores = (kind.clear * lower - sums[here]) / (sd * math.sqrt(1 + kind.clear**2))
        scores = np.where(possible, scores, -math.inf)
        if len(scores) and scores.max() > max(DEVIATIONS, 0.0 if best is None else best[1]):
            top = int(np.argmax(scores))
            low = sums - ALLOWED * sd <= kind.depth * float(lower[top])
            first, last = _run(low, int(here[top]))
            place = (first + last + m + 1) // 2
            if last - first + m >= kind.stretch * _narrower(counted, place):
                best = (place, float(scores.max()))
        # windows of doubling width: narrow valleys between high peaks, and wide ones under much noise
        m *= 2
    return best


def _run(low: BoolArray, at: int) -> tuple[int, int]:
    """First and last index of the run of true values around one of them."""
    ends = np.flatnonzero(~low)
    before, after = ends[ends < at], ends[ends > at]
    return (int(before[-1]) + 1 if len(before) else 0), (int(after[0]) - 1 if len(after) else len(low) - 1)


def _narrower(counted: FloatArray, place: int) -> int:
    """Width of the narrower side of a place, in intervals that hold records."""
    widths = []
    for side in (counted[:place], counted[place:]):
        inside = np.flatnonzero(side > 0)
        widths.append(int(inside[-1] - inside[0] + 1) if len(inside) else 0)
    return min(widths)


SCATTER_STEPS = 2**16
"""Longest whitened record, in lattice steps."""

MAP_BITS = 26
"""No row of an integer whitening map is longer than two to this."""


@dataclass(frozen=True, eq=False)
class Whitening:
    r"""The map :math:`z = A^{-1}(x - c)` in whole numbers.

    Attributes
    ----------
    frame : CentredBallLattice
        Wide enough for all that is not clipped.
    root : array of shape (d, d)
        The matrix A.
    matrix : array of shape (d, d)
        Whole numbers; with `factor` it takes lattice vectors to whitened ones in steps.
    factor : float
    clip : float
        Radius of the clip in whitened units, which is `SCATTER_STEPS` steps.
    known : float
        Share of the sample's own deviation from a sphere that the root has taken up already.
    """

    frame: CentredBallLattice
    root: FloatArray
    matrix: FloatArray
    factor: float
    clip: float
    known: float

    def vectors(self, rows: FloatArray) -> FloatArray:
        """Whole numbers of norm at most `SCATTER_STEPS`, one vector for each of these finite rows."""
        return clipped(self._scaled(rows), SCATTER_STEPS)

    def squares(self, rows: FloatArray) -> FloatArray:
        """Squared whitened length of each of these finite rows; infinite beyond the clip."""
        z = self._scaled(rows)
        squared = np.einsum("ij,ij->i", z, z)
        return np.asarray(np.where(squared <= float(SCATTER_STEPS) ** 2, squared, np.inf))

    def _scaled(self, rows: FloatArray) -> FloatArray:
        reach = 2.0 * SCATTER_STEPS
        return np.asarray(np.clip(np.rint(self.frame.vectors(rows) @ self.matrix.T * self.factor), -reach, reach))


@dataclass(frozen=True, eq=False)
class Reassigned:
    """Parts in which a record that lies beyond the clip of its own part, and within that of others, is in the nearest.

    A cut leaves the tail of a component on the wrong side; once the shapes are known it can be brought home.

    Attributes
    ----------
    base : Parts
    whitenings : tuple of Whitening
        One for each part.
    """

    base: Parts
    whitenings: tuple[Whitening, ...]

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.base.d

    @property
    def parts(self) -> int:
        """Number of parts."""
        return self.base.parts

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows."""
        labels = self.base.labels(rows)
        own = np.full(len(rows), np.inf)
        for part, whitening in enumerate(self.whitenings):
            own[labels == part] = whitening.squares(rows[labels == part])
        lost = np.flatnonzero(np.isinf(own))
        far = np.stack([whitening.squares(rows[lost]) for whitening in self.whitenings])
        # who is beyond the clip of every part stays where the cut put them
        labels[lost] = np.where(np.isfinite(far.min(axis=0)), np.argmin(far, axis=0), labels[lost])
        return labels


def whitening_of(centre: FloatArray, root: FloatArray, clip: float, known: float = 0.0) -> Whitening:
    """The whitening map of a centre and a root of the covariance, in data units."""
    frame = CentredBallLattice(centre, 1.01 * clip * float(np.linalg.norm(root, 2)))
    wanted = np.linalg.inv(root) * (frame.radius / frame.steps * SCATTER_STEPS / clip)
    longest = float(np.sqrt((wanted**2).sum(axis=1)).max())
    # as many bits as keep every row below 2^26, so that products stay exact
    bits = MAP_BITS - 1 - math.ceil(math.log2(longest))
    return Whitening(frame, root, np.rint(wanted * 2.0**bits), 2.0**-bits, clip, known)
