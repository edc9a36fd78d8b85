"""Noise of every kind of event: honest mechanisms pass, and one that leaves its noise out fails, kind by kind."""

from __future__ import annotations

import typing

import numpy as np
import pytest

from fogline.accounting import events
from fogline.accounting.events import (
    AboveThresholdEvent,
    ComposedEvent,
    ExponentialEvent,
    GaussianEvent,
    IntegralDrawEvent,
    LaplaceEvent,
    ParallelEvent,
    StableHistogramEvent,
)
from fogline.audit import RecordingProvider, ReplayingProvider, replay
from fogline.audit.neighbour_pairs import Pair
from fogline.audit.noise_laws import NOISE_CHECKS, MechanismStep, noise_failures, pooled_failures
from fogline.families.base_measures import UniformBase
from fogline.mechanisms import (
    Call,
    above_threshold,
    add_gaussian,
    add_laplace,
    choose,
    current_provider,
    private_count,
    stable_histogram,
    use_provider,
)
from fogline.mechanisms.mollified_cells import cell_centres, counts_of, mollified_cells
from fogline.mechanisms.mollified_draws import mollified_draws
from fogline.testing import SeededProvider, SeededSource

BASE = UniformBase([(0.0, 1.0), (5.0, 6.0)])
FEW, MANY = np.array([40, 3]), np.array([41, 3])
COUNTS = {scale: counts_of(scale * cell_centres(2)[:, 0], epsilon=2.0) for scale in (0.5, 3.0)}


def keys(counts):
    return lambda: np.repeat([7, 8], counts).tolist()


HONEST = {
    "gaussian": lambda x: add_gaussian(lambda: x, size=2, sensitivity=1, rho=0.1).values,
    "laplace": lambda x: add_laplace(lambda: x, size=2, sensitivity=1, epsilon=0.5).values,
    "count": lambda x: private_count(lambda: int(x.sum()), epsilon=0.5).value,
    "above-threshold": lambda x: above_threshold(lambda: x, size=2, threshold=900, sensitivity=1, epsilon=1.0),
    "exponential": lambda x: choose(lambda: 100 * x, size=2, sensitivity=100, epsilon=1.0),
    "stable-histogram": lambda x: stable_histogram(keys(x), epsilon=1.0, delta=1e-6).counts,
    "mollified draws": lambda x: mollified_draws(lambda p: -p[:, 0] * (x[0] - 39), BASE, size=20, epsilon=2.0),
    "mollified cells": lambda x: mollified_cells(
        lambda: COUNTS[0.5 if x[0] == 40 else 3.0], BASE, size=20, epsilon=2.0
    ),
}


def recorded(release, x=FEW, seed=1):
    with use_provider(RecordingProvider(SeededProvider(seed))) as provider:
        release(x)
    return provider


def test_every_kind_of_event_has_a_check():
    kinds = set(typing.get_args(events.Event)) - {ComposedEvent, ParallelEvent}
    assert set(NOISE_CHECKS) == kinds


@pytest.mark.parametrize("name", HONEST)
def test_honest_noise_passes(name):
    for seed in range(3):
        provider = recorded(HONEST[name], seed=seed)
        assert provider.steps
        assert provider.failures == []
    assert replay(HONEST[name], [Pair("one more", FEW, MANY)]).passed


# -- mechanisms that leave their noise out -------------------------------------------------------------------


def asked(name, event, sample, *, exact=lambda: FEW, norm="linf", sensitivity=1.0, parameters=()):
    """Release through the door as a mechanism of that name would; `sample` is the leaky part."""
    return current_provider().answer(Call(name, parameters, sensitivity, norm, event), exact, sample)


def silent(draw):
    """Draw the noise as it should be, and leave it out."""

    def sample_of(finish):
        def sample(source):
            draw(source)
            return finish

        return sample

    return sample_of


def first_of(passed):
    return np.array([np.argmax(passed) if passed.any() else -1])


def shown(pairs):
    return pairs[np.array([count >= 20 for count in pairs[:, 1]], dtype=bool)]


def histogram():
    pairs = np.empty((2, 2), dtype=object)
    pairs[0], pairs[1] = (7, 40), (8, 3)
    return pairs


