"""What a page or a JSON document says of a fitted Gaussian mixture.

The page of a Gaussian mixture: pairs of columns with the components' ellipses, and a table of their parameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fogline import units
from fogline._typing import FloatArray
from fogline.report._charts import size_chart, slab_bar
from fogline.report._plots import (
    MOST_COLUMNS,
    Layout,
    badge,
    canvas,
    ellipse_radius,
    free_spot,
    heat,
    in_two_sizes,
    line,
    telling_columns,
)
from fogline.report._svg import HUES, PlotArea, element, error_ellipse, plus_minus, short, significant, tick_label
from fogline.report.frame import (
    ConsoleTable,
    column_names,
    count_content,
    count_words,
    few_listed,
    left_out_words,
    promise_content,
    python_call,
    values_with_errors,
    versions,
)
from fogline.report.summaries import INTERVAL, Summary, budget_fact, count_fact, notes_of, spread_cells

if TYPE_CHECKING:
    from fogline.estimators import PrivateGaussianMixture

__all__ = [
    "MixtureFindings",
    "find_mixture",
    "mixture_content",
    "mixture_document",
    "mixture_frame",
    "mixture_plot",
    "mixture_summary",
    "mixture_table",
    "mixture_title",
]


MOST_DRAWN = 4
"""Most columns whose pairs are drawn."""


@dataclass(frozen=True, eq=False)
class MixtureFindings:
    """What was released.

    Attributes
    ----------
    estimator : PrivateGaussianMixture
        Fitted.
    columns : tuple of str
    drawn : list of int
        Columns whose pairs are drawn: those in which the components differ most.
    """

    kind: ClassVar[str] = "mixture"
    estimator: PrivateGaussianMixture
    columns: tuple[str, ...]
    drawn: list[int]

    @property
    def k(self) -> int:
        """Number of components."""
        return len(self.estimator.weights_)

    @property
    def deviations(self) -> FloatArray:
        """Standard deviation of each component along each column, shape (k, d)."""
        return np.asarray(np.sqrt(np.einsum("kii->ki", self.estimator.covariances_)))

    @property
    def limits(self) -> FloatArray:
        """Range of each column that holds the components, shape (d, 2)."""
        means, reach = self.estimator.means_, 3.2 * self.deviations
        return np.stack([(means - reach).min(axis=0), (means + reach).max(axis=0)], axis=1)

    @property
    def size_errors(self) -> FloatArray:
        """Standard error of the number of records of each component."""
        return np.sqrt(self.estimator.count_standard_error_**2 + np.maximum(self.estimator.counts_, 0.0))


def find_mixture(estimator: PrivateGaussianMixture, columns: Sequence[str] | None = None) -> MixtureFindings:
    """Read what a page shows from a fitted mixture; costs no privacy."""
    names = column_names(estimator, columns)
    everywhere = MixtureFindings(estimator, names, [])
    return MixtureFindings(estimator, names, telling_columns(estimator.means_, everywhere.limits, MOST_DRAWN))


def mixture_document(findings: MixtureFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    estimator = findings.estimator
    return {
        "format": "fogline-mixture-1",
        "command": command or python_call(estimator),
        "columns": list(findings.columns),
        "method": estimator.method,
        "components": [_component(findings, k) for k in range(findings.k)],
        "criteria": {str(k): value for k, value in estimator.criteria_.items()},
        "composition": estimator.composition_,
        "message": estimator.message_,
        "guarantee": {**estimator.guarantee_.to_dict(), "statement": str(estimator.guarantee_)},
        "versions": versions(),
    }


def _component(findings: MixtureFindings, k: int) -> dict[str, Any]:
    estimator = findings.estimator
    return {
        "weight": float(estimator.weights_[k]),
        "count": float(estimator.counts_[k]),
        "count_standard_error": float(findings.size_errors[k]),
        "mean": estimator.means_[k].tolist(),
        "standard_errors": estimator.standard_errors_[k].tolist(),
        "covariance": estimator.covariances_[k].tolist(),
    }


HELD = (0.5, 0.95)
"""Shares of a component that its ellipses hold."""

POINTS = 90
"""Points per axis of a picture."""

BOUGHT = {
    "scale": "number of records, their mean and their spread",
    "moments": "their covariance, and with it the directions to look in",
    "density": "the density there, which the first mixture is matched to",
    "steps": "better weights, means and shapes, step by step",
}
"""What each part of the budget is spent on."""


def mixture_content(findings: MixtureFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    estimator = findings.estimator
    shown = telling_columns(estimator.means_, findings.limits, MOST_COLUMNS)
    slabs = [
        (f"{k + 1} · {weight:.0%}", float(weight), HUES[k % len(HUES)]) for k, weight in enumerate(estimator.weights_)
    ]
    total = float(estimator.counts_.sum())
    center = np.zeros(len(findings.columns)) if estimator.center is None else np.asarray(estimator.center, float)
    return {
        **promise_content(estimator, estimator.receipt_),
        **count_content(total, float(estimator.count_standard_error_) * np.sqrt(findings.k)),
        "k": findings.k,
        "verdict": estimator.verdict_ is not None,
        "asked": estimator.n_components,
        "method": estimator.method,
        "columns": [findings.columns[j] for j in shown],
        "left_out": len(findings.columns) - len(shown),
        "undrawn": len(findings.columns) - len(findings.drawn),
        "rows": [_row(findings, k, shown) for k in range(findings.k)],
        "criteria": [(k, significant(value, 5)) for k, value in sorted(estimator.criteria_.items())],
        "radius": "" if estimator.radius is None else tick_label(float(estimator.radius)),
        "bounds": _bounds(estimator, findings.columns),
        "center": ", ".join(tick_label(float(value)) for value in center[:MOST_COLUMNS]),
        "budget": _budget(estimator),
        "figures": _figures(findings),
        "flat": len(findings.drawn) == 1,
        "chart": size_chart(estimator.counts_, findings.size_errors),
        "bar": slab_bar(slabs, label="Weight of each component"),
    }


def _bounds(estimator: PrivateGaussianMixture, columns: tuple[str, ...]) -> str:
    """Public ranges of the columns, of the parameters or of the density that was read."""
    known = estimator.bounds
    if known is None and estimator.density_ is not None and estimator.components_ is None:
        known = estimator.density_.spec.bounds
    if known is None:
        return ""
    box = units.resolve_bounds(known, getattr(estimator, "_columns", None), width=len(columns))
    return ", ".join(f"{tick_label(float(low))} to {tick_label(float(high))}" for low, high in box[:MOST_COLUMNS])


def _budget(estimator: PrivateGaussianMixture) -> list[tuple[str, str, str]]:
    """Say what each part of the budget bought, where the method divides it so."""
    if estimator.method != "sketch" or estimator.components_ is None:  # none of the parts where a density was read
        return []
    shares = getattr(estimator, "shares_", None)
    if not shares:  # an older pickle does not say
        from fogline.algorithms.stage_shares import MIXTURE_SHARES

        shares = MIXTURE_SHARES if estimator.shares is None else estimator.shares
    return [(name, BOUGHT[name], f"{100 * float(Fraction(share)):.3g}%") for name, share in shares.items()]


def _row(findings: MixtureFindings, k: int, shown: list[int]) -> dict[str, Any]:
    estimator = findings.estimator
    where = zip(estimator.means_[k, shown], estimator.standard_errors_[k, shown], strict=True)
    size, error = plus_minus(float(estimator.counts_[k]), [float(findings.size_errors[k])])
    return {
        "number": k + 1,
        "hue": HUES[k % len(HUES)],
        "where": [plus_minus(float(value), [float(error)]) for value, error in where],
        "spread": [significant(float(value), 2) for value in findings.deviations[k, shown]],
        "size": size,
        "size_error": error,
        "share": f"{100 * float(estimator.weights_[k]):.1f}",
    }


def _figures(findings: MixtureFindings) -> list[str]:
    drawn = findings.drawn
    if len(drawn) == 1:
        return [_curve(findings, drawn[0])]
    return [_pair(findings, i, j, small=len(drawn) > 2) for i, j in itertools.combinations(drawn, 2)]


def _marginal(findings: MixtureFindings, axes: list[int], points: FloatArray) -> FloatArray:
    """Density of each component, times its weight, in some of the columns, shape (k, points)."""
    estimator = findings.estimator
    values = []
    for weight, mean, covariance in zip(estimator.weights_, estimator.means_, estimator.covariances_, strict=True):
        part = covariance[np.ix_(axes, axes)]
        off = points - mean[axes]
        squared = np.einsum("pi,pi->p", off, np.linalg.solve(part, off.T).T)
        values.append(weight * np.exp(-0.5 * squared) / np.sqrt(np.linalg.det(2 * np.pi * part)))
    return np.array(values)


WIDE_CURVE = Layout(700, 430, left=70, top=10, right=20, bottom=60)
NARROW_CURVE = Layout(360, 300, left=56, top=10, right=12, bottom=50, ticks=4, narrow=True)
WIDE_MAP = Layout(700, 540, left=70, top=10, right=20, bottom=60, ticks=7)
NARROW_MAP = Layout(360, 350, left=56, top=10, right=12, bottom=50, ticks=4, narrow=True)
SMALL_MAP = Layout(356, 318, left=56, top=8, right=14, bottom=48, ticks=5)


def _curve(findings: MixtureFindings, column: int) -> str:
    """Draw the density of one column: its components and their sum."""
    low, high = (float(end) for end in findings.limits[column])
    x = np.linspace(low, high, 4 * POINTS)
    parts = _marginal(findings, [column], x[:, None])
    top = float(parts.sum(axis=0).max()) * 1.08

    def draw(layout: Layout) -> str:
        frame = layout.area((low, high), (0.0, top))
        curves = [
            element("path", d=line(frame, x, y), stroke=HUES[k % len(HUES)], class_="law") for k, y in enumerate(parts)
        ]
        return canvas(
            layout.width,
            layout.height,
            f"Density of {short(findings.columns[column])}: components and their sum",
            frame.border("paper"),
            element("path", d=line(frame, x, parts.sum(axis=0)), class_="curve"),
            *curves,
            frame.border(),
            frame.axes((short(findings.columns[column], 26), "density"), wanted=layout.ticks),
            class_=layout.class_,
        )

    return in_two_sizes(draw, WIDE_CURVE, NARROW_CURVE)


def _pair(findings: MixtureFindings, i: int, j: int, *, small: bool) -> str:
    """Draw the mixture in two columns, any others summed over, with the components' ellipses."""
    limits = [(float(low), float(high)) for low, high in findings.limits[[i, j]]]
    axes = tuple(np.linspace(*end, POINTS) for end in limits)
    flat = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = _marginal(findings, [i, j], flat).sum(axis=0).reshape(POINTS, POINTS)
    names = (findings.columns[i], findings.columns[j])

    def draw(layout: Layout) -> str:
        frame = layout.area(limits[0], limits[1])
        most = 42 if layout is WIDE_MAP else 26
        return canvas(
            layout.width,
            layout.height,
            f"Map of the mixture in {short(names[0])} and {short(names[1])}",
            frame.border("paper"),
            heat(frame, (axes[0], axes[1]), values, 0.02 * float(values.max())),
            _ellipses(findings, frame, i, j),
            frame.border(),
            frame.axes((short(names[0], most), short(names[1], most)), wanted=layout.ticks),
            class_=layout.class_,
        )

    return draw(SMALL_MAP) if small else in_two_sizes(draw, WIDE_MAP, NARROW_MAP)


