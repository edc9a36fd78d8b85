"""The vocabulary of hostile tables in memory: cells and ids of every declared type, and of none.

A kind of cells is what a column declares: doubles, singles, whole numbers, truth values, decimals, or nothing at all
("object"), which may hold anything. A maker takes a generator and the box of its axis and gives one cell.

A kind of ids likewise. A maker of ids gives all the values of that kind that mean one and the same unit, by the rule of
:mod:`fogline.sources.contributions`: 7, "7" and 7.0 are one unit, "07" is another, None, "" and NaN are nobody.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["CELLS", "IDS", "MANY_DIGITS", "ORDINARY_ID", "Box", "Unreadable", "bits"]

Rng = np.random.Generator
MakeCell = Callable[[Rng, "Box"], Any]
MakeIds = Callable[[Rng], tuple[Any, ...]]

MANY_DIGITS = 5000
"""Digits of an integer that Python itself refuses to print."""

ORDINARY_ID = "whole number"


@dataclass(frozen=True)
class Box:
    """One axis: its bounds and into how many cells it is cut."""

    lower: float
    upper: float
    cells: int

    def inside(self, rng: Rng) -> float:
        """A number well inside."""
        return float(rng.uniform(self.lower, self.upper))

    def edge(self, rng: Rng) -> float:
        """The lower edge of a cell, as nearly as a double can say it."""
        return self.lower + int(rng.integers(0, self.cells + 1)) * ((self.upper - self.lower) / self.cells)

    def whole(self, rng: Rng) -> int:
        """A whole number inside, or nearly."""
        return int(rng.integers(int(np.ceil(self.lower)), int(np.floor(self.upper)) + 1))


class Unreadable:
    """An object that is no number and says so aloud, whatever it is asked."""

    def __float__(self) -> float:
        raise ZeroDivisionError("a cell")

    def __repr__(self) -> str:
        return "Unreadable()"


def bits(pattern: int) -> float:
    """The double with these 64 bits."""
    return float(struct.unpack("<d", struct.pack("<Q", pattern))[0])


def _constant(value: Any) -> MakeCell:
    return lambda rng, box: value  # noqa: ARG005


DOUBLES: dict[str, MakeCell] = {
    "ordinary": lambda rng, box: box.inside(rng),
    "whole number": lambda rng, box: float(box.whole(rng)),
    "edge of a cell": lambda rng, box: box.edge(rng),
    "just below an edge": lambda rng, box: float(np.nextafter(box.edge(rng), -np.inf)),
    "just above an edge": lambda rng, box: float(np.nextafter(box.edge(rng), np.inf)),
    "lower bound": lambda rng, box: box.lower,  # noqa: ARG005
    "upper bound": lambda rng, box: box.upper,  # noqa: ARG005
    "just outside": lambda rng, box: float(np.nextafter(box.upper, np.inf)),  # noqa: ARG005
    "outside": lambda rng, box: box.upper + float(rng.uniform(1, 100)),
    "below": lambda rng, box: box.lower - float(rng.uniform(1, 100)),
    "NaN": _constant(bits(0x7FF8000000000000)),
    "negative NaN": _constant(bits(0xFFF8000000000000)),
    "signalling NaN": _constant(bits(0x7FF0000000000001)),
    "NaN with a payload": lambda rng, box: bits(0x7FF8000000000000 + int(rng.integers(1, 2**40))),  # noqa: ARG005
    "infinity": _constant(float("inf")),
    "negative infinity": _constant(float("-inf")),
    "negative zero": _constant(-0.0),
    "subnormal": _constant(5e-324),
    "tiny": _constant(1e-308),
    "huge": _constant(1e308),
    "largest double": _constant(float(np.finfo(np.float64).max)),
    "beyond 2^53": _constant(2.0**53 + 2),
}

INTEGERS: dict[str, MakeCell] = {
    "ordinary": lambda rng, box: box.whole(rng),
    "outside": lambda rng, box: box.whole(rng) + 1000,
    "below": lambda rng, box: box.whole(rng) - 1000,
    "zero": _constant(0),
    "beyond 2^53": _constant(2**53 + 1),
    "largest int64": _constant(2**63 - 1),
    "least int64": _constant(-(2**63)),
}

MISSING: dict[str, MakeCell] = {"missing": _constant(None)}

DECIMALS: dict[str, MakeCell] = {
    "ordinary": lambda rng, box: Decimal(box.whole(rng)) + Decimal("0.125"),
    "outside": _constant(Decimal("123456.5")),
    "below": _constant(Decimal("-123456.5")),
    "zero": _constant(Decimal("0.000")),
    **MISSING,
}

NOTHING_DECLARED: dict[str, MakeCell] = {
    **MISSING,
    "integer": INTEGERS["ordinary"],
    "integer beyond 2^53": _constant(2**53 + 1),
    "integer beyond int64": _constant(2**64 + 1),
    "integer of 5000 digits": _constant(10**MANY_DIGITS),
    "text": _constant("five"),
    "empty text": _constant(""),
    "text of a number": lambda rng, box: repr(box.inside(rng)),
    "long text": _constant("x" * 5000),
    "text with NUL": _constant("2\x005"),
    "lone surrogate": _constant("\udcff"),
    "true": _constant(True),
    "false": _constant(False),
    "numpy truth value": _constant(np.bool_(True)),
    "decimal": lambda rng, box: Decimal(repr(box.inside(rng))),
    "decimal NaN": _constant(Decimal("NaN")),
    "signalling decimal NaN": _constant(Decimal("sNaN")),
    "huge decimal": _constant(Decimal("1e5000")),
    "fraction": lambda rng, box: Fraction(box.whole(rng)),
    "huge fraction": _constant(Fraction(10**MANY_DIGITS, 3)),
    "date": _constant(datetime.date(2020, 1, 2)),
    "date and time": _constant(datetime.datetime(2020, 1, 2, 3)),
    "bytes": _constant(b"\xff\xfe"),
    "bytes of a number": _constant(b"2.5"),
    "complex": _constant(1j),
    "list": _constant([2.5]),
    "empty list": _constant([]),
    "array of no dimension": lambda rng, box: np.array(box.inside(rng)),
    "array of two": lambda rng, box: np.array([box.inside(rng)] * 2),
    "numpy double": lambda rng, box: np.float64(box.inside(rng)),
    "numpy single": lambda rng, box: np.float32(box.inside(rng)),
    "numpy long double": lambda rng, box: np.longdouble(box.inside(rng)),
    "huge long double": _constant(np.longdouble("1e4000")),
    "numpy integer": lambda rng, box: np.int8(box.whole(rng)),
    "numpy date": _constant(np.datetime64("NaT", "s")),
    "unreadable object": _constant(Unreadable()),
    "class": _constant(int),
}


def _single(make: MakeCell) -> MakeCell:
    def made(rng: Rng, box: Box) -> float:
        with np.errstate(all="ignore"):
            return float(np.float32(make(rng, box)))

    return made


CELLS: Mapping[str, Mapping[str, MakeCell]] = {
    "double": DOUBLES,
    "double or missing": {**DOUBLES, **MISSING},
    "single": {name: _single(make) for name, make in DOUBLES.items() if name != "signalling NaN"},
    "integer": INTEGERS,
    "integer or missing": {**INTEGERS, **MISSING},
    "unsigned": {
        "ordinary": lambda rng, box: max(box.whole(rng), 0),
        "outside": _constant(12345),
        "largest uint64": _constant(2**64 - 1),
    },
    "truth": {"ordinary": lambda rng, box: bool(rng.integers(2))},  # noqa: ARG005
    "decimal": DECIMALS,
    "object": {**DOUBLES, **NOTHING_DECLARED},
}
"""Makers of cells by what their column declares, by the name of their feature."""


def _person(rng: Rng) -> int:
    return int(rng.integers(1, 6))


def _only(value: Any) -> MakeIds:
    return lambda rng: (value,)  # noqa: ARG005


INTEGER_IDS: dict[str, MakeIds] = {
    ORDINARY_ID: lambda rng: (_person(rng),),
    "zero": _only(0),
    "negative": _only(-7),
    "beyond 2^53": lambda rng: (2**53 + _person(rng),),
    "largest int64": _only(2**63 - 1),
    "least int64": _only(-(2**63)),
}

TEXT_IDS: dict[str, MakeIds] = {
    ORDINARY_ID: lambda rng: (str(_person(rng)),),
    "zero padded": lambda rng: (f"0{_person(rng)}",),
    "name": _only("Ann"),
    "space before": lambda rng: (f" {_person(rng)}",),
    "line break": _only("a\nb"),
    "quote": _only('"'),
    "empty text": _only(""),
    "euro sign": _only("€"),
    "beyond Latin": _only("名前"),
    "unicode line separator": _only("\u2028"),
    "beyond int64": _only("9223372036854775808"),
    "5000 digits": _only("1" * MANY_DIGITS),
    "text of a float": lambda rng: (f"{_person(rng)}.0",),
    "text of NaN": _only("nan"),
    "plus sign": lambda rng: (f"+{_person(rng)}",),
    "other digits": _only("٣"),
    "minus zero": _only("-0"),
}

MISSING_IDS: dict[str, MakeIds] = {"missing": _only(None)}
NUL_IDS: dict[str, MakeIds] = {"NUL at the end": lambda rng: (f"{_person(rng)}\x00",), "NUL": _only("\x00")}

OBJECT_IDS: dict[str, MakeIds] = {
    **TEXT_IDS,
    **NUL_IDS,
    **MISSING_IDS,
    ORDINARY_ID: lambda rng: (_person(rng),),
    "one number in three types": lambda rng: (p := _person(rng), str(p), float(p)),
    "NaN": _only(float("nan")),
    "signalling NaN": _only(bits(0x7FF0000000000001)),
    "fraction of a number": _only(2.5),
    "infinity": _only(float("inf")),
    "integer beyond int64": _only(2**63 + 1),
    "integer of 5000 digits": _only(10**MANY_DIGITS),
    "lone surrogate": _only("\udcff"),
    "bytes": _only(b"\xff"),
    "truth value": _only(True),
    "decimal": _only(Decimal(7)),
    "date": _only(datetime.date(2020, 1, 2)),
    "list": _only([1]),
    "numpy integer": lambda rng: (np.int16(_person(rng)),),
    "unreadable object": _only(Unreadable()),
}

IDS: Mapping[str, Mapping[str, MakeIds]] = {
    "integer": INTEGER_IDS,
    "integer or missing": {**INTEGER_IDS, **MISSING_IDS},
    "unsigned": {ORDINARY_ID: INTEGER_IDS[ORDINARY_ID], "largest uint64": _only(2**64 - 1)},
    "double": {
        ORDINARY_ID: lambda rng: (float(_person(rng)),),
        "NaN": _only(float("nan")),
        "signalling NaN": _only(bits(0x7FF0000000000001)),
        "fraction of a number": _only(2.5),
        "infinity": _only(float("inf")),
        "huge": _only(1e300),
        "two to the 63": _only(2.0**63),
    },
    "text": TEXT_IDS,
    "text or missing": {**TEXT_IDS, **MISSING_IDS, **NUL_IDS},
    "text without NUL": {**TEXT_IDS, **MISSING_IDS},
    "text of any bytes": {
        **TEXT_IDS,
        **MISSING_IDS,
        **NUL_IDS,
        "bad UTF-8": lambda rng: (b"\xff" + str(_person(rng)).encode(),),
        "cut UTF-8": _only(b"\xe2\x82"),
        "surrogate as UTF-8": _only(b"\xed\xb3\xbf"),
    },
    "object": OBJECT_IDS,
}
"""Makers of ids by what their column declares; "text of any bytes" holds bytes where they are not UTF-8."""
