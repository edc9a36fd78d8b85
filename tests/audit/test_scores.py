"""Attacks that know nothing of the algorithm: fixed witnesses and a trained score."""

from __future__ import annotations

import numpy as np
import pytest

from fogline import PrivateModes
from fogline.accounting.guarantee import Guarantee
from fogline.audit import attack
from fogline.audit.scores import (
    canary_of,
    fixed_scores,
    learnt_scores,
    numbers_of,
    points_of,
    shape_of,
    trained_scores,
)
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


# -- what the first scores did not look at --------------------------------------------------------------------


class Release:
    """An honest looking result: noisy centres, a message, counts, covariances, many numbers."""

    def __init__(self, rng, **leak):
        self.cluster_centers_ = 3 + rng.normal(size=(2, 1))
        self.counts_ = np.round(rng.normal(50, 20, size=2))
        self.covariances_ = rng.normal(size=(2, 3, 3))
        self.heights_ = rng.normal(size=60)
        self.message_ = "two modes were found"
        self.labels_ = np.zeros(3)
        for name, value in leak.items():
            setattr(self, name, value)


def in_heights(rng, X):
    heights = rng.normal(size=60)
    heights[25] = len(X) + rng.normal() / 10
    return {"heights_": heights}


def in_covariance(rng, X):
    covariances = rng.normal(size=(2, 3, 3))
    covariances[1, 2, 0] = X.max()
    return {"covariances_": covariances}


BLIND = {
    "a count in counts_": (lambda rng, X: {"counts_": np.array([float(len(X)), rng.normal()])}, 1.0),
    "a count in a message": (lambda rng, X: {"message_": f"{len(X)} records were read"}, 1.0),
    "a count in words": (lambda rng, X: {"message_": "many" if len(X) > 50 else "too few to say"}, 1.0),
    "a record in covariances_": (in_covariance, 0.3),
    "the 25th number": (in_heights, 1.0),
    "a dtype": (lambda rng, X: {"labels_": np.zeros(3, dtype=np.float32 if len(X) > 50 else np.float64)}, 0.5),
    "a shape": (lambda rng, X: {"labels_": np.zeros(3 if len(X) > 50 else 4)}, 0.5),
    "a type": (lambda rng, X: {"labels_": 0 if len(X) > 50 else 0.0}, 0.5),
    "an attribute": (lambda rng, X: {"extra_" if len(X) > 50 else "other_": 0.0}, 0.5),
    "the length of a text": (lambda rng, X: {"message_": "." * (len(X) // 3)}, 0.5),
    "a record in a text": (lambda rng, X: {"message_": f"the largest is {X.max():.6f}"}, 0.3),
}


@pytest.mark.parametrize("name", BLIND)
def test_every_place_is_looked_at_by_default(name):
    leak, often = BLIND[name]
    rng = np.random.default_rng(8)

    def release(X):
        return Release(rng, **(leak(rng, X) if rng.random() < often else {}))

    report = attack(release, CROWD, WITH, CLAIM, runs=400)
    assert report.broken, str(report)


def test_an_honest_release_of_many_numbers_stands():
    rng = np.random.default_rng(9)
    report = attack(lambda X: Release(rng), CROWD, WITH, CLAIM, runs=400)
    assert not report.broken
    assert "sees leaks of probability" in str(report)
    assert 0.0 < report.visible_probability < 0.5


@pytest.mark.parametrize("empty", [[], np.zeros((0, 1)), np.zeros(0)], ids=["list", "2-d", "1-d"])
def test_no_records_on_one_side(empty):
    other = np.array([[9.0]]) if np.ndim(empty) == 2 or isinstance(empty, list) else np.array([9.0])
    assert canary_of(empty, other) == [9.0]
    assert canary_of(other, empty) == [9.0]
    assert canary_of(empty, empty) is None
    rng = np.random.default_rng(0)
    assert not attack(lambda X: [rng.normal()], empty, other, CLAIM, runs=40).broken
    assert attack(lambda X: {"n": float(len(X))}, empty, other, CLAIM, runs=400).broken


def test_numbers_and_shapes_of_awkward_outputs():
    class Slotted:
        __slots__ = ("value",)

        def __init__(self):
            self.value = 3

    nested: list = [1.0]
    for _ in range(20):
        nested = [nested]
    outputs = (
        None,
        "text",
        [],
        nested,
        {"a": np.inf, "b": np.nan},
        Slotted(),
        object(),
        len,
        {1, 2},
        b"bytes",
        10**400,
    )
    for output in outputs:
        assert np.isfinite(numbers_of(output)).all()
        assert shape_of(output)
    assert numbers_of(Slotted()).tolist() == [3.0]
    assert numbers_of({"guarantee_": 7.0, "x": True}).tolist() == [1.0]
    assert len(numbers_of(list(range(9999)))) == 4096
    assert learnt_scores([["a", "b"], ["a", "b"]])["a single number"][0].tolist() == [0.0, 0.0]
