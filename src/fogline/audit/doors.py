r"""Two doors for an audit: one keeps what passes through it, the other plays it back.

`RecordingDoor` stands before another door. Of every use of a mechanism it keeps the public `Call`, the exact
value, the answer, and what noise was drawn; of every auxiliary generator its seed.

`ReplayingDoor` gives a second run, on a neighbour, the answers of the first. It checks that the calls are the
same, in the same order, and that the exact values :math:`q(D)` and :math:`q(D')` satisfy

.. math:: \lVert q(D) - q(D') \rVert \le \Delta

in the norm and with the sensitivity that the call declares. The distance is computed in rational numbers.

Both doors also give a mechanism its recorded draws again. Its answer to the recorded exact value must then be the
recorded answer, in the first run and in the second: noise from elsewhere, or data that a mechanism's code holds on to,
would show. The law of the noise is checked for each kind of event: see `fogline.audit.noise_laws`.

Neither door can certify: both say so with the same `AUDITED`, so that two guarantees made behind them can be
compared field by field, and a guarantee that would be certified behind the system's door gives this reason
and no other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fogline.audit.noise_laws import noise_failures
from fogline.audit.steps import (
    Draw,
    DrawsDiffer,
    GeneratorStep,
    MechanismStep,
    RecordedSource,
    SourceSpy,
    Step,
    same_values,
)
from fogline.mechanisms.entropy import Call, Door, Query, Sample, Source
from fogline.testing import SeededDoor, SeededSource

__all__ = [
    "AUDITED",
    "Diverged",
    "Draw",
    "GeneratorStep",
    "MechanismStep",
    "RecordingDoor",
    "ReplayingDoor",
    "Step",
    "sensitivity_ratio",
]

AUDITED = "the noise was recorded for an audit"
"""The one reason that guarantees made behind these doors give."""


class Diverged(RuntimeError):
    """The second run asked for something that the first did not; the door has noted what."""


S = TypeVar("S", MechanismStep, GeneratorStep)


class RecordingDoor:
    """Keep everything that passes to and from another door.

    Parameters
    ----------
    door : Door, optional
        Who answers; by default a seeded one.

    Attributes
    ----------
    steps : list of Step
    failures : list of str
        Breaches of the door's contract, such as a query that was asked twice, in words.

    Examples
    --------
    >>> from fogline.mechanisms import add_gaussian, use_door
    >>> with use_door(RecordingDoor(SeededDoor(1))) as door:
    ...     release = add_gaussian(lambda: np.array([5, 7]), size=2, sensitivity=1, rho=0.5)
    >>> door.steps[0].call.mechanism, door.steps[0].exact.tolist()
    ('gaussian', [5, 7])
    >>> bool((door.steps[0].answer == release.values).all())
    True
    """

    certified = False
    reason = AUDITED

    def __init__(self, door: Door | None = None) -> None:
        self._door = SeededDoor(0) if door is None else door
        self.steps: list[Step] = []
        self.failures: list[str] = []

    def answer(self, call: Call, query: Query, sample: Sample) -> NDArray[Any]:
        """Return the inner door's answer and keep it with the exact value."""
        asked: list[NDArray[Any]] = []
        spies: list[SourceSpy] = []

        def kept() -> NDArray[Any]:
            value = np.asarray(query())
            asked.append(value.copy())
            return value

        def spied(source: Source) -> Callable[[NDArray[Any]], NDArray[Any]]:
            spies.append(SourceSpy(source))
            return sample(spies[-1])

        answer = self._door.answer(call, kept, spied)
        if len(asked) != 1:
            self.failures.append(f"{call.mechanism}: the exact query was asked {len(asked)} times, not once")
        exact = asked[0] if asked else np.zeros(0, dtype=np.int64)
        draws = tuple(draw for spy in spies for draw in spy.draws)
        step = MechanismStep(call, exact, np.asarray(answer).copy(), draws, sample)
        self.steps.append(step)
        self.failures.extend(noise_failures(step))
        self.failures.extend(_repeat_failures(step, sample))
        if _shows_more(answer):
            self.failures.append(
                f"{call.mechanism}: the answer is a view of something larger, which can be read through it"
            )
        return step.answer.copy()  # as the replaying door does, so that both runs hold the same memory

    def generator(self, purpose: str) -> np.random.Generator:
        """Return a generator whose seed is kept."""
        seed = int.from_bytes(self._door.generator(purpose).bytes(16))
        self.steps.append(GeneratorStep(purpose, seed))
        return np.random.default_rng(seed)


