"""Modes on leaves are true: found at 1000 records, none on plateaus, intervals that hold, odd columns, few records."""

import numpy as np
import pytest
from scipy import stats

from fogline import PrivateModes
from fogline.density.modes.peaks import find_peaks, line_prominences, wall_prominences
from fogline.testing import seeded_noise


def fit(values, box, seed, *, epsilon=1.0, steps=None, **options):
    model = PrivateModes(epsilon=epsilon, bounds=[box], steps=None if steps is None else [steps], **options)
    with seeded_noise(seed):
        return model.fit(np.asarray(values, dtype=float)[:, None])


SINGLE = {
    "normal": (stats.norm(5, 1), (0, 20), 5.0),
    "gamma": (stats.gamma(3), (0, 20), 2.0),
    "near a wall": (stats.norm(0.9, 0.03), (0, 1), 0.9),
    "lognormal": (stats.lognorm(0.6, scale=np.e), (0, 20), float(np.exp(1 - 0.36))),
    "Weibull": (stats.weibull_min(1.8), (0, 5), float((0.8 / 1.8) ** (1 / 1.8))),
    "wide box": (stats.norm(2.6, 0.7), (0, 60), 2.6),
}


@pytest.fixture(scope="module")
def singles():
    """Fits of single modes: kind, true mode, fitted model; n = 1000 and 5000."""
    found = []
    for name, (law, box, true) in SINGLE.items():
        for seed in range(6):
            n = 1000 if seed % 2 else 5000
            found.append((name, true, fit(law.rvs(n, random_state=np.random.default_rng(seed)), box, seed + 1)))
    return found


def test_single_modes_of_few_records_are_found(singles):
    right = [len(model.modes_) == 1 for _, _, model in singles]
    assert np.mean(right) > 0.93


def test_intervals_hold_and_are_not_far_too_wide(singles):
    z = [(model.modes_[0, 0] - true) / model.standard_errors_[0, 0] for _, true, model in singles if len(model.modes_)]
    # Of 36 true intervals at 95%, fewer than 30 hold once in 500 times; errors twice too large would give 0.25 below.
    assert np.mean(np.abs(z) <= 1.96) >= 30 / 36
    assert 0.3 < np.mean(np.square(z)) < 2.0


@pytest.mark.parametrize("n", [1000, 20_000])
def test_a_plateau_has_no_mode(n):
    found = [fit(np.random.default_rng(seed).uniform(0.3, 0.7, n), (0, 1), seed + 1) for seed in range(8)]
    assert sum(len(model.modes_) for model in found) <= 1
    assert "plateau" in found[0].message_


