"""What the draws of a posterior must allow for: full buckets, whole records, cut leaves, walls, faint backgrounds."""

from dataclasses import replace

import numpy as np
import pytest

from fogline import DensitySketch
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.density.posterior.estimates import whole_records
from fogline.density.posterior.likelihood import CountLaw
from fogline.density.posterior.masses import BucketPosterior, MassSettings, _records_given
from fogline.density.posterior.posterior import Posterior
from fogline.density.posterior.released_sums import ReleasedSums
from fogline.testing import seeded_noise

LAPLACE = Noise("laplace", 1.2)


def stage_of(edges, counts, noise=LAPLACE):
    edges = np.asarray(edges)
    boxes = np.stack([edges[:-1], edges[1:]], axis=1)[:, None, :]
    return BucketCounts(boxes, np.asarray(counts, dtype=np.int64), noise)


def read(counts, *, pilot=None, leaves=None, bounds=(0.0, 1.0), noise=LAPLACE):
    """Posterior of counts in buckets of equal size; the pilot says nothing unless it is given."""
    size = leaves or len(counts)
    spec = LeafSpec.plan([bounds], leaves=[size])
    stage = stage_of(np.linspace(0, size, len(counts) + 1).astype(int), counts, noise)
    nothing = stage_of([0, size], [sum(counts)], Noise("laplace", 1e6))
    return LeafRelease(spec, pilot or nothing, stage)


# -- records given released counts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("intensity", [20.0, 3000.0, 1e6])
def test_records_given_a_count_have_the_law_of_the_noise(intensity):
    """Where sampling says nothing beside the count, records lie around it as the noise does: for full buckets too."""
    law, rng = CountLaw(LAPLACE), np.random.default_rng(0)
    drawn = _records_given(np.array([intensity]), np.full((1, 20_000), intensity), law, rng)[0]
    if intensity > 1000:
        expected = LAPLACE.sd
    else:  # the product of both laws, by brute force
        n = np.arange(200.0)
        log_p = -((n - intensity) ** 2) / (2 * intensity) - np.abs(n - intensity) / law.scale
        weights = np.exp(log_p) / np.exp(log_p).sum()
        expected = np.sqrt(weights @ (n - intensity) ** 2)
    assert drawn.std() == pytest.approx(expected, rel=0.06)
    assert drawn.mean() == pytest.approx(intensity, abs=0.1)


def test_intervals_for_a_large_table_are_not_points():
    posterior = Posterior.of_leaves(read([25_000, 40_000, 9000, 21_000, 5000]))
    found = posterior.probability([(0.0, 0.2)], target="records")
    assert 2e-5 < found.high - found.low < 3e-4


def test_ends_for_the_records_are_whole_records():
    posterior = Posterior.of_leaves(read([300, 450, 200, 50, 1, 0, 0, 0], leaves=64))
    count = posterior.count.value
    for found in (posterior.probability([(0.5, 0.7)], target="records"), posterior.cdf([0.3, 0.6], target="records")):
        for end in (found.low, found.high):
            off = [
                np.abs(whole - np.round(whole)) for whole in (np.asarray(end) * count, (1 - np.asarray(end)) * count)
            ]
            assert np.minimum(*off).max() < 1e-6
    assert posterior.probability(target="records").interval == (1.0, 1.0)
    assert posterior.probability([(0.75, 0.8)], target="records").low == 0.0


@pytest.mark.parametrize("count", [1000.0, 1000.032, 999.97])
def test_an_end_within_a_record_of_none_or_all_is_none_or_all(count):
    """The number of all records is an estimate, and need not be whole: 1000.032 less 1000 is none, not .032."""
    posterior = Posterior.of_leaves(read([300, 450, 200, 50], leaves=64))
    asked = posterior.probability([(0.1, 0.7)], target="records")
    for records in (0.3, 0.5, 0.9):
        moved = whole_records(replace(asked, low=records / count, high=1 - records / count), count)
        assert moved.interval == (0.0, 1.0)
    for low, high in ((0.1234567, 0.8765432), (0.4, 0.5)):
        moved = whole_records(replace(asked, value=0.45, low=low, high=high), count)
        assert low - 1.001 / count < moved.low <= low
        assert high <= moved.high < high + 1.001 / count


# -- the pilot ------------------------------------------------------------------------------------------------------


