"""The commands that fit an estimator: ``fogline modes``, ``clusters``, ``regress``, ``mixture`` and ``fit``.

All of them go the same way: places and words are checked, then the schema of FILE, then the parameters together; only
then are the records read and the budget spent, and what was released is printed and written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.options import (
    EXIT_CODES,
    FILE,
    budget_options,
    currency_options,
    output_options,
    pure_budget_options,
    reading_keywords,
    source_argument,
    source_options,
    source_table,
    wide_bounds,
)
from fogline.cli.release import checked_places, checked_words, publish, release
from fogline.cli.stored import ReadingCommand, is_release, read_release

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity
    from fogline.estimators import (
        PrivateGaussianMixture,
        PrivateHellinger,
        PrivateModalRegression,
        PrivateModeClustering,
    )
    from fogline.estimators.mode_fit import ModeFit
    from fogline.sources.tables import Source

__all__ = ["clusters", "fit", "mixture", "modes", "regress"]

RELEASED = """\b
FILE may also be a release (visits.fog, by fogline release): reading it is free, and takes no budget.

"""

MODES_EXAMPLES = """\b
Examples:
  fogline modes visits.csv --columns cost --bounds 0:5000 --epsilon 1
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


@click.command(cls=ReadingCommand, epilog=MODES_EXAMPLES + RELEASED + FILE + EXIT_CODES)
@source_argument
@click.option("--columns", metavar="A,B", help="Columns; by default all but the unit's.")
@click.option(
    "--bounds",
    metavar="LO:HI,LO:HI",
    required=True,
    help="Public range of each column, or its name, never from the data; one range serves all.",
)
@source_options
@pure_budget_options
@click.option("--n-modes", type=int, help="Return this many modes instead of those above the fogline.")
@click.option(
    "--level", type=float, default=0.05, show_default=True, help="Probability of reporting a mode that is only noise."
)
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option(
    "--bandwidth", default="auto", show_default=True, help="auto, a fraction of each range, or one value per column."
)
@click.option(
    "--features",
    type=click.Choice(["auto", "leaves", "grid", "random"]),
    default="auto",
    show_default=True,
    help="What is released. auto: leaves without --delta (up to three columns), else Fourier sums.",
)
@output_options()
@click.pass_context
def modes(ctx: click.Context, /, **options: Any) -> None:
    """Find the modes of some columns of FILE, privately.

    Spends the budget once. Records with a missing or unreadable value, or outside the bounds, contribute nothing.
    """
    if is_release(options["file"]):
        read_release(ctx, options, lambda _: _modes_of(options), allowed=("n_modes", "level", "bandwidth"))
        return
    checked_places(options)
    estimator, table = _plan_modes(options)
    paid = release(estimator, table, options)
    publish(estimator, options, paid, command=str(ctx.meta["fogline.command"]))


def _modes_of(options: dict[str, Any]) -> tuple[ModeFit, dict[str, Any]]:
    """What reads the modes of a release."""
    from fogline.estimators.mode_fit import ModeFit

    chosen = {name: options[name] for name in ("n_modes", "level", "expect_records")}
    return ModeFit(bandwidth=parse.bandwidth_option(options["bandwidth"]), **chosen), {}


def _plan_modes(options: dict[str, Any]) -> tuple[ModeFit, Source]:
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
        planned = bandwidth if isinstance(bandwidth, str) else [bandwidth]
        leaves = options["features"] == "leaves"
        spec = plan_spec(bounds, "auto" if leaves else planned, steps, features=options["features"])
        if (
            not leaves
            and not isinstance(bandwidth, str)
            and (as_bandwidth(bandwidth, spec.widths) < spec.planned[0] * (1 - 1e-9)).any()
        ):
            raise ValueError(
                f"bandwidth {bandwidth} is too fine for the steps; at least {spec.planned[0].tolist()} would do"
            )
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    from fogline.estimators.mode_fit import ModeFit  # not before the schema is known to be right

    names = ("epsilon", "delta", "n_modes", "level", "features", "neighbours", "max_contributions", "expect_records")
    chosen = {name: options[name] for name in names}
    estimator = ModeFit(bounds=bounds, steps=steps, bandwidth=bandwidth, **chosen)
    try:
        estimator._terms(width=table.width)  # a delta that is missing is told before anything is read
    except (ValueError, TypeError) as error:
        raise parse.refused(error) from None
    return estimator, table


CLUSTERS_EXAMPLES = """\b
Examples:
  fogline clusters iris.csv --columns sl,sw,pl,pw --bounds 0:8,0:5,0:8,0:3 --epsilon 1 --delta 1e-5
        --n-clusters 3 --report iris.html
  fogline clusters visits.csv --columns age,minutes --bounds 0:100,0:240 --epsilon 1 --delta 1e-6
        --projection identity --json
  fogline clusters digits.parquet --bounds 0:16 --epsilon 1 --delta 1e-5 --n-clusters 10 --components 6
        --ledger budget.fogline --dataset digits

"""


