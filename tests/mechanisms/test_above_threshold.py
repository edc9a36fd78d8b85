"""Above threshold: privacy by exact enumeration on small examples, accuracy, frequencies, bad input."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fogline.mechanisms import above_threshold
from fogline.mechanisms.above_threshold import gamma
from fogline.testing import seeded_noise

pytestmark = pytest.mark.quick


def tail(k, scale):
    """P(Z >= k) for every integer k."""
    a = math.exp(-1 / scale)
    return a**k / (1 + a) if k >= 0 else 1 - a ** (1 - k) / (1 + a)


def law(queries, threshold, sensitivity, epsilon, query_factor=4.0):
    """Exact probabilities of each outcome (last: none), summed over the threshold's noise."""
    first, second = 2 * sensitivity / epsilon, query_factor * sensitivity / epsilon
    a = math.exp(-1 / first)
    outcome = np.zeros(len(queries) + 1)
    for h in range(-400, 401):
        remaining = (1 - a) / (1 + a) * a ** abs(h)
        for i, f in enumerate(queries):
            passes = tail(threshold + h - f, second)
            outcome[i] += remaining * passes
            remaining *= 1 - passes
        outcome[-1] += remaining
    return outcome


NEIGHBOURS = [((2, 0, 3), (1, 1, 2)), ((0, 0, 0), (1, 1, 1)), ((5, 5, 5), (4, 4, 6)), ((1, 2, 0), (0, 3, 1))]


@pytest.mark.parametrize(("f", "g"), NEIGHBOURS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_epsilon_dp_by_enumeration(f, g, epsilon):
    p, q = law(f, 2, 1, epsilon), law(g, 2, 1, epsilon)
    assert p.sum() == pytest.approx(1)
    assert np.abs(np.log(p / q)).max() <= epsilon


def test_a_mutant_with_too_little_query_noise_breaks_the_bound():
    worst = max(
        np.abs(np.log(law(f, 8, 1, 1.0, query_factor=0.5) / law(g, 8, 1, 1.0, query_factor=0.5))).max()
        for f, g in itertools.product([(8, 8, 9)], [(9, 9, 8), (7, 7, 10)])
    )
    assert worst > 1.0


def test_frequencies_match_the_law():
    with seeded_noise(8):
        draws = [
            above_threshold(lambda: np.array([1, 3, 2]), size=3, threshold=3, sensitivity=1, epsilon=2.0)
            for _ in range(4000)
        ]
    observed = [draws.count(outcome) for outcome in (0, 1, 2, None)]
    assert stats.chisquare(observed, 4000 * law((1, 3, 2), 3, 1, 2.0)).pvalue > 1e-6
    assert stats.chisquare(observed, 4000 * law((1, 3, 2), 3, 1, 2.5)).pvalue < 1e-3


@given(st.integers(1, 50), st.floats(0.01, 0.3), st.integers(1, 4), st.floats(0.2, 4.0))
@settings(max_examples=50, deadline=None)
def test_gamma_is_below_the_bound_of_the_paper(size, beta, sensitivity, epsilon):
    paper = 8 * sensitivity * (math.log(size) + math.log(2 / beta)) / epsilon
    assert gamma(size, beta, sensitivity=sensitivity, epsilon=epsilon) <= paper + 1


def test_gamma_holds():
    bound = gamma(5, 0.1, sensitivity=1, epsilon=1.0)
    queries = np.array([0, 20, 60, 90, 130])
    failures = 0
    with seeded_noise(9):
        for _ in range(500):
            index = above_threshold(lambda: queries, size=5, threshold=70, sensitivity=1, epsilon=1.0)
            before = queries if index is None else queries[:index]
            failures += bool((before >= 70 + bound).any() or (index is not None and queries[index] < 70 - bound))
    assert failures <= 75  # expected at most 50, and here far fewer


def test_no_queries_and_extreme_values():
    assert above_threshold(lambda: np.zeros(0, dtype=int), size=0, threshold=0, sensitivity=1, epsilon=1.0) is None
    edge = np.array([-(2**63), 2**63 - 1])
    assert above_threshold(lambda: edge, size=2, threshold=2**60, sensitivity=1, epsilon=1.0) == 1
    assert above_threshold(lambda: edge, size=2, threshold=-(2**60), sensitivity=1, epsilon=1e-9) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": 2**61}, "threshold"),
        ({"threshold": 1.5}, "threshold"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": 1.5}, "sensitivity"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1e-16}, "too large"),
        ({"size": -1}, "size"),
    ],
)
def test_bad_input(change, message):
    arguments = {"size": 2, "threshold": 1, "sensitivity": 1, "epsilon": 1.0, **change}
    with pytest.raises((ValueError, TypeError), match=message):
        above_threshold(lambda: np.zeros(2, dtype=int), **arguments)
