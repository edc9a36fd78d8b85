"""Pictures of a posterior density: a curve with its band and its atoms, a map with both margins, maps of pairs.

Each is drawn twice in SVG, wide for a desk and print, narrow for a phone, and once with matplotlib. Limits are the
public bounds; a map's shades hold known shares of the population, so that a spike does not hide the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import gaussian_filter

from fogline._typing import BoolArray, FloatArray
from fogline.density.posterior.estimates import Atom, Band, Estimate
from fogline.density.value_words import cell_words
from fogline.report._plots import (
    BLUE,
    INK,
    Layout,
    Profile,
    canvas,
    in_two_sizes,
    line,
    line_within,
    outline,
    profile_areas,
    profile_marks,
    shades,
)
from fogline.report._svg import HUES, PlotArea, element, mix, path, short, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "DensityCurve",
    "DensityPlane",
    "axis_label",
    "draw_curve",
    "draw_groups",
    "draw_plane",
    "group_curves",
    "mass_levels",
    "pair_map",
    "posterior_curve",
    "posterior_map",
]

LEVEL_SHARES = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""Share of the population within each level set of a map, from the lowest level up."""

HEADROOM = 1.5
"""A band is drawn up to this many times the highest point of its curve."""

TALLEST = 0.8
"""Height of the heaviest atom's bar, in parts of the picture's."""

SPIKE = 3.0
"""A cell this many times as high as its neighbours, and as all others but one, is cut off by the picture."""

FEWEST_CELLS = 16
"""Fewest cells of a curve of which one is called a spike."""

SOFT = 0.6
"""Cells by which a map is smoothed for the eye."""

WIDE = Layout(880, 396, left=78, top=16, right=22, bottom=56)
NARROW = Layout(360, 320, left=56, top=14, right=10, bottom=52, ticks=4, narrow=True)
SMALL = Layout(356, 240, left=56, top=12, right=14, bottom=48, ticks=5)
PAIR = Layout(356, 318, left=56, top=8, right=14, bottom=48, ticks=5)
WIDE_MAP = Layout(880, 640, left=70, top=130, right=190, bottom=56)
NARROW_MAP = Layout(360, 430, left=56, top=80, right=72, bottom=50, ticks=4, narrow=True)


def axis_label(name: str, unit: str = "", most: int = 42) -> str:
    """Name of an axis with its unit, in at most so many characters where it can be cut.

    Examples
    --------
    >>> axis_label("age", "years"), axis_label("length of the stay in hospital", "days", 20)
    ('age (years)', 'length of th… (days)')
    """
    return f"{short(name, most - len(unit) - 3)} ({unit})" if unit else short(name, most)


