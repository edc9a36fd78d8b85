"""Integral privacy as a budget: draws add up, groups cost nothing, and there is one conversion."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.accounting import Guarantee, IntegralBudget, IntegralDrawEvent, IntegralGuarantee, cost
from fogline.ledger import Caps, Charge, IntegralCost
from fogline.ledger.accounts import Account, Place

epsilons = st.floats(1e-6, 50.0)


@given(epsilons, st.integers(1, 10_000))
def test_shares_never_add_up_to_more(epsilon, draws):
    budget = IntegralBudget(epsilon)
    share = budget.share(draws)
    assert Fraction(share.epsilon) * draws <= Fraction(epsilon)
    assert Fraction(budget.repeated(draws).epsilon) >= draws * Fraction(epsilon)
    assert share.repeated(draws).epsilon == pytest.approx(epsilon)


@given(st.lists(epsilons, min_size=1, max_size=6))
def test_composition_is_a_sum(parts):
    first, *rest = (IntegralBudget(part) for part in parts)
    total = Fraction(first.compose(*rest).epsilon)
    assert sum(map(Fraction, parts)) <= total <= sum(map(Fraction, parts)) * (1 + Fraction(1, 2**50))


def test_it_converts_to_pure_differential_privacy_and_to_nothing_else():
    budget = IntegralBudget(0.3)
    assert budget.differential_privacy == budget.group_epsilon(10**9) == 0.3
    conversions = [name for name in dir(budget) if any(word in name for word in ("rho", "gdp", "mu", "delta", "zcdp"))]
    assert not conversions
    assert cost(budget.event(8)).rho == pytest.approx(8 * 0.3**2 / 2)
    assert cost(IntegralDrawEvent(1.0)).delta == 0.0


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), float("nan"), None, "1"])
def test_bad_budgets_name_epsilon(bad):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        IntegralBudget(bad)


def test_the_guarantee_says_per_draw_and_in_all():
    promise = IntegralGuarantee.of(0.5, draws=10, mechanism="draws", proof="mechanisms/mollified_draws.proof.md")
    assert isinstance(promise, Guarantee)
    assert (promise.epsilon, promise.per_draw, promise.delta, promise.certified) == (5.0, 0.5, 0.0, True)
    assert "exp(0.5)" in str(promise)
    assert "all 10 draws" in str(promise)
    assert "exp(5)" in str(promise)
    assert "hospital" in promise.explain()
    assert IntegralGuarantee.from_dict(promise.to_dict()) == promise
    one = IntegralGuarantee.of(0.5, draws=1, mechanism="", proof="a.proof.md", reason="a seed")
    assert str(one).startswith("Not certified (a seed)")
    assert "together" not in str(one)


def test_a_guarantee_that_states_less_than_the_sum_is_refused():
    values = IntegralGuarantee.of(0.5, draws=10, mechanism="draws", proof="a.proof.md").to_dict()
    with pytest.raises(ValueError, match="all draws"):
        IntegralGuarantee.from_dict({**values, "epsilon": 0.5})


def test_parts_of_a_partition_add_up():
    """A change of all records reaches every part; only neighbours are in one part."""
    account = Account(Caps(epsilon=1.0, delta=1e-6, integral=3.0))
    charge = Charge.of(IntegralCost(1.0))
    for part in ("f", "m"):
        account.add(charge, Place("patients", "add-remove", ("sex", part)))
    assert account.spent("integral")[0] == 2 * charge.amount
    assert account.after(charge, Place("patients", "add-remove", ("sex", "f")))[0] == 3 * charge.amount
    zcdp = Charge("zcdp", 7)
    for part in ("f", "m"):
        account.add(zcdp, Place("patients", "add-remove", ("sex", part)))
    assert account.spent("zcdp")[0] == 7
