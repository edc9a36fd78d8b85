"""What a fit plans from public quantities alone: the box of the data, bandwidths, and the errors to expect."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_bounds, check_count, check_max_contributions, check_real
from fogline.engines.counted import CountedFile
from fogline.engines.files import FileTable
from fogline.estimators._hellinger_distance import noise_constant
from fogline.estimators._hellinger_field import SmoothedFamily
from fogline.estimators._hellinger_fit import LINEAR, linearised
from fogline.estimators._hellinger_quadrature import DescentPlan
from fogline.estimators._hellinger_steps import MOST_RECORDS, planned_errors
from fogline.families import Family, MultivariateNormal
from fogline.mechanisms.gaussian import gaussian_scale
from fogline.sketch.counted_records import check_expected
from fogline.sketch.density_sketch import ReleaseTerms, lattice_sensitivity
from fogline.sketch.fourier import LATTICE_BITS
from fogline.sketch.private_density import PrivateDensity
from fogline.sketch.spec import SketchSpec, as_bandwidth

__all__ = [
    "ExpectedFit",
    "check_expectation",
    "checked_guess",
    "data_box",
    "expected_descent",
    "expected_fit",
    "plan_descent",
    "plan_sketch",
    "rows_of",
    "smallest_bandwidth",
]

FloatArray = NDArray[np.float64]

ITERATIONS = 4
"""Steps of a descent, where the user does not say."""

FINE, COARSE = 0.25, 1.2
"""Smallest and largest planned bandwidth, in units of the family's middle scale."""

NARROWEST = 0.8
"""The smallest planned bandwidth is at most so much of the least scale that the parameter bounds allow."""

RATIO = 6.0
"""Planned bandwidths lie at most this factor apart."""

FINEST = {1: 1 / 1500, 2: 1 / 48, 3: 1 / 16}
"""Least planned bandwidth as a fraction of the box, by dimension: it keeps the release small."""

TAILS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02)
"""Mass that the planned box of a univariate family may leave out at either end: the first with which the finest
bandwidth tells the narrowest law, or the last. What lies outside is cut off the family as well and biases nothing."""

BLURRED = 4.0
"""A plan whose finest bandwidth is so many times the greatest scale of the family would show nothing of it."""


@dataclass(frozen=True, eq=False)
class ExpectedFit:
    """Standard errors to expect of a fit, by parameter; from public guesses alone.

    Parameters
    ----------
    n : int
    parameters : tuple of str
    theta : array of shape (m,)
        The guess.
    privacy_errors, sampling_errors : arrays of shape (m,)
    """

    n: int
    parameters: tuple[str, ...]
    theta: FloatArray
    privacy_errors: FloatArray
    sampling_errors: FloatArray

    @property
    def standard_errors(self) -> dict[str, float]:
        """Both parts together."""
        return dict(zip(self.parameters, np.hypot(self.privacy_errors, self.sampling_errors).tolist(), strict=True))

    def __str__(self) -> str:
        lines = [f"{'':12} {'guess':>10} {'privacy':>10} {'sampling':>10}"]
        rows = zip(self.parameters, self.theta, self.privacy_errors, self.sampling_errors, strict=True)
        lines += [
            f"{name:12} {guess:10.4g} {privacy:10.3g} {sampling:10.3g}" for name, guess, privacy, sampling in rows
        ]
        return "\n".join(lines)


def data_box(family: Family, box: FloatArray, bounds: Any) -> FloatArray:
    """Public range of the data: the user's, or that of nearly all data under any parameters within their bounds."""
    if bounds is None:
        return _planned_box(family, box)
    checked = check_bounds(bounds, width=family.dimension)
    if len(checked) != family.dimension:
        raise ValueError(f"bounds must be one (low, high) for each of {family.dimension} columns, got {len(checked)}")
    low, high = family.support
    for axis, (least, greatest) in enumerate(checked.tolist()):
        if greatest <= low or least >= high:
            raise ValueError(
                f"bounds of axis {axis} must overlap the support of the {family.name} family, ({low}, {high}), "
                f"got ({least}, {greatest})"
            )
    return checked


