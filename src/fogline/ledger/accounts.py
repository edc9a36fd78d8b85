r"""What is charged, in whole units, and what a cap allows.

Five currencies. A release is charged in one of them. Of the first two a data set has one, its lane, which shares a cap
with the third:

- ``zcdp``: rho, and the delta of approximate zCDP beside it. A cap (epsilon, delta) allows the largest rho whose
  optimal conversion at ``delta - (deltas spent)`` stays within epsilon: an amount of rho that shrinks as deltas are
  spent. The sum of rho is a valid filter under fully adaptive composition.
- ``gaussian``: half of the square of mu of Gaussian differential privacy, and the total variation that the noise is
  away from it, in place of delta. In a data set whose lane is ``gaussian`` it converts by the analytic curve
  (`gaussian_cap`); where the lane is ``zcdp`` it counts as the rho that it is as well.
- ``pure``: the epsilon of pure differential privacy, which needs no delta, added up. It takes from the same cap: what
  is spent in both together stays within epsilon and delta (`shared_cap`). A cap with a delta of 0 is for it alone.
- ``approximate``: (epsilon, delta) of mechanisms that have nothing better, added up by basic composition.
- ``integral``: the epsilon of integral privacy, a sum over draws.

A unit is :math:`10^{-12}` of rho or epsilon and :math:`10^{-18}` of delta. Costs round up to units, caps down.

Running totals: one number each, added up over a data set and its declared partitions.

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
import math
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

from fogline._validation import (
    Neighbours,
    check_count,
    check_delta,
    check_epsilon,
    check_level,
    check_neighbours,
    check_positive,
)
from fogline.accounting import Cost, GaussianCost, PureCost
from fogline.ledger.gaussian_cap import GaussianCap, pure_as_gaussian
from fogline.ledger.question import BudgetExceeded, LedgerRefused, canonical, kin_of, no_cap_words
from fogline.ledger.shared_cap import DELTA_UNITS, UNITS, SharedCap, Spending
from fogline.ledger.units import AFRESH, ProtectedUnit, source_of

__all__ = [
    "CURRENCIES",
    "DELTA_UNITS",
    "FORMAT",
    "GENESIS",
    "UNITS",
    "Account",
    "Accounts",
    "AnyCost",
    "ApproximateCost",
    "Caps",
    "Charge",
    "Currency",
    "Dataset",
    "IntegralCost",
    "Lane",
    "Place",
    "Tally",
    "chain",
]

Currency = Literal["zcdp", "gaussian", "pure", "approximate", "integral"]
CURRENCIES: tuple[Currency, ...] = get_args(Currency)

Lane = Literal["zcdp", "gaussian"]
LANES: tuple[Lane, ...] = get_args(Lane)

_MOST = 2**62
"""SQLite counts in 64 bits; sums stay below by a factor of two."""


@dataclass(frozen=True)
class ApproximateCost:
    """The price of a mechanism that is only known to be (epsilon, delta)-DP.

    Examples
    --------
    >>> ApproximateCost(0.5, 1e-7)
    ApproximateCost(epsilon=0.5, delta=1e-07)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.delta != 0.0:
            check_delta(self.delta)


@dataclass(frozen=True)
class IntegralCost:
    """The price of draws from an integrally private model: epsilon a draw.

    Examples
    --------
    >>> IntegralCost(0.1, draws=20).draws
    20
    """

    epsilon: float
    draws: int = 1

    def __post_init__(self) -> None:
        check_positive(self.epsilon, "epsilon")
        check_count(self.draws, "draws")


AnyCost = Cost | GaussianCost | PureCost | ApproximateCost | IntegralCost


@dataclass(frozen=True)
class Charge:
    """A cost in whole units of its currency, rounded up.

    Examples
    --------
    >>> Charge.of(Cost(rho=1e-13, delta=1e-6))
    Charge(currency='zcdp', amount=1, delta=1000000000000)
    >>> Charge.of(PureCost(Fraction(1, 10)))
    Charge(currency='pure', amount=100000000000, delta=0)
    >>> Charge.of(IntegralCost(0.25, draws=4)).amount == UNITS
    True
    """

    currency: Currency
    amount: int
    delta: int = 0

    @classmethod
    def of(cls, cost: AnyCost) -> Charge:
        """Return what `cost` comes to; refuse what is not a cost, and what costs nothing."""
        if isinstance(cost, Cost):
            charge = cls("zcdp", _up(Fraction(cost.rho), UNITS), _up(Fraction(cost.delta), DELTA_UNITS))
        elif isinstance(cost, GaussianCost):
            charge = cls("gaussian", _up(Fraction(cost.rho), UNITS), _up(Fraction(cost.distance), DELTA_UNITS))
        elif isinstance(cost, PureCost):
            charge = cls("pure", _up(cost.epsilon, UNITS))
        elif isinstance(cost, ApproximateCost):
            charge = cls("approximate", _up(Fraction(cost.epsilon), UNITS), _up(Fraction(cost.delta), DELTA_UNITS))
        elif isinstance(cost, IntegralCost):
            charge = cls("integral", _up(Fraction(cost.epsilon) * cost.draws, UNITS))
        else:
            raise TypeError(
                "cost must be a Cost, GaussianCost, PureCost, ApproximateCost or IntegralCost,"
                f" got {type(cost).__name__}"
            )
        if charge.amount == 0 and charge.delta == 0:
            raise ValueError("cost must be greater than 0: no release of data is free")
        if charge.amount >= _MOST:
            raise ValueError("cost is larger than any budget can be")
        return charge


