"""A picture of a released density in any number of axes: one gives a curve, two or more a map of two of them.

Where there are more than two axes, a third axis of a grid is summed over; random features are read on the plane
through each centre, each place at the centre where it is densest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline.report.plane import Plane
from fogline.report.profile import Profile
from fogline.sketch import PrivateDensity
from fogline.sketch.random_spec import RandomSpec

__all__ = ["MOST_COLUMNS", "Space", "is_sliced", "picture_of", "read_plane", "telling_columns"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_COLUMNS = 6
"""A table of more columns than this shows those in which what it lists differs most."""

RESOLUTION = 60
"""Points an axis of a picture that is not read from a grid."""

VISIBLE = 2.0
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
        return list(range(min(d, most)))
    spread = np.ptp(centers, axis=0) / (bounds[:, 1] - bounds[:, 0])
    return sorted(np.argsort(-spread, kind="stable")[:most].tolist())


def is_sliced(density: PrivateDensity) -> bool:
    """Whether a map of the density is made of planes through the centres."""
    return isinstance(density.spec, RandomSpec) and density.spec.d > 2


def picture_of(space: Space, bandwidth: FloatArray) -> Plane | Profile:
    """Read the picture; costs no privacy."""
    return _profile(space, bandwidth) if space.density.spec.d == 1 else read_plane(space, bandwidth)


def _profile(space: Space, bandwidth: FloatArray) -> Profile:
    density = space.density
    low, high = (float(end) for end in density.spec.bounds[0])
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
        labels=space.labels(axis[:, None], values, VISIBLE * noise),
        places=space.centers[:, 0],
        errors=np.sqrt(space.covariances[:, 0, 0]),
    )


def read_plane(space: Space, bandwidth: FloatArray) -> Plane:
    """Read a map of two axes; costs no privacy."""
    i, j = space.pair
    read = _sliced if isinstance(space.density.spec, RandomSpec) else _from_grid
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
        return axes, grid.values, flat, VISIBLE * density.noise_sd(bandwidth)
    (other,) = {0, 1, 2} - {i, j}
    best = grid.axes[other][np.argmax(grid.values, axis=other)].ravel()
    values = grid.values.sum(axis=other) * float(grid.axes[other][1] - grid.axes[other][0])
    return axes, values, np.insert(flat, other, best, axis=1), 0.05 * float(values.max())


def _sliced(space: Space, bandwidth: FloatArray) -> Field:
    density, pair = space.density, list(space.pair)
    bounds = np.asarray(density.spec.bounds)
    across, up = (np.linspace(bounds[a, 0], bounds[a, 1], RESOLUTION) for a in pair)
    flat = np.stack(np.meshgrid(across, up, indexing="ij"), axis=-1).reshape(-1, 2)
    through = space.centers if len(space.centers) else bounds.mean(axis=1)[None]
    planes = np.repeat((through if density.spec.d > 2 else through[:1])[:, None], len(flat), axis=1)
    planes[:, :, pair] = flat
    read = np.stack([density.pdf(plane, bandwidth) for plane in planes])
    densest, points = np.argmax(read, axis=0), np.arange(len(flat))
    values = read[densest, points].reshape(RESOLUTION, RESOLUTION)
    return (across, up), values, planes[densest, points], VISIBLE * density.noise_sd(bandwidth)
