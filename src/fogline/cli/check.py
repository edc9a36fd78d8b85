"""``fogline check``: what would be read of a file, for free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, need, print_json
from fogline.cli.release import checked_words
from fogline.cli.sources import need_reader, reading_keywords, reading_options, source_argument, unit_option

if TYPE_CHECKING:
    from fogline.sources.check import FileCheck

__all__ = ["check"]

EXAMPLES = """\b
Examples:
  fogline check visits.csv
  fogline check visits.csv --columns weight,glucose --unit person_id --decimal , --delimiter ";"
  fogline check export.txt --header person,weight,glucose --delimiter tab --null=-999 --json

\b
FILE: a CSV or Parquet file, a folder or a quoted pattern of them ("visits/*.csv").
"""


@click.command(cls=Command, epilog=EXAMPLES)
@source_argument
@click.option("--columns", metavar="A,B", help="Columns; by default all but the unit's.")
@unit_option
@reading_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def check(**options: Any) -> None:
    """Say which columns, delimiter and options would be used for FILE. Free: no record is touched.

    Of a text file only the header is read, and refused without being shown if it looks like values.
    """
    if "://" in options["file"]:
        raise click.BadParameter("expected a file; a database states its own types", param_hint="FILE")
    need_reader(options["file"])
    need(*([] if options["as_json"] else ["rich"]))
    columns = parse.columns_option(options["columns"])
    checked_words(options)
    from fogline.sources.check import check as checked

    try:
        found = checked(options["file"], columns, unit=options["unit"], **reading_keywords(options))
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    if options["as_json"]:
        print_json(found.to_dict())
    else:
        _show(found)


def _show(found: FileCheck) -> None:
    from rich.table import Table
    from rich.text import Text

    from fogline.cli.common import console_for_people

    console = console_for_people()
    what = Table(show_header=False)
    rows = [("file", found.path), ("kind", found.kind + ("" if found.files == 1 else f", {found.files} files"))]
    rows += [("columns", ", ".join(found.columns)), ("unit", found.unit or "none: every record is one of its own")]
    others = [name for name in found.names if name not in found.columns and name != found.unit]
    rows += [("not read", ", ".join(name or "(no name)" for name in others))] if others else []
    if found.header is not None:
        rows += [("delimiter", {"\t": "tab", " ": "space"}.get(found.header.delimiter, found.header.delimiter))]
        rows += [("header", "as stated" if found.header.line_end is None else _header_words(found))]
        rows += [("decimal mark", found.options.decimal), ("thousands", found.options.thousands or "none")]
        rows += [("encoding", found.options.encoding), ("null words", ", ".join(found.options.null) or "none")]
    for name, value in rows:
        what.add_row(Text(name), Text(value))
    console.print(what)
    if found.made_up:
        cells = Table(title=Text("What made-up cells would count as"), title_justify="left")
        cells.add_column("cell")
        cells.add_column("counts as", justify="right")
        for cell, number in found.made_up.items():
            cells.add_row(Text(f"[{cell}]"), "missing" if number is None else f"{number:g}")
        console.print(cells)
    for sentence in (found.isolation, *found.remarks):
        console.print(sentence, soft_wrap=True)


def _header_words(found: FileCheck) -> str:
    assert found.header is not None
    ends = {"LF": "ends in a line feed", "CR": "ends in a carriage return", "none": "is all of the file"}
    return ends[found.header.line_end or "none"] + (", begins with a byte order mark" if found.header.has_bom else "")
