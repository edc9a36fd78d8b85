"""What the commands print: tables for people, documents for machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fogline.cli.common import console_for_people

if TYPE_CHECKING:
    from fogline.planning.clustering import ExpectedClusterError
    from fogline.planning.modes import ExpectedError
    from fogline.planning.regression import ExpectedBranches
    from fogline.report.console import ConsoleTable

__all__ = [
    "console_for_people",
    "outlook_document",
    "payment_words",
    "progress_bar",
    "show_findings",
    "show_outlook",
    "show_payment",
]


def show_findings(findings: Any) -> None:
    """Print the table of some findings, the count, the guarantee, and what would help."""
    from rich.table import Table
    from rich.text import Text

    from fogline.report.kinds import kind_of

    console = console_for_people()
    found: ConsoleTable = kind_of(findings).get("table")(findings)
    if found.rows:
        table = Table(title=Text(found.title), title_justify="left")
        for j, heading in enumerate(found.headings):
            table.add_column(Text(heading), justify="left" if j in found.left else "right")
        for row in found.rows:
            table.add_row(*map(Text, row))
        console.print(table)
        if found.left_out:
            console.print(found.left_out)
    for words in found.remarks:
        console.print(words, soft_wrap=True)
    for words in found.sentences:
        console.print(words)


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
    named = {"zcdp": f"rho = {amount:.6g}", "pure": f"pure epsilon = {amount:.6g}"}
    words = named.get(receipt["currency"], f"{amount:.6g} of the {receipt['currency']} cap")
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
