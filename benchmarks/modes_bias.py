"""Whether stated errors of modes contain smoothing: skewed hills with a delta, and modes at an edge.

    python benchmarks/modes_bias.py --runs 12

The kinds were written down after the model of the bias was made, on others (`fogline/density/modes/smoothing_bias.py`).
Each release is read twice: with the model and without it, which is the reading of before. Rows, one per kind and
setting, go to docs/benchmarks/modes_bias.csv.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, skewnorm

from common import spread_over_cores, write_csv
from fogline import DensitySketch
from fogline.density.modes import leaf_positions, scale_space
from fogline.testing import seeded_noise

SETTINGS = ((2000, 1.0), (20_000, 0.5), (50_000, 1.0))
DELTA = 1e-6


@dataclass(frozen=True)
class Kind:
    """A law of records with its true modes; on leaves without a delta, by Fourier sums or random features with one."""

    draw: Callable[[np.random.Generator, int], Any]
    bounds: tuple[tuple[float, float], ...]
    modes: tuple[tuple[float, ...], ...]
    delta: float = DELTA


def _turned(x: Any, angle: float = 0.6) -> Any:
    c, s = np.cos(angle), np.sin(angle)
    return x @ np.array([[c, s], [-s, c]])


def _above(rng: np.random.Generator, n: int) -> Any:
    x = rng.normal(10, 6, 6 * n)
    return x[x > 12][:n, None]


TOP = float(minimize_scalar(lambda x: -skewnorm.pdf(x, 4), bounds=(0, 1), method="bounded").x)

KINDS = {
    "Weibull and normal": Kind(
        lambda rng, n: np.c_[2.5 * rng.weibull(1.8, n), rng.normal(5, 1, n)],
        ((0, 12), (0, 10)),
        ((2.5 * (0.8 / 1.8) ** (1 / 1.8), 5),),
    ),
    "beta and gamma": Kind(
        lambda rng, n: np.c_[rng.beta(2, 6, n), rng.gamma(2.5, 0.1, n)], ((0, 1), (0, 1.5)), ((1 / 6, 0.15),)
    ),
    "skewed and tilted": Kind(
        lambda rng, n: _turned(np.c_[1.5 * skewnorm.rvs(4, size=n, random_state=rng), 0.7 * rng.normal(size=n)]),
        ((-5, 7), (-5, 7)),
        (tuple(_turned(np.array([1.5 * TOP, 0.0])).tolist()),),
    ),
    "two skewed groups": Kind(
        lambda rng, n: np.r_[
            np.c_[2 + rng.gamma(2.5, 0.5, n // 2), 2 + rng.gamma(2.5, 0.5, n // 2)],
            np.c_[14 - rng.gamma(2.5, 0.5, n - n // 2), rng.normal(12, 0.8, n - n // 2)],
        ],
        ((0, 16), (0, 16)),
        ((2.75, 2.75), (13.25, 12)),
    ),
    "two unequal groups": Kind(
        lambda rng, n: np.r_[
            rng.normal((4, 4), 0.5, (3 * n // 4, 2)), rng.normal((8, 7), (1.2, 0.8), (n - 3 * n // 4, 2))
        ],
        ((0, 12), (0, 12)),
        ((4, 4), (8, 7)),
    ),
    "logistic": Kind(lambda rng, n: rng.logistic(0, 0.6, (n, 2)), ((-7, 7), (-7, 7)), ((0, 0),)),
    "normal, three columns": Kind(lambda rng, n: rng.normal(0, 1, (n, 3)), ((-5, 5),) * 3, ((0, 0, 0),)),
    "gamma, three columns": Kind(
        lambda rng, n: np.c_[rng.gamma(3, 1, n), rng.gamma(3, 1, n), rng.normal(0, 1, n)],
        ((0, 14), (0, 14), (-5, 5)),
        ((2, 2, 0),),
    ),
    "edge: half-normal from 20": Kind(
        lambda rng, n: 20 + np.abs(rng.normal(0, 12, (n, 1))), ((0, 100),), ((20,),), delta=0.0
    ),
    "edge: normal above 12": Kind(_above, ((0, 40),), ((12,),), delta=0.0),
    "edge: exponential from 0.05": Kind(
        lambda rng, n: 0.05 + rng.exponential(0.12, (n, 1)), ((0, 2),), ((0.05,),), delta=0.0
    ),
    "edge: exponential down from 90": Kind(
        lambda rng, n: 90 - rng.exponential(9, (n, 1)), ((0, 100),), ((90,),), delta=0.0
    ),
    "no edge: Gumbel": Kind(lambda rng, n: rng.gumbel(20, 4, (n, 1)), ((0, 60),), ((20,),), delta=0.0),
    "no edge: beta(2, 8)": Kind(lambda rng, n: rng.beta(2, 8, (n, 1)), ((0, 1),), ((1 / 8,),), delta=0.0),
    "no edge: F(8, 10)": Kind(lambda rng, n: rng.f(8, 10, (n, 1)), ((0, 10),), ((6 / 8 * 10 / 12,),), delta=0.0),
}


def main() -> None:
    """Run all and write a row per kind and setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=12)
    runs = parser.parse_args().runs
    jobs = [(name, n, epsilon, runs) for name in KINDS for n, epsilon in SETTINGS]
    rows = spread_over_cores(_row, jobs, label="bias of modes")
    write_csv("modes_bias", rows)
    for part in ("skewed", "edge", "other"):
        mine = [row for row in rows if _part(row["kind"]) == part]
        found = sum(row["found"] for row in mine)
        covered = {key: sum(row[key] * row["found"] for row in mine) / found for key in ("held", "held_before")}
        print(part, f"{found} modes, 95% held {covered['held']:.3f}, before {covered['held_before']:.3f}")


