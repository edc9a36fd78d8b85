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
from threading import Lock
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from fogline._typing import BoolArray, FloatArray, IntArray, WordArray
from fogline.density.random_spec import CellSpec
from fogline.queries._numba import BLOCK, Axes, column_chunks, grid_parts, write_block
from fogline.sources._bucket_chains_numba import (
    BUCKET_BITS,
    CHUNK,
    GROUP,
    LARGEST,
    SIGN,
    STEP,
    WINDOW,
    Chain,
    Chunks,
    chain_sizes,
    compare,
    each_share,
    mixed_word,
)
from fogline.sources._narrow_units_numba import NarrowUnits

__all__ = ["FastSampler"]

T = TypeVar("T")
Digests: TypeAlias = NDArray[np.uint32] | WordArray
Halves: TypeAlias = NDArray[np.uint32]

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


class FastSampler:
    """The choice by compiled loops; parameters as for ``new_sampler``."""

    def __init__(self, most: int, key: tuple[int, int], has_places: bool, most_bytes: int) -> None:
        self._most, self._key = most, (np.uint64(key[0]), np.uint64(key[1]))
        self._has_places = has_places
        self._chunks = Chunks(most_bytes)
        self._narrow = NarrowUnits(most, self._key, most_bytes)
        self._digest_type: np.dtype[Any] = np.dtype(np.uint64)

    def add(self, values: IntArray, record_digests: Digests, wanted: BoolArray, first: int) -> None:
        """Take the wanted records of a batch."""
        chunks = self._room(len(values), record_digests.dtype)
        chunks.used = _scatter_to_buckets(
            _words_of(values),
            record_digests,
            wanted,
            first,
            self._key[0],
            self._has_places,
            chunks.next,
            chunks.after,
            chunks.used,
            chunks.stored,
        )

    def add_cells(self, values: IntArray, rows: FloatArray, spec: CellSpec, part: int, parts: int) -> int:
        """Take the records of a batch that lie in a cell and belong to a part of the units, with cells as digests."""
        ids, taken = _words_of(values), 0
        is_narrow = ids <= _LOW  # by the id alone: a unit is of one kind
        some, every = is_narrow.any(), is_narrow.all()
        # With no rows both loops are tried: what is compiled must not tell of a record.
        if some or not len(ids):
            mine = (ids, rows) if every else (ids[is_narrow], rows[is_narrow])
            taken += self._narrow.add(*mine, spec, part, parts)
        if not every or not len(ids):
            mine = (ids[~is_narrow], rows[~is_narrow]) if some else (ids, rows)
            taken += self._add_wide_cells(*mine, spec, part, parts)
        return taken

    def _add_wide_cells(self, ids: WordArray, rows: FloatArray, spec: CellSpec, part: int, parts: int) -> int:
        chunks = self._room(len(ids), np.dtype(np.uint32))
        grid, share, start, taken = grid_parts(spec), (np.uint64(part), np.uint64(parts)), 0, 0
        for columns in column_chunks(rows):
            stop = start + columns.shape[1]
            chunks.used, more = _scatter_cells(
                ids[start:stop], columns, *grid, self._key, share, chunks.next, chunks.after, chunks.used, chunks.stored
            )
            start, taken = stop, taken + int(more)
        return taken

    def kept(self, names: WordArray | None) -> tuple[Digests, IntArray]:
        """Marks and places of what is kept."""
        parts = self._each_share(names, lambda digests, places: (digests.astype(self._digest_type, copy=False), places))
        nowhere = np.zeros(0, dtype=np.int64)
        parts += [(cells, nowhere) for cells in self._narrow.each_kept(lambda cells: cells)]
        if not parts:
            return np.zeros(0, dtype=np.uint64), nowhere
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def count_kept(self, names: WordArray | None, counts: IntArray) -> None:
        """Add what is kept to the counts of the cells, where marks are cells.

        Each share's are counted as soon as they are chosen: a list of all of them would be as large as the records.
        """
        one_by_one = Lock()

        def add(cells: Digests, places: IntArray | None = None) -> None:  # noqa: ARG001
            with one_by_one:
                _count_cells(cells, counts)

        self._each_share(names, add)
        self._narrow.each_kept(add)

    def _each_share(self, names: WordArray | None, use: Callable[[WordArray, IntArray], T]) -> list[T]:
        """Hand over marks and places of what is kept, for each share of the buckets; what the user made of them."""
        chunks = self._chunks
        if not chunks.used:
            return []
        hashes = np.zeros(0, dtype=np.uint64) if names is None else names
        words = _words(np.arange(len(hashes), dtype=np.uint64), self._key[0])
        # Sorted once, so that a unit's hash is found by bisection.
        order = np.argsort(words)
        words, hashes = words[order], hashes[order]
        wide = self._digest_type.itemsize == 8
        chain = (chunks.next, chunks.after, chunks.stored, wide, self._has_places)

        def choose(low: int, high: int) -> T:
            return use(*_choose(low, high, self._key[1], self._most, words, hashes, *chain))

        return each_share(choose, chunks.used)

    def _room(self, records: int, digest_type: np.dtype[Any]) -> Chunks:
        if not self._chunks.used:
            self._digest_type = digest_type
        width = 2 + self._digest_type.itemsize // 4 + 2 * self._has_places
        self._chunks.make_room(records, np.uint32, (width,))
        return self._chunks


