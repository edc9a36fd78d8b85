"""Each refusal that no accident of a whole ledger leads to, one by one: entries, disks, locks, forks that go wrong."""

import json
import os
import pickle
import sqlite3
import subprocess
import sys
import threading

import pytest
from tests.ledger.torture.trials import ask, new_ledger, reopen

from fogline.ledger import BudgetExceeded, Ledger, LedgerRefused, session, store
from fogline.ledger import disk as locks
from fogline.ledger import files as marks_module
from fogline.ledger.accounts import FORMAT, GENESIS, Accounts, chain
from fogline.ledger.caps import Caps
from fogline.ledger.disk import Disk, installed
from fogline.ledger.files import DiskReservation, HighWater, Mark, sweep
from fogline.ledger.question import canonical
from fogline.ledger.store import Store


def refused(check, action, *arguments, **options):
    with pytest.raises(LedgerRefused) as caught:
        action(*arguments, **options)
    assert caught.value.check == check, caught.value
    return str(caught.value)


@pytest.fixture
def folder(tmp_path):
    with new_ledger(tmp_path, 20) as ledger:
        ask(ledger, 0)
    return tmp_path


# -- entries ------------------------------------------------------------------------------------------

ANALYST = {"kind": "analyst", "analyst": "ana", "caps": None}
GENESIS_ENTRY = {"kind": "genesis", "ledger": "a" * 32, "format": FORMAT, "marks": "b" * 32}
DATASET = {
    "kind": "dataset",
    "dataset": "d",
    "version": "1",
    "neighbours": "add-remove",
    "caps": Caps(epsilon=1.0, delta=1e-6).to_dict(),
    "unit": None,
    "sources": None,
}
ASKED = {"dataset": "d", "version": "1", "mechanism": "m", "code_version": "1", "parameters": {}}
BUDGET = Caps(epsilon=1.0, delta=1e-6).budget("zcdp", 0)
RESERVE = {
    "kind": "reserve",
    "question": "q",
    "asked": ASKED,
    "currency": "zcdp",
    "amount": 5,
    "delta": 0,
    "analyst": None,
    "partition": None,
    "unit": None,
    "spent": 5,
    "budget": BUDGET[0],
    "delta_spent": 0,
    "delta_budget": BUDGET[1],
}


def read(*contents, accounts=None, **changes):
    """Let books read entries, the last one with changes, all hashes being right."""
    accounts = Accounts() if accounts is None else accounts
    for number, content in enumerate(contents):
        last = changes if number == len(contents) - 1 else {}
        entry = {"seq": accounts.next_seq, "group": accounts.next_seq, "time": "2024", **content, **last}
        text = canonical(entry).decode()
        accounts.apply(accounts.next_seq, text, chain(accounts.tip, text))
    return accounts


@pytest.mark.parametrize(
    ("check", "contents", "changes"),
    [
        ("chain", [GENESIS_ENTRY], {"seq": 3}),
        ("chain", [DATASET], {}),
        ("chain", [GENESIS_ENTRY, DATASET], {"group": 7}),
        ("chain", [GENESIS_ENTRY, DATASET], {"group": -1}),
        ("time", [GENESIS_ENTRY, DATASET], {"time": "2023"}),
        ("schema", [GENESIS_ENTRY, {"kind": "gift"}], {}),
        ("version", [GENESIS_ENTRY], {"format": 99}),
        ("chain", [GENESIS_ENTRY, {"kind": "adopt", "ledger": "c" * 32, "marks": ""}], {}),
        ("sums", [GENESIS_ENTRY, DATASET, RESERVE], {"amount": -1}),
        ("sums", [GENESIS_ENTRY, DATASET, RESERVE], {"delta": -1}),
        ("schema", [GENESIS_ENTRY, DATASET, RESERVE], {"currency": "gold"}),
        ("sums", [GENESIS_ENTRY, DATASET, RESERVE], {"spent": 4}),
        ("sums", [GENESIS_ENTRY, DATASET, RESERVE], {"amount": BUDGET[0] + 1, "spent": BUDGET[0] + 1}),
        ("chain", [GENESIS_ENTRY, DATASET, {"kind": "commit", "question": "q", "reserve": 2}], {}),
        ("chain", [GENESIS_ENTRY, DATASET, RESERVE, {"kind": "commit", "question": "r", "reserve": 2}], {}),
    ],
)
def test_entries_that_do_not_follow(check, contents, changes):
    refused(check, read, *contents, **changes)
    read(GENESIS_ENTRY, DATASET, RESERVE, {"kind": "commit", "question": "q", "reserve": 2})


def test_an_entry_of_a_group_may_not_skip_out_of_it():
    accounts = read(GENESIS_ENTRY, DATASET)
    read(
        {"kind": "version", "dataset": "d", "version": "2"}, accounts=accounts, group=1
    )  # written together with the last
    assert accounts.group == 1


