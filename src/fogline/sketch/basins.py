r"""Clusters of a released density: which mode each place leads up to, and how much of the mass lies there.

Every grid point climbs to a peak (:mod:`fogline.sketch.landscape`). Peaks that are not modes are bumps of the
noise: going down from the highest pass, each joins the first neighbour it meets, but two modes are never joined.
Places where the density is below twice its noise, and bumps that no pass above that level leads to, belong to
no mode. All of it reads released numbers only.

The share of a basin A is the linear functional :math:`\hat N_A/\hat n` of the released sums, so the variance that
the privacy noise gives it is known exactly for the region as drawn; :math:`s(1-s)/\hat n` is added for the draw of
the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft as scipy_fft

from fogline.sketch.landscape import find_peaks, join_basins
from fogline.sketch.reading import Grid, Reading

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity

__all__ = ["Basins", "basins"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PER_BANDWIDTH = 4.0
"""Grid points a bandwidth."""

VISIBLE = 2.0
"""A place belongs to a mode where the density is at least this many deviations of its privacy noise."""


@dataclass(frozen=True, eq=False)
class Basins:
    """Basins of attraction of the modes, on a grid.

    Attributes
    ----------
    grid : Grid
        Density on a regular grid over the box.
    labels : array of int of the grid's shape
        Number of the mode that each grid point leads to, -1 where the density is lost in the noise.
    shares : array of shape (k,)
        Share of the released mass in each basin.
    share_errors : array of shape (k,)
        Standard error of each share, privacy and sampling together, for the region as drawn.
    """

    grid: Grid
    labels: IntArray
    shares: FloatArray
    share_errors: FloatArray


def basins(density: PrivateDensity, modes: ArrayLike, bandwidth: Any = None) -> Basins:
    """Divide the box among the modes of a released density.

    Parameters
    ----------
    density : PrivateDensity
    modes : array-like of shape (k, d)
        Where the modes are, such as ``PrivateModes.modes_``; k may be 0.
    bandwidth : optional
        As in :meth:`PrivateDensity.pdf`.

    Returns
    -------
    Basins

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(3, 0.5, 30_000), rng.normal(7, 0.5, 20_000)])
    >>> density = DensitySketch([(0, 10)]).update(x[:, None]).release(epsilon=1.0, delta=1e-6)
    >>> found = basins(density, [[3.0], [7.0]])
    >>> found.shares.round(1).tolist()
    [0.6, 0.4]
    """
    reading = density.reading(bandwidth)
    shape = reading.grid_shape(PER_BANDWIDTH)
    grid = reading.on_grid(PER_BANDWIDTH)
    places = np.asarray(modes, dtype=np.float64).reshape(-1, density.spec.d)
    labels = _labels(grid, places, reading)
    shares = np.zeros(len(places))
    errors = np.zeros(len(places))
    weights = _cell_volumes(grid)
    for k in range(len(places)):
        region = np.where(labels == k, weights, 0.0)
        shares[k] = np.sum(region * grid.values)
        noise = _privacy_variance(density, reading, shape, region, shares[k])
        inside = float(np.clip(shares[k], 0.0, 1.0))
        errors[k] = np.sqrt(noise + inside * (1 - inside) / density.count)
    return Basins(grid, labels, shares, errors)


def _labels(grid: Grid, modes: FloatArray, reading: Reading) -> IntArray:
    values = grid.values
    if not len(modes):
        return np.full(values.shape, -1, dtype=np.int64)
    level = VISIBLE * reading.noise_sd
    peaks = find_peaks(values[None])
    basin = peaks.basin[0]
    home = basin[_nearest(grid, modes)]
    marked = np.zeros(len(peaks.height), dtype=bool)
    marked[home] = True
    root = join_basins(values, basin, marked, level)
    labels = np.full(values.shape, -1, dtype=np.int64)
    component = root[basin]
    for owner in np.unique(root[home]):
        members = np.flatnonzero(root[home] == owner)
        region = np.flatnonzero((component == owner) & (values >= level))
        if len(members) == 1:
            labels.flat[region] = members[0]
        else:  # one peak at this bandwidth, several modes at finer ones: to the nearest of them
            offset = (grid.points(region)[:, None] - modes[members]) / reading.bandwidth
            labels.flat[region] = members[np.argmin(np.sum(offset**2, axis=2), axis=1)]
    return labels


def _nearest(grid: Grid, points: FloatArray) -> tuple[IntArray, ...]:
    return tuple(
        np.clip(np.rint((points[:, j] - a[0]) / (a[1] - a[0])).astype(np.int64), 0, len(a) - 1)
        for j, a in enumerate(grid.axes)
    )


def _cell_volumes(grid: Grid) -> FloatArray:
    """Weights of the trapezoid rule."""
    total = np.ones(grid.values.shape)
    for j, axis in enumerate(grid.axes):
        width = np.full(len(axis), axis[1] - axis[0])
        width[[0, -1]] /= 2
        total *= width.reshape([-1 if i == j else 1 for i in range(len(grid.axes))])
    return total


def _privacy_variance(
    density: PrivateDensity, reading: Reading, shape: tuple[int, ...], region: FloatArray, share: float
) -> float:
    """Variance of a share from the privacy noise, that of the count in its divisor included."""
    torus = np.zeros(shape)
    torus[tuple(slice(0, n) for n in region.shape)] = region
    spectrum = scipy_fft.fftn(torus)[tuple(reading.frequencies.T % np.array(shape)[:, None])]
    moved = np.abs(spectrum) * reading.noise
    # The zero frequency is the count: it moves the mass of the region and the divisor at once.
    moved[0] = density.count_sd * abs(float(spectrum[0].real) * reading.gain[0] - share / density.count)
    return float(np.sum(moved**2))
