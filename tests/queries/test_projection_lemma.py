"""The robustness lemma of private projections, in numbers: projected means stay where they were."""

import numpy as np
import pytest

from fogline import private_pca
from fogline.testing import seeded_noise
from fogline_research.datasets.separated import separated_mixture


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_projected_means_move_no_further_than_the_lemma_says(epsilon):
    k, d, n = 4, 30, 20_000
    mixture = separated_mixture(d, k, separation=30.0, random_state=3)
    X, labels = mixture.sample(n, random_state=4)
    reach = float(np.abs(X).max())
    with seeded_noise(5):
        found, _ = private_pca(X, epsilon=epsilon, delta=1e-6, bounds=(-reach, reach), components=k)
    directions = found.projection.components
    X = X - found.projection.mean  # the projection is about the released mean
    means = np.array([X[labels == j].mean(axis=0) for j in range(k)])
    residue = X - X @ directions.T @ directions
    exact = np.linalg.svd(X, compute_uv=False) ** 2
    excess = max(0.0, float(np.linalg.norm(residue, 2)) ** 2 - float(exact[k]))
    within = float(np.linalg.norm(X - means[labels], 2))
    moved = np.linalg.norm(means - means @ directions.T @ directions, axis=1)
    counts = np.bincount(labels)
    assert np.all(moved <= within / np.sqrt(counts) + np.sqrt(excess / counts) + 1e-6)
    assert np.all(moved < 3.0)  # far less than the 30 standard deviations that separate them
