"""The pictures of the report, as inline SVG: a map (d = 2), a curve (d = 1) or three marginal maps (d = 3).

Axis limits are the public bounds; everything drawn is read from the release.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter
from scipy.stats import chi2

from fogline.report.contours import contour_loops
from fogline.report.findings import Findings
from fogline.report.svg import HUES, Frame, element, error_ellipse, mix, path, short

__all__ = ["figures"]

FloatArray = NDArray[np.float64]

PAPER, INK, FOG = "#f6f8f9", "#16232c", "#8fa3ad"
LEVELS = 10
MARGIN = 3.0
RADIUS = float(np.sqrt(chi2.ppf(0.95, 2)))
RADIUS_1D = float(np.sqrt(chi2.ppf(0.95, 1)))


def figures(findings: Findings) -> list[str]:
    """Draw the density: one picture, or three for three columns."""
    if findings.d == 1:
        return [curve(findings)]
    if findings.d == 2:
        return [density_map(findings)]
    return [marginal_map(findings, i, j) for i, j in ((0, 1), (0, 2), (1, 2))]


def _canvas(width: float, height: float, label: str, *children: str, class_: str) -> str:
    return element(
        "svg",
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=label,
        class_=class_,
    )


def _levels(values: FloatArray, floor: float) -> FloatArray:
    top = float(values.max())
    if top <= 0:
        return np.zeros(0)
    low = min(max(floor, 0.03 * top), 0.5 * top)
    return np.linspace(low, top, LEVELS + 1)[:-1]


def _shades(hue: str) -> list[str]:
    light = [mix(PAPER, hue, 0.14 + 0.74 * i / (LEVELS - 1)) for i in range(LEVELS)]
    return [mix(shade, INK, 0.35 * max(0.0, i / (LEVELS - 1) - 0.6)) for i, shade in enumerate(light)]


# -- two columns ------------------------------------------------------------------------------------------


def density_map(findings: Findings) -> str:
    """Draw filled contours, each basin in the colour of its mode, with modes and their error ellipses."""
    names = findings.columns
    frame = Frame(64, 10, 580, 470, findings.bounds[0], findings.bounds[1])
    values, axes = findings.basins.grid.values, findings.basins.grid.axes
    levels = _levels(values, 2 * findings.noise_sd)
    shapes = [_outline(frame, axes, values, level) for level in levels]
    defs = [element("path", id=f"level-{i}", d=shape) for i, shape in enumerate(shapes) if shape]
    borders = []
    for k in range(findings.k):
        region = _outline(frame, axes, _soft_region(findings.basins.labels, k), 0.5)
        defs.append(element("clipPath", element("path", d=region, clip_rule="evenodd"), id=f"basin-{k}"))
        borders.append(element("path", d=region, class_="basin"))
    if borders and shapes:  # only where basins meet: their outer rim lies below the lowest level
        defs.append(element("clipPath", element("path", d=shapes[0], clip_rule="evenodd"), id="shown"))
        borders = [element("g", *borders, clip_path="url(#shown)")]
    layers = [_stack(len(levels), "#8a98a1")]
    layers += [
        element("g", _stack(len(levels), HUES[k % len(HUES)]), clip_path=f"url(#basin-{k})") for k in range(findings.k)
    ]
    return _canvas(
        660,
        530,
        f"Map of the released density of {short(names[0])} and {short(names[1])}",
        element("defs", *defs) if defs else "",
        frame.border("paper"),
        *layers,
        *borders,
        frame.border(),
        frame.axes((names[0], names[1])),
        _marks(findings, frame, (0, 1)),
        class_="figure",
    )


def _stack(levels: int, hue: str) -> str:
    """Paint the level sets from the lowest up."""
    shades = _shades(hue)
    return "".join(
        element("use", href=f"#level-{i}", fill=shades[i], stroke=mix(shades[i], INK, 0.22), class_="level")
        for i in range(levels)
    )


def _outline(frame: Frame, axes: tuple[FloatArray, ...], values: FloatArray, level: float) -> str:
    """Path around the places of a grid (first axis across, second up) at or above a level."""
    loops = []
    for loop in contour_loops(values, level):
        points = np.stack([np.interp(loop[:, j], np.arange(len(axes[j])), axes[j]) for j in (0, 1)], axis=1)
        loops.append(frame.at(points))
    return path(loops)


def _soft_region(labels: NDArray[np.int64], k: int) -> FloatArray:
    """Region of a mode with a margin into the fog, each place to the nearest basin, smoothed for the eye."""
    away, nearest = distance_transform_edt(labels < 0, return_indices=True)
    mine = (labels[tuple(nearest)] == k) & (away <= MARGIN)
    return np.asarray(gaussian_filter(mine.astype(np.float64), 1.0, mode="nearest"))


def _marks(findings: Findings, frame: Frame, axes: tuple[int, int]) -> str:
    """Draw modes: a dot, a 95% ellipse, a numbered badge that keeps clear of the others."""
    pair = list(axes)
    places = frame.at(findings.modes[:, pair]) if findings.k else np.zeros((0, 2))
    parts, taken = [], [tuple(p) for p in places]
    for k in range(findings.k):
        covariance = findings.covariances[k][np.ix_(pair, pair)]
        for class_ in ("ellipse-halo", "ellipse"):
            parts.append(error_ellipse(frame, findings.modes[k, pair], covariance, RADIUS, class_))
        x, y = (float(v) for v in places[k])
        parts.append(element("circle", cx=x, cy=y, r=2.6, class_="dot"))
        reach = RADIUS * float(np.sqrt(np.max(np.diag(covariance) * frame.pixels**2)))
        spot = _free_spot((x, y), reach + 17, taken, frame)
        taken.append(spot)
        parts.append(_badge(k, spot))
    return "".join(parts)


def _badge(k: int, spot: tuple[float, float], radius: float = 10.5) -> str:
    x, y = spot
    return element(
        "g",
        element("circle", cx=x, cy=y, r=radius, fill=HUES[k % len(HUES)], class_="badge"),
        element("text", text=str(k + 1), x=x, y=y + 4.3, class_="badge-label middle"),
    )


def _free_spot(
    centre: tuple[float, float], reach: float, taken: list[tuple[float, ...]], frame: Frame
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
            room = min((float(np.hypot(x - a, y - b)) for a, b in taken), default=99.0)
            worth = min(room, 24.0) - 6 * stretch - 0.05 * step - (0 if inside else 50)
            if worth > score:
                best, score = (x, y), worth
    return best


# -- three columns ----------------------------------------------------------------------------------------


def marginal_map(findings: Findings, i: int, j: int) -> str:
    """Draw the density of two columns, the third summed over."""
    frame = Frame(56, 8, 286, 262, findings.bounds[i], findings.bounds[j])
    grid = findings.basins.grid
    (other,) = {0, 1, 2} - {i, j}
    spacing = float(grid.axes[other][1] - grid.axes[other][0])
    values = grid.values.sum(axis=other) * spacing
    levels = _levels(values, 0.05 * float(values.max()))
    shades = _shades("#3d6a86")
    axes = (grid.axes[i], grid.axes[j])
    layers = [
        element(
            "path", d=_outline(frame, axes, values, level), fill=shade, stroke=mix(shade, INK, 0.22), class_="level"
        )
        for level, shade in zip(levels, shades, strict=False)
    ]
    names = (findings.columns[i], findings.columns[j])
    return _canvas(
        356,
        318,
        f"Map of the released density of {short(names[0])} and {short(names[1])}",
        frame.border("paper"),
        *layers,
        frame.border(),
        frame.axes((short(names[0], 26), short(names[1], 26)), wanted=5),
        _marks(findings, frame, (i, j)),
        class_="figure",
    )


# -- one column -------------------------------------------------------------------------------------------


def curve(findings: Findings) -> str:
    """Draw the density with its noise, and the fog out of which each peak must rise."""
    grid = findings.basins.grid
    x, f = grid.axes[0], grid.values
    sd = np.hypot(findings.noise_sd, findings.sampling_sd)
    top = 1.14 * float(max((f + 2 * sd).max(), (findings.fog_base + findings.fog_height).max()))
    bottom = min(0.0, 1.05 * float((f - 2 * sd).min()))
    frame = Frame(78, 10, 780, 330, findings.bounds[0], (bottom, top))

    def ribbon(upper: FloatArray, lower: FloatArray, **attributes: str) -> str:
        edge = np.concatenate([np.stack([x, upper], axis=1), np.stack([x, lower], axis=1)[::-1]])
        return element("path", d=path([frame.at(edge)]), **attributes)

    areas = []
    for k in range(findings.k):
        for run in _runs(findings.basins.labels == k):
            under = np.stack([x[run], np.maximum(f[run], 0)], axis=1)
            ends = np.array([[x[run][-1], 0.0], [x[run][0], 0.0]])
            areas.append(
                element(
                    "path",
                    d=path([frame.at(np.concatenate([under, ends]))]),
                    fill=mix(PAPER, HUES[k % len(HUES)], 0.42),
                )
            )
    fog = []
    for run in _runs_of_equal(findings.fog_base):
        base = np.full(len(x[run]), findings.fog_base[run.start])
        shore = base + findings.fog_height[run]
        edge = np.concatenate([np.stack([x[run], shore], axis=1), np.stack([x[run], base], axis=1)[::-1]])
        fog.append(element("path", d=path([frame.at(edge)]), fill=FOG, class_="fog"))
        fog.append(element("path", d=_line(frame, x[run], shore), class_="fogline"))
    return _canvas(
        880,
        396,
        f"Curve of the released density of {short(findings.columns[0])}",
        frame.border("paper"),
        *areas,
        *fog,
        ribbon(f + 2 * sd, f - 2 * sd, fill=INK, class_="noise"),
        element("path", d=_line(frame, x, f), class_="curve"),
        frame.border(),
        frame.axes((findings.columns[0], "density")),
        _marks_1d(findings, frame),
        class_="figure",
    )


def _line(frame: Frame, x: FloatArray, y: FloatArray) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in frame.at(np.stack([x, y], axis=1)).tolist())


def _runs(mask: NDArray[np.bool_]) -> list[slice]:
    """Give stretches of a mask, each one point longer than it is, so that neighbours touch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return [slice(int(a), int(b) + 1) for a, b in edges.reshape(-1, 2)]


def _runs_of_equal(values: FloatArray) -> list[slice]:
    cuts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return [slice(a, b + 1) for a, b in pairwise(cuts)]


def _marks_1d(findings: Findings, frame: Frame) -> str:
    parts: list[str] = []
    taken: list[tuple[float, ...]] = []
    for k in range(findings.k):
        height = float(np.interp(findings.modes[k, 0], findings.basins.grid.axes[0], findings.basins.grid.values))
        x, y = (float(v) for v in frame.at(np.array([[findings.modes[k, 0], height]]))[0])
        half = RADIUS_1D * float(np.sqrt(findings.covariances[k][0, 0]) * frame.pixels[0])
        parts.append(element("line", x1=x - half, x2=x + half, y1=y, y2=y, class_="whisker-halo"))
        parts.append(element("line", x1=x - half, x2=x + half, y1=y, y2=y, class_="whisker"))
        parts.append(element("circle", cx=x, cy=y, r=3.2, class_="dot"))
        spot = _free_spot((x, y - 8), 20, taken, frame)
        taken.append(spot)
        parts.append(_badge(k, spot))
    return "".join(parts)
