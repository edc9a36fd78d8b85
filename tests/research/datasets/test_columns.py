"""Made columns: exact populations, public boxes and lattices, halves of the same difficulty."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fogline_research.datasets.columns import COLUMNS, Law, PointMasses, cell_of, column_named, generator

NAMES = [column.name for column in COLUMNS]


def test_there_are_enough_and_both_halves_have_every_difficulty():
    assert len(set(NAMES)) == len(COLUMNS) >= 26
    counts = Counter((column.kind, column.half) for column in COLUMNS)
    for kind in {column.kind for column in COLUMNS}:
        assert counts[kind, "tune"] == counts[kind, "judge"] >= 2, kind


@pytest.mark.parametrize("column", COLUMNS, ids=NAMES)
def test_draws_follow_the_masses(column):
    assert sum(part.weight for part in column.parts) == pytest.approx(1.0)
    masses = column.cell_masses(4096)
    assert masses.sum() == pytest.approx(1.0)
    assert masses.min() >= 0.0
    n, (low, high) = 20_000, column.box
    x = column.draw(n, generator("test", column.name))
    assert x.shape == (n, 1)
    assert low <= x.min() <= x.max() <= high
    found = np.bincount(cell_of(x[:, 0], low, high, 4096), minlength=4096) / n
    # Kolmogorov-Smirnov: 1.95 / sqrt(n) has a chance of 0.001; 50 columns, one fixed seed
    assert np.abs(np.cumsum(found - masses)).max() < 1.95 / np.sqrt(n)


@pytest.mark.parametrize("column", COLUMNS, ids=NAMES)
def test_cells_nest(column):
    fine, coarse = column.cell_masses(4096), column.cell_masses(64)
    np.testing.assert_allclose(fine.reshape(64, 64).sum(axis=1), coarse, atol=1e-9)


@pytest.mark.parametrize("column", [column for column in COLUMNS if column.step], ids=lambda column: column.name)
def test_a_public_step_is_kept(column):
    assert column.steps == (column.step,)
    assert column.atomic
    steps = (column.draw(2000, generator("lattice", column.name))[:, 0] - column.box[0]) / column.step
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)


def test_values_beyond_a_wall_are_recorded_at_the_wall():
    column = column_named("Cauchy clipped to -20:20")
    assert column.atomic
    x = column.draw(50_000, np.random.default_rng(0))[:, 0]
    tail = np.arctan(1 / 20) / np.pi  # P(Cauchy > 20)
    assert np.mean(x == 20.0) == pytest.approx(tail, rel=0.15)
    assert column.cell_masses(4096)[-1] > tail > 0.5 * column.cell_masses(4096)[-1]


def test_parts_say_what_they_are():
    atoms = PointMasses.lattice(1.0, np.array([1.0, 3.0]), low=2.0, step=0.5)
    np.testing.assert_allclose(atoms.values, [2.0, 2.5])
    np.testing.assert_allclose(atoms.probabilities, [0.25, 0.75])
    assert isinstance(column_named("uniform").parts[0], Law)
    assert not column_named("uniform").atomic
    with pytest.raises(KeyError, match="no made column"):
        column_named("nobody")


def test_the_upper_bound_belongs_to_the_last_cell():
    np.testing.assert_array_equal(cell_of(np.array([-1.0, 0.0, 0.999, 1.0, 7.0]), 0.0, 1.0, 4), [0, 0, 3, 3, 3])
