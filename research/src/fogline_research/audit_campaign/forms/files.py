"""Tables as files: text with every line end, Parquet by three writers, SQLite."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fogline_research.audit_campaign.forms.base import NAMES, UNIT, Form, Opened, Place, Public, record_items
from fogline_research.audit_campaign.forms.frames import arrow_table, polars_frame
from fogline_research.audit_campaign.hostile_tables import Record, Shape
from fogline_research.audit_campaign.reference_reader import Item, line_items, unit_key

__all__ = ["FILE_FORMS", "stored_walk"]

# -- text -----------------------------------------------------------------------------------------------------

ENDS = {"LF": b"\n", "CR": b"\r", "CRLF": b"\r\n"}
BOM = b"\xef\xbb\xbf"
TEXT_OPTIONS = {
    "last line end": (True, False),
    "BOM": (False, True),
    "place of the id": ("first", "last"),
    "quoted header": (False, True),
    "pyarrow": ("as it is", "hidden"),
}
TEXT_SHAPES = (
    Shape("line", 1, None, True),
    Shape("line", 2, None, True),
    Shape("line", 1, "line", True),
    Shape("line", 2, "line", True),
)


def _line(record: Record, shape: Shape, public: Public) -> bytes:
    cells = list(record.cells)
    if shape.ids is not None:
        cells.insert(0 if public["place of the id"] == "first" else len(cells), record.unit)
    return bytes(public["delimiter"]).join(cells)


def text_content(rows: Sequence[Record], shape: Shape, public: Public) -> bytes:
    """Bytes of a text file."""
    end, delimiter = ENDS[public["line end"]], bytes(public["delimiter"])
    names = [name.encode() for name in NAMES[: shape.columns]]
    if shape.ids is not None:
        names.insert(0 if public["place of the id"] == "first" else len(names), UNIT.encode())
    if public["quoted header"]:
        names = [b'"' + name + b'"' for name in names]
    lines = [delimiter.join(names), *(_line(record, shape, public) for record in rows)]
    return (BOM if public["BOM"] else b"") + end.join(lines) + (end if public["last line end"] else b"")


def _text(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:
    path = place.folder / f"walk{public['suffix']}"
    content = text_content(rows, shape, public)
    path.write_bytes(gzip.compress(content, 1) if public["suffix"].endswith(".gz") else content)
    return Opened(path, {} if shape.ids is None else {"unit": UNIT})


def _text_items(rows: Sequence[Record], shape: Shape, public: Public) -> list[Item]:
    unit = None if shape.ids is None else 0 if public["place of the id"] == "first" else shape.columns
    return line_items(text_content(rows, shape, public), public["delimiter"], shape.columns, unit)


def _text_form(name: str, end: tuple[str, ...], delimiters: tuple[bytes, ...], suffix: str) -> Form:
    options = {**TEXT_OPTIONS, "line end": end, "delimiter": delimiters, "suffix": (suffix,)}
    return Form(name, TEXT_SHAPES, _text, options, ("duckdb",), items=_text_items, pairs=300)


# -- Parquet --------------------------------------------------------------------------------------------------

PARQUET_SHAPES = (
    Shape("double or missing"),
    Shape("double or missing", 2),
    Shape("integer or missing", 2),
    Shape("single"),
    Shape("truth"),
    Shape("decimal"),
    Shape("double or missing"),
    Shape("double or missing", 1, "text of any bytes"),
    Shape("double or missing", 2, "integer or missing"),
    Shape("double or missing", 1, "double"),
)


def _pyarrow_file(rows: Sequence[Record], shape: Shape, public: Public, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(
        arrow_table(rows, shape),
        path,
        row_group_size=public["rows of a group"],
        use_dictionary=public["dictionary"],
        compression=public["compression"],
        write_statistics=public["statistics"],
        data_page_version=public["page version"],
    )


def _polars_file(rows: Sequence[Record], shape: Shape, public: Public, path: Path) -> None:
    polars_frame(rows, shape).write_parquet(
        path,
        compression=public["compression"].lower(),
        statistics=public["statistics"],
        row_group_size=public["rows of a group"],
    )


DUCKDB_TYPES = {
    "double": "DOUBLE",
    "single": "FLOAT",
    "integer": "BIGINT",
    "truth": "BOOLEAN",
    "decimal": "DECIMAL(12, 3)",
    "text": "VARCHAR",
}


def _duckdb_file(rows: Sequence[Record], shape: Shape, public: Public, path: Path, place: Place) -> None:
    import duckdb

    connection = place.connection("duckdb", duckdb.connect)
    columns = [f"{name} {DUCKDB_TYPES[shape.cells.split()[0]]}" for name in NAMES[: shape.columns]]
    if shape.ids is not None:
        columns.append(f"{UNIT} {DUCKDB_TYPES[shape.ids.split()[0]]}")
    connection.execute(f"CREATE OR REPLACE TABLE walk ({', '.join(columns)})")
    content = [[*record.cells, *([] if shape.ids is None else [record.unit])] for record in rows]
    if content:
        marks = ", ".join(["(" + ", ".join("?" * len(columns)) + ")"] * len(content))
        connection.execute(f"INSERT INTO walk VALUES {marks}", [cell for row in content for cell in row])
    form = f"FORMAT parquet, COMPRESSION {public['compression']}, ROW_GROUP_SIZE {public['rows of a group']}"
    connection.execute(f"COPY walk TO '{path}' ({form})")


def _parquet(rows: Sequence[Record], shape: Shape, public: Public, place: Place) -> Opened:
    path = place.folder / "walk.parquet"
    if public["writer"] == "DuckDB":
        _duckdb_file(rows, shape, public, path, place)
    else:
        {"pyarrow": _pyarrow_file, "polars": _polars_file}[public["writer"]](rows, shape, public, path)
    return Opened(path, {} if shape.ids is None else {"unit": UNIT})


def _parquet_form(writer: str, needs: tuple[str, ...], reader: str, **options: tuple[Any, ...]) -> Form:
    name = f"Parquet by {writer}" + (", read without pyarrow" if reader == "hidden" else "")
    shapes: tuple[Shape, ...] = PARQUET_SHAPES
    if writer != "pyarrow":  # the others refuse to write what is no UTF-8
        shapes = tuple(
            Shape(s.cells, s.columns, "text or missing") if s.ids == "text of any bytes" else s for s in shapes
        )
    every = {
        "writer": (writer,),
        "pyarrow": (reader,),
        "compression": ("ZSTD", "SNAPPY", "UNCOMPRESSED"),
        "rows of a group": (1, 2, 3, 64),
        "statistics": (True, True, False),
    }
    return Form(
        name, shapes, _parquet, {**every, **options}, ("duckdb", *needs), pairs=100 if writer == "DuckDB" else 200
    )


def _parquet_forms(reader: str) -> Iterator[Form]:
    yield _parquet_form(
        "pyarrow",
        ("pyarrow",),
        reader,
        dictionary=(True, False),
        compression=("ZSTD", "NONE"),
        **{"page version": ("1.0", "2.0")},
    )
    yield _parquet_form("polars", ("polars",), reader)
    yield _parquet_form("DuckDB", (), reader)


# -- SQLite ---------------------------------------------------------------------------------------------------


def stored_walk(tables: Sequence[Sequence[Record]]) -> Iterator[tuple[int, int, Record]]:
    """All tables of a walk as rows of one: the number of the table, the place of the record, the record."""
    for number, rows in enumerate(tables):
        for position, record in enumerate(rows):
            yield number, position, record


def _sqlite_value(value: Any) -> Any:
    """A value that SQLite takes: texts may hold any bytes there."""
    value = value.item() if isinstance(value, np.integer) else value
    if isinstance(value, bool | int) and not -(2**63) <= value < 2**63:
        return str(value) if abs(value) < 10**4000 else "1" + "0" * 5000
    if value is None or isinstance(value, int | float | bytes):
        return value
    if isinstance(value, Fraction):
        return f"{value.numerator:x}/{value.denominator:x}"  # Python prints no 5000 decimal digits
    return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if isinstance(value, str) else repr(value)


def _sqlite(tables: Sequence[Sequence[Record]], shape: Shape, public: Public, place: Place) -> Iterator[Opened]:
    path = place.folder / "walk.db"
    path.unlink(missing_ok=True)
    kinds = ", ".join(f'"{name}" {public["declared"]}' for name in NAMES[: shape.columns])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(
            f"CREATE TABLE walk (number INTEGER, place INTEGER, {kinds}, {UNIT} {public['declared id']})"
        )
        connection.execute("CREATE TABLE clock (now INTEGER)")
        connection.execute("INSERT INTO clock VALUES (0)")
        marks = ", ".join("?" * (3 + shape.columns))
        for number, position, record in stored_walk(tables):
            cells = [_sqlite_value(cell) for cell in record.cells]
            unit, is_bytes = record.unit, isinstance(record.unit, bytes)
            sql = f"INSERT INTO walk VALUES ({marks})" if not is_bytes else _casting(marks)
            connection.execute(sql, (number, position, *cells, _sqlite_value(unit)))
        connection.commit()
        chosen = ", ".join([*NAMES[: shape.columns], *([] if shape.ids is None else [UNIT])])
        query = f"SELECT {chosen} FROM walk WHERE number = (SELECT now FROM clock) ORDER BY place"
        for number in range(len(tables)):
            connection.execute("UPDATE clock SET now = ?", (number,))
            connection.commit()
            source: Any = connection if public["by"] == "connection" else f"sqlite:///{path}"
            yield Opened(source, {"query": query, **({} if shape.ids is None else {"unit": UNIT})})


def _sqlite_items(rows: Sequence[Record], shape: Shape, public: Public) -> list[Item]:
    """Records with their ids as SQLite keeps them: a declared type turns "07" into 7, or 2.5 into a text."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE kept ({UNIT} {public['declared id']})")
        ids = [(None if isinstance(record.unit, bytes) else _sqlite_value(record.unit),) for record in rows]
        connection.executemany("INSERT INTO kept VALUES (?)", ids)
        kept = [value for (value,) in connection.execute("SELECT * FROM kept ORDER BY rowid")]
    items = record_items(rows, shape, public)
    return [
        item if isinstance(record.unit, bytes) else replace(item, unit=unit_key(unit))
        for item, record, unit in zip(items, rows, kept, strict=True)
    ]


