"""Streams: records come and go, exactly; snapshots; each release pays."""

from __future__ import annotations

import math
import stat

import numpy as np
import pytest
from canaries import by_turns
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import DensitySketch, Ledger
from fogline.audit import canary_pairs, replay
from fogline.density.spec import SketchSpec
from fogline.queries import fourier_sums as histogram
from fogline.queries.fourier_sums import lattice_sensitivity, lattice_sums
from fogline.releases.density_sketch import AlreadyReleased
from fogline.testing import seeded_noise

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
KINDS = {
    "dense": ([(0, 10)], {}),
    "sparse": ([(0, 10)] * 3, {"bandwidths": 0.08}),
    "random": ([(0, 10)] * 4, {"features": 64}),
    "leaves": ([(0, 10)] * 2, {"features": "leaves", "steps": [None, 0.5]}),
}


def empty(kind):
    bounds, options = KINDS[kind]
    return DensitySketch(bounds, **options)


def rows_of(kind, n, seed=0):
    rows = np.random.default_rng(seed).normal(5, 3, size=(n, len(KINDS[kind][0])))
    rows[::7] = np.nan
    return rows


def same_state(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.state(), b.state(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_taken_back_was_never_there(kind, monkeypatch):
    if kind == "sparse":
        monkeypatch.setattr(histogram, "DENSE_CELLS", 100)
    rows = rows_of(kind, 400)
    sketch = empty(kind).update(rows[:250]).subtract(rows[100:200]).update(rows[250:]).update(rows[100:150])
    kept = np.concatenate([rows[:100], rows[200:], rows[100:150]])
    assert same_state(sketch, empty(kind).update(kept))
    assert same_state(sketch.subtract(kept), empty(kind))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 13)), max_size=30))
def test_any_stream_is_the_sum_of_its_entries(entries):
    sketch = DensitySketch([(0, 10)])
    expected = np.zeros(sketch.table().shape, dtype=np.int64)
    for is_added, value in entries:
        step = sketch.update if is_added else sketch.subtract
        step([[float(value)]])
        expected += (1 if is_added else -1) * DensitySketch([(0, 10)]).update([[float(value)]]).table()
    assert np.array_equal(sketch.table(), expected)
    exact = lattice_sums(sketch.table(), sketch.spec)
    parts = [lattice_sums(np.maximum(sign * expected, 0), sketch.spec) for sign in (1, -1)]
    assert np.abs(exact - (parts[0] - parts[1])).max() <= 1  # two floors against one


@settings(max_examples=25, deadline=None)
@given(st.integers(-(2**61), 2**61), st.integers(-(2**61), 2**61))
def test_sums_of_signed_counts_are_exact(first, second):
    """Against unbounded integers: a table and its negative differ by the floor alone."""
    spec = SketchSpec.plan([(0, 10)], [0.1])
    table = np.zeros(spec.cells, dtype=np.int64)
    table[3], table[-1] = first // 2**23, second // 2**23
    up, down = lattice_sums(table, spec), lattice_sums(-table, spec)
    assert set((up + down).tolist()) <= {0, -1}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.floats(-1, 11)), max_size=12),
    st.lists(st.tuples(st.booleans(), st.floats(-1, 11)), max_size=3),
)
def test_an_unmatched_deletion_moves_the_sums_no_further_than_a_record(crowd, person):
    spec = SketchSpec.plan([(0, 10)], [0.1])

    def sums(entries):
        sketch = DensitySketch.of(spec)
        for is_added, value in entries:
            (sketch.update if is_added else sketch.subtract)([[value]])
        return [int(v) for v in lattice_sums(sketch.table(), spec)]

    moved = sum((a - b) ** 2 for a, b in zip(sums(crowd), sums([*crowd, *person]), strict=True))
    assert math.sqrt(moved) <= lattice_sensitivity(spec, "add-remove", max(len(person), 1))


@pytest.mark.parametrize("kind", ["dense", "random"])
def test_counts_below_zero_are_not_mentioned(kind, tmp_path):
    sketch = empty(kind).subtract(np.full((400, len(KINDS[kind][0])), 5.0))
    assert repr(sketch) == repr(empty(kind))
    sketch.save(tmp_path / "s.npz")
    again = DensitySketch.load(tmp_path / "s.npz")
    assert same_state(again, sketch)
    assert same_state(again.merge(empty(kind)), sketch)
    density = again.release(**BUDGET)
    assert density.count == 1.0  # the noisy count of minus 400, cut as always
    assert "taken back" in str(density.guarantee)


def test_the_guarantee_says_that_records_were_taken_back():
    plain = empty("dense").update([[1.0]])
    assert "taken back" not in str(plain.release(**BUDGET).guarantee)
    merged = empty("dense").update([[1.0]]).merge(empty("dense").subtract([[2.0]]))
    density = merged.release(**BUDGET)
    assert "taken back" in density.guarantee.mechanism
    assert density.guarantee.certified


def test_a_snapshot_is_whole_and_for_its_owner(tmp_path):
    path = tmp_path / "stream.npz"
    sketch = empty("dense")
    for batch in np.array_split(rows_of("dense", 300), 5):
        sketch.update(batch)
        sketch.save(path)
        assert same_state(DensitySketch.load(path), sketch)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["stream.npz"]


def test_an_unsigned_file_cannot_hold_negative_counts():
    spec = empty("dense").spec
    with pytest.raises(ValueError, match="negative"):
        DensitySketch.from_state(spec, (np.array([3]), np.array([-1])))
    assert DensitySketch.from_state(spec, (np.array([3]), np.array([-1])), signed=True).table().sum() == -1


def test_each_snapshot_pays(tmp_path):
    sketch = empty("dense").update(rows_of("dense", 200))
    with Ledger.create(
        tmp_path / "budget", dataset="stream", epsilon=1.0, delta=1e-5, high_water=tmp_path / "marks"
    ) as ledger:
        budget = {"epsilon": 0.3, "delta": 1e-6, "ledger": ledger}
        first = sketch.release(**budget, snapshot="2026-W46")
        left = ledger.remaining().rho
        sketch.update(rows_of("dense", 200, seed=1))
        assert sketch.release(**budget, snapshot="2026-W46") == first
        assert ledger.remaining().rho == left
        second = sketch.release(**budget, snapshot="2026-W47")
        assert second != first
        assert ledger.remaining().rho < left
        with pytest.raises(ValueError, match="snapshot must be"):
            sketch.release(**budget, snapshot="")
    with pytest.raises(AlreadyReleased):
        sketch.release(**BUDGET)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_replay_of_deletions(relation):
    """The records of the audit are taken from a sketch that never held them."""

    def release(data):
        crowd = np.linspace(3, 9, 40)[:, None]
        sketch = DensitySketch([(2.0, 10.0)], bandwidths=[0.1]).update(crowd).subtract(data)
        return sketch.release(**BUDGET, neighbours=relation)

    pairs = canary_pairs([(2.0, 10.0)], neighbours=relation, n=30, block=None)
    report = replay(release, by_turns(pairs, relation))
    assert report.passed, str(report)
    assert report.largest_ratio > 0.99


def test_bad_rows_name_the_parameter():
    with pytest.raises(ValueError, match="X must have 1 column"):
        empty("dense").subtract(np.ones((3, 2)))
    with seeded_noise(1), pytest.raises(TypeError, match="X must"):
        empty("dense").subtract("records.csv")
