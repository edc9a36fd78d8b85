"""``fogline reproduce``: rerun tables of the papers, beside the figures that they print."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import SETTINGS, Command, need, print_json, writable, write

if TYPE_CHECKING:
    from fogline_research.experiments import ClusterRow, HellingerRow, IntegralRow, MixtureRow, RegressionRow

__all__ = ["reproduce"]

UNCERTIFIED = ("published", "mean_shift", "partial_mean_shift", "kmeans", "mhde", "mle", "dpgan")


@click.group(context_settings=SETTINGS)
def reproduce() -> None:
    """Rerun tables of the papers, beside the figures that they print."""


def _options(
    runs: int, cells: str, what: str, as_published: str | None, baselines: str, kinds: Sequence[str] = ("small", "all")
) -> Callable[[Any], Any]:
    """Give a command the options that all reruns have; `as_published` where something can be run as published."""
    choice = click.Choice(list(kinds))
    target = click.Path(path_type=Path, dir_okay=False)
    options = [
        click.option("--runs", type=int, default=runs, show_default=True, help=what),
        click.option("--cells", type=choice, default="small", show_default=True, help=cells),
        click.option("--contenders", is_flag=True, help=baselines),
        click.option("--seed", type=int, help="Seed of the data; the certified noise has none."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."),
        click.option("--csv", "csv_file", type=target, help="Write the rows to a file."),
    ]
    if as_published is not None:
        options.insert(2, click.option("--published", is_flag=True, help=as_published))

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _epilog(name: str, more: str = "--published") -> str:
    return f"\b\nExamples:\n  fogline reproduce {name}\n  fogline reproduce {name} --cells all {more} --csv out.csv"


@reproduce.command("modes", cls=Command, epilog=_epilog("modes"))
@_options(
    20,
    "8 or all 40 cells.",
    "Fresh data sets a cell.",
    "Run DP-GRAMS as published beside it (not certified).",
    "Run certified gradient ascent, mean shift (not private) and a noisy histogram beside it.",
)
@click.option("--one-data-set", is_flag=True, help="All runs on one data set, as in the paper, not on fresh ones.")
@click.pass_context
def modes_command(ctx: click.Context, /, **options: Any) -> None:
    """Error of the modes on the DP-GRAMS paper's 40 cells (number of modes known, delta 1e-5)."""
    from fogline_research.experiments import reproduce_modes
    from fogline_research.rows import show_rows, summary

    engine = partial(reproduce_modes, one_data_set=options["one_data_set"])
    _rerun(ctx, options, engine, ["ascent", "mean_shift", "noisy_histogram"], show_rows, lambda rows: summary(rows))


@reproduce.command("clusters", cls=Command, epilog=_epilog("clusters"))
@_options(
    5,
    "3 or all 12 lines of the tables for Iris and Digits.",
    "Runs a cell.",
    "Run DP-GRAMS-C as published beside it (not certified).",
    "Run k-means and mean shift (not private) and noisy k-means beside it.",
)
@click.pass_context
def clusters_command(ctx: click.Context, /, **options: Any) -> None:
    """Agreement of clusters with the classes of Iris and Digits (number known, public bounds, delta 1e-5)."""
    from fogline_research.experiments import reproduce_clusters

    _rerun(ctx, options, reproduce_clusters, ["kmeans", "mean_shift", "dp_kmeans"], _show_clusters)


@reproduce.command("regression", cls=Command, epilog=_epilog("regression"))
@_options(
    5,
    "4 or all 32 cells.",
    "Fresh data sets a cell.",
    "Run DP-PMS as published beside it (not certified).",
    "Run partial mean shift (not private) beside it.",
)
@click.pass_context
def regression_command(ctx: click.Context, /, **options: Any) -> None:
    """Error of modal regression on the DP-GRAMS paper's 32 cells (delta 1e-5)."""
    from fogline_research.experiments import reproduce_regression

    _rerun(ctx, options, reproduce_regression, ["partial_mean_shift"], _show_regression)


