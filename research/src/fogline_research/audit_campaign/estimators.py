"""The long audit of what fogline stands behind: every certified estimator, the samplers and the mechanisms.

The long audit of integrally private draws: replay and attack on data sets that have nothing in common, and gap 8.

The long audit of Gaussian mixtures and of the parts that locate: replays, and an outlier among the means.

Budgets are generous in the replays, so that forty records are enough to get to the later stages: what is checked does
not depend on the budget.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fogline.accounting.cautions import PrivacyWarning
from fogline.accounting.guarantee import Guarantee, IntegralGuarantee
from fogline.audit.attack import AttackReport, attack, sketch_attack, stage_attack, vector_attack
from fogline.audit.neighbour_pairs import Pair, canary_pairs, random_pairs
from fogline.audit.noise_fit import noise_fit
from fogline.audit.noise_laws import MechanismStep, pooled_failures
from fogline.audit.replay import RecordingProvider, ReplayReport, replay
from fogline.datasets.simulated import gaussian_mixture4
from fogline.density.leaves import LeafSpec
from fogline.density.private_density import PrivateDensity
from fogline.density.spec import SketchSpec
from fogline.density.strata import Strata
from fogline.estimators import (
    PrivateGaussianMixture,
    PrivateHellinger,
    PrivateModalRegression,
    PrivateModeClustering,
    PrivateModes,
    one_cluster,
    private_bounds,
    private_gaussian,
    private_pca,
    private_spherical_gaussian,
    private_strata,
    terrific_ball,
)
from fogline.estimators.bounds import PrivateBounds
from fogline.estimators.sampler import IntegralSampler
from fogline.families.base_measures import UniformBase
from fogline.mechanisms import above_threshold, add_gaussian, add_laplace, choose, stable_histogram
from fogline.mechanisms.discrete_laplace import laplace_tail
from fogline.mechanisms.mollified_cells import cell_centres, counts_of, mollified_cells
from fogline.mechanisms.mollified_draws import mollified_draws
from fogline.mechanisms.randomness import SystemProvider, SystemSource, use_provider
from fogline.queries.boosted_density import CLAMP
from fogline.releases.density_sketch import DensitySketch
from fogline_research.as_published import mbde
from fogline_research.audit_campaign.lines import BOX, CONFIDENCE, OUTLIER, RELATIONS, WIDE_BOX, Line
from fogline_research.baselines import BernsteinDensity

__all__ = [
    "check_draws",
    "check_event_kinds",
    "check_leaf_ratio",
    "check_likelihood_ratio",
    "check_mechanisms",
    "check_mixture_outlier",
    "check_mixture_replay",
    "check_noise",
    "check_outlier",
    "check_outlier_elsewhere",
    "check_published_draws",
    "check_replay",
    "outlier_line",
    "replay_reader",
    "replayed_line",
]

_FIXED = 0.1
_FAR = ((-40.0, 40.0), (-40.0, 40.0))
_CLAIM = "epsilon 1, delta 1e-5"


def check_replay(seed: int, short: bool) -> Iterator[Line]:
    """Replay the certified estimators on all canaries and on random pairs; answers from the operating system.

    Random pairs are read at one bandwidth only, which is quicker; so are all pairs if `short`.
    """
    for d, relation in itertools.product((1, 2), RELATIONS):
        box = BOX[:d]
        total = 60 if short and d == 2 else MOST_PAIRS
        canaries = canary_pairs(box, neighbours=relation, seed=seed)
        drawn = list(random_pairs(box, neighbours=relation, pairs=total - len(canaries), seed=seed))
        full: Any = _FIXED if short else "auto"
        for name, fit in (("PrivateModes", _modes), ("DensitySketch", _sketch)):
            reports = [
                replay(fit(box, relation, full), canaries, seed=None),
                replay(fit(box, relation, _FIXED), drawn, seed=None),
            ]
            yield replayed_line(f"{name}, d = {d}, {relation}: replay", reports)
    for (name, d, reader), relation in itertools.product(_READERS, RELATIONS):
        yield replayed_line(f"{name}, d = {d}, {relation}: replay", [replay_reader(reader, d, relation, seed, short)])
    for name, reader, c in _DESCENTS:
        descent = replay_reader(reader, 1, "replace", seed, short, c)
        yield replayed_line(f"PrivateHellinger, {name}, d = 1, replace: replay", [descent])


MOST_PAIRS, FEWER_PAIRS, LEAF_PAIRS = 100, 75, 40
"""Pairs of a line of replays, of more than two columns, of leaves of several columns; all canaries are among them.

