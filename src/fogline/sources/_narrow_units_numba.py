"""The choice of records on a grid for units whose ids have 32 bits: the same choice as ``_contributions_numba.py``.

A record is one word of 64 bits: a bijection of its id by the key, and its cell. Records are dealt into buckets by the
first bits of it and sorted by further ones. Which of equal words is which does not matter: they are equal records of
one unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray, IntArray, WordArray
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

__all__ = ["NarrowUnits"]

Cells: TypeAlias = NDArray[np.uint32]

_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)
_BUCKET_SHIFT = np.uint32(32 - BUCKET_BITS)


class NarrowUnits:
    """Records on a grid of units whose ids are nonnegative integers below 2^32.

    Parameters
    ----------
    most : int
        Records of a unit that are kept.
    key : (numpy.uint64, numpy.uint64)
    most_bytes : int
        What may be stored.
    """

    def __init__(self, most: int, key: tuple[np.uint64, np.uint64], most_bytes: int) -> None:
        self._most, self._key = most, key
        self._chunks = Chunks(most_bytes)

    def add(self, ids: WordArray, rows: FloatArray, spec: CellSpec, part: int, parts: int) -> int:
        """Take the records of a batch that lie in a cell and belong to a part of the units; returns how many."""
        chunks = self._chunks
        chunks.make_room(len(ids), np.uint64)
        grid, share, start, taken = grid_parts(spec), (np.uint64(part), np.uint64(parts)), 0, 0
        for columns in column_chunks(rows):
            stop = start + columns.shape[1]
            chunks.used, more = _scatter(
                ids[start:stop], columns, *grid, self._key, share, chunks.next, chunks.after, chunks.used, chunks.stored
            )
            start, taken = stop, taken + int(more)
        return taken

    def each_kept(self, use: Callable[[Cells], Any]) -> list[Any]:
        """Hand over the cells of what is kept, for each share of the buckets; what the user made of them."""
        chunks = self._chunks
        if not chunks.used:
            return []

        def choose(low: int, high: int) -> Any:
            return use(_choose(low, high, self._key, self._most, chunks.next, chunks.after, chunks.stored))

        return each_share(choose, chunks.used)


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def _scrambled(number: np.uint32) -> np.uint32:
    """Mix 32 bits by a bijection. Products are cut to 32 bits at once, since numba gives them 64."""
    number = np.uint32((number ^ (number >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    number = np.uint32((number ^ (number >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(number ^ (number >> np.uint32(16)))


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def _unscrambled(number: np.uint32) -> np.uint32:
    """Undo :func:`_scrambled`: the factors are the inverses of its own modulo 2^32, in the other order."""
    number = np.uint32((number ^ (number >> np.uint32(16))) * np.uint32(0x7ED1B41D))
    number = np.uint32((number ^ (number >> np.uint32(13)) ^ (number >> np.uint32(26))) * np.uint32(0xA5CB9243))
    return np.uint32(number ^ (number >> np.uint32(16)))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _scatter(
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
    stored: WordArray,
) -> tuple[int, int]:
    """Put the records of a batch that lie in a cell into their buckets; chunks in use, and how many records it were."""
    taken, is_whole, keys, secret = 0, part[1] == np.uint64(1), np.empty(BLOCK, np.int32), np.uint32(key[0] & _LOW)
    for start in range(0, len(ids), BLOCK):
        stop = min(start + BLOCK, len(ids))
        write_block(columns, start, stop, lower, upper, widths, shift, cells, keys)
        for i in range(stop - start):
            if keys[i] < 0:
                continue
            number = ids[start + i]
            if not is_whole and mixed_word(mixed_word(number ^ key[0]) + key[1]) % part[1] != part[0]:
                continue
            scrambled = _scrambled(np.uint32(number) ^ secret)
            bucket = scrambled >> _BUCKET_SHIFT
            at = following[bucket]
            stored[at] = (np.uint64(scrambled) << _HALF) | np.uint64(keys[i])
            taken += 1
            at += 1
            if at % CHUNK == 0:  # the chunk is full
                after[at // CHUNK - 1] = used
                at = used * CHUNK
                used += 1
            following[bucket] = at
    return used, taken


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _choose(
    low: int,
    high: int,
    key: tuple[np.uint64, np.uint64],
    most: int,
    following: IntArray,
    after: Chain,
    stored: WordArray,
) -> Cells:
    """Cells of what is kept of the units in some buckets."""
    total, largest = chain_sizes(following, after, low, high)
    kept, ordered = np.empty(total + WINDOW, np.uint32), np.empty(largest + 1, np.uint64)
    window = np.empty((3, WINDOW + 1), np.int64)
    bits = 6
    while bits < 32 - BUCKET_BITS and (GROUP << bits) < largest:
        bits += 1
    ends = np.empty((1 << bits) + 1, np.int32)
    filled = 0
    for bucket in range(low, high):
        size = _sort_bucket(bucket, following[bucket], after, stored, bits, ends, ordered)
        if size:
            ordered[size] = ~ordered[size - 1]  # every unit's records end at another word
            filled = _choose_in_bucket(size, bits, ordered, window, key, most, kept, filled)
    return kept[:filled]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sort_bucket(
    bucket: int, following: int, after: Chain, stored: WordArray, bits: int, ends: Chain, ordered: WordArray
) -> int:
    """Sort one bucket by the first bits after those of the bucket; returns how many records it has."""
    shift, mask = np.uint64(64 - BUCKET_BITS - bits), np.uint64((1 << bits) - 1)
    ends[:] = 0
    chunk = bucket
    while chunk >= 0:
        stop = following if after[chunk] < 0 else (chunk + 1) * CHUNK
        for i in range(chunk * CHUNK, stop):
            ends[((stored[i] >> shift) & mask) + np.uint64(1)] += 1
        chunk = after[chunk]
    for j in range(len(ends) - 1):
        ends[j + 1] += ends[j]
    chunk = bucket
    while chunk >= 0:
        stop = following if after[chunk] < 0 else (chunk + 1) * CHUNK
        for i in range(chunk * CHUNK, stop):
            group = (stored[i] >> shift) & mask
            at = ends[group]
            ends[group] = at + 1
            ordered[at] = stored[i]
        chunk = after[chunk]
    return int(ends[-2])


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _choose_in_bucket(
    n: int,
    bits: int,
    ordered: WordArray,
    window: IntArray,
    key: tuple[np.uint64, np.uint64],
    most: int,
    kept: Cells,
    filled: int,
) -> int:
    """Write the cells of what is kept of the units of a sorted bucket; returns where the next goes."""
    ranks, positions, order = window[0], window[1], window[2]
    group, first = np.uint64(64 - BUCKET_BITS - bits), 0
    while first < n:
        unit, at, unit_hash = ordered[first] >> _HALF, first, np.uint64(0)
        is_few = ordered[min(first + most, n)] >> _HALF != unit  # no more than may be kept
        if not is_few:
            unit_hash = _unit_hash(unit, key)
            # Ranks as signed numbers in the same order, which are compared faster.
            ranks[:] = LARGEST
            end = min(first + WINDOW, n)
            while at < end and ordered[at] >> _HALF == unit:
                rank = mixed_word(mixed_word(unit_hash + (ordered[at] & _LOW) * STEP) + key[1])
                ranks[at - first] = np.int64(rank ^ SIGN)
                at += 1
        while ordered[at] >> _HALF == unit:
            at += 1
        if at < n and (ordered[at] ^ ordered[first]) >> group == 0 and _separate(ordered, first, n, group):
            continue  # units had met here
        size, keep = at - first, min(at - first, most)
        if is_few:
            for i in range(keep):
                kept[filled + i] = np.uint32(ordered[first + i] & _LOW)
        elif size <= WINDOW and compare(ranks, positions, order, size):
            for i in range(keep):
                kept[filled + i] = np.uint32(ordered[first + order[i]] & _LOW)
        else:
            _write_smallest(ordered[first:at], unit_hash, key[1], window, kept[filled : filled + keep])
        filled += keep
        first = at
    return filled


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def _unit_hash(unit: np.uint64, key: tuple[np.uint64, np.uint64]) -> np.uint64:
    """Keyed hash of the unit whose scrambled id this is."""
    number = np.uint64(_unscrambled(np.uint32(unit)) ^ np.uint32(key[0] & _LOW))
    return mixed_word(mixed_word(number ^ key[0]) + key[1])


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _separate(ordered: WordArray, first: int, n: int, group: np.uint64) -> bool:
    """Sort the records of the units that met with the first one; says whether anything was moved."""
    last, is_sorted = first + 1, True
    while last < n and (ordered[last] ^ ordered[first]) >> group == 0:
        is_sorted &= ordered[last - 1] <= ordered[last]
        last += 1
    if is_sorted:
        return False
    _sort(ordered[first:last])
    return True


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _sort(records: WordArray) -> None:
    if len(records) > WINDOW:
        records.sort()
        return
    for i in range(1, len(records)):
        record, at = records[i], i
        while at > 0 and records[at - 1] > record:
            records[at] = records[at - 1]
            at -= 1
        records[at] = record


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _write_smallest(records: WordArray, unit_hash: np.uint64, key: np.uint64, window: IntArray, kept: Cells) -> None:
    """Write the cells of one unit's records that have the smallest ranks, equal records numbered; changes their order.

    Of equal ranks that of the smaller cell comes first, then that of the smaller number.
    """
    _sort(records)
    size, number = len(records), key
    ranks = window[0] if size <= WINDOW else np.empty(size, np.int64)
    for i in range(size):
        number = number + np.uint64(1) if i > 0 and records[i] == records[i - 1] else key
        ranks[i] = np.int64(mixed_word(mixed_word(unit_hash + (records[i] & _LOW) * STEP) + number) ^ SIGN)
    if size <= WINDOW:
        ranks[size:] = LARGEST
        if compare(ranks, window[1], window[2], size):
            for i in range(len(kept)):
                kept[i] = np.uint32(records[window[2][i]] & _LOW)
            return
    best = np.argsort(ranks[:size], kind="mergesort")
    for i in range(len(kept)):
        kept[i] = np.uint32(records[best[i]] & _LOW)
