"""Rounded Gaussian noise: its law, its price, and what is refused before noise is drawn."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from fogline.accounting import Cost, GaussianCost, GaussianEvent, LaplaceEvent, cost, gaussian_cost
from fogline.accounting.costs import UnsupportedEvent
from fogline.accounting.events import ComposedEvent, StableHistogramEvent
from fogline.mechanisms import discrete_gaussian
from fogline.mechanisms.discrete_gaussian import FineScale, add_rounded_gaussian, fine_scale, gaussian_scale
from fogline.testing import seeded_noise

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("rho", [0.02, 0.5, 8.0])
def test_what_is_added_is_a_rounded_gaussian(rho):
    with seeded_noise(3):
        noise = add_rounded_gaussian(lambda: np.zeros(40_000, int), size=40_000, sensitivity=1.0, rho=rho).values
    sd = 1 / math.sqrt(2 * rho)
    edges = np.arange(-5, 5) + 0.5 if sd < 2 else np.arange(-15, 15, 3) + 0.5
    expected = np.diff(stats.norm.cdf(np.r_[-np.inf, edges, np.inf] / sd)) * len(noise)
    kept = expected > 8
    observed = np.histogram(noise, np.r_[-1e9, edges, 1e9])[0]
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert stats.chi2.sf(statistic, kept.sum() - 1) > 1e-4


@pytest.mark.parametrize("sensitivity", [1.0, 1.5, 7.3, 2.0**22 + 9.0, 1e30])
@pytest.mark.parametrize("rho", [1e-6, 0.03, 2.0, 50.0])
def test_the_price_is_within_what_was_asked_for(sensitivity, rho):
    fine = fine_scale(sensitivity, rho)
    price = gaussian_cost(fine.event(sensitivity), 200_000)
    assert rho * (1 - 1e-12) <= price.rho <= rho
    assert price.distance < 1e-22
    assert cost(fine.event(sensitivity)).rho <= price.rho
    assert fine.released >= gaussian_scale(sensitivity, rho) * (1 - 1e-9)
    assert fine.released**2 <= gaussian_scale(sensitivity, rho) ** 2 * (1 + 1e-9) + 1 / 12 + 1e-6


def test_rounding_goes_to_the_nearest_step():
    fine = FineScale(2.0**20, 3)
    assert fine.rounded(np.array([-12, -5, -4, -3, 0, 3, 4, 11, 12])).tolist() == [-1, -1, 0, 0, 0, 0, 1, 1, 2]
    assert FineScale(2.0**21, 0).rounded(np.array([5])).tolist() == [5]


def test_values_are_the_exact_ones_and_noise():
    with seeded_noise(0):
        release = add_rounded_gaussian(lambda: np.array([10**6, -5]), size=2, sensitivity=1.0, rho=8.0)
    assert np.abs(release.values - [10**6, -5]).max() < 6
    assert add_rounded_gaussian(lambda: np.zeros(0, int), size=0, sensitivity=1.0, rho=1.0).price.distance == 0.0


def test_too_little_noise_is_noticed_before_it_is_drawn(monkeypatch):
    real = discrete_gaussian.fine_scale
    less = lambda *args: FineScale(real(*args).scale * (1 - 1e-9), real(*args).bits)  # noqa: E731
    monkeypatch.setattr(discrete_gaussian, "fine_scale", less)
    with pytest.raises(RuntimeError, match="does not meet rho"):
        add_rounded_gaussian(lambda: np.zeros(1, int), size=1, sensitivity=1.0, rho=0.5)


def test_a_distance_beyond_what_is_left_is_refused():
    with pytest.raises(RuntimeError, match="too far from a rounded Gaussian"):
        add_rounded_gaussian(lambda: np.zeros(3, int), size=3, sensitivity=1.0, rho=0.5, distance=Fraction(1, 10**27))


# -- prices -------------------------------------------------------------------------------------------------------


def test_prices_add_up_and_round_up():
    whole = GaussianCost(0.1, 1e-18) + GaussianCost(0.2, 1.0)
    assert (whole.rho, whole.distance) == (pytest.approx(0.3), 1.0)
    assert Fraction(whole.rho) >= Fraction(0.1) + Fraction(0.2)
    assert GaussianCost(0.5).mu == 1.0
    with pytest.raises(TypeError):
        GaussianCost(0.5) + Cost(0.5)
    for bad, match in [
        ((-1.0, 0.0), "rho"),
        ((math.inf, 0.0), "rho"),
        ((0.1, -1e-9), "distance"),
        ((0.1, 2.0), "dist"),
    ]:
        with pytest.raises(ValueError, match=match):
            GaussianCost(*bad)


def test_repeated_noise_costs_what_its_parts_cost():
    once, four = (gaussian_cost(GaussianEvent(1.0, 2.0**20, count=n), 5) for n in (1, 4))
    assert four.rho == pytest.approx(4 * once.rho)
    assert four.distance == pytest.approx(4 * once.distance)
    pure = gaussian_cost(LaplaceEvent(1.0, 10.0, count=3))
    assert (pure.rho, pure.distance) == (pytest.approx(3 * gaussian_cost(LaplaceEvent(1.0, 10.0)).rho), 0.0)
    assert pure.rho > cost(LaplaceEvent(1.0, 10.0, count=3)).rho


@pytest.mark.parametrize(
    "event", [StableHistogramEvent(1.0, 1e-6), ComposedEvent((GaussianEvent(1.0, 2.0**20),)), "a histogram"]
)
def test_what_is_not_known_to_be_gaussian_is_refused(event):
    with pytest.raises(UnsupportedEvent, match="not known to be Gaussian-DP"):
        gaussian_cost(event)