def test_a_pilot_that_knows_corrects_the_sum_of_many_buckets():
    counts = np.full(64, 103)  # each has three records of noise, all of one sign: their sum is off by 192
    exact = stage_of([0, 32, 64], [3200, 3200], Noise("laplace", 0.5))
    for pilot, total in ((None, 64 * 103), (exact, 6400)):
        buckets = BucketPosterior(read(counts, pilot=pilot))
        assert buckets.bucket_draws("records").sum(axis=0).mean() == pytest.approx(total, abs=6)
    spread = [BucketPosterior(read(counts, pilot=p)).bucket_draws("records").sum(axis=0).std() for p in (None, exact)]
    assert spread[1] < 0.25 * spread[0]


def test_a_pilot_with_much_noise_moves_nothing():
    counts = np.full(16, 100)
    noisy = stage_of([0, 8, 16], [0, 9000], Noise("laplace", 1e5))
    records = [BucketPosterior(read(counts, pilot=p)).bucket_draws("records").mean(axis=1) for p in (None, noisy)]
    assert np.allclose(*records, atol=0.5)


def test_pilot_regions_are_the_least_that_both_stages_counted():
    spec = LeafSpec.plan([(0.0, 1.0)], leaves=[16])
    pilot, counts = stage_of([0, 4, 8, 12, 16], [1, 1, 1, 1]), stage_of([0, 8, 9, 12, 14, 16], [2, 1, 0, 0, 1])
    sums = ReleasedSums.of(LeafRelease(spec, pilot, counts))
    boxes, buckets = sums.pilot_region, sums.region
    assert boxes[0] == boxes[1] == buckets[0]  # a bucket of two of the pilot's cells
    assert boxes[2] == buckets[1] == buckets[2] != buckets[0]  # a cell of two buckets
    assert boxes[3] == buckets[3] == buckets[4]
    assert len(set(boxes)) == 3


def test_sums_of_both_stages_are_those_of_least_squares():
    """Against the normal equations written out: counts, and the variance of any sum of them."""
    spec = LeafSpec.plan([(0.0, 1.0)], leaves=[16])
    pilot = stage_of([0, 4, 8, 12, 16], [40, 31, 22, 9], Noise("gaussian", 6.0))
    counts = stage_of([0, 8, 9, 10, 12, 14, 16], [60, 9, 4, 12, 1, 5], Noise("gaussian", 2.0))
    sums = ReleasedSums.of(LeafRelease(spec, pilot, counts))
    pooled = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]])  # the least regions of both
    seen, noise = np.array([71.0, 22.0, 9.0]), np.diag([2 * 36.0, 36.0, 36.0])
    covariance = np.linalg.inv(np.eye(6) / 4 + pooled.T @ np.linalg.inv(noise) @ pooled)
    wanted = covariance @ (counts.counts / 4 + pooled.T @ np.linalg.inv(noise) @ seen)
    assert np.allclose(sums.counts, wanted)
    for chosen in ([0], [1, 2], [1, 2, 3, 4], [0, 1, 2, 3, 4, 5]):
        mask = np.isin(np.arange(6), chosen)
        assert sums.variance(mask) == pytest.approx(mask @ covariance @ mask)
        assert sums.variances(mask.astype(int))[1:] == pytest.approx([mask @ covariance @ mask])


def test_one_stage_that_stands_for_both_is_counted_once():
    stage = stage_of(np.arange(9), [5, 9, 2, 7, 1, 0, 3, 8])
    sums = ReleasedSums.of(LeafRelease(LeafSpec.plan([(0.0, 1.0)], leaves=[8]), stage, stage))
    assert sums.counts.tolist() == stage.counts.tolist()
    assert sums.variance(np.arange(8)) == pytest.approx(8 * LAPLACE.variance)


@pytest.mark.parametrize("d", [1, 2])
def test_the_population_is_read_from_both_stages(d):
    """Noise of one sign in all buckets of one half: only the pilot can tell."""
    cells = np.stack(np.unravel_index(np.arange(64), (64,) if d == 1 else (8, 8)), axis=1)
    boxes = np.stack([cells, cells + 1], axis=-1).astype(np.int64)
    low = cells[:, 0] < (32 if d == 1 else 4)
    spec = LeafSpec.plan([(0.0, 1.0)] * d, leaves=[64] if d == 1 else [8, 8])
    counts = BucketCounts(boxes, np.where(low, 53, 50).astype(np.int64), Noise("laplace", 4.0))
    half = np.array([[[0, 32]], [[32, 64]]]) if d == 1 else np.array([[[0, 4], [0, 8]], [[4, 8], [0, 8]]])
    shares = []
    for noise in (1e6, 1.0):
        pilot = BucketCounts(half, np.array([1600, 1600]), Noise("laplace", noise))
        settings = MassSettings(draws=10)
        expected = BucketPosterior(LeafRelease(spec, pilot, counts), settings).expected
        shares.append(float(expected[low].sum() / expected.sum()))
    assert shares[0] > 0.508
    assert shares[1] == pytest.approx(0.5, abs=0.004)


