"""Private Gaussian mixtures on ordinary data, on components far apart, and the Gaussian learner alone.

Run ``python benchmarks/mixtures.py`` (all parts), ``--only ordinary|speed|learner|separated|phase`` or ``--quick``.
Rows are written as they come; what was stopped goes on where it stopped. ``--fresh`` forgets what is there.

Ordinary data are mixtures of `fogline.datasets.separated_mixture`: standard deviations from 0.5 to 1 within a
component, means 3 to 6 of the largest apart. The gap is the mean log-likelihood of 20 000 fresh records under
scikit-learn's GaussianMixture (five starts, not private, the same records) less that under the private mixture.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from common import RESULTS, read_csv
from fogline import PrivateGaussianMixture
from fogline.contenders import dp_em
from fogline.datasets import separated_mixture

DELTA = 1e-6
RADIUS = 25.0
HELD_OUT = 20_000
SEEDS = 5

Row = dict[str, Any]


def ordinary_data(d: int, k: int, separation: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Records and fresh ones of a mixture with ordinary overlap."""
    truth = separated_mixture(
        d, k, separation=separation, weight_min=0.5 / k, flatness=2.0, random_state=[seed, d, k, int(10 * separation)]
    )
    X, _ = truth.sample(n, random_state=[seed, 1])
    fresh, _ = truth.sample(HELD_OUT, random_state=[seed, 2])
    return X, fresh


def reference(X: np.ndarray, k: int) -> GaussianMixture:
    """Mixture without privacy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(k, n_init=5, random_state=0).fit(X)


def private(method: str, X: np.ndarray, k: int, epsilon: float, seed: int) -> Any:
    """One private mixture."""
    if method == "dp_em":
        return dp_em(X, n_components=k, epsilon=epsilon, delta=DELTA, radius=RADIUS, random_state=seed)
    model = PrivateGaussianMixture(
        n_components=k,
        epsilon=epsilon,
        delta=DELTA,
        radius=RADIUS,
        sigma_min=0.2,
        sigma_max=3.0,
        method=method,
    )
    return model.fit(X)


def ordinary(quick: bool) -> Iterable[tuple[Row, Callable[[], Row]]]:
    """Gap of the log-likelihood, over numbers of components, dimensions, sizes and budgets."""
    sizes = (10_000,) if quick else (10_000, 100_000, 1_000_000)
    for n, d, k, separation in itertools.product(sizes, (2, 5, 10), (3, 5, 10), (3.0, 4.5, 6.0)):
        if n == 1_000_000 and separation != 4.5:
            continue
        seeds = 1 if quick or n == 1_000_000 else SEEDS if n == 10_000 else 2
        for epsilon, seed in itertools.product((1.0,) if quick or n > 10_000 else (0.5, 1.0, 3.0), range(seeds)):
            for method in ("sketch", "dp_em", "sample-aggregate"):
                if method != "sketch" and (epsilon != 1.0 or separation != 4.5 or n == 1_000_000 or seed > 1):
                    continue
                key = {"n": n, "d": d, "k": k, "separation": separation, "epsilon": epsilon, "method": method}
                yield {**key, "seed": seed}, lambda key=key, seed=seed: _gap(key, seed)  # type: ignore[misc]


_REFERENCES: dict[tuple[Any, ...], tuple[float, float]] = {}


def _gap(key: Row, seed: int) -> Row:
    X, fresh = ordinary_data(key["d"], key["k"], key["separation"], key["n"], seed)
    at = (key["n"], key["d"], key["k"], key["separation"], seed)
    if at not in _REFERENCES:
        start = time.perf_counter()
        found = reference(X, key["k"])
        _REFERENCES[at] = float(found.score(fresh)), time.perf_counter() - start
    score, seconds = _REFERENCES[at]
    start = time.perf_counter()
    model = private(key["method"], X, key["k"], key["epsilon"], seed)
    taken = time.perf_counter() - start
    return {
        "gap": score - float(np.mean(model.score_samples(fresh))),
        "seconds": taken,
        "reference_seconds": seconds,
    }


def speed(quick: bool) -> Iterable[tuple[Row, Callable[[], Row]]]:
    """Time of a fit against scikit-learn's, one start each, in one run."""
    for n, d, k, seed in itertools.product((100_000,), (20,), (5,), range(1 if quick else 3)):
        yield {"n": n, "d": d, "k": k, "seed": seed}, lambda n=n, d=d, k=k, seed=seed: _times(n, d, k, seed)  # type: ignore[misc]


def _times(n: int, d: int, k: int, seed: int) -> Row:
    X, _ = ordinary_data(d, k, 4.5, n, seed)
    start = time.perf_counter()
    GaussianMixture(k, random_state=0).fit(X)
    middle = time.perf_counter()
    private("sketch", X, k, 1.0, seed)
    end = time.perf_counter()
    return {
        "scikit_learn": middle - start,
        "sketch": end - middle,
        "ratio": (end - middle) / (middle - start),
    }


PARTS: dict[str, Callable[[bool], Iterable[tuple[Row, Callable[[], Row]]]]] = {"ordinary": ordinary, "speed": speed}


def run(part: str, *, quick: bool, fresh: bool) -> None:
    """Measure what is not there yet, row by row."""
    name = f"mixtures_{part}"
    path = RESULTS / f"{name}.csv"
    if fresh:
        path.unlink(missing_ok=True)
    done = {tuple(row.values()) for row in read_csv(name)}
    for key, measure in PARTS[part](quick):
        told = tuple(str(value) for value in key.values())
        if any(row[: len(told)] == told for row in done):
            continue
        row = {**key, **{name: f"{value:.5g}" for name, value in measure().items()}}
        print(row, flush=True)
        if not quick:
            _append(path, row)


def _append(path: Any, row: Row) -> None:
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    chosen = parser.parse_args()
    for part in [chosen.only] if chosen.only else PARTS:
        run(part, quick=chosen.quick, fresh=chosen.fresh)
