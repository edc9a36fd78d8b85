"""99 quantiles of one column at epsilon 1, pure: rank errors among the records, beside the recursive mechanism.

    python benchmarks/quantiles.py [runs per cell]

Cells are eight columns of the half *judge* times three numbers of records. A release is made with its defaults and read
with ``target="records"``. The recursive exponential mechanism draws 31, 63 or 127 quantiles, between which the density
is even; of the three the best one *in hindsight* counts, cell by cell, which no user could choose. Where single values
hold mass, an answer within 1/4096 of the range of a record counts as that record. Rows go to
``docs/benchmarks/quantiles.csv``.
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
from fogline_research.baselines.quantiles import recursive_quantiles
from fogline_research.datasets.columns import COLUMNS, Column
from fogline_research.metrics.cell_masses import rank_errors

LEVELS = np.arange(1, 100) / 100
SIZES = (1000, 5000, 50_000)
DEPTHS = (5, 6, 7)


def chosen() -> list[Column]:
    """Two columns with heaps at a wall, then the first six continuous ones of different difficulty; half judge."""
    judge = [column for column in COLUMNS if column.half == "judge"]
    smooth: dict[str, Column] = {}
    for column in judge:
        if not column.atomic:
            smooth.setdefault(column.kind, column)
    heaps = [column for column in judge if column.kind == "zero-inflated"]
    return [*heaps[:2], *list(smooth.values())[:6]]


def errors(column: Column, n: int, run: int) -> dict[str, float]:
    """Mean rank error of each way, of one table."""
    rng = np.random.default_rng([99, zlib.crc32(column.name.encode()), n, run])
    x = column.draw(n, rng)
    ordered, (low, high) = np.sort(x[:, 0]), column.box
    width = column.step or (high - low) / 4096
    near = width if column.atomic and not column.step else 0.0  # a heap is named by an answer that lies beside it
    with seeded_noise(int(rng.integers(2**32))):
        shape = fogline.release(x, bounds=[column.box], steps=column.steps, epsilon=1.0)
    told = shape.quantile(LEVELS, target="records").value
    found = {"fogline": float(np.mean(rank_errors(ordered, told, LEVELS, tolerance=near)))}
    for depth in DEPTHS:
        answers = recursive_quantiles(x[:, 0], low, high, 1.0, rng, levels=depth, width=width)
        ends = np.linspace(0, 1, 2**depth + 1)
        between = np.interp(LEVELS, ends, np.concatenate([[low], answers, [high]]))
        if column.step:
            between = low + np.round((between - low) / column.step) * column.step
        found[f"recursive {2**depth - 1}"] = float(np.mean(rank_errors(ordered, between, LEVELS, tolerance=near)))
    return found


def main(runs: int) -> None:
    """Measure all cells, write them and print the conclusion."""
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        for column in chosen():
            each = [errors(column, n, run) for run in range(runs)]
            mean = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
            best = min(value for name, value in mean.items() if name != "fogline")
            row = {
                "column": column.name,
                "kind": column.kind,
                "n": n,
                "runs": runs,
                **mean,
                "ratio": mean["fogline"] / max(best, 1e-9),
            }
            rows.append(row)
            print(
                n,
                column.name,
                column.kind,
                *(f"{100 * value:.3f}%" for value in mean.values()),
                f"{row['ratio']:.2f}",
                flush=True,
            )
    write_csv("quantiles", rows)
    for n in SIZES:
        smooth = [row["fogline"] for row in rows if row["n"] == n and row["kind"] != "zero-inflated"]
        heaps = [row["fogline"] for row in rows if row["n"] == n and row["kind"] == "zero-inflated"]
        print(f"n = {n}: smooth {100 * np.mean(smooth):.3f}%, heaps at a wall {100 * np.mean(heaps):.3f}%")
    print(f"below the recursive mechanism in {sum(row['ratio'] < 1 for row in rows)} of {len(rows)} cells")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