def _planned_box(family: Family, box: FloatArray) -> FloatArray:
    """Quantiles over all the parameters, so far out as a fine enough bandwidth allows."""
    if family.dimension > 1 or not hasattr(family, "quantile"):
        return check_bounds(family.data_bounds(box))
    for tail in TAILS:
        planned = check_bounds(family.data_bounds(box, tail), name="parameter_bounds: range of the data over")
        finest = FINEST[1] * float(planned[0, 1] - planned[0, 0])
        if finest <= NARROWEST * float(family_scales(family, box, planned)[0, 0]):
            break
    return planned


def family_scales(family: Family, box: FloatArray, bounds: FloatArray) -> FloatArray:
    """Least and greatest scale of the data an axis over the parameter bounds, shape (d, 2)."""
    if isinstance(family, MultivariateNormal):
        return box[family.dimension : 2 * family.dimension]
    if family.dimension == 1 and hasattr(family, "quantile"):
        corners = [np.array(corner) for corner in itertools.product(*box)]
        ends = np.array([family.quantile(corner, [0.16, 0.84]) for corner in corners])
        scales = 0.5 * (ends[:, 1] - ends[:, 0])
        return np.array([[scales.min(), scales.max()]])
    widths = bounds[:, 1] - bounds[:, 0]
    return np.stack([widths / 32.0, widths / 8.0], axis=1)


def plan_sketch(family: Family, box: FloatArray, bounds: FloatArray, bandwidth: Any, steps: Any) -> SketchSpec:
    """Plan the release of a density to which a family will be fitted."""
    widths = bounds[:, 1] - bounds[:, 0]
    if not isinstance(bandwidth, str):
        fixed = as_bandwidth(bandwidth, widths)
        return SketchSpec.plan(bounds, [fixed], steps)
    if bandwidth != "auto":
        raise ValueError(f"bandwidth must be 'auto', a number or one value an axis, got {bandwidth!r}")
    middle, factors = _factors(family, box, bounds)
    shares = np.arange(1.0, len(factors) + 1.0)
    planned = [f * middle for f in factors]
    try:
        return SketchSpec.plan(bounds, planned, steps, shares=shares / shares.sum())
    except ValueError as error:
        if not str(error).startswith("bandwidths"):
            raise
        raise ValueError(f"parameter_bounds or bounds are too wide: {error}") from None


def smallest_bandwidth(family: Family, box: FloatArray, bounds: FloatArray, bandwidth: Any) -> float:
    """Public bandwidth of a descent, in data units."""
    if not isinstance(bandwidth, str):
        return float(as_bandwidth(bandwidth, bounds[:, 1] - bounds[:, 0])[0])
    if bandwidth != "auto":
        raise ValueError(f"bandwidth must be 'auto', a number or one value an axis, got {bandwidth!r}")
    middle, factors = _factors(family, box, bounds)
    return float(factors[0] * middle[0])


