"""Power-divergence privacy: against numerical integration, and against what the papers claim of it."""

import math
from itertools import pairwise

import gdp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

from fogline.accounting import PowerBudget, zcdp
from fogline.accounting import divergences as noise

powers = st.floats(-3.0, 3.0)
shifts = st.floats(0.05, 3.0)
INFINITE = {"sensitivity": math.inf}


def log_gaussian(x):
    return -x * x / 2 - math.log(2 * math.pi) / 2


def log_laplace(x):
    return -abs(x) - math.log(2)


def integrated(log_density, shift, power):
    """The divergence of a density from its shift, by its definition."""
    if power in (0.0, -1.0):

        def part(x):
            return math.exp(log_density(x)) * (log_density(x) - log_density(x - shift))

        return quadrature(part, shift)
    c = power * (power + 1)

    def part(x):
        first, second = log_density(x), log_density(x - shift)
        ratio = math.exp((power + 1) * first - power * second)
        return (ratio - (power + 1) * math.exp(first) + power * math.exp(second)) / c

    return quadrature(part, shift)


def quadrature(part, shift):
    ends = [-40.0, -5.0, 0.0, shift, shift + 5.0, 45.0]
    return sum(integrate.quad(part, a, b, limit=200)[0] for a, b in pairwise(ends))


@given(powers, shifts)
@settings(max_examples=40)
def test_gaussian_divergence_is_the_integral(power, shift):
    assume(abs(power) > 1e-3)
    assume(abs(power + 1) > 1e-3)
    expected = integrated(log_gaussian, shift, power)
    assert noise.gaussian_divergence(power, shift**2 / 2, **INFINITE) == pytest.approx(expected, rel=1e-6)


@given(powers, shifts)
@settings(max_examples=40)
def test_laplace_divergence_is_the_integral_and_below_its_bound(power, shift):
    assume(abs(power) > 1e-3)
    assume(abs(power + 1) > 1e-3)
    expected = integrated(log_laplace, shift, power)
    exact = noise.laplace_divergence(power, shift)
    assert exact == pytest.approx(expected, rel=1e-6)
    assert exact <= noise.laplace_bound(power, shift)


@pytest.mark.parametrize("power", [0.0, -1.0])
def test_kullback_leibler(power):
    assert noise.gaussian_divergence(power, 0.5) == pytest.approx(integrated(log_gaussian, 1.0, 0.0))
    assert noise.laplace_divergence(power, 1.3) == pytest.approx(integrated(log_laplace, 1.3, 0.0))
    assert noise.laplace_bound(power, 1.3) == pytest.approx(1.3)


@pytest.mark.parametrize("near", [1e-7, -1e-7, 1e-12, 1e-200, -1 + 1e-12])
def test_powers_near_the_limits_are_continuous(near):
    assert noise.gaussian_divergence(near, 0.5) == pytest.approx(0.5, rel=1e-6)
    assert noise.laplace_divergence(near, 1.0) == pytest.approx(math.exp(-1), rel=1e-6)
    assert PowerBudget(near, 0.3).repeated(4).epsilon == pytest.approx(1.2, rel=1e-6)


def test_the_worst_laplace_shift_moves_one_coordinate():
    for power in [-0.5, -0.3, 0.0, 0.5, 2.0]:
        whole = noise.log_moment_of(power, noise.laplace_divergence(power, 2.0))
        for first in [0.1, 0.7, 1.0]:
            parts = [noise.laplace_divergence(power, t) for t in (first, 2.0 - first)]
            assert sum(noise.log_moment_of(power, part) for part in parts) <= whole


def test_discrete_laplace_exceeds_the_continuous_one_but_not_the_bound():
    z = np.arange(-400, 400)
    for power in [-0.5, 0.5, 1.0]:
        scale = 2.0
        p, q = np.exp(-np.abs(z) / scale), np.exp(-np.abs(z - 1) / scale)
        p, q = p / p.sum(), q / q.sum()
        lattice = (np.sum(p ** (power + 1) * q**-power) - 1) / (power * (power + 1))
        assert noise.laplace_divergence(power, 1 / scale) < lattice < noise.laplace_bound(power, 1 / scale)


@given(powers, st.floats(1e-4, 0.95), st.sampled_from([1.0, 1.5, 4.0, 2.0**22, math.inf]))
@settings(max_examples=100)
def test_calibrated_noise_meets_the_budget_and_is_sharp(power, part, sensitivity):
    top = -1 / (power * (power + 1)) if -1 < power < 0 else 5.0
    budget = PowerBudget(power, part * min(top, 5.0))
    rho = budget.gaussian_rho(sensitivity=sensitivity)
    assert noise.gaussian_divergence(power, rho, sensitivity=sensitivity) <= budget.epsilon
    assert noise.gaussian_divergence(power, rho * (1 + 1e-6), sensitivity=sensitivity) > budget.epsilon
    for exact, divergence in [(False, noise.laplace_bound), (True, noise.laplace_divergence)]:
        scale = budget.laplace_scale(sensitivity=3.0, exact=exact)
        assert divergence(power, 3.0 / scale) <= budget.epsilon
        assert divergence(power, 3.0 / (scale * (1 - 1e-6))) > budget.epsilon