@reproduce.command("hellinger", cls=Command, epilog=_epilog("hellinger"))
@_options(
    20,
    "4 or all 144 columns of the tables.",
    "Fresh data sets a cell.",
    "Run PGD or PNR as published beside it (not certified).",
    "Run minimum Hellinger distance and maximum likelihood (not private) beside it.",
)
@click.pass_context
def hellinger_command(ctx: click.Context, /, **options: Any) -> None:
    """Mean and spread of private fits of N(5, 2^2), clean and contaminated, on the Hellinger paper's tables."""
    from fogline_research.experiments import reproduce_hellinger

    source = "private minimum Hellinger distance paper, supplement tables E.1 to E.20"
    _rerun(ctx, options, reproduce_hellinger, ["mhde", "mle"], _show_hellinger, source=source)


@reproduce.command("integral", cls=Command, epilog=_epilog("integral"))
@_options(
    4,
    "6 or all 21 cells, or 60 of 1 to 10 Gaussians placed on the line and in the plane.",
    "Fresh data sets a cell.",
    "Run MBDE with the paper's network and Metropolis beside it (not certified; minutes a run).",
    "Run the Bernstein mechanism and, with seeded noise, a private GAN beside it.",
    ("small", "all", "placed"),
)
@click.pass_context
def integral_command(ctx: click.Context, /, **options: Any) -> None:
    """Loss and mode coverage of integrally private draws on the paper's three problems (10 000 records)."""
    from fogline_research.experiments import reproduce_integral

    source = "integral-privacy paper, section 5 (it prints no tables)"
    baselines = ["certified_box", "certified_cells", "bernstein", "bernstein_sup", "dpgan"]
    _rerun(ctx, options, reproduce_integral, baselines, _show_integral, source=source)


@reproduce.command("mixtures", cls=Command, epilog=_epilog("mixtures", "--contenders"))
@_options(
    3,
    "4 or all 16 kinds of data.",
    "Fresh mixtures a cell.",
    None,
    "Run terrific balls, halves, spheres, sample-and-aggregate and noisy expectation-maximisation beside it.",
)
@click.pass_context
def mixtures_command(ctx: click.Context, /, **options: Any) -> None:
    """Gaussian mixtures in the separated-mixtures theorem's regime, and ordinary ones (epsilon 1, delta 1e-6)."""
    from fogline_research.experiments import reproduce_mixtures

    source = "separated-mixtures paper, Theorem 5.1's regime (it has no experiments)"
    others = ["spherical", "terrific", "halves", "sample-aggregate", "dp_em"]
    _rerun(ctx, options, reproduce_mixtures, others, _show_mixtures, source=source)


@reproduce.command("figures", cls=Command, epilog="\b\nExample:\n  fogline reproduce figures main-1 -o figures")
@click.argument("names", nargs=-1)
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder; made where missing.")
@click.option("--full", is_flag=True, help="As many runs and cells as the paper has: hours, not minutes.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of data and of what is not certified.")
@click.option("--list", "listed", is_flag=True, help="Name the figures, and what each shows.")
def figures_command(names: tuple[str, ...], output: Path | None, full: bool, seed: int, listed: bool) -> None:
    """Draw figures of the papers from reruns, beside what the papers print; without names, all of them."""
    from fogline_research.experiments.figures import FIGURES, draw_figures

    if listed:
        for name, figure in FIGURES.items():
            click.echo(f"{name:<14} {figure.shows}")
        return
    if output is None:
        raise click.UsageError("--output must be given")
    need("matplotlib")
    click.echo("warning: published algorithms run without a certified guarantee", err=True)
    try:
        page = draw_figures(names, output, full=full, seed=seed, tell=lambda name: click.echo(name, err=True))
    except ValueError as error:
        raise parse.refused(error) from None
    click.echo(str(page))


