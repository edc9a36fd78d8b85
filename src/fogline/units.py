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
>>> modes = PrivateModes(epsilon=1.0, delta=1e-6, bounds={"age": "age", "stay": (0, 60)})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fogline._validation import check_bounds, check_count, nearest

if TYPE_CHECKING:
    from fogline._typing import FloatArray

__all__ = [
    "ColumnRanges",
    "PublicRange",
    "bounded_names",
    "likert",
    "named",
    "names",
    "ranges",
    "resolve",
    "resolve_bounds",
    "steps_of",
]


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


class ColumnRanges(NamedTuple):
    """Public ranges of columns, in their order.

    Attributes
    ----------
    pairs : tuple
        One pair per column, as it was given: a :class:`PublicRange` where it has a name.
    steps : tuple of float or None
        One rounding step per column; None for a continuous one.
    box : array of shape (d, 2)
        The pairs, checked.
    columns : tuple of str or None
        Names of the columns, where they are known.
    """

    pairs: tuple[Any, ...]
    steps: tuple[float | None, ...]
    box: FloatArray
    columns: tuple[str, ...] | None


def resolve(
    bounds: object,
    columns: Sequence[str] | None = None,
    *,
    steps: object = None,
    name: str = "bounds",
    width: int | None = None,
) -> ColumnRanges:
    """Take public bounds as users write them: this is the one way in.

    Parameters
    ----------
    bounds : mapping, sequence, str or pair
        By name of the column, or one per column in their order; each a pair, or the name of a public range. One pair
        or one range serves all columns.
    columns : sequence of str, optional
        Names of the columns, in their order; where there are none, the order of a mapping is that of the columns.
    steps : None, float, sequence or mapping
        As :func:`steps_of` takes them.
    name : str
        Of the parameter, for the errors.
    width : int, optional
        Number of columns, where one pair may serve all of them.

    Examples
    --------
    >>> found = resolve({"stay": (0, 60), "age": "age"}, ["age", "stay"])
    >>> found.box.tolist(), found.steps, found.pairs[0].unit
    ([[0.0, 125.0], [0.0, 60.0]], (1, None), 'years')
    """
    known = bounded_names(bounds, columns)
    given: Any = bounds
    if isinstance(bounds, Mapping):
        # a mapping says itself how many columns there are
        given, width = _in_order(bounds, known or (), name), None
    elif isinstance(bounds, str):
        given = _pair(bounds, name)
    elif isinstance(bounds, Sequence) and any(isinstance(part, str) for part in bounds):
        given = [_pair(part, name) for part in bounds]
    box = check_bounds(given, name=name, width=width, columns=known)
    # a single pair is a sequence too: its first entry is a number
    one = isinstance(given, PublicRange) or not hasattr(given[0], "__len__")
    pairs = (given if isinstance(given, PublicRange) else tuple(given),) if one else tuple(given)
    pairs = pairs * len(box) if len(pairs) == 1 else pairs
    return ColumnRanges(pairs, tuple(steps_of(pairs, steps, known)), box, known)


def ranges(bounds: object, columns: Sequence[str] | None = None) -> list[Any]:
    """Return the pairs of :func:`resolve`: one range per column, whichever way bounds were given.

    Examples
    --------
    >>> ranges({"stay": (0, 60), "age": "age"}, ["age", "stay"])
    [age: 0 to 125 years, in steps of 1 (the longest documented life was 122 years), (0, 60)]
    >>> ranges({"agee": "age"}, ["age"])
    Traceback (most recent call last):
    ValueError: bounds: there is no column 'agee'; did you mean 'age'?
    """
    return list(resolve(bounds, columns).pairs)