def _ellipses(findings: MixtureFindings, frame: PlotArea, i: int, j: int) -> str:
    """Ellipses that hold half and most of each component, with its number."""
    estimator = findings.estimator
    places = frame.at(estimator.means_[:, [i, j]])
    taken: list[tuple[float, ...]] = [tuple(place) for place in places.tolist()]
    parts = []
    for k in range(findings.k):
        covariance = estimator.covariances_[k][np.ix_([i, j], [i, j])]
        for share in HELD:
            for class_ in ("ellipse-halo", "ellipse"):
                radius = ellipse_radius(share)
                parts.append(error_ellipse(frame, estimator.means_[k, [i, j]], covariance, radius, class_))
        x, y = (float(v) for v in places[k])
        parts.append(element("circle", cx=x, cy=y, r=2.6, class_="dot"))
        spot = free_spot((x, y), 20.0, taken, frame)
        taken.append(spot)
        parts.append(badge(k, spot, hue=HUES[k % len(HUES)]))
    return "".join(parts)


def mixture_title(findings: MixtureFindings) -> str:
    """Return the title of a page that was given none."""
    return f"A mixture for {few_listed(findings.columns)}"


def mixture_table(findings: MixtureFindings) -> ConsoleTable:
    """Weights, means and spreads with their errors, the guarantee, and what would help."""
    estimator, rows = findings.estimator, []
    shown = telling_columns(estimator.means_, findings.limits, MOST_COLUMNS)
    for k in range(findings.k):
        where = values_with_errors(estimator.means_[k, shown], estimator.standard_errors_[k, shown])
        spreads = [significant(float(spread), 2) for spread in findings.deviations[k, shown]]
        cells = [f"{mean}, {spread}" for mean, spread in zip(where, spreads, strict=True)]
        size = f"{estimator.counts_[k]:.0f} ± {findings.size_errors[k]:.0f}"
        rows.append((str(k + 1), *cells, size, f"{100 * estimator.weights_[k]:.1f}%"))
    return ConsoleTable(
        "Components: mean ± its error, spread",
        ("", *(findings.columns[j] for j in shown), "records", "weight"),
        tuple(rows),
        left_out=left_out_words(findings.columns, shown),
        sentences=count_words(estimator, counted=False),
    )


