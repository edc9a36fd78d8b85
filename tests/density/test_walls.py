"""Records that gather at a wall are told, and noise does not make them up."""

from __future__ import annotations

import numpy as np
import pytest

from fogline import DensitySketch, PrivateModes
from fogline.testing import seeded_noise


def released(X, bounds, seed=0):
    with seeded_noise(seed):
        return DensitySketch(bounds).update(X).release(epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize(("high", "end"), [(False, "low"), (True, "high")])
def test_an_end_where_records_gather_is_named(high, end):
    X = np.random.default_rng(0).exponential(1.0, size=(3000, 1))
    table = released(10 - X if high else X, [(0, 10)]).modes()
    assert len(table.positions) == 0
    assert f"densest at the {end} end of column 1" in table.message


def test_a_group_at_a_wall_is_told_beside_the_modes_that_are_found():
    rng = np.random.default_rng(0)
    stays = np.column_stack([rng.normal(3, 0.7, 4000), rng.exponential(1.0, 4000)])
    table = released(np.concatenate([stays, rng.normal(7, 0.7, (1000, 2))]), [(0, 10), (0, 10)]).modes()
    np.testing.assert_allclose(table.positions, [[7, 7]], atol=0.3)
    assert "densest at the low end of column 2, around (" in table.message


def test_a_corner_has_two_walls():
    X = np.random.default_rng(0).exponential(1.0, size=(4000, 2))
    assert "the low end of column 1 and the low end of column 2" in released(X, [(0, 10), (0, 10)]).modes().message


def test_a_mode_that_was_found_close_to_a_wall_needs_no_word():
    X = np.random.default_rng(0).normal(1.5, 0.8, size=(3000, 1))
    table = released(X, [(0, 10)]).modes()
    assert len(table.positions) == 1
    assert table.message == ""


@pytest.mark.parametrize("n", [0, 5000])
@pytest.mark.parametrize("d", [1, 2])
def test_noise_and_even_data_gather_nowhere(n, d):
    rng = np.random.default_rng(n + d)
    for seed in range(8):
        table = released(rng.uniform(0, 1, size=(n, d)), [(0, 1)] * d, seed).modes()
        assert "densest" not in table.message


def test_the_estimator_says_it_too():
    X = np.random.default_rng(0).exponential(1.0, size=(3000, 1))
    found = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(0, 10)]).fit(X)
    assert found.message_.startswith("nothing stands above the fog")
    assert "a shorter range of that column, or its logarithm, may show one" in found.message_
