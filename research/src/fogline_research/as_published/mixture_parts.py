r"""The parts of the separated-mixtures paper as printed: Algorithms 2, 5 and 6, and the procedures around them.

`psge` is Algorithm 6, `pgloc` Algorithm 5, `terrific_radius` Algorithm 2 and `terrific_ball` the procedure of section
5.1. Neighbours replace a record (Definition 2.7), so that the number of records is public. The paper takes its search
for one cluster (PLOC) from Nissim, Stemmer and Vadhan without printing it; `one_cluster` is our reading of it.

This module follows the paper; it does *not* make its privacy claims true. Every result says why:
`fogline_research.as_published.mixture_parts.REASONS`.

References
----------
Kamath, Sheffet, Singhal and Ullman, *Differentially private algorithms for learning mixtures of separated Gaussians*
(2019), sections 2.2 and 5.1, appendices B and C. Nissim, Stemmer and Vadhan, *Locating a small cluster privately*
(2016). Nissim and Stemmer, *Clustering algorithms for the centralized and local models* (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group

from fogline._validation import check_count, check_delta, check_epsilon, check_positive
from fogline.accounting.guarantee import Guarantee
from fogline_research.as_published._checks import complete_records, frozen_array

__all__ = [
    "CONSTANTS",
    "PRACTICAL",
    "PRINTED",
    "REASONS",
    "BallResult",
    "MixtureConstants",
    "SphericalResult",
    "above_threshold",
    "constants_named",
    "one_cluster",
    "pcount",
    "pgloc",
    "psge",
    "seclusion",
    "terrific_ball",
    "terrific_radius",
    "threshold_slack",
]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class MixtureConstants:
    """Constants of the six algorithms: those that the paper prints, or such as work on moderate data.

    Attributes
    ----------
    located : float
        Algorithm 1: radius of a component's ball over that which PGLOC found.
    bounded : float
        Algorithm 3, step 2: radius of the ball that all records are cut to, over that which PGLOC found.
    stretch : float
        The c of terrific balls.
    dimensions : float
        Algorithm 1 projects to max{k, this times log(2nk / beta)} dimensions (512 in Theorem 4.4).
    least_share : float
        A threshold is at least this part of t. The paper has none: where t is below the slack of the noise its
        threshold is negative, and everything passes.
    most_pairs : int
        Records whose distances are taken; of more, a random part of this size. 0: all, as printed.
    shrinks : bool
        Whether PGLOC ends with the smallest of a few radii that still hold enough, which Algorithm 5 does not do.
    """

    located: float
    bounded: float
    stretch: float
    dimensions: float
    least_share: float
    most_pairs: int
    shrinks: bool


PRINTED = MixtureConstants(
    located=4.0 * math.sqrt(3.0),
    bounded=12.0,
    stretch=5.0,
    dimensions=512.0,
    least_share=0.0,
    most_pairs=0,
    shrinks=False,
)
PRACTICAL = MixtureConstants(
    located=1.3, bounded=2.0, stretch=3.0, dimensions=0.0, least_share=0.5, most_pairs=3000, shrinks=True
)
CONSTANTS = {"printed": PRINTED, "practical": PRACTICAL}

GRID = 0.1
"""Lambda of Algorithm 5, in units of the smallest standard deviation."""

WIDTH = 1.5
"""Our reading of PLOC: half width of a cluster along a random axis, times the root of d, over its radius."""

AXES = 6
"""Our reading of PLOC: axes of its random projection."""

REASONS = {
    "psge": (
        "the sum runs over points that are not centred, so that a record which leaves the ball moves it by its "
        "distance from the origin and not by two radii; "
        "the variance is given noise for a half of epsilon beside two thirds for the rest; "
        "in Algorithm 1 its input is a subset that is counted anew, so that one record shifts the pairs after it; "
        "the noise is floating point"
    ),
    "pgloc": "the search for a cluster is not printed, ours has no proof for this form; the noise is floating point",
    "terrific_ball": (
        "the average is over exactly t distinct records, and is not defined for fewer; "
        "the search for the centre is a sketch, ours has no proof for this form; "
        "the noise is floating point"
    ),
}


@dataclass(frozen=True, eq=False)
class BallResult:
    """A ball, or none.

    Attributes
    ----------
    center : ndarray of shape (d,), or None
        None where nothing was found.
    radius : float
    guarantee : Guarantee
        What the paper claims; never certified.
    """

    center: Array | None
    radius: float
    guarantee: Guarantee

    def __bool__(self) -> bool:
        return self.center is not None


@dataclass(frozen=True, eq=False)
class SphericalResult:
    """What `psge` returns.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    variance : float
        Of one coordinate; noise may make it negative.
    count : float
        Noisy number of records in the ball.
    spent : float
        What its three steps cost by the paper's own lemmas: 7/6 of epsilon.
    guarantee : Guarantee
        What the paper claims; never certified.
    """

    mean: Array
    variance: float
    count: float
    spent: float
    guarantee: Guarantee


def constants_named(constants: str | MixtureConstants) -> MixtureConstants:
    """Return constants by their name, or as they are.

    Examples
    --------
    >>> constants_named("printed").bounded
    12.0
    """
    if isinstance(constants, MixtureConstants):
        return constants
    if constants not in CONSTANTS:
        raise ValueError(f"constants must be one of {', '.join(CONSTANTS)} or MixtureConstants, got {constants!r}")
    return CONSTANTS[constants]


def claimed(name: str, epsilon: float, delta: float, reasons: str) -> Guarantee:
    """Return what the paper says of a part, marked as not certified."""
    return Guarantee.uncertified(
        epsilon=epsilon, delta=delta, reason=reasons, neighbours="replace", mechanism=f"{name} (as published)"
    )


# -- section 2.2 ---------------------------------------------------------------------------------------------


def pcount(inside: int, epsilon: float, rng: np.random.Generator) -> float:
    """PCOUNT of Lemma 2.12: a count with Laplace noise of scale 1/epsilon.

    Examples
    --------
    >>> round(pcount(100, 1e9, np.random.default_rng(0)))
    100
    """
    return float(inside + rng.laplace(scale=1.0 / epsilon))


def threshold_slack(queries: int, beta: float, epsilon: float, sensitivity: float = 1.0) -> float:
    r"""Return the :math:`\Gamma = 8\Delta(\log t + \log(2/\beta))/\varepsilon` of Theorem 2.14.

    Examples
    --------
    >>> round(threshold_slack(10, 0.05, 1.0), 1)
    47.9
    """
    return 8.0 * sensitivity * (math.log(queries) + math.log(2.0 / beta)) / epsilon


def above_threshold(
    queries: Iterable[Callable[[], float]],
    threshold: float,
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
) -> int | None:
    """Theorem 2.14: the first query whose noisy value reaches the noisy threshold; None where there is none.

    The algorithm is that of Dwork and Roth (2014, Algorithm 1), which the paper cites.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> above_threshold([lambda: 1.0, lambda: 90.0], 50.0, 10.0, 1.0, rng)
    1
    """
    level = threshold + rng.laplace(scale=2.0 * sensitivity / epsilon)
    for index, query in enumerate(queries):
        if query() + rng.laplace(scale=4.0 * sensitivity / epsilon) >= level:
            return index
    return None


# -- appendix C ----------------------------------------------------------------------------------------------


def psge(
    X: ArrayLike,
    *,
    center: ArrayLike,
    radius: float,
    epsilon: float,
    delta: float,
    random_state: int | np.random.Generator | None = None,
) -> SphericalResult:
    r"""Mean and variance of a spherical Gaussian by PSGE, Algorithm 6. **Not certified**: see `REASONS`.

    Parameters
    ----------
    X : array-like of shape (m, d)
        The records in their order: the paper pairs :math:`X_{2i-1}` with :math:`X_{2i}`.
    center, radius : array-like of shape (d,), float
        The ball that holds the component.
    epsilon, delta : float
        The privacy that the paper claims.
    random_state : int, Generator or None
        Source of the noise, which is floating point from numpy: for experiments.

    Returns
    -------
    SphericalResult

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(3.0, 2.0, size=(20_000, 10))
    >>> found = psge(X, center=np.full(10, 3.0), radius=12.0, epsilon=1.0, delta=1e-6, random_state=0)
    >>> bool(abs(found.variance - 4.0) < 0.1), bool(abs(found.mean - 3.0).max() < 0.1), found.guarantee.certified
    (True, True, False)
    """
    records = complete_records(X)
    middle = complete_records(np.atleast_2d(np.asarray(center, dtype=np.float64)), "center", records.shape[1])[0]
    radius, epsilon, delta = check_positive(radius, "radius"), check_epsilon(epsilon), check_delta(delta)
    d = records.shape[1]
    rng = np.random.default_rng(random_state)
    # "Set parameters": the variance's scale is set for epsilon/3, and line 5 uses one for epsilon/2.
    scale_of_variance = 2.0 * radius**2 / (epsilon / 2.0)
    scale_of_mean = 6.0 * radius * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    inside = np.linalg.norm(records - middle, axis=1) <= radius  # X' = X in the ball
    pairs = inside[: len(inside) // 2 * 2].reshape(-1, 2).all(axis=1)  # both X_2i and X_2i-1
    both = records[: len(pairs) * 2].reshape(-1, 2, d)[pairs]
    halves = (both[:, 1] - both[:, 0]) / math.sqrt(2.0)
    count = pcount(int(inside.sum()), epsilon / 3.0, rng)
    number = max(count, 1.0)  # ours: the paper divides by whatever comes out
    variance = (float((halves**2).sum()) + rng.laplace(scale=scale_of_variance)) / (number / 2.0 * d)
    mean = (records[inside].sum(axis=0) + rng.normal(scale=scale_of_mean, size=d)) / number
    return SphericalResult(
        mean=frozen_array(mean),
        variance=variance,
        count=count,
        spent=epsilon / 3.0 + epsilon / 2.0 + epsilon / 3.0,
        guarantee=claimed("PSGE", epsilon, delta, REASONS["psge"]),
    )


# -- section 5.1 ---------------------------------------------------------------------------------------------


def seclusion(distances: Array, radius: float, stretch: float, t: float, capped: bool = True) -> Array:
    r"""Query (5), or without caps query (4), for balls around each row of distances to all records.

    .. math:: \min\{\#_t B_r,\; \#_t\,(X \setminus B_{cr}),\; t - \#_t\,(B_{cr} \setminus B_r)\}

    Examples
    --------
    >>> seclusion(np.array([[0.0, 1.0, 9.0, 9.0]]), 1.0, 5.0, 2.0).tolist()
    [2.0]
    """
    inner = (distances <= radius).sum(axis=1).astype(np.float64)
    outer = (distances > stretch * radius).sum(axis=1).astype(np.float64)
    around = distances.shape[1] - inner - outer
    if capped:
        inner, outer, around = (np.minimum(part, t) for part in (inner, outer, around))
    return np.asarray(np.minimum(np.minimum(inner, outer), t - around))


def _averages(sample: Array, t: float, score: Callable[[Array], Array]) -> float:
    """The L_X(r) of Algorithm 2: the mean of the t largest scores; with fewer records, over t all the same (ours)."""
    scores = np.concatenate([score(cdist(sample[rows], sample)) for rows in _blocks(len(sample))])
    return float(np.sort(scores)[::-1][: max(1, int(t))].sum() / max(1, int(t)))


def _blocks(n: int, size: int = 512) -> list[slice]:
    return [slice(start, min(n, start + size)) for start in range(0, n, size)]


def _thinned(X: Array, t: float, most: int, rng: np.random.Generator) -> tuple[Array, float]:
    """A random part of the records and the same part of t, where there are more than `most`."""
    if not most or len(X) <= most:
        return X, t
    return X[rng.choice(len(X), most, replace=False)], t * most / len(X)


def _radii(low: float, high: float) -> Array:
    """L, 2L, 4L, ..., U, as in Algorithm 2."""
    number = max(1, math.ceil(math.log2(high / low)))
    return np.append(low * 2.0 ** np.arange(number), high)


def terrific_radius(
    X: Array,
    *,
    t: float,
    stretch: float,
    largest: bool,
    epsilon: float,
    beta: float,
    low: float,
    high: float,
    constants: MixtureConstants,
    rng: np.random.Generator,
) -> float | None:
    """Algorithm 2: a radius of a terrific ball, or None.

    Examples
    --------
    >>> X = np.concatenate([np.zeros((300, 2)), np.full((300, 2), 50.0)])
    >>> X = X + np.random.default_rng(0).normal(size=X.shape)
    >>> options = {"t": 200, "stretch": 5.0, "largest": False, "epsilon": 5.0, "beta": 0.05, "constants": PRINTED}
    >>> found = terrific_radius(X, **options, low=0.5, high=100.0, rng=np.random.default_rng(0))
    >>> 2.0 <= found <= 8.0
    True
    """
    sample, wanted = _thinned(X, t, constants.most_pairs, rng)
    radii = _radii(low, high)
    if largest:
        radii = radii[::-1]
    # T counts one query less than there are, as printed.
    slack = 16.0 / epsilon * (math.log(max(2, len(radii) - 1)) + math.log(2.0 / beta))
    threshold = max(wanted - slack, constants.least_share * wanted)
    queries = (
        lambda r=r: _averages(sample, wanted, lambda far: seclusion(far, float(r), stretch, wanted)) for r in radii
    )
    index = above_threshold(queries, threshold, epsilon, 2.0, rng)
    return None if index is None else float(radii[index])


def _good_radius(
    X: Array,
    t: float,
    epsilon: float,
    beta: float,
    low: float,
    high: float,
    constants: MixtureConstants,
    rng: np.random.Generator,
) -> float | None:
    """GoodRadius: the first radius at which about t records are near each of t of them."""
    sample, wanted = _thinned(X, t, constants.most_pairs, rng)
    radii = _radii(low, high)
    slack = threshold_slack(len(radii), beta, epsilon, 2.0)
    threshold = max(wanted - slack, constants.least_share * wanted)

    def near(radius: float) -> Callable[[], float]:
        return lambda: _averages(sample, wanted, lambda far: np.minimum((far <= radius).sum(axis=1), wanted))

    index = above_threshold((near(float(r)) for r in radii), threshold, epsilon, 2.0, rng)
    return None if index is None else float(radii[index])


def _good_center(X: Array, radius: float, epsilon: float, delta: float, rng: np.random.Generator) -> Array | None:
    """GoodCenter: a heavy cell of a projection, intervals on all axes of a turned basis, a noisy average.

    Three parts, each with a third of both budgets. Replacing a record moves two cells by one, so Laplace noise has
    scale 2 over epsilon; one interval per axis for each of two records, so Gaussian noise has sensitivity sqrt(2d).
    """
    d = X.shape[1]
    third, part = epsilon / 3.0, delta / 3.0
    axes = min(AXES, d)
    half = radius * min(1.0, WIDTH / math.sqrt(d))
    projected = X if axes == d else X @ rng.standard_normal((d, axes)) / math.sqrt(d)
    side = 4.0 * half * (1.0 if axes < d else math.sqrt(d) / WIDTH)
    shift = rng.random(axes)
    cells = np.floor(projected / side + shift).astype(np.int64)
    keys, counts = np.unique(cells, axis=0, return_counts=True)
    noisy = counts + rng.laplace(scale=2.0 / third, size=len(counts))
    if not len(keys) or noisy.max() < 1.0 + 2.0 * math.log(2.0 / part) / third:
        return None
    places = projected / side + shift
    chosen = (np.abs(places - (keys[int(noisy.argmax())] + 0.5)) <= 0.75).all(axis=1)
    basis = ortho_group.rvs(d, random_state=rng) if d > 1 else np.eye(1)
    turned = X[chosen] @ basis
    deviation = math.sqrt(2.0 * d) * math.sqrt(2.0 * math.log(1.25 / part)) / third
    middle = np.array([_heaviest(turned[:, axis], 2.0 * half, deviation, rng) for axis in range(d)]) @ basis.T
    reach = 3.0 * radius
    kept = X[chosen]
    kept = kept[np.linalg.norm(kept - middle, axis=1) <= reach] - middle
    spread = 2.0 * reach * math.sqrt(2.0 * math.log(1.25 / part)) / (third / 2.0)
    number = max(1.0, len(kept) + rng.laplace(scale=2.0 / third))
    return np.asarray(middle + (kept.sum(axis=0) + rng.normal(scale=spread, size=d)) / number)


def _heaviest(values: Array, width: float, deviation: float, rng: np.random.Generator) -> float:
    """Middle of the interval of this width with the largest noisy count, of those that are not empty."""
    cells = np.floor(values / width).astype(np.int64)
    keys, counts = np.unique(cells, return_counts=True)
    if not len(keys):
        return 0.0
    # Neighbouring intervals are taken together: a cluster may lie across an edge.
    pairs = {int(key): 0.0 for key in keys} | {int(key) - 1: 0.0 for key in keys}
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        pairs[key] += count
        pairs[key - 1] += count
    names = np.array(sorted(pairs))
    noisy = np.array([pairs[int(name)] for name in names]) + rng.normal(scale=deviation, size=len(names))
    return float((names[int(noisy.argmax())] + 1) * width)


def one_cluster(
    X: Array,
    *,
    t: float,
    epsilon: float,
    delta: float,
    beta: float,
    low: float,
    high: float,
    constants: MixtureConstants,
    rng: np.random.Generator,
) -> tuple[Array, float] | None:
    """PLOC of Theorem B.1 in our reading: GoodRadius with half of epsilon, GoodCenter with the other half.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(20.0, 1.0, size=(3000, 3))
    >>> options = {"t": 1500, "epsilon": 4.0, "delta": 1e-6, "beta": 0.05, "low": 0.1, "high": 100.0}
    >>> center, radius = one_cluster(X, **options, constants=PRACTICAL, rng=np.random.default_rng(0))
    >>> bool(np.linalg.norm(center - 20.0) < 1.0), radius < 8.0
    (True, True)
    """
    if not len(X):
        return None
    radius = _good_radius(X, max(t, 1.0), epsilon / 2.0, beta, low, high, constants, rng)
    if radius is None:
        return None
    share = epsilon / (3.0 if constants.shrinks else 2.0)
    center = _good_center(X, radius, share, delta, rng)
    if center is None:
        return None
    if constants.shrinks:
        distances = np.linalg.norm(X - center, axis=1)
        radii = radius * 2.0 ** (np.arange(-6, 5) / 4.0)
        # t itself may be more than there is, and its last records far out: nine tenths of them.
        queries = [lambda r=r: float((distances <= r).sum()) for r in radii]
        index = above_threshold(queries, 0.9 * t, epsilon / 6.0, 1.0, rng)
        radius = float(radii[-1 if index is None else index])
    return center, radius


def pgloc(
    S: ArrayLike,
    *,
    t: float,
    epsilon: float,
    delta: float,
    R: float,
    sigma_min: float,
    sigma_max: float,
    beta: float = 0.05,
    constants: str | MixtureConstants = "printed",
    random_state: int | np.random.Generator | None = None,
) -> BallResult:
    r"""Find a small ball that holds t records by PGLOC, Algorithm 5. **Not certified**: see `REASONS`.

    Parameters
    ----------
    S : array-like of shape (m, l)
    t : float
        Number of records that the ball should hold.
    epsilon, delta : float
        The privacy that the paper claims.
    R, sigma_min, sigma_max : float
        Bounds on the means' norms and on the standard deviations.
    beta : float
        Probability of failure.
    constants : {"printed", "practical"} or MixtureConstants
    random_state : int, Generator or None

    Returns
    -------
    BallResult

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(5.0, 1.0, size=(4000, 4))
    >>> found = pgloc(X, t=2000, epsilon=4.0, delta=1e-6, R=50.0, sigma_min=1.0, sigma_max=1.0,
    ...               constants="practical", random_state=0)
    >>> bool(np.linalg.norm(found.center - 5.0) < 1.0), found.guarantee.certified
    (True, False)
    """
    records = complete_records(S, "S")
    epsilon, delta, R = check_epsilon(epsilon), check_delta(delta), check_positive(R, "R")
    smallest, greatest = check_positive(sigma_min, "sigma_min"), check_positive(sigma_max, "sigma_max")
    chosen = constants_named(constants)
    rng = np.random.default_rng(random_state)
    dimensions = records.shape[1]
    width = GRID * smallest  # lambda
    end = R + 3.0 * math.sqrt(dimensions) * greatest * (greatest / smallest)
    rounded = np.rint(np.clip(records, -end, end) / width) * width
    diameter = 2.0 * end * math.sqrt(dimensions)
    found = one_cluster(
        rounded,
        t=t,
        epsilon=epsilon,
        delta=delta,
        beta=beta,
        low=max(width, 0.25 * smallest * math.sqrt(dimensions)),
        high=diameter,
        constants=chosen,
        rng=rng,
    )
    guarantee = claimed("PGLOC", epsilon, delta, REASONS["pgloc"])
    if found is None:
        return BallResult(None, math.nan, guarantee)
    center, radius = found
    return BallResult(frozen_array(center), radius + width * math.sqrt(dimensions), guarantee)


def terrific_ball(
    X: ArrayLike,
    *,
    t: float,
    epsilon: float,
    delta: float,
    high: float,
    low: float,
    stretch: float = 5.0,
    largest: bool = False,
    beta: float = 0.05,
    constants: str | MixtureConstants = "printed",
    random_state: int | np.random.Generator | None = None,
) -> BallResult:
    r"""PTerrificBall of section 5.1: many records inside, many outside its c-fold, hardly any between.

    **Not certified**: see `REASONS`. Lemma 5.7 claims (2 epsilon, delta), which the guarantee states.

    Parameters
    ----------
    X : array-like of shape (n, d)
    t : float
        How many records are to be inside, and outside, at least.
    epsilon, delta : float
        Of each of its two parts: a radius, a centre.
    high, low : float
        Greatest and smallest radius, the paper's U and L.
    stretch : float
        The c.
    largest : bool
        Whether radii are tried from the largest down.
    beta, constants, random_state
        As for `pgloc`.

    Examples
    --------
    >>> X = np.concatenate([np.zeros((1500, 3)), np.full((1500, 3), 60.0)])
    >>> X = X + np.random.default_rng(0).normal(size=X.shape)
    >>> found = terrific_ball(X, t=1000, epsilon=3.0, delta=1e-6, high=200.0, low=0.8, constants="practical",
    ...                       random_state=0)
    >>> ends = [float(np.linalg.norm(found.center - place)) for place in (0.0, 60.0)]
    >>> min(ends) < 2.0, found.radius < 20.0, found.guarantee.epsilon
    (True, True, 6.0)
    """
    records = complete_records(X)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    high, low = check_positive(high, "high"), check_positive(low, "low")
    if low >= high:
        raise ValueError(f"low must be less than high, got {low} and {high}")
    if check_positive(stretch, "stretch") <= 1.0:
        raise ValueError(f"stretch must be greater than 1, got {stretch}")
    wanted = float(check_count(int(t), "t"))
    chosen, rng = constants_named(constants), np.random.default_rng(random_state)
    guarantee = claimed("PTerrificBall", 2.0 * epsilon, delta, REASONS["terrific_ball"])
    nothing = BallResult(None, math.nan, guarantee)
    radius = terrific_radius(
        records,
        t=wanted,
        stretch=stretch,
        largest=largest,
        epsilon=epsilon,
        beta=beta,
        low=low,
        high=high,
        constants=chosen,
        rng=rng,
    )
    if radius is None:
        return nothing
    near = radius
    if largest and chosen.shrinks:
        # The largest radius may be many times the spread of what lies inside: the grid of the centre needs that spread.
        near = _good_radius(records, wanted, epsilon / 4.0, beta, low, high, chosen, rng) or radius
    center = _good_center(records, near, 0.5 * epsilon, delta, rng)
    if center is None:
        return nothing
    # "we conclude by running ABOVETHRESHOLD with the query given by (4) for a ball of radius (1 + c/10) r"
    ball = (1.0 + stretch / 10.0) * radius
    distances = np.linalg.norm(records - center, axis=1)[None]
    sizes = [ball] if not chosen.shrinks else [ball * factor for factor in (1.0, 0.7, 0.5, 1.4)]
    slack = threshold_slack(len(sizes), beta, 0.25 * epsilon)
    level = max(wanted - slack, chosen.least_share * wanted)
    queries = [lambda r=r: float(seclusion(distances, r, stretch, wanted, capped=False)[0]) for r in sizes]
    index = above_threshold(queries, level, 0.25 * epsilon, 1.0, rng)
    return nothing if index is None else BallResult(frozen_array(center), sizes[index], guarantee)
