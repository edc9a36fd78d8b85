r"""The privacy unit: of each unit's records at most c count, the same ones in every engine and in any order.

A record's *mark* is what the sketch sees of it (its cell, or its numbers). Equal records of a unit are told apart by
numbering them, 0, 1, 2, ...: which is which does not matter. Then

.. math:: h = H_{key}(\text{id}, \text{mark}, \text{number})

is a keyed 64-bit hash, and of each unit the c records with the smallest hashes are kept: a uniform draw of c of its
records, by a key from the noise provider. Only records that could count compete. What is kept of a unit depends
on that unit's records alone, so removing a unit removes at most c records, whatever the key; the proof is in
``contributions.proof.md`` beside this file. The key is there so that nobody can arrange to be kept.

All records of a unit are brought together in memory, a part of the units at a time: when a part grows too large it is
split by a hash of the id and the source is read again, for each part.

**The hash.** With :math:`\mu` a bijection of 64 bits that mixes them and a key :math:`(k_0, k_1)`, a unit with id i has
the hash :math:`h = \mu(\mu(i \oplus k_0) + k_1)`, and its record with a mark m, the number j of its equals, has the
rank

.. math:: \mu\bigl(\mu(h + m s) + j + k_1\bigr),

s an odd constant.

**Ids** of any engine become integers, equal in every engine for equal ids. An id is an integer or a text. A text that
is an integer in its plain decimal form counts as that integer, so that a table and the CSV file exported from it have
the same people; a floating-point id that is a whole number does too, since some frames hold integers with gaps that
way. An integer that does not fit into 64 bits counts as its text. Anything else (NULL, the empty text, NaN, a float of
2^63 or more, a type that is no id) is missing, and a row whose id is missing contributes nothing: it cannot be said
whose contribution it would be.

Every id is read alone: what others are beside it, and of which types, does not matter. A text need not be UTF-8: of one
that is not, each byte that cannot be read stands for itself, so that ids that differ stay apart.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from fogline._typing import ArrowColumn, BoolArray, FloatArray, Ids, IntArray, WordArray, is_arrow
from fogline._validation import records
from fogline.density.random_spec import CellSpec, RandomSpec, Spec
from fogline.mechanisms.randomness import current_provider
from fogline.queries.exact_counts import exact_counts
from fogline.queries.fourier_sums import CellCounts, row_cells
from fogline.sources.tables import BATCH_ROWS, Source, State, Take

if TYPE_CHECKING:
    import pyarrow as pa

    from fogline.sources._contributions_numba import FastSampler

__all__ = [
    "INTEGER",
    "MISSING",
    "TEXT",
    "BoundedTable",
    "ClusterTable",
    "ContributionBound",
    "ContributionSampler",
    "Digests",
    "Identities",
    "UnitBuckets",
    "escaped",
    "id_cells",
    "kept_records",
    "kept_state",
    "mixed",
    "new_sampler",
    "unit_buckets",
    "unit_hashes",
]

Digests = NDArray[np.uint32] | WordArray

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
        """A bound with a fresh key from the noise provider."""
        # Through the provider, so that an audit can replay the choice; privacy does not rest on the key.
        words = current_provider().generator("contribution bound").integers(0, 2**64, size=2, dtype=np.uint64)
        return cls(most, (int(words[0]), int(words[1])))


def mixed(words: WordArray) -> WordArray:
    """Mix the bits of each word: a bijection of 64 bits in which every bit of the input moves half of the output."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return np.asarray(words ^ (words >> np.uint64(31)))


def unit_hashes(words: WordArray, key: tuple[int, int]) -> WordArray:
    """Keyed hashes of units, from a word for each."""
    return mixed(mixed(words ^ np.uint64(key[0])) + np.uint64(key[1]))


