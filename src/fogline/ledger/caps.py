r"""What is charged, in whole units, and what a cap allows.

Five currencies. A release is charged in one of them. Of the first two a data set has one, its lane, which shares a cap
with the third:

- ``zcdp``: rho, and the delta of approximate zCDP beside it. How delta is split between the two is fixed with the first
  rho at the latest, and a cap (epsilon, delta) allows the largest rho whose optimal conversion at its part of delta
  stays within epsilon. Both sums are valid filters under fully adaptive composition (``shared_cap.proof.md``). Ledgers
  of earlier versions convert at ``delta - (deltas spent)`` as long as their cap is not changed.
- ``gaussian``: half of the square of mu of Gaussian differential privacy, and the total variation that the noise is
  away from it, in place of delta. In a data set whose lane is ``gaussian`` it converts by the analytic curve
  (`gaussian_cap`); where the lane is ``zcdp`` it counts as the rho that it is as well.
- ``pure``: the epsilon of pure differential privacy, which needs no delta, added up. It takes from the same cap: what
  is spent in both together stays within epsilon and delta (`shared_cap`). A cap with a delta of 0 is for it alone.
- ``approximate``: (epsilon, delta) of mechanisms that have nothing better, added up by basic composition.
- ``integral``: the epsilon of integral privacy, a sum over draws.

A unit is :math:`10^{-12}` of rho or epsilon and :math:`10^{-18}` of delta. Costs round up to units, caps down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

from fogline._validation import check_count, check_delta, check_epsilon, check_level, check_positive
from fogline.accounting import Cost, GaussianCost, PureCost
from fogline.ledger.gaussian_cap import GaussianCap
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS, SharedCap, Spending

__all__ = [
    "CURRENCIES",
    "AnyCost",
    "ApproximateCost",
    "Caps",
    "Charge",
    "Currency",
    "IntegralCost",
    "Lane",
]

Currency = Literal["zcdp", "gaussian", "pure", "approximate", "integral"]
CURRENCIES: tuple[Currency, ...] = get_args(Currency)

Lane = Literal["zcdp", "gaussian"]
LANES: tuple[Lane, ...] = get_args(Lane)

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
    """The price of draws from an integrally private model: epsilon per draw.

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


AnyCost = Cost | GaussianCost | PureCost | ApproximateCost | IntegralCost


