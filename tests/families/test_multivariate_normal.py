"""The multivariate normal against scipy and against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fogline.families import MultivariateNormal, Normal, parameter_box

X = np.random.default_rng(3).normal(size=(7, 3)) * 2


@st.composite
def cases(draw):
    d = draw(st.integers(1, 3))
    pairs = d * (d - 1) // 2
    mean = [draw(st.floats(-2, 2)) for _ in range(d)]
    sigma = [draw(st.floats(0.4, 3)) for _ in range(d)]
    corr = [draw(st.floats(-0.45, 0.45)) for _ in range(pairs)]
    return MultivariateNormal(d), np.array([*mean, *sigma, *corr])


def central(function, theta, step=1e-5):
    columns = []
    for k in range(len(theta)):
        shift = np.zeros(len(theta))
        shift[k] = step
        columns.append((function(theta + shift) - function(theta - shift)) / (2 * step))
    return np.stack(columns, axis=-1)


@given(cases())
@settings(max_examples=40)
def test_density_against_scipy(case):
    family, theta = case
    d = family.dimension
    x = X[:, :d]
    covariance = family.covariance(theta)
    assert np.sqrt(np.diag(covariance)) == pytest.approx(theta[d : 2 * d])
    expected = stats.multivariate_normal(theta[:d], covariance)
    assert family.logpdf(theta, x) == pytest.approx(expected.logpdf(x).reshape(-1), rel=1e-9, abs=1e-9)
    h = np.array([0.2, 0.7, 1.1])[:d]
    wider = stats.multivariate_normal(theta[:d], covariance + np.diag(h**2))
    assert family.convolved(theta, x, h) == pytest.approx(wider.pdf(x).reshape(-1), rel=1e-9)
    assert family.moment_start(theta[:d], covariance, parameter_box_of(family)) == pytest.approx(theta, rel=1e-9)


def parameter_box_of(family):
    d = family.dimension
    pairs = d * (d - 1) // 2
    return parameter_box(family, [(-3, 3)] * d + [(0.1, 5)] * d + [(-0.9, 0.9)] * pairs)


@given(cases())
@settings(max_examples=40)
def test_derivatives_against_differences(case):
    family, theta = case
    x = X[:, : family.dimension]
    score = family.score(theta, x)
    assert score == pytest.approx(
        central(lambda t: family.logpdf(t, x), theta), rel=1e-5, abs=1e-6 * (1 + np.abs(score).max())
    )
    second = family.log_hessian(theta, x)
    assert second == pytest.approx(
        central(lambda t: family.score(t, x), theta), rel=1e-5, abs=1e-6 * (1 + np.abs(second).max())
    )
    assert np.allclose(second, np.swapaxes(second, 1, 2))


def test_one_dimension_is_the_normal():
    one, normal, theta = MultivariateNormal(1), Normal(), [0.5, 1.5]
    x = X[:, 0]
    assert one.pdf(theta, x[:, None]) == pytest.approx(normal.pdf(theta, x))
    assert one.hessian(theta, x[:, None]) == pytest.approx(normal.hessian(theta, x))
    box = parameter_box(normal, {"mu": (0, 1), "sigma": (1, 2)})
    assert one.data_bounds(box) == pytest.approx(normal.data_bounds(box))


def test_starts():
    family = MultivariateNormal(2)
    box = parameter_box(family, [(-1, 3), (0, 4), (0.5, 2), (1, 4), (-0.5, 0.9)])
    assert family.start(box) == pytest.approx([1, 2, 1, 2, 0.2])
    noisy = family.moment_start([np.nan, 9.0], [[-1.0, 0.0], [0.0, 1.0]], box)
    assert np.all((box[:, 0] <= noisy) & (noisy <= box[:, 1]))


def test_bad_input():
    for bad in (0, 4, 1.5):
        with pytest.raises((ValueError, TypeError), match="dimension"):
            MultivariateNormal(bad)
    three = MultivariateNormal(3)
    with pytest.raises(ValueError, match="corr"):
        three.logpdf([0, 0, 0, 1, 1, 1, 0.9, 0.9, -0.9], X)
    with pytest.raises(ValueError, match="x must have shape"):
        three.logpdf([0, 0, 0, 1, 1, 1, 0, 0, 0], X[:, :2])
    with pytest.raises(ValueError, match="bandwidth"):
        three.convolved([0, 0, 0, 1, 1, 1, 0, 0, 0], X, [1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="corr_12"):
        parameter_box(MultivariateNormal(2), [(0, 1), (0, 1), (1, 2), (1, 2), (-1.5, 1)])
