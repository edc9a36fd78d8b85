"""Two small charts beside the map: how far each mode stands above the fogline, and who holds how much of the mass."""

from __future__ import annotations

import numpy as np

from fogline.report.findings import Findings
from fogline.report.standing import Standing
from fogline.report.svg import HUES, element, significant

__all__ = ["share_bar", "standing_chart"]

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
    shares = shares / max(float(shares.sum()), 1.0)
    parts = [element("rect", x=0, y=0, width=900, height=26, fill="#dde4e8")]
    left = 0.0
    for k, share in enumerate(shares.tolist()):
        parts.append(
            element("rect", x=left, y=0, width=900 * share, height=26, fill=HUES[k % len(HUES)], class_="slab")
        )
        if share > 0.06:
            parts.append(element("text", text=f"{k + 1} · {share:.0%}", x=left + 10, y=17.5, class_="slab-label"))
        left += 900 * share
    if 900 - left > 130:
        parts.append(element("text", text="in no cluster", x=890, y=17.5, class_="slab-rest end"))
    return element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox="0 0 900 26",
        role="img",
        aria_label="Share of the released mass in each cluster",
        class_="shares",
    )
