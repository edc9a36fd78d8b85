"""PrivateModes: scikit-learn's manners, nothing kept but what was released, nothing spent on a mistake."""

import copy
import io
import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scikit_learn_checks import scikit_learn_checks
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fogline import DensitySketch, PrivateDensity, PrivateModes
from fogline.datasets.simulated import gaussian_mixture4
from fogline.density.modes import without_grid
from fogline.testing import seeded_noise

BOX = [(-10, 10), (-10, 10)]
SETTINGS = {"epsilon": 1.0, "delta": 1e-5, "bounds": BOX}
ATTRIBUTES = {
    "modes_",
    "heights_",
    "covariances_",
    "privacy_covariances_",
    "sampling_covariances_",
    "standard_errors_",
    "p_values_",
    "bandwidth_",
    "boundary_modes_",
    "point_masses_",
    "density_",
    "guarantee_",
    "message_",
}


def fitted(X, *, seed=0, **options):
    with seeded_noise(seed):
        return PrivateModes(**(SETTINGS | options)).fit(X)


@pytest.fixture(scope="module")
def sample():
    return gaussian_mixture4(5000, random_state=0)


@pytest.fixture(scope="module")
def found(sample):
    return fitted(sample.X)


def line(n=300, *, seed=0):
    return np.random.default_rng(seed).normal(2, 1, size=(n, 1))


LINE = {"bounds": [(-10, 10)], "bandwidth": 0.1}
"""A small, quick release."""


# -- what comes out -----------------------------------------------------------------------------------------


def test_four_modes_are_found_where_they_are(found, sample):
    assert found.modes_.shape == (4, 2)
    distance = np.linalg.norm(found.modes_[:, None] - sample.modes, axis=2)
    assert sorted(distance.argmin(axis=1)) == [0, 1, 2, 3]
    assert distance.min(axis=1).max() < 5 * found.standard_errors_.max()
    assert found.heights_.shape == found.p_values_.shape == (4,)
    assert found.standard_errors_.shape == found.bandwidth_.shape == (4, 2)
    np.testing.assert_allclose(found.covariances_, found.privacy_covariances_ + found.sampling_covariances_)
    np.testing.assert_allclose(found.standard_errors_**2, np.einsum("kii->ki", found.covariances_))
    assert found.p_values_.max() <= 0.05
    assert found.message_ == ""
    assert isinstance(found.density_, PrivateDensity)
    assert found.guarantee_ is found.density_.guarantee
    assert (found.guarantee_.epsilon, found.guarantee_.delta) == (1.0, 1e-5)


def test_every_fitted_attribute_is_documented_and_released(found):
    public = {name for name in vars(found) if name.endswith("_") and not name.startswith("_")}
    assert public == ATTRIBUTES | {"n_features_in_"}
    assert set(PrivateModes._released_attributes) == ATTRIBUTES
    for name in ATTRIBUTES:
        assert name in PrivateModes.__doc__


def test_it_reads_what_a_sketch_would_release(sample, found):
    with seeded_noise(0):
        density = DensitySketch(BOX).update(sample.X).release(epsilon=1.0, delta=1e-5)
    assert density == found.density_
    np.testing.assert_array_equal(density.modes().positions, found.modes_)


@pytest.mark.parametrize("delta", [None, 0, 0.0])
def test_without_a_delta_it_counts_on_leaves(delta):
    model = fitted(np.abs(line()), bounds=[(0, 10)], delta=delta)
    assert model.density_.leaves is not None
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1.0, 0.0)
    assert model.boundary_modes_ == model.density_.modes().boundary_modes
    assert PrivateModes(epsilon=1.0, delta=delta, bounds=[(0, 10)]).cost().epsilon == 1


def test_leaves_can_be_asked_for_with_a_delta():
    model = fitted(line(), **LINE, features="leaves")
    assert model.density_.leaves is not None


