r"""Is the noise of a use of a mechanism the one that its event says? One check for each kind of event.

The docstring of an event is the whole mechanism, so an answer is a known function of the exact value and of what was
drawn. Each check here computes that function again, by its own code, from the recorded draws:

- *additive* (Gaussian, Laplace): one draw of at least the charged scale, added as it is;
- *above threshold*: Laplace draws of at least :math:`2\Delta/\varepsilon` and :math:`4\Delta/\varepsilon`, and the
  first index with :math:`f_i + \nu_i \ge T + \eta`;
- *exponential*: the drawn bytes are a uniform number, and the index is where it falls among the sums of weights
  :math:`e^{-\varepsilon(u_{\max} - u_i)/(2\Delta)}`;
- *stable histogram*: one Laplace draw for each key, and a threshold that hides the keys of one unit;
- *integral draws*: coins among the drawn bytes decide which proposal, or which cell, comes out.

On the records of a test the noise may not matter: far from the threshold the answer is the same without it. So the
mechanism's own code is also *probed*, with exact values chosen so that the noise decides.

A kind of event that has no check here is a failure, never a pass.

What passes through a provider of an audit: uses of mechanisms with the noise they drew, and auxiliary generators.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from fogline._typing import IntArray
from fogline.accounting.events import (
    AboveThresholdEvent,
    ExponentialEvent,
    GaussianEvent,
    IntegralDrawEvent,
    LaplaceEvent,
    StableHistogramEvent,
)
from fogline.audit.noise_fit import noise_fit
from fogline.mechanisms.randomness import Call, EntropySource, Sample
from fogline.testing import SeededSource

__all__ = [
    "NOISE_CHECKS",
    "Draw",
    "DrawsDiffer",
    "GeneratorStep",
    "MechanismStep",
    "RecordedSource",
    "SourceSpy",
    "Step",
    "noise_failures",
    "pooled_failures",
    "same_values",
]


@dataclass(frozen=True)
class Draw:
    """Noise that a mechanism drew: "gaussian" or "laplace" of some scale, or "bytes"."""

    law: str
    scale: float
    values: IntArray


@dataclass(frozen=True)
class MechanismStep:
    """One use of a mechanism: what was said, the secret exact value, the answer, and how noise is made."""

    call: Call
    exact: NDArray[Any]
    answer: NDArray[Any]
    draws: tuple[Draw, ...]
    sample: Sample = field(repr=False, compare=False)


@dataclass(frozen=True)
class GeneratorStep:
    """One auxiliary generator: its purpose and its seed."""

    purpose: str
    seed: int


Step = MechanismStep | GeneratorStep


def fine_bits(call: Call) -> int:
    """Return how many times the lattice was halved on which the noise of a call was drawn; 0 for most."""
    bits = dict(call.parameters).get("bits", 0)
    return bits if isinstance(bits, int) else 0


class SourceSpy:
    """A source that keeps what is drawn from it."""

    def __init__(self, source: EntropySource) -> None:
        self._source = source
        self.draws: list[Draw] = []

    @property
    def certified(self) -> bool:
        """As the source says."""
        return self._source.certified

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Return draws of the source."""
        return self._keep("gaussian", scale, self._source.gaussian(scale, size))

    def laplace(self, scale: float, size: int) -> IntArray:
        """Return draws of the source."""
        return self._keep("laplace", scale, self._source.laplace(scale, size))

    def bytes(self, size: int) -> builtins.bytes:
        """Return bytes of the source."""
        drawn = self._source.bytes(size)
        self._keep("bytes", 0.0, np.frombuffer(drawn, dtype=np.uint8).astype(np.int64))
        return drawn

    def _keep(self, law: str, scale: float, values: IntArray) -> IntArray:
        self.draws.append(Draw(law, float(scale), values.copy()))
        return values


class DrawsDiffer(RuntimeError):
    """A mechanism drew other noise than the one that was recorded at its place."""