# -- inside a leaf --------------------------------------------------------------------------------------------------


def test_a_cut_leaf_that_holds_much_is_not_taken_to_be_even():
    counts = np.zeros(64, dtype=int)
    counts[20:26] = 20_000
    posterior = Posterior.of_leaves(read(counts))
    cut, whole = (posterior.probability([(0.0, end / 64)], target="records") for end in (22.5, 22.0))
    assert cut.high - cut.low > 0.02  # six parts in a hundred of a sixth, twice to either side
    assert whole.high - whole.low < 0.001


def test_data_within_a_leaf_of_the_wall_may_be_no_heap():
    """All lie in the first leaf: zeros, or an exponential far narrower than it; the mean allows for both."""
    x = np.random.default_rng(2).exponential(20.0, 20_000)
    with seeded_noise(4):
        density = DensitySketch([(0, 1e6)], features="leaves").update(x[:, None]).release(epsilon=1.0)
    width = 1e6 / 4096
    assert (x < width).all()
    found = density.mean(target="records")
    assert found.low <= 1.0
    assert 0.8 * width < found.high < 1.5 * width


# -- buckets that look empty ----------------------------------------------------------------------------------------


def test_many_buckets_that_look_empty_may_hold_a_little_together():
    counts = np.zeros(128, dtype=int)
    counts[0] = 300
    counts[1:] = np.tile([1, 0, 1, -1, 0, 2, 0], 19)[:127]  # a sum of 54 where the noise has a deviation of 18
    buckets = BucketPosterior(read(counts))
    assert buckets.fit.empty[10:].min() > 0.5
    share = Posterior.of_leaves(read(counts)).probability([(0.25, 1.0)])
    assert share.value < 0.1
    assert share.high > counts[32:].sum() / counts.sum()  # the released sum itself is not ruled out


def test_a_draw_that_is_not_empty_is_whole():
    """The estimate is thinned beyond the probability of being empty; the mean of the draws is not."""
    seen = 0
    for seed in range(8):
        noise = np.random.default_rng(seed).laplace(0, 12, 40)
        counts = np.round(900 * np.exp(-np.arange(40) / 5.0) + noise).astype(int)
        buckets = BucketPosterior(read(counts, noise=Noise("laplace", 12.0)))
        doubtful = (buckets.fit.empty > 0.3) & (buckets.fit.empty < 0.9)
        seen += int(doubtful.sum())
        drawn = buckets.bucket_draws("population").mean(axis=1)
        assert (drawn > 1.1 * buckets.expected)[doubtful].all()
    assert seen >= 3


# -- what is said ---------------------------------------------------------------------------------------------------


def test_a_range_far_too_wide_is_told_with_the_way_out():
    rng = np.random.default_rng(3)
    for values, bounds, told in (
        (rng.normal(0.5, 0.1, 3000), (-1e6, 1e6), True),
        (rng.normal(0.0, 0.1, 3000), (-1e6, 1e6), True),
        (np.zeros(3000), (0.0, 10.0), True),
        (rng.normal(0.5, 0.1, 3000), (0.0, 1.0), False),
        (np.where(rng.random(3000) < 0.6, 0.0, rng.random(3000)), (0.0, 1.0), False),
    ):
        with seeded_noise(1):
            density = DensitySketch([bounds], features="leaves").update(values[:, None]).release(epsilon=1.0)
        assert ("fogline bounds" in density.message) == told


def test_a_budget_too_small_to_see_anything_says_so_and_covers():
    x = np.random.default_rng(5).normal(5, 1, 1000)
    with seeded_noise(3):
        density = DensitySketch([(0, 10)], features="leaves").update(x[:, None]).release(epsilon=1e-4)
    assert "may be none" in density.message
    share, mean = density.probability([(4, 6)]), density.mean()
    assert share.low < 0.68 < share.high
    assert mean.low < 5 < mean.high
    assert mean.high - mean.low > 5
