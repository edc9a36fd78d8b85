r"""Hostile tables: neighbours made of the worst cells, ids and lines that a source can hold.

A table is a list of records, and a *walk* is a list of tables in which each differs from the one before by one record,
added, removed or replaced at any place, or by all records of one unit. Two neighbours on a walk are a pair
(D, D') of the definition of record isolation. What is public about a table (its columns, the line ends of its file, the
size of a row group) is chosen apart from the records and stays the same along a walk.

Every walk draws from a small *palette*: an ordinary value and a few hostile ones, most of them dealt from a shuffled
deck of the whole vocabulary, so that a few dozen walks meet all of it and rare meetings of two features are not drowned
by the others. A counter tells how often each feature was drawn.

The vocabulary of hostile text files: what can stand between two delimiters of a line.

Cells and ids are bytes, put between delimiters as they are. A cell with a line end in it makes several lines of one,
and those are several records: see :func:`fogline_research.audit_campaign.reference_reader.lines_of`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fogline_research.audit_campaign.hostile_cells import CELLS, IDS, MANY_DIGITS, ORDINARY_ID, Box

__all__ = ["GIGANTIC", "LINE_CELLS", "LINE_IDS", "HostileTables", "Record", "Shape", "Step", "Walk", "vocabulary"]

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


@dataclass(frozen=True)
class Record:
    """One row: its cells, and whose it is.

    Parameters
    ----------
    cells : tuple
        One value for each column; a ragged row has more or fewer. For a text file, bytes.
    unit : object
        The id as it is written; ``None`` where there is no unit or the id is missing.
    """

    cells: tuple[Any, ...]
    unit: Any = None


Rows = tuple[Record, ...]


@dataclass(frozen=True)
class Shape:
    """What the records of a table may hold; public.

    Parameters
    ----------
    cells : str
        Kind of the cells: a key of :data:`fogline_research.audit_campaign.hostile_cells.CELLS`, or "line" for a text
        file.
    columns : int
    ids : str or None
        Kind of the ids, a key of :data:`fogline_research.audit_campaign.hostile_cells.IDS` or "line"; None where there
        is no unit.
    has_ragged : bool
        Whether a row may have more or fewer cells than there are columns.
    """

    cells: str
    columns: int = 1
    ids: str | None = None
    has_ragged: bool = False


@dataclass(frozen=True)
class Step:
    """How a table differs from the one before: "add", "remove", "replace", "add unit" or "remove unit"."""

    kind: str
    place: str


@dataclass(frozen=True)
class Walk:
    """Tables of which each is a neighbour of the one before.

    Examples
    --------
    >>> walk = HostileTables(Shape("double"), [(0.0, 10.0)], seed=1).walk(4)
    >>> len(walk.tables), len(walk.steps)
    (5, 4)
    >>> [abs(len(b) - len(a)) <= 1 for a, b in zip(walk.tables, walk.tables[1:])]
    [True, True, True, True]
    """

    tables: tuple[Rows, ...]
    steps: tuple[Step, ...]


def vocabulary(shape: Shape) -> list[str]:
    """Names of all features that tables of a shape are made of.

    Examples
    --------
    >>> "cell: signalling NaN" in vocabulary(Shape("double"))
    True
    """
    names = [f"cell: {name}" for name in _cells(shape.cells)]
    names += [f"id: {name}" for name in _ids(shape.ids)]
    if shape.has_ragged:
        names += [f"row: {name}" for name in RAGGED]
    steps = STEPS if shape.ids is None else STEPS + UNIT_STEPS
    return [*names, "row: duplicate", *(f"step: {step}" for step in steps), *(f"place: {place}" for place in PLACES)]


STEPS = ("add", "remove", "replace")
UNIT_STEPS = ("add unit", "remove unit")
PLACES = ("only", "first", "last", "middle")
RAGGED = ("no cells", "one cell too few", "one cell too many", "many cells")


class HostileTables:
    """A seeded source of walks over tables of one shape.

    Parameters
    ----------
    shape : Shape
    bounds : sequence of (float, float)
        The box; cells lie in it, on its edges and far from it.
    seed : int
    cells_of_axis : int
        Into how many cells the box is cut on each axis: their edges are in the vocabulary.
    decks : dict, optional
        Decks that are shared with generators of other shapes, by the kind of what is dealt.

    Attributes
    ----------
    drawn : Counter
        How often each feature was drawn.
    """

    def __init__(
        self,
        shape: Shape,
        bounds: Sequence[tuple[float, float]],
        seed: int,
        cells_of_axis: int = 32,
        decks: dict[str, list[str]] | None = None,
    ) -> None:
        self.shape = shape
        self.drawn: Counter[str] = Counter(dict.fromkeys(vocabulary(shape), 0))
        self._boxes = [Box(float(lower), float(upper), cells_of_axis) for lower, upper in bounds]
        self._rng = np.random.default_rng(seed)
        self._decks = {} if decks is None else decks
        self._cell_names, self._id_names = list(_cells(shape.cells)), list(_ids(shape.ids))
        self._palette: list[str] = []
        self._id_palette: list[str] = []
        self._ragged: list[str] = []

    def walk(self, steps: int) -> Walk:
        """Draw a table and so many neighbours, each of the one before."""
        self._choose_palettes()
        rng = self._rng
        hostility = rng.choice([0.15, 0.4, 0.8])
        table: Rows = tuple(self._record(hostility) for _ in range(rng.integers(0, 9)))
        tables, made = [table], []
        for _ in range(steps):
            table, step = self._neighbour(table)
            self.drawn.update([f"step: {step.kind}", f"place: {step.place}"])
            tables.append(table)
            made.append(step)
        return Walk(tuple(tables), tuple(made))

    # -- neighbours ---------------------------------------------------------------------------------------------

    def _neighbour(self, table: Rows) -> tuple[Rows, Step]:
        rng = self._rng
        kinds: tuple[str, ...] = STEPS if self.shape.ids is None else STEPS + UNIT_STEPS
        kind = str(rng.choice(kinds if table else [name for name in kinds if name.startswith("add")]))
        if kind == "add unit":
            return self._add_unit(table)
        if kind == "remove unit":
            return self._remove_unit(table)
        place = int(rng.choice([0, len(table), int(rng.integers(0, len(table) + 1))]))
        if kind != "add":
            place = min(place, len(table) - 1)
        name = _place(place, len(table) + (kind == "add"))
        new = () if kind == "remove" else (self._new_record(table),)
        return table[:place] + new + table[place + (kind != "add") :], Step(kind, name)

    def _add_unit(self, table: Rows) -> tuple[Rows, Step]:
        """Give a unit new records, all over the table, in place of those that it has."""
        rng = self._rng
        name = str(rng.choice(self._id_palette))
        variants = _ids(self.shape.ids)[name](rng)
        table = tuple(record for record in table if not _is_among(record.unit, variants))
        self.drawn[f"id: {name}"] += 1
        rows = list(table)
        for _ in range(rng.integers(1, 6)):
            unit = variants[rng.integers(len(variants))]
            rows.insert(int(rng.integers(0, len(rows) + 1)), replace(self._record(0.3), unit=unit))
        return tuple(rows), Step("add unit", "middle")

    def _remove_unit(self, table: Rows) -> tuple[Rows, Step]:
        gone = table[self._rng.integers(len(table))].unit
        left = tuple(record for record in table if not _is_among(record.unit, (gone,)))
        return left, Step("remove unit", "middle")

    # -- records ------------------------------------------------------------------------------------------------

    def _choose_palettes(self) -> None:
        rng = self._rng
        some = rng.choice(self._cell_names, rng.integers(0, 2))
        self._palette = [*(self._dealt(f"cells {self.shape.cells}", self._cell_names) for _ in range(2)), *some]
        if self._id_names:
            dealt = [self._dealt(f"ids {self.shape.ids}", self._id_names) for _ in range(2)]
            self._id_palette = [ORDINARY_ID, *dealt, *rng.choice(self._id_names, rng.integers(0, 2))]
        is_ragged = self.shape.has_ragged and rng.random() < 0.5
        self._ragged = [self._dealt("ragged", list(RAGGED))] if is_ragged else []

    def _dealt(self, kind: str, names: list[str]) -> str:
        """The next feature of a deck, which is shuffled anew when it is used up."""
        deck = self._decks.setdefault(kind, [])
        if not deck:
            deck.extend(map(str, self._rng.permutation(names)))
        return deck.pop()

    def _new_record(self, table: Rows) -> Record:
        """One more record, now and then the same as one that is there."""
        if table and self._rng.random() < 0.1:
            self.drawn["row: duplicate"] += 1
            return table[self._rng.integers(len(table))]
        return self._record(0.7)

    def _record(self, hostility: float) -> Record:
        rng = self._rng
        cells = [self._cell(axis, hostility) for axis in range(self.shape.columns)]
        unit = None
        if self.shape.ids is not None:
            name = str(rng.choice(self._id_palette)) if rng.random() < 0.6 else ORDINARY_ID
            self.drawn[f"id: {name}"] += 1
            variants = _ids(self.shape.ids)[name](rng)
            unit = variants[rng.integers(len(variants))]
        if self._ragged and rng.random() < hostility / 2:
            return self._ragged_record(cells, unit)
        return Record(tuple(cells), unit)

    def _cell(self, axis: int, hostility: float) -> Any:
        rng = self._rng
        name = "ordinary" if rng.random() > hostility else str(rng.choice(self._palette))
        self.drawn[f"cell: {name}"] += 1
        return _cells(self.shape.cells)[name](rng, self._boxes[axis])

    def _ragged_record(self, cells: list[Any], unit: Any) -> Record:
        name = self._ragged[0]
        self.drawn[f"row: {name}"] += 1
        if name == "no cells":
            return Record((), b"" if self.shape.ids == "line" else unit)
        if name == "one cell too few":
            return Record(tuple(cells[:-1]), unit)
        if name == "one cell too many":
            return Record((*cells, cells[0]), unit)
        is_long = isinstance(cells[0], bytes) and len(cells[0]) > 100  # a row of gigantic cells would fill the memory
        return Record((*cells, *([b"5"] if is_long else cells[:1]) * 3000), unit)


def _cells(kind: str) -> Any:
    return LINE_CELLS if kind == "line" else CELLS[kind]


def _ids(kind: str | None) -> Any:
    return {} if kind is None else LINE_IDS if kind == "line" else IDS[kind]


def _place(place: int, size: int) -> str:
    if size == 1:
        return "only"
    return "first" if place == 0 else "last" if place == size - 1 else "middle"


def _is_among(unit: Any, variants: Sequence[Any]) -> bool:
    """Whether an id is one of several, in any of the forms that mean the same unit."""
    from fogline_research.audit_campaign.reference_reader import unit_key

    return any(unit is other or unit_key(unit) == unit_key(other) for other in variants)
