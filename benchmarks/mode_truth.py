"""Are reported modes true: false modes where there is none, coverage of 95% intervals, and the share that is found.

Kinds of columns and pairs of columns with a known density, in two halves: "tune" may be looked at while the search is
made, "judge" only to report. A fit counts as false where a mode lies further than its tolerance from every true one; an
interval covers where the true mode lies within 1.96 standard errors (two columns: in the 95% ellipse). Releases go
through the public interface with seeded noise. Writes mode_truth.csv in docs/benchmarks: one row per kind, n and
epsilon, and pooled ones.

    python benchmarks/mode_truth.py                       both halves, 20 runs: about an hour on two idle cores
    python benchmarks/mode_truth.py --half judge --runs 2 --features leaves --serial
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize

from common import spread_over_cores, write_csv
from fogline import PrivateModes
from fogline.testing import seeded_noise
from fogline_research.datasets.columns import generator

__all__ = ["KINDS", "Kind", "Outcome", "judge_fit", "pooled_rows"]

Array = NDArray[np.float64]
SETTINGS = ((1000, 1.0), (10_000, 0.3), (50_000, 1.0))
DELTA = 1e-6


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
    """

    name: str
    half: str
    bounds: tuple[tuple[float, float], ...]
    draw: Callable[[int, np.random.Generator], Array]
    modes: Array
    tolerance: Array


def _without(name: str, half: str, box: tuple[float, float], draw: Callable[..., Array]) -> Kind:
    return Kind(name, half, (box,), lambda n, rng: draw(n, rng)[:, None], np.zeros((0, 1)), np.ones(1))


def _pair(name: str, half: str, box: Sequence[tuple[float, float]], draw: Callable[..., Array], *modes: Any) -> Kind:
    widths = np.array([high - low for low, high in box])
    return Kind(name, half, tuple(box), draw, np.array(modes, dtype=float).reshape(-1, 2), 0.08 * widths)


def _some(p: NDArray[np.int64], *parts: Array) -> Array:
    """Records of the part that a row of indices names."""
    return np.asarray(np.choose(p, parts))


def _mixture(name: str, half: str, box: tuple[float, float], *parts: tuple[float, Any]) -> Kind:
    """A mixture of frozen laws; its modes are the maxima of its density on a fine grid, polished."""
    weights = np.array([weight for weight, _ in parts])
    x = np.linspace(*box, 200_001)[1:-1]
    density = sum(weight * law.pdf(x) for weight, law in parts)
    top = np.flatnonzero((density[1:-1] > density[:-2]) & (density[1:-1] >= density[2:])) + 1
    modes = x[top]
    gaps = np.diff(modes)
    tolerance = min(0.08 * (box[1] - box[0]), 0.45 * float(gaps.min()) if len(gaps) else np.inf)

    def draw(n: int, rng: np.random.Generator) -> Array:
        part = rng.choice(len(parts), size=n, p=weights)
        return _some(part, *(law.rvs(n, random_state=rng) for _, law in parts))[:, None]

    return Kind(name, half, (box,), draw, modes[:, None], np.array([tolerance]))


def _zeros(share: float, law: Any) -> Callable[..., Array]:
    return lambda n, rng: np.where(rng.random(n) < share, 0.0, law.rvs(n, random_state=rng))


