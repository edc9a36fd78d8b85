"""CSV and Parquet files in one pass and constant memory: text line by line, Parquet by DuckDB.

Text is cut and read by :mod:`fogline.sources.text_lines`, whose unit is the line. Of Parquet the cells of records are
counted here, batch by batch, or by a ``GROUP BY`` in DuckDB where there is no Arrow; both evaluate the double-precision
expression of :mod:`fogline.queries.fourier_sums`, so the counts are the same integers. What is wrong with the schema of
a file (no such file, no such column, a text column in Parquet, a header that cannot be read or looks like values) is a
clear error; what is wrong with its cells or lines is not known to anyone: a cell that is no number is missing.

A line of a text file is a record. Quotes are honoured within a line and nowhere else: a quote that is never closed
must not swallow the lines after it, since one record could then remove many. A quoted cell with a line break in it is
therefore two lines, of which the first is read as far as it goes.

DuckDB reads Parquet in batches, through Arrow where pyarrow is installed. Columns of doubles without a unit are decoded
by pyarrow alone, which takes half as long and, of many columns, half of the memory; so is a file with a column of text
ids: DuckDB fails on a file in which one text is not UTF-8. :class:`CountedFile` has a number of rows that its owner
declares, for algorithms that need a public one.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from threading import Event, Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fogline._typing import ArrowBatch, FloatArray, Ids, SourceLike
from fogline._validation import check_count, records, source_text
from fogline.density.random_spec import CellSpec, Spec
from fogline.queries.fourier_sums import CellCounts
from fogline.sources.cell_sql import DUCKDB, DUCKDB_NARROW, CellSql, quoted
from fogline.sources.paths import is_parquet, matching_files
from fogline.sources.reading import ReadingOptions, require_text_source
from fogline.sources.tables import (
    BATCH_ROWS,
    Progress,
    ReadFailed,
    Source,
    State,
    Take,
    TypedTake,
    batch_rows,
    cores,
    typed_columns,
)
from fogline.sources.text_lines import Header, Layout, blocks_of, opened, read_header, scan_blocks, scan_typed_blocks

if TYPE_CHECKING:
    import duckdb
    import pyarrow.parquet as pq

__all__ = [
    "CountedFile",
    "FileTable",
    "ReadFailed",
    "common_header",
    "connect",
    "count_doubles",
    "has_arrow",
    "matching_files",
    "path_literals",
    "require_arrow_for_texts",
    "require_duckdb",
    "rows_of",
    "scan_batches",
    "scan_query",
    "scan_text_ids",
]

CLOSED: dict[str, str | int | float | list[str]] = {
    "disabled_optimizers": "statistics_propagation,filter_pushdown",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_file_cache": False,
}
"""No extension is fetched, and of a file nothing is kept after the pass.

No expression is decided by the statistics of a Parquet file, and no filter is handed to the scan, which knows them:
writers leave NaN out of them, so that one record far away would switch all records with a NaN on or off, and a column
that is constant but for NaN would count as constant.
"""

ARROW_ROWS = 2**15
"""Rows of a batch that pyarrow decodes: two columns of them stay in a core's cache."""

BUFFER_BYTES = 2**20
"""Bytes of a column that pyarrow reads at a time; else it would hold whole row groups."""

FOOTER_LIMIT = 2**31 - 1
"""Longest text and most elements of a footer that pyarrow takes, its own most. By default it refuses a text of 100 MB,
which statistics of one long value may be, and a million row groups: one record would decide whether a pass fails."""

_databases: dict[bool, duckdb.DuckDBPyConnection] = {}
_opening = Lock()


def require_duckdb() -> ModuleType:
    """Return the library, or say what to install."""
    try:
        import duckdb
    except ImportError:
        raise ImportError("reading files needs DuckDB: pip install 'fogline[cli]'") from None
    return duckdb


