"""Reading of the steps: what is believed of noisy sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.algorithms.mixture_from_density import MixtureState, believed, read_step, step_kind
from fogline.queries.em_step import GaussianClusters, StepSums

MODEL = GaussianClusters(
    np.array([0.5, 0.5]), np.array([[-0.3, 0.0], [0.3, 0.1]]), np.repeat(0.01 * np.eye(2)[None], 2, axis=0)
)


@given(
    st.integers(1, 6),
    st.floats(0.01, 10),
    st.floats(0, 10),
    st.integers(0, 2**32 - 1),
)
def test_belief_is_between_nothing_and_all(m, noise, before, seed):
    seen = np.random.default_rng(seed).normal(size=(3, m))
    change, left = believed(seen, np.full(3, noise), np.full(3, before))
    factor = np.divide(change, seen)
    assert np.all((factor >= 0) & (factor <= 1))
    assert np.all(left <= noise**2 * (1 + 1e-12))
    np.testing.assert_allclose(left, factor[:, 0] * noise**2)


def test_steps_of_equal_noise_are_averaged():
    """Without drift, t readings of a fixed truth leave a variance of one t-th."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(2000, 3))
    place, before = np.zeros((2000, 3)), np.full(2000, 1.0)
    for _ in range(10):
        change, before = believed(truth - place + rng.normal(size=(2000, 3)), np.ones(2000), before)
        place = place + change
    assert np.mean((place - truth) ** 2) < 2 / 11


def test_a_step_finds_the_components():
    rng = np.random.default_rng(1)
    steps = 2**15
    z = np.concatenate(
        [rng.normal((-0.28, 0.03), (0.12, 0.08), size=(30000, 2)), rng.normal((0.3, 0.1), 0.1, size=(10000, 2))]
    )
    state = MixtureState(MODEL, np.full(2, 0.1), np.zeros(2), np.full(2, 0.1))
    for _ in range(12):
        query = StepSums(state.model, steps, "full")
        values = query.sums([np.rint(z[i : i + 4000] * steps) for i in range(0, len(z), 4000)])
        state = read_step(state, query, values, 1.0, count=4e4, least=0.05, variance_range=(1e-6, 1.0))
    np.testing.assert_allclose(state.model.weights, [0.75, 0.25], atol=0.005)
    np.testing.assert_allclose(state.model.means, [[-0.28, 0.03], [0.3, 0.1]], atol=0.005)
    np.testing.assert_allclose(np.sqrt(np.diag(state.model.covariances[0])), [0.12, 0.08], rtol=0.03)


@pytest.mark.parametrize(("count", "kind"), [(1e7, "full"), (3e3, "tied"), (200.0, "round")])
def test_shapes_are_asked_for_where_they_can_be_read(count, kind):
    assert step_kind(np.full(5, 0.2), 10, count, 10.0) == kind


def test_variances_stay_in_their_range():
    query = StepSums(MODEL, 2**15, "full")
    values = np.full(query.size, 2**40)
    state = MixtureState(MODEL, np.full(2, 0.1), np.full(2, 1.0), np.full(2, 0.1))
    after = read_step(state, query, values, 1.0, count=1e3, least=0.05, variance_range=(0.008, 0.012))
    eigenvalues = np.linalg.eigvalsh(after.model.covariances)
    assert eigenvalues.min() >= 0.008 * (1 - 1e-9)
    assert eigenvalues.max() <= 0.012 * (1 + 1e-9)


def test_a_centre_from_nowhere_leaves_the_sums_exact():
    """A start that a fit to noise put far out: products stay whole numbers that doubles hold, whatever the batch."""
    far = GaussianClusters(MODEL.weights, np.array([[1e9, 0.0], [0.3, -1e9]]), MODEL.covariances)
    query = StepSums(far, 2**15, "full")
    assert np.abs(query.centres).max() == 2.0**16
    rows = np.random.default_rng(0).integers(-(2**15), 2**15, size=(257, 2)).astype(np.float64)
    alone = query.sums([row[None] for row in rows])
    np.testing.assert_array_equal(query.sums([rows]), alone)
