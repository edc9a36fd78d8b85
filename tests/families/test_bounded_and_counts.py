"""Beta, Lomax, zero-inflated and count families against scipy and against finite differences."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fogline.families import (
    Beta,
    Gamma,
    Lognormal,
    Lomax,
    NegativeBinomial,
    Normal,
    Poisson,
    ZeroInflated,
    family_named,
    parameter_box,
)
from fogline.families.named import family_id

pytestmark = pytest.mark.quick

scales = st.floats(0.3, 5.0)
shapes = st.floats(0.4, 6.0)
LEVELS = np.array([0.001, 0.02, 0.2, 0.5, 0.8, 0.97, 0.999])

CONTINUOUS = [
    (Beta(), (shapes, shapes), lambda a, b: stats.beta(a, b)),
    (Beta(-2, 6), (shapes, shapes), lambda a, b: stats.beta(a, b, loc=-2, scale=8)),
    (Lomax(), (shapes, scales), lambda k, s: stats.lomax(k, scale=s)),
]
COUNTS = [
    (Poisson(), (scales,), lambda m: stats.poisson(m)),
    (NegativeBinomial(), (scales, shapes), lambda m, k: stats.nbinom(k, k / (k + m))),
]


def drawn(data, ranges):
    return np.array([data.draw(r) for r in ranges])


def differences(function, theta, step=1e-5):
    columns = []
    for k, value in enumerate(theta):
        up, down = theta.copy(), theta.copy()
        up[k], down[k] = value + step, value - step
        columns.append((function(up) - function(down)) / (2 * step))
    return np.stack(columns, axis=-1)


def check_derivatives(family, theta, x):
    score, second = family.score(theta, x), family.log_hessian(theta, x)
    size = 1.0 + np.abs(score).max() + np.abs(second).max()
    assert score == pytest.approx(differences(lambda t: family.logpdf(t, x), theta), rel=1e-5, abs=1e-5 * size)
    assert second == pytest.approx(differences(lambda t: family.score(t, x), theta), rel=1e-5, abs=1e-5 * size)


@pytest.mark.parametrize(("family", "ranges", "oracle"), CONTINUOUS, ids=lambda part: getattr(part, "name", ""))
@given(data=st.data())
@settings(max_examples=20)
def test_continuous_families(family, ranges, oracle, data):
    theta = drawn(data, ranges)
    frozen = oracle(*theta)
    x = family.quantile(theta, LEVELS)
    assert x == pytest.approx(frozen.ppf(LEVELS), rel=1e-6, abs=1e-9)
    assert family.cdf(theta, x) == pytest.approx(LEVELS, rel=1e-8)
    inner = x[1:-1]  # at the ends of a beta law logarithms of the distance to the wall lose digits
    assert family.logpdf(theta, inner) == pytest.approx(frozen.logpdf(inner), rel=1e-6, abs=1e-6)
    check_derivatives(family, theta, inner)


@pytest.mark.parametrize(("family", "ranges", "oracle"), COUNTS, ids=lambda part: getattr(part, "name", ""))
@given(data=st.data())
@settings(max_examples=20)
def test_counts(family, ranges, oracle, data):
    theta = drawn(data, ranges)
    frozen = oracle(*theta)
    k = np.arange(0.0, 30.0)
    assert family.pdf(theta, k) == pytest.approx(frozen.pmf(k), rel=1e-8, abs=1e-14)
    assert family.cdf(theta, k) == pytest.approx(frozen.cdf(k), rel=1e-9)
    assert family.cdf(theta, k + 0.5) == pytest.approx(frozen.cdf(k), rel=1e-9)
    assert family.quantile(theta, LEVELS) == pytest.approx(frozen.ppf(LEVELS))
    check_derivatives(family, theta, k)
    outside = np.array([-1.0, 0.5, -math.inf])
    assert np.all(family.pdf(theta, outside) == 0)
    assert np.all(family.score(theta, outside) == 0)
    assert family.cdf(theta, np.array([-0.1])) == 0


@pytest.mark.parametrize("base", [Gamma(), Lognormal()], ids=lambda f: f.name)
def test_zero_inflated(base):
    family = ZeroInflated(base)
    theta = np.array([0.3, 1.5, 1.2])
    x = np.array([0.5, 1.0, 4.0])
    assert family.pdf(theta, x) == pytest.approx(0.7 * base.pdf(theta[1:], x))
    assert family.pdf(theta, [0.0, -1.0]) == pytest.approx([0.3, 0.0])
    assert family.cdf(theta, [-1e-9, 0.0]) == pytest.approx([0.0, 0.3])
    assert family.cdf(theta, family.quantile(theta, [0.4, 0.9])) == pytest.approx([0.4, 0.9])
    assert family.quantile(theta, [0.1, 0.3]) == pytest.approx([0.0, 0.0])
    check_derivatives(family, theta, np.array([0.0, 0.5, 1.0, 4.0]))
    assert np.all(family.score(theta, np.array([-1.0])) == 0)
    with pytest.raises(ValueError, match="family"):
        ZeroInflated(Normal())


@pytest.mark.parametrize(("family", "theta", "law"), [
    (Beta(0, 10), [2.0, 3.0], stats.beta(2, 3, scale=10)),
    (Lomax(), [3.5, 2.0], stats.lomax(3.5, scale=2)),
    (Poisson(), [4.2], stats.poisson(4.2)),
    (NegativeBinomial(), [4.0, 1.5], stats.nbinom(1.5, 1.5 / 5.5)),
])  # fmt: skip
def test_moments_give_the_parameters_back(family, theta, law):
    box = parameter_box(family, [(0.1, 50.0)] * len(theta))
    assert family.moment_start(*law.stats("mv"), box) == pytest.approx(theta, rel=1e-6)
    # no law of the family has these moments: the public start, within its bounds
    start = family.moment_start(-1.0, -1.0, box)
    assert np.all((start >= box[:, 0]) & (start <= box[:, 1]))


def test_names_and_ids():
    ids = [family_id(family_named(name)) for name in ("beta", "lomax", "poisson", "negative binomial")]
    assert ids == ["beta beta", "lomax lomax", "poisson poisson", "negative-binomial negative binomial"]
    assert family_id(family_named("zero-inflated gamma")) == "zero-inflated zero-inflated gamma"
    with pytest.raises(ValueError, match="low and high"):
        Beta(3, 2)
