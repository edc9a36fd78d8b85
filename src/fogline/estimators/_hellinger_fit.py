r"""Minimum Hellinger distance between a released density and a smoothed family: post-processing, nothing else.

Let :math:`g` be the release read at one bandwidth and :math:`m_\theta` the family as the release would show it. The fit
minimises

.. math:: \int_K \Big(\sqrt{g + c} - \sqrt{\kappa m_\theta + c}\Big)^2 dx

over the parameters and the explained share :math:`\kappa`.

*The constant* makes the distance fit for noise. Counts have a variance proportional to the density, the privacy
noise has the same everywhere; with c = n times the spectral density of the noise, :math:`\sqrt{g + c}` has
the same variance at every point (Anscombe's transform for counts with Gaussian noise), and least squares of such
roots is as good as any weighting. Without noise c is 0, and this is the Hellinger distance. c is at least two
deviations of the noise, and where noise makes g + c small even so, the root goes on as its tangent.

*The region* K is what is not in excess. Hellinger distance resists outliers as far as its bandwidth is small, which
noise does not allow; but the noise is known, so lumps that stand above the fit by more than noise and sampling could
raise are cut out, worst first, and the family is fitted to the rest. Then :math:`1 - \kappa` estimates the
contamination.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._hellinger_field import SmoothedFamily
from fogline.families import Family
from fogline.sketch.private_density import PrivateDensity

__all__ = ["HellingerFit", "Lump", "fit_density", "linearised"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

CLEAR = 8.0
"""The density is read at the smallest bandwidth at which its peak stands this many noise deviations high."""

READINGS = 7
"""Bandwidths that are tried, from the smallest to the largest planned one."""

EXCESS_LEVEL = 0.005
"""Chance that noise and sampling alone raise something somewhere that is taken for a lump."""

CUT = 2.5
"""A lump is cut out with this many bandwidths around it."""

MOST_LUMPS = 8
MOST_CUT = 0.5
"""Largest part of the family that may be cut out: what is left must determine the rest."""

TANGENT = 0.25
"""Below this part of c the root goes on as its tangent."""

SHARES = (0.05, 3.0)
"""Range of the explained share; the released count, by which it is relative, is noisy itself."""

LEAST_CONSTANT = 2.0
"""c is at least so many deviations of the noise: else roots of noise are too far from linear for honest errors."""

LATTICE_POINTS = 100
"""Size of the lattice of parameters on which a start is looked for, up to three parameters."""


@dataclass(frozen=True)
class Lump:
    """Excess mass: a part of the data that the family does not explain.

    Parameters
    ----------
    low, high : tuple of float
        Corners of the box around it.
    share : float
        Its mass above the fit, as a part of the released count.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    share: float


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
    bandwidth : array of shape (d,)
    lumps : tuple of Lump
    """

    theta: FloatArray
    share: float
    privacy_covariance: FloatArray
    sampling_covariance: FloatArray
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
        At which the density is read; by default as small as the noise allows.

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
    field = SmoothedFamily(density, family, read_bandwidth(density) if bandwidth is None else bandwidth, box)
    everywhere = np.ones(len(field.released), dtype=bool)
    point, constant = _first_fit(field, everywhere)
    point, kept, cut = _without_lumps(field, point, constant)
    privacy, sampling = linearised(field, point, constant, kept, field.released)
    return HellingerFit(
        theta=point[:-1],
        share=float(point[-1]),
        privacy_covariance=privacy,
        sampling_covariance=sampling,
        bandwidth=np.asarray(field.reading.bandwidth),
        lumps=_lumps(field, point, cut),
    )


def read_bandwidth(density: PrivateDensity) -> FloatArray:
    """Smallest planned bandwidth at which the released density is clear of the noise."""
    smallest, largest = density.spec.planned[0], density.spec.planned[-1]
    for factor in np.geomspace(1.0, largest[0] / smallest[0], READINGS):
        h = np.asarray(factor * smallest)
        reading = density.reading(h)
        if float(reading.on_grid(2.0).values.max()) >= CLEAR * reading.noise_sd:
            return h
    return np.asarray(largest)


# -- the distance -------------------------------------------------------------------------------------------------


def noise_constant(field: SmoothedFamily, theta: FloatArray) -> float:
    """N times the spectral density of the privacy noise, where the family's derivatives look at it."""
    directions = field.jacobian(theta)
    norms = np.linalg.norm(directions, axis=0)
    directions = directions[:, norms > 0] / norms[norms > 0]
    level = field.noise_covariance(directions).trace() / max(directions.shape[1], 1) * field.volume
    tiny = 1e-6 / (field.volume * len(field.released))
    return float(max(field.count * level, LEAST_CONSTANT * math.sqrt(field.noise_variance), tiny))


def _root(values: FloatArray, c: float) -> FloatArray:
    """2 sqrt(values + c), continued by its tangent below the quarter of c."""
    total, least = values + c, TANGENT * c
    inner = 2.0 * np.sqrt(np.maximum(total, least))
    return np.where(total < least, inner + (total - least) / math.sqrt(least), inner)


def _slope(values: FloatArray, c: float) -> FloatArray:
    return 1.0 / np.sqrt(np.maximum(values + c, TANGENT * c))


def _expected_root(field: SmoothedFamily, model: FloatArray, c: float) -> FloatArray:
    """Mean of the root of a noisy density around `model`, to second order: roots of noise are biased downward."""
    variance = field.noise_variance + np.maximum(model, 0.0) * field.energy / field.count
    return _root(model, c) - 0.25 * variance * _slope(model, c) ** 3


