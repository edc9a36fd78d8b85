"""Tables in memory and streams: numpy, scipy.sparse, any frame that narwhals knows, Arrow, DuckDB relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._typing import FloatArray, Ids, SourceLike, is_arrow
from fogline._validation import contained, records
from fogline.sources.cell_sql import quoted
from fogline.sources.contributions import cells_alone, escaped
from fogline.sources.files import IDS, NUMBERS, PLAIN_IDS, has_arrow, require_kind, scan_batches
from fogline.sources.tables import (
    BATCH_ROWS,
    Progress,
    Source,
    Take,
    TypedTake,
    chosen_columns,
    typed_columns,
    unit_name,
)

if TYPE_CHECKING:
    import duckdb
    import narwhals as nw
    import polars as pl
    import pyarrow as pa

__all__ = [
    "ArrayTable",
    "FrameTable",
    "LazyTable",
    "ListTable",
    "PartTable",
    "RelationTable",
    "StreamTable",
    "adapt",
    "numbers_or_missing",
]


def adapt(
    source: SourceLike, columns: Sequence[str] | None, unit: str | Ids | None, progress: Progress | None
) -> Source:
    """Table of anything that is not a path, a database or a cluster's."""
    kind = type(source).__module__.partition(".")[0]
    given: Any = source  # told by what it has: its library may not be installed here
    if kind in ("duckdb", "_duckdb"):
        return RelationTable(given, columns, unit_name(unit), progress)
    if hasattr(source, "collect_batches"):
        return LazyTable(given, columns, unit, progress)
    if hasattr(source, "read_next_batch"):
        return _stream(given, columns, unit_name(unit), progress)
    if hasattr(source, "columns") or hasattr(source, "schema"):
        return FrameTable(source, columns, unit, progress)
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "__array__"):
        return _stream(given, columns, unit_name(unit), progress)
    if columns is not None:
        raise TypeError("columns: an array has no names of columns; pass the columns that are wanted")
    plain = isinstance(source, Sequence) and not isinstance(source, str | bytes) and not hasattr(source, "__array__")
    return (ListTable if plain else ArrayTable)(given, unit, progress)


class ArrayTable(Source):
    """A numpy array, a list of records, or a sparse matrix, whose zeros are values like any other.

    Parameters
    ----------
    array : array of shape (n, d)
    ids : array of shape (n,), optional
        Whose record each row is.
    progress : callable, optional
    """

    def __init__(self, array: ArrayLike, ids: str | Ids | None = None, progress: Progress | None = None) -> None:
        given: Any = array
        self._sparse = hasattr(array, "tocsr")
        self._array: Any = given.tocsr() if self._sparse else records(array)
        if self._sparse:
            if self._array.ndim != 2:
                raise ValueError(f"X must have two dimensions (records, columns), got {self._array.ndim}")
            none: Any = self._array[:0]
            records(none.toarray())
        self._ids = _given_ids(ids, self._array.shape[0])
        super().__init__(None, int(self._array.shape[1]), None if ids is None else "unit", progress)

    def _scan(self, take: Take) -> None:
        for start in range(0, self._array.shape[0], BATCH_ROWS):
            here = slice(start, start + BATCH_ROWS)
            rows = self._array[here]
            take(records(rows.toarray() if self._sparse else rows), None if self._ids is None else self._ids[here])


class ListTable(Source):
    """A plain list of records, which declares nothing: how many columns there are, the bounds say.

    Parameters
    ----------
    rows : sequence
    ids : array of shape (n,), optional
        Whose record each row is.
    progress : callable, optional
    """

    def __init__(self, rows: Sequence[Any], ids: str | Ids | None = None, progress: Progress | None = None) -> None:
        # A sequence that cannot be cut would fail with its first record, and pass without one.
        unreadable = "X must be an array, a frame or a list of records"
        self._rows = (
            rows if isinstance(rows, list | tuple) else contained(lambda: list(rows), lambda: TypeError(unreadable))
        )
        self._ids = _given_ids(ids, len(self._rows))
        super().__init__(None, None, None if ids is None else "unit", progress)

    def _scan(self, take: Take) -> None:
        for start in range(0, len(self._rows), BATCH_ROWS):
            here = slice(start, start + BATCH_ROWS)
            take(records(self._rows[here], self.width), None if self._ids is None else self._ids[here])


