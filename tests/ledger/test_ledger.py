"""The public face: declaring, spending, asking again, planning, looking back."""

import copy
import json
import pickle
import threading

import pytest
from sklearn.base import BaseEstimator, clone

from fogline import testing
from fogline.accounting import Cost
from fogline.accounting.zcdp import epsilon_of, rho_of
from fogline.ledger import (
    ApproximateCost,
    BudgetExceeded,
    IntegralCost,
    Ledger,
    LedgerRefused,
    Question,
    Receipt,
    ReleaseFailed,
)

pytestmark = pytest.mark.quick

PRICE = Cost(0.001)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(
        tmp_path / "ledger", dataset="patients", epsilon=1.0, delta=1e-6, high_water=tmp_path / "marks"
    ) as made:
        yield made


def question(number=0, dataset="patients", version="1"):
    return Question(dataset, version, "count", "1", {"number": number})


def spend(ledger, asked=None, *, cost=PRICE, release=lambda: b"answer", **options):
    options = {"neighbours": "add-remove", "certified": True, **options}
    return ledger.spend(asked or question(), cost=cost, release=release, **options)


def forbidden():
    raise AssertionError("the data were touched")


def refused(check, action, *arguments, **options):
    with pytest.raises(LedgerRefused) as caught:
        action(*arguments, **options)
    assert caught.value.check == check, caught.value
    return str(caught.value)


# -- spending -----------------------------------------------------------------------------------------


def test_a_question_is_answered_once_and_then_from_the_ledger(ledger):
    first = spend(ledger)
    left = ledger.remaining()
    again = spend(ledger, release=forbidden)
    assert (first.payload, first.cached) == (b"answer", False)
    assert (again.payload, again.cached) == (b"answer", True)
    assert again.receipt == first.receipt
    assert ledger.remaining() == left


def test_receipts_hold_for_this_ledger_and_this_answer_only(ledger, tmp_path):
    answer = spend(ledger)
    receipt = answer.receipt
    assert receipt.verify(ledger)
    assert receipt.covers(b"answer")
    assert not receipt.covers(b"another")
    assert Receipt.from_dict(json.loads(json.dumps(receipt.to_dict()))) == receipt
    for change in ({"payload": "0" * 64}, {"amount": 1}, {"hash": "0" * 64}, {"commit": 999}, {"commit": 0}):
        assert not Receipt.from_dict({**receipt.to_dict(), **change}).verify(ledger)
    with Ledger.create(tmp_path / "b", dataset="patients", epsilon=1, delta=1e-6, high_water=tmp_path / "m") as other:
        spend(other)
        assert not receipt.verify(other)
    with pytest.raises(ValueError, match="fields of a receipt"):
        Receipt.from_dict({"ledger": "x"})


def test_the_budget_is_the_largest_rho_that_the_cap_allows(ledger):
    whole = rho_of(1.0, 1e-6)
    assert ledger.remaining().rho == pytest.approx(whole, abs=2e-12)
    assert ledger.remaining().epsilon <= 1.0
    spend(ledger, cost=Cost(whole - 1e-9))
    refused("budget", spend, ledger, question(1), cost=Cost(2e-9), release=forbidden)
    spend(ledger, question(1), cost=Cost(0.9e-9))
    spent = 1.0 - ledger.remaining().rho / whole
    assert spent == pytest.approx(1.0, abs=1e-6)
    assert epsilon_of(whole - ledger.remaining().rho, 1e-6) <= 1.0


def test_deltas_spent_lessen_the_rho_that_is_left(ledger):
    spend(ledger, cost=Cost(0.001, 5e-7))
    left = ledger.remaining()
    assert left.delta == 0.0  # the first release has fixed the split
    assert left.rho == pytest.approx(rho_of(1.0, 5e-7) - 0.001, abs=1e-11)
    refused("budget", spend, ledger, question(1), cost=Cost(0.001, 1e-9), release=forbidden)
    # all of a delta: nothing would be left for the conversion
    ledger.add_dataset("b", epsilon=1, delta=1e-6)
    refused("budget", spend, ledger, question(1, "b"), cost=Cost(0.001, 1e-6), release=forbidden)


