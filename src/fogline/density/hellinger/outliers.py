r"""What a release shows beside the family: lumps that stand above it by more than noise and sampling could raise.

Hellinger distance resists outliers as far as its bandwidth is small, which noise does not allow; but the noise is
known. A family gives way to a lump: it moves and widens, and hides part of it. So at a suspect place x a lump is fitted
*beside* the family, and the gain is compared with what noise and sampling would give. With residuals :math:`r` of the
roots, the roots' derivatives J in the parameters and b in the lump's mass, and :math:`\tilde b` the part of b that J
does not have, the distance falls by :math:`(\tilde b^\top r)^2/|\tilde b|^2` to first order; so

.. math:: z^2 = \frac{|\tilde b|^2}{\mathrm{Var}(\tilde b^\top r)} \times \text{(what the distance falls by)}

is the square of a standard normal, where there is no lump; the variance is that of the privacy noise, known exactly,
and of the draw of the records.

What a fit to leaves cannot show: how contamination must be spread over the cells so that no test of the fit finds it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.hellinger.minimum_distance import SmoothedFamily, minimise, tangent

__all__ = ["OUTLIERS", "ExcessMass", "OutlierTuning", "excess_masses", "hidden_directions", "without_excess_masses"]


@dataclass(frozen=True)
class OutlierTuning:
    """What is tuned of the search for excess mass.

    Attributes
    ----------
    excess_level : float
        Chance that noise and sampling alone raise something somewhere that is taken for a lump.
    cut : float
        A lump is cut out with this many bandwidths around it.
    most_excess_masses, most_cut : int or float
        Largest part of the family that may be cut out: what is left must determine the rest.
    candidate_locations : mapping by dimension
        Places that are tried in a round, by dimension.
    suspicion : float
        A place is tried where the excess over a fit to all is this part of the threshold.
    """

    excess_level: float = 0.1
    cut: float = 2.5
    most_excess_masses: int = 8
    most_cut: float = 0.5
    candidate_locations: Mapping[int, int] = field(default_factory=lambda: {1: 3, 2: 1, 3: 1})
    suspicion: float = 0.4


OUTLIERS = OutlierTuning()


@dataclass(frozen=True)
class ExcessMass:
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


def without_excess_masses(field: SmoothedFamily, point: FloatArray, c: float) -> tuple[FloatArray, IntArray]:
    """Cut out lumps, worst first, and fit again; return the point and the number of each cut, 0 for what is kept."""
    from scipy.ndimage import label

    threshold = excess_threshold(field)
    cut = np.zeros(len(field.released), dtype=bool)
    for _ in range(OUTLIERS.most_excess_masses):
        point, distance = minimise(field, point, ~cut, c)
        candidate_locations = _candidate_locations(field, point, cut, threshold)
        tried = [_tried(field, point, distance, c, cut, place) for place in candidate_locations]
        place, fitted, z = max(tried, key=lambda one: one[2], default=(0, point, -math.inf))
        if z <= threshold:
            break
        high = np.where(cut, False, _pointwise_excess(field, fitted) > 0.5 * threshold)
        # A lump found by the fit beside the family may not be the highest excess of the fit without it.
        high[place] = True
        regions = label(high.reshape(field.inside))[0].ravel()
        wider = cut | _around(field, regions == regions[place])
        if _released_share(field, wider) > OUTLIERS.most_cut:
            # What holds most of the records is what the family is for: fit it there, and cut out what is beside it.
            majority = _from_majority(field, fitted, c, wider, threshold)
            if majority is None:
                break
            point, cut = majority
            continue
        # The family must still be seen in what is left, or it would fit whatever the cuts spare.
        if float(field.model(fitted[:-1])[wider].sum()) * field.volume > OUTLIERS.most_cut:
            break
        cut = wider
        point = minimise(field, fitted, ~cut, c)[0]
    numbered, _ = label(cut.reshape(field.inside))
    return point, np.asarray(numbered, dtype=np.int64).ravel()


def _released_share(field: SmoothedFamily, places: BoolArray) -> float:
    """Part of the released density that lies in these places."""
    return float(field.released[places].sum() / max(float(field.released.sum()), 1e-300))


def _from_majority(
    field: SmoothedFamily, start: FloatArray, c: float, majority: BoolArray, threshold: float
) -> tuple[FloatArray, BoolArray] | None:
    """Fit the family to the places that hold most of the records; return the fit and what stands above it elsewhere.

    A family that was fitted to all of a main part and a few far records is too wide for both: the main part then looks
    like a lump, and cutting it out would leave the family to the few. None where the fit to the majority leaves nothing
    in excess, or would cut out half of the records itself.
    """
    from scipy.ndimage import label, maximum

    # The moments of the majority alone, since the fit to all may be far from it.
    mass = np.where(majority, np.maximum(field.released, 0.0), 0.0)
    mass = mass / max(float(mass.sum()), 1e-300)
    mean = mass @ field.points
    centred = field.points - mean
    variance = (centred * mass[:, None]).T @ centred - np.diag(field.reading.bandwidth**2)
    flat = len(mean) == 1
    moments = field.family.moment_start(mean[0] if flat else mean, variance[0, 0] if flat else variance, field.box)
    tried = [minimise(field, np.append(theta, start[-1]), majority, c) for theta in (moments, start[:-1])]
    point = min(tried, key=lambda found: found[1])[0]
    excess = np.where(majority, -math.inf, _pointwise_excess(field, point))
    regions, number = label((excess > 0.5 * threshold).reshape(field.inside))
    tops = np.asarray(maximum(excess.reshape(field.inside), regions, np.arange(number + 1)))
    # A region counts if it stands as high as a lump must; the many small ones are noise.
    high = ((tops > threshold) & (np.arange(number + 1) > 0))[regions.ravel()]
    cut = _around(field, high) & ~majority
    if not cut.any() or _released_share(field, cut) > OUTLIERS.most_cut:
        return None
    return minimise(field, point, ~cut, c)[0], cut


def excess_threshold(field: SmoothedFamily) -> float:
    r"""Height that a smooth Gaussian field passes anywhere in the box with the chance `OUTLIERS.excess_level`.

    Above a high level u the mean number of summits is nearly the mean Euler characteristic,

    .. math:: |B|\,|\Lambda|^{1/2}\,(2\pi)^{-(d+1)/2}\,u^{d-1} e^{-u^2/2},

    with :math:`\Lambda` the covariance of the gradient; in one dimension this is Rice's formula.

    References
    ----------
    R. J. Adler, "The Geometry of Random Fields", Wiley, 1981.
    """
    power = field.reading.noise**2
    d = field.spec.d
    gradients = (field.reading.angular**2 * power[:, None]).sum(axis=0) / power.sum()
    cells = float(np.prod(field.spec.widths * np.sqrt(gradients))) * (2.0 * math.pi) ** (-0.5 * (d + 1))
    level = 3.0
    for _ in range(30):  # the fixed point of u = sqrt(2 log(cells u^(d-1) / level)), which contracts
        level = math.sqrt(2.0 * max(math.log(max(cells, 1.0) * level ** (d - 1) / OUTLIERS.excess_level), 1.0))
    return level


def _candidate_locations(field: SmoothedFamily, point: FloatArray, cut: BoolArray, threshold: float) -> list[int]:
    """Highest places of the excess over the fit so far, a window apart."""
    left = np.where(cut, -math.inf, _pointwise_excess(field, point))
    places: list[int] = []
    while len(places) < OUTLIERS.candidate_locations[field.spec.d]:
        worst = int(np.argmax(left))
        if left[worst] < OUTLIERS.suspicion * threshold:
            break
        places.append(worst)
        left = np.where(_around(field, np.arange(len(left)) == worst), -math.inf, left)
    return places


def _pointwise_excess(field: SmoothedFamily, point: FloatArray) -> FloatArray:
    """Released density above the fit, in deviations of noise and sampling at the point."""
    model = point[-1] * field.model(point[:-1])
    variance = field.noise_variance + np.maximum(model, 0.0) * field.energy / field.count
    return np.asarray((field.released - model) / np.sqrt(variance))


def _tried(
    field: SmoothedFamily, point: FloatArray, distance: float, c: float, cut: BoolArray, place: int
) -> tuple[int, FloatArray, float]:
    """Fit a lump at a place beside the family; return the place, the family's part of the fit, and z."""
    spike = np.zeros((len(cut), 1))
    spike[place] = 1.0
    lump = field.influence(spike)[:, 0]
    fitted, nearer = minimise(field, np.append(point, 0.0), ~cut, c, beside=lump, tolerance=1e-4)
    slope, jacobian = tangent(field, point, c, ~cut)
    own = slope * lump
    # What the family could imitate by moving its parameters is no evidence of a lump.
    own = own - jacobian @ np.linalg.lstsq(jacobian, own, rcond=None)[0]
    weights = (slope * own)[:, None]
    masses = point[-1] * field.masses(point[:-1])
    variance = field.noise_covariance(weights)[0, 0] + float(masses @ field.influence(weights)[:, 0] ** 2) / field.count
    # The minimiser reports half a sum of squares.
    gain = 2.0 * max(distance - nearer, 0.0) * float(own @ own)
    return place, fitted[:-1], math.sqrt(gain / max(float(variance), 1e-300))


