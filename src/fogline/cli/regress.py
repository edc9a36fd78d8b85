"""``fogline regress``: what values of one column are typical for those of one or two others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command
from fogline.cli.release import (
    EXIT_CODES,
    budget_options,
    checked_places,
    checked_words,
    output_options,
    publish,
    release,
)
from fogline.cli.sources import FILE, source_argument, source_options, source_table

if TYPE_CHECKING:
    from fogline.estimators import PrivateModalRegression

__all__ = ["regress"]

EXAMPLES = """\b
Examples:
  fogline regress geyser.csv --x eruptions --y waiting --x-bounds 0.5:6.5 --y-bounds 30:110
        --epsilon 1 --delta 1e-5 --report geyser.html
  fogline regress visits.csv --x age --x weight --y minutes --x-bounds 0:100,0:200 --y-bounds 0:240
        --epsilon 1 --delta 1e-6 --json

"""


@click.command(cls=Command, epilog=EXAMPLES + FILE + EXIT_CODES)
@source_argument
@click.option("--x", "x", metavar="COLUMN", required=True, multiple=True, help="What is known; for two columns, twice.")
@click.option("--y", "y", metavar="COLUMN", required=True, help="What is asked for.")
@click.option("--x-bounds", metavar="LO:HI,LO:HI", required=True, help="Public range of each x; never from the data.")
@click.option("--y-bounds", metavar="LO:HI", required=True, help="Public range of y; never from the data.")
@source_options
@budget_options
@click.option("--level", type=float, default=0.05, show_default=True, help="Chance of a branch where only noise is.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each x, then of y, or none.")
@click.option(
    "--bandwidth", default="auto", show_default=True, help="auto, a fraction of each range, or one value a column."
)
@output_options
@click.pass_context
def regress(ctx: click.Context, /, **options: Any) -> None:
    """Find the typical values of one column of FILE given others, privately.

    All of them: where records split into groups there are several branches. Spends the budget once. Records with a
    missing or unreadable value, or outside the bounds, contribute nothing.
    """
    checked_places(options)
    estimator, table = _planned(options)
    paid = release(estimator, table, options)
    command = str(ctx.meta["fogline.command"])
    publish(estimator, options, paid, command=command, columns=table.columns)


def _planned(options: dict[str, Any]) -> tuple[PrivateModalRegression, Any]:
    """Check all that is public, in the order in which a user would."""
    x_bounds = parse.bounds_option(options["x_bounds"], "--x-bounds")
    y_bounds = parse.bounds_option(options["y_bounds"], "--y-bounds")
    steps = parse.steps_option(options["steps"])
    bandwidth = parse.bandwidth_option(options["bandwidth"])
    columns = [*options["x"], options["y"]]
    if len(set(columns)) < len(columns):
        raise click.BadParameter("a column can be named once only", param_hint="--x")
    checked_words(options, x_bounds=x_bounds, y_bounds=y_bounds)
    names = ("epsilon", "delta", "level", "neighbours", "max_contributions", "expect_records")
    chosen = {name: options[name] for name in names}
    try:
        table = source_table(options, columns)
        from fogline.estimators import PrivateModalRegression

        if isinstance(steps, list) and len(steps) == 1:
            steps = steps * len(columns)
        estimator = PrivateModalRegression(
            x_bounds=x_bounds, y_bounds=y_bounds, steps=steps, bandwidth=bandwidth, **chosen
        )
        if len(x_bounds) not in (1, len(columns) - 1):
            raise ValueError(f"x_bounds has {len(x_bounds)} pairs, but there are {len(columns) - 1} columns of x")
        estimator._spec(len(columns) - 1)
    except (ValueError, TypeError, OSError) as error:
        found = parse.refused(error)
        found.param_hint = "--x, --y" if found.param_hint == "--columns" else found.param_hint
        raise found from None
    return estimator, table
