"""Parts that the pictures of a density share: canvas, shades, level lines, marked positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from fogline.report.contours import contour_loops
from fogline.report.svg import HUES, Frame, element, error_ellipse, mix, path

__all__ = [
    "FOG",
    "INK",
    "LEVELS",
    "PAPER",
    "badge",
    "canvas",
    "density_levels",
    "free_spot",
    "line",
    "outline",
    "position_marks",
    "shades",
]

FloatArray = NDArray[np.float64]

PAPER, INK, FOG = "#f6f8f9", "#16232c", "#8fa3ad"
LEVELS = 10
RADIUS = float(np.sqrt(chi2.ppf(0.95, 2)))


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


def density_levels(values: FloatArray, floor: float) -> FloatArray:
    """Levels to draw, from a floor of noise to the top; none where nothing is positive."""
    top = float(values.max())
    if top <= 0:
        return np.zeros(0)
    low = min(max(floor, 0.03 * top), 0.5 * top)
    return np.linspace(low, top, LEVELS + 1)[:-1]


def shades(hue: str) -> list[str]:
    """Colours of the levels, from the lowest up."""
    light = [mix(PAPER, hue, 0.14 + 0.74 * i / (LEVELS - 1)) for i in range(LEVELS)]
    return [mix(shade, INK, 0.35 * max(0.0, i / (LEVELS - 1) - 0.6)) for i, shade in enumerate(light)]


def outline(frame: Frame, axes: tuple[FloatArray, ...], values: FloatArray, level: float) -> str:
    """Path around the places of a grid (first axis across, second up) at or above a level."""
    loops = []
    for loop in contour_loops(values, level):
        points = np.stack([np.interp(loop[:, j], np.arange(len(axes[j])), axes[j]) for j in (0, 1)], axis=1)
        loops.append(frame.at(points))
    return path(loops)


def position_marks(
    frame: Frame, places: FloatArray, covariances: FloatArray, *, hues: Sequence[str] = HUES, radius: float = RADIUS
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


def line(frame: Frame, x: FloatArray, y: FloatArray) -> str:
    """Path along a curve, not closed."""
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in frame.at(np.stack([x, y], axis=1)).tolist())
