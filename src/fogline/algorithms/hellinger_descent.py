r"""Where a Hellinger descent starts: the parameters nearest to noisy counts of a few wide bins.

With the noise variance v of a count, :math:`\sqrt{\text{count} + v}` has a variance near 1/4, of which
:math:`v/(n p_b + v)` is privacy's and the rest sampling's, so least squares of such roots is efficient, and its errors
are known. Counts have the sensitivity of one record; steps of a descent, through a root, that of
:math:`\sqrt{nh}` of them at a bandwidth h: the start is worth half the budget.

Private descent on the Hellinger distance: a few noisy steps of the records themselves, under replacement.

On a public grid with weight w a point, with the kernel estimate :math:`g = \frac1n\sum_i k_i`, each record's mass
:math:`\sum_q w\,k_i(x_q) \le 1`, and the family :math:`m_\theta` smoothed by the same kernel, the loss is

.. math:: L(\theta) = 2\sum_q w\big(\sqrt{g} - \sqrt{m_\theta}\big)^2, \qquad
          \nabla L = 2\sum_q w \nabla m_\theta - 2\sum_q w\sqrt{g\,m_\theta}\,u, \qquad u = \nabla m_\theta/m_\theta .

Only the second sum sees records. At the solution the Hessian of L is the Fisher information
:math:`I = \sum_q w\,m\,u u^\top`, which is public given :math:`\theta`: gradients are asked for in the coordinates
:math:`W = I^{-1/2}`, where a step of length one is Newton's. ``method="newton"`` asks for the Hessian as well.

The proof is ``hellinger_descent.proof.md``.

What a fit plans from public quantities alone: the box of the data, bandwidths, and the errors to expect.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from fogline._typing import BandwidthLike, BoundsLike, FloatArray, StepsLike
from fogline._validation import check_bounds, check_count, check_max_contributions, check_real
from fogline.density.counted_records import check_expected
from fogline.density.hellinger.inference import INFERENCE, linearised
from fogline.density.hellinger.minimum_distance import SmoothedFamily, degrees_of, noise_constant
from fogline.density.private_density import PrivateDensity
from fogline.density.spec import LATTICE_BITS, SketchSpec, as_bandwidth
from fogline.families import Family, MultivariateNormal
from fogline.mechanisms.discrete_gaussian import gaussian_scale
from fogline.queries.fourier_sums import lattice_sensitivity
from fogline.queries.hellinger_descent import BinCountsQuery, DescentPlan, Quadrature, RootQuery
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms

__all__ = [
    "DESCENT",
    "START_PORTION",
    "Descent",
    "DescentTuning",
    "ExpectedFit",
    "Start",
    "answers_of",
    "check_expectation",
    "checked_guess",
    "data_box",
    "descend",
    "descent_bandwidth",
    "expected_descent",
    "expected_fit",
    "nearest",
    "plan_descent",
    "plan_sketch",
    "planned_errors",
    "start_at",
    "start_of",
    "start_variance",
]


@dataclass(frozen=True)
class DescentTuning:
    """What is tuned of descents and the plans of sketches.

    Attributes
    ----------
    curvatures : tuple
        Eigenvalues of a noisy Hessian are moved into this range; at the solution they are 1.
    curvature_spread : float
        Near the solution a curvature is 1 within about this, and half the iterate's distance from the solution.
    iterations : int
        Steps of a descent, where the user does not say.
    fine, coarse : float
        Smallest and largest planned bandwidth, in units of the family's middle scale.
    narrowest : float
        The smallest planned bandwidth is at most this part of the least scale that the parameter bounds allow.
    ratio : float
        Planned bandwidths lie at most this factor apart.
    finest : mapping by dimension
        Least planned bandwidth as a fraction of the box, by dimension: it keeps the release small.
    tails : tuple
        Mass that the planned box of a univariate family may leave out at either end: the first with which the
        finest bandwidth tells the narrowest law, or the last. What lies outside is cut off the family as well
        and biases nothing.
    shrinking_from : int
        From so many rows on the planned bandwidth of a descent shrinks with the root of their number.
    blurred : float
        A plan whose finest bandwidth is this many times the greatest scale of the family would show nothing of
        it.
    """

    curvatures: tuple[float, float] = (1.0 / 3.0, 3.0)
    curvature_spread: float = 0.25
    iterations: int = 4
    fine: float = 0.25
    coarse: float = 1.2
    narrowest: float = 0.8
    ratio: float = 6.0
    finest: Mapping[int, float] = field(default_factory=lambda: {1: 1 / 1500, 2: 1 / 48, 3: 1 / 16})
    tails: tuple[float, ...] = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02)
    shrinking_from: int = 100
    blurred: float = 4.0


DESCENT = DescentTuning()


START_PORTION = Fraction(1, 2)
"""Share of the budget."""


@dataclass(frozen=True, eq=False)
class Start:
    """Parameters to start from, and what is known of their error; released values only."""

    theta: FloatArray
    privacy_covariance: FloatArray
    sampling_covariance: FloatArray
    variances: Callable[[FloatArray], FloatArray]


def start_of(curator: Curator, grid: Quadrature) -> Start:
    """Ask for the counts and fit the family to them."""
    told = curator.ask(BinCountsQuery(grid), START_PORTION, "start")
    variance = told.variance
    roots = np.sqrt(np.maximum(told.counts + variance, 0.0))
    theta = nearest(lambda theta: np.sqrt(_masses(grid, theta) + variance) - roots, grid.plan.family, grid.plan.box)
    return start_at(grid, theta, variance)


def start_variance(plan: DescentPlan, rho: float) -> float:
    """Variance of the noise of a count."""
    return 2.0 * plan.max_contributions**2 / (2.0 * float(START_PORTION) * rho)


def start_at(grid: Quadrature, theta: FloatArray, variance: float) -> Start:
    """The start at these parameters, with its errors."""
    privacy, sampling = _covariances(grid, theta, variance)
    return Start(theta, privacy, sampling, lambda at: np.asarray(np.diag(sum(_covariances(grid, at, variance)))))


def _masses(grid: Quadrature, theta: FloatArray) -> FloatArray:
    """Records that the family puts in each bin."""
    bins, group = grid.bins()
    masses = grid.plan.family.pdf(theta, grid.points) * grid.width
    return np.asarray(max(grid.plan.n, 1) * np.bincount(group, weights=masses, minlength=bins))


def _covariances(grid: Quadrature, theta: FloatArray, variance: float) -> tuple[FloatArray, FloatArray]:
    """Covariance of the start from privacy and from sampling."""
    box = grid.plan.box
    width = box[:, 1] - box[:, 0]
    columns = []
    for j, step in enumerate(1e-4 * width):
        up, down = theta.copy(), theta.copy()
        up[j], down[j] = min(theta[j] + step, box[j, 1]), max(theta[j] - step, box[j, 0])
        change = np.sqrt(_masses(grid, up) + variance) - np.sqrt(_masses(grid, down) + variance)
        columns.append(change / (up[j] - down[j]))
    jacobian = np.stack(columns, axis=1)
    # What the counts say nothing about is known from the bounds; that is privacy's part.
    bounds = np.diag(1.0 / width**2)
    inverse = np.linalg.inv(4.0 * jacobian.T @ jacobian + bounds)
    counts = _masses(grid, theta)
    part = (counts / (counts + variance))[:, None]
    sampling = inverse @ (4.0 * (jacobian * part).T @ jacobian) @ inverse
    # Where nothing is known of a parameter, sampling moves it by next to nothing: keep the matrix positive.
    sampling += np.diag(1e-18 * width**2)
    return np.asarray(inverse - sampling + np.diag(2e-18 * width**2)), np.asarray(sampling)


def nearest(missed: Callable[[FloatArray], FloatArray], family: Family, box: FloatArray) -> FloatArray:
    """Minimise a sum of squares over a box of parameters: the best of a lattice, then downhill."""
    from scipy.optimize import least_squares

    size = max(2, int(400.0 ** (1.0 / len(box))))
    axes = [
        np.geomspace(low, high, size) if limit[0] == 0.0 else np.linspace(low, high, size)
        for (low, high), limit in zip(box.tolist(), family.limits, strict=True)
    ]
    # Sums of squares of a family have several valleys; a coarse look at all of the box finds the right one.
    lattice = [np.array(theta) for theta in itertools.product(*axes)]
    best = lattice[int(np.argmin([float(np.sum(missed(theta) ** 2)) for theta in lattice]))]
    width = box[:, 1] - box[:, 0]
    # The solver starts strictly inside of its bounds.
    inside = np.clip(best, box[:, 0] + 1e-6 * width, box[:, 1] - 1e-6 * width)
    found = least_squares(missed, inside, bounds=(box[:, 0], box[:, 1]), x_scale=width, max_nfev=50)
    return np.asarray(found.x)


MOST_RECORDS = 2**30
"""Up to here the errors of floating-point sums stay below half a lattice step."""

HESSIAN_PORTION = Fraction(1, 5)
"""Share of the Hessian in a Newton step."""


@dataclass(frozen=True, eq=False)
class Descent:
    """The path of a descent and its errors; released values only."""

    theta: FloatArray
    path: FloatArray
    privacy_covariance: FloatArray
    sampling_covariance: FloatArray
    degrees: FloatArray


def answers_of(plan: DescentPlan) -> int:
    """Numbers of answers of a descent."""
    return 1 + plan.iterations * (2 if plan.newton else 1)


def descend(plan: DescentPlan, curator: Curator) -> Descent:
    r"""Start from noisy counts, make the steps, and weigh each by what is known of its error.

    A step is a noisy measurement of where the distance is least. With P the covariance of the iterate's error and R
    that of the measurement, the iterate moves by the part :math:`K = P(P + R)^{-1}` of the step (Kalman's gain), and
    :math:`(I - K)P` is left: no step makes it worse.
    """
    grid = Quadrature(plan)
    start = start_of(curator, grid)
    theta, belief = start.theta, _Belief.of(start)
    path = [theta]
    for _ in range(plan.iterations):
        target, error = _step(curator, grid, theta, belief.privacy)
        gain = belief.gain(error)
        # The bounds are public knowledge: to use it costs nothing and keeps a noisy step harmless.
        theta = np.clip(theta + gain @ (target - theta), *plan.box.T)
        belief = belief.after(gain, error)
        path.append(theta)
    sampling = belief.sampling(start.sampling_covariance, grid.sampling_covariance(theta))
    return Descent(
        theta=theta,
        path=np.array(path),
        privacy_covariance=belief.privacy,
        sampling_covariance=sampling,
        degrees=degrees_of(start.variances, theta, belief.privacy + sampling, plan.box),
    )


@dataclass(frozen=True, eq=False)
class _Belief:
    """Covariance of the privacy error of an iterate, and which part of it is still the start."""

    privacy: FloatArray
    start: FloatArray

    @classmethod
    def of(cls, start: Start) -> _Belief:
        return cls(start.privacy_covariance, np.eye(len(start.theta)))

    def gain(self, error: FloatArray) -> FloatArray:
        # Solved, not inverted: near the end both covariances are tiny.
        return np.asarray(np.linalg.solve((self.privacy + error).T, self.privacy.T).T)

    def after(self, gain: FloatArray, error: FloatArray) -> _Belief:
        rest = np.eye(len(gain)) - gain
        return _Belief(rest @ self.privacy @ rest.T + gain @ error @ gain.T, rest @ self.start)

    def sampling(self, start: FloatArray, steps: FloatArray) -> FloatArray:
        """Covariance from the draw of the records, which start and steps have in common."""
        root = self.start @ np.linalg.cholesky(start)
        root += (np.eye(len(root)) - self.start) @ np.linalg.cholesky(steps)
        return np.asarray(root @ root.T)


def planned_errors(plan: DescentPlan, rho: float, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Privacy and sampling covariance of a descent near these parameters, from public quantities alone."""
    grid = Quadrature(plan)
    start = start_at(grid, theta, start_variance(plan, rho))
    belief = _Belief.of(start)
    local = grid.local(theta)
    # In whitened coordinates the noise of a gradient is the same in all directions.
    back = np.linalg.pinv(local.whitening, hermitian=True)
    portions = _portions(plan)
    noise = grid.furthest(2.0 * local.first) / math.sqrt(2.0 * float(portions["gradient"]) * rho)
    for _ in range(plan.iterations):
        before = back @ _bounded(belief.privacy, plan.box) @ back
        doubt = _doubt(before)
        if plan.newton:
            seen = grid.furthest(local.second) / math.sqrt(2.0 * float(portions["hessian"]) * rho)
            doubt *= seen**2 / (doubt + seen**2)
        error = local.whitening @ (noise**2 * np.eye(len(theta)) + _remainder(before, doubt)) @ local.whitening.T
        belief = belief.after(belief.gain(error), error)
    return belief.privacy, belief.sampling(start.sampling_covariance, grid.sampling_covariance(theta))


def _portions(plan: DescentPlan) -> dict[str, Fraction]:
    """Portion of the budget of each answer of a step."""
    # Equal steps: the Kalman gain, not the budget, decides how much each of them counts.
    step = (1 - START_PORTION) / plan.iterations
    hessian = HESSIAN_PORTION * step if plan.newton else Fraction(0)
    return {"hessian": hessian, "gradient": step - hessian}


def _step(
    curator: Curator, grid: Quadrature, theta: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Where a step leads, and the covariance of its error, given that of the iterate.

    In the coordinates W let H be the curvature and C what is believed of it. An error d of the iterate becomes
    :math:`C^{-1}\big(e + (C - H)d\big)`, with e the noise of the gradient. C is the mean of H given what was seen of
    it, and C - H a symmetric matrix whose packed entries have the variance v that is left; then
    :math:`E(C - H)P(C - H) = \frac v2 (P + I\operatorname{tr}P)`, P the covariance of d.
    """
    local, m, portions = grid.local(theta), len(theta), _portions(grid.plan)
    back = np.linalg.pinv(local.whitening, hermitian=True)
    before = back @ _bounded(covariance, grid.plan.box) @ back
    curvature, doubt = np.eye(m), _doubt(before)
    if grid.plan.newton:
        seen, noise = curator.ask(RootQuery(grid, -local.second), portions["hessian"], "hessian")
        trust = doubt / (doubt + noise**2)  # what is beyond the doubt is noise, and not believed
        noisy = local.public_hessian + _unpacked(seen, m)
        values, axes = np.linalg.eigh(trust * noisy + (1.0 - trust) * np.eye(m))
        curvature = axes @ np.diag(np.clip(values, *DESCENT.curvatures)) @ axes.T
        doubt = trust * noise**2
    seen, noise = curator.ask(RootQuery(grid, 2.0 * local.first), portions["gradient"], "gradient")
    # The family's own records would fall short of its mass by the bias, and a small bandwidth makes it large.
    move = np.linalg.solve(curvature, seen - local.public_gradient + local.bias)
    error = noise**2 * np.eye(m) + _remainder(before, doubt)
    spread = local.whitening @ np.linalg.inv(curvature)
    return theta + local.whitening @ move, np.asarray(spread @ error @ spread.T)


def _doubt(before: FloatArray) -> float:
    """Variance of a curvature around 1, at an iterate with this error."""
    return min(DESCENT.curvature_spread**2 + 0.25 * float(np.trace(before)), 1.0)


def _remainder(before: FloatArray, doubt: float) -> FloatArray:
    """Mean of D P D over symmetric D whose packed entries have this variance, P the covariance before the step."""
    return np.asarray(0.5 * doubt * (before + np.trace(before) * np.eye(len(before))))


def _bounded(covariance: FloatArray, box: FloatArray) -> FloatArray:
    """Covariance of an error that is known not to reach beyond the bounds."""
    limit = np.diag((box[:, 1] - box[:, 0]) ** 2)
    return np.asarray(covariance @ np.linalg.solve(covariance + limit, limit))


def _unpacked(vector: FloatArray, m: int) -> FloatArray:
    rows, columns = np.triu_indices(m)
    matrix = np.zeros((m, m))
    matrix[rows, columns] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    return np.asarray(matrix + np.triu(matrix, 1).T)


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
        By privacy noise and by the sampling of the records; smoothing moves no estimate.
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


def data_box(family: Family, box: FloatArray, bounds: BoundsLike) -> FloatArray:
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
    for tail in DESCENT.tails:
        planned = check_bounds(family.data_bounds(box, tail), name="parameter_bounds: range of the data over")
        finest = DESCENT.finest[1] * float(planned[0, 1] - planned[0, 0])
        # The further out the tails, the coarser the cells: as far as the narrowest member of the family is still seen.
        if finest <= DESCENT.narrowest * float(family_scales(family, box, planned)[0, 0]):
            break
    return planned


def family_scales(family: Family, box: FloatArray, bounds: FloatArray) -> FloatArray:
    """Least and greatest scale of the data per axis over the parameter bounds, shape (d, 2)."""
    if isinstance(family, MultivariateNormal):
        return box[family.dimension : 2 * family.dimension]
    if family.dimension == 1 and hasattr(family, "quantile"):
        corners = [np.array(corner) for corner in itertools.product(*box)]
        ends = np.array([family.quantile(corner, [0.16, 0.84]) for corner in corners])
        scales = 0.5 * (ends[:, 1] - ends[:, 0])
        # Where one value holds most of the probability the quantiles coincide, and say nothing of the rest.
        some = scales[scales > 0.0]
        scales = np.where(scales > 0.0, scales, some.min() if len(some) else float(bounds[0, 1] - bounds[0, 0]) / 32.0)
        return np.array([[scales.min(), scales.max()]])
    widths = bounds[:, 1] - bounds[:, 0]
    # Nothing is known of this family's scales but that it was given this box.
    return np.stack([widths / 32.0, widths / 8.0], axis=1)


def plan_sketch(
    family: Family, box: FloatArray, bounds: FloatArray, bandwidth: BandwidthLike, steps: StepsLike
) -> SketchSpec:
    """Plan the release of a density to which a family will be fitted."""
    widths = bounds[:, 1] - bounds[:, 0]
    if not isinstance(bandwidth, str):
        fixed = as_bandwidth(bandwidth, widths)
        return SketchSpec.plan(bounds, [fixed], steps)
    if bandwidth != "auto":
        raise ValueError(f"bandwidth must be 'auto', a number or one value per axis, got {bandwidth!r}")
    middle, factors = _factors(family, box, bounds)
    # Large bandwidths carry most of the weight: small data are read there.
    shares = np.arange(1.0, len(factors) + 1.0)
    planned = [f * middle for f in factors]
    try:
        return SketchSpec.plan(bounds, planned, steps, shares=shares / shares.sum())
    except ValueError as error:
        # The user gave no bandwidths, so an error about them must name what led to them.
        if not str(error).startswith("bandwidths"):
            raise
        raise ValueError(f"parameter_bounds or bounds are too wide: {error}") from None


def descent_bandwidth(family: Family, box: FloatArray, bounds: FloatArray, bandwidth: BandwidthLike, n: int) -> float:
    """Public bandwidth of a descent over n rows, in data units.

    The noise of a step goes with the root of the bandwidth (``queries/hellinger_descent.proof.md``). What a small one
    costs, a bias of order 1/(nh), is known and taken off; with h of order 1/sqrt(n) it stays a fixed part of
    the sampling error.
    """
    if not isinstance(bandwidth, str):
        return float(as_bandwidth(bandwidth, bounds[:, 1] - bounds[:, 0])[0])
    if bandwidth != "auto":
        raise ValueError(f"bandwidth must be 'auto', a number or one value per axis, got {bandwidth!r}")
    middle, factors = _factors(family, box, bounds)
    shrunk = factors[0] * middle[0] * math.sqrt(min(1.0, DESCENT.shrinking_from / max(n, 1)))
    return float(max(shrunk, DESCENT.finest[1] * (bounds[0, 1] - bounds[0, 0])))


def _factors(family: Family, box: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Middle scale per axis, and the planned bandwidths in units of it."""
    scales, widths = family_scales(family, box, bounds), bounds[:, 1] - bounds[:, 0]
    middle = np.minimum(np.sqrt(scales[:, 0] * scales[:, 1]), widths / (2.0 * DESCENT.coarse))
    narrow = float((DESCENT.narrowest * scales[:, 0] / middle).min())
    least = float((DESCENT.finest[len(bounds)] * widths / middle).max())
    fine = max(min(DESCENT.fine, narrow), least)
    blurred = DESCENT.finest[len(bounds)] * widths > DESCENT.blurred * scales[:, 1]
    if np.any(blurred):
        axis = int(np.argmax(blurred))
        fitting = DESCENT.blurred * scales[axis, 1] / DESCENT.finest[len(bounds)]
        raise ValueError(
            f"parameter_bounds allow a {family.name} of scale {scales[axis, 0]:.3g} to {scales[axis, 1]:.3g} on axis "
            f"{axis}, too narrow for data from {bounds[axis, 0]:.4g} to {bounds[axis, 1]:.4g}: narrow them, or give "
            f"bounds at most {fitting:.3g} wide"
        )
    coarse = max(DESCENT.coarse, 2.0 * fine)
    size = 1 + max(1, math.ceil(math.log(coarse / fine) / math.log(DESCENT.ratio)))
    return middle, np.geomspace(fine, coarse, size)


def checked_guess(family: Family, box: FloatArray, theta: Mapping[str, float]) -> FloatArray:
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
    # The bandwidth that a fit would read at, from the noise alone.
    for factor in np.geomspace(1.0, spec.planned[-1, 0] / spec.planned[0, 0], 7):
        field = SmoothedFamily(empty, family, factor * spec.planned[0], box)
        if float(field.model(theta).max()) >= INFERENCE.linear * math.sqrt(field.noise_variance):
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


class DescentSettings(Protocol):
    """Parameters of an estimator that a descent is planned from."""

    method: str
    bandwidth: BandwidthLike
    iterations: int | None
    steps: StepsLike
    max_contributions: int


def plan_descent(asked: DescentSettings, family: Family, box: FloatArray, bounds: FloatArray, n: int) -> DescentPlan:
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
        bandwidth=descent_bandwidth(family, box, bounds, asked.bandwidth, n),
        iterations=DESCENT.iterations if asked.iterations is None else check_count(asked.iterations, "iterations"),
        newton=asked.method == "newton",
        n=n,
        max_contributions=check_max_contributions(asked.max_contributions),
    )


def expected_descent(plan: DescentPlan, terms: ReleaseTerms, theta: FloatArray) -> ExpectedFit:
    """Standard errors of a descent that arrives."""
    privacy, sampling = (np.sqrt(np.diag(part)) for part in planned_errors(plan, terms.rho, theta))
    return ExpectedFit(plan.n, plan.family.parameters, theta, privacy, sampling)
