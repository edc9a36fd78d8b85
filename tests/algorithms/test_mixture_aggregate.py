"""Mixtures by sample and aggregate: blocks that agree are heard, failing ones are not, neighbours look alike."""

import logging
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.mixture import GaussianMixture

from fogline import Ledger, PrivacyWarning, PrivateGaussianMixture
from fogline.algorithms.mixture_aggregate import AGGREGATE_SHARES
from fogline.audit import canary_pairs, replay
from fogline.audit.neighbour_pairs import Pair
from fogline.queries.ball_search import AverageQuery, Ball, BoxQuery, RingQuery
from fogline.queries.block_learners import BlockMeans, OfferQuery, Offers, SpectralLearner
from fogline.queries.lattice import CentredBallLattice
from fogline.queries.partition import NearestParts
from fogline.sources.passes import RecordPasses
from fogline.testing import seeded_noise

MEANS = np.array([[-6.0, 0.0], [6.0, 0.0], [0.0, 8.0]])
WEIGHTS = np.array([0.5, 0.3, 0.2])


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    return MEANS[rng.choice(3, size=n, p=WEIGHTS)] + rng.normal(size=(n, 2)) * [1.0, 0.7]


def mixture(**options):
    return PrivateGaussianMixture(
        **{
            "method": "sample-aggregate",
            "n_components": 3,
            "epsilon": 4.0,
            "delta": 1e-6,
            "radius": 20.0,
            "learner": "spectral",
        }
        | options
    )


class Loud(GaussianMixture):
    """A learner that complains all the time and fails now and then."""

    def fit(self, X, y=None):
        print("looking at", len(X))
        warnings.warn(f"{len(X)} records", stacklevel=1)
        if len(X) % 3 == 0:
            raise ValueError(f"cannot bear {X}")
        return super().fit(X, y)


class Mute:
    """A learner that never finds anything."""

    def fit(self, X):
        raise SystemExit(str(X))


class Shapeless:
    """A learner whose means are of no use."""

    def fit(self, X):
        self.means_ = np.full((2, 7), np.nan)


@pytest.mark.parametrize("learner", ["spectral", None])
def test_the_components_are_found(learner):
    with seeded_noise(3):
        model = mixture(learner=learner).fit(drawn(25_000))
    assert model.verdict_ is None
    np.testing.assert_allclose(model.weights_, WEIGHTS, atol=0.02)
    np.testing.assert_allclose(model.means_, MEANS, atol=0.15)
    spreads = np.sqrt(np.einsum("kii->ki", model.covariances_))
    np.testing.assert_allclose(spreads, np.broadcast_to([1.0, 0.7], (3, 2)), atol=0.15)
    assert model.counts_.sum() == pytest.approx(25_000, rel=0.05)
    assert model.composition_["rho"] <= model.cost().rho
    assert model.cost().delta == pytest.approx(1e-6 / 8)


@pytest.mark.filterwarnings("always::fogline.PrivacyWarning")
def test_a_learner_of_ones_own_that_fails_and_talks_is_not_heard(capsys, recwarn):
    with seeded_noise(0):
        model = mixture(learner=Loud(3, max_iter=5, init_params="k-means++"), epsilon=12.0).fit(drawn(8000))
    assert model.verdict_ is None
    assert [warning.category for warning in recwarn.list] == [PrivacyWarning]  # of epsilon, once, and nothing else
    assert capsys.readouterr() == ("", "")
    assert "declared: the learner looks at nothing but its block" in model.guarantee_.mechanism


def test_a_block_has_its_own_seed_and_its_own_records(caplog):
    """The parts of a learner included: numpy's own generator would tie each block to the ones before it."""

    class Nosy(BaseEstimator):
        def __init__(self, inner=None):
            self.inner = inner

        def fit(self, X):
            logging.getLogger("nosy").critical("%s", X)
            assert X.base is None
            self.means_ = np.full((1, 2), self.inner.random_state % 1000 / 200)
            return self

    blocks = BlockMeans(FRAME, Nosy(GaussianMixture(2)), 3, 1, 0)
    first, again = (blocks.found(RecordPasses(drawn(n), 2)) for n in (60, 61))
    assert len({float(means[0, 0]) for means in first}) == 3
    np.testing.assert_array_equal(np.concatenate(first), np.concatenate(again))
    assert not caplog.records


@pytest.mark.parametrize("learner", [Mute(), Shapeless()])
def test_a_learner_that_finds_nothing_gives_an_answer(learner):
    with seeded_noise(0):
        model = mixture(learner=learner).fit(drawn(3000))
    assert not model.verdict_
    assert model.verdict_.method == "sample-aggregate"
    assert (model.verdict_.found, model.verdict_.wanted) == (1, 3)
    np.testing.assert_allclose(model.means_[0], WEIGHTS @ MEANS, atol=0.7)


