"""Any doubt means refuse: files that were changed, copied, moved or misplaced, handles that outlive their process."""

import json
import shutil
import sqlite3
import subprocess
import sys
import threading

import pytest
from tests.ledger.torture.trials import ask, counted, new_ledger, reopen

from fogline.ledger import Ledger, LedgerRefused, ReleaseFailed, session
from fogline.ledger import disk as locks
from fogline.ledger import files as founding
from fogline.ledger.accounts import GENESIS, chain
from fogline.ledger.files import HighWater, Mark, default_directory
from fogline.ledger.question import canonical
from fogline.ledger.steps import observing


def refused(check, action, *arguments, **options):
    with pytest.raises(LedgerRefused) as caught:
        action(*arguments, **options)
    assert caught.value.check == check, caught.value
    return str(caught.value)


@pytest.fixture
def folder(tmp_path):
    with new_ledger(tmp_path, 20) as ledger:
        for number in range(3):
            ask(ledger, number)
    return tmp_path


def sql(folder, *statements):
    connection = sqlite3.connect(folder / "ledger")
    with connection:
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
    connection.close()


# -- the file's own defences --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET content = '{}' WHERE seq = 2",
        "DELETE FROM entries WHERE seq = 7",
        "UPDATE payloads SET body = x'00'",
        "DELETE FROM payloads",
        "INSERT OR REPLACE INTO entries (seq, content, hash) SELECT seq, content, hash FROM entries WHERE seq = 2",
        "INSERT OR REPLACE INTO entries (seq, content, hash) SELECT 8, content, hash FROM entries WHERE seq = 3",
        "INSERT OR REPLACE INTO payloads (seq, body) SELECT seq, x'00' FROM payloads",
        "INSERT INTO payloads (seq, body) VALUES (2, x'00')",
        "INSERT INTO entries (seq, content, hash) VALUES (9, '{}', zeroblob(32))",
        'INSERT INTO entries (seq, content, hash) VALUES (8, \'{"kind":"cap","spent":2,"budget":1}\', zeroblob(32))',
        "INSERT INTO entries (seq, content, hash) VALUES (8, '{\"kind\":\"cap\"}', x'00')",
    ],
)
def test_the_tables_refuse_every_change_but_the_next_entry(folder, statement):
    with pytest.raises(sqlite3.IntegrityError):
        sql(folder, statement)
    reopen(folder).close()


def triggers(folder):
    connection = sqlite3.connect(folder / "ledger")
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    connection.close()
    return dict(found)


def tamper(folder, *statements):
    """Change what the triggers forbid, and put them back as they were."""
    saved = triggers(folder)
    sql(folder, *(f"DROP TRIGGER {name}" for name in saved), *statements, *saved.values())


def test_a_missing_trigger_is_noticed(folder):
    sql(folder, "DROP TRIGGER entries_keep_delete")
    refused("schema", reopen, folder)


@pytest.mark.parametrize(
    ("check", "statement"),
    [
        ("payload", "UPDATE payloads SET body = x'00' WHERE seq = 3"),
        ("payload", "DELETE FROM payloads WHERE seq = 3"),
        ("payload", "INSERT INTO payloads (seq, body) VALUES (2, x'00')"),
        ("chain", "DELETE FROM entries WHERE seq = 4"),
        ("chain", "UPDATE entries SET content = replace(content, '\"amount\":', '\"amount\":1') WHERE seq = 4"),
        ("chain", "UPDATE entries SET hash = zeroblob(32) WHERE seq = 7"),
        ("high-water", "DELETE FROM entries WHERE seq >= 6"),
        ("version", "PRAGMA user_version = 2"),
        ("schema", "PRAGMA application_id = 7"),
        ("schema", "CREATE TABLE more (x)"),
    ],
)
def test_tampering_is_noticed_and_named(folder, check, statement):
    extra = ["DELETE FROM payloads WHERE seq >= 6"] if "seq >= 6" in statement else []
    tamper(folder, statement, *extra)
    refused(check, reopen, folder)


def test_a_rewritten_history_with_all_its_hashes_is_caught_by_the_mark(folder):
    """The cheapest reservation is made cheaper, all totals and hashes after it are computed anew."""
    connection = sqlite3.connect(folder / "ledger")
    contents = [json.loads(row[0]) for row in connection.execute("SELECT content FROM entries ORDER BY seq")]
    connection.close()
    for entry in contents:
        if entry["kind"] == "reserve":
            entry["spent"], entry["amount"] = entry["spent"] // entry["amount"], 1
    statements, previous = [], GENESIS
    for seq, entry in enumerate(contents):
        text = canonical(entry).decode()
        previous = chain(previous, text)
        statements.append(("UPDATE entries SET content = ?, hash = ? WHERE seq = ?", (text, previous, seq)))
    tamper(folder, *statements)
    refused("high-water", reopen, folder)
    shutil.rmtree(folder / "marks")
    Ledger.adopt(folder / "ledger", high_water=folder / "marks").close()  # nothing but the mark could tell


