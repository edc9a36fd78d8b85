"""Modal regression measured on the DP-GRAMS paper's grid, against the truth and against partial mean shift.

Run ``python benchmarks/regression.py`` (all 32 cells, 20 runs), ``--quick`` (8 cells, 3 runs, printed only) or
``--plot`` (only the figure, from the CSV file). What was stopped goes on where it stopped: finished runs are kept in
the temporary folder until the grid is complete. After a change of the code say ``--fresh``, which forgets them.

Errors are `fogline_research.experiments.branch_error`: symmetric, so that a missed branch costs its distance to the
next one found, a spurious branch its distance to the next true one, and finding nothing the square of the public range
of y. Beside it stands the error of what a method puts out, to the nearest true mode at its place: for DP-PMS and
partial mean shift every point of their output, as the paper has it; for the certified estimator every mode at the
queries. Coverage is that of the 90% prediction sets, on 2000 fresh records per run. LOWESS gives one value at each x
and is no modal method: it stands here as the paper has it, for reference.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from common import RESULTS, read_csv, spread_over_cores, write_csv
from fogline_research.as_published import partial_mean_shift
from fogline_research.experiments.regression import (
    DATASETS,
    QUERIES,
    Fit,
    RegressionCell,
    branch_error,
    fit,
    regression_cells,
)

RUNS = 20
SEED = 20261116
METHODS = ("certified", "published", "partial_mean_shift", "lowess")
PRIVATE = ("certified", "published")
LEVEL = 0.9
FRESH = 2000
DONE = Path(tempfile.gettempdir()) / "fogline_regression_runs.csv"

Job = tuple[int, str, int]
"""Index of the cell, method, run."""


def measure(job: Job) -> dict[str, Any]:
    """One method on one data set: all that the table needs."""
    index, method, run = job
    cell = regression_cells()[index]
    stream = [SEED, cell.n, list(DATASETS).index(cell.dataset), run]  # the same data at every epsilon
    draw = DATASETS[cell.dataset]
    sample = draw(cell.n, random_state=np.random.default_rng(stream))
    rng = np.random.default_rng([*stream, 1])
    got = _lowess(sample) if method == "lowess" else fit(method, sample, epsilon=cell.epsilon, rng=rng)
    width = sample.y_bounds[1] - sample.y_bounds[0]
    true_mse, right = branch_error(sample.conditional_modes(QUERIES), got.modes, width=width)
    places, outputs = QUERIES, got.modes
    if got.branches is not None:
        places, outputs = sample.X.ravel(), [np.array([value]) for value in got.branches]
    plain = partial_mean_shift(sample.X, sample.y)
    pms_mse, _ = branch_error(plain.predict_modes(QUERIES), got.modes, width=width)
    paper = math.nan
    if method == "published" and got.branches is not None:
        printed = partial_mean_shift(sample.X, sample.y, kernel_at="iterates").branches
        paper = float(np.mean((got.branches - printed) ** 2))
    fresh = draw(FRESH, random_state=np.random.default_rng([*stream, 2]))
    covered = _coverage(got.estimator, fresh) if method == "certified" else math.nan
    return {
        "cell": index,
        "method": method,
        "run": run,
        "true_mse": true_mse,
        "output_mse": _to_nearest(sample.conditional_modes(places), outputs),
        "pms_mse": pms_mse,
        "paper_measure": paper,
        "right": right,
        "nothing": float(np.mean([len(modes) == 0 for modes in got.modes])),
        "coverage": covered,
        "seconds": got.seconds,
    }


def _to_nearest(true: Any, outputs: Any) -> float:
    """Mean squared distance of all outputs to the nearest true mode at their place; nan where there are none."""
    found = [
        float(np.min((np.asarray(modes) - value) ** 2))
        for modes, values in zip(true, outputs, strict=True)
        for value in values
    ]
    return float(np.mean(found)) if found else math.nan


def _lowess(sample: Any) -> Fit:
    from statsmodels.nonparametric.smoothers_lowess import lowess

    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        smooth = lowess(sample.y, sample.X.ravel(), frac=0.2, xvals=QUERIES)
    return Fit([np.array([value]) for value in smooth], None, time.process_time() - began)


def _coverage(estimator: Any, fresh: Any) -> float:
    """Share of fresh records within their prediction set; nan where the release gave no sets."""
    sets = estimator.prediction_sets(fresh.X, coverage=LEVEL)
    inside = [
        bool(np.any((np.asarray(part)[:, 0] <= value) & (value <= np.asarray(part)[:, 1]))) if len(part) else False
        for part, value in zip(sets, fresh.y, strict=True)
    ]
    return float(np.mean(inside))


# -- the grid, resumable ------------------------------------------------------------------------------------------


def jobs_of(cells: Iterable[int], runs: int, methods: tuple[str, ...]) -> list[Job]:
    """All jobs; what does not depend on epsilon is run once for each n."""
    all_cells = regression_cells()
    least = min(cell.epsilon for cell in all_cells)
    return [
        (index, method, run)
        for index in cells
        for method in methods
        if method in PRIVATE or all_cells[index].epsilon == least
        for run in range(runs)
    ]


def done_before() -> dict[Job, dict[str, str]]:
    if not DONE.exists():
        return {}
    with DONE.open(newline="", encoding="utf-8") as file:
        return {(int(row["cell"]), row["method"], int(row["run"])): row for row in csv.DictReader(file)}


def keep(found: list[dict[str, Any]]) -> None:
    started = DONE.exists()
    with DONE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(found[0]))
        if not started:
            writer.writeheader()
        writer.writerows(found)


def run(cells: list[int], runs: int, methods: tuple[str, ...]) -> list[dict[str, Any]]:
    """Measure what is missing, in batches that are kept, and return the rows of the table."""
    wanted = jobs_of(cells, runs, methods)
    missing = [job for job in wanted if job not in done_before()]
    for start in range(0, len(missing), 64):
        batch = missing[start : start + 64]
        keep(spread_over_cores(measure, batch, label=f"regression {start + len(batch)}/{len(missing)}"))
    found = done_before()
    return [
        _summary(regression_cells()[index], method, [found[job] for job in wanted if job[:2] == (index, method)])
        for index, method in dict.fromkeys(job[:2] for job in wanted)
    ]


def _summary(cell: RegressionCell, method: str, found: list[dict[str, str]]) -> dict[str, Any]:
    columns = {name: np.array([float(row[name]) for row in found]) for name in found[0] if name != "method"}
    means = {
        name: float(np.nanmean(values)) if np.any(values == values) else math.nan for name, values in columns.items()
    }
    error = float(columns["true_mse"].std(ddof=1) / math.sqrt(len(found))) if len(found) > 1 else math.nan
    return {
        "dataset": cell.dataset,
        "n": cell.n,
        "epsilon": cell.epsilon if method in PRIVATE else "",
        "method": method,
        "runs": len(found),
        "true_mse": means["true_mse"],
        "true_mse_se": error,
        "output_mse": means["output_mse"],
        "pms_mse": means["pms_mse"],
        "paper_measure": means["paper_measure"],
        "paper_mse": cell.dp_pms_mse if method == "published" else math.nan,
        "right": means["right"],
        "nothing": means["nothing"],
        "coverage": means["coverage"],
        "seconds": means["seconds"],
    }


# -- the figure -----------------------------------------------------------------------------------------------------


def plot() -> Path | None:
    """Error against the truth over epsilon: one panel for each data set and n."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = read_csv("regression")
    if not rows:
        return None
    panels = list(dict.fromkeys((row["dataset"], int(row["n"])) for row in rows))
    columns = math.ceil(len(panels) / 2) if len(panels) > 4 else len(panels)
    figure, axes = pyplot.subplots(
        math.ceil(len(panels) / columns), columns, figsize=(3.0 * columns, 5.6), squeeze=False, sharey=True
    )
    for axis, (dataset, n) in zip(axes.ravel(), panels, strict=False):
        here = [row for row in rows if (row["dataset"], int(row["n"])) == (dataset, n)]
        for method, colour in zip(METHODS, ("C0", "C3", "C2", "0.6"), strict=True):
            own = [row for row in here if row["method"] == method]
            if own and method in PRIVATE:
                place = [float(row["epsilon"]) for row in own]
                axis.loglog(place, [float(row["true_mse"]) for row in own], "o-", color=colour, label=method)
            elif own:
                axis.axhline(float(own[0]["true_mse"]), color=colour, linestyle="--", label=method.replace("_", " "))
        axis.set_title(f"{dataset.replace('_', ' ')}, n = {n}", fontsize=9)
        axis.set_xlabel("epsilon")
    axes[0, 0].set_ylabel("squared error to the true modes")
    axes[0, 0].legend(fontsize=7)
    figure.tight_layout()
    path = RESULTS / "regression.svg"
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Modal regression on the paper's grid.")
    parser.add_argument("--quick", action="store_true", help="8 cells, 3 runs; printed only")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs per cell")
    parser.add_argument("--methods", default=",".join(METHODS), help="some of the methods, separated by commas")
    parser.add_argument("--fresh", action="store_true", help="forget the runs of before")
    parser.add_argument("--plot", action="store_true", help="only draw the figure")
    options = parser.parse_args()
    if options.fresh:
        DONE.unlink(missing_ok=True)
    if not options.plot:
        methods = tuple(options.methods.split(","))
        every = range(len(regression_cells()))
        small = [regression_cells().index(cell) for cell in regression_cells("small")]
        lowest = [index - index % 4 for index in small]  # what is not private is measured in the first cell of its n
        cells = sorted({*small, *lowest}) if options.quick else list(every)
        rows = run(cells, 3 if options.quick else options.runs, methods)
        if options.quick:
            for row in rows:
                print({name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()})
            return
        write_csv("regression", rows)
        if methods == METHODS:
            DONE.unlink(missing_ok=True)
    print(plot(), file=sys.stderr)


if __name__ == "__main__":
    main()
