"""Mollifiers, bases, and the boosting theory in numbers: on small finite spaces everything can be summed."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from fogline.families.base_measures import (
    LogRange,
    NormalBase,
    OtherBase,
    ProductBase,
    UniformBase,
    base_named,
    log_ratio_range,
    mollify,
    scale_into,
)
from fogline.queries.boosted_density import CLAMP, BoostedRatio, gamma, log_odds, step_sizes

seeds = st.integers(0, 2**32 - 1)


# -- mollifiers ---------------------------------------------------------------------------------------------------


@given(seeds, st.floats(0.01, 8.0))
def test_scale_and_shift_brings_any_density_in_and_keeps_its_order(seed, epsilon):
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.ones(20))
    density = rng.dirichlet(np.full(20, 0.2))
    points, ratio = np.arange(20.0)[:, None], density / base
    tame = mollify(lambda x: ratio[x[:, 0].astype(int)], points, epsilon=epsilon)
    values = tame(points)
    assert log_ratio_range(tame.log_ratio, points).in_mollifier(epsilon)
    assert (base * values).sum() == pytest.approx(1.0)
    assert np.argmax(values) == np.argmax(ratio)
    order = np.argsort(ratio)
    assert (np.diff(values[order]) >= -1e-12).all()


def test_the_scale_is_the_largest():
    scale = scale_into(0.2, 4.0, epsilon=1.0)
    assert max(1 - scale + 4 * scale, 1 / (1 - 0.8 * scale)) == pytest.approx(math.exp(0.5))
    with pytest.raises(ValueError, match="ratio"):
        scale_into(1.5, 4.0, epsilon=1.0)


def test_the_range_is_exact_on_points_and_compared_without_rounding():
    values = np.array([0.1, -0.3, 0.25])
    found = log_ratio_range(lambda x: values[x[:, 0].astype(int)], [[0], [1], [2]])
    assert found == LogRange(-0.3, 0.25)
    assert found.spread == pytest.approx(0.55)
    just = math.nextafter(0.5, 1.0)
    assert LogRange(-0.5, 0.5).in_mollifier(1.0)
    assert not LogRange(-0.5, just).in_mollifier(1.0)
    assert not LogRange(math.nan, 0.0).in_mollifier(1.0)


def test_a_lipschitz_bound_covers_what_lies_between():
    wave = lambda x: np.sin(7 * x[:, 0])  # noqa: E731
    coarse = log_ratio_range(wave, [(0, 3)], cells=5)
    sure = log_ratio_range(wave, [(0, 3)], cells=5, lipschitz=7.0)
    fine = log_ratio_range(wave, [(0, 3)], cells=5000)
    assert sure.low <= fine.low < coarse.low
    assert sure.high >= fine.high > coarse.high


@pytest.mark.parametrize(("domain", "cells"), [(np.zeros((0, 2)), None), ([1.0, 2.0], None), ([(1, 0)], 4)])
def test_bad_domains_are_named(domain, cells):
    with pytest.raises(ValueError, match="domain"):
        log_ratio_range(lambda x: x[:, 0], domain, cells=cells)


# -- bases --------------------------------------------------------------------------------------------------------


BASES = [
    NormalBase([1.0, -2.0], [[2.0, 0.6], [0.6, 1.0]]),
    UniformBase([(0, 10), (-1, 1)]),
    ProductBase([stats.norm(5, 2), stats.expon()]),
    OtherBase(stats.multivariate_t([0.0, 0.0], df=3)),
]


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_a_base_draws_from_its_density(base):
    drawn = base.draws(np.random.default_rng(0), 4000)
    assert drawn.shape == (4000, 2)
    assert base.inside(drawn).all()
    assert np.isfinite(base.log_density(drawn)).all()
    other = base.draws(np.random.default_rng(1), 4000)
    for axis in range(2):
        assert stats.ks_2samp(drawn[:, axis], other[:, axis]).pvalue > 1e-4
    marginals = {
        NormalBase: stats.norm(1.0, 2**0.5),
        UniformBase: stats.uniform(0, 10),
        ProductBase: stats.norm(5, 2),
        OtherBase: stats.t(3),
    }
    assert stats.kstest(drawn[:, 0], marginals[type(base)].cdf).pvalue > 1e-4


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_a_point_is_a_function_of_its_own_uniform_numbers(base):
    uniforms = np.random.default_rng(0).random((50, 2))
    together = base.points(uniforms)
    alone = np.concatenate([base.points(row[None]) for row in uniforms])
    assert (together == alone).all()  # to the last bit: a batch is no company


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_what_is_no_number_is_outside_and_far_records_are_shown_near(base):
    odd = np.array([[np.nan, 0.0], [np.inf, 0.0], [0.0, -np.inf]])
    assert not base.inside(odd).any()
    shown = base.shown(np.array([[1e300, -1e300], [np.finfo(float).max, 0.0]]))
    assert np.isfinite(shown).all()
    assert np.abs(shown).max() <= 50.0


def test_textbook_densities():
    x = np.array([[0.3, 0.9], [4.0, -1.0]])
    normal = BASES[0]
    expected = stats.multivariate_normal(normal.mean, normal.covariance).logpdf(x)
    np.testing.assert_allclose(normal.log_density(x), expected)
    product = stats.norm(5, 2).logpdf(x[:1, 0]) + stats.expon().logpdf(x[:1, 1])
    np.testing.assert_allclose(BASES[2].log_density(x[:1]), product)
    np.testing.assert_allclose(BASES[1].log_density(x), [-np.log(20.0)] * 2)


def test_bases_by_name():
    assert base_named("normal", width=3).d == 3
    assert base_named(stats.norm(), width=2).d == 2
    assert base_named([stats.norm(), stats.expon()], width=2).d == 2
    frozen = base_named(stats.multivariate_normal([0, 1], [[2, 0], [0, 1]]), width=2)
    assert isinstance(frozen, NormalBase)
    assert base_named("uniform", width=2, bounds=[(0, 1)]).to_dict()["bounds"] == [[0, 1], [0, 1]]
    assert base_named(stats.poisson(3), width=1).inside(np.array([[2.0], [-1.0]])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"base": "triangular"}, "base"),
        ({"base": 3}, "base"),
        ({"base": [stats.norm()]}, "base"),
        ({"base": stats.norm(), "bounds": [(0, 1)]}, "bounds"),
        ({"base": "uniform"}, "bounds"),
        ({"base": "uniform", "bounds": [(0, 1)] * 3}, "bounds"),
        ({"base": stats.multivariate_normal([0], [[1]])}, "base"),
        ({"base": [stats.norm(), "norm"]}, "base"),
    ],
)
def test_bad_bases_are_named(options, named):
    with pytest.raises((TypeError, ValueError), match=named):
        base_named(**options, width=2)


def test_a_covariance_must_be_one():
    with pytest.raises(ValueError, match="covariance"):
        NormalBase([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])


# -- boosting theory ----------------------------------------------------------------------------------------------


def kl(p, q):
    return float((p * np.log(p / q)).sum())


def tilted(q, c, theta):
    """The next density, from the current one and a classifier."""
    grown = q * np.exp(theta * c)
    return grown / grown.sum()


def edges(p, q, c):
    most = np.abs(c).max()
    return float((p * c).sum()) / most, float(-(q * c).sum()) / most, most


def situation(seed, size=12, strength=1.0):
    """Two densities and a classifier that tells them apart at least weakly; the largest output is `strength` log 2."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(size, 0.4)) + 1e-9, rng.dirichlet(np.full(size, 0.4)) + 1e-9
    p, q = p / p.sum(), q / q.sum()
    c = np.clip(np.log(p / q) * rng.uniform(0.2, 3.0), -CLAMP, CLAMP)
    return p, q, strength * CLAMP * c / np.abs(c).max()


