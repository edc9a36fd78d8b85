"""Pure epsilon and rho under one cap: what is let in is within it, and missing guards are noticed."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger import reference

from fogline.accounting import Cost, PureCost
from fogline.ledger import BudgetExceeded, Caps, Charge
from fogline.ledger import accounts as books
from fogline.ledger import caps as limits
from fogline.ledger import shared_cap as sharing
from fogline.ledger.accounts import FORMAT, Account, Accounts, Place, chain
from fogline.ledger.ledger import dataset_declaration
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS, SharedCap, Spending
from fogline.ledger.view import planned, remaining

pytestmark = pytest.mark.quick

WHOLE = Place("x", "add-remove")


class Books:
    """The books of a ledger without its file."""

    def __init__(self, epsilon, delta, neighbours="add-remove"):
        self.accounts, self.neighbours, self.cap = Accounts(), neighbours, (epsilon, delta)
        self.history, self.number = [], 0
        self.append({"kind": "genesis", "ledger": "a" * 32, "format": FORMAT})
        self.append(dataset_declaration("x", "1", neighbours, Caps(epsilon, delta)))
        self.append({"kind": "partition", "dataset": "x", "partition": "p", "parts": list("abc")})

    def append(self, content):
        self.accounts.begin_group()
        text = self.accounts.compose(content, "2024")
        self.accounts.apply(self.accounts.next_seq, text, chain(self.accounts.tip, text))

    def ask(self, cost, part=None):
        """Say whether a release is let in; note it, if it is."""
        charge, pair = Charge.of(cost), None if part is None else ("p", part)
        self.number += 1
        asked = {"dataset": "x", "parameters": {"number": self.number}, "code_version": "1"}
        content = {"kind": "reserve", "question": str(self.number), "asked": asked, "currency": charge.currency}
        content |= {"amount": charge.amount, "delta": charge.delta, "analyst": None, "unit": None}
        content["partition"] = None if pair is None else list(pair)
        try:
            content = self.accounts.reservation(charge, Place("x", self.neighbours, pair), None, content)
        except BudgetExceeded:
            return False
        self.append(content)
        spent = Fraction(charge.amount, UNITS), Fraction(charge.delta, DELTA_UNITS)
        self.history.append((charge.currency, *spent, pair))
        return True

    @property
    def excess(self):
        return reference.excess(self.history, self.neighbours, *self.cap)


amounts = st.one_of(st.floats(1e-13, 1e-3), st.floats(1e-3, 1.0))
releases = st.one_of(
    st.builds(PureCost, amounts),
    st.builds(lambda epsilon: Cost(epsilon**2 / 8), amounts),
    st.builds(lambda rho, delta: Cost(rho, delta), st.floats(0, 0.01), st.floats(1e-12, 1e-6)),
)
asked = st.lists(st.tuples(releases, st.sampled_from([None, None, "a", "b", "c"])), min_size=1, max_size=25)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 6.0), st.sampled_from([0.0, 1e-9, 1e-6, 1e-3]), asked)
def test_what_is_let_in_is_within_the_cap(neighbours, epsilon, delta, listed):
    made = Books(epsilon, delta, neighbours)
    for cost, part in listed:
        if made.ask(cost, part):
            assert made.excess <= 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.fractions(Fraction(1, 1000), 1), min_size=1, max_size=30), st.sampled_from([0.0, 1e-6]))
def test_pure_releases_alone_fill_the_cap_to_the_last_unit(epsilons, delta):
    made, total = Books(1.0, delta), Fraction(0)
    for epsilon in epsilons:
        price = Fraction(math.ceil(epsilon * UNITS), UNITS)
        assert made.ask(PureCost(epsilon)) == (total + price <= 1)
        total = sum((spent[1] for spent in made.history), Fraction(0))


@pytest.mark.parametrize("cap", [0.3, 0.7, 1.1])
def test_tenths_add_up_as_people_count_them(cap):
    made = Books(cap, 0.0)
    tenth = PureCost(Fraction(1, 10))
    assert [made.ask(tenth) for _ in range(round(10 * cap) + 1)] == [True] * round(10 * cap) + [False]


@given(st.floats(0.01, 0.99), st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_pure_first_leaves_rho_the_rest_of_the_cap(portion, delta):
    epsilon = Fraction(math.ceil(portion * 10**6), 10**6)
    account = Account(Caps(1.0, delta))
    account.add(Charge.of(PureCost(epsilon)), WHOLE)
    rest = float(1 - epsilon)
    if rest > 0:
        alone = SharedCap(rest, delta).rho_budget(Spending())
        assert account.budget("zcdp", 0)[0] == pytest.approx(alone, rel=1e-9, abs=2)


@given(st.floats(0.1, 5.0), st.sampled_from([1e-9, 1e-6, 1e-2]), st.floats(0, 1), st.floats(0, 1))
def test_both_budgets_are_one_rule(epsilon, delta, before, portion):
    """A unit of one currency is let in exactly where the rule, read for the other, still holds with it."""
    cap = SharedCap(epsilon, delta)
    first = int(before * cap.units * 0.9)
    spent = Spending(first, first, 0, 0)
    rho = int(portion * cap.rho_budget(spent))
    pure = cap.pure_budget(replace(spent, rho=rho)) if rho else first
    full = Spending(pure, first, rho, 0)
    assert rho <= cap.rho_budget(full)
    if rho:
        assert rho > cap.rho_budget(replace(full, pure=pure + 1))
        assert cap.pure_budget(replace(full, rho=cap.rho_budget(full))) >= pure


@given(st.floats(1e-3, 50), st.floats(1e-12, 0.1), st.floats(0, 0.999))
def test_without_pure_entries_a_cap_allows_what_it_always_did(epsilon, delta, portion):
    from fogline.accounting._rounding import round_down
    from fogline.accounting.zcdp import rho_of

    spent = int(Fraction(delta) * Fraction(portion) * DELTA_UNITS)
    left = round_down(Fraction(delta) - Fraction(spent, DELTA_UNITS))
    assert Caps(epsilon, delta).budget("zcdp", spent)[0] == math.floor(Fraction(rho_of(epsilon, left)) * UNITS)


def test_a_delta_that_is_spent_lessens_neither_pure_nor_more_than_its_share():
    account = Account(Caps(1.0, 1e-6))
    account.add(Charge("zcdp", 0, DELTA_UNITS // 10**6 - 1), WHOLE)
    assert account.budget("pure", 0)[0] == UNITS
    account.add(Charge("pure", UNITS), WHOLE)
    assert account.budget("zcdp", 0)[0] == 0


def test_plans_and_what_is_left_know_both_currencies():
    account = Account(Caps(1.0, 1e-6))
    half = Charge.of(PureCost(Fraction(1, 2)))
    plan = planned([account], half, WHOLE)
    assert (plan.fits, plan.times) == (True, 2)
    assert plan.before.pure == 1.0
    assert plan.after.pure == 0.5
    assert plan.after.rho == remaining([Account(Caps(0.5, 1e-6))]).rho < plan.before.rho
    assert account.spent("pure") == (0, 0)
    only = remaining([Account(Caps(1.0, 0.0)), Account(Caps(0.25, 0.0))])
    assert (only.rho, only.delta, only.epsilon, only.pure) == (0.0, 0.0, 0.25, 0.25)
    rho = planned([account], Charge.of(Cost(0.01)), WHOLE)
    assert 0 < rho.after.pure < 1.0


def test_a_cap_without_a_delta_says_why_rho_is_refused():
    made = Books(3.0, 0.0)
    charge = Charge.of(Cost(1e-6))
    with pytest.raises(BudgetExceeded, match=r"delta of 0.*pure epsilon-DP only.*delta=0.*Ledger\.set_cap") as caught:
        made.accounts.reservation(charge, WHOLE, None, {})
    assert caught.value.check == "currency"


# -- missing guards -----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def nothing_kept():
    """A mutant must not meet budgets that were computed without it, nor leave its own behind."""
    limits._rho_budget.cache_clear()
    yield
    limits._rho_budget.cache_clear()


def broken(epsilon=1.0, delta=1e-6, neighbours="add-remove"):
    """Ask for as much as there is of everything in turn, and say by how much all of it is above the cap."""
    orders = (
        [PureCost(Fraction(1, 8))] * 12 + [Cost(0.002)] * 12,
        [Cost(0.002)] * 6 + [PureCost(Fraction(1, 8))] * 12 + [Cost(0.002)] * 6,
        [Cost(0.0, 3e-7)] * 3 + [Cost(0.004)] * 9,
    )
    worst = Fraction(-1)
    for costs in orders:
        for parts in ([None], ["a", "b"]):
            made = Books(epsilon, delta, neighbours)
            for number, cost in enumerate(costs):
                made.ask(cost, parts[number % len(parts)])
            worst = max(worst, made.excess)
    return worst


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_with_every_guard_in_place_nothing_is_above_the_cap(neighbours):
    assert -1 < broken(neighbours=neighbours) <= 0


def test_pure_epsilons_in_quadrature_are_noticed(monkeypatch):
    def after(self, charge, place):
        spent, delta = self.spent(charge.currency)
        if charge.currency == "pure":
            return math.isqrt(spent**2 + charge.amount**2), 0
        return spent + charge.amount, delta + charge.delta

    def add(self, charge, place):
        total, delta = self.after(charge, place)
        if charge.currency == "zcdp" and charge.amount and self.spent("zcdp")[0] == 0:
            self.pure_before = self.spent("pure")[0]
        self.amounts[charge.currency], self.deltas[charge.currency] = books.Tally(total), books.Tally(delta)

    monkeypatch.setattr(Account, "after", after)
    monkeypatch.setattr(Account, "add", add)
    assert broken() > 0


def test_a_conversion_at_the_full_delta_is_noticed(monkeypatch):
    honest = sharing._largest
    monkeypatch.setattr(sharing, "_largest", lambda epsilon, delta, before, spent: honest(epsilon, delta, before, 0))
    assert broken() > 0


def test_a_partition_rule_for_one_part_is_noticed_under_replace(monkeypatch):
    monkeypatch.setattr(Place, "touched", 1)
    assert broken() <= 0
    assert broken(neighbours="replace") > 0


def test_parts_that_cost_nothing_are_noticed(monkeypatch):
    monkeypatch.setattr(books, "_dearest", lambda spent, touched: 0)
    assert broken() > 0


def test_pure_epsilons_that_rho_knows_nothing_of_are_noticed(monkeypatch):
    honest = SharedCap.rho_budget
    unknowing = lambda self, spent: honest(self, replace(spent, pure=0, pure_before=0))  # noqa: E731
    monkeypatch.setattr(SharedCap, "rho_budget", unknowing)
    assert broken() > 0


def test_rho_that_pure_epsilons_know_nothing_of_is_noticed(monkeypatch):
    monkeypatch.setattr(SharedCap, "pure_budget", lambda self, spent: self.units)
    assert broken() > 0


def test_a_pure_lane_that_is_not_charged_is_noticed(monkeypatch):
    honest = Account.add
    forgetful = lambda self, charge, place: None if charge.currency == "pure" else honest(self, charge, place)  # noqa: E731
    monkeypatch.setattr(Account, "add", forgetful)
    assert broken() > 0