def connect(*, ordered: bool = True) -> duckdb.DuckDBPyConnection:
    """A connection to a database in memory that hands over a file's rows in their order, or in any, for less memory.

    To start a database takes as long as to count some millions of rows, so one is kept for either order, empty.
    """
    duckdb = require_duckdb()
    # Under a lock: two threads would else start two databases and leave one of them open.
    with _opening:
        if ordered not in _databases:
            _databases[ordered] = duckdb.connect(config={**CLOSED, "preserve_insertion_order": ordered})
        connection = _databases[ordered].cursor()
    connection.execute("SET enable_progress_bar = false")  # how long reading takes is nobody's business
    return connection


def _close_databases() -> None:
    """Leave no database to a forked process, which would wait for threads that it does not have; keeps the lock."""
    _opening.acquire()
    while _databases:
        _databases.popitem()[1].close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_databases, after_in_parent=_opening.release, after_in_child=_opening.release)


def has_arrow() -> bool:
    """Whether batches can come through Arrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def scan_query(
    sql: str, take: Take, *, has_unit: bool, ordered: bool = True, by_column: bool = False, rows_each: int = BATCH_ROWS
) -> None:
    """Hand over the rows of a query of doubles; the last column is the unit's id, if there is a unit.

    With `by_column` the numbers of a batch lie column by column, which is cheaper. What sums up rows in floating point
    must not ask for it: it could round otherwise than for rows that lie row by row.
    """
    connection = connect(ordered=ordered)
    try:
        if has_arrow():
            batches = connection.sql(sql).to_arrow_reader(rows_each)
            scan_batches(batches, take, has_unit=has_unit, by_column=by_column)
            return
        connection.execute(sql)
        while rows := connection.fetchmany(rows_each):
            ids = [row[-1] for row in rows] if has_unit else None
            numbers = [row[:-1] for row in rows] if has_unit else rows
            take(np.array(numbers, dtype=np.float64), ids)
    finally:
        connection.close()


def scan_batches(batches: Iterable[ArrowBatch], take: Take, *, has_unit: bool, by_column: bool = False) -> None:
    """Hand over Arrow batches; the last column is the unit's id, if there is a unit.

    `by_column`: all are doubles, and whoever takes a batch is done with it before the next, which lies in its place.
    """
    place = np.empty(0)
    for batch in batches:
        width = batch.num_columns - has_unit
        ids = batch.column(width) if has_unit else None
        if by_column:
            size = width * batch.num_rows
            if size > len(place):
                place = np.empty(size)
            columns = place[:size].reshape(width, batch.num_rows)
            for j in range(width):
                columns[j] = batch.column(j).to_numpy(zero_copy_only=False)
            take(columns.T, ids)
        else:
            take(records(batch.select(list(range(width)))), ids)


def require_arrow_for_texts(unit: str) -> None:
    """Say what to install; before anything is paid, since without it one record would decide whether reading fails."""
    if not has_arrow():
        raise ImportError(
            f"unit: column {unit!r} holds texts, which pyarrow reads from Parquet: pip install 'fogline[arrow]'; "
            "or write the ids as integers"
        )


def scan_text_ids(files: Sequence[Path], columns: Sequence[str], unit: str, take: Take) -> None:
    """Hand over rows of Parquet files, with their ids as Arrow's texts.

    Parameters
    ----------
    files : sequence of Path
    columns : sequence of str
        Of numbers.
    unit : str
        Of texts.
    take : callable
        :data:`fogline.sources.tables.Take`.
    """
    for batch in _declared_batches(files, [*columns, unit]):
        take(records(batch.select(list(columns))), batch.column(unit))


def _declared_batches(
    files: Sequence[Path], columns: Sequence[str], *, rows_each: int = BATCH_ROWS, use_threads: bool = True
) -> Iterator[ArrowBatch]:
    """Batches of Parquet files; an error at the end of a file unless it had as many rows as it declares."""
    for path in files:
        with _opened_parquet(path) as file:
            file.schema_arrow.empty_table().select(list(columns))  # fails with no rows as it would with some
            found = 0
            for batch in file.iter_batches(rows_each, columns=list(columns), use_threads=use_threads):
                found += batch.num_rows
                yield batch.select(list(columns))
            _require_rows(file, range(file.num_row_groups), found)


def _opened_parquet(path: Path) -> pq.ParquetFile:
    """Open a Parquet file by pyarrow, for batches, whatever its footer holds of single values."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        path,
        pre_buffer=False,
        buffer_size=BUFFER_BYTES,
        thrift_string_size_limit=FOOTER_LIMIT,
        thrift_container_size_limit=FOOTER_LIMIT,
    )


