r"""PNR as published: private Newton-Raphson on the Hellinger loss.

.. math:: \theta_{k} = \theta_{k-1} - (H_n(\theta_{k-1}) + W_k)^{-1}(\nabla L_n(\theta_{k-1}) + N_k),
          \qquad N_k = \Delta_n c_{\varepsilon'/2} Z_k, \quad W_k = \Delta_n^{(H)} c_{\varepsilon'/2} \tilde Z_k .

This module follows the paper; it does *not* make its privacy claim true. See `fogline.published._pgd.REASONS`.

References
----------
Deng and Vidyashankar, *Private Minimum Hellinger Distance Estimation via Hellinger Distance Differential Privacy*,
supplement, Propositions 12, 13, 20 and 23, Theorem 24, appendix E.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_positive
from fogline.published._hellinger import (
    fisher_information,
    gradient,
    gradient_constant,
    hessian,
    hessian_constant,
)
from fogline.published._hellinger_runs import HellingerResult, claim, prepare, privacy, result, step_rho
from fogline.published._pgd import REASONS

__all__ = ["pnr"]

Array = NDArray[np.float64]


def pnr(
    x: ArrayLike,
    *,
    start: ArrayLike | Mapping[str, float],
    family: object = "normal",
    hdp: float | None = None,
    pdp: tuple[float, float] | None = None,
    n_iterations: int = 5,
    rate: float = 0.6,
    floor: float | None = 0.2,
    bandwidth: float | None = None,
    draws: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> HellingerResult:
    r"""Minimum Hellinger distance fit by PNR. **Not certified**: the guarantee says why.

    Parameters
    ----------
    x, start, family, hdp, pdp, rate, bandwidth, draws, random_state
        As in `pgd`. For the printed tables we use the start (3, 1).
    n_iterations : int
        K.
    floor : float, optional
        Ours: eigenvalues of the symmetric part of the noisy Hessian are replaced by their absolute values, and by this
        where that is greater. None: the inverse as printed, with which two thirds of the runs leave the data at
        0.6-HDP and n = 500, so that the printed tables cannot have been made without some such guard.

    Returns
    -------
    HellingerResult
        Its `privacy_covariance` is that of the last step's gradient noise alone.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(5, 2, size=1000)
    >>> {name: round(value, 1) for name, value in pnr(x, start=[4, 1]).params.items()}
    {'mu': 4.9, 'sigma': 1.9}
    >>> pnr(x, start=[4, 1], hdp=0.6, random_state=0).guarantee.certified
    False
    """
    budget = privacy(hdp, pdp)
    least = None if floor is None else check_positive(floor, "floor")
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
    multiplier = 0.0 if budget is None else 1.0 / math.sqrt(2.0 * step_rho(budget, n_iterations, 2))
    known, m = setting.family, len(setting.start)
    path, scales = [setting.start], []
    with np.errstate(all="ignore"):  # a noisy Hessian may be nearly singular, the step huge: that is the method
        for _ in range(n_iterations):
            theta = path[-1]
            scale = multiplier * setting.sensitivity(gradient_constant(known, theta), 0.5)
            wobble = multiplier * setting.sensitivity(hessian_constant(known, theta), 1.0)
            slope = gradient(known, theta, setting.nodes) + scale * setting.rng.standard_normal(m)
            bend = hessian(known, theta, setting.nodes) + wobble * setting.rng.standard_normal((m, m))
            moved = theta - _solved(bend, slope, least)
            path.append(np.where(np.isfinite(moved), moved, theta))
            scales.append(scale)
        inverse = np.linalg.pinv(fisher_information(known, path[-1]))
    return result(setting, path, scales, scales[-1] ** 2 * inverse @ inverse, claim(budget, "PNR", REASONS))


def _solved(matrix: Array, vector: Array, floor: float | None) -> Array:
    """Solve, guarded or not, and answer not a number where that cannot be done: the iterate then stays."""
    try:
        if floor is None:
            return np.asarray(np.linalg.solve(matrix, vector), dtype=np.float64)
        eigenvalues, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        return np.asarray(vectors @ ((vectors.T @ vector) / np.maximum(np.abs(eigenvalues), floor)), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.full_like(vector, np.nan)
