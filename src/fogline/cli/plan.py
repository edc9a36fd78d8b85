"""``fogline plan``: how well modes would be found, by epsilon, before any data are touched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, Phase, need, print_json, writable, write

if TYPE_CHECKING:
    from fogline.estimators import PrivateModes
    from fogline.estimators.expected import ExpectedError

__all__ = ["plan"]

EXAMPLES = """\b
Examples:
  fogline plan --bounds 0:100 --n 5000 --delta 1e-6
  fogline plan --bounds 0:10 --n 5000 --delta 1e-6 --shape "gaussian:3,0.8;7,0.8"
  fogline plan --bounds 0:100,0:240 --n 2000 --delta 1e-6 --shape last-years-public-sample.csv
        --columns age,minutes --epsilons 0.2,0.5,1 --picture plan.svg

\b
Shapes: uniform; gaussian:MEANS,SCALE;... with one mean a column and one scale, or one scale a column,
and a weight if you like (gaussian:3,0.8@0.7;7,0.8@0.3); or a file with a public sample.
"""


@click.command(cls=Command, epilog=EXAMPLES)
@click.option("--bounds", metavar="LO:HI,LO:HI", required=True, help="Public range of each column.")
@click.option("--n", type=int, required=True, help="Number of records, as you guess it.")
@click.option("--delta", type=float, required=True, help="Chance that the promise may fail; well below 1/n.")
@click.option("--epsilons", metavar="E,E", help="Epsilons to try; by default 0.1,0.2,0.5,1,2,5.")
@click.option("--shape", default="uniform", show_default=True, help="A public guess; never the data. See below.")
@click.option("--columns", metavar="A,B", help="Columns of the public sample.")
@click.option("--n-modes", type=int, help="Expect so many modes to be asked for.")
@click.option("--level", type=float, default=0.05, show_default=True, help="Chance of a mode where only noise is.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option("--neighbours", type=click.Choice(["add-remove", "replace"]), default="add-remove", show_default=True)
@click.option("--max-contributions", type=int, default=1, show_default=True, help="Most records of one person.")
@click.option(
    "--bandwidth", default="auto", show_default=True, help="auto, a fraction of each range, or one value a column."
)
@click.option("--runs", type=int, help="Simulated fits an epsilon; by default 16, 6 or 3 by dimension.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw it (.svg or .html).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.pass_context
def plan(ctx: click.Context, /, **options: Any) -> None:
    """Say how well modes would be found at several epsilons. Free: no private data are touched.

    Data are simulated from a public guess of their shape, with exactly the noise that a release would have.
    """
    as_json: bool = options["as_json"]
    if not as_json:
        need("rich")
    writable(options["picture"], "--picture")
    bounds = parse.bounds_option(options["bounds"])
    epsilons = parse.numbers_option(options["epsilons"], "--epsilons")
    estimator = _estimator(options, bounds)
    guess = _shape(options["shape"], len(bounds), parse.columns_option(options["columns"]))
    from fogline.estimators.expected import expected_mode_error

    with Phase("simulating fits; no private data are touched", quiet=as_json):
        try:
            expected = expected_mode_error(
                estimator, options["n"], shape=guess, epsilons=epsilons, runs=options["runs"]
            )
        except (ValueError, TypeError) as error:
            raise parse.refused(error) from None
    if as_json:
        print_json(_document(expected, str(ctx.meta["fogline.command"])))
    else:
        _show(expected)
    if options["picture"] is not None:
        from fogline.report.outlook import outlook_picture
        from fogline.report.spending import write_picture

        drawing = outlook_picture(expected)
        write(lambda: write_picture(drawing, options["picture"], title="Before spending"), "--picture")
        if not as_json:
            click.echo(f"picture: {options['picture']}")


def _estimator(options: dict[str, Any], bounds: list[tuple[float, float]]) -> PrivateModes:
    steps = parse.steps_option(options["steps"])
    if isinstance(steps, list) and len(steps) == 1:
        steps = steps * len(bounds)
    bandwidth = parse.bandwidth_option(options["bandwidth"])
    from fogline import PrivateModes

    names = ("delta", "n_modes", "level", "neighbours", "max_contributions")
    chosen = {name: options[name] for name in names}
    return PrivateModes(bounds=bounds, steps=steps, bandwidth=bandwidth, **chosen)


def _shape(text: str, d: int, columns: list[str] | None) -> Any:
    """Return the guess that the words of --shape stand for."""
    if text == "uniform":
        return "uniform"
    if text.startswith("gaussian:"):
        return _mixture(text.removeprefix("gaussian:"), d)
    path = Path(text)
    if not path.is_file():
        raise click.BadParameter(
            f"expected uniform, gaussian:mean,scale;... or a file, and there is no file {text!r}", param_hint="--shape"
        )
    need("duckdb")
    return _public_sample(path, d, columns)


def _mixture(text: str, d: int) -> Any:
    from fogline.datasets import Mixture

    weights, centers, scales = [], [], []
    for part in text.split(";"):
        body, _, weight = part.partition("@")
        numbers = parse.numbers_option(body, "--shape") or []
        if len(numbers) not in (d + 1, 2 * d):
            raise click.BadParameter(
                f"expected {d} mean{'' if d == 1 else 's'} and one scale, or one scale a column, got {part.strip()!r}",
                param_hint="--shape",
            )
        given = parse.numbers_option(weight, "--shape") if weight else [1.0]
        weights.append((given or [1.0])[0])
        centers.append(numbers[:d])
        scales.append(numbers[d:] * d if len(numbers) == d + 1 else numbers[d:])
    total = sum(weights)
    try:
        return Mixture.of([weight / total for weight in weights], centers, scales)
    except (ValueError, ZeroDivisionError) as error:
        raise click.BadParameter(str(error), param_hint="--shape") from None


def _public_sample(path: Path, d: int, columns: list[str] | None) -> Any:
    """Read a public sample; unlike private records, it may be spoken about."""
    import duckdb
    import numpy as np

    try:
        with duckdb.connect() as connection:
            reader = connection.read_parquet if path.suffix.lower() in (".parquet", ".pq") else connection.read_csv
            table = reader(str(path))
            names = table.columns if columns is None else columns
            missing = [name for name in names if name not in table.columns]
            if missing:
                raise click.BadParameter(f"there is no column {missing[0]!r} in {str(path)!r}", param_hint="--columns")
            quoted = ['TRY_CAST("{}" AS DOUBLE)'.format(name.replace('"', '""')) for name in names]
            rows = table.project(", ".join(quoted)).fetchall()
    except duckdb.Error:
        raise click.BadParameter(f"cannot read {str(path)!r} as a table", param_hint="--shape") from None
    if len(names) != d:
        raise click.BadParameter(
            f"--bounds has {d} pairs, but the sample has {len(names)} columns: name them", param_hint="--columns"
        )
    return np.array([[np.nan if value is None else value for value in row] for row in rows]).reshape(-1, d)


# -- what is printed -----------------------------------------------------------------------------------------


def _document(expected: ExpectedError, command: str) -> dict[str, Any]:
    return {
        "format": "fogline-plan-1",
        "command": command,
        "n": expected.n,
        "shape": expected.shape,
        "delta": expected.delta,
        "neighbours": expected.neighbours,
        "level": expected.level,
        "runs": expected.runs,
        "modes": expected.modes.tolist(),
        "rows": expected.table(),
    }


def _show(expected: ExpectedError) -> None:
    from rich.table import Table
    from rich.text import Text

    from fogline.cli.show import console_for_people
    from fogline.report.svg import significant

    console = console_for_people()
    title = f"{expected.n} records, {expected.shape}, delta {expected.delta:g}, {expected.neighbours}"
    table = Table(title=Text(title), title_justify="left")
    has_modes = len(expected.modes) > 0
    headings = ["epsilon", *(["mode at", "found", "error", "of privacy", "of sampling"] if has_modes else [])]
    for heading in [*headings, "smallest share seen", "false modes a fit"]:
        table.add_column(heading, justify="right")
    last = None
    for record in expected.table():
        same, last = record["epsilon"] == last, record["epsilon"]
        cells = ["" if same else f"{record['epsilon']:g}"]
        if has_modes:
            cells += [", ".join(significant(value) for value in record["position"]), f"{record['detected']:.0%}"]
            for name in ("standard_errors", "privacy_errors", "sampling_errors"):
                errors = record[name]
                cells.append("-" if errors is None else ", ".join(significant(error, 2) for error in errors))
        share = f"{significant(100 * record['smallest_share'], 2)}%"
        table.add_row(*cells, *(["", ""] if same else [share, f"{record['spurious']:.2f}"]))
    console.print(table)
    console.print(
        f"From {expected.runs} simulated fits an epsilon; nothing was spent. The smallest share is the part of the "
        "records that, gathered in one narrow place, would just stand above the fog."
    )
