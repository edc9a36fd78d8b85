"""What a question would show, risk and leave, before anything is spent: from public guesses alone.

Accuracy comes from simulated releases (:mod:`fogline.planning.density`). One takes up to some seconds, so that a few
epsilons are simulated once per question, in the background and the middle one first; in between, logarithms of the
errors are interpolated. With a single simulated epsilon the privacy part is taken to fall as 1 / epsilon and the others
to stay. Risk and budget are exact and take no time, so that a slider is answered at once, whatever is known by then.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from fogline._typing import FloatArray
from fogline._validation.parameters import Neighbours
from fogline.accounting.guarantee import Guarantee
from fogline.datasets.simulated import Mixture
from fogline.planning.density import ErrorParts, ExpectedDensity, expected_density_error, falling
from fogline.planning.modes import MOST_RECORDS
from fogline.studio.questions import Question

__all__ = ["ANCHORS", "Accuracy", "Expectation", "Outlooks", "RiskRow", "attacker_success", "risk_rows"]

ANCHORS = (1.0, 0.2, 5.0, 0.05, 20.0)
"""Epsilons that are simulated, in this order."""

MOST_PLANS = 64
"""Questions whose simulations are kept."""

BEFORE = (0.01, 0.1, 0.5)


@dataclass(frozen=True)
class Expectation:
    """Expected standard errors of one column at one epsilon."""

    column: str
    width: float
    mean: ErrorParts
    median: ErrorParts
    tenth: ErrorParts


@dataclass(frozen=True)
class Accuracy:
    """What is known so far.

    Parameters
    ----------
    rows : tuple of Expectation
        One per column; none while the first simulation runs.
    count_error : float or None
    done, wanted : int
        Simulated epsilons.
    shape : str
        The guess in words.
    """

    rows: tuple[Expectation, ...]
    count_error: float | None
    done: int
    wanted: int
    shape: str


@dataclass(frozen=True)
class RiskRow:
    """What a guess is worth before and at most after a release."""

    before: float
    after: float


class _Plan:
    """Simulations of one question, whatever its epsilon."""

    def __init__(self) -> None:
        self.found: dict[float, ExpectedDensity] = {}
        self.failed = False


class Outlooks:
    """Plans of questions, simulated in one thread and kept.

    Parameters
    ----------
    anchors : sequence of float
        Epsilons that are simulated.
    """

    def __init__(self, anchors: Sequence[float] = ANCHORS) -> None:
        self._anchors = tuple(anchors)
        self._lock = threading.Lock()
        self._plans: OrderedDict[tuple[Any, ...], _Plan] = OrderedDict()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="fogline-plan")
        self._newest: tuple[Any, ...] | None = None

    def accuracy(self, question: Question, neighbours: str, epsilon: float | None = None) -> Accuracy:
        """Return what is known of a question by now, and have the rest simulated."""
        plan = self._plan(question, neighbours)
        found = dict(plan.found)
        wanted = len(found) if plan.failed else len(self._anchors)
        if not found:
            return Accuracy((), None, 0, wanted, "")
        at = question.epsilon if epsilon is None else epsilon
        known = [found[anchor] for anchor in sorted(found)]
        rows = tuple(_expectation(known, j, at) for j in range(len(question.columns)))
        count = float(_at([(each.rows[0].epsilon, each.rows[0].count_error ** 2) for each in known], at, power=2.0))
        return Accuracy(rows, math.sqrt(count), len(found), wanted, known[0].shape)

    def wait(self) -> None:
        """Wait until nothing is left to simulate."""
        self._worker.submit(lambda: None).result()

    def close(self) -> None:
        """Stop simulating."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _plan(self, question: Question, neighbours: str) -> _Plan:
        key = _key(question, neighbours)
        with self._lock:
            self._newest = key
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                return plan
            plan = self._plans[key] = _Plan()
            while len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        for anchor in self._anchors:
            self._worker.submit(self._simulate, key, plan, question, neighbours, anchor)
        return plan

    def _simulate(self, key: tuple[Any, ...], plan: _Plan, question: Question, neighbours: str, epsilon: float) -> None:
        with self._lock:
            # Somebody who ticks columns leaves a question behind with every click: only the first simulation of
            # such a one is finished, and the others when it is asked again.
            left_behind = self._newest != key and len(plan.found) > 0
            if left_behind:
                self._plans.pop(key, None)
            # Whoever asks for many plans has the oldest forgotten, simulated or not.
            left_behind = left_behind or self._plans.get(key) is not plan
        if left_behind or plan.failed:
            return
        try:
            plan.found[epsilon] = _expected(question, neighbours, epsilon)
        except Exception:
            plan.failed = True


