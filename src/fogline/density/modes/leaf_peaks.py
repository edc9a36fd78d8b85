r"""Peaks of released counts on leaves, at several scales, against what noise alone raises.

The counts of buckets are spread evenly over their leaves and smoothed by Gaussian kernels that the walls reflect. All
of it is linear in the counts, so the noise of a field is that of the counts: discrete Laplace (or Gaussian) noise for
privacy, and Poisson noise of the records, both simulated together with a fixed seed. In one column this smoothing
raises no new peak: a density that falls from a wall has bucket means that fall, and so has every smoothed version. A
peak's prominence over the deviation of the noise is compared with the largest ones of the simulations, at any of the
scales.

Heaps come first. A bucket that is far denser than all its neighbours holds a value of its own; its content is replaced
by that of its neighbours, and the rest is reported as a point mass (:mod:`fogline.density.point_masses`).

A plateau has a highest place too, but no mode. The block that fits a hill best is cut into thirds: on a plateau the
densest third exceeds the other two only by noise, whatever the ends of the plateau are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter1d, maximum_filter1d
from scipy.special import ndtr

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.leaves import LeafRelease, LeafSpec, Noise
from fogline.density.modes.peaks import (
    Peaks,
    find_peaks_both_ways,
    line_prominences,
    wall_prominences,
)
from fogline.density.modes.significance import Layer, Tail, ridge_tail
from fogline.density.modes.tables import PointMass
from fogline.density.point_masses import Heap, take_out_heaps
from fogline.density.posterior.field import Mesh, label_leaves

__all__ = [
    "LEAF_PEAKS",
    "LeafCounts",
    "LeafPeakTuning",
    "Roundness",
    "ScaleGrid",
    "ScaleTest",
    "dispersion_of",
    "find_heaps",
    "measure_roundness",
    "read_scales",
    "rise_from_wall",
]

SEED = 1618033988
"""Simulations only calibrate a threshold: a fixed seed makes reading a release repeatable."""


@dataclass(frozen=True)
class LeafPeakTuning:
    """What is tuned of the search for peaks on leaves.

    Attributes
    ----------
    scales : mapping by dimension
        Bandwidths at which peaks are tested, as parts of each range.
    simulations, tail_peaks, wall_peaks : mapping by dimension
        Simulated fields, and how many of the largest peaks per field the tails of prominence are fitted to: of peaks
        inside the box, and of peaks at its walls.
    ridges : int
        As in :class:`~fogline.density.modes.significance.SignificanceTuning`.
    cells_per_bandwidth : float
        Grid cells per bandwidth, at least.
    least_leaves : float
        No bandwidth is narrower than this many leaves.
    widest_bucket : float
        With two columns and more a peak is tested at bandwidths of at least one over this many sides of its bucket.
    slabs : mapping by dimension
        Most slabs into which a hill is cut along an axis.
    ends : float
        As how many tries the choice of a block's ends counts.
    roundness : float
        How much denser, as a part of the mean, the middle third of a normal peak's block is than the outer two.
    reach : float
        How far from a wall, in bandwidths of the scale that shows a mode there, the density is compared with that at
        the wall.
    doubt : float
        Beside other modes a peak is taken for a plateau if it misses the roundness by this many deviations.
    level_top, surely_level : float
        The highest step of a hill is level if its thirds differ by less than this part of what lies between it and the
        ground beside it, by so many deviations (on a parabola it is a third),
    trimmed, uneven : float
        and if without this part at either end no third is denser than the others by so many deviations.
    dispersed : float
        Neighbouring buckets that differ by more than this many times what noise explains are taken for heaped: there
        the noise is as large as the differences say.
    many_heaps, most_in_heaps : int, float
        Where this many values inside a column are point masses and hold this part of the records, the column is one
        that people round, and they stay in it,
    next_heap : float
        if most of them are at most this many values of the lattice apart.
    """

    scales: Mapping[int, tuple[float, ...]] = field(
        default_factory=lambda: {
            1: (0.004, 0.0075, 0.014, 0.026, 0.048, 0.09),
            2: (0.006, 0.011, 0.02, 0.035, 0.06, 0.1),
            3: (0.06, 0.09, 0.13),
        }
    )
    simulations: Mapping[int, int] = field(default_factory=lambda: {1: 200, 2: 32, 3: 16})
    tail_peaks: Mapping[int, float] = field(default_factory=lambda: {1: 0.5, 2: 2.0, 3: 4.0})
    wall_peaks: Mapping[int, float] = field(default_factory=lambda: {1: 0.4, 2: 1.0, 3: 2.0})
    ridges: int = 2
    cells_per_bandwidth: float = 2.5
    least_leaves: float = 0.8
    widest_bucket: float = 2.0
    slabs: Mapping[int, int] = field(default_factory=lambda: {1: 128, 2: 40, 3: 24})
    ends: float = 3.0
    roundness: float = 0.3
    reach: float = 4.0
    doubt: float = 2.0
    level_top: float = 0.2
    surely_level: float = 2.0
    trimmed: float = 0.1
    uneven: float = 2.0
    dispersed: float = 3.0
    many_heaps: int = 8
    most_in_heaps: float = 0.4
    next_heap: float = 2.5


LEAF_PEAKS = LeafPeakTuning()


@dataclass(frozen=True)
class UnresolvedTuning:
    """When a column counts as not resolved: buckets this many deviations above the noise, spread over this many sides.

    Peaks are then looked for at bandwidths of at least `bandwidths` sides along it.
    """

    deviations: float = 4.5
    spread: float = 1.0
    bandwidths: float = 2.0


UNRESOLVED = UnresolvedTuning()


@dataclass(frozen=True, eq=False)
class LeafCounts:
    """Released counts without heaps, and how they lie on the leaves.

    Attributes
    ----------
    spec : LeafSpec
    boxes : int array of shape (buckets, d, 2)
    counts : array of shape (buckets,)
        In records, heaps replaced by what surrounds them.
    noise : Noise
    count : float
        Number of records that the counts stand for, at least 1.
    spacing : float
        Step of rounded values, in data units, where it was not declared but seen; else 0.
    """

    spec: LeafSpec
    boxes: IntArray
    counts: FloatArray
    noise: Noise
    count: float
    spacing: float = 0.0

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.spec.d

    @cached_property
    def label(self) -> IntArray:
        """Bucket of each leaf."""
        return label_leaves(self.boxes, self.spec.leaves)

    @cached_property
    def sizes(self) -> FloatArray:
        """Leaves per bucket."""
        return np.asarray(np.prod(self.boxes[:, :, 1] - self.boxes[:, :, 0], axis=1), dtype=np.float64)

    @cached_property
    def expected(self) -> FloatArray:
        """Number of records behind each bucket, for the size of their own noise."""
        return np.maximum(self.counts, 0.0)

    @cached_property
    def variance(self) -> FloatArray:
        """Variance of each count: privacy noise and the draw of the records."""
        return np.asarray(self.noise.variance + self.expected)

    @cached_property
    def roughness(self) -> tuple[FloatArray, FloatArray]:
        """Squared differences of each bucket from the mean level of its neighbours, and their variances by the noise.

        Where many records share single values, which buckets are too wide or too empty to tell as point masses, the
        differences are far larger than noise explains.
        """
        mesh = Mesh.of(self.boxes, self.spec.leaves)
        first, second = np.concatenate([mesh.first, mesh.second]), np.concatenate([mesh.second, mesh.first])
        faces = np.maximum(np.bincount(first, minlength=len(self.counts)), 1)
        density, variance = self.expected / self.sizes, self.variance / self.sizes**2
        level = np.bincount(first, density[second], minlength=len(self.counts)) / faces
        unknown = np.bincount(first, variance[second], minlength=len(self.counts)) / faces**2
        return (self.counts - level * self.sizes) ** 2, self.variance + unknown * self.sizes**2

    @property
    def widths(self) -> FloatArray:
        """Length of the grid of leaves per axis, in data units."""
        return np.asarray(self.spec.cell_widths * np.array(self.spec.leaves))

    @cached_property
    def low(self) -> FloatArray:
        """Lower end of the grid of leaves per axis, in data units."""
        return np.array([self.spec.edges(axis)[0] for axis in range(self.d)])

    @cached_property
    def high(self) -> FloatArray:
        """Upper end of the grid of leaves per axis, in data units."""
        return np.array([self.spec.edges(axis)[-1] for axis in range(self.d)])

    @property
    def volume(self) -> float:
        """Volume of the grid of leaves, in data units."""
        return float(np.prod(self.widths))

    @cached_property
    def unresolved(self) -> FloatArray:
        """Side of the buckets along each column that is no wider than they are, in data units; 0 for other columns.

        Such a column may be one value. Buckets of different sides then look like different densities.
        """
        clear = self.counts > UNRESOLVED.deviations * self.noise.sd
        if self.d == 1 or not clear.any():
            return np.zeros(self.d)
        weights = self.counts[clear] / self.counts[clear].sum()
        sides = weights @ (self.boxes[clear, :, 1] - self.boxes[clear, :, 0])
        middles = self.boxes[clear].mean(axis=2)
        spread = np.sqrt(weights @ (middles - weights @ middles) ** 2)
        return np.asarray(np.where(spread <= UNRESOLVED.spread * sides, sides * self.spec.cell_widths, 0.0))

    def simulated(self) -> FloatArray:
        """Simulated noise of the counts, shape (simulations, buckets)."""
        rng = np.random.default_rng(SEED)
        size = (LEAF_PEAKS.simulations[self.d], len(self.counts))
        if self.noise.kind == "laplace":
            drawn = rng.laplace(0.0, self.noise.sd / math.sqrt(2), size)
        else:
            drawn = rng.normal(0.0, self.noise.sd, size)
        return np.asarray(drawn + rng.poisson(self.expected, size) - self.expected)

    def fields(self, values: FloatArray, grid: ScaleGrid) -> FloatArray:
        """Smoothed densities of values per bucket, shape (fields, cells); an even density is 1."""
        leaves = self.spec.leaves
        relative = values / self.sizes * (math.prod(leaves) / self.count)
        out = relative[:, self.label]
        for axis, (factor, sigma) in enumerate(zip(grid.factors, grid.sigmas, strict=True)):
            shape = out.shape
            cells = (*shape[: axis + 1], shape[axis + 1] // factor, factor, *shape[axis + 2 :])
            out = out.reshape(cells).mean(axis=axis + 2)
            out = gaussian_filter1d(out, sigma, axis=axis + 1, mode="reflect")
        return np.asarray(out)


@dataclass(frozen=True)
class ScaleGrid:
    """Cells at one bandwidth: leaves per cell and bandwidth in cells, per axis."""

    bandwidth: FloatArray
    factors: tuple[int, ...]
    sigmas: tuple[float, ...]
    axes: tuple[FloatArray, ...]

    @classmethod
    def of(cls, spec: LeafSpec, scale: float | tuple[float, ...]) -> ScaleGrid:
        """Plan the cells for a bandwidth that is this part of each range, or these parts."""
        factors, sigmas, axes, widths = [], [], [], []
        for axis, n in enumerate(spec.leaves):
            leaves = max((scale[axis] if isinstance(scale, tuple) else scale) * n, LEAF_PEAKS.least_leaves)
            most = max(1, int(leaves / LEAF_PEAKS.cells_per_bandwidth))
            factor = next(k for k in range(min(most, n), 0, -1) if n % k == 0)
            edges = spec.edges(axis)
            factors.append(factor)
            sigmas.append(leaves / factor)
            axes.append((edges[:-1:factor] + edges[factor::factor]) / 2)
            widths.append(leaves * spec.cell_widths[axis])
        return cls(np.array(widths), tuple(factors), tuple(sigmas), tuple(axes))

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells per axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def spacing(self) -> FloatArray:
        """Width of a cell per axis, in data units."""
        return np.array([axis[1] - axis[0] if len(axis) > 1 else 1.0 for axis in self.axes])

    def points(self, cells: IntArray) -> FloatArray:
        """Centres of cells given by flat index."""
        index = np.unravel_index(cells, self.shape)
        return np.stack([axis[i] for axis, i in zip(self.axes, index, strict=True)], axis=1)


def dispersion_of(squares: FloatArray, variance: FloatArray) -> FloatArray:
    """Ratio of squared differences and their variances by the noise, where it is more than chance; else 1.

    Examples
    --------
    >>> dispersion_of(np.array([1.5, 12.0]), np.array([1.0, 2.0])).tolist()
    [1.0, 6.0]
    """
    ratio = squares / np.maximum(variance, 1e-300)
    return np.where(ratio > LEAF_PEAKS.dispersed, ratio, 1.0)


def find_heaps(release: LeafRelease) -> tuple[LeafCounts, tuple[PointMass, ...]]:
    """Take point masses out of the released counts, by the rule of :mod:`fogline.density.point_masses`.

    Examples
    --------
    >>> from fogline.density.leaves import BucketCounts
    >>> spec = LeafSpec.plan([(0, 9)], steps=1)
    >>> boxes = np.array([[[i, i + 1]] for i in range(10)])
    >>> stage = BucketCounts(boxes, np.array([300, 80, 100, 120, 100, 80, 60, 40, 20, 10]), Noise("laplace", 2.0))
    >>> counts, heaps = find_heaps(LeafRelease(spec, stage, stage))
    >>> [heap.value for heap in heaps], counts.counts[:3].tolist()
    ([(0.0,)], [80.0, 80.0, 100.0])
    """
    found = take_out_heaps(release)
    spec, stage = found.release.spec, found.release.counts
    kept = found.kept + _rounded_back(spec, stage.boxes, found.heaps, release.total)
    rest = max(release.total - float(stage.counts.sum() - kept.sum()), 1.0)
    counts = LeafCounts(spec, stage.boxes, kept, stage.noise, rest, found.spacing)
    # Noise may put more into the values than there is in all.
    most = max(1.0, sum(heap.share for heap in found.heaps))
    return counts, tuple(_point_mass(spec, heap, most) for heap in found.heaps)


def _rounded_back(spec: LeafSpec, boxes: IntArray, heaps: Sequence[Heap], total: float) -> FloatArray:
    """Records per bucket that go back to the counts where heaps are the rule: a column that most people round.

    Values that end in 0, or even ones, hold most of such a column where buckets are fine enough to show them, and are
    part of wider buckets elsewhere: taken out, they would leave a hole where the column is densest. Each goes back to
    the values nearer to it than to the next one, from which it was rounded.
    """
    back = np.zeros(len(boxes))
    inside = [heap for heap in heaps if heap.box[0, 0] > 0 and heap.box[0, 1] < spec.leaves[0]] if spec.d == 1 else []
    if len(inside) < LEAF_PEAKS.many_heaps or sum(heap.share for heap in inside) < LEAF_PEAKS.most_in_heaps:
        return back
    middles = np.array([heap.box[0].mean() for heap in inside])
    order = np.argsort(middles)
    middles, contents = middles[order], total * np.array([heap.share for heap in inside])[order]
    gaps = np.diff(middles)
    # Far from each other, heaps of different sizes would come back as hills.
    if not spec.steps[0] or np.median(gaps) > LEAF_PEAKS.next_heap:
        return back
    reach = np.minimum(gaps, 2 * np.median(gaps)) / 2
    low = middles - np.concatenate([[np.median(gaps) / 2], reach])
    high = middles + np.concatenate([reach, [np.median(gaps) / 2]])
    starts, stops = boxes[:, 0, 0][:, None], boxes[:, 0, 1][:, None]
    part = np.maximum(np.minimum(stops, high) - np.maximum(starts, low), 0.0) / (high - low)
    return np.asarray(part @ contents)


def _point_mass(spec: LeafSpec, heap: Heap, most: float) -> PointMass:
    value: list[float | None] = []
    low, high = [], []
    for axis, (start, stop) in enumerate(heap.box.tolist()):
        edges = spec.edges(axis)
        bounds = spec.bounds[axis]
        low.append(float(np.clip(edges[start], *bounds)))
        high.append(float(np.clip(edges[stop], *bounds)))
        # A heap in the first or the last cell of a column is most often one at the wall.
        wall = bounds[0] if start == 0 else bounds[1]
        at_wall = start == 0 or stop == spec.leaves[axis]
        middle = float(wall if at_wall else np.clip((edges[start] + edges[stop]) / 2, *bounds))
        value.append(middle if heap.axis in (None, axis) else None)
    return PointMass(tuple(value), tuple(low), tuple(high), float(heap.share / most), float(heap.error))


@dataclass(frozen=True, eq=False)
class ScaleTest:
    """The released density at one scale, the deviation of its noise, and laws of peaks that noise alone raises."""

    counts: LeafCounts
    grid: ScaleGrid
    released: FloatArray
    sd: FloatArray
    inside: Tail
    ridge: Tail | None
    wall: Tail
    effective_tests: float = 1.0

    def chance(self, standing: FloatArray) -> FloatArray:
        """Chance of a peak inside that stands so many deviations high, anywhere, at any of the scales."""
        p = self.inside.chance(standing, self.effective_tests)
        if self.ridge is None:
            return p
        return np.maximum(p, self.ridge.chance(standing, LEAF_PEAKS.ridges * self.effective_tests))

    def needed(self, level: float) -> float:
        """Deviations above which :meth:`chance` falls below ``level``."""
        plain = self.inside.quantile(level, self.effective_tests)
        if self.ridge is None:
            return plain
        return max(plain, self.ridge.quantile(level, LEAF_PEAKS.ridges * self.effective_tests))

    @cached_property
    def _both_ways(self) -> tuple[Peaks, Peaks]:
        return find_peaks_both_ways(self.released[None])

    @property
    def peaks(self) -> Peaks:
        """Peaks of the released density; walls are ways out."""
        return self._both_ways[0]

    @property
    def peaks_with_walls(self) -> Peaks:
        """The same where nothing leads out of the box, so that a peak may stand at a wall."""
        return self._both_ways[1]

    @cached_property
    def standing(self) -> FloatArray:
        """Prominence of each peak over the deviation of the noise; none at a wall, or where buckets are too wide."""
        peaks = self.peaks
        tested = peaks.interior & self.resolved(peaks.cell)
        sd = self.sd * np.sqrt(self.dispersion)
        return np.where(tested, peaks.prominence / sd.ravel()[peaks.cell], -np.inf)

    def resolved(self, cells: IntArray) -> BoolArray:
        """Whether the bucket at each cell is not much wider than the bandwidth: else its shape is that of its box."""
        if self.counts.d == 1:
            return np.ones(len(cells), dtype=bool)
        index = np.unravel_index(cells, self.grid.shape)
        leaf = tuple(i * f + f // 2 for i, f in zip(index, self.grid.factors, strict=True))
        box = self.counts.boxes[self.counts.label[leaf]]
        sides = (box[:, :, 1] - box[:, :, 0]) * self.counts.spec.cell_widths
        return np.asarray((sides <= LEAF_PEAKS.widest_bucket * self.grid.bandwidth).all(axis=1))

    def layer(self, scale: int) -> Layer:
        """Peaks inside the box with their p-values."""
        p = np.where(np.isfinite(self.standing), self.chance(self.standing), 1.0)
        return self._layer(scale, self.peaks, p)

    @cached_property
    def dispersion(self) -> FloatArray:
        """How many times the noise explains do neighbouring buckets differ around each cell; 1 where noise may do."""
        squares, variance = (self.counts.fields(part[None], self.grid)[0] for part in self.counts.roughness)
        return dispersion_of(squares, variance)

    def wall_layer(self, scale: int) -> Layer:
        """Peaks at walls with their p-values; all others have 1."""
        peaks = self.peaks_with_walls
        standing = np.where(peaks.interior, -np.inf, peaks.prominence / self.sd.ravel()[peaks.cell])
        p = np.where(peaks.interior, 1.0, self.wall.chance(standing, self.effective_tests))
        return self._layer(scale, peaks, p)

    def _layer(self, scale: int, peaks: Peaks, p: FloatArray) -> Layer:
        start = np.array([axis[0] for axis in self.grid.axes])
        return Layer(scale, self.released, peaks, self.grid.points(peaks.cell), p, start, self.grid.spacing)


def read_scales(counts: LeafCounts, scales: Sequence[float | tuple[float, ...]] | None = None) -> tuple[ScaleTest, ...]:
    """Read the counts at some scales, finest first, and simulate what noise alone would show there."""
    d = counts.d
    noise = counts.simulated()
    tests, rarest = [], np.full(len(noise), np.inf)
    for grid in _grids(counts, scales):
        fields = counts.fields(noise, grid)
        sd = _deviation(fields, grid)
        where, standing, at_walls = _noise_peaks(fields, sd)
        inside = Tail.fit(standing, len(noise), LEAF_PEAKS.tail_peaks[d])
        largest = np.full(len(noise), -np.inf)
        np.maximum.at(largest, where, standing)
        rarest = np.minimum(rarest, inside.expected(largest))
        wall = Tail.fit(at_walls, len(noise), LEAF_PEAKS.wall_peaks[d])
        ridge = None if d == 1 else ridge_tail(fields / sd)
        released = counts.fields(counts.counts[None], grid)[0]
        tests.append(ScaleTest(counts, grid, released, sd, inside, ridge, wall))
    # With R independent scales the rarest of R Exp(1) variables has mean 1/R: read the number that counts from it.
    effective = float(np.clip(1 / np.mean(rarest), 1.0, len(tests)))
    return tuple(ScaleTest(t.counts, t.grid, t.released, t.sd, t.inside, t.ridge, t.wall, effective) for t in tests)


def _grids(counts: LeafCounts, scales: Sequence[float | tuple[float, ...]] | None) -> list[ScaleGrid]:
    """Grids of the scales that are read; without those at which a column of about one value would not be resolved."""
    if scales is not None:
        return [ScaleGrid.of(counts.spec, scale) for scale in scales]
    grids = [ScaleGrid.of(counts.spec, scale) for scale in LEAF_PEAKS.scales[counts.d]]
    wide = [grid for grid in grids if np.all(grid.bandwidth >= UNRESOLVED.bandwidths * counts.unresolved)]
    return wide or grids[-1:]


def _noise_peaks(fields: FloatArray, sd: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Peaks of simulated noise: the field and the standing of each inside the box, and standings of those at walls."""
    if fields.ndim == 2:
        field, cell, prominence = line_prominences(fields)
        _, wall, at_wall = wall_prominences(fields)
        return field, prominence / sd[cell], at_wall / sd[wall]
    peaks, ends = find_peaks_both_ways(fields)
    standing, at_walls = peaks.prominence / sd.ravel()[peaks.cell], ends.prominence / sd.ravel()[ends.cell]
    return peaks.field[peaks.interior], standing[peaks.interior], at_walls[~ends.interior]


