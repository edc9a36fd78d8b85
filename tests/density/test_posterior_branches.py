"""Branches, their bands and sets of likely responses, read from one released density."""

from functools import cache

import numpy as np
import pytest

from fogline import DensitySketch, PrivateModalRegression
from fogline.density.branches.likely_sets import LikelySets
from fogline.density.branches.posterior_branches import _corrected, _joined, _maxima, _standing, response_of
from fogline.density.branches.slices import Slices
from fogline.density.posterior.axes import LeafAxis
from fogline.density.posterior.posterior import LeafMasses, Posterior
from fogline.report.regression import find_branches
from fogline.testing import seeded_noise

N = 6000


def released(columns, bounds, seed=1, epsilon=2.0):
    with seeded_noise(seed):
        return DensitySketch(bounds, features="leaves").update(np.column_stack(columns)).release(epsilon=epsilon)


def known_posterior(joint, bounds, draws=40, noise=0.0):
    """Posterior whose estimate is a given table, with independent relative errors of the leaves."""
    rng = np.random.default_rng(0)
    table = np.asarray(joint, dtype=float)
    drawn = table * np.exp(noise * rng.standard_normal((draws, *table.shape)))
    axes = [
        LeafAxis(f"c{k}", np.linspace(*pair, size + 1), 0.0, pair)
        for k, (pair, size) in enumerate(zip(bounds, table.shape, strict=True))
    ]
    return Posterior(axes, lambda _: LeafMasses(table, drawn, drawn), count=(1e5, 1.0))


@cache
def two_branches():
    """x falls off; below it a skewed branch at a wall, beside it one that exists for large x only."""
    rng = np.random.default_rng(4)
    x = rng.random(N)
    second = (rng.random(N) < 0.4) & (x > 0.5)
    y = np.where(second, rng.normal(7, 0.4, N), rng.exponential(0.8, N))
    return released([x, np.clip(y, 0, 12)], [(0, 1), (0, 12)])


def test_a_branch_at_the_wall_and_one_that_ends():
    found = two_branches().branches()
    assert set(np.unique(found.branch)) == {0, 1}
    main, other = found.branch == 0, found.branch == 1
    x = found.axes[0]
    # no silence at the densest place, which is a wall of y: there is a mode there at every x
    assert set(found.place[main]) == set(range(len(x)))
    assert np.mean(found.wall_sides[main] == -1) > 0.9
    assert np.all(found.positions[main & (found.wall_sides == -1)] == 0.0)
    # the other begins where it begins, and is covered
    assert np.all(x[found.place[other]] > 0.35)
    assert np.mean(x[found.place[other]]) == pytest.approx(0.75, abs=0.1)
    inner = other & (x[found.place] > 0.6)
    # errors of neighbouring places are nearly the same, so one release says little about coverage: three errors
    assert np.all(np.abs(found.positions - 7)[inner] < 0.75 * (found.high - found.low)[inner])
    assert "at the lower wall of x2" in str(found)
    # between places of the grid, and outside of it
    at = found.at([0.8, 3.0])
    assert at.rows.tolist() == [0, 0]
    assert sorted(at.wall_sides.tolist()) == [-1, 0]
    assert np.all(at.low <= at.positions)
    assert np.all(at.positions <= at.high)


def test_sets_leave_out_the_gap_and_hold_their_share():
    sets = LikelySets(two_branches().posterior, 1, 0.9)
    rng = np.random.default_rng(8)
    x = rng.random(2000)
    second = (rng.random(2000) < 0.4) & (x > 0.5)
    y = np.clip(np.where(second, rng.normal(7, 0.4, 2000), rng.exponential(0.8, 2000)), 0, 12)
    grid = sets.at(np.linspace(0, 1, 51)[:, None])
    inside = [
        np.any((grid[i][:, 0] <= v) & (v <= grid[i][:, 1]))
        for i, v in zip(np.round(50 * x).astype(int), y, strict=True)
    ]
    assert 0.86 < np.mean(inside) < 0.96
    assert len(grid[40]) == 2
    assert len(grid[5]) == 1
    assert grid[5][0, 0] == 0.0
    # outside the bounds of x nothing is known
    assert sets.at(np.array([[2.0]]))[0].tolist() == [[0.0, 12.0]]
    assert sets.at(np.empty((0, 1))) == []


