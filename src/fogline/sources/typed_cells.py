"""Records of a profile: each column by its own rule, one cell per column, the same from every source.

A source hands over numbers, and cells of other columns as they are (:attr:`~fogline.sources.tables.Source.texts`).
What becomes of a cell is a function of that cell and of the public plan of its column: the number of a leaf, of a
category, of a day. Nothing is guessed from the data, and no cell is an error.

With a unit, records are first turned into cells and then cut (:mod:`fogline.sources.contributions`): a record that
lacks a value in some columns competes like any other, since it counts in the others and among the missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray, Ids, IntArray, SourceLike
from fogline._validation import check_max_contributions
from fogline.density.column_pairs import CellGroups
from fogline.density.columns import KEY_BYTES, CategoryColumn, ColumnPlan, NumberColumn, day_number, text_key
from fogline.queries.column_counts import magnitude_cells, number_cells, range_cells
from fogline.sources.contributions import ContributionBound, id_cells
from fogline.sources.databases import POSTGRES_DATES, POSTGRES_NUMBERS, declared_types
from fogline.sources.files import INTEGERS, NUMBERS, FileTable, _parquet_schema, inferred_by_pandas
from fogline.sources.passes import label_text
from fogline.sources.paths import ADDRESSES, is_parquet, matching_files
from fogline.sources.registry import _adapter, as_source, table
from fogline.sources.tables import Progress, Source, Take, batch_rows

__all__ = [
    "KEY_WORDS",
    "CellCoder",
    "GroupCoder",
    "RangeCoder",
    "SearchCoder",
    "TypedPasses",
    "category_key",
    "declared_kinds",
    "integers",
    "spelled",
    "typed_source",
    "unspelled",
]

CODED_ROWS = 2**15
"""Rows that are coded at a time: small batches of a reader are put together first."""

MOST_REMEMBERED = 2**16
"""Different cells of a column whose meaning is remembered."""

KEY_WORDS = KEY_BYTES // 6
"""Numbers of 48 bits that spell the key of a category."""


class Coder(Protocol):
    """Turns records into whole numbers; each by itself."""

    @property
    def width(self) -> int:
        """Whole numbers per record."""

    def code(self, numbers: FloatArray, texts: Sequence[list[Any]]) -> FloatArray:
        """Whole numbers below 2^53, of shape (rows, width)."""


# -- rules of single columns ----------------------------------------------------------------------------------


class _Remembered:
    """A rule for single cells with a memory of what it made of frequent ones: speed, and nothing else."""

    def __init__(self, rule: Callable[[object], Any]) -> None:
        self._rule = rule
        self._known: dict[Any, Any] = {}

    def each(self, cells: list[Any]) -> list[Any]:
        """What the rule makes of each cell."""
        known, found = self._known, []
        # a column of all different cells must not fill the memory
        if len(known) > MOST_REMEMBERED:
            known.clear()
        for cell in cells:
            # True equals 1 and "1" does not: the type is part of what is looked up. Other types may define a hash.
            if type(cell) is not str:
                found.append(self._rule(cell))
                continue
            if cell not in known:
                known[cell] = self._rule(cell)
            found.append(known[cell])
        return found


def category_key(cell: object) -> bytes:
    """Key of a cell of categories; empty for what is no category.

    Examples
    --------
    >>> [category_key(cell) for cell in (" f", 3.0, "3", True, None, 2.5)]
    [b'f', b'3', b'3', b'true', b'', b'']
    """
    return text_key(label_text(cell))


class CellCoder:
    """The cell of each record in each column.

    Parameters
    ----------
    plans : sequence of NumberColumn or CategoryColumn
        None of them open.

    Examples
    --------
    >>> coder = CellCoder([NumberColumn("age", (0.0, 9.0), 1.0), CategoryColumn.of("sex", ["f", "m"])])
    >>> coder.code(np.array([[4.0], [np.nan]]), [["m", "x"]]).tolist()
    [[4.0, 1.0], [10.0, 2.0]]
    """

    def __init__(self, plans: Sequence[ColumnPlan]) -> None:
        self.plans = tuple(plans)
        self._days = {plan.name: _Remembered(day_number) for plan in plans if plan.kind == "date"}
        self._categories = {
            plan.name: _Remembered(_cell_of(plan)) for plan in plans if isinstance(plan, CategoryColumn)
        }

    @property
    def width(self) -> int:
        """One per column."""
        return len(self.plans)

    def code(self, numbers: FloatArray, texts: Sequence[list[Any]]) -> FloatArray:
        """Cells of records, as floats that hold whole numbers."""
        found = np.empty((len(numbers), self.width))
        place, text = 0, iter(texts)
        for j, plan in enumerate(self.plans):
            if isinstance(plan, CategoryColumn):
                found[:, j] = self._categories[plan.name].each(next(text))
            elif plan.kind == "date":
                found[:, j] = number_cells(
                    np.array(self._days[plan.name].each(next(text)), dtype=np.float64), plan.spec
                )
            else:
                found[:, j] = number_cells(np.ascontiguousarray(numbers[:, place]), plan.spec)
                place += 1
        return found


def _cell_of(plan: CategoryColumn) -> Callable[[object], int]:
    """Rule for the cells of one column of categories: its place in the list, that of the others, that of none."""
    places = {key: k for k, key in enumerate(plan.keys or ())}
    other, missing = len(places), len(places) + 1

    def cell(given: object) -> int:
        key = category_key(given)
        return places.get(key, other) if key else missing

    return cell


class GroupCoder:
    """The group of each record in each column of a pair; the number of groups where it is in none.

    Parameters
    ----------
    plans : sequence of NumberColumn or CategoryColumn
        None of them open.
    groups : sequence of CellGroups
        One per plan.

    Examples
    --------
    >>> coder = GroupCoder([NumberColumn("age", (0.0, 9.0), 1.0)],
    ...                    [CellGroups("age", np.array([0] * 5 + [1] * 5 + [2] * 3), ("below 5", "5 up"), True)])
    >>> coder.code(np.array([[4.0], [9.0], [np.nan]]), []).tolist()
    [[0.0], [1.0], [2.0]]
    """

    def __init__(self, plans: Sequence[ColumnPlan], groups: Sequence[CellGroups]) -> None:
        self.plans = tuple(plans)
        self._cells = CellCoder(plans)
        self._lookups = [part.of_cell for part in groups]
        if [len(lookup) for lookup in self._lookups] != [plan.cells for plan in self.plans]:
            raise ValueError("groups must tell the group of every cell of each column")

    @property
    def width(self) -> int:
        """One per column."""
        return len(self.plans)

    def code(self, numbers: FloatArray, texts: Sequence[list[Any]]) -> FloatArray:
        """Groups of records, as floats that hold whole numbers."""
        cells = self._cells.code(numbers, texts)
        found = np.empty_like(cells)
        for j in range(self.width):
            found[:, j] = self._lookups[j][cells[:, j].astype(np.int64)]
        return found


class SearchCoder:
    """What a search for ranges and categories looks at: powers of two of numbers, and the keys of categories.

    Parameters
    ----------
    plans : sequence of NumberColumn or CategoryColumn
        All of them open.
    """

    def __init__(self, plans: Sequence[ColumnPlan]) -> None:
        self.plans = tuple(plans)
        self._rules = {
            plan.name: _Remembered(day_number if isinstance(plan, NumberColumn) else category_key)
            for plan in plans
            if plan.kind != "number"
        }

    @property
    def width(self) -> int:
        """One per column of numbers, several per column of categories."""
        return sum(1 if isinstance(plan, NumberColumn) else KEY_WORDS for plan in self.plans)

    def code(self, numbers: FloatArray, texts: Sequence[list[Any]]) -> FloatArray:
        """Whole numbers of records, column after column."""
        found, place, text = [], 0, iter(texts)
        for plan in self.plans:
            if isinstance(plan, CategoryColumn):
                keys = np.array(self._rules[plan.name].each(next(text)), dtype=f"S{KEY_BYTES}")
                found.append(spelled(keys))
                continue
            if plan.kind == "date":
                values = np.array(self._rules[plan.name].each(next(text)), dtype=np.float64)
            else:
                values, place = np.ascontiguousarray(numbers[:, place]), place + 1
            found.append(magnitude_cells(values)[:, None].astype(np.float64))
        return np.concatenate(found, axis=1)


class RangeCoder:
    """Cells of coarse ranges that were found.

    Parameters
    ----------
    plans : sequence of NumberColumn
    ranges : sequence of (float, float)
        From released counts.
    """

    def __init__(self, plans: Sequence[NumberColumn], ranges: Sequence[tuple[float, float]]) -> None:
        self.plans, self.ranges = tuple(plans), tuple(ranges)
        self._days = {plan.name: _Remembered(day_number) for plan in plans if plan.kind == "date"}

    @property
    def width(self) -> int:
        """One per column."""
        return len(self.plans)

    def code(self, numbers: FloatArray, texts: Sequence[list[Any]]) -> FloatArray:
        """Cells of records."""
        found = np.empty((len(numbers), self.width))
        place, text = 0, iter(texts)
        for j, (plan, ends) in enumerate(zip(self.plans, self.ranges, strict=True)):
            if plan.kind == "date":
                values = np.array(self._days[plan.name].each(next(text)), dtype=np.float64)
            else:
                values, place = np.ascontiguousarray(numbers[:, place]), place + 1
            found[:, j] = range_cells(values, *ends)
        return found


def spelled(keys: NDArray[np.bytes_]) -> FloatArray:
    """Keys of categories as whole numbers of 48 bits, shape (rows, KEY_WORDS).

    Examples
    --------
    >>> unspelled(spelled(np.array([b"north", b""], dtype="S48"))).tolist()
    [b'north', b'']
    """
    signs = np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), KEY_WORDS, 6)
    padded = np.zeros((len(keys), KEY_WORDS, 8), dtype=np.uint8)
    # 48 bits in the lower part of a big-endian word: every word is a whole number below 2^53
    padded[..., 2:] = signs
    return padded.view(">u8")[..., 0].astype(np.float64)


def unspelled(words: FloatArray) -> NDArray[np.bytes_]:
    """Inverse of :func:`spelled`."""
    signs = words.astype(">u8")[..., None].view(np.uint8).reshape(len(words), KEY_WORDS, 8)[..., 2:]
    return np.ascontiguousarray(signs).reshape(len(words), KEY_BYTES).view(f"S{KEY_BYTES}")[:, 0]


# -- passes ---------------------------------------------------------------------------------------------------


class _CodedSource(Source):
    """Some columns of a source as whole numbers."""

    def __init__(self, source: Source, coder: Coder, places: Sequence[int] | None) -> None:
        super().__init__(None, coder.width, source.unit_column)
        self._inner, self._coder, self._places = source, coder, None if places is None else list(places)
        self._failure, self._row = source._failure, source._row
        # whoever cuts units may have to read twice
        self.rereadable = source.rereadable

    def _scan(self, take: Take) -> None:
        waiting: list[tuple[FloatArray, list[list[Any]], Ids | None]] = []
        most = min(CODED_ROWS, batch_rows(self._coder.width))

        def hand_over() -> None:
            if waiting:
                rows = np.concatenate([batch[0] for batch in waiting])
                texts = [
                    [cell for part in column for cell in part] for column in zip(*(b[1] for b in waiting), strict=True)
                ]
                ids = waiting[0][2]
                waiting.clear()
                take(self._coder.code(rows if self._places is None else rows[:, self._places], texts), ids)

        def put_together(rows: FloatArray, texts: Sequence[Ids], ids: Ids | None) -> None:
            waiting.append((rows, [id_cells(cells) for cells in texts], ids))
            # Ids are of one type per batch, so with a unit batches stay as they came.
            if ids is not None or sum(len(batch[0]) for batch in waiting) >= most:
                hand_over()

        # Not guarded here: who cuts units ends a pass that grows too large, and begins anew with fewer units.
        self._inner._counted_typed_scan(put_together)
        hand_over()

    def _counted_scan(self, take: Take) -> None:
        """The rows that were read are told by the source itself."""
        self._scan(take)


class TypedPasses:
    """Passes over the columns of a profile: errors of the schema come when the source is made.

    Parameters
    ----------
    source : Source
        Of :func:`typed_source`.
    names : sequence of str
        Of its columns of numbers, in their order; they may be made up where the source has none.
    max_contributions : int
        Most records of a unit that count, where the source has a unit.

    Examples
    --------
    >>> source = typed_source(np.array([[1.0, 5.0], [2.0, 6.0]]), [], [])
    >>> passes, seen = TypedPasses(source, ["a", "b"], 1), []
    >>> passes.run(CellCoder([NumberColumn("b", (0.0, 9.0), 1.0)]), seen.append)
    >>> [cells.tolist() for cells in seen]
    [[[5.0], [6.0]]]
    """

    def __init__(self, source: Source, names: Sequence[str], max_contributions: int) -> None:
        most = check_max_contributions(max_contributions)
        # Drawn once and before anything else, so that an audit can replay the choice.
        self._bound = None if source.unit_column is None else ContributionBound.draw(most)
        self._source: Source | None = source
        self._names = tuple(names)

    def run(
        self, coder: CellCoder | GroupCoder | SearchCoder | RangeCoder, take: Callable[[FloatArray], object]
    ) -> None:
        """Hand over the records as whole numbers, of the coder's columns alone, in batches of shape (rows, width)."""
        if self._source is None:
            raise RuntimeError("these passes are over")
        numbers = [plan.name for plan in coder.plans if plan.kind == "number"]
        texts = tuple(plan.name for plan in coder.plans if plan.kind != "number")
        source, places = self._source, None
        if source.columns is None:
            places = [self._names.index(name) for name in numbers]
        else:
            # the caller's table keeps its columns
            source = source.__copy__()
            source.columns, source._width, source.texts = tuple(numbers), len(numbers), texts
        coded: Source = _CodedSource(source, coder, places)
        if self._bound is not None:
            coded = coded._bounded(self._bound)
        coded.each_batch(take)

    @property
    def rereadable(self) -> bool:
        """Whether the source can be read more than once."""
        return self._source is not None and self._source.rereadable

    def forget(self) -> None:
        """Let go of the source: an error's traceback must not lead to the records."""
        self._source = None


