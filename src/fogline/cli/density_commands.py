"""``fogline release``, ``card``, ``quantiles``, ``ask`` and ``compare``: one release, and what can be asked of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.cli import parse
from fogline.cli.common import Command, drawable, need, print_json, writable, write
from fogline.cli.options import (
    EXIT_CODES,
    FILE,
    check_file,
    loops_for,
    need_reader,
    output_options,
    release_options,
    source_options,
    source_table,
)
from fogline.cli.release import recipe_words
from fogline.cli.stored import is_release, open_release

if TYPE_CHECKING:
    from fogline.density.named_densities import Releases
    from fogline.density.posterior.posterior import Posterior
    from fogline.density.private_density import PrivateDensity
    from fogline.density.profile import Profile
    from fogline.density.questions import Answer
    from fogline.density.strata import Strata
    from fogline.ledger import LedgerView

__all__ = ["ask", "card", "compare", "quantiles", "release"]

RELEASE_EXAMPLES = """\b
Examples:
  fogline release visits.csv --columns age,stay --bounds age,0:60 --epsilon 1 --out visits.fog
  fogline release visits.csv --bounds age=age,stay=0:60 --steps 1,none --epsilon 0.5 --unit person_id
        --max-contributions 2 --ledger budget.fogline --out visits.fog
  fogline release visits.csv --columns "age,stay;cost" --bounds age=age,stay=0:60,cost=0:9000
        --epsilon 1 --out shapes
  fogline release all.sketch --epsilon 1 --delta 1e-6 --save density.npz
  fogline release --counts counts.csv --columns age,stay --bounds age,0:60 --epsilon 1 --out visits.fog

\b
Then, for nothing:
  fogline card visits.fog
  fogline ask visits.fog "P(stay > 10 | age > 70)" "median stay"
  fogline modes visits.fog

