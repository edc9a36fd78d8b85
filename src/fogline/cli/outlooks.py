"""What ``fogline plan`` prints: a table for people, a document for machines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fogline.estimators._clustering_expected import ExpectedClusterError
    from fogline.estimators._regression_expected import ExpectedBranches
    from fogline.estimators.expected import ExpectedError

__all__ = ["outlook_document", "show_outlook"]


def outlook_document(expected: Any, options: dict[str, Any], command: str) -> dict[str, Any]:
    """Give a plan for machines."""
    from fogline.estimators.expected import ExpectedError

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
    from fogline.estimators.expected import ExpectedError

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
    from fogline.report.svg import significant

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
    from fogline.report.svg import significant

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

    from fogline.cli.show import console_for_people

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
    from fogline.report.svg import significant

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
