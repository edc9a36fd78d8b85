"""The commands about a table itself: ``fogline check``, ``bounds``, ``units`` and ``strata``.

What would be read of a file, for free; a private range for each column, or a public one by name; and one density for
each public category with a test of their difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, drawable, need, print_json, write
from fogline.cli.options import (
    EXIT_CODES,
    FILE,
    budget_options,
    ledger_options,
    need_reader,
    pure_budget_options,
    reading_keywords,
    reading_options,
    source_argument,
    source_options,
    source_table,
    unit_option,
)
from fogline.cli.release import ask, checked_outputs, checked_words, recipe_words

if TYPE_CHECKING:
    from fogline.density.strata import Strata
    from fogline.estimators.bounds import PrivateBounds
    from fogline.ledger import LedgerView
    from fogline.sources.check import FileCheck

__all__ = ["bounds", "check", "strata", "units"]

BOUNDS_EXAMPLES = """\b
Examples:
  fogline bounds visits.csv --columns minutes,cost --epsilon 0.2 --delta 1e-6
  fogline bounds visits.parquet --columns cost --epsilon 0.2 --delta 1e-6 --coverage 0.95 --json
  fogline units

"""


@click.command(cls=Command, epilog=BOUNDS_EXAMPLES + FILE + EXIT_CODES)
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

    def question(view: LedgerView | None) -> PrivateBounds:
        from fogline import private_bounds

        names = ("epsilon", "delta", "coverage", "neighbours", "max_contributions", "expect_records")
        source = source_table(options, columns)
        return private_bounds(source, **{name: options[name] for name in names}, shares=shares, ledger=view)

    found, paid = ask(question, options, "reading the records, releasing noisy counts")
    if options["as_json"]:
        print_json({**_bounds_document(found, str(ctx.meta["fogline.command"])), **(paid or {})})
        return
    _show_bounds(found, paid)


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


def _bounds_document(found: PrivateBounds, command: str) -> dict[str, Any]:
    # NaN, where no range stood out, is not equal to itself.
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


def _show_bounds(found: PrivateBounds, paid: dict[str, Any] | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from fogline.cli.common import console_for_people
    from fogline.cli.release import show_payment
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


MOST_COLUMNS = 3
"""Of a release on leaves, the only one that needs no delta."""

STRATA_EXAMPLES = """\b
Examples:
  fogline strata people.csv --by sex --categories f,m --columns height --bounds body_height
        --epsilon 1 --picture heights.svg
  fogline strata visits.csv --by ward --categories a,b --columns stay --bounds 0:60 --unit person_id
        --max-contributions 2 --epsilon 1 --delta 1e-6
  fogline strata survey.parquet --by region --categories north,south --others none --columns age
        --bounds age --weights w --weight-bound 5 --epsilon 1 --delta 1e-6 --json

