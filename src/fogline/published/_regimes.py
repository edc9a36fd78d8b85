r"""Bandwidth regimes of the DP-GRAMS supplement (proof of Theorem 3.3, equations 15 to 18).

The mean squared error of a mode is a bias :math:`h^4`, a sampling variance :math:`\log n / (n h^{d+2})` and a
privacy variance :math:`K / (n^2 \varepsilon^2 h^{2d+2})` with

.. math:: K = T d \cdot 64 \ln(2/\delta) \ln\frac{2.5\, m T}{n \delta}.

Balancing bias against whichever variance is larger gives the two bandwidths

.. math:: h_{\text{non-DP}} = (\log n / n)^{1/(d+6)}, \qquad
          h_{\text{DP}} = (K / n^2\varepsilon^2)^{1/(2d+6)},

and two cut-offs in epsilon between them,

.. math:: \varepsilon_{\text{non}} = \frac{\sqrt K}{n^{3/(d+6)} \log n} \;(17), \qquad
          \varepsilon_{\text{DP}} = \frac{\sqrt K}{n^{3/(d+6)} (\log n)^{(d+3)/(d+6)}} \;(18).

The paper states all four up to constants. Ours are 1, and both bandwidths are multiplied by
``BANDWIDTH_SCALE`` times the data's scale, which the theory leaves open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["BANDWIDTH_SCALE", "Regime", "choose_regime", "privacy_constant"]

BANDWIDTH_SCALE = 0.4


@dataclass(frozen=True)
class Regime:
    """Which term of the error dominates, and the bandwidth that balances it.

    Attributes
    ----------
    name : str
        ``"strong privacy"`` below (17), ``"intermediate"`` between (17) and (18), ``"weak privacy"`` above.
    rate : float
        The optimal bandwidth of that regime, free of units.
    epsilon_non, epsilon_dp : float
        The cut-offs (17) and (18).
    """

    name: str
    rate: float
    epsilon_non: float
    epsilon_dp: float


def privacy_constant(*, n: int, d: int, m: int, n_steps: int, delta: float) -> float:
    """Return the K of the supplement: ``T d * 64 ln(2/delta) ln(2.5 m T / (n delta))``.

    Examples
    --------
    >>> round(privacy_constant(n=1000, d=2, m=145, n_steps=7, delta=1e-5))
    136097
    """
    log_term = math.log(max(2.5 * m * n_steps / (n * delta), math.e))
    return n_steps * d * 64.0 * math.log(2.0 / delta) * log_term


def choose_regime(*, n: int, d: int, m: int, n_steps: int, epsilon: float, delta: float) -> Regime:
    """Compare `epsilon` with the cut-offs (17) and (18) and return the regime with its bandwidth rate.

    In the intermediate window the supplement keeps the non-private bandwidth.

    Examples
    --------
    >>> choose_regime(n=1000, d=2, m=145, n_steps=7, epsilon=1.0, delta=1e-5).name
    'strong privacy'
    >>> choose_regime(n=1000, d=2, m=145, n_steps=7, epsilon=20.0, delta=1e-5).name
    'weak privacy'
    """
    constant = privacy_constant(n=n, d=d, m=m, n_steps=n_steps, delta=delta)
    log_n = math.log(max(n, 3))  # log n must exceed 1 for (17) to lie below (18)
    base = math.sqrt(constant) * n ** (-3.0 / (d + 6.0))
    epsilon_non = base / log_n
    epsilon_dp = base * log_n ** (-(d + 3.0) / (d + 6.0))
    if epsilon < epsilon_non:
        rate = (constant / (n * epsilon) ** 2) ** (1.0 / (2.0 * d + 6.0))
        return Regime("strong privacy", rate, epsilon_non, epsilon_dp)
    rate = (log_n / n) ** (1.0 / (d + 6.0))
    return Regime("intermediate" if epsilon < epsilon_dp else "weak privacy", rate, epsilon_non, epsilon_dp)
