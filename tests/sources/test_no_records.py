"""A table without records takes the path of one with records: what a process loads and compiles tells nothing."""

import sqlite3

import numpy as np
import pytest

from fogline import profile, release, table
from fogline.density.leaves import LeafSpec
from fogline.queries import fourier_sums
from fogline.sources import contributions

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

EMPTY = pd.DataFrame({"a": np.zeros(0), "b": np.zeros(0), "who": np.zeros(0, dtype=np.int64)})
BOX = {"a": (0, 10), "b": (0, 5)}


def empty_sources(folder):
    EMPTY.to_csv(folder / "none.csv", index=False)
    pl.from_pandas(EMPTY).write_parquet(folder / "none.parquet")
    with sqlite3.connect(folder / "none.db") as base:
        base.execute("CREATE TABLE visits (a REAL, b REAL, who INTEGER)")
    base.close()
    yield "pandas", EMPTY, {}
    yield "polars", pl.from_pandas(EMPTY), {}
    yield "lazy", pl.from_pandas(EMPTY).lazy(), {}
    yield "CSV", folder / "none.csv", {}
    yield "Parquet", folder / "none.parquet", {}
    yield "SQLite", f"sqlite:///{folder / 'none.db'}", {"query": "visits"}


def test_the_first_batch_of_every_source_has_no_rows(tmp_path):
    for name, source, more in empty_sources(tmp_path):
        for unit in (None, "who"):
            batches = []
            opened = table(source, ["a", "b"], unit=unit, **more)
            opened.each_unit_batch(lambda rows, ids, seen=batches: seen.append((rows.shape, ids)))
            assert batches[0][0] == (0, 2), name
            assert (batches[0][1] is None) == (unit is None), name
    batches = []
    table(np.zeros((0, 2))).each_batch(batches.append)
    assert [rows.shape for rows in batches] == [(0, 2)]


@pytest.mark.parametrize("verb", ["release", "profile"])
def test_loops_are_made_ready_whether_or_not_there_is_a_record(verb, tmp_path, monkeypatch):
    tried, real = [], contributions.new_sampler
    monkeypatch.setattr(
        contributions, "new_sampler", lambda bound, places, room: tried.append(room) or real(bound, places, room)
    )
    run = release if verb == "release" else profile
    for name, source, more in empty_sources(tmp_path):
        if verb == "profile" and name == "lazy":
            continue
        given = {"bounds": BOX, "columns": ["a", "b"], "epsilon": 1.0, "unit": "who", **more}
        tried.clear()
        run(source, **given)
        assert 0 in tried, name


def test_cells_are_counted_by_the_loop_before_there_is_a_row(monkeypatch):
    seen, real = [], fourier_sums._fast_counter()
    if real is None:
        pytest.skip("there are no compiled loops")
    monkeypatch.setattr(
        fourier_sums, "_fast_counter", lambda: lambda rows, *more: seen.append(rows.shape) or real(rows, *more)
    )
    release(np.zeros((0, 1)), bounds=[(0, 1)], epsilon=1.0)
    assert seen
    assert set(seen) == {(0, 1)}


def test_rows_that_may_not_be_written_use_the_same_loop():
    numba = pytest.importorskip("fogline.queries._numba")
    counts = fourier_sums.CellCounts(LeafSpec.plan([(0, 1)]))
    before = len(numba._count.signatures)
    rows = np.full((3, 1), 0.5)
    rows.setflags(write=False)
    counts.add_rows(rows)
    assert len(numba._count.signatures) == before
    assert counts.state()[1].tolist() == [3]
