"""``fogline bounds``: private ranges of columns; ``fogline units``: public ones, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, need, print_json
from fogline.cli.release import EXIT_CODES, ask, budget_options, checked_words, ledger_options
from fogline.cli.sources import FILE, need_reader, source_argument, source_options, source_table

if TYPE_CHECKING:
    from fogline.estimators.bounds import PrivateBounds

__all__ = ["bounds", "units"]

EXAMPLES = """\b
Examples:
  fogline bounds visits.csv --columns minutes,cost --epsilon 0.2 --delta 1e-6
  fogline bounds visits.parquet --columns cost --epsilon 0.2 --delta 1e-6 --coverage 0.95 --json
  fogline units

"""


@click.command(cls=Command, epilog=EXAMPLES + FILE + EXIT_CODES)
@source_argument
@click.option("--columns", metavar="A,B", help="Columns; by default all but the unit's.")
@source_options
@budget_options
@click.option("--coverage", type=float, default=0.99, show_default=True, help="Share of the records to hold.")
@click.option("--shares", metavar="A=1/3,B=2/3", help="Part of the budget for each column; equal by default.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@ledger_options
@click.pass_context
def bounds(ctx: click.Context, /, **options: Any) -> None:
    """Find a range for each column of FILE, privately, where none is known.

    Spends the budget once, for all columns together. Where a range is known (an age, a percentage) name it instead and
    keep the budget: fogline units lists such names.
    """
    need_reader(options["file"])
    need(*([] if options["as_json"] else ["rich"]))
    columns = parse.columns_option(options["columns"])
    shares = _shares(options["shares"])
    checked_words(options)

    def question(view: Any) -> PrivateBounds:
        from fogline import private_bounds

        names = ("epsilon", "delta", "coverage", "neighbours", "max_contributions", "expect_records")
        source = source_table(options, columns)
        return private_bounds(source, **{name: options[name] for name in names}, shares=shares, ledger=view)

    found, paid = ask(question, options, "reading the records, releasing noisy counts")
    if options["as_json"]:
        print_json({**_document(found, str(ctx.meta["fogline.command"])), **(paid or {})})
        return
    _show(found, paid)


def _shares(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    shares = {}
    for part in text.split(","):
        name, equals, portion = (word.strip() for word in part.rpartition("="))
        if not name or not equals:
            raise click.BadParameter(f"expected column=portion, such as age=1/3, got {part!r}", param_hint="--shares")
        shares[name] = portion
    return shares


def _document(found: PrivateBounds, command: str) -> dict[str, Any]:
    seen = found.bounds == found.bounds
    return {
        "format": "fogline-bounds-1",
        "command": command,
        "columns": [
            {
                "name": name,
                "bounds": found.bounds[j].tolist() if seen[j].all() else None,
                "outside_at_most": float(found.outside[j]) if seen[j].all() else None,
                "count": {"value": float(found.counts[j]), "standard_error": float(found.count_standard_errors[j])},
                "message": found.messages[j],
            }
            for j, name in enumerate(found.columns)
        ],
        "message": found.message,
        "guarantee": {**found.guarantee.to_dict(), "text": str(found.guarantee)},
    }


def _show(found: PrivateBounds, paid: dict[str, Any] | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from fogline.cli.show import console_for_people, show_payment
    from fogline.report._svg import significant
    from fogline.report.frame import as_sentence

    console = console_for_people()
    table = Table(title=Text("Ranges"), title_justify="left")
    for heading in ("column", "low", "high", "records outside, at most about"):
        table.add_column(heading, justify="left" if heading == "column" else "right")
    for j, name in enumerate(found.columns):
        low, high = found.bounds[j]
        cells = ["-"] * 3 if low != low else [f"{low:g}", f"{high:g}", significant(float(found.outside[j]), 2)]
        table.add_row(Text(name), *cells)
    console.print(table)
    for message in filter(None, (*found.messages, found.message)):
        console.print(as_sentence(message), soft_wrap=True)
    if found.found:
        console.print(
            "--bounds=" + ",".join(f"{low!r}:{high!r}" for low, high in found.bounds.tolist()), soft_wrap=True
        )
    console.print(str(found.guarantee), soft_wrap=True)
    if paid is not None:
        show_payment(paid)


@click.command(cls=Command)
def units() -> None:
    """List public ranges that --bounds takes by name: facts about the world that cost nothing."""
    from fogline import units as known

    for name in known.names():
        click.echo(repr(known.named(name)))
