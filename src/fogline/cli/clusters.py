"""``fogline clusters``: centres and sizes of the clusters in some columns of a file."""

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
from fogline.cli.sources import FILE, source_argument, source_options, source_table, wide_bounds

if TYPE_CHECKING:
    from fogline.estimators import PrivateModeClustering

__all__ = ["clusters"]

EXAMPLES = """\b
Examples:
  fogline clusters iris.csv --columns sl,sw,pl,pw --bounds 0:8,0:5,0:8,0:3 --epsilon 1 --delta 1e-5
        --n-clusters 3 --report iris.html
  fogline clusters visits.csv --columns age,minutes --bounds 0:100,0:240 --epsilon 1 --delta 1e-6
        --projection identity --json
  fogline clusters digits.parquet --bounds 0:16 --epsilon 1 --delta 1e-5 --n-clusters 10 --components 6
        --ledger budget.fogline --dataset digits

"""


@click.command(cls=Command, epilog=EXAMPLES + FILE + EXIT_CODES)
@source_argument
@click.option("--columns", metavar="A,B", help="Columns; by default all but the unit's.")
@click.option(
    "--bounds",
    metavar="LO:HI,LO:HI",
    required=True,
    help="Public range of each column, or its name, never from the data; one range serves all.",
)
@source_options
@budget_options
@click.option("--n-clusters", type=int, help="Look for so many clusters; by default those above the fog.")
@click.option("--level", type=float, default=0.05, show_default=True, help="Chance of a cluster where only noise is.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option(
    "--projection",
    type=click.Choice(["auto", "private", "identity", "random"]),
    default="auto",
    show_default=True,
    help="Where to look: in directions found privately, in the columns, or in random directions.",
)
@click.option("--components", type=int, help="Number of directions; by default as many as can be seen.")
@output_options
@click.pass_context
def clusters(ctx: click.Context, /, **options: Any) -> None:
    """Find the clusters in some columns of FILE, privately.

    Publishes centres and sizes, with their errors, and no labels: a label for each record would give it away. Spends
    the budget once. Records with a missing or unreadable value, or outside the bounds, contribute nothing.
    """
    checked_places(options)
    estimator, table = _planned(options)
    paid = release(estimator, table, options)
    publish(estimator, options, paid, command=str(ctx.meta["fogline.command"]))


def _planned(options: dict[str, Any]) -> tuple[PrivateModeClustering, Any]:
    """Check all that is public, in the order in which a user would."""
    columns = parse.columns_option(options["columns"])
    bounds = parse.bounds_option(options["bounds"])
    steps = parse.steps_option(options["steps"])
    checked_words(options, bounds=bounds)
    names = ("epsilon", "delta", "n_clusters", "level", "projection", "components", "neighbours")
    chosen = {name: options[name] for name in (*names, "max_contributions", "expect_records")}
    try:
        table = source_table(options, columns)
        from fogline.algorithms.clustering import plan_clusters
        from fogline.estimators import PrivateModeClustering

        bounds = wide_bounds(table, bounds)
        if isinstance(steps, list) and len(steps) == 1:
            steps = steps * table.width
        estimator = PrivateModeClustering(bounds=bounds, steps=steps, **chosen)
        box = estimator._box(table.width)
        if plan_clusters(estimator, box, options["level"]) is None:
            if options["components"] is not None:
                raise ValueError("components: up to three columns there is a projection only if --projection names one")
            estimator._grid_spec(box)
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    return estimator, table
