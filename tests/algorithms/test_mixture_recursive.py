"""Mixtures by recursive partitioning: components are found, failure is an answer, neighbours look alike."""

from types import SimpleNamespace

import numpy as np
import pytest
from canaries import by_turns, few_corners

from fogline.algorithms import mixture_recursive as method
from fogline.algorithms.mixture_recursive import RecursivePlan, learn_recursive
from fogline.audit import canary_pairs, replay
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms
from fogline.testing import seeded_noise
from fogline_research.datasets.separated import separated_mixture
from fogline_research.metrics import mixture_errors


def learn(X, *, epsilon=1.0, delta=1e-6, neighbours="add-remove", **public):
    """The method alone, without the estimator around it."""
    terms = ReleaseTerms.checked(epsilon, delta, neighbours, 1)
    plan = RecursivePlan.checked(d=X.shape[1], **public)
    return Curator(X, terms, width=X.shape[1]).release(
        lambda curator: learn_recursive(plan, curator),
        mechanism="steps",
        proof=method.PROOF,
        name="test",
        code_version="1",
        parameters=plan.to_dict(),
        max_payload=plan.payload(),
    )[:2]


def partition_fit(mixture, X, labels):
    """Errors of the fit of the true partition, without privacy."""
    k = len(mixture.weights)
    means = np.array([X[labels == j].mean(axis=0) for j in range(k)])
    covariances = np.array([np.cov(X[labels == j].T) for j in range(k)])
    return errors(mixture, np.bincount(labels, minlength=k) / len(X), means, covariances)


def errors(mixture, *found):
    return mixture_errors(mixture.weights, mixture.means, mixture.covariances, *found)


@pytest.mark.parametrize(
    ("d", "k", "sigma_max", "flatness", "n"),
    [(10, 4, 1.0, 3.0, 40_000), (20, 6, 1000.0, 1.0, 60_000), (2, 3, 5.0, 1.0, 20_000), (1, 2, 1.0, 1.0, 4_000)],
)
def test_all_components_are_found(d, k, sigma_max, flatness, n):
    mixture = separated_mixture(
        d, k, separation=100.0, records=n, sigma_max=sigma_max, flatness=flatness, random_state=k
    )
    X, labels = mixture.sample(n, random_state=d)
    with seeded_noise(k):
        found, _ = learn(X, n_components=k, radius=2 * mixture.radius, sigma_min=1.0, sigma_max=sigma_max)
    assert found.verdict is None
    private, plain = errors(mixture, found.weights, found.means, found.covariances), None
    plain = partition_fit(mixture, X, labels) if d > 1 else None
    assert private.missing == 0
    if plain is not None:
        assert np.all(private.tv <= 3 * plain.tv + 0.05)
    assert private.weights < 0.05
    assert found.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("constants", ["practical", "theory"])
def test_what_cannot_be_told_apart_is_said(constants):
    X = np.random.default_rng(0).normal(size=(5000, 3))
    with seeded_noise(1):
        found, _ = learn(X, n_components=3, radius=50.0, sigma_min=0.1, sigma_max=5.0, constants=constants)
    assert not found.verdict
    assert found.verdict.found == 1
    assert found.verdict.wanted == 3
    assert np.linalg.norm(found.means[0]) < 0.3
    np.testing.assert_allclose(found.covariances[0], np.eye(3), atol=0.3)


def test_theory_asks_for_more_room_than_practice():
    mixture = separated_mixture(5, 2, separation=9.0, random_state=0)
    X, _ = mixture.sample(20_000, random_state=1)
    public = {"n_components": 2, "radius": 20.0, "sigma_min": 1.0, "sigma_max": 1.0}
    with seeded_noise(0):
        assert learn(X, **public)[0].verdict is None
    with seeded_noise(0):
        assert learn(X, **public, constants="theory")[0].verdict is not None


@pytest.mark.parametrize("rows", [0, 1, 2, 30])
def test_few_records_are_no_error(rows):
    with seeded_noise(rows):
        found, _ = learn(np.full((rows, 3), 2.0), n_components=4, radius=10.0, sigma_min=1.0, sigma_max=1.0)
    assert np.isfinite(found.means).all()
    assert np.linalg.eigvalsh(found.covariances).min() > 0


def test_a_component_of_one_record_is_not_seen():
    X = np.random.default_rng(0).normal(size=(6000, 3))
    X[:3000, 0] += 40.0
    X[0] = [0.0, 90.0, 0.0]
    with seeded_noise(2):
        found, _ = learn(X, n_components=3, radius=100.0, sigma_min=0.5, sigma_max=2.0)
    assert found.verdict.found == 2
    assert np.abs(found.means[:, 1]).max() < 1.0


def test_flat_components_are_found_along_their_separation():
    mixture = separated_mixture(6, 3, separation=60.0, flatness=50.0, random_state=4)
    X, _ = mixture.sample(60_000, random_state=5)
    with seeded_noise(6):
        found, _ = learn(X, n_components=3, radius=200.0, sigma_min=0.01, sigma_max=2.0)
    assert found.verdict is None
    assert errors(mixture, found.weights, found.means, found.covariances).tv.max() < 0.2


