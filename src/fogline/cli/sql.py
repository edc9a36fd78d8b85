"""``fogline sql``: the query by which a warehouse counts its own records, for a release of its answer."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, writable, write
from fogline.cli.density_commands import group_option, named_bounds_option, named_steps_option
from fogline.cli.options import EXIT_CODES

__all__ = ["sql"]

EXAMPLES = """\b
Examples:
  fogline sql --dialect bigquery --table clinic.visits --columns age,stay --bounds age,0:60 > counts.sql
  fogline sql --dialect snowflake --table visits --columns stay --bounds 0:60 --unit person_id
        --max-contributions 2 --out counts.sql

\b
Run it, keep the whole answer in a file of your own (umask 077), and go on with:
  fogline release --counts counts.csv --columns age,stay --bounds age,0:60 --epsilon 1 --out visits.fog

\b
Dialects: duckdb, postgres, sqlite, spark, clickhouse, datafusion, mariadb were run against their engines;
bigquery, snowflake, trino, databricks, redshift, mysql, tsql, oracle were not, and releases say so.

"""


@click.command(cls=Command, epilog=EXAMPLES + EXIT_CODES)
@click.option("--dialect", metavar="NAME", required=True, help="Whose SQL: bigquery, snowflake, postgres, ...")
@click.option(
    "--table", "table", metavar="TABLE", required=True, help="Name of a table, or a SELECT of single records."
)
@click.option("--columns", metavar="A,B", help="Up to three columns of numbers.")
@click.option("--bounds", metavar="LO:HI,LO:HI", required=True, help="Public range of each, or its name; or A=LO:HI.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none; or A=1.")
@click.option("--unit", metavar="COLUMN", help="Column that says whose record a row is: the query bounds it.")
@click.option("--max-contributions", type=int, default=1, show_default=True, help="Most records of one unit.")
@click.option(
    "--features",
    type=click.Choice(["auto", "leaves", "grid"]),
    default="auto",
    show_default=True,
    help="What is released from the counts.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Where the query goes; by default it is printed.")
def sql(**options: Any) -> None:
    """Print the query that counts the records of each cell, to be run in a warehouse of your own.

    Touches no record and spends nothing. The answer of the query is as secret as the records.
    """
    groups = group_option(options["columns"])
    bounds = named_bounds_option(options["bounds"])
    steps = named_steps_option(options["steps"])
    if groups is not None and len(groups) > 1:
        raise click.BadParameter("a query counts for one density: print one for each", param_hint="--columns")
    writable(options["out"], "--out", [])
    from fogline.releases.counts_release import counts_query

    try:
        query = counts_query(
            dialect=options["dialect"],
            table=options["table"],
            columns=None if groups is None else groups[0],
            bounds=bounds,
            steps=steps,
            unit=options["unit"],
            max_contributions=options["max_contributions"],
            features=options["features"],
        )
    except (ValueError, TypeError) as error:
        raise parse.refused(error) from None
    text = f"{_header(options, query.columns)}\n{query.sql()}\n"
    if options["out"] is None:
        click.echo(text, nl=False)
    else:
        write(lambda: options["out"].write_text(text, encoding="utf-8"), "--out")
    if query.dialect.reason:
        click.echo(f"not certified: {query.dialect.reason}; releases of its counts say so", err=True)


def _header(options: dict[str, Any], columns: tuple[str, ...]) -> str:
    """Comments that go with the query: what its answer is, and how to go on."""
    words = ["fogline", "release", "--counts", "counts.csv", "--columns", ",".join(columns)]
    for name in ("bounds", "steps", "unit"):
        words += [] if options[name] is None else [f"--{name}", options[name]]
    if options["unit"] is not None:
        words += ["--max-contributions", str(options["max_contributions"])]
    words += [] if options["features"] == "auto" else ["--features", options["features"]]
    words += ["--epsilon", "1", "--out", "counts.fog"]
    lines = ["The answer of this query holds exact counts and is as secret as the records.", "Go on with:"]
    # A line break within a word would end the comment.
    return "\n".join(f"-- {line}" for line in [*lines, "  " + " ".join(shlex.join(words).split())])
