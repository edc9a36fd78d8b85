"""The one release: begun by a custodian's form, carried out once, told on fixed steps of the clock.

note on disk -> ledger reserves -> records are read, noise is added -> ledger keeps the answer -> file -> note

How long a release takes depends on the records, so that its end is told only at fixed times after its start, whether it
succeeded or not. A failure after the reservation has one constant sentence. A studio that was killed in between leaves
a note without an end; then the ledger says whether the budget was reserved, and whether an answer is there.
"""

from __future__ import annotations

import contextvars
import math
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fogline.ledger import Ledger, LedgerRefused, ReleaseFailed
from fogline.studio.catalogue import Catalogue
from fogline.studio.config import Dataset
from fogline.studio.questions import Question
from fogline.studio.store import Store, WorkNote, now_text

__all__ = ["FAILED", "Outcome", "Releasing", "time_to_tell"]

FAILED = "The release did not end well. Why is not said, since that may depend on the records."

REFUSALS = {
    "budget": "The budget does not allow it: less is left than this release would cost.",
    "unit": "The data set is accounted for another unit of protection than this question asks for.",
    "analyst": "The ledger wants to know which analyst asks; the studio asks for none.",
    "source": "The ledger knows this data set from another place. The administrator can declare a new version.",
    "edition": "The question was answered by an earlier edition of the mechanism. The answer is in the ledger.",
    "disk": "There is no room on the disk for the answer.",
    "certified": "A ledger pays for certified releases only.",
}
"""What a ledger refuses, in words that hold no path."""

OTHER_REFUSAL = "The ledger refused. The administrator can look at it with fogline ledger verify."
WRONG = "The question does not fit the data set. Look at its columns, ranges and unit."

Ending = Literal["answered", "reserved", "nothing"]


def time_to_tell(elapsed: float, steps: Sequence[float]) -> float:
    """The first step of the clock at or after some seconds; beyond the last one, every last step's length.

    Examples
    --------
    >>> [time_to_tell(seconds, (2.0, 5.0, 60.0)) for seconds in (0.3, 2.5, 61.0)]
    [2.0, 5.0, 120.0]
    """
    return next((step for step in steps if elapsed <= step), math.ceil(elapsed / steps[-1]) * steps[-1])


@dataclass(frozen=True)
class Outcome:
    """What may be told of a release on its way.

    Parameters
    ----------
    note : WorkNote
    told : bool
        Whether its end may be told.
    elapsed, next_step : float
        Seconds since its start, and at which its end may be told at the earliest.
    ending : {"answered", "reserved", "nothing"} or None
        Of a release without an end: what the ledger says.
    """

    note: WorkNote
    told: bool
    elapsed: float = 0.0
    next_step: float = 0.0
    ending: Ending | None = None


@dataclass
class _Running:
    dataset: str
    entries: int
    began: float
    ended: float | None = None
    release: str | None = None


