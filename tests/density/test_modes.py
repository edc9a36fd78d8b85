"""Modes: found where they are, none where there is none, and a word of advice where there is nothing."""

import math

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.datasets.simulated import gaussian_mixture4, own_mixture, uniform_box
from fogline.testing import seeded_noise

DELTA = 1e-5


def released(X, bounds, *, epsilon=1.0, seed=0, **options):
    with seeded_noise(seed):
        return DensitySketch(bounds, **options).update(X).release(epsilon=epsilon, delta=DELTA)


def matched_distance(found, truth):
    """For each true mode the nearest found one."""
    return np.linalg.norm(found[None] - truth[:, None], axis=2).min(axis=1)


def consistent(table, d):
    k = len(table.positions)
    assert table.positions.shape == table.bandwidths.shape == table.standard_errors.shape == (k, d)
    assert table.heights.shape == table.p_values.shape == (k,)
    assert table.covariances.shape == (k, d, d)
    np.testing.assert_allclose(table.covariances, table.privacy_covariances + table.sampling_covariances)
    np.testing.assert_allclose(table.standard_errors**2, np.einsum("kii->ki", table.covariances))
    assert np.all(np.diff(table.heights) <= 0), "highest first"
    assert np.all((table.p_values >= 0) & (table.p_values <= 1))
    assert np.all(np.isfinite(table.positions))
    if k:
        assert table.standard_errors.min() > 0
        assert np.linalg.eigvalsh(table.privacy_covariances).min() > 0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_single_gaussian_is_found_within_its_error(d):
    centre = np.array([1.5, -0.7, 0.4])[:d]
    X = centre + np.random.default_rng(d).standard_normal((5000, d))
    density = released(X, [(-8, 8)] * d, seed=d)
    for n_modes in (None, 1):
        table = density.modes(n_modes)
        consistent(table, d)
        assert len(table.positions) == 1
        assert np.all(np.abs(table.positions[0] - centre) < 5 * table.standard_errors[0])
        assert table.standard_errors.max() < 0.3
        assert table.p_values[0] < 0.05
        assert table.message == ""


def test_two_axes_of_very_different_units():
    rng = np.random.default_rng(2)
    X = np.array([50.0, 1.2e-3]) + rng.standard_normal((5000, 2)) * [5.0, 1e-4]
    table = released(X, [(0, 100), (0, 2e-3)]).modes()
    assert len(table.positions) == 1
    assert np.all(np.abs(table.positions[0] - [50.0, 1.2e-3]) < 5 * table.standard_errors[0])
    assert table.standard_errors[0, 1] < 1e-4


@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_a_known_number_is_returned_exactly(k):
    sample = gaussian_mixture4(5000, random_state=1)
    table = released(sample.X, [(-10, 10)] * 2).modes(k)
    consistent(table, 2)
    assert len(table.positions) == k
    if k >= 4:
        assert matched_distance(table.positions, sample.modes).max() < 0.6
    gaps = np.linalg.norm(table.positions[:, None] - table.positions, axis=2)[~np.eye(k, dtype=bool)]
    assert k == 1 or gaps.min() > 0.1, "no mode is given twice"


def three_hills(n, d, *, seed):
    """Well apart, of unequal weight."""
    rng = np.random.default_rng(seed)
    truth = np.array([[-3.0, -3.0, 0.0], [3.0, -3.0, 0.0], [0.0, 3.5, 3.0]])[:, 3 - d :]
    X = truth[rng.choice(3, size=n, p=[0.4, 0.35, 0.25])] + 0.8 * rng.standard_normal((n, d))
    return X, np.unique(truth, axis=0)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_unknown_number_is_found_each_once(d, seed):
    X, truth = three_hills(20_000, d, seed=seed)
    table = released(X, [(-7, 7)] * d, epsilon=2.0, seed=seed).modes()
    consistent(table, d)
    assert len(table.positions) == len(truth)
    assert matched_distance(table.positions, truth).max() < 0.3


def test_close_hills_of_unequal_width_on_a_line():
    sample = own_mixture(20_000, 1, random_state=3)
    table = released(sample.X, [(-7, 7)], epsilon=2.0).modes()
    assert len(table.positions) == len(sample.modes)
    assert matched_distance(table.positions, sample.modes).max() < 0.3


@pytest.mark.parametrize("seed", range(3))
def test_ridges_beside_each_other_are_two_modes_though_flat_along_their_crests(seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(5000) < 0.5, -2, 2) + rng.normal(0, 0.4, 5000)
    found = released(np.column_stack([rng.uniform(-7, 7, 5000), y]), [(-10, 10)] * 2, seed=seed).modes()
    assert len(found.positions) == 2
    np.testing.assert_allclose(np.sort(found.positions[:, 1]), [-2, 2], atol=0.5)
    assert (found.p_values <= 0.05).all()


def test_more_modes_than_there_are_peaks_is_said():
    X = np.random.default_rng(0).standard_normal((2000, 1))
    table = released(X, [(-5, 5)], bandwidths=0.2).modes(50)
    consistent(table, 1)
    assert 1 <= len(table.positions) < 50
    assert "50" in table.message
    assert str(len(table.positions)) in table.message


