r"""What it costs: one small registered function for each kind of event.

The currency is approximate zCDP: a pair :math:`(\rho, \delta)` says that, outside an event of probability at
most :math:`\delta`, the mechanism is :math:`\rho`-zCDP (Bun and Steinke 2016, section 8). Both numbers add up
under adaptive composition, also when the sequence itself is chosen on the way, which is why the ledger counts
in them. Every cost is computed in rational numbers and rounded up once.

Some mechanisms keep a stronger promise: pure :math:`\varepsilon`-DP, without any delta. `pure_cost` states them in
that currency, as an exact rational number that adds up exactly. One use of a mechanism is charged in one currency or in
the other, never in both.

Gaussian noise has a third currency: :math:`\mu`-GDP up to a total variation distance, from which the analytic curve
gives a smaller epsilon than zCDP does. `gaussian_cost` states it, as :math:`\rho = \mu^2/2` and that distance.

An event of an unknown kind is refused. A subclass of a known event is unknown too: it may mean something
else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from fogline._validation import check_real
from fogline.accounting import zcdp
from fogline.accounting._rounding import round_down, round_up, square_root_up
from fogline.accounting.analytic_gaussian import (
    UNIT_DISTANCE,
    rho_of,
    rho_of_pure,
    rounding_distance,
    slack_of,
    suits,
)
from fogline.accounting.events import (
    AboveThresholdEvent,
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    IntegralDrawEvent,
    LaplaceEvent,
    ParallelEvent,
    StableHistogramEvent,
)

__all__ = [
    "RHO_UNITS",
    "Cost",
    "GaussianCost",
    "PureCost",
    "UnsupportedEvent",
    "cost",
    "exact_units",
    "gaussian_cost",
    "gaussian_release",
    "pure_cost",
    "registered_events",
    "release_rho",
    "whole_units",
]

RHO_UNITS = 10**12
"""A ledger counts rho, and pure epsilon, in units of one over this."""

E = TypeVar("E")


class UnsupportedEvent(TypeError):
    """An event whose cost nobody has proved. It is never free."""


@dataclass(frozen=True)
class Cost:
    """A price in approximate zCDP. Addition rounds up.

    Parameters
    ----------
    rho : float
        The zCDP parameter, not negative.
    delta : float
        The probability of the exceptional event, from 0 to 1.

    Examples
    --------
    >>> Cost(0.5, 0.0) + Cost(0.25, 1e-6)
    Cost(rho=0.75, delta=1e-06)
    """

    rho: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        # written so that NaN fails too
        if not 0.0 <= self.rho < float("inf"):
            raise ValueError(f"rho must be finite and not negative, got {self.rho!r}")
        if not 0.0 <= self.delta <= 1.0:
            raise ValueError(f"delta must lie between 0 and 1, got {self.delta!r}")

    def __add__(self, other: object) -> Cost:
        if not isinstance(other, Cost):
            # so that Python raises TypeError: a sum over two currencies has no meaning
            return NotImplemented
        return _total((self, other))


@dataclass(frozen=True, init=False)
class PureCost:
    """A price in pure differential privacy: epsilon, an exact rational number, and no delta. Addition is exact.

    Parameters
    ----------
    epsilon : int, float or Fraction
        Finite and not negative. A float counts as the binary number that it is; give a Fraction for one tenth.

    Examples
    --------
    >>> PureCost(Fraction(1, 10)) + PureCost(Fraction(2, 10))
    PureCost(epsilon=Fraction(3, 10))
    >>> PureCost(0.5) + Cost(0.5)
    Traceback (most recent call last):
    TypeError: unsupported operand type(s) for +: 'PureCost' and 'Cost'
    """

    epsilon: Fraction

    def __init__(self, epsilon: Fraction | float) -> None:
        check_real(epsilon, "epsilon")
        # of a float this is the binary number itself: nothing is rounded here
        exact = Fraction(epsilon)
        if exact < 0:
            raise ValueError(f"epsilon must not be negative, got {epsilon!r}")
        object.__setattr__(self, "epsilon", exact)

    def __add__(self, other: object) -> PureCost:
        if not isinstance(other, PureCost):
            return NotImplemented
        return PureCost(self.epsilon + other.epsilon)


@dataclass(frozen=True)
class GaussianCost:
    r"""A price in Gaussian differential privacy. Addition rounds up.

    Within a total variation `distance` of what was done there is a mechanism that is :math:`\sqrt{2\rho}`-GDP; and what
    was done is rho-zCDP, without any exception.

    Parameters
    ----------
    rho : float
        Half of the square of mu, not negative.
    distance : float
        From 0 to 1.

    Examples
    --------
    >>> GaussianCost(0.5, 1e-18) + GaussianCost(0.25)
    GaussianCost(rho=0.75, distance=1e-18)
    >>> GaussianCost(0.5).mu
    1.0
    """

    rho: float
    distance: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.rho < float("inf"):
            raise ValueError(f"rho must be finite and not negative, got {self.rho!r}")
        if not 0.0 <= self.distance <= 1.0:
            raise ValueError(f"distance must lie between 0 and 1, got {self.distance!r}")

    @property
    def mu(self) -> float:
        """The mu of GDP, rounded up."""
        return square_root_up(2 * Fraction(self.rho))

    def __add__(self, other: object) -> GaussianCost:
        if not isinstance(other, GaussianCost):
            return NotImplemented
        # total variation never exceeds 1, and that says nothing
        distance = min(Fraction(self.distance) + Fraction(other.distance), Fraction(1))
        return GaussianCost(round_up(Fraction(self.rho) + Fraction(other.rho)), round_up(distance))


def cost(event: Event) -> Cost:
    """Return what `event` costs.

    Parameters
    ----------
    event : one of `fogline.accounting.events`

    Raises
    ------
    UnsupportedEvent
        When no cost is registered for exactly this type.

    Examples
    --------
    >>> cost(GaussianEvent(sensitivity=1.0, scale=2.0, count=4))
    Cost(rho=0.5, delta=0.0)
    >>> cost("a histogram, roughly")
    Traceback (most recent call last):
    fogline.accounting.costs.UnsupportedEvent: no cost is known for an event of type str
    """
    try:
        # by the exact type: a subclass may mean another mechanism
        function = _COSTS[type(event)]
    except KeyError:
        raise UnsupportedEvent(f"no cost is known for an event of type {type(event).__name__}") from None
    return function(event)


def registered_events() -> tuple[type, ...]:
    """Return the types of event that have a cost, in the order of registration.

    Examples
    --------
    >>> registered_events()[0].__name__
    'GaussianEvent'
    """
    return tuple(_COSTS)


_COSTS: dict[type, Callable[[Any], Cost]] = {}


def _costs(event: type[E]) -> Callable[[Callable[[E], Cost]], Callable[[E], Cost]]:
    """Register the cost function of one type of event."""

    def register(function: Callable[[E], Cost]) -> Callable[[E], Cost]:
        # a second cost would silently make what was published cheaper or dearer
        if event in _COSTS:
            raise ValueError(f"{event.__name__} has a cost already")
        _COSTS[event] = function
        return function

    return register


@_costs(GaussianEvent)
def _gaussian(event: GaussianEvent) -> Cost:
    """Charge sensitivity^2 / (2 scale^2) a time (Canonne, Kamath and Steinke 2020)."""
    ratio = Fraction(event.sensitivity) / Fraction(event.scale)
    return Cost(round_up(event.count * ratio**2 / 2))


@_costs(LaplaceEvent)
def _laplace(event: LaplaceEvent) -> Cost:
    """Charge epsilon^2 / 2 a time, with epsilon = sensitivity / scale."""
    return _pure(Fraction(event.sensitivity) / Fraction(event.scale), event.count)


@_costs(ExponentialEvent)
def _exponential(event: ExponentialEvent) -> Cost:
    """Charge epsilon^2 / 8 a time: bounded range (Cesar and Rogers 2021)."""
    return Cost(round_up(event.count * Fraction(event.epsilon) ** 2 / 8))


@_costs(AboveThresholdEvent)
def _above_threshold(event: AboveThresholdEvent) -> Cost:
    return _pure(Fraction(event.epsilon), event.count)


@_costs(StableHistogramEvent)
def _stable_histogram(event: StableHistogramEvent) -> Cost:
    """Charge epsilon^2 / 2 and delta a time: pure outside the event that a key of one unit shows."""
    delta = min(Fraction(1), event.count * Fraction(event.delta))
    return Cost(_pure(Fraction(event.epsilon), event.count).rho, round_up(delta))


@_costs(IntegralDrawEvent)
def _integral_draw(event: IntegralDrawEvent) -> Cost:
    """Charge epsilon^2 / 2 a draw: a draw is epsilon-DP under any relation of neighbours."""
    return _pure(Fraction(event.epsilon), event.count)


@_costs(ComposedEvent)
def _composed(event: ComposedEvent) -> Cost:
    return _total(cost(part) for part in event.parts)


@_costs(ParallelEvent)
def _parallel(event: ParallelEvent) -> Cost:
    """Charge the dearest part under add-remove and the two dearest under replace, in each component."""
    touched = 1 if event.neighbours == "add-remove" else 2
    costs = [cost(part) for part in event.parts]
    # rho and delta are bounded apart: the dearest part in one need not be the dearest in the other
    rhos = sorted((Fraction(part.rho) for part in costs), reverse=True)
    deltas = sorted((Fraction(part.delta) for part in costs), reverse=True)
    return _rounded(sum(rhos[:touched], Fraction(0)), sum(deltas[:touched], Fraction(0)))


def pure_cost(event: Event) -> PureCost:
    """Return what `event` costs in pure epsilon, exactly; refuse an event that is not known to be pure.

    What `cost` says of the same event stays as it is: whoever charges chooses one of the two.

    Parameters
    ----------
    event : LaplaceEvent, ExponentialEvent, AboveThresholdEvent or IntegralDrawEvent
        Or what is composed of these.

    Raises
    ------
    UnsupportedEvent
        For Gaussian noise and for stable histograms, which need a delta, and for unknown types.

    Examples
    --------
    >>> pure_cost(LaplaceEvent(sensitivity=1.0, scale=3.0, count=2))
    PureCost(epsilon=Fraction(2, 3))
    >>> pure_cost(GaussianEvent(sensitivity=1.0, scale=3.0))
    Traceback (most recent call last):
    fogline.accounting.costs.UnsupportedEvent: an event of type GaussianEvent is not known to be pure epsilon-DP
    """
    kind = type(event)
    # isinstance is for the type checker, `kind` for us: a subclass is unknown
    if isinstance(event, ComposedEvent) and kind is ComposedEvent:
        # pure epsilons add up however adaptively the parts were chosen
        return sum((pure_cost(part) for part in event.parts), PureCost(0))
    if isinstance(event, ParallelEvent) and kind is ParallelEvent:
        touched = 1 if event.neighbours == "add-remove" else 2
        dearest = sorted((pure_cost(part).epsilon for part in event.parts), reverse=True)[:touched]
        return PureCost(sum(dearest, Fraction(0)))
    try:
        epsilon = _PURE_EPSILONS[kind](event)
    except KeyError:
        raise UnsupportedEvent(f"an event of type {kind.__name__} is not known to be pure epsilon-DP") from None
    return PureCost(event.count * epsilon)  # type: ignore[union-attr]  # all in the table have a count


def gaussian_cost(event: Event, size: int = 1) -> GaussianCost:
    """Return what `event` costs in GDP; refuse an event that is not known to be GDP.

    Gaussian noise of scale s costs mu = sensitivity / sqrt(s^2 - 1/12), with the distance of discrete to rounded noise
    in each coordinate. A pure mechanism costs what `rho_of_pure` says of its epsilon, a time.

    Parameters
    ----------
    event : GaussianEvent, or one that `pure_cost` knows, not composed
    size : int
        Number of coordinates of a vector with Gaussian noise.

    Raises
    ------
    UnsupportedEvent
        For stable histograms, for what is composed, and for unknown types. Their zCDP is no GDP.

    Examples
    --------
    >>> gaussian_cost(GaussianEvent(sensitivity=1.0, scale=2.0**20), size=3).distance < 1.3e-27
    True
    >>> round(gaussian_cost(ExponentialEvent(0.01)).rho * 1e4, 3), cost(ExponentialEvent(0.01)).rho * 1e4
    (0.785, 0.125)
    """
    kind = type(event)
    if isinstance(event, GaussianEvent) and kind is GaussianEvent:
        # rounding adds 1/12: this is the variance of the Gaussian that the discrete one is compared with, rounded
        variance = Fraction(event.scale) ** 2 - Fraction(1, 12)
        distance = event.count * size * rounding_distance(event.scale)
        return GaussianCost(
            round_up(event.count * Fraction(event.sensitivity) ** 2 / (2 * variance)),
            round_up(min(distance, Fraction(1))),
        )
    try:
        epsilon = _PURE_EPSILONS[kind](event)
    except KeyError:
        raise UnsupportedEvent(f"an event of type {kind.__name__} is not known to be Gaussian-DP") from None
    return GaussianCost(round_up(event.count * rho_of_pure(epsilon)))  # type: ignore[union-attr]


_PURE_EPSILONS: dict[type, Callable[[Any], Fraction]] = {
    LaplaceEvent: lambda event: Fraction(event.sensitivity) / Fraction(event.scale),
    ExponentialEvent: lambda event: Fraction(event.epsilon),
    AboveThresholdEvent: lambda event: Fraction(event.epsilon),
    IntegralDrawEvent: lambda event: Fraction(event.epsilon),
}
"""The epsilon of one use of each mechanism that is pure, by the docstring of its event and the proof beside it."""


def _pure(epsilon: Fraction, count: int) -> Cost:
    """Charge epsilon^2 / 2 a time for pure epsilon-DP (Bun and Steinke 2016, Proposition 3.3)."""
    return Cost(round_up(count * epsilon**2 / 2))


def _total(costs: Iterable[Cost]) -> Cost:
    listed = list(costs)
    return _rounded(
        sum((Fraction(part.rho) for part in listed), Fraction(0)),
        sum((Fraction(part.delta) for part in listed), Fraction(0)),
    )


def _rounded(rho: Fraction, delta: Fraction) -> Cost:
    return Cost(round_up(rho), round_up(min(delta, Fraction(1))))


def gaussian_release(epsilon: float, delta: float) -> GaussianCost:
    """Return the price of one release of Gaussian noise that is (epsilon, delta)-DP by the analytic curve.

    Its rho is in whole units of a ledger, rounded down; its distance is one unit, and what that takes of delta is
    taken off before the curve is read.

    Parameters
    ----------
    epsilon, delta : float
        Such that `fogline.accounting.analytic_gaussian.suits` them.

    Examples
    --------
    >>> price = gaussian_release(1.0, 1e-5)
    >>> f"{price.distance:.3g}", round(1 / price.mu, 3)
    ('1e-18', 3.731)
    """
    if not suits(epsilon, delta):
        raise ValueError(f"delta must be larger beside epsilon = {epsilon!r} for the Gaussian curve, got {delta!r}")
    # down: what the distance takes of delta must not be promised twice
    left = round_down(Fraction(delta) - Fraction(slack_of(epsilon)))
    return GaussianCost(whole_units(rho_of(epsilon, left)), round_down(UNIT_DISTANCE))


def release_rho(epsilon: float, delta: float) -> float:
    """Return the rho of one release of Gaussian noise at (epsilon, delta) where no ledger pays: by the analytic curve.

    Where the curve does not suit them it is that of zCDP, as in a ledger whose lane is zCDP.

    Examples
    --------
    >>> release_rho(1.0, 1e-6) / zcdp.rho_of(1.0, 1e-6)
    1.15...
    >>> release_rho(30.0, 1e-6) == whole_units(zcdp.rho_of(30.0, 1e-6))
    True
    """
    return gaussian_release(epsilon, delta).rho if suits(epsilon, delta) else whole_units(zcdp.rho_of(epsilon, delta))


def exact_units(value: Fraction | float) -> Fraction:
    """Return the largest number of whole units of a ledger up to `value`; below one unit, `value` unchanged.

    Examples
    --------
    >>> exact_units(0.1), Fraction(0.1) == Fraction(1, 10)
    (Fraction(1, 10), False)
    """
    exact = Fraction(value)
    # int cuts toward zero, which is down here
    units = int(exact * RHO_UNITS)
    return Fraction(units, RHO_UNITS) if units else exact


def whole_units(rho: float) -> float:
    """Return the largest rho up to `rho` that a ledger charges as itself; below one unit, `rho` unchanged.

    Costs round up to units and caps round down: a release that costs exactly a whole cap would otherwise be refused,
    by one unit.

    Examples
    --------
    >>> whole_units(0.1234567890123456)
    0.123456789012
    """
    return round_down(exact_units(rho))