def kept_records(people: IntArray, hashes: WordArray, record_digests: Digests, bound: ContributionBound) -> IntArray:
    """Places of the records that are kept, by unit.

    Parameters
    ----------
    people : array of shape (n,)
        Number of each record's unit, from 0.
    hashes : array of shape (units,)
        Keyed hash of each unit's id.
    record_digests : array of shape (n,)
    bound : ContributionBound
    """
    # Sorted by what a record is, never by where it stood: rows in another order keep the same records.
    order = np.lexsort((record_digests, people))
    units, sorted_digests = people[order], record_digests[order]
    places = np.arange(len(order))
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (units[1:] != units[:-1]) | (sorted_digests[1:] != sorted_digests[:-1])
    # Equal records are numbered, so that copies have different ranks and are not all kept or all dropped.
    number = places - np.maximum.accumulate(np.where(fresh, places, 0))
    seeds = mixed(hashes[units] + sorted_digests.astype(np.uint64) * STEP)
    ranks = mixed(seeds + (number.astype(np.uint64) + np.uint64(bound.key[1])))
    by_rank = np.lexsort((ranks, units))
    units = units[by_rank]
    first = np.ones(len(order), dtype=bool)
    first[1:] = units[1:] != units[:-1]
    rank = places - np.maximum.accumulate(np.where(first, places, 0))
    return np.asarray(order[by_rank[rank < bound.most]])


class ContributionSampler(Protocol):
    """Takes records batch by batch, all of one kind of id, and gives those that are kept."""

    def add(self, values: IntArray, record_digests: Digests, wanted: BoolArray, first: int) -> None:
        """Take the wanted records of a batch; `first` is the place of its first."""

    def add_cells(self, values: IntArray, rows: FloatArray, spec: CellSpec, part: int, parts: int) -> int:
        """Take the records of a batch that lie in a cell, which is their mark, and of whose units this is the part.

        All ids are integers; returns how many records it were.
        """

    def kept(self, names: WordArray | None) -> tuple[Digests, IntArray]:
        """Marks and places of what is kept; with `names`, values are numbers of texts, whose hashes these are."""

    def count_kept(self, names: WordArray | None, counts: IntArray) -> None:
        """Add what is kept to the counts of the cells, where marks are cells; `names` as above."""


def new_sampler(bound: ContributionBound, has_places: bool, most_bytes: int) -> ContributionSampler:
    """A choice by compiled loops where the ``fast`` extra is installed, else by numpy: of the same records.

    Parameters
    ----------
    bound : ContributionBound
    has_places : bool
        Whether places are asked for; else they are not told.
    most_bytes : int
        What may be held: address space for it is set aside at once, memory comes as it is used.
    """
    fast = _fast_sampler()
    if fast is None:
        return PlainSampler(bound)
    return fast(bound.most, bound.key, has_places, most_bytes)


class PlainSampler:
    """The choice in numpy, by sorting."""

    def __init__(self, bound: ContributionBound) -> None:
        self._bound = bound
        self._batches: list[tuple[IntArray, Digests, IntArray]] = []

    def add(self, values: IntArray, record_digests: Digests, wanted: BoolArray, first: int) -> None:
        """Take the wanted records of a batch."""
        self._batches.append((values[wanted], record_digests[wanted], first + np.flatnonzero(wanted)))

    def add_cells(self, values: IntArray, rows: FloatArray, spec: CellSpec, part: int, parts: int) -> int:
        """Take the records of a batch that lie in a cell and belong to the part."""
        wanted, cells = cell_marks(rows, spec)
        if parts > 1:
            wanted &= unit_hashes(values.view(np.uint64), self._bound.key) % np.uint64(parts) == np.uint64(part)
        self.add(values, cells, wanted, 0)
        return int(np.count_nonzero(wanted))

    def kept(self, names: WordArray | None) -> tuple[Digests, IntArray]:
        """Marks and places of what is kept."""
        if not self._batches:
            return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        values, record_digests, places = (np.concatenate([batch[i] for batch in self._batches]) for i in range(3))
        self._batches = []
        units, people = np.unique(values, return_inverse=True)
        hashes = unit_hashes(units.view(np.uint64), self._bound.key) if names is None else names[units]
        chosen = kept_records(people, hashes, record_digests, self._bound)
        return record_digests[chosen], places[chosen]

    def count_kept(self, names: WordArray | None, counts: IntArray) -> None:
        """Add what is kept to the counts of the cells."""
        here = np.bincount(self.kept(names)[0].astype(np.int64))
        counts[: len(here)] += here


