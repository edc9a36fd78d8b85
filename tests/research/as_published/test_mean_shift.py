"""Plain mean shift and the helpers it shares with DP-GRAMS."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from fogline.datasets.simulated import gaussian_mixture4
from fogline_research.as_published import mean_shift
from fogline_research.as_published.dp_grams import (
    data_scale,
    kernel_density,
    kernel_weights,
    merge_to_count,
    merge_within,
    row_blocks,
    silverman_bandwidth,
)
from fogline_research.metrics import matching_mse

pytestmark = pytest.mark.quick


def test_finds_the_papers_modes():
    sample = gaussian_mixture4(1000, random_state=0)
    result = mean_shift(sample.X, n_modes=4)
    assert matching_mse(sample.centers, result.modes) < 0.03
    assert result.n_steps == math.ceil(math.log(1000))
    assert result.bandwidth == silverman_bandwidth(sample.X)
    assert result.raw_modes.shape == (1000, 2)


def test_one_step_is_the_weighted_mean():
    X = np.array([0.0, 1.0, 4.0])
    weights = np.exp(-0.5 * (X - X[:, None]) ** 2 / 4.0)
    expected = weights @ X / weights.sum(axis=1)
    result = mean_shift(X, bandwidth=2.0, n_steps=1, merge_factor=1e-9)
    np.testing.assert_allclose(result.raw_modes[:, 0], expected)


def test_many_steps_end_where_the_gradient_vanishes():
    X = gaussian_mixture4(300, random_state=1).X
    result = mean_shift(X, bandwidth=1.0, n_steps=300)
    assert len(result.modes) == 4
    step = 1e-4
    for e in step * np.eye(2):
        slope = kernel_density(result.modes + e, X, 1.0) - kernel_density(result.modes - e, X, 1.0)
        assert np.abs(slope / (2 * step)).max() < 1e-5


def test_max_starts_draws_a_subset():
    X = gaussian_mixture4(300, random_state=1).X
    few = mean_shift(X, n_modes=4, max_starts=40, random_state=0)
    assert few.raw_modes.shape == (40, 2)
    assert mean_shift(X, n_modes=4, max_starts=1000).raw_modes.shape == (300, 2)


def test_says_that_it_is_not_private():
    result = mean_shift([0.0, 1.0])
    assert result.guarantee.certified is False
    assert result.guarantee.epsilon == math.inf
    assert str(result.guarantee).startswith("Not private")
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.modes = None
    with pytest.raises(ValueError, match="read-only"):
        result.modes[0] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_modes": 0}, "n_modes"),
        ({"merge_factor": -1.0}, "merge_factor"),
        ({"max_starts": 0}, "max_starts"),
    ],
)
def test_bad_input_names_the_parameter(change, message):
    with pytest.raises(ValueError, match=message):
        mean_shift([0.0, 1.0], **change)


# --- helpers --------------------------------------------------------------------------------------------


def test_weights_sum_to_one_even_far_away():
    X = np.random.default_rng(0).normal(size=(50, 3))
    weights, totals = kernel_weights(np.vstack([X, 1e6 + X]), X, 0.1)
    np.testing.assert_allclose((weights / totals).sum(axis=1), 1.0)
    np.testing.assert_array_equal(weights.max(axis=1), 1.0)


def test_density_integrates_to_one():
    X = np.random.default_rng(0).normal(size=(30, 1))
    grid = np.linspace(-8, 8, 2001)[:, None]
    assert np.trapezoid(kernel_density(grid, X, 0.5), grid[:, 0]) == pytest.approx(1.0)


def test_blocks_cover_every_row_once():
    for rows, columns in [(10, 3), (1000, 5000), (3, 10**9)]:
        covered = np.concatenate([np.arange(rows)[block] for block in row_blocks(rows, columns)])
        np.testing.assert_array_equal(covered, np.arange(rows))


def test_silverman_by_hand():
    X = np.array([[0.0], [2.0]])  # variance 1, n = 2, d = 1
    assert data_scale(X) == 1.0
    assert silverman_bandwidth(X) == pytest.approx((4 / 6) ** 0.2)
    assert data_scale(np.ones((4, 2))) == 1.0


def test_merges_put_the_largest_group_first():
    points = np.array([[9.0], [0.0], [0.1], [0.2], [5.0], [5.2]])
    expected = [[0.1], [5.1], [9.0]]
    np.testing.assert_allclose(merge_to_count(points, 3), expected)
    np.testing.assert_allclose(merge_within(points, 0.3), expected)


def test_merge_to_more_modes_than_points_changes_nothing():
    points = np.array([[3.0], [1.0]])
    np.testing.assert_array_equal(merge_to_count(points, 5), points)


@pytest.mark.parametrize(("radius", "groups"), [(0.05, 4), (0.15, 2), (10.0, 1)])
def test_merge_radius(radius, groups):
    assert len(merge_within(np.array([[0.0], [0.1], [5.0], [5.1]]), radius)) == groups


def test_merging_keeps_duplicates_together():
    assert merge_within(np.zeros((5, 2)), 1e-9).tolist() == [[0.0, 0.0]]
    assert merge_to_count(np.zeros((5, 2)), 2).shape[0] <= 2
