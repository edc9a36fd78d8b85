"""Short versions of what `python -m tests.ledger.torture` does at length."""

from contextlib import suppress

import pytest
from tests.ledger.simulator.prices import Prices
from tests.ledger.torture import __main__ as stress
from tests.ledger.torture import power_loss, trials

from fogline.ledger import BudgetExceeded, Ledger
from fogline.ledger.shared_cap import SharedCap


def test_twenty_four_processes_share_a_budget_for_ten(tmp_path):
    assert "10 released, 10 reserved" in trials.race(tmp_path)


def test_equal_questions_of_many_processes_are_charged_once(tmp_path):
    assert "2 released, 2 reserved" in trials.race(tmp_path, contenders=8, same=True)


def test_rho_and_pure_epsilon_share_a_cap_among_processes(tmp_path):
    assert "all within the cap" in trials.race_in_both(tmp_path, contenders=12, releases=6)


def test_pure_epsilons_that_know_nothing_of_rho_are_above_the_cap(tmp_path, monkeypatch):
    """The processes of the race are others, without the mutant: here one question follows another."""
    prices = Prices("mixed", 6)
    caps = {"epsilon": prices.epsilon, "delta": prices.delta}
    (tmp_path / "marks").mkdir()
    monkeypatch.setattr(SharedCap, "pure_budget", lambda self, spent: self.units)
    asked = []
    with Ledger.create(tmp_path / "ledger", dataset="trial", high_water=tmp_path / "marks", **caps) as ledger:
        for number in [0, 2, 4, *range(1, 40, 2)]:
            with suppress(BudgetExceeded):
                trials.ask(ledger, number, cost=prices.of(number))
                asked.append(number)
    assert not prices.hold(asked)


def test_kill_at_every_step(tmp_path):
    assert "acknowledged and kept" in trials.kill_at_each_step(tmp_path)


def test_kill_at_random(tmp_path):
    trials.kill_at_random(tmp_path, times=12, seed=7, longest=0.08)


def test_bit_flips(tmp_path):
    assert "0 unnoticed" in trials.bit_flips(tmp_path, flips=250, seed=11)


def test_truncation(tmp_path):
    trials.truncations(tmp_path, every=1000)


def test_old_copies_and_clocks(tmp_path):
    (tmp_path / "a").mkdir()
    trials.old_copy(tmp_path / "a")
    trials.clock_set_back(tmp_path)


def test_copies_beside_the_original(tmp_path):
    for name in ("in turn", "at once", "steps"):
        (tmp_path / name).mkdir()
    assert "12 released, cap 12" in trials.in_turn(tmp_path / "in turn")
    trials.racing(tmp_path / "at once")
    assert "28 released of 28" in trials.copied_at_each_step(tmp_path / "steps")


def test_small_disks(tmp_path):
    if not trials.mountable(tmp_path):
        pytest.skip("no right to mount a disk")
    for number, trial in enumerate([trials.filled_while_releasing, trials.read_only]):
        (tmp_path / str(number)).mkdir()
        trial(tmp_path / str(number))
    (tmp_path / "levels").mkdir()
    trials.filled_at_every_level(tmp_path / "levels", step=2**14)


def test_limits_on_files(tmp_path):
    trials.largest_file(tmp_path)


def test_power_cuts(tmp_path):
    if not power_loss.traceable():
        pytest.skip("strace is not installed or not allowed")
    power_loss.power_loss(tmp_path, questions=3, every=2, seed=5)


def test_power_cuts_notice_a_disk_that_lies(tmp_path):
    if not power_loss.traceable():
        pytest.skip("strace is not installed or not allowed")
    with pytest.raises(trials.Broken):
        power_loss.power_loss(tmp_path, questions=2, honest=False)


def test_speed_and_opening_count_what_they_did(tmp_path):
    for name in "abc":
        (tmp_path / name).mkdir()
    assert "reservations per minute" in trials.throughput(tmp_path / "a", askers=4, questions=40, reserve_only=True)
    assert "questions answered" in trials.throughput(tmp_path / "b", askers=4, questions=40)
    assert "402 entries" in trials.opening(tmp_path / "c", entries=400, askers=8)


def test_the_table_says_what_broke():
    lines = []

    def broken(folder):
        trials.require(False, "it fell over")

    assert stress.table([("one", broken, True), ("two", lambda folder: "fine", False)], say=lines.append) == 1
    assert "**BROKEN: it fell over**" in lines[2]
    assert len(stress.all_trials(0)) == len(stress.all_trials(0, short=True))
