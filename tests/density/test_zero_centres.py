"""Centres of clusters beside a wall with a point mass: as near to it as the released share of the point mass says."""

import numpy as np

from fogline import DensitySketch
from fogline.testing import seeded_noise


def test_centres_are_not_drawn_to_a_wall_whose_zeros_are_known():
    rng = np.random.default_rng(41)
    n = 9000
    old = rng.random(n) < 0.6
    age = np.where(old, rng.normal(65, 9, n), rng.gamma(4, 2.2, n))
    stay = np.where(rng.random(n) < np.where(old, 0.1, 0.25), 0.0, rng.gamma(2, np.where(old, 3.0, 1.1)))
    sketch = DensitySketch([(0, 110), (0, 60)], features="leaves").update(np.column_stack([age, stay]))
    with seeded_noise(6):
        found = sketch.release(epsilon=1.0).clusters()
    assert len(found.shares) == 2
    label = found.predict(np.column_stack([age, stay]))
    true = np.array([stay[label == k].mean() for k in range(2)])
    away = np.abs(found.centres[:, 1] - true)
    # With all records near the wall taken for zeros, centres were drawn to it, and their errors were larger.
    assert np.all(away < 2.5 * found.centre_errors[:, 1])
    assert np.all(found.centre_errors[:, 1] < 0.25)
    assert away[1] < 0.2
