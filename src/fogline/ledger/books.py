"""The books: what the entries of a ledger add up to, and whether they may stand as they do.

An entry is canonical JSON. Its hash is SHA-256 over the hash before it and its own bytes, so no entry can change,
vanish or move without changing every hash after it. The books are nothing but a fold over the entries; the same
`apply` reads an old file and adds a new entry, so what is written is what will be accepted.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from fogline._validation import Neighbours, check_neighbours
from fogline.ledger.admission import AFRESH, source_of
from fogline.ledger.charges import CURRENCIES, Caps, Charge
from fogline.ledger.question import canonical, kin_of
from fogline.ledger.refusals import BudgetExceeded, LedgerRefused
from fogline.ledger.tallies import Account, Place
from fogline.ledger.units import ProtectedUnit

__all__ = ["FORMAT", "GENESIS", "Books", "Dataset", "chain"]

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
class Books:
    """All that the entries so far add up to.

    Examples
    --------
    >>> books = Books()
    >>> content = books.compose({"kind": "genesis", "ledger": "a" * 32, "format": FORMAT}, "2024-01-01T00:00:00")
    >>> _ = books.apply(0, content, chain(GENESIS, content))
    >>> books.next_seq
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
        placed = {"seq": self.next_seq, "group": self._first, "time": max(now, self.time)}
        return canonical({**content, **placed}).decode("ascii")

    def reservation(self, charge: Charge, place: Place, analyst: str | None, content: dict[str, Any]) -> dict[str, Any]:
        """Return `content` with the totals that a reservation leads to; refuse what no cap allows."""
        totals = self._totals(charge, place, analyst)
        for owner, name in (("", f"data set {place.dataset!r}"), ("analyst_", f"analyst {analyst!r}")):
            if f"{owner}spent" in totals and not _within(totals, owner):
                raise BudgetExceeded(f"the budget of {name} does not allow for this release")
        return {**content, **totals}

    def _totals(self, charge: Charge, place: Place, analyst: str | None) -> dict[str, int]:
        totals = _total(self.datasets[place.dataset].account, charge, place, "")
        if analyst is not None:
            totals |= _total(self.analysts[analyst], charge, place, "analyst_")
        return totals

    # -- reading ----------------------------------------------------------------------------------------

    def apply(self, seq: int, content: str, digest: bytes) -> dict[str, Any]:
        """Take the next entry into the books and return it; refuse it if it does not follow from those before."""
        if seq != self.next_seq or chain(self.tip, content) != digest:
            raise LedgerRefused("chain", f"entry {self.next_seq} of the ledger is missing or was changed")
        entry: dict[str, Any] = json.loads(content)
        kind = entry["kind"]
        if entry["seq"] != seq or (seq == 0) != (kind == "genesis"):
            raise LedgerRefused("chain", f"entry {seq} of the ledger is out of its place")
        group = entry.get("group", -1)
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
        for currency in CURRENCIES:
            amount, delta = account.spent(currency)
            budget = caps.budget(currency, delta)
            if (amount, delta) != (0, 0) and (budget is None or amount > budget[0] or delta > budget[1]):
                raise LedgerRefused("cap", f"the new cap lies below what is spent already in {currency!r}")
        account.caps = caps

    def _reserve(self, entry: dict[str, Any]) -> None:
        dataset = self.dataset(entry["asked"]["dataset"])
        pair = entry["partition"]
        place = Place(entry["asked"]["dataset"], dataset.neighbours, None if pair is None else (pair[0], pair[1]))
        charge = Charge(entry["currency"], entry["amount"], entry["delta"])
        if charge.currency not in CURRENCIES or charge.amount < 0 or charge.delta < 0:
            raise LedgerRefused("sums", f"entry {entry['seq']} has an impossible charge")
        totals = self._totals(charge, place, entry["analyst"])
        for name, value in totals.items():
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
        if question != entry["question"]:
            raise LedgerRefused("chain", f"entry {entry['seq']} answers what was not reserved")
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
    "genesis": Books._genesis,
    "adopt": Books._adopt,
    "marks": Books._kept,
    "dataset": Books._dataset,
    "version": Books._version,
    "partition": Books._partition,
    "analyst": Books._analyst,
    "cap": Books._cap,
    "reserve": Books._reserve,
    "commit": Books._commit,
}


def _texts(values: Any) -> tuple[str, ...] | None:
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
    budget = account.caps.budget(charge.currency, delta)
    if budget is None:
        whose = "this analyst" if owner else f"data set {place.dataset!r}"
        raise BudgetExceeded(f"there is no cap in currency {charge.currency!r} for {whose}", "currency")
    return {
        f"{owner}spent": spent,
        f"{owner}budget": budget[0],
        f"{owner}delta_spent": delta,
        f"{owner}delta_budget": budget[1],
    }


def _within(totals: dict[str, Any], owner: str) -> bool:
    spent, budget = totals[f"{owner}spent"], totals[f"{owner}budget"]
    return bool(spent <= budget and totals[f"{owner}delta_spent"] <= totals[f"{owner}delta_budget"])
