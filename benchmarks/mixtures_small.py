"""Mixtures of few records at epsilon 0.3: how far below one Gaussian without privacy, on fresh records.

    python benchmarks/mixtures_small.py --runs 3

Four kinds of data in 0:10, three components asked for, `bounds` given; rows go to docs/benchmarks/mixtures_small.csv.
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


def scored(method: str, kind: str, n: int, d: int, run: int) -> dict[str, Any]:
    """One model: nats a record below one Gaussian without privacy, and below the single one of the same release."""
    X = KINDS[kind](np.random.default_rng([run, n, d, 7]), n + FRESH, d)
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
            model = PrivateGaussianMixture(n_components=3, epsilon=0.3, delta=1e-6, bounds=[(0, 10)] * d).fit(train)
            score, number = float(model.score_samples(fresh).mean()), len(model.weights_)
    return {"method": method, "kind": kind, "columns": d, "n": n, "run": run, "components": number,
            "below_one_gaussian": one - score, "below_own_gaussian": own}  # fmt: skip


def main() -> None:
    """Run all and write a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    cells = [("read", d) for d in (1, 2)] + [("sketch", d) for d in (1, 2, 4)]
    rows = [
        scored(method, kind, n, d, run)
        for method, d in cells
        for n in (200, 500)
        for run in range(runs)
        for kind in KINDS
    ]
    write_csv("mixtures_small", rows)
    for method, d in cells:
        for n in (200, 500):
            own = [row for row in rows if (row["method"], row["columns"], row["n"]) == (method, d, n)]
            below = np.array([row["below_one_gaussian"] for row in own])
            single = max(row["below_own_gaussian"] for row in own)
            print(method, d, n, f"mean {below.mean():.2f} worst {below.max():.2f} worst against its own {single:.3f}")


if __name__ == "__main__":
    main()
