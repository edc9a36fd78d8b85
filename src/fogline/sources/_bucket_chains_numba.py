"""Buckets of records as chains of chunks, and what the compiled choices of records have in common.

A bucket is a chain of chunks of one large reserve, so nothing is copied when it grows. Buckets have nothing to do with
each other, so threads share them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from fogline._typing import IntArray

__all__ = [
    "BUCKET_BITS",
    "CHUNK",
    "GROUP",
    "LARGEST",
    "SIGN",
    "STEP",
    "WINDOW",
    "Chain",
    "Chunks",
    "chain_sizes",
    "compare",
    "each_share",
    "mixed_word",
]

T = TypeVar("T")
Chain: TypeAlias = NDArray[np.int32]

BUCKET_BITS = 10
"""There are 2**10 buckets."""

CHUNK = 264
"""Records of a chunk. A number of cache lines that is no power of two: chunks of 256 would all begin in the same few
sets of a cache."""

GROUP = 2
"""A bucket is sorted into groups of at most so many records on average, most of them empty: a unit has one."""

WINDOW, HALF_WINDOW = 32, 16
"""Up to this many records of a unit are compared with one another, all with all and without a branch."""

TASKS = 16
"""Shares of the buckets that threads take."""

MANY = 2**17
"""From this many records on, threads are worth their start."""

STEP = np.uint64(0x9E3779B97F4A7C15)
SIGN = np.uint64(2**63)
LARGEST = np.int64(2**63 - 1)


class Chunks:
    """A reserve of chunks of records, a chain of them for each bucket.

    Parameters
    ----------
    most_bytes : int
        What may be stored: address space for it is set aside with the first record, memory comes as it is used.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.next = np.arange(2**BUCKET_BITS) * CHUNK
        """Where the next record of each bucket goes."""
        self.after: Chain = np.zeros(0, dtype=np.int32)
        """The chunk after each chunk, -1 for none; a bucket begins with the chunk of its own number."""
        self.stored: NDArray[Any] = np.zeros(0, dtype=np.uint64)
        self.used = 0
        """Chunks in use."""
        self._is_reserved = False

    def make_room(self, records: int, kind: type[np.unsignedinteger[Any]], width: tuple[int, ...] = ()) -> None:
        """Have room for so many more records, each of so many words of a kind."""
        if not self.used or (records and not self._is_reserved):  # until then no record was stored
            self._start(np.dtype(kind), width, self._most_bytes if records else 0)
            self._is_reserved = records > 0
        while self.used + records // CHUNK + 2**BUCKET_BITS >= len(self.after):
            # Twice the room: for sources that cannot be read in parts.
            self.after = np.concatenate([self.after, np.full_like(self.after, -1)])
            self.stored = np.concatenate([self.stored, np.empty_like(self.stored)])

    def _start(self, kind: np.dtype[Any], width: tuple[int, ...], most_bytes: int) -> None:
        # A chunk for each bucket, and one more for each that a first batch may fill: else all would be copied at once.
        least = 2 + 2 * 2**BUCKET_BITS
        more = most_bytes // (int(np.prod(width, dtype=int)) * kind.itemsize * CHUNK)
        while True:
            try:
                self.stored = np.empty(((least + more) * CHUNK, *width), dtype=kind)
                break
            except MemoryError:  # where address space itself is short: it comes as it is needed
                if not more:
                    raise
                more //= 2
        self.after = np.full(least + more, -1, dtype=np.int32)
        self.used = 2**BUCKET_BITS


def each_share(choose: Callable[[int, int], T], chunks: int) -> list[T]:
    """Results for each share of the buckets, from the first to the one after the last; by threads if there is much."""
    ends = [2**BUCKET_BITS * task // TASKS for task in range(TASKS + 1)]
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if chunks * CHUNK < MANY + 2**BUCKET_BITS * CHUNK or threads == 1:
        return list(map(choose, ends[:-1], ends[1:]))
    with ThreadPoolExecutor(min(threads, TASKS)) as pool:
        return list(pool.map(choose, ends[:-1], ends[1:]))


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def mixed_word(word: np.uint64) -> np.uint64:
    """Mix the bits of a word, as ``mixed`` in ``contributions.py``."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def chain_sizes(following: IntArray, after: Chain, low: int, high: int) -> tuple[int, int]:
    """Records of some buckets together, and of the largest."""
    total, largest = 0, 0
    for bucket in range(low, high):
        size, chunk = 0, bucket
        while after[chunk] >= 0:
            chunk, size = after[chunk], size + CHUNK
        size += following[bucket] - chunk * CHUNK
        total, largest = total + size, max(largest, size)
    return total, largest


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def compare(ranks: IntArray, positions: IntArray, order: IntArray, size: int) -> bool:
    """Write the places of `size` ranks in their order; says whether no two are equal, else what is written is void.

    Beyond the ranks there must be the largest number, up to the end of the window.
    """
    # Loops of a fixed length, which become a few wide instructions.
    total, length = 0, HALF_WINDOW if size <= HALF_WINDOW else WINDOW
    if size <= HALF_WINDOW:
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
    for i in range(length):
        order[positions[i]] = i
        total += positions[i]
    # Without equal ranks there is exactly one at each position, and all that is beyond them has `size` below it.
    return 2 * (total - (length - size) * size) == size * (size - 1)
