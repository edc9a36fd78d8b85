r"""Families for shares (beta), long tails (Lomax), columns with many zeros, and counts (Poisson, negative binomial).

A family with *atoms* gives single values a probability of their own: the zero of a zero-inflated family, every whole
number of a count. There the "density" is taken with respect to length plus a unit mass at each such value, so that
it is that probability at an atom. Fits compare probabilities of cells, which come from the distribution function.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import BoolArray, FloatArray
from fogline._validation import check_bounds
from fogline.families.family import UnivariateFamily, check_theta

__all__ = ["Beta", "Lomax", "NegativeBinomial", "Poisson", "ZeroInflated"]

_POSITIVE = (0.0, math.inf)


class Beta(UnivariateFamily):
    r"""The beta family on a public range, :math:`f(z) \propto z^{a - 1} (1 - z)^{b - 1}`, z the part of it below x.

    Parameters
    ----------
    low, high : float
        The range, public and fixed; 0 to 1 by default.

    Examples
    --------
    >>> Beta().cdf([2.0, 2.0], [0.5])
    array([0.5])
    >>> Beta(0, 100).pdf([2.0, 1.0], [50.0, 120.0])
    array([0.01, 0.  ])
    """

    parameters = ("a", "b")
    limits = (_POSITIVE, _POSITIVE)

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        ((self.low, self.high),) = check_bounds([(low, high)], name="low and high:").tolist()
        self.support = (self.low, self.high)
        self.name = "beta" if self.support == (0.0, 1.0) else f"beta on {self.low:g} to {self.high:g}"

    def _part(self, x: ArrayLike) -> tuple[BoolArray, FloatArray]:
        z = (np.asarray(x, dtype=np.float64) - self.low) / (self.high - self.low)
        inside = (z > 0.0) & (z < 1.0)
        return inside, np.where(inside, z, 0.5)

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the log density."""
        from scipy.special import betaln

        a, b = check_theta(self, theta)
        inside, z = self._part(x)
        constant = float(betaln(a, b)) + math.log(self.high - self.low)
        return np.where(inside, (a - 1.0) * np.log(z) + (b - 1.0) * np.log1p(-z) - constant, -math.inf)

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density."""
        from scipy.special import digamma

        a, b = check_theta(self, theta)
        inside, z = self._part(x)
        both = float(digamma(a + b))
        value = np.stack([np.log(z) - digamma(a) + both, np.log1p(-z) - digamma(b) + both], axis=-1)
        return np.where(inside[:, None], value, 0.0)

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivatives of the log density: the same at every point."""
        from scipy.special import polygamma

        a, b = check_theta(self, theta)
        inside, _ = self._part(x)
        both = float(polygamma(1, a + b))
        matrix = np.array([[both - float(polygamma(1, a)), both], [both, both - float(polygamma(1, b))]])
        return np.where(inside[:, None, None], matrix, 0.0)

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        from scipy.special import betainc

        a, b = check_theta(self, theta)
        z = (np.asarray(x, dtype=np.float64) - self.low) / (self.high - self.low)
        return np.asarray(betainc(a, b, np.clip(z, 0.0, 1.0)))

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the inverse of the distribution function."""
        from scipy.special import betaincinv

        a, b = check_theta(self, theta)
        part: FloatArray = np.asarray(betaincinv(a, b, np.asarray(probability, dtype=np.float64)))
        return np.asarray(self.low + (self.high - self.low) * part)

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the parameters from the mean and the variance, in parts of the range."""
        width = self.high - self.low
        m, v = (mean - self.low) / width, variance / width**2
        total = m * (1.0 - m) / v - 1.0
        return np.where(total > 0.0, np.array([m * total, (1.0 - m) * total]), np.nan)