@dataclass(frozen=True, eq=False)
class DensityCurve:
    """One column.

    Attributes
    ----------
    name : str
    bounds : pair of float
    band : Band
        The density without its atoms.
    atoms : tuple of Atom
    empty : tuple of (low, high, share)
        Stretches in which hardly anyone is.
    step : float
        Distance of the values of a column that holds whole numbers or the like, one point of the band each; 0 for a
        continuous column. Such a curve is drawn in steps: a line between two values would go through values that
        nobody has.
    unit: str
        Of the column, such as "years"; empty where none is known.
    spacing: float
        Public step of the column, whether or not the curve is drawn in steps; 0 for a continuous one.
    """

    name: str
    bounds: tuple[float, float]
    band: Band
    atoms: tuple[Atom, ...]
    empty: tuple[tuple[float, float, Estimate], ...]
    step: float = 0.0
    unit: str = ""
    spacing: float = 0.0

    def place_words(self, atom: Atom) -> str:
        """Value of an atom, or the ends of its cell where no more than that is known."""
        return cell_words(atom.value, atom.low, atom.high, self.spacing).replace("-", "−")

    @property
    def limits(self) -> tuple[float, float]:
        """Where the picture begins and ends: half a step beyond the bounds."""
        return self.bounds[0] - self.step / 2, self.bounds[1] + self.step / 2

    def outlines(self, limits: tuple[float, float]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Places, and the curve, the lower and the upper end of its band there; corners of steps where it has them."""
        band = self.band
        if not self.step:
            return band.x, band.value, band.low, band.high
        edges = np.concatenate([[limits[0]], (band.x[1:] + band.x[:-1]) / 2, [limits[1]]])
        x = np.repeat(edges, 2)[1:-1]
        value, low, high = (np.repeat(part, 2) for part in (band.value, band.low, band.high))
        return x, value, low, high

    @property
    def top(self) -> float:
        """Where the picture ends: the band's highest point, unless that is far above the curve."""
        plain = ~self.spikes
        highest = float(self.band.value[plain].max(initial=0.0))
        above = float(self.band.high[plain].max(initial=0.0))
        return max(min(above, HEADROOM * highest), np.finfo(float).tiny) * 1.08

    @property
    def spikes(self) -> BoolArray:
        """Cells that stand so far above their neighbours that the rest would lie flat; the picture cuts them off."""
        value = self.band.value
        if len(value) < FEWEST_CELLS or self.step:
            return np.zeros(len(value), dtype=bool)
        around = np.pad(value, 1)
        others = np.maximum(np.maximum(around[:-2], around[2:]), np.sort(value)[-3])
        return np.asarray(value > SPIKE * others)

    def bar(self, atom: Atom) -> float:
        """Height of an atom's bar, in density units of the picture."""
        heaviest = max(float(one.share.value) for one in self.atoms)
        return TALLEST * self.top * float(atom.share.value) / heaviest


@dataclass(frozen=True, eq=False)
class DensityPlane:
    """Two columns.

    Attributes
    ----------
    names : two str
    bounds : two pairs of float
    edges : two arrays
        Of the cells.
    values : array
        Density of each cell.
    columns : two int
    units : two str
        Of the columns; empty where none is known.
    """

    names: tuple[str, str]
    bounds: tuple[tuple[float, float], tuple[float, float]]
    edges: tuple[FloatArray, FloatArray]
    values: FloatArray
    columns: tuple[int, int]
    units: tuple[str, str] = ("", "")

    def labels(self, most: int = 42) -> tuple[str, str]:
        """Names of the axes, with their units."""
        return axis_label(self.names[0], self.units[0], most), axis_label(self.names[1], self.units[1], most)

    @property
    def field(self) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
        """Points out to the bounds, and the density there, smoothed for the eye."""
        smooth = np.pad(gaussian_filter(self.values, SOFT, mode="nearest"), 1, mode="edge")
        points = [np.concatenate([edge[:1], (edge[1:] + edge[:-1]) / 2, edge[-1:]]) for edge in self.edges]
        return (points[0], points[1]), smooth


def mass_levels(values: FloatArray, shares: Sequence[float] = LEVEL_SHARES) -> FloatArray:
    """Levels of a density, on cells of equal size, whose upper sets hold these shares of the mass.

    Examples
    --------
    >>> mass_levels(np.array([[4.0, 1.0], [3.0, 2.0]]), [0.9, 0.4]).tolist()
    [2.0, 4.0]
    """
    order = np.sort(np.maximum(values, 0.0).ravel())[::-1]
    total = np.cumsum(order)
    if total[-1] <= 0:
        return np.zeros(0)
    place = np.searchsorted(total, np.asarray(shares) * total[-1] - 1e-12 * total[-1])
    return np.asarray(order[np.minimum(place, len(order) - 1)])


# -- SVG ----------------------------------------------------------------------------------------------------------


def posterior_curve(
    curve: DensityCurve, *, small: bool = False, marks: Profile | None = None, dense_ends: Sequence[str] = ()
) -> str:
    """Draw the density with its band, atoms as bars, empty stretches hatched.

    Parameters
    ----------
    curve : DensityCurve
    small : bool
        As one of several pictures.
    marks : Profile, optional
        The same curve with places on it, and with stretches in their colours.
    dense_ends : sequence of {"low", "high"}
        Ends of the range at which the density is highest.
    """
    label = f"Curve of the density of {short(curve.name)} with its band"

    def draw(layout: Layout) -> str:
        frame = layout.area(curve.limits, (0.0, curve.top))
        most = 26 if layout.narrow or small else 42
        return canvas(
            layout.width,
            layout.height,
            label,
            frame.border("paper"),
            _empty_marks(curve, frame) if marks is None else profile_areas(marks, frame),
            # over stretches in the colours of modes the band is grey
            _band(curve, frame) if marks is None else _band(curve, frame, INK, "noise"),
            _bars(curve, frame),
            _wall_marks(dense_ends, frame),
            _spike_labels(curve, frame),
            frame.border(),
            frame.axes((axis_label(curve.name, curve.unit, most), "density"), wanted=layout.ticks),
            "" if marks is None else profile_marks(marks, frame),
            class_=layout.class_,
        )

    return draw(SMALL) if small else in_two_sizes(draw, WIDE, NARROW)


def _band(curve: DensityCurve, frame: PlotArea, hue: str = HUES[0], class_: str = "band") -> str:
    x, value, low, high = curve.outlines(frame.x)
    return element("path", d=path([frame.at(_around(x, low, high, frame))]), fill=hue, class_=class_) + element(
        "path", d=line_within(frame, x, value), class_="curve"
    )


def _spike_labels(curve: DensityCurve, frame: PlotArea) -> str:
    """Shares of cells that the picture cuts off."""
    band, parts = curve.band, []
    width = float(band.x[1] - band.x[0]) if len(band.x) > 1 else 0.0
    for k in np.flatnonzero(curve.spikes):
        x = float(frame.at(np.array([[band.x[k], 0.0]]))[0, 0])
        words = f"{significant(100 * width * float(band.value[k]), 2)}% in one cell"
        is_right = x > frame.left + frame.width / 2
        shift, side = (-8.0, " end") if is_right else (8.0, "")
        parts.append(element("text", text=words, x=x + shift, y=frame.top + 18, class_=f"atom-label{side}"))
    return "".join(parts)


def _around(x: FloatArray, low: FloatArray, high: FloatArray, frame: PlotArea) -> FloatArray:
    """Corners of a band, which is cut where the picture ends."""
    upper, lower = (np.minimum(end, frame.y[1]) for end in (high, low))
    return np.concatenate([np.stack([x, upper], axis=1), np.stack([x, lower], axis=1)[::-1]])


def _bars(curve: DensityCurve, frame: PlotArea) -> str:
    parts = []
    last = -np.inf
    for atom in sorted(curve.atoms, key=lambda one: one.value):
        x, y = (float(v) for v in frame.at(np.array([[atom.value, curve.bar(atom)]]))[0])
        bottom = frame.top + frame.height
        parts.append(element("line", x1=x, x2=x, y1=bottom, y2=y, stroke=HUES[1], class_="atom"))
        # a label that would cover its neighbour's is left out: the table has it
        if x - last > 34:
            words = f"{significant(100 * float(atom.share.value), 2)}%"
            inside = min(max(x, frame.left + 16), frame.left + frame.width - 16)
            parts.append(element("text", text=words, x=inside, y=y - 7, class_="atom-label middle"))
            last = x
    return "".join(parts)


def _wall_marks(dense_ends: Sequence[str], frame: PlotArea) -> str:
    """A line along each end at which the density is highest."""
    parts = []
    for side in dense_ends:
        x = frame.left + (2.0 if side == "low" else frame.width - 2.0)
        bottom = frame.top + frame.height
        parts.append(element("line", x1=x, x2=x, y1=bottom, y2=frame.top, stroke=HUES[3], class_="atom"))
        shift, anchor = (8.0, "") if side == "low" else (-8.0, " end")
        words = "densest at this end"
        parts.append(element("text", text=words, x=x + shift, y=frame.top + 18, class_=f"atom-label{anchor}"))
    return "".join(parts)


def _empty_marks(curve: DensityCurve, frame: PlotArea) -> str:
    """Grey where hardly anyone is."""
    parts = []
    for low, high, _ in curve.empty:
        (left, _), (right, _) = frame.at(np.array([[low, 0.0], [high, 0.0]])).tolist()
        parts.append(element("rect", x=left, y=frame.top, width=right - left, height=frame.height, class_="empty"))
        if right - left > 64:
            middle = (left + right) / 2
            # at the top: at the bottom it would lie under the band
            parts.append(element("text", text="empty", x=middle, y=frame.top + 16, class_="tick-label middle"))
    return "".join(parts)


def _levels(frame: PlotArea, plane: DensityPlane) -> str:
    axes, values = plane.field
    levels, hues = mass_levels(plane.values), shades(BLUE)
    drawn: list[str] = []
    for k, level in enumerate(levels):
        if k and level <= levels[k - 1]:
            continue
        shape = outline(frame, axes, values, float(level))
        drawn.append(element("path", d=shape, fill=hues[k], stroke=mix(hues[k], INK, 0.22), class_="level"))
    return "".join(drawn)


def pair_map(plane: DensityPlane) -> str:
    """Draw two columns of three."""
    frame = PAIR.area(*plane.bounds)
    return canvas(
        PAIR.width,
        PAIR.height,
        f"Map of the density of {short(plane.names[0])} and {short(plane.names[1])}",
        frame.border("paper"),
        _levels(frame, plane),
        frame.border(),
        frame.axes(plane.labels(26), wanted=PAIR.ticks),
        class_=PAIR.class_,
    )


def posterior_map(plane: DensityPlane, curves: Sequence[DensityCurve]) -> str:
    """Draw two columns as a map, with each column's own curve at its side."""

    def draw(layout: Layout) -> str:
        frame = layout.area(*plane.bounds)
        names = plane.labels(26 if layout.narrow else 42)
        return canvas(
            layout.width,
            layout.height,
            f"Map of the density of {short(plane.names[0])} and {short(plane.names[1])} with its margins",
            frame.border("paper"),
            _levels(frame, plane),
            frame.border(),
            frame.axes(names, wanted=layout.ticks),
            _margins(curves, frame, layout),
            class_=layout.class_,
        )

    return in_two_sizes(draw, WIDE_MAP, NARROW_MAP)


def _margins(curves: Sequence[DensityCurve], frame: PlotArea, layout: Layout) -> str:
    """Curve of the first column above the map, of the second to its right, with their bands and atoms."""
    gap = 8.0
    above = PlotArea(frame.left, 8.0, frame.width, layout.top - gap - 8.0, frame.x, (0.0, curves[0].top))
    depth = layout.right - gap - 8.0
    parts = [_band(curves[0], above), *_ticks_of_atoms(curves[0], above)]
    left, top = frame.left + frame.width + gap, curves[1].top
    places, value, low, high = curves[1].outlines(frame.y)

    def beside(height: FloatArray) -> FloatArray:
        across = left + depth * np.clip(height / top, 0.0, 1.0)
        up = frame.at(np.stack([np.full(len(places), frame.x[0]), places], axis=1))[:, 1]
        return np.stack([across, up], axis=1)

    edge = np.concatenate([beside(high), beside(low)[::-1]])
    curve = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in beside(value).tolist())
    parts += [
        element("path", d=path([edge]), fill=HUES[0], class_="band"),
        element("path", d=curve, class_="curve"),
    ]
    for atom in curves[1].atoms:
        y = float(frame.at(np.array([[frame.x[0], atom.value]]))[0, 1])
        reach = left + depth * curves[1].bar(atom) / top
        parts.append(element("line", x1=left, x2=reach, y1=y, y2=y, stroke=HUES[1], class_="atom"))
    return "".join(parts)