def _require_rows(file: pq.ParquetFile, groups: Iterable[int], found: int) -> None:
    """Raise an error unless some row groups had as many rows as the file declares.

    pyarrow leaves out a page of a kind that it does not know, and says nothing.
    """
    if found != sum(file.metadata.row_group(group).num_rows for group in groups):
        raise ReadFailed("rows are missing")


def count_doubles(files: Sequence[Path], columns: Sequence[str], names: Sequence[str], spec: CellSpec) -> State | None:
    """Exact counts of columns of doubles: pyarrow decodes them at half the cost of DuckDB, in threads of our own.

    Nothing is decided by statistics of the files, which leave out NaN: all rows are read. Sums of whole numbers do not
    depend on how threads share the row groups.

    Parameters
    ----------
    files : sequence of Path
    columns, names : sequence of str
        The wanted columns, and all of them as DuckDB has them.
    spec : SketchSpec or LeafSpec

    Returns
    -------
    (keys, counts) or None
        None where pyarrow reads the schema of a file otherwise than DuckDB does.
    """
    from concurrent.futures import ThreadPoolExecutor

    shared = _groups_of_doubles(files, columns, names)
    if shared is None:
        return None
    threads, total, stopped = max(1, min(cores(), shared[-1][1].stop)), CellCounts(spec), Event()

    def count(share: int) -> State:
        counts = CellCounts(spec)
        for path, groups in shared:
            own = [group - groups.start for group in groups if group % threads == share]
            if own and not stopped.is_set():
                _count_groups(path, own, columns, counts, stopped)
        return counts.state()

    if threads == 1:
        return count(0)
    with ThreadPoolExecutor(threads) as pool:
        try:
            for state in pool.map(count, range(threads)):
                total.add_state(*state)
        finally:
            stopped.set()  # before the end of the block waits for them: nobody wants the rest any more
    return total.state()


def _groups_of_doubles(
    files: Sequence[Path], columns: Sequence[str], names: Sequence[str]
) -> list[tuple[Path, range]] | None:
    """The row groups of each file, numbered over all of them; None unless pyarrow finds doubles by these names, too."""
    import pyarrow as pa

    shared: list[tuple[Path, range]] = []
    for path in files:
        with _opened_parquet(path) as file:
            schema, first = file.schema_arrow, shared[-1][1].stop if shared else 0
            if schema.names != list(names) or any(schema.field(name).type != pa.float64() for name in columns):
                return None
            shared.append((path, range(first, first + file.num_row_groups)))
    return shared


def _count_groups(path: Path, groups: list[int], columns: Sequence[str], counts: CellCounts, stopped: Event) -> None:
    """Count the rows of some row groups of a file; an error unless there are as many as the file declares."""
    found = 0

    def take(rows: FloatArray, _: Ids | None) -> None:
        nonlocal found
        counts.add_rows(rows)
        found += len(rows)

    with _opened_parquet(path) as file:
        batches = file.iter_batches(ARROW_ROWS, row_groups=groups, columns=list(columns), use_threads=False)
        scan_batches(itertools.takewhile(lambda _: not stopped.is_set(), batches), take, has_unit=False, by_column=True)
        if not stopped.is_set():
            _require_rows(file, groups, found)


def require_arrow(what: str) -> None:
    """Say what to install; before anything is paid."""
    if not has_arrow():
        raise ImportError(f"{what}: pip install 'fogline[arrow]'")


def scan_typed_parquet(
    files: Sequence[Path], columns: Sequence[str], texts: Sequence[str], unit: str | None, take: TypedTake
) -> None:
    """Hand over rows of Parquet files with the cells of some columns as Arrow has them.

    Parameters
    ----------
    files : sequence of Path
    columns, texts : sequence of str
        Of numbers, and of whatever else.
    unit : str or None
    take : callable
        :data:`fogline.sources.tables.TypedTake`.
    """
    for batch in _declared_batches(files, [*columns, *texts, *(() if unit is None else (unit,))]):
        numbers = records(batch.select(list(columns))) if columns else np.empty((batch.num_rows, 0))
        take(numbers, [batch.column(name) for name in texts], None if unit is None else batch.column(unit))


SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
INTEGERS = (*SIGNED, *(f"U{name}" for name in SIGNED))
NUMBERS = (*INTEGERS, "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
IDS = (*INTEGERS, "FLOAT", "DOUBLE", "VARCHAR", "UUID", "ENUM")
CELLS = (
    *IDS,
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP_S",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
)
"""Types of columns that are read cell by cell: categories and dates."""
PLAIN_IDS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "FLOAT", "DOUBLE")
"""Types of ids that need no text to be the same everywhere."""

Schema = tuple[tuple[str, str], ...]
"""Names of columns and their types; a text file declares none."""


class FileTable(Source):
    """Some columns of a CSV or Parquet file, or of many alike.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv`` or ``.txt`` file, perhaps compressed (``.csv.gz``, ``.csv.zst``), or a ``.parquet`` file; a
        pattern such as ``visits/*.csv``; or a folder, of which all such files count, with those of its folders. Files
        must have the same columns.
    columns : sequence of str, optional
        Names of the columns, in the order of the bounds; by default all of the file's, but the unit's.
    unit : str, optional
        Name of the column that says whose record a row is.
    progress : callable, optional
        Told the rows read so far; a number as secret as the records.
    texts : sequence of str, optional
        Columns that are handed over as texts, or as what a Parquet file holds, beside those of numbers.
    delimiter, decimal, thousands, encoding, null, header
        How text is read; see :class:`ReadingOptions`.

    Notes
    -----
    A line of a text file is a record, and a line ends at a line feed, at a carriage return, or at both together,
    within quotes too. Where a person's text holds a line break that person has several lines: say so in
    ``max_contributions``, or write the file anew. A line belongs to the unit that it names.

    The name of a folder such as ``year=2020`` is not a column.

    Examples
    --------
    >>> from fogline.datasets.tables import load_faithful
    >>> from fogline.sources.files import FileTable
    >>> FileTable(load_faithful().path).columns
    ('eruptions', 'waiting')
    """

    _failure = "the file could not be read"
    columns: tuple[str, ...]
    _ordered = True
    _by_column = False

    def __init__(
        self,
        path: str | Path,
        columns: Sequence[str] | None = None,
        *,
        unit: str | None = None,
        progress: Progress | None = None,
        texts: Sequence[str] = (),
        delimiter: str | None = None,
        decimal: str = ".",
        thousands: str | None = None,
        encoding: str = "utf-8",
        null: Sequence[str] = (),
        header: Sequence[str] | None = None,
    ) -> None:
        names = None if header is None else header if isinstance(header, str) else tuple(header)
        self._options = ReadingOptions(delimiter, decimal, thousands, encoding, null, names)  # type: ignore[arg-type]
        self.path = Path(path)
        self._given = source_text(path)
        self._files = matching_files(path)
        self._is_parquet = is_parquet(self._files[0])
        if self._is_parquet:
            require_text_source(self._options, "a Parquet file")
        schema = _parquet_schema(self._files) if self._is_parquet else self._text_schema()
        self._names = [name for name, _ in schema]
        if not self._is_parquet:
            self._check_names(columns, "columns")
            self._check_names([unit], "unit")
            self._check_names(list(texts), "columns")
        named, self.texts = typed_columns(columns, texts, unit, self._names)
        super().__init__(named, len(named), unit, progress)
        self._row = "record" if self._is_parquet else "line of the file"  # a cell with line breaks makes several lines
        kinds = self._kinds = dict(schema)
        for name in named:
            require_kind(f"columns: column {name!r}", kinds[name], NUMBERS, "numbers")
        if self._is_parquet:
            _require_whole_decimals(self._files, [name for name in named if kinds[name].startswith("DECIMAL")])
        for name in self.texts:
            require_kind(f"columns: column {name!r}", kinds[name], CELLS, "texts, whole numbers or dates")
        if self._is_parquet and self.texts:
            require_arrow("columns: texts and dates are read from Parquet by pyarrow")
        self._unit_kind = "" if unit is None else kinds[unit]
        if unit is not None:
            require_kind(f"unit: column {unit!r}", kinds[unit], IDS, "integers or texts")
            if self._is_parquet and self._unit_kind == "VARCHAR":
                require_arrow_for_texts(unit)

    def __repr__(self) -> str:
        unit = f", unit={self.unit_column!r}" if self.unit_column is not None else ""
        return f"FileTable({self.path.name!r}, columns={list(self.columns)}{unit})"

    def __getitem__(self, columns: list[str]) -> Self:
        """Some of the columns, in another order; the unit stays."""
        if not self._is_parquet:
            self._check_names(columns, "columns", self.columns)
        return super().__getitem__(columns)

    @property
    def facts(self) -> dict[str, Any]:
        """The path as given, and how text is read where that was stated: else it is another question."""
        reading = self._options.facts
        return {**super().facts, "source": self._given, **({"reading": reading} if reading else {})}

    def _state(self, spec: Spec) -> State:
        # Threads that count for themselves have nothing to tell of their progress.
        if isinstance(spec, CellSpec) and self.progress is None and self._is_all_doubles():
            found = count_doubles(self._files, self.columns, self._names, spec)
            if found is not None:
                return found
        if not self._is_parquet or has_arrow() or not isinstance(spec, CellSpec):
            # Sums do not depend on the order.
            return Source._state(self._for_cells() if isinstance(spec, CellSpec) else self._unordered(), spec)
        dialect = DUCKDB_NARROW if math.prod(spec.cells) < 2**31 else DUCKDB
        sql = CellSql.of(spec, dialect).query(self._numbers(), self._relation())
        connection = connect()
        try:
            answer = connection.execute(sql).fetchnumpy()
        finally:
            connection.close()
        keys = np.asarray(answer["cell"], dtype=np.int64)
        order = np.argsort(keys)
        return keys[order], np.asarray(answer["records"], dtype=np.int64)[order]

    def _is_all_doubles(self) -> bool:
        """Whether the numbers can be taken as they lie in Parquet files, by the schema alone."""
        if not self._is_parquet or not has_arrow():
            return False
        # pyarrow takes a name with a dot for a path into a nested column
        return all(self._kinds[name] == "DOUBLE" and "." not in name for name in self.columns)

    def _unordered(self) -> FileTable:
        other = copy(self)
        other._ordered = False
        return other

    def _for_cells(self) -> FileTable:
        """The same table for counts of cells, where neither the order nor the layout in memory matters."""
        other = self._unordered()
        other._by_column = True
        return other

    def _scan(self, take: Take) -> None:
        if not self._is_parquet:
            places = tuple(map(self._names.index, self.columns))
            unit = None if self.unit_column is None else self._names.index(self.unit_column)
            layout = Layout(self._options, self._header.delimiter, places, unit, width=len(self._names))
            scan_blocks(self._blocks(), layout, take)
            return
        if self._unit_kind == "VARCHAR" and self.unit_column is not None:
            scan_text_ids(self._files, self.columns, self.unit_column, take)
            return
        rows_each = min(BATCH_ROWS, batch_rows(self.width))
        is_plain = self.unit_column is None and self._is_all_doubles()
        if is_plain and _groups_of_doubles(self._files, self.columns, self._names) is not None:
            # DuckDB would hold whole row groups, which is most of the memory that a wide table takes.
            batches = _declared_batches(self._files, self.columns, rows_each=rows_each, use_threads=False)
            scan_batches(batches, take, has_unit=False, by_column=self._by_column)
            return
        columns = [f"{number} AS x{j}" for j, number in enumerate(self._numbers())]
        if self.unit_column is not None:
            cast = "" if self._unit_kind in PLAIN_IDS else "::VARCHAR"
            columns.append(f"{quoted(self.unit_column)}{cast} AS unit")
        sql = f"SELECT {', '.join(columns)} FROM {self._relation()}"
        has_unit = self.unit_column is not None
        scan_query(sql, take, has_unit=has_unit, ordered=self._ordered, by_column=self._by_column, rows_each=rows_each)

    def _scan_typed(self, take: TypedTake) -> None:
        if not self.texts:
            super()._scan_typed(take)
        elif self._is_parquet:
            scan_typed_parquet(self._files, self.columns, self.texts, self.unit_column, take)
        else:
            numbers, texts = (tuple(map(self._names.index, names)) for names in (self.columns, self.texts))
            unit = None if self.unit_column is None else self._names.index(self.unit_column)
            layout = Layout(self._options, self._header.delimiter, numbers, unit, texts, len(self._names))
            scan_typed_blocks(self._blocks(), layout, take)

    # -- Parquet ----------------------------------------------------------------------------------------------

    def _numbers(self) -> list[str]:
        """SQL that gives each column as doubles, NULL for what is no number."""
        return [f"TRY_CAST({quoted(name)} AS DOUBLE)" for name in self.columns]

    def _relation(self) -> str:
        return f"read_parquet({path_literals(self._files)}, hive_partitioning=false)"

    # -- text -------------------------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[bytes]:
        """Whole lines of all files, without their headers."""
        for file in self._files:
            with opened(file) as content:
                yield from blocks_of(content, skip_header=self._options.header is None)

    def _text_schema(self) -> Schema:
        self._header = common_header(self._files, self._options)
        return tuple((name, "") for name in self._header.names)

    def _check_names(self, wanted: object, parameter: str, available: Sequence[str] | None = None) -> None:
        """Refuse names that there are not, without those that there are: a first line may be a record after all."""
        names = self._names if available is None else list(available)
        # What is no list of names is refused by chosen_columns, which knows the words for it.
        for name in wanted if isinstance(wanted, list | tuple) else ():
            if isinstance(name, str) and names.count(name) != 1:
                what = "no" if name not in names else "more than one"
                raise ValueError(
                    f"{parameter}: there is {what} column {name!r} in {self.path.name}; fogline check shows its header"
                )