@cache
def _fast_sampler() -> type[FastSampler] | None:
    """Give the module of compiled loops where the ``fast`` extra is installed, else nothing."""
    try:
        from fogline.sources._contributions_numba import FastSampler
    except ImportError:
        return None
    return FastSampler


MISSING, INTEGER, TEXT = -1, 0, 1
"""Kinds of ids."""

SHORT = r"0|-?[1-9][0-9]{0,17}"
"""Texts that stand for an integer below 10^18, which has 64 bits for sure."""

_PLAIN = re.compile(r"0|-?[1-9][0-9]{0,18}")
_LEAST, _MOST = -(2**63), 2**63 - 1


class Identities:
    """Ids of one pass as pairs (value, kind): integers are their own value, texts are numbered as they come.

    Examples
    --------
    >>> people = Identities()
    >>> values, kinds = people.read(["7", 7, "Ann", None, "07"])
    >>> values.tolist(), kinds.tolist()
    ([7, 7, 0, 0, 1], [0, 0, 1, -1, 1])
    >>> people.texts
    ['Ann', '07']
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def texts(self) -> list[str]:
        """Texts by their numbers."""
        return list(self._numbers)

    def read(self, ids: Ids) -> tuple[IntArray, NDArray[np.int8]]:
        """Values and kinds of a batch of ids: a numpy or Arrow array, or a list."""
        if is_arrow(ids):
            return self._arrow(ids)
        array = ids if isinstance(ids, np.ndarray) else None
        # The common case: no cell need be looked at as an object.
        if array is not None and array.dtype.kind in "iu" and not _is_beyond(array):
            return array.astype(np.int64), np.zeros(len(array), dtype=np.int8)
        if array is not None and array.dtype.kind == "f":
            with np.errstate(all="ignore"):  # a signalling NaN, a long double beyond the doubles
                return _whole(array.astype(np.float64))
        return self._objects(id_cells(ids))

    def _arrow(self, ids: ArrowColumn) -> tuple[IntArray, NDArray[np.int8]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = _undictionaried(ids)
        if pa.types.is_integer(ids.type):
            if pa.types.is_uint64(ids.type) and _is_beyond(np.asarray(pc.fill_null(ids, 0))):
                return self._objects(ids.to_pylist())
            if not ids.null_count:
                return np.asarray(ids).astype(np.int64, copy=False), np.zeros(len(ids), dtype=np.int8)
            values = np.asarray(pc.fill_null(ids, 0)).astype(np.int64)
            return values, np.where(np.asarray(ids.is_null()), np.int8(MISSING), np.int8(INTEGER))
        if pa.types.is_floating(ids.type):
            return _whole(np.asarray(ids.cast("float64").to_numpy(zero_copy_only=False)))
        if _is_text(ids.type):
            texts = ids.cast(pa.large_binary())
            # A shortcut where all texts are plain integers; else each cell is judged alone, with the same result.
            if pc.all(pc.match_substring_regex(texts, f"^({SHORT})$"), skip_nulls=False).as_py():
                return self._arrow(texts.cast(pa.large_string()).cast(pa.int64()))
        return self._objects(id_cells(ids))

    def _objects(self, ids: list[Any]) -> tuple[IntArray, NDArray[np.int8]]:
        values, kinds = np.zeros(len(ids), dtype=np.int64), np.full(len(ids), MISSING, dtype=np.int8)
        for i, cell in enumerate(ids):
            found = _identity(cell)
            if isinstance(found, int):
                values[i], kinds[i] = found, INTEGER
            elif found is not None:
                values[i], kinds[i] = self._numbers.setdefault(found, len(self._numbers)), TEXT
        return values, kinds


def id_cells(ids: Ids) -> list[Any]:
    """Cells of a batch of ids one by one: of a numpy or Arrow array, or of a list."""
    if isinstance(ids, np.ndarray):
        return list(ids.tolist())
    if not is_arrow(ids):
        return list(cast("Sequence[Any]", ids))
    import pyarrow as pa

    ids = _undictionaried(ids)
    if not _is_text(ids.type):
        return cells_alone(ids.to_pylist, cast("Iterable[Any]", ids), lambda cell: cell.as_py())
    texts = ids.cast(pa.large_binary()).to_pylist()  # a text need not be UTF-8, and its bytes can always be read
    return [None if text is None else escaped(text) for text in texts]


def cells_alone(together: Callable[[], Iterable[Any]], cells: Iterable[Any], value: Callable[[Any], Any]) -> list[Any]:
    """Cells of a batch as Python has them; where one cannot be, it alone is missing.

    A day after the year 9999 has no Python date. Read together, it would fail the whole batch, and with it a release.

    Examples
    --------
    >>> cells_alone(lambda: [1 / n for n in (1, 0)], (1, 0), lambda n: 1 / n)
    [1.0, None]
    """

    def alone(cell: object) -> object:
        try:
            return value(cell)
        except KeyboardInterrupt:
            raise
        except BaseException:  # a library in another language may raise what is no Exception
            return None

    try:
        return list(together())
    except KeyboardInterrupt:
        raise
    except BaseException:
        return [alone(cell) for cell in cells]


def _undictionaried(ids: ArrowColumn) -> ArrowColumn:
    import pyarrow as pa

    return ids.cast(ids.type.value_type) if pa.types.is_dictionary(ids.type) else ids


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def escaped(text: bytes) -> str:
    """A text from its bytes, different for different bytes, whether they are UTF-8 or not."""
    return text.decode("utf-8", "surrogateescape")


def _identity(cell: object) -> int | str | None:
    """An id in its one form: an integer of 64 bits, a text that is none, or nothing."""
    try:
        found = _integer(cell)
        if found is not None and _LEAST <= found <= _MOST:
            return found
        if found is not None:
            # As many digits as it has: `str` has a limit of 4300, beyond which it raises an error.
            return str(cell) if isinstance(cell, str) else format(Decimal(found), "f")
        return str(cell) or None if isinstance(cell, str) else None
    except KeyboardInterrupt:
        raise
    except BaseException:  # of a class with errors of its own
        return None


def _integer(cell: object) -> int | None:
    """The integer that an id stands for, if it does."""
    if isinstance(cell, str):
        return int(cell) if _PLAIN.fullmatch(cell) else None
    if isinstance(cell, bool | np.bool_ | np.timedelta64):
        return None
    if isinstance(cell, int | np.integer):
        return int(cell)
    if isinstance(cell, float | np.floating):
        return int(cell) if float(cell).is_integer() and abs(float(cell)) < 2.0**63 else None
    return None


def _is_beyond(ids: NDArray[Any]) -> bool:
    """Whether unsigned integers hold one that would wrap."""
    return bool(ids.dtype.kind == "u" and len(ids) and ids.max() > _MOST)


def _whole(ids: FloatArray) -> tuple[IntArray, NDArray[np.int8]]:
    """Floating-point ids: whole numbers alone are ids."""
    with np.errstate(all="ignore"):
        usable = (np.abs(ids) < 2.0**63) & (np.floor(ids) == ids)
    values = np.where(usable, ids, 0.0).astype(np.int64)
    return values, np.where(usable, np.int8(INTEGER), np.int8(MISSING))


Admit = Callable[[FloatArray], tuple[BoolArray, WordArray, FloatArray]]
"""Says which rows of a batch could count, their marks, and what is to be handed over of them."""

CELL_BYTES, ROW_BYTES = 12, 24
"""Bytes that are held of a record: of its unit and its cell; of its unit, its mark and its place."""

MOST_BYTES = 5 * 2**28
"""Bytes of one part of the units that are held in memory before it is split: 10^8 records on a grid are not."""

RESERVE = 2**28
"""Bytes of address space that are set aside at first where nothing is split, as in a task of a cluster."""

SPLIT = 4
"""Parts into which a part is split."""

MOST_PARTS = SPLIT**8
"""Parts beyond which there is no use in splitting: what is left is one unit's."""


