"""The seven steps of one question, in their order. Read `spend` from top to bottom."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from fogline._validation import Neighbours, check_count, check_neighbours
from fogline.ledger.accounts import Place
from fogline.ledger.caps import AnyCost, Charge
from fogline.ledger.disk import question_lock
from fogline.ledger.files import DiskReservation, check_file_limit
from fogline.ledger.question import LedgerRefused, Question, ReleaseFailed, kin_of
from fogline.ledger.receipts import Answer, PaidAnswer, Receipt
from fogline.ledger.session import MarkFailed, Session
from fogline.ledger.steps import reached
from fogline.ledger.store import Store, StoreFailed
from fogline.ledger.units import ProtectedUnit, check_asker, check_new, source_of
from fogline.mechanisms.randomness import provider_reason

__all__ = ["LedgerContext", "Request", "answer_at", "paid_answers", "receipt_at", "spend"]

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
    unit: ProtectedUnit | None
    gain_and_loss: bool
    also_reads: tuple[str, ...]
    kin: tuple[str, ...]
    """What the question is called, and was called in earlier versions, whichever edition answers."""
    fingerprint: str

    @classmethod
    def checked(
        cls,
        question: Question,
        *,
        cost: AnyCost,
        neighbours: str,
        certified: bool,
        analyst: str | None,
        partition: tuple[str, str] | None,
        max_payload: int,
        unit: ProtectedUnit | None,
        gain_and_loss: bool,
        also_reads: Sequence[str],
        formerly: Mapping[str, Any] | None,
    ) -> Request:
        """Return a request of which everything was checked that needs no file."""
        if not isinstance(question, Question):
            raise TypeError(f"question must be a Question, got {type(question).__name__}")
        # not truthy: a caller's 1 or "no" is not a statement
        if certified is not True:
            raise LedgerRefused("certified", "a ledger pays for certified releases only, and this is not one")
        reason = provider_reason()
        if reason:
            raise LedgerRefused("certified", f"a ledger pays for certified releases only: {reason}")
        if getattr(_releasing, "now", False):
            raise LedgerRefused("nested", "a release may not spend from a ledger")
        place = None if partition is None else _part(partition)
        size = check_count(max_payload, "max_payload")
        if size > _MOST_PAYLOAD:
            raise ValueError(f"max_payload must be at most {_MOST_PAYLOAD}")
        return cls(
            question=question,
            charge=Charge.of(cost),
            neighbours=check_neighbours(neighbours),
            analyst=analyst,
            partition=place,
            max_payload=size,
            unit=unit,
            gain_and_loss=gain_and_loss is True,
            also_reads=tuple(also_reads),
            kin=_all_kin(question, place, formerly or {}),
            fingerprint=question.within(place),
        )

    @property
    def disk_reservation(self) -> int:
        """Bytes to keep free for storing the answer: its pages, those above them, and the journal of the change."""
        return self.max_payload + self.max_payload // 8 + 2**17


@dataclass(frozen=True)
class LedgerContext:
    """Where requests are served: an open ledger, the directory of its locks, and room for answers."""

    session: Session
    locks: Path
    disk_reservation: DiskReservation


Failure = Literal["failed", "interrupted"]


def spend(context: LedgerContext, request: Request, release: Callable[[], bytes]) -> Answer:
    """Answer a request, from the ledger or by `release`; see `Ledger.spend`."""
    if not callable(release):
        raise TypeError("release must be callable")
    _ = context.session.store  # a dead or closed handle is refused before anything else
    reached("validated")
    try:
        # who asks the same at the same time waits, and then finds the answer
        with question_lock(context.locks, request.fingerprint):
            reached("locked")
            outcome = _answer(context, request, release)
    except OSError as error:
        raise LedgerRefused("disk", f"the question cannot be locked: {_reason(error)}") from None
    finally:
        del release  # an error's traceback must not lead to the data
    reached("unlocked")
    if isinstance(outcome, Answer):
        return outcome
    if outcome == "interrupted":
        raise KeyboardInterrupt
    # raised here, outside of every handler: no context leads back to what failed
    raise ReleaseFailed from None


def _answer(context: LedgerContext, request: Request, release: Callable[[], bytes]) -> Answer | Failure:
    """Reserve, release, commit. Raises only while nothing is charged."""
    try:
        check_file_limit(context.session.path, request.disk_reservation)
        context.disk_reservation.take(request.disk_reservation)
    except OSError as error:
        raise LedgerRefused("disk", f"there is no room for the answer: {_reason(error)}") from None
    try:
        reached("room made")
        reserved = context.session.write("reserve", lambda: _reserve(context.session, request))
        if isinstance(reserved, Answer):
            return reserved
        return _carry_out(context, request, reserved, release)
    except StoreFailed as error:
        raise LedgerRefused("file", f"the reservation cannot be written: {error}") from None
    except MarkFailed:
        return "failed"
    finally:
        context.disk_reservation.give_back(request.disk_reservation)


def _reserve(session: Session, request: Request) -> Answer | int:
    """Return the answer that is paid for, or append a reservation and return its number. Runs in a transaction."""
    question, accounts = request.question, session.accounts
    dataset = check_asker(accounts, request)
    standing = session.store.answer_seq(request.fingerprint)
    if standing is not None:
        return _cached(session, request, standing)
    paid = _paid_before(session, request, dataset.source)
    if paid is not None:
        return paid
    check_new(dataset, request)
    content = {
        "kind": "reserve",
        "question": request.fingerprint,
        "asked": question.to_dict(),
        "currency": request.charge.currency,
        "amount": request.charge.amount,
        "delta": request.charge.delta,
        "analyst": request.analyst,
        "partition": None if request.partition is None else list(request.partition),
        "unit": None if request.unit is None else request.unit.to_dict(),
    }
    place = Place(question.dataset, dataset.neighbours, request.partition)
    return session.append(accounts.reservation(request.charge, place, request.analyst, content))


def _cached(session: Session, request: Request, standing: int) -> Answer:
    answer = _held(session.store, standing, session.ledger, cached=True)
    paid = (answer.receipt.currency, answer.receipt.amount, answer.receipt.delta)
    # the same words at another price would be another promise under one answer
    if paid != (request.charge.currency, request.charge.amount, request.charge.delta):
        raise LedgerRefused("cost", "this question was answered at another cost: its parameters must say all of it")
    return answer


def _paid_before(session: Session, request: Request, known: str | None) -> Answer | None:
    """Return the answer to the same question as it was called earlier; refuse to charge for another edition unasked."""
    answered = session.accounts.answered
    own = source_of(request.question.parameters)
    kin = request.kin if known is None or own is None or known == own else request.kin[:2]
    stored = [seq for name in dict.fromkeys(kin) for seq in answered.get(name, [])]
    editions = {str(receipt_at(session.store, seq, session.ledger).code_version): seq for seq in stored}  # type: ignore[union-attr]
    if request.question.code_version in editions:
        return _cached(session, request, editions[request.question.code_version])
    readable = [name for name in request.also_reads if name in editions]
    if readable:
        return _held(session.store, editions[readable[0]], session.ledger, cached=True)
    if editions:
        edition, seq = max(editions.items(), key=lambda item: item[1])
        raise LedgerRefused(
            "edition",
            f"this was answered by {edition!r} and paid for: the answer is entry {seq} (Ledger.answers, fogline ledger"
            f" answers). Ask afresh (ledger.on(...).afresh(), --afresh) to pay for an answer by"
            f" {request.question.code_version!r}",
        )
    return None


def _all_kin(question: Question, place: tuple[str, str] | None, formerly: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a question is called now, by its former words, and both before questions had a source."""
    asked = question.to_dict()
    other = Question(**{**asked, "parameters": {**asked["parameters"], **formerly}}).to_dict()
    plain = [
        {**each, "parameters": {name: value for name, value in each["parameters"].items() if name != "source"}}
        for each in (asked, other)
    ]
    return (*(kin_of(each, place) for each in (asked, other)), *(kin_of(each, place, early=True) for each in plain))