@reproduce.command("table", cls=Command, epilog="\b\nExample:\n  fogline reproduce table supplement-5 --csv iris.csv")
@click.argument("name", required=False)
@click.option("--full", is_flag=True, help="All cells, and as many runs as the paper has: hours, not minutes.")
@click.option("--runs", type=int, help="Other than two, or than the paper's.")
@click.option("--seed", type=int, help="Seed of the data; the certified noise has none.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to a file.")
@click.option("--list", "listed", is_flag=True, help="Name the tables, and what each shows.")
def table_command(
    name: str | None, full: bool, runs: int | None, seed: int | None, csv_file: Path | None, listed: bool
) -> None:
    """Rerun one table of the papers by its name; its first and last cell, unless all of it is wanted."""
    from fogline_research.experiments.tables import TABLES, reproduce_table
    from fogline_research.rows import show_rows, write_rows

    if listed:
        for key, table in TABLES.items():
            click.echo(f"{key:<14} {table.shows}")
        return
    if name is None:
        raise click.UsageError("NAME must be given; --list names the tables")
    need("rich")
    writable(csv_file, "--csv")
    click.echo("warning: published algorithms run without a certified guarantee", err=True)
    try:
        rows = reproduce_table(name, full=full, runs=runs, seed=seed)
    except ValueError as error:
        raise parse.refused(error) from None
    shows: dict[str, Callable[[list[Any]], None]] = {
        "modes": show_rows,
        "regression": _show_regression,
        "clusters": _show_clusters,
        "hellinger": _show_hellinger,
    }
    shows[TABLES[name].kind](rows)
    if csv_file is not None:
        write(lambda: write_rows(rows, csv_file), "--csv")


def _rerun(
    ctx: click.Context,
    options: dict[str, Any],
    engine: Callable[..., list[Any]],
    baselines: Sequence[str],
    show_table: Callable[[list[Any]], None],
    summarised: Callable[[list[Any]], dict[str, Any]] | None = None,
    source: str = "DP-GRAMS paper, supplement tables",
) -> None:
    """Warn of what is not certified, run with a progress bar, and print or write the rows."""
    as_json: bool = options["as_json"]
    if not as_json:
        need("rich")
    writable(options["csv_file"], "--csv")
    from fogline.cli.release import progress_bar
    from fogline_research import rows as rows_of

    methods = ["certified", *(["published"] if options.get("published") else [])]
    methods += baselines if options["contenders"] else []
    uncertified = [name for name in UNCERTIFIED if name in methods]
    if uncertified:
        click.echo(f"warning: {' and '.join(uncertified)} run as published, without a certified guarantee", err=True)
    with progress_bar(quiet=as_json or not sys.stderr.isatty()) as progress:
        try:
            rows = engine(
                runs=options["runs"], cells=options["cells"], methods=methods, seed=options["seed"], progress=progress
            )
        except (ValueError, TypeError) as error:
            raise parse.refused(error) from None
    if as_json:
        from fogline.report.frame import versions

        content: dict[str, Any] = {
            "format": f"fogline-reproduce-{ctx.info_name}-1",
            "source": source,
            "command": str(ctx.meta["fogline.command"]),
            "rows": [rows_of.as_record(row) for row in rows],
        }
        if summarised is not None:
            content["summary"] = summarised(rows)
        print_json({**content, "versions": versions()})
    else:
        show_table(rows)
    if options["csv_file"] is not None:
        write(lambda: rows_of.write_rows(rows, options["csv_file"]), "--csv")


def _show_clusters(rows: Sequence[ClusterRow]) -> None:
    """Print a line for each cell and method."""
    from fogline.report._svg import significant

    names = (
        "data",
        "epsilon",
        "method",
        "ARI",
        "paper",
        "NMI",
        "paper",
        "centre MSE",
        "paper",
        "clusters",
        "s",
        "paper",
    )
    lines = [
        (
            row.dataset,
            f"{row.epsilon:g}",
            row.method,
            f"{row.ari:.3f}",
            f"{row.paper_ari:.3f}",
            f"{row.nmi:.3f}",
            f"{row.paper_nmi:.3f}" if row.paper_nmi == row.paper_nmi else "",
            significant(row.median_mse),
            significant(row.paper_mse),
            f"{row.clusters:.1f}",
            f"{row.seconds:.2f}",
            f"{row.paper_seconds:.2f}",
        )
        for row in rows
    ]
    note = (
        "paper: what it prints for the method, for the certified one what it prints for DP-GRAMS-C; errors of centres"
    )
    _print_table(names, lines, f"{note} are to the medians of the classes, s are seconds of a processor.")


