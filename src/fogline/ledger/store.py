"""The file: SQLite with a rollback journal and every write forced to the disk before it counts.

The content of an entry is stored once, as canonical JSON. The columns that constraints and look-ups need are generated
from it, so that they cannot say anything else.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fogline.ledger.accounts import GENESIS, Accounts, chain
from fogline.ledger.disk import current_disk
from fogline.ledger.question import LedgerRefused

__all__ = ["Store", "StoreFailed"]

APPLICATION = 0x666F676C  # "fogl"
SCHEMA_VERSION = 1
WAIT_SECONDS = 120.0
_OLDEST_SQLITE = (3, 38, 0)

_NUMBERS = ("spent", "budget", "delta_spent", "delta_budget")
_NUMBER_COLUMNS = ",\n    ".join(
    f"{owner}{name} INTEGER GENERATED ALWAYS AS (json_extract(content, '$.{owner}{name}')) VIRTUAL"
    for owner in ("", "analyst_")
    for name in _NUMBERS
)
_SCHEMA = (
    f"""CREATE TABLE entries (
    seq INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    kind TEXT GENERATED ALWAYS AS (json_extract(content, '$.kind')) VIRTUAL NOT NULL,
    question TEXT GENERATED ALWAYS AS (json_extract(content, '$.question')) VIRTUAL,
    currency TEXT GENERATED ALWAYS AS (json_extract(content, '$.currency')) VIRTUAL,
    {_NUMBER_COLUMNS},
    CHECK (spent <= budget),
    CHECK (delta_spent <= delta_budget),
    CHECK (analyst_spent <= analyst_budget),
    CHECK (analyst_delta_spent <= analyst_delta_budget),
    CHECK (kind <> 'reserve' OR (spent >= 0 AND budget >= 0 AND delta_spent >= 0 AND delta_budget >= 0))
)""",
    "CREATE TABLE payloads (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE UNIQUE INDEX answers ON entries (question) WHERE kind = 'commit'",
    *(
        f"""CREATE TRIGGER {table}_keep_{action.lower()} BEFORE {action} ON {table} BEGIN
    SELECT RAISE(ABORT, 'a ledger is never changed, only continued');
END"""
        for table in ("entries", "payloads")
        for action in ("UPDATE", "DELETE")
    ),
    # OR REPLACE deletes without asking the triggers above.
    """CREATE TRIGGER entries_continue BEFORE INSERT ON entries
WHEN NEW.seq <> (SELECT coalesce(max(seq) + 1, 0) FROM entries)
    OR (NEW.kind = 'commit' AND EXISTS (SELECT 1 FROM entries WHERE kind = 'commit' AND question = NEW.question))
BEGIN
    SELECT RAISE(ABORT, 'an entry follows the last one');
END""",
    """CREATE TRIGGER payloads_continue BEFORE INSERT ON payloads
WHEN EXISTS (SELECT 1 FROM payloads WHERE seq = NEW.seq)
    OR NOT EXISTS (SELECT 1 FROM entries WHERE seq = NEW.seq AND kind = 'commit')
BEGIN
    SELECT RAISE(ABORT, 'a payload belongs to one commit');
