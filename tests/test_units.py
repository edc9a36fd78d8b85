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
