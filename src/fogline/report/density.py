"""A released density: what a page, a terminal, a frame or a JSON document says of its posterior.

One column is a curve with a band that holds all of it at once, atoms as bars beside it, and the stretches where hardly
anyone is. Two columns are a map with both curves at its sides, three are their three pairs. Every number comes with
an error in three parts: privacy, sampling, smoothing. A release of more than three columns has no posterior: of it the
count and the guarantee are told, and what to read instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fogline.accounting.cautions import release_cautions
from fogline.accounting.guarantee import Guarantee
from fogline.density.counted_records import is_nothing
from fogline.density.posterior.estimates import Atom, Band, Estimate
from fogline.density.posterior.posterior import Ends, Posterior
from fogline.density.private_density import PrivateDensity
from fogline.report._density_plots import (
    DensityCurve,
    DensityPlane,
    draw_curve,
    draw_plane,
    pair_map,
    posterior_curve,
    posterior_map,
)
from fogline.report._svg import plus_minus, significant, tick_label
from fogline.report.frame import ConsoleTable, as_sentence, count_content, few_listed, listed, promise_content, versions
from fogline.report.summaries import Summary, budget_fact, column_facts, count_fact, estimate_cells, notes_of

__all__ = [
    "Answer",
    "DensityFindings",
    "Part",
    "Released",
    "column_step",
    "density_content",
    "density_document",
    "density_frame",
    "density_plot",
    "density_summary",
    "density_table",
    "density_title",
    "find_density",
    "find_posterior",
    "read_curve",
]

QUANTILES = (
    (0.05, "5% quantile"),
    (0.25, "lower quartile"),
    (0.5, "median"),
    (0.75, "upper quartile"),
    (0.95, "95% quantile"),
)
"""Quantiles that are told of each column."""

EMPTY_SHARE = 1e-3
"""A stretch that is expected to hold at most this share of the population is called empty."""

EMPTY_WIDTH = 0.04
"""Shortest stretch that is called empty, in parts of the range."""

MOST_EMPTY = 3
"""Most empty stretches of a column that are told."""

APART = 16
"""Cells between two stretches: one that adjoins another is the slope of what lies between."""

CELLS = (256, 128, 64, 32)
"""Points of a curve: as many as keep the band low where nobody is."""

LOW_BAND = 0.12
"""How high a band may be where nobody is, in parts of the curve's highest point."""

WIDEST_LEAF = 0.34
"""Widest leaves in which whole numbers can be told from others."""

FEWEST_VALUES = 6
"""Shortest range in which they are looked for."""

COMB = 0.3
"""Least mean of a cosine of period 1 that is called a comb."""

MOST_STEPS = 160
"""Most values that are drawn as steps."""

PLANE_CELLS = 96
"""Most cells per axis of a map."""


@dataclass(frozen=True)
class Released:
    """A density, seen as a fitted estimator is: what every page asks for."""

    density_: PrivateDensity
    message_: str

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self.density_.spec.d)

    @property
    def guarantee_(self) -> Guarantee:
        """What is promised, and to whom."""
        return self.density_.guarantee


@dataclass(frozen=True)
class Answer:
    """One number of one column, or of two: what it is, and the answer with its error."""

    column: str
    quantity: str
    estimate: Estimate
    unit: str = ""
    step: float = 0.0
    """Distance of the values that the quantity can have; 0 for any value."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Value, standard error, interval, and the error's three parts, for people."""
        told = self.estimate
        return estimate_cells(
            *(float(part) for part in (told.value, told.standard_error, told.low, told.high)),
            *(float(part) for part in (told.privacy, told.sampling, told.smoothing)),
            step=self.step,
        )


@dataclass(frozen=True, eq=False)
class Part:
    """What of a release is shown, where it is not all of it: some columns, or the records that meet a condition.

    Attributes
    ----------
    posterior : Posterior
    steps : tuple of (method, options)
        How it was reached from the release's own posterior.
    """

    posterior: Posterior
    steps: tuple[tuple[str, dict[str, Any]], ...]

    @property
    def given(self) -> list[tuple[str, Ends]]:
        """The ranges of the condition; none where all records are shown."""
        return [pair for step, options in self.steps if step == "given" for pair in options.items()]

    @property
    def condition(self) -> str:
        """The condition in words, such as "age from 70 to 80"; empty where there is none.

        Examples
        --------
        >>> from fogline.density.posterior.posterior import example_posterior
        >>> Part(example_posterior(), (("given", {"age": (70, 80), "stay": (2, None)}),)).condition
        'age from 70 to 80 and stay from 2'
        """
        return listed([_range_words(name, ends) for name, ends in self.given]) if self.given else ""

    @property
    def call(self) -> str:
        """The same as Python methods."""
        return "".join(f".{step}({_arguments(step, options)})" for step, options in self.steps) or ".posterior"


