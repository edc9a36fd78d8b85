"""``fogline mixture``: a Gaussian mixture for some columns of a file."""

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
    from fogline.estimators import PrivateGaussianMixture

__all__ = ["mixture"]

EXAMPLES = """\b
Examples:
  fogline mixture visits.csv --columns age,minutes --radius 120 --center 50,60 --components 3
        --epsilon 1 --delta 1e-6 --report mixture.html
  fogline mixture visits.csv --columns age,minutes --radius 120 --center 50,60
        --epsilon 1 --delta 1e-6 --json

"""


@click.command(cls=Command, epilog=EXAMPLES + FILE + EXIT_CODES)
@source_argument
@click.option("--columns", metavar="A,B", help="Columns; by default all but the unit's.")
@click.option("--radius", type=float, required=True, help="Radius of a public ball; records outside are moved in.")
@click.option("--center", metavar="X,Y", help="Centre of the ball, one number a column; the origin by default.")
@source_options
@budget_options
@click.option("--components", type=int, help="Number of components; by default as many as explain the release best.")
@click.option(
    "--method",
    type=click.Choice(["sketch", "recursive", "spherical", "sample-aggregate"]),
    default="sketch",
    show_default=True,
    help="sketch for ordinary data; the others for components far apart.",
)
@click.option("--sigma-min", type=float, help="Smallest standard deviation of a component.")
@click.option("--sigma-max", type=float, help="Largest standard deviation of a component.")
@click.option("--weight-min", type=float, help="Smallest weight of a component.")
@output_options
@click.pass_context
def mixture(ctx: click.Context, /, **options: Any) -> None:
    """Fit a Gaussian mixture to some columns of FILE, privately.

    Publishes weights, means and covariances with their errors. Spends the budget once. Records with a missing or
    unreadable value contribute nothing.
    """
    checked_places(options)
    estimator, table = _planned(options)
    paid = release(estimator, table, options)
    publish(estimator, options, paid, command=str(ctx.meta["fogline.command"]))


def _planned(options: dict[str, Any]) -> tuple[PrivateGaussianMixture, Any]:
    """Check all that is public, in the order in which a user would."""
    columns = parse.columns_option(options["columns"])
    center = parse.numbers_option(options["center"], "--center")
    checked_words(options)
    names = ("epsilon", "delta", "radius", "method", "sigma_min", "sigma_max", "weight_min", "neighbours")
    chosen = {name: options[name] for name in (*names, "max_contributions", "expect_records")}
    try:
        if options["save"] is not None and options["method"] != "sketch":
            raise ValueError("save: only method 'sketch' releases a density")
        table = source_table(options, columns)
        from fogline.estimators import PrivateGaussianMixture

        estimator = PrivateGaussianMixture(n_components=options["components"], center=center, **chosen)
        method = estimator._method()
        method.terms(estimator, table.unit)
        method.plan(estimator, table.width)
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    return estimator, table
