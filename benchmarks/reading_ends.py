"""Ends: quantiles beside walls and first records, ranges that end in a pile; and what their cures cost elsewhere.

Two studies of one column, each on records and noise of its own per release. The first asks kinds that were written down
after the cures were made. The second reads the columns of one half in pairs, with the cures and without, for coverage
and errors of everything. Rows go to docs/benchmarks/reading_ends.csv and reading_ends_pairs.csv.

    python benchmarks/reading_ends.py                     40 releases per kind: some minutes on two cores
    python benchmarks/reading_ends.py --half judge --runs 2
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from calibration import Outcome, errors_of, judge_release, release_posterior
from common import spread_over_cores, write_csv
from fogline_research.datasets.columns import COLUMNS, column_named, generator

__all__ = ["EDGES", "PILES", "VARIANTS", "ends_job", "pairs_job"]

VARIANTS: dict[str, dict[str, Any]] = {"without": {"heavy": 1.0, "doubted_edge": 0.0}, "with": {}}
"""Settings of the reading without the cures of walls and first records, and with them."""

CELLS = ((1000, 0.3), (10_000, 0.3), (10_000, 1.0), (1000, 3.0))
"""Numbers of records and epsilons of both studies."""

EDGES: dict[str, tuple[tuple[float, float], Any]] = {
    "U shape, unequal walls": ((0, 1), stats.beta(0.4, 0.7)),
    "J shape": ((0, 1), stats.beta(0.3, 2.0)),
    "arcs of a cosine": ((-1, 1), stats.arcsine(-1, 2)),
    "wages from a minimum": ((0, 60), stats.lomax(3.5, loc=11.4, scale=20)),
    "least price": ((0, 500), stats.expon(loc=39.9, scale=45)),
    "block": ((0, 10), stats.uniform(2.13, 4.4)),
    "delay after a threshold": ((0, 100), stats.gamma(1.0, loc=15.2, scale=12)),
    "normal": ((0, 100), stats.norm(45, 9)),
}
"""Bounds and laws: what lies outside the bounds is not counted."""

PILES: dict[str, tuple[tuple[float, float], float, float, Any]] = {
    "pile on a flank": ((0, 200), 62.5, 0.15, stats.norm(90, 25)),
    "pile in a gap": ((0, 50), 33.1, 0.25, stats.gamma(3, scale=3)),
    "small pile": ((0, 1), 0.5, 0.04, stats.uniform(0, 1)),
    "round pile": ((0, 10_000), 2500.0, 0.3, stats.lognorm(0.7, scale=1800)),
}
"""Bounds, value and share of the pile, law of the rest."""


def read_as(variant: str, read: Callable[[], Any]) -> Any:
    """Read a release with the settings of a variant."""
    from fogline.density.posterior import masses

    kept = masses._SETTINGS[1]
    masses._SETTINGS[1] = replace(kept, **VARIANTS[variant])
    try:
        found = read()
        found.masses("population")
        found.masses("records")
        return found
    finally:
        masses._SETTINGS[1] = kept


def release_of(records: NDArray[np.float64], bounds: tuple[float, float], epsilon: float, seed: int) -> Any:
    """Release of one column by the public API, with noise that repeats."""
    from fogline import DensitySketch
    from fogline.testing import seeded_noise

    with seeded_noise(seed):
        return DensitySketch([bounds], features="leaves").update(records[:, None]).release(epsilon=epsilon)


def ends_job(job: tuple[str, int, float, int]) -> list[dict[str, Any]]:
    """Questions to one release of one kind: which intervals hold, and how long they are."""
    kind, n, epsilon, run = job
    seed = int(generator("noise", kind, n, epsilon, run).integers(1 << 31))
    rows = []
    for variant in VARIANTS:
        place = {"kind": kind, "n": n, "epsilon": epsilon, "run": run, "reading": variant}
        rng = generator("ends", kind, n, epsilon, run)
        questions = _edge_questions if kind in EDGES else _pile_questions
        for question, answer, truth, unit in questions(kind, n, epsilon, seed, variant, rng):
            holds = bool(float(answer.low) <= truth <= float(answer.high))
            length = (float(answer.high) - float(answer.low)) / unit
            rows.append({**place, "question": question, "holds": holds, "length": length})
    return rows


def _edge_questions(
    kind: str, n: int, epsilon: float, seed: int, variant: str, rng: np.random.Generator
) -> Iterator[tuple[str, Any, float, float]]:
    bounds, law = EDGES[kind]
    release = release_of(law.rvs(n, random_state=rng), bounds, epsilon, seed)
    posterior = read_as(variant, lambda: release.posterior)
    below, inside = law.cdf(bounds[0]), law.cdf(bounds[1]) - law.cdf(bounds[0])
    for q in (0.02, 0.05, 0.5, 0.95, 0.98):
        truth = float(law.ppf(below + q * inside))
        yield f"quantile {q:g}", posterior.quantile(q), truth, bounds[1] - bounds[0]


def _pile_questions(
    kind: str, n: int, epsilon: float, seed: int, variant: str, rng: np.random.Generator
) -> Iterator[tuple[str, Any, float, float]]:
    bounds, value, share, law = PILES[kind]
    records = np.where(rng.random(n) < share, value, law.rvs(n, random_state=rng))
    release = release_of(records, bounds, epsilon, seed)
    posterior = read_as(variant, lambda: release.posterior)
    inside = share + (1 - share) * float(law.cdf(bounds[1]) - law.cdf(bounds[0]))
    above = (1 - share) * float(law.cdf(bounds[1]) - law.cdf(value)) / inside
    pile = share / inside
    yield "P(x >= v)", posterior.probability([(value, None)]), above + pile, 1.0
    yield "P(x > v)", posterior.probability([(math.nextafter(value, math.inf), None)]), above, 1.0
    yield "P(x = v)", posterior.probability([(value, value)]), pile, 1.0
    yield "cdf at v", posterior.cdf([value])[0], 1 - above, 1.0


def pairs_job(job: tuple[str, int]) -> list[dict[str, Any]]:
    """All questions of the calibration to releases of one column, read in both ways."""
    name, run = job
    column, rows = column_named(name), []
    for n, epsilon in CELLS:
        records = column.draw(n, generator("pairs of ends", name, n, epsilon, run))
        seed = int(generator("noise", name, n, epsilon, run).integers(1 << 31))
        for variant in VARIANTS:
            posterior = read_as(variant, partial(release_posterior, records, column, epsilon, seed))
            place = {"half": column.half, "kind": column.kind, "name": name, "n": n, "epsilon": epsilon, "run": run}
            found: list[Outcome] = list(
                judge_release(posterior, column, np.sort(records[:, 0]), generator("questions", name, n, run))
            )
            for one in found:
                answer = {"question": one.question, "target": one.target}
                rows.append({**place, "reading": variant, **answer, "intervals": one.intervals, "right": one.right})
            for measure, error in errors_of(posterior, column).items():
                answer = {"question": measure, "target": "error"}
                rows.append({**place, "reading": variant, **answer, "intervals": 1, "right": error})
    return rows


def ends_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Coverage and median length per kind, question and reading."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["kind"], row["question"], row["reading"]].append(row)
    return [
        {
            "kind": kind,
            "question": question,
            "reading": reading,
            "releases": len(found),
            "coverage": round(float(np.mean([row["holds"] for row in found])), 3),
            "median_length": float(f"{np.median([row['length'] for row in found]):.3g}"),
        }
        for (kind, question, reading), found in groups.items()
    ]


def pairs_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Coverage per question and reading; errors with the cures over those without."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["half"], row["target"], row["question"], row["reading"]].append(row)
    table = []
    for (half, target, question, reading), found in groups.items():
        if target == "error":
            plain = groups[half, target, question, "without"]
            logs = [
                math.log(max(a["right"], 1e-12) / max(b["right"], 1e-12)) for a, b in zip(found, plain, strict=True)
            ]
            value, error = math.exp(float(np.mean(logs))), float(np.std(logs)) / math.sqrt(len(logs))
        else:
            value = sum(row["right"] for row in found) / sum(row["intervals"] for row in found)
            # releases are independent, the intervals of one are not
            error = float(np.std([row["right"] / row["intervals"] for row in found])) / math.sqrt(len(found))
        place = {"half": half, "target": target, "question": question, "reading": reading, "releases": len(found)}
        table.append({**place, "value": round(value, 4), "standard_error": round(error, 4)})
    return table


def main() -> None:
    """Run one of the studies and write its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--half", choices=("tune", "judge"), help="read its columns in pairs, instead of the kinds of ends"
    )
    parser.add_argument("--runs", type=int, help="releases per cell: 10, or 2 with --half")
    parser.add_argument("--first", type=int, default=0, help="number of the first run: another one has other seeds")
    options = parser.parse_args()
    numbers = range(options.first, options.first + (options.runs or (2 if options.half else 10)))
    if options.half:
        names = [column.name for column in COLUMNS if column.half == options.half]
        jobs = [(name, run) for name in names for run in numbers]
        table, file = pairs_table(spread(pairs_job, jobs)), "reading_ends_pairs"
    else:
        kinds = [(kind, *cell, run) for kind in (*EDGES, *PILES) for cell in CELLS for run in numbers]
        table, file = ends_table(spread(ends_job, kinds)), "reading_ends"
    write_csv(file, table)
    for row in table:
        print(*row.values(), sep="  ")


def spread(work: Callable[[Any], list[dict[str, Any]]], jobs: list[Any]) -> list[dict[str, Any]]:
    """Rows of all jobs."""
    return [row for rows in spread_over_cores(work, jobs, label="reading ends") for row in rows]


if __name__ == "__main__":
    main()
