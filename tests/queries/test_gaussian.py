"""The Gaussian learners: sensitivities of their blocks, errors near those without privacy, replay and mutants."""

from types import SimpleNamespace

import numpy as np
import pytest
from canaries import by_turns, few_corners
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import Ledger, private_gaussian, private_spherical_gaussian
from fogline.audit import canary_pairs, replay
from fogline.queries import gaussian as learner
from fogline.queries import partition as maps
from fogline.queries.gaussian import (
    PlaceQuery,
    ScatterQuery,
    SphericalQuery,
    clip_radius,
    clipped_variance,
    unclipped_variance,
)
from fogline.queries.lattice import CentredBallLattice
from fogline.queries.partition import Partition, Reassigned, whitening_of
from fogline.testing import seeded_noise

CELL = st.sampled_from([-9.0, -1.0, -0.01, 0.0, 0.3, 2.0, 7.0, 1e308, float("nan"), float("-inf")])
ROW = st.lists(CELL, min_size=2, max_size=2)
FRAMES = (CentredBallLattice.around([0.0, 0.0], 8.0), CentredBallLattice.around([2.0, 1.0], 0.5))
HALVES = Partition(2).divided(0, FRAMES[0], np.array([2.0**20, 2.0**18]), np.array([0.0]))
TERMS = {"epsilon": 1.0, "delta": 1e-6, "radius": 5000.0}


class Batches:
    """Records in batches of two."""

    def __init__(self, rows):
        self.rows = np.array(rows, dtype=np.float64).reshape(-1, 2)

    def each(self, take):
        for start in range(0, len(self.rows), 2):
            take(self.rows[start : start + 2])


def queries():
    skewed = np.array([[3.0, 0.4], [0.0, 1e-3]])
    whitenings = (whitening_of(np.zeros(2), np.eye(2), 1.5), whitening_of(np.array([1.0, 0.0]), skewed, 2.0))
    return [
        PlaceQuery(HALVES, FRAMES, 0.97),
        SphericalQuery(HALVES, FRAMES),
        ScatterQuery(HALVES, whitenings),
        ScatterQuery(Reassigned(HALVES, whitenings), whitenings),
    ]


def test_a_record_beyond_its_part_is_brought_home():
    near, wide = whitening_of(np.array([-4.0, 0.0]), np.eye(2), 2.0), whitening_of(np.array([4.0, 0.0]), np.eye(2), 5.0)
    rows = np.array([[-4.0, 0.5], [-0.5, 0.0], [4.0, 0.0], [0.0, 400.0], [-400.0, 0.0]])
    assert HALVES.labels(rows).tolist() == [0, 0, 1, 1, 0]
    assert Reassigned(HALVES, (near, wide)).labels(rows).tolist() == [0, 1, 1, 1, 0]


def squared(first, second):
    return sum((int(a) - int(b)) ** 2 for a, b in zip(first, second, strict=True))


def longest_moves(rows, record, other):
    for query in queries():
        assert query.size == len(query.exact(Batches(rows)))
        with_one, with_other = query.exact(Batches([*rows, record])), query.exact(Batches([*rows, other]))
        assert squared(query.exact(Batches(rows)), with_one) <= query.sensitivity("add-remove", 1) ** 2
        assert squared(with_one, with_other) <= query.sensitivity("replace", 1) ** 2


@settings(max_examples=150, deadline=None)
@given(st.lists(ROW, max_size=5), ROW, ROW)
def test_neighbours_are_within_the_sensitivity(rows, record, other):
    longest_moves(rows, record, other)


def test_the_sensitivity_is_nearly_reached():
    for query in queries():
        single = squared(query.exact(Batches([])), query.exact(Batches([[1e9, 0.0]])))
        assert single > 0.6 * query.sensitivity("add-remove", 1) ** 2
        assert query.sensitivity("add-remove", 3) == pytest.approx(3 * query.sensitivity("add-remove", 1))


