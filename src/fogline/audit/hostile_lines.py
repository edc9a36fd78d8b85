"""The vocabulary of hostile text files: what can stand between two delimiters of a line.

Cells and ids are bytes, put between delimiters as they are. A cell with a line end in it makes several lines of one,
and those are several records: see :func:`fogline.audit.reference_reader.lines_of`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fogline.audit.hostile_cells import MANY_DIGITS, ORDINARY_ID, Box

__all__ = ["GIGANTIC", "LINE_CELLS", "LINE_IDS"]

Rng = np.random.Generator
MakeCell = Callable[[Rng, Box], bytes]
MakeIds = Callable[[Rng], tuple[bytes, ...]]

GIGANTIC = 2_500_000
"""Bytes of a line that is longer than a CSV reader's usual limit."""


def _number(rng: Rng, box: Box) -> bytes:
    return repr(round(box.inside(rng), int(rng.integers(0, 17)))).encode()


def _with(pattern: bytes) -> MakeCell:
    """A number within something: the sign # stands for it."""
    return lambda rng, box: pattern.replace(b"#", _number(rng, box))


def _constant(value: bytes) -> MakeCell:
    return lambda rng, box: value  # noqa: ARG005


LINE_CELLS: dict[str, MakeCell] = {
    "ordinary": _number,
    "edge of a cell": lambda rng, box: repr(box.edge(rng)).encode(),
    "just below an edge": lambda rng, box: repr(float(np.nextafter(box.edge(rng), -np.inf))).encode(),
    "outside": lambda rng, box: repr(box.upper + float(rng.uniform(1, 100))).encode(),
    "upper bound": lambda rng, box: repr(box.upper).encode(),  # noqa: ARG005
    "whole number": lambda rng, box: str(box.whole(rng)).encode(),
    "many decimals": lambda rng, box: _number(rng, box) + b"1" * 400 if box.lower else b"0." + b"1" * 400,
    "exponent": _constant(b"25e-1"),
    "huge exponent": _constant(b"1e999"),
    "negative zero": _constant(b"-0.0"),
    "subnormal": _constant(b"5e-324"),
    "5000 digits": _constant(b"1" * MANY_DIGITS),
    "NaN": _constant(b"nan"),
    "infinity": _constant(b"-Infinity"),
    "empty": _constant(b""),
    "spaces": _constant(b"  "),
    "text": _constant(b"five"),
    "word for missing": _constant(b"NA"),
    "NULL": _constant(b"NULL"),
    "spaces around": _with(b" # "),
    "plus sign": _constant(b"+2.5"),
    "no leading digit": _constant(b".5"),
    "hexadecimal": _constant(b"0x1p1"),
    "underscore": _constant(b"1_0"),
    "other digits": _constant("٣".encode()),
    "decimal comma": _constant(b"2,5"),
    "semicolon": _constant(b"2;5"),
    "tab": _constant(b"2\t5"),
    "quoted": _with(b'"#"'),
    "delimiter in quotes": _constant(b'"2,5"'),
    "doubled quotes": _constant(b'"2""5"'),
    "open quote": _with(b'"#'),
    "quote at the end": _with(b'#"'),
    "quote within": _constant(b'2"5'),
    "lone quote": _constant(b'"'),
    "text after the quote": _with(b'"#"x'),
    "single quotes": _with(b"'#'"),
    "backslash": _constant(b'"2\\"5"'),
    "line feed in quotes": _with(b'"#\n#"'),
    "carriage return in quotes": _with(b'"#\r#"'),
    "both in quotes": _with(b'"#\r\n#"'),
    "lone carriage return": _with(b"#\r#"),
    "carriage return at the end": _with(b"#\r"),
    "two carriage returns": _constant(b"\r\r"),
    "line feed then carriage return": _with(b"#\n\r#"),
    "blank lines": _constant(b"\n\n\r\n\r"),
    "NUL": _constant(b"\x00"),
    "NUL within": _constant(b"2\x005"),
    "bad UTF-8": _constant(b"\xff\xfe2"),
    "cut UTF-8": _constant(b"\xe2\x82"),
    "Latin-1 letter": _constant(b"2\xe9"),
    "BOM in the middle": _with(b"\xef\xbb\xbf#"),
    "unicode line separator": _with("#\u2028#".encode()),
    "next line sign": _with("#\u0085#".encode()),
    "vertical tab and form feed": _with(b"#\x0b#\x0c#"),
    "separators of files": _with(b"#\x1c#\x1d#\x1e#"),
    "unit separator": _with(b"#\x1f#"),
    "end of file sign": _with(b"#\x1a#"),
    "comment": _constant(b"#2"),
    "long cell": _constant(b"7" * 70_000),
    "gigantic line": lambda rng, box: b"x" * (GIGANTIC if rng.random() < 0.1 else 140_000),  # noqa: ARG005
}
"""Makers of cells of text files, by the name of their feature."""


def _only(value: bytes) -> MakeIds:
    return lambda rng: (value,)  # noqa: ARG005


def _person(rng: Rng) -> bytes:
    return str(int(rng.integers(1, 6))).encode()


LINE_IDS: dict[str, MakeIds] = {
    ORDINARY_ID: lambda rng: (_person(rng),),
    "zero padded": lambda rng: (b"0" + _person(rng),),
    "name": _only(b"Ann"),
    "quoted name": _only(b'"Ann, B."'),
    "empty": _only(b""),
    "5000 digits": _only(b"1" * MANY_DIGITS),
    "beyond int64": _only(b"9223372036854775808"),
    "bad UTF-8": lambda rng: (b"\xff" + _person(rng),),
    "NUL": _only(b"7\x00"),
    "euro sign": _only("€".encode()),
    "open quote": _only(b'"7'),
    "lone carriage return": lambda rng: (_person(rng) + b"\r",),
    "line feed in quotes": _only(b'"7\n7"'),
    "BOM": _only(b"\xef\xbb\xbf7"),
    "text of a float": lambda rng: (_person(rng) + b".0",),
    "unicode line separator": _only("7\u2028".encode()),
    "spaces": _only(b" "),
}
"""Makers of ids of text files: the bytes that mean one unit."""