# -- schemas --------------------------------------------------------------------------------------------------

Kind = str | None
"""What a schema declares of a column: "number", "integer", "boolean", "date" or "text"; None for nothing."""


def declared_kinds(
    source: SourceLike, *, query: str | None = None, reading: dict[str, Any] | None = None
) -> dict[str, Kind] | None:
    """Names of a source's columns and what its schema declares of them; None where columns have no names.

    A text file declares names alone. Types are part of the schema, which is public; no record is looked at.

    A pandas frame on numpy types declares names alone too: pandas chose those types by what the cells hold, so that one
    record may change them. The same goes for a Parquet file that pandas wrote of such a frame. Nullable types, types of
    Arrow and categories were chosen by somebody, and count.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": pd.Series([], dtype="Int64"), "sex": pd.Series([], dtype="string"), "fee": []})
    >>> declared_kinds(frame)
    {'age': 'integer', 'sex': 'text', 'fee': None}
    >>> declared_kinds(np.zeros((3, 2))) is None
    True
    """
    if isinstance(source, Source):
        return None if source.columns is None else dict.fromkeys(source.columns, "number")
    if _is_database(source):
        return {name: _database_kind(kind) for name, kind in declared_types(source, query)}
    if query is not None:
        raise TypeError("query is for databases, by a connection or an address")
    if isinstance(source, str | Path):
        files = matching_files(source)
        if is_parquet(files[0]):
            schema = _parquet_schema(files)
            inferred = inferred_by_pandas(files, [name for name, _ in schema])
            return {name: None if name in inferred else _duckdb_kind(kind) for name, kind in schema}
        return dict.fromkeys(FileTable(source, **(reading or {})).columns)
    if _adapter(source) is not None:
        found = as_source(source)
        return None if found.columns is None else dict.fromkeys(map(str, found.columns), "number")  # type: ignore[attr-defined]
    if hasattr(source, "collect_batches") or hasattr(source, "columns") or hasattr(source, "schema"):
        return _frame_kinds(source)
    return None


