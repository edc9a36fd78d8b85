"""Families on the positive half-line: gamma, Weibull and exponential, each with a scale."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline.families.family import FloatArray, UnivariateFamily, check_theta

__all__ = ["Exponential", "Gamma", "Weibull"]

_POSITIVE = (0.0, math.inf)
_LARGEST_EXPONENT = 600.0


class Gamma(UnivariateFamily):
    r"""The gamma family, :math:`f(x) \propto x^{k - 1} e^{-x/s}` with shape k and scale s.

    Examples
    --------
    >>> Gamma().pdf([2.0, 1.0], [1.0, 0.0, -1.0]).round(4)
    array([0.3679, 0.    , 0.    ])
    """

    name = "gamma"
    parameters = ("shape", "scale")
    limits = (_POSITIVE, _POSITIVE)
    support = _POSITIVE

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the log density."""
        shape, scale = check_theta(self, theta)
        inside, z = _stretched(x, scale)
        value = (shape - 1.0) * np.log(z) - z - math.lgamma(shape) - math.log(scale)
        return np.where(inside, value, -math.inf)

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density."""
        from scipy.special import digamma

        shape, scale = check_theta(self, theta)
        inside, z = _stretched(x, scale)
        value = np.stack([np.log(z) - digamma(shape), (z - shape) / scale], axis=-1)
        return np.where(inside[:, None], value, 0.0)

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivatives of the log density."""
        from scipy.special import polygamma

        shape, scale = check_theta(self, theta)
        inside, z = _stretched(x, scale)
        first = np.full_like(z, -float(polygamma(1, shape)))
        return _symmetric(inside, first, np.full_like(z, -1.0 / scale), (shape - 2.0 * z) / scale**2)

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        from scipy.special import gammainc

        shape, scale = check_theta(self, theta)
        return np.asarray(gammainc(shape, np.maximum(np.asarray(x, dtype=np.float64), 0.0) / scale))

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the inverse of the distribution function."""
        from scipy.special import gammaincinv

        shape, scale = check_theta(self, theta)
        return scale * np.asarray(gammaincinv(shape, np.asarray(probability, dtype=np.float64)))

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return mean^2/variance and variance/mean."""
        return np.where(mean > 0.0, np.array([mean**2 / variance, variance / mean]), np.nan)


class Weibull(UnivariateFamily):
    r"""The Weibull family, :math:`P(X > x) = e^{-(x/s)^k}` with shape k and scale s.

    Examples
    --------
    >>> Weibull().cdf([2.0, 1.0], [1.0]).round(4)
    array([0.6321])
    """

    name = "weibull"
    parameters = ("shape", "scale")
    limits = (_POSITIVE, _POSITIVE)
    support = _POSITIVE

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the log density."""
        shape, scale = check_theta(self, theta)
        inside, z = _stretched(x, scale)
        log = np.log(z)
        return np.where(inside, math.log(shape / scale) + (shape - 1.0) * log - _power(log, shape), -math.inf)

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density."""
        shape, scale = check_theta(self, theta)
        inside, z = _stretched(x, scale)
        log = np.log(z)
        power = _power(log, shape)
        value = np.stack([1.0 / shape + log * (1.0 - power), shape / scale * (power - 1.0)], axis=-1)
        return np.where(inside[:, None], value, 0.0)

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivatives of the log density."""
        shape, scale = check_theta(self, theta)
        inside, z = _stretched(x, scale)
        log = np.log(z)
        power = _power(log, shape)
        first = -1.0 / shape**2 - power * log * log
        mixed = (power - 1.0 + shape * power * log) / scale
        return _symmetric(inside, first, mixed, shape * (1.0 - (shape + 1.0) * power) / scale**2)

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        shape, scale = check_theta(self, theta)
        inside, z = _stretched(x, scale)
        return np.where(inside, -np.expm1(-_power(np.log(z), shape)), 0.0)

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the inverse of the distribution function."""
        shape, scale = check_theta(self, theta)
        return scale * (-np.log1p(-np.asarray(probability, dtype=np.float64))) ** (1.0 / shape)

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the shape by the usual power of the coefficient of variation, and the scale by the mean."""
        from scipy.special import gamma

        shape = (np.sqrt(variance) / mean) ** -1.086
        return np.where(mean > 0.0, np.array([shape, mean / gamma(1.0 + 1.0 / shape)]), np.nan)


class Exponential(UnivariateFamily):
    """The exponential family on the positive half-line; its scale is its mean.

    Examples
    --------
    >>> Exponential().pdf([2.0], [0.0, -1.0])
    array([0.5, 0. ])
    """

    name = "exponential"
    parameters = ("scale",)
    limits = (_POSITIVE,)
    support = _POSITIVE

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the log density."""
        (scale,) = check_theta(self, theta)
        points = np.asarray(x, dtype=np.float64)
        return np.where(points >= 0.0, -points / scale - math.log(scale), -math.inf)

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density."""
        (scale,) = check_theta(self, theta)
        points = np.asarray(x, dtype=np.float64)
        return np.where(points >= 0.0, (points / scale - 1.0) / scale, 0.0)[:, None]

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivative of the log density."""
        (scale,) = check_theta(self, theta)
        points = np.asarray(x, dtype=np.float64)
        return np.where(points >= 0.0, (1.0 - 2.0 * points / scale) / scale**2, 0.0)[:, None, None]

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        (scale,) = check_theta(self, theta)
        return -np.expm1(-np.maximum(np.asarray(x, dtype=np.float64), 0.0) / scale)

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the inverse of the distribution function."""
        (scale,) = check_theta(self, theta)
        return -scale * np.log1p(-np.asarray(probability, dtype=np.float64))

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the mean; the variance has no say."""
        return np.where(variance > -math.inf, np.array([mean]), np.nan)


def _stretched(x: ArrayLike, scale: float) -> tuple[NDArray[np.bool_], FloatArray]:
    """Say which points are positive, and return them in units of the scale (1 elsewhere)."""
    points = np.asarray(x, dtype=np.float64)
    inside = points > 0.0
    return inside, np.where(inside, points / scale, 1.0)


def _power(log: FloatArray, shape: float) -> FloatArray:
    """Return z^shape from log z, kept where its products stay finite: the density is 0 long before."""
    return np.exp(np.minimum(shape * log, _LARGEST_EXPONENT))


def _symmetric(inside: NDArray[np.bool_], first: FloatArray, mixed: FloatArray, second: FloatArray) -> FloatArray:
    rows = [np.stack([first, mixed], axis=-1), np.stack([mixed, second], axis=-1)]
    return np.where(inside[:, None, None], np.stack(rows, axis=-2), 0.0)
