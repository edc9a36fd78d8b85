"""The choice of each unit's records as compiled loops: the same records as ``chosen_records`` in numpy.

Records are sorted by unit in two rounds of counting, so that each round writes to few places at a time. What is carried
along is a record's mark, and its place only where that is asked for.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["chosen_marks", "chosen_records"]

BUCKET_BITS = 8
"""Places that the first round writes to: 2**8."""

FEW = 32
"""Up to so many records of a unit equal ones are found by comparing all pairs."""


def chosen_records(people: Any, hashes: Any, marks: Any, most: int, key: np.uint64) -> Any:
    """Places of the records that are kept, by unit."""
    return _choose(people, hashes, marks, np.arange(len(people)), most, key)[1]


def chosen_marks(people: Any, hashes: Any, marks: Any, most: int, key: np.uint64) -> Any:
    """Marks of the records that are kept, by unit."""
    return _choose(people, hashes, marks, None, most, key)[0]


@numba.njit(cache=True, nogil=True, inline="always")  # type: ignore[untyped-decorator, unused-ignore]
def _mixed(word: Any) -> Any:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _choose(people: Any, hashes: Any, marks: Any, places: Any, most: Any, key: Any) -> Any:
    n, units = len(people), len(hashes)
    shift = 0
    while (units >> shift) >= 2**BUCKET_BITS:
        shift += 1
    ends = np.zeros((units >> shift) + 2, dtype=np.int64)
    for i in range(n):
        ends[(people[i] >> shift) + 1] += 1
    for bucket in range(1, len(ends)):
        ends[bucket] += ends[bucket - 1]
    who, what = np.empty(n, dtype=np.int32), np.empty(n, dtype=marks.dtype)
    where: Any = None if places is None else np.empty(n, dtype=np.int64)
    for i in range(n):
        bucket = people[i] >> shift
        at = ends[bucket]
        ends[bucket] = at + 1
        who[at], what[at] = people[i] - (bucket << shift), marks[i]
        if places is not None:
            where[at] = places[i]
    filled, start = 0, 0
    for bucket in range(len(ends) - 1):  # what is chosen is written over what was read
        stop = ends[bucket]
        size = min(units - (bucket << shift), 1 << shift)
        if stop > start:
            here = hashes[bucket << shift : (bucket << shift) + size]
            filled = _choose_some(who, here, what, where, most, key, start, stop, filled)
        start = stop
    return what[:filled].copy(), None if places is None else where[:filled].copy()


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _choose_some(
    who: Any, hashes: Any, what: Any, where: Any, most: Any, key: Any, start: Any, stop: Any, filled: Any
) -> Any:
    """Sort the records of a few units by unit, and choose within each; returns how many are chosen so far."""
    ends = np.zeros(len(hashes) + 1, dtype=np.int64)
    for i in range(start, stop):
        ends[who[i] + 1] += 1
    for unit in range(len(hashes)):
        ends[unit + 1] += ends[unit]
    marks = np.empty(stop - start, dtype=what.dtype)
    order: Any = None if where is None else np.empty(stop - start, dtype=np.int64)
    for i in range(start, stop):
        at = ends[who[i]]
        ends[who[i]] = at + 1
        marks[at] = what[i]
        if where is not None:
            order[at] = where[i]
    ranks, chosen = np.empty(most, dtype=np.uint64), np.empty(most, dtype=np.int64)
    first = 0
    for unit in range(len(hashes)):
        last = ends[unit]
        number = min(last - first, most)
        if last - first <= most:
            for j in range(number):
                chosen[j] = j
        else:
            _best(marks[first:last], None if order is None else order[first:last], hashes[unit], key, chosen, ranks)
        for j in range(number):
            what[filled + j] = marks[first + chosen[j]]
            if where is not None:
                where[filled + j] = order[first + chosen[j]]
        filled += number
        first = last
    return filled


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _best(marks: Any, order: Any, unit_hash: Any, key: Any, chosen: Any, ranks: Any) -> None:
    """Write which of one unit's records have the smallest hashes; there are more than are kept."""
    few = len(marks) <= FEW
    if not few:
        by_mark = np.argsort(marks)
        marks[:] = marks[by_mark]
        if order is not None:
            order[:] = order[by_mark]
    filled = 0
    number = np.uint64(0)
    for i in range(len(marks)):
        mark = marks[i]
        if few:
            number = np.uint64(0)
            for j in range(i):
                number += np.uint64(marks[j] == mark)
        else:
            number = number + np.uint64(1) if i > 0 and mark == marks[i - 1] else np.uint64(0)
        rank = _mixed(_mixed(unit_hash + np.uint64(mark) * np.uint64(0x9E3779B97F4A7C15)) + (number + key))
        if filled == len(chosen) and rank >= ranks[filled - 1]:
            continue
        at = min(filled, len(chosen) - 1)
        filled = at + 1
        while at > 0 and ranks[at - 1] > rank:
            ranks[at], chosen[at] = ranks[at - 1], chosen[at - 1]
            at -= 1
        ranks[at], chosen[at] = rank, i
