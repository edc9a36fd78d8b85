"""A plan as a table and as a page: what to expect at each epsilon, before anything is spent.

Modes, clusters, branches and densities are planned by different simulations (:mod:`fogline.planning`); here each
becomes an :class:`Outlook`, a table with a few lines over epsilon, which a terminal prints and a page draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fogline._typing import FloatArray
from fogline._validation import check_neighbours
from fogline.accounting.analytic_gaussian import suits
from fogline.accounting.cautions import release_cautions
from fogline.accounting.costs import release_rho
from fogline.accounting.guarantee import Guarantee
from fogline.accounting.risk import BEFORE, percent_up, risk_table
from fogline.planning.clustering import ExpectedClusterError
from fogline.planning.density import ExpectedDensity
from fogline.planning.modes import ExpectedError
from fogline.planning.regression import ExpectedBranches
from fogline.report._plots import Layout, canvas, in_two_sizes
from fogline.report._svg import HUES, PlotArea, element, short, significant, tick_label
from fogline.report.frame import listed, power_of_ten, render_template, versions

__all__ = [
    "Chart",
    "Outlook",
    "Terms",
    "outlook_of",
    "plan_cautions",
    "planned_guarantee",
    "risk_by_epsilon",
    "risk_cells",
    "write_outlook",
]

Planned = ExpectedError | ExpectedClusterError | ExpectedBranches | ExpectedDensity

INK, GREY = "#16232c", "#8a98a1"
WIDE = Layout(430, 330, left=62, top=34, right=14, bottom=50)
NARROW = Layout(360, 300, left=58, top=34, right=12, bottom=50, narrow=True)
MOST_LINES = 6
"""Most lines of a chart; the table has the others."""


@dataclass(frozen=True)
class Terms:
    """What a plan was asked for, beside its result."""

    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    delta: float
    neighbours: str
    command: str


@dataclass(frozen=True, eq=False)
class Chart:
    """Lines over epsilon.

    Attributes
    ----------
    name : str
        What is drawn, with its unit.
    lines : tuple of (str, array)
        Name and value at each epsilon; what is not known is NaN.
    share : bool
        Whether values are chances between 0 and 1, on a plain scale; else the scale is logarithmic.
    names_left : bool
        Whether the names of the lines stand in the upper left.
    """

    name: str
    lines: tuple[tuple[str, FloatArray], ...]
    share: bool = False
    names_left: bool = False


@dataclass(frozen=True, eq=False)
class Outlook:
    """A plan for people: a table, a remark below it, and charts.

    Attributes
    ----------
    title : str
    subject : str
        What is planned.
    n : int
    shape : str
    headings : tuple of str
    rows : tuple of rows of str
    note : str
    epsilons : array
    charts : tuple of Chart
    """

    title: str
    subject: str
    n: int
    shape: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    epsilons: FloatArray
    charts: tuple[Chart, ...]


def planned_guarantee(epsilon: float, terms: Terms, *, pure: bool = False) -> Guarantee:
    """Return what a planned release would promise, where no ledger pays: by Gaussian noise, or by Laplace noise.

    Examples
    --------
    >>> terms = Terms(("x",), ((0.0, 1.0),), 1e-6, "add-remove", "fogline plan")
    >>> round(planned_guarantee(1.0, terms).risk(0.1).content, 3)
    0.148
    """
    is_pure = pure or terms.delta == 0.0
    by_curve = not is_pure and suits(epsilon, terms.delta)
    return Guarantee.certified_release(
        epsilon=epsilon,
        delta=0.0 if is_pure else terms.delta,
        rho=None if is_pure else release_rho(epsilon, terms.delta),
        gaussian=by_curve,
        neighbours=check_neighbours(terms.neighbours),
        mechanism="planned",
        proof="laplace-noise" if is_pure else "gaussian-noise",
    )


def risk_by_epsilon(expected: Planned, terms: Terms) -> dict[float, dict[str, Any]]:
    """Return what each epsilon of a plan would mean for a person; see :func:`fogline.accounting.risk.risk_table`."""
    pure = isinstance(expected, ExpectedDensity)
    epsilons = sorted({float(row.epsilon) for row in expected.rows})
    return {epsilon: risk_table(planned_guarantee(epsilon, terms, pure=pure)) for epsilon in epsilons}


def risk_cells(risks: Mapping[float, Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headings and rows of a table for people: what a guess can become at each epsilon, at most."""
    headings = ("epsilon", *(f"from {percent_up(before)}" for before in BEFORE), "advantage")
    rows = []
    for epsilon, risk in risks.items():
        advantage = risk["membership_advantage"]
        guesses = [percent_up(each["content"]) for each in risk["guesses"]]
        rows.append((f"{epsilon:g}", *guesses, "-" if advantage is None else percent_up(advantage)))
    return headings, tuple(rows)