def _show_regression(rows: Sequence[RegressionRow]) -> None:
    """Print a line for each cell and method."""
    from fogline.report._svg import significant

    names = ("data", "n", "epsilon", "method", "MSE to truth", "right number", "MSE to PMS", "as the paper", "paper")
    lines = [
        (
            row.dataset,
            str(row.n),
            f"{row.epsilon:g}",
            row.method,
            significant(row.true_mse),
            f"{100 * row.right:.0f}%",
            significant(row.pms_mse),
            significant(row.mse) if row.mse == row.mse else "",
            f"{row.paper_mse:g}",
        )
        for row in rows
    ]
    note = "as the paper: against partial mean shift at every record, which only DP-PMS answers for."
    _print_table(names, lines, note)


def _show_hellinger(rows: Sequence[HellingerRow]) -> None:
    """Print a line for each cell and method."""
    first = ("table", "n", "epsilon", "method", "bad", "mu", "paper", "sigma", "paper")
    names = (*first, "mu covered", "paper", "uncorrected", "paper")

    def share(value: float) -> str:
        return f"{100 * value:.0f}%" if value == value else ""

    def both(mean: float, spread: float) -> str:
        return f"{mean:.2f} ({spread:.2f})" if mean == mean else ""

    lines = [
        (
            row.table,
            str(row.n),
            f"{row.epsilon:g}",
            row.method,
            f"{row.contamination}%",
            both(row.mu, row.mu_sd),
            both(row.paper_mu, row.paper_mu_sd),
            both(row.sigma, row.sigma_sd),
            both(row.paper_sigma, row.paper_sigma_sd),
            share(row.mu_cover),
            share(row.paper_mu_cover),
            share(row.mu_plain_cover),
            share(row.paper_mu_plain_cover),
        )
        for row in rows
    ]
    note = "Mean over the runs (standard deviation). epsilon is in HDP or PDP, inf is the non-private column."
    _print_table(names, lines, note)


def _show_integral(rows: Sequence[IntegralRow]) -> None:
    """Print a line for each cell and method."""
    names = ("data", "epsilon", "method", "NLL", "sd", "coverage", "gain", "best gain", "drawable", "CPU s")

    def shown(value: float) -> str:
        return f"{value:.3f}" if value == value else ""

    lines = [
        (
            row.problem,
            f"{row.epsilon:g}",
            row.method,
            shown(row.nll),
            shown(row.nll_sd),
            shown(row.coverage),
            shown(row.gain),
            shown(row.best_gain),
            shown(row.drawable_gain),
            f"{row.seconds:.2f}",
        )
        for row in rows
    ]
    note = (
        "epsilon: of one draw and for everybody at once (MBDE), or of all draws and for one record. Best gain: of any "
        "density in the mollifier; drawable: of those that rejection can draw from without a normaliser."
    )
    _print_table(names, lines, note)


def _show_mixtures(rows: Sequence[MixtureRow]) -> None:
    """Print a line for each kind of data and method."""
    from fogline.report._svg import significant

    names = ("data", "d", "k", "n", "method", "recovered", "TV", "not private", "gap", "CPU s")
    lines = [
        (
            row.data if row.sigma_max == 1 else f"{row.data}, 1 to {row.sigma_max:g} wide",
            str(row.d),
            str(row.k),
            str(row.n),
            row.method,
            f"{100 * row.recovered:.0f}%",
            significant(row.tv),
            significant(row.plain_tv),
            f"{row.gap:.4f}",
            f"{row.seconds:.1f}",
        )
        for row in rows
    ]
    note = (
        "separated: means 100 apart in the theorem's units; ordinary: 3 to 6 standard deviations. TV: largest total "
        "variation of a component from the true one, beside that without privacy (true partition; scikit-learn). gap: "
        "to that one, in log-likelihood of fresh records, nats."
    )
    _print_table(names, lines, note)


def _print_table(names: Sequence[str], lines: Sequence[Sequence[str]], note: str) -> None:
    from rich.table import Table

    from fogline.cli.common import console_for_people

    table = Table()
    for name in names:
        table.add_column(name, justify="left" if name in ("data", "method") else "right")
    for line in lines:
        table.add_row(*line)
    console = console_for_people()
    console.print(table)
    console.print(note)
