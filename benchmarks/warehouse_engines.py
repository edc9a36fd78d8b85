"""SQL engines of this machine by one interface, for tests and benchmarks: a table in, the rows of a query out.

Servers are made in a temporary folder, used, and taken away again. An engine that is not installed raises
:class:`NotInstalled`, which says what to install.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

__all__ = ["ENGINES", "Engine", "NotInstalled", "opened_engine"]

PATIENCE = 60.0

Rows = Sequence[tuple[Any, ...]]
"""Rows of (double or None, whole number or None, Decimal or None, text or None)."""

COLUMNS = ("f", "i", "n", "who")


class NotInstalled(RuntimeError):
    """The engine is not on this machine."""


class Engine(Protocol):
    """What runs queries."""

    dialect: str
    has_nan: bool

    def load(self, name: str, rows: Rows) -> None:
        """Make a table of the columns f, i, n and who."""

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""


def _module(name: str, package: str = "") -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise NotInstalled(f"pip install {package or name}") from None


def arrow_table(rows: Rows) -> Any:
    """Rows as a table of Arrow, each double as it is, bit by bit."""
    pa = _module("pyarrow")
    kinds = (pa.float64(), pa.int64(), pa.decimal128(38, 10), pa.string())
    arrays = [pa.array([row[k] for row in rows], kind) for k, kind in enumerate(kinds)]
    return pa.table(dict(zip(COLUMNS, arrays, strict=True)))


class DuckEngine:
    """DuckDB in this process."""

    dialect, has_nan = "duckdb", True

    def __init__(self) -> None:
        self._connection = _module("duckdb").connect()

    def load(self, name: str, rows: Rows) -> None:
        """Make a table."""
        self._connection.register("arriving", arrow_table(rows))
        self._connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM arriving')

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return list(self._connection.execute(sql).fetchall())

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


class SqliteEngine:
    """SQLite in this process; it stores a NaN as NULL."""

    dialect, has_nan = "sqlite", True

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:")

    def load(self, name: str, rows: Rows) -> None:
        """Make a table; SQLite has no decimals, so that those are doubles there."""
        self._connection.execute(f'CREATE TABLE "{name}" (f REAL, i INTEGER, n REAL, who TEXT)')
        plain = [(f, i, None if n is None else float(n), who) for f, i, n, who in rows]
        self._connection.executemany(f'INSERT INTO "{name}" VALUES (?, ?, ?, ?)', plain)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return list(self._connection.execute(sql).fetchall())

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


class ClickHouseEngine:
    """ClickHouse in this process, by chDB; tables are Parquet files."""

    dialect, has_nan = "clickhouse", True

    def __init__(self, folder: Path) -> None:
        self._chdb, self._folder = _module("chdb"), folder
        self._places: dict[str, str] = {}

    def load(self, name: str, rows: Rows) -> None:
        """Write a file."""
        path = self._folder / f"{name}.parquet"
        _module("pyarrow.parquet").write_table(arrow_table(rows), path)
        self._places[f"`{name}`"] = f"file('{path}', 'Parquet')"

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        for name, place in self._places.items():
            sql = sql.replace(f"FROM {name}", f"FROM {place}")
        answer = self._chdb.query(sql, "JSONCompact")
        import json

        return [tuple(row) for row in json.loads(str(answer))["data"]]


class DataFusionEngine:
    """Apache DataFusion in this process."""

    dialect, has_nan = "datafusion", True

    def __init__(self) -> None:
        self._context = _module("datafusion").SessionContext()

    def load(self, name: str, rows: Rows) -> None:
        """Make a table."""
        self._context.register_record_batches(name, [arrow_table(rows).to_batches()])

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return [tuple(row.values()) for batch in self._context.sql(sql).collect() for row in batch.to_pylist()]


class SparkEngine:
    """A Spark session."""

    dialect, has_nan = "spark", True

    def __init__(self, session: Any, folder: Path) -> None:
        self._session, self._folder = session, folder

    def load(self, name: str, rows: Rows) -> None:
        """Write a file and name it."""
        path = self._folder / f"{name}.parquet"
        _module("pyarrow.parquet").write_table(arrow_table(rows), path)
        self._session.read.parquet(str(path)).createOrReplaceTempView(name)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return [tuple(row) for row in self._session.sql(sql).collect()]


class PostgresEngine:
    """A Postgres server by its address."""

    dialect, has_nan = "postgres", True

    def __init__(self, address: str) -> None:
        self._connection = _module("psycopg", "psycopg[binary]").connect(address, autocommit=True)

    def load(self, name: str, rows: Rows) -> None:
        """Make a table."""
        types = "f double precision, i bigint, n numeric, who text"
        self._connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        self._connection.execute(f'CREATE TABLE "{name}" ({types})')
        with self._connection.cursor() as cursor:
            cursor.executemany(f'INSERT INTO "{name}" VALUES (%s, %s, %s, %s)', list(rows))

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return list(self._connection.execute(sql.encode()).fetchall())

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


class FakeSnowflakeEngine:
    """fakesnow: Snowflake's SQL, translated by sqlglot and run by DuckDB. It is not Snowflake."""

    dialect, has_nan = "snowflake", True

    def __init__(self) -> None:
        _module("fakesnow")
        import fakesnow
        import snowflake.connector

        self._patch = fakesnow.patch()
        self._patch.__enter__()
        self._connection: Any = snowflake.connector.connect(database="CLINIC", schema="PUBLIC")

    def load(self, name: str, rows: Rows) -> None:
        """Make a table."""
        cursor = self._connection.cursor()
        cursor.execute(f"CREATE TABLE {name} (f DOUBLE, i BIGINT, n NUMBER(38, 10), who VARCHAR)")
        lines = [", ".join(_snowflake_literal(cell) for cell in row) for row in rows]
        for start in range(0, len(lines), 200):
            values = "), (".join(lines[start : start + 200])
            cursor.execute(f"INSERT INTO {name} SELECT * FROM VALUES ({values})")

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return list(self._connection.cursor().execute(sql).fetchall())

    def close(self) -> None:
        """Take the stand-in away."""
        self._connection.close()
        self._patch.__exit__(None, None, None)


