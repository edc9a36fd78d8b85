"""Budgets and the exact algebra of their shares."""

import dataclasses
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.accounting import Budget
from fogline.accounting.zcdp import epsilon_of

pytestmark = pytest.mark.quick


@given(st.floats(1e-6, 100.0), st.lists(st.integers(1, 1000), min_size=1, max_size=8))
def test_shares_sum_exactly(rho, weights):
    budget, total = Budget(rho=rho), sum(weights)
    shares = budget.split(**{f"part{i}": Fraction(w, total) for i, w in enumerate(weights)})
    assert sum(share.exact for share in shares.values()) == budget.exact == Fraction(rho)
    assert sum(Fraction(share.rho) for share in shares.values()) <= Fraction(rho)
    assert [share.portion for share in shares.values()] == [Fraction(w, total) for w in weights]


def test_strings_decimals_and_nested_shares():
    budget = Budget(rho=0.3)
    shares = budget.split(a="1/3", b=0.1, c=Fraction(17, 30))
    inner = shares["a"].split(x=0.5, y="1/2")
    assert inner["x"].exact + inner["y"].exact == shares["a"].exact
    assert repr(shares) == "Shares(a=1/3, b=1/10, c=17/30)"
    assert len(shares) == 3
    assert hash(shares) == hash(budget.split(a="1/3", b=0.1, c=Fraction(17, 30)))


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"a": "1/3", "b": "1/3"}, "sum to exactly 1"),
        ({"a": 0.1, "b": 0.91}, "sum to exactly 1"),
        ({}, "sum to exactly 1"),
        ({"a": "3/2", "b": "-1/2"}, "'b' must be greater than 0"),
        ({"a": "much"}, "'a' must be a number"),
        ({"a": "1/0"}, "'a' must be a number"),
        ({"a": float("nan")}, "'a' must be a number"),
        ({"a": True}, "'a' must be an int"),
        ({"a": None}, "'a' must be an int"),
    ],
)
def test_bad_shares(shares, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Budget(rho=1.0).split(**shares)


def test_budget_of_epsilon_and_delta_is_the_largest_safe_rho():
    budget = Budget(epsilon=2.0, delta=1e-6)
    assert epsilon_of(budget.rho, 1e-6) <= 2.0 < epsilon_of(budget.rho * 1.0000001, 1e-6)


def test_bad_budgets_and_frozen():
    for bad in [
        {},
        {"epsilon": 1.0},
        {"delta": 1e-6},
        {"epsilon": 1.0, "delta": 1e-6, "rho": 1.0},
        {"rho": -1.0},
        {"epsilon": float("inf"), "delta": 1e-6},
    ]:
        with pytest.raises((TypeError, ValueError), match=r"epsilon|delta|rho"):
            Budget(**bad)
    budget = Budget(rho=1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.rho = 2.0
    with pytest.raises(TypeError):
        budget.split(a=1)["b"] = 1