"""

MOST_COLUMNS = 3
"""Of a density with a posterior."""

COUNTS_ONLY = ("allow_readable", "delete_counts")
NOT_COUNTS = ("shares", "query", "delimiter", "decimal", "thousands", "encoding", "null", "header")
SKETCH_ONLY = ("disjoint_persons", "n_modes", "level", "save")
TABLE_ONLY = (
    *("columns", "bounds", "steps", "features", "shares", "out", "unit", "query", "max_contributions"),
    *("delimiter", "decimal", "thousands", "encoding", "null", "header"),
)


@click.command(cls=Command, epilog=RELEASE_EXAMPLES + FILE + EXIT_CODES)
@click.argument("file", metavar="FILE", required=False)
@click.option(
    "--counts",
    type=click.Path(path_type=Path),
    help="Instead of FILE: the answer of a warehouse to the query of fogline sql, CSV or Parquet. Secret.",
)
@click.option("--allow-readable", is_flag=True, help="With --counts: accept a file that other users can read.")
@click.option("--delete-counts", is_flag=True, help="With --counts: delete the file once it has been released.")
@click.option("--columns", metavar="A,B", help="Up to three columns; more as several densities: 'A,B;C'.")
@click.option("--bounds", metavar="LO:HI,LO:HI", help="Public range of each column, or its name; or A=LO:HI,B=age.")
@click.option("--steps", metavar="NONE,1", help="Public rounding step of each column, or none; or A=1.")
@source_options
@click.option("--epsilon", type=float, required=True, help="Privacy budget of this release.")
@click.option("--delta", type=float, help="Chance that the promise may fail; none is needed up to three columns.")
@release_options
@click.option(
    "--features",
    type=click.Choice(["auto", "leaves", "grid", "random"]),
    default="auto",
    show_default=True,
    help="What is released; more than three columns in one density must ask for random.",
)
@click.option("--shares", metavar="NAME=1/3,...", help="For several densities: parts of the budget; equal by default.")
@click.option("--out", type=click.Path(path_type=Path), help="Where the release goes (.fog); of several, a folder.")
@click.option("--disjoint-persons", is_flag=True, help="For a sketch: declare that no person is at two sites.")
@click.option("--n-modes", type=int, help="For a sketch: return this many modes instead of those above the fogline.")
@click.option(
    "--level",
    type=float,
    default=0.05,
    show_default=True,
    help="For a sketch: probability of reporting a mode that is only noise.",
)
@output_options(
    report="Write a page: of the shape of one density, as fogline card --report does; for a sketch of its modes.",
    save="For a sketch: write the released density (.npz). A table's release goes to --out.",
)
@click.pass_context
def release(ctx: click.Context, /, **options: Any) -> None:
    """Release the shape of some columns of FILE once; everything is read from it afterwards, for nothing.

    Spends the budget once. FILE may also be the merged sketch of several sites: then the modes of its density are read
    as well. Records with a missing or unreadable value, or outside the bounds, contribute nothing.
    """
    if (options["file"] is None) == (options["counts"] is None):
        raise click.UsageError("name one of FILE and --counts")
    if options["counts"] is not None:
        _refuse(ctx, (*SKETCH_ONLY, *NOT_COUNTS), "is not for counts, which a warehouse made")
        _release_counts(ctx, options)
        return
    _refuse(ctx, COUNTS_ONLY, "is for --counts")
    if _is_sketch(options["file"]):
        _refuse(ctx, TABLE_ONLY, "FILE is a sketch, whose columns and bounds were fixed where it was made")
        if options["delta"] is None:
            raise click.BadParameter("is needed: the noise of Fourier sums takes one", param_hint="--delta")
        from fogline.cli.federation import release_sketch

        release_sketch(ctx, {**options, "file": Path(options["file"])})
        return
    if is_release(options["file"]):
        raise click.BadParameter("is a release already: read it, for nothing", param_hint="FILE")
    words = "is for the sketch of several sites; --out keeps the release of a table, and fogline modes reads its modes"
    _refuse(ctx, SKETCH_ONLY, words)
    _release_table(ctx, options)


def _refuse(ctx: click.Context, names: tuple[str, ...], words: str) -> None:
    """Refuse options that were typed and mean nothing here."""
    for param in ctx.command.params:
        source = ctx.get_parameter_source(str(param.name))
        if param.name in names and source is click.core.ParameterSource.COMMANDLINE:
            raise click.BadParameter(words, ctx=ctx, param=param)


def _is_sketch(file: str) -> bool:
    """Whether FILE is the sketch of a site, by its name or its first bytes."""
    path = Path(file)
    if path.suffix.lower() == ".sketch":
        return True
    if "://" in file or not path.is_file() or path.suffix.lower() == ".fog":
        return False
    with path.open("rb") as opened:
        return opened.read(4) == b"PK\x03\x04"


def _release_table(ctx: click.Context, options: dict[str, Any]) -> None:
    from fogline.cli.release import ask as ask_ledger
    from fogline.cli.release import checked_numbers, checked_outputs, show_payment

    need_reader(options["file"])
    need(*([] if options["as_json"] else ["rich"]), *(["jinja2"] if options["report"] else []))
    groups = group_option(options["columns"])
    bounds = named_bounds_option(options["bounds"])
    steps = named_steps_option(options["steps"])
    shares = _shares(options["shares"])
    for name, value in (("--bounds", bounds), ("--out", options["out"])):
        if value is None:
            raise click.BadParameter("is needed", param_hint=name)
    _few_columns(groups, options["features"])
    is_several = groups is not None and len(groups) > 1
    if not is_several and options["out"].suffix.lower() != ".fog":
        raise click.BadParameter("expected a name that ends in .fog", param_hint="--out")
    if is_several and options["out"].suffix:
        raise click.BadParameter("expected a folder, since there are several densities", param_hint="--out")
    if is_several and options["report"] is not None:
        words = "is the page of one density; write one of each release by fogline card RELEASE --report PAGE"
        raise click.BadParameter(words, param_hint="--report")
    checked_outputs(options, "out", "report")
    # Named ranges among them are known to be right; a delta of 0 is none.
    checked_numbers({**options, "delta": options["delta"] or None})
    try:
        check_file(str(options["file"]))
    except (ValueError, OSError) as error:
        raise parse.refused(error) from None

    def question(view: LedgerView | None) -> PrivateDensity | Releases:
        import fogline

        columns = _columns(groups, bounds)
        names = ("epsilon", "neighbours", "max_contributions", "expect_records", "features")
        chosen: Any = {name: options[name] for name in names}
        flat = None if columns is None else [name for group in groups or [columns] for name in group]
        table = source_table(options, flat if flat is None else list(dict.fromkeys(flat)))
        if flat is None:
            _few_columns([list(getattr(table, "columns", None) or ())], options["features"])
        asked = groups if is_several else flat
        with loops_for(options, table):
            found: PrivateDensity | Releases = fogline.release(
                table, columns=asked, bounds=bounds, steps=steps, delta=options["delta"], shares=shares, ledger=view,
                **chosen,
            )  # fmt: skip
        return found

    found, paid = ask_ledger(question, options, "reading the records, releasing their density once")
    write(lambda: found.save(options["out"]), "--out")
    _write_page(found, options["report"], str(ctx.meta["fogline.command"]))
    _show_release(found, options, paid, str(ctx.meta["fogline.command"]))
    if paid is not None and not options["as_json"]:
        show_payment(paid)


def _release_counts(ctx: click.Context, options: dict[str, Any]) -> None:
    """Release what a warehouse counted."""
    from fogline.cli.release import ask as ask_ledger
    from fogline.cli.release import checked_numbers, checked_outputs, show_payment

    need(*([] if options["as_json"] else ["rich"]), *(["jinja2"] if options["report"] else []))
    groups = group_option(options["columns"])
    for name in ("bounds", "out"):
        if options[name] is None:
            raise click.BadParameter("is needed", param_hint=f"--{name}")
    if groups is not None and len(groups) > 1:
        raise click.BadParameter("counts are of one density", param_hint="--columns")
    if options["out"].suffix.lower() != ".fog":
        raise click.BadParameter("expected a name that ends in .fog", param_hint="--out")
    checked_outputs({**options, "file": str(options["counts"])}, "out", "report")
    checked_numbers({**options, "delta": options["delta"] or None})
    bounds, steps = named_bounds_option(options["bounds"]), named_steps_option(options["steps"])
    names = (
        *("epsilon", "neighbours", "max_contributions", "expect_records", "features", "unit"),
        "allow_readable",
    )
    chosen: Any = {name: options[name] for name in names}

    from fogline.releases.counts_release import counts_caution, release_counts

    try:
        caution = counts_caution(options["counts"], allow_readable=options["allow_readable"])
    except OSError as error:
        raise parse.refused(error) from None
    if caution:
        click.echo(f"caution: {caution}", err=True)

    def question(view: LedgerView | None) -> PrivateDensity:
        return release_counts(
            options["counts"], columns=_columns(groups, bounds), bounds=bounds, steps=steps, delta=options["delta"],
            ledger=view, **chosen,
        )  # fmt: skip

    found, paid = ask_ledger(question, options, "releasing the density of the counts once")
    write(lambda: found.save(options["out"]), "--out")
    _write_page(found, options["report"], str(ctx.meta["fogline.command"]))
    _show_release(found, options, paid, str(ctx.meta["fogline.command"]))
    if paid is not None and not options["as_json"]:
        show_payment(paid)
    _let_go(options["counts"], delete=options["delete_counts"])


def _let_go(counts: Path, *, delete: bool) -> None:
    """Delete the file of counts after its release was written, or say that it is still there."""
    if delete:
        write(counts.unlink, "--delete-counts")
        click.echo(f"deleted: {counts} (what a backup or the file system keeps of it is beyond fogline)", err=True)
    else:
        click.echo(f"{counts} is as secret as the records: guard it or delete it (--delete-counts)", err=True)


def group_option(text: str | None) -> list[list[str]] | None:
    """Return groups of columns: names with commas, groups with semicolons between them.

    Examples
    --------
    >>> group_option("age,stay;cost"), group_option('"income; net",age')
    ([['age', 'stay'], ['cost']], [['income; net', 'age']])
    """
    if text is None:
        return None
    import re

    parts = re.findall(r'(?:"[^"]*"|[^;"])+', text)
    return [parse.columns_option(part) or [] for part in parts]


def named_bounds_option(text: str | None) -> Any:
    """Return ranges by column, ``a=0:60,b=age``, or in the order of the columns.

    Examples
    --------
    >>> named_bounds_option("age=age,stay=0:60")["stay"]
    (0.0, 60.0)
    >>> named_bounds_option("0:100,0:60")
    [(0.0, 100.0), (0.0, 60.0)]
    """
    if text is None:
        return None
    if "=" not in text:
        return parse.ranges_option(text)
    found: dict[str, Any] = {}
    for part in parse.columns_option(text, "--bounds") or []:
        name, equals, ends = (word.strip() for word in part.rpartition("="))
        if not equals or not name:
            raise click.BadParameter(f"expected column=low:high for each column, got {part!r}", param_hint="--bounds")
        (found[name],) = parse.ranges_option(ends)
    return found


def named_steps_option(text: str | None) -> Any:
    """Return steps by column, ``a=1,b=none``, or in the order of the columns.

    Examples
    --------
    >>> named_steps_option("age=1,stay=none"), named_steps_option("none,1")
    ({'age': 1.0, 'stay': None}, [None, 1.0])
    """
    if text is None or "=" not in text:
        return parse.steps_option(text)
    found: dict[str, float | None] = {}
    for part in parse.columns_option(text, "--steps") or []:
        name, _, word = (word.strip() for word in part.rpartition("="))
        step = parse.steps_option(word)
        found[name] = step[0] if isinstance(step, list) else None
    return found


def _few_columns(groups: list[list[str]] | None, features: str) -> None:
    """Refuse too many columns in one density, and show how to divide them."""
    for group in groups or ():
        if len(group) > MOST_COLUMNS and features != "random":
            parts = [group[k : k + 2] for k in range(0, len(group), 2)]
            divided = ";".join(",".join(f'"{name}"' if "," in name else name for name in part) for part in parts)
            raise click.BadParameter(
                f"a density has up to {MOST_COLUMNS} columns, got {len(group)}; divide them into several densities of "
                f"one budget, such as --columns '{divided}' with a folder for --out, or ask for --features random",
                param_hint="--columns",
            )


def _columns(groups: list[list[str]] | None, bounds: Any) -> list[str] | None:
    """Columns of one density: those named, or those of the bounds."""
    if groups is not None:
        return groups[0]
    return list(bounds) if isinstance(bounds, dict) else None


def _shares(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    shares = {}
    for part in parse.columns_option(text, "--shares") or []:
        name, equals, portion = (word.strip() for word in part.rpartition("="))
        if not name or not equals:
            raise click.BadParameter(f"expected name=part, such as cost=1/3, got {part!r}", param_hint="--shares")
        shares[name] = portion
    return shares


def _write_page(found: PrivateDensity | Releases, report: Path | None, command: str) -> None:
    """Write the page of one density's shape, as ``fogline card --report`` does from its file."""
    from fogline.density.named_densities import Releases

    if report is not None and not isinstance(found, Releases):
        density, page = found, report
        write(lambda: density.report(page, command=command + recipe_words()), "--report")


