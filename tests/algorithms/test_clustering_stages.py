"""The stages of a clustering: no released value makes a later one fail, and a paid release can be read anywhere."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import Ledger, PrivateModeClustering, private_pca
from fogline.algorithms import clustering as staged
from fogline.algorithms.clustering import FREQUENCIES, plan_clusters
from fogline.estimators import pca
from fogline.queries import moments
from fogline.queries.em_step import GaussianClusters, StepSums
from fogline.queries.moments import ExactSum, components_of
from fogline.queries.projected_density import ProjectedDensityQuery
from fogline.releases.curator import Curator
from fogline.releases.density_sketch import ReleaseTerms
from fogline.testing import seeded_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-5}
TERMS = ReleaseTerms.checked(1.0, 1e-5, "add-remove", 1)
LARGE = st.integers(-(2**61), 2**61) | st.integers(-(2**30), 2**30) | st.just(0)


class Answered(Curator):
    """A curator that answers with given numbers whatever is asked, and has seen no record."""

    def __init__(self, values):
        super().__init__(np.zeros((0, 1)), TERMS, width=1)
        self.values = values

    def ask(self, query, share, name):
        numbers = np.resize(np.array(self.values, dtype=np.int64), query.size)
        self.transcript.append((name, numbers, 1.0))
        return query.decode(numbers, query.sensitivity("add-remove", 1) * 4.0)


def projected_density(curator, parts, spec):
    return curator.ask(ProjectedDensityQuery(parts.projection, spec, TERMS.guarantee()), Fraction(1, 2), "density")


@settings(max_examples=60, deadline=None)
@given(
    d=st.sampled_from([4, 6, 10]),
    values=st.lists(LARGE, min_size=1, max_size=90),
    bandwidth=st.sampled_from(["auto", 0.02, 0.7]),
    components=st.sampled_from([None, 1, 4]),
    projection=st.sampled_from(["private", "random", "identity"]),
)
def test_no_released_value_makes_the_density_fail(d, values, bandwidth, components, projection):
    model = PrivateModeClustering(
        **BUDGET,
        bandwidth=bandwidth,
        projection=projection,
        components=None if projection == "identity" else components,
    )
    plan = plan_clusters(model, np.array([(-3.0, 10.0)] * d), 0.05)
    curator = Answered(values)
    spread = curator.ask(moments.SpreadQuery(plan.lattice), plan.portions["scale"], "scale")
    parts = staged._projection(plan, curator, spread)
    spec = staged.density_spec(parts, plan.bandwidth)
    density = projected_density(curator, parts, spec)
    assert spec.n_features == FREQUENCIES
    assert len(density._released) == spec.n_coefficients
    assert (spec.planned <= spec.widths).all()


@settings(max_examples=40, deadline=None)
@given(
    edge=st.floats(0.0, 1e3),
    mean=st.lists(st.floats(-1.0, 1.0), min_size=5, max_size=5),
    variances=st.lists(st.floats(2e-4, 5.0), min_size=5, max_size=5),
)
def test_any_axes_can_be_planned(edge, mean, variances):
    plan = plan_clusters(PrivateModeClustering(**BUDGET), np.array([(0.0, 10.0)] * 5), 0.05)
    found = moments.Moments(np.array(mean), 0.1, np.diag(variances), edge / 2)
    parts = components_of(found, plan.lattice, 5, 5)
    for kept in (parts, replace(parts, variances=np.sort(np.array(variances))[::-1])):
        projected_density(Answered([0]), kept, staged.density_spec(kept, plan.bandwidth))


@pytest.mark.parametrize("d", [6, 10])
def test_round_clusters_are_never_an_error(d):
    rng = np.random.default_rng(d)
    X = np.concatenate([rng.normal(m, 1, size=(3000, d)) for m in (2, 5, 8)])
    for seed in range(2):
        with seeded_noise(seed):
            model = PrivateModeClustering(**BUDGET, bounds=(0, 10), n_clusters=3, refinement=1).fit(X)
        assert model.cluster_centers_.shape[1] == d


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_columns_that_do_not_vary_are_never_an_error(rows):
    X = np.full((rows, 6), 5.0)
    X[:, 0] += np.linspace(-4, 4, rows)
    for seed in range(3):
        with seeded_noise(seed):
            PrivateModeClustering(**BUDGET, bounds=(0, 10), refinement=1).fit(X)


# -- exact sums ---------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-(2**53) + 1, 2**53 - 1), max_size=30), st.integers(0, 10))
def test_a_sum_is_exact_and_cut_once(parts, doublings):
    total, exact = ExactSum(1), 0
    for part in parts:
        total.add(np.array([float(part)]))
        exact += part
    for _ in range(doublings):  # as if the same batches had come many times over
        total._high, total._low = 2 * total._high + (2 * total._low >> 32), 2 * total._low & moments.LOW
        exact *= 2
    assert total.cut().tolist() == [min(max(exact, -(2**61)), 2**61)]


def test_the_cut_does_not_depend_on_where_batches_end():
    """A sum that passes the limit and comes back is exact; cut on the way, it would have forgotten a record."""
    walk = [2**52] * 600 + [-(2**52)] * 700 + [3]
    ends = []
    for first in (0, 1):
        total = ExactSum(1)
        for start in range(first, len(walk), 7):
            for part in walk[start : start + 7]:
                total.add(np.array([float(part)]))
        ends.append(int(total.cut()[0]))
    assert ends[0] - ends[1] == walk[0]


def test_a_step_asks_linear_algebra_before_it_sees_a_record(monkeypatch):
    model = GaussianClusters(np.array([0.4, 0.6]), np.array([[0.0, 0.1], [0.3, 0.0]]), np.stack([0.01 * np.eye(2)] * 2))
    query = StepSums(model, 2**14, "full")
    batches = [np.array([[10.0, 20.0], [500.0, -3.0]])] * 3
    expected = query.sums(batches)

    def none(*args, **options):
        raise AssertionError("linear algebra within the query")

    for name in ("cholesky", "inv", "solve", "eigh"):
        monkeypatch.setattr(np.linalg, name, none)
    assert query.sums(batches).tolist() == expected.tolist()


# -- a release that is read on another machine ----------------------------------------------------------------------


def another_machine(monkeypatch):
    """Linear algebra that finds other directions, and other clusters, from the same answers."""
    real_components, real_pursuit = components_of, staged.matching_pursuit

    def components(*args):
        found = real_components(*args)
        fewer = replace(found.projection, directions=found.projection.directions[:1] * -1.0)
        return replace(found, projection=fewer, variances=found.variances[:1] * 1.5, standing=0)

    def pursue(*args, **options):
        found = real_pursuit(*args, **options)
        return replace(found, **{name: value[:1] for name, value in vars(found).items() if np.ndim(value)})

    monkeypatch.setattr(staged, "components_of", components)
    monkeypatch.setattr(pca, "components_of", components)
    monkeypatch.setattr(staged, "matching_pursuit", pursue)
    monkeypatch.setattr(staged, "_refinement", lambda *args: (7, "tied"))


@pytest.fixture
def ledger(tmp_path):
    options = {"dataset": "x", "epsilon": 2.0, "delta": 1e-6, "high_water": tmp_path / "m"}
    with Ledger.create(tmp_path / "l", **options) as made:
        yield made


def test_paid_clusters_are_the_same_on_another_machine(ledger, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 0.5, size=(3000, 6)) for m in (3, 7)])
    model = PrivateModeClustering(epsilon=1.0, delta=1e-6, bounds=(0, 10), n_clusters=2, refinement=2, ledger=ledger)
    first = model.fit(X).cluster_centers_.copy()
    another_machine(monkeypatch)
    again = model.fit(X)
    assert sum(entry.kind == "reserve" for entry in ledger.history()) == 1
    np.testing.assert_array_equal(again.cluster_centers_, first)


def test_paid_components_are_the_same_on_another_machine(ledger, monkeypatch):
    X = np.random.default_rng(0).normal(5, [2.0, 1.5, 0.2, 0.2], size=(3000, 4))
    options = {"epsilon": 1.0, "delta": 1e-6, "bounds": (0, 10), "ledger": ledger}
    first = private_pca(X, **options)[0]
    another_machine(monkeypatch)
    again = private_pca(X, **options)[0]
    np.testing.assert_array_equal(again.projection.directions, first.projection.directions)
    assert (again.standing, again.variances.tolist()) == (first.standing, first.variances.tolist())


def test_too_many_columns_for_a_second_moment_are_refused():
    with pytest.raises(ValueError, match="1024"):
        private_pca(np.zeros((2, 1025)), **BUDGET, bounds=(0, 1))
