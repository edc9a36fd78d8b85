r"""Mixtures of separated Gaussians as printed: PEGME, RPGMP, PGME, and sample-and-aggregate.

`pegme` is Algorithm 1 (spherical components of about the same size), `rpgmp` Algorithm 3 and `pgme` Algorithm 4 (any
components), `sample_and_aggregate` the method of section 6. Their parts are in
`fogline_research.as_published.mixture_parts`. Steps are numbered as in the paper.

This module follows the paper; it does *not* make its privacy claims true: see `REASONS`, and ``docs/gaps.md``.

References
----------
Kamath, Sheffet, Singhal and Ullman, *Differentially private algorithms for learning mixtures of separated Gaussians*
(2019), sections 4 to 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.vq import kmeans2

from fogline._validation import check_count, check_delta, check_epsilon, check_positive
from fogline.accounting.guarantee import Guarantee
from fogline_research.as_published._checks import check_fraction, complete_records, frozen_array
from fogline_research.as_published.mixture_parts import (
    BallResult,
    MixtureConstants,
    claimed,
    constants_named,
    one_cluster,
    pgloc,
    psge,
    terrific_ball,
)
from fogline_research.as_published.mixture_theory import theorem_5_8

__all__ = [
    "REASONS",
    "MixtureResult",
    "PartitionResult",
    "discard_and_split",
    "noisy_squares",
    "pegme",
    "pge",
    "pgme",
    "rpgmp",
    "sample_and_aggregate",
    "stable_mode",
]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_FLOATS = "the noise is floating point"

REASONS = {
    "pegme": (
        "records are discarded before the rest is cut into Y and Z, so that one record changes both; "
        "the loop ends when no record is left, which is not a private question; "
        "the balls of two components may share records, and a replaced record may leave one and enter another, while "
        "the argument counts one of them; "
        f"all that holds of PSGE; {_FLOATS}"
    ),
    "pgme": (
        "the matrix of step 5 is taken about the origin, and its noise made for a ball around another point; "
        "a level costs 6 epsilon by Lemma 5.7, and Theorem 5.8 counts 4; "
        "a replaced record may leave one branch and enter the other, and both change; "
        f"the learner of one Gaussian is not printed; {_FLOATS}"
    ),
    "sample_and_aggregate": (
        "a record changes all k means that its block gives, and the search is paid for one of them; "
        f"the search for a cluster is not printed; {_FLOATS}"
    ),
}


@dataclass(frozen=True, eq=False)
class MixtureResult:
    """A mixture, or none.

    Attributes
    ----------
    weights : ndarray of shape (k,)
        Empty where the algorithm gave up, as are the others.
    means : ndarray of shape (k, d)
    covariances : ndarray of shape (k, d, d)
    steps : tuple of str
        What happened on the way, for tests; not private.
    guarantee : Guarantee
        What the paper claims; never certified.
    """

    weights: Array
    means: Array
    covariances: Array
    steps: tuple[str, ...]
    guarantee: Guarantee

    def __bool__(self) -> bool:
        return len(self.weights) > 0


@dataclass(frozen=True, eq=False)
class PartitionResult:
    """The partition of `rpgmp`: row numbers of each cluster. They are facts about records: nothing of it is private.

    Attributes
    ----------
    parts : tuple of int arrays
    steps : tuple of str
        Which step cut at each level.
    guarantee : Guarantee
        What Theorem 5.18 claims for what is computed from it.
    """

    parts: tuple[Indices, ...]
    steps: tuple[str, ...]
    guarantee: Guarantee


def _mixture(
    weights: list[float], means: list[Array], covariances: list[Array], d: int, steps: list[str], guarantee: Guarantee
) -> MixtureResult:
    k = len(weights)
    return MixtureResult(
        weights=frozen_array(np.array(weights)),
        means=frozen_array(np.array(means).reshape(k, d)),
        covariances=frozen_array(np.array(covariances).reshape(k, d, d)),
        steps=tuple(steps),
        guarantee=guarantee,
    )


def _symmetric_noise(d: int, scale: float, rng: np.random.Generator) -> Array:
    """A symmetric matrix whose entries on and above the diagonal are independent normal draws."""
    upper = np.triu(rng.normal(scale=scale, size=(d, d)))
    return np.asarray(upper + np.triu(upper, 1).T)


def _leading(matrix: Array, number: int) -> Array:
    """Columns that span the leading subspace."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors[:, np.argsort(-np.abs(values))[:number]])


