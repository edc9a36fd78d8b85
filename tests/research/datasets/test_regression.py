"""The regression data have the modes they claim."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.signal import argrelmax
from scipy.stats import norm

from fogline_research.datasets.regression import sinusoidal_mixture, three_components

MAKERS = [three_components, sinusoidal_mixture]


def test_three_components_are_where_the_paper_puts_them():
    sample = three_components(3000, random_state=0)
    for k, (low, high, level) in enumerate([(0.0, 0.5, 3.0), (0.4, 0.7, 2.0), (0.6, 1.0, 1.0)]):
        x, y = sample.X[sample.labels == k, 0], sample.y[sample.labels == k]
        assert len(x) == 1000
        assert x.min() >= low
        assert x.max() <= high
        assert np.ptp(x) > 0.98 * (high - low)
        assert y.mean() == pytest.approx(level, abs=0.03)
        assert y.std() == pytest.approx(0.2, rel=0.1)


def test_waves_are_where_the_supplement_puts_them():
    sample = sinusoidal_mixture(3001, random_state=0)
    rest = sample.y - 0.5 * np.sin(3 * np.pi * sample.X[:, 0])
    assert (sample.labels == 0).sum() == 1500
    for label, shift in enumerate((1.5, 0.0)):
        part = rest[sample.labels == label]
        assert part.mean() == pytest.approx(shift, abs=0.02)
        assert part.std() == pytest.approx(0.15, rel=0.1)
    assert 0.48 < sample.X.mean() < 0.52


def conditional_density(name, x, y):
    if name == "sinusoidal_mixture":
        return sum(norm.pdf(y, shift + 0.5 * np.sin(3 * np.pi * x), 0.15) for shift in (0.0, 1.5))
    parts = [(0.0, 0.5, 3.0), (0.4, 0.7, 2.0), (0.6, 1.0, 1.0)]
    return sum(norm.pdf(y, level, 0.2) / (high - low) for low, high, level in parts if low <= x <= high)


@pytest.mark.parametrize("maker", MAKERS)
def test_modes_are_maxima_of_the_conditional_density(maker):
    sample = maker(1, random_state=0)
    y = np.linspace(-1, 4, 100_001)
    for x in (0.0, 0.13, 0.45, 0.55, 0.65, 1.0):
        highest = y[argrelmax(conditional_density(maker.__name__, x, y))[0]]
        np.testing.assert_allclose(sample.conditional_modes([x])[0], highest, atol=1e-4)


@pytest.mark.parametrize("maker", MAKERS)
def test_nothing_outside_and_bounds_that_hold_the_data(maker):
    sample = maker(5000, random_state=1)
    assert [len(modes) for modes in sample.conditional_modes([-0.1, 1.1])] == [0, 0]
    assert sample.x_bounds == (0.0, 1.0)
    assert sample.y_bounds[0] < sample.y.min()
    assert sample.y.max() < sample.y_bounds[1]


@pytest.mark.parametrize("maker", MAKERS)
def test_seeds_repeat_and_sizes_are_checked(maker):
    one, two = maker(50, random_state=3), maker(50, random_state=3)
    np.testing.assert_array_equal(one.y, two.y)
    assert not np.array_equal(one.y, maker(50, random_state=4).y)
    assert maker(0).X.shape == (0, 1)
    with pytest.raises(ValueError, match="n "):
        maker(-1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.y = None
