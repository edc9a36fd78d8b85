"""Records in a public ball, as whole numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fogline.queries.lattice import BallLattice

pytestmark = pytest.mark.quick

anything = st.floats(allow_nan=True, allow_infinity=True)


@given(arrays(np.float64, (7, 3), elements=anything))
def test_no_record_is_longer_than_the_radius(rows):
    lattice = BallLattice.around([1.0, -2.0, 0.5], 3.0)
    q = lattice.vectors(rows)
    assert np.all(q == np.rint(q))
    assert np.all(np.sum(q.astype(object) ** 2, axis=1) <= lattice.longest**2)
    assert len(q) <= np.isfinite(rows).all(axis=1).sum()


@given(arrays(np.float64, (9, 5), elements=st.floats(-1e3, 1e3)), st.integers(0, 9))
def test_a_record_is_its_own_vector(rows, cut):
    lattice = BallLattice.around(np.zeros(5), 7.0)
    parts = np.concatenate([lattice.vectors(rows[:cut]), lattice.vectors(rows[cut:])])
    np.testing.assert_array_equal(parts, lattice.vectors(rows))


def test_inside_is_kept_and_outside_moved_to_the_surface():
    lattice = BallLattice.around([0.0, 0.0], 2.0)
    q = lattice.vectors(np.array([[1.0, -0.5], [30.0, 40.0], [1e300, 1e300]]))
    places = lattice.places(q)
    np.testing.assert_allclose(places[0], [1.0, -0.5], atol=1e-4)
    np.testing.assert_allclose(places[1], [1.2, 1.6], atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(places[2]), 2.0, rtol=1e-3)
    np.testing.assert_allclose(lattice.inside(np.array([[30.0, 40.0], [0.1, 0.0]])), [[1.2, 1.6], [0.1, 0.0]])


@pytest.mark.parametrize(
    ("centre", "radius", "named"),
    [
        ([0.0], 0.0, "radius"),
        ([0.0], np.inf, "radius"),
        ([np.nan], 1.0, "center"),
        (3.0, 1.0, "center"),
        ([1e20], 1.0, "radius"),
    ],
)
def test_bad_balls_are_named(centre, radius, named):
    with pytest.raises(ValueError, match=named):
        BallLattice.around(centre, radius)
