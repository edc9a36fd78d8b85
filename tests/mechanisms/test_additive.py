"""Gaussian and Laplace mechanisms and the count: scales, saturation, and bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.accounting.costs import cost
from fogline.mechanisms import add_gaussian, add_laplace, gaussian_scale, laplace_scale, private_count
from fogline.mechanisms import randomness as _opendp
from fogline.mechanisms.discrete_laplace import laplace_reach, laplace_tail
from fogline.mechanisms.errors import ReleaseFailed
from fogline.mechanisms.lattice import LEAST_SCALE, LIMIT, exact_integers, noisy_sum
from fogline.testing import seeded_noise

pytestmark = pytest.mark.quick

int64s = st.integers(-(2**63), 2**63 - 1)
sizes = st.floats(math.log(1e-6), math.log(1e6)).map(math.exp)


def zeros(size=1):
    return lambda: np.zeros(size, dtype=np.int64)


@given(sizes, sizes)
@settings(max_examples=200, deadline=None)
def test_gaussian_scale_meets_rho_by_both_accounts_and_hardly_more(sensitivity, rho):
    scale = gaussian_scale(sensitivity, rho)
    assert Fraction(sensitivity) ** 2 <= 2 * Fraction(rho) * Fraction(scale) ** 2
    assert _opendp.gaussian_rho(scale, sensitivity) <= rho
    assert scale <= max(sensitivity / math.sqrt(2 * rho), float(LEAST_SCALE)) * (1 + 1e-14)


@given(sizes, sizes)
@settings(max_examples=200, deadline=None)
def test_laplace_scale_meets_epsilon_by_both_accounts_and_hardly_more(sensitivity, epsilon):
    scale = laplace_scale(sensitivity, epsilon)
    assert Fraction(sensitivity) <= Fraction(epsilon) * Fraction(scale)
    assert _opendp.laplace_epsilon(scale, sensitivity) <= epsilon
    assert scale <= max(sensitivity / epsilon, float(LEAST_SCALE)) * (1 + 1e-14)


@given(sizes, sizes)
def test_scales_are_monotone(sensitivity, budget):
    for scale in (gaussian_scale, laplace_scale):
        assert scale(sensitivity, budget) <= scale(1.001 * sensitivity, budget)
        assert scale(sensitivity, budget) >= scale(sensitivity, 1.001 * budget)


@given(st.lists(st.tuples(int64s, st.integers(-(2**70), 2**70)), min_size=1, max_size=20))
def test_saturating_sum_is_clipping_of_the_true_sum(pairs):
    exact = np.array([x for x, _ in pairs], dtype=np.int64)
    noise = np.array([max(-(2**63), min(2**63 - 1, z)) for _, z in pairs], dtype=np.int64)

    def clip(v):
        return max(-LIMIT, min(LIMIT, v))

    assert noisy_sum(exact, noise).tolist() == [clip(clip(x) + z) for x, z in pairs]


@given(int64s, int64s)
def test_clipping_is_a_contraction(x, y):
    a, b = (int(noisy_sum(np.array([v]), np.zeros(1, dtype=np.int64))[0]) for v in (x, y))
    assert abs(a - b) <= abs(x - y)


def test_events_cost_what_was_asked_for():
    gaussian = add_gaussian(zeros(3), size=3, sensitivity=1.5, rho=0.02)
    assert 0.02 * (1 - 1e-13) <= cost(gaussian.event).rho <= 0.02
    laplace = add_laplace(zeros(3), size=3, sensitivity=2, epsilon=0.3)
    assert 0.045 * (1 - 1e-13) <= cost(laplace.event).rho <= 0.045
    assert gaussian.event.scale == gaussian.scale


def test_the_noise_has_the_scale_that_is_claimed():
    release = add_gaussian(zeros(20_000), size=20_000, sensitivity=10, rho=0.5)
    assert release.scale == pytest.approx(10)
    assert np.std(release.values) == pytest.approx(10, rel=0.03)
    laplace = add_laplace(zeros(20_000), size=20_000, sensitivity=10, epsilon=1.0)
    assert np.std(laplace.values) == pytest.approx(10 * math.sqrt(2), rel=0.06)


def test_numbers_of_numpy_are_taken_exactly():
    gaussian = add_gaussian(zeros(), size=1, sensitivity=np.float32(1.1), rho=np.float64(0.5))
    assert gaussian.event.sensitivity == float(np.float32(1.1))
    laplace = add_laplace(zeros(), size=np.int64(1), sensitivity=np.int64(2), epsilon=np.float32(0.3))
    assert cost(laplace.event).rho <= float(np.float32(0.3)) ** 2 / 2


@pytest.mark.parametrize("sensitivity", [0.5, 1e-200, 5e-324])
def test_a_sensitivity_below_one_step_counts_as_one(sensitivity):
    gaussian = add_gaussian(zeros(), size=1, sensitivity=sensitivity, rho=0.5)
    assert (gaussian.event.sensitivity, gaussian.scale) == (1.0, gaussian_scale(1.0, 0.5))
    laplace = add_laplace(zeros(), size=1, sensitivity=sensitivity, epsilon=0.5)
    assert (laplace.event.sensitivity, laplace.scale) == (1.0, laplace_scale(1.0, 0.5))


@pytest.mark.parametrize("budget", [1e30, 1.7976931348623157e308])
def test_noise_has_a_least_scale(budget):
    gaussian = add_gaussian(zeros(), size=1, sensitivity=1, rho=budget)
    laplace = add_laplace(zeros(), size=1, sensitivity=1, epsilon=budget)
    assert min(gaussian.scale, laplace.scale) >= LEAST_SCALE
    assert cost(gaussian.event).rho <= budget
    assert cost(laplace.event).rho <= budget


@pytest.mark.parametrize(("sensitivity", "budget"), [(1.0, 5e-324), (1.7976931348623157e308, 1.0), (1e60, 1e-30)])
def test_noise_has_a_greatest_scale(sensitivity, budget):
    asked = []
    with pytest.raises(ValueError, match=r"scale of the noise, sensitivity / sqrt\(2 rho\)"):
        add_gaussian(lambda: asked.append(1), size=1, sensitivity=sensitivity, rho=budget)
    with pytest.raises(ValueError, match="scale of the noise, sensitivity / epsilon"):
        add_laplace(lambda: asked.append(1), size=1, sensitivity=sensitivity, epsilon=budget)
    assert asked == []


def test_no_entries_and_extreme_values():
    assert add_gaussian(zeros(0), size=0, sensitivity=1, rho=1).values.shape == (0,)
    edge = np.array([2**63 - 1, -(2**63)])
    assert np.abs(add_gaussian(lambda: edge, size=2, sensitivity=1, rho=1e-36).values).max() <= LIMIT


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (lambda: np.zeros(2), TypeError),
        (lambda: np.zeros(2, dtype=bool), TypeError),
        (lambda: np.zeros(2, dtype=np.uint64), TypeError),
        (lambda: np.zeros(3, dtype=int), ValueError),
        (lambda: np.zeros((2, 1), dtype=int), ValueError),
    ],
)
def test_wrong_type_or_shape_of_the_query(query, error):
    with pytest.raises(error, match="exact query"):
        add_gaussian(query, size=2, sensitivity=1, rho=1)
    assert exact_integers(np.zeros(2, dtype=np.uint32), 2).dtype == np.int64


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, None, "1"])
def test_bad_parameters(bad):
    for name, call in [
        ("sensitivity", lambda: add_gaussian(zeros(), size=1, sensitivity=bad, rho=1)),
        ("rho", lambda: add_gaussian(zeros(), size=1, sensitivity=1, rho=bad)),
        ("sensitivity", lambda: add_laplace(zeros(), size=1, sensitivity=bad, epsilon=1)),
        ("epsilon", lambda: add_laplace(zeros(), size=1, sensitivity=1, epsilon=bad)),
    ]:
        with pytest.raises((ValueError, TypeError), match=name):
            call()


def test_nothing_is_released_when_the_accounts_disagree(monkeypatch):
    asked = []
    monkeypatch.setattr(_opendp, "gaussian_rho", lambda *_: 1.0)
    monkeypatch.setattr(_opendp, "laplace_epsilon", lambda *_: 1.0)
    with pytest.raises(RuntimeError, match="nothing was released"):
        add_gaussian(lambda: asked.append(1), size=1, sensitivity=1, rho=0.5)
    with pytest.raises(RuntimeError, match="nothing was released"):
        add_laplace(lambda: asked.append(1), size=1, sensitivity=1, epsilon=0.5)
    assert asked == []


def test_count():
    with seeded_noise(0):
        counts = [private_count(lambda: 0, epsilon=0.1).value for _ in range(100)]
        gaussian = private_count(lambda: 500, rho=0.1, max_contributions=3)
    assert min(counts) == 0 < max(counts)
    assert gaussian.event.sensitivity == 3
    assert gaussian.scale == pytest.approx(3 / math.sqrt(0.2))
    assert abs(gaussian.value - 500) < 60
    for bad in ({}, {"rho": 1.0, "epsilon": 1.0}):
        with pytest.raises(TypeError, match="exactly one"):
            private_count(lambda: 1, **bad)
    with pytest.raises(ReleaseFailed):
        private_count(lambda: 1.5, epsilon=1.0)


@given(st.floats(0.05, 1e6), st.integers(0, 2000))
@settings(max_examples=60, deadline=None)
def test_tail_is_a_sharp_upper_bound(scale, start):
    a = math.exp(-1 / scale)
    expected = math.exp(-start / scale) / (1 + a)
    assert float(laplace_tail(scale, start)) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(st.floats(0.1, 1e5), st.floats(1e-15, 0.4))
@settings(max_examples=60, deadline=None)
def test_reach_is_the_least_that_suffices(scale, probability):
    k = laplace_reach(scale, probability)
    assert laplace_tail(scale, k) <= probability
    assert k == 0 or laplace_tail(scale, k - 1) > probability


def test_tail_against_a_plain_sum():
    z = np.arange(0, 400)
    mass = np.exp(-z / 3.7)
    total = 2 * mass.sum() - 1
    for start in (0, 1, 5, 20):
        assert float(laplace_tail(3.7, start)) == pytest.approx(mass[start:].sum() / total, rel=1e-12)
    with pytest.raises(ValueError, match="probability"):
        laplace_reach(1.0, 0.0)
