"""Densities judged by quadrature, and the best density of a mollifier."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.stats import norm

from fogline_research.metrics import (
    Quadrature,
    best_in_mollifier,
    kl_divergence,
    mode_coverage,
    negative_log_likelihood,
)

RULE = Quadrature.box([(-10, 10)], cells=2000)
X = RULE.nodes[:, 0]
masses = arrays(np.float64, 12, elements=st.floats(0.01, 5.0))


def normal(mean=0.0, scale=1.0):
    return norm.pdf(X, mean, scale)


def test_a_box_is_measured():
    rule = Quadrature.box([(0, 2), (-1, 2)], cells=30)
    assert rule.nodes.shape == (900, 2)
    assert rule.weights.sum() == pytest.approx(6.0)
    assert rule.nodes.min(axis=0) == pytest.approx([1 / 30, -0.95])


def test_loss_and_divergence_of_normals():
    entropy = 0.5 * math.log(2 * math.pi * math.e)
    assert negative_log_likelihood(normal(), normal(), RULE.weights) == pytest.approx(entropy)
    between = kl_divergence(normal(1.0, 0.5), normal(0.0, 2.0), RULE.weights)
    assert between == pytest.approx(math.log(4) + (0.25 + 1.0) / 8 - 0.5)


def test_a_model_without_mass_where_the_truth_has_some_is_infinitely_bad():
    model = np.where(X > 0, 0.1, 0.0)
    assert negative_log_likelihood(normal(), model, RULE.weights) == math.inf
    truth = np.where(X > 0, 0.1, 0.0)
    assert negative_log_likelihood(truth, model, RULE.weights) == pytest.approx(math.log(10))


@given(masses, masses)
def test_divergence_is_not_negative(p, q):
    w = np.full(12, 0.5)
    p, q = p / (w @ p), q / (w @ q)
    assert kl_divergence(p, q, w) >= -1e-12
    assert kl_divergence(p, p, w) == 0


def test_coverage_is_of_the_dense_region():
    assert mode_coverage(normal(), normal(), RULE.weights) == pytest.approx(0.95, abs=1e-4)
    assert mode_coverage(normal(), normal(scale=0.2), RULE.weights) == pytest.approx(2 * norm.cdf(0.392) - 1, abs=1e-3)
    assert mode_coverage(normal(), normal(scale=3.0), RULE.weights) > 0.999
    assert mode_coverage(normal(-5.0, 0.5), normal(5.0, 0.5), RULE.weights) < 1e-6
    two = 0.5 * normal(-5, 0.5) + 0.5 * normal(5, 0.5)
    assert mode_coverage(two, normal(5, 0.5), RULE.weights) == pytest.approx(0.475, abs=1e-3)


def test_coverage_takes_no_notice_of_a_models_scale():
    assert mode_coverage(normal(), 7 * normal(1.0), RULE.weights) == pytest.approx(
        mode_coverage(normal(), normal(1.0), RULE.weights)
    )


# -- the best of a mollifier ------------------------------------------------------------------------------------


@settings(deadline=None)
@given(masses, masses, st.floats(0.05, 4.0), st.booleans())
def test_the_best_is_a_density_between_its_banks(p, q0, epsilon, fixed):
    w = np.full(12, 0.25)
    p, q0 = p / (w @ p), q0 / (w @ q0)
    best = best_in_mollifier(p, q0, w, epsilon=epsilon, width=None if fixed else epsilon / 2)
    ratio = np.log(best / q0)
    assert w @ best == pytest.approx(1.0)
    if fixed:
        assert np.abs(ratio).max() <= epsilon / 2 + 1e-9
    else:
        assert np.ptp(ratio) <= epsilon / 2 + 1e-6
    assert kl_divergence(p, best, w) <= kl_divergence(p, q0, w) + 1e-9
    gain = kl_divergence(p, q0, w) - kl_divergence(p, best, w)
    assert gain <= epsilon / 2 + 1e-9


@pytest.mark.parametrize("width", [None, 0.5])
def test_a_general_solver_finds_nothing_better(width):
    rng = np.random.default_rng(0)
    w = np.full(8, 0.125)
    p, q0 = rng.gamma(0.5, size=8), rng.gamma(2.0, size=8)
    p, q0 = p / (w @ p), q0 / (w @ q0)
    best = best_in_mollifier(p, q0, w, epsilon=1.0, width=width)

    def constraints():
        yield {"type": "eq", "fun": lambda v: w @ v[:8] - 1}
        low = (lambda v: math.exp(-0.5)) if width is None else (lambda v: v[8])
        high = (lambda v: math.exp(0.5)) if width is None else (lambda v: v[8] * math.exp(width))
        yield {"type": "ineq", "fun": lambda v: v[:8] - low(v) * q0}
        yield {"type": "ineq", "fun": lambda v: high(v) * q0 - v[:8]}

    start = np.r_[q0, 0.8]
    found = minimize(
        lambda v: -w @ (p * np.log(np.maximum(v[:8], 1e-9))),
        start,
        constraints=list(constraints()),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert negative_log_likelihood(p, best, w) == pytest.approx(found.fun, abs=1e-5)


def test_a_truth_within_the_mollifier_is_reached():
    best = best_in_mollifier(normal(0.0, 1.0), 0.9 * normal(0.0, 1.0) + 0.1 * normal(0.5), RULE.weights, epsilon=3.0)
    np.testing.assert_allclose(best, normal(), atol=1e-12)


def test_where_the_truth_vanishes_the_rest_is_spread():
    w = np.full(10, 0.1)
    p = np.r_[10.0, np.zeros(9)]
    best = best_in_mollifier(p, np.ones(10), w, epsilon=1.0)
    assert best[0] == pytest.approx(math.exp(0.5))
    assert w @ best == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Quadrature.box([(1, 0)], cells=3), "bounds"),
        (lambda: Quadrature.box([(0, 1)], cells=0), "cells"),
        (lambda: negative_log_likelihood([1.0], [1.0, 2.0], [1.0]), "q must have one value"),
        (lambda: kl_divergence([-1.0], [1.0], [1.0]), "p must hold densities"),
        (lambda: mode_coverage([1.0], [math.nan], [1.0]), "q must hold densities"),
        (lambda: mode_coverage([1.0], [0.0], [1.0]), "some mass"),
        (lambda: mode_coverage([1.0], [1.0], [1.0], mass=1.0), "mass"),
        (lambda: best_in_mollifier([1.0], [1.0], [1.0], epsilon=0.0), "epsilon"),
        (lambda: best_in_mollifier([1.0], [1.0], [1.0], epsilon=1.0, width=-1.0), "width"),
    ],
)
def test_bad_input_names_the_parameter(call, message):
    with pytest.raises(ValueError, match=message):
        call()