def test_a_flat_response_has_no_branch():
    rng = np.random.default_rng(2)
    density = released([rng.random(N), rng.uniform(0, 10, N)], [(0, 1), (0, 10)], seed=3)
    found = density.branches()
    assert len(found.place) == 0
    assert "no branch" in found.message
    assert str(found) == found.message


def test_the_estimator_reads_any_column_and_both_kinds_of_release():
    rng = np.random.default_rng(1)
    age = rng.uniform(20, 80, N)
    stay = rng.gamma(4, 0.5 + age / 40)
    for y, columns, bounds in (
        (None, [age, stay], [(20, 80), (0, 60)]),
        (0, [stay, age], [(0, 60), (20, 80)]),
    ):
        density = released(columns, bounds)
        model = PrivateModalRegression().read(density, y=y)
        found = model.branches([[50.0]])
        assert found.low[0] < 3 * 1.75 < found.high[0]
        assert model.predict([[50.0]])[0] == found.positions[0]
        assert len(model.predict_modes([[50.0], [500.0]])[1]) == 0
        (ends,) = model.prediction_sets([[50.0]])
        assert ends[0, 0] < 5.25 < ends[-1, 1]
        assert model.density_ is density
        assert found.standard_errors[0] >= found.smoothing_errors[0]
    # the page shows y upwards, whichever column it is
    findings = find_branches(model)
    assert findings.bounds == ((20.0, 80.0), (0.0, 60.0))
    assert findings.panels[0].axes[1][-1] == pytest.approx(60.0)
    assert findings.panels[0].values.sum() > 0
    with seeded_noise(1):
        sums = DensitySketch([(20, 80), (0, 60)]).update(np.column_stack([age, stay])).release(epsilon=2.0, delta=1e-6)
    found = PrivateModalRegression().read(sums).branches([[50.0]])
    assert found.low[0] < 5.25 < found.high[0]
    with pytest.raises(TypeError, match="density"):
        PrivateModalRegression().read(columns)
    with pytest.raises(ValueError, match="'stays' was not released"):
        PrivateModalRegression().read(sums, y="stays")
    with pytest.raises(ValueError, match="y must be below 2"):
        response_of(sums.posterior, 2)


@pytest.mark.parametrize("records", [0, 3, 60])
def test_hardly_any_records(records):
    rng = np.random.default_rng(0)
    density = released([rng.random(records), rng.random(records)], [(0, 1), (0, 1)], seed=5, epsilon=0.5)
    found = density.branches()
    assert found.message or len(found.place)
    (ends,) = LikelySets(density.posterior).at(np.array([[0.5]]))
    assert np.all(ends[:, 0] <= ends[:, 1])


def test_two_predictors():
    rng = np.random.default_rng(3)
    a, b = rng.random(20_000), rng.random(20_000)
    y = rng.normal(2 + 2 * a + 2 * b, 0.5)
    density = released([a, b, np.clip(y, 0, 8)], [(0, 1), (0, 1), (0, 8)], epsilon=3.0)
    found = density.branches().at([[0.5, 0.5], [0.25, 0.75], [0.7, 0.3]])
    assert found.rows.tolist() == [0, 1, 2]
    assert np.abs(found.positions - 4).max() < 0.5
    assert np.all(found.low < 4.3)
    assert np.all(found.high > 3.7)


# -- parts, on tables that are known ------------------------------------------------------------------------------


