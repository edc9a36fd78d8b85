r"""Where the second stage of a release counts: a partition chosen from the first stage's released numbers.

A bucket should be as small as the noise allows. With noise of variance :math:`v` per count, cutting a box in two
pays where its halves are expected to differ by more than the noise hides, or where it holds so many records that the
noise is small beside their own sampling error. What is expected comes from the pilot: its counts are read as a
posterior (:mod:`fogline.density.posterior.fit`), from which a few densities are drawn, with public coins. The
partition is thus a function of released numbers and of nothing else, and costs no privacy.

Cuts are at the middle of a box, along one axis at a time, so that every partition is a tree of dyadic boxes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.leaves import Boxes, BucketCounts, LeafSpec, Noise
from fogline.density.posterior.field import Mesh
from fogline.density.posterior.fit import DensityFit, FitSettings, fit_counts
from fogline.density.posterior.likelihood import CountLaw

__all__ = [
    "PartitionSettings",
    "cut_out",
    "partition_settings",
    "pilot_boxes",
    "plan_partition",
    "public_generator",
    "stage_shares",
]


@dataclass(frozen=True)
class PartitionSettings:
    """Tuned numbers of the two stages.

    Attributes
    ----------
    share : Fraction
        Of the budget, for the pilot.
    pilot_cells : int
        Cells per axis of the pilot.
    draws : int
        Densities that are drawn from the pilot's posterior.
    contrast, least_height : float
        A box is cut where the squared difference of its halves exceeds `contrast` times the variance of the noise and
        its content exceeds `least_height` deviations of the noise,
    finest : int
        and its halves are not narrower than this part of the axis;
    abundance : float
        or where half its content exceeds this many times the variance of the noise;
    coarsest : int
        or where it is longer than this part of the axis.
    spike : float
        A pilot cell this many times denser than its neighbours is searched for a spike.
    per_value : float
        On an axis with a step: cut down to single values where each is expected to hold this many deviations.
    most_buckets : int
    steepness, steep_height : float
        `finest` does not bind where the squared difference of halves exceeds this part of the squared content, and the
        content this many deviations.
    plenty : float
        A box with more deviations than this is cut in any case: its halves are known well.
    wall_height : float
        A box at a wall that holds this many deviations is cut once more, along the first or last leaf of a continuous
        axis: zeros and other values that pile up at a wall are told from their neighbours.
    least_variance : float
        The noise counts for at least this much, in records squared: with less noise the sampling of the records alone
        keeps halves from being told apart, and buckets of one record or none say nothing of a density.
    """

    share: Fraction
    pilot_cells: int
    draws: int
    contrast: float
    least_height: float
    finest: int
    finest_lattice: int
    abundance: float
    coarsest: int
    spike: float
    per_value: float
    most_buckets: int
    steepness: float = math.inf
    steep_height: float = 0.0
    plenty: float = math.inf
    wall_height: float = math.inf
    least_variance: float = 0.0


_SETTINGS = {
    1: PartitionSettings(Fraction(3, 20), 64, 60, 4.0, 4.0, 64, 256, 8.0, 16, 3.0, 20.0, 4096),
    2: PartitionSettings(
        Fraction(3, 20), 16, 30, 4.0, 4.0, 32, 64, 8.0, 1, 3.0, 20.0, 4000, 0.1, 12.0, 100.0, 12.0, least_variance=0.18
    ),
    3: PartitionSettings(
        Fraction(3, 20), 8, 16, 4.0, 4.0, 16, 32, 8.0, 1, 3.0, 20.0, 3000, 0.1, 12.0, 100.0, 12.0, least_variance=0.18
    ),
}


def partition_settings(d: int) -> PartitionSettings:
    """Settings for a number of columns."""
    return _SETTINGS[d]


def stage_shares(spec: LeafSpec) -> tuple[Fraction, Fraction]:
    """Shares of the budget for the pilot and for the counts; they sum to exactly 1.

    Examples
    --------
    >>> sum(stage_shares(LeafSpec.plan([(0, 1)])))
    Fraction(1, 1)
    """
    share = partition_settings(spec.d).share
    return share, 1 - share


def pilot_boxes(spec: LeafSpec) -> Boxes:
    """The public partition of the pilot: a regular grid of coarse cells.

    Examples
    --------
    >>> pilot_boxes(LeafSpec.plan([(0, 1)])).shape, pilot_boxes(LeafSpec.plan([(0, 1)], steps=0.5)).tolist()
    ((64, 1, 2), [[[0, 1]], [[1, 2]], [[2, 3]]])
    """
    edges = pilot_edges(spec)
    return _product([np.stack([e[:-1], e[1:]], axis=1) for e in edges])


def pilot_edges(spec: LeafSpec) -> list[IntArray]:
    """Edges of the pilot's cells in leaves, per axis."""
    most = partition_settings(spec.d).pilot_cells
    cells = [min(most, n) for n in spec.leaves]
    return [np.round(np.arange(k + 1) * n / k).astype(np.int64) for n, k in zip(spec.leaves, cells, strict=True)]


