"""CPU of one release with six readings, over that of six fits that each make a release of their own.

Twice: over six releases on leaves of which each is read once (``delta=0``), and over six fits with ``delta=1e-6``,
which take Fourier sums or queries of their own and mostly need no posterior.

    python benchmarks/one_release.py [--repeats 3]

All in one process, after a first round that imports and compiles. The table is the made one of the README: 20 000
visits with age and stay. Rows go to ``docs/benchmarks/one_release.csv``.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fogline
from fogline import (
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
)
from fogline.datasets import hospital_visits

TABLE = Path(__file__).parents[1] / "docs" / "benchmarks" / "one_release.csv"
BOUNDS = [(0.0, 125.0), (0.0, 60.0)]
TERMS: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
QUESTIONS = ("count", "median stay", "mean stay", "P(stay > 10 | age > 70)", "correlation age stay")


def released(X: Any, **more: Any) -> Any:
    return fogline.release(X, columns=["age", "stay"], bounds=BOUNDS, epsilon=1.0, **more)


def own_questions(X: Any) -> None:
    shape = released(X)
    for question in QUESTIONS:
        shape.ask(question)


READINGS: dict[str, tuple[Callable[[Any], object], Callable[[Any], object]]] = {
    "modes": (lambda s: PrivateModes().read(s), lambda X: PrivateModes(bounds=BOUNDS, **TERMS).fit(X)),
    "clusters": (
        lambda s: PrivateModeClustering().read(s),
        lambda X: PrivateModeClustering(bounds=BOUNDS, **TERMS).fit(X),
    ),
    "branches": (
        lambda s: PrivateModalRegression().read(s, "stay"),
        lambda X: PrivateModalRegression(x_bounds=BOUNDS[0], y_bounds=BOUNDS[1], **TERMS).fit(X[:, :1], X[:, 1]),
    ),
    "mixture": (
        lambda s: PrivateGaussianMixture(n_components=2).read(s),
        lambda X: PrivateGaussianMixture(n_components=2, bounds=BOUNDS, **TERMS).fit(X),
    ),
    "fit": (
        lambda s: PrivateHellinger(family="exponential", parameter_bounds={"scale": (0.5, 30.0)}).read(s, "stay"),
        lambda X: PrivateHellinger(
            family="exponential", parameter_bounds={"scale": (0.5, 30.0)}, bounds=BOUNDS[1], **TERMS
        ).fit(X[:, 1:]),
    ),
    "questions": (
        lambda s: [s.ask(question) for question in QUESTIONS],
        own_questions,
    ),
}
"""Each reading: from a release, and with a release of its own."""


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def round_of(X: Any) -> dict[str, float]:
    """CPU seconds of the release, of each reading, and of each fit of its own."""
    found: dict[str, float] = {}
    kept: list[Any] = []
    found["release"] = seconds(lambda: kept.append(released(X)))
    for name, (read, _) in READINGS.items():
        found[f"reading: {name}"] = seconds(lambda read=read: read(kept[0]))  # type: ignore[misc]
    one = found["one release and six readings"] = sum(found.values())
    ways: dict[str, list[Callable[[Any], object]]] = {
        "release on leaves": [lambda X, read=read: read(released(X)) for read, _ in READINGS.values()],  # type: ignore[misc]
        "fit with delta": [fit for _, fit in READINGS.values()],
    }
    for way, fits in ways.items():
        spent = [seconds(lambda fit=fit: fit(X)) for fit in fits]  # type: ignore[misc]
        found |= {f"own {way}: {name}": each for name, each in zip(READINGS, spent, strict=True)}
        found |= {f"six times own {way}": sum(spent), f"ratio over own {way}": one / sum(spent)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    X = hospital_visits(20_000).X[:, :2]
    rows: list[tuple[object, ...]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that would like more records
        round_of(X[:2000])
        for repeat in range(given.repeats):
            for name, value in round_of(X).items():
                rows.append((repeat, name, f"{value:.3f}"))
                print(repeat, name, f"{value:.3f}", flush=True)
    with TABLE.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("repeat", "what", "CPU seconds or ratio"), *rows])


if __name__ == "__main__":
    main()
