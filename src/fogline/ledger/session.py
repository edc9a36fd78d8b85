"""An open ledger: one connection, its books, its high-water mark, and the queue of those who want to write.

Before anything is written, and before data are touched, the last entry of the file *is* the one that the mark names:
the mark's lock is held from that comparison until the mark names the new last entry. A crash between file and mark
leaves the file one group of entries ahead, none of which anybody was told of; then the mark is brought up first.

Before each transaction, and once more after the mark, the name must still stand for the file that is open. Else SQLite
would take a journal that was put beside a copy for that of the open file, and roll it back; and nobody goes on to the
data, or is given an answer, when the file was replaced meanwhile.

Writes are grouped. Whoever holds the pen writes for all who wait: one transaction, one forced write of the file and one
of the mark serve every thread that came meanwhile, and none of them goes on before they are done.

A session lives in one process. A forked child must not use its parent's connection, nor even close it: closing could
roll back what the parent is writing. The child's handle is dead, and its connection is left alone for ever.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakSet

from fogline.ledger.accounts import Accounts
from fogline.ledger.disk import current_disk, drop_after_fork
from fogline.ledger.files import HighWater, Mark, new_keeper
from fogline.ledger.question import LedgerRefused
from fogline.ledger.steps import reached
from fogline.ledger.store import Store, StoreFailed

__all__ = ["MarkFailed", "Purpose", "Session"]

T = TypeVar("T")
Purpose = Literal["reserve", "commit", "declare", "adopt"]


_ADOPT = "if this is the newest copy, and no other is in use, use Ledger.adopt"


class MarkFailed(Exception):
    """An entry was written and its high-water mark was not: a reservation is spent, an answer not yet given."""


@dataclass
class _Turn:
    """One wish to write, and what became of it."""

    purpose: Purpose
    action: Callable[[], Any]
    result: Any = None
    error: BaseException | None = None
    appended: bool = False
    done: bool = False
    ready: threading.Event = field(default_factory=threading.Event)
    """Set when the turn is done, or when it has become this turn's part to write for all who wait."""


