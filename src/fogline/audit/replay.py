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
   certified, had the noise not come from a provider of an audit.

A fit that raises fails: with nothing released there is nothing to check, and no data set may be an error.
Running time is not compared.

Two providers for an audit: one keeps what passes through it, the other plays it back.

`RecordingProvider` stands before another provider. Of every use of a mechanism it keeps the public `Call`, the exact
value, the answer, and what noise was drawn; of every auxiliary generator its seed.

`ReplayingProvider` gives a second run, on a neighbour, the answers of the first. It checks that the calls are the
same, in the same order, and that the exact values :math:`q(D)` and :math:`q(D')` satisfy

.. math:: \lVert q(D) - q(D') \rVert \le \Delta

in the norm and with the sensitivity that the call declares. The distance is computed in rational numbers.

Both providers also give a mechanism its recorded draws again. Its answer to the recorded exact value must then be the
recorded answer, in the first run and in the second: noise from elsewhere, or data that a mechanism's code holds on to,
would show. The law of the noise is checked for each kind of event: see `fogline.audit.noise_laws`.

Neither provider can certify: both say so with the same `AUDITED`, so that two guarantees made behind them can be
compared field by field, and a guarantee that would be certified behind the system's provider gives this reason
and no other.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from fogline._typing import EstimatorLike
from fogline._validation import Neighbours, check_neighbours
from fogline.accounting import zcdp
from fogline.accounting.analytic_gaussian import delta_of as gaussian_delta
from fogline.accounting.analytic_gaussian import slack_of
from fogline.accounting.costs import Cost, GaussianCost, UnsupportedEvent, cost, gaussian_cost
from fogline.accounting.events import (
    AboveThresholdEvent,
    Event,
    ExponentialEvent,
    IntegralDrawEvent,
    LaplaceEvent,
    StableHistogramEvent,
)
from fogline.accounting.guarantee import Guarantee, IntegralGuarantee
from fogline.audit.neighbour_pairs import Pair
from fogline.audit.noise_laws import (
    Draw,
    DrawsDiffer,
    GeneratorStep,
    MechanismStep,
    RecordedSource,
    SourceSpy,
    Step,
    noise_failures,
    pooled_failures,
    same_values,
)
from fogline.audit.observation import differences, look_before, modules_of, observe
from fogline.audit.surroundings import Surroundings, empty_caches, look_around, rewind
from fogline.mechanisms.randomness import (
    Call,
    EntropySource,
    NoiseProvider,
    Query,
    Sample,
    SystemProvider,
    use_provider,
)
from fogline.testing import SeededProvider, SeededSource

__all__ = [
    "AUDITED",
    "Draw",
    "GeneratorStep",
    "PairReport",
    "RecordingProvider",
    "ReplayDiverged",
    "ReplayReport",
    "ReplayingProvider",
    "Step",
    "replay",
    "sensitivity_ratio",
]

AUDITED = "the noise was recorded for an audit"
"""The one reason that guarantees made behind these providers give."""


class ReplayDiverged(RuntimeError):
    """The second run asked for something that the first did not; the provider has noted what."""


S = TypeVar("S", MechanismStep, GeneratorStep)


class RecordingProvider:
    """Keep everything that passes to and from another provider.

    Parameters
    ----------
    provider : NoiseProvider, optional
        Who answers; by default a seeded one.

    Attributes
    ----------
    steps : list of Step
    failures : list of str
        Breaches of the provider's contract, such as a query that was asked twice, in words.

    Examples
    --------
    >>> from fogline.mechanisms import add_gaussian, use_provider
    >>> with use_provider(RecordingProvider(SeededProvider(1))) as provider:
    ...     release = add_gaussian(lambda: np.array([5, 7]), size=2, sensitivity=1, rho=0.5)
    >>> provider.steps[0].call.mechanism, provider.steps[0].exact.tolist()
    ('gaussian', [5, 7])
    >>> bool((provider.steps[0].answer == release.values).all())
    True
    """

    certified = False
    reason = AUDITED

    def __init__(self, provider: NoiseProvider | None = None) -> None:
        self._provider = SeededProvider(0) if provider is None else provider
        self.steps: list[Step] = []
        self.failures: list[str] = []

    def answer(self, call: Call, query: Query, sample: Sample) -> NDArray[Any]:
        """Return the inner provider's answer and keep it with the exact value."""
        asked: list[NDArray[Any]] = []
        spies: list[SourceSpy] = []

        def kept() -> NDArray[Any]:
            value = np.asarray(query())
            # A copy: a mechanism that changes the exact value in place must not change what was recorded.
            asked.append(value.copy())
            return value

        def spied(source: EntropySource) -> Callable[[NDArray[Any]], NDArray[Any]]:
            spies.append(SourceSpy(source))
            return sample(spies[-1])

        answer = self._provider.answer(call, kept, spied)
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
        return step.answer.copy()  # as the replaying provider does, so that both runs hold the same memory

    def generator(self, purpose: str) -> np.random.Generator:
        """Return a generator whose seed is kept."""
        # A seed, not the generator: the second run must get it from the beginning.
        seed = int.from_bytes(self._provider.generator(purpose).bytes(16))
        self.steps.append(GeneratorStep(purpose, seed))
        return np.random.default_rng(seed)


class ReplayingProvider:
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
    >>> from fogline.mechanisms import add_laplace, use_provider
    >>> def release(count):
    ...     return add_laplace(lambda: np.array([count]), size=1, sensitivity=2, epsilon=1.0).values
    >>> with use_provider(RecordingProvider()) as first:
    ...     published = release(10)
    >>> with use_provider(ReplayingProvider(first.steps)) as second:
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
        # Public parameters that differ between neighbours are a leak before any noise is drawn.
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

    def _diverged(self, what: str) -> ReplayDiverged:
        self.failures.append(what)
        return ReplayDiverged(what)


def _shows_more(answer: NDArray[Any]) -> bool:
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
    # keys that only one of the two has count as well
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
        # squares are compared as rational numbers: a float root could turn a breach into a pass
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


_LOOKED_AT = frozenset({0, 1, 2, 5, 10, 15, 20, 25, 30})
"""Pairs around which the state of the process is looked at; later ones only now and then.

Spread over the list of canaries, whose kinds of records come one after the other: corners, steps across the bounds,
missing and infinite values, data that are all the same.
"""

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
    estimator: EstimatorLike | Callable[[Any], object],
    pairs: Iterable[Pair],
    *,
    neighbours: str | None = None,
    claim: Guarantee | None = None,
    seed: int | None = 0,
    thorough: bool = False,
    until_failure: bool = False,
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
        Look at the state of the process around every pair, not only around nine of the first 31 and each sixteenth.
    until_failure : bool
        Leave out the pairs after the first that fails: the verdict is the same, the list of failures is not complete.

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
    given: Any = estimator
    fit = (lambda data: clone(estimator).fit(data)) if is_estimator else given
    # state may hide in the module of a base class
    watched = tuple(base.__module__ for base in type(estimator).__mro__)
    audited = _Audited(fit, claim, is_estimator, watched)
    reports, steps = list[PairReport](), list[Step]()
    for number, pair in enumerate(pairs):
        # Compilation and imports happen once, and would show as a difference of the first pair alone.
        if number == 0:
            last = _warm_up(audited, pair)
        relation = check_neighbours(pair.neighbours if neighbours is None else neighbours)
        provider: NoiseProvider = SystemProvider() if seed is None else SeededProvider(_mixed(seed, number))
        recorder = RecordingProvider(provider)
        look = thorough or number in _LOOKED_AT or number % _NOW_AND_THEN == 0
        before = _look_before(audited, last) if look else None
        last = last if before is None else before
        reports.append(_replay_pair(audited, pair, relation, recorder, before))
        steps += recorder.steps
        if until_failure and reports[-1].failures:
            break
    # Over all pairs: one fit draws too little noise to test its law.
    wrong = pooled_failures(steps)
    if wrong:
        reports.append(PairReport("the noise of all pairs", 0.0, 0, 0.0, tuple(wrong)))
    return ReplayReport(tuple(reports))


def _warm_up(audited: _Audited, pair: Pair) -> Surroundings:
    """Let imports and compilation happen before anything is compared, and put back all other state; return a look.

    Garbage of earlier work goes first: collected between two looks, it would show as a difference.
    """
    gc.collect()
    before = look_before(modules_of(audited.fit, audited.watched), audited.fit)
    with use_provider(RecordingProvider()):
        seen = observe(audited.fit, pair.D, watched=audited.watched, before=before)
    rewind(before, seen.after)
    empty_caches(before)
    return before


@dataclass(frozen=True)
class _Audited:
    """What is audited, what it claims if that is told apart, and where its code is."""

    fit: Callable[[Any], Any]
    claim: Guarantee | None
    must_claim: bool
    watched: tuple[str, ...]


def _mixed(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])