def test_options_reach_the_release():
    model = fitted(line(), **LINE, n_modes=2, neighbours="replace", max_contributions=3, steps=0.5, level=0.01)
    assert model.modes_.shape == (2, 1)
    assert model.guarantee_.neighbours == "replace"
    assert model.guarantee_.max_contributions == 3
    assert model.density_.spec.steps == (0.5,)
    np.testing.assert_allclose(model.bandwidth_, 2.0)


def test_nothing_above_the_fog_is_an_answer():
    model = fitted(line(20), **LINE, epsilon=0.05)
    assert model.modes_.shape == (0, 1)
    assert model.covariances_.shape == (0, 1, 1)
    assert model.message_


def test_noise_of_everyday_use_is_certified():
    model = PrivateModes(epsilon=1.0, delta=1e-5, **LINE).fit(line())
    assert model.guarantee_.certified
    assert not fitted(line(), **LINE).guarantee_.certified


# -- parameters ---------------------------------------------------------------------------------------------


def test_parameters_are_stored_as_given_and_never_changed():
    bounds = [[-10, 10]]
    options = {
        "epsilon": 1,
        "delta": 1e-5,
        "bounds": bounds,
        "n_modes": 1,
        "bandwidth": [2.0],
        "steps": [None],
    }
    model = PrivateModes(**options)
    before = copy.deepcopy(model.get_params())
    with seeded_noise(0):
        model.fit(line())
    assert model.get_params() == before
    assert all(model.get_params()[name] is value for name, value in options.items())
    assert bounds == [[-10, 10]]


def test_set_params_and_clone(found):
    model = clone(found)
    assert model.get_params() == found.get_params()
    assert not hasattr(model, "modes_")
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    check_is_fitted(found)
    assert model.set_params(epsilon=2.0, n_modes=3).epsilon == 2.0
    with pytest.raises(ValueError, match="colour"):
        model.set_params(colour="red")


def test_parameters_are_keywords_only():
    with pytest.raises(TypeError):
        PrivateModes(1.0, 1e-5, BOX)


def test_nothing_is_checked_before_fit():
    assert PrivateModes().epsilon is None
    assert PrivateModes(epsilon="much", bounds="all").bounds == "all"


@pytest.mark.parametrize(
    ("wrong", "error", "name"),
    [
        ({"epsilon": None}, TypeError, "epsilon"),
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"epsilon": math.inf}, ValueError, "epsilon"),
        ({"epsilon": "1"}, TypeError, "epsilon"),
        ({"delta": None, "features": "grid"}, TypeError, "delta"),
        ({"delta": None, "bandwidth": 0.1}, TypeError, "delta"),
        ({"delta": 1.5}, ValueError, "delta"),
        ({"delta": 0.0, "features": "grid"}, ValueError, "delta"),
        ({"delta": 0.0, "bounds": [(0, 1)] * 4}, ValueError, "delta"),
        ({"delta": None, "bandwidth": "silverman"}, ValueError, "bandwidth"),
        ({"features": "trees"}, ValueError, "features"),
        ({"bounds": None}, TypeError, "bounds"),
        ({"bounds": [(10, -10)]}, ValueError, "bounds"),
        ({"bounds": [(0, math.nan)]}, ValueError, "bounds"),
        ({"n_modes": 0}, ValueError, "n_modes"),
        ({"n_modes": 1.5}, TypeError, "n_modes"),
        ({"level": 0}, ValueError, "level"),
        ({"level": "low"}, TypeError, "level"),
        ({"bandwidth": "silverman"}, ValueError, "bandwidth"),
        ({"bandwidth": -0.1}, ValueError, "bandwidth"),
        ({"bandwidth": [0.1, 0.1]}, ValueError, "bandwidth"),
        ({"steps": -1}, ValueError, "steps"),
        ({"steps": [1, 1]}, ValueError, "steps"),
        ({"neighbours": "swap"}, ValueError, "neighbours"),
        ({"max_contributions": 0}, ValueError, "max_contributions"),
        ({"ledger": object()}, TypeError, "ledger"),
    ],
)
def test_a_bad_parameter_is_named_and_nothing_is_spent(monkeypatch, wrong, error, name):
    drawn = []
    monkeypatch.setattr("fogline.releases.terms.add_gaussian", lambda *args, **options: drawn.append(args))
    model = PrivateModes(**(SETTINGS | LINE | wrong))
    with pytest.raises(error, match=name):
        model.fit(line())
    assert not drawn
    assert not hasattr(model, "modes_")


