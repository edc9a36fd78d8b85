r"""Densities made of classifiers: a public base times the exponential of weighted classifier outputs.

Boosted density estimation asks a classifier to tell records from draws of the current density, and multiplies the
density by a power of its odds. After T rounds

.. math:: \log \frac{dQ_T}{dQ_0}(x) = \sum_{t=1}^T \theta_t c_t(x) - \varphi ,
          \qquad c_t(x) \in [-\log 2, \log 2] ,

with steps :math:`\theta_t(\varepsilon) = (\varepsilon/(\varepsilon + 4\log 2))^t`, whose sum stays below
:math:`\varepsilon/(4 \log 2)`, so that the sum of the classifiers stays within :math:`\varepsilon/4` of 0. This file
has formulas only: who trains, on what, and who may see it is decided elsewhere.

References
----------
Husain, Cranko and Nock, Integral privacy for sampling from mollifier densities with approximation guarantees
(Algorithm 1, Lemmas 9 and 10, section 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_count, check_epsilon
from fogline.families.bases import Base

__all__ = ["CLAMP", "LEARNERS", "BoostedRatio", "gamma", "log_odds", "seeded_learner", "step_sizes"]

FloatArray = NDArray[np.float64]

CLAMP = math.log(2.0)
"""The most that a classifier of the paper's may say, either way."""

EPOCHS = 750


def step_sizes(epsilon: float, rounds: int) -> FloatArray:
    r"""Return :math:`\theta_t = (\varepsilon/(\varepsilon + 4\log 2))^t` for t = 1, ..., rounds.

    Examples
    --------
    >>> step_sizes(4 * math.log(2), 3)
    array([0.5  , 0.25 , 0.125])
    """
    ratio = check_epsilon(epsilon) / (epsilon + 4.0 * CLAMP)
    return ratio ** np.arange(1.0, check_count(rounds, "rounds") + 1.0)


def gamma(z: float) -> float:
    r"""Return :math:`\Gamma(z) = \log(4/(5 - 3z))`, what a classifier gains on draws that it tells with edge z.

    Examples
    --------
    >>> round(gamma(1 / 3), 12), round(gamma(1.0), 4)
    (0.0, 0.6931)
    """
    return math.log(4.0 / (5.0 - 3.0 * z))


def _perceptron() -> Any:
    """Three layers of 25 tanh units, 750 epochs by Nesterov's rule at rate 0.01; momentum and batch size are ours."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        hidden_layer_sizes=(25, 25, 25),
        activation="tanh",
        solver="sgd",
        learning_rate_init=0.01,
        momentum=0.9,
        nesterovs_momentum=True,
        alpha=0.0,
        batch_size=2000,
        max_iter=EPOCHS,
        tol=0.0,
        n_iter_no_change=10**9,
    )


def _trees() -> Any:
    """Gradient-boosted trees, a fixed number of them, small enough not to learn records by heart."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.15, max_leaf_nodes=24, min_samples_leaf=40, early_stopping=False
    )


LEARNERS = {"mlp": _perceptron, "boosting": _trees}
"""Learners by name: the paper's, and one that is some hundred times faster."""


def seeded_learner(learner: Any, seed: int) -> Any:
    """Return a fresh copy of a learner, all its random states set from one seed.

    Examples
    --------
    >>> seeded_learner(LEARNERS["boosting"](), 7).random_state
    7
    """
    from sklearn.base import clone

    copy = clone(learner)
    names = [name for name in copy.get_params() if name.rpartition("__")[2] == "random_state"]
    return copy.set_params(**dict.fromkeys(names, seed)) if names else copy


def log_odds(fitted: Any, x: FloatArray) -> FloatArray:
    """Return the logarithm of the odds of class 1, by ``decision_function`` or by probabilities; NaN says nothing.

    Examples
    --------
    >>> class Sure:
    ...     def predict_proba(self, x):
    ...         return np.tile([0.0, 1.0], (len(x), 1))
    >>> log_odds(Sure(), np.zeros((1, 1))).tolist()
    [inf]
    """
    if hasattr(fitted, "decision_function"):
        odds = np.asarray(fitted.decision_function(x), dtype=np.float64)
    else:
        told = np.asarray(fitted.predict_proba(x), dtype=np.float64)
        with np.errstate(all="ignore"):
            odds = np.log(told[:, 1]) - np.log(told[:, 0])
    if odds.size != len(x):
        raise ValueError("learner must give one number a point for two classes")
    odds = odds.reshape(len(x))
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
    >>> from fogline.families.bases import NormalBase
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
