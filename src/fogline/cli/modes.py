"""``fogline modes``: the modes of some columns of a file."""

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
    from fogline.estimators.mode_fit import ModeFit

__all__ = ["modes"]

EXAMPLES = """\b
Examples:
  fogline modes visits.csv --columns age,minutes --bounds 0:100,0:240 --epsilon 1 --delta 1e-6
  fogline modes points.parquet --columns x,y --bounds=-10:10,-10:10 --epsilon 0.5 --delta 1e-6
        --n-modes 4 --json
  fogline modes visits.csv --columns age --bounds 0:120 --steps 1 --epsilon 1 --delta 1e-6
        --max-contributions 3 --report visits.html --save visits.npz
  fogline modes visits.csv --columns age --bounds 0:120 --epsilon 0.3 --delta 1e-6
        --ledger budget.fogline --dataset visits --analyst ada
  fogline modes postgres://ada@localhost/clinic --query "SELECT * FROM visits WHERE year = 2026"
        --columns age --bounds 0:120 --unit person_id --max-contributions 2 --epsilon 1 --delta 1e-6

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
@click.option("--n-modes", type=int, help="Return so many modes instead of those above the fogline.")
@click.option("--level", type=float, default=0.05, show_default=True, help="Chance of a mode where only noise is.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option(
    "--bandwidth", default="auto", show_default=True, help="auto, a fraction of each range, or one value a column."
)
@output_options
@click.pass_context
def modes(ctx: click.Context, /, **options: Any) -> None:
    """Find the modes of some columns of FILE, privately.

    Spends the budget once. Records with a missing or unreadable value, or outside the bounds, contribute nothing.
    """
    checked_places(options)
    estimator, table = _planned(options)
    paid = release(estimator, table, options)
    publish(estimator, options, paid, command=str(ctx.meta["fogline.command"]))


def _planned(options: dict[str, Any]) -> tuple[ModeFit, Any]:
    """Check all that is public, in the order in which a user would."""
    columns = parse.columns_option(options["columns"])
    bounds = parse.bounds_option(options["bounds"])
    steps = parse.steps_option(options["steps"])
    bandwidth = parse.bandwidth_option(options["bandwidth"])
    checked_words(options, bounds=bounds)
    try:
        table = source_table(options, columns)
        from fogline.density.random_spec import plan_spec
        from fogline.density.spec import as_bandwidth

        bounds = wide_bounds(table, bounds)
        if isinstance(steps, list) and len(steps) == 1:
            steps = steps * table.width
        spec = plan_spec(bounds, bandwidth if isinstance(bandwidth, str) else [bandwidth], steps)
        if (
            not isinstance(bandwidth, str)
            and (as_bandwidth(bandwidth, spec.widths) < spec.planned[0] * (1 - 1e-9)).any()
        ):
            raise ValueError(
                f"bandwidth {bandwidth} is too fine for the steps; at least {spec.planned[0].tolist()} would do"
            )
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    from fogline.estimators.mode_fit import ModeFit  # not before the schema is known to be right

    names = ("epsilon", "delta", "n_modes", "level", "neighbours", "max_contributions", "expect_records")
    chosen = {name: options[name] for name in names}
    return ModeFit(bounds=bounds, steps=steps, bandwidth=bandwidth, **chosen), table