def _is_database(source: SourceLike) -> bool:
    return (isinstance(source, str) and source.startswith(ADDRESSES)) or _adapter(source) == "fogline.sources.databases"


def _duckdb_kind(kind: str) -> Kind:
    bare = kind.split("(")[0].upper()
    if bare in INTEGERS:
        return "integer"
    if bare == "BOOLEAN":
        return "boolean"
    if bare in NUMBERS:
        return "number"
    return "date" if bare.startswith(("DATE", "TIMESTAMP")) else "text" if bare in ("VARCHAR", "UUID", "ENUM") else None


def _database_kind(kind: object) -> Kind:
    """Kind of a declared type: a number of Postgres, a name of SQLite."""
    if isinstance(kind, int):
        name = POSTGRES_NUMBERS.get(kind)
        if name is not None:
            return {"boolean": "boolean", "bigint": "integer", "smallint": "integer", "integer": "integer"}.get(
                name, "number"
            )
        return "date" if kind in POSTGRES_DATES else "text"
    # SQLite goes by parts of the declared word, in this order
    word = str(kind).upper()
    if "INT" in word:
        return "integer"
    if any(part in word for part in ("CHAR", "CLOB", "TEXT")):
        return "text"
    if "DATE" in word or "TIME" in word:
        return "date"
    return "boolean" if "BOOL" in word else None if not word or "BLOB" in word else "number"


