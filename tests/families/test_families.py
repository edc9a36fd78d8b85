"""Each family against scipy and against finite differences."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from fogline.families import (
    NAMES,
    Exponential,
    Family,
    Gamma,
    Logistic,
    Lognormal,
    Normal,
    StudentT,
    UnivariateFamily,
    Weibull,
    family_named,
    parameter_box,
)

pytestmark = pytest.mark.quick

scales = st.floats(0.3, 5.0)
shapes = st.floats(0.4, 6.0)
places = st.floats(-5.0, 5.0)

CASES = [
    (Normal(), (places, scales), lambda m, s: stats.norm(m, s)),
    (Lognormal(), (st.floats(-2, 2), st.floats(0.2, 1.5)), lambda m, s: stats.lognorm(s, scale=math.exp(m))),
    (Gamma(), (shapes, scales), lambda k, s: stats.gamma(k, scale=s)),
    (Weibull(), (shapes, scales), lambda k, s: stats.weibull_min(k, scale=s)),
    (Logistic(), (places, scales), lambda m, s: stats.logistic(m, s)),
    (StudentT(4.5), (places, scales), lambda m, s: stats.t(4.5, m, s)),
    (StudentT(1), (places, scales), lambda m, s: stats.t(1, m, s)),
    (Exponential(), (scales,), lambda s: stats.expon(scale=s)),
]
every_family = pytest.mark.parametrize(("family", "ranges", "oracle"), CASES, ids=[case[0].name for case in CASES])
LEVELS = np.array([0.001, 0.02, 0.2, 0.5, 0.8, 0.97, 0.999])


def drawn(data, ranges):
    return np.array([data.draw(r) for r in ranges])


def central(function, theta, step=1e-5):
    """Derivatives in each parameter, as the last axis."""
    columns = []
    for k, value in enumerate(theta):
        width = step * max(1.0, abs(value))
        up, down = theta.copy(), theta.copy()
        up[k] += width
        down[k] -= width
        columns.append((function(up) - function(down)) / (2 * width))
    return np.stack(columns, axis=-1)


@every_family
@given(data=st.data())
@settings(max_examples=25)
def test_density_and_distribution_against_scipy(family, ranges, oracle, data):
    theta = drawn(data, ranges)
    frozen = oracle(*theta)
    x = family.quantile(theta, LEVELS)
    assert x == pytest.approx(frozen.ppf(LEVELS), rel=1e-7, abs=1e-9)
    assert family.cdf(theta, x) == pytest.approx(LEVELS, rel=1e-9)
    assert family.logpdf(theta, x) == pytest.approx(frozen.logpdf(x), rel=1e-9, abs=1e-9)
    assert family.pdf(theta, x) == pytest.approx(frozen.pdf(x), rel=1e-9)


@every_family
@given(data=st.data())
@settings(max_examples=25)
def test_derivatives_against_differences(family, ranges, oracle, data):
    theta = drawn(data, ranges)
    x = family.quantile(theta, LEVELS)
    score = family.score(theta, x)
    size = 1.0 + np.abs(score).max()
    assert score == pytest.approx(central(lambda t: family.logpdf(t, x), theta), rel=1e-5, abs=1e-6 * size)
    second = family.log_hessian(theta, x)
    size = 1.0 + np.abs(second).max()
    assert second == pytest.approx(central(lambda t: family.score(t, x), theta), rel=1e-5, abs=1e-6 * size)
    gradient = central(lambda t: family.pdf(t, x)[:, None] * family.score(t, x), theta)
    assert family.hessian(theta, x) == pytest.approx(gradient, rel=1e-4, abs=1e-5 * (1.0 + np.abs(gradient).max()))


@every_family
def test_the_score_has_mean_zero(family, ranges, oracle):
    theta = np.array([1.5, 1.2])[: len(ranges)]
    levels = (np.arange(20000) + 0.5) / 20000
    assert np.abs(family.score(theta, family.quantile(theta, levels)).mean(axis=0)) == pytest.approx(0.0, abs=5e-3)


@every_family
@pytest.mark.parametrize("h", [0.05, 0.3, 2.0])
def test_smoothing_against_quadrature(family, ranges, oracle, h):
    theta = np.array([1.5, 1.2])[: len(ranges)]
    frozen = oracle(*theta)
    grid = np.array([-1.0, 0.0, 0.4, 2.0, 5.0])
    start = max(-60.0, frozen.support()[0])

    def direct(x):
        ends = np.unique(np.clip([start, x - 8 * h, x, x + 8 * h], start, None))
        pieces = pairwise(ends)
        return sum(
            integrate.quad(lambda y: frozen.pdf(y) * stats.norm.pdf(x, y, h), a, b, limit=200)[0] for a, b in pieces
        )

    expected = np.array([direct(x) for x in grid])
    assert family.convolved(theta, grid, h) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert UnivariateFamily.convolved(family, theta, grid, h) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@every_family
def test_smoothing_keeps_the_mass_and_vanishes_with_the_bandwidth(family, ranges, oracle):
    theta = np.array([1.5, 1.2])[: len(ranges)]
    grid = np.linspace(-3.0, 12.0, 4001)
    smooth = family.convolved(theta, grid, 0.4)
    assert np.all(smooth >= 0)
    inside = np.diff(oracle(*theta).cdf([-3.0, 12.0]))[0]
    assert integrate.trapezoid(smooth, grid) == pytest.approx(inside, abs=0.02)
    away = grid[(grid > 0.5) & (grid < 4)]
    assert family.convolved(theta, away, 0.001) == pytest.approx(family.pdf(theta, away), rel=1e-3)


def test_smoothing_a_density_that_is_infinite_at_its_end():
    theta = [0.5, 1.0]
    grid = np.array([-0.3, 0.0, 0.2, 1.0])
    h = 0.2
    levels = (np.arange(400000) + 0.5) / 400000
    draws = Gamma().quantile(theta, levels)
    expected = [stats.norm.pdf(x, draws, h).mean() for x in grid]
    assert Gamma().convolved(theta, grid, h) == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("family", [Gamma(), Weibull(), Lognormal(), Exponential()], ids=lambda f: f.name)
def test_nothing_outside_the_support_and_no_overflow_far_out(family):
    theta = np.array([3.0, 1.0])[: len(family.parameters)]
    x = np.array([-math.inf, -1.0, -1e-300, 1e-300, 1e5, 1e150])
    outside = slice(0, 3)
    assert np.all(family.pdf(theta, x)[outside] == 0)
    assert np.all(family.logpdf(theta, x)[outside] == -math.inf)
    assert np.all(family.score(theta, x)[outside] == 0)
    assert np.all(family.log_hessian(theta, x)[outside] == 0)
    assert np.all(family.cdf(theta, x)[outside] == 0)
    assert np.all(np.isfinite(family.hessian(theta, x)[3:5]))


@every_family
def test_moments_give_the_parameters_back(family, ranges, oracle):
    theta = np.array([1.4, 0.8])[: len(ranges)]
    box = parameter_box(family, [(0.1, 10.0)] * len(ranges))
    mean, variance = oracle(*theta).stats("mv")
    if np.isfinite(variance):
        assert family.moment_start(mean, variance, box) == pytest.approx(theta, rel=0.02)


@every_family
@given(mean=st.floats(allow_nan=True, width=32), variance=st.floats(allow_nan=True, width=32))
@settings(max_examples=40)
def test_a_start_from_noise_is_still_in_the_bounds(family, ranges, oracle, mean, variance):
    box = parameter_box(family, [(0.5, 8.0)] * len(ranges))
    start = family.moment_start(mean, variance, box)
    assert np.all((box[:, 0] <= start) & (start <= box[:, 1]))
    family.logpdf(start, [1.0])


@every_family
def test_public_start_and_public_range(family, ranges, oracle):
    box = parameter_box(family, [(0.5, 8.0)] * len(ranges))
    start = family.start(box)
    assert np.all((box[:, 0] < start) & (start < box[:, 1]))
    assert start[-1] == pytest.approx(2.0)  # a scale: the geometric middle
    ((low, high),) = family.data_bounds(box, tail=0.01)
    for first in [0.5, 1.0, 8.0]:
        for last in [0.5, 3.0, 8.0]:
            theta = np.array([first, last])[-len(ranges) :]
            ends = oracle(*theta).ppf([0.01, 0.99])
            assert low <= ends[0] + 1e-9 * abs(ends[0])
            assert ends[1] * (1 - 1e-9) <= high


def test_names():
    for name in NAMES:
        family = family_named("t3" if name == "t" else name)
        assert isinstance(family, Family)
        assert len(family.parameters) == len(family.limits)
        assert family_named(family) is family
    for bad in ["t", "t-1", "tea", "", "cauchy"]:
        with pytest.raises(ValueError, match="family"):
            family_named(bad)
    for bad in [None, 3, Normal]:
        with pytest.raises(TypeError, match="family"):
            family_named(bad)


def test_a_family_must_say_everything():
    class Half(UnivariateFamily):
        name, parameters, limits, support = "half", ("scale",), ((0.0, math.inf),), (0.0, math.inf)

    with pytest.raises(TypeError, match="abstract"):
        Half()


@pytest.mark.parametrize(
    ("bounds", "wrong"),
    [
        (None, "parameter_bounds"),
        ({}, "mu, sigma"),
        ({"mu": (0, 1)}, "sigma"),
        ({"mu": (0, 1), "sigma": (1, 2), "tau": (1, 2)}, "tau"),
        ({"mu": (0, 1), "sigma": (0.0, 2)}, "sigma"),
        ({"mu": (0, 1), "sigma": (-1.0, 2)}, "sigma"),
        ({"mu": (1, 1), "sigma": (1, 2)}, "mu"),
        ({"mu": (0, math.inf), "sigma": (1, 2)}, "mu"),
        ({"mu": (0, math.nan), "sigma": (1, 2)}, "mu"),
        ({"mu": 3, "sigma": (1, 2)}, "mu"),
        ([(0, 1)], "parameter_bounds"),
        (7, "parameter_bounds"),
    ],
)
def test_bad_parameter_bounds(bounds, wrong):
    with pytest.raises((ValueError, TypeError), match=wrong):
        parameter_box(Normal(), bounds)


def test_bad_parameters():
    with pytest.raises(ValueError, match="sigma"):
        Normal().pdf([0.0, 0.0], [1.0])
    with pytest.raises(ValueError, match="shape"):
        Gamma().pdf([math.nan, 1.0], [1.0])
    with pytest.raises(ValueError, match="theta"):
        Gamma().pdf([1.0], [1.0])
    with pytest.raises(ValueError, match="degrees"):
        StudentT(0)
    for family in (Normal(), Gamma()):
        with pytest.raises(ValueError, match="bandwidth"):
            family.convolved([1.0, 1.0], [1.0], 0.0)
    with pytest.raises(ValueError, match="grid"):
        Gamma().convolved([1.0, 1.0], [[1.0]], 0.5)
    assert Gamma().convolved([1.0, 1.0], [], 0.5).shape == (0,)
    with pytest.raises(ValueError, match="tail"):
        Normal().data_bounds([[0, 1], [1, 2]], tail=0.0)
