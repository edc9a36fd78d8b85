"""Parts that the pictures of a density share: canvas, shades, level lines, marked positions.

A density over two axes: level sets in one colour, or each region in the colour of its mode or cluster.

A density along one axis: a curve with its noise, each stretch in the colour of its mode or cluster.

The pictures of the report, as inline SVG: a map (d = 2), a curve (d = 1) or three marginal maps (d = 3).

Axis limits are the public bounds; everything drawn is read from the release.

A picture of a released density in any number of axes: one gives a curve, two or more a map of two of them.

Where there are more than two axes, a third axis of a grid is summed over; random features are read on the plane
through each centre, each place at the centre where it is densest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter
from scipy.special import gammaincinv

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.modes.search import search_of
from fogline.density.private_density import PrivateDensity
from fogline.report._svg import (
    HUES,
    PlotArea,
    contour_loops,
    element,
    error_ellipse,
    mix,
    path,
    short,
)
from fogline.report.modes import Findings

__all__ = [
    "BLUE",
    "FOG",
    "INK",
    "LEVELS",
    "MOST_COLUMNS",
    "PAPER",
    "Layout",
    "Plane",
    "Profile",
    "Space",
    "badge",
    "canvas",
    "density_levels",
    "ellipse_radius",
    "figures",
    "free_spot",
    "heat",
    "in_two_sizes",
    "is_sliced",
    "line",
    "outline",
    "picture_of",
    "pictures_of",
    "plane_map",
    "position_marks",
    "profile_areas",
    "profile_curve",
    "profile_marks",
    "read_plane",
    "shades",
    "telling_columns",
]


PAPER, INK, FOG = "#f6f8f9", "#16232c", "#8fa3ad"
LEVELS = 10


def ellipse_radius(share: float, d: int = 2) -> float:
    """Standard deviations within which a Gaussian law of some dimensions has a share of its mass.

    Examples
    --------
    >>> round(ellipse_radius(0.95), 3), round(ellipse_radius(0.95, 1), 3)
    (2.448, 1.96)
    """
    return float(np.sqrt(2 * gammaincinv(d / 2, share)))  # chi-squared; scipy.stats takes half a second to load


RADIUS = ellipse_radius(0.95)


def canvas(width: float, height: float, label: str, *children: str, class_: str) -> str:
    """Return a drawing with a name for those who do not see it."""
    return element(
        "svg",
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=label,
        class_=class_,
    )


@dataclass(frozen=True)
class Layout:
    """Size of a drawing, and what is left around its plot area.

    Attributes
    ----------
    width, height : float
    left, top, right, bottom : float
        Margins.
    ticks : int
        About how many ticks an axis has.
    narrow : bool
        Whether the drawing is the one for a phone, which a wide screen hides.
    """

    width: float
    height: float
    left: float
    top: float
    right: float
    bottom: float
    ticks: int = 6
    narrow: bool = False

    def area(self, x: tuple[float, float], y: tuple[float, float]) -> PlotArea:
        """Plot area within the margins, for ranges of the data."""
        inner = self.width - self.left - self.right, self.height - self.top - self.bottom
        return PlotArea(self.left, self.top, *inner, x, y)

    @property
    def class_(self) -> str:
        """Class of the drawing."""
        return "figure narrow" if self.narrow else "figure"


def in_two_sizes(draw: Callable[[Layout], str], wide: Layout, narrow: Layout) -> str:
    """Draw for a desk and for a phone: the page's style shows one of them, whose letters can be read."""
    return element("div", draw(wide), class_="on-desk") + element("div", draw(narrow), class_="on-phone")


def density_levels(values: FloatArray, floor: float) -> FloatArray:
    """Levels to draw, from a floor of noise to the top; none where nothing is positive."""
    top = float(values.max())
    if top <= 0:
        return np.zeros(0)
    # Below the floor there is noise; but a peak lost in it still gets a shape.
    low = min(max(floor, 0.03 * top), 0.5 * top)
    return np.linspace(low, top, LEVELS + 1)[:-1]


