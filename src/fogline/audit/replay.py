r"""Replay: the check that carries a claim.

Differential privacy of a composed algorithm has a simple form. Fix all randomness by fixing the *answers* of
the mechanisms. Then whatever the algorithm lets out must be a function of those answers: the same on a
neighbour, to the last bit. What remains to be private are the mechanisms themselves, and for them the exact
values of neighbours must lie within the sensitivity that was declared and charged for.

So, for a pair of neighbours :math:`D, D'`: fit on :math:`D` and keep every call of a mechanism with its
answer; fit on :math:`D'`, giving those answers. Required are

1. the same calls in the same order, with the same parameters, sensitivity, norm and event;
2. exact values within the declared sensitivity, in the declared norm, computed without rounding;
3. noise of the law and the scale that the event is charged for, whatever its kind, used as the event says;
4. the same observation: attributes, pickle, repr, logs, warnings, output, files and exceptions, and the state that is
   left behind: modules, classes, caches, environment, threads; nothing in the result that cannot be looked into;
5. a cost, summed over the calls, within the guarantee that the result states; and a guarantee that would be
   certified, had the noise not come from a door of an audit.

A fit that raises fails: with nothing released there is nothing to check, and no data set may be an error.
Running time is not compared.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone

from fogline._validation import Neighbours, check_neighbours
from fogline.accounting import zcdp
from fogline.accounting.costs import Cost, cost
from fogline.accounting.events import (
    AboveThresholdEvent,
    Event,
    ExponentialEvent,
    IntegralDrawEvent,
    LaplaceEvent,
    StableHistogramEvent,
)
from fogline.accounting.guarantee import Guarantee
from fogline.accounting.integral import IntegralGuarantee
from fogline.audit.canaries import Pair
from fogline.audit.doors import AUDITED, MechanismStep, RecordingDoor, ReplayingDoor, Step
from fogline.audit.noise_laws import pooled_failures
from fogline.audit.observation import differences, observe
from fogline.audit.surroundings import Surroundings, empty_caches, rewind
from fogline.mechanisms.entropy import Door, SystemDoor, use_door
from fogline.testing import SeededDoor

__all__ = ["PairReport", "RecordingDoor", "ReplayReport", "ReplayingDoor", "replay"]


_LOOKED_AT = 8
"""Pairs around which the state of the process is looked at; later ones only now and then."""

_NOW_AND_THEN = 16


@dataclass(frozen=True)
class PairReport:
    """What the replay of one pair showed.

    Attributes
    ----------
    name : str
    ratio : float
        The largest distance of exact values over the declared sensitivity; near 1 the declaration is tight.
    calls : int
        How many mechanisms were used.
    rho : float
        What they cost together.
    failures : tuple of str
        What was wrong, in words; empty if nothing.
    """

    name: str
    ratio: float
    calls: int
    rho: float
    failures: tuple[str, ...]


@dataclass(frozen=True)
class ReplayReport:
    """What a replay showed, pair by pair."""

    pairs: tuple[PairReport, ...]

    @property
    def passed(self) -> bool:
        """Whether there were pairs and none of them failed."""
        return bool(self.pairs) and not self.failures

    @property
    def failures(self) -> list[str]:
        """All failures, each with the name of its pair."""
        return [f"{pair.name}: {failure}" for pair in self.pairs for failure in pair.failures]

    @property
    def largest_ratio(self) -> float:
        """The largest ratio of distance to declared sensitivity over all pairs."""
        return max((pair.ratio for pair in self.pairs), default=0.0)

    def __str__(self) -> str:
        verdict = "passed" if self.passed else f"FAILED in {len(self.failures)} places"
        largest = f"largest ratio to sensitivity {self.largest_ratio:.6f}"
        heading = f"replay of {len(self.pairs)} pairs {verdict}; {largest}"
        return "\n".join([heading, *(f"  {failure}" for failure in self.failures)])


def replay(
    estimator: Any,
    pairs: Iterable[Pair],
    *,
    neighbours: str | None = None,
    claim: Guarantee | None = None,
    seed: int | None = 0,
    thorough: bool = False,
) -> ReplayReport:
    """Record a fit on each data set, replay it on its neighbour, and compare all that can be seen.

    Parameters
    ----------
    estimator : estimator or callable
        An object with ``fit`` (a clone is fitted each time), or any function of the data, such as one that
        makes a sketch and releases it. Not changed.
    pairs : iterable of Pair
        See `fogline.audit.canary_pairs`.
    neighbours : {"add-remove", "replace"}, optional
        The relation of the pairs; by default each pair says.
    claim : Guarantee, optional
        What the cost is compared with; by default the ``guarantee_`` or ``guarantee`` of the result. An
        estimator without any fails.
    seed : int or None
        Of the recorded noise. None: the operating system's entropy.
    thorough : bool
        Look at the state of the process around every pair, not only around the first eight and each sixteenth.

    Returns
    -------
    ReplayReport

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> from fogline.audit import canary_pairs
    >>> pairs = canary_pairs([(0, 10)], neighbours="add-remove", n=50)
    >>> report = replay(PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 10)], n_modes=1), pairs[:2])
    >>> report.passed, report.largest_ratio <= 1
    (True, True)
    >>> leaky = replay(lambda data: {"n": len(data)}, pairs[:1])
    >>> print(leaky)
    replay of 1 pairs FAILED in 3 places; largest ratio to sensitivity 0.000000
      empty and one record: result['n'] differs
      empty and one record: the pickle differs
      empty and one record: the repr or str differs
    """
    is_estimator = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    fit = (lambda data: clone(estimator).fit(data)) if is_estimator else estimator
    watched = tuple(base.__module__ for base in type(estimator).__mro__)
    audited = _Audited(fit, claim, is_estimator, watched)
    reports, steps, before = [], list[Step](), None
    for number, pair in enumerate(pairs):
        if number == 0:
            _warm_up(audited, pair)
        relation = check_neighbours(pair.neighbours if neighbours is None else neighbours)
        door: Door = SystemDoor() if seed is None else SeededDoor(_mixed(seed, number))
        recorder = RecordingDoor(door)
        look = thorough or number < _LOOKED_AT or number % _NOW_AND_THEN == 0
        report, before = _replay_pair(audited, pair, relation, recorder, before if look else None, look=look)
        reports.append(report)
        steps += recorder.steps
    wrong = pooled_failures(steps)
    if wrong:
        reports.append(PairReport("the noise of all pairs", 0.0, 0, 0.0, tuple(wrong)))
    return ReplayReport(tuple(reports))


def _warm_up(audited: _Audited, pair: Pair) -> None:
    """Let imports and compilation happen before anything is compared, and put back all other state.

    Garbage of earlier work goes first: collected between two looks, it would show as a difference.
    """
    gc.collect()
    with use_door(RecordingDoor()):
        seen = observe(audited.fit, pair.D, watched=audited.watched)
    if seen.before is not None:
        rewind(seen.before)
        empty_caches(seen.before)


@dataclass(frozen=True)
class _Audited:
    """What is audited, what it claims if that is told apart, and where its code is."""

    fit: Callable[[Any], Any]
    claim: Guarantee | None
    must_claim: bool
    watched: tuple[str, ...]


def _mixed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


def _replay_pair(
    audited: _Audited,
    pair: Pair,
    relation: Neighbours,
    recorder: RecordingDoor,
    before: Surroundings | None,
    *,
    look: bool,
) -> tuple[PairReport, Surroundings | None]:
    """Replay one pair; return what it showed and the last look at the process."""
    fit, claim = audited.fit, audited.claim
    if look and before is not None and empty_caches(before):
        before = None  # what was cached so far is no longer there: look again
    with use_door(recorder):
        first = observe(fit, pair.D, watched=audited.watched, before=before, look=look)
    player = ReplayingDoor(recorder.steps)
    if first.before is not None:
        rewind(first.before)
    with use_door(player):
        second = observe(fit, pair.D_prime, watched=audited.watched, before=first.before, look=look)
    if not player.failures:
        player.finished()
    found = [*recorder.failures, *player.failures, *differences(first, second)]
    if first.exception:
        found.append(f"the fit raised {first.exception[0][0]}")
    guarantee = _guarantee_of(first.result) if claim is None else claim
    spent = _total_cost(recorder.steps)
    if guarantee is not None:
        if not isinstance(guarantee, IntegralGuarantee):  # which holds for any pair
            _check_pair(pair, relation, guarantee.max_contributions)
        found += _unpaid(recorder.steps, spent, guarantee)
        found += _misstated(guarantee, relation, marked=claim is None)
    elif audited.must_claim and not first.exception:
        found.append("the result states no guarantee")
    calls = sum(isinstance(step, MechanismStep) for step in recorder.steps)
    report = PairReport(pair.name, max(player.ratios, default=0.0), calls, spent.rho, tuple(found))
    return report, second.after


def _guarantee_of(result: Any) -> Guarantee | None:
    for name in ("guarantee_", "guarantee"):
        found = getattr(result, name, None)
        if isinstance(found, Guarantee):
            return found
    return None


# -- cost ----------------------------------------------------------------------------------------------------


def _events(steps: Iterable[Step]) -> list[Event]:
    return [step.call.event for step in steps if isinstance(step, MechanismStep)]


def _total_cost(steps: Iterable[Step]) -> Cost:
    return sum((cost(event) for event in _events(steps)), Cost(0.0))


def _unpaid(steps: list[Step], spent: Cost, guarantee: Guarantee) -> list[str]:
    """Say whether the calls cost more than the guarantee states."""
    if guarantee.rho is not None:
        if spent.rho > guarantee.rho:
            return [f"the calls cost {spent.rho / guarantee.rho:.4g} times the rho of the guarantee"]
        left = guarantee.delta - spent.delta
        if not (0 < left < 1 and zcdp.epsilon_of(guarantee.rho, left) <= guarantee.epsilon):
            return ["rho and delta of the guarantee do not give its epsilon"]
        return []
    epsilon, delta = _pure_cost(_events(steps))
    if epsilon is not None and epsilon <= guarantee.epsilon and delta <= guarantee.delta:
        return []
    left = guarantee.delta - spent.delta
    if 0 < left < 1 and zcdp.epsilon_of(spent.rho, left) <= guarantee.epsilon:
        return []
    return ["the calls cost more than the epsilon and delta of the guarantee"]


def _pure_cost(events: Iterable[Event]) -> tuple[Fraction | None, Fraction]:
    """Sum epsilon and delta by basic composition; no epsilon where an event has none."""
    epsilon, delta = Fraction(0), Fraction(0)
    for event in events:
        if isinstance(event, LaplaceEvent):
            epsilon += event.count * Fraction(event.sensitivity) / Fraction(event.scale)
        elif isinstance(event, ExponentialEvent | AboveThresholdEvent | StableHistogramEvent | IntegralDrawEvent):
            epsilon += event.count * Fraction(event.epsilon)
            delta += event.count * Fraction(getattr(event, "delta", 0.0))
        else:
            return None, delta
    return epsilon, delta


def _misstated(guarantee: Guarantee, relation: Neighbours, *, marked: bool) -> list[str]:
    """Say whether a guarantee is for another relation, or marks the door of the audit wrongly."""
    found = []
    if guarantee.neighbours != relation and not isinstance(guarantee, IntegralGuarantee):
        found.append(f"the guarantee is for {guarantee.neighbours} neighbours, the pair is {relation}")
    if marked and guarantee.certified:
        found.append("the guarantee is certified although the noise came from a door of an audit")
    elif marked and guarantee.reason != AUDITED:
        found.append(f"the guarantee is not certified: {guarantee.reason}")
    return found


# -- pairs ---------------------------------------------------------------------------------------------------


def _check_pair(pair: Pair, relation: Neighbours, max_contributions: int) -> None:
    """Refuse a pair of arrays that are not neighbours: comparing them would say nothing."""
    if not (isinstance(pair.D, np.ndarray) and isinstance(pair.D_prime, np.ndarray)):
        return
    before = Counter(row.tobytes() for row in pair.D)
    after = Counter(row.tobytes() for row in pair.D_prime)
    lost, gained = (before - after).total(), (after - before).total()
    far = max(lost, gained) if relation == "replace" else lost + gained
    if far > max_contributions or (relation == "replace" and lost != gained):
        raise ValueError(
            f"pair {pair.name!r}: not {relation} neighbours differing in at most {max_contributions} records"
        )
