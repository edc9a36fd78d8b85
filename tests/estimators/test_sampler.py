"""IntegralSampler: what it draws, what it refuses, what it charges, and what it never shows."""

import copy
import multiprocessing
import pickle

import numpy as np
import pandas as pd
import pytest
from scikit_learn_checks import NOT_PICKLED, scikit_learn_checks
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fogline import IntegralSampler, Ledger
from fogline.accounting import Cost
from fogline.families.base_measures import log_ratio_range
from fogline.ledger import IntegralCost, LedgerRefused
from fogline.mechanisms.errors import ReleaseFailed
from fogline.sources.registry import table
from fogline.testing import integral_log_ratio, seeded_noise

pytestmark = pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # many draws at epsilon = 1 each

RIGHT = np.random.default_rng(0).normal(1.0, 0.5, (400, 1))
TREE = DecisionTreeClassifier(max_depth=3)


class Untouchable(np.ndarray):
    """Records of which only the types may be looked at."""

    def __getitem__(self, key):
        if key == slice(None, 0):
            return super().__getitem__(key)
        raise AssertionError("a record was touched")


def sampler(**options):
    given = {"epsilon": 1.0, "max_samples": 50, "learner": TREE, "schedule": "full", "rounds": 1, "training_draws": 500}
    given["drawing"] = "rejection"
    return IntegralSampler(**(given | options))


# -- what it draws ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["paper", "full"])
@pytest.mark.parametrize("drawing", ["rejection", "cells"])
def test_draws_follow_the_learnt_density(drawing, schedule):
    """Kolmogorov and Smirnov against the secret density, which only a test may read."""
    with seeded_noise(2):
        found = sampler(epsilon=4.0, max_samples=20_000, schedule=schedule, drawing=drawing, rounds=2).fit(RIGHT)
        grid = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
        weights = np.cumsum(np.exp(integral_log_ratio(found, grid[:, None])))
        assert weights[-1] / 20_000 == pytest.approx(1.0, abs=2e-3)
        drawn = found.sample(20_000)[:, 0]
    assert stats.kstest(drawn, lambda x: np.interp(x, grid, weights / weights[-1])).pvalue > 1e-3
    assert drawn.mean() > 0.15
    assert stats.kstest(drawn, stats.norm.cdf).pvalue < 1e-6


@pytest.mark.parametrize(
    "learner",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        MLPClassifier((5,), max_iter=20),
        "boosting",
    ],
    ids=["logistic", "pipeline", "mlp", "boosting"],
)
def test_any_classifier_will_do(learner):
    with seeded_noise(3):
        found = sampler(epsilon=4.0, max_samples=2000, learner=learner).fit(RIGHT)
        assert found.sample(2000).mean() > 0.2


def test_more_rounds_and_larger_epsilon_gain_more():
    def gain(**options):
        with seeded_noise(4):
            return integral_log_ratio(sampler(**options).fit(RIGHT), RIGHT).mean()

    assert gain(epsilon=2.0) > gain(epsilon=0.5) > 0
    assert gain(schedule="paper", rounds=4) > gain(schedule="paper", rounds=1)
    assert gain() > gain(schedule="paper", rounds=3)
    assert gain(epsilon=2.0, drawing="cells") > 1.2 * gain(epsilon=2.0)
    assert gain(epsilon=2.0, drawing="cells") <= 1.0 + 1e-9
    assert gain(epsilon=2.0) <= 1.0  # Theorem 7: at most epsilon/2


@pytest.mark.parametrize(
    ("options", "inside"),
    [
        ({"base": "uniform", "bounds": [(0, 1), (-5, 5)]}, lambda x: (x[:, 0] >= 0) & (x[:, 0] <= 1)),
        ({"base": "normal", "bounds": [(0, 100), (0, 1)]}, lambda x: np.abs(x[:, 0] - 50) < 25 * 8.3),
        ({"base": [stats.expon(), stats.norm(9, 1)]}, lambda x: (x[:, 0] > 0) & (x[:, 1] > 0)),
        ({"base": stats.multivariate_normal([5, 5], [[1, 0.5], [0.5, 1]])}, lambda x: x[:, 0] > -4),
        ({"base": stats.gamma(2.0)}, lambda x: (x > 0).all(axis=1)),
    ],
)
def test_every_base(options, inside):
    X = np.abs(np.random.default_rng(0).normal(0.5, 0.2, (100, 2)))
    found = sampler(**options).fit(X)
    assert inside(found.sample(50)).all()
    assert found.guarantee_.certified


