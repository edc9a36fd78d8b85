"""Options that commands share: where the records are, how text is read, what is spent, where the answer goes.

Every command that reads records takes FILE by :func:`source_argument` and makes its table by :func:`source_table`, so
that all of them read the same things and refuse the same mistakes. FILE is a file, a folder or pattern of files, or a
database that is asked a query. An address may hold a password, so none is ever repeated: see
:func:`fogline.cli.parse.masked`.
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
    "EXIT_CODES",
    "FILE",
    "budget_options",
    "check_file",
    "currency_options",
    "ledger_options",
    "loops_for",
    "need_reader",
    "output_options",
    "privacy_options",
    "query_option",
    "reading_keywords",
    "reading_options",
    "release_options",
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
    "--query", metavar="SQL", help="For a database: a SELECT, each row from one person's records alone, or a table."
)

unit_option = click.option(
    "--unit", metavar="COLUMN", help="Column that says whose record a row is; --max-contributions is then enforced."
)


_READING = (
    ("delimiter", "CHAR", "For a text file: what separates its cells (tab for a tab); by default found in the header."),
    ("decimal", "CHAR", "For a text file: the decimal mark, . or ,"),
    ("thousands", "CHAR", "For a text file: what separates groups of three digits."),
    ("encoding", "NAME", "For a text file: utf-8, latin-1, cp1252, ..."),
    ("null", "A,B", "For a text file: words for a missing value that look like one, such as -999."),
    ("header", "A,B", "For a text file without a header: the names of all its columns."),
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
    # A tab can hardly be typed as an argument.
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
    from fogline._validation import check_name
    from fogline.sources.registry import table

    found = table(
        options["file"], columns, query=options["query"], unit=options.get("unit"), **reading_keywords(options)
    )
    for name in found.columns or ():  # it will be printed, and a terminal would obey what is no text
        check_name(name, "columns")
    return found


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
        # The pattern itself too: a file may bear its name.
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


EXIT_CODES = """\b
Exit codes: 0 done, also when nothing is found; 1 a library is missing or a file cannot be written;
2 wrong usage or schema; 3 the records could not be read; 4 the ledger refused.
"""


def _all(options: list[Callable[[Any], Any]], command: Decorated) -> Decorated:
    # decorators apply from the inside out: the help then lists them in this order
    for option in reversed(options):
        command = option(command)
    return command


_expect_option = click.option(
    "--expect-records",
    type=click.IntRange(min=1),
    metavar="N",
    help="About how many records there should be: a released count far from it is pointed out. From 500000 on a text"
    " file is read by compiled code, which takes half a second to load.",
)
"""Changes words and speed only: neither the noise nor what a ledger is asked."""


_neighbours_option = click.option(
    "--neighbours",
    type=click.Choice(["add-remove", "replace"]),
    default="add-remove",
    show_default=True,
    help="Hide that a record is there, or only what it says.",
)

_most_option = click.option(
    "--max-contributions", type=int, default=1, show_default=True, help="Most records of one person."
)


def privacy_options(command: Decorated) -> Decorated:
    """Add what is spent, and what is hidden."""
    options = [
        click.option("--epsilon", type=float, required=True, help="Privacy budget of this release."),
        click.option("--delta", type=float, required=True, help="Chance that the promise may fail; well below 1/n."),
        _neighbours_option,
        _expect_option,
    ]
    return _all(options, command)


def release_options(command: Decorated) -> Decorated:
    """Add what a release hides, and of whom."""
    expected = click.option(
        "--expect-records", type=click.IntRange(min=1), metavar="N", help="About how many records there should be."
    )
    return _all([_neighbours_option, _most_option, expected], command)


def pure_budget_options(command: Decorated) -> Decorated:
    """Add what is spent, and on whom it is spent, where a delta is not needed."""
    with_budget = budget_options(command)
    for option in with_budget.__click_params__:  # type: ignore[attr-defined]
        if option.name == "delta":
            option.required = False
            option.help = "Chance that the promise may fail; well below 1/n. Without it the promise is pure epsilon."
    return with_budget


def budget_options(command: Decorated) -> Decorated:
    """Add what is spent, and on whom it is spent."""
    return privacy_options(_most_option(command))


def currency_options(command: Decorated) -> Decorated:
    """Add what is spent, in one of four currencies, and on whom it is spent."""
    options = [
        click.option("--epsilon", type=float, help="Privacy budget of this release, with --delta."),
        click.option("--delta", type=float, help="Chance that the promise may fail; well below 1/n."),
        click.option(
            "--rho", type=float, help="Instead of --epsilon: the budget in zero-concentrated differential privacy."
        ),
        click.option(
            "--hdp", type=float, help="Instead of --epsilon: in Hellinger differential privacy; 0.2 is about (4, 1e-5)."
        ),
        click.option("--pdp", metavar="LAMBDA:EPS", help="Instead of --epsilon: in power divergence of this order."),
        click.option(
            "--neighbours",
            type=click.Choice(["add-remove", "replace"]),
            help="Hide that a record is there (the default), or only what it says (all that a descent can).",
        ),
        _most_option,
        _expect_option,
    ]
    return _all(options, command)


def output_options(
    *, report: str = "Write a self-contained HTML page.", save: str = "Write the released density (.npz)."
) -> Callable[[Decorated], Decorated]:
    """Add where the answer goes, in these words, and which ledger pays."""
    page = click.Path(path_type=Path, dir_okay=False)
    options = [
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."),
        click.option("--report", type=page, help=report),
        click.option("--save", type=page, help=save),
    ]
    return lambda command: _all(options, ledger_options(command))


def ledger_options(command: Decorated) -> Decorated:
    """Add which ledger pays."""
    options = [
        click.option("--ledger", type=click.Path(path_type=Path), help="Pay from this ledger; asking again is free."),
        click.option("--dataset", metavar="ID", help="The data set's name in the ledger, where it has several."),
        click.option("--analyst", metavar="NAME", help="Who asks, as the ledger knows them."),
        click.option("--high-water", type=click.Path(path_type=Path), help="Folder of the ledger's high-water mark."),
        click.option(
            "--afresh",
            is_flag=True,
            help="Ask as if for the first time, of other records or by a newer edition; every time is paid for.",
        ),
    ]
    return _all(options, command)
