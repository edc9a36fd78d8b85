"""What ``fogline reproduce`` prints and writes: a line per cell and method."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fogline.cli.common import console_for_people
from fogline.report._svg import plus_minus, significant
from fogline_research.experiments import Row, geometric_mean_ratio

__all__ = ["as_record", "show_rows", "summary", "write_rows"]


def show_rows(rows: Sequence[Row]) -> None:
    """Print a line for each cell and method, and a summary for each method."""
    from rich.table import Table

    table = Table()
    for heading in ("mixture", "n", "epsilon", "method", "MSE", "paper", "ratio", "nearest-mode MSE", "CPU s"):
        table.add_column(heading, justify="left" if heading in ("mixture", "method") else "right")
    for row in rows:
        error = " ± ".join(plus_minus(row.mse, [row.mse_se])) if row.mse_se > 0 else significant(row.mse)
        table.add_row(
            row.mixture,
            str(row.n),
            f"{row.epsilon:g}",
            row.method,
            error,
            f"{row.paper_mse:g}",
            significant(row.ratio, 2),
            significant(row.nearest_mse),
            f"{row.seconds:.2f}",
        )
    console = console_for_people()
    console.print(table)
    for method, found in summary(rows).items():
        mean = found["geometric_mean_ratio"]
        console.print(
            f"{method}: geometric mean of the ratios {'infinite' if mean is None else significant(mean, 2)}, "
            f"below 1 in {found['below_1']} of {found['cells']} cells"
        )


def summary(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Geometric mean of the ratios and number of cells below 1, by method."""
    found = {}
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        found[method] = {
            "cells": len(own),
            "below_1": sum(row.ratio < 1 for row in own),
            "geometric_mean_ratio": _finite(geometric_mean_ratio(own)),
        }
    return found


def as_record(row: Row) -> dict[str, Any]:
    """Return a row with its ratio as plain values; what is not finite becomes None."""
    values = {**asdict(row), "ratio": row.ratio}
    return {name: _finite(value) if isinstance(value, float) else value for name, value in values.items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as CSV."""
    records = [as_record(row) for row in rows]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)
