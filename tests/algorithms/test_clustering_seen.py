"""PrivateModeClustering where little can be seen: how many clusters there are, what is said, odd data."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import PrivateModeClustering
from fogline.algorithms.clustering import _frame, density_spec, distinct, groups_with_dips, plan_clusters
from fogline.density.components import pursuit
from fogline.queries.em_step import GaussianClusters
from fogline.queries.moments import MomentQuery, SpreadQuery, components_of
from fogline.testing import seeded_noise


@pytest.fixture(autouse=True)
def _one_start(monkeypatch):
    """Speed: where centres lie exactly is tested elsewhere."""
    monkeypatch.setattr(pursuit, "PURSUIT", replace(pursuit.PURSUIT, restarts=1))


def fitted(X, *, seed=0, **options):
    with seeded_noise(seed):
        return PrivateModeClustering(**({"epsilon": 1.0, "delta": 1e-5, "bounds": (-10, 10)} | options)).fit(X)


@pytest.mark.parametrize(("shape", "most"), [("uniform", 0), ("normal", 1)])
@pytest.mark.quick
def test_no_cluster_where_records_fill_the_box_and_one_where_they_gather(shape, most):
    rng = np.random.default_rng(0)
    numbers = []
    for seed in range(3):
        X = rng.uniform(-10, 10, size=(5000, 5)) if shape == "uniform" else rng.normal(0, 2, size=(5000, 5))
        found = fitted(X, seed=seed, n_clusters=None, refinement=False)
        numbers.append(len(found.cluster_centers_))
        assert ("no cluster" in found.message_) == (numbers[-1] == 0)
    assert numbers == [most] * 3


def test_more_clusters_than_can_be_told_apart():
    X = np.random.default_rng(0).normal(0, 2, size=(5000, 5))
    found = fitted(X, n_clusters=6)
    assert len(found.cluster_centers_) <= 6
    assert "of 6 clusters" in found.message_
    clear = fitted(np.concatenate([X[:1500] - 5, X[1500:3000] + 5]), n_clusters=2, bounds=(-15, 15))
    assert clear.message_ == ""


def test_what_would_help_does_not_hang_on_a_noisy_spread():
    """The told number of records is one at which the noise is small, and no more than that."""
    X = np.random.default_rng(0).normal(5, 0.5, size=(400, 4))
    told = []
    for seed in range(4):
        found = fitted(X, seed=seed, n_clusters=3, bounds=(0, 10), epsilon=0.5)
        told.append(int(re.search(r"about (\d+) records", found.message_).group(1)))
    assert len(set(told)) <= 2  # directions may differ
    assert 200 < min(told) <= max(told) < 20_000


def test_clusters_that_are_the_same_become_one():
    means = np.array([[0.0, 0.0], [0.5, 0.0], [0.001, 0.0]])  # deviations are 0.1
    clusters = GaussianClusters(np.array([0.2, 0.5, 0.3]), means, np.stack([0.01 * np.eye(2)] * 3))
    found, noise, sds = distinct(clusters, np.full((3, 2), 0.002), np.full(3, 0.1))
    assert found.weights.tolist() == pytest.approx([0.5, 0.5])
    assert found.means[:, 0].tolist() == pytest.approx([0.5, 0.0006])
    assert noise.shape == (2, 2)
    assert sds.tolist() == pytest.approx([0.1, 0.1 * 2**0.5])
    precise = distinct(clusters, np.full((3, 2), 1e-9), np.full(3, 0.1))[0]
    assert len(precise.weights) == 3


# -- what earlier answers may be: anything ------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(4, 12), st.sampled_from([None, 1, 4]), st.sampled_from(["auto", 0.02, 0.7]))
def test_a_density_can_be_planned_from_any_answers(data, d, components, bandwidth):
    plan = plan_clusters(PrivateModeClustering(components=components, bandwidth=bandwidth), [(0.0, 1.0)] * d, 0.05)
    size = st.sampled_from([0, 2**10, 2**20, 2**40, 2**61])
    scale = float(data.draw(st.sampled_from([1.0, 1e3, 1e7, 1e12])))

    def answers(query):
        return data.draw(st.integers(0, 2**32).map(np.random.default_rng)).integers(-1, 2, query.size) * data.draw(size)

    first = SpreadQuery(plan.lattice)
    spread = first.decode(answers(first), scale)
    second = MomentQuery.around(spread, plan.lattice)
    parts = components_of(second.decode(answers(second), scale), plan.lattice, plan.most, plan.components)
    spec = density_spec(parts, plan.bandwidth)
    assert np.isfinite(spec.upper - spec.lower).all()
    frame = _frame(parts)
    assert (frame.lower < frame.upper).all()


@pytest.mark.parametrize("n_clusters", [None, 3])
@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((0, 5)),
        np.full((1, 5), 10.0),
        np.full((3000, 5), 7.0),
        np.where(np.arange(5) == 2, np.random.default_rng(0).normal(size=(3000, 1)), 1.0),
        np.outer(np.random.default_rng(1).normal(size=3000), np.ones(5)),
        np.full((50, 5), np.nan),
        np.repeat([[-10.0] * 5, [10.0] * 5], 1500, axis=0),
    ],
    ids=["none", "one", "one place", "one column varies", "one line", "missing", "two corners"],
)
def test_odd_data_never_fail(rows, n_clusters):
    found = fitted(rows, n_clusters=n_clusters)
    assert np.isfinite(found.cluster_centers_).all()
    assert np.isfinite(found.standard_errors_).all()


def test_dips_between_refined_clusters():
    def groups(*places, noise=0.0):
        k = len(places)
        means = np.column_stack([places, np.zeros(k)])
        return groups_with_dips(
            GaussianClusters(np.full(k, 1 / k), means, np.stack([np.diag([1.0, 9.0])] * k)), np.full((k, 2), noise)
        )

    assert groups(0.0, 2.5, 5.0) == 3
    assert groups(0.0, 1.5, 4.0) == 2
    assert groups(0.0, 2.5, noise=0.5) == 1