def _arguments(step: str, options: dict[str, Any]) -> str:
    if step == "given":
        # names that are no Python names can be given all the same
        plain = all(name.isidentifier() for name in options)
        return ", ".join(f"{name}={ends!r}" for name, ends in options.items()) if plain else f"**{options!r}"
    return ", ".join(repr(value) for value in options.values())


def _range_words(name: str, ends: Ends) -> str:
    low, high = (None if end is None else tick_label(float(end)) for end in ends)
    if low is None or high is None:
        return f"{name} from {low}" if high is None else f"{name} up to {high}"
    return f"{name} = {low}" if low == high else f"{name} from {low} to {high}"


@dataclass(frozen=True, eq=False)
class DensityFindings:
    """What a release says of its columns.

    Attributes
    ----------
    estimator : Released
    columns : tuple of str
    answers : tuple of Answer
        Mean, standard deviation and quantiles of each column, then correlations.
    curves : tuple of DensityCurve
        One per column; none where there is no posterior.
    planes : tuple of DensityPlane
        One per pair of columns.
    part : Part or None
        What of the release is shown; all of it if None.
    """

    kind: ClassVar[str] = "density"
    estimator: Released
    columns: tuple[str, ...]
    answers: tuple[Answer, ...]
    curves: tuple[DensityCurve, ...]
    planes: tuple[DensityPlane, ...]
    part: Part | None = None

    @property
    def density(self) -> PrivateDensity:
        """The release."""
        return self.estimator.density_

    @cached_property
    def counted(self) -> tuple[float, float]:
        """Number of the records that are shown, and its standard error."""
        if self.part is None or not self.part.given:
            return self.density.count, self.density.count_sd
        found = self.part.posterior.count
        return float(found.value), float(found.standard_error)

    @property
    def condition(self) -> str:
        """Which records are shown, in words; empty for all of them."""
        return "" if self.part is None else self.part.condition

    @cached_property
    def places(self) -> list[int]:
        """Where each column stands in the release."""
        if self.part is None:
            return list(range(len(self.columns)))
        return [self.density.column_names.index(name) for name in self.part.posterior.columns]

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public range of each column."""
        pairs = self.density.spec.bounds
        return tuple((float(pairs[j][0]), float(pairs[j][1])) for j in self.places)

    @property
    def bounds_words(self) -> list[tuple[str, str]]:
        """Public range of each column, for people."""
        return [(tick_label(low), tick_label(high)) for low, high in self.bounds]

    @property
    def units(self) -> list[str]:
        """Unit of each column; empty where none is known."""
        known = self.density.units
        return ["" if known is None else known[j] for j in self.places]

    @property
    def steps_words(self) -> list[str]:
        """Public step of each column, for people; empty for a continuous one."""
        steps = list(getattr(self.density.spec, "steps", ())) or [None] * int(self.density.spec.d)
        return [tick_label(steps[j]) if steps[j] else "" for j in self.places]

    @property
    def words(self) -> str:
        """What is shown: the columns, and which records."""
        return few_listed(self.columns) + (f", given {self.condition}" if self.condition else "")


def find_density(
    density: PrivateDensity, columns: Sequence[str] | None = None, steps: Sequence[float] | None = None
) -> DensityFindings:
    """Read what a page shows from a released density; costs no privacy.

    Parameters
    ----------
    density : PrivateDensity
    columns : sequence of str, optional
        What its columns are called.
    steps : sequence of float, optional
        Distance of the values of each column, where it is known from elsewhere: of other groups, say.
    """
    names = density.column_names if columns is None else tuple(str(name) for name in columns)
    if len(names) != density.spec.d:
        raise ValueError(f"columns must name the {density.spec.d} columns of the release, got {len(names)}")
    guarantee = density.guarantee
    message = "; ".join(release_cautions(guarantee.epsilon, guarantee.delta, density.count))
    released = Released(density, message)
    if not density.has_posterior:
        return DensityFindings(released, names, (), (), ())
    return DensityFindings(released, names, *_read(density.posterior, names, steps, density.units))


def find_posterior(posterior: Posterior, columns: Sequence[str] | None = None) -> DensityFindings:
    """Read what a page shows from a posterior: of a release, of one column, or of the records in a condition.

    Parameters
    ----------
    posterior : Posterior
        Of a release: :attr:`~fogline.PrivateDensity.posterior`, or what ``marginal`` and ``given`` return.
    columns : sequence of str, optional
        What its columns are called.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 8)], features="leaves").update([[2.0]] * 900).release(epsilon=1.0)
    >>> find_posterior(density.given(x1=(0, 4))).condition
    'x1 from 0 to 4'
    """
    origin = posterior.origin
    if origin is None:
        raise TypeError("this Posterior was not read from a density")
    names = posterior.columns if columns is None else tuple(str(name) for name in columns)
    if len(names) != posterior.d:
        raise ValueError(f"columns must name the {posterior.d} columns of the posterior, got {len(names)}")
    part = Part(posterior, origin.arguments.get("steps", ()))
    density, told = origin.density, ""
    if part.given:
        count = posterior.count
        value, error = float(count.value), float(count.standard_error)
        if is_nothing(value, error):
            told = f"about {value:.0f} ± {error:.0f} records lie in the condition, which may be none"
    cautions = release_cautions(density.guarantee.epsilon, density.guarantee.delta, density.count)
    found = DensityFindings(Released(density, "; ".join(filter(None, (*cautions, told)))), names, (), (), (), part)
    answers, curves, planes = _read(posterior, names, None, found.units)
    return replace(found, answers=answers, curves=curves, planes=planes)


def _read(
    posterior: Posterior, names: Sequence[str], steps: Sequence[float] | None, units: Sequence[str] | None
) -> tuple[tuple[Answer, ...], tuple[DensityCurve, ...], tuple[DensityPlane, ...]]:
    """Answers, curves and maps of all columns and pairs."""
    known, unit = [None] * len(names) if steps is None else steps, units or ("",) * len(names)
    answers = [answer for j, name in enumerate(names) for answer in _column_answers(posterior, j, name, unit[j])]
    pairs = list(itertools.combinations(range(len(names)), 2))
    for i, j in pairs:
        answers.append(Answer(f"{names[i]}, {names[j]}", "correlation", posterior.correlation(i, j)))
    curves = [replace(read_curve(posterior, j, name, step=known[j]), unit=unit[j]) for j, name in enumerate(names)]
    planes = [replace(_plane(posterior, i, j, names), units=(unit[i], unit[j])) for i, j in pairs]
    return tuple(answers), tuple(curves), tuple(planes)


def _column_answers(posterior: Posterior, j: int, name: str, unit: str) -> list[Answer]:
    """Mean, standard deviation and quantiles of one column."""
    quantiles, step = posterior.quantile([q for q, _ in QUANTILES], j), float(posterior.axes[j].step or 0.0)
    found = [
        Answer(name, "mean", posterior.mean(j), unit),
        Answer(name, "standard deviation", _root(posterior.variance(j)), unit),
    ]
    return [*found, *(Answer(name, words, quantiles[k], unit, step) for k, (_, words) in enumerate(QUANTILES))]


def _root(variance: Estimate) -> Estimate:
    """Standard deviation of a variance: errors by its derivative, the interval by its ends."""
    value = math.sqrt(max(float(variance.value), 0.0))
    slope = 1 / (2 * value) if value > 0 else 0.0
    errors = ("standard_error", "privacy", "sampling", "smoothing")
    parts: dict[str, Any] = {name: slope * float(getattr(variance, name)) for name in errors}
    low, high = (math.sqrt(max(float(end), 0.0)) for end in (variance.low, variance.high))
    return Estimate(value=value, low=low, high=high, level=variance.level, target=variance.target, **parts)


# -- pictures ---------------------------------------------------------------------------------------------------


def column_step(posterior: Posterior, j: int) -> float:
    r"""Distance of the values of one column: as declared, or 1 where the release itself shows whole numbers, else 0.

    Whole numbers show as a comb. The mean of :math:`\cos 2\pi x` is 1 on them and next to nothing for a density that is
    wide beside 1; the whole number with the most mass is left out, so that many zeros of a continuous column do not
    count. Where leaves are too wide to tell, there is no comb either.

    Examples
    --------
    >>> from fogline import release
    >>> nights, hours = (np.random.default_rng(0).gamma(9.0, 0.8, 20_000).round(digits) for digits in (0, 6))
    >>> [column_step(release(x, columns=["x"], bounds=(0, 30), epsilon=1.0).posterior, 0) for x in (nights, hours)]
    [1.0, 0.0]
    """
    margin = posterior.marginal(j) if posterior.d > 1 else posterior
    axis, masses = margin.axes[0], margin.masses().estimate
    if axis.step:
        return float(axis.step)
    low, high = axis.bounds
    if axis.width > WIDEST_LEAF or high - low < FEWEST_VALUES:
        return 0.0
    whole = np.round(axis.centres).astype(int)
    contents = np.bincount(whole - whole.min(), weights=masses)
    others = whole - whole.min() != contents.argmax()
    rest = float(masses[others].sum())
    comb = float((masses * np.cos(2 * np.pi * axis.centres))[others].sum())
    return 1.0 if rest > 0.05 and comb > COMB * rest else 0.0


def read_curve(
    posterior: Posterior, j: int, name: str, points: int | None = None, step: float | None = None
) -> DensityCurve:
    """Read the curve of one column with its band, atoms and empty stretches; costs no privacy.

    Parameters
    ----------
    posterior : Posterior
    j : int
        Which column.
    name : str
    points : int, optional
        At most this many points; by default as many as keep the band low where nobody is.
    step : float, optional
        Distance of the column's values, 0 for a continuous one; by default as :func:`column_step` says.
    """
    margin = posterior.marginal(j) if posterior.d > 1 else posterior
    axis = margin.axes[0]
    low, high = (float(end) for end in axis.bounds)
    step = column_step(margin, 0) if step is None else step
    if step and (high - low) / max(step, axis.width) < (points or MOST_STEPS):
        band = _stepped_band(margin, step)
        return DensityCurve(name, (low, high), band, (), _empty(margin, band, (low, high)), max(step, axis.width))
    band = _readable_band(margin) if points is None else margin.band(0, points=points)
    empty = _empty(margin, band, (low, high))
    curve = DensityCurve(name, (low, high), _without(band, margin.atoms), margin.atoms, empty)
    return replace(curve, spacing=float(axis.step or 0.0))


def _stepped_band(margin: Posterior, step: float) -> Band:
    """The share of each value over the step, with its band; of each leaf, where leaves hold several values."""
    axis = margin.axes[0]
    if axis.step:
        return margin.band(0, points=len(axis.centres))
    low, high = axis.bounds
    values = step * np.arange(math.ceil(low / step), math.floor(high / step) + 1, dtype=np.float64)
    edges = (values[1:] + values[:-1]) / 2
    band = margin.band(0, edges=edges)
    # where a value is a bound, half of its cell lies outside, and its share belongs to the whole of it
    cuts = axis.edges[np.searchsorted(axis.centres, edges)]
    widths = np.diff(np.concatenate([axis.edges[:1], cuts, axis.edges[-1:]])) / step
    parts = ("value", "low", "high", "pointwise_low", "pointwise_high")
    return Band(x=values, level=band.level, **{part: getattr(band, part) * widths for part in parts})


def _readable_band(margin: Posterior) -> Band:
    """The finest curve whose band is low where nobody is: few records say little of narrow cells."""
    for points in CELLS:
        band = margin.band(0, points=points)
        # atoms are drawn as bars beside the curve, and say nothing of its height
        if float(band.high.min()) <= LOW_BAND * float(_without(band, margin.atoms).value.max()):
            break
    return band


def _without(band: Band, atoms: Sequence[Atom]) -> Band:
    """The curve without its atoms, which are drawn as bars: over their cells it goes straight from side to side."""
    width = float(band.x[1] - band.x[0]) if len(band.x) > 1 else 1.0
    kept = np.ones(len(band.x), dtype=bool)
    for atom in atoms:
        kept &= ~((band.x + width / 2 > atom.low) & (band.x - width / 2 < atom.high))
    if kept.all() or not kept.any():
        return band
    parts = ("value", "low", "high", "pointwise_low", "pointwise_high")
    straight = {part: np.interp(band.x, band.x[kept], getattr(band, part)[kept]) for part in parts}
    return Band(x=band.x, level=band.level, **straight)


def _empty(margin: Posterior, band: Band, bounds: tuple[float, float]) -> tuple[tuple[float, float, Estimate], ...]:
    """Stretches in which hardly anyone is, with the share that they may hold: the longest ones, from below."""
    low, high = bounds
    edges = np.linspace(low, high, len(band.x) + 1)
    below = np.concatenate([[0.0], np.cumsum(band.value)]) * (high - low) / len(band.x)
    free = np.ones(len(edges), dtype=bool)
    found: list[tuple[float, float, Estimate]] = []
    for _ in range(MOST_EMPTY):
        if not free.any():
            break
        # the longest stretch of free edges with hardly any mass: for each edge, how far one can go
        blocked = np.flatnonzero(~np.append(free, False))
        wall = blocked[np.searchsorted(blocked, np.arange(len(edges)))] - 1
        reach = np.minimum(np.searchsorted(below, below + EMPTY_SHARE, side="right") - 1, wall)
        start = int(np.argmax(np.where(free, reach - np.arange(len(edges)), -1)))
        ends = _inward(float(edges[start]), float(edges[reach[start]]), bounds)
        if ends[1] - ends[0] < EMPTY_WIDTH * (high - low):
            break
        found.append((*ends, margin.probability([ends])))
        # what adjoins it is its slope, and no stretch of its own
        free[max(start - APART, 0) : reach[start] + APART + 1] = False
    return tuple(sorted(found, key=lambda stretch: stretch[0]))


def _inward(start: float, end: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Ends of a stretch, moved inward to round numbers; ends at a bound stay."""
    low, high = bounds
    step = 10.0 ** math.floor(math.log10((high - low) / 40))
    first = start if start <= low else step * math.ceil(start / step - 1e-9)
    last = end if end >= high else step * math.floor(end / step + 1e-9)
    return round(first, 12), round(last, 12)