def test_other_currencies_need_caps_of_their_own_and_are_never_mixed(ledger):
    message = refused("currency", spend, ledger, cost=ApproximateCost(0.1, 1e-8), release=forbidden)
    assert "no cap in currency 'approximate'" in message
    refused("currency", spend, ledger, cost=IntegralCost(0.1), release=forbidden)
    ledger.add_dataset("b", epsilon=1, delta=1e-6, approximate=(1.0, 1e-6), integral=2.0)
    whole = ledger.remaining("b")
    spend(ledger, question(0, "b"), cost=ApproximateCost(0.75, 1e-7))
    spend(ledger, question(1, "b"), cost=IntegralCost(0.1, draws=15))
    left = ledger.remaining("b")
    assert left.rho == whole.rho
    assert left.approximate == (pytest.approx(0.25), pytest.approx(9e-7))
    assert left.integral == pytest.approx(0.5)
    refused("budget", spend, ledger, question(2, "b"), cost=ApproximateCost(0.26), release=forbidden)
    refused("budget", spend, ledger, question(2, "b"), cost=IntegralCost(0.1, draws=6), release=forbidden)


@pytest.mark.parametrize(
    ("check", "options"),
    [
        ("certified", {"certified": False}),
        ("certified", {"certified": 1}),
        ("neighbours", {"neighbours": "replace"}),
        ("dataset", {"asked": question(dataset="nobody")}),
        ("version", {"asked": question(version="2")}),
        ("analyst", {"analyst": "nobody"}),
        ("partition", {"partition": ("sex", "f")}),
        ("budget", {"cost": Cost(1.0)}),
    ],
)
def test_what_is_refused_is_free(ledger, check, options):
    left = ledger.remaining()
    refused(check, spend, ledger, release=forbidden, **options)
    assert ledger.remaining() == left
    assert [entry.kind for entry in ledger.history()] == ["genesis", "dataset"]


def test_seeded_noise_is_refused(ledger):
    with testing.seeded_noise(3):
        assert "seed" in refused("certified", spend, ledger, release=forbidden)


@pytest.mark.parametrize(
    "options",
    [
        {"cost": 0.1},
        {"cost": Cost(0.0)},
        {"neighbours": "both"},
        {"max_payload": 0},
        {"max_payload": 2**40},
        {"partition": "sex"},
        {"release": b"answer"},
        {"asked": "how many?"},
    ],
)
def test_nonsense_is_an_error_before_anything_happens(ledger, options):
    with pytest.raises((TypeError, ValueError)):
        spend(ledger, **options)
    assert len(ledger.history()) == 2


def test_the_same_question_at_another_cost_is_refused(ledger):
    spend(ledger)
    refused("cost", spend, ledger, cost=Cost(0.002), release=forbidden)


def test_a_release_may_not_spend(ledger):
    def nested():
        return spend(ledger, question(1)).payload

    with pytest.raises(ReleaseFailed):
        spend(ledger, release=nested)
    assert [entry.kind for entry in ledger.history()].count("reserve") == 1
    assert spend(ledger, question(1)).payload == b"answer"


# -- after the reservation ----------------------------------------------------------------------------

SECRET = "Ada Lovelace 1815"


class Leaky(Exception):
    pass


def raising(error):
    def release():
        record = SECRET
        raise error(record)

    return release


@pytest.mark.parametrize(
    "release",
    [
        raising(ValueError),
        raising(Leaky),
        raising(SystemExit),
        raising(MemoryError),
        lambda: SECRET,
        lambda: bytearray(b"x"),
        lambda: b"x" * 2000,
        lambda: None,
    ],
)
def test_every_failure_after_the_reservation_is_one_constant_error(ledger, release):
    left = ledger.remaining()
    with pytest.raises(ReleaseFailed) as caught:
        spend(ledger, release=release, max_payload=1000)
    error = caught.value
    assert str(error) == "the release failed after its budget was reserved; the reservation is spent"
    assert error.__context__ is None
    assert error.__cause__ is None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals.get("__name__", "").startswith("fogline.ledger"):
            assert "release" not in frame.f_locals
            assert SECRET not in repr(frame.f_locals)
        trace = trace.tb_next
    assert ledger.remaining().rho == pytest.approx(left.rho - 0.001)
    assert pickle.loads(pickle.dumps(error)).args == error.args
    # asked again, it is paid for again
    assert not spend(ledger).cached
    assert ledger.remaining().rho == pytest.approx(left.rho - 0.002)


def test_an_interrupt_stays_one_and_takes_nothing_along(ledger):
    with pytest.raises(KeyboardInterrupt) as caught:
        spend(ledger, release=raising(KeyboardInterrupt))
    assert caught.value.args == ()
    assert caught.value.__context__ is None


# -- data sets, versions, analysts, partitions --------------------------------------------------------