def _around(field: SmoothedFamily, places: BoolArray) -> BoolArray:
    from scipy.ndimage import maximum_filter

    size = [2 * round(OUTLIERS.cut * h / s) + 1 for h, s in zip(field.reading.bandwidth, field.spacing, strict=True)]
    return np.asarray(maximum_filter(places.reshape(field.inside), size).ravel())


def excess_masses(field: SmoothedFamily, point: FloatArray, cut: IntArray) -> tuple[ExcessMass, ...]:
    """Boxes around the cuts and what they hold above the fit, the greatest first."""
    excess = (field.released - point[-1] * field.model(point[:-1])) * field.volume
    lumps = []
    for number in range(1, int(cut.max(initial=0)) + 1):
        within = field.points[cut == number]
        share = float(excess[cut == number].sum())
        lumps.append(ExcessMass(tuple(within.min(axis=0).tolist()), tuple(within.max(axis=0).tolist()), share))
    return tuple(sorted(lumps, key=lambda lump: -lump.share))


def hidden_directions(seen: FloatArray, influence: FloatArray, power: float, most: float) -> FloatArray:
    """Shares of other records in all cells that move each parameter most, up and down, without being found.

    Parameters
    ----------
    seen : array of shape (cells, cells)
        Quadratic form of the noncentrality.
    influence : array of shape (cells, parameters)
        Move of each parameter by a share of one in a cell.
    power, most : float
        Largest noncentrality that is not found, as a root; largest share in all.

    Returns
    -------
    array of shape (2 parameters, cells)

    Examples
    --------
    >>> hidden_directions(np.eye(2), np.array([[1.0], [1.0]]), 0.1, 0.2).round(3).tolist()
    [[0.071, 0.071], [0.0, 0.0]]
    """
    from scipy.optimize import nnls

    size, m = influence.shape
    values, vectors = np.linalg.eigh((seen + seen.T) / 2)
    # What no residual shows is limited by the largest share below, not by the test.
    values = np.maximum(values, 1e-6 * max(float(values[-1]), 1e-300))
    found = np.zeros((2 * m, size))
    for row, (j, sign) in enumerate(itertools.product(range(m), (1.0, -1.0))):
        slope = sign * influence[:, j]
        root = np.sqrt(values)
        share = nnls(root[:, None] * vectors.T, (vectors.T @ slope) / root, maxiter=50 * size)[0]
        size_seen = math.sqrt(max(float(share @ seen @ share), 1e-300))
        limit = most / max(float(share.sum()), 1e-300)
        found[row] = share * min(power / size_seen, limit)
    return found
