"""Draw ``docs/images/currencies.svg``: the noise that each currency asks for, and what an attacker can reach.

    python tools/currency_figure.py

Left: standard deviation of the noise of one count at delta = 1e-6. Right: the chance that a guess about a record is
right after a release of Gaussian noise at (1, 1e-6), against the chance before. Every number comes from the accounting.
The colours follow the page: a dark one has a dark figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from fogline.accounting import zcdp
from fogline.accounting.costs import gaussian_release
from fogline.accounting.risk import success_after
from fogline.report._svg import HUES, element

DELTA = 1e-6
HEIGHT, TOP, SIDE = 380, 40, 300
TARGET = Path(__file__).parent.parent / "docs" / "images" / "currencies.svg"
DARK = {"zcdp": "#e59a55", "gaussian": "#6fb3da", "pure": "#7cc596", "before": "#8fa1ac"}
LIGHT = {"zcdp": HUES[1], "gaussian": HUES[0], "pure": HUES[2], "before": "#6a7d88"}
"""Colours of the curves and of their names, by what they are."""


def _coloured(hues: Mapping[str, str]) -> str:
    return "".join(f".{name}{{stroke:{hue}}}.{name}-name{{fill:{hue}}}" for name, hue in hues.items())


STYLE = (
    "text{font-family:Segoe UI,Helvetica Neue,Arial,sans-serif;font-size:13px;fill:#16232c}.title{font-weight:600}"
    f".ground{{fill:#ffffff}}.frame{{stroke:#8fa1ac}}{_coloured(LIGHT)}"
    "@media (prefers-color-scheme: dark){text{fill:#e6edf1}"
    f".ground{{fill:#151d23}}.frame{{stroke:#5b6d78}}{_coloured(DARK)}}}"
)

Curve = Sequence[tuple[float, float]]


class Panel:
    """One square picture with logarithmic or plain axes."""

    def __init__(
        self, left: float, title: str, across: tuple[float, float], up: tuple[float, float], logs: bool
    ) -> None:
        self.left, self.across, self.up, self.logs = left, across, up, logs
        self.parts = [
            element("text", text=title, x=left, y=TOP - 14, class_="title"),
            element("rect", x=left, y=TOP, width=SIDE, height=SIDE, fill="none", class_="frame"),
        ]

    def _share(self, value: float, ends: tuple[float, float]) -> float:
        low, high = (math.log(end) if self.logs else end for end in ends)
        return ((math.log(value) if self.logs else value) - low) / (high - low)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is drawn."""
        return self.left + SIDE * self._share(x, self.across), TOP + SIDE * (1 - self._share(y, self.up))

    def curve(self, points: Curve, name: str, dash: str = "none") -> None:
        """Add a curve in the colour of its name."""
        drawn = " ".join("{:.1f},{:.1f}".format(*self.place(*point)) for point in points)
        self.parts.append(
            element("polyline", points=drawn, fill="none", class_=name, stroke_width=2, stroke_dasharray=dash)
        )

    def ticks(self, across: Sequence[float], up: Sequence[float], name: str) -> None:
        """Add numbers at both axes, and the name of the lower one."""
        for value in across:
            x, _ = self.place(value, self.up[0])
            self.parts.append(element("text", text=f"{value:g}", x=x, y=TOP + SIDE + 18, text_anchor="middle"))
        for value in up:
            _, y = self.place(self.across[0], value)
            self.parts.append(element("text", text=f"{value:g}", x=self.left - 6, y=y + 4, text_anchor="end"))
        middle = self.left + SIDE / 2
        self.parts.append(element("text", text=name, x=middle, y=TOP + SIDE + 36, text_anchor="middle"))

    def legend(self, names: Sequence[tuple[str, str]], x: float, y: float) -> None:
        """Name the curves."""
        for i, (told, name) in enumerate(names):
            place = {"x": self.left + x, "y": TOP + y + 18 * i}
            self.parts.append(element("text", text=told, class_=f"{name}-name", **place))


def noise_panel() -> Panel:
    """The standard deviation of one count, by currency."""
    panel = Panel(60, "noise of one count, delta = 1e-6", (0.1, 10.0), (0.1, 60.0), logs=True)
    epsilons = [10 ** (-1 + i / 20) for i in range(41)]
    panel.curve([(e, (2 * zcdp.rho_of(e, DELTA)) ** -0.5) for e in epsilons], "zcdp")
    panel.curve([(e, 1 / gaussian_release(e, DELTA).mu) for e in epsilons], "gaussian")
    panel.curve([(e, math.sqrt(2) / e) for e in epsilons], "pure")
    panel.ticks([0.1, 0.3, 1, 3, 10], [0.1, 0.3, 1, 3, 10, 30], "epsilon")
    panel.legend(
        [("Gaussian, by zCDP", "zcdp"), ("Gaussian, by its curve", "gaussian"), ("Laplace, pure", "pure")], 130, 30
    )
    return panel


def risk_panel() -> Panel:
    """The chance of a right guess after one release, by what is known of it."""
    price = gaussian_release(1.0, DELTA)
    panel = Panel(470, "a guess about a record, after (1, 1e-6)", (0.0, 1.0), (0.0, 1.0), logs=False)
    before = [0.001, *(i / 100 for i in range(1, 100)), 0.999]
    panel.curve([(p, p) for p in before], "before", "4 4")
    panel.curve([(p, success_after(p, epsilon=1.0, delta=DELTA)) for p in before], "pure")
    panel.curve([(p, success_after(p, rho=price.rho)) for p in before], "zcdp")
    panel.curve([(p, success_after(p, mu=price.mu)) for p in before], "gaussian")
    panel.ticks([0, 0.5, 1], [0, 0.5, 1], "chance of being right before")
    panel.legend(
        [("from epsilon and delta", "pure"), ("from rho", "zcdp"), ("from mu", "gaussian"), ("before", "before")],
        140,
        210,
    )
    return panel


def drawing() -> str:
    """Return the figure."""
    return element(
        "svg",
        element("style", text=STYLE),
        element("rect", x=0, y=0, width=800, height=HEIGHT + 10, class_="ground"),
        *noise_panel().parts,
        *risk_panel().parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 800 {HEIGHT + 10}",
        role="img",
        aria_label="Noise by currency, and the chance of a right guess after a release",
    )


if __name__ == "__main__":
    TARGET.write_text(drawing() + "\n", encoding="utf-8")