def _words_of(values: IntArray) -> WordArray:
    """Ids as words; contiguous and writeable: for any other kind of array numba would compile a loop once more."""
    return np.require(values, requirements=["C", "W"]).view(np.uint64)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _words(ids: WordArray, key: np.uint64) -> WordArray:
    words = np.empty_like(ids)
    for i in range(len(ids)):
        words[i] = mixed_word(ids[i] ^ key)
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

    ``following`` is where the next record of each bucket goes, ``after`` the chunk after each chunk of a bucket, which
    begins with the chunk of its own number. (A helper for what both loops share would make either twice as slow.)
    """
    taken, is_whole, keys = 0, part[1] == np.uint64(1), np.empty(BLOCK, np.int32)
    for start in range(0, len(ids), BLOCK):
        stop = min(start + BLOCK, len(ids))
        write_block(columns, start, stop, lower, upper, widths, shift, cells, keys)
        for i in range(stop - start):
            if keys[i] < 0:
                continue
            word = mixed_word(ids[start + i] ^ key[0])
            if not is_whole and mixed_word(word + key[1]) % part[1] != part[0]:
                continue
            bucket = word >> np.uint64(64 - BUCKET_BITS)
            at = following[bucket]
            stored[at, 0], stored[at, 1] = np.uint32(word >> _HALF), np.uint32(word & _LOW)
            stored[at, 2] = np.uint32(keys[i])
            taken += 1
            at += 1
            if at % CHUNK == 0:  # the chunk is full
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
        word, digest = mixed_word(ids[i] ^ key), np.uint64(record_digests[i])
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
    total, largest = chain_sizes(following, after, low, high)
    n_places = largest if has_places else 0
    kept_digests, kept_places = np.empty(total + 1, np.uint64), np.empty(total + 1 if has_places else 0, np.int64)
    # One word more, so that every unit's records end at another word.
    words, digests, places = (
        np.empty(largest + 1, np.uint64),
        np.empty(largest, np.uint64),
        np.empty(n_places, np.int64),
    )
    own_digests, own_places = np.empty(largest, np.uint64), np.empty(n_places, np.int64)
    window = np.empty((3, WINDOW + 1), np.int64)
    bits = 6
    while bits < 20 and (GROUP << bits) < largest:
        bits += 1
    ends = np.empty((1 << bits) + 1, np.int32)
    filled = 0
    for bucket in range(low, high):
        size = _sort_bucket(
            bucket, following[bucket], after, stored, wide, has_places, bits, ends, words, digests, places
        )
        if size:
            words[size] = ~words[size - 1]
        filled = _choose_in_bucket(
            size,
            np.uint64(64 - BUCKET_BITS - bits),
            (words, digests, places),
            (own_digests, own_places),
            window,
            key,
            most,
            (names, name_hashes),
            kept_digests,
            kept_places,
            filled,
        )
    return kept_digests[:filled], kept_places[: filled if has_places else 0]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _count_cells(cells: Digests, counts: IntArray) -> None:
    for cell in cells:
        counts[np.int64(cell)] += 1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _choose_in_bucket(
    n: int,
    shift: np.uint64,
    stored: tuple[WordArray, WordArray, IntArray],
    own: tuple[WordArray, IntArray],
    window: IntArray,
    key: np.uint64,
    most: int,
    names: tuple[WordArray, WordArray],
    kept_digests: WordArray,
    kept_places: IntArray,
    filled: int,
) -> int:
    """Write what is kept of the units of a sorted bucket; returns where the next goes."""
    words, digests, places = stored
    ranks, positions, order = window[0], window[1], window[2]
    has_places, has_names, first = len(places) > 0, len(names[0]) > 0, 0
    while first < n:
        word, at, unit = words[first], first, np.uint64(0)
        is_few = words[min(first + most, n)] != word  # no more than may be kept
        if not is_few:
            unit = names[1][np.searchsorted(names[0], word)] if has_names else mixed_word(word + key)
            # Ranks as signed numbers in the same order, which are compared faster.
            ranks[:] = LARGEST
            end = min(first + WINDOW, n)
            while at < end and words[at] == word:
                ranks[at - first] = np.int64(mixed_word(mixed_word(unit + digests[at] * STEP) + key) ^ SIGN)
                at += 1
        while words[at] == word:
            at += 1
        if at < n and (words[at] ^ word) >> shift == 0:  # units that met here
            last = at + 1
            while last < n and (words[last] ^ word) >> shift == 0:
                last += 1
            if _bring_together(words, digests, places, first, last, *own) != at - first:
                continue
        size, keep, is_ordered = at - first, min(at - first, most), False
        if size > most:
            is_ordered = size <= WINDOW and compare(ranks, positions, order, size)
            if not is_ordered:
                _bring_forward(digests, places, first, size, unit, key, most, window)
        for i in range(keep):
            kept_digests[filled + i] = digests[first + (order[i] if is_ordered else i)]
        if has_places:
            for i in range(keep):
                kept_places[filled + i] = places[first + (order[i] if is_ordered else i)]
        filled += keep
        first = at
    return filled


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
) -> int:
    """Sort one bucket by some bits of its words, else as they came; returns how many records it has."""
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
    return int(ends[-2])


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
    digests: WordArray,
    places: IntArray,
    first: int,
    size: int,
    unit: np.uint64,
    key: np.uint64,
    most: int,
    window: IntArray,
) -> None:
    """Bring the records of one unit that have the smallest ranks to the front; there are more than are kept."""
    if size <= WINDOW and _bring_few_forward(digests, places, first, size, unit, key, most, window):
        return
    own = digests[first : first + size].copy()
    by_digest, ranks = _ordered(own), np.empty(size, np.uint64)
    number = key
    for i in range(size):
        digest = own[by_digest[i]]
        number = number + np.uint64(1) if i > 0 and digest == own[by_digest[i - 1]] else key
        ranks[i] = mixed_word(mixed_word(unit + digest * STEP) + number)
    best = by_digest[_ordered(ranks)[:most]]
    digests[first : first + most] = own[best]
    if len(places):
        places[first : first + most] = places[first + best]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _bring_few_forward(
    digests: WordArray,
    places: IntArray,
    first: int,
    size: int,
    unit: np.uint64,
    key: np.uint64,
    most: int,
    window: IntArray,
) -> bool:
    """As above for a few records, all compared with all; says whether no two ranks were equal, else nothing is done."""
    ranks, positions, order = window[0], window[1], window[2]
    ranks[:] = LARGEST
    for i in range(size):
        digest, number = digests[first + i], key
        for j in range(i):
            number += np.uint64(digests[first + j] == digest)
        ranks[i] = np.int64(mixed_word(mixed_word(unit + digest * STEP) + number) ^ SIGN)
    if not compare(ranks, positions, order, size):
        return False
    filled = first
    for i in range(size):  # each stands at or after the place that it comes to
        if positions[i] < most:
            digests[filled] = digests[first + i]
            if len(places):
                places[filled] = places[first + i]
            filled += 1
    return True


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _ordered(values: WordArray) -> IntArray:
    """Places of values in ascending order, equal ones as they came."""
    return np.argsort(values, kind="mergesort")
