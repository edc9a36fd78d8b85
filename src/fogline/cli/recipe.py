"""``fogline run``: a recipe file that says what is released and what is read from it; ``fogline init`` writes one.

A recipe is TOML. It holds a source, perhaps a ledger; releases, profiles and strata by name; and readings of the
releases. Each of them is one command of fogline, which ``fogline run --dry-run`` prints. Everything that can be refused
is refused before the first record is read. What touches records is not made again where its file is there already, so
that running a recipe twice spends once. A note beside the file (``visits.fog.made``) says which question it answers:
the source, its unit, the columns, the terms; where the recipe asks another one, it is refused. A file without a note
is compared with the recipe as far as it tells.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shlex
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline._validation import nearest, unknown_key
from fogline.cli import parse
from fogline.cli.common import Command, writable, write

if TYPE_CHECKING:
    from fogline.accounting.guarantee import Guarantee

__all__ = ["Recipe", "Step", "run"]

READING_OPTIONS = ("delimiter", "decimal", "thousands", "encoding", "null", "header")
SOURCE_KEYS = ("file", "query", "unit", "max_contributions", *READING_OPTIONS)
LEDGER_KEYS = ("path", "dataset", "analyst", "high_water", "afresh")
RELEASE_KEYS = ("columns", "bounds", "steps", "epsilon", "delta", "neighbours", "features", "expect_records", "out")

PROFILE_KEYS = (
    *("columns", "bounds", "numeric", "steps", "date", "category", "pairs", "pairs_share", "epsilon", "delta"),
    *("neighbours", "expect_records", "report", "table", "out", "json"),
)
STRATA_KEYS = (
    *("by", "categories", "others", "columns", "bounds", "steps", "weights", "weight_bound", "epsilon", "delta"),
    *("neighbours", "expect_records", "level", "report", "picture", "save", "json"),
)

READINGS: dict[str, tuple[str, ...]] = {
    "ask": ("questions", "target"),
    "card": ("report", "given"),
    "clusters": ("n_clusters", "level", "report"),
    "fit": ("column", "family", "parameter_bounds", "confidence", "report"),
    "mixture": ("components", "sigma_min", "report"),
    "modes": ("n_modes", "level", "bandwidth", "report"),
    "notebook": ("out", "title"),
    "quantiles": ("column", "q", "target"),
    "regress": ("x", "y", "level", "report"),
    "sample": ("draws", "out"),
}
"""What can be read of a release, and the options of each; all of them take ``json``."""

WITHOUT_JSON = ("notebook",)
"""Readings that print no document."""

FILES = ("out", "report", "json", "table", "picture", "save")
"""Keys whose values are files that are written."""

NOT_ASKED = (*FILES, "expect_records", "level")
"""Keys that do not change what is asked of the records."""


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
        Of what touches records, the file that it makes.
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
        _known(content, ("source", "ledger", "release", "profile", "strata", "reading"), "the recipe")
        self.folder = folder
        self.source = _table(content, "source")
        self.ledger = _table(content, "ledger")
        self.releases, self.profiles, self.strata = (
            {name: dict(_mapping(part, f"{kind}.{name}")) for name, part in _table(content, kind).items()}
            for kind in ("release", "profile", "strata")
        )
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
        if not (self.releases or self.profiles or self.strata):
            raise click.ClickException("the recipe has no release: write a table [release.NAME]")
        self._check_releases()
        for part in self.readings:
            self._check_reading(part)

    def _check_releases(self) -> None:
        """Refuse what touches records where something is missing."""
        for kind, parts, known, needed in (
            ("profile", self.profiles, PROFILE_KEYS, ("epsilon",)),
            ("strata", self.strata, STRATA_KEYS, ("by", "categories", "bounds", "epsilon", "delta")),
        ):
            for name, part in parts.items():
                _known(part, known, f"[{kind}.{name}]")
                for key in needed:
                    if key not in part:
                        raise click.ClickException(f"[{kind}.{name}] needs {key}")
        for name, part in self.strata.items():
            bounds, columns = part["bounds"], part.get("columns", [])
            missing = [column for column in columns if isinstance(bounds, Mapping) and column not in bounds]
            if missing:
                raise click.ClickException(f"[strata.{name}]: bounds has no range of {missing[0]!r}")
        if self.strata and "unit" in self.source:
            raise click.ClickException("[strata]: its records are rows; a source with a unit has no strata yet")
        for name, part in self.releases.items():
            _known(part, RELEASE_KEYS, f"[release.{name}]")
            for key in ("bounds", "epsilon"):
                if key not in part:
                    raise click.ClickException(f"[release.{name}] needs {key}")
            columns = part.get("columns", [])
            if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
                raise click.ClickException(f"[release.{name}]: columns must be a list of names; others go to a release")

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
            raise click.ClickException(f"[[reading]]: there is no kind {kind!r}; {nearest(str(kind), READINGS)}")
        plain = () if kind in WITHOUT_JSON else ("json",)
        _known(part, ("kind", "release", *plain, *READINGS[str(kind)]), f"[[reading]] of kind {kind!r}")
        name = part.get("release")
        if not self.releases:
            raise click.ClickException(f"[[reading]] of kind {kind!r} needs a release: write a table [release.NAME]")
        if name is None and len(self.releases) > 1:
            raise click.ClickException(f"[[reading]] of kind {kind!r} needs release: one of {', '.join(self.releases)}")
        if name is not None and name not in self.releases:
            raise click.ClickException(
                f"[[reading]]: there is no release {name!r}; {nearest(str(name), self.releases)}"
            )
        for asking, key in (("ask", "questions"), ("notebook", "out")):
            if kind == asking and not part.get(key):
                raise click.ClickException(f"[[reading]] of kind {asking!r} needs {key}")

    # -- commands --------------------------------------------------------------------------------------------

    def out(self, name: str) -> Path:
        """File of a release."""
        return self.place(self.releases[name].get("out", f"{name}.fog"))

    def place(self, value: object) -> Path:
        """File of the recipe, relative to its folder."""
        return self.folder / str(value)

    def steps(self) -> list[Step]:
        """All commands, those that touch records first."""
        return [*(step for _, step, _ in self.spending()), *map(self._reading, self.readings)]

    def spending(self) -> list[tuple[Callable[[], None], Step, dict[str, Any]]]:
        """Commands that touch records, each with a check of the file that is there already, and with its question."""
        found: list[tuple[Callable[[], None], Step, dict[str, Any]]] = []
        for name, part in self.releases.items():
            found.append((partial(self.agrees, name), self._release(name), self.question("release", part)))
        for name, part in self.profiles.items():
            found.append((partial(self.profile_agrees, name), self._profile(name), self.question("profile", part)))
        for name, part in self.strata.items():
            found.append((partial(self.strata_agree, name), self._strata(name), self.question("strata", part)))
        return found

    def outputs(self) -> list[tuple[str, Path]]:
        """Files that are written, with the keys that name them."""
        found = [("out", self.out(name)) for name in self.releases]
        found += [("out", self.profile_folder(name)) for name in self.profiles]
        found += [("save", self.strata_file(name)) for name in self.strata]
        others = [{**part, "out": None} for part in self.profiles.values()]
        others += [{**part, "save": None} for part in self.strata.values()]
        for part in (*others, *self.readings):
            found += [(key, self.place(part[key])) for key in FILES if part.get(key) is not None]
        return found

    def profile_folder(self, name: str) -> Path:
        """Folder of a profile."""
        return self.place(self.profiles[name].get("out", f"{name}-profile"))

    def strata_file(self, name: str) -> Path:
        """File of strata."""
        return self.place(self.strata[name].get("save", f"{name}-strata.npz"))

    def _from_source(self, command: str, part: Mapping[str, Any], without: Sequence[str]) -> list[str]:
        """Words of a command that touches records: the source, its own options, those of the ledger."""
        file = str(self.source["file"])
        words = [command, file if "://" in file or Path(file).is_absolute() else str(self.place(file))]
        for key, value in part.items():
            if key not in without:
                words += _option(key, self.place(value) if key in FILES else value)
        for key, value in self.source.items():
            words += [] if key == "file" else _option(key, value)
        for key, value in self.ledger.items():
            is_place = key in ("path", "high_water")
            words += _option("ledger" if key == "path" else key, self.place(value) if is_place else value)
        return words

    def _release(self, name: str) -> Step:
        out = self.out(name)
        return Step((*self._from_source("release", self.releases[name], ["out"]), "--out", str(out)), out=out)

    def _profile(self, name: str) -> Step:
        part, folder = self.profiles[name], self.profile_folder(name)
        words = self._from_source("profile", part, ["out", "json"])
        target = part.get("json")
        document = None if target is None else self.place(target)
        return Step((*words, "--out", str(folder), *(["--json"] if target else [])), document, folder / "profile.npz")

    def _strata(self, name: str) -> Step:
        part, file = dict(self.strata[name]), self.strata_file(name)
        if isinstance(part["bounds"], Mapping):  # the command takes them in the order of the columns
            part["columns"] = part.get("columns", list(part["bounds"]))
            part["bounds"] = [part["bounds"][column] for column in part["columns"]]
        words = self._from_source("strata", part, ["save", "json"])
        target = part.get("json")
        document = None if target is None else self.place(target)
        return Step((*words, "--save", str(file), *(["--json"] if target else [])), document, file)

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

    def question(self, command: str, part: Mapping[str, Any]) -> dict[str, Any]:
        """What is asked of which records, as a note beside the answer keeps it."""
        asked = {key: value for key, value in part.items() if key not in NOT_ASKED}
        source = {**self.source, "file": parse.masked(str(self.source["file"]))}  # an address may hold a password
        found: dict[str, Any] = json.loads(json.dumps({"command": command, **source, **asked}, default=str))
        return found

    def agrees(self, name: str) -> None:
        """Refuse a file of another release than the recipe's, which would be read in its place."""
        from fogline.cli.stored import open_release

        density, part, out = open_release(self.out(name)), self.releases[name], self.out(name)
        self._same_terms(f"[release.{name}]", out, density.guarantee, part)
        bounds = part["bounds"]
        columns = part.get("columns", list(bounds) if isinstance(bounds, dict) else None)
        if columns is not None and density.columns != tuple(columns):
            raise click.ClickException(f"[release.{name}]: {out} holds the columns {density.columns}: delete it first")
        from fogline import units

        if [tuple(map(float, pair)) for pair in units.ranges(bounds, columns)] != list(density.spec.bounds):
            raise click.ClickException(f"[release.{name}]: {out} was released with other bounds: delete it first")
        _same_question(f"[release.{name}]", out, self.question("release", part))

    def _same_terms(self, where: str, file: Path, found: Guarantee, part: Mapping[str, Any]) -> None:
        """Refuse a file whose guarantee has other terms than the recipe."""
        wanted: dict[str, Any] = {
            "epsilon": float(part["epsilon"]),
            "neighbours": part.get("neighbours", "add-remove"),
            "max_contributions": int(self.source.get("max_contributions", 1)),
        }
        for name, value in wanted.items():
            if getattr(found, name) != value:
                shown = f"{getattr(found, name):g}" if name == "epsilon" else getattr(found, name)
                raise click.ClickException(f"{where}: {file} was released with {name} {shown}: delete it first")
        from fogline.accounting.guarantee import ROWS

        if (found.unit in ROWS) != ("unit" not in self.source):
            raise click.ClickException(f"{where}: {file} was released for the unit {found.unit!r}: delete it first")

    def profile_agrees(self, name: str) -> None:
        """Refuse the folder of another profile."""
        from fogline.density.profile import Profile

        part, file = self.profiles[name], self.profile_folder(name) / "profile.npz"
        try:
            found = Profile.load(file)
        except (ValueError, OSError, KeyError) as error:
            raise click.ClickException(f"[profile.{name}]: {file}: {error}") from None
        columns = part.get("columns")
        if columns is not None and list(found) != list(columns):
            raise click.ClickException(f"[profile.{name}]: {file} holds the columns {list(found)}: delete it first")
        self._same_terms(f"[profile.{name}]", file, found.guarantee, part)
        _same_question(f"[profile.{name}]", file, self.question("profile", part))

    def strata_agree(self, name: str) -> None:
        """Refuse the file of other strata."""
        from fogline.density.strata import Strata

        part, file = self.strata[name], self.strata_file(name)
        try:
            found = Strata.load(file)
        except (ValueError, OSError, KeyError) as error:
            raise click.ClickException(f"[strata.{name}]: {file}: {error}") from None
        missing = [label for label in map(str, part["categories"]) if label not in found.names]
        if missing:
            raise click.ClickException(f"[strata.{name}]: {file} holds no {missing[0]!r}: delete it first")
        self._same_terms(f"[strata.{name}]", file, found.guarantee, part)
        _same_question(f"[strata.{name}]", file, self.question("strata", part))