There are 32 to 62 canaries, the breaks at oddities that we know of are theirs to find, and the rest are random pairs. A
break that shows on a part p of these escapes N of them with probability (1 - p)^N, once in a hundred audits at
p = 1 - 0.01^(1/N): 7% for 66 random pairs, 12% for 37, 30% for 13.
"""


def replay_reader(
    reader: Callable[[Any, str], Any], d: int, relation: str, seed: int, short: bool, c: int = 1
) -> ReplayReport:
    """Replay on canaries and random pairs of few records, fewer pairs where a fit takes long.

    Parameters
    ----------
    reader : callable
        Takes a box and a relation.
    d : int
        Columns.
    relation, seed, short
        As elsewhere.
    c : int
        Records of the unit in which neighbours differ.
    """
    box = WIDE_BOX[:d]
    canaries = canary_pairs(box, neighbours=relation, n=40, block=None, seed=seed, max_contributions=c)
    total = LEAF_PAIRS if reader is _leaves and d > 1 else FEWER_PAIRS if d > 2 else MOST_PAIRS
    size = 2 if short else max(0, total - len(canaries))
    drawn = random_pairs(box, neighbours=relation, pairs=size, seed=seed, max_contributions=c)
    return replay(reader(box, relation), [*(canaries[::6] if short else canaries), *drawn], seed=None)


def _modes(box: Any, relation: str, bandwidth: Any) -> PrivateModes:
    return PrivateModes(epsilon=1.0, delta=1e-5, bounds=box, neighbours=relation, bandwidth=bandwidth)


def _clusters(box: Any, relation: str) -> PrivateModeClustering:
    staged: dict[str, Any] = {"refinement": 1} if len(box) > 3 else {"bandwidth": _FIXED}
    return PrivateModeClustering(epsilon=1.0, delta=1e-5, bounds=box, neighbours=relation, n_clusters=2, **staged)


def _branches(box: Any, relation: str) -> PrivateModalRegression:
    return PrivateModalRegression(
        epsilon=1.0, delta=1e-5, x_bounds=box[0], y_bounds=box[1], neighbours=relation, bandwidth=0.2
    )


def _fitted(box: Any, relation: str) -> PrivateHellinger:
    low, high = box[0]
    limits = {"mu": (low, high), "sigma": ((high - low) / 50, (high - low) / 2)}
    return PrivateHellinger(
        family="normal", parameter_bounds=limits, bounds=box, epsilon=1.0, delta=1e-5, neighbours=relation
    )


def _descended(box: Any, relation: str) -> PrivateHellinger:
    model: PrivateHellinger = _fitted(box, relation).set_params(method="newton", iterations=2)
    return model


def _descended_with_three(box: Any, relation: str) -> PrivateHellinger:
    model: PrivateHellinger = _fitted(box, relation).set_params(method="gradient", iterations=2, max_contributions=3)
    return model


def _wide_modes(box: Any, relation: str) -> PrivateModes:
    return PrivateModes(epsilon=1.0, delta=1e-5, bounds=box, neighbours=relation, bandwidth=0.69, n_modes=1)


def _lattice(box: Any, relation: str) -> Callable[[Any], BernsteinDensity]:
    return lambda data: BernsteinDensity.fit(data, epsilon=1.0, bounds=box, degree=10, neighbours=relation)


def _ranges(box: Any, relation: str) -> Callable[[Any], PrivateBounds]:  # noqa: ARG001
    return lambda data: private_bounds(data, epsilon=1.0, delta=1e-5, neighbours=relation)


def _groups(box: Any, relation: str) -> Callable[[Any], Strata]:
    """Strata by which half of the box a record lies in; a missing value has no half."""
    middle = float(np.mean(box[0]))

    def release(data: Any) -> Strata:
        labels = np.where(np.isnan(data[:, 0]), "", np.where(data[:, 0] > middle, "upper", "lower"))
        options: dict[str, Any] = {"bounds": box, "bandwidths": [_FIXED], "neighbours": relation}
        return private_strata(data, labels, categories=["lower", "upper"], epsilon=1.0, delta=1e-5, **options)

    return release


def _leaves(box: Any, relation: str) -> Callable[[Any], PrivateDensity]:
    def release(data: Any) -> PrivateDensity:
        return DensitySketch(box, features="leaves").update(data).release(epsilon=1.0, neighbours=relation)

    return release


_READERS: tuple[tuple[str, int, Callable[[Any, str], Any]], ...] = (
    ("DensitySketch on leaves", 1, _leaves),
    ("DensitySketch on leaves", 2, _leaves),
    ("DensitySketch on leaves", 3, _leaves),
    ("PrivateModes", 5, _wide_modes),
    ("PrivateModeClustering", 2, _clusters),
    ("PrivateModeClustering", 5, _clusters),
    ("PrivateModalRegression", 2, _branches),
    ("PrivateHellinger", 1, _fitted),
    ("private_bounds", 2, _ranges),
    ("private_strata", 1, _groups),
    ("BernsteinDensity", 1, _lattice),
)
"""Further estimators, with the number of columns that they are given."""


_DESCENTS: tuple[tuple[str, Callable[[Any, str], Any], int], ...] = (
    ("Newton's descent", _descended, 1),
    ("gradient descent, three records of a person", _descended_with_three, 3),
)
"""Descents, which are proved for replaced records only, with how many a person has."""


def _sketch(box: Any, relation: str, bandwidth: Any) -> Callable[[Any], PrivateDensity]:
    def release(data: Any) -> PrivateDensity:
        sketch = DensitySketch(box, bandwidths=bandwidth if bandwidth == "auto" else [bandwidth])
        return sketch.update(data).release(epsilon=1.0, delta=1e-5, neighbours=relation)

    return release


def replayed_line(check: str, reports: list[ReplayReport]) -> Line:
    """Line of the page on some replays."""
    pairs = sum(len(report.pairs) for report in reports)
    ratio = max(report.largest_ratio for report in reports)
    failures = [failure for report in reports for failure in report.failures]
    found = "; ".join([f"{pairs} pairs, distance / sensitivity up to {ratio:.6f}", *failures[:3]])
    return Line(check, found, all(report.passed for report in reports), "distance / sensitivity at most 1")


def check_noise(seed: int, short: bool) -> Iterator[Line]:  # noqa: ARG001
    """Compare the noise of real releases, and of the samplers, with the exact laws."""
    provider = RecordingProvider(SystemProvider())
    with use_provider(provider):
        for _ in range(20 if short else 120):
            DensitySketch(BOX[:1]).update([[1.0]]).release(epsilon=1.0, delta=1e-5)
    steps = [step for step in provider.steps if isinstance(step, MechanismStep)]
    noise = np.concatenate([step.answer - step.exact for step in steps])
    scale = steps[0].draws[0].scale
    fits = [("noise of releases", noise_fit(noise, scale=scale))]
    for law, width in itertools.product(("gaussian", "laplace"), (0.7, 20.0, 3000.0)):
        draws = getattr(SystemSource(), law)(width, 5_000 if short else 60_000)
        fits.append((f"{law} noise of scale {width:g}", noise_fit(draws, law=law, scale=width)))
    for name, fit in fits:
        found = f"{fit.size:,} draws, p = {fit.p_value:.3g}, variance ratio {fit.variance_ratio:.4f}"
        yield Line(name, found, fit.passed(), "the exact law", "noise")


def check_event_kinds(seed: int, short: bool) -> Iterator[Line]:
    """Check the noise of mechanisms of every kind of event, on the system's entropy; zero noise must be seen."""
    rng = np.random.default_rng(seed)
    base = UniformBase([(0.0, 1.0)])
    even = counts_of(cell_centres(1)[:, 0], epsilon=1.0)
    kinds: dict[str, Callable[[], object]] = {
        "gaussian": lambda: _gaussian_release(int(rng.integers(50))),
        "laplace": lambda: _laplace(int(rng.integers(50))),
        "above threshold": lambda: _first_above(rng.integers(-5, 5, 4)),
        "exponential": lambda: choose(lambda: rng.integers(0, 9, 20), size=20, sensitivity=1, epsilon=1.0),
        "stable histogram": lambda: _histogram(int(rng.integers(50))),
        "integral draws by rejection": lambda: mollified_draws(lambda x: -x[:, 0], base, size=4, epsilon=1.0),
        "integral draws by cells": lambda: mollified_cells(lambda: even, base, size=4, epsilon=1.0),
    }
    uses = 20 if short else 200
    for name, release in kinds.items():
        provider = RecordingProvider(SystemProvider())
        with use_provider(provider):
            for _ in range(uses):
                release()
        failures = [*provider.failures, *pooled_failures(provider.steps)]
        found = "; ".join([f"{uses} uses, each tried again on values where the noise decides", *failures[:3]])
        claim = "the law and the scale that are charged for"
        yield Line(f"{name}: noise of its event", found, not failures, claim, "noise")


