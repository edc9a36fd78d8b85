r"""The analytic Gaussian curve, certified for noise on a lattice.

A mechanism is :math:`\mu`-GDP when telling neighbours apart by it is at least as hard as telling :math:`N(0, 1)` from
:math:`N(\mu, 1)`. It is then :math:`(\varepsilon, \delta)`-DP for every :math:`\varepsilon` at (Balle and Wang 2018)

.. math:: \delta_\mu(\varepsilon) = \Phi\bigl(\tfrac\mu2 - \tfrac\varepsilon\mu\bigr)
          - e^{\varepsilon}\,\Phi\bigl(-\tfrac\mu2 - \tfrac\varepsilon\mu\bigr),

and no conversion of zCDP is as good. The discrete Gaussian of scale :math:`s` is not exactly GDP, but its total
variation distance to a *rounded* Gaussian of variance :math:`s^2 - 1/12`, which is, falls as :math:`s^{-4}`. What is
within a distance :math:`\tau` of :math:`\mu`-GDP is :math:`(\varepsilon, \delta_\mu(\varepsilon) + (1 + e^\varepsilon)
\tau)`-DP. All of it is proved in ``analytic_gaussian.proof.md``, beside this file.

Everything is measured by :math:`\rho = \mu^2/2`, which adds up under fully adaptive composition and is, for Gaussian
noise, the rho of zCDP. What is returned is rounded in the safe direction: the curve is evaluated in intervals of
decimals (`_rounding.Interval`), the distance in rational numbers.

References
----------
Balle and Wang (2018), Improving the Gaussian mechanism for differential privacy.
Dong, Roth and Su (2022), Gaussian differential privacy.
Smith and Thakurta (2022), Fully adaptive composition for Gaussian differential privacy.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from fogline._validation import check_delta, check_epsilon, check_positive
from fogline.accounting._rounding import Interval, normal_tail, round_up

__all__ = [
    "LEAST_DELTA",
    "LEAST_SCALE",
    "MOST_EPSILON",
    "SLACK_SHARE",
    "UNIT_DISTANCE",
    "delta_of",
    "epsilon_of",
    "pure_of",
    "rho_of",
    "rho_of_pure",
    "rounding_distance",
    "slack_of",
    "suits",
]

MOST_EPSILON = 100.0
LEAST_DELTA = 1e-200
"""Beyond these the curve is not evaluated, and zCDP is the currency."""

LEAST_SCALE = 2.0**20
"""Least scale of noise, in lattice steps, that is certified by this curve: each coordinate is then within 5e-28."""

_NORMAL = NormalDist()

UNIT_DISTANCE = Fraction(1, 10**18)
"""Total variation that one release may be away from GDP in all: a unit in which ledgers count delta."""

SLACK_SHARE = Fraction(1, 100)
"""Most of delta that total variation may take; where it would take more, zCDP is the currency."""


def rounding_distance(scale: float) -> Fraction:
    r"""Return a bound of the total variation between discrete and rounded Gaussian noise, for one coordinate.

    The discrete Gaussian of scale :math:`s`, in steps of the lattice, is compared with a Gaussian of variance
    :math:`v = s^2 - 1/12` that is rounded to the nearest whole number. The bound is

    .. math:: \frac12\Bigl[\frac1{2880}\Bigl(\frac{2.81}{v^2} + \frac{2.96}{v^{5/2}}\Bigr) + 4 \cdot 2^{-28 s^2}\Bigr] .

    Parameters
    ----------
    scale : float
        At least 1.

    Examples
    --------
    >>> float(rounding_distance(4.0)) < 2.5e-6, float(rounding_distance(2.0**20)) < 5e-28
    (True, True)
    """
    exact = Fraction(scale)
    if exact < 1:
        raise ValueError(f"scale must be at least 1, got {scale!r}")
    variance = exact**2 - Fraction(1, 12)
    root = Fraction(math.isqrt(math.floor(variance * 4**20)), 2**20)  # not above the square root
    # the exponent of the periodic part is capped to keep it short: a larger bound is still a bound
    smooth = (Fraction(281, 100) + Fraction(296, 100) / root) / (2880 * variance**2)
    periodic = Fraction(4, 2 ** min(4000, math.floor(28 * exact**2)))
    return (smooth + periodic) / 2


def slack_of(epsilon: float, distance: Fraction = UNIT_DISTANCE) -> float:
    """Return what a total variation distance adds to delta: (1 + e^epsilon) times as much, rounded up.

    Examples
    --------
    >>> 3.7e-18 < slack_of(1.0) < 3.8e-18
    True
    """
    return ((Interval.of(1) + Interval.of(epsilon).exp()) * Interval.of(distance)).above()


def suits(epsilon: float, delta: float) -> bool:
    """Say whether the curve is the currency of a release of (epsilon, delta): what it sets aside is at most 1% of it.

    Examples
    --------
    >>> suits(1.0, 1e-6), suits(30.0, 1e-6), suits(1.0, 1e-17)
    (True, False, False)
    """
    if not epsilon <= MOST_EPSILON or delta < LEAST_DELTA:
        return False
    return Fraction(slack_of(epsilon)) <= SLACK_SHARE * Fraction(delta)


def delta_of(rho: float, epsilon: float) -> float:
    r"""Return the delta of :math:`\sqrt{2\rho}`-GDP at epsilon, which may be 0: the least one, rounded up.

    Examples
    --------
    >>> 0.12693 < delta_of(0.5, 1.0) < 0.12694
    True
    """
    check_positive(rho, "rho")
    if epsilon != 0.0:
        _check_range(epsilon)
    mu = Interval.of(2 * Fraction(rho)).sqrt()
    mu = Interval(mu.high, mu.high)  # the curve increases with mu
    half, part = mu * Interval.of(Fraction(1, 2)), Interval.of(epsilon) / mu
    found = normal_tail(part - half) - Interval.of(epsilon).exp() * normal_tail(part + half)
    return min(1.0, max(0.0, found.above()))


@lru_cache(maxsize=1024)
def rho_of(epsilon: float, delta: float) -> float:
    r"""Return the largest :math:`\rho = \mu^2/2` at which :math:`\mu`-GDP is (epsilon, delta)-DP, rounded down.

    Examples
    --------
    >>> round((2 * rho_of(1.0, 1e-5)) ** -0.5, 4)      # the multiplier: noise per unit of sensitivity
    3.7306
    >>> delta_of(rho_of(1.0, 1e-5), 1.0) <= 1e-5
    True
    """
    _check_range(check_epsilon(epsilon))
    _check_least(check_delta(delta))
    # delta grows with rho: widen until it is passed, then halve in the logarithm
    low, high = 1e-300, 1.0
    while _about(high, epsilon) < delta:
        low, high = high, 4.0 * high
    while high > low * (1.0 + 1e-14):
        # not sqrt(low * high): the product may be below the least float
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if _about(middle, epsilon) <= delta else (low, middle)
    # the search is in floats, the promise is not: step down until the certified curve agrees
    margin, rho = 1e-14, low
    while delta_of(rho, epsilon) > delta:
        rho, margin = low * (1.0 - margin), 4.0 * margin
    return rho


@lru_cache(maxsize=1024)
def epsilon_of(rho: float, delta: float) -> float:
    r"""Return the least epsilon at which :math:`\sqrt{2\rho}`-GDP is (epsilon, delta)-DP, rounded up.

    Examples
    --------
    >>> round(epsilon_of(rho_of(1.0, 1e-5), 1e-5), 9)
    1.0
    """
    check_positive(rho, "rho")
    _check_least(check_delta(delta))
    if delta_of(rho, 0.0) <= delta:
        return 0.0
    low, high = 0.0, MOST_EPSILON
    if _about(rho, high) > delta:
        raise ValueError(f"epsilon: more than {MOST_EPSILON:g} at delta = {delta!r} for rho = {rho!r}")
    while high - low > 1e-14 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if _about(rho, middle) > delta else (low, middle)
    # as in rho_of: the certified curve has the last word
    margin, epsilon = 1e-15, high
    while delta_of(rho, epsilon) > delta:
        epsilon, margin = high * (1.0 + margin), 4.0 * margin
    return epsilon


def pure_of(rho: float) -> float:
    r"""Return the largest pure epsilon that is :math:`\sqrt{2\rho}`-GDP: the logit of :math:`\Phi(\mu/2)`, or less.

    Examples
    --------
    >>> round(pure_of(0.5), 4)
    0.807
    """
    mu = Interval.of(2 * Fraction(check_positive(rho, "rho"))).sqrt()
    tail = normal_tail(mu * Interval.of(Fraction(1, 2)))
    return max(0.0, ((Interval.of(1) - tail) / tail).ln().below())


@lru_cache(maxsize=1024)
def rho_of_pure(epsilon: Fraction) -> Fraction:
    r"""Return a :math:`\rho` such that every epsilon-DP mechanism is :math:`\sqrt{2\rho}`-GDP, rounded up.

    Examples
    --------
    >>> round(float(rho_of_pure(Fraction(1))), 4), round(float(rho_of_pure(Fraction(1, 100))) * 1e4, 3)
    (0.759, 0.785)
    """
    if epsilon <= 0:
        raise ValueError(f"epsilon must be greater than 0, got {epsilon!r}")
    _check_range(round_up(epsilon))
    # for a tiny epsilon the quantile is 0 in floats: any positive start will do
    about = 2.0 * _NORMAL.inv_cdf(1.0 / (1.0 + math.exp(epsilon))) ** 2 or float(epsilon) ** 2
    margin, rho = 1e-14, about
    while Fraction(pure_of(rho)) < epsilon:
        rho, margin = about * (1.0 + margin), 4.0 * margin
    return Fraction(rho)


def _about(rho: float, epsilon: float) -> float:
    """Return the curve in floats: where to look, never what is promised."""
    mu = math.sqrt(2.0 * rho)
    first = math.erfc((epsilon / mu - mu / 2.0) / math.sqrt(2.0))
    return (first - math.exp(epsilon) * math.erfc((epsilon / mu + mu / 2.0) / math.sqrt(2.0))) / 2.0


def _check_range(epsilon: float) -> None:
    if not 0.0 < epsilon <= MOST_EPSILON:
        raise ValueError(
            f"epsilon must be above 0 and at most {MOST_EPSILON:g} for the Gaussian curve, got {epsilon!r}"
        )


def _check_least(delta: float) -> None:
    if delta < LEAST_DELTA:
        raise ValueError(f"delta must be at least {LEAST_DELTA:g} for the Gaussian curve, got {delta!r}")
