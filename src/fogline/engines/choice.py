r"""Which records of a unit are kept: the c with the smallest keyed hashes.

With :math:`\mu` a bijection of 64 bits that mixes them and a key :math:`(k_0, k_1)`, a unit with id i has the hash
:math:`h = \mu(\mu(i \oplus k_0) + k_1)`, and its record with a mark m, the number j of its equals, has the rank

.. math:: \mu\bigl(\mu(h + m s) + j + k_1\bigr),

s an odd constant. The proof is in ``contributions.proof.md`` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fogline.mechanisms.entropy import current_door

__all__ = ["Choice", "ContributionBound", "Marks", "Words", "kept_records", "mixed", "new_choice", "unit_hashes"]

IntArray = NDArray[np.int64]
Words = NDArray[np.uint64]
Marks = NDArray[np.uint32] | NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class ContributionBound:
    """How many records a unit may contribute, and the key by which they are chosen.

    Parameters
    ----------
    most : int
        c, the most records of a unit.
    key : (int, int)
        128 secret bits. Privacy does not rest on them.
    """

    most: int
    key: tuple[int, int]

    @classmethod
    def draw(cls, most: int) -> ContributionBound:
        """A bound with a fresh key from the entropy door."""
        words = current_door().generator("contribution bound").integers(0, 2**64, size=2, dtype=np.uint64)
        return cls(most, (int(words[0]), int(words[1])))


def mixed(words: Words) -> Words:
    """Mix the bits of each word: a bijection of 64 bits in which every bit of the input moves half of the output."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return np.asarray(words ^ (words >> np.uint64(31)))


def unit_hashes(words: Words, key: tuple[int, int]) -> Words:
    """Keyed hashes of units, from a word for each."""
    return mixed(mixed(words ^ np.uint64(key[0])) + np.uint64(key[1]))


def kept_records(people: IntArray, hashes: Words, marks: Marks, bound: ContributionBound) -> IntArray:
    """Places of the records that are kept, by unit.

    Parameters
    ----------
    people : array of shape (n,)
        Number of each record's unit, from 0.
    hashes : array of shape (units,)
        Keyed hash of each unit's id.
    marks : array of shape (n,)
    bound : ContributionBound
    """
    order = np.lexsort((marks, people))
    units, sorted_marks = people[order], marks[order]
    places = np.arange(len(order))
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (units[1:] != units[:-1]) | (sorted_marks[1:] != sorted_marks[:-1])
    number = places - np.maximum.accumulate(np.where(fresh, places, 0))
    seeds = mixed(hashes[units] + sorted_marks.astype(np.uint64) * STEP)
    ranks = mixed(seeds + (number.astype(np.uint64) + np.uint64(bound.key[1])))
    by_rank = np.lexsort((ranks, units))
    units = units[by_rank]
    first = np.ones(len(order), dtype=bool)
    first[1:] = units[1:] != units[:-1]
    rank = places - np.maximum.accumulate(np.where(first, places, 0))
    return np.asarray(order[by_rank[rank < bound.most]])


class Choice(Protocol):
    """Takes records batch by batch, all of one kind of id, and gives those that are kept."""

    def add(self, values: IntArray, marks: Marks, wanted: NDArray[np.bool_], first: int) -> None:
        """Take the wanted records of a batch; `first` is the place of its first."""

    def kept(self, names: Words | None) -> tuple[Marks, IntArray]:
        """Marks and places of what is kept; with `names`, values are numbers of texts, whose hashes these are."""


def new_choice(bound: ContributionBound, has_places: bool, most_bytes: int) -> Choice:
    """A choice by compiled loops where the ``fast`` extra is installed, else by numpy: of the same records.

    Parameters
    ----------
    bound : ContributionBound
    has_places : bool
        Whether places are asked for; else they are not told.
    most_bytes : int
        What may be held: address space for it is set aside at once, memory comes as it is used.
    """
    fast = _fast_choice()
    if fast is None:
        return PlainChoice(bound)
    made: Choice = fast.FastChoice(bound.most, bound.key, has_places, most_bytes)
    return made


class PlainChoice:
    """The choice in numpy, by sorting."""

    def __init__(self, bound: ContributionBound) -> None:
        self._bound = bound
        self._batches: list[tuple[IntArray, Marks, IntArray]] = []

    def add(self, values: IntArray, marks: Marks, wanted: NDArray[np.bool_], first: int) -> None:
        """Take the wanted records of a batch."""
        self._batches.append((values[wanted], marks[wanted], first + np.flatnonzero(wanted)))

    def kept(self, names: Words | None) -> tuple[Marks, IntArray]:
        """Marks and places of what is kept."""
        if not self._batches:
            return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        values, marks, places = (np.concatenate([batch[i] for batch in self._batches]) for i in range(3))
        self._batches = []
        units, people = np.unique(values, return_inverse=True)
        hashes = unit_hashes(units.view(np.uint64), self._bound.key) if names is None else names[units]
        chosen = kept_records(people, hashes, marks, self._bound)
        return marks[chosen], places[chosen]


@cache
def _fast_choice() -> Any:
    """Give the module of compiled loops where the ``fast`` extra is installed, else nothing."""
    try:
        from fogline.engines import _fast_choice
    except ImportError:
        return None
    return _fast_choice
