r"""What is public about a private Gaussian mixture: checked before anything is spent.

Reading of a private step of expectation-maximisation for mixtures: what the noise leaves to be believed.

The sums are those of :class:`fogline.queries.em_step.StepSums`. A step shows, for each component, the
offset of its mean and its covariance in the component's own whitened coordinates, where a component that is right has
offset 0 and covariance I. Both come with noise of known variance :math:`\tau^2` an entry. The component itself is
known up to an error of variance p from the steps before, so the m numbers y that a step shows have variance
:math:`p + \tau^2` or, where the step before had not converged, more. The change that is believed is

.. math:: b\,y, \qquad b = \frac{v}{v + \tau^2}, \qquad v = p \text{ or } |y|^2/m - \tau^2,

the latter where p is unknown or y is longer than p explains, and the error that is left has variance
:math:`b\,\tau^2`. Where p is unknown this is the estimator of James and Stein, else the filter of Kalman: each step
counts with the inverse of its variance, and none undoes another.

A Gaussian mixture in four releases: scale, moments, density, steps of expectation-maximisation.

1. *scale*: count, mean and spread on the public ball.
2. *moments*: mean and covariance, clipped at the released radius.
3. *density*: random features on the leading directions; greedy pursuit finds round components, free of cost, for
   every number of them that is asked for.
4. *steps*: private expectation-maximisation in all columns, from there.

Every choice is made from public parameters and earlier answers. The proof is in ``mixture_from_density.proof.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fogline import _validation
from fogline._typing import FloatArray, IntArray
from fogline.accounting.budget import Budget
from fogline.algorithms.clustering import FREQUENCIES, density_spec
from fogline.algorithms.mixture_recursive import MixtureFit, MixtureSettings
from fogline.algorithms.stage_shares import MIXTURE_SHARES, mixture_shares, paid_portions
from fogline.density.components.matching import MatchedMixture, fit_characteristic_function
from fogline.density.components.pursuit import ClusterPrior, SphericalComponents, matching_pursuit
from fogline.density.private_density import PrivateDensity
from fogline.queries.ball_search import NotSeparable
from fogline.queries.em_step import (
    FARTHEST_CENTRE,
    OFFSET_BITS,
    SHARE,
    CentredRecords,
    GaussianClusters,
    Kind,
    StepQuery,
    StepSums,
    mean_lever,
    offset_noise,
    square_lever,
)
from fogline.queries.lattice import BallLattice
from fogline.queries.moments import (
    BESIDE,
    DIAGONAL,
    MomentQuery,
    Moments,
    PrivateComponents,
    Spread,
    SpreadQuery,
    components_of,
)
from fogline.queries.projected_density import ProjectedDensityQuery
from fogline.releases.curator import Curator

__all__ = [
    "MIXTURE",
    "MixturePlan",
    "MixtureState",
    "MixtureStepQuery",
    "MixtureTuning",
    "covariance_noise",
    "find_mixture",
    "plan_mixture",
    "read_step",
    "step_kind",
]


@dataclass(frozen=True)
class MixtureTuning:
    """What is tuned of mixtures read from a released density.

    Attributes
    ----------
    eigenvalues : tuple
        A step changes no variance by more than these factors.
    surprise : float
        A step that shows more than is expected by this many deviations finds that the one before had not
        converged.
    readable : float
        Covariances are released where the noise of a whitened one, as a Frobenius norm over the root of d, is
        below this.
    single_steps : tuple of int
        How one Gaussian shares the budget of the steps out over them. It has no labels to converge: cheap steps find
        the coordinates in which its covariance has little noise, and the last ones measure it there.
    single_readable : float
        As `readable`, for one Gaussian: a step believes no more than stands out of its noise.
    inner : float
        Components are sought within this many deviations of the mean along each direction.
    patience : int
        Where the number of components is open: how many more than the best are tried before the search ends.
    drowned : float
        One Gaussian is published where the last step would leave more noise than this in the mean of a component, in
        its own deviations,
    faint : float
        or where it would leave more noise than this in its number of records, as a part of an even share,
    unplaced : float
        or where the steps left a mean with a larger variance than this, in variances of its component,
    narrow : float
        or where a component came within this factor of the least variance,
    disagreement : float
        or where the mixture as a whole is wider than the released covariance by this factor, and by its noise,
    clipped_disagreement : float
        and by this factor where it is clipped as the records were.
    most_widening : float
        A single Gaussian is widened at most by this part for what is unknown of its shape.
    unknown : float
        Variance along directions that the released covariance does not show, as a part of the largest that noise shows.
    """

    eigenvalues: tuple[float, float] = (0.4, 2.5)
    surprise: float = 3.0
    readable: float = 0.5
    single_steps: tuple[int, ...] = (1, 1, 2, 2, 3)
    single_readable: float = 2.5
    inner: float = 2.5
    patience: int = 3
    drowned: float = 0.35
    faint: float = 0.3
    unplaced: float = 0.5
    narrow: float = 2.0
    disagreement: float = 1.5
    clipped_disagreement: float = 1.25
    most_widening: float = 0.5
    unknown: float = 0.125


MIXTURE = MixtureTuning()

MOST_COMPONENTS = 64

MOST_COLUMNS = 64
"""Most columns of the steps: their integer products stay exact up to here."""

MOST_DIRECTIONS = 10
"""Directions of the density where the number of components is open."""

AUTO_COMPONENTS = 12
"""Most components that are tried where their number is open."""

STEPS = 5
"""Steps of expectation-maximisation."""

MOST_STEPS = 48

ADVICE = "one Gaussian describes all that the noise lets be seen: take more records or a larger epsilon"


@dataclass(frozen=True, eq=False)
class MixturePlan:
    """All that is public about a mixture in four kinds of release.

    Attributes
    ----------
    lattice : BallLattice
    n_components : int or None
    variance_range : (float, float)
        Smallest and largest variance of a component along a direction, in units of the radius.
    least_weight : float
    portions : dict of Fraction
        Of the whole budget, by name; they sum to one.
    steps : int
    fixed : dict of Fraction or None
        The portions without an expected number of records, where these are others.
    """

    lattice: BallLattice
    n_components: int | None
    variance_range: tuple[float, float]
    least_weight: float
    portions: dict[str, Fraction]
    steps: int
    fixed: dict[str, Fraction] | None = None

    @property
    def most_components(self) -> int:
        """Most components that may be found."""
        return AUTO_COMPONENTS if self.n_components is None else self.n_components

    @property
    def most_directions(self) -> int:
        """Most directions of the density."""
        return min(self.lattice.d, MOST_DIRECTIONS if self.n_components is None else max(self.n_components, 1))

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: what makes two questions the same."""
        return {
            "bounds": [list(pair) for pair in self.lattice.bounds],
            "n_components": self.n_components,
            "variance_range": list(self.variance_range),
            "least_weight": self.least_weight,
            "portions": {name: str(portion) for name, portion in self.portions.items()},
            "steps": self.steps,
        }

    @property
    def formerly(self) -> dict[str, Any] | None:
        """The question in the words of before, when a number of records that was expected chose no shares."""
        return None if self.fixed is None else {"portions": {name: str(part) for name, part in self.fixed.items()}}

    def payload(self) -> int:
        """Most bytes that all answers, and what is remembered with them, can take."""
        d, k = self.lattice.d, self.most_components
        step = k * (1 + d + d * (d + 1) // 2)
        kept = self.most_directions * (d + 1) + k * (3 + d + d * d) + 2 * AUTO_COMPONENTS
        return 8 * (2 * d + 2 + d * (d + 1) // 2 + 2 * FREQUENCIES + 1 + self.steps * step + kept) + 2**16


def plan_mixture(
    settings: MixtureSettings, d: int, box: FloatArray | None = None, rho: float | None = None
) -> MixturePlan:
    """Check an estimator's parameters for the method of sketches.

    Parameters
    ----------
    settings : PrivateGaussianMixture
        Its constructor's parameters are read, nothing else.
    d : int
        Number of columns.
    box : array of shape (d, 2), optional
        Public ranges of the columns, in place of the ball.
    rho : float, optional
        Of the whole fit: with a number of records that is expected it decides the shares.
    """
    if d > MOST_COLUMNS:
        raise ValueError(f"X has {d} columns: method 'sketch' takes up to {MOST_COLUMNS}; take method 'recursive'")
    k = checked_components(settings.n_components, MOST_COMPONENTS)
    lattice = _lattice(settings, d, box)
    least = checked_weight(settings.weight_min, k)
    portions = _portions(settings.shares)
    steps = _validation.check_count(settings.steps, "steps", minimum=0)
    if steps > MOST_STEPS:
        raise ValueError(f"steps must be at most {MOST_STEPS}, got {steps}")
    if (steps == 0) != (portions["steps"] == 0):
        raise ValueError("steps: none are made exactly where their share of the budget is 0")
    plan = MixturePlan(lattice, k, variance_range(settings, None if box is None else d), least, portions, steps)
    if rho is None or settings.shares is not None:
        return plan
    chosen = mixture_shares(settings.expect_records, rho, k, settings.neighbours, settings.max_contributions)
    return plan if chosen == portions else replace(plan, portions=chosen, fixed=portions)


def _lattice(settings: MixtureSettings, d: int, box: FloatArray | None) -> BallLattice:
    """The public ball, or with bounds the ellipsoid around their box, in which columns count alike."""
    if box is not None:
        if settings.radius is not None or settings.center is not None:
            raise ValueError("bounds take the place of radius and center: give one or the other")
        return BallLattice.spanning(box)
    # The origin is public; a mean of the data would not be.
    centre = np.zeros(d) if settings.center is None else np.asarray(settings.center, dtype=np.float64)
    if centre.shape != (d,):
        raise ValueError(f"center must have one number for each of the {d} columns, got shape {centre.shape}")
    return BallLattice.around(centre, settings.radius)


def checked_components(n_components: int | None, most: int) -> int | None:
    """Return the wanted number of components, None where it is to be found."""
    if n_components is None:
        return None
    wanted = _validation.check_count(n_components, "n_components")
    if wanted > most:
        raise ValueError(f"n_components must be at most {most}, got {wanted}")
    return wanted


def checked_weight(weight_min: float | None, k: int | None) -> float:
    """Smallest weight that is believed: a fifth of an even share where none is given."""
    even = 1 / (k or AUTO_COMPONENTS)
    if weight_min is None:
        return even / 5
    least = _validation.check_positive(weight_min, "weight_min")
    if least > even:
        raise ValueError(f"weight_min must be at most 1/n_components = {even:.4g}, got {least}")
    return least


def variance_range(settings: MixtureSettings, d: int | None = None) -> tuple[float, float]:
    """Smallest and largest variance of a component, in units of the radius; with bounds of d columns, of sqrt(d)."""
    # with bounds, deviations are parts of each column's half range, of which the radius is sqrt(d)
    radius = _validation.check_positive(settings.radius, "radius") if d is None else math.sqrt(d)
    low = radius / 1000 if settings.sigma_min is None else _validation.check_positive(settings.sigma_min, "sigma_min")
    high = radius if settings.sigma_max is None else _validation.check_positive(settings.sigma_max, "sigma_max")
    if low > high:
        raise ValueError(f"sigma_min must not exceed sigma_max, got {low} and {high}")
    return (low / radius) ** 2, (high / radius) ** 2


def _portions(shares: object) -> dict[str, Fraction]:
    """Portions of the budget by name."""
    if shares is None:
        return {name: Fraction(share) for name, share in MIXTURE_SHARES.items()}
    if not isinstance(shares, Mapping) or not {"scale", "moments", "density"} <= set(shares) <= set(MIXTURE_SHARES):
        raise ValueError("shares must name scale, moments, density and, where steps are made, steps")
    try:
        split = Budget(rho=1.0).split(**shares)
    except (TypeError, ValueError) as error:
        raise ValueError(f"shares: {error}") from None
    return {"steps": Fraction(0), **{name: share.portion for name, share in split.items()}}


@dataclass(frozen=True, eq=False)
class MixtureState:
    """A mixture and how well the releases so far know it.

    Attributes
    ----------
    model : GaussianClusters
    mean_variances : array of shape (k,)
        Variance, from the privacy noise, of each coordinate of a whitened mean.
    shape_variances : array of shape (k,)
        The same of the entries of a whitened covariance; 0 where nothing but the start is known of it.
    weight_sds : array of shape (k,)
    kind : {"full", "tied", "round"}
        What the last step released of the shapes.
    total : (float, float)
        Of a single Gaussian: the number of records by all releases so far, and its standard deviation; (0, 0) where
        nothing is known yet.
    """

    model: GaussianClusters
    mean_variances: FloatArray
    shape_variances: FloatArray
    weight_sds: FloatArray
    kind: Kind = "round"
    total: tuple[float, float] = (0.0, 0.0)


def read_step(
    state: MixtureState,
    query: StepSums,
    values: IntArray,
    scale: float,
    *,
    count: float,
    least: float,
    variance_range: tuple[float, float],
) -> MixtureState:
    """Improved mixture from the released sums of a step.

    Parameters
    ----------
    state : MixtureState
        Before the step.
    query : StepSums
        Of the state's model.
    values, scale
        The released sums and their noise.
    count : float
        Released number of records.
    least : float
        Smallest weight that is believed.
    variance_range : (float, float)
        Smallest and largest variance of a component along any direction.
    """
    k, r, q = query.k, query.r, query.radius / 2.0**OFFSET_BITS
    count_unit, offset_unit, _ = query.units
    counts = values[:k] / float(SHARE * count_unit)
    # A noisy count near zero would blow up everything that is divided by it.
    sizes = np.maximum(counts, max(least * count, 1.0))
    total = state.total
    if k == 1:  # a wrong number of records makes the whole covariance wrong, in every step anew
        total = _pooled(total, float(counts[0]), scale / float(SHARE * count_unit))
        sizes = np.array([max(total[0], 1.0)])
    unit = SHARE * offset_unit * 2.0**OFFSET_BITS * mean_lever(r, q)
    offsets = values[k : k + k * r].reshape(k, r) / unit / sizes[:, None]
    offsets, mean_variances = believed(offsets, scale / unit / sizes, state.mean_variances)
    shapes, shape_variances = _shapes(state, query, values[k + k * r :], scale, sizes, offsets)
    means = query.model.means + np.einsum("kij,kj->ki", query.factors, offsets)
    # Noise may throw a mean anywhere; the next query takes centres up to this distance only.
    farthest = FARTHEST_CENTRE / query.steps
    covariances = np.stack([_within(f @ s @ f.T, variance_range) for f, s in zip(query.factors, shapes, strict=True)])
    model = GaussianClusters(sizes / sizes.sum(), np.clip(means, -farthest, farthest), covariances)
    weight_sds = np.full(k, scale / float(SHARE * count_unit) / max(float(sizes.sum()), 1.0))
    return MixtureState(model, mean_variances, shape_variances, weight_sds, query.kind, total)


def _pooled(known: tuple[float, float], value: float, sd: float) -> tuple[float, float]:
    """Number of records by earlier releases and a new one, each with the inverse of its variance."""
    if known[1] == 0.0:
        return value, sd
    old, new = known[1] ** -2, sd**-2
    return (old * known[0] + new * value) / (old + new), (old + new) ** -0.5


@dataclass(frozen=True, eq=False)
class MixtureStepQuery(StepQuery):
    """A step that improves a mixture; parameters as for :func:`read_step`."""

    state: MixtureState
    count: float
    least: float
    variance_range: tuple[float, float]

    def decode(self, values: IntArray, noise_scale: float) -> MixtureState:
        """The improved mixture, and how well it is known."""
        return read_step(
            self.state,
            self,
            values,
            noise_scale,
            count=self.count,
            least=self.least,
            variance_range=self.variance_range,
        )


def believed(seen: FloatArray, noise: FloatArray, before: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Changes that are believed, one row of numbers for each component, and the variance of what error is left.

    Parameters
    ----------
    seen : array of shape (k, m)
    noise : array of shape (k,)
        Standard deviation of the noise of each number.
    before : array of shape (k,)
        Variance of the error before this step; 0 where it is unknown.

    Examples
    --------
    >>> change, left = believed(np.array([[1.0, 1.0], [3.0, 3.0]]), np.ones(2), np.array([1.0, 0.0]))
    >>> change.round(2).tolist(), left.round(2).tolist()
    ([[0.5, 0.5], [2.67, 2.67]], [0.5, 0.89])
    """
    squared = noise**2
    shown = np.mean(seen**2, axis=1)
    expected = before + squared
    # A change far beyond error and noise means that the error was larger than thought, not that it should be shrunk.
    surprised = shown > expected * (1 + MIXTURE.surprise * math.sqrt(2 / seen.shape[1]))
    variance = np.where((before == 0) | surprised, np.maximum(shown - squared, before), before)
    factor = variance / np.maximum(variance + squared, 1e-300)
    return seen * factor[:, None], factor * squared


def step_kind(weights: FloatArray, r: int, count: float, scale: float) -> Kind:
    """Choose what a step releases of the shapes, from released numbers: only what its noise would not drown."""
    if len(weights) == 1:
        return "full" if covariance_noise("full", r, count, scale) < MIXTURE.single_readable else "round"
    # The small components drown first; the very smallest would forbid shapes for all.
    smaller = float(np.quantile(weights, 0.25, method="lower"))
    if covariance_noise("full", r, count * smaller, scale) < MIXTURE.readable:
        return "full"
    return "tied" if covariance_noise("tied", r, count, scale) < MIXTURE.readable else "round"


def weight_noise(k: int, count: float, scale: float, kind: Kind) -> float:
    """Noise of a component's number of records in a step with noise `scale`, as a part of an even share.

    Examples
    --------
    >>> round(weight_noise(4, 1000.0, 10.0, "round"), 3)
    0.131
    """
    a, b = StepSums.lengths(kind)
    return scale * math.hypot(a, b, 0.0 if kind == "round" else 1.0) / a / max(count / k, 1.0)


def covariance_noise(kind: Kind, r: int, records: float, scale: float) -> float:
    """Noise of a whitened covariance, as a Frobenius norm over the root of r, of a step with noise `scale`."""
    q = math.sqrt(r) + 0.5
    norm = math.hypot(*StepSums.lengths(kind), 1.0)
    return math.sqrt(r) * scale * q * q * norm / square_lever(r, q) / max(records, 1.0)


def _shapes(
    state: MixtureState, query: StepSums, values: IntArray, scale: float, sizes: FloatArray, offsets: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Whitened covariance of each component, and the variance of its entries' error."""
    k, r = query.k, query.r
    identity = np.eye(r)
    if query.kind == "round":
        return np.repeat(identity[None], k, axis=0), state.shape_variances
    first, second = np.triu_indices(r)
    # Entries beside the diagonal stand for two: so scaled, lengths of the vector are those of the matrix.
    isometric = np.where(first != second, math.sqrt(2), 1.0)
    lever = square_lever(r, query.radius / 2.0**OFFSET_BITS)
    units = SHARE * np.where(first != second, BESIDE, DIAGONAL) * 4.0**OFFSET_BITS * lever
    divisors = sizes if query.kind == "full" else np.array([sizes.sum()])
    moved = np.einsum("ki,kj->kij", offsets, offsets)
    if query.kind == "tied":
        moved = np.einsum("k,kij->ij", sizes / sizes.sum(), moved)[None]
    changes = values.reshape(-1, len(first)) / units / divisors[:, None] - (moved + identity)[:, first, second]
    noise = math.sqrt(2) * scale / (SHARE * BESIDE * 4.0**OFFSET_BITS * lever) / divisors  # of the isometric entries
    before = state.shape_variances[: len(changes)]
    changes, variances = believed(changes * isometric, noise, before)
    square = np.zeros((len(changes), r, r))
    square[:, first, second] = square[:, second, first] = changes / isometric
    eigenvalues, vectors = np.linalg.eigh(identity + square)
    # One step may not change a width by more: noise would make it collapse or explode.
    shapes = np.einsum("kij,kj,klj->kil", vectors, np.clip(eigenvalues, *MIXTURE.eigenvalues), vectors)
    if query.kind == "tied":
        return np.repeat(shapes, k, axis=0), np.repeat(variances, k)
    return shapes, variances


def _within(covariance: FloatArray, variance_range: tuple[float, float]) -> FloatArray:
    """Keep the variance along every direction in its range."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((vectors * np.clip(values, *variance_range)) @ vectors.T)


def find_mixture(plan: MixturePlan, curator: Curator) -> MixtureFit:
    """Ask for scale, moments, density and steps, one after the other."""
    plan = replace(plan, portions=paid_portions(curator, plan.portions, plan.fixed))
    spread = curator.ask(SpreadQuery(plan.lattice), plan.portions["scale"], "scale")
    moments = curator.ask(MomentQuery.around(spread, plan.lattice), plan.portions["moments"], "moments")
    found = components_of(moments, plan.lattice, plan.most_directions)
    parts = found.with_numbers(curator.remember("projection", found.numbers))
    sums = ProjectedDensityQuery(parts.projection, density_spec(parts), curator.terms.guarantee())
    density = curator.ask(sums, plan.portions["density"], "density")
    # What decides later queries is stored with the answers: computed again it might differ in the last bits.
    alone = _is_drowned(plan, curator, spread, parts)

    def begin() -> dict[str, Any]:
        return _one_gaussian(plan, moments, parts, spread) if alone else _start(plan, density, moments, parts)

    kept = curator.remember("start", begin)
    criteria = {int(k): float(value) for k, value in zip(kept["tried"], kept["criteria"], strict=True)}
    state = _steps(plan, curator, _as_state(kept), spread, parts)
    several = len(state.model.weights) > 1
    radius = spread.radius(plan.lattice) / plan.lattice.steps
    if _is_lost(plan, state) or (several and _disagrees(state, moments, radius)):
        state = _as_state(_one_gaussian(plan, moments, parts, spread))
    if len(state.model.weights) == 1:
        state = _as_wide_as_unknown(plan, state)
    fit = _in_data_units(plan, state, spread, parts, density, criteria)
    wanted = plan.n_components or 1
    few = len(fit.weights) == 1 < wanted
    return replace(fit, verdict=NotSeparable("sketch", 1, wanted, ADVICE)) if few else fit


def _is_drowned(plan: MixturePlan, curator: Curator, spread: Spread, parts: PrivateComponents) -> bool:
    """Whether the noise would drown the components: known from released numbers before the steps are paid for."""
    k = plan.n_components or 2
    if k == 1:
        return False
    last = plan.portions["steps"] * Fraction(2, plan.steps + 1) if plan.steps else plan.portions["density"]
    scale = 1 / math.sqrt(2 * float(last) * curator.terms.rho)
    noise = offset_noise(k, plan.lattice.d, spread.count, scale, "round")
    kind = step_kind(np.full(k, 1 / k), plan.lattice.d, spread.count, scale)
    faint = weight_noise(k, spread.count, scale, kind) > MIXTURE.faint
    return parts.standing < 1 or noise > MIXTURE.drowned or faint


def _is_lost(plan: MixturePlan, state: MixtureState) -> bool:
    """Whether the steps left a component without a place, or drew it together to the least width."""
    narrowest = float(np.linalg.eigvalsh(state.model.covariances).min())
    unplaced = float(state.mean_variances.max()) > MIXTURE.unplaced
    return unplaced or narrowest < MIXTURE.narrow * plan.variance_range[0]


def _disagrees(state: MixtureState, moments: Moments, radius: float) -> bool:
    """Whether a mixture is wider than the released covariance by more than noise, clipping and a margin explain."""
    model, d = state.model, len(moments.covariance)
    offset = model.means - model.weights @ model.means
    squares = np.einsum("kii->k", model.covariances) + np.einsum("ki,ki->k", offset, offset)
    noise = 2 * moments.noise_sd * d * math.sqrt(d)
    released = max(float(np.trace(moments.covariance)), 0.0)
    # The covariance is that of clipped records, which have little of a small group that lies far out: the mixture must
    # be too wide when it is clipped alike, too.
    clipped = float(model.weights @ np.minimum(squares, radius**2))
    too_wide = float(model.weights @ squares) > MIXTURE.disagreement * released + noise
    return too_wide and clipped > MIXTURE.clipped_disagreement * released + noise


def _as_state(kept: Mapping[str, Any]) -> MixtureState:
    """A start as it was kept with the answers."""
    model = GaussianClusters(kept["weights"], kept["means"], kept["covariances"])
    return MixtureState(model, kept["mean_variances"], np.zeros(len(model.weights)), kept["weight_sds"])


def _as_wide_as_unknown(plan: MixturePlan, state: MixtureState) -> MixtureState:
    """One Gaussian, wider by what is not known of its place and shape: too narrow a model is dear."""
    wide = 1 + float(state.mean_variances[0]) + min(2 * float(state.shape_variances[0]), MIXTURE.most_widening)
    covariance = _within(wide * state.model.covariances[0], plan.variance_range)
    return replace(state, model=replace(state.model, covariances=covariance[None]))


def _one_gaussian(plan: MixturePlan, moments: Moments, parts: PrivateComponents, spread: Spread) -> dict[str, Any]:
    """A single Gaussian with the released moments; wide along directions that noise hides, never narrow."""
    d = plan.lattice.d
    edge = 2 * moments.noise_sd * math.sqrt(d)
    unknown = max(spread.variance / d, MIXTURE.unknown * edge)
    values, vectors = np.linalg.eigh((moments.covariance + moments.covariance.T) / 2)
    # an eigenvalue that stands out is still too large, by what noise adds to it
    shown = values - edge**2 / 4 / np.maximum(values, edge)
    shape = (vectors * np.where(values > edge, shown, unknown)) @ vectors.T
    covariance = _within(shape, plan.variance_range)
    return {
        "weights": np.ones(1),
        "means": np.zeros((1, d)),  # from the released mean
        "covariances": covariance[None],
        "mean_variances": np.array([parts.mean_sd**2 * d / max(float(np.trace(covariance)), 1e-300)]),
        "weight_sds": np.array([spread.count_sd / max(spread.count, 1.0)]),
        "tried": np.array([1]),
        "criteria": np.array([0.0]),
    }


def _in_data_units(
    plan: MixturePlan,
    state: MixtureState,
    spread: Spread,
    parts: PrivateComponents,
    density: PrivateDensity,
    criteria: dict[int, float],
) -> MixtureFit:
    """Components as users see them; the errors of the means are those of the noise and of the draw of the records."""
    model, radius = state.model, plan.lattice.half_widths
    counts = model.weights * spread.count
    # In units of the component's variance the draw of n records adds 1/n.
    known = state.mean_variances + 1 / np.maximum(counts, 1.0)
    variances = known[:, None] * np.einsum("kii->ki", model.covariances)
    return MixtureFit(
        weights=model.weights,
        means=plan.lattice.inside(plan.lattice.places(parts.projection.centre + model.means * plan.lattice.steps)),
        covariances=model.covariances * np.multiply.outer(radius, radius),
        counts=counts,
        count_sd=math.hypot(float(np.max(state.weight_sds)) * spread.count, spread.count_sd / len(counts)),
        mean_sd=np.sqrt(variances) * radius,
        density=density,
        components=parts.projection.components,
        centre=parts.projection.mean,
        criteria=criteria,
        whole=(max(spread.count, 1.0), spread.count_sd),
        portions=plan.portions,
    )


def _start(plan: MixturePlan, density: PrivateDensity, moments: Moments, parts: PrivateComponents) -> dict[str, Any]:
    """Components that match the density, lifted to all columns; their number by the criterion where it is open."""
    frame = _frame(plan, parts)
    numbers = range(1, plan.most_components + 1) if plan.n_components is None else [plan.n_components]
    tried: dict[int, float] = {}
    for k in numbers:
        atoms = matching_pursuit(density, k, frame)
        matched = fit_characteristic_function(density, atoms)
        if not tried or matched.criterion < min(tried.values()):
            best = atoms, matched
        tried[k] = matched.criterion
        # The criterion has one valley, up to noise: some numbers beyond its lowest point are enough.
        if k >= len(best[1].weights) + MIXTURE.patience:
            break
    return {
        **_lifted(plan, *best, moments, parts),
        "tried": np.array(list(tried)),
        "criteria": np.array(list(tried.values())),
    }


def _frame(plan: MixturePlan, parts: PrivateComponents) -> ClusterPrior:
    """Where components may lie: within the image of the ball and a few deviations, with the released moments."""
    low, high = parts.projection.extent()
    reach = MIXTURE.inner * np.sqrt(parts.variances)
    leading = float(parts.variances[0])
    noise = parts.edge / (2 * math.sqrt(plan.lattice.d)) * math.sqrt(2)
    least, most = plan.variance_range
    # A standard deviation of a twenty-fifth of the whole is the least that is tried, unless the user allows less.
    smallest = float(np.clip(0.0016 * leading, least, leading / 2))
    return ClusterPrior(
        lower=np.maximum(-reach, low),
        upper=np.minimum(reach, high),
        variance_range=(smallest, float(np.clip(most, 2 * smallest, leading))),
        mean=np.zeros(parts.projection.r),
        mean_sd=np.hypot(parts.mean_sd, 0.1 * np.sqrt(parts.variances)),
        variances=parts.variances,
        variance_sds=np.hypot(noise, 0.15 * parts.variances),
    )


def _lifted(
    plan: MixturePlan, atoms: SphericalComponents, matched: MatchedMixture, moments: Moments, parts: PrivateComponents
) -> dict[str, FloatArray]:
    """Components on the leading directions as a mixture in all columns.

    Means and shapes are the matched ones on those directions. Across them the components are alike: there the released
    covariance is theirs, where it stands out of its noise.
    """
    components, d = parts.projection.components, plan.lattice.d
    weights = np.maximum(matched.weights, plan.least_weight)
    weights = weights / weights.sum()
    common = float(weights @ np.einsum("kii->k", matched.covariances)) / parts.projection.r
    edge = 2 * moments.noise_sd * math.sqrt(d)
    across = np.eye(d) - components.T @ components
    values, vectors = np.linalg.eigh(across @ moments.covariance @ across)
    # Below its noise a released variance says nothing: there the components are as wide as on the directions seen.
    beside = (vectors * np.where(values > edge, values, common)) @ vectors.T
    inside = np.einsum("ra,krs,sb->kab", components, matched.covariances, components)
    least, most = plan.variance_range
    floor = min(max(0.05 * common, least), most)
    covariances = inside + across @ beside @ across
    values, vectors = np.linalg.eigh((covariances + np.swapaxes(covariances, 1, 2)) / 2)
    clipped = np.clip(values, floor, max(min(max(9 * common, 2 * floor), most), floor))
    return {
        "weights": weights,
        "means": matched.means @ components,  # from the released mean
        "covariances": np.einsum("kij,kj,klj->kil", vectors, clipped, vectors),
        "mean_variances": atoms.centre_variances.mean(axis=1) / common,
        "weight_sds": atoms.weight_sds,
    }


def _parts_of_steps(plan: MixturePlan, k: int) -> list[Fraction]:
    """Part of the steps' budget for each of them; the parts add up to one."""
    if k > 1:
        # Errors of early steps are corrected by later ones; the last step's error stays.
        return [Fraction(2 * (step + 1), plan.steps * (plan.steps + 1)) for step in range(plan.steps)]
    weights = MIXTURE.single_steps[-plan.steps :] if plan.steps else ()
    return [Fraction(weight, sum(weights)) for weight in weights]


def _steps(
    plan: MixturePlan, curator: Curator, start: MixtureState, spread: Spread, parts: PrivateComponents
) -> MixtureState:
    """Private steps of expectation-maximisation in all columns, later ones with more of the budget."""
    state, k, d = start, len(start.model.weights), plan.lattice.d
    if k == 1:
        state = replace(state, total=(spread.count, spread.count_sd))
    image = CentredRecords(plan.lattice, parts.projection.centre)
    for part in _parts_of_steps(plan, k):
        portion = plan.portions["steps"] * part
        scale = 1 / math.sqrt(2 * float(portion) * curator.terms.rho)
        kind = step_kind(state.model.weights, d, spread.count, scale)
        query = MixtureStepQuery(
            state.model,
            plan.lattice.steps,
            kind,
            image,
            state,
            spread.count,
            plan.least_weight,
            plan.variance_range,
        )
        state = curator.ask(query, portion, "steps")
    return state