def _deviation(fields: FloatArray, grid: ScaleGrid) -> FloatArray:
    """Deviation of simulated noise, the largest within two bandwidths: a pass may lie where there is more of it."""
    variance = np.mean(fields**2, axis=0)
    for axis, sigma in enumerate(grid.sigmas):
        variance = gaussian_filter1d(variance, sigma, axis=axis, mode="reflect")
    for axis, sigma in enumerate(grid.sigmas):
        variance = maximum_filter1d(variance, 2 * round(2 * sigma) + 1, axis=axis, mode="nearest")
    return np.asarray(np.sqrt(np.maximum(variance, 1e-300)))


# -- walls ---------------------------------------------------------------------------------------------------


def rise_from_wall(
    counts: LeafCounts, place: FloatArray, axis: int, side: str, window: FloatArray, heaps: Sequence[PointMass] = ()
) -> float:
    r"""Chance of so much more inside than at a wall if the density beside a place is highest at the wall.

    Records within a window of the other columns are added up along the axis, from the wall on. Where the density is
    highest at the wall for every value of the other columns, so is this sum. Stretches of :math:`\ell` slabs, for
    :math:`\ell = 1, 2, 4`, are compared with the :math:`\ell` slabs at the wall: differences of means of counts,
    with a known variance. The chance of the clearest one counts all that were tried.

    Parameters
    ----------
    counts : LeafCounts
    place : array of shape (d,)
    axis : int
    side : {"low", "high"}
    window : array of shape (d,)
        Half-width along each other column; along the axis, the reach of the comparison over `LEAF_PEAKS.reach`.
    heaps : sequence of PointMass
        What was taken out of the counts: at a wall, the comparison begins behind it.

    Examples
    --------
    >>> spec = LeafSpec.plan([(0, 64)], leaves=[64])
    >>> boxes = np.array([[[i, i + 1]] for i in range(64)])
    >>> x = np.arange(64) + 0.5
    >>> shapes = [400 * np.exp(-0.5 * ((x - top) / 6) ** 2) for top in (0, 5)]
    >>> columns = [LeafCounts(spec, boxes, y, Noise("laplace", 1.0), y.sum()) for y in shapes]
    >>> [bool(rise_from_wall(column, np.zeros(1), 0, "low", np.array([6.0])) < 0.05) for column in columns]
    [False, True]
    """
    boxes, cell = counts.boxes.astype(np.float64), counts.spec.cell_widths
    inside = np.ones(len(boxes))
    for other in range(counts.d):
        if other != axis:
            ends = (
                np.array([-1.0, 1.0]) * window[other] / cell[other] + (place[other] - counts.low[other]) / cell[other]
            )
            overlap = np.minimum(boxes[:, other, 1], ends[1]) - np.maximum(boxes[:, other, 0], ends[0])
            inside *= np.maximum(overlap, 0.0) / (boxes[:, other, 1] - boxes[:, other, 0])
    spans = boxes[:, axis] if side == "low" else counts.spec.leaves[axis] - boxes[:, axis, ::-1]
    wall = counts.spec.bounds[axis][0 if side == "low" else 1]
    behind = max([0.0, *((h.high[axis] - h.low[axis]) / cell[axis] for h in heaps if h.value[axis] == wall)])
    reach = behind + LEAF_PEAKS.reach * window[axis] / cell[axis]
    near = (inside > 0) & (spans[:, 0] < reach)
    edges = np.unique(np.concatenate([spans[near].ravel(), [behind, reach]]))
    edges = edges[(edges >= behind - 1e-9) & (edges <= reach)]
    part = np.maximum(np.minimum(spans[:, 1:], edges[1:]) - np.maximum(spans[:, :1], edges[:-1]), 0.0)
    part *= (inside / (spans[:, 1] - spans[:, 0]))[:, None]
    return _clearest_rise(part, np.diff(edges), counts)


