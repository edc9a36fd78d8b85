"""SQLite and Postgres by their own drivers: grouped where the data are, in one statement, so of one state.

Types are declared by the schema: a text column is an error, to be cast in the query. SQLite may hold text in a
column of numbers all the same; such a cell is missing. Postgres would raise an error for a decimal beyond the range of
doubles, which is missing as an infinity is; one too close to zero is brought to the edge of that range first. Texts of
ids come as the bytes that the server holds, whatever encoding the client has.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

import numpy as np

from fogline._typing import FloatArray, Ids, SourceLike
from fogline._validation import source_text
from fogline.density.random_spec import CellSpec, Spec
from fogline.sources.cell_sql import POSTGRES, CellSql, SqliteDialect, quoted
from fogline.sources.contributions import escaped, id_cells
from fogline.sources.tables import BATCH_ROWS, Progress, Source, State, Take, TypedTake, typed_columns

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresTable", "SqliteTable", "adapt", "declared_types", "require_psycopg"]

VIEW = "fogline_view"
"""Name of the temporary view through which SQLite tells the declared types of a query."""

DECIMAL = 1700
POSTGRES_NUMBERS = {
    16: "boolean",
    20: "bigint",
    21: "smallint",
    23: "integer",
    700: "real",
    701: "double",
    1700: "numeric",
}
POSTGRES_IDS = {20: "bigint", 21: "smallint", 23: "integer", 25: "text", 1042: "char", 1043: "varchar", 2950: "uuid"}
POSTGRES_DATES = {1082: "date", 1114: "timestamp", 1184: "timestamptz"}
POSTGRES_CELLS = {**POSTGRES_IDS, **POSTGRES_DATES, 16: "boolean"}
"""Types of columns by Postgres's numbers for them."""


LARGEST = "1.7976931348623157e308"
"""Postgres raises an error where a decimal beyond this is to become a double."""

TEXT_CODECS = {
    "UTF8": "utf-8",
    "SQL_ASCII": "utf-8",
    "LATIN2": "iso8859-2",
    "LATIN9": "iso8859-15",
    "WIN1250": "cp1250",
    "WIN1251": "cp1251",
    "WIN1252": "cp1252",
    "KOI8R": "koi8-r",
    "EUC_JP": "euc-jp",
    "EUC_KR": "euc-kr",
    "EUC_CN": "gb2312",
}
"""Codecs by Postgres's names for the encodings of databases; one that is not here is read byte by byte."""

UNREACHABLE = "source: Postgres does not let us in: is a server there, are user, password and database right?"


def adapt(
    source: SourceLike,
    columns: Sequence[str] | None,
    *,
    query: str | None,
    unit: str | None,
    progress: Progress | None,
    texts: Sequence[str] = (),
) -> Source:
    """Table of a query to a database, by its address or a connection to it."""
    kind = _kind(source, query)
    return kind(source, columns, query=query or "", unit=unit, progress=progress, texts=texts)


def declared_types(source: SourceLike, query: str | None) -> list[tuple[str, Any]]:
    """Names and declared types of a query's columns, as the database tells them."""
    kind = _kind(source, query)
    asked = kind.__new__(kind)
    asked._source, asked._relation = source, _relation(_bare(query or ""))
    return asked._schema()


def _kind(source: SourceLike, query: str | None) -> type[SqliteTable] | type[PostgresTable]:
    if query is None or not query.strip():
        raise TypeError("query must be a SELECT or the name of a table, where the source is a database")
    is_sqlite = isinstance(source, sqlite3.Connection) or (isinstance(source, str) and source.startswith("sqlite:"))
    return SqliteTable if is_sqlite else PostgresTable


def _bare(query: str) -> str:
    return query.strip().rstrip(";").rstrip()


