r"""Minimum Hellinger distance between a released density and a smoothed family: post-processing, nothing else.

Let :math:`g` be the release read at one bandwidth and :math:`m_\theta` the family as the release would show it. The fit
minimises

.. math:: \int_K \Big(\sqrt{g + c} - \sqrt{\kappa m_\theta + c}\Big)^2 dx

over the parameters and the explained share :math:`\kappa`.

The constant c makes the distance fit for noise (`fogline.density.hellinger.minimum_distance`). The region K is what is
not in excess: lumps that stand above the fit by more than noise and sampling could raise are cut out, worst first, and
the family is fitted to the rest (`fogline.density.hellinger.outliers`). Then :math:`1 - \kappa` estimates the
contamination.

A small bandwidth shows lumps and resists them, a large one has less noise under the roots. So lumps are looked for at
the smallest that the noise allows; where there are none, there is nothing to resist, and a larger one serves the fit.

What a fit tells: a table of the parameters, what part of the data is explained, a picture. Released values only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fogline._typing import BoolArray, FloatArray
from fogline.accounting.cautions import release_cautions
from fogline.accounting.guarantee import Guarantee
from fogline.density.counted_records import is_nothing, joined
from fogline.density.hellinger.minimum_distance import (
    DISTANCE,
    SmoothedFamily,
    degrees_of,
    minimise,
    noise_constant,
    response,
    root,
)
from fogline.density.hellinger.outliers import ExcessMass, excess_masses, without_excess_masses
from fogline.density.private_density import PrivateDensity
from fogline.families import Family

__all__ = [
    "INFERENCE",
    "Explained",
    "HellingerFit",
    "InferenceTuning",
    "descent_message",
    "estimates_of",
    "explained_part",
    "fit_density",
    "intervals",
    "linearised",
    "message_of",
]


@dataclass(frozen=True)
class InferenceTuning:
    """What is tuned of the bandwidths and starts of a minimum-distance fit.

    Attributes
    ----------
    clear : float
        Lumps are looked for at the smallest bandwidth at which the peak stands this many noise deviations high.
    linear : float
        Where none are found, the density is read where its peak stands so high: the highest of many noisy
        places stands higher than the peak, and roots of what is left of it are far from linear, biased and
        wider than their stated errors.
    readings : int
        Bandwidths that are tried, from the smallest to the largest planned one.
    lattice_points : int
        Size of the lattice of parameters on which a start is looked for, up to three parameters.
    few : float
        With fewer records than this a message says that errors are rough.
    """

    clear: float = 5.0
    linear: float = 8.0
    readings: int = 7
    lattice_points: int = 64
    few: float = 20.0


INFERENCE = InferenceTuning()

NO_PROMISE = (
    "the intervals hold if the records are of the family; for contaminated records they are no promise "
    "(a release on leaves, and read, have robust_intervals_)"
)
"""Other records that overlap with the family are found too seldom: nothing here says how many could hide."""


@dataclass(frozen=True, eq=False)
class HellingerFit:
    """A fit and its errors; all of it read from released numbers.

    Parameters
    ----------
    theta : array of shape (m,)
    share : float
        Explained share of the released count.
    privacy_covariance, sampling_covariance : array of shape (m + 1, m + 1)
        Of the parameters and the share: what privacy noise and the sampling of the records contribute. The family is
        smoothed as the release is, so that smoothing moves nothing.
    degrees : array of shape (m,)
        Degrees of freedom of the errors: they are functions of the estimates, and uncertain with them.
    bandwidth : array of shape (d,)
    lumps : tuple of ExcessMass
    """

    theta: FloatArray
    share: float
    privacy_covariance: FloatArray
    sampling_covariance: FloatArray
    degrees: FloatArray
    bandwidth: FloatArray
    lumps: tuple[ExcessMass, ...] = ()


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
    >>> bool(np.abs(fit.theta - [5, 2]).max() < 0.4)
    True
    """
    small = read_bandwidth(density, INFERENCE.clear) if bandwidth is None else bandwidth
    large = read_bandwidth(density, INFERENCE.linear) if bandwidth is None else bandwidth
    field, point, constant = _first_fit(density, family, box, small)
    point, cut = without_excess_masses(field, point, constant)
    # No lump to resist: the larger bandwidth has less noise under the roots, and its errors are more nearly linear.
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
        lumps=excess_masses(field, point, cut),
    )


def read_bandwidth(density: PrivateDensity, clear: float) -> FloatArray:
    """Smallest planned bandwidth at which the released density stands this many deviations above the noise."""
    smallest, largest = density.spec.planned[0], density.spec.planned[-1]
    for factor in np.geomspace(1.0, largest[0] / smallest[0], INFERENCE.readings):
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
    # Noise far from the records would widen the moments more than the records themselves.
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
    # A lattice in more parameters has too few points per axis to be of help.
    if m > 3:
        return [*starts, field.family.start(field.box)]
    size = max(2, int(min(INFERENCE.lattice_points, 24.0**m) ** (1.0 / m)))
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
    return degrees_of(variances, point, covariance, np.vstack([inner, DISTANCE.explained_range]))[:-1]


