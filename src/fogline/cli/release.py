"""What the commands that spend a budget share: the checks before, the one fit or question, what is shown after it.

All that can be refused is refused before the records are touched; after that there is one constant message, since any
other might quote them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from fogline.cli import parse
from fogline.cli.common import (
    Phase,
    Unreadable,
    console_for_people,
    need,
    opened,
    print_json,
    refusals,
    writable,
    write,
)
from fogline.cli.options import check_file, loops_for, need_reader, source_files

if TYPE_CHECKING:
    from fogline._typing import LedgerLike
    from fogline.density.private_density import PrivateDensity
    from fogline.ledger import Ledger, LedgerView
    from fogline.report.frame import ConsoleTable
    from fogline.report.page import FindingsLike
    from fogline.sources.tables import Source

__all__ = [
    "ask",
    "checked_numbers",
    "checked_outputs",
    "checked_places",
    "checked_words",
    "fit",
    "only_with_a_ledger",
    "payment_words",
    "progress_bar",
    "publish",
    "recipe_words",
    "release",
    "show_findings",
    "show_payment",
    "view_of",
]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


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


class PaidEstimator(Protocol):
    """An estimator whose budget a ledger may keep."""

    ledger: LedgerLike | None

    def fit(self, X: Source, /) -> object:
        """Release and read."""


class ReleasingEstimator(PaidEstimator, Protocol):
    """An estimator that releases a density, unless its method has none."""

    @property
    def density_(self) -> PrivateDensity | None:
        """The released density."""


def release(estimator: ReleasingEstimator, table: Source, options: dict[str, Any]) -> dict[str, Any] | None:
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
            # An answer that was there before this question has a place among the entries so far.
            before = len(open_ledger.history())
        estimator.ledger = view
        with Phase(doing, quiet=options["as_json"]), refusals(), loops_for(options, table):
            fit(estimator, table)
    density = estimator.density_
    receipt = getattr(estimator, "receipt_", None) if density is None else density.receipt
    if receipt is None:
        raise Unreadable("the ledger gave no receipt")
    return {"receipt": receipt, "cached": receipt["commit"] < before}


def view_of(open_ledger: Ledger, options: dict[str, Any]) -> LedgerView:
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


def fit(estimator: PaidEstimator, table: Source) -> None:
    """Fit, with one constant message for whatever goes wrong once records are touched."""
    from fogline.sources.tables import ReadFailed

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning may depend on the records
            estimator.fit(table)
    # What a ledger says depends on budgets and questions alone, so it may be repeated.
    except tuple(_ledger_errors(estimator)):
        raise
    except ReadFailed:
        raise Unreadable("the records of FILE could not be read") from None
    # whatever it is, one constant line: the words of an error may quote a record
    except Exception:
        raise Unreadable("the release failed; why is not said, since that may depend on the records") from None


def _ledger_errors(estimator: PaidEstimator) -> list[type[Exception]]:
    """Return what a ledger raises, which says nothing of the records."""
    if estimator.ledger is None:
        return []
    from fogline.ledger import LedgerRefused, ReleaseFailed

    return [LedgerRefused, ReleaseFailed]


def publish(
    estimator: ReleasingEstimator,
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
        show_findings(findings)
        if paid is not None:
            show_payment(paid)
    if options["save"] is not None:
        density = estimator.density_
        assert density is not None  # methods that release none were refused with --save
        write(lambda: density.save(options["save"]), "--save")
    if options["report"] is not None:
        from fogline.report import render_report

        # rendered before the file is opened: a page that cannot be made leaves the old one
        page = render_report(findings, command=command + recipe_words())
        write(lambda: options["report"].write_text(page, encoding="utf-8"), "--report")
    if not as_json:
        for what in ("save", "report"):
            if options[what] is not None:
                click.echo(f"{'density' if what == 'save' else 'report'}: {options[what]}")


def recipe_words() -> str:
    """Return the recipe that the running command is a step of, for the page; empty if there is none."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_root().obj
    if not isinstance(found, dict) or "recipe" not in found:
        return ""
    # Line by line: what follows an address in its line may be its password.
    lines = [parse.masked(line) for line in str(found["recipe"]).splitlines()]
    return "\n".join(["", "", f"# a step of the recipe {found['name']}:", *lines])


T = TypeVar("T")

FAILED = "the release failed; why is not said, since that may depend on the records"


def ask(
    question: Callable[[LedgerView | None], T], options: dict[str, Any], doing: str
) -> tuple[T, dict[str, Any] | None]:
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


def _asked(question: Callable[[LedgerView | None], T], view: LedgerView | None) -> T:
    from fogline.mechanisms.errors import ReleaseFailed
    from fogline.releases.origins import AlreadyReleased

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


def show_findings(findings: FindingsLike) -> None:
    """Print the table of some findings, the count, the guarantee, and what would help."""
    from rich.table import Table
    from rich.text import Text

    from fogline.report.page import kind_of

    console = console_for_people()
    found: ConsoleTable = kind_of(findings).get("table")(findings)
    if found.rows:
        table = Table(title=Text(found.title), title_justify="left")
        for j, heading in enumerate(found.headings):
            table.add_column(Text(heading), justify="left" if j in found.left else "right")
        for row in found.rows:
            table.add_row(*map(Text, row))
        console.print(table)
        if found.left_out:
            console.print(found.left_out)
    for words in found.remarks:
        console.print(words, soft_wrap=True)
    for words in found.sentences:
        console.print(words)


def show_payment(paid: dict[str, Any]) -> None:
    """Print what the ledger was charged, or that it was charged nothing."""
    console_for_people().print(payment_words(paid), soft_wrap=True)


def payment_words(paid: dict[str, Any]) -> str:
    """Say what a ledger was charged for an answer, and where that stands in it."""
    receipt = paid["receipt"]
    where = f"entry {receipt['commit']} of the ledger, data set {receipt['dataset']!r}, version {receipt['version']!r}"
    if paid["cached"]:
        edition = f" ({receipt['mechanism']}, edition {receipt['code_version']})" if receipt.get("mechanism") else ""
        return f"Free: this question was asked before, and the answer is that of {where}{edition}."
    amount = receipt["amount"] / 1e12
    named = {"zcdp": f"rho = {amount:.6g}", "pure": f"pure epsilon = {amount:.6g}"}
    words = named.get(receipt["currency"], f"{amount:.6g} of the {receipt['currency']} cap")
    return f"Paid: {words}, {where}{_protected(receipt)}."


def _protected(receipt: dict[str, Any]) -> str:
    """Say for whom a release was accounted, where the receipt knows it."""
    if receipt.get("unit") is None:
        return ""
    from fogline.ledger import ProtectedUnit

    return f", for one {ProtectedUnit(receipt['unit'], receipt['max_contributions'], receipt['enforced'])}"


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """Give a callback that draws a bar on stderr, or None."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, label: bar.update(task, completed=done, total=total, description=label)
