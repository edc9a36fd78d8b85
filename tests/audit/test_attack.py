"""Attacks: on fogline's releases they have power and stay below the claim; false claims do not survive."""

from __future__ import annotations

import itertools

import gdp
import numpy as np
import pytest

from fogline import DensitySketch, PrivateModes
from fogline.accounting.guarantee import Guarantee
from fogline.audit import attack, likelihood_ratio, sketch_attack, vector_attack
from fogline.audit.attack import best_events
from fogline.datasets.simulated import gaussian_mixture4
from fogline.density.spec import SketchSpec
from fogline.mechanisms import add_gaussian, add_laplace
from fogline.mechanisms.randomness import SystemSource
from fogline.releases.terms import ReleaseTerms
from fogline.testing import SeededSource, seeded_noise

SURE = 1 - 1e-6
OUTLIER = np.array([30.0, 30.0])
RUNS = 24


def pair(relation):
    crowd = np.random.default_rng(3).normal(4, 1, (100, 1))
    before = crowd if relation == "add-remove" else np.append(crowd, [[0.0]], axis=0)
    return before, np.append(crowd, [[10.0]], axis=0)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_likelihood_ratio_has_power_and_stays_below_the_claim(relation, epsilon):
    spec = SketchSpec.plan([(0, 10)], [0.3])
    assert 10 <= spec.n_coefficients <= 40  # the ratio has the same law however many there are, and draws cost less
    report = sketch_attack(
        spec,
        *pair(relation),
        epsilon=epsilon,
        delta=1e-5,
        neighbours=relation,
        runs=500_000 if epsilon == 1 else 80_000,
        source=SeededSource(np.random.default_rng(11)),
        confidence=SURE,
    )
    print(f"{relation}, epsilon {epsilon}: mu_lower / mu = {report.mu_lower / report.mu:.3f}. {report}")
    assert not report.broken
    assert 0.9 * report.mu <= report.mu_lower <= report.mu
    assert "stands" in report.verdict


@pytest.mark.parametrize(("share", "runs"), [(1.0, 120_000), (0.8, 64_000)])
def test_the_attack_on_a_release_by_the_curve_has_power(share, runs):
    """Nine attacks of ten show an epsilon of 0.8 where 1 is claimed, and call noise of four fifths of its scale false.

    Of 40 attacks by other seeds all did; with 90 000 and 48 000 runs 32 and 33 of them.
    """
    terms, step = ReleaseTerms.checked(1.0, 1e-5, "add-remove", 1), 2**22
    assert terms.accounting == "gaussian"

    def release(n):
        return terms.add_noise(lambda: np.array([n * step]), size=1, sensitivity=share * step)

    reports = [
        vector_attack(release, 0, 1, claim=terms.guarantee(), runs=runs, source=SeededSource(rng), confidence=SURE)
        for rng in np.random.default_rng(21).spawn(10)
    ]
    if share == 1.0:
        assert not any(report.broken for report in reports)
        assert sum(report.mu_lower >= gdp.mu_of(0.8, 1e-5) for report in reports) >= 9
    else:
        assert sum(report.broken for report in reports) >= 9


def test_the_default_sketch_and_the_systems_noise():
    """Some 120 coefficients on OpenDP's draws: few runs, so little power, but the real thing."""
    spec = SketchSpec.plan([(0, 10)])
    assert 100 < spec.n_coefficients < 150
    report = sketch_attack(
        spec, *pair("replace"), epsilon=8.0, delta=1e-5, neighbours="replace", runs=600, source=SystemSource()
    )
    assert not report.broken
    assert report.mu_lower > 0.3 * report.mu  # five standard deviations below what is expected