def _product(ranges: list[IntArray]) -> Boxes:
    return np.array(list(product(*(r.tolist() for r in ranges))), dtype=np.int64).reshape(-1, len(ranges), 2)


def public_generator(*released: IntArray) -> np.random.Generator:
    """Coins that everybody can toss again: a generator seeded by a hash of released numbers."""
    digest = hashlib.sha256()
    for part in released:
        digest.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    return np.random.default_rng(int.from_bytes(digest.digest()[:16], "little"))


def cut_out(boxes: Boxes, leaves: Sequence[int]) -> Boxes:
    """Cut boxes of one column so that some leaves stand by themselves.

    Parameters
    ----------
    boxes : int64 array of shape (boxes, 1, 2)
        That tile the column.
    leaves : sequence of int

    Examples
    --------
    >>> cut_out(np.array([[[0, 4]], [[4, 8]]]), [0, 5])[:, 0].tolist()
    [[0, 1], [1, 4], [4, 5], [5, 6], [6, 8]]
    """
    edges = {int(edge) for edge in boxes[:, 0].ravel()} | {end for leaf in leaves for end in (leaf, leaf + 1)}
    ordered = np.array(sorted(edges), dtype=np.int64)
    return np.stack([ordered[:-1], ordered[1:]], axis=1)[:, None, :]


def plan_partition(spec: LeafSpec, pilot: BucketCounts, noise: Noise) -> Boxes:
    """Choose the buckets of the second stage.

    Parameters
    ----------
    spec : LeafSpec
    pilot : BucketCounts
        What the first stage released.
    noise : Noise
        That the second stage will add to each count.

    Returns
    -------
    int64 array of shape (buckets, axes, 2)

    Examples
    --------
    >>> spec = LeafSpec.plan([(0, 1)])
    >>> pilot = BucketCounts(pilot_boxes(spec), np.full(64, 100), Noise("laplace", 7.0))
    >>> buckets = plan_partition(spec, pilot, Noise("laplace", 1.2))
    >>> int((buckets[..., 1] - buckets[..., 0]).sum())
    4096
    """
    with np.errstate(all="ignore"):  # a caller's strict error state must not decide what is released
        return _Cutter(spec, pilot, noise, partition_settings(spec.d)).boxes()


_PILOT_FITS = {
    1: FitSettings(
        lengths=tuple(np.geomspace(0.01, 1.28, 8).tolist()),
        deviations=(0.5, 1.0, 2.0, 4.0),
        roughness=(0.0, 0.1, 0.25, 0.6, 1.4),
        start=(4, 2, 2, 0),
        most_fits=60,
    ),
    2: FitSettings(
        lengths=tuple(np.geomspace(0.04, 0.64, 5).tolist()),
        deviations=(1.0, 2.0, 4.0),
        roughness=(0.0, 0.25, 0.8),
        start=(2, 1, 1, 0),
        kept=1,
        most_fits=20,
    ),
    3: FitSettings(
        lengths=tuple(np.geomspace(0.08, 0.64, 4).tolist()),
        deviations=(1.0, 2.0, 4.0),
        roughness=(0.0, 0.8),
        orders=(1,),
        start=(2, 1, 1, 0),
        kept=1,
        most_fits=12,
    ),
}
"""How a pilot is read; not with the settings of the reading of a release. The partition follows from these, so they
belong to the law of what is released: another number here needs another `CODE_VERSION`, and a reading may get better
ones without touching what a ledger has paid for."""


