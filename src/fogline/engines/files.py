"""CSV and Parquet files, read by DuckDB in one pass and constant memory.

The cells of records are counted here, batch by batch, or by a ``GROUP BY`` in DuckDB where there is no Arrow; both
evaluate the double-precision expression of :mod:`fogline.sketch.histogram`, so the counts are the same integers. What
is wrong with the schema of a file (no such file, no such column, a text column in Parquet, a header that is no UTF-8)
is a clear error; what is wrong with its cells or lines is not known to anyone: a cell that cannot be read as a number
is missing, a broken line contributes nothing.

A line of a CSV file is a record. Quotes are honoured within a line and nowhere else: a quote that is never closed
must not swallow the lines after it, since one record could then remove many. A quoted cell with a line break in it is
therefore two lines, of which the first is read as far as it goes.
"""

from __future__ import annotations

import csv
import glob
import re
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from fogline._validation import source_text
from fogline.engines.cell_sql import DUCKDB, CellSql, quoted
from fogline.engines.duck import connect, has_arrow, require_duckdb, scan_query
from fogline.engines.parquet_ids import require_arrow_for_texts, scan_text_ids
from fogline.engines.tables import Progress, ReadFailed, State, Table, Take, chosen_columns
from fogline.sketch.planning import Spec
from fogline.sketch.spec import SketchSpec

__all__ = ["FileTable", "ReadFailed", "matching_files"]

DELIMITERS = (",", ";", "\t", "|")
TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
MAX_HEADER = 1_000_000
SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
INTEGERS = (*SIGNED, *(f"U{name}" for name in SIGNED))
NUMBERS = (*INTEGERS, "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
IDS = (*INTEGERS, "FLOAT", "DOUBLE", "VARCHAR", "UUID", "ENUM")
PLAIN_IDS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "FLOAT", "DOUBLE")
"""Types of ids that need no text to be the same everywhere."""

NOWHERE = "\x1f"
"""What separates the one column of a line from nothing; a line that holds it is broken."""

Schema = tuple[tuple[str, str], ...]
"""Names of columns and their types; a text file declares none."""


