"""The conversions of zCDP: optimal, consistent with each other, and rounded in the safe direction."""

import math
import time

import gdp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.accounting.zcdp import delta_of, epsilon_of, rho_of

pytestmark = pytest.mark.quick

epsilons = st.floats(math.log(1e-4), math.log(50)).map(math.exp)
deltas = st.floats(math.log(1e-15), math.log(0.5)).map(math.exp)
rhos = st.floats(math.log(1e-9), math.log(50)).map(math.exp)


def log_delta_at(order_minus_one: float, rho: float, epsilon: float) -> float:
    """The bound of one Renyi order, as printed in Canonne, Kamath and Steinke."""
    alpha = 1 + order_minus_one
    return (alpha - 1) * (alpha * rho - epsilon) - math.log(alpha - 1) + alpha * math.log1p(-1 / alpha)


@given(epsilons, deltas)
@settings(max_examples=300, deadline=None)
def test_round_trip_stays_within_the_budget_and_is_sharp(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert rho > 0
    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho * (1 + 1e-7), delta) > epsilon
    assert delta_of(rho, epsilon) == pytest.approx(delta, rel=1e-9)


@given(rhos, deltas)
@settings(max_examples=200, deadline=None)
def test_no_order_of_a_fine_grid_does_better(rho, delta):
    epsilon = epsilon_of(rho, delta)
    orders = [10 ** (k / 20) for k in range(-80, 240)]
    if epsilon > 0:
        best = min(log_delta_at(t, rho, epsilon * (1 - 1e-6) - 1e-12) for t in orders)
        assert best >= math.log(delta) - 1e-9


@given(rhos, deltas)
@settings(max_examples=100, deadline=None)
def test_epsilon_grows_with_rho_and_shrinks_with_delta(rho, delta):
    assert epsilon_of(rho, delta) <= epsilon_of(rho * 1.01, delta)
    assert epsilon_of(rho, delta) >= epsilon_of(rho, min(0.9, delta * 1.01))


def test_known_value_of_the_design():
    assert math.sqrt(2 * rho_of(1.0, 1e-5)) == pytest.approx(0.247, abs=5e-4)


def test_better_than_the_simple_formula_and_no_better_than_the_gaussian_itself():
    for rho, delta in [(0.01, 1e-6), (0.5, 1e-5), (5.0, 1e-9)]:
        simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
        assert gdp.epsilon_of(gdp.mu_of_rho(rho), delta) < epsilon_of(rho, delta) < simple


@pytest.mark.parametrize("rho", [0.001, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-2])
def test_agrees_with_dp_accounting(rho, delta):
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=[1 + 10 ** (k / 200) for k in range(-400, 800)])
    accountant.compose(dp.ZCDpEvent(rho))
    oracle = accountant.get_epsilon(delta)
    assert epsilon_of(rho, delta) == pytest.approx(oracle, rel=1e-4)
    assert epsilon_of(rho, delta) <= oracle * (1 + 1e-12)


def test_rounding_is_safe_against_high_precision():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    for rho, delta in [(1e-10, 1e-15), (0.38, 0.5), (0.03, 1e-5), (40.0, 1e-12)]:
        epsilon = mpmath.mpf(epsilon_of(rho, delta))

        def log_bound(t, rho=rho, epsilon=epsilon):
            return t * ((t + 1) * rho - epsilon) - mpmath.log(t) + (t + 1) * mpmath.log(t / (t + 1))

        low, high = mpmath.mpf(10) ** -9, mpmath.mpf(10) ** 16
        for _ in range(400):  # the bound is convex in t: ternary search in the logarithm
            a, b = (
                low ** (2 / mpmath.mpf(3)) * high ** (1 / mpmath.mpf(3)),
                low ** (1 / mpmath.mpf(3)) * high ** (2 / mpmath.mpf(3)),
            )
            low, high = (low, b) if log_bound(a) < log_bound(b) else (a, high)
        assert log_bound(low) <= mpmath.log(mpmath.mpf(delta))


def test_edges():
    assert epsilon_of(0.0, 1e-6) == 0.0
    assert delta_of(0.0, 1.0) == 0.0
    assert delta_of(100.0, 0.1) <= 1.0
    assert delta_of(1e-300, 1e-5) == 1.0  # beyond floating point: says nothing rather than too much
    assert epsilon_of(1e-30, 1e-6) == 0.0  # total variation below delta
    assert rho_of(1e-4, 1e-300) > 0
    assert rho_of(1e3, 1e-5) < 1e3
    for bad in [-1.0, math.nan, math.inf, "1", None, True]:
        with pytest.raises((ValueError, TypeError), match="rho"):
            epsilon_of(bad, 1e-6)
        with pytest.raises((ValueError, TypeError), match="epsilon"):
            rho_of(bad, 1e-6)
        with pytest.raises((ValueError, TypeError), match="delta"):
            rho_of(1.0, bad)


def test_fast_enough_to_call_freely():
    start = time.process_time()
    for _ in range(200):
        rho_of(1.0, 1e-5)
    assert (time.process_time() - start) / 200 < 2e-3
