"""Greedy pursuit of clusters in released random features."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from fogline import DensitySketch
from fogline.density.components.pursuit import ClusterPrior, _Task, matching_pursuit
from fogline.testing import seeded_noise

BOX = [(-5.0, 5.0)] * 4
FRAME = ClusterPrior.of_box(np.full(4, -5.0), np.full(4, 5.0), (0.01, 4.0))
CENTRES = np.array([[-2, -2, 0, 0], [2, -2, 0, 1], [0, 2, 1, -1.0]])


def released(n=6000, seed=0, centres=CENTRES, epsilon=1.0):
    rng = np.random.default_rng(seed)
    X = centres[rng.integers(len(centres), size=n)] + 0.5 * rng.normal(size=(n, 4))
    with seeded_noise(seed):
        return DensitySketch(BOX, features=512).update(X).release(epsilon=epsilon, delta=1e-6)


@pytest.mark.parametrize("k", [3, None])
def test_clusters_are_found_where_they_are(k):
    found = matching_pursuit(released(), k, FRAME)
    assert len(found.weights) == 3
    distance = np.linalg.norm(found.centres[:, None] - CENTRES, axis=2)
    assert sorted(distance.argmin(axis=1)) == [0, 1, 2]
    assert distance.min(axis=1).max() < 0.3
    np.testing.assert_allclose(found.weights, 1 / 3, atol=0.06)
    np.testing.assert_allclose(found.variances, 0.25, atol=0.12)
    assert (found.heights > 5).all()
    assert found.misfit < 2


def test_errors_are_as_large_as_they_are_said_to_be():
    ratios = []
    for seed in range(6):
        found = matching_pursuit(released(seed=seed), 3, FRAME)
        order = np.linalg.norm(found.centres[:, None] - CENTRES, axis=2).argmin(axis=1)
        drawn = 0.25 / 2000
        ratios.append(((found.centres - CENTRES[order]) ** 2 / (found.centre_variances + drawn)).mean())
    assert 0.3 < np.mean(ratios) < 3


def test_the_same_release_gives_the_same_answer():
    density = released()
    first, second = matching_pursuit(density, 2, FRAME), matching_pursuit(density, 2, FRAME)
    assert first.centres.tobytes() == second.centres.tobytes()


def test_noise_alone_shows_nothing():
    with seeded_noise(3):
        density = DensitySketch(BOX, features=512).update(np.zeros((0, 4))).release(epsilon=1.0, delta=1e-6)
    assert len(matching_pursuit(density, None, FRAME).weights) <= 1


@pytest.mark.parametrize("known", [True, False])
def test_slopes_are_those_of_the_loss(known):
    frame = ClusterPrior(
        FRAME.lower, FRAME.upper, (0.01, 4.0), np.zeros(4), np.full(4, 0.1), np.full(4, 2.0), np.full(4, 0.2)
    )
    task = _Task.of(released(500), frame, known=known)
    atoms = np.column_stack([CENTRES + 0.3, np.full(3, -1.0), [0.2, 0.3, 0.4]]).ravel()
    size = np.linalg.norm(task.loss(atoms)[1])
    error = check_grad(lambda p: task.loss(p)[0], lambda p: task.loss(p)[1], atoms)
    assert error < 1e-4 * size
