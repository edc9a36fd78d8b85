"""``fogline run`` and ``fogline init``: a recipe file that says what is released and what is read from it.

A recipe is TOML. It holds a source, perhaps a ledger, releases by name and readings of them; each release and each
reading is one command of fogline, which ``fogline run --dry-run`` prints. Everything that can be refused is refused
before the first record is read. A release whose file is there already is not made again: it is opened and compared with
the recipe, so that running a recipe twice spends once.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import shlex
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, need, writable, write

__all__ = ["Recipe", "Step", "init", "run"]

READING_OPTIONS = ("delimiter", "decimal", "thousands", "encoding", "null", "header")
SOURCE_KEYS = ("file", "query", "unit", "max_contributions", *READING_OPTIONS)
LEDGER_KEYS = ("path", "dataset", "analyst", "high_water", "afresh")
RELEASE_KEYS = ("columns", "bounds", "steps", "epsilon", "delta", "neighbours", "features", "expect_records", "out")

READINGS: dict[str, tuple[str, ...]] = {
    "ask": ("questions", "target"),
    "card": (),
    "clusters": ("n_clusters", "level", "report"),
    "fit": ("column", "family", "parameter_bounds", "confidence", "report"),
    "mixture": ("components", "sigma_min", "report"),
    "modes": ("n_modes", "level", "bandwidth", "report"),
    "quantiles": ("column", "q", "target"),
    "regress": ("x", "y", "level", "report"),
    "sample": ("draws", "out"),
}
"""What can be read of a release, and the options of each; all of them take ``json``."""

FILES = ("out", "report", "json")
"""Keys whose values are files that are written."""


@dataclass(frozen=True)
class Step:
    """One command of a recipe.

    Parameters
    ----------
    words : tuple of str
        The command, without ``fogline``.
    json : Path or None
        Where its document goes; None where it prints for people.
    out : Path or None
        Of a release, the file that it makes.
    """

    words: tuple[str, ...]
    json: Path | None = None
    out: Path | None = None

    def __str__(self) -> str:
        line = "fogline " + " ".join(shlex.quote(word) if parse.masked(word) == word else parse.masked(word)
                                     for word in self.words)  # fmt: skip
        return line if self.json is None else f"{line} > {shlex.quote(str(self.json))}"


class Recipe:
    """A recipe as it was read, checked, with its files relative to its own folder.

    Parameters
    ----------
    content : mapping
        As TOML has it.
    folder : Path
        Of the recipe.

    Examples
    --------
    >>> recipe = Recipe({"source": {"file": "v.csv"}, "release": {"stay": {"bounds": {"stay": [0, 60]}, "epsilon": 1}},
    ...                  "reading": [{"kind": "quantiles", "column": "stay"}]}, Path("."))
    >>> for step in recipe.steps():
    ...     print(step)
    fogline release v.csv --bounds stay=0:60 --epsilon 1 --out stay.fog
    fogline quantiles stay.fog --column stay
    """

    def __init__(self, content: Mapping[str, Any], folder: Path) -> None:
        _known(content, ("source", "ledger", "release", "reading"), "the recipe")
        self.folder = folder
        self.source = _table(content, "source")
        self.ledger = _table(content, "ledger")
        self.releases = {
            name: dict(_mapping(part, f"release.{name}")) for name, part in _table(content, "release").items()
        }
        readings = content.get("reading", [])
        if not isinstance(readings, list):
            raise click.ClickException("reading: write [[reading]], one for each")
        self.readings = [dict(_mapping(part, "reading")) for part in readings]
        _known(self.source, SOURCE_KEYS, "[source]")
        _known(self.ledger, LEDGER_KEYS, "[ledger]")
        if "file" not in self.source:
            raise click.ClickException("[source] needs file")
        if self.ledger and "path" not in self.ledger:
            raise click.ClickException("[ledger] needs path")
        if not self.releases:
            raise click.ClickException("the recipe has no release: write a table [release.NAME]")
        for name, part in self.releases.items():
            _known(part, RELEASE_KEYS, f"[release.{name}]")
            for key in ("bounds", "epsilon"):
                if key not in part:
                    raise click.ClickException(f"[release.{name}] needs {key}")
            columns = part.get("columns", [])
            if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
                raise click.ClickException(f"[release.{name}]: columns must be a list of names; others go to a release")
        for part in self.readings:
            self._check_reading(part)

    @classmethod
    def load(cls, path: Path) -> Recipe:
        """Read a recipe file."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(f"cannot be read: {error}", param_hint="RECIPE") from None
        except tomllib.TOMLDecodeError as error:
            raise click.BadParameter(f"is no TOML: {error}", param_hint="RECIPE") from None
        return cls(content, path.parent)

    def _check_reading(self, part: dict[str, Any]) -> None:
        kind = part.get("kind")
        if kind not in READINGS:
            near = difflib.get_close_matches(str(kind), READINGS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(READINGS)}"
            raise click.ClickException(f"[[reading]]: there is no kind {kind!r}; {hint}")
        _known(part, ("kind", "release", "json", *READINGS[str(kind)]), f"[[reading]] of kind {kind!r}")
        name = part.get("release")
        if name is None and len(self.releases) > 1:
            raise click.ClickException(f"[[reading]] of kind {kind!r} needs release: one of {', '.join(self.releases)}")
        if name is not None and name not in self.releases:
            near = difflib.get_close_matches(str(name), self.releases, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(self.releases)}"
            raise click.ClickException(f"[[reading]]: there is no release {name!r}{hint}")
        if kind == "ask" and not part.get("questions"):
            raise click.ClickException("[[reading]] of kind 'ask' needs questions")

    # -- commands --------------------------------------------------------------------------------------------

    def out(self, name: str) -> Path:
        """File of a release."""
        return self.place(self.releases[name].get("out", f"{name}.fog"))

    def place(self, value: object) -> Path:
        """File of the recipe, relative to its folder."""
        return self.folder / str(value)

    def steps(self) -> list[Step]:
        """All commands, releases first."""
        return [*(self._release(name) for name in self.releases), *map(self._reading, self.readings)]

    def outputs(self) -> list[tuple[str, Path]]:
        """Files that are written, with the keys that name them."""
        found = [("out", self.out(name)) for name in self.releases]
        return found + [(key, self.place(part[key])) for part in self.readings for key in FILES if key in part]

    def _release(self, name: str) -> Step:
        file = str(self.source["file"])
        words = ["release", file if "://" in file or Path(file).is_absolute() else str(self.place(file))]
        out = self.out(name)
        for key, value in self.releases[name].items():
            if key != "out":
                words += _option(key, value)
        for key, value in self.source.items():
            words += [] if key == "file" else _option(key, value)
        for key, value in self.ledger.items():
            is_place = key in ("path", "high_water")
            words += _option("ledger" if key == "path" else key, self.place(value) if is_place else value)
        return Step((*words, "--out", str(out)), out=out)

    def _reading(self, part: dict[str, Any]) -> Step:
        name = part.get("release", next(iter(self.releases)))
        words = [str(part["kind"]), str(self.out(name))]
        for key, value in part.items():
            if key == "questions":
                words += [str(question) for question in (value if isinstance(value, list) else [value])]
            elif key not in ("kind", "release", "json"):
                words += _option(key, self.place(value) if key in FILES else value)
        target = part.get("json")
        return Step((*words, *(["--json"] if target else [])), None if target is None else self.place(target))

    def agrees(self, name: str) -> None:
        """Refuse a file of another release than the recipe's, which would be read in its place."""
        from fogline.cli.stored import open_release

        density, part, out = open_release(self.out(name)), self.releases[name], self.out(name)
        bounds = part["bounds"]
        columns = part.get("columns", list(bounds) if isinstance(bounds, dict) else None)
        if columns is not None and density.columns != tuple(columns):
            raise click.ClickException(f"[release.{name}]: {out} holds the columns {density.columns}: delete it first")
        from fogline import units

        if [tuple(map(float, pair)) for pair in units.ranges(bounds, columns)] != list(density.spec.bounds):
            raise click.ClickException(f"[release.{name}]: {out} was released with other bounds: delete it first")
        if density.guarantee.epsilon != float(part["epsilon"]):
            raise click.ClickException(
                f"[release.{name}]: {out} was released with epsilon {density.guarantee.epsilon:g}: delete it first"
            )


