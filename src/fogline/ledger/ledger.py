"""The budget on disk: reserve before touching data, never refund, answer a repeated question from the cache for free.

1. Validate all that is public. 2. Lock the question. 3. In one transaction: return the cached answer, its hash checked,
or append a `reserve`. 4. Raise the high-water mark in another directory. 5. Only now let the release touch the data.
6. Store the payload with a `commit`. 7. Return what the ledger holds, with its receipt.

A reservation without a commit is burned. Errors up to step 3 are free; after it there is one constant error.

What may be declared in a ledger, and in which words.

Reading a ledger's entries out, with their chain checked on the way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from fogline._validation import check_delta, check_epsilon, check_name, check_neighbours
from fogline.accounting.analytic_gaussian import suits
from fogline.accounting.cautions import budget_cautions, warn_of
from fogline.accounting.costs import Cost, PureCost, exact_units, gaussian_release, whole_units
from fogline.accounting.zcdp import rho_of
from fogline.ledger.accounts import GENESIS, Account, Place, chain
from fogline.ledger.caps import AnyCost, Caps, Charge, Lane
from fogline.ledger.files import DiskReservation, found, located, marks_for, sweep
from fogline.ledger.protocol import LedgerContext, Request, answer_at, paid_answers, receipt_at, spend
from fogline.ledger.question import LedgerRefused, Question, canonical
from fogline.ledger.receipts import Answer, Entry, PaidAnswer, Plan, Receipt, Remaining
from fogline.ledger.session import MarkFailed, Purpose, Session
from fogline.ledger.shared_cap import Spending
from fogline.ledger.store import Store, StoreFailed
from fogline.ledger.units import ProtectedUnit, checked_sources
from fogline.ledger.view import LedgerView, planned, promise, remaining

__all__ = ["MAX_PAYLOAD", "Ledger", "cost_of", "dataset_declaration", "entries", "write_lines"]


def dataset_declaration(
    dataset: str,
    version: str,
    neighbours: str,
    caps: Caps,
    unit: ProtectedUnit | None = None,
    sources: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the entry that declares a data set.

    Examples
    --------
    >>> dataset_declaration("patients", "2024", "replace", Caps(epsilon=1.0, delta=1e-6))["neighbours"]
    'replace'
    """
    return {
        "kind": "dataset",
        "dataset": check_name(dataset, "dataset"),
        "version": check_name(version, "version"),
        "neighbours": check_neighbours(neighbours),
        "caps": caps.to_dict(),
        "unit": None if unit is None else unit.to_dict(),
        "sources": checked_sources(sources),
    }


def cost_of(cost: Any, ledger: Any = None) -> Any:
    """Return a cost, or that of an estimator which has a method `cost()`, as `ledger` would pay for it.

    What a release costs depends on the lane of the ledger: an estimator without one is asked as if it had this one.

    Examples
    --------
    >>> cost_of("a histogram")
    Traceback (most recent call last):
    fogline.ledger.question.LedgerRefused: str has no cost: it cannot be planned or paid for (check: cost)
    """
    if not isinstance(cost, AnyCost):
        method = getattr(cost, "cost", None)
        if not callable(method):
            raise LedgerRefused("cost", f"{type(cost).__name__} has no cost: it cannot be planned or paid for")
        if ledger is not None and getattr(cost, "ledger", ledger) is None:
            paying = copy(cost)
            paying.ledger = ledger
            method = paying.cost
        return method()
    return cost


def entries(store: Store) -> Iterator[Entry]:
    """Yield the entries of a file, oldest first, within a transaction that is open already."""
    previous = GENESIS
    for seq, text, digest in store.connection.execute("SELECT seq, content, hash FROM entries ORDER BY seq"):
        if chain(previous, text) != digest:
            raise LedgerRefused("chain", f"entry {seq} of the ledger was changed")
        content = json.loads(text)
        yield Entry(seq, content["kind"], content["time"], MappingProxyType(content), digest.hex())
        previous = digest


def write_lines(path: Path, listed: Iterable[Entry]) -> None:
    r"""Write entries as JSON, one per line; each line's hash is that of the line before and its content.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_lines(Path(folder, "out"), [Entry(0, "genesis", "2024", {"seq": 0}, "00")])
    ...     Path(folder, "out").read_text()
    '{"content":{"seq":0},"hash":"00"}\n'
    """
    with path.open("xb") as file:
        for entry in listed:
            file.write(canonical({"content": dict(entry.content), "hash": entry.hash}) + b"\n")


