"""Laws of cost that every registered event must obey, and the numbers against dp_accounting."""

import dataclasses
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
    IntegralDrawEvent,
    LaplaceEvent,
    ParallelEvent,
    StableHistogramEvent,
    UnsupportedEvent,
    cost,
)
from fogline.accounting.costs import registered_events

pytestmark = pytest.mark.quick

EXAMPLES = {
    GaussianEvent: GaussianEvent(1.3, 7.7),
    LaplaceEvent: LaplaceEvent(1.0, 3.0),
    ExponentialEvent: ExponentialEvent(0.3),
    AboveThresholdEvent: AboveThresholdEvent(0.7),
    StableHistogramEvent: StableHistogramEvent(0.7, 1e-7),
    IntegralDrawEvent: IntegralDrawEvent(0.4),
    ComposedEvent: ComposedEvent((GaussianEvent(1.0, 3.0), StableHistogramEvent(0.1, 1e-9))),
    ParallelEvent: ParallelEvent((GaussianEvent(1.0, 3.0), LaplaceEvent(1.0, 9.0)), "replace"),
}
COUNTED = [kind for kind in registered_events() if "count" in {f.name for f in dataclasses.fields(kind)}]


def test_every_registered_event_has_an_example_here():
    assert set(EXAMPLES) == set(registered_events())
    assert len(COUNTED) >= 5


@pytest.mark.parametrize("kind", COUNTED)
@pytest.mark.parametrize("k", [1, 2, 7, 100])
def test_count_k_costs_what_k_calls_cost(kind, k):
    once = EXAMPLES[kind]
    together = cost(dataclasses.replace(once, count=k))
    one_by_one = cost(ComposedEvent((once,) * k))
    added = Cost(0.0)
    for _ in range(k):
        added = added + cost(once)
    for total in (one_by_one, added):
        assert together.rho <= total.rho <= together.rho * (1 + 1e-13)
        assert together.delta <= total.delta <= together.delta * (1 + 1e-13)


@pytest.mark.parametrize("kind", registered_events())
def test_nothing_is_free(kind):
    assert cost(EXAMPLES[kind]).rho > 0


@pytest.mark.parametrize("kind", registered_events())
def test_parallel_and_composed_of_one_part_cost_that_part(kind):
    part = EXAMPLES[kind]
    assert cost(ComposedEvent((part,))) == cost(part)
    assert cost(ParallelEvent((part,), "add-remove")) == cost(part)
    assert cost(ParallelEvent((part,), "replace")) == cost(part)


def test_parallel_takes_the_maximum_or_the_two_largest():
    parts = (GaussianEvent(1.0, 2.0), LaplaceEvent(1.0, 1.0), StableHistogramEvent(0.5, 1e-6))
    assert cost(ParallelEvent(parts, "add-remove")) == Cost(0.5, 1e-6)
    assert cost(ParallelEvent(parts, "replace")) == Cost(0.625, 1e-6)
    twice = (
        StableHistogramEvent(1.0, 1e-6),
        StableHistogramEvent(1.0, 2e-6),
        StableHistogramEvent(1.0, 3e-6),
    )
    assert cost(ParallelEvent(twice, "replace")).delta == pytest.approx(5e-6)


def test_known_prices():
    assert cost(GaussianEvent(1.0, 1.0)) == Cost(0.5)
    assert cost(LaplaceEvent(1.0, 2.0)) == Cost(0.125)
    assert cost(ExponentialEvent(1.0)) == Cost(0.125)
    assert cost(AboveThresholdEvent(1.0)) == Cost(0.5)
    assert cost(StableHistogramEvent(1.0, 1e-6)) == Cost(0.5, 1e-6)
    assert cost(ComposedEvent(())) == Cost(0.0)


def test_a_subclass_or_a_stranger_is_unsupported():
    class Odd(GaussianEvent):
        pass

    for stranger in (Odd(1.0, 1.0), object(), None, ComposedEvent((object(),))):
        with pytest.raises(UnsupportedEvent, match="no cost is known"):
            cost(stranger)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 1000))
def test_rounded_up_and_by_less_than_two_units(sensitivity, scale, count):
    exact = count * (Fraction(sensitivity) / Fraction(scale)) ** 2 / 2
    charged = Fraction(cost(GaussianEvent(sensitivity, scale, count)).rho)
    assert exact <= charged <= exact * (1 + Fraction(1, 2**51))


@given(st.floats(0, 10), st.floats(0, 10), st.floats(0, 0.5), st.floats(0, 0.5))
def test_addition_rounds_up(a, b, c, d):
    total = Cost(a, c) + Cost(b, d)
    assert Fraction(total.rho) >= Fraction(a) + Fraction(b)
    assert Fraction(total.delta) >= Fraction(c) + Fraction(d)
    assert total == Cost(b, d) + Cost(a, c)


def test_bad_costs_and_events():
    for bad in [{"rho": -1.0}, {"rho": float("nan")}, {"rho": float("inf")}, {"rho": 1.0, "delta": 2.0}]:
        with pytest.raises(ValueError, match=r"rho|delta"):
            Cost(**bad)
    with pytest.raises(TypeError):
        Cost(1.0) + 1.0
    with pytest.raises(ValueError, match="scale"):
        GaussianEvent(1.0, 0.0)
    with pytest.raises(ValueError, match="count"):
        LaplaceEvent(1.0, 1.0, count=0)
    with pytest.raises(TypeError, match="tuple"):
        ComposedEvent([GaussianEvent(1.0, 1.0)])
    with pytest.raises(ValueError, match="neighbours"):
        ParallelEvent((), "both")


def test_agrees_with_dp_accounting():
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import RdpAccountant

    orders = [1.5, 2.0, 4.0, 16.0, 64.0]

    def rdp(event, times):
        accountant = RdpAccountant(orders=orders)
        for _ in range(times):  # a loop: some of its events ignore `count`
            accountant.compose(event)
        return accountant._rdp

    for ours, theirs in [
        (GaussianEvent(1.0, 3.0, count=5), rdp(dp.GaussianDpEvent(3.0), 5)),
        (LaplaceEvent(1.0, 4.0, count=5), rdp(dp.LaplaceDpEvent(4.0), 5)),
    ]:
        bound = [order * cost(ours).rho for order in orders]
        assert all(b >= t * (1 - 1e-12) for b, t in zip(bound, theirs, strict=True))
    assert 1.5 * cost(GaussianEvent(1.0, 3.0, count=5)).rho == pytest.approx(rdp(dp.GaussianDpEvent(3.0), 5)[0])
