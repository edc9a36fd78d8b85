"""Ridges fitted to the sums: a curve that smoothing would flatten is found, ends are ends, errors are honest."""

from __future__ import annotations

import numpy as np

from fogline import DensitySketch
from fogline.sketch.branch_fit import fit_ridges
from fogline.sketch.branch_threads import Threads
from fogline.testing import seeded_noise

WIDE = np.array([0.1, 0.3])


def density(x, y, epsilon=1.0, seed=0):
    sketch = DensitySketch([(0.0, 1.0), (-1.5, 3.0)], bandwidths=[[0.04, 0.09], [0.1, 0.225]])
    with seeded_noise(seed):
        return sketch.update(np.column_stack([x, y])).release(epsilon=epsilon, delta=1e-5)


def fitted(released, start):
    x = np.linspace(0, 1, 41)[:, None]
    return x[:, 0], fit_ridges(released, WIDE, x, start(x[:, 0]), np.ones(41), Threads(np.zeros(41, dtype=np.int64), 1))


def test_a_flattened_start_finds_the_curve():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 3000)
    y = 0.7 + 0.5 * np.sin(3 * np.pi * x) + 0.15 * rng.standard_normal(3000)
    places, found = fitted(density(x, y), lambda t: 0.7 + 0.25 * np.sin(3 * np.pi * t))
    off = found.positions - 0.7 - 0.5 * np.sin(3 * np.pi * places)
    assert np.sqrt(np.mean(off**2)) < 0.06
    assert np.mean((off / np.hypot(found.privacy_errors, found.sampling_errors)) ** 2) < 4
    assert found.within.all()
    middle = np.abs(places - 0.5) < 0.3
    np.testing.assert_allclose(found.slopes[middle], 1.5 * np.pi * np.cos(3 * np.pi * places)[middle], atol=1.2)


def test_an_end_is_found_inside_of_the_nodes():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 0.8, 3000)
    y = 1.0 + 0.2 * rng.standard_normal(3000)
    places, found = fitted(density(x, y), np.ones_like)
    assert found.within[places <= 0.75].all()
    assert not found.within[places >= 0.85].any()


def test_nothing_is_fitted_to_sums_that_are_all_noise():
    _, found = fitted(density(np.full(5, 0.5), np.zeros(5), epsilon=0.05), np.ones_like)
    assert found is None