def _look_before(audited: _Audited, last: Surroundings) -> Surroundings:
    """Look at the process before a pair, with empty caches; `last` is an earlier look.

    Caches hold what earlier pairs left: a first run that adds to it would end with more than the second, which starts
    from an empty one.
    """
    modules = modules_of(audited.fit, audited.watched)
    empty_caches(last)
    before = look_around(modules, inspected=audited.fit, last=last)
    # A module that was imported since the last look brings caches of its own.
    return look_around(modules, inspected=audited.fit, last=before) if empty_caches(before) else before


def _replay_pair(
    audited: _Audited, pair: Pair, relation: Neighbours, recorder: RecordingProvider, before: Surroundings | None
) -> PairReport:
    """Replay one pair; with a look `before` also compare the state of the process."""
    fit, claim, look = audited.fit, audited.claim, before is not None
    with use_provider(recorder):
        first = observe(fit, pair.D, watched=audited.watched, before=before, look=look)
    player = ReplayingProvider(recorder.steps)
    # The second run starts from the state that the first one found, not from what that one left.
    if first.before is not None:
        rewind(first.before, first.after)
    with use_provider(player):
        second = observe(fit, pair.D_prime, watched=audited.watched, before=first.before, look=look)
    # after a divergence the count of calls says nothing new
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
    return PairReport(pair.name, max(player.ratios, default=0.0), calls, spent.rho, tuple(found))


