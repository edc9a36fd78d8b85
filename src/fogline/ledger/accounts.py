r"""Running totals: one number each, added up over a data set and its declared partitions.

A release on the whole data set adds to the total. Releases on the parts of a declared partition cost together what
the dearest part costs under add-remove, and what the two dearest cost under replace: a replaced record may leave one
part and enter another. Integrally private draws always add up: they promise something about a change of all records at
once, in every part.

The books: what the entries of a ledger add up to, and whether they may stand as they do.

An entry is canonical JSON. Its hash is SHA-256 over the hash before it and its own bytes, so no entry can change,
vanish or move without changing every hash after it. The books are nothing but a fold over the entries; the same
`apply` reads an old file and adds a new entry, so what is written is what will be accepted.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from fogline._validation import Neighbours, check_neighbours
from fogline.ledger.caps import (
    CURRENCIES,
    Caps,
    Charge,
    Currency,
    Lane,
)
from fogline.ledger.gaussian_cap import pure_as_gaussian
from fogline.ledger.question import BudgetExceeded, LedgerRefused, canonical, kin_of, no_cap_words
from fogline.ledger.shared_cap import Spending
from fogline.ledger.units import AFRESH, ProtectedUnit, source_of

__all__ = [
    "FORMAT",
    "GENESIS",
    "Account",
    "Accounts",
    "Dataset",
    "Place",
    "Tally",
    "chain",
]


@dataclass(frozen=True)
class Place:
    """Where in a data set a release looked.

    Examples
    --------
    >>> Place("patients", "add-remove", ("sex", "f")).touched
    1
    """

    dataset: str
    neighbours: Neighbours
    partition: tuple[str, str] | None = None

    @property
    def touched(self) -> int:
        """The number of parts of a partition that one changed unit can touch."""
        return 1 if self.neighbours == "add-remove" else 2


@dataclass
class Tally:
    """A sum of whole units with the rule for partitions.

    Examples
    --------
    >>> tally = Tally()
    >>> for part, units in [("f", 5), ("m", 3), ("f", 1)]:
    ...     tally.add(units, Place("patients", "add-remove", ("sex", part)))
    >>> tally.total
    6
    >>> tally.after(4, Place("patients", "add-remove", ("sex", "m")))
    7
    """

    total: int = 0
    parts: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def after(self, units: int, place: Place) -> int:
        """Return what the total would be with `units` more at `place`."""
        if place.partition is None:
            return self.total + units
        name, part = place.partition
        spent = self.parts.get((place.dataset, name), {})
        grown = {**spent, part: spent.get(part, 0) + units}
        # only the dearest parts are in the total: another one costs nothing until it overtakes them
        return self.total - _dearest(spent, place.touched) + _dearest(grown, place.touched)

    def add(self, units: int, place: Place) -> None:
        """Add `units` at `place`."""
        self.total = self.after(units, place)
        if place.partition is not None:
            name, part = place.partition
            spent = self.parts.setdefault((place.dataset, name), {})
            spent[part] = spent.get(part, 0) + units


@dataclass
class Account:
    """What a data set or an analyst has spent in each currency, and may spend.

    `caps` is None for an analyst without a limit of their own.

    Examples
    --------
    >>> account = Account(Caps(epsilon=1.0, delta=1e-5))
    >>> account.add(Charge("zcdp", 7), Place("patients", "add-remove"))
    >>> account.spent("zcdp")
    (7, 0)
    """

    caps: Caps | None
    amounts: dict[Currency, Tally] = field(default_factory=dict)
    deltas: dict[Currency, Tally] = field(default_factory=dict)
    pure_before: int = 0
    """Pure epsilon that was spent when the first rho was, or the first of the Gaussian lane."""
    delta_before: int = 0
    """Delta that was spent with the first rho of zCDP, and before it."""
    mixed: Fraction = Fraction(0)
    """The largest delta of a cap without a fixed split under which deltas were spent after the first rho."""

    @property
    def lane(self) -> Lane:
        """What is spent beside pure epsilon; zCDP where there is no cap."""
        return "zcdp" if self.caps is None else self.caps.lane

    @property
    def is_split(self) -> bool:
        """Whether the cap has fixed how its delta is split between rho and mechanisms with a delta of their own."""
        return self.caps is not None and self.caps.set_aside is not None

    def own(self, charge: Charge) -> Charge:
        """Return a charge as it counts here: Gaussian noise in the lane of zCDP as the rho that it is."""
        # its distance to GDP matters to the curve alone: the noise is rho-zCDP without exception
        return Charge("zcdp", charge.amount) if charge.currency == "gaussian" and self.lane == "zcdp" else charge

    def _in_lane(self, charge: Charge) -> Charge | None:
        """Return what a pure charge takes of the Gaussian lane, once that is in use; None where it takes nothing."""
        if charge.currency != "pure" or self.lane != "gaussian" or self.spent("gaussian")[0] == 0:
            return None
        return Charge("gaussian", pure_as_gaussian(charge.amount))

    def spent(self, currency: Currency) -> tuple[int, int]:
        """Return the amount and the delta spent, in units."""
        if currency not in self.amounts:
            return 0, 0
        return self.amounts[currency].total, self.deltas[currency].total

    def after(self, charge: Charge, place: Place) -> tuple[int, int]:
        """Return what would be spent with one more charge."""
        charge = self.own(charge)
        amount = self.amounts.get(charge.currency) or Tally()
        delta = self.deltas.get(charge.currency) or Tally()
        # draws of integral privacy count everywhere, whichever part they looked at
        place = _reached(charge, place)
        return amount.after(charge.amount, place), delta.after(charge.delta, place)

    @property
    def spending(self) -> Spending:
        """What the two currencies that share a cap have taken of it."""
        pure, (rho, delta) = self.spent("pure")[0], self.spent(self.lane)
        return Spending(pure, self.pure_before if rho else pure, rho, delta, self.delta_before if rho else delta)

    @property
    def promised_delta(self) -> Fraction:
        """The delta at which the epsilon of the cap is proved, whatever was decided by the answers."""
        return Fraction(0 if self.caps is None else self.caps.delta or 0.0) + self.mixed

    def budget(self, currency: Currency, delta: int, caps: Caps | None = None) -> tuple[int, int] | None:
        """Return how much may be spent in a currency in all, and how much delta, where `delta` is spent in it.

        By the account's own caps, or by others; None where there is no cap.
        """
        caps = caps or self.caps
        return None if caps is None else caps.budget(currency, delta, self.spending)

    def admits(self, charge: Charge, place: Place) -> bool:
        """Say whether one more charge stays within the caps; there may be none."""
        if self.caps is None:
            return True
        amount, delta = self.after(charge, place)
        budget = self.budget(self.own(charge).currency, delta)
        if budget is None or amount > budget[0] or delta > budget[1]:
            return False
        return self.admits_in_lane(charge, place)

    def admits_in_lane(self, charge: Charge, place: Place) -> bool:
        """Say whether what a pure charge takes of the Gaussian lane, if anything, stays within the cap."""
        taken = self._in_lane(charge)
        return taken is None or self.admits(taken, place)

    def charged(self, charge: Charge, place: Place) -> Account:
        """Return what the account would be with one more charge."""
        # a plan must not touch the books
        changed = deepcopy(self)
        changed.add(charge, place)
        return changed

    def add(self, charge: Charge, place: Place) -> None:
        """Add one charge."""
        # asked for before anything is added: what was spent decides whether the lane is in use
        charge, taken = self.own(charge), self._in_lane(charge)
        if taken is not None:
            self.add(taken, place)
        place = _reached(charge, place)
        # pure epsilon of before is simply gone; from the first rho on the two share one order (shared_cap.proof.md)
        first = charge.currency == self.lane and charge.amount > 0 and self.spent(self.lane)[0] == 0
        if first:
            self.pure_before = self.spent("pure")[0]
        self.amounts.setdefault(charge.currency, Tally()).add(charge.amount, place)
        self.deltas.setdefault(charge.currency, Tally()).add(charge.delta, place)
        if charge.currency != "zcdp":
            return
        rho, delta = self.spent("zcdp")
        if first:
            self.delta_before = delta
        elif rho and delta > self.delta_before and charge.delta and self.caps and self.caps.set_aside is None:
            # a split that moved with the answers: from here on the promise is at a larger delta, and says so
            self.mixed = max(self.mixed, Fraction(self.caps.delta or 0.0))


def _reached(charge: Charge, place: Place) -> Place:
    """Say where a charge counts: that of integral privacy everywhere, whichever part it looked at."""
    return replace(place, partition=None) if charge.currency == "integral" else place


def _dearest(spent: dict[str, int], touched: int) -> int:
    # a unit is in one part, and in two once it is replaced
    return sum(heapq.nlargest(touched, spent.values()))


FORMAT = 2
_EARLY = 1
"""Ledgers of this format know neither their marks nor the groups that their entries were written in."""

GENESIS = b"\0" * 32
_SLACK = 2
"""Units by which a budget may differ that another machine's logarithms have converted."""


