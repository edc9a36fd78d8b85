"""What happens in a run, drawn from its seed: what the processes do, and what befalls them.

A plan is a list of items, so that a failing one can be shrunk by leaving items out. Its family says what the run is
about, and so what may be expected of it:

- "crashes": processes are killed, the power fails, the disk fills up or fails, the clock is set back. All that was
  acknowledged must be there in the end, and nothing is refused that could be paid for.
- "copies": copies of the file are taken, and put beside the original or over it; the original is moved.
- "marks": the directory of marks is lost, put back from an old copy, or another one is used.
- "damage": a bit flips in the file or in its mark.

Crashes happen in all of them. Copies of the file and of the marks are never put back in one run: if both are of the
same moment, nothing on the machine remembers what came after, and nobody can tell.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.ledger.simulator.prices import LANES

FAMILIES = ("crashes", "copies", "marks", "damage")
SLOTS = 3
QUESTIONS = 6
_STEPS = (
    ("locked", 12),
    ("room made", 12),
    ("reserve begun", 12),
    ("reserve written", 10),
    ("reserve committed", 10),
    ("mark written", 14),
    ("mark renamed", 14),
    ("mark durable", 14),
    ("released", 8),
    ("commit begun", 8),
    ("commit written", 8),
    ("commit committed", 8),
    ("unlocked", 12),
    ("sync", 60),
    ("write", 100),
    ("rename", 14),
    ("delete", 20),
    ("open", 60),
    ("lock", 60),
)
"""Moments at which something may befall a process, and about how often they come in a run."""


@dataclass(frozen=True)
class Operation:
    """What a process is to do."""

    slot: int
    kind: str
    questions: tuple[int, ...] = ()
    which: str = ""
    retried: bool = False
    """Whether the next process takes it up again if this one dies over it."""

    def __str__(self) -> str:
        what = " and ".join(f"question {number}" for number in self.questions) or self.which
        return f"process {self.slot}: {self.kind} {what}".rstrip() + (" (taken up again)" if self.retried else "")


@dataclass(frozen=True)
class Event:
    """What befalls the processes: at the n-th moment of a kind."""

    moment: str
    count: int
    kind: str
    number: int = 0

    def __str__(self) -> str:
        return f"at {self.moment!r}, time {self.count}: {self.kind} ({self.number})"


@dataclass(frozen=True)
class Plan:
    """All that a run depends on."""

    seed: int
    family: str
    cap: int
    switching: float
    founding: bool
    """Whether the ledger is founded in the run, so that founding it can be interrupted."""
    cut_at_end: bool
    items: tuple[Operation | Event, ...] = field(repr=False)
    lane: str = "zcdp"
    """In which currencies its questions are paid for."""

    @property
    def operations(self) -> list[Operation]:
        return [item for item in self.items if isinstance(item, Operation)]

    @property
    def events(self) -> list[Event]:
        return [item for item in self.items if isinstance(item, Event)]


_EVENTS = {
    "crashes": (("kill", 5), ("kill another", 2), ("power", 4), ("full", 3), ("room", 2), ("sick", 2), ("clock", 2)),
    "copies": (
        ("copy", 3),
        ("copy beside", 3),
        ("beside", 3),
        ("over by rename", 3),
        ("over in place", 2),
        ("original back", 3),
        ("move", 2),
        ("kill", 2),
        ("power", 1),
    ),
    "marks": (("copy marks", 4), ("marks lost", 3), ("marks back", 4), ("kill", 3), ("power", 2)),
    "damage": (("flip file", 4), ("flip mark", 2), ("kill", 3), ("power", 2)),
}


def draw(seed: int, family: str | None = None) -> Plan:
    """Draw a plan."""
    rng = random.Random(f"plan {seed}")
    family = family or rng.choices(FAMILIES, (5, 5, 2, 2))[0]
    items: list[Operation | Event] = []
    for slot in range(rng.choice((2, 3, SLOTS))):
        which = "original" if slot == 0 or family in ("crashes", "damage") else rng.choice(("original", "other"))
        items.append(Operation(slot, "open", which=which))
        for _ in range(rng.randrange(1, 5)):
            items.append(_operation(rng, slot, family))
    kinds, weights = zip(*_EVENTS[family], strict=True)
    for _ in range(rng.randrange(1, 6)):
        items.append(_event(rng, rng.choices(kinds, weights)[0]))
    if family == "copies":
        items.append(_event(rng, "copy beside"))
    return Plan(
        seed=seed,
        family=family,
        cap=rng.randrange(2, 7),
        switching=rng.choice((0.01, 0.05, 0.2)),
        founding=family == "crashes" and rng.random() < 0.1,
        cut_at_end=rng.random() < 0.5,
        items=tuple(items),
        lane=rng.choice(LANES),
    )


def _operation(rng: random.Random, slot: int, family: str) -> Operation:
    kind = rng.choices(("ask", "ask at once", "open", "verify", "declare"), (12, 2, 2, 1, 1))[0]
    retried = rng.random() < 0.5
    if kind == "ask":
        return Operation(slot, kind, (rng.randrange(QUESTIONS),), retried=retried)
    if kind == "ask at once":
        return Operation(slot, kind, (rng.randrange(QUESTIONS), rng.randrange(QUESTIONS)), retried=retried)
    if kind == "open":
        which = "original" if family in ("crashes", "damage") else rng.choice(("original", "other", "other"))
        return Operation(slot, kind, which=which)
    return Operation(slot, kind)


def _event(rng: random.Random, kind: str) -> Event:
    moment, often = rng.choice(_STEPS)
    return Event(moment, rng.randrange(1, often + 1), kind, rng.randrange(1 << 16))
