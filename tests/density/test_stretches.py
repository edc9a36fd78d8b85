"""Emptiness along one column, in stretches: exact sums, joint draws, and what a narrow bucket without records is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fogline import DensitySketch, PrivacyWarning
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.density.posterior.masses import BucketPosterior, MassSettings
from fogline.density.posterior.stretches import Stretches
from fogline.testing import seeded_noise


@pytest.fixture
def chain():
    rng = np.random.default_rng(3)
    return Stretches(rng.lognormal(0, 2, 8), rng.random((7, 2)), np.array([0.3, 0.7]))


def weigh(chain, law):
    """Weights of all divisions of eight places into two states, by their definition."""
    share, found = chain.shares[law], {}
    for states in itertools.product((0, 1), repeat=8):
        weight = np.prod(chain.ratio[np.array(states) == 1]) * (share if states[0] else 1 - share)
        for before, after, same in zip(states, states[1:], chain.keep[:, law], strict=False):
            enter = share if after else 1 - share
            weight *= enter + (1 - enter) * same if before == after else enter * (1 - same)
        found[states] = weight
    return found


def test_stretches_are_summed_over_exactly(chain):
    for law in (0, 1):
        weights = weigh(chain, law)
        assert chain.evidence[law] == pytest.approx(np.log(sum(weights.values())))
        only = np.where(np.arange(2) == law, 0.0, -1e3)
        second = sum(weight * np.array(states) for states, weight in weights.items()) / sum(weights.values())
        assert chain.probability(only) == pytest.approx(second)


def test_laws_are_averaged_by_their_evidence(chain):
    evidence = np.log([0.25, 0.75])
    parts = [chain.probability(np.where(np.arange(2) == law, 0.0, -1e3)) for law in (0, 1)]
    assert chain.probability(evidence) == pytest.approx(0.25 * parts[0] + 0.75 * parts[1])


def test_draws_have_the_probabilities_of_all_divisions(chain):
    """Of whole rows of states, not only of single places."""
    only, draws = np.array([0.0, -1e3]), 40_000
    states = chain.draws(draws, only, np.random.default_rng(0))
    weights = weigh(chain, 0)
    total = sum(weights.values())
    for row, weight in sorted(weights.items(), key=lambda pair: -pair[1])[:6]:
        share, expected = np.mean(np.all(np.array(row) == states.T, axis=1)), weight / total
        assert share == pytest.approx(expected, abs=5 * np.sqrt(expected / draws))
    assert states.mean(axis=1) == pytest.approx(chain.probability(only), abs=0.02)


def single_leaves(mean, seed=0):
    spec = LeafSpec.plan([(0, 1)], leaves=[len(mean)])
    counts = np.random.default_rng(seed).poisson(mean)
    stage = BucketCounts(np.array([[[k, k + 1]] for k in range(len(mean))]), counts, Noise("laplace", 0.3))
    return LeafRelease(spec, stage, stage)


def test_a_narrow_bucket_without_records_is_not_taken_for_empty():
    """Where one record is expected per leaf, a third of all leaves have none: chance, and no gap."""
    even = BucketPosterior(single_leaves(np.ones(1024)))
    assert even.fit.empty.max() < 0.1
    gap = BucketPosterior(single_leaves(np.where(np.arange(1024) // 256 == 2, 0.0, 4 / 3))).fit.empty
    assert gap[520:760].min() > 0.9
    assert gap[:500].max() < 0.1


def test_the_estimate_and_the_draws_follow_both_laws_of_emptiness():
    release = single_leaves(np.where(np.arange(256) < 64, 5.0, 0.0))
    both, stretches = (
        BucketPosterior(release),
        BucketPosterior(release, MassSettings(thinning=2.5, evidence=4.0, doubt=0.0)),
    )
    other = both._other
    assert other is not None
    assert other.fit.stretches is None
    assert both.expected == pytest.approx(0.5 * stretches.expected + 0.5 * other.expected)
    for target in ("population", "records"):
        drawn = both.bucket_draws(target)
        assert drawn.shape == (256, pytest.approx(both.settings.draws, abs=3))
        assert drawn[:, -other.settings.draws :] == pytest.approx(other.bucket_draws(target))


def test_a_spike_has_no_records_beside_it_by_the_noise_of_the_pilot():
    """The pilot counts a spike together with its empty surroundings; its noise is not put there."""
    spec, counts = LeafSpec.plan([(0, 1)], leaves=[64]), np.zeros(64, dtype=int)
    counts[20] = 5000
    fine = BucketCounts(np.array([[[k, k + 1]] for k in range(64)]), counts, Noise("laplace", 1.0))
    pilot = BucketCounts(np.array([[[0, 32]], [[32, 64]]]), np.array([5012, 0]), Noise("laplace", 7.0))
    records = BucketPosterior(LeafRelease(spec, pilot, fine)).bucket_draws("records")
    assert np.median((records[np.arange(64) != 20] > 0).sum(axis=0)) == 0
    assert records[20].mean() == pytest.approx(5000, abs=6)


def test_a_draw_that_fills_an_empty_bucket_has_no_more_than_its_count_allows():
    """Counts of empty buckets do not bind the field: one draw in hundreds had twenty times all records at a wall."""
    x = np.random.default_rng(1).normal(26, 8, 1500)
    with seeded_noise(1):
        mean = DensitySketch([(0, 60)], features="leaves").update(x[:, None]).release(epsilon=10.0).mean()
    sampling = x.std() / np.sqrt(len(x))
    assert sampling < mean.standard_error < 1.5 * sampling


def test_a_probability_is_never_beyond_1():
    """By rounding it was, and powers of the share that is filled were nan: the reading was an even density."""
    lengths, shares = tuple(np.geomspace(0.003, 1.0, 6)), (0.02, 0.1, 0.3, 0.6, 0.9, 0.98)
    for places in range(20, 60):
        chain = Stretches.of(np.full(places, np.exp(40.0)), np.full(places - 1, 1 / places), lengths, shares)
        assert chain.probability(chain.evidence + 15 * chain.shares).max() <= 1


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(("full", "scale", "pilot"), [(10**12, 0.05, None), (10**15, 0.125, None), (0, 1.0, 10**12)])
def test_extreme_counts_are_read_without_overflow(kind, full, scale, pilot):
    spec, counts = LeafSpec.plan([(0, 1)], leaves=[64]), np.zeros(64, dtype=int)
    counts[30:34] = full
    fine = BucketCounts(np.array([[[k, k + 1]] for k in range(64)]), counts, Noise(kind, scale))
    halves = BucketCounts(np.array([[[0, 32]], [[32, 64]]]), np.array([pilot, 0]), Noise(kind, 0.2)) if pilot else fine
    posterior = BucketPosterior(LeafRelease(spec, halves, fine))
    for part in (posterior.expected, *(posterior.bucket_draws(target) for target in ("population", "records"))):
        assert np.isfinite(part).all()
        assert part.min() >= 0
    if full:
        assert posterior.expected[30:34].sum() == pytest.approx(4 * full, rel=0.05)


def test_nearly_all_budget_keeps_single_records_far_out():
    """With hardly any noise a count of 1 is a record: draws had one of fourteen taken for noise."""
    x = np.random.default_rng(5).normal(0.45, 0.1, 300)
    with seeded_noise(1), pytest.warns(PrivacyWarning):
        release = DensitySketch([(0, 1)], features="leaves").update(x[:, None]).release(epsilon=100.0).leaves
    stretches = BucketPosterior(release, MassSettings(thinning=2.5, evidence=4.0, doubt=0.0))
    totals = stretches.bucket_draws("records").sum(axis=0)
    assert totals.mean() == pytest.approx(300, abs=5)