@given(st.one_of(powers, st.just(-0.5), st.floats(-0.6, -0.4)), st.floats(1e-6, 20.0))
@settings(max_examples=150)
def test_rounding_is_safe_against_high_precision(power, amount):
    mpmath = pytest.importorskip("mpmath")
    assume(min(abs(power), abs(power + 1)) > 1e-12)
    with mpmath.workdps(60):
        p, t = mpmath.mpf(power), mpmath.mpf(amount)
        c = p * (p + 1)
        assert noise.gaussian_divergence(power, amount, **INFINITE) >= mpmath.expm1(c * t) / c
        assert noise.laplace_bound(power, amount) >= mpmath.expm1(max(p, -1 - p) * t) / c
        m = p + mpmath.mpf(1) / 2
        exact = mpmath.exp(-t / 2) * (mpmath.cosh(m * t) + (mpmath.sinh(m * t) / (2 * m) if m else t / 2))
        assert noise.laplace_divergence(power, amount) >= (exact - 1) / c
        epsilon = noise.gaussian_divergence(power, amount, **INFINITE)
        if epsilon < 1e6 and (c > 0 or -c * epsilon < 1 - 1e-6):
            once = mpmath.log1p(c * mpmath.mpf(epsilon))
            assert PowerBudget(power, epsilon).repeated(3).epsilon >= mpmath.expm1(3 * once) / c


def test_the_formula_of_theorem_7():
    power, epsilon = 1.5, 0.7
    c = power * (power + 1)
    variance = c / (2 * math.log(1 + c * epsilon))
    assert PowerBudget(power, epsilon).gaussian_rho() == pytest.approx(1 / (2 * variance), rel=1e-12)


@given(powers, st.lists(st.floats(1e-6, 0.9), min_size=1, max_size=5))
@settings(max_examples=100)
def test_composition_multiplies_moments(power, parts):
    c = power * (power + 1)
    assume(abs(c) > 1e-3)
    top = 1 / -c if -1 < power < 0 else 1.0
    budgets = [PowerBudget(power, part * min(top, 1.0)) for part in parts]
    assume(math.prod(1 + c * b.epsilon for b in budgets) > 1e-6)
    together = budgets[0].compose(*budgets[1:])
    expected = (math.prod(1 + c * b.epsilon for b in budgets) - 1) / c
    assert together.epsilon == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert together.epsilon >= max(b.epsilon for b in budgets)


@given(powers, st.floats(1e-6, 0.9), st.integers(1, 1000))
@settings(max_examples=100)
def test_shares_compose_to_the_whole(power, part, count):
    top = -1 / (power * (power + 1)) if -1 < power < 0 else 1.0
    budget = PowerBudget(power, part * min(top, 1.0))
    share = budget.share(count)
    assert share.repeated(count).epsilon <= budget.epsilon
    assert PowerBudget(power, share.epsilon * (1 + 1e-9)).repeated(count).epsilon > budget.epsilon
    assert budget.gaussian_rho(**INFINITE) == pytest.approx(count * share.gaussian_rho(**INFINITE), rel=1e-9)


def test_parallel_composition():
    small, middle, large = (PowerBudget(1.0, e) for e in (0.1, 0.2, 0.3))
    assert small.parallel(large, middle, neighbours="add-remove") == large
    assert small.parallel(large, middle, neighbours="replace") == large.compose(middle)
    assert small.parallel(neighbours="replace") == small
    with pytest.raises(ValueError, match="neighbours"):
        small.parallel(large, neighbours="swap")


def test_the_two_forms_of_a_power_are_one():
    assert PowerBudget(-2.0, 0.3) == PowerBudget(1.0, 0.3)
    assert PowerBudget(-1.0, 0.3) == PowerBudget(0.0, 0.3)


@given(st.floats(0.1, 30.0), st.floats(0.01, 2.0), st.floats(1e-12, 0.1))
@settings(max_examples=60)
def test_epsilon_and_delta_of_one_order(power, rho, delta):
    """A Gaussian's one order implies no more than all its orders do."""
    budget = PowerBudget(power, noise.gaussian_divergence(power, rho)) if power * (power + 1) * rho < 600 else None
    assume(budget is not None)
    order, renyi = budget.renyi
    assert order == power + 1
    assert renyi == pytest.approx(order * rho, rel=1e-9)
    assert budget.epsilon_of(delta) >= zcdp.epsilon_of(rho, delta) * (1 - 1e-9)