class UnitBuckets:
    """Records of some units, brought together.

    Parameters
    ----------
    admit : callable or SketchSpec or LeafSpec
        :data:`Admit`, or a grid: then a record's cell is its mark, and nothing else is to be handed over of it.
    bound : ContributionBound
    part, parts : int
        Which part of the units is wanted.
    """

    def __init__(self, admit: Admit | CellSpec, bound: ContributionBound, part: int = 0, parts: int = 1) -> None:
        self._admit, self._bound = admit, bound
        self._part, self._parts = part, parts
        self._identities = Identities()
        self._digests: list[int] = []
        self._payloads: list[FloatArray] = []
        self._taken = 0
        self._samplers: dict[int, ContributionSampler] = {}
        self.bytes = 0
        self.reserve = RESERVE

    def add(self, rows: FloatArray, ids: Ids) -> None:
        """Take the records of a batch that could count and belong to the part."""
        values, kinds = self._identities.read(ids)
        if not len(rows) and not self._taken and not self._samplers:
            self._try(rows, values)
        if not isinstance(self._admit, CellSpec):
            self._add_rows(self._admit, rows, values, kinds)
            return
        if not kinds.any():  # integers, all of them: the common case, in one loop
            taken = self._sampler(INTEGER, False).add_cells(values, rows, self._admit, self._part, self._parts)
            self.bytes += taken * CELL_BYTES
            return
        inside, cells = cell_marks(rows, self._admit)
        wanted = self._wanted(inside, values, kinds)
        for kind in (INTEGER, TEXT):
            these = wanted & (kinds == kind)
            count = int(np.count_nonzero(these))
            if count:
                self._sampler(kind, False).add(values, cells, these, 0)
                self.bytes += count * CELL_BYTES

    def _add_rows(self, admit: Admit, rows: FloatArray, values: IntArray, kinds: NDArray[np.int8]) -> None:
        """Take records that are to be handed over themselves."""
        usable, record_digests, payload = admit(rows)
        wanted = self._wanted(usable, values, kinds)
        values, kinds, record_digests, payload = values[wanted], kinds[wanted], record_digests[wanted], payload[wanted]
        self._payloads.append(payload)
        # Twice, since what is kept is taken out of all of them together.
        self.bytes += 2 * payload.nbytes + len(payload) * ROW_BYTES
        for kind in (INTEGER, TEXT):
            these = kinds == kind
            if these.any():
                self._sampler(kind, True).add(values, record_digests, these, self._taken)
        self._taken += len(payload)

    def _wanted(self, usable: BoolArray, values: IntArray, kinds: NDArray[np.int8]) -> BoolArray:
        wanted: BoolArray = usable & (kinds != MISSING)
        if self._parts > 1:
            wanted &= self._hashes(values, kinds) % np.uint64(self._parts) == np.uint64(self._part)
        return wanted

    def _try(self, rows: FloatArray, values: IntArray) -> None:
        """Load and compile with no rows: what the process holds must not tell that somebody had a record."""
        nobody = np.zeros(0, dtype=bool)
        has_places = not isinstance(self._admit, CellSpec)
        tried = new_sampler(self._bound, has_places, 0)
        no_digests: Digests = np.zeros(0, dtype=np.uint64) if has_places else np.zeros(0, dtype=np.uint32)
        tried.add(values, no_digests, nobody, 0)
        if isinstance(self._admit, CellSpec):
            tried.add_cells(values, rows, self._admit, self._part, self._parts)
            tried.count_kept(None, np.zeros(1, dtype=np.int64))
        tried.kept(None)

    def kept(self) -> tuple[Digests, FloatArray | None]:
        """Marks of the records that are kept, and what is to be handed over of them."""
        names = self._names()
        found = [sampler.kept(names if kind == TEXT else None) for kind, sampler in self._samplers.items()]
        self._samplers = {}
        if not found:
            return np.zeros(0, dtype=np.uint64), None
        record_digests, places = (np.concatenate([part[i] for part in found]) for i in range(2))
        if not self._payloads:
            return record_digests, None
        order = np.argsort(places)
        return record_digests[order], np.concatenate(self._payloads)[places[order]]

    def counted(self, cells: int) -> IntArray:
        """How many of the records that are kept lie in each cell of a grid, without a list of them."""
        names, counts = self._names(), np.zeros(cells, dtype=np.int64)
        while self._samplers:
            kind, sampler = self._samplers.popitem()
            sampler.count_kept(names if kind == TEXT else None, counts)
        return counts

    def _names(self) -> WordArray:
        """Keyed hashes of the texts, by their numbers."""
        numbers = np.arange(len(self._identities.texts))
        return self._hashes(numbers, np.full(len(numbers), TEXT, dtype=np.int8))

    def _sampler(self, kind: int, has_places: bool) -> ContributionSampler:
        if kind not in self._samplers:
            self._samplers[kind] = new_sampler(self._bound, has_places, self.reserve)
        return self._samplers[kind]

    def _hashes(self, values: IntArray, kinds: NDArray[np.int8]) -> WordArray:
        """Keyed hashes of ids: the same for equal ids, whatever number a text has here."""
        words = values.view(np.uint64).copy()
        texts = kinds == TEXT
        if texts.any():
            key = self._bound.key[0].to_bytes(8, "little")
            self._digests += [_digest(text, key) for text in self._identities.texts[len(self._digests) :]]
            words[texts] = np.array(self._digests, dtype=np.uint64)[values[texts]]
        return unit_hashes(words, self._bound.key)


