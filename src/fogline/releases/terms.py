"""What a release promises and costs: the budget in whichever currency, who is protected, from what."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import Any, Literal

from numpy.typing import NDArray

from fogline import _validation
from fogline._typing import LedgerLike
from fogline.accounting import zcdp
from fogline.accounting.analytic_gaussian import UNIT_DISTANCE, pure_of, suits
from fogline.accounting.budget import GaussianBudget
from fogline.accounting.cautions import budget_cautions, warn_of
from fogline.accounting.costs import Cost, GaussianCost, PureCost, exact_units, gaussian_release, whole_units
from fogline.accounting.guarantee import ROWS, Guarantee
from fogline.mechanisms.discrete_gaussian import (
    NoisyVector,
    add_gaussian,
    add_rounded_gaussian,
    fine_scale,
    gaussian_scale,
)
from fogline.mechanisms.lattice import in_steps
from fogline.mechanisms.randomness import Parameters, provider_reason
from fogline.releases.release import Charge

__all__ = ["DEFAULT_ACCOUNTING", "FALLS_BACK", "LEAST_SENSITIVITY", "PROOF", "Accounting", "ReleaseTerms"]

Accounting = Literal["zcdp", "gaussian"]

DEFAULT_ACCOUNTING: Accounting = "gaussian"
"""How a release of (epsilon, delta) is accounted where no ledger says it, and where the curve suits it.

