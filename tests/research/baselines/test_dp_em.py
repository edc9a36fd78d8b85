"""The noisy expectation-maximisation that private mixtures are compared with."""

import itertools

import numpy as np
import pytest

from fogline.audit import attack, canary_pairs, replay
from fogline.mechanisms.errors import ReleaseFailed
from fogline.queries.em_step import GaussianClusters
from fogline.testing import seeded_noise
from fogline_research.baselines import dp_em
from fogline_research.baselines.dp_em import _PlainStep

SETTINGS = {"n_components": 2, "epsilon": 2.0, "delta": 1e-6, "radius": 10.0, "random_state": 0}


def test_far_components_are_found_with_many_records():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(m, 1, size=(50000, 2)) for m in (-4, 4)])
    with seeded_noise(0):
        found = dp_em(rows, **SETTINGS)
    np.testing.assert_allclose(np.sort(found.means[:, 0]), [-4, 4], atol=0.3)
    assert found.score_samples(rows[:5]).shape == (5,)


def test_neighbours_cannot_be_told_apart():
    pairs = canary_pairs([(-8.0, 8.0)] * 3, neighbours="add-remove", n=30, block=None)
    report = replay(lambda rows: dp_em(rows, **SETTINGS | {"steps": 3}), pairs)
    assert report.passed, str(report)
    assert report.largest_ratio > 0.5


def test_the_record_that_pulls_the_mean_is_not_told():
    """One record on the surface of the ball, far from all others, moves mean and variance as far as any can."""
    crowd = np.zeros((100, 1))
    more = np.append(crowd, [[10.0]], axis=0)
    seeds = itertools.count()

    def release(X):
        with seeded_noise(next(seeds)):
            return dp_em(X, **SETTINGS | {"n_components": 1, "steps": 1})

    scores = {
        "mean": lambda found: float(found.means[0, 0]),
        "variance": lambda found: float(found.covariances[0, 0, 0]),
    }
    report = attack(release, crowd, more, claim=release(crowd).guarantee, score=scores, runs=300)
    assert not report.broken


def test_half_the_sensitivity_is_noticed(monkeypatch):
    real = _PlainStep.sensitivity
    monkeypatch.setattr(_PlainStep, "sensitivity", lambda self: real(self) / 2)
    pairs = canary_pairs([(-8.0, 8.0)] * 3, neighbours="add-remove", n=30, block=None)
    assert not replay(lambda rows: dp_em(rows, **SETTINGS | {"steps": 2}), pairs, until_failure=True).passed


def test_one_record_is_bounded():
    rng = np.random.default_rng(1)
    model = GaussianClusters(np.array([0.5, 0.5]), rng.normal(size=(2, 2)) / 4, np.repeat(np.eye(2)[None] / 9, 2, 0))
    query = _PlainStep(model, 2**15, "full")
    directions = rng.normal(size=(200, 2))
    rows = np.trunc(directions / np.linalg.norm(directions, axis=1, keepdims=True) * 2**15 * (1 - 1e-9))
    norms = [np.sqrt(float(np.sum(query.sums([row[None]]).astype(object) ** 2))) for row in rows]
    assert 0.9 * query.sensitivity() < max(norms) <= query.sensitivity()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"n_components": 0}, "n_components"),
        ({"radius": 0.0}, "radius"),
        ({"steps": 0}, "steps"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_bad_parameters_are_named(options, named):
    with pytest.raises(ValueError, match=named):
        dp_em(np.zeros((3, 2)), **SETTINGS | options)


def test_a_failure_after_the_noise_says_nothing(monkeypatch):
    monkeypatch.setattr(_PlainStep, "sums", lambda _, batches: 1 // (len(batches[0]) - 4))
    with pytest.raises(ReleaseFailed) as caught:
        dp_em(np.zeros((4, 2)), **SETTINGS)
    assert caught.value.__cause__ is caught.value.__context__ is None
