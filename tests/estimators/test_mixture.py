"""PrivateGaussianMixture: behaviour, and errors that name their parameter."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scikit_learn_checks import scikit_learn_checks
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from fogline import Ledger, PrivateGaussianMixture
from fogline.density.components import matching, pursuit
from fogline.testing import seeded_noise

RNG = np.random.default_rng(0)
MEANS = np.array([[-4.0, 0.0, 0.0, 1.0], [4.0, 0.0, 1.0, 0.0], [0.0, 5.0, 0.0, -1.0]])
WEIGHTS = np.array([0.5, 0.3, 0.2])
LABELS = RNG.choice(3, size=12000, p=WEIGHTS)
SPREADS = np.array([[1.0, 0.7, 1.3, 1.0], [0.8, 1.2, 1.0, 1.0], [1.0, 1.0, 0.6, 1.4]])
X = MEANS[LABELS] + SPREADS[LABELS] * RNG.normal(size=(12000, 4))


def mixture(**options):
    return PrivateGaussianMixture(**{"epsilon": 1.0, "delta": 1e-6, "radius": 15.0, "n_components": 3} | options)


@pytest.fixture(scope="module")
def fitted():
    with seeded_noise(1):
        return mixture().fit(X)


def test_a_mixture_of_nothing_is_told_by_its_count(fitted):
    assert fitted.message_ == ""
    with seeded_noise(0):
        nothing = mixture(n_components=1).fit(np.empty((0, 4)))
    assert nothing.message_.startswith("the release counts ")
    assert "which may be none: are the columns numeric, is the decimal mark right?" in nothing.message_
    assert nothing.verdict_ is None


@scikit_learn_checks(mixture(n_components=2, steps=1))
def test_scikit_learn(estimator, check, monkeypatch):
    # manners do not need a thorough search
    fewer = replace(pursuit.PURSUIT, restarts=1, swaps=1, candidates=64)
    monkeypatch.setattr(pursuit, "PURSUIT", fewer)
    monkeypatch.setattr(matching, "MATCHING", replace(matching.MATCHING, iterations=20))
    check(estimator)


def test_the_components_are_found(fitted):
    np.testing.assert_allclose(fitted.weights_, WEIGHTS, atol=0.02)
    np.testing.assert_allclose(fitted.means_, MEANS, atol=0.15)
    spreads = np.sqrt(np.einsum("kii->ki", fitted.covariances_))
    np.testing.assert_allclose(spreads, SPREADS, atol=0.15)
    np.testing.assert_allclose(fitted.precisions_ @ fitted.covariances_, np.repeat(np.eye(4)[None], 3, 0), atol=1e-8)
    assert fitted.counts_.sum() == pytest.approx(12000, rel=0.05)
    assert fitted.verdict_ is None
    assert not any(name in vars(fitted) for name in ("labels_", "X", "n_samples_"))


def test_errors_are_about_right():
    off, weights = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        labels = rng.choice(3, size=12000, p=WEIGHTS)
        rows = MEANS[labels] + SPREADS[labels] * rng.normal(size=(12000, 4))
        with seeded_noise(seed):
            model = mixture().fit(rows)
        off.append((model.means_ - MEANS) / model.standard_errors_)
        weights.append((model.weights_ - WEIGHTS) / model.weight_standard_errors_)
    assert 0.6 < np.sqrt(np.mean(np.square(off))) < 1.6
    assert 0.4 < np.sqrt(np.mean(np.square(weights))) < 1.6


def test_reading(fitted):
    rows = np.vstack([MEANS, [np.nan, 0, 0, 0]])
    assert fitted.predict(rows).tolist() == [0, 1, 2, -1]
    shares = fitted.predict_proba(MEANS)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.all(np.diag(shares) > 0.99)
    assert fitted.score_samples(X).mean() > fitted.score_samples(X + 3).mean()
    assert np.isnan(fitted.score_samples(rows)[3])
    drawn = fitted.sample(4000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), WEIGHTS @ MEANS, atol=0.3)
    np.testing.assert_array_equal(drawn, fitted.sample(4000, random_state=0))


def test_a_search_over_parameters_cannot_score_the_records_of_its_folds():
    with pytest.raises(TypeError, match="score"):
        GridSearchCV(mixture(), {"n_components": [1, 2]}, cv=2).fit(X)


def test_the_number_is_chosen_on_the_release():
    with seeded_noise(3):
        model = mixture(n_components=None).fit(X)
    assert len(model.weights_) == 3
    assert min(model.criteria_, key=model.criteria_.get) == 3
    assert model.bic_on_release() == model.criteria_[3] < model.bic_on_release(2)
    with pytest.raises(ValueError, match="n_components"):
        model.bic_on_release(40)


def test_one_component():
    with seeded_noise(0):
        model = mixture(n_components=1).fit(X)
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), atol=0.2)
    assert model.weights_.tolist() == [1.0]


def test_more_components_than_clusters_share_them():
    with seeded_noise(0):
        model = mixture(n_components=6).fit(X)
    assert model.weights_.sum() == pytest.approx(1)
    assert model.score_samples(X).mean() > mixture(n_components=1).fit(X).score_samples(X).mean()


@pytest.mark.parametrize("rows", [np.empty((0, 2)), np.zeros((1, 2)), np.full((5, 2), np.nan), np.full((9, 2), 1e300)])
def test_hopeless_data_are_no_error(rows):
    model = mixture(n_components=3).fit(rows)
    assert np.isfinite(model.means_).all()
    assert np.all(np.linalg.norm(model.means_, axis=1) <= 15.0 * (1 + 1e-9))
    assert np.all(np.linalg.eigvalsh(model.covariances_) > 0)


def test_a_component_with_one_record_does_not_show():
    odd = np.vstack([X, [[0.0, -14.0, 0.0, 0.0]]])
    with seeded_noise(0):
        model = mixture(n_components=4).fit(odd)
    assert np.linalg.norm(model.means_ - odd[-1], axis=1).min() > 3


def test_records_outside_are_moved_in_silently(recwarn):
    with seeded_noise(0):
        model = mixture(radius=4.0, n_components=2).fit(X)
    assert not recwarn.list
    assert np.all(np.linalg.norm(model.means_, axis=1) <= 4.0 * (1 + 1e-9))


def test_flat_components_are_kept_above_sigma_min():
    flat = X.copy()
    flat[:, 3] = 0.0
    with seeded_noise(0):
        model = mixture(sigma_min=0.2, sigma_max=5.0).fit(flat)
    deviations = np.sqrt(np.linalg.eigvalsh(model.covariances_))
    assert deviations.min() >= 0.2 * (1 - 1e-6)
    assert deviations.max() <= 5.0 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1000}, "n_components"),
        ({"n_components": 2.5}, "n_components"),
        ({"radius": None}, "radius"),
        ({"radius": -1.0}, "radius"),
        ({"radius": np.inf}, "radius"),
        ({"center": [0.0]}, "center"),
        ({"center": [0.0, 0.0, np.nan, 0.0]}, "center"),
        ({"sigma_min": 3.0, "sigma_max": 2.0}, "sigma_min"),
        ({"sigma_min": 0.0}, "sigma_min"),
        ({"weight_min": 0.5}, "weight_min"),
        ({"method": "magic"}, "method"),
        ({"shares": {"scale": 1}}, "shares"),
        ({"steps": -1}, "steps"),
        ({"steps": 0}, "steps"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"delta": None}, "delta"),
        ({"neighbours": "friends"}, "neighbours"),
        ({"max_contributions": 0}, "max_contributions"),
        ({"ledger": "budget"}, "ledger"),
    ],
)
def test_bad_parameters_are_named_and_cost_nothing(options, named, tmp_path):
    with pytest.raises((ValueError, TypeError), match=named):
        mixture(**options).fit(X)


def test_too_many_columns_say_what_to_do():
    with pytest.raises(ValueError, match="recursive"):
        mixture().fit(np.zeros((10, 65)))


def test_a_ledger_answers_the_same_question_for_free(tmp_path):
    places = {"dataset": "people", "high_water": tmp_path / "marks"}
    with Ledger.create(tmp_path / "books", epsilon=3.0, delta=1e-5, **places) as ledger:
        fits = [mixture(ledger=ledger).fit(X) for _ in range(2)]
        assert sum(entry.kind == "reserve" for entry in ledger.history()) == 1
    np.testing.assert_array_equal(fits[0].means_, fits[1].means_)
    assert fits[0].receipt_ is not None


def test_only_released_values_travel(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.means_, fitted.means_)
    np.testing.assert_array_equal(copy.predict(X[:9]), fitted.predict(X[:9]))
    assert not hasattr(clone(fitted), "means_")
    with pytest.raises(ValueError, match="4 features"):
        fitted.predict(X[:, :2])


def test_bounds_in_place_of_a_radius_make_grams_and_millimetres_count_alike():
    rng = np.random.default_rng(21)
    X = np.concatenate([rng.normal((39, 3700), (2.5, 450), (3000, 2)), rng.normal((48, 5100), (3, 500), (3000, 2))])
    with seeded_noise(1):
        found = PrivateGaussianMixture(n_components=2, epsilon=1.0, delta=1e-6, bounds=[(20, 70), (2000, 7000)]).fit(X)
    order = np.argsort(found.means_[:, 0])
    assert np.all(np.abs(found.means_[order] - [(39, 3700), (48, 5100)]) < [1.0, 150])
    widths = np.sqrt(np.einsum("kii->ki", found.covariances_[order]))
    assert np.all(np.abs(widths / [(2.5, 450), (3, 500)] - 1) < 0.3)


@pytest.mark.parametrize(("method", "more"), [("recursive", {"sigma_min": 0.1, "sigma_max": 1.0}), ("sketch", {})])
def test_bounds_and_radius_exclude_each_other(method, more):
    model = PrivateGaussianMixture(
        n_components=2, epsilon=1.0, delta=1e-6, bounds=[(0, 1)] * 2, radius=1.0, method=method, **more
    )
    with pytest.raises(ValueError, match="bounds"):
        model.fit(np.zeros((5, 2)))


def test_few_records_are_published_as_one_gaussian_and_said():
    rng = np.random.default_rng(22)
    worst = 0.0
    for seed in range(6):
        means = rng.normal(0, 4, (3, 3))
        X = means[rng.integers(0, 3, 2300)] + rng.normal(0, 1, (2300, 3))
        with seeded_noise(seed):
            found = PrivateGaussianMixture(n_components=3, epsilon=0.3, delta=1e-6, radius=20.0).fit(X[:300])
        worst = min(worst, float(found.score_samples(X[300:]).mean()))
        if len(found.weights_) == 1:
            assert "1 of 3" in found.message_
    assert worst > -20  # without the decision: -1000 and below


def test_few_records_are_one_gaussian_that_is_not_absurd():
    """Three components, 500 records, epsilon 0.3: a model used to be a thousand nats below one Gaussian."""
    rng = np.random.default_rng([1, 500, 2, 7])
    means = rng.uniform(2, 8, (3, 2))
    X = means[rng.integers(0, 3, 3500)] + 0.6 * rng.standard_normal((3500, 2))
    for seed in range(3):
        with seeded_noise(seed + 7):
            model = PrivateGaussianMixture(n_components=3, epsilon=0.3, delta=1e-6, bounds=[(0, 10)] * 2).fit(X[:500])
        assert len(model.weights_) == 1
        assert "one Gaussian" in model.message_
        one = multivariate_normal(X[:500].mean(axis=0), np.cov(X[:500].T)).logpdf(X[500:]).mean()
        assert model.score_samples(X[500:]).mean() > one - 2.0


def test_a_small_group_far_out_is_not_taken_for_noise():
    """The covariance is of clipped records, which have little of such a group: the mixture is clipped alike."""
    rng = np.random.default_rng(4)
    rows = np.concatenate([rng.normal(-1.0, 0.3, (12000, 2)), rng.normal(2.5, 0.3, (3000, 2))])
    with seeded_noise(5):
        found = mixture(n_components=2, epsilon=3.0, radius=10.0).fit(rows)
    assert found.verdict_ is None
    assert np.abs(found.means_ - [[-1.0, -1.0], [2.5, 2.5]]).max() < 0.05
    assert found.weights_[1] == pytest.approx(0.2, abs=0.02)
