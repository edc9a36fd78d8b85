"""Accuracy and risk before anything is spent: simulated once, interpolated in between, never from data."""

from __future__ import annotations

import numpy as np
import pytest

from fogline.planning.density import expected_density_error
from fogline.studio import outlook
from fogline.studio.outlook import Outlooks, attacker_success, budget_bar, risk_rows, trade_off
from fogline.studio.questions import ColumnWish, Question

STAY = ColumnWish("stay", 0.0, 60.0)


def question(**changes) -> Question:
    return Question("visits", changes.pop("columns", (STAY,)), changes.pop("epsilon", 1.0), records=2000, **changes)


def test_at_a_simulated_epsilon_the_outlook_is_the_plan():
    outlooks = Outlooks((1.0, 0.2))
    assert outlooks.accuracy(question(), "add-remove").rows == ()
    outlooks.wait()
    found = outlooks.accuracy(question(), "add-remove")
    plan = expected_density_error([(0, 60)], 2000, epsilons=[1.0], columns=["stay"], runs=1).rows[0]
    assert (found.done, found.wanted) == (2, 2)
    # more epsilon never looks worse: two rows that noise has put the wrong way round are told as their mean
    assert found.rows[0].median.total == pytest.approx(plan.quantiles[0][2].total, rel=1e-3)
    assert found.count_error == pytest.approx(plan.count_error)
    outlooks.close()


def test_errors_fall_with_epsilon_and_are_simulated_once(monkeypatch):
    calls = []
    simulate = outlook._expected
    monkeypatch.setattr(outlook, "_expected", lambda *given: calls.append(given[2]) or simulate(*given))
    outlooks = Outlooks((1.0, 0.2))
    totals = []
    outlooks.accuracy(question(), "add-remove")
    outlooks.wait()
    for epsilon in (0.05, 0.2, 0.5, 1.0, 3.0):
        row = outlooks.accuracy(question(epsilon=epsilon), "add-remove").rows[0]
        totals.append((row.mean.total, row.median.total, row.tenth.total))
    assert (np.diff(np.array(totals), axis=0) <= 1e-12).all()
    assert sorted(calls) == [0.2, 1.0]
    outlooks.close()


def test_a_guess_of_the_shape_changes_the_plan():
    outlooks = Outlooks((1.0,))
    guessed = question(columns=(ColumnWish("stay", 0.0, 60.0, typical=5.0, spread=2.0),))
    for one in (question(), guessed):
        outlooks.accuracy(one, "add-remove")
    outlooks.wait()
    plain, sharp = (outlooks.accuracy(one, "add-remove").rows[0] for one in (question(), guessed))
    assert sharp.median.total < plain.median.total
    assert "mixture" in outlooks.accuracy(guessed, "add-remove").shape
    outlooks.close()


def test_what_cannot_be_simulated_is_said(monkeypatch):
    def broken(*_):
        raise ValueError

    monkeypatch.setattr(outlook, "_expected", broken)
    outlooks = Outlooks((1.0, 2.0))
    outlooks.accuracy(question(), "add-remove")
    outlooks.wait()
    found = outlooks.accuracy(question(), "add-remove")
    assert (found.rows, found.done, found.wanted) == ((), 0, 0)
    outlooks.close()


def test_questions_left_behind_are_not_simulated_to_the_end(monkeypatch):
    calls = []
    simulate = outlook._expected
    monkeypatch.setattr(outlook, "_expected", lambda *given: calls.append(given) or simulate(*given))
    outlooks = Outlooks((1.0, 0.5, 0.2, 0.1))
    for high in (10.0, 20.0, 30.0):
        outlooks.accuracy(question(columns=(ColumnWish("stay", 0.0, high),)), "add-remove")
    outlooks.wait()
    assert len(calls) == 1 + 1 + 4
    outlooks.close()


@pytest.mark.quick
def test_risk_grows_with_epsilon_and_is_the_bound_of_the_guarantee():
    assert [round(row.after, 2) for row in risk_rows(1.0, "replace")] == [0.03, 0.27, 0.82]
    success = attacker_success(np.array([0.1, 1.0, 5.0]), "add-remove")
    assert (np.diff(success) > 0).all()
    assert success[0] == pytest.approx(0.1 * np.exp(0.1), abs=1e-6)


@pytest.mark.quick
def test_drawings_have_words_for_those_who_do_not_see_them():
    assert "25% is spent, this release would take 50%, 25% would remain" in budget_bar(4.0, 1.0, 2.0)
    assert "100% is spent, 0% is left" in budget_bar(4.0, 9.0)
    epsilons = np.geomspace(0.05, 20, 5)
    figures = trade_off(epsilons, [("a<b", epsilons**-1), ("c", epsilons**-1)], np.linspace(0.1, 1, 5), 1.0)
    assert all('role="img"' in figure and "aria-label" in figure for figure in figures)
    assert "a&lt;b" in figures[0]
    assert trade_off(epsilons, [], np.linspace(0.1, 1, 5), 50.0)
