r"""Densities made of classifiers: a public base times the exponential of weighted classifier outputs.

Boosted density estimation asks a classifier to tell records from draws of the current density, and multiplies the
density by a power of its odds. After T rounds

.. math:: \log \frac{dQ_T}{dQ_0}(x) = \sum_{t=1}^T \theta_t c_t(x) - \varphi ,
          \qquad c_t(x) \in [-\log 2, \log 2] ,

with steps :math:`\theta_t(\varepsilon) = (\varepsilon/(\varepsilon + 4\log 2))^t`, whose sum stays below
:math:`\varepsilon/(4 \log 2)`, so that the sum of the classifiers stays within :math:`\varepsilon/4` of 0.

Training takes raw records and gives a secret function. Each round a classifier learns to tell records from draws of
the current density, and what it says is added to the logarithm of the density. Two schedules:

- ``"paper"``: steps :math:`\theta_t(\varepsilon)` on outputs clamped to :math:`\pm\log 2`, as in Algorithm 1.
- ``"full"``: the whole log-odds, shifted so that the clamp to :math:`[-\varepsilon/2, 0]`, which the sampler imposes in
  any case, cuts where it costs least: the shift with the greatest likelihood.

Neither matters for privacy, which is made where points are drawn (``mechanisms/mollified_draws.proof.md``). All
randomness here stays secret with the model, and comes from one generator of the noise provider. Learners are kept
quiet: what they would print, log or warn about depends on records. The proof is in ``boosted_density.proof.md`` beside
this file.

References
----------
Husain, Cranko and Nock, Integral privacy for sampling from mollifier densities with approximation guarantees
(Algorithm 1, Lemmas 9 and 10, section 5).
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from fogline._typing import Classifier, FloatArray
from fogline._validation import check_count, check_epsilon
from fogline.families.base_measures import Base
from fogline.mechanisms.mollified_draws import proposals_of
from fogline.queries.query import Records

__all__ = [
    "CLAMP",
    "LEARNERS",
    "SCHEDULES",
    "BoostedRatio",
    "Progress",
    "TrainingPlan",
    "checked_learner",
    "described",
    "gamma",
    "log_odds",
    "quiet",
    "rehearse",
    "seeded_learner",
    "step_sizes",
    "train",
]


CLAMP = math.log(2.0)
"""The most that a classifier of the paper's may say, either way."""


@dataclass(frozen=True)
class BoostingTuning:
    """What was tuned in learning; no guarantee rests on it, since draws are clamped whatever was learnt.

    Parameters
    ----------
    epochs : int
        Epochs of the perceptron, as in the paper.
    shifts : int
        Candidates for a shift, at even quantiles of the log-odds.
    rehearsed : int
        Points of either class that a learner is tried on before any record is touched.
    """

    epochs: int = 750
    shifts: int = 64
    rehearsed: int = 64


TUNING = BoostingTuning()


def step_sizes(epsilon: float, rounds: int) -> FloatArray:
    r"""Return :math:`\theta_t = (\varepsilon/(\varepsilon + 4\log 2))^t` for t = 1, ..., rounds.

    Examples
    --------
    >>> step_sizes(4 * math.log(2), 3)
    array([0.5  , 0.25 , 0.125])
    """
    ratio = check_epsilon(epsilon) / (epsilon + 4.0 * CLAMP)
    sizes = ratio ** np.arange(1.0, check_count(rounds, "rounds") + 1.0)
    while sizes.sum() * CLAMP > epsilon / 4.0:  # many rounds come as near to this bound as a double does
        sizes = np.nextafter(sizes, 0.0)
    return sizes


def gamma(z: float) -> float:
    r"""Return :math:`\Gamma(z) = \log(4/(5 - 3z))`, what a classifier gains on draws that it tells with edge z.

    Examples
    --------
    >>> round(gamma(1 / 3), 12), round(gamma(1.0), 4)
    (0.0, 0.6931)
    """
    return math.log(4.0 / (5.0 - 3.0 * z))


def _perceptron() -> Classifier:
    """Three layers of 25 tanh units, 750 epochs by Nesterov's rule at rate 0.01; momentum and batch size are ours."""
    from sklearn.neural_network import MLPClassifier

    made: Classifier = MLPClassifier(
        hidden_layer_sizes=(25, 25, 25),
        activation="tanh",
        solver="sgd",
        learning_rate_init=0.01,
        momentum=0.9,
        nesterovs_momentum=True,
        alpha=0.0,
        batch_size=2000,
        max_iter=TUNING.epochs,
        tol=0.0,
        n_iter_no_change=10**9,
    )
    return made


def _trees() -> Classifier:
    """Gradient-boosted trees, a fixed number of them, small enough not to learn records by heart."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    made: Classifier = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.15, max_leaf_nodes=24, min_samples_leaf=40, early_stopping=False
    )
    return made


LEARNERS = {"mlp": _perceptron, "boosting": _trees}
"""Learners by name: the paper's, and one that is some hundred times faster."""


