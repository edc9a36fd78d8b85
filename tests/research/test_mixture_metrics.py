"""Errors of mixtures: matching, bounds that are bounds, likelihood."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from fogline_research.metrics import gaussian_norms, gaussian_tv, log_likelihood_gap, mixture_errors, mixture_log_pdf


@settings(max_examples=40, deadline=None)
@given(st.floats(-1, 1), st.floats(0.4, 2.5))
def test_norms_bound_the_total_variation(shift, variance):
    m, f = gaussian_norms([0.0], [[1.0]], [shift], [[variance]])
    x = np.linspace(-12, 12, 20001)
    exact = 0.5 * np.abs(norm.pdf(x) - norm.pdf(x, shift, variance**0.5)).sum() * (x[1] - x[0])
    assert exact <= 0.5 * np.hypot(m, f) + 1e-6
    assert gaussian_tv([0.0], [[1.0]], [shift], [[variance]]) == pytest.approx(exact, abs=0.03)


def test_components_are_matched_whatever_their_order():
    rng = np.random.default_rng(0)
    means = 20 * rng.normal(size=(4, 3))
    covariances = np.array([np.diag(rng.uniform(0.5, 2, 3)) for _ in range(4)])
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    order = [2, 0, 3, 1]
    found = mixture_errors(weights, means, covariances, weights[order], means[order], covariances[order])
    assert [order[j] for j in found.matching] == [0, 1, 2, 3]
    np.testing.assert_allclose(found.tv, 0.0, atol=1e-12)
    assert found.weights == pytest.approx(0.0, abs=1e-12)


def test_what_is_missing_or_spare_counts():
    eye = np.eye(2)
    few = mixture_errors([0.5, 0.5], [[0, 0], [9, 9]], [eye, eye], [1.0], [[0, 0]], [eye])
    assert few.missing == 1
    assert few.tv.max() == 1.0
    assert few.weights == pytest.approx(1.0)
    many = mixture_errors([1.0], [[0, 0]], [eye], [0.5, 0.5], [[0, 0], [9, 9]], [eye, eye])
    assert many.missing == 0
    assert many.weights == pytest.approx(1.0)


def test_likelihood_is_that_of_scipy():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 2))
    covariance = np.array([[2.0, 0.3], [0.3, 0.5]])
    ours = mixture_log_pdf(X, [0.25, 0.75], [[0, 0], [1, 1]], [np.eye(2), covariance])
    first = multivariate_normal([0, 0], np.eye(2)).pdf(X)
    theirs = np.log(0.25 * first + 0.75 * multivariate_normal([1, 1], covariance).pdf(X))
    np.testing.assert_allclose(ours, theirs)
    truth, off = ([1.0], [[0, 0]], [np.eye(2)]), ([1.0], [[1, 0]], [np.eye(2)])
    assert log_likelihood_gap(rng.normal(size=(20_000, 2)), truth, off) == pytest.approx(0.5, abs=0.05)
