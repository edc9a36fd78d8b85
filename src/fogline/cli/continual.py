"""``fogline continual``: a cumulative density every week, say, for a year, from one budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import (
    SETTINGS,
    Command,
    Commands,
    Phase,
    Unreadable,
    drawable,
    need,
    print_json,
    writable,
    write,
)
from fogline.cli.density_commands import group_option, named_bounds_option, named_steps_option
from fogline.cli.options import FILE, ledger_options, need_reader, query_option, reading_options, source_table

if TYPE_CHECKING:
    from fogline.density.continual import ContinualRelease
    from fogline.ledger import LedgerView
    from fogline.releases.continual import ContinualCounts

__all__ = ["continual"]

EXAMPLES = """\b
Examples:
  fogline continual start year.counts --columns stay --bounds 0:60 --periods 52 --unit person_id
        --max-contributions 2 --leavers --epsilon 1 --delta 1e-6
  fogline continual add year.counts week01.csv
  fogline continual release year.counts --out year.npz --fog week01.fog
  fogline continual remove year.counts leavers.txt
  fogline continual drift year.npz --first 26 --picture drift.svg

\b
Exit codes: 0 done; 2 wrong usage or schema; 3 the records could not be read; 4 the ledger refused.
"""

counts_argument = click.argument("counts", metavar="COUNTS", type=click.Path(path_type=Path, dir_okay=False))
SECRET = "This file holds exact counts and is as secret as the records."


@click.group(cls=Commands, context_settings=SETTINGS, epilog=EXAMPLES)
def continual() -> None:
    """Release a cumulative density every period, from one budget for all periods."""


@continual.command(cls=Command, epilog="\b\nWithout --unit every row is a record of its own.")
@counts_argument
@click.option("--columns", metavar="A,B", required=True, help="Up to three columns of numbers.")
@click.option("--bounds", metavar="LO:HI,LO:HI", required=True, help="Public range of each, or its name; or A=LO:HI.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none; or A=1.")
@click.option("--periods", type=int, default=52, show_default=True, help="How many releases there will be, at most.")
@click.option("--unit", metavar="COLUMN", help="Column that says whose record a row is.")
@click.option("--max-contributions", type=int, default=1, show_default=True, help="Of a unit, over all periods.")
@click.option("--leavers", is_flag=True, help="Records may be taken back: more noise, 1.23 times for a year of weeks.")
@click.option("--epsilon", type=float, required=True, help="Privacy budget of all periods together.")
@click.option("--delta", type=float, required=True, help="Chance that the promise may fail; well below 1/n.")
@ledger_options
def start(**options: Any) -> None:
    """Begin: make the secret file COUNTS, and charge the ledger, if there is one, for all periods."""
    from fogline.cli.release import ask, checked_numbers

    checked_numbers(options)
    columns = (group_option(options["columns"]) or [[]])[0]
    bounds, steps = named_bounds_option(options["bounds"]), named_steps_option(options["steps"])
    writable(options["counts"], "COUNTS", [])
    if options["counts"].exists():
        raise click.BadParameter("is there already", param_hint="COUNTS")
    names = ("periods", "unit", "max_contributions", "leavers", "epsilon", "delta")

    def question(view: LedgerView | None) -> Any:
        from fogline.releases.continual import ContinualCounts

        chosen: Any = {name: options[name] for name in names}
        return ContinualCounts(bounds=bounds, columns=columns, steps=steps, ledger=view, **chosen)

    made, _ = ask(question, {**options, "as_json": False}, "beginning")
    write(lambda: made.save(options["counts"]), "COUNTS")
    click.echo(
        f"{options['counts']}: {made.periods} periods, noise of {made.noise_per_cell:.3g} records per cell at the end"
    )
    click.echo(SECRET)


def _opened(path: Path) -> ContinualCounts:
    from fogline.releases.continual import ContinualCounts

    try:
        return ContinualCounts.load(path)
    except (ValueError, OSError) as error:
        raise parse.refused(error if isinstance(error, ValueError) else ValueError(f"path: {error.strerror}")) from None


@continual.command(cls=Command, epilog=FILE)
@counts_argument
@click.argument("file", metavar="FILE")
@query_option
@reading_options
def add(counts: Path, file: str, **options: Any) -> None:
    """Count the records of FILE into the current period. Nothing is released."""
    need_reader(file)
    state = _opened(counts)
    unit = None if state.terms.unit == "record" else state.terms.unit
    try:
        table = source_table({**options, "file": file, "unit": unit}, list(state.columns or ()) or None)
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    with Phase("reading the records"):
        _touched(lambda: state.add(table))
    write(lambda: state.save(counts), "COUNTS")
    click.echo(f"{counts}: period {state.released + 1} of {state.periods}")


@continual.command(cls=Command)
@counts_argument
@click.argument("ids", metavar="IDS", type=click.Path(path_type=Path, dir_okay=False, exists=True))
def remove(counts: Path, ids: Path) -> None:
    """Take back all records of the units in IDS, a text file with one id per line."""
    state = _opened(counts)
    _touched(lambda: state.remove(ids.read_text(encoding="utf-8", errors="surrogateescape").splitlines()))
    write(lambda: state.save(counts), "COUNTS")
    click.echo(f"{counts}: period {state.released + 1} of {state.periods}")


def _touched(action: Any) -> None:
    """Run what touches records: errors of use are told, all others are one constant."""
    try:
        action()
    except (RuntimeError, TypeError) as error:
        from fogline.sources.tables import ReadFailed

        if isinstance(error, ReadFailed):
            raise Unreadable("the records of FILE could not be read") from None
        raise click.ClickException(str(error)) from None
    except Exception:
        raise Unreadable("the records could not be counted; why is not said") from None


@continual.command("release", cls=Command)
@counts_argument
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="All releases so far (.npz)."
)
@click.option(
    "--fog", "shape", type=click.Path(path_type=Path, dir_okay=False), help="Its density as a release (.fog)."
)
def release_period(counts: Path, out: Path, shape: Path | None) -> None:
    """End the current period: release the density of all records so far, and save COUNTS before it is published."""
    for path, name in ((out, "--out"), (shape, "--fog")):
        writable(path, name, [counts])
    state = _opened(counts)
    from fogline.mechanisms.errors import ReleaseFailed

    # Once before, as it is: if COUNTS could not be written after the release, there would be no way on.
    write(lambda: state.save(counts), "COUNTS")
    try:
        found = state.release()
    except ReleaseFailed:
        raise Unreadable("the release failed; why is not said, since that may depend on the records") from None
    except (RuntimeError, OSError) as error:  # all periods were released, this one was, or it cannot be noted
        raise click.ClickException(str(error)) from None
    write(lambda: state.save(counts), "COUNTS")
    write(lambda: found.save(out), "--out")
    if shape is not None:
        write(lambda: found.density().save(shape), "--fog")
    density = found.density()
    click.echo(
        f"period {len(found)} of {found.periods}: about {density.count:.0f} ± {density.count_sd:.2g} records so far"
    )
    click.echo(str(found.guarantee))
    click.echo(f"released: {out}")


@continual.command(cls=Command)
@click.argument("released", metavar="RELEASED", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--first", type=int, required=True, help="Compare the periods after this one with those up to it.")
@click.option("--last", type=int, help="Up to this period; by default the last.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw it (.svg, .png or .pdf).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def drift(released: Path, first: int, last: int | None, picture: Path | None, as_json: bool) -> None:
    """Test whether the records of later periods are distributed as those before; free."""
    need(*(["matplotlib"] if picture else []))
    drawable(picture, "--picture", (".svg", ".png", ".pdf"))
    from fogline.density.continual import ContinualRelease

    try:
        found: ContinualRelease = ContinualRelease.load(released)
        tested = found.drift(first, last)
        figure = None if picture is None else found.plot_drift(first, last)
    except (ValueError, OSError) as error:
        raise parse.refused(error if isinstance(error, ValueError) else ValueError(f"path: {error.strerror}")) from None
    if figure is not None:
        write(lambda: figure.savefig(str(picture)), "--picture")
    words = {"first": tested.first, "last": tested.last, "statistic": tested.statistic, "p_value": tested.p_value}
    if as_json:
        print_json({"format": "fogline-drift-1", **words})
        return
    told = "differ" if tested.p_value < 0.05 else "do not differ measurably"
    which = f"periods {tested.first + 1} to {tested.last}"
    click.echo(f"{which} {told} in shape from 1 to {tested.first}: p = {tested.p_value:.3g}")
