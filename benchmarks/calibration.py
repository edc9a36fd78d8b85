"""Calibration: how often the posterior's 95% and 80% intervals hold the truth, over simulated releases.

Releases go through the public API with seeded noise. Records are nested (the first 300 of the first 1000 ...), and the
noise of a run has the same seed at every epsilon, so that "more records" and "more epsilon" are compared in pairs.
Outcomes go to build/calibration.csv, one row per release and question, so that runs add up; from all of them are
written calibration.csv (coverage) and calibration_order.csv (errors along n and epsilon) in docs/benchmarks.

    python benchmarks/calibration.py                          both halves, all cells, one run: some minutes on two cores
    python benchmarks/calibration.py --half judge --first 40 --runs 8 --workers 1        eight more, with fresh seeds
    python benchmarks/calibration.py --half tune --sizes 1000 --epsilons 1 --show
"""

from __future__ import annotations

import argparse
import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration_truth import RecordTruth, Truth, column_truth
from common import spread_over_cores, write_csv
from fogline_research.datasets.columns import COLUMNS, Column, column_named, generator

__all__ = ["Outcome", "coverage_rows", "judge_release", "order_rows"]

Array = NDArray[np.float64]
SIZES = (300, 1000, 10_000, 100_000)
EPSILONS = (0.1, 0.3, 1.0, 3.0)
LEVELS = (0.95,)
RAW = Path(__file__).resolve().parent.parent / "build" / "calibration.csv"
QUANTILES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
BOXES = 4
BAND_POINTS = 64
WORSE = 1.05
"""An expected error that grows by more than this factor with more epsilon or more records is reported."""


@dataclass(frozen=True)
class Outcome:
    """Intervals of one question in one release: how many, how many hold the truth, and their relative length."""

    question: str
    target: str
    level: float
    intervals: int
    right: int
    length: float


@dataclass(frozen=True)
class Judgement:
    """All outcomes of one release, and the errors of its estimate."""

    half: str
    kind: str
    name: str
    n: int
    epsilon: float
    run: int
    outcomes: tuple[Outcome, ...]
    errors: dict[str, float]


def release_posterior(records: Array, column: Column, epsilon: float, seed: int) -> Any:
    """Posterior of one release through the public API, with noise that repeats."""
    from fogline import DensitySketch
    from fogline.testing import seeded_noise

    sketch: Any = DensitySketch(column.bounds, steps=column.steps, features="leaves").update(records)
    with seeded_noise(seed):
        return sketch.release(epsilon=epsilon).posterior


# -- questions --------------------------------------------------------------------------------------------------


