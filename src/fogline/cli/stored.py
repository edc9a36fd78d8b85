"""Commands on a release that was made before: what opens a ``.fog``, and which options then mean nothing.

``fogline modes visits.csv ...`` releases and reads; ``fogline modes visits.fog`` reads. The same command does both:
where FILE is a release, options of the budget and of the source are not asked for, and refused where they are given.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, need

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = ["ENDINGS", "ReadingCommand", "is_release", "open_release", "read_release", "refuse_others"]

ENDINGS = (".fog", ".npz")
"""How names of released densities end: this version's, and that of earlier ones."""


def is_release(file: object) -> bool:
    """Whether a FILE is a release and no table.

    Examples
    --------
    >>> is_release("visits.fog"), is_release("visits.csv")
    (True, False)
    """
    return isinstance(file, str | Path) and str(file).lower().endswith(ENDINGS)


class ReadingCommand(Command):
    """A command that also reads a release: what a release knows is then not required."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, with FILE looked at first."""
        try:
            given = self.make_parser(ctx).parse_args(list(args))[0].get("file")
        except click.UsageError:  # said below, where options may still be asked for
            given = None
        ctx.meta["fogline.is_release"] = is_release(given)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; only FILE is required where it is a release."""
        params = super().get_params(ctx)
        if not ctx.meta.get("fogline.is_release"):
            return params
        eased = []
        for param in params:
            if param.required and param.name != "file":
                # a copy: the command itself serves tables as well
                param = copy.copy(param)
                param.required = False
            eased.append(param)
        return eased


def open_release(file: str | Path) -> PrivateDensity:
    """Open a release; what is wrong with it is an error of FILE."""
    path = Path(file)
    if not path.is_file():
        raise parse.refused(FileNotFoundError(f"path: there is no file {str(path)!r}"))
    from fogline.density.private_density import PrivateDensity

    try:
        return PrivateDensity.load(path)
    except (ValueError, OSError) as error:
        raise parse.refused(error) from None


def refuse_others(ctx: click.Context, allowed: Iterable[str]) -> None:
    """Refuse options that mean nothing for a release: a wish without effect would pass for one that was granted."""
    known = {*allowed, "file", "as_json", "report", "save", "expect_records"}
    for param in ctx.command.params:
        name = str(param.name)
        if name not in known and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.BadParameter(
                "FILE is a release: its columns, bounds and budget are fixed, and reading it is free",
                ctx=ctx,
                param=param,
            )


def read_release(
    ctx: click.Context,
    options: dict[str, Any],
    make: Callable[[PrivateDensity], tuple[Any, dict[str, Any]]],
    *,
    allowed: Iterable[str] = (),
) -> None:
    """Read a release by an estimator and publish what is found, as after a fit.

    Parameters
    ----------
    ctx : click.Context
    options : dict
        Of the command.
    make : callable
        Takes the density, and returns an estimator that is not fitted and what its ``read`` takes besides.
    allowed : iterable of str
        Options of the command that a reading knows.
    """
    from fogline.cli.release import checked_numbers, checked_outputs, publish

    refuse_others(ctx, allowed)
    need(*([] if options["as_json"] else ["rich"]), *(["jinja2"] if options["report"] else []))
    checked_outputs(options, "report", "save")
    checked_numbers({name: value for name, value in options.items() if name in allowed})
    density = open_release(options["file"])
    try:
        estimator, more = make(density)
        if not hasattr(estimator, "read"):
            raise ValueError(f"path: {type(estimator).__name__} cannot be read from a release")
        estimator.read(density, **more)
    except (ValueError, TypeError) as error:
        raise parse.refused(error) from None
    columns = read_columns(estimator, density)
    try:
        publish(estimator, options, None, command=str(ctx.meta["fogline.command"]), columns=columns)
    except (ValueError, TypeError) as error:
        raise click.ClickException(f"the release was read, and what was found cannot be shown: {error}") from None


def read_columns(estimator: Any, density: PrivateDensity) -> tuple[str, ...] | None:
    """Names of the columns in the order in which an estimator's page has them: those of x, then that of y."""
    reading = getattr(estimator, "reading_", None)
    if reading is not None:
        return tuple(reading.columns)
    branches = getattr(estimator, "branches_", None)
    response = getattr(branches, "response", None)
    if density.columns is None or response is None:
        return density.columns
    others = [name for k, name in enumerate(density.columns) if k != response]
    return (*others, density.columns[response])
