"""Columns and pairs of columns whose modes are known, in two halves, for the study of modes.

The half "tune" may be looked at while the search is made (it holds all kinds of earlier studies), the half "judge" only
to report: it was written down before the search was changed, with other families or other parameters. The kinds "new"
were written down after the search was finished, and nothing was changed after they had been run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize

__all__ = ["KINDS", "Kind"]

Array = NDArray[np.float64]
Box = tuple[float, float]
Draw = Callable[[int, np.random.Generator], Array]


@dataclass(frozen=True)
class Kind:
    """Records with a known density.

    Attributes
    ----------
    name, half : str
    bounds : tuple of (float, float)
    draw : callable
        Takes a number of records and a generator.
    modes : array of shape (k, d)
        True modes inside the box; none where the density has none.
    tolerance : array of shape (d,)
        How far from a true mode a found one may lie to be that one.
    steps : tuple of float or None
        Public rounding step per column.
    group : str
        "without", "symmetric", "skewed", "wall", "several" or "close".
    """

    name: str
    half: str
    bounds: tuple[Box, ...]
    draw: Draw
    modes: Array
    tolerance: Array
    steps: tuple[float | None, ...] | None = None
    group: str = "without"


def _without(name: str, half: str, box: Box, draw: Draw, step: float | None = None) -> Kind:
    steps = None if step is None else (step,)
    return Kind(name, half, (box,), lambda n, rng: draw(n, rng)[:, None], np.zeros((0, 1)), np.ones(1), steps)


def _pair(name: str, half: str, box: Sequence[Box], draw: Draw, *modes: Any, group: str = "without") -> Kind:
    widths = np.array([high - low for low, high in box])
    places = np.array(modes, dtype=float).reshape(-1, 2)
    return Kind(name, half, tuple(box), draw, places, 0.08 * widths, group=group)


def _some(p: NDArray[np.int64], *parts: Array) -> Array:
    """Records of the part that a row of indices names."""
    return np.asarray(np.choose(p, parts))


def _mixture(
    name: str, half: str, box: Box, *parts: tuple[float, Any], group: str = "several", zeros: float = 0.0,
    step: float | None = None,
) -> Kind:  # fmt: skip
    """A mixture of frozen laws, some records replaced by zeros; its modes are the maxima of its density on a fine grid.

    With a step, values are rounded; the modes are still those of the density before.
    """
    weights = np.array([weight for weight, _ in parts])
    x = np.linspace(*box, 200_001)[1:-1]
    density = sum(weight * law.pdf(x) for weight, law in parts)
    top = np.flatnonzero((density[1:-1] > density[:-2]) & (density[1:-1] >= density[2:])) + 1
    modes = x[top]
    gaps = np.diff(modes)
    tolerance = min(0.08 * (box[1] - box[0]), 0.45 * float(gaps.min()) if len(gaps) else np.inf)

    def draw(n: int, rng: np.random.Generator) -> Array:
        part = rng.choice(len(parts), size=n, p=weights)
        values = _some(part, *(law.rvs(n, random_state=rng) for _, law in parts))
        values = values if step is None else np.round(values / step) * step
        return np.where(rng.random(n) < zeros, 0.0, values)[:, None]

    steps = None if step is None else (step,)
    return Kind(name, half, (box,), draw, modes[:, None], np.array([tolerance]), steps, group)


def _zeros(share: float, law: Any) -> Draw:
    return lambda n, rng: np.where(rng.random(n) < share, 0.0, law.rvs(n, random_state=rng))


def _law(law: Any) -> Draw:
    return lambda n, rng: np.asarray(law.rvs(n, random_state=rng), dtype=np.float64)


# -- tune ----------------------------------------------------------------------------------------------------


def _tuned_without() -> list[Kind]:
    u = stats.uniform
    return [
        _without("uniform", "tune", (0, 1), lambda n, r: r.uniform(0, 1, n)),
        _without("exponential, wide box", "tune", (0, 60), lambda n, r: r.exponential(1, n)),
        _without("exponential", "tune", (0, 10), lambda n, r: r.exponential(1, n)),
        _without("half-normal", "tune", (0, 6), lambda n, r: np.abs(r.normal(0, 1, n))),
        _without("half-normal, wide box", "tune", (0, 50), lambda n, r: np.abs(r.normal(0, 1, n))),
        _without("Pareto", "tune", (0, 50), lambda n, r: r.pareto(1.5, n)),
        _without("Pareto, heavy", "tune", (0, 1000), lambda n, r: r.pareto(1, n)),
        _without("U shape", "tune", (0, 1), lambda n, r: r.beta(0.5, 0.5, n)),
        _without("ramp", "tune", (0, 1), lambda n, r: np.sqrt(r.random(n))),
        _without("plateau", "tune", (0, 1), lambda n, r: r.uniform(0.3, 0.7, n)),
        _without("plateau, narrow", "tune", (0, 1), lambda n, r: r.uniform(0.4, 0.55, n)),
        _without("stairs", "tune", (0, 1), lambda n, r: _some(r.choice(2, n, p=[0.7, 0.3]), u(0, 0.5).rvs(n, r),
                                                              u(0.5, 0.5).rvs(n, r))),
        _without("zeros and a tail", "tune", (0, 60), _zeros(0.6, stats.expon(scale=5))),
        _without("many zeros and a tail", "tune", (0, 100), _zeros(0.9, stats.expon(scale=20))),
        _without("spike at the wall, empty", "tune", (0, 1), lambda n, r: np.abs(r.normal(0, 0.001, n))),
        _without("both walls, empty", "tune", (0, 1), lambda n, r: np.where(r.random(n) < 0.5, 0.0, 1.0)),
        _without("gamma(0.5)", "tune", (0, 15), lambda n, r: r.gamma(0.5, 1, n)),
        _without("cut normal", "tune", (0, 5), lambda n, r: stats.truncnorm(0.5, 9).rvs(n, random_state=r) - 0.5),
        _without("two values", "tune", (0, 10), lambda n, r: np.where(r.random(n) < 0.3, 2.0, 7.0)),
        _without("exponential, whole numbers", "tune", (0, 40), lambda n, r: np.floor(r.exponential(4, n)), 1.0),
        _pair("uniform square", "tune", [(0, 1)] * 2, lambda n, r: r.uniform(0, 1, (n, 2))),
        _pair("exponential corner", "tune", [(0, 10)] * 2, lambda n, r: r.exponential(1.5, (n, 2))),
        _pair("ramp and uniform", "tune", [(0, 1)] * 2, lambda n, r: np.c_[np.sqrt(r.random(n)), r.random(n)]),
        _pair("half-normal edge", "tune", [(0, 6), (0, 1)], lambda n, r: np.c_[np.abs(r.normal(0, 1, n)), r.random(n)]),
    ]  # fmt: skip


def _product(name: str, half: str, box: Sequence[Box], first: Any, second: Any, mode: Box, group: str) -> Kind:
    """Two independent columns."""
    return _pair(name, half, box, lambda n, r: np.c_[_law(first)(n, r), _law(second)(n, r)], mode, group=group)


def _tilted(name: str, half: str, box: Sequence[Box], mean: Box, covariance: Sequence[Sequence[float]]) -> Kind:
    return _pair(
        name, half, box, lambda n, r: r.multivariate_normal(mean, np.array(covariance), n), mean, group="symmetric"
    )


def _groups(name: str, half: str, box: Sequence[Box], centres: Any, weights: Any, sd: float) -> Kind:
    """Round groups of one width; modes are polished."""
    centres, weights = np.array(centres, dtype=float), np.array(weights)

    def negative(x: Array) -> float:
        laws = (w * stats.multivariate_normal.pdf(x, c, sd**2) for w, c in zip(weights, centres, strict=True))
        return -float(sum(laws))

    modes = [minimize(negative, c, method="Nelder-Mead", options={"xatol": 1e-8}).x for c in centres]

    def draw(n: int, rng: np.random.Generator) -> Array:
        return np.asarray(centres[rng.choice(len(weights), n, p=weights)] + sd * rng.standard_normal((n, 2)))

    return _pair(name, half, box, draw, *modes, group="several")


def _tuned_with() -> list[Kind]:
    normal, gamma = stats.norm, stats.gamma
    return [
        _mixture("normal", "tune", (0, 20), (1.0, normal(5, 1)), group="symmetric"),
        _mixture("normal, wide box", "tune", (0, 60), (1.0, normal(2.6, 0.7)), group="wall"),
        _mixture("normal near a wall", "tune", (0, 1), (1.0, normal(0.9, 0.03)), group="wall"),
        _mixture("Laplace", "tune", (0, 20), (1.0, stats.laplace(5, 1)), group="symmetric"),
        _mixture("Student", "tune", (-10, 20), (1.0, stats.t(3, loc=5)), group="symmetric"),
        _mixture("gamma(3)", "tune", (0, 20), (1.0, gamma(3)), group="skewed"),
        _mixture("gamma(2)", "tune", (0, 60), (1.0, gamma(2, scale=3)), group="wall"),
        _mixture("lognormal", "tune", (0, 20), (1.0, stats.lognorm(0.6, scale=np.e)), group="skewed"),
        _mixture("beta(2, 5)", "tune", (0, 1), (1.0, stats.beta(2, 5)), group="skewed"),
        _mixture("Weibull", "tune", (0, 5), (1.0, stats.weibull_min(1.8)), group="skewed"),
        _mixture("Gumbel", "tune", (-2, 15), (1.0, stats.gumbel_r(3, 1)), group="skewed"),
        _mixture("two unequal", "tune", (0, 12), (0.7, normal(3, 0.5)), (0.3, normal(7, 1.2))),
        _mixture("two close", "tune", (0, 12), (0.5, normal(4, 0.6)), (0.5, normal(6, 0.6)), group="close"),
        _mixture("four", "tune", (0, 40), *((0.25, normal(m, s)) for m, s in ((6, 1), (14, 1.5), (22, 1), (31, 2)))),
        _mixture("peak on a broad one", "tune", (0, 10), (0.6, normal(2, 0.4)), (0.4, normal(3, 1.0)), group="skewed"),
        _mixture("zeros and a gamma", "tune", (0, 60), (1.0, gamma(4, scale=3)), zeros=0.4, group="skewed"),
        _mixture("whole numbers", "tune", (0, 100), (1.0, normal(41.3, 9)), step=1.0, group="symmetric"),
        _mixture("six of delays", "tune", (-60, 240),
                 *((w, normal(m, s)) for w, m, s in ((0.4, -8, 9), (0.2, 25, 8), (0.14, 60, 9), (0.11, 100, 10),
                                                     (0.09, 145, 11), (0.06, 195, 12)))),
        _groups("three groups", "tune", [(0, 10)] * 2, [[3, 3], [7, 4], [5, 8]], [0.5, 0.3, 0.2], 0.7),
        _product("skewed pair", "tune", [(0, 15), (0, 10)], gamma(3), normal(5, 1), (2.0, 5.0), "skewed"),
        _tilted("tilted pair", "tune", [(0, 10)] * 2, (4.0, 6.0), [[1.0, 0.8], [0.8, 1.0]]),
    ]  # fmt: skip


# -- judge ---------------------------------------------------------------------------------------------------


def _judged_without() -> list[Kind]:
    return [
        _without("flat in the middle", "judge", (0, 100), lambda n, r: r.uniform(20, 60, n)),
        _without("flat all over", "judge", (-5, 5), lambda n, r: r.uniform(-5, 5, n)),
        _without("exponential, scale 3", "judge", (0, 25), lambda n, r: r.exponential(3, n)),
        _without("half Student", "judge", (0, 40), lambda n, r: np.abs(r.standard_t(3, n))),
        _without("Lomax", "judge", (0, 30), lambda n, r: r.pareto(2, n)),
        _without("beta(0.7, 2)", "judge", (0, 1), lambda n, r: r.beta(0.7, 2, n)),
        _without("beta(1, 3)", "judge", (0, 1), lambda n, r: r.beta(1, 3, n)),
        _without("beta(0.4, 0.7)", "judge", (0, 1), lambda n, r: r.beta(0.4, 0.7, n)),
        _without("rising to the high wall", "judge", (0, 10), lambda n, r: 10 - np.abs(r.normal(0, 2, n))),
        _without("zeros and a half-normal", "judge", (0, 20), _zeros(0.4, stats.halfnorm(scale=4))),
        _without("three quarters zeros", "judge", (0, 200), _zeros(0.75, stats.lomax(2, scale=20))),
        _without("zeros and a flat rest", "judge", (0, 1), _zeros(0.3, stats.uniform(0, 1))),
        _without("spike at the high wall", "judge", (0, 1), lambda n, r: 1 - np.abs(r.normal(0, 0.002, n))),
        _without("three stairs", "judge", (0, 3),
                 lambda n, r: r.choice(3, n, p=[0.5, 0.3, 0.2]) + r.uniform(0, 1, n)),
        _without("gamma(0.8)", "judge", (0, 12), _law(stats.gamma(0.8))),
        _without("decreasing Weibull", "judge", (0, 80), _law(stats.weibull_min(0.8, scale=6))),
        _without("three values", "judge", (0, 100), lambda n, r: r.choice([15.0, 40.0, 90.0], n, p=[0.5, 0.3, 0.2])),
        _without("geometric", "judge", (0, 50), lambda n, r: r.geometric(0.2, n).astype(float) - 1, 1.0),
        _without("a die", "judge", (1, 6), lambda n, r: r.integers(1, 7, n).astype(float), 1.0),
        _pair("flat square", "judge", [(0, 5), (-1, 1)], lambda n, r: r.uniform([0, -1], [5, 1], (n, 2))),
        _pair("beta corner", "judge", [(0, 1)] * 2, lambda n, r: r.beta(1, 3, (n, 2))),
        _pair("exponential edge", "judge", [(0, 20), (0, 1)], lambda n, r: np.c_[r.exponential(3, n), r.random(n)]),
        _pair("zeros beside a flat column", "judge", [(0, 1)] * 2,
              lambda n, r: np.c_[np.where(r.random(n) < 0.4, 0.0, r.random(n)), r.random(n)]),
    ]  # fmt: skip


def _judged_with() -> list[Kind]:
    normal, gamma = stats.norm, stats.gamma
    return [
        _mixture("normal(0.35)", "judge", (0, 1), (1.0, normal(0.35, 0.08)), group="symmetric"),
        _mixture("logistic", "judge", (-20, 20), (1.0, stats.logistic(2, 1.5)), group="symmetric"),
        _mixture("Laplace(0.6)", "judge", (0, 1), (1.0, stats.laplace(0.6, 0.06)), group="symmetric"),
        _mixture("Student(4)", "judge", (-15, 15), (1.0, stats.t(4, loc=-3)), group="symmetric"),
        _mixture("narrow in a wide box", "judge", (0, 1000), (1.0, normal(120, 15)), group="symmetric"),
        _mixture("normal at the low wall", "judge", (0, 1), (1.0, normal(0.08, 0.03)), group="wall"),
        _mixture("gamma(2.5)", "judge", (0, 40), (1.0, gamma(2.5, scale=2)), group="wall"),
        _mixture("Rayleigh", "judge", (0, 8), (1.0, stats.rayleigh(scale=1.5)), group="wall"),
        _mixture("gamma(4)", "judge", (0, 30), (1.0, gamma(4, scale=1.5)), group="skewed"),
        _mixture("lognormal(0.5)", "judge", (0, 8), (1.0, stats.lognorm(0.5)), group="skewed"),
        _mixture("beta(3, 8)", "judge", (0, 1), (1.0, stats.beta(3, 8)), group="skewed"),
        _mixture("skew normal", "judge", (-3, 9), (1.0, stats.skewnorm(4, scale=2)), group="skewed"),
        _mixture("left-skewed", "judge", (0, 100), (1.0, stats.gumbel_l(70, 8)), group="skewed"),
        _mixture("zeros and a lognormal", "judge", (0, 100), (1.0, stats.lognorm(0.5, scale=20)), zeros=0.3,
                 group="skewed"),
        _mixture("ages, whole numbers", "judge", (0, 110), (1.0, normal(52.6, 14)), step=1.0, group="symmetric"),
        _mixture("two of unequal width", "judge", (0, 50), (0.35, normal(12, 2)), (0.65, normal(32, 6))),
        _mixture("two that nearly meet", "judge", (0, 10), (0.55, normal(4, 0.7)), (0.45, normal(6, 0.7)),
                 group="close"),
        _mixture("three", "judge", (0, 24), *((w, normal(m, s)) for w, m, s in ((0.5, 8, 1.2), (0.2, 13, 1),
                                                                               (0.3, 18, 1.5)))),
        _mixture("five", "judge", (0, 200), *((0.2, normal(m, s)) for m, s in ((20, 4), (50, 6), (85, 5), (125, 8),
                                                                               (170, 6)))),
        _groups("two groups", "judge", [(-6, 6)] * 2, [[-2, -1], [2, 2]], [0.65, 0.35], 0.9),
        _groups("four groups", "judge", [(0, 20)] * 2, [[4, 5], [14, 5], [6, 15], [15, 14]], [0.3, 0.3, 0.2, 0.2], 1.3),
        _product("lognormal and normal", "judge", [(0, 10), (0, 100)], stats.lognorm(0.5, scale=2), normal(40, 9),
                 (2 * np.exp(-0.25), 40.0), "skewed"),
        _product("near a wall, two columns", "judge", [(0, 1), (0, 1)], normal(0.12, 0.04), normal(0.5, 0.12),
                 (0.12, 0.5), "wall"),
        _tilted("tilted the other way", "judge", [(0, 20), (0, 5)], (12.0, 2.0), [[4.0, -0.9], [-0.9, 0.36]]),
    ]  # fmt: skip


# -- new -----------------------------------------------------------------------------------------------------


def _new() -> list[Kind]:
    return [
        _without("valley between two walls", "new", (0, 10),
                 lambda n, r: np.where(r.random(n) < 0.7, r.exponential(1.0, n), 10 - r.exponential(0.5, n))),
        _without("exponential from the high wall", "new", (0, 50), lambda n, r: 50 - r.exponential(4, n)),
        _without("log-uniform", "new", (0, 1000), lambda n, r: np.exp(r.uniform(0, np.log(1000), n))),
        _without("five rising stairs", "new", (0, 5),
                 lambda n, r: r.choice(5, n, p=[0.05, 0.12, 0.2, 0.28, 0.35]) + r.random(n)),
        _without("exponential with a cap", "new", (0, 10), lambda n, r: np.minimum(r.exponential(3, n), 8.0)),
        _without("geometric, steps not declared", "new", (0, 40), lambda n, r: r.geometric(0.15, n).astype(float) - 1),
        _without("two values, nothing between", "new", (0, 10), lambda n, r: np.where(r.random(n) < 0.3, 3.0, 8.0)),
        _without("digits that heap at tens", "new", (0, 99),
                 lambda n, r: np.where(r.random(n) < 0.5, 10.0 * r.integers(0, 10, n), r.integers(0, 100, n)), 1.0),
        _pair("valley and exponential", "new", [(0, 1), (0, 20)],
              lambda n, r: np.c_[r.beta(0.6, 0.5, n), r.exponential(3, n)]),
        _mixture("gamma(1.7)", "new", (0, 30), (1.0, stats.gamma(1.7, scale=2)), group="wall"),
        _mixture("beta(7, 1.6)", "new", (0, 1), (1.0, stats.beta(7, 1.6)), group="wall"),
        _mixture("normal at the high wall", "new", (0, 200), (1.0, stats.norm(190, 5)), group="wall"),
        _mixture("lognormal(0.8)", "new", (0, 20), (1.0, stats.lognorm(0.8)), group="wall"),
    ]  # fmt: skip


KINDS = {kind.name: kind for kind in (*_tuned_without(), *_tuned_with(), *_judged_without(), *_judged_with(), *_new())}
"""All kinds by name."""