def test_local_linear_slices_follow_a_rising_density_to_the_wall():
    x = (np.arange(64) + 0.5) / 64
    table = np.outer(1 + x, np.ones(16)) / 16
    slices = Slices(known_posterior(table, [(0.0, 1.0), (0.0, 1.0)]), 1)
    places = np.array([[0.0], [0.5], [1.0]])
    weights = slices.weights(places, np.full(3, 0.1))
    assert weights.sum(axis=1) == pytest.approx(1.0)
    total = table.sum()
    assert slices.pooled(weights)[0].sum(axis=1) * total == pytest.approx([1.0, 1.5, 2.0], rel=1e-6)


def test_the_smoother_keeps_mass_and_walls():
    slices = Slices(known_posterior(np.ones((8, 32)), [(0.0, 1.0), (0.0, 1.0)]), 1)
    matrix = slices.smoother(0.1)
    assert matrix.sum(axis=0) == pytest.approx(1.0)
    at = np.arange(32)
    images = [np.exp(-0.5 * ((at[:, None] - image) / 3.2) ** 2) for image in (at, -1 - at, 63 - at)]
    assert matrix == pytest.approx(sum(images) / sum(images).sum(axis=0), rel=1e-12)
    falling = np.exp(-np.arange(32) / 4)
    assert np.argmax(matrix @ falling) == 0
    assert matrix @ np.ones(32) == pytest.approx(1.0, rel=1e-6)


def test_spread_of_a_normal_slice():
    y = (np.arange(400) + 0.5) / 400
    row = np.exp(-0.5 * ((y - 0.5) / 0.07) ** 2)
    slices = Slices(known_posterior(np.ones((4, 1)) * row, [(0.0, 1.0), (0.0, 1.0)]), 1)
    assert slices.spreads(row[None])[0] == pytest.approx(0.07, rel=0.1)


def test_maxima_merge_where_draws_do_not_tell_them_apart():
    y = np.linspace(0, 1, 60)
    row = np.exp(-0.5 * ((y - 0.3) / 0.06) ** 2) + 0.8 * np.exp(-0.5 * ((y - 0.7) / 0.06) ** 2)
    assert _maxima(row).tolist() == [18, 41]
    assert _maxima(np.exp(-5 * y)).tolist() == [0]
    assert _maxima(np.exp(5 * y)).tolist() == [59]
    rng = np.random.default_rng(0)
    sure = row + 0.01 * rng.standard_normal((50, 60))
    unsure = row + 1.0 * rng.standard_normal((50, 60))
    assert len(_standing(row, sure, 2.5).leaf) == 2
    peaks = _standing(row, unsure, 2.5)
    assert peaks.leaf.tolist() == [18]
    assert (peaks.first[0], peaks.last[0]) == (0, 59)


def test_two_widths_take_the_bias_of_smoothing_away():
    widths = np.array([1.0, 1.7])
    true, slope = 5.0, 0.3
    at = [(np.array([true + slope * w**2]), np.full((3, 1), true + slope * w**2)) for w in widths]
    ratio = np.array([1.7])
    middle, drawn, taken = _corrected(at[0], at[1], at[0], (ratio, np.ones(1)), np.array([9.0]))
    assert middle == pytest.approx([true])
    assert drawn == pytest.approx(np.full((3, 1), true))
    assert taken == pytest.approx([-slope])


def test_a_branch_has_one_mode_at_a_place():
    class Maxima:
        place = np.array([0, 1, 1, 2])
        leaf = np.array([5.0, 4.0, 6.0, 5.0])
        first = np.array([0, 0, 5, 0])
        last = np.array([9, 5, 9, 9])

    branch = _joined(Maxima(), (3,))
    assert branch[1] != branch[2]
    assert branch[0] == branch[3]


def test_bands_of_a_response_that_is_narrower_than_its_buckets_hold_it():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(0, 5, 800), np.full(800, 4.2)])
    with seeded_noise(2):
        found = DensitySketch([(0, 5), (0, 10)], features="leaves").update(X).release(epsilon=1.0).branches()
    assert len(found.positions)
    assert np.mean((found.low <= 4.2) & (found.high >= 4.2)) > 0.9
    assert np.max(found.high - found.low) < 2
