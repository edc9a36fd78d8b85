"""Positions of symmetric modes: releases on leaves (pure epsilon) against Fourier sums (epsilon and a delta of 1e-6).

    python benchmarks/modes_symmetric.py --runs 30

Kinds that no search was tuned on. Both releases see the same records; squared errors of the mode nearest to the true
one, and how often 95% intervals hold it. Rows go to docs/benchmarks/modes_symmetric.csv.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import stats

from common import write_csv
from fogline import DensitySketch
from fogline.testing import seeded_noise

KINDS = {
    "Laplace(0.45, 0.08) in 0:1": (stats.laplace(0.45, 0.08), (0.0, 1.0), 0.45),
    "normal(0.62, 0.09) in 0:1": (stats.norm(0.62, 0.09), (0.0, 1.0), 0.62),
    "Student(5) in -12:18": (stats.t(5, loc=2.0, scale=1.4), (-12.0, 18.0), 2.0),
    "hyperbolic secant in -30:30": (stats.hypsecant(loc=-4.0, scale=2.0), (-30.0, 30.0), -4.0),
}
SETTINGS = ((1000, 1.0), (500, 5.0), (10_000, 1.0))


def main() -> None:
    """Run all and write a row per kind and setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--csv", default="modes_symmetric")
    chosen = parser.parse_args()
    rows = []
    for n, epsilon in SETTINGS:
        for number, (name, (law, box, true)) in enumerate(KINDS.items()):
            errors: dict[str, list[float]] = {"leaves": [], "grid": []}
            stated: dict[str, list[float]] = {"leaves": [], "grid": []}
            for run in range(chosen.runs):
                rng = np.random.default_rng([run, n, number, 31])
                records = law.rvs(n, random_state=rng)[:, None]
                for features, delta in (("leaves", 0.0), ("grid", 1e-6)):
                    sketch = DensitySketch([box], features=features).update(records)
                    with seeded_noise(1000 * number + run):
                        density = (
                            sketch.release(epsilon=epsilon, delta=delta) if delta else sketch.release(epsilon=epsilon)
                        )
                    found = density.modes(1)
                    errors[features].append(float(found.positions[0, 0]) - true)
                    stated[features].append(float(found.standard_errors[0, 0]))
            squares = {key: float(np.mean(np.square(values))) for key, values in errors.items()}
            inside = {key: float(np.mean(np.abs(errors[key]) < 1.96 * np.array(stated[key]))) for key in errors}
            rows.append({
                "kind": name, "n": n, "epsilon": epsilon, "releases": chosen.runs,
                "rms_leaves": squares["leaves"] ** 0.5, "rms_fourier": squares["grid"] ** 0.5,
                "mse_ratio": squares["leaves"] / squares["grid"],
                "coverage_leaves": inside["leaves"], "coverage_fourier": inside["grid"],
            })  # fmt: skip
            print(rows[-1], flush=True)
            if chosen.csv:
                write_csv(chosen.csv, rows)
    print("geometric mean of the ratios", float(np.exp(np.mean(np.log([row["mse_ratio"] for row in rows])))))


if __name__ == "__main__":
    main()