def common_header(files: list[Path], options: ReadingOptions) -> Header:
    """Header of the first file, whose names and delimiter all others must have too."""
    first = read_header(files[0], options)
    for file in files[1:]:
        other = read_header(file, options)
        if (other.names, other.delimiter) != (first.names, first.delimiter):
            raise ValueError(f"path: {file.name} has another header than {files[0].name}")
    return first


def _parquet_schema(files: list[Path]) -> Schema:
    """Columns of the first file, which all others must have too: DuckDB would read them by the types of the first."""
    connection = connect()
    found: list[Schema] = []
    try:
        for file in files:
            sql = f"DESCRIBE SELECT * FROM read_parquet({path_literals([file])}, hive_partitioning=false)"
            found.append(tuple((str(row[0]), str(row[1])) for row in connection.execute(sql).fetchall()))
            if found[-1] != found[0]:
                raise ValueError(f"path: {file.name} has other columns or types than {files[0].name}")
    except ValueError:
        raise
    # DuckDB's message may quote bytes of the file.
    except Exception:
        raise ValueError(f"path: {files[len(found)].name} is not a readable Parquet file") from None
    finally:
        connection.close()
    return found[0]


DECIMAL_BYTES = ((4, 2), (9, 4), (18, 8), (38, 16))
"""Digits that a decimal declares at most, and the bytes in which DuckDB then holds it."""


