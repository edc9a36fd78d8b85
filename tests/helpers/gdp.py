r"""Gaussian differential privacy in floating point: what tests compare certified conversions with.

A mechanism is :math:`\mu`-GDP when telling neighbours apart is at least as hard as telling :math:`N(0, 1)`
from :math:`N(\mu, 1)`. For the *continuous* Gaussian this is exact, and equivalent to a curve of
:math:`(\varepsilon, \delta)` (Balle and Wang 2018; Dong, Roth and Su 2022, Corollary 1):

.. math:: \delta = \Phi\bigl(\tfrac\mu2 - \tfrac\varepsilon\mu\bigr)
          - e^{\varepsilon}\,\Phi\bigl(-\tfrac\mu2 - \tfrac\varepsilon\mu\bigr).

The discrete Gaussian is not exactly GDP (its delta can exceed the continuous one by a few per cent), and nothing here
is rounded in the safe direction: certified statements are made by `fogline.accounting.analytic_gaussian`.

References
----------
Balle and Wang (2018), Improving the Gaussian mechanism for differential privacy.
Dong, Roth and Su (2022), Gaussian differential privacy.
"""

from __future__ import annotations

import math

from fogline._validation import check_delta, check_positive

__all__ = ["delta_of", "epsilon_of", "mu_of", "mu_of_rho", "rho_of_mu"]


def mu_of_rho(rho: float) -> float:
    r"""Return the :math:`\mu = \sqrt{2\rho}` of the continuous Gaussian mechanism that is rho-zCDP.

    Examples
    --------
    >>> mu_of_rho(0.5)
    1.0
    """
    return math.sqrt(2.0 * check_positive(rho, "rho"))


def rho_of_mu(mu: float) -> float:
    r"""Return the :math:`\rho = \mu^2/2` of the continuous Gaussian mechanism that is mu-GDP.

    Examples
    --------
    >>> rho_of_mu(1.0)
    0.5
    """
    return check_positive(mu, "mu") ** 2 / 2.0


def delta_of(mu: float, epsilon: float) -> float:
    """Return the delta of mu-GDP at this epsilon (which may be 0: the total variation distance).

    Examples
    --------
    >>> round(delta_of(1.0, 1.0), 4)
    0.1269
    """
    from scipy.special import log_ndtr

    mu = check_positive(mu, "mu")
    epsilon = 0.0 if epsilon == 0 else check_positive(epsilon, "epsilon")
    first = float(log_ndtr(mu / 2.0 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2.0 - epsilon / mu))
    # exp(first) - exp(second), without the cancellation of two nearly equal numbers.
    return max(0.0, -math.exp(first) * math.expm1(min(0.0, second - first)))


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu for which mu-GDP implies (epsilon, delta)-DP, to about 12 digits.

    Examples
    --------
    >>> round(mu_of(1.0, 1e-5), 3)
    0.268
    """
    epsilon, delta = check_positive(epsilon, "epsilon"), check_delta(delta)
    low, high = 1e-12, 1.0
    while delta_of(high, epsilon) < delta:
        low, high = high, 2.0 * high
    for _ in range(100):  # pragma: no branch - sixty halvings reach the last bit
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
        if high <= low * (1.0 + 1e-13):
            break
    return low


def epsilon_of(mu: float, delta: float) -> float:
    """Return the least epsilon for which mu-GDP implies (epsilon, delta)-DP, to about 12 digits.

    Examples
    --------
    >>> round(epsilon_of(0.268, 1e-5), 2)
    1.0
    """
    mu, delta = check_positive(mu, "mu"), check_delta(delta)
    if delta_of(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_of(mu, high) > delta:
        low, high = high, 2.0 * high
    for _ in range(200):  # pragma: no branch - sixty halvings reach the last bit
        middle = 0.5 * (low + high)
        low, high = (middle, high) if delta_of(mu, middle) > delta else (low, middle)
        if high - low <= 1e-13 * high:
            break
    return high
