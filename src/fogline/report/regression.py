"""What a page or a JSON document says of a fitted modal regression: branches and prediction sets along x.

With one x the panel is the released joint density itself. With two, there are three panels: the first x across, the
second held at a quarter, half and three quarters of its range.

The page of a modal regression.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.special import ndtri

from fogline._typing import BoolArray, FloatArray
from fogline.report._plots import Layout, badge, canvas, free_spot, heat, in_two_sizes, line, outline
from fogline.report._svg import HUES, PlotArea, element, path, plus_minus, short, significant, tick_label
from fogline.report.frame import ConsoleTable, column_names, count_words, frame_content, listed, python_call, versions
from fogline.report.summaries import INTERVAL, Summary, notes_of, released_facts, spread_cells

if TYPE_CHECKING:
    from fogline.estimators import PrivateModalRegression

__all__ = [
    "BranchFindings",
    "Panel",
    "Row",
    "branch_content",
    "branch_document",
    "branch_frame",
    "branch_map",
    "branch_plot",
    "branch_summary",
    "branch_table",
    "branch_title",
    "described_rows",
    "find_branches",
]


COVERAGE = 0.9
QUERIES = 101
"""Places along x at which branches are drawn."""

ROWS = 9
"""Places along x in the table."""

HEIGHT = 201
"""Points of a panel along y."""

HELD = (0.25, 0.5, 0.75)
"""Where a second x is held, in parts of its range."""

SPARSE = 3
"""With two x, of this many points of a panel one is read along each axis."""

NARROW = 0.6
"""A prediction set is shown where it is at most this part of the range of y."""

DRAWN_DENSITY_FLOOR = 2.0
"""The density is drawn where it is at least this many deviations of its privacy noise."""

POSTERIOR_FLOOR = 0.005
"""The density of a posterior is drawn where it is at least this part of its highest value."""

Strand = tuple[int, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Panel:
    """The picture along the first x, the others held fixed.

    Attributes
    ----------
    fixed : tuple of float
        Where the other x are held; empty for one x.
    axes : two arrays
        Grid of x and y on which the density is read.
    values : array of the grid's shape
        The released density.
    floor : float
        Below it there is only noise.
    set_axes : two arrays
        Grid of x and y on which the prediction set is drawn.
    inside : bool array of that grid's shape
        Where the prediction set is.
    strands : tuple of (number, x, positions, standard errors)
        Unbroken stretches of the branches.
    """

    fixed: tuple[float, ...]
    axes: tuple[FloatArray, FloatArray]
    values: FloatArray
    floor: float
    set_axes: tuple[FloatArray, FloatArray]
    inside: BoolArray
    strands: tuple[Strand, ...]


@dataclass(frozen=True, eq=False)
class Row:
    """Modes and prediction set at one query.

    Attributes
    ----------
    x : array of shape (dx,)
    branches : tuple of int
    positions, errors, heights : arrays of shape (modes,)
    intervals : array of shape (intervals, 2)
        The prediction set.
    """

    x: FloatArray
    branches: tuple[int, ...]
    positions: FloatArray
    errors: FloatArray
    heights: FloatArray
    intervals: FloatArray


@dataclass(frozen=True, eq=False)
class BranchFindings:
    """What was released, read along x.

    Attributes
    ----------
    estimator : PrivateModalRegression
        Fitted.
    columns : tuple of str
        Names of x, then of y.
    panels : tuple of Panel
    rows : tuple of Row
    """

    kind: ClassVar[str] = "regression"
    estimator: PrivateModalRegression
    columns: tuple[str, ...]
    panels: tuple[Panel, ...]
    rows: tuple[Row, ...]

    @property
    def k(self) -> int:
        """Number of branches that are drawn or listed."""
        seen = {strand[0] for panel in self.panels for strand in panel.strands}
        return len(seen | {number for row in self.rows for number in row.branches})

    def tells(self, row: Row) -> bool:
        """Whether the prediction set of a row says more than that y may be almost anything."""
        return tells(row, np.asarray(self.bounds))

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public range of each x, then of y."""
        return tuple((float(low), float(high)) for low, high in _ordered_bounds(self.estimator))


