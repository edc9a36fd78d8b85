"""``fogline demo``: three releases of a small public table, a page about each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fogline.cli.common import Command, Phase, need, write

__all__ = ["demo"]


@click.command(cls=Command, epilog="\b\nExample:\n  fogline demo --out /tmp")
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
    from fogline.cli.show import show_findings
    from fogline.datasets.tables import load_faithful
    from fogline.estimators import PrivateModalRegression, PrivateModeClustering, PrivateModes
    from fogline.report import find, render_report

    write(lambda: out.mkdir(parents=True, exist_ok=True), "--out")
    table = load_faithful()
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "steps": table.steps}
    x_bounds, y_bounds = table.bounds
    command = str(ctx.meta["fogline.command"])
    parts: list[tuple[str, str, Any]] = [
        (
            "fogline-demo.html",
            "Old Faithful: how long it erupts, how long one waits",
            PrivateModes(bounds=table.bounds, **budget),
        ),
        (
            "fogline-demo-clusters.html",
            "Old Faithful: kinds of eruption",
            PrivateModeClustering(bounds=table.bounds, **budget),
        ),
        (
            "fogline-demo-regression.html",
            "Old Faithful: the wait after an eruption",
            PrivateModalRegression(x_bounds=[x_bounds], y_bounds=y_bounds, **budget),
        ),
    ]
    for name, title, estimator in parts:
        with Phase("releasing the density of the table once, reading it"):
            findings = find(estimator.fit(table.X), table.columns)
        show_findings(findings)
        page = render_report(findings, title=title, command=command)
        write(lambda name=name, page=page: (out / name).write_text(page, encoding="utf-8"), "--out")  # type: ignore[misc]
        click.echo(f"report: {out / name}")
