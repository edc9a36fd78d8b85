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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.engines.choice import STEP, Choice, ContributionBound, Marks, Words, mixed, new_choice, unit_hashes
from fogline.engines.tables import BATCH_ROWS, State, Table, Take
from fogline.engines.units import INTEGER, MISSING, TEXT, Identities
from fogline.sketch import DensitySketch
from fogline.sketch.histogram import CellCounts, row_cells
from fogline.sketch.planning import Spec
from fogline.sketch.random_spec import RandomSpec

__all__ = [
    "BoundedTable",
    "ClusterTable",
    "ContributionBound",
    "Gathering",
    "kept_state",
    "unit_buckets",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Admit = Callable[[FloatArray], tuple[NDArray[np.bool_], Marks, FloatArray | None]]
"""Says which rows of a batch could count, their marks, and what is to be handed over of them."""

MOST_BYTES = 2**28
"""Bytes of one part of the units that are held in memory before it is split."""

SPLIT = 4
"""Parts into which a part is split."""

MOST_PARTS = SPLIT**8
"""Parts beyond which there is no use in splitting: what is left is one unit's."""


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
        self._payloads: list[FloatArray] = []
        self._taken = 0
        self._choices: dict[int, Choice] = {}
        self.bytes = 0

    def add(self, rows: FloatArray, ids: Any) -> None:
        """Take the records of a batch that could count and belong to the part."""
        usable, marks, payload = self._admit(rows)
        values, kinds = self._identities.read(ids)
        wanted = usable & (kinds != MISSING)
        if self._parts > 1:
            wanted &= self._hashes(values, kinds) % self._parts == self._part
        width = values.itemsize + marks.itemsize
        if payload is not None:
            values, kinds, marks, payload = values[wanted], kinds[wanted], marks[wanted], payload[wanted]
            self._payloads.append(payload)
            self.bytes += payload.nbytes
            wanted, width = np.ones(len(payload), dtype=bool), width + values.itemsize
        for kind in (INTEGER, TEXT):
            these = wanted & (kinds == kind)
            count = int(np.count_nonzero(these))
            if count:
                self._choice(kind, payload is not None).add(values, marks, these, self._taken)
                self.bytes += count * width
        self._taken += 0 if payload is None else len(payload)

    def kept(self) -> tuple[Marks, FloatArray | None]:
        """Marks of the records that are kept, and what is to be handed over of them."""
        numbers = np.arange(len(self._identities.texts))
        names = self._hashes(numbers, np.full(len(numbers), TEXT, dtype=np.int8))
        found = [choice.kept(names if kind == TEXT else None) for kind, choice in self._choices.items()]
        self._choices = {}
        if not found:
            return np.zeros(0, dtype=np.uint64), None
        marks, places = (np.concatenate([part[i] for part in found]) for i in range(2))
        if not self._payloads:
            return marks, None
        order = np.argsort(places)
        return marks[order], np.concatenate(self._payloads)[places[order]]

    def _choice(self, kind: int, has_places: bool) -> Choice:
        if kind not in self._choices:
            self._choices[kind] = new_choice(self._bound, has_places, MOST_BYTES)
        return self._choices[kind]

    def _hashes(self, values: IntArray, kinds: NDArray[np.int8]) -> Words:
        """Keyed hashes of ids: the same for equal ids, whatever number a text has here."""
        words = values.view(np.uint64).copy()
        texts = kinds == TEXT
        if texts.any():
            key = self._bound.key[0].to_bytes(8, "little")
            self._digests += [_digest(text, key) for text in self._identities.texts[len(self._digests) :]]
            words[texts] = np.array(self._digests, dtype=np.uint64)[values[texts]]
        return unit_hashes(words, self._bound.key)


def unit_buckets(ids: Any, bound: ContributionBound) -> IntArray:
    """A number for each id, the same for the same unit: for engines that bring rows together by it."""
    people = Gathering(_rows_within(0.0, 0.0, bound), bound)
    values, kinds = people._identities.read(ids)
    return (people._hashes(values, kinds) >> np.uint64(2)).astype(np.int64)


def _digest(text: str, key: bytes) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little")


# -- what competes --------------------------------------------------------------------------------------------


def _cells_of(spec: Any) -> Admit:
    total = CellCounts(spec).total_cells

    def admit(rows: FloatArray) -> tuple[NDArray[np.bool_], Marks, None]:
        cells = row_cells(rows, spec)
        return cells < total, cells.astype(np.uint32), None

    return admit


def _rows_within(lower: FloatArray | float, upper: FloatArray | float, bound: ContributionBound) -> Admit:
    start = np.uint64(bound.key[0])  # so that nobody can make unlike rows with equal marks

    def admit(rows: FloatArray) -> tuple[NDArray[np.bool_], Words, FloatArray]:
        with np.errstate(all="ignore"):
            inside = np.all((rows >= lower) & (rows <= upper), axis=1)  # false for NaN
            words = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # one zero, not two
        marks = np.full(len(rows), start)
        for j in range(rows.shape[1]):
            marks = mixed(marks + words[:, j] + STEP)
        return inside, marks, rows

    return admit


def kept_state(spec: Spec, bound: ContributionBound, scan: Callable[[Take], None], rereadable: bool = True) -> State:
    """Exact state of the sketch of what is kept of all records that a scan hands over."""
    sketch = DensitySketch.of(spec)
    if isinstance(spec, RandomSpec):
        admit = _rows_within(spec.lower, spec.upper, bound)
        _each_part(admit, bound, scan, rereadable, lambda _, rows: sketch.update(rows))
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
        super().__init__(table.columns, table.declared_width, table.unit_column)
        self._table, self._bound = table, bound
        self._failure, self._row = table._failure, table._row
        self.rereadable = table.rereadable

    @property
    def facts(self) -> dict[str, Any]:
        """Those of the table that is cut."""
        return self._table.facts

    def __getitem__(self, columns: list[str]) -> BoundedTable:
        """Some of the columns, of the same table, with the same key."""
        return BoundedTable(self._table[columns], self._bound)

    def _bounded(self, bound: ContributionBound) -> Table:
        """Cut anew, from all records: what was cut already is no table of rows, which another bound could cut."""
        return self._table._bounded(bound)

    def _require_bound(self) -> None:
        """There is one."""

    def each_unit_batch(self, take: Take) -> None:  # noqa: ARG002
        """Refused: whose the kept records are is not known any more."""
        raise RuntimeError("this table was cut by its unit, and does not tell whose its records are")

    def require_width(self, d: int) -> None:
        """Raise an error unless there is one column for each of d axes."""
        self._table.require_width(d)
        super().require_width(d)

    def _state(self, spec: Spec) -> State:
        table = self._table if isinstance(spec, RandomSpec) else self._table._unordered()  # equal cells are equal
        return kept_state(spec, self._bound, table._counted_scan, self.rereadable)

    def _scan(self, take: Take) -> None:
        def hand_over(_: Marks, rows: FloatArray) -> None:
            for start in range(0, len(rows), BATCH_ROWS):
                take(rows[start : start + BATCH_ROWS], None)

        finite = float(np.finfo(np.float64).max)
        admit = _rows_within(-finite, finite, self._bound)
        _each_part(admit, self._bound, self._table._counted_scan, self.rereadable, hand_over)


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