def shades(hue: str) -> list[str]:
    """Colours of the levels, from the lowest up."""
    light = [mix(PAPER, hue, 0.14 + 0.74 * i / (LEVELS - 1)) for i in range(LEVELS)]
    return [mix(shade, INK, 0.35 * max(0.0, i / (LEVELS - 1) - 0.6)) for i, shade in enumerate(light)]


def outline(frame: PlotArea, axes: tuple[FloatArray, ...], values: FloatArray, level: float) -> str:
    """Path around the places of a grid (first axis across, second up) at or above a level."""
    loops = []
    for loop in contour_loops(values, level):
        points = np.stack([np.interp(loop[:, j], np.arange(len(axes[j])), axes[j]) for j in (0, 1)], axis=1)
        loops.append(frame.at(points))
    return path(loops)


def position_marks(
    frame: PlotArea, places: FloatArray, covariances: FloatArray, *, hues: Sequence[str] = HUES, radius: float = RADIUS
) -> str:
    """Draw points with their errors: a dot, a 95% ellipse, a numbered badge that keeps clear of the others.

    ``places`` has shape (k, 2) and ``covariances`` shape (k, 2, 2), in the units of the frame's axes.
    """
    spots = frame.at(places) if len(places) else np.zeros((0, 2))
    parts, taken = [], [tuple(p) for p in spots]
    for k in range(len(places)):
        for class_ in ("ellipse-halo", "ellipse"):
            parts.append(error_ellipse(frame, places[k], covariances[k], radius, class_))
        x, y = (float(v) for v in spots[k])
        parts.append(element("circle", cx=x, cy=y, r=2.6, class_="dot"))
        reach = radius * float(np.sqrt(np.max(np.diag(covariances[k]) * frame.pixels**2)))
        spot = free_spot((x, y), reach + 17, taken, frame)
        taken.append(spot)
        parts.append(badge(k, spot, hue=hues[k % len(hues)]))
    return "".join(parts)


def badge(k: int, spot: tuple[float, float], radius: float = 10.5, *, hue: str) -> str:
    """Draw a numbered disc."""
    x, y = spot
    return element(
        "g",
        element("circle", cx=x, cy=y, r=radius, fill=hue, class_="badge"),
        element("text", text=str(k + 1), x=x, y=y + 4.3, class_="badge-label middle"),
    )


def free_spot(
    centre: tuple[float, float], reach: float, taken: list[tuple[float, ...]], frame: PlotArea
) -> tuple[float, float]:
    """Place within the frame, about ``reach`` from a centre, that is farthest from what is taken."""
    best, score = centre, -np.inf
    for stretch in (1.0, 1.6):
        for step in range(16):
            angle = np.pi * (step / 8 + 0.25)
            x = centre[0] + stretch * reach * float(np.cos(angle))
            y = centre[1] - stretch * reach * float(np.sin(angle))
            inside = (
                frame.left + 12 < x < frame.left + frame.width - 12
                and frame.top + 12 < y < frame.top + frame.height - 12
            )
            clearance = min((float(np.hypot(x - a, y - b)) for a, b in taken), default=99.0)
            # Beyond a badge's width more room is worth nothing; nearer spots and those to the upper right come first.
            worth = min(clearance, 24.0) - 6 * stretch - 0.05 * step - (0 if inside else 50)
            if worth > score:
                best, score = (x, y), worth
    return best


def line(frame: PlotArea, x: FloatArray, y: FloatArray) -> str:
    """Path along a curve, not closed."""
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in frame.at(np.stack([x, y], axis=1)).tolist())


def line_within(frame: PlotArea, x: FloatArray, y: FloatArray) -> str:
    """Path along a curve, broken where it leaves the picture at the top instead of running along its edge."""
    top = frame.y[1]
    high = np.where(np.isfinite(y), y, 1e3 * abs(top) + 1.0)
    ends = np.flatnonzero(np.diff(np.concatenate([[0], (high <= top).astype(np.int8), [0]]))).reshape(-1, 2)

    def crossing(inner: int, outer: int) -> tuple[float, float]:
        part = (top - high[inner]) / (high[outer] - high[inner])
        return float(x[inner] + part * (x[outer] - x[inner])), top

    parts = []
    for start, stop in ends.tolist():
        points = [(float(a), float(b)) for a, b in zip(x[start:stop], high[start:stop], strict=True)]
        before = [crossing(start, start - 1)] if start > 0 else []
        after = [crossing(stop - 1, stop)] if stop < len(x) else []
        shown = np.array([*before, *points, *after])
        parts.append(line(frame, shown[:, 0], shown[:, 1]))
    return "".join(parts)