Terms that pay for what is not Gaussian, such as a stable histogram, are made without it: theirs is zCDP.
"""

FALLS_BACK = "accounted in zCDP, since delta is too small beside epsilon for the Gaussian curve"
"""Said of a release that would have used the curve if what that sets aside were at most 1% of delta."""

PROOF = "density-sketch"

LEAST_SENSITIVITY = 2.0**14
"""Every release by these terms has a sensitivity of at least so many lattice steps, so that HDP costs nothing extra."""


@dataclass(frozen=True)
class ReleaseTerms:
    """What a release promises, and so what it costs; public.

    A ``delta`` of 0 makes them pure: the release is epsilon-DP, and costs epsilon itself. Else ``accounting`` says how
    epsilon and delta become an amount of Gaussian noise: by the conversion of zCDP, or by the analytic curve
    (:mod:`fogline.accounting.analytic_gaussian`), which asks for less noise. A ledger decides it by its lane; without
    one it is the curve. A promise in rho, HDP or PDP is a promise in zCDP. ``distance`` is the total variation to a
    Gaussian that all noise of these terms may have together, under the curve.

    ``promise`` is the budget where it was not given as epsilon and delta; ``remark`` says what the promise rests on
    beyond the mechanism, such as sites whose persons were declared disjoint, and ``declared`` that a unit's bound does
    so too; ``on_trust`` that nobody knows whether rows were cut by a unit; ``caveat`` why the release is not certified
    although its noise is, such as counts by SQL that was never run against its engine.

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
    accounting: Accounting = "zcdp"
    distance: Fraction = UNIT_DISTANCE
    caveat: str = ""

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
        ledger: LedgerLike | None = None,
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
        ledger : Ledger or LedgerView, optional
            Who pays: its lane decides the accounting.
        """
        promise = None
        if rho is None and hdp is None and pdp is None:
            epsilon, delta = _validation.check_epsilon(epsilon), _delta(delta, mechanism, allow_pure)
        else:
            promise = GaussianBudget.of(
                epsilon=epsilon, delta=delta, rho=rho, hdp=hdp, pdp=pdp, sensitivity=LEAST_SENSITIVITY
            )
            epsilon, delta = promise.epsilon, promise.delta
        # with a ledger its lane decides, and a promise in rho never asked for the curve
        falls_back = ledger is None and promise is None and delta > 0.0 and not suits(epsilon, delta)
        return cls(
            epsilon,
            delta,
            _validation.check_neighbours(neighbours),
            _validation.check_max_contributions(max_contributions),
            unit,
            promise,
            FALLS_BACK if falls_back else "",
            accounting=_accounting(epsilon, delta, promise, ledger),
        )

    @property
    def pure(self) -> bool:
        """Whether the release is epsilon-DP, without any delta."""
        return self.delta == 0.0

    def as_pure(self) -> ReleaseTerms:
        """Return the same promise without a delta, kept by Laplace noise; nothing is said of how a delta is accounted.

        Examples
        --------
        >>> terms = ReleaseTerms.checked(1.0, 1e-17, "add-remove", 1)
        >>> terms.remark == FALLS_BACK, terms.as_pure().remark, terms.as_pure().pure
        (True, '', True)
        """
        # the remark is about how delta is converted, and there is none any more
        return replace(self, delta=0.0, accounting="zcdp", remark=self.remark.replace(FALLS_BACK, "").strip(", "))

    @property
    def exact_epsilon(self) -> Fraction:
        """The epsilon that the noise of a pure release may use: not above `epsilon`, in whole units of a ledger."""
        if not self.pure:
            raise RuntimeError("these terms have a delta: their noise is paid for in rho")
        return exact_units(self.epsilon)

    @property
    def rho(self) -> float:
        """The zCDP of the release, in whole units of a ledger. Pure terms have none: nothing is charged in it.

        Under the analytic curve it is half of the square of mu, which is the zCDP of the noise as well.
        """
        if self.promise is not None:
            return self.promise.rho
        if self.pure:
            raise RuntimeError("these terms are pure: their noise is paid for in epsilon, not in rho")
        if self.accounting == "gaussian":
            return gaussian_release(self.epsilon, self.delta).rho
        return whole_units(zcdp.rho_of(self.epsilon, self.delta))

    @property
    def reason(self) -> str:
        """Why a release made now, through the current door, is not certified; empty if it is."""
        return "; ".join(filter(None, [provider_reason(), self.caveat]))

    @property
    def is_enforced(self) -> bool:
        """Whether the engine cuts the records of a unit: it does where the unit is not a row."""
        return self.unit not in ROWS and not self.declared and not self.on_trust

    def cost(self) -> Cost | PureCost | GaussianCost:
        """What a ledger is charged."""
        if self.pure:
            return PureCost(self.exact_epsilon)
        return gaussian_release(self.epsilon, self.delta) if self.accounting == "gaussian" else Cost(self.rho)

    def add_noise(
        self,
        query: Callable[[], NDArray[Any]],
        *,
        size: int,
        sensitivity: float,
        rho: float | None = None,
        distance: Fraction | None = None,
        parameters: Parameters = (),
    ) -> NoisyVector:
        """Release an integer vector with the Gaussian noise of these terms, or of a share of them.

        Parameters
        ----------
        query, size, sensitivity, parameters
            As for :func:`fogline.mechanisms.discrete_gaussian.add_gaussian`.
        rho : float, optional
            Of the share; by default all of it.
        distance : Fraction, optional
            The total variation that is left to these terms; by default all of it.
        """
        rho = self.rho if rho is None else rho
        distance = self.distance if distance is None else distance
        if self.accounting == "zcdp":
            return add_gaussian(query, size=size, sensitivity=sensitivity, rho=rho, parameters=parameters)
        return add_rounded_gaussian(
            query, size=size, sensitivity=sensitivity, rho=rho, distance=distance, parameters=parameters
        )

    def noise_scale(self, sensitivity: float, rho: float | None = None) -> float:
        """Return the standard deviation of that noise, in lattice steps; it is never more."""
        rho = self.rho if rho is None else rho
        if self.accounting == "zcdp":
            return gaussian_scale(sensitivity, rho)
        return fine_scale(in_steps(sensitivity), rho).released

    def pure_epsilon(self, rho: float) -> float:
        """Return the epsilon of a pure mechanism that a share of rho pays for: by zCDP, or by GDP."""
        if self.accounting == "gaussian":
            return pure_of(rho)
        epsilon = math.sqrt(2.0 * rho)
        # the square root was rounded, perhaps upward
        while Fraction(epsilon) ** 2 > 2 * Fraction(rho):
            epsilon = math.nextafter(epsilon, 0.0)
        return epsilon

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
        if self.accounting != "zcdp":
            asked["accounting"] = self.accounting
        if self.remark:
            asked["remark"] = self.remark
        return asked

    def charge(self, *, gain_and_loss: bool = False) -> Charge:
        """What a ledger is charged for a release made now, through the current door, and whom that protects."""
        return Charge(
            cost=self.cost(),
            neighbours=self.neighbours,
            certified=not self.reason,
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
            gaussian=self.accounting == "gaussian",
            neighbours=self.neighbours,
            # several rows that count as one belong to somebody: the promise is then for a person
            unit=self.unit if self.max_contributions == 1 or self.unit not in ROWS else "person",
            max_contributions=self.max_contributions,
            # one row is one row: there is nothing to enforce
            enforced=self.is_enforced or (self.max_contributions == 1 and self.unit in ROWS and not self.on_trust),
            mechanism=self.stated("discrete Laplace noise" if self.pure else "discrete Gaussian noise on Fourier sums"),
            proof=proof,
            reason=self.reason,
        )


def _accounting(epsilon: float, delta: float, promise: GaussianBudget | None, ledger: LedgerLike | None) -> Accounting:
    """Return how terms are accounted: by the lane of their ledger, and by zCDP where the curve does not suit them."""
    if promise is not None or delta == 0.0 or not suits(epsilon, delta):
        return "zcdp"
    if ledger is None:
        return DEFAULT_ACCOUNTING
    _validation.check_ledger(ledger)
    # what can be asked is a ledger; one that has no lanes counts in zCDP
    lane = getattr(ledger.on() if hasattr(ledger, "on") else ledger, "lane", "zcdp")
    return "gaussian" if lane == "gaussian" else "zcdp"


def _delta(delta: Any, mechanism: str, allow_pure: bool) -> float:
    """Return a delta: 0 where none is given and none is needed; an error says who needs one."""
    # False equals 0, and is a mistake
    missing = delta is None or (type(delta) is not bool and isinstance(delta, Real) and delta == 0)
    if not missing:
        return _validation.check_delta(delta)
    if allow_pure:
        return 0.0
    try:
        return _validation.check_delta(delta)
    except (TypeError, ValueError) as error:
        # the same class, so that a missing and a wrong delta stay different errors
        raise type(error)(f"{error}: {mechanism} needs it") from None
