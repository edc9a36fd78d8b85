"""Main table 1 and tables 5 to 8 of the DP-GRAMS papers rerun, beside what they print.

Run ``python benchmarks/clusters_printed.py`` (some 10 minutes of a core with MNIST, whose folder FOGLINE_MNIST names;
without it Iris and Digits alone). Every run is a row of its own, written as it comes: what was interrupted goes on
where it stopped. ``--quick`` takes one run at one epsilon of Iris.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from typing import Any

from common import RESULTS, read_csv
from fogline_research.experiments import cluster_cells, reproduce_clusters
from fogline_research.experiments.clusters import ClusterCell

__all__ = ["NAME", "jobs", "measured"]

NAME = "clusters_printed"
SEED = 20261118
QUICK = "--quick" in sys.argv

RUNS = {
    "iris": {"published": 10, "dp_kmeans": 20},
    "digits": {"published": 1, "dp_kmeans": 10},
    "mnist": {"published": 1, "dp_kmeans": 3},
}
"""Runs per epsilon; images come out without noise by DP-GRAMS-C, so that one is enough."""
AT_1 = {
    "iris": {"certified": 10, "kmeans": 5, "mean_shift": 1},
    "digits": {"certified": 2, "kmeans": 3, "mean_shift": 1},
    "mnist": {"certified": 1, "kmeans": 1, "mean_shift": 1},
}
"""Runs at epsilon 1, where main table 1 and table 8 have what is not private; ours beside it."""


def jobs() -> Iterator[tuple[ClusterCell, str, int]]:
    """Cells, methods and runs."""
    for cell in cluster_cells():
        more = AT_1[cell.dataset] if cell.epsilon == 1.0 else {}
        for method, number in {**RUNS[cell.dataset], **more}.items():
            for run in range(number):
                yield cell, method, run


def measured(cell: ClusterCell, method: str, run: int) -> dict[str, Any]:
    """One run, as a row."""
    (row,) = reproduce_clusters(runs=1, cells=[cell], methods=[method], seed=SEED + run)
    found = {"ari": row.ari, "nmi": row.nmi, "mse": row.median_mse, "seconds": row.seconds}
    key = {"dataset": cell.dataset, "epsilon": cell.epsilon, "method": method, "run": run}
    return key | {name: float(f"{value:.5g}") for name, value in found.items()}


def main() -> None:
    """Append the rows that are not there yet."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path, done = RESULTS / f"{NAME}.csv", read_csv(NAME)
    keys = {(row["dataset"], float(row["epsilon"]), row["method"], int(row["run"])) for row in done}
    for cell, method, run in jobs():
        if (cell.dataset, cell.epsilon, method, run) in keys or (QUICK and (cell.dataset, run) != ("iris", 0)):
            continue
        row = measured(cell, method, run)
        fresh = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(row), lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerow(row)
        print(*row.values(), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
