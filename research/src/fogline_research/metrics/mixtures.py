r"""How far a mixture of Gaussians is from the true one, component by component, and in its likelihood.

With :math:`m = \|\Sigma^{-1/2}(\hat\mu - \mu)\|` and
:math:`f = \|\Sigma^{-1/2}\hat\Sigma\Sigma^{-1/2} - I\|_F` the total variation of two Gaussians is at most
:math:`\tfrac12\sqrt{m^2 + f^2}` while no eigenvalue is below a third: their
Kullback-Leibler divergence is :math:`\tfrac12(m^2 + \sum(\lambda - \log(1 + \lambda)))`, a term
:math:`\lambda - \log(1 + \lambda)` is at most :math:`\lambda^2` for :math:`\lambda \ge -2/3`, and Pinsker's inequality
does the rest. The total variation itself is measured by Monte Carlo.

Components are matched so that the sum of their distances is least; one that has no partner is at distance one.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019, Definition 2.3 and Lemma 2.17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

__all__ = ["MixtureErrors", "gaussian_norms", "gaussian_tv", "log_likelihood_gap", "mixture_errors", "mixture_log_pdf"]

Array = NDArray[np.float64]

DRAWS = 4000
"""Draws of a Monte Carlo estimate."""


@dataclass(frozen=True, eq=False)
class MixtureErrors:
    """Errors of a found mixture.

    Attributes
    ----------
    matching : tuple of (int or None)
        The found component of each true one.
    tv_norms : array of shape (k,)
        Bound on the total variation of each pair by the norms of their parameters, at most one.
    tv : array of shape (k,)
        Total variation of each pair, by Monte Carlo.
    weights : float
        Sum of the absolute errors of the weights; what was found in vain counts in full.
    missing : int
        True components without a partner.
    """

    matching: tuple[int | None, ...]
    tv_norms: Array
    tv: Array
    weights: float
    missing: int


def gaussian_norms(
    mean: ArrayLike, covariance: ArrayLike, found_mean: ArrayLike, found: ArrayLike
) -> tuple[float, float]:
    """Mahalanobis distance of the means and Frobenius distance of the whitened covariance from the identity.

    Examples
    --------
    >>> gaussian_norms([0.0, 0.0], np.eye(2), [3.0, 4.0], 2 * np.eye(2))
    (5.0, 1.41...)
    """
    root = np.linalg.cholesky(np.asarray(covariance, dtype=np.float64))
    shift = np.linalg.solve(root, np.asarray(found_mean, dtype=np.float64) - np.asarray(mean))
    half = np.linalg.solve(root, np.asarray(found, dtype=np.float64))
    whitened = np.linalg.solve(root, half.T)
    return float(np.linalg.norm(shift)), float(np.linalg.norm(whitened - np.eye(len(root))))


def gaussian_tv(
    mean: ArrayLike, covariance: ArrayLike, found_mean: ArrayLike, found: ArrayLike, random_state: Any = 0
) -> float:
    r"""Total variation of two Gaussians by Monte Carlo: :math:`E_p (1 - q/p)_+`.

    Examples
    --------
    >>> round(gaussian_tv([0.0], [[1.0]], [1.0], [[1.0]]), 1)      # 0.383 in truth
    0.4
    """
    rng = np.random.default_rng(random_state)
    centre = np.asarray(mean, dtype=np.float64)
    root = np.linalg.cholesky(np.asarray(covariance, dtype=np.float64))
    X = centre + rng.standard_normal((DRAWS, len(centre))) @ root.T
    p = _log_pdf(X, centre, root)
    q = _log_pdf(X, np.asarray(found_mean, dtype=np.float64), np.linalg.cholesky(np.asarray(found, dtype=np.float64)))
    return float(np.mean(np.maximum(0.0, -np.expm1(np.minimum(q - p, 0.0)))))


def mixture_errors(
    weights: ArrayLike,
    means: ArrayLike,
    covariances: ArrayLike,
    found_weights: ArrayLike,
    found_means: ArrayLike,
    found_covariances: ArrayLike,
    random_state: Any = 0,
) -> MixtureErrors:
    """Match the components of a found mixture with the true ones and measure each pair.

    Examples
    --------
    >>> eye = np.eye(2)[None].repeat(2, axis=0)
    >>> found = mixture_errors([0.4, 0.6], [[0, 0], [9, 9]], eye, [0.5, 0.5], [[9, 9], [0, 0]], eye)
    >>> found.matching, round(found.weights, 6), found.missing
    ((1, 0), 0.2, 0)
    """
    true = [np.asarray(part, dtype=np.float64) for part in (weights, means, covariances)]
    other = [np.asarray(part, dtype=np.float64) for part in (found_weights, found_means, found_covariances)]
    k, m = len(true[0]), len(other[0])
    bounds = np.ones((k, m))
    far = np.zeros((k, m))
    for i in range(k):
        for j in range(m):
            shift, shape = gaussian_norms(true[1][i], true[2][i], other[1][j], other[2][j])
            bounds[i, j] = min(1.0, 0.5 * math.hypot(shift, shape))
            far[i, j] = bounds[i, j] + 1e-6 * math.log1p(math.hypot(shift, shape))  # tells pairs beyond one apart
    rows, columns = linear_sum_assignment(far)
    matching: list[int | None] = [None] * k
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        matching[i] = j
    norms, tv, off = np.ones(k), np.ones(k), 0.0
    for i, partner in enumerate(matching):
        if partner is None:
            off += float(true[0][i])
            continue
        norms[i] = bounds[i, partner]
        tv[i] = gaussian_tv(true[1][i], true[2][i], other[1][partner], other[2][partner], random_state)
        off += abs(float(true[0][i] - other[0][partner]))
    spare = set(range(m)) - set(columns.tolist())
    off += float(sum(other[0][j] for j in spare))
    return MixtureErrors(tuple(matching), norms, tv, off, matching.count(None))


def mixture_log_pdf(X: ArrayLike, weights: ArrayLike, means: ArrayLike, covariances: ArrayLike) -> Array:
    """Logarithm of the density of a mixture at each row.

    Examples
    --------
    >>> mixture_log_pdf([[0.0]], [1.0], [[0.0]], [[[1.0]]]).round(4)
    array([-0.9189])
    """
    rows = np.asarray(X, dtype=np.float64)
    parts = [
        math.log(max(float(weight), 1e-300)) + _log_pdf(rows, mean, np.linalg.cholesky(covariance))
        for weight, mean, covariance in zip(
            np.asarray(weights), np.asarray(means, dtype=np.float64), np.asarray(covariances), strict=True
        )
    ]
    return np.asarray(logsumexp(parts, axis=0))


def log_likelihood_gap(X: ArrayLike, reference: tuple[Any, Any, Any], found: tuple[Any, Any, Any]) -> float:
    """Mean log-likelihood of held-out records under a reference mixture less that under a found one, in nats.

    Parameters
    ----------
    X : array of shape (n, d)
        Records that neither was fitted to.
    reference, found : (weights, means, covariances)

    Examples
    --------
    >>> one = ([1.0], [[0.0]], [[[1.0]]])
    >>> log_likelihood_gap([[0.0], [1.0]], one, one)
    0.0
    """
    return float(np.mean(mixture_log_pdf(X, *reference) - mixture_log_pdf(X, *found)))


def _log_pdf(X: Array, mean: Array, root: Array) -> Array:
    """Logarithm of a Gaussian density, from a root of its covariance."""
    z = np.linalg.solve(root, (X - mean).T)
    size = len(mean) * math.log(2 * math.pi) / 2 + float(np.log(np.diag(root)).sum())
    return np.asarray(-0.5 * (z**2).sum(axis=0) - size)
