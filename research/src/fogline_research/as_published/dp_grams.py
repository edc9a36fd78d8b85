r"""DP-GRAMS as published: mean shift as noisy gradient ascent on the log of a kernel density estimate.

From each of some records, T steps

.. math:: x_{t+1} = x_t + \eta\Bigl(\frac1m \sum_{i \in B_t} \mathrm{clip}_{C_*}\, q_i(x_t) + z_t\Bigr),
          \qquad q_i(x) = h^2 \frac{g_i(x)}{\hat p_h(x)} = n\, w_i(x)\,(X_i - x),

where :math:`w_i(x)` is record i's share of the kernel density at x, and :math:`z_t` is Gaussian noise that is
the more correlated between two starts the closer they began. This module follows the paper; it does *not*
make the paper's privacy claim true. See `REASONS`.

References
----------
*DP-GRAMS: Differentially Private Gradient Ascent-based Mean Shift for Mode Estimation*: Algorithm 1,
equations (2) to (4). Hall, Rinaldo and Wasserman (2013), JMLR 14, for the correlated noise.

The Gaussian kernel as the published algorithms use it: weights, densities, rules of thumb.

Everything here reads raw records and is private in nothing. All functions are exact up to floating point;
work over many points is cut into blocks so that memory stays bounded.

The two merges of the DP-GRAMS paper (section 3): to a known number of modes, or by distance.

Both replace a group of candidates by its mean.

Bandwidth regimes of the DP-GRAMS supplement (proof of Theorem 3.3, equations 15 to 18).

The mean squared error of a mode is a bias :math:`h^4`, a sampling variance :math:`\log n / (n h^{d+2})` and a
privacy variance :math:`K / (n^2 \varepsilon^2 h^{2d+2})` with

.. math:: K = T d \cdot 64 \ln(2/\delta) \ln\frac{2.5\, m T}{n \delta}.

Balancing bias against whichever variance is larger gives the two bandwidths

.. math:: h_{\text{non-DP}} = (\log n / n)^{1/(d+6)}, \qquad
          h_{\text{DP}} = (K / n^2\varepsilon^2)^{1/(2d+6)},

and two cut-offs in epsilon between them,

.. math:: \varepsilon_{\text{non}} = \frac{\sqrt K}{n^{3/(d+6)} \log n} \;(17), \qquad
          \varepsilon_{\text{DP}} = \frac{\sqrt K}{n^{3/(d+6)} (\log n)^{(d+3)/(d+6)}} \;(18).

The paper states all four up to constants. Ours are 1, and both bandwidths are multiplied by
``BANDWIDTH_SCALE`` times the data's scale, which the theory leaves open.

DP-GRAMS-C as published: clusters around the modes of DP-GRAMS.

Candidate modes by `dp_grams`; then plain mean shift of the candidates; then a merge into k clusters, or by distance;
then a label for every record. Algorithm 3 prints ``MeanShift(M_raw)`` and does not say what the kernels sit on: the
candidates, its only argument, or the records. Both readings are here. This module follows the paper; it does *not*
make its privacy claim true: labels carry no noise, and neither does a shift on the records. See `CLUSTER_REASONS`.

References
----------
*Gradient Ascent-based Mean Shift for Differentially Private Nonparametric Mode Estimation*, supplement,
Algorithm 3 and tables 5 to 8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg.lapack import dpstrf
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.special import gammaln

from fogline._validation import check_count, check_delta, check_epsilon, check_positive
from fogline.accounting.guarantee import Guarantee
from fogline_research.as_published._checks import check_fraction, complete_records, frozen_array

__all__ = [
    "BANDWIDTH_SCALE",
    "CLUSTER_REASONS",
    "REASONS",
    "RECORDS_REASON",
    "REFINE_ON",
    "DPGramsCResult",
    "DPGramsResult",
    "Regime",
    "choose_regime",
    "clip_norm",
    "data_scale",
    "dp_grams",
    "dp_grams_c",
    "kernel_density",
    "kernel_factor",
    "kernel_weights",
    "merge",
    "merge_to_count",
    "merge_within",
    "noise_scale",
    "noise_scale_small_epsilon",
    "privacy_constant",
    "row_blocks",
    "shift",
    "silverman_bandwidth",
]

Array = NDArray[np.float64]

_BLOCK_CELLS = 1 << 17  # 1 MiB of weights at a time: measured fastest, since a block then stays in cache


def data_scale(X: Array) -> float:
    """Root of the mean variance over the axes; 1 when the records do not vary.

    Examples
    --------
    >>> data_scale(np.array([[0.0, 0.0], [2.0, 0.0]]))
    0.7071067811865476
    """
    scale = float(np.sqrt(np.mean(np.var(X, axis=0))))
    return scale if scale > 0 else 1.0


def silverman_bandwidth(X: Array) -> float:
    r"""Silverman's rule for a Gaussian kernel, one bandwidth for all axes.

    .. math:: h = s \left(\frac{4}{(d+2)\,n}\right)^{1/(d+4)}, \qquad s = \text{``data_scale''}(X).

    References
    ----------
    Silverman, *Density Estimation for Statistics and Data Analysis* (1986), section 4.3.2.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> round(silverman_bandwidth(X), 2)
    0.32
    """
    n, d = X.shape
    return float(data_scale(X) * (4.0 / ((d + 2.0) * n)) ** (1.0 / (d + 4.0)))


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Cut `rows` into slices whose product with `columns` stays near a fixed number of cells.

    Examples
    --------
    >>> [s.stop - s.start for s in row_blocks(5, 1 << 16)]
    [2, 2, 1]
    """
    step = max(1, _BLOCK_CELLS // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def _half_squares(points: Array, X: Array, bandwidth: float) -> Array:
    """Return ``|x - X_i|^2 / 2h^2`` as a (points, records) array, from the differences of the coordinates.

    The expansion |x|^2 - 2x.X + |X|^2 would be quicker in high dimension, but it cancels: a start *is* a
    record, and its own distance must come out as exactly zero.
    """
    scale = np.sqrt(0.5) / bandwidth
    left, right = points * scale, X * scale
    return np.asarray(cdist(left, right, "sqeuclidean"))


def kernel_weights(points: Array, X: Array, bandwidth: float) -> tuple[Array, Array]:
    r"""Kernel of each record at each point, relative to the largest, and the sums over records.

    Their quotient is the record's share of the density at the point,

    .. math:: w_i(x) = \frac{K((x - X_i)/h)}{\sum_j K((x - X_j)/h)} = \frac{K((x-X_i)/h)}{n h^d \hat p_h(x)}.

    The largest exponent is taken out first, so a point far from all records keeps finite weights. The
    quotient is left to the caller, who may need it for a batch only.

    Returns
    -------
    weights : ndarray of shape (points, n)
    totals : ndarray of shape (points, 1)

    Examples
    --------
    >>> weights, totals = kernel_weights(np.array([[0.5], [900.0]]), np.array([[0.0], [1.0]]), 1.0)
    >>> (weights / totals).round(3).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    weights = _half_squares(points, X, bandwidth)
    np.subtract(weights.min(axis=1, keepdims=True), weights, out=weights)
    np.exp(weights, out=weights)
    return weights, weights.sum(axis=1, keepdims=True)


def kernel_density(points: Array, X: Array, bandwidth: float) -> Array:
    r"""Gaussian kernel density estimate :math:`\hat p_h` at `points`.

    Examples
    --------
    >>> kernel_density(np.array([[0.0]]), np.array([[0.0]]), 1.0).round(4)
    array([0.3989])
    """
    n, d = X.shape
    density = np.empty(points.shape[0])
    for rows in row_blocks(points.shape[0], n):
        density[rows] = np.exp(-_half_squares(points[rows], X, bandwidth)).sum(axis=1)
    return np.asarray(density / (n * (np.sqrt(2.0 * np.pi) * bandwidth) ** d))


def kernel_factor(starts: Array, bandwidth: float) -> Array:
    """Return L with ``L @ L.T`` the kernel matrix of the starts, up to 1e-10: noise ``L @ z`` has that covariance.

    Pivoted Cholesky stops at the numerical rank, which for a smooth kernel is far below the number of starts
    and does not mind starts that coincide.

    Examples
    --------
    >>> kernel_factor(np.array([[1.0], [1.0]]), 1.0).shape
    (2, 1)
    """
    scaled = starts / bandwidth
    square = np.einsum("ij,ij->i", scaled, scaled)
    matrix = np.exp(-0.5 * np.maximum(square[:, None] + square - 2.0 * scaled @ scaled.T, 0.0))
    factor, pivots, rank, _ = dpstrf(matrix, lower=1, tol=1e-10)
    result = np.zeros((starts.shape[0], rank))
    result[pivots - 1] = np.tril(factor)[:, :rank]
    return result


def shift(points: Array, X: Array, values: Array, bandwidth: float) -> Array:
    """Mean of `values` (one row a record of `X`), weighted by the kernel of the records at each point.

    Examples
    --------
    >>> shift(np.array([[0.5]]), np.array([[0.0], [1.0]]), np.array([[2.0], [4.0]]), 1.0).tolist()
    [[3.0]]
    """
    moved = np.empty((points.shape[0], values.shape[1]))
    for rows in row_blocks(points.shape[0], X.shape[0]):
        weights, totals = kernel_weights(points[rows], X, bandwidth)
        moved[rows] = weights @ values / totals
    return moved


def _group_means(points: Array, labels: NDArray[np.int64]) -> Array:
    """Mean of each group, largest group first (ties: first seen first)."""
    names, members = np.unique(labels, return_inverse=True)
    counts = np.bincount(members, minlength=names.size)
    sums = np.zeros((names.size, points.shape[1]))
    np.add.at(sums, members, points)
    return np.asarray((sums / counts[:, None])[np.argsort(-counts, kind="stable")])


def merge_to_count(points: Array, n_modes: int) -> Array:
    """Agglomerate `points` into at most `n_modes` groups (Ward's linkage) and return the group means.

    The paper says "hierarchical clustering" without naming the linkage; Ward's is our choice, because with
    noisy candidates single linkage would spend its groups on outliers. Fewer points than modes come back as
    they are.

    Examples
    --------
    >>> merge_to_count(np.array([[0.0], [0.2], [5.0]]), 2).tolist()
    [[0.1], [5.0]]
    """
    if points.shape[0] <= n_modes:
        return points.copy()
    return _group_means(points, fcluster(linkage(points, method="ward"), n_modes, criterion="maxclust"))


def merge_within(points: Array, radius: float) -> Array:
    """Group points joined by a chain of steps no longer than `radius`; return the group means.

    Examples
    --------
    >>> merge_within(np.array([[0.0], [1.0], [2.0], [5.0]]), 1.0).tolist()
    [[1.0], [5.0]]
    """
    n = points.shape[0]
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    _, labels = connected_components(graph, directed=False)
    return _group_means(points, labels)


def merge(points: Array, *, n_modes: int | None, radius: float) -> Array:
    """Merge to `n_modes` groups when that number is known, else within `radius`.

    Examples
    --------
    >>> merge(np.array([[0.0], [0.2], [5.0]]), n_modes=None, radius=1.0).tolist()
    [[0.1], [5.0]]
    """
    return merge_within(points, radius) if n_modes is None else merge_to_count(points, n_modes)


BANDWIDTH_SCALE = 0.4


@dataclass(frozen=True)
class Regime:
    """Which term of the error dominates, and the bandwidth that balances it.

    Attributes
    ----------
    name : str
        ``"strong privacy"`` below (17), ``"intermediate"`` between (17) and (18), ``"weak privacy"`` above.
    rate : float
        The optimal bandwidth of that regime, free of units.
    epsilon_non, epsilon_dp : float
        The cut-offs (17) and (18).
    """

    name: str
    rate: float
    epsilon_non: float
    epsilon_dp: float


def privacy_constant(*, n: int, d: int, m: int, n_steps: int, delta: float) -> float:
    """Return the K of the supplement: ``T d * 64 ln(2/delta) ln(2.5 m T / (n delta))``.

    Examples
    --------
    >>> round(privacy_constant(n=1000, d=2, m=145, n_steps=7, delta=1e-5))
    136097
    """
    log_term = math.log(max(2.5 * m * n_steps / (n * delta), math.e))
    return n_steps * d * 64.0 * math.log(2.0 / delta) * log_term


def choose_regime(*, n: int, d: int, m: int, n_steps: int, epsilon: float, delta: float) -> Regime:
    """Compare `epsilon` with the cut-offs (17) and (18) and return the regime with its bandwidth rate.

    In the intermediate window the supplement keeps the non-private bandwidth.

    Examples
    --------
    >>> choose_regime(n=1000, d=2, m=145, n_steps=7, epsilon=1.0, delta=1e-5).name
    'strong privacy'
    >>> choose_regime(n=1000, d=2, m=145, n_steps=7, epsilon=20.0, delta=1e-5).name
    'weak privacy'
    """
    constant = privacy_constant(n=n, d=d, m=m, n_steps=n_steps, delta=delta)
    log_n = math.log(max(n, 3))  # log n must exceed 1 for (17) to lie below (18)
    base = math.sqrt(constant) * n ** (-3.0 / (d + 6.0))
    epsilon_non = base / log_n
    epsilon_dp = base * log_n ** (-(d + 3.0) / (d + 6.0))
    if epsilon < epsilon_non:
        rate = (constant / (n * epsilon) ** 2) ** (1.0 / (2.0 * d + 6.0))
        return Regime("strong privacy", rate, epsilon_non, epsilon_dp)
    rate = (log_n / n) ** (1.0 / (d + 6.0))
    return Regime("intermediate" if epsilon < epsilon_dp else "weak privacy", rate, epsilon_non, epsilon_dp)


_TINY = float(np.finfo(np.float64).tiny)

REASONS = (
    "the ascent starts from raw records, so an outlier drawn as a start comes out as a mode; "
    "each clipped term is divided by the density of all records, so one record moves every term and the clip "
    "does not bound the sensitivity; "
    "p_min of the unknown density is assumed; "
    "the density filter and the bandwidth read the raw data"
)


@dataclass(frozen=True, eq=False)
class DPGramsResult:
    """What a run of `dp_grams` returns.

    Attributes
    ----------
    modes : ndarray of shape (k, d)
        The merged modes, largest group of candidates first.
    raw_modes : ndarray of shape (starts, d)
        The end of every ascent, before merging.
    bandwidth : float
        The h used throughout.
    regime : str
        Where epsilon lies among the supplement's cut-offs: "strong privacy", "intermediate", "weak privacy".
    cutoffs : tuple of float
        The cut-offs (17) and (18) in epsilon.
    noise_scale : float
        Sigma of equation (2), per coordinate and step.
    clip : float
        C* of equation (3).
    guarantee : Guarantee
        Never certified; its reason lists the gaps.
    """

    modes: Array
    raw_modes: Array
    bandwidth: float
    regime: str
    cutoffs: tuple[float, float]
    noise_scale: float
    clip: float
    guarantee: Guarantee


def clip_norm(*, bandwidth: float, d: int, p_min: float | None = None) -> float:
    r"""C* of equation (3): :math:`h^{1-d} / (p_{\min} V_d)`, with :math:`V_d` the volume of the unit ball.

    With ``p_min=None`` the product :math:`p_{\min} V_d` counts as 1. In high dimension the power
    :math:`h^{1-d}` rules everything: for h > 1 it vanishes and takes the noise with it.

    Examples
    --------
    >>> clip_norm(bandwidth=0.5, d=2)
    2.0
    >>> round(clip_norm(bandwidth=0.5, d=2, p_min=0.1), 4)
    6.3662
    """
    log_clip = (1.0 - d) * math.log(bandwidth)
    if p_min is not None:
        log_clip -= math.log(p_min) + 0.5 * d * math.log(math.pi) - float(gammaln(1.0 + 0.5 * d))
    if log_clip > 700.0:
        raise ValueError(f"bandwidth={bandwidth} is too small for d={d}: the clip h^(1-d) is not a finite number")
    return math.exp(log_clip)


def noise_scale(*, clip: float, n: int, m: int, n_steps: int, epsilon: float, delta: float) -> float:
    r"""Sigma of equation (2), with :math:`\varepsilon_{\text{iter}}` of equation (3).

    .. math:: \sigma = \frac{C_*/m}{\log(1 + n(e^{\varepsilon_{\text{iter}}} - 1)/m)}
              \sqrt{8 \log\frac{2.5\,mT}{n\delta}}, \qquad
              \varepsilon_{\text{iter}} = \frac{\varepsilon}{\sqrt{8T\log(2/\delta)}}.

    Examples
    --------
    >>> round(noise_scale(clip=1.0, n=1000, m=145, n_steps=7, epsilon=1.0, delta=1e-5), 4)
    0.2889
    """
    log_term = math.log(2.5 * m * n_steps / (n * delta))
    if log_term <= 0.0:
        raise ValueError(f"delta={delta} must lie below 2.5 * batch_size * n_steps / n for equation (2)")
    epsilon_step = epsilon / math.sqrt(8.0 * n_steps * math.log(2.0 / delta))
    # log(1 + r(e^a - 1)) = a + log(1 + (r - 1)(1 - e^-a)), which cannot overflow
    epsilon_batch = epsilon_step + math.log1p((n / m - 1.0) * -math.expm1(-epsilon_step))
    return clip / m / epsilon_batch * math.sqrt(8.0 * log_term)


def noise_scale_small_epsilon(*, clip: float, n: int, m: int, n_steps: int, epsilon: float, delta: float) -> float:
    r"""Equation (4), the limit of (2) for small epsilon; for comparison only, `dp_grams` uses (2).

    .. math:: \sigma_g = \frac{8 C_*}{n\varepsilon} \sqrt{T \log(2/\delta) \log\frac{2.5\,mT}{n\delta}}.

    Examples
    --------
    >>> round(noise_scale_small_epsilon(clip=1.0, n=1000, m=145, n_steps=7, epsilon=0.01, delta=1e-5), 2)
    26.09
    """
    logs = math.log(2.0 / delta) * math.log(2.5 * m * n_steps / (n * delta))
    return 8.0 * clip / (n * epsilon) * math.sqrt(n_steps * logs)


def _draw_batches(rows: int, n: int, m: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return for each row m of n indices, uniform without replacement.

    The m smallest of n random keys are such a draw, and quicker than a call a row until n is some thousands.
    """
    if m == n:
        return np.broadcast_to(np.arange(n), (rows, n))
    if n <= 2000:
        return np.argpartition(rng.random((rows, n)), m - 1, axis=1)[:, :m]
    return np.stack([rng.choice(n, m, replace=False, shuffle=False) for _ in range(rows)])


def _mean_clipped_terms(
    points: Array, X: Array, *, bandwidth: float, clip: float, m: int, rng: np.random.Generator
) -> Array:
    """Lines 8 to 11 of Algorithm 1 for all points: an own batch each, clip every q_i, average."""
    n = X.shape[0]
    mean = np.empty_like(points)
    for rows in row_blocks(points.shape[0], n):
        weights, totals = kernel_weights(points[rows], X, bandwidth)
        batch = _draw_batches(weights.shape[0], n, m, rng)
        factor = np.take_along_axis(weights, batch, axis=1) * (n / totals)
        shift = X[batch] - points[rows, None, :]
        norm = factor * np.sqrt(np.einsum("smd,smd->sm", shift, shift))
        # a norm of 0 divides nothing; nor does a clip that has vanished to 0 altogether
        factor *= clip / np.maximum(norm, max(clip, _TINY))
        mean[rows] = np.einsum("sm,smd->sd", factor, shift) / m
    return mean


def _draw_starts(X: Array, starts: str | ArrayLike, fraction: float | None, rng: np.random.Generator) -> Array:
    n, d = X.shape
    if not isinstance(starts, str):
        return complete_records(starts, "starts", d)
    if starts not in ("bernoulli", "fixed"):
        raise ValueError(f'starts must be "bernoulli", "fixed" or an array of points, got {starts!r}')
    share = _default_fraction(n) if fraction is None else check_fraction(fraction, "initial_fraction")
    if starts == "bernoulli":
        drawn = np.flatnonzero(rng.random(n) < share)
        if drawn.size:
            return X[drawn]
    return X[rng.choice(n, max(1, math.floor(n * share)) if starts == "fixed" else 1, replace=False)]


def _default_fraction(n: int) -> float:
    """Ours: a fifth of the records, but no more than about 600 starts (cost grows as starts * n)."""
    return min(0.2, 600.0 / n)


def _batches(n: int, batch_size: int | None, n_steps: int | None) -> tuple[int, int]:
    """Return m and T, by default those of section 5; below n = 3 the logarithm counts as that of 3."""
    log_n = math.log(max(n, 3))
    m = min(n, math.ceil(n / log_n)) if batch_size is None else check_count(batch_size, "batch_size")
    if m > n:
        raise ValueError(f"batch_size must be at most n = {n}, got {m}")
    return m, math.ceil(log_n) if n_steps is None else check_count(n_steps, "n_steps")


def dp_grams(
    X: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    n_modes: int | None = None,
    bandwidth: float | None = None,
    initial_fraction: float | None = None,
    density_filter: float | None = None,
    p_min: float | None = None,
    step_size: float = 0.5,
    step_constant: float | None = None,
    batch_size: int | None = None,
    n_steps: int | None = None,
    starts: str | ArrayLike = "bernoulli",
    merge_factor: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> DPGramsResult:
    r"""Modes of `X` by DP-GRAMS, Algorithm 1 of the paper. **Not certified**: see `REASONS`.

    Where the paper leaves a choice open, the default is ours and marked so. The bandwidth's scale, p_0 and
    eta were chosen by looking at the paper's table of two simulated mixtures, since the paper does not say
    what it used. On fresh seeds, 10 runs a cell, the mean squared error is then within a factor of three of
    the paper's in 34 of 40 cells (the worst, at epsilon = 5, is 4.6 times higher), and in all 40 with
    ``density_filter=0.1``.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The records; finite.
    epsilon, delta : float
        The privacy that the paper claims for the answer.
    n_modes : int, optional
        Merge to this many modes (agglomerative, Ward's linkage). None: merge by distance.
    bandwidth : float, optional
        h, in the units of `X`. None: the optimum of the regime that epsilon falls into (supplement, (16) to
        (18)) times 0.4 (ours: ``BANDWIDTH_SCALE``) times the root mean variance of `X` (ours).
    initial_fraction : float, optional
        p_0, the share of records drawn as starts. Ours: a fifth, but no more than 600 starts on average.
    density_filter : float, optional
        gamma in (0, 1]: keep the starts whose density is at least gamma times the highest among them. None:
        no filter.
    p_min : float, optional
        Lower bound of the density near the modes, for C*. None: clip at :math:`h^{1-d}`.
    step_size : float
        eta. Ours: 0.5.
    step_constant : float, optional
        C of the largest step that Theorem 4.2 allows, eta = C/h^2, instead of `step_size`. The paper prints no C; from
        C = h^2 on a step leads beyond the mean.
    batch_size, n_steps : int, optional
        m and T; by default ``ceil(n / log n)`` and ``ceil(log n)``, as in section 5.
    starts : {"bernoulli", "fixed"} or array-like of shape (s, d)
        How starts are drawn: each record with probability p_0 (section 3; one record if none came up), or
        ``max(1, floor(n p_0))`` records (Algorithm 1). An array gives them: not in the paper, but it sets the
        gap of the raw starts apart from the gap of the clip.
    merge_factor : float
        Without `n_modes`, candidates linked by steps of at most this many bandwidths are one mode. Ours: 1.
    random_state : int, Generator or None
        Source of batches, starts *and noise*. Noise here is floating point from numpy: for experiments.

    Returns
    -------
    DPGramsResult

    Notes
    -----
    Algorithm 1 draws a fresh batch inside both of its loops; so does this: every start has its own batch at
    every step, without replacement. The density in the denominator of :math:`q_i` is that of all records, as
    the paper defines it. Work is of order ``starts * n * T``.

    Examples
    --------
    >>> from fogline.datasets.simulated import gaussian_mixture4
    >>> sample = gaussian_mixture4(1000, random_state=0)
    >>> result = dp_grams(sample.X, epsilon=5.0, delta=1e-5, n_modes=4, random_state=0)
    >>> result.modes.shape
    (4, 2)
    >>> result.guarantee.certified
    False
    """
    records = complete_records(X)
    n, d = records.shape
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    step_size = check_positive(step_size, "step_size")
    step_constant = None if step_constant is None else check_positive(step_constant, "step_constant")
    merge_factor = check_positive(merge_factor, "merge_factor")
    n_modes = None if n_modes is None else check_count(n_modes, "n_modes")
    gamma = None if density_filter is None else check_fraction(density_filter, "density_filter")
    p_min = None if p_min is None else check_positive(p_min, "p_min")
    m, T = _batches(n, batch_size, n_steps)
    regime = choose_regime(n=n, d=d, m=m, n_steps=T, epsilon=epsilon, delta=delta)
    chosen = regime.rate * BANDWIDTH_SCALE * data_scale(records)
    h = chosen if bandwidth is None else check_positive(bandwidth, "bandwidth")
    eta = step_size if step_constant is None else step_constant / h**2
    clip = clip_norm(bandwidth=h, d=d, p_min=p_min)
    sigma = noise_scale(clip=clip, n=n, m=m, n_steps=T, epsilon=epsilon, delta=delta)

    rng = np.random.default_rng(random_state)
    points = _draw_starts(records, starts, initial_fraction, rng)
    if gamma is not None:
        density = kernel_density(points, records, h)
        points = points[density >= gamma * density.max()]
    factor = kernel_factor(points, h)
    for _ in range(T):
        mean = _mean_clipped_terms(points, records, bandwidth=h, clip=clip, m=m, rng=rng)
        noise = sigma * (factor @ rng.standard_normal((factor.shape[1], d)))
        points = points + eta * (mean + noise)
    return DPGramsResult(
        modes=frozen_array(merge(points, n_modes=n_modes, radius=merge_factor * h)),
        raw_modes=frozen_array(points),
        bandwidth=h,
        regime=regime.name,
        cutoffs=(regime.epsilon_non, regime.epsilon_dp),
        noise_scale=sigma,
        clip=clip,
        guarantee=Guarantee.uncertified(
            epsilon=epsilon,
            delta=delta,
            reason=REASONS,
            neighbours="replace",
            mechanism="DP-GRAMS (as published)",
        ),
    )


REFINE_ON = ("candidates", "records")

CLUSTER_REASONS = (
    "a label is published for every record, an exact function of that record; "
    f"and all that holds of DP-GRAMS: {REASONS}"
)
RECORDS_REASON = "the modes are refined by mean shift on the raw records, without noise; "


@dataclass(frozen=True, eq=False)
class DPGramsCResult:
    """What a run of `dp_grams_c` returns.

    Attributes
    ----------
    centers : ndarray of shape (k, d)
        The merged modes, largest group of candidates first.
    labels : ndarray of shape (n,)
        For each record the nearest centre: published by the paper, and a leak.
    raw_modes : ndarray of shape (starts, d)
        The candidates of DP-GRAMS.
    refined_modes : ndarray of shape (starts, d)
        Where mean shift took them.
    bandwidth : float
    clip, noise_scale : float
        C* and sigma of DP-GRAMS.
    guarantee : Guarantee
        Never certified; its reason lists the gaps.
    """

    centers: Array
    labels: NDArray[np.int64]
    raw_modes: Array
    refined_modes: Array
    bandwidth: float
    clip: float
    noise_scale: float
    guarantee: Guarantee


def dp_grams_c(
    X: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    n_clusters: int | None = None,
    bandwidth: float | None = None,
    initial_fraction: float = 1.0,
    refine_on: str = "candidates",
    refine_bandwidth: float | None = None,
    n_refinements: int | None = None,
    density_filter: float | None = None,
    p_min: float | None = None,
    step_size: float = 0.5,
    step_constant: float | None = None,
    merge_factor: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> DPGramsCResult:
    """Clusters of `X` by DP-GRAMS-C, Algorithm 3 of the supplement. **Not certified**: see `CLUSTER_REASONS`.

    Where the paper leaves a choice open, the default is ours and marked so.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The records; finite. The paper reduces MNIST to 50 principal components of the raw data first, which is
        not private either; that is left to the caller.
    epsilon, delta : float
        The privacy that the paper claims for the answer.
    n_clusters : int, optional
        k_est: merge to this many clusters (agglomerative; Ward's linkage is ours). None: merge by distance.
    bandwidth : float, optional
        h of DP-GRAMS. Ours: Silverman's rule, as the paper has it for mean shift.
    initial_fraction : float
        p_0. Ours: 1, every record a start, because then the paper's Digits row comes out to four digits; work
        grows as ``initial_fraction * n**2``, so give less for many records.
    refine_on : {"candidates", "records"}
        What the mean shift of the second step averages: the private candidates, which are the only argument that is
        printed, or the raw records. On Iris the first gives the printed errors of the centres (with ``bandwidth=1``
        and ``step_size=0.02``), the second does not; on Digits the candidates are the records, see ``docs/gaps.md``,
        and both give the printed row.
    refine_bandwidth : float, optional
        h of that mean shift. Ours: Silverman's rule on what it averages.
    n_refinements : int, optional
        Steps of mean shift. Ours: ``ceil(log n)``, as the paper has it for mean shift.
    density_filter, p_min, step_size, step_constant
        As for `dp_grams`.
    merge_factor : float
        Without `n_clusters`, modes linked by steps of at most this many bandwidths are one. Ours: 1.
    random_state : int, Generator or None
        Source of batches, starts *and noise*. Noise here is floating point from numpy: for experiments.

    Returns
    -------
    DPGramsCResult

    Examples
    --------
    >>> from fogline.datasets.simulated import gaussian_mixture4
    >>> sample = gaussian_mixture4(500, random_state=0)
    >>> result = dp_grams_c(sample.X, epsilon=1.0, delta=1e-5, n_clusters=4, random_state=0)
    >>> result.centers.shape, result.labels.shape, result.guarantee.certified
    ((4, 2), (500,), False)
    """
    records = complete_records(X)
    n = records.shape[0]
    k = None if n_clusters is None else check_count(n_clusters, "n_clusters")
    h = silverman_bandwidth(records) if bandwidth is None else check_positive(bandwidth, "bandwidth")
    merge_factor = check_positive(merge_factor, "merge_factor")
    if refine_on not in REFINE_ON:
        raise ValueError(f"refine_on must be one of {', '.join(REFINE_ON)}, got {refine_on!r}")
    steps = math.ceil(math.log(max(n, 3))) if n_refinements is None else check_count(n_refinements, "n_refinements")
    private = dp_grams(
        records,
        epsilon=epsilon,
        delta=delta,
        bandwidth=h,
        initial_fraction=initial_fraction,
        density_filter=density_filter,
        p_min=p_min,
        step_size=step_size,
        step_constant=step_constant,
        random_state=random_state,
    )
    refined = private.raw_modes
    kernels = records if refine_on == "records" else private.raw_modes
    given = None if refine_bandwidth is None else check_positive(refine_bandwidth, "refine_bandwidth")
    width = silverman_bandwidth(kernels) if given is None else given
    for _ in range(steps):
        refined = shift(refined, kernels, kernels, width)
    centers = merge(refined, n_modes=k, radius=merge_factor * h)
    _, labels = cKDTree(centers).query(records)
    labels = np.asarray(labels, dtype=np.int64)
    labels.setflags(write=False)
    return DPGramsCResult(
        centers=frozen_array(centers),
        labels=labels,
        raw_modes=private.raw_modes,
        refined_modes=frozen_array(refined),
        bandwidth=h,
        clip=private.clip,
        noise_scale=private.noise_scale,
        guarantee=Guarantee.uncertified(
            epsilon=private.guarantee.epsilon,
            delta=private.guarantee.delta,
            reason=(RECORDS_REASON if refine_on == "records" else "") + CLUSTER_REASONS,
            neighbours="replace",
            mechanism="DP-GRAMS-C (as published)",
        ),
    )
