r"""Attacks: how well two neighbours can be told apart by what is published.

Run an algorithm often on :math:`D` and on :math:`D'`, and give each output a *score*, high where it speaks
for :math:`D'`. How often the score is high on either side bounds the algorithm's epsilon from below: see
`fogline.audit.attack`.

For Gaussian noise on a vector the likelihood ratio is a function of :math:`\langle y, z' - z\rangle`, with
:math:`z, z'` the exact vectors: no better score exists. `vector_attack` takes them from one recorded release
each and then draws only noise, through the mechanism's own code. `stage_attack` does so for several stages, each of
Gaussian or Laplace noise.

An attack that fails proves nothing: see `fogline.audit.replay` for what carries a claim.

Events that tell two neighbours apart, and what they prove.

An event "the score is at least t" happens with probability :math:`p_0` on D and :math:`p_1` on D'. Counted on
fresh runs, with Clopper-Pearson limits, it bounds from below

.. math:: \varepsilon \ge \ln\frac{\underline p_1 - \delta}{\overline p_0}, \qquad
          \mu \ge \Phi^{-1}(\underline p_1) - \Phi^{-1}(\overline p_0),

the second for Gaussian differential privacy. Thresholds are chosen on one half of the runs and counted on the
other. Four events share the error: the best for mu, the best for epsilon, and both tails, where the false
positives are near 0: a leak that happens in one run of ten hardly moves any average, but the tails see it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from fogline._typing import FloatArray, IntArray, SourceLike
from fogline._validation import check_count, check_delta, check_level
from fogline.accounting import analytic_gaussian, zcdp
from fogline.accounting.events import GaussianEvent, LaplaceEvent
from fogline.accounting.guarantee import Guarantee
from fogline.audit.binomial_bounds import epsilon_lower_bound, proportion_lower, proportion_upper, visible_probability
from fogline.audit.noise_laws import MechanismStep, fine_bits
from fogline.audit.replay import RecordingProvider, ReplayingProvider
from fogline.audit.scores import canary_of, fixed_scores, learnt_scores, trained_scores
from fogline.density.private_density import PrivateDensity
from fogline.density.spec import SketchSpec
from fogline.mechanisms.randomness import EntropySource, use_provider
from fogline.releases.density_sketch import DensitySketch
from fogline.testing import SeededSource

__all__ = [
    "AttackReport",
    "DistinguishingEvent",
    "attack",
    "best_events",
    "likelihood_ratio",
    "sketch_attack",
    "stage_attack",
    "vector_attack",
]


@dataclass(frozen=True)
class AttackTuning:
    """How hard an attack tries, and how much memory it may take.

    Parameters
    ----------
    candidates : int
        Thresholds that a scalar score is tried with.
    cells_at_a_time : int
        Numbers that are drawn at a time.
    fine : float
        Noise of at least this scale, in lattice steps, is taken for continuous.
    """

    candidates: int = 60
    cells_at_a_time: int = 2_000_000
    fine: float = 10.0


TUNING = AttackTuning()


@dataclass(frozen=True)
class DistinguishingEvent:
    """One event and how often it happened on fresh runs.

    Attributes
    ----------
    name : str
    threshold : float
        The event is a score of at least (above) or at most (below) this.
    above : bool
    hits_1, hits_0 : int
        How often it happened where it should be frequent and where it should be rare.
    runs : int
        On each side.
    epsilon_lower, mu_lower : float
    """

    name: str
    threshold: float
    above: bool
    hits_1: int
    hits_0: int
    runs: int
    epsilon_lower: float
    mu_lower: float


def best_events(
    null: FloatArray,
    other: FloatArray,
    delta: float,
    confidence: float,
    threshold: float | None,
    *,
    midpoint: float | None = None,
) -> tuple[DistinguishingEvent, ...]:
    """Count events on fresh runs; without a threshold, choose four on the first half and split the error.

    Parameters
    ----------
    null, other : arrays of one length
        Scores of the runs on D and on D'.
    delta : float
        At which epsilon is bounded.
    confidence : float
        With which all bounds hold together.
    threshold : float or None
        Fixed beforehand, the only event; or None, to choose.
    midpoint : float, optional
        A threshold for mu that theory gives before any run, halfway between the means of the scores. It
        takes the place of the one chosen for mu, and all runs count for it, not one half.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = best_events(rng.normal(0, 1, 4000), rng.normal(1, 1, 4000), 1e-5, 0.99, None)
    >>> [witness.name for witness in found]
    ['best for mu', 'best for epsilon', 'upper tail', 'lower tail']
    >>> 0.8 < max(witness.mu_lower for witness in found) < 1.0
    True
    """
    if not (np.isfinite(null).all() and np.isfinite(other).all()):
        raise ValueError("score must give finite numbers")
    error = 1.0 - confidence
    if threshold is not None:
        return (_count("the given event", null, other, threshold, True, delta, error),)
    half = len(null) // 2
    chosen = _choose(null[:half], other[:half], delta, error / 4)
    fresh = (null[half:], other[half:])
    found = [_count(name, *fresh, value, above, delta, error / 4) for name, value, above in chosen]
    if midpoint is not None:
        found[0] = _count("midpoint", null, other, midpoint, True, delta, error / 4)
    return tuple(found)


def _choose(null: FloatArray, other: FloatArray, delta: float, error: float) -> list[tuple[str, float, bool]]:
    """Name, threshold and direction of the events to count."""
    pooled = np.concatenate([null, other])
    candidates = np.unique(np.quantile(pooled, np.linspace(0.001, 0.999, TUNING.candidates), method="higher"))
    tried = [_count("", null, other, float(t), True, delta, error) for t in candidates]
    for_mu = max(tried, key=lambda witness: witness.mu_lower)
    for_epsilon = max(tried, key=lambda witness: witness.epsilon_lower)
    return [
        ("best for mu", for_mu.threshold, True),
        ("best for epsilon", for_epsilon.threshold, True),
        ("upper tail", float(np.nextafter(null.max(), np.inf)), True),
        ("lower tail", float(np.nextafter(other.min(), -np.inf)), False),
    ]


def _count(
    name: str, null: FloatArray, other: FloatArray, threshold: float, above: bool, delta: float, error: float
) -> DistinguishingEvent:
    """Count an event and bound what it shows; an event below is frequent on the null side."""
    rare, frequent = (null, other) if above else (other, null)
    hits = [int(np.sum(s >= threshold if above else s <= threshold)) for s in (frequent, rare)]
    runs = len(null)
    low = proportion_lower(hits[0], runs, error=error / 2)
    high = proportion_upper(hits[1], runs, error=error / 2)
    mu = float(ndtri(low) - ndtri(high)) if low > 0 and high < 1 else 0.0
    epsilon = epsilon_lower_bound(hits[0], runs, hits[1], runs, delta=delta, confidence=1.0 - error)
    return DistinguishingEvent(name, threshold, above, hits[0], hits[1], runs, epsilon, max(0.0, mu))


Score = Callable[[Any], float]


@dataclass(frozen=True)
class AttackReport:
    """What an attack found out.

    Attributes
    ----------
    epsilon, delta : float
        The claim.
    mu : float or None
        The claim as Gaussian differential privacy, where it is one: not for noise of a few lattice steps.
    witnesses : tuple of DistinguishingEvent
    confidence : float
        With which all lower bounds hold together.
    """

    epsilon: float
    delta: float
    mu: float | None
    witnesses: tuple[DistinguishingEvent, ...]
    confidence: float

    @property
    def epsilon_lower(self) -> float:
        """The largest lower bound on epsilon at the claimed delta; it assumes nothing of the noise."""
        return max(witness.epsilon_lower for witness in self.witnesses)

    @property
    def mu_lower(self) -> float:
        """The largest lower bound on mu."""
        return max(witness.mu_lower for witness in self.witnesses)

    @property
    def broken(self) -> bool:
        """Whether a lower bound lies above the claim."""
        return self.epsilon_lower > self.epsilon or (self.mu is not None and self.mu_lower > self.mu)

    @property
    def witness(self) -> str:
        """The name of the event that shows the most."""
        return max(self.witnesses, key=lambda witness: witness.epsilon_lower).name

    @property
    def visible_probability(self) -> float:
        """The least probability of a leak that this many runs would have shown, nine times in ten."""
        each = 1.0 - (1.0 - self.confidence) / len(self.witnesses)
        runs = max(witness.runs for witness in self.witnesses)
        return visible_probability(runs, epsilon=self.epsilon, delta=self.delta, confidence=each)

    @property
    def sight(self) -> str:
        """What this many runs can see, in a few words."""
        least = self.visible_probability
        return "has too few runs to see any leak" if least > 1 else f"sees leaks of probability {least:.2g} and more"

    @property
    def verdict(self) -> str:
        """One sentence."""
        best = max(self.witnesses, key=lambda witness: witness.epsilon_lower)
        found = (
            f"epsilon is at least {self.epsilon_lower:.3g} at delta {self.delta:.3g} "
            f"({best.name}: {best.hits_1} against {best.hits_0} of {best.runs} runs)"
        )
        if self.mu is not None:
            found += f", mu at least {self.mu_lower:.4g} of a claimed {self.mu:.4g}"
        stand = "The claim is FALSE" if self.broken else "The claim stands"
        return f"{stand}, at confidence {self.confidence:.7g}: epsilon = {self.epsilon:.3g} is claimed; {found}."

    def __str__(self) -> str:
        return self.verdict if self.broken else f"{self.verdict} The attack {self.sight}."


def likelihood_ratio(z: NDArray[Any], z_prime: NDArray[Any]) -> Score:
    """Return the score of a vector y with Gaussian noise: its inner product with z' - z, of unit length.

    Examples
    --------
    >>> likelihood_ratio(np.array([0, 0]), np.array([3, 4]))(np.array([3.0, 4.0]))
    5.0
    """
    direction = _direction(z, z_prime)
    return lambda y: float(np.asarray(y, dtype=np.float64) @ direction)


def attack(
    release: Callable[[Any], Any],
    D: SourceLike,
    D_prime: SourceLike,
    claim: Guarantee | float,
    *,
    score: Score | Mapping[str, Score] | None = None,
    canary: ArrayLike | None = None,
    runs: int = 1000,
    delta: float | None = None,
    threshold: float | None = None,
    gaussian: bool = False,
    confidence: float = 0.99,
) -> AttackReport:
    """Bound from below the epsilon of any random function of the data.

    Parameters
    ----------
    release : callable
        ``release(data)`` gives one output. Every call must draw fresh noise.
    D, D_prime : objects
        Neighbours.
    claim : Guarantee or float
        What is claimed; a number is a rho of zCDP, and needs `delta`.
    score : callable or mapping of names to callables, optional
        ``score(output)``: a number, high where the output speaks for `D_prime`. By default the fixed witnesses
        (the output nearest to the canary, a match among the outputs or anywhere, the number of outputs, the density at
        the canary, a count of the records) and what is learnt on one half of the runs: the number that tells most, the
        shape of the output (types, dtypes, lengths of texts), a trained score; see `fogline.audit.scores`.
    canary : array-like of shape (d,), optional
        The record that the fixed witnesses look for; by default the one in which `D` and `D_prime` differ.
    runs : int
        On each side.
    delta : float, optional
        At which epsilon is compared; by default the claim's.
    threshold : float, optional
        A threshold for the given score, fixed beforehand: all runs count, and no other event is tried.
    gaussian : bool
        Whether the claim is that of Gaussian noise, so that mu is compared with sqrt(2 rho) as well.
    confidence : float
        With which all bounds hold together, whatever the number of scores.

    Returns
    -------
    AttackReport

    Examples
    --------
    An algorithm that publishes the count as it is:

    >>> report = attack(len, [1, 2], [1, 2, 3], claim=0.03, delta=1e-5, score=float, runs=400)
    >>> report.broken, round(report.epsilon_lower, 1)
    (True, 3.4)

    One that now and then publishes a record, attacked without knowing how it works:

    >>> rng = np.random.default_rng(0)
    >>> def careless(data):
    ...     return [rng.choice(data) if rng.random() < 0.3 else rng.normal()]
    >>> report = attack(careless, [1.0, 2.0], [1.0, 7.0], claim=0.03, delta=1e-5, runs=800)
    >>> report.broken, report.witness
    (True, 'nearest output, upper tail')
    """
    runs = check_count(runs, "runs", minimum=2)
    level = check_level(confidence, "confidence")
    epsilon, chosen_delta, mu = _claimed(claim, delta, gaussian)
    if threshold is not None and not callable(score):
        raise TypeError("threshold needs one score that it is a threshold of")
    if callable(score):
        scores = [np.array([score(release(data)) for _ in range(runs)], dtype=np.float64) for data in (D, D_prime)]
        witnesses = best_events(scores[0], scores[1], chosen_delta, level, threshold)
        return AttackReport(epsilon, chosen_delta, mu, witnesses, confidence)
    outputs = [[release(data) for _ in range(runs)] for data in (D, D_prime)]
    sizes = (len(D), len(D_prime)) if hasattr(D, "__len__") and hasattr(D_prime, "__len__") else None
    listed = _scored(outputs, score, canary_of(D, D_prime) if canary is None else canary, sizes)
    each = 1.0 - (1.0 - level) / len(listed)
    found = [
        replace(witness, name=f"{name}, {witness.name}")
        for name, (null, other) in listed.items()
        for witness in best_events(null, other, chosen_delta, each, None)
    ]
    return AttackReport(epsilon, chosen_delta, mu, tuple(found), confidence)


def vector_attack(
    release: Callable[[Any], Any],
    D: SourceLike,
    D_prime: SourceLike,
    *,
    claim: Guarantee | float | None = None,
    delta: float | None = None,
    runs: int = 50_000,
    source: EntropySource | None = None,
    confidence: float = 0.99,
) -> AttackReport:
    """Attack a release of one vector with Gaussian noise by its likelihood ratio.

    Parameters
    ----------
    release : callable
        Must use the Gaussian mechanism once. It is called once on each data set; after that only the
        mechanism's noise is drawn again, `runs` times.
    D, D_prime : objects
        Neighbours.
    claim, delta
        As in `attack`; by default the guarantee that the release states.
    runs : int
        On each side.
    source : EntropySource, optional
        Of the noise: by default seeded, with the same law.
    confidence : float

    Returns
    -------
    AttackReport

    Examples
    --------
    >>> from fogline.mechanisms import add_gaussian
    >>> def release(data):
    ...     return add_gaussian(lambda: np.array([len(data)]), size=1, sensitivity=1.0, rho=0.5)
    >>> report = vector_attack(release, [], [1], claim=0.5, delta=1e-5, runs=20_000)
    >>> report.broken, report.mu_lower > 0.8
    (False, True)
    """
    runs = check_count(runs, "runs", minimum=2)
    (first, stated), (second, _) = _recorded(release, D), _recorded(release, D_prime)
    known = stated if claim is None else claim
    if known is None:
        raise TypeError("claim must be given: the release states no guarantee")
    # The discrete Gaussian is no Gaussian on a coarse lattice: at scale 1 and distance 1 the midpoint alone shows
    # mu = 1.046, though rho = 1/2 is kept. The difference falls with the square of the scale.
    fine = all(draw.scale >= TUNING.fine for step in (first, second) for draw in step.draws)
    epsilon, chosen_delta, mu = _claimed(known, delta, gaussian=fine)
    direction = _direction(first.exact, second.exact)
    noise = SeededSource(np.random.default_rng(0)) if source is None else source
    scores = [_noisy_scores(step, direction, runs, noise) for step in (first, second)]
    middle = float((first.exact + second.exact.astype(np.float64)) @ direction) / 2
    level = check_level(confidence, "confidence")
    witnesses = best_events(scores[0], scores[1], chosen_delta, level, None, midpoint=middle)
    return AttackReport(epsilon, chosen_delta, mu, witnesses, confidence)


def sketch_attack(
    spec: SketchSpec,
    D: SourceLike,
    D_prime: SourceLike,
    *,
    epsilon: float,
    delta: float,
    neighbours: str = "add-remove",
    runs: int = 50_000,
    source: EntropySource | None = None,
    confidence: float = 0.99,
) -> AttackReport:
    """Attack the release of a density sketch by its likelihood ratio.

    Parameters
    ----------
    spec : SketchSpec
        The grid; in one dimension and with 40 to 120 coefficients a run costs microseconds.
    D, D_prime : arrays of shape (n, d)
        Neighbours.
    epsilon, delta, neighbours
        Of the release.
    runs, source, confidence
        As in `vector_attack`.

    Returns
    -------
    AttackReport

    Examples
    --------
    >>> spec = SketchSpec.plan([(0, 10)], [0.1])
    >>> report = sketch_attack(spec, [], [3.0], epsilon=4.0, delta=1e-5, runs=4000)
    >>> report.broken
    False
    """

    def release(data: SourceLike) -> PrivateDensity:
        sketch = DensitySketch.__new__(DensitySketch)
        sketch._start(spec)
        return sketch.update(data).release(epsilon=epsilon, delta=delta, neighbours=neighbours)

    return vector_attack(release, D, D_prime, runs=runs, source=source, confidence=confidence)


def stage_attack(
    release: Callable[[Any], Any],
    D: SourceLike,
    D_prime: SourceLike,
    *,
    claim: Guarantee | None = None,
    runs: int = 20_000,
    source: EntropySource | None = None,
    confidence: float = 0.99,
) -> AttackReport:
    """Attack a release in several stages by the likelihood ratio of all that it publishes.

    The release is recorded on `D` and replayed on `D_prime` with the same answers, so that later stages ask the same.
    Then only noise is drawn. Where a stage is chosen by earlier answers, this is the attack on the whole release as
    long as each of its choices shows the record alike, as boxes do that tile a space.

    Parameters
    ----------
    release : callable
        Must use mechanisms of Gaussian and Laplace noise alone.
    D, D_prime : objects
        Neighbours.
    claim : Guarantee, optional
        By default the one that the release states.
    runs, source, confidence
        As in `vector_attack`.

    Examples
    --------
    >>> from fogline.mechanisms import add_laplace
    >>> def release(data):
    ...     return [add_laplace(lambda: np.array([len(data)]), size=1, sensitivity=1, epsilon=e) for e in (0.4, 0.6)]
    >>> claim = Guarantee.uncertified(epsilon=1.0, delta=0.0, reason="an audit")
    >>> report = stage_attack(release, [], [1], claim=claim)
    >>> report.broken, report.epsilon_lower > 0.8
    (False, True)
    """
    runs = check_count(runs, "runs", minimum=2)
    first = RecordingProvider()
    with use_provider(first):
        stated = getattr(release(D), "guarantee", None)
    second = RecordingProvider(ReplayingProvider(first.steps))
    with use_provider(second):
        release(D_prime)
    known = claim if claim is not None else stated
    if not isinstance(known, Guarantee):
        raise TypeError("claim must be given: the release states no guarantee")
    noise = SeededSource(np.random.default_rng(0)) if source is None else source
    scores = np.zeros((2, runs))
    for one, other in zip(_noisy_steps(first), _noisy_steps(second), strict=True):
        for side, step in enumerate((one, other)):
            scores[side] += _log_ratios(step, one.exact, other.exact, runs, noise)
    # The ratio of Laplace noise takes few values, which a threshold must not tear apart; the largest, which theory
    # gives before any run, shows all of epsilon.
    null, high = scores.round(9)
    half = 1 - (1 - check_level(confidence, "confidence")) / 2
    largest = round(
        sum(_largest_ratio(*pair) for pair in zip(_noisy_steps(first), _noisy_steps(second), strict=True)), 9
    )
    fixed = best_events(null, high, known.delta, half, largest)
    witnesses = (*fixed, *best_events(null, high, known.delta, half, None))
    return AttackReport(known.epsilon, known.delta, None, witnesses, confidence)


# -- the scores, the claim, the exact vectors, the noise -----------------------------------------------------


def _scored(
    outputs: list[list[Any]],
    score: Mapping[str, Score] | None,
    canary: ArrayLike | None,
    sizes: tuple[int, int] | None,
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the scores of all outputs, on D and on D', by the names of the scores."""
    fixed = fixed_scores(canary, sizes) if score is None else score
    listed = {}
    for name, function in fixed.items():
        null, other = (np.array([function(output) for output in side], dtype=np.float64) for side in outputs)
        seen = [side[: max(1, len(side) // 2)] for side in (null, other)]
        if score is None and np.ptp(np.concatenate(seen)) == 0:
            continue  # this algorithm has nothing of the kind to look at: leave the confidence to the others
        around = score is None and _shown(-seen[0], -seen[1]) > _shown(*seen)
        listed[name] = (-null, -other) if around else (null, other)
    if score is None:
        null, other = trained_scores(outputs, canary)
        listed["trained score"] = (null, other)
        learnt = learnt_scores(outputs)
        listed |= {name: (null, other) for name, (null, other) in learnt.items() if np.ptp([null, other]) > 0}
    return listed


def _shown(null: FloatArray, other: FloatArray) -> float:
    """Return how much epsilon a score would seem to show; only to choose a direction."""
    return max(witness.epsilon_lower for witness in best_events(null, other, 0.0, 0.5, None))


def _claimed(claim: Guarantee | float, delta: float | None, gaussian: bool) -> tuple[float, float, float | None]:
    """Return epsilon, delta and, for Gaussian noise, mu."""
    if isinstance(claim, Guarantee):
        rho, epsilon, at = claim.rho, claim.epsilon, claim.delta if delta is None else delta
        if at != claim.delta:
            if rho is None:
                raise ValueError("delta must be that of the claim, which has no rho to convert")
            epsilon = (analytic_gaussian if claim.gaussian else zcdp).epsilon_of(rho, check_delta(at))
    else:
        rho, at = float(claim), check_delta(delta)
        epsilon = zcdp.epsilon_of(rho, at)
    # mu of continuous Gaussian noise with this rho: the unit in which attacks on it are told
    return epsilon, at, math.sqrt(2.0 * rho) if gaussian and rho is not None else None


def _recorded(release: Callable[[Any], Any], data: SourceLike) -> tuple[MechanismStep, Guarantee | None]:
    provider = RecordingProvider()
    with use_provider(provider):
        result = release(data)
    steps = [step for step in provider.steps if isinstance(step, MechanismStep)]
    if [step.call.mechanism for step in steps] != ["gaussian"]:
        raise ValueError("release must use the Gaussian mechanism exactly once")
    stated = getattr(result, "guarantee", getattr(result, "guarantee_", None))
    return steps[0], stated if isinstance(stated, Guarantee) else None


@dataclass(frozen=True)
class _Batch:
    """A source that draws for many runs at once: one row a run."""

    source: EntropySource
    rows: int

    @property
    def certified(self) -> bool:
        return self.source.certified

    def gaussian(self, scale: float, size: int) -> IntArray:
        return self.source.gaussian(scale, self.rows * size).reshape(self.rows, size)

    def laplace(self, scale: float, size: int) -> IntArray:
        return self.source.laplace(scale, self.rows * size).reshape(self.rows, size)

    def bytes(self, size: int) -> bytes:
        return self.source.bytes(size)


def _noisy_steps(provider: RecordingProvider) -> list[MechanismStep]:
    """Uses of mechanisms whose likelihood is known."""
    steps = [step for step in provider.steps if isinstance(step, MechanismStep)]
    if not steps or {step.call.mechanism for step in steps} - {"gaussian", "laplace"}:
        raise ValueError("release must use mechanisms of Gaussian and Laplace noise alone")
    return steps


def _log_ratios(step: MechanismStep, z: IntArray, z_prime: IntArray, runs: int, source: EntropySource) -> FloatArray:
    """Log-likelihood ratios, of z' against z, of so many answers that a step could have given."""
    event, where = step.call.event, np.flatnonzero(z != z_prime)
    assert isinstance(event, GaussianEvent | LaplaceEvent)
    rows, found = max(1, TUNING.cells_at_a_time // max(1, step.exact.size)), []
    for start in range(0, runs, rows):
        answers = step.sample(_Batch(source, min(rows, runs - start)))(step.exact)[:, where].astype(np.float64)
        before, after = np.abs(answers - z[where]), np.abs(answers - z_prime[where])
        if isinstance(event, LaplaceEvent):
            found.append((before - after).sum(axis=1) / event.scale)
        else:
            found.append((before**2 - after**2).sum(axis=1) / (2 * _released_scale(step) ** 2))
    return np.concatenate(found)


def _largest_ratio(one: MechanismStep, other: MechanismStep) -> float:
    """Log-likelihood ratio of the answers that speak most for the second, or of the second's mean where none does."""
    event, moves = one.call.event, np.abs(one.exact - other.exact).astype(np.float64)
    if isinstance(event, LaplaceEvent):
        return float(moves.sum() / event.scale)
    assert isinstance(event, GaussianEvent)
    return float(np.sum(moves**2) / (2 * _released_scale(one) ** 2))


def _released_scale(step: MechanismStep) -> float:
    """Scale of Gaussian noise in steps of the released lattice; it may have been drawn on a finer one."""
    assert isinstance(step.call.event, GaussianEvent)
    return step.call.event.scale / 2.0 ** fine_bits(step.call)


def _direction(z: NDArray[Any], z_prime: NDArray[Any]) -> FloatArray:
    """Return z' - z at unit length."""
    direction = z_prime.astype(np.float64) - z.astype(np.float64)
    length = float(np.linalg.norm(direction))
    if length == 0:
        raise ValueError("D and D_prime give the same exact vector: there is nothing to tell apart")
    return direction / length


def _noisy_scores(step: MechanismStep, direction: FloatArray, runs: int, source: EntropySource) -> FloatArray:
    """Scores of several releases of one exact vector."""
    rows = max(1, TUNING.cells_at_a_time // max(1, step.exact.size))
    scores = []
    for start in range(0, runs, rows):
        finish = step.sample(_Batch(source, min(rows, runs - start)))
        scores.append(finish(step.exact).astype(np.float64) @ direction)
    return np.concatenate(scores)