def unit_buckets(ids: Ids, bound: ContributionBound) -> IntArray:
    """A number for each id, the same for the same unit: for engines that bring rows together by it."""
    people = UnitBuckets(_rows_within(0.0, 0.0, bound), bound)
    values, kinds = people._identities.read(ids)
    return (people._hashes(values, kinds) >> np.uint64(2)).astype(np.int64)


def _digest(text: str, key: bytes) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little")


# -- what competes --------------------------------------------------------------------------------------------


def cell_marks(rows: FloatArray, spec: CellSpec) -> tuple[BoolArray, NDArray[np.uint32]]:
    """Which rows lie in a cell, and in which."""
    cells = row_cells(rows, spec)
    return cells < math.prod(spec.cells), cells.astype(np.uint32)


def _rows_within(lower: FloatArray | float, upper: FloatArray | float, bound: ContributionBound) -> Admit:
    start = np.uint64(bound.key[0])  # so that nobody can make unlike rows with equal marks

    def admit(rows: FloatArray) -> tuple[BoolArray, WordArray, FloatArray]:
        with np.errstate(all="ignore"):
            inside = np.all((rows >= lower) & (rows <= upper), axis=1)  # false for NaN
            words = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # one zero, not two
        record_digests = np.full(len(rows), start)
        for j in range(rows.shape[1]):
            record_digests = mixed(record_digests + words[:, j] + STEP)
        return inside, record_digests, rows

    return admit


