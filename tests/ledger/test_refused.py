"""Every refusal of the ledger's parts that no honest file meets: forged entries, locks that fail, files that vanish."""

import json
import os
import pickle
import sqlite3
from types import SimpleNamespace

import pytest

from fogline.ledger import Ledger, store
from fogline.ledger import disk as locks
from fogline.ledger import files as room
from fogline.ledger import ledger as export
from fogline.ledger.accounts import Accounts, chain
from fogline.ledger.question import BudgetExceeded, LedgerRefused
from fogline.ledger.store import Store

GENESIS = {"seq": 0, "kind": "genesis", "time": "2026-01-01T00:00:00", "format": "none", "ledger": "a" * 32}


def applied(accounts, content):
    text = json.dumps(content)
    return accounts.apply(content["seq"], text, chain(accounts.tip, text))


@pytest.mark.parametrize(
    ("change", "check"),
    [({"format": "fogline-ledger-999"}, "version"), ({"kind": "adopt"}, "chain"), ({"kind": "dance"}, "chain")],
)
def test_a_first_entry_that_nobody_writes(change, check):
    with pytest.raises(LedgerRefused) as refused:
        applied(Accounts(), {**GENESIS, **change})
    assert refused.value.check == check


def test_an_entry_that_was_changed_is_not_exported(tmp_path):
    with Ledger.create(tmp_path / "b", dataset="x", epsilon=1.0, delta=1e-5, high_water=tmp_path / "marks"):
        pass
    with sqlite3.connect(tmp_path / "b") as connection:
        rows = connection.execute("SELECT seq, content, hash FROM entries ORDER BY seq").fetchall()
    connection.close()
    forged = [(seq, text.replace("1", "2"), digest) for seq, text, digest in rows]
    opened = SimpleNamespace(connection=SimpleNamespace(execute=lambda _: forged))
    with pytest.raises(LedgerRefused, match="was changed"):
        list(export.entries(opened))


def test_refusals_travel_between_processes():
    error = BudgetExceeded("the budget of 'x' is spent")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.check, str(again)) == (BudgetExceeded, "budget", str(error))


# -- locks ----------------------------------------------------------------------------------------------------------


def test_a_lock_that_fails_leaves_nothing_open(tmp_path, monkeypatch):
    def fails(handle, operation):
        raise OSError("no locks available")

    monkeypatch.setattr(locks.fcntl, "flock", fails)
    before = set(locks._held)
    with pytest.raises(OSError, match="no locks"), locks.exclusive(tmp_path / "a.lock"):
        pass
    assert locks._held == before


def test_mounts_that_cannot_be_read_or_are_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_MOUNTS", tmp_path / "none")
    assert locks.network_file_system(tmp_path) is None
    assert locks.network_file_system(tmp_path, "half a\nserver:/x / nfs4 rw 0 0\n") == "nfs4"


def test_a_room_that_somebody_holds_or_took_away_is_left(tmp_path):
    (tmp_path / "room.1").mkdir()  # cannot be opened for writing
    room.sweep(tmp_path)
    assert (tmp_path / "room.1").is_dir()


# -- files ----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_or_no_database(tmp_path):
    with pytest.raises(LedgerRefused, match="the ledger cannot be"):
        Store(tmp_path / "none")
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(LedgerRefused, match="cannot be read"):
        Store(tmp_path / "text")


def test_an_old_sqlite_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(store.sqlite3, "sqlite_version_info", (3, 7, 0))
    with pytest.raises(LedgerRefused, match="too old"):
        Store(tmp_path / "x")


def test_a_ledger_without_a_place_for_locks(tmp_path):
    with Ledger.create(tmp_path / "b", dataset="x", epsilon=1.0, delta=1e-5, high_water=tmp_path / "marks") as ledger:
        assert ledger.datasets == ("x",)
        assert ledger.on("x").rho_of(1.0, 1e-6) == ledger.rho_of(1.0, 1e-6)
    beside = tmp_path / "b.locks"
    for path in beside.iterdir():
        os.unlink(path)
    beside.rmdir()
    beside.write_text("")
    with pytest.raises(LedgerRefused, match="no place for locks"):
        Ledger.open(tmp_path / "b", high_water=tmp_path / "marks")
