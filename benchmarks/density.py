"""Densities: how near a release comes to its population, against baselines; `score` judges one method in minutes.

Sets are in two halves: look at "tune" while you build, report "judge". Each (set, n, run) has one seeded draw of
records, the same for all methods. Full errors go to build/density (resumable), what the pages need to
docs/benchmarks/density.csv (errors by family) and docs/benchmarks/density_baselines.csv (geometric means).

    python benchmarks/density.py --quick                    a few sets, one run: does everything work
    python benchmarks/density.py --dim 1 --runs 2           all baselines on all sets
    python benchmarks/density.py --methods fogline --half judge

In a session with this folder on the path, ``from density import score`` and ``score(my_method)``, where the method is a
function ``(records, bounds, steps, epsilon, seed)``; `density_coverage.coverage` judges its intervals.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import read_csv, write_csv
from density_figures import METRICS, Errors, family_table, ratio_rows, show_ratios
from density_methods import METHODS, Method, Sample, baselines
from fogline_research.datasets.columns import COLUMNS, generator
from fogline_research.datasets.dpbench import dpbench_sets
from fogline_research.datasets.joints import JOINTS
from fogline_research.metrics.cell_masses import NEUTRAL_CELLS, CellYardstick, quantiles_of_cells, rank_errors

__all__ = ["CELLS", "baseline_table", "density_sets", "score"]

Array = NDArray[np.float64]
SIZES = (1000, 10_000, 100_000)
EPSILONS = (0.1, 0.3, 1.0, 3.0)
CELLS = tuple((n, epsilon) for n in SIZES for epsilon in EPSILONS)
RAW = Path(__file__).resolve().parent.parent / "build" / "density"
FIELDS = ("half", "set", "n", "epsilon", "run", "method", *METRICS)


@lru_cache
def density_sets(dim: int, half: str | None = None) -> tuple[Any, ...]:
    """Sets with this number of columns: the made ones, and those of DPBench where a copy is at hand."""
    made: tuple[Any, ...] = (*COLUMNS, *JOINTS, *dpbench_sets())
    return tuple(one for one in made if one.d == dim and half in (None, one.half))


@lru_cache(maxsize=4)
def draw(name: str, dim: int, n: int, run: int) -> Sample:
    """Records of one run: the same for every method."""
    (one,) = (one for one in density_sets(dim) if one.name == name)
    return Sample(one.draw(n, generator("density", name, n, run)), one.bounds, one.steps)


@lru_cache(maxsize=64)
def yardstick(name: str, dim: int) -> CellYardstick:
    """Judge of one set."""
    (one,) = (one for one in density_sets(dim) if one.name == name)
    return CellYardstick(one.cell_masses(NEUTRAL_CELLS[dim]))


def noise_seed(name: str, n: int, epsilon: float, run: int) -> int:
    """Seed of a method's noise: another one in each cell and run."""
    return int(generator("method", name, n, epsilon, run).integers(1 << 31))


def errors_of(one: Any, sample: Sample, masses: Array) -> dict[str, float]:
    """All errors of one density; ranks among the records in one column."""
    found = yardstick(one.name, one.d).errors(masses)
    if one.d == 1:
        low, high = one.bounds[0]
        # a heap is named by any answer within its neutral cell; smooth columns have no such grace
        grace = (high - low) / NEUTRAL_CELLS[1] if one.atomic else 0.0
        answers = quantiles_of_cells(masses, (low, high))
        found["rank"] = 100.0 * float(np.mean(rank_errors(sample.ordered, answers, tolerance=grace)))
    return found


# -- one method, in this process ------------------------------------------------------------------------------------


def baseline_table(dim: int = 1) -> list[dict[str, Any]]:
    """Stored errors of the baselines, by set, n, epsilon and family."""
    numbers: dict[str, Callable[[str], Any]] = {"n": int, "epsilon": float, **dict.fromkeys(METRICS, _number)}
    rows = [row for row in read_csv("density") if int(row["dim"]) == dim]
    return [{key: numbers[key](text) if key in numbers else text for key, text in row.items()} for row in rows]


def _number(text: str) -> float:
    return float(text) if text else math.nan