def check_likelihood_ratio(seed: int, short: bool) -> Iterator[Line]:
    """Attack 1-D sketches; the attack must have power and must stay below the claim."""
    spec = SketchSpec.plan([(0, 10)], [0.05])
    crowd = np.random.default_rng(seed).normal(4, 1, (100, 1))
    after = np.append(crowd, [[10.0]], axis=0)
    settings = [("add-remove", 1.0, 90_000), ("replace", 4.0, 20_000)]
    for relation, epsilon, runs in settings:
        before = crowd if relation == "add-remove" else np.append(crowd, [[0.0]], axis=0)
        report = sketch_attack(
            spec,
            before,
            after,
            epsilon=epsilon,
            delta=1e-5,
            neighbours=relation,
            runs=runs // 6 if short else runs,
            source=SystemSource(),
            confidence=CONFIDENCE,
        )
        assert report.mu is not None
        ratio = report.mu_lower / report.mu
        found = (
            f"mu at least {report.mu_lower:.4f}: {ratio:.2f} of the claim; epsilon at least {report.epsilon_lower:.2f}"
        )
        claim = f"mu = sqrt(2 rho) = {report.mu:.4f}; epsilon {epsilon:g}, delta 1e-5"
        passed = not report.broken and (short or ratio >= 0.8)
        yield Line(f"DensitySketch, PrivateModes, {relation}: likelihood ratio", found, passed, claim)