def test_sums_are_checked_even_where_hashes_agree(folder):
    connection = sqlite3.connect(folder / "ledger")
    contents = [json.loads(row[0]) for row in connection.execute("SELECT content FROM entries ORDER BY seq")]
    connection.close()
    contents[-2]["spent"] -= 1
    statements, previous = [], GENESIS
    for seq, entry in enumerate(contents):
        text = canonical(entry).decode()
        previous = chain(previous, text)
        statements.append(("UPDATE entries SET content = ?, hash = ? WHERE seq = ?", (text, previous, seq)))
    tamper(folder, *statements)
    refused("sums", reopen, folder)


def test_an_answer_is_checked_whenever_it_is_read(folder):
    with reopen(folder) as ledger:
        tamper(folder, "UPDATE payloads SET body = x'00' WHERE seq = 3")
        refused("payload", ask, ledger, 0)
        refused("payload", ledger.verify)


# -- copies, moves, marks -----------------------------------------------------------------------------


def test_an_old_copy_in_place_of_an_open_file_is_noticed(folder):
    old = (folder / "ledger").read_bytes()
    with reopen(folder) as ledger:
        for number in range(10, 14):
            ask(ledger, number)
        with (folder / "ledger").open("r+b") as file:
            file.write(old)
            file.truncate(len(old))
        with pytest.raises(LedgerRefused):
            ask(ledger, 20, lambda: pytest.fail("the data were touched"))


def test_a_mark_that_is_missing_damaged_or_of_another_history_is_refused(folder):
    mark = next((folder / "marks").glob("*.json"))
    text = mark.read_bytes()
    for body in (b"", b"{}", b"[1]", text[:-200], text.replace(b'"seq":', b'"seq":1'), b"\xff"):
        mark.write_bytes(body)
        refused("high-water", reopen, folder)
    mark.write_bytes(json.dumps({**json.loads(text), "hash": "0" * 64}).encode())
    refused("high-water", reopen, folder)
    mark.unlink()
    assert "Ledger.adopt" in refused("high-water", reopen, folder)
    mark.write_bytes(text)
    reopen(folder).close()


def test_a_moved_ledger_is_adopted_on_purpose_and_visibly(folder):
    refused("high-water", Ledger.open, folder / "ledger", high_water=folder / "elsewhere")
    with Ledger.adopt(folder / "ledger", high_water=folder / "elsewhere") as ledger:
        assert ledger.history()[-1].kind == "adopt"
    Ledger.open(folder / "ledger", high_water=folder / "elsewhere").close()
    shutil.copy(folder / "ledger", folder / "old")
    with Ledger.open(folder / "ledger", high_water=folder / "elsewhere") as ledger:
        ask(ledger, 30)
    refused("high-water", Ledger.adopt, folder / "old", high_water=folder / "elsewhere")


def test_the_mark_is_kept_in_another_directory(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="another directory"):
        Ledger.create(tmp_path / "ledger", dataset="a", epsilon=1, delta=1e-6, high_water=tmp_path)
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Ledger.create(tmp_path / "ledger", dataset="a", epsilon=1, delta=1e-6).close()
    assert list((tmp_path / "state" / "fogline").glob("*.json"))
    Ledger.open(tmp_path / "ledger").close()
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_directory().is_absolute()


def test_a_mark_that_cannot_be_written_is_found_out_before_the_charge(folder, monkeypatch):
    with reopen(folder) as ledger:
        left = ledger.remaining()

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(HighWater, "prepare", full)
        assert "No space" in refused("high-water", ask, ledger, 50, lambda: pytest.fail("touched"))
        monkeypatch.undo()
        assert ledger.remaining() == left
        monkeypatch.setattr(HighWater, "move", full)
        with pytest.raises(ReleaseFailed):
            ask(ledger, 50, lambda: pytest.fail("touched"))
        monkeypatch.undo()
        assert ledger.remaining() != left
        assert not ask(ledger, 50).cached


def test_the_steps_come_in_their_order(folder):
    seen = []
    with reopen(folder) as ledger, observing(seen.append):
        ask(ledger, 60, lambda: seen.append("data") or b"x")
    first = ["locked", "reserve begun", "reserve committed", "mark durable", "data"]
    order = [*first, "commit begun", "commit committed", "mark durable", "unlocked"]
    assert [step for step in seen if step in order] == order
    mark = Mark(**json.loads(next((folder / "marks").glob("*.json")).read_bytes()))
    assert mark.seq == 9


# -- places and handles -------------------------------------------------------------------------------


def test_create_never_overwrites_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "ledger").write_text("mine")
    refused("file", new_ledger, tmp_path, 5)
    refused("file", Ledger.create, tmp_path / "no" / "l", dataset="a", epsilon=1, delta=1e-6, high_water=tmp_path)
    assert (tmp_path / "ledger").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "marks"]


@pytest.mark.parametrize("body", [b"", b"mine", b"SQLite format 3\0" + b"\0" * 4080])
def test_other_files_are_refused(tmp_path, body):
    (tmp_path / "ledger").write_bytes(body)
    with pytest.raises(LedgerRefused):
        reopen(tmp_path)
    assert (tmp_path / "ledger").read_bytes() == body
    refused("file", Ledger.open, tmp_path / "nothing")
    refused("file", Ledger.open, tmp_path)