def score(
    method: Method | str,
    half: str = "tune",
    dim: int = 1,
    cells: Sequence[tuple[int, float]] | None = None,
    runs: int = 1,
    *,
    names: Sequence[str] | None = None,
    metrics: Sequence[str] = ("hellinger", "w1", "boxes"),
    show: bool = True,
) -> list[dict[str, Any]]:
    """Judge one method against the stored baselines, and print the ratios.

    Parameters
    ----------
    method : function or name
        ``(records, bounds, steps, epsilon, seed)`` -> something with ``cell_masses(resolution)``.
    half : {"tune", "judge"}
    dim : {1, 2, 3}
    cells : sequence of (n, epsilon), optional
        All twelve by default.
    runs : int
        Draws of records per cell.
    names : sequence of str, optional
        Only these sets.
    metrics : sequence of str
        Those to print.
    show : bool
        Whether to print.

    Returns
    -------
    list of dict
        Per set, n, epsilon and metric: value, baseline, and the ratios "fixed", "hindsight", "limit".
    """
    function = METHODS[method] if isinstance(method, str) else method
    sets = [one for one in density_sets(dim, half) if names is None or one.name in names]
    started, found = time.process_time(), []
    for one in sets:
        by_size: dict[int, list[float]] = defaultdict(list)
        for n, epsilon in cells or CELLS:
            by_size[n].append(epsilon)
        for n, epsilons in by_size.items():
            totals: dict[float, list[dict[str, float]]] = defaultdict(list)
            for run in range(runs):
                sample = draw(one.name, dim, n, run)
                for epsilon in epsilons:
                    seed = noise_seed(one.name, n, epsilon, run)
                    answer = function(sample.records, one.bounds, one.steps, epsilon, seed)
                    totals[epsilon].append(errors_of(one, sample, answer.cell_masses(NEUTRAL_CELLS[dim])))
            found += [Errors(one.half, one.name, n, e, "method", mean_errors(values)) for e, values in totals.items()]
    rows = ratio_rows(found, baseline_table(dim))
    if show and rows:
        seconds = (time.process_time() - started) / max(len(found) * runs, 1)
        print(show_ratios(rows, f"{dim} column(s), half {half}, {len(sets)} sets, {runs} run(s)", metrics))
        print(f"{seconds:.3f} s of CPU per release and reading, metrics included")
    return rows


def mean_errors(values: Sequence[dict[str, float]]) -> dict[str, float]:
    """Mean of each error over the runs."""
    return {metric: float(np.mean([value[metric] for value in values])) for metric in values[0]}


# -- all methods, on all cores --------------------------------------------------------------------------------------

Job = tuple[int, str, int, int, tuple[float, ...], tuple[str, ...]]


def run_job(job: Job) -> list[dict[str, Any]]:
    """Every wanted method at every epsilon on one draw of records."""
    dim, name, n, run, epsilons, wanted = job
    (one,) = (one for one in density_sets(dim) if one.name == name)
    sample, resolution = draw(name, dim, n, run), NEUTRAL_CELLS[dim]
    rows = []
    for epsilon in epsilons:
        place = {"half": one.half, "set": name, "n": n, "epsilon": epsilon, "run": run}
        for baseline in baselines(dim):
            if baseline.family in wanted:
                rng = generator("noise", baseline.name, name, n, epsilon, run)
                masses = baseline.masses(sample, epsilon, rng, resolution)
                rows.append({**place, "method": baseline.name, **errors_of(one, sample, masses)})
        for method in wanted:
            if method in METHODS:
                seed = noise_seed(name, n, epsilon, run)
                answer = METHODS[method](sample.records, one.bounds, one.steps, epsilon, seed)
                rows.append({**place, "method": method, **errors_of(one, sample, answer.cell_masses(resolution))})
    return rows


def run_all(jobs: Sequence[Job], path: Path, workers: int) -> None:
    """Run the jobs that the file does not have yet, and append their rows."""
    done = {(row.name, row.n, row.run, row.epsilon, row.family) for row in _done(path)}
    left = [(*job[:5], missing) for job in jobs if (missing := _missing(job, done))]
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file, ProcessPoolExecutor(max_workers=workers) as pool:
        writer = csv.DictWriter(file, fieldnames=FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        for count, rows in enumerate(pool.map(run_job, left), start=1):
            writer.writerows({key: _short(value) for key, value in row.items()} for row in rows)
            if count % 20 == 0:
                file.flush()
                print(f"{count} of {len(left)} draws", flush=True)


class _Done:
    """What is in the file already."""

    def __init__(self, row: dict[str, str]) -> None:
        self.name, self.n, self.run, self.epsilon = row["set"], int(row["n"]), int(row["run"]), float(row["epsilon"])
        self.family = row["method"].partition("@")[0]


def _done(path: Path) -> Iterator[_Done]:
    return (_Done(row) for row in raw_rows(path))


def _missing(job: Job, done: set[tuple[str, int, int, float, str]]) -> tuple[str, ...]:
    _, name, n, run, epsilons, wanted = job
    return tuple(family for family in wanted if any((name, n, run, e, family) not in done for e in epsilons))


def raw_rows(path: Path) -> Iterator[dict[str, str]]:
    """Rows of the full table."""
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)


def mean_rows(paths: Iterable[Path]) -> list[Errors]:
    """Mean over the runs of every method in every cell."""
    runs: dict[tuple[str, str, int, float, str], list[dict[str, float]]] = defaultdict(list)
    for path in paths:
        for row in raw_rows(path):
            key = (row["half"], row["set"], int(row["n"]), float(row["epsilon"]), row["method"])
            runs[key].append({metric: float(row[metric]) for metric in METRICS if row[metric]})
    return [Errors(*key, mean_errors(values)) for key, values in runs.items()]


