"""The commands: what each takes, what it prints, how it ends.

Exit codes: 0 done (also when nothing stands above the fog), 1 something is missing on this machine, 2 the command or
the schema of the file is wrong, 3 the records could not be read, 4 the ledger refused. All that can be refused is
refused before the records are touched; after that there is one constant message, since any other might quote them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from fogline.cli.audit import audit
from fogline.cli.bounds import bounds, units
from fogline.cli.check import check
from fogline.cli.clusters import clusters
from fogline.cli.common import SETTINGS, Command, Commands, Phase, need, write
from fogline.cli.federation import merge, release, sketch
from fogline.cli.fit import fit
from fogline.cli.ledger import ledger
from fogline.cli.mixture import mixture
from fogline.cli.modes import modes
from fogline.cli.plan import plan
from fogline.cli.regress import regress
from fogline.cli.sample import sample
from fogline.cli.strata import strata

__all__ = ["app"]


@click.group(cls=Commands, context_settings=SETTINGS, epilog="\b\nStart with:\n  fogline demo\n  fogline modes --help")
@click.version_option(version("fogline"), prog_name="fogline")
def app() -> None:
    """Publish the shape of sensitive data under differential privacy."""


# -- fogline demo -----------------------------------------------------------------------------------------


@app.command(cls=Command, epilog="\b\nExample:\n  fogline demo --out /tmp")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    show_default=True,
    help="Folder for the pages.",
)
@click.pass_context
def demo(ctx: click.Context, out: Path) -> None:
    """Find modes, clusters and regression branches of the Old Faithful table (272 eruptions), a page about each.

    Three releases of epsilon = 1, delta = 1e-5 each.
    """
    need("rich", "jinja2")
    from fogline.cli import show
    from fogline.datasets.tables import load_faithful
    from fogline.estimators import PrivateModalRegression, PrivateModeClustering, PrivateModes
    from fogline.report import find, render_report

    write(lambda: out.mkdir(parents=True, exist_ok=True), "--out")
    table = load_faithful()
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "steps": table.steps}
    x_bounds, y_bounds = table.bounds
    command = str(ctx.meta["fogline.command"])
    parts: list[tuple[str, str, Any, Callable[[Any], None]]] = [
        (
            "fogline-demo.html",
            "Old Faithful: how long it erupts, how long one waits",
            PrivateModes(bounds=table.bounds, **budget),
            show.show_modes,
        ),
        (
            "fogline-demo-clusters.html",
            "Old Faithful: kinds of eruption",
            PrivateModeClustering(bounds=table.bounds, **budget),
            show.show_clusters,
        ),
        (
            "fogline-demo-regression.html",
            "Old Faithful: the wait after an eruption",
            PrivateModalRegression(x_bounds=[x_bounds], y_bounds=y_bounds, **budget),
            show.show_branches,
        ),
    ]
    for name, title, estimator, tell in parts:
        with Phase("releasing the density of the table once, reading it"):
            findings = find(estimator.fit(table.X), table.columns)
        tell(findings)
        page = render_report(findings, title=title, command=command)
        write(lambda name=name, page=page: (out / name).write_text(page, encoding="utf-8"), "--out")  # type: ignore[misc]
        click.echo(f"report: {out / name}")


for _command in (
    modes,
    clusters,
    regress,
    fit,
    mixture,
    sample,
    strata,
    bounds,
    units,
    check,
    sketch,
    merge,
    release,
    plan,
    ledger,
    audit,
):
    app.add_command(_command)
