"""DuckDB as a reader: rows of a query in batches, through Arrow where pyarrow is installed."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from fogline._validation import records
from fogline.engines.tables import BATCH_ROWS, Take

if TYPE_CHECKING:
    import duckdb

__all__ = ["connect", "has_arrow", "require_duckdb", "scan_batches", "scan_query"]

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

_databases: dict[bool, duckdb.DuckDBPyConnection] = {}
_opening = Lock()


def require_duckdb() -> Any:
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


def scan_query(sql: str, take: Take, *, has_unit: bool, ordered: bool = True) -> None:
    """Hand over the rows of a query of doubles; the last column is the unit's id, if there is a unit."""
    connection = connect(ordered=ordered)
    try:
        if has_arrow():
            scan_batches(connection.sql(sql).to_arrow_reader(BATCH_ROWS), take, has_unit=has_unit)
            return
        connection.execute(sql)
        while rows := connection.fetchmany(BATCH_ROWS):
            ids = [row[-1] for row in rows] if has_unit else None
            numbers = [row[:-1] for row in rows] if has_unit else rows
            take(np.array(numbers, dtype=np.float64), ids)
    finally:
        connection.close()


def scan_batches(batches: Any, take: Take, *, has_unit: bool) -> None:
    """Hand over Arrow batches; the last column is the unit's id, if there is a unit."""
    for batch in batches:
        width = batch.num_columns - has_unit
        take(records(batch.select(list(range(width)))), batch.column(width) if has_unit else None)