def random_boxes(column: Column, ordered: Array, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Half of the boxes anywhere, half around a record; ends on the lattice where there is one."""
    low, high = column.box
    found = []
    for number in range(BOXES):
        start, stop = np.sort(rng.uniform(low, high, 2))
        if number % 2:
            centre = ordered[rng.integers(len(ordered))]
            start = max(low, centre - (high - low) * 0.03 * rng.random())
            stop = min(high, centre + (high - low) * 0.1 * rng.random())
        if column.step:
            start, stop = (low + column.step * np.round((end - low) / column.step) for end in (start, stop))
        found.append((float(start), float(stop)))
    return found


def plain_lengths(truth: Truth, ordered: Array, boxes: Sequence[tuple[float, float]], level: float) -> dict[str, Array]:
    """Lengths of the usual non-private intervals for the population, per question."""
    from scipy.stats import norm

    z, n = norm.ppf(0.5 + level / 2), len(ordered)
    share = np.array([float(truth.at_most(b) - truth.below(a)) for a, b in boxes])
    reach = z * np.sqrt(n * QUANTILES * (1 - QUANTILES))
    ranks = [np.clip(np.round(n * QUANTILES + side * reach).astype(int), 0, n - 1) for side in (-1, 1)]
    fourth = float(np.mean((ordered - ordered.mean()) ** 4))
    return {
        "box": 2 * z * np.sqrt(share * (1 - share) / n),
        "quantile": ordered[ranks[1]] - ordered[ranks[0]],
        "mean": np.array([2 * z * math.sqrt(truth.variance / n)]),
        "variance": np.array([2 * z * math.sqrt(max(fourth - float(ordered.var()) ** 2, 0.0) / n)]),
    }


def judge_release(posterior: Any, column: Column, ordered: Array, rng: np.random.Generator) -> Iterator[Outcome]:
    """Ask every question of one release and compare with both truths."""
    population: Truth = column_truth(column)
    records: Truth = RecordTruth(ordered)
    boxes = random_boxes(column, ordered, rng)
    for level in LEVELS:
        plain = plain_lengths(population, ordered, boxes, level)
        for target, truth in (("population", population), ("records", records)):
            for question, low, high, right in asked(posterior, truth, boxes, target, level):
                lengths = (high - low)[plain[question] > 0] / plain[question][plain[question] > 0]
                length = float(np.median(lengths)) if len(lengths) else math.nan
                yield Outcome(question, target, level, len(right), int(right.sum()), length)
        yield from judge_bands(posterior, population, level)


def asked(
    posterior: Any, truth: Truth, boxes: Sequence[tuple[float, float]], target: str, level: float
) -> Iterator[tuple[str, Array, Array, NDArray[np.bool_]]]:
    """Intervals of every kind for one target, and which of them hold the truth."""
    slack = 1e-9
    found = [posterior.probability([box], target=target, level=level) for box in boxes]
    low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
    share = np.array([float(truth.at_most(b) - truth.below(a)) for a, b in boxes])
    yield "box", low, high, (low <= share + slack) & (share <= high + slack)
    quantiles = posterior.quantile(QUANTILES, target=target, level=level)
    low, high = np.asarray(quantiles.low), np.asarray(quantiles.high)
    width = slack * posterior.axes[0].width
    yield (
        "quantile", low, high,
        (truth.below(low - width) <= QUANTILES + slack) & (truth.at_most(high + width) + slack >= QUANTILES),
    )  # fmt: skip
    for question in ("mean", "variance"):
        one, value = getattr(posterior, question)(target=target, level=level), getattr(truth, question)
        near = slack * max(abs(value), 1e-300)
        low, high = np.array([one.low]), np.array([one.high])
        yield question, low, high, (low <= value + near) & (value <= high + near)


def judge_bands(posterior: Any, truth: Truth, level: float) -> Iterator[Outcome]:
    """Bands of the density and the distribution function: whole curves, and single points in the bulk."""
    axis = posterior.axes[0]
    group = max(1, len(axis.centres) // BAND_POINTS)
    edges = np.append(axis.edges[:-1][::group], axis.edges[-1])
    edges[0], edges[-1] = -np.inf, np.inf
    cumulative = truth.below(edges)
    mass, width = np.diff(cumulative), np.diff(np.append(axis.edges[:-1][::group], axis.edges[-1]))
    for kind, value in (("pdf", mass / width), ("cdf", cumulative[1:])):
        band = posterior.band(kind=kind, points=BAND_POINTS, level=level)
        slack = 1e-9 * max(float(value.max()), 1e-300)
        whole = bool(np.all((band.low <= value + slack) & (value <= band.high + slack)))
        yield Outcome(f"{kind} band", "population", level, 1, int(whole), math.nan)
        right = (band.pointwise_low <= value + slack) & (value <= band.pointwise_high + slack)
        right = right[mass > 0.1 * mass.max()]
        yield Outcome(f"{kind} at points", "population", level, len(right), int(right.sum()), math.nan)


# -- releases -----------------------------------------------------------------------------------------------------

Job = tuple[str, int, tuple[int, ...], tuple[float, ...]]


def run_job(job: Job) -> list[Judgement]:
    """All sizes and epsilons on the nested records of one run."""
    name, run, sizes, epsilons = job
    column = column_named(name)
    records = column.draw(max(sizes), generator("calibration", name, run))
    found = []
    for n in sizes:
        ordered = np.sort(records[:n, 0])
        for epsilon in epsilons:
            seed = int(generator("noise", name, n, run).integers(1 << 31))
            posterior = release_posterior(records[:n], column, epsilon, seed)
            rng = generator("questions", name, n, run)
            outcomes = tuple(judge_release(posterior, column, ordered, rng))
            errors = errors_of(posterior, column)
            found.append(Judgement(column.half, column.kind, name, n, epsilon, run, outcomes, errors))
    return found


def errors_of(posterior: Any, column: Column) -> dict[str, float]:
    """Hellinger distance and mean distance of distribution functions, on leaves."""
    edges = posterior.axes[0].edges.copy()
    edges[0], edges[-1] = -np.inf, np.inf
    truth, estimate = np.diff(column_truth(column).below(edges)), posterior.masses().estimate
    hellinger = math.sqrt(max(1 - float(np.sqrt(np.clip(truth, 0, None) * estimate).sum()), 0.0))
    return {"hellinger": hellinger, "w1": float(np.mean(np.abs(np.cumsum(truth - estimate))))}


# -- outcomes that are kept ----------------------------------------------------------------------------------------

PLACE = ("half", "kind", "name", "n", "epsilon", "run")
OUTCOME = ("question", "target", "level", "intervals", "right", "length")
ERRORS = ("hellinger", "w1")


def keep(found: Sequence[Judgement]) -> None:
    """Append outcomes to the file of all runs."""
    fresh = not RAW.exists()
    RAW.parent.mkdir(parents=True, exist_ok=True)
    with RAW.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow((*PLACE, *OUTCOME, *ERRORS))
        for one in found:
            place, errors = (getattr(one, name) for name in PLACE), [f"{one.errors[name]:.6g}" for name in ERRORS]
            head = tuple(place)
            writer.writerows((*head, *(getattr(part, name) for name in OUTCOME), *errors) for part in one.outcomes)


def kept() -> list[Judgement]:
    """All outcomes so far."""
    rows: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    with RAW.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows[tuple(row[name] for name in PLACE)].append(row)
    found = []
    for (half, kind, name, n, epsilon, run), own in rows.items():
        outcomes = tuple(
            Outcome(
                row["question"], row["target"], float(row["level"]), int(row["intervals"]), int(row["right"]),
                float(row["length"]),
            )
            for row in own
        )  # fmt: skip
        errors = {metric: float(own[0][metric]) for metric in ERRORS}
        found.append(Judgement(half, kind, name, int(n), float(epsilon), int(run), outcomes, errors))
    return found


# -- tables -------------------------------------------------------------------------------------------------------


def coverage_rows(found: Sequence[Judgement]) -> list[dict[str, Any]]:
    """Coverage by kind of data (over all sizes and epsilons), and by size and epsilon (over all kinds)."""
    cells: dict[tuple[Any, ...], list[Outcome]] = defaultdict(list)
    for one in found:
        for outcome in one.outcomes:
            question = (outcome.target, outcome.question, outcome.level)
            for place in (("all", "all", "all"), (one.kind, "all", "all"), ("all", one.n, one.epsilon)):
                cells[(one.half, *place, *question)].append(outcome)
    rows = []
    for key in sorted(cells, key=str):
        outcomes = cells[key]
        lengths = [outcome.length for outcome in outcomes if not math.isnan(outcome.length)]
        total = sum(outcome.intervals for outcome in outcomes)
        rows.append(
            {
                **dict(zip(("half", "kind", "n", "epsilon", "target", "question", "level"), key, strict=True)),
                "releases": len(outcomes),
                "intervals": total,
                "coverage": round(sum(outcome.right for outcome in outcomes) / max(total, 1), 4),
                "length": round(float(np.median(lengths)), 3) if lengths else "",
            }
        )
    return rows


def order_rows(found: Sequence[Judgement]) -> list[dict[str, Any]]:
    """Geometric mean of paired error ratios from one epsilon, or size, to the next larger one, by kind of data.

    `chance` is the standard error of its logarithm.
    """
    errors = {(one.half, one.kind, one.name, one.run, one.n, one.epsilon): one.errors for one in found}
    sizes, epsilons = (sorted({getattr(one, name) for one in found}) for name in ("n", "epsilon"))
    ratios: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for (half, kind, name, run, n, epsilon), own in errors.items():
        steps = [("epsilon", (n, larger)) for larger in epsilons[epsilons.index(epsilon) + 1 :][:1]]
        steps += [("n", (larger, epsilon)) for larger in sizes[sizes.index(n) + 1 :][:1]]
        for more, (next_n, next_epsilon) in steps:
            other = errors.get((half, kind, name, run, next_n, next_epsilon))
            if other is None:
                continue
            for metric, value in own.items():
                ratios[(half, kind, more, n, epsilon, metric)].append(
                    math.log(max(other[metric], 1e-6) / max(value, 1e-6))
                )
    names = ("half", "kind", "more", "n", "epsilon", "metric")
    return [
        {
            **dict(zip(names, key, strict=True)),
            "pairs": len(logs),
            "ratio": round(math.exp(float(np.mean(logs))), 3),
            "chance": round(float(np.std(logs, ddof=1)) / math.sqrt(len(logs)), 3) if len(logs) > 1 else "",
        }
        for key, logs in sorted(ratios.items(), key=str)
    ]


def show(rows: Sequence[dict[str, Any]], half: str, level: float) -> str:
    """Coverage per kind of data as a table of text, pooled last."""
    own = [row for row in rows if row["half"] == half and row["level"] == level and row["n"] == "all"]
    questions = sorted({(row["target"], row["question"]) for row in own})
    lines = ["half, level: " + f"{half}, {level}", " " * 16 + " ".join(f"{t[:3]} {q[:8]:8s}" for t, q in questions)]
    for kind in sorted({row["kind"] for row in own}, key=lambda kind: (kind == "all", kind)):
        by = {(row["target"], row["question"]): row for row in own if row["kind"] == kind}
        lines.append(f"{kind:16s}" + " ".join(f"{by[q]['coverage']:12.3f}" for q in questions))
    by = {(row["target"], row["question"]): row for row in own if row["kind"] == "all"}
    lines.append(f"{'length':16s}" + " ".join(f"{by[q]['length']!s:>12s}" for q in questions))
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tune", "judge"), help="both by default")
    parser.add_argument("--first", type=int, default=0, help="number of the first run: another one has other seeds")
    parser.add_argument("--runs", type=int, default=1, help="0 to make the tables from what was kept")
    parser.add_argument("--workers", type=int, choices=(1, 2), default=2)
    parser.add_argument("--names", nargs="+", help="only these columns")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--show", action="store_true", help="print only; write no table")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    sizes, epsilons = tuple(sorted(options.sizes)), tuple(sorted(options.epsilons))
    columns = [column for column in COLUMNS if options.half in (None, column.half)]
    columns = [column for column in columns if not options.names or column.name in options.names]
    runs = range(options.first, options.first + options.runs)
    jobs = [(column.name, run, sizes, epsilons) for run in runs for column in columns]
    found: list[Judgement] = []
    if options.workers == 1:
        for job in jobs:
            part = run_job(job)
            found += part
            if not options.show:
                keep(part)
    else:
        found = [one for part in spread_over_cores(run_job, jobs, label="calibration") for one in part]
        if not options.show:
            keep(found)
    found = found if options.show else kept()
    rows, order = coverage_rows(found), order_rows(found)
    for half in sorted({one.half for one in found}):
        for level in LEVELS:
            print("\n" + show(rows, half, level))
    worse = [row for row in order if row["ratio"] > WORSE]
    print(f"\n{len(worse)} of {len(order)} expected errors grow by more than 5% with more epsilon or records")
    for row in worse:
        print("  " + ", ".join(f"{key} {value}" for key, value in row.items()))
    if not options.show:
        write_csv("calibration", rows)
        if order:
            write_csv("calibration_order", order)


if __name__ == "__main__":
    main()
