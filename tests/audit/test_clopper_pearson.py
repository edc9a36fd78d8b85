"""The lower bound on epsilon: exact limits, published rows, and its coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from fogline.audit.binomial_bounds import epsilon_lower_bound, proportion_lower, proportion_upper, visible_probability

pytestmark = pytest.mark.quick

runs = st.integers(1, 2000)


@given(runs.flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_limits_are_the_exact_ones(counts):
    hits, n = counts
    interval = binomtest(hits, n).proportion_ci(0.95, method="exact")
    assert proportion_lower(hits, n, error=0.025) == pytest.approx(interval.low, abs=1e-9)
    assert proportion_upper(hits, n, error=0.025) == pytest.approx(interval.high, abs=1e-9)


@pytest.mark.parametrize(
    ("hits_1", "hits_0", "expected"),
    [(72, 0, 2.7303), (192, 0, 3.8127), (1774, 23, 3.9259), (2000, 0, 6.2946)],
)
def test_rows_of_the_peer_attacks(hits_1, hits_0, expected):
    bound = epsilon_lower_bound(hits_1, 2000, hits_0, 2000, delta=1e-5)
    assert bound == pytest.approx(expected, abs=5e-4)


def test_complementary_event_counts_too():
    # The event is common on both sides, and never fails to happen on the first.
    assert epsilon_lower_bound(2000, 2000, 1800, 2000, delta=0.0) > 3.0


@given(st.integers(0, 100), st.integers(0, 100), st.floats(0, 0.1))
def test_never_negative_and_falls_with_delta(hits_1, hits_0, delta):
    bound = epsilon_lower_bound(hits_1, 100, hits_0, 100, delta=delta)
    assert 0.0 <= bound <= epsilon_lower_bound(hits_1, 100, hits_0, 100, delta=0.0)


@given(st.integers(1, 100), st.integers(0, 100))
def test_more_confidence_says_less(hits_1, hits_0):
    sure = epsilon_lower_bound(hits_1, 100, hits_0, 100, delta=0.0, confidence=0.999)
    assert sure <= epsilon_lower_bound(hits_1, 100, hits_0, 100, delta=0.0, confidence=0.9)


def test_randomised_response_is_not_accused_more_often_than_stated():
    """Randomised response is exactly epsilon-private and its event is the worst one."""
    epsilon, repeats = 1.0, 2000
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    rng = np.random.default_rng(0)
    wrong = sum(
        epsilon_lower_bound(a, 300, b, 300, delta=0.0) > epsilon
        for a, b in zip(rng.binomial(300, p, repeats), rng.binomial(300, 1 - p, repeats), strict=True)
    )
    assert wrong / repeats < 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"runs_1": 0, "hits_1": 0}, "runs_1"),
        ({"hits_0": 11}, "hits_0"),
        ({"hits_1": -1}, "hits_1"),
        ({"delta": 1.0}, "delta"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_bad_input_names_the_parameter(change, message):
    arguments = {"hits_1": 5, "runs_1": 10, "hits_0": 0, "runs_0": 10, "delta": 0.0} | change
    with pytest.raises(ValueError, match=message):
        epsilon_lower_bound(**arguments)


@pytest.mark.parametrize(
    ("error", "runs", "leak"),
    [(0.05, 221, 0.1), (1e-3, 446, 0.1), (1e-6, 834, 0.1), (0.05, 2400, 0.01), (1e-3, 4700, 0.01), (1e-6, 8700, 0.01)],
)
def test_so_many_runs_see_so_rare_a_leak(error, runs, leak):
    assert visible_probability(runs, confidence=1 - error) == pytest.approx(leak, rel=0.03)


def test_the_power_is_as_stated():
    """Simulated: at the probability that is called visible, nine attacks in ten show more than the claim."""
    rng = np.random.default_rng(0)
    leak = visible_probability(500, epsilon=1.0, confidence=0.99)
    shown = [
        epsilon_lower_bound(int(hits), 500, 0, 500, delta=1e-5, confidence=0.99) > 1.0
        for hits in rng.binomial(500, leak, 2000)
    ]
    assert 0.87 < np.mean(shown) < 0.94
    assert visible_probability(500, power=0.5) < leak < visible_probability(500, power=0.99)
    assert visible_probability(500, epsilon=3.0) > leak > visible_probability(5000)


def test_visible_probability_refuses_nonsense():
    assert visible_probability(3) == float("inf")
    with pytest.raises(ValueError, match="runs"):
        visible_probability(0)
    with pytest.raises(ValueError, match="power"):
        visible_probability(10, power=1.0)
