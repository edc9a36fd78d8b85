"""``fogline strata``: one density for each public category, their modes, and a test of difference."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, drawable, need, print_json, write
from fogline.cli.release import EXIT_CODES, ask, budget_options, checked_outputs, checked_words, ledger_options
from fogline.cli.sources import FILE, need_reader, query_option, reading_keywords, reading_options, source_argument

if TYPE_CHECKING:
    from fogline.density.strata import Strata

__all__ = ["strata"]

EXAMPLES = """\b
Examples:
  fogline strata people.csv --by sex --categories f,m --columns height --bounds body_height
        --epsilon 1 --delta 1e-6 --picture heights.svg
  fogline strata survey.parquet --by region --categories north,south --others none --columns age
        --bounds age --weights w --weight-bound 5 --epsilon 1 --delta 1e-6 --json

"""


@click.command(cls=Command, epilog=EXAMPLES + FILE + EXIT_CODES)
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
@query_option
@reading_options
@budget_options
@click.option("--weights", metavar="COLUMN", help="Column of survey weights.")
@click.option("--weight-bound", type=float, help="With --weights: public bound of a weight.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option("--level", type=float, default=0.05, show_default=True, help="Chance of a mode where only noise is.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw them (.svg, .png or .pdf).")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Write the released densities (.npz).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@ledger_options
@click.pass_context
def strata(ctx: click.Context, /, **options: Any) -> None:
    """Release one density for each category of FILE, for the price of one, and compare them.

    Spends the budget once. All strata are released, whether or not any record is in them.
    """
    picture = options["picture"]
    need_reader(options["file"])
    need(*([] if options["as_json"] else ["rich"]), *(["matplotlib"] if picture else []))
    drawable(picture, "--picture", (".svg", ".png", ".pdf"))
    checked_outputs(options, "picture", "save")
    question = _question(options)
    found, paid = ask(question, options, "reading the records, releasing the densities once")
    document = _document(found, str(ctx.meta["fogline.command"]), options["level"])
    if options["as_json"]:
        print_json({**document, **(paid or {})})
    else:
        _show(document, paid)
    if options["save"] is not None:
        write(lambda: found.save(options["save"]), "--save")
    if picture is not None:
        _draw(found, picture)
    if not options["as_json"]:
        for name in ("save", "picture"):
            if options[name] is not None:
                click.echo(f"{'densities' if name == 'save' else name}: {options[name]}")


def _question(options: dict[str, Any]) -> Any:
    columns = parse.columns_option(options["columns"])
    bounds = parse.bounds_option(options["bounds"])
    steps = parse.steps_option(options["steps"])
    categories = parse.columns_option(options["categories"])
    others = None if options["others"].strip().lower() == "none" else options["others"]
    checked_words(options, bounds=bounds)
    if isinstance(steps, list) and len(steps) == 1:
        steps = steps[0]

    def question(view: Any) -> Strata:
        from fogline import private_strata

        names = ("epsilon", "delta", "neighbours", "max_contributions", "weights", "weight_bound", "expect_records")
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
            **{name: options[name] for name in names},
        )

    return question


def _document(found: Strata, command: str, level: float) -> dict[str, Any]:
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


def _show(document: dict[str, Any], paid: dict[str, Any] | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from fogline.cli.show import console_for_people, show_payment
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


def _draw(found: Strata, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    try:
        figure = found.plot()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--picture") from None
    write(lambda: figure.savefig(path, bbox_inches="tight"), "--picture")