def _clearest_rise(part: FloatArray, widths: FloatArray, counts: LeafCounts) -> float:
    """Chance of the clearest of several differences between stretches of slabs and those at the wall."""
    best, tests = -np.inf, 0
    for length in (1, 2, 4):
        for start in range(length, 5 * length, length):
            stop = start + length
            if stop > len(widths):
                break
            weights = part[:, start:stop].sum(axis=1) / widths[start:stop].sum()
            weights = weights - part[:, :length].sum(axis=1) / widths[:length].sum()
            sd = math.sqrt(float(weights**2 @ counts.variance))
            best, tests = max(best, float(weights @ counts.counts) / max(sd, 1e-300)), tests + 1
    return min(1.0, tests * float(ndtr(-best))) if tests else 1.0


# -- plateaus ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roundness:
    """How a hill differs from a block: even between two ends, and lower on both sides.

    Attributes
    ----------
    deviations : float
        By how many deviations the densest third of the block that fits best exceeds the others; the least over the
        axes, so that a ridge is as flat as a plateau. Infinite where the block has too few slabs to be cut.
    of_normal : float
        About what a normal peak of this height would show.
    cuts : int
        How many thirds were compared.
    level_top : bool
        Whether the highest step of the block, if it has several, surely is level: a plateau with a shoulder.
    """

    deviations: float
    of_normal: float
    cuts: int
    level_top: bool = False

    @property
    def p_value(self) -> float:
        """Chance that a block looks as little even; the choice of its ends counts as several tries."""
        return min(1.0, LEAF_PEAKS.ends * self.cuts * float(ndtr(-self.deviations)))

    @property
    def is_block(self) -> bool:
        """Whether a normal peak would show far more: even on top, with steep sides."""
        doubt = LEAF_PEAKS.doubt
        return self.deviations < self.of_normal - doubt and self.deviations < doubt