class Session:
    """See the module.

    Parameters
    ----------
    path : Path
        Resolved, of a file that exists.
    marks : HighWater
    adopting : bool
        Whether this copy may be taken for the newest although there is no mark of it.
    """

    def __init__(self, path: Path, marks: HighWater, *, adopting: bool = False) -> None:
        self._pen = threading.RLock()
        # the gate guards the queue for moments, the pen the file for whole transactions
        self._gate = threading.Lock()
        self._waiting: list[_Turn] = []
        self._led = False
        self._marks = marks
        self.path = path
        self._pid = os.getpid()
        self._identity = _identity(path)
        self._store: Store | None = None
        with _registry_lock:
            if any(other._identity == self._identity and other._store is not None for other in _sessions):
                raise LedgerRefused("handle", "this process has the ledger open already: use that handle")
            store = Store(path)
            try:
                with store.reading():
                    self._accounts: Accounts | None = store.check()
                    self._check_mark(store, self._accounts, adopting=adopting)
                self._check_place()
                with store.writing():
                    pass  # it can be written
            except StoreFailed as error:
                store.close()
                raise LedgerRefused("integrity", f"the ledger cannot be read and written: {error}") from None
            except BaseException:
                store.close()
                raise
            self._store = store
            _sessions.add(self)
        self.ledger = self._accounts.ledger
        marks.sweep(self.ledger)
        self._seen = (self._accounts.next_seq - 1, self._accounts.tip)

    # -- life and death ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file. Closing twice is no error; a forked child's handle closes without touching anything."""
        if self._pid != os.getpid():  # pragma: no cover - only in a forked child, where nothing is measured
            self._bury()
            return
        with self._pen:
            store, self._store = self._store, None
            if store is not None:
                store.close()
                self._marks.discard(self.ledger)

    def _bury(self) -> None:  # pragma: no cover - only in a forked child
        """Make sure that nothing ever closes a connection that belongs to the parent process."""
        store, self._store = self._store, None
        if store is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(store.connection))

    @property
    def store(self) -> Store:
        """The file, for an action within its turn."""
        if self._pid != os.getpid():  # pragma: no cover - only in a forked child
            raise LedgerRefused("fork", "a ledger cannot be used in a forked process: open it there")
        if self._store is None:
            raise LedgerRefused("handle", "this ledger was closed")
        return self._store

    @property
    def accounts(self) -> Accounts:
        """The books, for an action within its turn."""
        if self._accounts is None:
            raise LedgerRefused("handle", "the books are not open")
        return self._accounts

    # -- turns ------------------------------------------------------------------------------------------

    def write(self, purpose: Purpose, action: Callable[[], T]) -> T:
        """Do `action` in a transaction that is on the disk when this returns.

        An action may refuse (`LedgerRefused`) before it appends anything; others of its group are not affected.

        Raises
        ------
        LedgerRefused
            By the action, or because the file is in doubt: nothing was written.
        StoreFailed
            When the file cannot be written. What was to be appended counts as spent if it is found there later.
        MarkFailed
            When something was written and its mark was not.
        """
        turn = _Turn(purpose, action)
        _ = self.store
        with self._gate:
            self._waiting.append(turn)
            # the first who comes writes for all who came meanwhile: one forced write serves many
            leading, self._led = not self._led, True
        if not leading:
            self._await(turn)
        if not turn.done:
            self._lead()
        if turn.error is not None:
            raise turn.error
        result: T = turn.result
        return result

    def read(self, action: Callable[[], T]) -> T:
        """Do `action` on one state of the file, with the books brought up to date."""
        with self._pen:
            try:
                store = self.store
                self._check_place()
                with store.reading():
                    self._catch_up()
                    self._check_mark(store, self.accounts)
                    return action()
            except StoreFailed as error:
                raise LedgerRefused("file", f"the ledger cannot be read: {error}") from None

    def append(self, content: dict[str, Any]) -> int:
        """Append an entry, in a writing turn, and return its number."""
        accounts = self.accounts
        seq = accounts.next_seq
        self.store.append(accounts, accounts.compose(content, _now()))
        return seq

    def _await(self, turn: _Turn) -> None:
        """Wait until a turn is done or has to lead; one who is interrupted leaves the queue in order."""
        try:
            turn.ready.wait()
        except BaseException:
            with self._gate:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                    # told to lead, and leaving: somebody else has to
                    if turn.ready.is_set():
                        self._pass_on()
            raise

    def _lead(self) -> None:
        """Write for all who wait, then let the next one lead."""
        with self._gate:
            group, self._waiting = self._waiting, []
        try:
            with self._pen:
                self._serve(group)
        finally:
            with self._gate:
                self._pass_on()
            for turn in group:
                turn.done = True
                turn.ready.set()

    def _pass_on(self) -> None:
        if self._waiting:
            self._waiting[0].ready.set()
        else:
            self._led = False

    def _serve(self, group: list[_Turn]) -> None:
        """Do all turns of a group in one transaction, and move the mark, all under the mark's lock."""
        purposes = {turn.purpose for turn in group}
        written = False
        try:
            with self._mark_held(purposes):
                self._check_place()
                with self.store.writing():
                    high_water_mark = self._begin(adopting="adopt" in purposes)
                    for purpose in sorted(purposes):
                        reached(f"{purpose} begun")
                    for turn in group:
                        self._take(turn)
                    for purpose in sorted(purposes):
                        reached(f"{purpose} written")
                written = True
                self._seen = (self.accounts.next_seq - 1, self.accounts.tip)
                for purpose in sorted(purposes):
                    reached(f"{purpose} committed")
                if self.accounts.next_seq - 1 > high_water_mark.seq:
                    self._marks.move(high_water_mark, self._tip(high_water_mark.keeper))
                    self._check_place()
        except BaseException as error:
            self._accounts = None  # they may hold what the file does not: read it again
            for turn in group:
                if not written:
                    turn.error = _like(error)
                elif turn.appended or turn.purpose == "adopt":
                    turn.error = MarkFailed()
            # an interrupt goes on, once every turn has an error of its own
            if not isinstance(error, StoreFailed | LedgerRefused | OSError):
                raise

    def _take(self, turn: _Turn) -> None:
        before = self.accounts.next_seq
        try:
            turn.result = turn.action()
        except LedgerRefused as error:
            turn.error = error
        turn.appended = self.accounts.next_seq > before

    @contextmanager
    def _mark_held(self, purposes: set[Purpose]) -> Iterator[None]:
        """Hold the mark's lock, with room for a new mark. An answer that finds no room may try again."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._marks.locked(self.ledger))
                self._marks.prepare(self.ledger)
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else "unknown"
                # its budget is spent: the answer gets a second try, with the room that was kept for it
                if purposes == {"commit"}:
                    raise StoreFailed(f"the high-water mark: {reason}") from None
                raise LedgerRefused("high-water", f"the high-water mark cannot be written: {reason}") from None
            yield

    def _begin(self, *, adopting: bool) -> Mark:
        """Begin a group of entries: return the mark, which names the last entry of the file."""
        self._catch_up()
        present = self._check_mark(self.store, self.accounts, adopting=adopting)
        high_water_mark = self._tip(new_keeper() if present is None else present.keeper or new_keeper())
        try:
            if high_water_mark == present:
                self._marks.confirm(high_water_mark)
            else:
                current_disk().force_directory(self.path.parent)  # a journal that was removed stays removed
                self._marks.move(present, high_water_mark)
        except OSError:
            raise LedgerRefused("high-water", "the high-water mark cannot be written") from None
        self.accounts.begin_group()
        marks = self._marks.identity(high_water_mark.keeper)
        if adopting:
            self.append({"kind": "adopt", "ledger": self.ledger, "marks": marks})
        elif not self.accounts.marks:  # a ledger of an earlier version: from now on it knows its marks
            self.append({"kind": "marks", "marks": marks})
        return high_water_mark

    def _tip(self, keeper: str) -> Mark:
        return Mark(self.ledger, self.accounts.next_seq - 1, self.accounts.tip.hex(), keeper)

    # -- doubts -----------------------------------------------------------------------------------------

    def _check_place(self) -> None:
        """Refuse when the file's name stands for another file by now."""
        if _identity(self.path) != self._identity:
            raise LedgerRefused("file", "the ledger's file was replaced while it was open")

    def _catch_up(self) -> None:
        """Take what other processes wrote into the books, or read everything again after a failure."""
        self._check_place()
        if self._accounts is not None:
            self.store.continue_accounts(self._accounts)
            self._seen = (self._accounts.next_seq - 1, self._accounts.tip)
            return
        accounts = self.store.check()
        self._require(self.store, accounts, *self._seen, "chain")
        self._accounts = accounts
        self._seen = (accounts.next_seq - 1, accounts.tip)

    def verify(self) -> int:
        """Check everything from the beginning, as on opening; return the number of entries."""

        def again() -> int:
            accounts = self.store.check()
            self._require(self.store, accounts, *self._seen, "chain")
            self._check_mark(self.store, accounts)
            return accounts.next_seq

        return self.read(again)

    def _check_mark(self, store: Store, accounts: Accounts, *, adopting: bool = False) -> Mark | None:
        """Return the mark; refuse a file whose last entry it does not name, but for what a crash leaves.

        None, and a file that is any number of entries ahead, only for one who adopts. Within a transaction: while the
        file is looked at nobody can write to it, so the mark cannot run ahead of it.
        """
        high_water_mark, place = self._marks.read(accounts.ledger), self._marks.directory
        if high_water_mark is None:
            if adopting:
                return None
            raise LedgerRefused("high-water", f"there is no high-water mark of this ledger in {place}: {_ADOPT}")
        self._require(store, accounts, high_water_mark.seq, bytes.fromhex(high_water_mark.hash), "high-water")
        if adopting or not accounts.marks:
            return high_water_mark
        if self._marks.identity(high_water_mark.keeper) != accounts.marks:
            raise LedgerRefused("high-water", f"the marks in {place} are not those of this ledger: {_ADOPT}")
        # a crash between file and mark leaves the mark one group behind; anything older is another copy
        if high_water_mark.seq not in (accounts.next_seq - 1, accounts.group - 1):
            raise LedgerRefused("high-water", f"the mark in {place} is older than the ledger: {_ADOPT}")
        return high_water_mark

    @staticmethod
    def _require(store: Store, accounts: Accounts, seq: int, digest: bytes, check: str) -> None:
        """Refuse a file that does not hold the entry that is known to be in it."""
        found = store.entry(seq) if seq < accounts.next_seq else None
        if found is None or found[1] != digest:
            raise LedgerRefused(
                check,
                "the ledger is not the one that is known: an old copy was put back, or a copy was used beside it."
                " Go on with the newest file, and with no other",
            )