def test_a_new_version_is_another_question_on_the_same_budget(ledger):
    spend(ledger)
    left = ledger.remaining()
    ledger.new_version("patients", "2")
    assert ledger.version() == "2"
    assert spend(ledger, release=forbidden).cached
    refused("version", spend, ledger, question(1), release=forbidden)
    assert not spend(ledger, question(version="2")).cached
    assert ledger.remaining().rho < left.rho
    refused("version", ledger.new_version, "patients", "1")


def test_analysts_pay_from_their_own_cap_too(ledger):
    ledger.add_analyst("ana", epsilon=0.2, delta=1e-6)
    ledger.add_analyst("ben")
    assert ledger.analysts == ("ana", "ben")
    share = ledger.remaining(analyst="ana").rho
    assert share < ledger.remaining().rho
    spend(ledger, cost=Cost(share * 0.9), analyst="ana")
    refused("budget", spend, ledger, question(1), cost=Cost(share * 0.2), analyst="ana", release=forbidden)
    spend(ledger, question(1), cost=Cost(share * 0.2), analyst="ben")
    # what has been answered is as good as published
    assert spend(ledger, question(1), cost=Cost(share * 0.2), analyst="ana", release=forbidden).cached
    refused("analyst", ledger.add_analyst, "ana")


def test_an_analyst_spends_over_all_data_sets(ledger):
    ledger.add_dataset("b", epsilon=1, delta=1e-6)
    ledger.add_analyst("ana", epsilon=0.2, delta=1e-6)
    share = ledger.remaining("patients", "ana").rho
    spend(ledger, cost=Cost(share * 0.6), analyst="ana")
    refused("budget", spend, ledger, question(0, "b"), cost=Cost(share * 0.6), analyst="ana", release=forbidden)


@pytest.mark.parametrize(("neighbours", "charged"), [("add-remove", 0.005), ("replace", 0.008)])
def test_parts_cost_the_dearest_or_the_two_dearest(ledger, neighbours, charged):
    ledger.add_dataset("b", epsilon=1, delta=1e-6, neighbours=neighbours)
    ledger.declare_partition("b", "region", ["n", "s", "w"])
    whole = ledger.remaining("b").rho
    for part, rho in [("n", 0.004), ("s", 0.003), ("w", 0.002), ("n", 0.001)]:
        options = {"neighbours": neighbours, "partition": ("region", part), "gain_and_loss": True}
        spend(ledger, question(rho, "b"), cost=Cost(rho), **options)
    assert whole - ledger.remaining("b").rho == pytest.approx(charged, abs=1e-11)
    spend(ledger, question("all", "b"), cost=Cost(0.01), neighbours=neighbours)
    assert whole - ledger.remaining("b").rho == pytest.approx(charged + 0.01, abs=1e-11)


def test_two_partitions_add_up_and_parts_are_separate_questions(ledger):
    ledger.declare_partition("patients", "sex", ["f", "m"])
    ledger.declare_partition("patients", "region", ["n", "s"])
    whole = ledger.remaining().rho
    payloads = {
        place: spend(ledger, partition=place, release=lambda place=place: repr(place).encode()).payload
        for place in [("sex", "f"), ("sex", "m"), ("region", "n")]
    }
    assert len(set(payloads.values())) == 3
    assert whole - ledger.remaining().rho == pytest.approx(0.002, abs=1e-11)
    refused("partition", spend, ledger, partition=("sex", "x"), release=forbidden)
    refused("partition", ledger.declare_partition, "patients", "sex", ["f", "m"])
    with pytest.raises(ValueError, match="two or more"):
        ledger.declare_partition("patients", "age", ["all"])


def test_caps_can_change_but_not_below_what_is_spent(ledger):
    spend(ledger, cost=Cost(0.01))
    refused("cap", ledger.set_cap, dataset="patients", epsilon=0.1, delta=1e-6)
    ledger.set_cap(dataset="patients", epsilon=2.0, delta=1e-6)
    assert ledger.remaining().rho == pytest.approx(rho_of(2.0, 1e-6) - 0.01, abs=1e-11)
    with pytest.raises(TypeError):
        ledger.set_cap(epsilon=2.0, delta=1e-6)
    assert ledger.verify() == len(ledger.history())


def test_unknown_and_repeated_names_are_refused(ledger):
    refused("dataset", ledger.remaining, "nobody")
    refused("dataset", ledger.add_dataset, "patients", epsilon=1, delta=1e-6)
    refused("dataset", ledger.new_version, "nobody", "2")
    ledger.add_dataset("b", epsilon=1, delta=1e-6)
    assert "name one of" in refused("dataset", ledger.remaining)
    for bad in ("", "a\nb", "x" * 201, None):
        with pytest.raises(ValueError, match="printable"):
            ledger.add_dataset(bad, epsilon=1, delta=1e-6)
    assert ledger.verify()