EXTREMES = {
    "finer than the steps allow": ({"bandwidth": 0.001, "steps": 1, "bounds": [(0, 100)]}, "bandwidth"),
    "wider than the box": ({"bandwidth": 10.0}, "bandwidth"),
    "text for a bandwidth": ({"bandwidth": ["wide"]}, "bandwidth"),
    "text for a step": ({"steps": "one"}, "steps"),
    "a box of no doubles": ({"bounds": [(1e16, 1e16 + 4)]}, "bounds"),
    "a box too small": ({"bounds": [(0, 5e-324)]}, "bounds"),
    "a box too wide": ({"bounds": [(-8e307, 8e307)]}, "bounds"),
    "contributions beyond a float": ({"max_contributions": 10**400}, "max_contributions"),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what matters here is the error
@pytest.mark.parametrize("extreme", EXTREMES)
def test_an_extreme_parameter_is_named_before_anything_is_spent_or_else_served(monkeypatch, extreme):
    wrong, name = EXTREMES[extreme]
    released = []
    release = DensitySketch.release
    monkeypatch.setattr(DensitySketch, "release", lambda *a, **k: released.append(release(*a, **k)) or released[-1])
    options = SETTINGS | {"bounds": [(-10, 10)]} | wrong
    message = ""
    try:
        model = fitted(line(), **options)
    except (ValueError, TypeError) as error:
        message = str(error)
    if message:
        assert name in message
        assert not released, "the budget was spent before the error"
    else:
        assert np.isfinite(model.modes_).all()


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros((5, 3)), ValueError, "column"),
        (np.zeros((5, 2, 2)), ValueError, "X"),
        (np.array([["a", "b"]]), TypeError, "real numbers"),
        (np.zeros((2, 2), dtype=complex), ValueError, "Complex"),
        (pd.DataFrame({"age": [1.0], "name": ["Ann"]}), TypeError, "'name'"),
        (None, TypeError, "X"),
        (7, TypeError, "X"),
        ("nowhere.csv", FileNotFoundError, "nowhere"),
    ],
)
def test_a_bad_table_is_named_and_nothing_is_spent(monkeypatch, X, error, message):
    monkeypatch.setattr("fogline.releases.terms.add_gaussian", lambda *args, **options: 1 / 0)
    with pytest.raises(error, match=message) as caught:
        PrivateModes(**SETTINGS).fit(X)
    assert "Ann" not in str(caught.value)


def test_more_than_three_columns_are_read_by_random_features():
    estimator = PrivateModes(epsilon=1.0, delta=1e-5, bounds=(0, 1), bandwidth=0.3)
    with seeded_noise(1):
        estimator.fit(np.full((10, 4), 0.5))
    assert estimator.density_.spec.to_dict()["features"] == "random"
    assert estimator.modes_.shape[1] == 4
    with pytest.raises(ValueError, match=r"200 axes.*project"):
        estimator.fit(np.zeros((10, 200)))


def test_weights_of_records_are_not_accepted():
    with pytest.raises(TypeError, match="sample_weight"):
        PrivateModes(**SETTINGS).fit(np.zeros((3, 2)), sample_weight=[1, 1, 1])


def test_no_seed_and_no_score():
    assert "random_state" not in PrivateModes().get_params()
    assert not hasattr(PrivateModes(), "score")


# -- kinds of tables ----------------------------------------------------------------------------------------