class ReplayingDoor:
    """Give a run on a neighbour the answers of a recorded run, and check that it asks the same.

    Parameters
    ----------
    steps : sequence of Step
        As recorded.

    Attributes
    ----------
    failures : list of str
        In words, without any value of the data.
    ratios : list of float
        For each use of a mechanism, the distance of the exact values over the declared sensitivity.

    Examples
    --------
    >>> from fogline.mechanisms import add_laplace, use_door
    >>> def release(count):
    ...     return add_laplace(lambda: np.array([count]), size=1, sensitivity=2, epsilon=1.0).values
    >>> with use_door(RecordingDoor()) as first:
    ...     published = release(10)
    >>> with use_door(ReplayingDoor(first.steps)) as second:
    ...     bool(release(11) == published), second.ratios
    (True, [0.5])
    """

    certified = False
    reason = AUDITED

    def __init__(self, steps: list[Step]) -> None:
        self._steps = list(steps)
        self._next = 0
        self.failures: list[str] = []
        self.ratios: list[float] = []

    def answer(self, call: Call, query: Query, sample: Sample) -> NDArray[Any]:
        """Return the recorded answer, after comparing the call and the exact value."""
        step = self._expect(MechanismStep, f"a {call.mechanism} mechanism")
        if call != step.call:
            different = [f.name for f in fields(Call) if getattr(call, f.name) != getattr(step.call, f.name)]
            raise self._diverged(f"the {step.call.mechanism} call differs in {', '.join(different)}")
        # The noise of the second run is thrown away, but whatever drawing or adding it raises must show.
        finish = sample(SeededSource(np.random.default_rng(self._next)))
        exact = np.asarray(query())
        compared = exact.copy()
        finish(exact)
        self.failures.extend(_repeat_failures(step, sample))
        ratio, fault = sensitivity_ratio(call, step.exact, compared)
        self.ratios.append(ratio)
        if fault:
            self.failures.append(f"{call.mechanism}: {fault}")
        return step.answer.copy()

    def generator(self, purpose: str) -> np.random.Generator:
        """Return the generator that the first run had at this place."""
        step = self._expect(GeneratorStep, f"a generator for {purpose!r}")
        if step.purpose != purpose:
            raise self._diverged("an auxiliary generator is for another purpose")
        return np.random.default_rng(step.seed)

    def finished(self) -> None:
        """Note it if the first run had asked for more."""
        missing = len(self._steps) - self._next
        if missing:
            self.failures.append(f"the second run ended {missing} calls before the first")

    def _expect(self, kind: type[S], wanted: str) -> S:
        step = self._steps[self._next] if self._next < len(self._steps) else None
        self._next += 1
        if isinstance(step, kind):
            return step
        raise self._diverged(f"call {self._next} of the second run is {wanted}, which the first run did not ask for")

    def _diverged(self, what: str) -> Diverged:
        self.failures.append(what)
        return Diverged(what)


def _shows_more(answer: Any) -> bool:
    """Say whether an array is a view of memory that holds more than the array itself."""
    base = getattr(answer, "base", None)
    while base is not None:
        if not isinstance(base, np.ndarray) or base.nbytes > answer.nbytes:
            return True
        base = base.base
    return False


def _repeat_failures(step: MechanismStep, sample: Sample) -> list[str]:
    """Say where an answer is no function of the exact value and of the recorded draws."""
    source = RecordedSource(step.draws)
    name = step.call.mechanism
    try:
        again = np.asarray(sample(source)(step.exact.copy()))
    except DrawsDiffer:
        return [f"{name}: with the same draws and the same exact value it draws other noise"]
    except Exception as error:
        return [f"{name}: with the same draws and the same exact value it raised {type(error).__name__}"]
    if not source.used_up or not same_values(again, step.answer):
        return [f"{name}: the same draws and the same exact value do not give the same answer"]
    return []


def sensitivity_ratio(call: Call, first: NDArray[Any], second: NDArray[Any]) -> tuple[float, str]:
    """Return the distance of two exact values over the declared sensitivity, and what is wrong, if anything.

    Integers are compared as integers, floats as the rational numbers they are. Two columns of objects are
    (key, count) rows, where a missing key counts 0. For a choice by utilities a value that is not finite
    counts as the lowest float, as in `fogline.mechanisms.choose`.

    Examples
    --------
    >>> from fogline.accounting.events import GaussianEvent
    >>> call = Call("gaussian", (), 5.0, "l2", GaussianEvent(5.0, 10.0))
    >>> sensitivity_ratio(call, np.array([0, 0]), np.array([3, 4]))
    (1.0, '')
    >>> sensitivity_ratio(call, np.array([0, 0]), np.array([6, 8]))
    (2.0, 'the exact values are 2 times the declared sensitivity apart')
    """
    if first.dtype == object or second.dtype == object:
        moves = _key_moves(first, second)
    elif first.shape != second.shape:
        return float("inf"), "the exact values differ in shape"
    else:
        lowest = call.mechanism == "exponential"
        pairs = zip(_rational(first, lowest), _rational(second, lowest), strict=True)
        moves = [abs(a - b) if a is not None and b is not None else None for a, b in pairs]
    if any(move is None for move in moves):
        return float("inf"), "an exact value is not finite"
    distances = [Fraction(move) for move in moves if move]
    declared = Fraction(call.sensitivity)
    if call.norm == "l2":
        square = sum((move**2 for move in distances), Fraction(0)) / declared**2
        ratio, within = float(square) ** 0.5, square <= 1
    else:
        total = sum(distances, Fraction(0)) if call.norm == "l1" else max(distances, default=Fraction(0))
        ratio, within = float(total / declared), total <= declared
    fault = "" if within else f"the exact values are {ratio:.6g} times the declared sensitivity apart"
    return ratio, fault


def _key_moves(first: NDArray[Any], second: NDArray[Any]) -> list[Any]:
    before, after = dict(first.tolist()), dict(second.tolist())
    return [abs(int(before.get(key, 0)) - int(after.get(key, 0))) for key in {**before, **after}]


def _rational(values: NDArray[Any], lowest: bool) -> list[Any]:
    """Return exact numbers, None for what is not finite."""
    flat = values.ravel()
    if flat.dtype.kind in "iub":
        return [int(value) for value in flat.tolist()]
    if lowest:
        flat = np.where(np.isfinite(flat), flat, np.finfo(flat.dtype).min)
    return [Fraction(value) if np.isfinite(value) else None for value in flat.tolist()]