class _Cutter:
    """Cuts boxes in two while that is expected to pay; all boxes of one size of partition are judged together."""

    def __init__(self, spec: LeafSpec, pilot: BucketCounts, noise: Noise, settings: PartitionSettings) -> None:
        self.spec, self.settings = spec, settings
        self.variance = max(noise.variance, settings.least_variance)
        self.leaves = np.array(spec.leaves)
        mesh = Mesh.of(pilot.boxes, spec.leaves)
        law = CountLaw(pilot.noise)
        self.fit = fit_counts(mesh, pilot.counts.astype(np.float64), law, _PILOT_FITS[spec.d], emptiness=False)
        rng = public_generator(pilot.counts, pilot.boxes)
        self.sums, density = _leaf_sums(spec, self.fit, settings.draws, rng)
        around = mesh.neighbour_mean(density)
        self.edges = pilot_edges(spec)
        self.spiky = (density > settings.spike * around).reshape([len(e) - 1 for e in self.edges])

    def boxes(self) -> Boxes:
        """Cut every box that gains, again and again; with too few buckets for all, the large and the full."""
        open_boxes = np.stack([np.zeros_like(self.leaves), self.leaves], axis=1)[None]
        final: list[Boxes] = []
        done = 0
        while len(open_boxes):
            axis = self._axis(open_boxes)
            free = self.settings.most_buckets - done - len(open_boxes)
            wanted = np.flatnonzero(axis >= 0)
            if len(wanted) > free:
                axis[wanted[np.argsort(self._order(open_boxes[wanted]), kind="stable")[free:]]] = -1
            final.append(open_boxes[axis < 0])
            done += len(final[-1])
            open_boxes = np.concatenate(_halves(open_boxes[axis >= 0], axis[axis >= 0]))
        boxes = self._with_walls(np.concatenate(final))
        return boxes[np.lexsort(boxes[:, ::-1, 0].T)]

    def _with_walls(self, boxes: Boxes) -> Boxes:
        """Cut the outermost leaf off full boxes that touch a wall: a pilot cannot see what piles up in one leaf."""
        for axis in range(self.spec.d):
            if self.spec.steps[axis] or not math.isfinite(self.settings.wall_height):
                continue
            for side, wall in ((0, 0), (1, self.spec.leaves[axis])):
                least = self.settings.wall_height * math.sqrt(self.variance)
                full = np.median(self._content(boxes), axis=1) > least
                thick = boxes[:, axis, 1] - boxes[:, axis, 0] >= 2
                chosen = np.flatnonzero((boxes[:, axis, side] == wall) & full & thick)
                chosen = chosen[: max(self.settings.most_buckets - len(boxes), 0)]
                outer = boxes[chosen].copy()
                outer[:, axis, 1 - side] = wall + 1 - 2 * side
                boxes[chosen, axis, side] = wall + 1 - 2 * side
                boxes = np.concatenate([boxes, outer])
        return boxes

    def _order(self, boxes: Boxes) -> FloatArray:
        """Large boxes first, then full ones: small boxes must not use up the buckets."""
        longest = ((boxes[..., 1] - boxes[..., 0]) / self.leaves).max(axis=1)
        fullness = np.median(self._content(boxes), axis=1)
        return np.asarray(-fullness - 1e12 * np.maximum(longest * self.settings.finest - 1, 0))

    def _content(self, boxes: Boxes) -> FloatArray:
        """Records in boxes, for each drawn density; shape (boxes, draws)."""
        total = np.zeros((len(boxes), self.sums.shape[-1]))
        for corner in product((0, 1), repeat=self.spec.d):
            place = tuple(boxes[:, axis, side] for axis, side in enumerate(corner))
            total += (-1) ** (self.spec.d - sum(corner)) * self.sums[place]
        return np.maximum(total, 0.0)

    def _axis(self, boxes: Boxes) -> IntArray:
        """The axis along which to cut each box, the longest that gains; -1 where no cut gains."""
        chosen = np.full(len(boxes), -1)
        best_length, best_gain = np.zeros(len(boxes)), np.zeros(len(boxes))
        for axis in range(self.spec.d):
            gain, gains = self._gain(boxes, axis)
            length = (boxes[:, axis, 1] - boxes[:, axis, 0]) / self.leaves[axis]
            better = gains & ((chosen < 0) | (length > best_length) | ((length == best_length) & (gain > best_gain)))
            chosen[better] = axis
            best_length, best_gain = np.where(better, length, best_length), np.where(better, gain, best_gain)
        return chosen

    def _gain(self, boxes: Boxes, axis: int) -> tuple[FloatArray, BoolArray]:
        """Squared difference of the halves of each box, and whether it pays to tell them apart."""
        settings, variance, n = self.settings, self.variance, self.spec.leaves[axis]
        start, stop = boxes[:, axis, 0], boxes[:, axis, 1]
        left, right = (self._content(half) for half in _halves(boxes, np.full(len(boxes), axis)))
        content = np.median(left + right, axis=1)
        middle = (start + stop) // 2
        odds = (middle - start) / (stop - middle)
        spiky = self._is_spiky(boxes)
        contrast = np.mean((left - right * odds[:, None]) ** 2, axis=1) + 0.1 * spiky * content**2
        lattice = self.spec.steps[axis] > 0
        wide = (stop - start) * (settings.finest_lattice if lattice else settings.finest) >= 2 * n
        tells = (contrast > settings.contrast * variance) & (content > settings.least_height * math.sqrt(variance))
        pays = (stop - start) * settings.coarsest >= 1.9 * n
        steep = (contrast > settings.steepness * content**2) & (content > settings.steep_height * math.sqrt(variance))
        pays |= tells & (spiky | wide | steep)
        pays |= content / 2 > settings.abundance * variance
        pays |= content > settings.plenty * math.sqrt(variance)
        if lattice:
            leaves = np.prod(boxes[..., 1] - boxes[..., 0], axis=1)
            pays |= content > settings.per_value * math.sqrt(variance / 2) * leaves
        return contrast, pays & (stop - start >= 2)

    def _is_spiky(self, boxes: Boxes) -> BoolArray:
        """Whether each box lies inside a pilot cell that stands out from its neighbours."""
        inside, place = np.ones(len(boxes), dtype=bool), []
        for axis, edges in enumerate(self.edges):
            cell = np.searchsorted(edges, boxes[:, axis, 0], side="right") - 1
            inside &= boxes[:, axis, 1] <= edges[cell + 1]
            place.append(cell)
        return np.asarray(inside & self.spiky[tuple(place)])