def _plane(posterior: Posterior, i: int, j: int, names: Sequence[str]) -> DensityPlane:
    others = tuple(k for k in range(posterior.d) if k not in (i, j))
    mass = posterior.masses().estimate.sum(axis=others)
    edges = []
    for k, axis in ((0, posterior.axes[i]), (1, posterior.axes[j])):
        group = max(1, math.ceil(mass.shape[k] / PLANE_CELLS))
        starts = np.arange(0, mass.shape[k], group)
        mass = np.add.reduceat(mass, starts, axis=k)
        edges.append(np.append(axis.edges[starts], axis.edges[-1]))
    areas = np.multiply.outer(np.diff(edges[0]), np.diff(edges[1]))
    bounds = tuple((float(low), float(high)) for low, high in (posterior.axes[i].bounds, posterior.axes[j].bounds))
    return DensityPlane((names[i], names[j]), (bounds[0], bounds[1]), (edges[0], edges[1]), mass / areas, (i, j))


# -- words ------------------------------------------------------------------------------------------------------


def density_title(findings: DensityFindings) -> str:
    """Return the title of a page that was given none."""
    return f"The shape of {findings.words}"


def density_call(findings: DensityFindings) -> str:
    """Return the Python call that makes such a release."""
    density, guarantee, part = findings.density, findings.density.guarantee, findings.part
    names = findings.columns if part is None else density.column_names
    bounds = dict(zip(names, ((float(low), float(high)) for low, high in density.spec.bounds), strict=True))
    reading = "" if part is None else part.call
    steps = [step or None for step in getattr(density.spec, "steps", ())]
    rounded = f", steps={steps!r}" if any(steps) else ""
    budget = f"epsilon={guarantee.epsilon:.6g}" + (f", delta={guarantee.delta:g}" if guarantee.delta else "")
    if density.leaves is not None:
        return f"fogline.release(X, bounds={bounds!r}{rounded}, {budget}){reading}"
    return f"DensitySketch({list(bounds.values())!r}{rounded}).update(X).release({budget}){reading}"