def _kinds_without() -> list[Kind]:
    u = stats.uniform
    return [
        _without("uniform", "tune", (0, 1), lambda n, r: r.uniform(0, 1, n)),
        _without("exponential, wide box", "judge", (0, 60), lambda n, r: r.exponential(1, n)),
        _without("exponential", "tune", (0, 10), lambda n, r: r.exponential(1, n)),
        _without("half-normal", "tune", (0, 6), lambda n, r: np.abs(r.normal(0, 1, n))),
        _without("half-normal, wide box", "judge", (0, 50), lambda n, r: np.abs(r.normal(0, 1, n))),
        _without("Pareto", "judge", (0, 50), lambda n, r: r.pareto(1.5, n)),
        _without("Pareto, heavy", "tune", (0, 1000), lambda n, r: r.pareto(1, n)),
        _without("U shape", "tune", (0, 1), lambda n, r: r.beta(0.5, 0.5, n)),
        _without("ramp", "judge", (0, 1), lambda n, r: np.sqrt(r.random(n))),
        _without("plateau", "tune", (0, 1), lambda n, r: r.uniform(0.3, 0.7, n)),
        _without("plateau, narrow", "judge", (0, 1), lambda n, r: r.uniform(0.4, 0.55, n)),
        _without("stairs", "judge", (0, 1), lambda n, r: _some(r.choice(2, n, p=[0.7, 0.3]), u(0, 0.5).rvs(n, r),
                                                               u(0.5, 0.5).rvs(n, r))),
        _without("zeros and a tail", "tune", (0, 60), _zeros(0.6, stats.expon(scale=5))),
        _without("many zeros and a tail", "judge", (0, 100), _zeros(0.9, stats.expon(scale=20))),
        _without("spike at the wall, empty", "tune", (0, 1), lambda n, r: np.abs(r.normal(0, 0.001, n))),
        _without("both walls, empty", "judge", (0, 1), lambda n, r: np.where(r.random(n) < 0.5, 0.0, 1.0)),
        _without("gamma(0.5)", "judge", (0, 15), lambda n, r: r.gamma(0.5, 1, n)),
        _without("cut normal", "judge", (0, 5), lambda n, r: stats.truncnorm(0.5, 9).rvs(n, random_state=r) - 0.5),
        _pair("uniform square", "tune", [(0, 1)] * 2, lambda n, r: r.uniform(0, 1, (n, 2))),
        _pair("exponential corner", "judge", [(0, 10)] * 2, lambda n, r: r.exponential(1.5, (n, 2))),
        _pair("ramp and uniform", "judge", [(0, 1)] * 2, lambda n, r: np.c_[np.sqrt(r.random(n)), r.random(n)]),
        _pair("half-normal edge", "tune", [(0, 6), (0, 1)], lambda n, r: np.c_[np.abs(r.normal(0, 1, n)), r.random(n)]),
    ]  # fmt: skip


def _skewed_pair() -> Kind:
    gamma, normal = stats.gamma(3), stats.norm(5, 1)
    return _pair(
        "skewed pair", "judge", [(0, 15), (0, 10)],
        lambda n, r: np.c_[gamma.rvs(n, random_state=r), normal.rvs(n, random_state=r)], (2.0, 5.0),
    )  # fmt: skip


def _tilted_pair() -> Kind:
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    return _pair(
        "tilted pair", "tune", [(0, 10)] * 2,
        lambda n, r: r.multivariate_normal([4, 6], covariance, n), (4.0, 6.0),
    )  # fmt: skip


def _three_groups() -> Kind:
    centres, weights = np.array([[3.0, 3.0], [7.0, 4.0], [5.0, 8.0]]), np.array([0.5, 0.3, 0.2])

    def negative(x: Array) -> float:
        return -float(sum(w * stats.multivariate_normal.pdf(x, c, 0.49) for w, c in zip(weights, centres, strict=True)))

    modes = [minimize(negative, c, method="Nelder-Mead", options={"xatol": 1e-8}).x for c in centres]

    def draw(n: int, rng: np.random.Generator) -> Array:
        return np.asarray(centres[rng.choice(3, n, p=weights)] + 0.7 * rng.standard_normal((n, 2)))

    return _pair("three groups", "judge", [(0, 10)] * 2, draw, *modes)


def _kinds_with() -> list[Kind]:
    normal, gamma = stats.norm, stats.gamma
    return [
        _mixture("normal", "tune", (0, 20), (1.0, normal(5, 1))),
        _mixture("normal, wide box", "judge", (0, 60), (1.0, normal(2.6, 0.7))),
        _mixture("normal near a wall", "judge", (0, 1), (1.0, normal(0.9, 0.03))),
        _mixture("Laplace", "tune", (0, 20), (1.0, stats.laplace(5, 1))),
        _mixture("Student", "judge", (-10, 20), (1.0, stats.t(3, loc=5))),
        _mixture("gamma(3)", "tune", (0, 20), (1.0, gamma(3))),
        _mixture("gamma(2)", "judge", (0, 60), (1.0, gamma(2, scale=3))),
        _mixture("lognormal", "judge", (0, 20), (1.0, stats.lognorm(0.6, scale=np.e))),
        _mixture("beta(2, 5)", "tune", (0, 1), (1.0, stats.beta(2, 5))),
        _mixture("Weibull", "judge", (0, 5), (1.0, stats.weibull_min(1.8))),
        _mixture("Gumbel", "judge", (-2, 15), (1.0, stats.gumbel_r(3, 1))),
        _mixture("two unequal", "tune", (0, 12), (0.7, normal(3, 0.5)), (0.3, normal(7, 1.2))),
        _mixture("two close", "judge", (0, 12), (0.5, normal(4, 0.6)), (0.5, normal(6, 0.6))),
        _mixture("four", "judge", (0, 40), *((0.25, normal(m, s)) for m, s in ((6, 1), (14, 1.5), (22, 1), (31, 2)))),
        _mixture("peak on a broad one", "tune", (0, 10), (0.6, normal(2, 0.4)), (0.4, normal(3, 1.0))),
        _three_groups(),
        _skewed_pair(),
        _tilted_pair(),
    ]


