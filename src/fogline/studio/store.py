"""Releases, proposals and notes of work on disk: public values only, in files of their owner alone.

A note of work is written before a release begins and again when it has ended. A note without an end is that of a studio
that was stopped in between; what became of it is in the ledger.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from fogline.density.private_density import PrivateDensity
from fogline.studio.questions import Question

__all__ = ["MOST_OPEN", "Proposal", "Store", "StoredRelease", "WorkNote", "now_text"]

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,60}[a-z0-9])?")
MOST_OPEN = 50
"""Most proposals that wait for an answer."""
MOST_OPENED = 2
"""Releases that stay in memory, as many as a comparison needs: draws of a posterior take some hundred megabytes, what
pages show of it does not, and is kept for longer."""

WorkState = Literal["running", "done", "failed", "refused"]
ProposalState = Literal["open", "accepted", "declined"]


def now_text() -> str:
    """The time, for people: UTC, to the second; pages show the minute."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")


@dataclass(frozen=True)
class StoredRelease:
    """What is known of a release besides its file.

    Parameters
    ----------
    id : str
    dataset : str
        Id of the data set.
    title : str
    question : Question
    date : str
    """

    id: str
    dataset: str
    title: str
    question: Question
    date: str


@dataclass(frozen=True)
class Proposal:
    """A question that an analyst asks a custodian to pay for."""

    id: str
    question: Question
    why: str
    date: str
    state: ProposalState = "open"
    reply: str = ""
    release: str | None = None


@dataclass(frozen=True)
class WorkNote:
    """One release on its way.

    Parameters
    ----------
    id : str
    question : Question
    date : str
    entries : int
        Entries of the ledger when it began.
    state : {"running", "done", "failed", "refused"}
    release : str or None
    reason : str
        Of a refusal: public words.
    proposal : str or None
    """

    id: str
    question: Question
    date: str
    entries: int
    state: WorkState = "running"
    release: str | None = None
    reason: str = ""
    proposal: str | None = None


