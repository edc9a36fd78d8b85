"""Small charts beside a map: how far modes stand above the fogline, how large clusters are, parts of a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fogline._typing import FloatArray
from fogline.report._svg import HUES, PlotArea, element, significant, tick_label, ticks
from fogline.report.modes import Findings, Standing

__all__ = ["share_bar", "size_chart", "slab_bar", "standing_chart"]


OTHER = "#8a98a1"
WIDTH = 320
LEFT, RIGHT = 92, 300


def standing_chart(findings: Findings) -> str:
    """Draw each mode's prominence in foglines, on a logarithmic scale, fog to the left of 1."""
    rows: list[tuple[str, str, Standing]] = [
        (f"mode {k + 1}", HUES[k % len(HUES)], standing) for k, standing in enumerate(findings.standings.modes)
    ]
    if findings.standings.other is not None:
        label = "next peak" if rows else "clearest peak"
        rows.append((label, OTHER, findings.standings.other))
    # Room to the right of the clearest mode for its number, and never less than twice the fogline.
    top = max([2.0, *(1.35 * standing.ratio for _, _, standing in rows)])
    low = 0.2
    height = 34 * len(rows) + 56
    floor = height - 40

    def across(ratio: float) -> float:
        part = np.log(np.clip(ratio, low, top) / low) / np.log(top / low)
        return float(LEFT + (RIGHT - LEFT) * part)

    parts = [
        element("rect", x=LEFT, y=6, width=RIGHT - LEFT, height=floor - 6, class_="paper"),
        element("rect", x=LEFT, y=6, width=across(1) - LEFT, height=floor - 6, fill="url(#mist)"),
    ]
    for i, (label, hue, standing) in enumerate(rows):
        y = 6 + 34 * i + 20
        x = across(standing.ratio)
        parts.append(element("text", text=label, x=LEFT - 10, y=y + 4, class_="row-label end"))
        parts.append(element("line", x1=LEFT, x2=x, y1=y, y2=y, stroke=hue, class_="stem"))
        parts.append(element("circle", cx=x, cy=y, r=6.5, fill=hue, class_="badge"))
        # Near the right edge there is no room beside the dot.
        inside = x > RIGHT - 46
        parts.append(
            element(
                "text",
                text=f"{significant(standing.ratio, 2)}×",
                x=x - 12 if inside else x + 12,
                y=y - 6 if inside else y + 4,
                class_="row-value end" if inside else "row-value",
            )
        )
    parts.append(element("line", x1=across(1), x2=across(1), y1=2, y2=floor + 4, class_="fogline"))
    shown = [r for r in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if low < r <= top]
    shown = shown if len(shown) <= 6 else [r for r in (1, 5, 20, 100, 500) if r <= top]
    for ratio in shown:
        parts.append(element("text", text=f"{ratio:g}", x=across(ratio), y=floor + 17, class_="tick-label middle"))
    parts.append(
        element("text", text="prominence, in foglines", x=(LEFT + RIGHT) / 2, y=floor + 35, class_="axis-name middle")
    )
    stops = element("stop", offset="0", stop_color="#8fa3ad", stop_opacity=0.75) + element(
        "stop", offset="1", stop_color="#8fa3ad", stop_opacity=0.3
    )
    return element(
        "svg",
        element("defs", element("linearGradient", stops, id="mist")),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label="Prominence of each mode against the fogline",
        class_="chart",
    )


def share_bar(findings: Findings) -> str:
    """Draw the shares of the released mass as one bar."""
    shares = np.clip(findings.basins.shares, 0, None)
    # Noise may let shares add up to more than one, which a bar cannot show.
    shares = shares / max(float(shares.sum()), 1.0)
    parts = [(f"{k + 1} · {share:.0%}", share, HUES[k % len(HUES)]) for k, share in enumerate(shares.tolist())]
    return slab_bar(parts, label="Share of the released mass in each cluster", rest="in no cluster")


def slab_bar(parts: Sequence[tuple[str, float, str]], *, label: str, rest: str = "") -> str:
    """Draw parts of a whole as one bar: for each its words, its share and its colour; what is left is grey."""
    drawn = [element("rect", x=0, y=0, width=900, height=26, fill="#dde4e8")]
    left = 0.0
    for words, share, hue in parts:
        drawn.append(element("rect", x=left, y=0, width=900 * share, height=26, fill=hue, class_="slab"))
        # Words that would not fit are left out: the table has them.
        if 900 * share > 14 + 6.5 * len(words):
            drawn.append(element("text", text=words, x=left + 10, y=17.5, class_="slab-label"))
        left += 900 * share
    if rest and 900 - left > 130:
        drawn.append(element("text", text=rest, x=890, y=17.5, class_="slab-rest end"))
    return element(
        "svg",
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        viewBox="0 0 900 26",
        role="img",
        aria_label=label,
        class_="shares",
    )


def size_chart(sizes: FloatArray, errors: FloatArray) -> str:
    """Draw the number of records of each cluster, with 95% intervals."""
    top = max(1.0, float(np.max(sizes + 2 * errors, initial=0.0)))
    height = 34 * len(sizes) + 56
    floor = height - 40
    frame = PlotArea(LEFT, 6, RIGHT - LEFT, floor - 6, (0.0, 1.08 * top), (0.0, 1.0))

    def across(value: float) -> float:
        return float(np.clip(frame.at(np.array([[value, 0.0]]))[0, 0], LEFT, RIGHT))

    parts = [element("rect", x=LEFT, y=6, width=RIGHT - LEFT, height=floor - 6, class_="paper")]
    for k, (size, error) in enumerate(zip(sizes.tolist(), errors.tolist(), strict=True)):
        y = 6 + 34 * k + 20
        hue = HUES[k % len(HUES)]
        parts.append(element("text", text=f"cluster {k + 1}", x=LEFT - 10, y=y + 4, class_="row-label end"))
        parts.append(element("rect", x=LEFT, y=y - 8, width=across(size) - LEFT, height=16, fill=hue))
        low, high = across(size - 2 * error), across(size + 2 * error)
        parts.append(element("line", x1=low, x2=high, y1=y, y2=y, class_="error"))
    for value in ticks(0.0, 1.08 * top, 4):
        parts.append(element("text", text=tick_label(value), x=across(value), y=floor + 17, class_="tick-label middle"))
    parts.append(element("text", text="records", x=(LEFT + RIGHT) / 2, y=floor + 35, class_="axis-name middle"))
    return element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label="Released number of records of each cluster",
        class_="chart",
    )
