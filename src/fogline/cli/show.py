"""What the commands print: tables for people, rows for files."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fogline.report.findings import Findings
from fogline.report.page import p_value
from fogline.report.svg import plus_minus, significant
from fogline.reproduce import Row, geometric_mean_ratio

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "as_record",
    "console_for_people",
    "progress_bar",
    "show_modes",
    "show_payment",
    "show_rows",
    "summary",
    "write_rows",
]

WIDTH = 110
"""Columns of output that is not a terminal."""


def console_for_people() -> Console:
    """Return a console that is wide enough where it is no terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=WIDTH)


def show_modes(findings: Findings) -> None:
    """Print modes with their errors and shares, the count, the guarantee, and what would help."""
    from rich.table import Table
    from rich.text import Text

    estimator, console = findings.estimator, console_for_people()
    density = estimator.density_
    if findings.k:
        table = Table(title=Text("Modes, highest first"), title_justify="left")
        table.add_column("mode", justify="right")
        for name in findings.columns:
            table.add_column(Text(name), justify="right")
        for heading in ("density", "p-value", "prominence", "share of mass"):
            table.add_column(heading, justify="right")
        for k in range(findings.k):
            where = zip(estimator.modes_[k].tolist(), estimator.standard_errors_[k].tolist(), strict=True)
            table.add_row(
                str(k + 1),
                *(" ± ".join(plus_minus(value, [error])) for value, error in where),
                significant(float(estimator.heights_[k])),
                p_value(float(estimator.p_values_[k])),
                f"{significant(findings.standings.modes[k].ratio, 2)} × fogline",
                f"{100 * findings.basins.shares[k]:.0f}% ± {100 * findings.basins.share_errors[k]:.0f}%",
            )
        console.print(table)
    if estimator.message_:
        console.print(f"{estimator.message_[:1].upper()}{estimator.message_[1:]}.")
    console.print(f"Records within the bounds, as released: {density.count:.0f} ± {density.count_sd:.0f}.")
    console.print(str(estimator.guarantee_))


def show_payment(paid: dict[str, Any]) -> None:
    """Print what the ledger was charged, or that it was charged nothing."""
    receipt, console = paid["receipt"], console_for_people()
    where = f"entry {receipt['commit']} of the ledger, data set {receipt['dataset']!r}, version {receipt['version']!r}"
    if paid["cached"]:
        console.print(f"Free: this question was asked before, and the answer is that of {where}.", soft_wrap=True)
    else:
        console.print(f"Paid: rho = {receipt['amount'] / 1e12:.6g}, {where}.", soft_wrap=True)


# -- reproduce --------------------------------------------------------------------------------------------


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


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """Give a callback that draws a bar on stderr, or None."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, label: bar.update(task, completed=done, total=total, description=label)