@click.command(cls=ReadingCommand, epilog=CLUSTERS_EXAMPLES + RELEASED + FILE + EXIT_CODES)
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
@click.option("--n-clusters", type=int, help="Look for this many clusters; by default those above the fog.")
@click.option(
    "--level",
    type=float,
    default=0.05,
    show_default=True,
    help="Probability of reporting a cluster that is only noise.",
)
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option(
    "--projection",
    type=click.Choice(["auto", "private", "identity", "random"]),
    default="auto",
    show_default=True,
    help="Where to look: in directions found privately, in the columns, or in random directions.",
)
@click.option("--components", type=int, help="Number of directions; by default as many as can be seen.")
@output_options()
@click.pass_context
def clusters(ctx: click.Context, /, **options: Any) -> None:
    """Find the clusters in some columns of FILE, privately.

    Publishes centres and sizes, with their errors, and no labels: a label for each record would give it away. Spends
    the budget once. Records with a missing or unreadable value, or outside the bounds, contribute nothing.
    """
    if is_release(options["file"]):
        read_release(ctx, options, lambda _: _clusters_of(options), allowed=("n_clusters", "level"))
        return
    checked_places(options)
    estimator, table = _plan_clusters(options)
    paid = release(estimator, table, options)
    publish(estimator, options, paid, command=str(ctx.meta["fogline.command"]))


def _clusters_of(options: dict[str, Any]) -> tuple[PrivateModeClustering, dict[str, Any]]:
    """What reads the clusters of a release."""
    from fogline.estimators import PrivateModeClustering

    chosen = {name: options[name] for name in ("n_clusters", "level", "expect_records")}
    return PrivateModeClustering(**chosen), {}


def _plan_clusters(options: dict[str, Any]) -> tuple[PrivateModeClustering, Source]:
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
        # Planned here for its refusals alone: the fit plans again, once the words are known to be right.
        if plan_clusters(estimator, box, options["level"]) is None:
            if options["components"] is not None:
                raise ValueError("components: up to three columns there is a projection only if --projection names one")
            estimator._grid_spec(box)
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    return estimator, table


REGRESS_EXAMPLES = """\b
Examples:
  fogline regress geyser.csv --x eruptions --y waiting --x-bounds 0.5:6.5 --y-bounds 30:110
        --epsilon 1 --delta 1e-5 --report geyser.html
  fogline regress visits.csv --x age --x weight --y minutes --x-bounds 0:100,0:200 --y-bounds 0:240
        --epsilon 1 --delta 1e-6 --json

"""


@click.command(cls=ReadingCommand, epilog=REGRESS_EXAMPLES + RELEASED + FILE + EXIT_CODES)
@source_argument
@click.option("--x", "x", metavar="COLUMN", required=True, multiple=True, help="What is known; for two columns, twice.")
@click.option("--y", "y", metavar="COLUMN", required=True, help="What is asked for.")
@click.option("--x-bounds", metavar="LO:HI,LO:HI", required=True, help="Public range of each x; never from the data.")
@click.option("--y-bounds", metavar="LO:HI", required=True, help="Public range of y; never from the data.")
@source_options
@budget_options
@click.option(
    "--level", type=float, default=0.05, show_default=True, help="Probability of reporting a branch that is only noise."
)
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each x, then of y, or none.")
@click.option(
    "--bandwidth", default="auto", show_default=True, help="auto, a fraction of each range, or one value per column."
)
@output_options()
@click.pass_context
def regress(ctx: click.Context, /, **options: Any) -> None:
    """Find the typical values of one column of FILE given others, privately.

    All of them: where records split into groups there are several branches. Spends the budget once. Records with a
    missing or unreadable value, or outside the bounds, contribute nothing.
    """
    if is_release(options["file"]):
        read_release(ctx, options, lambda density: _branches_of(options, density), allowed=("x", "y", "level"))
        return
    checked_places(options)
    estimator, table = _plan_regress(options)
    paid = release(estimator, table, options)
    command = str(ctx.meta["fogline.command"])
    publish(estimator, options, paid, command=command, columns=table.columns)


def _branches_of(options: dict[str, Any], density: PrivateDensity) -> tuple[PrivateModalRegression, dict[str, Any]]:
    """What reads the branches of a release: y given all other columns."""
    from fogline.density.release_card import column_names
    from fogline.estimators import PrivateModalRegression

    names, y = column_names(density), options["y"]
    for name in (*options["x"], *([] if y is None else [y])):
        if name not in names:
            raise click.BadParameter(
                f"{name!r} was not released; there are {', '.join(names)}", param_hint="--y" if name == y else "--x"
            )
    others = [name for name in names if name != (names[-1] if y is None else y)]
    if options["x"] and sorted(options["x"]) != sorted(others):
        raise click.BadParameter(
            f"a release is read given all its other columns, {', '.join(others)}", param_hint="--x"
        )
    chosen = {name: options[name] for name in ("level", "expect_records")}
    return PrivateModalRegression(**chosen), {"y": y}


