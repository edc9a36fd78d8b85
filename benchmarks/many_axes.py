"""Modes in more than three columns: the right number, the error against the limit of the records, the ellipses.

    python benchmarks/many_axes.py [--quick]

Mixtures of equal, spherical Gaussians of deviation 1 in a box from -8 to 8, their centres drawn anew in each run and at
least `separation` deviations apart. The limit of the records is the error of the mean of each component's own records.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from common import spread_over_cores, write_csv
from fogline import PrivateModes
from fogline_research.metrics import ellipse_covers

SEED = 20261116
HALF = 8.0
SETTINGS = [
    # axes, modes, records, separation, runs
    (4, 4, 5_000, 4.0, 20),
    (5, 4, 5_000, 4.0, 20),
    (5, 5, 50_000, 4.0, 10),
    (8, 4, 20_000, 5.0, 10),
    (8, 4, 50_000, 6.0, 10),
    (5, 0, 5_000, 0.0, 100),
    (8, 0, 20_000, 0.0, 20),
]


def centres(rng: np.random.Generator, k: int, d: int, separation: float) -> Any:
    """Draw k points in the middle of the box, each at least so far from the others."""
    kept: list[Any] = []
    while len(kept) < k:
        point = rng.uniform(-HALF + 3, HALF - 3, d)
        if all(np.linalg.norm(point - other) >= separation for other in kept):
            kept.append(point)
    return np.array(kept)


def one(job: tuple[int, int, int, float, int]) -> dict[str, Any]:
    d, k, n, separation, run = job
    rng = np.random.default_rng([SEED, d, k, n, run])
    box = [(-HALF, HALF)] * d
    if k == 0:
        X = rng.uniform(-HALF, HALF, (n, d))
        began = time.process_time()
        found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=box).fit(X)
        return {"excess": len(found.modes_), "seconds": time.process_time() - began}
    true = centres(rng, k, d, separation)
    component = rng.integers(k, size=n)
    X = true[component] + rng.normal(size=(n, d))
    began = time.process_time()
    found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=box).fit(X)
    seconds = time.process_time() - began
    pairs = list(zip(*linear_sum_assignment(_squared(true, found.modes_)), strict=True))
    means = np.array([X[component == j].mean(axis=0) for j in range(k)])
    return {
        "excess": len(found.modes_) - k,
        "errors": [float(np.mean((true[i] - found.modes_[j]) ** 2)) for i, j in pairs],
        "limits": np.mean((means - true) ** 2, axis=1).tolist(),
        "covered": [ellipse_covers(true[i], found.modes_[j], found.covariances_[j]) for i, j in pairs],
        "seconds": seconds,
    }


def _squared(a: Any, b: Any) -> Any:
    return np.sum((a[:, None] - b[None]) ** 2, axis=-1)


def _pooled(cell: list[dict[str, Any]], name: str) -> float:
    values = [value for row in cell for value in row.get(name, [])]
    return float(np.mean(values)) if values else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description="Modes in many columns.")
    parser.add_argument("--quick", action="store_true", help="two runs of each")
    quick = parser.parse_args().quick
    jobs = [(*setting[:4], run) for setting in SETTINGS for run in range(2 if quick else setting[4])]
    found = spread_over_cores(one, jobs, label="modes in many columns")
    rows = []
    for d, k, n, separation, _ in SETTINGS:
        cell = [row for job, row in zip(jobs, found, strict=True) if job[:4] == (d, k, n, separation)]
        excess = np.array([row["excess"] for row in cell])
        rows.append(
            {
                "data": f"{k} modes, {separation:g} deviations apart" if k else "uniform",
                "d": d,
                "n": n,
                "runs": len(cell),
                "right": float(np.mean(excess == 0)),
                "too_many": float(np.mean(excess > 0)),
                "rmse": _pooled(cell, "errors") ** 0.5,
                "limit": _pooled(cell, "limits") ** 0.5,
                "covered": _pooled(cell, "covered"),
                "seconds": float(np.median([row["seconds"] for row in cell])),
            }
        )
    write_csv("modes_many_axes", rows)


if __name__ == "__main__":
    main()
