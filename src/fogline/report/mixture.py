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

from fogline._typing import FloatArray
from fogline.report._plots import (
    MOST_COLUMNS,
    badge,
    canvas,
    ellipse_radius,
    free_spot,
    heat,
    line,
    size_chart,
    slab_bar,
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

if TYPE_CHECKING:
    from fogline.estimators import PrivateGaussianMixture

__all__ = [
    "MixtureFindings",
    "find_mixture",
    "mixture_content",
    "mixture_document",
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
        "radius": tick_label(float(estimator.radius or 0.0)),
        "center": ", ".join(tick_label(float(value)) for value in center[:MOST_COLUMNS]),
        "budget": _budget(estimator),
        "figures": _figures(findings),
        "flat": len(findings.drawn) == 1,
        "chart": size_chart(estimator.counts_, findings.size_errors),
        "bar": slab_bar(slabs, label="Weight of each component"),
    }


def _budget(estimator: PrivateGaussianMixture) -> list[tuple[str, str, str]]:
    """Say what each part of the budget bought, where the method divides it so."""
    if estimator.method != "sketch":
        return []
    from fogline.algorithms.mixture_from_density import MIXTURE_SHARES

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


def _curve(findings: MixtureFindings, column: int) -> str:
    """Draw the density of one column: its components and their sum."""
    low, high = (float(end) for end in findings.limits[column])
    x = np.linspace(low, high, 4 * POINTS)
    parts = _marginal(findings, [column], x[:, None])
    top = float(parts.sum(axis=0).max()) * 1.08
    frame = PlotArea(70, 10, 610, 360, (low, high), (0.0, top))
    curves = [
        element("path", d=line(frame, x, y), stroke=HUES[k % len(HUES)], class_="law") for k, y in enumerate(parts)
    ]
    return canvas(
        700,
        430,
        f"Density of {short(findings.columns[column])}: components and their sum",
        frame.border("paper"),
        element("path", d=line(frame, x, parts.sum(axis=0)), class_="curve"),
        *curves,
        frame.border(),
        frame.axes((findings.columns[column], "density")),
        class_="figure",
    )


def _pair(findings: MixtureFindings, i: int, j: int, *, small: bool) -> str:
    """Draw the mixture in two columns, any others summed over, with the components' ellipses."""
    limits = [(float(low), float(high)) for low, high in findings.limits[[i, j]]]
    frame = PlotArea(56, 8, 286, 262, *limits) if small else PlotArea(70, 10, 610, 470, *limits)
    axes = tuple(np.linspace(*end, POINTS) for end in limits)
    flat = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = _marginal(findings, [i, j], flat).sum(axis=0).reshape(POINTS, POINTS)
    names = (findings.columns[i], findings.columns[j])
    return canvas(
        356 if small else 700,
        318 if small else 540,
        f"Map of the mixture in {short(names[0])} and {short(names[1])}",
        frame.border("paper"),
        heat(frame, (axes[0], axes[1]), values, 0.02 * float(values.max())),
        _ellipses(findings, frame, i, j),
        frame.border(),
        frame.axes((short(names[0], 26), short(names[1], 26)) if small else names, wanted=5 if small else 7),
        class_="figure",
    )


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