@pytest.mark.parametrize("shape", ["uniform", "normal"])
def test_what_has_no_parts_is_not_cut(shape):
    rng = np.random.default_rng(1)
    X = rng.uniform(-10, 10, (20_000, 2)) if shape == "uniform" else rng.normal(0, 3, (20_000, 2))
    with seeded_noise(1):
        model = mixture().fit(X)
    assert not model.verdict_
    assert model.verdict_.wanted == 3
    assert len(model.weights_) < 3


def test_one_component_needs_no_search():
    with seeded_noise(0):
        model = mixture(n_components=1, epsilon=1.0).fit(drawn(6000))
    assert model.verdict_ is None
    assert model.composition_["releases"] == 8
    np.testing.assert_allclose(model.means_[0], WEIGHTS @ MEANS, atol=0.5)


@pytest.mark.parametrize("rows", [np.empty((0, 2)), np.zeros((1, 2)), np.full((9, 2), 1e300), np.ones((4000, 2))])
def test_hopeless_data_are_no_error(rows):
    with seeded_noise(2):
        model = mixture().fit(rows)
    assert np.isfinite(model.means_).all()
    assert np.linalg.eigvalsh(model.covariances_).min() > 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"n_components": None}, "n_components"),
        ({"n_components": 0}, "n_components"),
        ({"radius": None}, "radius"),
        ({"center": [0.0]}, "center"),
        ({"sigma_min": 9.0, "sigma_max": 1.0}, "sigma_min"),
        ({"weight_min": 0.9}, "weight_min"),
        ({"learner": "oracle"}, "learner"),
        ({"learner": 3}, "learner"),
        ({"learner": GaussianMixture}, "learner"),
        ({"neighbours": "twins"}, "neighbours"),
        ({"delta": None}, "delta"),
    ],
)
def test_bad_parameters_are_named_and_cost_nothing(options, named, tmp_path):
    places = {"dataset": "people", "high_water": tmp_path / "marks"}
    with Ledger.create(tmp_path / "books", epsilon=5.0, delta=1e-5, **places) as ledger:
        with pytest.raises((TypeError, ValueError), match=named):
            mixture(ledger=ledger, **options).fit(drawn(100))
        assert not any(entry.kind == "reserve" for entry in ledger.history())


@pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # so that few records will do
def test_a_ledger_answers_the_same_question_for_free(tmp_path):
    places = {"dataset": "people", "high_water": tmp_path / "marks"}
    X = drawn(6000)
    with Ledger.create(tmp_path / "books", epsilon=200.0, delta=1e-5, set_aside=9e-6, **places) as ledger:
        fits = [mixture(ledger=ledger, epsilon=60.0, learner=name).fit(X) for name in ("spectral", "spectral")]
        assert sum(entry.kind == "reserve" for entry in ledger.history()) == 1
        mixture(ledger=ledger, epsilon=1.0, learner=Shapeless()).fit(X)
        assert sum(entry.kind == "reserve" for entry in ledger.history()) == 2
    np.testing.assert_array_equal(fits[0].means_, fits[1].means_)


def test_shares_are_the_whole():
    assert sum(AGGREGATE_SHARES.values()) == 1


def test_the_spectral_learner_projects_before_it_clusters():
    rng = np.random.default_rng(0)
    centres = np.eye(3, 60) * 16.0
    X = centres[rng.integers(0, 3, 120)] + rng.normal(size=(120, 60))
    found = SpectralLearner(3).fit(X)
    assert np.linalg.norm(found.means_[:, None] - centres, axis=2).min(axis=0).max() < 2.5
    assert found.weights_.sum() == pytest.approx(1.0)


FRAME = CentredBallLattice.around([0.0, 0.0], 10.0)
few_rows = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=40)


@settings(deadline=None, max_examples=60)
@given(few_rows, st.integers(0, 39), st.integers(0, 2**62), st.randoms(use_true_random=False))
def test_one_record_less_changes_one_block_by_one_record(rows, gone, key, shuffled):
    """Copies included, in whatever order the records come."""
    rows = [*rows, (0, 0)]
    less = [row for index, row in enumerate(rows) if index != gone % len(rows)]
    shuffled.shuffle(less)
    blocks = BlockMeans(FRAME, None, 5, key, 0)
    before, after = (
        [sorted(map(tuple, part.tolist())) for part in blocks.dealt(RecordPasses(np.array(X, float).reshape(-1, 2), 2))]
        for X in (rows, less)
    )
    changed = [block for block in range(5) if before[block] != after[block]]
    assert len(changed) == 1
    (block,) = changed
    assert len(before[block]) == len(after[block]) + 1
    assert not [row for row in set(after[block]) if after[block].count(row) > before[block].count(row)]


