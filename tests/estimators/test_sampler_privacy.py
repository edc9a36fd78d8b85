"""Privacy of IntegralSampler: opposite data sets, replay, mutants, and a search for the model's weights."""

import contextlib
import importlib
import logging
import math
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fogline import IntegralSampler
from fogline.audit import attack, canary_pairs, replay
from fogline.audit.neighbour_pairs import Pair
from fogline.audit.observation import flatten, observe
from fogline.estimators import sampler as _drawing
from fogline.estimators import sampler as sampler_module
from fogline.families.base_measures import log_ratio_range
from fogline.queries import boosted_density as _boosting
from fogline.releases import secret_models
from fogline.testing import integral_log_ratio, seeded_noise

pytestmark = pytest.mark.filterwarnings("ignore::fogline.PrivacyWarning")  # an attack takes thousands of draws

BOX = [(-3.0, 3.0)]
DRAWS = importlib.import_module("fogline.mechanisms.mollified_draws")
TREE = DecisionTreeClassifier(max_depth=2)
LEFT, RIGHT = np.full((300, 1), -1.5), np.full((5, 1), 1.5)


def sampler(**options):
    given = {"epsilon": 1.0, "max_samples": 6, "learner": TREE, "schedule": "full", "rounds": 1, "training_draws": 60}
    given["drawing"] = "rejection"
    return IntegralSampler(**(given | options))


