"""``fogline sample``: a few draws that protect everyone in the file at once."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Unreadable, need, opened, print_json, refusals, write
from fogline.cli.options import (
    EXIT_CODES,
    FILE,
    ledger_options,
    need_reader,
    query_option,
    reading_options,
    source_argument,
    source_table,
)
from fogline.cli.release import checked_outputs, checked_words, fit, only_with_a_ledger, view_of
from fogline.cli.stored import ReadingCommand, is_release, open_release, refuse_others

if TYPE_CHECKING:
    from fogline.estimators import IntegralSampler
    from fogline.sources.tables import Source

__all__ = ["sample"]

EXAMPLES = """\b
Examples:
  fogline sample visits.csv --columns age,minutes --bounds 0:100,0:240 --per-draw-epsilon 0.1
        --draws 20 --out draws.csv
  fogline sample scores.csv --columns z --base normal --per-draw-epsilon 0.5 --draws 5 --learner mlp

"""

RELEASED = """\b
FILE may also be a release (visits.fog, by fogline release): then any number of points is drawn from its density, for
nothing, and the same ones each time.

"""

SETTINGS: dict[str, dict[str, Any]] = {
    "mlp": {"learner": "mlp", "schedule": "paper", "rounds": 3},
    "boosting": {"learner": "boosting", "schedule": "full", "rounds": 1},
}
"""Each learner with the schedule that suits it."""


@click.command(cls=ReadingCommand, epilog=EXAMPLES + RELEASED + FILE + EXIT_CODES)
@source_argument
@click.option("--columns", metavar="A,B", help="Columns; by default all.")
@query_option
@reading_options
@click.option("--per-draw-epsilon", type=float, required=True, help="Privacy budget of one draw; draws add up.")
@click.option("--draws", type=int, required=True, help="How many points to draw.")
@click.option(
    "--base",
    type=click.Choice(["normal", "uniform"]),
    default="normal",
    show_default=True,
    help="Public density that draws begin with and stay close to.",
)
@click.option(
    "--bounds",
    metavar="LO:HI,LO:HI",
    help="Public range of each column: the box of a uniform base, or two deviations either side of the mean of a normal"
    " one, which is the standard normal if no range is given.",
)
@click.option(
    "--learner",
    type=click.Choice(list(SETTINGS)),
    default="boosting",
    show_default=True,
    help="Gradient-boosted trees, or the paper's network, which takes minutes.",
)
@click.option(
    "--neighbours",
    type=click.Choice(["add-remove", "replace"]),
    default="add-remove",
    show_default=True,
    help="Neighbouring relation of the ledger; the promise holds for any two data sets.",
)
@click.option(
    "--currency",
    type=click.Choice(["integral", "zcdp"]),
    default="integral",
    show_default=True,
    help="What the ledger charges: its cap for such draws, or rho.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the draws here, as CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@ledger_options
@click.pass_context
def sample(ctx: click.Context, /, **options: Any) -> None:
    """Draw a few points that look like records of FILE, everyone in it protected at once.

    Groups of any size are protected, however large, since the draws would look almost the same for any other file. The
    price is --per-draw-epsilon for every draw. For up to three columns, draws come from cells of equal base mass; for
    more, from rejection. They are made in constant time and printed as CSV, and the guarantee goes to the terminal
    beside them. Records with a missing or unreadable value contribute nothing.
    """
    if is_release(options["file"]):
        _sample_release(ctx, options)
        return
    need_reader(options["file"])
    need(*([] if options["as_json"] else ["rich"]))
    checked_outputs(options, "out")
    estimator, table = _planned(options)
    only_with_a_ledger(options)
    share = estimator.informative_share()
    if not options["as_json"]:
        click.echo(_information(share, options["draws"], options["base"]), err=True)
    paid = _fitted(estimator, table, options)
    drawn = estimator.sample(options["draws"]).tolist()
    names = tuple(table.columns or ())
    text = _as_csv(names, drawn)
    if options["out"] is not None:
        write(lambda: options["out"].write_text(text, encoding="utf-8"), "--out")
    if options["as_json"]:
        content = {
            "format": "fogline-draws-1",
            "command": str(ctx.meta["fogline.command"]),
            "columns": list(names),
            "draws": drawn,
            "informative_share": share,
            "message": estimator.message_,
            "guarantee": {**estimator.guarantee_.to_dict(), "text": str(estimator.guarantee_)},
        }
        print_json({**content, **(paid or {})})
        return
    if options["out"] is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"draws: {options['out']}")
    click.echo(str(estimator.guarantee_), err=True)
    if estimator.message_:
        from fogline.report.frame import as_sentence

        click.echo(as_sentence(estimator.message_), err=True)
    if paid is not None:
        from fogline.cli.release import payment_words

        click.echo(payment_words(paid), err=True)


def _information(share: float, draws: int, base: str) -> str:
    """What may be expected of the draws, said before anything is paid.

    Examples
    --------
    >>> _information(0.0488, 20, "normal")
    'before paying: at most 4.9% of the draws (about 1.0 of 20) can carry information of the records; ...'
    """
    return (
        f"before paying: at most {100 * share:.2g}% of the draws (about {share * draws:.1f} of {draws}) can carry "
        f"information of the records; the others might as well come from the {base} base. A larger --per-draw-epsilon "
        "raises the share"
    )


def _sample_release(ctx: click.Context, options: dict[str, Any]) -> None:
    """Draw points from the density of a release: as private as the release itself, and free."""
    refuse_others(ctx, ("draws", "out"))
    checked_outputs(options, "out")
    if options["draws"] is None or options["draws"] < 1:
        raise click.BadParameter("is needed: a number of at least 1", param_hint="--draws")
    density = open_release(options["file"])
    from fogline.density.release_card import column_names

    names = column_names(density)
    drawn = density.sample(options["draws"], random_state=0).tolist()  # a reading: the same each time
    text = _as_csv(names, _whole(drawn, getattr(density.spec, "steps", ())))
    if options["out"] is not None:
        write(lambda: options["out"].write_text(text, encoding="utf-8"), "--out")
    if options["as_json"]:
        guarantee = {**density.guarantee.to_dict(), "text": str(density.guarantee)}
        command = str(ctx.meta["fogline.command"])
        print_json({"format": "fogline-draws-1", "command": command, "columns": list(names), "draws": drawn,
                    "message": density.message, "guarantee": guarantee})  # fmt: skip
        return
    click.echo(text, nl=False) if options["out"] is None else click.echo(f"draws: {options['out']}")
    click.echo(str(density.guarantee), err=True)


def _whole(rows: list[list[float]], steps: Sequence[float | None]) -> list[list[float]]:
    """Values of columns whose step is a whole number as whole numbers.

    Examples
    --------
    >>> _whole([[61.0, 2.0]], [1.0, None])
    [[61, 2.0]]
    """
    whole = [step is not None and step > 0 and float(step).is_integer() for step in steps]
    if not any(whole):
        return rows
    return [[round(x) if is_whole else x for x, is_whole in zip(row, whole, strict=True)] for row in rows]


def _planned(options: dict[str, Any]) -> tuple[IntegralSampler, Source]:
    """Check all that is public, in the order in which a user would."""
    columns = parse.columns_option(options["columns"])
    bounds = None if options["bounds"] is None else parse.bounds_option(options["bounds"])
    if options["base"] == "uniform" and bounds is None:
        raise click.BadParameter("a uniform base needs the box that it is flat on", param_hint="--bounds")
    checked_words(options, bounds=bounds or [])
    try:
        table = source_table(options, columns)
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    from fogline.estimators import IntegralSampler

    estimator = IntegralSampler(
        epsilon=options["per_draw_epsilon"],
        max_samples=options["draws"],
        base=options["base"],
        bounds=bounds,
        constant_time=True,
        currency=options["currency"],
        neighbours=options["neighbours"],
        **SETTINGS[options["learner"]],
    )
    try:
        estimator.cost()
        estimator._check(table.width)
    except (ValueError, TypeError, OSError) as error:
        found = parse.refused(error)
        hints = {"epsilon": "--per-draw-epsilon", "max_samples": "--draws"}
        found.param_hint = hints.get(str(error).partition(" ")[0].partition("=")[0], found.param_hint)
        raise found from None
    return estimator, table


def _fitted(estimator: IntegralSampler, table: Source, options: dict[str, Any]) -> dict[str, Any] | None:
    """Fit, and return the receipt and whether the draws were there before, where a ledger paid."""
    from fogline.cli.release import progress_bar

    quiet = options["as_json"] or not sys.stderr.isatty()
    if options["ledger"] is None:
        with progress_bar(quiet=quiet) as progress:
            estimator.progress = progress
            fit(estimator, table)
        return None
    with opened(options["ledger"], options["high_water"]) as open_ledger:
        with refusals():
            estimator.ledger = view_of(open_ledger, options)
            before = len(open_ledger.history())
        with progress_bar(quiet=quiet) as progress, refusals():
            estimator.progress = progress
            fit(estimator, table)
    if estimator.receipt_ is None:
        raise Unreadable("the ledger gave no receipt")
    return {"receipt": dict(estimator.receipt_), "cached": estimator.receipt_["commit"] < before}


def _as_csv(columns: tuple[str, ...], rows: list[list[float]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return file.getvalue()