def _show_release(
    found: PrivateDensity | Releases, options: dict[str, Any], paid: dict[str, Any] | None, command: str
) -> None:
    from fogline.density.named_densities import Releases

    densities = dict(found) if isinstance(found, Releases) else {"": found}
    if options["as_json"]:
        cards = {name: density.card() for name, density in densities.items()}
        content = {"releases": cards} if isinstance(found, Releases) else {"release": cards[""]}
        print_json(
            {"format": "fogline-release-1", "command": command, **content, "message": found.message, **(paid or {})}
        )
        return
    from fogline.density.release_card import column_names
    from fogline.report.frame import as_sentence

    for density in densities.values():
        count = f"{density.count:.0f} ± {density.count_sd:.2g}"
        click.echo(f"{', '.join(column_names(density))}: about {count} records")
    if found.message:
        click.echo(as_sentence(found.message))
    click.echo(str(found.guarantee))
    click.echo(f"release: {options['out']}")
    if options["report"] is not None:
        click.echo(f"report: {options['report']}")


# -- readings ------------------------------------------------------------------------------------------------

fog_argument = click.argument("file", metavar="RELEASE")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
target_option = click.option(
    "--target",
    type=click.Choice(["population", "records"]),
    default="population",
    show_default=True,
    help="What the density behind the records would answer, or the table itself.",
)


