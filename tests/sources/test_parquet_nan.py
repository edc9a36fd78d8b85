"""NaN records of Parquet never count, whoever wrote the file, whatever its statistics say, with and without pyarrow."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fogline.density.spec import SketchSpec
from fogline.sources.files import FileTable
from fogline.sources.registry import table

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pl = pytest.importorskip("polars")

SPAN = SketchSpec.plan([(0.0, 100.0)])
NANS = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001], dtype=np.uint64).view(np.float64)


def by_pyarrow(values, path):
    pq.write_table(pa.table({"a": values}), path, row_group_size=1500)


def by_pyarrow_dictionary(values, path):
    pq.write_table(pa.table({"a": values}), path, use_dictionary=["a"])


def by_polars(values, path):
    pl.DataFrame({"a": values}).write_parquet(path, statistics="full", row_group_size=1500)


def by_duckdb(values, path):
    frame = pa.table({"a": values})  # noqa: F841 - found by its name
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")


WRITERS = [by_pyarrow, by_pyarrow_dictionary, by_polars, by_duckdb]


def records(extra=()):
    rng = np.random.default_rng(0)
    values = rng.uniform(1, 99, 3000)
    mixed = rng.permutation(np.concatenate([values, np.resize(NANS, 1000)]))  # in every row group
    return np.concatenate([mixed, list(extra)])


@pytest.mark.parametrize("writer", WRITERS, ids=lambda w: w.__name__)
@pytest.mark.parametrize("width", [np.float64, np.float32])
@pytest.mark.parametrize("has_arrow", [True, False])
def test_one_record_far_away_switches_no_nan_on_or_off(tmp_path, writer, width, has_arrow, monkeypatch):
    paths = []
    for i, extra in enumerate([(), (500.0,), (-5.0,), (np.inf,), (np.nan,)]):
        paths.append(tmp_path / f"{i}.parquet")
        with np.errstate(all="ignore"):
            writer(records(extra).astype(width), paths[-1])
    if not has_arrow:
        for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
            monkeypatch.setitem(sys.modules, name, None)
    every = [FileTable(path).state(SPAN) for path in paths]
    assert every[0][1].sum() == 3000
    for keys, counts in every[1:]:
        assert keys.tolist() == every[0][0].tolist()
        assert counts.tolist() == every[0][1].tolist()


@pytest.mark.parametrize("writer", WRITERS, ids=lambda w: w.__name__)
@pytest.mark.parametrize("width", [np.float64, np.float32])
@pytest.mark.parametrize("has_arrow", [True, False])
def test_a_column_that_is_constant_but_for_nan(tmp_path, writer, width, has_arrow, monkeypatch):
    with np.errstate(all="ignore"):
        writer(np.append(np.full(300, 5.0), np.resize(NANS, 100)).astype(width), tmp_path / "t.parquet")
    if not has_arrow:
        for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
            monkeypatch.setitem(sys.modules, name, None)
    assert FileTable(tmp_path / "t.parquet").state(SPAN)[1].tolist() == [300]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda w: w.__name__)
def test_lazy_frames_and_relations_too(tmp_path, writer):
    for extra in ((), (500.0,)):
        writer(records(extra), tmp_path / "t.parquet")
        relation = duckdb.connect().sql(f"SELECT a FROM '{tmp_path}/t.parquet'")
        for source in (pl.scan_parquet(tmp_path / "t.parquet"), relation):
            assert table(source).state(SPAN)[1].sum() == 3000
