"""What must hold, on a plain model of what a ledger is for.

The model knows what no file knows: every time the data were touched, and every answer that anybody was given. It
looks at the disk as it would be after a power cut at that very moment, when nothing survives that was not forced.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.ledger.simulator import sqlite
from tests.ledger.simulator.disk import Disk, File
from tests.ledger.simulator.machine import Machine, Process
from tests.ledger.simulator.prices import Prices


class Violated(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(f"{invariant}: {seen}")
        self.invariant = invariant


RESERVED = "released <= reserved <= cap"
DURABLE = "no answer without a durable entry"
SAME = "same question, same answer"
DOUBT = "refused on doubt"
KEPT = "nothing is lost"
SERVED = "nothing is refused without a doubt"

_ENTRIES = (
    "SELECT e.seq, e.kind, e.question, hex(e.hash), p.body FROM entries e LEFT JOIN payloads p ON p.seq = e.seq"
    " ORDER BY e.seq"
)


@dataclass(frozen=True)
class Grant:
    """One time that the data were touched."""

    question: int
    seq: int
    hash: str
    answer: bytes


@dataclass
class Model:
    """What happened so far, and the checks of it."""

    prices: Prices
    numbers: dict[str, int] = field(default_factory=dict)
    """Question by fingerprint."""
    grants: list[Grant] = field(default_factory=list)
    answers: dict[int, bytes] = field(default_factory=dict)
    """What was given to a caller: question and answer."""
    under_way: dict[int, tuple[Process, tuple[File, str]]] = field(default_factory=dict)

    def check_cap(self, questions: Sequence[int], what: str, invariant: str = RESERVED) -> None:
        """Check that the releases of some questions together are within the cap, as the model computes it."""
        if not self.prices.hold(questions):
            raise Violated(invariant, f"{len(questions)} {what} on a cap for {self.prices.cap} ({self.prices.lane})")

    def granted(self, question: int, fingerprint: str, entries: list[tuple[Any, ...]], mark: Any) -> bytes:
        """Check a release before it touches the data, from what is durable; return its answer."""
        hashes = {seq: digest for seq, _, _, digest, _ in entries}
        reserves = [(seq, asked) for seq, kind, asked, _, _ in entries if kind == "reserve"]
        mine = [seq for seq, asked in reserves if asked == fingerprint]
        answered = [seq for seq, kind, asked, _, _ in entries if kind == "commit" and asked == fingerprint]
        if not mine or (answered and answered[-1] > mine[-1]):
            raise Violated(DURABLE, f"question {question} touches the data without a reservation on the disk")
        self.check_cap([self.numbers.get(asked, question) for _, asked in reserves], "reservations")
        for grant in self.grants:
            if hashes.get(grant.seq) != grant.hash:
                raise Violated(DOUBT, f"a file that knows nothing of the release at entry {grant.seq} allows another")
        self.check_cap([*(grant.question for grant in self.grants), question], "releases")
        if mark is None or mark.seq < mine[-1] or hashes.get(mark.seq) != mark.hash.upper():
            raise Violated(DOUBT, f"the data are touched at entry {mine[-1]}, which no durable mark covers")
        answer = f"question {question}, release {len(self.grants)}. ".encode() * 4
        self.grants.append(Grant(question, mine[-1], hashes[mine[-1]], answer))
        return answer

    def granted_in_damage(self, question: int) -> bytes:
        """Check a release after bits have flipped under an open ledger: only the number of releases is sure."""
        self.check_cap([*(grant.question for grant in self.grants), question], "releases")
        answer = f"question {question}, release {len(self.grants)}. ".encode() * 4
        self.grants.append(Grant(question, 0, "", answer))
        return answer

    def begin(self, question: int, process: Process, file: File, path: str) -> None:
        """Note that a question's release is under way; nobody else may be at the same one in the same file.

        Locks lie beside the name: who has a file open that was moved since pays, but cannot store an answer any more.
        """
        other, where = self.under_way.get(question, (None, None))
        if other is not None and other.alive and where == (file, path):
            raise Violated(SAME, f"question {question} is paid for twice at once")
        self.under_way[question] = process, (file, path)

    def end(self, question: int, process: Process | None) -> None:
        """Note that a process is done with a question, one way or the other."""
        if self.under_way.get(question, (None, None))[0] is process:
            self.under_way.pop(question, None)

    def returned(
        self,
        question: int,
        fingerprint: str,
        payload: bytes,
        entries: list[tuple[Any, ...]],
        marks: list[Any],
    ) -> None:
        """Check an answer before the caller has it, against what is durable and what marks have named.

        The last of `marks` is the durable one; it may name an entry of a copy that went on, and was the newest then.
        """
        self.check_answer(question, payload)
        found = [(seq, body) for seq, kind, asked, _, body in entries if kind == "commit" and asked == fingerprint]
        if [body for _, body in found] != [payload]:
            raise Violated(DURABLE, f"question {question} is answered, and the answer is not on the disk")
        place = found[0][0]
        seen = [mark for mark in marks if mark is not None and mark.seq >= place]
        if not seen or seen[-1] is not marks[-1] or not any(named(entries, mark) for mark in seen):
            raise Violated(DOUBT, f"question {question} is answered at entry {place}, which no durable mark names")
        self.answers[question] = payload

    def check_answer(self, question: int, payload: bytes) -> None:
        self.check_released(question, payload)
        if self.answers.get(question, payload) != payload:
            raise Violated(SAME, f"question {question} has two answers")

    def check_released(self, question: int, payload: bytes) -> None:
        if payload not in [grant.answer for grant in self.grants if grant.question == question]:
            raise Violated(SAME, f"question {question} has an answer that no release gave")


def named(entries: list[tuple[Any, ...]], mark: Any) -> bool:
    """Say whether the entry that a mark names is among some entries."""
    return any(seq == mark.seq and digest == mark.hash.upper() for seq, _, _, digest, _ in entries)


def marks_of(machine: Machine, path: str) -> list[tuple[int, Any]]:
    """Return all that a mark was made to name, and when."""
    return [(tick, SimpleNamespace(**json.loads(body))) for tick, target, body in machine.renamed if target == path]


def entries_when_named(machine: Machine, file: File, path: str, mark: Any) -> list[tuple[Any, ...]] | None:
    """Return the entries that were durable in a file before the mark `path` came to name the last of them; or None.

    What counts is the end of a transaction: the file forced, and the removal of its journal forced. It must have come
    before the mark was renamed into its place, and it must hold the very entry that the mark names.
    """
    renamed = [tick for tick, other in marks_of(machine, path) if (other.seq, other.hash) == (mark.seq, mark.hash)]
    for tick, body in reversed(file.committed):
        if renamed and tick <= renamed[0]:
            copy = Disk()
            copy.put("/looked-at", body)
            entries = entries_of(copy, "/looked-at")
            if named(entries, mark):
                return entries
    return None


def durable_entries(disk: Disk, path: str, file: File) -> list[tuple[Any, ...]]:
    """Return the entries of a file as they would be after a power cut now."""
    copy = Disk()
    copy.directories = disk.directories
    copy.put("/looked-at", file.durable)
    journal = disk.durable_names.get(path + "-journal")
    if journal is not None and not (journal.foreign and disk.durable_names.get(path) is not file):
        copy.put("/looked-at-journal", journal.durable)
    return entries_of(copy, "/looked-at")


def entries_of(disk: Disk, path: str) -> list[tuple[Any, ...]]:
    try:
        return sqlite.look(disk, path, _ENTRIES)
    except Exception as error:  # whatever SQLite says of a file that it cannot make sense of
        raise Violated(DURABLE, f"what is on the disk cannot be read: {error}") from None
