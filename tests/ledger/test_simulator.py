"""Simulated runs of the ledger's real code, two hundred seeds of the hundred thousand that the audit carries out."""

import os
import random
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.ledger.simulator import runner
from tests.ledger.simulator.disk import Disk
from tests.ledger.simulator.machine import Machine, Unsimulated
from tests.ledger.simulator.model import (
    DOUBT,
    DURABLE,
    KEPT,
    RESERVED,
    SAME,
    SERVED,
    Grant,
    Model,
    Violated,
    entries_when_named,
)
from tests.ledger.simulator.mutants import MUTANTS, answer_without_entry, changed, looked_at_once, mutated
from tests.ledger.simulator.plan import Event, Operation, Plan, draw
from tests.ledger.simulator.prices import LANES, Prices
from tests.ledger.simulator.run import carry_out, loaded_code, only, shrunk
from tests.ledger.simulator.system import Path as SimulatedPath
from tests.ledger.torture import __main__ as stress
from tests.ledger.torture import trials

from fogline.ledger import LedgerRefused

SEEDS = 200
NOTICED = {
    "mark_after_the_data": {DOUBT},
    "mark_compared_on_opening": {DOUBT, SAME, RESERVED},
    "copy_accepted": {DOUBT, SAME, RESERVED, KEPT},
    "file_not_forced": {DURABLE},
    "journal_removal_not_forced": {DURABLE},
    "mark_not_forced": {DOUBT},
    "answer_before_commit": {DURABLE},
    "answer_without_entry": {DURABLE},
    "question_not_locked": {SAME},
    "reserved_without_lock": {SERVED, KEPT, DURABLE, DOUBT},
    "cap_not_checked": {RESERVED},
    "pure_not_charged": {RESERVED},
    "rho_unaware_of_pure": {RESERVED},
}
"""The invariant by which each mutant may be noticed."""


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_every_invariant_holds(first):
    _, seen, failures = runner.batch(first, 50)
    assert not failures, failures[0]
    assert seen["data touched"] > 50
    assert sum(count for what, count in seen.items() if what.startswith("event: ")) > 50


@pytest.mark.parametrize("lane", LANES)
def test_every_lane_is_drawn_and_spent_to_its_end(lane):
    plans = [plan for plan in map(draw, range(SEEDS)) if plan.lane == lane]
    assert len(plans) > SEEDS // 5
    outcomes = [carry_out(plan) for plan in plans if plan.cap <= 3]
    assert sum(outcome.seen["refused: budget"] for outcome in outcomes) > 5


def test_the_prices_of_a_run_say_what_its_cap_allows():
    for cap in (2, 5):
        for lane, even in (("zcdp", 0), ("pure", 1)):
            prices = Prices(lane, cap)
            assert prices.hold([even] * cap)
            assert prices.allow([even] * cap)
            assert not prices.hold([even] * (cap + 1))
            assert not prices.allow([even] * (cap + 1))
        mixed = Prices("mixed", cap)
        for questions in ([0, 1] * 9, [1] * 9 + [0] * 9, [0] * 9 + [1] * 9):
            held = [mixed.hold(questions[:k]) for k in range(19)]
            assert held == sorted(held, reverse=True)
            assert all(mixed.hold(questions[:k]) for k in range(19) if mixed.allow(questions[:k]))
            assert 1 < held.index(False) < 18


def one_event(kind, moment, founding):
    """Return a plan in which one or two processes ask, and one thing befalls them, at one tick of the whole run."""
    copies = kind in ("copy beside", "over by rename")
    items = [Operation(0, "ask", (0,), retried=True), Event("any", moment, kind, moment)]
    if not founding:
        items += [Operation(1, "open", which="other" if copies else "original"), Operation(1, "ask", (2,))]
    return Plan(moment, "copies" if copies else "crashes", 3, 0.0, founding, cut_at_end=True, items=tuple(items))


@pytest.mark.parametrize(
    ("kind", "founding"),
    [(kind, False) for kind in ("kill", "power", "sick", "full", "copy beside", "over by rename")]
    + [(kind, True) for kind in ("kill", "power", "sick", "full")],
)
def test_one_thing_happens_at_every_single_call(kind, founding):
    """Exhaustive where the seeds are random: nothing is left out between the first call and the last."""
    moment, fired = 0, True
    while fired and moment < 150:
        moment += 1
        outcome = carry_out(one_event(kind, moment, founding))
        assert outcome.violation is None, (moment, outcome.violation, outcome.trace)
        fired = outcome.seen[f"event: {kind}"] > 0
    assert moment > 100


def two_kills(first, second):
    """Return a plan in which a process dies, and the next one too, before the power fails."""
    items = (Operation(0, "ask", (0,), retried=True), Event(*first, "kill"), Event(*second, "kill"))
    return Plan(0, "crashes", 4, 0.0, founding=False, cut_at_end=True, items=items)


