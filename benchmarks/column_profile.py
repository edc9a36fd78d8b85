"""How good and how fast a profile is: rank errors of quartiles, and time beside DuckDB's SUMMARIZE of the same file.

    python benchmarks/column_profile.py errors [--half judge] [--seeds 3]  100 columns, 10^4 records, epsilon 1
    python benchmarks/column_profile.py time [--rows 1000000]                  100 columns of a CSV file, in one run

Rows go to ``docs/benchmarks/profile.csv``. The kinds of columns are made; every second one was used to choose the
pilot's share (``tune``), the others (``judge``) for nothing. The error of a quartile is the distance of its rank among
the records in the range from the wanted one, zero where the estimate is a value that the wanted rank falls on.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline import profile
from fogline.density.profile import QUARTILES
from fogline.testing import seeded_noise

Array = NDArray[np.float64]
Row = tuple[Any, ...]
COLUMNS = 100
PAIRED = [f"c{j}" for j in range(10)]
"""Columns of the file whose 45 pairs are released, too."""
TABLE = Path(__file__).parents[1] / "docs" / "benchmarks" / "profile.csv"
FIELDS = ("study", "half", "kind", "n", "epsilon", "delta", "seeds", "measure", "value")


def kinds(rng: np.random.Generator, n: int) -> dict[str, tuple[Array, tuple[float, float]]]:
    """Made columns with public ranges: skewed, heaped, zero-inflated, at an end of the range, in a box far too wide."""
    rounded = np.round(rng.normal(40, 15, n) / 10) * 10
    return {
        "normal": (rng.normal(50, 10, n), (0, 100)),
        "normal in a wide range": (rng.normal(0, 1, n), (-50, 50)),
        "lognormal": (rng.lognormal(3, 1, n), (0, 1000)),
        "zeros and gamma": (rng.gamma(2, 3, n) * (rng.random(n) > 0.3), (0, 60)),
        "beta": (rng.beta(2, 5, n), (0, 1)),
        "uniform": (rng.uniform(0, 1, n), (0, 1)),
        "heaped": (np.where(rng.random(n) < 0.5, rounded, rng.normal(40, 15, n)), (0, 100)),
        "two groups": (np.where(rng.random(n) < 0.5, rng.normal(20, 2, n), rng.normal(70, 5, n)), (0, 100)),
        "cut at the upper end": (np.minimum(rng.exponential(30, n), 60), (0, 60)),
        "exponential in a wide range": (rng.exponential(1, n), (0, 50)),
    }


def rank_errors(values: Array, estimates: Array, wanted: Array) -> Array:
    """Distance of each estimate's rank from the wanted one."""
    ordered = np.sort(values)
    low, high = (np.searchsorted(ordered, estimates, side) / len(ordered) for side in ("left", "right"))
    return np.asarray(np.maximum(0, np.maximum(low - wanted, wanted - high)))


def errors(half: str, seeds: int, n: int = 10_000, epsilon: float = 1.0, delta: float = 1e-6) -> list[Row]:
    """Rank errors of quartiles, by kind of column, where a fifth of the budget goes to 45 pairs."""
    pairs = [f"x{j + 1}" for j in range(10)]
    found: dict[str, list[float]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng(100 + seed)
        names = list(kinds(rng, 2))[0 if half == "tune" else 1 :: 2]
        columns = [(name, *kinds(rng, n)[name]) for k in range(COLUMNS) for name in [names[k % len(names)]]]
        with seeded_noise(seed):
            table = np.column_stack([values for _, values, _ in columns])
            bounds = [ends for *_, ends in columns]
            released = profile(table, bounds=bounds, pairs=pairs, epsilon=epsilon, delta=delta)
        for (name, values, (low, high)), column in zip(columns, released.values(), strict=True):
            inside = values[(values >= low) & (values <= high)]
            assert column.density is not None
            estimates = np.asarray(column.density.quantile(QUARTILES).value)
            found.setdefault(name, []).extend(rank_errors(inside, estimates, np.array(QUARTILES)).tolist())
        print(f"seed {seed}: median {np.median(np.concatenate(list(found.values()))):.4f}", flush=True)
    every = np.concatenate(list(found.values()))
    rows = [("all", "median rank error", np.median(every)), ("all", "mean rank error", np.mean(every))]
    rows += [(name, "median rank error", np.median(part)) for name, part in found.items()]
    return [("errors", half, kind, n, epsilon, delta, seeds, what, f"{value:.5f}") for kind, what, value in rows]


def write_table(path: Path, rows: int) -> None:
    """Write a CSV file of so many rows of made columns."""
    import pyarrow as pa
    import pyarrow.csv as pc

    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, rows, 100_000):
            size = min(100_000, rows - start)
            made = list(kinds(rng, size).values())
            part = {f"c{j}": np.round(made[j % len(made)][0], 3) for j in range(COLUMNS)}
            pc.write_csv(pa.table(part), file, pc.WriteOptions(include_header=start == 0))


def timing(rows: int) -> list[Row]:
    """Seconds of a profile that is read and written, and of SUMMARIZE, on one file, by the clock and of CPU."""
    import duckdb

    from fogline.report.profile import write_profile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        write_table(path, rows)
        ranges = [ends for _, ends in kinds(np.random.default_rng(0), 2).values()]
        bounds = {f"c{j}": ranges[j % len(ranges)] for j in range(COLUMNS)}
        moments = [clocks()]
        duckdb.connect().execute(f"SUMMARIZE SELECT * FROM read_csv('{path}')").fetchall()
        moments.append(clocks())
        print("summarized", moments, flush=True)
        released = profile(path, bounds=bounds, pairs=PAIRED, epsilon=1.0, delta=1e-6)
        moments.append(clocks())
        print("released", moments, flush=True)
        write_profile(released.read(), Path(folder, "profile.html"))
        moments.append(clocks())
    found: dict[str, float] = {}
    for clock, unit in enumerate(("seconds", "CPU seconds")):
        summarize, release, reading = np.diff([moment[clock] for moment in moments])
        found |= {f"{unit} of SUMMARIZE": summarize, f"{unit} of the release": release}
        found |= {f"{unit} of reading and page": reading, f"{unit}: ratio": (release + reading) / summarize}
    return [("time", "", "all", rows, 1.0, 1e-6, 1, what, f"{value:.3f}") for what, value in found.items()]


def clocks() -> tuple[float, float]:
    """The clock on the wall, and CPU seconds of all threads: on a busy machine only the latter can be compared."""
    return time.perf_counter(), time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["errors", "time"])
    parser.add_argument("--half", choices=["tune", "judge"], default="judge")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    fresh = errors(given.half, given.seeds) if given.study == "errors" else timing(given.rows)
    kept: list[Row] = []
    if TABLE.exists():
        with TABLE.open(newline="") as file:
            kept = [tuple(row) for row in csv.reader(file)][1:]
    kept = [row for row in kept if row[:2] != tuple(map(str, fresh[0][:2]))]
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([FIELDS, *kept, *fresh])
    for row in fresh:
        print(*row)


if __name__ == "__main__":
    main()
