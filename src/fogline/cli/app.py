"""The commands: what each takes, what it prints, how it ends.

Exit codes: 0 done (also when nothing stands above the fog), 1 something is missing on this machine, 2 the command or
the schema of the file is wrong, 3 the records could not be read, 4 the ledger refused. All that can be refused is
refused before the records are touched; after that there is one constant message, since any other might quote them.
"""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.audit import audit
from fogline.cli.common import (
    SETTINGS,
    Command,
    Phase,
    Unreadable,
    need,
    opened,
    print_json,
    refusals,
    writable,
    write,
)
from fogline.cli.ledger import ledger
from fogline.cli.plan import plan

if TYPE_CHECKING:
    from fogline.estimators import PrivateModes
    from fogline.reproduce import Row

__all__ = ["app"]


@click.group(context_settings=SETTINGS, epilog="\b\nStart with:\n  fogline demo\n  fogline modes --help")
@click.version_option(version("fogline"), prog_name="fogline")
def app() -> None:
    """Publish the shape of sensitive data under differential privacy."""


# -- fogline modes ----------------------------------------------------------------------------------------

MODES_EXAMPLES = """\b
Examples:
  fogline modes visits.csv --columns age,minutes --bounds 0:100,0:240 --epsilon 1 --delta 1e-6
  fogline modes points.parquet --columns x,y --bounds=-10:10,-10:10 --epsilon 0.5 --delta 1e-6
        --n-modes 4 --json
  fogline modes visits.csv --columns age --bounds 0:120 --steps 1 --epsilon 1 --delta 1e-6
        --max-contributions 3 --report visits.html --save visits.npz
  fogline modes visits.csv --columns age --bounds 0:120 --epsilon 0.3 --delta 1e-6
        --ledger budget.fogline --dataset visits --analyst ada

\b
Exit codes: 0 done, also when no mode is found; 1 a library is missing or a file cannot be written;
2 wrong usage or schema; 3 the records could not be read; 4 the ledger refused.
"""


