"""Formulas of the papers as functions, against simulation, known limits and the certified accounting."""

import numpy as np
import pytest
from scipy.stats import norm

from fogline.accounting import HellingerBudget
from fogline_research.as_published.dpb import cross_validated_bandwidth, dpb
from fogline_research.as_published.hellinger_theory import (
    gradient_steps,
    limiting_variance,
    newton_steps,
    noise_radius,
    separate_data_sets,
)
from fogline_research.as_published.mixture_theory import advanced_composition, has_condition_2_5, needed_records


def test_separate_data_sets_cost_the_greatest_and_parts_of_one_cost_more_under_replace():
    parts = HellingerBudget(0.2), HellingerBudget(0.6)
    assert separate_data_sets(0.2, 0.6) == 0.6
    assert parts[0].parallel(parts[1], neighbours="add-remove").epsilon == pytest.approx(0.6)
    assert parts[0].parallel(parts[1], neighbours="replace").epsilon > 0.6
    with pytest.raises(ValueError, match="budgets"):
        separate_data_sets()


@pytest.mark.parametrize(("m", "K", "xi"), [(2, 10, 0.2), (5, 4, 0.1)])
def test_noise_exceeds_the_radius_of_13_less_often_than_stated(m, K, xi):
    noise = np.linalg.norm(np.random.default_rng(0).normal(scale=0.3, size=(20_000, m)), axis=1)
    assert (noise > noise_radius(0.3, m, K, xi)).mean() < xi / K
    assert noise.max() > 0.3 * noise_radius(0.3, m, K, xi)  # of the right order, though not tight


def test_newtons_number_of_steps_is_the_least_that_reaches_the_noise():
    for radius in (0.3, 1e-2, 1e-5, 1e-12):
        K = newton_steps(radius)
        assert radius >= 0.5 ** (2**K)
        assert K == 1 or radius < 0.5 ** (2 ** (K - 1))
    assert gradient_steps(10_000, 2.0) == 2 * gradient_steps(100, 2.0) - 1


def test_the_limiting_variance_is_fishers_on_the_model_and_that_of_the_fit_beside_it():
    np.testing.assert_allclose(limiting_variance(norm(1, 3).pdf, 1.0, 3.0), [[9.0, 0.0], [0.0, 4.5]], atol=1e-6)
    # A little contamination far out hardly moves it: the weight is the root of both densities.
    mixed = limiting_variance(lambda x: 0.95 * norm(0, 1).pdf(x) + 0.05 * norm(25, 1).pdf(x), 0.0, 1.0)
    np.testing.assert_allclose(mixed, np.diag([1.0, 0.5]) / 0.95, rtol=0.02, atol=0.01)


def test_lemma_2_6_gives_condition_2_5_as_often_as_it_says():
    weights, alpha, beta = np.array([0.1, 0.3, 0.6]), 0.2, 0.1
    n = needed_records(3, 0.1, alpha, beta)
    draws = np.random.default_rng(0).multinomial(n, weights, size=400)
    assert np.mean([has_condition_2_5(counts, weights, alpha) for counts in draws]) >= 1 - beta


def test_advanced_composition_is_above_the_exact_price_of_repeated_coins():
    """Of T randomised responses at epsilon the exact delta at the stated epsilon is below the stated one."""
    from scipy.stats import binom

    step, count, slack = 0.1, 200, 1e-4
    total, delta = advanced_composition(step, 0.0, count, slack)
    p = np.exp(step) / (1 + np.exp(step))
    agreed = np.arange(count + 1)
    loss = step * (2 * agreed - count)
    exact = np.sum(np.maximum(0.0, 1 - np.exp(total - loss)) * binom.pmf(agreed, count, p))
    assert 0 < exact < delta


def test_one_record_can_turn_the_bandwidth_of_dpb():
    """Nothing pays for the choice: an outlier makes every narrow kernel give it no likelihood at all."""
    X = np.random.default_rng(0).normal(scale=0.12, size=(300, 1))
    chosen = {cross_validated_bandwidth(rows, [(-5, 5)], random_state=0) for rows in (X, np.append(X, [[4.9]], axis=0))}
    assert len(chosen) == 2
    found = dpb(X, epsilon=1.0, bounds=[(-5, 5)], random_state=0)
    assert not found.guarantee.certified
    assert "folds" in found.guarantee.reason