def measure_roundness(
    counts: LeafCounts, place: FloatArray, hill: BoolArray | None = None, *, side: str = ""
) -> Roundness:
    r"""Fit a block to a hill along each axis and compare the thirds of the block.

    Along an axis the content of the hill is added up in slabs :math:`x_1, \dots, x_K`. The block covers the slabs
    :math:`i, \dots, k - 1`, its ends may lie inside the slabs next to these, and further out there is one level on
    either side. The five levels and the two ends that make the counts most likely (Poisson) are taken. On a block the
    thirds differ only by noise; on a hill with tails the block that fits best reaches far down its flanks, and the
    middle third holds much more.

    Parameters
    ----------
    counts : LeafCounts
    place : array of shape (d,)
        Where the peak is.
    hill : array of bool, one per bucket, optional
        Buckets that belong to the peak; all by default.
    side : {"", "low", "high"}
        For a peak at a wall of a single column: only the third at this wall may be the densest.

    Examples
    --------
    >>> spec = LeafSpec.plan([(0, 64)], leaves=[64])
    >>> boxes = np.array([[[i, i + 1]] for i in range(64)])
    >>> x = np.arange(64) + 0.5
    >>> bell, block = 400 * np.exp(-0.5 * ((x - 32) / 6) ** 2), np.where(np.abs(x - 32) < 12, 400.0, 0.0)
    >>> shapes = [LeafCounts(spec, boxes, y, Noise("laplace", 1.0), y.sum()) for y in (bell, block)]
    >>> [bool(measure_roundness(shape, np.array([32.0])).p_value < 0.05) for shape in shapes]
    [True, False]
    """
    mine = np.ones(len(counts.counts), dtype=bool) if hill is None else hill
    found = [_axis_roundness(counts, place, mine, axis, side) for axis in range(counts.d)]
    # A ridge is even along its crest: the least round axis decides.
    return min(found, key=lambda one: one.deviations)