def test_the_best_order_of_a_gaussian_is_the_optimal_conversion():
    rho, delta = 0.3, 1e-5
    best = min(PowerBudget(t, noise.gaussian_divergence(t, rho)).epsilon_of(delta) for t in np.geomspace(0.5, 40, 400))
    assert best == pytest.approx(zcdp.epsilon_of(rho, delta), rel=1e-4)


@pytest.mark.parametrize("power", [-0.5, 0.0, -0.9])
def test_no_statement_from_orders_of_at_most_one(power):
    with pytest.raises(ValueError, match="power"):
        PowerBudget(power, 0.1).epsilon_of(1e-5)


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_one_power_implies_neither_zcdp_nor_gdp(power):
    """Geometric answers whose rate is the secret: finite at this power, infinite at a greater one.

    So (power, epsilon)-PDP holds with a finite epsilon, but Renyi privacy of some higher order with none, hence no
    rho-zCDP and no mu-GDP, whatever rho and mu. Remark 5 of the Hellinger paper claims epsilon-zCDP.
    """
    critical = power + 1.5
    a = 0.5
    b = a ** (critical / (critical - 1))

    def moment(order, first, second):
        ratio = first**order * second ** (1 - order)
        return (1 - first) ** order * (1 - second) ** (1 - order) / (1 - ratio) if ratio < 1 else math.inf

    def divergence(t, first, second):
        return (moment(t + 1, first, second) - 1) / (t * (t + 1))

    k = np.arange(400)
    p, q = (1 - a) * a**k, (1 - b) * b**k
    assert np.sum(p**1.2 * q**-0.2) == pytest.approx(moment(1.2, a, b), rel=1e-6)

    budget = PowerBudget(power, max(divergence(power, a, b), divergence(power, b, a)))
    claimed_rho = budget.epsilon
    order, renyi = budget.renyi
    assert (
        math.log(moment(order, a, b)) / power <= renyi * (1 + 1e-9) <= order * claimed_rho
    )  # what the remark compares
    assert moment(power + 2.5, a, b) == math.inf > math.exp((power + 1.5) * (power + 2.5) * claimed_rho)
    # The budget's own conversion survives: a small delta does not come for free here.
    for delta in [1e-3, 1e-6]:
        epsilon = budget.epsilon_of(delta)
        assert np.sum(np.maximum(p - math.exp(epsilon) * q, 0)) <= delta
    # Any mu is refuted by the tail: p exceeds e^epsilon q by more than the Gaussian can.
    for mu in [1.0, 2.0]:
        epsilons = np.linspace(5, 60, 100)
        assert any(np.sum(np.maximum(p - math.exp(e) * q, 0)) > gdp.delta_of(mu, e) for e in epsilons)


def test_the_mu_of_remark_5_is_infinite():
    """It is a supremum over levels of a test, of something that grows without bound as the level goes to 0."""
    power, epsilon = 1.0, 0.4
    factor = (power * (power + 1) * epsilon + 1) ** (1 / (power + 1))

    def wanted(level):
        return norm.isf(level) - norm.isf(factor * level ** (power / (power + 1)))

    values = [wanted(level) for level in (1e-3, 1e-10, 1e-50, 1e-150, 1e-300)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(math.sqrt(2 * math.log(1e300)) * (1 - math.sqrt(0.5)), rel=0.05)


@pytest.mark.parametrize(
    ("power", "epsilon", "name"),
    [
        (math.nan, 1.0, "power"),
        (math.inf, 1.0, "power"),
        ("1", 1.0, "power"),
        (None, 1.0, "power"),
        (1e9, 1.0, "power"),
        (True, 1.0, "power"),
        (1.0, 0.0, "epsilon"),
        (1.0, math.inf, "epsilon"),
        (-0.5, 4.0, "epsilon"),
        (-0.1, 11.2, "epsilon"),
        (1.0, None, "epsilon"),
    ],
)
def test_bad_budgets(power, epsilon, name):
    with pytest.raises((ValueError, TypeError), match=name):
        PowerBudget(power, epsilon)


def test_bad_use():
    budget = PowerBudget(1.0, 0.5)
    with pytest.raises(ValueError, match="power"):
        budget.compose(PowerBudget(0.5, 0.5))
    for bad in (0, 1.5):
        with pytest.raises((ValueError, TypeError), match="count"):
            budget.share(bad)
        with pytest.raises((ValueError, TypeError), match="count"):
            budget.repeated(bad)
    for bad in (0.5, math.nan, -1.0):
        with pytest.raises(ValueError, match="sensitivity"):
            PowerBudget(-0.5, 0.5).gaussian_rho(sensitivity=bad)
    with pytest.raises(ValueError, match="rho"):
        noise.gaussian_divergence(1.0, 0.0)
    with pytest.raises(AttributeError):
        budget.epsilon = 0.1
