"""Running totals: one number each, added up over a data set and its declared partitions.

A release on the whole data set adds to the total. Releases on the parts of a declared partition cost together what
the dearest part costs under add-remove, and what the two dearest cost under replace: a replaced record may leave one
part and enter another. Integrally private draws always add up: they promise something about a change of all records at
once, in every part.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

from fogline._validation import Neighbours
from fogline.ledger.charges import Caps, Charge, Currency

__all__ = ["Account", "Place", "Tally"]


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

    def spent(self, currency: Currency) -> tuple[int, int]:
        """Return the amount and the delta spent, in units."""
        if currency not in self.amounts:
            return 0, 0
        return self.amounts[currency].total, self.deltas[currency].total

    def after(self, charge: Charge, place: Place) -> tuple[int, int]:
        """Return what would be spent with one more charge."""
        amount = self.amounts.get(charge.currency) or Tally()
        delta = self.deltas.get(charge.currency) or Tally()
        place = _reached(charge, place)
        return amount.after(charge.amount, place), delta.after(charge.delta, place)

    def add(self, charge: Charge, place: Place) -> None:
        """Add one charge."""
        place = _reached(charge, place)
        self.amounts.setdefault(charge.currency, Tally()).add(charge.amount, place)
        self.deltas.setdefault(charge.currency, Tally()).add(charge.delta, place)


def _reached(charge: Charge, place: Place) -> Place:
    """Say where a charge counts: that of integral privacy everywhere, whichever part it looked at."""
    return replace(place, partition=None) if charge.currency == "integral" else place


def _dearest(spent: dict[str, int], touched: int) -> int:
    return sum(heapq.nlargest(touched, spent.values()))
