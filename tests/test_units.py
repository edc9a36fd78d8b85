"""Public ranges by name."""

import copy
import pickle

import numpy as np
import pytest

from fogline import PrivateModes, units
from fogline._validation import check_bounds

pytestmark = pytest.mark.quick


def test_every_name_is_a_function_and_a_usable_range():
    for name in units.names():
        found = getattr(units, name)()
        assert found == units.named(name)
        assert found.name == name
        assert found.why
        assert found.step is None or found.step > 0
        np.testing.assert_array_equal(check_bounds([found, found]), [list(found), list(found)])
    assert set(units.names()) < set(dir(units))


def test_a_range_survives_copies_and_clones():
    from sklearn.base import clone

    age = units.age()
    for twin in (copy.deepcopy(age), pickle.loads(pickle.dumps(age))):
        assert twin == age
        assert repr(twin) == repr(age)
    model = clone(PrivateModes(epsilon=1.0, delta=1e-6, bounds=[age, units.percent()]))
    assert model.fit(np.ones((20, 2))).density_.spec.bounds == ((0.0, 125.0), (0.0, 100.0))


def test_bad_names():
    with pytest.raises(ValueError, match="no public range named 'shoe'"):
        units.named("shoe")
    with pytest.raises(AttributeError, match="shoe"):
        _ = units.shoe
    with pytest.raises(ValueError, match="points"):
        units.likert(1)
    assert tuple(units.likert(7)) == (1.0, 7.0)


@pytest.mark.parametrize(
    "bounds",
    [
        {"stay": (0, 60), "age": "age"},
        {"age": units.age(), "stay": [0, 60.0]},
        ["age", (0, 60)],
        [(0, 125), (0, 60)],
        np.array([[0, 125], [0, 60]]),
    ],
)
def test_bounds_by_name_by_order_and_by_public_range_are_the_same(bounds):
    found = units.resolve_bounds(bounds, ["age", "stay"])
    np.testing.assert_array_equal(found, [[0, 125], [0, 60]])
    whole = units.resolve(bounds, ["age", "stay"], steps={"stay": 1})
    np.testing.assert_array_equal(whole.box, found)
    np.testing.assert_array_equal(whole.pairs, found)
    assert whole.columns == ("age", "stay")
    assert whole.steps == (getattr(whole.pairs[0], "step", None), 1)


def test_one_range_serves_all_columns():
    np.testing.assert_array_equal(units.resolve_bounds("percent", ["a", "b"], width=2), [[0, 100]] * 2)
    np.testing.assert_array_equal(units.resolve_bounds((0, 1), width=3), [[0, 1]] * 3)
    assert units.ranges((0, 1)) == units.ranges([(0, 1)]) == [(0, 1)]
    assert units.resolve("age", width=2, steps=None).pairs == (units.age(), units.age())
    assert units.resolve("age", width=2).steps == (1, 1)


def test_a_mapping_names_columns_that_have_no_names():
    bounds = {"stay": (0, 60), "age": "age"}
    np.testing.assert_array_equal(units.resolve_bounds(bounds), [[0, 60], [0, 125]])
    assert units.bounded_names(bounds) == ("stay", "age")
    assert units.bounded_names(bounds, ["age", "stay"]) == ("age", "stay")
    assert units.bounded_names([(0, 60)]) is None


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"age": "age"}, r"^bounds: 'stay' has no range"),
        ({"age": "age", "stay": (0, 60), "stays": (0, 1)}, r"^bounds: there is no column 'stays'; did you mean 'stay'"),
        ({"age": "age", "zzz": (0, 60)}, r"^bounds: there is no column 'zzz'; there are age, stay"),
        ({"age": "aeg", "stay": (0, 60)}, r"^bounds: there is no public range named 'aeg'"),
        ({"age": "age", "stay": (60, 0)}, r"^bounds of 'stay' must be \(low, high\) with low < high"),
        ([(0, 1), (0, np.inf)], r"^bounds of 'stay' must be finite"),
        ({}, r"^bounds must hold a range for each column"),
        (["age", (0, 1, 2)], r"^bounds must be one \(low, high\) pair per axis"),
    ],
)
def test_bounds_that_cannot_be_told_name_the_column(bounds, words):
    with pytest.raises(ValueError, match=words):
        units.resolve_bounds(bounds, ["age", "stay"])


def test_missing_bounds_are_refused_whatever_the_names():
    with pytest.raises(TypeError, match=r"^x_bounds must be given"):
        units.resolve_bounds(None, ["age"], name="x_bounds")
    with pytest.raises(TypeError, match=r"^x_bounds must be one"):
        units.resolve_bounds({"age": None}, ["age"], name="x_bounds")