def _require_whole_decimals(files: list[Path], names: Sequence[str]) -> None:
    """Refuse decimals that are stored in more bytes than their declared digits have in DuckDB.

    There one value that is longer than declared would fail the reading of everybody's records. Writers store decimals
    in as few bytes as their digits need, or as whole numbers, which DuckDB reads whatever their size.
    """
    if not names:
        return
    connection = connect()
    try:
        for file in files:
            sql = f"SELECT name, type, type_length, precision FROM parquet_schema({path_literals([file])})"
            for name, kind, length, digits in connection.execute(sql).fetchall():
                if name not in names or digits is None or kind in ("INT32", "INT64"):
                    continue
                most_bytes = next(size for digits_at_most, size in DECIMAL_BYTES if digits <= digits_at_most)
                if kind != "FIXED_LEN_BYTE_ARRAY" or int(length) > most_bytes:
                    raise ValueError(
                        f"columns: column {name!r} of {file.name} stores decimals of {digits} digits in more bytes "
                        "than these need, and one that is too long would fail the reading of all; store them as doubles"
                    )
    finally:
        connection.close()


def inferred_by_pandas(files: list[Path], names: Iterable[str]) -> frozenset[str]:
    """Columns of Parquet files whose type pandas chose by their cells: it writes its own types beside the schema.

    A frame on numpy types has whole numbers until one is missing, and floats from then on; so has the file that is
    written of it. Types that were chosen by somebody have names of their own: ``Int64``, ``string``, ``category``.
    """
    connection, inferred = connect(), set[str]()
    try:
        for file in files:
            sql = f"SELECT value FROM parquet_kv_metadata({path_literals([file])}) WHERE key = 'pandas'"
            for (text,) in connection.execute(sql).fetchall():
                chosen = {
                    str(column["name"])
                    for column in json.loads(text)["columns"]
                    if column["pandas_type"] == "categorical" or not re.fullmatch(_NUMPY_TYPES, column["numpy_type"])
                }
                inferred |= set(names) - chosen
    # A note that cannot be read tells of pandas all the same: then no type counts as declared.
    except Exception:
        return frozenset(names)
    finally:
        connection.close()
    return frozenset(inferred)


