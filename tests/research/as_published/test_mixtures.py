"""The separated-mixtures paper as printed: its steps by hand, what it recovers, and the attacks of docs/gaps.md."""

from __future__ import annotations

import dataclasses
import math
import re

import gdp
import numpy as np
import pytest

from fogline.audit.binomial_bounds import epsilon_lower_bound
from fogline_research.as_published import (
    mixture_theory,
    mixtures,
    pegme,
    pgloc,
    pgme,
    psge,
    rpgmp,
    sample_and_aggregate,
    terrific_ball,
)
from fogline_research.as_published.mixture_parts import (
    PRACTICAL,
    PRINTED,
    BallResult,
    above_threshold,
    one_cluster,
    seclusion,
    threshold_slack,
)
from fogline_research.audit_campaign.as_published import check_published_mixtures

EXACT = {"epsilon": 1e9, "delta": 1e-6}
CENTRE, RADIUS = np.array([1000.0, 0.0]), 1.0


def near(centre, n, seed=0, spread=0.3):
    """Records around a centre, well within a ball of radius 1."""
    return centre + np.random.default_rng(seed).uniform(-spread, spread, size=(n, len(centre)))


# -- the steps by hand -------------------------------------------------------------------------------------------


def test_psge_by_hand():
    X = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 2.0], [50.0, 0.0], [2.0, 1.0]])
    found = psge(X, center=[2.0, 0.0], radius=3.0, **EXACT, random_state=0)
    np.testing.assert_allclose(found.mean, [2.0, 0.75], atol=1e-6)  # four records are in the ball
    # One pair of the first two: (2^2 + 0)/2 = 2, over half of four records and two columns.
    assert found.variance == pytest.approx(2.0 / (2 * 2), abs=1e-6)
    assert found.count == pytest.approx(4.0, abs=1e-6)


def test_psge_spends_seven_sixths_by_its_own_lemmas():
    """The scale of the variance is set for epsilon/3, and the line that uses it has epsilon/2."""
    X = near(CENTRE, 2000)
    options = {"center": CENTRE, "radius": RADIUS, "delta": 1e-6}
    assert psge(X, epsilon=0.6, **options).spent == pytest.approx(0.7)
    noise = [psge(X, epsilon=0.6, **options, random_state=s).variance for s in range(400)]
    half = 2 * RADIUS**2 / 0.3 / 2000  # Laplace of this scale, over n/2 records and two columns
    assert np.mean(np.abs(noise - np.median(noise))) == pytest.approx(half, rel=0.15)


def test_the_threshold_keeps_theorem_2_14():
    """Values at T - 2 Gamma never pass and values at T + Gamma always do, but for beta."""
    slack = threshold_slack(20, 0.1, 1.0)
    rng = np.random.default_rng(0)
    low = [above_threshold([lambda: 100.0 - slack] * 20, 100.0, 1.0, 1.0, rng) is None for _ in range(300)]
    high = [above_threshold([lambda: 100.0 + slack], 100.0, 1.0, 1.0, rng) == 0 for _ in range(300)]
    assert np.mean(low) > 0.9
    assert np.mean(high) > 0.9


def test_the_three_counts_of_a_terrific_ball():
    distances = np.array([[0.0, 0.5, 1.0, 3.0, 9.0, 9.0, 9.0]])
    assert seclusion(distances, 1.0, 5.0, 3.0).tolist() == [2.0]  # one record between 1 and 5
    assert seclusion(distances, 1.0, 2.0, 3.0).tolist() == [3.0]
    assert seclusion(distances, 1.0, 2.0, 2.0).tolist() == [2.0]  # counts are capped at t
    assert seclusion(distances, 1.0, 2.0, 2.0, capped=False).tolist() == [2.0]


