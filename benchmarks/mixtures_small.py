"""Mixtures of few records at epsilon 0.3: how far below one Gaussian without privacy, on fresh records.

    python benchmarks/mixtures_small.py --runs 3
    python benchmarks/mixtures_small.py --half judge --runs 5

Kinds of data in 0:10, three components asked for, `bounds` given; rows go to docs/benchmarks/mixtures_small.csv. The
half "tune" was looked at while the fit was made, the half "judge" only to report. Each model is compared with one
Gaussian without privacy, and with the one Gaussian that the same release, or a fit with the same budget and noise,
gives where one component is asked for.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.mixture import GaussianMixture

from common import write_csv
from fogline import DensitySketch, PrivateGaussianMixture
from fogline.testing import seeded_noise

FloatArray = NDArray[np.float64]
FRESH = 3000


def _groups(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    means = rng.uniform(2, 8, (3, d))
    return np.asarray(means[rng.integers(0, 3, n)] + 0.6 * rng.standard_normal((n, d)))


def _thin(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    turn = 0.15 * np.eye(d)
    turn[0] = 1.0
    return np.asarray(5 + rng.standard_normal((n, d)) @ turn)


KINDS: dict[str, Callable[[np.random.Generator, int, int], FloatArray]] = {
    "groups": _groups,
    "one": lambda rng, n, d: rng.normal(5, 1.2, (n, d)),
    "skewed": lambda rng, n, d: rng.gamma(2, 1, (n, d)),
    "thin": _thin,
}


def _unequal(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    far = rng.random((n, 1)) < 0.25
    return np.asarray(np.where(far, 7.5 + 0.5 * rng.standard_normal((n, d)), 3 + rng.standard_normal((n, d))))


def _correlated(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    return np.asarray(5 + 0.9 * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, d)))


JUDGED: dict[str, Callable[[np.random.Generator, int, int], FloatArray]] = {
    "unequal groups": _unequal,
    "correlated": _correlated,
    "lognormal": lambda rng, n, d: rng.lognormal(0.8, 0.5, (n, d)),
    "uniform": lambda rng, n, d: rng.uniform(1, 8, (n, d)),
    "Student": lambda rng, n, d: 5 + 0.8 * rng.standard_t(4, (n, d)),
}

HALVES = {"tune": KINDS, "judge": JUDGED}


def scored(method: str, kind: str, n: int, d: int, run: int) -> dict[str, Any]:
    """One model: nats per record below one Gaussian without privacy, and below the single one of the same release."""
    X = (KINDS | JUDGED)[kind](np.random.default_rng([run, n, d, 7]), n + FRESH, d)
    train, fresh = np.clip(X[:n], 0, 10), X[n:]
    fresh = fresh[((fresh >= 0) & (fresh <= 10)).all(axis=1)]
    one = float(GaussianMixture(1).fit(train).score(fresh))
    own = float("nan")
    with seeded_noise(run + 7):
        if method == "read":
            density = DensitySketch([(0, 10)] * d, features="leaves").update(train).release(epsilon=0.3)
            found = density.mixture(3)
            score, number = float(found.log_density(fresh).mean()), len(found.weights)
            own = float(density.mixture(1).log_density(fresh).mean()) - score
        else:
            settings: dict[str, Any] = {"epsilon": 0.3, "delta": 1e-6, "bounds": [(0, 10)] * d}
            model = PrivateGaussianMixture(n_components=3, **settings).fit(train)
            score, number = float(model.score_samples(fresh).mean()), len(model.weights_)
            with seeded_noise(run + 7):
                single = PrivateGaussianMixture(n_components=1, **settings).fit(train)
            own = float(single.score_samples(fresh).mean()) - score
    return {"method": method, "kind": kind, "columns": d, "n": n, "run": run, "components": number,
            "below_one_gaussian": one - score, "below_own_gaussian": own}  # fmt: skip


def main() -> None:
    """Run all and write a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--half", choices=list(HALVES), default="tune")
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--records", type=int, nargs="+", default=[200, 500])
    parser.add_argument("--methods", nargs="+", default=["read", "sketch"], choices=["read", "sketch"])
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--csv", default="mixtures_small", help="name of the file, empty to print only")
    chosen = parser.parse_args()
    kinds, sizes = HALVES[chosen.half], chosen.records
    warnings.simplefilter("ignore")
    cells = [(method, d) for method in chosen.methods for d in chosen.columns if (method, d) != ("read", 4)]
    rows = [
        {"half": chosen.half, **scored(method, kind, n, d, run)}
        for method, d in cells
        for n in sizes
        for run in range(chosen.first, chosen.first + chosen.runs)
        for kind in kinds
    ]
    if chosen.csv:
        write_csv(chosen.csv, rows)
    for method, d in cells:
        for n in sizes:
            own = [row for row in rows if (row["method"], row["columns"], row["n"]) == (method, d, n)]
            below = np.array([row["below_one_gaussian"] for row in own])
            single = np.array([row["below_own_gaussian"] for row in own])
            worse = f"own: mean {single.mean():.3f} worst {single.max():.3f}, above 0.1 in {(single > 0.1).sum()}"
            print(method, d, n, f"mean {below.mean():.2f} worst {below.max():.2f} of {len(own)}; {worse}")


if __name__ == "__main__":
    main()