def chain(previous: bytes, content: str) -> bytes:
    """Return the hash of an entry.

    Examples
    --------
    >>> chain(GENESIS, "{}").hex()[:8]
    'fb1634c4'
    """
    return hashlib.sha256(previous + content.encode("utf-8")).digest()


@dataclass
class Dataset:
    """A data set as the ledger knows it: its relation, its versions (the last one is current), its partitions.

    Its unit is declared, or fixed by its first release: `unit_entry` says where. Its `sources` are declared, or None;
    then `source` is where the first question to the current version found its records.
    """

    neighbours: Neighbours
    versions: list[str]
    account: Account
    partitions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unit: ProtectedUnit | None = None
    unit_entry: int | None = None
    sources: tuple[str, ...] | None = None
    source: str | None = None


@dataclass
class Accounts:
    """All that the entries so far add up to.

    Examples
    --------
    >>> accounts = Accounts()
    >>> content = accounts.compose({"kind": "genesis", "ledger": "a" * 32, "format": FORMAT}, "2024-01-01T00:00:00")
    >>> _ = accounts.apply(0, content, chain(GENESIS, content))
    >>> accounts.next_seq
    1
    """

    ledger: str = ""
    marks: str = ""
    """Identity of the high-water mark that the file belongs to; "" in a ledger of format 1."""
    group: int = -1
    """First of the entries that were written in one transaction with the last one; -1 where it is not known."""
    next_seq: int = 0
    tip: bytes = GENESIS
    time: str = ""
    datasets: dict[str, Dataset] = field(default_factory=dict)
    analysts: dict[str, Account] = field(default_factory=dict)
    waiting: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Reservations that have no answer (yet): sequence number, fingerprint and kin."""
    answered: dict[str, list[int]] = field(default_factory=dict)
    """Entries of answers, by the kin of their questions: what is the same in all editions of a mechanism."""
    _first: int = 0

    # -- writing ----------------------------------------------------------------------------------------

    def begin_group(self) -> None:
        """Let the entries that follow be one group, until the next begins."""
        self._first = self.next_seq

    def compose(self, content: dict[str, Any], now: str) -> str:
        """Return the canonical text of the next entry. Time never runs backwards in the books."""
        # a clock that was set back must not make the file look tampered with
        placed = {"seq": self.next_seq, "group": self._first, "time": max(now, self.time)}
        return canonical({**content, **placed}).decode("ascii")

    def reservation(self, charge: Charge, place: Place, analyst: str | None, content: dict[str, Any]) -> dict[str, Any]:
        """Return `content` with the totals that a reservation leads to; refuse what no cap allows."""
        totals = self._totals(charge, place, analyst)
        payers = [("", f"data set {place.dataset!r}", self.datasets[place.dataset].account)]
        if analyst is not None:
            payers.append(("analyst_", f"analyst {analyst!r}", self.analysts[analyst]))
        for owner, name, account in payers:
            fits = f"{owner}spent" not in totals or _within(totals, owner)
            if not fits or not account.admits_in_lane(charge, place):
                raise BudgetExceeded(f"the budget of {name} does not allow for this release{_split(totals, account)}")
        return {**content, **totals}

    def _totals(self, charge: Charge, place: Place, analyst: str | None) -> dict[str, int]:
        totals = _total(self.datasets[place.dataset].account, charge, place, "")
        if analyst is not None:
            totals |= _total(self.analysts[analyst], charge, place, "analyst_")
        return totals

    # -- reading ----------------------------------------------------------------------------------------

    def apply(self, seq: int, content: str, digest: bytes) -> dict[str, Any]:
        """Take the next entry into the books and return it; refuse it if it does not follow from those before."""
        # both: a missing entry, and one that was changed, moved or added
        if seq != self.next_seq or chain(self.tip, content) != digest:
            raise LedgerRefused("chain", f"entry {self.next_seq} of the ledger is missing or was changed")
        entry: dict[str, Any] = json.loads(content)
        kind = entry["kind"]
        if entry["seq"] != seq or (seq == 0) != (kind == "genesis"):
            raise LedgerRefused("chain", f"entry {seq} of the ledger is out of its place")
        group = entry.get("group", -1)
        # an entry begins a group or continues the one before it
        if group not in (seq, self.group):
            raise LedgerRefused("chain", f"entry {seq} of the ledger belongs to no group")
        if entry["time"] < self.time:
            raise LedgerRefused("time", f"entry {seq} of the ledger is older than the one before it")
        try:
            handler = _HANDLERS[kind]
        except KeyError:
            raise LedgerRefused("schema", f"entry {seq} of the ledger is of an unknown kind") from None
        handler(self, entry)
        self.next_seq, self.tip, self.time, self.group = seq + 1, digest, entry["time"], group
        return entry

    def _genesis(self, entry: dict[str, Any]) -> None:
        if entry["format"] not in (_EARLY, FORMAT):
            raise LedgerRefused("version", f"the ledger has format {entry['format']}, this is fogline for {FORMAT}")
        self.ledger, self.marks = str(entry["ledger"]), str(entry.get("marks", ""))

    def _adopt(self, entry: dict[str, Any]) -> None:
        if entry["ledger"] != self.ledger:
            raise LedgerRefused("chain", "an adoption names another ledger")
        self.marks = str(entry.get("marks", self.marks))

    def _kept(self, entry: dict[str, Any]) -> None:
        self.marks = str(entry["marks"])

    def _dataset(self, entry: dict[str, Any]) -> None:
        name = entry["dataset"]
        if name in self.datasets:
            raise LedgerRefused("dataset", f"there is a data set {name!r} already")
        caps = Caps.from_dict(entry["caps"])
        made = Dataset(check_neighbours(entry["neighbours"]), [entry["version"]], Account(caps))
        made.unit, made.sources = ProtectedUnit.from_dict(entry.get("unit")), _texts(entry.get("sources"))
        made.unit_entry = None if made.unit is None else entry["seq"]
        self.datasets[name] = made

    def _version(self, entry: dict[str, Any]) -> None:
        dataset = self.dataset(entry["dataset"])
        if entry["version"] in dataset.versions:
            raise LedgerRefused("version", f"version {entry['version']!r} was declared before")
        dataset.versions.append(entry["version"])
        # new data may lie elsewhere: the first question to this version fixes it anew
        dataset.source = None
        dataset.sources = _texts(entry.get("sources")) or dataset.sources

    def _partition(self, entry: dict[str, Any]) -> None:
        partitions = self.dataset(entry["dataset"]).partitions
        if entry["partition"] in partitions:
            raise LedgerRefused("partition", f"there is a partition {entry['partition']!r} already")
        partitions[entry["partition"]] = tuple(entry["parts"])

    def _analyst(self, entry: dict[str, Any]) -> None:
        name = entry["analyst"]
        if name in self.analysts:
            raise LedgerRefused("analyst", f"there is an analyst {name!r} already")
        self.analysts[name] = Account(None if entry["caps"] is None else Caps.from_dict(entry["caps"]))

    def _cap(self, entry: dict[str, Any]) -> None:
        named = entry["dataset"]
        account = self.dataset(named).account if named is not None else self.analyst(entry["analyst"])
        caps = Caps.from_dict(entry["caps"])
        # nobody has proved that sums of one lane may be carried into the other
        if caps.lane != account.lane:
            raise LedgerRefused("cap", f"the lane of a cap is fixed when it is made: it is {account.lane!r}")
        if caps.lane == "zcdp" and caps.delta and caps.set_aside is None and account.is_split:
            raise LedgerRefused("cap", "the split of a delta that was fixed is not taken back")
        for currency in CURRENCIES:
            amount, delta = account.spent(currency)
            budget = account.budget(currency, delta, caps)
            if (amount, delta) != (0, 0) and (budget is None or amount > budget[0] or delta > budget[1]):
                raise LedgerRefused("cap", f"the new cap lies below what is spent already in {currency!r}")
        account.caps = caps

    def _reserve(self, entry: dict[str, Any]) -> None:
        dataset = self.dataset(entry["asked"]["dataset"])
        pair = entry["partition"]
        place = Place(entry["asked"]["dataset"], dataset.neighbours, None if pair is None else (pair[0], pair[1]))
        currency = entry.get("currency")
        if currency not in CURRENCIES:  # no currency is proved to be looser than one that nobody here knows
            raise LedgerRefused(
                "schema",
                f"entry {entry['seq']} is charged in a currency that this version does not know ({currency!r}): what it"
                " costs cannot be counted. Open the ledger with the version of fogline that wrote it",
            )
        charge = Charge(currency, entry["amount"], entry["delta"])
        if charge.amount < 0 or charge.delta < 0:
            raise LedgerRefused("sums", f"entry {entry['seq']} has an impossible charge")
        totals = self._totals(charge, place, entry["analyst"])
        for name, value in totals.items():
            # sums are exact; budgets come from logarithms, which may differ between machines
            if abs(entry[name] - value) > (_SLACK if name.endswith("budget") else 0):
                raise LedgerRefused("sums", f"entry {entry['seq']} does not add up")
        if not _within(entry, "") or ("analyst_spent" in totals and not _within(entry, "analyst_")):
            raise LedgerRefused("sums", f"entry {entry['seq']} spends more than its cap")
        dataset.account.add(charge, place)
        if entry["analyst"] is not None:
            self.analyst(entry["analyst"]).add(charge, place)
        self._note(dataset, entry)
        early = "unit" not in entry
        self.waiting[entry["seq"]] = entry["question"], kin_of(entry["asked"], pair, early=early)

    @staticmethod
    def _note(dataset: Dataset, entry: dict[str, Any]) -> None:
        """Let the first release of a data set fix its unit, and the first of a version its source."""
        parameters = entry["asked"]["parameters"]
        # of an early entry the terms of its release say whom they protect, if anything does
        unit = ProtectedUnit.from_dict(entry["unit"]) if "unit" in entry else _early_unit(parameters)
        if dataset.unit is None and unit is not None:
            dataset.unit, dataset.unit_entry = unit.fixes(), entry["seq"]
        if dataset.source is None and AFRESH not in parameters:
            dataset.source = source_of(parameters)

    def _commit(self, entry: dict[str, Any]) -> None:
        question, kin = self.waiting.get(entry["reserve"], ("", ""))
        # also where nothing was reserved: ("", "") equals no question
        if question != entry["question"]:
            raise LedgerRefused("chain", f"entry {entry['seq']} answers what was not reserved")
        # a reservation is answered once
        del self.waiting[entry["reserve"]]
        self.answered.setdefault(kin, []).append(entry["seq"])

    # -- looking up -------------------------------------------------------------------------------------

    def dataset(self, name: str) -> Dataset:
        """Return a data set, or refuse a name that is not in the ledger."""
        if name not in self.datasets:
            raise LedgerRefused("dataset", f"there is no data set {name!r} in this ledger")
        return self.datasets[name]

    def analyst(self, name: str) -> Account:
        """Return an analyst's account, or refuse a name that is not in the ledger."""
        if name not in self.analysts:
            raise LedgerRefused("analyst", f"there is no analyst {name!r} in this ledger")
        return self.analysts[name]


