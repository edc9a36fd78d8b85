"""Where the records of a command are: a file, a folder or pattern of files, or a query to a database.

Every command that reads records takes FILE by :func:`source_argument` and makes its table by :func:`source_table`, so
that all of them read the same things and refuse the same mistakes. An address may hold a password, so none is ever
repeated: see :func:`fogline.cli.parse.masked`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fogline.cli.common import need
from fogline.cli.parse import columns_option

if TYPE_CHECKING:
    from fogline.sources.tables import Source

__all__ = [
    "FILE",
    "check_file",
    "loops_for",
    "need_reader",
    "query_option",
    "reading_keywords",
    "reading_options",
    "source_argument",
    "source_files",
    "source_options",
    "source_table",
    "unit_option",
    "wide_bounds",
]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

FILE = """\b
FILE: a CSV or Parquet file (text also as .csv.gz), a folder or a quoted pattern ("visits/*.parquet"), or, with
--query, a database: postgres://user@host:port/database or sqlite:///path.db (sqlite:////path.db from the root).

"""
"""What all commands that read records say about their FILE."""

source_argument = click.argument("file", metavar="FILE")

query_option = click.option(
    "--query", metavar="SQL", help="Of a database: a SELECT, each row from one person's records alone, or a table."
)

unit_option = click.option(
    "--unit", metavar="COLUMN", help="Column that says whose record a row is; --max-contributions is then enforced."
)


_READING = (
    ("delimiter", "CHAR", "Of a text file: what separates its cells (tab for a tab); by default found in the header."),
    ("decimal", "CHAR", "Of a text file: the decimal mark, . or ,"),
    ("thousands", "CHAR", "Of a text file: what separates groups of three digits."),
    ("encoding", "NAME", "Of a text file: utf-8, latin-1, cp1252, ..."),
    ("null", "A,B", "Of a text file: words for a missing value that look like one, such as -999."),
    ("header", "A,B", "Of a text file without a header: the names of all its columns."),
)
"""Options that say how text is read; see fogline.sources.reading.ReadingOptions."""


def reading_options(command: Decorated) -> Decorated:
    """Add how text is read."""
    for name, metavar, words in reversed(_READING):
        command = click.option(f"--{name}", metavar=metavar, help=words)(command)
    return command


def reading_keywords(options: dict[str, Any]) -> dict[str, Any]:
    r"""How text is read, as far as the command says it, as keywords of an engine.

    Examples
    --------
    >>> reading_keywords({"delimiter": "tab", "decimal": ",", "null": "NA,-999", "header": None})
    {'delimiter': '\t', 'decimal': ',', 'null': ['NA', '-999']}
    """
    found = {name: options[name] for name, *_ in _READING if options.get(name) is not None}
    if found.get("delimiter") in ("tab", "\\t"):
        found["delimiter"] = "\t"
    for name in ("null", "header"):
        if name in found:
            found[name] = columns_option(found[name], f"--{name}")
    return found


def source_options(command: Decorated) -> Decorated:
    """Add what to ask a database, whose record a row is, and how text is read."""
    return query_option(unit_option(reading_options(command)))


def need_reader(file: str) -> None:
    """Refuse to go on without the library that reads such a source."""
    from fogline.sources.paths import ADDRESSES

    if not file.startswith(ADDRESSES):
        need("duckdb")
    elif not file.startswith("sqlite"):
        from fogline.sources.databases import require_psycopg

        try:
            require_psycopg()
        except ImportError as error:
            raise click.ClickException(str(error)) from None


def check_file(file: str) -> None:
    """Raise an error where there is no such file; an address is tried when its table is made."""
    from fogline.sources.paths import matching_files

    if "://" not in file:
        matching_files(file)


def source_table(options: dict[str, Any], columns: list[str] | None) -> Source:
    """Return the columns of FILE by its schema, which is all that is read of it here.

    Parameters
    ----------
    options : dict
        Of the command: ``file``, ``query`` and, where the command has them, ``unit`` and how text is read.
    columns : list of str or None
        None: all but the unit's.

    Raises
    ------
    ValueError, TypeError, OSError
        For what is wrong with the schema; the message begins with the parameter's name.
    """
    from fogline.sources.registry import table

    return table(
        options["file"], columns, query=options["query"], unit=options.get("unit"), **reading_keywords(options)
    )


MANY_RECORDS = 500_000
"""From how many expected records on compiled loops win the time in which they are loaded."""


def loops_for(options: dict[str, Any], table: Source) -> AbstractContextManager[None]:
    """Choose compiled or plain loops over the records by public facts: the command's words and the schema.

    One text file of up to three columns is read by plain loops, unless the user expects many records. Neither the
    number of records nor the size of the file is looked at: what a command does must not tell them.
    """
    from fogline._validation import plain_loops
    from fogline.sources.paths import TEXT

    file = Path(options["file"])
    small = (options.get("expect_records") or 0) < MANY_RECORDS
    plain = small and options.get("unit") is None and table.width <= 3
    return plain_loops() if plain and file.suffix.lower() in TEXT and file.is_file() else nullcontext()


def source_files(file: str) -> list[Path]:
    """Files that FILE stands for, which nothing may be written over; none if it is a server, or cannot be found."""
    from fogline.sources.paths import ADDRESSES, matching_files

    if file.startswith(ADDRESSES):
        kind, _, place = file.partition(":///")
        return [Path(place)] if kind == "sqlite" else []
    try:
        return [Path(file), *matching_files(file)]
    except (OSError, ValueError):
        return [Path(file)]


def wide_bounds(table: Source, bounds: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a range for each column; one range serves all of them."""
    from fogline import _validation

    _validation.check_bounds(bounds)
    wide = bounds * table.width if len(bounds) == 1 else bounds
    if len(wide) != table.width:
        raise ValueError(f"bounds has {len(wide)} pairs, but there are {table.width} columns")
    return wide