def _now() -> str:
    return current_disk().now()


def _identity(path: Path) -> tuple[int, int]:
    try:
        return current_disk().identity(path)
    except OSError:
        raise LedgerRefused("file", f"there is no ledger at {path}") from None


def _like(error: BaseException) -> BaseException:
    """Return an error of its own for each turn: one object must not be raised in several threads."""
    if isinstance(error, LedgerRefused):
        return LedgerRefused(error.check, error.message)
    return StoreFailed(str(error) if isinstance(error, StoreFailed) else type(error).__name__)


_sessions: WeakSet[Session] = WeakSet()
_registry_lock = threading.Lock()
_stopped: list[Session] = []


def _before_fork() -> None:
    """Let no transaction be under way while the process is copied."""
    _registry_lock.acquire()
    for session in list(_sessions):
        session._pen.acquire()
        _stopped.append(session)


def _after_fork_in_parent() -> None:
    for session in _stopped:
        session._pen.release()
    _stopped.clear()
    _registry_lock.release()


def _after_fork_in_child() -> None:  # pragma: no cover - only in a forked child
    global _registry_lock
    for session in _stopped:
        session._bury()
        session._pen = threading.RLock()
    _stopped.clear()
    _sessions.clear()
    _registry_lock = threading.Lock()
    drop_after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
