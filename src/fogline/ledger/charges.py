r"""What is charged, in whole units, and what a cap allows.

Three currencies that are never exchanged:

- ``zcdp``: rho, and the delta of approximate zCDP beside it. A cap (epsilon, delta) allows the largest rho whose
  optimal conversion at ``delta - (deltas spent)`` stays within epsilon: an amount of rho that shrinks as deltas are
  spent. The sum of rho is a valid filter under fully adaptive composition.
- ``approximate``: (epsilon, delta) of mechanisms that have nothing better, added up by basic composition.
- ``integral``: the epsilon of integral privacy, a sum over draws.

A unit is :math:`10^{-12}` of rho or epsilon and :math:`10^{-18}` of delta. Costs round up to units, caps down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

from fogline._validation import check_count, check_delta, check_epsilon, check_positive
from fogline.accounting import Cost
from fogline.accounting._rounding import round_down
from fogline.accounting.costs import RHO_UNITS as UNITS
from fogline.accounting.zcdp import rho_of

__all__ = [
    "CURRENCIES",
    "DELTA_UNITS",
    "UNITS",
    "AnyCost",
    "ApproximateCost",
    "Caps",
    "Charge",
    "Currency",
    "IntegralCost",
]

Currency = Literal["zcdp", "approximate", "integral"]
CURRENCIES: tuple[Currency, ...] = get_args(Currency)

DELTA_UNITS = 10**18
_MOST = 2**62
"""SQLite counts in 64 bits; sums stay below by a factor of two."""


@dataclass(frozen=True)
class ApproximateCost:
    """The price of a mechanism that is only known to be (epsilon, delta)-DP.

    Examples
    --------
    >>> ApproximateCost(0.5, 1e-7)
    ApproximateCost(epsilon=0.5, delta=1e-07)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.delta != 0.0:
            check_delta(self.delta)


@dataclass(frozen=True)
class IntegralCost:
    """The price of draws from an integrally private model: epsilon a draw.

    Examples
    --------
    >>> IntegralCost(0.1, draws=20).draws
    20
    """

    epsilon: float
    draws: int = 1

    def __post_init__(self) -> None:
        check_positive(self.epsilon, "epsilon")
        check_count(self.draws, "draws")


AnyCost = Cost | ApproximateCost | IntegralCost


@dataclass(frozen=True)
class Charge:
    """A cost in whole units of its currency, rounded up.

    Examples
    --------
    >>> Charge.of(Cost(rho=1e-13, delta=1e-6))
    Charge(currency='zcdp', amount=1, delta=1000000000000)
    >>> Charge.of(IntegralCost(0.25, draws=4)).amount == UNITS
    True
    """

    currency: Currency
    amount: int
    delta: int = 0

    @classmethod
    def of(cls, cost: AnyCost) -> Charge:
        """Return what `cost` comes to; refuse what is not a cost, and what costs nothing."""
        if isinstance(cost, Cost):
            charge = cls("zcdp", _up(Fraction(cost.rho), UNITS), _up(Fraction(cost.delta), DELTA_UNITS))
        elif isinstance(cost, ApproximateCost):
            charge = cls("approximate", _up(Fraction(cost.epsilon), UNITS), _up(Fraction(cost.delta), DELTA_UNITS))
        elif isinstance(cost, IntegralCost):
            charge = cls("integral", _up(Fraction(cost.epsilon) * cost.draws, UNITS))
        else:
            raise TypeError(f"cost must be a Cost, ApproximateCost or IntegralCost, got {type(cost).__name__}")
        if charge.amount == 0 and charge.delta == 0:
            raise ValueError("cost must be greater than 0: no release of data is free")
        if charge.amount >= _MOST:
            raise ValueError("cost is larger than any budget can be")
        return charge


@dataclass(frozen=True)
class Caps:
    """The most that may be spent, a limit for each currency; a currency without a limit cannot be spent.

    Parameters
    ----------
    epsilon, delta : float, optional
        For everything accounted in zCDP together.
    approximate : (epsilon, delta), optional
        For mechanisms known only by epsilon and delta; delta may be 0.
    integral : float, optional
        Epsilon, for integrally private draws.

    Examples
    --------
    >>> caps = Caps(epsilon=1.0, delta=1e-5)
    >>> amount, delta = caps.budget("zcdp", delta_spent=0)
    >>> amount
    30556595197
    >>> caps.budget("zcdp", delta_spent=delta // 2)[0] < amount
    True
    >>> caps.budget("integral", delta_spent=0) is None
    True
    """

    epsilon: float | None = None
    delta: float | None = None
    approximate: tuple[float, float] | None = None
    integral: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise TypeError("a cap needs both epsilon and delta")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
            object.__setattr__(self, "delta", check_delta(self.delta))
        if self.approximate is not None:
            object.__setattr__(self, "approximate", _pair(self.approximate))
        if self.integral is not None:
            object.__setattr__(self, "integral", check_positive(self.integral, "integral"))
        for currency in CURRENCIES:
            budget = self.budget(currency, 0)
            if budget is not None and not 0 < budget[0] < _MOST:
                size = "small" if budget[0] <= 0 else "large"
                raise ValueError(f"the cap of currency {currency!r} is too {size} to be counted")

    def budget(self, currency: Currency, delta_spent: int) -> tuple[int, int] | None:
        """Return how much may be spent in all, and how much delta, in units; None where there is no cap."""
        if currency == "zcdp" and self.epsilon is not None and self.delta is not None:
            return _zcdp_budget(self.epsilon, self.delta, delta_spent)
        if currency == "approximate" and self.approximate is not None:
            epsilon, delta = self.approximate
            return _down(Fraction(epsilon), UNITS), _down(Fraction(delta), DELTA_UNITS)
        if currency == "integral" and self.integral is not None:
            return _down(Fraction(self.integral), UNITS), 0
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the caps in terms of JSON.

        Examples
        --------
        >>> Caps(integral=2.0).to_dict()["integral"]
        2.0
        """
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "approximate": None if self.approximate is None else list(self.approximate),
            "integral": self.integral,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Caps:
        """Return the caps that `to_dict` described.

        Examples
        --------
        >>> caps = Caps(epsilon=1.0, delta=1e-6, approximate=(1.0, 0.0))
        >>> Caps.from_dict(caps.to_dict()) == caps
        True
        """
        pair = values["approximate"]
        return cls(
            epsilon=values["epsilon"],
            delta=values["delta"],
            approximate=None if pair is None else (pair[0], pair[1]),
            integral=values["integral"],
        )


def _pair(approximate: object) -> tuple[float, float]:
    if not isinstance(approximate, tuple | list) or len(approximate) != 2:
        raise TypeError("approximate must be a pair (epsilon, delta)")
    epsilon, delta = approximate
    return check_epsilon(epsilon), 0.0 if delta == 0.0 else check_delta(delta)


@lru_cache(maxsize=4096)
def _zcdp_budget(epsilon: float, delta: float, delta_spent: int) -> tuple[int, int]:
    left = round_down(Fraction(delta) - Fraction(delta_spent, DELTA_UNITS))
    amount = _down(Fraction(rho_of(epsilon, left)), UNITS) if left > 0.0 else 0
    return amount, _down(Fraction(delta), DELTA_UNITS)


def _up(value: Fraction, units: int) -> int:
    return math.ceil(value * units)


def _down(value: Fraction, units: int) -> int:
    return math.floor(value * units)