class Oracle(ClassifierMixin, BaseEstimator):
    """As sure as can be, and right: the worst case for privacy."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.side_ = np.sign(X[y == 1].mean(axis=0)[0])
        return self

    def decision_function(self, X):
        return 1e9 * self.side_ * X[:, 0]


# -- opposite data sets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["paper", "full"])
@pytest.mark.parametrize("learner", [Oracle(), TREE, LogisticRegression()], ids=["oracle", "tree", "logistic"])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 6.0])
def test_models_of_opposite_data_differ_by_no_more_than_epsilon(learner, schedule, epsilon):
    options = {"epsilon": epsilon, "learner": learner, "schedule": schedule, "rounds": 3}
    models = [sampler(**options).fit(X) for X in (LEFT, RIGHT)]
    exact = [secret_models.paid_draws_of(model).log_ratio for model in models]
    for log_acceptance in exact:  # to the last bit, where a draw is decided
        found = log_ratio_range(log_acceptance, [(-9, 9)], cells=4000)
        assert found.high <= 0
        assert found.low >= -epsilon / 2
    ratio = log_ratio_range(
        lambda x: integral_log_ratio(models[0], x) - integral_log_ratio(models[1], x), [(-9, 9)], cells=4000
    )
    assert ratio.within(epsilon + 2e-3)  # the normaliser of a test is an estimate
    assert ratio.spread > 0.2 * epsilon  # and the two models do differ


@pytest.mark.parametrize("schedule", ["paper", "full"])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 6.0])
def test_cells_of_opposite_data_differ_by_no_more_than_epsilon(schedule, epsilon):
    options = {"epsilon": epsilon, "learner": Oracle(), "schedule": schedule, "rounds": 3, "drawing": "cells"}
    models = [sampler(**options).fit(X) for X in (LEFT, RIGHT)]
    exact = [secret_models.paid_draws_of(model).log_ratio for model in models]
    for log_ratio in exact:
        assert log_ratio_range(log_ratio, [(-9, 9)], cells=4000).within(epsilon / 2 * (1 + 1e-12))
    ratio = log_ratio_range(lambda x: exact[0](x) - exact[1](x), [(-9, 9)], cells=4000)
    assert ratio.within(epsilon * (1 + 1e-12))
    assert ratio.spread > 0.5 * epsilon


# -- replay -------------------------------------------------------------------------------------------------------


def draws_of(estimator, kept=lambda fitted: None):
    """Fit and draw, as an audit sees it."""

    def run(data):
        fitted = clone(estimator).fit(data)
        return SimpleNamespace(
            draws=[fitted.sample(4), fitted.sample(2)],
            guarantee_=fitted.guarantee_,
            left=fitted.draws_left_,
            fitted=fitted,
            kept=kept(fitted),
        )

    return run


def audited(estimator=None, pairs=None, **options):
    everything = [*canary_pairs(BOX, neighbours="add-remove", n=30, block=None)[::4], Pair("opposite", LEFT, RIGHT)]
    return replay(
        draws_of(sampler() if estimator is None else estimator, **options), everything if pairs is None else pairs
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("drawing", ["rejection", "cells"])
def test_replay_on_canaries(drawing, relation):
    pairs = canary_pairs(BOX, neighbours=relation, n=30, block=None)[::2]
    fit = draws_of(sampler(neighbours=relation, drawing=drawing, constant_time=relation == "replace"))
    report = replay(fit, pairs)
    assert report.passed, str(report)
    assert {pair.calls for pair in report.pairs} == {2}


@pytest.mark.parametrize("learner", ["boosting", LogisticRegression()], ids=["boosting", "logistic"])
def test_replay_on_data_that_have_nothing_in_common(learner):
    pairs = [Pair("opposite", LEFT, RIGHT), Pair("nothing and all", np.empty((0, 1)), RIGHT)]
    report = audited(sampler(learner=learner, base="uniform", bounds=BOX, schedule="paper", rounds=2), pairs)
    assert report.passed, str(report)


def no_clamp(patch):
    patch.setattr(DRAWS, "on_lattice", lambda logs, _: np.rint(logs * DRAWS.LOG_STEPS).astype(np.int64))
    patch.setattr(_drawing, "on_lattice", lambda logs, _: np.rint(2.0**40 * logs).astype(np.int64))


def forgotten_charge(patch):
    """Six draws are made, and one is stated."""
    real = sampler_module.IntegralGuarantee.of.__func__
    patch.setattr(
        sampler_module.IntegralGuarantee,
        "of",
        classmethod(lambda cls, epsilon, *, draws, **rest: real(cls, epsilon, draws=1, **rest)),
    )


def doubled_epsilon(patch):
    real = _drawing.mollified_draws
    patch.setattr(_drawing, "mollified_draws", lambda *args, epsilon, **rest: real(*args, epsilon=2 * epsilon, **rest))


def model_kept(patch):
    real = secret_models.hold

    def hold(owner, paid_draws):
        owner.model_ = paid_draws.log_ratio
        real(owner, paid_draws)

    patch.setattr(secret_models, "hold", hold)


def edges_reported(patch):
    real = _boosting._one_round

    def one_round(plan, ratio, records, step, rng):
        real(plan, ratio, records, step, rng)
        logging.getLogger("fogline").warning("gain %s", ratio(records).mean() if len(records) else 0.0)

    patch.setattr(_boosting, "_one_round", one_round)
    patch.setattr(_boosting, "quiet", contextlib.nullcontext)


def talkative_learner(patch):
    """The learner prints, and nobody keeps it quiet."""
    real = DecisionTreeClassifier.fit

    def fit(self, X, y, **rest):
        print("mean", X[y == 1].mean())
        return real(self, X, y, **rest)

    patch.setattr(DecisionTreeClassifier, "fit", fit)
    patch.setattr(_boosting, "quiet", contextlib.nullcontext)


def cached_on_disk(patch):
    real = _boosting.train

    def train(plan, passes, rng, progress=None):
        ratio = real(plan, passes, rng, progress)
        Path("model.bin").write_bytes(ratio(np.array([[1.5]])).tobytes())
        return ratio

    patch.setattr(sampler_module, "train", train)


def own_seed(patch):
    """Proposals from numpy, without the door."""
    patch.setattr(DRAWS, "_coins", lambda source, size: np.random.default_rng().integers(DRAWS.COIN, size=size))
    real = _drawing.mollified_draws
    patch.setattr(
        _drawing, "mollified_draws", lambda *args, **rest: real(*args, **rest) + np.random.default_rng().random()
    )


def certified_whatever_the_door(patch):
    patch.setattr(sampler_module, "provider_reason", lambda: "")


def rows_counted(patch):
    """Training takes another path when there are few records."""

    def resampled(records, size, rng):
        if len(records) < 30:
            _boosting.current_provider().generator("few records")
        return records[rng.integers(len(records), size=size)]

    from fogline.mechanisms.randomness import current_provider

    patch.setattr(_boosting, "current_provider", current_provider, raising=False)
    patch.setattr(_boosting, "_resampled", resampled)


MUTANTS = [
    (no_clamp, "declared sensitivity apart"),
    (forgotten_charge, "cost more"),
    (doubled_epsilon, "cost more"),
    (model_kept, "model_"),
    (edges_reported, "log records"),
    (talkative_learner, "printed text"),
    (cached_on_disk, "files written"),
    (own_seed, "draws"),
    (certified_whatever_the_door, "certified although"),
    (rows_counted, "did not ask for"),
]


@pytest.mark.parametrize(("mutate", "words"), MUTANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_mutants_are_caught(mutate, words, monkeypatch):
    mutate(monkeypatch)
    pairs = [Pair("opposite", RIGHT, LEFT), Pair("one more", LEFT, np.append(LEFT, [[1.5]], axis=0))]
    report = audited(sampler(), pairs)
    assert not report.passed
    assert words in str(report), str(report)


def test_without_a_mutant_the_audit_passes():
    report = audited()
    assert report.passed, str(report)


# -- the model's weights ------------------------------------------------------------------------------------------


WEIGHTS = (1234.5678901234567, -0.3141592653589793)


class Weighted(ClassifierMixin, BaseEstimator):
    """A learner with weights that can be searched for, and with a mouth."""

    def fit(self, X, y):
        self.classes_, self.coef_ = np.unique(y), np.array(WEIGHTS)
        print("weights", self.coef_)
        logging.getLogger("learner").error("weights %r", self.coef_.tolist())
        import warnings

        warnings.warn(f"weights {self.coef_.tolist()}", stacklevel=1)
        return self

    def decision_function(self, X):
        return X[:, 0] * self.coef_[0] + self.coef_[1]


def traces(text_or_bytes):
    data = text_or_bytes if isinstance(text_or_bytes, bytes) else str(text_or_bytes).encode()
    marks = [
        mark for value in WEIGHTS for mark in (struct.pack("<d", value), struct.pack(">d", value), b"%.4f" % value)
    ]
    marks += [mark for value in WEIGHTS for mark in (repr(value).encode()[:8], b"%.6e" % value, b"%.8e" % value)]
    return [mark for mark in marks if mark in data]


def parts_of(leaf):
    """Bytes and texts of a leaf, however deep in it."""
    if isinstance(leaf, tuple | list):
        return [found for part in leaf for found in parts_of(part)]
    return [leaf if isinstance(leaf, bytes) else str(leaf)]


@pytest.mark.filterwarnings("ignore")
def test_the_search_would_find_them():
    assert traces(np.array(WEIGHTS).tobytes())
    assert traces(f"weights {np.array(WEIGHTS)}")
    assert traces(repr(WEIGHTS[1]))
    leaves = {}
    flatten({"model": Weighted().fit(np.zeros((2, 1)), np.array([0, 1]))}, "result", leaves)
    assert any(traces(part) for leaf in leaves.values() for part in parts_of(leaf))


@pytest.mark.parametrize("schedule", ["paper", "full"])
@pytest.mark.filterwarnings("ignore")
def test_no_output_and_no_file_holds_the_models_weights(schedule, tmp_path):
    """Everything that a run lets out: attributes to any depth, text, pickle, logs, warnings, output, files."""
    ledger = sampler_ledger(tmp_path)

    def run(data):
        plain = sampler(learner=Weighted(), schedule=schedule).fit(data)
        paid = sampler(learner=Weighted(), schedule=schedule, epsilon=0.1, ledger=ledger).fit(data)
        shown = [repr(plain), str(plain), plain._repr_html_(), str(plain.get_params()), vars(plain), dir(plain)]
        drawn = [plain.sample(3), paid.sample(3)]
        with pytest.raises(TypeError) as refused:
            plain.__reduce_ex__(5)
        return {"samplers": [plain, paid], "shown": shown, "drawn": drawn, "refused": str(refused.value)}

    seen = observe(run, np.random.default_rng(0).normal(size=(200, 1)), look=False)
    ledger.close()
    assert not seen.exception, seen.exception
    assert not traces(seen.output + seen.text + str(seen.logs) + str(seen.caught))
    assert not traces(seen.pickled)
    assert seen.result["samplers"][0].draws_left_ == 3
    leaves = {path: leaf for path, leaf in seen.state.items() if not path.endswith("['drawn']")}
    for path, leaf in leaves.items():
        assert not any(traces(part) for part in parts_of(leaf)), path
    files = [path for folder in (tmp_path,) for path in folder.rglob("*") if path.is_file()]
    assert files  # the ledger's, at least
    for path in files:
        assert not traces(path.read_bytes()), path
    for name, content in seen.files.items():
        assert not traces(content), name


def sampler_ledger(folder):
    from fogline import Ledger

    return Ledger.create(
        folder / "budget", dataset="d", epsilon=1.0, delta=1e-6, integral=9.0, high_water=folder / "marks"
    )


# -- attack -------------------------------------------------------------------------------------------------------


def attacked(runs=3000, **options):
    """Tell all records on one side from all on the other, by one draw."""
    told = {"learner": Oracle(), "schedule": "paper", "rounds": 5, "max_samples": 2 * runs, **options}
    rows = {name: iter(sampler(**told).fit(X).sample(2 * runs)) for name, X in (("l", LEFT), ("r", RIGHT))}
    claim = sampler(max_samples=1).fit(LEFT).guarantee_
    event = lambda x: float(x[0] > 0)  # noqa: E731
    return attack(lambda name: next(rows[name]), "l", "r", claim, score=event, threshold=0.5, runs=runs)


def test_a_draw_does_not_tell_opposite_data_apart():
    with seeded_noise(1):
        report = attacked()
    assert not report.broken
    assert report.epsilon_lower > 0.3  # the attack has power: endless runs would show 1/2


def test_a_draw_at_three_times_the_epsilon_does():
    with seeded_noise(1):
        assert attacked(epsilon=3.0).broken


def test_publishing_the_model_tells_everything():
    """Gap 8: the samples are private, the model is not, at any epsilon."""
    with seeded_noise(2):
        models = [sampler(epsilon=1e-3, learner=DecisionTreeClassifier(max_depth=6)).fit(X) for X in (LEFT, RIGHT)]
        near = [integral_log_ratio(model, [[1.5]])[0] > integral_log_ratio(model, [[0.0]])[0] for model in models]
    assert near == [False, True]
    assert math.isclose(models[0].guarantee_.per_draw, 1e-3)


# -- what the guarantee rests on ------------------------------------------------------------------------------------


def test_draws_made_from_a_seed_after_the_fit_are_not_certified():
    found = sampler().fit(LEFT)
    assert found.guarantee_.certified
    with seeded_noise(0):
        found.sample(2)
    assert not found.guarantee_.certified
    assert "seed" in str(found.guarantee_)