MARGIN = 3.0
BLUE = "#3d6a86"
GREY = "#8a98a1"


@dataclass(frozen=True, eq=False)
class Plane:
    """What a map shows: released values only.

    Attributes
    ----------
    names : two str
    bounds : two pairs of float
        Limits of the picture.
    axes : two arrays
        Coordinates of the grid, across and up.
    values : array of shape (len(axes[0]), len(axes[1]))
        The density.
    labels : array of int of the same shape
        Whose each place is; -1 for no one's.
    floor : float
        Below it there is only noise.
    places : array of shape (k, 2)
    covariances : array of shape (k, 2, 2)
    """

    names: tuple[str, str]
    bounds: tuple[tuple[float, float], tuple[float, float]]
    axes: tuple[FloatArray, FloatArray]
    values: FloatArray
    labels: IntArray
    floor: float
    places: FloatArray
    covariances: FloatArray


WIDE_PLANE = Layout(660, 528, left=64, top=10, right=16, bottom=48)
NARROW_PLANE = Layout(360, 350, left=56, top=10, right=12, bottom=50, ticks=4, narrow=True)


def plane_map(plane: Plane) -> str:
    """Draw filled contours, each region in its own colour, with the marked places and their error ellipses."""
    return in_two_sizes(lambda layout: _plane_drawing(plane, layout), WIDE_PLANE, NARROW_PLANE)


def _plane_drawing(plane: Plane, layout: Layout) -> str:
    frame = layout.area(*plane.bounds)
    # A page holds both sizes, and names in it must differ.
    lead = "narrow-" if layout.narrow else ""
    levels = density_levels(plane.values, plane.floor)
    shapes = [outline(frame, plane.axes, plane.values, level) for level in levels]
    defs = [element("path", id=f"{lead}level-{i}", d=shape) for i, shape in enumerate(shapes) if shape]
    borders = []
    for k in range(len(plane.places)):
        # Basins clip copies of the same contours, so a drawing holds each contour once.
        region = outline(frame, plane.axes, _soft_region(plane.labels, k), 0.5)
        defs.append(element("clipPath", element("path", d=region, clip_rule="evenodd"), id=f"{lead}basin-{k}"))
        borders.append(element("path", d=region, class_="basin"))
    if borders and shapes:  # only where regions meet: their outer rim lies below the lowest level
        defs.append(element("clipPath", element("path", d=shapes[0], clip_rule="evenodd"), id=f"{lead}shown"))
        borders = [element("g", *borders, clip_path=f"url(#{lead}shown)")]
    layers = [_stack(len(levels), GREY, lead)]
    layers += [
        element("g", _stack(len(levels), HUES[k % len(HUES)], lead), clip_path=f"url(#{lead}basin-{k})")
        for k in range(len(plane.places))
    ]
    most = 26 if layout.narrow else 42
    return canvas(
        layout.width,
        layout.height,
        f"Map of the released density of {short(plane.names[0])} and {short(plane.names[1])}",
        element("defs", *defs) if defs else "",
        frame.border("paper"),
        *layers,
        *borders,
        frame.border(),
        frame.axes((short(plane.names[0], most), short(plane.names[1], most)), wanted=layout.ticks),
        position_marks(frame, plane.places, plane.covariances),
        class_=layout.class_,
    )


def heat(frame: PlotArea, axes: tuple[FloatArray, FloatArray], values: FloatArray, floor: float) -> str:
    """Draw filled contours in one colour."""
    painted = zip(density_levels(values, floor), shades(BLUE), strict=False)
    return "".join(
        element("path", d=outline(frame, axes, values, level), fill=shade, stroke=mix(shade, INK, 0.22), class_="level")
        for level, shade in painted
    )


