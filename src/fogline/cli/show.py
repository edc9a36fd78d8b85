"""What the commands print: tables for people, documents for machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fogline.cli.common import console_for_people
from fogline.report._plots import MOST_COLUMNS, telling_columns
from fogline.report._svg import plus_minus, significant
from fogline.report.clusters import ClusterFindings, shown_columns
from fogline.report.findings import Findings
from fogline.report.fit import FitFindings, privacy_words
from fogline.report.frame import as_sentence, p_value
from fogline.report.mixture import MixtureFindings
from fogline.report.modes import WideFindings
from fogline.report.regression import COVERAGE, BranchFindings, described_rows

if TYPE_CHECKING:
    from rich.console import Console

    from fogline.planning.clustering import ExpectedClusterError
    from fogline.planning.modes import ExpectedError
    from fogline.planning.regression import ExpectedBranches

__all__ = [
    "console_for_people",
    "outlook_document",
    "payment_words",
    "progress_bar",
    "show_branches",
    "show_clusters",
    "show_fit",
    "show_mixture",
    "show_modes",
    "show_outlook",
    "show_payment",
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


def outlook_document(expected: Any, options: dict[str, Any], command: str) -> dict[str, Any]:
    """Give a plan for machines."""
    from fogline.planning.modes import ExpectedError

    if isinstance(expected, ExpectedError):
        return _modes_document(expected, command)
    chosen = {name: options[name] for name in ("delta", "neighbours", "level")}
    rows = [{name: _plain(value) for name, value in vars(row).items()} for row in expected.rows]
    named = {"n_clusters": expected.n_clusters} if options["kind"] == "clusters" else {"shape": expected.shape}
    return {
        "format": f"fogline-plan-{options['kind']}-1",
        "command": command,
        "n": expected.n,
        **named,
        **chosen,
        "rows": rows,
    }


def show_outlook(expected: Any, options: dict[str, Any]) -> None:
    """Print a plan for people."""
    from fogline.planning.modes import ExpectedError

    if isinstance(expected, ExpectedError):
        _show_modes(expected)
    elif options["kind"] == "clusters":
        _show_clusters(expected, options)
    else:
        _show_branches(expected, options)


def _plain(value: Any) -> Any:
    """Numbers that JSON has; an error of nothing is none."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show_clusters(expected: ExpectedClusterError, options: dict[str, Any]) -> None:
    from fogline.report._svg import significant

    rows = [
        [
            f"{row.epsilon:g}",
            significant(row.count_error, 2),
            ", ".join(significant(error, 2) for error in row.mean_errors[:4])
            + (", ..." if len(row.mean_errors) > 4 else ""),
            f"{significant(100 * row.smallest_variance, 2)}%",
            significant(row.centre_error, 2) if math.isfinite(row.centre_error) else "-",
        ]
        for row in expected.rows
    ]
    _print(
        f"{expected.n} records, {expected.n_clusters} clusters, {_terms(options)}",
        ["epsilon", "error of the count", "of the mean", "variance seen from", "error of a centre"],
        rows,
        "Noise of one fit, from its exact sensitivities; nothing was spent. A direction is seen if it holds that part "
        "of the variance. The error of a centre is in deviations of its cluster, after one step of refinement.",
    )


def _show_branches(expected: ExpectedBranches, options: dict[str, Any]) -> None:
    from fogline.report._svg import significant

    def error(value: float) -> str:
        return significant(value, 2) if math.isfinite(value) else "-"

    rows = [
        [
            f"{row.epsilon:g}",
            f"{row.shown:.0%}",
            f"{row.detected:.0%}",
            error(row.error),
            error(row.privacy_error),
            error(row.sampling_error),
            f"{row.spurious:.2f}",
        ]
        for row in expected.rows
    ]
    _print(
        f"{expected.n} records, {expected.shape}, {_terms(options)}",
        ["epsilon", "fits with branches", "modes found", "error", "of privacy", "of sampling", "false modes a place"],
        rows,
        f"From {expected.runs} simulated fits an epsilon; nothing was spent. Modes are those at each place x.",
    )


def _terms(options: dict[str, Any]) -> str:
    return f"delta {options['delta']:g}, {options['neighbours']}"


def _print(title: str, headings: list[str], rows: list[list[str]], note: str) -> None:
    from rich.table import Table
    from rich.text import Text

    pass

    console = console_for_people()
    table = Table(title=Text(title), title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(note)


def _modes_document(expected: ExpectedError, command: str) -> dict[str, Any]:
    return {
        "format": "fogline-plan-1",
        "command": command,
        "n": expected.n,
        "shape": expected.shape,
        "delta": expected.delta,
        "neighbours": expected.neighbours,
        "level": expected.level,
        "runs": expected.runs,
        "modes": expected.modes.tolist(),
        "rows": expected.table(),
    }


def _show_modes(expected: ExpectedError) -> None:
    from fogline.report._svg import significant

    has_modes = len(expected.modes) > 0
    headings = ["epsilon", *(["mode at", "found", "error", "of privacy", "of sampling"] if has_modes else [])]
    rows, last = [], None
    for record in expected.table():
        same, last = record["epsilon"] == last, record["epsilon"]
        cells = ["" if same else f"{record['epsilon']:g}"]
        if has_modes:
            cells += [", ".join(significant(value) for value in record["position"]), f"{record['detected']:.0%}"]
            for name in ("standard_errors", "privacy_errors", "sampling_errors"):
                errors = record[name]
                cells.append("-" if errors is None else ", ".join(significant(error, 2) for error in errors))
        share = f"{significant(100 * record['smallest_share'], 2)}%"
        rows.append([*cells, *(["", ""] if same else [share, f"{record['spurious']:.2f}"])])
    _print(
        f"{expected.n} records, {expected.shape}, delta {expected.delta:g}, {expected.neighbours}",
        [*headings, "smallest share seen", "false modes a fit"],
        rows,
        f"From {expected.runs} simulated fits an epsilon; nothing was spent. The smallest share is the part of the "
        "records that, gathered in one narrow place, would just stand above the fog.",
    )