def _order(estimator: PrivateModalRegression) -> list[int]:
    """Places of each x, then of y, among the columns of the release: of one that was read, y may be any of them."""
    d = int(estimator.n_features_in_) + 1
    response = estimator.branches_.response
    y = d - 1 if response is None else int(response)
    return [*(k for k in range(d) if k != y), y]


def tells(row: Row, bounds: FloatArray) -> bool:
    """Whether a prediction set says more than that y may be almost anything."""
    return float(np.diff(row.intervals, axis=1).sum()) <= NARROW * float(bounds[-1, 1] - bounds[-1, 0])


def find_branches(estimator: PrivateModalRegression, columns: Sequence[str] | None = None) -> BranchFindings:
    """Read what a page shows from a fitted regression; costs no privacy.

    ``columns`` names each x, then y.
    """
    dx = int(estimator.n_features_in_)
    given = None if columns is None else tuple(map(str, columns))
    if given is not None and len(given) != dx + 1:
        raise ValueError(f"columns must name {dx} x and y, got {len(given)}")
    named = estimator.density_.columns
    names = (*column_names(estimator), "y" if named is None else named[_order(estimator)[-1]])
    names = names if given is None else given
    bounds = _ordered_bounds(estimator)
    low, width = bounds[1:dx, 0], bounds[1:dx, 1] - bounds[1:dx, 0]
    fixed = [tuple((low + part * width).tolist()) for part in HELD] if dx > 1 else [()]
    along = np.linspace(bounds[0, 0], bounds[0, 1], QUERIES)
    shown = np.linspace(bounds[0, 0], bounds[0, 1], ROWS + 2)[1:-1]
    listed = [(x, *where) for where in fixed for x in (shown if dx == 1 else shown[1::2])]
    rows = _rows(
        estimator, np.array([*((x, *where) for where in fixed for x in along), *listed])
    )  # at once: it is dear
    panels = tuple(
        _panel(estimator, bounds, where, rows[QUERIES * i : QUERIES * (i + 1)]) for i, where in enumerate(fixed)
    )
    return BranchFindings(estimator, names, panels, rows[QUERIES * len(fixed) :])


def _panel(
    estimator: PrivateModalRegression, bounds: FloatArray, fixed: tuple[float, ...], rows: tuple[Row, ...]
) -> Panel:
    density, bandwidth = estimator.density_, estimator.bandwidth_
    x = np.array([row.x[0] for row in rows])
    y = np.linspace(bounds[-1, 0], bounds[-1, 1], HEIGHT)
    response = estimator.branches_.response
    floor = DRAWN_DENSITY_FLOOR * density.noise_sd(bandwidth) if response is None else 0.0
    if fixed:
        grid = np.stack(np.meshgrid(x[::SPARSE], y[::SPARSE], indexing="ij"), axis=-1).reshape(-1, 2)
        points = np.insert(grid, 1, np.array(fixed)[:, None], axis=1)
        axes = (x[::SPARSE], y[::SPARSE])
        if response is None:
            values = density.pdf(points, bandwidth)
        else:  # y is last in the points, and may be any column of the density
            order = np.insert(np.arange(density.spec.d - 1), response, density.spec.d - 1)
            values = np.asarray(density.posterior.pdf(points[:, order]).value)
        values = values.reshape(len(axes[0]), len(axes[1]))
    elif response is not None:
        leaves = density.posterior.axes
        axes = (leaves[1 - response].edges, leaves[response].edges)
        joint = np.moveaxis(density.posterior.masses().estimate, response, -1)
        values = np.pad(joint / (leaves[0].width * leaves[1].width), ((0, 1), (0, 1)), mode="edge")
        floor = POSTERIOR_FLOOR * float(values.max())
    else:
        found = density.grid(bandwidth)
        axes, values = _to_boundary(found.axes, bounds), np.pad(found.values, ((0, 1), (0, 1)), mode="edge")
    inside = np.zeros((len(x), len(y)), dtype=bool)
    for i, row in enumerate(rows):
        for low, high in row.intervals.tolist() if tells(row, bounds) else []:
            inside[i] |= (y >= low) & (y <= high)
    return Panel(fixed, axes, values, floor, (x, y), inside, _strands(x, rows))