def _axis_roundness(counts: LeafCounts, place: FloatArray, hill: BoolArray, axis: int, side: str) -> Roundness:
    boxes, values = counts.boxes[hill, axis].astype(np.float64), counts.counts[hill]
    ends = np.sort(np.append(boxes[:, 0], boxes[:, 1].max()))
    most = LEAF_PEAKS.slabs[counts.d]
    edges = np.unique(ends[np.round(np.linspace(0, len(ends) - 1, min(most, len(ends) - 1) + 1)).astype(int)])
    if len(edges) < 4:
        return Roundness(np.inf, 0.0, 1)
    # Part of each bucket in each slab; a bucket is even inside.
    inner = np.minimum(boxes[:, 1:], edges[1:]) - np.maximum(boxes[:, :1], edges[:-1])
    part = np.maximum(inner, 0.0) / (boxes[:, 1:] - boxes[:, :1])
    widths = np.diff(edges)
    leaf = (place[axis] - counts.low[axis]) / counts.spec.cell_widths[axis]
    at = int(np.clip(np.searchsorted(edges, leaf, side="right") - 1, 0, len(widths) - 1))
    first, last = _best_block(values @ part, widths, at, side)
    if last - first < 3:
        return Roundness(np.inf, 0.0, 1)
    block = part[:, first:last]
    centre = (edges[first:last] + edges[first + 1 : last + 1]) / 2
    third = np.clip((3 * (centre - edges[first]) / (edges[last] - edges[first])).astype(int), 0, 2)
    size, inside = widths[first:last], block.sum(axis=1)
    level = max(float(values @ inside) / float(size.sum()), 0.0)
    # Variance as it is on a block: that of the noise, and an even share of the records.
    expected = (block * (level * size / np.maximum(block.sum(axis=0), 1e-300))).sum(axis=1)
    variance = counts.noise.variance + np.maximum(expected, 0.0)
    best, normal, cuts = -np.inf, np.inf, 0
    for k in {"low": (0,), "high": (2,)}.get(side, (0, 1, 2)):
        here, rest = third == k, third != k
        if not here.any() or not rest.any():
            continue
        weights = block[:, here].sum(axis=1) / size[here].sum() - block[:, rest].sum(axis=1) / size[rest].sum()
        sd = math.sqrt(float(weights**2 @ variance))
        best, cuts = max(best, float(weights @ values) / sd), cuts + 1
        normal = min(normal, LEAF_PEAKS.roundness * level / sd)
    if not cuts:
        return Roundness(np.inf, 0.0, 1)
    level_top = counts.d == 1 and not side and _level_top(values, part, widths, (first, last), at, counts.noise)
    return Roundness(best, normal, cuts, level_top)


