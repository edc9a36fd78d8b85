"""Units, caps, tallies and fingerprints: the arithmetic under the ledger."""

from fractions import Fraction

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from fogline.accounting import Cost, GaussianEvent, ParallelEvent, PureCost, cost
from fogline.accounting.costs import whole_units
from fogline.accounting.zcdp import epsilon_of
from fogline.ledger import ApproximateCost, Caps, Charge, IntegralCost, Question
from fogline.ledger.accounts import Account, Place, Tally
from fogline.ledger.question import canonical
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS
from fogline.ledger.view import planned, remaining

pytestmark = pytest.mark.quick

positive = st.floats(min_value=1e-14, max_value=1e3)
probability = st.floats(min_value=1e-20, max_value=0.5)


@given(positive, probability)
def test_charges_round_up_by_less_than_a_unit(rho, delta):
    charge = Charge.of(Cost(rho, delta))
    assert 0 <= Fraction(charge.amount, UNITS) - Fraction(rho) < Fraction(1, UNITS)
    assert 0 <= Fraction(charge.delta, DELTA_UNITS) - Fraction(delta) < Fraction(1, DELTA_UNITS)


@given(st.floats(min_value=1e-12, max_value=1e3))
def test_whole_units_are_charged_as_themselves(rho):
    assume(Fraction(rho) * UNITS >= 1)
    rounded = whole_units(rho)
    assert rounded <= rho
    assert Charge.of(Cost(rounded)).amount == Fraction(rho) * UNITS // 1


@given(st.floats(min_value=1e-3, max_value=50), st.floats(min_value=1e-12, max_value=0.1), st.floats(0, 0.999))
def test_what_a_cap_allows_converts_to_no_more_than_the_cap(epsilon, delta, portion):
    spent = int(Fraction(delta) * Fraction(portion) * DELTA_UNITS)
    budget, most = Caps(epsilon, delta).budget("zcdp", spent)
    assert spent <= most
    left = float(Fraction(delta) - Fraction(spent, DELTA_UNITS))
    if budget:
        assert epsilon_of(budget / UNITS, left) <= epsilon * (1 + 1e-12)
    assert budget <= Caps(epsilon, delta).budget("zcdp", 0)[0]


def test_no_delta_left_allows_nothing():
    caps = Caps(1.0, 1e-6)
    assert caps.budget("zcdp", caps.budget("zcdp", 0)[1])[0] <= caps.budget("zcdp", 0)[0]
    assert caps.budget("zcdp", 10**12 + 1)[0] == 0


parts = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 1000)), min_size=1, max_size=12)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@given(parts)
def test_tallies_agree_with_the_cost_of_parallel_events(neighbours, listed):
    tally = Tally()
    for part, units in listed:
        place = Place("x", neighbours, ("p", part))
        expected = tally.after(units, place)
        tally.add(units, place)
        assert tally.total == expected
    sums = {part: sum(u for p, u in listed if p == part) for part, _ in listed}
    events = [GaussianEvent(1.0, 1.0, count=count) for count in sums.values()]
    parallel = cost(ParallelEvent(tuple(events), neighbours)) if len(events) > 1 else cost(events[0])
    assert tally.total == 2 * parallel.rho


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=20))
def test_a_plan_says_how_often_exactly(spent):
    account = Account(Caps(1.0, 1e-6))
    place, price = Place("x", "add-remove"), Charge("zcdp", 123_456_789)
    for units in spent:
        account.add(Charge("zcdp", units), place)
    times = planned([account], price, place).times
    budget = account.caps.budget("zcdp", 0)[0]
    assert times == max(0, (budget - sum(spent)) // price.amount)
    assert remaining([account]).rho == pytest.approx(max(0, budget - sum(spent)) / UNITS)


def test_plans_with_deltas_stop_where_either_is_spent():
    account = Account(Caps(1.0, 1e-6))
    plan = planned([account], Charge.of(Cost(1e-6, 1e-7)), Place("x", "add-remove"))
    assert plan.times == 9
    free = planned([Account(None)], Charge("zcdp", 1), Place("x", "add-remove"))
    assert free.times == 10**6


@pytest.mark.parametrize(
    "make",
    [
        lambda: Charge.of(Cost(0.0)),
        lambda: Charge.of(Cost(1e8)),
        lambda: Charge.of(0.5),
        lambda: Charge.of(None),
        lambda: ApproximateCost(float("inf")),
        lambda: ApproximateCost(1.0, 1.0),
        lambda: IntegralCost(0.0),
        lambda: IntegralCost(1.0, draws=0),
        lambda: Caps(epsilon=1.0),
        lambda: Caps(epsilon=1.0, delta=-1e-9),
        lambda: Caps(epsilon=1.0, delta=False),
        lambda: Caps(epsilon=1e-13, delta=0.0),
        lambda: Caps(epsilon=1e7, delta=0.0),
        lambda: Caps(epsilon=-1.0, delta=0.0),
        lambda: Charge.of(PureCost(0)),
        lambda: Charge.of(PureCost(1e8)),
        lambda: Caps(epsilon=1e9, delta=1e-6),
        lambda: Caps(epsilon=1e-9, delta=1e-30),
        lambda: Caps(approximate=1.0),
        lambda: Caps(integral=-1.0),
    ],
)
def test_costs_and_caps_that_make_no_sense(make):
    with pytest.raises((TypeError, ValueError)):
        make()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_fingerprints_do_not_depend_on_order_or_copies(parameters):
    try:
        one = Question("d", "1", "m", "1", parameters)
    except ValueError:
        reject()  # half a surrogate pair
    two = Question("d", "1", "m", "1", dict(reversed(parameters.items())))
    assert one.fingerprint == two.fingerprint == Question(**one.to_dict()).fingerprint
    assert one == two
    assert hash(one) == hash(two)


def test_fingerprints_tell_questions_apart():
    base = {"dataset": "d", "version": "1", "mechanism": "m", "code_version": "1", "parameters": {"a": 1}}
    others = [
        {"dataset": "e"},
        {"version": "2"},
        {"mechanism": "n"},
        {"code_version": "2"},
        {"parameters": {"a": 2}},
        {"parameters": {"a": "1"}},
        {"parameters": {"a": True}},
        {"parameters": {"a": None}},
        {"parameters": {"a": [1]}},
        {"parameters": {"a": 1 + 2**-52}},
        {"parameters": {}},
    ]
    prints = {Question(**{**base, **other}).fingerprint for other in [{}, *others]}
    assert len(prints) == 12
    assert Question(**{**base, "parameters": {"a": 1.0}}).fingerprint in prints
    assert canonical({"é": "\n"}) == b'{"\\u00e9":"\\n"}'


def test_a_question_keeps_no_hold_on_what_it_was_made_of():
    bounds = [[0, 1]]
    asked = Question("d", "1", "m", "1", {"bounds": bounds})
    before = asked.fingerprint
    bounds[0][1] = 2
    assert asked.fingerprint == before


@pytest.mark.parametrize(
    "parameters", [{"a": object()}, {"a": b"x"}, {1: 2}, {"a": {2: 3}}, {"a": float("inf")}, {"a": "\ud800"}, [1], None]
)
def test_questions_that_json_cannot_hold(parameters):
    with pytest.raises((TypeError, ValueError)):
        Question("d", "1", "m", "1", parameters)


def test_questions_without_names():
    with pytest.raises(TypeError):
        Question("", "1", "m", "1")