def test_a_base_with_its_own_sampler_is_not_certified():
    found = sampler(base=stats.multivariate_t([0.0, 0.0], df=4)).fit(np.zeros((10, 2)))
    assert found.sample(3).shape == (3, 2)
    assert not found.guarantee_.certified
    assert "generator" in found.guarantee_.reason


def test_cells_have_their_limits():
    with pytest.raises(ValueError, match=r"drawing.*3 columns, got 4"):
        sampler(drawing="cells").fit(np.zeros((5, 4)))
    with pytest.raises(ValueError, match=r"drawing.*quantiles"):
        sampler(drawing="cells", base=stats.multivariate_t([0.0, 0.0], df=4)).fit(np.zeros((5, 2)))
    rows = np.random.default_rng(0).uniform(0.6, 1.0, (400, 3))
    found = sampler(drawing="cells", base="uniform", bounds=[(0, 1)] * 3).fit(rows)
    near, far = integral_log_ratio(found, np.array([[0.8] * 3, [0.2] * 3]))
    assert near > far + 0.3
    assert found.sample(50).shape == (50, 3)
    assert found.guarantee_.proof == "mollified-cells"


def test_frames_lists_and_files(tmp_path):
    frame = pd.DataFrame({"x": RIGHT[:, 0], "y": RIGHT[:, 0]})
    assert sampler().fit(frame).feature_names_in_.tolist() == ["x", "y"]
    assert sampler(bounds=[(0, 1)]).fit(RIGHT.tolist()).n_features_in_ == 1
    with pytest.raises(ValueError, match="plain list does not declare"):
        sampler().fit(RIGHT.tolist())
    frame.to_csv(tmp_path / "points.csv", index=False)
    assert sampler().fit(tmp_path / "points.csv").sample(2).shape == (2, 2)


# -- records ------------------------------------------------------------------------------------------------------


ODD = {
    "none": np.empty((0, 1)),
    "one": np.ones((1, 1)),
    "missing": np.full((30, 1), np.nan),
    "infinite": np.full((30, 1), np.inf),
    "huge": np.full((30, 1), 1e308),
    "equal": np.full((30, 1), 0.7),
    "more than the training takes": np.ones((1200, 1)),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("base", ["normal", "uniform"])
def test_no_data_set_is_an_error(name, base, recwarn):
    bounds = {"bounds": [(0, 1)]} if base == "uniform" else {}
    assert sampler(base=base, max_samples=3, **bounds).fit(ODD[name]).sample(3).shape == (3, 1)
    assert not recwarn.list


def test_what_is_outside_or_missing_counts_for_nothing():
    with seeded_noise(5):
        plain = sampler(base="uniform", bounds=[(0, 3)]).fit(RIGHT[RIGHT > 0][:, None]).sample(20)
    dirty = np.concatenate([RIGHT, [[np.nan], [np.inf], [-2.0], [99.0]]])
    with seeded_noise(5):
        assert (sampler(base="uniform", bounds=[(0, 3)]).fit(dirty).sample(20) == plain).all()


def test_no_usable_records_is_the_base():
    with seeded_noise(6):
        drawn = (
            sampler(max_samples=4000, learner=LogisticRegression(), training_draws=4000)
            .fit(ODD["missing"])
            .sample(4000)
        )
    assert stats.kstest(drawn[:, 0], stats.norm.cdf).pvalue > 1e-4


# -- bad input ----------------------------------------------------------------------------------------------------


class Probabilities(ClassifierMixin, BaseEstimator):
    """A learner whose probabilities are none, and whose odds know no limit."""

    def __init__(self, value=7.0):
        self.value = value

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.middle_ = X[y == 1].mean()
        return self

    def predict_proba(self, X):
        right = np.where(X[:, 0] > self.middle_, self.value, 0.0)
        return np.column_stack([1 - right, right])


@pytest.mark.parametrize("value", [1.0, 7.0, -3.0, np.inf, np.nan, 1e300])
@pytest.mark.parametrize("schedule", ["paper", "full"])
def test_probabilities_beyond_the_clamp_stay_in_the_mollifier(value, schedule):
    found = sampler(learner=Probabilities(value), schedule=schedule).fit(RIGHT)
    ratios = log_ratio_range(lambda x: integral_log_ratio(found, x), [(-6, 6)], cells=500)
    assert ratios.within(0.5 + 2e-3)
    assert ratios.spread <= 0.5 + 1e-9
    assert np.isfinite(found.sample(10)).all()


class Broken(Probabilities):
    """Fails once it sees records that are not like the base."""

    def fit(self, X, y):
        if len(X) > 200:
            raise RuntimeError(f"secret {X[0]}")
        return super().fit(X, y)


class NoOdds(Probabilities):
    def predict_proba(self, X):
        raise RuntimeError("no idea")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"epsilon": None}, TypeError, "epsilon"),
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"epsilon": np.inf}, ValueError, "epsilon"),
        ({"epsilon": 40.0}, ValueError, "no hope"),
        ({"max_samples": None}, TypeError, "max_samples"),
        ({"max_samples": 0}, ValueError, "max_samples"),
        ({"max_samples": 2.5}, TypeError, "max_samples"),
        ({"rounds": 0}, ValueError, "rounds must be at least 1"),
        ({"training_draws": 3}, ValueError, "training_draws"),
        ({"schedule": "slow"}, ValueError, "schedule"),
        ({"drawing": "lots"}, ValueError, "drawing"),
        ({"currency": "euro"}, ValueError, "currency"),
        ({"neighbours": "all"}, ValueError, "neighbours"),
        ({"base": "cauchy"}, ValueError, "base"),
        ({"base": "uniform"}, TypeError, "bounds"),
        ({"learner": "forest"}, ValueError, "learner"),
        ({"learner": TREE.__class__}, TypeError, "learner"),
        ({"learner": StandardScaler()}, TypeError, "learner"),
        ({"learner": NoOdds()}, ValueError, "learner failed on points of the base: RuntimeError: no idea"),
        ({"ledger": "budget.db"}, TypeError, "ledger"),
        ({"progress": 3}, TypeError, "progress"),
    ],
)
def test_mistakes_are_named_before_any_record_is_read(options, error, words):
    with pytest.raises(error, match=words):
        sampler(**options).fit(RIGHT.view(Untouchable))