_HANDLERS = {
    "genesis": Accounts._genesis,
    "adopt": Accounts._adopt,
    "marks": Accounts._kept,
    "dataset": Accounts._dataset,
    "version": Accounts._version,
    "partition": Accounts._partition,
    "analyst": Accounts._analyst,
    "cap": Accounts._cap,
    "reserve": Accounts._reserve,
    "commit": Accounts._commit,
}


def _texts(values: Iterable[object] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(map(str, values))


def _early_unit(parameters: dict[str, Any]) -> ProtectedUnit | None:
    most = parameters.get("max_contributions")
    if type(most) is not int or most < 1:
        return None
    return ProtectedUnit.of_release(str(parameters.get("unit", "record")), most, enforced="unit" in parameters)


def _total(account: Account, charge: Charge, place: Place, owner: str) -> dict[str, int]:
    """Return an account's totals with one more charge; nothing for an analyst without a cap."""
    if account.caps is None:
        return {}
    spent, delta = account.after(charge, place)
    currency = account.own(charge).currency
    budget = account.budget(currency, delta)
    if budget is None:
        whose = "this analyst" if owner else f"data set {place.dataset!r}"
        raise BudgetExceeded(no_cap_words(account.caps.lane, account.caps.delta, currency, whose), "currency")
    return {
        f"{owner}spent": spent,
        f"{owner}budget": budget[0],
        f"{owner}delta_spent": delta,
        f"{owner}delta_budget": budget[1],
    }


def _split(totals: dict[str, int], account: Account) -> str:
    """Say that it is the split of delta which a release does not fit into, where it is that; empty where it is not."""
    if not account.is_split or totals["delta_spent"] <= totals["delta_budget"]:
        return ""
    return (
        ": it has a delta of its own, and the part of delta for such releases is fixed by the cap's set_aside, or by"
        " the first release in zCDP. Whoever keeps the budget may set another one (Ledger.set_cap), not by the answers"
    )


def _within(totals: dict[str, Any], owner: str) -> bool:
    spent, budget = totals[f"{owner}spent"], totals[f"{owner}budget"]
    return bool(spent <= budget and totals[f"{owner}delta_spent"] <= totals[f"{owner}delta_budget"])
