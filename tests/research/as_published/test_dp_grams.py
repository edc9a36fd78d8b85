"""DP-GRAMS as published: the formulas by hand, the regimes, the parts of Algorithm 1, and refusals."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from fogline.datasets.simulated import gaussian_mixture4
from fogline_research.as_published import dp_grams
from fogline_research.as_published.dp_grams import (
    _draw_batches,
    _draw_starts,
    _mean_clipped_terms,
    choose_regime,
    clip_norm,
    kernel_density,
    kernel_factor,
    noise_scale,
    noise_scale_small_epsilon,
    privacy_constant,
)
from fogline_research.metrics import matching_mse

PRIVACY = {"epsilon": 1.0, "delta": 1e-5}


@pytest.fixture(scope="module", name="sample")
def _sample():
    return gaussian_mixture4(600, random_state=0)


# --- equations (2) to (4) -------------------------------------------------------------------------------


def test_equation_2_by_hand():
    # n = 100, m = 20, T = 2, epsilon = 4, delta = 0.02: every part small enough to follow.
    epsilon_step = 4.0 / math.sqrt(16.0 * math.log(100.0))  # 0.46599...
    assert epsilon_step == pytest.approx(0.465991, abs=1e-6)
    amplified = math.log(1.0 + 5.0 * (math.exp(epsilon_step) - 1.0))
    expected = (3.0 / 20.0) / amplified * math.sqrt(8.0 * math.log(50.0))  # 2.5 * 20 * 2 / (100 * 0.02) = 50
    sigma = noise_scale(clip=3.0, n=100, m=20, n_steps=2, epsilon=4.0, delta=0.02)
    assert sigma == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("h", "d", "p_min", "expected"),
    [
        (0.5, 1, None, 1.0),
        (0.5, 2, None, 2.0),
        (0.5, 3, None, 4.0),
        (0.5, 1, 0.25, 2.0),  # V_1 = 2
        (0.5, 2, 0.1, 2.0 / (0.1 * math.pi)),  # V_2 = pi
        (2.0, 3, 0.1, 0.25 / (0.1 * 4.0 * math.pi / 3.0)),  # V_3 = 4 pi / 3
    ],
)
def test_equation_3_clip(h, d, p_min, expected):
    assert clip_norm(bandwidth=h, d=d, p_min=p_min) == pytest.approx(expected)


def test_large_epsilon_does_not_overflow():
    setting = {"clip": 1.0, "n": 1000, "m": 100, "n_steps": 7, "delta": 1e-5}
    step = 1e5 / math.sqrt(56 * math.log(2e5))
    expected = 0.01 / (step + math.log(10)) * math.sqrt(8 * math.log(2.5 * 0.7 / 1e-5))
    assert noise_scale(epsilon=1e5, **setting) == pytest.approx(expected)


def test_extreme_clips():
    with pytest.raises(ValueError, match=r"bandwidth=0\.001 is too small for d=200"):
        clip_norm(bandwidth=0.001, d=200)
    X = np.random.default_rng(0).normal(size=(20, 784))
    gone = dp_grams(X, **PRIVACY, bandwidth=258.0, initial_fraction=1.0, random_state=0)
    assert gone.clip == gone.noise_scale == 0.0
    np.testing.assert_array_equal(gone.raw_modes, X)


def test_equation_4_is_the_limit_of_equation_2():
    setting = {"clip": 1.3, "n": 5000, "m": 588, "n_steps": 9, "delta": 1e-5}
    ratios = [
        noise_scale(epsilon=e, **setting) / noise_scale_small_epsilon(epsilon=e, **setting) for e in (1.0, 1e-2, 1e-4)
    ]
    assert ratios[2] == pytest.approx(1.0, abs=1e-4)
    assert abs(ratios[2] - 1) < abs(ratios[1] - 1) < abs(ratios[0] - 1)


def test_result_reports_the_formulas(sample):
    result = dp_grams(sample.X, **PRIVACY, bandwidth=0.8, p_min=0.1, random_state=0)
    n, m, steps = 600, math.ceil(600 / math.log(600)), math.ceil(math.log(600))
    assert result.bandwidth == 0.8
    assert result.clip == pytest.approx(1.25 / (0.1 * math.pi))
    assert result.noise_scale == noise_scale(clip=result.clip, n=n, m=m, n_steps=steps, **PRIVACY)


# --- bandwidth regimes ----------------------------------------------------------------------------------

SETTING = {"n": 1000, "d": 2, "m": 145, "n_steps": 7, "delta": 1e-5}


def test_cutoffs_17_and_18():
    constant = 7 * 2 * 64 * math.log(2e5) * math.log(2.5 * 145 * 7 / (1000 * 1e-5))
    assert privacy_constant(**SETTING) == pytest.approx(constant)
    regime = choose_regime(epsilon=1.0, **SETTING)
    log_n = math.log(1000)
    assert regime.epsilon_non == pytest.approx(math.sqrt(constant) / (1000 ** (3 / 8) * log_n))
    assert regime.epsilon_dp == pytest.approx(math.sqrt(constant) * 1000 ** (-3 / 8) * log_n ** (-5 / 8))
    assert regime.epsilon_dp / regime.epsilon_non == pytest.approx(log_n ** (3 / 8))


@pytest.mark.parametrize(
    ("factor", "name"), [(0.99, "strong privacy"), (1.01, "intermediate"), (100.0, "weak privacy")]
)
def test_regimes_lie_between_the_cutoffs(factor, name):
    lower = choose_regime(epsilon=1.0, **SETTING).epsilon_non
    regime = choose_regime(epsilon=factor * lower, **SETTING)
    assert regime.name == name
    constant = privacy_constant(**SETTING)
    if name == "strong privacy":
        assert regime.rate == pytest.approx((constant / (1000 * factor * lower) ** 2) ** (1 / 10))
    else:
        assert regime.rate == pytest.approx((math.log(1000) / 1000) ** (1 / 8))


def test_upper_cutoff_separates_intermediate_from_weak():
    upper = choose_regime(epsilon=1.0, **SETTING).epsilon_dp
    assert choose_regime(epsilon=0.99 * upper, **SETTING).name == "intermediate"
    assert choose_regime(epsilon=1.01 * upper, **SETTING).name == "weak privacy"


def test_bandwidth_follows_the_units_of_the_data(sample):
    one = dp_grams(sample.X, **PRIVACY, random_state=0)
    ten = dp_grams(10.0 * sample.X, **PRIVACY, random_state=0)
    assert ten.bandwidth == pytest.approx(10.0 * one.bandwidth)
    assert one.regime == ten.regime == "strong privacy"
    assert one.cutoffs[0] < one.cutoffs[1]


# --- the parts of Algorithm 1 ---------------------------------------------------------------------------


def test_terms_are_the_papers_q(sample):
    """Full batch, no clip: the mean of q_i is h^2 times the gradient of log p-hat, by finite differences."""
    points, h, step = sample.X[:5], 0.7, 1e-5
    mean = _mean_clipped_terms(points, sample.X, bandwidth=h, clip=1e9, m=600, rng=np.random.default_rng(0))
    for axis, e in enumerate(step * np.eye(2)):
        up = np.log(kernel_density(points + e, sample.X, h))
        down = np.log(kernel_density(points - e, sample.X, h))
        np.testing.assert_allclose(mean[:, axis], h**2 * (up - down) / (2 * step), rtol=1e-6, atol=1e-8)


def test_terms_are_clipped_one_by_one():
    X = np.array([[0.0], [1.0], [3.0]])
    h, clip, x = 1.0, 0.4, 0.5
    kernel = np.exp(-0.5 * (X[:, 0] - x) ** 2)
    density = kernel.sum() / (3 * math.sqrt(2 * math.pi))
    q = h**2 * (X[:, 0] - x) * kernel / math.sqrt(2 * math.pi) / h**3 / density
    assert (np.abs(q) > clip).any()
    assert (np.abs(q) < clip).any()
    mean = _mean_clipped_terms(np.array([[x]]), X, bandwidth=h, clip=clip, m=3, rng=np.random.default_rng(0))
    assert mean[0, 0] == pytest.approx(np.clip(q, -clip, clip).mean())


def test_batches_average_to_the_full_sum(sample):
    points = np.repeat(sample.X[:1], 3000, axis=0)
    settings = {"bandwidth": 0.8, "clip": 1.2, "rng": np.random.default_rng(0)}
    full = _mean_clipped_terms(points[:1], sample.X, m=600, **settings)[0]
    batches = _mean_clipped_terms(points, sample.X, m=60, **settings)
    error = batches.std(axis=0) / math.sqrt(3000)
    assert (np.abs(batches.mean(axis=0) - full) < 4.5 * error).all()
    assert len(np.unique(batches, axis=0)) == 3000, "every start has a batch of its own"


@pytest.mark.parametrize("n", [40, 2500])
def test_batches_are_uniform_without_replacement(n):
    batches = _draw_batches(2000, n, n // 4, np.random.default_rng(0))
    assert batches.shape == (2000, n // 4)
    assert all(len(set(batch)) == n // 4 for batch in batches[:50].tolist())
    counts = np.bincount(batches.ravel(), minlength=n)
    assert abs(counts - 500).max() < 6 * math.sqrt(2000 * 0.25 * 0.75)
    np.testing.assert_array_equal(_draw_batches(2, n, n, np.random.default_rng(0)), [range(n)] * 2)


def test_noise_is_correlated_as_the_kernel_of_the_starts():
    starts, h = np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 0.0], [9.0, 9.0]]), 0.7
    factor = kernel_factor(starts, h)
    distance = ((starts[:, None] - starts) ** 2).sum(axis=2)
    np.testing.assert_allclose(factor @ factor.T, np.exp(-distance / (2 * h**2)), atol=1e-9)
    assert factor.shape[1] == 3, "starts that coincide share their noise"


def test_noise_reaches_the_output_with_its_scale():
    """A start alone far from the data is not moved by it: only noise, T steps of it."""
    X = np.zeros((50, 1))
    X[0] = 1e6
    ends = [dp_grams(X, **PRIVACY, bandwidth=1.0, starts=[[1e6]], n_steps=4, random_state=seed) for seed in range(300)]
    moved = np.array([end.raw_modes[0, 0] - 1e6 for end in ends])
    expected = 0.5 * 2.0 * ends[0].noise_scale  # step size times the root of four steps
    # its own pull back to 1e6 is clipped at 1 and shared among the batch: it shrinks the spread a little
    assert 0.5 * expected < moved.std() < 1.2 * expected


def test_starts_by_number_and_by_coin():
    X = np.arange(1000.0)[:, None]
    rng = np.random.default_rng(0)
    assert len(_draw_starts(X, "fixed", 0.0371, rng)) == 37
    assert len(_draw_starts(X, "fixed", 1e-9, rng)) == 1
    assert len(_draw_starts(X, "bernoulli", 1e-9, rng)) == 1
    sizes = {len(_draw_starts(X, "bernoulli", 0.1, rng)) for _ in range(20)}
    assert len(sizes) > 1
    assert all(50 < size < 150 for size in sizes)
    assert len(_draw_starts(X, "bernoulli", 1.0, rng)) == 1000


def test_density_filter_keeps_the_high_starts(sample):
    X = np.concatenate([sample.X, [[30.0, 30.0]]])
    everything = dp_grams(X, **PRIVACY, initial_fraction=1.0, random_state=0)
    filtered = dp_grams(X, **PRIVACY, initial_fraction=1.0, density_filter=0.3, random_state=0)
    density = kernel_density(X, X, everything.bandwidth)
    assert len(everything.raw_modes) == 601
    assert len(filtered.raw_modes) == (density >= 0.3 * density.max()).sum() < 601
    assert len(dp_grams(X, **PRIVACY, density_filter=1.0, random_state=0).raw_modes) == 1


# --- the whole ------------------------------------------------------------------------------------------


def test_finds_the_modes_at_large_epsilon():
    errors = []
    for seed in range(3):
        sample = gaussian_mixture4(1000, random_state=seed)
        result = dp_grams(sample.X, epsilon=5.0, delta=1e-5, n_modes=4, random_state=seed)
        errors.append(matching_mse(sample.centers, result.modes))
    assert np.mean(errors) < 3 * 0.016 * 1.5  # three times the paper's 0.016, and room for three runs


def test_error_falls_with_epsilon(sample):
    errors = [
        matching_mse(
            sample.centers,
            dp_grams(sample.X, epsilon=epsilon, delta=1e-5, n_modes=4, random_state=0).modes,
        )
        for epsilon in (0.1, 1.0, 10.0)
    ]
    assert errors[0] > errors[1] > errors[2]


def test_unknown_number_of_modes(sample):
    # almost no noise, hardly a clip and many steps: what remains is mean shift
    options = {
        "epsilon": 1e5,
        "delta": 1e-5,
        "bandwidth": 1.0,
        "p_min": 1e-3,
        "n_steps": 100,
        "random_state": 0,
    }
    assert len(dp_grams(sample.X, **options).modes) == 4
    assert len(dp_grams(sample.X, **options, merge_factor=20.0).modes) == 1


def test_result_is_frozen_and_not_certified(sample):
    result = dp_grams(sample.X, **PRIVACY, n_modes=4, random_state=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.modes = None
    with pytest.raises(ValueError, match="read-only"):
        result.raw_modes[0, 0] = 0.0
    guarantee = result.guarantee
    assert guarantee.certified is False
    assert guarantee.neighbours == "replace"
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-5)
    for gap in ("raw records", "does not bound the sensitivity", "p_min", "filter and the bandwidth"):
        assert gap in guarantee.reason


def test_a_seed_repeats_and_the_data_stay_as_they_were(sample):
    before = sample.X.copy()
    first = dp_grams(sample.X, **PRIVACY, random_state=5)
    second = dp_grams(sample.X, **PRIVACY, random_state=5)
    np.testing.assert_array_equal(first.raw_modes, second.raw_modes)
    np.testing.assert_array_equal(sample.X, before)


@pytest.mark.parametrize("X", [[[1.0]], [[1.0, 2.0], [1.0, 2.0]], np.zeros((5, 3)), [0.0, 1.0, 2.0]])
def test_tiny_and_constant_data(X):
    result = dp_grams(X, **PRIVACY, n_modes=2, initial_fraction=1.0, random_state=0)
    assert np.isfinite(result.modes).all()
    assert 1 <= len(result.modes) <= 2


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": math.inf}, ValueError, "epsilon"),
        ({"delta": 0.0}, ValueError, "delta"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"n_modes": 0}, ValueError, "n_modes"),
        ({"n_modes": 2.5}, TypeError, "n_modes"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth"),
        ({"initial_fraction": 0.0}, ValueError, "initial_fraction"),
        ({"initial_fraction": 1.5}, ValueError, "initial_fraction"),
        ({"density_filter": 1.5}, ValueError, "density_filter"),
        ({"p_min": 0.0}, ValueError, "p_min"),
        ({"step_size": 0.0}, ValueError, "step_size"),
        ({"batch_size": 601}, ValueError, "batch_size"),
        ({"n_steps": 0}, ValueError, "n_steps"),
        ({"merge_factor": 0.0}, ValueError, "merge_factor"),
        ({"starts": "random"}, ValueError, "starts"),
        ({"starts": [[1.0, 2.0, 3.0]]}, ValueError, "starts"),
        ({"batch_size": 1, "n_steps": 1, "delta": 0.9}, ValueError, "delta"),
    ],
)
def test_bad_input_names_the_parameter(sample, change, kind, message):
    with pytest.raises(kind, match=message):
        dp_grams(sample.X, **(PRIVACY | change), random_state=0)


@pytest.mark.parametrize("X", [np.empty((0, 2)), [[math.nan, 0.0]], np.zeros((2, 2, 2))])
def test_bad_records(X):
    with pytest.raises(ValueError, match="X must"):
        dp_grams(X, **PRIVACY)


def test_the_largest_step_of_the_theorem_is_a_constant_over_the_squared_bandwidth():
    X = np.random.default_rng(0).normal(size=(60, 2))
    shared = {"epsilon": 1.0, "delta": 1e-5, "bandwidth": 0.5, "random_state": 3}
    fixed, scaled, other = (
        dp_grams(X, **shared, **step).raw_modes
        for step in ({"step_size": 0.4}, {"step_constant": 0.1}, {"step_constant": 0.2})
    )
    np.testing.assert_array_equal(fixed, scaled)
    assert not np.array_equal(fixed, other)
    with pytest.raises(ValueError, match="step_constant"):
        dp_grams(X, **shared, step_constant=0.0)
