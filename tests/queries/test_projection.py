"""Records as integer vectors, and their exact projection."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.queries.lattice import DIRECTION_BITS, NORM_BITS, Projection, RecordLattice, clipped


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 17, 64, 784, 1024])
def test_no_record_is_longer_than_the_lattice_says(d):
    lattice = RecordLattice.of([(0.0, 1.0)] * d)
    corners = lattice.vectors(np.array([np.zeros(d), np.ones(d)]))
    assert np.sum(corners**2, axis=1).max() <= 4**NORM_BITS
    assert lattice.steps & (lattice.steps - 1) == 0


def test_odd_records_are_left_out():
    lattice = RecordLattice.of([(0, 10), (5, 6)])
    rows = np.array([[5, 5.5], [np.nan, 5.5], [np.inf, 5.5], [-1, 5.5], [5, 6.0001], [10, 6]])
    assert lattice.vectors(rows).tolist() == [[0, 0], [lattice.steps, lattice.steps]]


def test_places_are_the_inverse_of_vectors():
    lattice = RecordLattice.of([(2, 10), (-3, 1)])
    rows = np.random.default_rng(0).uniform([2, -3], [10, 1], size=(100, 2))
    np.testing.assert_allclose(lattice.places(lattice.vectors(rows)), rows, atol=8 / lattice.steps)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(-(2**16), 2**16), min_size=4, max_size=4), min_size=1, max_size=8),
    st.integers(1, 2**16),
)
def test_a_clip_returns_whole_numbers_within_the_ball(rows, radius):
    result = clipped(np.array(rows, dtype=np.float64), radius)
    assert np.array_equal(result, np.rint(result))
    for before, after in zip(rows, result.astype(int).tolist(), strict=True):
        assert sum(x * x for x in after) <= radius**2
        if sum(x * x for x in before) <= radius**2:
            assert after == before
        assert all(a * b >= 0 and abs(a) <= abs(b) for a, b in zip(after, before, strict=True))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_coordinates_do_not_depend_on_the_batch(seed, split):
    rng = np.random.default_rng(seed)
    lattice = RecordLattice.of([(0.0, 1.0)] * 30)
    directions = np.linalg.qr(rng.normal(size=(30, 5)))[0].T
    projection = Projection.on(lattice, directions, rng.uniform(-1, 1, 30))
    rows = rng.uniform(size=(41, 30))
    whole = projection.coordinates(rows)
    parts = np.concatenate([projection.coordinates(rows[:split]), projection.coordinates(rows[split:])])
    assert whole.tobytes() == parts.tobytes()
    exact = [
        [sum(int(a) * int(b) for a, b in zip(v, w, strict=True)) for w in projection.directions]
        for v in lattice.vectors(rows[:3]) - projection.centre
    ]
    assert (whole[:3] * 2.0**DIRECTION_BITS * lattice.steps).astype(int).tolist() == exact


def test_points_of_the_plane_come_back():
    lattice = RecordLattice.of([(0, 10), (0, 10), (0, 4)])
    projection = Projection.public(lattice, [[1.0, 0, 0], [0, 0, 1.0]])
    points = np.array([[3.0, 5.0, 1.0], [9.0, 5.0, 3.5]])
    np.testing.assert_allclose(projection.places(projection.image(points)), points, atol=1e-4)
    low, high = projection.extent()
    assert (projection.image(points) >= low).all()
    assert (projection.image(points) <= high).all()


@pytest.mark.parametrize("matrix", [[[1.0, 0.0]], [[np.nan, 0, 0]], [[1.0, 0, 0], [2.0, 0, 0]], [1.0, 0, 0]])
def test_a_bad_matrix_is_refused_by_name(matrix):
    with pytest.raises(ValueError, match="projection"):
        Projection.public(RecordLattice.of([(0, 1)] * 3), matrix)
