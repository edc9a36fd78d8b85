"""Branches: profiles agree with the density, links and fits do what they say, noise alone raises nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline import DensitySketch
from fogline.density.branches.branch_map import branches_at
from fogline.density.branches.branches import choose_bandwidth, read_branches
from fogline.density.branches.detection import link, local_fit
from fogline.density.branches.prediction_sets import PredictionSets
from fogline.density.branches.profiles import Profiles, mirror_basis
from fogline.testing import seeded_noise
from fogline_research.datasets.regression import sinusoidal_mixture

BOX = [(0.0, 1.0), (-1.5, 3.0)]
WIDE = np.array([0.075, 0.3])


def released(X, y, *, seed=0, epsilon=1.0, bandwidths="auto"):
    with seeded_noise(seed):
        return (
            DensitySketch(BOX, bandwidths=bandwidths)
            .update(np.column_stack([X, y]))
            .release(epsilon=epsilon, delta=1e-5)
        )


@pytest.fixture(scope="module")
def wave():
    sample = sinusoidal_mixture(4000, random_state=0)
    return released(sample.X, sample.y)


# -- profiles -----------------------------------------------------------------------------------------------


def test_level_profiles_are_the_density(wave):
    profiles = Profiles(wave, WIDE)
    x = np.linspace(0, 1, 7)[:, None]
    y = np.linspace(-1, 2, 7)
    points = np.column_stack([x, y])
    lines = profiles.lines(x)
    np.testing.assert_allclose(lines.at(y), wave.pdf(points, WIDE), atol=1e-5)
    np.testing.assert_allclose(lines.at(y, 1), wave.gradient(points, WIDE)[:, 1], atol=1e-4)
    np.testing.assert_allclose(lines.at(y, 2), wave.hessian(points, WIDE)[:, 1, 1], atol=1e-3)
    np.testing.assert_allclose(lines.noise_sd(), wave.noise_sd(WIDE), rtol=1e-6)
    np.testing.assert_allclose(profiles.simulated(wave.coefficients[None], x)[0], lines.terms, atol=1e-12)
    np.testing.assert_allclose(profiles.lines(x, np.zeros((7, 1))).terms, lines.terms, atol=1e-12)


def test_a_profile_along_a_slope_is_an_average_along_a_line(wave):
    """The tilted kernel is the narrow density smoothed along the line: compare with a quadrature."""
    narrow, slope = np.array([0.03, 0.3]), 1.7
    extra = 0.06
    u = np.linspace(-5, 5, 401) * extra
    weight = np.exp(-0.5 * (u / extra) ** 2)
    line = np.column_stack([0.5 + u, 0.2 + slope * u])
    average = weight @ wave.pdf(line, narrow) / weight.sum()
    # Smoothing twice along x and along the line adds the squares of the bandwidths only where both have the slope.
    tilted = Profiles(wave, narrow).lines(line[:, :1], np.full((len(u), 1), slope)).at(line[:, 1])
    whole = Profiles(wave, np.array([np.hypot(0.03, extra), 0.3])).lines(np.array([[0.5]]), np.array([[slope]]))
    assert whole.at(np.array([0.2]))[0] == pytest.approx(weight @ tilted / weight.sum(), abs=1e-5)
    assert abs(average - whole.at(np.array([0.2]))[0]) > 1e-4, "the slope matters"


def test_the_noise_of_a_profile_is_what_it_says():
    empty = np.zeros((0, 1))
    x, slope = np.array([[0.3], [0.02]]), np.array([[2.0], [-3.0]])
    values, told = [], None
    for seed in range(300):
        density = released(empty, empty[:, 0], seed=seed, bandwidths=[WIDE])
        lines = Profiles(density, WIDE).lines(x, slope)
        values.append(density.count * lines.at(np.array([0.4, 1.0]), 1))
        told = density.count * lines.noise_sd(1)
    np.testing.assert_allclose(np.std(values, axis=0), told, rtol=0.15)


def test_mirrors_make_even_responses_look_even():
    rng = np.random.default_rng(0)
    density = released(rng.uniform(0, 1, (200_000, 1)), rng.uniform(-1.5, 3.0, 200_000))
    profiles = Profiles(density, WIDE)
    y = profiles.y_axis(4.0)
    values, _ = profiles.lines(np.array([[0.5]])).on(mirror_basis(profiles, y))
    np.testing.assert_allclose(values, 1 / 4.5, rtol=0.05)


# -- links and fits -----------------------------------------------------------------------------------------


def test_links_follow_neighbours_and_never_double_a_place():
    place = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    position = np.array([0.0, 0.1, 0.2, 0.3, 1.0, 0.8, 0.6, 0.4])
    branch_links = link((4,), place, position, 0.25)
    assert branch_links.count == 2
    assert len(set(branch_links.member[:4])) == len(set(branch_links.member[4:])) == 1
    apart = link((6,), np.array([0, 1, 4, 5]), np.zeros(4), 1.0)
    assert apart.count == 2, "a gap is no neighbour"
    assert link((4,), place, position * 0, 1.0).count == 2, "one mode a place and branch"


def test_links_in_two_dimensions_make_a_sheet():
    place = np.arange(12)
    assert link((3, 4), place, np.zeros(12), 0.1).count == 1


@settings(max_examples=25, deadline=None)
@given(st.floats(-3, 3), st.floats(-3, 3), st.integers(8, 30))
def test_local_fits_keep_lines_and_their_slopes(start, slope, size):
    x = np.linspace(0, 1, size)[:, None]
    fit = local_fit(x, start + slope * x[:, 0], np.array([0.3]), 1)
    np.testing.assert_allclose(fit.weights.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(fit.values, start + slope * x[:, 0], atol=0.02)
    np.testing.assert_allclose(fit.slopes[:, 0], slope, atol=0.05)


def test_local_quadratic_fits_of_two_axes_have_their_gradient():
    x = np.stack([g.ravel() for g in np.meshgrid(*[np.linspace(0, 1, 9)] * 2, indexing="ij")], axis=1)
    y = 1 + x[:, 0] - 2 * x[:, 1] + x[:, 0] * x[:, 1]
    slopes = local_fit(x, y, np.array([0.4, 0.4]), 2).slopes
    np.testing.assert_allclose(slopes, np.column_stack([1 + x[:, 1], -2 + x[:, 0]]), atol=0.1)


# -- branches -----------------------------------------------------------------------------------------------


def test_waves_are_followed_from_wall_to_wall(wave):
    found = read_branches(wave, 0.05)
    assert np.bincount(found.branch).tolist() == [len(found.axes[0])] * 2
    x = np.linspace(0, 1, 61)
    modes = branches_at(found, x[:, None])
    truth = 0.5 * np.sin(3 * np.pi * x[modes.rows])
    error = modes.positions - truth
    error -= 1.5 * (error > 0.75)
    assert np.sqrt(np.mean(error**2)) < 0.06
    # A plain smoother of this width would be off by c h^2 / 2 = 0.12 on the crests.
    crest = np.abs(np.cos(3 * np.pi * x[modes.rows])) < 0.2
    assert np.abs(error[crest]).mean() < 0.06
    assert np.mean(np.abs(error) < 3 * modes.standard_errors) > 0.8
    off = modes.slopes[:, 0] - 1.5 * np.pi * np.cos(3 * np.pi * x[modes.rows])
    assert np.sqrt(np.mean(off**2)) < 1.2


def test_an_abrupt_end_is_an_end():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(0, 1, 10_000), rng.uniform(0, 0.5, 5000)])
    y = np.concatenate([rng.normal(0, 0.2, 10_000), rng.normal(1.6, 0.2, 5000)])
    found = read_branches(released(x, y), 0.05)
    ends = [found.axes[0][found.place[found.branch == k]].max() for k in (0, 1)]
    assert ends[0] == 1.0
    assert ends[1] == pytest.approx(0.5, abs=0.03)


def test_branches_that_cross_are_both_seen_on_either_side():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 1, 20_000)
    y = 0.75 + np.where(rng.random(20_000) < 0.5, 1, -1) * 3 * (x - 0.5) + rng.normal(0, 0.15, 20_000)
    found = read_branches(released(x, y), 0.05)
    for place, expected in ((0.1, [-0.45, 1.95]), (0.9, [-0.45, 1.95])):
        modes = branches_at(found, np.array([[place]]))
        np.testing.assert_allclose(np.sort(modes.positions), expected, atol=0.1)
    assert len(branches_at(found, np.array([[0.5]])).rows) >= 1


def test_even_responses_have_no_branch():
    hits = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        density = released(rng.uniform(0, 1, 1500), rng.uniform(-1.5, 3, 1500), seed=seed)
        found = read_branches(density, 0.05)
        assert bool(found.message) == (len(found.place) == 0)
        hits += len(found.place) > 0
    assert hits <= 4  # 20 runs at level 0.05: five or more have a chance of 0.003


def test_a_small_level_hides_what_a_large_one_shows():
    sample = sinusoidal_mixture(500, random_state=0)
    density = released(sample.X, sample.y, epsilon=0.3)
    shown = [len(read_branches(density, level).place) for level in (1e-9, 0.5)]
    assert shown[0] < shown[1]


def test_places_outside_have_no_modes(wave):
    found = read_branches(wave, 0.05)
    modes = branches_at(found, np.array([[-0.01], [1.01], [np.nan], [0.5]]))
    assert set(modes.rows) == {3}


def test_more_records_allow_a_smaller_bandwidth(wave):
    small, large = (sinusoidal_mixture(n, random_state=0) for n in (300, 100_000))
    assert choose_bandwidth(released(small.X, small.y))[0] > choose_bandwidth(released(large.X, large.y))[0]


# -- prediction sets ----------------------------------------------------------------------------------------


def coverage(sets, x, y):
    return np.mean([np.any((s[:, 0] <= v) & (v <= s[:, 1])) for s, v in zip(sets.at(x), y, strict=True)])


@pytest.mark.parametrize("wanted", [0.5, 0.9])
def test_sets_cover_what_they_should(wanted):
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 1, 12_000)
    y = 0.5 + x + rng.normal(0, 0.1 + 0.3 * x)
    density = released(x[:10_000], y[:10_000])
    sets = PredictionSets(density, np.array([0.055, 0.17]), wanted)
    assert coverage(sets, x[10_000:, None], y[10_000:]) == pytest.approx(wanted, abs=0.04)
    # Without calibration the smoothed density would be too wide.
    assert sets.depth < wanted


def test_sets_are_intervals_in_order_within_the_bounds(wave):
    for found in PredictionSets(wave, WIDE, 0.9).at(np.linspace(0, 1, 9)[:, None]):
        flat = found.ravel()
        assert (np.diff(flat) > 0).all()
        assert flat[0] >= -1.5
        assert flat[-1] <= 3.0


def test_where_nothing_is_known_the_set_is_the_whole_range():
    rng = np.random.default_rng(4)
    density = released(rng.uniform(0, 0.3, 3000), rng.normal(0.5, 0.2, 3000))
    sets = PredictionSets(density, WIDE, 0.9).at(np.array([[0.9], [2.0], [np.nan], [0.15]]))
    for unknown in sets[:3]:
        np.testing.assert_allclose(unknown, [[-1.5, 3.0]])
    assert np.ptp(sets[3]) < 2.0
