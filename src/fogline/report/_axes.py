"""The report's pictures on matplotlib axes: curves with their bands, maps with marked places.

They draw the same released values as the SVG of a page, in the way that users of matplotlib expect: on axes of theirs,
with names of columns, limits from the public bounds, and a legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fogline._typing import FloatArray
from fogline.report._plots import PROFILE_RADIUS, RADIUS, Plane, Profile, density_levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes_for", "draw_pictures", "draw_plane", "draw_profile", "ellipse_points", "mark_places"]


def axes_for(ax: Any, number: int = 1) -> list[Any]:
    """Return matplotlib axes to draw on: those given, or new ones side by side.

    Parameters
    ----------
    ax : matplotlib axes, sequence of them, or None
    number : int
        How many are wanted.
    """
    if ax is not None:
        given = list(np.ravel(np.asarray(ax, dtype=object))) if isinstance(ax, Sequence | np.ndarray) else [ax]
        if len(given) != number:
            raise ValueError(f"ax must be {'one' if number == 1 else f'a sequence of {number}'} matplotlib axes")
        return given
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install 'fogline[plot]'") from None
    size = (6.4, 4.8) if number == 1 else (4.2 * number, 4.0)
    _, made = plt.subplots(1, number, squeeze=False, figsize=size, layout="constrained")
    return list(made[0])


def draw_pictures(pictures: Sequence[Plane | Profile], ax: Any = None) -> Any:
    """Draw one picture, or several side by side; returns the axes, or an array of them."""
    axes = axes_for(ax, len(pictures))
    for picture, one in zip(pictures, axes, strict=True):
        if isinstance(picture, Plane):
            draw_plane(picture, one)
        else:
            draw_profile(picture, one)
    return axes[0] if len(axes) == 1 else np.array(axes)


def draw_plane(plane: Plane, ax: Axes) -> None:
    """Draw filled contours, and places with their 95% ellipses."""
    levels = density_levels(plane.values, plane.floor)
    if len(levels):
        ax.contourf(*plane.axes, plane.values.T, levels=[*levels, float(plane.values.max())], cmap="Blues")
    mark_places(ax, plane.places, plane.covariances, RADIUS)
    ax.set_xlim(*plane.bounds[0])
    ax.set_ylim(*plane.bounds[1])
    ax.set_xlabel(plane.names[0])
    ax.set_ylabel(plane.names[1])


def mark_places(ax: Axes, places: FloatArray, covariances: FloatArray, radius: float) -> None:
    """Mark places by number, each with an ellipse of this many standard errors."""
    for k, (place, covariance) in enumerate(zip(places, covariances, strict=True)):
        ax.plot(*ellipse_points(place, covariance, radius), color=f"C{1 + k % 9}")
        ax.plot(*place[:, None], marker="o", color=f"C{1 + k % 9}", markersize=4)
        ax.annotate(str(k + 1), place, textcoords="offset points", xytext=(7, 7), fontweight="bold")


def ellipse_points(place: FloatArray, covariance: FloatArray, radius: float) -> FloatArray:
    """Points of an ellipse of this many standard deviations around a place, shape (2, points).

    Examples
    --------
    >>> ellipse_points(np.zeros(2), np.diag([4.0, 1.0]), 1.0).max(axis=1).round(2).tolist()
    [2.0, 1.0]
    """
    values, vectors = np.linalg.eigh(covariance)
    angles = np.linspace(0, 2 * np.pi, 101)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return np.asarray(place[:, None] + radius * vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * circle))


def draw_profile(profile: Profile, ax: Axes) -> None:
    """Draw a curve with a band of two standard errors, and places with their 95% intervals."""
    x, f, sd = profile.axis, profile.values, profile.sd
    ax.fill_between(x, f - 2 * sd, f + 2 * sd, color="C0", alpha=0.25, linewidth=0)
    ax.plot(x, f, color="C0")
    mark_profile(profile, ax)
    ax.set_xlim(*profile.bounds)
    ax.set_ylim(bottom=min(0.0, float((f - 2 * sd).min())))
    ax.set_xlabel(profile.name)
    ax.set_ylabel("density")


def mark_profile(profile: Profile, ax: Axes) -> None:
    """Mark the places of a curve, with their 95% intervals."""
    x, f = profile.axis, profile.values
    for k, (place, error) in enumerate(zip(profile.places.tolist(), profile.errors.tolist(), strict=True)):
        height = float(np.interp(place, x, f))
        ax.errorbar([place], [height], xerr=[PROFILE_RADIUS * error], fmt="o", color=f"C{1 + k % 9}", capsize=3)
        ax.annotate(str(k + 1), (place, height), textcoords="offset points", xytext=(7, 7), fontweight="bold")