def _frame_kinds(frame: SourceLike) -> dict[str, Kind]:
    import narwhals as nw

    given: Any = frame
    try:
        known = nw.from_native(given)
    except TypeError:
        raise TypeError(f"X must be an array, a frame, a path or a table, got {type(frame).__name__}") from None
    schema = known.collect_schema()
    # types of pandas may have been chosen by what the cells hold
    types = list(given.dtypes) if known.implementation.is_pandas_like() else [None] * len(schema)

    def kind_of(kind: nw.dtypes.DType) -> Kind:
        word = str(kind).split("(")[0]
        if kind.is_integer():
            return "integer"
        if kind.is_numeric():
            return "number"
        return {"Boolean": "boolean", "Date": "date", "Datetime": "date"}.get(word, "text")

    return {
        str(name): None if _is_inferred(native) else kind_of(kind)
        for (name, kind), native in zip(schema.items(), types, strict=True)
    }


def _is_inferred(dtype: object) -> bool:
    """Whether a type of pandas is one that pandas itself chooses by what the cells hold; None is no type of pandas."""
    nullable = repr(getattr(dtype, "na_value", None)) == "<NA>"
    return not (dtype is None or nullable or hasattr(dtype, "pyarrow_dtype") or str(dtype) == "category")


def typed_source(
    source: SourceLike,
    numbers: Sequence[str],
    texts: Sequence[str],
    *,
    unit: str | Ids | None = None,
    query: str | None = None,
    progress: Progress | None = None,
    reading: dict[str, Any] | None = None,
) -> Source:
    """Table of some columns of numbers and some that are read cell by cell; errors of the schema come here.

    Parameters
    ----------
    source : SourceLike
        Whatever :func:`fogline.table` takes.
    numbers, texts : sequence of str
        Names of the columns; no names for an array, of which all columns count.
    unit, query, progress
        As for :func:`fogline.table`.
    reading : dict, optional
        How a text file is read.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [3, 4], "sex": ["f", None]})
    >>> typed_source(frame, ["age"], ["sex"]).texts
    ('sex',)
    """
    from fogline.sources.databases import adapt
    from fogline.sources.frames import FrameTable

    how = reading or {}
    if isinstance(source, Source):
        if texts or unit is not None or query is not None or how:
            raise TypeError("source is a table already, of numbers: pass the source itself, and name its columns here")
        return source if source.columns is None else source[list(numbers)]
    if not texts:
        named = None if not numbers else list(numbers)
        return table(source, named, query=query, unit=unit, progress=progress, **how)
    if _is_database(source):
        return adapt(source, list(numbers), query=query, unit=_name(unit), progress=progress, texts=texts)
    if isinstance(source, str | Path):
        return FileTable(source, list(numbers), unit=_name(unit), progress=progress, texts=texts, **how)
    # A lazy frame is asked for nothing here: to tell its columns it would compute its schema, and say so.
    is_lazy = hasattr(source, "collect_batches") or _adapter(source) is not None
    if is_lazy or not (hasattr(source, "columns") or hasattr(source, "schema")):
        raise TypeError(
            "columns: dates and categories are read from files, data frames in memory and databases; "
            "cast them to numbers first, or write the table to Parquet"
        )
    return FrameTable(source, list(numbers), unit, progress, texts=texts)


def _name(unit: str | Ids | None) -> str | None:
    if unit is not None and not isinstance(unit, str):
        raise TypeError("unit must be the name of a column")
    return unit


def integers(cells: FloatArray) -> IntArray:
    """Whole numbers that were handed over as floats; all of them are below 2^53."""
    return cells.astype(np.int64)
