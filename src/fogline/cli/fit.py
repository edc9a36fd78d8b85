"""``fogline fit``: a parametric family fitted to some columns of a file, robustly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command
from fogline.cli.release import (
    EXIT_CODES,
    checked_places,
    checked_words,
    currency_options,
    output_options,
    publish,
    release,
)
from fogline.cli.sources import FILE, reading_keywords, source_argument, source_options, source_table

if TYPE_CHECKING:
    from fogline.estimators import PrivateHellinger

__all__ = ["fit"]

EXAMPLES = """\b
Examples:
  fogline fit patients.csv --column bmi --family lognormal --parameter-bounds mu=2.5:4,sigma=0.05:0.5
        --epsilon 1 --delta 1e-6 --report bmi.html
  fogline fit scores.csv --column score --family normal --parameter-bounds mu=0:100,sigma=2:40
        --hdp 0.02 --json
  fogline fit body.parquet --column height --column weight --family "bivariate normal"
        --parameter-bounds mu_1=140:200,mu_2=40:120,sigma_1=3:15,sigma_2=4:30,corr_12=-0.9:0.95
        --epsilon 1 --delta 1e-6

"""


CURRENCIES = "--epsilon, --rho, --hdp, --pdp"


@click.command(cls=Command, epilog=EXAMPLES + FILE + EXIT_CODES)
@source_argument
@click.option("--column", metavar="COLUMN", required=True, multiple=True, help="What is fitted; one for each axis.")
@click.option(
    "--family", required=True, help="normal, lognormal, gamma, weibull, logistic, exponential, t4, bivariate normal..."
)
@click.option(
    "--parameter-bounds",
    metavar="NAME=LO:HI,NAME=LO:HI",
    required=True,
    help="Public range of each parameter; never from the data.",
)
@click.option("--bounds", metavar="LO:HI", help="Public range of the data; by default what the parameters allow.")
@source_options
@currency_options
@click.option(
    "--method",
    type=click.Choice(["sketch", "gradient", "newton"]),
    default="sketch",
    show_default=True,
    help="One release of the density, or private descent, which is there to compare with.",
)
@click.option("--rows", type=int, help="Public number of rows; a descent needs it.")
@click.option("--iterations", type=int, help="Steps of a descent; 4 by default.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option(
    "--bandwidth", default="auto", show_default=True, help="auto, a fraction of each range, or one value a column."
)
@output_options
@click.pass_context
def fit(ctx: click.Context, /, **options: Any) -> None:
    """Fit a parametric family to a column of FILE, privately and robustly.

    Publishes the parameters with errors and intervals, and which part of the records the family explains. Spends the
    budget once, given in one currency: --epsilon and --delta, or --rho, or --hdp, or --pdp. Records with a missing or
    unreadable value, or outside the bounds, contribute nothing.
    """
    checked_places(options)
    estimator, table = _planned(options)
    paid = release(estimator, table, options)
    command = str(ctx.meta["fogline.command"])
    publish(estimator, options, paid, command=command, columns=table.columns)


def _planned(options: dict[str, Any]) -> tuple[PrivateHellinger, Any]:
    """Check all that is public, in the order in which a user would."""
    columns, rows = list(options["column"]), options["rows"]
    names = ("family", "method", "iterations", "confidence", "epsilon", "delta", "rho", "hdp", "neighbours")
    chosen = {name: options[name] for name in (*names, "max_contributions", "expect_records")}
    chosen |= {
        "parameter_bounds": parse.parameter_bounds_option(options["parameter_bounds"]),
        "bounds": None if options["bounds"] is None else parse.bounds_option(options["bounds"]),
        "pdp": parse.power_option(options["pdp"]),
        "steps": parse.steps_option(options["steps"]),
        "bandwidth": parse.bandwidth_option(options["bandwidth"]),
    }
    if all(options[name] is None for name in ("epsilon", "rho", "hdp", "pdp")):
        raise click.BadParameter("a budget must be given in one of them", param_hint=CURRENCIES)
    _checked_method(options)
    checked_words(options, bounds=chosen["bounds"] or [])
    from fogline.estimators import PrivateHellinger
    from fogline.sources.files import CountedFile

    try:
        estimator = PrivateHellinger(**chosen)
        _check_plan(estimator, len(columns), rows)
        if rows is None:
            table: Any = source_table(options, columns)
        else:
            table = CountedFile(options["file"], columns, rows=rows, **reading_keywords(options))
    except (ValueError, TypeError, OSError) as error:
        raise _refused(error) from None
    return estimator, table


def _checked_method(options: dict[str, Any]) -> None:
    """Refuse what the method has no use for, or cannot do without."""
    method, rows = options["method"], options["rows"]
    if method == "sketch" and rows is not None:
        raise click.BadParameter("is of use only with --method gradient or newton", param_hint="--rows")
    if method != "sketch" and rows is None:
        raise click.BadParameter(
            f"--method {method} needs the number of rows, which it makes public", param_hint="--rows"
        )
    if method != "sketch" and options["unit"] is not None:
        raise click.BadParameter(f"--method {method} cannot cut what a person contributes", param_hint="--unit")
    if method != "sketch" and (options["query"] is not None or "://" in options["file"]):
        raise click.BadParameter(
            f"--method {method} reads the first rows of a file; those of a database have no order", param_hint="--query"
        )
    if method != "sketch" and options["expect_records"] is not None:
        words = f"--method {method} releases no count to compare it with"
        raise click.BadParameter(words, param_hint="--expect-records")
    if method != "sketch" and options["save"] is not None:
        raise click.BadParameter(f"--method {method} releases no density that could be saved", param_hint="--save")


def _check_plan(estimator: PrivateHellinger, width: int, rows: int | None) -> None:
    """Raise an error unless the public parameters can be used together."""
    from fogline import _validation

    estimator._terms()
    family, box, bounds = estimator._family()
    _validation.check_level(estimator.confidence, "confidence")
    if width != family.dimension:
        raise ValueError(f"columns: the {family.name} family needs {family.dimension} of them, got {width}")
    if rows is None:
        estimator._spec(family, box, bounds)
    else:
        estimator._plan(family, box, bounds, _validation.check_count(rows, "rows"))


def _refused(error: Exception) -> click.BadParameter:
    """Name the option as this command has it."""
    found = parse.refused(error)
    if found.param_hint == "--columns":
        found.param_hint = "--column"
    elif str(error).startswith("a budget"):
        found.param_hint = CURRENCIES
    return found