def _level_top(
    values: FloatArray, part: FloatArray, widths: FloatArray, block: tuple[int, int], at: int, noise: Noise
) -> bool:
    r"""Whether the highest step of a block of several steps is level; one column.

    Stairs are no block, so that the thirds of the block differ; but their highest step has no mode either. The three
    levels that make the counts of the block most likely are taken, the middle one around the peak. A third of that
    step that is denser than the others by :math:`c`, and a step that stands :math:`C` above the stretch of a third of
    its length beside it, have :math:`c = C/3` on a parabola and more than that on a normal hill. Without its ends,
    which may be soft, a level step is even but for noise.
    """
    first, last = _best_step(values @ part, widths, block, at)
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    if last - first < 3:
        return False

    def mean(low: float, high: float) -> FloatArray:
        """Weights of the mean level between two places, on the counts."""
        share = np.maximum(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0.0) / widths
        return np.asarray(part @ share / (high - low))

    def thirds(low: float, high: float) -> list[FloatArray]:
        return [mean(start, stop) for start, stop in pairwise(np.linspace(low, high, 4).tolist())]

    variance = noise.variance + np.maximum(values, 0.0)

    def standing(weights: FloatArray) -> float:
        return float(weights @ values) / math.sqrt(float(weights**2 @ variance))

    start, stop, length = float(edges[first]), float(edges[last]), float(edges[last] - edges[first])
    ends, whole = LEAF_PEAKS.trimmed * length, thirds(start, stop)
    beside = []
    if start - length / 3 >= 0:
        beside.append(whole[0] - mean(start - length / 3, start))
    if stop + length / 3 <= edges[-1]:
        beside.append(whole[2] - mean(stop, stop + length / 3))
    even = max(map(standing, _denser(thirds(start + ends, stop - ends)))) < LEAF_PEAKS.uneven
    return (
        even
        and max(
            (standing(more - LEAF_PEAKS.level_top * above) for above in beside for more in _denser(whole)),
            default=np.inf,
        )
        < -LEAF_PEAKS.surely_level
    )