class RecordedSource:
    """A source that gives recorded draws again, in their order, to whoever asks for the same.

    Examples
    --------
    >>> source = RecordedSource((Draw("laplace", 2.0, np.array([5, -1])),))
    >>> source.laplace(2.0, 2).tolist(), source.used_up
    ([5, -1], True)
    >>> source.laplace(2.0, 2)
    Traceback (most recent call last):
    fogline.audit.noise_laws.DrawsDiffer: laplace noise
    """

    certified = False

    def __init__(self, draws: tuple[Draw, ...]) -> None:
        self._draws = list(draws)

    @property
    def used_up(self) -> bool:
        """Whether all draws were asked for."""
        return not self._draws

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Return the recorded draws."""
        return self._next("gaussian", scale, size)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Return the recorded draws."""
        return self._next("laplace", scale, size)

    def bytes(self, size: int) -> builtins.bytes:
        """Return the recorded bytes."""
        return self._next("bytes", 0.0, size).astype(np.uint8).tobytes()

    def _next(self, law: str, scale: float, size: int) -> IntArray:
        draw = self._draws.pop(0) if self._draws else None
        if draw is None or (draw.law, draw.scale, draw.values.size) != (law, float(scale), size):
            raise DrawsDiffer(f"{law} noise")
        return draw.values.copy()


