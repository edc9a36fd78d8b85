"""A density over two axes: level sets in one colour, or each region in the colour of its mode or cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, gaussian_filter

from fogline.report.drawing import INK, canvas, density_levels, outline, position_marks, shades
from fogline.report.svg import HUES, Frame, element, mix, short

__all__ = ["Plane", "heat", "plane_map"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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


def plane_map(plane: Plane) -> str:
    """Draw filled contours, each region in its own colour, with the marked places and their error ellipses."""
    frame = Frame(64, 10, 580, 470, *plane.bounds)
    levels = density_levels(plane.values, plane.floor)
    shapes = [outline(frame, plane.axes, plane.values, level) for level in levels]
    defs = [element("path", id=f"level-{i}", d=shape) for i, shape in enumerate(shapes) if shape]
    borders = []
    for k in range(len(plane.places)):
        region = outline(frame, plane.axes, _soft_region(plane.labels, k), 0.5)
        defs.append(element("clipPath", element("path", d=region, clip_rule="evenodd"), id=f"basin-{k}"))
        borders.append(element("path", d=region, class_="basin"))
    if borders and shapes:  # only where regions meet: their outer rim lies below the lowest level
        defs.append(element("clipPath", element("path", d=shapes[0], clip_rule="evenodd"), id="shown"))
        borders = [element("g", *borders, clip_path="url(#shown)")]
    layers = [_stack(len(levels), GREY)]
    layers += [
        element("g", _stack(len(levels), HUES[k % len(HUES)]), clip_path=f"url(#basin-{k})")
        for k in range(len(plane.places))
    ]
    return canvas(
        660,
        530,
        f"Map of the released density of {short(plane.names[0])} and {short(plane.names[1])}",
        element("defs", *defs) if defs else "",
        frame.border("paper"),
        *layers,
        *borders,
        frame.border(),
        frame.axes(plane.names),
        position_marks(frame, plane.places, plane.covariances),
        class_="figure",
    )


def heat(frame: Frame, axes: tuple[FloatArray, FloatArray], values: FloatArray, floor: float) -> str:
    """Draw filled contours in one colour."""
    painted = zip(density_levels(values, floor), shades(BLUE), strict=False)
    return "".join(
        element("path", d=outline(frame, axes, values, level), fill=shade, stroke=mix(shade, INK, 0.22), class_="level")
        for level, shade in painted
    )


def _stack(levels: int, hue: str) -> str:
    """Paint the level sets from the lowest up."""
    painted = shades(hue)
    return "".join(
        element("use", href=f"#level-{i}", fill=painted[i], stroke=mix(painted[i], INK, 0.22), class_="level")
        for i in range(levels)
    )


def _soft_region(labels: IntArray, k: int) -> FloatArray:
    """Region of a mode with a margin into the fog, each place to the nearest region, smoothed for the eye."""
    away, nearest = distance_transform_edt(labels < 0, return_indices=True)
    mine = (labels[tuple(nearest)] == k) & (away <= MARGIN)
    return np.asarray(gaussian_filter(mine.astype(np.float64), 1.0, mode="nearest"))