def density_summary(findings: DensityFindings) -> Summary:
    """Return the table of a density: every number with its error, its interval and the parts of its error."""
    density = findings.density
    rows, last = [], ""
    for answer in findings.answers:
        rows.append(("" if answer.column == last else answer.column, answer.quantity, *answer.cells))
        last = answer.column
    counted = count_fact(*findings.counted)
    if findings.condition:
        whole = count_fact(density.count, density.count_sd)[1]
        counted = ("Records", f"{counted[1].removesuffix(', as released')} with {findings.condition}, of {whole}")
    return Summary(
        f"Density of {findings.words}",
        (
            counted,
            budget_fact(density.guarantee),
            column_facts(findings.columns, findings.bounds_words, findings.units),
        ),
        ("column", "quantity", "value", "std. error", "[0.025", "0.975]", "privacy", "sampling", "smoothing"),
        tuple(rows),
        notes_of(findings.estimator.message_, density.guarantee, *_remarks(findings)),
        left=2,
    )


def _remarks(findings: DensityFindings) -> list[str]:
    """Atoms and empty stretches in words; or what to read where there is no posterior."""
    if not findings.curves:
        return ["More than three columns have no posterior: read modes or clusters, or release up to three columns."]
    told = []
    for curve in findings.curves:
        for atom in curve.atoms:
            share, error = (100 * float(part) for part in (atom.share.value, atom.share.standard_error))
            words = " ± ".join(plus_minus(share, [error]))
            told.append(f"{words}% of the population is at {curve.name} = {curve.place_words(atom)} alone.")
        for low, high, inside in curve.empty:
            most = significant(100 * float(inside.high), 2)
            where = f"{curve.name} from {tick_label(low)} to {tick_label(high)}"
            told.append(f"Hardly anyone has {where}: at most {most}%.")
    return told