def test_one_component_needs_no_levels():
    X = np.random.default_rng(0).normal(7.0, 2.0, size=(20_000, 4))
    with seeded_noise(0):
        found, _ = learn(X, n_components=1, radius=1000.0, sigma_min=1.0, sigma_max=10.0)
    assert found.verdict is None
    assert np.linalg.norm(found.means[0] - 7.0) < 0.2


def test_a_radius_too_small_is_borne():
    X = np.random.default_rng(0).normal(100.0, 1.0, size=(3000, 3))
    with seeded_noise(0):
        found, _ = learn(X, n_components=2, radius=1.0, sigma_min=1.0, sigma_max=1.0)
    assert np.isfinite(found.means).all()


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1000}, "n_components"),
        ({"radius": -1.0}, "radius"),
        ({"sigma_min": None}, "sigma_min"),
        ({"sigma_min": 9.0}, "sigma_min"),
        ({"weight_min": 0.9}, "weight_min"),
        ({"center": [0.0]}, "center"),
        ({"constants": "mine"}, "constants"),
    ],
)
def test_bad_input_is_named(wrong, name):
    public = {"n_components": 2, "radius": 9.0, "sigma_min": 1.0, "sigma_max": 2.0}
    with pytest.raises((TypeError, ValueError), match=name):
        RecursivePlan.checked(d=3, **(public | wrong))


def test_answers_give_the_same_mixture_again():
    mixture = separated_mixture(6, 3, separation=50.0, random_state=0)
    X, _ = mixture.sample(6000, random_state=1)
    plan = RecursivePlan.checked(d=6, n_components=3, radius=200.0, sigma_min=1.0, sigma_max=1.0)
    terms = ReleaseTerms.checked(1.0, 1e-6, "add-remove", 1)
    with seeded_noise(0):
        curator = Curator(X, terms, width=6)
        first = learn_recursive(plan, curator)
    payload = curator.to_bytes(terms.guarantee(method.PROOF))
    assert len(payload) <= plan.payload()
    again = learn_recursive(plan, Curator.from_bytes(terms, payload)[0])
    assert np.array_equal(first.means, again.means)
    assert np.array_equal(first.covariances, again.covariances)
    costs = first.composition
    assert costs["rho"] <= terms.rho
    assert costs["rho"] > 0.99 * terms.rho
    assert costs["epsilon"] < costs["epsilon_by_advanced_composition"]


def released(relation, **more):
    def release(data):
        found, guarantee = learn(
            data, n_components=3, radius=12.0, sigma_min=0.1, sigma_max=3.0, neighbours=relation, delta=1e-5, **more
        )
        mixture = (found.weights, found.means, found.covariances, str(found.verdict))
        return SimpleNamespace(mixture=mixture, guarantee=guarantee)

    return release


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_replay(relation):
    pairs = canary_pairs([(0.0, 10.0)] * 5, neighbours=relation, n=40, block=None)
    pairs = by_turns(few_corners(pairs), relation)
    report = replay(released(relation), pairs, neighbours=relation)
    assert report.passed, str(report)


def parted_pairs(relation):
    """Neighbours with real parts, so that cuts are made."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 5)) * 0.1
    X[:300, 0] += 8.0
    X[300:600, 1] -= 8.0
    Pair = type(canary_pairs([(0.0, 10.0)], neighbours=relation, n=40)[0])
    other = np.vstack([X[1:], [[-8.0, -8.0, 0.0, 0.0, 0.0]]]) if relation == "replace" else X[1:]
    return [Pair("a member goes", X, other, relation)]


@pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # so that few records will do
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_replay_with_cuts(relation):
    release, pairs = released(relation, epsilon=40.0), parted_pairs(relation)
    report = replay(release, pairs, neighbours=relation)
    assert report.passed, str(report)
    assert {len(release(data).mixture[0]) for data in (pairs[0].D, pairs[0].D_prime)} == {3}  # so there were cuts
    assert report.largest_ratio > 0.3


@pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # so that few records will do
def test_a_threshold_from_the_raw_count_would_be_noticed(monkeypatch):
    """A mutant: which parts are cut depends on how many records there are."""
    valleys = method.valleys
    rows = []
    monkeypatch.setattr(method, "valleys", lambda p, noise, least, *rest: valleys(p, noise, least + rows[-1], *rest))

    def release(data):
        rows.append(0.0 if len(data) % 2 else 1e9)
        return released("add-remove", epsilon=20.0)(data)

    pairs = parted_pairs("add-remove")
    assert not replay(release, pairs, neighbours="add-remove", until_failure=True).passed


@pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # so that few records will do
def test_half_the_sensitivity_would_be_noticed(monkeypatch):
    """A mutant: profiles along four directions are charged as one."""
    monkeypatch.setattr("fogline.queries.partition.block_sensitivity", lambda longest, relation, c: 1.0)
    fit, pairs = released("add-remove", epsilon=20.0), parted_pairs("add-remove")
    assert not replay(fit, pairs, neighbours="add-remove", until_failure=True).passed