@dataclass(frozen=True)
class Charge:
    """A cost in whole units of its currency, rounded up.

    Examples
    --------
    >>> Charge.of(Cost(rho=1e-13, delta=1e-6))
    Charge(currency='zcdp', amount=1, delta=1000000000000)
    >>> Charge.of(PureCost(Fraction(1, 10)))
    Charge(currency='pure', amount=100000000000, delta=0)
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
        elif isinstance(cost, GaussianCost):
            charge = cls("gaussian", _up(Fraction(cost.rho), UNITS), _up(Fraction(cost.distance), DELTA_UNITS))
        elif isinstance(cost, PureCost):
            charge = cls("pure", _up(cost.epsilon, UNITS))
        elif isinstance(cost, ApproximateCost):
            charge = cls("approximate", _up(Fraction(cost.epsilon), UNITS), _up(Fraction(cost.delta), DELTA_UNITS))
        elif isinstance(cost, IntegralCost):
            charge = cls("integral", _up(Fraction(cost.epsilon) * cost.draws, UNITS))
        else:
            raise TypeError(
                "cost must be a Cost, GaussianCost, PureCost, ApproximateCost or IntegralCost,"
                f" got {type(cost).__name__}"
            )
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
        For everything accounted in zCDP or in pure epsilon together. With a `delta` of 0 for pure epsilon alone.
    approximate : (epsilon, delta), optional
        For mechanisms known only by epsilon and delta; delta may be 0.
    integral : float, optional
        Epsilon, for integrally private draws.
    lane : {"zcdp", "gaussian"}
        How `epsilon` and `delta` are spent beside pure epsilon: in zCDP, or in Gaussian differential privacy.
    set_aside : float, optional
        Part of `delta` that is kept for mechanisms with a delta of their own, and for nothing else; 0 where nothing is
        kept beyond what the first release in rho takes of it. For the lane ``zcdp``. None is the rule of earlier
        versions, whose split moves with every delta that is spent: they wrote no such thing down.

    Examples
    --------
    >>> caps = Caps(epsilon=1.0, delta=1e-5)
    >>> amount, delta = caps.budget("zcdp", delta_spent=0)
    >>> amount
    30556595197
    >>> caps.budget("zcdp", delta_spent=delta // 2)[0] < amount
    True
    >>> Caps(epsilon=1.0, delta=0.0).budget("pure", delta_spent=0) == (UNITS, 0)
    True
    >>> caps.budget("integral", delta_spent=0) is None
    True
    >>> Caps(epsilon=1.0, delta=1e-5, lane="gaussian").budget("gaussian", delta_spent=0)[0] / amount
    1.174...
    >>> kept = Caps(epsilon=1.0, delta=1e-5, set_aside=1e-6)
    >>> kept.budget("zcdp", delta_spent=0) == kept.budget("zcdp", delta_spent=5 * 10**11)
    True
    >>> strict, begun = Caps(epsilon=1.0, delta=1e-5, set_aside=0.0), Spending(rho=1)
    >>> strict.budget("zcdp", delta_spent=0, spending=begun) == (amount, 0)         # no delta but of the first release
    True
    """

    epsilon: float | None = None
    delta: float | None = None
    approximate: tuple[float, float] | None = None
    integral: float | None = None
    lane: Lane = "zcdp"
    set_aside: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise TypeError("a cap needs both epsilon and delta")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
            object.__setattr__(self, "delta", _zero_or_delta(self.delta))
        self._check_lane()
        if self.approximate is not None:
            object.__setattr__(self, "approximate", _pair(self.approximate))
        if self.integral is not None:
            object.__setattr__(self, "integral", check_positive(self.integral, "integral"))
        # a cap that no count can hold is refused when it is made, not when it is first used
        for currency in CURRENCIES:
            budget = self.budget(currency, 0)
            # beside a delta the cap of rho decides, as it always did
            counts = currency != "pure" or self.delta == 0.0
            if counts and budget is not None and not 0 < budget[0] < _MOST:
                size = "small" if budget[0] <= 0 else "large"
                raise ValueError(f"the cap of currency {currency!r} is too {size} to be counted")

    def _check_lane(self) -> None:
        if self.lane not in LANES:
            raise ValueError(f"lane must be one of {', '.join(LANES)}, got {self.lane!r}")
        if self.lane == "gaussian":
            if self.epsilon is None or not self.delta:
                raise ValueError("lane: the Gaussian lane needs an epsilon and a delta above 0")
            GaussianCap(self.epsilon, self.delta)
        if self.set_aside is not None:
            object.__setattr__(self, "set_aside", _zero_or_level(self.set_aside))
            if self.lane != "zcdp" or not self.delta or not self.set_aside < self.delta:
                raise ValueError("set_aside must be below delta, and is for the lane 'zcdp'")

    def budget(self, currency: Currency, delta_spent: int, spending: Spending | None = None) -> tuple[int, int] | None:
        """Return how much may be spent in all, and how much delta, in units; None where there is no cap.

        Parameters
        ----------
        currency : str
        delta_spent : int
            Delta that is spent in this currency.
        spending : Spending, optional
            What is spent in the two currencies that share a cap; by default nothing but `delta_spent`.
        """
        spending = spending or Spending()
        if currency in (self.lane, "pure") and self.epsilon is not None and self.delta is not None:
            # the caller may ask for a delta that is not spent yet
            known = spending if currency == "pure" else replace(spending, delta=delta_spent)
            return self._shared(currency, self.epsilon, self.delta, known)
        # caps of their own: what they pay for adds to what the shared cap promises
        if currency == "approximate" and self.approximate is not None:
            epsilon, delta = self.approximate
            return _down(Fraction(epsilon), UNITS), _down(Fraction(delta), DELTA_UNITS)
        if currency == "integral" and self.integral is not None:
            return _down(Fraction(self.integral), UNITS), 0
        return None

    def _shared(self, currency: Currency, epsilon: float, delta: float, spending: Spending) -> tuple[int, int] | None:
        """Return the budget of the lane, or of pure epsilon beside it."""
        if self.lane == "gaussian":
            cap = GaussianCap(epsilon, delta)
            if currency == "pure":
                return cap.pure_budget(spending), 0
            return cap.rho_budget(spending), cap.distance_budget
        aside = self.kept(spending)
        if aside is not None:  # all of it counts as spent, whatever is spent of it
            spending = replace(spending, delta=aside)
        if currency == "pure":
            budget = SharedCap(epsilon, delta).pure_budget(spending)
            # beside rho it is only a bound, and must fit a column of the file
            return budget if delta == 0.0 else min(budget, _MOST - 1), 0
        if delta == 0.0:
            return None
        amount, most = _rho_budget(epsilon, delta, spending.pure, spending.pure_before, spending.delta)
        return amount, most if aside is None or (not self.set_aside and spending.rho == 0) else aside

    def kept(self, spending: Spending) -> int | None:
        """Return how much of delta rho is not converted at, in units; None where that is what was spent of it so far.

        That is what was set aside, or, where nothing was, what was spent until the first rho and with it.
        """
        if not self.set_aside:
            first = spending.delta_before if spending.rho else spending.delta
            return None if self.set_aside is None else first
        return _down(Fraction(repr(self.set_aside)), DELTA_UNITS)

    def to_dict(self) -> dict[str, Any]:
        """Return the caps in terms of JSON. What earlier versions did not know is left out where it is not used.

        Examples
        --------
        >>> Caps(integral=2.0).to_dict()["integral"]
        2.0
        """
        told = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "approximate": None if self.approximate is None else list(self.approximate),
            "integral": self.integral,
        }
        later = {"lane": self.lane if self.lane != "zcdp" else None, "set_aside": self.set_aside}
        return {**told, **{name: value for name, value in later.items() if value is not None}}

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
            lane=values.get("lane", "zcdp"),
            set_aside=values.get("set_aside"),
        )


def _pair(approximate: object) -> tuple[float, float]:
    if not isinstance(approximate, tuple | list) or len(approximate) != 2:
        raise TypeError("approximate must be a pair (epsilon, delta)")
    epsilon, delta = approximate
    return check_epsilon(epsilon), _zero_or_delta(delta)


def _zero_or_level(share: object) -> float:
    return 0.0 if share == 0.0 and not isinstance(share, bool) else check_level(share, "set_aside")


def _zero_or_delta(delta: object) -> float:
    return 0.0 if delta == 0.0 and not isinstance(delta, bool) else check_delta(delta)


@lru_cache(maxsize=4096)
def _rho_budget(epsilon: float, delta: float, pure: int, pure_before: int, delta_spent: int) -> tuple[int, int]:
    """Return how much rho and delta may be spent. Kept: long ledgers ask for the same again and again."""
    amount = SharedCap(epsilon, delta).rho_budget(Spending(pure, pure_before, 0, delta_spent))
    return amount, _down(Fraction(delta), DELTA_UNITS)


def _up(value: Fraction, units: int) -> int:
    return math.ceil(value * units)


def _down(value: Fraction, units: int) -> int:
    return math.floor(value * units)
