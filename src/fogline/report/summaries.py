"""A summary: the table of a result as text, in the manner of statsmodels, and as HTML for a notebook."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from fogline.accounting.guarantee import Guarantee
from fogline.density.value_words import LEAST_ERROR
from fogline.report._svg import plus_minus
from fogline.report.frame import FittedEstimator, as_sentence, power_of_ten

__all__ = [
    "INTERVAL",
    "Summary",
    "budget_fact",
    "column_facts",
    "count_fact",
    "estimate_cells",
    "notes_of",
    "released_facts",
    "spread_cells",
]

NARROWEST = 72
"""Letters of a line, where the table needs no more."""


@dataclass(frozen=True)
class Summary:
    """Table of a result; prints as text, shows as HTML in a notebook.

    Parameters
    ----------
    title : str
    facts : tuple of pairs of str
        What stands above the table: records, budget, columns.
    headings : tuple of str
    rows : tuple of rows of str
    notes : tuple of str
        What stands below: remarks, the message, the guarantee.
    left : int
        Number of leading columns that are labels, flush left.

    Examples
    --------
    >>> print(Summary("Stay", (("Records", "100 ± 2"),), ("quantity", "value"), (("mean", "3.1"),), ("Certified.",)))
                                      Stay
    ========================================================================
    Records:  100 ± 2
    ------------------------------------------------------------------------
    quantity                                                           value
    ------------------------------------------------------------------------
    mean                                                                 3.1
    ========================================================================
    Certified.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    left: int = 1

    def __str__(self) -> str:
        cells = [self.headings, *self.rows] if self.rows else []
        widths = [max(len(row[j]) for row in cells) for j in range(len(self.headings))] if cells else []
        width = max(NARROWEST, sum(widths) + 2 * (len(widths) - 1))
        # what is left of the line goes between the labels and the numbers
        padding = " " * max(0, width - sum(widths) - 2 * (len(widths) - 1))
        lines = [f"{self.title:^{width}}".rstrip(), "=" * width, *self._fact_lines(width)]
        if cells:
            head, *body = (self._line(row, widths, padding) for row in cells)
            lines += ["-" * width, head, "-" * width, *body]
        lines.append("=" * width)
        for note in self.notes:
            lines += textwrap.wrap(note, width, break_long_words=False)
        return "\n".join(lines)

    __repr__ = __str__

    def _line(self, row: Sequence[str], widths: Sequence[int], padding: str) -> str:
        labels = "  ".join(f"{row[j]:<{widths[j]}}" for j in range(self.left))
        numbers = "  ".join(f"{row[j]:>{widths[j]}}" for j in range(self.left, len(row)))
        return f"{labels}  {padding}{numbers}" if numbers else labels

    def _fact_lines(self, width: int) -> list[str]:
        longest = max((len(name) for name, _ in self.facts), default=0) + 3
        lines: list[str] = []
        for name, words in self.facts:
            lead = f"{name + ':':<{longest}}"
            lines += textwrap.wrap(words, width, initial_indent=lead, subsequent_indent=" " * longest)
        return lines

    def _repr_html_(self) -> str:
        """Show as HTML: a heading, the facts, the table, the notes; every text is escaped."""
        head = "".join(f"<th>{escape(heading)}</th>" for heading in self.headings)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        table = f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        facts = "<br>".join(f"<b>{escape(name)}</b>: {escape(words)}" for name, words in self.facts)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<div><h4>{escape(self.title)}</h4><p>{facts}</p>{table if self.rows else ''}{notes}</div>"


def spread_cells(value: float, error: float, *parts: float, bounds: Sequence[float] | None = None) -> tuple[str, ...]:
    """Value, standard error, both ends of the normal 95% interval and parts of the error, for people.

    With the column's `bounds`, the interval ends there, and an error that is next to nothing is told as such.

    Examples
    --------
    >>> spread_cells(10.0, 1.0)
    ('10.0', '1.0', '8.0', '12.0')
    >>> spread_cells(1.4e-6, 9.2e-6, bounds=(0.0, 100.0))
    ('0.0000', '< 0.0001', '0.0000', '0.0000')
    """
    low, high = (-math.inf, math.inf) if bounds is None else bounds
    least = 0.0 if bounds is None else LEAST_ERROR * (high - low)
    if 0 <= error < least:
        told, small = plus_minus(value, [error], least)
        return told, small, told, told, *[small] * len(parts)
    return estimate_cells(value, error, max(value - 1.96 * error, low), min(value + 1.96 * error, high), *parts)


def estimate_cells(
    value: float, error: float, low: float, high: float, *parts: float, step: float = 0.0
) -> tuple[str, ...]:
    """Value, standard error, both ends of the interval and parts of the error, with as many decimals as the error asks.

    A value of a column that has a step, and the ends of its interval, have the decimals of the step: the median of
    whole numbers is a whole number, however well it is known.

    Examples
    --------
    >>> estimate_cells(4.2934, 0.0438, 4.2076, 4.3792, 0.04)
    ('4.293', '0.044', '4.208', '4.379', '0.040')
    >>> estimate_cells(61.0, 0.31, 60.0, 61.0, 0.3, step=1.0)
    ('61', '0.31', '60', '61', '0.30')
    """
    # an interval far wider than its error says how much is known: quantiles in a heap have one
    lead = max(error, (high - low) / 10)
    cells = [plus_minus(number, [lead])[0] for number in (value, error, low, high, *parts)]
    if step > 0 and all(abs(number / step - round(number / step)) < 1e-6 for number in (value, low, high)):
        cells = cells if lead > 0 else ["0"] * len(cells)
        places = len(f"{step:.12f}".rstrip("0").partition(".")[2])
        cells[0], cells[2], cells[3] = (f"{number:.{places}f}".replace("-", "−") for number in (value, low, high))
    return tuple(cells)


def count_fact(count: float, sd: float) -> tuple[str, str]:
    """Released number of records."""
    return "Records", f"{count:.0f} ± {sd:.0f}, as released"


def budget_fact(guarantee: Guarantee) -> tuple[str, str]:
    """Budget of a release."""
    certified = "certified" if guarantee.certified else "not certified"
    return "Budget", f"epsilon {guarantee.epsilon:.4g}, delta {power_of_ten(guarantee.delta)}, {certified}"


def column_facts(
    columns: Sequence[str], bounds: Sequence[tuple[str, str]], units: Sequence[str] | None = None
) -> tuple[str, str]:
    """Columns with their public bounds, and units where they are known."""
    known = units or ("",) * len(columns)
    told = zip(columns, bounds, known, strict=False)
    return "Columns", ", ".join(f"{name} ({f'{low} to {high} {unit}'.rstrip()})" for name, (low, high), unit in told)


def notes_of(message: str, guarantee: object, *remarks: str) -> tuple[str, ...]:
    """Remarks, the message and the guarantee, as sentences."""
    return tuple(filter(None, (*remarks, as_sentence(message), str(guarantee))))


def released_facts(
    estimator: FittedEstimator, columns: Sequence[str], bounds: Sequence[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """Return what stands above the table of an estimator: the released count where there is one, budget, columns."""
    density = estimator.density_
    facts = [budget_fact(estimator.guarantee_), column_facts(columns, bounds)]
    if density is not None:  # where records were projected, the density's own count leaves some of them out
        count = getattr(estimator, "count_", density.count)
        facts.insert(0, count_fact(count, getattr(estimator, "count_standard_error_", density.count_sd)))
    return tuple(facts)


INTERVAL = ("std. error", "[0.025", "0.975]")
"""Headings of what :func:`spread_cells` gives beside the value."""
