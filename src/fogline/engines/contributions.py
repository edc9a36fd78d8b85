r"""The privacy unit: of each unit's records at most c count, the same ones in every engine and in any order.

A record's *mark* is what the sketch sees of it (its cell, or its numbers). Equal records of a unit are told apart by
numbering them, 0, 1, 2, ...: which is which does not matter. Then

.. math:: h = H_{key}(\text{id}, \text{mark}, \text{number})

is a keyed 64-bit hash, and of each unit the c records with the smallest hashes are kept: a uniform draw of c of its
records, by a key from the entropy door. Only records that could count compete. What is kept of a unit depends
on that unit's records alone, so removing a unit removes at most c records, whatever the key; the proof is in
``contributions.proof.md`` beside this file. The key is there so that nobody can arrange to be kept.

All records of a unit are brought together in memory, a part of the units at a time: when a part grows too large it is
split by a hash of the id and the source is read again, for each part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.engines.tables import BATCH_ROWS, State, Table, Take
from fogline.engines.units import MISSING, TEXT, Identities
from fogline.mechanisms.entropy import current_door
from fogline.sketch import DensitySketch
from fogline.sketch.histogram import CellCounts, row_cells
from fogline.sketch.planning import Spec
from fogline.sketch.random_spec import RandomSpec

__all__ = [
    "BoundedTable",
    "ClusterTable",
    "ContributionBound",
    "Gathering",
    "kept_records",
    "kept_state",
    "unit_buckets",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Words = NDArray[np.uint64]
Marks = NDArray[np.uint32] | NDArray[np.uint64]
Admit = Callable[[FloatArray], tuple[NDArray[np.bool_], Marks, FloatArray | None]]
"""Says which rows of a batch could count, their marks, and what is to be handed over of them."""

MOST_BYTES = 2**28
"""Bytes of one part of the units that are held in memory before it is split."""

SPLIT = 4
"""Parts into which a part is split."""

MOST_PARTS = SPLIT**8
"""Parts beyond which there is no use in splitting: what is left is one unit's."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
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
    fast = _fast_choice()
    if fast is not None:
        return np.asarray(fast.chosen_records(people, hashes, marks, bound.most, np.uint64(bound.key[1])))
    order = np.lexsort((marks, people))
    units, sorted_marks = people[order], marks[order]
    places = np.arange(len(order))
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (units[1:] != units[:-1]) | (sorted_marks[1:] != sorted_marks[:-1])
    number = places - np.maximum.accumulate(np.where(fresh, places, 0))
    seeds = mixed(hashes[units] + sorted_marks.astype(np.uint64) * _STEP)
    ranks = mixed(seeds + (number.astype(np.uint64) + np.uint64(bound.key[1])))
    by_rank = np.lexsort((ranks, units))
    units = units[by_rank]
    first = np.ones(len(order), dtype=bool)
    first[1:] = units[1:] != units[:-1]
    rank = places - np.maximum.accumulate(np.where(first, places, 0))
    return np.asarray(order[by_rank[rank < bound.most]])


def kept_marks(people: IntArray, hashes: Words, marks: Marks, bound: ContributionBound) -> Marks:
    """Marks of the records that are kept: what is kept where a mark is all that a sketch sees of a record."""
    fast = _fast_choice()
    if fast is not None:
        return np.asarray(fast.chosen_marks(people, hashes, marks, bound.most, np.uint64(bound.key[1])))
    return marks[kept_records(people, hashes, marks, bound)]