class FrameTable(Source):
    """Some columns of a data frame: pandas, polars, Arrow, and what else narwhals knows.

    Parameters
    ----------
    frame : data frame
    columns : sequence of str, optional
    unit : str or array of ids, optional
    progress : callable, optional
    texts : sequence of str, optional
        Columns that are handed over cell by cell, whatever they hold.
    """

    def __init__(
        self,
        frame: SourceLike,
        columns: Sequence[str] | None,
        unit: str | Ids | None,
        progress: Progress | None,
        *,
        texts: Sequence[str] = (),
        _declared: bool = True,
    ) -> None:
        try:
            import narwhals as nw
        except ImportError:
            raise ImportError("columns of a frame need narwhals: pip install narwhals") from None
        if hasattr(frame, "schema") and hasattr(frame, "to_struct_array") and not hasattr(frame, "combine_chunks"):
            import pyarrow as pa

            frame = pa.Table.from_batches([frame])  # one batch, which narwhals does not know
        try:
            self._frame: Any = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise TypeError(f"X must be an array, a frame, a path or a table, got {type(frame).__name__}") from None
        except nw.exceptions.NarwhalsError:
            raise ValueError("X: names of columns must differ") from None
        if any(isinstance(label, tuple) for label in self._frame.columns):
            raise TypeError("X: names of columns must be texts, and not of several levels")
        names = [str(name) for name in self._frame.columns]
        self._column = nw.col
        # Errors and public facts use texts; the frame itself is asked by its own labels.
        self._labels = dict(zip(names, self._frame.columns, strict=True))  # pandas may name columns by numbers
        column = unit if isinstance(unit, str) else None
        chosen, self.texts = typed_columns(columns, texts, column, names)
        self._given = _given_ids(None if column is not None else unit, len(self._frame))
        super().__init__(chosen, len(chosen), "unit" if self._given is not None else column, progress)
        if _declared:
            self._require_kinds(column)

    def _require_kinds(self, column: str | None) -> None:
        """Raise an error unless the declared types are those of numbers, and the unit's one of ids."""
        # On no rows: whether this fails depends on declared types, not on a record.
        if self.columns:
            records(self._chosen(self._frame.head(0)))
        if column is not None:
            kind = self._frame.schema[self._labels[column]]
            if not (kind.is_integer() or kind.is_float() or str(kind).split("(")[0] in TEXTS):
                raise TypeError(f"unit: column {column!r} holds {kind}, not integers or texts")

    def _scan(self, take: Take) -> None:
        for start in range(0, len(self._frame), BATCH_ROWS):
            part = self._frame[start : start + BATCH_ROWS]
            take(self._numbers(part), self._ids(part, start))

    def _scan_typed(self, take: TypedTake) -> None:
        for start in range(0, len(self._frame), BATCH_ROWS):
            part = self._frame[start : start + BATCH_ROWS]
            numbers = self._numbers(part) if self.columns else np.empty((len(part), 0))
            take(numbers, [column_ids(part[self._labels[name]]) for name in self.texts], self._ids(part, start))

    def _numbers(self, part: nw.DataFrame[Any]) -> FloatArray:
        return records(self._chosen(part))

    def _chosen(self, part: nw.DataFrame[Any]) -> Any:
        return part.select([self._column(self._labels[name]) for name in self.columns or ()]).to_native()

    def _ids(self, part: nw.DataFrame[Any], start: int) -> Ids | None:
        if self._given is not None:
            return self._given[start : start + len(part)]
        if self.unit_column is None:
            return None
        return column_ids(part[self._labels[self.unit_column]])


class PartTable(FrameTable):
    """A frame that is a part of another whose types were declared: what it holds instead is a matter of its cells.

    A part may have types of its own, as a partition of Dask whose column has one text among its numbers. They were
    decided by records, so they cannot be refused: a column that holds no numbers is a column of missing values.

    Parameters
    ----------
    frame, columns, unit
        As for :class:`FrameTable`.
    """

    def __init__(self, frame: SourceLike, columns: Sequence[str] | None, unit: str | Ids | None) -> None:
        super().__init__(frame, columns, unit, None, _declared=False)

    def _numbers(self, part: nw.DataFrame[Any]) -> FloatArray:
        chosen = self._chosen(part)
        columns = [chosen[[label]] for label in (self._labels[name] for name in self.columns or ())]
        return np.column_stack([numbers_or_missing(column, 1) for column in columns])


def numbers_or_missing(part: Sized, width: int) -> FloatArray:
    """Records of a part of a source, without a value where its type is none of numbers."""
    try:
        return records(part, width)
    except (TypeError, ValueError):
        return np.full((len(part), width), np.nan)