def _minimise(field: SmoothedFamily, start: FloatArray, kept: BoolArray, c: float) -> tuple[FloatArray, float]:
    """Return parameters and share of least distance within the bounds, from a start, and the distance."""
    from scipy.optimize import least_squares

    box = np.vstack([field.box, SHARES])
    width = box[:, 1] - box[:, 0]
    # Derivatives are taken on both sides of a point: keep their steps inside.
    low, high = box[:, 0] + 2e-4 * width, box[:, 1] - 2e-4 * width
    released = _root(field.released, c)[kept]

    def residuals(point: FloatArray) -> FloatArray:
        return np.asarray(released - _expected_root(field, point[-1] * field.model(point[:-1]), c)[kept])

    def derivatives(point: FloatArray) -> FloatArray:
        shape = field.model(point[:-1])
        columns = np.column_stack([point[-1] * field.jacobian(point[:-1]), shape])
        return np.asarray(-(_slope(point[-1] * shape, c)[:, None] * columns)[kept])

    inside = np.clip(start, low + 1e-6 * width, high - 1e-6 * width)
    found = least_squares(residuals, inside, derivatives, bounds=(low, high), x_scale=width, xtol=1e-7, max_nfev=60)
    return np.asarray(found.x), float(found.cost)


def _first_fit(field: SmoothedFamily, kept: BoolArray) -> tuple[FloatArray, float]:
    """Fit from the best of a few public and released starts; return the point and the constant."""
    starts = _starts(field)
    constant = noise_constant(field, starts[-1])  # one for all, so that distances can be compared
    fits = [_minimise(field, np.append(theta, 1.0), kept, constant) for theta in starts]
    best = min(fits, key=lambda found: found[1])[0]
    constant = noise_constant(field, best[:-1])
    return _minimise(field, best, kept, constant)[0], constant


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
    released = _root(field.released, c)
    lattice = [np.array(theta) for theta in itertools.product(*axes)]
    distances = [float(np.sum((released - _root(field.model(theta), c)) ** 2)) for theta in lattice]
    return [*starts, lattice[int(np.argmin(distances))]]


# -- lumps --------------------------------------------------------------------------------------------------------


def _without_lumps(
    field: SmoothedFamily, point: FloatArray, c: float
) -> tuple[FloatArray, BoolArray, NDArray[np.int64]]:
    """Cut out lumps, worst first, and fit again; return the point, what was kept and the number of each cut."""
    from scipy.ndimage import label, maximum_filter
    from scipy.special import ndtri

    cells = np.prod(field.spec.widths / (2.0 * field.reading.bandwidth))
    threshold = -float(ndtri(EXCESS_LEVEL / max(float(cells), 1.0)))
    size = [2 * round(CUT * h / s) + 1 for h, s in zip(field.reading.bandwidth, field.spacing, strict=True)]
    cut = np.zeros(len(field.released), dtype=bool)
    for _ in range(MOST_LUMPS):
        excess = np.where(cut, -math.inf, _standardised_excess(field, point))
        worst = int(np.argmax(excess))
        if excess[worst] <= threshold:
            break
        regions, _ = label((excess > 0.5 * threshold).reshape(field.inside))
        lump = maximum_filter(regions == regions.ravel()[worst], size).ravel()
        if float(field.model(point[:-1])[cut | lump].sum()) * field.volume > MOST_CUT:
            break
        cut |= lump
        point, _ = _minimise(field, point, ~cut, c)
    numbered, _ = label(cut.reshape(field.inside))
    return point, ~cut, np.asarray(numbered, dtype=np.int64).ravel()


def _standardised_excess(field: SmoothedFamily, point: FloatArray) -> FloatArray:
    model = point[-1] * field.model(point[:-1])
    variance = field.noise_variance + np.maximum(model, 0.0) * field.energy / field.count
    return np.asarray((field.released - model) / np.sqrt(variance))


def _lumps(field: SmoothedFamily, point: FloatArray, cut: NDArray[np.int64]) -> tuple[Lump, ...]:
    excess = (field.released - point[-1] * field.model(point[:-1])) * field.volume
    lumps = []
    for number in range(1, int(cut.max(initial=0)) + 1):
        within = field.points[cut == number]
        share = float(excess[cut == number].sum())
        lumps.append(Lump(tuple(within.min(axis=0).tolist()), tuple(within.max(axis=0).tolist()), share))
    return tuple(sorted(lumps, key=lambda lump: -lump.share))


# -- errors -------------------------------------------------------------------------------------------------------


def linearised(
    field: SmoothedFamily, point: FloatArray, c: float, kept: BoolArray, shown: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Covariances of parameters and share from privacy noise and from sampling.

    Near the solution it moves by :math:`(J^\top J)^{-1} J^\top` times the change of the roots, which is linear in the
    released density: its noise is known exactly, and a record's part in it is a smooth function of where it lies.

    Parameters
    ----------
    shown : array
        The density around the fit: what exceeds it counts as further records.
    """
    shape = field.model(point[:-1])
    model = point[-1] * shape
    slope = np.where(kept, _slope(model, c), 0.0)
    jacobian = slope[:, None] * np.column_stack([point[-1] * field.jacobian(point[:-1]), shape])
    weights = (np.linalg.pinv(jacobian.T @ jacobian, rcond=1e-12, hermitian=True) @ jacobian.T).T * slope[:, None]
    influence = field.influence(weights)
    masses = point[-1] * field.masses(point[:-1]) + np.where(kept, 0.0, np.maximum(shown - model, 0.0) * field.volume)
    sampling = (influence * masses[:, None]).T @ influence / field.count
    return field.noise_covariance(weights), np.asarray(sampling)