def _denser(thirds: Sequence[FloatArray]) -> list[FloatArray]:
    """Weights of what each third has above the mean of the other two."""
    return [np.asarray(1.5 * own - sum(thirds) / 2) for own in thirds]


def _best_step(content: FloatArray, widths: FloatArray, block: tuple[int, int], at: int) -> tuple[int, int]:
    """Slabs of the most likely step around a slab inside a block: first, and one after the last."""
    gain = _level_gain(content, widths)
    first, last = np.arange(block[0], at + 1), np.arange(at + 1, block[1] + 1)
    i, k = (part.ravel() for part in np.meshgrid(first, last, indexing="ij"))
    likelihood = gain(np.full_like(i, block[0]), i) + gain(i, k) + gain(k, np.full_like(k, block[1]))
    best = int(np.argmax(likelihood))
    return int(i[best]), int(k[best])


def _level_gain(content: FloatArray, widths: FloatArray) -> Callable[[IntArray, IntArray], FloatArray]:
    """Log likelihood of slabs from one index up to another, if their density is even."""
    mass, length = (np.concatenate([[0.0], np.cumsum(part)]) for part in (content, widths))

    def gain(low: IntArray, high: IntArray) -> FloatArray:
        records, width = np.maximum(mass[high] - mass[low], 0.5), np.maximum(length[high] - length[low], 1e-300)
        return np.asarray(np.where(high > low, records * np.log(records / width), 0.0))

    return gain


def _best_block(content: FloatArray, widths: FloatArray, at: int, side: str) -> tuple[int, int]:
    """Slabs of the most likely block around a slab: first, and one after the last."""
    size, gain = len(widths), _level_gain(content, widths)
    first = np.zeros(1, dtype=np.int64) if side == "low" else np.arange(at + 1)
    last = np.full(1, size) if side == "high" else np.arange(at + 1, size + 1)
    i, k = (part.ravel() for part in np.meshgrid(first, last, indexing="ij"))
    before, after = np.maximum(i - 1, 0), np.minimum(k + 1, size)
    likelihood = gain(i, k) + gain(np.zeros_like(i), before) + gain(before, i) + gain(k, after)
    likelihood += gain(after, np.full_like(k, size))
    best = int(np.argmax(likelihood))
    return int(i[best]), int(k[best])