def test_a_learner_that_fails_on_records_says_nothing():
    with pytest.raises(ReleaseFailed) as caught:
        sampler(learner=Broken()).fit(RIGHT)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_failed_fit_leaves_the_old_model_gone():
    found = sampler().fit(RIGHT)
    found.learner = Broken()
    with pytest.raises(ReleaseFailed):
        found.fit(RIGHT)
    with pytest.raises(ValueError, match="forgotten"):
        found.sample()


# -- counting -----------------------------------------------------------------------------------------------------


def test_draws_are_counted_and_the_model_goes_with_the_last():
    found = sampler(max_samples=5)
    with pytest.raises(NotFittedError):
        found.sample()
    found.fit(RIGHT)
    assert found.draws_left_ == 5
    assert found.sample(3).shape == (3, 1)
    with pytest.raises(ValueError, match="only 2 of the draws"):
        found.sample(3)
    assert found.draws_left_ == 2
    found.sample(2)
    assert found.draws_left_ == 0
    with pytest.raises(ValueError, match="all 5 draws are taken"):
        found.sample()
    with pytest.raises(ValueError, match="must hold a model"):
        integral_log_ratio(found, RIGHT)
    assert found.fit(RIGHT).draws_left_ == 5


@pytest.mark.parametrize("bad", [0, -1, 1.5, None])
def test_a_number_of_draws_is_a_whole_number(bad):
    with pytest.raises((TypeError, ValueError), match="n_samples"):
        sampler().fit(RIGHT).sample(bad)


def test_forget_lets_go_at_once():
    found = sampler().fit(RIGHT)
    found.forget()
    assert found.draws_left_ == 0


def test_a_fitted_sampler_is_not_pickled_or_copied():
    found = sampler().fit(RIGHT)
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied: its model is secret"):
            way(found)
    fresh = clone(found)
    with pytest.raises(NotFittedError):
        fresh.sample()
    found.sample(50)
    again = pickle.loads(pickle.dumps(found))
    assert again.guarantee_ == found.guarantee_
    assert pickle.loads(pickle.dumps(sampler())).epsilon == 1.0


def test_a_forked_process_cannot_draw():
    found = sampler().fit(RIGHT)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(found.draws_left_))
    child.start()
    assert queue.get() == 0
    child.join()
    assert found.draws_left_ == 50


def test_progress_tells_rounds_only():
    told = []
    sampler(rounds=3, progress=lambda *words: told.append(words)).fit(RIGHT)
    assert told == [(0, 3, "round 1"), (1, 3, "round 2"), (2, 3, "round 3")]


# -- ledger -------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(
        tmp_path / "budget", dataset="d", epsilon=2.0, delta=1e-6, integral=5.0, high_water=tmp_path / "marks"
    ) as opened:
        yield opened


