"""Marching squares."""

from __future__ import annotations

import numpy as np
import pytest

from fogline.report._svg import contour_loops

pytestmark = pytest.mark.quick


def area(loops):
    """Area by the even-odd rule for loops that nest at most once: the sum of signed areas up to orientation."""
    total = 0.0
    for loop in loops:
        x, y = loop.T
        total += 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    return total


def test_a_disc_has_one_loop_of_the_right_area():
    i, j = np.mgrid[:81, :81]
    [loop] = contour_loops(30.0 - np.hypot(i - 40, j - 40), 10.0)
    assert area([loop]) == pytest.approx(np.pi * 400, rel=0.01)
    np.testing.assert_allclose(np.hypot(*(loop - 40).T), 20, atol=0.05)


def test_a_ring_has_two_loops():
    i, j = np.mgrid[:81, :81]
    loops = contour_loops(-abs(np.hypot(i - 40, j - 40) - 20), -5.0)
    assert sorted(round(area([loop]), -2) for loop in loops) == [700.0, 2000.0]


def test_a_region_that_fills_the_grid_is_closed_along_its_edge():
    [loop] = contour_loops(np.ones((5, 9)), 0.5)
    assert loop.min() == 0
    assert loop.max(axis=0).tolist() == [4, 8]
    assert area([loop]) == pytest.approx(32, rel=0.05)


def test_a_saddle_splits_or_joins_by_its_middle():
    assert len(contour_loops(np.array([[1.0, 0.0], [0.0, 1.0]]), 0.6)) == 2
    assert len(contour_loops(np.array([[1.0, 0.0], [0.0, 1.0]]), 0.4)) == 1


def test_noise_gives_closed_loops_at_every_level():
    field = np.random.default_rng(0).normal(size=(30, 20))
    for level in np.linspace(-3, 3, 13):
        for loop in contour_loops(field, level):
            assert len(loop) >= 3
            assert np.all((loop >= 0) & (loop <= [29, 19]))