_NUMPY_TYPES = r"bool|object|str|u?int\d+|float\d+|complex\d+|(datetime|timedelta)64.*|period.*|interval.*|Sparse.*"
"""Names that pandas gives to types which it chooses by the cells."""


def require_kind(what: str, kind: str, allowed: Sequence[str], wanted: str) -> None:
    if kind and kind.split("(")[0].upper() not in allowed:
        raise TypeError(f"{what} holds {kind}, not {wanted}")


def path_literals(files: list[Path]) -> str:
    """Paths as DuckDB takes them for these files alone: `*`, `?` and `[` of a name would be a pattern for others."""
    # A sign in brackets stands for itself.
    texts = (re.sub(r"([*?\[])", r"[\1]", str(file)).replace("'", "''") for file in files)
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


class CountedFile(FileTable):
    """Some columns of a file with a public number of rows, as declared: nothing is counted.

    Rows beyond that number are not read, and missing ones count as records without a value, so that a line that cannot
    be read changes one record and not the number of them.

    Parameters
    ----------
    path : str or Path
    columns : sequence of str, optional
        As for :class:`FileTable`.
    rows : int
        Public; never take it from a file whose number of rows is secret.
    **reading
        How text is read; see :class:`ReadingOptions`.

    Examples
    --------
    >>> from fogline.datasets.tables import load_faithful
    >>> from fogline.sources.files import CountedFile
    >>> CountedFile(load_faithful().path, ["waiting"], rows=272).rows
    272
    """

    def __init__(self, path: str | Path, columns: Sequence[str] | None = None, *, rows: int, **reading: Any) -> None:
        super().__init__(path, columns, **reading)
        self.rows = check_count(rows, "rows")

    def _state(self, spec: Spec) -> State:
        return Source._state(self, spec)

    def _scan(self, take: Take) -> None:
        """Hand over the first `rows` records."""
        # Rows that are missing are not made up here: a record without a value contributes nothing, as an absent row
        # does.
        left = self.rows

        def take_some(batch: FloatArray, ids: Ids | None) -> None:
            nonlocal left
            take(batch[:left], ids)
            left -= min(left, len(batch))

        super()._scan(take_some)


def rows_of(source: SourceLike) -> int:
    """Public number of rows, under replacement; usable or not."""
    if isinstance(source, CountedFile):
        return source.rows
    if isinstance(source, FileTable) or not hasattr(source, "__len__"):
        raise TypeError(
            "X must be an array or a frame for a descent, whose number of rows is public, or a CountedFile, which "
            "declares it"
        )
    return len(source)