def test_sums_do_not_depend_on_the_batches():
    rows = np.random.default_rng(0).normal(size=(301, 2)) * 3

    class Whole:
        def each(self, take):
            take(rows)

    for query in queries():
        assert query.exact(Batches(rows)).tolist() == query.exact(Whole()).tolist()


def test_a_whitened_record_is_its_own_in_any_batch():
    rng = np.random.default_rng(1)
    d = 40
    root = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.geomspace(1, 1e-3, d)
    whitening = whitening_of(rng.normal(size=d), root, 7.0)
    rows = rng.normal(size=(64, d)) @ root.T + whitening.frame.centre
    together = whitening.vectors(rows)
    assert all(
        np.array_equal(whitening.vectors(row[None])[0], image) for row, image in zip(rows, together, strict=True)
    )
    z = np.linalg.solve(root, (rows - whitening.frame.centre).T).T
    inside = np.linalg.norm(z, axis=1) < 6.9
    np.testing.assert_allclose(together[inside] / learner.SCATTER_STEPS * 7.0, z[inside], atol=0.02)
    assert (together**2).sum(axis=1).max() <= learner.SCATTER_STEPS**2


def test_variance_left_by_the_clip():
    z = np.random.default_rng(0).normal(size=(200000, 5))
    cut = np.minimum(np.linalg.norm(z, axis=1), 2.5) ** 2
    assert clipped_variance(5, 2.5) == pytest.approx(cut.mean() / 5, rel=0.01)


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("variance", [0.3, 1.0, 1.5])
def test_the_clip_is_undone_whatever_the_variance(d, variance):
    """Nearly whitened records, as the last step has them: their covariance comes back, not what the clip leaves."""
    shape = variance * np.exp(np.linspace(-0.1, 0.1, d)) if d > 1 else np.array([variance])
    z = np.random.default_rng(0).normal(size=(200000, d)) * np.sqrt(shape)
    query = ScatterQuery(Partition(d), (whitening_of(np.zeros(d), np.eye(d), clip_radius(d)),))
    (seen,) = query.decode(query.exact(SimpleNamespace(each=lambda take: take(z))), 0.0)
    found = seen.unclipped()
    np.testing.assert_allclose(np.diag(found.covariance), shape, rtol=0.02)
    assert np.trace(seen.covariance) <= np.trace(found.covariance)


@pytest.mark.parametrize("seen", [-1.0, 0.0, 1e-9, 50.0])
def test_a_variance_that_cannot_be_is_no_error(seen):
    assert np.isfinite(unclipped_variance(2, 2.4, seen))


def errors(mean, covariance, true_mean, true_covariance):
    back = np.linalg.inv(np.linalg.cholesky(true_covariance))
    return np.linalg.norm(back @ (mean - true_mean)), np.linalg.norm(back @ covariance @ back.T - np.eye(len(mean)))


@pytest.mark.parametrize("ratio", [1.0, 10.0, 1000.0])
def test_errors_are_near_those_without_privacy(ratio):
    rng = np.random.default_rng(int(ratio))
    n, d = 100_000, 20
    root = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.geomspace(1, 1 / ratio, d)
    mean = 100 * rng.normal(size=d)
    X = rng.normal(size=(n, d)) @ root.T + mean
    with seeded_noise(2):
        found, guarantee = private_gaussian(X, **TERMS)
    private = errors(found.mean, found.covariance, mean, root @ root.T)
    plain = errors(X.mean(axis=0), np.cov(X.T), mean, root @ root.T)
    assert private[0] < 1.5 * plain[0]
    assert private[1] < 1.5 * plain[1]
    assert abs(found.count - n) < 6 * found.count_sd
    assert guarantee.rho is not None