"""


@click.command(cls=Command, epilog=STRATA_EXAMPLES + FILE + EXIT_CODES)
@source_argument
@click.option("--by", metavar="COLUMN", required=True, help="Column of the categories.")
@click.option("--categories", metavar="A,B", required=True, help="Public categories; never from the data.")
@click.option(
    "--others", default="other", show_default=True, help="Stratum of all other records; none leaves them out."
)
@click.option("--columns", metavar="A,B", help="Columns; by default all others.")
@click.option(
    "--bounds",
    metavar="LO:HI,LO:HI",
    required=True,
    help="Public range of each column, or its name; one range serves all.",
)
@source_options
@pure_budget_options
@click.option("--weights", metavar="COLUMN", help="Column of survey weights.")
@click.option("--weight-bound", type=float, help="With --weights: public bound of a weight.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option(
    "--level", type=float, default=0.05, show_default=True, help="Probability of reporting a mode that is only noise."
)
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw them (.svg, .png or .pdf).")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Write the released densities (.npz).")
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write a self-contained HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@ledger_options
@click.pass_context
def strata(ctx: click.Context, /, **options: Any) -> None:
    """Release one density for each category of FILE, for the price of one, and compare them.

    Spends the budget once. All strata are released, whether or not any record is in them.
    """
    picture = options["picture"]
    need_reader(options["file"])
    need(*([] if options["as_json"] else ["rich"]), *(["jinja2"] if options["report"] else []))
    need(*(["matplotlib"] if picture else []))
    drawable(picture, "--picture", (".svg", ".png", ".pdf"))
    checked_outputs(options, "picture", "save", "report")
    question = _strata_question(options)
    found, paid = ask(question, options, "reading the records, releasing the densities once")
    document = _strata_document(found, str(ctx.meta["fogline.command"]), options["level"])
    if options["as_json"]:
        print_json({**document, **(paid or {})})
    else:
        _show_strata(document, paid)
    if options["save"] is not None:
        write(lambda: found.save(options["save"]), "--save")
    if picture is not None:
        _draw_strata(found, picture)
    if options["report"] is not None:
        command = str(ctx.meta["fogline.command"]) + recipe_words()
        write(lambda: found.report(options["report"], command=command), "--report")
    if not options["as_json"]:
        for name in ("save", "picture", "report"):
            if options[name] is not None:
                click.echo(f"{'densities' if name == 'save' else name}: {options[name]}")


def _strata_question(options: dict[str, Any]) -> Callable[[LedgerView | None], Strata]:
    columns = parse.columns_option(options["columns"])
    bounds = parse.bounds_option(options["bounds"])
    steps = parse.steps_option(options["steps"])
    categories = parse.columns_option(options["categories"])
    others = None if options["others"].strip().lower() == "none" else options["others"]
    checked_words({**options, "delta": options["delta"] or None}, bounds=bounds)
    if isinstance(steps, list) and len(steps) == 1:
        steps = steps[0]
    features = "auto" if options["delta"] else "leaves"
    if features == "leaves" and options["weights"] is not None:
        raise click.BadParameter("is needed: weights are added up in Fourier sums", param_hint="--delta")
    if features == "leaves" and len(columns or bounds) > MOST_COLUMNS:
        words = f"is needed: a pure release counts on leaves, of up to {MOST_COLUMNS} columns"
        raise click.BadParameter(words, param_hint="--delta")

    def question(view: LedgerView | None) -> Strata:
        from fogline import private_strata

        names = ("epsilon", "delta", "neighbours", "max_contributions", "weights", "weight_bound")
        return private_strata(
            options["file"],
            options["by"],
            categories=categories,
            others=others,
            columns=columns,
            query=options["query"],
            reading=reading_keywords(options),
            bounds=bounds,
            steps=steps,
            ledger=view,
            unit=options["unit"],
            expect_records=options["expect_records"],
            features=features,
            **{name: options[name] for name in names},
        )

    return question


def _strata_document(found: Strata, command: str, level: float) -> dict[str, Any]:
    """Everything that is printed, from released values."""
    parts = []
    for name, table in found.modes(level=level).items():
        density = found[name]
        modes = zip(table.positions.tolist(), table.standard_errors.tolist(), table.p_values.tolist(), strict=True)
        parts.append(
            {
                "name": name,
                "count": density.count,
                "count_sd": density.count_sd,
                "message": table.message,
                "modes": [{"position": x, "standard_errors": error, "p_value": p} for x, error, p in modes],
            }
        )
    comparisons = []
    # A test of difference compares densities on a grid.
    if found.spec.d <= 3:
        for first, second in itertools.combinations(found.names, 2):
            test = found.compare(first, second)
            comparisons.append({"first": first, "second": second, "p_value": test.p_value, "message": test.message})
    return {
        "format": "fogline-strata-1",
        "command": command,
        "weight_bound": found.weight_bound,
        "strata": parts,
        "comparisons": comparisons,
        "message": found.message,
        "guarantee": {**found.guarantee.to_dict(), "text": str(found.guarantee)},
    }


def _show_strata(document: dict[str, Any], paid: dict[str, Any] | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from fogline.cli.common import console_for_people
    from fogline.cli.release import show_payment
    from fogline.report._svg import plus_minus
    from fogline.report.frame import as_sentence

    console = console_for_people()
    table = Table(title=Text("Strata"), title_justify="left")
    for heading in ("stratum", "records", "modes, highest first"):
        table.add_column(heading)
    for part in document["strata"]:
        where = [
            "(" + ", ".join(" ± ".join(plus_minus(x, [e])) for x, e in zip(*pair, strict=True)) + ")"
            for pair in ((mode["position"], mode["standard_errors"]) for mode in part["modes"])
        ]
        count = " ± ".join(plus_minus(part["count"], [part["count_sd"]]))
        table.add_row(Text(part["name"]), count, ", ".join(where) or "in the fog")
    console.print(table)
    for test in document["comparisons"]:
        verdict = test["message"] or f"test of equal shapes, p = {test['p_value']:.3g}"
        console.print(f"{test['first']} and {test['second']}: {verdict}", soft_wrap=True)
    if document["message"]:
        console.print(as_sentence(document["message"]), soft_wrap=True)
    console.print(document["guarantee"]["text"], soft_wrap=True)
    if paid is not None:
        show_payment(paid)


def _draw_strata(found: Strata, path: Path) -> None:
    import matplotlib as mpl

    # A command has no window to draw in.
    mpl.use("agg")
    try:
        figure = found.plot()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--picture") from None
    write(lambda: figure.savefig(path, bbox_inches="tight"), "--picture")


CHECK_EXAMPLES = """\b
Examples:
  fogline check visits.csv
  fogline check visits.csv --columns weight,glucose --unit person_id --decimal , --delimiter ";"
  fogline check export.txt --header person,weight,glucose --delimiter tab --null=-999 --json

