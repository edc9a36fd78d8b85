r"""Families of one shape, moved and stretched: normal, logistic, Student's t; and the lognormal.

With :math:`z = (x - \mu)/\sigma` and a standard log density :math:`\ell`, whose derivatives are :math:`g = \ell'` and
:math:`g' = \ell''`,

.. math:: \log f = \ell(z) - \log\sigma, \qquad
          u = \frac{-1}{\sigma}\begin{pmatrix} g \\ 1 + zg \end{pmatrix}, \qquad
          \nabla^2\log f = \frac{1}{\sigma^2}\begin{pmatrix} g' & g + zg' \\ g + zg' & 1 + 2zg + z^2g' \end{pmatrix}.

Families on the positive half-line: gamma, Weibull and exponential, each with a scale.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import BoolArray, FloatArray
from fogline._validation import check_positive
from fogline.families.family import UnivariateFamily, check_theta

__all__ = ["Exponential", "Gamma", "Logistic", "Lognormal", "Normal", "StudentT", "Weibull"]

_ANYWHERE = (-math.inf, math.inf)
_POSITIVE = (0.0, math.inf)


class LocationScale(UnivariateFamily):
    """A standard density, moved and stretched; a subclass gives the standard one."""

    parameters: tuple[str, ...] = ("location", "scale")
    limits: tuple[tuple[float, float], ...] = (_ANYWHERE, _POSITIVE)
    support: tuple[float, float] = _ANYWHERE

    @abstractmethod
    def _standard(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the standard log density and its first two derivatives."""

    @abstractmethod
    def _standard_cdf(self, z: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _standard_quantile(self, probability: FloatArray) -> FloatArray: ...

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the log density."""
        location, scale = check_theta(self, theta)
        return self._standard(_z(location, scale, x))[0] - math.log(scale)

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density."""
        location, scale = check_theta(self, theta)
        z = _z(location, scale, x)
        _, g, _ = self._standard(z)
        return np.stack([-g, -1.0 - z * g], axis=-1) / scale

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivatives of the log density."""
        location, scale = check_theta(self, theta)
        z = _z(location, scale, x)
        _, g, bend = self._standard(z)
        mixed = g + z * bend
        rows = [np.stack([bend, mixed], axis=-1), np.stack([mixed, 1.0 + z * (g + mixed)], axis=-1)]
        return np.stack(rows, axis=-2) / scale**2

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        location, scale = check_theta(self, theta)
        return self._standard_cdf(_z(location, scale, x))

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the inverse of the distribution function."""
        location, scale = check_theta(self, theta)
        return location + scale * self._standard_quantile(np.asarray(probability, dtype=np.float64))


class Normal(LocationScale):
    """The normal family, with its mean `mu` and standard deviation `sigma`.

    Examples
    --------
    >>> Normal().pdf([5.0, 2.0], [5.0, 7.0]).round(4)
    array([0.1995, 0.121 ])
    """

    name = "normal"
    parameters = ("mu", "sigma")

    def _standard(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return -0.5 * z * z - 0.5 * math.log(2.0 * math.pi), -z, np.full_like(z, -1.0)

    def _standard_cdf(self, z: FloatArray) -> FloatArray:
        from scipy.special import ndtr

        return np.asarray(ndtr(z))

    def _standard_quantile(self, probability: FloatArray) -> FloatArray:
        from scipy.special import ndtri

        return np.asarray(ndtri(probability))

    def convolved(self, theta: ArrayLike, grid: ArrayLike, bandwidth: ArrayLike) -> FloatArray:
        """Return the smoothed density: normal again, with the squared bandwidth added to the variance."""
        mu, sigma = check_theta(self, theta)
        h = check_positive(float(np.asarray(bandwidth, dtype=np.float64).reshape(-1)[0]), "bandwidth")
        # a normal kernel adds its variance
        return self.pdf([mu, math.hypot(sigma, h)], grid)

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the mean and the root of the variance."""
        return np.array([mean, np.sqrt(variance)])


class Logistic(LocationScale):
    """The logistic family.

    Examples
    --------
    >>> Logistic().cdf([0.0, 1.0], [0.0])
    array([0.5])
    """

    name = "logistic"

    def _standard(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        slope = np.tanh(0.5 * z)
        # by the absolute value: the exponential of a large positive number would overflow
        size = np.abs(z)
        return -size - 2.0 * np.log1p(np.exp(-size)), -slope, -0.5 * (1.0 - slope * slope)

    def _standard_cdf(self, z: FloatArray) -> FloatArray:
        from scipy.special import expit

        return np.asarray(expit(z))

    def _standard_quantile(self, probability: FloatArray) -> FloatArray:
        from scipy.special import logit

        return np.asarray(logit(probability))

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the mean, and the scale whose variance is pi^2/3 times its square."""
        return np.array([mean, np.sqrt(3.0 * variance) / math.pi])


class StudentT(LocationScale):
    """Student's t with given degrees of freedom, with location and scale.

    Parameters
    ----------
    degrees : float
        Degrees of freedom, public and fixed.

    Examples
    --------
    >>> StudentT(1).quantile([0.0, 2.0], [0.75]).round(6)
    array([2.])
    """

    def __init__(self, degrees: float) -> None:
        self.degrees = check_positive(degrees, "degrees")
        self.name = f"t{self.degrees:g}"

    def _standard(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        v = self.degrees
        constant = math.lgamma(0.5 * (v + 1.0)) - math.lgamma(0.5 * v) - 0.5 * math.log(v * math.pi)
        spread = v + z * z
        log_density = constant - 0.5 * (v + 1.0) * np.log1p(z * z / v)
        return log_density, -(v + 1.0) * z / spread, -(v + 1.0) * (v - z * z) / spread**2

    def _standard_cdf(self, z: FloatArray) -> FloatArray:
        from scipy.special import stdtr

        return np.asarray(stdtr(self.degrees, z))

    def _standard_quantile(self, probability: FloatArray) -> FloatArray:
        from scipy.special import stdtrit

        return np.asarray(stdtrit(self.degrees, probability))

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the mean and the scale; up to two degrees of freedom there is no variance to match."""
        v = self.degrees
        # up to two degrees there is no variance to go by
        return np.array([mean, np.sqrt(variance * (v - 2.0) / v) if v > 2.0 else np.nan])


class Lognormal(UnivariateFamily):
    """The lognormal family: the logarithm is normal with mean `mu` and standard deviation `sigma`.

    Examples
    --------
    >>> Lognormal().quantile([0.0, 1.0], [0.5])
    array([1.])
    """

    name = "lognormal"
    parameters = ("mu", "sigma")
    limits = (_ANYWHERE, _POSITIVE)
    support = _POSITIVE
    _normal = Normal()

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the log density."""
        inside, log = _logarithm(x)
        return np.where(inside, self._normal.logpdf(theta, log) - log, -math.inf)

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density."""
        inside, log = _logarithm(x)
        return np.where(inside[:, None], self._normal.score(theta, log), 0.0)

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivatives of the log density."""
        inside, log = _logarithm(x)
        return np.where(inside[:, None, None], self._normal.log_hessian(theta, log), 0.0)

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        inside, log = _logarithm(x)
        return np.where(inside, self._normal.cdf(theta, log), 0.0)

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the inverse of the distribution function."""
        return np.exp(self._normal.quantile(theta, probability))

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the parameters from log(1 + variance/mean^2) and the mean."""
        squared = np.log1p(variance / mean**2)
        return np.array([np.log(mean) - 0.5 * squared, np.sqrt(squared)])


def _z(location: float, scale: float, x: ArrayLike) -> FloatArray:
    return (np.asarray(x, dtype=np.float64) - location) / scale


def _logarithm(x: ArrayLike) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.bool_]], FloatArray]:
    """Say which points are positive, and return their logarithms (0 elsewhere)."""
    points = np.asarray(x, dtype=np.float64)
    inside = points > 0.0
    # 1 in the place of what is outside: finite, and thrown away
    return inside, np.log(np.where(inside, points, 1.0))


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
        # expm1 keeps the digits of small probabilities
        return np.where(inside, -np.expm1(-_power(np.log(z), shape)), 0.0)

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the inverse of the distribution function."""
        shape, scale = check_theta(self, theta)
        return scale * (-np.log1p(-np.asarray(probability, dtype=np.float64))) ** (1.0 / shape)

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the shape by the usual power of the coefficient of variation, and the scale by the mean."""
        from scipy.special import gamma

        # an approximation by the coefficient of variation: where a fit begins, not where it ends
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
        # the variance says nothing new, but a missing one is still missing
        return np.where(variance > -math.inf, np.array([mean]), np.nan)


def _stretched(x: ArrayLike, scale: float) -> tuple[BoolArray, FloatArray]:
    """Say which points are positive, and return them in units of the scale (1 elsewhere)."""
    points = np.asarray(x, dtype=np.float64)
    inside = points > 0.0
    return inside, np.where(inside, points / scale, 1.0)


def _power(log: FloatArray, shape: float) -> FloatArray:
    """Return z^shape from log z, kept where its products stay finite: the density is 0 long before."""
    return np.exp(np.minimum(shape * log, _LARGEST_EXPONENT))


def _symmetric(inside: BoolArray, first: FloatArray, mixed: FloatArray, second: FloatArray) -> FloatArray:
    rows = [np.stack([first, mixed], axis=-1), np.stack([mixed, second], axis=-1)]
    return np.where(inside[:, None, None], np.stack(rows, axis=-2), 0.0)
