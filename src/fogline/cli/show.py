"""What the commands print: tables for people, rows for files."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fogline.cli.common import console_for_people
from fogline.report.branch_page import described_rows
from fogline.report.branches import COVERAGE, BranchFindings
from fogline.report.cluster_page import shown_columns
from fogline.report.clusters import ClusterFindings
from fogline.report.findings import Findings
from fogline.report.fits import FitFindings, privacy_words
from fogline.report.frame import as_sentence, p_value
from fogline.report.mixtures import MixtureFindings
from fogline.report.space import MOST_COLUMNS, telling_columns
from fogline.report.svg import plus_minus, significant
from fogline.report.wide_modes import WideFindings
from fogline.reproduce import Row, geometric_mean_ratio

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "as_record",
    "console_for_people",
    "payment_words",
    "progress_bar",
    "show_branches",
    "show_clusters",
    "show_fit",
    "show_mixture",
    "show_modes",
    "show_payment",
    "show_rows",
    "summary",
    "write_rows",
]


def show_modes(findings: Findings | WideFindings) -> None:
    """Print modes with their errors and shares, the count, the guarantee, and what would help."""
    wide = isinstance(findings, WideFindings)
    shown = findings.shown if isinstance(findings, WideFindings) else list(range(len(findings.columns)))
    from rich.table import Table
    from rich.text import Text

    estimator, console = findings.estimator, console_for_people()
    if findings.k:
        table = Table(title=Text("Modes, highest first"), title_justify="left")
        table.add_column("mode", justify="right")
        for j in shown:
            table.add_column(Text(findings.columns[j]), justify="right")
        for heading in ("density", "p-value", *(() if wide else ("prominence", "share of mass"))):
            table.add_column(heading, justify="right")
        for k in range(findings.k):
            where = zip(estimator.modes_[k, shown], estimator.standard_errors_[k, shown], strict=True)
            cells = [" ± ".join(plus_minus(float(value), [float(error)])) for value, error in where]
            cells += [significant(float(estimator.heights_[k])), p_value(float(estimator.p_values_[k]))]
            if isinstance(findings, Findings):
                cells.append(f"{significant(findings.standings.modes[k].ratio, 2)} × fogline")
                shares, errors = findings.basins.shares, findings.basins.share_errors
                cells.append(f"{100 * shares[k]:.0f}% ± {100 * errors[k]:.0f}%")
            table.add_row(str(k + 1), *cells)
        console.print(table)
        _show_left_out(console, findings.columns, shown)
    _show_rest(console, estimator)


def show_clusters(findings: ClusterFindings) -> None:
    """Print centres and sizes with their errors, the count, the guarantee, and what would help."""
    from rich.table import Table
    from rich.text import Text

    estimator, console = findings.estimator, console_for_people()
    if findings.k:
        shown = shown_columns(findings)
        table = Table(title=Text("Clusters"), title_justify="left")
        table.add_column("cluster", justify="right")
        for j in shown:
            table.add_column(Text(findings.columns[j]), justify="right")
        for heading in ("records", "share"):
            table.add_column(heading, justify="right")
        for k in range(findings.k):
            where = zip(estimator.cluster_centers_[k, shown], estimator.standard_errors_[k, shown], strict=True)
            table.add_row(
                str(k + 1),
                *(" ± ".join(plus_minus(float(value), [float(error)])) for value, error in where),
                f"{estimator.sizes_[k]:.0f} ± {estimator.size_standard_errors_[k]:.0f}",
                f"{100 * findings.shares[k]:.0f}%",
            )
        console.print(table)
        _show_left_out(console, findings.columns, shown)
    _show_rest(console, estimator)


def show_branches(findings: BranchFindings) -> None:
    """Print the modes and the prediction set at some x, the count, the guarantee, and what would help."""
    from rich.table import Table
    from rich.text import Text

    console = console_for_people()
    response = findings.columns[-1]
    if findings.k:
        table = Table(title=Text(f"Typical {response}: number of the branch and value"), title_justify="left")
        for name in findings.columns[:-1]:
            table.add_column(Text(name), justify="right")
        table.add_column(Text(response))
        table.add_column(f"{100 * COVERAGE:.0f}% prediction set")
        for row in described_rows(findings):
            modes = [f"({mode['number']}) {' ± '.join(mode['value'])}" for mode in row["modes"]]
            table.add_row(*row["x"], ", ".join(modes) or "in the fog", row["set"])
        console.print(table)
    _show_rest(console, findings.estimator)


def show_fit(findings: FitFindings) -> None:
    """Print parameters with their errors and intervals, what is explained, the count and the guarantee."""
    from rich.table import Table
    from rich.text import Text

    estimator, console = findings.estimator, console_for_people()
    table = Table(title=Text(findings.title), title_justify="left")
    interval = f"{100 * estimator.confidence:g}% interval"
    for heading in ("parameter", "estimate", "standard error", "privacy", "sampling", interval):
        table.add_column(heading, justify="left" if heading == "parameter" else "right")
    for label, row in zip(findings.labels, findings.rows, strict=True):
        table.add_row(Text(label), *row.words, " to ".join(row.interval_words))
    console.print(table)
    if estimator.explained_ is not None:
        told = str(estimator.explained_)
        console.print(f"{told[:1].upper()}{told[1:]}.", soft_wrap=True)
    _show_rest(console, estimator)
    for words in privacy_words(estimator):
        console.print(words)


def show_mixture(findings: MixtureFindings) -> None:
    """Print weights, means and spreads with their errors, the guarantee, and what would help."""
    from rich.table import Table
    from rich.text import Text

    estimator, console = findings.estimator, console_for_people()
    shown = telling_columns(estimator.means_, findings.limits, MOST_COLUMNS)
    table = Table(title="Components: mean ± its error, spread", title_justify="left")
    table.add_column("", justify="right")
    for j in shown:
        table.add_column(Text(findings.columns[j]), justify="right")
    table.add_column("records", justify="right")
    table.add_column("weight", justify="right")
    for k in range(findings.k):
        where = zip(estimator.means_[k, shown], estimator.standard_errors_[k, shown], strict=True)
        spreads = findings.deviations[k, shown]
        table.add_row(
            str(k + 1),
            *(
                f"{' ± '.join(plus_minus(float(value), [float(error)]))}, {significant(float(spread), 2)}"
                for (value, error), spread in zip(where, spreads, strict=True)
            ),
            f"{estimator.counts_[k]:.0f} ± {findings.size_errors[k]:.0f}",
            f"{100 * estimator.weights_[k]:.1f}%",
        )
    console.print(table)
    _show_left_out(console, findings.columns, shown)
    if estimator.message_:
        console.print(as_sentence(estimator.message_))
    console.print(str(estimator.guarantee_))


def _show_left_out(console: Console, columns: Sequence[str], shown: Sequence[int]) -> None:
    more = len(columns) - len(shown)
    if more:
        console.print(
            f"{more} more column{'' if more == 1 else 's'}, of less difference, are in the document of --json."
        )


def _show_rest(console: Console, estimator: Any) -> None:
    density = estimator.density_
    if estimator.message_:
        console.print(as_sentence(estimator.message_))
    if density is not None:  # where records were projected, the density's own count leaves some of them out
        count = getattr(estimator, "count_", density.count)
        error = getattr(estimator, "count_standard_error_", density.count_sd)
        console.print(f"Records within the bounds, as released: {count:.0f} ± {error:.0f}.")
    console.print(str(estimator.guarantee_))


def show_payment(paid: dict[str, Any]) -> None:
    """Print what the ledger was charged, or that it was charged nothing."""
    console_for_people().print(payment_words(paid), soft_wrap=True)


def payment_words(paid: dict[str, Any]) -> str:
    """Say what a ledger was charged for an answer, and where that stands in it."""
    receipt = paid["receipt"]
    where = f"entry {receipt['commit']} of the ledger, data set {receipt['dataset']!r}, version {receipt['version']!r}"
    if paid["cached"]:
        edition = f" ({receipt['mechanism']}, edition {receipt['code_version']})" if receipt.get("mechanism") else ""
        return f"Free: this question was asked before, and the answer is that of {where}{edition}."
    amount = receipt["amount"] / 1e12
    words = f"rho = {amount:.6g}" if receipt["currency"] == "zcdp" else f"{amount:.6g} of the {receipt['currency']} cap"
    return f"Paid: {words}, {where}{_protected(receipt)}."


def _protected(receipt: dict[str, Any]) -> str:
    """Say for whom a release was accounted, where the receipt knows it."""
    if receipt.get("unit") is None:
        return ""
    from fogline.ledger import ProtectedUnit

    return f", for one {ProtectedUnit(receipt['unit'], receipt['max_contributions'], receipt['enforced'])}"


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
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, label: bar.update(task, completed=done, total=total, description=label)
