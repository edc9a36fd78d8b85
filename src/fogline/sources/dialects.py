r"""How each SQL engine writes the one cell expression: a small frozen description per dialect.

A query that a warehouse runs by itself cannot rely on much, so what all dialects share is chosen to be as plain as can
be:

* **Doubles** are written as quotients of whole numbers, :math:`m / 2^k` with :math:`|m| < 2^{53}`: a cast of such an
  integer and a division by a power of two are exact in IEEE arithmetic, whatever the engine's parser of decimal numbers
  does. :func:`dyadic` proves it by computing it.
* **NaN and infinity** need no test. A value counts if ``x >= low AND x <= high``: both kinds of NaN fail one of the
  two, in engines where NaN compares as false and in those where it is the largest (or, with its sign set, the least)
  value.
* **Nothing fails because of a value**, in whatever order an engine evaluates: a value outside the box is replaced by
  the lower bound before anything is computed from it, and left out as well.
* **The whole part** is ``floor`` of a nonnegative double, cast when it is whole already: engines that round when they
  cast and engines that truncate agree on whole numbers.

A dialect that was never run against its engine is not certified; :attr:`Dialect.run_against` says what it was run
against, by the tests of this project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["DIALECTS", "Dialect", "dialect_named", "dyadic"]

POWER = 62
"""Largest power of two that is written as one whole number."""


@dataclass(frozen=True)
class Dialect:
    """What differs between engines in a query that counts the records of cells.

    Templates hold ``{}`` where an expression goes.

    Parameters
    ----------
    name : str
    title : str
        Of the engine, for people.
    run_against : str
        The engine that the tests run the query in and compare its integers; empty if there is none.
    number : str
        Cast of a column to a double.
    constant : str
        Cast of a whole number to a double.
    whole : str
        Cast of a whole double to an integer.
    text : str
        Cast of an id to a text.
    floor : str
        Whole part of a nonnegative double, as a double.
    lot : str
        What a unit's records are ordered by: a hash of a text, or a random number where the engine has no hash.
    quotes : str
        What opens and closes a quoted name.
    folds : bool
        Whether bare names are folded to upper case, so that a plain name in lower case is written bare.
    joins : bool
        Whether texts are joined by ``||``; else by ``CONCAT``.
    count : str
        Number of rows of a group, in 64 bits.
    nowhere : str
        What a SELECT without a table ends with.
    underflow : bool
        Whether a quotient too small for a double is an error.
    """

    name: str
    title: str
    run_against: str = ""
    number: str = "CAST({} AS DOUBLE)"
    constant: str = "CAST({} AS DOUBLE)"
    whole: str = "CAST({} AS BIGINT)"
    text: str = "CAST({} AS VARCHAR)"
    floor: str = "FLOOR({})"
    lot: str = "random()"
    quotes: str = '""'
    folds: bool = False
    joins: bool = True
    count: str = "COUNT(*)"
    nowhere: str = ""
    underflow: bool = False

    @property
    def reason(self) -> str:
        """Why counts by this dialect are not certified; empty if they are."""
        return "" if self.run_against else f"the SQL for {self.title} was never run against that engine"

    def quoted(self, name: str) -> str:
        """A name as this engine reads it.

        Examples
        --------
        >>> DIALECTS["duckdb"].quoted("age"), DIALECTS["snowflake"].quoted("age"), DIALECTS["tsql"].quoted("a]b")
        ('"age"', 'age', '[a]]b]')
        """
        # in quotes a name in lower case would be another column there
        if self.folds and re.fullmatch("[a-z][a-z0-9_]*", name):
            return name
        opened, closed = self.quotes[0], self.quotes[1]
        if self.name in ("bigquery", "clickhouse"):  # which take a backslash inside quotes as an escape
            return opened + name.replace("\\", "\\\\").replace(closed, f"\\{closed}") + closed
        if self.name == "oracle" and closed in name:
            raise ValueError(f"columns: {self.title} has no names with quotes in them, got {name!r}")
        return opened + name.replace(closed, 2 * closed) + closed

    def relation(self, name: str) -> str:
        """A table's name, with its schema and catalogue if it has them, each part quoted.

        Examples
        --------
        >>> DIALECTS["trino"].relation("lake.clinic.visits")
        '"lake"."clinic"."visits"'
        """
        parts = name.split(".")
        if not all(part.strip() for part in parts):
            raise ValueError(f"table: {name!r} is not the name of a table")
        return ".".join(map(self.quoted, parts))

    def double(self, value: float) -> str:
        """A double, exactly, by whole numbers alone."""
        numerator, powers = dyadic(value)
        written = self.constant.format(numerator)
        for power in powers:
            written += f" {'*' if power > 0 else '/'} {self.constant.format(2 ** abs(power))}"
        return f"({written})" if powers else written

    def quotient(self, part: str, width: float) -> str:
        """A nonnegative number over the width of a cell."""
        plain = f"{part} / {self.double(width)}"
        if not self.underflow:
            return plain
        # Below 2^-1000 cells no sum with the quotient shows it.
        tiny = self.double(width * 2.0**-1000)
        return f"CASE WHEN {part} < {tiny} THEN {self.double(0.0)} ELSE {plain} END"

    def joined(self, *texts: str) -> str:
        """Texts one after the other, by a sign that is in none of the numbers among them."""
        words = [word for text in texts for word in ("'|'", text)][1:]
        return " || ".join(words) if self.joins else f"CONCAT({', '.join(words)})"


def dyadic(value: float) -> tuple[int, tuple[int, ...]]:
    r"""Write a double as a whole number and powers of two to multiply it by, so that no step rounds.

    With :math:`v = m 2^e`, :math:`|m| < 2^{53}` odd, the partial products :math:`m 2^{e_1 + \dots + e_i}` lie between m
    and v in exponent, all of one sign of :math:`e_i`, so that each has the 53 bits of m or fewer and is a double.

    Examples
    --------
    >>> dyadic(0.375), dyadic(-60.0), dyadic(0.0)
    ((3, (-3,)), (-60, ()), (0, ()))
    >>> numerator, powers = dyadic(1e-300)
    >>> product = float(numerator)
    >>> for power in powers:
    ...     product *= 2.0 ** power
    >>> product == 1e-300
    True
    """
    numerator, denominator = float(value).as_integer_ratio()
    if denominator == 1 and abs(numerator) < 2**53:
        return numerator, ()
    exponent = 1 - denominator.bit_length()
    # the odd part has at most 53 bits, so that every partial product is a double
    while numerator % 2 == 0:
        numerator, exponent = numerator // 2, exponent + 1
    whole, rest = divmod(abs(exponent), POWER)
    sizes = [POWER] * whole + ([rest] if rest else [])
    return numerator, tuple(size if exponent > 0 else -size for size in sizes)


_LARGEST = "1.7976931348623157e308"
_POSTGRES_NUMBER = (
    f"CAST(CASE WHEN {{0}} BETWEEN 1e-300 AND {_LARGEST} OR {{0}} BETWEEN -{_LARGEST} AND -1e-300 OR {{0}} = 0 "
    "THEN {0} WHEN {0} > -1 AND {0} < 1 THEN sign({0}) * 1e-300 END AS double precision)"
)
"""A decimal of Postgres beyond the range of doubles would be an error; it is missing, or as good as zero."""

_FLOAT8 = {
    "constant": "CAST({} AS double precision)",
    "whole": "CAST({} AS bigint)",
    "underflow": True,
}

_SPARK = {
    "text": "CAST({} AS STRING)",
    "lot": "sha2({}, 256)",
    "quotes": "``",
}

_ALL = (
    Dialect("duckdb", "DuckDB", run_against="DuckDB", lot="sha256({})"),
    Dialect(
        "postgres",
        "PostgreSQL",
        run_against="PostgreSQL",
        number=_POSTGRES_NUMBER,
        text="CAST({} AS text)",
        # In the encoding of the database, which looks at no byte: a text of SQL_ASCII need not be UTF-8.
        lot="encode(sha256(convert_to({}, getdatabaseencoding())), 'hex')",
        **_FLOAT8,  # type: ignore[arg-type]
    ),
    Dialect(
        "sqlite",
        "SQLite",
        run_against="SQLite",
        # What stands in double quotes and is no column, SQLite would read as a text.
        quotes="``",
        # What is no number in a column of numbers is missing, and no cast makes a number of a text.
        number="CASE WHEN typeof({0}) IN ('integer', 'real') THEN CAST({0} AS REAL) END",
        constant="CAST({} AS REAL)",
        whole="CAST({} AS INTEGER)",
        text="CAST({} AS TEXT)",
        floor="CAST(CAST({} AS INTEGER) AS REAL)",
    ),
    Dialect("spark", "Apache Spark", run_against="Apache Spark", **_SPARK),  # type: ignore[arg-type]
    Dialect(
        "clickhouse",
        "ClickHouse",
        run_against="ClickHouse (chDB)",
        number="toFloat64({})",
        constant="toFloat64({})",
        whole="toInt64({})",
        text="toString({})",
        lot="hex(SHA256({}))",
        quotes="``",
    ),
    Dialect(
        "datafusion",
        "Apache DataFusion",
        run_against="Apache DataFusion",
        lot="encode(sha256({}), 'hex')",
    ),
    Dialect(
        "bigquery",
        "BigQuery",
        number="CAST({} AS FLOAT64)",
        constant="CAST({} AS FLOAT64)",
        whole="CAST({} AS INT64)",
        text="CAST({} AS STRING)",
        lot="TO_HEX(SHA256({}))",
        quotes="``",
    ),
    Dialect("snowflake", "Snowflake", lot="SHA2({}, 256)", folds=True),
    Dialect("trino", "Trino", lot="to_hex(sha256(to_utf8({})))"),
    Dialect("databricks", "Databricks", **_SPARK),  # type: ignore[arg-type]
    Dialect(
        "redshift",
        "Amazon Redshift",
        number="CAST({} AS double precision)",
        text="CAST({} AS VARCHAR(65535))",
        lot="SHA2({}, 256)",
        **_FLOAT8,  # type: ignore[arg-type]
    ),
    Dialect(
        "mysql",
        "MySQL",
        whole="CAST({} AS SIGNED)",
        text="CAST({} AS CHAR)",
        lot="SHA2({}, 256)",
        quotes="``",
        joins=False,
    ),
    Dialect(
        "mariadb",
        "MariaDB",
        run_against="MariaDB",
        whole="CAST({} AS SIGNED)",
        text="CAST({} AS CHAR)",
        lot="SHA2({}, 256)",
        quotes="``",
        joins=False,
    ),
    Dialect(
        "tsql",
        "SQL Server",
        number="CAST({} AS double precision)",
        constant="CAST(CAST({} AS bigint) AS double precision)",
        whole="CAST({} AS bigint)",
        text="CAST({} AS nvarchar(3900))",
        lot="CONVERT(varchar(64), HASHBYTES('SHA2_256', {}), 2)",
        quotes="[]",
        joins=False,
        count="COUNT_BIG(*)",
        underflow=True,
    ),
    Dialect(
        "oracle",
        "Oracle",
        number="TO_BINARY_DOUBLE({})",
        constant="TO_BINARY_DOUBLE({})",
        whole="CAST({} AS NUMBER(19))",
        text="TO_CHAR({})",
        lot="RAWTOHEX(STANDARD_HASH({}, 'SHA256'))",
        folds=True,
        nowhere=" FROM DUAL",
    ),
)

DIALECTS: Mapping[str, Dialect] = MappingProxyType({dialect.name: dialect for dialect in _ALL})
"""All dialects by name."""


def dialect_named(name: str) -> Dialect:
    """Return the dialect of a name, or say which there are.

    Examples
    --------
    >>> dialect_named("duckdb").reason, dialect_named("oracle").reason
    ('', 'the SQL for Oracle was never run against that engine')
    """
    if name not in DIALECTS:
        raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}, got {name!r}")
    return DIALECTS[name]
