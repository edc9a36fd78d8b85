r"""MBDE, mollified boosted density estimation, as published, sampled by a random walk.

For t = 1..T: fit a classifier :math:`c_t` to tell records from draws of :math:`Q_{t-1}`, then
:math:`Q_t \propto Q_{t-1} \exp(\theta_t c_t)` with :math:`\theta_t = (\varepsilon/(\varepsilon + 4\log 2))^t`. Draws
come from a random-walk Metropolis chain. Not certified:

1. a chain that has run for a finite time has the law that its start and its steps gave it, which is not
   :math:`Q_T`: the proof is about the stationary law;
2. the proof needs classifiers with values in :math:`[-\log 2, \log 2]` (section 3 assumes it), and the network of (14)
   ends in a sigmoid with values in (0, 1). Read as they are, ``outputs="probabilities"``, the density stays in the
   mollifier, but no classifier is ever negative and the weak learning assumption cannot hold; read as odds, it can, and
   nothing keeps their logarithms within log 2. The paper does not say; both readings are here;
3. the density itself, which the paper plots, is not protected by anything.

References
----------
Husain, Cranko and Nock, Integral privacy for sampling from mollifier densities with approximation guarantees
(Algorithm 1, section 5).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_count, check_epsilon, check_positive
from fogline.accounting import IntegralGuarantee
from fogline.families.base_measures import Base, base_named
from fogline.queries.boosted_density import CLAMP, LEARNERS, BoostedRatio, log_odds, seeded_learner, step_sizes
from fogline_research.as_published._checks import complete_records, frozen_array

__all__ = ["MBDEResult", "mbde", "metropolis"]

FloatArray = NDArray[np.float64]

_NORMALISER_DRAWS = 20_000

LARGEST = 100.0
"""Log-odds beyond this are as good as infinite, with which a chain cannot walk."""

OUTPUTS = ("log-odds", "probabilities")

REASONS = "a finite Metropolis chain has not the law that the proof is about; the learnt density is shown"
UNBOUNDED = "; the classifiers' outputs are not kept within log 2"


@dataclass(frozen=True)
class MBDEResult:
    """Draws of a published run, and the model, which is *not* private.

    Attributes
    ----------
    samples : array of shape (n_samples, d)
    log_ratio : callable
        Logarithm of the ratio of the learnt density to its base, up to a constant.
    edges : array of shape (rounds, 2)
        gamma_P and gamma_Q of each round, on the records and draws that the classifier was fitted to.
    log_normaliser : float
        Equation (7), by draws of the base.
    guarantee : IntegralGuarantee
        What is claimed, and why it is not certified.
    """

    samples: FloatArray
    log_ratio: Callable[[FloatArray], FloatArray]
    edges: FloatArray
    log_normaliser: float
    guarantee: IntegralGuarantee
    base: Base

    def log_density(self, x: FloatArray) -> FloatArray:
        """Logarithm of the learnt density (6), which the paper plots and nothing protects.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> X = np.random.default_rng(0).normal(1.0, 0.5, size=(500, 1))
        >>> quick = {"learner": LogisticRegression(), "training_draws": 200, "chains": 50, "burn_in": 50}
        >>> found = mbde(X, epsilon=1.0, n_samples=20, **quick, random_state=0)
        >>> grid = np.linspace(-8, 8, 1601)[:, None]
        >>> round(float(np.exp(found.log_density(grid)).sum() * 0.01), 1)
        1.0
        """
        points = np.asarray(x, dtype=np.float64)
        return np.asarray(self.base.log_density(points) + self.log_ratio(points) - self.log_normaliser)


def mbde(
    X: object,
    *,
    epsilon: float,
    n_samples: int,
    rounds: int = 3,
    base: Any = "normal",
    learner: Any = "mlp",
    training_draws: int = 10_000,
    outputs: str = "log-odds",
    clamp: float = math.inf,
    start: str = "base",
    burn_in: int = 500,
    thinning: int = 5,
    walk: float = 0.5,
    chains: int = 1,
    random_state: Any = None,
) -> MBDEResult:
    """Run MBDE and draw from the result by random-walk Metropolis.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Raw records, complete.
    epsilon : float
        Claimed for one draw.
    n_samples : int
    rounds : int
        Boosting rounds T.
    base : "normal", or as for `fogline.IntegralSampler`
    learner : "mlp", "boosting" or classifier
        The paper has the first: three layers of 25 tanh units, 750 epochs.
    training_draws : int
        Draws of each class in a round.
    outputs : {"log-odds", "probabilities"}
        What a classifier says: the logarithm of the odds, our first reading, or the network's own output in (0, 1), as
        (14) draws it.
    clamp : float
        On the classifiers' outputs. The paper assumes log 2 without saying how; by default there is none.
    start : {"base", "records"}
        Where chains begin; the paper does not say.
    burn_in, thinning : int
        Steps before the first draw and between draws; ours, the paper has none.
    walk : float
        Standard deviation of a step; ours.
    chains : int
        Chains run side by side, each giving its part of the draws.
    random_state : int, Generator or None

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(1.0, 0.5, size=(500, 1))
    >>> quick = {"learner": LogisticRegression(), "training_draws": 200, "chains": 50, "burn_in": 50}
    >>> found = mbde(X, epsilon=1.0, n_samples=20, **quick, random_state=0)
    >>> found.samples.shape, found.guarantee.certified
    ((20, 1), False)
    """
    records = complete_records(X)
    epsilon, size = check_epsilon(epsilon), check_count(n_samples, "n_samples")
    steps = step_sizes(epsilon, rounds)
    if start not in ("base", "records"):
        raise ValueError(f'start must be "base" or "records", got {start!r}')
    if outputs not in OUTPUTS:
        raise ValueError(f"outputs must be one of {', '.join(OUTPUTS)}, got {outputs!r}")
    public = base_named(base, width=records.shape[1])
    fitted = LEARNERS[learner]() if isinstance(learner, str) and learner in LEARNERS else learner
    limit = LARGEST if clamp == math.inf else check_positive(clamp, "clamp")
    ratio = BoostedRatio(public, floor=-math.inf, clamp=min(limit, LARGEST))
    rng = np.random.default_rng(random_state)

    def draw(count: int) -> FloatArray:
        side = min(check_count(chains, "chains"), count)
        begin = records[rng.integers(len(records), size=side)] if start == "records" else public.draws(rng, side)
        return metropolis(ratio, begin, count, burn_in=burn_in, thinning=thinning, walk=walk, rng=rng)

    count, edges = check_count(training_draws, "training_draws", minimum=10), []
    for step in steps.tolist():
        theirs = draw(count) if ratio.rounds else public.draws(rng, count)
        edges.append(_one_round(ratio, records, theirs, step, fitted, outputs, rng))
    reasons = REASONS + (UNBOUNDED if outputs == "log-odds" and limit > CLAMP else "")
    drawn = public.draws(rng, _NORMALISER_DRAWS)
    return MBDEResult(
        samples=frozen_array(draw(size)),
        log_ratio=ratio,
        edges=frozen_array(np.array(edges)),
        log_normaliser=float(np.logaddexp.reduce(ratio(drawn)) - math.log(len(drawn))),
        base=public,
        guarantee=IntegralGuarantee.of(
            epsilon, draws=size, mechanism="MBDE (as published)", proof="", neighbours="replace", reason=reasons
        ),
    )


def metropolis(
    log_ratio: BoostedRatio | Callable[[FloatArray], FloatArray],
    start: FloatArray,
    size: int,
    *,
    base: Base | None = None,
    burn_in: int = 500,
    thinning: int = 5,
    walk: float = 0.5,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw by random-walk Metropolis, one chain from each start, from the density base times exp(log_ratio).

    Parameters
    ----------
    log_ratio : callable
    start : array of shape (chains, d)
    size : int
        Draws in all.
    base : Base, optional
        By default that of the ratio.
    burn_in, thinning, walk
        As for `mbde`.
    rng : numpy.random.Generator

    Examples
    --------
    >>> from fogline.families.base_measures import NormalBase
    >>> flat = lambda x: np.zeros(len(x))
    >>> rng = np.random.default_rng(0)
    >>> drawn = metropolis(flat, np.zeros((50, 1)), 5000, base=NormalBase([3.0], [[1.0]]), rng=rng)
    >>> bool(abs(drawn.mean() - 3.0) < 0.2)
    True
    """
    public = log_ratio.base if base is None else base  # type: ignore[union-attr]
    burn_in = check_count(burn_in, "burn_in", minimum=0)
    thinning, walk = check_count(thinning, "thinning"), check_positive(walk, "walk")

    def height(x: FloatArray) -> FloatArray:
        inside = public.inside(x)
        with np.errstate(all="ignore"):
            return np.where(inside, public.log_density(x) + log_ratio(x), -math.inf)

    here, kept, missing = np.array(start, dtype=np.float64), [], size
    level, step = height(here), 0
    while missing > 0:
        there = here + walk * rng.standard_normal(here.shape)
        above = height(there)
        moves = np.log(rng.random(len(here))) < above - level
        here, level = np.where(moves[:, None], there, here), np.where(moves, above, level)
        step += 1
        if step > burn_in and (step - burn_in) % thinning == 0:
            kept.append(here[:missing])
            missing -= len(kept[-1])
    return np.concatenate(kept)


def _one_round(
    ratio: BoostedRatio,
    records: FloatArray,
    theirs: FloatArray,
    step: float,
    learner: Any,
    outputs: str,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Fit one classifier, add it, and return its edges over records and draws."""
    ours = records[rng.integers(len(records), size=len(theirs))]
    shown = [ratio.base.shown(points) for points in (ours, theirs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = seeded_learner(learner, int(rng.integers(2**31))).fit(
            np.concatenate(shown), np.repeat([1, 0], len(theirs))
        )
    said = _Probabilities(classifier) if outputs == "probabilities" else classifier
    ratio.rounds.append((step, 0.0, said))
    told = [np.clip(log_odds(said, part), -ratio.clamp, ratio.clamp) for part in shown]
    largest = max(float(np.abs(part).max()) for part in told) or 1.0
    return float(told[0].mean()) / largest, float(-told[1].mean()) / largest


@dataclass(frozen=True, eq=False)
class _Probabilities:
    """A classifier that says its probability where others say log-odds."""

    classifier: Any

    def decision_function(self, x: FloatArray) -> FloatArray:
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * log_odds(self.classifier, x))))
