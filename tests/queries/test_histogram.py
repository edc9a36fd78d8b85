"""Counting: numpy, numba and a slow reading of the definition agree on every bit pattern of a double."""

import math
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline._validation import plain_loops
from fogline.density.spec import SketchSpec
from fogline.queries import fourier_sums as histogram
from fogline.queries.fourier_sums import CellCounts, cell_keys

SPECS = {
    "line": SketchSpec.plan([(0.0, 10.0)], 0.1),
    "awkward": SketchSpec.plan([(-0.1, 0.7)], 0.03),
    "steps": SketchSpec.plan([(0.0, 20.0)], 0.1, steps=1),
    "tenths": SketchSpec.plan([(0.05, 2.0)], 0.1, steps=0.1),
    "tiny": SketchSpec.plan([(0.0, 1e-49)], 0.2),
    "far off": SketchSpec.plan([(1e9, 1e9 + 4)], 0.05),
    "plane": SketchSpec.plan([(-3.0, 1.0), (1e6, 1e6 + 3)], 0.2, steps=[None, 0.25]),
    "space": SketchSpec.plan([(0.0, 1.0), (-1.0, 1.0), (5.0, 9.0)], 0.4),
}


def slow_key(row, spec):
    """The definition, one record at a time, in Python's floats; None for a record that falls nowhere."""
    key = 0
    for j, x in enumerate(row):
        low, high = spec.bounds[j]
        if math.isnan(x) or x < low or x > high:
            return None
        cell = math.floor((x - low) / float(spec.cell_widths[j]) + float(spec.shift[j]))
        key = key * spec.cells[j] + min(cell, spec.cells[j] - 1)
    return key


def slow_counts(rows, spec):
    counts = {}
    for row in rows.tolist():
        key = slow_key(row, spec)
        if key is not None:
            counts[key] = counts.get(key, 0) + 1
    return dict(sorted(counts.items()))


def counted(rows, spec, *, fast):
    counts = CellCounts(spec)
    with pytest.MonkeyPatch.context() as patch:
        if not fast:
            patch.setattr(histogram, "_fast_counter", lambda: None)
        counts.add_rows(rows)
    return as_dict(counts)


def as_dict(counts):
    keys, values = counts.state()
    assert keys.dtype == values.dtype == np.int64
    assert np.all(np.diff(keys) > 0)
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


def neighbours_of(value):
    return [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]


def edges_of(spec):
    """Bounds and cell borders, each with its neighbours among the doubles."""
    found = []
    for j, (low, high) in enumerate(spec.bounds):
        borders = [low + (k - float(spec.shift[j])) * float(spec.cell_widths[j]) for k in (1, 2, spec.cells[j] // 2)]
        found += [x for edge in (low, high, (low + high) / 2, *borders) for x in neighbours_of(edge)]
    return found


BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
SPECIAL = st.sampled_from(
    [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000001))[0],  # a signalling NaN
        struct.unpack("<d", struct.pack("<Q", 0xFFF8DEADBEEF0000))[0],  # a NaN with a payload
        5e-324,
        -5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        -1.7976931348623157e308,
    ]
)


@st.composite
def rows_and_spec(draw):
    spec = SPECS[draw(st.sampled_from(sorted(SPECS)))]
    inside = st.one_of([st.floats(low, high) for low, high in spec.bounds])
    cell = st.one_of(BITS, SPECIAL, st.sampled_from(edges_of(spec)), inside, inside)
    n = draw(st.integers(0, 40))
    values = draw(st.lists(cell, min_size=n * spec.d, max_size=n * spec.d))
    return np.array(values, dtype=np.float64).reshape(n, spec.d), spec


@given(rows_and_spec())
def test_three_counters_agree(case):
    rows, spec = case
    reference = slow_counts(rows, spec)
    assert counted(rows, spec, fast=False) == reference
    assert counted(rows, spec, fast=True) == reference