class Lomax(UnivariateFamily):
    r"""The Lomax family, a Pareto tail that begins at zero: :math:`P(X > x) = (1 + x/s)^{-k}` with shape k and scale s.

    Examples
    --------
    >>> Lomax().cdf([1.0, 2.0], [2.0, -1.0])
    array([0.5, 0. ])
    """

    name = "lomax"
    parameters = ("shape", "scale")
    limits = (_POSITIVE, _POSITIVE)
    support = _POSITIVE

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the log density."""
        shape, scale = check_theta(self, theta)
        inside, z = _from_zero(x, scale)
        return np.where(inside, math.log(shape / scale) - (shape + 1.0) * np.log1p(z), -math.inf)

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density."""
        shape, scale = check_theta(self, theta)
        inside, z = _from_zero(x, scale)
        part = z / (1.0 + z)
        value = np.stack([1.0 / shape - np.log1p(z), ((shape + 1.0) * part - 1.0) / scale], axis=-1)
        return np.where(inside[:, None], value, 0.0)

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivatives of the log density."""
        shape, scale = check_theta(self, theta)
        inside, z = _from_zero(x, scale)
        part = z / (1.0 + z)
        first, mixed = np.full_like(z, -1.0 / shape**2), part / scale
        second = (1.0 - (shape + 1.0) * part * (2.0 - part)) / scale**2
        return _matrix(inside, first, mixed, second)

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        shape, scale = check_theta(self, theta)
        return -np.expm1(-shape * np.log1p(np.maximum(np.asarray(x, dtype=np.float64), 0.0) / scale))

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the inverse of the distribution function."""
        shape, scale = check_theta(self, theta)
        return scale * np.expm1(-np.log1p(-np.asarray(probability, dtype=np.float64)) / shape)

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the parameters where there is a variance, which is above the square of the mean."""
        ratio = variance / mean**2
        shape = 2.0 * ratio / (ratio - 1.0)
        return np.where((ratio > 1.0) & (mean > 0.0), np.array([shape, mean * (shape - 1.0)]), np.nan)


class ZeroInflated(UnivariateFamily):
    """A family on positive numbers with a share of exact zeros beside it.

    Parameters
    ----------
    family : UnivariateFamily
        On positive numbers, without a parameter called `zero`.

    Attributes
    ----------
    has_atoms : bool
        The value 0 has a probability of its own, the parameter `zero`.

    Examples
    --------
    >>> from fogline.families import Gamma
    >>> family = ZeroInflated(Gamma())
    >>> family.parameters
    ('zero', 'shape', 'scale')
    >>> family.cdf([0.25, 1.0, 1.0], [-1.0, 0.0])
    array([0.  , 0.25])
    """

    has_atoms = True

    def __init__(self, family: UnivariateFamily) -> None:
        if family.support[0] < 0.0:
            raise ValueError(f"family must live on positive numbers, got the {family.name} family")
        self.family = family
        self.name = f"zero-inflated {family.name}"
        self.parameters = ("zero", *family.parameters)
        self.limits = ((0.0, 1.0), *family.limits)
        self.support = (-1e-300, family.support[1])

    def _split(self, theta: ArrayLike) -> tuple[float, FloatArray]:
        values = check_theta(self, theta)
        return values[0], np.array(values[1:])

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the log density; at 0 the logarithm of the share of zeros."""
        zero, own = self._split(theta)
        points = np.asarray(x, dtype=np.float64)
        inner = math.log1p(-zero) + self.family.logpdf(own, points)
        return np.where(points == 0.0, math.log(zero), np.where(points > 0.0, inner, -math.inf))

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log density."""
        zero, own = self._split(theta)
        points = np.asarray(x, dtype=np.float64)
        share = np.where(points == 0.0, 1.0 / zero, np.where(points > 0.0, -1.0 / (1.0 - zero), 0.0))
        inner = np.where((points > 0.0)[:, None], self.family.score(own, points), 0.0)
        return np.column_stack([share, inner])

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivatives of the log density."""
        zero, own = self._split(theta)
        points = np.asarray(x, dtype=np.float64)
        m = len(self.parameters)
        result = np.zeros((len(points), m, m))
        share = np.where(points == 0.0, -1.0 / zero**2, np.where(points > 0.0, -1.0 / (1.0 - zero) ** 2, 0.0))
        result[:, 0, 0] = share
        result[:, 1:, 1:] = np.where((points > 0.0)[:, None, None], self.family.log_hessian(own, points), 0.0)
        return result

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function, which steps up at 0."""
        zero, own = self._split(theta)
        points = np.asarray(x, dtype=np.float64)
        return np.where(points >= 0.0, zero + (1.0 - zero) * self.family.cdf(own, points), 0.0)

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the least value with at least this probability below or at it."""
        zero, own = self._split(theta)
        level = (np.asarray(probability, dtype=np.float64) - zero) / (1.0 - zero)
        return np.where(level > 0.0, self.family.quantile(own, np.maximum(level, 1e-300)), 0.0)

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return parameters with these moments and a third of zeros: moments do not tell how many there are."""
        zero = 1.0 / 3.0
        inner = mean / (1.0 - zero)
        spread = (variance + mean**2) / (1.0 - zero) - inner**2
        return np.concatenate([[zero], np.atleast_1d(self.family.from_moments(inner, spread))])


class _Count(UnivariateFamily):
    """A family on whole numbers from 0; a subclass gives the probabilities and their derivatives."""

    has_atoms = True
    support = (-1e-300, math.inf)

    def quantile(self, theta: ArrayLike, probability: ArrayLike) -> FloatArray:
        """Return the least whole number with at least this probability below or at it."""
        levels = np.atleast_1d(np.asarray(probability, dtype=np.float64))
        found = _least_whole(lambda k: self.cdf(theta, k), levels)
        return np.asarray(found.reshape(np.shape(probability)))


class Poisson(_Count):
    """The Poisson family of counts, with its mean `rate`; for whole numbers (``steps=1``).

    Examples
    --------
    >>> Poisson().pdf([2.0], [0.0, 1.0, 1.5]).round(4)
    array([0.1353, 0.2707, 0.    ])
    >>> Poisson().quantile([2.0], [0.5])
    array([2.])
    """

    name = "poisson"
    parameters = ("rate",)
    limits = (_POSITIVE,)

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the logarithm of the probability of whole numbers."""
        from scipy.special import gammaln

        (rate,) = check_theta(self, theta)
        whole, k = _whole(x)
        return np.where(whole, k * math.log(rate) - rate - gammaln(k + 1.0), -math.inf)

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log probability."""
        (rate,) = check_theta(self, theta)
        whole, k = _whole(x)
        return np.where(whole, k / rate - 1.0, 0.0)[:, None]

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivative of the log probability."""
        (rate,) = check_theta(self, theta)
        whole, k = _whole(x)
        return np.where(whole, -k / rate**2, 0.0)[:, None, None]

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        from scipy.special import gammaincc

        (rate,) = check_theta(self, theta)
        points = np.asarray(x, dtype=np.float64)
        return np.where(points >= 0.0, gammaincc(np.floor(np.maximum(points, 0.0)) + 1.0, rate), 0.0)

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the mean; the variance has no say."""
        return np.where((mean > 0.0) & (variance > -math.inf), np.array([mean]), np.nan)


class NegativeBinomial(_Count):
    r"""The negative binomial family of counts, with its `mean` m and `size` k: the variance is :math:`m + m^2/k`.

    Examples
    --------
    >>> NegativeBinomial().pdf([1.0, 1.0], [0.0, 1.0, 2.0])
    array([0.5  , 0.25 , 0.125])
    """

    name = "negative binomial"
    parameters = ("mean", "size")
    limits = (_POSITIVE, _POSITIVE)

    def logpdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the logarithm of the probability of whole numbers."""
        from scipy.special import gammaln

        mean, size = check_theta(self, theta)
        whole, k = _whole(x)
        choose = gammaln(k + size) - gammaln(k + 1.0) - math.lgamma(size)
        value = choose - size * math.log1p(mean / size) - k * math.log1p(size / mean)
        return np.where(whole, value, -math.inf)

    def score(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the gradient of the log probability."""
        from scipy.special import digamma

        mean, size = check_theta(self, theta)
        whole, k = _whole(x)
        both = (k + size) / (mean + size)
        second = digamma(k + size) - digamma(size) - math.log1p(mean / size) + 1.0 - both
        return np.where(whole[:, None], np.stack([k / mean - both, second], axis=-1), 0.0)

    def log_hessian(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the second derivatives of the log probability."""
        from scipy.special import polygamma

        mean, size = check_theta(self, theta)
        whole, k = _whole(x)
        total = mean + size
        both = (k + size) / total**2
        second = polygamma(1, k + size) - polygamma(1, size) + 1.0 / size - 2.0 / total + both
        return _matrix(whole, -k / mean**2 + both, both - 1.0 / total, second)

    def cdf(self, theta: ArrayLike, x: ArrayLike) -> FloatArray:
        """Return the distribution function."""
        from scipy.special import betainc

        mean, size = check_theta(self, theta)
        points = np.asarray(x, dtype=np.float64)
        k = np.floor(np.clip(points, 0.0, 1e300))
        return np.where(points >= 0.0, betainc(size, k + 1.0, size / (size + mean)), 0.0)

    def from_moments(self, mean: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the mean and the size whose variance is given: there is none where it is below the mean."""
        beyond = variance - mean
        return np.where((mean > 0.0) & (beyond > 0.0), np.array([mean, mean**2 / beyond]), np.array([mean, np.nan]))


def _from_zero(x: ArrayLike, scale: float) -> tuple[BoolArray, FloatArray]:
    points = np.asarray(x, dtype=np.float64)
    inside = points >= 0.0
    return inside, np.where(inside, points / scale, 0.0)


def _whole(x: ArrayLike) -> tuple[BoolArray, FloatArray]:
    """Say which points are whole numbers from 0 on, and return them (0 elsewhere)."""
    points = np.asarray(x, dtype=np.float64)
    whole = (points >= 0.0) & (points == np.floor(points)) & np.isfinite(points)
    return whole, np.where(whole, points, 0.0)


def _matrix(inside: BoolArray, first: FloatArray, mixed: FloatArray, second: FloatArray) -> FloatArray:
    rows = [np.stack([first, mixed], axis=-1), np.stack([mixed, second], axis=-1)]
    return np.where(inside[:, None, None], np.stack(rows, axis=-2), 0.0)


def _least_whole(cdf: Callable[[FloatArray], FloatArray], levels: FloatArray) -> FloatArray:
    """Least whole numbers at which a distribution function reaches levels, by doubling and halving."""
    levels = np.minimum(levels, 1.0 - 1e-15)
    high = np.ones(len(levels))
    for _ in range(60):
        short = cdf(high) < levels
        if not short.any():
            break
        high = np.where(short, 2.0 * high, high)
    low = np.full(len(levels), -1.0)
    while np.any(high - low > 1.0):
        middle = np.floor((low + high) / 2.0)
        reached = cdf(middle) >= levels
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high