# -- section 4 -----------------------------------------------------------------------------------------------


def pegme(
    X: ArrayLike,
    *,
    n_components: int,
    epsilon: float,
    delta: float,
    sigma_min: float,
    kappa: float = 1.0,
    beta: float = 0.05,
    constants: str | MixtureConstants = "printed",
    random_state: int | np.random.Generator | None = None,
) -> MixtureResult:
    """Mixture of spherical components of equal weight by PEGME, Algorithm 1. **Not certified**: see `REASONS`.

    Parameters
    ----------
    X : array-like of shape (2n, d)
        The records in their order; the means lie in a ball of radius k sqrt(d kappa) sigma_min around the origin.
    n_components : int
        k.
    epsilon, delta : float
        Of each of the three steps; section 4.1 claims (2 epsilon, 2 delta) in all.
    sigma_min, kappa : float
        Smallest standard deviation, and the greatest ratio of two variances.
    beta : float
        Probability of failure.
    constants : {"printed", "practical"} or MixtureConstants
    random_state : int, Generator or None
        Source of the noise, which is floating point from numpy: for experiments.

    Returns
    -------
    MixtureResult
        Empty where fewer than k balls were found.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(place, 1.0, size=(6000, 8)) for place in (-4.0, 4.0)])
    >>> found = pegme(rng.permutation(X), n_components=2, epsilon=4.0, delta=1e-6, sigma_min=1.0, kappa=4.0,
    ...               constants="practical", random_state=0)
    >>> sorted(float(mean) for mean in found.means.mean(axis=1).round(0)), found.guarantee.certified
    ([-4.0, 4.0], False)
    """
    records = complete_records(X)
    k, epsilon, delta = check_count(n_components, "n_components"), check_epsilon(epsilon), check_delta(delta)
    smallest, ratio = check_positive(sigma_min, "sigma_min"), check_positive(kappa, "kappa")
    chosen, rng, d = constants_named(constants), np.random.default_rng(random_state), records.shape[1]
    guarantee = claimed("PEGME", 2.0 * epsilon, 2.0 * delta, REASONS["pegme"])
    # Set parameters
    reach = 2.0 * k * math.sqrt(d * ratio) * smallest
    scale = 2.0 * reach**2 * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    size = min(d, max(k, math.ceil(chosen.dimensions * math.log(len(records) * k / beta))))
    Y, Z = discard_and_split(records, reach)
    # Privately run PCA
    subspace = _leading(Y.T @ Y + _symmetric_noise(d, scale, rng), size)
    projected = Z @ subspace
    # Privately locate individual components
    balls = _locate_components(projected, len(records) // 2, k, epsilon, delta, beta, smallest, ratio, d, chosen, rng)
    steps = [f"{len(balls)} of {k} balls"]
    if len(balls) < k:
        return _mixture([], [], [], d, steps, guarantee)
    # Privately estimate each Gaussian
    means, covariances = [], []
    for center, radius in balls:
        place = subspace @ center
        grown = _grown(radius, size, d, ratio, smallest, chosen)
        near = np.linalg.norm(projected - center, axis=1) <= radius
        near &= np.linalg.norm(Z - place, axis=1) <= grown
        part = Z[near] if near.any() else np.zeros((1, d))  # ours: an empty part has no estimate in the paper
        found = psge(part, center=place, radius=grown, epsilon=epsilon, delta=delta, random_state=rng)
        means.append(found.mean)
        covariances.append(max(found.variance, 0.0) * np.eye(d))
    return _mixture([1.0 / k] * k, means, covariances, d, steps, guarantee)


def discard_and_split(records: Array, reach: float) -> tuple[Array, Array]:
    """Throw away what is too far out, then cut what is left, by its place, into Y and Z, as Algorithm 1 prints it.

    Examples
    --------
    >>> Y, Z = discard_and_split(np.array([[9.0], [1.0], [2.0], [3.0]]), 5.0)
    >>> Y.ravel().tolist(), Z.ravel().tolist()
    ([1.0, 2.0], [3.0])
    """
    kept = records[np.linalg.norm(records, axis=1) <= reach]
    return kept[: len(records) // 2], kept[len(records) // 2 :]


def _locate_components(
    projected: Array,
    n: int,
    k: int,
    epsilon: float,
    delta: float,
    beta: float,
    smallest: float,
    ratio: float,
    d: int,
    chosen: MixtureConstants,
    rng: np.random.Generator,
) -> list[tuple[Array, float]]:
    """The loop of Algorithm 1; "while S is not empty" is in it, as printed."""
    left, balls = np.ones(len(projected), dtype=bool), list[tuple[Array, float]]()
    share = epsilon / math.sqrt(8.0 * k * math.log(1.0 / delta)) if k > 1 else epsilon  # ours for the paper's O(.)
    while left.any() and len(balls) < k:
        ball = pgloc(
            projected[left],
            t=n / (2.0 * k),
            epsilon=epsilon / k if chosen.shrinks else share,
            delta=delta / (2.0 * k),
            R=k * math.sqrt(d * ratio) * smallest + 8.0 * math.sqrt(projected.shape[1] * ratio) * smallest,
            sigma_min=smallest,
            sigma_max=math.sqrt(ratio) * smallest,
            beta=beta / k,
            constants=chosen,
            random_state=rng,
        )
        if ball.center is None:
            break
        radius = chosen.located * ball.radius
        balls.append((ball.center, radius))
        left &= np.linalg.norm(projected - ball.center, axis=1) > radius
    return balls


def _grown(radius: float, size: int, d: int, ratio: float, smallest: float, chosen: MixtureConstants) -> float:
    """Radius in the original space of a ball that was found in the projection."""
    if chosen.shrinks:
        # In the projection the records of a component are sqrt(size), in the original space sqrt(d) deviations away.
        return 2.0 * radius * math.sqrt(d / size)
    return radius + 10.0 * math.sqrt(size * ratio) * smallest + 2.0 * radius * math.sqrt(3.0 * d / size)


# -- section 5 -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Recursion:
    """What all levels of Algorithm 3 share."""

    n: int
    weight_min: float
    sigma_min: float
    sigma_max: float
    R: float
    epsilon: float
    delta: float
    beta: float
    constants: MixtureConstants
    rng: np.random.Generator
    steps: list[str] = field(default_factory=list)


def rpgmp(
    X: ArrayLike,
    *,
    n_components: int,
    epsilon: float,
    delta: float,
    R: float,
    weight_min: float,
    sigma_min: float,
    sigma_max: float,
    beta: float = 0.05,
    constants: str | MixtureConstants = "printed",
    random_state: int | np.random.Generator | None = None,
) -> PartitionResult:
    """Cut records into clusters by RPGMP, Algorithm 3. **Not certified**, and row numbers are never private.

    The n of its thresholds is the number of all records, also in the recursion: under the paper's relation it is
    public, where the size of a part is not.

    Parameters
    ----------
    X : array-like of shape (n, d)
    n_components : int
        k, at most so many parts.
    epsilon, delta : float
        Of the steps of a level.
    R, weight_min, sigma_min, sigma_max : float
        Bounds on the means' norms, the weights and the standard deviations.
    beta, constants, random_state
        As for `pegme`.

    Returns
    -------
    PartitionResult

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(place, 1.0, size=(2000, 6)) for place in (-40.0, 40.0)])
    >>> found = rpgmp(X, n_components=2, epsilon=4.0, delta=1e-6, R=200.0, weight_min=0.4, sigma_min=1.0, sigma_max=1.0,
    ...               constants="practical", random_state=0)
    >>> [len(part) for part in found.parts], found.steps[0]
    ([2000, 2000], 'step 4: a terrific ball')
    """
    records = complete_records(X)
    k, epsilon, delta = check_count(n_components, "n_components"), check_epsilon(epsilon), check_delta(delta)
    setting = _Recursion(
        n=len(records),
        weight_min=check_fraction(weight_min, "weight_min"),
        sigma_min=check_positive(sigma_min, "sigma_min"),
        sigma_max=check_positive(sigma_max, "sigma_max"),
        R=check_positive(R, "R"),
        epsilon=epsilon,
        delta=delta,
        beta=beta,
        constants=constants_named(constants),
        rng=np.random.default_rng(random_state),
    )
    parts = _level(records, np.arange(len(records)), k, setting)
    for part in parts:
        part.setflags(write=False)
    total = 8.0 * epsilon * math.sqrt(2.0 * k * math.log(1.0 / delta))
    guarantee = claimed("RPGMP", total, min(8 * k * delta, 0.5), REASONS["pgme"])
    return PartitionResult(tuple(parts), tuple(setting.steps), guarantee)


def _level(X: Array, rows: Indices, k: int, s: _Recursion) -> list[Indices]:
    """One level of Algorithm 3 over some rows."""
    if k == 1 or not len(rows):  # 1. (that a part is empty is for numpy's sake: the paper asks no such question)
        return [rows]
    rows, radius = _bounding_ball(X, rows, s)  # 2.
    d = X.shape[1]
    t = s.n * s.weight_min / 2.0
    found = _terrific(X[rows], t, False, radius, math.sqrt(d) * s.sigma_min / 2.0, s)  # 3.
    if found:  # 4.
        s.steps.append("step 4: a terrific ball")
        return _branches(X, X, rows, found, k, s)
    subspace = _leading(noisy_squares(X[rows], radius, s.epsilon, s.delta, s.rng), min(k, d))  # 5.
    projected = X @ subspace
    found = _terrific(projected[rows], t, True, radius, math.sqrt(min(k, d)) * s.sigma_min / 2.0, s)  # 6.
    if found:  # 7.
        s.steps.append("step 7: a terrific ball of the projection")
        return _branches(X, projected, rows, found, k, s)
    s.steps.append("step 8: one cluster")  # 8.
    return [rows]


def noisy_squares(X: Array, radius: float, epsilon: float, delta: float, rng: np.random.Generator) -> Array:
    """The matrix of step 5: about the origin, with noise for records in a ball of this radius around it.

    Examples
    --------
    >>> noisy_squares(np.ones((3, 2)), 1.0, 1e9, 1e-6, np.random.default_rng(0)).round(3).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    variance = 4.0 * radius**4 * math.log(2.0 / delta) / epsilon**2
    return np.asarray(X.T @ X + _symmetric_noise(X.shape[1], math.sqrt(variance), rng))


def _bounding_ball(X: Array, rows: Indices, s: _Recursion) -> tuple[Indices, float]:
    """Step 2: a ball that holds nearly all, and the rows in it."""
    wanted = len(rows) + s.rng.laplace(scale=2.0 / s.epsilon) - s.n * s.weight_min / 20.0
    ball = pgloc(
        X[rows],
        t=max(1.0, wanted),
        epsilon=s.epsilon / 2.0,
        delta=s.delta,
        R=s.R,
        sigma_min=s.sigma_min,
        sigma_max=s.sigma_max,
        beta=s.beta,
        constants=s.constants,
        random_state=s.rng,
    )
    if ball.center is None:  # ours: the paper has no case for it; all means lie in this ball
        return rows, 2.0 * s.R
    radius = s.constants.bounded * ball.radius
    return rows[np.linalg.norm(X[rows] - ball.center, axis=1) <= radius], radius


def _terrific(X: Array, t: float, largest: bool, high: float, low: float, s: _Recursion) -> BallResult | None:
    """Steps 3 and 6."""
    if not len(X):
        return None
    found = terrific_ball(
        X,
        t=max(1.0, t),
        epsilon=s.epsilon,
        delta=s.delta,
        high=max(high, 2.0 * low),
        low=low,
        stretch=s.constants.stretch,
        largest=largest,
        beta=s.beta,
        constants=s.constants,
        random_state=s.rng,
    )
    return found if found else None


def _branches(X: Array, seen: Array, rows: Indices, ball: BallResult, k: int, s: _Recursion) -> list[Indices]:
    """Steps 4 and 7: what is inside, and what is outside the c-fold; the ring between is left out."""
    distances = np.linalg.norm(seen[rows] - np.asarray(ball.center), axis=1)
    inside, outside = rows[distances <= ball.radius], rows[distances > s.constants.stretch * ball.radius]
    return [*_level(X, inside, k - 1, s), *_level(X, outside, k - 1, s)]


def pge(
    X: Array,
    *,
    R: float,
    sigma_min: float,
    sigma_max: float,
    epsilon: float,
    delta: float,
    constants: MixtureConstants,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """PGE of Theorem 5.20 in our reading, since the paper prints none: moments about a released place, in its ball.

    A quarter of epsilon counts, a quarter finds a ball, a quarter each makes mean and second moments noisy.

    Examples
    --------
    >>> from fogline_research.as_published.mixture_parts import PRACTICAL
    >>> X = np.random.default_rng(0).normal(7.0, 2.0, size=(20_000, 3))
    >>> mean, covariance = pge(X, R=50.0, sigma_min=1.0, sigma_max=4.0, epsilon=4.0, delta=1e-6, constants=PRACTICAL,
    ...                        rng=np.random.default_rng(0))
    >>> bool(abs(mean - 7.0).max() < 0.2), bool(abs(np.diag(covariance) - 4.0).max() < 1.0)
    (True, True)
    """
    d, part = X.shape[1], epsilon / 4.0
    count = max(1.0, len(X) + rng.laplace(scale=1.0 / part))
    bounds = {"R": R, "sigma_min": sigma_min, "sigma_max": sigma_max, "constants": constants, "random_state": rng}
    ball = pgloc(X, t=0.9 * count, epsilon=part, delta=delta / 3.0, **bounds) if len(X) else None  # type: ignore[arg-type]
    center, radius = np.zeros(d), R + 3.0 * math.sqrt(d) * sigma_max
    if ball is not None and ball.center is not None:
        center, radius = ball.center, 1.5 * ball.radius
    centred = X - center
    centred = centred[np.linalg.norm(centred, axis=1) <= radius]
    factor = math.sqrt(2.0 * math.log(3.75 / delta)) / part
    offset = (centred.sum(axis=0) + rng.normal(scale=2.0 * radius * factor, size=d)) / count
    squares = centred.T @ centred + _symmetric_noise(d, math.sqrt(2.0) * radius**2 * factor, rng)
    values, vectors = np.linalg.eigh(squares / count - np.outer(offset, offset))
    kept = np.clip(values, sigma_min**2, sigma_max**2)
    return np.asarray(center + offset), np.asarray(vectors * kept @ vectors.T)


def pgme(
    X: ArrayLike,
    *,
    n_components: int,
    epsilon: float,
    delta: float,
    R: float,
    weight_min: float,
    sigma_min: float,
    sigma_max: float,
    beta: float = 0.05,
    constants: str | MixtureConstants = "printed",
    random_state: int | np.random.Generator | None = None,
) -> MixtureResult:
    """Mixture of separated components by PGME, Algorithm 4. **Not certified**: see `REASONS`.

    Parameters
    ----------
    X, n_components, epsilon, delta, R, weight_min, sigma_min, sigma_max, beta, constants, random_state
        As for `rpgmp`. The guarantee states Theorem 5.8 for these epsilon and delta.

    Returns
    -------
    MixtureResult
        One component for each part that was found, at most k.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(place, 1.0, size=(3000, 5)) for place in (-40.0, 40.0)])
    >>> found = pgme(X, n_components=2, epsilon=4.0, delta=1e-6, R=200.0, weight_min=0.4, sigma_min=1.0, sigma_max=1.0,
    ...              constants="practical", random_state=0)
    >>> sorted(float(mean) for mean in found.means.mean(axis=1).round(0)), found.weights.round(1).tolist()
    ([-40.0, 40.0], [0.5, 0.5])
    """
    records = complete_records(X)
    greatest = check_positive(sigma_max, "sigma_max")
    reach = check_positive(R, "R") + 3.0 * greatest * math.sqrt(records.shape[1])
    kept = records[np.linalg.norm(records, axis=1) <= reach]  # 1.
    if not len(kept):
        kept = np.zeros((1, records.shape[1]))
    rng = np.random.default_rng(random_state)
    bounds = {"R": R, "sigma_min": sigma_min, "sigma_max": sigma_max}
    chosen = constants_named(constants)
    budget = {"epsilon": epsilon, "delta": delta}
    partition = rpgmp(  # 2.
        kept,
        n_components=n_components,
        weight_min=weight_min,
        beta=beta,
        constants=chosen,
        random_state=rng,
        **budget,
        **bounds,
    )
    means, covariances, counts = [], [], []
    for part in partition.parts[:n_components]:  # 3.
        mean, covariance = pge(kept[part], constants=chosen, rng=rng, **budget, **bounds)
        means.append(mean)
        covariances.append(covariance)
        counts.append(max(1.0, len(part) + rng.laplace(scale=1.0 / epsilon)))
    weights = (np.array(counts) / np.sum(counts)).tolist()  # 4.
    total, failure = theorem_5_8(epsilon, delta, n_components)
    guarantee = claimed("PGME", total, min(failure, 0.5), REASONS["pgme"])
    return _mixture(weights, means, covariances, records.shape[1], list(partition.steps), guarantee)  # 5.


# -- section 6 -----------------------------------------------------------------------------------------------

Learner = Callable[[Array, int, np.random.Generator], tuple[Array, Array]]


def _kmeans_learner(X: Array, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Means and weights of a block by k-means, in the place of the spectral learner of Lemma 6.3 (ours)."""
    means, labels = kmeans2(X, min(k, len(X)), minit="++", missing="warn", seed=rng)
    counts = np.bincount(labels, minlength=len(means))
    return np.asarray(means), counts / counts.sum()


