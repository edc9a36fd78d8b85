"""Quartiles and mean of one released column, by number of records and epsilon: how far off to expect them.

    python benchmarks/expect_column.py [runs per cell]

Cells are four numbers of records times four budgets; in each, eight columns of the half *judge* are released with the
defaults and read with ``target="records"``: an error is the distance from what the table itself would answer, so that
it holds noise and smoothing, and not the chance by which these records are in the table. The table is for
``docs/expect.md``; rows go to ``docs/benchmarks/expect_column.csv``.
"""

from __future__ import annotations

import sys
import warnings
import zlib
from typing import Any

import numpy as np

import fogline
from common import write_csv
from fogline.testing import seeded_noise
from fogline_research.datasets.columns import Column
from fogline_research.metrics.cell_masses import rank_errors
from quantiles import chosen

QUARTILES = np.array([0.25, 0.5, 0.75])
SIZES = (300, 1000, 10_000, 100_000)
BUDGETS = (0.1, 0.3, 1.0, 3.0)


def errors(column: Column, n: int, epsilon: float, run: int) -> dict[str, float]:
    """Errors of one release: quartiles in ranks, the mean in standard deviations of the records."""
    rng = np.random.default_rng([20, zlib.crc32(column.name.encode()), n, int(1000 * epsilon), run])
    x = column.draw(n, rng)
    ordered, (low, high) = np.sort(x[:, 0]), column.box
    near = (high - low) / 4096 if column.atomic and not column.step else 0.0
    with seeded_noise(int(rng.integers(2**32))):
        shape = fogline.release(x, bounds=[column.box], steps=column.steps, epsilon=epsilon)
    told = shape.quantile(QUARTILES, target="records").value
    inside = ordered[(ordered >= low) & (ordered <= high)]
    return {
        "quartiles": float(np.mean(rank_errors(ordered, told, QUARTILES, tolerance=near))),
        "mean": float(abs(shape.mean(target="records").value - inside.mean()) / inside.std()),
    }


def main(runs: int) -> None:
    """Measure all cells and write them."""
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        for epsilon in BUDGETS:
            each = [errors(column, n, epsilon, run) for column in chosen() for run in range(runs)]
            # the mean of a column that is nearly a single value has a large error in its tiny deviation: take medians
            medians = {name: float(np.median([one[name] for one in each])) for name in each[0]}
            worst = max(one["quartiles"] for one in each)
            row = {"n": n, "epsilon": epsilon, "columns": len(chosen()), "runs": runs, **medians}
            rows.append({**row, "quartiles_worst": worst})
            print(rows[-1], flush=True)
    write_csv("expect_column", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
