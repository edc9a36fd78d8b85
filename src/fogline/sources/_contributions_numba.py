"""The choice of each unit's records as compiled loops: the same records as ``PlainSampler`` in ``contributions.py``.

Records are dealt into buckets as they come, by the first bits of their unit's word, a bijection of its id by the key.
A bucket is a chain of chunks of one large reserve, so nothing is copied when it grows. In the end each bucket is sorted
by further bits of the word, which leaves a unit or two together, and these are told apart by the whole of it. Buckets
have nothing to do with each other, so threads share them.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from fogline._typing import BoolArray, IntArray, WordArray

__all__ = ["FastSampler"]

Digests: TypeAlias = NDArray[np.uint32] | WordArray
Chain: TypeAlias = NDArray[np.int32]

BUCKET_BITS = 10
"""There are 2**10 buckets."""

CHUNK = 264
"""Records of a chunk. An odd number of cache lines: chunks of 256 would all begin in the same few sets of a cache."""

FEW = 32
"""Up to this many records of a unit, the smallest ranks are found one after the other."""

LAST_SEEN_BITS = 12
"""Equal marks of a unit are looked for in a table of 2**12 places; what meets there is then compared."""

TASKS = 16
"""Shares of the buckets that threads take."""

MANY = 2**17
"""From this many records on, threads are worth their start."""


class FastSampler:
    """The choice by compiled loops; parameters as for ``new_sampler``."""

    def __init__(self, most: int, key: tuple[int, int], has_places: bool, most_bytes: int) -> None:
        self._most, self._key = most, (np.uint64(key[0]), np.uint64(key[1]))
        self._has_places, self._most_bytes = has_places, most_bytes
        self._next = np.arange(2**BUCKET_BITS) * CHUNK
        self._columns: Any = ()
        self._used = 0

    def add(self, values: IntArray, record_digests: Digests, wanted: BoolArray, first: int) -> None:
        """Take the wanted records of a batch."""
        if not self._used:
            self._start(record_digests.dtype)
        while self._used + len(values) // CHUNK + 2**BUCKET_BITS >= len(self._after):
            self._grow()
        # Contiguous and writeable: for any other kind of array numba would compile the loop once more.
        ids = np.require(values, requirements=["C", "W"]).view(np.uint64)
        self._used = _scatter_to_buckets(
            ids, record_digests, wanted, first, self._key[0], self._next, self._after, self._used, *self._columns
        )

    def kept(self, names: WordArray | None) -> tuple[Digests, IntArray]:
        """Marks and places of what is kept."""
        if not self._used:
            return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        hashes = np.zeros(0, dtype=np.uint64) if names is None else names
        words = _words(np.arange(len(hashes), dtype=np.uint64), self._key[0])
        # Sorted once, so that a unit's hash is found by bisection.
        order = np.argsort(words)
        words, hashes = words[order], hashes[order]

        def choose(task: int) -> tuple[Digests, IntArray | None]:
            low, high = (2**BUCKET_BITS * t // TASKS for t in (task, task + 1))
            return _choose(low, high, self._key[1], self._most, words, hashes, self._next, self._after, *self._columns)

        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self._used * CHUNK < MANY + 2**BUCKET_BITS * CHUNK or threads == 1:
            parts = [choose(task) for task in range(TASKS)]
        else:
            with ThreadPoolExecutor(min(threads, TASKS)) as pool:
                parts = list(pool.map(choose, range(TASKS)))
        record_digests = np.concatenate([part[0] for part in parts])
        if not self._has_places:
            return record_digests, np.zeros(0, dtype=np.int64)
        return record_digests, np.concatenate([part[1] for part in parts])

    def _start(self, digest_type: np.dtype[Any]) -> None:
        row = 8 + digest_type.itemsize + 8 * self._has_places
        chunks = max(self._most_bytes // (row * CHUNK), 2) + 2**BUCKET_BITS
        self._after = np.full(chunks, -1, dtype=np.int32)
        kinds = (np.uint64, digest_type, np.int64 if self._has_places else None)
        self._columns = tuple(None if kind is None else np.empty(chunks * CHUNK, dtype=kind) for kind in kinds)
        self._used = 2**BUCKET_BITS

    def _grow(self) -> None:
        """Twice the room: for sources that cannot be read in parts."""
        self._after = np.concatenate([self._after, np.full_like(self._after, -1)])
        self._columns = tuple(
            None if column is None else np.concatenate([column, np.empty_like(column)]) for column in self._columns
        )


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
def _scatter_to_buckets(
    ids: WordArray,
    record_digests: Digests,
    wanted: BoolArray,
    first: int,
    key: np.uint64,
    following: IntArray,
    after: Chain,
    used: int,
    words: WordArray,
    bucket_digests: Digests,
    bucket_places: IntArray | None,
) -> int:
    """Put the wanted records of a batch into their buckets; returns the number of chunks in use.

    ``following`` is where the next record of each bucket goes, ``after`` the chunk after each chunk of a bucket, which
    begins with the chunk of its own number.
    """
    for i in range(len(ids)):
        if not wanted[i]:
            continue
        word = _mixed(ids[i] ^ key)
        bucket = word >> np.uint64(64 - BUCKET_BITS)
        at = following[bucket]
        words[at], bucket_digests[at] = word, record_digests[i]
        if bucket_places is not None:
            bucket_places[at] = first + i
        at += 1
        if at % CHUNK == 0:  # the chunk is full
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
    words: WordArray,
    record_digests: Digests,
    places: IntArray | None,
) -> tuple[Digests, IntArray | None]:
    """Marks and places of what is kept of the units in some buckets."""
    total, largest = _sizes(following, after, low, high)
    kept_digests = np.empty(total, record_digests.dtype)
    kept_places: Any = None if places is None else np.empty(total, np.int64)
    sorted_words, ranks = np.empty(largest, np.uint64), np.empty(FEW, np.uint64)
    sorted_digests, own_digests = np.empty(largest, record_digests.dtype), np.empty(largest, record_digests.dtype)
    sorted_places: Any = None if places is None else np.empty(largest, np.int64)
    own_places: Any = None if places is None else np.empty(largest, np.int64)
    last_seen, round_number = np.zeros(2**LAST_SEEN_BITS, np.int32), 0
    bits = 6
    while bits < 20 and (8 << bits) < largest:
        bits += 1
    ends = np.empty((1 << bits) + 1, np.int32)
    filled = 0
    for bucket in range(low, high):
        _sort_bucket(
            bucket,
            following[bucket],
            after,
            words,
            record_digests,
            places,
            bits,
            ends,
            sorted_words,
            sorted_digests,
            sorted_places,
        )
        first = 0
        for end in ends[:-1]:
            last = end
            while first < last:  # the units that met here, one by one
                word, size, rest = sorted_words[first], 0, first
                for i in range(first, last):
                    other, record_digest = sorted_words[i], sorted_digests[i]
                    same = other == word
                    own_digests[size] = record_digest
                    sorted_words[rest], sorted_digests[rest] = other, record_digest
                    if places is not None:
                        own_places[size] = sorted_places[i]
                        sorted_places[rest] = sorted_places[i]
                    size += same
                    rest += not same
                last = rest
                if size > most:
                    unit = _mixed(word + key) if not len(names) else name_hashes[np.searchsorted(names, word)]
                    round_number += 1
                    _bring_forward(own_digests, own_places, size, unit, key, most, ranks, last_seen, round_number)
                for j in range(min(size, most)):
                    kept_digests[filled] = own_digests[j]
                    if places is not None:
                        kept_places[filled] = own_places[j]
                    filled += 1
            first = end
    return kept_digests[:filled], None if places is None else kept_places[:filled]


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
    words: WordArray,
    record_digests: Digests,
    places: IntArray | None,
    bits: int,
    ends: Chain,
    sorted_words: WordArray,
    sorted_digests: Digests,
    sorted_places: IntArray,
) -> None:
    """Sort one bucket by some bits of its words, else as they came; ``ends`` are the ends of those with equal bits."""
    shift, mask = np.uint64(64 - BUCKET_BITS - bits), np.uint64((1 << bits) - 1)
    ends[:] = 0
    chunk = bucket
    while chunk >= 0:
        stop = following if after[chunk] < 0 else (chunk + 1) * CHUNK
        for i in range(chunk * CHUNK, stop):
            ends[((words[i] >> shift) & mask) + np.uint64(1)] += 1
        chunk = after[chunk]
    for j in range(len(ends) - 1):
        ends[j + 1] += ends[j]
    chunk = bucket
    while chunk >= 0:
        stop = following if after[chunk] < 0 else (chunk + 1) * CHUNK
        for i in range(chunk * CHUNK, stop):
            word = words[i]
            group = (word >> shift) & mask
            at = ends[group]
            ends[group] = at + 1
            sorted_words[at], sorted_digests[at] = word, record_digests[i]
            if places is not None:
                sorted_places[at] = places[i]
        chunk = after[chunk]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _bring_forward(
    record_digests: Digests,
    places: IntArray | None,
    size: int,
    unit: np.uint64,
    key: np.uint64,
    most: int,
    ranks: WordArray,
    last_seen: Chain,
    round_number: int,
) -> None:
    """Bring the records of one unit that have the smallest ranks to the front; there are more than are kept."""
    if size > FEW:
        _bring_many_forward(record_digests, places, size, unit, key, most)
        return
    met = False
    for i in range(size):
        spread = np.uint64(record_digests[i]) * np.uint64(0x9E3779B97F4A7C15)
        ranks[i] = _mixed(_mixed(unit + spread) + key)
        place = spread >> np.uint64(64 - LAST_SEEN_BITS)
        met |= last_seen[place] == round_number
        last_seen[place] = round_number
    if met:  # perhaps by equal marks, which are numbered
        for i in range(size):
            number = key
            for j in range(i):
                number += np.uint64(record_digests[j] == record_digests[i])
            ranks[i] = _mixed(_mixed(unit + np.uint64(record_digests[i]) * np.uint64(0x9E3779B97F4A7C15)) + number)
    for j in range(most):
        best, least = j, ranks[j]
        for i in range(j + 1, size):
            rank = ranks[i]
            best = i if rank < least else best
            least = min(rank, least)
        ranks[j], ranks[best] = least, ranks[j]
        record_digests[j], record_digests[best] = record_digests[best], record_digests[j]
        if places is not None:
            places[j], places[best] = places[best], places[j]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _bring_many_forward(
    record_digests: Digests, places: IntArray | None, size: int, unit: np.uint64, key: np.uint64, most: int
) -> None:
    by_digest = np.argsort(record_digests[:size], kind="mergesort")
    ranks = np.empty(size, np.uint64)
    number = key
    for i in range(size):
        record_digest = record_digests[by_digest[i]]
        number = number + np.uint64(1) if i > 0 and record_digest == record_digests[by_digest[i - 1]] else key
        ranks[i] = _mixed(_mixed(unit + np.uint64(record_digest) * np.uint64(0x9E3779B97F4A7C15)) + number)
    best = by_digest[np.argsort(ranks, kind="mergesort")[:most]]
    record_digests[:most] = record_digests[best]
    if places is not None:
        places[:most] = places[best]
