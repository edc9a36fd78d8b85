"""What a terminal shows of findings, as plain texts: a table, and sentences below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fogline.report._svg import plus_minus, significant
from fogline.report.findings import Findings
from fogline.report.frame import as_sentence, p_value

__all__ = ["ConsoleTable", "count_words", "left_out_words", "modes_table", "values_with_errors"]


@dataclass(frozen=True)
class ConsoleTable:
    """A table and what is said below it.

    Parameters
    ----------
    title : str
    headings : tuple of str
    rows : tuple of rows of texts
        Without any, no table is shown.
    left : tuple of int
        Columns that are flush left; all others are numbers.
    left_out : str
        What the table does not show.
    remarks : tuple of str
        Long lines, which are not broken.
    sentences : tuple of str
        The message, the count, the guarantee.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[int, ...] = ()
    left_out: str = ""
    remarks: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def values_with_errors(values: Any, errors: Any) -> list[str]:
    """Numbers and their errors for people.

    Examples
    --------
    >>> values_with_errors([1.2345], [0.01])
    ['1.234 ± 0.010']
    """
    return [" ± ".join(plus_minus(float(v), [float(e)])) for v, e in zip(values, errors, strict=True)]


def left_out_words(columns: Sequence[str], shown: Sequence[int]) -> str:
    """Say how many columns a table leaves out; nothing if it has them all."""
    more = len(columns) - len(shown)
    if not more:
        return ""
    return f"{more} more column{'' if more == 1 else 's'}, of less difference, are in the document of --json."


def count_words(estimator: Any, *, counted: bool = True) -> tuple[str, ...]:
    """Return what is said below every table: the message, the released count if there is one, the guarantee."""
    density = estimator.density_ if counted else None
    found = [as_sentence(estimator.message_)] if estimator.message_ else []
    if density is not None:  # where records were projected, the density's own count leaves some of them out
        count = getattr(estimator, "count_", density.count)
        error = getattr(estimator, "count_standard_error_", density.count_sd)
        found.append(f"Records within the bounds, as released: {count:.0f} ± {error:.0f}.")
    return (*found, str(estimator.guarantee_))


def modes_table(findings: Findings) -> ConsoleTable:
    """Modes with their errors and shares, the count, the guarantee, and what would help."""
    estimator, rows = findings.estimator, []
    shares, errors = findings.basins.shares, findings.basins.share_errors
    for k in range(findings.k):
        where = values_with_errors(estimator.modes_[k], estimator.standard_errors_[k])
        height = [significant(float(estimator.heights_[k])), p_value(float(estimator.p_values_[k]))]
        standing = f"{significant(findings.standings.modes[k].ratio, 2)} × fogline"
        rows.append((str(k + 1), *where, *height, standing, f"{100 * shares[k]:.0f}% ± {100 * errors[k]:.0f}%"))
    return ConsoleTable(
        "Modes, highest first",
        ("mode", *findings.columns, "density", "p-value", "prominence", "share of mass"),
        tuple(rows),
        sentences=count_words(estimator),
    )
