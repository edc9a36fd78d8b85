"""Basins of a released density: who owns which place, and how much mass lies there."""

from __future__ import annotations

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.density.modes.peaks import basins
from fogline.testing import seeded_noise


def released(X, bounds, epsilon=1.0, seed=0):
    with seeded_noise(seed):
        return DensitySketch(bounds).update(X).release(epsilon=epsilon, delta=1e-6)


def clouds(d, n=20_000):
    rng = np.random.default_rng(0)
    near, far = rng.normal(-2.5, 0.7, (3 * n // 4, d)), rng.normal(2.5, 0.7, (n // 4, d))
    return np.concatenate([near, far]), [[-2.5] * d, [2.5] * d]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_two_clouds_get_their_shares(d):
    X, modes = clouds(d)
    found = basins(released(X, [(-6, 6)] * d), modes)
    assert found.labels.shape == found.grid.values.shape
    assert set(np.unique(found.labels)) == {-1, 0, 1}
    np.testing.assert_allclose(found.shares, [0.75, 0.25], atol=0.03)
    assert np.all((found.share_errors > 0) & (found.share_errors < 0.05))
    middle = tuple(int(np.argmin(abs(a - m))) for a, m in zip(found.grid.axes, modes[1], strict=True))
    assert found.labels[middle] == 1


def test_no_modes_no_basins():
    X, _ = clouds(2)
    found = basins(released(X, [(-6, 6)] * 2), np.zeros((0, 2)))
    assert np.all(found.labels == -1)
    assert found.shares.shape == (0,)


def test_a_peak_that_is_no_mode_joins_the_mode_it_leads_to():
    X, modes = clouds(1)
    one = basins(released(X, [(-6, 6)]), modes[:1], bandwidth=0.08)
    assert one.shares[0] == pytest.approx(1.0, abs=0.05)  # the pass between the clouds is above the noise


def test_modes_that_share_a_peak_divide_it():
    X = np.random.default_rng(0).normal(0, 1, (20_000, 1))
    found = basins(released(X, [(-6, 6)]), [[-0.2], [0.2]], bandwidth=0.16)
    np.testing.assert_allclose(found.shares, [0.5, 0.5], atol=0.05)


def test_empty_and_lost_data_give_no_error():
    density = released(np.empty((0, 2)), [(0, 1)] * 2)
    found = basins(density, [[0.5, 0.5]])
    assert np.all(np.isfinite(found.shares))


def test_the_error_of_a_share_is_that_of_repeated_releases():
    X, modes = clouds(1, n=400)
    shares, errors = [], []
    for seed in range(60):
        found = basins(released(X, [(-6, 6)], seed=seed), modes, bandwidth=0.12)
        shares.append(found.shares)
        errors.append(found.share_errors)
    sampling = 0.75 * 0.25 / 400
    privacy = np.sqrt(np.maximum(np.mean(errors, axis=0) ** 2 - sampling, 0))
    np.testing.assert_allclose(np.std(shares, axis=0), privacy, rtol=0.5)
