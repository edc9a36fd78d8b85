"""The choice of each unit's records against a slow one in plain Python, over batches of every kind of id and layout."""

import hashlib
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.density.leaves import LeafSpec
from fogline.sources import contributions
from fogline.sources.contributions import ContributionBound, PlainSampler, kept_state

WORD = 2**64 - 1
BOXES = {1: LeafSpec.plan([(0.0, 8.0)], leaves=[5]), 2: LeafSpec.plan([(0.0, 8.0), (-1.0, 1.0)], leaves=[7, 3])}
INSIDE = [0.0, 1.6, 3.2, math.nextafter(3.2, 0.0), 5.0, 8.0]
NUMBERS = [*INSIDE, -0.0, 8.1, -1e300, math.inf, -math.inf, math.nan]


def mixed(word):
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


def unit(cell):
    """Whose a row is, in one form; nothing for nobody."""
    if isinstance(cell, str):
        plain = cell.removeprefix("-")
        is_plain = plain.isascii() and plain.isdigit() and (cell == "0" or plain[0] != "0") and int(cell) >= -(2**63)
        return int(cell) if is_plain and int(cell) < 2**63 else cell or None
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() and abs(cell) < 2.0**63 else None
    return int(cell) if -(2**63) <= cell < 2**63 else str(int(cell))


def cell_of(row, spec):
    """Flat cell of a row, or nothing."""
    flat = 0
    for j, x in enumerate(row):
        if not spec.lower[j] <= x <= spec.upper[j]:
            return None
        place = math.floor((x - float(spec.lower[j])) / float(spec.cell_widths[j]) + float(spec.shift[j]))
        flat = flat * spec.cells[j] + min(place, spec.cells[j] - 1)
    return flat


def slow_choice(batches, spec, bound):
    """Counts of what is kept: the law of the module's first lines, unit by unit."""
    records = defaultdict(list)
    for rows, ids in batches:
        for row, cell in zip(rows, ids, strict=True):
            who, place = unit(cell), cell_of(row, spec)
            if who is not None and place is not None:
                records[who].append(place)
    first, second = bound.key
    kept = Counter()
    for who, cells in records.items():
        if isinstance(who, int):
            word = who & WORD
        else:
            key = first.to_bytes(8, "little")
            word = int.from_bytes(hashlib.blake2b(who.encode(), digest_size=8, key=key).digest(), "little")
        mine, seen = mixed((mixed(word ^ first) + second) & WORD), Counter()
        ranks = []
        for cell in sorted(cells):
            mark = mixed((mine + cell * 0x9E3779B97F4A7C15) & WORD)
            ranks.append((mixed((mark + seen[cell] + second) & WORD), cell, seen[cell]))
            seen[cell] += 1
        kept.update(cell for _, cell, _ in sorted(ranks)[: bound.most])
    return dict(kept)


def fast_choice(batches, spec, bound, *, by_column):
    def scan(take):
        for rows, ids in batches:
            numbers = np.array(rows, dtype=float).reshape(len(ids), spec.d)
            take(np.asfortranarray(numbers) if by_column else numbers, ids)

    keys, counts = kept_state(spec, bound, scan)
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


SAME = [7, "7", 7.0, np.int32(7)]
IDS = st.sampled_from(
    [*SAME, 7, 7, 8, "8", -3, "-3", "07", "Ann", "Ann ", 2**63 - 1, 2**63, str(2**63), None, "", 1.5, math.nan, True]
)
KINDS = {
    "any": lambda ids: ids,
    "whole numbers": lambda ids: np.array([unit(i) if isinstance(unit(i), int) else 7 for i in ids], dtype=np.int64),
    "floats": lambda ids: np.array([float(unit(i)) if isinstance(unit(i), int) else np.nan for i in ids]),
    "objects": lambda ids: np.array(ids, dtype=object),
}


