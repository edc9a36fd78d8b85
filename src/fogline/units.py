"""Public ranges of everyday columns, by name: bounds that cost nothing, because they say nothing about the records.

A range is a pair ``(low, high)`` that also knows its unit, its rounding step and why it holds, so that it can be given
wherever bounds can. The ranges are facts about the world (what a scale is defined on, or the most extreme value on
record with some room), never about a table. A value outside contributes nothing.

Examples
--------
>>> from fogline import PrivateModes, units
>>> units.age()
age: 0 to 125 years, in steps of 1 (the longest documented life was 122 years)
>>> low, high = units.percent()
>>> modes = PrivateModes(epsilon=1.0, delta=1e-6, bounds=[units.age(), units.percent()])
>>> units.named("latitude")[0]
-90.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fogline._validation import check_count

__all__ = ["PublicRange", "likert", "named", "names"]


class PublicRange(tuple[float, float]):
    """A pair ``(low, high)`` that is known to everybody.

    Parameters
    ----------
    name : str
    low, high : float
    unit : str
    step : float or None
        To which values are usually rounded; None for a continuous one. A suggestion for ``steps``.
    why : str
        The fact behind it.

    Examples
    --------
    >>> PublicRange("acidity", 0, 14, "pH", None, "the usual scale")[1]
    14.0
    """

    name: str
    unit: str
    step: float | None
    why: str

    def __new__(cls, name: str, low: float, high: float, unit: str, step: float | None, why: str) -> PublicRange:
        """Make a range."""
        pair = super().__new__(cls, (float(low), float(high)))
        pair.name, pair.unit, pair.step, pair.why = name, unit, step, why
        return pair

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.name, self[0], self[1], self.unit, self.step, self.why

    def __repr__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        step = "" if self.step is None else f", in steps of {self.step:g}"
        return f"{self.name}: {self[0]:g} to {self[1]:g}{unit}{step} ({self.why})"


_TABLE: dict[str, PublicRange] = {
    name: PublicRange(name, low, high, unit, step, why)
    for name, low, high, unit, step, why in (
        ("age", 0, 125, "years", 1, "the longest documented life was 122 years"),
        ("percent", 0, 100, "%", None, "a share of a whole"),
        ("probability", 0, 1, "", None, "a share of a whole"),
        ("correlation", -1, 1, "", None, "by the Cauchy-Schwarz inequality"),
        ("hour", 0, 24, "h", None, "the hours of a day"),
        ("minute", 0, 60, "min", None, "the minutes of an hour"),
        ("weekday", 0, 7, "", 1, "numbered from 0 or from 1"),
        ("month", 1, 12, "", 1, "the months of a year"),
        ("day_of_month", 1, 31, "", 1, "the longest month"),
        ("day_of_year", 1, 366, "", 1, "the longest year"),
        ("latitude", -90, 90, "degrees", None, "from pole to pole"),
        ("longitude", -180, 180, "degrees", None, "once around"),
        ("bearing", 0, 360, "degrees", None, "once around"),
        ("body_height", 20, 280, "cm", None, "the tallest man on record was 272 cm"),
        ("body_mass", 0, 650, "kg", None, "the heaviest man on record was 635 kg"),
        ("birth_weight", 0, 11000, "g", None, "the heaviest newborn on record had about 10 kg"),
        ("gestation", 0, 50, "weeks", None, "a term is 40 weeks"),
        ("body_temperature", 10, 50, "degrees C", None, "survived extremes are near 12 and 46.5 degrees"),
        ("heart_rate", 0, 350, "beats a minute", 1, "no heart pumps faster"),
        ("respiratory_rate", 0, 120, "breaths a minute", 1, "no lungs breathe faster"),
        ("systolic_pressure", 0, 400, "mmHg", 1, "the highest measured values are near 370"),
        ("diastolic_pressure", 0, 370, "mmHg", 1, "the highest measured values are near 360"),
        ("oxygen_saturation", 0, 100, "%", None, "a share of a whole"),
        ("acidity", 0, 14, "pH", None, "the usual scale"),
        ("air_temperature", -95, 60, "degrees C", None, "records at stations are -89.2 and 56.7 degrees"),
        ("air_pressure", 850, 1100, "hPa", None, "records at sea level are 870 and 1084 hPa"),
        ("relative_humidity", 0, 110, "%", None, "saturation is 100, with some oversaturation"),
        ("elevation", -430, 8850, "m", None, "from the shore of the Dead Sea to the top of Everest"),
        ("byte", 0, 255, "", 1, "eight bits"),
        ("stars", 1, 5, "", 1, "the usual rating"),
    )
}


def names() -> tuple[str, ...]:
    """Names of all ranges.

    Examples
    --------
    >>> "age" in names()
    True
    """
    return tuple(_TABLE)


def named(name: str) -> PublicRange:
    """Range of a name.

    Examples
    --------
    >>> named("shoe_size")
    Traceback (most recent call last):
    ValueError: bounds: there is no public range named 'shoe_size'; there are age, percent, ...
    """
    if name not in _TABLE:
        raise ValueError(f"bounds: there is no public range named {name!r}; there are {', '.join(_TABLE)}")
    return _TABLE[name]


def likert(points: int = 5) -> PublicRange:
    """Range of a scale of so many answers, numbered from 1.

    Examples
    --------
    >>> likert(7)
    likert: 1 to 7, in steps of 1 (7 possible answers)
    """
    highest = check_count(points, "points", minimum=2)
    return PublicRange("likert", 1, highest, "", 1, f"{highest} possible answers")


def __getattr__(name: str) -> Callable[[], PublicRange]:
    """Each name of the table is a function: ``units.age()``."""
    if name in _TABLE:
        return lambda: _TABLE[name]
    raise AttributeError(f"module 'fogline.units' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_TABLE])
