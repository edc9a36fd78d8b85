"""Hellinger privacy: exact affinities, the lattice, and the conversions that do not exist."""

import math
from itertools import pairwise

import gdp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from fogline.accounting import HellingerBudget, PowerBudget
from fogline.accounting import divergences as noise

epsilons = st.floats(1e-6, 1.9)


def lattice_affinity(scale, steps, power=-0.5):
    """The moment of one coordinate of discrete Gaussian noise, summed."""
    reach = math.ceil(40 * scale) + steps + 5
    z = np.arange(-reach, reach + 1)
    p, q = np.exp(-(z**2) / (2 * scale**2)), np.exp(-((z - steps) ** 2) / (2 * scale**2))
    log = -(power + 1) * z**2 / (2 * scale**2) + power * (z - steps) ** 2 / (2 * scale**2)
    return np.sum(np.exp(log)) / (p.sum() ** (power + 1) * q.sum() ** -power)


@pytest.mark.parametrize("scale", [0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 2, 3, 7])
@pytest.mark.parametrize("power", [-0.5, -0.3, -0.1])
def test_the_lattice_bound_against_the_exact_sum(scale, steps, power):
    rho = steps**2 / (2 * scale**2)
    exact = lattice_affinity(scale, steps, power)
    c = power * (power + 1)
    bound = noise.gaussian_divergence(power, rho, sensitivity=float(steps), size=1)
    assert (exact - 1) / c <= bound * (1 + 1e-9)
    looser = noise.gaussian_divergence(power, rho, sensitivity=float(steps))
    assert bound <= looser


@pytest.mark.parametrize("scale", [0.3, 0.4, 0.5, 0.7])
def test_the_correction_is_needed_and_sharp(scale):
    """A shift by one step on a coarse lattice exceeds continuous noise; the bound takes little more."""
    exact = 2 * (1 - lattice_affinity(scale, 1))
    rho = 1 / (2 * scale**2)
    ripple = 4 * math.exp(-2 * math.pi**2 * scale**2)
    assert exact > HellingerBudget.of_gaussian(rho, sensitivity=math.inf).epsilon
    if ripple < 0.5:
        corrected = HellingerBudget.of_gaussian(rho).epsilon
        assert exact <= corrected <= exact + 4 * ripple**2
        assert 1 - corrected / 2 == pytest.approx(math.exp(-rho / 4) * (1 - ripple), rel=1e-8)


@pytest.mark.parametrize("scale", [0.45, 0.6, 1.0])
@pytest.mark.parametrize("move", [(1, 1), (1, 1, 1, 1, 1), (2, 1), (3, 0, 1)])
def test_several_coordinates(scale, move):
    exact = math.prod(lattice_affinity(scale, steps) for steps in move)
    sensitivity = math.hypot(*move)
    rho = sensitivity**2 / (2 * scale**2)
    for size in (len(move), 1000, None):
        bound = noise.gaussian_divergence(-0.5, rho, sensitivity=sensitivity, size=size)
        assert 4 * (1 - exact) <= bound * (1 + 1e-9)
    # A lower bound of the sensitivity is safe, too.
    assert noise.gaussian_divergence(-0.5, rho, sensitivity=1.0) >= bound * (1 - 1e-9)


def test_powers_above_zero_need_no_correction():
    for scale in [0.2, 0.5, 1.0]:
        for steps in [1, 2, 3]:
            exact = (lattice_affinity(scale, steps, 0.5) - 1) / 0.75
            assert exact <= noise.gaussian_divergence(0.5, steps**2 / (2 * scale**2)) * (1 + 1e-9)


@given(epsilons)
def test_gaussian_noise_there_and_back(epsilon):
    budget = HellingerBudget(epsilon)
    assert budget.gaussian_mu**2 == pytest.approx(-8 * math.log(1 - epsilon / 2), rel=1e-9)
    assert HellingerBudget.of_gdp(budget.gaussian_mu).epsilon == pytest.approx(epsilon, rel=1e-9)
    fine = budget.gaussian_rho(sensitivity=2.0**22)
    assert fine == pytest.approx(gdp.rho_of_mu(budget.gaussian_mu), rel=1e-9)
    assert HellingerBudget.of_gaussian(fine, sensitivity=2.0**22).epsilon <= epsilon
    assert budget.gaussian_rho() <= budget.gaussian_rho(size=1) * (1 + 1e-9) <= fine * (1 + 1e-9)


@given(st.lists(epsilons, min_size=1, max_size=4))
def test_affinities_multiply(parts):
    budgets = [HellingerBudget(part) for part in parts]
    together = budgets[0].compose(*budgets[1:])
    expected = math.prod(budget.affinity for budget in budgets)
    assert together.affinity == pytest.approx(expected, rel=1e-9)
    assert together.affinity <= expected * (1 + 1e-15)