def column_ids(column: nw.Series[Any]) -> Ids:
    """Ids of a column that narwhals knows: integers as they are, since a gap would make floats of them."""
    whole = column.dtype.is_integer() and not column.is_null().any()
    return column.to_numpy() if whole else _listed(column.to_native())


def _listed(column: object) -> Ids:
    """Cells of a column one by one; a column on Arrow as Arrow's, since a text need not be UTF-8."""
    if is_arrow(column):
        return column
    series: Any = column  # of pandas or polars
    on_arrow = hasattr(series.dtype, "pyarrow_dtype") or getattr(series.dtype, "storage", None) == "pyarrow"
    if on_arrow:
        cells: Ids = series.array.__arrow_array__()
        return cells
    if str(series.dtype).split("(")[0] in POLARS_TEXTS and not hasattr(series, "iloc"):
        return _polars_texts(series)
    place = getattr(series, "iloc", series)
    return cells_alone(series.to_list, range(len(series)), lambda i: place[i])


def _polars_texts(series: pl.Series) -> list[str | None]:
    """Texts of polars by their bytes: one that is not UTF-8 would make polars print an error of its own."""
    import polars as pl

    cells = series.cast(pl.String).cast(pl.Binary).to_list()
    return [None if cell is None else escaped(cell) for cell in cells]


POLARS_TEXTS = ("String", "Categorical", "Enum")
TEXTS = (*POLARS_TEXTS, "Object")


class LazyTable(Source):
    """A lazy frame of polars, computed batch by batch; before that it tells its schema and nothing else.

    Parameters
    ----------
    frame : polars.LazyFrame
    columns, unit, progress
        As for :func:`fogline.sources.registry.table`.
    """

    def __init__(
        self, frame: pl.LazyFrame, columns: Sequence[str] | None, unit: str | Ids | None, progress: Progress | None
    ) -> None:
        if unit is not None and not isinstance(unit, str):
            raise TypeError("unit: of a lazy frame, name the column of the ids")
        # Polars' own message may quote the query, and what is in it.
        schema = contained(frame.collect_schema, lambda: ValueError("X: polars cannot tell the columns of this query"))
        declared = FrameTable(schema.to_frame(), columns, unit, None)
        super().__init__(declared.columns, declared.width, unit, progress)
        self._frame = frame

    def _scan(self, take: Take) -> None:
        unit = [] if self.unit_column is None else [self.unit_column]
        for part in self._frame.select([*(self.columns or ()), *unit]).collect_batches(chunk_size=BATCH_ROWS):
            FrameTable(part, self.columns, self.unit_column, None)._scan(take)


class StreamTable(Source):
    """Batches of Arrow that come one by one.

    Parameters
    ----------
    open_batches : callable
        Opens the stream of the named columns: an iterable of Arrow batches.
    schema : pyarrow.Schema
    columns, unit, progress
        As for :func:`fogline.sources.registry.table`.
    rereadable : bool
        Whether the stream can be opened again.
    """

    def __init__(
        self,
        open_batches: Callable[[list[str]], Iterable[Any]],
        schema: pa.Schema,
        columns: Sequence[str] | None,
        unit: str | None,
        progress: Progress | None,
        *,
        rereadable: bool,
    ) -> None:
        chosen = chosen_columns(columns, unit, list(schema.names))
        super().__init__(chosen, len(chosen), unit, progress)
        self._open = open_batches
        self.rereadable = rereadable
        self._is_open = False
        # Checked on an empty table, so that no batch is read before the guarantee is fixed.
        empty = schema.empty_table()
        records(empty.select(list(chosen)))
        if unit is not None:
            require_id_type(schema.field(unit).type, unit)

    def _scan(self, take: Take) -> None:
        # A second pass over a spent stream would count no records, and say so as if there were none.
        if self._is_open and not self.rereadable:
            raise RuntimeError("the stream was read before")
        self._is_open = True
        has_unit = self.unit_column is not None
        wanted = [*(self.columns or ()), *([self.unit_column] if self.unit_column is not None else [])]
        scan_batches((batch.select(wanted) for batch in self._open(wanted)), take, has_unit=has_unit)


def require_id_type(kind: pa.DataType, unit: str) -> None:
    """Raise an error unless an Arrow type is one of ids."""
    if not _is_id_type(kind):
        raise TypeError(f"unit: column {unit!r} holds {kind}, not integers or texts")


def _is_id_type(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    kinds = ("integer", "floating", "string", "large_string", "string_view", "null")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in kinds)