@pytest.mark.parametrize(
    ("kind", "remote"),
    [("nfs4", True), ("cifs", True), ("fuse.sshfs", True), ("9p", True), ("ext4", False), ("overlay", False)],
)
def test_network_file_systems_are_refused(tmp_path, monkeypatch, kind, remote):
    table = tmp_path / "mounts"
    table.write_text(f"/dev/a / xfs rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")
    monkeypatch.setattr(locks, "_MOUNTS", table)
    if remote:
        assert kind in refused("network", new_ledger, tmp_path, 5)
    else:
        new_ledger(tmp_path, 5).close()


def test_a_file_that_everyone_may_write_is_refused(folder):
    assert (folder / "ledger").stat().st_mode & 0o777 == 0o600
    (folder / "ledger").chmod(0o666)
    refused("file", reopen, folder)


def test_a_second_handle_in_one_process_is_refused(folder):
    with reopen(folder):
        refused("handle", reopen, folder)
        (folder / "alias").symlink_to(folder / "ledger")
        refused("handle", Ledger.open, folder / "alias", high_water=folder / "marks")
    reopen(folder).close()


def test_a_closed_handle_is_dead_and_a_lost_one_closes(folder):
    ledger = reopen(folder)
    ledger.close()
    ledger.close()
    for action in (ledger.history, ledger.verify, ledger.remaining, lambda: ask(ledger, 70)):
        refused("handle", action)
    lost = reopen(folder)
    del lost
    reopen(folder).close()


FORK = """
import os, sys
from pathlib import Path
from fogline.ledger import Ledger, LedgerRefused
from tests.ledger.torture.trials import ask, counted, reopen
folder = Path(sys.argv[1])
ledger = reopen(folder)
def release():
    child = os.fork()
    if child == 0:
        code = 1
        try:
            ask(ledger, 81)
        except LedgerRefused as refusal:
            code = 0 if refusal.check == "fork" else 2
        ledger.close()
        with reopen(folder) as own:  # a handle of its own works
            ask(own, 82)
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    return b"parent"
assert ask(ledger, 80, release).payload == b"parent"
assert ask(ledger, 83).cached is False
assert counted(ledger) == (6, 6)
child = os.fork()
if child == 0:
    sys.exit(0)  # with all of Python's clearing up: the parent's connection must survive it
assert os.waitpid(child, 0)[1] == 0
ask(ledger, 84)
ledger.verify()
ledger.close()
"""


def test_handles_die_on_fork_and_the_parent_goes_on(folder):
    subprocess.run([sys.executable, "-W", "error", "-c", FORK, str(folder)], check=True, timeout=60)
    with reopen(folder) as ledger:
        assert counted(ledger) == (7, 7)


def test_a_writer_that_fails_leaves_everyone_with_true_books(folder, monkeypatch):
    with reopen(folder) as ledger:
        left = ledger.remaining()
        real = session.Session.append

        def failing(self, content):
            real(self, content)
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(session.Session, "append", failing)
        assert "disk is full" in refused("file", ask, ledger, 90, lambda: pytest.fail("touched"))
        monkeypatch.undo()
        assert ledger.remaining() == left
        assert counted(ledger) == (3, 3)
        ask(ledger, 90)


def test_one_who_is_interrupted_while_waiting_leaves_the_queue_in_order(folder):
    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            raise KeyboardInterrupt

    with reopen(folder) as ledger:
        held = ledger._session
        for promoted in (False, True):
            turn, after = (
                session._Turn("declare", lambda: pytest.fail("it was given up")),
                session._Turn("declare", int),
            )
            turn.ready = Interrupted()
            if promoted:
                turn.ready.set()
            held._waiting, held._led = [turn, after], True
            with pytest.raises(KeyboardInterrupt):
                held._await(turn)
            assert held._waiting == [after]
            assert after.ready.is_set() == promoted
        held._waiting, held._led = [], False
        ask(ledger, 92)


def test_what_killed_processes_left_is_swept_away(folder):
    (identity,) = [path.stem for path in (folder / "marks").glob("*.json")]
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (folder / "marks" / f"{identity}.{dead.pid}.new").write_bytes(b"half a mark")
    (folder / "ledger.locks" / f"room.{dead.pid}").write_bytes(bytes(1000))
    with reopen(folder):
        assert [path.suffix for path in (folder / "marks").iterdir() if path.suffix == ".new"] == []
        assert len(list((folder / "ledger.locks").glob("room.*"))) == 1
    assert not list((folder / "ledger.locks").glob("room.*"))


def test_limits_on_file_size_are_felt_before_the_charge(folder, monkeypatch):
    monkeypatch.setattr(founding.resource, "getrlimit", lambda _: (2**15, 2**15))
    with reopen(folder) as ledger:
        refused("disk", ask, ledger, 91, lambda: pytest.fail("touched"))