def proved_drop(p, q, c, theta):
    """Theorem 6 with the factor c* that its low case lacks, and with c* = log 2 for the high one."""
    gamma_p, gamma_q, most = edges(p, q, c)
    if gamma_q >= 1 / 3 and most == pytest.approx(CLAMP):
        return theta * (most * gamma_p + gamma(gamma_q))
    return theta * most * (gamma_p + gamma_q - most * theta / 2)


@given(seeds, st.floats(0.05, 30.0), st.sampled_from([1.0, 0.5, 0.1]))
def test_theorem_6_with_its_missing_factor(seed, epsilon, strength):
    p, q, c = situation(seed, strength=strength)
    theta = float(step_sizes(epsilon, 1)[0])
    gamma_p, gamma_q, _ = edges(p, q, c)
    assume(gamma_p > 0 and gamma_q > 0)
    assert kl(p, q) - kl(p, tilted(q, c, theta)) >= proved_drop(p, q, c, theta) - 1e-12


def test_theorem_6_as_printed_is_false():
    """A classifier that hardly says anything cannot gain what its relative edges promise."""
    p, q, c = np.array([0.9, 0.1]), np.array([0.4, 0.6]), 0.01 * np.array([1.0, -1.0])
    theta = float(step_sizes(1.0, 1)[0])
    gamma_p, gamma_q, most = edges(p, q, c)
    assert 0 < gamma_q < 1 / 3
    drop = kl(p, q) - kl(p, tilted(q, c, theta))
    assert drop < theta * (gamma_p + gamma_q - most * theta / 2) / 50
    assert drop >= proved_drop(p, q, c, theta)
    far = np.array([0.1, 0.9])  # the "high" case needs outputs that reach log 2, too
    gamma_p, gamma_q, most = edges(p, far, c)
    assert gamma_q > 1 / 3
    assert kl(p, far) - kl(p, tilted(far, c, theta)) < theta * (most * gamma_p + gamma(gamma_q))