def _risk_chart(risks: Mapping[float, Mapping[str, Any]]) -> Chart:
    """Draw the table of the risk: one line per chance before."""
    lines = tuple(
        (
            f"right with {percent_up(before)} before",
            np.array([risk["guesses"][k]["content"] for risk in risks.values()]),
        )
        for k, before in enumerate(BEFORE)
    )
    return Chart("a guess about a person, at most, after", lines, share=True, names_left=True)


def outlook_of(expected: Planned, terms: Terms) -> Outlook:
    """Return a plan for people."""
    if isinstance(expected, ExpectedError):
        return _modes(expected)
    if isinstance(expected, ExpectedClusterError):
        return _clusters(expected, terms)
    if isinstance(expected, ExpectedBranches):
        return _branches(expected, terms)
    return _density(expected)


def plan_cautions(epsilons: Sequence[float], delta: float, n: int) -> tuple[str, ...]:
    """Say of a plan that its largest epsilon, or its delta, promises little; empty if neither does.

    Examples
    --------
    >>> plan_cautions([1.0, 5.0], 1e-6, 5000)
    ()
    >>> [words.partition(" is")[0] for words in plan_cautions([1.0, 20.0], 1e-3, 5000)]
    ['epsilon = 20', 'delta = 0.001']
    """
    told = release_cautions(max(epsilons), delta, float(n))
    return tuple(words.replace("the released count", "the number of records") for words in told)


def write_outlook(expected: Planned, terms: Terms, path: Path) -> None:
    """Write the page of a plan."""
    path.write_text(render_outlook(expected, terms), encoding="utf-8")


def render_outlook(expected: Planned, terms: Terms) -> str:
    """Return the page of a plan as a string."""
    outlook = outlook_of(expected, terms)
    ranges = [
        (name, f"{tick_label(low)} to {tick_label(high)}")
        for name, (low, high) in zip(terms.columns, terms.bounds, strict=True)
    ]
    n, risks = tick_label(float(outlook.n)), risk_by_epsilon(expected, terms)
    headings, rows = risk_cells(risks)
    content = {
        "lead": f"{outlook.subject} of {n} records, {outlook.shape}: what each epsilon would show.",
        "n": n,
        "d": len(terms.bounds),
        "delta": power_of_ten(terms.delta),
        "neighbours": terms.neighbours,
        "figures": [_drawn(chart, outlook.epsilons) for chart in outlook.charts],
        "caption": "Both axes are logarithmic, but that of a chance. Lines end where nothing would be found.",
        "headings": outlook.headings,
        "rows": outlook.rows,
        "note": outlook.note,
        "risk": [_drawn(_risk_chart(risks), np.array(list(risks)))],
        "risk_headings": headings,
        "risk_rows": rows,
        "cautions": plan_cautions(list(risks), terms.delta, outlook.n),
        "shape": outlook.shape,
        "ranges": ranges[:8],
        "command": terms.command,
        "versions": versions(),
        "date": datetime.now(UTC).strftime("%-d %B %Y"),
    }
    return render_template("plan.html.j2", content, title=f"Before spending: {outlook.subject.lower()}")


# -- kinds --------------------------------------------------------------------------------------------------------


def _error(value: float, digits: int = 2) -> str:
    return significant(value, digits) if math.isfinite(value) else "-"