class Cursor(Protocol):
    """What is asked of a cursor: rows, some at a time."""

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return the next rows."""


class _QueryTable(Source):
    """Some columns of a query."""

    _failure = "the database could not be read"

    def __init__(
        self,
        source: SourceLike,
        columns: Sequence[str] | None,
        *,
        query: str,
        unit: str | None,
        progress: Progress | None,
        texts: Sequence[str] = (),
    ) -> None:
        self._source: Any = source
        self._query = _bare(query)
        self._relation = _relation(self._query)
        self._kinds = self._schema()
        names = [name for name, _ in self._kinds]
        chosen, self.texts = typed_columns(columns, texts, unit, names)
        super().__init__(chosen, len(chosen), unit, progress)
        for name in chosen:
            self._require_number(name)
        for name in self.texts:
            self._require_cell(name)
        if unit is not None:
            self._require_id(unit)

    @property
    def facts(self) -> dict[str, Any]:
        """The query, and the address without its password: the same columns of other rows are another question."""
        place = {"source": source_text(self._source)} if isinstance(self._source, str) else {}
        return {"query": self._query, **place}

    def _schema(self) -> list[tuple[str, Any]]:
        raise NotImplementedError

    def _require_number(self, name: str) -> None:
        raise NotImplementedError

    def _require_id(self, name: str) -> None:
        raise NotImplementedError

    def _require_cell(self, name: str) -> None:
        raise NotImplementedError

    def _cell(self, name: str) -> str:
        """SQL that gives the cells of a column of texts, whole numbers or dates."""
        raise NotImplementedError

    def _number(self, name: str) -> str:
        """SQL that gives a column as doubles, NULL for what is no number."""
        raise NotImplementedError

    def _id(self, name: str) -> str:
        """SQL that gives the ids of a column."""
        raise NotImplementedError

    def _doubles(self) -> list[str]:
        return [self._number(name) for name in self.columns or ()]

    def _select(self, texts: Sequence[str] = ()) -> str:
        unit = [] if self.unit_column is None else [f"{self._id(self.unit_column)} AS unit"]
        return f"SELECT {', '.join([*self._doubles(), *map(self._cell, texts), *unit])} FROM {self._relation}"

    def _hand_over(self, cursor: Cursor, take: TypedTake, texts: int = 0) -> None:
        while rows := cursor.fetchmany(BATCH_ROWS):
            has_unit = self.unit_column is not None
            numbers = np.array([row[: self.width] for row in rows], dtype=np.float64).reshape(len(rows), self.width)
            cells = [[row[self.width + k] for row in rows] for k in range(texts)]
            take(numbers, cells, [row[-1] for row in rows] if has_unit else None)

    def _scan(self, take: Take) -> None:
        self._run((), lambda rows, _, ids: take(rows, ids))

    def _scan_typed(self, take: TypedTake) -> None:
        self._run(self.texts, take)

    def _run(self, texts: Sequence[str], take: TypedTake) -> None:
        """Run the query for the columns of numbers and these."""
        raise NotImplementedError


SQLITE_QUOTE = "`"
"""Around names of columns: what stands in double quotes and is no column any more, SQLite would read as a text."""


class SqliteTable(_QueryTable):
    """Some columns of a query to SQLite.

    Parameters
    ----------
    source : str or sqlite3.Connection
        ``"sqlite:///file.db"`` (four slashes for an absolute path) or a connection. A file is opened for reading only.
    columns, query, unit, progress
        As for :func:`fogline.sources.registry.table`.
    """

    def _state(self, spec: Spec) -> State:
        if not isinstance(spec, CellSpec):
            return super()._state(spec)
        dialect = SqliteDialect()
        sql = CellSql.of(spec, dialect).query(self._doubles(), self._relation)
        with self._connected() as connection, closing(connection.cursor()) as cursor:
            # The caller's connection may make dictionaries of rows, or run code of its own for each.
            cursor.row_factory = None
            return _counts(cursor.execute(sql, dialect.parameters).fetchall())

    def _run(self, texts: Sequence[str], take: TypedTake) -> None:
        with self._connected() as connection, closing(connection.cursor()) as cursor:
            cursor.row_factory = None
            self._hand_over(cursor.execute(self._select(texts)), take, len(texts))

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if isinstance(self._source, sqlite3.Connection):
            factory, self._source.text_factory = self._source.text_factory, escaped
            try:
                yield self._source
            finally:
                self._source.text_factory = factory
            return
        path = Path(unquote(re.sub("^sqlite:(//)?/?", "", self._source)))
        if not path.is_file():
            raise FileNotFoundError(f"source: there is no file {str(path)!r}")
        try:
            opened = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        except sqlite3.Error:
            raise PermissionError(f"source: the file {str(path)!r} cannot be opened") from None
        with closing(opened) as connection:
            connection.text_factory = escaped  # a text of SQLite need not be UTF-8
            yield connection

    def _schema(self) -> list[tuple[str, Any]]:
        """Names and declared types, which SQLite tells of a view alone."""
        with self._connected() as connection, closing(connection.cursor()) as cursor:
            cursor.row_factory = None
            try:
                # A temporary view touches no table, and only a view tells the declared types of a query.
                cursor.execute(f"CREATE TEMP VIEW {VIEW} AS SELECT * FROM {self._relation}")
                try:
                    rows = cursor.execute(f"PRAGMA temp.table_info({VIEW})").fetchall()
                finally:
                    cursor.execute(f"DROP VIEW temp.{VIEW}")
            except sqlite3.Error as error:
                raise ValueError(f"query: SQLite refuses it: {error}") from None
        return [(str(row[1]), str(row[2]).upper()) for row in rows]

    def _require_number(self, name: str) -> None:
        kind = dict(self._kinds)[name]
        if re.search("CHAR|CLOB|TEXT|BLOB|DATE|TIME", kind):
            raise TypeError(f"columns: column {name!r} holds {kind}, not numbers; cast it in the query")

    def _require_id(self, name: str) -> None:
        kind = dict(self._kinds)[name]
        if re.search("BLOB|DATE|TIME", kind):
            raise TypeError(f"unit: column {name!r} holds {kind}, not integers or texts")

    def _require_cell(self, name: str) -> None:
        if "BLOB" in dict(self._kinds)[name]:
            raise TypeError(f"columns: column {name!r} holds BLOB, not texts, whole numbers or dates")

    def _cell(self, name: str) -> str:
        return self._id(name)

    def _number(self, name: str) -> str:
        column = quoted(name, SQLITE_QUOTE)
        return f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN CAST({column} AS REAL) END"

    def _id(self, name: str) -> str:
        # An expression has no declared type, so that no converter of the connection, which may fail, is called for it.
        return f"CASE WHEN typeof({quoted(name, SQLITE_QUOTE)}) <> 'blob' THEN {quoted(name, SQLITE_QUOTE)} END"


class PostgresTable(_QueryTable):
    """Some columns of a query to Postgres.

    Parameters
    ----------
    source : str or psycopg.Connection
        ``"postgres://user@host/database"`` or a connection.
    columns, query, unit, progress
        As for :func:`fogline.sources.registry.table`.
    """

    def _state(self, spec: Spec) -> State:
        if not isinstance(spec, CellSpec):
            return super()._state(spec)
        sql = CellSql.of(spec, POSTGRES).query(self._doubles(), self._relation)
        with self._connected() as connection, _cursor(connection) as cursor:
            return _counts(cursor.execute(self._encoded(connection, sql)).fetchall())

    def _run(self, texts: Sequence[str], take: TypedTake) -> None:
        with self._connected() as connection, _cursor(connection, "fogline_rows", binary=True) as cursor:
            # Latin-1 reads any byte, so ids of an unknown encoding stay apart.
            encoding = TEXT_CODECS.get(connection.info.parameter_status("server_encoding") or "", "latin-1")

            def take_texts(rows: FloatArray, columns: Sequence[Ids], ids: Ids | None) -> None:
                cells = [[_decoded(cell, encoding) for cell in id_cells(column)] for column in columns]
                take(rows, cells, None if ids is None else [_decoded(cell, encoding) for cell in id_cells(ids)])

            cursor.execute(self._encoded(connection, self._select(texts)))
            self._hand_over(cursor, take_texts, len(texts))

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction that can only read, and sees one state of the database."""
        psycopg = require_psycopg()
        if not isinstance(self._source, str):
            with self._source.transaction():
                yield self._source
            return
        try:
            opened = psycopg.connect(self._source)
        except (psycopg.Error, ValueError):  # whose message may quote the address, and a password in it
            raise ConnectionError(UNREACHABLE) from None
        with opened as connection:
            # A query that writes must fail at the server, whatever it says.
            connection.read_only = True
            # All rows of a pass are of one state: a record that changes between two reads would count twice or never.
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield connection

    def _schema(self) -> list[tuple[str, Any]]:
        psycopg = require_psycopg()
        with self._connected() as connection, _cursor(connection) as cursor:
            try:
                cursor.execute(self._encoded(connection, f"SELECT * FROM {self._relation} LIMIT 0"))
            except psycopg.Error as error:
                raise ValueError(f"query: Postgres refuses it: {error.diag.message_primary}") from None
            return [(column.name, column.type_code) for column in cursor.description or ()]

    def _require_number(self, name: str) -> None:
        if dict(self._kinds)[name] not in POSTGRES_NUMBERS:
            raise TypeError(f"columns: column {name!r} does not hold numbers; cast it in the query")

    def _require_id(self, name: str) -> None:
        if dict(self._kinds)[name] not in POSTGRES_IDS:
            raise TypeError(f"unit: column {name!r} does not hold integers or texts; cast it in the query")

    def _require_cell(self, name: str) -> None:
        if dict(self._kinds)[name] not in POSTGRES_CELLS:
            raise TypeError(
                f"columns: column {name!r} does not hold texts, whole numbers or dates; cast it in the query"
            )

    def _cell(self, name: str) -> str:
        column, kind = quoted(name), dict(self._kinds)[name]
        # As the bytes of a text: a date far away is none to Python and would be an error. By to_char, since how a cast
        # writes a date is a setting of the session.
        text = f"to_char({column}, 'YYYY-MM-DD')" if kind in POSTGRES_DATES else f"{column}::text"
        return f"convert_to({text}, getdatabaseencoding())"

    def _number(self, name: str) -> str:
        column, kind = quoted(name), dict(self._kinds)[name]
        if POSTGRES_NUMBERS[kind] == "boolean":
            return f"{column}::integer::double precision"
        if kind != DECIMAL:
            return f"{column}::double precision"
        within = f"abs({column}) BETWEEN 1e-300 AND {LARGEST} OR {column} = 0"
        tiny = f"abs({column}) < 1 THEN sign({column}) * 1e-300"  # the rest is infinite, or as good as
        return f"(CASE WHEN {column} = 'NaN' THEN NULL WHEN {within} THEN {column} WHEN {tiny} END)::double precision"

    def _id(self, name: str) -> str:
        column = quoted(name)
        if POSTGRES_IDS[dict(self._kinds)[name]] in ("bigint", "smallint", "integer"):
            return column
        # Not as a text: of one that the client's encoding does not have, the server would make an error.
        return f"convert_to({column}::text, getdatabaseencoding())"

    @staticmethod
    def _encoded(connection: psycopg.Connection[Any], sql: str) -> bytes:
        """A query without parameters: bytes are not searched for them."""
        try:
            return sql.encode(connection.info.encoding)
        except UnicodeEncodeError:
            raise ValueError("query: it has signs that the connection's client_encoding does not have") from None


