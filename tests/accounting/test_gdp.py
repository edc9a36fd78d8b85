"""Gaussian differential privacy against its definition and against dp_accounting."""

import math

import gdp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@given(st.floats(0.05, 8.0), st.floats(0.01, 20.0))
@settings(max_examples=100, deadline=None)
def test_delta_decreases_with_epsilon_and_grows_with_mu(mu, epsilon):
    delta = gdp.delta_of(mu, epsilon)
    assert 0 <= delta < 1
    assert gdp.delta_of(mu, 1.1 * epsilon) <= delta <= gdp.delta_of(1.1 * mu, epsilon)


@given(st.floats(0.05, 8.0), st.floats(1e-12, 0.3))
@settings(max_examples=100, deadline=None)
def test_inverses(mu, delta):
    epsilon = gdp.epsilon_of(mu, delta)
    if epsilon > 1e-6:
        assert gdp.delta_of(mu, epsilon) == pytest.approx(delta, rel=1e-6)
        assert gdp.mu_of(epsilon, delta) == pytest.approx(mu, rel=1e-6)


def test_total_variation_and_rho():
    assert gdp.delta_of(2.0, 0.0) == pytest.approx(math.erf(1 / math.sqrt(2)))
    assert gdp.epsilon_of(0.001, 0.1) == 0.0
    assert gdp.rho_of_mu(gdp.mu_of_rho(0.3)) == pytest.approx(0.3)
    assert gdp.mu_of(1.0, 1e-5) == pytest.approx(0.268, abs=5e-4)


def test_agrees_with_the_analytic_gaussian_of_dp_accounting():
    module = pytest.importorskip("dp_accounting.gaussian_mechanism", reason="oracle")
    for mu, delta in [(0.268, 1e-5), (1.0, 1e-6), (3.0, 1e-9)]:
        oracle = module.get_epsilon_gaussian(1 / mu, delta)
        assert gdp.epsilon_of(mu, delta) == pytest.approx(oracle, rel=1e-6)


@pytest.mark.parametrize("function", [gdp.mu_of_rho, gdp.rho_of_mu])
def test_bad_input(function):
    with pytest.raises(ValueError, match="greater than 0"):
        function(0.0)