ROWS = np.random.default_rng(4).normal(2, 3, size=(200, 2))
FORMS = {
    "list": ROWS.tolist(),
    "tuples": [tuple(row) for row in ROWS.tolist()],
    "fortran order": np.asfortranarray(ROWS),
    "strided": np.repeat(ROWS, 2, axis=0)[::2],
    "read only": np.frombuffer(ROWS.tobytes()).reshape(ROWS.shape),
    "big endian": ROWS.astype(">f8"),
    "frame": pd.DataFrame(ROWS, columns=["a", "b"]),
    "nullable frame": pd.DataFrame(ROWS, columns=["a", "b"]).convert_dtypes(),
    "masked": np.ma.MaskedArray(ROWS),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_records_gives_the_same_release(form):
    options = {"bandwidth": 0.1, "n_modes": 1}
    mine, theirs = fitted(FORMS[form], **options).density_, fitted(ROWS, **options).density_
    assert mine.columns == (("a", "b") if "frame" in form else None)
    mine.columns = None
    assert mine == theirs


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.float16, np.float32, np.longdouble, bool])
def test_every_type_of_number_counts_as_its_double(dtype):
    values = np.arange(0, 9).astype(dtype)[:, None]
    mine, theirs = fitted(values, **LINE), fitted(values.astype(float), **LINE)
    assert mine.density_ == theirs.density_


def test_one_dimension_may_be_flat():
    assert fitted(line()[:, 0], **LINE).density_ == fitted(line(), **LINE).density_
    assert fitted(pd.Series(line()[:, 0]), **LINE).density_ == fitted(line(), **LINE).density_


def test_a_masked_cell_is_a_missing_one():
    X = np.ma.MaskedArray(line(), mask=np.arange(300)[:, None] % 3 == 0)
    assert fitted(X, **LINE).density_ == fitted(X.filled(np.nan), **LINE).density_


def test_one_pair_of_bounds_serves_all_columns():
    one, two = (fitted(ROWS, bounds=b, bandwidth=0.1) for b in ((-10, 10), BOX))
    assert one.density_ == two.density_
    assert one.n_features_in_ == 2


def test_names_of_columns_are_kept_until_the_next_fit():
    model = PrivateModes(**(SETTINGS | {"bandwidth": 0.1}))
    with seeded_noise(0):
        model.fit(pd.DataFrame(ROWS, columns=["age", "height"]))
        assert model.feature_names_in_.tolist() == ["age", "height"]
        assert model.n_features_in_ == 2
        model.fit(ROWS)
        assert not hasattr(model, "feature_names_in_")
        model.fit(pd.DataFrame(ROWS))
        assert not hasattr(model, "feature_names_in_"), "numbers are not names"