def _ordered_bounds(estimator: PrivateModalRegression) -> FloatArray:
    """Bounds of each x, then of y, which may be any column of a density that was read."""
    return np.asarray(estimator.density_.spec.bounds, dtype=np.float64)[_order(estimator)]


def _to_boundary(axes: tuple[FloatArray, ...], bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Axes of a grid with one more point each: the upper bound, which a grid need not reach."""
    across, up = (
        np.append(axis, max(high, axis[-1] + 1e-9 * (high - low)))
        for axis, (low, high) in zip(axes, bounds, strict=True)
    )
    return across, up


def _rows(estimator: PrivateModalRegression, places: FloatArray) -> tuple[Row, ...]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # they are right as they are
        found = estimator.branches(places)
        sets = estimator.prediction_sets(places, coverage=COVERAGE)
    rows = []
    for i, place in enumerate(places):
        own = np.flatnonzero(found.rows == i)
        numbers = tuple(found.branch[own].tolist())
        rows.append(Row(place, numbers, found.positions[own], found.standard_errors[own], found.heights[own], sets[i]))
    return tuple(rows)


def _strands(x: FloatArray, rows: tuple[Row, ...]) -> tuple[Strand, ...]:
    """Unbroken stretches of each branch."""
    strands: list[Strand] = []
    for number in sorted({number for row in rows for number in row.branches}):
        at = [(i, row.branches.index(number)) for i, row in enumerate(rows) if number in row.branches]
        cuts = np.flatnonzero(np.diff([i for i, _ in at]) > 1) + 1
        for part in np.split(np.array(at), cuts):
            positions = np.array([rows[i].positions[j] for i, j in part])
            errors = np.array([rows[i].errors[j] for i, j in part])
            strands.append((number, x[part[:, 0]], positions, errors))
    return tuple(strands)


def branch_document(findings: BranchFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    estimator, density = findings.estimator, findings.estimator.density_
    return {
        "format": "fogline-regression-1",
        "command": command or python_call(estimator),
        "x": list(findings.columns[:-1]),
        "y": findings.columns[-1],
        "bounds": [list(pair) for pair in findings.bounds],
        "rows": [_described(row) for row in findings.rows],
        "coverage": COVERAGE,
        "message": estimator.message_,
        "count": {"value": density.count, "standard_error": density.count_sd},
        "guarantee": {**estimator.guarantee_.to_dict(), "statement": str(estimator.guarantee_)},
        "level": estimator.level,
        "bandwidth": estimator.bandwidth_.tolist(),
        "versions": versions(),
    }


def _described(row: Row) -> dict[str, Any]:
    modes = zip(row.branches, row.positions, row.errors, row.heights, strict=True)
    return {
        "x": row.x.tolist(),
        "modes": [
            {"branch": number + 1, "position": float(at), "standard_error": float(error), "height": float(height)}
            for number, at, error, height in modes
        ],
        "prediction_set": row.intervals.tolist(),
    }


RADIUS = float(ndtri(0.975))


def branch_content(findings: BranchFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    estimator, density = findings.estimator, findings.estimator.density_
    names, response = findings.columns[:-1], findings.columns[-1]
    bandwidth = estimator.bandwidth_
    return {
        **frame_content(estimator, density),
        "k": findings.k,
        "several": len(names) > 1,
        "names": names,
        "response": response,
        "bounds": [
            (name, tick_label(low), tick_label(high))
            for name, (low, high) in zip(findings.columns, findings.bounds, strict=True)
        ],
        "rows": described_rows(findings),
        "sets": any(panel.inside.any() for panel in findings.panels),
        "coverage": f"{100 * COVERAGE:.0f}%",
        "bandwidth": listed(
            [f"{significant(float(h))} ({name})" for h, name in zip(bandwidth, findings.columns, strict=True)]
        ),
        "figures": [branch_map(findings, panel) for panel in findings.panels],
    }


def described_rows(findings: BranchFindings) -> list[dict[str, Any]]:
    """Return the modes and the prediction set at some x, as people write them."""
    described = []
    for row in findings.rows:
        modes = sorted(zip(row.branches, row.positions.tolist(), row.errors.tolist(), strict=True))
        scale = [float(np.median(row.errors)) if len(row.errors) else float(np.ptp(findings.bounds[-1])) / 200]
        described.append(
            {
                "x": [significant(float(value)) for value in row.x],
                "modes": [
                    {"number": number + 1, "hue": HUES[number % len(HUES)], "value": plus_minus(value, [error])}
                    for number, value, error in modes
                ],
                "set": " or ".join(
                    f"{plus_minus(low, scale)[0]} to {plus_minus(high, scale)[0]}"
                    for low, high in row.intervals.tolist()
                )
                if findings.tells(row)
                else "most of the range",
            }
        )
    return described


WIDE_MAP = Layout(880, 520, left=70, top=10, right=20, bottom=60, ticks=7)
NARROW_MAP = Layout(360, 350, left=56, top=10, right=12, bottom=50, ticks=4, narrow=True)
SMALL_MAP = Layout(356, 340, left=56, top=30, right=14, bottom=48, ticks=5)


def branch_map(findings: BranchFindings, panel: Panel) -> str:
    """Draw the released density with the branches, their 95% bands and the prediction set over it."""
    if panel.fixed:
        return _branch_drawing(findings, panel, SMALL_MAP)
    return in_two_sizes(lambda layout: _branch_drawing(findings, panel, layout), WIDE_MAP, NARROW_MAP)


def _branch_drawing(findings: BranchFindings, panel: Panel, layout: Layout) -> str:
    x_name, y_name = findings.columns[0], findings.columns[-1]
    frame = layout.area(findings.bounds[0], findings.bounds[-1])
    layers = [heat(frame, panel.axes, panel.values, panel.floor)]
    if panel.inside.any():
        soft = gaussian_filter(panel.inside.astype(np.float64), 0.7, mode="nearest")
        layers.append(element("path", d=outline(frame, panel.set_axes, soft, 0.5), class_="set"))
    for number, x, positions, errors in panel.strands:
        hue = HUES[number % len(HUES)]
        upper, lower = positions + RADIUS * errors, positions - RADIUS * errors
        edge = np.concatenate([np.stack([x, upper], axis=1), np.stack([x, lower], axis=1)[::-1]])
        layers.append(element("path", d=path([_within(frame, frame.at(edge))]), fill=hue, class_="band"))
        for class_ in ("branch-halo", "branch"):
            layers.append(element("path", d=line(frame, x, positions), stroke=hue, class_=class_))
    title = ""
    if panel.fixed:
        words = listed(
            [f"{short(n, 18)} = {significant(v)}" for n, v in zip(findings.columns[1:], panel.fixed, strict=False)]
        )
        title = element("text", text=words, x=frame.left + frame.width / 2, y=18, class_="axis-name middle")
    most = 42 if layout is WIDE_MAP else 26
    return canvas(
        layout.width,
        layout.height,
        f"Map of the released density of {short(x_name)} and {short(y_name)} with its branches",
        title,
        frame.border("paper"),
        *layers,
        frame.border(),
        frame.axes((short(x_name, most), short(y_name, most)), wanted=layout.ticks),
        *_numbers(panel, frame),
        class_=layout.class_,
    )


def _numbers(panel: Panel, frame: PlotArea) -> list[str]:
    """Number of each branch, beside the middle of its longest stretch."""
    labels: list[str] = []
    taken: list[tuple[float, ...]] = []
    for number in dict.fromkeys(strand[0] for strand in panel.strands):
        longest = max((s for s in panel.strands if s[0] == number), key=lambda strand: len(strand[1]))
        middle = len(longest[1]) // 2
        spot = frame.at(np.array([[longest[1][middle], longest[2][middle]]]))[0]
        place = free_spot((float(spot[0]), float(spot[1])), 22, taken, frame)
        taken.append(place)
        labels.append(badge(number, place, hue=HUES[number % len(HUES)]))
    return labels


def _within(frame: PlotArea, points: FloatArray) -> FloatArray:
    """Keep points of a drawing inside of its frame."""
    low = np.array([frame.left, frame.top])
    return np.clip(points, low, low + np.array([frame.width, frame.height]))


def branch_title(findings: BranchFindings) -> str:
    """Return the title of a page that was given none."""
    return f"{findings.columns[-1]} by {listed(findings.columns[:-1])}"


def branch_table(findings: BranchFindings) -> ConsoleTable:
    """Modes and the prediction set at some x, the count, the guarantee, and what would help."""
    *known, response = findings.columns
    rows = []
    for row in described_rows(findings) if findings.k else []:
        modes = [f"({mode['number']}) {' ± '.join(mode['value'])}" for mode in row["modes"]]
        rows.append((*row["x"], ", ".join(modes) or "in the fog", row["set"]))
    return ConsoleTable(
        f"Typical {response}: number of the branch and value",
        (*known, response, f"{100 * COVERAGE:.0f}% prediction set"),
        tuple(rows),
        left=(len(known), len(known) + 1),
        sentences=count_words(findings.estimator),
    )


def branch_summary(findings: BranchFindings) -> Summary:
    """Return the table of a regression: the typical responses at some x, each with its error."""
    estimator, rows = findings.estimator, []
    *known, response = findings.columns
    for row in findings.rows:
        modes = sorted(zip(row.branches, row.positions.tolist(), row.errors.tolist(), strict=True))
        for i, (number, position, error) in enumerate(modes):
            where = [significant(float(value)) if i == 0 else "" for value in row.x]
            rows.append((*where, str(number + 1), *spread_cells(position, error)))
    bounds = [(tick_label(low), tick_label(high)) for low, high in findings.bounds]
    return Summary(
        f"Branches of {branch_title(findings)}",
        released_facts(estimator, findings.columns, bounds),
        (*known, "branch", f"typical {response}", *INTERVAL),
        tuple(rows),
        notes_of(estimator.message_, estimator.guarantee_),
        left=len(known) + 1,
    )


def branch_frame(findings: BranchFindings) -> dict[str, list[Any]]:
    """Return the branches along x as columns of a frame, one row per place and branch."""
    *known, response = findings.columns
    frame: dict[str, list[Any]] = {name: [] for name in known}
    frame |= {"branch": [], response: [], f"{response}_standard_error": [], "density": []}
    for row in findings.rows:
        for number, *values in zip(row.branches, row.positions, row.errors, row.heights, strict=True):
            cells = (*row.x.tolist(), number + 1, *(float(value) for value in values))
            for name, cell in zip(frame, cells, strict=True):
                frame[name].append(cell)
    return frame


def branch_plot(findings: BranchFindings, ax: Any = None) -> Any:
    """Draw the released density and the branches, with 95% bands, with matplotlib: one panel per held x."""
    from fogline.report._axes import axes_for
    from fogline.report._plots import density_levels

    axes = axes_for(ax, len(findings.panels))
    for panel, one in zip(findings.panels, axes, strict=True):
        levels = density_levels(panel.values, panel.floor)
        if len(levels):
            one.contourf(*panel.axes, panel.values.T, levels=[*levels, float(panel.values.max())], cmap="Blues")
        for number, x, positions, errors in panel.strands:
            colour, band = f"C{1 + int(number) % 9}", RADIUS * errors
            one.plot(x, positions, marker="." if len(x) == 1 else "", color=colour)
            one.fill_between(x, positions - band, positions + band, color=colour, alpha=0.3, linewidth=0)
        one.set_xlim(*findings.bounds[0])
        one.set_ylim(*findings.bounds[-1])
        one.set_xlabel(findings.columns[0])
        one.set_ylabel(findings.columns[-1])
        if panel.fixed:
            one.set_title(f"{findings.columns[1]} = {significant(panel.fixed[0])}")
    return axes[0] if len(axes) == 1 else np.array(axes)
