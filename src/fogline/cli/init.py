"""``fogline init``: writes a recipe by asking for what was not given as an option. No record is read."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from fogline._validation import nearest
from fogline.cli import parse
from fogline.cli.common import Command, need, writable, write
from fogline.cli.recipe import Recipe

__all__ = ["init"]

TEMPLATE = """\
# What fogline releases of {file}, and what it reads from it. Run it with: fogline run {recipe}

[source]
file = {file_text}
{source}
{ledger}[release.{name}]
columns = {columns}
epsilon = {epsilon}
out = {out}

[release.{name}.bounds]      # public ranges, never from the data; fogline units lists names
{bounds}

{profile}{strata}[[reading]]
kind = "card"                # report = "visits.html" writes a page of the density

[[reading]]
kind = "ask"
questions = {questions}

[[reading]]
kind = "notebook"
out = {notebook}
"""

PROFILE_TEMPLATE = """\
[profile.{name}]             # the shape of each of these columns, for a budget of its own
columns = {columns}
epsilon = {epsilon}
report = {report}
{more}
"""

STRATA_TEMPLATE = """\
[strata.{name}]              # one density per group, for a budget of its own
by = {by}
categories = {categories}
columns = {columns}
bounds = {bounds}
epsilon = {epsilon}
delta = 1e-6
report = {report}