def test_a_path_is_read_like_an_array(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("age,height\n" + "".join(f"{a!r},{b!r}\n" for a, b in ROWS.tolist()))
    from_array = fitted(ROWS, bandwidth=0.1)
    for source in (path, str(path)):
        model = fitted(source, bandwidth=0.1)
        assert np.array_equal(model.density_.coefficients, from_array.density_.coefficients)
        assert model.guarantee_.unit == "line of the file"
        assert model.feature_names_in_.tolist() == ["age", "height"]


def test_a_second_fit_replaces_the_first():
    model = PrivateModes(**(SETTINGS | LINE))
    with seeded_noise(0):
        first = model.fit(line())
        modes, density = first.modes_, first.density_
        assert model.fit(line(seed=1) - 5) is model
    assert model.density_ != density
    assert not np.array_equal(model.modes_, modes)


# -- conditions of the data ---------------------------------------------------------------------------------

CONDITIONS = {
    "no rows": np.zeros((0, 2)),
    "an empty list": [],
    "all missing": np.full((50, 2), np.nan),
    "half a record missing": np.column_stack([np.zeros(50), np.full(50, np.nan)]),
    "infinite": np.array([[np.inf, 0.0], [-np.inf, 0.0], [0.0, np.inf]]),
    "outside": np.full((50, 2), 1e6),
    "on the wrong side by one ulp": np.full((50, 2), np.nextafter(10.0, 11.0)),
    "cells that are no numbers": [["a", None], [1.0, "b"], [2.0]],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_records_that_count_for_nothing_take_the_usual_path(condition):
    model = fitted(CONDITIONS[condition], bandwidth=0.1)
    assert model.density_ == fitted(np.zeros((0, 2)), bandwidth=0.1).density_
    assert model.modes_.shape == (0, 2)
    assert model.message_


@pytest.mark.parametrize("n_modes", [None, 2])
def test_one_row(n_modes):
    model = fitted(np.array([[1.0, 2.0]]), bandwidth=0.1, n_modes=n_modes)
    assert model.modes_.shape == (0 if n_modes is None else n_modes, 2)
    assert np.isfinite(model.modes_).all()


def test_equal_rows_give_one_mode_there():
    model = fitted(np.full((3000, 2), [4.0, -3.0]))
    assert model.modes_.shape == (1, 2)
    assert np.abs(model.modes_[0] - [4.0, -3.0]).max() < 0.5


# -- what is kept -------------------------------------------------------------------------------------------

SENTINEL = 3.141592653589793e-5
"""A value that no computation would come up with, as a record."""


def test_a_pickle_keeps_what_was_released(found):
    again = pickle.loads(pickle.dumps(found))
    assert again.get_params() == found.get_params()
    assert again.density_ == found.density_
    for name in ATTRIBUTES - {"density_", "guarantee_", "message_"}:
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert str(again.guarantee_) == str(found.guarantee_)


def test_what_is_not_on_the_list_does_not_survive_a_pickle(found):
    model = copy.deepcopy(found)
    model.X_ = np.full(100, SENTINEL)
    model._records = model.X_
    model.labels_ = [1, 2, 3]
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        for name in ("X_", "_records", "labels_"):
            assert not hasattr(again, name)
        assert again.density_ == found.density_


def test_no_record_is_found_in_what_is_kept():
    X = np.full((400, 1), SENTINEL)
    model = fitted(X, **LINE)
    dump = pickle.dumps(model, protocol=5)
    for pattern in (
        np.float64(SENTINEL).tobytes(),
        np.float64(SENTINEL).byteswap().tobytes(),
        repr(SENTINEL).encode(),
    ):
        assert pattern not in dump
    shown = repr(model) + str(model.guarantee_) + repr(model.density_) + model.message_
    assert repr(SENTINEL)[:9] not in shown
    file = io.BytesIO()
    np.save(file, model.modes_)
    assert np.float64(SENTINEL).tobytes() not in file.getvalue()
    # The search would find a record that is kept: the same pickle with the records in it has the pattern.
    assert np.float64(SENTINEL).tobytes() in pickle.dumps([model, X])


def test_the_exact_number_of_records_is_not_kept():
    X = line(4321)
    model = fitted(X, **LINE)
    assert model.density_.count != 4321
    values = [v for v in vars(model).values() if isinstance(v, int | float | np.number)]
    assert 4321 not in values
    assert "4321" not in repr(model)


def test_repr_shows_parameters(found):
    assert re.fullmatch(r"PrivateModes\(.*\)", repr(found), flags=re.DOTALL)
    assert "epsilon=1.0" in repr(found)


# -- scikit-learn's own checks ------------------------------------------------------------------------------


@scikit_learn_checks(PrivateModes(epsilon=1.0, delta=1e-5, bounds=(-1000, 1000), bandwidth=0.2))
def test_scikit_learn(estimator, check, monkeypatch):
    # The checks are of conventions, on up to ten columns: how many starts are climbed for a mode is not what they ask.
    monkeypatch.setattr(without_grid, "GRIDLESS", replace(without_grid.GRIDLESS, fresh=4, carried=4))
    check(estimator)
