"""PrivateModalRegression: scikit-learn's manners, every kind of table, nothing spent on a mistake."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scikit_learn_checks import MISSING_RESPONSE, scikit_learn_checks
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError

from fogline import PrivateModalRegression
from fogline._validation import records
from fogline.planning import regression as _regression_expected
from fogline.sources.files import FileTable
from fogline.sources.passes import joined
from fogline.testing import seeded_noise
from fogline_research.datasets.regression import sinusoidal_mixture

SETTINGS = {"epsilon": 1.0, "delta": 1e-5, "x_bounds": (0, 1), "y_bounds": (-1.5, 3)}
FIXED = {"bandwidth": [0.1, 0.3]}
"""A small, quick release."""

ATTRIBUTES = {"density_", "branches_", "bandwidth_", "guarantee_", "message_"}


def fitted(X, y=None, *, seed=0, **options):
    with seeded_noise(seed):
        return PrivateModalRegression(**(SETTINGS | options)).fit(X, y)


@pytest.fixture(scope="module")
def sample():
    return sinusoidal_mixture(4000, random_state=0)


@pytest.fixture(scope="module")
def found(sample):
    return fitted(sample.X, sample.y)


# -- what comes out -----------------------------------------------------------------------------------------


def test_both_waves_are_found(found, sample):
    x = np.linspace(0, 1, 41)[:, None]
    modes, truth = found.predict_modes(x), sample.conditional_modes(x)
    assert [len(m) for m in modes] == [2] * 41
    assert np.mean([np.mean((np.sort(m) - t) ** 2) for m, t in zip(modes, truth, strict=True)]) < 0.004
    assert found.message_ == ""
    assert found.bandwidth_.shape == (2,)


def test_the_highest_mode_comes_first_and_is_the_prediction(found):
    x = np.linspace(0, 1, 11)[:, None]
    branches = found.branches(x)
    for row, modes in enumerate(found.predict_modes(x)):
        mine = branches.rows == row
        np.testing.assert_array_equal(branches.positions[mine], modes)
        assert (np.diff(branches.heights[mine]) <= 0).all()
        assert found.predict(x)[row] == modes[0]
    assert (branches.standard_errors > 0).all()
    np.testing.assert_allclose(branches.standard_errors**2, branches.privacy_errors**2 + branches.sampling_errors**2)
    assert set(branches.branch) == {0, 1}
    assert (branches.prominences > 0).all()


def test_no_mode_is_not_a_number():
    model = fitted(np.zeros((0, 1)), np.zeros(0), **FIXED)
    assert [len(m) for m in model.predict_modes([[0.2], [0.8]])] == [0, 0]
    assert np.isnan(model.predict([[0.2], [0.8]])).all()
    assert model.branches([[0.2]]).positions.shape == (0,)
    assert model.message_


def test_beyond_the_bounds_nothing_is_predicted(found):
    assert np.isnan(found.predict([[-0.1], [1.1], [np.nan]])).all()
    assert found.predict(np.zeros((0, 1))).shape == (0,)


def test_two_columns_of_x():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (20_000, 2))
    y = np.where(rng.random(20_000) < 0.5, 1.0, -1.0) + X[:, 0] - X[:, 1] + rng.normal(0, 0.2, 20_000)
    model = fitted(X, y, x_bounds=[(0, 1), (0, 1)], y_bounds=(-4, 4), bandwidth=[0.15, 0.15, 0.5])
    places = rng.uniform(0, 1, (50, 2))
    for place, modes in zip(places, model.predict_modes(places), strict=True):
        np.testing.assert_allclose(np.sort(modes), np.array([-1, 1]) + place[0] - place[1], atol=0.15)
    assert model.bandwidth_.shape == (3,)
    plt = pytest.importorskip("matplotlib.pyplot")
    assert [ax.get_title() for ax in model.plot()] == ["x2 = 0.250", "x2 = 0.500", "x2 = 0.750"]
    plt.close("all")


def test_prediction_sets_cover(found):
    fresh = sinusoidal_mixture(1500, random_state=9)
    sets = found.prediction_sets(fresh.X, coverage=0.9)
    inside = [np.any((s[:, 0] <= y) & (y <= s[:, 1])) for s, y in zip(sets, fresh.y, strict=True)]
    assert np.mean(inside) == pytest.approx(0.9, abs=0.05)
    narrow, wide = (
        np.mean([np.ptp(s, axis=1).sum() for s in found.prediction_sets(fresh.X[:50], coverage=c)]) for c in (0.5, 0.95)
    )
    assert narrow < wide / 1.5
    with pytest.raises(ValueError, match="coverage"):
        found.prediction_sets([[0.5]], coverage=1.0)


def test_no_prediction_set_of_few_records_is_empty():
    """At 50 records most places are in the fog, and the sets of the others must not be empty for that."""
    rng = np.random.default_rng([50, 0])
    x = rng.random((50, 1))
    y = np.where(rng.random(50) < 0.3, 0.0, rng.exponential(2.0, 50))
    with seeded_noise(0):
        model = PrivateModalRegression(epsilon=1.0, delta=1e-5, x_bounds=(0, 1), y_bounds=(0, 30)).fit(x, y)
    assert all(len(part) for part in model.prediction_sets(np.linspace(0, 1, 101)[:, None]))


def test_plot(found):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    ax = found.plot()
    assert ax.get_xlim() == (0, 1)
    assert ax.get_ylim() == (-1.5, 3)
    assert len(ax.lines) == 2
    assert found.plot(ax) is ax
    pyplot.close("all")


def test_a_bandwidth_that_was_asked_for_is_used(sample):
    model = fitted(sample.X, sample.y, **FIXED)
    np.testing.assert_allclose(model.bandwidth_, [0.1, 0.3])
    assert len(model.prediction_sets([[0.5]])[0])


def test_options_reach_the_release(sample):
    model = fitted(sample.X, sample.y, **FIXED, neighbours="replace", max_contributions=3, steps=[None, 0.1])
    assert model.guarantee_.neighbours == "replace"
    assert model.guarantee_.max_contributions == 3
    assert model.density_.spec.steps == (0.0, 0.1)
    assert model.cost().rho == model.guarantee_.rho
    assert PrivateModalRegression(**SETTINGS, **FIXED).fit(sample.X, sample.y).guarantee_.certified


# -- parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error", "name"),
    [
        ({"epsilon": None}, TypeError, "epsilon"),
        ({"epsilon": math.inf}, ValueError, "epsilon"),
        ({"delta": 0.0}, ValueError, "delta"),
        ({"x_bounds": None}, TypeError, "x_bounds"),
        ({"x_bounds": (1, 0)}, ValueError, "x_bounds"),
        ({"x_bounds": [(0, 1)] * 3}, ValueError, "x_bounds"),
        ({"y_bounds": None}, TypeError, "y_bounds"),
        ({"y_bounds": [(0, 1)] * 2}, ValueError, "y_bounds"),
        ({"level": 0}, ValueError, "level"),
        ({"bandwidth": "silverman"}, ValueError, "bandwidth"),
        ({"bandwidth": [0.1]}, ValueError, "bandwidth"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth"),
        ({"steps": [1]}, ValueError, "steps"),
        ({"neighbours": "swap"}, ValueError, "neighbours"),
        ({"max_contributions": 0}, ValueError, "max_contributions"),
        ({"ledger": object()}, TypeError, "ledger"),
    ],
)
def test_a_bad_parameter_is_named_and_nothing_is_spent(monkeypatch, wrong, error, name):
    monkeypatch.setattr("fogline.releases.terms.add_gaussian", lambda *args, **options: 1 / 0)
    model = PrivateModalRegression(**(SETTINGS | wrong))
    with pytest.raises(error, match=name):
        model.fit(np.zeros((3, 1)), np.zeros(3))
    assert not hasattr(model, "density_")


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (np.zeros((5, 1)), np.zeros(4), ValueError, "same number of rows"),
        (np.zeros((5, 1)), np.zeros((5, 2)), ValueError, "y must be one column"),
        (np.zeros((5, 1)), None, ValueError, "requires y"),
        (np.zeros((5, 3)), np.zeros(5), ValueError, "x_bounds"),
        (np.zeros((5, 1)), "height", ValueError, "height"),
        (pd.DataFrame({"a": [1.0]}), "height", ValueError, "height"),
        (np.zeros((5, 1)), np.array(["Ann"] * 5), TypeError, "y must hold real numbers"),
        (np.zeros((5, 1)), np.zeros((5, 1, 1)), ValueError, "y must have one or two dimensions"),
        (pd.DataFrame({"a": ["Ann"]}), np.zeros(1), TypeError, "'a'"),
    ],
)
def test_a_bad_table_is_named_and_nothing_is_spent(monkeypatch, X, y, error, message):
    monkeypatch.setattr("fogline.releases.terms.add_gaussian", lambda *args, **options: 1 / 0)
    with pytest.raises(error, match=message) as caught:
        PrivateModalRegression(**SETTINGS).fit(X, y)
    assert "Ann" not in str(caught.value)


@pytest.mark.parametrize("broken", [[2.0, 3.0], [], None, "Ann", [[1.0]]])
def test_a_broken_cell_of_a_plain_list_is_a_missing_response(broken):
    rows = joined([[1.0], [2.0], [3.0]], [1.0, broken, 3.0], 1)
    np.testing.assert_array_equal(rows, [[1.0, 1.0], [2.0, np.nan], [3.0, 3.0]])


def test_weights_scores_and_seeds_are_not_offered(sample):
    model = PrivateModalRegression(**SETTINGS)
    with pytest.raises(TypeError, match="sample_weight"):
        model.fit(sample.X, sample.y, sample_weight=np.ones(4000))
    assert not hasattr(model, "score")
    assert "random_state" not in model.get_params()
    with pytest.raises(NotFittedError):
        model.predict([[0.5]])
    with pytest.raises(NotFittedError):
        model.plot()


def test_clone_and_parameters_stay(found):
    again = clone(found)
    assert again.get_params() == found.get_params()
    assert not hasattr(again, "density_")


# -- kinds of tables ----------------------------------------------------------------------------------------


def test_every_form_of_the_same_records_gives_the_same_release(sample, tmp_path):
    X, y = sample.X[:300], sample.y[:300]
    frame = pd.DataFrame({"dose": X[:, 0], "answer": y})
    path = tmp_path / "rows.csv"
    lines = [f"{b!r},{a!r}\n" for a, b in zip(X[:, 0].tolist(), y.tolist(), strict=True)]
    path.write_text("answer,dose\n" + "".join(lines))
    want = fitted(X, y, **FIXED).density_.coefficients
    forms = {
        "lists": (X.tolist(), y.tolist()),
        "flat": (X[:, 0], y),
        "series": (frame[["dose"]], frame["answer"]),
        "last column": (np.column_stack([X, y]), None),
        "named": (frame[["answer", "dose"]], "answer"),
        "last of a frame": (frame, None),
        "path": (str(path), "answer"),
        "table": (FileTable(path, ["dose", "answer"]), None),
    }
    for name, (table, response) in forms.items():
        model = fitted(table, response, **FIXED)
        assert np.array_equal(model.density_.coefficients, want), name
        assert model.n_features_in_ == 1
        names = getattr(model, "feature_names_in_", np.array([])).tolist()
        assert names == (["dose"] if name in ("series", "named", "last of a frame", "path", "table") else []), name
    with pytest.warns(DataConversionWarning, match="taken flat"):
        model = fitted(X, y[:, None], **FIXED)
    assert np.array_equal(model.density_.coefficients, want)
    with pytest.raises(TypeError, match="y must be"):
        fitted(path, y, **FIXED)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e6])
@pytest.mark.parametrize("where", ["x", "y"])
def test_records_that_count_for_nothing_count_for_nothing(sample, where, value):
    X, y = sample.X[:50].copy(), sample.y[:50].copy()
    (X if where == "x" else y)[10:] = value
    assert fitted(X, y, **FIXED).density_ == fitted(X[:10], y[:10], **FIXED).density_


# -- what is kept -------------------------------------------------------------------------------------------


def test_a_fitted_model_holds_released_values_only(found, sample):
    public = {name for name in vars(found) if name.endswith("_") and not name.startswith("_")}
    assert public == ATTRIBUTES | {"n_features_in_"}
    assert set(PrivateModalRegression._released_attributes) == ATTRIBUTES
    for name in ATTRIBUTES:
        assert name in PrivateModalRegression.__doc__
    model = copy.deepcopy(found)
    model.records_ = sample.X
    again = pickle.loads(pickle.dumps(model))
    assert not hasattr(again, "records_")
    assert again.density_ == found.density_
    np.testing.assert_array_equal(again.predict([[0.3]]), found.predict([[0.3]]))
    assert 4000 not in [v for v in vars(found).values() if isinstance(v, int | float)]
    assert found.density_.count != 4000


# -- scikit-learn's own checks ------------------------------------------------------------------------------


class FirstColumn(PrivateModalRegression):
    """The checks bring as many columns as they like; a joint density of more than a few is lost in the noise."""

    def fit(self, X, y=None):
        rows = records(np.asarray(X, dtype=float) if isinstance(X, list) else X)  # a list declares no width
        super().fit(rows[:, :1], y)
        self._remember_features(X, rows.shape[1])
        return self

    def _queries(self, X):
        return super()._queries(X)[:, :1]


@scikit_learn_checks(
    FirstColumn(epsilon=1.0, delta=1e-5, x_bounds=(-1000, 1000), y_bounds=(-1000, 1000), bandwidth=0.1),
    MISSING_RESPONSE,
)
def test_scikit_learn(estimator, check):
    check(estimator)


# -- before a fit -------------------------------------------------------------------------------------------


def test_planned_errors_are_about_those_that_a_fit_states(sample, found, monkeypatch):
    monkeypatch.setattr(_regression_expected, "RUNS", {1: 1, 2: 1})
    asked = {"epsilon": found.epsilon, "delta": found.delta, "x_bounds": found.x_bounds, "y_bounds": found.y_bounds}
    planned = PrivateModalRegression(**asked).expected_error(
        4000, shape=np.column_stack([sample.X, sample.y]), epsilons=[found.epsilon]
    )
    stated = found.branches(np.linspace(0.05, 0.95, 19)[:, None])
    for part in ("privacy", "sampling"):
        expected = getattr(planned.rows[0], f"{part}_error")
        assert 0.5 < expected / np.sqrt(np.mean(getattr(stated, f"{part}_errors") ** 2)) < 2


def test_expected_error_grows_better_with_epsilon_and_touches_nothing(sample, monkeypatch):
    monkeypatch.setattr(_regression_expected, "RUNS", {1: 2, 2: 1})  # a third of the simulated fits is enough here
    planned = PrivateModalRegression(delta=1e-5, x_bounds=(0, 1), y_bounds=(-1.5, 3))
    guessed = planned.expected_error(2000, shape=(2, 0.2), epsilons=[0.01, 0.5, 2.0])
    assert [row.epsilon for row in guessed.rows] == [0.01, 0.5, 2.0]
    assert guessed.rows[0].detected < 0.2
    assert guessed.rows[2].detected > 0.95
    assert guessed.rows[2].privacy_error < guessed.rows[1].privacy_error
    assert "2 level branches" in str(guessed)
    public = planned.expected_error(3000, shape=np.column_stack([sample.X, sample.y]), epsilons=[1.0])
    assert public.rows[0].detected > 0.9


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"n": 0}, "n"), ({"shape": 0}, "shape"), ({"shape": (1, -1.0)}, "shape"), ({"epsilons": []}, "epsilons")],
)
def test_a_bad_guess_is_named(wrong, name):
    planned = PrivateModalRegression(delta=1e-5, x_bounds=(0, 1), y_bounds=(-1.5, 3))
    with pytest.raises((ValueError, TypeError), match=name):
        planned.expected_error(**{"n": 100, **wrong})
