"""The test of difference: its level holds, it has power, it sees released values only."""

from __future__ import annotations

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.density.comparison import compare_shapes
from fogline.testing import seeded_noise

BOXES = {1: [(0, 10)], 2: [(0, 10), (0, 10)]}


def density(rows, d=1, epsilon=1.0, **options):
    return DensitySketch(BOXES[d], **options).update(rows).release(epsilon=epsilon, delta=1e-6)


def p_values(first, second, runs, d=1, simulations=99):
    with seeded_noise(11):
        return np.array(
            [
                compare_shapes(density(first(), d), density(second(), d), simulations=simulations).p_value
                for _ in range(runs)
            ]
        )


def test_equal_shapes_are_told_apart_no_more_often_than_the_level_says():
    rng = np.random.default_rng(3)
    two_bumps = lambda n: rng.normal(np.where(rng.random((n, 1)) < 0.3, 3, 7), 0.7)  # noqa: E731
    p = p_values(lambda: two_bumps(2000), lambda: two_bumps(500), 120)
    # binomial(120, 0.05): more than 13 with probability 0.003; binomial(120, 0.2): more than 37 with 0.001
    assert (p <= 0.05).sum() <= 13
    assert (p <= 0.2).sum() <= 37
    assert (p <= 0.5).sum() >= 30  # and not because nothing is ever seen


@pytest.mark.parametrize(
    ("other", "least"),
    [
        (lambda rng: rng.normal(5.4, 1, (1500, 1)), 0.9),  # shifted
        (lambda rng: rng.normal(5, 1.4, (1500, 1)), 0.9),  # wider
        (lambda rng: rng.normal(np.where(rng.random((1500, 1)) < 0.5, 4, 6), 0.6), 0.9),  # split
    ],
    ids=["shifted", "wider", "split"],
)
def test_power(other, least):
    rng = np.random.default_rng(5)
    p = p_values(lambda: rng.normal(5, 1, (1500, 1)), lambda: other(rng), 20)
    assert (p <= 0.05).mean() >= least


def test_two_dimensions():
    rng = np.random.default_rng(7)
    same = p_values(lambda: rng.normal(5, 1, (1500, 2)), lambda: rng.normal(5, 1, (900, 2)), 8, d=2, simulations=39)
    assert (same <= 0.05).sum() <= 3
    tilted = lambda: rng.normal(5, 1, (1500, 2)) @ np.array([[1, 0.5], [0, 0.8]]) + [0, -1.5]  # noqa: E731
    apart = p_values(lambda: rng.normal(5, 1, (1500, 2)), tilted, 3, d=2, simulations=39)
    assert (apart <= 0.05).all()


def test_what_it_says():
    rng = np.random.default_rng(0)
    with seeded_noise(1):
        left, right = density(rng.normal(3, 0.5, (4000, 1))), density(rng.normal(7, 0.5, (4000, 1)))
    found = compare_shapes(left, right)
    assert found.p_value == 0.001
    assert found.differs(0.01)
    assert min(abs(found.place[0] - 3), abs(found.place[0] - 7)) < 0.5
    assert np.sign(found.difference) == (1 if found.place[0] < 5 else -1)
    assert compare_shapes(left, right) == found or compare_shapes(left, right).p_value == found.p_value
    assert compare_shapes(left, left).p_value == 1.0


def test_too_few_records_say_so():
    with seeded_noise(1):
        few, many = density(np.full((3, 1), 5.0)), density(np.full((3000, 1), 2.0))
    found = compare_shapes(few, many)
    assert found.p_value == 1.0
    assert "too few records" in found.message
    assert not found.differs()


def test_bad_input():
    with seeded_noise(1):
        one = density(np.zeros((5, 1)))
        other = density(np.zeros((5, 1)), bandwidths=0.1)
        wide = DensitySketch([(0, 1)] * 4, features=32).release(epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="scales"):
        compare_shapes(one, other)
    with pytest.raises(ValueError, match="second has random features"):
        compare_shapes(one, wide)
    with pytest.raises(TypeError, match="first must be a PrivateDensity"):
        compare_shapes(np.zeros(3), one)
    with pytest.raises(ValueError, match="simulations"):
        compare_shapes(one, one, simulations=5)