THRESHOLD = (("size", 2), ("threshold", 900))
DRAWN = (("size", 20), ("proposals", 31))
CELLS = (("size", 20), ("cells", 16384))
TWO_LAPLACE = silent(lambda source: (source.laplace(2.0, 1), source.laplace(4.0, 2)))
BITS = silent(lambda source: source.bytes(32))
OFFERS = silent(lambda source: (source.bytes(8 * 20 * 32 * 2), source.bytes(8 * 20 * 31)))
PLACES = silent(lambda source: (source.bytes(8 * 20), source.bytes(8 * 40)))
LEAKY = {
    "gaussian without noise": lambda: asked(
        "gaussian", GaussianEvent(1.0, 4.0), silent(lambda s: s.gaussian(4.0, 2))(lambda x: x), norm="l2"
    ),
    "gaussian of half the scale": lambda: asked(
        "gaussian", GaussianEvent(1.0, 4.0), lambda s: lambda x: x + s.gaussian(2.0, 2), norm="l2"
    ),
    "laplace without noise": lambda: asked(
        "laplace", LaplaceEvent(1.0, 2.0), silent(lambda s: s.laplace(2.0, 2))(lambda x: x), norm="l1"
    ),
    "laplace charged for less": lambda: asked(
        "laplace", LaplaceEvent(0.5, 2.0), lambda s: lambda x: x + s.laplace(2.0, 2), norm="l1"
    ),
    "above threshold, nothing drawn": lambda: asked(
        "above-threshold", AboveThresholdEvent(1.0), lambda s: lambda x: first_of(x >= 900), parameters=THRESHOLD
    ),
    "above threshold, noise left out": lambda: asked(
        "above-threshold", AboveThresholdEvent(1.0), TWO_LAPLACE(lambda x: first_of(x >= 900)), parameters=THRESHOLD
    ),
    "above threshold, half the scale": lambda: asked(
        "above-threshold",
        AboveThresholdEvent(1.0),
        silent(lambda s: (s.laplace(1.0, 1), s.laplace(2.0, 2)))(lambda x: first_of(x >= 900)),
        parameters=THRESHOLD,
    ),
    "above threshold, one draw for all queries": lambda: asked(
        "above-threshold",
        AboveThresholdEvent(1.0),
        silent(lambda s: (s.laplace(2.0, 1), s.laplace(4.0, 1)))(lambda x: first_of(x >= 900)),
        parameters=THRESHOLD,
    ),
    "above threshold, a secret threshold": lambda: asked(
        "above-threshold", AboveThresholdEvent(1.0), TWO_LAPLACE(lambda x: first_of(x >= 900))
    ),
    "exponential, nothing drawn": lambda: asked(
        "exponential", ExponentialEvent(1.0), lambda s: lambda x: np.array([np.argmax(x)])
    ),
    "exponential, the best": lambda: asked(
        "exponential", ExponentialEvent(1.0), BITS(lambda x: np.array([np.argmax(x)]))
    ),
    "exponential, few bits": lambda: asked(
        "exponential", ExponentialEvent(1.0), silent(lambda s: s.bytes(1))(lambda x: np.array([np.argmax(x)]))
    ),
    "exponential, no candidate": lambda: asked("exponential", ExponentialEvent(1.0), BITS(lambda x: np.array([9]))),
    "exponential, twice the epsilon": lambda: twice_the_epsilon(),
    "stable histogram, nothing drawn": lambda: asked(
        "stable-histogram",
        StableHistogramEvent(1.0, 1e-6),
        lambda s: shown,
        exact=histogram,
        norm="l1",
        parameters=(("threshold", 20),),
    ),
    "stable histogram, noise left out": lambda: asked(
        "stable-histogram",
        StableHistogramEvent(1.0, 1e-6),
        lambda s: lambda x: shown(x) if len(s.laplace(1.5, len(x))) else x,
        exact=histogram,
        norm="l1",
        parameters=(("threshold", 20),),
    ),
    "stable histogram, a low threshold": lambda: asked(
        "stable-histogram",
        StableHistogramEvent(1.0, 1e-6),
        lambda s: lambda x: shown(x) if len(s.laplace(1.5, len(x))) else x,
        exact=histogram,
        norm="l1",
        parameters=(("threshold", 3),),
    ),
    "stable histogram, a threshold of nothing": lambda: asked(
        "stable-histogram",
        StableHistogramEvent(1.0, 1e-6),
        lambda s: lambda x: shown(x) if len(s.laplace(1.5, len(x))) else x,
        exact=histogram,
        norm="l1",
        parameters=(("threshold", 0),),
    ),
    "stable histogram, one draw for all keys": lambda: asked(
        "stable-histogram",
        StableHistogramEvent(1.0, 1e-6),
        lambda s: lambda x: shown(x) if len(s.laplace(1.5, 1)) else x,
        exact=histogram,
        norm="l1",
        parameters=(("threshold", 20),),
    ),
    "draws, the best proposal": lambda: asked(
        "mollified draws",
        IntegralDrawEvent(2.0, 20),
        OFFERS(lambda x: np.argmax(x, axis=1)[:, None].astype(float)),
        exact=lambda: np.zeros((20, 31), dtype=np.int64),
        parameters=DRAWN,
    ),
    "draws, always the first": lambda: asked(
        "mollified draws",
        IntegralDrawEvent(2.0, 20),
        OFFERS(lambda x: np.zeros((20, 2))),
        exact=lambda: np.zeros((20, 31), dtype=np.int64),
        parameters=DRAWN,
    ),
    "draws without coins": lambda: asked(
        "mollified draws",
        IntegralDrawEvent(2.0, 20),
        silent(lambda s: (s.bytes(8 * 20 * 32 * 2), s.bytes(8)))(lambda x: np.zeros((20, 2))),
        exact=lambda: np.zeros((20, 31), dtype=np.int64),
        parameters=DRAWN,
    ),
    "draws charged for fewer": lambda: asked(
        "mollified draws",
        IntegralDrawEvent(2.0, 19),
        OFFERS(lambda x: np.zeros((20, 2))),
        exact=lambda: np.zeros((20, 31), dtype=np.int64),
        parameters=DRAWN,
    ),
    "cells, the heaviest": lambda: asked(
        "mollified cells",
        IntegralDrawEvent(2.0, 20),
        PLACES(lambda x: np.full((20, 2), float(np.argmax(x)))),
        exact=lambda: COUNTS[3.0],
        parameters=CELLS,
    ),
    "cells, too far from the base": lambda: asked(
        "mollified cells",
        IntegralDrawEvent(1.0, 20),
        PLACES(lambda x: np.zeros((20, 2))),
        exact=lambda: COUNTS[3.0],
        parameters=CELLS,
    ),
    "cells without a place": lambda: asked(
        "mollified cells",
        IntegralDrawEvent(2.0, 20),
        silent(lambda s: (s.bytes(8 * 20), s.bytes(3)))(lambda x: np.zeros((20, 2))),
        exact=lambda: COUNTS[3.0],
        parameters=CELLS,
    ),
    "integral draws of an unknown kind": lambda: asked(
        "own draws", IntegralDrawEvent(2.0, 20), lambda s: lambda x: np.zeros((20, 2)), parameters=DRAWN
    ),
    "a composed event": lambda: asked("both", ComposedEvent((GaussianEvent(1.0, 4.0),)), lambda s: lambda x: x),
    "a mechanism that fails on other values": lambda: asked(
        "exponential", ExponentialEvent(1.0), lambda s: choosing(s.bytes(32), only=FEW)
    ),
}