def _modes(expected: ExpectedError) -> Outlook:
    has_modes = len(expected.modes) > 0
    headings = ["epsilon", *(["mode at", "found", "error", "of privacy", "of sampling"] if has_modes else [])]
    rows: list[tuple[str, ...]] = []
    last = None
    for record in expected.table():
        same, last = record["epsilon"] == last, record["epsilon"]
        cells = ["" if same else f"{record['epsilon']:g}"]
        if has_modes:
            cells += [", ".join(significant(value) for value in record["position"]), f"{record['detected']:.0%}"]
            for name in ("standard_errors", "privacy_errors", "sampling_errors"):
                errors = record[name]
                cells.append("-" if errors is None else ", ".join(significant(error, 2) for error in errors))
        share = f"{significant(100 * record['smallest_share'], 2)}%"
        rows.append((*cells, *(["", ""] if same else [share, f"{record['spurious']:.2f}"])))
    return Outlook(
        f"{expected.n} records, {expected.shape}, delta {expected.delta:g}, {expected.neighbours}",
        "Modes",
        expected.n,
        expected.shape,
        (*headings, "smallest share seen", "false modes per fit"),
        tuple(rows),
        f"From {expected.runs} simulated fits per epsilon; nothing was spent. The smallest share is the part of the "
        "records that, gathered in one narrow place, would just stand above the fog.",
        np.array(expected.epsilons),
        tuple(_mode_charts(expected)),
    )


def _mode_charts(expected: ExpectedError) -> list[Chart]:
    shares = np.array([100 * row.smallest_share for row in expected.rows])
    smallest = Chart("smallest share of records seen, %", (("smallest share", shares),))
    if not len(expected.modes):
        return [smallest]
    widths = np.array([high - low for low, high in expected.bounds])
    errors = np.array([row.errors / widths for row in expected.rows])
    relative = 100 * np.sqrt(np.mean(errors**2, axis=2))
    names = [f"mode at {', '.join(f'{value:.3g}' for value in mode)}" for mode in expected.modes]
    chances = np.array([row.detected for row in expected.rows])
    lines = [tuple(zip(names, values.T, strict=True)) for values in (relative, chances)]
    return [Chart("standard error, % of the range", lines[0]), Chart("chance to find it", lines[1], share=True)]


def _clusters(expected: ExpectedClusterError, terms: Terms) -> Outlook:
    rows = []
    for row in expected.rows:
        means = ", ".join(significant(error, 2) for error in row.mean_errors[:4])
        seen = f"{significant(100 * row.smallest_variance, 2)}%"
        more = ", ..." if len(row.mean_errors) > 4 else ""
        cells = (significant(row.count_error, 2), means + more, seen, _error(row.centre_error))
        rows.append((f"{row.epsilon:g}", *cells))
    centre = np.array([row.centre_error for row in expected.rows])
    variance = np.array([100 * row.smallest_variance for row in expected.rows])
    return Outlook(
        f"{expected.n} records, {expected.n_clusters} clusters, delta {terms.delta:g}, {terms.neighbours}",
        f"{expected.n_clusters} clusters",
        expected.n,
        "spread as guessed",
        ("epsilon", "error of the count", "of the mean", "variance seen from", "error of a centre"),
        tuple(rows),
        "Noise of one fit, from its exact sensitivities; nothing was spent. A direction is seen if it holds that part "
        "of the variance. The error of a centre is in deviations of its cluster, after one step of refinement. "
        f"{_share_words(expected)}",
        np.array([row.epsilon for row in expected.rows]),
        (
            Chart("error of a centre, deviations", (("centre", centre),)),
            Chart("variance seen from, %", (("direction", variance),)),
        ),
    )


def _share_words(expected: ExpectedClusterError) -> str:
    """Say how the stages of a fit divide the budget, by epsilon where that decides."""
    by_shares: dict[str, list[str]] = {}
    for row in expected.rows:
        told = listed([f"{name} {share}" for name, share in row.shares.items()])
        by_shares.setdefault(told, []).append(f"{row.epsilon:g}")
    fixed = listed([f"{name} {share}" for name, share in expected.shares.items()])
    if set(by_shares) == {fixed}:
        return f"The stages take these shares of the budget: {fixed}."
    said = "; ".join(f"{told} at epsilon {listed(epsilons)}" for told, epsilons in by_shares.items())
    return f"With expect_records={expected.n} the stages take these shares of the budget: {said}. Without, {fixed}."


