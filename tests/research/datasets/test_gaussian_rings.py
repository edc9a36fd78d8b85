"""The problems of the integral-privacy paper."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fogline_research.datasets.gaussian_rings import (
    RING,
    THREE_GAUSSIANS,
    gaussian_ring,
    random_gaussians,
    random_mixture,
    ring_mixture,
    three_gaussians,
)
from fogline_research.metrics import Quadrature


def test_the_ring_is_regular():
    centers = RING.centers
    np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 4.0)
    gaps = np.linalg.norm(centers - np.roll(centers, 1, axis=0), axis=1)
    np.testing.assert_allclose(gaps, 8.0 * math.sin(math.pi / 8))
    np.testing.assert_array_equal(RING.scales, 0.5)


@pytest.mark.parametrize(
    ("mixture", "bounds"),
    [(RING, [(-8, 8)] * 2), (THREE_GAUSSIANS, [(-2, 3)]), (random_mixture(7, 2, random_state=1), [(-8, 8)] * 2)],
)
def test_densities_integrate_to_one(mixture, bounds):
    rule = Quadrature.box(bounds, cells=80 if len(bounds) == 2 else 500)
    assert rule.weights @ mixture.pdf(rule.nodes) == pytest.approx(1.0, abs=1e-6)


def test_samples_have_the_moments_of_their_density():
    ring = gaussian_ring(20_000, random_state=0)
    np.testing.assert_allclose(ring.X.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose((ring.X**2).sum(axis=1).mean(), 16.5, rtol=0.01)
    assert sorted(set(ring.labels.tolist())) == list(range(8))
    line = three_gaussians(20_000, random_state=0)
    narrow = line.X[line.labels == 0]
    assert narrow.var() == pytest.approx(0.01, rel=0.1)
    assert line.X[line.labels == 2].var() == pytest.approx(0.1, rel=0.1)


def test_random_places_repeat_with_the_seed():
    first, second = (random_gaussians(10, 4, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.centers, second.centers)
    assert not np.array_equal(first.centers, random_gaussians(10, 4, random_state=4).centers)
    plane = random_mixture(100, 2, random_state=0)
    assert np.abs(plane.centers).max() <= 4.0
    assert np.abs(plane.centers).max() > 3.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_mixture(0), "components"),
        (lambda: random_mixture(3, 3), "d must be"),
        (lambda: ring_mixture(radius=-1.0), "radius"),
        (lambda: ring_mixture(deviation=0.0), "deviation"),
        (lambda: gaussian_ring(-1), "n must be"),
    ],
)
def test_bad_input_names_the_parameter(call, message):
    with pytest.raises(ValueError, match=message):
        call()
