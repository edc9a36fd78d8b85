"""Where nothing is compiled, and the corners of tables and ids that files, frames and clusters share."""

import sqlite3
import sys
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from optional_packages import optional

from fogline import DensitySketch
from fogline.density.random_spec import plan_spec
from fogline.queries import fourier_sums as histogram
from fogline.queries import random_feature_sums as random_features
from fogline.releases.passes import CountingPass, sketch
from fogline.sources import contributions as choice
from fogline.sources.cell_sql import POSTGRES, CellSql, SqliteDialect, quoted
from fogline.sources.contributions import (
    INTEGER,
    MISSING,
    TEXT,
    ClusterTable,
    ContributionBound,
    Identities,
    PlainSampler,
    new_sampler,
    unit_buckets,
)
from fogline.sources.passes import RecordPasses, facts_of, public_width, width_of
from fogline.sources.registry import table
from fogline.sources.tables import ReadFailed

pa = optional("pyarrow")

LINE = plan_spec([(0, 10)], [0.1], None)
WIDE = plan_spec([(0, 10)] * 5, "auto", None, features=16)
KEY = (3, 5)


@pytest.fixture
def uncompiled(monkeypatch):
    """As without the ``fast`` extra."""
    for name in ("queries._numba", "sources._contributions_numba"):
        monkeypatch.setitem(sys.modules, f"fogline.{name}", None)
    monkeypatch.delattr("fogline.sources._contributions_numba", raising=False)
    monkeypatch.setattr(histogram, "_counter_known", False)
    monkeypatch.setattr(histogram, "_counter", None)  # both are put back, whatever is found meanwhile
    caches = (random_features._fast_adder, choice._fast_sampler)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def cut_states(rows, ids):
    return [
        table(rows[:, : spec.d], unit=ids)._bounded(ContributionBound(2, KEY)).state(spec) for spec in (LINE, WIDE)
    ] + [DensitySketch.of(spec).update(rows[:, : spec.d]).state() for spec in (LINE, WIDE)]


def rows_and_ids():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 11, (500, 5))
    rows[::9] = np.nan
    return rows, rng.integers(0, 90, 500)


@pytest.fixture
def compiled_states():
    pytest.importorskip("numba")
    return cut_states(*rows_and_ids())


