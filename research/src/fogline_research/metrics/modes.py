"""How far found modes are from true ones, and whether a confidence ellipse covers.

Three errors, because each hides something. `matching_mse` is the one of the DP-GRAMS paper and rewards modes
that do not exist; `nearest_mode_mse` ignores them; `penalised_mse` charges for them. Report one of the last
two beside the first.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import chi2

__all__ = ["ellipse_covers", "matching_mse", "nearest_mode_mse", "penalised_mse"]

Array = NDArray[np.float64]


def _points(values: ArrayLike, name: str) -> Array:
    points = np.asarray(values, dtype=np.float64)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2:
        raise ValueError(f"{name} must have shape (k, d), got {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError(f"{name} must be finite")
    return points


def _squared_distances(true_modes: ArrayLike, found_modes: ArrayLike) -> Array:
    """All squared distances, true modes in rows."""
    true = _points(true_modes, "true_modes")
    found = _points(found_modes, "found_modes")
    if true.shape[0] == 0:
        raise ValueError("true_modes must hold at least one mode: without a truth there is no error")
    if found.shape[0] == 0:
        return np.empty((true.shape[0], 0))
    if true.shape[1] != found.shape[1]:
        raise ValueError(f"found_modes must have the {true.shape[1]} columns of true_modes, got {found.shape[1]}")
    return np.asarray(((true[:, None, :] - found[None, :, :]) ** 2).sum(axis=2))


def matching_mse(true_modes: ArrayLike, found_modes: ArrayLike) -> float:
    r"""Error of the DP-GRAMS paper: best one-to-one matching, divided by the larger number of modes.

    .. math:: \min_\pi \frac{1}{\max(k, \hat k)} \sum_{j=1}^{\min(k, \hat k)} \|\mu_j - \hat\mu_{\pi(j)}\|^2.

    .. warning:: It rewards spurious modes. Unmatched modes cost nothing yet enlarge the divisor, and more
       candidates make the best matching better: publishing the answer ten times over divides the error by
       ten. Compare only runs with the same number of modes, and give `penalised_mse` beside it.

    Parameters
    ----------
    true_modes, found_modes : array-like of shape (k, d)
        A vector is a column of one-dimensional modes.

    Returns
    -------
    float
        Infinite when nothing was found (the formula would say 0).

    Examples
    --------
    >>> matching_mse([[0.0], [4.0]], [[5.0], [0.0]])
    0.5
    >>> matching_mse([[0.0], [4.0]], [[5.0], [0.0], [9.0], [9.0]])      # two false modes halve the error
    0.25
    """
    cost = _squared_distances(true_modes, found_modes)
    if cost.shape[1] == 0:
        return math.inf
    rows, columns = linear_sum_assignment(cost)
    return float(cost[rows, columns].sum() / max(cost.shape))


def nearest_mode_mse(true_modes: ArrayLike, found_modes: ArrayLike) -> float:
    r"""Mean over true modes of the squared distance to the nearest found one.

    .. math:: \frac1k \sum_{j=1}^k \min_l \|\mu_j - \hat\mu_l\|^2.

    A missed mode costs its distance to the next; a spurious mode costs nothing, and can only help.

    Returns
    -------
    float
        Infinite when nothing was found.

    Examples
    --------
    >>> nearest_mode_mse([[0.0], [4.0]], [[1.0]])
    5.0
    """
    cost = _squared_distances(true_modes, found_modes)
    return float(cost.min(axis=1).mean()) if cost.shape[1] else math.inf


def penalised_mse(true_modes: ArrayLike, found_modes: ArrayLike, *, penalty: float) -> float:
    r"""Error in which every unmatched mode, true or found, costs `penalty`.

    .. math:: \min_{M} \frac{1}{\max(k, \hat k)} \Bigl( \sum_{(j,l) \in M} \|\mu_j - \hat\mu_l\|^2
              + \text{penalty} \cdot (\max(k, \hat k) - |M|) \Bigr)

    over all partial matchings M: a pair further apart than the root of the penalty is better left unmatched,
    so no single mode costs more than `penalty`. A sensible value is the squared distance at which a found
    mode is no longer the same mode. (This is the OSPA distance of order 2, squared, with cut-off
    :math:`\sqrt{\text{penalty}}`.)

    Parameters
    ----------
    true_modes, found_modes : array-like of shape (k, d)
        A vector is a column of one-dimensional modes.
    penalty : float
        Cost of an unmatched mode, in squared units of the data.

    Returns
    -------
    float
        Between 0 and `penalty`; `penalty` when nothing was found.

    References
    ----------
    Schuhmacher, Vo and Vo (2008), *A consistent metric for performance evaluation of multi-object filters*.

    Examples
    --------
    >>> penalised_mse([[0.0], [4.0]], [[5.0], [0.0]], penalty=9.0)
    0.5
    >>> penalised_mse([[0.0], [4.0]], [[5.0], [0.0], [9.0], [9.0]], penalty=9.0)
    4.75
    """
    if not (math.isfinite(penalty) and penalty > 0):
        raise ValueError(f"penalty must be finite and above 0, got {penalty}")
    cost = np.minimum(_squared_distances(true_modes, found_modes), penalty)
    if cost.shape[1] == 0:
        return float(penalty)
    rows, columns = linear_sum_assignment(cost)
    unmatched = max(cost.shape) - min(cost.shape)
    return float((cost[rows, columns].sum() + penalty * unmatched) / max(cost.shape))


def ellipse_covers(true: ArrayLike, centre: ArrayLike, covariance: ArrayLike, *, level: float = 0.95) -> bool:
    r"""Whether the Gaussian confidence ellipse around `centre` contains `true`.

    .. math:: (\mu - c)^\top \Sigma^{-1} (\mu - c) \le \chi^2_{d;\,\text{level}}.

    Parameters
    ----------
    true, centre : array-like of shape (d,)
        The point to cover and the middle of the ellipse.
    covariance : array-like of shape (d, d)
        Positive definite covariance of the estimate.
    level : float
        Nominal coverage, in (0, 1).

    Examples
    --------
    >>> ellipse_covers([1.0, 0.0], [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    True
    >>> ellipse_covers([3.0, 0.0], [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    False
    """
    difference = np.asarray(true, dtype=np.float64) - np.asarray(centre, dtype=np.float64)
    matrix = np.asarray(covariance, dtype=np.float64)
    if difference.ndim != 1:
        raise ValueError(f"true and centre must be vectors, got shape {difference.shape}")
    if matrix.shape != (difference.size, difference.size):
        raise ValueError(f"covariance must have shape {(difference.size,) * 2}, got {matrix.shape}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie in (0, 1), got {level}")
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be positive definite") from None
    distance = float((np.linalg.solve(lower, difference) ** 2).sum())
    return distance <= float(chi2.ppf(level, difference.size))