def test_an_early_release_that_says_nothing_of_a_unit_fixes_none():
    early = {name: value for name, value in RESERVE.items() if name != "unit"}
    assert read(GENESIS_ENTRY, DATASET, early).datasets["d"].unit is None
    asked = {**ASKED, "parameters": {"max_contributions": 2, "unit": "patient"}}
    assert read(GENESIS_ENTRY, DATASET, early, asked=asked).datasets["d"].unit.name == "patient"


def test_a_wrong_entry_in_the_history_is_noticed_on_the_way_out(folder, monkeypatch):
    with reopen(folder) as ledger:
        monkeypatch.setattr("fogline.ledger.ledger.chain", lambda previous, content: b"0" * 32)
        refused("chain", ledger.history)
        monkeypatch.undo()
        monkeypatch.setattr(store, "chain", lambda previous, content: b"0" * 32)
        refused("chain", ledger._session.store.entry, 2)


def test_an_entry_that_is_not_json_is_refused():
    text = "no entry"
    refused("chain", store._apply, Accounts(), 0, text, chain(GENESIS, text))


def test_a_refusal_survives_a_pickle():
    error = pickle.loads(pickle.dumps(BudgetExceeded("spent", "currency")))
    assert (str(error), error.check) == ("spent (check: currency)", "currency")


# -- marks --------------------------------------------------------------------------------------------


def test_a_mark_of_another_ledger_or_that_cannot_be_read_is_refused(tmp_path):
    marks, name = HighWater(tmp_path), "a" * 32
    (tmp_path / f"{name}.json").write_text(json.dumps({"ledger": "b" * 32, "seq": 1, "hash": "c" * 64}))
    refused("high-water", marks.read, name)
    with pytest.raises(ValueError, match="not a high-water mark"):
        Mark(name, 1, "c" * 64, "keeper")

    class Unreadable(Disk):
        def read(self, path):
            raise PermissionError(13, "Permission denied")

    with installed(Unreadable()):
        refused("high-water", marks.read, name)


def test_drafts_of_the_living_and_of_strangers_stay(tmp_path, monkeypatch):
    marks, name = HighWater(tmp_path), "a" * 32
    for suffix in (os.getpid(), "word"):
        (tmp_path / f"{name}.{suffix}.new").touch()
    marks.sweep(name)
    assert len(list(tmp_path.iterdir())) == 2

    def forbidden(process, signal):
        raise PermissionError

    monkeypatch.setattr(marks_module.os, "kill", forbidden)
    assert marks_module._alive(1)


def test_a_mark_that_cannot_be_caught_up_is_refused(folder):
    class Stuck(Disk):
        stuck = False

        def force_directory(self, path):
            if self.stuck:
                raise OSError(5, "Input/output error")
            super().force_directory(path)

    mark = next((folder / "marks").glob("*.json"))
    before = mark.read_bytes()
    with reopen(folder) as ledger:
        ledger.add_analyst("a")
    mark.write_bytes(before)  # as after a crash between file and mark
    disk = Stuck()
    with installed(disk), reopen(folder) as ledger:
        disk.stuck = True
        refused("high-water", ledger.add_analyst, "b")
        disk.stuck = False
        ledger.add_analyst("b")


# -- files and disks ----------------------------------------------------------------------------------


