"""Tables in an engine that runs the query which ``fogline sql`` prints; what is read is the file of its answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from fogline_research.audit_campaign.forms.base import NAMES, UNIT, Form, Opened, Place, Public
from fogline_research.audit_campaign.forms.files import DUCKDB_TYPES, SQLITE, stored_walk
from fogline_research.audit_campaign.hostile_tables import Record, Shape

__all__ = ["PRINTED_FORMS", "Engine"]

Answer = tuple[list[str], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Engine:
    """Runs a printed query.

    Parameters
    ----------
    dialect : str
        As ``fogline sql`` calls it.
    table : str
        What the query reads.
    run : callable
        From SQL to names of columns and rows.
    """

    dialect: str
    table: str
    run: Callable[[str], Answer]


def _opened(engine: Engine, shape: Shape) -> Opened:
    return Opened(engine, {} if shape.ids is None else {"unit": UNIT})


def _duckdb(tables: Sequence[Sequence[Record]], shape: Shape, public: Public, place: Place) -> Iterator[Opened]:  # noqa: ARG001
    import duckdb

    connection = place.connection("duckdb printed", duckdb.connect)
    columns = [f"{name} {DUCKDB_TYPES[shape.cells.split()[0]]}" for name in NAMES[: shape.columns]]
    if shape.ids is not None:
        columns.append(f"{UNIT} {DUCKDB_TYPES[shape.ids.split()[0]]}")
    connection.execute(f"CREATE OR REPLACE TABLE walk (number INTEGER, {', '.join(columns)})")
    stored = [
        [number, *record.cells, *([] if shape.ids is None else [record.unit])]
        for number, _, record in stored_walk(tables)
    ]
    if stored:
        marks = ", ".join(["(" + ", ".join("?" * (1 + len(columns))) + ")"] * len(stored))
        connection.execute(f"INSERT INTO walk VALUES {marks}", [cell for row in stored for cell in row])

    def run(sql: str) -> Answer:
        answer = connection.execute(sql)
        return [column[0] for column in answer.description or ()], answer.fetchall()

    for number in range(len(tables)):
        # One name for all tables of a walk: the query's text must not tell which of them it is about.
        connection.execute(
            f"CREATE OR REPLACE VIEW visits AS SELECT * EXCLUDE number FROM walk WHERE number = {number}"
        )
        yield _opened(Engine("duckdb", "visits", run), shape)


def _sqlite(tables: Sequence[Sequence[Record]], shape: Shape, public: Public, place: Place) -> Iterator[Opened]:
    assert SQLITE.write_all is not None
    for opened in SQLITE.write_all(tables, shape, {**public, "by": "address", "declared id": "TEXT"}, place):
        path = str(opened.source).removeprefix("sqlite:///")

        def run(sql: str, path: str = path) -> Answer:
            with closing(sqlite3.connect(path)) as connection:
                answer = connection.execute(sql)
                return [column[0] for column in answer.description or ()], answer.fetchall()

        yield _opened(Engine("sqlite", opened.keywords["query"], run), shape)


PRINTED_FORMS: tuple[Form, ...] = (
    Form(
        "printed query in DuckDB",
        (
            Shape("double or missing"),
            Shape("double or missing", 1, "integer or missing"),
            Shape("double or missing", 2),
            Shape("single"),
            Shape("double or missing", 2, "integer or missing"),
            Shape("integer or missing"),
        ),
        lambda rows, shape, public, place: next(_duckdb([rows], shape, public, place)),
        needs=("duckdb",),
        write_all=_duckdb,
    ),
    Form(
        "printed query in SQLite",
        # Without ids: SQLite has no hash, and what it keeps of a unit it draws anew each time.
        (Shape("object"), Shape("object", 2), Shape("double or missing")),
        lambda rows, shape, public, place: next(_sqlite([rows], shape, public, place)),
        {"declared": ("REAL", "NUMERIC", "")},
        write_all=_sqlite,
    ),
)
"""Engines that count by themselves, and whose answer is a file."""
