"""Two releases on leaves: a test that keeps its level, and distances with intervals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fogline import DensitySketch, private_strata
from fogline.density.comparison import CommonCells, LeafTest, compare_shapes
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.testing import seeded_noise

BOUNDS = [(0.0, 60.0)]


def released(x, *, seed, epsilon=1.0, features="leaves", bounds=BOUNDS, **more):
    with seeded_noise(seed):
        rows = np.asarray(x, dtype=np.float64).reshape(len(x), -1)
        return DensitySketch(bounds, features=features).update(rows).release(epsilon=epsilon, **more)


def stays(seed, n, scale=3.0, zeros=0.3):
    """Lengths of stay: some leave on the same day, the others have a skewed law."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < zeros, 0.0, rng.gamma(2, scale, n))


def test_groups_of_one_shape_are_rarely_told_apart():
    found = []
    for seed in range(12):
        first, second = released(stays(seed, 1500), seed=seed), released(stays(seed + 100, 700), seed=seed + 100)
        found.append(compare_shapes(first, second, simulations=199).p_value)
    assert np.mean(np.array(found) <= 0.05) <= 0.25  # 3 of 12: chance 0.02 at the level itself
    assert np.max(found) > 0.3


def test_what_lies_inside_a_bucket_plays_no_part():
    """Buckets of both groups are added up to common cells; records may lie anywhere inside one."""
    spec = LeafSpec.plan([(0.0, 8.0)], leaves=[8])

    def counted(edges, counts):
        boxes = np.array([[pair] for pair in pairwise(edges)])
        stage = BucketCounts(boxes, np.array(counts), Noise("laplace", 1.0))
        return LeafRelease(spec, stage, stage)

    # One density, all of it in the first of four leaves: the coarse buckets of the second group cannot show that.
    fine, coarse = counted([0, 1, 2, 4, 8], [3000, 0, 0, 1000]), counted([0, 4, 8], [3000, 1000])
    cells = CommonCells.of(fine, coarse)
    assert cells.size == 2
    assert cells.sums(fine.counts.counts[None].astype(float), 0).tolist() == [[3000.0, 1000.0]]
    even = np.full(8, 1 / 8)  # a pooled estimate that is wrong inside the bucket
    p_value, statistic, _ = LeafTest((fine, coarse), even, even[None]).run(99)
    assert p_value > 0.3
    assert statistic < 1.0


def test_groups_of_different_shape_are_told_apart_with_distances():
    first, second = released(stays(1, 4000), seed=1), released(stays(2, 4000, scale=4.0), seed=2)
    found = first.compare(second)
    assert found.differs(0.01)
    assert found.wasserstein.low[0] < 0.7 * 2.0 < found.wasserstein.high[0]  # means 4.2 and 5.6, ordered
    assert 0 < found.total_variation.low < found.total_variation.high < 0.5
    assert 0 < found.hellinger.high < 0.5
    assert found.test.place.shape == (1,)
    assert "total variation" in str(found)


def test_a_density_does_not_differ_from_itself():
    density = released(stays(3, 1000), seed=3)
    found = density.compare(density)
    assert found.p_value > 0.5
    assert found.total_variation.value == found.wasserstein.value[0] == 0.0


def test_intervals_of_equal_densities_begin_at_zero():
    first, second = released(stays(4, 2000), seed=4), released(stays(5, 2000), seed=5)
    found = first.compare(second)
    if not found.differs(0.05):
        assert found.total_variation.low == found.hellinger.low == found.wasserstein.low[0] == 0.0
    assert found.total_variation.value < 0.1


def test_two_columns_and_fourier_sums():
    rng = np.random.default_rng(6)
    shapes = [rng.normal((3, 5), 1, (1500, 2)), rng.normal((4, 5), 1, (1500, 2))]
    box = [(0.0, 10.0), (0.0, 10.0)]
    first, second = (released(x, seed=i, bounds=box) for i, x in enumerate(shapes))
    found = first.compare(second, simulations=99)
    assert found.p_value == 0.01
    assert found.wasserstein.value[0] == pytest.approx(1.0, abs=0.3)
    assert found.wasserstein.value[1] < 0.2
    sums = [released(x[:, 0], seed=i, bounds=box[:1], features="grid", delta=1e-6) for i, x in enumerate(shapes)]
    assert sums[0].compare(sums[1]).p_value == 0.001


def test_strata_of_leaves_are_compared():
    rng = np.random.default_rng(7)
    sex = rng.choice(["f", "m"], 4000)
    height = np.where(sex == "f", rng.normal(165, 7, 4000), rng.normal(178, 7, 4000))
    with seeded_noise(7):
        strata = private_strata(
            height, sex, categories=["f", "m", "x"], others=None, epsilon=1.0, bounds=[(120, 220)], features="leaves"
        )
    assert strata.compare("f", "m").p_value == 0.001
    assert "too few records" in strata.compare("f", "x").message


def test_different_specifications_are_refused():
    first = released(stays(8, 200), seed=8)
    other = released(stays(8, 200), seed=8, bounds=[(0.0, 50.0)])
    with pytest.raises(ValueError, match="bounds"):
        first.compare(other)
    with pytest.raises(TypeError, match="second must be a PrivateDensity"):
        first.compare(3)
