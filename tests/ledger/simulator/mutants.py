"""The ledger's code with one guard taken away at a time: what the simulator must notice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from tests.ledger.simulator.plan import SLOTS
from tests.ledger.simulator.system import Code

__all__ = ["MUTANTS", "changed", "looked_at_once", "mutated"]


def mutated(name: str) -> tuple[Code, ...]:
    """Return copies of the ledger's code with a guard taken away."""
    return changed(MUTANTS[name])


def changed(change: Callable[[Code], None]) -> tuple[Code, ...]:
    """Return copies of the ledger's code with a change made to each."""
    codes = tuple(Code() for _ in range(SLOTS))
    for code in codes:
        change(code)
    return codes


def mark_after_the_data(code: Code) -> None:
    """The mark of a reservation is written together with that of its answer."""
    marks = code.files.HighWater
    read, move = marks.read, marks.move

    def late_read(self: Any, ledger: str) -> Any:
        return getattr(self, "late", None) or read(self, ledger)

    def late_move(self: Any, before: Any, mark: Any) -> None:
        if before is None:
            move(self, None, mark)
        elif getattr(self, "late", None) is None:
            self.late = mark
        else:
            self.late = None
            move(self, read(self, mark.ledger), mark)

    marks.read, marks.move = late_read, late_move


def _moved_unseen(code: Code) -> None:
    """Let a mark be moved whatever it is."""
    marks = code.files.HighWater
    move = marks.move
    marks.move = lambda self, before, mark: move(self, self.read(mark.ledger), mark)


def mark_compared_on_opening(code: Code) -> None:
    """Once a file is open, its mark is written and no longer compared."""
    session = code.session.Session
    check = session._check_mark

    def on_opening(self: Any, store: Any, accounts: Any, *, adopting: bool = False) -> Any:
        if self._store is None:
            return check(self, store, accounts, adopting=adopting)
        return self._marks.read(accounts.ledger)

    session._check_mark = on_opening
    _moved_unseen(code)


def copy_accepted(code: Code) -> None:
    """A file that does not hold the entry of its mark is taken all the same."""
    code.session.Session._require = staticmethod(lambda *_: None)
    code.session.Session._check_mark = lambda self, store, accounts, *, adopting=False: self._marks.read(
        accounts.ledger
    )
    _moved_unseen(code)


def file_not_forced(code: Code) -> None:
    """SQLite does not wait for the disk."""
    store = code.store.Store
    configure = store._configure

    def hasty(self: Any) -> None:
        configure(self)
        self.connection.execute("PRAGMA synchronous=OFF")

    store._configure = hasty


def journal_removal_not_forced(code: Code) -> None:
    """The directory is not forced after the journal was removed, so that a power cut brings it back."""
    store = code.store.Store
    configure = store._configure

    def hasty(self: Any) -> None:
        configure(self)
        self.connection.execute("PRAGMA synchronous=FULL")

    store._configure = hasty


def mark_not_forced(code: Code) -> None:
    """The new mark's name is not forced to the disk."""
    code.disk.Disk.force_directory = lambda self, path: None


def answer_before_commit(code: Code) -> None:
    """The answer is returned from memory, and stored only when the next one is."""
    session, receipts = code.session.Session, code.receipts
    write = session.write

    def early(self: Any, purpose: str, action: Callable[[], Any]) -> Any:
        late = self.__dict__.setdefault("late", [])
        if purpose != "commit":
            while late:
                write(self, "commit", late.pop(0))
            return write(self, purpose, action)
        late.append(action)
        cells = {
            name: cell.cell_contents for name, cell in zip(action.__code__.co_freevars, action.__closure__, strict=True)
        }  # type: ignore[attr-defined]
        receipt = receipts.Receipt(**dict.fromkeys(receipts.Receipt.__dataclass_fields__, 0))
        return receipts.Answer(cells["payload"], receipt, False)

    session.write = early


def answer_without_entry(code: Code) -> None:
    """An answer that the file does not take, because it was replaced or cannot be written, is returned all the same."""
    session, receipts = code.session.Session, code.receipts
    write = session.write

    def hopeful(self: Any, purpose: str, action: Callable[[], Any]) -> Any:
        try:
            return write(self, purpose, action)
        except (code.question.LedgerRefused, code.session.MarkFailed, code.store.StoreFailed):
            if purpose != "commit":
                raise
        payload = dict(zip(action.__code__.co_freevars, action.__closure__, strict=True))["payload"].cell_contents  # type: ignore[attr-defined]
        receipt = receipts.Receipt(**dict.fromkeys(receipts.Receipt.__dataclass_fields__, 0))
        return receipts.Answer(payload, receipt, False)

    session.write = hopeful


def looked_at_once(code: Code) -> None:
    """The file is not looked at again before a transaction begins, nor after the mark: no invariant rests on that."""
    session = code.session.Session
    catch_up, check = session._catch_up, session._check_place

    def looking(self: Any) -> None:
        check(self)
        catch_up(self)

    session._check_place, session._catch_up = (lambda self: None), looking


def question_not_locked(code: Code) -> None:
    """Equal questions may be under way at the same time."""
    code.protocol.question_lock = lambda *_: nullcontext()


def reserved_without_lock(code: Code) -> None:
    """The books are read before anybody is kept from writing, and not brought up to date when the write begins."""
    session = code.session.Session
    catch_up = session._catch_up

    def stale(self: Any) -> None:
        if self._accounts is None:
            catch_up(self)

    session._catch_up = stale
    code.files.HighWater.locked = lambda self, ledger: nullcontext()
    code.session.Session._check_mark = lambda self, store, accounts, *, adopting=False: self._marks.read(
        accounts.ledger
    )
    _moved_unseen(code)


def cap_not_checked(code: Code) -> None:
    """Neither the books nor the file compare what is spent with the cap."""
    code.accounts._within = lambda totals, owner: True
    store = code.store.Store
    append = store.append

    def unchecked(self: Any, accounts: Any, content: str) -> None:
        self.connection.execute("PRAGMA ignore_check_constraints=ON")
        append(self, accounts, content)

    store.append = unchecked


def pure_not_charged(code: Code) -> None:
    """Pure releases are written down and not added up."""
    account = code.accounts.Account
    add = account.add

    def forgetful(self: Any, charge: Any, place: Any) -> None:
        if charge.currency != "pure":
            add(self, charge, place)

    account.add = forgetful


def rho_unaware_of_pure(code: Code) -> None:
    """Rho is allowed as if nothing pure had been spent."""
    cap, spending = code.shared_cap.SharedCap, code.shared_cap.Spending
    budget = cap.rho_budget
    cap.rho_budget = lambda self, spent: budget(self, spending(rho=spent.rho, delta=spent.delta))


MUTANTS: dict[str, Callable[[Code], None]] = {
    mutant.__name__: mutant
    for mutant in (
        mark_after_the_data,
        mark_compared_on_opening,
        copy_accepted,
        file_not_forced,
        journal_removal_not_forced,
        mark_not_forced,
        answer_before_commit,
        answer_without_entry,
        question_not_locked,
        reserved_without_lock,
        cap_not_checked,
        pure_not_charged,
        rho_unaware_of_pure,
    )
}
