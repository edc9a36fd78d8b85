"""The exponential mechanism: exact probabilities, exact decisions, privacy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fogline.accounting import ExponentialEvent, cost
from fogline.mechanisms import choose, use_provider
from fogline.mechanisms.exponential import _decide, _exponents, _fixed_point
from fogline.mechanisms.randomness import SystemSource
from fogline.testing import seeded_noise


def probabilities(utilities, sensitivity, epsilon):
    weights = np.exp(epsilon * (np.asarray(utilities, dtype=float) - max(utilities)) / (2 * sensitivity))
    return weights / weights.sum()


@pytest.mark.parametrize("utilities", [[0, 3, 1, 3, -2], [0.25, -1.5, 0.75, 1.0], [5]])
def test_frequencies_match_theory_and_a_mutant_does_not(utilities):
    with seeded_noise(11):
        draws = [
            choose(lambda: np.array(utilities), size=len(utilities), sensitivity=1.5, epsilon=1.2) for _ in range(3000)
        ]
    observed = np.bincount(draws, minlength=len(utilities))
    if len(utilities) > 1:
        assert stats.chisquare(observed, 3000 * probabilities(utilities, 1.5, 1.2)).pvalue > 1e-6
        assert stats.chisquare(observed, 3000 * probabilities(utilities, 1.5, 2.4)).pvalue < 1e-6


def test_system_door_too():
    draws = [choose(lambda: np.array([0, 2]), size=2, sensitivity=1, epsilon=1.0) for _ in range(2000)]
    assert stats.binomtest(sum(draws), 2000, float(probabilities([0, 2], 1, 1.0)[1])).pvalue > 1e-6


@given(
    st.lists(st.integers(-20, 20), min_size=2, max_size=6),
    st.integers(1, 3),
    st.floats(0.05, 3.0),
    st.integers(0, 2**64 - 1),
)
@settings(max_examples=200, deadline=None)
def test_decision_is_inverse_transform(utilities, sensitivity, epsilon, leading):
    exponents, inverse = _exponents(np.array(utilities), len(utilities), Fraction(epsilon) / (2 * sensitivity))
    chosen = _decide(exponents, inverse, leading << 192, 256)
    sums = np.cumsum(probabilities(utilities, sensitivity, epsilon))
    u = leading / 2**64
    if chosen is not None and np.min(np.abs(sums - u)) > 1e-12:
        assert chosen == int(np.searchsorted(sums, u, side="right"))


@given(st.fractions(min_value=0, max_value=300), st.sampled_from([64, 256, 512]))
@settings(max_examples=100, deadline=None)
def test_weights_are_within_one_unit(exponent, bits):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(300):
        exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** bits
        assert abs(exact - _fixed_point(exponent, bits)) < 1


def test_more_bits_are_drawn_when_the_first_do_not_decide():
    class Halfway(SystemSource):
        """U = 0.1000...: exactly between two equal candidates until a late bit."""

        asked: list[int] = []  # noqa: RUF012

        def bytes(self, size):
            first = not self.asked
            self.asked.append(size)
            return b"\x80" + bytes(size - 1) if first else b"\xff" * size

    class Door:
        certified = False

        def answer(self, call, query, sample):
            return sample(Halfway())(query())

    with use_provider(Door()):
        assert choose(lambda: np.zeros(2), size=2, sensitivity=1, epsilon=1.0) == 1
    assert Halfway.asked == [32, 32]


def test_privacy_and_bounded_range_of_the_probabilities():
    rng = np.random.default_rng(0)
    for _ in range(50):
        u = rng.integers(0, 10, size=6)
        v = u + rng.integers(-1, 2, size=6)
        ratio = np.log(probabilities(u, 1, 0.8) / probabilities(v, 1, 0.8))
        assert np.abs(ratio).max() <= 0.8 + 1e-12
        assert np.ptp(ratio) <= 0.8 + 1e-12
        p, q = probabilities(u, 1, 0.8), probabilities(v, 1, 0.8)
        for order in (1.01, 2.0, 8.0, 60.0):
            renyi = np.log(np.sum(p**order * q ** (1 - order))) / (order - 1)
            assert renyi <= order * cost(ExponentialEvent(0.8)).rho + 1e-9


def test_odd_utilities_never_raise():
    with seeded_noise(3):
        for values in (
            [np.nan, 0.0, np.inf],
            [1e308, -1e308, 5e-324],
            [2**63 - 1, -(2**63), 0],
            [-np.inf, -np.inf, np.nan],
        ):
            assert choose(lambda v=values: np.array(v), size=3, sensitivity=1e-3, epsilon=0.1) in (0, 1, 2)


def test_many_candidates():
    utilities = np.arange(20_000)
    with seeded_noise(4):
        picks = [choose(lambda: utilities, size=20_000, sensitivity=1, epsilon=0.01) for _ in range(2)]
    assert min(picks) > 20_000 - 8000
    assert math.isfinite(sum(picks))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "size"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"size": 2}, "utilities"),
    ],
)
def test_bad_input(change, message):
    arguments = {"size": 3, "sensitivity": 1, "epsilon": 1.0, **change}
    with pytest.raises(ValueError, match=message):
        choose(lambda: np.zeros(3), **arguments)


def test_text_is_refused():
    with pytest.raises(TypeError, match="utilities"):
        choose(lambda: np.array(["a"]), size=1, sensitivity=1, epsilon=1.0)