@st.composite
def tables(draw):
    spec = BOXES[draw(st.sampled_from([1, 2]))]
    batches = []
    for _ in range(draw(st.integers(0, 5))):
        size = draw(st.sampled_from([0, 1, 1, 2, 9, 40]))
        ids = KINDS[draw(st.sampled_from(sorted(KINDS)))](draw(st.lists(IDS, min_size=size, max_size=size)))
        cells = st.sampled_from(NUMBERS if draw(st.booleans()) else INSIDE[:3])
        rows = draw(st.lists(st.tuples(*[cells] * spec.d), min_size=size, max_size=size))
        batches.append((rows, ids))
    return spec, batches


@pytest.mark.parametrize("compiled", [True, False])
@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from([1, 2, 3, 35]), st.integers(0, WORD), st.booleans())
def test_the_choice_is_the_slow_one(compiled, given_table, most, key, by_column):
    """Mixed types over batches, missing ids, ids equal in another form, batches of one row and of none."""
    spec, batches = given_table
    bound = ContributionBound(most, (key, key ^ 0xABCDEF))
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(contributions, "_fast_sampler", lambda: None)
        assert fast_choice(batches, spec, bound, by_column=by_column) == slow_choice(batches, spec, bound)


@pytest.mark.parametrize("most_bytes", [10**9, 20_000])
@pytest.mark.parametrize("by_column", [True, False])
def test_the_choice_of_many_is_the_slow_one(monkeypatch, by_column, most_bytes):
    """Several blocks of a compiled loop, several chunks of a bucket, and parts that are read one after the other."""
    rng = np.random.default_rng(5)
    batches = []
    for size in (5000, 0, 1, 3000, 700):
        who = rng.integers(0, 40, size)
        who[rng.random(size) < 0.4] = 7  # one unit fills more than a chunk
        ids = [str(i) if i % 3 == 0 else int(i) for i in who] if size == 700 else who
        batches.append((rng.choice(NUMBERS, (size, 2)) * [1.0, 0.2], ids))
    monkeypatch.setattr(contributions, "MOST_BYTES", most_bytes)
    for most in (1, 4, 50):
        bound = ContributionBound(most, (11, 13))
        slow = slow_choice(batches, BOXES[2], bound)
        assert fast_choice(batches, BOXES[2], bound, by_column=by_column) == slow
        assert sum(slow.values()) <= 40 * most


@pytest.mark.parametrize("odd", [None, "Ann", 1.5, math.nan, ""])
@pytest.mark.parametrize("where", [0, 1, 2])
def test_one_odd_id_changes_nobody_elses_records(odd, where):
    """The two breaks of an earlier way: batches of both kinds cut a unit twice; one record without an id opened all."""
    batches = [([(1.0,), (5.0,)] * 6, [7, 8] * 6) for _ in range(3)]
    plain = fast_choice(batches, BOXES[1], ContributionBound(1, (3, 4)), by_column=False)
    rows, ids = batches[where]
    batches[where] = ([*rows, (1.0,)], [*ids, odd])
    more = Counter(fast_choice(batches, BOXES[1], ContributionBound(1, (3, 4)), by_column=False))
    more.subtract(plain)
    assert sum(plain.values()) == 2
    assert sorted(filter(None, more.values())) == ([1] if odd == "Ann" else [])


def test_the_reference_would_see_a_unit_that_is_cut_twice(monkeypatch):
    """A mutant: each batch is chosen from by itself."""

    class Twice(PlainSampler):
        def count_kept(self, names, counts):
            batches, self._batches = self._batches, []
            for batch in batches:
                self._batches = [batch]
                super().count_kept(names, counts)

    monkeypatch.setattr(contributions, "new_sampler", lambda bound, *_: Twice(bound))
    batches, bound = [([(1.0,)] * 3, [7, 7, 7])] * 2, ContributionBound(1, (3, 4))
    assert slow_choice(batches, BOXES[1], bound) == {0: 1}
    assert fast_choice(batches, BOXES[1], bound, by_column=False) == {0: 2}