def _carry_out(
    context: LedgerContext, request: Request, reserved: int, release: Callable[[], bytes]
) -> Answer | Failure:
    """Call the release and store what it returns. Says nothing about what went wrong, if anything did."""
    try:
        _releasing.now = True
        try:
            payload = release()
        finally:
            _releasing.now = False
        # room was made for so many bytes and no more
        if type(payload) is not bytes or len(payload) > request.max_payload:
            return "failed"
        reached("released")
        try:
            return context.session.write("commit", lambda: _commit(context.session, request, reserved, payload))
        except (StoreFailed, MarkFailed):
            context.disk_reservation.release()  # the disk may be full: this is what the room was kept for
            return context.session.write("commit", lambda: _commit(context.session, request, reserved, payload))
    except KeyboardInterrupt:
        return "interrupted"
    # whatever it is may speak of the records: one constant error stands for all
    except BaseException:
        return "failed"


def _commit(session: Session, request: Request, reserved: int, payload: bytes) -> Answer:
    """Append the answer and read it back. Runs in a transaction, and counts once that is on the disk."""
    # a first try that failed may have reached the disk all the same
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
    unit = ProtectedUnit.from_dict(reserve.get("unit"))
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
        mechanism=reserve["asked"]["mechanism"],
        code_version=reserve["asked"]["code_version"],
        unit=None if unit is None else unit.name,
        max_contributions=None if unit is None else unit.max_contributions,
        enforced=None if unit is None else unit.enforced,
    )


def answer_at(store: Store, seq: int, ledger: str) -> Answer:
    """Return the answer at an entry, all hashes checked; refuse where there is none."""
    return _held(store, seq, ledger, cached=True)


def paid_answers(store: Store, ledger: str, seqs: Iterable[int]) -> Iterator[PaidAnswer]:
    """Yield what is known of the answers at some entries."""
    for seq in seqs:
        receipt = receipt_at(store, seq, ledger)
        assert receipt is not None
        reserve = _content(store.entry(receipt.reserve))
        pair = reserve["partition"]
        yield PaidAnswer(Question(**reserve["asked"]), None if pair is None else (pair[0], pair[1]), receipt)


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
