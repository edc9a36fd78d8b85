"""Mixtures matched to released random features."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from fogline import DensitySketch
from fogline.density.components.matching import _Match, fit_characteristic_function
from fogline.density.components.pursuit import ClusterPrior, matching_pursuit
from fogline.testing import seeded_noise

MEANS = np.array([[-2.0, 0.0, 0.0, 0.5], [2.0, 0.0, 1.0, -0.5]])
SPREADS = np.array([[1.0, 0.4, 0.5, 0.6], [0.5, 0.8, 0.4, 0.6]])


@pytest.fixture(scope="module")
def density():
    rng = np.random.default_rng(0)
    labels = rng.choice(2, size=40000, p=[0.6, 0.4])
    rows = MEANS[labels] + SPREADS[labels] * rng.normal(size=(40000, 4))
    with seeded_noise(0):
        return DensitySketch([(-6, 6)] * 4, features=512).update(rows).release(epsilon=2.0, delta=1e-6)


def start(density, k):
    return matching_pursuit(density, k, ClusterPrior.of_box(np.full(4, -6.0), np.full(4, 6.0), (0.01, 4.0)))


def test_slopes_are_those_of_the_loss(density):
    task = _Match.of(density)
    rng = np.random.default_rng(1)
    factors = np.tril(0.1 * rng.normal(size=(3, 4, 4))) + np.eye(4)
    flat = task.packed(np.array([0.3, 0.3, 0.4]), rng.normal(size=(3, 4)), factors)
    size = np.linalg.norm(task.loss(flat, 3)[1])
    off = check_grad(lambda x: task.loss(x, 3)[0], lambda x: task.loss(x, 3)[1], flat)
    assert off < 1e-4 * size


def test_shapes_are_found(density):
    found = fit_characteristic_function(density, start(density, 2))
    np.testing.assert_allclose(found.weights, [0.6, 0.4], atol=0.03)
    np.testing.assert_allclose(found.means, MEANS, atol=0.15)
    np.testing.assert_allclose(np.sqrt(np.einsum("kii->ki", found.covariances)), SPREADS, atol=0.15)


def test_the_criterion_knows_how_many(density):
    values = [fit_characteristic_function(density, start(density, k)).criterion for k in (1, 2, 3, 4)]
    assert int(np.argmin(values)) == 1


def test_no_component_at_all(density):
    assert fit_characteristic_function(density, start(density, 0)).weights.shape == (0,)