def twice_the_epsilon():
    """The code of `choose`, at twice the epsilon that is charged."""
    with use_provider(Relabelled(current_provider(), ExponentialEvent(0.5))):
        return choose(lambda: FEW, size=2, sensitivity=1, epsilon=1.0)


class Relabelled:
    """A door that says another event than the mechanism's."""

    certified = False

    def __init__(self, provider, event):
        self.provider, self.event = provider, event

    def answer(self, call, query, sample):
        return self.provider.answer(
            Call(call.mechanism, call.parameters, call.sensitivity, call.norm, self.event), query, sample
        )


def choosing(raw, only):
    def finish(x):
        if not np.array_equal(x, only):
            raise ValueError
        high = int.from_bytes(raw) / 2.0**256 * (1 + np.exp(-0.5 * (x[0] - x[1]))) > 1
        return np.array([int(high)])

    return finish


@pytest.mark.parametrize("name", LEAKY)
def test_each_leaky_mechanism_fails(name):
    provider = recorded(lambda x: LEAKY[name]())
    assert provider.failures, name


def test_an_event_of_an_unknown_kind_is_a_failure():
    class NewEvent:
        pass

    call = Call("new", (), 1.0, "l1", NewEvent())
    step = MechanismStep(call, FEW, FEW, (), lambda source: lambda x: x)
    assert noise_failures(step) == ["new: no check is known for the noise of a NewEvent"]


