"""Densities judged on neutral cells: values computed by hand, and by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline_research.metrics.cell_masses import (
    COARSE_CELLS,
    NEUTRAL_CELLS,
    CellYardstick,
    _box_masses,
    _boxes,
    _corners,
    _directions,
    block_sums,
    interval_coverage,
    quantiles_of_cells,
    rank_errors,
)


def point(d, *place):
    masses = np.zeros((NEUTRAL_CELLS[d],) * d)
    masses[place] = 1.0
    return masses


def even(d):
    return np.full((NEUTRAL_CELLS[d],) * d, float(NEUTRAL_CELLS[d]) ** -d)


@pytest.mark.quick
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_density_has_no_distance_from_itself(d):
    assert max(CellYardstick(even(d)).errors(even(d)).values()) < 1e-6


def test_a_point_that_moves_in_one_column():
    errors = CellYardstick(point(1, 0)).errors(point(1, 1024))
    assert errors["hellinger"] == 1.0  # in other coarse cells
    assert errors["w1"] == pytest.approx(25.0)  # a quarter of the box
    assert errors["prefix"] == pytest.approx(50.0)  # a quarter of the prefixes are wrong by 1: sqrt(1/4)
    assert errors["squared"] == pytest.approx(2 * 64)  # (1/h)^2 h twice, with h = 1/64
    within = CellYardstick(point(1, 0)).errors(point(1, 63))
    assert within["hellinger"] == within["squared"] == 0.0  # in the same coarse cell
    assert within["w1"] == pytest.approx(100 * 63 / 4096)


def test_boxes_count_those_that_hold_one_point_and_not_the_other():
    first, last = _boxes(1)[:, 0, 0], _boxes(1)[:, 0, 1]
    holds = [(first <= place) & (place < last) for place in (100, 3000)]
    errors = CellYardstick(point(1, 100)).errors(point(1, 3000))
    assert errors["boxes"] == pytest.approx(100 * np.mean(holds[0] != holds[1]))
    assert 20 < errors["boxes"] < 80


@pytest.mark.parametrize("d", [2, 3])
def test_a_point_that_moves_along_an_axis(d):
    start, end = (0,) * d, (NEUTRAL_CELLS[d] // 2,) + (0,) * (d - 1)
    errors = CellYardstick(point(d, *start)).errors(point(d, *end))
    # every projection moves the point by half a side times the direction's part along the axis
    assert errors["w1"] == pytest.approx(100 * 0.5 * np.abs(_directions(d)[:, 0]).mean())
    assert errors["w1"] == pytest.approx(
        100 * 0.5 * {2: 2 / math.pi, 3: 0.5}[d], rel=0.02
    )  # the mean over all directions
    assert errors["hellinger"] == 1.0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_masses_of_boxes_are_sums_of_cells(d):
    masses = np.random.default_rng(d).dirichlet(np.ones(NEUTRAL_CELLS[d] ** d)).reshape((NEUTRAL_CELLS[d],) * d)
    boxes = _boxes(d)
    assert boxes.shape == (2000, d, 2)
    assert (boxes[..., 0] < boxes[..., 1]).all()
    assert boxes.max() <= NEUTRAL_CELLS[d]
    sums = [masses[tuple(slice(*ends) for ends in box)].sum() for box in boxes[:50]]
    np.testing.assert_allclose(_box_masses(_corners(masses), boxes[:50]), sums, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_hellinger_is_on_the_coarse_cells(d):
    rng = np.random.default_rng(d)
    p, q = (rng.dirichlet(np.ones(NEUTRAL_CELLS[d] ** d)).reshape((NEUTRAL_CELLS[d],) * d) for _ in range(2))
    a, b = (block_sums(masses, COARSE_CELLS[d]) for masses in (p, q))
    half_squares = 0.5 * ((np.sqrt(a) - np.sqrt(b)) ** 2).sum()
    assert CellYardstick(p).errors(q)["hellinger"] == pytest.approx(math.sqrt(half_squares))


@pytest.mark.parametrize(
    "masses", [np.full(4096, 1 / 4000), np.full(100, 0.01), np.r_[2.0, -1.0, np.zeros(4094)], np.full(4096, math.nan)]
)
def test_what_is_no_distribution_is_refused(masses):
    with pytest.raises(ValueError, match="masses must"):
        CellYardstick(even(1)).errors(masses)


def test_two_shapes_are_refused():
    with pytest.raises(ValueError, match="shape"):
        CellYardstick(even(1)).errors(even(2))
    with pytest.raises(ValueError, match="divide"):
        block_sums(np.ones(6), 4)


@given(st.lists(st.floats(0.01, 5.0), min_size=2, max_size=30), st.floats(0.01, 0.99))
def test_quantiles_of_cells_invert_the_cdf(values, level):
    masses = np.array(values) / sum(values)
    answer = quantiles_of_cells(masses, (0.0, float(len(masses))), [level])[0]
    cdf = np.interp(answer, np.arange(len(masses) + 1), np.r_[0.0, np.cumsum(masses)])
    assert cdf == pytest.approx(level, abs=1e-9)


def test_quantiles_skip_empty_cells():
    np.testing.assert_allclose(quantiles_of_cells([0.0, 0.5, 0.0, 0.5], (0, 4), [0.25, 0.5, 0.75]), [1.5, 2.0, 3.5])


def test_ranks_by_hand():
    records = np.array([1.0, 1.0, 1.0, 1.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0])
    # 1 holds the ranks 0 to 0.4; 5.5 lies between 0.5 and 0.5; 11 is beyond everything
    np.testing.assert_allclose(rank_errors(records, [1.0, 1.0, 5.5, 11.0], [0.2, 0.7, 0.5, 0.5]), [0, 0.3, 0, 0.5])
    np.testing.assert_allclose(rank_errors(records, [1.2], [0.2]), [0.2])
    np.testing.assert_allclose(rank_errors(records, [1.2], [0.2], tolerance=0.25), [0.0])  # near enough to the heap


def test_coverage_counts_both_ends():
    assert interval_coverage([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1.1, -0.1]) == 0.5
