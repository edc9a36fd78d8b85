"""The release on leaves: replays hold for both relations, its own kinds of faults are seen, no attack beats it."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from canaries import by_turns, first_failure

from fogline import DensitySketch, private_strata
from fogline.audit import canary_pairs, random_pairs, replay, stage_attack
from fogline.density.leaves import LeafSpec
from fogline.mechanisms import discrete_laplace
from fogline.queries import bucket_counts
from fogline.releases import leaf_release
from fogline.releases.terms import ReleaseTerms

BOX = [(-3.0, 10.0), (0.0, 5.0), (100.0, 101.0)]
RELATIONS = ["add-remove", "replace"]
NAMES = {
    "empty and one record",
    "one record that changes",
    "corner 1",
    "missing",
    "far outside",
    "opposite corners",
    "all missing, and one in the middle",
}


def releaser(d, relation, *, steps=None, **terms):
    given = {"epsilon": 1.0, "neighbours": relation, **terms}
    return lambda data: DensitySketch(BOX[:d], features="leaves", steps=steps).update(data).release(**given)


def chosen_pairs(d, relation, **more):
    pairs = canary_pairs(BOX[:d], neighbours=relation, n=40, block=None, **more)
    return [pair for pair in pairs if pair.name in NAMES]


# -- replay --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_both_stages_on_canaries(d, relation):
    pairs = canary_pairs(BOX[:1], neighbours=relation, n=40, block=None) if d == 1 else chosen_pairs(d, relation)
    pairs = {1: by_turns(pairs, relation), 2: pairs[::2], 3: pairs[:2]}[d]
    report = replay(releaser(d, relation), pairs)
    assert report.passed, str(report)
    assert {pair.calls for pair in report.pairs} == {2}
    assert report.largest_ratio == 1.0


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("d", "pairs"), [(1, 12), (2, 3), (3, 1)])
def test_merged_and_lattice_sketches_on_random_pairs(d, pairs, relation):
    """Records that merge, that are taken back, and a first axis of rounded values."""

    def release(data):
        half = len(data) // 2
        parts = [
            DensitySketch(BOX[:d], features="leaves", steps=[0.5, None, None][:d]).update(part)
            for part in (data[:half], data[half:])
        ]
        whole = parts[0].merge(parts[1]).update(data[:1]).subtract(data[:1])
        return whole.release(epsilon=0.7, neighbours=relation)

    report = replay(release, random_pairs(BOX[:d], neighbours=relation, pairs=pairs, seed=d))
    assert report.passed, str(report)
    assert 0.5 <= report.largest_ratio <= 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "terms",
    [{"max_contributions": 3}, {"epsilon": 0.001, "delta": 1e-9}],
    ids=["three records", "next to nothing"],
)
def test_other_terms(terms, relation):
    pairs = chosen_pairs(1, relation, max_contributions=terms.get("max_contributions", 1))
    report = replay(releaser(1, relation, **terms), pairs)
    assert report.passed, str(report)
    assert 0.5 <= report.largest_ratio <= 1


def gaussian(relation, rho=0.5):
    """A promise in rho, which asks for Gaussian noise."""
    terms = ReleaseTerms.checked(None, 1e-5, relation, 1, rho=rho)
    return lambda data: DensitySketch(BOX[:1], features="leaves").update(data).release_under(terms)


@pytest.mark.parametrize("relation", RELATIONS)
def test_gaussian_stages(relation):
    report = replay(gaussian(relation), chosen_pairs(1, relation))
    assert report.passed, str(report)
    assert 0.999 < report.largest_ratio <= 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_strata_on_leaves(relation):
    def release(data):
        labels = np.where(np.isnan(data[:, 0]), "", np.where(data[:, 0] > 3.5, "upper", "lower"))
        more = {"categories": ["lower", "upper"], "bounds": BOX[:1], "features": "leaves"}
        return private_strata(data, labels, epsilon=1.0, neighbours=relation, **more)

    report = replay(release, chosen_pairs(1, relation))
    assert report.passed, str(report)
    assert report.largest_ratio == 1.0


# -- mutants -------------------------------------------------------------------------------------------------


def a_partition_of_raw_counts(patch):
    """The second stage is planned from what the table holds, not from what was released of it."""
    real = leaf_release.release_stages

    def release_stages(spec, strata, terms, read):
        def plan(_, pilot, noise):
            exact = bucket_counts.bucket_counts(read()[0], pilot.boxes)
            return real_plan(spec, dataclasses.replace(pilot, counts=300 * exact), noise)

        real_plan = leaf_release.plan_partition
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(leaf_release, "plan_partition", plan)
            return real(spec, strata, terms, read)

    patch.setattr(leaf_release, "release_stages", release_stages)


def a_pilot_counted_twice(patch):
    """Every record is in two boxes of the pilot: the pilot is laid out twice."""
    real = leaf_release.pilot_boxes
    patch.setattr(bucket_counts, "check_tiling", lambda boxes, leaves: np.asarray(boxes))
    patch.setattr(leaf_release, "pilot_boxes", lambda spec: np.concatenate([real(spec), real(spec)]))


def an_unpaid_stage(patch):
    """The counts take the whole budget, and the pilot its share on top."""
    real = leaf_release.plan_stages

    def plan_stages(spec, terms):
        pilot, _ = real(spec, terms)
        whole = float(terms.exact_epsilon)
        return pilot, leaf_release.Stage("counts", whole, leaf_release._noise(whole, terms))

    patch.setattr(leaf_release, "plan_stages", plan_stages)


def half_the_laplace_scale(patch):
    real = discrete_laplace.laplace_scale
    patch.setattr(discrete_laplace, "laplace_scale", lambda *args: real(*args) / 2)


def half_the_noise(patch):
    real = discrete_laplace.noisy_sum
    patch.setattr(discrete_laplace, "noisy_sum", lambda exact, noise: real(exact, noise // 2))


def replaced_as_if_added(patch):
    real = bucket_counts.rows_moved
    patch.setattr(bucket_counts, "rows_moved", lambda _, c: real("add-remove", c))


def shares_beyond_one(patch):
    real = leaf_release.stage_shares
    patch.setattr(leaf_release, "stage_shares", lambda spec: (real(spec)[0], Fraction(1)))


def own_coins(patch):
    """The partition tosses coins that nobody can toss again."""
    real = leaf_release.plan_partition

    def plan_partition(spec, pilot, noise):
        boxes = real(spec, pilot, noise)
        return boxes[np.random.default_rng().permutation(len(boxes))]

    patch.setattr(leaf_release, "plan_partition", plan_partition)


MUTANTS = [
    (a_partition_of_raw_counts, "add-remove", "call differs in"),
    (a_pilot_counted_twice, "add-remove", "2 times the declared sensitivity apart"),
    (an_unpaid_stage, "add-remove", "the calls cost more than the epsilon and delta of the guarantee"),
    (half_the_laplace_scale, "add-remove", "raised RuntimeError"),
    (half_the_noise, "add-remove", "not the exact value plus the noise"),
    (replaced_as_if_added, "replace", "2 times the declared sensitivity apart"),
    (shares_beyond_one, "add-remove", "raised RuntimeError"),
    (own_coins, "add-remove", "differs"),
]


@pytest.mark.parametrize(("mutate", "relation", "words"), MUTANTS, ids=[mutate.__name__ for mutate, *_ in MUTANTS])
def test_mutants_are_seen(mutate, relation, words, monkeypatch):
    mutate(monkeypatch)
    first_failure(releaser(1, relation), chosen_pairs(1, relation), words)


# -- attack --------------------------------------------------------------------------------------------------

CROWD = np.random.default_rng(0).normal(4, 1, (100, 1))
WORST = {
    "add-remove": (np.zeros((0, 1)), np.array([[10.0]])),
    "replace": (np.append(CROWD, [[-3.0]], axis=0), np.append(CROWD, [[10.0]], axis=0)),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_likelihood_ratio_of_both_stages_stays_below_the_claim_and_comes_near(epsilon, relation):
    report = stage_attack(releaser(1, relation, epsilon=epsilon), *WORST[relation], runs=80_000, confidence=0.999)
    assert not report.broken
    assert 0.8 * epsilon <= report.epsilon_lower <= epsilon


def test_gaussian_stages_stay_below_their_claim():
    report = stage_attack(gaussian("add-remove"), *WORST["add-remove"], confidence=0.999)
    assert not report.broken
    assert report.delta == 1e-5
    assert report.epsilon_lower > 1


def test_the_attack_sees_an_unpaid_stage_and_half_the_noise(monkeypatch):
    for mutate in (an_unpaid_stage, half_the_noise):
        with monkeypatch.context() as patch:
            mutate(patch)
            report = stage_attack(releaser(1, "add-remove", epsilon=3.0), *WORST["add-remove"], runs=60_000)
        assert report.broken, mutate.__name__


def test_an_attack_needs_noise_that_it_knows_and_a_claim():
    with pytest.raises(ValueError, match="Gaussian and Laplace"):
        stage_attack(len, [], [1], claim=releaser(1, "add-remove")(WORST["add-remove"][0]).guarantee)
    with pytest.raises(TypeError, match="claim must be given"):
        stage_attack(lambda data: releaser(1, "add-remove")(data).count, *WORST["add-remove"])


def test_the_attack_on_whole_releases_agrees_with_that_on_their_stages():
    """Released again and again, partition included: the score is the same likelihood ratio, read from the result."""
    spec = LeafSpec.plan([(0, 1)], leaves=[8])
    claim = 4.0
    D, D_prime = np.zeros((0, 1)), np.array([[0.99]])

    def score(density):
        total = 0.0
        for stage in density.leaves.stages:
            (box,) = np.flatnonzero(stage.boxes[:, 0, 1] == 8)
            y = int(stage.counts[box])
            total += (abs(y) - abs(y - 1)) / stage.noise.scale
        return total

    def release(data):
        return DensitySketch.of(spec).update(data).release(epsilon=claim)

    from fogline.audit import attack
    from fogline.testing import seeded_noise

    with seeded_noise(3):
        report = attack(release, D, D_prime, release(D).guarantee, score=score, threshold=claim - 1e-9, runs=150)
    assert not report.broken
    assert report.epsilon_lower > 0.4 * claim
