"""Mixtures of spheres: found with far fewer records than full covariances need; neighbours look alike."""

from types import SimpleNamespace

import numpy as np
import pytest
from canaries import by_turns, few_corners

from fogline.algorithms.mixture_recursive import RecursivePlan
from fogline.algorithms.mixture_spherical import PROOF, learn_spherical
from fogline.audit import canary_pairs, replay
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms
from fogline.testing import seeded_noise
from fogline_research.datasets.separated import separated_mixture
from fogline_research.metrics import mixture_errors


def learn(X, *, epsilon=1.0, delta=1e-6, neighbours="add-remove", **public):
    """The method alone, without the estimator around it."""
    plan = RecursivePlan.checked(d=X.shape[1], **public)
    return Curator(X, ReleaseTerms.checked(epsilon, delta, neighbours, 1), width=X.shape[1]).release(
        lambda curator: learn_spherical(plan, curator),
        mechanism="steps",
        proof=PROOF,
        name="test",
        code_version="1",
        parameters=plan.to_dict(),
        max_payload=plan.payload(),
    )[:2]


@pytest.mark.parametrize(("d", "k", "n"), [(30, 4, 20_000), (2, 3, 6_000)])
def test_all_spheres_are_found(d, k, n):
    mixture = separated_mixture(d, k, separation=40.0, sigma_max=4.0, random_state=1)
    X, _ = mixture.sample(n, random_state=2)
    with seeded_noise(3):
        found, _ = learn(X, n_components=k, radius=2 * mixture.radius, sigma_min=0.5, sigma_max=8.0)
    assert found.verdict is None
    off = mixture_errors(
        mixture.weights, mixture.means, mixture.covariances, found.weights, found.means, found.covariances
    )
    assert off.tv.max() < 0.12
    assert off.weights < 0.05


def test_one_sphere_is_not_cut():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    with seeded_noise(1):
        found, _ = learn(X, n_components=3, radius=50.0, sigma_min=0.1, sigma_max=5.0)
    assert not found.verdict
    assert found.verdict.method == "spherical"
    assert found.covariances[0, 0, 0] == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_replay(relation):
    pairs = canary_pairs([(0.0, 10.0)] * 4, neighbours=relation, n=40, block=None)
    pairs = by_turns(few_corners(pairs), relation)

    def release(data):
        public = {"n_components": 2, "radius": 12.0, "sigma_min": 0.1, "sigma_max": 3.0}
        found, guarantee = learn(data, neighbours=relation, delta=1e-5, **public)
        mixture = (found.weights, found.means, found.covariances, str(found.verdict))
        return SimpleNamespace(mixture=mixture, guarantee=guarantee)

    report = replay(release, pairs, neighbours=relation)
    assert report.passed, str(report)