"""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  fogline init
  fogline init --file visits.csv --columns age,stay --bounds age,0:60 --epsilon 1 --ledger budget.fogline
  fogline init --file visits.csv --columns age,stay --bounds age,0:60 --epsilon 1
        --profile age=age,stay=0:60,cost=0:9000 --category sex=f/m --profile-epsilon 0.5
""",
)
@click.option("--file", "source", metavar="FILE", help="The table.")
@click.option("--columns", metavar="A,B", help="Up to three columns.")
@click.option("--bounds", metavar="LO:HI,LO:HI", help="Public range of each column, or its name.")
@click.option("--epsilon", type=float, help="Privacy budget of the release.")
@click.option("--unit", metavar="COLUMN", help="Column that says whose record a row is; none for rows.")
@click.option("--max-contributions", type=click.IntRange(min=1), help="Most records of one unit.")
@click.option("--ledger", metavar="FILE", help="Ledger that pays; none for none.")
@click.option("--profile", metavar="A=LO:HI,B=NAME", help="Columns of numbers of a profile, with ranges; or none.")
@click.option("--category", metavar="A=x/y", help="Columns of categories of the profile, with their lists.")
@click.option("--profile-epsilon", type=float, help="Privacy budget of the profile.")
@click.option("--strata", metavar="COLUMN=x/y", help="Column of groups with their list, for a density each; or none.")
@click.option("--strata-epsilon", type=float, help="Privacy budget of the densities per group.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("fogline.toml"), show_default=True)
def init(source: str | None, out: Path, **given: Any) -> None:
    """Write a recipe, by asking for what is not given as an option. No record is read."""
    if out.exists():
        raise click.BadParameter(f"{str(out)!r} is there already", param_hint="--out")
    writable(out, "--out")
    need("duckdb")
    file = _asked(source, "Table (a CSV or Parquet file)", "--file", check=_known_columns)
    known = _known_columns(file)
    columns, bounds = _asked_columns(known, given)
    budget = partial(_budget, option="--epsilon")
    epsilon = _asked(given["epsilon"], "Privacy budget epsilon", "--epsilon", default="1.0", check=budget)
    whose = "Column that says whose record a row is (none: every row is one)"
    unit = _asked(given["unit"], whose, "--unit", default="none", check=lambda text: _one_of(text, ["none", *known]))
    each, whole = f"Most records of one {unit} that count", partial(click.IntRange(min=1).convert, param=None, ctx=None)
    limit = "1" if unit == "none" else given["max_contributions"]
    most = int(_asked(limit, each, "--max-contributions", default="1", check=whole))
    ledger = _asked(given["ledger"], "Ledger that pays (none: no ledger)", "--ledger", default="none")
    number = _budget(epsilon, "--epsilon")
    name = Path(file).stem.split(".")[0] or "release"
    name = name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else "shape"
    source_lines = [] if unit == "none" else [f"unit = {_toml(unit)}", f"max_contributions = {most}"]
    ledger_lines = [] if ledger == "none" else ["[ledger]", f"path = {_toml(ledger)}", "", ""]
    ranges = [f"{_toml(column)} = {_toml(pair)}" for column, pair in zip(columns, bounds, strict=True)]
    text = TEMPLATE.format(
        file=Path(file).name,
        recipe=out.name,
        file_text=_toml(file),
        source="".join(f"{line}\n" for line in source_lines),
        ledger="\n".join(ledger_lines),
        name=name,
        columns=_toml(columns),
        epsilon=repr(number),
        out=_toml(f"{name}.fog"),
        bounds="\n".join(ranges),
        profile=_asked_profile(name, given),
        strata=_asked_strata(name, unit, columns, bounds, given),
        notebook=_toml(f"{name}.ipynb"),
        questions=_toml(["count", *(f"median {_asked_name(column)}" for column in columns)]),
    )
    Recipe(tomllib.loads(text), out.parent)
    write(lambda: out.write_text(text, encoding="utf-8"), "--out")
    click.echo(f"recipe: {out}")
    if ledger != "none" and not Path(ledger).exists():
        click.echo(f"there is no ledger {ledger!r} yet: make it by fogline ledger create {ledger}", err=True)


def _asked(
    value: object, words: str, option: str, *, default: str | None = None, check: Callable[[str], object] | None = None
) -> str:
    """Return what was given, or ask until the check is content; where nobody can be asked, the default or an error."""
    if value is not None:
        return str(value)
    if not _is_person():
        if default is not None:
            return default
        raise click.BadParameter("is needed where nobody can be asked", param_hint=option)

    def checked(text: str) -> str:
        if check is not None:
            check(text)
        return text

    answer: str = click.prompt(words, default=default, value_proc=checked)
    return answer


def _asked_name(column: str) -> str:
    """Name of a column as a question has it: in quotes where it could be read as another word."""
    plain = column.isidentifier() and column.lower() not in ("of", "by", "where", "given", "and", "in")
    return column if plain else f'"{column}"'


def _budget(epsilon: object, option: str) -> float:
    """Return a budget as a number that may be spent."""
    from fogline.cli.release import checked_numbers

    try:
        number = float(str(epsilon))
    except ValueError:
        raise click.BadParameter(f"expected a number, got {epsilon!r}", param_hint=option) from None
    checked_numbers({"epsilon": number})
    return number


def _asked_profile(name: str, given: Mapping[str, Any]) -> str:
    """Return the part of a recipe that releases a profile; empty where none is wanted."""
    words = "Profile of columns, as age=age,stay=0:60 (none: no profile)"
    text = _asked(given["profile"], words, "--profile", default="none")
    lists = given["category"]
    if text == "none" and lists is None:
        return ""
    from fogline.cli.profile import _named, _ranges

    ranges = {} if text == "none" else _ranges(text)
    if given["profile"] is None and lists is None and _is_person():
        asked = _asked(None, "Its columns of categories, as sex=f/m (none: none)", "--category", default="none")
        lists = None if asked == "none" else asked
    categories = {column: word.split("/") for column, word in _named(lists, "--category").items() if word}
    epsilon = _budget(_asked(given["profile_epsilon"], "Its budget epsilon", "--profile-epsilon", default="1.0"),
                      "--profile-epsilon")  # fmt: skip
    more = ["", f"[profile.{name}.bounds]"] if ranges else []
    more += [f"{_toml(column)} = {_toml(pair if isinstance(pair, str) else list(pair))}"
             for column, pair in ranges.items()]  # fmt: skip
    more += ["", f"[profile.{name}.category]"] if categories else []
    more += [f"{_toml(column)} = {_toml(labels)}" for column, labels in categories.items()]
    return PROFILE_TEMPLATE.format(
        name=name,
        columns=_toml([*ranges, *categories]),
        epsilon=repr(epsilon),
        report=_toml(f"{name}-profile.html"),
        more="\n".join([*more, ""]),
    )


def _asked_strata(name: str, unit: str, columns: Sequence[str], bounds: Sequence[Any], given: Mapping[str, Any]) -> str:
    """Return the part of a recipe that releases a density per group; empty where none is wanted."""
    if unit != "none" and given["strata"] is None:
        return ""  # a density per group counts rows, not units
    words = "One density per group, as sex=f/m (none: no groups)"
    text = _asked(given["strata"], words, "--strata", default="none")
    if text == "none":
        return ""
    by, _, labels = text.partition("=")
    if not by.strip() or not labels.strip():
        raise click.BadParameter(f"expected COLUMN=x/y, such as sex=f/m, got {text!r}", param_hint="--strata")
    epsilon = _budget(_asked(given["strata_epsilon"], "Its budget epsilon", "--strata-epsilon", default="1.0"),
                      "--strata-epsilon")  # fmt: skip
    return STRATA_TEMPLATE.format(
        name=name,
        by=_toml(by.strip()),
        categories=_toml([label.strip() for label in labels.split("/")]),
        columns=_toml(list(columns)),
        bounds=_toml(list(bounds)),
        epsilon=repr(epsilon),
        report=_toml(f"{name}-strata.html"),
    )


def _is_person() -> bool:
    """Whether somebody sits at the terminal."""
    return sys.stdin.isatty()


def _known_columns(file: str) -> list[str]:
    """Columns that the schema of a table has."""
    from fogline.sources.registry import table

    try:
        return list(table(file).columns or ())
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None


def _one_of(text: str, known: Sequence[str]) -> None:
    if text not in known:
        raise click.BadParameter(f"there is no column {text!r}; {nearest(text, known)}")


def _few_columns(listed: str, known: Sequence[str]) -> list[str]:
    """Up to three columns that the schema has."""
    columns = parse.columns_option(listed) or []
    for column in columns:
        if column not in known:
            raise click.BadParameter(f"there is no column {column!r}; {nearest(column, known)}", param_hint="--columns")
    if len(columns) > 3:
        raise click.BadParameter("a density has up to three; write several releases", param_hint="--columns")
    return columns


def _asked_columns(known: Sequence[str], given: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """Columns that the schema has, and a range for each."""
    words, few = f"Up to three columns of {', '.join(known)}", partial(_few_columns, known=known)
    columns = few(_asked(given["columns"], words, "--columns", check=few))
    text = given["bounds"]
    if text is None:
        words = "Public range of {}, low:high or a name of fogline units"
        text = ",".join(_asked(None, words.format(column), "--bounds", check=parse.bounds_option) for column in columns)
    pairs = parse.bounds_option(text)
    if len(pairs) != len(columns):
        raise click.BadParameter(f"expected {len(columns)} ranges, got {len(pairs)}", param_hint="--bounds")
    from fogline import units

    named = [part.strip() for part in text.split(",")]
    return columns, [name if name in units.names() else list(pair) for name, pair in zip(named, pairs, strict=True)]


def _toml(value: object) -> str:
    """A text, a list of texts or a pair of numbers in TOML: basic strings are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
