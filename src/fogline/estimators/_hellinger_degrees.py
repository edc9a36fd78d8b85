"""How uncertain a stated error is, which was read at an estimate: degrees of freedom for Student's intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["degrees_of"]

FloatArray = NDArray[np.float64]

LEAST, MOST = 4.0, 2e6
"""Degrees of freedom are kept in this range."""


def degrees_of(
    variances: Callable[[FloatArray], FloatArray], theta: FloatArray, covariance: FloatArray, box: FloatArray
) -> FloatArray:
    r"""Degrees of freedom of the variances that are stated for an estimate, by Satterthwaite's rule.

    A variance :math:`v_j(\theta)` read at an estimate with the covariance C varies by about :math:`g^\top C g` in its
    logarithm, g the gradient of :math:`\log v_j`; a chi-squared variable of :math:`\nu` degrees of freedom by
    :math:`2/\nu`.

    Parameters
    ----------
    variances : callable
        From parameters to the variance of each.
    theta : array of shape (m,)
    covariance : array of shape (m, m)
        Has these variances on its diagonal.
    box : array of shape (m, 2)
        Bounds of the parameters.

    Examples
    --------
    >>> box = np.array([[-1e3, 1e3], [1e-3, 1e3]])
    >>> normal = lambda theta: np.array([theta[1] ** 2 / 50, theta[1] ** 2 / 100])
    >>> degrees_of(normal, np.array([0.0, 2.0]), np.diag(normal([0.0, 2.0])), box).round()
    array([53., 53.])
    """
    own = np.diag(covariance)
    gradient = np.zeros((len(theta), len(theta)))
    for j, error in enumerate(np.sqrt(own)):
        moved = theta.copy()
        # Half an error to the side where there is room.
        moved[j] += 0.5 * error if theta[j] + 0.5 * error <= box[j, 1] else max(-0.5 * error, box[j, 0] - theta[j])
        if moved[j] != theta[j]:
            change = np.log(np.maximum(variances(moved), 1e-300) / np.maximum(own, 1e-300))
            gradient[j] = change / (moved[j] - theta[j])
    spread = np.einsum("ij,ik,kj->j", gradient, covariance, gradient)
    return np.asarray(2.0 / np.clip(spread, 2.0 / MOST, 2.0 / LEAST))
