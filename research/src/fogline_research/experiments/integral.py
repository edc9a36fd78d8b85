r"""Rerun the experiments of the integral-privacy paper (section 5, figures 4 to 8).

Draws of MBDE against densities by the Bernstein mechanism (DPB in the paper) and a private GAN, on a ring of eight
Gaussians, a mixture of three on a line, and Gaussians placed at random. The paper prints no tables, so that there is
nothing to put beside the figures but its words. Measured are the negative log likelihood, mode coverage, and what the
density gains over its base beside what *any* density of the mollifier could gain.

The two kinds of epsilon are not the same. MBDE's is for one draw, and protects everybody at once; DPB's is for any
number of draws, and protects one record.

The true densities of the integral-privacy paper's experiments, with the grids that they are integrated on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_count
from fogline.datasets.simulated import Mixture
from fogline_research.baselines import DPGAN, BernsteinDensity
from fogline_research.datasets.gaussian_rings import RING, THREE_GAUSSIANS, random_mixture
from fogline_research.experiments._shared import Progress, check_methods, fresh_seed, reported
from fogline_research.metrics import (
    Quadrature,
    best_in_mollifier,
    kl_divergence,
    mode_coverage,
    negative_log_likelihood,
)

__all__ = [
    "INTEGRAL_METHODS",
    "IntegralCell",
    "IntegralRow",
    "Measured",
    "Problem",
    "density_of",
    "integral_cells",
    "measure",
    "problem",
    "reproduce_integral",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A true density, the public box that DPB is given, and the grid that integrals are taken on.

    Attributes
    ----------
    name : str
    mixture : Mixture
        The truth. For integrals it is cut to `bounds`, which hold all but 1e-4 of it: DPB says zero outside.
    bounds, reach : tuple of (low, high)
        Of the box, and of the grid, which holds the base as well.
    cells : int
        Of the grid, on each axis.
    """

    name: str
    mixture: Mixture
    bounds: tuple[tuple[float, float], ...]
    reach: tuple[tuple[float, float], ...]
    cells: int

    @cached_property
    def rule(self) -> Quadrature:
        """Nodes and weights."""
        return Quadrature.box(self.reach, cells=self.cells)

    @cached_property
    def truth(self) -> Array:
        """True density at the nodes, cut to the box."""
        low, high = np.array(self.bounds).T
        inside = ((self.rule.nodes >= low) & (self.rule.nodes <= high)).all(axis=1)
        values = self.mixture.pdf(self.rule.nodes) * inside
        return np.asarray(values / float(self.rule.weights @ values))

    def base(self, kind: str) -> Array:
        """Base density at the nodes: "normal" is standard, "uniform" flat on the box."""
        if kind == "normal":
            d = len(self.bounds)
            square = (self.rule.nodes**2).sum(axis=1)
            return np.asarray(np.exp(-0.5 * square) / (2.0 * math.pi) ** (d / 2.0))
        low, high = np.array(self.bounds).T
        inside = ((self.rule.nodes >= low) & (self.rule.nodes <= high)).all(axis=1)
        return np.asarray(inside / float(np.prod(high - low)))


@lru_cache(maxsize=32)
def problem(name: str, places: int = 0) -> Problem:
    """Give a problem by name; `places` is the seed of Gaussians placed at random.

    Parameters
    ----------
    name : str
        "ring", "three", "random-M" or "random-2d-M" with a number M of Gaussians.

    Examples
    --------
    >>> problem("random-3").mixture.centers.shape
    (3, 1)
    """
    line, plane = ((-1.0, 2.0),), ((-6.5, 6.5), (-6.5, 6.5))
    if name == "ring":
        return Problem(name, RING, plane, plane, 100)
    if name == "three":
        return Problem(name, THREE_GAUSSIANS, line, ((-6.0, 6.0),), 1200)
    kind, _, count = name.rpartition("-")
    if kind not in ("random", "random-2d") or not count.isdigit():
        raise ValueError(f'problem must be "ring", "three", "random-M" or "random-2d-M", got {name!r}')
    if kind == "random":
        return Problem(name, random_mixture(int(count), random_state=places), line, ((-6.0, 6.0),), 1200)
    return Problem(name, random_mixture(int(count), 2, random_state=places), plane, plane, 100)


