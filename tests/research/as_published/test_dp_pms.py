"""Partial mean shift and DP-PMS as published: Algorithm 2 by hand, the paper's tables, the leaks, and refusals."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from fogline_research.as_published import dp_pms, partial_mean_shift
from fogline_research.as_published.dp_grams import kernel_factor
from fogline_research.as_published.mean_shift import step_noise
from fogline_research.audit_campaign.as_published import check_published_regression

PRIVACY = {"epsilon": 1.0, "delta": 1e-5}


def sinusoids(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The supplement's second data set."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    upper = np.arange(n) < n // 2
    return x, 1.5 * upper + 0.5 * np.sin(3 * np.pi * x) + rng.normal(scale=0.15, size=n)


@pytest.mark.parametrize("kernel_at", ["responses", "iterates"])
def test_two_steps_by_hand(kernel_at):
    x, y = np.array([0.0, 0.3, 1.0]), np.array([0.0, 1.0, 0.5])
    ends = y
    for _ in range(2):
        centres = y if kernel_at == "responses" else ends
        weights = np.exp(-0.5 * (((x[:, None] - x) / 0.4) ** 2 + ((ends[:, None] - centres) / 0.7) ** 2))
        ends = weights @ y / weights.sum(axis=1)
    result = partial_mean_shift(x, y, bandwidth=(0.4, 0.7), n_steps=2, kernel_at=kernel_at)
    np.testing.assert_allclose(result.branches, ends, rtol=1e-12)
    np.testing.assert_array_equal(result.x.ravel(), x)


def test_dp_pms_is_partial_mean_shift_with_correlated_noise():
    x, y = sinusoids(50, 0)
    result = dp_pms(x, y, **PRIVACY, n_steps=1, random_state=4)
    quiet = partial_mean_shift(x, y, n_steps=1, kernel_at="iterates")
    factor = kernel_factor(y[:, None], result.bandwidths[1])
    noise = result.noise_scale * factor @ np.random.default_rng(4).standard_normal(factor.shape[1])
    np.testing.assert_allclose(result.branches, quiet.branches + noise, rtol=1e-12)
    twins = dp_pms([0.0, 1.0], [2.0, 2.0], **PRIVACY, n_steps=1, bandwidth=1.0, random_state=0).branches
    assert twins[0] == pytest.approx(twins[1], abs=1e-12)  # the noise knows the response only, not the predictor


def test_noise_by_hand():
    setting = {"n": 100, "bandwidth": 0.5, "epsilon": 2.0, "delta": 0.01, "n_steps": 4}
    clip = 1 / (math.sqrt(2 * math.pi) * 0.5)
    assert step_noise(**setting) == pytest.approx(2 * clip / 200 * math.sqrt(2 * math.log(125)))
    step = 2 / math.sqrt(32 * math.log(200))
    expected = 2 * clip / (100 * step) * math.sqrt(2 * math.log(1.25 * 8 / 0.01))
    assert step_noise(**setting, compose=True) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "epsilon", "printed"), [(200, 1.0, 0.0051), (500, 0.2, 0.0368), (500, 1.0, 0.0015)])
def test_the_tables_within_a_factor_of_two(n, epsilon, printed):
    errors = []
    for seed in range(12):
        x, y = sinusoids(n, seed)
        found = dp_pms(x, y, epsilon=epsilon, delta=1e-5, random_state=seed).branches
        errors.append(np.mean((found - partial_mean_shift(x, y, kernel_at="iterates").branches) ** 2))
    assert printed / 2 < np.mean(errors) < 2 * printed


def test_with_composition_the_tables_are_out_of_reach():
    x, y = sinusoids(500, 0)
    found = dp_pms(x, y, **PRIVACY, compose=True, random_state=0)
    error = np.mean((found.branches - partial_mean_shift(x, y, kernel_at="iterates").branches) ** 2)
    assert error > 50 * 0.0015


def test_conditional_modes_of_a_sinusoid():
    x, y = sinusoids(1500, 1)
    queries = np.linspace(0.1, 0.9, 9)
    lower = 0.5 * np.sin(3 * np.pi * queries)
    for modes, low in zip(partial_mean_shift(x, y).predict_modes(queries), lower, strict=True):
        np.testing.assert_allclose(modes, [low, low + 1.5], atol=0.25)


def test_a_mesh_starts_elsewhere():
    x, y = sinusoids(300, 2)
    mesh = [[0.5, -9.0], [0.5, 9.0]]
    for result in (partial_mean_shift(x, y, mesh=mesh), dp_pms(x, y, epsilon=50.0, delta=1e-5, mesh=mesh)):
        low, high = result.branches
        assert low < 0.2
        assert high > 0.8


def test_two_predictors():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 2))
    result = partial_mean_shift(X, X.sum(axis=1) + 0.05 * rng.normal(size=400))
    (modes,) = result.predict_modes([[0.5, 0.5]])
    np.testing.assert_allclose(modes, [1.0], atol=0.1)


def test_results_are_frozen_and_not_certified():
    x, y = sinusoids(60, 0)
    private, plain = dp_pms(x, y, **PRIVACY, random_state=0), partial_mean_shift(x, y)
    for result in (private, plain):
        assert not result.guarantee.certified
        assert not result.branches.flags.writeable
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.branches = None
    for gap in ("starts from a raw response", "does not clip it", "whole epsilon in every step"):
        assert gap in private.guarantee.reason
    assert (plain.noise_scale, private.guarantee.epsilon) == (0.0, 1.0)


def test_every_attack_succeeds():
    lines = list(check_published_regression(0, True))
    assert len(lines) == 4
    assert all(line.passed for line in lines), lines


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epsilon": math.inf}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"bandwidth": (1.0, 1.0, 1.0)}, "bandwidth"),
        ({"n_steps": 0}, "n_steps"),
        ({"kernel_at": "nowhere"}, "kernel_at"),
        ({"mesh": [[1.0]]}, "mesh"),
    ],
)
def test_bad_parameters_are_named(options, name):
    with pytest.raises((ValueError, TypeError), match=name):
        dp_pms([0.0, 1.0], [0.0, 1.0], **{**PRIVACY, **options})


@pytest.mark.parametrize(
    ("X", "y", "name"), [([], [], "X"), ([0.0], [np.nan], "y"), ([0.0, 1.0], [1.0], "y"), ([0.0], [[1.0, 2.0]], "y")]
)
def test_bad_records(X, y, name):
    with pytest.raises(ValueError, match=f"{name} must"):
        partial_mean_shift(X, y)


def test_one_record():
    assert dp_pms([0.0], [1.0], **PRIVACY, random_state=0).branches.shape == (1,)
