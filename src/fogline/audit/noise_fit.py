r"""Is the noise what it claims to be? Goodness of fit of integer draws against the exact law.

Two tests, because they see different faults. Chi-square over bins of about equal probability sees the shape
(a wrong law, a hole, a lump, a shift). The second moment, standardised by its exact variance,

.. math:: \frac{\overline{z^2} - v}{\sqrt{(m_4 - v^2)/N}}, \qquad v = E z^2,\; m_4 = E z^4,

is the sharpest for the fault that matters most, a scale that is a little too small: 7000 draws show 5%.

The distribution function of the discrete Laplace is closed. That of the discrete Gaussian is summed up to a
scale of 4096; above, :math:`\Phi((k + 1/2)/\sigma)` is within :math:`1/(24\sigma^2) < 3\cdot10^{-9}` of it
(the error of the midpoint rule; the normalising sum is off by :math:`e^{-2\pi^2\sigma^2}`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtr, ndtri

from fogline._typing import FloatArray
from fogline._validation import check_positive

__all__ = ["NoiseFit", "noise_fit"]

Law = Literal["gaussian", "laplace"]


@dataclass(frozen=True)
class FitTuning:
    """How draws are put into bins.

    Parameters
    ----------
    widest_sum : float
        Scale up to which probabilities are summed one by one; beyond, the continuous law is as good.
    most_bins : int
        Most bins of a test.
    least_expected : int
        Fewest draws that a bin must expect, for the chi-square law to hold.
    """

    widest_sum: float = 4096.0
    most_bins: int = 60
    least_expected: int = 25


TUNING = FitTuning()


@dataclass(frozen=True)
class NoiseFit:
    """How well draws fit a law.

    Attributes
    ----------
    law : str
    scale : float
        As claimed.
    size : int
        Number of draws.
    p_value : float
        Chance of a fit this bad, over both tests, if the claim is true.
    shape_p_value, variance_p_value : float
        Of chi-square and of the second moment alone.
    variance_ratio : float
        Second moment of the draws over that of the law. Below 1 there is too little noise.
    """

    law: str
    scale: float
    size: int
    p_value: float
    shape_p_value: float
    variance_p_value: float
    variance_ratio: float

    def passed(self, level: float = 1e-6) -> bool:
        """Whether the claim survives at a level: the rate of false alarms."""
        return self.p_value > level

    def __str__(self) -> str:
        return (
            f"{self.size} draws against the discrete {self.law} law of scale {self.scale:.6g}: "
            f"p = {self.p_value:.3g}, variance {self.variance_ratio:.4f} of what it should be"
        )


def noise_fit(draws: ArrayLike, *, law: str = "gaussian", scale: float) -> NoiseFit:
    """Test integer draws against the discrete Gaussian or Laplace law of a scale.

    Parameters
    ----------
    draws : array-like of int
        At least 50.
    law : {"gaussian", "laplace"}
        P(z) proportional to exp(-z^2 / (2 scale^2)), or to exp(-|z| / scale).
    scale : float

    Returns
    -------
    NoiseFit

    Examples
    --------
    >>> from fogline.testing import SeededSource
    >>> draws = SeededSource(np.random.default_rng(0)).gaussian(4.0, 5000)
    >>> noise_fit(draws, scale=4.0).passed()
    True
    >>> noise_fit(draws, scale=5.0).passed()
    False
    """
    values = np.asarray(draws)
    if values.dtype.kind not in "iu":
        raise TypeError(f"draws must be integers, got type {values.dtype}")
    if values.size < 2 * TUNING.least_expected:
        raise ValueError(f"draws must be at least {2 * TUNING.least_expected}, got {values.size}")
    scale, kind = check_positive(scale, "scale"), _check_law(law)
    z = values.ravel().astype(np.float64)
    shape = _shape_p_value(z, kind, scale)
    second, fourth = _moments(kind, scale)
    ratio = float(np.mean((z / math.sqrt(second)) ** 2))
    deviation = (ratio - 1.0) / math.sqrt((fourth / second**2 - 1.0) / len(z))
    variance = 2.0 * float(ndtr(-abs(deviation)))
    combined = min(1.0, 2.0 * min(shape, variance))
    return NoiseFit(kind, scale, len(z), combined, shape, variance, ratio)


def _check_law(law: str) -> Law:
    if law == "gaussian":
        return "gaussian"
    if law == "laplace":
        return "laplace"
    raise ValueError(f'law must be "gaussian" or "laplace", got {law!r}')


def _shape_p_value(z: FloatArray, law: Law, scale: float) -> float:
    edges = _edges(
        law, scale, max(2, min(TUNING.most_bins, len(z) // TUNING.least_expected)), TUNING.least_expected / len(z)
    )
    if not len(edges):
        return 1.0
    mass = np.diff(np.concatenate([[0.0], _distribution(law, scale, edges), [1.0]]))
    observed = np.bincount(np.searchsorted(edges, z), minlength=len(mass))
    statistic = float(np.sum((observed - len(z) * mass) ** 2 / (len(z) * mass)))
    return float(chdtrc(len(mass) - 1, statistic))


def _edges(law: Law, scale: float, bins: int, least: float) -> FloatArray:
    """Upper ends of all bins but the last: integers near the quantiles, with enough mass between them."""
    levels = np.arange(1, bins) / bins
    laplace = np.sign(levels - 0.5) * -np.log(2 * np.minimum(levels, 1 - levels))
    candidates = np.unique(np.round(scale * (ndtri(levels) if law == "gaussian" else laplace)))
    kept: list[float] = []
    reached = 0.0
    for edge, below in zip(candidates, _distribution(law, scale, candidates), strict=True):
        if below - reached >= least and 1.0 - below >= least:
            kept.append(float(edge))
            reached = float(below)
    return np.array(kept)


def _distribution(law: Law, scale: float, k: FloatArray) -> FloatArray:
    """P(z <= k) at integers k."""
    if law == "laplace":
        a = math.exp(-1.0 / scale)
        return np.where(k >= 0, 1.0 - a ** (np.abs(k) + 1) / (1 + a), a ** np.abs(k) / (1 + a))
    if scale > TUNING.widest_sum:
        return np.asarray(ndtr((k + 0.5) / scale))
    support, mass = _gaussian_masses(scale)
    below = np.cumsum(mass)
    return np.asarray(below[np.clip(k - support[0], 0, len(support) - 1).astype(np.int64)])


def _gaussian_masses(scale: float) -> tuple[FloatArray, FloatArray]:
    reach = math.ceil(12.0 * scale) + 1
    support = np.arange(-reach, reach + 1, dtype=np.float64)
    weight = np.exp(-0.5 * (support / scale) ** 2)
    return support, weight / weight.sum()


def _moments(law: Law, scale: float) -> tuple[Any, Any]:
    """Second and fourth moments of the law."""
    if law == "laplace":
        a, rest = math.exp(-1.0 / scale), -math.expm1(-1.0 / scale)
        return 2 * a / rest**2, 2 * a * (1 + 10 * a + a * a) / rest**4
    if scale > TUNING.widest_sum:
        return scale**2, 3 * scale**4
    support, mass = _gaussian_masses(scale)
    return float(mass @ support**2), float(mass @ support**4)
