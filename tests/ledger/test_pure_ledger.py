"""A ledger on disk with pure releases: what they cost, what is refused, what is shown, and what old ledgers do."""

import json
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.ledger import reference

from fogline import PrivateModes
from fogline.accounting import Cost, PureCost
from fogline.accounting.zcdp import epsilon_of
from fogline.cli.app import app
from fogline.cli.release import payment_words
from fogline.ledger import BudgetExceeded, Ledger, LedgerRefused, Receipt
from fogline.ledger.accounts import Accounts, chain
from fogline.ledger.shared_cap import UNITS
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms
from fogline.report.ledger import spending_picture, statements

FIXTURES = Path(__file__).parent / "fixtures"
HALF = PureCost(Fraction(1, 2))


@pytest.fixture
def make(tmp_path):
    opened = []

    def made(**options):
        options = {"dataset": "visits", "epsilon": 3.0, "delta": 0, "high_water": tmp_path / "marks", **options}
        opened.append(Ledger.create(tmp_path / f"ledger{len(opened)}", **options))
        return opened[-1]

    yield made
    for ledger in opened:
        ledger.close()


def ask(ledger, number=0, cost=HALF, release=lambda: b"about 90", neighbours="add-remove", **options):
    view = ledger.on(options.pop("dataset", None), **options) if options else ledger.on()
    return view.ask(
        "count", code_version="1", parameters={"number": number}, cost=cost, neighbours=neighbours, certified=True,
        gain_and_loss=True, release=release,
    )  # fmt: skip


def forbidden():
    raise AssertionError("the data were touched")


def test_a_pure_ledger_pays_for_pure_releases_only(make):
    ledger = make()
    assert ledger.remaining().pure == ledger.remaining().epsilon == 3.0
    with pytest.raises(BudgetExceeded, match="delta of 0") as caught:
        ask(ledger, cost=Cost(1e-9), release=forbidden)
    assert caught.value.check == "currency"
    with pytest.raises(BudgetExceeded, match="delta of 0"):
        PrivateModes(epsilon=0.1, delta=1e-6, bounds=[(0, 1)], ledger=ledger).fit(np.zeros((5, 1)))
    for number in range(6):
        assert not ask(ledger, number).cached
    with pytest.raises(BudgetExceeded, match="does not allow"):
        ask(ledger, 6, PureCost(Fraction(1, UNITS)), forbidden)
    assert ask(ledger, 3, release=forbidden).cached
    assert ledger.remaining().pure == 0.0
    assert ledger.verify() == 14


def test_a_price_in_the_other_currency_is_another_price(make):
    ledger = make(delta=1e-6)
    ask(ledger)
    with pytest.raises(LedgerRefused, match="at another cost"):
        ask(ledger, cost=Cost(0.5), release=forbidden)


