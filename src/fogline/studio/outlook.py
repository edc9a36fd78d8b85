"""What a question would show, risk and leave, before anything is spent: from public guesses alone.

Accuracy comes from simulated releases (:mod:`fogline.planning.density`). One takes up to some seconds, so that a few
epsilons are simulated once per question, in the background and the middle one first; in between, logarithms of the
errors are interpolated. With a single simulated epsilon the privacy part is taken to fall as 1 / epsilon and the others
to stay. Risk and budget are exact and take no time, so that a slider is answered at once, whatever is known by then.

The drawings of it: accuracy beside risk, and what a release would take from the budget.
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
from fogline.report._plots import INK, Layout, canvas, in_two_sizes
from fogline.report._svg import HUES, PlotArea, element, short
from fogline.studio.questions import Question

__all__ = [
    "ANCHORS",
    "Accuracy",
    "Expectation",
    "Outlooks",
    "RiskRow",
    "attacker_success",
    "budget_bar",
    "risk_rows",
    "trade_off",
]

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


GREY, EMPTY = "#7d8c96", "#d3dce1"
PANEL = Layout(420, 232, left=58, top=34, right=16, bottom=46, ticks=5)
NARROW = Layout(350, 220, left=56, top=34, right=12, bottom=46, ticks=4, narrow=True)
EPSILON_TICKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def budget_bar(cap: float, spent: float, wanted: float = 0.0) -> str:
    """Draw a budget: what is spent, what this release would take, what would be left.

    Examples
    --------
    >>> budget_bar(4.0, 1.0, 2.0).count("<rect"), "25% would remain" in budget_bar(4.0, 1.0, 2.0)
    (3, True)
    """
    whole = max(cap, 1e-12)
    used = min(max(spent / whole, 0.0), 1.0)
    more = min(max(wanted / whole, 0.0), 1.0 - used)
    rest = max(0.0, 1.0 - used - more)
    label = f"Of the budget {used:.0%} is spent, this release would take {more:.0%}, {rest:.0%} would remain"
    if not more:
        label = f"Of the budget {used:.0%} is spent, {rest:.0%} is left"
    parts = [element("rect", x=0, y=0, width=1000, height=16, fill=EMPTY)]
    parts += [element("rect", x=0, y=0, width=1000 * used, height=16, fill=GREY)] if used else []
    parts += [element("rect", x=1000 * used, y=0, width=1000 * more, height=16, fill=HUES[1])] if more else []
    return element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox="0 0 1000 16",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        class_="budget",
    )


def trade_off(
    epsilons: FloatArray, errors: Sequence[tuple[str, FloatArray]], success: FloatArray, epsilon: float
) -> list[str]:
    """Draw how exact and how exposed, by epsilon, with the chosen one as a line through both.

    Parameters
    ----------
    epsilons : array
    errors : sequence of (name, array)
        Standard error of each column's median in parts of its range; empty while nothing is known.
    success : array
        What a guess of 10% is worth at most.
    epsilon : float
        The chosen one.
    """
    risks = [("a guess that was right with 10%", success)]
    return [
        in_two_sizes(lambda layout: _errors(layout, epsilons, errors, epsilon), PANEL, NARROW),
        in_two_sizes(lambda layout: _risks(layout, epsilons, risks, epsilon), PANEL, NARROW),
    ]


def _across(epsilons: FloatArray) -> tuple[float, float]:
    return math.log10(float(epsilons[0])), math.log10(float(epsilons[-1]))


def _errors(layout: Layout, epsilons: FloatArray, lines: Sequence[tuple[str, FloatArray]], epsilon: float) -> str:
    label = "Expected error of the median in percent of the range, by epsilon"
    values = np.concatenate([line for _, line in lines]) if lines else np.array([0.001, 0.1])
    low = math.log10(max(float(values.min()), 1e-5)) - 0.15
    high = math.log10(max(float(values.max()), 2e-5)) + 0.15
    frame = layout.area(_across(epsilons), (low, high))
    powers = range(math.floor(low), math.ceil(high) + 1)
    levels = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    levels = [level for level in levels if low <= math.log10(level) <= high]
    levels = levels[:: 1 + len(levels) // 6]
    parts = [_level(frame, math.log10(level), f"{100 * level:.3g}%") for level in levels]
    for k, (_, line) in enumerate(lines):
        parts.append(_line(frame, epsilons, np.log10(np.maximum(line, 1e-9)), HUES[k]))
    names = [] if len(lines) < 2 else [name for name, _ in lines]
    return _panel(layout, frame, label, "error of the median, in % of the range", parts, names, epsilons, epsilon)


def _risks(layout: Layout, epsilons: FloatArray, lines: Sequence[tuple[str, FloatArray]], epsilon: float) -> str:
    label = "Most that a guess about a person is right after the release, by epsilon"
    frame = layout.area(_across(epsilons), (0.0, 1.02))
    parts = [_level(frame, level, f"{level:.0%}") for level in (0.0, 0.25, 0.5, 0.75, 1.0)]
    for _, line in lines:
        parts.append(_line(frame, epsilons, line, HUES[4]))
    return _panel(layout, frame, label, "a guess of 10%, at most after", parts, [], epsilons, epsilon)


def _panel(
    layout: Layout,
    frame: PlotArea,
    label: str,
    title: str,
    parts: Sequence[str],
    names: Sequence[str],
    epsilons: FloatArray,
    epsilon: float,
) -> str:
    x = _place(frame, epsilon)
    bottom = frame.top + frame.height
    chosen = element("line", x1=x, x2=x, y1=frame.top, y2=bottom, class_="chosen")
    legend = []
    for k, name in enumerate(names):
        y = frame.top + 16 + 16 * k
        right = frame.left + frame.width - 8
        legend.append(element("text", text=short(name, 18), x=right - 14, y=y, class_="tick-label end"))
        legend.append(element("circle", cx=right - 5, cy=y - 4, r=4.5, fill=HUES[k]))
    heading = element("text", text=title, x=layout.left, y=18, class_="axis-name")
    ticks = _epsilon_ticks(frame, epsilons)
    content = (heading, frame.border("paper"), *parts, chosen, frame.border(), ticks, *legend)
    return canvas(layout.width, layout.height, label, *content, class_=layout.class_)


def _place(frame: PlotArea, epsilon: float) -> float:
    at = math.log10(min(max(epsilon, 10 ** frame.x[0]), 10 ** frame.x[1]))
    return float(frame.at(np.array([[at, frame.y[0]]]))[0, 0])


def _level(frame: PlotArea, value: float, words: str) -> str:
    y = float(frame.at(np.array([[frame.x[0], value]]))[0, 1])
    ruled = element("line", x1=frame.left, x2=frame.left + frame.width, y1=y, y2=y, class_="grid")
    return ruled + element("text", text=words, x=frame.left - 8, y=y + 4, class_="tick-label end")


def _line(frame: PlotArea, epsilons: FloatArray, heights: FloatArray, hue: str) -> str:
    inside = np.clip(heights, *frame.y)
    points = frame.at(np.stack([np.log10(epsilons), inside], axis=1)).tolist()
    return element("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), stroke=hue, class_="law")


def _epsilon_ticks(frame: PlotArea, epsilons: FloatArray) -> str:
    parts, last = [], -math.inf
    bottom = frame.top + frame.height
    for value in EPSILON_TICKS:
        if not float(epsilons[0]) * 0.999 <= value <= float(epsilons[-1]) * 1.001:
            continue
        x = _place(frame, value)
        parts.append(element("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, stroke=INK, class_="tick"))
        if x - last > 26:
            parts.append(element("text", text=f"{value:g}", x=x, y=bottom + 18, class_="tick-label middle"))
            last = x
    middle = frame.left + frame.width / 2
    return "".join([*parts, element("text", text="epsilon", x=middle, y=bottom + 38, class_="axis-name middle")])