def require_psycopg() -> ModuleType:
    """Return the driver, or say what to install."""
    try:
        import psycopg
    except ImportError:
        raise ImportError("Postgres needs psycopg: pip install 'fogline[postgres]'") from None
    return psycopg


def _relation(query: str) -> str:
    """What follows FROM: a query in brackets, or the quoted name of a table, with its schema if it has one."""
    if re.match(r"(?i)(select|with|values|table)\b\s", query):
        return f"({query}\n) AS source"  # a comment at its end stays there
    return ".".join(quoted(part.strip('"')) for part in query.split("."))


def _cursor(connection: psycopg.Connection[Any], *name: str, **options: Any) -> psycopg.Cursor[tuple[Any, ...]]:
    """A cursor that gives tuples, whatever kind of rows the connection was made for."""
    from psycopg.rows import tuple_row

    made: psycopg.Cursor[tuple[Any, ...]] = connection.cursor(*name, row_factory=tuple_row, **options)
    return made


def _decoded(cell: object, encoding: str) -> object:
    """An id of Postgres: a text comes as the bytes that the server holds, which can always be read."""
    return cell.decode(encoding, "surrogateescape") if isinstance(cell, bytes) else cell


def _counts(rows: list[Any]) -> State:
    answer = np.array([tuple(row) for row in rows], dtype=np.int64).reshape(-1, 2)
    # In one order: that of the server depends on its plan, and would show in a state that is compared.
    answer = answer[np.argsort(answer[:, 0])]
    return answer[:, 0].copy(), answer[:, 1].copy()
