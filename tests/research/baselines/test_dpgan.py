"""The private GAN: exact and bounded gradients, replay, accountants; training itself is for the benchmarks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fogline_research.baselines.dpgan as module
from fogline.accounting.zcdp import rho_of
from fogline.audit import attack, canary_pairs, replay
from fogline.audit.noise_laws import MechanismStep
from fogline.audit.replay import RecordingProvider
from fogline.mechanisms.discrete_gaussian import add_gaussian
from fogline.mechanisms.randomness import SystemProvider, use_provider
from fogline.testing import seeded_noise
from fogline_research.baselines import DPGAN
from fogline_research.baselines.dpgan import (
    LATTICE,
    Critic,
    Generator,
    _batches,
    _real_gradient,
    sampled_gaussian_epsilon,
)

BOX = np.array([[-4.0, 4.0], [-4.0, 4.0]])
SETTINGS = {"epsilon": 5.0, "delta": 0.1, "bounds": BOX, "epochs": 2, "batch_size": 16}


def critic(clip=0.5, d=2):
    return Critic(d, clip=clip, rng=np.random.default_rng(0))


# -- networks ---------------------------------------------------------------------------------------------------


def test_the_critics_gradient_is_its_derivative():
    model = critic()
    points = np.random.default_rng(1).uniform(-1, 1, (3, 2))
    step = 2.0**-6
    middle = np.clip(model.weights, -0.4, 0.4)
    model.weights = middle
    exact = model.gradients(points)
    for index in range(0, model.size, 37):
        ends = []
        for sign in (-1, 1):
            model.weights = middle.copy()
            model.weights[index] += sign * step
            ends.append(model.scores(points))
        np.testing.assert_allclose((ends[1] - ends[0]) / (2 * step), exact[:, index], atol=0.03)
    model.weights = middle
    inputs = model.input_slopes(points)
    for j in range(2):
        ends = [model.scores(points + sign * step * np.eye(2)[j]) for sign in (-1, 1)]
        np.testing.assert_allclose((ends[1] - ends[0]) / (2 * step), inputs[:, j], atol=0.05)


def test_the_generators_gradient_is_its_derivative():
    generator = Generator.first(2, np.random.default_rng(0))
    latent = np.random.default_rng(1).standard_normal((5, 4))
    exact = generator.pulled_back(latent, np.tile([1.0, -2.0], (5, 1)))
    for index in range(0, generator.size, 97):
        change = np.zeros(generator.size)
        change[index] = 1e-5
        ends = [(generator.moved(s * change)(latent) @ [1.0, -2.0]).mean() for s in (-1, 1)]
        assert (ends[1] - ends[0]) / 2e-5 == pytest.approx(exact[index], abs=1e-6)


# -- what a record can do ---------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.floats(0.01, 100.0), st.floats(0.05, 1.0))
def test_a_row_is_bounded_and_does_not_depend_on_its_batch(seed, bound, clip):
    rng = np.random.default_rng(seed)
    model = Critic(3, clip=clip, rng=rng)
    points = rng.uniform(-1, 1, (37, 3))
    whole = model.clipped(points, bound)
    assert (whole.astype(object) ** 2).sum(axis=1).max() <= LATTICE**2
    np.testing.assert_array_equal(whole[:1], model.clipped(points[:1], bound))
    np.testing.assert_array_equal(whole[5:18], model.clipped(points[5:18], bound))
    lengths = np.linalg.norm(model.gradients(points), axis=1)
    expected = model.gradients(points) * (LATTICE / np.maximum(lengths, bound))[:, None]
    np.testing.assert_allclose(whole, expected, atol=1.01)


def test_products_of_matrices_are_exact():
    model = critic(clip=1.0)
    model.weights = np.ones(model.size)
    u, z1, a1, z2, a2 = model._forward(np.ones((1, 2)))
    assert z1[0, 0] == 3 * 2**24
    assert z2[0, 0] == (32 * 3 + 1) * 2**24
    for piece in (u, z1, a1, z2, a2):
        np.testing.assert_array_equal(piece, np.rint(piece))


def test_records_outside_contribute_nothing():
    rows = np.array([[0.0, 1.0], [math.nan, 0.0], [math.inf, 0.0], [4.1, 0.0]])
    np.testing.assert_array_equal(
        _real_gradient(rows, BOX, critic(), 1.0), _real_gradient(rows[:1], BOX, critic(), 1.0)
    )


@pytest.mark.parametrize("n", [0, 5, 16, 50])
def test_a_place_is_in_one_batch_of_an_epoch(n):
    batches = list(_batches("zcdp", n, 16, 3, np.random.default_rng(0)))
    assert len(batches) == 3 * max(1, n // 16)
    for epoch in range(3):
        per = len(batches) // 3
        places = np.concatenate(batches[epoch * per : (epoch + 1) * per])
        assert len(set(places.tolist())) == len(places)


# -- private ----------------------------------------------------------------------------------------------------


WHOLE = SETTINGS | {"batch_size": 32}
"""One batch an epoch of 40 records: replay adds up what calls cost and knows nothing of parts that do not overlap."""


def test_replay_on_canaries():
    pairs = canary_pairs(BOX, neighbours="replace", n=40, block=None)[::3]
    report = replay(lambda X: DPGAN.fit(X, **WHOLE), pairs)
    assert report.passed, str(report)
    assert report.largest_ratio <= 1


def unclipped(rows, box, model, bound):
    return np.rint(model.gradients(rows / 4.0) * LATTICE).astype(np.int64).sum(axis=0)


def test_a_mutant_without_the_clip_fails_replay(monkeypatch):
    monkeypatch.setattr(module, "_real_gradient", unclipped)
    pairs = [p for p in canary_pairs(BOX, neighbours="replace", n=40, block=None) if np.isfinite(p.D_prime).all()]
    assert not replay(lambda X: DPGAN.fit(X, **WHOLE, weight_bound=1.0), pairs[:6], until_failure=True).passed


def test_the_cost_is_that_of_the_steps():
    provider = RecordingProvider(SystemProvider())
    with use_provider(provider):
        model = DPGAN.fit(np.zeros((40, 2)), **SETTINGS)
    steps = [step for step in provider.steps if isinstance(step, MechanismStep)]
    assert len(steps) == model.steps == 4
    rho = rho_of(5.0, 0.1)
    for step in steps:
        assert step.call.sensitivity == 2 * LATTICE
        assert (2 * LATTICE) ** 2 / (2 * step.draws[0].scale ** 2) <= rho / 2 + 1e-12
    assert model.noise_multiplier == pytest.approx(2 / math.sqrt(2 * rho / 2), rel=1e-6)


def test_the_noise_hides_a_record():
    """The projection of a noisy sum on the difference that the record makes: its likelihood ratio."""
    low, high = np.full((1, 2), -3.9), np.full((1, 2), 3.9)
    model, rho = critic(), rho_of(5.0, 0.1)
    moved = (_real_gradient(high, BOX, model, 1.0) - _real_gradient(low, BOX, model, 1.0)) / LATTICE
    seeds = itertools.count()

    def release(X):
        with seeded_noise(next(seeds)):
            return add_gaussian(
                lambda: _real_gradient(X, BOX, model, 1.0), size=model.size, sensitivity=2 * LATTICE, rho=rho
            )

    claim = DPGAN.fit(low, **(SETTINGS | {"epochs": 1})).guarantee
    report = attack(release, low, high, claim=claim, score=lambda found: found.values @ moved, runs=300)
    assert not report.broken


def test_guarantees():
    X = np.random.default_rng(0).normal(size=(64, 2))
    certified = DPGAN.fit(X, **SETTINGS).guarantee
    assert certified.certified
    assert certified.neighbours == "replace"
    assert certified.epsilon <= 5.0
    claimed = DPGAN.fit(X, **SETTINGS, accountant="moments").guarantee
    assert not claimed.certified
    assert "coin" in claimed.reason
    with seeded_noise(0):
        assert not DPGAN.fit(X, **SETTINGS).guarantee.certified


def test_the_moments_accountant_agrees_with_the_gaussian_mechanism_at_full_batches():
    multiplier, steps, delta = 4.0, 10, 1e-5
    orders = np.arange(2, 129)
    plain = np.min(steps * orders / (2 * multiplier**2) + math.log(1 / delta) / (orders - 1))
    assert sampled_gaussian_epsilon(1.0, multiplier, steps, delta) == pytest.approx(plain)
    assert sampled_gaussian_epsilon(0.01, multiplier, steps, delta) < plain / 5


def test_a_few_steps_move_the_generator_and_repeat_with_a_seed():
    X = np.random.default_rng(0).normal([2.0, 2.0], 0.3, (640, 2))
    with seeded_noise(3):
        first = DPGAN.fit(X, epsilon=1e5, delta=0.1, bounds=BOX, epochs=4, batch_size=32)
    with seeded_noise(3):
        second = DPGAN.fit(X, epsilon=1e5, delta=0.1, bounds=BOX, epochs=4, batch_size=32)
    draws = first.sample(500, random_state=0)
    np.testing.assert_array_equal(draws, second.sample(500, random_state=0))
    assert draws.shape == (500, 2)
    assert (np.abs(draws) <= 4.0).all()
    with seeded_noise(3):
        start = DPGAN.fit(X, epsilon=1e5, delta=0.1, bounds=BOX, epochs=1, batch_size=640)
    before = np.linalg.norm(start.sample(500, random_state=0).mean(axis=0) - 2.0)
    assert np.linalg.norm(draws.mean(axis=0) - 2.0) < before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"bounds": [(1, 0), (0, 1)]}, "bounds"),
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"gradient_bound": 0.0}, "gradient_bound"),
        ({"weight_bound": 2.0}, "weight_bound"),
        ({"accountant": "renyi"}, "accountant"),
        ({"accountant": "moments", "epsilon": 1e-3}, "epsilon is too small"),
    ],
)
def test_bad_input_names_the_parameter(change, message):
    with pytest.raises(ValueError, match=message):
        DPGAN.fit(np.zeros((8, 2)), **(SETTINGS | change))