def _part(kind: str) -> str:
    if kind.startswith("edge"):
        return "edge"
    symmetric = kind in ("two unequal groups", "logistic", "normal, three columns") or kind.startswith("no edge")
    return "other" if symmetric else "skewed"


def _row(job: tuple[str, int, float, int]) -> dict[str, Any]:
    name, n, epsilon, runs = job
    kind, number = KINDS[name], list(KINDS).index(name)
    found: dict[bool, list[tuple[bool, float, float]]] = {True: [], False: []}
    for run in range(runs):
        records = kind.draw(np.random.default_rng([2026, number, n, run]), n)
        features = "auto" if kind.delta else "leaves"
        sketch = DensitySketch(kind.bounds, features=features).update(records)
        with seeded_noise(1000 * number + run):
            density = sketch.release(epsilon=epsilon, delta=kind.delta)
        for with_model in (True, False):
            found[with_model] += _errors(density, kind, with_model)
    now, before = (np.array(found[key], dtype=np.float64).reshape(-1, 3) for key in (True, False))
    return {
        "kind": name, "n": n, "epsilon": epsilon, "runs": runs, "modes": runs * len(kind.modes), "found": len(now),
        "held": now[:, 0].mean(), "held_before": before[:, 0].mean(),
        "rmse": np.sqrt(now[:, 1].mean()), "rmse_before": np.sqrt(before[:, 1].mean()),
        "stated": np.sqrt(np.median(now[:, 2])), "stated_before": np.sqrt(np.median(before[:, 2])),
    }  # fmt: skip


def _errors(density: Any, kind: Kind, with_model: bool) -> list[tuple[bool, float, float]]:
    """Of each true mode that was found: whether its ellipse held, its squared error, and the stated one."""
    kept = scale_space._with_smoothing, leaf_positions._edge_at, leaf_positions.LEAF_POSITIONS
    if not with_model:
        scale_space._with_smoothing = lambda *args: args[-1]
        leaf_positions._edge_at = lambda *args: 0.0  # noqa: ARG005
        scales = {**kept[2].bandwidths, 1: (0.003, 0.13, 14)}
        leaf_positions.LEAF_POSITIONS = replace(kept[2], bandwidths=scales)
    try:
        modes = copy.deepcopy(density).modes()
    finally:
        scale_space._with_smoothing, leaf_positions._edge_at, leaf_positions.LEAF_POSITIONS = kept
    told, taken = [], set()
    for true in kind.modes:
        if not len(modes.positions):
            continue
        near = int(np.argmin(((modes.positions - true) ** 2).sum(axis=1)))
        away, covariance = modes.positions[near] - true, modes.covariances[near]
        if near in taken or np.any(np.abs(away) > 0.25 * np.ptp(kind.bounds, axis=1)):
            continue
        taken.add(near)
        inside = float(away @ np.linalg.solve(covariance, away)) < chi2.ppf(0.95, len(away))
        told.append((inside, float(away @ away), float(np.trace(covariance))))
    return told


if __name__ == "__main__":
    main()