@click.command(
    cls=Command,
    epilog="\b\nExamples:\n  fogline card visits.fog\n  fogline card visits.fog --picture risk.svg"
    "\n  fogline card visits.fog --report visits.html"
    '\n  fogline card visits.fog --report old.html --given "age >= 70"',
)
@fog_argument
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw what it means for a person (.svg or .html), for light and dark grounds.",
)
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write a page of the density, too.")
@click.option("--given", metavar="EVENTS", help="For the page: only the records that meet a condition.")
@json_option
@click.pass_context
def card(
    ctx: click.Context, file: str, picture: Path | None, report: Path | None, given: str | None, as_json: bool
) -> None:
    """Say in plain words what a release is and what it promises, for an ethics board.

    With --json also as an entry for a public registry of deployments of differential privacy; with --report the page
    of its density: curves, quantiles, means. Saved strata and profiles (.npz) get their summary and their page again.
    """
    if given is not None and report is None:
        raise click.BadParameter("is for the page, which --report writes", param_hint="--given")
    need(*(["jinja2"] if report else []))
    drawable(picture, "--picture", (".svg", ".html", ".htm"))
    writable(picture, "--picture", [Path(file)])
    writable(report, "--report", [Path(file)])
    saved = _saved_table(file)
    if saved is not None:
        if given is not None or picture is not None:
            raise click.BadParameter(
                "is for the release of one density", param_hint="--given" if given else "--picture"
            )
        _show_table(saved, report, as_json, str(ctx.meta["fogline.command"]) + recipe_words())
        return
    density = open_release(file)
    found = density.card()
    if report is not None:
        command, page, shown = str(ctx.meta["fogline.command"]) + recipe_words(), report, _shown(density, given)
        write(lambda: shown.report(page, command=command), "--report")
    if as_json:
        print_json(found)
    else:
        from fogline.density.release_card import card_text

        click.echo(card_text(found))
    if picture is not None:
        from fogline.report.ledger import write_picture
        from fogline.report.risk import risk_picture

        drawing, target = risk_picture(density.guarantee), picture
        write(lambda: write_picture(drawing, target, title="What it means for a person"), "--picture")
    if not as_json:
        for name, path in (("picture", picture), ("report", report)):
            if path is not None:
                click.echo(f"{name}: {path}")


