"""Canaries: pairs of neighbouring data sets on which a leak would sing.

Each pair differs in the records of one unit, and each is odd in its own way: no records at all, a record at a
corner or a hair's breadth beyond the box, one that is missing or infinite, one too many for a block of the
code that counts.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import FloatArray, SourceLike
from fogline._validation import (
    Neighbours,
    check_bounds,
    check_count,
    check_max_contributions,
    check_neighbours,
)
from fogline.queries.fourier_sums import CHUNK_ROWS

__all__ = ["BLOCK", "Pair", "canary_pairs", "random_pairs"]


BLOCK = CHUNK_ROWS
"""Rows that `fogline.queries.fourier_sums` turns into cells at a time."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring data sets.

    Parameters
    ----------
    name : str
    D, D_prime : array of shape (n, d)
        Or anything else that a fit takes.
    neighbours : {"add-remove", "replace"}
    """

    name: str
    D: SourceLike
    D_prime: SourceLike
    neighbours: Neighbours = "add-remove"


def canary_pairs(
    bounds: ArrayLike,
    *,
    neighbours: str,
    n: int = 200,
    seed: int = 0,
    max_contributions: int = 1,
    block: int | None = BLOCK,
) -> list[Pair]:
    """Return pairs of neighbours around every oddity we know of, for data in a box.

    Parameters
    ----------
    bounds : array-like of shape (d, 2)
        The public box that the audited algorithm is given.
    neighbours : {"add-remove", "replace"}
        Under "add-remove" D' has `max_contributions` records more than D, under "replace" as many other ones.
    n : int
        Records in an ordinary data set.
    seed : int
        Of the ordinary records.
    max_contributions : int
        Records of the unit in which the data sets differ.
    block : int or None
        Block size that one pair fills and another crosses; None leaves them out.

    Returns
    -------
    list of Pair
        At least 20.

    Examples
    --------
    >>> pairs = canary_pairs([(0, 10), (0, 10)], neighbours="replace", n=20)
    >>> len(pairs) >= 20
    True
    >>> sorted({len(pair.D_prime) - len(pair.D) for pair in pairs})
    [0]
    """
    box, relation = check_bounds(bounds), check_neighbours(neighbours)
    c = check_max_contributions(max_contributions)
    rng = np.random.default_rng(seed)
    crowd = _crowd(rng, box, check_count(n, "n"))
    odd = dict(_odd_records(box))
    # Data in which most terms of a sum vanish or coincide: a single record is then all there is to see.
    grounds = {
        "equal records": np.repeat(box.mean(axis=1)[None], len(crowd), axis=0),
        "all at a corner": np.repeat(box[None, :, 0], len(crowd), axis=0),
        "all missing": np.full_like(crowd, np.nan),
        "all outside": np.repeat(odd["far outside"][None], len(crowd), axis=0),
    }
    pairs: list[Pair] = []

    def add(name: str, ground: FloatArray, record: FloatArray, other: FloatArray) -> None:
        units = [np.repeat(row[None], c, axis=0) for row in (other, record)]
        before = ground if relation == "add-remove" else np.concatenate([ground, units[0]])
        pairs.append(Pair(name, before, np.concatenate([ground, units[1]]), relation))

    lowest, highest, middle = box[:, 0], box[:, 1], box.mean(axis=1)
    one = "empty and one record" if relation == "add-remove" else "one record that changes"
    add(one, crowd[:0], middle, highest)
    add("an ordinary record", crowd, crowd[0], crowd[-1])
    for name, record in odd.items():
        add(name, crowd, record, middle)
    add("opposite corners", crowd, lowest, highest)
    add("opposite corners alone", crowd[:0], highest, lowest)
    for name, ground in grounds.items():
        add(f"{name}, and one in the middle", ground, middle, odd["missing"])
        add(f"{name}, and one at a corner", ground, highest, lowest)
    if block is not None:
        # A fault at the edge of a batch shows only where the record is the first of the next one.
        size = check_count(block, "block", minimum=c + 1)
        add("filling a block", _crowd(rng, box, size - c), highest, odd["missing"])
        add("crossing a block", _crowd(rng, box, size), highest, odd["missing"])
    return pairs


def random_pairs(
    bounds: ArrayLike, *, neighbours: str, pairs: int, seed: int, max_contributions: int = 1
) -> Iterator[Pair]:
    """Give pairs of random size whose ordinary and odd records are drawn at random.

    Examples
    --------
    >>> pair = next(random_pairs([(0, 1)], neighbours="add-remove", pairs=1, seed=0))
    >>> len(pair.D_prime) - len(pair.D)
    1
    """
    box, relation = check_bounds(bounds), check_neighbours(neighbours)
    rng = np.random.default_rng(seed)
    odd = list(dict(_odd_records(box)).values())
    for number in range(pairs):
        ground = _crowd(rng, box, int(rng.geometric(1 / 60)) - 1)
        wide = _crowd(rng, box + np.array([-1.0, 1.0]) * np.ptp(box, axis=1)[:, None] / 4, 2 * max_contributions)
        special = np.array([odd[i] for i in rng.integers(len(odd), size=len(wide))])
        unit = np.where(rng.random((len(wide), 1)) < 0.5, special, wide)
        first, second = unit[:max_contributions], unit[max_contributions:]
        before = ground if relation == "add-remove" else np.concatenate([ground, first])
        yield Pair(f"random {number}", before, np.concatenate([ground, second]), relation)


def _crowd(rng: np.random.Generator, box: FloatArray, n: int) -> FloatArray:
    """Two clumps and a uniform rest within the box."""
    width = np.ptp(box, axis=1)
    centre = box[:, 0] + width * np.where(rng.random((n, 1)) < 0.5, 0.3, 0.7)
    clumps = np.clip(centre + 0.05 * width * rng.standard_normal((n, len(box))), box[:, 0], box[:, 1])
    rest = box[:, 0] + width * rng.random((n, len(box)))
    return np.asarray(np.where(rng.random((n, 1)) < 0.3, rest, clumps))


def _odd_records(box: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Give single records that have gone wrong before, in some library or other."""
    lowest, highest, middle = box[:, 0], box[:, 1], box.mean(axis=1)
    width = highest - lowest
    for corner in itertools.product((0, 1), repeat=len(box)):
        yield f"corner {''.join(map(str, corner))}", box[np.arange(len(box)), corner]
    yield "one step inside the lower bounds", np.nextafter(lowest, np.inf)
    yield "one step inside the upper bounds", np.nextafter(highest, -np.inf)
    yield "one step outside the lower bounds", np.nextafter(lowest, -np.inf)
    yield "one step outside the upper bounds", np.nextafter(highest, np.inf)
    yield "just outside", highest + 0.01 * width
    yield "far outside", highest + 1e6 * width
    yield "at the end of the floats", np.full_like(middle, np.finfo(float).max)
    yield "at the other end of the floats", np.full_like(middle, np.finfo(float).min)
    yield "missing", np.full_like(middle, np.nan)
    # The bits of a NaN survive copies, and may come out in a file.
    yield "missing, with a payload", np.full_like(middle, _bits(0xFFF8_0000_DEAD_BEEF))
    yield "signalling", np.full_like(middle, _bits(0x7FF0_0000_0000_0001))
    yield "half missing", np.where(np.arange(len(middle)) == 0, np.nan, middle)
    yield "infinite", np.full_like(middle, np.inf)
    yield "infinite below", np.full_like(middle, -np.inf)
    yield "infinite in one axis", np.where(np.arange(len(middle)) == len(middle) - 1, np.inf, middle)
    yield "subnormal", np.full_like(middle, 5e-324)
    yield "minus zero", np.full_like(middle, -0.0)
    yield "outside in one axis", np.where(np.arange(len(middle)) == 0, lowest - width, middle)


def _bits(pattern: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<Q", pattern))[0]
    return value