def _halves(boxes: Boxes, axis: IntArray) -> tuple[Boxes, Boxes]:
    """Both halves of each box, cut at the middle of its own axis."""
    rows = np.arange(len(boxes))
    middle = boxes[rows, axis].sum(axis=1) // 2
    left, right = boxes.copy(), boxes.copy()
    left[rows, axis, 1] = right[rows, axis, 0] = middle
    return left, right


def _leaf_sums(spec: LeafSpec, fit: DensityFit, draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Sums of drawn densities over all boxes that begin at the first leaf, and the median density of pilot cells.

    Inside a pilot cell a density follows the smooth part, interpolated between centres of cells.
    """
    edges = pilot_edges(spec)
    shape = tuple(len(e) - 1 for e in edges)
    log_relative, smooth = fit.fits[0].draws(draws, rng)
    content = fit.base[:, None] * np.exp(log_relative)
    table = np.exp(_interpolated(smooth.reshape(*shape, draws), edges))
    within = table
    for axis, e in enumerate(edges):
        within = np.add.reduceat(within, e[:-1], axis=axis)
    ratio = content.reshape(*shape, draws) / within
    for axis, e in enumerate(edges):
        ratio = np.repeat(ratio, np.diff(e), axis=axis)
    table = table * ratio
    for axis in range(spec.d):
        table = np.concatenate([np.zeros_like(table.take([0], axis=axis)), np.cumsum(table, axis=axis)], axis=axis)
    return table, np.median(content, axis=1) / fit.mesh.volumes


def _interpolated(values: FloatArray, edges: list[IntArray]) -> FloatArray:
    """Values at centres of coarse cells, linearly interpolated at centres of leaves along each axis in turn."""
    for axis, e in enumerate(edges):
        centres = (e[1:] + e[:-1]) / 2
        if len(centres) == 1:
            values = np.repeat(values, int(e[-1]), axis=axis)
            continue
        places = np.arange(int(e[-1])) + 0.5
        left = np.clip(np.searchsorted(centres, places) - 1, 0, len(centres) - 2)
        part = np.clip((places - centres[left]) / (centres[left + 1] - centres[left]), 0, 1)
        part = part.reshape([-1 if k == axis else 1 for k in range(values.ndim)])
        values = values.take(left, axis=axis) * (1 - part) + values.take(left + 1, axis=axis) * part
    return values
