"""Level lines of a field on a grid, by marching squares.

Small parts of a drawing: elements with escaped text, scales, ticks, colours, numbers for people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from fogline._typing import FloatArray

__all__ = [
    "HUES",
    "PlotArea",
    "contour_loops",
    "element",
    "error_ellipse",
    "mix",
    "path",
    "plus_minus",
    "short",
    "significant",
    "tick_label",
    "ticks",
]


def contour_loops(values: FloatArray, level: float) -> list[FloatArray]:
    """Closed polygons around the part of a grid where ``values >= level``.

    Outside the grid the field counts as low, so a region that reaches the edge is closed along it. Filled by
    the even-odd rule, the polygons together are the region, holes included.

    Parameters
    ----------
    values : array of shape (n, m), n and m at least 2
    level : float

    Returns
    -------
    list of arrays of shape (points, 2)
        Fractional indices (row, column), between 0 and n-1 or m-1; the last point joins the first.

    Examples
    --------
    >>> hill = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    >>> [loop] = contour_loops(hill, 1.0)
    >>> sorted(loop.tolist())
    [[0.5, 1.0], [1.0, 0.5], [1.0, 1.5], [1.5, 1.0]]
    >>> contour_loops(hill, 3.0)
    []
    """
    low = min(float(values.min()), level) - float(np.ptp(values)) - abs(level) - 1.0
    # A rim below every level closes each region by itself.
    field = np.pad(values, 1, constant_values=low)
    links = _links(field, level)
    last = np.array(values.shape) - 1
    loops = []
    while links:
        start = next(iter(links))
        loop, edge = [start], start
        while True:
            onward = links[edge].pop()
            links[onward].remove(edge)
            if not links[edge]:
                del links[edge]
            edge = onward
            if edge == start:
                break
            loop.append(edge)
        links.pop(start, None)
        points = np.array([_crossing(field, level, e) for e in loop])
        # Crossings with the rim come back onto the edge of the grid.
        loops.append(np.clip(points - 1, 0, last))
    return loops


def _links(field: FloatArray, level: float) -> dict[int, list[int]]:
    """For each grid edge that the level crosses, the two edges its line goes on to."""
    high = field >= level
    columns = field.shape[1]
    number = high[:-1, :-1].astype(int) + high[:-1, 1:] + high[1:, 1:] + high[1:, :-1]
    links: dict[int, list[int]] = {}

    def join(a: int, b: int) -> None:
        links.setdefault(a, []).append(b)
        links.setdefault(b, []).append(a)

    for i, j in np.argwhere((number > 0) & (number < 4)).tolist():
        top, left = 2 * (i * columns + j), 2 * (i * columns + j) + 1
        right, bottom = left + 2, top + 2 * columns
        a, b, c, d = high[i, j], high[i, j + 1], high[i + 1, j + 1], high[i + 1, j]
        if a == c and b == d:  # a saddle: the middle decides which corners hang together
            middle = field[i : i + 2, j : j + 2].mean() >= level
            around_b = bool(a == middle)
            join(top, right if around_b else left)
            join(bottom, left if around_b else right)
        else:
            crossed = [e for e, cut in ((top, a != b), (right, b != c), (bottom, c != d), (left, d != a)) if cut]
            join(crossed[0], crossed[1])
    return links


def _crossing(field: FloatArray, level: float, edge: int) -> tuple[float, float]:
    (i, j), vertical = divmod(edge // 2, field.shape[1]), edge % 2
    first, second = field[i, j], field[i + vertical, j + 1 - vertical]
    part = float((level - first) / (second - first))
    return (i + part, float(j)) if vertical else (float(i), j + part)


HUES = ("#1d6996", "#b8620e", "#2f7d4f", "#7a4fa0", "#b03a48", "#0f7f83", "#8a6d1a", "#5b6470", "#b5527e", "#5d7f1d")
"""One colour per mode, then again from the first."""

Attribute = str | float | int


def element(tag: str, *children: str, text: str | None = None, **attributes: Attribute) -> str:
    """Return an element; text and attribute values are escaped, children are elements already.

    An underscore in a name stands for a hyphen, and one at its end is dropped.

    Examples
    --------
    >>> element("text", text="a < b", font_size=12)
    '<text font-size="12">a &lt; b</text>'
    """
    inside = "".join(children) if text is None else escape(text)
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"' for name, value in attributes.items()
    )
    return f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>"


def _attribute(value: Attribute) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def path(loops: Iterable[FloatArray]) -> str:
    """Return the path data of closed polygons.

    Examples
    --------
    >>> path([np.array([[0.0, 1.0], [2.0, 3.25], [1.0, 0.0]])])
    'M0 1L2 3.2L1 0Z'
    """
    return "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in loop.tolist()) + "Z" for loop in loops).replace(
        ".0", ""
    )


def mix(first: str, second: str, part: float) -> str:
    """Return the colour that lies ``part`` of the way from one hexadecimal colour to another.

    Examples
    --------
    >>> mix("#000000", "#ff8000", 0.5)
    '#804000'
    """
    ends = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (first, second)]
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(*ends, strict=True))


@dataclass(frozen=True)
class PlotArea:
    """A rectangle of the drawing and the ranges of the data that fill it; y grows upwards."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, points: FloatArray) -> FloatArray:
        """Place points of shape (p, 2) in the drawing."""
        u = (points[:, 0] - self.x[0]) / (self.x[1] - self.x[0])
        v = (points[:, 1] - self.y[0]) / (self.y[1] - self.y[0])
        return np.stack([self.left + u * self.width, self.top + (1 - v) * self.height], axis=1)

    @property
    def pixels(self) -> FloatArray:
        """Drawing units per unit of each axis; y is negative."""
        return np.array([self.width / (self.x[1] - self.x[0]), -self.height / (self.y[1] - self.y[0])])

    def axes(self, names: tuple[str, str], *, wanted: int = 6) -> str:
        """Draw ticks, tick labels and names."""
        parts = []
        bottom = self.top + self.height
        for value in ticks(*self.x, wanted):
            x = float(self.at(np.array([[value, self.y[0]]]))[0, 0])
            parts.append(element("line", x1=x, x2=x, y1=bottom, y2=bottom + 5, class_="tick"))
            parts.append(element("text", text=tick_label(value), x=x, y=bottom + 18, class_="tick-label middle"))
        for value in ticks(*self.y, wanted):
            y = float(self.at(np.array([[self.x[0], value]]))[0, 1])
            parts.append(element("line", x1=self.left - 5, x2=self.left, y1=y, y2=y, class_="tick"))
            parts.append(element("text", text=tick_label(value), x=self.left - 9, y=y + 4, class_="tick-label end"))
        middle = self.left + self.width / 2
        parts.append(element("text", text=short(names[0]), x=middle, y=bottom + 38, class_="axis-name middle"))
        turned = f"rotate(-90 14 {self.top + self.height / 2:.1f})"
        parts.append(
            element(
                "text",
                text=short(names[1]),
                x=14,
                y=self.top + self.height / 2,
                transform=turned,
                class_="axis-name middle",
            )
        )
        return "".join(parts)

    def border(self, class_: str = "frame") -> str:
        """Draw the rectangle."""
        return element("rect", x=self.left, y=self.top, width=self.width, height=self.height, class_=class_)


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Round values between two ends, about this many.

    Examples
    --------
    >>> ticks(0.5, 6.5)
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    """
    raw = (high - low) / max(wanted, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1.0, 2.0, 5.0, 10.0) if s * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12 - math.floor(math.log10(step))) for i in range(first, last + 1)]


def tick_label(value: float) -> str:
    """Return a tick's label, without an exponent where it can be.

    Examples
    --------
    >>> tick_label(40000.0), tick_label(0.05), tick_label(-2.0)
    ('40 000', '0.05', '−2')
    """
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-4:
        return f"{value:.3g}".replace("-", "−")
    text = f"{value:,.10g}" if size < 10000 else f"{value:,.0f}"
    return (text if size >= 10000 else text.replace(",", "")).replace(",", " ").replace("-", "−")


def error_ellipse(frame: PlotArea, centre: FloatArray, covariance: FloatArray, radius: float, class_: str) -> str:
    """Draw the ellipse of this many standard errors around a point."""
    values, vectors = np.linalg.eigh(covariance * np.outer(frame.pixels, frame.pixels))
    rx, ry = radius * np.sqrt(np.maximum(values, 0))
    angle = math.degrees(math.atan2(vectors[1, 0], vectors[0, 0]))
    x, y = frame.at(centre[None])[0]
    turned = f"rotate({angle:.1f} {x:.1f} {y:.1f})"
    return element("ellipse", cx=float(x), cy=float(y), rx=float(rx), ry=float(ry), transform=turned, class_=class_)


def short(text: str, most: int = 42) -> str:
    """Return a text of at most ``most`` characters.

    Examples
    --------
    >>> short("a very long name", 7)
    'a very…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def significant(value: float, digits: int = 3) -> str:
    """Return a number with this many significant digits and a real minus sign.

    Examples
    --------
    >>> significant(0.0123456), significant(-1234.5), significant(3.2e-7)
    ('0.0123', '−1230', '3.2e−07')
    """
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits}g}".replace("-", "−")
    rounded = float(f"{value:.{digits}g}")
    places = 0 if not rounded else max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{places}f}".replace("-", "−")


def plus_minus(value: float, errors: Sequence[float], least: float = 0.0) -> tuple[str, ...]:
    """Return a value and its errors, all with as many decimals as give the first error two digits.

    A first error below `least` is told as being below it, and the value has the decimals of `least`.

    Examples
    --------
    >>> plus_minus(4.29340, [0.04389, 0.0401])
    ('4.293', '0.044', '0.040')
    >>> plus_minus(-1234.5, [67.0])
    ('−1234', '67')
    >>> plus_minus(1.4e-6, [9.2e-6], least=1e-4)
    ('0.0000', '< 0.0001')
    """
    lead = errors[0]
    if 0 <= lead < least:
        places = min(max(0, -math.floor(math.log10(least))), 12)
        told = f"{value:.{places}f}".replace("-", "−")
        shown = told if value >= 0 or float(f"{value:.{places}f}") else told.removeprefix("−")
        return shown, *[f"< {significant(least, 1)}"] * len(errors)
    usable = math.isfinite(lead) and lead > 0
    places = min(max(0, 1 - math.floor(math.log10(lead))), 12) if usable else 3
    return tuple(f"{number:.{places}f}".replace("-", "−") for number in (value, *errors))