class Gathering:
    """Records of some units, brought together.

    Parameters
    ----------
    admit : callable
        :data:`Admit`.
    bound : ContributionBound
    part, parts : int
        Which part of the units is wanted.
    """

    def __init__(self, admit: Admit, bound: ContributionBound, part: int = 0, parts: int = 1) -> None:
        self._admit, self._bound = admit, bound
        self._part, self._parts = np.uint64(part), np.uint64(parts)
        self._identities = Identities()
        self._digests: list[int] = []
        self._batches: list[tuple[IntArray, NDArray[np.int8], Marks, FloatArray | None]] = []
        self.bytes = 0

    def add(self, rows: FloatArray, ids: Any) -> None:
        """Take the records of a batch that could count and belong to the part."""
        usable, marks, payload = self._admit(rows)
        values, kinds = self._identities.read(ids)
        wanted = usable & (kinds != MISSING)
        if self._parts > 1:
            wanted &= self._hashes(values, kinds) % self._parts == self._part
        if not wanted.all():
            values, kinds, marks = values[wanted], kinds[wanted], marks[wanted]
            payload = None if payload is None else payload[wanted]
        batch = (values.copy(), kinds, marks, payload)
        self._batches.append(batch)
        self.bytes += sum(array.nbytes for array in batch if array is not None)

    def kept(self) -> tuple[Marks, FloatArray | None]:
        """Marks of the records that are kept, and what is to be handed over of them."""
        if not self._batches:
            return np.zeros(0, dtype=np.uint64), None
        values, kinds, marks = (np.concatenate([batch[i] for batch in self._batches]) for i in range(3))
        payloads = [batch[3] for batch in self._batches if batch[3] is not None]
        self._batches = []
        people, units, unit_kinds = _numbered(values, kinds)
        hashes = self._hashes(units, unit_kinds)
        if not payloads:
            return kept_marks(people, hashes, marks, self._bound), None
        places = kept_records(people, hashes, marks, self._bound)
        return marks[places], np.concatenate(payloads)[places]

    def _hashes(self, values: IntArray, kinds: NDArray[np.int8]) -> Words:
        """Keyed hashes of ids: the same for equal ids, whatever number a text has here."""
        words = values.view(np.uint64).copy()
        texts = kinds == TEXT
        if texts.any():
            key = self._bound.key[0].to_bytes(8, "little")
            self._digests += [_digest(text, key) for text in self._identities.texts[len(self._digests) :]]
            words[texts] = np.array(self._digests, dtype=np.uint64)[values[texts]]
        return mixed(mixed(words ^ np.uint64(self._bound.key[0])) + np.uint64(self._bound.key[1]))


def unit_buckets(ids: Any, bound: ContributionBound) -> IntArray:
    """A number for each id, the same for the same unit: for engines that bring rows together by it."""
    people = Gathering(_rows_within(0.0, 0.0), bound)
    values, kinds = people._identities.read(ids)
    return (people._hashes(values, kinds) >> np.uint64(2)).astype(np.int64)


def _digest(text: str, key: bytes) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little")


def _numbered(values: IntArray, kinds: NDArray[np.int8]) -> tuple[IntArray, IntArray, NDArray[np.int8]]:
    """Units numbered from 0: the number of each record's, and value and kind of each unit."""
    texts = kinds == TEXT
    if not texts.any():
        people, units = _codes(values)
        return people, units, np.zeros(len(units), dtype=np.int8)
    people = np.empty(len(values), dtype=np.int64)
    people[~texts], integers = _codes(values[~texts])
    people[texts], named = _codes(values[texts])
    people[texts] += len(integers)
    unit_kinds = np.zeros(len(integers) + len(named), dtype=np.int8)
    unit_kinds[len(integers) :] = TEXT
    return people, np.concatenate([integers, named]), unit_kinds


def _codes(values: IntArray) -> tuple[IntArray, IntArray]:
    """Numbers from 0 for equal values, and the values by their numbers; there may be numbers that nobody has."""
    if not len(values):
        return values, values
    low, high = int(values.min()), int(values.max())
    if high - low < max(4 * len(values), 2**16):  # ids that run from 1 to n need no sorting
        return values - low, low + np.arange(high - low + 1)  # high + 1 may have no 64 bits
    units, people = np.unique(values, return_inverse=True)
    return people.astype(np.int64), units


# -- what competes --------------------------------------------------------------------------------------------


def _cells_of(spec: Any) -> Admit:
    total = CellCounts(spec).total_cells

    def admit(rows: FloatArray) -> tuple[NDArray[np.bool_], Marks, None]:
        cells = row_cells(rows, spec)
        return cells < total, cells.astype(np.uint32), None

    return admit


