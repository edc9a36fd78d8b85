"""One budget in any currency."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.accounting import Budget, GaussianBudget, GaussianEvent, HellingerBudget, cost, zcdp
from fogline.accounting.budget import STATED_DELTA
from fogline.mechanisms import add_gaussian, gaussian_scale


def test_epsilon_and_delta_are_stated_as_given():
    budget = GaussianBudget.of(epsilon=1.0, delta=1e-6)
    assert (budget.epsilon, budget.delta, budget.statement) == (1.0, 1e-6, "")
    assert 0 <= Budget(epsilon=1.0, delta=1e-6).rho - budget.rho < 1e-12
    assert zcdp.epsilon_of(budget.rho, 1e-6) <= 1.0


def test_rho_is_stated_at_a_delta():
    budget = GaussianBudget.of(rho=0.1, delta=1e-9)
    assert budget.epsilon == zcdp.epsilon_of(budget.rho, 1e-9)
    assert GaussianBudget.of(rho=0.1).delta == STATED_DELTA
    assert GaussianBudget.of(rho=0.1).rho == budget.rho == pytest.approx(0.1)


@given(st.floats(1e-3, 1.9), st.sampled_from([1.0, 10.0, 2.0**22]))
def test_a_release_at_this_rho_is_within_the_hdp(hdp, sensitivity):
    budget = GaussianBudget.of(hdp=hdp, sensitivity=sensitivity)
    scale = gaussian_scale(sensitivity, budget.rho)
    spent = cost(GaussianEvent(sensitivity=sensitivity, scale=scale)).rho
    assert spent <= budget.rho
    assert HellingerBudget.of_gaussian(spent, sensitivity=sensitivity).epsilon <= hdp


def test_hdp_and_pdp_agree():
    by_hdp = GaussianBudget.of(hdp=0.2, sensitivity=100.0)
    by_pdp = GaussianBudget.of(pdp=(-0.5, 0.4), sensitivity=100.0)
    assert by_hdp.rho == by_pdp.rho
    assert by_hdp.statement == "0.2-HDP"
    assert by_pdp.statement == "(-0.5, 0.4)-PDP"
    assert GaussianBudget.of(pdp=[1, 0.4]).statement == "(1, 0.4)-PDP"
    # A weak promise in the usual language, which the docs say.
    assert 3.9 < by_hdp.epsilon < 4.4


def test_the_mechanism_takes_the_rho():
    budget = GaussianBudget.of(hdp=0.2)
    released = add_gaussian(lambda: np.array([5, 5]), size=2, sensitivity=1.0, rho=budget.rho)
    assert cost(released.event).rho <= budget.rho


@pytest.mark.parametrize(
    "given_",
    [
        {"epsilon": 1.0, "delta": 1e-6, "hdp": 0.2},
        {"epsilon": 1.0, "rho": 0.2},
        {"rho": 0.1, "pdp": (1.0, 0.1)},
        {"hdp": 0.1, "pdp": (1.0, 0.1)},
    ],
)
def test_two_currencies_at_once(given_):
    with pytest.raises(TypeError, match="one currency") as caught:
        GaussianBudget.of(**given_)
    assert all(name in str(caught.value) for name in given_ if name != "delta")


@pytest.mark.parametrize(
    ("given_", "name"),
    [
        ({}, "budget must be given"),
        ({"delta": 1e-6}, "budget must be given"),
        ({"epsilon": 1.0}, "delta"),
        ({"epsilon": math.inf, "delta": 1e-6}, "epsilon"),
        ({"rho": 0.0}, "rho"),
        ({"rho": 0.1, "delta": 2.0}, "delta"),
        ({"hdp": 2.0}, "hdp"),
        ({"hdp": "0.2"}, "hdp"),
        ({"pdp": 0.2}, "pdp"),
        ({"pdp": (1.0,)}, "pdp"),
        ({"pdp": "12"}, "pdp"),
        ({"pdp": (math.nan, 1.0)}, "power"),
    ],
)
def test_bad_budgets(given_, name):
    with pytest.raises((ValueError, TypeError), match=name):
        GaussianBudget.of(**given_)


def test_a_statement_says_exactly_what_was_asked_for():
    above, below = math.nextafter(0.3, 1.0), math.nextafter(2.0, 0.0)
    assert GaussianBudget.of(hdp=above).statement == "0.30000000000000004-HDP"
    assert float(GaussianBudget.of(hdp=below).statement.removesuffix("-HDP")) == below
    assert GaussianBudget.of(pdp=(1.0, above)).statement == "(1, 0.30000000000000004)-PDP"