def test_many_modes_are_asked_for_and_none_is_given_twice():
    X = np.random.default_rng(0).normal(45, 10, size=(2000, 1))
    table = released(X, [(0, 100)]).modes(1000)
    assert len(np.unique(np.round(table.positions, 3), axis=0)) == len(table.positions)
    assert str(len(table.positions)) in table.message


@pytest.mark.parametrize("d", [1, 2])
def test_even_ground_has_no_mode(d):
    found = [
        len(released(uniform_box(5000, d, random_state=s).X, [(0, 1)] * d, seed=s).modes().positions) for s in range(8)
    ]
    assert sum(k > 0 for k in found) <= 2


@pytest.mark.parametrize("d", [1, 2, 3])
def test_nothing_found_says_what_would_help(d):
    X = np.random.default_rng(0).normal(0.5, 0.1, size=(40, d))
    table = released(X, [(0, 1)] * d, epsilon=0.05).modes()
    consistent(table, d)
    assert len(table.positions) == 0
    assert "fog" in table.message
    assert any(word in table.message for word in ("epsilon", "records", "bandwidth", "flat"))


@pytest.mark.parametrize("n", [0, 1])
def test_no_records_and_one_record_take_the_same_path(n):
    X = np.full((n, 2), 0.3)
    density = released(X, [(0, 1)] * 2)
    assert len(density.modes().positions) == 0
    forced = density.modes(3)
    consistent(forced, 2)
    assert len(forced.positions) == 3


def test_heaps_of_whole_numbers_are_not_modes():
    rng = np.random.default_rng(5)
    rooms = np.round(rng.normal(9, 2.4, size=(50_000, 1)))
    with_steps = released(rooms, [(0, 20)], epsilon=5.0, bandwidths=[0.01, 0.1], steps=1).modes()
    assert len(with_steps.positions) == 1
    assert abs(with_steps.positions[0, 0] - 9) < 0.3
    without = released(rooms, [(0, 20)], epsilon=5.0, bandwidths=[0.01, 0.1]).modes()
    assert len(without.positions) > 1, "else this test would show nothing"


def test_a_lattice_of_half_steps_in_the_plane():
    rng = np.random.default_rng(6)
    X = np.round(rng.normal([3, 5], [1, 1.5], size=(50_000, 2)) * 2) / 2
    table = released(X, [(0, 10)] * 2, epsilon=5.0, steps=[0.5, 0.5]).modes()
    assert len(table.positions) == 1
    assert np.abs(table.positions[0] - [3, 5]).max() < 0.2


def test_a_fixed_bandwidth_is_the_one_used():
    sample = gaussian_mixture4(5000, random_state=2)
    density = released(sample.X, [(-10, 10)] * 2)
    for bandwidth, expected in [(0.05, [1.0, 1.0]), ([0.9, 1.2], [0.9, 1.2])]:
        table = density.modes(4, bandwidth=bandwidth)
        consistent(table, 2)
        np.testing.assert_allclose(table.bandwidths, np.tile(expected, (4, 1)))
        assert matched_distance(table.positions, sample.modes).max() < 0.6
        slope = density.gradient(table.positions, table.bandwidths[0])
        assert np.abs(slope).max() < 1e-4 * table.heights.max(), "a mode is where the gradient vanishes"
        np.testing.assert_allclose(table.heights, density.pdf(table.positions, table.bandwidths[0]))


def test_a_fixed_bandwidth_without_a_known_number():
    sample = gaussian_mixture4(5000, random_state=2)
    table = released(sample.X, [(-10, 10)] * 2).modes(bandwidth=0.06)
    assert len(table.positions) == 4
    assert table.p_values.max() <= 0.05


@pytest.mark.parametrize("bandwidth", ["silverman", 5.0, 1e-4, -1.0, math.nan])
def test_a_bad_bandwidth_is_named(bandwidth):
    density = released(np.zeros((0, 1)), [(0, 1)])
    with pytest.raises(ValueError, match="bandwidth"):
        density.modes(bandwidth=bandwidth)


@pytest.mark.parametrize(("n_modes", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_a_bad_number_of_modes_is_named(n_modes, error):
    density = released(np.zeros((0, 1)), [(0, 1)])
    with pytest.raises(error, match="n_modes"):
        density.modes(n_modes)


@pytest.mark.parametrize("seed", range(4))
def test_positions_stay_in_the_box(seed):
    rng = np.random.default_rng(seed)
    X = rng.exponential(0.15, size=(400, 2))  # piled up in a corner
    density = released(X, [(0, 1)] * 2, epsilon=0.3, seed=seed)
    for table in (density.modes(5), density.modes(), density.modes(2, bandwidth=0.1)):
        assert np.all((table.positions >= 0) & (table.positions <= 1))


def test_noise_and_errors_shrink_with_the_budget():
    X = np.random.default_rng(1).standard_normal((5000, 1))
    privacy = [
        released(X, [(-8, 8)], epsilon=e).modes(1, bandwidth=0.05).privacy_covariances[0, 0, 0] for e in (0.5, 1, 4)
    ]
    assert privacy[0] > privacy[1] > privacy[2]