def _stack(levels: int, hue: str, lead: str) -> str:
    """Paint the level sets from the lowest up."""
    painted = shades(hue)
    return "".join(
        element("use", href=f"#{lead}level-{i}", fill=painted[i], stroke=mix(painted[i], INK, 0.22), class_="level")
        for i in range(levels)
    )


def _soft_region(labels: IntArray, k: int) -> FloatArray:
    """Region of a mode with a margin into the fog, each place to the nearest region, smoothed for the eye."""
    # Without a margin the lowest contour would be cut where the labels end.
    away, nearest = distance_transform_edt(labels < 0, return_indices=True)
    mine = (labels[tuple(nearest)] == k) & (away <= MARGIN)
    return np.asarray(gaussian_filter(mine.astype(np.float64), 1.0, mode="nearest"))


PROFILE_RADIUS = ellipse_radius(0.95, 1)


@dataclass(frozen=True, eq=False)
class Profile:
    """What a curve shows: released values only.

    Attributes
    ----------
    name : str
    bounds : pair of float
        Limits of the picture.
    axis : array of shape (n,)
    values, sd : arrays of shape (n,)
        The density and its standard error.
    labels : array of int of shape (n,)
        Whose each place is; -1 for no one's.
    places, errors : arrays of shape (k,)
        Marked places and their standard errors.
    """

    name: str
    bounds: tuple[float, float]
    axis: FloatArray
    values: FloatArray
    sd: FloatArray
    labels: IntArray
    places: FloatArray
    errors: FloatArray


WIDE_PROFILE = Layout(880, 396, left=78, top=10, right=22, bottom=56)
NARROW_PROFILE = Layout(360, 320, left=56, top=10, right=12, bottom=50, ticks=4, narrow=True)


def profile_curve(profile: Profile, *, fog_band: tuple[FloatArray, FloatArray] | None = None) -> str:
    """Draw the curve, and the fog between two curves if there is one."""
    f, sd = profile.values, profile.sd
    shore = f if fog_band is None else fog_band[1]
    # An empty release has a flat curve at zero; the frame still needs a height.
    top = 1.14 * float(max((f + 2 * sd).max(), shore.max(), np.finfo(float).tiny))
    limits = min(0.0, 1.05 * float((f - 2 * sd).min())), top
    return in_two_sizes(
        lambda layout: _profile_drawing(profile, layout, limits, fog_band), WIDE_PROFILE, NARROW_PROFILE
    )


def _profile_drawing(
    profile: Profile, layout: Layout, limits: tuple[float, float], fog_band: tuple[FloatArray, FloatArray] | None
) -> str:
    x, f, sd = profile.axis, profile.values, profile.sd
    frame = layout.area(profile.bounds, limits)
    edge = np.concatenate([np.stack([x, f + 2 * sd], axis=1), np.stack([x, f - 2 * sd], axis=1)[::-1]])
    return canvas(
        layout.width,
        layout.height,
        f"Curve of the released density of {short(profile.name)}",
        frame.border("paper"),
        profile_areas(profile, frame),
        "" if fog_band is None else _fog(frame, x, *fog_band),
        element("path", d=path([frame.at(edge)]), fill=INK, class_="noise"),
        element("path", d=line(frame, x, f), class_="curve"),
        frame.border(),
        frame.axes((short(profile.name, 26 if layout.narrow else 42), "density"), wanted=layout.ticks),
        profile_marks(profile, frame),
        class_=layout.class_,
    )


def profile_areas(profile: Profile, frame: PlotArea) -> str:
    """Fill what lies under the curve, stretch by stretch."""
    x, f = profile.axis, profile.values
    areas = []
    for k in range(len(profile.places)):
        for run in _runs(profile.labels == k):
            under = np.stack([x[run], np.clip(f[run], 0, frame.y[1])], axis=1)
            ends = np.array([[x[run][-1], 0.0], [x[run][0], 0.0]])
            shape = path([frame.at(np.concatenate([under, ends]))])
            areas.append(element("path", d=shape, fill=mix(PAPER, HUES[k % len(HUES)], 0.42)))
    return "".join(areas)


