"""Drawings of the studio itself: what a release would take from the budget, and accuracy beside risk."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fogline._typing import FloatArray
from fogline.report._plots import INK, Layout, canvas, in_two_sizes
from fogline.report._svg import HUES, PlotArea, element, short

__all__ = ["budget_bar", "trade_off"]

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