def check_leaf_ratio(seed: int, short: bool) -> Iterator[Line]:
    """Attack both stages of a release on leaves; the attack must have power and must stay below the claim.

    Two leaves: however many there are, a record is in one box of each stage, and the ratio has the same law.
    """
    spec = LeafSpec.plan([(0.0, 10.0)], leaves=[2])
    crowd = np.random.default_rng(seed).normal(4, 1, (100, 1))
    after = np.append(crowd, [[10.0]], axis=0)
    runs = 20_000 if short else 100_000
    for relation, epsilon in itertools.product(RELATIONS, (1.0, 3.0)):

        def release(data: Any, epsilon: float = epsilon, relation: str = relation) -> PrivateDensity:
            return DensitySketch.of(spec).update(data).release(epsilon=epsilon, neighbours=relation)

        before = crowd if relation == "add-remove" else np.append(crowd, [[0.0]], axis=0)
        report = stage_attack(
            release,
            before,
            after,
            runs=runs,
            source=SystemSource(),
            confidence=CONFIDENCE,
        )
        ratio = report.epsilon_lower / epsilon
        found = f"epsilon at least {report.epsilon_lower:.3f}: {ratio:.2f} of the claim ({runs:,} runs per side)"
        passed = not report.broken and (short or ratio >= 0.8)
        check = f"DensitySketch on leaves, {relation}: likelihood ratio of both stages"
        yield Line(check, found, passed, f"epsilon {epsilon:g}, delta 0")


