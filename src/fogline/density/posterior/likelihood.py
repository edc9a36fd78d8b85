r"""The law of a released count given its intensity: Poisson sampling noise plus the exactly known privacy noise.

A bucket holds :math:`N \sim \mathrm{Poisson}(\Lambda)` records and is released as :math:`y = N + Z`. For the discrete
Laplace, :math:`P(Z = z) \propto a^{|z|}` with :math:`a = e^{-1/b}`, the sum over N splits at y:

.. math::

    p(y \mid \Lambda) = \frac{1 - a}{1 + a} \Bigl[ \underbrace{a^{y} e^{\Lambda (1/a - 1)}
        P(K_{\Lambda/a} \le y)}_{A} + \underbrace{a^{-y} e^{-\Lambda (1 - a)} P(K_{\Lambda a} > y)}_{B} \Bigr],

with Poisson variables :math:`K`. Where counts are large, the Poisson law is replaced by the normal one of the same
mean and variance, and the sum by an integral (the normal-Laplace law). For Gaussian noise of variance
:math:`\sigma^2` the law is normal with variance :math:`\Lambda + \sigma^2`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln, log_ndtr

from fogline._typing import FloatArray
from fogline.density.leaves import Noise

__all__ = ["CountLaw", "Curvature"]

LEAST_RATIO = 0.02
"""Least a of the exact sum: with less noise than that its terms span too many orders; the law is widened to it."""

MOST_EXACT = 60.0
"""Above this many records in either Poisson variable the normal law is as good."""


@dataclass(frozen=True)
class Curvature:
    """Log-likelihood of each count, its slope in the intensity, and its expected information."""

    log_density: FloatArray
    score: FloatArray
    information: FloatArray


@dataclass(frozen=True)
class CountLaw:
    """The law of released counts for one kind of noise.

    Parameters
    ----------
    noise : Noise
        Of the released counts.

    Examples
    --------
    >>> law = CountLaw(Noise("laplace", 1.0))
    >>> y = np.arange(-60, 200.0)
    >>> total = np.exp(law.log_density(y, np.full(y.shape, 7.0))).sum()
    >>> round(float(total), 6)
    1.0
    """

    noise: Noise

    @property
    def scale(self) -> float:
        """The b of the continuous Laplace law with the variance of the noise."""
        return math.sqrt(self.noise.variance / 2)

    def log_density(self, y: FloatArray, intensity: FloatArray) -> FloatArray:
        """Log-likelihood of released counts for given intensities; arrays that broadcast."""
        return self.curvature(y, intensity).log_density

    def log_noise(self, y: FloatArray) -> FloatArray:
        """Log-likelihood of released counts of buckets that hold no record."""
        if self.noise.kind == "gaussian":
            variance = self.noise.variance
            return np.asarray(-(y**2) / (2 * variance) - 0.5 * math.log(2 * math.pi * variance))
        # Widened only below 0, as in the sum: a positive count is a record, or noise whose law is known exactly.
        log_ratio = np.where(y > 0, -1 / self.noise.scale, math.log(self._ratio))
        return np.asarray(np.abs(y) * log_ratio + np.log1p(-np.exp(log_ratio)) - np.log1p(np.exp(log_ratio)))

    @property
    def _ratio(self) -> float:
        return max(math.exp(-1 / self.noise.scale), LEAST_RATIO)

    def curvature(self, y: FloatArray, intensity: FloatArray) -> Curvature:
        """Log-likelihood, score and information in the intensity."""
        variance = np.maximum(intensity, 1e-3)
        if self.noise.kind == "gaussian":
            total = variance + self.noise.variance
            residual = y - intensity
            log_density = -(residual**2) / (2 * total) - 0.5 * np.log(2 * np.pi * total)
            return Curvature(log_density, residual / total, 1 / total)
        b = self.scale
        log_density, score = _normal_laplace(y, variance, b)
        few = np.maximum(intensity / self._ratio, np.abs(y)) < MOST_EXACT
        if few.any():
            exact_y, exact_intensity = np.broadcast_arrays(y, variance)
            few = np.broadcast_to(few, exact_y.shape)
            log_density, score = (np.broadcast_to(part, few.shape).copy() for part in (log_density, score))
            log_density[few], score[few] = _poisson_laplace(exact_y[few], exact_intensity[few], self._ratio)
        # the information of a normal variable seen through Laplace noise, between its two limits
        information = 1 / (variance + b * b * (b * b + 2 * variance) / (b * b + variance))
        return Curvature(log_density, score, information)


def _normal_laplace(y: FloatArray, variance: FloatArray, b: float) -> tuple[FloatArray, FloatArray]:
    """Log-density and score of Normal(v, v) plus Laplace(b); the variance is held fixed in the score."""
    residual, sd = y - variance, np.sqrt(variance)
    common = variance / (2 * b * b)
    above = common - residual / b + log_ndtr((residual - variance / b) / sd)
    below = common + residual / b + log_ndtr((-residual - variance / b) / sd)
    log_sum = np.logaddexp(above, below)
    return log_sum - math.log(2 * b), np.tanh((above - below) / 2) / b


def _poisson_laplace(y: FloatArray, intensity: FloatArray, ratio: float) -> tuple[FloatArray, FloatArray]:
    """Log-probability and score of Poisson(intensity) plus discrete Laplace noise of the given ratio, exactly."""
    counts = np.maximum(y, 0.0)
    log_ratio = math.log(ratio)
    with np.errstate(divide="ignore"):
        below = y * log_ratio + intensity * (1 / ratio - 1) + np.log(gammaincc(counts + 1, intensity / ratio))
        above = -y * log_ratio - intensity * (1 - ratio) + np.log(gammainc(counts + 1, intensity * ratio))
    none = -y * log_ratio - intensity * (1 - ratio)  # a negative count: every number of records lies above it
    below, above = np.where(y < 0, -np.inf, below), np.where(y < 0, none, above)
    log_sum = np.logaddexp(below, above)
    log_point = np.where(y < 0, -np.inf, -intensity + counts * np.log(intensity) - gammaln(counts + 1))
    point = np.exp(log_point - log_sum)
    score = (1 / ratio - 1) * np.exp(below - log_sum) - (1 - ratio) * np.exp(above - log_sum)
    score = score - (1 / ratio - ratio) * point
    return log_sum + math.log1p(-ratio) - math.log1p(ratio), score