def _casting(marks: str) -> str:
    """Store the bytes of an id as a text, which SQLite does not look into."""
    return f"INSERT INTO walk VALUES ({marks[:-1]}CAST(? AS TEXT))"


SQLITE = Form(
    "SQLite",
    (
        Shape("object"),
        Shape("object", 2),
        Shape("double or missing"),
        Shape("object", 1, "object"),
        Shape("double or missing", 2, "text of any bytes"),
        Shape("double or missing", 1, "integer or missing"),
    ),
    lambda rows, shape, public, place: next(_sqlite([rows], shape, public, place)),
    {"declared": ("REAL", "NUMERIC", ""), "declared id": ("TEXT", "INTEGER", ""), "by": ("connection", "address")},
    items=_sqlite_items,
    write_all=_sqlite,
)

FILE_FORMS: tuple[Form, ...] = (
    _text_form("CSV, LF", ("LF",), (b",", b";", b"|"), ".csv"),
    _text_form("CSV, CR", ("CR",), (b",", b";", b"|"), ".csv"),
    _text_form("CSV, CRLF", ("CRLF",), (b",", b";", b"|"), ".csv"),
    _text_form("CSV, compressed", tuple(ENDS), (b",",), ".csv.gz"),
    _text_form("TSV", tuple(ENDS), (b"\t",), ".tsv"),
    *_parquet_forms("as it is"),
    *_parquet_forms("hidden"),
    SQLITE,
)
"""Forms that lie on a disk."""
