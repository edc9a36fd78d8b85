"""``fogline studio`` serves the studio on this machine; ``fogline explore`` writes a page to explore one release."""

from __future__ import annotations

from errno import EADDRINUSE
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli.common import Command, need, refusals, writable, write
from fogline.cli.stored import open_release

if TYPE_CHECKING:
    from fogline.studio.config import StudioConfig
    from fogline.studio.security import Role

__all__ = ["explore", "studio"]

STUDIO = """\b
Examples:
  fogline studio data/ --budget 3
  fogline studio studio.toml --port 9000

\b
DATA is a folder, each of whose CSV and Parquet files is a data set, or a configuration in TOML:
  [studio]
  title = "St Anna Hospital"
  [ledger]
  path = "budget.fogline"
  [dataset.visits]
  file = "visits.csv"
  unit = "patient"
  max_contributions = 3
  ranges = { age = "age", stay = [0, 60] }
"""

FIELDS = ("high_water", "host", "port", "https", "ledger", "store")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command(cls=Command, epilog=STUDIO)
@click.argument("data", type=click.Path(path_type=Path, exists=True))
@click.option("--store", type=click.Path(path_type=Path, file_okay=False), help="Folder for releases and proposals.")
@click.option("--ledger", type=click.Path(path_type=Path, dir_okay=False), help="Ledger that pays; else in the store.")
@click.option("--high-water", type=click.Path(path_type=Path), help="Folder of the ledger's high-water mark.")
@click.option("--budget", type=float, metavar="EPSILON", help="Cap per data set, if the ledger has to be created.")
@click.option("--host", help="Address to listen at; by default this machine alone.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port to listen on; 8765 by default.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME:PORT", help="Name by which browsers reach it.")
@click.option("--https", is_flag=True, default=None, help="A server in front of it speaks HTTPS.")
def studio(data: Path, **options: Any) -> None:
    """Serve a local page to release from data sets and to explore what was released.

    It prints one link for custodians, who may spend, and one for analysts, who may explore and propose.
    """
    need_studio()
    from fogline.studio.app import serve
    from fogline.studio.config import ConfigError

    try:
        config = studio_config(data, options)
        if config.host not in LOOPBACK and not config.hosts:
            raise ConfigError("--host opens the studio to others: say by --allow-host under which name they reach it")
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    with refusals():
        try:
            serve(config, lambda links: _announce(config, links))
        except ConfigError as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            hint = f": port {config.port} is in use, choose another by --port" if error.errno == EADDRINUSE else ""
            raise click.ClickException(f"the studio cannot be started{hint or f': {error.strerror}'}") from None


def studio_config(data: Path, options: dict[str, Any]) -> StudioConfig:
    """Return the configuration that DATA and the options say.

    Parameters
    ----------
    data : Path
        A folder, or a file in TOML.
    options : dict
        Of the command.
    """
    from fogline._validation import check_epsilon
    from fogline.studio.config import ConfigError, folder_config, load_config

    budget, hosts = options.get("budget"), options.get("hosts")
    if budget is not None:
        try:
            check_epsilon(budget)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"--budget: {error}") from None
    given: dict[str, Any] = {
        name: options.get(name) for name in ("high_water", "host", "port", "https", "ledger", "store")
    }
    given |= {"cap": None if budget is None else (float(budget), 0.0), "hosts": tuple(hosts) if hosts else None}
    if data.is_dir():
        return folder_config(data, **{**given, "store": given["store"] or Path("fogline-studio")})
    return load_config(data, **given)


def need_studio() -> None:
    """Refuse to go on without the libraries of the studio."""
    from importlib.util import find_spec

    missing = [name for name in ("starlette", "uvicorn", "jinja2", "duckdb") if find_spec(name) is None]
    if missing:
        raise click.ClickException(f"the studio needs {', '.join(missing)}: pip install 'fogline[cli,studio]'")


def _announce(config: StudioConfig, links: dict[Role, str]) -> None:
    click.echo(f"fogline studio: {len(config.datasets)} data set{'' if len(config.datasets) == 1 else 's'}")
    for role, link in links.items():
        click.echo(f"  {role + ':':<11} {link}")
    click.echo("These links are printed once. Stop the studio with Ctrl-C.")


@click.command(cls=Command, epilog="\b\nExample:\n  fogline explore visits.fog --out visits.html")
@click.argument("file", metavar="RELEASE")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The page (.html).")
@click.option("--title", help="Title of the page.")
def explore(file: str, out: Path, title: str | None) -> None:
    """Write one page on which anybody can explore a release in a browser, without fogline and offline; free."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter("expected a name that ends in .html", param_hint="--out")
    writable(out, "--out", [Path(file)])
    need("jinja2")
    density = open_release(file)
    from fogline.report.interactive import write_interactive

    try:
        write(lambda: write_interactive(density, out, title=title), "--out")
    except ValueError as error:
        raise click.BadParameter(str(error).removeprefix("path: "), param_hint="RELEASE") from None
    click.echo(f"page: {out} ({out.stat().st_size / 1000:.0f} kB)")