def kept_state(spec: Spec, bound: ContributionBound, scan: Callable[[Take], None], rereadable: bool = True) -> State:
    """Exact state of the sketch of what is kept of all records that a scan hands over."""
    counts = exact_counts(spec)
    if isinstance(spec, RandomSpec):
        admit = _rows_within(spec.lower, spec.upper, bound)
        take_rows = _with_rows(lambda rows: counts.add_rows(records(rows, spec.d)))
        _each_part(admit, bound, scan, rereadable, take_rows)
        return counts.state()
    is_dense, total = isinstance(counts, CellCounts) and counts.is_dense, math.prod(spec.cells)

    def count(buckets: UnitBuckets) -> None:
        here = buckets.counted(total) if is_dense else np.bincount(buckets.kept()[0].astype(np.int64))
        keys = np.flatnonzero(here)
        counts.add_state(*counts.checked(keys, here[keys]))

    _each_part(spec, bound, scan, rereadable, count)
    return counts.state()


def _with_rows(take: Callable[[FloatArray], object]) -> Callable[[UnitBuckets], None]:
    """What hands over the rows that are kept, if there are any."""

    def use(buckets: UnitBuckets) -> None:
        rows = buckets.kept()[1]
        if rows is not None and len(rows):
            take(rows)

    return use


