"""``fogline ledger``: make a budget on disk, look at it, plan with it, continue it, check it, take it along.

What is shown is what the ledger's entries say: names, public parameters, costs. No answer is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fogline.accounting._rounding import digits_down, digits_up, square_root_up
from fogline.accounting.cautions import PrivacyWarning, budget_cautions
from fogline.cli.common import (
    SETTINGS,
    Command,
    Commands,
    console_for_people,
    drawable,
    need,
    opened,
    print_json,
    refusals,
    writable,
    write,
)

if TYPE_CHECKING:
    from fogline.ledger import Entry, PaidAnswer, Plan, Remaining
    from fogline.ledger.caps import Currency
    from fogline.report.ledger import Statement

__all__ = ["ledger"]

UNITS, DELTA_UNITS = 10**12, 10**18

path_argument = click.argument("path", type=click.Path(path_type=Path))
high_water_option = click.option(
    "--high-water",
    type=click.Path(path_type=Path),
    help="Folder of the high-water mark, the same each time; by default in your home.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
epsilon_option = click.option("--epsilon", type=float, required=True, help="Epsilon of the release.")
delta_option = click.option("--delta", type=float, required=True, help="Delta of the release; 0 for a pure one.")


@click.group(
    cls=Commands,
    context_settings=SETTINGS,
    epilog="\b\nExamples:\n  fogline ledger create budget.fogline --dataset visits --epsilon 2 --delta 1e-6\n"
    "  fogline modes visits.csv --bounds 0:120 --epsilon 0.5 --delta 1e-6 --ledger budget.fogline\n"
    "  fogline ledger show budget.fogline --picture spent.svg\n\n\b\n"
    "Exit codes: 0 done; 2 wrong usage; 4 the ledger refused.",
)
def ledger() -> None:
    """Keep a privacy budget on disk: it is reserved before data are touched, and never refunded."""


def _dataset_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what is declared of a data set."""
    options = [
        click.option("--dataset", metavar="ID", required=True, help="A name for the data set."),
        click.option("--epsilon", type=float, required=True, help="The most that all releases together may amount to."),
        click.option(
            "--delta", type=float, required=True, help="The delta that belongs to --epsilon; 0 for pure releases only."
        ),
        click.option(
            "--neighbours",
            type=click.Choice(["add-remove", "replace"]),
            default="add-remove",
            show_default=True,
            help="Hide that a record is there, or only what it says; fixed for good.",
        ),
        click.option(
            "--lane",
            type=click.Choice(["zcdp", "gaussian"]),
            default="zcdp",
            show_default=True,
            help="Add releases up in zCDP, or in Gaussian differential privacy: room for an eighth more Gaussian noise,"
            " and for nothing else but pure epsilon; fixed for good.",
        ),
        click.option(
            "--set-aside",
            type=float,
            default=0.0,
            help="Part of delta for mechanisms with a delta of their own; without it they come first, or not at all.",
        ),
        click.option(
            "--integral", type=float, help="A cap of its own for draws of fogline sample: the sum of their epsilons."
        ),
        click.option(
            "--unit",
            metavar="COLUMN",
            help="Whom all releases protect: 'record', or the column that says whose record a row is; by default fixed"
            " by the first release.",
        ),
        click.option("--max-contributions", type=int, help="Most records of a unit that a release may count."),
        click.option(
            "--source",
            "sources",
            multiple=True,
            metavar="FILE",
            help="Where the records are, as commands will name it; nothing else is read. May be repeated.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _declared(options: dict[str, Any], rho: float) -> str:
    """Say what a data set was given."""
    unit, most = options["unit"], options["max_contributions"]
    whom = "fixed by the first release" if unit is None and most is None else f"{unit or 'record'}"
    return (
        f"{options['dataset']}: epsilon {options['epsilon']:g} at delta {options['delta']:g} "
        f"({options['neighbours']}), which is {'for pure releases only' if rho == 0.0 else f'rho = {rho:.6g}'}"
        + ("" if options["integral"] is None else f"; draws: epsilon {options['integral']:g} in all")
        + f"\nunit: {whom}"
        + ("" if most is None else f", at most {most} record{'' if most == 1 else 's'}")
        + (f"\nsources: {', '.join(options['sources'])}" if options["sources"] else "")
    )


@ledger.command(
    cls=Command,
    epilog="\b\nExamples:\n  fogline ledger create budget.fogline --dataset visits --epsilon 2 --delta 1e-6\n"
    "  fogline ledger create budget.fogline --dataset visits --epsilon 2 --delta 1e-6 --unit person_id "
    "--max-contributions 3",
)
@path_argument
@_dataset_options
@high_water_option
@json_option
def create(path: Path, as_json: bool, **options: Any) -> None:
    """Make a new ledger at PATH with one data set, its cap and the unit it protects."""
    with _declaring():
        from fogline.ledger import Ledger

        with Ledger.create(path, **{**options, "sources": options["sources"] or None}) as made:
            left, unit = made.remaining(), made.unit()
            content = {"ledger": made.id, "path": str(made.path), "dataset": options["dataset"], "rho": left.rho}
            content["unit"] = None if unit is None else unit.to_dict()
    _warn(options)
    if as_json:
        print_json({"format": "fogline-ledger-create-1", **content})
    else:
        click.echo(f"ledger: {path}\n{_declared(options, left.rho)}")


@contextmanager
def _declaring() -> Iterator[None]:
    """Turn what a ledger says of a cap into exit codes; that it promises little is said by `_warn`, in one line."""
    with refusals(), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def _warn(options: dict[str, Any]) -> None:
    """Say of a cap, or of a release, that it promises little, where it does."""
    for words in budget_cautions(options["epsilon"] or 0.0, options["delta"] or 0.0):
        click.echo(f"Beware: {words}.", err=True)


@ledger.command(
    "add-dataset",
    cls=Command,
    epilog="\b\nExample:\n  fogline ledger add-dataset budget.fogline --dataset stays --epsilon 1 --delta 1e-6",
)
@path_argument
@_dataset_options
@high_water_option
def add_dataset(path: Path, high_water: Path | None, **options: Any) -> None:
    """Add a data set about other people, with a cap of its own."""
    # The library takes the name first and the rest by keyword.
    given = {name: value for name, value in options.items() if name != "dataset"}
    with opened(path, high_water) as open_ledger, _declaring():
        open_ledger.add_dataset(options["dataset"], **{**given, "sources": options["sources"] or None})
        left = open_ledger.remaining(options["dataset"])
    _warn(options)
    click.echo(_declared(options, left.rho))


@ledger.command(
    "set-cap",
    cls=Command,
    epilog="\b\nExample:\n  fogline ledger set-cap budget.fogline --epsilon 3 --delta 1e-6 --set-aside 1e-7",
)
@path_argument
@click.option("--dataset", metavar="ID", help="Where the ledger has several.")
@click.option("--epsilon", type=float, required=True, help="The most that all releases together may amount to.")
@click.option("--delta", type=float, required=True, help="The delta that belongs to --epsilon.")
@click.option("--integral", type=float, help="Cap of the draws of fogline sample.")
@click.option("--set-aside", type=float, help="Part of delta for mechanisms with a delta of their own; else as it was.")
@high_water_option
def set_cap(path: Path, high_water: Path | None, dataset: str | None, **caps: Any) -> None:
    """Change the cap of a data set, not below what is spent. Decide on it before you have seen the answers.

    The change stays in the history. Its lane remains what it was.
    """
    with opened(path, high_water) as open_ledger, _declaring():
        name = open_ledger.on(dataset).dataset or ""
        open_ledger.set_cap(dataset=name, **caps)
        promise = open_ledger.promise(name)
    _warn(caps)
    click.echo(f"{name}: {promise}")


@ledger.command(
    "add-analyst",
    cls=Command,
    epilog="\b\nExample:\n  fogline ledger add-analyst budget.fogline ana --epsilon 0.5 --delta 1e-6",
)
@path_argument
@click.argument("analyst")
@click.option("--epsilon", type=float, help="The most they may spend, over all data sets; by default no limit.")
@click.option("--delta", type=float, help="The delta that belongs to --epsilon.")
@click.option("--integral", type=float, help="The most they may spend on draws of fogline sample.")
@high_water_option
def add_analyst(path: Path, analyst: str, high_water: Path | None, **caps: Any) -> None:
    """Add an ANALYST. From then on every question must say who asks it, by --analyst."""
    with opened(path, high_water) as open_ledger, _declaring():
        open_ledger.add_analyst(analyst, **caps)
    _warn(caps)
    limit = "no limit of their own" if caps["epsilon"] is None else f"epsilon {caps['epsilon']:g} at {caps['delta']:g}"
    click.echo(f"{analyst}: {limit}; from now on every question says who asks it, by --analyst")


@ledger.command(
    cls=Command,
    epilog="\b\nExamples:\n  fogline ledger answers budget.fogline\n"
    "  fogline ledger answers budget.fogline --entry 3 --out density.npz",
)
@path_argument
@click.option("--dataset", metavar="ID", help="Only of this data set.")
@click.option("--entry", type=int, help="Write the answer at this entry, with --out.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A new file for that answer, as stored.")
@high_water_option
@json_option
def answers(path: Path, high_water: Path | None, as_json: bool, **options: Any) -> None:
    """List the answers that were paid for, by whichever edition of an algorithm, or write one to a file. Free."""
    entry, out, dataset = options["entry"], options["out"], options["dataset"]
    if (entry is None) != (out is None):
        raise click.UsageError("--entry and --out go together")
    writable(out, "--out", [path])
    if entry is None:
        _shown(as_json)
    # An answer was paid for: it does not overwrite anything.
    elif out.exists():
        raise click.BadParameter(f"there is a file {str(out)!r} already", param_hint="--out")
    with opened(path, high_water) as open_ledger, refusals():
        if entry is not None:
            body = open_ledger.answer(entry)
        else:
            listed = open_ledger.answers(dataset)
    if entry is not None:
        write(lambda: out.write_bytes(body.payload), "--out")
        told = f"{body.receipt.mechanism}, edition {body.receipt.code_version}"
        click.echo(f"answer: {out} (entry {entry}, {told})")
    elif as_json:
        found = [{"question": paid.question.to_dict(), "receipt": paid.receipt.to_dict()} for paid in listed]
        print_json({"format": "fogline-ledger-answers-1", "answers": found})
    else:
        _show_answers(listed)


@ledger.command(cls=Command, epilog="\b\nExample:\n  fogline ledger show budget.fogline --picture spent.svg")
@path_argument
@high_water_option
@json_option
@click.option(
    "--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw what was spent on what (.svg or .html)."
)
def show(path: Path, high_water: Path | None, as_json: bool, picture: Path | None) -> None:
    """Show the caps, what was spent, and what is left."""
    _shown(as_json)
    drawable(picture, "--picture", (".svg", ".html", ".htm"))
    writable(picture, "--picture", [path])
    with opened(path, high_water) as open_ledger, refusals():
        from fogline.report.ledger import spending_picture, statements, write_picture

        listed = statements(open_ledger)
        analysts = list(open_ledger.analysts)
        identity = open_ledger.id
    if as_json:
        content = {"format": "fogline-ledger-show-1", "ledger": identity, "analysts": analysts}
        print_json({**content, "datasets": [statement.to_dict() for statement in listed]})
    else:
        _show_statements(listed)
        if analysts:
            click.echo(f"analysts: {', '.join(analysts)}")
    if picture is not None:
        write(lambda: write_picture(spending_picture(listed), picture, title="What was spent"), "--picture")
        if not as_json:
            click.echo(f"picture: {picture}")


@ledger.command(cls=Command, epilog="\b\nExample:\n  fogline ledger history budget.fogline --json")
@path_argument
@high_water_option
@json_option
def history(path: Path, high_water: Path | None, as_json: bool) -> None:
    """List all entries, oldest first, each in its own currency, and what all of them come to."""
    _shown(as_json)
    with opened(path, high_water) as open_ledger, refusals():
        from fogline.report.ledger import statements

        entries, totals = open_ledger.history(), statements(open_ledger)
    if as_json:
        listed = [{"content": dict(entry.content), "hash": entry.hash} for entry in entries]
        told = [{"dataset": each.dataset, **each.to_dict()["total"]} for each in totals]
        print_json({"format": "fogline-ledger-history-1", "entries": listed, "totals": told})
    else:
        _show_entries(entries)
        for statement in totals:
            click.echo(_in_all(statement))


@ledger.command(
    cls=Command,
    epilog="\b\nExample:\n  fogline ledger plan budget.fogline --epsilon 0.5 --delta 1e-6",
)
@path_argument
@epsilon_option
@delta_option
@click.option("--times", type=click.IntRange(min=1), default=1, show_default=True, help="This many such releases.")
@click.option("--dataset", metavar="ID", help="Where the ledger has several.")
@click.option("--analyst", metavar="NAME", help="Who would ask.")
@high_water_option
@json_option
@click.pass_context
def plan(ctx: click.Context, /, path: Path, high_water: Path | None, as_json: bool, **options: Any) -> None:
    """Say what a release would cost, whether it fits, and how many fit. Free.

    The exit code is 4 if it does not fit.
    """
    with opened(path, high_water) as open_ledger, refusals():
        cost = open_ledger.release_cost(options["epsilon"], options["delta"], dataset=options["dataset"])
        found = open_ledger.plan(cost, dataset=options["dataset"], analyst=options["analyst"])
    times: int = options["times"]
    fits = found.times >= times
    _warn(options)
    if as_json:
        print_json(_plan_document(found, times))
    else:
        _show_plan(found, options, fits)
    if not fits:
        ctx.exit(4)


@ledger.command(
    "new-version",
    cls=Command,
    epilog="\b\nExample:\n  fogline ledger new-version budget.fogline 'quarter 2'",
)
@path_argument
@click.argument("version")
@click.option("--dataset", metavar="ID", help="Where the ledger has several.")
@click.option(
    "--source", "sources", multiple=True, metavar="FILE", help="In place of the declared sources. May be repeated."
)
@high_water_option
def new_version(
    path: Path, version: str, dataset: str | None, sources: tuple[str, ...], high_water: Path | None
) -> None:
    """Say that the data have changed, and are now called VERSION. The budget stays the same.

    A ledger knows a question by its parameters, never by the records: without this, a question that was asked before
    has the old answer.
    """
    with opened(path, high_water) as open_ledger, refusals():
        name = open_ledger.on(dataset).dataset or ""
        open_ledger.new_version(name, version, sources=sources or None)
    click.echo(f"{name}: now version {version}; what was asked before can be asked again, and is paid for")


@ledger.command(cls=Command, epilog="\b\nExample:\n  fogline ledger adopt budget.fogline")
@path_argument
@high_water_option
def adopt(path: Path, high_water: Path | None) -> None:
    """Take over a ledger that was moved here, or that another user made, and write its high-water mark.

    You vouch that this is the newest copy, and that no other will be used. The ledger keeps an entry of it.
    """
    with refusals():
        from fogline.ledger import Ledger

        with Ledger.adopt(path, high_water=high_water) as taken:
            entries = taken.verify()
    click.echo(f"adopted: {path}, with {entries} entries")


@ledger.command(cls=Command, epilog="\b\nExample:\n  fogline ledger verify budget.fogline")
@path_argument
@high_water_option
@json_option
def verify(path: Path, high_water: Path | None, as_json: bool) -> None:
    """Check the file, the whole chain, all sums, all answers and the high-water mark."""
    with opened(path, high_water) as open_ledger, refusals():
        entries = open_ledger.verify()
        identity = open_ledger.id
    if as_json:
        print_json({"format": "fogline-ledger-verify-1", "ledger": identity, "entries": entries, "sound": True})
    else:
        click.echo(f"sound: {entries} entries, chain, sums, answers and high-water mark agree")


@ledger.command(cls=Command, epilog="\b\nExample:\n  fogline ledger export budget.fogline budget.jsonl")
@path_argument
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@high_water_option
def export(path: Path, out: Path, high_water: Path | None) -> None:
    """Write all entries to a new file OUT, one JSON object per line, without the answers."""
    writable(out, "OUT")
    with opened(path, high_water) as open_ledger, refusals():
        try:
            open_ledger.export(out)
        except FileExistsError:
            raise click.BadParameter(f"there is a file {str(out)!r} already", param_hint="OUT") from None
        except OSError as error:
            raise click.ClickException(f"OUT: cannot write: {error.strerror}") from None
    click.echo(f"entries: {out}")


# -- what is printed -----------------------------------------------------------------------------------------


def _shown(as_json: bool) -> None:
    if not as_json:
        need("rich")


def _print_table(title: str, headings: list[str], rows: list[list[str]], *, text: Callable[[str], bool]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if text(heading) else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console_for_people().print(table)


def _show_statements(listed: tuple[Statement, ...]) -> None:
    rows = []
    for statement in listed:
        answered = sum(item.answered for item in statement.items)
        caps = statement.caps
        cap = "-" if caps.epsilon is None else f"{caps.epsilon:g} at {caps.delta:g}"
        rows.append(
            [
                statement.dataset,
                statement.version,
                statement.neighbours,
                "not fixed yet" if statement.unit is None else str(statement.unit),
                cap,
                _part(statement),
                digits_down(statement.left.epsilon),
                digits_down(statement.left.rho),
                str(answered),
                str(len(statement.items) - answered),
            ]
        )
    headings = ["data set", "version", "neighbours", "unit", "cap (epsilon at delta)", "spent", "epsilon left"]
    headings.append("rho left")
    words = ("data set", "version", "neighbours", "unit")
    _print_table("Budgets", [*headings, "answers", "burned"], rows, text=lambda heading: heading in words)
    items = [
        [
            statement.dataset,
            str(item.seq),
            item.label,
            item.analyst or "",
            f"{digits_up(Fraction(item.amount, UNITS))} {item.currency}",
            "" if item.answered else "no answer",
        ]
        for statement in listed
        for item in statement.items
    ]
    for statement in listed:
        click.echo(_in_all(statement))
        click.echo(f"{statement.dataset}: {statement.promise}")
    if items:
        headings = ["data set", "entry", "question", "analyst", "cost", "note"]
        _print_table("Spent on", headings, items, text=lambda heading: heading not in ("entry", "cost"))


def _in_all(statement: Statement) -> str:
    """Say what all releases of a data set in rho and in pure epsilon amount to together, rounded up, in all currencies.

    mu is told where the lane is Gaussian: rho alone does not give it.
    """
    epsilon, delta = statement.total
    pure, rho, mu = statement.spent.get("pure", (0, 0))[0], statement.rho, statement.mu
    told = [f"pure epsilon {digits_up(Fraction(pure, UNITS))}"] if pure else []
    told += [f"mu = {digits_up(mu)}"] if mu else []
    told += [f"rho = {digits_up(rho)}"] if rho else []
    made = f" ({', '.join(told)})" if told else ""
    left = f"pure epsilon {digits_down(statement.left.pure)} would fit"
    return f"{statement.dataset}: in all epsilon {digits_up(epsilon)} at delta {digits_up(delta)}{made}; {left}"


def _part(statement: Statement) -> str:
    """Say how much of its cap a data set has spent, in the currency that it spends most of."""
    currencies: tuple[Currency, ...] = ("zcdp", "gaussian", "pure")
    parts = []
    for currency in currencies:
        spent, budget = statement.spent.get(currency, (0, 0))[0], statement.budget(currency)
        if budget:
            parts.append(Fraction(spent, budget))
    return f"{digits_up(100 * max(parts), 3)}%" if parts else "-"


def _show_entries(entries: tuple[Entry, ...]) -> None:
    rows = [[str(entry.seq), entry.time[:19], entry.kind, _told(entry)] for entry in entries]
    _print_table("Entries", ["entry", "time (UTC)", "kind", "what"], rows, text=lambda heading: heading != "entry")


def _told(entry: Entry) -> str:
    content = entry.content
    if entry.kind == "reserve":
        who = f" for {content['analyst']}" if content["analyst"] else ""
        asked = content["asked"]
        whom = f", one {_unit(content['unit'])}" if content.get("unit") else ""
        cost = _charged(content)
        return f"{asked['mechanism']} on {asked['dataset']}{who}: {cost}{whom}"
    if entry.kind == "commit":
        return f"answer to entry {content['reserve']}"
    named = [str(content[key]) for key in ("dataset", "analyst", "version", "partition", "ledger") if content.get(key)]
    if content.get("unit"):
        named.append(f"one {_unit(content['unit'])}")
    return ", ".join([*named, *(content.get("sources") or [])])


def _charged(content: Mapping[str, Any]) -> str:
    """Say what an entry was charged, in its own currency."""
    amount, delta = Fraction(content["amount"], UNITS), Fraction(content["delta"], DELTA_UNITS)
    if content["currency"] == "gaussian":
        told = f"rho = {digits_up(amount, 6)}, total variation {digits_up(delta, 2)}"
        return f"mu = {digits_up(square_root_up(2 * amount), 6)} gaussian ({told})"
    beside = f", delta {digits_up(delta, 2)}" if delta else ""
    named = {"zcdp": "rho = ", "pure": "epsilon = "}.get(content["currency"], "")
    return f"{named}{digits_up(amount, 6)} {content['currency']}{beside}"


def _unit(values: dict[str, Any]) -> str:
    from fogline.ledger import ProtectedUnit

    return str(ProtectedUnit.from_dict(values))


def _show_answers(listed: tuple[PaidAnswer, ...]) -> None:
    rows = [
        [
            str(paid.receipt.commit),
            paid.question.dataset,
            paid.question.version,
            paid.question.mechanism,
            paid.question.code_version,
            "" if paid.partition is None else "{} = {}".format(*paid.partition),
            paid.receipt.unit or "",
        ]
        for paid in listed
    ]
    headings = ["entry", "data set", "version", "mechanism", "edition", "part", "unit"]
    _print_table("Answers", headings, rows, text=lambda heading: heading != "entry")


def _show_plan(found: Plan, options: dict[str, Any], fits: bool) -> None:
    each = Fraction(found.charge.amount, UNITS)
    more = "a million or more" if found.times >= 10**6 else str(found.times)
    what = f"a release of epsilon {options['epsilon']:g} at delta {options['delta']:g}"
    amount, mu = digits_up(each, 6), digits_up(square_root_up(2 * each), 6)
    named = {"pure": f"pure epsilon = {amount}", "gaussian": f"mu = {mu} (rho = {amount})"}
    price = named.get(found.charge.currency, f"rho = {amount}")
    click.echo(f"cost: {what} costs {price}")
    left = found.before
    told = digits_down(left.rho, 6), digits_down(left.epsilon), digits_down(left.pure, 6)
    click.echo("left: rho = {}, epsilon {}, or pure epsilon {}".format(*told))
    click.echo(f"fits: {'yes' if fits else 'no'} ({options['times']} asked for, {more} would fit)")


def _plan_document(found: Plan, times: int) -> dict[str, Any]:
    def told(left: Remaining | None) -> dict[str, float] | None:
        if left is None:
            return None
        return {"epsilon": left.epsilon, "delta": left.delta, "rho": left.rho, "pure": left.pure}

    return {
        "format": "fogline-ledger-plan-1",
        "cost": {"currency": found.charge.currency, "amount": found.charge.amount / UNITS},
        "fits": found.times >= times,
        "times": found.times,
        "before": told(found.before),
        "after": told(found.after),
    }