def stable_mode(values: Array, width: float, epsilon: float, delta: float, rng: np.random.Generator) -> float | None:
    """Middle of the most populated bin by a stability-based histogram; None where no bin stands out.

    Examples
    --------
    >>> stable_mode(np.full(200, 0.31), 0.1, 1.0, 1e-6, np.random.default_rng(0))
    0.35000000000000003
    """
    bins, counts = np.unique(np.floor(values / width).astype(np.int64), return_counts=True)
    noisy = counts + rng.laplace(scale=2.0 / epsilon, size=len(counts))
    if not len(bins) or noisy.max() < 1.0 + 2.0 * math.log(2.0 / delta) / epsilon:
        return None
    return float((bins[int(noisy.argmax())] + 0.5) * width)


def sample_and_aggregate(
    X: ArrayLike,
    *,
    n_components: int,
    epsilon: float,
    delta: float,
    R: float,
    sigma_min: float,
    sigma_max: float,
    blocks: int,
    alpha: float = 0.2,
    learner: Learner | None = None,
    constants: str | MixtureConstants = "printed",
    random_state: int | np.random.Generator | None = None,
) -> MixtureResult:
    """Means and weights by the sample-and-aggregate method of section 6. **Not certified**: see `REASONS`.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Cut into blocks in its order.
    n_components, epsilon, delta, R, sigma_min, sigma_max, constants, random_state
        As for `pgme`; epsilon and delta are those that Theorem 6.1 claims in all.
    blocks : int
        m, the number of runs of the learner.
    alpha : float
        Accuracy: weights are told in bins of width alpha/k.
    learner : callable, optional
        Takes a block, k and a generator, and returns means and weights. Ours: k-means.

    Returns
    -------
    MixtureResult
        Its covariances are not part of the method: sigma_min squared.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.permutation(np.concatenate([rng.normal(place, 1.0, size=(4000, 2)) for place in (-20.0, 20.0)]))
    >>> found = sample_and_aggregate(X, n_components=2, epsilon=8.0, delta=1e-5, R=60.0, sigma_min=1.0, sigma_max=1.0,
    ...                              blocks=400, constants="practical", random_state=0)
    >>> sorted(float(mean) for mean in found.means.mean(axis=1).round(0)), found.guarantee.certified
    ([-20.0, 20.0], False)
    """
    records = complete_records(X)
    k, m, d = check_count(n_components, "n_components"), check_count(blocks, "blocks"), records.shape[1]
    epsilon, delta, smallest = check_epsilon(epsilon), check_delta(delta), check_positive(sigma_min, "sigma_min")
    if m > len(records):
        raise ValueError(f"blocks must be at most the number of records, {len(records)}, got {m}")
    end = check_positive(R, "R") + 3.0 * math.sqrt(d) * check_positive(sigma_max, "sigma_max")
    chosen, rng = constants_named(constants), np.random.default_rng(random_state)
    learn = _kmeans_learner if learner is None else learner
    answers = [learn(block, k, rng) for block in np.array_split(records, m)]
    points = np.concatenate([np.clip(means, -end, end) for means, _ in answers])
    shares = np.concatenate([weights for _, weights in answers])
    guarantee = claimed("sample and aggregate", epsilon, delta, REASONS["sample_and_aggregate"])
    round_epsilon = epsilon / (2.0 * k) if chosen.shrinks else epsilon / math.sqrt(8.0 * k * math.log(1.0 / delta))
    means, weights, steps = [], [], []
    for _ in range(k):
        found = one_cluster(
            points,
            t=float(m),
            epsilon=round_epsilon,
            delta=delta / (2.0 * k),
            beta=1.0 / (10.0 * k),
            low=0.01 * smallest,
            high=2.0 * end * math.sqrt(d),
            constants=chosen,
            rng=rng,
        )
        if found is None:
            steps.append("no ball")
            break
        center, radius = found
        near = np.linalg.norm(points - center, axis=1) <= max(2.0 * radius, smallest)
        weight = stable_mode(shares[near], alpha / k, round_epsilon, delta / (2.0 * k), rng)
        means.append(center)
        weights.append(1.0 / k if weight is None else weight)
        steps.append(f"a ball of radius {radius:.3g}")
        points, shares = points[~near], shares[~near]
    total = sum(weights) or 1.0
    covariances = [smallest**2 * np.eye(d)] * len(means)
    return _mixture([weight / total for weight in weights], means, covariances, d, steps, guarantee)
