"""What a release promises and costs: the budget in whichever currency, who is protected, from what."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

from fogline import _validation
from fogline.accounting import zcdp
from fogline.accounting.budget import GaussianBudget
from fogline.accounting.cautions import budget_cautions, warn_of
from fogline.accounting.costs import Cost, PureCost, exact_units, whole_units
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

    A ``delta`` of 0 makes them pure: the release is epsilon-DP, and costs epsilon itself.

    ``promise`` is the budget where it was not given as epsilon and delta; ``remark`` says what the promise rests on
    beyond the mechanism, such as sites whose persons were declared disjoint, and ``declared`` that a unit's bound does
    so too; ``on_trust`` that nobody knows whether rows were cut by a unit.

    Examples
    --------
    >>> terms = ReleaseTerms.checked(0.1, 0, "add-remove", 1, allow_pure=True)
    >>> terms.pure, terms.cost()
    (True, PureCost(epsilon=Fraction(1, 10)))
    >>> ReleaseTerms.checked(0.1, 0, "add-remove", 1)
    Traceback (most recent call last):
    ValueError: delta must lie strictly between 0 and 1, got 0.0: discrete Gaussian noise needs it
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
        allow_pure: bool = False,
        mechanism: str = "discrete Gaussian noise",
    ) -> ReleaseTerms:
        """Check a user's wishes; every error names its parameter.

        Parameters
        ----------
        epsilon, delta, neighbours, max_contributions, rho, hdp, pdp
            As users give them.
        unit : str
            What one row of the source is.
        allow_pure : bool
            Whether the release has a mechanism that needs no delta; then a delta of None or 0 asks for it.
        mechanism : str
            What needs a delta, for the error that asks for one.
        """
        promise = None
        if rho is None and hdp is None and pdp is None:
            epsilon, delta = _validation.check_epsilon(epsilon), _delta(delta, mechanism, allow_pure)
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
    def pure(self) -> bool:
        """Whether the release is epsilon-DP, without any delta."""
        return self.delta == 0.0

    @property
    def exact_epsilon(self) -> Fraction:
        """The epsilon that the noise of a pure release may use: not above `epsilon`, in whole units of a ledger."""
        if not self.pure:
            raise RuntimeError("these terms have a delta: their noise is paid for in rho")
        return exact_units(self.epsilon)

    @property
    def rho(self) -> float:
        """The zCDP of the release, in whole units of a ledger. Pure terms have none: nothing is charged in it."""
        if self.promise is not None:
            return self.promise.rho
        if self.pure:
            raise RuntimeError("these terms are pure: their noise is paid for in epsilon, not in rho")
        return whole_units(zcdp.rho_of(self.epsilon, self.delta))

    @property
    def is_enforced(self) -> bool:
        """Whether the engine cuts the records of a unit: it does where the unit is not a row."""
        return self.unit not in ROWS and not self.declared and not self.on_trust

    def cost(self) -> Cost | PureCost:
        """What a ledger is charged."""
        return PureCost(self.exact_epsilon) if self.pure else Cost(self.rho)

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
            rho=None if self.pure else self.rho,
            neighbours=self.neighbours,
            unit=self.unit if self.max_contributions == 1 or self.unit not in ROWS else "person",
            max_contributions=self.max_contributions,
            enforced=self.is_enforced or (self.max_contributions == 1 and self.unit in ROWS and not self.on_trust),
            mechanism=self.stated("discrete Laplace noise" if self.pure else "discrete Gaussian noise on Fourier sums"),
            proof=proof,
            reason=provider_reason(),
        )


def _delta(delta: Any, mechanism: str, allow_pure: bool) -> float:
    """Return a delta: 0 where none is given and none is needed; an error says who needs one."""
    missing = delta is None or (type(delta) is not bool and isinstance(delta, Real) and delta == 0)
    if not missing:
        return _validation.check_delta(delta)
    if allow_pure:
        return 0.0
    try:
        return _validation.check_delta(delta)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}: {mechanism} needs it") from None