@dataclass
class Store:
    """A folder of the studio.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    """

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _opened: dict[str, PrivateDensity] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in ("releases", "proposals", "work"):
            (self.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)

    # -- releases ---------------------------------------------------------------------------------------------

    def add_release(
        self,
        question: Question,
        title: str,
        density: PrivateDensity,
        *,
        hide: Callable[[str], None] = lambda _: None,
    ) -> StoredRelease:
        """Keep a release, and return what it is known as; `hide` is told its id before it is in any list."""
        words = re.sub(r"[^a-z0-9]+", "-", "-".join(question.names).lower()).strip("-")[:24].strip("-")
        # the drawn end keeps names apart; the words before it are for people
        name = "-".join(part for part in (question.dataset[:24].strip("-"), words, secrets.token_hex(3)) if part)
        hide(name)
        found = StoredRelease(name, question.dataset, title, question, now_text())
        # before the note of it: a list never names a file that is not there
        self._write("releases", f"{name}.fog", density.to_fog(date=found.date[:10]))
        self._write_json("releases", name, {**asdict(found), "question": question.to_dict()})
        self._keep(name, density)
        return found

    def _keep(self, name: str, density: PrivateDensity) -> PrivateDensity:
        """Keep a release in memory as the last one that was asked for; those before it go."""
        with self._lock:
            # taken out and put back: the last asked for is then the last to go
            found = self._opened.pop(name, density)
            self._opened[name] = found
            while len(self._opened) > MOST_OPENED:
                self._opened.pop(next(iter(self._opened)))
            return found

    def releases(self) -> list[StoredRelease]:
        """All releases, newest first."""
        found = [self._release(values) for values in self._all("releases")]
        return sorted(found, key=lambda one: (one.date, one.id), reverse=True)

    def release(self, name: str) -> StoredRelease | None:
        """One release, by its id."""
        values = self._read("releases", name)
        return None if values is None else self._release(values)

    def density(self, name: str) -> PrivateDensity:
        """The released numbers; opened files stay in memory, with what was read from them."""
        known = self._opened.get(name)
        if known is None:
            known = PrivateDensity.load(self._place("releases", f"{name}.fog"))
        return self._keep(name, known)

    def file(self, name: str) -> bytes:
        """The file of a release."""
        return self._place("releases", f"{name}.fog").read_bytes()

    @staticmethod
    def _release(values: Mapping[str, Any]) -> StoredRelease:
        return StoredRelease(**{**values, "question": Question.from_dict(values["question"])})

    # -- proposals --------------------------------------------------------------------------------------------

    def propose(self, question: Question, why: str) -> Proposal | None:
        """Keep a proposal; None where too many wait already."""
        with self._lock:
            # counted under the lock: else many at once could all pass
            if sum(1 for one in self.proposals() if one.state == "open") >= MOST_OPEN:
                return None
            found = Proposal(secrets.token_hex(6), question, why, now_text())
            self._put_proposal(found)
        return found

    def proposals(self) -> list[Proposal]:
        """All proposals, newest first."""
        found = [self._proposal(values) for values in self._all("proposals")]
        return sorted(found, key=lambda one: (one.date, one.id), reverse=True)

    def proposal(self, name: str) -> Proposal | None:
        """One proposal, by its id."""
        values = self._read("proposals", name)
        return None if values is None else self._proposal(values)

    def settle(self, name: str, state: ProposalState, *, reply: str = "", release: str | None = None) -> None:
        """Write what became of a proposal."""
        found = self.proposal(name)
        # settled once: a second click must not change what the first decided
        if found is not None and found.state == "open":
            self._put_proposal(replace(found, state=state, reply=reply, release=release))

    def _put_proposal(self, proposal: Proposal) -> None:
        self._write_json("proposals", proposal.id, {**asdict(proposal), "question": proposal.question.to_dict()})

    @staticmethod
    def _proposal(values: Mapping[str, Any]) -> Proposal:
        return Proposal(**{**values, "question": Question.from_dict(values["question"])})

    # -- work -------------------------------------------------------------------------------------------------

    def put_note(self, note: WorkNote) -> None:
        """Write a note, on the disk before this returns."""
        self._write_json("work", note.id, {**asdict(note), "question": note.question.to_dict()})

    def notes(self) -> list[WorkNote]:
        """All notes, newest first."""
        found = [self._note(values) for values in self._all("work")]
        return sorted(found, key=lambda one: (one.date, one.id), reverse=True)

    def note(self, name: str) -> WorkNote | None:
        """One note, by its id."""
        values = self._read("work", name)
        return None if values is None else self._note(values)

    @staticmethod
    def _note(values: Mapping[str, Any]) -> WorkNote:
        return WorkNote(**{**values, "question": Question.from_dict(values["question"])})

    # -- files ------------------------------------------------------------------------------------------------

    def _place(self, kind: str, file: str) -> Path:
        return self.folder / kind / file

    def _all(self, kind: str) -> list[dict[str, Any]]:
        names = sorted(path.stem for path in (self.folder / kind).glob("*.json"))
        return [values for name in names if (values := self._read(kind, name)) is not None]

    def _read(self, kind: str, name: str) -> dict[str, Any] | None:
        if not NAME.fullmatch(name):  # it comes from an address
            return None
        try:
            values: dict[str, Any] = json.loads(self._place(kind, f"{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return values

    def _write_json(self, kind: str, name: str, values: Mapping[str, Any]) -> None:
        text = json.dumps(values, ensure_ascii=False, allow_nan=False, indent=1)
        self._write(kind, f"{name}.json", text.encode())

    def _write(self, kind: str, file: str, content: bytes) -> None:
        """Write in one step: readers see the old file or the new one."""
        target = self._place(kind, file)
        draft = target.with_name(f".{file}.{secrets.token_hex(4)}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        # one step: who reads meanwhile sees the old content or the new
        os.replace(draft, target)