def test_a_terrific_ball_is_found_where_there_is_one_and_not_where_there_is_none():
    rng = np.random.default_rng(0)
    one = rng.normal(size=(1200, 4))
    options = {"t": 400, "epsilon": 3.0, "delta": 1e-6, "high": 200.0, "low": 0.5, "constants": "practical"}
    apart = np.concatenate([one, rng.normal(60.0, 1.0, size=(1200, 4))])
    for largest in (False, True):
        found = terrific_ball(apart, **options, largest=largest, random_state=1)
        assert found
        distances = np.linalg.norm(apart - found.center, axis=1)
        inside, around = distances <= found.radius, (distances > found.radius) & (distances <= 5 * found.radius)
        assert inside.sum() == 1200
        assert around.sum() == 0
    assert not terrific_ball(one, **options, random_state=1)


def test_a_search_among_nothing_finds_nothing():
    scattered = np.random.default_rng(0).uniform(-1000, 1000, size=(300, 6))
    bounds = {"R": 2000.0, "sigma_min": 1.0, "sigma_max": 1.0}
    assert not pgloc(scattered, t=150, epsilon=0.2, delta=1e-9, **bounds, constants="practical", random_state=0)
    rng = np.random.default_rng(0)
    options = {"t": 5.0, "epsilon": 1.0, "delta": 1e-6, "beta": 0.05, "low": 1.0, "high": 9.0, "rng": rng}
    assert one_cluster(np.zeros((0, 3)), constants=PRACTICAL, **options) is None


def test_components_far_apart_are_recovered_with_practical_constants():
    rng = np.random.default_rng(3)
    places = 40.0 * np.eye(6)[:3]
    X = rng.permutation(np.concatenate([rng.normal(place, 1.0, size=(2500, 6)) for place in places]))
    bounds = {"R": 100.0, "weight_min": 0.3, "sigma_min": 1.0, "sigma_max": 1.0}
    found = pgme(X, n_components=3, epsilon=4.0, delta=1e-6, **bounds, constants="practical", random_state=0)
    assert len(found.weights) == 3
    errors = np.linalg.norm(found.means[:, None] - places[None], axis=2).min(axis=0)
    assert errors.max() < 1.0
    np.testing.assert_allclose(found.weights, 1 / 3, atol=0.02)
    assert any("terrific" in step for step in found.steps)