RECORDS = 10_000
SMALL_DRAWS = 1000
"""Draws of each class in a round of the small form of MBDE as published; the paper has as many as records."""
GAN_DELTA = 0.1
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
PLACED = 5
"""Gaussians placed at random where their number is not varied."""
PLACED_EPSILONS = (0.5, 2.0, 10.0)
MOST_PLACED = 10

_UNIFORM_SHARE = 0.01
_COLUMNS = ("nll", "coverage", "gain", "best_gain", "drawable_gain", "seconds")


@dataclass(frozen=True)
class Measured:
    """One fit, judged."""

    nll: float
    coverage: float
    gain: float
    best_gain: float
    drawable_gain: float
    seconds: float


@dataclass(frozen=True)
class IntegralCell:
    """A problem at one epsilon."""

    problem: str
    epsilon: float


@dataclass(frozen=True)
class IntegralRow:
    """One method on one cell, over several runs.

    Attributes
    ----------
    problem, epsilon, method, runs
        What was run; epsilon is for a draw (MBDE), or for all draws.
    nll, nll_sd, coverage, coverage_sd : float
        Mean and standard deviation over the runs.
    gain : float
        KL(P, Q_0) - KL(P, Q), for methods that have a base; else nan.
    best_gain : float
        What the best density of the mollifier gains; at most epsilon / 2.
    drawable_gain : float
        What the best density gains that can be drawn by rejection without knowing its normaliser: its log ratio to the
        base has a range of epsilon / 2, half of the mollifier's.
    seconds : float
        CPU time of a fit.
    """

    problem: str
    epsilon: float
    method: str
    runs: int
    nll: float
    nll_sd: float
    coverage: float
    coverage_sd: float
    gain: float
    best_gain: float
    drawable_gain: float
    seconds: float

    @property
    def ratio(self) -> float:
        """Gain over the best that the mollifier allows."""
        return self.gain / self.best_gain


# -- methods ----------------------------------------------------------------------------------------------------

Fit = Callable[[Array, Problem, float, int], Callable[[], Array]]
"""Fits records and returns how to get the density at the nodes, which is not part of the time."""


def _mbde(base: str, drawing: str = "rejection") -> Fit:
    """Certified draws with a fast learner: one round of boosted trees, whole log-odds."""

    def fit(X: Array, task: Problem, epsilon: float, seed: int) -> Callable[[], Array]:  # noqa: ARG001
        from fogline.estimators.sampler import IntegralSampler
        from fogline.testing import integral_log_ratio

        options: dict[str, Any] = {"base": "uniform", "bounds": task.bounds} if base == "uniform" else {}
        sampler = IntegralSampler(
            epsilon=epsilon, max_samples=1, learner="boosting", schedule="full", rounds=1, drawing=drawing, **options
        ).fit(X)
        supported = task.base(base) > 0

        def density() -> Array:
            values = np.zeros(len(supported))
            ratio = integral_log_ratio(sampler, task.rule.nodes[supported])
            values[supported] = task.base(base)[supported] * np.exp(ratio)
            if drawing == "cells":  # edges of cells and nodes of the rule do not meet: its mass is off by some percent
                values /= float(task.rule.weights @ values)
            return values

        return density

    return fit


def _published(training_draws: int, clamped: bool = True) -> Fit:
    """MBDE with the paper's network, from so many draws of each class in a round."""

    def fit(X: Array, task: Problem, epsilon: float, seed: int) -> Callable[[], Array]:
        from fogline.queries.boosted_density import CLAMP
        from fogline_research.as_published import mbde

        found = mbde(
            X,
            epsilon=epsilon,
            n_samples=100,
            clamp=CLAMP if clamped else math.inf,
            chains=100,
            training_draws=training_draws,
            random_state=seed,
        )

        def density() -> Array:
            values = task.base("normal") * np.exp(found.log_ratio(task.rule.nodes))
            return np.asarray(values / float(task.rule.weights @ values))

        return density

    return fit