def _branches(expected: ExpectedBranches, terms: Terms) -> Outlook:
    rows = tuple(
        (
            f"{row.epsilon:g}",
            f"{row.shown:.0%}",
            f"{row.detected:.0%}",
            _error(row.error),
            _error(row.privacy_error),
            _error(row.sampling_error),
            f"{row.spurious:.2f}",
        )
        for row in expected.rows
    )
    parts = {
        name: np.array([getattr(row, field) for row in expected.rows], dtype=np.float64)
        for name, field in (("all", "error"), ("privacy", "privacy_error"), ("sampling", "sampling_error"))
    }
    chances = np.array([row.detected for row in expected.rows])
    return Outlook(
        f"{expected.n} records, {expected.shape}, delta {terms.delta:g}, {terms.neighbours}",
        "Branches",
        expected.n,
        expected.shape,
        ("epsilon", "fits with branches", "modes found", "error", "of privacy", "of sampling", "false modes per place"),
        rows,
        f"From {expected.runs} simulated fits per epsilon; nothing was spent. Modes are those at each place x.",
        np.array([row.epsilon for row in expected.rows]),
        (
            Chart(f"standard error of {short(terms.columns[-1], 18)}", tuple(parts.items())),
            Chart("modes found", (("of all modes", chances),), share=True),
        ),
    )


def _density(expected: ExpectedDensity) -> Outlook:
    rows: list[tuple[str, ...]] = []
    for row in expected.rows:
        for j, name in enumerate(expected.columns):
            first = [f"{row.epsilon:g}", significant(row.count_error, 2)] if j == 0 else ["", ""]
            quantiles = [significant(parts.total, 2) for parts in row.quantiles[j]]
            box = f"{significant(100 * row.boxes[j].total, 2)}%"
            rows.append((*first, name, significant(row.means[j].total, 2), *quantiles, box))
    quantiles = [f"{100 * level:g}%" for level in expected.levels]
    charts = [_median_chart(expected, j) for j in range(len(expected.columns))]
    boxes = tuple(
        (name, np.array([100 * row.boxes[j].total for row in expected.rows])) for j, name in enumerate(expected.columns)
    )
    return Outlook(
        f"{expected.n} records, {expected.shape}, delta {expected.delta:g}, {expected.neighbours}",
        "Density",
        expected.n,
        expected.shape,
        ("epsilon", "count", "column", "mean", *quantiles, "a tenth of the range"),
        tuple(rows),
        f"Standard errors: of the count, and of each column's mean, quantiles and share in a tenth of its range. From "
        f"{expected.runs} simulated release{'' if expected.runs == 1 else 's'} per epsilon; nothing was spent.",
        np.array(expected.epsilons),
        (*charts, Chart("share in a tenth of the range, error in %", boxes)),
    )


def _median_chart(expected: ExpectedDensity, j: int) -> Chart:
    middle = expected.levels.index(0.5)
    parts = [row.quantiles[j][middle] for row in expected.rows]
    lines = {
        "all": np.array([part.total for part in parts]),
        "privacy": np.array([math.hypot(part.privacy, part.smoothing) for part in parts]),
        "sampling": np.array([part.sampling for part in parts]),
    }
    return Chart(f"error of the median {short(expected.columns[j], 20)}", tuple(lines.items()))


# -- drawing ------------------------------------------------------------------------------------------------------


def _drawn(chart: Chart, epsilons: FloatArray) -> str:
    return in_two_sizes(lambda layout: _chart(chart, epsilons, layout), WIDE, NARROW)


def _chart(chart: Chart, epsilons: FloatArray, layout: Layout) -> str:
    across = math.log10(float(epsilons[0])) - 0.1, math.log10(float(epsilons[-1])) + 0.1
    values = np.concatenate([values for _, values in chart.lines])
    known = values[np.isfinite(values) & (values > 0)]
    title = element("text", text=chart.name, x=layout.left, y=16, class_="axis-name")
    if not chart.share and not len(known):
        nothing = element("text", text="nothing would be found", x=layout.left, y=60, class_="tick-label")
        return canvas(layout.width, layout.height, chart.name, title, nothing, class_=layout.class_)
    # at least a factor of three, so that a flat line looks flat
    low, high = (-0.03, 1.03) if chart.share else _log_limits(known)
    frame = layout.area(across, (low, high))
    parts = [title, frame.border("paper"), _levels(chart, frame), _epsilon_ticks(frame, epsilons)]
    for k, (_, heights) in enumerate(chart.lines[:MOST_LINES]):
        with np.errstate(divide="ignore", invalid="ignore"):
            placed = heights if chart.share else np.log10(np.where(heights > 0, heights, np.nan))
        parts.append(_line(frame, epsilons, np.clip(placed, low, high), _hue(chart, k)))
    parts.append(_names(chart, frame))
    return canvas(layout.width, layout.height, f"{chart.name} by epsilon", *parts, class_=layout.class_)