class MariaEngine:
    """A MariaDB server on a socket, by its own command line."""

    dialect, has_nan = "mariadb", False

    def __init__(self, socket: Path) -> None:
        self._command = ["mariadb", "--no-defaults", f"--socket={socket}", "--batch", "--skip-column-names"]
        self._ask("CREATE DATABASE IF NOT EXISTS clinic")
        self._command.append("--database=clinic")

    def _ask(self, sql: str) -> str:
        found = subprocess.run(self._command, input=sql.encode(), capture_output=True, check=False)
        if found.returncode:
            raise RuntimeError(f"MariaDB: {found.stderr.decode()[:500]}")
        return found.stdout.decode()

    def load(self, name: str, rows: Rows) -> None:
        """Make a table; MariaDB has neither NaN nor infinity, which are NULL there."""
        types = "f DOUBLE, i BIGINT, n DECIMAL(48, 10), who TEXT"
        lines = [", ".join(_maria_literal(cell) for cell in row) for row in rows]
        parts = [f"INSERT INTO `{name}` VALUES ({'), ('.join(lines[k : k + 500])});" for k in range(0, len(lines), 500)]
        self._ask("\n".join([f"DROP TABLE IF EXISTS `{name}`;", f"CREATE TABLE `{name}` ({types});", *parts]))

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query: all but the last of their cells are whole numbers."""
        lines = [line.split("\t") for line in self._ask(sql).splitlines()]
        return [(*(int(cell) for cell in line[:-1]), line[-1]) for line in lines]


def _maria_literal(cell: object) -> str:
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return "NULL"
    if isinstance(cell, float):
        text = repr(cell)
        return text if "e" in text else f"{text}e0"
    return f"'{cell}'" if isinstance(cell, str) else str(cell)


def _snowflake_literal(cell: object) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, float):
        return f"'{cell!r}'::DOUBLE"
    return (
        f"'{cell}'" if isinstance(cell, str) else f"{cell}::NUMBER(38, 10)" if isinstance(cell, Decimal) else str(cell)
    )


@contextlib.contextmanager
def local_mariadb() -> Iterator[Path]:
    """Socket of a fresh server; its data are gone at the end."""
    server, install = shutil.which("mariadbd") or "/usr/sbin/mariadbd", shutil.which("mariadb-install-db")
    if not Path(server).exists() or install is None or shutil.which("mariadb") is None:
        raise NotInstalled("apt-get install mariadb-server")
    folder = Path(tempfile.mkdtemp(prefix="fogline-maria-"))
    try:
        user = ["--user=root"] if os.geteuid() == 0 else []
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        made = [install, "--no-defaults", f"--datadir={folder}/data", "--auth-root-authentication-method=normal"]
        subprocess.run([*made, "--skip-test-db", *user], check=True, **quiet)
        socket = folder / "socket"
        options = [f"--datadir={folder}/data", f"--socket={socket}", "--skip-networking", f"--pid-file={folder}/pid"]
        options += ["--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0"]
        process = subprocess.Popen([server, "--no-defaults", *options, *user], **quiet)
        try:
            _wait_for(socket, process)
            yield socket
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(socket: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        asked = ["mariadb", "--no-defaults", f"--socket={socket}", "-e", "SELECT 1"]
        if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError("the MariaDB server did not start")
        time.sleep(0.1)


@contextlib.contextmanager
def opened_engine(name: str) -> Iterator[Engine]:
    """An engine by name, ready to load tables; closed at the end."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fogline-engine-")))
        if name == "MariaDB":
            yield MariaEngine(stack.enter_context(local_mariadb()))
        elif name == "PostgreSQL":
            _module("psycopg", "psycopg[binary]")
            from loopback_postgres import loopback_postgres

            address = stack.enter_context(loopback_postgres())
            yield stack.enter_context(contextlib.closing(PostgresEngine(address)))
        elif name == "Apache Spark":
            _module("pyspark")
            from local_spark import local_spark

            yield SparkEngine(stack.enter_context(local_spark()), folder)
        elif name == "fakesnow":
            yield stack.enter_context(contextlib.closing(FakeSnowflakeEngine()))
        elif name == "ClickHouse (chDB)":
            yield ClickHouseEngine(folder)
        elif name == "Apache DataFusion":
            yield DataFusionEngine()
        elif name == "DuckDB":
            yield stack.enter_context(contextlib.closing(DuckEngine()))
        elif name == "SQLite":
            yield stack.enter_context(contextlib.closing(SqliteEngine()))
        else:
            raise ValueError(f"there is no engine {name!r}")


ENGINES = (
    *("DuckDB", "SQLite", "PostgreSQL", "Apache DataFusion", "ClickHouse (chDB)", "MariaDB", "Apache Spark"),
    "fakesnow",
)
"""Engines that may be on this machine; the last is a stand-in for Snowflake, and runs DuckDB."""
