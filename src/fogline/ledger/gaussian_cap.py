r"""A cap of epsilon and delta in the Gaussian lane: mu-GDP adds up, and converts by the analytic curve.

A data set whose lane is Gaussian pays for Gaussian noise, charged as :math:`\rho = \mu^2/2` with its total variation
distance to GDP, and for pure epsilon. One hundredth of delta is set aside at creation, for the distances of all
releases to come. What may be spent is fixed by the rest:

.. math:: R + \sum_{i > \tau} \rho(\varepsilon_i) \le \rho_{\max}(\varepsilon - P_0,\ 0.99\,\delta), \qquad
          (1 + e^\varepsilon)\,T \le 0.01\,\delta ,

with :math:`R` the Gaussian amounts, :math:`T` the distances, :math:`P_0` the pure epsilon that was spent before the
first Gaussian release :math:`\tau`, and :math:`\rho(\varepsilon_i)` what a later pure release of :math:`\varepsilon_i`
is in GDP. Proof: ``gaussian_cap.proof.md``, beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from fogline.accounting._rounding import round_down
from fogline.accounting.analytic_gaussian import (
    LEAST_DELTA,
    MOST_EPSILON,
    SLACK_SHARE,
    pure_of,
    rho_of,
    rho_of_pure,
    slack_of,
)
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS, Spending

__all__ = ["LEAST_RELEASES", "GaussianCap", "pure_as_gaussian"]

LEAST_RELEASES = 1000
"""A Gaussian lane must have set aside enough for the distances of this many releases, of one unit each."""


def pure_as_gaussian(units: int) -> int:
    """Return what a pure epsilon, in whole units, is in units of the Gaussian lane, rounded up.

    Examples
    --------
    >>> pure_as_gaussian(UNITS // 10) / UNITS
    0.007851...
    """
    return math.ceil(rho_of_pure(Fraction(units, UNITS)) * UNITS)


@dataclass(frozen=True)
class GaussianCap:
    """A cap of epsilon at delta in the Gaussian lane.

    Parameters
    ----------
    epsilon : float
        Above 0, at most 100.
    delta : float
        At least 1e-200, and large enough for what is set aside.

    Examples
    --------
    >>> cap = GaussianCap(3.0, 1e-6)
    >>> from fogline.ledger.shared_cap import SharedCap
    >>> round(cap.rho_budget(Spending()) / SharedCap(3.0, 1e-6).rho_budget(Spending()), 3)
    1.133
    >>> cap.distance_budget                            # in units of 1e-18: so many releases of one unit each
    474258731
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon <= MOST_EPSILON or self.delta < LEAST_DELTA or self.distance_budget < LEAST_RELEASES:
            raise ValueError(
                'lane "gaussian" needs an epsilon of at most 100 and a delta that is large enough beside it:'
                f" epsilon = {self.epsilon!r} and delta = {self.delta!r} are for lane 'zcdp'"
            )

    @property
    def units(self) -> int:
        """Epsilon in whole units, rounded down."""
        return math.floor(Fraction(repr(self.epsilon)) * UNITS)

    @property
    def converted_delta(self) -> float:
        """The delta at which mu is converted: what is not set aside."""
        return round_down((1 - SLACK_SHARE) * Fraction(self.delta))

    @property
    def distance_budget(self) -> int:
        """The most total variation of all releases, in units of delta."""
        # rounded up for one unit: the sum of all is then never more than was set aside
        each = Fraction(slack_of(self.epsilon, Fraction(1, DELTA_UNITS)))
        return math.floor(SLACK_SHARE * Fraction(self.delta) / each)

    def rho_budget(self, spending: Spending) -> int:
        """Return how much may be spent in the Gaussian lane in all, given the pure epsilon spent before it was used."""
        # epsilon counts as the decimal that it prints as: three of 0.1 are 0.3
        rest = round_down(Fraction(repr(self.epsilon)) - Fraction(spending.pure_before, UNITS))
        return 0 if rest <= 0.0 else _rho_budget(rest, self.converted_delta)

    def pure_budget(self, spending: Spending) -> int:
        """Return how much pure epsilon may be spent in all, given what is spent in the Gaussian lane."""
        if spending.rho == 0:
            return self.units
        left = self.rho_budget(spending) - spending.rho
        return spending.pure + (0 if left <= 0 else _pure_left(left))


@lru_cache(maxsize=1024)
def _rho_budget(epsilon: float, delta: float) -> int:
    return math.floor(Fraction(rho_of(epsilon, delta)) * UNITS)


@lru_cache(maxsize=1024)
def _pure_left(units: int) -> int:
    """Return the largest pure epsilon, in units, that this much of the Gaussian lane pays for."""
    epsilon = math.floor(Fraction(pure_of(units / UNITS)) * UNITS)
    while epsilon > 0 and pure_as_gaussian(epsilon) > units:
        # steps grow with epsilon, so that rounding of large ones is passed in a few
        epsilon -= 1 + epsilon // 10**12
    return epsilon