def test_a_ledger_is_charged_for_all_draws_before_the_records_are_read(ledger):
    found = sampler(epsilon=0.1, max_samples=20, ledger=ledger).fit(RIGHT)
    assert ledger.remaining().integral == pytest.approx(3.0)
    assert found.receipt_["currency"] == "integral"
    assert ledger.plan(found).times == 1
    first = found.sample(20)
    with pytest.raises(ValueError, match="taken"):
        found.sample()
    again = sampler(epsilon=0.1, max_samples=20, ledger=ledger).fit(np.zeros((3, 1)))
    assert (again.sample(20) == first).all()  # the question was asked before
    assert ledger.remaining().integral == pytest.approx(3.0)
    with pytest.raises(ValueError, match="must hold a model"):
        integral_log_ratio(again, RIGHT)


def test_a_unit_is_refused_before_anything_is_spent(ledger):
    """A table with a unit waits for a bound on its contributions, and there is none here: every change is covered."""
    with pytest.raises(ValueError, match="unit"):
        sampler(epsilon=0.1, ledger=ledger).fit(table(RIGHT, unit=np.arange(len(RIGHT))))
    assert ledger.remaining().integral == pytest.approx(5.0)


def test_more_draws_than_the_budget_are_refused(ledger):
    with pytest.raises(LedgerRefused, match="budget"):
        sampler(epsilon=0.1, max_samples=51, ledger=ledger).fit(RIGHT.view(Untouchable))
    assert ledger.remaining().integral == pytest.approx(5.0)


def test_a_ledger_may_count_draws_as_rho(ledger):
    asked = sampler(epsilon=0.05, max_samples=10, currency="zcdp", ledger=ledger)
    assert asked.cost() == Cost(asked.cost().rho)
    assert asked.cost().rho == pytest.approx(10 * 0.05**2 / 2)
    assert sampler(epsilon=0.05, max_samples=10).cost() == IntegralCost(0.05, draws=10)
    before = ledger.remaining().rho
    asked.fit(RIGHT)
    assert before - ledger.remaining().rho == pytest.approx(asked.cost().rho)
    assert ledger.remaining().integral == pytest.approx(5.0)


def test_a_ledger_pays_for_nothing_that_is_not_certified(ledger):
    with pytest.raises(LedgerRefused, match="certified"):
        sampler(epsilon=0.1, ledger=ledger, base=stats.multivariate_t([0.0, 0.0], df=4)).fit(np.zeros((9, 2)))
    with seeded_noise(1), pytest.raises(LedgerRefused, match="certified"):
        sampler(epsilon=0.1, ledger=ledger).fit(RIGHT)


def test_a_failure_after_the_reservation_is_spent(ledger):
    from fogline.ledger import ReleaseFailed as Burned

    with pytest.raises(Burned):
        sampler(epsilon=0.1, max_samples=20, ledger=ledger, learner=Broken()).fit(RIGHT)
    assert ledger.remaining().integral == pytest.approx(3.0)


# -- scikit-learn -------------------------------------------------------------------------------------------------


@scikit_learn_checks(
    IntegralSampler(epsilon=1.0, max_samples=5, learner=TREE, schedule="full", rounds=1, training_draws=50),
    NOT_PICKLED,
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_defaults_are_the_best_that_was_found():
    made = IntegralSampler(epsilon=2.0, max_samples=3, bounds=[(-4.0, 4.0)], base="uniform", training_draws=2000)
    drawn = made.fit(RIGHT)
    assert "by cells" in str(drawn.guarantee_)
    points = np.linspace(-3.9, 3.9, 400)[:, None]
    ratio = integral_log_ratio(drawn, points)
    inside = np.abs(points[:, 0] - 1.0) < 1.0
    assert ratio[inside].mean() > 0.8  # 1 is the most that epsilon = 2 allows
    assert ratio[~inside].mean() < -0.2
    wide = IntegralSampler(epsilon=2.0, max_samples=1, bounds=[(-4.0, 4.0)] * 4, training_draws=50)
    assert "by rejection" in str(wide.fit(np.zeros((50, 4))).guarantee_)


def test_the_share_of_draws_that_carry_information_is_known_before():
    assert IntegralSampler(epsilon=0.1, max_samples=20).informative_share() == pytest.approx(1 - np.exp(-0.05))
    with pytest.raises(ValueError, match="epsilon"):
        IntegralSampler(epsilon=-1.0, max_samples=20).informative_share()
