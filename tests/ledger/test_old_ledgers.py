"""A ledger written by fogline before it knew units, sources, marks' folders and ids goes on, and answers for free."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fogline import PrivateHellinger, PrivateModes
from fogline.accounting import analytic_gaussian, zcdp
from fogline.ledger import Ledger, LedgerRefused, ProtectedUnit
from fogline.ledger.shared_cap import UNITS
from fogline.sources.registry import table

FIXTURES = Path(__file__).parent / "fixtures"
_spec = importlib.util.spec_from_file_location("make_base_ledger", FIXTURES / "make_base_ledger.py")
base = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(base)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(FIXTURES / "base", tmp_path / "base")
    (tmp_path / "base" / "ledger").chmod(0o600)
    monkeypatch.chdir(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture
def ledger(folder):
    with Ledger.open(folder / "ledger", high_water=folder / "marks") as opened:
        yield opened


def asked(ledger):
    """Ask all that was asked, and return what it cost."""
    before = [ledger.remaining(name).rho for name in ledger.datasets]
    stays = ledger.on("stays")
    PrivateModes(**base.BOX, ledger=stays).fit(base.records())
    PrivateModes(**base.BOX, ledger=stays).fit(table("stays.csv", ["days"]))
    PrivateModes(**base.BOX, ledger=stays.on(partition=("ward", "A"))).fit(base.records())
    return sum(before) - sum(ledger.remaining(name).rho for name in ledger.datasets)


def test_every_old_question_is_answered_for_free(ledger):
    assert ledger.verify() == 12
    assert asked(ledger) == 0.0
    old = json.loads(ledger.answer(5).receipt.to_dict().__repr__().replace("'", '"').replace("None", "null"))
    assert old["unit"] is None
    assert old["code_version"] == "density-1"


def test_a_descent_whose_law_changed_is_asked_anew_and_its_paid_answer_stays(ledger):
    before = ledger.remaining("descents").rho
    PrivateHellinger(**base.DESCENT, ledger=ledger.on("descents")).fit(base.records())
    assert ledger.remaining("descents").rho < before
    versions = [paid.question.code_version for paid in ledger.answers("descents")]
    assert len(versions) == 2
    assert versions[0] != versions[1] == "hellinger-5"
    old = ledger.answers("descents")[0]
    assert ledger.answer(old.receipt.commit).payload
    left = ledger.remaining("descents").rho
    PrivateHellinger(**base.DESCENT, ledger=ledger.on("descents")).fit(base.records())
    assert ledger.remaining("descents").rho == left


def test_entries_that_do_not_say_whether_their_noise_was_gaussian_count_in_zcdp(ledger):
    """The noise was Gaussian, but no entry says so: they are counted in the loosest currency, and cannot change it."""
    spent = {
        name: sum(
            entry.content["amount"]
            for entry in ledger.history()
            if entry.kind == "reserve" and entry.content["asked"]["dataset"] == name
        )
        for name in ledger.datasets
    }
    for name, rho in spent.items():
        assert (ledger.lane(name), ledger.spending(name).rho) == ("zcdp", rho)
        epsilon, left = zcdp.epsilon_of(rho / UNITS, 1e-6), analytic_gaussian.epsilon_of(rho / UNITS, 1e-6)
        assert epsilon > left > 0


def test_it_goes_on_and_then_knows_its_marks(folder):
    with Ledger.open(folder / "ledger", high_water=folder / "marks") as ledger:
        PrivateModes(**{**base.BOX, "epsilon": 0.3}, ledger=ledger.on("stays")).fit(base.records())
        assert [entry.kind for entry in ledger.history()[12:]] == ["marks", "reserve", "commit"]
        assert asked(ledger) == 0.0
    shutil.copytree(folder / "marks", folder / "marks2")
    with pytest.raises(LedgerRefused, match="not those of this ledger"):
        Ledger.open(folder / "ledger", high_water=folder / "marks2")
    Ledger.open(folder / "ledger", high_water=folder / "marks").close()


def test_its_unit_is_that_of_what_was_released(ledger):
    assert ledger.unit("stays") == ProtectedUnit("record", 1)
    persons = {**base.BOX, "max_contributions": 2}
    with pytest.raises(LedgerRefused, match="accounted for one record"):
        PrivateModes(**persons, ledger=ledger.on("stays")).fit(table("stays.csv", ["days"], unit="patient"))


def test_its_source_is_fixed_by_the_next_question(folder, ledger):
    shutil.copy(folder / "stays.csv", folder / "women.csv")
    PrivateModes(**{**base.BOX, "epsilon": 0.3}, ledger=ledger.on("stays")).fit(table("stays.csv", ["days"]))
    for epsilon in (0.2, 0.4):  # the old question too: now it is known whose answer that is
        with pytest.raises(LedgerRefused, match=r"women\.csv"):
            PrivateModes(**{**base.BOX, "epsilon": epsilon}, ledger=ledger.on("stays")).fit(
                table("women.csv", ["days"])
            )
    assert asked(ledger) == 0.0


def test_an_old_copy_of_it_is_refused_once_it_went_on(folder, ledger):
    shutil.copy(folder / "ledger", folder / "copy")
    ledger.new_version("stays", "2")
    with pytest.raises(LedgerRefused) as caught:
        Ledger.open(folder / "copy", high_water=folder / "marks")
    assert caught.value.check == "high-water"


def test_the_old_adoption_of_an_old_ledger_leaves_its_marks_unknown(folder):
    (folder / "marks2").mkdir()
    with Ledger.adopt(folder / "ledger", high_water=folder / "marks2") as ledger:
        assert "marks" in ledger.history()[-1].content
    with pytest.raises(LedgerRefused):
        Ledger.open(folder / "ledger", high_water=folder / "marks")


def test_saved_densities_and_receipts_of_old_answers_still_hold(ledger):
    fitted = PrivateModes(**base.BOX, ledger=ledger.on("stays")).fit(base.records())
    assert fitted.density_.guarantee.proof == "density-sketch"
    assert np.isfinite(fitted.density_.count)