def test_composed_gaussian_noise_adds_rho():
    first, second = HellingerBudget(0.2), HellingerBudget(0.5)
    both = first.compose(second)
    rhos = [budget.gaussian_rho(sensitivity=math.inf) for budget in (first, second, both)]
    assert rhos[0] + rhos[1] == pytest.approx(rhos[2], rel=1e-12)


@given(epsilons, st.integers(1, 500))
def test_iterations_of_corollary_9(epsilon, count):
    budget = HellingerBudget(epsilon)
    share = budget.share(count)
    assert share.epsilon == pytest.approx(2 - 2 * (1 - epsilon / 2) ** (1 / count), rel=1e-6)
    assert share.repeated(count).epsilon <= epsilon
    # The paper's recursion h_{j+1} = e + h_j - e h_j / 2, and its bounds.
    h = 0.0
    for _ in range(min(count, 30)):
        h = share.epsilon + h - share.epsilon * h / 2
    assert share.repeated(min(count, 30)).epsilon == pytest.approx(h, rel=1e-9)
    assert epsilon / count <= share.epsilon * (1 + 1e-9)


def test_total_variation_bounds_the_exact_one():
    for mu in [0.01, 0.5, 1.0, 3.0]:
        exact = 2 * norm.cdf(mu / 2) - 1
        epsilon = HellingerBudget.of_gdp(mu).epsilon
        assert exact <= HellingerBudget(epsilon).total_variation <= math.sqrt(epsilon)
    # Equality where the likelihood ratio takes two values, one the inverse of the other.
    a = 0.8
    affinity = 2 * math.sqrt(a * (1 - a))
    assert HellingerBudget(2 * (1 - affinity)).total_variation == pytest.approx(2 * a - 1)


@given(epsilons, st.integers(1, 20))
def test_groups(epsilon, size):
    budget = HellingerBudget(epsilon)
    assert budget.group_epsilon(size) == pytest.approx(min(2.0, size**2 * epsilon))
    gaussian = 2 * (1 - math.exp(-((size * budget.gaussian_mu) ** 2) / 8))
    assert gaussian <= budget.group_epsilon(size)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6))
@settings(max_examples=60)
def test_groups_against_chains_of_distributions(logits):
    """Any chain of two-point laws: the ends are no further apart than k^2 times the widest step."""
    laws = [1 / (1 + math.exp(-x)) for x in logits]

    def squared(p, q):
        return (math.sqrt(p) - math.sqrt(q)) ** 2 + (math.sqrt(1 - p) - math.sqrt(1 - q)) ** 2

    steps = [squared(p, q) for p, q in pairwise(laws)]
    if max(steps) > 0:
        bound = HellingerBudget(max(max(steps), 1e-300)).group_epsilon(len(steps))
        assert squared(laws[0], laws[-1]) <= bound * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("p", [0.001, 0.1, 0.4])
def test_publishing_the_record_with_a_small_probability_is_private_for_hdp_and_for_no_mu(p):
    """So HDP does not imply GDP, whatever Proposition 10 of the Hellinger paper says."""
    first = np.array([1 - p, p, 0.0])  # nothing, my record, the other record
    second = np.array([1 - p, 0.0, p])
    epsilon = np.sum((np.sqrt(first) - np.sqrt(second)) ** 2)
    assert epsilon == pytest.approx(2 * p)
    budget = HellingerBudget(2 * p)
    assert p <= budget.total_variation
    claimed = 2 * norm.ppf((math.sqrt(2 * p) + 1) / 2)
    for mu in [claimed, 1.0, 10.0]:
        e = mu * mu + 8 * mu + 5
        hockey_stick = np.sum(np.maximum(first - math.exp(e) * second, 0))
        assert hockey_stick == pytest.approx(p)
        assert gdp.delta_of(mu, e) < hockey_stick


def test_no_general_conversion_exists():
    for kind in (HellingerBudget, PowerBudget):
        names = {name for name in dir(kind) if not name.startswith("_")}
        from_noise = {name for name in names if name.startswith(("gaussian_", "of_gaussian", "laplace_"))}
        assert not [name for name in names - from_noise if "rho" in name or "mu" in name or "zcdp" in name]
    assert not hasattr(HellingerBudget, "epsilon_of")


@pytest.mark.parametrize("bad", [0.0, -0.1, 2.0, 2.5, math.nan, math.inf, None, "0.2", True])
def test_bad_budgets(bad):
    with pytest.raises((ValueError, TypeError), match="hdp"):
        HellingerBudget(bad)


def test_bad_use():
    budget = HellingerBudget(0.2)
    with pytest.raises(ValueError, match="size"):
        budget.group_epsilon(0)
    with pytest.raises(ValueError, match="mu"):
        HellingerBudget.of_gdp(0.0)
    with pytest.raises(ValueError, match="hdp"):  # so little noise that nothing can be said
        HellingerBudget.of_gaussian(500.0)
    assert budget.parallel(HellingerBudget(0.3), neighbours="add-remove").epsilon == 0.3
