"""PrivateModeClustering: what it finds, what it says when it cannot, scikit-learn's manners."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from scikit_learn_checks import scikit_learn_checks
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import get_tags

from fogline import Ledger, PrivateModeClustering
from fogline.queries import em_step as mixture_step
from fogline.queries.em_step import ClusterStepQuery, GaussianClusters, StepSums
from fogline.testing import seeded_noise

SETTINGS = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-10, 10), "n_clusters": 4}


def mixture(d=8, n=4000, k=4, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(k, d))
    labels = rng.integers(k, size=n)
    return centres[labels] + rng.normal(size=(n, d)), labels, centres


def fitted(X, *, seed=0, **options):
    with seeded_noise(seed):
        return PrivateModeClustering(**(SETTINGS | options)).fit(X)


@pytest.fixture(scope="module")
def sample():
    return mixture()


@pytest.fixture(scope="module")
def found(sample):
    return fitted(sample[0])


def matched(found, centres):
    distance = np.linalg.norm(found.cluster_centers_[:, None] - centres, axis=2)
    return distance.argmin(axis=1), distance.min(axis=1)


# -- what comes out --------------------------------------------------------------------------------------------


def test_clusters_of_many_columns(sample, found):
    X, labels, centres = sample
    order, distance = matched(found, centres)
    assert sorted(order) == [0, 1, 2, 3]
    assert distance.max() < 1.5
    assert adjusted_rand_score(labels, found.predict(X)) > 0.95
    assert found.standard_errors_.shape == (4, 8)
    truth = np.bincount(labels, minlength=4)[order]
    assert (np.abs(found.sizes_ - truth) < 5 * found.size_standard_errors_).all()
    assert found.sizes_.sum() == pytest.approx(4000, rel=0.1)
    assert found.components_.shape == (found.projected_centers_.shape[1], 8)
    assert found.message_ == ""
    assert sum(found.shares_.values()) == pytest.approx(1.0)


def test_the_number_of_clusters_is_found(sample):
    X, labels, _ = sample
    found = fitted(X, n_clusters=None)
    assert adjusted_rand_score(labels, found.predict(X)) > 0.9
    assert len(found.cluster_centers_) == 4
    assert found.message_ == ""


def test_larger_clusters_come_first_and_sizes_sum_to_the_count():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1, size=(n, 5)) for m, n in ((-5, 500), (0, 3000), (5, 1500))])
    found = fitted(X, n_clusters=3)
    assert (np.diff(found.sizes_) < 0).all()
    assert found.cluster_centers_[:, 0].round().tolist() == pytest.approx([0, 5, -5], abs=1)
    assert found.sizes_.sum() == pytest.approx(found.count_)
    assert abs(found.count_ - 5000) < 5 * found.count_standard_error_


def test_errors_are_as_large_as_they_are_said_to_be():
    ratios, sizes = [], []
    for seed in range(4):
        X, labels, centres = mixture(d=5, k=3, seed=seed, spread=4.0)
        found = fitted(np.clip(X, -20, 20), seed=seed, n_clusters=3, bounds=(-20, 20))
        order, _ = matched(found, centres)
        ratios.append((((found.cluster_centers_ - centres[order]) / found.standard_errors_) ** 2).mean())
        sizes.append((((found.sizes_ - np.bincount(labels)[order]) / found.size_standard_errors_) ** 2).mean())
    assert 0.4 < np.mean(ratios) < 2.5
    assert np.mean(sizes) < 2.5  # the draw of the labels is in the stated error, and here it is not in the truth


@pytest.mark.parametrize("projection", ["identity", "random", np.eye(8)[:5]])
def test_public_projections(sample, projection):
    X, labels, _ = sample
    found = fitted(X, projection=projection)
    assert adjusted_rand_score(labels, found.predict(X)) > 0.6
    assert "projection" not in found.shares_


def test_bent_clusters_of_two_columns_by_basins():
    X, labels = make_moons(10_000, noise=0.05, random_state=3)
    found = fitted(X, bounds=[(-2, 3), (-1.5, 2)], n_clusters=2)
    assert adjusted_rand_score(labels, found.predict(X)) > 0.9
    assert found.components_ is None
    assert found.regions_ is not None
    np.testing.assert_allclose(found.sizes_, 5000, atol=500)
    assert (found.size_standard_errors_ > 0).all()


def test_the_number_of_bent_clusters_is_found():
    X, labels = make_moons(10_000, noise=0.08, random_state=3)
    found = fitted(4 * X, bounds=(-12, 12), n_clusters=None)
    assert len(found.cluster_centers_) == 2
    assert adjusted_rand_score(labels, found.predict(4 * X)) > 0.9


def test_clusters_that_no_one_bandwidth_shows_are_the_modes():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, s, (n, 1)) for m, s, n in ((-8, 0.12, 6000), (-7, 0.12, 6000), (3, 2.5, 8000))])
    found = fitted(X, bounds=[(-10, 10)], n_clusters=None)
    assert len(found.cluster_centers_) == 3
    np.testing.assert_allclose(np.sort(found.sizes_), [6000, 6000, 8000], rtol=0.15)


def test_distances_and_densities(sample, found):
    X = sample[0]
    distances = found.distances(X[:50])
    np.testing.assert_allclose(distances, np.linalg.norm(X[:50, None] - found.cluster_centers_[None], axis=2))
    far = np.full((1, 8), 1e3)
    assert found.score_samples(found.cluster_centers_).min() > found.score_samples(far)[0]
    assert np.isfinite(found.score_samples(far)).all()
    flat = fitted(X[:, :2], n_clusters=2)
    assert np.isfinite(flat.score_samples(X[:5, :2])).all()
    assert flat.distances(X[:5, :2]).shape == (5, 2)


def test_a_row_with_a_missing_value_has_no_cluster(sample, found):
    rows = sample[0][:3].copy()
    rows[1, 4] = np.nan
    assert (found.predict(rows) == -1).tolist() == [False, True, False]


# -- when little can be seen -----------------------------------------------------------------------------------


def test_nothing_stands_above_the_fog():
    X = np.random.default_rng(0).uniform(-10, 10, size=(1500, 40))
    found = fitted(X, n_clusters=None, epsilon=0.1)
    assert len(found.cluster_centers_) == 0
    assert "records" in found.message_
    assert "epsilon" in found.message_
    assert found.predict(X[:30]).tolist() == [-1] * 30
    assert found.distances(X[:30]).shape == (30, 0)
    assert np.isfinite(found.score_samples(X)).all()


def test_one_cluster_and_constant_columns():
    X = np.random.default_rng(0).normal(size=(5000, 6))
    X[:, 3] = 2.0
    found = fitted(X, n_clusters=1)
    assert len(found.cluster_centers_) == 1
    assert abs(found.cluster_centers_[0, 3] - 2) < 0.5
    assert np.abs(found.cluster_centers_[0, :3]).max() < 0.5
    constant = fitted(np.full((5000, 5), 3.0), n_clusters=2)
    assert np.isfinite(constant.cluster_centers_).all()


def test_more_clusters_than_can_be_seen(tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    found = fitted(X, n_clusters=40)
    assert len(found.cluster_centers_) < 40
    assert "of 40" in found.message_
    assert fitted(np.zeros((0, 5)), n_clusters=3).cluster_centers_.shape[1] == 5


# -- bad input: named, and free --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"epsilon": None}, "epsilon"),
        ({"bounds": None}, "bounds"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 10**6}, "n_clusters"),
        ({"level": 2.0}, "level"),
        ({"projection": "pca"}, "projection"),
        ({"projection": [[1.0, 2.0]]}, "projection"),
        ({"components": 99}, "components"),
        ({"refinement": "often"}, "refinement"),
        ({"refinement": 0}, "refinement"),
        ({"bandwidth": "wide"}, "bandwidth"),
        ({"bandwidth": 5.0}, "bandwidth"),
        ({"shares": {"density": 1}}, "shares"),
        ({"shares": {"scale": "1/2", "projection": "1/2", "density": "1/2", "refinement": "1/2"}}, "shares"),
        ({"neighbours": "both"}, "neighbours"),
        ({"ledger": "budget.db"}, "ledger"),
    ],
)
def test_bad_parameters_are_named(wrong, name):
    with pytest.raises((TypeError, ValueError), match=name):
        PrivateModeClustering(**(SETTINGS | wrong)).fit(np.zeros((5, 8)))


def test_columns_must_match(found):
    with pytest.raises(ValueError, match="X has 7 features, but PrivateModeClustering is expecting 8"):
        found.predict(np.zeros((3, 7)))
    with pytest.raises(NotFittedError):
        PrivateModeClustering(**SETTINGS).predict(np.zeros((3, 8)))
    with pytest.raises(ValueError, match="column"):
        PrivateModeClustering(**(SETTINGS | {"bounds": [(0, 1)] * 4})).fit(np.zeros((5, 8)))


def test_no_labels_of_private_records(found):
    assert not hasattr(found, "labels_")
    assert not hasattr(found, "fit_predict")


def test_every_fitted_attribute_is_documented_and_released(found):
    public = {name for name in vars(found) if name.endswith("_") and not name.startswith("_")}
    assert public - {"n_features_in_"} == set(PrivateModeClustering._released_attributes)
    for name in PrivateModeClustering._released_attributes:
        assert name in PrivateModeClustering.__doc__


def test_a_pickle_gives_the_same_labels(sample, found):
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.predict(sample[0]), found.predict(sample[0]))
    frame = pd.DataFrame(sample[0], columns=list("abcdefgh"))
    assert fitted(frame).cluster_centers_.tobytes() == found.cluster_centers_.tobytes()


def test_files_give_the_same_release(sample, found, tmp_path):
    path = tmp_path / "records.parquet"
    pd.DataFrame(sample[0], columns=list("abcdefgh")).to_parquet(path)
    assert fitted(path).cluster_centers_.tobytes() == found.cluster_centers_.tobytes()


def test_expected_error_is_free_and_falls_with_epsilon():
    told = PrivateModeClustering(**(SETTINGS | {"bounds": [(-10, 10)] * 8})).expected_error(4000)
    errors = np.array(
        [[row.count_error, row.mean_errors[0], row.smallest_variance, row.centre_error] for row in told.rows]
    )
    assert (np.diff(errors, axis=0) < 0).all()
    line = SETTINGS | {"bounds": [(-10, 10)], "n_clusters": 1, "bandwidth": 0.1}
    flat = PrivateModeClustering(**line).expected_error(1000, epsilons=[1.0])
    assert flat.modes is not None


def test_the_planned_noise_is_about_that_of_a_fit(found):
    row = PrivateModeClustering(**(SETTINGS | {"bounds": [(-10, 10)] * 8})).expected_error(4000, epsilons=[1.0]).rows[0]
    assert 0.5 < row.count_error / found.count_standard_error_ < 2
    # Centres of a fit have the sampling of a thousand records of deviation 1 beside the noise.
    stated = np.sqrt(np.mean(found.standard_errors_**2))
    assert 0.5 < np.hypot(row.centre_error, 1 / np.sqrt(1000)) / stated < 2


# -- the ledger: one question ------------------------------------------------------------------------------------


def test_all_stages_are_one_question(sample, tmp_path):
    with Ledger.create(tmp_path / "l", dataset="x", epsilon=1.0, delta=1e-6, high_water=tmp_path / "m") as ledger:
        asked = {"delta": 1e-6, "ledger": ledger}
        first, again = (PrivateModeClustering(**(SETTINGS | asked)).fit(sample[0]) for _ in range(2))
        assert sum(entry.kind == "reserve" for entry in ledger.history()) == 1
        assert first.cluster_centers_.tobytes() == again.cluster_centers_.tobytes()
        assert first.receipt_ == again.receipt_
        assert first.guarantee_.certified
        assert ledger.remaining().rho < 1e-9


# -- the steps of refinement ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["full", "tied", "round"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_step_stays_within_its_sensitivity(kind, relation):
    rng = np.random.default_rng(0)
    model = GaussianClusters(np.full(3, 1 / 3), rng.normal(size=(3, 2)) * 0.2, np.stack([0.01 * np.eye(2)] * 3))
    query = StepSums(model, 2**14, kind)
    places = np.rint(rng.normal(scale=0.4, size=(300, 2)) * 2**14)
    single = [query.sums([row[None]]).astype(object) for row in places]
    pairs = [(a, 0 * a) for a in single] if relation == "add-remove" else list(itertools.pairwise(single))
    largest = max(int(np.sum((a - b) ** 2)) for a, b in pairs)
    limit = query.sensitivity(relation, 1) ** 2
    assert 0.25 * limit < largest <= limit
    shares, offsets = query.shares(places)
    assert shares.min() >= 0
    assert shares.sum(axis=1).max() <= mixture_step.SHARE
    assert max(np.sum(v**2, axis=1).max() for v in offsets) <= query.radius**2


def test_a_step_does_not_depend_on_the_batches():
    rng = np.random.default_rng(1)
    model = GaussianClusters(np.array([0.3, 0.7]), rng.normal(size=(2, 5)), np.stack([0.3 * np.eye(5)] * 2))
    query = StepSums(model, 2**13, "full")
    places = np.rint(rng.normal(size=(101, 5)) * 2**13)
    assert query.sums([places]).tolist() == query.sums([places[:1], places[1:40], places[40:]]).tolist()


def test_steps_without_noise_find_the_moments():
    rng = np.random.default_rng(2)
    shape = np.array([[0.04, 0.02], [0.02, 0.03]])
    z = np.concatenate([rng.multivariate_normal(m, shape, 20000) for m in ([-0.6, 0], [0.6, 0.2])])
    model = GaussianClusters(np.full(2, 0.5), np.array([[-0.5, 0.1], [0.5, 0.1]]), np.stack([0.06 * np.eye(2)] * 2))
    variances = np.full((2, 2), 0.01)
    for _ in range(15):
        query = ClusterStepQuery(model, 2**14, "full", None, 40000.0, variances)
        step = query.decode(query.sums([np.rint(z * 2**14)]), 1.0)
        model, variances = step.model, step.centre_variances
    np.testing.assert_allclose(model.means, [[-0.6, 0], [0.6, 0.2]], atol=0.02)
    np.testing.assert_allclose(model.covariances, np.stack([shape] * 2), rtol=0.2, atol=0.003)
    assert (variances < 1e-6).all()


def test_an_offset_is_believed_as_far_as_it_can_be_more_than_noise():
    noise = np.array([0.5, 0.5])
    still, moved = np.zeros((2, 6)), np.array([[0.0] * 6, [3.0] * 6])
    assert mixture_step._gains(still, noise, np.zeros(2)).max() == 0
    one, other = mixture_step._gains(moved, noise, np.zeros(2))
    assert one < other
    assert other > 0.9
    known = mixture_step._gains(still, noise, np.full(2, 0.25))  # two looks that are as good as each other
    np.testing.assert_allclose(known, 0.5)


def test_refinement_by_default_is_not_for_the_worse():
    errors = {"auto": [], False: []}
    for seed in range(3):
        X, labels, _ = mixture(d=5, n=5000, seed=seed, spread=2.5)
        means = np.array([X[labels == j].mean(axis=0) for j in range(4)])
        for choice, kept in errors.items():
            found = fitted(X, seed=seed, refinement=choice)
            kept.append((matched(found, means)[1] ** 2).mean())
    assert np.mean(errors["auto"]) < 4 * np.mean(errors[False])  # a fifth of the budget sees half as far as a half


def test_few_records_still_show_as_many_directions_as_clusters():
    X = np.random.default_rng(0).normal(size=(60, 8))
    assert [len(fitted(X, n_clusters=k).components_) for k in (1, 2, 5)] == [1, 2, 3]
    assert len(fitted(X, n_clusters=5, components=1).components_) == 1


# -- scikit-learn ---------------------------------------------------------------------------------------------------


@scikit_learn_checks(PrivateModeClustering(epsilon=1.0, delta=1e-5, bounds=(-1000, 1000), n_clusters=2, bandwidth=0.2))
def test_scikit_learn(estimator, check):
    check(estimator)


def test_it_is_not_a_transformer_and_says_what_to_use():
    model = PrivateModeClustering(epsilon=1.0, delta=1e-5, bounds=(-1000, 1000))
    assert get_tags(model).transformer_tags is None
    assert not hasattr(model, "transform")
    with pytest.raises(AttributeError, match=r"not a transformer; .* distances\(X\)"):
        _ = model.transform
