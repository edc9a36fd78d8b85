"""Readings of a release: density, slices, quantiles, modes, clusters, branches, questions, comparisons. All are free.

Everything is computed from released numbers, once, and kept as the part of a page that shows it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fogline.density.posterior.estimates import Estimate
from fogline.density.posterior.posterior import Posterior
from fogline.density.private_density import PrivateDensity
from fogline.density.questions import Event
from fogline.report._density_plots import DensityCurve, group_curves, posterior_curve
from fogline.report._svg import tick_label
from fogline.report.density import column_step, read_curve
from fogline.report.frame import p_value
from fogline.report.page import find, kind_of
from fogline.report.summaries import estimate_cells
from fogline.studio.questions import Fields, last_of, number_of, parse_number

__all__ = [
    "POINTS",
    "QUANTILES",
    "Condition",
    "Memory",
    "Reading",
    "comparison",
    "curve",
    "in_words",
    "kind_content",
    "slice_conditions",
    "slice_fault",
]

POINTS = (16, 32, 64, 128, 256)
"""Resolutions that can be chosen."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
QUANTILE_NAMES = ("5% quantile", "lower quartile", "median", "upper quartile", "95% quantile")
MOST_KEPT = 400
MOST_GROUPS = 2


class Memory:
    """Results by their key, each computed once however many ask for it; the oldest are forgotten.

    Parameters
    ----------
    most : int
        Results that are kept.
    at_a_time : int
        Computations that run beside each other: each may take some hundred megabytes.
    """

    def __init__(self, most: int = MOST_KEPT, at_a_time: int = 2) -> None:
        self._most = most
        self._turns = threading.BoundedSemaphore(at_a_time)
        self._lock = threading.Lock()
        self._known: OrderedDict[Any, Any] = OrderedDict()
        self._locks: dict[Any, threading.Lock] = {}

    def get(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Return what a key stands for."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
            own = self._locks.setdefault(key, threading.Lock())
        with own:
            with self._lock:
                if key in self._known:
                    return self._known[key]
            try:
                with self._turns:
                    found = compute()
            finally:
                with self._lock:
                    self._locks.pop(key, None)
            with self._lock:
                self._known[key] = found
                while len(self._known) > self._most:
                    self._known.popitem(last=False)
            return found


class Condition(Event):
    """A range of one column, as in a question in words; None is an open end."""

    @property
    def words(self) -> str:
        """For people.

        Examples
        --------
        >>> Condition("age", high=60.0, high_open=True).words, Condition("age", 20.0, 60.0).words
        ('age below 60', 'age 20 to 60')
        """
        to = "below" if self.high_open else "up to" if self.low is None else "to"
        low = "" if self.low is None else f" {tick_label(self.low)}" if self.high is not None else ""
        high = "" if self.high is None else f" {to} {tick_label(self.high)}"
        return f"{self.column}{low}{high}" if high else f"{self.column} from {tick_label(self.low or 0.0)}"


def _ranges(posterior: Posterior, conditions: Sequence[Condition]) -> dict[str, tuple[float | None, float | None]]:
    """Closed range of each column in which all conditions hold."""
    axes = {axis.name: axis for axis in posterior.axes}
    found: dict[str, tuple[float | None, float | None]] = {}
    for one in conditions:
        ends = zip(found.get(one.column, (None, None)), one.closed(axes[one.column]), strict=True)
        low, high = ([end for end in pair if end is not None] for pair in ends)
        found[one.column] = max(low, default=None), min(high, default=None)
    return found


@dataclass(frozen=True)
class Reading:
    """What a page shows of a reading.

    Parameters
    ----------
    figures : tuple of str
        SVG.
    headings : tuple of str
    rows : tuple of rows of texts
    notes : tuple of str
    """

    figures: tuple[str, ...]
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


HEADINGS = ("quantity", "value", "95% interval", "privacy", "sampling", "smoothing")


def _cells(name: str, estimate: Estimate, *more: str) -> tuple[str, ...]:
    """One row of a table: value and error, interval, parts of the error."""
    parts = ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing")
    value, error, low, high, *rest = estimate_cells(*(float(getattr(estimate, part)) for part in parts))
    return (*more, name, f"{value} ± {error}", f"{low} to {high}", *rest)


def _slice(posterior: Posterior, column: str, conditions: Sequence[Condition]) -> Posterior:
    """Posterior of one column where others lie in ranges."""
    ranges = _ranges(posterior, conditions)
    found = posterior.given(**ranges) if ranges else posterior
    return found.marginal(column) if found.d > 1 else found


def curve(
    density: PrivateDensity,
    column: str,
    points: int | None = None,
    groups: Sequence[Sequence[Condition]] = ((),),
) -> Reading:
    """Read the curve and the quantiles of a column, of everyone or of one or two groups.

    Parameters
    ----------
    density : PrivateDensity
    column : str
    points : int, optional
        Resolution.
    groups : sequence of conditions
        Each group is where all of its conditions hold; without any, everyone.
    """
    posterior = density.posterior
    rows: list[tuple[str, ...]] = []
    curves: list[tuple[str, DensityCurve]] = []
    notes: list[str] = []
    margins = [_slice(posterior, column, conditions) for conditions in groups]
    step = max(column_step(margin, 0) for margin in margins)
    for conditions, margin in zip(groups, margins, strict=True):
        name = " and ".join(one.words for one in conditions) or "everyone"
        curves.append((name, read_curve(margin, 0, column, points, step)))
        quantiles = margin.quantile(list(QUANTILES))
        told = [("mean", margin.mean()), *((q, quantiles[k]) for k, q in enumerate(QUANTILE_NAMES))]
        rows += [_cells(words, estimate, name) for words, estimate in told]
        if conditions:
            ranges = _ranges(posterior, conditions)
            share = posterior.probability([ranges.get(axis.name, (None, None)) for axis in posterior.axes])
            notes.append(_share_words(name, share))
    notes += [_atom_words(name, one) for name, one in curves if one.atoms]
    single = len(curves) == 1
    figure = posterior_curve(curves[0][1]) if single else group_curves(curves)
    headings = ("group", *HEADINGS)
    return Reading((figure,), headings, tuple(rows), tuple(notes))


def _share_words(name: str, share: Estimate) -> str:
    low, value, high = (f"{100 * float(part):.3g}%" for part in (share.low, share.value, share.high))
    return f"Share of the population with {name}: {value} ({low} to {high})."


def _atom_words(name: str, found: DensityCurve) -> str:
    told = [f"{100 * float(atom.share.value):.2g}% at {found.place_words(atom)}" for atom in found.atoms]
    return f"Single values that hold a share by themselves ({name}): {', '.join(told)}."


def in_words(density: PrivateDensity, words: str) -> Reading:
    """Answer a question in words; raises ValueError for what is not understood."""
    answer = density.ask(words)
    rows, notes = [], []
    for row in answer.rows:
        if row.estimate is not None:
            rows.append(_cells(row.label or words, row.estimate))
        if row.note:
            notes.append(f"{row.label}: {row.note}" if row.label else row.note)
    if answer.unit:
        notes.append(f"In {answer.unit}.")
    return Reading((), HEADINGS, tuple(rows), tuple(notes))


def comparison(first: PrivateDensity, second: PrivateDensity, names: tuple[str, str], *, same_data: bool) -> Reading:
    """Compare two releases of the same columns."""
    if first.spec != second.spec or first.columns != second.columns:
        raise ValueError("Only releases of the same columns, ranges and steps can be compared.")
    columns = first.column_names
    figures, rows = [], []
    for j, name in enumerate(columns):
        step = max(column_step(density.posterior, j) for density in (first, second))
        both = [read_curve(density.posterior, j, name, step=step) for density in (first, second)]
        figures.append(group_curves(list(zip(names, both, strict=True))))
    found = first.compare(second)
    for words, told in (("total variation", found.total_variation), ("Hellinger distance", found.hellinger)):
        rows.append((words, *_short(told)))
    for j, name in enumerate(columns):
        rows.append((f"mean move of {name}", *_short(found.wasserstein[j])))
    notes = [f"Chance of a difference as large if both had the same shape: p = {p_value(found.p_value)}."]
    if same_data:
        notes = ["Both are releases of the same data: what differs is noise, so that no test of a difference is told."]
    return Reading(tuple(figures), ("distance", "value", "95% interval"), tuple(rows), tuple(notes))


def _short(estimate: Estimate) -> tuple[str, str]:
    value, low, high = (float(part) for part in (estimate.value, estimate.low, estimate.high))
    return f"{value:.3g}", f"{low:.3g} to {high:.3g}"


def kind_content(density: PrivateDensity, kind: str, response: str | None = None) -> tuple[str, dict[str, Any]]:
    """Return the report's template of a reading and what it says: density, modes, clusters or branches."""
    columns: Sequence[str] | None = density.columns
    found: Any = density
    if kind == "modes":
        from fogline.estimators.mode_fit import ModeFit

        found = ModeFit().read(density)
    elif kind == "clusters":
        from fogline.estimators import PrivateModeClustering

        found = PrivateModeClustering().read(density)
    elif kind == "branches":
        from fogline.estimators import PrivateModalRegression

        found = PrivateModalRegression().read(density, response)
        names = density.column_names
        last = names[-1] if response is None else response
        columns = [*(name for name in names if name != last), last]
    findings = find(found, columns)
    told = kind_of(findings)
    return told.template, told.get("content")(findings)


def slice_conditions(fields: Fields, names: tuple[str, ...], column: str) -> tuple[Condition, ...]:
    """Return the conditions of a slice: ranges of the other columns."""
    found = []
    for name in names:
        low, high = number_of(fields, f"low.{name}"), number_of(fields, f"high.{name}")
        if name != column and (low is not None or high is not None):
            found.append(Condition(name, low, high))
    return tuple(found)


def slice_fault(fields: Fields, others: Sequence[str]) -> str:
    """What is wrong with the form of a slice, in words; nothing if all is well."""
    typed = [last_of(fields, f"{end}.{name}") for name in others for end in ("low", "high")] + [last_of(fields, "at")]
    wrong = next((text for text in typed if text and parse_number(text) is None), "")
    if wrong:
        return f"“{wrong[:40]}” is not a number."
    for name in others:
        low, high = number_of(fields, f"low.{name}"), number_of(fields, f"high.{name}")
        if low is not None and high is not None and low > high:
            return f"Only where {name} lies: “from” is above “to”."
    split, at = last_of(fields, "split"), number_of(fields, "at")
    if split in others and at is None:
        return f"Say at which value of {split} the two groups part."
    return "Choose the column by which the two groups part." if at is not None and split not in others else ""