def _new_caps(
    epsilon: float | None,
    delta: float | None,
    approximate: tuple[float, float] | None,
    integral: float | None,
    lane: Lane,
    set_aside: float | None,
) -> Caps:
    """Return caps as they are declared now: with a split of delta, where there is a delta to split.

    A cap that promises little is warned of here, before it is written: each release within it may look small.
    """
    splits = lane == "zcdp" and bool(delta)
    # a split that says nothing is not written down; one that says something is refused by the caps themselves
    caps = Caps(epsilon, delta, approximate, integral, lane, set_aside if splits or set_aside else None)
    warn_of(budget_cautions(caps.epsilon or 0.0, caps.delta or 0.0))
    return caps


def _split_of(account: Account) -> float | None:
    """Return the split that a cap keeps when it changes: its own; that of a cap without a delta is yet to be made."""
    return account.caps.set_aside if account.caps is not None and account.caps.delta else 0.0


MAX_PAYLOAD = 8 * 2**20
FilePath = str | os.PathLike[str]


class Ledger:
    """A privacy budget on disk that cannot be overspent. Make one with `create`, use one with `open`.

    Several processes may use one file at a time; a process opens it once, and a forked child opens it anew.

    Examples
    --------
    >>> import tempfile
    >>> from fogline.accounting import Cost
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"{folder.name}/budget", dataset="patients", epsilon=1.0, delta=1e-6,
    ...                        high_water=f"{folder.name}/marks")
    >>> question = Question("patients", "1", "count", "1", {"scale": 10})
    >>> ask = dict(cost=Cost(0.005), neighbours="add-remove", certified=True)
    >>> ledger.spend(question, release=lambda: b"about 90", **ask)
    Answer(8 bytes, new, entry 3)
    >>> ledger.spend(question, release=lambda: b"never called", **ask).payload
    b'about 90'
    >>> ledger.plan(Cost(0.005)).times
    3
    >>> ledger.verify()
    4
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        locks = session.path.with_name(session.path.name + ".locks")
        try:
            locks.mkdir(mode=0o700, exist_ok=True)
            # room of processes that died while they answered
            sweep(locks)
            self._context = LedgerContext(session, locks, DiskReservation(locks))
        except OSError:
            session.close()
            raise LedgerRefused("read-only", "there is no place for locks beside the ledger") from None

    @classmethod
    def create(
        cls,
        path: FilePath,
        *,
        dataset: str,
        epsilon: float,
        delta: float,
        neighbours: str = "add-remove",
        version: str = "1",
        approximate: tuple[float, float] | None = None,
        integral: float | None = None,
        unit: str | None = None,
        max_contributions: int | None = None,
        sources: Sequence[str] | None = None,
        high_water: FilePath | None = None,
        lane: Lane = "zcdp",
        set_aside: float = 0.0,
    ) -> Ledger:
        """Make a new ledger with one data set and open it.

        Parameters
        ----------
        path : path
            Of a file that does not exist yet, on a local file system.
        dataset, epsilon, delta, neighbours, version, approximate, integral, unit, max_contributions, sources, lane, \
