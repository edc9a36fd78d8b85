"""The seven steps of one question, in their order. Read `spend` from top to bottom."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from fogline._validation import Neighbours, check_count, check_neighbours
from fogline.ledger.charges import AnyCost, Charge
from fogline.ledger.founding import check_file_limit
from fogline.ledger.locks import question_lock
from fogline.ledger.question import Question
from fogline.ledger.receipts import Answer, Receipt
from fogline.ledger.refusals import LedgerRefused, ReleaseFailed
from fogline.ledger.room import Room
from fogline.ledger.session import MarkFailed, Session
from fogline.ledger.steps import reached
from fogline.ledger.store import Store, StoreFailed
from fogline.ledger.tallies import Place
from fogline.mechanisms.entropy import door_reason

__all__ = ["Desk", "Request", "receipt_at", "spend"]

_MOST_PAYLOAD = 2**29
_releasing = threading.local()
os.register_at_fork(after_in_child=lambda: setattr(_releasing, "now", False))


@dataclass(frozen=True)
class Request:
    """A question with all that its payment depends on."""

    question: Question
    charge: Charge
    neighbours: Neighbours
    analyst: str | None
    partition: tuple[str, str] | None
    max_payload: int
    fingerprint: str

    @classmethod
    def checked(
        cls,
        question: Question,
        cost: AnyCost,
        neighbours: str,
        certified: bool,
        analyst: str | None,
        partition: tuple[str, str] | None,
        max_payload: int,
    ) -> Request:
        """Return a request of which everything was checked that needs no file."""
        if not isinstance(question, Question):
            raise TypeError(f"question must be a Question, got {type(question).__name__}")
        if certified is not True:
            raise LedgerRefused("certified", "a ledger pays for certified releases only, and this is not one")
        reason = door_reason()
        if reason:
            raise LedgerRefused("certified", f"a ledger pays for certified releases only: {reason}")
        if getattr(_releasing, "now", False):
            raise LedgerRefused("nested", "a release may not spend from a ledger")
        place = None if partition is None else _part(partition)
        size = check_count(max_payload, "max_payload")
        if size > _MOST_PAYLOAD:
            raise ValueError(f"max_payload must be at most {_MOST_PAYLOAD}")
        relation, charge = check_neighbours(neighbours), Charge.of(cost)
        return cls(question, charge, relation, analyst, place, size, question.within(place))

    @property
    def room(self) -> int:
        """Bytes to keep free for storing the answer: its pages, those above them, and the journal of the change."""
        return self.max_payload + self.max_payload // 8 + 2**17


@dataclass(frozen=True)
class Desk:
    """Where requests are served: an open ledger, the directory of its locks, and room for answers."""

    session: Session
    locks: Path
    room: Room


Failure = Literal["failed", "interrupted"]


def spend(desk: Desk, request: Request, release: Callable[[], bytes]) -> Answer:
    """Answer a request, from the ledger or by `release`; see `Ledger.spend`."""
    if not callable(release):
        raise TypeError("release must be callable")
    _ = desk.session.store  # a dead or closed handle is refused before anything else
    reached("validated")
    try:
        with question_lock(desk.locks, request.fingerprint):
            reached("locked")
            outcome = _answer(desk, request, release)
    except OSError as error:
        raise LedgerRefused("disk", f"the question cannot be locked: {_reason(error)}") from None
    finally:
        del release  # an error's traceback must not lead to the data
    reached("unlocked")
    if isinstance(outcome, Answer):
        return outcome
    if outcome == "interrupted":
        raise KeyboardInterrupt
    raise ReleaseFailed from None


def _answer(desk: Desk, request: Request, release: Callable[[], bytes]) -> Answer | Failure:
    """Reserve, release, commit. Raises only while nothing is charged."""
    try:
        check_file_limit(desk.session.path, request.room)
        desk.room.take(request.room)
    except OSError as error:
        raise LedgerRefused("disk", f"there is no room for the answer: {_reason(error)}") from None
    try:
        reached("room made")
        reserved = desk.session.write("reserve", lambda: _reserve(desk.session, request))
        if isinstance(reserved, Answer):
            return reserved
        return _carry_out(desk, request, reserved, release)
    except StoreFailed as error:
        raise LedgerRefused("file", f"the reservation cannot be written: {error}") from None
    except MarkFailed:
        return "failed"
    finally:
        desk.room.give_back(request.room)


def _reserve(session: Session, request: Request) -> Answer | int:
    """Return the cached answer, or append a reservation and return its number. Runs in a transaction."""
    question, books = request.question, session.books
    dataset = books.dataset(question.dataset)
    if request.analyst is not None:
        books.analyst(request.analyst)
    if request.neighbours != dataset.neighbours:
        message = f"data set {question.dataset!r} is accounted under {dataset.neighbours!r}, not {request.neighbours!r}"
        raise LedgerRefused("neighbours", message)
    if question.version not in dataset.versions:
        raise LedgerRefused("version", f"data set {question.dataset!r} has no version {question.version!r}")
    if request.partition is not None and request.partition[1] not in dataset.partitions.get(request.partition[0], ()):
        raise LedgerRefused("partition", f"no partition {request.partition[0]!r} with that part was declared")
    standing = session.store.answer_seq(request.fingerprint)
    if standing is not None:
        return _cached(session, request, standing)
    if question.version != dataset.versions[-1]:
        raise LedgerRefused("version", f"version {question.version!r} was replaced by {dataset.versions[-1]!r}")
    content = {
        "kind": "reserve",
        "question": request.fingerprint,
        "asked": question.to_dict(),
        "currency": request.charge.currency,
        "amount": request.charge.amount,
        "delta": request.charge.delta,
        "analyst": request.analyst,
        "partition": None if request.partition is None else list(request.partition),
    }
    place = Place(question.dataset, dataset.neighbours, request.partition)
    return session.append(books.reservation(request.charge, place, request.analyst, content))


def _cached(session: Session, request: Request, standing: int) -> Answer:
    answer = _held(session.store, standing, session.ledger, cached=True)
    paid = (answer.receipt.currency, answer.receipt.amount, answer.receipt.delta)
    if paid != (request.charge.currency, request.charge.amount, request.charge.delta):
        raise LedgerRefused("cost", "this question was answered at another cost: its parameters must say all of it")
    return answer


def _carry_out(desk: Desk, request: Request, reserved: int, release: Callable[[], bytes]) -> Answer | Failure:
    """Call the release and store what it returns. Says nothing about what went wrong, if anything did."""
    try:
        _releasing.now = True
        try:
            payload = release()
        finally:
            _releasing.now = False
        if type(payload) is not bytes or len(payload) > request.max_payload:
            return "failed"
        reached("released")
        try:
            return desk.session.write("commit", lambda: _commit(desk.session, request, reserved, payload))
        except (StoreFailed, MarkFailed):
            desk.room.release()  # the disk may be full: this is what the room was kept for
            return desk.session.write("commit", lambda: _commit(desk.session, request, reserved, payload))
    except KeyboardInterrupt:
        return "interrupted"
    except BaseException:
        return "failed"


def _commit(session: Session, request: Request, reserved: int, payload: bytes) -> Answer:
    """Append the answer and read it back. Runs in a transaction, and counts once that is on the disk."""
    standing = session.store.answer_seq(request.fingerprint)
    if standing is None:
        content = {
            "kind": "commit",
            "question": request.fingerprint,
            "reserve": reserved,
            "payload": sha256(payload).hexdigest(),
            "size": len(payload),
        }
        standing = session.append(content)
        session.store.append_payload(standing, payload)
    return _held(session.store, standing, session.ledger, cached=False)


def _held(store: Store, seq: int, ledger: str, *, cached: bool) -> Answer:
    """Return the answer that stands at an entry, all hashes checked."""
    receipt = receipt_at(store, seq, ledger)
    if receipt is None:
        raise LedgerRefused("chain", f"there is no answer at entry {seq} of the ledger")
    return Answer(store.payload(seq, receipt.payload), receipt, cached)


def receipt_at(store: Store, seq: int, ledger: str) -> Receipt | None:
    """Return the receipt of the answer at an entry; None if there is none."""
    found = store.entry(seq)
    commit = _content(found)
    if found is None or commit.get("kind") != "commit":
        return None
    reserve = _content(store.entry(commit["reserve"]))
    return Receipt(
        ledger=ledger,
        dataset=reserve["asked"]["dataset"],
        version=reserve["asked"]["version"],
        question=commit["question"],
        reserve=commit["reserve"],
        commit=seq,
        hash=found[1].hex(),
        payload=commit["payload"],
        currency=reserve["currency"],
        amount=reserve["amount"],
        delta=reserve["delta"],
    )


def _content(found: tuple[str, bytes] | None) -> dict[str, Any]:
    content: dict[str, Any] = {} if found is None else json.loads(found[0])
    return content


def _part(partition: object) -> tuple[str, str]:
    if isinstance(partition, tuple | list) and len(partition) == 2:
        name, part = partition
        if isinstance(name, str) and isinstance(part, str):
            return name, part
    raise TypeError("partition must be a pair (name, part) of texts")


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else "unknown"
