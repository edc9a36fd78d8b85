r"""How far apart two released densities of the same columns are, with intervals, and whether they differ at all.

Distances of two estimates are too large: the noise of both is in them. With the distance D of the estimates and those
:math:`D_b` of pairs of posterior draws, which carry the same errors once more, the squared distance is estimated by
:math:`2D^2 - \overline{D_b^2}`, without the errors to first order, and its interval ends at :math:`2D^2` less quantiles
of :math:`D_b^2` (the pivotal bootstrap). Where the test of equality sees no difference, the interval begins at zero.

Total variation and Hellinger distance grow with the resolution at which two densities are looked at, and so does the
noise in them. They are taken over cells that hold about equal parts of both, two to some dozens per column: at each
resolution the true distance is at least as large as the one over the cells, so that the largest of the lower ends
holds; the upper end is the largest of the upper ends, and not below the distance of the estimates themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from fogline._results import Origin, ReadingResults, column_words, read_from
from fogline._typing import FloatArray
from fogline._validation import check_level
from fogline.density.comparison import ShapeComparison, compare_shapes
from fogline.density.components.leaf_cells import CellSettings, group_starts, joined_groups
from fogline.density.posterior.estimates import Estimate
from fogline.density.private_density import PrivateDensity

__all__ = ["DensityComparison", "compare_densities", "difference_of", "distances_of"]

RESOLUTIONS = ((2, 4, 8, 16, 32, 64), (2, 4, 8, 16), (2, 4, 8))
"""Cells per column, for one, two and three columns."""

BY_MASS = CellSettings(even=0.0)
"""Cells that hold about equal parts of both densities."""


@dataclass(frozen=True, repr=False)
class DensityComparison(ReadingResults):
    """Distances of two densities and a test of whether they differ.

    Attributes
    ----------
    total_variation : Estimate
        Largest difference of the probabilities that the two give to any set, between 0 and 1.
    hellinger : Estimate
        Square root of half the integral of the squared difference of root densities, between 0 and 1.
    wasserstein : Estimate
        For each column, how far the values of one would have to be moved on average to make the other, in data units.
    test : ShapeComparison
        Test of equal shapes, with privacy noise and sampling of both in its null distribution.

    Intervals contain privacy noise, sampling of the records and smoothing of both densities, which are not told apart.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> rng = np.random.default_rng(0)
    >>> years = [rng.gamma(2, 3, 4000), rng.gamma(2, 4, 3000)]               # lengths of stay, in two years
    >>> before, after = (DensitySketch([(0, 60)], features="leaves").update(x).release(epsilon=1.0) for x in years)
    >>> found = before.compare(after)
    >>> found.p_value, bool(found.wasserstein.low[0] < 2.5 and found.wasserstein.high[0] > 1.5)
    (0.001, True)
    """

    total_variation: Estimate
    hellinger: Estimate
    wasserstein: Estimate
    test: ShapeComparison

    @property
    def p_value(self) -> float:
        """Chance of a difference as large if both had the same shape."""
        return self.test.p_value

    def differs(self, level: float = 0.05) -> bool:
        """Whether the shapes differ at a level."""
        return self.test.differs(level)

    def __str__(self) -> str:
        moved = zip(column_words(self, len(self.wasserstein)), range(len(self.wasserstein)), strict=True)
        told = [("total variation", self.total_variation), ("Hellinger", self.hellinger)]
        told += [(f"{name} moved by", self.wasserstein[k]) for name, k in moved]
        words = [f"{name} {found.value:.3g} ({found.low:.3g} to {found.high:.3g})" for name, found in told]
        return f"{', '.join(words)}, p = {self.p_value:.2g}"

    __repr__ = __str__


def compare_densities(
    first: PrivateDensity,
    second: PrivateDensity,
    *,
    level: float = 0.95,
    simulations: int | None = None,
    names: tuple[str, str] = ("first", "second"),
) -> DensityComparison:
    """Compare two releases of the same columns and different people; free.

    Parameters
    ----------
    first, second : PrivateDensity
        Of the same specification: two strata, two sites, two years. Up to three columns.
    level : float
        Of the intervals.
    simulations : int, optional
        As for :func:`fogline.density.comparison.compare_shapes`.
    names : two str
        What the two are called on a page or in a table, such as "2024" and "2025".
    """
    checked = check_level(level, name="level")
    called = (str(names[0]), str(names[1]))
    if called[0] == called[1]:
        raise ValueError(f"names must be two different names, got {names!r}")
    found = distances_of(first, second, compare_shapes(first, second, simulations=simulations), checked)
    origin = Origin(first, "compare", arguments={"other": second, "names": called})
    return read_from(origin, found)


def distances_of(
    first: PrivateDensity, second: PrivateDensity, test: ShapeComparison, level: float = 0.95
) -> DensityComparison:
    """Distances of two releases, beside a test that was made before."""
    pair = [density.posterior for density in (first, second)]
    masses = [posterior.masses() for posterior in pair]
    d, counts = first.spec.d, [density.count for density in (first, second)]
    pooled = np.average([part.estimate for part in masses], axis=0, weights=counts)
    margins = [pooled.sum(axis=tuple(k for k in range(d) if k != axis)) for axis in range(d)]
    size = min(len(part.draws) for part in masses)
    parts = [np.concatenate([part.estimate[None], part.draws[:size]]) for part in masses]
    columns = [[part.sum(axis=tuple(k - d for k in range(d) if k != axis)) for part in parts] for axis in range(d)]
    moved = np.stack([_wasserstein(axis.width, *columns[k]) for k, axis in enumerate(pair[0].axes)], axis=1)
    cells = []
    for groups in RESOLUTIONS[d - 1]:
        starts = [group_starts(margin, groups, BY_MASS) for margin in margins]
        cells.append([joined_groups(part, starts).reshape(size + 1, -1) for part in parts])
    equal = test.p_value > 1 - level
    finest = [part[:1].reshape(1, -1) for part in parts]
    return DensityComparison(
        total_variation=_over_resolutions(_total_variation, cells, finest, level, equal),
        hellinger=_over_resolutions(_hellinger, cells, finest, level, equal),
        wasserstein=_estimate(*_without_noise(moved, level), level, equal),
        test=test,
    )


def difference_of(first: Estimate, second: Estimate) -> Estimate:
    """By how much the second of two independent answers is larger, with the parts of its error.

    Squares of errors add up, each part with its like. The ends lie as far out as those of both answers together, each
    on its own side (the method of variance estimates recovery), so that skewed intervals stay skewed.

    Examples
    --------
    >>> before = Estimate(5.0, 0.3, 4.4, 5.6, 0.95, "population", 0.0, 0.3, 0.0)
    >>> after = Estimate(7.0, 0.4, 6.2, 7.8, 0.95, "population", 0.0, 0.4, 0.0)
    >>> print(difference_of(before, after))
    2 ± 0.5 (95% interval 1 to 3; privacy 0, sampling 0.5, smoothing 0)
    """
    value = np.subtract(second.value, first.value)
    parts = ("standard_error", "privacy", "sampling", "smoothing")
    added: dict[str, Any] = {name: np.hypot(getattr(first, name), getattr(second, name)) for name in parts}
    below = np.hypot(np.subtract(second.value, second.low), np.subtract(first.high, first.value))
    above = np.hypot(np.subtract(second.high, second.value), np.subtract(first.value, first.low))
    added |= {"value": value, "low": value - below, "high": value + above}
    if np.ndim(value) == 0:
        added = {name: float(part) for name, part in added.items()}
    return Estimate(**added, level=first.level, target=first.target)


def _total_variation(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(0.5 * np.abs(p - q).sum(axis=-1))


def _hellinger(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(0.5 * ((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=-1)))


def _wasserstein(width: float, p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(width * np.abs(np.cumsum(p - q, axis=-1)).sum(axis=-1))


def _without_noise(found: FloatArray, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A distance without the noise that is in it, and the ends of its interval; the first row is the estimate's."""
    tails = (1 - level) / 2
    squares, observed = found[1:] ** 2, 2 * found[0] ** 2
    value = np.sqrt(np.maximum(observed - squares.mean(axis=0), 0.0))
    high, low = (np.sqrt(np.maximum(observed - np.quantile(squares, q, axis=0), 0.0)) for q in (tails, 1 - tails))
    # far from zero the distance itself is about normal, and its square leans to one side
    return value, low, np.maximum(np.maximum(high, value), 2 * found[0] - np.quantile(found[1:], tails, axis=0))


def _over_resolutions(
    distance: Callable[[FloatArray, FloatArray], FloatArray],
    cells: list[list[FloatArray]],
    finest: list[FloatArray],
    level: float,
    equal: bool,
) -> Estimate:
    """A distance that grows with the resolution: what is seen of it at the clearest."""
    value, low, high = np.array([_without_noise(distance(*both), level) for both in cells]).T
    upper = max(float(high.max()), float(distance(*finest)[0]))
    return _estimate(value.max(), low.max(), min(upper, 1.0), level, equal)


def _estimate(value: Any, low: Any, high: Any, level: float, equal: bool) -> Estimate:
    low = np.zeros_like(low) if equal else np.minimum(low, value)
    error = (high - low) / (2 * norm.isf((1 - level) / 2))
    unknown = np.full_like(error, np.nan)  # the noise in a distance is not told apart by where it comes from
    parts: tuple[Any, ...] = value, error, low, high, unknown, unknown, unknown
    if np.ndim(value) == 0:
        parts = tuple(float(part) for part in parts)
    value, error, low, high, privacy, sampling, smoothing = parts
    return Estimate(value, error, low, high, level, "population", privacy, sampling, smoothing)