END""",
)


# Python's binding raises these as well when a damaged file gives it names or sizes that make no sense.
_FAILURES = (sqlite3.Error, UnicodeError, OverflowError, MemoryError, SystemError)


class StoreFailed(Exception):
    """SQLite could not read or write: busy, full, read-only or broken. Says which, and nothing of the data."""


class Store:
    """One connection to a ledger's file.

    Parameters
    ----------
    path : Path
        A file that exists.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store.create(Path(folder.name, "ledger"))
    >>> with store.reading():
    ...     store.check().next_seq
    0
    >>> store.close()
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise LedgerRefused("sqlite", f"SQLite {sqlite3.sqlite_version} is too old: 3.38 is needed")
        self.path = path
        try:
            self.connection = current_disk().connect(path, WAIT_SECONDS)
        except sqlite3.Error as error:
            raise LedgerRefused("file", f"the ledger cannot be opened: {type(error).__name__}") from None
        try:
            self._configure()
        except _FAILURES as error:
            self.connection.close()
            raise LedgerRefused("file", f"the ledger cannot be read: {type(error).__name__}") from None
        except LedgerRefused:
            self.connection.close()
            raise

    def _configure(self) -> None:
        run = self.connection.execute
        # EXTRA also forces the folder after the journal is removed; no memory maps, which fail by a signal
        for pragma in ("synchronous=EXTRA", "cell_size_check=ON", "mmap_size=0"):
            run(f"PRAGMA {pragma}")
        run("PRAGMA temp_store=MEMORY")
        # a write-ahead log would be a second file that a restored copy may lack
        mode = run("PRAGMA journal_mode=DELETE").fetchone()[0]
        if mode != "delete" or run("PRAGMA synchronous").fetchone()[0] != 3:
            raise LedgerRefused("file", "the ledger's file cannot be written safely: no rollback journal")

    @classmethod
    def create(cls, path: Path) -> Store:
        """Make a new, empty ledger file; refuse to touch one that exists."""
        # SQLite would take a file that is there
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        store = cls(path)
        with store.writing():
            store.connection.execute(f"PRAGMA application_id={APPLICATION}")
            store.connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            for statement in _SCHEMA:
                store.connection.execute(statement)
        return store

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    # -- transactions -----------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the write lock; commit at the end, roll back on any exception."""
        # the lock at once: a transaction that reads first and writes later may be turned away
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the file throughout."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        try:
            self.connection.execute(begin)
            yield
            self.connection.execute("COMMIT")
        except _FAILURES as error:
            self._roll_back()
            raise StoreFailed(f"{error}" if isinstance(error, sqlite3.Error) else type(error).__name__) from None
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except sqlite3.Error:  # or it was closed before, for this very reason
            self.connection.close()  # the journal stays, and the next to open rolls it back

    # -- checking ---------------------------------------------------------------------------------------

    def check(self) -> Accounts:
        """Return the books of the whole file, having checked everything that the file alone can tell.

        Runs in a transaction that is open already. While it lasts nobody else can write.
        """
        self._check_schema()
        self._check_integrity()
        accounts, answers = Accounts(), 0
        rows = self.connection.execute(
            "SELECT e.seq, e.content, e.hash, p.body FROM entries e"
            " LEFT JOIN payloads p ON p.seq = e.seq ORDER BY e.seq"
        )
        for seq, content, digest, body in rows:
            entry = _apply(accounts, seq, content, digest)
            if entry["kind"] == "commit":
                _check_payload(seq, entry["payload"], body)
                answers += 1
        if answers != self.connection.execute("SELECT count(*) FROM payloads").fetchone()[0]:
            raise LedgerRefused("payload", "the ledger holds a payload that no entry answers for")
        return accounts

    def _check_integrity(self) -> None:
        """Check pages and index. The constraints on sums are left to the books, which are faster at it."""
        self.connection.execute("PRAGMA ignore_check_constraints=ON")
        try:
            found = self.connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        finally:
            self.connection.execute("PRAGMA ignore_check_constraints=OFF")
        if found != "ok":
            raise LedgerRefused("integrity", "the ledger's file is damaged")

    def _check_schema(self) -> None:
        found = self.connection.execute("PRAGMA application_id").fetchone()[0]
        if found != APPLICATION:
            raise LedgerRefused("schema", "the file is not a fogline ledger")
        version = self.connection.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise LedgerRefused("version", f"the ledger has version {version}, this fogline reads {SCHEMA_VERSION}")
        statements = {sql for (sql,) in self.connection.execute("SELECT sql FROM sqlite_master")}
        # text by text: a trigger less, or another, and old entries could be changed
        if statements != set(_SCHEMA):
            raise LedgerRefused("schema", "the ledger's tables are not those of a fogline ledger")

    def continue_accounts(self, accounts: Accounts) -> None:
        """Take the entries beyond `accounts` into them, the last known one being still in its place."""
        if accounts.next_seq:
            last = self.connection.execute(
                "SELECT hash FROM entries WHERE seq = ?", (accounts.next_seq - 1,)
            ).fetchone()
            if last is None or last[0] != accounts.tip:
                raise LedgerRefused("chain", "the ledger's file is no longer the one that was opened")
        rows = self.connection.execute(
            "SELECT seq, content, hash FROM entries WHERE seq >= ? ORDER BY seq", (accounts.next_seq,)
        )
        for seq, content, digest in rows:
            _apply(accounts, seq, content, digest)

    # -- rows -------------------------------------------------------------------------------------------

    def append(self, accounts: Accounts, content: str) -> None:
        """Take the next entry into the books, which may refuse it, and write it."""
        seq, digest = accounts.next_seq, chain(accounts.tip, content)
        # first: what the books refuse is never written
        accounts.apply(seq, content, digest)
        self.connection.execute("INSERT INTO entries (seq, content, hash) VALUES (?, ?, ?)", (seq, content, digest))

    def append_payload(self, seq: int, body: bytes) -> None:
        """Write the payload of the commit at `seq`."""
        self.connection.execute("INSERT INTO payloads (seq, body) VALUES (?, ?)", (seq, body))

    def entry(self, seq: int) -> tuple[str, bytes] | None:
        """Return content and hash of an entry, whose hash is checked once more; None if there is none."""
        rows = {
            row[0]: row[1:]
            for row in self.connection.execute(
                "SELECT seq, content, hash FROM entries WHERE seq BETWEEN ? AND ?", (seq - 1, seq)
            )
        }
        if seq not in rows:
            return None
        content, digest = rows[seq]
        previous = GENESIS if seq == 0 else rows[seq - 1][1]
        if chain(previous, content) != digest:
            raise LedgerRefused("chain", f"entry {seq} of the ledger was changed")
        return content, digest

    def answer_seq(self, question: str) -> int | None:
        """Return where the answer to a question stands, if there is one."""
        row = self.connection.execute(
            "SELECT seq FROM entries WHERE kind = 'commit' AND question = ?", (question,)
        ).fetchone()
        return None if row is None else int(row[0])

    def payload(self, seq: int, digest: str) -> bytes:
        """Return the payload of the commit at `seq`, whose hash is checked on every read."""
        row = self.connection.execute("SELECT body FROM payloads WHERE seq = ?", (seq,)).fetchone()
        return _check_payload(seq, digest, None if row is None else row[0])


def _apply(accounts: Accounts, seq: int, content: str, digest: bytes) -> dict[str, Any]:
    try:
        return accounts.apply(seq, content, digest)
    # whatever a damaged entry makes of the books, it is a refusal and not a crash
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        raise LedgerRefused("chain", f"entry {accounts.next_seq} of the ledger cannot be read") from None


def _check_payload(seq: int, digest: object, body: object) -> bytes:
    if not isinstance(body, bytes) or hashlib.sha256(body).hexdigest() != digest:
        raise LedgerRefused("payload", f"the answer at entry {seq} of the ledger is missing or was changed")
    return body