def test_it_is_as_it_was_when_opened_again(make, tmp_path):
    ledger = make(delta=1e-6)
    receipt = ask(ledger).receipt
    ask(ledger, 1, Cost(0.01))
    ask(ledger, 2, PureCost(0.125))
    left = ledger.remaining()
    ledger.close()
    with Ledger.open(ledger.path, high_water=tmp_path / "marks") as again:
        assert again.remaining() == left
        assert Receipt.from_dict(json.loads(json.dumps(receipt.to_dict()))).verify(again)
        assert (receipt.currency, receipt.amount, receipt.delta) == ("pure", UNITS // 2, 0)
        assert again.answer(receipt.commit).payload == b"about 90"
        reserves = [entry.content for entry in again.history() if entry.kind == "reserve"]
    assert [content["currency"] for content in reserves] == ["pure", "zcdp", "pure"]
    spent = [(c["currency"], Fraction(c["amount"], UNITS), Fraction(0), None) for c in reserves]
    assert reference.excess(spent, "add-remove", 3.0, 1e-6) < 0


@pytest.mark.parametrize(("neighbours", "total"), [("add-remove", 1.0), ("replace", 1.75)])
def test_parts_cost_what_the_dearest_cost(make, neighbours, total):
    ledger = make(neighbours=neighbours)
    ledger.declare_partition("visits", "ward", ["A", "B", "C"])
    for part, epsilon in (("A", 0.5), ("B", 0.75), ("C", 0.25), ("A", 0.5)):
        ask(
            ledger,
            epsilon + ord(part) + ledger.verify(),
            PureCost(epsilon),
            neighbours=neighbours,
            partition=("ward", part),
        )
    assert ledger.remaining().pure == 3.0 - total


def test_analysts_have_pure_caps(make):
    ledger = make(delta=1e-6)
    ledger.add_analyst("ana", epsilon=1.0, delta=0.0)
    ledger.add_analyst("bob", epsilon=0.75, delta=1e-6)
    ledger.add_analyst("eve")
    assert ledger.remaining("visits", "ana").pure == 1.0
    ask(ledger, 0, analyst="ana")
    ask(ledger, 1, analyst="ana")
    with pytest.raises(BudgetExceeded, match="analyst 'ana'"):
        ask(ledger, 2, analyst="ana", release=forbidden)
    with pytest.raises(BudgetExceeded, match="cap of this analyst has a delta of 0"):
        ask(ledger, 2, Cost(1e-6), analyst="ana", release=forbidden)
    ask(ledger, 2, analyst="bob")
    ask(ledger, 3, Cost(1e-4), analyst="bob")
    with pytest.raises(BudgetExceeded, match="analyst 'bob'"):
        ask(ledger, 4, analyst="bob", release=forbidden)
    ask(ledger, 4, analyst="eve")
    assert 0.0 < ledger.remaining().pure < 1.0 - epsilon_of(1e-4, 1e-6)


def test_a_cap_is_not_set_below_what_is_spent_in_both(make):
    ledger = make(delta=1e-6)
    ask(ledger)
    ledger.set_cap(dataset="visits", epsilon=0.5, delta=0.0)
    assert ledger.remaining().pure == 0.0
    ledger.set_cap(dataset="visits", epsilon=2.0, delta=1e-6)
    ask(ledger, 1, Cost(0.01))
    spent = 0.5 + epsilon_of(0.01, 1e-6)
    for epsilon, delta in ((2.0, 0.0), (0.9 * spent, 1e-6), (0.5, 1e-6)):
        with pytest.raises(LedgerRefused, match="below what is spent"):
            ledger.set_cap(dataset="visits", epsilon=epsilon, delta=delta)
    ledger.set_cap(dataset="visits", epsilon=1.01 * spent, delta=1e-6)


@pytest.mark.parametrize(
    "options", [{"epsilon": -1.0}, {"epsilon": 0.0}, {"delta": -1e-6}, {"delta": 1.0}, {"delta": None}]
)
def test_caps_that_make_no_sense(make, options):
    with pytest.raises((TypeError, ValueError), match=r"epsilon|delta"):
        make(**options)


def test_plans_in_pure_epsilon(make):
    ledger = make(delta=1e-6)
    plan = ledger.plan(PureCost(Fraction(1, 10)))
    assert (plan.times, plan.charge.currency) == (30, "pure")
    terms = ReleaseTerms.checked(0.1, None, "add-remove", 1, allow_pure=True)
    assert ledger.plan(terms).times == 30
    assert plan.after.rho < plan.before.rho


# -- old ledgers, and files that say what no fogline knows ------------------------------------------------


def test_an_old_ledger_goes_on_with_pure_releases_and_loses_no_room(tmp_path):
    shutil.copytree(FIXTURES / "base", tmp_path / "base")
    (tmp_path / "base" / "ledger").chmod(0o600)
    with Ledger.open(tmp_path / "base" / "ledger", high_water=tmp_path / "base" / "marks") as ledger:
        left = ledger.remaining("stays")
        contents = [entry.content for entry in ledger.history() if entry.kind == "reserve"]
        last = [content for content in contents if content["asked"]["dataset"] == "stays"][-1]
        assert left.rho == pytest.approx((last["budget"] - last["spent"]) / UNITS, abs=1e-15)
        assert 0 < left.pure < 2.0
        ask(ledger, cost=PureCost(left.pure / 4), dataset="stays")
        after = ledger.remaining("stays")
        assert after.pure == pytest.approx(0.75 * left.pure)
        assert after.rho == pytest.approx(0.75 * left.rho, rel=1e-6)
        assert ledger.remaining("descents") == ledger.remaining("descents")
    with Ledger.open(tmp_path / "base" / "ledger", high_water=tmp_path / "base" / "marks") as ledger:
        assert ledger.remaining("stays") == after
        ledger.verify()


def read_again(entries, change):
    """Read entries with something changed in each pure one, its hash made to fit."""
    accounts = Accounts()
    for entry in entries:
        content = dict(entry.content) | (change if entry.content.get("currency") == "pure" else {})
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        accounts.apply(entry.seq, text, chain(accounts.tip, text))


@pytest.mark.parametrize("change", [{"spent": 1}, {"budget": 1}, {"amount": 1}, {"currency": "zcdp"}])
def test_an_entry_that_does_not_add_up_is_refused(make, change):
    ledger = make(delta=1e-6)
    ask(ledger)
    ask(ledger, 1, Cost(0.01))
    read_again(ledger.history(), {})
    with pytest.raises(LedgerRefused, match=r"add up|more than its cap"):
        read_again(ledger.history(), change)


@pytest.mark.parametrize("currency", ["gold", None, ["pure"]])
def test_an_unknown_currency_is_refused_by_its_name(make, currency):
    """Entries of before the Gaussian lane have a currency, and count in it; one that nobody knows counts in none."""
    ledger = make()
    ask(ledger)
    with pytest.raises(
        LedgerRefused, match=r"entry 2 is charged in a currency that this version does not know"
    ) as told:
        read_again(ledger.history(), {"currency": currency})
    assert repr(currency) in str(told.value)
    assert told.value.check == "schema"


def test_an_entry_that_names_no_currency_is_refused(make):
    ledger = make()
    ask(ledger)
    accounts = Accounts()
    *before, content = [dict(entry.content) for entry in ledger.history() if entry.kind != "commit"]
    for seq, earlier in enumerate(before):
        text = json.dumps(earlier, sort_keys=True, separators=(",", ":"))
        accounts.apply(seq, text, chain(accounts.tip, text))
    del content["currency"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    with pytest.raises(LedgerRefused, match="does not know"):
        accounts.apply(len(before), text, chain(accounts.tip, text))


def test_a_negative_charge_is_refused(make):
    ledger = make()
    ask(ledger)
    with pytest.raises(LedgerRefused, match="impossible charge"):
        read_again(ledger.history(), {"amount": -1})


# -- what is shown ----------------------------------------------------------------------------------------


def test_statements_and_pictures_tell_the_currencies_apart(make):
    ledger = make(delta=1e-6)
    assert "pure epsilon" not in spending_picture(statements(ledger))
    ask(ledger)
    ask(ledger, 1, Cost(0.01))
    (statement,) = statements(ledger)
    assert [item.currency for item in statement.items] == ["pure", "zcdp"]
    assert statement.total == (pytest.approx(0.5 + epsilon_of(0.01, 1e-6)), 1e-6)
    document = json.loads(json.dumps(statement.to_dict()))
    assert document["spent"]["pure"] == {"amount": 0.5, "delta": 0.0}
    assert document["total"]["epsilon"] == statement.total[0]
    assert document["remaining"]["pure"] == ledger.remaining().pure
    assert statement.budget("pure") == UNITS // 2 + round(ledger.remaining().pure * UNITS)
    drawing = spending_picture([statement])
    assert "pure epsilon, from the cap of epsilon 3 at delta 1e-06" in drawing
    pure = make()
    ask(pure)
    (alone,) = statements(pure)
    assert alone.total == (0.5, 0.0)
    assert alone.budget("zcdp") is None
    assert "pure releases of epsilon 2.50 would fit" in spending_picture([alone])


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command_line_speaks_of_pure_epsilon(tmp_path):
    path, marks = tmp_path / "ledger", ["--high-water", tmp_path / "marks"]
    made = run("ledger", "create", path, "--dataset", "visits", "--epsilon", "3", "--delta", "0", *marks)
    assert made.exit_code == 0, made.output
    assert "for pure releases only" in made.stdout
    with Ledger.open(path, high_water=tmp_path / "marks") as ledger:
        receipt = ask(ledger).receipt
    assert "pure epsilon = 0.5" in payment_words({"receipt": receipt.to_dict(), "cached": False})
    plan = ["ledger", "plan", path, "--epsilon", "0.5", *marks]
    told = run(*plan, "--delta", "0", "--times", "5")
    assert told.exit_code == 0
    assert "costs pure epsilon = 0.5" in told.stdout
    assert "5 would fit" in told.stdout
    assert run(*plan, "--delta", "0", "--times", "6").exit_code == 4
    assert run(*plan, "--delta", "1e-6").exit_code == 4
    assert json.loads(run(*plan, "--delta", "0", "--json").stdout)["cost"] == {"currency": "pure", "amount": 0.5}
    bad = run("ledger", "plan", path, "--epsilon", "-1", "--delta", "0", *marks)
    assert bad.exit_code == 2
    assert "epsilon" in bad.stderr
    shown = run("ledger", "show", path, *marks).stdout
    assert "in all epsilon 0.5 at delta 0 (pure epsilon 0.5); pure epsilon 2.5 would fit" in shown
    assert "0.5 pure" in shown
    assert "0.5 pure" in run("ledger", "history", path, *marks).stdout


# -- a curator --------------------------------------------------------------------------------------------


class Sides:
    """How many records are below and above a half."""

    size = 2

    def sensitivity(self, neighbours, max_contributions):
        return float(2 * max_contributions)

    def l1_sensitivity(self, neighbours, max_contributions):
        return float(max_contributions if neighbours == "add-remove" else 2 * max_contributions)

    def exact(self, records):
        total = np.zeros(2, dtype=np.int64)

        def take(rows):
            total[0] += int((rows[:, 0] < 0.5).sum())
            total[1] += int((rows[:, 0] >= 0.5).sum())

        records.each(take)
        return total

    def decode(self, values, noise_scale):
        return values.tolist(), noise_scale


def two_stages(curator):
    first, scale = curator.count(Sides(), Fraction(1, 3), "pilot")
    again, other = curator.count(Sides(), Fraction(2, 3), "counts")
    return first, again, scale / other


QUESTION = {"mechanism": "two counts", "proof": "laplace-noise", "name": "sides", "code_version": "sides-1"}
QUESTION |= {"parameters": {}, "max_payload": 2**14}


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_curator_counts_under_pure_terms_and_is_replayed_from_the_ledger(make, neighbours):
    ledger = make(neighbours=neighbours)
    terms = ReleaseTerms.checked(0.7, 0, neighbours, 1, allow_pure=True)
    X = np.random.default_rng(0).uniform(size=(4000, 1))
    result, guarantee, receipt = Curator(X, terms, width=1).release(two_stages, ledger=ledger, **QUESTION)
    assert guarantee.certified
    assert "epsilon-DP (pure), by two counts" in str(guarantee)
    assert (receipt["currency"], receipt["amount"], receipt["delta"]) == (
        "pure",
        7 * UNITS // 10 - (Fraction(7, 10) > 0.7),
        0,
    )
    assert result[2] == pytest.approx(2.0)
    assert abs(sum(result[1]) - 4000) < 400
    left = ledger.remaining()
    other = np.zeros((3, 1))
    again, promised, _ = Curator(other, terms, width=1).release(two_stages, ledger=ledger, **QUESTION)
    assert (again, promised) == (result, guarantee)
    assert ledger.remaining() == left


@pytest.mark.parametrize("shares", [["1/3", "2/3"], ["1/7"] * 7, ["1/10"] * 10, ["1"]])
def test_shares_never_exceed_the_terms(shares):
    terms = ReleaseTerms.checked(0.3, 0, "add-remove", 1, allow_pure=True)
    curator = Curator(np.zeros((10, 1)), terms, width=1)
    for number, share in enumerate(shares):
        curator.count(Sides(), Fraction(share), f"stage {number}")
    assert sum(map(Fraction, curator.spent)) <= terms.exact_epsilon <= Fraction(terms.epsilon)
    assert sum(map(Fraction, curator.spent)) == pytest.approx(terms.exact_epsilon)
    with pytest.raises(RuntimeError, match="more than its terms"):
        curator.count(Sides(), Fraction(1, 1000), "one more")


def test_a_stage_without_a_share_or_with_gaussian_noise_is_refused():
    terms = ReleaseTerms.checked(0.3, 0, "add-remove", 1, allow_pure=True)
    curator = Curator(np.zeros((10, 1)), terms, width=1)
    with pytest.raises(RuntimeError, match="Gaussian noise needs a delta"):
        curator.ask(Sides(), Fraction(1, 2), "gaussian")
    for share in (Fraction(0), Fraction(-1)):
        with pytest.raises(RuntimeError, match="above 0"):
            curator.count(Sides(), share, "nothing")
    with pytest.raises(RuntimeError, match="no delta aside"):
        curator.frequent(Sides(), Fraction(1, 2), "keys", aside=Fraction(1))
    assert curator.transcript == []


def test_counting_under_terms_with_a_delta_is_paid_for_in_rho():
    terms = ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1)
    curator = Curator(np.zeros((10, 1)), terms, width=1)
    _, scale = curator.count(Sides(), Fraction(1, 2), "half")
    assert Fraction(1 / scale) ** 2 / 2 <= Fraction(curator.spent[0]) <= Fraction(terms.rho) / 2


def test_a_transcript_of_another_release_is_not_taken():
    terms = ReleaseTerms.checked(0.3, 0, "add-remove", 1, allow_pure=True)
    curator = Curator(np.zeros((10, 1)), terms, width=1)
    two_stages(curator)
    known, _ = Curator.from_bytes(terms, curator.to_bytes(terms.guarantee("laplace-noise")))
    with pytest.raises(ValueError, match="another release"):
        known.count(Sides(), Fraction(1, 3), "another name")
