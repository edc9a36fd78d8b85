"""What a release promises and costs: the budget in whichever currency, who is protected, from what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fogline import _validation
from fogline.accounting import zcdp
from fogline.accounting.budget import GaussianBudget
from fogline.accounting.cautions import budget_cautions, warn_of
from fogline.accounting.costs import Cost, whole_units
from fogline.accounting.guarantee import ROWS, Guarantee
from fogline.mechanisms.randomness import provider_reason
from fogline.release.release import Charge

__all__ = ["LEAST_SENSITIVITY", "PROOF", "ReleaseTerms"]

PROOF = "density-sketch"

LEAST_SENSITIVITY = 2.0**14
"""Every release by these terms has a sensitivity of at least so many lattice steps, so that HDP costs nothing extra."""


@dataclass(frozen=True)
class ReleaseTerms:
    """What a release promises, and so what it costs; public.

    ``promise`` is the budget where it was not given as epsilon and delta; ``remark`` says what the promise rests on
    beyond the mechanism, such as sites whose persons were declared disjoint, and ``declared`` that a unit's bound does
    so too; ``on_trust`` that nobody knows whether rows were cut by a unit.
    """

    epsilon: float
    delta: float
    neighbours: _validation.Neighbours
    max_contributions: int
    unit: str = "record"
    promise: GaussianBudget | None = None
    remark: str = ""
    declared: bool = False
    on_trust: bool = False

    @classmethod
    def checked(
        cls,
        epsilon: Any,
        delta: Any,
        neighbours: Any,
        max_contributions: Any,
        unit: str = "record",
        *,
        rho: Any = None,
        hdp: Any = None,
        pdp: Any = None,
    ) -> ReleaseTerms:
        """Check a user's wishes; every error names its parameter. ``unit`` is what one row of the source is."""
        promise = None
        if rho is None and hdp is None and pdp is None:
            epsilon, delta = _validation.check_epsilon(epsilon), _validation.check_delta(delta)
        else:
            promise = GaussianBudget.of(
                epsilon=epsilon, delta=delta, rho=rho, hdp=hdp, pdp=pdp, sensitivity=LEAST_SENSITIVITY
            )
            epsilon, delta = promise.epsilon, promise.delta
        return cls(
            epsilon,
            delta,
            _validation.check_neighbours(neighbours),
            _validation.check_max_contributions(max_contributions),
            unit,
            promise,
        )

    @property
    def rho(self) -> float:
        """The zCDP of the release, in whole units of a ledger."""
        if self.promise is not None:
            return self.promise.rho
        return whole_units(zcdp.rho_of(self.epsilon, self.delta))

    @property
    def is_enforced(self) -> bool:
        """Whether the engine cuts the records of a unit: it does where the unit is not a row."""
        return self.unit not in ROWS and not self.declared and not self.on_trust

    def cost(self) -> Cost:
        """What a ledger is charged."""
        return Cost(self.rho)

    def warn(self) -> None:
        """Warn of a budget that promises little, before anything is spent."""
        warn_of(budget_cautions(self.epsilon, self.delta))

    def question(self) -> dict[str, Any]:
        """The terms as parameters of a ledger's question."""
        asked: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "max_contributions": self.max_contributions,
        }
        if self.unit not in ROWS:
            asked["unit"] = self.unit
        if self.promise is not None:
            asked |= {"rho": self.promise.rho, "statement": self.promise.statement}
        if self.remark:
            asked["remark"] = self.remark
        return asked

    def charge(self, *, gain_and_loss: bool = False) -> Charge:
        """What a ledger is charged for a release made now, through the current door, and whom that protects."""
        return Charge(
            cost=self.cost(),
            neighbours=self.neighbours,
            certified=not provider_reason(),
            unit=self.unit,
            max_contributions=self.max_contributions,
            enforced=self.is_enforced,
            gain_and_loss=gain_and_loss,
        )

    def stated(self, mechanism: str) -> str:
        """The name of a mechanism with what was asked of it, if that was HDP or PDP, and the remark."""
        told = [mechanism, self.promise.statement if self.promise else "", self.remark]
        return ", ".join(filter(None, told))

    def guarantee(self, proof: str = PROOF) -> Guarantee:
        """What a release made now, through the current door, may claim."""
        return Guarantee.certified_release(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            neighbours=self.neighbours,
            unit=self.unit if self.max_contributions == 1 or self.unit not in ROWS else "person",
            max_contributions=self.max_contributions,
            enforced=self.is_enforced or (self.max_contributions == 1 and self.unit in ROWS and not self.on_trust),
            mechanism=self.stated("discrete Gaussian noise on Fourier sums"),
            proof=proof,
            reason=provider_reason(),
        )