def _key(question: Question, neighbours: str) -> tuple[Any, ...]:
    columns = [(c.name, c.low, c.high, c.step, c.typical, c.spread) for c in question.columns]
    return question.dataset, tuple(columns), question.records, question.max_contributions, neighbours


def _expected(question: Question, neighbours: str, epsilon: float) -> ExpectedDensity:
    shape: Any = None
    guesses = [(c.typical, c.spread) for c in question.columns if c.typical is not None and c.spread is not None]
    if len(guesses) == len(question.columns):
        shape = Mixture.of([1.0], [[typical for typical, _ in guesses]], [[spread for _, spread in guesses]])
    return expected_density_error(
        [(column.low, column.high) for column in question.columns],
        min(question.records, MOST_RECORDS),
        shape=shape,
        epsilons=[epsilon],
        steps=[column.step for column in question.columns],
        columns=question.names,
        neighbours=neighbours,
        max_contributions=question.max_contributions,
        runs=1,
    )


def _expectation(known: Sequence[ExpectedDensity], j: int, epsilon: float) -> Expectation:
    low, high = known[0].bounds[j]
    level = known[0].levels.index(0.5)
    rows = [each.rows[0] for each in known]
    mean = _parts([(row.epsilon, row.means[j]) for row in rows], epsilon)
    median = _parts([(row.epsilon, row.quantiles[j][level]) for row in rows], epsilon)
    tenth = _parts([(row.epsilon, row.boxes[j]) for row in rows], epsilon)
    return Expectation(known[0].columns[j], high - low, mean, median, tenth)


def _parts(pairs: Sequence[tuple[float, ErrorParts]], epsilon: float) -> ErrorParts:
    """Parts of an error at an epsilon."""
    found = []
    for name, power in (("privacy", 2.0), ("sampling", 0.0), ("smoothing", 0.0)):
        squares = [(at, getattr(parts, name) ** 2) for at, parts in pairs]
        found.append(math.sqrt(_at(squares, epsilon, power=power)))
    return ErrorParts(*found)


def _at(squares: Sequence[tuple[float, float]], epsilon: float, *, power: float) -> float:
    """Interpolate squared errors in logarithms; with one of them, or beyond the ends, they fall with a power.

    Examples
    --------
    >>> round(_at([(1.0, 4.0)], 2.0, power=2.0), 6), round(_at([(1.0, 4.0), (4.0, 1.0)], 2.0, power=2.0), 6)
    (1.0, 2.0)
    """
    x = np.log([at for at, _ in squares])
    values: FloatArray = falling(np.array([square for _, square in squares]))
    target = math.log(epsilon)
    if target <= x[0]:
        return float(values[0] * math.exp(-power * (target - x[0])))
    if target >= x[-1]:
        return float(values[-1] * math.exp(-power * (target - x[-1])))
    tiny = 1e-300
    return float(np.exp(np.interp(target, x, np.log(np.maximum(values, tiny)))))


# -- risk -------------------------------------------------------------------------------------------------------


def _promise(epsilon: float, neighbours: str) -> Guarantee:
    relation: Neighbours = "replace" if neighbours == "replace" else "add-remove"
    return Guarantee.certified_release(
        epsilon=epsilon, delta=0.0, neighbours=relation, mechanism="discrete Laplace noise", proof="laplace-noise"
    )


def risk_rows(epsilon: float, neighbours: str) -> tuple[RiskRow, ...]:
    """What guesses about a person are worth at most after a release without delta.

    Examples
    --------
    >>> [f"{row.before:.0%} -> {row.after:.0%}" for row in risk_rows(1.0, "add-remove")]
    ['1% -> 3%', '10% -> 27%', '50% -> 82%']
    """
    promise = _promise(epsilon, neighbours)
    return tuple(RiskRow(before, promise.risk(before).content) for before in BEFORE)


def attacker_success(epsilons: FloatArray, neighbours: str, before: float = 0.1) -> FloatArray:
    """What a guess of this chance is worth at most, by epsilon."""
    return np.array([_promise(float(each), neighbours).risk(before).content for each in epsilons])
