"""The long audit of integrally private draws: replay and attack on data sets that have nothing in common, and gap 8."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from fogline.accounting.cautions import PrivacyWarning
from fogline.accounting.integral import IntegralGuarantee
from fogline.audit.attack import AttackReport, attack
from fogline.audit.canaries import Pair, canary_pairs
from fogline.audit.lines import BOX, CONFIDENCE, Line
from fogline.audit.replay import replay
from fogline.estimators.sampler import IntegralSampler
from fogline.families.boosted import CLAMP
from fogline.published import mbde

__all__ = ["check_draws", "check_published_draws"]

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
    found = f"epsilon at least {attacked.epsilon_lower:.2f} ({runs:,} runs a side; endless runs would show 0.49)"
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
        yield Line(f"mbde, {name} (gap 8)", found, report.broken, "epsilon 0.1 a draw", "published", verdict)
