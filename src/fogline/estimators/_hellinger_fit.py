r"""Minimum Hellinger distance between a released density and a smoothed family: post-processing, nothing else.

Let :math:`g` be the release read at one bandwidth and :math:`m_\theta` the family as the release would show it. The fit
minimises

.. math:: \int_K \Big(\sqrt{g + c} - \sqrt{\kappa m_\theta + c}\Big)^2 dx

over the parameters and the explained share :math:`\kappa`.

The constant c makes the distance fit for noise (`fogline.estimators._hellinger_distance`). The region K is what is not
in excess: lumps that stand above the fit by more than noise and sampling could raise are cut out, worst first, and the
family is fitted to the rest (`fogline.estimators._hellinger_lumps`). Then :math:`1 - \kappa` estimates the
contamination.

A small bandwidth shows lumps and resists them, a large one has less noise under the roots. So lumps are looked for at
the smallest that the noise allows; where there are none, there is nothing to resist, and a larger one serves the fit.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._hellinger_degrees import degrees_of
from fogline.estimators._hellinger_distance import SHARES, minimise, noise_constant, response, root
from fogline.estimators._hellinger_field import SmoothedFamily
from fogline.estimators._hellinger_lumps import Lump, lumps_of, without_lumps
from fogline.families import Family
from fogline.sketch.private_density import PrivateDensity

__all__ = ["HellingerFit", "fit_density", "linearised"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

CLEAR = 5.0
"""Lumps are looked for at the smallest bandwidth at which the peak stands this many noise deviations high."""

LINEAR = 8.0
"""Where none are found, the density is read where its peak stands so high: the highest of many noisy places stands
higher than the peak, and roots of what is left of it are far from linear, biased and wider than their stated errors."""

READINGS = 7
"""Bandwidths that are tried, from the smallest to the largest planned one."""

LATTICE_POINTS = 64
"""Size of the lattice of parameters on which a start is looked for, up to three parameters."""


@dataclass(frozen=True, eq=False)
class HellingerFit:
    """A fit and its errors; all of it read from released numbers.

    Parameters
    ----------
    theta : array of shape (m,)
    share : float
        Explained share of the released count.
    privacy_covariance, sampling_covariance : array of shape (m + 1, m + 1)
        Of the parameters and the share.
    degrees : array of shape (m,)
        Degrees of freedom of the errors: they are functions of the estimates, and uncertain with them.
    bandwidth : array of shape (d,)
    lumps : tuple of Lump
    """

    theta: FloatArray
    share: float
    privacy_covariance: FloatArray
    sampling_covariance: FloatArray
    degrees: FloatArray
    bandwidth: FloatArray
    lumps: tuple[Lump, ...] = ()


def fit_density(
    density: PrivateDensity, family: Family, box: FloatArray, bandwidth: FloatArray | None = None
) -> HellingerFit:
    """Fit a family to a released density.

    Parameters
    ----------
    density : PrivateDensity
    family : Family
    box : array of shape (m, 2)
        Bounds of the parameters.
    bandwidth : array of shape (d,), optional
        At which the density is read; by default as small as the noise allows, larger where there are no lumps.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> from fogline.families import Normal, parameter_box
    >>> x = np.random.default_rng(0).normal(5, 2, size=2000)
    >>> density = DensitySketch([(-10, 20)], bandwidths=[0.02, 0.08]).update(x).release(epsilon=1.0, delta=1e-5)
    >>> fit = fit_density(density, Normal(), parameter_box(Normal(), {"mu": (0, 10), "sigma": (1, 4)}))
    >>> bool(np.abs(fit.theta - [5, 2]).max() < 0.4), len(fit.lumps)
    (True, 0)
    """
    small = read_bandwidth(density, CLEAR) if bandwidth is None else bandwidth
    large = read_bandwidth(density, LINEAR) if bandwidth is None else bandwidth
    field, point, constant = _first_fit(density, family, box, small)
    point, cut = without_lumps(field, point, constant)
    if not cut.any() and large[0] > small[0]:
        field, point, constant = _first_fit(density, family, box, large)
        cut = np.zeros(len(field.released), dtype=np.int64)
    kept = cut == 0
    privacy, sampling = linearised(field, point, constant, kept, field.released)
    return HellingerFit(
        theta=point[:-1],
        share=float(point[-1]),
        privacy_covariance=privacy,
        sampling_covariance=sampling,
        degrees=_degrees(field, point, constant, kept, privacy + sampling),
        bandwidth=np.asarray(field.reading.bandwidth),
        lumps=lumps_of(field, point, cut),
    )


def read_bandwidth(density: PrivateDensity, clear: float) -> FloatArray:
    """Smallest planned bandwidth at which the released density stands so many deviations above the noise."""
    smallest, largest = density.spec.planned[0], density.spec.planned[-1]
    for factor in np.geomspace(1.0, largest[0] / smallest[0], READINGS):
        h = np.asarray(factor * smallest)
        reading = density.reading(h)
        if float(reading.on_grid(2.0).values.max()) >= clear * reading.noise_sd:
            return h
    return np.asarray(largest)


# -- starts -------------------------------------------------------------------------------------------------------


def _first_fit(
    density: PrivateDensity, family: Family, box: FloatArray, bandwidth: FloatArray
) -> tuple[SmoothedFamily, FloatArray, float]:
    """Fit to all, from the best of a few public and released starts; return what was fitted, point and constant."""
    field = SmoothedFamily(density, family, bandwidth, box)
    kept = np.ones(len(field.released), dtype=bool)
    starts = _starts(field)
    constant = noise_constant(field, starts[-1])  # one for all, so that distances can be compared
    fits = [minimise(field, np.append(theta, 1.0), kept, constant, tolerance=1e-3) for theta in starts]
    best = min(fits, key=lambda found: found[1])[0]
    constant = noise_constant(field, best[:-1])
    return field, minimise(field, best, kept, constant)[0], constant


def _starts(field: SmoothedFamily) -> list[FloatArray]:
    """Parameters with the moments of the release, and the best of a public lattice of parameters."""
    mass = np.maximum(field.released - 2.0 * math.sqrt(field.noise_variance), 0.0)
    mass = mass / mass.sum() if mass.sum() > 0 else np.full(len(mass), 1.0 / len(mass))
    points = field.points
    mean = mass @ points
    centred = points - mean
    variance = (centred * mass[:, None]).T @ centred - np.diag(field.reading.bandwidth**2)
    flat = len(mean) == 1
    moments = field.family.moment_start(mean[0] if flat else mean, variance[0, 0] if flat else variance, field.box)
    starts = [np.asarray(moments, dtype=np.float64)]
    m = len(field.box)
    if m > 3:
        return [*starts, field.family.start(field.box)]
    size = max(2, int(min(LATTICE_POINTS, 24.0**m) ** (1.0 / m)))
    axes = [
        np.geomspace(low, high, size + 2)[1:-1] if limit[0] == 0.0 else np.linspace(low, high, size + 2)[1:-1]
        for (low, high), limit in zip(field.box.tolist(), field.family.limits, strict=True)
    ]
    c = noise_constant(field, starts[0])
    released = root(field.released, c)
    lattice = np.array(list(itertools.product(*axes)))
    distances = np.sum((released - root(field.models(lattice), c)) ** 2, axis=1)
    return [*starts, lattice[int(np.argmin(distances))]]


# -- errors -------------------------------------------------------------------------------------------------------


def linearised(
    field: SmoothedFamily, point: FloatArray, c: float, kept: BoolArray, shown: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Covariances of parameters and share from privacy noise and from sampling.

    The fit is nearly linear in the released density, whose noise is known exactly; a record's part in it is a smooth
    function of where it lies.

    Parameters
    ----------
    shown : array
        The density around the fit: what exceeds it counts as further records.
    """
    weights = response(field, point, c, kept)
    influence = field.influence(weights)
    beside = np.maximum(shown - point[-1] * field.model(point[:-1]), 0.0) * field.volume
    masses = point[-1] * field.masses(point[:-1]) + np.where(kept, 0.0, beside)
    sampling = (influence * masses[:, None]).T @ influence / field.count
    return field.noise_covariance(weights), np.asarray(sampling)


def _degrees(field: SmoothedFamily, point: FloatArray, c: float, kept: BoolArray, covariance: FloatArray) -> FloatArray:
    def variances(at: FloatArray) -> FloatArray:
        return np.asarray(np.diag(np.sum(linearised(field, at, c, kept, field.released), axis=0)))

    inner = field.box + 2.0 * np.outer(field.steps, [1.0, -1.0])  # derivatives need room on both sides
    return degrees_of(variances, point, covariance, np.vstack([inner, SHARES]))[:-1]
