"""What a cap allows, computed another way: sums in rational numbers, the conversion in decimals, no ledger code."""

from __future__ import annotations

from collections import defaultdict
from decimal import Context, Decimal, localcontext
from fractions import Fraction

__all__ = ["converted", "excess", "sums"]

Spent = tuple[str, Fraction, Fraction, tuple[str, str] | None]
"""Currency, amount, delta, and the part of a partition."""

_DIGITS = Context(prec=40)


def converted(rho: Fraction, delta: Fraction) -> Fraction:
    """Return the least epsilon over all Renyi orders, to some 30 digits; it is not below the true minimum."""
    if rho == 0:
        return Fraction(0)
    with localcontext(_DIGITS):
        price = Decimal(rho.numerator) / Decimal(rho.denominator)
        level = -(Decimal(delta.numerator) / Decimal(delta.denominator)).ln()
        low, high = Decimal("1e-6"), Decimal("1e12")
        for _ in range(90):
            t = (low * high).sqrt()
            low, high = (low, t) if price * t * t + (1 + t).ln() > level else (t, high)
        epsilon = (t + 1) * price - (1 + 1 / t).ln() + (level - (1 + t).ln()) / t
    return max(Fraction(0), Fraction(epsilon))


def sums(history: list[Spent], neighbours: str) -> dict[str, tuple[Fraction, Fraction]]:
    """Return amount and delta of each currency, by the meaning of a partition: a unit is in one part, or in two."""
    touched = 1 if neighbours == "add-remove" else 2
    found = {}
    for currency in ("zcdp", "pure"):
        own = [spent for spent in history if spent[0] == currency]
        found[currency] = tuple(_sum(own, which, touched) for which in (1, 2))
    return found


def _sum(own: list[Spent], which: int, touched: int) -> Fraction:
    whole = sum((spent[which] for spent in own if spent[3] is None), Fraction(0))
    parts: dict[str, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for spent in own:
        if spent[3] is not None:
            parts[spent[3][0]][spent[3][1]] += spent[which]
    return whole + sum((sum(sorted(each.values())[-touched:], Fraction(0)) for each in parts.values()), Fraction(0))


def excess(history: list[Spent], neighbours: str, epsilon: float, delta: float) -> Fraction:
    """Return by how much everything together is above the cap; 0 or less where it is within it."""
    total = sums(history, neighbours)
    (rho, aside), pure = total["zcdp"], total["pure"][0]
    left = Fraction(delta) - aside
    if left < 0 or (rho > 0 and left == 0):
        return Fraction(10**9)
    return pure + converted(rho, left) - Fraction(repr(epsilon))