set_aside
            The first data set, as in `add_dataset`.
        high_water : path, optional
            Directory of the high-water mark, by default ``$XDG_STATE_HOME/fogline`` or ``~/.local/state/fogline``.
            Must be the same on each opening, and best not on the same backup as the ledger.
        """
        caps = _new_caps(epsilon, delta, approximate, integral, lane, set_aside)
        protected = ProtectedUnit.declared(unit, max_contributions)
        declaration = dataset_declaration(dataset, version, neighbours, caps, protected, sources)
        # with its data set in the first transaction: there is never a ledger without a cap
        target = found(path, high_water, [declaration])
        return cls.open(target, high_water=high_water)

    @classmethod
    def open(cls, path: FilePath, *, high_water: FilePath | None = None) -> Ledger:
        """Open a ledger, having checked all of it; any doubt is a refusal that names the check."""
        target = located(path)
        return cls(Session(target, marks_for(target, high_water)))

    @classmethod
    def adopt(cls, path: FilePath, *, high_water: FilePath | None = None) -> Ledger:
        """Open a ledger that has no high-water mark here, because it was moved from elsewhere.

        You vouch that this is the newest copy and that no other will be used. The adoption is an entry of its own.
        Where there is a mark, it is not overruled: the file must agree with it, as on `open`.
        """
        target = located(path)
        ledger = cls(Session(target, marks_for(target, high_water), adopting=True))
        try:
            ledger._written("adopt", lambda: None)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def close(self) -> None:
        """Close the file; whatever is asked afterwards is refused."""
        self._session.close()
        self._context.disk_reservation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # opening may have failed before there was anything to close
        if hasattr(self, "_context"):
            self.close()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> LedgerView:
        return LedgerView(self, None).afresh()  # an estimator that is cloned pays for questions of its own

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a Ledger is not pickled: workers never hold it, open it where it is used")

    @property
    def path(self) -> Path:
        """Where the ledger is."""
        return self._session.path

    @property
    def id(self) -> str:
        """The ledger's identity, which its receipts bear."""
        return self._session.ledger

    # -- declarations -----------------------------------------------------------------------------------

    def add_dataset(
        self,
        dataset: str,
        *,
        epsilon: float,
        delta: float,
        neighbours: str = "add-remove",
        version: str = "1",
        approximate: tuple[float, float] | None = None,
        integral: float | None = None,
        unit: str | None = None,
        max_contributions: int | None = None,
        sources: Sequence[str] | None = None,
        lane: Lane = "zcdp",
        set_aside: float = 0.0,
    ) -> None:
        """Add a data set with its cap.

        Parameters
        ----------
        dataset, version : str
            A name, and which edition of the data it stands for. All editions draw on one budget, since they hold the
            same people; see `new_version`.
        epsilon, delta : float
            The most that all releases accounted in zCDP or in pure epsilon may amount to together. With a delta of 0
            only pure releases are paid for, and their epsilons add up.
        neighbours : {"add-remove", "replace"}
            Releases that are proved only for the other relation are refused.
        approximate : (epsilon, delta), optional
            A separate cap for mechanisms known only by epsilon and delta, added up. Without it they are refused.
        integral : float, optional
            A separate cap, an epsilon, for integrally private draws.
        unit : str, optional
            What is protected as a whole: "record", or the column that says whose record a row is. Releases for another
            unit are refused. Not given, it is fixed by the first release that is paid for.
        max_contributions : int, optional
            The most records of a unit that a release may count. Without a unit's column it is what the owner declares
            that a person has at most, and releases must declare the same.
        sources : list of paths or addresses, optional
            Where the records are: questions to anything else are refused. Not given, the first question to a version
            fixes it, and other places are refused unless they are asked afresh.
        lane : {"zcdp", "gaussian"}
            In what releases are added up beside pure epsilon, fixed for good: in zCDP, which every mechanism has that
            needs a delta; or in Gaussian differential privacy, in which about one eighth more releases of Gaussian
            noise fit into the same cap, and which takes nothing else but pure epsilon.
        set_aside : float
            Part of `delta` for mechanisms with a delta of their own, such as stable histograms. Where it is 0, they may
            take of delta until and with the first release in rho, and nothing afterwards: a split that moves with the
            answers would not hold what the cap says (``shared_cap.proof.md``).
        """
        caps = _new_caps(epsilon, delta, approximate, integral, lane, set_aside)
        protected = ProtectedUnit.declared(unit, max_contributions)
        self._declare(dataset_declaration(dataset, version, neighbours, caps, protected, sources))

    def new_version(self, dataset: str, version: str, *, sources: Sequence[str] | None = None) -> None:
        """Declare that the data have changed: questions are asked of the new version, on the same budget.

        `sources` take the place of the data set's declared ones, where they are given.
        """
        content = {"kind": "version", "dataset": dataset, "version": check_name(version, "version")}
        self._declare({**content, "sources": checked_sources(sources)})

    def declare_partition(self, dataset: str, name: str, parts: Sequence[str]) -> None:
        """Declare that each protected unit lies in at most one of the named parts, whatever it does.

        Releases on different parts then cost together what the dearest part costs ("add-remove") or what the two
        dearest parts cost ("replace"). The ledger cannot check the claim; it stands in the history as yours. Under
        "replace" a record may leave one part and enter another: releases that are not proved for the gain and the loss
        of a record are refused there.
        """
        # a text is a sequence of letters
        if isinstance(parts, str) or len(set(parts)) != len(parts) or len(parts) < 2:
            raise ValueError("parts must be two or more different names")
        listed = [check_name(part, "parts") for part in parts]
        content = {"kind": "partition", "dataset": dataset, "partition": check_name(name, "name"), "parts": listed}
        self._declare(content)

    def add_analyst(
        self,
        analyst: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        approximate: tuple[float, float] | None = None,
        integral: float | None = None,
        lane: Lane = "zcdp",
        set_aside: float = 0.0,
    ) -> None:
        """Add an analyst, with a cap on all they spend, over all data sets, or without one.

        The cap says how much an analyst may *spend*. Answers that are in the ledger already are as good as published,
        and free to all. From now on every question must say who asks it. `lane` and `set_aside` are as in
        `add_dataset`; Gaussian noise counts in the lane of zCDP, too, but not the other way round.
        """
        caps = _new_caps(epsilon, delta, approximate, integral, lane, set_aside)
        content = {"kind": "analyst", "analyst": check_name(analyst, "analyst")}
        self._declare({**content, "caps": None if caps == Caps() else caps.to_dict()})

    def set_cap(
        self,
        *,
        dataset: str | None = None,
        analyst: str | None = None,
        epsilon: float,
        delta: float,
        approximate: tuple[float, float] | None = None,
        integral: float | None = None,
        set_aside: float | None = None,
    ) -> None:
        """Change the cap of a data set or an analyst, not below what is spent. The change stays in the history.

        Its lane remains what it was, and so does the split of its delta, unless `set_aside` is given (`add_dataset`).
        What is proved is proved for a cap that was not chosen by the answers.
        """
        if (dataset is None) == (analyst is None):
            raise TypeError("name a dataset or an analyst")

        def current() -> Account:
            known = self._session.accounts
            return known.analyst(str(analyst)) if dataset is None else known.dataset(dataset).account

        lane, split = self._session.read(lambda: (current().lane, _split_of(current())))
        aside = split if set_aside is None else set_aside
        caps = _new_caps(epsilon, delta, approximate, integral, lane, aside).to_dict()
        self._declare({"kind": "cap", "dataset": dataset, "analyst": analyst, "caps": caps})

    def _declare(self, content: dict[str, Any]) -> None:
        self._written("declare", lambda: self._session.append(content))

    def _written(self, purpose: Purpose, action: Callable[[], object]) -> None:
        try:
            self._session.write(purpose, action)
        except StoreFailed as error:
            raise LedgerRefused("file", f"the ledger cannot be written: {error}") from None
        except MarkFailed:
            raise LedgerRefused("high-water", "this was written, but not the high-water mark") from None

    # -- spending ---------------------------------------------------------------------------------------

    def spend(
        self,
        question: Question,
        *,
        cost: AnyCost,
        neighbours: str,
        certified: bool,
        release: Callable[[], bytes],
        analyst: str | None = None,
        partition: tuple[str, str] | None = None,
        max_payload: int = MAX_PAYLOAD,
        unit: str | None = "record",
        max_contributions: int = 1,
        enforced: bool | None = None,
        gain_and_loss: bool = False,
        also_reads: Sequence[str] = (),
        formerly: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Answer a question: from the ledger if it was asked before, else by `release`, once it is paid for.

        Parameters
        ----------
        question : Question
        cost : Cost, GaussianCost, PureCost, ApproximateCost or IntegralCost
        neighbours : {"add-remove", "replace"}
            What the cost is proved for.
        certified : bool
            Whether fogline stands behind the cost for every data set; refused if not.
        release : callable
            Touches the data and returns the answer as bytes. Called at most once, after the reservation is on the disk.
        analyst : str, optional
            Who asks; pays from their cap as well. Required once the ledger has analysts.
        partition : (name, part), optional
            The part of a declared partition that `release` looks at, and nothing else.
        max_payload : int
            The most bytes the answer may have; the disk must have room for them before anything is charged.
        unit : str or None
            What the cost protects as a whole: "record", or the column that says whose record a row is. None for what
            holds whatever the unit is.
        max_contributions : int
            The most records of a unit that the cost allows for.
        enforced : bool, optional
            Whether `release` cuts the records of each unit to that number; else it is only declared.
        gain_and_loss : bool
            Whether the cost holds for the gain and for the loss of a record too, where `neighbours` is "replace": the
            number of records is not taken for public. Only then may a part of a partition be asked.
        also_reads : sequence of str
            Earlier editions (``code_version``) whose answers do as well. An answer by any other edition is neither
            given nor charged for again: the question is refused, and `answers` has the answer.
        formerly : mapping, optional
            Parameters of the question in the words of earlier versions, if they were others.

        Raises
        ------
        LedgerRefused
            Nothing was charged and no data were touched. `BudgetExceeded` is one of these.
        ReleaseFailed
            Something failed after the reservation, which is spent. What failed is not said.
        """
        request = Request.checked(
            question,
            cost=cost,
            neighbours=neighbours,
            certified=certified,
            analyst=analyst,
            partition=partition,
            max_payload=max_payload,
            unit=ProtectedUnit.of_release(unit, max_contributions, enforced),
            gain_and_loss=gain_and_loss,
            also_reads=also_reads,
            formerly=formerly,
        )
        try:
            return spend(self._context, request, release)
        finally:
            del release  # an error's traceback must not lead to the data

    @staticmethod
    def rho_of(epsilon: float, delta: float) -> float:
        """Return the rho of a release stated as (epsilon, delta), in whole units: a cap of as much affords it."""
        return whole_units(rho_of(epsilon, delta))

    def release_cost(self, epsilon: float, delta: float, *, dataset: str | None = None) -> AnyCost:
        """Return what a release of Gaussian noise at (epsilon, delta) costs in a data set; pure where delta is 0.

        In the Gaussian lane that is its price by the analytic curve, if the curve suits it.
        """
        if delta == 0.0:
            return PureCost(exact_units(check_epsilon(epsilon)))
        if self.lane(dataset) == "gaussian" and suits(check_epsilon(epsilon), check_delta(delta)):
            return gaussian_release(epsilon, delta)
        return Cost(self.rho_of(epsilon, delta))

    def on(
        self, dataset: str | None = None, *, analyst: str | None = None, partition: tuple[str, str] | None = None
    ) -> LedgerView:
        """Return the ledger as one analyst sees one data set, or a part of it: what estimators are given.

        Parameters
        ----------
        dataset : str, optional
            Need not be named where there is only one.
        """
        return LedgerView(self, self._session.read(lambda: self._only(dataset)), analyst=analyst, partition=partition)

    def ask(self, mechanism: str, **asked: Any) -> Answer:
        """Ask the only data set in the ledger; the rest is as in `LedgerView.ask`."""
        return self.on().ask(mechanism, **asked)

    # -- looking ----------------------------------------------------------------------------------------

    def version(self, dataset: str | None = None) -> str:
        """Return the current version of a data set."""
        accounts = self._session
        return accounts.read(lambda: accounts.accounts.dataset(self._only(dataset)).versions[-1])

    def lane(self, dataset: str | None = None) -> Lane:
        """Return the lane of a data set: "zcdp" or "gaussian"."""
        return self._session.read(lambda: self._session.accounts.dataset(self._only(dataset)).account.lane)

    def spending(self, dataset: str | None = None) -> Spending:
        """Return what a data set has spent of the cap that its lane shares with pure epsilon, in whole units."""
        return self._session.read(lambda: self._session.accounts.dataset(self._only(dataset)).account.spending)

    def promise(self, dataset: str | None = None) -> str:
        """Return what the cap of a data set promises of all releases together, in one sentence that is proved.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(f"{folder.name}/budget", dataset="patients", epsilon=1.0, delta=1e-6,
        ...                        high_water=f"{folder.name}/marks")
        >>> ledger.promise()
        'all releases together are (1, 1e-06)-DP, whatever analysts decide by the answers'
        >>> ledger.close()
        >>> folder.cleanup()
        """
        return self._session.read(lambda: promise(self._session.accounts.dataset(self._only(dataset)).account))

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the data sets."""
        return self._session.read(lambda: tuple(self._session.accounts.datasets))

    @property
    def analysts(self) -> tuple[str, ...]:
        """The names of the analysts."""
        return self._session.read(lambda: tuple(self._session.accounts.analysts))

    def unit(self, dataset: str | None = None) -> ProtectedUnit | None:
        """Return what a data set protects as a whole; None until it is declared, or fixed by a first release."""
        return self._session.read(lambda: self._session.accounts.dataset(self._only(dataset)).unit)

    def answers(self, dataset: str | None = None) -> tuple[PaidAnswer, ...]:
        """Return all answers that were paid for, oldest first, whichever edition of a mechanism gave them. Free.

        Their payloads are read one at a time, by `answer`.

        Examples
        --------
        >>> import tempfile
        >>> from fogline.accounting import Cost
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(f"{folder.name}/budget", dataset="patients", epsilon=1.0, delta=1e-6,
        ...                        high_water=f"{folder.name}/marks")
        >>> asked = dict(parameters={}, cost=Cost(0.005), neighbours="add-remove", certified=True)
        >>> _ = ledger.ask("count", code_version="count-1", release=lambda: b"about 90", **asked)
        >>> for paid in ledger.answers():
        ...     print(paid.question.code_version, ledger.answer(paid.receipt.commit).payload)
        count-1 b'about 90'
        >>> ledger.close()
        >>> folder.cleanup()
        """
        session = self._session

        def look() -> tuple[PaidAnswer, ...]:
            name = None if dataset is None else self._only(dataset)
            seqs = sorted(seq for listed in session.accounts.answered.values() for seq in listed)
            found = paid_answers(session.store, session.ledger, seqs)
            return tuple(paid for paid in found if name is None or paid.question.dataset == name)

        return session.read(look)

    def answer(self, entry: int) -> Answer:
        """Return the answer at an entry, as `answers` lists it in ``receipt.commit``. Free."""
        session = self._session
        return session.read(lambda: answer_at(session.store, entry, session.ledger))

    def remaining(self, dataset: str | None = None, analyst: str | None = None) -> Remaining:
        """Return what is left of a data set's budget, and of an analyst's where one is named: the lesser."""
        return self._session.read(lambda: remaining(self._accounts(self._only(dataset), analyst)))

    def plan(
        self,
        cost: AnyCost | Any,
        *,
        dataset: str | None = None,
        analyst: str | None = None,
        partition: tuple[str, str] | None = None,
    ) -> Plan:
        """Return what a cost, or an estimator that has a method `cost()`, would come to. Free.

        A plan knows nothing of cached answers: asking again is cheaper than planned.
        """
        charge = Charge.of(cost_of(cost, self.on(dataset)))

        def look() -> Plan:
            name = self._only(dataset)
            place = Place(name, self._session.accounts.dataset(name).neighbours, partition)
            return planned(self._accounts(name, analyst), charge, place)

        return self._session.read(look)

    def history(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first, their chain checked once more."""
        return self._session.read(lambda: tuple(entries(self._session.store)))

    def verify(self) -> int:
        """Check everything as on opening, and return the number of entries; any doubt is a refusal."""
        return self._session.verify()

    def export(self, path: FilePath) -> None:
        """Write all entries as lines of JSON to a new file: for archives and auditors, without the answers."""
        target = Path(path).resolve()
        if target == self.path:
            raise ValueError("path must not be the ledger itself")
        write_lines(target, self.history())

    def _only(self, dataset: str | None) -> str:
        known = self._session.accounts.datasets
        if dataset is None:
            if len(known) != 1:
                raise LedgerRefused("dataset", f"name one of the data sets: {', '.join(map(repr, known))}")
            return next(iter(known))
        self._session.accounts.dataset(dataset)
        return dataset

    def _accounts(self, dataset: str, analyst: str | None) -> list[Account]:
        ledger_accounts = self._session.accounts
        accounts = [ledger_accounts.dataset(dataset).account]
        return accounts if analyst is None else [*accounts, ledger_accounts.analyst(analyst)]

    def _holds(self, receipt: Receipt) -> bool:
        session = self._session
        stored = session.read(lambda: receipt_at(session.store, receipt.commit, session.ledger))
        return stored is not None and receipt.agrees(stored)