def check_outlier(seed: int, short: bool) -> Iterator[Line]:  # noqa: ARG001
    """Look for an outlier in what PrivateModes publishes, as does the attack that breaks DP-GRAMS."""
    plain = gaussian_mixture4(300, random_state=0).X
    for n_modes in (4, None):
        modes = PrivateModes(epsilon=1.0, delta=1e-5, bounds=_FAR, n_modes=n_modes, neighbours="replace")
        check = f"PrivateModes, replace, n_modes = {n_modes}: an outlier among the modes"
        yield outlier_line(check, modes, plain, lambda found: found.modes_, short)
    estimator = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 10)], bandwidth=_FIXED)
    crowd = np.random.default_rng(0).normal(3, 1, (200, 1))
    runs = 300 if short else 2000
    claim = estimator.fit(crowd).guarantee_
    report = attack(estimator.fit, crowd, np.append(crowd, [[9.0]], axis=0), claim, runs=runs, confidence=CONFIDENCE)
    found = f"epsilon at least {report.epsilon_lower:.2f} ({runs} runs per side; {report.witness}); {report.sight}"
    yield Line("PrivateModes, add-remove: all witnesses and a trained score", found, not report.broken, _CLAIM)


def check_outlier_elsewhere(seed: int, short: bool) -> Iterator[Line]:  # noqa: ARG001
    """Look for an outlier among the centres of clusters and on the branches of a regression."""
    plain = gaussian_mixture4(300, random_state=0).X
    wide = np.concatenate([plain, plain, plain[:, :1]], axis=1)
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "neighbours": "replace"}
    ways: tuple[tuple[Any, dict[str, Any]], ...] = ((plain, {"bandwidth": _FIXED}), (wide, {"refinement": 1}))
    for rows, how in ways:
        clusters = PrivateModeClustering(**options, bounds=_FAR[0], n_clusters=4, **how)
        check = f"PrivateModeClustering, d = {rows.shape[1]}, replace: an outlier among the centres"
        yield outlier_line(check, clusters, rows, lambda found: found.cluster_centers_, short)
    branches = PrivateModalRegression(**options, x_bounds=_FAR[0], y_bounds=_FAR[1], bandwidth=_FIXED)

    def beside(found: PrivateModalRegression) -> Any:
        responses = found.predict_modes(OUTLIER[:1, None])[0]
        return np.column_stack([np.full(len(responses), OUTLIER[0]), responses])

    yield outlier_line("PrivateModalRegression, replace: an outlier on a branch", branches, plain, beside, short)


def outlier_line(check: str, estimator: Any, plain: Any, places: Callable[[Any], Any], short: bool) -> Line:
    """Move one record far out and look whether anything that is published lies near it."""
    odd = plain.copy()
    odd[0] = OUTLIER[0]

    def near(fitted: Any) -> float:
        return float((np.linalg.norm(places(fitted) - OUTLIER[0], axis=1) < 3.0).any())

    claim = estimator.fit(plain).guarantee_
    runs = 12 if short else 60
    report = attack(estimator.fit, plain, odd, claim, score=near, threshold=0.5, runs=runs, confidence=CONFIDENCE)
    hits = report.witnesses[0]
    found = f"epsilon at least {report.epsilon_lower:.2f} (near it {hits.hits_1} and {hits.hits_0} of {runs} times)"
    found += f"; {report.sight}"
    return Line(check, found, not report.broken, _CLAIM)


# -- mechanisms ----------------------------------------------------------------------------------------------