class Releasing:
    """Releases of a studio, one at a time.

    Parameters
    ----------
    ledger : Ledger
    catalogue : Catalogue
    store : Store
    steps : sequence of float
        Seconds at which the end of a release may be told.
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        ledger: Ledger,
        catalogue: Catalogue,
        store: Store,
        steps: Sequence[float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger, self._catalogue, self._store = ledger, catalogue, store
        self._steps, self._clock = tuple(steps), clock
        self._turn = threading.Lock()
        self._known: dict[str, _Running] = {}
        self.threads: list[threading.Thread] = []

    def begin(
        self,
        dataset: Dataset,
        question: Question,
        *,
        neighbours: str,
        proposal: str | None = None,
        after: Callable[[str], None] = lambda _: None,
    ) -> WorkNote:
        """Begin a release, and return the note of it.

        Parameters
        ----------
        dataset : Dataset
        question : Question
        neighbours : str
            Relation of the data set in the ledger.
        proposal : str, optional
            That it answers.
        after : callable
            Told the id of the release, for what may be prepared.
        """
        # what comes after these is this release's, should the studio stop before its end
        entries = len(self._ledger.history())
        note = WorkNote(secrets.token_hex(8), question, now_text(), entries, proposal=proposal)
        # on the disk before anything begins: after a crash the page still knows of it
        self._store.put_note(note)
        self._known[note.id] = _Running(question.dataset, entries, self._clock())
        # Whoever set a noise provider for this task means this release as well.
        context = contextvars.copy_context()
        run = threading.Thread(
            target=context.run, args=(self._carry_out, dataset, note, neighbours, after), name="fogline-release"
        )
        self.threads.append(run)
        run.start()
        return note

    def _carry_out(self, dataset: Dataset, note: WorkNote, neighbours: str, after: Callable[[str], None]) -> None:
        with self._turn:
            ended = self._release(dataset, note, neighbours)
        self._store.put_note(ended)
        # the end is told at the next step of the clock, since how long it took depends on the records
        self._known[note.id].ended = self._clock()
        if ended.release is not None:
            if note.proposal is not None:
                self._store.settle(note.proposal, "accepted", release=ended.release)
            after(ended.release)

    def _release(self, dataset: Dataset, note: WorkNote, neighbours: str) -> WorkNote:
        """Release once. Every way in which it can end is one of a few constants."""
        import fogline

        question = note.question
        try:
            source = self._catalogue.source(dataset, question.names, question.unit, question.reading)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning may depend on the records
                density = fogline.release(
                    source,
                    columns=question.names,
                    bounds=question.bounds,
                    steps=question.steps,
                    epsilon=question.epsilon,
                    delta=0.0,
                    max_contributions=question.max_contributions,
                    neighbours=neighbours,
                    expect_records=dataset.expect_records,
                    ledger=self._ledger.on(dataset.account),
                )
            stored = self._store.add_release(question, dataset.title, density, hide=self._hider(note.id))
        except LedgerRefused as error:
            return replace(note, state="refused", reason=REFUSALS.get(error.check, OTHER_REFUSAL))
        except ReleaseFailed:
            return replace(note, state="failed")
        except (ValueError, TypeError, ImportError):  # raised before anything is reserved
            return replace(note, state="refused", reason=WRONG)
        except Exception:
            return replace(note, state="failed")
        return replace(note, state="done", release=stored.id)

    def outcome(self, name: str, account: Callable[[str], str]) -> Outcome | None:
        """Return what may be told of a release by now.

        Parameters
        ----------
        name : str
            Of the note.
        account : callable
            Gives the ledger's name of a data set.
        """
        note = self._store.note(name)
        if note is None:
            return None
        run = self._known.get(name)
        if run is None:  # of a studio that was stopped
            ending = None if note.state in ("done", "refused") else self._ending(note, account)
            return Outcome(note, told=True, ending=ending)
        elapsed = self._clock() - run.began
        if self._is_told(run):
            ending = self._ending(note, account) if note.state == "failed" else None
            return Outcome(note, told=True, elapsed=elapsed, ending=ending)
        # a note that has ended is shown as running until it may be told
        waiting = replace(note, state="running", release=None, reason="")
        return Outcome(waiting, told=False, elapsed=elapsed, next_step=time_to_tell(elapsed, self._steps))

    def _ending(self, note: WorkNote, account: Callable[[str], str]) -> Ending:
        """What the ledger says of a release that did not end: its reservation, and whether an answer stands there."""
        history = self._ledger.history()
        answered = {entry.content["reserve"] for entry in history if entry.kind == "commit"}
        name, question = account(note.question.dataset), note.question
        for entry in history:
            if entry.seq < note.entries or entry.kind != "reserve":
                continue
            asked_of = entry.content["asked"]
            told = asked_of["parameters"]
            # by what was asked: a studio that was stopped never learnt the number of its entry
            same = asked_of["dataset"] == name and told.get("epsilon") == question.epsilon
            if same and list(told.get("columns") or question.names) == question.names:
                return "answered" if entry.seq in answered else "reserved"
        return "nothing"

    def _hider(self, note: str) -> Callable[[str], None]:
        """Take a release as not yet told before it is in any list."""

        def hide(release: str) -> None:
            self._known[note].release = release

        return hide

    def _is_told(self, run: _Running) -> bool:
        """Whether the end of a release may be told by now."""
        return run.ended is not None and self._clock() >= run.began + time_to_tell(run.ended - run.began, self._steps)

    def untold(self) -> frozenset[str]:
        """Releases that are made and may not be seen yet, wherever they would be listed."""
        return frozenset(run.release for run in list(self._known.values()) if run.release and not self._is_told(run))

    def first_untold_entry(self, dataset: str) -> int | None:
        """From which entry on the ledger must not yet be told to have answered a data set; None where it may."""
        found = [run.entries for run in list(self._known.values()) if run.dataset == dataset and not self._is_told(run)]
        return min(found, default=None)

    def unfinished(self, account: Callable[[str], str]) -> list[Outcome]:
        """Releases of a studio that was stopped before their end was written."""
        names = [note.id for note in self._store.notes() if note.state == "running" and note.id not in self._known]
        return [found for name in names if (found := self.outcome(name, account)) is not None]

    def busy(self) -> bool:
        """Whether a release is on its way."""
        return any(run.ended is None for run in self._known.values())

    def finish(self) -> None:
        """Wait for what was begun."""
        for run in self.threads:
            run.join()