def _bernstein(sensitivity: Any) -> Fit:
    def fit(X: Array, task: Problem, epsilon: float, seed: int) -> Callable[[], Array]:  # noqa: ARG001
        found = BernsteinDensity.fit(X, epsilon=epsilon, bounds=task.bounds, sensitivity=sensitivity)
        return lambda: found.pdf(task.rule.nodes)

    return fit


def _gan(X: Array, task: Problem, epsilon: float, seed: int) -> Callable[[], Array]:
    from scipy.stats import gaussian_kde

    from fogline.testing import seeded_noise

    with seeded_noise(seed):  # the same law, and a hundred times faster than the operating system's
        found = DPGAN.fit(X, epsilon=epsilon, delta=GAN_DELTA, bounds=task.bounds)

    def density() -> Array:
        smooth = gaussian_kde(found.sample(5000, random_state=seed).T)(task.rule.nodes.T)
        return np.asarray((1 - _UNIFORM_SHARE) * smooth + _UNIFORM_SHARE * task.base("uniform"))

    return density


_FITS: dict[str, tuple[Fit, str]] = {
    "certified": (_mbde("normal"), "normal"),
    "certified_box": (_mbde("uniform"), "uniform"),
    "certified_cells": (_mbde("uniform", "cells"), "uniform"),
    "published": (_published(RECORDS), "normal"),
    "published_small": (_published(SMALL_DRAWS), "normal"),
    "published_small_free": (_published(SMALL_DRAWS, clamped=False), "normal"),
    "bernstein": (_bernstein("sum"), ""),
    "bernstein_sup": (_bernstein("sup"), ""),
    "dpgan": (_gan, ""),
}
"""How to fit, and the base that gains are counted from."""

INTEGRAL_METHODS = tuple(_FITS)


def _fitted(name: str, epsilon: float, method: str, seed: int, places: int) -> tuple[Callable[[], Array], float]:
    """Draw records and fit; how to get the density, and the CPU time."""
    check_methods([method], INTEGRAL_METHODS)
    task = problem(name, places)
    X = task.mixture.sample(RECORDS, np.random.default_rng([seed, 1]))[0]
    began = time.process_time()
    density = _FITS[method][0](X, task, epsilon, seed)
    return density, time.process_time() - began


def density_of(name: str, epsilon: float, method: str, *, seed: int, places: int = 0) -> Array:
    """Density of a method at the nodes of a problem, for pictures; parameters as for `measure`."""
    return _fitted(name, epsilon, method, seed, places)[0]()


def measure(name: str, epsilon: float, method: str, *, seed: int, places: int = 0) -> Measured:
    """Draw records, fit, and judge the density.

    Parameters
    ----------
    name : str
        Of the problem.
    epsilon : float
    method : str
        "certified" has the paper's standard normal base; "certified_box" a base that is uniform on the public box that
        DPB is given; "certified_cells" has that base and draws from cells, whose normaliser is known; "published" the
        paper's network, three rounds, and Metropolis; "published_small" the same from a tenth of the draws, and
        "published_small_free" without the clamp of log 2; "bernstein" the right sensitivity and "bernstein_sup" the
        original's; "dpgan" its density by a kernel estimate of 5000 draws with 1% of uniform.
    seed : int
        Of the records.
    places : int
        Seed of the Gaussians' places.

    Examples
    --------
    >>> found = measure("three", 10.0, "bernstein", seed=0)
    >>> bool(0.17 < found.nll < 0.5), bool(found.coverage > 0.8)
    (True, True)
    """
    density, seconds = _fitted(name, epsilon, method, seed, places)
    task, base = problem(name, places), _FITS[method][1]
    p, q, w = task.truth, density(), task.rule.weights
    gain = best = drawable = math.nan
    if base:
        gain = kl_divergence(p, task.base(base), w) - kl_divergence(p, q, w)
        best, drawable = _ideal_gains(name, places, base, epsilon)
    return Measured(negative_log_likelihood(p, q, w), mode_coverage(p, q, w), gain, best, drawable, seconds)