def test_an_outlier_does_not_come_out_of_private_modes():
    """The attack of tests/research/as_published/test_attack.py, which DP-GRAMS does not survive (it shows epsilon > 3).

    The event was fixed there. With so many runs an outlier that always came out would show epsilon > 1.3.
    """
    plain = gaussian_mixture4(300, random_state=0).X
    odd = plain.copy()
    odd[0] = OUTLIER
    seeds = itertools.count()

    def release(X):
        # With a number of modes something always comes out, however little it stands out of the noise.
        estimator = PrivateModes(epsilon=1.0, delta=1e-5, bounds=[(-40, 40)] * 2, n_modes=4, neighbours="replace")
        with seeded_noise(next(seeds)):
            return estimator.fit(X)

    def near(fitted):
        return float((np.linalg.norm(fitted.modes_ - OUTLIER, axis=1) < 3.0).any())

    claim = release(plain).guarantee_
    report = attack(release, plain, odd, claim=claim, score=near, threshold=0.5, runs=RUNS)
    print(report)
    assert claim.epsilon == 1.0
    assert not report.broken
    certain = best_events(np.zeros(RUNS), np.ones(RUNS), 1e-5, 0.99, 0.5)
    assert certain[0].epsilon_lower > 1.3


# -- the machinery -------------------------------------------------------------------------------------------


def test_bounds_hold_with_the_stated_confidence():
    """A true Gaussian of mu = 1, attacked at 90%: the bound on mu may fail in one attack of ten."""
    rng = np.random.default_rng(5)
    found = [
        max(w.mu_lower for w in best_events(rng.normal(0, 1, 400), rng.normal(1, 1, 400), 1e-5, 0.9, None))
        for _ in range(40)
    ]
    assert np.mean(np.array(found) > 1.0) <= 0.1
    assert np.median(found) > 0.5


def test_both_tails_and_both_directions():
    rng = np.random.default_rng(6)
    noise, other = rng.normal(0, 1, 4000), rng.normal(0, 1, 4000)
    noise[rng.random(4000) < 0.1] = -50.0  # only D ever gives this
    found = {w.name: w for w in best_events(noise, other, 1e-5, 0.999, None)}
    assert found["lower tail"].epsilon_lower > 2.5
    assert found["upper tail"].epsilon_lower < 1
    with pytest.raises(ValueError, match="finite"):
        best_events(noise, np.full(4000, np.nan), 1e-5, 0.99, None)


def test_attack_works_on_any_function():
    rng = np.random.default_rng(0)
    claim = Guarantee.uncertified(epsilon=1.0, delta=1e-5, reason="a test")

    def honest(n):
        return n + rng.laplace(scale=1.0)

    report = attack(honest, 10, 11, claim=claim, score=float, runs=6000)
    assert not report.broken
    assert report.epsilon_lower > 0.6
    assert report.mu is None
    report = attack(lambda n: n + rng.laplace(scale=0.4), 10, 11, claim=claim, score=float, runs=6000)
    assert report.broken
    with pytest.raises(ValueError, match="no rho"):
        attack(honest, 10, 11, claim=claim, delta=1e-3, score=float, runs=10)


def test_a_claim_in_rho_and_another_delta():
    density = DensitySketch([(0, 1)]).release(epsilon=1.0, delta=1e-5)

    def release(n):
        return add_gaussian(lambda: np.array([n]), size=1, sensitivity=1, rho=density.guarantee.rho)

    for claim, delta in ((density.guarantee, 1e-3), (density.guarantee.rho, 1e-3)):
        report = vector_attack(release, 0, 1, claim=claim, delta=delta, runs=1000)
        assert report.delta == 1e-3
        assert report.epsilon < 1.0
    with pytest.raises(TypeError, match="claim"):
        vector_attack(release, 0, 1)
    with pytest.raises(ValueError, match="same exact vector"):
        vector_attack(release, 1, 1, claim=0.1, delta=1e-5)
    with pytest.raises(ValueError, match="Gaussian mechanism exactly once"):
        vector_attack(lambda n: add_laplace(lambda: np.array([n]), size=1, sensitivity=1, epsilon=1.0), 0, 1)


def test_the_batched_score_is_the_plain_one():
    z, z_prime = np.array([0, 4, 1]), np.array([1, 2, 3])
    score = likelihood_ratio(z, z_prime)
    assert score(z_prime) - score(z) == pytest.approx(np.linalg.norm(z_prime - z))
