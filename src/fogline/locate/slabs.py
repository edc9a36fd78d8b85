r"""Terrific slabs: where a part of the records falls apart along a direction.

The records of each part are projected on a few released directions and counted in even intervals, with noise: a ball of
a one-dimensional projection is an interval, and from these counts every interval can be judged at once. With
:math:`H_m(i)` the noisy number of records in the m intervals around i, the part is cut at i when

.. math:: H_m(i) + 5\,\sigma\sqrt{m(1 + b^2)} \le b\,\min\{\max_{j<i} H_m(j),\; \max_{j>i} H_m(j)\}

for some m: the valley is lower than a part b of what is on either side, by five deviations of the noise, and it may
well be lower than the smaller part a that the tails of separate components would leave (two deviations allowed). Both
sides must hold enough records. This is the three-fold test of a terrific ball (many inside, many outside, next to none
around) in time linear in the number of records. The proof is in ``slabs.proof.md`` beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline.locate.frames import Each, Frame
from fogline.locate.partition import Partition, block_sensitivity, block_sum
from fogline.locate.projection import DIRECTION_BITS

__all__ = ["BINS", "Slabs", "SlabsQuery", "Valley", "valleys"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
    frames : tuple of Frame
        One for each part.
    directions : array of shape (parts, p, d)
        In whole numbers.
    """

    partition: Partition
    frames: tuple[Frame, ...]
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
        return 2.002 * self.frames[0].steps * 2.0**DIRECTION_BITS / BINS

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the counts of neighbours can be apart: a record counts once on each direction of its part."""
        return block_sensitivity(self.axes, neighbours, max_contributions)

    def sum(self, passes: Each) -> IntArray:
        """Exact counts."""
        offsets = BINS * np.arange(self.axes)

        def contribution(part: int, rows: FloatArray) -> FloatArray:
            products = self.frames[part].vectors(rows) @ self.directions[part].T
            places = np.clip(np.floor(products / self.width) + BINS // 2, 0, BINS - 1).astype(np.int64)
            return np.bincount((places + offsets).ravel(), minlength=self.block).astype(np.float64)

        return block_sum(self.partition, passes, self.block, contribution)

    def profiles(self, values: IntArray) -> FloatArray:
        """The counts as an array of shape (parts, p, BINS)."""
        return values.reshape(self.partition.parts, self.axes, BINS).astype(np.float64)

    def products(self, edges: FloatArray) -> FloatArray:
        """Edges between intervals in the units of the products of lattice vectors and directions."""
        return np.asarray((edges - BINS // 2) * self.width)


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
        """The clearest edges, at most so many."""
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
        lower = np.minimum(left[here - m], right[here + m])
        sd = noise * math.sqrt(m)
        middle = here + (m + 1) // 2
        possible = np.minimum(mass[middle], mass[-1] - mass[middle]) >= least
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
        m *= 2
    return best


def _run(low: NDArray[np.bool_], at: int) -> tuple[int, int]:
    """First and last index of the run of true values around one of them."""
    ends = np.flatnonzero(~low)
    before, after = ends[ends < at], ends[ends > at]
    return (int(before[-1]) + 1 if len(before) else 0), (int(after[0]) - 1 if len(after) else len(low) - 1)


def _narrower(counted: FloatArray, place: int) -> int:
    """Width of the narrower side of a place, in intervals that hold records."""
    widths = []
    for side in (counted[:place], counted[place:]):
        held = np.flatnonzero(side > 0)
        widths.append(int(held[-1] - held[0] + 1) if len(held) else 0)
    return min(widths)