def _short(value: Any) -> Any:
    return f"{value:.5g}" if isinstance(value, float) else value


def write_tables() -> None:
    """Bring the two tables of the docs up to date; what was not measured here stays as it is there."""
    cells, chosen = [], []
    for dim in (1, 2, 3):
        rows = mean_rows([RAW / f"d{dim}.csv"])
        rows += _stored_limits(dim, rows)
        # the best of all in hindsight is known only where all were measured
        whole = {baseline.family for baseline in baselines(dim)} <= {row.family for row in rows}
        table, variants = family_table(rows)
        cells += [{"dim": dim, **row} for row in table if whole or row["family"] != "hindsight"]
        chosen += [{"dim": dim, **row} for row in variants]
    _merge("density", cells, ("dim", "half", "set", "n", "epsilon", "family"))
    _merge("density_baselines", chosen, ("dim", "half", "n", "epsilon", "metric", "family"))


def _stored_limits(dim: int, rows: Sequence[Errors]) -> list[Errors]:
    """Sampling errors of the same cells from the table, where this run has none: errors count from a share of them."""
    wanted = {(*row.key, row.half) for row in rows} - {(*row.key, row.half) for row in rows if row.family == "limit"}
    return [
        Errors(
            row["half"],
            row["set"],
            row["n"],
            row["epsilon"],
            "limit@leaves",
            {m: row[m] for m in METRICS if row[m] == row[m]},
        )
        for row in baseline_table(dim)
        if row["family"] == "limit" and (row["set"], row["n"], row["epsilon"], row["half"]) in wanted
    ]


def _merge(name: str, rows: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
    """Replace the rows of a table that have the same keys, and add the others."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in [*read_csv(name), *rows]:
        brief = {key: _brief(value) for key, value in row.items()}
        merged[tuple(str(brief[key]) for key in keys)] = brief
    if merged:
        write_csv(name, [merged[key] for key in sorted(merged, key=_order)])


def _order(key: tuple[str, ...]) -> tuple[tuple[float, str], ...]:
    """Numbers by size, words by letters."""
    return tuple((float(part), "") if part.replace(".", "", 1).isdigit() else (math.inf, part) for part in key)


def _brief(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else f"{value:.4g}"


def summary(dim: int, half: str) -> str:
    """Figures of every own method, and of the baselines among themselves."""
    table = baseline_table(dim)
    parts = []
    families = sorted({row["family"] for row in table} - {"limit", "hindsight"})
    for family in families:
        errors = [
            Errors(
                half, row["set"], row["n"], row["epsilon"], family,
                {metric: row[metric] for metric in METRICS if not math.isnan(row[metric])},
            )
            for row in table
            if row["family"] == family and row["half"] == half
        ]  # fmt: skip
        parts.append(show_ratios(ratio_rows(errors, table), f"{family}, {dim} column(s), half {half}"))
    return "\n\n".join(parts)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tune", "judge"), help="both by default")
    parser.add_argument("--dim", type=int, choices=(1, 2, 3), action="append", help="all by default")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="number of the first run: another one has other seeds")
    parser.add_argument(
        "--methods", nargs="+", help="families of baselines, or fourier, fogline; by default all but fogline"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dpbench", help="file of DPBench histograms; by default FOGLINE_DPBENCH")
    parser.add_argument("--quick", action="store_true", help="three sets, one size, two epsilons; nothing is kept")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.dpbench:
        os.environ["FOGLINE_DPBENCH"] = options.dpbench  # the other processes look there too
    if not dpbench_sets():
        print("no DPBench histograms at hand (FOGLINE_DPBENCH names the file): made sets only")
    for dim in options.dim or (1, 2, 3):
        sets = density_sets(dim, options.half)
        if not sets:
            continue
        wanted = options.methods or [*dict.fromkeys(b.family for b in baselines(dim)), "fourier"]
        if options.quick:
            for one in sets[:3]:
                rows = run_job((dim, one.name, 1000, 0, (0.3, 1.0), tuple(wanted)))
                best = min(rows, key=lambda row: row["hellinger"])
                print(f"{one.name}: {len(rows)} densities, least Hellinger {best['hellinger']:.3g} by {best['method']}")
            continue
        jobs = [
            (dim, one.name, n, run, EPSILONS, tuple(wanted))
            for run in range(options.first, options.first + options.runs) for n in options.sizes for one in sets
        ]  # fmt: skip
        run_all(jobs, RAW / f"d{dim}.csv", options.workers)
    if not options.quick:
        write_tables()
        for dim in options.dim or (1, 2, 3):
            for half in (options.half,) if options.half else ("tune", "judge"):
                print("\n" + summary(dim, half))


if __name__ == "__main__":
    main()