def _rows_within(lower: FloatArray | float, upper: FloatArray | float) -> Admit:
    def admit(rows: FloatArray) -> tuple[NDArray[np.bool_], Words, FloatArray]:
        with np.errstate(all="ignore"):
            inside = np.all((rows >= lower) & (rows <= upper), axis=1)  # false for NaN
        words = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # one zero, not two
        marks = np.zeros(len(rows), dtype=np.uint64)
        for j in range(rows.shape[1]):
            marks = mixed(marks + words[:, j] + _STEP)
        return inside, marks, rows

    return admit


def kept_state(spec: Spec, bound: ContributionBound, scan: Callable[[Take], None], rereadable: bool = True) -> State:
    """Exact state of the sketch of what is kept of all records that a scan hands over."""
    sketch = DensitySketch.of(spec)
    if isinstance(spec, RandomSpec):
        _each_part(_rows_within(spec.lower, spec.upper), bound, scan, rereadable, lambda _, rows: sketch.update(rows))
        return sketch.state()

    def count(cells: Marks) -> None:
        counts = np.bincount(cells.astype(np.int64))
        keys = np.flatnonzero(counts)
        sketch.add_state(keys, counts[keys])

    _each_part(_cells_of(spec), bound, scan, rereadable, lambda cells, _: count(cells))
    return sketch.state()


def _each_part(
    admit: Admit,
    bound: ContributionBound,
    scan: Callable[[Take], None],
    rereadable: bool,
    use: Callable[[Marks, Any], object],
    part: int = 0,
    parts: int = 1,
) -> None:
    """Use what is kept of the units of one part; of its own parts, one by one, where it is too large."""
    gathering = Gathering(admit, bound, part, parts)
    divisible = rereadable and parts < MOST_PARTS

    def take(rows: FloatArray, ids: Any) -> None:
        gathering.add(rows, ids)
        if divisible and gathering.bytes > MOST_BYTES:
            raise _TooMuch

    try:
        scan(take)
    except _TooMuch:
        del gathering
        for smaller in range(SPLIT):
            _each_part(admit, bound, scan, rereadable, use, part + smaller * parts, parts * SPLIT)
        return
    marks, rows = gathering.kept()
    if len(marks):
        use(marks, rows)


class _TooMuch(Exception):
    """A part of the units that must be split."""


class BoundedTable(Table):
    """A table of which no unit contributes more than its bound, brought together on this machine.

    Parameters
    ----------
    table : Table
        With a unit.
    bound : ContributionBound
    """

    def __init__(self, table: Table, bound: ContributionBound) -> None:
        super().__init__(table.columns, table.width)
        self._table, self._bound = table, bound
        self._failure = table._failure
        self.rereadable = table.rereadable

    def _state(self, spec: Spec) -> State:
        return kept_state(spec, self._bound, self._table._counted_scan, self.rereadable)

    def _scan(self, take: Take) -> None:
        def hand_over(_: Marks, rows: FloatArray) -> None:
            for start in range(0, len(rows), BATCH_ROWS):
                take(rows[start : start + BATCH_ROWS], None)

        finite = float(np.finfo(np.float64).max)
        _each_part(_rows_within(-finite, finite), self._bound, self._table._counted_scan, self.rereadable, hand_over)


class ClusterTable(Table):
    """Base of tables whose engine brings the rows of a unit together itself, and cuts them there."""

    _bound: ContributionBound | None = None

    def _bounded(self, bound: ContributionBound) -> Table:
        other = copy(self)
        other._bound = bound
        return other

    def _require_bound(self) -> None:
        if self._bound is None:
            super()._require_bound()

    def _scan(self, take: Take) -> None:
        """Rows on this machine: for algorithms that pass over the records themselves."""
        if self._bound is None:
            self._rows(take)
            return
        plain = copy(self)
        plain._bound = None
        BoundedTable(plain, self._bound)._scan(take)

    def _rows(self, take: Take) -> None:
        raise NotImplementedError


@cache
def _fast_choice() -> Any:
    """Give the module of compiled loops where the ``fast`` extra is installed, else nothing."""
    try:
        from fogline.engines import _fast_choice
    except ImportError:
        return None
    return _fast_choice