@pytest.mark.parametrize("name", SPECS)
def test_every_edge_of_the_grid(name):
    spec = SPECS[name]
    rng = np.random.default_rng(0)
    edges = np.array(edges_of(spec))
    rows = rng.choice(edges, size=(2000, spec.d))
    reference = slow_counts(rows, spec)
    assert reference, "the edges must not all be outside"
    assert counted(rows, spec, fast=False) == reference
    assert counted(rows, spec, fast=True) == reference


def test_the_numba_counter_is_under_test():
    pytest.importorskip("numba")
    assert histogram._fast_counter() is not None


def test_both_bounds_belong_to_the_box():
    spec = SPECS["line"]
    assert cell_keys(np.array([[0.0], [10.0]]), spec).tolist() == [0, spec.cells[0] - 1]
    outside = np.array([[math.nextafter(0.0, -1)], [math.nextafter(10.0, 11)], [math.nan], [math.inf]])
    assert cell_keys(outside, spec).tolist() == [spec.cells[0]] * 4


@given(data=st.data(), name=st.sampled_from(["plane", "space", "steps"]), dense=st.booleans(), fast=st.booleans())
def test_any_partition_order_and_merge_is_the_same(data, name, dense, fast):
    spec = SPECS[name]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = rng.uniform(spec.lower - 0.1 * spec.widths, spec.upper + 0.1 * spec.widths, size=(200, spec.d))
    with pytest.MonkeyPatch.context() as patch:
        if not dense:
            patch.setattr(histogram, "DENSE_CELLS", 1)
        if not fast:
            patch.setattr(histogram, "_fast_counter", lambda: None)
        patch.setattr(histogram, "CHUNK_ROWS", data.draw(st.integers(1, 300)))
        whole = CellCounts(spec)
        whole.add_rows(rows)
        assert whole.is_dense is dense
        cuts = sorted(data.draw(st.lists(st.integers(0, 200), max_size=5)))
        parts = []
        for piece in np.split(rng.permutation(rows), cuts):
            part = CellCounts(spec)
            part.add_rows(np.asfortranarray(piece))
            parts.append(part)
        merged = CellCounts(spec)
        for i in rng.permutation(len(parts)):
            merged.add_state(*parts[i].state())
    assert as_dict(merged) == as_dict(whole) == slow_counts(rows, spec)
    assert np.array_equal(merged.table(), whole.table())
    assert merged.table().shape == spec.cells


def test_sparse_and_dense_agree_on_table(monkeypatch):
    spec = SPECS["space"]
    rows = np.random.default_rng(3).uniform(spec.lower, spec.upper, size=(500, 3))
    dense = CellCounts(spec)
    dense.add_rows(rows)
    monkeypatch.setattr(histogram, "DENSE_CELLS", 10)
    sparse = CellCounts(spec)
    sparse.add_rows(rows[:100])
    sparse.add_rows(rows[100:])
    assert dense.is_dense
    assert not sparse.is_dense
    assert np.array_equal(dense.table(), sparse.table())
    assert dense.table().sum() == 500


def test_memory_is_constant_in_the_number_of_rows(monkeypatch):
    monkeypatch.setattr(histogram, "_fast_counter", lambda: None)
    spec = SPECS["line"]
    rows = np.random.default_rng(0).uniform(0, 10, size=(4_000_000, 1))
    peaks = []
    for n in (200_000, len(rows)):
        counts = CellCounts(spec)
        tracemalloc.start()
        counts.add_rows(rows[:n])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert counts.table().sum() == n
    assert peaks[1] < 1.2 * peaks[0] + 100_000
    assert peaks[1] < rows.nbytes / 8


def test_plain_loops_are_taken_where_they_are_asked_for():
    rows = np.random.default_rng(0).uniform(-1, 11, (200, 1))
    usual, plain = CellCounts(SPECS["line"]), CellCounts(SPECS["line"])
    usual.add_rows(rows)
    with plain_loops():
        assert histogram._fast_counter() is None
        plain.add_rows(rows)
    assert all(np.array_equal(a, b) for a, b in zip(usual.state(), plain.state(), strict=True))
