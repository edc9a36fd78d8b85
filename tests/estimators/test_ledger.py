"""PrivateModes paid for by a ledger: what is one question and what is two."""

import numpy as np
import pytest

from fogline import Ledger, PrivateModes
from fogline.ledger import BudgetExceeded, ReleaseFailed
from fogline.sources.files import FileTable

pytestmark = pytest.mark.quick

SETTINGS = {"epsilon": 0.5, "delta": 1e-6, "bounds": [(0.0, 100.0)], "n_modes": 1}


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(
        tmp_path / "ledger", dataset="x", epsilon=1.0, delta=1e-6, high_water=tmp_path / "marks"
    ) as made:
        yield made


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "two.csv"
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(30, 5, 3000), rng.normal(70, 5, 3000)])
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows.tolist()))
    return path


def test_another_column_is_another_question(ledger, table):
    modes = [PrivateModes(**SETTINGS, ledger=ledger).fit(FileTable(table, [name])).modes_[0, 0] for name in "ab"]
    assert abs(modes[0] - 30) < 5
    assert abs(modes[1] - 70) < 5


def test_the_same_question_is_answered_once(ledger, table):
    fits = [PrivateModes(**SETTINGS, ledger=ledger).fit(FileTable(table, ["a"])) for _ in range(2)]
    assert fits[0].density_ == fits[1].density_
    assert fits[0].density_.receipt is not None
    assert sum(entry.kind == "reserve" for entry in ledger.history()) == 1


def test_a_plan_is_what_is_charged(ledger, table):
    model = PrivateModes(**SETTINGS, ledger=ledger)
    plan = ledger.plan(model)
    model.fit(FileTable(table, ["a"]))
    assert model.density_.receipt["amount"] == plan.charge.amount
    assert ledger.remaining().rho == plan.after.rho


def test_a_budget_is_not_overspent(ledger, table):
    with pytest.raises(BudgetExceeded):
        PrivateModes(**(SETTINGS | {"epsilon": 1.1}), ledger=ledger).fit(FileTable(table, ["a"]))
    PrivateModes(**(SETTINGS | {"epsilon": 1.0}), ledger=ledger).fit(FileTable(table, ["a"]))
    with pytest.raises(BudgetExceeded):
        PrivateModes(**(SETTINGS | {"epsilon": 0.1}), ledger=ledger).fit(FileTable(table, ["b"]))


def test_errors_of_the_schema_are_free(ledger, table):
    for source in (np.zeros((3, 2)), FileTable(table), np.array([["x"]])):
        with pytest.raises((ValueError, TypeError)):
            PrivateModes(**(SETTINGS | {"bounds": [(0.0, 1.0)] * 3}), ledger=ledger).fit(source)
    assert not any(entry.kind == "reserve" for entry in ledger.history())


def test_a_failure_after_the_reserve_says_nothing(ledger, table):
    source = FileTable(table, ["a"])
    table.unlink()
    with pytest.raises(ReleaseFailed) as caught:
        PrivateModes(**SETTINGS, ledger=ledger).fit(source)
    assert caught.value.__context__ is None
    assert sum(entry.kind == "reserve" for entry in ledger.history()) == 1
