"""Replay: fogline's own claims hold on every canary; what is not private is seen."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from canaries import by_turns

from fogline import DensitySketch, PrivateModes
from fogline.accounting.events import ExponentialEvent, GaussianEvent, StableHistogramEvent
from fogline.accounting.guarantee import Guarantee
from fogline.audit import Pair, RecordingProvider, ReplayingProvider, canary_pairs, random_pairs, replay
from fogline.audit.replay import AUDITED, ReplayDiverged, sensitivity_ratio
from fogline.datasets.simulated import gaussian_mixture4
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
from fogline_research.as_published import dp_grams

BOXES = {1: [(-3.0, 10.0)], 2: [(-3.0, 10.0), (0.0, 5.0)]}
RELATIONS = ["add-remove", "replace"]


def modes(d: int, relation: str, **options) -> PrivateModes:
    return PrivateModes(epsilon=1.0, delta=1e-5, bounds=BOXES[d], neighbours=relation, **options)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2])
def test_modes_on_all_canaries(d, relation):
    """With one bandwidth, which is quick; the next test has the default."""
    pairs = canary_pairs(BOXES[d], neighbours=relation)
    assert len(pairs) >= 20
    report = replay(modes(d, relation, bandwidth=0.1), pairs if d == 1 else by_turns(pairs, relation))
    assert report.passed, str(report)
    # The declared sensitivity is not only enough but tight.
    assert 0.9999 < report.largest_ratio <= 1
    assert {pair.calls for pair in report.pairs} == {1}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2])
def test_modes_by_default(d, relation):
    pairs = canary_pairs(BOXES[d], neighbours=relation)
    report = replay(modes(d, relation), [*pairs[::6], pairs[-1]])
    assert report.passed, str(report)
    assert 0.9999 < report.largest_ratio <= 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "options",
    [
        {"n_modes": 2},
        {"steps": [0.5]},
        {"max_contributions": 2, "n_modes": 1},
    ],
    ids=lambda options: ",".join(options),
)
def test_variants_of_modes(options, relation):
    c = options.get("max_contributions", 1)
    pairs = canary_pairs(BOXES[1], neighbours=relation, n=60, max_contributions=c, block=None)[::4]
    report = replay(modes(1, relation, **options), pairs)
    assert report.passed, str(report)
    assert 0.99 < report.largest_ratio <= 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_sketches_on_random_pairs(d, relation):
    """A function of the data that is no estimator; bounds that are not symmetric, bandwidths that differ."""
    box = [(-3.0, 10.0), (0.0, 5.0), (100.0, 101.0)][:d]

    def release(data):
        sketch = DensitySketch(box, bandwidths=[0.12, 0.2])
        half = len(data) // 2
        merged = sketch.update(data[:half]).merge(DensitySketch(box, bandwidths=[0.12, 0.2]).update(data[half:]))
        return merged.release(epsilon=0.7, delta=1e-6, neighbours=relation)

    report = replay(release, random_pairs(box, neighbours=relation, pairs=30 if d < 3 else 2, seed=d))
    assert report.passed, str(report)
    assert 0.5 < report.largest_ratio <= 1


def test_counting_crosses_blocks_without_numba(monkeypatch):
    from fogline.queries import fourier_sums as histogram

    monkeypatch.setattr(histogram, "_counter_known", True)
    monkeypatch.setattr(histogram, "_counter", None)
    for relation in RELATIONS:
        pairs = canary_pairs(BOXES[1], neighbours=relation, n=20)
        report = replay(modes(1, relation, n_modes=1), [*pairs[1::9], *pairs[-2:]])
        assert report.passed, str(report)


def test_system_noise_can_be_recorded_too():
    pair = canary_pairs(BOXES[1], neighbours="add-remove", n=20)[3]
    assert replay(modes(1, "add-remove", n_modes=1), [pair], seed=None).passed


# -- mechanisms ----------------------------------------------------------------------------------------------


def counts(data):
    return np.histogram(data, bins=4, range=(0, 1))[0]


MECHANISMS = {
    "gaussian": lambda x: add_gaussian(lambda: counts(x), size=4, sensitivity=1, rho=0.1),
    "laplace": lambda x: add_laplace(lambda: counts(x), size=4, sensitivity=1, epsilon=0.5),
    "count": lambda x: private_count(lambda: len(x), epsilon=1.0),
    "exponential": lambda x: choose(lambda: counts(x).astype(float), size=4, sensitivity=1, epsilon=0.5),
    "above threshold": lambda x: above_threshold(
        lambda: np.cumsum(counts(x)), size=4, threshold=30, sensitivity=1, epsilon=1.0
    ),
    "stable histogram": lambda x: stable_histogram(
        lambda: (int(v * 9) for v in x[:, 0] if 0 <= v <= 1), epsilon=1.0, delta=1e-6
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms(name):
    pairs = canary_pairs([(0, 1)], neighbours="add-remove", n=50, block=None)
    report = replay(MECHANISMS[name], pairs)
    assert report.passed, str(report)
    assert report.largest_ratio == pytest.approx(1.0)


def test_several_mechanisms_and_auxiliary_randomness():
    def analysis(x):
        shift = current_provider().generator("shift").random()
        count = private_count(lambda: len(x), rho=0.01).value
        rows = choose(lambda: counts(x[x > shift]), size=4, sensitivity=1, epsilon=0.1 + 0.01 * (count % 3))
        return {"count": count, "best": rows, "shift": shift}

    pairs = canary_pairs([(0, 1)], neighbours="add-remove", n=50, block=None)
    report = replay(analysis, pairs)
    assert report.passed, str(report)
    assert {pair.calls for pair in report.pairs} == {2}


# -- the doors themselves ------------------------------------------------------------------------------------


def test_distances_are_exact():
    huge = 2**60
    l2 = Call("gaussian", (), 1.0, "l2", GaussianEvent(1.0, 1.0))
    assert sensitivity_ratio(l2, np.array([huge]), np.array([huge + 1])) == (1.0, "")
    assert sensitivity_ratio(l2, np.array([huge, 0]), np.array([huge + 1, 1]))[1]
    assert sensitivity_ratio(l2, np.array([-(2**62)]), np.array([2**62]))[0] == 2.0**63
    assert sensitivity_ratio(l2, np.array([1]), np.array([1, 2]))[0] == np.inf
    linf = Call("exponential", (), 0.1, "linf", ExponentialEvent(1.0))
    # 0.3 - 0.2 is a hair below 0.1 as floats stand; 0.4 - 0.3 is a hair above.
    assert not sensitivity_ratio(linf, np.array([0.2]), np.array([0.3]))[1]
    assert sensitivity_ratio(linf, np.array([0.3]), np.array([0.4]))[1]
    assert sensitivity_ratio(linf, np.array([np.nan]), np.array([np.inf])) == (0.0, "")
    rows = Call("stable-histogram", (), 2.0, "l1", StableHistogramEvent(1.0, 1e-6))
    first, second = np.empty((2, 2), dtype=object), np.empty((1, 2), dtype=object)
    first[:] = [["a", 3], [("b", 1), 1]]
    second[:] = [["a", 2]]
    assert sensitivity_ratio(rows, first, second) == (1.0, "")


def test_the_replaying_door_refuses_other_calls():
    def ask(size, rho=0.1):
        add_gaussian(lambda: np.zeros(size, dtype=int), size=size, sensitivity=1, rho=rho)

    with use_provider(RecordingProvider()) as recorder:
        ask(2)
    for change, word in (((3,), "parameters"), ((2, 0.2), "event")):
        with use_provider(ReplayingProvider(recorder.steps)) as player, pytest.raises(ReplayDiverged, match=word):
            ask(*change)
        assert player.failures
    with use_provider(ReplayingProvider(recorder.steps)):
        ask(2)
        with pytest.raises(ReplayDiverged, match="did not ask"):
            ask(2)
    with use_provider(ReplayingProvider(recorder.steps)), pytest.raises(ReplayDiverged, match="generator"):
        current_provider().generator("x")
    player = ReplayingProvider(recorder.steps)
    player.finished()
    assert "before the first" in player.failures[0]


def test_audit_doors_never_certify():
    for provider in (RecordingProvider(), ReplayingProvider([])):
        assert not provider.certified
        assert provider.reason == AUDITED
    with use_provider(RecordingProvider()):
        fitted = modes(1, "add-remove", n_modes=1).fit(np.zeros((5, 1)))
    assert not fitted.guarantee_.certified
    assert fitted.guarantee_.reason == AUDITED


# -- what replay must see ------------------------------------------------------------------------------------


def test_published_dp_grams_fails_replay():
    X = gaussian_mixture4(60, random_state=0).X
    pair = Pair("outlier", X, np.concatenate([X[:-1], [[30.0, 30.0]]]), "replace")
    report = replay(lambda data: dp_grams(data, epsilon=1.0, delta=1e-5, random_state=0), [pair])
    assert not report.passed
    assert any("not certified: the ascent starts from raw records" in failure for failure in report.failures)
    assert any("result.modes differs" in failure for failure in report.failures)


def test_a_guarantee_must_be_stated_paid_for_and_of_the_right_relation():
    pair = canary_pairs(BOXES[1], neighbours="add-remove", n=10)[2]

    def spend(rho):
        return lambda data: add_gaussian(lambda: np.array([len(data)]), size=1, sensitivity=1, rho=rho)

    claim = Guarantee.certified_release(rho=0.1, delta=1e-5, neighbours="add-remove", mechanism="m", proof="p")
    assert replay(spend(0.1), [pair], claim=claim).passed
    assert "1.5 times the rho" in replay(spend(0.15), [pair], claim=claim).failures[0]
    boast = dataclasses.replace(claim, epsilon=claim.epsilon / 2)
    assert "do not give its epsilon" in replay(spend(0.1), [pair], claim=boast).failures[0]
    other = dataclasses.replace(claim, neighbours="replace")
    with pytest.raises(ValueError, match="not replace neighbours"):
        replay(spend(0.1), [pair], claim=other, neighbours="replace")
    assert "for replace neighbours" in replay(spend(0.1), [pair], claim=other).failures[0]
    pure = Guarantee.certified_release(epsilon=0.5, delta=0.0, neighbours="add-remove", mechanism="m", proof="p")

    def laplace(epsilon):
        return lambda data: private_count(lambda: len(data), epsilon=epsilon)

    assert replay(laplace(0.5), [pair], claim=pure).passed
    assert "cost more" in replay(laplace(0.51), [pair], claim=pure).failures[0]


def test_pairs_that_are_no_neighbours_are_refused():
    pair = Pair("two more", np.zeros((3, 1)), np.zeros((5, 1)))
    with pytest.raises(ValueError, match="two more"):
        replay(modes(1, "add-remove", n_modes=1), [pair])


def test_a_fit_that_always_raises_has_shown_nothing():
    pair = canary_pairs(BOXES[1], neighbours="add-remove", n=10)[2]
    report = replay(PrivateModes(epsilon=1.0, delta=1e-5, bounds=None), [pair])
    assert not report.passed
    assert "raised TypeError" in report.failures[0]
    assert not replay(modes(1, "add-remove"), []).passed


# -- guarantees by the Gaussian curve ----------------------------------------------------------------------------


def curve_release(data, *, spoil=None, neighbours="add-remove"):
    """A count in fine noise, with a guarantee by the Gaussian curve; `spoil` makes it promise too much."""
    from types import SimpleNamespace

    from fogline.accounting import Guarantee
    from fogline.accounting.costs import gaussian_release
    from fogline.mechanisms.discrete_gaussian import add_gaussian, add_rounded_gaussian
    from fogline.mechanisms.discrete_laplace import add_laplace
    from fogline.mechanisms.randomness import provider_reason

    rho = gaussian_release(1.0, 1e-5).rho
    count = lambda: np.array([len(data)])  # noqa: E731
    add = add_gaussian if spoil == "coarse" else add_rounded_gaussian
    noisy = add(count, size=1, sensitivity=1.0, rho=rho * (1.01 if spoil == "noise" else 1.0))
    if spoil == "laplace":
        add_laplace(count, size=1, sensitivity=1, epsilon=0.5)
    promise = Guarantee.certified_release(
        epsilon=0.9 if spoil == "epsilon" else 1.0,
        delta=1e-5,
        rho=rho,
        gaussian=True,
        neighbours=neighbours,
        mechanism="rounded Gaussian",
        proof="rounded-gaussian-noise",
        reason=provider_reason(),
    )
    return SimpleNamespace(values=noisy.values, guarantee=promise)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (None, None),
        ("noise", "times the rho of the guarantee"),
        ("laplace", "times the rho of the guarantee"),
        ("coarse", None),
        ("epsilon", "mu and delta of the guarantee do not give its epsilon"),
    ],
)
def test_a_guarantee_by_the_gaussian_curve_is_checked(spoil, said):
    pair = Pair("one more", np.zeros((30, 1)), np.zeros((31, 1)))
    report = replay(lambda data: curve_release(data, spoil=spoil), [pair])
    found = " ".join(failure for each in report.pairs for failure in each.failures)
    if said is None and spoil is None:
        assert found == ""
    elif spoil == "coarse":  # noise of four steps is too far from a rounded Gaussian for this delta
        assert "do not give its epsilon" in found or "times the rho" in found
    else:
        assert said in found
