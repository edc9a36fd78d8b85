"""What smoothing moves is in the position and in its error: a model of the bias over the bandwidths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import DensitySketch
from fogline.density.modes.smoothing_bias import combine_fits, common_shift, fit_position, skewed_shift
from fogline.testing import seeded_noise

SCALES = np.geomspace(0.2, 2.0, 7)
WIDTH = np.array([1.0])


def read(track, noise):
    """Position, variance and skewness from positions at several bandwidths, whose errors are nearly the same."""
    plain = noise**2 * (0.98 * np.ones((7, 7)) + 0.02 * np.eye(7)) + np.diag((0.01 * SCALES) ** 2)
    fits = [fit_position(track[:, None], law) for law in (plain, plain + skewed_shift(SCALES, WIDTH))]
    mean, _, covariance, skewness = combine_fits(fits, np.array([fit.evidence for fit in fits]), 1.0)
    return float(mean[0]), float(covariance[0, 0]), float(skewness)


def test_a_steady_track_is_symmetric():
    mean, variance, skewness = read(np.full(7, 3.0), 0.05)
    assert mean == pytest.approx(3.0)
    assert skewness < 0.3
    assert variance < 2 * 0.05**2


def test_a_drift_is_taken_back():
    u = SCALES**2 / (SCALES**2 + 1)
    mean, variance, skewness = read(3.0 + 0.6 * u, 0.02)
    assert skewness > 0.9
    assert abs(mean - 3.0) < 2 * variance**0.5
    assert abs(mean - 3.0) < 0.1 < 0.6 * u[-1]


@given(st.floats(-5, 5), st.floats(0.001, 0.2), st.floats(-0.5, 0.5))
@settings(max_examples=50, deadline=None)
def test_the_reading_moves_with_the_data(shift, noise, drift):
    track = drift * SCALES**2 / (SCALES**2 + 1)
    here, there = read(track, noise), read(track + shift, noise)
    assert there[0] - here[0] == pytest.approx(shift, abs=1e-6)
    assert there[1] == pytest.approx(here[1], rel=1e-6)
    assert here[1] > 0


def test_a_common_shift_moves_each_axis_by_itself():
    moved = np.array([[1.0, 2.0], [3.0, 4.0]])
    expected = [[1, 0, 3, 0], [0, 4, 0, 8], [3, 0, 9, 0], [0, 8, 0, 16]]
    np.testing.assert_allclose(common_shift(moved), expected)


def test_ellipses_of_skewed_hills_hold_the_mode_with_a_delta():
    """Fourier sums of two columns: without the bias in the error none of these ellipses held."""
    held, truth = 0, np.array([2.0, 2.1])
    for seed in range(4):
        rng = np.random.default_rng([3, seed])
        records = np.c_[rng.gamma(3, 1.0, 20_000), rng.gamma(4, 0.7, 20_000)]
        with seeded_noise(seed):
            modes = DensitySketch([(0, 20), (0, 15)]).update(records).release(epsilon=1.0, delta=1e-6).modes()
        assert len(modes.positions) == 1
        away = modes.positions[0] - truth
        held += away @ np.linalg.solve(modes.covariances[0], away) < 5.99
        assert np.sqrt(np.trace(modes.covariances[0])) < 0.5
    assert held >= 3


def test_intervals_of_a_mode_at_an_edge_hold_it():
    """A least price: a kernel moves the top by its own width, and without a term for that none of these held."""
    held = 0
    for seed in range(5):
        price = 20 + np.abs(np.random.default_rng([4, seed]).normal(0, 12, 5000))
        with seeded_noise(seed):
            modes = DensitySketch([(0, 100)], features="leaves").update(price[:, None]).release(epsilon=1.0).modes()
        assert len(modes.positions) == 1
        error = np.sqrt(modes.covariances[0, 0, 0])
        held += abs(modes.positions[0, 0] - 20) < 1.96 * error
        assert error < 4
    assert held >= 4