def _saved_table(file: str) -> Strata | Profile | None:
    """Open strata or a profile; None where FILE is something else, of which the caller says what is wrong with it."""
    if Path(file).suffix.lower() != ".npz" or not Path(file).is_file():
        return None
    import zipfile

    from fogline.density.profile import Profile
    from fogline.density.strata import Strata

    for kind in (Strata, Profile):
        try:
            return kind.load(file)
        except (ValueError, OSError, KeyError, TypeError, zipfile.BadZipFile):
            continue
    return None


def _show_table(saved: Strata | Profile, report: Path | None, as_json: bool, command: str) -> None:
    """Show strata or a profile that was released before, and write its page."""
    if report is not None:
        write(lambda: saved.report(report, command=command), "--report")
    click.echo(saved.to_json() if as_json else str(saved.summary()))
    if report is not None and not as_json:
        click.echo(f"report: {report}")


def _shown(density: PrivateDensity, given: str | None) -> PrivateDensity | Posterior:
    """What a page is about: the release, or the part of it that meets a condition."""
    if given is None:
        return density
    from fogline.density.questions import condition_ranges

    try:
        return density.given(**condition_ranges(density.posterior, given))
    except (ValueError, TypeError) as error:
        words = parse.refused(error).message.removeprefix("question: ").removeprefix("given: ")
        raise click.BadParameter(words, param_hint="--given") from None


@click.command(
    cls=Command,
    epilog="\b\nExample:\n  fogline compare 2024.fog 2025.fog --report change.html",
)
@click.argument("first", metavar="RELEASE")
@click.argument("second", metavar="RELEASE")
@click.option("--names", metavar="A,B", help="What the two are called; by default as their files.")
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Write a self-contained HTML page.")
@json_option
@click.pass_context
def compare(ctx: click.Context, first: str, second: str, names: str | None, report: Path | None, as_json: bool) -> None:
    """Say whether two releases of the same columns differ, by how much and where; free.

    They must be of different people and have the same columns, bounds and steps: two years, two sites, two groups.
    """
    need(*([] if as_json else ["rich"]), *(["jinja2"] if report else []))
    writable(report, "--report", [Path(first), Path(second)])
    called = [Path(first).stem, Path(second).stem] if names is None else parse.columns_option(names, "--names") or []
    if names is None and called[0] == called[1]:
        called = ["first", "second"]
    if len(called) != 2 or called[0] == called[1]:
        raise click.BadParameter("expected two different names, such as 2024,2025", param_hint="--names")
    pair = [open_release(file) for file in (first, second)]
    try:
        found = pair[0].compare(pair[1], names=(called[0], called[1]))
    except (ValueError, TypeError) as error:
        raise click.UsageError(f"the two releases cannot be compared: {error}") from None
    from fogline.cli.release import publish

    options = {"as_json": as_json, "report": report, "save": None}
    publish(found, options, None, command=str(ctx.meta["fogline.command"]))  # type: ignore[arg-type]


