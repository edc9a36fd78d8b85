r"""An independent reader of hostile tables, as simple as can be: what one record is, looked at alone.

It says of a record which cell of the grid it falls into and whose it is, or nothing at all where the rules of a source
leave room (:data:`UNSURE`): then a pair may differ by that record or not, but by nothing else. It shares no code with
the readers that it is compared with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

__all__ = [
    "NOBODY",
    "NOWHERE",
    "UNSURE",
    "Item",
    "cell_of",
    "line_items",
    "lines_of",
    "number",
    "record_item",
    "unit_key",
]

UNSURE = "unsure"
"""In the place of a cell: the reference does not say."""

NOWHERE = None
"""In the place of a cell: the record contributes nothing."""

NOBODY = ("nobody",)
"""The unit of a record whose id is missing."""

_PLAIN_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PLAIN_ID = re.compile(r"0|-?[1-9][0-9]{0,17}")
_SURE_LINE = re.compile(rb"[ -~\t]*")


@dataclass(frozen=True)
class Item:
    """What can be told apart in a source: a record, or a line of a text file.

    Attributes
    ----------
    key : hashable
        The same for the same item in both tables of a pair.
    values : tuple of float or UNSURE
        The numbers, NaN for what is none.
    unit : hashable
        Whose it is.
    """

    key: Hashable
    values: Any
    unit: Hashable = NOBODY


def number(cell: Any, kind: str) -> Any:
    """The number that a cell of a declared kind stands for: NaN where it is none, or UNSURE.

    Examples
    --------
    >>> number(2, "object"), number(None, "double"), number("five", "object"), number("5", "object")
    (2.0, nan, nan, 'unsure')
    """
    if isinstance(cell, float):
        return float(cell)
    if cell is None:
        return math.nan
    if isinstance(cell, bool):
        return float(cell) if kind == "truth" else UNSURE
    if isinstance(cell, int):
        try:
            return float(cell)
        except OverflowError:
            return math.nan
    if isinstance(cell, Decimal) and kind == "decimal":
        return float(cell)
    if isinstance(cell, str) and not re.search(r"\d", cell):
        return math.nan
    return UNSURE


def unit_key(unit: Any) -> Hashable:
    """Whose a record is: the same for ids that mean one unit.

    Examples
    --------
    >>> unit_key(7) == unit_key("7") == unit_key(7.0), unit_key("07") == unit_key("7"), unit_key(float("nan"))
    (True, False, ('nobody',))
    """
    if unit is None or (isinstance(unit, str) and unit == ""):
        return NOBODY
    if isinstance(unit, bool | np.bool_ | bytes):
        return (UNSURE, repr(unit))
    if isinstance(unit, str):
        return ("whole", int(unit)) if _PLAIN_ID.fullmatch(unit) else ("text", unit)
    if isinstance(unit, int | np.integer):
        whole = int(unit)
        return ("whole", whole) if -(2**63) <= whole < 2**63 else (UNSURE, hex(whole))
    if isinstance(unit, float | np.floating):
        is_whole = float(unit).is_integer() and abs(float(unit)) < 2.0**63
        return ("whole", int(unit)) if is_whole else NOBODY
    return (UNSURE, repr(unit))


def record_item(record: Any, kind: str, columns: int) -> Item:
    """A record of a table in memory or in a database."""
    if len(record.cells) != columns:
        values: Any = UNSURE
    else:
        values = _values([number(cell, kind) for cell in record.cells])
    return Item(id(record), values, unit_key(record.unit))


def _values(numbers: list[Any]) -> Any:
    if any(isinstance(x, float) and math.isnan(x) for x in numbers):
        return (math.nan,) * len(numbers)  # whatever the others are, it contributes nothing
    return UNSURE if any(x is UNSURE for x in numbers) else tuple(numbers)


# -- text files -----------------------------------------------------------------------------------------------


def lines_of(content: bytes) -> list[bytes]:
    r"""The lines after the header: a line ends at a line feed, a carriage return, or both together.

    Examples
    --------
    >>> lines_of(b"a,b\r\n1,2\r3,4\n\n5,6")
    [b'1,2', b'3,4', b'', b'5,6']
    """
    lines = re.split(rb"\r\n|\r|\n", content)
    return lines[1:-1] if lines[-1] == b"" else lines[1:]


def line_items(content: bytes, delimiter: bytes, columns: int, unit: int | None) -> list[Item]:
    """Items of a text file: its lines. `unit` is the place of the id, or None; the other places are the columns."""
    return [_line_item(line, delimiter, columns, unit) for line in lines_of(content)]


def _line_item(line: bytes, delimiter: bytes, columns: int, unit: int | None) -> Item:
    if not line.strip(b" "):
        return Item(line, (math.nan,) * columns, NOBODY)
    if not _SURE_LINE.fullmatch(line) or b'"' in line or b"'" in line:
        return Item(line, UNSURE, (UNSURE, line))
    fields = line.split(delimiter)
    key = unit_key(fields.pop(unit).decode()) if unit is not None and unit < len(fields) else NOBODY
    if len(fields) != columns:
        return Item(line, UNSURE if len(fields) > columns else (math.nan,) * columns, key)
    return Item(line, _values([_field(field) for field in fields]), key)


def _field(field: bytes) -> Any:
    if _PLAIN_NUMBER.fullmatch(field) and len(field) < 300:
        return float(field)
    return UNSURE if re.search(rb"[0-9]", field) else math.nan


# -- cells ----------------------------------------------------------------------------------------------------


def cell_of(values: Any, bounds: Sequence[tuple[float, float]], cells: Sequence[int]) -> Any:
    """Flat number of the cell that a row falls into, :data:`NOWHERE` or :data:`UNSURE`.

    Examples
    --------
    >>> cell_of((2.5,), [(0.0, 10.0)], [4]), cell_of((10.0,), [(0.0, 10.0)], [4]), cell_of((11.0,), [(0.0, 10.0)], [4])
    (1, 3, None)
    """
    if values is UNSURE:
        return UNSURE
    flat = 0
    for x, (lower, upper), size in zip(values, bounds, cells, strict=True):
        if not lower <= x <= upper:
            return NOWHERE
        flat = flat * size + min(math.floor((x - lower) / ((upper - lower) / size)), size - 1)
    return flat