def _stream(
    source: pa.RecordBatchReader, columns: Sequence[str] | None, unit: str | None, progress: Progress | None
) -> Source:
    """An Arrow reader, or anything that can export an Arrow stream."""
    import pyarrow as pa

    if hasattr(source, "read_next_batch"):
        return StreamTable(lambda _: source, source.schema, columns, unit, progress, rereadable=False)

    def read_schema() -> pa.Schema:
        has_schema = hasattr(source, "__arrow_c_schema__")
        return pa.schema(source) if has_schema else pa.RecordBatchReader.from_stream(source).schema

    schema = contained(read_schema, lambda: ValueError("X: its Arrow stream cannot be opened"))
    return StreamTable(
        lambda _: pa.RecordBatchReader.from_stream(source), schema, columns, unit, progress, rereadable=True
    )


class RelationTable(Source):
    """Some columns of a relation of DuckDB: before it is run it tells its schema and nothing else.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    columns, unit, progress
        As for :func:`fogline.sources.registry.table`.
    """

    def __init__(
        self,
        relation: duckdb.DuckDBPyRelation,
        columns: Sequence[str] | None,
        unit: str | None,
        progress: Progress | None,
    ) -> None:
        if not hasattr(relation, "project"):
            raise TypeError("X: pass a relation of DuckDB, such as connection.sql('SELECT ...'), not the connection")
        if not has_arrow():
            raise ImportError("relations of DuckDB need pyarrow: pip install 'fogline[arrow]'")
        kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
        chosen = chosen_columns(columns, unit, list(relation.columns))
        super().__init__(chosen, len(chosen), unit, progress)
        for name in chosen:
            require_kind(f"columns: column {name!r}", kinds[name], NUMBERS, "numbers")
        if unit is not None:
            require_kind(f"unit: column {unit!r}", kinds[unit], IDS, "integers or texts")
        self._relation = relation
        self._unit_text = unit is not None and kinds[unit] not in (*PLAIN_IDS, "VARCHAR")

    def _scan(self, take: Take) -> None:
        # TRY_CAST, not CAST: one cell that is no number must be missing and must not fail the query.
        wanted = [f"TRY_CAST({quoted(name)} AS DOUBLE) AS x{j}" for j, name in enumerate(self.columns or ())]
        if self.unit_column is not None:
            wanted.append(f"{quoted(self.unit_column)}{'::VARCHAR' if self._unit_text else ''} AS unit")
        reader = self._relation.project(", ".join(wanted)).to_arrow_reader(BATCH_ROWS)
        scan_batches(reader, take, has_unit=self.unit_column is not None)


def _given_ids(ids: object, rows: int) -> Ids | None:
    """Ids of rows as something that can be cut into batches, one for each row; None where there are none."""
    if ids is None:
        return None
    if isinstance(ids, str | bytes):
        raise TypeError("unit: an array has no names of columns; pass the ids, one for each row")
    found = _id_array(ids)
    if len(found) != rows:
        raise ValueError("unit must have one id for each row")
    return found


def _id_array(ids: object) -> Ids:
    """Ids of rows as an array of numpy or Arrow: what an array declares stays, a list is taken cell by cell.

    A list becomes an array of objects: made an array of texts, one text in it would turn every integer into another id.
    """
    if is_arrow(ids):
        if not _is_id_type(ids.type):
            raise TypeError(f"unit must be one column of integers or texts, got type {ids.type}")
        return ids
    if isinstance(ids, np.ma.MaskedArray):
        return _object_array([None if cell is np.ma.masked else cell for cell in ids])
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1 or ids.dtype.kind not in "iufUO":
            raise TypeError("unit must be one column of integers or texts")
        return np.asarray(ids)
    if not (isinstance(ids, Sequence) or hasattr(ids, "dtype")):
        raise TypeError("unit must be one column of integers or texts")
    of_frame = hasattr(ids, "dtype") and hasattr(ids, "to_list")
    refusal = "unit must be one column of integers or texts"
    iterable: Any = ids
    cells = contained(lambda: _listed(ids) if of_frame else list(iterable), lambda: TypeError(refusal))
    return _id_array(cells) if is_arrow(cells) else _object_array(cast("Sequence[object]", cells))


def _object_array(cells: Sequence[Any]) -> NDArray[np.object_]:
    array = np.empty(len(cells), dtype=np.object_)
    for i, cell in enumerate(cells):  # one by one: numpy would make a table of cells that are lists of one length
        array[i] = cell
    return array