def _ticks_of_atoms(curve: DensityCurve, frame: PlotArea) -> list[str]:
    bottom = frame.top + frame.height
    parts = []
    for atom in curve.atoms:
        x, y = (float(v) for v in frame.at(np.array([[atom.value, curve.bar(atom)]]))[0])
        parts.append(element("line", x1=x, x2=x, y1=bottom, y2=y, stroke=HUES[1], class_="atom"))
    return parts


# -- matplotlib ---------------------------------------------------------------------------------------------------


def draw_curve(curve: DensityCurve, ax: Axes) -> Axes:
    """Draw a curve on matplotlib axes."""
    x, value, low, high = curve.outlines(curve.limits)
    ax.fill_between(x, low, high, color="C0", alpha=0.3, linewidth=0, label=f"{curve.band.level:.0%} band")
    ax.plot(x, value, color="C0", label="density")
    for k, atom in enumerate(curve.atoms):
        named: dict[str, Any] = {"label": "atoms, as shares"} if k == 0 else {}
        ax.plot([atom.value] * 2, [0.0, curve.bar(atom)], color="C1", linewidth=3, **named)
        ax.annotate(f"{float(atom.share.value):.0%}", (atom.value, curve.bar(atom)), ha="center", va="bottom")
    ax.set_xlim(*curve.limits)
    ax.set_ylim(0.0, curve.top)
    ax.set_xlabel(axis_label(curve.name, curve.unit))
    ax.set_ylabel("density")
    ax.legend()
    return ax