@dataclass(frozen=True)
class Caps:
    """The most that may be spent, a limit for each currency; a currency without a limit cannot be spent.

    Parameters
    ----------
    epsilon, delta : float, optional
        For everything accounted in zCDP or in pure epsilon together. With a `delta` of 0 for pure epsilon alone.
    approximate : (epsilon, delta), optional
        For mechanisms known only by epsilon and delta; delta may be 0.
    integral : float, optional
        Epsilon, for integrally private draws.
    lane : {"zcdp", "gaussian"}
        How `epsilon` and `delta` are spent beside pure epsilon: in zCDP, or in Gaussian differential privacy.
    set_aside : float, optional
        Part of `delta` that is kept for mechanisms with a delta of their own, and for nothing else. Without it what is
        left of delta after theirs is what rho is converted at. For the lane ``zcdp``.

    Examples
    --------
    >>> caps = Caps(epsilon=1.0, delta=1e-5)
    >>> amount, delta = caps.budget("zcdp", delta_spent=0)
    >>> amount
    30556595197
    >>> caps.budget("zcdp", delta_spent=delta // 2)[0] < amount
    True
    >>> Caps(epsilon=1.0, delta=0.0).budget("pure", delta_spent=0) == (UNITS, 0)
    True
    >>> caps.budget("integral", delta_spent=0) is None
    True
    >>> Caps(epsilon=1.0, delta=1e-5, lane="gaussian").budget("gaussian", delta_spent=0)[0] / amount
    1.174...
    >>> kept = Caps(epsilon=1.0, delta=1e-5, set_aside=1e-6)
    >>> kept.budget("zcdp", delta_spent=0) == kept.budget("zcdp", delta_spent=5 * 10**11)
    True
    """

    epsilon: float | None = None
    delta: float | None = None
    approximate: tuple[float, float] | None = None
    integral: float | None = None
    lane: Lane = "zcdp"
    set_aside: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise TypeError("a cap needs both epsilon and delta")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
            object.__setattr__(self, "delta", _zero_or_delta(self.delta))
        self._check_lane()
        if self.approximate is not None:
            object.__setattr__(self, "approximate", _pair(self.approximate))
        if self.integral is not None:
            object.__setattr__(self, "integral", check_positive(self.integral, "integral"))
        for currency in CURRENCIES:
            budget = self.budget(currency, 0)
            # beside a delta the cap of rho decides, as it always did
            counts = currency != "pure" or self.delta == 0.0
            if counts and budget is not None and not 0 < budget[0] < _MOST:
                size = "small" if budget[0] <= 0 else "large"
                raise ValueError(f"the cap of currency {currency!r} is too {size} to be counted")

    def _check_lane(self) -> None:
        if self.lane not in LANES:
            raise ValueError(f"lane must be one of {', '.join(LANES)}, got {self.lane!r}")
        if self.lane == "gaussian":
            if self.epsilon is None or not self.delta:
                raise ValueError("lane: the Gaussian lane needs an epsilon and a delta above 0")
            GaussianCap(self.epsilon, self.delta)
        if self.set_aside is not None:
            object.__setattr__(self, "set_aside", check_level(self.set_aside, "set_aside"))
            if self.lane != "zcdp" or not self.delta or not self.set_aside < self.delta:
                raise ValueError("set_aside must be below delta, and is for the lane 'zcdp'")

    def budget(self, currency: Currency, delta_spent: int, spending: Spending | None = None) -> tuple[int, int] | None:
        """Return how much may be spent in all, and how much delta, in units; None where there is no cap.

        Parameters
        ----------
        currency : str
        delta_spent : int
            Delta that is spent in this currency.
        spending : Spending, optional
            What is spent in the two currencies that share a cap; by default nothing but `delta_spent`.
        """
        spending = spending or Spending()
        if currency in (self.lane, "pure") and self.epsilon is not None and self.delta is not None:
            known = spending if currency == "pure" else replace(spending, delta=delta_spent)
            return self._shared(currency, self.epsilon, self.delta, known)
        if currency == "approximate" and self.approximate is not None:
            epsilon, delta = self.approximate
            return _down(Fraction(epsilon), UNITS), _down(Fraction(delta), DELTA_UNITS)
        if currency == "integral" and self.integral is not None:
            return _down(Fraction(self.integral), UNITS), 0
        return None

    def _shared(self, currency: Currency, epsilon: float, delta: float, spending: Spending) -> tuple[int, int] | None:
        """Return the budget of the lane, or of pure epsilon beside it."""
        if self.lane == "gaussian":
            cap = GaussianCap(epsilon, delta)
            if currency == "pure":
                return cap.pure_budget(spending), 0
            return cap.rho_budget(spending), cap.distance_budget
        aside = _down(Fraction(repr(self.set_aside or 0.0)), DELTA_UNITS)
        if aside:  # all of it counts as spent from the beginning, whatever is spent of it
            spending = replace(spending, delta=aside)
        if currency == "pure":
            budget = SharedCap(epsilon, delta).pure_budget(spending)
            return budget if delta == 0.0 else min(budget, _MOST - 1), 0
        if delta == 0.0:
            return None
        amount, most = _rho_budget(epsilon, delta, spending.pure, spending.pure_before, spending.delta)
        return amount, aside or most

    def to_dict(self) -> dict[str, Any]:
        """Return the caps in terms of JSON. What earlier versions did not know is left out where it is not used.

        Examples
        --------
        >>> Caps(integral=2.0).to_dict()["integral"]
        2.0
        """
        told = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "approximate": None if self.approximate is None else list(self.approximate),
            "integral": self.integral,
        }
        later = {"lane": self.lane if self.lane != "zcdp" else None, "set_aside": self.set_aside}
        return {**told, **{name: value for name, value in later.items() if value is not None}}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Caps:
        """Return the caps that `to_dict` described.

        Examples
        --------
        >>> caps = Caps(epsilon=1.0, delta=1e-6, approximate=(1.0, 0.0))
        >>> Caps.from_dict(caps.to_dict()) == caps
        True
        """
        pair = values["approximate"]
        return cls(
            epsilon=values["epsilon"],
            delta=values["delta"],
            approximate=None if pair is None else (pair[0], pair[1]),
            integral=values["integral"],
            lane=values.get("lane", "zcdp"),
            set_aside=values.get("set_aside"),
        )