def _each_part(
    admit: Admit | CellSpec,
    bound: ContributionBound,
    scan: Callable[[Take], None],
    rereadable: bool,
    use: Callable[[UnitBuckets], object],
    part: int = 0,
    parts: int = 1,
) -> None:
    """Use what is kept of the units of one part; of its own parts, one by one, where it is too large."""
    buckets = UnitBuckets(admit, bound, part, parts)
    divisible = rereadable and parts < MOST_PARTS
    if divisible:
        buckets.reserve = MOST_BYTES

    def take(rows: FloatArray, ids: Ids | None) -> None:
        buckets.add(rows, cast(Ids, ids))  # a table that is cut has a unit, and so ids
        if divisible and buckets.bytes > MOST_BYTES:
            raise _TooMuch

    try:
        scan(take)
    except _TooMuch:
        # Freed before the parts are read, which need the memory.
        del buckets
        for smaller in range(SPLIT):
            # The residue modulo the finer number refines the coarser one: together the parts are exactly this part.
            _each_part(admit, bound, scan, rereadable, use, part + smaller * parts, parts * SPLIT)
        return
    use(buckets)


class _TooMuch(Exception):
    """A part of the units that must be split."""


class BoundedTable(Source):
    """A table of which no unit contributes more than its bound, brought together on this machine.

    Parameters
    ----------
    table : Source
        With a unit.
    bound : ContributionBound
    """

    def __init__(self, table: Source, bound: ContributionBound) -> None:
        super().__init__(table.columns, table.declared_width, table.unit_column)
        self._table, self._bound = table, bound
        # Errors and the guarantee speak of the table that is cut, not of this wrapper.
        self._failure, self._row = table._failure, table._row
        self.rereadable = table.rereadable

    @property
    def facts(self) -> dict[str, Any]:
        """Those of the table that is cut."""
        return self._table.facts

    def __getitem__(self, columns: list[str]) -> BoundedTable:
        """Some of the columns, of the same table, with the same key."""
        return BoundedTable(self._table[columns], self._bound)

    def _bounded(self, bound: ContributionBound) -> Source:
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
        table = self._table if isinstance(spec, RandomSpec) else self._table._for_cells()  # equal cells are equal
        return kept_state(spec, self._bound, table._counted_scan, self.rereadable)

    def _scan(self, take: Take) -> None:
        def hand_over(rows: FloatArray) -> None:
            for start in range(0, len(rows), BATCH_ROWS):
                take(rows[start : start + BATCH_ROWS], None)

        finite_values = float(np.finfo(np.float64).max)
        admit = _rows_within(-finite_values, finite_values, self._bound)
        _each_part(admit, self._bound, self._table._counted_scan, self.rereadable, _with_rows(hand_over))


class ClusterTable(Source):
    """Base of tables whose engine brings the rows of a unit together itself, and cuts them there."""

    _bound: ContributionBound | None = None

    def _bounded(self, bound: ContributionBound) -> Source:
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

    def _joint_states(self, specs: Sequence[CellSpec], places: Sequence[Sequence[int]]) -> list[State]:
        """Exact states of several grids in one job, each of the columns at its places; see ``joint_pass.py``."""
        raise NotImplementedError