def mixture_summary(findings: MixtureFindings) -> Summary:
    """Return the table of a mixture: each mean with its error, the spread around it, and the weight."""
    estimator, rows = findings.estimator, []
    shown = telling_columns(estimator.means_, findings.limits, MOST_COLUMNS)
    for k in range(findings.k):
        for j in shown:
            cells = spread_cells(float(estimator.means_[k, j]), float(estimator.standard_errors_[k, j]))
            first = j == shown[0]
            spread = significant(float(findings.deviations[k, j]), 3)
            weight = f"{100 * estimator.weights_[k]:.1f}%" if first else ""
            rows.append((str(k + 1) if first else "", findings.columns[j], *cells, spread, weight))
    left_out = left_out_words(findings.columns, shown).replace("the document of --json", "to_frame()")
    return Summary(
        mixture_title(findings),
        (
            count_fact(float(estimator.counts_.sum()), float(estimator.count_standard_error_) * np.sqrt(findings.k)),
            budget_fact(estimator.guarantee_),
            ("Columns", ", ".join(findings.columns)),
        ),
        ("component", "column", "mean", *INTERVAL, "spread", "weight"),
        tuple(rows),
        notes_of(estimator.message_, estimator.guarantee_, left_out),
        left=2,
    )


def mixture_frame(findings: MixtureFindings) -> dict[str, list[Any]]:
    """Return the components as columns of a frame, one row per component."""
    estimator = findings.estimator
    frame: dict[str, list[Any]] = {"component": list(range(1, findings.k + 1)), "weight": estimator.weights_.tolist()}
    for j, name in enumerate(findings.columns):
        frame[name] = estimator.means_[:, j].tolist()
        frame[f"{name}_standard_error"] = estimator.standard_errors_[:, j].tolist()
        frame[f"{name}_spread"] = findings.deviations[:, j].tolist()
    return {**frame, "count": estimator.counts_.tolist(), "count_standard_error": findings.size_errors.tolist()}


