"""What the commands that spend a budget share: their options, the one fit, what is printed and written after it.

All that can be refused is refused before the records are touched; after that there is one constant message, since any
other might quote them.

One question of a command that is not an estimator's: asked once, paid for, with the same endings as all others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from fogline.cli import parse
from fogline.cli.common import Phase, Unreadable, need, opened, print_json, refusals, writable, write
from fogline.cli.sources import check_file, loops_for, need_reader, source_files

__all__ = [
    "EXIT_CODES",
    "ask",
    "budget_options",
    "checked_numbers",
    "checked_outputs",
    "checked_places",
    "checked_words",
    "currency_options",
    "fit",
    "ledger_options",
    "only_with_a_ledger",
    "output_options",
    "privacy_options",
    "publish",
    "release",
    "view_of",
]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

EXIT_CODES = """\b
Exit codes: 0 done, also when nothing is found; 1 a library is missing or a file cannot be written;
2 wrong usage or schema; 3 the records could not be read; 4 the ledger refused.
"""


def _all(options: list[Callable[[Any], Any]], command: Decorated) -> Decorated:
    for option in reversed(options):
        command = option(command)
    return command


_expect_option = click.option(
    "--expect-records",
    type=click.IntRange(min=1),
    metavar="N",
    help="About how many records there should be: a released count far from it is pointed out. From 500000 on a text"
    " file is read by compiled code, which takes half a second to load.",
)
"""Changes words and speed only: neither the noise nor what a ledger is asked."""


def privacy_options(command: Decorated) -> Decorated:
    """Add what is spent, and what is hidden."""
    options = [
        click.option("--epsilon", type=float, required=True, help="Privacy budget of this release."),
        click.option("--delta", type=float, required=True, help="Chance that the promise may fail; well below 1/n."),
        click.option(
            "--neighbours",
            type=click.Choice(["add-remove", "replace"]),
            default="add-remove",
            show_default=True,
            help="Hide that a record is there, or only what it says.",
        ),
        _expect_option,
    ]
    return _all(options, command)


def budget_options(command: Decorated) -> Decorated:
    """Add what is spent, and on whom it is spent."""
    most = click.option(
        "--max-contributions", type=int, default=1, show_default=True, help="Most records of one person."
    )
    return privacy_options(most(command))


def currency_options(command: Decorated) -> Decorated:
    """Add what is spent, in one of four currencies, and on whom it is spent."""
    options = [
        click.option("--epsilon", type=float, help="Privacy budget of this release, with --delta."),
        click.option("--delta", type=float, help="Chance that the promise may fail; well below 1/n."),
        click.option("--rho", type=float, help="The budget in zero-concentrated differential privacy, instead."),
        click.option("--hdp", type=float, help="In Hellinger differential privacy, instead: 0.2 is about (4, 1e-5)."),
        click.option("--pdp", metavar="LAMBDA:EPS", help="In power divergence of this order, instead."),
        click.option(
            "--neighbours",
            type=click.Choice(["add-remove", "replace"]),
            help="Hide that a record is there (the default), or only what it says (all that a descent can).",
        ),
        click.option("--max-contributions", type=int, default=1, show_default=True, help="Most records of one person."),
        _expect_option,
    ]
    return _all(options, command)


def output_options(command: Decorated) -> Decorated:
    """Add where the answer goes, and which ledger pays."""
    page = click.Path(path_type=Path, dir_okay=False)
    options = [
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."),
        click.option("--report", type=page, help="Write a self-contained HTML page."),
        click.option("--save", type=page, help="Write the released density (.npz)."),
    ]
    return _all(options, ledger_options(command))


def ledger_options(command: Decorated) -> Decorated:
    """Add which ledger pays."""
    options = [
        click.option("--ledger", type=click.Path(path_type=Path), help="Pay from this ledger; asking again is free."),
        click.option("--dataset", metavar="ID", help="The data set's name in the ledger, where it has several."),
        click.option("--analyst", metavar="NAME", help="Who asks, as the ledger knows them."),
        click.option("--high-water", type=click.Path(path_type=Path), help="Folder of the ledger's high-water mark."),
        click.option(
            "--afresh",
            is_flag=True,
            help="Ask as if it had never been asked, of other records or by a newer edition; paid for each time.",
        ),
    ]
    return _all(options, command)


def checked_places(options: dict[str, Any]) -> None:
    """Refuse missing libraries and places that cannot be written, before anything else."""
    need_reader(options["file"])
    need(*([] if options["as_json"] else ["rich"]), *(["jinja2"] if options["report"] else []))
    checked_outputs(options, "report", "save")


def checked_outputs(options: dict[str, Any], *names: str) -> None:
    """Refuse places that cannot be written, and those of FILE, of the ledger and of one another."""
    taken = [*source_files(str(options["file"])), *([] if options.get("ledger") is None else [options["ledger"]])]
    for name in names:
        writable(options[name], f"--{name}", taken)
        taken += [] if options[name] is None else [options[name]]


def checked_words(options: dict[str, Any], **bounds: Sequence[tuple[float, float]]) -> None:
    """Refuse numbers that cannot be used, ranges that are none and a FILE that is not there, as early as can be."""
    checked_numbers(options, **bounds)
    try:
        check_file(str(options["file"]))
    except (ValueError, OSError) as error:
        raise parse.refused(error) from None


def checked_numbers(options: dict[str, Any], **bounds: Sequence[tuple[float, float]]) -> None:
    """Refuse numbers that cannot be used and ranges that are none.

    This is done before a numerical library is imported: a typing error is answered at once.

    Parameters
    ----------
    options : dict
        Of the command; those that it does not have are not checked.
    **bounds
        Ranges, by the names of their options.
    """
    from fogline import _validation

    checks: dict[str, Callable[[Any], object]] = {
        "epsilon": _validation.check_epsilon,
        "delta": _validation.check_delta,
        "level": _validation.check_level,
        "confidence": lambda value: _validation.check_level(value, "confidence"),
        "max_contributions": _validation.check_max_contributions,
        "n_modes": lambda value: _validation.check_count(value, "n_modes"),
    }
    try:
        for name, check in checks.items():
            if options.get(name) is not None:
                check(options[name])
        for name, pairs in bounds.items():
            _validation.check_pairs(pairs, name=name)
    except (ValueError, TypeError) as error:
        raise parse.refused(error) from None


def release(estimator: Any, table: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """Fit, and return the receipt and whether the answer was there before, where a ledger paid."""
    doing = "reading the records, releasing their density once"
    only_with_a_ledger(options)
    if options["ledger"] is None:
        with Phase(doing, quiet=options["as_json"]), loops_for(options, table):
            fit(estimator, table)
        return None

    with opened(options["ledger"], options["high_water"]) as open_ledger:
        with refusals():
            view = view_of(open_ledger, options)
            before = len(open_ledger.history())
        estimator.ledger = view
        with Phase(doing, quiet=options["as_json"]), refusals(), loops_for(options, table):
            fit(estimator, table)
    receipt = estimator.receipt_ if estimator.density_ is None else estimator.density_.receipt
    if receipt is None:
        raise Unreadable("the ledger gave no receipt")
    return {"receipt": receipt, "cached": receipt["commit"] < before}


def view_of(open_ledger: Any, options: dict[str, Any]) -> Any:
    """Return the ledger as the one who asks sees it."""
    view = open_ledger.on(options["dataset"], analyst=options["analyst"])
    return view.afresh() if options.get("afresh") else view


def only_with_a_ledger(options: dict[str, Any]) -> None:
    """Refuse what means nothing without a ledger."""
    for name in ("dataset", "analyst", "high_water"):
        if options["ledger"] is None and options[name] is not None:
            raise click.BadParameter("is of use only with --ledger", param_hint=f"--{name.replace('_', '-')}")
    if options["ledger"] is None and options.get("afresh"):
        raise click.BadParameter("is of use only with --ledger", param_hint="--afresh")


def fit(estimator: Any, table: Any) -> None:
    """Fit, with one constant message for whatever goes wrong once records are touched."""
    from fogline.sources.tables import ReadFailed

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning may depend on the records
            estimator.fit(table)
    except tuple(_ledger_errors(estimator)):
        raise
    except ReadFailed:
        raise Unreadable("the records of FILE could not be read") from None
    except Exception:
        raise Unreadable("the release failed; why is not said, since that may depend on the records") from None


def _ledger_errors(estimator: Any) -> list[type[Exception]]:
    """Return what a ledger raises, which says nothing of the records."""
    if estimator.ledger is None:
        return []
    from fogline.ledger import LedgerRefused, ReleaseFailed

    return [LedgerRefused, ReleaseFailed]


def publish(
    estimator: Any,
    options: dict[str, Any],
    paid: dict[str, Any] | None,
    *,
    command: str,
    columns: Sequence[str] | None = None,
) -> None:
    """Print what was found, for people or as one document, and write what was asked for."""
    from fogline.report import document, find

    as_json: bool = options["as_json"]
    with Phase("reading the release", quiet=as_json):
        findings = find(estimator, columns)
    if as_json:
        print_json({**document(findings, command), **({} if paid is None else paid)})
    else:
        from fogline.cli.show import show_findings, show_payment

        show_findings(findings)
        if paid is not None:
            show_payment(paid)
    if options["save"] is not None:
        write(lambda: estimator.density_.save(options["save"]), "--save")
    if options["report"] is not None:
        from fogline.report import render_report

        page = render_report(findings, command=command)
        write(lambda: options["report"].write_text(page, encoding="utf-8"), "--report")
    if not as_json:
        for what in ("save", "report"):
            if options[what] is not None:
                click.echo(f"{'density' if what == 'save' else 'report'}: {options[what]}")


T = TypeVar("T")

FAILED = "the release failed; why is not said, since that may depend on the records"


def ask(question: Callable[[Any], T], options: dict[str, Any], doing: str) -> tuple[T, dict[str, Any] | None]:
    """Ask a question, with a ledger's view if there is one, and say what was paid.

    Parameters
    ----------
    question : callable
        Takes the view or None; raises ValueError, TypeError or OSError for what is wrong with public things, and before
        it touches any record. Its answer has a ``receipt``.
    options : dict
        Of the command: ``ledger``, ``dataset``, ``analyst``, ``high_water``, ``afresh``, ``as_json``.
    doing : str
        Public words for the terminal.
    """
    only_with_a_ledger(options)
    if options["ledger"] is None:
        with Phase(doing, quiet=options["as_json"]):
            return _asked(question, None), None
    with opened(options["ledger"], options["high_water"]) as open_ledger:
        with refusals():
            view = view_of(open_ledger, options)
            before = len(open_ledger.history())
        with Phase(doing, quiet=options["as_json"]), refusals():
            answer = _asked(question, view)
    receipt = getattr(answer, "receipt", None)
    if receipt is None:
        raise Unreadable("the ledger gave no receipt")
    return answer, {"receipt": receipt, "cached": receipt["commit"] < before}


def _asked(question: Callable[[Any], T], view: Any) -> T:
    from fogline.mechanisms.errors import ReleaseFailed
    from fogline.release.origins import AlreadyReleased

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning may depend on the records
            return question(view)
    except ReleaseFailed:
        raise Unreadable(FAILED) from None
    except AlreadyReleased as error:
        raise parse.refused(ValueError(f"path: {error}")) from None
    except (ValueError, TypeError, OSError) as error:
        raise parse.refused(error) from None