def test_copies_are_spread_over_the_blocks():
    parts = BlockMeans(FRAME, None, 8, 1, 0).dealt(RecordPasses(np.ones((800, 2)), 2))
    assert min(map(len, parts)) > 60


def test_a_block_offers_one_mean_that_is_not_explained():
    offers = Offers(None, (Ball(np.array([5.0, 0.0]), 0.5, 1.0, 1.0),), np.array([1.0, 0.0]))
    means = np.array([[5.2, 1.0], [-4.0, 0.0], [2.0, 2.0]])
    assert offers.offer(means).tolist() == [[2.0, 2.0]]
    assert offers.offer(means[:1]).shape == (0, 2)
    assert offers.offer(means[:0]).shape == (0, 2)


def test_nearest_parts_cover_everything():
    rows = np.random.default_rng(0).normal(size=(500, 2)) * 20
    parts = NearestParts(FRAME, np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 9.0]]))
    assert set(parts.labels(rows).tolist()) == {0, 1, 2}
    assert parts.labels(rows[:1])[0] == parts.labels(rows)[0]


NAMES = {
    "empty and one record",
    "an ordinary record",
    "corner 1",
    "missing",
    "just outside",
    "all missing, and one in the middle",
}


def agreeing_pairs():
    """Neighbours whose blocks agree, and a block that falls out: a record is far off, and its mean with it."""
    X = drawn(5000, seed=5)
    far = np.vstack([X, [[-19.0, 2.0]]])
    return [Pair("a member goes", X, X[1:], "add-remove"), Pair("a far one comes", X, far, "add-remove")]


def audit(pairs, **options):
    return replay(mixture(**{"epsilon": 60.0, "delta": 1e-5} | options), pairs, until_failure=True)


def test_neighbours_cannot_be_told_apart():
    pairs = canary_pairs([(-5.0, 5.0)] * 2, neighbours="add-remove", n=40, block=None)
    report = audit([pair for pair in pairs if pair.name in NAMES], epsilon=2.0)
    assert report.passed, str(report)


@pytest.mark.parametrize("learner", ["spectral", GaussianMixture(3, max_iter=5)])
def test_neighbours_cannot_be_told_apart_where_blocks_agree(learner):
    report = audit(agreeing_pairs(), learner=learner)
    assert report.passed, str(report)
    assert min(pair.calls for pair in report.pairs) > 25
    assert report.largest_ratio > 0.5


def test_replaced_records_cannot_be_told_apart_where_blocks_agree():
    """A replaced record leaves one block and enters another: two offers change, each into another one."""
    X = drawn(5000, seed=5)
    pairs = [Pair("one is replaced", X, np.vstack([X[1:], [[-19.0, 2.0]]]), "replace")]
    report = audit(pairs, neighbours="replace", learner="spectral")
    assert report.passed, str(report)
    assert report.largest_ratio > 0.3


def test_a_replaced_record_counted_for_one_block_is_noticed(monkeypatch):
    """The mutant that forgets the block that a replaced record enters."""
    monkeypatch.setattr(OfferQuery, "sensitivity", lambda self, _, most: self.query.sensitivity("add-remove", most))
    X = drawn(5000, seed=5)
    pairs = [Pair("one is replaced", X, np.vstack([X[1:], [[-19.0, 2.0]]]), "replace")]
    assert not audit(pairs, neighbours="replace", learner="spectral").passed


def test_several_records_of_a_unit():
    X = drawn(5000, seed=5)
    pairs = [Pair("three go", X, X[3:], "add-remove")]
    report = audit(pairs, max_contributions=3)
    assert report.passed, str(report)


def test_a_changed_block_counted_as_one_point_is_noticed(monkeypatch):
    """The mutant that the paper's wording invites: what a record changes is taken for one row of the search."""
    monkeypatch.setattr(OfferQuery, "sensitivity", lambda self, *told: self.query.sensitivity(*told))
    assert not audit(agreeing_pairs()).passed


def test_all_means_of_a_block_offered_at_once_are_noticed(monkeypatch):
    monkeypatch.setattr(Offers, "offer", lambda self, means: np.repeat(means, 3, axis=0))
    assert not audit(agreeing_pairs()).passed


@pytest.mark.parametrize("query", [AverageQuery, BoxQuery, RingQuery])
def test_a_quarter_of_the_sensitivity_is_noticed(monkeypatch, query):
    real = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, *args: real(self, *args) / 4)
    assert not audit(agreeing_pairs()).passed


def test_blocks_by_the_place_in_the_file_are_noticed(monkeypatch):
    def dealt(self, records):
        parts = []
        records.each(parts.append)
        return np.array_split(np.concatenate(parts), self.blocks)

    monkeypatch.setattr(BlockMeans, "dealt", dealt)
    assert not audit(agreeing_pairs()).passed