def _known(content: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    """Refuse a key that means nothing, with the nearest one that does."""
    known = list(keys)
    for key in content:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise click.ClickException(f"{where} has an unknown key {key!r}; {hint}")


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise click.ClickException(f"{where}: expected a table")
    return value


def _table(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    return dict(_mapping(content.get(name, {}), name))


def _option(key: str, value: Any) -> list[str]:
    """Words of a command for a key of a recipe."""
    option = f"--{key.replace('_', '-')}"
    if isinstance(value, bool):
        return [option] if value else []
    if key == "x":
        return [word for name in (value if isinstance(value, list) else [value]) for word in (option, str(name))]
    text = _text(value, quote=key in ("columns", "null", "header"))
    return [f"{option}={text}"] if text.startswith("-") else [option, text]


def _text(value: Any, *, quote: bool = False) -> str:
    """A value of TOML as an option takes it: lists with commas, pairs with a colon, tables with equals signs."""
    if isinstance(value, Mapping):
        return ",".join(f"{_name(name)}={_pair(part)}" for name, part in value.items())
    if isinstance(value, list) and value and all(isinstance(part, list) for part in value) and not quote:
        return ",".join(_pair(part) for part in value)
    if isinstance(value, list):
        return ",".join(_name(str(part)) if quote else _pair(part) for part in value)
    return "none" if value is None else str(value)


def _pair(value: Any) -> str:
    return ":".join(str(end) for end in value) if isinstance(value, list) else str(value)


def _name(name: str) -> str:
    return f'"{name}"' if any(sign in name for sign in ',;="') else name


# -- commands ------------------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    epilog="\b\nExamples:\n  fogline init\n  fogline run fogline.toml --dry-run\n  fogline run fogline.toml",
)
@click.argument("recipe", type=click.Path(path_type=Path, dir_okay=False), default=Path("fogline.toml"))
@click.option("--dry-run", is_flag=True, help="Print the commands and do nothing.")
def run(recipe: Path, dry_run: bool) -> None:
    """Do what a recipe says: release once, then read, and write what it asks for.

    A release whose file is there already is opened, not made again.
    """
    if not recipe.is_file():
        raise click.BadParameter(f"there is no file {str(recipe)!r}; fogline init writes one", param_hint="RECIPE")
    found = Recipe.load(recipe)
    if dry_run:
        for step in found.steps():
            click.echo(str(step))
        return
    taken: list[Path] = [recipe]
    for key, path in found.outputs():
        writable(path, key, taken)
        taken.append(path)
    _check_questions(found)
    for name, step in zip(found.releases, found.steps(), strict=False):
        if step.out is not None and step.out.exists() and not found.ledger:
            found.agrees(name)
            click.echo(f"release: {step.out} is there, and is read as it is")
        else:
            _run(step, recipe)
    for step in found.steps()[len(found.releases) :]:
        _run(step, recipe)


def _check_questions(recipe: Recipe) -> None:
    """Refuse questions that cannot be understood, where the columns are known, before anything is spent."""
    for part in recipe.readings:
        release = recipe.releases[part.get("release", next(iter(recipe.releases)))]
        columns = release.get("columns", list(release["bounds"]) if isinstance(release["bounds"], dict) else None)
        if part["kind"] != "ask" or columns is None:
            continue
        from fogline.density.questions import parse_question

        for words in part["questions"] if isinstance(part["questions"], list) else [part["questions"]]:
            try:
                parse_question(words, columns)
            except (ValueError, TypeError) as error:
                raise click.ClickException(f"[[reading]] of kind 'ask': {error}") from None


def _run(step: Step, recipe: Path) -> None:
    """Run one command, its document into a file if there is one; its page shows the recipe."""
    from fogline.cli.app import app

    click.echo(f"$ {step}", err=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed) if step.json is not None else contextlib.nullcontext():
        by = {"name": recipe.name, "recipe": recipe.read_text(encoding="utf-8")}
        app.main(args=list(step.words), prog_name="fogline", standalone_mode=False, obj=by)
    if step.json is not None:
        path = step.json
        write(lambda: path.write_text(printed.getvalue(), encoding="utf-8"), "json")
        click.echo(f"json: {path}")


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

[[reading]]
kind = "card"

[[reading]]
kind = "ask"
questions = {questions}
"""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  fogline init
  fogline init --file visits.csv --columns age,stay --bounds age,0:60 --epsilon 1 --ledger budget.fogline
""",
)
@click.option("--file", "source", metavar="FILE", help="The table.")
@click.option("--columns", metavar="A,B", help="Up to three columns.")
@click.option("--bounds", metavar="LO:HI,LO:HI", help="Public range of each column, or its name.")
@click.option("--epsilon", type=float, help="Privacy budget of the release.")
@click.option("--unit", metavar="COLUMN", help="Column that says whose record a row is; none for rows.")
@click.option("--max-contributions", type=click.IntRange(min=1), help="Most records of one unit.")
@click.option("--ledger", metavar="FILE", help="Ledger that pays; none for none.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("fogline.toml"), show_default=True)
def init(source: str | None, out: Path, **given: Any) -> None:
    """Write a recipe, by asking for what is not given as an option. No record is read."""
    if out.exists():
        raise click.BadParameter(f"{str(out)!r} is there already", param_hint="--out")
    writable(out, "--out")
    need("duckdb")
    file = _asked(source, "Table (a CSV or Parquet file)", "--file")
    columns, bounds = _asked_columns(file, given)
    epsilon = _asked(given["epsilon"], "Privacy budget epsilon", "--epsilon", default="1.0")
    unit = _asked(
        given["unit"], "Column that says whose record a row is (none: every row is one)", "--unit", default="none"
    )
    most = given["max_contributions"] or 1
    ledger = _asked(given["ledger"], "Ledger that pays (none: no ledger)", "--ledger", default="none")
    try:
        number = float(epsilon)
    except ValueError:
        raise click.BadParameter(f"expected a number, got {epsilon!r}", param_hint="--epsilon") from None
    from fogline.cli.release import checked_numbers

    checked_numbers({"epsilon": number})
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
        questions=_toml(["count", *(f'median "{column}"' for column in columns)]),
    )
    Recipe(tomllib.loads(text), out.parent)
    write(lambda: out.write_text(text, encoding="utf-8"), "--out")
    click.echo(f"recipe: {out}")