def test_a_mark_that_its_writer_did_not_live_to_force_is_forced_by_the_next():
    """Else the file goes on from a mark that a power cut takes back, and is refused for good."""
    for sync in range(1, 8):
        for power in range(8):
            plan = replace(two_kills(("sync", sync), ("reserve committed", 2)), seed=power)
            outcome = carry_out(plan)
            assert outcome.violation is None, (sync, power, outcome.trace)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_missing_guard_is_noticed(name):
    codes = mutated(name)
    for seed in range(SEEDS):
        violation = carry_out(draw(seed), codes).violation
        if violation is not None:
            assert violation.invariant in NOTICED[name], violation
            return
    pytest.fail("no seed noticed it")


TAKEN_OUT = "a durable entry taken out of the file"
ROLLED_BACK = 2409224370
"""The one seed of 10^5 in which a copy's journal took a durable entry out of the file, between mark and answer."""


def test_an_entry_that_a_copys_journal_takes_out_was_durable_and_the_file_is_refused():
    """Whether or not the file is looked at once more: what the invariant asks for does not rest on that."""
    outcome = carry_out(draw(ROLLED_BACK), changed(looked_at_once))
    assert outcome.violation is None
    assert outcome.seen[TAKEN_OUT] == 1
    end = [line for line in outcome.trace if "in the end, " in line]
    assert len(end) == 3
    assert all("refused" in line for line in end)
    again = carry_out(draw(ROLLED_BACK))
    assert again.violation is None
    assert again.seen[TAKEN_OUT] == 0
    assert again.seen["answered"] == outcome.seen["answered"] - 1


def test_an_answer_that_never_was_durable_is_not_excused_by_a_copys_journal(monkeypatch):
    """In the very run in which an entry may be gone, an answer that was never stored still breaks the invariant."""

    def unstored(code):
        looked_at_once(code)
        append = code.session.Session.append
        code.session.Session.append = lambda self, content: (
            refuse(code) if content["kind"] == "commit" and content["reserve"] == 3 else append(self, content)
        )
        answer_without_entry(code)

    def refuse(code):
        raise code.question.LedgerRefused("file", "not stored")

    outcome = carry_out(draw(ROLLED_BACK), changed(unstored))
    assert outcome.violation is not None
    assert outcome.violation.invariant == DURABLE
    assert "the answer is not on the disk" in str(outcome.violation)


def test_a_mark_that_came_before_its_entry_is_not_excused():
    """What counts is what was durable before the mark was renamed, not at any time."""
    machine = Machine(random.Random(0), Disk())
    file = machine.disk.put("/ledger", _two_entries())
    mark = SimpleNamespace(seq=1, hash="bb")
    machine.renamed.append((5, "/marks/m.json", b'{"seq": 1, "hash": "bb"}'))
    file.committed.append((6, bytes(file.live)))
    assert entries_when_named(machine, file, "/marks/m.json", mark) is None
    file.committed.append((5, bytes(file.live)))
    assert len(entries_when_named(machine, file, "/marks/m.json", mark)) == 2
    assert entries_when_named(machine, file, "/marks/other.json", mark) is None
    assert entries_when_named(machine, file, "/marks/m.json", SimpleNamespace(seq=1, hash="aa")) is None


def _two_entries():
    with sqlite3.connect(":memory:") as books:
        books.execute("CREATE TABLE entries (seq, kind, question, hash)")
        books.execute("CREATE TABLE payloads (seq, body)")
        books.execute("INSERT INTO entries VALUES (0, 'genesis', NULL, x'AA'), (1, 'reserve', 'f', x'BB')")
        books.commit()
        return books.serialize()


def test_a_failing_plan_is_shrunk_and_can_be_repeated():
    codes = mutated("copy_accepted")
    seed = next(seed for seed in range(SEEDS) if carry_out(draw(seed), codes).violation is not None)
    plan = draw(seed)
    smaller, kept = shrunk(plan, codes)
    assert 0 < len(smaller.items) < len(plan.items)
    first, again = carry_out(smaller, codes), carry_out(only(draw(seed), list(kept)), codes)
    assert first.violation is not None
    assert (str(first.violation), first.trace) == (str(again.violation), again.trace)
    assert shrunk(smaller, codes)[0] == smaller


def test_a_run_is_a_function_of_its_seed():
    """Within this process, and in others whose texts hash otherwise."""
    here = [carry_out(draw(seed)).trace for seed in (3, 4)]
    carry_out(draw(5))
    assert [carry_out(draw(seed)).trace for seed in (3, 4)] == here
    root = Path(__file__).parents[2]
    script = (
        "import hashlib; from tests.ledger.simulator.run import carry_out, draw;"
        "print(hashlib.sha256(repr([carry_out(draw(s)).trace for s in range(40)]).encode()).hexdigest())"
    )
    said = set()
    for texts in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": texts, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=root, env=environment, capture_output=True, text=True, check=True
        )
        said.add(done.stdout)
    assert len(said) == 1


