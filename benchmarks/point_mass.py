"""How often intervals hold shares of a column with many zeros beside another column, and of conditions on it.

    python benchmarks/point_mass.py [--releases 120] [--n 5000]

Each release has fresh records and fresh noise at epsilon 1. The records are made: ages 18 to 94; three in ten of the
young and one in ten of the old stay 0 days, the others by a gamma law whose density begins at zero (``from zero``), or
is highest there (``exponential``). Rows go to ``docs/benchmarks/point_mass.csv``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import fogline
from fogline.density.posterior.estimates import Estimate
from fogline.testing import seeded_noise

TABLE = Path(__file__).parents[1] / "docs" / "benchmarks" / "point_mass.csv"
FIELDS = ("law", "question", "n", "epsilon", "releases", "covered", "mean width", "mean error")
YOUNG, OLD, LIMIT = 0.3, 0.1, 56
Array = NDArray[np.float64]


def records(rng: np.random.Generator, n: int, shape: float) -> Array:
    """Ages and stays."""
    age = rng.integers(18, 95, n)
    zero = rng.random(n) < np.where(age < LIMIT, YOUNG, OLD)
    return np.column_stack([age, np.where(zero, 0.0, rng.gamma(shape, 6.0 / shape, n))])


QUESTIONS: dict[str, tuple[Callable[[fogline.PrivateDensity], Estimate], float]] = {
    "P(stay > 0)": (lambda shape: shape.ask("P(stay > 0)").estimate, 1 - (38 * YOUNG + 39 * OLD) / 77),
    "given(age >= 56): P(stay > 0)": (
        lambda shape: shape.given(age=(LIMIT, None)).probability(stay=(1e-9, None)),
        1 - OLD,
    ),
    "given(stay > 0): P(age >= 56)": (
        lambda shape: shape.given(stay=(1e-9, None)).probability(age=(LIMIT, None)),
        39 * (1 - OLD) / (38 * (1 - YOUNG) + 39 * (1 - OLD)),
    ),
}
"""Each question with its true answer."""


def study(law: str, shape: float, releases: int, n: int) -> list[tuple[object, ...]]:
    """Ask every question of every release."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in QUESTIONS}
    for seed in range(releases):
        table = records(np.random.default_rng([seed, 5]), n, shape)
        with seeded_noise(seed):
            density = fogline.release(
                table, columns=["age", "stay"], bounds={"age": "age", "stay": (0, 60)}, epsilon=1.0
            )
        for name, (ask, true) in QUESTIONS.items():
            answer = ask(density)
            low, high = float(answer.low), float(answer.high)
            found[name].append((float(low <= true <= high), high - low, abs(float(answer.value) - true)))
        print(law, seed, {name: f"{np.mean([row[0] for row in rows]):.3f}" for name, rows in found.items()}, flush=True)
    rows: list[tuple[object, ...]] = []
    for name, answers in found.items():
        covered, width, error = np.mean(answers, axis=0)
        rows.append((law, name, n, 1.0, releases, f"{covered:.3f}", f"{width:.4f}", f"{error:.4f}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=120)
    parser.add_argument("--n", type=int, default=5000)
    given = parser.parse_args()
    laws = (("from zero", 2.0), ("exponential", 1.0))
    rows: list[tuple[object, ...]] = []
    for law, shape in laws:
        rows += study(law, shape, given.releases, given.n)
        with TABLE.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([FIELDS, *rows])
    for row in rows:
        print(*row)


if __name__ == "__main__":
    main()
