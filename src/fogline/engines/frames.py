"""Tables in memory and streams: numpy, scipy.sparse, any frame that narwhals knows, Arrow, DuckDB relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fogline._validation import records
from fogline.engines.cell_sql import quoted
from fogline.engines.duck import scan_batches
from fogline.engines.tables import BATCH_ROWS, Progress, Table, Take, chosen_columns

__all__ = ["ArrayTable", "FrameTable", "StreamTable", "adapt"]


def adapt(source: Any, columns: Sequence[str] | None, unit: Any, progress: Progress | None) -> Table:
    """Table of anything that is not a path, a database or a cluster's."""
    kind = type(source).__module__.partition(".")[0]
    if kind in ("duckdb", "_duckdb"):
        return _relation(source, columns, unit, progress)
    if hasattr(source, "read_next_batch") or hasattr(source, "collect_batches"):
        return _stream(source, columns, unit, progress)
    if hasattr(source, "columns") or hasattr(source, "schema"):
        return FrameTable(source, columns, unit, progress)
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "__array__"):
        return _stream(source, columns, unit, progress)
    if columns is not None:
        raise TypeError("columns: an array has no names of columns; pass the columns that are wanted")
    return ArrayTable(source, unit, progress)


class ArrayTable(Table):
    """A numpy array, a list of records, or a sparse matrix, whose zeros are values like any other.

    Parameters
    ----------
    array : array of shape (n, d)
    ids : array of shape (n,), optional
        Whose record each row is.
    progress : callable, optional
    """

    def __init__(self, array: Any, ids: Any = None, progress: Progress | None = None) -> None:
        self._sparse = hasattr(array, "tocsr")
        self._array = _whole_array(array)
        if self._sparse:
            if self._array.ndim != 2:
                raise ValueError(f"X must have two dimensions (records, columns), got {self._array.ndim}")
            records(self._array[:0].toarray())
        if isinstance(ids, str):
            raise TypeError("unit: an array has no names of columns; pass the ids, one for each row")
        self._ids = None if ids is None else _id_array(ids)
        if self._ids is not None and len(self._ids) != self._array.shape[0]:
            raise ValueError("unit must have one id for each row")
        super().__init__(None, int(self._array.shape[1]), None if ids is None else "unit", progress)

    def _scan(self, take: Take) -> None:
        for start in range(0, self._array.shape[0], BATCH_ROWS):
            here = slice(start, start + BATCH_ROWS)
            rows = self._array[here]
            take(records(rows.toarray() if self._sparse else rows), None if self._ids is None else self._ids[here])


def _whole_array(array: Any) -> Any:
    return array.tocsr() if hasattr(array, "tocsr") else records(array)


class FrameTable(Table):
    """Some columns of a data frame: pandas, polars, Arrow, and what else narwhals knows.

    Parameters
    ----------
    frame : data frame
    columns : sequence of str, optional
    unit : str or array of ids, optional
    progress : callable, optional
    """

    def __init__(self, frame: Any, columns: Sequence[str] | None, unit: Any, progress: Progress | None) -> None:
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
        names = [str(name) for name in self._frame.columns]
        self._column = nw.col
        self._labels = dict(zip(names, self._frame.columns, strict=True))  # pandas may name columns by numbers
        column = unit if isinstance(unit, str) else None
        chosen = chosen_columns(columns, column, names)
        self._given = None if unit is None or column is not None else _id_array(unit)
        if self._given is not None and len(self._given) != len(self._frame):
            raise ValueError("unit must have one id for each row")
        super().__init__(chosen, len(chosen), "unit" if self._given is not None else column, progress)
        records(self._chosen(self._frame.head(0)))
        if column is not None:
            kind = self._frame.schema[self._labels[column]]
            if not (kind.is_integer() or kind.is_float() or str(kind).split("(")[0] in TEXTS):
                raise TypeError(f"unit: column {column!r} holds {kind}, not integers or texts")

    def _scan(self, take: Take) -> None:
        for start in range(0, len(self._frame), BATCH_ROWS):
            part = self._frame[start : start + BATCH_ROWS]
            take(records(self._chosen(part)), self._ids(part, start))

    def _chosen(self, part: Any) -> Any:
        return part.select([self._column(self._labels[name]) for name in self.columns or ()]).to_native()

    def _ids(self, part: Any, start: int) -> Any:
        if self._given is not None:
            return self._given[start : start + len(part)]
        if self.unit_column is None:
            return None
        return column_ids(part[self._labels[self.unit_column]])


