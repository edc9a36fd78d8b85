r"""DP-PMS as published: partial mean shift with correlated Gaussian noise after every step.

.. math:: \hat Y_i \leftarrow \frac{\sum_j w_{ij} Y_j}{\sum_j w_{ij}} + \sigma Z_i, \qquad
          w_{ij} = K\bigl((X_j, \hat Y_j), (X_i, \hat Y_i)\bigr), \qquad Z \sim \mathcal N(0, K_{\text{mesh}}),

from :math:`\hat Y = Y`. This module follows the paper; it does *not* make its privacy claim true. See `REASONS`.

References
----------
*Gradient Ascent-based Mean Shift for Differentially Private Nonparametric Mode Estimation*, supplement,
Algorithm 2 and tables 3 and 4. Hall, Rinaldo and Wasserman (2013), JMLR 14, for the correlated noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_delta, check_epsilon
from fogline.accounting.guarantee import Guarantee
from fogline.published._checks import frozen_array
from fogline.published._kernel import kernel_factor
from fogline.published._partial_mean_shift import PartialMeanShiftResult, climb, prepare

__all__ = ["REASONS", "dp_pms", "step_noise"]

Array = NDArray[np.float64]

REASONS = (
    "every climb starts from a raw response and one estimate is published for each record, so an outlier comes out; "
    "the weighted average divides by raw weights and is never clipped, so no noise scale bounds what one record does; "
    "the noise that fits the printed tables spends the whole epsilon in every step; "
    "the bandwidths and the covariance of the noise read the raw data"
)


def step_noise(*, n: int, bandwidth: float, epsilon: float, delta: float, n_steps: int, compose: bool = False) -> float:
    r"""Our reading of CalibrateNoise: the Gaussian mechanism at sensitivity :math:`2 C_*/n`.

    .. math:: \sigma = \frac{2 C_*}{n\,\varepsilon_t} \sqrt{2 \ln\frac{1.25}{\delta_t}}, \qquad
              C_* = \frac{K(0)}{h} = \frac{1}{\sqrt{2\pi}\,h}.

    Without `compose` every step has the whole epsilon and delta, which no theorem allows over T steps. With it
    the T steps share them as in the paper's proof for DP-GRAMS,
    :math:`\varepsilon_t = \varepsilon / \sqrt{8T\ln(2/\delta)}`, :math:`\delta_t = \delta / 2T`.

    Examples
    --------
    >>> setting = {"n": 300, "bandwidth": 0.285, "epsilon": 1.0, "delta": 1e-5, "n_steps": 6}
    >>> round(step_noise(**setting), 4), round(step_noise(**setting, compose=True), 2)
    (0.0452, 1.2)
    """
    step_epsilon, step_delta = epsilon, delta
    if compose:
        step_epsilon /= math.sqrt(8.0 * n_steps * math.log(2.0 / delta))
        step_delta /= 2.0 * n_steps
    clip = 1.0 / (math.sqrt(2.0 * math.pi) * bandwidth)
    return 2.0 * clip / (n * step_epsilon) * math.sqrt(2.0 * math.log(1.25 / step_delta))


def dp_pms(
    X: ArrayLike,
    y: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    mesh: ArrayLike | None = None,
    bandwidth: float | Sequence[float] | None = None,
    n_steps: int | None = None,
    kernel_at: str = "iterates",
    compose: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> PartialMeanShiftResult:
    """Conditional modes of `y` given `X` by DP-PMS, Algorithm 2 of the supplement. **Not certified**: see `REASONS`.

    The supplement names procedures without saying what they do; ours are marked. They were chosen by looking at
    its tables 3 and 4; on fresh seeds, 10 runs a cell, the mean squared error against partial mean shift with
    the same weights is within a factor of two of the printed one in 30 of 32 cells (the others: 2.3 and 2.1
    times higher). ``docs/gaps.md`` says what else was tried.

    Parameters
    ----------
    X : array-like of shape (n, p) or (n,)
        The predictors; finite.
    y : array-like of shape (n,)
        The responses; finite.
    epsilon, delta : float
        The privacy that the paper claims for the answer.
    mesh : array-like of shape (k, p + 1), optional
        Starts: predictors and a first response. None: the records themselves, as printed. With a mesh, records
        have no climb of their own, and `kernel_at` is "responses".
    bandwidth : float or pair of float, optional
        For the predictors and the response. Ours (ComputeBandwidth): Silverman's rule for each. The supplement
        prints one h, from the responses alone: with it the sinusoid of its second data set is smoothed away.
    n_steps : int, optional
        T. Ours: ``ceil(log n)``, as for DP-GRAMS.
    kernel_at : {"iterates", "responses"}
        Where a record's kernel sits: at where its own climb stands, as printed, or at its response.
    compose : bool
        Ours (CalibrateNoise): False, every step spends the whole epsilon, as the errors in the tables ask for;
        True: the steps share it, and the noise is some 25 times larger. See `step_noise`.
    random_state : int, Generator or None
        Source of the noise, which is floating point from numpy: for experiments.

    Returns
    -------
    PartialMeanShiftResult

    Notes
    -----
    All starts move at once. The covariance of the noise is the kernel of the starting responses, whatever their
    predictors, as printed. Work is of order ``k * n * T``.

    Examples
    --------
    >>> x = np.linspace(0, 1, 300)
    >>> y = np.where(np.arange(300) % 2, 3.0, 1.0) + 0.2 * np.sin(np.arange(300))
    >>> result = dp_pms(x, y, epsilon=1.0, delta=1e-5, random_state=0)
    >>> result.branches.shape, result.guarantee.certified
    ((300,), False)
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    setting = prepare(X, y, mesh=mesh, bandwidth=bandwidth, n_steps=n_steps, kernel_at=kernel_at)
    h_y, T = setting.bandwidths[1], setting.n_steps
    sigma = step_noise(n=len(setting.y), bandwidth=h_y, epsilon=epsilon, delta=delta, n_steps=T, compose=compose)
    rng = np.random.default_rng(random_state)
    factor = kernel_factor(setting.starts[:, None], h_y)
    ends = climb(setting, lambda points: points + sigma * (factor @ rng.standard_normal(factor.shape[1])))
    return PartialMeanShiftResult(
        x=frozen_array(setting.x),
        branches=frozen_array(ends),
        bandwidths=setting.bandwidths,
        n_steps=T,
        noise_scale=sigma,
        guarantee=Guarantee.uncertified(
            epsilon=epsilon, delta=delta, reason=REASONS, neighbours="replace", mechanism="DP-PMS (as published)"
        ),
    )