def _fog(frame: PlotArea, x: FloatArray, base: FloatArray, shore: FloatArray) -> str:
    parts = []
    for run in _runs_of_equal(base):
        floor = np.full(len(x[run]), base[run.start])
        top = floor + (shore - base)[run]
        edge = np.concatenate([np.stack([x[run], top], axis=1), np.stack([x[run], floor], axis=1)[::-1]])
        parts.append(element("path", d=path([frame.at(edge)]), fill=FOG, class_="fog"))
        parts.append(element("path", d=line(frame, x[run], top), class_="fogline"))
    return "".join(parts)


def _runs(mask: BoolArray) -> list[slice]:
    """Give stretches of a mask, each one point longer than it is, so that neighbours touch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return [slice(int(a), int(b) + 1) for a, b in edges.reshape(-1, 2)]


def _runs_of_equal(values: FloatArray) -> list[slice]:
    cuts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return [slice(a, b + 1) for a, b in pairwise(cuts)]


def profile_marks(profile: Profile, frame: PlotArea) -> str:
    """Draw places: a dot on the curve, a 95% whisker, a numbered badge."""
    parts: list[str] = []
    taken: list[tuple[float, ...]] = []
    for k, (place, error) in enumerate(zip(profile.places.tolist(), profile.errors.tolist(), strict=True)):
        height = min(float(np.interp(place, profile.axis, profile.values)), frame.y[1])
        x, y = (float(v) for v in frame.at(np.array([[place, height]]))[0])
        half = PROFILE_RADIUS * error * float(frame.pixels[0])
        parts.append(element("line", x1=x - half, x2=x + half, y1=y, y2=y, class_="whisker-halo"))
        parts.append(element("line", x1=x - half, x2=x + half, y1=y, y2=y, class_="whisker"))
        parts.append(element("circle", cx=x, cy=y, r=3.2, class_="dot"))
        spot = free_spot((x, y - 8), 20, taken, frame)
        taken.append(spot)
        parts.append(badge(k, spot, hue=HUES[k % len(HUES)]))
    return "".join(parts)


def figures(findings: Findings) -> list[str]:
    """Draw the density: one picture, or three for three columns."""
    if findings.d == 1:
        return [curve(findings)]
    if findings.d == 2:
        return [density_map(findings)]
    return [marginal_map(findings, i, j) for i, j in ((0, 1), (0, 2), (1, 2))]


# -- two columns ------------------------------------------------------------------------------------------


def density_map(findings: Findings) -> str:
    """Draw filled contours, each basin in the colour of its mode, with modes and their error ellipses."""
    return plane_map(_plane_of(findings))


def _plane_of(findings: Findings) -> Plane:
    """The map of two columns."""
    grid = findings.basins.grid
    places, covariances = _places(findings, 0, 1)
    return Plane(
        names=(findings.columns[0], findings.columns[1]),
        bounds=(findings.bounds[0], findings.bounds[1]),
        axes=(grid.axes[0], grid.axes[1]),
        values=grid.values,
        labels=findings.basins.labels,
        floor=2 * findings.noise_sd,
        places=places,
        covariances=covariances,
    )


def pictures_of(findings: Findings) -> list[Plane | Profile]:
    """What is drawn of modes: a curve, a map, or the maps of three pairs."""
    if findings.d == 1:
        return [_profile_of(findings)]
    if findings.d == 2:
        return [_plane_of(findings)]
    return [_marginal_plane(findings, i, j) for i, j in ((0, 1), (0, 2), (1, 2))]


def _places(findings: Findings, i: int, j: int) -> tuple[FloatArray, FloatArray]:
    """Modes and their covariances along two columns."""
    return findings.modes[:, [i, j]], findings.covariances[:, [[i], [j]], [i, j]]


# -- three columns ----------------------------------------------------------------------------------------


def _marginal_plane(findings: Findings, i: int, j: int) -> Plane:
    """The map of two columns of three, the third summed over."""
    grid = findings.basins.grid
    (other,) = {0, 1, 2} - {i, j}
    values = grid.values.sum(axis=other) * float(grid.axes[other][1] - grid.axes[other][0])
    places, covariances = _places(findings, i, j)
    return Plane(
        names=(findings.columns[i], findings.columns[j]),
        bounds=(findings.bounds[i], findings.bounds[j]),
        axes=(grid.axes[i], grid.axes[j]),
        values=values,
        labels=np.full(values.shape, -1, dtype=np.int64),
        floor=0.05 * float(values.max()),
        places=places,
        covariances=covariances,
    )


def marginal_map(findings: Findings, i: int, j: int) -> str:
    """Draw the density of two columns, the third summed over."""
    plane = _marginal_plane(findings, i, j)
    frame = PlotArea(56, 8, 286, 262, *plane.bounds)
    names = plane.names
    return canvas(
        356,
        318,
        f"Map of the released density of {short(names[0])} and {short(names[1])}",
        frame.border("paper"),
        heat(frame, plane.axes, plane.values, plane.floor),
        frame.border(),
        frame.axes((short(names[0], 26), short(names[1], 26)), wanted=5),
        position_marks(frame, plane.places, plane.covariances),
        class_="figure",
    )


# -- one column -------------------------------------------------------------------------------------------


def curve(findings: Findings) -> str:
    """Draw the density with its noise, and the fog out of which each peak must rise."""
    fog_band = (findings.fog_base, findings.fog_base + findings.fog_height)
    return profile_curve(_profile_of(findings), fog_band=fog_band)


def _profile_of(findings: Findings) -> Profile:
    """The curve of one column."""
    grid = findings.basins.grid
    return Profile(
        name=findings.columns[0],
        bounds=findings.bounds[0],
        axis=grid.axes[0],
        values=grid.values,
        sd=np.hypot(findings.noise_sd, findings.sampling_sd),
        labels=findings.basins.labels,
        places=findings.modes[:, 0],
        errors=np.sqrt(findings.covariances[:, 0, 0]),
    )


MOST_COLUMNS = 6
"""A table of more columns than this shows those in which what it lists differs most."""

RESOLUTION = 60
"""Points per axis of a picture that is not read from a grid."""

DRAWN_BASIN_FLOOR = 2.0
"""A place is someone's where the density is at least this many deviations of its privacy noise."""


