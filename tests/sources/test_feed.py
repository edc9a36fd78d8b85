"""Tables in memory: what their declared types say is an error, what their cells say is not."""

import numpy as np
import pytest

from fogline import DensitySketch
from fogline._validation import records
from fogline.releases import count_into

pytestmark = pytest.mark.quick

pa = pytest.importorskip("pyarrow")

TABLE = pa.table(
    {"a": pa.array([1.5, None, 2.5]), "b": pa.array([True, None, False]), "c": pa.array([2**60 + 1, 3, None])}
)
ROWS = np.array([[1.5, 1.0, float(2**60)], [np.nan, np.nan, 3.0], [2.5, 0.0, np.nan]])


@pytest.mark.parametrize("data", [TABLE, TABLE.combine_chunks().to_batches()[0]], ids=["table", "batch"])
def test_arrow_tables_are_records(data):
    np.testing.assert_array_equal(records(data), ROWS)


def test_arrow_columns_are_records():
    np.testing.assert_array_equal(records(TABLE["b"]), ROWS[:, 1:2])
    np.testing.assert_array_equal(records(pa.array([None, True])), [[np.nan], [1.0]])


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (pa.table({"a": [1.0], "name": ["Ann"]}), "'name'"),
        (pa.array(["Ann"]), "X"),
        (pa.table({"a": pa.array([1], pa.timestamp("s"))}), "'a'"),
        (pa.table({"a": [[1.0]]}), "'a'"),
    ],
)
def test_an_arrow_column_that_holds_no_numbers_is_named(data, name):
    with pytest.raises(TypeError, match=name) as error:
        records(data)
    assert "Ann" not in str(error.value)


def test_an_error_does_not_depend_on_which_cells_are_missing():
    for cells in ([True, False], [True, None], [None, None]):
        assert records(pa.table({"a": pa.array(cells, pa.bool_())})).shape == (2, 1)


def test_an_arrow_table_is_fed_like_an_array():
    rows = np.random.default_rng(0).normal(5, 1, size=(300, 2))
    sketches = [DensitySketch([(0, 10)] * 2) for _ in range(2)]
    count_into(sketches[0], rows)
    count_into(sketches[1], pa.table({"x": rows[:, 0], "y": rows[:, 1]}))
    for mine, theirs in zip(sketches[0].state(), sketches[1].state(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_complex_numbers_are_refused():
    with pytest.raises(ValueError, match="Complex data not supported"):
        records(np.zeros((2, 2), dtype=complex))