def _factors(family: Family, box: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Middle scale an axis, and the planned bandwidths in units of it."""
    scales, widths = family_scales(family, box, bounds), bounds[:, 1] - bounds[:, 0]
    middle = np.minimum(np.sqrt(scales[:, 0] * scales[:, 1]), widths / (2.0 * COARSE))
    narrow = float((NARROWEST * scales[:, 0] / middle).min())
    least = float((FINEST[len(bounds)] * widths / middle).max())
    fine = max(min(FINE, narrow), least)
    blurred = FINEST[len(bounds)] * widths > BLURRED * scales[:, 1]
    if np.any(blurred):
        axis = int(np.argmax(blurred))
        fitting = BLURRED * scales[axis, 1] / FINEST[len(bounds)]
        raise ValueError(
            f"parameter_bounds allow a {family.name} of scale {scales[axis, 0]:.3g} to {scales[axis, 1]:.3g} on axis "
            f"{axis}, too narrow for data from {bounds[axis, 0]:.4g} to {bounds[axis, 1]:.4g}: narrow them, or give "
            f"bounds at most {fitting:.3g} wide"
        )
    coarse = max(COARSE, 2.0 * fine)
    size = 1 + max(1, math.ceil(math.log(coarse / fine) / math.log(RATIO)))
    return middle, np.geomspace(fine, coarse, size)


def rows_of(source: Any) -> int:
    """Public number of rows, under replacement; usable or not."""
    if isinstance(source, CountedFile):
        return source.rows
    if isinstance(source, FileTable) or not hasattr(source, "__len__"):
        raise TypeError(
            "X must be an array or a frame for a descent, whose number of rows is public, or a CountedFile, which "
            "declares it"
        )
    return len(source)


def checked_guess(family: Family, box: FloatArray, theta: Any) -> FloatArray:
    """Parameters from a mapping, within their bounds."""
    if set(theta) != set(family.parameters):
        raise ValueError(f"theta must have one value for each of {', '.join(family.parameters)}")
    guess = np.array([check_real(theta[name], f"theta of {name}") for name in family.parameters])
    if np.any((guess < box[:, 0]) | (guess > box[:, 1])):
        raise ValueError("theta must lie within parameter_bounds")
    return guess


# -- errors to expect -----------------------------------------------------------------------------------------------


def expected_fit(
    family: Family, box: FloatArray, spec: SketchSpec, terms: ReleaseTerms, n: int, theta: FloatArray
) -> ExpectedFit:
    """Standard errors of a fit to n records of the family with these parameters."""
    scale = gaussian_scale(lattice_sensitivity(spec, terms.neighbours, terms.max_contributions), terms.rho)
    sums = np.zeros(spec.n_coefficients, dtype=np.int64)
    sums[0] = round(n * 2.0**LATTICE_BITS * float(spec.integer_weights[0]) / 2.0**24)
    empty = PrivateDensity(spec, sums, scale=scale, guarantee=terms.guarantee())
    for factor in np.geomspace(1.0, spec.planned[-1, 0] / spec.planned[0, 0], 7):
        field = SmoothedFamily(empty, family, factor * spec.planned[0], box)
        if float(field.model(theta).max()) >= LINEAR * math.sqrt(field.noise_variance):
            break
    point = np.append(theta, 1.0)
    everywhere = np.ones(len(field.released), dtype=bool)
    parts = linearised(field, point, noise_constant(field, theta), everywhere, field.released)
    privacy, sampling = (np.sqrt(np.diag(part))[:-1] for part in parts)
    return ExpectedFit(n, family.parameters, theta, privacy, sampling)


def check_expectation(expect_records: object, method: str) -> None:
    """Refuse an expected number of records that cannot be used: a descent releases no count to compare it with."""
    if check_expected(expect_records) is not None and method != "sketch":
        raise ValueError(f"expect_records: method={method!r} releases no count, since its number of rows is public")


def plan_descent(asked: Any, family: Family, box: FloatArray, bounds: FloatArray, n: int) -> DescentPlan:
    """Plan of a descent over n rows, from the parameters of an estimator; raises before anything is spent."""
    if family.dimension != 1:
        raise ValueError(f"method={asked.method!r} serves one column, the {family.name} family has more: use 'sketch'")
    if asked.steps is not None:
        raise ValueError("steps: rounding is known to method='sketch' only")
    if n > MOST_RECORDS:
        raise ValueError(f"X must have at most {MOST_RECORDS} rows for method={asked.method!r}")
    return DescentPlan(
        family=family,
        box=box,
        bounds=(float(bounds[0, 0]), float(bounds[0, 1])),
        bandwidth=smallest_bandwidth(family, box, bounds, asked.bandwidth),
        iterations=ITERATIONS if asked.iterations is None else check_count(asked.iterations, "iterations"),
        newton=asked.method == "newton",
        n=n,
        max_contributions=check_max_contributions(asked.max_contributions),
    )


def expected_descent(plan: DescentPlan, terms: ReleaseTerms, theta: FloatArray) -> ExpectedFit:
    """Standard errors of a descent that arrives."""
    privacy, sampling = (np.sqrt(np.diag(part)) for part in planned_errors(plan, terms.rho, theta))
    return ExpectedFit(plan.n, plan.family.parameters, theta, privacy, sampling)