def test_a_handle_whose_rollback_failed_refuses(tmp_path):
    """The store closes its connection when it cannot roll back; what is asked of it later is refused, not an error."""
    with trials.new_ledger(tmp_path, 2) as ledger:
        ledger._session.store.connection.close()
        with pytest.raises(LedgerRefused, match="closed"):
            trials.ask(ledger, 0, lambda: pytest.fail("the data were touched"))
        with pytest.raises(LedgerRefused, match="closed"):
            ledger.history()
    with trials.reopen(tmp_path) as ledger:
        assert trials.counted(ledger) == (0, 0)


def test_the_stress_runs_the_simulator(tmp_path, monkeypatch):
    names = [name for name, _, _ in stress.all_trials(0, short=True)]
    assert "simulated runs" in names
    assert "3 runs from seed 5" in stress.simulated(3, 5)
    monkeypatch.setattr(stress, "_ROOT", tmp_path)
    assert stress.simulated(3, 5).startswith("skipped: ")


def test_a_broken_run_breaks_the_stress(tmp_path, monkeypatch):
    place = tmp_path / "tests" / "ledger" / "simulator"
    place.mkdir(parents=True)
    (place / "__init__.py").touch()
    (place / "__main__.py").write_text("print('seed 5: it fell over'); raise SystemExit(1)")
    monkeypatch.setattr(stress, "_ROOT", tmp_path)
    with pytest.raises(trials.Broken, match="seed 5: it fell over"):
        stress.simulated(3, 5)


def test_the_runner_reports_and_repeats(capsys, monkeypatch):
    assert runner.main(["--seeds", "200", "--short", "--first", "7", "--jobs", "1"]) == 0
    assert "2 runs from seed 7" in capsys.readouterr().out
    assert runner.main(["--seed", "7", "--keep", "0,1"]) == 0
    assert "all invariants hold" in capsys.readouterr().out
    codes = mutated("file_not_forced")
    monkeypatch.setattr("tests.ledger.simulator.run.loaded_code", lambda: codes)
    assert runner.main(["--seeds", "1", "--first", "0", "--jobs", "1"]) == 1
    said = capsys.readouterr().out
    assert "python -m tests.ledger.simulator --seed 0 --keep " in said
    assert "1 broken" in said


def test_the_real_code_is_run_and_nothing_else():
    code = loaded_code()[0]
    real = sys.modules["fogline.ledger.session"]
    assert code.session is not real
    assert code.session.__file__ == real.__file__
    assert code.session.os is not os
    with pytest.raises(Unsimulated):
        code.session.os.system("true")
    assert not hasattr(SimulatedPath("/"), "write_bytes")
    assert os.getpid() > 0
    assert real.os is os


def test_the_disk_keeps_what_was_forced_and_nothing_else_for_sure():
    lost = kept = torn = 0
    for seed in range(40):
        disk = Disk()
        file = disk.create("/a")
        disk.write(file, 0, b"forced" * 1000)
        file.force()
        disk.force_names("/")
        disk.write(file, 0, b"hasty!" * 1000)
        disk.create("/b")
        certain = disk.after_certain_loss()
        assert bytes(certain.names["/a"].live) == b"forced" * 1000
        assert "/b" not in certain.names
        disk.lose_power(random.Random(seed))
        body = bytes(disk.names["/a"].live)
        lost, kept = lost + (body == b"forced" * 1000), kept + (body == b"hasty!" * 1000)
        cut = next((k for k in range(6000) if body[k:] == (b"forced" * 1000)[k:]), 6000)
        assert body == (b"hasty!" * 1000)[:cut] + (b"forced" * 1000)[cut:]
        assert cut in (0, 6000) or cut % 512 == 0
        torn += 0 < cut < 6000
    assert min(lost, kept, torn) > 0


def test_the_model_refuses_what_it_should():
    model = Model(Prices("zcdp", 1))
    with pytest.raises(Violated, match="without a reservation"):
        model.granted(0, "f", [(0, "genesis", None, "00", None)], None)
    entries = [(0, "genesis", None, "00", None), (1, "reserve", "f", "AA", None)]
    with pytest.raises(Violated, match="no durable mark"):
        model.granted(0, "f", entries, None)
    model.grants.append(Grant(0, 1, "BB", b"x"))
    with pytest.raises(Violated, match="knows nothing of the release at entry 1"):
        model.granted(0, "f", entries, None)
    answered = [*entries, (2, "commit", "f", "CC", b"x")]
    with pytest.raises(Violated, match="which no durable mark names"):
        model.returned(0, "f", b"x", answered, [SimpleNamespace(seq=1, hash="aa")])
    with pytest.raises(Violated, match="which no durable mark names"):
        model.returned(0, "f", b"x", answered, [SimpleNamespace(seq=2, hash="dd")])
    with pytest.raises(Violated, match="which no durable mark names"):
        model.returned(0, "f", b"x", answered, [SimpleNamespace(seq=2, hash="cc"), None])
    with pytest.raises(Violated, match="no release gave"):
        model.check_answer(0, b"y")
    model.answers[0] = b"z"
    with pytest.raises(Violated, match="two answers"):
        model.check_answer(0, b"x")