def test_a_ledger_that_cannot_be_founded_leaves_nothing(tmp_path, monkeypatch):
    options = {"dataset": "d", "epsilon": 1, "delta": 1e-6, "high_water": tmp_path / "marks"}

    def failing(error):
        def link(source, target):
            raise error

        return link

    for error, word in [(FileExistsError(), "already"), (OSError(28, ""), "No space"), (OSError(), "unknown")]:
        monkeypatch.setattr("fogline.ledger.files.os.link", failing(error))
        assert word in refused("file", Ledger.create, tmp_path / "ledger", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["marks"]


def test_no_place_for_locks_is_refused(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fogline.ledger.ledger.DiskReservation", full)
    refused("read-only", reopen, folder)
    monkeypatch.undo()
    with reopen(folder) as ledger:
        monkeypatch.setattr(locks.fcntl, "flock", full)
        assert "cannot be locked" in refused("disk", ask, ledger, 5)


def test_sqlite_that_is_old_missing_or_unsafe_is_refused(folder, monkeypatch):
    monkeypatch.setattr(store, "_OLDEST_SQLITE", (99, 0, 0))
    refused("sqlite", reopen, folder)
    monkeypatch.undo()

    class Failing(Disk):
        def connect(self, path, timeout):
            raise sqlite3.OperationalError("unable to open")

    class Unsafe(Disk):
        def connect(self, path, timeout):
            return Careless(super().connect(path, timeout))

    class Careless:
        def __init__(self, inner):
            self.inner = inner

        def execute(self, sql):
            return self.inner.execute("SELECT 'wal'" if "journal_mode" in sql else sql)

        def close(self):
            self.inner.close()

    for disk in (Failing(), Unsafe()):
        with installed(disk):
            refused("file", reopen, folder)


def test_a_roll_back_that_fails_closes_the_file(tmp_path):
    held = Store.create(tmp_path / "ledger")

    class Broken:
        in_transaction = True

        def __init__(self):
            self.closed = False

        def execute(self, sql):
            raise sqlite3.OperationalError("disk I/O error")

        def close(self):
            self.closed = True

    held.close()
    held.connection = Broken()
    with pytest.raises(store.StoreFailed), held.writing():
        pass
    assert held.connection.closed


def test_a_file_that_fails_while_it_is_read_is_refused(folder, monkeypatch):
    with reopen(folder) as ledger:
        monkeypatch.setattr(
            Store, "continue_accounts", lambda *_: (_ for _ in ()).throw(sqlite3.OperationalError("I/O"))
        )
        refused("file", ledger.remaining)
        refused("file", ledger.add_analyst, "a")
        monkeypatch.undo()
        ledger.add_analyst("a")
        (folder / "ledger").rename(folder / "away")
        assert "no ledger" in refused("file", ledger.remaining)
        (folder / "away").rename(folder / "ledger")


def test_a_known_answer_is_given_though_the_mark_of_its_group_fails(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with reopen(folder) as ledger:
        held = ledger._session
        known, fresh = (session._Turn("declare", action) for action in (lambda: "known", lambda: held.append(ANALYST)))
        monkeypatch.setattr(HighWater, "move", full)
        held._serve([known, fresh])
        assert (known.error, known.result) == (None, "known")
        assert isinstance(fresh.error, session.MarkFailed)


def test_one_who_is_interrupted_when_served_already_just_goes(folder):
    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            raise KeyboardInterrupt

    with reopen(folder) as ledger:
        turn = session._Turn("declare", int)
        turn.ready = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            ledger._session._await(turn)
        ask(ledger, 8)


def test_what_another_process_wrote_is_taken_into_the_books(folder):
    with reopen(folder) as ledger:
        script = "import sys; from pathlib import Path;"
        script += " from tests.ledger.torture.trials import ask, reopen; ask(reopen(Path(sys.argv[1])), 9)"
        subprocess.run([sys.executable, "-c", script, str(folder)], check=True, timeout=60)
        assert ask(ledger, 9, lambda: pytest.fail("touched")).cached
        assert ledger.on().rho_of(0.5, 1e-6) == ledger.rho_of(0.5, 1e-6)


def test_books_that_are_not_open_are_refused(folder):
    with reopen(folder) as ledger:
        ledger._session._accounts = None
        with pytest.raises(LedgerRefused, match="books are not open"):
            _ = ledger._session.accounts
        assert ledger.remaining().rho > 0  # read again


def test_books_may_begin_with_nothing(tmp_path):
    held = Store.create(tmp_path / "ledger")
    with held.reading():
        held.continue_accounts(Accounts())
    held.close()


def test_a_partition_is_a_pair_of_texts(folder):
    with reopen(folder) as ledger, pytest.raises(TypeError, match="pair"):
        ledger.on(partition=("sex", 1)).ask(
            "m", code_version="1", parameters={}, cost=None, neighbours="", certified=True, release=lambda: b""
        )


# -- locks, rooms, forks ------------------------------------------------------------------------------


def test_network_file_systems_where_there_is_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_MOUNTS", tmp_path / "none")
    assert locks.network_file_system(tmp_path) is None
    assert locks.network_file_system(tmp_path, "half line\n") is None


def test_rooms_of_others_stay(tmp_path, monkeypatch):
    mine = DiskReservation(tmp_path)
    (tmp_path / "room.folder").mkdir()
    sweep(tmp_path)
    assert mine.path.exists()
    mine.close()
    mine.close()
    (tmp_path / "room.7").touch()
    monkeypatch.setattr("fogline.ledger.files.os.path.samestat", lambda one, two: False)  # somebody was faster
    sweep(tmp_path)
    assert (tmp_path / "room.7").exists()


def test_a_room_that_was_swept_away_is_made_again(tmp_path, monkeypatch):
    same, answers = os.path.samestat, [False, True]
    monkeypatch.setattr("fogline.ledger.files.os.path.samestat", lambda one, two: answers.pop(0) and same(one, two))
    DiskReservation(tmp_path).close()
    assert not answers


def test_a_fork_leaves_the_parent_as_it_was(folder):
    with reopen(folder) as ledger:
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        ask(ledger, 7)