def _plan_regress(options: dict[str, Any]) -> tuple[PrivateModalRegression, Source]:
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
        # This command has no --columns: x and y name them.
        found.param_hint = "--x, --y" if found.param_hint == "--columns" else found.param_hint
        raise found from None
    return estimator, table


MIXTURE_EXAMPLES = """\b
Examples:
  fogline mixture visits.csv --columns age,minutes --radius 120 --center 50,60 --components 3
        --epsilon 1 --delta 1e-6 --report mixture.html
  fogline mixture visits.csv --columns age,minutes --radius 120 --center 50,60
        --epsilon 1 --delta 1e-6 --json

"""


@click.command(cls=ReadingCommand, epilog=MIXTURE_EXAMPLES + RELEASED + FILE + EXIT_CODES)
@source_argument
@click.option("--columns", metavar="A,B", help="Columns; by default all but the unit's.")
@click.option("--radius", type=float, required=True, help="Radius of a public ball; records outside are moved in.")
@click.option("--center", metavar="X,Y", help="Centre of the ball, one number per column; the origin by default.")
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
@output_options()
@click.pass_context
def mixture(ctx: click.Context, /, **options: Any) -> None:
    """Fit a Gaussian mixture to some columns of FILE, privately.

    Publishes weights, means and covariances with their errors. Spends the budget once. Records with a missing or
    unreadable value contribute nothing.
    """
    if is_release(options["file"]):
        read_release(ctx, options, lambda _: _mixture_of(options), allowed=("components", "sigma_min"))
        return
    checked_places(options)
    estimator, table = _plan_mixture(options)
    paid = release(estimator, table, options)
    publish(estimator, options, paid, command=str(ctx.meta["fogline.command"]))


def _mixture_of(options: dict[str, Any]) -> tuple[PrivateGaussianMixture, dict[str, Any]]:
    """What reads a mixture from a release."""
    from fogline.estimators import PrivateGaussianMixture

    chosen = {name: options[name] for name in ("sigma_min", "expect_records")}
    return PrivateGaussianMixture(n_components=options["components"], **chosen), {}


def _plan_mixture(options: dict[str, Any]) -> tuple[PrivateGaussianMixture, Source]:
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
        terms = method.terms(estimator, table.unit)
        method.plan(estimator, table.width, None, terms.rho)
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    return estimator, table


FIT_EXAMPLES = """\b
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


@click.command(cls=ReadingCommand, epilog=FIT_EXAMPLES + RELEASED + FILE + EXIT_CODES)
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
    help="One release of the density, or private descent, for comparison.",
)
@click.option("--rows", type=int, help="Public number of rows; a descent needs it.")
@click.option("--iterations", type=int, help="Steps of a descent; 4 by default.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option(
    "--bandwidth", default="auto", show_default=True, help="auto, a fraction of each range, or one value per column."
)
@output_options()
@click.pass_context
def fit(ctx: click.Context, /, **options: Any) -> None:
    """Fit a parametric family to a column of FILE, privately and robustly.

    Publishes the parameters with errors and intervals, and which part of the records the family explains. Spends the
    budget once, given in one currency: --epsilon and --delta, or --rho, or --hdp, or --pdp. Records with a missing or
    unreadable value, or outside the bounds, contribute nothing.
    """
    if is_release(options["file"]):
        allowed = ("column", "family", "parameter_bounds", "confidence")
        read_release(ctx, options, lambda _: _fit_of(options), allowed=allowed)
        return
    checked_places(options)
    estimator, table = _plan_fit(options)
    paid = release(estimator, table, options)
    command = str(ctx.meta["fogline.command"])
    publish(estimator, options, paid, command=command, columns=table.columns)


def _fit_of(options: dict[str, Any]) -> tuple[PrivateHellinger, dict[str, Any]]:
    """What fits a family to a column of a release, or to all of them."""
    from fogline.estimators import PrivateHellinger

    if options["family"] is None:
        raise click.BadParameter("is needed", param_hint="--family")
    ranges = options["parameter_bounds"]
    chosen = {name: options[name] for name in ("family", "confidence", "expect_records")}
    chosen["parameter_bounds"] = None if ranges is None else parse.parameter_bounds_option(ranges)
    columns = options["column"]
    return PrivateHellinger(**chosen), {"column": columns[0]} if len(columns) == 1 else {}


def _plan_fit(options: dict[str, Any]) -> tuple[PrivateHellinger, Source]:
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
    # Before the schema is read: these are mistakes of the words alone.
    _checked_method(options)
    checked_words(options, bounds=chosen["bounds"] or [])
    from fogline.estimators import PrivateHellinger
    from fogline.sources.files import CountedFile

    try:
        estimator = PrivateHellinger(**chosen)
        _check_plan(estimator, len(columns), rows)
        if rows is None:
            table: Source = source_table(options, columns)
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
