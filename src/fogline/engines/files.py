"""CSV and Parquet files, counted by DuckDB, or read in batches for random features, in one pass and constant memory.

The cell of a record is computed in SQL by the same double-precision expression as in
:mod:`fogline.sketch.histogram`, so the counts are the same integers. What is wrong with a file's schema (no
such file, no such column, a text column in Parquet) is a clear error; what is wrong with its cells or lines
is not known to anyone: a cell that cannot be read as a number is missing, a broken line contributes nothing.

A line of a CSV file is a record. Quotes are honoured within a line and nowhere else: a quote that is never closed
must not swallow the lines after it, since one record could then remove many. A quoted cell with a line break in it is
therefore two lines, of which the first is read as far as it goes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.spec import SketchSpec

if TYPE_CHECKING:
    import duckdb

__all__ = ["FileTable", "ReadFailed"]

IntArray = NDArray[np.int64]

DELIMITERS = (",", ";", "\t", "|")
MAX_HEADER = 1_000_000
SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
NUMBERS = (*SIGNED, *(f"U{name}" for name in SIGNED), "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
NOWHERE = "\x1f"
"""What separates the one column of a line from nothing; a line that holds it is broken."""

BATCH_ROWS = 2**14
"""Rows handed over at a time."""

PARQUET = "read_parquet(?, hive_partitioning=false)"


class ReadFailed(RuntimeError):
    """The records could not be read. It says nothing more, since a reader's message may quote the data."""


class FileTable:
    """Some columns of a CSV or Parquet file.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv``, ``.txt`` (with a header line) or ``.parquet`` file.
    columns : sequence of str, optional
        Names of the columns, in the order of the bounds; by default all of the file's.

    Notes
    -----
    A line of a text file is a record, and a line ends at a line feed, at a carriage return, or at both together,
    within quotes too. Where a person's text holds a carriage return that person has several lines: say so in
    ``max_contributions``, or write the file anew.

    Examples
    --------
    >>> from fogline.datasets import load_faithful
    >>> from fogline.engines import FileTable
    >>> FileTable(load_faithful().path).columns
    ('eruptions', 'waiting')
    """

    def __init__(self, path: str | Path, columns: Sequence[str] | None = None) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"path: there is no file {str(path)!r}")
        self._is_parquet = self.path.suffix.lower() in (".parquet", ".pq")
        if not self._is_parquet and self.path.suffix.lower() not in (".csv", ".tsv", ".txt"):
            raise ValueError(f"path: expected a .csv, .tsv, .txt or .parquet file, got {self.path.suffix!r}")
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names, got the text {columns!r}")
        schema = self._parquet_schema() if self._is_parquet else self._header()
        self._names = [name for name, _ in schema]
        self.columns = tuple(self._names) if columns is None else tuple(columns)
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise ValueError("columns must name at least one column, and none twice")
        for name in self.columns:
            if self._names.count(name) != 1:
                what = "no" if name not in self._names else "more than one"
                raise ValueError(f"columns: the file has {what} column {name!r}; it has {', '.join(self._names)}")
            kind = dict(schema)[name]
            if kind and kind.split("(")[0].upper() not in NUMBERS:
                raise TypeError(f"columns: column {name!r} holds {kind}, not numbers")

    def __repr__(self) -> str:
        return f"FileTable({self.path.name!r}, columns={list(self.columns)})"

    def count_cells(self, spec: SketchSpec) -> tuple[IntArray, IntArray]:
        """Cells of the grid that are not empty, and their counts: one ``GROUP BY``."""
        self.require_width(spec.d)
        sql, before, after = cell_query(spec, self._expressions(), self._relation())
        connection = _connect()
        try:
            answer = connection.execute(sql, [*before, *self._arguments(), *after]).fetchnumpy()
        except Exception:
            raise ReadFailed("the file could not be read") from None
        finally:
            connection.close()
        keys = np.asarray(answer["cell"], dtype=np.int64)
        order = np.argsort(keys)
        return keys[order], np.asarray(answer["records"], dtype=np.int64)[order]

    def each_batch(self, take: Callable[[NDArray[np.float64]], object]) -> None:
        """Hand the records over, batch by batch, as arrays of shape (rows, columns) with NaN for what is no number."""
        numbers = ", ".join(f"TRY_CAST({column} AS DOUBLE)" for column in self._expressions())
        connection = _connect()
        try:
            connection.execute(f"SELECT {numbers} FROM {self._relation()}", self._arguments())
            while rows := connection.fetchmany(BATCH_ROWS):
                take(np.array(rows, dtype=np.float64))
        except Exception:
            raise ReadFailed("the file could not be read") from None
        finally:
            connection.close()

    def _expressions(self) -> list[str]:
        """SQL for each column."""
        return [_quoted_name(c) if self._is_parquet else self._field(self._names.index(c)) for c in self.columns]

    @property
    def unit(self) -> str:
        """What the guarantee protects: a line of a text file (a cell with line breaks makes several), else a record."""
        return "record" if self._is_parquet else "line of the file"

    def require_width(self, d: int) -> None:
        """Raise an error unless there is one column for each of d axes."""
        if d != len(self.columns):
            raise ValueError(f"columns: {len(self.columns)} columns were named, but bounds has {d} axes")

    # -- schema -------------------------------------------------------------------------------------------

    def _relation(self) -> str:
        if self._is_parquet:
            return PARQUET
        return (
            "(SELECT rtrim(line, chr(13)) AS line FROM read_csv(?, columns={line: 'VARCHAR'}, header=false, skip=1, "
            f"delim='{NOWHERE}', quote='', escape='', auto_detect=false, ignore_errors=true, strict_mode=false, "
            "hive_partitioning=false))"
        )

    def _field(self, index: int) -> str:
        """SQL for one field of a line; only lines with a quote in them need the grammar of quotes."""
        delimiter = "chr(9)" if self._delimiter == "\t" else f"'{self._delimiter}'"
        plain = f"split_part(line, {delimiter}, {index + 1})"
        cut = re.escape(self._delimiter) if self._delimiter != "\t" else r"\t"
        pattern = f"""("(?:[^"]|"")*"|[^{cut}]*)(?:{cut}|$)"""
        quoted = f"""regexp_replace(regexp_extract_all(line, '{pattern}', 1)[{index + 1}], '^"([^"]*)"$', '\\1')"""
        return f"""CASE WHEN contains(line, '"') THEN {quoted} ELSE {plain} END"""

    def _arguments(self) -> list[Any]:
        return [_literal(self.path)]

    def _parquet_schema(self) -> list[tuple[str, str]]:
        connection = _connect()
        try:
            rows = connection.execute(f"DESCRIBE SELECT * FROM {PARQUET}", [_literal(self.path)]).fetchall()
        except Exception:
            raise ValueError(f"path: {self.path.name} is not a readable Parquet file") from None
        finally:
            connection.close()
        return [(str(row[0]), str(row[1])) for row in rows]

    def _header(self) -> list[tuple[str, str]]:
        """Names from the first line alone: a dialect guessed from the data would depend on it."""
        try:
            with self.path.open("rb") as file:  # decoding a file reads ahead, into the data
                line = re.split(rb"[\r\n]", file.readline(MAX_HEADER), maxsplit=1)[0].decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise ValueError(f"path: the header of {self.path.name} cannot be read as UTF-8") from None
        bare = re.sub('"[^"]*"', "", line)
        self._delimiter = max(DELIMITERS, key=lambda d: (bare.count(d), -DELIMITERS.index(d)))
        names = [name.strip() for name in next(csv.reader([line], delimiter=self._delimiter), [])]
        if not any(names) or '"' in bare:
            raise ValueError(f"path: {self.path.name} must begin with one line of column names")
        return [(name, "") for name in names]