def _asked(value: object, words: str, option: str, *, default: str | None = None) -> str:
    """Return what was given, or ask; where nobody can be asked, the default or an error."""
    if value is not None:
        return str(value)
    if not _is_person():
        if default is not None:
            return default
        raise click.BadParameter("is needed where nobody can be asked", param_hint=option)
    answer: str = click.prompt(words, default=default)
    return answer


def _is_person() -> bool:
    """Whether somebody sits at the terminal."""
    return sys.stdin.isatty()


def _asked_columns(file: str, given: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    """Columns that the schema has, and a range for each."""
    from fogline.sources.registry import table

    try:
        known = list(table(file).columns or ())
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    listed = _asked(given["columns"], f"Up to three columns of {', '.join(known)}", "--columns")
    columns = parse.columns_option(listed) or []
    for column in columns:
        if column not in known:
            near = difflib.get_close_matches(column, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise click.BadParameter(f"there is no column {column!r}; {hint}", param_hint="--columns")
    if len(columns) > 3:
        raise click.BadParameter("a density has up to three; write several releases", param_hint="--columns")
    text = given["bounds"]
    if text is None:
        asked = [_asked(None, f"Public range of {column}, low:high or a name", "--bounds") for column in columns]
        text = ",".join(asked)
    pairs = parse.bounds_option(text)
    if len(pairs) != len(columns):
        raise click.BadParameter(f"expected {len(columns)} ranges, got {len(pairs)}", param_hint="--bounds")
    from fogline import units

    named = [part.strip() for part in text.split(",")]
    return columns, [name if name in units.names() else list(pair) for name, pair in zip(named, pairs, strict=True)]


def _toml(value: object) -> str:
    """A text, a list of texts or a pair of numbers in TOML: basic strings are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
