"""One run: a plan carried out on a machine, with the model looking on."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from tests.ledger.simulator import sqlite
from tests.ledger.simulator.disk import Disk, File
from tests.ledger.simulator.machine import Deadlock, Killed, Machine, Process, Task
from tests.ledger.simulator.model import (
    DOUBT,
    DURABLE,
    KEPT,
    SERVED,
    Model,
    Violated,
    durable_entries,
    entries_when_named,
    marks_of,
    named,
)
from tests.ledger.simulator.plan import QUESTIONS, SLOTS, Event, Operation, Plan, draw
from tests.ledger.simulator.prices import Prices
from tests.ledger.simulator.system import Code, Path

from fogline.mechanisms.errors import ReleaseFailed

__all__ = ["Outcome", "carry_out", "loaded_code", "shrunk"]

LEDGER, MARKS, OTHER_MARKS = "/data/ledger", "/marks", "/other/marks"
ROOM = 4096
DESTROYING = frozenset(("over in place", "marks lost", "marks back"))
"""What takes away what is on the disk already: put off while anybody is between reservation and answer."""


@dataclass
class Outcome:
    """What came of a run."""

    plan: Plan
    violation: Violated | None
    trace: list[str]
    seen: Counter[str]
    ticks: int


@lru_cache(maxsize=1)
def loaded_code() -> tuple[Code, ...]:
    """Return the ledger's code, a copy for each process."""
    return tuple(Code() for _ in range(SLOTS))


def carry_out(plan: Plan, codes: tuple[Code, ...] | None = None) -> Outcome:
    """Do what a plan says, and check what must hold."""
    run = _Run(plan, loaded_code() if codes is None else codes)
    violation = None
    try:
        run.whole()
    except Violated as error:
        violation = error
    except Deadlock as error:
        violation = Violated(SERVED, str(error))
    return Outcome(plan, violation, run.trace, run.seen, run.machine.ticks)


def shrunk(plan: Plan, codes: tuple[Code, ...] | None = None) -> tuple[Plan, tuple[int, ...]]:
    """Leave out of a failing plan what it fails without; return it with the numbers of the items that are left."""
    failure = carry_out(plan, codes).violation
    kept = list(range(len(plan.items)))
    going = failure is not None
    while going:
        going = False
        for number in list(kept):
            fewer = [k for k in kept if k != number]
            found = carry_out(only(plan, fewer), codes).violation
            if found is not None and failure is not None and found.invariant == failure.invariant:
                kept, going = fewer, True
    return only(plan, kept), tuple(kept)


def only(plan: Plan, kept: list[int]) -> Plan:
    """Return a plan with some of its items."""
    return replace(plan, items=tuple(plan.items[number] for number in kept))


@dataclass
class _Open:
    """A ledger that a process has open."""

    ledger: Any
    path: str
    marks: str


@dataclass
class _Slot:
    """A seat for processes, one after the other, and what they have yet to do."""

    code: Code
    queue: list[Operation]
    process: Process | None = None
    doing: Operation | None = None


@dataclass
class _Tampering:
    """What the operator did behind the ledger's back."""

    copies: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    marks: dict[str, bytes] | None = None
    marks_changed: bool = False
    marks_lost: bool = False
    adopted: bool = False
    damaged: bool = False
    replaced: bool = False
    overwritten: bool = False
    foreign_journal: bool = False
    """Whether a copy's journal lies where SQLite looks for that of the original, and may play it back."""

    @property
    def doubtful(self) -> bool:
        """Whether the ledger has any reason to refuse."""
        changed = self.damaged or self.replaced or self.marks_changed or self.adopted
        return changed or bool(self.beside or self.moved)


