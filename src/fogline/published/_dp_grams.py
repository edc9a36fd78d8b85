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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from fogline._validation import check_count, check_delta, check_epsilon, check_positive
from fogline.accounting.guarantee import Guarantee
from fogline.published._checks import check_fraction, complete_records, frozen_array
from fogline.published._kernel import data_scale, kernel_density, kernel_factor, kernel_weights, row_blocks
from fogline.published._merging import merge
from fogline.published._regimes import BANDWIDTH_SCALE, choose_regime

__all__ = ["REASONS", "DPGramsResult", "clip_norm", "dp_grams", "noise_scale", "noise_scale_small_epsilon"]

Array = NDArray[np.float64]

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
    >>> from fogline.datasets import gaussian_mixture4
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
    merge_factor = check_positive(merge_factor, "merge_factor")
    n_modes = None if n_modes is None else check_count(n_modes, "n_modes")
    gamma = None if density_filter is None else check_fraction(density_filter, "density_filter")
    p_min = None if p_min is None else check_positive(p_min, "p_min")
    m, T = _batches(n, batch_size, n_steps)
    regime = choose_regime(n=n, d=d, m=m, n_steps=T, epsilon=epsilon, delta=delta)
    chosen = regime.rate * BANDWIDTH_SCALE * data_scale(records)
    h = chosen if bandwidth is None else check_positive(bandwidth, "bandwidth")
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
        points = points + step_size * (mean + noise)
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
