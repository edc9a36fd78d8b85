"""Two releases side by side: what a page, a terminal, a frame or a JSON document says of how they differ.

Distances and a test say whether the shapes differ; differences of means and quantiles say how, in units of the columns
and with errors in three parts. Distances have no parts: nobody can tell where the noise in them comes from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fogline.accounting.guarantee import Guarantee
from fogline.density.comparison import ShapeComparison
from fogline.density.distances import DensityComparison, difference_of, distances_of
from fogline.density.posterior.estimates import Estimate
from fogline.density.private_density import PrivateDensity
from fogline.report._density_plots import draw_groups, group_curves, pair_map
from fogline.report._svg import HUES, plus_minus, significant
from fogline.report.density import Answer, DensityFindings, column_step, find_density
from fogline.report.frame import (
    ConsoleTable,
    as_sentence,
    count_content,
    few_listed,
    p_value,
    power_of_ten,
    promise_content,
    versions,
)
from fogline.report.summaries import Summary, column_facts, count_fact, notes_of

__all__ = [
    "ComparedPair",
    "ComparisonFindings",
    "comparison_content",
    "comparison_document",
    "comparison_frame",
    "comparison_plot",
    "comparison_summary",
    "comparison_table",
    "comparison_title",
    "find_comparison",
]

DIFFERENCES = ("mean", "lower quartile", "median", "upper quartile")
"""Numbers of each column whose differences are told."""

PARTS = ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing")

LEVEL = 0.05
"""Level of the test, in words."""


@dataclass(frozen=True)
class ComparedPair:
    """Two releases, seen as a fitted estimator is: what every page asks for."""

    first: PrivateDensity
    second: PrivateDensity
    message_: str

    density_: None = None

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self.first.spec.d)

    @property
    def guarantee_(self) -> Guarantee:
        """The weaker of the two promises."""
        pair = (self.first.guarantee, self.second.guarantee)
        return max(pair, key=lambda one: (not one.certified, one.epsilon, one.delta))


@dataclass(frozen=True, eq=False)
class ComparisonFindings:
    """What two releases say of how they differ.

    Attributes
    ----------
    estimator : ComparedPair
    columns : tuple of str
    names : two str
        What the two are called.
    comparison : DensityComparison
    read : two DensityFindings
    """

    kind: ClassVar[str] = "comparison"
    estimator: ComparedPair
    columns: tuple[str, ...]
    names: tuple[str, str]
    comparison: DensityComparison
    read: tuple[DensityFindings, DensityFindings]

    @property
    def test(self) -> ShapeComparison:
        """The test of equal shapes."""
        return self.comparison.test

    @property
    def distances(self) -> list[Answer]:
        """Distances, of the whole and of each column."""
        found = self.comparison
        whole = [Answer("", "total variation", found.total_variation), Answer("", "Hellinger", found.hellinger)]
        units = self.read[0].units
        moved = [Answer(name, "values moved by", found.wasserstein[k], units[k]) for k, name in enumerate(self.columns)]
        return [*whole, *moved]

    @property
    def differences(self) -> list[tuple[Answer, Answer, Answer]]:
        """A number of the first, of the second, and by how much the second is larger."""
        first, second = self.read
        found = []
        for one, other in zip(first.answers, second.answers, strict=True):
            if one.quantity in DIFFERENCES:
                larger = _possible(difference_of(one.estimate, other.estimate), one.step)
                found.append((one, other, Answer(one.column, one.quantity, larger, one.unit, one.step)))
        return found

    @property
    def verdict(self) -> str:
        """Whether the shapes differ, in words."""
        if self.test.message:
            return self.test.message
        p = f"p {words}" if (words := p_value(self.test.p_value)).startswith("<") else f"p = {words}"
        if not self.test.differs(LEVEL):
            return f"no difference of the shapes can be told from noise ({p})"
        place = zip(self.columns, self.test.place.tolist(), strict=True)
        where = " and ".join(f"{name} = {significant(value, 3)}" for name, value in place)
        denser = self.names[0] if self.test.difference > 0 else self.names[1]
        return f"the shapes differ ({p}), most clearly around {where}, where {denser} is denser"


def _possible(difference: Estimate, step: float) -> Estimate:
    """The interval of a difference without ends that no two values of the column can have between them."""
    if not step:
        return difference
    low, high = float(difference.low) / step, float(difference.high) / step
    near = 1e-9  # what rounding may leave
    return replace(difference, low=step * math.ceil(low - near), high=step * math.floor(high + near))


def find_comparison(
    found: DensityComparison | ShapeComparison, columns: Sequence[str] | None = None
) -> ComparisonFindings:
    """Read what a page shows from a comparison of two releases; costs no privacy.

    Parameters
    ----------
    found : DensityComparison or ShapeComparison
        What ``compare`` of a density or of strata returned.
    columns : sequence of str, optional
        What the columns are called.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> made = [DensitySketch([(0, 8)], features="leaves").update([[x]] * 900).release(epsilon=1.0) for x in (2, 5)]
    >>> find_comparison(made[0].compare(made[1], names=("before", "after"))).names
    ('before', 'after')
    """
    origin = found.origin
    if origin is None:
        raise TypeError(f"this {type(found).__name__} was not read from two densities")
    first, second = origin.density, origin.arguments["other"]
    if isinstance(found, ShapeComparison):
        found = distances_of(first, second, found)
    # one may show that a column holds whole numbers where the other, with few records, does not
    steps = [max(column_step(one.posterior, j) for one in (first, second)) for j in range(first.spec.d)]
    read = [find_density(one, columns, steps) for one in (first, second)]
    told = [f"{name}: {one.estimator.message_}" for name, one in zip(origin.arguments["names"], read, strict=True)
            if one.estimator.message_]  # fmt: skip
    pair = ComparedPair(first, second, "; ".join(dict.fromkeys(told)))
    return ComparisonFindings(pair, read[0].columns, origin.arguments["names"], found, (read[0], read[1]))


def comparison_title(findings: ComparisonFindings) -> str:
    """Return the title of a page that was given none."""
    return f"{few_listed(findings.columns)}: {findings.names[0]} and {findings.names[1]}"


def comparison_call(findings: ComparisonFindings) -> str:
    """Return the Python call that compares two releases."""
    files = [f"PrivateDensity.load('{name}.fog')" for name in findings.names]
    return f"{files[0]}.compare({files[1]}, names={findings.names!r})"


def _distance_cells(answer: Answer) -> tuple[str, ...]:
    """Cells of a distance, whose error has no parts."""
    return (*answer.cells[:4], *("–" if math.isnan(float(part)) else cell for part, cell in _parts(answer)))


def _parts(answer: Answer) -> list[tuple[float, str]]:
    values = (answer.estimate.privacy, answer.estimate.sampling, answer.estimate.smoothing)
    return [(float(value), cell) for value, cell in zip(values, answer.cells[4:], strict=True)]


def comparison_summary(findings: ComparisonFindings) -> Summary:
    """Return the table of a comparison: distances, then differences with the parts of their errors."""
    rows = [(one.column, one.quantity, *_distance_cells(one)) for one in findings.distances]
    less = f"{findings.names[1]} less {findings.names[0]}"
    rows += [(one.column, f"{one.quantity}, {less}", *one.cells) for *_, one in findings.differences]
    first = findings.read[0]
    counts = [count_fact(read.density.count, read.density.count_sd)[1] for read in findings.read]
    return Summary(
        comparison_title(findings),
        (
            *((name, f"{words}; {_budget(read.density.guarantee)}")
              for name, words, read in zip(findings.names, counts, findings.read, strict=True)),
            column_facts(findings.columns, first.bounds_words, first.units),
        ),
        ("column", "quantity", "value", "std. error", "[0.025", "0.975]", "privacy", "sampling", "smoothing"),
        tuple(rows),
        notes_of(findings.estimator.message_, "", as_sentence(findings.verdict), *_promises(findings)),
        left=2,
    )  # fmt: skip


def _budget(guarantee: Guarantee) -> str:
    certified = "certified" if guarantee.certified else "not certified"
    return f"epsilon {guarantee.epsilon:.4g}, delta {power_of_ten(guarantee.delta)}, {certified}"


def _promises(findings: ComparisonFindings) -> list[str]:
    """What is promised of each; once where it is the same."""
    said = [str(read.density.guarantee) for read in findings.read]
    if said[0] == said[1]:
        return [f"Both: {said[0]}"]
    return [f"{name}: {words}" for name, words in zip(findings.names, said, strict=True)]


def comparison_frame(findings: ComparisonFindings) -> dict[str, list[Any]]:
    """Return distances and differences as columns of a frame; the p-value comes first."""
    less = f"{findings.names[1]} less {findings.names[0]}"
    answers = [*findings.distances]
    answers += [
        Answer(one.column, f"{one.quantity}, {less}", one.estimate, one.unit) for *_, one in findings.differences
    ]
    frame: dict[str, list[Any]] = {
        "column": ["", *(answer.column for answer in answers)],
        "quantity": ["p-value of equal shapes", *(answer.quantity for answer in answers)],
    }
    for part in PARTS:
        lead = findings.test.p_value if part == "value" else float("nan")
        frame[part] = [lead, *(float(getattr(answer.estimate, part)) for answer in answers)]
    frame["unit"] = ["", *(answer.unit for answer in answers)]
    return frame


def comparison_document(findings: ComparisonFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    test, first = findings.test, findings.read[0]
    return {
        "format": "fogline-comparison-1",
        "command": command or comparison_call(findings),
        "names": list(findings.names),
        "columns": list(findings.columns),
        "units": first.units,
        "bounds": [list(pair) for pair in first.bounds],
        "counts": [
            {"value": read.density.count, "standard_error": read.density.count_sd} for read in findings.read
        ],
        "test": {
            "p_value": test.p_value,
            "simulations": test.simulations,
            "place": None if np.isnan(test.place).any() else test.place.tolist(),
            "difference": test.difference,
            "message": test.message,
        },
        "verdict": findings.verdict,
        "distances": [_plain(answer) for answer in findings.distances],
        "differences": [
            {**_plain(larger), "first": _plain(one), "second": _plain(other)}
            for one, other, larger in findings.differences
        ],
        "message": findings.estimator.message_,
        "guarantees": [
            {**read.density.guarantee.to_dict(), "statement": str(read.density.guarantee)} for read in findings.read
        ],
        "versions": versions(),
    }  # fmt: skip


def _plain(answer: Answer) -> dict[str, Any]:
    values = {part: float(getattr(answer.estimate, part)) for part in PARTS}
    told = {part: None if math.isnan(value) else value for part, value in values.items()}
    return {"column": answer.column, "quantity": answer.quantity, **told, "unit": answer.unit}


def comparison_table(findings: ComparisonFindings) -> ConsoleTable:
    """Distances and differences with errors and intervals, the verdict, the guarantees."""
    rows = []
    for one in findings.distances:
        value, error, low, high, *_ = one.cells
        rows.append((one.column, one.quantity, "", "", f"{value} ± {error}", f"{low} to {high}"))
    for one, other, larger in findings.differences:
        value, error, low, high, *_ = larger.cells
        pair = (one.cells[0], other.cells[0])
        rows.append((larger.column, larger.quantity, *pair, f"{value} ± {error}", f"{low} to {high}"))
    told = [as_sentence(findings.estimator.message_)] if findings.estimator.message_ else []
    return ConsoleTable(
        comparison_title(findings),
        ("column", "quantity", *findings.names, "difference", "95% interval"),
        tuple(rows),
        left=(0, 1),
        sentences=(as_sentence(findings.verdict), *told, *_promises(findings)),
    )


def comparison_content(findings: ComparisonFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    first, pair = findings.read[0], findings.estimator
    counts = [plus_minus(read.density.count, [read.density.count_sd]) for read in findings.read]
    return {
        **promise_content(pair, None),
        **count_content(sum(one.density.count for one in findings.read), 0.0),
        "call": comparison_call(findings),
        "d": len(findings.columns),
        "columns": findings.columns,
        "names": findings.names,
        "units": first.units,
        "bounds": first.bounds_words,
        "steps": first.steps_words,
        "verdict": as_sentence(findings.verdict),
        "p_value": p_value(findings.test.p_value),
        "simulations": findings.test.simulations,
        "differs": not findings.test.message and findings.test.differs(LEVEL),
        "groups": [
            {"name": name, "hue": HUES[k], "count": count, "count_error": error,
             "budget": _budget(findings.read[k].density.guarantee), "receipt": findings.read[k].density.receipt}
            for k, (name, (count, error)) in enumerate(zip(findings.names, counts, strict=True))
        ],
        "distances": [_row(one, _distance_cells(one)) for one in findings.distances],
        "differences": [
            {**_row(larger, larger.cells), "first": one.cells[0], "second": other.cells[0]}
            for one, other, larger in findings.differences
        ],
        "promises": _promises(findings),
        "maps": [name for name, read in zip(findings.names, findings.read, strict=True) if len(read.planes) == 1],
        "figures": _figures(findings),
    }  # fmt: skip


def _row(answer: Answer, cells: Sequence[str]) -> dict[str, Any]:
    value, error, low, high, privacy, sampling, smoothing = cells
    named = f"{answer.column} ({answer.unit})" if answer.unit else answer.column
    return {
        "column": named or "all columns",
        "quantity": answer.quantity,
        "value": f"{value} ± {error}",
        "interval": f"{low} to {high}",
        "parts": [privacy, sampling, smoothing],
    }


def _figures(findings: ComparisonFindings) -> list[str]:
    """One overlay per column; with two columns also a map of each release."""
    pairs = list(zip(findings.names, findings.read, strict=True))
    drawn = [group_curves([(name, read.curves[j]) for name, read in pairs]) for j in range(len(findings.columns))]
    return [*drawn, *(pair_map(read.planes[0]) for _, read in pairs if len(read.planes) == 1)]


def comparison_plot(findings: ComparisonFindings, ax: Any = None) -> Any:
    """Draw with matplotlib: both densities of each column over each other."""
    from fogline.report._axes import axes_for

    axes = axes_for(ax, len(findings.columns))
    pairs = list(zip(findings.names, findings.read, strict=True))
    for j, one in enumerate(axes):
        draw_groups([(name, read.curves[j]) for name, read in pairs], one)
    return axes[0] if len(axes) == 1 else np.array(axes)