def _guarantee_of(result: object) -> Guarantee | None:
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
    if guarantee.gaussian and guarantee.rho is not None:
        return _unpaid_in_gdp(steps, guarantee.rho, guarantee)
    if guarantee.rho is not None:
        if spent.rho > guarantee.rho:
            return [f"the calls cost {spent.rho / guarantee.rho:.4g} times the rho of the guarantee"]
        # the delta of exceptional events is gone before the rest is converted
        left = guarantee.delta - spent.delta
        if not (0 < left < 1 and zcdp.epsilon_of(guarantee.rho, left) <= guarantee.epsilon):
            return ["rho and delta of the guarantee do not give its epsilon"]
        return []
    epsilon, delta = _pure_cost(_events(steps))
    # either composition will do: each is a proof
    if epsilon is not None and epsilon <= guarantee.epsilon and delta <= guarantee.delta:
        return []
    left = guarantee.delta - spent.delta
    if 0 < left < 1 and zcdp.epsilon_of(spent.rho, left) <= guarantee.epsilon:
        return []
    return ["the calls cost more than the epsilon and delta of the guarantee"]


def _unpaid_in_gdp(steps: list[Step], rho: float, guarantee: Guarantee) -> list[str]:
    """Say the same of a guarantee by the Gaussian curve: every call must be GDP, and their sum within it."""
    spent = GaussianCost(0.0)
    for call in (step.call for step in steps if isinstance(step, MechanismStep)):
        size = dict(call.parameters).get("size", 1)
        try:
            spent += gaussian_cost(call.event, size if isinstance(size, int) else 1)
        except (UnsupportedEvent, ValueError):  # a lattice that is too coarse for the curve
            return [f"a call of {call.mechanism} is not Gaussian-DP, as the guarantee is"]
    if spent.rho > rho:
        return [f"the calls cost {spent.rho / rho:.4g} times the rho of the guarantee"]
    slack = slack_of(guarantee.epsilon, Fraction(spent.distance))
    if gaussian_delta(rho, guarantee.epsilon) + slack > guarantee.delta:
        return ["mu and delta of the guarantee do not give its epsilon"]
    return []


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
    """Say whether a guarantee is for another relation, or marks the provider of the audit wrongly."""
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
    # By bytes: NaN equals no NaN, and -0.0 equals 0.0, but they are different records.
    before = Counter(row.tobytes() for row in pair.D)
    after = Counter(row.tobytes() for row in pair.D_prime)
    lost, gained = (before - after).total(), (after - before).total()
    # a replaced record is lost on one side and gained on the other
    far = max(lost, gained) if relation == "replace" else lost + gained
    if far > max_contributions or (relation == "replace" and lost != gained):
        raise ValueError(
            f"pair {pair.name!r}: not {relation} neighbours differing in at most {max_contributions} records"
        )