def seeded_learner(learner: Classifier, seed: int) -> Classifier:
    """Return a fresh copy of a learner, all its random states set from one seed.

    Examples
    --------
    >>> seeded_learner(LEARNERS["boosting"](), 7).random_state
    7
    """
    from sklearn.base import clone

    # the learner that was given is public and stays unfitted
    copy: Classifier = clone(learner)
    names = [name for name in copy.get_params() if name.rpartition("__")[2] == "random_state"]
    return copy.set_params(**dict.fromkeys(names, seed)) if names else copy


def log_odds(fitted: object, x: FloatArray) -> FloatArray:
    """Return the logarithm of the odds of class 1, by ``decision_function`` or by probabilities; NaN says nothing.

    Examples
    --------
    >>> class Sure:
    ...     def predict_proba(self, x):
    ...         return np.tile([0.0, 1.0], (len(x), 1))
    >>> log_odds(Sure(), np.zeros((1, 1))).tolist()
    [inf]
    """
    classifier: Any = fitted
    if hasattr(classifier, "decision_function"):
        odds = np.asarray(classifier.decision_function(x), dtype=np.float64)
    else:
        told = np.asarray(classifier.predict_proba(x), dtype=np.float64)
        with np.errstate(all="ignore"):
            odds = np.log(told[:, 1]) - np.log(told[:, 0])
    if odds.size != len(x):
        raise ValueError("learner must give one number per point for two classes")
    odds = odds.reshape(len(x))
    # even odds
    return np.where(np.isnan(odds), 0.0, odds)


@dataclass
class BoostedRatio:
    r"""The logarithm of a density's ratio to its base, up to a constant: weighted, clamped classifiers.

    Parameters
    ----------
    base : Base
    floor : float
        The least value; after each round the sum, less that round's shift, is clamped to [floor, 0]. Minus infinity:
        no clamp at all, as in the paper.
    clamp : float
        On each classifier's output, either way.

    Examples
    --------
    >>> from fogline.families.base_measures import NormalBase
    >>> ratio = BoostedRatio(NormalBase([0.0], [[1.0]]), floor=-1.0)
    >>> ratio(np.zeros((2, 1)))
    array([0., 0.])
    """

    base: Base
    floor: float
    clamp: float = CLAMP
    rounds: list[tuple[float, float, Any]] = field(default_factory=list)
    """Step, shift and classifier of each round."""

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the value at each point."""
        shown, total = self.base.shown(x), np.zeros(len(x))
        for step, shift, classifier in self.rounds:
            total = self.added(total, step, log_odds(classifier, shown), shift)
        return total

    def open(self, x: FloatArray) -> FloatArray:
        """Return the value at each point before the last clamp and shift."""
        if not self.rounds:
            return self(x)
        step, _, classifier = self.rounds[-1]
        before = BoostedRatio(self.base, self.floor, self.clamp, self.rounds[:-1])(x)
        return before + step * np.clip(log_odds(classifier, self.base.shown(x)), -self.clamp, self.clamp)

    def added(self, total: FloatArray, step: float, odds: FloatArray, shift: float) -> FloatArray:
        """Return the sum with one more classifier, clamped."""
        grown = total + step * np.clip(odds, -self.clamp, self.clamp) - shift
        return grown if self.floor == -math.inf else np.asarray(np.clip(grown, self.floor, 0.0))


Progress = Callable[[int, int, str], object]
SCHEDULES = ("paper", "full")


@dataclass(frozen=True)
class TrainingPlan:
    """Everything public about a training.

    Parameters
    ----------
    base : Base
    epsilon : float
        Of one draw.
    rounds : int
    schedule : {"paper", "full"}
    learner : classifier
        Not fitted itself: copies are.
    draws : int
        Points of either class that a classifier is shown, whatever the number of records.
    """

    base: Base
    epsilon: float
    rounds: int
    schedule: str
    learner: Any
    draws: int


def checked_learner(learner: object) -> Classifier:
    """Return a classifier by its name or as it was given.

    Examples
    --------
    >>> checked_learner("forest")
    Traceback (most recent call last):
    ValueError: learner must be 'mlp', 'boosting' or a classifier with decision_function or predict_proba, got 'forest'
    """
    if isinstance(learner, str) and learner in LEARNERS:
        return LEARNERS[learner]()
    needed = ("fit", "get_params")
    tells = hasattr(learner, "decision_function") or hasattr(learner, "predict_proba")
    if isinstance(learner, str | type) or not tells or not all(hasattr(learner, name) for name in needed):
        names = ", ".join(map(repr, LEARNERS))
        shown = repr(learner) if isinstance(learner, str) else type(learner).__name__
        error = ValueError if isinstance(learner, str) else TypeError
        raise error(f"learner must be {names} or a classifier with decision_function or predict_proba, got {shown}")
    return cast(Classifier, learner)


def rehearse(plan: TrainingPlan, rng: np.random.Generator) -> None:
    """Fit a copy of the learner to points of the base, so that its mistakes show before any record is touched."""
    points = plan.base.draws(rng, 2 * TUNING.rehearsed)
    shown, classes = plan.base.shown(points), np.repeat([1, 0], TUNING.rehearsed)
    try:
        with quiet():
            log_odds(seeded_learner(plan.learner, _seed(rng)).fit(shown, classes), shown)
    except Exception as error:
        raise ValueError(f"learner failed on points of the base: {type(error).__name__}: {error}") from error


def train(
    plan: TrainingPlan, source: Records, rng: np.random.Generator, progress: Progress | None = None
) -> BoostedRatio:
    """Learn a density; the result is secret, and is the logarithm of the probability to accept a point of the base.

    No usable records, and the classifier is shown draws of the base as if they were: the same path, and the base
    itself as an answer.
    """
    kept: list[FloatArray] = []
    source.each(lambda batch: kept.append(batch[plan.base.inside(batch)]))
    records = np.concatenate([np.empty((0, plan.base.d)), *kept])
    full = plan.schedule == "full"
    ratio = BoostedRatio(plan.base, floor=-plan.epsilon / 2 if full else -math.inf, clamp=math.inf if full else CLAMP)
    steps = np.ones(plan.rounds) if full else step_sizes(plan.epsilon, plan.rounds)
    for number, step in enumerate(steps.tolist(), start=1):
        if progress is not None:
            progress(number - 1, plan.rounds, f"round {number}")
        with quiet():
            _one_round(plan, ratio, records, step, rng)
    return ratio


def _one_round(
    plan: TrainingPlan, ratio: BoostedRatio, records: FloatArray, step: float, rng: np.random.Generator
) -> None:
    """Fit one classifier and add it."""
    ours = _resampled(records, plan.draws, rng) if len(records) else plan.base.draws(rng, plan.draws)
    theirs = _current_draws(plan, ratio, rng)
    classes = np.repeat([1, 0], plan.draws)
    shown = plan.base.shown(np.concatenate([ours, theirs]))
    classifier = seeded_learner(plan.learner, _seed(rng)).fit(shown, classes)
    if plan.schedule == "full":
        shift = _best_shift(plan, ratio, classifier, ours, plan.base.draws(rng, plan.draws))
    else:
        shift = 0.0 if ratio.rounds else plan.epsilon / 4  # the sum lies within epsilon/4 of 0, and must not be above 0
    ratio.rounds.append((step, shift, classifier))


def _resampled(records: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return exactly `size` records: each as often as any other, but for a random remainder."""
    # as many as were asked for, whatever the number of records: what a learner is shown has a public size
    whole, rest = divmod(size, len(records))
    rows = np.concatenate([np.tile(np.arange(len(records)), whole), rng.permutation(len(records))[:rest]])
    return np.asarray(records[rows])


