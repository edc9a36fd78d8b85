"""The choice of each unit's records as compiled loops: the same records as ``PlainSampler`` in ``contributions.py``.

Records are dealt into buckets as they come, by the first bits of their unit's word, a bijection of its id by the key.
A bucket is a chain of chunks of one large reserve, so nothing is copied when it grows, and a record's numbers lie side
by side, so that it touches one line of the cache. In the end each bucket is sorted by further bits of the word, which
leaves a unit or two together, and these are told apart by the whole of it. Buckets have nothing to do with each other,
so threads share them.

A record is a row of a few words of 32 bits: two of its unit's word, one or two of its digest, and two of its place
where places are asked for; twelve bytes for a cell of a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from fogline._typing import BoolArray, FloatArray, IntArray, WordArray
from fogline.density.random_spec import CellSpec
from fogline.queries._numba import BLOCK, Axes, column_chunks, grid_parts, write_block
from fogline.sources.tables import cores

__all__ = ["FastSampler"]

T = TypeVar("T")
Digests: TypeAlias = NDArray[np.uint32] | WordArray
Halves: TypeAlias = NDArray[np.uint32]
Chain: TypeAlias = NDArray[np.int32]

BUCKET_BITS = 10
"""There are 2**10 buckets."""

CHUNK = 264
"""Records of a chunk. A number of cache lines that is no power of two: chunks of 256 would all begin in the same few
sets of a cache."""

WINDOW, HALF_WINDOW = 32, 16
"""Up to this many records of a unit are compared with one another, all with all and without a branch."""

TASKS = 16
"""Shares of the buckets that threads take."""

MANY = 2**17
"""From this many records on, threads are worth their start."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_SIGN = np.uint64(2**63)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_LARGEST = np.int64(2**63 - 1)