def check_mechanisms(seed: int, short: bool) -> Iterator[Line]:  # noqa: ARG001
    """Attack each mechanism, at epsilon 1, on a pair that brings it near its claim."""
    runs = 1_500 if short else 8_000
    yield _gaussian(20 * runs)
    yield _attacked(
        "discrete Laplace, a sum of 0 and of 1",
        lambda total: float(_laplace(total)),
        0,
        1,
        runs=2 * runs,
        allowed=1.0,
    )
    many = 50
    ratio = math.log((math.exp(0.5) / (math.exp(0.5) + many - 1)) / (1 / (1 + (many - 1) * math.exp(0.5))))
    yield _attacked(
        f"exponential, the least of {many} becomes the best",
        lambda utilities: float(choose(lambda: utilities, size=many, sensitivity=1, epsilon=1.0) == 0),
        np.r_[0, np.ones(many - 1, dtype=int)],
        np.r_[1, np.zeros(many - 1, dtype=int)],
        runs=4 * runs,
        threshold=0.5,
        allowed=ratio,
    )
    yield _attacked(
        "above threshold, one query rises and three fall",
        lambda answers: float(_first_above(answers) == 3),
        np.array([-1, -1, -1, 2]),
        np.array([-2, -2, -2, 3]),
        runs=4 * runs,
        threshold=0.5,
    )
    yield _attacked(
        "stable histogram, 60 records and 61",
        lambda size: float(_histogram(size).counts.get("key", 0)),
        60,
        61,
        runs=runs,
        delta=1e-5,
        allowed=1.0,
    )
    yield _rare_key()


def _laplace(total: int) -> int:
    return int(add_laplace(lambda: np.array([total]), size=1, sensitivity=1, epsilon=1.0).values[0])


def _first_above(answers: Any) -> int | None:
    return above_threshold(lambda: answers, size=4, threshold=0, sensitivity=1, epsilon=1.0)


def _histogram(size: int) -> Any:
    return stable_histogram(lambda: ["key"] * size, epsilon=1.0, delta=1e-5)


def _gaussian(runs: int) -> Line:
    report = vector_attack(
        _gaussian_release, 0, 1000, claim=0.5, delta=1e-5, runs=runs, source=SystemSource(), confidence=CONFIDENCE
    )
    assert report.mu is not None
    ratio = report.mu_lower / report.mu
    found = f"mu at least {report.mu_lower:.4f}: {ratio:.2f} of the claim ({runs:,} runs per side)"
    claim = f"mu = sqrt(2 rho) = {report.mu:.4f}"
    passed = not report.broken and ratio >= 0.8
    return Line(
        "discrete Gaussian, 0 and 1000 at sensitivity 1000: likelihood ratio", found, passed, claim, "mechanisms"
    )


def _gaussian_release(total: int) -> Any:
    return add_gaussian(lambda: np.array([total]), size=1, sensitivity=1000.0, rho=0.5)


def _attacked(
    check: str,
    score: Callable[[Any], float],
    D: Any,
    D_prime: Any,
    *,
    runs: int,
    delta: float = 0.0,
    threshold: float | None = None,
    allowed: float | None = None,
) -> Line:
    """Attack a mechanism by a number that it publishes; say what the pair would show with endless runs."""
    claim = Guarantee.uncertified(epsilon=1.0, delta=delta, reason="an audit")
    report = attack(score, D, D_prime, claim, score=float, runs=runs, threshold=threshold, confidence=CONFIDENCE)
    found = f"epsilon at least {report.epsilon_lower:.2f} ({runs:,} runs per side); {report.sight}"
    if allowed is not None:
        found += f"; endless runs would show {allowed:.2f}"
    stated = "epsilon 1" + (f", delta {delta:g}" if delta else "")
    return Line(check, found, not report.broken, stated, "mechanisms")


def _rare_key() -> Line:
    """Check in exact numbers that a key of one record is shown with probability at most delta."""
    worst = 0.0
    for delta in (1e-2, 1e-5, 1e-9):
        shown = stable_histogram(lambda: (), epsilon=1.0, delta=delta)
        tail = Fraction(laplace_tail(shown.scale, shown.threshold - 1))
        worst = max(worst, float(tail / Fraction(delta)))
    found = f"shown with at most {worst:.3f} delta at delta 1e-2, 1e-5, 1e-9 (exact)"
    return Line(
        "stable histogram, a key of one record", found, worst <= 1, "shown with probability delta", "mechanisms"
    )


_LEFT, _RIGHT = np.full((300, 1), -1.5), np.full((5, 1), 1.5)


