"""What is left in the books, and what a plan would leave: pure functions of accounts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from fogline.accounting._rounding import round_down
from fogline.accounting.zcdp import epsilon_of
from fogline.ledger.charges import DELTA_UNITS, UNITS, Charge, Currency
from fogline.ledger.receipts import Plan, Remaining
from fogline.ledger.tallies import Account, Place

__all__ = ["planned", "remaining"]

_MOST_TIMES = 10**6


def remaining(accounts: Sequence[Account]) -> Remaining:
    """Return the least that any of the accounts has left, in each currency.

    Examples
    --------
    >>> from fogline.ledger.charges import Caps
    >>> left = remaining([Account(Caps(epsilon=1.0, delta=1e-5)), Account(Caps(epsilon=0.5, delta=1e-5))])
    >>> round(left.epsilon, 3), left.approximate
    (0.5, None)
    """
    return _left(accounts, None, None)


def planned(accounts: Sequence[Account], charge: Charge, place: Place) -> Plan:
    """Return what a charge would do to the accounts.

    Examples
    --------
    >>> from fogline.ledger.charges import Caps
    >>> account = Account(Caps(epsilon=1.0, delta=1e-5))
    >>> planned([account], Charge("zcdp", 10**10), Place("patients", "add-remove")).times
    3
    """
    times, step = 0, _MOST_TIMES
    while step:  # the largest number that fits, bit by bit
        if times + step <= _MOST_TIMES and _fits(accounts, _multiple(charge, times + step), place):
            times += step
        else:
            step //= 2
    fits = times > 0
    after = _left(accounts, charge, place) if fits else None
    return Plan(charge=charge, fits=fits, times=times, before=remaining(accounts), after=after)


def _multiple(charge: Charge, times: int) -> Charge:
    return Charge(charge.currency, charge.amount * times, charge.delta * times)


def _fits(accounts: Sequence[Account], charge: Charge, place: Place) -> bool:
    for account in accounts:
        if account.caps is None:
            continue
        amount, delta = account.after(charge, place)
        budget = account.caps.budget(charge.currency, delta)
        if budget is None or amount > budget[0] or delta > budget[1]:
            return False
    return True


def _left(accounts: Sequence[Account], charge: Charge | None, place: Place | None) -> Remaining:
    zcdp = _least(accounts, "zcdp", charge, place) or (0, 0)
    approximate = _least(accounts, "approximate", charge, place)
    integral = _least(accounts, "integral", charge, place)
    rho, delta = _floats(zcdp)
    return Remaining(
        rho=rho,
        delta=delta,
        epsilon=epsilon_of(rho, delta) if rho > 0.0 and delta > 0.0 else 0.0,
        approximate=None if approximate is None else _floats(approximate),
        integral=None if integral is None else _floats(integral)[0],
    )


def _least(
    accounts: Sequence[Account], currency: Currency, charge: Charge | None, place: Place | None
) -> tuple[int, int] | None:
    """Return the least left in one currency, after a charge if there is one; None where a cap is missing."""
    least: tuple[int, int] | None = None
    for account in accounts:
        if account.caps is None:
            continue
        charged = charge is not None and place is not None and charge.currency == currency
        amount, delta = account.after(charge, place) if charged else account.spent(currency)  # type: ignore[arg-type]
        budget = account.caps.budget(currency, delta)
        if budget is None:
            return None
        left = max(0, budget[0] - amount), max(0, budget[1] - delta)
        least = left if least is None else (min(least[0], left[0]), min(least[1], left[1]))
    return least


def _floats(units: tuple[int, int]) -> tuple[float, float]:
    return round_down(Fraction(units[0], UNITS)), round_down(Fraction(units[1], DELTA_UNITS))
