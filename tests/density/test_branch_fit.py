"""Ridges fitted to the sums: a curve that smoothing would flatten is found, ends are ends, errors are honest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.density.branches import ridge_fit
from fogline.density.branches.branches import read_branches
from fogline.density.branches.ridge_fit import Ridge, Sums, fit_ridges, real_over_imaginary, solve
from fogline.testing import seeded_noise

LOW, HIGH = -1.5, 3.0
WIDE = np.array([0.1, 0.07])
"""Bandwidths, in widths of the box."""


def density(x, y, epsilon=1.0, seed=0, stretch=(1.0, 1.0)):
    bounds = [(0.0, stretch[0]), (LOW * stretch[1], HIGH * stretch[1])]
    scales = np.array([[0.04, 0.02], [0.1, 0.05]]) * [stretch[0], (HIGH - LOW) * stretch[1]]
    with seeded_noise(seed):
        sketch = DensitySketch(bounds, bandwidths=scales.tolist())
        return sketch.update(np.column_stack([x * stretch[0], y * stretch[1]])).release(epsilon=epsilon, delta=1e-5)


def start(curve, ends=(0.0, 1.0)):
    x = np.linspace(*ends, 41)
    return Ridge.through(x, (curve(x) - LOW) / (HIGH - LOW), np.ones(41), ends, 0.06, 0.04)


def fitted(released, *curves, ends=(0.0, 1.0)):
    return fit_ridges(Sums.of(released), [start(curve, ends) for curve in curves], WIDE)


def wave(x):
    return 0.7 + 0.5 * np.sin(3 * np.pi * x)


def test_the_sums_of_a_ridge_are_those_of_its_records():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 100_000)
    released = density(x, wave(x) + 0.15 * rng.standard_normal(len(x)))
    sums = Sums.of(released)
    ridge = start(wave)
    at = ridge.points()
    model = sums.waves(at, ridge.positions(at), 0.15 / (HIGH - LOW)) @ ridge.masses(at) / len(at)
    assert np.sum(np.abs(sums.observed - model) ** 2) < 0.01 * np.sum(np.abs(sums.observed) ** 2)


def test_a_flattened_start_finds_the_curve():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 3000)
    released = density(x, wave(x) + 0.15 * rng.standard_normal(3000))
    found = fitted(released, lambda t: 0.7 + 0.25 * np.sin(3 * np.pi * t))
    places = np.linspace(0, 1, 41)
    (ridge,) = found.solution.ridges
    off = LOW + ridge.positions(places) * (HIGH - LOW) - wave(places)
    assert np.sqrt(np.mean(off**2)) < 0.06
    basis, own = ridge.basis(places), found.solution.blocks()[0]
    error = (HIGH - LOW) * np.sqrt(np.einsum("ki,ij,kj->k", basis, found.solution.covariance[own, own], basis))
    assert np.mean((off / error) ** 2) < 4
    assert not ridge.straight
    assert found.within(places, np.ones(41), 0.1).all()


def test_faint_lines_stay_straight():
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 1, 1000)
    found = fitted(density(x, 0.5 + x + 0.2 * rng.standard_normal(1000), epsilon=0.5), lambda t: wave(t) + 0.3)
    (ridge,) = found.solution.ridges
    assert found.solution.freedom(0) < 2.5
    np.testing.assert_allclose(LOW + ridge.positions(np.array([0.1, 0.9])) * (HIGH - LOW), [0.6, 1.4], atol=0.12)


def test_ends_are_found_on_both_sides_of_a_start():
    rng = np.random.default_rng(1)
    x = rng.uniform(0.3, 0.8, 3000)
    released = density(x, 1.0 + 0.2 * rng.standard_normal(3000))
    for ends in ((0.0, 1.0), (0.34, 0.76)):
        found = fitted(released, np.ones_like, ends=ends)
        assert len(found.lower) == 1
        inner, best, outer = found.lower[0]
        assert outer <= best <= inner
        assert best == pytest.approx(0.3, abs=0.02)
        assert found.upper[0][1] == pytest.approx(0.8, abs=0.02)
        assert found.lower[0][0] >= 0.3 - 0.01
        assert found.upper[0][0] <= 0.8 + 0.01


def test_the_noise_of_sampling_is_where_the_records_are():
    """The variance along an end, from the ridges alone, is that of records drawn from them."""
    rng = np.random.default_rng(8)
    x = rng.uniform(0.3, 0.8, 2000)
    sums = Sums.of(density(x, 1.0 + 0.2 * rng.standard_normal(2000), epsilon=2.0))
    ridge = replace(start(np.ones_like, (0.3, 0.8)), width=0.2 / (HIGH - LOW), mass=np.full(11, 2.0))
    assert len(ridge.position) == len(ridge.mass)
    ends = np.array([0.3, 0.55, 0.85])
    along = real_over_imaginary(sums.waves(ends, ridge.positions(ends), ridge.width))
    said = np.sum((along.T @ ridge_fit._crowd(sums, [ridge])) ** 2, axis=1)
    x = rng.uniform(0.3, 0.8, 4000)
    records = real_over_imaginary(sums.waves(x, (1.0 + 0.2 * rng.standard_normal(4000) - LOW) / (HIGH - LOW), 0.0))
    drawn = np.mean((along.T @ records) ** 2, axis=1) / sums.count
    np.testing.assert_allclose(said, drawn, rtol=0.15)
    even = np.sum(along**2 * (1 - np.tile(sums.privacy, 2))[:, None], axis=0)
    assert np.all(said[:2] > 1.5 * even[:2])  # within the crowd, and at its end
    assert said[2] < said[1]


def test_a_short_branch_is_not_followed_into_the_noise():
    """A faint tail of a fitted mass is no branch: of 24 ends at most one is claimed beyond."""
    beyond = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        long, short = rng.uniform(0, 1, 420), rng.uniform(0.25, 0.65, 180)
        x = np.concatenate([long, short])
        y = np.concatenate([0.2 * long, np.full(180, 2.0)]) + 0.15 * rng.standard_normal(600)
        found = read_branches(density(x, y, seed=seed), 0.05)
        for number in np.unique(found.branch):
            own = found.branch == number
            if np.median(found.positions[own]) > 1.2:
                ends = found.axes[0][found.place[own]]
                beyond += (ends.min() < 0.25 - 0.01) + (ends.max() > 0.65 + 0.01)
    assert beyond <= 1


def test_a_branch_is_lengthened_only_where_records_are():
    rng = np.random.default_rng(1)
    x = rng.uniform(0.3, 0.8, 3000)
    found = fitted(density(x, 1.0 + 0.2 * rng.standard_normal(3000)), np.ones_like)
    places = np.array([0.5, 0.85, 0.95])
    assert found.within(places, np.array([2.0, 0.1, 0.1]), 0.1)[0].tolist() == [True, False, False]
    assert found.within(places, np.array([2.0, 2.0, 2.0]), 0.1)[0].tolist() == [True, True, False]


def test_two_halves_are_joined_and_two_lines_are_not():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 1, 3000)
    halves = [start(wave, (0.0, 0.45)), start(wave, (0.52, 1.0))]
    y = wave(x) + 0.15 * rng.standard_normal(3000)
    releases = [density(x, y, seed=seed) for seed in range(6)]  # whether the gap is closed depends on the noise, too
    assert sum(len(fit_ridges(Sums.of(each), halves, WIDE).solution.ridges) == 1 for each in releases) >= 4
    y = np.where(x < 0.5, 0.5, 1.2) + 0.15 * rng.standard_normal(3000)
    steps = [start(lambda t: 0 * t + 0.5, (0.0, 0.5)), start(lambda t: 0 * t + 1.2, (0.5, 1.0))]
    assert len(fit_ridges(Sums.of(density(x, y)), steps, WIDE).solution.ridges) == 2


def test_what_has_no_mass_is_dropped():
    rng = np.random.default_rng(4)
    x = rng.uniform(0, 1, 2000)
    found = fitted(density(x, 2.0 + 0.2 * rng.standard_normal(2000)), lambda t: 0 * t + 2.0, lambda t: 0 * t - 0.5)
    assert len(found.solution.ridges) == 1
    assert fitted(density(np.full(5, 0.5), np.zeros(5), epsilon=0.05), np.ones_like) is None


def test_units_do_not_matter():
    """The same records in other units of x and y give the same fit, up to the rounding to cells."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 1, 2000)
    y = wave(x) + 0.15 * rng.standard_normal(2000)
    one, other = (solve(Sums.of(density(x, y, stretch=s)), [start(wave)], 0.07) for s in ((1.0, 1.0), (4096.0, 1 / 64)))
    np.testing.assert_allclose(one.ridges[0].position, other.ridges[0].position, atol=1e-6)
    assert one.misfit == pytest.approx(other.misfit, rel=1e-6)


def test_ridges_that_all_prove_too_short_leave_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 2000)
    released = density(x, wave(x) + 0.15 * rng.standard_normal(2000))
    monkeypatch.setattr(ridge_fit, "RIDGES", replace(ridge_fit.RIDGES, shortest=100.0))
    assert fitted(released, wave) is None
    assert fit_ridges(Sums.of(released), [], WIDE) is None