@lru_cache(maxsize=256)
def _ideal_gains(name: str, places: int, base: str, epsilon: float) -> tuple[float, float]:
    """Gains of the best density of the mollifier, and of the best that rejection can draw from."""
    task = problem(name, places)
    p, q0, w = task.truth, task.base(base), task.rule.weights
    before = kl_divergence(p, q0, w)
    widths = (None, epsilon / 2)
    ideals = [best_in_mollifier(p, q0, w, epsilon=epsilon, width=width) for width in widths]
    best, drawable = (before - kl_divergence(p, ideal, w) for ideal in ideals)
    return best, drawable


# -- cells and rows ---------------------------------------------------------------------------------------------


def integral_cells(which: str = "all") -> list[IntegralCell]:
    """Cells of the rerun: three problems over epsilon; "small" has two of seven epsilons.

    With "placed" they are one to ten Gaussians, placed at random on the line and in the plane, at three epsilons.

    Examples
    --------
    >>> len(integral_cells()), len(integral_cells("small")), len(integral_cells("placed"))
    (21, 6, 60)
    """
    if which not in ("small", "all", "placed"):
        raise ValueError(f'cells must be "small", "all", "placed" or a list of cells, got {which!r}')
    if which == "placed":
        names = [f"{kind}-{count}" for kind in ("random", "random-2d") for count in range(1, MOST_PLACED + 1)]
        return [IntegralCell(name, epsilon) for name in names for epsilon in PLACED_EPSILONS]
    epsilons = EPSILONS if which == "all" else (1.0, 10.0)
    return [IntegralCell(name, epsilon) for name in ("ring", "three", f"random-{PLACED}") for epsilon in epsilons]


def reproduce_integral(
    *,
    runs: int = 4,
    cells: str | Sequence[IntegralCell] = "small",
    methods: Sequence[str] = ("certified",),
    seed: int | None = None,
    progress: Progress | None = None,
) -> list[IntegralRow]:
    """Run methods on cells; every method sees the same records in the same run.

    Parameters
    ----------
    runs : int
        Fresh data sets a cell; Gaussians placed at random are placed anew.
    cells : "small", "all", "placed" or sequence of IntegralCell
    methods : sequence of str
        As for `measure`.
    seed : int, optional
        Of the records; certified noise has none.
    progress : callable, optional

    Returns
    -------
    list of IntegralRow

    Examples
    --------
    >>> rows = reproduce_integral(runs=1, cells=[IntegralCell("three", 5.0)], methods=["bernstein"], seed=0)
    >>> rows[0].problem, rows[0].runs
    ('three', 1)
    """
    check_methods(methods, INTEGRAL_METHODS)
    count, chosen = check_count(runs, "runs"), integral_cells(cells) if isinstance(cells, str) else list(cells)
    first = fresh_seed(seed)
    jobs = [(cell, method, run) for cell in chosen for method in methods for run in range(count)]
    labels = [f"{cell.problem}, epsilon {cell.epsilon:g}, {method}" for cell, method, _ in jobs]
    found: dict[tuple[IntegralCell, str], list[Measured]] = {}
    for index in reported(labels, progress):
        cell, method, run = jobs[index]
        place = (first + run) % 2**32
        result = measure(cell.problem, cell.epsilon, method, seed=place, places=place)
        found.setdefault((cell, method), []).append(result)
    return [_row(cell, method, results) for (cell, method), results in found.items()]


def _row(cell: IntegralCell, method: str, results: Sequence[Measured]) -> IntegralRow:
    columns = {name: np.array([getattr(result, name) for result in results]) for name in _COLUMNS}

    def spread(values: Array) -> float:
        return float(values.std(ddof=1)) if len(values) > 1 else math.nan

    means = {name: float(values.mean()) for name, values in columns.items()}
    return IntegralRow(
        problem=cell.problem,
        epsilon=cell.epsilon,
        method=method,
        runs=len(results),
        nll_sd=spread(columns["nll"]),
        coverage_sd=spread(columns["coverage"]),
        **means,
    )
