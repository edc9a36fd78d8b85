"""``fogline notebook``: a notebook, or a script, that reads a release."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fogline.cli import parse
from fogline.cli.common import Command, drawable, writable, write
from fogline.cli.stored import open_release

__all__ = ["notebook"]

EXAMPLES = """\b
Examples:
  fogline notebook visits.fog --out visits.ipynb
  fogline notebook visits.fog --out visits.py
"""


@click.command(cls=Command, epilog=EXAMPLES)
@click.argument("file", metavar="RELEASE")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Notebook (.ipynb) or script (.py) to write.",
)
@click.option("--title", metavar="TEXT", help="Its heading.")
@click.pass_context
def notebook(ctx: click.Context, file: str, out: Path, title: str | None) -> None:
    """Write a notebook that opens a release and reads it: numbers, questions, modes, clusters, branches, a picture.

    Free, and nothing is run: the cells are for you to run and to change.
    """
    drawable(out, "--out", (".ipynb", ".py"))
    writable(out, "--out", [Path(file)])
    density = open_release(file)
    from fogline.cli.release import recipe_words
    from fogline.report.notebook import write_notebook

    # Seen from where the notebook stands, so that a folder with both can be moved.
    place = os.path.relpath(file, out.parent).replace(os.sep, "/")
    command = str(ctx.meta["fogline.command"]) + recipe_words()
    try:
        write(lambda: write_notebook(density, out, place, title=title, command=command), "--out")
    except ValueError as error:
        raise parse.refused(error) from None
    click.echo(f"{'notebook' if out.suffix.lower() == '.ipynb' else 'script'}: {out}")
