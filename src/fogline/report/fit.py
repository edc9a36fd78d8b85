"""What a page or a JSON document says of a fitted family: parameters with errors, curves, what is explained.

Everything is read from released numbers; limits of a picture follow the fitted law, within the public bounds.

The page of a fitted family.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fogline._typing import FloatArray
from fogline.accounting import HellingerBudget
from fogline.families import Family, MultivariateNormal
from fogline.report._plots import INK, Layout, canvas, ellipse_radius, heat, in_two_sizes, line, line_within
from fogline.report._svg import HUES, PlotArea, element, error_ellipse, path, plus_minus, short, significant, tick_label
from fogline.report.frame import (
    ConsoleTable,
    column_names,
    count_content,
    count_words,
    listed,
    promise_content,
    python_call,
    versions,
)
from fogline.report.summaries import Summary, estimate_cells, notes_of, released_facts

if TYPE_CHECKING:
    from fogline.density.hellinger.inference import Explained
    from fogline.estimators import PrivateHellinger

__all__ = [
    "FitCurve",
    "FitFindings",
    "ParameterRow",
    "find_fit",
    "fit_content",
    "fit_curve",
    "fit_document",
    "fit_frame",
    "fit_map",
    "fit_plot",
    "fit_summary",
    "fit_table",
    "fit_title",
    "privacy_words",
]


NORMAL_95 = 1.959964
"""Half width of a 95% interval in standard errors."""

POINTS = 500
"""Points of a curve."""

TAIL = 0.002
"""A picture shows the fitted law between its quantiles of this level, and some more on either side."""


@dataclass(frozen=True)
class ParameterRow:
    """One parameter: its estimate, the parts of its error, its interval."""

    name: str
    estimate: float
    standard_error: float
    privacy_error: float
    sampling_error: float
    interval: tuple[float, float]

    @property
    def words(self) -> tuple[str, ...]:
        """Estimate, standard error, privacy part and sampling part for people."""
        return plus_minus(self.estimate, [self.standard_error, self.privacy_error, self.sampling_error])

    @property
    def interval_words(self) -> tuple[str, str]:
        """Both ends of the interval for people."""
        low, high = (plus_minus(end, [self.standard_error])[0] for end in self.interval)
        return low, high


@dataclass(frozen=True, eq=False)
class FitCurve:
    """The fit along one column.

    Attributes
    ----------
    axis : array of shape (n,)
    released, sd : arrays of shape (n,), or None
        The released density and its standard error, noise and sampling together; a descent releases none.
    smoothed : array of shape (n,), or None
        The explained share of the family, as smooth as the release.
    plain : array of shape (n,)
        The same, not smoothed.
    """

    axis: FloatArray
    released: FloatArray | None
    sd: FloatArray | None
    smoothed: FloatArray | None
    plain: FloatArray


@dataclass(frozen=True, eq=False)
class FitFindings:
    """A fit, read for people.

    Attributes
    ----------
    estimator : PrivateHellinger
        Fitted.
    columns : tuple of str
    family : Family
    bounds, parameter_bounds : arrays of shape (d, 2) and (m, 2)
        Public ranges of the data and of the parameters.
    rows : tuple of ParameterRow
    curve : FitCurve or None
        Where there is one column.
    """

    kind: ClassVar[str] = "fit"
    estimator: PrivateHellinger
    columns: tuple[str, ...]
    family: Family
    bounds: FloatArray
    parameter_bounds: FloatArray
    rows: tuple[ParameterRow, ...]
    curve: FitCurve | None

    @property
    def theta(self) -> FloatArray:
        """The estimates, in the order of the family's parameters."""
        return np.array([row.estimate for row in self.rows])

    @property
    def title(self) -> str:
        """What was fitted to what."""
        article = "an" if self.family.name[:1] in "aeiou" else "a"
        return f"{', '.join(self.columns)}: {article} {self.family.name} fit"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the parameters; where there are several columns, with those that each is about."""
        return tuple(_label(row.name, self.columns) for row in self.rows)


def _label(name: str, columns: tuple[str, ...]) -> str:
    """Say which columns a parameter is about: mu_1 is about the first, corr_12 about the first and the second.

    Examples
    --------
    >>> _label("corr_12", ("height", "weight")), _label("mu", ("height",))
    ('corr_12 (height, weight)', 'mu')
    """
    numbered = {str(j + 1): column for j, column in enumerate(columns)}
    digits = name.rpartition("_")[2]
    if len(columns) == 1 or not digits or not set(digits) <= set(numbered):
        return name
    return f"{name} ({', '.join(numbered[digit] for digit in digits)})"


def find_fit(estimator: PrivateHellinger, columns: Sequence[str] | None = None) -> FitFindings:
    """Read what a page shows from a fitted family; costs no privacy."""
    family, box, bounds = estimator._fitted_family()
    privacy, sampling = (
        np.sqrt(np.diag(part)).tolist() for part in (estimator.privacy_covariance_, estimator.sampling_covariance_)
    )
    rows = tuple(
        ParameterRow(
            name=name,
            estimate=value,
            standard_error=estimator.standard_errors_[name],
            privacy_error=privacy[j],
            sampling_error=sampling[j],
            interval=estimator.confidence_intervals_[name],
        )
        for j, (name, value) in enumerate(estimator.params_.items())
    )
    curve = _curve(estimator, family, bounds) if family.dimension == 1 else None
    return FitFindings(estimator, column_names(estimator, columns), family, bounds, box, rows, curve)


def _curve(estimator: PrivateHellinger, family: Family, bounds: FloatArray) -> FitCurve:
    theta, density, bandwidth = np.array(list(estimator.params_.values())), estimator.density_, estimator.bandwidth_
    axis = np.linspace(*_limits(estimator, family, theta, bounds), POINTS)
    explained = estimator.explained_
    plain = family.pdf(theta, axis)
    if density is None or explained is None:
        return FitCurve(axis, None, None, None, plain)
    reading = getattr(estimator, "reading_", None)
    if reading is not None:  # of a release: its column's curve with everything that its error holds, not a kernel's
        band = density.posterior.band(reading.columns[0])
        released, low, high = (
            np.interp(axis, band.x, part) for part in (band.value, band.pointwise_low, band.pointwise_high)
        )
        plain = explained.share * plain
        return FitCurve(axis, released, (high - low) / (2 * NORMAL_95), plain, plain)
    released = density.pdf(axis[:, None], bandwidth)
    # Integral of the squared kernel: sampling variance is this times density over count.
    kernel = 1.0 / (2.0 * math.sqrt(math.pi) * float(bandwidth[0]))
    sampling = kernel * np.maximum(released, 0.0) / density.count
    return FitCurve(
        axis=axis,
        released=released,
        sd=np.sqrt(density.noise_sd(bandwidth) ** 2 + sampling),
        smoothed=explained.share * family.convolved(theta, axis, bandwidth),
        plain=explained.share * plain,
    )


def _limits(estimator: PrivateHellinger, family: Family, theta: FloatArray, bounds: FloatArray) -> tuple[float, float]:
    """Where the fitted law and the lumps beside it lie, within the bounds."""
    low, high = (float(end) for end in bounds[0])
    if not hasattr(family, "quantile"):
        return low, high
    ends = [float(end) for end in family.quantile(theta, [TAIL, 1.0 - TAIL])]
    lumps = () if estimator.explained_ is None else estimator.explained_.lumps
    # What the family does not explain must be in the picture too.
    ends += [end for lump in lumps for end in (lump.low[0], lump.high[0])]
    margin = 0.12 * (max(ends) - min(ends)) + 2.0 * float(estimator.bandwidth_[0])
    least, greatest = max(low, min(ends) - margin), min(high, max(ends) + margin)
    return (least, greatest) if least < greatest else (low, high)


def privacy_words(estimator: PrivateHellinger) -> list[str]:
    """Return what a budget in another currency than epsilon and delta means, in plain words.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import PrivateHellinger
    >>> fit = PrivateHellinger(family="exponential", parameter_bounds={"scale": (1, 9)}, hdp=0.2).fit(np.ones((50, 1)))
    >>> "at most 0.718" in privacy_words(fit)[0], "epsilon = 4.287" in privacy_words(fit)[0]
    (True, True)
    """
    guarantee = estimator.guarantee_
    meaning = f"epsilon = {guarantee.epsilon:.4g} at delta = {guarantee.delta:g}"
    if estimator.hdp is not None:
        budget = HellingerBudget(estimator.hdp)
        # Rounded up: a chance that is stated must not be exceeded.
        chance = math.ceil(500 * (1 + budget.total_variation) + 1e-9) / 1000
        return [
            f"The budget was given as {estimator.hdp:g}-HDP: the squared Hellinger distance between what is published "
            f"and what would be, with one neighbour's data instead, is at most {estimator.hdp:g}. Whoever must guess "
            f"which of the two it was, each as likely, is right with a chance of at most {chance:g}. As the noise is "
            f"Gaussian it means more: {meaning}, which is the guarantee stated above."
        ]
    if estimator.pdp is not None:
        power, level = estimator.pdp
        return [
            f"The budget was given as ({power:g}, {level:g})-PDP, a bound of {level:g} on the power divergence of "
            f"order {power:g}. With Gaussian noise it means {meaning}, which is the guarantee stated above."
        ]
    if estimator.rho is not None:
        return [f"The budget was given as {estimator.rho:g}-zCDP, which means {meaning}, and less at a greater delta."]
    return []


def fit_document(findings: FitFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    estimator, density = findings.estimator, findings.estimator.density_
    pairs = zip(findings.rows, findings.parameter_bounds.tolist(), strict=True)
    return {
        "format": "fogline-fit-1",
        "command": command or python_call(estimator),
        "columns": list(findings.columns),
        "bounds": findings.bounds.tolist(),
        "family": findings.family.name,
        "method": estimator.method,
        "confidence": estimator.confidence,
        "parameters": [
            {
                "name": row.name,
                "estimate": row.estimate,
                "standard_error": row.standard_error,
                "privacy_error": row.privacy_error,
                "sampling_error": row.sampling_error,
                "interval": list(row.interval),
                "bounds": pair,
            }
            for row, pair in pairs
        ],
        "covariance": estimator.covariance_.tolist(),
        "explained": _explained_document(estimator.explained_),
        "path": None if estimator.path_ is None else estimator.path_.tolist(),
        "message": estimator.message_,
        "count": None if density is None else {"value": density.count, "standard_error": density.count_sd},
        "guarantee": {**estimator.guarantee_.to_dict(), "statement": str(estimator.guarantee_)},
        "currency": privacy_words(estimator),
        "bandwidth": estimator.bandwidth_.tolist(),
        "versions": versions(),
    }


def _explained_document(explained: Explained | None) -> dict[str, Any] | None:
    if explained is None:
        return None
    lumps = [{"low": list(lump.low), "high": list(lump.high), "share": lump.share} for lump in explained.lumps]
    return {"share": explained.share, "standard_error": explained.standard_error, "lumps": lumps}


BLUE, ORANGE = HUES[0], HUES[1]
HELD = (0.5, 0.95)
"""Parts of the fitted law that the ellipses of a map hold."""

ROOM = 1.6
"""A law that is infinite somewhere is drawn up to this many times the rest of the picture."""


def fit_content(findings: FitFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    estimator, density = findings.estimator, findings.estimator.density_
    counted = {} if density is None else count_content(density.count, density.count_sd)
    return {
        **promise_content(estimator, estimator.receipt_),
        **counted,
        "currency": privacy_words(estimator),
        "columns": findings.columns,
        "family": findings.family.name,
        "method": estimator.method,
        "released": density is not None,
        "path_length": 0 if estimator.path_ is None else len(estimator.path_) - 1,
        "confidence": f"{100 * estimator.confidence:g}%",
        "rows": [
            {"name": label, "words": row.words, "interval": row.interval_words}
            for label, row in zip(findings.labels, findings.rows, strict=True)
        ],
        "explained": _explained(findings),
        "ellipses": isinstance(findings.family, MultivariateNormal),
        "ranges": [
            (name, tick_label(low), tick_label(high))
            for name, (low, high) in (
                *zip(findings.columns, _rounded(findings.bounds), strict=True),
                *zip(findings.family.parameters, findings.parameter_bounds.tolist(), strict=True),
            )
        ],
        "bandwidth": listed(
            [f"{significant(float(h))} ({n})" for h, n in zip(estimator.bandwidth_, findings.columns, strict=True)]
        ),
        "figures": _figures(findings),
    }


def _rounded(bounds: FloatArray) -> list[tuple[float, float]]:
    """Bounds with four digits: by default they are quantiles, and no one wants all of their digits."""
    return [(float(f"{low:.4g}"), float(f"{high:.4g}")) for low, high in bounds.tolist()]


def _explained(findings: FitFindings) -> dict[str, Any] | None:
    explained = findings.estimator.explained_
    if explained is None:
        return None
    error = [max(100 * explained.standard_error, 1e-9)]
    lumps = []
    for lump in explained.lumps:
        sides = [
            f"{name} from {significant(low)} to {significant(high)}"
            for name, low, high in zip(findings.columns, lump.low, lump.high, strict=True)
        ]
        lumps.append({"where": " and ".join(sides), "share": f"{100 * lump.share:.0f}%"})
    return {"share": f"{100 * explained.share:.0f}", "error": plus_minus(0.0, error)[1], "lumps": lumps}


def _figures(findings: FitFindings) -> list[str]:
    if findings.curve is not None:
        return [fit_curve(findings, findings.curve)]
    return [fit_map(findings, i, j) for i, j in _pairs(findings)]


def _pairs(findings: FitFindings) -> tuple[tuple[int, int], ...]:
    return ((0, 1),) if len(findings.columns) == 2 else ((0, 1), (0, 2), (1, 2))


# -- one column -------------------------------------------------------------------------------------------


WIDE_CURVE = Layout(880, 420, left=78, top=34, right=22, bottom=56)
NARROW_CURVE = Layout(360, 360, left=56, top=66, right=12, bottom=50, ticks=4, narrow=True)
WIDE_MAP = Layout(700, 540, left=70, top=10, right=20, bottom=60, ticks=7)
NARROW_MAP = Layout(360, 350, left=56, top=10, right=12, bottom=50, ticks=4, narrow=True)
SMALL_MAP = Layout(356, 318, left=56, top=8, right=14, bottom=48, ticks=5)


def fit_curve(findings: FitFindings, curve: FitCurve) -> str:
    """Draw the released density with two standard errors, and the family over it, smoothed and as it is."""
    top, bottom = float(curve.plain[np.isfinite(curve.plain)].max(initial=0.0)), 0.0
    if curve.released is not None and curve.sd is not None and curve.smoothed is not None:
        seen = float(max((curve.released + 2 * curve.sd).max(), curve.smoothed.max()))
        top, bottom = max(seen, min(top, ROOM * seen)), min(0.0, float((curve.released - 2 * curve.sd).min()))
    limits = (1.05 * bottom, 1.08 * max(top, 1e-300))
    return in_two_sizes(lambda layout: _fit_drawing(findings, curve, limits, layout), WIDE_CURVE, NARROW_CURVE)


def _fit_drawing(findings: FitFindings, curve: FitCurve, limits: tuple[float, float], layout: Layout) -> str:
    x, name = curve.axis, findings.columns[0]
    parts: list[str] = []
    legend: list[tuple[str, str, str]] = []
    frame = layout.area((float(x[0]), float(x[-1])), limits)
    if curve.released is not None and curve.sd is not None and curve.smoothed is not None:
        upper, lower = curve.released + 2 * curve.sd, curve.released - 2 * curve.sd
        edge = np.concatenate([np.stack([x, upper], axis=1), np.stack([x, lower], axis=1)[::-1]])
        parts += [
            _lumps(findings, frame),
            element("path", d=path([frame.at(edge)]), fill=INK, class_="noise"),
            element("path", d=line(frame, x, curve.released), class_="curve"),
            element("path", d=line(frame, x, curve.smoothed), stroke=ORANGE, class_="law"),
        ]
        legend = [("curve", INK, "released density"), ("law", ORANGE, "family, as smooth")]
    parts.append(element("path", d=line_within(frame, x, curve.plain), stroke=BLUE, class_="law-plain"))
    legend.append(("law-plain", BLUE, "family, as it is"))
    return canvas(
        layout.width,
        layout.height,
        f"Curve of the {findings.family.name} family fitted to {short(name)}",
        frame.border("paper"),
        *parts,
        frame.border(),
        frame.axes((short(name, 26 if layout.narrow else 42), "density"), wanted=layout.ticks),
        _legend(legend, layout),
        class_=layout.class_,
    )


def _lumps(findings: FitFindings, frame: PlotArea) -> str:
    """Shade where more records lie than the family explains."""
    explained = findings.estimator.explained_
    parts = []
    for lump in () if explained is None else explained.lumps:
        ends = np.clip(np.array([lump.low[0], lump.high[0]]), *frame.x)
        left, right = frame.at(np.stack([ends, np.full(2, frame.y[0])], axis=1))[:, 0].tolist()
        parts.append(
            element("rect", x=left, y=frame.top, width=right - left, height=frame.height, fill=HUES[4], class_="lump")
        )
        words = f"{100 * lump.share:.0f}% in excess"
        parts.append(element("text", text=words, x=0.5 * (left + right), y=frame.top + 18, class_="tick-label middle"))
    return "".join(parts)


def _legend(entries: list[tuple[str, str, str]], layout: Layout) -> str:
    """Names of the lines above the plot: side by side, or one below the other where it is narrow."""
    parts, x, y = [], layout.left, 16.0
    for class_, hue, words in entries:
        parts.append(element("path", d=f"M{x:.0f} {y:.0f}H{x + 30:.0f}", stroke=hue, class_=class_))
        parts.append(element("text", text=words, x=x + 38, y=y + 5, class_="row-label"))
        if layout.narrow:
            y += 19.0
        else:
            x += 62.0 + 7.4 * len(words)
    return "".join(parts)


# -- two and three columns ----------------------------------------------------------------------------------


def fit_map(findings: FitFindings, i: int, j: int) -> str:
    """Draw the released density of two columns, any other summed over, with ellipses of the fitted normal law."""
    axes, values = _map_values(findings, i, j)
    names = (findings.columns[i], findings.columns[j])

    def draw(layout: Layout) -> str:
        frame = layout.area(*((float(low), float(high)) for low, high in findings.bounds[[i, j]]))
        most = 42 if layout is WIDE_MAP else 26
        return canvas(
            layout.width,
            layout.height,
            f"Map of the released density of {short(names[0])} and {short(names[1])} with the fitted law",
            frame.border("paper"),
            heat(frame, axes, values, 0.05 * float(values.max())),
            frame.border(),
            frame.axes((short(names[0], most), short(names[1], most)), wanted=layout.ticks),
            _ellipses(findings, frame, i, j),
            class_=layout.class_,
        )

    return draw(SMALL_MAP) if len(findings.columns) > 2 else in_two_sizes(draw, WIDE_MAP, NARROW_MAP)


def _map_values(findings: FitFindings, i: int, j: int) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    """The released density of two columns, any other summed over."""
    density = findings.estimator.density_
    assert density is not None  # a descent has one column
    grid = density.grid(findings.estimator.bandwidth_)
    others = tuple(set(range(len(findings.columns))) - {i, j})
    spacing = float(np.prod([grid.axes[k][1] - grid.axes[k][0] for k in others]))
    return (grid.axes[i], grid.axes[j]), grid.values.sum(axis=others) * spacing if others else grid.values


def _law(findings: FitFindings, i: int, j: int) -> FloatArray | None:
    """Covariance of two columns under the fitted normal law, if it is one."""
    family = findings.family
    if not isinstance(family, MultivariateNormal):
        return None
    try:
        return np.asarray(family.covariance(findings.theta)[np.ix_([i, j], [i, j])])
    except ValueError:  # estimates of correlations, each within its bounds, may belong to no distribution together
        return None


def _ellipses(findings: FitFindings, frame: PlotArea, i: int, j: int) -> str:
    theta, covariance = findings.theta, _law(findings, i, j)
    if covariance is None:
        return ""
    parts = [
        error_ellipse(frame, theta[[i, j]], covariance, ellipse_radius(part), class_)
        for part in HELD
        for class_ in ("ellipse-halo", "ellipse")
    ]
    x, y = (float(v) for v in frame.at(theta[None, [i, j]])[0])
    return "".join([*parts, element("circle", cx=x, cy=y, r=2.6, class_="dot")])


def fit_title(findings: FitFindings) -> str:
    """Return the title of a page that was given none."""
    return findings.title


def fit_table(findings: FitFindings) -> ConsoleTable:
    """Parameters with their errors and intervals, what is explained, the count and the guarantee."""
    estimator = findings.estimator
    rows = [
        (label, *row.words, " to ".join(row.interval_words))
        for label, row in zip(findings.labels, findings.rows, strict=True)
    ]
    told = "" if estimator.explained_ is None else str(estimator.explained_)
    interval = f"{100 * estimator.confidence:g}% interval"
    return ConsoleTable(
        findings.title,
        ("parameter", "estimate", "standard error", "privacy", "sampling", interval),
        tuple(rows),
        left=(0,),
        remarks=(f"{told[:1].upper()}{told[1:]}.",) if told else (),
        sentences=(*count_words(estimator), *privacy_words(estimator)),
    )


def fit_summary(findings: FitFindings) -> Summary:
    """Return the table of a fit: each parameter with its error and interval, and what is explained."""
    estimator = findings.estimator
    tail = (1 - estimator.confidence) / 2
    rows = [
        (
            label,
            *estimate_cells(row.estimate, row.standard_error, *row.interval, row.privacy_error, row.sampling_error),
        )
        for label, row in zip(findings.labels, findings.rows, strict=True)
    ]
    told = "" if estimator.explained_ is None else str(estimator.explained_)
    bounds = [(tick_label(low), tick_label(high)) for low, high in _rounded(findings.bounds)]
    return Summary(
        findings.title,
        released_facts(estimator, findings.columns, bounds),
        ("parameter", "estimate", "std. error", f"[{tail:.4g}", f"{1 - tail:.4g}]", "privacy", "sampling"),
        tuple(rows),
        notes_of(estimator.message_, estimator.guarantee_, f"{told[:1].upper()}{told[1:]}." if told else ""),
    )


def fit_frame(findings: FitFindings) -> dict[str, list[Any]]:
    """Return the parameters as columns of a frame, one row per parameter."""
    return {
        "parameter": [row.name for row in findings.rows],
        "estimate": [row.estimate for row in findings.rows],
        "standard_error": [row.standard_error for row in findings.rows],
        "privacy_error": [row.privacy_error for row in findings.rows],
        "sampling_error": [row.sampling_error for row in findings.rows],
        "low": [row.interval[0] for row in findings.rows],
        "high": [row.interval[1] for row in findings.rows],
    }


def fit_plot(findings: FitFindings, ax: Any = None) -> Any:
    """Draw the fit over the released density, on matplotlib axes."""
    from fogline.report._axes import axes_for

    curve = findings.curve
    if curve is None:
        return _plot_maps(findings, ax)
    (one,) = axes_for(ax)
    if curve.released is not None and curve.sd is not None and curve.smoothed is not None:
        band = (curve.released - 2 * curve.sd, curve.released + 2 * curve.sd)
        one.fill_between(curve.axis, *band, color="C0", alpha=0.25, linewidth=0)
        one.plot(curve.axis, curve.released, color="C0", label="released density")
        one.plot(curve.axis, curve.smoothed, color="C1", label=f"{findings.family.name} family, as smooth")
    else:
        one.plot(curve.axis, curve.plain, color="C1", label=f"{findings.family.name} family")
    one.set_xlabel(findings.columns[0])
    one.set_ylabel("density")
    one.legend()
    return one


def _plot_maps(findings: FitFindings, ax: Any) -> Any:
    from fogline.report._axes import axes_for, ellipse_points
    from fogline.report._plots import density_levels

    pairs = _pairs(findings)
    axes = axes_for(ax, len(pairs))
    for (i, j), one in zip(pairs, axes, strict=True):
        places, values = _map_values(findings, i, j)
        levels = density_levels(values, 0.05 * float(values.max()))
        if len(levels):
            one.contourf(*places, values.T, levels=[*levels, float(values.max())], cmap="Blues")
        law = _law(findings, i, j)
        for part in HELD if law is not None else ():
            assert law is not None
            one.plot(*ellipse_points(findings.theta[[i, j]], law, ellipse_radius(part)), color="C1")
        one.set_xlim(*findings.bounds[i])
        one.set_ylim(*findings.bounds[j])
        one.set_xlabel(findings.columns[i])
        one.set_ylabel(findings.columns[j])
    return axes[0] if len(axes) == 1 else np.array(axes)