@dataclass(frozen=True, eq=False)
class Space:
    """Axes of a density and what stands in it.

    Attributes
    ----------
    density : PrivateDensity
    names : tuple of str
        Of the axes.
    centers : array of shape (k, r)
        Modes or centres of clusters.
    covariances : array of shape (k, r, r)
        Of their errors.
    pair : two int
        Axes of the map.
    label : callable
        Takes places of shape (p, r), gives the number of the centre that each belongs to.
    """

    density: PrivateDensity
    names: tuple[str, ...]
    centers: FloatArray
    covariances: FloatArray
    pair: tuple[int, int]
    label: Callable[[FloatArray], IntArray]

    def labels(self, places: FloatArray, values: FloatArray, floor: float) -> IntArray:
        """Whose each place is, -1 where the density is lost in the noise."""
        if not len(self.centers):
            return np.full(len(places), -1, dtype=np.int64)
        return np.where(values >= floor, self.label(places), -1).astype(np.int64)


def telling_columns(centers: FloatArray, bounds: FloatArray, most: int) -> list[int]:
    """Return the columns, in their order, in which released centres differ most for the columns' ranges.

    Examples
    --------
    >>> telling_columns(np.array([[0.0, 5.0, 1.0], [1.0, 5.1, 9.0]]), np.array([[0, 2], [0, 9], [0, 9]]), 2)
    [0, 2]
    """
    d = len(bounds)
    if d <= most or len(centers) < 2:
        # One centre, or none, does not tell columns apart.
        return list(range(min(d, most)))
    # Differences are compared in parts of the public ranges: columns have different units.
    spread = np.ptp(centers, axis=0) / (bounds[:, 1] - bounds[:, 0])
    return sorted(np.argsort(-spread, kind="stable")[:most].tolist())


