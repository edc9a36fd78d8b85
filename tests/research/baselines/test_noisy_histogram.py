"""The noisy histogram: counts, sensitivity, peaks, guarantee, and the lines that its proof quotes."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fogline_research.baselines.noisy_histogram as module
from fogline.audit import attack, canary_pairs, replay
from fogline.datasets.simulated import gaussian_mixture4
from fogline.testing import seeded_noise
from fogline_research.baselines.noisy_histogram import (
    _cell_counts,
    _quadratic_offset,
    _separated_peaks,
    noisy_histogram_modes,
)
from fogline_research.metrics import matching_mse

BOX = np.array([[-10.0, 10.0], [-10.0, 10.0]])
OPTIONS = {"epsilon": 1.0, "delta": 1e-5, "bounds": BOX, "bandwidth": 1.0, "n_modes": 4}

any_float = st.floats(allow_nan=True, allow_infinity=True)
record = arrays(np.float64, (1, 2), elements=st.one_of(st.floats(-10, 10), any_float))


@pytest.mark.quick
@given(record)
def test_a_record_counts_in_one_cell_or_in_none(row):
    counts = _cell_counts(row, BOX, (7, 5))
    assert counts.shape == (35,)
    inside = np.isfinite(row).all() and (np.abs(row) <= 10.0).all()
    assert counts.sum() == int(inside)
    assert counts.max() <= 1


@pytest.mark.quick
@given(arrays(np.float64, (6, 2), elements=st.floats(-12, 12)), record)
def test_sensitivity_is_one(rows, row):
    shape = (9, 4)
    difference = _cell_counts(np.vstack([rows, row]), BOX, shape) - _cell_counts(rows, BOX, shape)
    assert np.linalg.norm(difference) <= 1.0


def test_cells_are_row_major_and_hold_both_ends():
    rows = np.array([[-10.0, -10.0], [10.0, 10.0], [-10.0, 10.0], [0.0, 9.9]])
    counts = _cell_counts(rows, BOX, (2, 3)).reshape(2, 3)
    np.testing.assert_array_equal(counts, [[1, 0, 1], [0, 0, 2]])


@pytest.mark.quick
def test_finds_the_papers_modes():
    sample = gaussian_mixture4(5000, random_state=0)
    with seeded_noise(0):
        result = noisy_histogram_modes(sample.X, **OPTIONS)
    assert result.modes.shape == (4, 2)
    assert matching_mse(sample.centers, result.modes) < 0.05
    assert (np.diff(result.heights) <= 0).all()
    true_height = 0.25 / (2 * math.pi * 2.0)  # unit Gaussian smoothed by a unit kernel
    np.testing.assert_allclose(result.heights, true_height, rtol=0.35)


@pytest.mark.quick
def test_system_noise_is_certified_and_seeded_noise_is_not():
    X = gaussian_mixture4(100, random_state=0).X
    guarantee = noisy_histogram_modes(X, **OPTIONS).guarantee
    assert guarantee.certified
    assert guarantee.neighbours == "add-remove"
    assert 0.99 < guarantee.epsilon <= 1.0
    with seeded_noise(0):
        assert not noisy_histogram_modes(X, **OPTIONS).guarantee.certified


def test_noise_of_the_counts_has_its_scale():
    with seeded_noise(1):
        result = noisy_histogram_modes(np.empty((0, 2)), **OPTIONS)
    assert result.counts.shape == (80, 80)
    assert result.counts.std() == pytest.approx(result.noise_scale, rel=0.05)
    assert result.noise_scale == pytest.approx(1 / math.sqrt(2 * result.guarantee.rho))


def in_one_dimension(X):
    return noisy_histogram_modes(X, **(OPTIONS | {"bounds": [(-10, 10)], "n_modes": 2}))


def test_replay_on_all_canaries():
    report = replay(in_one_dimension, canary_pairs([(-10, 10)], neighbours="add-remove"))
    assert report.passed, str(report)
    assert report.largest_ratio == 1


def test_the_count_of_a_cell_does_not_tell_too_much():
    """The likelihood ratio of one record more: the count of its cell."""
    crowd = np.zeros((30, 1))
    more = np.append(crowd, [[9.9]], axis=0)
    seeds = itertools.count()

    def release(X):
        with seeded_noise(next(seeds)):
            return in_one_dimension(X)

    claim = release(crowd).guarantee
    report = attack(release, crowd, more, claim=claim, score=lambda result: result.counts[-1], runs=300)
    assert not report.broken


def test_missing_and_outside_records_change_nothing():
    X = gaussian_mixture4(200, random_state=0).X
    rubbish = np.array([[math.nan, 0.0], [math.inf, 0.0], [11.0, 0.0], [0.0, -1e300]])
    with seeded_noise(2):
        clean = noisy_histogram_modes(X, **OPTIONS)
    with seeded_noise(2):
        dirty = noisy_histogram_modes(np.concatenate([X, rubbish]), **OPTIONS)
    np.testing.assert_array_equal(clean.counts, dirty.counts)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_quadratic_fit_places_a_peak_within_its_cell(d):
    axes = np.meshgrid(*[np.arange(7.0)] * d, indexing="ij")
    centre = 3.0 + np.array([0.3, -0.2, 0.1])[:d]
    bump = -sum((axis - c) ** 2 for axis, c in zip(axes, centre, strict=True))
    bump = bump - (0.5 * (axes[0] - centre[0]) * (axes[-1] - centre[-1]) if d > 1 else 0.0)
    offset = _quadratic_offset(bump, np.full(d, 3))
    np.testing.assert_allclose(3.0 + offset, centre)


def test_a_flat_top_is_left_where_it_is():
    np.testing.assert_array_equal(_quadratic_offset(np.ones((3, 3)), np.array([1, 1])), [0.0, 0.0])


def test_peaks_are_a_bandwidth_apart():
    smooth = np.array([0.0, 5.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0])
    far = _separated_peaks(smooth, np.array([0.25]), 2)
    np.testing.assert_array_equal(far.ravel(), [1, 8])
    near = _separated_peaks(smooth, np.array([0.5]), 2)
    np.testing.assert_array_equal(near.ravel(), [1, 3])


@pytest.mark.parametrize("d", [1, 3])
def test_other_dimensions(d):
    X = np.full((3000, d), 0.25)
    with seeded_noise(0):
        result = noisy_histogram_modes(
            X, epsilon=1.0, delta=1e-5, bounds=[(0, 1)] * d, bandwidth=[0.2] * d, n_modes=1, cells=10
        )
    np.testing.assert_allclose(result.modes, 0.25, atol=0.06)
    assert result.counts.shape == (10,) * d


def test_result_is_frozen():
    with seeded_noise(0), pytest.raises(dataclasses.FrozenInstanceError):
        noisy_histogram_modes([[0.0, 0.0]], **OPTIONS).modes = None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"bounds": [(1, 0), (0, 1)]}, "bounds"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"bandwidth": [1.0, 1.0, 1.0]}, "bandwidth"),
        ({"bandwidth": 1e-3}, "bandwidth is too small"),
        ({"n_modes": 0}, "n_modes"),
        ({"cells": 0}, "cells"),
        ({"cells": [4]}, "cells"),
        ({"cells": 4000}, "cells must be at most"),
    ],
)
def test_bad_input_names_the_parameter(change, message):
    with pytest.raises(ValueError, match=message):
        noisy_histogram_modes([[0.0, 0.0]], **(OPTIONS | change))


def test_the_proof_quotes_lines_that_exist():
    path = Path(module.__file__)
    source = {line.strip() for line in path.read_text().splitlines()}
    proof = path.with_name("noisy_histogram.proof.md").read_text().splitlines()
    quoted = [line.strip() for line in proof if line.startswith("    ")]
    assert len(quoted) == 4
    assert set(quoted) <= source
