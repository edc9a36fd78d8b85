"""check_pipeline: every step that is fitted on the records without privacy, however deep, and no other."""

import dataclasses

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection

from fogline import (
    IntegralSampler,
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
    check_pipeline,
)

pytestmark = pytest.mark.quick

PRIVATE = [
    IntegralSampler(),
    PrivateGaussianMixture(learner=GaussianMixture()),
    PrivateHellinger(),
    PrivateModalRegression(),
    PrivateModeClustering(),
    PrivateModes(),
]
MODES = PrivateModes(epsilon=1.0, delta=1e-6, bounds=[(0, 1)])


def named(found):
    return [(step.path, step.kind) for step in found.steps]


@pytest.mark.parametrize("estimator", PRIVATE, ids=lambda e: type(e).__name__)
def test_a_private_estimator_alone_is_fine(estimator):
    found = check_pipeline(estimator)
    assert found.ok
    assert found
    assert found.private == ("",)
    assert not found.steps


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        MinMaxScaler(),
        RobustScaler(),
        QuantileTransformer(),
        SimpleImputer(),
        SimpleImputer(strategy="constant"),  # forgets columns that are empty
        PCA(),
        KBinsDiscretizer(),
        TargetEncoder(),
        OneHotEncoder(),
        OneHotEncoder(categories=[["a"]]),  # fails on a record with another
        OrdinalEncoder(),
        MissingIndicator(),
        GaussianRandomProjection(),
        SplineTransformer(),
        KMeans(),
    ],
    ids=repr,
)
def test_a_step_that_learns_is_named(step):
    found = check_pipeline(make_pipeline(step, MODES))
    assert not found.ok
    name = type(step).__name__
    assert named(found) == [(name.lower(), name)]
    assert found.private == ("privatemodes",)
    assert name in str(found)
    assert "does not cover" in str(found)


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(np.log1p),
        Normalizer(),
        Binarizer(threshold=0.5),
        PolynomialFeatures(),
        OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore"),
        OrdinalEncoder(categories=[["a"]], handle_unknown="use_encoded_value", unknown_value=-1),
        SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
        MissingIndicator(features="all"),
        GaussianRandomProjection(n_components=2),
        SplineTransformer(knots=np.array([[0.0], [1.0]])),
        "passthrough",
        None,
    ],
    ids=repr,
)
def test_a_step_that_learns_nothing_is_not(step):
    found = check_pipeline(Pipeline([("before", step), ("modes", MODES)]))
    assert found.ok, str(found)
    assert str(found) == "Only private estimators are fitted on the records."


def test_steps_are_found_however_deep():
    inner = Pipeline([("fill", SimpleImputer()), ("scale", StandardScaler())])
    columns = ColumnTransformer(
        [("num", inner, [0]), ("kind", OneHotEncoder(), [1]), ("out", "drop", [2])], remainder=MinMaxScaler()
    )
    union = FeatureUnion([("raw", "passthrough"), ("directions", PCA())])
    search = GridSearchCV(Pipeline([("columns", columns), ("union", union), ("modes", MODES)]), {})
    found = check_pipeline(search)
    assert named(found) == [
        ("", "GridSearchCV"),
        ("estimator__columns__num__fill", "SimpleImputer"),
        ("estimator__columns__num__scale", "StandardScaler"),
        ("estimator__columns__kind", "OneHotEncoder"),
        ("estimator__columns__remainder", "MinMaxScaler"),
        ("estimator__union__directions", "PCA"),
    ]
    assert found.private == ("estimator__modes",)
    for step in found.steps[1:]:  # paths are those of set_params
        search.set_params(**{step.path: "passthrough"})
    assert [step.kind for step in check_pipeline(search)] == ["GridSearchCV"]


def test_targets_are_records_too():
    regression = PrivateModalRegression()
    scaled = TransformedTargetRegressor(regression, transformer=StandardScaler())
    assert named(check_pipeline(scaled)) == [("transformer", "StandardScaler")]
    assert check_pipeline(TransformedTargetRegressor(regression, func=np.log, inverse_func=np.exp)).ok


def test_what_comes_after_sees_the_records_as_well():
    found = check_pipeline(make_pipeline(PrivateModeClustering(), LinearRegression()))
    assert named(found) == [("linearregression", "LinearRegression")]
    voting = check_pipeline(VotingRegressor([("modes", PrivateModalRegression()), ("line", LinearRegression())]))
    assert named(voting) == [("", "VotingRegressor"), ("line", "LinearRegression")]
    assert voting.private == ("modes",)


def test_without_a_private_estimator_nothing_is_ok():
    found = check_pipeline(make_pipeline(Normalizer(), KMeans()))
    assert not found.ok
    assert "no private estimator" in str(found)
    assert not check_pipeline(make_pipeline(Normalizer(), FunctionTransformer())).ok


class PublicScale(TransformerMixin, BaseEstimator):
    """Divides by a public constant, and says that it learns nothing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) / 100.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class Silent:
    """Has a fit, and says nothing about itself."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def test_steps_of_ones_own_are_taken_at_their_word():
    assert check_pipeline(make_pipeline(PublicScale(), MODES)).ok
    assert named(check_pipeline(Pipeline([("mine", Silent()), ("modes", MODES)]))) == [("mine", "Silent")]


def test_a_class_that_borrows_a_name_is_not_believed():
    class PolynomialFeatures(Silent):
        pass

    assert not check_pipeline(Pipeline([("mine", PolynomialFeatures()), ("modes", MODES)])).ok


def test_the_result_cannot_be_changed():
    found = check_pipeline(make_pipeline(StandardScaler(), MODES))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.steps = ()
    assert len(found) == 1
    assert "public bounds" in found.steps[0].why


@pytest.mark.parametrize("wrong", [3, None, "pipe", PrivateModes])
def test_what_is_no_estimator_is_refused(wrong):
    with pytest.raises(TypeError, match="pipe must be an estimator"):
        check_pipeline(wrong)