@pytest.mark.parametrize("ratio", [1.0, 10.0, 1000.0])
def test_stated_errors_of_the_mean_are_of_the_right_size(ratio):
    """Pooled over several sets: along the axes the errors of one thin set are those of its few wide directions."""
    n, d, within = 20_000, 20, []
    for seed in range(2, 8):
        rng = np.random.default_rng([seed, int(ratio)])
        root = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.geomspace(1, 1 / ratio, d)
        mean = 100 * rng.normal(size=d)
        with seeded_noise(seed):
            found, _ = private_gaussian(rng.normal(size=(n, d)) @ root.T + mean, **TERMS)
        within.extend(np.abs(found.mean - mean) / found.mean_sd)
    assert 0.4 < np.median(within) < 1.2


def test_few_records_end_in_a_sphere_and_never_in_an_error():
    for n in (0, 1, 30):
        with seeded_noise(n):
            found, _ = private_gaussian(np.ones((n, 3)), **TERMS)
        assert np.linalg.eigvalsh(found.covariance).min() > 0
        assert np.isfinite(found.mean).all()


def test_a_sphere_in_its_ball():
    rng = np.random.default_rng(3)
    X = rng.normal([100.0, 3.0, -2.0, 0.0], 2.0, size=(20000, 4))
    with seeded_noise(1):
        found, _ = private_spherical_gaussian(X, epsilon=1.0, delta=1e-6, radius=20.0, center=[98.0, 0, 0, 0])
    assert np.linalg.norm(found.mean - [100, 3, -2, 0]) < 0.2
    assert found.sigma == pytest.approx(2.0, rel=0.03)
    assert abs(found.count - 20000) < 6 * found.count_sd


@pytest.mark.parametrize("learn", [private_gaussian, private_spherical_gaussian])
@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"epsilon": None}, "epsilon"),
        ({"delta": 2.0}, "delta"),
        ({"radius": 0.0}, "radius"),
        ({"center": [0.0, np.inf]}, "center"),
        ({"neighbours": "none"}, "neighbours"),
        ({"max_contributions": 0}, "max_contributions"),
    ],
)
def test_bad_input_is_named(learn, wrong, name):
    with pytest.raises((TypeError, ValueError), match=name):
        learn(np.zeros((3, 2)), **(TERMS | wrong))


@pytest.mark.parametrize("learn", [private_gaussian, private_spherical_gaussian])
def test_a_ledger_pays_once_and_remembers(learn, tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 2))
    with Ledger.create(tmp_path / "l", dataset="x", epsilon=1.0, delta=1e-6, high_water=tmp_path / "m") as ledger:
        first, _ = learn(X, **TERMS, ledger=ledger)
        again, _ = learn(X, **TERMS, ledger=ledger)
        assert np.array_equal(first.mean, again.mean)
        assert ledger.remaining().rho < 1e-6


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("learn", [private_gaussian, private_spherical_gaussian])
def test_replay(learn, relation):
    pairs = canary_pairs([(0.0, 10.0)] * 3, neighbours=relation, n=40, block=None)
    pairs = by_turns(few_corners(pairs), relation)

    def release(data):
        found, guarantee = learn(data, epsilon=1.0, delta=1e-5, radius=12.0, neighbours=relation)
        return SimpleNamespace(released=vars(found), guarantee=guarantee)

    report = replay(release, pairs, neighbours=relation)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        (learner, "block_sensitivity", lambda longest, relation, c: 0.5 * c * longest**0.5),
        (maps, "clipped", lambda vectors, radius: vectors),
        (learner.ScatterQuery, "mean_unit", 20 * learner.SCATTER_STEPS),
        (learner.PlaceQuery, "steps", 1),
    ],
)
def test_a_mutant_is_caught(monkeypatch, owner, name, mutant):
    monkeypatch.setattr(owner, name, mutant)
    if name == "mean_unit":  # the record weighs more than is declared
        declared = learner.block_sensitivity
        monkeypatch.setattr(learner, "block_sensitivity", lambda longest, *rest: declared(longest // 100, *rest))
    with pytest.raises(AssertionError):
        longest_moves([[0.0, 0.0]], [1e300, -1e300], [-9.0, 7.0])