class FileTable(Table):
    """Some columns of a CSV or Parquet file, or of many alike.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv``, ``.txt`` (with a header line) or ``.parquet`` file; a pattern such as ``visits/*.csv``;
        or a folder, of which all such files count, with those of its folders. Files must have the same columns.
    columns : sequence of str, optional
        Names of the columns, in the order of the bounds; by default all of the file's, but the unit's.
    unit : str, optional
        Name of the column that says whose record a row is.
    progress : callable, optional
        Told the rows read so far; a number as secret as the records.

    Notes
    -----
    A line of a text file is a record, and a line ends at a line feed, at a carriage return, or at both together,
    within quotes too. Where a person's text holds a carriage return that person has several lines: say so in
    ``max_contributions``, or write the file anew. A line belongs to the unit that it names.

    The name of a folder such as ``year=2020`` is not a column.

    Examples
    --------
    >>> from fogline.datasets import load_faithful
    >>> from fogline.engines import FileTable
    >>> FileTable(load_faithful().path).columns
    ('eruptions', 'waiting')
    """

    _failure = "the file could not be read"
    columns: tuple[str, ...]
    _ordered = True

    def __init__(
        self,
        path: str | Path,
        columns: Sequence[str] | None = None,
        *,
        unit: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        require_duckdb()  # before anything is paid, not when the first record is read
        self.path = Path(path)
        self._given = source_text(path)
        self._files = matching_files(path)
        self._is_parquet = self._files[0].suffix.lower() in PARQUET
        schema = _parquet_schema(self._files) if self._is_parquet else self._text_schema()
        self._names = [name for name, _ in schema]
        named = chosen_columns(columns, unit, self._names)
        super().__init__(named, len(named), unit, progress)
        self._row = "record" if self._is_parquet else "line of the file"  # a cell with line breaks makes several lines
        kinds = dict(schema)
        for name in named:
            require_kind(f"columns: column {name!r}", kinds[name], NUMBERS, "numbers")
        self._unit_kind = "" if unit is None else kinds[unit]
        if unit is not None:
            require_kind(f"unit: column {unit!r}", kinds[unit], IDS, "integers or texts")
            if self._is_parquet and self._unit_kind == "VARCHAR":
                require_arrow_for_texts(unit)

    def __repr__(self) -> str:
        unit = f", unit={self.unit_column!r}" if self.unit_column is not None else ""
        return f"FileTable({self.path.name!r}, columns={list(self.columns)}{unit})"

    @property
    def facts(self) -> dict[str, Any]:
        """The path as it was given: the same columns of another file are another question."""
        return {**super().facts, "source": self._given}

    def _state(self, spec: Spec) -> State:
        if has_arrow() or not isinstance(spec, SketchSpec):
            return Table._state(self._unordered(), spec)  # sums do not depend on the order
        sql = CellSql.of(spec, DUCKDB).query(self._numbers(), self._relation())
        connection = connect()
        try:
            answer = connection.execute(sql).fetchnumpy()
        finally:
            connection.close()
        keys = np.asarray(answer["cell"], dtype=np.int64)
        order = np.argsort(keys)
        return keys[order], np.asarray(answer["records"], dtype=np.int64)[order]

    def _unordered(self) -> FileTable:
        other = copy(self)
        other._ordered = False
        return other

    def _scan(self, take: Take) -> None:
        if self._is_parquet and self._unit_kind == "VARCHAR" and self.unit_column is not None:
            scan_text_ids(self._files, self.columns, self.unit_column, take)
            return
        columns = [f"{number} AS x{j}" for j, number in enumerate(self._numbers())]
        if self.unit_column is not None:
            cast = "" if self._unit_kind in PLAIN_IDS else "::VARCHAR"
            columns.append(f"{self._expression(self.unit_column)}{cast} AS unit")
        sql = f"SELECT {', '.join(columns)} FROM {self._relation()}"
        scan_query(sql, take, has_unit=self.unit_column is not None, ordered=self._ordered)

    def _numbers(self) -> list[str]:
        """SQL that gives each column as doubles, NULL for what is no number."""
        return [f"TRY_CAST({self._expression(name)} AS DOUBLE)" for name in self.columns]

    def _expression(self, name: str) -> str:
        return quoted(name) if self._is_parquet else self._field(self._names.index(name))

    # -- files ------------------------------------------------------------------------------------------------

    def _relation(self) -> str:
        files = _literals(self._files)
        if self._is_parquet:
            return f"read_parquet({files}, hive_partitioning=false)"
        return (
            f"(SELECT rtrim(line, chr(13)) AS line FROM read_csv({files}, columns={{line: 'VARCHAR'}}, header=false, "
            f"skip=1, delim='{NOWHERE}', quote='', escape='', auto_detect=false, ignore_errors=true, "
            "strict_mode=false, hive_partitioning=false))"
        )

    def _field(self, index: int) -> str:
        """SQL for one field of a line; only lines with a quote in them need the grammar of quotes."""
        delimiter = "chr(9)" if self._delimiter == "\t" else f"'{self._delimiter}'"
        plain = f"split_part(line, {delimiter}, {index + 1})"
        cut = re.escape(self._delimiter) if self._delimiter != "\t" else r"\t"
        pattern = f"""("(?:[^"]|"")*"|[^{cut}]*)(?:{cut}|$)"""
        quoted_field = (
            f"""regexp_replace(regexp_extract_all(line, '{pattern}', 1)[{index + 1}], '^"([^"]*)"$', '\\1')"""
        )
        return f"""CASE WHEN contains(line, '"') THEN {quoted_field} ELSE {plain} END"""

    def _text_schema(self) -> Schema:
        """Names and delimiter of the first file, which all others must have too."""
        found = [_header(file) for file in self._files]
        for file, other in zip(self._files, found, strict=True):
            if other != found[0]:
                raise ValueError(f"path: {file.name} has another header than {self._files[0].name}")
        self._delimiter, names = found[0]
        return tuple((name, "") for name in names)


def matching_files(path: str | Path) -> list[Path]:
    """Files that a path stands for, all of one kind: a file, a folder's, or those that match a pattern.

    A path that names a file is that file, whatever signs are in its name.
    """
    place = Path(path)
    if place.is_file():
        if place.suffix.lower() not in TEXT + PARQUET:
            raise ValueError(f"path: expected a .csv, .tsv, .txt or .parquet file, got {place.suffix!r}")
        return [place]
    found = place.rglob("*") if place.is_dir() else map(Path, glob.iglob(str(path), recursive=True))
    files = sorted(
        file
        for file in found
        if file.is_file() and file.suffix.lower() in TEXT + PARQUET and not file.name.startswith((".", "_"))
    )
    if not files:
        raise FileNotFoundError(f"path: there is no file {str(path)!r}")
    if len({file.suffix.lower() in PARQUET for file in files}) > 1:
        raise ValueError(f"path: {str(path)!r} has both text and Parquet files; name one kind by a pattern")
    return files


def _header(file: Path) -> tuple[str, tuple[str, ...]]:
    """Delimiter and names from the first line alone: a dialect guessed from the data would depend on it."""
    try:
        with file.open("rb") as content:  # decoding a file reads ahead, into the data
            line = re.split(rb"[\r\n]", content.readline(MAX_HEADER), maxsplit=1)[0].decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"path: the header of {file.name} cannot be read as UTF-8") from None
    bare = re.sub('"[^"]*"', "", line)
    delimiter = max(DELIMITERS, key=lambda d: (bare.count(d), -DELIMITERS.index(d)))
    names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    if not any(names) or '"' in bare:
        raise ValueError(f"path: {file.name} must begin with one line of column names")
    return delimiter, tuple(names)


def _parquet_schema(files: list[Path]) -> Schema:
    """Columns of the first file, which all others must have too: DuckDB would read them by the types of the first."""
    connection = connect()
    found: list[Schema] = []
    try:
        for file in files:
            sql = f"DESCRIBE SELECT * FROM read_parquet({_literals([file])}, hive_partitioning=false)"
            found.append(tuple((str(row[0]), str(row[1])) for row in connection.execute(sql).fetchall()))
            if found[-1] != found[0]:
                raise ValueError(f"path: {file.name} has other columns or types than {files[0].name}")
    except ValueError:
        raise
    except Exception:
        raise ValueError(f"path: {files[len(found)].name} is not a readable Parquet file") from None
    finally:
        connection.close()
    return found[0]


def require_kind(what: str, kind: str, allowed: Sequence[str], wanted: str) -> None:
    if kind and kind.split("(")[0].upper() not in allowed:
        raise TypeError(f"{what} holds {kind}, not {wanted}")


def _literals(files: list[Path]) -> str:
    """Paths as DuckDB takes them for these files alone: `*`, `?` and `[` of a name would be a pattern for others."""
    texts = (re.sub(r"([*?\[])", r"[\1]", str(file)).replace("'", "''") for file in files)
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"
