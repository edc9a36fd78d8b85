r"""Do two groups have the same shape? A test that sees their released densities and nothing else.

With the released Fourier sums :math:`\hat F_m` of a group and its released count :math:`\hat n`, the shape is
:math:`\hat\varphi_m = \hat F_m/\hat n`. The test looks at the difference at a range of bandwidths,

.. math:: T_h = \sum_{m \ne 0} e^{-|h\omega_m|^2}\, \frac{|\hat\varphi^a_m - \hat\varphi^b_m|^2}{v_m}, \qquad
          v_m = \sum_{g = a, b} \Bigl(\frac{2\sigma_g^2}{w_m \hat n_g^2} + \frac{1}{\hat n_g}\Bigr),

each frequency in units of its own noise: the privacy noise, known exactly, and the draw of the records. What the
largest standardised :math:`T_h` would be if both groups had one shape is found by simulation: records are drawn from
the pooled release, as many for each group as it has, and privacy noise is added as it was. The seed is fixed, so that a
pair of releases has one p-value. The pooled release is a little smoother than the truth, which errs on the side of
seeing no difference. All of it is post-processing: free, as often as one likes.

**Releases on leaves** are compared by linear functions of their counts, whose law is known. Each group g has buckets of
its own, chosen from its own pilot. *Common cells* are the finest sets of leaves that are unions of buckets in both
groups: the connected parts of the graph that joins two buckets, one of each group, wherever they overlap. A cell c of
:math:`k_{gc}` buckets has the released count

.. math:: y_{gc} = N_{gc} + \sum_{i=1}^{k_{gc}} Z_{gci}, \qquad N_{gc} \sim \mathrm{Poisson}(n_g p_c),

with the share :math:`p_c` of the density in the cell and noise Z of known law. How records spread inside a bucket,
which nobody knows, is in neither term: where both groups have one density the shares of the cells are equal, whatever
the buckets are. A function :math:`\varphi_m` with values :math:`\varphi_{mc}` on the cells is estimated by

.. math:: f_{gm} = \frac{1}{\hat n_g} \sum_c y_{gc} \bigl(\varphi_{mc} - \bar\varphi_m\bigr), \qquad
          \bar\varphi_m = \sum_c p_c \varphi_{mc},

so that :math:`f_{am} - f_{bm}` has mean zero under one density (an error of :math:`\hat n_g` enters in second order
only, because the functions are centred) and the variance

.. math:: v_m = \sum_g \frac{1}{\hat n_g} \sum_c \Bigl(p_c + \frac{k_{gc} \sigma_g^2}{\hat n_g}\Bigr)
          (\varphi_{mc} - \bar\varphi_m)^2 .

The functions are products of cosines of the pooled ranks of a record in each column, so that skewed and wide columns
are seen where their records are. Sums of squares with weights from smooth to rough are compared with those of
simulated counts of the law above, with the same cells, the same numbers of buckets and another posterior draw of the
pooled shares each time. The seed is fixed. The simulation holds the partitions fixed, although they come from pilots of
the same records; ``docs/strata.md`` has how often equal groups are told apart all the same.

Before, means of functions inside buckets were taken under the pooled estimate. What that gets wrong inside a bucket is
a difference between groups with different buckets, and the level did not hold.

References
----------
Gretton, Borgwardt, Rasch, Schoelkopf and Smola (2012), A kernel two-sample test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft as scipy_fft
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fogline._results import ReadingResults
from fogline._typing import ComplexArray, FloatArray, IntArray
from fogline._validation import check_count, check_level
from fogline.density.components.leaf_cells import group_starts, joined_groups
from fogline.density.grid_reading import Reading
from fogline.density.leaves import LeafRelease, LeafSpec, Noise
from fogline.density.posterior.field import label_leaves
from fogline.density.private_density import PrivateDensity
from fogline.density.spec import SketchSpec

__all__ = ["LEAF_COMPARISON", "CommonCells", "LeafComparisonSettings", "LeafTest", "ShapeComparison", "compare_shapes"]

SIMULATIONS = {1: 999, 2: 399, 3: 99}
"""Simulated pairs by the number of axes."""

BANDWIDTHS = 6
"""Bandwidths that are looked at, from the smallest to the largest that the release can be read at."""

GROUPS = (64, 24, 8)
"""Most cells per axis in which leaves are looked at for the place of a difference."""

CLEAR_COUNT = 4.0
"""A group is compared if its released count is so many noise deviations above zero."""

BATCH = 2**22
"""Grid points, or counts of buckets, simulated at a time."""


@dataclass(frozen=True)
class ShapeComparison(ReadingResults):
    """What a comparison of two groups showed.

    Attributes
    ----------
    p_value : float
        Chance of a difference as large if both groups had the same shape; at least one over the simulations.
    statistic : float
        The largest standardised difference over the bandwidths.
    bandwidth : array of shape (d,)
        Bandwidth at which the difference is clearest; for releases on leaves, the cell around the place.
    place : array of shape (d,)
        Where the densities differ most at that bandwidth.
    difference : float
        By how much there: the first group's density less the second's.
    simulations : int
    message : str
        Why there was nothing to compare; else empty.
    """

    p_value: float
    statistic: float
    bandwidth: FloatArray
    place: FloatArray
    difference: float
    simulations: int
    message: str = ""

    def differs(self, level: float = 0.05) -> bool:
        """Whether the shapes differ at a level."""
        return self.p_value <= check_level(level)


def compare_shapes(first: PrivateDensity, second: PrivateDensity, *, simulations: int | None = None) -> ShapeComparison:
    """Test whether two groups have the same shape, from their released densities.

    Parameters
    ----------
    first, second : PrivateDensity
        Of the same specification and different people: two strata, two sites, two years. Up to three axes.
    simulations : int, optional
        Simulated pairs of groups with one shape; by default 999, 399 or 99 by the number of axes.

    Returns
    -------
    ShapeComparison

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> rng = np.random.default_rng(0)
    >>> groups = [rng.normal(4, 1, 3000), rng.normal(4, 1, 2000), rng.normal(5, 1, 2000)]
    >>> a, b, c = (DensitySketch([(0, 10)]).update(x).release(epsilon=1.0, delta=1e-6) for x in groups)
    >>> compare_shapes(a, c).p_value
    0.001
    >>> compare_shapes(a, b).simulations
    999
    """
    for density, name in ((first, "first"), (second, "second")):
        if not isinstance(density, PrivateDensity):
            raise TypeError(f"{name} must be a PrivateDensity, got {type(density).__name__}")
        if not isinstance(density.spec, SketchSpec | LeafSpec):
            raise ValueError(f"{name} has random features: shapes of up to three axes can be compared")
    first.spec.require_same(second.spec)
    runs = SIMULATIONS[first.spec.d] if simulations is None else check_count(simulations, "simulations", minimum=19)
    if any(group.count < CLEAR_COUNT * group.count_sd for group in (first, second)):
        nowhere = np.full(first.spec.d, np.nan)
        words = "one of the groups has too few records to be compared: its count is hardly above the noise"
        return ShapeComparison(1.0, 0.0, nowhere, nowhere, 0.0, runs, words)
    if isinstance(first.spec, LeafSpec):
        return _compare_leaves(first, second, runs)
    test = _Test(first, second)
    observed = test.statistics(*(group.coefficients for group in (first, second)))
    null = test.simulate(runs)
    centre, spread = null.mean(axis=0), null.std(axis=0)
    standardised = (observed - centre) / spread
    best = int(np.argmax(standardised))
    largest = ((null - centre) / spread).max(axis=1)
    p_value = (1 + int(np.sum(largest >= standardised[best]))) / (runs + 1)
    place, difference = test.largest_difference(best)
    return ShapeComparison(p_value, float(standardised[best]), test.bandwidths[best], place, difference, runs)


def _compare_leaves(first: PrivateDensity, second: PrivateDensity, runs: int) -> ShapeComparison:
    """Test two releases on leaves, and find where their posteriors differ most beyond their errors."""
    assert first.leaves is not None
    assert second.leaves is not None
    masses = [density.posterior.masses() for density in (first, second)]
    counts, d = (first.count, second.count), first.spec.d
    pooled = (counts[0] * masses[0].estimate + counts[1] * masses[1].estimate) / sum(counts)
    size = min(len(part.draws) for part in masses)
    draws = (counts[0] * masses[0].draws[:size] + counts[1] * masses[1].draws[:size]) / sum(counts)
    test = LeafTest((first.leaves, second.leaves), pooled, draws)
    p_value, statistic, best = test.run(runs)
    # cells as fine as the functions that show the difference
    groups = max(2, min(GROUPS[d - 1], round(2 * LEAF_COMPARISON.smoothness[best])))
    margins = [pooled.sum(axis=tuple(k for k in range(d) if k != axis)) for axis in range(d)]
    starts = [group_starts(margin, groups) for margin in margins]
    estimate = [joined_groups(part.estimate, starts) for part in masses]
    variance = [joined_groups(part.draws, starts).var(axis=0) for part in masses]
    gap = estimate[0] - estimate[1]
    place = np.unravel_index(int(np.argmax(np.abs(gap) / np.sqrt(sum(variance) + 1e-12))), gap.shape)
    edges = [np.append(first.spec.edges(k)[starts[k]], first.spec.edges(k)[-1]) for k in range(d)]
    low, high = (np.array([edge[i + side] for edge, i in zip(edges, place, strict=True)]) for side in (0, 1))
    difference = float(gap[place] / np.prod(high - low))
    middle = np.clip((low + high) / 2, first.spec.lower, first.spec.upper)
    return ShapeComparison(p_value, statistic, high - low, middle, difference, runs)


class _Test:
    """What two releases have in common: frequencies, bandwidths, noise, and the pooled shape."""

    def __init__(self, first: PrivateDensity, second: PrivateDensity) -> None:
        self.groups = (first, second)
        self.spec: SketchSpec = first.spec
        low, high = self.spec.readable
        steps = np.geomspace(1.0, float(high[0] / low[0]) / 1.5, BANDWIDTHS)
        self.bandwidths = steps[:, None] * low
        self.reading = Reading(self.spec, first.coefficients, self._sd(first), first.count, self.bandwidths[0])
        self.kept = self.reading.kept
        spectra = np.array([self.spec.spectrum(h) for h in self.bandwidths])[:, self.kept]
        variance = sum(2 * (self._sd(group) / group.count) ** 2 + 1 / group.count for group in self.groups)
        self.weights = (spectra**2 / np.asarray(variance)[self.kept])[:, 1:]

    @staticmethod
    def _sd(group: PrivateDensity) -> FloatArray:
        return np.asarray(group.noise_scale / np.sqrt(group.weights))

    def statistics(self, first: ComplexArray, second: ComplexArray) -> FloatArray:
        """One statistic a bandwidth, of sums of shape (..., F) of all frequencies or of the kept ones."""
        shapes = []
        for sums in (first, second):
            kept = sums[..., self.kept] if sums.shape[-1] == len(self.kept) else sums
            shapes.append(kept[..., 1:] / np.maximum(kept[..., :1].real, 1.0))
        return np.asarray((np.abs(shapes[0] - shapes[1]) ** 2) @ self.weights.T)

    def simulate(self, runs: int) -> FloatArray:
        """Statistics of pairs of groups drawn from the pooled release, of shape (runs, bandwidths)."""
        rng = np.random.default_rng(20)
        shape = self.reading.grid_shape(2.0)
        mass = self._pooled_mass(shape)
        size = max(1, BATCH // math.prod(shape))
        rows = []
        for start in range(0, runs, size):
            count = min(size, runs - start)
            pair = [self._draw(rng, group, mass, shape, count) for group in self.groups]
            rows.append(self.statistics(pair[0], pair[1]))
        return np.concatenate(rows)

    def _pooled_mass(self, shape: tuple[int, ...]) -> FloatArray:
        """Share of the records at each grid point of the box, both groups together."""
        first, second = self.groups
        released = first._released + second._released
        scale = math.hypot(first._scale, second._scale)
        pooled = PrivateDensity(self.spec, released, scale=scale, guarantee=first.guarantee)
        reading = pooled.reading()
        wide = tuple(max(a, b) for a, b in zip(shape, reading.grid_shape(2.0), strict=True))
        values = reading.fields(reading.coefficients[None], wide)[0] if wide == shape else self._at(reading, shape)
        mass = np.maximum(values, 0.0)
        return np.asarray(mass / mass.sum()) if mass.sum() > 0 else np.full(values.shape, 1 / values.size)

    def _at(self, reading: Any, shape: tuple[int, ...]) -> FloatArray:
        axes = self.reading.grid_axes(shape)
        points = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
        return np.asarray(reading.value(points)).reshape(tuple(len(a) for a in axes))

    def _draw(
        self, rng: np.random.Generator, group: PrivateDensity, mass: FloatArray, shape: tuple[int, ...], runs: int
    ) -> ComplexArray:
        """Noisy Fourier sums of simulated records of one group, of shape (runs, kept frequencies)."""
        torus = np.zeros((runs, *shape))
        inside = tuple(slice(0, size) for size in mass.shape)
        torus[(slice(None), *inside)] = rng.poisson(group.count * mass, size=(runs, *mass.shape))
        spectrum = scipy_fft.fftn(torus, axes=tuple(range(1, 1 + self.spec.d)))
        index = tuple(self.reading.frequencies.T % np.array(shape)[:, None])
        start = np.exp(-1j * (self.reading.angular @ (self.spec.lower - self.spec.origin)))
        sums = spectrum[(slice(None), *index)] * start
        sd = self._sd(group)[self.kept]
        noise = rng.normal(size=sums.shape) + 1j * np.where(np.arange(len(sd)) == 0, 0.0, rng.normal(size=sums.shape))
        return np.asarray(sums + sd * noise)

    def largest_difference(self, best: int) -> tuple[FloatArray, float]:
        """Where, and by how much, the densities differ most at one of the bandwidths."""
        grids = [group.grid(self.bandwidths[best]) for group in self.groups]
        difference = grids[0].values - grids[1].values
        place = int(np.argmax(np.abs(difference)))
        return grids[0].points(np.array([place]))[0], float(difference.ravel()[place])


@dataclass(frozen=True)
class LeafComparisonSettings:
    """Tuned numbers of the test.

    Attributes
    ----------
    frequencies : tuple of int
        Highest frequency of a cosine, for one, two and three columns.
    smoothness : tuple of float
        Widths of the weights, in frequencies, from rough to smooth.
    """

    frequencies: tuple[int, int, int] = (40, 12, 6)
    smoothness: tuple[float, ...] = (40.0, 12.0, 6.0, 3.0, 1.5)


LEAF_COMPARISON = LeafComparisonSettings()

SEED = 20


class LeafTest:
    """What two releases have in common: functions, their noise, and the pooled shape.

    Parameters
    ----------
    releases : pair of LeafRelease
        On the same leaves.
    pooled : array of the leaves' shape
        Pooled share of each leaf.
    draws : array of shape (draws, *leaves)
        Pooled shares in posterior draws.
    settings : LeafComparisonSettings, optional
    """

    def __init__(
        self,
        releases: tuple[LeafRelease, LeafRelease],
        pooled: FloatArray,
        draws: FloatArray,
        settings: LeafComparisonSettings = LEAF_COMPARISON,
    ) -> None:
        self.releases = releases
        self.counts = [max(release.total, 1.0) for release in releases]
        self.cells = CommonCells.of(*releases)
        numbers, values = _functions(pooled, settings.frequencies[pooled.ndim - 1])
        share, means = self.cells.means(pooled.ravel(), values)
        self.means = means - share @ means
        self.drawn = self.cells.shares(draws.reshape(len(draws), -1))
        variance = np.zeros(len(values))
        for release, buckets, n in zip(releases, self.cells.buckets, self.counts, strict=True):
            size = np.bincount(buckets, minlength=self.cells.size)
            variance += (share / n + size * release.counts.noise.variance / n**2) @ self.means**2
        length = np.sqrt((numbers**2).sum(axis=1))
        weights = np.exp(-((length / np.array(settings.smoothness)[:, None]) ** 2) / 2)
        self.weights = weights / np.maximum(variance, 1e-300)

    def _statistics(self, counts: list[FloatArray]) -> FloatArray:
        """One statistic per width, for rows of counts of the cells of both groups."""
        first, second = (y @ self.means / n for y, n in zip(counts, self.counts, strict=True))
        return np.asarray((first - second) ** 2 @ self.weights.T)

    def run(self, simulations: int) -> tuple[float, float, int]:
        """Chance of a difference as large, the largest standardised difference, and the width it is largest at."""
        released = [r.counts.counts[None].astype(np.float64) for r in self.releases]
        observed = self._statistics([self.cells.sums(y, group) for group, y in enumerate(released)])[0]
        null = self._null(simulations)
        centre, spread = null.mean(axis=0), np.maximum(null.std(axis=0), 1e-300)
        standardised = (observed - centre) / spread
        best = int(standardised.argmax())
        largest = ((null - centre) / spread).max(axis=1)
        p_value = (1 + int(np.sum(largest >= standardised[best]))) / (simulations + 1)
        return p_value, float(standardised[best]), best

    def _null(self, simulations: int) -> FloatArray:
        """Statistics of simulated pairs of groups with one density."""
        rng = np.random.default_rng(SEED)
        size = max(1, BATCH // max(len(release.counts) for release in self.releases))
        rows = []
        for start in range(0, simulations, size):
            runs = min(size, simulations - start)
            share = self.drawn[np.arange(start, start + runs) % len(self.drawn)]
            pair = []
            for group, (release, n) in enumerate(zip(self.releases, self.counts, strict=True)):
                noise = _draw_noise(rng, release.counts.noise, (runs, len(release.counts)))
                pair.append(rng.poisson(n * share) + self.cells.sums(noise, group))
            rows.append(self._statistics(pair))
        return np.concatenate(rows)


@dataclass(frozen=True, eq=False)
class CommonCells:
    """The finest cells that are unions of buckets of both releases.

    Attributes
    ----------
    size : int
        Number of cells.
    leaves : array of shape (leaves,)
        Cell of each leaf.
    buckets : pair of arrays
        Cell of each bucket, for both releases.

    Examples
    --------
    >>> from fogline.density.leaves import BucketCounts, LeafSpec
    >>> spec = LeafSpec.plan([(0, 1)], leaves=[4])
    >>> def counted(*edges):
    ...     boxes = np.array([[pair] for pair in zip(edges[:-1], edges[1:])])
    ...     found = BucketCounts(boxes, np.zeros(len(boxes), dtype=np.int64), Noise("laplace", 1.0))
    ...     return LeafRelease(spec, found, found)
    >>> CommonCells.of(counted(0, 1, 2, 4), counted(0, 2, 3, 4)).leaves.tolist()
    [0, 0, 1, 1]
    """

    size: int
    leaves: IntArray
    buckets: tuple[IntArray, IntArray]

    @classmethod
    def of(cls, first: LeafRelease, second: LeafRelease) -> CommonCells:
        """Join the buckets of two releases on the same leaves where they overlap."""
        labels = [label_leaves(r.counts.boxes, r.spec.leaves).ravel() for r in (first, second)]
        sizes = [len(r.counts) for r in (first, second)]
        total = sum(sizes)
        edges = (np.ones(len(labels[0])), (labels[0], labels[1] + sizes[0]))
        size, cell = connected_components(coo_array(edges, shape=(total, total)), directed=False)
        cell = cell.astype(np.int64)
        return cls(int(size), cell[labels[0]], (cell[: sizes[0]], cell[sizes[0] :]))

    def sums(self, rows: FloatArray, group: int) -> FloatArray:
        """Rows of numbers of buckets of a group, summed over each cell."""
        cell = self.buckets[group]
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(self.size))
        return np.asarray(np.add.reduceat(rows[:, order], starts, axis=1))

    def shares(self, rows: FloatArray) -> FloatArray:
        """Shares of the cells for rows of shares of leaves."""
        found = np.stack([np.bincount(self.leaves, row, minlength=self.size) for row in rows])
        return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))

    def means(self, mass: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Share of each cell, and the means of functions (rows of values at leaves) in it, (cells, functions)."""
        weight = mass + 1e-12 / mass.size  # where there is nothing, a mean of the places
        total = np.bincount(self.leaves, weight, minlength=self.size)
        means = [np.bincount(self.leaves, weight * row, minlength=self.size) / total for row in values]
        return self.shares(mass[None])[0], np.stack(means, axis=1)