class FastSampler:
    """The choice by compiled loops; parameters as for ``new_sampler``."""

    def __init__(self, most: int, key: tuple[int, int], has_places: bool, most_bytes: int) -> None:
        self._most, self._key = most, (np.uint64(key[0]), np.uint64(key[1]))
        self._has_places, self._most_bytes = has_places, most_bytes
        self._next = np.arange(2**BUCKET_BITS) * CHUNK
        self._after: Chain = np.zeros(0, dtype=np.int32)
        self._held: Halves = np.zeros((0, 0), dtype=np.uint32)
        self._digest_type: np.dtype[Any] = np.dtype(np.uint64)
        self._used = 0

    def add(self, values: IntArray, record_digests: Digests, wanted: BoolArray, first: int) -> None:
        """Take the wanted records of a batch."""
        self._make_room(len(values), record_digests.dtype)
        # Contiguous and writeable: for any other kind of array numba would compile the loop once more.
        ids = np.require(values, requirements=["C", "W"]).view(np.uint64)
        self._used = _scatter_to_buckets(
            ids,
            record_digests,
            wanted,
            first,
            self._key[0],
            self._has_places,
            self._next,
            self._after,
            self._used,
            self._held,
        )

    def add_cells(self, values: IntArray, rows: FloatArray, spec: CellSpec, part: int, parts: int) -> int:
        """Take the records of a batch that lie in a cell and belong to a part of the units, with cells as digests."""
        self._make_room(len(values), np.dtype(np.uint32))
        ids = np.require(values, requirements=["C", "W"]).view(np.uint64)
        parts_of_grid, share, start, taken = grid_parts(spec), (np.uint64(part), np.uint64(parts)), 0, 0
        for columns in column_chunks(rows):
            stop = start + columns.shape[1]
            chain = (self._next, self._after, self._used, self._held)
            self._used, here = _scatter_cells(ids[start:stop], columns, *parts_of_grid, self._key, share, *chain)
            start, taken = stop, taken + int(here)
        return taken

    def kept(self, names: WordArray | None) -> tuple[Digests, IntArray]:
        """Marks and places of what is kept."""
        if not self._used:
            return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        parts = self._each_task(names, lambda digests, places: (digests.astype(self._digest_type, copy=False), places))
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def count_kept(self, names: WordArray | None, counts: IntArray) -> None:
        """Add what is kept to the counts of the cells, where marks are cells.

        Each task's are counted as soon as they are chosen: a list of all of them would be as large as the records.
        """
        one_by_one = Lock()

        def add(cells: WordArray, places: IntArray) -> None:  # noqa: ARG001
            with one_by_one:
                _count_cells(cells, counts)

        if self._used:
            self._each_task(names, add)

    def _each_task(self, names: WordArray | None, use: Callable[[WordArray, IntArray], T]) -> list[T]:
        """Hand over marks and places of what is kept, for each share of the buckets; what the user made of them."""
        hashes = np.zeros(0, dtype=np.uint64) if names is None else names
        words = _words(np.arange(len(hashes), dtype=np.uint64), self._key[0])
        # Sorted once, so that a unit's hash is found by bisection.
        order = np.argsort(words)
        words, hashes = words[order], hashes[order]

        def choose(task: int) -> T:
            low, high = (2**BUCKET_BITS * t // TASKS for t in (task, task + 1))
            wide = self._digest_type.itemsize == 8
            chain = (self._next, self._after, self._held, wide, self._has_places)
            return use(*_choose(low, high, self._key[1], self._most, words, hashes, *chain))

        threads = cores()
        if self._used * CHUNK < MANY + 2**BUCKET_BITS * CHUNK or threads == 1:
            return [choose(task) for task in range(TASKS)]
        with ThreadPoolExecutor(min(threads, TASKS)) as pool:
            return list(pool.map(choose, range(TASKS)))

    def _make_room(self, records: int, digest_type: np.dtype[Any]) -> None:
        if not self._used:
            self._start(digest_type)
        while self._used + records // CHUNK + 2**BUCKET_BITS >= len(self._after):
            # Twice the room: for sources that cannot be read in parts.
            self._after = np.concatenate([self._after, np.full_like(self._after, -1)])
            self._held = np.concatenate([self._held, np.empty_like(self._held)])

    def _start(self, digest_type: np.dtype[Any]) -> None:
        self._digest_type = digest_type
        halves = 2 + digest_type.itemsize // 4 + 2 * self._has_places
        # A chunk for each bucket, and one more for each that a first batch may fill: else all would be copied at once.
        least = 2 + 2 * 2**BUCKET_BITS
        more = self._most_bytes // (4 * halves * CHUNK)
        while True:
            try:
                self._held = np.empty(((least + more) * CHUNK, halves), dtype=np.uint32)
                break
            except MemoryError:  # where address space itself is short: it comes as it is needed
                if not more:
                    raise
                more //= 2
        self._after = np.full(least + more, -1, dtype=np.int32)
        self._used = 2**BUCKET_BITS


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def _mixed(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _words(ids: WordArray, key: np.uint64) -> WordArray:
    words = np.empty_like(ids)
    for i in range(len(ids)):
        words[i] = _mixed(ids[i] ^ key)
    return words


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _scatter_cells(
    ids: WordArray,
    columns: FloatArray,
    lower: Axes,
    upper: Axes,
    widths: Axes,
    shift: Axes,
    cells: tuple[int, ...],
    key: tuple[np.uint64, np.uint64],
    part: tuple[np.uint64, np.uint64],
    following: IntArray,
    after: Chain,
    used: int,
    stored: Halves,
) -> tuple[int, int]:
    """Put the records of a batch that lie in a cell into their buckets; chunks in use, and how many records it were.

    ``columns`` has one row per column of the batch. ``following`` is where the next record of each bucket goes,
    ``after`` the chunk after each chunk of a bucket, which begins with the chunk of its own number. (A helper for what
    both loops share would make either twice as slow.)
    """
    taken, places, words = 0, np.empty(BLOCK, np.int32), np.empty(BLOCK, np.uint64)
    for start in range(0, len(ids), BLOCK):
        here = ids[start : start + BLOCK]
        write_block(columns, start, start + len(here), lower, upper, widths, shift, cells, places)
        for i in range(len(here)):
            words[i] = _mixed(here[i] ^ key[0])
        if part[1] != np.uint64(1):
            for i in range(len(here)):
                if _mixed(words[i] + key[1]) % part[1] != part[0]:
                    places[i] = -1
        for i in range(len(here)):
            word, is_wanted = words[i], places[i] >= 0
            bucket = word >> np.uint64(64 - BUCKET_BITS)
            at = following[bucket]
            # Written whether it is wanted or not, without a branch that records decide: the next one takes its place.
            stored[at, 0], stored[at, 1] = np.uint32(word >> _HALF), np.uint32(word & _LOW)
            stored[at, 2] = np.uint32(places[i])
            taken += is_wanted
            at += is_wanted
            if is_wanted and at % CHUNK == 0:  # the chunk is full
                after[at // CHUNK - 1] = used
                at = used * CHUNK
                used += 1
            following[bucket] = at
    return used, taken


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _scatter_to_buckets(
    ids: WordArray,
    record_digests: Digests,
    wanted: BoolArray,
    first: int,
    key: np.uint64,
    has_places: bool,
    following: IntArray,
    after: Chain,
    used: int,
    stored: Halves,
) -> int:
    """Put the wanted records of a batch into their buckets; returns the number of chunks in use."""
    last = stored.shape[1] - 1
    wide = last - 2 * has_places == 3
    for i in range(len(ids)):
        if not wanted[i]:
            continue
        word, digest = _mixed(ids[i] ^ key), np.uint64(record_digests[i])
        bucket = word >> np.uint64(64 - BUCKET_BITS)
        at = following[bucket]
        stored[at, 0], stored[at, 1] = np.uint32(word >> _HALF), np.uint32(word & _LOW)
        stored[at, 2] = np.uint32(digest & _LOW)
        if wide:
            stored[at, 3] = np.uint32(digest >> _HALF)
        if has_places:
            place = np.uint64(first + i)
            stored[at, last - 1], stored[at, last] = np.uint32(place & _LOW), np.uint32(place >> _HALF)
        at += 1
        if at % CHUNK == 0:
            after[at // CHUNK - 1] = used
            at = used * CHUNK
            used += 1
        following[bucket] = at
    return used


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _choose(
    low: int,
    high: int,
    key: np.uint64,
    most: int,
    names: WordArray,
    name_hashes: WordArray,
    following: IntArray,
    after: Chain,
    stored: Halves,
    wide: bool,
    has_places: bool,
) -> tuple[WordArray, IntArray]:
    """Marks and places of what is kept of the units in some buckets."""
    total, largest = _sizes(following, after, low, high)
    n_places = largest if has_places else 0
    kept_digests, kept_places = np.empty(total + 1, np.uint64), np.empty(total + 1 if has_places else 0, np.int64)
    words, digests, places = np.empty(largest, np.uint64), np.empty(largest, np.uint64), np.empty(n_places, np.int64)
    own_digests, own_places = np.empty(largest, np.uint64), np.empty(n_places, np.int64)
    ranks, positions = np.empty(WINDOW, np.int64), np.empty(WINDOW, np.int64)
    bits = 6
    while bits < 20 and (4 << bits) < largest:
        bits += 1
    ends = np.empty((1 << bits) + 1, np.int32)
    filled = 0
    for bucket in range(low, high):
        _sort_bucket(bucket, following[bucket], after, stored, wide, has_places, bits, ends, words, digests, places)
        filled = _choose_in_bucket(
            ends,
            words,
            digests,
            places,
            (own_digests, own_places),
            (ranks, positions),
            key,
            most,
            (names, name_hashes),
            kept_digests,
            kept_places,
            filled,
        )
    return kept_digests[:filled], kept_places[: filled if has_places else 0]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _count_cells(cells: WordArray, counts: IntArray) -> None:
    for cell in cells:
        counts[np.int64(cell)] += 1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _choose_in_bucket(
    ends: Chain,
    words: WordArray,
    digests: WordArray,
    places: IntArray,
    own: tuple[WordArray, IntArray],
    few: tuple[IntArray, IntArray],
    key: np.uint64,
    most: int,
    names: tuple[WordArray, WordArray],
    kept_digests: WordArray,
    kept_places: IntArray,
    filled: int,
) -> int:
    """Write what is kept of the units of a sorted bucket; returns where the next goes."""
    ranks, positions = few
    has_places, has_names, first = len(places) > 0, len(names[0]) > 0, 0
    for last in ends[:-1]:
        while first < last:  # the units that met here, one by one
            word, size, together = words[first], last - first, False
            while not together:
                # Ranks as signed numbers in the same order, which are compared faster.
                other, unit, ranked = np.uint64(0), _mixed(word + key), most < size <= WINDOW
                if has_names and size > most:
                    unit = names[1][np.searchsorted(names[0], word)]
                if ranked:
                    ranks[:] = _LARGEST
                    for i in range(size):
                        other |= words[first + i] ^ word
                        ranks[i] = np.int64(_mixed(_mixed(unit + digests[first + i] * _STEP) + key) ^ _SIGN)
                else:
                    for i in range(size):
                        other |= words[first + i] ^ word
                together = other == 0
                if not together:
                    size = _bring_together(words, digests, places, first, last, *own)
            keep, total = size, 0
            if ranked:
                if size <= HALF_WINDOW:  # loops of a fixed length, which become a few wide instructions
                    for i in range(HALF_WINDOW):
                        rank, below = ranks[i], 0
                        for j in range(HALF_WINDOW):
                            below += ranks[j] < rank
                        positions[i] = below
                else:
                    for i in range(WINDOW):
                        rank, below = ranks[i], 0
                        for j in range(WINDOW):
                            below += ranks[j] < rank
                        positions[i] = below
                for i in range(size):
                    total += positions[i]
            # Without equal ranks there is exactly one at each position.
            if size > most and 2 * total != size * (size - 1):
                _bring_forward(digests, places, first, size, unit, key, most)
                keep = most
            start = filled
            for i in range(keep):
                kept_digests[filled] = digests[first + i]
                filled += keep <= most or positions[i] < most
            if has_places:
                for i in range(keep):
                    kept_places[start] = places[first + i]
                    start += keep <= most or positions[i] < most
            first += size
    return filled


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sizes(following: IntArray, after: Chain, low: int, high: int) -> tuple[int, int]:
    """Records of some buckets together, and of the largest."""
    total, largest = 0, 0
    for bucket in range(low, high):
        size, chunk = 0, bucket
        while after[chunk] >= 0:
            chunk, size = after[chunk], size + CHUNK
        size += following[bucket] - chunk * CHUNK
        total, largest = total + size, max(largest, size)
    return total, largest


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sort_bucket(
    bucket: int,
    following: int,
    after: Chain,
    stored: Halves,
    wide: bool,
    has_places: bool,
    bits: int,
    ends: Chain,
    words: WordArray,
    digests: WordArray,
    places: IntArray,
) -> None:
    """Sort one bucket by some bits of its words, else as they came; ``ends`` are the ends of those with equal bits."""
    shift, mask = np.uint32(32 - BUCKET_BITS - bits), np.uint32((1 << bits) - 1)
    end = stored.shape[1] - 1
    ends[:] = 0
    chunk = bucket
    while chunk >= 0:
        stop = following if after[chunk] < 0 else (chunk + 1) * CHUNK
        for i in range(chunk * CHUNK, stop):
            ends[((stored[i, 0] >> shift) & mask) + np.uint32(1)] += 1
        chunk = after[chunk]
    for j in range(len(ends) - 1):
        ends[j + 1] += ends[j]
    chunk = bucket
    while chunk >= 0:
        stop = following if after[chunk] < 0 else (chunk + 1) * CHUNK
        for i in range(chunk * CHUNK, stop):
            group = (stored[i, 0] >> shift) & mask
            at = ends[group]
            ends[group] = at + 1
            words[at] = (np.uint64(stored[i, 0]) << _HALF) | np.uint64(stored[i, 1])
            digests[at] = np.uint64(stored[i, 2])
            if wide:
                digests[at] |= np.uint64(stored[i, 3]) << _HALF
            if has_places:
                places[at] = np.int64((np.uint64(stored[i, end]) << _HALF) | np.uint64(stored[i, end - 1]))
        chunk = after[chunk]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _bring_together(
    words: WordArray,
    digests: WordArray,
    places: IntArray,
    first: int,
    last: int,
    own_digests: WordArray,
    own_places: IntArray,
) -> int:
    """Bring the records of the first one's unit to the front, all in the order in which they were; returns how many."""
    word, size, has_places = words[first], 0, len(places) > 0
    for i in range(first, last):
        if words[i] == word:
            own_digests[size] = digests[i]
            if has_places:
                own_places[size] = places[i]
            size += 1
    at = last
    for i in range(last - 1, first - 1, -1):
        if words[i] != word:
            at -= 1
            words[at], digests[at] = words[i], digests[i]
            if has_places:
                places[at] = places[i]
    for i in range(size):
        words[first + i], digests[first + i] = word, own_digests[i]
        if has_places:
            places[first + i] = own_places[i]
    return size


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _bring_forward(
    digests: WordArray, places: IntArray, first: int, size: int, unit: np.uint64, key: np.uint64, most: int
) -> None:
    """Bring the records of one unit that have the smallest ranks to the front; there are more than are kept."""
    own = digests[first : first + size].copy()
    by_digest, ranks = _ordered(own), np.empty(size, np.uint64)
    number = key
    for i in range(size):
        digest = own[by_digest[i]]
        number = number + np.uint64(1) if i > 0 and digest == own[by_digest[i - 1]] else key
        ranks[i] = _mixed(_mixed(unit + digest * _STEP) + number)
    best = by_digest[_ordered(ranks)[:most]]
    digests[first : first + most] = own[best]
    if len(places):
        places[first : first + most] = places[first + best]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _ordered(values: WordArray) -> IntArray:
    """Places of values in ascending order, equal ones as they came."""
    size = len(values)
    if size > WINDOW:
        return np.argsort(values, kind="mergesort")
    order = np.empty(size, np.int64)
    for i in range(size):
        at = i
        while at > 0 and values[order[at - 1]] > values[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    return order