def _sampler(draws: int, **options: Any) -> IntegralSampler:
    given: dict[str, Any] = {"epsilon": 1.0, "learner": LogisticRegression(), "rounds": 3, "training_draws": 200}
    return IntegralSampler(max_samples=draws, **(given | options))


def check_draws(seed: int, short: bool) -> Iterator[Line]:
    """Replay fits and draws on canaries and on opposite data sets; attack one draw."""
    schedules: tuple[dict[str, Any], ...] = (
        {"learner": DecisionTreeClassifier(max_depth=3), "schedule": "full", "rounds": 1, "drawing": "rejection"},
        {"learner": DecisionTreeClassifier(max_depth=3), "schedule": "full", "rounds": 1, "drawing": "cells"},
        {"schedule": "paper", "drawing": "rejection"},
    )
    for options in schedules:
        pairs = canary_pairs(BOX[:1], neighbours="add-remove", n=40, block=None, seed=seed)
        pairs = [*(pairs[::6] if short else pairs), Pair("opposite", _LEFT, _RIGHT), Pair("none", _LEFT[:0], _RIGHT)]
        report = replay(_released(_sampler(6, base="uniform", bounds=BOX[:1], **options)), pairs, seed=None)
        check = f"IntegralSampler, any two data sets, {options['schedule']} schedule, {options['drawing']}: replay"
        found = "; ".join(
            [f"{len(pairs)} pairs, distance / sensitivity up to {report.largest_ratio:.6f}", *report.failures[:3]]
        )
        yield Line(check, found, report.passed, "distance / sensitivity at most 1")
    runs = 4_000 if short else 20_000
    attacked = _one_draw(runs)
    found = f"epsilon at least {attacked.epsilon_lower:.2f} ({runs:,} runs per side)"
    yield Line("IntegralSampler, all records left or all right: one draw", found, not attacked.broken, "epsilon 1")


def _released(estimator: IntegralSampler) -> Callable[[Any], Any]:
    def run(data: Any) -> Any:
        from sklearn.base import clone

        fitted = clone(estimator).fit(data)
        return SimpleNamespace(draws=fitted.sample(6), guarantee=fitted.guarantee_, fitted=fitted)

    return run


class _Certain(LogisticRegression):  # type: ignore[misc]
    """A learner that is as sure as can be, and right."""

    def decision_function(self, X: Any) -> Any:
        """Return huge log-odds, which change their sign at 0."""
        return 1e6 * np.sign(self.coef_[0, 0]) * X[:, 0]


def _one_draw(runs: int) -> AttackReport:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # so many draws are for the attack: each is one run of it
        rows = {
            name: iter(_sampler(2 * runs, learner=_Certain(), rounds=5).fit(data).sample(2 * runs))
            for name, data in (("left", _LEFT), ("right", _RIGHT))
        }
    claim = IntegralGuarantee.of(1.0, draws=1, mechanism="draws", proof="mollified-draws")
    event = lambda x: float(x[0] > 0)  # noqa: E731
    return attack(
        lambda name: next(rows[name]),
        "left",
        "right",
        claim,
        score=event,
        threshold=0.5,
        runs=runs,
        confidence=CONFIDENCE,
    )


def check_published_draws(seed: int, short: bool) -> Iterator[Line]:
    """Break MBDE as published: a finite chain from a record, and its model."""
    rng = np.random.default_rng([seed, 3])
    runs = 40 if short else 150
    quick: dict[str, Any] = {"learner": DecisionTreeClassifier(max_depth=2), "training_draws": 50, "rounds": 1}
    one, other = np.full((1, 1), 2.5), np.full((1, 1), -2.5)

    def chain(X: Any) -> Any:
        return mbde(
            X, epsilon=0.1, n_samples=1, clamp=CLAMP, start="records", burn_in=20, walk=0.1, **quick, random_state=rng
        )

    def model(X: Any) -> Any:
        found = mbde(X, epsilon=0.1, n_samples=1, clamp=CLAMP, burn_in=0, **quick, random_state=rng)
        low, high = found.log_ratio(np.array([[-2.5], [2.5]]))
        return SimpleNamespace(samples=np.array([[high - low]]))

    for name, release in (("20 steps of a chain from a record", chain), ("its density at two points", model)):
        claim = chain(one).guarantee
        event = lambda found: float(found.samples[0, 0] > 0)  # noqa: E731
        report = attack(release, other, one, claim, score=event, threshold=0.5, runs=runs, confidence=CONFIDENCE)
        hits = report.witnesses[0]
        found = f"epsilon at least {report.epsilon_lower:.2f} ({hits.hits_1} against {hits.hits_0} of {hits.runs} runs)"
        verdict = "false, as it must be" if report.broken else "NOT BROKEN: the audit lost its teeth"
        yield Line(f"mbde, {name} (gap 8)", found, report.broken, "epsilon 0.1 per draw", "published", verdict)