# -- noise from elsewhere, data in a closure, a source that is no source --------------------------------------


def test_noise_from_elsewhere_is_no_answer_of_the_draws():
    rng = np.random.default_rng(0)

    def release(x):
        return asked(
            "mollified draws",
            IntegralDrawEvent(2.0, 20),
            OFFERS(lambda logs: rng.random((20, 2))),
            exact=lambda: np.zeros((20, 31), dtype=np.int64),
            parameters=DRAWN,
        )

    assert any("do not give the same answer" in failure for failure in recorded(release).failures)


def test_data_in_the_code_of_a_mechanism_shows_in_the_replay():
    """A base that is moved by a record: the exact values and the draws are as they should be."""

    def release(x):
        moved = UniformBase([(0.0, float(x[0])), (5.0, 6.0)])
        return mollified_draws(lambda p: -p[:, 0], moved, size=5, epsilon=1.0)

    report = replay(release, [Pair("one more", FEW, MANY)])
    assert any("do not give the same answer" in failure for failure in report.failures), str(report)
    first = recorded(release)
    with use_provider(ReplayingProvider(first.steps)) as second:
        release(FEW)
    assert second.failures == []


def test_other_draws_in_the_second_run_are_seen():
    def release(x):
        def sample(source):
            noise = source.gaussian(4.0, 2) if x[0] == 40 else source.gaussian(8.0, 2)
            return lambda exact: exact + noise

        return asked("gaussian", GaussianEvent(1.0, 4.0), sample, exact=lambda: x, norm="l2")

    report = replay(release, [Pair("one more", FEW, MANY)])
    assert any("draws other noise" in failure for failure in report.failures), str(report)

    def fails(x):
        def sample(source):
            noise = source.gaussian(4.0, 2)
            return lambda exact: exact + noise + (0 if np.array_equal(exact, x) else 1 // 0)

        return asked("gaussian", GaussianEvent(1.0, 4.0), sample, exact=lambda: x, norm="l2")

    report = replay(fails, [Pair("one more", FEW, MANY)])
    assert any("raised ZeroDivisionError" in failure for failure in report.failures), str(report)


@pytest.mark.parametrize("law", ["gaussian", "laplace", "bytes"])
def test_a_source_without_noise_is_seen_over_many_draws(law, monkeypatch):
    many = {
        "gaussian": lambda x: add_gaussian(lambda: np.repeat(x, 600), size=1200, sensitivity=1, rho=0.1),
        "laplace": lambda x: add_laplace(lambda: np.repeat(x, 600), size=1200, sensitivity=1, epsilon=0.5),
        "bytes": lambda x: mollified_draws(lambda p: -p[:, 0], BASE, size=20, epsilon=2.0),
    }[law]
    pairs = [Pair(str(number), FEW, np.array([40, 4]) if law == "bytes" else FEW) for number in range(3)]
    assert replay(many, pairs).passed
    zeros = (lambda self, size: bytes(size)) if law == "bytes" else lambda self, scale, size: np.zeros(size, dtype=int)
    monkeypatch.setattr(SeededSource, law, zeros)
    report = replay(many, pairs)
    assert any("the noise of all pairs" in failure for failure in report.failures), str(report)
    assert pooled_failures([]) == []


def test_an_answer_that_is_a_view_of_the_exact_values_is_seen():
    def release(x):
        def sample(source):
            noise = source.gaussian(4.0, 2)

            def finish(exact):
                both = np.concatenate([exact + noise, exact])
                return both[:2]

            return finish

        return asked("gaussian", GaussianEvent(1.0, 4.0), sample, exact=lambda: x, norm="l2")

    assert any("view of something larger" in failure for failure in recorded(release).failures)