def column_ids(column: Any) -> Any:
    """Ids of a column that narwhals knows: integers as they are, since a gap would make floats of them."""
    whole = column.dtype.is_integer() and not column.is_null().any()
    return column.to_numpy() if whole else column.to_list()


TEXTS = ("String", "Categorical", "Enum", "Object")


class StreamTable(Table):
    """Batches of Arrow that come one by one.

    Parameters
    ----------
    open_batches : callable
        Opens the stream of the named columns: an iterable of Arrow batches.
    schema : pyarrow.Schema
    columns, unit, progress
        As for :func:`fogline.engines.table`.
    rereadable : bool
        Whether the stream can be opened again.
    """

    def __init__(
        self,
        open_batches: Callable[[list[str]], Iterable[Any]],
        schema: Any,
        columns: Sequence[str] | None,
        unit: Any,
        progress: Progress | None,
        *,
        rereadable: bool,
    ) -> None:
        chosen = chosen_columns(columns, unit, list(schema.names))
        super().__init__(chosen, len(chosen), unit, progress)
        self._open = open_batches
        self.rereadable = rereadable
        self._is_open = False
        empty = schema.empty_table()
        records(empty.select(list(chosen)))
        if unit is not None:
            require_id_type(schema.field(unit).type, unit)

    def _scan(self, take: Take) -> None:
        if self._is_open and not self.rereadable:
            raise RuntimeError("the stream was read before")
        self._is_open = True
        has_unit = self.unit_column is not None
        wanted = [*(self.columns or ()), *([self.unit_column] if self.unit_column is not None else [])]
        scan_batches((batch.select(wanted) for batch in self._open(wanted)), take, has_unit=has_unit)


def require_id_type(kind: Any, unit: str) -> None:
    """Raise an error unless an Arrow type is one of ids."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_large_string)
    if not any(test(kind) for test in (*tests, pa.types.is_string_view)):
        raise TypeError(f"unit: column {unit!r} holds {kind}, not integers or texts")


def _stream(source: Any, columns: Any, unit: Any, progress: Any) -> Table:
    """An Arrow reader, anything that can export an Arrow stream, or a lazy polars frame."""
    import pyarrow as pa

    if hasattr(source, "collect_batches"):
        schema = source.head(0).collect().to_arrow().schema

        def collect(names: list[str]) -> Iterable[Any]:
            for frame in source.select(names).collect_batches(chunk_size=BATCH_ROWS):
                yield from frame.to_arrow().to_batches(max_chunksize=BATCH_ROWS)

        return StreamTable(collect, schema, columns, unit, progress, rereadable=True)
    if hasattr(source, "read_next_batch"):
        return StreamTable(lambda _: source, source.schema, columns, unit, progress, rereadable=False)
    schema = (
        pa.schema(source) if hasattr(source, "__arrow_c_schema__") else pa.RecordBatchReader.from_stream(source).schema
    )
    return StreamTable(
        lambda _: pa.RecordBatchReader.from_stream(source), schema, columns, unit, progress, rereadable=True
    )


def _relation(relation: Any, columns: Any, unit: Any, progress: Any) -> Table:
    """A DuckDB relation."""
    if not hasattr(relation, "project"):
        raise TypeError("X: pass a relation of DuckDB, such as connection.sql('SELECT ...'), not the connection")

    def open_batches(names: list[str]) -> Iterable[Any]:
        reader: Iterable[Any] = relation.project(", ".join(map(quoted, names))).to_arrow_reader(BATCH_ROWS)
        return reader

    schema = relation.limit(0).to_arrow_table().schema
    return StreamTable(open_batches, schema, columns, unit, progress, rereadable=True)


def _id_array(ids: Any) -> Any:
    """Ids of rows as something that can be cut into batches: a numpy or Arrow array."""
    if hasattr(ids, "to_pylist"):
        return ids
    if isinstance(ids, np.ma.MaskedArray):
        ids = np.ma.filled(ids.astype(object), np.nan)  # which is no id
    array = np.asarray(ids.to_numpy() if hasattr(ids, "to_numpy") else ids)
    if array.dtype.kind == "f" and not isinstance(ids, np.ndarray):  # integers with gaps, rounded
        array = np.array(list(ids), dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "iufUO":
        raise TypeError("unit must be one column of integers or texts")
    return array