# -- what a file answers -------------------------------------------------------------------------------------


def _note(file: Path) -> Path:
    return file.with_name(f"{file.name}.made")


def _write_note(file: Path, question: Mapping[str, Any]) -> None:
    """Keep which question a file answers, and by its hash that it is this file."""
    kept = {"format": "fogline-made-1", "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "question": question}
    _note(file).write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _same_question(where: str, file: Path, wanted: Mapping[str, Any]) -> None:
    """Refuse a file whose note tells of another question; one without a note tells nothing here."""
    note = _note(file)
    if not note.exists():
        return
    try:
        kept = json.loads(note.read_text(encoding="utf-8"))
        found, digest = dict(kept["question"]), str(kept["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        raise click.ClickException(f"{where}: {note} is no note of fogline run: delete it and {file} first") from None
    if digest != hashlib.sha256(file.read_bytes()).hexdigest():
        raise click.ClickException(f"{where}: {file} is not the file that {note.name} tells of: delete both first")
    other = [key for key in (*found, *wanted) if found.get(key) != wanted.get(key)]
    if other:
        raise click.ClickException(f"{where}: {file} was released with another {other[0]!r}: delete it first")


def _known(content: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """Refuse a key that means nothing, with the nearest one that does."""
    if wrong := unknown_key(content, keys, where):
        raise click.ClickException(wrong)


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
    if key in ("category", "date"):
        text = _declared(value, "/" if key == "category" else ":")
    elif key == "pairs":
        text = value if isinstance(value, str) else ",".join(_pair(part) for part in value)
    else:
        text = _text(value, quote=key in ("columns", "categories", "numeric", "null", "header"))
    return [f"{option}={text}"] if text.startswith("-") else [option, text]


def _declared(value: Any, between: str) -> str:
    """Columns with what is declared of each, or names alone.

    Examples
    --------
    >>> _declared({"sex": ["f", "m"], "ward": "found"}, "/"), _declared(["day"], ":")
    ('sex=f/m,ward', 'day')
    """
    if not isinstance(value, Mapping):
        return ",".join(_plain_label(part, between) for part in (value if isinstance(value, list) else [value]))
    parts = []
    for name, listed in value.items():
        _plain_label(name, between)
        words = between.join(_plain_label(label, between) for label in listed) if isinstance(listed, list) else ""
        parts.append(f"{name}={words}" if words else str(name))
    return ",".join(parts)


def _plain_label(label: Any, between: str) -> str:
    """A label as an option takes it; refused where it would be read as several, or as something else."""
    text = str(label)
    if any(sign in text for sign in (*',;="', between)) or text != text.strip() or not text:
        signs = f', ; = " {between}'
        raise click.ClickException(f"{text!r} cannot be a label in a recipe: it has one of {signs} or spaces around it")
    return text


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
    """A name as an option takes it: in quotes where it has signs that part names, which quotes cannot be."""
    if '"' in name:
        raise click.ClickException(f"{name!r} cannot be a name in a recipe: it has a quote")
    return f'"{name}"' if any(sign in name for sign in ",;=") else name


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
    for agrees, step, question in found.spending():
        if step.out is not None and step.out.exists() and not found.ledger:
            agrees()
            click.echo(f"{step.words[0]}: {step.out} is there, and is read as it is")
        else:
            _run(step, recipe)
            if step.out is not None:
                _write_note(step.out, question)
    for step in found.steps()[len(found.spending()) :]:
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