# -- planning and looking -----------------------------------------------------------------------------


class Costly(BaseEstimator):
    def __init__(self, ledger=None):
        self.ledger = ledger

    def cost(self):
        return Cost(0.01)


def test_a_plan_is_free_and_says_how_often(ledger):
    plan = ledger.plan(Costly())
    assert plan.fits
    assert plan.times == int(rho_of(1.0, 1e-6) / 0.01)
    assert plan.after.rho == pytest.approx(plan.before.rho - 0.01, abs=1e-11)
    assert not ledger.plan(Cost(1.0)).fits
    assert ledger.plan(Cost(1.0)).after is None
    refused("cost", ledger.plan, BaseEstimator())
    assert len(ledger.history()) == 2
    for number in range(plan.times):
        spend(ledger, question(number), cost=Cost(0.01))
    refused("budget", spend, ledger, question(99), cost=Cost(0.01), release=forbidden)


def test_a_cloned_estimator_asks_the_same_ledger_questions_of_its_own(ledger):
    view = ledger.on()
    first, second = clone(Costly(ledger)).ledger, clone(clone(Costly(view))).ledger
    assert first.ledger is second.ledger is ledger
    assert clone(Costly(ledger.on(analyst="ana"))).ledger.analyst == "ana"
    assert (second.dataset, second.analyst) == ("patients", None)
    assert copy.copy(ledger) is ledger
    assert copy.copy(view) is view
    asked = {"code_version": "1", "parameters": {}, "cost": PRICE, "neighbours": "add-remove", "certified": True}
    before = ledger.remaining().rho
    for asker, payload in ((ledger, b"all"), (first, b"fold 1"), (second, b"fold 2"), (second.on(), b"fold 2")):
        assert asker.ask("count", release=lambda: payload, **asked).payload == payload  # noqa: B023
    assert ledger.ask("count", release=forbidden, **asked).payload == b"all"
    assert before - ledger.remaining().rho == pytest.approx(3 * PRICE.rho)
    assert "mark" in repr(first)
    assert "mark" not in repr(view)


def test_a_ledger_is_not_pickled(ledger):
    for held in (ledger, ledger.on(), ledger.on().afresh()):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(held)


def test_a_view_asks_the_current_version(ledger):
    ledger.add_analyst("ana")
    ledger.declare_partition("patients", "sex", ["f", "m"])
    view = ledger.on(analyst="ana").on(partition=("sex", "f"))
    asked = {"code_version": "1", "parameters": {}, "cost": PRICE, "neighbours": "add-remove", "certified": True}
    assert view.ask("count", release=lambda: b"1", **asked).payload == b"1"
    entry = next(entry for entry in ledger.history() if entry.kind == "reserve")
    assert entry.content["analyst"] == "ana"
    assert entry.content["partition"] == ["sex", "f"]
    assert view.remaining() == ledger.remaining()
    assert view.plan(PRICE).fits
    ledger.new_version("patients", "2")
    assert view.ask("count", release=lambda: b"2", max_payload=10, **asked).receipt.version == "2"


def test_history_and_export_tell_the_same(ledger, tmp_path):
    spend(ledger)
    listed = ledger.history()
    assert [entry.kind for entry in listed] == ["genesis", "dataset", "reserve", "commit"]
    assert listed[2].content["asked"]["mechanism"] == "count"
    ledger.export(tmp_path / "lines")
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    assert [line["hash"] for line in lines] == [entry.hash for entry in listed]
    assert [line["content"] for line in lines] == [dict(entry.content) for entry in listed]
    with pytest.raises(FileExistsError):
        ledger.export(tmp_path / "lines")
    with pytest.raises(ValueError, match="ledger itself"):
        ledger.export(ledger.path)


def test_twelve_equal_questions_at_once_are_charged_once(ledger):
    barrier, answers = threading.Barrier(12), []

    def work():
        barrier.wait()
        answers.append(spend(ledger, release=lambda: str(len(answers)).encode()))

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.payload for answer in answers}) == 1
    assert [answer.cached for answer in answers].count(False) == 1
    assert [entry.kind for entry in ledger.history()].count("reserve") == 1


def test_threads_share_a_budget_exactly(ledger):
    times, results = ledger.plan(Cost(0.004)).times, []

    def work(number):
        try:
            results.append(spend(ledger, question(number), cost=Cost(0.004)))
        except BudgetExceeded:
            results.append(None)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(times + 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([answer for answer in results if answer is not None]) == times
    assert ledger.verify() == 2 + 2 * times