\b
FILE: a CSV or Parquet file, a folder or a quoted pattern of them ("visits/*.csv").
"""


@click.command(cls=Command, epilog=CHECK_EXAMPLES)
@source_argument
@click.option("--columns", metavar="A,B", help="Columns; by default all but the unit's.")
@unit_option
@reading_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def check(**options: Any) -> None:
    """Say which columns, delimiter and options would be used for FILE. Free: no record is touched.

    Of a text file, only the header is read; it is refused without being shown if it looks like values.
    """
    if "://" in options["file"]:
        raise click.BadParameter("expected a file; a database states its own types", param_hint="FILE")
    need_reader(options["file"])
    need(*([] if options["as_json"] else ["rich"]))
    columns = parse.columns_option(options["columns"])
    checked_words(options)
    from fogline.sources.check import check as checked

    try:
        found = checked(options["file"], columns, unit=options["unit"], **reading_keywords(options))
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    if options["as_json"]:
        print_json(found.to_dict())
    else:
        _show_check(found)


def _show_check(found: FileCheck) -> None:
    from rich.table import Table
    from rich.text import Text

    from fogline.cli.common import console_for_people

    console = console_for_people()
    what = Table(show_header=False)
    rows = [("file", found.path), ("kind", found.kind + ("" if found.files == 1 else f", {found.files} files"))]
    rows += [("columns", ", ".join(found.columns)), ("unit", found.unit or "none: every record is one of its own")]
    others = [name for name in found.names if name not in found.columns and name != found.unit]
    rows += [("not read", ", ".join(name or "(no name)" for name in others))] if others else []
    if found.header is not None:
        rows += [("delimiter", {"\t": "tab", " ": "space"}.get(found.header.delimiter, found.header.delimiter))]
        rows += [("header", "as stated" if found.header.line_end is None else _header_words(found))]
        rows += [("decimal mark", found.options.decimal), ("thousands", found.options.thousands or "none")]
        rows += [("encoding", found.options.encoding), ("null words", ", ".join(found.options.null) or "none")]
    for name, value in rows:
        # A header may hold what a terminal would obey.
        what.add_row(Text(name), Text("".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in value)))
    console.print(what)
    if found.made_up:
        cells = Table(title=Text("What made-up cells would count as"), title_justify="left")
        cells.add_column("cell")
        cells.add_column("counts as", justify="right")
        for cell, number in found.made_up.items():
            cells.add_row(Text(f"[{cell}]"), "missing" if number is None else f"{number:g}")
        console.print(cells)
    for sentence in (found.isolation, *found.remarks):
        console.print(sentence, soft_wrap=True)


def _header_words(found: FileCheck) -> str:
    assert found.header is not None
    ends = {"LF": "ends in a line feed", "CR": "ends in a carriage return", "none": "is all of the file"}
    return ends[found.header.line_end or "none"] + (", begins with a byte order mark" if found.header.has_bom else "")
