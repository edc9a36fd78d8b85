"""One place validates: errors name the parameter, and none depends on the value of a record."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline import _validation as v

pytestmark = pytest.mark.quick

BAD_NUMBERS = [None, "1", True, [1], 1j, math.nan, math.inf, -1, 0]


@pytest.mark.parametrize("bad", BAD_NUMBERS)
@pytest.mark.parametrize(
    ("check", "name"),
    [
        (v.check_epsilon, "epsilon"),
        (v.check_delta, "delta"),
        (v.check_level, "level"),
        (v.check_max_contributions, "max_contributions"),
        (lambda x: v.check_positive(x, "radius"), "radius"),
        (lambda x: v.check_count(x, "n_modes"), "n_modes"),
        (v.check_neighbours, "neighbours"),
    ],
)
def test_errors_name_the_parameter(check, name, bad):
    with pytest.raises((ValueError, TypeError), match=name):
        check(bad)


def test_numbers_of_numpy_are_numbers():
    assert v.check_epsilon(np.float32(0.5)) == 0.5
    assert v.check_count(np.int64(3), "k") == 3
    assert type(v.check_count(np.int64(3), "k")) is int
    with pytest.raises(ValueError, match="too large"):
        v.check_positive(10**400, "radius")
    with pytest.raises(ValueError, match="without any protection"):
        v.check_epsilon(math.inf)
    with pytest.raises(TypeError, match="no default"):
        v.check_epsilon(None)
    assert v.check_neighbours("add-remove") == "add-remove"


def test_bounds():
    assert v.check_bounds((0, 1)).shape == (1, 2)
    assert v.check_bounds([(0, 1), (-2, 5.5)]).tolist() == [[0, 1], [-2, 5.5]]
    given_bounds = np.array([[0.0, 1.0]])
    v.check_bounds(given_bounds)[0, 0] = 9
    assert given_bounds[0, 0] == 0


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (None, "a range read from the data would leak it"),
        ([(0, 1), (3, 2)], "axis 1 .*low < high"),
        ([(1, 1)], "low < high"),
        ((0, math.inf), "finite"),
        ((math.nan, 1), "finite"),
        ((-1e308, 1e308), "too far apart"),
        ([(0, 1, 2)], "pair"),
        ([(0, 1), (0,)], "unequal length"),
        ([], "pair"),
        (3, "pair"),
        (("a", "b"), "real numbers"),
        ((True, False), "real numbers"),
    ],
)
def test_bad_bounds(bounds, message):
    with pytest.raises((ValueError, TypeError), match=f"x_bounds.*{message}"):
        v.check_bounds(bounds, name="x_bounds")


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], dtype=np.float16),
        [[1, 2], [3, 4]],
        [(1, 2.0), (True + 2, 4)],
        np.ma.array([[1, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], dtype=np.longdouble),
    ],
)
def test_records_of_many_kinds(X):
    result = v.records(X, d=2)
    assert result.dtype == np.float64
    assert result.tolist() == [[1, 2], [3, 4]]


def test_no_rows_is_never_an_error():
    for empty in ([], np.zeros(0), np.zeros((0, 3)), ()):
        assert v.records(empty, d=3).shape == (0, 3)
    assert v.records([], public=True).shape == (0, 1)
    assert v.records(np.array([1.0, 2.0])).shape == (2, 1)


@given(st.lists(st.one_of(st.floats(), st.none(), st.integers(), st.text(), st.booleans()), max_size=20))
def test_no_cell_of_a_list_is_an_error(cells):
    result = v.records(cells, d=1)
    assert result.shape == (len(cells), 1)
    for cell, value in zip(cells, result[:, 0], strict=True):
        if cell is None or isinstance(cell, str):
            assert math.isnan(value)


@given(st.lists(st.lists(st.one_of(st.floats(), st.none(), st.text()), max_size=4), max_size=8))
def test_no_row_of_a_list_is_an_error(rows):
    assert v.records([*rows, [1.0, 2.0]], d=2).shape == (len(rows) + 1, 2)


def test_broken_rows_and_huge_cells_are_missing():
    result = v.records([[1, 2], [3], None, "ab", [10**400, 5]], d=2)
    assert result[0].tolist() == [1, 2]
    assert np.isnan(result[1:4]).all()
    assert math.isnan(result[4, 0])
    masked = np.ma.array([1, 2], mask=[False, True])
    assert math.isnan(v.records(masked)[1, 0])
    wide = np.array([np.longdouble("1e4000")])
    assert math.isinf(v.records(wide)[0, 0])


@pytest.mark.parametrize(
    ("X", "d", "message"),
    [
        (None, None, "array, a frame"),
        ("text", None, "array, a frame"),
        (3.0, None, "array, a frame"),
        (np.array(["a"]), None, "real numbers"),
        (np.array([1j]), None, "real numbers"),
        (np.array(["2020-01-01"], dtype="M8[D]"), None, "real numbers"),
        (np.zeros((2, 2, 2)), None, "dimensions"),
        (np.float64(3.0), None, "dimensions|array"),
        (np.zeros((3, 0)), None, "at least one column"),
        (np.zeros((3, 2)), 3, "3 columns, got 2"),
        (np.zeros(3), 2, "2 columns, got 1"),
        (np.zeros((3, 2)), 1, "1 column, got 2"),
    ],
)
def test_schema_errors(X, d, message):
    with pytest.raises((ValueError, TypeError), match=message):
        v.records(X, d=d)


def test_pandas_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "b": pd.array([1, None], dtype="Int64"), "c": [True, False]})
    result = v.records(frame, d=3)
    assert result[0].tolist() == [1, 1, 1]
    assert math.isnan(result[1, 1])
    assert v.records(frame["b"]).shape == (2, 1)
    assert v.records(frame[["a", "a"]]).shape == (2, 2)
    assert v.records(frame.iloc[:0], d=3).shape == (0, 3)
    with pytest.raises(TypeError, match="column 'name' must hold real numbers"):
        v.records(pd.DataFrame({"a": [1.0], "name": pd.array(["x"], dtype="string")}))
    with pytest.raises(TypeError, match="column 'when'"):
        v.records(pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}))
    with pytest.raises(ValueError, match="column"):
        v.records(pd.DataFrame())


def test_polars_like_frames():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, None], "b": [0.5, 1.5]})
    assert math.isnan(v.records(frame, d=2)[1, 0])
    with pytest.raises(TypeError, match="column 'name'"):
        v.records(pl.DataFrame({"name": ["x"]}))
