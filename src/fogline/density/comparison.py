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

Releases on leaves are compared by linear functions of their counts (:mod:`fogline.density.leaf_comparison`).

References
----------
Gretton, Borgwardt, Rasch, Schoelkopf and Smola (2012), A kernel two-sample test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft as scipy_fft

from fogline._results import ReadingResults
from fogline._validation import check_count, check_level
from fogline.density.components.leaf_cells import group_starts, joined_groups
from fogline.density.grid_reading import Reading
from fogline.density.leaf_comparison import LEAF_COMPARISON, LeafTest
from fogline.density.leaves import LeafSpec
from fogline.density.private_density import PrivateDensity
from fogline.density.spec import SketchSpec

__all__ = ["ShapeComparison", "compare_shapes"]

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

SIMULATIONS = {1: 999, 2: 399, 3: 99}
"""Simulated pairs by the number of axes."""

BANDWIDTHS = 6
"""Bandwidths that are looked at, from the smallest to the largest that the release can be read at."""

GROUPS = (64, 24, 8)
"""Most cells per axis in which leaves are looked at for the place of a difference."""

CLEAR_COUNT = 4.0
"""A group is compared if its released count is so many noise deviations above zero."""

BATCH = 2**22
"""Grid points simulated at a time."""


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
