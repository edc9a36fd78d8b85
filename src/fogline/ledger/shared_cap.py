r"""One cap of epsilon and delta that two currencies share: pure epsilon, and rho.

A pure release moves the privacy loss by its epsilon at most, whatever comes out. So pure epsilons that were spent
*before* the first rho, :math:`P_0` in all, are simply gone: what is left is a cap of :math:`\varepsilon - P_0`, and all
of it may be spent in rho. From the first rho on both currencies are counted at one Renyi order :math:`\alpha`, the best
one for :math:`\varepsilon - P_0` and delta:

.. math:: \alpha R + (P - P_0) \le \alpha\,\rho_{\max}(\varepsilon - P_0,\ \delta - D) ,

with :math:`R`, :math:`P` and :math:`D` the rho, the pure epsilon and the delta that are spent. What is let in always
satisfies :math:`P + \varepsilon(R, \delta - D) \le \varepsilon`. The converse is not enough: whoever may choose the
order when the answers are known can wait for an unlucky one and only then spend the rest in pure epsilon
(``shared_cap.proof.md``, beside this file, and a test that does it).

With a delta of 0 there is no room for rho at all, and the pure epsilons add up to epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from fogline.accounting._rounding import round_down
from fogline.accounting.costs import RHO_UNITS as UNITS
from fogline.accounting.zcdp import rho_and_order

__all__ = ["DELTA_UNITS", "UNITS", "SharedCap", "Spending"]

DELTA_UNITS = 10**18


@dataclass(frozen=True)
class Spending:
    """What the two currencies have taken of a cap, in whole units.

    Parameters
    ----------
    pure : int
        Pure epsilon in all.
    pure_before : int
        Pure epsilon that was spent when the first rho was; all of it where no rho was spent.
    rho, delta : int
        Of what is accounted in zCDP.
    delta_before : int
        The delta that was spent with the first rho, and before it.

    Examples
    --------
    >>> Spending(pure=5, pure_before=3).pure_since
    2
    """

    pure: int = 0
    pure_before: int = 0
    rho: int = 0
    delta: int = 0
    delta_before: int = 0

    @property
    def pure_since(self) -> int:
        """Pure epsilon that was spent since the first rho was."""
        return self.pure - self.pure_before


@dataclass(frozen=True)
class SharedCap:
    """A cap of epsilon at delta.

    Parameters
    ----------
    epsilon : float
        For pure epsilons it counts as the decimal that it prints as: three of 0.1 are 0.3.
    delta : float
        May be 0.

    Examples
    --------
    >>> cap = SharedCap(1.0, 1e-5)
    >>> cap.pure_budget(Spending()) == UNITS, cap.rho_budget(Spending())
    (True, 30556595197)
    >>> cap.rho_budget(Spending(pure=UNITS // 2, pure_before=UNITS // 2)) == SharedCap(0.5, 1e-5).rho_budget(Spending())
    True
    >>> SharedCap(1.0, 0.0).rho_budget(Spending())
    0
    """

    epsilon: float
    delta: float

    @property
    def units(self) -> int:
        """Epsilon in whole units, rounded down."""
        return math.floor(Fraction(repr(self.epsilon)) * UNITS)

    def rho_budget(self, spending: Spending) -> int:
        """Return how much rho may be spent in all, given the pure epsilon and the delta that are spent."""
        # pure epsilon counts at one order only: a part of rho as large as epsilon over that order
        rho, order = self._largest(spending)
        since = Fraction(spending.pure_since, UNITS)
        return max(0, math.floor((rho - since / order) * UNITS))

    def pure_budget(self, spending: Spending) -> int:
        """Return how much pure epsilon may be spent in all, given the rho and the delta that are spent."""
        if spending.rho == 0:
            return self.units
        rho, order = self._largest(spending)
        left = order * (rho - Fraction(spending.rho, UNITS))
        return max(0, spending.pure_before + math.floor(left * UNITS))

    def _largest(self, spending: Spending) -> tuple[Fraction, Fraction]:
        """Return the largest rho beside what was pure before any, and the order at which it is reached."""
        return _largest(self.epsilon, self.delta, spending.pure_before, spending.delta)


@lru_cache(maxsize=4096)
def _largest(epsilon: float, delta: float, pure_before: int, delta_spent: int) -> tuple[Fraction, Fraction]:
    left = round_down(Fraction(delta) - Fraction(delta_spent, DELTA_UNITS))
    # without pure epsilons the cap counts as ever, to the last bit
    rest = round_down(Fraction(repr(epsilon)) - Fraction(pure_before, UNITS)) if pure_before else epsilon
    if left <= 0.0 or rest <= 0.0:
        return Fraction(0), Fraction(1)
    rho, order = rho_and_order(rest, left)
    return Fraction(rho), Fraction(order)
