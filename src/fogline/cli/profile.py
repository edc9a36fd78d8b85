"""``fogline profile``: the shape of every column of a table, from one budget."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, console_for_people, need, print_json, writable, write
from fogline.cli.options import (
    EXIT_CODES,
    FILE,
    ledger_options,
    need_reader,
    reading_keywords,
    release_options,
    source_argument,
    source_options,
)
from fogline.cli.release import ask, checked_outputs, checked_words, progress_bar, recipe_words, show_payment

if TYPE_CHECKING:
    from fogline.density.profile import Profile
    from fogline.ledger import LedgerView

__all__ = ["profile"]

EXAMPLES = """\b
Examples:
  fogline profile visits.csv --bounds age=age,stay=0:60 --category sex=f/m --epsilon 1 --report profile.html
  fogline profile visits.csv --bounds age=0:110 --numeric cost --date day=2015-01-01:2024-12-31 --category ward
        --epsilon 1 --delta 1e-6 --out profile/
  fogline profile visits.csv --bounds age=age,stay=0:60,cost=0:9000 --columns age,stay,cost --pairs all --epsilon 1
  fogline profile visits.parquet --epsilon 1 --delta 1e-6 --json

\b
A CSV file declares no types, so each of its columns is named by one of --bounds, --numeric, --date and --category, or
left out by --columns. Types of Parquet files and databases are used as they are.