def steps_of(pairs: Sequence[Any], steps: Any, columns: Sequence[str] | None = None) -> list[float | None]:
    """Return one rounding step per column: the one given, or that of a named range where none is.

    Parameters
    ----------
    pairs : sequence
        As :func:`ranges` returns them.
    steps : None, float, sequence or mapping
        One for all columns, one per column, or by name; in a mapping, None makes a column continuous.
    columns : sequence of str, optional

    Examples
    --------
    >>> pairs = ranges({"age": "age", "stay": (0, 60)})
    >>> steps_of(pairs, None), steps_of(pairs, {"age": None, "stay": 1}, ["age", "stay"])
    ([1, None], [None, 1])
    """
    usual = [getattr(pair, "step", None) for pair in pairs]
    if steps is None:
        return usual
    if isinstance(steps, Mapping):
        known = list(columns or ())
        for name in steps:
            if name not in known:
                raise ValueError(f"steps: there is no column {name!r}; there are {', '.join(known)}")
        return [steps.get(name, step) for name, step in zip(known, usual, strict=True)]
    entries = list(steps) if hasattr(steps, "__len__") else [steps]
    return entries * len(pairs) if len(entries) == 1 else entries


def likert(points: int = 5) -> PublicRange:
    """Range of a scale of so many answers, numbered from 1.

    Examples
    --------
    >>> likert(7)
    likert: 1 to 7, in steps of 1 (7 possible answers)
    """
    highest = check_count(points, "points", minimum=2)
    return PublicRange("likert", 1, highest, "", 1, f"{highest} possible answers")


def resolve_bounds(
    bounds: object, columns: Sequence[str] | None = None, *, name: str = "bounds", width: int | None = None
) -> FloatArray:
    """Return the array of :func:`resolve`: one checked (low, high) pair per column.

    Returns
    -------
    array of shape (d, 2)

    Examples
    --------
    >>> resolve_bounds({"stay": (0, 60), "age": "age"}, ["age", "stay"]).tolist()
    [[0.0, 125.0], [0.0, 60.0]]
    >>> resolve_bounds(["age", (0, 60)]).tolist()
    [[0.0, 125.0], [0.0, 60.0]]
    >>> resolve_bounds("percent", width=2).shape
    (2, 2)
    >>> resolve_bounds({"age": "age", "stya": (0, 60)}, ["age", "stay"])
    Traceback (most recent call last):
    ValueError: bounds: there is no column 'stya'; did you mean 'stay'?
    """
    return resolve(bounds, columns, name=name, width=width).box


def bounded_names(bounds: object, columns: Sequence[str] | None = None) -> tuple[str, ...] | None:
    """Names of columns: their own, else those under which a mapping bounds them, else None.

    Examples
    --------
    >>> bounded_names({"age": "age", "stay": (0, 60)}), bounded_names([(0, 60)])
    (('age', 'stay'), None)
    """
    if columns is None and not isinstance(bounds, Mapping):
        return None
    return tuple(map(str, bounds if columns is None and isinstance(bounds, Mapping) else columns or ()))


def _in_order(bounds: Mapping[Any, Any], columns: Sequence[str], name: str) -> list[Any]:
    """Bounds of the columns in their order; every name on either side must be on the other."""
    given = {str(column): part for column, part in bounds.items()}
    if not given:
        raise ValueError(f"{name} must hold a range for each column")
    for column in given:
        if column not in columns:
            raise ValueError(f"{name}: there is no column {column!r}; {nearest(column, columns)}")
    missing = [column for column in columns if column not in given]
    if missing:
        raise ValueError(f"{name}: {missing[0]!r} has no range, and one read from the data would leak it")
    return [_pair(given[column], name) for column in columns]


def _pair(part: object, name: str) -> object:
    """A pair as it is; a name as the range it stands for."""
    if not isinstance(part, str):
        return part
    try:
        return named(part)
    except ValueError as error:
        raise ValueError(f"{name}{str(error).removeprefix('bounds')}") from None


def __getattr__(name: str) -> Callable[[], PublicRange]:
    """Each name of the table is a function: ``units.age()``."""
    # fogline.units.age() reads as the name of a range: no function is written for each
    if name in _TABLE:
        return lambda: _TABLE[name]
    raise AttributeError(f"module 'fogline.units' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_TABLE])
