"""Attacks on estimators that read more than modes: an outlier does not come out, and no score beats the claim."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fogline import PrivateGaussianMixture, PrivateModalRegression, PrivateModeClustering, private_pca
from fogline.audit import attack
from fogline.audit.attack import best_events
from fogline.datasets.simulated import gaussian_mixture4
from fogline.density.components import matching, pursuit
from fogline.testing import seeded_noise

RUNS = 20
FAR = 30.0
BUDGET = {"epsilon": 1.0, "delta": 1e-5, "neighbours": "replace"}


def outlier_pair(d):
    """Four clusters around the middle, and the same with one record far out."""
    plain = gaussian_mixture4(300, random_state=0).X[:, np.arange(d) % 2]
    odd = plain.copy()
    odd[0] = FAR
    return plain, odd


def seeded(fit):
    """Fit with other noise each time, the same in every run of the tests."""
    seeds = itertools.count()

    def release(X):
        with seeded_noise(next(seeds)):
            return fit(X)

    return release


def test_an_outlier_that_always_came_out_would_be_seen():
    assert best_events(np.zeros(RUNS), np.ones(RUNS), 1e-5, 0.99, 0.5)[0].epsilon_lower > 1


@pytest.mark.parametrize(
    ("d", "options"), [(2, {"n_clusters": 4, "bandwidth": 0.1}), (5, {"n_clusters": 2, "refinement": 1})]
)
def test_an_outlier_does_not_come_out_of_private_clusters(d, options):
    release = seeded(PrivateModeClustering(**BUDGET, bounds=(-40, 40), **options).fit)

    def near(fitted):
        return float((np.linalg.norm(fitted.cluster_centers_ - FAR, axis=1) < 3.0).any())

    plain, odd = outlier_pair(d)
    claim = release(plain).guarantee_
    report = attack(release, plain, odd, claim=claim, score=near, threshold=0.5, runs=RUNS)
    assert claim.epsilon == 1.0
    assert not report.broken


def test_an_outlier_does_not_come_out_of_a_private_mixture(monkeypatch):
    # A shorter search: where 60 (100) of 300 records are far out, 4 (9) of 40 fits show them, and 5 (9) with the whole.
    fewer = replace(pursuit.PURSUIT, restarts=1, swaps=1, candidates=256)
    monkeypatch.setattr(pursuit, "PURSUIT", fewer)
    monkeypatch.setattr(matching, "MATCHING", replace(matching.MATCHING, iterations=60))
    release = seeded(PrivateGaussianMixture(**BUDGET, radius=60.0, n_components=5, steps=2).fit)

    def near(fitted):
        return float((np.linalg.norm(fitted.means_ - FAR, axis=1) < 3.0).any())

    plain, odd = outlier_pair(2)
    claim = release(plain).guarantee_
    report = attack(release, plain, odd, claim=claim, score=near, threshold=0.5, runs=RUNS)
    assert claim.epsilon == 1.0
    assert not report.broken


def test_an_outlier_does_not_come_out_of_private_branches():
    model = PrivateModalRegression(**BUDGET, x_bounds=(-40, 40), y_bounds=(-40, 40), bandwidth=0.1)
    release = seeded(lambda rows: model.fit(rows[:, :1], rows[:, 1]))

    def near(fitted):
        return float((np.abs(fitted.predict_modes([[FAR]])[0] - FAR) < 3.0).any())

    plain, odd = outlier_pair(2)
    claim = release(plain).guarantee_
    report = attack(release, plain, odd, claim=claim, score=near, threshold=0.5, runs=RUNS)
    assert claim.epsilon == 1.0
    assert not report.broken


def leading(X):
    """What would be published without noise: how much of each column the leading direction has."""
    return np.abs(np.linalg.eigh(X.T @ X / len(X))[1][:, -1])


def test_the_record_that_turns_the_leading_direction_is_not_told():
    """Without noise one record decides the direction; the same score of the release stays within the claim."""
    crowd = np.random.default_rng(0).normal(0, 0.02, (50, 4))
    after = np.append(crowd, [[1.0, 0.0, 0.0, 0.0]], axis=0)
    options = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-1, 1), "components": 1}
    release = seeded(lambda X: private_pca(X, **options)[0])
    claim = private_pca(crowd, **options)[1]
    score = {
        "direction": lambda found: float(abs(found.projection.components[0, 0])),
        "spread": lambda found: float(found.variances[0]),
        "mean": lambda found: float(found.projection.mean[0]),
    }
    report = attack(release, crowd, after, claim=claim, score=score, runs=800)
    assert claim.epsilon == 1.0
    assert not report.broken
    bare = attack(leading, crowd, after, claim=claim, score=lambda found: float(found[0]), runs=800)
    assert bare.broken