def cell_query(spec: SketchSpec, columns: Sequence[str], relation: str) -> tuple[str, list[float], list[float]]:
    """Write SQL that counts the records of each cell, and its parameters before and after the relation's.

    ``columns`` are SQL expressions; text that is no number counts as missing.
    The cell is the expression of :func:`fogline.sketch.histogram.cell_keys`, in double precision.
    """
    names = [f"x{j}" for j in range(spec.d)]
    casts = ", ".join(f"TRY_CAST({c} AS DOUBLE) AS {n}" for c, n in zip(columns, names, strict=True))
    key = "0::BIGINT"
    before: list[float] = []
    for j, (name, cells) in enumerate(zip(names, spec.cells, strict=True)):
        index = f"least(floor(({name} - ?::DOUBLE) / ?::DOUBLE + ?::DOUBLE), {cells - 1})::BIGINT"
        key = f"({key}) * {cells} + {index}"
        before += [float(spec.lower[j]), float(spec.cell_widths[j]), float(spec.shift[j])]
    inside = " AND ".join(f"{n} >= ?::DOUBLE AND {n} <= ?::DOUBLE" for n in names)
    after = [float(edge) for j in range(spec.d) for edge in (spec.lower[j], spec.upper[j])]
    sql = (
        f"SELECT cell, count(*) AS records FROM (SELECT {key} AS cell FROM (SELECT {casts} FROM {relation}) "
        f"WHERE {inside}) GROUP BY cell"
    )
    return sql, before, after


def _connect() -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ImportError:
        raise ImportError("reading files needs DuckDB: pip install 'fogline[cli]'") from None
    return duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(path: Path) -> str:
    """Path that DuckDB takes for one file: `*`, `?` and `[` of a name would be a pattern for others."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))