def density_frame(findings: DensityFindings) -> dict[str, list[Any]]:
    """Return the answers as columns of a frame; the count comes first."""
    value, sd = findings.counted
    count = Estimate(value, sd, max(value - 1.96 * sd, 0.0), value + 1.96 * sd, 0.95, "records", sd, 0.0, 0.0)
    if findings.part is not None and findings.part.given:
        count = findings.part.posterior.count
    answers = [Answer("", "count", count), *findings.answers]
    shares = [(curve.name, atom) for curve in findings.curves for atom in curve.atoms]
    answers += [Answer(name, f"share at {atom.value:.10g}", atom.share) for name, atom in shares]
    frame: dict[str, list[Any]] = {
        "column": [answer.column for answer in answers],
        "quantity": [answer.quantity for answer in answers],
    }
    for part in ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing"):
        frame[part] = [float(getattr(answer.estimate, part)) for answer in answers]
    frame["unit"] = [answer.unit for answer in answers]
    return frame


def density_document(findings: DensityFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    density, part, count = findings.density, findings.part, findings.counted
    given = [] if part is None else [[name, *map(_end, ends)] for name, ends in part.given]
    return {
        "format": "fogline-density-summary-1",
        "command": command or density_call(findings),
        "columns": list(findings.columns),
        "units": findings.units,
        "bounds": [list(pair) for pair in findings.bounds],
        **({"given": given} if given else {}),
        "count": {"value": count[0], "standard_error": count[1]},
        "answers": [
            {"column": answer.column, "quantity": answer.quantity, **_plain(answer.estimate), "unit": answer.unit}
            for answer in findings.answers
        ],
        "curves": [_curve_document(curve) for curve in findings.curves],
        "message": findings.estimator.message_,
        "guarantee": {**density.guarantee.to_dict(), "statement": str(density.guarantee)},
        "versions": versions(),
    }


def _end(end: float | None) -> float | None:
    return None if end is None else float(end)


def _plain(estimate: Estimate) -> dict[str, float]:
    parts = ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing")
    return {part: float(getattr(estimate, part)) for part in parts}


def _curve_document(curve: DensityCurve) -> dict[str, Any]:
    return {
        "column": curve.name,
        "x": curve.band.x.tolist(),
        "density": curve.band.value.tolist(),
        "low": curve.band.low.tolist(),
        "high": curve.band.high.tolist(),
        "level": curve.band.level,
        "atoms": [
            {"at": atom.value, "low": atom.low, "high": atom.high, "share": _plain(atom.share)} for atom in curve.atoms
        ],
        "empty": [{"from": low, "to": high, "share": _plain(share)} for low, high, share in curve.empty],
    }


def density_table(findings: DensityFindings) -> ConsoleTable:
    """Every answer with its error and interval, the count, the guarantee."""
    density = findings.density
    rows = []
    for answer in findings.answers:
        value, error, low, high, *parts = answer.cells
        rows.append((answer.column, answer.quantity, f"{value} ± {error}", f"{low} to {high}", *parts))
    told = [as_sentence(findings.estimator.message_)] if findings.estimator.message_ else []
    count, sd = findings.counted
    counted = f"Records within the bounds, as released: {count:.0f} ± {sd:.0f}."
    if findings.condition:
        counted = f"Records with {findings.condition}: about {count:.0f} ± {sd:.0f}."
    return ConsoleTable(
        f"Density of {findings.words}",
        ("column", "quantity", "value", "95% interval", "privacy", "sampling", "smoothing"),
        tuple(rows),
        left=(0, 1),
        sentences=(*_remarks(findings), *told, counted, str(density.guarantee)),
    )


def density_content(findings: DensityFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    density, d = findings.density, len(findings.columns)
    whole = count_content(density.count, density.count_sd)
    return {
        **promise_content(findings.estimator, density.receipt),
        **count_content(*findings.counted),
        "condition": findings.condition,
        "whole": f"{whole['count']} ± {whole['count_error']}",
        "call": density_call(findings),
        "d": d,
        "columns": findings.columns,
        "names": few_listed(findings.columns),
        "bounds": findings.bounds_words,
        "units": findings.units,
        "steps": findings.steps_words,
        "answers": [_row(answer) for answer in findings.answers],
        "headline": _headline(findings),
        "atoms": [_atom_words(curve, atom) for curve in findings.curves for atom in curve.atoms],
        "empty": [_empty_words(curve, stretch) for curve in findings.curves for stretch in curve.empty],
        "stages": density.leaves is not None,
        "buckets": 0 if density.leaves is None else len(density.leaves.counts.counts),
        "posterior": bool(findings.curves),
        "figures": _figures(findings),
    }


def _headline(findings: DensityFindings) -> list[str]:
    """Median of each column with its interval, in words."""
    medians = [answer for answer in findings.answers if answer.quantity == "median"]
    told = []
    for answer in medians:
        value, _, low, high, *_ = answer.cells
        unit = f" {answer.unit}" if answer.unit else ""
        those = f"those with {findings.condition}" if findings.condition else "the population"
        told.append(f"{answer.column}: half of {those} is below {value}{unit} ({low} to {high})")
    return told


def _row(answer: Answer) -> dict[str, Any]:
    value, error, low, high, privacy, sampling, smoothing = answer.cells
    parts = {"privacy": privacy, "sampling": sampling, "smoothing": smoothing}
    named = f"{answer.column} ({answer.unit})" if answer.unit else answer.column
    return {"column": named, "quantity": answer.quantity, "value": value, "error": error} | {
        "low": low,
        "high": high,
        **parts,
    }


def _atom_words(curve: DensityCurve, atom: Atom) -> dict[str, str]:
    share, error = plus_minus(100 * float(atom.share.value), [100 * float(atom.share.standard_error)])
    return {"column": curve.name, "at": curve.place_words(atom), "share": share, "error": error}


def _empty_words(curve: DensityCurve, stretch: tuple[float, float, Estimate]) -> dict[str, str]:
    low, high, share = stretch
    most = significant(100 * float(share.high), 2)
    return {"column": curve.name, "low": tick_label(low), "high": tick_label(high), "most": most}


def _figures(findings: DensityFindings) -> list[str]:
    if len(findings.curves) == 1:
        return [posterior_curve(findings.curves[0])]
    if len(findings.curves) == 2:
        return [posterior_map(findings.planes[0], findings.curves)]
    maps = [pair_map(plane) for plane in findings.planes]
    return [*maps, *(posterior_curve(curve, small=True) for curve in findings.curves)]


def density_plot(findings: DensityFindings, ax: Any = None) -> Any:
    """Draw with matplotlib: a curve, a map, or the maps of three pairs."""
    from fogline.report._axes import axes_for

    if not findings.curves:
        raise ValueError(f"plot draws up to three columns, and this release has {len(findings.columns)}")
    if len(findings.curves) == 1:
        return draw_curve(findings.curves[0], axes_for(ax)[0])
    if len(findings.curves) == 2:
        return draw_plane(findings.planes[0], axes_for(ax)[0])
    return np.array([draw_plane(plane, one) for plane, one in zip(findings.planes, axes_for(ax, 3), strict=True)])