def draw_plane(plane: DensityPlane, ax: Axes) -> Axes:
    """Draw a map on matplotlib axes: shades that hold known shares of the population."""
    axes, values = plane.field
    levels = np.unique(mass_levels(plane.values))
    if len(levels) and levels[-1] < values.max():
        ax.contourf(*axes, values.T, levels=[*levels, float(values.max())], cmap="Blues")
    ax.set_xlim(*plane.bounds[0])
    ax.set_ylim(*plane.bounds[1])
    across, up = plane.labels()
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    return ax


# -- several groups -------------------------------------------------------------------------------------------------

WIDE_GROUPS = Layout(880, 420, left=78, top=38, right=22, bottom=56)
NARROW_GROUPS = Layout(360, 340, left=56, top=14, right=10, bottom=52, ticks=4, narrow=True)
MOST_LEGEND = 5
"""Most names in the legend of a drawing; the table beside it has them all."""

LEGEND_LINE = 20.0
"""Height of a name of the legend on a phone."""


def group_curves(curves: Sequence[tuple[str, DensityCurve]]) -> str:
    """Draw one column of several groups over each other, each with its band, in the colours of the table."""
    top = max(curve.top for _, curve in curves)
    first = curves[0][1]
    label = partial(axis_label, first.name, first.unit)

    def draw(layout: Layout) -> str:
        frame = layout.area(first.limits, (0.0, top))
        bands, lines = [], []
        for k, (_, curve) in enumerate(curves):
            x, value, low, high = curve.outlines(frame.x)
            hue, shape = HUES[k % len(HUES)], line(frame, x, np.minimum(value, top))
            edge = frame.at(_around(x, low, high, frame))
            bands.append(element("path", d=path([edge]), fill=hue, class_="noise"))
            lines.append(element("path", d=shape, stroke=hue, class_="law"))
        return canvas(
            layout.width,
            layout.height,
            f"Curves of the density of {short(first.name)} in each group",
            frame.border("paper"),
            *bands,
            *lines,
            frame.border(),
            frame.axes((label(26 if layout.narrow else 42), "density"), wanted=layout.ticks),
            _legend([name for name, _ in curves], layout),
            class_=layout.class_,
        )

    lines = LEGEND_LINE * min(len(curves), MOST_LEGEND)
    taller = replace(NARROW_GROUPS, height=NARROW_GROUPS.height + lines, top=NARROW_GROUPS.top + lines)
    return in_two_sizes(draw, WIDE_GROUPS, taller)


