"""Fits of families on kinds of records that nothing was tuned on: how often 95% intervals hold each parameter.

    python benchmarks/hellinger_fresh.py --runs 10
    python benchmarks/hellinger_fresh.py --runs 6 --shares 0.05 0.1 0.2

Without other records all kinds are fitted, from a release on leaves ("read") and by `PrivateHellinger` with a delta
("sketch"). With other records those kinds are read that name some, and what a result says is true where the intervals
hold that it points at, as in `hellinger_contaminated.py`. Rows go to docs/benchmarks/hellinger_fresh.csv.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import read_csv, write_csv
from fogline import DensitySketch, PrivateHellinger
from fogline.testing import seeded_noise

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True)
class Kind:
    """A family with its true parameters, public ranges, records of it and, perhaps, other ones."""

    family: str
    truth: dict[str, float]
    box: tuple[float, float]
    ranges: dict[str, tuple[float, float]]
    draw: Draw
    others: Draw | None = None
    step: float | None = None


def _zeros(share: float, draw: Draw) -> Draw:
    return lambda r, n: np.where(r.random(n) < share, 0.0, draw(r, n))


def _cut(draw: Draw, high: float) -> Draw:
    """Records above the box are not there at all."""

    def kept(r: np.random.Generator, n: int) -> Array:
        x = draw(r, 8 * n)
        return x[x <= high][:n]

    return kept


KINDS = {
    "normal, to one side of its box": Kind(
        "normal", {"mu": 131.0, "sigma": 17.0}, (60, 260), {"mu": (60, 260), "sigma": (2, 80)},
        lambda r, n: r.normal(131, 17, n), lambda r, n: r.normal(172, 9, n)),
    "logistic": Kind(
        "logistic", {"location": -2.0, "scale": 0.9}, (-20, 20), {"location": (-20, 20), "scale": (0.1, 8)},
        lambda r, n: r.logistic(-2, 0.9, n), lambda r, n: r.uniform(2, 20, n)),
    "Weibull": Kind(
        "weibull", {"shape": 1.6, "scale": 9.0}, (0, 50), {"shape": (0.5, 6), "scale": (1, 40)},
        lambda r, n: 9 * r.weibull(1.6, n), lambda _, n: np.full(n, 30.0)),
    "gamma": Kind(
        "gamma", {"shape": 5.0, "scale": 0.7}, (0, 20), {"shape": (0.5, 30), "scale": (0.1, 9)},
        lambda r, n: r.gamma(5, 0.7, n), lambda r, n: r.normal(9, 0.8, n)),
    "beta": Kind(
        "beta", {"a": 2.0, "b": 6.0}, (0, 1), {"a": (0.3, 20), "b": (0.3, 30)},
        lambda r, n: r.beta(2, 6, n), lambda r, n: r.uniform(0, 1, n)),
    "exponential, cut": Kind(
        "exponential", {"scale": 5.0}, (0, 12), {"scale": (0.5, 60)}, _cut(lambda r, n: r.exponential(5, n), 12)),
    "zero-inflated lognormal": Kind(
        "zero-inflated lognormal", {"zero": 0.22, "mu": 2.0, "sigma": 0.5}, (0, 60),
        {"zero": (0, 1), "mu": (-1, 4), "sigma": (0.1, 2)},
        _zeros(0.22, lambda r, n: r.lognormal(2, 0.5, n)), lambda r, n: r.uniform(20, 60, n)),
    "Poisson": Kind(
        "poisson", {"rate": 3.4}, (0, 30), {"rate": (0.2, 25)}, lambda r, n: r.poisson(3.4, n).astype(float),
        lambda _, n: np.zeros(n), 1.0),
    "negative binomial": Kind(
        "negative binomial", {"mean": 4.0, "size": 1.5}, (0, 60), {"mean": (0.2, 30), "size": (0.2, 30)},
        lambda r, n: r.negative_binomial(1.5, 1.5 / 5.5, n).astype(float), None, 1.0),
    "Student with 4": Kind(
        "t4", {"location": 10.0, "scale": 2.0}, (-30, 50), {"location": (-30, 50), "scale": (0.2, 20)},
        lambda r, n: 10 + 2 * r.standard_t(4, n)),
}  # fmt: skip


def fitted(name: str, way: str, n: int, share: float, epsilon: float, run: int) -> dict[str, Any]:
    """One fit: how many parameters its intervals hold, and what it says."""
    kind = KINDS[name]
    rng = np.random.default_rng([run, n, int(1000 * share), len(name), 16])
    wrong = round(share * n)
    parts = [kind.draw(rng, n - wrong)] + ([] if kind.others is None else [kind.others(rng, wrong)])
    x = np.concatenate(parts)
    x = x[(x >= kind.box[0]) & (x <= kind.box[1])]
    row = {"kind": name, "way": way, "n": n, "share": share, "epsilon": epsilon, "run": run}
    with seeded_noise(run + 1600):
        if way == "sketch":
            model = PrivateHellinger(
                family=kind.family, parameter_bounds=kind.ranges, bounds=[kind.box], epsilon=epsilon, delta=1e-5
            ).fit(x)
            return {**row, "parameters": len(kind.truth), "held": _number_within(kind, model.confidence_intervals_)}
        sketch = DensitySketch([kind.box], features="leaves", steps=None if kind.step is None else [kind.step])
        density = sketch.update(x[:, None]).release(epsilon=epsilon)
    fit = density.fit(kind.family, parameter_bounds=kind.ranges)
    contained, robust = _number_within(kind, fit.intervals), _number_within(kind, fit.robust_intervals)
    points = "no promise" in str(fit.assumption)
    meant = robust if points else contained
    return {
        **row, "parameters": len(kind.truth), "held": contained, "robust_held": robust, "fits": fit.assumption.holds,
        "points_at_robust": points, "true": meant == len(kind.truth),
    }  # fmt: skip


def _number_within(kind: Kind, ends: dict[str, tuple[float, float]]) -> int:
    return sum(ends[name][0] <= value <= ends[name][1] for name, value in kind.truth.items())


def main() -> None:
    """Run all, write a row for each fit and print a line for each kind, way, size and share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0])
    parser.add_argument("--records", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--ways", nargs="+", default=["read"], choices=["read", "sketch"])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--csv", default="hellinger_fresh")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for way in chosen.ways:
        for n in chosen.records:
            for share in chosen.shares:
                for name, kind in KINDS.items():
                    if (share and kind.others is None) or (way == "sketch" and (kind.step or "zero" in kind.truth)):
                        continue
                    runs = range(chosen.first, chosen.first + chosen.runs)
                    own = [fitted(name, way, n, share, chosen.epsilon, run) for run in runs]
                    rows += own
                    contained, known = (sum(row[column] for row in own) for column in ("held", "parameters"))
                    columns = [c for c in ("robust_held", "points_at_robust", "true") if c in own[0]]
                    said = [sum(row[c] for row in own) for c in columns]
                    print(way, n, share, name, f"{contained} of {known}; robust, pointed at, true:", *said, flush=True)
    if chosen.csv:
        write_csv(chosen.csv, [*read_csv(chosen.csv), *rows])


if __name__ == "__main__":
    main()