def test_a_mode_between_two_high_walls_is_no_plateau():
    """What rises beyond the tails of a hill, at the walls, does not make it flat."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = np.where(rng.random(3000) < 0.3, rng.normal(0.5, 0.06, 3000), rng.beta(0.5, 0.5, 3000))
        model = fit(x, (0, 1), seed + 1, epsilon=3.0)
        assert len(model.modes_) == 1
        assert abs(model.modes_[0, 0] - 0.5) < 3 * model.standard_errors_[0, 0]


def test_a_ridge_is_as_flat_as_a_plateau():
    rng = np.random.default_rng(0)
    model = PrivateModes(epsilon=1.0, bounds=[(0, 1), (0, 1)])
    with seeded_noise(1):
        model.fit(np.c_[rng.normal(0.5, 0.05, 5000), rng.uniform(0.2, 0.8, 5000)])
    assert len(model.modes_) == 0


def test_a_mode_near_a_wall_keeps_its_place_with_many_records():
    model = fit(np.random.default_rng(0).normal(0.9, 0.03, 200_000), (0, 1), 1)
    assert abs(model.modes_[0, 0] - 0.9) < 0.002
    assert model.standard_errors_[0, 0] < 0.002


def test_two_modes_that_nearly_meet_do_not_pull_each_other():
    rng = np.random.default_rng(0)
    model = fit(np.where(rng.random(50_000) < 0.5, rng.normal(4, 0.6, 50_000), rng.normal(6, 0.6, 50_000)), (0, 12), 1)
    assert np.sort(model.modes_[:, 0]) == pytest.approx([4.008, 5.992], abs=0.06)
    assert np.all(model.standard_errors_ > 0.008)


# -- columns as users have them ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3000, 30_000])
def test_whole_numbers_without_a_declared_step_are_read_on_their_lattice(n):
    values = np.round(np.random.default_rng(0).normal(50, 12, n))
    model = fit(values, (0, 100), 1)
    assert len(model.modes_) == 1
    assert abs(model.modes_[0, 0] - 50) < 2.5 * model.standard_errors_[0, 0]
    assert "looks rounded to multiples of about 1" in model.message_ or "of about 0.99" in model.message_


def test_heaps_over_a_continuous_column_are_no_lattice():
    rng = np.random.default_rng(0)
    values = rng.normal(50, 12, 20_000)
    values = np.where(rng.random(20_000) < 0.3, 10 * np.round(values / 10), values)
    model = fit(values, (0, 100), 1)
    assert len(model.point_masses_) >= 4
    assert "rounded" not in model.message_
    assert len(model.modes_) == 1


@pytest.mark.parametrize("steps", [None, 1.0])
def test_ages_that_end_in_0_and_5_are_one_mode(steps):
    """Heaps that are too faint, or in too wide a bucket, to be told as point masses are no modes either."""
    for seed, n, epsilon in ((0, 3000, 0.3), (1, 3000, 0.3), (2, 30_000, 3.0)):
        rng = np.random.default_rng(seed)
        age, habit = rng.normal(50, 15, n), rng.random(n)
        told = np.where(habit < 0.4, 10 * np.round(age / 10), np.where(habit < 0.7, 5 * np.round(age / 5), age.round()))
        model = fit(told, (0, 110), seed + 1, epsilon=epsilon, steps=steps)
        assert np.all(np.abs(model.modes_[:, 0] - 50) < 3 * model.standard_errors_[:, 0])
    assert len(model.modes_) == 1


def test_a_bump_on_a_hill_does_not_stand_for_the_hill():
    """At the finest bandwidth this hill is certain, and its top a bump of the noise that leads nowhere."""
    x = np.random.default_rng(47).beta(2, 5, 10_000)
    for seed in range(3):
        model = fit(x, (0, 1), seed)
        assert abs(model.modes_[0, 0] - 0.2) < 3 * model.standard_errors_[0, 0]


def test_a_mode_between_two_values_of_a_lattice_knows_no_better():
    values = np.where(np.random.default_rng(0).random(3000) < 0.4, 4.0, 5.0)
    model = fit(values, (0, 10), 1, steps=1)
    assert np.all(np.abs(model.modes_[:, 0] - 5.0) < 1.96 * model.standard_errors_[:, 0])


@pytest.mark.parametrize("value", [0.0, 3.0, 60.0])
def test_one_value_promises_no_peak(value):
    model = fit(np.full(3000, value), (0, 60), 1)
    assert len(model.modes_) == 0
    assert "hardly a record beside" in model.message_
    assert "times the" not in model.message_
    assert "100%" in model.message_ or "99%" in model.message_


def test_bounds_far_too_wide_name_the_cell():
    model = fit(np.random.default_rng(0).normal(5, 1, 3000), (-1e6, 1e6), 1)
    assert len(model.modes_) == 0
    assert "somewhere in 0 to 490" in model.message_


def test_bounds_that_cut_the_records_give_a_wall():
    model = fit(np.random.default_rng(0).normal(0, 1, 3000), (0.5, 10), 1)
    assert len(model.modes_) == 0
    assert model.boundary_modes_[0].ends == ((0, "low"),)


@pytest.mark.parametrize("n", [0, 1, 5, 20, 50])
@pytest.mark.parametrize("columns", [1, 2])
def test_few_records_give_words_and_no_false_mode(n, columns):
    rng = np.random.default_rng(n)
    model = PrivateModes(epsilon=1.0, bounds=[(0, 10)] * columns)
    with seeded_noise(n + 1):
        model.fit(rng.uniform(0, 10, (n, columns)))
    assert len(model.modes_) == 0
    assert model.message_.startswith("nothing stands above the fog")


# -- peaks on one axis ---------------------------------------------------------------------------------------


def test_peaks_on_a_line_are_those_of_the_general_search():
    fields = np.random.default_rng(0).normal(size=(30, 80)).cumsum(axis=1)
    fields[:, 20:24] = fields[:, 20:21]  # ties
    peaks = find_peaks(fields)
    field, cell, prominence = line_prominences(fields)
    order = np.lexsort((cell, field))
    real = peaks.interior & (peaks.prominence > 0)
    assert np.array_equal(field[order], peaks.field[real])
    assert np.allclose(prominence[order], peaks.prominence[real])


def test_peaks_at_the_ends_of_a_line_are_those_of_the_general_search():
    fields = np.random.default_rng(1).normal(size=(30, 80)).cumsum(axis=1)
    ends = find_peaks(fields, outside=False)
    field, cell, prominence = wall_prominences(fields)
    order = np.lexsort((cell, field))
    assert np.array_equal(cell[order], ends.cell[~ends.interior])
    assert np.allclose(prominence[order], ends.prominence[~ends.interior])


# -- positions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("middle", "wide"), [(10.0, True), (1.5, False)])
def test_a_symmetric_mode_that_stands_alone_is_read_at_a_wide_bandwidth(middle, wide):
    """Near a wall wide bandwidths are moved by it: there all of them are weighed against each other."""
    widths = []
    for seed in range(4):
        model = fit(np.random.default_rng(seed).normal(middle, 1, 10_000).clip(0, 20), (0, 20), seed + 1)
        widths.append(model.bandwidth_[0, 0])
        assert abs(model.modes_[0, 0] - middle) < 4 * model.standard_errors_[0, 0]
    assert (np.median(widths) > 1.3) == wide