GENEROUS = {"epsilon": 40.0, "delta": 1e-5}

ADDED = ("add-remove",)
"""What looks for balls, or has blocks, is proved for this relation only."""

Reader = Callable[[Any, str], Any]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a part that locates puts out, with the guarantee where the replay looks for it."""

    found: Any
    guarantee: Guarantee


def _ball(box: Any) -> dict[str, Any]:
    """Public ball around a box."""
    low, high = np.array(box).T
    return {"center": ((low + high) / 2).tolist(), "radius": float(np.linalg.norm(high - low) / 2)}


def _mixture(method: str, **options: Any) -> Reader:
    def reader(box: Any, relation: str) -> PrivateGaussianMixture:
        ball = _ball(box)
        widths = {"sigma_min": ball["radius"] / 100, "sigma_max": ball["radius"] / 2}
        settings: dict[str, Any] = {**GENEROUS, **ball, **widths, **options}
        return PrivateGaussianMixture(n_components=2, method=method, neighbours=relation, **settings)

    return reader


def _located(part: Callable[..., tuple[Any, Guarantee]], **options: Any) -> Reader:
    def reader(box: Any, relation: str) -> Callable[[Any], Answer]:
        where = {"bounds": box} if part is private_pca else _ball(box)
        return lambda data: Answer(*part(data, **GENEROUS, **where, neighbours=relation, **options))

    return reader


_MIXTURE_READERS: tuple[tuple[str, int, tuple[str, ...], Reader], ...] = (
    ("PrivateGaussianMixture, sketch", 3, RELATIONS, _mixture("sketch", steps=2)),
    ("PrivateGaussianMixture, recursive", 5, RELATIONS, _mixture("recursive")),
    ("PrivateGaussianMixture, spherical", 5, RELATIONS, _mixture("spherical")),
    ("PrivateGaussianMixture, sample-aggregate", 2, ADDED, _mixture("sample-aggregate", learner="spectral")),
    ("one_cluster", 2, ADDED, _located(one_cluster, size=10)),
    ("terrific_ball", 2, ADDED, _located(terrific_ball, size=10)),
    ("private_gaussian", 5, RELATIONS, _located(private_gaussian)),
    ("private_spherical_gaussian", 5, RELATIONS, _located(private_spherical_gaussian)),
    ("private_pca", 5, RELATIONS, _located(private_pca, components=2)),
)
"""What is replayed, with the number of columns and the relations that it is proved for."""


def check_mixture_replay(seed: int, short: bool) -> Iterator[Line]:
    """Replay every method of the mixture and every part that locates; answers from the operating system."""
    for name, d, relations, reader in _MIXTURE_READERS:
        for relation in relations:
            report = replay_reader(reader, d, relation, seed, short)
            yield replayed_line(f"{name}, d = {d}, {relation}: replay", [report])


def check_mixture_outlier(seed: int, short: bool) -> Iterator[Line]:  # noqa: ARG001
    """Look for an outlier among the means of a mixture."""
    plain = gaussian_mixture4(300, random_state=0).X
    terms: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "radius": 60.0, "sigma_min": 0.2, "sigma_max": 5.0}
    for method in ("sketch", "recursive", "spherical"):
        mixture = PrivateGaussianMixture(n_components=4, method=method, neighbours="replace", **terms)
        check = f"PrivateGaussianMixture, {method}, replace: an outlier among the means"
        yield outlier_line(check, mixture, plain, lambda found: found.means_, short)
