"""Integrally private draws: what a page or a summary says of them, which is the promise and nothing of the model.

The learnt density is a secret that no noise protects, so there is no picture and no frame of it: only the draws that
were paid for may be shown, and whoever wants them calls ``sample``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from fogline.report.frame import (
    ConsoleTable,
    as_sentence,
    column_names,
    few_listed,
    promise_content,
    python_call,
    versions,
)
from fogline.report.summaries import Summary, notes_of

if TYPE_CHECKING:
    from fogline.estimators import IntegralSampler

__all__ = [
    "DrawFindings",
    "draws_content",
    "draws_document",
    "draws_frame",
    "draws_plot",
    "draws_summary",
    "draws_table",
    "draws_title",
    "find_draws",
]

SECRET = "the learnt density is secret, and draws are paid for one by one: show what sample() returns"


@dataclass(frozen=True, eq=False)
class DrawFindings:
    """What may be said of a sampler."""

    kind: ClassVar[str] = "draws"
    estimator: Any
    columns: tuple[str, ...]


def find_draws(estimator: IntegralSampler, columns: Sequence[str] | None = None) -> DrawFindings:
    """Read what a page shows from a fitted sampler; nothing is drawn."""
    return DrawFindings(estimator, column_names(estimator, columns))


def draws_title(findings: DrawFindings) -> str:
    """Return the title of a page that was given none."""
    return f"Draws of {few_listed(findings.columns)}"


def _facts(findings: DrawFindings) -> tuple[tuple[str, str], ...]:
    estimator, guarantee = findings.estimator, findings.estimator.guarantee_
    return (
        ("Draws", f"{guarantee.draws} in all, {estimator.draws_left_} left"),
        ("Budget", f"epsilon {guarantee.per_draw:.4g} per draw, {guarantee.epsilon:.4g} together"),
        ("Base", estimator.base if isinstance(estimator.base, str) else type(estimator.base).__name__),
        ("Columns", ", ".join(findings.columns)),
    )


def draws_summary(findings: DrawFindings) -> Summary:
    """Return what was promised, and how many draws are left."""
    estimator = findings.estimator
    notes = notes_of(estimator.message_, estimator.guarantee_)
    return Summary(draws_title(findings), _facts(findings), (), (), notes)


def draws_frame(_: DrawFindings) -> NoReturn:
    """Refuse: there is nothing but draws to show."""
    raise ValueError(f"to_frame: {SECRET}")


def draws_plot(_: DrawFindings, ax: Any = None) -> NoReturn:  # noqa: ARG001
    """Refuse: there is nothing but draws to show."""
    raise ValueError(f"plot: {SECRET}")


def draws_document(findings: DrawFindings, command: str | None = None) -> dict[str, Any]:
    """Return the promise as plain values for JSON."""
    estimator = findings.estimator
    return {
        "format": "fogline-draws-summary-1",
        "command": command or python_call(estimator),
        "columns": list(findings.columns),
        "draws": {"all": estimator.guarantee_.draws, "left": estimator.draws_left_},
        "message": estimator.message_,
        "guarantee": {**estimator.guarantee_.to_dict(), "statement": str(estimator.guarantee_)},
        "versions": versions(),
    }


def draws_table(findings: DrawFindings) -> ConsoleTable:
    """Return what was promised, for a terminal."""
    estimator = findings.estimator
    told = [as_sentence(estimator.message_)] if estimator.message_ else []
    return ConsoleTable(
        draws_title(findings),
        ("", ""),
        _facts(findings),
        left=(0, 1),
        sentences=(*told, str(estimator.guarantee_)),
    )


def draws_content(findings: DrawFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    estimator = findings.estimator
    return {
        **promise_content(estimator, estimator.receipt_),
        "facts": _facts(findings),
        "draws": estimator.guarantee_.draws,
        "left": estimator.draws_left_,
        "per_draw": f"{estimator.guarantee_.per_draw:.4g}",
        "figures": [],
    }
