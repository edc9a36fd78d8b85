"""Sources that change or die between the first look and the last row: one constant sentence, and no state."""

import sqlite3

import numpy as np
import pytest
from optional_packages import optional

from fogline import Ledger, PrivateModes
from fogline.density.random_spec import plan_spec
from fogline.mechanisms.errors import ReleaseFailed
from fogline.sources.contributions import ContributionBound
from fogline.sources.registry import table
from fogline.sources.tables import ReadFailed

pa = optional("pyarrow")

LINE = plan_spec([(0, 10)], "auto", None)
BOUND = ContributionBound(2, (11, 12))


def failure(source):
    """What is said of a source that fails; nothing may lead to what it was reading."""
    with pytest.raises(ReadFailed) as error:
        source.state(LINE)
    assert error.value.__context__ is None
    assert error.value.__cause__ is None
    return str(error.value)


@pytest.mark.parametrize("unit", [None, "who"])
def test_a_column_that_is_dropped_after_the_first_look(tmp_path, unit):
    with sqlite3.connect(tmp_path / "clinic.db") as database:
        database.execute("CREATE TABLE visits (x REAL, who INTEGER)")
        database.executemany("INSERT INTO visits VALUES (?, ?)", [(777.125, 1), (5.0, 2)])
        database.commit()
        source = table(database, ["x"], query="visits", unit=unit)
        source = source if unit is None else source._bounded(BOUND)
        database.execute("ALTER TABLE visits DROP COLUMN x")
        said = failure(source)
        assert "777" not in said
        assert "visits" not in said
        database.execute("DELETE FROM visits")  # and without records the same
        assert failure(source) == said


@pytest.mark.parametrize("unit", [None, "who"])
def test_a_parquet_file_that_is_replaced_by_one_without_the_column(tmp_path, unit):
    pq = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("duckdb")
    path, said = tmp_path / "visits.parquet", set()
    for rows in (3, 0):
        content = {"x": np.full(rows, 777.125), "who": np.arange(rows)}
        pq.write_table(pa.table(content), path)
        source = table(path, ["x"], unit=unit)
        source = source if unit is None else source._bounded(BOUND)
        pq.write_table(pa.table({"y": content["x"], "who": content["who"]}), path)
        said.add(failure(source))
    assert said == {"the file could not be read"}


def dying(batches):
    """Hand over some batches, and die."""
    yield from batches
    raise RuntimeError("connection lost at row 777")


@pytest.mark.parametrize("unit", [None, "who"])
def test_an_engine_that_dies_in_the_middle(unit):
    content = pa.table({"x": np.arange(10.0), "who": np.arange(10)})
    reader = pa.RecordBatchReader.from_batches(content.schema, dying(content.to_batches(max_chunksize=3)))
    source = table(reader, ["x"], unit=unit)
    assert "777" not in failure(source if unit is None else source._bounded(BOUND))


def test_an_engine_that_dies_costs_its_question_and_tells_nothing(tmp_path):
    content = pa.table({"x": np.arange(10.0)})
    reader = pa.RecordBatchReader.from_batches(content.schema, dying(content.to_batches(max_chunksize=3)))
    with Ledger.create(tmp_path / "b", dataset="v", epsilon=2.0, delta=1e-5, high_water=tmp_path / "m") as ledger:
        model = PrivateModes(epsilon=1.0, delta=1e-6, bounds=[(0, 10)], ledger=ledger)
        before = ledger.remaining().rho
        with pytest.raises((ReadFailed, ReleaseFailed)) as error:
            model.fit(table(reader, ["x"]))
        assert "777" not in str(error.value)
        assert ledger.remaining().rho < before


def test_ids_of_mixed_types_in_the_batches_of_one_stream():
    """A person whose id is a whole number in one file and its text in the next is one person."""
    rng = np.random.default_rng(0)
    whole, x = rng.integers(0, 40, 600), rng.uniform(0, 10, 600)
    mixed = np.array([int(i) if n % 3 else str(i) if n % 2 else float(i) for n, i in enumerate(whole)], dtype=object)
    kept = [table(x, unit=ids)._bounded(BOUND).state(LINE) for ids in (whole, mixed)]
    for mine, theirs in zip(*kept, strict=True):
        assert np.array_equal(mine, theirs)
