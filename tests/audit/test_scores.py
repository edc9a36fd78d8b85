"""Attacks that know nothing of the algorithm: fixed witnesses and a trained score."""

from __future__ import annotations

import numpy as np
import pytest

from fogline import PrivateModes
from fogline.accounting.guarantee import Guarantee
from fogline.audit import attack
from fogline.audit.scores import canary_of, fixed_scores, points_of, trained_scores
from fogline.testing import seeded_noise

CLAIM = Guarantee.uncertified(epsilon=1.0, delta=1e-5, reason="a test")
CROWD = np.random.default_rng(0).normal(3, 1, (50, 1))
WITH = np.append(CROWD, [[9.0]], axis=0)


class Model:
    """Looks like an estimator that is not ours."""

    def __init__(self, centers, density=None):
        self.cluster_centers_ = np.asarray(centers, dtype=float)
        if density is not None:
            self.score_samples = lambda X: np.array([density(x[0]) for x in X])


def test_points_are_found_in_many_kinds_of_output():
    assert points_of(Model([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]
    assert points_of(3.0).tolist() == [[3.0]]
    assert points_of({"mean": 1}).tolist() == [[1.0]]
    assert points_of(object()).shape == (0, 1)
    assert points_of(None).size <= 1
    assert points_of(np.zeros((2, 3, 4))).shape == (6, 4)


def test_the_canary_is_the_record_that_differs():
    assert canary_of(CROWD, WITH) == [9.0]
    assert canary_of(WITH, CROWD) == [9.0]
    assert canary_of([1.0, 1.0], [1.0]) == [1.0]
    assert canary_of(CROWD, CROWD) is None
    assert canary_of("a", "b") is None
    assert canary_of(3, 4) is None
    assert np.isnan(canary_of([[0.0]], [[np.nan]]))


def test_fixed_witnesses_never_fail():
    scores = fixed_scores([9.0])
    for output in (None, "text", [], Model([[1.0, 2.0]]), Model([[np.nan]]), {"a": np.inf}):
        assert all(np.isfinite(score(output)) for score in scores.values())
    assert list(fixed_scores(None)) == ["number of outputs"]


def rare(leak):
    """Publish what `leak` makes of the data in every fifth run, and a plain answer otherwise."""
    rng = np.random.default_rng(1)
    return lambda X: leak(X) if rng.random() < 0.2 else Model([[3.0 + rng.normal() / 10]])


@pytest.mark.parametrize(
    ("name", "leak"),
    [
        ("nearest output", lambda X: Model([[X.max() - 0.01]])),
        ("exact match", lambda X: Model([[X.max()], [X.min()]])),
        ("number of outputs", lambda X: Model(np.zeros((len(X), 1)))),
    ],
)
def test_each_witness_catches_its_leak(name, leak):
    report = attack(rare(leak), CROWD, WITH, CLAIM, runs=500)
    assert report.broken
    assert "FALSE" in report.verdict
    found = {w.name.split(",")[0]: 0.0 for w in report.witnesses}
    for witness in report.witnesses:
        key = witness.name.split(",")[0]
        found[key] = max(found[key], witness.epsilon_lower)
    assert found[name] > 1.0


def test_the_density_at_the_canary_and_fewer_outputs():
    rng = np.random.default_rng(2)

    def density(X):
        height = float(np.mean(np.abs(X - 9) < 0.5)) + rng.normal() / 1000
        return Model([[0.0]], density=lambda x: height if x == 9 else 0.0)

    report = attack(density, CROWD, WITH, CLAIM, runs=300)
    assert report.broken
    assert report.witness.startswith("density at the canary")
    fewer = attack(lambda X: Model(np.zeros((99 - len(X), 1))), CROWD, WITH, CLAIM, runs=300)
    assert fewer.broken


def test_a_trained_score_finds_what_no_fixed_one_looks_for():
    rng = np.random.default_rng(3)

    def release(X):
        level = rng.normal()
        return {"a": level, "b": level + (0.2 if len(X) == 51 else 0.0) + rng.normal() / 20, "c": rng.normal()}

    report = attack(release, CROWD, WITH, CLAIM, canary=[50.0], runs=600)
    assert report.broken
    assert report.witness.startswith("trained score")


def test_training_does_not_make_something_of_nothing():
    """The same law on both sides: at 90% at most one attack in ten may see a difference, and few do."""
    rng = np.random.default_rng(4)
    seen = [
        attack(lambda X: rng.normal(size=(3, 1)), CROWD, WITH, CLAIM, runs=120, confidence=0.9).epsilon_lower
        for _ in range(20)
    ]
    assert np.mean(np.array(seen) > 0) <= 0.1
    null, other = trained_scores([[1.0, 2.0], [3.0, 4.0]], None)
    assert np.isfinite([null, other]).all()


def test_a_private_estimator_stands_as_a_black_box():
    estimator = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 10)], bandwidth=0.1)
    with seeded_noise(5):
        report = attack(estimator.fit, CROWD, WITH, CLAIM, runs=80)
    assert not report.broken
    assert "stands" in report.verdict


def test_several_scores_share_the_confidence_and_a_threshold_needs_one():
    rng = np.random.default_rng(6)
    report = attack(
        lambda n: n + rng.laplace(), 0, 1, CLAIM, score={"plain": float, "cubed": lambda y: y**3}, runs=2000
    )
    assert {witness.name.split(",")[0] for witness in report.witnesses} == {"plain", "cubed"}
    assert not report.broken
    with pytest.raises(TypeError, match="threshold"):
        attack(float, 0, 1, CLAIM, threshold=0.5, runs=10)
