"""A picture of what to expect before anything is spent: errors and chances by epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fogline._typing import FloatArray
from fogline.planning.modes import ExpectedError
from fogline.report._svg import HUES, PlotArea, element, short
from fogline.report.ledger import STYLE

__all__ = ["outlook_picture"]


PRIVACY, SAMPLING = "#16232c", "#8a98a1"
"""Greys for the parts of an error; the colours belong to the modes."""

LINES = (
    ".frame{fill:none;stroke:#5d6f7a}.tick{stroke:#5d6f7a}.grid{stroke:#e3e9ec}.middle{text-anchor:middle}"
    ".line{fill:none;stroke-width:2.4;stroke-linejoin:round}.thin{fill:none;stroke-width:1.2;stroke-opacity:.8}"
)
WIDTH, HEIGHT = 900, 430


def outlook_picture(expected: ExpectedError) -> str:
    """Return a drawing (SVG): errors by epsilon on the left, the chance to find each mode on the right.

    Errors are in percent of a column's range, root mean square over the columns. Without a mode in the guess the
    drawing shows the smallest share of the records that would stand above the fog.
    """
    epsilons = np.array(expected.epsilons)
    parts = [element("text", text=short(_title(expected), 110), x=20, y=30, class_="name")]
    if len(expected.modes):
        parts += _errors(expected, epsilons) + _chances(expected, epsilons)
    else:
        shares = np.array([[100 * row.smallest_share for row in expected.rows]])
        frame, axes = _log_frame(80, 780, epsilons, shares, "smallest share of the records that would be seen, %")
        parts += [axes, _line(frame, epsilons, np.log10(shares[0]), PRIVACY, "line", dots=True)]
    return element(
        "svg",
        element("style", text=STYLE + LINES),
        element("rect", x=0, y=0, width=WIDTH, height=HEIGHT, fill="#ffffff"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label="Expected errors and chances of detection by epsilon",
    )


def _title(expected: ExpectedError) -> str:
    return f"{expected.n} records, {expected.shape}, delta {expected.delta:g}: before anything is spent"


def _relative(expected: ExpectedError, part: str) -> FloatArray:
    """Return errors in percent of the ranges, shape (epsilons, modes)."""
    widths = np.array([high - low for low, high in expected.bounds])
    found = np.array([getattr(row, part) / widths for row in expected.rows])
    return np.asarray(100 * np.sqrt(np.mean(found**2, axis=2)))


def _errors(expected: ExpectedError, epsilons: FloatArray) -> list[str]:
    privacy, sampling, total = (_relative(expected, part) for part in ("privacy_errors", "sampling_errors", "errors"))
    if not np.isfinite(total).any():
        return [element("text", text="no mode would be found at any of these epsilons", x=80, y=80, class_="soft")]
    frame, axes = _log_frame(70, 380, epsilons, np.stack([privacy, sampling, total]), "standard error, % of the range")
    parts = [axes]
    for k in range(total.shape[1]):
        parts.append(_line(frame, epsilons, np.log10(total[:, k]), HUES[k % len(HUES)], "thin"))
    for values, hue, label, y in ((privacy, PRIVACY, "privacy", 312), (sampling, SAMPLING, "sampling", 330)):
        seen = np.isfinite(values).any(axis=1)
        middle = np.full(len(epsilons), np.nan)
        middle[seen] = np.nanmedian(values[seen], axis=1)
        parts.append(_line(frame, epsilons, np.log10(middle), hue, "line", dots=True))
        parts.append(element("rect", x=82, y=y - 7, width=18, height=3, fill=hue))
        parts.append(element("text", text=f"part of {label}, median mode", x=108, y=y))
    parts.append(element("rect", x=82, y=342, width=18, height=1.2, fill=HUES[0]))
    parts.append(element("text", text="each mode, both parts", x=108, y=348))
    return parts


def _chances(expected: ExpectedError, epsilons: FloatArray) -> list[str]:
    frame = PlotArea(530, 60, 340, 300, _reach(epsilons), (-0.03, 1.03))
    parts = [frame.border(), _epsilon_axis(frame, epsilons)]
    for chance in (0.0, 0.5, 1.0):
        y = float(frame.at(np.array([[frame.x[0], chance]]))[0, 1])
        parts.append(element("line", x1=530, x2=870, y1=y, y2=y, class_="grid"))
        parts.append(element("text", text=f"{100 * chance:.0f}%", x=522, y=y + 4, class_="soft end"))
    found = np.array([row.detected for row in expected.rows])
    for k in range(found.shape[1]):
        hue = HUES[k % len(HUES)]
        parts.append(_line(frame, epsilons, found[:, k], hue, "line", dots=True))
        if k < 8:
            y = 340 - 18 * (min(found.shape[1], 8) - 1 - k)
            where = ", ".join(f"{value:.3g}" for value in expected.modes[k])
            parts.append(element("circle", cx=730, cy=y - 4, r=5, fill=hue))
            parts.append(element("text", text=short(f"mode at {where}", 20), x=740, y=y))
    parts.append(element("text", text="chance that a mode is found", x=700, y=52, class_="soft middle"))
    return parts


def _log_frame(left: float, width: float, epsilons: FloatArray, values: FloatArray, name: str) -> tuple[PlotArea, str]:
    """Return a frame with logarithmic axes around the finite values, and its drawing."""
    logs = np.log10(values[np.isfinite(values) & (values > 0)])
    low, high = math.floor(2 * (logs.min() - 0.1)) / 2, math.ceil(2 * (logs.max() + 0.1)) / 2
    frame = PlotArea(left, 60, width, 300, _reach(epsilons), (low, high))
    parts = [frame.border(), _epsilon_axis(frame, epsilons)]
    steps = (1, 2, 5) if high - low < 2.6 else (1,)
    for power in range(math.floor(low), math.ceil(high) + 1):
        for step in steps:
            value = step * 10.0**power
            if low <= math.log10(value) <= high:
                y = float(frame.at(np.array([[frame.x[0], math.log10(value)]]))[0, 1])
                parts.append(element("line", x1=left, x2=left + width, y1=y, y2=y, class_="grid"))
                parts.append(element("text", text=f"{value:g}", x=left - 8, y=y + 4, class_="soft end"))
    parts.append(element("text", text=name, x=left + width / 2, y=52, class_="soft middle"))
    return frame, "".join(parts)


def _reach(epsilons: FloatArray) -> tuple[float, float]:
    return float(np.log10(epsilons[0])) - 0.1, float(np.log10(epsilons[-1])) + 0.1


def _epsilon_axis(frame: PlotArea, epsilons: FloatArray) -> str:
    parts = []
    bottom = frame.top + frame.height
    last = -math.inf
    for epsilon in epsilons.tolist():
        x = float(frame.at(np.array([[math.log10(epsilon), frame.y[0]]]))[0, 0])
        parts.append(element("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="tick"))
        if x - last > 30:
            parts.append(element("text", text=f"{epsilon:g}", x=x, y=bottom + 20, class_="soft middle"))
            last = x
    parts.append(element("text", text="epsilon", x=frame.left + frame.width / 2, y=bottom + 42, class_="middle"))
    return "".join(parts)


def _line(
    frame: PlotArea, epsilons: FloatArray, heights: FloatArray, hue: str, class_: str, *, dots: bool = False
) -> str:
    """Draw a line through the heights that are known."""
    known = np.isfinite(heights)
    points = frame.at(np.stack([np.log10(epsilons[known]), heights[known]], axis=1))
    parts = [_polyline(points.tolist(), hue, class_)]
    if dots:
        parts += [element("circle", cx=float(x), cy=float(y), r=4, fill=hue) for x, y in points.tolist()]
    return "".join(parts)


def _polyline(points: Sequence[Sequence[float]], hue: str, class_: str) -> str:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polyline", points=joined, stroke=hue, class_=class_) if len(points) > 1 else ""
