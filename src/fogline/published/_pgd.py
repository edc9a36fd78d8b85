r"""PGD as published: private gradient descent on the Hellinger loss.

.. math:: \theta_{k} = \theta_{k-1} - \eta\bigl(\nabla L_n(\theta_{k-1}) + \Delta_n c_{\varepsilon'} Z_k\bigr),
          \qquad h_K(\varepsilon') = \varepsilon .

This module follows the paper; it does *not* make its privacy claim true. See `REASONS`.

References
----------
Deng and Vidyashankar, *Private Minimum Hellinger Distance Estimation via Hellinger Distance Differential Privacy*,
supplement, Propositions 12, 20 and 23, Theorem 24, appendix E.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from fogline._validation import check_positive
from fogline.published._hellinger import fisher_information, gradient, gradient_constant
from fogline.published._hellinger_runs import (
    HellingerResult,
    claim,
    last_noise,
    prepare,
    privacy,
    result,
    step_rho,
)

__all__ = ["REASONS", "pgd"]

REASONS = (
    "the integrals run over draws from the kernel density of the raw records, or over a grid that ends where they end; "
    "the bandwidth reads the raw records; "
    "a sensitivity that falls faster than n^(-1/2) holds for well-behaved data only, not for every data set, and its "
    "constant is not given; "
    "the noise is floating point"
)


def pgd(
    x: ArrayLike,
    *,
    start: ArrayLike | Mapping[str, float],
    family: object = "normal",
    hdp: float | None = None,
    pdp: tuple[float, float] | None = None,
    n_iterations: int = 50,
    step: float = 0.5,
    rate: float = 0.6,
    bandwidth: float | None = None,
    draws: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> HellingerResult:
    r"""Minimum Hellinger distance fit by PGD. **Not certified**: see `REASONS`.

    The supplement does not print kernel, bandwidth, step, start, or the constant of the sensitivity. Ours are marked;
    they were chosen by looking at its tables: see ``docs/gaps.md``.

    Parameters
    ----------
    x : array-like of shape (n,)
        The records; finite.
    start : array-like of shape (m,) or mapping
        The first iterate. For the printed tables of N(5, 2^2) we use (2, 1): it gives the bias that they show.
    family : str or UnivariateFamily
    hdp : float, optional
        The claimed :math:`\varepsilon`-HDP.
    pdp : (power, epsilon), optional
        The claimed power-divergence privacy. With neither there is no noise: the non-private column.
    n_iterations : int
        K.
    step : float
        Ours: :math:`\eta = 0.5`.
    rate : float
        Ours: 1/p = 0.6 in Theorem 24's sensitivity :math:`C(\theta)\sqrt m\,n^{-1/p}`; 0.5 is Proposition 20, which
        holds for every data set if the integrals do.
    bandwidth : float, optional
        Half-width of Epanechnikov's kernel (ours). None: `fogline.published._hellinger.rule_of_thumb` (ours).
    draws : int, optional
        The paper's Monte-Carlo integrals over this many draws from the density estimate, made once; 5000 gives the
        spread of its non-private column. None: quadrature.
    random_state : int, Generator or None
        Source of draws and noise, which is floating point from numpy: for experiments.

    Returns
    -------
    HellingerResult

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(5, 2, size=1000)
    >>> plain = pgd(x, start=[2, 1])
    >>> {name: round(value, 1) for name, value in plain.params.items()}
    {'mu': 4.9, 'sigma': 1.9}
    >>> noisy = pgd(x, start=[2, 1], hdp=0.6, random_state=0)
    >>> noisy.guarantee.certified, noisy.iterates.shape, round(noisy.guarantee.epsilon, 1)
    (False, (51, 2), 8.7)
    """
    budget, step = privacy(hdp, pdp), check_positive(step, "step")
    setting = prepare(
        x,
        family=family,
        start=start,
        bandwidth=bandwidth,
        n_iterations=n_iterations,
        rate=rate,
        draws=draws,
        random_state=random_state,
    )
    multiplier = 0.0 if budget is None else 1.0 / math.sqrt(2.0 * step_rho(budget, n_iterations, 1))
    path, scales = [setting.start], []
    with np.errstate(all="ignore"):  # noise may send a scale to 0 or a mean out of sight: that is the method
        for _ in range(n_iterations):
            theta = path[-1]
            scale = multiplier * setting.sensitivity(gradient_constant(setting.family, theta), 0.5)
            noise = scale * setting.rng.standard_normal(len(theta))
            moved = theta - step * (gradient(setting.family, theta, setting.nodes) + noise)
            path.append(np.where(np.isfinite(moved), moved, theta))
            scales.append(scale)
        information = fisher_information(setting.family, path[-1])
    spread = last_noise(setting, step, scales[-1], information)
    return result(setting, path, scales, spread, claim(budget, "PGD", REASONS))
