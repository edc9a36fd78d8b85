"""What the questions of a run cost, in rho, in pure epsilon or in both by turns, and what its cap allows of them.

The cap is a plain model of its own: whether releases are within it is computed by `tests.ledger.reference`, in rational
numbers and decimals, and never by the ledger's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from tests.ledger import reference

from fogline.accounting import Cost, PureCost
from fogline.accounting.zcdp import epsilon_of, rho_and_order

__all__ = ["LANES", "Prices"]

LANES = ("zcdp", "pure", "mixed")
DELTA = 1e-6
RHO, EPSILON = Fraction(1, 2**10), Fraction(1, 2**4)


@dataclass(frozen=True)
class Prices:
    """The prices and the cap of a run.

    Parameters
    ----------
    lane : str
        "zcdp", "pure" (with a delta of 0), or "mixed": even questions cost rho and odd ones pure epsilon.
    cap : int
        How many releases are within the cap, in a lane of one currency; about how many, in both.
    """

    lane: str
    cap: int

    @property
    def epsilon(self) -> float:
        half = Fraction(1, 2)
        if self.lane == "pure":
            return float(EPSILON * (self.cap + half))
        if self.lane == "zcdp":
            return epsilon_of(float(RHO * (self.cap + half)), DELTA)
        return epsilon_of(float(RHO * (self.cap + 1) / 2), DELTA) + float(EPSILON * self.cap / 2)

    @property
    def delta(self) -> float:
        return 0.0 if self.lane == "pure" else DELTA

    def is_pure(self, question: int) -> bool:
        return self.lane == "pure" or (self.lane == "mixed" and question % 2 == 1)

    def of(self, question: int) -> Cost | PureCost:
        """Return the price of a question."""
        return PureCost(EPSILON) if self.is_pure(question) else Cost(float(RHO))

    def hold(self, questions: Sequence[int]) -> bool:
        """Say whether the releases of these questions together are within the cap."""
        pure = sum(self.is_pure(question) for question in questions)
        return _hold(self, len(questions) - pure, pure)

    def allow(self, questions: Sequence[int]) -> bool:
        """Say whether the last of these questions must be let in after the others, by a margin for rounding."""
        order, since, rho, pure = 0.0, Fraction(0), Fraction(0), Fraction(0)
        largest, before = 0.0, Fraction(0)
        for question in questions:
            if self.is_pure(question):
                pure += EPSILON
                since += EPSILON if rho else 0
                continue
            if not rho:
                before = pure
                rest = float(Fraction(self.epsilon) - before)
                largest, order = rho_and_order(rest, DELTA) if rest > 0 else (0.0, 1.0)
            rho += RHO
        if not rho:
            return float(pure) <= self.epsilon * (1 - 1e-9)
        return order * float(rho) + float(since) <= order * largest * (1 - 1e-9)


@lru_cache(maxsize=4096)
def _hold(prices: Prices, in_rho: int, pure: int) -> bool:
    history = [("zcdp", RHO, Fraction(0), None)] * in_rho + [("pure", EPSILON, Fraction(0), None)] * pure
    return reference.excess(history, "add-remove", prices.epsilon, prices.delta) <= 0
