"""Clusters, mixtures and comparisons that are read from one released density: right numbers, and errors that hold.

    python benchmarks/readings_clusters.py clusters --half judge --runs 4
    python benchmarks/readings_clusters.py mixtures
    python benchmarks/readings_clusters.py comparison --runs 40

Results go to docs/benchmarks/readings_*.csv.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from cluster_tables import KINDS, GroupedTable
from common import read_csv, write_csv
from fogline import DensitySketch, PrivateDensity, PrivateModeClustering
from fogline.density.comparison import compare_shapes
from fogline.density.components.leaf_cells import LeafCells
from fogline.testing import seeded_noise

FloatArray = NDArray[np.float64]
DELTA = 1e-5
SEED = 500
"""Of the noise: other than what was looked at while the readings were tuned."""
LARGE = 100_000
"""Fresh records that stand for the population."""


def released(table: GroupedTable, epsilon: float, seed: int) -> PrivateDensity:
    """A release on leaves, repeatable."""
    with seeded_noise(seed):
        sketch = DensitySketch(table.bounds, steps=table.steps, features="leaves").update(table.X)
        return sketch.release(epsilon=epsilon)


def gap_number(cells: LeafCells, most: int = 7) -> int:
    """Number of clusters by the gap statistic on the released masses."""
    rng = np.random.default_rng(0)
    low, high = cells.places.min(axis=0), cells.places.max(axis=0)

    def spread(points: FloatArray, weights: FloatArray) -> FloatArray:
        fits = (KMeans(k, n_init=2, random_state=0).fit(points, sample_weight=weights) for k in range(1, most + 1))
        return np.log([fit.inertia_ / weights.sum() for fit in fits])

    found = spread(cells.places, cells.mass)
    even = np.array([spread(rng.uniform(low, high, (600, cells.d)), np.ones(600)) for _ in range(5)])
    gap, error = even.mean(axis=0) - found, even.std(axis=0) * np.sqrt(1.2)
    enough = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    return int(enough[0]) + 1 if len(enough) else most


def covered(kind: Any, density: PrivateDensity, found: Any) -> tuple[list[bool], list[bool]]:
    """Whether 95% intervals of shares and centres hold those of the population in the same parts of the box."""
    fresh = kind.make(np.random.default_rng(99), LARGE).X if not kind.real else np.zeros((0, density.spec.d))
    if not len(fresh) or not len(found.shares):
        return [], []
    inside = np.all((fresh >= density.spec.lower) & (fresh <= density.spec.upper), axis=1)
    fresh = fresh[inside]
    label = found.predict(fresh)
    shares, centres = [], []
    for k in range(len(found.shares)):
        own = fresh[label == k]
        shares.append(bool(abs(len(own) / len(fresh) - found.shares[k]) < 1.96 * found.share_errors[k]))
        centres += (np.abs(own.mean(axis=0) - found.centres[k]) < 1.96 * found.centre_errors[k]).tolist()
    return shares, centres


def clusters(half: str, runs: int, sizes: list[int], *, alone: bool, kinds: list[str] | None) -> None:
    """Numbers of clusters by three rules, agreement with the groups, coverage; beside a fit of its own."""
    chosen = list(KINDS) if kinds is None else kinds
    rows: list[dict[str, Any]] = [dict(row) for row in read_csv("readings_clusters") if row["kind"] not in chosen]
    for name in chosen:
        kind = KINDS[name]
        for n in [0] if kind.real else sizes:
            epsilon = 3.0 if kind.real else 1.0
            if half not in (kind.half, "both"):
                continue
            found: dict[str, list[Any]] = {key: [] for key in ("number", "evidence", "gap", "ari", "ari_k", "seconds")}
            fit: dict[str, list[Any]] = {key: [] for key in ("number", "ari", "ari_k")}
            shares, centres = [], []
            for run in range(runs):
                table = kind.make(np.random.default_rng([run, n, SEED]), n)
                density = released(table, epsilon, run + SEED)
                density.posterior.masses()
                start = time.process_time()
                free, known = density.clusters(), density.clusters(table.k)
                found["seconds"].append((time.process_time() - start) / 2)
                found["number"].append(len(free.shares))
                found["evidence"].append(free.components)
                found["gap"].append(-9 if alone else gap_number(LeafCells.of(density.posterior)))
                found["ari"].append(adjusted_rand_score(table.groups, free.predict(table.X)))
                found["ari_k"].append(adjusted_rand_score(table.groups, known.predict(table.X)))
                more = covered(kind, density, free)
                shares += more[0]
                centres += more[1]
                for wanted in () if alone else (None, table.k):
                    with seeded_noise(run + SEED):
                        model = PrivateModeClustering(
                            epsilon=epsilon, delta=DELTA, bounds=table.bounds, steps=table.steps, n_clusters=wanted
                        ).fit(table.X)
                    agreement = adjusted_rand_score(table.groups, model.predict(table.X))
                    if wanted is None:
                        fit["number"].append(len(model.weights_))
                    fit["ari" if wanted is None else "ari_k"].append(agreement)
            rows.append(
                _cluster_row(name, kind.half, n or len(table.X), epsilon, runs, table.k, found, fit, shares, centres)
            )
            print(rows[-1], flush=True)
            write_csv("readings_clusters", rows)


def _cluster_row(
    name: str, half: str, n: int, epsilon: float, runs: int, k: int, found: Any, fit: Any, shares: Any, centres: Any
) -> dict[str, Any]:
    def right(numbers: list[int]) -> float:
        return mean([abs(number - k) <= 1 for number in numbers if number >= 0])

    def mean(values: list[Any]) -> float:
        return float(np.mean(values)) if values else float("nan")

    return {
        "kind": name, "half": half, "n": n, "epsilon": epsilon, "runs": runs, "groups": k,
        "found": " ".join(map(str, found["number"])), "fit_found": " ".join(map(str, fit["number"])),
        "exact": float(np.mean([number == k for number in found["number"]])),
        "within_one": right(found["number"]), "evidence_within_one": right(found["evidence"]),
        "gap_within_one": right(found["gap"]), "fit_within_one": right(fit["number"]),
        "ari": mean(found["ari"]), "fit_ari": mean(fit["ari"]),
        "ari_k": mean(found["ari_k"]), "fit_ari_k": mean(fit["ari_k"]),
        "share_coverage": mean(shares),
        "centre_coverage": mean(centres),
        "seconds": float(np.mean(found["seconds"])),
    }  # fmt: skip


def mixtures(runs: int) -> None:
    """Held-out log-likelihood of mixtures that are read, against scikit-learn and one Gaussian without privacy."""
    rows = []
    for d, k, n, epsilon in (
        (1, 3, 300, 0.3),
        (1, 3, 3000, 1.0),
        (2, 3, 300, 0.3),
        (2, 3, 1000, 1.0),
        (2, 4, 10_000, 1.0),
    ):
        gaps, single, numbers, inside = [], [], [], []
        for run in range(runs):
            rng = np.random.default_rng([run, d, n])
            means = rng.uniform(2, 8, (k, d))
            label = rng.integers(0, k, n + 4000)
            X = means[label] + 0.6 * rng.standard_normal((n + 4000, d))
            train, test = X[:n], X[n:]
            table = GroupedTable(train, label[:n], [(0.0, 10.0)] * d)
            density = released(table, epsilon, run)
            found = density.mixture(k)
            score = float(found.log_density(test).mean())
            free = GaussianMixture(k, n_init=3, random_state=run).fit(train)
            gaps.append(float(free.score(test)) - score)
            single.append(float(GaussianMixture(1).fit(train).score(test)) - score)
            numbers.append(len(density.mixture().weights))
            whole = np.abs(found.weights @ found.means - means[label].mean(axis=0))
            inside.append(float(whole.max()))
        rows.append({
            "columns": d, "components": k, "n": n, "epsilon": epsilon, "runs": runs,
            "gap_to_scikit_learn": float(np.mean(gaps)), "worst_gap": float(np.max(gaps)),
            "gap_to_one_gaussian": float(np.mean(single)), "worst_gap_to_one_gaussian": float(np.max(single)),
            "number_found": " ".join(map(str, numbers)),
        })  # fmt: skip
        print(rows[-1], flush=True)
        write_csv("readings_mixtures", rows)


SHAPES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "normal": lambda rng, n: rng.normal(30, 6, n),
    "gamma": lambda rng, n: rng.gamma(2, 3, n),
    "uniform": lambda rng, n: rng.uniform(0, 60, n),
    "at a wall": lambda rng, n: rng.exponential(4, n),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.3, 0.0, rng.gamma(2, 5, n)),
    "narrow": lambda rng, n: rng.normal(20, 0.5, n),
    "two hills": lambda rng, n: np.where(rng.random(n) < 0.5, rng.normal(15, 2, n), rng.normal(40, 4, n)),
    "heaped": lambda rng, n: np.round(rng.gamma(4, 4, n) / 5) * 5,
}
"""Shapes of one column in 0:60."""

PAIRS: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "round": lambda rng, n: rng.normal(30, 6, (n, 2)),
    "tilted": lambda rng, n: rng.normal(0, 1, (n, 2)) @ np.array([[6.0, 5.0], [0.0, 2.0]]) + 28,
    "wall and zeros": lambda rng, n: np.column_stack([rng.exponential(6, n), SHAPES["zeros"](rng, n)]),
    "two groups": lambda rng, n: np.where(rng.random((n, 1)) < 0.4, 15.0, 38.0) + rng.normal(0, 3, (n, 2)),
}
"""Shapes of two columns, both in 0:60."""

SETTINGS = ((2000, 2000, 1.0), (8000, 800, 1.0), (600, 600, 0.5), (20_000, 10_000, 3.0))
"""Records of both groups, epsilon."""


def comparison(runs: int) -> None:
    """Level of the test of equal shapes on pairs of one shape, and power where the second is a tenth wider."""
    rows: list[dict[str, Any]] = []
    for name, draw in (SHAPES | PAIRS).items():
        d = 1 if name in SHAPES else 2
        for first, second, epsilon in SETTINGS[: 4 if d == 1 else 3]:
            p_equal, p_wider = [], []
            for run in range(runs):
                rng = np.random.default_rng([run, first, len(name)])
                parts = [draw(rng, first), draw(rng, second), 1.1 * draw(rng, second)]
                tables = [GroupedTable(x.reshape(len(x), d), np.zeros(len(x), int), [(0.0, 60.0)] * d) for x in parts]
                a, b, c = (released(table, epsilon, 3 * run + i) for i, table in enumerate(tables))
                p_equal.append(compare_shapes(a, b, simulations=399).p_value)
                p_wider.append(compare_shapes(a, c, simulations=399).p_value)
            rows.append({
                "shape": name, "columns": d, "first": first, "second": second, "epsilon": epsilon, "runs": runs,
                "equal_below_0.01": float(np.mean(np.array(p_equal) <= 0.01)),
                "equal_below_0.05": float(np.mean(np.array(p_equal) <= 0.05)),
                "equal_below_0.2": float(np.mean(np.array(p_equal) <= 0.2)),
                "wider_below_0.05": float(np.mean(np.array(p_wider) <= 0.05)),
            })  # fmt: skip
            print(rows[-1], flush=True)
            write_csv("readings_comparison", rows)
    pairs = sum(row["runs"] for row in rows)
    for level in ("0.01", "0.05", "0.2"):
        print(level, sum(row[f"equal_below_{level}"] * row["runs"] for row in rows), "of", pairs)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["clusters", "mixtures", "comparison"])
    parser.add_argument("--half", default="judge", choices=["tune", "judge", "both"])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000])
    parser.add_argument("--alone", action="store_true", help="without the gap statistic and without fits of their own")
    parser.add_argument("--kinds", nargs="+", help="tables; rows of others are kept")
    options = parser.parse_args()
    if options.what == "clusters":
        clusters(options.half, options.runs, options.sizes, alone=options.alone, kinds=options.kinds)
    elif options.what == "mixtures":
        mixtures(options.runs)
    else:
        comparison(options.runs)


if __name__ == "__main__":
    main()