def mixture_plot(findings: MixtureFindings, ax: Any = None) -> Any:
    """Draw the mixture with matplotlib: its curve, or a map of the two columns in which components differ most."""
    from fogline.report._axes import axes_for, mark_places

    (one,) = axes_for(ax)
    columns = findings.drawn[:2]
    limits = [(float(low), float(high)) for low, high in findings.limits[columns]]
    names = [findings.columns[j] for j in columns]
    if len(columns) == 1:
        x = np.linspace(*limits[0], 4 * POINTS)
        parts = _marginal(findings, columns, x[:, None])
        one.plot(x, parts.sum(axis=0), color="black", label="mixture")
        for k, part in enumerate(parts):
            one.plot(x, part, color=f"C{1 + k % 9}", label=f"component {k + 1}")
        one.legend()
    else:
        places = tuple(np.linspace(*end, POINTS) for end in limits)
        flat = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, 2)
        values = _marginal(findings, columns, flat).sum(axis=0).reshape(POINTS, POINTS)
        one.contourf(*places, values.T, levels=10, cmap="Blues")
        covariances = findings.estimator.covariances_[:, columns][:, :, columns]
        mark_places(one, findings.estimator.means_[:, columns], covariances, ellipse_radius(HELD[1]))
        one.set_ylim(*limits[1])
    one.set_xlim(*limits[0])
    one.set_xlabel(names[0])
    one.set_ylabel(names[1] if len(names) > 1 else "density")
    return one
