"""What a data set lets itself be asked: for which unit, from where, by whom, of which part, in which edition."""

import numpy as np
import pytest

from fogline import PrivateHellinger, PrivateModes
from fogline.accounting import Cost
from fogline.families import Normal
from fogline.ledger import Ledger, LedgerRefused, ProtectedUnit, Question, Receipt
from fogline.sources.files import CountedFile
from fogline.sources.registry import table

PRICE = Cost(0.001)
BOX = {"epsilon": 0.1, "delta": 1e-6, "bounds": [(0, 30)], "bandwidth": 0.1}


@pytest.fixture
def make(tmp_path):
    opened = []

    def made(**options):
        options = {"dataset": "visits", "epsilon": 2.0, "delta": 1e-6, "high_water": tmp_path / "marks", **options}
        opened.append(Ledger.create(tmp_path / f"ledger{len(opened)}", **options))
        return opened[-1]

    yield made
    for ledger in opened:
        ledger.close()


@pytest.fixture
def csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    days = np.random.default_rng(0).normal(9, 2, 300)
    lines = ["patient,days", *(f"{i % 60},{x:.4f}" for i, x in enumerate(days))]
    for name in ("visits.csv", "women.csv"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path


def spend(ledger, number=0, *, release=lambda: b"answer", cost=PRICE, source=None, code_version="1", **options):
    parameters = {"number": number, **({} if source is None else {"source": source})}
    view = options.pop("view", None) or ledger.on(
        options.pop("dataset", None), analyst=options.pop("analyst", None), partition=options.pop("partition", None)
    )
    options = {"neighbours": "add-remove", "certified": True, **options}
    return view.ask("count", code_version=code_version, parameters=parameters, cost=cost, release=release, **options)


def forbidden():
    raise AssertionError("the data were touched")


def refused(check, action, *arguments, **options):
    with pytest.raises(LedgerRefused) as caught:
        action(*arguments, **options)
    assert caught.value.check == check, caught.value
    return str(caught.value)


# -- units --------------------------------------------------------------------------------------------

PERSON = {"unit": "patient", "max_contributions": 2, "enforced": True}


def test_a_declared_unit_refuses_all_others_before_anything_is_spent(make):
    ledger = make(unit="patient", max_contributions=3)
    left = ledger.remaining()
    message = refused("unit", spend, ledger, release=forbidden)
    assert "unit='patient'" in message
    assert "--unit patient" in message
    refused("unit", spend, ledger, unit="doctor", max_contributions=2, enforced=True, release=forbidden)
    refused("unit", spend, ledger, unit="patient", max_contributions=4, enforced=True, release=forbidden)
    refused("unit", spend, ledger, unit="patient", max_contributions=2, enforced=False, release=forbidden)
    assert ledger.remaining() == left
    spend(ledger, **PERSON)
    spend(ledger, 1, unit="patient", max_contributions=3, enforced=True)
    spend(ledger, 2, unit="patient", max_contributions=3, enforced=False)


def test_a_declared_number_of_records_is_asked_of_every_release(make):
    ledger = make(max_contributions=3)
    assert str(ledger.unit()) == "person of at most 3 records, as declared"
    assert "max_contributions=3" in refused("unit", spend, ledger, release=forbidden)
    refused("unit", spend, ledger, max_contributions=2, release=forbidden)
    refused("unit", spend, ledger, **PERSON, release=forbidden)
    spend(ledger, max_contributions=3)
    assert make(unit="record").unit() == ProtectedUnit("record", 1)


def test_the_first_release_fixes_a_unit_that_was_not_declared(make):
    ledger = make()
    assert ledger.unit() is None
    spend(ledger, unit="patient", max_contributions=2, enforced=True)
    assert ledger.unit() == ProtectedUnit("patient")
    refused("unit", spend, ledger, 1, release=forbidden)
    spend(ledger, 1, unit="patient", max_contributions=5, enforced=True)  # whoever enforces a number may vary it
    other = make()
    spend(other, max_contributions=4)
    refused("unit", spend, other, 1, release=forbidden)
    refused("unit", spend, other, 1, max_contributions=5, release=forbidden)


def test_what_holds_for_every_unit_fits_and_fixes_none(make):
    ledger = make()
    spend(ledger, unit=None)
    assert ledger.unit() is None
    spend(make(unit="patient"), unit=None)


def test_what_was_answered_stays_free_for_any_unit(make):
    ledger = make()
    spend(ledger, **PERSON)
    assert spend(ledger, release=forbidden, **PERSON).cached


def test_receipts_history_and_answers_name_the_unit(make):
    ledger = make(unit="patient", max_contributions=2)
    receipt = spend(ledger, **PERSON).receipt
    assert (receipt.unit, receipt.max_contributions, receipt.enforced) == ("patient", 2, True)
    assert (receipt.mechanism, receipt.code_version) == ("count", "1")
    reserve = next(entry for entry in ledger.history() if entry.kind == "reserve")
    assert reserve.content["unit"] == {"name": "patient", "max_contributions": 2, "enforced": True}
    early = {k: v for k, v in receipt.to_dict().items() if k not in ("mechanism", "code_version", "unit")}
    early = {k: v for k, v in early.items() if k not in ("max_contributions", "enforced")}
    assert Receipt.from_dict(early).verify(ledger)
    assert not Receipt.from_dict({**receipt.to_dict(), "unit": "record"}).verify(ledger)


def test_lines_and_persons_of_a_file_are_not_added_up(make, csv):
    """0.7 for a line and 0.6 for a person are no 1.3 for anybody."""
    ledger = make()
    persons = {**BOX, "max_contributions": 2}
    PrivateModes(**persons, ledger=ledger).fit(table("visits.csv", ["days"], unit="patient"))
    refused("unit", PrivateModes(**BOX, ledger=ledger).fit, table("visits.csv", ["days"]))
    assert str(ledger.unit()) == "patient"
    lines = make()
    fitted = PrivateModes(**BOX, ledger=lines).fit(table("visits.csv", ["days"]))
    assert fitted.density_.receipt["unit"] == "record"  # a line of a file and a row of a frame are one unit
    PrivateModes(**BOX, ledger=lines.on().afresh()).fit(np.zeros((5, 1)))
    refused("unit", PrivateModes(**persons, ledger=lines).fit, table("visits.csv", ["days"], unit="patient"))
    declared = make(unit="patient", max_contributions=2)
    refused("unit", PrivateModes(**persons, ledger=declared).fit, table("visits.csv", ["days"]))  # only declared


@pytest.mark.parametrize("options", [{"unit": ""}, {"unit": "a\nb"}, {"max_contributions": 0}, {"sources": "a.csv"}])
def test_declarations_that_make_no_sense(make, options):
    with pytest.raises((TypeError, ValueError), match=r"unit|max_contributions|sources"):
        make(**options)


# -- sources ------------------------------------------------------------------------------------------


def test_another_file_is_refused_and_says_what_to_do(make, csv):
    ledger = make()
    first = PrivateModes(**BOX, ledger=ledger).fit(table("visits.csv", ["days"]))
    left = ledger.remaining()
    message = refused("source", PrivateModes(**BOX, ledger=ledger).fit, table("women.csv", ["days"]))
    for word in ("visits.csv", "women.csv", "--afresh", "new-version"):
        assert word in message
    refused("source", PrivateModes(**{**BOX, "epsilon": 0.2}, ledger=ledger).fit, table("women.csv", ["days"]))
    assert ledger.remaining() == left
    for same in ("visits.csv", "./visits.csv"):
        again = PrivateModes(**BOX, ledger=ledger).fit(table(same, ["days"]))
        assert again.density_ == first.density_
    assert ledger.remaining() == left
    PrivateModes(**BOX, ledger=ledger.on().afresh()).fit(table("women.csv", ["days"]))
    PrivateModes(**BOX, ledger=ledger).fit(table("visits.csv", ["days"]))  # asking afresh moved nothing
    ledger.new_version("visits", "2")
    PrivateModes(**BOX, ledger=ledger).fit(table("women.csv", ["days"]))
    refused("source", PrivateModes(**BOX, ledger=ledger).fit, table("visits.csv", ["days"]))


def test_declared_sources_refuse_everything_else_flatly(make, csv):
    ledger = make(sources=["./visits.csv", "visits.parquet"])
    PrivateModes(**BOX, ledger=ledger).fit(table("visits.csv", ["days"]))
    for asker, source in ((ledger, table("women.csv", ["days"])), (ledger.on().afresh(), np.zeros((3, 1)))):
        assert "visits.parquet" in refused("source", PrivateModes(**BOX, ledger=asker).fit, source)
    ledger.new_version("visits", "2")
    refused("source", PrivateModes(**BOX, ledger=ledger).fit, table("women.csv", ["days"]))
    ledger.new_version("visits", "3", sources=["women.csv"])
    PrivateModes(**BOX, ledger=ledger).fit(table("women.csv", ["days"]))


def test_the_source_is_in_the_facts_of_files_and_databases(csv):
    import sqlite3

    assert table("visits.csv", ["days"]).facts == {"source": "visits.csv"}
    assert CountedFile("visits.csv", ["days"], rows=300).facts["source"] == "visits.csv"
    connection = sqlite3.connect("visits.db")
    connection.execute("CREATE TABLE visits (days REAL)")
    connection.commit()
    assert table("sqlite:///visits.db", query="visits").facts == {"query": "visits", "source": "sqlite:///visits.db"}
    assert table(connection, query="visits").facts == {"query": "visits"}
    connection.close()
    assert table(np.zeros((3, 1))).facts == {}


def test_questions_without_a_source_are_as_before(make):
    ledger = make()
    spend(ledger, source="a")
    assert not spend(ledger).cached  # records in memory have no place to be compared with
    refused("source", spend, ledger, source="b", release=forbidden)


# -- analysts -----------------------------------------------------------------------------------------


def test_once_there_are_analysts_every_question_says_who_asks(make):
    ledger = make()
    spend(ledger)
    ledger.add_analyst("ana", epsilon=1.0, delta=1e-6)
    message = refused("analyst", spend, ledger, 1, release=forbidden)
    assert "--analyst" in message
    refused("analyst", spend, ledger, release=forbidden)  # even of what is answered
    assert spend(ledger, analyst="ana", release=forbidden).cached
    spend(ledger, 1, analyst="ana")


# -- parts under "replace" ----------------------------------------------------------------------------


def test_a_descent_is_refused_on_a_part_under_replace(make):
    ledger = make(neighbours="replace")
    ledger.declare_partition("visits", "ward", ["A", "B"])
    days = np.random.default_rng(0).normal(9, 2, (200, 1))
    descent = {"family": "normal", "parameter_bounds": {"mu": (0, 20), "sigma": (0.5, 6)}, "bounds": [(0, 30)]}
    descent |= {"method": "newton", "epsilon": 0.2, "delta": 1e-6, "iterations": 1}
    part = ledger.on(partition=("ward", "A"))
    left = ledger.remaining()
    message = refused("partition", PrivateHellinger(**descent, ledger=part).fit, days)
    assert "gain and the loss" in message
    assert ledger.remaining() == left
    PrivateHellinger(**descent, ledger=ledger).fit(days)
    PrivateModes(**BOX, neighbours="replace", ledger=part).fit(days)  # its noise covers a record that comes or goes
    spend(ledger, neighbours="replace", partition=("ward", "B"), gain_and_loss=True)
    refused("partition", spend, ledger, 1, neighbours="replace", partition=("ward", "B"), release=forbidden)


def test_a_kernel_that_makes_records_alike_is_not_proved_for_gain_and_loss(make, monkeypatch):
    from fogline.density.random_spec import plan_spec
    from fogline.queries import fourier_sums as sensitivity

    spec = plan_spec([(0, 1)], [0.05])
    assert sensitivity.covers_gain_and_loss(spec, 1)
    monkeypatch.setattr(sensitivity, "least_kernel", lambda spec: 0.6)
    assert not sensitivity.covers_gain_and_loss(spec, 1)
    assert sensitivity.covers_gain_and_loss(spec, 1, strata=2)
    ledger = make(neighbours="replace")
    ledger.declare_partition("visits", "ward", ["A", "B"])
    part = ledger.on(partition=("ward", "A"))
    refused("partition", PrivateModes(**BOX, neighbours="replace", ledger=part).fit, np.zeros((5, 1)))


# -- editions -----------------------------------------------------------------------------------------


def test_a_new_edition_is_not_charged_unasked_and_the_old_answer_stays(make):
    ledger = make()
    old = spend(ledger, code_version="count-1", release=lambda: b"by the first")
    left = ledger.remaining()
    message = refused("edition", spend, ledger, code_version="count-2", release=forbidden)
    assert "count-1" in message
    assert "--afresh" in message
    assert f"entry {old.receipt.commit}" in message
    assert ledger.remaining() == left
    (paid,) = ledger.answers("visits")
    assert (paid.question.code_version, paid.receipt, paid.partition) == ("count-1", old.receipt, None)
    assert ledger.answer(paid.receipt.commit).payload == b"by the first"
    assert spend(ledger, code_version="count-1", release=forbidden).cached
    fresh = spend(ledger, code_version="count-2", view=ledger.on().afresh(), release=lambda: b"by the second")
    assert fresh.receipt.code_version == "count-2"
    assert [paid.question.code_version for paid in ledger.answers()] == ["count-1", "count-2"]
    refused("chain", ledger.answer, 0)


def test_an_edition_that_can_be_read_is_given_and_marked(make):
    ledger = make()
    spend(ledger, code_version="count-1", release=lambda: b"by the first")
    answer = spend(ledger, code_version="count-3", also_reads=("count-2", "count-1"), release=forbidden)
    assert (answer.payload, answer.cached, answer.receipt.code_version) == (b"by the first", True, "count-1")
    refused("edition", spend, ledger, code_version="count-3", also_reads=("count-2",), release=forbidden)


def test_answers_of_parts_and_versions_are_told_apart(make):
    ledger = make()
    ledger.declare_partition("visits", "ward", ["A", "B"])
    spend(ledger, partition=("ward", "A"))
    assert not spend(ledger, partition=("ward", "B"), code_version="2").cached
    ledger.new_version("visits", "2")
    assert not spend(ledger, partition=("ward", "A"), code_version="2").cached
    assert [paid.partition for paid in ledger.answers()] == [("ward", "A"), ("ward", "B"), ("ward", "A")]


def test_a_question_in_former_words_is_known_again(make):
    ledger = make()
    spend(ledger, "old words")
    assert spend(ledger, "new words", formerly={"number": "old words"}, release=forbidden).cached
    assert not spend(ledger, "new words").cached


def test_a_family_that_moved_to_another_file_asks_the_same_question(make, monkeypatch):
    ledger = make(neighbours="replace")
    days = np.random.default_rng(0).normal(9, 2, (200, 1))
    words = {"family": Normal(), "parameter_bounds": {"mu": (0, 20), "sigma": (0.5, 6)}, "bounds": [(0, 30)]}
    words |= {"method": "newton", "epsilon": 0.2, "delta": 1e-6, "iterations": 1}
    first = PrivateHellinger(**words, ledger=ledger).fit(days)
    left = ledger.remaining()
    monkeypatch.setattr(Normal, "__module__", "fogline.families.elsewhere")
    again = PrivateHellinger(**words, ledger=ledger).fit(days)
    assert again.params_ == first.params_
    assert ledger.remaining() == left


def test_a_source_must_be_text_to_be_one(make):
    ledger = make()
    for number in (1, 2):
        asked = Question("visits", "1", "count", "1", {"source": number})
        ledger.spend(asked, cost=PRICE, neighbours="add-remove", certified=True, release=lambda: b"x")
