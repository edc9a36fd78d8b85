"""Baselines of densities: exact without noise, consistent, and as private as their shares say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from fogline_research.baselines.grids import GridTuning, adaptive_grid, uniform_grid
from fogline_research.baselines.hierarchies import best_branching, consistent_leaves, hierarchical_histogram
from fogline_research.baselines.histograms import (
    block_counts,
    block_spread,
    flat_histogram,
    geometric_noise,
    monotone_cdf,
    positive_part,
    simplex_projection,
    smooth_histogram,
)
from fogline_research.baselines.leaves import LEAVES, Leaves
from fogline_research.baselines.partitions import (
    COST_SENSITIVITY,
    PartitionTuning,
    draw_pruning,
    partition_histogram,
    z_order,
)
from fogline_research.baselines.quantiles import _median_scores, cells_of_quantiles, recursive_quantiles

HUGE = 1e9
numbers = st.lists(st.floats(-50, 50), min_size=1, max_size=20).map(np.array)


class Meter:
    """A generator without noise, which writes down what each draw of Laplace noise costs a record."""

    def __init__(self):
        self.costs = []

    def laplace(self, loc, scale, size=None):
        self.costs.append(1.0 / scale)
        return np.zeros(size) if size is not None else 0.0

    def random(self, size=None):
        return np.random.default_rng(0).random(size)


def counts_of(shape, seed=0):
    return np.random.default_rng(seed).poisson(3.0, shape)


# -- leaves ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-2, 12) | st.just(math.nan) | st.just(math.inf), max_size=20))
def test_a_record_is_in_one_leaf_or_in_none(values):
    records = np.array(values, dtype=float)[:, None]
    inside = np.isfinite(records[:, 0]) & (records[:, 0] >= 0) & (records[:, 0] <= 10)
    for steps in (None, (1.0,), (0.001,)):
        assert Leaves(((0.0, 10.0),), steps).counts(records).sum() == inside.sum()


@pytest.mark.parametrize(
    ("bounds", "steps", "shape"),
    [
        (((0.0, 1.0),), None, (4096,)),
        (((0.0, 100.0),), (1.0,), (101,)),
        (((0.0, 200.0),), (0.01,), (4001,)),  # 20 001 values, five to a leaf
        (((0.0, 1.0), (0.0, 50.0)), (None, 1.0), (256, 51)),
        (((0.0, 1.0),) * 3, None, (64, 64, 64)),
    ],
)
def test_leaves_are_cells_or_values_of_the_lattice(bounds, steps, shape):
    leaves = Leaves(bounds, steps)
    assert leaves.shape == shape
    masses = np.random.default_rng(0).dirichlet(np.ones(math.prod(shape))).reshape(shape)
    cells = leaves.cell_masses(masses, 16)
    assert cells.shape == (16,) * len(bounds)
    assert cells.sum() == pytest.approx(1.0)


def test_mass_of_a_value_lies_in_the_cell_of_the_value():
    leaves = Leaves(((0.0, 4.0), (0.0, 1.0)), (1.0, None))
    counts = leaves.counts(np.array([[3.0, 0.1], [4.0, 0.6], [1.0, 0.9]]))
    np.testing.assert_allclose(
        leaves.cell_masses(counts / 3, 4), np.array([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 1, 0]]) / 3
    )


# -- readings -------------------------------------------------------------------------------------------------------


@given(numbers)
def test_readings_are_distributions(values):
    for masses in (positive_part(values), monotone_cdf(values), simplex_projection(values, 10.0)):
        assert masses.min() >= 0.0
        assert masses.sum() == pytest.approx(1.0)
        assert masses.shape == values.shape


@given(numbers, st.floats(0.1, 100))
def test_the_projection_is_the_nearest_point_of_the_simplex(values, total):
    nearest = total * simplex_projection(values, total)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = total * rng.dirichlet(np.ones(len(values)))
        # the angle at the nearest point of a convex set is not acute
        assert (values - nearest) @ (other - nearest) <= 1e-6 * (1 + total**2)


def test_readings_of_nothing_are_even():
    np.testing.assert_allclose(positive_part(np.array([-1.0, -2.0])), [0.5, 0.5])
    np.testing.assert_allclose(simplex_projection(np.array([5.0, -2.0]), -3.0), [0.5, 0.5])


@given(st.integers(1, 40), st.integers(1, 40))
def test_blocks_spread_back(size, side):
    counts = counts_of((size,))
    blocks = block_counts(counts, side)
    assert len(blocks) <= side
    spread = block_spread(blocks.astype(float), counts.shape, side)
    np.testing.assert_array_equal(block_counts(spread, side).round(9), blocks)


# -- without noise every baseline is the histogram ------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(64,), (37,), (16, 16), (5, 16), (8, 8, 8)])
@pytest.mark.parametrize(
    "release",
    [
        lambda counts, rng: flat_histogram(counts, HUGE, rng, side=64),
        lambda counts, rng: flat_histogram(counts, 50.0, rng, side=64, noise="geometric"),
        lambda counts, rng: hierarchical_histogram(counts, HUGE, rng, side=64, branching=2),
        lambda counts, rng: hierarchical_histogram(counts, HUGE, rng, side=64, branching=4),
        lambda counts, rng: hierarchical_histogram(counts, HUGE, rng, side=64, branching=3, nonnegative=True),
        lambda counts, rng: partition_histogram(counts, HUGE, rng, side=64),
        lambda counts, rng: partition_histogram(counts, HUGE, rng, side=64, tree=True),
        lambda counts, rng: uniform_grid(counts, HUGE, rng),
        lambda counts, rng: adaptive_grid(counts, HUGE, rng),
    ],
    ids=["laplace", "geometric", "binary", "four", "down", "dawa", "dawa+tree", "uniform", "adaptive"],
)
def test_much_epsilon_gives_the_counts(release, shape):
    counts = counts_of(shape)
    np.testing.assert_allclose(release(counts, np.random.default_rng(1)), counts, atol=1e-4)


def test_quantiles_with_much_epsilon_are_those_of_the_records():
    records = np.random.default_rng(0).gamma(2.0, 1.0, 5001)
    answers = recursive_quantiles(records, 0.0, 30.0, 1e4, np.random.default_rng(1), levels=4, width=0.0)
    ranks = np.searchsorted(np.sort(records), answers) / len(records)
    np.testing.assert_allclose(ranks, np.arange(1, 16) / 16, atol=0.002)
    cells = cells_of_quantiles(answers, 0.0, 30.0, 4096)
    assert cells.sum() == pytest.approx(1.0)
    assert cells[: 4096 * 2 // 30].sum() == pytest.approx(np.mean(records < 2.0), abs=0.02)


def test_the_smoother_has_no_noise():
    np.testing.assert_allclose(smooth_histogram(np.array([1, 3, 2, 2]), side=2), np.full(4, 0.25))


def test_geometric_noise_has_its_law():
    noise = geometric_noise(0.7, 20_000, np.random.default_rng(3))
    inside = np.arange(-6, 7)
    expected = np.exp(-0.7 * np.abs(inside)) * math.tanh(0.35)
    seen = np.array([np.sum(noise == k) for k in inside])
    rest = len(noise) - seen.sum()
    assert chisquare([*seen, rest], len(noise) * np.array([*expected, 1 - expected.sum()])).pvalue > 1e-3


# -- hierarchies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "branching", "height"), [(1, 2, 4), (1, 3, 3), (2, 2, 3), (3, 2, 2)])
def test_consistent_leaves_are_the_least_squares(d, branching, height):
    rng = np.random.default_rng(0)
    levels = [rng.normal(size=(branching**level,) * d) for level in range(1, height + 1)]
    size = levels[-1].size
    rows = []
    for level in levels:
        each = np.eye(size).reshape((size, *levels[-1].shape))
        for axis in range(1, d + 1):
            width = levels[-1].shape[0] // level.shape[0]
            each = np.add.reduceat(each, np.arange(0, each.shape[axis], width), axis=axis)
        rows.append(each.reshape(size, -1).T)
    solution = np.linalg.lstsq(np.concatenate(rows), np.concatenate([x.ravel() for x in levels]), rcond=None)[0]
    np.testing.assert_allclose(consistent_leaves(levels, branching).ravel(), solution, atol=1e-9)


def test_nonnegative_leaves_keep_the_sums_of_their_parents():
    rng = np.random.default_rng(0)
    levels = [np.array([[5.0, -2.0], [8.0, 3.0]]), rng.normal(1.0, 4.0, (4, 4))]
    leaves = consistent_leaves(levels, 2, nonnegative=True)
    free = consistent_leaves(levels, 2)
    assert leaves.min() >= 0.0 > free.min()
    sums, wanted = (np.add.reduceat(np.add.reduceat(x, [0, 2], 0), [0, 2], 1) for x in (leaves, free))
    np.testing.assert_allclose(sums, np.maximum(wanted, 0.0), atol=1e-9)


def test_branching_is_flat_for_small_domains_and_wide_for_large():
    assert best_branching(16) == 16
    assert [best_branching(size) for size in (256, 1024, 4096)] == [16, 32, 16]


# -- privacy by counting --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [(0,), (13,), (36,)])
def test_one_record_moves_a_histogram_by_one(place):
    counts = counts_of((37,))
    more = counts.copy()
    more[place] += 1
    for side in (4, 37):
        assert np.abs(block_counts(more, side) - block_counts(counts, side)).sum() == 1


@pytest.mark.parametrize(
    ("shape", "branching", "height"), [((64,), 4, 3), ((37,), 2, 6), ((16, 16), 2, 4), ((8,) * 3, 8, 1)]
)
def test_levels_of_a_hierarchy_spend_the_budget_once(shape, branching, height):
    meter = Meter()
    hierarchical_histogram(counts_of(shape), 0.8, meter, side=64, branching=branching)
    assert len(meter.costs) == height
    assert sum(meter.costs) == pytest.approx(0.8)


@pytest.mark.parametrize("shape", [(16, 16), (8, 8, 8)])
def test_grids_spend_the_budget_once(shape):
    uniform, adaptive = Meter(), Meter()
    uniform_grid(counts_of(shape), 0.8, uniform)
    assert sum(uniform.costs) == pytest.approx(0.8)
    adaptive_grid(counts_of(shape), 0.8, adaptive)
    number, first, *parts = adaptive.costs
    assert len(set(parts)) == 1  # a record is in the parts of one cell only
    assert number + first + parts[0] == pytest.approx(0.8)
    assert number == pytest.approx(GridTuning().count_share * 0.8)


def test_the_second_stage_of_buckets_has_what_the_first_left():
    meter = Meter()
    partition_histogram(counts_of((16,)), 0.8, meter, side=16)
    assert meter.costs == [
        pytest.approx((1 - PartitionTuning().partition_share) * 0.8)
    ]  # the first stage draws no Laplace noise


def prunings(size):
    """All prunings of the binary tree over a line, as tuples of bucket sizes, with their public log weight."""
    if size == 1:
        return {(1,): 0.0}
    found = {(size,): math.log(0.7)}
    for left, right in itertools.product(prunings(size // 2).items(), repeat=2):
        found[left[0] + right[0]] = math.log(0.3) + left[1] + right[1]
    return found


def cost(counts, sizes, penalty):
    parts = np.split(np.asarray(counts, dtype=float), np.cumsum(sizes)[:-1])
    return sum(np.abs(part - part.mean()).sum() + penalty for part in parts)


@given(st.lists(st.integers(0, 9), min_size=8, max_size=8), st.integers(0, 7))
def test_one_record_moves_the_cost_of_every_pruning_by_less_than_two(counts, place):
    more = list(counts)
    more[place] += 1
    for sizes in prunings(8):
        assert abs(cost(more, sizes, 1.3) - cost(counts, sizes, 1.3)) < COST_SENSITIVITY


@given(st.lists(st.integers(0, 9), min_size=8, max_size=8), st.integers(0, 7), st.floats(0.1, 5))
def test_the_law_of_the_pruning_is_private(counts, place, epsilon):
    more = list(counts)
    more[place] += 1
    laws = []
    for data in (counts, more):
        logs = {sizes: w - epsilon * cost(data, sizes, 1.3) / 4 for sizes, w in prunings(8).items()}
        whole = np.logaddexp.reduce(list(logs.values()))
        laws.append({sizes: value - whole for sizes, value in logs.items()})
    assert max(abs(laws[0][sizes] - laws[1][sizes]) for sizes in laws[0]) <= epsilon + 1e-9


def test_prunings_are_drawn_with_that_law():
    counts, epsilon, rng = np.array([5.0, 0.0, 1.0, 1.0, 0.0, 2.0, 6.0, 6.0]), 1.5, np.random.default_rng(0)
    logs = {sizes: w - epsilon * cost(counts, sizes, 0.5) / 4 for sizes, w in prunings(8).items()}
    whole, draws = np.logaddexp.reduce(list(logs.values())), 20_000
    seen = dict.fromkeys(logs, 0)
    for _ in range(draws):
        seen[tuple(np.bincount(draw_pruning(counts, epsilon, 0.5, rng, split_weight=0.3)))] += 1
    expected = [draws * math.exp(value - whole) for value in logs.values()]
    assert min(expected) > 5.0
    assert chisquare(list(seen.values()), expected).pvalue > 1e-3


def test_the_z_curve_passes_through_boxes():
    order = z_order((8, 8))
    assert sorted(order) == list(range(64))
    for size in (4, 16):
        for part in order.reshape(-1, size):
            x, y = np.unravel_index(part, (8, 8))
            assert np.ptp(x) == np.ptp(y) == math.isqrt(size) - 1
    with pytest.raises(ValueError, match="power of two"):
        z_order((4, 8))


def density_of_median(ordered, points, epsilon):
    edges, scores = _median_scores(np.asarray(ordered), 0.0, 10.0, epsilon)
    lengths = np.diff(edges)
    logs = scores - np.logaddexp.reduce(scores[np.isfinite(scores)])
    place = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, len(lengths) - 1)
    return logs[place] - np.log(lengths[place])


@given(st.lists(st.floats(0.01, 9.99), max_size=7, unique=True), st.floats(0.01, 9.99), st.floats(0.1, 4))
def test_the_law_of_a_median_is_private(records, one, epsilon):
    # points that are on no record: a median is on one with probability 0
    ends = np.unique([0.0, *records, one, 10.0])
    points = ((ends[1:] + ends[:-1]) / 2)[np.diff(ends) > 1e-6]
    logs = [density_of_median(sorted(rows), points, epsilon) for rows in (records, [*records, one])]
    assert np.abs(logs[0] - logs[1]).max() <= epsilon + 1e-6


def test_every_level_of_quantiles_costs_its_share(monkeypatch):
    import fogline_research.baselines.quantiles as module

    asked = []
    draw = module.median_draw
    monkeypatch.setattr(module, "median_draw", lambda *a: asked.append((len(a[0]), a[3])) or draw(*a))
    recursive_quantiles(np.arange(1.0, 100.0), 0.0, 100.0, 2.0, np.random.default_rng(0), levels=3, width=0.0)
    assert len(asked) == 7
    assert {share for _, share in asked} == {2.0 / 3}
    assert sum(size for size, _ in asked) <= 3 * 99  # the medians of one level share the records


def test_leaves_per_axis_are_what_a_release_has():
    assert LEAVES == {1: 4096, 2: 256, 3: 64}