def _log_limits(known: FloatArray) -> tuple[float, float]:
    top, bottom = float(np.log10(known.max())), float(np.log10(known.min()))
    bottom = max(bottom, top - 3.0)  # a part that is nearly nothing does not flatten the rest
    spare = max(0.08, (0.5 - (top - bottom)) / 2)
    return bottom - spare, top + spare + 0.12


def _hue(chart: Chart, k: int) -> str:
    parts = {"all": INK, "privacy": HUES[1], "sampling": GREY}
    return parts.get(chart.lines[k][0], HUES[k % len(HUES)])


def _levels(chart: Chart, frame: PlotArea) -> str:
    low, high = frame.y
    marks = [0.0, 0.5, 1.0] if chart.share else _log_marks(low, high)
    parts = []
    for value in marks:
        y = float(frame.at(np.array([[frame.x[0], value if chart.share else math.log10(value)]]))[0, 1])
        words = f"{100 * value:.0f}%" if chart.share else f"{value:g}"
        parts.append(element("line", x1=frame.left, x2=frame.left + frame.width, y1=y, y2=y, class_="grid"))
        parts.append(element("text", text=words, x=frame.left - 8, y=y + 4, class_="tick-label end"))
    return "".join(parts)


def _log_marks(low: float, high: float) -> list[float]:
    steps = (1, 2, 5) if high - low < 2.2 else (1,)
    powers = range(math.floor(low), math.ceil(high) + 1)
    return [step * 10.0**power for power in powers for step in steps if low <= math.log10(step * 10.0**power) <= high]


def _epsilon_ticks(frame: PlotArea, epsilons: FloatArray) -> str:
    parts, last = [], -math.inf
    bottom = frame.top + frame.height
    for epsilon in epsilons.tolist():
        x = float(frame.at(np.array([[math.log10(epsilon), frame.y[0]]]))[0, 0])
        parts.append(element("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="tick"))
        if x - last > 30:
            parts.append(element("text", text=f"{epsilon:g}", x=x, y=bottom + 19, class_="tick-label middle"))
            last = x
    middle = frame.left + frame.width / 2
    return "".join([*parts, element("text", text="epsilon", x=middle, y=bottom + 40, class_="axis-name middle")])


def _line(frame: PlotArea, epsilons: FloatArray, heights: FloatArray, hue: str) -> str:
    known = np.isfinite(heights)
    points = frame.at(np.stack([np.log10(epsilons[known]), heights[known]], axis=1)).tolist()
    joined = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    shape = element("path", d=joined, stroke=hue, class_="law") if len(points) > 1 else ""
    return shape + "".join(element("circle", cx=float(x), cy=float(y), r=3.6, fill=hue) for x, y in points)


def _names(chart: Chart, frame: PlotArea) -> str:
    """Names of the lines: in the upper right for errors, which fall, in the lower right for chances, which rise.

    Where lines of chances start far apart, there is room for their names in the upper left alone.
    """
    names: Sequence[str] = [name for name, _ in chart.lines[:MOST_LINES]]
    if len(names) < 2:
        return ""
    bottom = frame.top + frame.height - 12 - 17 * (len(names) - 1)
    first = bottom if chart.share and not chart.names_left else frame.top + 18
    parts = []
    for k, name in enumerate(names):
        y, right = first + 17 * k, frame.left + (174 if chart.names_left else frame.width - 10)
        parts.append(element("text", text=short(name, 22), x=right - 16, y=y, class_="tick-label end"))
        parts.append(element("circle", cx=right - 5, cy=y - 4, r=4.5, fill=_hue(chart, k)))
    return "".join(parts)