def test_what_11_rests_on_fails_between_a_third_and_one():
    z = np.linspace(1 / 3, 1, 50)[:-1]
    assert all(gamma(value) < value * math.log(2) for value in z)
    assert gamma(1.0) == pytest.approx(math.log(2))
    # ... and so does (11) itself, at one round and a large epsilon; the corrected sum holds.
    epsilon, edge = 50.0, 0.5
    c = CLAMP * np.array([1.0, -1.0])
    p, q = np.array([0.95, 0.05]), np.array([(1 - edge) / 2, (1 + edge) / 2])
    theta = float(step_sizes(epsilon, 1)[0])
    gamma_p, gamma_q, _ = edges(p, q, c)
    gain = kl(p, q) - kl(p, tilted(q, c, theta))
    printed = epsilon / 2 * (gamma_p + gamma_q) / 2 * (1 - theta)
    assert gain < printed
    assert gain >= theta * (CLAMP * gamma_p + gamma(gamma_q))


def boosted(seed, epsilon, rounds):
    """Run Algorithm 1 on a finite space; return target, base, result, and the edges of each round."""
    rng = np.random.default_rng(seed)
    p, base = rng.dirichlet(np.full(15, 0.3)) + 1e-9, rng.dirichlet(np.full(15, 2.0)) + 1e-9
    p, base = p / p.sum(), base / base.sum()
    q, told = base, []
    for theta in step_sizes(epsilon, rounds):
        c = CLAMP * np.where(p > q, 1.0, -1.0)
        told.append(edges(p, q, c)[:2])
        q = tilted(q, c, theta)
    return p, base, q, np.array(told)


@given(seeds, st.floats(0.05, 10.0), st.integers(1, 5))
def test_the_corrected_11_and_theorems_5_and_7(seed, epsilon, rounds):
    p, base, q, told = boosted(seed, epsilon, rounds)
    gain = kl(p, base) - kl(p, q)
    assert np.abs(np.log(q / base)).max() <= epsilon / 2
    assert gain <= epsilon / 2 + 1e-12
    gamma_p, gamma_q = told.min(axis=0)
    if gamma_q >= 1 / 3 and gamma_p > 0:
        assert gain >= (step_sizes(epsilon, rounds) * (CLAMP * gamma_p + gamma(gamma_q))).sum() - 1e-12


