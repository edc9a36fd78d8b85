"""The Gaussian lane of a ledger: more room for Gaussian noise, nothing that is not GDP, old ledgers as they were."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.accounting import Cost, GaussianCost, PureCost, analytic_gaussian
from fogline.accounting.costs import gaussian_release
from fogline.ledger import BudgetExceeded, Caps, Charge, Ledger, LedgerRefused
from fogline.ledger import accounts as books
from fogline.ledger.accounts import FORMAT, Account, Accounts, Place, chain
from fogline.ledger.gaussian_cap import GaussianCap, pure_as_gaussian
from fogline.ledger.ledger import dataset_declaration
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS, Spending
from fogline.ledger.view import planned, promise, remaining

pytestmark = pytest.mark.quick

WHOLE = Place("x", "add-remove")
ASKED = {"code_version": "1", "neighbours": "add-remove", "certified": True, "release": lambda: b"about 90"}


class Books:
    """The books of a ledger without its file."""

    def __init__(self, caps, neighbours="add-remove", analyst=None):
        self.accounts, self.neighbours, self.number, self.analyst = Accounts(), neighbours, 0, None
        self.append({"kind": "genesis", "ledger": "a" * 32, "format": FORMAT})
        self.append(dataset_declaration("x", "1", neighbours, caps))
        self.append({"kind": "partition", "dataset": "x", "partition": "p", "parts": list("abc")})
        if analyst is not None:
            self.append({"kind": "analyst", "analyst": "ana", "caps": analyst.to_dict()})
            self.analyst = "ana"

    def append(self, content):
        self.accounts.begin_group()
        text = self.accounts.compose(content, "2024")
        self.accounts.apply(self.accounts.next_seq, text, chain(self.accounts.tip, text))

    def ask(self, cost, part=None):
        charge, pair = Charge.of(cost), None if part is None else ("p", part)
        self.number += 1
        asked = {"dataset": "x", "parameters": {"number": self.number}, "code_version": "1"}
        content = {"kind": "reserve", "question": str(self.number), "asked": asked, "currency": charge.currency}
        content |= {"amount": charge.amount, "delta": charge.delta, "analyst": self.analyst, "unit": None}
        content["partition"] = None if pair is None else list(pair)
        try:
            place = Place("x", self.neighbours, pair)
            content = self.accounts.reservation(charge, place, self.analyst, content)
        except BudgetExceeded:
            return False
        self.append(content)
        return True


def certified_delta(history, epsilon, neighbours):
    """The delta of what was let in, summed anew: pure before the first Gaussian release, then mu^2 and distances."""
    touched = 1 if neighbours == "add-remove" else 2
    tallies, first = {"pure": {}, "rho": {}, "distance": {}}, None

    def add(name, part, amount):
        tallies[name][part] = tallies[name].get(part, Fraction(0)) + amount

    def total(name):
        parts = sorted((v for k, v in tallies[name].items() if k is not None), reverse=True)
        return tallies[name].get(None, Fraction(0)) + sum(parts[:touched], Fraction(0))

    for cost, part in history:
        if isinstance(cost, GaussianCost):
            first = total("pure") if first is None else first
            add("rho", part, Fraction(cost.rho))
            add("distance", part, Fraction(cost.distance))
        elif first is None:
            add("pure", part, cost.epsilon)
        else:
            add("rho", part, analytic_gaussian.rho_of_pure(cost.epsilon))
    if first is None:
        return 0.0 if total("pure") <= Fraction(epsilon) else 1.0
    left = float(Fraction(epsilon) - first)
    slack = analytic_gaussian.slack_of(epsilon, total("distance"))
    return analytic_gaussian.delta_of(float(total("rho")), left) + slack if left > 0 else 1.0


noise = st.builds(lambda rho: GaussianCost(rho, 1e-18), st.floats(1e-6, 0.2))
pure = st.builds(lambda n: PureCost(Fraction(n, 1000)), st.integers(1, 400))
asked = st.lists(
    st.tuples(st.one_of(noise, pure), st.sampled_from([None, None, "a", "b", "c"])), min_size=1, max_size=12
)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@settings(max_examples=25, deadline=None)
@given(st.floats(0.2, 5.0), st.sampled_from([1e-9, 1e-6, 1e-3]), asked)
def test_what_is_let_in_is_within_the_cap(neighbours, epsilon, delta, listed):
    made, history = Books(Caps(epsilon, delta, lane="gaussian"), neighbours), []
    for cost, part in listed:
        if made.ask(cost, part):
            history.append((cost, part))
    assert certified_delta(history, epsilon, neighbours) <= delta


def fill(caps, cost):
    made, times = Books(caps), 0
    while made.ask(cost):
        times += 1
    return times


def test_a_ledger_holds_an_eighth_more_releases_of_the_same_noise():
    price = GaussianCost(0.0015, 1e-18)
    before, now = fill(Caps(3.0, 1e-6), price), fill(Caps(3.0, 1e-6, lane="gaussian"), price)
    assert before == fill(Caps(3.0, 1e-6), Cost(0.0015))  # in the lane of zCDP Gaussian noise is the rho that it is
    assert now >= 1.12 * before


def test_one_release_of_the_whole_cap_nearly_fits():
    """What is set aside for distances is all that is lost: a release of epsilon at 0.99 delta fits."""
    assert fill(Caps(1.0, 1e-6, lane="gaussian"), gaussian_release(1.0, 0.989e-6)) == 1
    assert fill(Caps(1.0, 1e-6, lane="gaussian"), gaussian_release(1.0, 1e-6)) == 0


def test_what_is_only_zcdp_is_refused():
    made = Books(Caps(1.0, 1e-6, lane="gaussian"))
    assert not made.ask(Cost(1e-6))
    assert not made.ask(Cost(0.0, 1e-12))
    assert made.ask(GaussianCost(1e-6))
    with pytest.raises(BudgetExceeded, match="the lane of data set 'x' is Gaussian"):
        made.accounts.reservation(Charge.of(Cost(1e-6)), WHOLE, None, {})


def test_a_mutant_that_composes_zcdp_as_gaussian_is_noticed(monkeypatch):
    """Counted as if it were GDP, a release of which only its zCDP is known would be let in."""
    as_gaussian = lambda self, charge: Charge("gaussian", charge.amount) if charge.currency == "zcdp" else charge  # noqa: E731
    monkeypatch.setattr(Account, "own", as_gaussian)
    with pytest.raises(AssertionError):
        test_what_is_only_zcdp_is_refused()


def test_a_mutant_that_forgets_pure_epsilon_after_gaussian_noise_is_noticed(monkeypatch):
    monkeypatch.setattr(Account, "_in_lane", lambda *_: None)
    made, history = Books(Caps(1.0, 1e-6, lane="gaussian")), []
    for cost in [GaussianCost(0.02), *[PureCost(Fraction(1, 10))] * 9]:
        history += [(cost, None)] if made.ask(cost) else []
    assert certified_delta(history, 1.0, "add-remove") > 1e-6


def test_a_mutant_that_sets_nothing_aside_is_noticed(monkeypatch):
    monkeypatch.setattr(GaussianCap, "converted_delta", property(lambda self: self.delta))
    made = Books(Caps(1.0, 1e-6, lane="gaussian"))
    most = GaussianCap(1.0, 1e-6)
    cost = GaussianCost(
        most.rho_budget(Spending()) / UNITS * (1 - 1e-9), most.distance_budget / DELTA_UNITS * (1 - 1e-9)
    )
    assert made.ask(cost)
    assert certified_delta([(cost, None)], 1.0, "add-remove") > 1e-6


def test_distances_have_a_budget_of_their_own():
    made = Books(Caps(1.0, 1e-6, lane="gaussian"))
    most = GaussianCap(1.0, 1e-6).distance_budget
    assert math.isclose(most / DELTA_UNITS, 1e-8 / (1 + math.e), rel_tol=1e-6)
    assert not made.ask(GaussianCost(1e-6, (most + 10) / DELTA_UNITS))
    assert made.ask(GaussianCost(1e-6, (most - 10) / DELTA_UNITS))


def test_pure_epsilon_before_and_after():
    cap = GaussianCap(1.0, 1e-6)
    assert cap.pure_budget(Spending()) == UNITS
    assert cap.rho_budget(Spending(pure=UNITS, pure_before=UNITS)) == 0
    spent = Spending(pure=5, pure_before=5, rho=cap.rho_budget(Spending(5, 5)))
    assert cap.pure_budget(spent) == 5
    half = Spending(rho=cap.rho_budget(Spending()) // 2)
    left = cap.pure_budget(half)
    assert 0 < pure_as_gaussian(left) <= cap.rho_budget(half) - half.rho < pure_as_gaussian(left + 2 + left // 10**9)


def test_a_pure_epsilon_that_rounds_too_far_is_taken_back(monkeypatch):
    from fogline.ledger import gaussian_cap

    exact = gaussian_cap._pure_left(10**9 + 1)
    gaussian_cap._pure_left.cache_clear()
    monkeypatch.setattr(gaussian_cap, "pure_of", lambda rho: analytic_gaussian.pure_of(rho) * (1 + 1e-10))
    assert 0 <= exact - gaussian_cap._pure_left(10**9 + 1) <= 2
    gaussian_cap._pure_left.cache_clear()


def test_a_pure_release_that_would_burst_the_lane_is_refused_by_the_lane_itself(monkeypatch):
    monkeypatch.setattr(GaussianCap, "pure_budget", lambda self, _: self.units)  # a guard taken away
    made = Books(Caps(1.0, 1e-6, lane="gaussian"))
    assert made.ask(GaussianCost(0.02))
    assert not made.ask(PureCost(Fraction(9, 10)))


# -- analysts, plans, what is left --------------------------------------------------------------------------------


def test_an_analyst_counts_in_a_lane_of_their_own():
    price = GaussianCost(0.005, 0.9e-18)
    made = Books(Caps(3.0, 1e-6, lane="gaussian"), analyst=Caps(1.0, 1e-6))
    assert made.ask(price)
    ana = made.accounts.analysts["ana"]
    assert (ana.spent("zcdp"), ana.spent("gaussian")) == ((Charge.of(price).amount, 0), (0, 0))
    assert made.accounts.datasets["x"].account.spent("gaussian") == (Charge.of(price).amount, 1)
    other = Books(Caps(3.0, 1e-6), analyst=Caps(1.0, 1e-6, lane="gaussian"))
    assert other.ask(price)
    assert not other.ask(Cost(0.001))
    assert remaining([other.accounts.datasets["x"].account, other.accounts.analysts["ana"]]).mu is None


def test_plans_and_what_is_left():
    account = Account(Caps(3.0, 1e-6, lane="gaussian"))
    left = remaining([account])
    assert left.mu == pytest.approx(math.sqrt(2 * left.rho))
    assert left.epsilon == pytest.approx(3.0, rel=1e-3)
    charge = Charge.of(GaussianCost(0.01, 1e-18))
    plan = planned([account], charge, WHOLE)
    assert plan.times == math.floor(left.rho / 0.01)
    assert plan.after.rho == pytest.approx(left.rho - 0.01)
    account.add(Charge("gaussian", GaussianCap(3.0, 1e-6).rho_budget(Spending())), WHOLE)
    assert remaining([account]).epsilon == 0.0
    assert not planned([account], charge, WHOLE).fits


# -- caps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"lane": "renyi"}, "lane must be one of"),
        ({"lane": "gaussian", "delta": 0.0}, "needs an epsilon and a delta above 0"),
        ({"lane": "gaussian", "epsilon": 101.0}, "epsilon of at most 100"),
        ({"lane": "gaussian", "epsilon": 30.0}, "large enough beside it"),
        ({"lane": "gaussian", "delta": 1e-14}, "large enough beside it"),
        ({"lane": "gaussian", "set_aside": 1e-7}, "is for the lane 'zcdp'"),
        ({"set_aside": 1e-6}, "set_aside must be below delta"),
        ({"set_aside": -1e-7}, "set_aside"),
        ({"set_aside": 0.0, "delta": 0.0}, "set_aside must be below delta"),
        ({"set_aside": 1e-7, "delta": 0.0}, "set_aside must be below delta"),
    ],
)
def test_bad_caps_name_what_is_wrong(options, match):
    with pytest.raises(ValueError, match=match):
        Caps(**{"epsilon": 1.0, "delta": 1e-6, **options})


def test_caps_are_written_as_before_where_nothing_is_new():
    assert set(Caps(1.0, 1e-6).to_dict()) == {"epsilon", "delta", "approximate", "integral"}
    for caps in (Caps(1.0, 1e-6, lane="gaussian"), Caps(1.0, 1e-6, set_aside=1e-8)):
        assert Caps.from_dict(json.loads(json.dumps(caps.to_dict()))) == caps


def test_a_ledger_on_disk(tmp_path):
    path, marks = tmp_path / "budget", tmp_path / "marks"
    with Ledger.create(path, dataset="x", epsilon=3.0, delta=1e-6, lane="gaussian", high_water=marks) as ledger:
        assert ledger.lane() == ledger.on().lane == "gaussian"
        price = ledger.release_cost(0.5, 1e-7)
        assert price == gaussian_release(0.5, 1e-7)
        assert ledger.release_cost(0.5, 0.0) == PureCost(Fraction(1, 2))
        assert ledger.release_cost(0.5, 1e-17) == Cost(Ledger.rho_of(0.5, 1e-17))  # the curve does not suit it
        answer = ledger.ask("count", parameters={"n": 1}, cost=price, **ASKED)
        assert (answer.receipt.currency, answer.receipt.delta) == ("gaussian", 1)
        ledger.ask("count", parameters={"n": 2}, cost=PureCost(Fraction(1, 4)), **ASKED)
        spent = ledger.spending()
        assert spent.rho == answer.receipt.amount + pure_as_gaussian(UNITS // 4)
        assert (spent.pure, spent.pure_before) == (UNITS // 4, 0)
        with pytest.raises(BudgetExceeded, match="accounted in zCDP"):
            ledger.ask("balls", parameters={}, cost=Cost(0.001), **ASKED)
        ledger.set_cap(dataset="x", epsilon=4.0, delta=1e-6)
        with pytest.raises(LedgerRefused, match="below what is spent"):
            ledger.set_cap(dataset="x", epsilon=0.1, delta=1e-6)
        left = ledger.remaining()
    with Ledger.open(path, high_water=marks) as again:
        assert again.remaining() == left
        assert again.lane() == "gaussian"
        assert again.ask("count", parameters={"n": 1}, cost=price, **ASKED).cached
        again.add_analyst("ana", epsilon=1.0, delta=1e-6)
        again.set_cap(analyst="ana", epsilon=2.0, delta=1e-6)


def test_a_lane_is_not_switched():
    made = Books(Caps(1.0, 1e-6))
    entry = {"kind": "cap", "dataset": "x", "analyst": None, "caps": Caps(1.0, 1e-6, lane="gaussian").to_dict()}
    with pytest.raises(LedgerRefused, match="fixed when it is made"):
        made.append(entry)


# -- deltas set aside at creation ---------------------------------------------------------------------------------


def test_deltas_set_aside_at_creation_do_not_move_what_rho_is_converted_at():
    caps = Caps(1.0, 1e-6, set_aside=1e-7)
    made = Books(caps)
    room = caps.budget("zcdp", 0)
    assert room[0] == Caps(1.0, 0.9e-6).budget("zcdp", 0)[0]
    assert room[1] == DELTA_UNITS // 10**7
    assert made.ask(Cost(0.001, 0.9e-7))
    assert made.accounts.datasets["x"].account.budget("zcdp", 10) == room
    assert not made.ask(Cost(0.001, 0.2e-7))
    assert made.ask(Cost(0.001, 0.0999e-7))
    assert remaining([made.accounts.datasets["x"].account]).delta < 1.1e-11


# -- nothing set aside: the first release in rho fixes the split --------------------------------------------------


def test_the_first_release_in_rho_fixes_the_split():
    caps = Caps(1.0, 1e-6, set_aside=0.0)
    made = Books(caps)
    account = made.accounts.datasets["x"].account
    assert caps.budget("zcdp", 0) == Caps(1.0, 1e-6).budget("zcdp", 0)  # before anything is spent: as ever
    assert made.ask(Cost(0.001, 4e-7))
    assert account.spending.delta_before == 4 * DELTA_UNITS // 10**7
    room = Caps(1.0, 0.6e-6).budget("zcdp", 0)[0]
    assert abs(account.budget("zcdp", 4 * DELTA_UNITS // 10**7)[0] - room) <= 1
    assert not made.ask(Cost(0.001, 1e-12))
    assert made.ask(Cost(0.001))
    assert remaining([account]).delta == 0.0
    assert not account.mixed


def test_deltas_before_any_rho_add_up_and_are_kept():
    made = Books(Caps(1.0, 1e-6, set_aside=0.0))
    assert made.ask(Cost(0.0, 1e-7))
    assert made.ask(PureCost(Fraction(1, 10)))
    assert made.ask(Cost(0.0, 1e-7))
    assert remaining([made.accounts.datasets["x"].account]).delta == pytest.approx(8e-7)
    assert made.ask(Cost(0.001, 1e-7))
    account = made.accounts.datasets["x"].account
    assert account.spending.delta_before == 3 * DELTA_UNITS // 10**7
    assert not made.ask(Cost(0.0, 1e-9))


def test_in_the_parts_of_a_partition_the_split_is_that_of_the_dearest():
    made = Books(Caps(1.0, 1e-6, set_aside=0.0))
    assert made.ask(Cost(0.001, 2e-7), "a")
    assert made.ask(Cost(0.001, 2e-7), "b")  # no unit is in both
    assert not made.ask(Cost(0.001, 3e-7), "c")
    assert not made.ask(Cost(0.001, 1e-7), "a")


def test_a_refusal_by_the_split_says_so():
    made = Books(Caps(1.0, 1e-6, set_aside=0.0))
    assert made.ask(Cost(0.001))
    with pytest.raises(BudgetExceeded, match="fixed by the cap's set_aside"):
        made.accounts.reservation(Charge.of(Cost(0.001, 1e-8)), WHOLE, None, {})
    with pytest.raises(BudgetExceeded, match=r"allow for this release \(check"):
        made.accounts.reservation(Charge.of(Cost(9.0)), WHOLE, None, {})


def test_a_plan_knows_that_the_first_of_several_fixes_the_split():
    account = Account(Caps(1.0, 1e-6, set_aside=0.0))
    assert planned([account], Charge.of(Cost(0.001, 1e-8)), WHOLE).times == 1
    assert planned([Account(Caps(1.0, 1e-6))], Charge.of(Cost(0.001, 1e-8)), WHOLE).times > 20
    assert planned([account], Charge.of(Cost(0.001)), WHOLE).times == math.floor(remaining([account]).rho / 0.001)


def test_one_release_of_all_of_epsilon_and_delta_fits_whatever_part_of_delta_is_its_own():
    for own in (0.0, 1e-8, 5e-7, 9.99e-7):
        rho = Ledger.rho_of(1.0, 1e-6 - own)
        assert Books(Caps(1.0, 1e-6, set_aside=0.0)).ask(Cost(rho * (1 - 1e-9), own))


def test_old_caps_keep_their_rule_and_say_what_is_proved(tmp_path):
    old = Books(Caps(1.0, 1e-6))
    account = old.accounts.datasets["x"].account
    assert old.ask(Cost(0.001))
    assert "as long as no release" in promise(account)
    assert "(1, 2e-06)" in promise(account)
    assert old.ask(Cost(0.001, 1e-7))  # room that it had
    assert account.promised_delta == 2 * Fraction(1e-6)
    assert "all releases together are (1, 2e-06)-DP, whatever" in promise(account)
    # a split that is fixed afterwards does not mend what was mixed before
    fixed = {"kind": "cap", "dataset": "x", "analyst": None, "caps": Caps(1.0, 1e-6, set_aside=2e-7).to_dict()}
    old.append(fixed)
    assert account.is_split
    assert "(1, 2e-06)-DP" in promise(account)
    with pytest.raises(LedgerRefused, match="not taken back"):
        old.append({**fixed, "caps": Caps(1.0, 1e-6).to_dict()})
    assert promise(Account(Caps(1.0, 0.0))) == promise(Account(Caps(1.0, 0.0, lane="zcdp")))
    assert "no cap" in promise(Account(None))
    assert promise(Account(Caps(1.0, 1e-6, lane="gaussian"))).endswith("by the answers")


def test_new_data_sets_and_caps_have_a_split(tmp_path):
    with Ledger.create(tmp_path / "a", dataset="x", epsilon=1.0, delta=1e-6, high_water=tmp_path / "marks") as ledger:
        ledger.add_dataset("y", epsilon=1.0, delta=0.0)
        ledger.set_cap(dataset="y", epsilon=1.0, delta=1e-6)
        ledger.add_analyst("ana", epsilon=1.0, delta=1e-6)
        ledger.add_analyst("bob")
        ledger.set_cap(dataset="x", epsilon=2.0, delta=1e-6)
        told = [entry.content["caps"] for entry in ledger.history() if entry.kind in ("dataset", "cap", "analyst")]
        assert [None if caps is None else caps.get("set_aside") for caps in told] == [0.0, None, 0.0, 0.0, None, 0.0]
        ledger.set_cap(dataset="x", epsilon=2.0, delta=1e-6, set_aside=1e-7)
        ledger.set_cap(dataset="x", epsilon=3.0, delta=1e-6)
        assert ledger.history()[-1].content["caps"]["set_aside"] == 1e-7
        assert ledger.promise("x") == "all releases together are (3, 1e-06)-DP, whatever analysts decide by the answers"


def test_a_ledger_without_it_is_as_it_was(tmp_path):
    with Ledger.create(
        tmp_path / "a", dataset="x", epsilon=1.0, delta=1e-6, set_aside=1e-8, high_water=tmp_path / "marks"
    ) as ledger:
        assert ledger.remaining().delta == pytest.approx(1e-8)
        assert ledger.remaining().epsilon == pytest.approx(1.0, rel=1e-6)
        ledger.ask("balls", parameters={}, cost=Cost(0.001, 1e-9), **ASKED)
    old = Books(Caps(1.0, 1e-6))
    assert old.ask(Cost(0.001, 1e-7))
    assert old.accounts.datasets["x"].account.budget("zcdp", 10**11)[0] < Caps(1.0, 1e-6).budget("zcdp", 0)[0]


def test_what_is_left_where_one_of_two_caps_has_something_set_aside():
    both = [Account(Caps(1.0, 1e-6, set_aside=1e-8)), Account(Caps(1.0, 1e-6))]
    assert remaining(both).epsilon <= 1.0
    assert remaining(both[:1]).epsilon == pytest.approx(1.0, rel=1e-6)
    assert remaining([Account(Caps(integral=2.0))]).epsilon == 0.0
    assert remaining([Account(None)]).epsilon == 0.0


def test_an_unknown_currency_is_refused():
    made = Books(Caps(1.0, 1e-6))
    content = {"kind": "reserve", "question": "1", "asked": {"dataset": "x", "parameters": {}}, "currency": "renyi"}
    with pytest.raises(LedgerRefused, match="does not know \\('renyi'\\)"):
        made.append({**content, "amount": 1, "delta": 0, "analyst": None, "unit": None, "partition": None})
    assert "gaussian" in books.CURRENCIES
