"""Released strata: what a page, a terminal, a frame or a JSON document says of their counts, shapes and differences.

Each stratum that stands clear of the noise is read as its posterior, and each pair of the largest is tested for one
common shape. Everything is post-processing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fogline.accounting.guarantee import Guarantee
from fogline.density.comparison import ShapeComparison
from fogline.density.leaves import LeafSpec
from fogline.density.spec import SketchSpec, default_names
from fogline.density.strata import Strata, visible_names
from fogline.report._density_plots import group_curves, pair_map
from fogline.report._svg import HUES, plus_minus, short, tick_label
from fogline.report.density import Answer, DensityFindings, column_step, find_density
from fogline.report.frame import (
    ConsoleTable,
    as_sentence,
    count_content,
    few_listed,
    p_value,
    promise_content,
    versions,
)
from fogline.report.summaries import Summary, budget_fact, column_facts, count_fact, notes_of

__all__ = [
    "ReleasedStrata",
    "StrataFindings",
    "find_strata",
    "strata_content",
    "strata_document",
    "strata_frame",
    "strata_plot",
    "strata_summary",
    "strata_table",
    "strata_title",
]

MOST_READ = 8
"""Most strata whose shapes are read: those with the largest counts."""

MOST_COMPARED = 4
"""Most strata of which each pair is compared."""

TOLD = ("mean", "lower quartile", "median", "upper quartile")
"""Numbers that are told of each column of a stratum."""


@dataclass(frozen=True)
class ReleasedStrata:
    """Strata, seen as a fitted estimator is: what every page asks for."""

    strata: Strata

    density_: None = None

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self.strata.spec.d)

    @property
    def guarantee_(self) -> Guarantee:
        """What is promised, and to whom."""
        return self.strata.guarantee

    @property
    def message_(self) -> str:
        """What to check."""
        return self.strata.message


@dataclass(frozen=True, eq=False)
class StrataFindings:
    """What a release says of its strata.

    Attributes
    ----------
    estimator : ReleasedStrata
    columns : tuple of str
    read : dict of DensityFindings
        Of the strata whose counts are clear of the noise, by name.
    comparisons : tuple of (first, second, ShapeComparison)
        Tests of equal shapes.
    """

    kind: ClassVar[str] = "strata"
    estimator: ReleasedStrata
    columns: tuple[str, ...]
    read: dict[str, DensityFindings]
    comparisons: tuple[tuple[str, str, ShapeComparison], ...]

    @property
    def strata(self) -> Strata:
        """The release."""
        return self.estimator.strata

    @property
    def bounds_words(self) -> list[tuple[str, str]]:
        """Public range of each column, for people."""
        return [(tick_label(float(low)), tick_label(float(high))) for low, high in self.strata.spec.bounds]

    @property
    def hues(self) -> dict[str, str]:
        """Colour of each stratum that is drawn."""
        return {name: HUES[k % len(HUES)] for k, name in enumerate(self.read)}

    def answers(self, name: str) -> list[Answer]:
        """The numbers that are told of a stratum; none where only its count is known."""
        if name not in self.read:
            return []
        return [answer for answer in self.read[name].answers if answer.quantity in TOLD]


def find_strata(strata: Strata, columns: Sequence[str] | None = None) -> StrataFindings:
    """Read what a page shows from released strata; costs no privacy."""
    d = int(strata.spec.d)
    known = strata.columns or default_names(d)
    names = tuple(str(name) for name in (known if columns is None else columns))
    if len(names) != d:
        raise ValueError(f"columns must name the {d} columns of the release, got {len(names)}")
    clear = sorted(visible_names(strata), key=lambda name: -strata[name].count)[:MOST_READ]
    clear = [name for name in strata.names if name in clear]  # in the order of the release
    shown = {name: strata[name] for name in clear if strata[name].has_posterior}
    # one group may show that a column holds whole numbers where another, with few records, does not
    steps = [max((column_step(one.posterior, j) for one in shown.values()), default=0.0) for j in range(d)]
    read = {name: find_density(one, names, steps) for name, one in shown.items()}
    return StrataFindings(ReleasedStrata(strata), names, read, _comparisons(strata, clear))


def _comparisons(strata: Strata, names: Sequence[str]) -> tuple[tuple[str, str, ShapeComparison], ...]:
    if not isinstance(strata.spec, SketchSpec | LeafSpec):
        return ()
    return tuple((a, b, strata.compare(a, b)) for a, b in itertools.combinations(names[:MOST_COMPARED], 2))


def strata_title(findings: StrataFindings) -> str:
    """Return the title of a page that was given none."""
    return f"{few_listed(findings.columns)} in {len(findings.strata)} groups"


def strata_call(findings: StrataFindings) -> str:
    """Return the Python call that makes such a release."""
    strata, guarantee = findings.strata, findings.strata.guarantee
    bounds = [(float(low), float(high)) for low, high in strata.spec.bounds]
    named: Any = bounds if strata.columns is None else dict(zip(findings.columns, bounds, strict=True))
    leaves = ", features='leaves'" if strata.leaves is not None else ""
    budget = f"epsilon={guarantee.epsilon:.6g}" + (f", delta={guarantee.delta:g}" if guarantee.delta else "")
    categories = [name for name in strata.names if name != "other"]  # a stratum of its own by default
    return f"private_strata(X, by, categories={categories!r}, bounds={named!r}, {budget}{leaves})"


def strata_summary(findings: StrataFindings) -> Summary:
    """Return the table of strata: counts, then the numbers of each that stands clear of the noise."""
    strata, rows = findings.strata, []
    for name in strata.names:
        density = strata[name]
        ends = (max(density.count - 1.96 * density.count_sd, 0.0), density.count + 1.96 * density.count_sd)
        counted = plus_minus(density.count, [density.count_sd, *ends])
        rows.append((short(name, 24), "", "records", *counted))
        for answer in findings.answers(name):
            rows.append(("", answer.column, answer.quantity, *answer.cells[:4]))
    return Summary(
        strata_title(findings),
        (
            count_fact(strata.count, strata.count_sd),
            budget_fact(strata.guarantee),
            column_facts(findings.columns, findings.bounds_words),
        ),
        ("group", "column", "quantity", "value", "std. error", "[0.025", "0.975]"),
        tuple(rows),
        notes_of(strata.message, strata.guarantee, *_verdicts(findings)),
        left=3,
    )


def _verdicts(findings: StrataFindings) -> list[str]:
    """What the tests of equal shapes say."""
    told = []
    for first, second, test in findings.comparisons:
        verdict = test.message or f"test of equal shapes, p = {p_value(test.p_value)}"
        told.append(f"{first} and {second}: {verdict}.")
    return told


def strata_frame(findings: StrataFindings) -> dict[str, list[Any]]:
    """Return the strata as columns of a frame, one row per group; what is not known is missing."""
    strata = findings.strata
    frame: dict[str, list[Any]] = {
        "group": list(strata.names),
        "count": [strata[name].count for name in strata.names],
        "count_standard_error": [strata[name].count_sd for name in strata.names],
    }
    for column, quantity in itertools.product(findings.columns if findings.read else (), TOLD):
        values, errors = [], []
        for name in strata.names:
            told = [a.estimate for a in findings.answers(name) if (a.column, a.quantity) == (column, quantity)]
            values.append(float(told[0].value) if told else float("nan"))
            errors.append(float(told[0].standard_error) if told else float("nan"))
        frame[f"{column}_{quantity.replace(' ', '_')}"] = values
        frame[f"{column}_{quantity.replace(' ', '_')}_standard_error"] = errors
    return frame


def strata_document(findings: StrataFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    strata = findings.strata
    groups = []
    for name in strata.names:
        told = [
            {
                "column": answer.column,
                "quantity": answer.quantity,
                "value": float(answer.estimate.value),
                "standard_error": float(answer.estimate.standard_error),
                "low": float(answer.estimate.low),
                "high": float(answer.estimate.high),
            }
            for answer in findings.answers(name)
        ]
        count = {"value": strata[name].count, "standard_error": strata[name].count_sd}
        groups.append({"name": name, "count": count, "answers": told})
    return {
        "format": "fogline-strata-summary-1",
        "command": command or strata_call(findings),
        "columns": list(findings.columns),
        "bounds": [[float(low), float(high)] for low, high in strata.spec.bounds],
        "weight_bound": strata.weight_bound,
        "groups": groups,
        "comparisons": [
            {"first": first, "second": second, "p_value": test.p_value, "message": test.message}
            for first, second, test in findings.comparisons
        ],
        "message": strata.message,
        "guarantee": {**strata.guarantee.to_dict(), "statement": str(strata.guarantee)},
        "versions": versions(),
    }


def strata_table(findings: StrataFindings) -> ConsoleTable:
    """Counts and medians of each group, the tests, the guarantee."""
    strata, rows = findings.strata, []
    for name in strata.names:
        count = " ± ".join(plus_minus(strata[name].count, [strata[name].count_sd]))
        medians = [answer.cells for answer in findings.answers(name) if answer.quantity == "median"]
        shown = [f"{value} ± {error}" for value, error, *_ in medians]
        rows.append((name, count, *(shown or ["in the fog"] * len(findings.columns))))
    told = [as_sentence(strata.message)] if strata.message else []
    return ConsoleTable(
        strata_title(findings),
        ("group", "records", *(f"median {name}" for name in findings.columns)),
        tuple(rows),
        left=(0,),
        sentences=(*_verdicts(findings), *told, str(strata.guarantee)),
    )


def strata_content(findings: StrataFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    strata, d = findings.strata, len(findings.columns)
    steps = [tick_label(step) if step else "" for step in getattr(strata.spec, "steps", ())]
    return {
        **promise_content(findings.estimator, strata.receipt),
        **count_content(strata.count, strata.count_sd),
        "call": strata_call(findings),
        "d": d,
        "columns": findings.columns,
        "bounds": findings.bounds_words,
        "steps": steps or [""] * d,
        "weights": None if strata.weight_bound is None else tick_label(strata.weight_bound),
        "groups": [_group(findings, name) for name in strata.names],
        "told": [(column, quantity) for column in findings.columns for quantity in TOLD] if findings.read else [],
        "comparisons": [
            {"first": a, "second": b, "p_value": p_value(test.p_value), "message": test.message}
            for a, b, test in findings.comparisons
        ],
        "maps": [name for name, read in findings.read.items() if len(read.planes) == 1],
        "curves": d if findings.read else 0,
        "figures": _figures(findings),
    }


def _group(findings: StrataFindings, name: str) -> dict[str, Any]:
    density = findings.strata[name]
    count, error = plus_minus(density.count, [density.count_sd])
    cells = [answer.cells for answer in findings.answers(name)]
    return {
        "name": name,
        "hue": findings.hues.get(name, ""),
        "count": count,
        "count_error": error,
        "answers": [{"value": value, "error": sd} for value, sd, *_ in cells],
    }


def _figures(findings: StrataFindings) -> list[str]:
    """One overlay per column; with two columns also a map of each group."""
    drawn = [
        group_curves([(name, read.curves[j]) for name, read in findings.read.items()])
        for j in range(len(findings.columns) if findings.read else 0)
    ]
    return [*drawn, *(pair_map(read.planes[0]) for read in findings.read.values() if len(read.planes) == 1)]


def strata_plot(findings: StrataFindings, ax: Any = None) -> Any:
    """Draw with matplotlib, as :meth:`fogline.density.strata.Strata.plot` does."""
    return findings.strata.plot(ax=ax)