@click.command(cls=Command, epilog="\b\nExample:\n  fogline quantiles visits.fog --column stay --q .25,.5,.75")
@fog_argument
@click.option("--column", metavar="COLUMN", help="Needed where there are several.")
@click.option("--q", "levels", metavar="A,B", default="0.25,0.5,0.75", show_default=True, help="Levels, 0 to 1.")
@target_option
@json_option
@click.pass_context
def quantiles(ctx: click.Context, file: str, column: str | None, levels: str, target: str, as_json: bool) -> None:
    """Quantiles of one column of a release, with errors and 95% intervals; free."""
    wanted = parse.numbers_option(levels, "--q") or []
    if not all(0 <= level <= 1 for level in wanted):
        raise click.BadParameter("expected levels from 0 to 1", param_hint="--q")
    density = open_release(file)
    from fogline.density.release_card import column_names

    names = column_names(density)
    if column is None and len(names) > 1:
        raise click.BadParameter(f"is needed: one of {', '.join(names)}", param_hint="--column")
    quoted = column if column is not None else names[0]
    if quoted not in names:
        raise click.BadParameter(f"{quoted!r} was not released; there are {', '.join(names)}", param_hint="--column")
    words = f'quantiles {", ".join(f"{level:g}" for level in wanted)} of "{quoted}"'
    _publish_answers(ctx, density, [words], target, as_json)


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  fogline ask visits.fog count "median stay" "P(stay > 10 | age > 70)"
  fogline ask visits.fog "mean stay by age 0:100:20" "quartiles stay where age >= 65" --json

\b
Questions:
  count, P(events | events), share of events, mean, median, variance, sd, quantile .9, percentile 90,
  quartiles, deciles of a column, correlation of two columns; each with "where events" and
  "by COLUMN start:stop:step". Events: stay > 10, 40 <= age < 60, age in 40:60, joined by "and".
""",
)
@fog_argument
@click.argument("questions", nargs=-1, required=True, metavar="QUESTION...")
@target_option
@json_option
@click.pass_context
def ask(ctx: click.Context, file: str, questions: tuple[str, ...], target: str, as_json: bool) -> None:
    """Answer questions about a release, each with its error and a 95% interval; free.

    The error is split into privacy noise, sampling of the records and smoothing.
    """
    _publish_answers(ctx, open_release(file), list(questions), target, as_json)


def _publish_answers(
    ctx: click.Context, density: PrivateDensity, questions: list[str], target: str, as_json: bool
) -> None:
    answers: list[Answer] = []
    try:
        from fogline.density.questions import parse_question
        from fogline.density.release_card import column_names

        for words in questions:  # all are understood before the first is answered
            parse_question(words, column_names(density))
        answers = [density.ask(words, target=target) for words in questions]  # type: ignore[arg-type]
    except (ValueError, TypeError) as error:
        found = parse.refused(error)
        message = found.message.removeprefix("question: ")
        raise click.BadParameter(message, param_hint="QUESTION" if message != found.message else "RELEASE") from None
    if as_json:
        guarantee = {**density.guarantee.to_dict(), "text": str(density.guarantee)}
        content = {"format": "fogline-answers-1", "command": str(ctx.meta["fogline.command"]), "target": target}
        print_json({**content, "answers": [answer.to_dict() for answer in answers], "guarantee": guarantee})
        return
    for answer in answers:  # what is odd about the release is said once, below them all
        click.echo(str(replace(answer, message="")))
    if answers and answers[0].message:
        from fogline.report.frame import as_sentence

        click.echo(as_sentence(answers[0].message))
    if not density.guarantee.certified:
        click.echo(str(density.guarantee))
