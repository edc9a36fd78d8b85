"""The commands: what each takes, what it prints, how it ends.

Exit codes: 0 done (also when nothing stands above the fog), 1 something is missing on this machine, 2 the command or
the schema of the file is wrong, 3 the records could not be read, 4 the ledger refused. All that can be refused is
refused before the records are touched; after that there is one constant message, since any other might quote them.

A command's module is imported when the command is named. None of them imports a numerical library at its top: words
and paths are checked first.
"""

from __future__ import annotations

import click

import fogline
from fogline.cli.common import SETTINGS, Commands

__all__ = ["COMMANDS", "app"]

COMMANDS = {
    "ask": "fogline.cli.density_commands:ask",
    "audit": "fogline.cli.audit:audit",
    "bounds": "fogline.cli.data_commands:bounds",
    "card": "fogline.cli.density_commands:card",
    "check": "fogline.cli.data_commands:check",
    "clusters": "fogline.cli.fit_commands:clusters",
    "compare": "fogline.cli.density_commands:compare",
    "continual": "fogline.cli.continual:continual",
    "demo": "fogline.cli.demo:demo",
    "docs": "fogline.cli.docs:docs",
    "explore": "fogline.cli.studio:explore",
    "fit": "fogline.cli.fit_commands:fit",
    "init": "fogline.cli.init:init",
    "ledger": "fogline.cli.ledger:ledger",
    "merge": "fogline.cli.federation:merge",
    "mixture": "fogline.cli.fit_commands:mixture",
    "modes": "fogline.cli.fit_commands:modes",
    "notebook": "fogline.cli.notebook:notebook",
    "plan": "fogline.cli.plan:plan",
    "profile": "fogline.cli.profile:profile",
    "quantiles": "fogline.cli.density_commands:quantiles",
    "regress": "fogline.cli.fit_commands:regress",
    "release": "fogline.cli.density_commands:release",
    "run": "fogline.cli.recipe:run",
    "sample": "fogline.cli.sample:sample",
    "sketch": "fogline.cli.federation:sketch",
    "sql": "fogline.cli.sql:sql",
    "strata": "fogline.cli.data_commands:strata",
    "studio": "fogline.cli.studio:studio",
    "units": "fogline.cli.data_commands:units",
}
"""Module and attribute of each command."""


@click.group(
    cls=Commands,
    places=COMMANDS,
    context_settings=SETTINGS,
    epilog="\b\nStart with:\n  fogline demo\n  fogline release --help\n  fogline init",
)
@click.version_option(fogline.__version__, prog_name="fogline")
def app() -> None:
    """Publish the shape of sensitive data under differential privacy."""