def _current_draws(plan: TrainingPlan, ratio: BoostedRatio, rng: np.random.Generator) -> FloatArray:
    """Draw from the current density by rejection; for training only, never published."""
    kept, missing = [np.empty((0, plan.base.d))], plan.draws
    # a public number of rounds; what is missing then comes from the base
    for _ in range(proposals_of(plan.epsilon)):
        points = plan.base.draws(rng, plan.draws)
        accepted = points[np.log(rng.random(plan.draws)) < ratio(points)][:missing]
        kept.append(accepted)
        missing -= len(accepted)
        if missing == 0:
            return np.concatenate(kept)
    return np.concatenate([*kept, plan.base.draws(rng, missing)])


def _best_shift(
    plan: TrainingPlan, ratio: BoostedRatio, classifier: Classifier, ours: FloatArray, base_draws: FloatArray
) -> float:
    """Return the shift before the clamp under which the records are most likely."""
    before = [ratio(points) for points in (ours, base_draws)]
    odds = [log_odds(classifier, plan.base.shown(points)) for points in (ours, base_draws)]
    sums = np.concatenate([total + gain for total, gain in zip(before, odds, strict=True)])
    # infinite log-odds would make quantiles of NaN
    marks = np.quantile(np.clip(sums, -1e300, 1e300), np.linspace(0.0, 1.0, TUNING.shifts))
    shifts = np.concatenate([marks, marks + plan.epsilon / 4, marks + plan.epsilon / 2])

    def gain(shift: float) -> float:
        of_records, of_base = (ratio.added(t, 1.0, o, shift) for t, o in zip(before, odds, strict=True))
        return float(of_records.mean() - np.log(np.exp(of_base).mean()))

    return float(max(shifts.tolist(), key=gain))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep a learner from printing, logging and warning."""
    # The level of the whole process is put back, not reset: the program may have set one.
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def described(learner: Classifier) -> str:
    """Return a learner in words, for a ledger's question.

    Examples
    --------
    >>> described(LEARNERS["mlp"]()).startswith("sklearn.neural_network")
    True
    """
    given = sorted((name, repr(value)) for name, value in learner.get_params().items())
    return f"{type(learner).__module__}.{type(learner).__qualname__}{given}"
