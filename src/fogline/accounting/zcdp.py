r"""Zero-concentrated differential privacy and what it says in epsilon and delta.

A mechanism is :math:`\rho`-zCDP when its Renyi divergence of every order :math:`\alpha > 1` between
neighbours is at most :math:`\alpha\rho`. Each order gives a valid statement (Canonne, Kamath and Steinke
2020, Prop. 12):

.. math:: \delta = \frac{e^{(\alpha - 1)(\alpha\rho - \varepsilon)}}{\alpha - 1}
          \Bigl(1 - \frac1\alpha\Bigr)^{\alpha}

and the best order the strongest one. With :math:`t = \alpha - 1` and :math:`L = \log(1/\delta)`, taking
logarithms and solving for :math:`\varepsilon` gives

.. math:: \varepsilon(t) = (t + 1)\rho - \log(1 + 1/t) + \frac{L - \log(1 + t)}{t},

whose minimum is the only root of :math:`\rho t^2 + \log(1 + t) = L`. All three conversions below are that one
curve read in three directions. Since *every* order is valid, an error in locating the best one costs
sharpness and never safety: only the rounding of the final evaluation matters, and it is bounded by a
multiple of the sum of the magnitudes of its terms and charged in the safe direction.

References
----------
Bun and Steinke (2016), Concentrated differential privacy: simplifications, extensions, and lower bounds.
Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from fogline._validation import check_delta, check_positive

__all__ = ["delta_of", "epsilon_of", "rho_and_order", "rho_of"]

# An expression of at most a dozen operations on terms of total magnitude m is off by less than 16 m units of
# rounding (libm's logarithms included, each good to one unit in the last place).
_SLACK = 16 * 2.0**-53
_LARGEST_ORDER = 1e300


def epsilon_of(rho: float, delta: float) -> float:
    """Return an epsilon such that rho-zCDP implies (epsilon, delta)-DP: the least one, rounded up.

    Parameters
    ----------
    rho : float
        Not negative.
    delta : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> round(epsilon_of(0.5, 1e-6), 4)
    5.2215
    >>> epsilon_of(0.0, 1e-6)
    0.0
    """
    rho, delta = _check_rho(rho), check_delta(delta)
    if rho == 0.0:
        return 0.0
    log_inverse = -math.log(delta)
    order = _root(
        lambda t: rho * t * t + math.log1p(t) - log_inverse,
        low=min(1.0, math.sqrt(log_inverse / rho)) * 1e-3,
        # log(1 + t) alone reaches L there; 690 keeps exp finite
        high=math.expm1(min(log_inverse, 690.0)),
    )
    terms = ((order + 1.0) * rho, -math.log1p(1.0 / order), log_inverse / order, -math.log1p(order) / order)
    epsilon = math.fsum(terms) + _SLACK * math.fsum(map(abs, terms))
    return max(0.0, epsilon)


def delta_of(rho: float, epsilon: float) -> float:
    """Return a delta such that rho-zCDP implies (epsilon, delta)-DP: the least one, rounded up.

    Parameters
    ----------
    rho : float
        Not negative.
    epsilon : float
        Positive.

    Examples
    --------
    >>> 1.8e-6 < delta_of(0.5, 5.1) < 1.81e-6
    True
    """
    rho, epsilon = _check_rho(rho), check_positive(epsilon, "epsilon")
    if rho == 0.0:
        return 0.0
    # where the derivative of the exponent in t is 0
    order = _root(lambda t: (2.0 * t + 1.0) * rho - epsilon - math.log1p(1.0 / t), low=1.0, high=1.0)
    terms = (
        order * (order + 1.0) * rho,
        -order * epsilon,
        -order * math.log1p(1.0 / order),
        -math.log1p(order),
    )
    exponent = math.fsum(terms) + _SLACK * math.fsum(map(abs, terms))
    # the bound exceeds 1 and says nothing
    if exponent >= 0.0:
        return 1.0
    # exp is good to one unit in the last place; a result below the least float is rounded up to it.
    return min(1.0, math.nextafter(math.exp(exponent), math.inf))


def rho_of(epsilon: float, delta: float) -> float:
    r"""Return the largest rho whose optimal conversion stays within (epsilon, delta), rounded down.

    At the largest rho the best order satisfies :math:`\rho = (L - \log(1 + t))/t^2`; put into
    :math:`\varepsilon(t)` this leaves one decreasing function of the order alone,

    .. math:: \varepsilon = (L - \log(1 + t))\,\frac{2t + 1}{t^2} - \log(1 + 1/t).

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> rho = rho_of(1.0, 1e-5)
    >>> round((2 * rho) ** 0.5, 3)
    0.247
    >>> epsilon_of(rho, 1e-5) <= 1.0
    True
    """
    return rho_and_order(epsilon, delta)[0]


def rho_and_order(epsilon: float, delta: float) -> tuple[float, float]:
    r"""Return what `rho_of` returns, and the Renyi order :math:`\alpha` at which it is reached.

    At this one order, :math:`\alpha\rho` plus what the conversion itself takes is at most epsilon. So a mechanism of
    less rho leaves :math:`\alpha` times the difference to others, whose divergence of that order adds up.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> rho, order = rho_and_order(1.0, 1e-5)
    >>> rho == rho_of(1.0, 1e-5), round(order, 2)
    (True, 17.81)
    """
    epsilon, delta = check_positive(epsilon, "epsilon"), check_delta(delta)
    log_inverse = -math.log(delta)
    highest = math.expm1(min(log_inverse, 690.0))
    order = _root(
        lambda t: epsilon + math.log1p(1.0 / t) - (log_inverse - math.log1p(t)) * (2.0 * t + 1.0) / t / t,
        low=min(1.0, highest) * 0.5,
        high=highest,
    )
    if order < 1.0:  # so that the order that is returned, less 1, is the one that the terms are evaluated at
        order = max((order + 1.0) - 1.0, 2.0**-52)
    terms = (epsilon, math.log1p(1.0 / order), -log_inverse / order, math.log1p(order) / order)
    margin = 2.0 * _SLACK * math.fsum(map(abs, terms))
    rho = max(0.0, (math.fsum(terms) - margin) / (order + 1.0))
    # The contract is with `epsilon_of`, whatever either rounds: step down until the round trip holds.
    while rho > 0.0 and epsilon_of(rho, delta) > epsilon:
        margin *= 2.0
        rho = max(0.0, (math.fsum(terms) - margin) / (order + 1.0))
    return rho, order + 1.0


def _check_rho(rho: float) -> float:
    return 0.0 if rho == 0 and not isinstance(rho, bool) else check_positive(rho, "rho")


def _root(increasing: Callable[[float], float], *, low: float, high: float) -> float:
    """Return a point near the only root of an increasing function on the positive axis.

    Widens the bracket as needed, then halves it in the logarithm. How near matters only for sharpness.
    """
    while low > 1e-300 and increasing(low) > 0.0:
        high, low = low, low * 0.125
    while high < _LARGEST_ORDER and increasing(high) < 0.0:
        low, high = high, high * 8.0
    for _ in range(200):  # pragma: no branch - sixty halvings reach the last bit
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        if increasing(middle) > 0.0:
            high = middle
        else:
            low = middle
        if high <= low * (1.0 + 1e-12):
            break
    return high