def test_with_the_printed_constants_such_data_are_far_too_few():
    """Theorem 5.1 asks for a thousand standard deviations; here the slack of a threshold is above t."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(place, 1.0, size=(1000, 5)) for place in (0.0, 20.0)])
    bounds = {"R": 100.0, "weight_min": 0.4, "sigma_min": 1.0, "sigma_max": 1.0}
    found = rpgmp(X, n_components=2, epsilon=0.1, delta=1e-6, **bounds, random_state=0)
    pure = [len(np.unique(part // 1000)) == 1 and len(part) > 900 for part in found.parts]
    assert not (len(pure) == 2 and all(pure))
    assert mixture_theory.needed_separation([1.0, 1.0], [0.5, 0.5], 2000) > 1000.0


def test_the_projection_of_pegme_recovers_round_components():
    rng = np.random.default_rng(0)
    places = np.array([[6.0] * 6, [-6.0] * 6])
    X = rng.permutation(np.concatenate([rng.normal(place, 1.0, size=(4000, 6)) for place in places]))
    found = pegme(X, n_components=2, epsilon=4.0, delta=1e-6, sigma_min=1.0, kappa=4.0, constants="practical",
                  random_state=1)  # fmt: skip
    assert len(found.weights) == 2
    assert np.linalg.norm(found.means[:, None] - places[None], axis=2).min(axis=0).max() < 1.0
    assert found.weights.tolist() == [0.5, 0.5]


def test_results_are_frozen_and_say_why_they_are_not_certified():
    X = near(CENTRE, 50)
    found = psge(X, center=CENTRE, radius=1.0, epsilon=1.0, delta=1e-6, random_state=0)
    ball = terrific_ball(X, t=10, epsilon=1.0, delta=1e-6, high=9.0, low=1.0, constants="practical", random_state=0)
    mixture = pgme(X - CENTRE, n_components=1, epsilon=1.0, delta=1e-6, R=5.0, weight_min=1.0, sigma_min=1.0,
                   sigma_max=1.0, constants="practical", random_state=0)  # fmt: skip
    for result, words in ((found, "not centred"), (ball, "exactly t distinct"), (mixture, "about the origin")):
        assert not result.guarantee.certified
        assert result.guarantee.neighbours == "replace"
        assert words in result.guarantee.reason
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.guarantee = None
    assert ball.guarantee.epsilon == 2.0  # Lemma 5.7
    assert not found.mean.flags.writeable
    assert not mixture.means.flags.writeable


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda X: psge(X, center=[0.0], radius=1.0, epsilon=1.0, delta=1e-6), "center"),
        (lambda X: psge(X, center=[0.0, 0.0], radius=-1.0, epsilon=1.0, delta=1e-6), "radius"),
        (lambda X: terrific_ball(X, t=0, epsilon=1.0, delta=1e-6, high=2.0, low=1.0), "t must"),
        (lambda X: terrific_ball(X, t=1, epsilon=1.0, delta=1e-6, high=1.0, low=2.0), "low"),
        (lambda X: terrific_ball(X, t=1, epsilon=1.0, delta=1e-6, high=2.0, low=1.0, stretch=1.0), "stretch"),
        (lambda X: pegme(X, n_components=2, epsilon=1.0, delta=1e-6, sigma_min=0.0), "sigma_min"),
        (lambda X: pegme(X, n_components=2, epsilon=1.0, delta=1e-6, sigma_min=1.0, constants="x"), "constants"),
        (
            lambda X: rpgmp(
                X, n_components=2, epsilon=1.0, delta=1e-6, R=1.0, weight_min=2.0, sigma_min=1.0, sigma_max=1.0
            ),
            "weight_min",
        ),
        (
            lambda X: sample_and_aggregate(
                X, n_components=2, epsilon=1.0, delta=1e-6, R=1.0, sigma_min=1.0, sigma_max=1.0, blocks=99
            ),
            "blocks",
        ),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises((ValueError, TypeError), match=re.escape(name)):
        call(np.zeros((20, 2)))


# -- what docs/gaps.md says of them ------------------------------------------------------------------------------


def test_psge_tells_whether_a_ball_far_out_holds_a_record():
    """Its sum moves by the distance of the ball from the origin; the noise is made for two radii."""
    far = np.array([1e6, 0.0])
    crowd = np.zeros((40, 2))
    odd = crowd.copy()
    odd[0] = far
    options = {"center": far, "radius": 1.0, "epsilon": 1.0, "delta": 1e-5}
    hits = [
        sum(float(np.linalg.norm(psge(X, **options, random_state=2 * s + side).mean)) > 1e4 for s in range(150))
        for side, X in enumerate((crowd, odd))
    ]
    assert epsilon_lower_bound(hits[1], 150, hits[0], 150, delta=1e-5, confidence=0.99) > 3.0


def test_where_a_ball_holds_many_the_noisy_count_hides_the_fault_again():
    """So the argument of appendix C fails, not every use of the algorithm: mean shifts of both sides look the same."""
    X = near(CENTRE, 400)
    other = X.copy()
    other[0] = 0.0
    options = {"center": CENTRE, "radius": RADIUS, "epsilon": 1.0, "delta": 1e-5}
    shown = [[psge(part, **options, random_state=s).mean[0] for s in range(200)] for part in (X, other)]
    assert abs(np.median(shown[0]) - np.median(shown[1])) < 0.2 * np.std(shown[0])


def squares_of_pairs(X):
    """The exact sum of squared differences that Algorithm 6 makes noisy."""
    found = psge(X, center=CENTRE, radius=RADIUS, **EXACT, random_state=0)
    return found.variance * found.count / 2.0 * X.shape[1]


def test_a_replaced_record_changes_one_pair():
    """Withdrawn: that pairs by index shift. Under replacement they do not, as long as records keep their places."""
    X = near(CENTRE, 400)
    for other in (CENTRE + 0.9, np.zeros(2)):
        replaced = X.copy()
        replaced[7] = other
        assert abs(squares_of_pairs(X) - squares_of_pairs(replaced)) <= 2 * RADIUS**2 + 1e-6


def test_in_a_subset_that_is_counted_anew_every_pair_shifts():
    """Algorithm 1 hands PSGE the records of a ball; one that is no longer among them shifts all that follow."""
    aside = np.array([0.9, 0.0])
    X = np.array([CENTRE - aside, CENTRE - aside, CENTRE + aside, CENTRE + aside] * 50)
    replaced = X.copy()
    replaced[0] = 0.0
    parts = [part[np.linalg.norm(part - CENTRE, axis=1) <= RADIUS] for part in (X, replaced)]
    assert abs(squares_of_pairs(parts[0]) - squares_of_pairs(parts[1])) > 50 * 2 * RADIUS**2


def test_one_record_changes_both_halves_of_pegme():
    X = np.arange(1.0, 21.0)[:, None]
    replaced = X.copy()
    replaced[0] = 1e6
    (Y, Z), (other_Y, other_Z) = (mixtures.discard_and_split(part, 100.0) for part in (X, replaced))
    assert set(Y.ravel()) - set(other_Y.ravel()) == {1.0}
    assert set(Z.ravel()) - set(other_Z.ravel()) == {11.0}  # the argument has it that one of the two is the same


def always(*balls):
    """Stand in for PGLOC: a search that always answers, as Theorem 4.11 has it."""
    answers = list(balls)
    guarantee = pgloc(np.zeros((3, 2)), t=1, epsilon=1.0, delta=1e-6, R=1.0, sigma_min=1.0, sigma_max=1.0).guarantee
    return lambda S, **options: BallResult(np.asarray(answers.pop(0), dtype=float), 1.0, guarantee)


def test_whether_a_record_is_left_decides_what_pegme_returns(monkeypatch):
    """With a record outside the first ball there is a second one; without it the answer is nothing."""
    crowd = np.random.default_rng(0).uniform(-0.1, 0.1, size=(200, 2))
    odd = crowd.copy()
    odd[-1] = (0.0, 9.0)
    options = {"n_components": 2, "epsilon": 0.1, "delta": 1e-6, "sigma_min": 10.0}
    seen = []
    for X in (crowd, odd):
        monkeypatch.setattr(mixtures, "pgloc", always(*([[0.0, 0.0]] * 40)))
        seen.append([bool(pegme(X, **options, random_state=s)) for s in range(20)])
    assert not any(seen[0])
    assert all(seen[1])


def test_balls_that_overlap_give_a_record_to_two_components(monkeypatch):
    """Section 4.1 calls the parts disjoint; they are what lies in each ball, not what was taken out for it."""
    X = np.random.default_rng(0).uniform(-5.0, 5.0, size=(400, 2))
    monkeypatch.setattr(mixtures, "pgloc", always([0.0, 0.0], [1.0, 0.0]))
    sizes = []
    monkeypatch.setattr(mixtures, "psge", lambda part, **options: sizes.append(len(part)) or psge(part, **options))
    half = dataclasses.replace(PRACTICAL, located=4.0)
    pegme(X, n_components=2, epsilon=5.0, delta=1e-6, sigma_min=10.0, constants=half, random_state=0)
    assert len(sizes) == 2
    assert sum(sizes) > 200  # Z has 200 records


def test_the_matrix_of_step_5_moves_by_far_more_than_its_noise_is_made_for():
    X = near(CENTRE, 200)
    replaced = X.copy()
    replaced[0] = CENTRE + np.array([0.5, 0.0])
    seeds = [np.random.default_rng(0) for _ in range(2)]
    moved = np.subtract(*[mixtures.noisy_squares(part, RADIUS, 1.0, 1e-6, seed)
                          for part, seed in zip((X, replaced), seeds, strict=True)])  # fmt: skip
    deviation = 2 * RADIUS**2 * math.sqrt(math.log(2e6))
    assert np.abs(moved).max() > 20 * deviation  # the record stayed in the ball
    centred = np.subtract(*[mixtures.noisy_squares(part - CENTRE, RADIUS, 1.0, 1e-6, np.random.default_rng(0))
                            for part in (X, replaced)])  # fmt: skip
    assert np.abs(centred).max() < deviation


def test_a_level_costs_six_epsilon_and_a_record_can_change_two_branches():
    cost = mixture_theory.level_cost(0.1)
    assert cost["lemmas"] == pytest.approx(0.6)
    assert cost["theorem 5.8"] == pytest.approx(0.4)
    X = np.concatenate([np.zeros((50, 2)), np.full((50, 2), 100.0)])
    replaced = X.copy()
    replaced[0] = 100.0
    guarantee = psge(X, center=[0.0, 0.0], radius=1.0, epsilon=1.0, delta=1e-6).guarantee
    ball = BallResult(np.zeros(2), 1.0, guarantee)
    setting = mixtures._Recursion(100, 0.5, 1.0, 1.0, 9.0, 1.0, 1e-6, 0.05, PRINTED, np.random.default_rng(0))
    sizes = [
        [len(rows) for rows in mixtures._branches(part, part, np.arange(100), ball, 2, setting)]
        for part in (X, replaced)
    ]
    assert sizes == [[50, 50], [49, 51]]  # both change, each by one record more or less: none by a replaced one


def test_theorem_5_8_holds_the_second_term_of_lemma_2_9_for_small_epsilon_only():
    """4 epsilon sqrt(8 k log(1/delta)) is twice the first term: enough where (e^(4 eps) - 1) sqrt(k) is small."""
    delta, k = 1e-6, 8
    for epsilon, enough in ((0.05, True), (0.2, True), (0.5, False)):
        printed = 4 * epsilon * math.sqrt(8 * k * math.log(1 / delta))
        proved, _ = mixture_theory.advanced_composition(4 * epsilon, 0.0, k, delta)
        assert (printed >= proved) == enough
        assert (math.expm1(4 * epsilon) * math.sqrt(k) <= math.sqrt(2 * math.log(1 / delta))) == enough
        honest, _ = mixture_theory.advanced_composition(2 * 6 * epsilon, 0.0, k, delta)
        assert honest > printed  # with Lemma 5.7, and both branches


def test_lemma_2_13_fails_for_large_epsilon():
    for epsilon, holds in ((0.5, True), (1.0, True), (10.0, False), (20.0, False)):
        scale = mixture_theory.gaussian_mechanism_scale(1.0, epsilon, 1e-5)
        assert (gdp.delta_of(1.0 / scale, epsilon) <= 1e-5) == holds


def test_one_record_changes_all_means_of_its_block():
    rng = np.random.default_rng(0)
    block = np.concatenate([rng.normal(place, 1.0, size=(10, 1)) for place in (0.0, 10.0, 20.0)])
    replaced = block.copy()
    replaced[0] = 1000.0
    before, after = (mixtures._kmeans_learner(part, 3, np.random.default_rng(1))[0] for part in (block, replaced))
    moved = [np.abs(mean - before).min() > 1e-6 for mean in after]
    assert sum(moved) >= 2  # points that the search counts as if one record were one of them


def test_constants_are_those_of_the_paper():
    assert PRINTED.located == pytest.approx(4 * math.sqrt(3))
    assert (PRINTED.bounded, PRINTED.stretch, PRINTED.dimensions, PRINTED.least_share) == (12.0, 5.0, 512.0, 0.0)


def test_the_audit_breaks_what_is_to_be_broken():
    lines = list(check_published_mixtures(0, True))
    assert len(lines) == 2
    assert all(line.passed for line in lines), lines
