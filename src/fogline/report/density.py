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
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fogline.accounting.cautions import release_cautions
from fogline.accounting.guarantee import Guarantee
from fogline.density.posterior.estimates import Atom, Band, Estimate
from fogline.density.posterior.posterior import Posterior
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
from fogline.report.frame import ConsoleTable, as_sentence, count_content, few_listed, promise_content, versions
from fogline.report.summaries import Summary, budget_fact, column_facts, count_fact, estimate_cells, notes_of

__all__ = [
    "Answer",
    "DensityFindings",
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

    @property
    def cells(self) -> tuple[str, ...]:
        """Value, standard error, interval, and the error's three parts, for people."""
        told = self.estimate
        return estimate_cells(
            *(float(part) for part in (told.value, told.standard_error, told.low, told.high)),
            *(float(part) for part in (told.privacy, told.sampling, told.smoothing)),
        )


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
    """

    kind: ClassVar[str] = "density"
    estimator: Released
    columns: tuple[str, ...]
    answers: tuple[Answer, ...]
    curves: tuple[DensityCurve, ...]
    planes: tuple[DensityPlane, ...]

    @property
    def density(self) -> PrivateDensity:
        """The release."""
        return self.estimator.density_

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public range of each column."""
        return tuple((float(low), float(high)) for low, high in self.density.spec.bounds)

    @property
    def bounds_words(self) -> list[tuple[str, str]]:
        """Public range of each column, for people."""
        return [(tick_label(low), tick_label(high)) for low, high in self.bounds]


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
    posterior = density.posterior
    answers = [answer for j, name in enumerate(names) for answer in _column_answers(posterior, j, name)]
    pairs = list(itertools.combinations(range(len(names)), 2))
    for i, j in pairs:
        answers.append(Answer(f"{names[i]}, {names[j]}", "correlation", posterior.correlation(i, j)))
    known = [None] * len(names) if steps is None else steps
    curves = tuple(read_curve(posterior, j, name, step=known[j]) for j, name in enumerate(names))
    planes = tuple(_plane(posterior, i, j, names) for i, j in pairs)
    return DensityFindings(released, names, tuple(answers), curves, planes)


def _column_answers(posterior: Posterior, j: int, name: str) -> list[Answer]:
    """Mean, standard deviation and quantiles of one column."""
    quantiles = posterior.quantile([q for q, _ in QUANTILES], j)
    found = [Answer(name, "mean", posterior.mean(j)), Answer(name, "standard deviation", _root(posterior.variance(j)))]
    return [*found, *(Answer(name, words, quantiles[k]) for k, (_, words) in enumerate(QUANTILES))]


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
    return DensityCurve(name, (low, high), _without(band, margin.atoms), margin.atoms, empty)


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
        if float(band.high.min()) <= LOW_BAND * float(band.value.max()):
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
    return f"The shape of {few_listed(findings.columns)}"


def density_call(findings: DensityFindings) -> str:
    """Return the Python call that makes such a release."""
    density, guarantee = findings.density, findings.density.guarantee
    bounds = dict(zip(findings.columns, ((low, high) for low, high in findings.bounds), strict=True))
    steps = [step or None for step in getattr(density.spec, "steps", ())]
    rounded = f", steps={steps!r}" if any(steps) else ""
    budget = f"epsilon={guarantee.epsilon:.6g}" + (f", delta={guarantee.delta:g}" if guarantee.delta else "")
    if density.leaves is not None:
        return f"fogline.release(X, bounds={bounds!r}{rounded}, {budget})"
    return f"DensitySketch({list(bounds.values())!r}{rounded}).update(X).release({budget})"


def density_summary(findings: DensityFindings) -> Summary:
    """Return the table of a density: every number with its error, its interval and the parts of its error."""
    density = findings.density
    rows, last = [], ""
    for answer in findings.answers:
        rows.append(("" if answer.column == last else answer.column, answer.quantity, *answer.cells))
        last = answer.column
    return Summary(
        f"Density of {few_listed(findings.columns)}",
        (
            count_fact(density.count, density.count_sd),
            budget_fact(density.guarantee),
            column_facts(findings.columns, findings.bounds_words),
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
            told.append(f"{words}% of the population is at {curve.name} = {significant(atom.value, 4)} alone.")
        for low, high, inside in curve.empty:
            most = significant(100 * float(inside.high), 2)
            where = f"{curve.name} from {tick_label(low)} to {tick_label(high)}"
            told.append(f"Hardly anyone has {where}: at most {most}%.")
    return told


def density_frame(findings: DensityFindings) -> dict[str, list[Any]]:
    """Return the answers as columns of a frame; the count comes first."""
    density = findings.density
    count = Estimate(
        density.count,
        density.count_sd,
        density.count - 1.96 * density.count_sd,
        density.count + 1.96 * density.count_sd,
        0.95,
        "records",
        density.count_sd,
        0.0,
        0.0,
    )
    answers = [Answer("", "count", count), *findings.answers]
    shares = [(curve.name, atom) for curve in findings.curves for atom in curve.atoms]
    answers += [Answer(name, f"share at {atom.value:.10g}", atom.share) for name, atom in shares]
    frame: dict[str, list[Any]] = {
        "column": [answer.column for answer in answers],
        "quantity": [answer.quantity for answer in answers],
    }
    for part in ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing"):
        frame[part] = [float(getattr(answer.estimate, part)) for answer in answers]
    return frame


def density_document(findings: DensityFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    density = findings.density
    return {
        "format": "fogline-density-summary-1",
        "command": command or density_call(findings),
        "columns": list(findings.columns),
        "bounds": [list(pair) for pair in findings.bounds],
        "count": {"value": density.count, "standard_error": density.count_sd},
        "answers": [
            {"column": answer.column, "quantity": answer.quantity, **_plain(answer.estimate)}
            for answer in findings.answers
        ],
        "curves": [_curve_document(curve) for curve in findings.curves],
        "message": findings.estimator.message_,
        "guarantee": {**density.guarantee.to_dict(), "statement": str(density.guarantee)},
        "versions": versions(),
    }


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
        "atoms": [{"at": atom.value, "share": _plain(atom.share)} for atom in curve.atoms],
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
    counted = f"Records within the bounds, as released: {density.count:.0f} ± {density.count_sd:.0f}."
    return ConsoleTable(
        f"Density of {few_listed(findings.columns)}",
        ("column", "quantity", "value", "95% interval", "privacy", "sampling", "smoothing"),
        tuple(rows),
        left=(0, 1),
        sentences=(*_remarks(findings), *told, counted, str(density.guarantee)),
    )


def density_content(findings: DensityFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    density, d = findings.density, len(findings.columns)
    steps = [tick_label(step) if step else "" for step in getattr(density.spec, "steps", ())]
    return {
        **promise_content(findings.estimator, density.receipt),
        **count_content(density.count, density.count_sd),
        "call": density_call(findings),
        "d": d,
        "columns": findings.columns,
        "names": few_listed(findings.columns),
        "bounds": findings.bounds_words,
        "steps": steps or [""] * d,
        "answers": [_row(answer) for answer in findings.answers],
        "headline": _headline(findings),
        "atoms": [_atom_words(curve.name, atom) for curve in findings.curves for atom in curve.atoms],
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
        told.append(f"{answer.column}: half of the population is below {value} ({low} to {high})")
    return told


def _row(answer: Answer) -> dict[str, Any]:
    value, error, low, high, privacy, sampling, smoothing = answer.cells
    parts = {"privacy": privacy, "sampling": sampling, "smoothing": smoothing}
    return {"column": answer.column, "quantity": answer.quantity, "value": value, "error": error} | {
        "low": low,
        "high": high,
        **parts,
    }


def _atom_words(name: str, atom: Atom) -> dict[str, str]:
    share, error = plus_minus(100 * float(atom.share.value), [100 * float(atom.share.standard_error)])
    return {"column": name, "at": significant(atom.value, 4), "share": share, "error": error}


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
