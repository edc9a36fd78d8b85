"""``fogline sketch``, ``fogline merge``, and ``fogline release`` of what was merged: several sites, one release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, Phase, Unreadable, need, print_json, writable, write
from fogline.cli.options import (
    EXIT_CODES,
    FILE,
    need_reader,
    source_options,
    source_table,
    wide_bounds,
)
from fogline.cli.release import ask, checked_numbers, checked_outputs, checked_words, publish

if TYPE_CHECKING:
    from fogline.density.random_spec import Spec
    from fogline.federation import PairKeys, SiteSketch
    from fogline.sources.tables import Source

__all__ = ["merge", "release_sketch", "sketch"]

SECRET = "This file is as secret as the records: it is for the merging party alone, by a way that nobody else can read."

SKETCH_EXAMPLES = """\b
Examples:
  fogline sketch visits.csv --columns age,minutes --bounds age,0:240 --site north --pass 2026-spring
        --out north.sketch
  fogline sketch --new-keys keys --site north --sites north,south,west
  fogline sketch visits.csv --columns age --bounds age --site north --pass 2026-spring
        --keys keys --sites north,south,west --out north.sketch

\b
With --keys the counts are masked: whoever merges learns the sum over all sites and nothing of one site.
Each pair of sites shares a key file, made with --new-keys by the site whose name comes first.
"""


@click.command(cls=Command, epilog=SKETCH_EXAMPLES + FILE + EXIT_CODES)
@click.argument("file", required=False, metavar="FILE")
@click.option("--columns", metavar="A,B", help="Columns; by default all but the unit's.")
@click.option("--bounds", metavar="LO:HI,LO:HI", help="Public range of each column, or its name; as agreed by all.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none.")
@click.option("--bandwidth", default="auto", show_default=True, help="auto, or a fraction of each range.")
@click.option("--site", required=True, help="Name of this site.")
@click.option("--pass", "pass_name", metavar="NAME", help="Name of this pass over the data, as agreed by all.")
@source_options
@click.option("--max-contributions", type=int, default=1, show_default=True, help="Most records of a person here.")
@click.option("--unit-name", metavar="NAME", help="With --unit: its name at all sites, if their columns differ in it.")
@click.option("--keys", type=click.Path(path_type=Path, file_okay=False), help="Folder of pair keys: mask the counts.")
@click.option("--sites", metavar="A,B", help="With keys: all sites, this one among them.")
@click.option("--new-keys", type=click.Path(path_type=Path, file_okay=False), help="Make this site's key files here.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Where the secret sketch goes.")
def sketch(**options: Any) -> None:
    """Count the records of FILE into a secret sketch, to be merged with those of other sites.

    Nothing is released here: no noise is added, and no budget is spent.
    """
    if options["new_keys"] is not None:
        _new_keys(options)
        return
    for name, value in (("FILE", options["file"]), ("--bounds", options["bounds"]), ("--out", options["out"])):
        if value is None:
            raise click.BadParameter("is needed", param_hint=name)
    if options["pass_name"] is None:
        raise click.BadParameter("is needed: a name that all sites agree on", param_hint="--pass")
    if (options["keys"] is None) != (options["sites"] is None):
        raise click.BadParameter("--keys and --sites go together", param_hint="--sites")
    need_reader(options["file"])
    checked_outputs(options, "out")
    prepared = _prepared(options)
    with Phase("reading the records"):
        part = _counted(options, *prepared)
    write(lambda: part.save(options["out"]), "--out")
    click.echo(f"sketch: {options['out']} (site {options['site']}, pass {options['pass_name']})")
    click.echo(SECRET if part.masked is None else "The counts are masked: only the sum over all sites can be read.")


def _new_keys(options: dict[str, Any]) -> None:
    sites = parse.columns_option(options["sites"])
    if sites is None:
        raise click.BadParameter("is needed: all sites, this one among them", param_hint="--sites")
    from fogline.federation import new_keys

    try:
        made = new_keys(options["new_keys"], options["site"], sites)
    except (ValueError, TypeError) as error:
        raise parse.refused(error) from None
    except OSError as error:
        raise click.ClickException(f"--new-keys: cannot write: {error.strerror}") from None
    if not made and any(name > options["site"] for name in sites):
        click.echo(f"nothing to make: the keys of {options['site']} are in {options['new_keys']} already")
    for path in made:
        click.echo(f"{path}: bring it to {path.stem.partition('+')[2]}, by a way that the merging party cannot read")
    others = [name for name in sorted(sites) if name < options["site"]]
    if others:
        expected = ", ".join(f"{name}+{options['site']}.key" for name in others)
        click.echo(f"expected from others: {expected}")


def _prepared(options: dict[str, Any]) -> tuple[Source, Spec, PairKeys | None]:
    """Check all that is public: the table, the specification, the keys."""
    columns = parse.columns_option(options["columns"])
    bounds = parse.bounds_option(options["bounds"])
    steps = parse.steps_option(options["steps"])
    bandwidth = parse.bandwidth_option(options["bandwidth"])
    sites = parse.columns_option(options["sites"])
    checked_words(options, bounds=bounds)
    from fogline import _validation
    from fogline.density.random_spec import plan_spec
    from fogline.federation import PairKeys
    from fogline.federation.masks import check_site
    from fogline.releases.sketch_file import Provenance

    try:
        check_site(options["site"])
        _validation.check_name(options["pass_name"], "pass")
        source = source_table(options, columns)
        if options["unit_name"] is not None:
            if not source.is_enforced:
                raise ValueError("unit_name: needs --unit, the column that says whose record a line is")
            Provenance(unit=options["unit_name"])
        wide = wide_bounds(source, bounds)
        if isinstance(steps, list) and len(steps) == 1:
            steps = steps * source.width
        spec = plan_spec(wide, bandwidth if isinstance(bandwidth, str) else [bandwidth], steps)
        keys = None if sites is None else PairKeys.load(options["keys"], options["site"], sites)
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    return source, spec, keys


def _check_sketch(path: Path) -> None:
    """Refuse a sketch that is not there."""
    if not path.is_file():
        raise parse.refused(FileNotFoundError(f"path: there is no file {str(path.resolve())!r}"))


def _counted(options: dict[str, Any], source: Source, spec: Spec, keys: PairKeys | None) -> SiteSketch:
    from fogline.federation import SiteSketch
    from fogline.releases import sketch as count
    from fogline.sources.tables import ReadFailed

    try:
        counted = count(source, spec, max_contributions=options["max_contributions"])
    except ReadFailed:
        raise Unreadable("the records of FILE could not be read") from None
    try:
        return SiteSketch.of(
            counted,
            options["site"],
            options["pass_name"],
            max_contributions=options["max_contributions"],
            unit=source.unit if options["unit_name"] is None else options["unit_name"],
            columns=source.columns,
            keys=keys,
        )
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None


@click.command(
    cls=Command, epilog="\b\nExample:\n  fogline merge north.sketch south.sketch --out all.sketch\n\n" + EXIT_CODES
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Where the secret sum goes."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def merge(files: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Add up the sketches of several sites, each counted once however often it was sent.

    Sketches that do not belong together are refused with what differs. Nothing is released.
    """
    writable(out, "--out")
    for path in files:
        _check_sketch(path)
    from fogline.federation import SiteSketch, merge_sites

    try:
        whole = merge_sites([SiteSketch.load(path) for path in files])
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    write(lambda: whole.save(out), "--out")
    if as_json:
        told = {"format": "fogline-merge-1", "pass": whole.pass_name, "sites": whole.sites, "missing": whole.missing}
        print_json(told)
        return
    click.echo(f"merged: {', '.join(whole.sites)} (pass {whole.pass_name}) -> {out}")
    if whole.missing:
        click.echo(f"masked: nothing can be read before {', '.join(whole.missing)} is there too")
    else:
        click.echo(SECRET)


def release_sketch(ctx: click.Context, options: dict[str, Any]) -> None:
    """Add noise once to a merged sketch, publish its density, and read its modes: ``fogline release all.sketch``.

    Spends the budget once. The file is marked: without a ledger it cannot be released again.
    """
    need(*([] if options["as_json"] else ["rich"]), *(["jinja2"] if options["report"] else []))
    # The sketch itself must not be overwritten by what is read from it.
    checked_outputs(options, "report", "save")
    checked_numbers(options)
    _check_sketch(options["file"])
    from fogline.estimators.mode_fit import ModeFit
    from fogline.federation import SiteSketch, release_file

    try:
        columns = SiteSketch.load(options["file"]).columns
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
    names = ("epsilon", "delta", "neighbours", "disjoint_persons")
    chosen = {name: options[name] for name in names}
    density, paid = ask(
        lambda view: release_file(options["file"], ledger=view, **chosen), options, "releasing the density once"
    )
    chosen.pop("disjoint_persons")
    chosen |= {name: options[name] for name in ("n_modes", "level", "expect_records")}
    estimator = ModeFit(bounds=density.spec.bounds, **chosen)
    estimator.read(density)
    publish(estimator, options, paid, command=str(ctx.meta["fogline.command"]), columns=columns)