@dataclass(frozen=True)
class Explained:
    """Which part of the records the family explains.

    Parameters
    ----------
    share : float
        Mass of the fitted family as a part of the released count, at most 1.
    standard_error : float
        Of the share: privacy noise, that of the count included, and the sampling of the records. The family is smoothed
        as the release is, so that smoothing moves nothing.
    lumps : tuple of ExcessMass
        Where more records lie than the family, noise and chance put there; they had no say in the fit.
    """

    share: float
    standard_error: float
    lumps: tuple[ExcessMass, ...]

    @property
    def contamination(self) -> float:
        """The rest of the records."""
        return 1.0 - self.share

    def __str__(self) -> str:
        told = f"the family explains {100 * self.share:.0f}% of the records (± {100 * self.standard_error:.2g}%)"
        if self.standard_error >= 1:
            told = "how much of the records the family explains is not known"
        for lump in self.lumps:
            sides = " x ".join(f"{low:.4g} to {high:.4g}" for low, high in zip(lump.low, lump.high, strict=True))
            told += f"; {100 * lump.share:.0f}% in excess at {sides}"
        return told


def intervals(
    family: Family,
    estimates: Mapping[str, float],
    errors: Mapping[str, float],
    degrees: Mapping[str, float],
    box: FloatArray,
    level: float,
) -> dict[str, tuple[float, float]]:
    """Student's intervals of the parameters, of positive ones in their logarithm, within their public bounds.

    The error of a positive parameter grows with it, so that its logarithm is nearer to a normal law.
    """
    from scipy.special import stdtrit

    result = {}
    for (name, value), limit, (low, high) in zip(estimates.items(), family.limits, box.tolist(), strict=True):
        reach = float(stdtrit(degrees[name], 0.5 + 0.5 * level)) * errors[name]
        # An interval of the logarithm: the parameter cannot be negative, and neither can its interval.
        if limit[0] == 0.0:
            factor = math.exp(min(reach / value, 700.0))
            ends = (value / factor, value * factor)
        else:
            ends = (value - reach, value + reach)
        result[name] = (max(ends[0], low), min(ends[1], high))
    return result


def explained_part(fit: HellingerFit, density: PrivateDensity) -> Explained:
    """Share of the released count that the fitted family explains, and what lies beside it."""
    variance = float(fit.privacy_covariance[-1, -1] + fit.sampling_covariance[-1, -1])
    count = density.count_sd / density.count
    # The share is a mass over the released count, whose noise moves it too.
    error = float(np.sqrt(variance + (fit.share * count) ** 2))
    return Explained(min(fit.share, 1.0), error, fit.lumps)


def estimates_of(
    family: Family, theta: FloatArray, privacy: FloatArray, sampling: FloatArray, degrees: FloatArray
) -> dict[str, Any]:
    """Estimates and their errors, by the names of a fitted estimator's attributes."""
    errors = np.sqrt(np.diag(privacy + sampling)).tolist()
    return {
        "params_": dict(zip(family.parameters, theta.tolist(), strict=True)),
        "privacy_covariance_": privacy,
        "sampling_covariance_": sampling,
        "covariance_": privacy + sampling,
        "standard_errors_": dict(zip(family.parameters, errors, strict=True)),
        "degrees_of_freedom_": dict(zip(family.parameters, degrees.tolist(), strict=True)),
    }


def message_of(family: Family, box: FloatArray, theta: FloatArray, count: float, sd: float = 0.0) -> str:
    """What to beware of, from released values; no advice where nothing was counted."""
    if is_nothing(count, sd):
        return "the estimates are of noise alone"
    told = []
    # Below this the errors, which are linear approximations, are only a rough guide.
    if count < INFERENCE.few:
        told.append(f"there are only about {count:.0f} records: errors are rough")
    width = box[:, 1] - box[:, 0]
    ends = (theta < box[:, 0] + 1e-3 * width) | (theta > box[:, 1] - 1e-3 * width)
    at_bound = [name for name, end in zip(family.parameters, ends, strict=True) if end]
    if at_bound:
        told.append(f"{' and '.join(at_bound)} lies at the end of parameter_bounds: widen them, if that is plausible")
    return "; ".join([*told, NO_PROMISE])


def descent_message(family: Family, box: FloatArray, theta: FloatArray, n: int, guarantee: Guarantee) -> str:
    """What to beware of after a descent, whose number of rows is public."""
    cautions = release_cautions(guarantee.epsilon, guarantee.delta, float(n))
    return joined(message_of(family, box, theta, float(n)), *cautions)