def test_the_same_without_compiled_loops(compiled_states, uncompiled):
    assert isinstance(new_sampler(ContributionBound(1, KEY), True, 100), PlainSampler)
    assert histogram._fast_counter() is None
    for mine, theirs in zip(cut_states(*rows_and_ids()), compiled_states, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


def test_a_choice_of_nothing():
    marks, places = PlainSampler(ContributionBound(1, KEY)).kept(None)
    assert len(marks) == len(places) == 0


# -- ids ------------------------------------------------------------------------------------------------------------


def test_arrow_ids_of_every_kind():
    people = Identities()
    values, kinds = people.read(pa.array([5, None, -3], pa.int32()))
    assert (values.tolist(), kinds.tolist()) == ([5, 0, -3], [INTEGER, MISSING, INTEGER])
    values, kinds = people.read(pa.array(["5", "-3"], pa.large_string()))
    assert (values.tolist(), kinds.tolist()) == ([5, -3], [INTEGER, INTEGER])
    values, kinds = people.read(pa.array(["Ann", None, "05"]))
    assert kinds.tolist() == [TEXT, MISSING, TEXT]
    assert people.read(pa.array([None, None]))[1].tolist() == [MISSING, MISSING]


def test_buckets_bring_equal_ids_together():
    bound = ContributionBound(1, KEY)
    numbers = unit_buckets([7, "7", 7.0, "Ann", 8, "Ann"], bound)
    assert len(set(numbers[:3])) == 1
    assert numbers[3] == numbers[5]
    assert len(set(numbers)) == 3
    assert unit_buckets(np.array([7]), bound)[0] == numbers[0]


# -- tables ---------------------------------------------------------------------------------------------------------


class TwoPartitions(ClusterTable):
    """A cluster of this process: rows and ids in two parts."""

    def __init__(self, rows, ids):
        super().__init__(["x"], 1, "who")
        self._parts = [(rows[::2], ids[::2]), (rows[1::2], ids[1::2])]

    def _rows(self, take):
        for rows, ids in self._parts:
            take(rows, ids)


def test_rows_of_a_cluster_are_cut_here():
    rng = np.random.default_rng(0)
    rows, ids = rng.uniform(0, 10, (300, 1)), rng.integers(0, 40, 300)
    cluster = TwoPartitions(rows, ids)
    with pytest.raises(RuntimeError, match="bound its contributions"):
        cluster.each_batch(lambda batch: None)
    seen = []
    cluster.each_unit_batch(lambda batch, who: seen.append(len(batch)))
    assert sum(seen) == 300
    bound = ContributionBound(2, KEY)
    kept = []
    cluster._bounded(bound).each_batch(kept.append)
    expected = []
    table(rows, unit=ids)._bounded(bound).each_batch(expected.append)
    assert sorted(np.concatenate(kept)[:, 0]) == sorted(np.concatenate(expected)[:, 0])
    assert cluster.bounded(1).unit == "who"
    assert cluster.row == "record"


def test_passes_that_are_over():
    one = CountingPass([[1.0]], DensitySketch.of(LINE))
    one.forget()
    with pytest.raises(RuntimeError, match="over"):
        one.run()
    for rows in (np.array([[1.0], [2.0]]), [[1.0], [2.0]]):
        several = RecordPasses(rows, 1)
        seen = []
        several.each(seen.append)
        assert np.concatenate(seen).tolist() == [[1.0], [2.0]]
    several.bound(3)  # rows that have no unit are left as they are
    several.forget()
    with pytest.raises(RuntimeError, match="over"):
        several.each(seen.append)
    reader = pa.table({"x": [1.0]}).to_reader()
    with pytest.raises(TypeError, match="read only once"):
        RecordPasses(table(reader), 1)
    assert facts_of([[1.0]]) == {}


def test_what_reading_says_is_not_passed_on():
    class Talking(TwoPartitions):
        def _rows(self, take):
            raise ValueError("the record of Ann")

    with pytest.raises(ReadFailed) as error:
        Talking(np.zeros((2, 1)), [1, 2]).bounded(1).each_batch(lambda rows: None)
    assert "Ann" not in str(error.value)


@pytest.mark.parametrize(
    ("source", "width"),
    [
        (np.zeros(3), 1),
        (np.zeros((3, 2)), 2),
        (np.zeros((3, 2, 2)), None),
        ([[1.0]], None),
        (table(np.ones((1, 1))), 1),
    ],
    ids=["column", "columns", "cube", "list", "table"],
)
def test_a_width_is_the_schemas(source, width):
    assert width_of(source) == width


def test_a_list_has_the_width_that_is_declared():
    assert public_width([[1.0]], 2) == 2
    assert public_width(np.zeros((3, 2)), None) == 2
    for undeclared in (lambda: public_width([[1.0]], None), lambda: table([[1.0]]).width):
        with pytest.raises(ValueError, match="columns"):
            undeclared()


def test_an_id_with_errors_of_its_own_is_missing():
    class Odd(float):
        def is_integer(self):
            raise ZeroDivisionError

        def __float__(self):
            raise ZeroDivisionError

    assert Identities().read([Odd(1.0), 7])[1].tolist() == [MISSING, INTEGER]


def test_progress_is_told_to_the_owner():
    told = []
    sketch(table(np.zeros((3, 1)), progress=told.append), LINE)
    assert told == [3]


# -- SQL ------------------------------------------------------------------------------------------------------------


def test_sqlite_counts_the_same_cells():
    rows = rows_and_ids()[0][:, :1]
    lite = SqliteDialect()
    name = quoted('a "x"')
    query = CellSql.of(LINE, lite).query([name], "t")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE t ({name} REAL)")
        connection.executemany("INSERT INTO t VALUES (?)", rows.tolist())
        counted = dict(connection.execute(query, lite.parameters))
    keys, counts = DensitySketch.of(LINE).update(rows).state()
    assert counted == dict(zip(keys.tolist(), counts.tolist(), strict=True))


def test_postgres_divides_nothing_too_small():
    cell = CellSql.of(LINE, POSTGRES).cell
    assert f"CAST('{float(LINE.cell_widths[0]) * 2.0**-1000!r}' AS double precision) THEN" in cell


def test_a_grid_beyond_32_bits_is_not_for_compiled_loops():
    """A flat cell is a number of 32 bits there: the limit stands where a grid is made ready for them."""
    loops = pytest.importorskip("fogline.queries._numba")
    spec = SimpleNamespace(
        cells=(2**16, 2**15), lower=np.zeros(2), upper=np.ones(2), cell_widths=2.0 ** np.array([-16, -15]), shift=[0, 0]
    )
    with pytest.raises(ValueError, match="at most 2147483647 cells"):
        loops.grid_parts(spec)
    assert histogram.row_cells(np.array([[1.0, 1.0], [2.0, 0.0]]), spec).tolist() == [2**31 - 1, 2**31]