KINDS = {kind.name: kind for kind in (*_kinds_without(), *_kinds_with())}


@dataclass(frozen=True)
class Outcome:
    """One fit: whether a mode was false, how many true ones there are, were found and are covered, squared errors."""

    kind: str
    half: str
    has_mode: bool
    n: int
    epsilon: float
    false: bool
    modes: int
    found: int
    covered: int
    squared: float


def judge_fit(job: tuple[str, int, float, int, str]) -> Outcome:
    """Draw records, fit, and compare with the truth."""
    name, n, epsilon, run, features = job
    kind = KINDS[name]
    records = kind.draw(n, generator("mode truth", name, n, run))
    model = PrivateModes(
        epsilon=epsilon, delta=None if features == "leaves" else DELTA, bounds=kind.bounds, features=features
    )
    with seeded_noise(run + 1):
        model.fit(records)
    taken: set[int] = set()
    covered, squared = 0, 0.0
    for mode in kind.modes:
        offset = model.modes_ - mode
        near = [i for i in range(len(offset)) if i not in taken and np.all(np.abs(offset[i]) <= kind.tolerance)]
        if not near:
            continue
        best = min(near, key=lambda i: float(np.sum((offset[i] / kind.tolerance) ** 2)))
        taken.add(best)
        distance = float(offset[best] @ np.linalg.solve(model.covariances_[best], offset[best]))
        covered += distance <= stats.chi2(len(mode)).ppf(0.95)
        squared += float(np.sum((offset[best] / kind.tolerance) ** 2))
    false = len(model.modes_) > len(taken)
    return Outcome(
        name, kind.half, len(kind.modes) > 0, n, epsilon, false, len(kind.modes), len(taken), covered, squared
    )


def pooled_rows(outcomes: Sequence[Outcome], features: str) -> Iterator[dict[str, Any]]:
    """Rows of the CSV: by kind and setting, by kind, and by half."""
    groups: dict[tuple[str, ...], list[Outcome]] = defaultdict(list)
    for one in outcomes:
        there = "with a mode" if one.has_mode else "without a mode"
        groups[one.half, there, "all", "all", "all"].append(one)
        groups[one.half, there, one.kind, "all", "all"].append(one)
        groups[one.half, there, one.kind, str(one.n), f"{one.epsilon:g}"].append(one)
    for (half, there, kind, n, epsilon), some in sorted(groups.items()):
        modes, found = sum(one.modes for one in some), sum(one.found for one in some)
        yield {
            "features": features, "half": half, "truth": there, "kind": kind, "n": n, "epsilon": epsilon,
            "fits": len(some), "false": sum(one.false for one in some) / len(some),
            "found": found / modes if modes else "", "coverage": sum(o.covered for o in some) / found if found else "",
            "rms_error": (sum(one.squared for one in some) / found) ** 0.5 if found else "",
        }  # fmt: skip


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["tune", "judge", "both"], default="both")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--features", nargs="+", default=["leaves"], choices=["leaves", "grid"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), metavar="KIND")
    parser.add_argument("--serial", action="store_true", help="one process")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for features in chosen.features:
        jobs = [
            (name, n, epsilon, run, features)
            for run in range(chosen.runs)
            for n, epsilon in SETTINGS
            for name in chosen.kinds
            if chosen.half in ("both", KINDS[name].half)
        ]
        outcomes = list(map(judge_fit, jobs)) if chosen.serial else spread_over_cores(judge_fit, jobs, label=features)
        rows += pooled_rows(outcomes, features)
    print(write_csv("mode_truth", rows))


if __name__ == "__main__":
    main()