def _pair(approximate: object) -> tuple[float, float]:
    if not isinstance(approximate, tuple | list) or len(approximate) != 2:
        raise TypeError("approximate must be a pair (epsilon, delta)")
    epsilon, delta = approximate
    return check_epsilon(epsilon), _zero_or_delta(delta)


def _zero_or_delta(delta: object) -> float:
    return 0.0 if delta == 0.0 and not isinstance(delta, bool) else check_delta(delta)


@lru_cache(maxsize=4096)
def _rho_budget(epsilon: float, delta: float, pure: int, pure_before: int, delta_spent: int) -> tuple[int, int]:
    """Return how much rho and delta may be spent. Kept: long ledgers ask for the same again and again."""
    amount = SharedCap(epsilon, delta).rho_budget(Spending(pure, pure_before, 0, delta_spent))
    return amount, _down(Fraction(delta), DELTA_UNITS)


def _up(value: Fraction, units: int) -> int:
    return math.ceil(value * units)


def _down(value: Fraction, units: int) -> int:
    return math.floor(value * units)


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

    @property
    def lane(self) -> Lane:
        """What is spent beside pure epsilon; zCDP where there is no cap."""
        return "zcdp" if self.caps is None else self.caps.lane

    def own(self, charge: Charge) -> Charge:
        """Return a charge as it counts here: Gaussian noise in the lane of zCDP as the rho that it is."""
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
        place = _reached(charge, place)
        return amount.after(charge.amount, place), delta.after(charge.delta, place)

    @property
    def spending(self) -> Spending:
        """What the two currencies that share a cap have taken of it."""
        pure, (rho, delta) = self.spent("pure")[0], self.spent(self.lane)
        return Spending(pure, self.pure_before if rho else pure, rho, delta)

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
        changed = deepcopy(self)
        changed.add(charge, place)
        return changed

    def add(self, charge: Charge, place: Place) -> None:
        """Add one charge."""
        charge, taken = self.own(charge), self._in_lane(charge)
        if taken is not None:
            self.add(taken, place)
        place = _reached(charge, place)
        if charge.currency == self.lane and charge.amount > 0 and self.spent(self.lane)[0] == 0:
            self.pure_before = self.spent("pure")[0]
        self.amounts.setdefault(charge.currency, Tally()).add(charge.amount, place)
        self.deltas.setdefault(charge.currency, Tally()).add(charge.delta, place)


def _reached(charge: Charge, place: Place) -> Place:
    """Say where a charge counts: that of integral privacy everywhere, whichever part it looked at."""
    return replace(place, partition=None) if charge.currency == "integral" else place


def _dearest(spent: dict[str, int], touched: int) -> int:
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
        if caps.lane != account.lane:
            raise LedgerRefused("cap", f"the lane of a cap is fixed when it is made: it is {account.lane!r}")
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


def _within(totals: dict[str, Any], owner: str) -> bool:
    spent, budget = totals[f"{owner}spent"], totals[f"{owner}budget"]
    return bool(spent <= budget and totals[f"{owner}delta_spent"] <= totals[f"{owner}delta_budget"])