def _functions(pooled: FloatArray, highest: int) -> tuple[FloatArray, FloatArray]:
    """Frequencies, and products of cosines of the pooled ranks at each leaf, shape (functions, leaves)."""
    d = pooled.ndim
    waves = []
    for axis in range(d):
        margin = pooled.sum(axis=tuple(k for k in range(d) if k != axis))
        rank = np.cumsum(margin) - margin / 2  # a heap has one rank
        waves.append(np.cos(math.pi * np.arange(highest + 1)[:, None] * rank))
    numbers = np.array([n for n in np.ndindex(*(highest + 1,) * d) if 0 < sum(k * k for k in n) <= highest**2])
    values = np.empty((len(numbers), pooled.size))
    for row, number in enumerate(numbers.tolist()):
        product = np.ones(())
        for axis, k in enumerate(number):
            product = np.multiply.outer(product, waves[axis][k])
        values[row] = product.ravel()
    return numbers.astype(np.float64), values


def _draw_noise(rng: np.random.Generator, noise: Noise, shape: tuple[int, ...]) -> FloatArray:
    """Noise as it was in a release; to compare with, it protects nobody."""
    if noise.kind == "gaussian":
        return np.asarray(np.rint(rng.normal(0.0, noise.scale, shape)))
    chance = -math.expm1(-1 / noise.scale)
    return np.asarray(rng.geometric(chance, shape) - rng.geometric(chance, shape), dtype=np.float64)