@app.command(cls=Command, epilog=MODES_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--columns", metavar="A,B", help="Columns, one to three; by default all of the file's.")
@click.option(
    "--bounds", metavar="LO:HI,LO:HI", required=True, help="Public range of each column; never from the data."
)
@click.option("--epsilon", type=float, required=True, help="Privacy budget of this release.")
@click.option("--delta", type=float, required=True, help="Chance that the promise may fail; well below 1/n.")
@click.option("--n-modes", type=int, help="Return so many modes instead of those above the fogline.")
@click.option("--level", type=float, default=0.05, show_default=True, help="Chance of a mode where only noise is.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option(
    "--neighbours",
    type=click.Choice(["add-remove", "replace"]),
    default="add-remove",
    show_default=True,
    help="Hide that a record is there, or only what it says.",
)
@click.option("--max-contributions", type=int, default=1, show_default=True, help="Most records of one person.")
@click.option(
    "--bandwidth", default="auto", show_default=True, help="auto, a fraction of each range, or one value a column."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write a self-contained HTML page.")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Write the released density (.npz).")
@click.option("--ledger", type=click.Path(path_type=Path), help="Pay from this ledger; asking again is free.")
@click.option("--dataset", metavar="ID", help="The data set's name in the ledger, where it has several.")
@click.option("--analyst", metavar="NAME", help="Who asks, as the ledger knows them.")
@click.option("--high-water", type=click.Path(path_type=Path), help="Folder of the ledger's high-water mark.")
@click.pass_context
def modes(ctx: click.Context, /, **options: Any) -> None:
    """Find the modes of some columns of FILE (CSV or Parquet), privately.

    Spends the budget once. Records with a missing or unreadable value, or outside the bounds, contribute nothing.
    """
    as_json: bool = options["as_json"]
    _need("duckdb", *([] if as_json else ["rich"]), *(["jinja2"] if options["report"] else []))
    for name in ("report", "save"):
        writable(options[name], f"--{name}")
    estimator, table = _planned(options)
    command = str(ctx.meta["fogline.command"])
    paid = _release(estimator, table, options)
    from fogline.report import find

    with Phase("reading modes and clusters from the release", quiet=as_json):
        findings = find(estimator)
    if as_json:
        from fogline.report import document

        print_json({**document(findings, command), **({} if paid is None else paid)})
    else:
        from fogline.cli.show import show_modes, show_payment

        show_modes(findings)
        if paid is not None:
            show_payment(paid)
    if options["save"] is not None:
        write(lambda: estimator.density_.save(options["save"]), "--save")
    if options["report"] is not None:
        from fogline.report import write_report

        write(lambda: write_report(estimator, options["report"], command=command), "--report")
    if not as_json:
        for what in ("save", "report"):
            if options[what] is not None:
                click.echo(f"{'density' if what == 'save' else 'report'}: {options[what]}")


def _planned(options: dict[str, Any]) -> tuple[PrivateModes, Any]:
    """Check all that is public, in the order in which a user would."""
    columns = parse.columns_option(options["columns"])
    bounds = parse.bounds_option(options["bounds"])
    steps = parse.steps_option(options["steps"])
    bandwidth = parse.bandwidth_option(options["bandwidth"])
    from fogline import PrivateModes, _validation
    from fogline.engines import FileTable
    from fogline.sketch.spec import SketchSpec, as_bandwidth

    try:
        _validation.check_epsilon(options["epsilon"])
        _validation.check_delta(options["delta"])
        _validation.check_level(options["level"])
        _validation.check_max_contributions(options["max_contributions"])
        if options["n_modes"] is not None:
            _validation.check_count(options["n_modes"], "n_modes")
        _validation.check_bounds(bounds)
        table = FileTable(options["file"], columns)
        if len(bounds) == 1:
            bounds = bounds * len(table.columns)
        if len(bounds) != len(table.columns):
            raise ValueError(f"bounds has {len(bounds)} pairs, but there are {len(table.columns)} columns")
        if isinstance(steps, list) and len(steps) == 1:
            steps = steps * len(table.columns)
        spec = SketchSpec.plan(bounds, bandwidth if isinstance(bandwidth, str) else [bandwidth], steps)
        if (
            not isinstance(bandwidth, str)
            and (as_bandwidth(bandwidth, spec.widths) < spec.planned[0] * (1 - 1e-9)).any()
        ):
            raise ValueError(
                f"bandwidth {bandwidth} is too fine for the steps; at least {spec.planned[0].tolist()} would do"
            )
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    chosen = {
        name: options[name] for name in ("epsilon", "delta", "n_modes", "level", "neighbours", "max_contributions")
    }
    return PrivateModes(bounds=bounds, steps=steps, bandwidth=bandwidth, **chosen), table


def _release(estimator: PrivateModes, table: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """Fit, and return the receipt and whether the answer was there before, where a ledger paid."""
    doing = "reading the file, releasing its density once"
    if options["ledger"] is None:
        for name in ("dataset", "analyst", "high_water"):
            if options[name] is not None:
                raise click.BadParameter("is of use only with --ledger", param_hint=f"--{name.replace('_', '-')}")
        with Phase(doing, quiet=options["as_json"]):
            _fit(estimator, table)
        return None

    with opened(options["ledger"], options["high_water"]) as books:
        with refusals():
            view = books.on(options["dataset"], analyst=options["analyst"])
            before = len(books.history())
        estimator.ledger = view
        with Phase(doing, quiet=options["as_json"]), refusals():
            _fit(estimator, table)
    receipt = estimator.density_.receipt
    if receipt is None:
        raise Unreadable("the ledger gave no receipt")
    return {"receipt": receipt, "cached": receipt["commit"] < before}


def _fit(estimator: PrivateModes, table: Any) -> None:
    """Fit, with one constant message for whatever goes wrong once records are touched."""
    from fogline.engines.files import ReadFailed

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning may depend on the records
            estimator.fit(table)
    except tuple(_ledger_errors(estimator)):
        raise
    except ReadFailed:
        raise Unreadable("the records of FILE could not be read") from None
    except Exception:
        raise Unreadable("the release failed; why is not said, since that may depend on the records") from None


def _ledger_errors(estimator: PrivateModes) -> list[type[Exception]]:
    """Return what a ledger raises, which says nothing of the records."""
    if estimator.ledger is None:
        return []
    from fogline.ledger import LedgerRefused, ReleaseFailed

    return [LedgerRefused, ReleaseFailed]


# -- fogline demo -----------------------------------------------------------------------------------------


@app.command(cls=Command, epilog="\b\nExample:\n  fogline demo --out /tmp")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    show_default=True,
    help="Folder for the page.",
)
@click.pass_context
def demo(ctx: click.Context, out: Path) -> None:
    """Find modes and clusters of the Old Faithful table (272 eruptions) and write a page about them.

    Spends epsilon = 1, delta = 1e-5.
    """
    _need("rich", "jinja2")
    from fogline import PrivateModes
    from fogline.cli.show import show_modes
    from fogline.datasets import load_faithful
    from fogline.report import find, write_report

    write(lambda: out.mkdir(parents=True, exist_ok=True), "--out")
    table = load_faithful()
    with Phase("releasing the density of the table once, reading it"):
        estimator = PrivateModes(epsilon=1.0, delta=1e-5, bounds=table.bounds, steps=table.steps).fit(table.X)
        findings = find(estimator, table.columns)
    show_modes(findings)
    target = out / "fogline-demo.html"
    title = "Old Faithful: how long it erupts, how long one waits"
    command = str(ctx.meta["fogline.command"])
    write(lambda: write_report(estimator, target, columns=table.columns, title=title, command=command), "--out")
    click.echo(f"report: {target}")


# -- fogline reproduce ------------------------------------------------------------------------------------


@app.group(context_settings=SETTINGS)
def reproduce() -> None:
    """Rerun tables of the papers, beside the figures that they print."""


@reproduce.command(
    "modes",
    cls=Command,
    epilog="\b\nExamples:\n  fogline reproduce modes\n  fogline reproduce modes --cells all --published --csv out.csv",
)
@click.option("--runs", type=int, default=20, show_default=True, help="Fresh data sets a cell.")
@click.option(
    "--cells", type=click.Choice(["small", "all"]), default="small", show_default=True, help="8 or all 40 cells."
)
@click.option("--published", is_flag=True, help="Run DP-GRAMS as published beside it (not certified).")
@click.option("--contenders", is_flag=True, help="Run mean shift (not private) and a noisy histogram beside it.")
@click.option("--seed", type=int, help="Seed of the data; the certified noise has none.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to a file.")
@click.pass_context
def reproduce_modes_command(ctx: click.Context, /, **options: Any) -> None:
    """Error of the modes on the DP-GRAMS paper's 40 cells (number of modes known, delta 1e-5)."""
    as_json: bool = options["as_json"]
    if not as_json:
        _need("rich")
    writable(options["csv_file"], "--csv")
    from fogline import reproduce as engine
    from fogline.cli import show

    methods = ["certified", *(["published"] if options["published"] else [])]
    methods += ["mean_shift", "noisy_histogram"] if options["contenders"] else []
    uncertified = [name for name in ("published", "mean_shift") if name in methods]
    if uncertified:
        click.echo(f"warning: {' and '.join(uncertified)} run as published, without a certified guarantee", err=True)
    with show.progress_bar(quiet=as_json or not sys.stderr.isatty()) as progress:
        try:
            rows = engine.reproduce_modes(
                runs=options["runs"], cells=options["cells"], methods=methods, seed=options["seed"], progress=progress
            )
        except (ValueError, TypeError) as error:
            raise parse.refused(error) from None
    if as_json:
        print_json(_rerun_document(rows, str(ctx.meta["fogline.command"])))
    else:
        show.show_rows(rows)
    if options["csv_file"] is not None:
        write(lambda: show.write_rows(rows, options["csv_file"]), "--csv")


def _rerun_document(rows: list[Row], command: str) -> dict[str, Any]:
    from fogline.cli.show import as_record, summary
    from fogline.report.findings import versions

    return {
        "format": "fogline-reproduce-modes-1",
        "source": "DP-GRAMS paper, supplement tables",
        "command": command,
        "rows": [as_record(row) for row in rows],
        "summary": summary(rows),
        "versions": versions(),
    }


# -- shared -----------------------------------------------------------------------------------------------


def _need(*libraries: str) -> None:
    need(*libraries, found=find_spec)


for _command in (ledger, plan, audit):
    app.add_command(_command)
