r"""The multivariate normal in up to three dimensions, by means, standard deviations and correlations.

With :math:`r = x - \mu`, :math:`A = \Sigma^{-1}` and :math:`\Sigma_k, \Sigma_{kl}` the derivatives of :math:`\Sigma`,

.. math::
    \partial_k \log f &= \tfrac12 r^\top A\Sigma_k A r - \tfrac12 \operatorname{tr} A\Sigma_k, \qquad
    \partial_\mu \log f = A r, \qquad \partial_\mu\partial_k \log f = -A\Sigma_k A r, \\
    \partial_k\partial_l \log f &= \tfrac12 \operatorname{tr}(A\Sigma_k A\Sigma_l - A\Sigma_{kl})
        + \tfrac12 r^\top A(\Sigma_{kl} - \Sigma_k A \Sigma_l - \Sigma_l A \Sigma_k) A r .
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import FloatArray
from fogline._validation import check_count, check_level
from fogline.families.family import Family, check_theta

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Family):
    """The multivariate normal: means `mu_i`, standard deviations `sigma_i`, correlations `corr_ij`.

    Parameters
    ----------
    dimension : int
        One to three.

    Examples
    --------
    >>> family = MultivariateNormal(2)
    >>> family.parameters
    ('mu_1', 'mu_2', 'sigma_1', 'sigma_2', 'corr_12')
    >>> family.pdf([0, 0, 1, 1, 0.5], [[0.0, 0.0]]).round(4)
    array([0.1838])
    """

    support = (-math.inf, math.inf)

    def __init__(self, dimension: int) -> None:
        d = check_count(dimension, "dimension")
        if d > 3:
            raise ValueError(f"dimension must be at most 3, got {d}")
        self.dimension = d
        self.name = f"{d}-dimensional normal"
        self._pairs = tuple(itertools.combinations(range(d), 2))
        axes = range(1, d + 1)
        correlations = (f"corr_{i + 1}{j + 1}" for i, j in self._pairs)
        self.parameters = (*(f"mu_{i}" for i in axes), *(f"sigma_{i}" for i in axes), *correlations)
        limits = [(-math.inf, math.inf)] * d + [(0.0, math.inf)] * d + [(-1.0, 1.0)] * len(self._pairs)
        self.limits = tuple(limits)

    def covariance(self, theta: ArrayLike) -> FloatArray:
        """Return the covariance matrix of the parameters; refuse correlations that belong to none."""
        values = check_theta(self, theta)
        sigma, correlation = np.array(values[self.dimension : 2 * self.dimension]), self._correlation(values)
        # Each correlation may lie in (-1, 1) and the matrix still belong to no distribution.
        if np.linalg.eigvalsh(correlation)[0] <= 1e-12:
            raise ValueError(f"corr: the correlations {values[2 * self.dimension :]} belong to no distribution")
        return correlation * np.outer(sigma, sigma)

    def _correlation(self, values: list[float]) -> FloatArray:
        matrix = np.eye(self.dimension)
        for (i, j), value in zip(self._pairs, values[2 * self.dimension :], strict=True):
            matrix[i, j] = matrix[j, i] = value
        return matrix

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the log density."""
        return self._logpdf(self._residual(theta, x), self.covariance(theta))

    def _residual(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        points = np.asarray(x, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.dimension:
            raise ValueError(f"x must have shape (n, {self.dimension}), got {points.shape}")
        return points - np.asarray(theta, dtype=np.float64)[: self.dimension]

    def _logpdf(self, residual: FloatArray, covariance: FloatArray) -> FloatArray:
        _, log_determinant = np.linalg.slogdet(covariance)
        squared = np.einsum("ni,ij,nj->n", residual, np.linalg.inv(covariance), residual)
        constant = float(log_determinant) + self.dimension * math.log(2.0 * math.pi)
        return np.asarray(-0.5 * (squared + constant), dtype=np.float64)

    def convolved(self, theta: ArrayLike, grid: ArrayLike, bandwidth: ArrayLike) -> FloatArray:
        """Return the smoothed density: normal again. The bandwidth is one number, or one for each axis."""
        h = np.broadcast_to(np.asarray(bandwidth, dtype=np.float64), (self.dimension,))
        if not np.all(h > 0.0):
            raise ValueError("bandwidth must be greater than 0 on every axis")
        # A normal law plus an independent normal kernel: covariances add.
        wider = np.asarray(self.covariance(theta) + np.diag(h**2), dtype=np.float64)
        return np.exp(self._logpdf(self._residual(theta, grid), wider))

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density."""
        inverse = np.linalg.inv(self.covariance(theta))
        solved = self._residual(theta, x) @ inverse
        first = self._first_derivatives(theta)
        spread = np.einsum("ni,kij,nj->nk", solved, first, solved) - np.einsum("ij,kji->k", inverse, first)
        return np.concatenate([solved, 0.5 * spread], axis=1)

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivatives of the log density."""
        d, inverse = self.dimension, np.linalg.inv(self.covariance(theta))
        solved = self._residual(theta, x) @ inverse
        first, second = self._first_derivatives(theta), self._second_derivatives(theta)
        product = np.einsum("kia,ab,lbj->klij", first, inverse, first)
        inner = second - product - np.swapaxes(product, 0, 1)
        trace = np.einsum("ij,klji->kl", inverse, product - second)
        result = np.empty((len(solved), len(self.parameters), len(self.parameters)))
        result[:, :d, :d] = -inverse
        result[:, :d, d:] = -np.einsum("ia,kab,nb->nik", inverse, first, solved)
        result[:, d:, :d] = np.swapaxes(result[:, :d, d:], 1, 2)
        result[:, d:, d:] = 0.5 * (trace + np.einsum("ni,klij,nj->nkl", solved, inner, solved))
        return result

    def _first_derivatives(self, theta: ArrayLike) -> FloatArray:
        """Return the derivatives of the covariance in each standard deviation and correlation."""
        d, values = self.dimension, check_theta(self, theta)
        sigma, correlation = np.array(values[d : 2 * d]), self._correlation(values)
        result = np.zeros((d + len(self._pairs), d, d))
        for k in range(d):
            result[k, k, :] += correlation[k] * sigma
            result[k, :, k] += correlation[k] * sigma
        for k, (i, j) in enumerate(self._pairs, start=d):
            result[k, i, j] = result[k, j, i] = sigma[i] * sigma[j]
        return result

    def _second_derivatives(self, theta: ArrayLike) -> FloatArray:
        d, values = self.dimension, check_theta(self, theta)
        sigma, correlation = np.array(values[d : 2 * d]), self._correlation(values)
        result = np.zeros((d + len(self._pairs),) * 2 + (d, d))
        for k in range(d):
            for other in range(d):
                result[k, other, k, other] += correlation[k, other]
                result[k, other, other, k] += correlation[k, other]
        for k, (i, j) in enumerate(self._pairs, start=d):
            for axis, partner in ((i, j), (j, i)):
                for a, b in ((k, axis), (axis, k)):
                    result[a, b, i, j] = result[a, b, j, i] = sigma[partner]
        return result

    def data_bounds(self, box: ArrayLike, tail: float = 0.0005) -> FloatArray:
        """Return a public range of the data: quantiles of each axis over all of the box."""
        from scipy.special import ndtri

        bounds, d = np.asarray(box, dtype=np.float64), self.dimension
        # The widest law that the parameter bounds allow, since the range must be public.
        reach = -float(ndtri(check_level(tail, "tail"))) * bounds[d : 2 * d, 1]
        return np.stack([bounds[:d, 0] - reach, bounds[:d, 1] + reach], axis=1)

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return mean, standard deviations and correlations of a covariance matrix."""
        sigma = np.sqrt(np.diag(variance))
        correlations = [variance[i, j] / (sigma[i] * sigma[j]) for i, j in self._pairs]
        return np.concatenate([mean, sigma, correlations])