class _Run:
    def __init__(self, plan: Plan, codes: tuple[Code, ...]) -> None:
        self.plan = plan
        prices = Prices(plan.lane, plan.cap)
        disk = _empty() if plan.founding else _founded(prices).copy()
        self.machine = Machine(random.Random(f"run {plan.seed}"), disk, plan.switching)
        sqlite.restart_randomness(random.Random(f"sqlite {plan.seed}").randbytes)
        self.machine.on_tick, self.machine.between_turns = self._on_tick, self._between_turns
        self.model = Model(prices)
        self.model.numbers = {self._question(codes[0], k).within(None): k for k in range(QUESTIONS)}
        self.slots = [
            _Slot(code, [operation for operation in plan.operations if operation.slot == number])
            for number, code in enumerate(codes)
        ]
        self.trace: list[str] = []
        self.seen: Counter[str] = Counter()
        self.violation: Violated | None = None
        self.tampering = _Tampering()
        self.founded = not plan.founding
        self.full = self.crashed = False
        """Whether the disk was ever full or sick, and whether anybody was ever killed."""
        self._events = dict.fromkeys(plan.events)
        self._due: list[tuple[Event, Process]] = []
        self._put_off: list[tuple[Event, Process]] = []
        self._paying: set[Task | None] = set()
        self._asking: dict[Task, int] = {}
        """Those who are between their reservation and their answer."""
        self._moments: Counter[str] = Counter()
        self._gone: set[tuple[int, str]] = set()
        """Entries, by number and hash, that were durable and named by the mark, and then taken out of the file."""

    # -- from the beginning to the end ------------------------------------------------------------------

    def whole(self) -> None:
        self.machine.run()
        self._events.clear()
        self.machine.disk.capacity, self.machine.disk.failing = None, 0
        self.machine.switching = 0.0
        if self.plan.cut_at_end:
            self.say("the power fails at the end")
            self.machine.lose_power()
        self.slots[0].process = self.machine.start(0, self._guarded(self._last_look))
        self.machine.run()

    def say(self, line: str) -> None:
        self.trace.append(f"{self.machine.ticks:5d}  {line}")

    def _on_tick(self, what: str, process: Process) -> bool:
        asked = None if self.machine.current is None else self._asking.get(self.machine.current)
        if what == "unlocked" and asked is not None:  # others may ask the same now, whenever this process goes on
            self.model.end(asked, process)
        self._moments[what] += 1
        self._moments["any"] += 1
        if what == "reserve begun":
            self._paying.add(self.machine.current)
        for event in list(self._events):
            if event.moment in (what, "any") and event.count == self._moments[event.moment]:
                del self._events[event]
                self._due.append((event, process))
        return bool(self._due) or self.violation is not None

    def _between_turns(self) -> None:
        if self.violation is not None:
            raise self.violation
        due, self._due = self._due, []
        paying = any(task is not None and task.process.alive for task in self._paying)
        for event, process in due:
            if paying and event.kind in DESTROYING:
                self._put_off.append((event, process))
            else:
                self._happen(event, process)
        if not paying:
            for event, process in self._put_off:
                self._happen(event, process)
            self._put_off.clear()
        for number, slot in enumerate(self.slots):
            running = slot.process is not None and any(task.process is slot.process for task in self.machine.tasks)
            if running:
                continue
            if slot.process is not None and slot.doing is not None:
                if slot.doing.retried:
                    slot.queue.insert(0, replace(slot.doing, retried=False))
                slot.doing = None
            if slot.queue:
                slot.process = self.machine.start(number, self._guarded(lambda slot=slot: self._life(slot)))

    def _guarded(self, work: Callable[[], None]) -> Callable[[], None]:
        """Let any error that is no refusal count as a violation."""

        def guarded() -> None:
            try:
                work()
            except Violated as error:
                self.violation = self.violation or error
            except Exception as error:
                process = self.machine.process
                if process is not None and not process.alive:
                    return  # as it unwinds, a dead process may meet what it likes
                self.violation = self.violation or Violated("an error is a refusal", f"{type(error).__name__}: {error}")
            if self.violation is not None:
                raise self.violation

        return guarded

    # -- what processes do ------------------------------------------------------------------------------

    def _life(self, slot: _Slot) -> None:
        slot.code.reset()
        opened: _Open | None = None
        try:
            while slot.queue:
                operation = slot.doing = slot.queue.pop(0)
                self.say(f"{operation}")
                if operation.kind == "open" or opened is None:
                    if opened is not None:
                        opened.ledger.close()
                    opened = None  # while the next one is opened there is none
                    opened = self._open(slot, operation.which)
                if opened is not None and operation.kind != "open":
                    self._do(slot, opened, operation)
                slot.doing = None
        finally:
            if opened is not None:
                opened.ledger.close()

    def _open(self, slot: _Slot, which: str) -> _Open | None:
        ledgers, path, marks = slot.code.package.Ledger, self._original(), MARKS
        way = ledgers.open
        if which == "other" and self.plan.family == "copies":
            self.machine.wait(lambda: bool(self.tampering.beside), patient=False)
            path = (self.tampering.beside or [path])[-1]
        if which == "other" and self.plan.family == "marks":
            marks, way = (MARKS if self.tampering.marks_lost else OTHER_MARKS), ledgers.adopt
            self.tampering.adopted = True
        try:
            if self.plan.founding and not self.founded and slot is self.slots[0]:
                return self._found(slot)
            opened = way(path, high_water=marks)
            self._check_gone(opened, path)
        except slot.code.question.LedgerRefused as refusal:
            self._refused(refusal, f"process {slot.process.pid if slot.process else 0} cannot open {path}")
            return None
        self.seen["opened"] += 1
        return _Open(opened, path, marks)

    def _check_gone(self, ledger: Any, path: str) -> None:
        """Check that no file is accepted from which an entry is gone that the mark has named."""
        if self._gone:
            held = {(entry.seq, entry.hash.upper()) for entry in ledger.history()}
            if not self._gone <= held:
                raise Violated(DOUBT, f"{path} is accepted, and an entry that the mark named is gone from it")

    def _found(self, slot: _Slot) -> _Open:
        opened = _create(slot.code, self.model.prices)
        self.founded = True
        self.seen["founded"] += 1
        return _Open(opened, LEDGER, MARKS)

    def _original(self) -> str:
        names = self.machine.disk.names
        return next((path for path in (LEDGER, *reversed(self.tampering.moved)) if path in names), LEDGER)

    def _do(self, slot: _Slot, opened: _Open, operation: Operation) -> None:
        if operation.kind == "ask":
            self._ask(slot, opened, operation.questions[0])
        elif operation.kind == "ask at once":
            process, first, second = slot.process, *operation.questions
            left: list[int] = [1]

            def beside() -> None:
                try:
                    self._ask(slot, opened, second)
                finally:
                    left.clear()

            self.machine.start(operation.slot, self._guarded(beside), process)
            self._ask(slot, opened, first)
            self.machine.wait(lambda: not left)
        else:
            try:
                if operation.kind == "verify":
                    opened.ledger.verify()
                else:
                    opened.ledger.declare_partition("trial", f"cut {self.machine.ticks}", ["left", "right"])
            except slot.code.question.LedgerRefused as refusal:
                self._refused(refusal, operation.kind)

    def _ask(self, slot: _Slot, opened: _Open, number: int) -> None:
        question, process, task = self._question(slot.code, number), slot.process, self.machine.current
        fingerprint = question.within(None)
        if task is not None:
            self._asking[task] = number

        def release() -> bytes:
            try:
                assert process is not None
                self.model.begin(number, process, _file_of(process, opened.path), opened.path)
                answer = self._grant(slot.code, process, opened, number, fingerprint)
            except Violated as error:
                self.violation = self.violation or error
                raise
            self.machine.tick("touched")
            return answer

        try:
            answer = self._spend(opened, question, release)
        except slot.code.question.LedgerRefused as refusal:
            self._refused(refusal, f"question {number}", opened, process, number)
        except ReleaseFailed:
            if process is not None and not process.alive:
                raise Killed from None
            self.say(f"question {number}: failed")
            self.seen["release failed"] += 1
            self._not_without_doubt("a release failed", self.full)
        else:
            self.seen["answered from the ledger" if answer.cached else "answered"] += 1
            self.say(f"question {number}: answered by {answer!r}")
            self._check_returned(slot, process, opened, number, fingerprint, answer.payload)
        finally:
            self.model.end(number, process)
            self._paying.discard(task)

    def _question(self, code: Code, number: int) -> Any:
        return code.package.Question("trial", "1", "trial", "1", {"number": number})

    def _spend(self, opened: _Open, question: Any, release: Callable[[], bytes]) -> Any:
        price = self.model.prices.of(question.parameters["number"])
        return opened.ledger.spend(
            question, cost=price, neighbours="add-remove", certified=True, release=release, max_payload=ROOM
        )

    def _grant(self, code: Code, process: Process, opened: _Open, number: int, fingerprint: str) -> bytes:
        self.seen["data touched"] += 1
        self.say(f"question {number}: the data are touched")
        if self.tampering.damaged:
            return self.model.granted_in_damage(number)
        return self.model.granted(number, fingerprint, *self._durable(code, process, opened))

    def _durable(self, code: Code, process: Process, opened: _Open) -> tuple[list[tuple[Any, ...]], Any]:
        """Return the entries and the mark that count: what would be there if the power failed now.

        One thing can take a durable entry out of a file that nobody overwrites in place. When a copy and its journal
        are put where the file was, a process that has the file open takes that journal for its own, and SQLite rolls
        the file back by it. For such a file, and only if the mark names an entry that it no longer holds, what counts
        is what was durable when the mark came to name it. That file must be refused from then on: `_gone`.
        """
        disk, file = self.machine.disk, _file_of(process, opened.path)
        entries = durable_entries(disk, opened.path, file)
        marks = code.files.HighWater(Path(opened.marks))
        with self._looking_at(disk.after_certain_loss()):
            mark = marks.read(opened.ledger.id)
        if self.tampering.foreign_journal and mark is not None and not named(entries, mark):
            then = entries_when_named(self.machine, file, str(marks._file(opened.ledger.id)), mark)
            if then is not None:
                self.say(f"entry {mark.seq}, which the mark names, was taken out of the file by a copy's journal")
                self.seen["a durable entry taken out of the file"] += 1
                self._gone.add((mark.seq, mark.hash.upper()))
                entries = then
        return entries, mark

    def _check_returned(
        self, slot: _Slot, process: Process | None, opened: _Open, number: int, fingerprint: str, payload: bytes
    ) -> None:
        if self.tampering.damaged:
            self.model.check_released(number, payload)
            return
        assert process is not None
        entries, mark = self._durable(slot.code, process, opened)
        path = str(slot.code.files.HighWater(Path(opened.marks))._file(opened.ledger.id))
        marks = [before for _, before in marks_of(self.machine, path)]
        # Where marks were lost or put back, what counts is that one has named the entry before.
        marks += [] if self.tampering.marks_changed else [mark]
        self.model.returned(number, fingerprint, payload, entries, marks)

    @contextmanager
    def _looking_at(self, disk: Disk) -> Iterator[None]:
        """Let the ledger's code read another disk, with nobody else running."""
        machine = self.machine
        kept = machine.disk, machine.current
        machine.disk, machine.current = disk, None
        try:
            yield
        finally:
            machine.disk, machine.current = kept

    def _refused(
        self, refusal: Any, what: str, opened: _Open | None = None, process: Process | None = None, number: int = 0
    ) -> None:
        if process is not None and not process.alive:
            raise Killed
        self.say(f"{what}: refused, {refusal}")
        self.seen[f"refused: {refusal.check}"] += 1
        if refusal.check == "budget" and opened is not None and process is not None:
            if not self.tampering.damaged:
                entries = durable_entries(self.machine.disk, opened.path, _file_of(process, opened.path))
                reserved = [self.model.numbers[entry[2]] for entry in entries if entry[1] == "reserve"]
                if self.model.prices.allow([*reserved, number]):
                    raise Violated(SERVED, f"the budget is said to be spent at {reserved} of {self.plan.cap}")
            return
        self._not_without_doubt(f"{what} is refused: {refusal}", self.full or not self.founded)

    def _not_without_doubt(self, what: str, excused: bool) -> None:
        if not (self.tampering.doubtful or excused):
            raise Violated(SERVED, what)

    # -- what befalls them ------------------------------------------------------------------------------

    def _happen(self, event: Event, process: Process) -> None:
        self.say(f"EVENT {event.kind} at {event.moment!r} of process {process.pid}")
        self.seen[f"event: {event.kind}"] += 1
        getattr(self, "_" + event.kind.replace(" ", "_"))(event.number, process)

    def _kill(self, _: int, process: Process) -> None:
        self.crashed = True
        self.machine.kill(process)

    def _kill_another(self, number: int, process: Process) -> None:
        others = list({task.process: None for task in self.machine.tasks if task.process is not process})
        if others:
            self._kill(0, others[number % len(others)])

    def _power(self, _: int, process: Process) -> None:
        self.crashed = True
        self.machine.lose_power()

    def _full(self, number: int, _: Process) -> None:
        self.full = True
        disk = self.machine.disk
        used = sum(len(file.live) for file in set(disk.names.values()))
        disk.capacity = used + number * number % 300_000

    def _room(self, _: int, process: Process) -> None:
        self.machine.disk.capacity = None

    def _sick(self, number: int, _: Process) -> None:
        self.full = True
        self.machine.disk.failing = 1 + number % 6

    def _clock(self, number: int, _: Process) -> None:
        self.machine.clock -= 1000.0 * number

    def _copy(self, number: int, _: Process) -> None:
        names, path = self.machine.disk.names, self._original()
        if path in names:
            journal = names.get(path + "-journal") if number % 2 else None
            body = None if journal is None else bytes(journal.live)
            self.tampering.copies.append((bytes(names[path].live), body))

    def _copy_beside(self, number: int, process: Process) -> None:
        self._copy(number, process)
        self._beside(-1, process)

    def _beside(self, number: int, _: Process) -> None:
        if self.tampering.copies:
            path = f"/data/copy-{len(self.tampering.beside)}"
            self._put(path, self.tampering.copies[number % len(self.tampering.copies)])
            self.tampering.beside.append(path)

    def _put(self, path: str, copy: tuple[bytes, bytes | None]) -> None:
        body, journal = copy
        self.machine.disk.put(path, body)
        if journal is not None:
            self.machine.disk.put(path + "-journal", journal).foreign = True
            self.tampering.foreign_journal |= path == LEDGER

    def _over_by_rename(self, number: int, process: Process) -> None:
        disk = self.machine.disk
        if not self.tampering.copies:
            self._copy(number, process)
        if self.tampering.copies and LEDGER in disk.names:
            aside = f"/data/aside-{len(self.tampering.aside)}"
            disk.place(aside, disk.names[LEDGER])
            self._put(LEDGER, self.tampering.copies[number % len(self.tampering.copies)])
            self.tampering.aside.append(aside)
            self.tampering.replaced = True

    def _over_in_place(self, number: int, _: Process) -> None:
        """Overwrite the file, when nobody reads or writes it."""
        disk, copies = self.machine.disk, [body for body, journal in self.tampering.copies if journal is None]
        file = disk.names.get(LEDGER)
        quiet = file is not None and max(file.levels.values(), default=0) == 0
        if file is not None and quiet and copies and LEDGER + "-journal" not in disk.names:
            file.live, file.unforced = bytearray(copies[number % len(copies)]), []
            file.durable = bytes(file.live)
            self.tampering.replaced = self.tampering.overwritten = True

    def _original_back(self, _: int, process: Process) -> None:
        disk = self.machine.disk
        if self.tampering.aside:
            path = self.tampering.aside.pop()
            if LEDGER in disk.names:
                disk.place(f"{path}-replaced", disk.names[LEDGER])
            disk.place(LEDGER, disk.names[path])
            disk.place(path, None)

    def _move(self, _: int, process: Process) -> None:
        disk = self.machine.disk
        if LEDGER in disk.names:
            path = f"/data/moved-{len(self.tampering.moved)}"
            disk.place(path, disk.names[LEDGER])
            disk.place(LEDGER, None)
            self.tampering.moved.append(path)

    def _copy_marks(self, _: int, process: Process) -> None:
        names = self.machine.disk.names
        self.tampering.marks = {name: bytes(file.live) for name, file in names.items() if _is_mark(name)}

    def _marks_lost(self, _: int, process: Process) -> None:
        disk = self.machine.disk
        for name in [name for name in disk.names if name.startswith(MARKS + "/")]:
            disk.place(name, None)
        self.tampering.marks_changed = self.tampering.marks_lost = True

    def _marks_back(self, _: int, process: Process) -> None:
        if self.tampering.marks:
            for name, body in self.tampering.marks.items():
                self.machine.disk.put(name, body)
            self.tampering.marks_changed = True
            self.tampering.marks_lost = False

    def _flip_file(self, number: int, _: Process) -> None:
        self._flip(self.machine.disk.names.get(LEDGER), number)

    def _flip_mark(self, number: int, _: Process) -> None:
        for name, file in self.machine.disk.names.items():
            if _is_mark(name):
                self._flip(file, number)

    def _flip(self, file: File | None, number: int) -> None:
        if file is not None and file.live:
            bit = random.Random(f"flip {self.plan.seed} {number}").randrange(8 * len(file.live))
            file.live[bit // 8] ^= 1 << bit % 8
            if bit // 8 < len(file.durable):
                body = bytearray(file.durable)
                body[bit // 8] ^= 1 << bit % 8
                file.durable = bytes(body)
            self.tampering.damaged = True

    # -- the end ----------------------------------------------------------------------------------------

    def _last_look(self) -> None:
        """Open what is there with nothing going on, and compare it with what everybody was told."""
        if not self.founded:
            return
        slot, done = self.slots[0], self.tampering
        slot.code.reset()
        paths = [LEDGER, *done.beside, *done.aside, *done.moved]
        paths += [name for name in self.machine.disk.names if name.endswith("-replaced")]
        found = [
            self._look(slot, path, marks)
            for path in dict.fromkeys(paths)
            for marks in ((MARKS, OTHER_MARKS) if done.adopted else (MARKS,))
            if path in self.machine.disk.names
        ]
        excused = done.damaged or done.overwritten or done.foreign_journal or done.marks_changed or done.adopted
        excused = excused or (self.crashed and (done.replaced or bool(done.moved)))
        if not any(found) and not excused:
            raise Violated(KEPT if done.doubtful else SERVED, "no file is accepted in the end")

    def _look(self, slot: _Slot, path: str, marks: str) -> bool:
        """Say whether a file is accepted; check all that it says, if it is."""
        try:
            ledger = slot.code.package.Ledger.open(path, high_water=marks)
        except slot.code.question.LedgerRefused as refusal:
            self.say(f"in the end, {path} with {marks} is refused: {refusal}")
            return False
        with ledger:
            try:
                ledger.verify()
                self._check_gone(ledger, path)
                history = {entry.seq: entry for entry in ledger.history()}
                for grant in self.model.grants:
                    entry = history.get(grant.seq)
                    if entry is None or (grant.hash and entry.hash.upper() != grant.hash):
                        raise Violated(KEPT, f"{path} is accepted without the reservation at entry {grant.seq}")
                reserved = [entry.content["question"] for entry in history.values() if entry.kind == "reserve"]
                self.model.check_cap([self.model.numbers[asked] for asked in reserved], "reservations", DURABLE)
                for number, payload in self.model.answers.items():
                    self._look_up(slot, _Open(ledger, path, marks), number, payload)
            except slot.code.question.LedgerRefused as refusal:
                self.say(f"in the end, {path} is opened and then refused: {refusal}")
                return False
        self.say(f"in the end, {path} with {marks} is accepted")
        return True

    def _look_up(self, slot: _Slot, opened: _Open, number: int, payload: bytes) -> None:
        def never() -> bytes:
            self.violation = Violated(KEPT, f"the answer to question {number} is gone")
            raise self.violation

        try:
            answer = self._spend(opened, self._question(slot.code, number), never)
        except slot.code.question.BudgetExceeded:
            raise Violated(KEPT, f"the answer to question {number} is gone") from None
        except ReleaseFailed:
            return
        if answer.payload != payload:
            raise Violated(KEPT, f"the answer to question {number} has changed")


def _is_mark(name: str) -> bool:
    return name.startswith(MARKS + "/") and name.endswith(".json")


def _file_of(process: Process, path: str) -> File:
    found = [database.file for database in process.databases if database.path == path]
    assert found, "the ledger is not open"
    return found[0]


def _empty() -> Disk:
    disk = Disk()
    disk.directories.update(("/data", MARKS))
    return disk


def _create(code: Code, prices: Prices) -> Any:
    caps = {"epsilon": prices.epsilon, "delta": prices.delta}
    return code.package.Ledger.create(LEDGER, dataset="trial", high_water=MARKS, **caps)


@lru_cache(maxsize=64)
def _founded(prices: Prices) -> Disk:
    """Return a disk with a new ledger on it, made by the real code with nobody in its way."""
    sqlite.restart_randomness(random.Random("founding").randbytes)
    machine = Machine(random.Random(f"founding {prices.cap}"), _empty(), 0.0)

    code = loaded_code()[0]

    def work() -> None:
        code.reset()
        _create(code, prices).close()

    machine.start(0, work)
    machine.run()
    machine.disk.force_names("/data")
    machine.disk.force_names("/data/ledger.locks")
    return machine.disk


def of_seed(seed: int, family: str | None = None) -> Outcome:
    """Draw a plan from a seed and carry it out."""
    return carry_out(draw(seed, family))