"""


@click.command(cls=Command, epilog=EXAMPLES + FILE + EXIT_CODES)
@source_argument
@click.option("--columns", metavar="A,B", help="Columns; by default all but the unit's.")
@click.option("--bounds", metavar="A=LO:HI,B=NAME", help="Public range of each column of numbers, or its name.")
@click.option(
    "--numeric", metavar="A,B", help="Columns of numbers whose range is to be found, for a share of the budget."
)
@click.option("--steps", metavar="A=1", help="Public rounding step of columns; whole numbers have 1.")
@click.option("--date", "dates", metavar="A,B=FROM:TO", help="Columns of dates YYYY-MM-DD, perhaps with a range.")
@click.option("--category", "categories", metavar="A,B=x/y", help="Columns of categories, perhaps with a list.")
@click.option(
    "--pairs",
    metavar="all|A,B|A:B,A:C",
    help="Pairs of columns whose dependence is released, too: all; those of the named columns; or single pairs.",
)
@click.option(
    "--pairs-share",
    metavar="SHARE",
    default="1/5",
    show_default=True,
    help="Share of the budget that is spent on pairs.",
)
@source_options
@click.option("--epsilon", type=float, required=True, help="Privacy budget of the whole profile.")
@click.option("--delta", type=float, help="Chance that the promise may fail; needed to find categories, else optional.")
@release_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write a self-contained HTML page.")
@click.option("--table", type=click.Path(path_type=Path, dir_okay=False), help="Write a table (.csv or .xlsx).")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for everything: page, table, document, and one released density per column (.fog).",
)
@ledger_options
@click.pass_context
def profile(ctx: click.Context, /, **options: Any) -> None:
    """Release the shape of every column of FILE at once: shares, quantiles with errors, heaps, top categories.

    Spends the budget once, for all columns together.
    """
    need_reader(options["file"])
    need(*([] if options["as_json"] else ["rich"]), *(["jinja2"] if options["report"] or options["out"] else []))
    checked_outputs(options, "report", "table")
    _check_places(options)
    question = _question(options)
    found, paid = ask(question, options, "reading the records, releasing all columns once")
    with progress_bar(quiet=options["as_json"]) as tell:
        found.read(None if tell is None else tell)
    command = str(ctx.meta["fogline.command"])
    if options["as_json"]:
        print_json({**found.to_dict(), "command": command, **(paid or {})})
    else:
        _show(found)
        if paid is not None:
            show_payment(paid)
    written = _write(found, options, command + recipe_words())
    if not options["as_json"]:
        for what in written:
            click.echo(what)


def _check_places(options: dict[str, Any]) -> None:
    """Refuse what cannot be written, before anything is spent."""
    table, out = options["table"], options["out"]
    if table is not None and table.suffix.lower() not in (".csv", ".xlsx"):
        raise click.BadParameter("expected a name that ends in .csv or .xlsx", param_hint="--table")
    if table is not None and table.suffix.lower() == ".xlsx":
        from importlib.util import find_spec

        if find_spec("openpyxl") is None:
            raise click.ClickException("writing .xlsx needs openpyxl: pip install openpyxl; .csv needs nothing")
    if out is not None:
        writable(out, "--out")


# -- words to parameters --------------------------------------------------------------------------------------


def _question(options: dict[str, Any]) -> Callable[[LedgerView | None], Profile]:
    given: dict[str, Any] = {
        "columns": parse.columns_option(options["columns"]),
        "bounds": _ranges(options["bounds"]),
        "numeric": parse.columns_option(options["numeric"], "--numeric") or [],
        "steps": _steps(options["steps"]),
    }
    dates = _named(options["dates"], "--date")
    given["dates"] = list(dates)
    given["bounds"] = {**given["bounds"], **{name: _dates(word) for name, word in dates.items() if word is not None}}
    lists = _named(options["categories"], "--category")
    # A bar needs quotes in a shell, so a slash will do where no category has one.
    given["categories"] = {
        name: None if word is None else word.split("|" if "|" in word else "/") for name, word in lists.items()
    }
    given["pairs"], given["pairs_share"] = _pairs(options["pairs"]), options["pairs_share"]
    checked_words(options)

    def question(view: LedgerView | None) -> Profile:
        from fogline import profile as released

        names = ("epsilon", "delta", "neighbours", "max_contributions", "expect_records", "unit", "query")
        try:
            return released(
                options["file"],
                **given,
                **{name: options[name] for name in names},
                reading=reading_keywords(options),
                ledger=view,
            )
        except ValueError as error:
            raise _in_options(error) from None

    return question


def _pairs(text: str | None) -> str | list[Any] | None:
    """Pairs of columns of an option.

    Examples
    --------
    >>> _pairs("all"), _pairs("age,stay,cost"), _pairs("age:stay,age:cost")
    ('all', ['age', 'stay', 'cost'], [('age', 'stay'), ('age', 'cost')])
    """
    if text is None or text.strip() == "all":
        return None if text is None else "all"
    names = [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [])]
    if not any(":" in name for name in names):
        return names
    found = [tuple(end.strip() for end in name.split(":")) for name in names]
    if any(len(pair) != 2 or not all(pair) for pair in found):
        raise click.BadParameter(f"expected all, A,B,C or A:B,A:C, got {text!r}", param_hint="--pairs")
    return list(found)


def _in_options(error: ValueError) -> ValueError:
    """Say how columns are declared by the words of the command, not by those of Python."""
    words = str(error)
    if "nothing says what" in words:
        words = (
            words.partition(";")[0]
            + "; give numbers a range (--bounds age=0:110) or let one be found (--numeric cost), "
            "and name the others (--date day --category sex); or choose --columns"
        )
    return type(error)(words)


def _named(text: str | None, option: str) -> dict[str, str | None]:
    """Return the parts of ``a,b=word`` by name.

    Examples
    --------
    >>> _named("sex=f|m,ward", "--category")
    {'sex': 'f|m', 'ward': None}
    """
    found: dict[str, str | None] = {}
    if text is None:
        return found
    for part in next(csv.reader([text], skipinitialspace=True), []):
        name, equals, word = (piece.strip() for piece in part.partition("="))
        if not name or (equals and not word) or name in found:
            raise click.BadParameter(
                f"expected names with commas between them, each once, got {text!r}", param_hint=option
            )
        found[name] = word if equals else None
    return found


def _ranges(text: str | None) -> dict[str, tuple[float, float] | str]:
    """Return the ranges of ``age=0:110,share=percent``."""
    found: dict[str, tuple[float, float] | str] = {}
    for name, word in _named(text, "--bounds").items():
        if word is None:
            raise click.BadParameter(f"expected column=low:high or column=name, got {name!r}", param_hint="--bounds")
        (pair,) = parse.bounds_option(word)
        found[name] = word if re.fullmatch("[A-Za-z_]+", word) else pair
    return found


def _steps(text: str | None) -> dict[str, float]:
    found = {}
    for name, word in _named(text, "--steps").items():
        try:
            found[name] = float(word or "")
        except ValueError:
            raise click.BadParameter(
                f"expected column=step, such as age=1, got {name!r}", param_hint="--steps"
            ) from None
    return found


def _dates(word: str) -> tuple[str, str]:
    first, colon, last = word.partition(":")
    if not colon:
        raise click.BadParameter(f"expected FROM:TO, such as 2015-01-01:2024-12-31, got {word!r}", param_hint="--date")
    return first.strip(), last.strip()


# -- what is shown and written --------------------------------------------------------------------------------


def _show(found: Profile) -> None:
    from rich.table import Table
    from rich.text import Text

    from fogline.report.frame import as_sentence
    from fogline.report.profile import pair_sentences

    console = console_for_people()
    table = Table(title=Text("Profile"), title_justify="left")
    headings, rows = found.summary_rows()
    for heading in headings:
        table.add_column(Text(heading), justify="right" if heading.endswith("%") else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    console.print(f"Records, as released: {found.count:.0f} ± {found.count_sd:.0f}.")
    for sentence in pair_sentences(found):
        console.print(Text(sentence), soft_wrap=True)
    if found.message:
        console.print(as_sentence(found.message), soft_wrap=True)
    console.print(str(found.guarantee), soft_wrap=True)


def _write(found: Profile, options: dict[str, Any], command: str) -> list[str]:
    """Write what was asked for, and say where it is."""
    from fogline.report.profile import write_profile

    written = []
    for name in ("report", "table"):
        path = options[name]
        if path is not None:
            write(lambda path=path: write_profile(found, path, command=command), f"--{name}")  # type: ignore[misc]
            written.append(f"{name}: {path}")
    out = options["out"]
    if out is not None:
        write(lambda: _write_folder(found, out, command), "--out")
        written.append(f"out: {out}")
    return written


def _write_folder(found: Profile, out: Path, command: str) -> None:
    from fogline.report.profile import write_profile

    out.mkdir(exist_ok=True)
    for ending in ("html", "json", "csv"):
        write_profile(found, out / f"profile.{ending}", command=command)
    found.save(out / "profile.npz")
    taken: set[str] = set()
    for column in found.values():
        if column.density is not None:
            name = re.sub(r"[^\w-]", "_", column.name)[:60] or "column"
            # Names that differ in signs alone, or in capitals on some systems, must not share a file.
            while name.lower() in taken:
                name += "_"
            taken.add(name.lower())
            column.density.save(out / f"{name}.fog")
