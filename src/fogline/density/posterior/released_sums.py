r"""An estimate and released sums: what many buckets hold together is known better than what each of them holds.

A field shrinks every count towards its neighbours, all the same way where they are alike, so that sums of its estimate
may be off where the released sums are not. Here the estimate is brought near the released sums: of halves, quarters
and so on of one column, of blocks of several, of slabs across a column, of walls. At each of them the estimate M (taken
to be as uncertain as the sampling error of so many records) and the released sum Y (with its known noise) are combined
by their variances.

**Both stages count.** The pilot has counted the same records with other noise. In a region of K buckets, the least one
that both stages counted, with noise of variance v in each count and V in the pilot's, least squares give the counts

.. math:: y_j + \frac{v}{K v + V} \Bigl( Y - \sum_k y_k \Bigr),

and a sum over s of them has noise of variance :math:`s v - s^2 v^2 / (K v + V)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from fogline._typing import FloatArray, IntArray
from fogline.density.leaves import LeafRelease
from fogline.density.posterior.field import Mesh, label_leaves

__all__ = [
    "ReleasedSums",
    "crossing_shares",
    "reconcile_blocks",
    "reconcile_halves",
    "reconcile_margins",
    "reconcile_walls",
    "resolved_slabs",
]

_CLEAR = 10.0
"""A heavy stretch is halved further where it holds this many times the variance of the noise in its sum."""


@dataclass(frozen=True, eq=False)
class ReleasedSums:
    """Counts of buckets from both stages by least squares, and the noise in sums of them.

    Parameters
    ----------
    release : LeafRelease
    counts : array of shape (buckets,)
    region : int array of shape (buckets,)
        Least region that both stages counted, of each bucket.
    pilot_region : int array of shape (boxes of the pilot,)
    known : array of shape (regions,)
        What the pilot takes off the variance of a sum, per squared number of buckets in it.

    Examples
    --------
    >>> from fogline.density.leaves import BucketCounts, LeafSpec, Noise
    >>> noise = Noise("gaussian", 5.0)
    >>> quarters = BucketCounts(np.array([[[k, k + 1]] for k in range(4)]), np.array([9, 9, 1, 1]), noise)
    >>> halves = BucketCounts(np.array([[[0, 2]], [[2, 4]]]), np.array([24, 2]), noise)
    >>> sums = ReleasedSums.of(LeafRelease(LeafSpec.plan([(0, 1)], leaves=[4]), halves, quarters))
    >>> sums.counts.tolist()
    [11.0, 11.0, 1.0, 1.0]
    >>> [round(sums.variance(np.array(some)), 2) for some in ([0], [0, 1], [0, 2])]
    [16.67, 16.67, 33.33]
    """

    release: LeafRelease
    counts: FloatArray
    region: IntArray
    pilot_region: IntArray
    known: FloatArray

    @classmethod
    def of(cls, release: LeafRelease, *, pilot: bool = True) -> ReleasedSums:
        """Combine both stages, or with `pilot` False take the second alone; one that stands for both counts once."""
        region, pilot_region = _regions(release)
        size, noise = int(region.max()) + 1, release.counts.noise.variance
        counts = release.counts.counts.astype(np.float64)
        if not pilot or release.pilot is release.counts:
            return cls(release, counts, region, pilot_region, np.zeros(size))
        seen = np.bincount(pilot_region, release.pilot.counts, minlength=size)
        boxes, buckets = (np.bincount(part, minlength=size) for part in (pilot_region, region))
        gain = noise / (buckets * noise + boxes * release.pilot.noise.variance)
        rest = seen - np.bincount(region, counts, minlength=size)
        return cls(release, counts + (gain * rest)[region], region, pilot_region, noise * gain)

    @property
    def regions(self) -> int:
        """Number of regions."""
        return len(self.known)

    def variance(self, chosen: NDArray[Any]) -> float:
        """Variance of the noise in the sum of some buckets: a mask or their numbers."""
        number = np.bincount(self.region[chosen], minlength=self.regions)
        return float(number.sum() * self.release.counts.noise.variance - number**2 @ self.known)

    def variances(self, group: IntArray) -> FloatArray:
        """Variance of the noise in the sum of each group of buckets; `group` has the number of each bucket's group."""
        pairs, number = np.unique(group * self.regions + self.region, return_counts=True)
        parts = number * self.release.counts.noise.variance - number**2 * self.known[pairs % self.regions]
        return np.asarray(np.bincount(pairs // self.regions, parts))

    def combined(self, expected: FloatArray, chosen: NDArray[Any]) -> float:
        """Content of some buckets: their estimate and their released sum, by their variances."""
        mass, seen = float(expected[chosen].sum()), float(self.counts[chosen].sum())
        return max(mass + mass / max(mass + self.variance(chosen), 1e-300) * (seen - mass), 0.0)

    def combined_groups(self, expected: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray]:
        """Estimated content of groups of buckets, and the same combined with their released sums."""
        mass, seen = (np.asarray(np.bincount(group, part), dtype=np.float64) for part in (expected, self.counts))
        return mass, np.asarray(mass + mass / np.maximum(mass + self.variances(group), 1e-300) * (seen - mass))


def _regions(release: LeafRelease) -> tuple[IntArray, IntArray]:
    """Region of each bucket and of each of the pilot's boxes: the least ones that both stages counted."""
    labels = [label_leaves(stage.boxes, release.spec.leaves).ravel() for stage in release.stages]
    boxes, buckets = len(release.pilot), len(release.counts)
    pairs = np.unique(labels[0] * buckets + labels[1])
    ends = pairs // buckets, boxes + pairs % buckets
    links = sparse.coo_matrix((np.ones(len(pairs)), ends), shape=(boxes + buckets,) * 2)
    _, region = connected_components(links, False)
    return region[boxes:].astype(np.int64), region[:boxes].astype(np.int64)


# -- one column -----------------------------------------------------------------------------------------------------


def reconcile_halves(expected: FloatArray, sums: ReleasedSums, levels: int, heavy: float = 1.0) -> FloatArray:
    """Scale the estimate of one column so that halves, quarters, ... agree with their released sums.

    A stretch at a wall with a larger share than `heavy` is halved further, as long as the noise in its sum is small
    beside its records. A field of one length scale is too flat where a density rises steeply towards a wall, and what
    it misses there is systematic. Elsewhere that would cost more than it gains: sums of narrow stretches carry the
    sampling error that the field averages out.
    """
    release = sums.release
    scaled = expected * max(float(release.total), 1.0) / max(float(expected.sum()), 1e-300)
    edges = np.append(release.counts.boxes[:, 0, 0], release.spec.leaves[0]).astype(np.float64)
    out = scaled.copy()

    def worth_halving(first: int, last: int) -> bool:
        if first > 0 and last < len(scaled):
            return False
        mass = float(scaled[first:last].sum())
        return mass > heavy * float(scaled.sum()) and mass > _CLEAR * sums.variance(np.arange(first, last))

    def descend(first: int, last: int, total: float, level: int) -> None:
        if last - first < 2 or (level <= 0 and not worth_halving(first, last)):
            out[first:last] = scaled[first:last] * (total / max(float(scaled[first:last].sum()), 1e-300))
            return
        middle = int(np.clip(np.searchsorted(edges, (edges[first] + edges[last]) / 2), first + 1, last - 1))
        halves = np.arange(first, middle), np.arange(middle, last)
        shares = [sums.combined(scaled, half) for half in halves]
        if sum(shares) <= 0:
            shares = [float(scaled[half].sum()) for half in halves]
        whole = max(sum(shares), 1e-300)
        descend(first, middle, total * shares[0] / whole, level - 1)
        descend(middle, last, total * shares[1] / whole, level - 1)

    descend(0, len(scaled), 1.0, levels)
    return out


# -- several columns ------------------------------------------------------------------------------------------------


def reconcile_blocks(expected: FloatArray, sums: ReleasedSums, mesh: Mesh, levels: int) -> FloatArray:
    """Like :func:`reconcile_halves` in two and three columns: blocks of halves, quarters, ... of every axis at once."""
    parent = np.zeros(mesh.size, dtype=np.int64)
    for level in range(levels + 1):
        parts = 2**level
        place = np.minimum((mesh.centres * parts).astype(np.int64), parts - 1)
        _, block = np.unique(np.ravel_multi_index(tuple(place.T), (parts,) * mesh.d), return_inverse=True)
        mass, wanted = sums.combined_groups(expected, block)
        scaled = expected * (np.maximum(wanted, 0.0) / np.maximum(mass, 1e-300))[block]
        if level:  # blocks of one parent share what it has
            before, after = np.bincount(parent, expected), np.bincount(parent, scaled)
            scaled *= (before / np.maximum(after, 1e-300))[parent]
        expected, parent = scaled, block
    return np.asarray(expected * max(1.0, 1.0 / max(float(expected.sum()), 1e-300)))


def reconcile_margins(expected: FloatArray, sums: ReleasedSums, crossing: float) -> FloatArray:
    """Bring the content of slabs across each column near their released sums; the total stays.

    The field shrinks each of many small counts towards its neighbours. Beside zeros, which are in the outermost leaf
    whatever the other columns hold, all are shrunk the same way, and their sum, which is known well, is off. Slabs end
    where few buckets reach across (:func:`resolved_slabs`).
    """
    release, total = sums.release, float(expected.sum())
    for axis in range(release.spec.d):
        ends = resolved_slabs(crossing_shares(release, axis, expected), _margin(release, axis, expected), crossing)
        middle = release.counts.boxes[:, axis].sum(axis=1) / 2
        _, slab = np.unique(np.searchsorted(ends, middle, side="right"), return_inverse=True)
        mass, wanted = sums.combined_groups(expected, slab)
        scaled = expected * (np.clip(wanted, mass / 2, 2 * mass) / np.maximum(mass, 1e-300))[slab]
        expected = np.asarray(scaled * (total / max(float(scaled.sum()), 1e-300)))
    return expected


def reconcile_walls(expected: FloatArray, sums: ReleasedSums, contrast: float) -> FloatArray:
    """Bring the content of buckets that are one leaf at a wall near their released sums; the total stays.

    Full boxes at a wall are cut at their outermost leaf, where zeros are. What lies beside a heap says nothing about
    it, yet the field shrinks its buckets towards the nearly empty ones there, all the same way. Where the wall is this
    many times denser than what is beside it, estimate and released sums are combined: of the whole wall, of its
    halves, and so on down to single buckets.
    """
    release, total = sums.release, float(expected.sum())
    for axis, leaves in enumerate(release.spec.leaves):
        start, stop = release.counts.boxes[:, axis].T
        for wall, beside in ((stop == 1, start == 1), (start == leaves - 1, stop == leaves - 1)):
            mass = float(expected[wall].sum())
            next_leaf = float((expected[beside] / (stop - start)[beside]).sum())
            if not contrast * next_leaf < mass < total:
                continue
            wanted = min(sums.combined(expected, wall), 2 * mass, (mass + total) / 2)
            changed = expected * ((total - wanted) / (total - mass))
            changed[wall] = expected[wall]
            _hand_down(changed, sums, np.flatnonzero(wall), wanted)
            expected = changed
    return expected


def _hand_down(expected: FloatArray, sums: ReleasedSums, chosen: IntArray, total: float) -> None:
    """Give some buckets a total, in place: halves get theirs by estimate and released sum, and so on."""
    expected[chosen] *= total / max(float(expected[chosen].sum()), 1e-300)
    if len(chosen) < 2:
        return
    centres = sums.release.counts.boxes[chosen].mean(axis=2)
    axis = int(np.argmax(np.ptp(centres, axis=0)))
    order = chosen[np.argsort(centres[:, axis], kind="stable")]
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    shares = [sums.combined(expected, half) for half in halves]
    if sum(shares) <= 0:
        return
    for half, share in zip(halves, shares, strict=True):
        _hand_down(expected, sums, half, total * share / sum(shares))


def _margin(release: LeafRelease, axis: int, expected: FloatArray) -> FloatArray:
    """Content of each leaf of a column, every bucket spread evenly along it."""
    start, stop = release.counts.boxes[:, axis, 0], release.counts.boxes[:, axis, 1]
    change = np.zeros(release.spec.leaves[axis] + 1)
    np.add.at(change, start, expected / (stop - start))
    np.add.at(change, stop, -expected / (stop - start))
    return np.asarray(np.maximum(np.cumsum(change)[:-1], 0.0))


def crossing_shares(release: LeafRelease, axis: int, expected: FloatArray) -> FloatArray:
    """Share of the records in buckets that reach across each edge of a column's leaves."""
    start, stop = release.counts.boxes[:, axis, 0], release.counts.boxes[:, axis, 1]
    change = np.zeros(release.spec.leaves[axis] + 2)
    np.add.at(change, start + 1, expected)
    np.add.at(change, stop, -expected)
    return np.asarray(np.maximum(np.cumsum(change)[:-1], 0.0) / max(float(expected.sum()), 1e-300))


def resolved_slabs(crossing: FloatArray, margin: FloatArray, most: float) -> IntArray:
    """Edges, from the lowest on, across which buckets reach that hold at most this part of what lies below it.

    Between two such edges the content is known from the released counts; how it spreads there is not.

    Parameters
    ----------
    crossing : array of shape (leaves + 1,)
        Share of the records in buckets that reach across each edge.
    margin : array of shape (leaves,)
        Content of the leaves.
    most : float
        Of the content since the edge before.

    Examples
    --------
    >>> resolved_slabs(np.array([0, 0.02, 0.4, 0.0, 0]), np.array([0.4, 0.2, 0.2, 0.2]), 0.1).tolist()
    [0, 1, 3, 4]
    """
    below = np.concatenate([[0.0], np.cumsum(margin)]) / max(float(margin.sum()), 1e-300)
    edges = [0]
    for edge in range(1, len(margin)):
        if crossing[edge] <= most * (below[edge] - below[edges[-1]]):
            edges.append(edge)
    return np.array([*edges, len(margin)], dtype=np.int64)
