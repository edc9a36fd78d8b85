"""What the commands share: how they end, what they need, where they write, how they open a ledger.

Exit codes: 0 done, 1 something is missing on this machine or an audit failed, 2 wrong usage or schema, 3 the records
could not be read or a release failed, 4 the ledger refused.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from rich.console import Console

    from fogline.ledger import Ledger

__all__ = [
    "SETTINGS",
    "Command",
    "Commands",
    "Phase",
    "Refused",
    "Unreadable",
    "console_for_people",
    "drawable",
    "need",
    "opened",
    "print_json",
    "refusals",
    "writable",
    "write",
]

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

WIDTH = 110
"""Columns of output that is not a terminal."""


class Command(click.Command):
    """A command that remembers the words it was called with, but for addresses of servers."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and keep the words for the record."""
        # Quoted, so that the line on the page can be typed again; addresses may hold passwords.
        words = [shlex.quote(word) if parse.masked(word) == word else parse.masked(word) for word in args]
        ctx.meta["fogline.command"] = " ".join([ctx.command_path, *words])
        return super().parse_args(ctx, args)


class Commands(click.Group):
    """Commands that are imported when they are named, and whose errors repeat no address of a server.

    Parameters
    ----------
    places : mapping of str to str
        ``"module:attribute"`` of each command. Entry points of the group ``fogline.commands`` add those of other
        installed distributions.
    **settings
        Of :class:`click.Group`.
    """

    def __init__(self, *, places: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self._places = dict(places or {})

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            # an address may hold a password, and click repeats what it does not understand
            error.message = parse.masked(error.message)  # type: ignore[misc]  # the same error, but for its words
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, and those that other installed distributions bring."""
        return sorted({*super().list_commands(ctx), *self._places, *self._brought()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; it is imported now."""
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in self._places:
            module, _, attribute = self._places[cmd_name].partition(":")
            own: click.Command = getattr(importlib.import_module(module), attribute)
            return own
        if found is None and cmd_name in (brought := self._brought()):
            loaded: click.Command = brought[cmd_name].load()
            return loaded
        if found is None and self._places and cmd_name == "reproduce":
            raise click.UsageError(
                "reproduce comes with the distribution fogline-research, which is not installed", ctx
            )
        return found

    def _brought(self) -> dict[str, EntryPoint]:
        """Commands of other distributions; they are the whole program's, not those of a command's own commands."""
        return _entry_points() if self._places else {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the whole first sentence of each, over as many lines as it takes."""
        names = self.list_commands(ctx)
        commands = [(name, self.get_command(ctx, name)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl([(name, found.get_short_help_str(400)) for name, found in commands if found])


@cache
def _entry_points() -> dict[str, EntryPoint]:
    """Commands of other distributions, by the entry points that they declare."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group="fogline.commands")}


class Unreadable(click.ClickException):
    """The records could not be read, or a release failed; the message is constant."""

    exit_code = 3


class Refused(click.ClickException):
    """The ledger refused; nothing was charged."""

    exit_code = 4


def need(*libraries: str) -> None:
    """Refuse to go on without some libraries."""
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        raise click.ClickException(f"this command needs {', '.join(missing)}: pip install 'fogline[cli]'")


def writable(path: Path | None, option: str, taken: Iterable[Path] = ()) -> None:
    """Refuse a place that cannot be written, or that is taken, before anything is spent.

    Parameters
    ----------
    path : Path or None
        Where something is to be written.
    option : str
        That names the place.
    taken : paths
        What the command reads or writes besides: it must not be overwritten.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}", param_hint=option)
    # Asked before the budget is spent: a release that cannot be written would be lost.
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise click.BadParameter(f"{str(path)!r} cannot be written", param_hint=option)
    # resolved: two names may be one file
    if path.resolve() in {other.resolve() for other in taken}:
        raise click.BadParameter(
            f"{str(path)!r} has another part in this command, and would be overwritten", param_hint=option
        )


def drawable(path: Path | None, option: str, endings: tuple[str, ...]) -> None:
    """Refuse the name of a picture of a kind that is not drawn, before anything is spent."""
    if path is not None and path.suffix.lower() not in endings:
        *first, last = endings
        raise click.BadParameter(f"expected a name that ends in {', '.join(first)} or {last}", param_hint=option)


def write(writer: Callable[[], object], option: str) -> None:
    """Write, and say which option could not be served."""
    try:
        writer()
    except OSError as error:
        raise click.ClickException(f"{option}: cannot write: {error.strerror}") from None


def console_for_people() -> Console:
    """Return a console that is wide enough where it is no terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=WIDTH)


def print_json(content: dict[str, Any]) -> None:
    """Print one document."""
    click.echo(json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False))


_HINTS = {
    "budget": "fogline ledger show tells what is left",
    "currency": "fogline ledger create --integral sets a cap for draws; --currency zcdp pays for them otherwise",
}
"""What helps where a check of the ledger fails."""


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what a ledger says into exit codes and one line each."""
    try:
        from fogline.ledger import LedgerRefused, ReleaseFailed
    except ImportError as error:  # pragma: no cover - not on this system
        raise click.ClickException(str(error)) from None
    try:
        yield
    except LedgerRefused as error:
        hint = _HINTS.get(error.check)
        words = " ".join(str(error).split()).replace("use Ledger.adopt", "use fogline ledger adopt")
        raise Refused(words if hint is None else f"{words}; {hint}") from None
    except ReleaseFailed as error:
        raise Unreadable(str(error)) from None
    except (ValueError, TypeError) as error:
        raise parse.refused(error) from None


@contextmanager
def opened(path: Path, high_water: Path | None) -> Iterator[Ledger]:
    """Open a ledger for the time of a command."""
    with refusals():
        from fogline.ledger import Ledger

        ledger = Ledger.open(path, high_water=high_water)
    try:
        yield ledger
    finally:
        ledger.close()


class Phase:
    """A spinner on the terminal with the name of a phase: public words only, and no number of rows."""

    def __init__(self, name: str, *, quiet: bool = False) -> None:
        self._name = name
        self._status: Any = None
        # a spinner in a file or a pipe is noise
        self._quiet = quiet or not sys.stderr.isatty()

    def __enter__(self) -> None:
        if not self._quiet:
            from rich.console import Console

            self._status = Console(stderr=True).status(self._name)
            self._status.__enter__()

    def __exit__(self, *details: object) -> None:
        if self._status is not None:
            self._status.__exit__(None, None, None)