def is_sliced(density: PrivateDensity) -> bool:
    """Whether a map of the density is made of planes through the centres."""
    return density.spec.d > 2 and not search_of(density.spec).has_grid


def picture_of(space: Space, bandwidth: FloatArray) -> Plane | Profile:
    """Read the picture; costs no privacy."""
    return _profile(space, bandwidth) if space.density.spec.d == 1 else read_plane(space, bandwidth)


def _profile(space: Space, bandwidth: FloatArray) -> Profile:
    density = space.density
    low, high = (float(end) for end in density.spec.bounds[0])
    # A curve has room for more points than a map has along each axis.
    axis = np.linspace(low, high, 4 * RESOLUTION)
    values = density.pdf(axis[:, None], bandwidth)
    kernel = 1 / (2 * np.sqrt(np.pi) * float(bandwidth[0]))
    noise = density.noise_sd(bandwidth)
    return Profile(
        name=space.names[0],
        bounds=(low, high),
        axis=axis,
        values=values,
        sd=np.hypot(noise, np.sqrt(kernel * np.maximum(values, 0) / density.count)),
        labels=space.labels(axis[:, None], values, DRAWN_BASIN_FLOOR * noise),
        places=space.centers[:, 0],
        errors=np.sqrt(space.covariances[:, 0, 0]),
    )


def read_plane(space: Space, bandwidth: FloatArray) -> Plane:
    """Read a map of two axes; costs no privacy."""
    i, j = space.pair
    read = _from_grid if search_of(space.density.spec).has_grid else _sliced
    axes, values, places, floor = read(space, bandwidth)
    bounds = [(float(low), float(high)) for low, high in space.density.spec.bounds]
    return Plane(
        names=(space.names[i], space.names[j]),
        bounds=(bounds[i], bounds[j]),
        axes=axes,
        values=values,
        labels=space.labels(places, values.ravel(), floor).reshape(values.shape),
        floor=floor,
        places=space.centers[:, [i, j]],
        covariances=space.covariances[:, [[i], [j]], [i, j]],
    )


Field = tuple[tuple[FloatArray, FloatArray], FloatArray, FloatArray, float]
"""Axes of the picture, the density on their grid, a place of the space for each point, and the noise floor."""


def _from_grid(space: Space, bandwidth: FloatArray) -> Field:
    density, (i, j) = space.density, space.pair
    grid = density.grid(bandwidth)
    axes = (grid.axes[i], grid.axes[j])
    flat = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    if density.spec.d == 2:
        return axes, grid.values, flat, DRAWN_BASIN_FLOOR * density.noise_sd(bandwidth)
    (other,) = {0, 1, 2} - {i, j}
    # Whose a place of the map is, is asked where the column that was summed over is densest.
    best = grid.axes[other][np.argmax(grid.values, axis=other)].ravel()
    values = grid.values.sum(axis=other) * float(grid.axes[other][1] - grid.axes[other][0])
    return axes, values, np.insert(flat, other, best, axis=1), 0.05 * float(values.max())


def _sliced(space: Space, bandwidth: FloatArray) -> Field:
    density, pair = space.density, list(space.pair)
    bounds = np.asarray(density.spec.bounds)
    across, up = (np.linspace(bounds[a, 0], bounds[a, 1], RESOLUTION) for a in pair)
    flat = np.stack(np.meshgrid(across, up, indexing="ij"), axis=-1).reshape(-1, 2)
    through = space.centers if len(space.centers) else bounds.mean(axis=1)[None]
    # One plane through each centre; a map shows at each place the plane in which it is densest.
    planes = np.repeat((through if density.spec.d > 2 else through[:1])[:, None], len(flat), axis=1)
    planes[:, :, pair] = flat
    read = np.stack([density.pdf(plane, bandwidth) for plane in planes])
    densest, points = np.argmax(read, axis=0), np.arange(len(flat))
    values = read[densest, points].reshape(RESOLUTION, RESOLUTION)
    return (across, up), values, planes[densest, points], DRAWN_BASIN_FLOOR * density.noise_sd(bandwidth)