def draw_groups(curves: Sequence[tuple[str, DensityCurve]], ax: Axes) -> Axes:
    """Draw one column of several groups over each other on matplotlib axes, each with its band."""
    for k, (name, curve) in enumerate(curves):
        x, value, low, high = curve.outlines(curve.limits)
        ax.fill_between(x, low, high, color=f"C{k}", alpha=0.25, linewidth=0)
        ax.plot(x, value, color=f"C{k}", label=name)
    first = curves[0][1]
    ax.set_xlim(*first.limits)
    ax.set_ylim(0.0, max(curve.top for _, curve in curves))
    ax.set_xlabel(axis_label(first.name, first.unit))
    ax.set_ylabel("density")
    ax.legend()
    return ax


def _legend(names: Sequence[str], layout: Layout) -> str:
    """Names with their colours above a drawing: side by side, or below each other on a phone."""
    shown = names[:MOST_LEGEND]
    across = layout.width - layout.left - layout.right
    most = int((across / (1 if layout.narrow else len(shown)) - 58) / 7.8)
    parts, x, y = [], layout.left, 18.0
    for k, words in enumerate(legend_words(shown, most)):
        parts.append(element("path", d=f"M{x:.0f} {y:.0f}h26", stroke=HUES[k % len(HUES)], class_="law"))
        parts.append(element("text", text=words, x=x + 34, y=y + 5, class_="row-label"))
        x, y = (x, y + LEGEND_LINE) if layout.narrow else (x + 58.0 + 7.8 * len(words), y)
    return "".join(parts)


def legend_words(names: Sequence[str], most: int) -> list[str]:
    """Names of at most this many characters; where that makes two alike, their ends are kept instead.

    Examples
    --------
    >>> legend_words(["visits 2024", "lab"], 8), legend_words(["visits 2024", "visits 2025"], 8)
    (['visits …', 'lab'], ['…ts 2024', '…ts 2025'])
    """
    cut = [short(name, most) for name in names]
    if len(set(cut)) == len(set(names)):
        return cut
    return [name if len(name) <= most else "…" + name[1 - most :] for name in names]
