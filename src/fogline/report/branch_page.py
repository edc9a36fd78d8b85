"""The page of a modal regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.stats import norm

from fogline.report.branches import COVERAGE, BranchFindings, Panel
from fogline.report.drawing import badge, canvas, free_spot, line, outline
from fogline.report.frame import frame_content, listed
from fogline.report.plane import heat
from fogline.report.svg import HUES, Frame, element, path, plus_minus, short, significant, tick_label

__all__ = ["branch_content", "branch_map", "described_rows"]

RADIUS = float(norm.ppf(0.975))


def branch_content(findings: BranchFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    estimator, density = findings.estimator, findings.estimator.density_
    names, response = findings.columns[:-1], findings.columns[-1]
    bandwidth = estimator.bandwidth_
    return {
        **frame_content(estimator, density),
        "k": findings.k,
        "several": len(names) > 1,
        "names": names,
        "response": response,
        "bounds": [
            (name, tick_label(low), tick_label(high))
            for name, (low, high) in zip(findings.columns, findings.bounds, strict=True)
        ],
        "rows": described_rows(findings),
        "sets": any(panel.inside.any() for panel in findings.panels),
        "coverage": f"{100 * COVERAGE:.0f}%",
        "bandwidth": listed(
            [f"{significant(float(h))} ({name})" for h, name in zip(bandwidth, findings.columns, strict=True)]
        ),
        "figures": [branch_map(findings, panel) for panel in findings.panels],
    }


def described_rows(findings: BranchFindings) -> list[dict[str, Any]]:
    """Return the modes and the prediction set at some x, as people write them."""
    described = []
    for row in findings.rows:
        modes = sorted(zip(row.branches, row.positions.tolist(), row.errors.tolist(), strict=True))
        scale = [float(np.median(row.errors)) if len(row.errors) else float(np.ptp(findings.bounds[-1])) / 200]
        described.append(
            {
                "x": [significant(float(value)) for value in row.x],
                "modes": [
                    {"number": number + 1, "hue": HUES[number % len(HUES)], "value": plus_minus(value, [error])}
                    for number, value, error in modes
                ],
                "set": " or ".join(
                    f"{plus_minus(low, scale)[0]} to {plus_minus(high, scale)[0]}"
                    for low, high in row.intervals.tolist()
                )
                if findings.tells(row)
                else "most of the range",
            }
        )
    return described


def branch_map(findings: BranchFindings, panel: Panel) -> str:
    """Draw the released density with the branches, their 95% bands and the prediction set over it."""
    small = bool(panel.held)
    x_name, y_name = findings.columns[0], findings.columns[-1]
    limits = findings.bounds[0], findings.bounds[-1]
    frame = Frame(56, 30, 286, 262, *limits) if small else Frame(70, 10, 790, 450, *limits)
    layers = [heat(frame, panel.axes, panel.values, panel.floor)]
    if panel.inside.any():
        soft = gaussian_filter(panel.inside.astype(np.float64), 0.7, mode="nearest")
        layers.append(element("path", d=outline(frame, panel.set_axes, soft, 0.5), class_="set"))
    labels: list[str] = []
    taken: list[tuple[float, ...]] = []
    for number, x, positions, errors in panel.strands:
        hue = HUES[number % len(HUES)]
        upper, lower = positions + RADIUS * errors, positions - RADIUS * errors
        edge = np.concatenate([np.stack([x, upper], axis=1), np.stack([x, lower], axis=1)[::-1]])
        layers.append(element("path", d=path([_within(frame, frame.at(edge))]), fill=hue, class_="band"))
        for class_ in ("branch-halo", "branch"):
            layers.append(element("path", d=line(frame, x, positions), stroke=hue, class_=class_))
    for number in dict.fromkeys(strand[0] for strand in panel.strands):
        longest = max((s for s in panel.strands if s[0] == number), key=lambda strand: len(strand[1]))
        middle = len(longest[1]) // 2
        spot = frame.at(np.array([[longest[1][middle], longest[2][middle]]]))[0]
        place = free_spot((float(spot[0]), float(spot[1])), 22, taken, frame)
        taken.append(place)
        labels.append(badge(number, place, hue=HUES[number % len(HUES)]))
    title = ""
    if small:
        words = listed(
            [f"{short(n, 18)} = {significant(v)}" for n, v in zip(findings.columns[1:], panel.held, strict=False)]
        )
        title = element("text", text=words, x=frame.left + frame.width / 2, y=18, class_="axis-name middle")
    return canvas(
        356 if small else 880,
        340 if small else 520,
        f"Map of the released density of {short(x_name)} and {short(y_name)} with its branches",
        title,
        frame.border("paper"),
        *layers,
        frame.border(),
        frame.axes((short(x_name, 26), short(y_name, 26)) if small else (x_name, y_name), wanted=5 if small else 7),
        *labels,
        class_="figure",
    )


def _within(frame: Frame, points: Any) -> Any:
    """Keep points of a drawing inside of its frame."""
    low = np.array([frame.left, frame.top])
    return np.clip(points, low, low + np.array([frame.width, frame.height]))