@given(seeds, st.floats(0.05, 10.0), st.floats(0.0, 1.0))
def test_theorem_8_with_the_gain_that_was_proved(seed, epsilon, alpha):
    """In the form that stands: the printed condition (13) inherits the fault of (11)."""
    p, base, q, _ = boosted(seed, epsilon, 3)
    gain = kl(p, base) - kl(p, q)
    region = np.random.default_rng(seed).random(len(p)) < 0.5
    mass_p, mass_q = p[region].sum(), q[region].sum()
    restricted = float((p[region] * np.log(p[region] / base[region])).sum())
    assert mass_q >= mass_p - restricted + epsilon / 2 * (mass_p + 2 * gain / epsilon - 1) - 1e-9
    if mass_p >= (epsilon - 2 * gain) / (epsilon + 2 * alpha):
        assert mass_q >= (1 - alpha) * mass_p - restricted - 1e-9


@given(seeds, st.floats(0.01, 5.0))
def test_lemma_17_if_one_is_near_all_are(seed, epsilon):
    rng = np.random.default_rng(seed)
    target, base = rng.dirichlet(np.ones(10)) + 1e-9, rng.dirichlet(np.ones(10)) + 1e-9
    target, base = target / target.sum(), base / base.sum()
    members = []
    for _ in range(2):
        accept = rng.uniform(math.exp(-epsilon / 2), 1.0, 10)
        members.append(base * accept / (base * accept).sum())
        assert np.abs(np.log(members[-1] / base)).max() <= epsilon / 2 + 1e-12
    assert abs(kl(target, members[0]) - kl(target, members[1])) <= epsilon + 1e-12


@given(seeds, st.floats(0.01, 2.0), st.integers(1, 8))
def test_lemma_18_differential_privacy_cannot_come_nearer_either(seed, epsilon, m):
    rng = np.random.default_rng(seed)
    target = rng.dirichlet(np.ones(10)) + 1e-9
    target /= target.sum()
    chain = [rng.dirichlet(np.ones(10)) + 1e-9]
    chain[0] /= chain[0].sum()
    for _ in range(m):  # each step is one changed record: a factor of at most exp(epsilon) anywhere
        grown = chain[-1] * np.exp(rng.uniform(-epsilon / 2, epsilon / 2, 10))
        chain.append(grown / grown.sum())
        assert np.abs(np.log(chain[-1] / chain[-2])).max() <= epsilon + 1e-12
    assert kl(target, chain[0]) >= kl(target, chain[-1]) - m * epsilon - 1e-12


@given(st.floats(1e-3, 100.0), st.integers(1, 40))
@example(0.875, 60)
def test_steps_stay_below_their_sum(epsilon, rounds):
    """Lemma 9: so that clamped outputs stay within epsilon/4."""
    assert step_sizes(epsilon, rounds).sum() * CLAMP <= epsilon / 4


def test_outputs_are_clamped_and_nonsense_says_nothing():
    class Wild:
        def decision_function(self, x):
            return np.where(x[:, 0] > 0, np.inf, np.nan)

    x = np.array([[1.0], [-1.0]])
    assert log_odds(Wild(), x).tolist() == [np.inf, 0.0]
    ratio = BoostedRatio(NormalBase([0.0], [[1.0]]), floor=-np.inf)
    ratio.rounds.append((0.5, 0.0, Wild()))
    assert ratio(x).tolist() == [0.5 * CLAMP, 0.0]


def test_distributions_without_a_name_of_their_own_are_other_questions():
    """Two histograms have one name and no parameters, yet a ledger must not answer for one with draws of the other."""
    narrow, wide = (stats.rv_histogram(np.histogram([0.0, 1.0, 1.0], range=(0, side))).freeze() for side in (2, 3))
    asked = [ProductBase([column]).to_dict()["columns"] for column in (narrow, wide, stats.norm(5, 2))]
    assert asked[0] != asked[1]
    assert asked[0] == ProductBase([narrow]).to_dict()["columns"]
    assert asked[2] == ["norm(5, 2)[]"]
