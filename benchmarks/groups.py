"""The test of difference between two groups, and private bounds: level, power, coverage. Minutes on one core.

Writes docs/benchmarks/comparison.csv (share of runs in which two groups are told apart at level 0.05) and
docs/benchmarks/bounds.csv (what a private range holds).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from common import write_csv
from fogline import DensitySketch, private_bounds
from fogline.density.comparison import compare_shapes

Draw = Callable[[np.random.Generator, int], Any]
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}

SHAPES: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(5, 1, n),
    "normal, a fourth of a deviation further": lambda rng, n: rng.normal(5.25, 1, n),
    "normal, a fourth wider": lambda rng, n: rng.normal(5, 1.25, n),
    "two bumps": lambda rng, n: rng.normal(np.where(rng.random(n) < 0.3, 3, 7), 0.5),
    "two bumps, 40 to 60": lambda rng, n: rng.normal(np.where(rng.random(n) < 0.4, 3, 7), 0.5),
    "uniform": lambda rng, n: rng.uniform(0, 10, n),
    "at the edge": lambda rng, n: np.abs(rng.normal(0, 1, n)),
    "narrow": lambda rng, n: rng.normal(5, 0.15, n),
}
PAIRS = [
    *((name, name) for name in ("normal", "two bumps", "uniform", "at the edge", "narrow")),
    ("normal", "normal, a fourth of a deviation further"),
    ("normal", "normal, a fourth wider"),
    ("two bumps", "two bumps, 40 to 60"),
]
SIZES = ((500, 500), (3000, 300), (5000, 5000))

COLUMNS: dict[str, Draw] = {
    "years 1950 to 2009": lambda rng, n: rng.integers(1950, 2010, n).astype(float),
    "ages 18 to 94": lambda rng, n: rng.integers(18, 95, n).astype(float),
    "normal (0, 1)": lambda rng, n: rng.normal(0, 1, n),
    "lognormal (10, 0.5)": lambda rng, n: rng.lognormal(10, 0.5, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "60% zeros, else gamma": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.gamma(2, 50, n)),
}


def comparison(runs: int) -> list[dict[str, Any]]:
    """Share of runs in which each pair is told apart."""
    rng = np.random.default_rng(1)
    rows = []
    for (first, second), (n, m) in ((pair, sizes) for pair in PAIRS for sizes in SIZES):
        p = [
            compare_shapes(
                *(
                    DensitySketch([(0, 10)]).update(draw(rng, size)).release(**BUDGET)
                    for draw, size in ((SHAPES[first], n), (SHAPES[second], m))
                ),
                simulations=199,
            ).p_value
            for _ in range(runs)
        ]
        told = float(np.mean(np.array(p) <= 0.05))
        rows.append({"first": first, "second": second, "n": n, "m": m, "runs": runs, "told_apart": told})
        print(rows[-1], flush=True)
    return rows


def bounds(runs: int) -> list[dict[str, Any]]:
    """What private ranges hold, and how wide they are against the middle 99% of the records."""
    rng = np.random.default_rng(2)
    rows = []
    for (name, draw), n in ((column, n) for column in COLUMNS.items() for n in (300, 1000, 3000, 10_000, 100_000)):
        covered, width, none = [], [], 0
        for _ in range(runs):
            x = draw(rng, n)
            low, high = private_bounds(x, **BUDGET).bounds[0]
            if np.isnan(low):
                none += 1
                continue
            covered.append(np.mean((x >= low) & (x <= high)))
            width.append((high - low) / np.ptp(np.quantile(x, [0.005, 0.995])))
        median = [float(np.median(part)) if part else None for part in (covered, width)]
        least = float(np.min(covered)) if covered else None
        rows.append(
            {
                "column": name,
                "n": n,
                "runs": runs,
                "no_range": none,
                "median_held": median[0],
                "least_held": least,
                "median_width": median[1],
            }
        )
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    write_csv("bounds", bounds(max(20, runs // 4)))
    write_csv("comparison", comparison(runs))