def same_values(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Say whether two answers are the same, to the last bit.

    Examples
    --------
    >>> same_values(np.array([0.0]), np.array([-0.0]))
    False
    """
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if first.dtype == object:
        return bool(first.tolist() == second.tolist())
    return first.tobytes() == second.tobytes()


@dataclass(frozen=True)
class ProbeTuning:
    """How closely the noise of a mechanism is looked at.

    Parameters
    ----------
    probes : int
        How often the code of a mechanism is tried on exact values where the noise decides.
    short : int
        Answers of at most this many entries are tried so: the noise of a few may well be the same twice.
    least_bytes : int
        Fewest uniform bytes that a choice may be made from.
    least_pooled : int
        Fewest draws of one law and scale whose fit is tested.
    most_pooled : int
        Most draws of one law and scale that are tested.
    each_pooled : int
        Most draws that one step gives to a pool, so that no step makes up a pool alone.
    level : float
        Level of the tests: an audit makes many, and must not fail by chance.
    """

    probes: int = 24
    short: int = 8
    least_bytes: int = 16
    least_pooled: int = 1000
    most_pooled: int = 20_000
    each_pooled: int = 500
    level: float = 1e-9


TUNING = ProbeTuning()


_LIMIT = 2**61
_COIN = 2**53
_LOG_STEPS = 2**32
Expected = Callable[[Call, NDArray[Any], tuple[Draw, ...]], NDArray[Any]]
Probe = Callable[[MechanismStep, np.random.Generator], NDArray[Any]]


class _Wrong(Exception):
    """What is wrong with the noise, in words."""


def noise_failures(step: MechanismStep) -> list[str]:
    """Say where the noise of one use of a mechanism is not what its event says.

    Parameters
    ----------
    step : MechanismStep
        As recorded by `fogline.audit.RecordingProvider`.

    Returns
    -------
    list of str
        Empty if all is well. An event that has no check gives a failure.

    Examples
    --------
    >>> from fogline.audit import RecordingProvider
    >>> from fogline.mechanisms import choose, use_provider
    >>> with use_provider(RecordingProvider()) as provider:
    ...     index = choose(lambda: np.array([0, 1, 2]), size=3, sensitivity=1, epsilon=0.5)
    >>> noise_failures(provider.steps[0])
    []
    """
    check = NOISE_CHECKS.get(type(step.call.event))
    if check is None:
        return [f"{step.call.mechanism}: no check is known for the noise of a {type(step.call.event).__name__}"]
    try:
        check(step)
    except _Wrong as wrong:
        return [f"{step.call.mechanism}: {wrong}"]
    return []


# -- additive noise ------------------------------------------------------------------------------------------


def _check_additive(step: MechanismStep) -> None:
    event, law = step.call.event, "gaussian" if isinstance(step.call.event, GaussianEvent) else "laplace"
    assert isinstance(event, GaussianEvent | LaplaceEvent)
    bits = fine_bits(step.call)
    if event.sensitivity < step.call.sensitivity * 2.0**bits:
        raise _Wrong("the event is charged for less than the declared sensitivity")
    _require_laws(step.draws, [law])
    _require_scale(step.draws[0], Fraction(event.scale), "the noise")
    _require_sum(step.exact, step.draws, step.answer, bits)
    for number in range(
        TUNING.probes if step.exact.size <= TUNING.short else 0
    ):  # the noise of a few entries may well be 0
        draws, answer = _probed(step, step.exact, seed=number)
        _require_laws(draws, [law])
        _require_sum(step.exact, draws, answer, bits)


def _require_sum(exact: NDArray[Any], draws: tuple[Draw, ...], answer: NDArray[Any], bits: int) -> None:
    noise = draws[0].values if bits == 0 else (draws[0].values + 2 ** (bits - 1)) // 2**bits
    fits = exact.dtype.kind in "iu" and noise.shape == exact.shape == answer.shape
    if not fits or not np.array_equal(_noisy(exact.astype(np.int64), noise), answer):
        raise _Wrong("the answer is not the exact value plus the noise drawn")


def _noisy(exact: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """Exact value plus noise, cut at the ends of the lattice; in whole numbers of any size where they are large."""
    if not exact.size or max(abs(int(x)) for v in (exact, noise) for x in (v.min(), v.max())) < _LIMIT // 4:
        return np.asarray(exact + noise)
    kept = [min(max(int(x), -_LIMIT), _LIMIT) + int(z) for x, z in zip(exact.tolist(), noise.tolist(), strict=True)]
    return np.array([min(max(value, -_LIMIT), _LIMIT) for value in kept], dtype=np.int64)


# -- above threshold -----------------------------------------------------------------------------------------


def _first_above(call: Call, exact: NDArray[Any], draws: tuple[Draw, ...]) -> NDArray[Any]:
    """Return the index that the exact queries and the noise give; -1 for none."""
    assert isinstance(call.event, AboveThresholdEvent)
    _require_laws(draws, ["laplace", "laplace"])
    needed = Fraction(call.sensitivity) / Fraction(call.event.epsilon)
    _require_scale(draws[0], 2 * needed, "the threshold's noise")
    _require_scale(draws[1], 4 * needed, "the queries' noise")
    if draws[0].values.shape != (1,) or draws[1].values.shape != exact.shape:
        raise _Wrong("expected one draw for the threshold and one for each query")
    bound = int(draws[0].values[0]) + _parameter(call, "threshold")
    noisy = [min(max(x, -_LIMIT), _LIMIT) + z for x, z in zip(exact.tolist(), draws[1].values.tolist(), strict=True)]
    return np.array([next((i for i, value in enumerate(noisy) if value >= bound), -1)], dtype=np.int64)


def _near_threshold(step: MechanismStep, rng: np.random.Generator) -> NDArray[Any]:
    assert isinstance(step.call.event, AboveThresholdEvent)
    scale = max(1.0, 4 * step.call.sensitivity / step.call.event.epsilon)
    away = np.rint(scale * rng.uniform(-3.0, 1.0, step.exact.shape)).astype(np.int64)
    return np.asarray(_parameter(step.call, "threshold") + away)


# -- exponential ---------------------------------------------------------------------------------------------


def _check_exponential(step: MechanismStep) -> None:
    _require_choice(step.call, step.exact, step.draws, step.answer)
    assert isinstance(step.call.event, ExponentialEvent)
    spread = 2 * step.call.sensitivity / step.call.event.epsilon
    rng = np.random.default_rng(0)
    for number in range(TUNING.probes):
        probe = spread * rng.integers(0, 9, step.exact.shape) / 4.0  # few values, as their weights take long
        draws, answer = _probed(step, probe, seed=number)
        _require_choice(step.call, probe, draws, answer)


def _require_choice(call: Call, exact: NDArray[Any], draws: tuple[Draw, ...], answer: NDArray[Any]) -> None:
    """Require that the index is where the drawn uniform number falls among the sums of the weights."""
    if not draws or {draw.law for draw in draws} != {"bytes"}:
        raise _Wrong("expected draws of uniform bytes")
    raw = b"".join(draw.values.astype(np.uint8).tobytes() for draw in draws)
    if len(raw) < TUNING.least_bytes:
        raise _Wrong(f"expected at least {TUNING.least_bytes} uniform bytes")
    uniform, whole = Decimal(int.from_bytes(raw)), Decimal(2) ** (8 * len(raw))
    context = Context(prec=int(8 * len(raw) * 0.31) + 60, Emin=-(10**9), Emax=10**9)
    sums = _weight_sums(call, exact, context)
    index = int(answer[0])
    if answer.shape != (1,) or not 0 <= index < len(sums) - 1:
        raise _Wrong("the answer is no index of a candidate")
    # A little slack: the sums are rounded in the last of their many digits.
    slack = context.multiply(sums[-1], context.divide(Decimal(4 * len(sums)), whole))
    low, high = (context.divide(context.multiply(end, sums[-1]), whole) for end in (uniform, uniform + 1))
    if low < sums[index] - slack or high > sums[index + 1] + slack:
        raise _Wrong("the index is not the one that the drawn bytes and the charged epsilon choose")


def _weight_sums(call: Call, exact: NDArray[Any], context: Context) -> list[Decimal]:
    """Return 0 and the sums of the first weights exp(-epsilon (max - u) / (2 sensitivity)), in order."""
    assert isinstance(call.event, ExponentialEvent)
    values = exact
    if values.dtype.kind == "f":
        values = np.where(np.isfinite(values), values, np.finfo(values.dtype).min)
    rate = Fraction(call.event.epsilon) / (2 * Fraction(call.sensitivity))
    utilities = [Fraction(value) for value in values.tolist()]
    top = max(utilities)
    weights: dict[Fraction, Decimal] = {}
    sums = [Decimal(0)]
    for utility in utilities:
        if utility not in weights:
            power = rate * (utility - top)
            weights[utility] = context.exp(context.divide(Decimal(power.numerator), Decimal(power.denominator)))
        sums.append(context.add(sums[-1], weights[utility]))
    return sums


# -- stable histogram ----------------------------------------------------------------------------------------


def _frequent_keys(call: Call, exact: NDArray[Any], draws: tuple[Draw, ...]) -> NDArray[Any]:
    """Return the keys whose noisy counts reach the threshold, with these counts."""
    assert isinstance(call.event, StableHistogramEvent)
    _require_laws(draws, ["laplace"])
    _require_scale(draws[0], Fraction(call.sensitivity) / Fraction(call.event.epsilon), "the noise")
    threshold = _parameter(call, "threshold")
    _require_threshold(threshold, draws[0].scale, call.event.delta, int(call.sensitivity))
    if draws[0].values.shape != (len(exact),):
        raise _Wrong("expected one draw of noise for each key")
    noisy = _noisy(np.array([int(count) for _, count in exact]), draws[0].values)
    kept = [(key, int(count)) for (key, _), count in zip(exact, noisy, strict=True) if count >= threshold]
    shown = np.empty((len(kept), 2), dtype=object)
    for row, (key, count) in enumerate(kept):
        shown[row, 0], shown[row, 1] = key, count
    return shown


def _require_threshold(threshold: int, scale: float, delta: float, units: int) -> None:
    """Require max(g(c), c g(1)) <= delta, with g(m) = a^(T - m) / (1 + a) and a = exp(-1 / scale)."""
    if threshold < units:
        raise _Wrong("the threshold is below what one unit may hold")
    log_tails = [
        -(threshold - records) / scale - math.log1p(math.exp(-1.0 / scale)) + math.log(keys)
        for records, keys in ((units, 1), (1, units))
    ]
    if max(log_tails) > math.log(delta) + 1e-9 * max(1.0, threshold / scale):
        raise _Wrong("the threshold does not hide the keys of one unit")


def _near_counts(step: MechanismStep, rng: np.random.Generator) -> NDArray[Any]:
    assert isinstance(step.call.event, StableHistogramEvent)
    threshold = _parameter(step.call, "threshold")
    spread = max(2.0, 2 * step.call.sensitivity / step.call.event.epsilon)
    counts = np.maximum(1, np.rint(threshold + rng.uniform(-spread, spread, 16))).astype(np.int64)
    pairs = np.empty((len(counts), 2), dtype=object)
    for row, count in enumerate(counts.tolist()):
        pairs[row, 0], pairs[row, 1] = row, count
    return pairs


# -- integral draws ------------------------------------------------------------------------------------------


def _check_integral(step: MechanismStep) -> None:
    """Require that coins decide: with the same bytes drawn, equal choices give equal points, and others give others.

    The base is public but unknown here, so the points themselves cannot be computed again.
    """
    event = step.call.event
    assert isinstance(event, IntegralDrawEvent)
    choose = {"mollified draws": _accepted_proposals, "mollified cells": _drawn_cells}.get(step.call.mechanism)
    if choose is None:
        raise _Wrong("no check is known for integral draws of this kind")
    if _parameter(step.call, "size") > event.count:
        raise _Wrong("the event is charged for fewer draws")
    choose(step.call, step.exact, step.draws)
    rng = np.random.default_rng(0)
    tried = []
    for number in range(TUNING.probes // 4):
        probe = _integral_probe(step, rng, plain=number == 0)
        draws, answer = _probed(step, probe, seed=0)
        tried.append((choose(step.call, probe, draws), [row.tobytes() for row in answer]))
    moved = stayed = 0
    for indices, points in tried[1:]:
        for before, after, old, new in zip(tried[0][0], indices, tried[0][1], points, strict=True):
            if before == after and old != new:
                raise _Wrong("the point drawn is not the one that the coins choose")
            moved += before != after
            stayed += before != after and old == new
    if stayed > moved // 2:  # a base of few points may give the same one twice
        raise _Wrong("the coins do not decide which point is drawn")


def _accepted_proposals(call: Call, exact: NDArray[Any], draws: tuple[Draw, ...]) -> NDArray[Any]:
    """Return which proposal of each draw is the first whose coin is below its acceptance probability."""
    assert isinstance(call.event, IntegralDrawEvent)
    size, proposals = _parameter(call, "size"), _parameter(call, "proposals")
    _require_laws(draws, ["bytes", "bytes"])
    offered, coins = draws[0].values.size, draws[1].values.size
    if exact.shape != (size, proposals) or coins != 8 * size * proposals or offered % (8 * size * (proposals + 1)):
        raise _Wrong("expected bytes for every proposal and a coin for each")
    if not offered:
        raise _Wrong("expected bytes for every proposal and a coin for each")
    logs = np.maximum(np.minimum(exact, 0) / _LOG_STEPS, -call.event.epsilon / 2)
    accepted = _coins(draws[1]).reshape(size, proposals) < np.rint(_COIN * np.exp(logs))
    return np.where(accepted.any(axis=1), np.argmax(accepted, axis=1), proposals)


def _drawn_cells(call: Call, exact: NDArray[Any], draws: tuple[Draw, ...]) -> NDArray[Any]:
    """Return which cell each coin falls into."""
    assert isinstance(call.event, IntegralDrawEvent)
    size, cells = _parameter(call, "size"), _parameter(call, "cells")
    _require_laws(draws, ["bytes", "bytes"])
    within = draws[1].values.size
    if exact.shape != (cells,) or draws[0].values.size != 8 * size or not within or within % (8 * size):
        raise _Wrong("expected a coin for each draw and bytes for the place within its cell")
    ratios = np.log(np.maximum(exact, 1) * (cells / _COIN))
    if sum(exact.tolist()) != _COIN or np.abs(ratios).max() > call.event.epsilon / 2 + 1e-9:
        raise _Wrong("the density is farther from the base than the charged epsilon allows")
    return np.searchsorted(np.cumsum(exact), _coins(draws[0]), side="right")


def _integral_probe(step: MechanismStep, rng: np.random.Generator, *, plain: bool) -> NDArray[Any]:
    """Return exact values of the mechanism's kind: the base itself if `plain`, else some density around it."""
    assert isinstance(step.call.event, IntegralDrawEvent)
    half = step.call.event.epsilon / 2
    if step.call.mechanism == "mollified draws":
        widest = math.floor(half * _LOG_STEPS)
        return np.zeros_like(step.exact) if plain else -rng.integers(0, widest + 1, step.exact.shape)
    even = _COIN // len(step.exact)
    most = 0 if plain else int(even * min(-math.expm1(-half), 1.0) * 0.99)
    shift = rng.integers(0, most + 1, len(step.exact) // 2)
    return np.asarray(even + np.concatenate([shift, -shift])[rng.permutation(2 * len(shift))])


def _coins(draw: Draw) -> IntArray:
    raw = draw.values.astype(np.uint8).tobytes()
    return (np.frombuffer(raw, dtype="<u8") >> np.uint64(11)).astype(np.int64)


# -- what the checks share -----------------------------------------------------------------------------------


def _recomputed(expected: Expected, probe: Probe) -> Callable[[MechanismStep], None]:
    """Make a check of a function that gives the answer, and of one that gives exact values to try."""

    def check(step: MechanismStep) -> None:
        wrong = "the answer is not the one that the exact value and the noise drawn give"
        if not same_values(expected(step.call, step.exact, step.draws), step.answer):
            raise _Wrong(wrong)
        rng = np.random.default_rng(0)
        for number in range(TUNING.probes):
            exact = probe(step, rng)
            draws, answer = _probed(step, exact, seed=number)
            if not same_values(expected(step.call, exact, draws), answer):
                raise _Wrong(f"{wrong}, on values where the noise decides")

    return check


def _probed(step: MechanismStep, exact: NDArray[Any], seed: int = 0) -> tuple[tuple[Draw, ...], NDArray[Any]]:
    """Run the mechanism's own code on other exact values; return what it drew and answered."""
    spy = SourceSpy(SeededSource(np.random.default_rng([seed, exact.size])))
    try:
        answer = np.asarray(step.sample(spy)(exact.copy()))
    except Exception as error:
        raise _Wrong(f"the mechanism raised {type(error).__name__} on values of the same kind") from None
    return tuple(spy.draws), answer


def _parameter(call: Call, name: str) -> int:
    for known, value in call.parameters:
        if known == name and isinstance(value, int):
            return value
    raise _Wrong(f"the call does not say its {name}")


def _require_laws(draws: tuple[Draw, ...], laws: list[str]) -> None:
    if [draw.law for draw in draws] != laws:
        wanted = "one draw" if len(laws) == 1 else f"{len(laws)} draws"
        raise _Wrong(f"expected {wanted} of {laws[0]} noise, got {len(draws)} draws")


def _require_scale(draw: Draw, needed: Fraction, whose: str) -> None:
    if Fraction(draw.scale) < needed:
        raise _Wrong(
            f"{whose} was drawn at {float(Fraction(draw.scale) / needed):.4g} of the scale that is charged for"
        )


NOISE_CHECKS: dict[type, Callable[[MechanismStep], None]] = {
    GaussianEvent: _check_additive,
    LaplaceEvent: _check_additive,
    AboveThresholdEvent: _recomputed(_first_above, _near_threshold),
    ExponentialEvent: _check_exponential,
    StableHistogramEvent: _recomputed(_frequent_keys, _near_counts),
    IntegralDrawEvent: _check_integral,
}
"""A check for each kind of event that a mechanism may be charged as; composed events are never one call."""


# -- the draws of many uses ----------------------------------------------------------------------------------


def pooled_failures(steps: Iterable[Step]) -> list[str]:
    """Say where the draws of many uses, taken together, do not have the law that they were asked for.

    Draws of one law and scale are pooled; there must be a thousand of them, of which some each step gives. The level is
    1e-9: an honest source fails in no lifetime.

    Examples
    --------
    >>> from fogline.mechanisms.randomness import Call
    >>> call = Call("laplace", (), 1.0, "l1", LaplaceEvent(1.0, 2.0))
    >>> silent = Draw("laplace", 2.0, np.zeros(1000, dtype=np.int64))
    >>> step = MechanismStep(call, silent.values, silent.values, (silent,), lambda source: lambda x: x)
    >>> pooled_failures([step] * 100)
    ['... laplace draws of scale 2 do not have the law of that scale']
    """
    pools: dict[tuple[str, float], list[IntArray]] = {}
    for step in steps:
        for draw in step.draws if isinstance(step, MechanismStep) else ():
            pools.setdefault((draw.law, draw.scale), []).append(draw.values.ravel()[: TUNING.each_pooled])
    found = []
    for (law, scale), parts in pools.items():
        values = np.concatenate(parts)[: TUNING.most_pooled]
        if len(values) < TUNING.least_pooled:
            continue
        if law == "bytes" and _byte_p_value(values) <= TUNING.level:
            found.append(f"{len(values)} bytes drawn are not uniform")
        elif law != "bytes" and scale >= 0.1 and not noise_fit(values, law=law, scale=scale).passed(TUNING.level):
            found.append(f"{len(values)} {law} draws of scale {scale:.6g} do not have the law of that scale")
    return found


def _byte_p_value(values: IntArray) -> float:
    """Chi-square of sixteen classes for the upper and for the lower half of a byte."""
    p_values = []
    for half in (values >> 4, values & 15):
        expected = len(values) / 16
        statistic = float(np.sum((np.bincount(half, minlength=16) - expected) ** 2) / expected)
        p_values.append(float(chdtrc(15, statistic)))
    return min(1.0, 2 * min(p_values))
