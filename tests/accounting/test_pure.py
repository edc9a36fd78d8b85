"""Pure epsilon: exact sums, events that are pure and events that are not, and guarantees without a delta."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.accounting import (
    AboveThresholdEvent,
    ComposedEvent,
    Cost,
    ExponentialEvent,
    GaussianEvent,
    Guarantee,
    IntegralDrawEvent,
    LaplaceEvent,
    ParallelEvent,
    PureCost,
    StableHistogramEvent,
    UnsupportedEvent,
    cost,
    pure_cost,
)
from fogline.accounting.cautions import budget_cautions, delta_caution, release_cautions
from fogline.accounting.costs import RHO_UNITS, exact_units, whole_units

pytestmark = pytest.mark.quick

PURE = [
    (LaplaceEvent(1.0, 3.0), Fraction(1, 3)),
    (LaplaceEvent(2.0, 3.0, count=5), Fraction(10, 3)),
    (ExponentialEvent(0.25, count=3), Fraction(3, 4)),
    (AboveThresholdEvent(0.5), Fraction(1, 2)),
    (IntegralDrawEvent(0.125, count=4), Fraction(1, 2)),
]


@given(st.lists(st.floats(0, 1e6), max_size=20))
def test_sums_are_exact(epsilons):
    total = sum((PureCost(epsilon) for epsilon in epsilons), PureCost(0))
    assert total.epsilon == sum(map(Fraction, epsilons), Fraction(0))


@pytest.mark.parametrize(("event", "epsilon"), PURE)
def test_pure_events_cost_their_epsilon_exactly(event, epsilon):
    assert pure_cost(event) == PureCost(epsilon)


def test_composition_adds_and_parallel_takes_the_dearest():
    events = tuple(event for event, _ in PURE)
    epsilons = sorted((epsilon for _, epsilon in PURE), reverse=True)
    assert pure_cost(ComposedEvent(events)).epsilon == sum(epsilons)
    assert pure_cost(ParallelEvent(events, "add-remove")).epsilon == epsilons[0]
    assert pure_cost(ParallelEvent(events, "replace")).epsilon == epsilons[0] + epsilons[1]
    assert pure_cost(ComposedEvent(())) == PureCost(0)


@pytest.mark.parametrize(("event", "epsilon"), PURE)
def test_the_zcdp_of_a_pure_event_is_not_above_half_its_square(event, epsilon):
    """Both statements are of the same mechanism, and the old one stays what it was."""
    assert Fraction(cost(event).rho) <= epsilon**2 / 2 * (1 + Fraction(1, 2**50))


def test_what_needs_a_delta_is_not_pure():
    class Odd(LaplaceEvent):
        pass

    gaussian, histogram = GaussianEvent(1.0, 3.0), StableHistogramEvent(0.5, 1e-9)
    within = (ComposedEvent((LaplaceEvent(1.0, 1.0), gaussian)), ParallelEvent((histogram,), "replace"))
    for event in (gaussian, histogram, *within, Odd(1.0, 1.0), None):
        with pytest.raises(UnsupportedEvent, match="not known to be pure"):
            pure_cost(event)


@pytest.mark.parametrize("bad", [-1.0, Fraction(-1, 10**30), float("nan"), float("inf"), "1", None, True])
def test_costs_that_make_no_sense(bad):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        PureCost(bad)


def test_the_currencies_are_not_added():
    for left, right in ((PureCost(1), Cost(1.0)), (Cost(1.0), PureCost(1))):
        with pytest.raises(TypeError):
            left + right


@given(st.floats(1e-15, 1e3))
def test_whole_units_are_the_exact_ones_rounded_down(value):
    exact = exact_units(value)
    assert exact <= Fraction(value)
    assert Fraction(value) - exact < Fraction(1, RHO_UNITS)
    assert Fraction(whole_units(value)) <= exact


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("reason", ["", "a seed"])
def test_a_pure_guarantee_prints_explains_and_reloads(neighbours, reason):
    guarantee = Guarantee.certified_release(
        epsilon=0.5, delta=0.0, neighbours=neighbours, mechanism="Laplace noise", proof="laplace-noise", reason=reason
    )
    assert "exp(0.5) = 1.65, without exception: epsilon-DP (pure), by Laplace noise." in str(guarantee)
    assert "rho" not in str(guarantee)
    assert "without exception" in guarantee.explain()
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


def test_a_pure_guarantee_may_state_its_rho_too():
    stated = Guarantee.certified_release(
        epsilon=1.0, delta=0.0, rho=0.5, neighbours="replace", mechanism="", proof="laplace-noise"
    )
    assert str(stated).endswith("epsilon-DP (pure) (rho = 0.5).")


def test_cautions_without_a_delta():
    assert budget_cautions(1.0, 0.0) == release_cautions(1.0, 0.0, 500.0) == ()
    assert delta_caution(0.0, 1e9) == delta_caution(0.0, 0.0) == ""
    assert [words.partition(" is")[0] for words in release_cautions(11.0, 0.0, 0.0)] == ["epsilon = 11"]
