r"""Gaussian mixtures of a released density: expectation-maximisation on the masses of its leaves.

With cells of mass :math:`p_c`, mean :math:`x_c` and covariance :math:`W_c`
(:mod:`fogline.density.components.leaf_cells`) a mixture :math:`\theta = (w_k, \mu_k, \Sigma_k)` is fitted by the
largest

.. math:: L(\theta) = \sum_c p_c \log \sum_k w_k\, N(x_c; \mu_k, \Sigma_k)\, e^{-\mathrm{tr}(\Sigma_k^{-1} W_c)/2},

the expected log-density with each cell's mass spread as it is inside. Mixtures of one component more start from those
of one less, by the best of its divisions, so that there is nothing random in it.

**Errors.** The fit is a function of the masses. Near the estimate it is linear: with the scores
:math:`s_c = \partial \log f_c/\partial\theta` and the curvature :math:`H = -\partial^2 L/\partial\theta^2`, a posterior
draw with masses :math:`p'` has :math:`\theta' = \theta + H^{-1}\sum_c (p'_c - p_c) s_c`. The spread of these over the
draws is the error: privacy, sampling and smoothing together.

**How many components.** A richer model gains :math:`G = \sum_c p_c \log(f'_c/f_c)`, known with the error e that the
draws give it. With n records and no noise, :math:`2nG` is a likelihood ratio and, near the simpler model,
:math:`e^2 = 2G/n`; so :math:`n = 2G/e^2` is how many records without noise would know the gain as well, and the richer
model is taken where :math:`2nG > P \log n` for P more parameters (the criterion of Schwarz at that number).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from fogline._results import ReadingResults, column_words
from fogline._typing import FloatArray
from fogline._validation import check_count
from fogline.density.components.leaf_cells import LeafCells
from fogline.density.spec import places_in_words

if TYPE_CHECKING:
    from fogline.density.posterior.posterior import Posterior

__all__ = [
    "MIXTURE_READING",
    "Gaussians",
    "MixtureReading",
    "MixtureReadingSettings",
    "choose",
    "fit_path",
    "parameter_draws",
    "parameter_scores",
    "read_mixture",
]

MOST_COMPONENTS = 32
"""Most components that can be asked for."""

LARGEST_SCORE = 8.0
"""About the score of a covariance four deviations out."""

MOST_PLACES = 128
"""Places at which a further component is tried."""


@dataclass(frozen=True)
class MixtureReadingSettings:
    """Tuned numbers of the reading.

    Attributes
    ----------
    most : int
        Most components that are tried where their number is open.
    patience : int
        How many more than the best are tried before the search ends.
    steps, trial_steps : int
        Most steps of expectation-maximisation of a fit, and of each start that is tried.
    tolerance : float
        A fit ends when a step gains less than this, in nats of all records together.
    widths : tuple of float
        Widths of components that start where mass is unexplained, in deviations of all records.
    starts : int
        How many of the best starts are followed to the end.
    least_weight : float
        A component with less than this share, as a part of an even one, is not tried.
    narrow : float
        Least variance of a component along an axis, in variances of an evenly filled leaf.
    penalty : float
        Times the logarithm of the number of records: what a parameter costs where the number is open.
    worth : float
        What a parameter costs where the number is given: components that gain less than they are expected to lose on
        other records (2 by Akaike's count, and a margin: the number that noise leaves is known only roughly) are not
        published.
    """

    most: int = 10
    patience: int = 2
    steps: int = 300
    trial_steps: int = 10
    tolerance: float = 0.003
    widths: tuple[float, ...] = (0.15, 0.4)
    starts: int = 2
    least_weight: float = 0.02
    narrow: float = 1.0
    penalty: float = 1.0
    worth: float = 3.0


MIXTURE_READING = MixtureReadingSettings()

_EXACT = 1e9
"""Largest square distance at which its rounding error, 1e-7, is not seen in a log-density."""


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A mixture, with a share that is spread evenly over a box.

    Attributes
    ----------
    weights : array of shape (k,)
    means : array of shape (k, d)
    covariances : array of shape (k, d, d)
    background : float
        Share that is spread evenly; all shares sum to one.
    log_even : float
        Logarithm of the even density.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    background: float = 0.0
    log_even: float = 0.0

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        k, d = self.means.shape
        return int(k * (1 + d + d * (d + 1) // 2)) - (self.background <= 0)

    def scores(self, points: FloatArray, within: FloatArray | None = None) -> FloatArray:
        """Logarithms of weight times density of each component at points; of the background last, if there is one."""
        k, d = self.means.shape
        # a column per component, each in one piece: sums over components then run along the points
        found = np.empty((len(points), k + (self.background > 0)), order="F")
        factors = np.linalg.cholesky(self.covariances)
        inverses = np.linalg.inv(factors)
        sizes = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        constants = np.log(np.maximum(self.weights, 1e-300)) - sizes - 0.5 * d * math.log(2 * math.pi)
        for j, inverse in enumerate(inverses):
            z = (points - self.means[j]) @ inverse.T
            square = np.einsum("ci,ci->c", z, z)
            if within is not None:
                square = square + within.reshape(len(within), d * d) @ (inverse.T @ inverse).ravel()
            found[:, j] = constants[j] - 0.5 * square
        if self.background > 0:
            found[:, k] = math.log(self.background) + self.log_even
        return found

    def cell_scores(self, cells: LeafCells) -> FloatArray:
        r"""The same of the cells of a posterior, as one product of matrices where its rounding does not matter.

        With :math:`\Lambda = \Sigma^{-1}`, :math:`(x - \mu)^\top \Lambda (x - \mu) + \operatorname{tr} \Lambda W` is
        linear in 1, :math:`x` and :math:`x x^\top + W`; its rounding error is that of
        :math:`x^\top \Lambda x`.
        """
        k, d = self.means.shape
        factors = np.linalg.cholesky(self.covariances)
        inverses = np.linalg.inv(factors)
        shape = np.swapaxes(inverses, 1, 2) @ inverses
        if float(shape.max()) * cells.farthest > _EXACT:
            return self.scores(cells.places, cells.within)
        pull = np.einsum("kij,kj->ki", shape, self.means)
        sizes = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1) + 0.5 * d * math.log(2 * math.pi)
        constants = np.log(np.maximum(self.weights, 1e-300)) - sizes - 0.5 * np.einsum("ki,ki->k", pull, self.means)
        linear = np.concatenate([constants[:, None], pull, -0.5 * shape.reshape(k, d * d)], axis=1)
        if self.background > 0:
            even = np.zeros((1, linear.shape[1]))
            even[0, 0] = math.log(self.background) + self.log_even
            linear = np.concatenate([linear, even])
        return np.asarray((linear @ cells.moments.T).T)

    def log_density(self, points: FloatArray, within: FloatArray | None = None) -> FloatArray:
        """Logarithm of the density."""
        return shared_out(self.scores(points, within))[0]


def shared_out(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`\log \sum_j e^{s_{cj}}` per row and the shares :math:`e^{s_{cj}}` of its terms.

    Examples
    --------
    >>> total, share = shared_out(np.log([[1.0, 3.0]]))
    >>> round(float(np.exp(total[0])), 6), share.round(6).tolist()
    (4.0, [[0.25, 0.75]])
    """
    top = scores.max(axis=1)
    terms = np.exp(scores - top[:, None])
    total = terms.sum(axis=1)
    terms /= total[:, None]
    return top + np.log(total), terms


@dataclass(frozen=True, eq=False, repr=False)
class MixtureReading(ReadingResults):
    """A Gaussian mixture read from a release, in data units; the heaviest component first.

    Attributes
    ----------
    weights, weight_errors : array of shape (k,)
        Shares and their standard errors: privacy noise, the sampling of the records and smoothing.
    means, mean_errors : array of shape (k, d)
        Centres and their standard errors: privacy noise, the sampling of the records and smoothing.
    covariances, covariance_errors : array of shape (k, d, d)
        Shapes and the standard errors of their entries: privacy noise, the sampling of the records and smoothing.
    criteria : dict of int to float
        For each number of components that was tried, minus twice the penalised log-likelihood, at the number of
        records without noise that would be known as well; smaller is better, and one component has 0.
    count : float
        Released number of records.
    message : str
        Why there are fewer components than asked for; else empty.
    """

    weights: FloatArray
    weight_errors: FloatArray
    means: FloatArray
    mean_errors: FloatArray
    covariances: FloatArray
    covariance_errors: FloatArray
    criteria: dict[int, float]
    count: float
    message: str = ""

    def log_density(self, points: FloatArray) -> FloatArray:
        """Logarithm of the mixture's density at points of shape (p, d)."""
        return Gaussians(self.weights, self.means, self.covariances).log_density(points)

    def __str__(self) -> str:
        names = column_words(self, self.means.shape[1])
        means = places_in_words(names, self.means, self.mean_errors)
        spreads = places_in_words(names, np.sqrt(np.einsum("kii->ki", self.covariances)))
        lines = [
            f"component {k + 1}: {self.weights[k]:.1%} ± {self.weight_errors[k]:.1%}; mean {mean}; deviations {spread}"
            for k, (mean, spread) in enumerate(zip(means, spreads, strict=True))
        ]
        return "\n".join([*lines, *filter(None, [self.message])])

    __repr__ = __str__


def read_mixture(
    posterior: Posterior,
    n_components: int | None = None,
    *,
    sigma_min: ArrayLike | None = None,
    settings: MixtureReadingSettings = MIXTURE_READING,
) -> MixtureReading:
    """Fit a Gaussian mixture to a posterior; free of further privacy cost.

    Parameters
    ----------
    posterior : Posterior
        Of up to three columns.
    n_components : int, optional
        How many components; by default as many as the release supports.
    sigma_min : float or array of shape (d,), optional
        Least standard deviation of a component along each column, in data units.
    settings : MixtureReadingSettings, optional

    Examples
    --------
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> found = read_mixture(example_posterior(), 1)
    >>> found.means.shape, bool(0 < found.mean_errors[0, 0] < 1)
    ((1, 1), True)
    """
    cells = LeafCells.of(posterior)
    floor = cells.floor
    if sigma_min is not None:
        floor = np.maximum(floor, (np.asarray(sigma_min, dtype=np.float64) / cells.scale) ** 2)
    wanted = None if n_components is None else check_count(n_components, "n_components")
    if wanted is not None and wanted > MOST_COMPONENTS:
        raise ValueError(f"n_components must be at most {MOST_COMPONENTS}, got {wanted}")
    path = fit_path(cells, wanted, floor, settings)
    chosen, criteria = choose(cells, path, wanted, settings)
    found, words = path[chosen], ""
    if wanted is not None and chosen < wanted:
        words = (
            f"{wanted} components were asked for, but the release cannot tell more than {chosen} apart: "
            "more would describe its noise"
        )
    return _in_data_units(cells, found, criteria, words)


# -- fitting ---------------------------------------------------------------------------------------------------


def fit_path(
    cells: LeafCells,
    wanted: int | None,
    floor: FloatArray,
    settings: MixtureReadingSettings = MIXTURE_READING,
    *,
    background: float = 0.0,
) -> dict[int, Gaussians]:
    """Fit mixtures of 1, 2, ... components, each from the one before: up to `wanted`, or until more no longer pay.

    Parameters
    ----------
    cells : LeafCells
    wanted : int or None
    floor : array of shape (d,)
        Least variance per axis, scaled.
    settings : MixtureReadingSettings
    background : float
        Share that is spread evenly over the box at the start; 0 for none.
    """
    mean = cells.mass @ cells.places
    whole = _spread(cells, cells.mass, mean)
    log_even = -float(np.log(cells.upper - cells.lower).sum())
    start = Gaussians(np.array([1.0 - background]), mean[None], _floored(whole[None], floor), background, log_even)
    path = {1: _fitted(cells, start, floor, settings.steps, settings)}
    best = 1
    for k in range(2, (settings.most if wanted is None else wanted) + 1):
        grown = _grown(cells, path[k - 1], floor, settings)
        if grown is None:
            break
        path[k] = grown
        if wanted is None:
            gain, records = evidence(cells, path[best], path[k])
            extra = path[k].parameters - path[best].parameters
            if 2 * records * gain > settings.penalty * extra * math.log(max(records, 3.0)):
                best = k
            elif k >= best + settings.patience:
                break
    return path


def _grown(cells: LeafCells, model: Gaussians, floor: FloatArray, settings: MixtureReadingSettings) -> Gaussians | None:
    """Best mixture of one component more: from divisions of each component, and from one where mass is unexplained."""
    divisions = [_divided(model, j, axis, floor) for j in range(len(model.weights)) for axis in range(cells.d)]
    tried: list[tuple[float, int, Gaussians]] = []
    for start in [*divisions, *(_added(cells, model, width, floor) for width in settings.widths)]:
        trial = _fitted(cells, start, floor, settings.trial_steps, settings)
        tried.append((_value(cells, trial), -len(tried), trial))
    tried.sort(key=lambda one: one[:2], reverse=True)
    finished = [_fitted(cells, trial, floor, settings.steps, settings) for _, _, trial in tried[: settings.starts]]
    least = settings.least_weight / (len(model.weights) + 1)
    kept = [one for one in finished if one.weights.min() > least]
    return max(kept, key=lambda one: _value(cells, one)) if kept else None


def _divided(model: Gaussians, j: int, axis: int, floor: FloatArray) -> Gaussians:
    """Divide one component in two halves along one of its principal axes."""
    values, vectors = np.linalg.eigh(model.covariances[j])
    step = vectors[:, -1 - axis] * math.sqrt(values[-1 - axis])
    # halves of a normal law lie 0.8 deviations to either side and have 0.36 of its variance
    shape = model.covariances[j] - 0.64 * np.outer(step, step)
    weights = np.append(model.weights, model.weights[j] / 2)
    weights[j] /= 2
    means = np.append(model.means, [model.means[j] + 0.8 * step], axis=0)
    means[j] -= 0.8 * step
    covariances = np.append(model.covariances, [shape], axis=0)
    covariances[j] = shape
    return replace(model, weights=weights, means=means, covariances=_floored(covariances, floor))


def _added(cells: LeafCells, model: Gaussians, width: float, floor: FloatArray) -> Gaussians:
    """Add a round component where, seen at this width, most mass is not explained."""
    left = cells.mass - np.exp(model.log_density(cells.places, cells.within)) * cells.volume
    likely = np.argsort(-left, kind="stable")[:MOST_PLACES]
    apart = ((cells.places[likely, None] - cells.places[None]) ** 2).sum(axis=2)
    gain = np.exp(-apart / (2 * width**2)) @ left
    best = int(gain.argmax())
    weight = float(np.clip(gain[best], 0.02, 0.5))
    shape = _floored((width**2 * np.eye(cells.d))[None], floor)
    return replace(
        model,
        weights=np.append((1 - weight) * model.weights, weight),
        means=np.append(model.means, cells.places[likely[[best]]], axis=0),
        covariances=np.append(model.covariances, shape, axis=0),
        background=(1 - weight) * model.background,
    )


def _value(cells: LeafCells, model: Gaussians) -> float:
    return float(cells.mass @ shared_out(model.cell_scores(cells))[0])


def _fitted(
    cells: LeafCells, model: Gaussians, floor: FloatArray, steps: int, settings: MixtureReadingSettings
) -> Gaussians:
    """Steps of expectation-maximisation until they gain nothing."""
    before, d = -math.inf, cells.d
    for _ in range(steps):
        log_density, share = shared_out(model.cell_scores(cells))
        value = float(cells.mass @ log_density)
        if value - before < settings.tolerance / cells.count:
            break
        before = value
        share *= cells.mass[:, None]
        sums = share.T @ cells.moments
        total, k = sums[:, 0], len(model.weights)
        size = np.maximum(total[:k], 1e-300)
        means = sums[:k, 1 : 1 + d] / size[:, None]
        second = (sums[:k, 1 + d :] / size[:, None]).reshape(k, d, d)
        covariances = second - np.einsum("ki,kj->kij", means, means)
        background = float(total[k]) if model.background > 0 else 0.0
        model = replace(
            model,
            weights=size / total.sum(),
            means=means,
            covariances=_floored(covariances, floor),
            background=max(background / float(total.sum()), 1e-6) if model.background > 0 else 0.0,
        )
    return model


def _spread(cells: LeafCells, mass: FloatArray, mean: FloatArray) -> FloatArray:
    offset = cells.places - mean
    return np.asarray(np.einsum("c,ci,cj->ij", mass, offset, offset) + np.einsum("c,cij->ij", mass, cells.within))


def _floored(covariances: FloatArray, floor: FloatArray) -> FloatArray:
    """Covariances whose variance along every direction is at least that of the floor, in the floor's own units."""
    unit = np.sqrt(floor)
    scale = np.multiply.outer(unit, unit)
    scaled = covariances / scale
    try:  # mostly all are wider than the floor, which costs less to see than their axes
        np.linalg.cholesky(scaled - np.eye(len(unit)))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(scaled)
        lifted = np.einsum("kij,kj,klj->kil", vectors, np.maximum(values, 1.0), vectors)
        return np.asarray(lifted * scale)
    return covariances


# -- how many --------------------------------------------------------------------------------------------------


def evidence(cells: LeafCells, simple: Gaussians, rich: Gaussians) -> tuple[float, float]:
    """What a richer model gains, in nats per record, and how many records without noise would know it as well.

    Half a record is spread evenly over the box in both models: what noise leaves far from narrow components would
    otherwise have a say without bound.
    """
    even = -float(np.log(cells.upper - cells.lower).sum()) + math.log(0.5 / max(cells.count, 1.0))
    rich_density, simple_density = (
        np.logaddexp(model.log_density(cells.places, cells.within), even) for model in (rich, simple)
    )
    ratio = rich_density - simple_density
    gain = float(cells.mass @ ratio)
    error = float(np.std(cells.draws @ ratio))
    if gain <= 0 or error <= 0:
        return min(gain, 0.0), 1.0
    return gain, min(2 * gain / error**2, cells.count)


def choose(
    cells: LeafCells, path: dict[int, Gaussians], wanted: int | None, settings: MixtureReadingSettings
) -> tuple[int, dict[int, float]]:
    """Choose the number of components, and give the criterion of each against one component.

    With a number given it is kept unless the last components explain less than the noise of their own parameters.
    """
    criteria, best = {1: 0.0}, 1
    for k in sorted(path)[1:]:
        gain, records = evidence(cells, path[best], path[k])
        extra = path[k].parameters - path[best].parameters
        logarithm = math.log(max(records, 3.0))
        criteria[k] = criteria[best] + extra * logarithm - 2 * records * gain
        price = settings.penalty * logarithm if wanted is None else settings.worth
        if 2 * records * gain > price * extra:
            best = k
    return best, criteria


# -- errors ----------------------------------------------------------------------------------------------------


def parameter_scores(
    model: Gaussians, places: FloatArray, within: FloatArray | None = None, moved: Gaussians | None = None
) -> FloatArray:
    """Slopes of the log-density at places in the parameters, shape (places, parameters).

    The parameters are logits of the shares, then for each component its mean and the upper half of its covariance, both
    in units of the component as it is in `model`; the slopes are taken at `moved`.
    """
    at = model if moved is None else moved
    bodies, slopes = zip(
        *(_body_and_slopes(model, at, j, places, within) for j in range(len(model.weights))), strict=True
    )
    share = _shares(at, bodies)
    own = [share[:, [j]] * slope for j, slope in enumerate(slopes)]
    return np.concatenate([share[:, : len(own)] - at.weights, *own], axis=1)


def _body_and_slopes(
    model: Gaussians, at: Gaussians, j: int, places: FloatArray, within: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Log-density of one component of `at`, and its slopes in its own mean and covariance, in units of `model`."""
    d = model.means.shape[1]
    first, second = np.triu_indices(d)
    inverse = np.linalg.inv(np.linalg.cholesky(model.covariances[j]))
    shape = np.linalg.inv(inverse @ at.covariances[j] @ inverse.T)
    z = (places - at.means[j]) @ inverse.T @ shape
    square = z[:, first] * z[:, second] - shape[first, second]
    if within is not None:
        turn = shape @ inverse
        square = square + (within.reshape(-1, d * d) @ np.kron(turn, turn).T).reshape(-1, d, d)[:, first, second]
    alone = Gaussians(np.ones(1), at.means[[j]], at.covariances[[j]])
    return alone.scores(places, within)[:, 0], np.hstack([z, np.where(first == second, 0.5, 1.0) * square])


def _shares(at: Gaussians, bodies: Sequence[FloatArray]) -> FloatArray:
    """Share of each component at places where these are their log-densities; of the background last."""
    logarithms = np.log(np.maximum(at.weights, 1e-300))
    scores = np.empty((len(bodies[0]), len(bodies) + (at.background > 0)), order="F")
    for j, body in enumerate(bodies):
        scores[:, j] = logarithms[j] + body
    if at.background > 0:
        scores[:, -1] = math.log(at.background) + at.log_even
    return shared_out(scores)[1]


def _moved(model: Gaussians, step: FloatArray) -> Gaussians:
    """Mixture at an offset in the parameters of :func:`parameter_scores`."""
    k, d = model.means.shape
    first, second = np.triu_indices(d)
    weights = np.append(model.weights, model.background)
    weights = weights * np.exp(np.append(step[:k], 0.0))
    weights = weights / weights.sum()
    means, covariances = model.means.copy(), model.covariances.copy()
    size = d + len(first)
    for j in range(k):
        factor = np.linalg.cholesky(model.covariances[j])
        own = step[k + j * size : k + (j + 1) * size]
        shape = np.eye(d)
        shape[first, second] += own[d:]
        shape[second, first] = shape[first, second]
        means[j] = means[j] + factor @ own[:d]
        covariances[j] = factor @ shape @ factor.T
    return replace(model, weights=weights[:k], means=means, covariances=covariances, background=float(weights[k]))


def parameter_draws(cells: LeafCells, model: Gaussians) -> FloatArray:
    """Parameters of :func:`parameter_scores` in each draw, as offsets from the estimate; shape (draws, parameters)."""
    scores = parameter_scores(model, cells.places, cells.within)
    size = scores.shape[1]
    curvature = _curvature(cells, model, size)
    curvature = (curvature + curvature.T) / 2
    # where the curvature says less than the spread of the scores there is no clear top: errors must not explode
    # (what lies far out of a long tail spreads the scores a million times further, and says nothing of the top)
    near = np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)
    spread = near.T @ (cells.mass[:, None] * near)
    values, vectors = np.linalg.eigh(spread + 1e-9 * np.trace(spread) / size * np.eye(size))
    root = vectors / np.sqrt(values)
    inner, turned = np.linalg.eigh(root.T @ curvature @ root)
    root = root @ turned
    inverse = (root / np.maximum(inner, 0.1)) @ root.T
    return np.asarray((cells.draws - cells.mass) @ scores @ inverse)


def _curvature(cells: LeafCells, model: Gaussians, size: int, h: float = 1e-4) -> FloatArray:
    """Second derivatives of minus the mean log-density, by differences of its slopes.

    A step in one component's mean or covariance leaves the log-densities of the others as they are; only the shares
    change.
    """
    k, d = model.means.shape
    parts = [_body_and_slopes(model, model, j, cells.places, cells.within) for j in range(k)]
    per_component = d + d * (d + 1) // 2

    def mean_slopes(step: FloatArray, moved: int | None) -> FloatArray:
        at, now = _moved(model, step), list(parts)
        if moved is not None:
            now[moved] = _body_and_slopes(model, at, moved, cells.places, cells.within)
        share = _shares(at, [body for body, _ in now]) * cells.mass[:, None]
        own = [share[:, j] @ slopes for j, (_, slopes) in enumerate(now)]
        return np.concatenate([share[:, :k].sum(axis=0) - at.weights, *own])

    curvature = np.empty((size, size))
    for i, step in enumerate(h * np.eye(size)):
        moved = None if i < k else (i - k) // per_component
        curvature[i] = -(mean_slopes(step, moved) - mean_slopes(-step, moved)) / (2 * h)
    return curvature


def _in_data_units(cells: LeafCells, model: Gaussians, criteria: dict[int, float], message: str) -> MixtureReading:
    """A scaled mixture as users see it, with the spread of its parameters over the draws."""
    k, d = model.means.shape
    first, second = np.triu_indices(d)
    drawn = parameter_draws(cells, model)
    logits = drawn[:, :k] - drawn[:, :k] @ model.weights[:, None]
    weight_errors = model.weights * np.sqrt(np.mean(logits**2, axis=0))
    mean_errors, covariance_errors = np.empty((k, d)), np.empty((k, d, d))
    size = d + len(first)
    for j in range(k):
        factor = np.linalg.cholesky(model.covariances[j])
        own = drawn[:, k + j * size : k + (j + 1) * size]
        # Where in its leaf a component lies that is no wider, nobody knows; over many leaves it does not matter.
        hidden = cells.floor**2 / np.maximum(np.diag(model.covariances[j]), cells.floor)
        mean_errors[j] = np.sqrt(np.mean((own[:, :d] @ factor.T) ** 2, axis=0) + hidden)
        shape = np.zeros((len(own), d, d))
        shape[:, first, second] = shape[:, second, first] = own[:, d:]
        covariance_errors[j] = np.sqrt(np.mean((factor @ shape @ factor.T) ** 2, axis=0))
    order = np.argsort(-model.weights, kind="stable")
    unit = np.multiply.outer(cells.scale, cells.scale)
    total = model.weights.sum()
    return MixtureReading(
        weights=model.weights[order] / total,
        weight_errors=weight_errors[order] / total,
        means=cells.centre + cells.scale * model.means[order],
        mean_errors=cells.scale * mean_errors[order],
        covariances=unit * model.covariances[order],
        covariance_errors=unit * covariance_errors[order],
        criteria=criteria,
        count=cells.count,
        message=message,
    )
