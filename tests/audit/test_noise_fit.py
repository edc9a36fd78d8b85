"""The goodness-of-fit test: true laws pass, each fault of a sampler fails."""

import numpy as np
import pytest
from scipy import stats

from fogline.audit import noise_fit
from fogline.audit.noise_fit import _distribution, _moments
from fogline.mechanisms.randomness import SystemSource
from fogline.testing import SeededSource

CASES = [(law, scale) for law in ("gaussian", "laplace") for scale in (0.6, 3.3, 211.7, 5000.3, 2e7)]


def draws(law, scale, size=20_000, seed=1):
    return getattr(SeededSource(np.random.default_rng(seed)), law)(scale, size)


@pytest.mark.parametrize(("law", "scale"), CASES)
def test_true_laws_pass_and_less_noise_fails(law, scale):
    fit = noise_fit(draws(law, scale), law=law, scale=scale)
    assert fit.passed(1e-4), str(fit)
    assert fit.variance_ratio == pytest.approx(1.0, abs=0.08)
    assert not noise_fit(draws(law, 0.8 * scale), law=law, scale=scale).passed()


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_systems_noise_fits(law):
    assert noise_fit(getattr(SystemSource(), law)(17.3, 20_000), law=law, scale=17.3).passed()


def test_five_per_cent_too_little_shows_in_the_second_moment():
    fit = noise_fit(draws("gaussian", 0.95 * 1e6, 30_000), scale=1e6)
    assert fit.variance_p_value < 1e-6


@pytest.mark.parametrize(
    "fault",
    [
        lambda z: z + 30,
        lambda z: np.abs(z),
        lambda z: np.where(z % 2 == 0, z, z + 1),
        lambda z: np.clip(z, -60, 60),
        lambda z: np.round(np.random.default_rng(2).uniform(-50, 50, z.size) * np.sqrt(3)).astype(int),
    ],
    ids=["shifted", "one-sided", "even only", "clipped", "uniform of the same variance"],
)
def test_faults_of_shape(fault):
    scale = 3.0 if fault(np.array([1]))[0] == 2 else 50.0
    assert not noise_fit(fault(draws("gaussian", scale)), scale=scale).passed()


def test_p_values_are_uniform():
    p = [noise_fit(draws("gaussian", 7.0, 2000, seed), scale=7.0).shape_p_value for seed in range(300)]
    assert stats.kstest(p, "uniform").pvalue > 1e-4


def test_distribution_functions_are_exact():
    k = np.arange(-400.0, 401.0)
    for law, weight in (("gaussian", np.exp(-(k**2) / 2 / 9.3**2)), ("laplace", np.exp(-np.abs(k) / 9.3))):
        mass = weight / weight.sum()
        np.testing.assert_allclose(_distribution(law, 9.3, k), np.cumsum(mass), atol=1e-12)
        second, fourth = _moments(law, 9.3)
        assert second == pytest.approx(mass @ k**2)
        assert fourth == pytest.approx(mass @ k**4)
    # The formula for large scales continues the sum.
    np.testing.assert_allclose(
        _distribution("gaussian", 4096.0, k * 20), _distribution("gaussian", 4096.0 + 1e-9, k * 20), atol=3e-9
    )


def test_bad_input():
    with pytest.raises(TypeError, match="integers"):
        noise_fit(np.ones(100), scale=1.0)
    with pytest.raises(ValueError, match="at least 50"):
        noise_fit(np.ones(10, dtype=int), scale=1.0)
    with pytest.raises(ValueError, match="law"):
        noise_fit(np.ones(100, dtype=int), law="cauchy", scale=1.0)
    with pytest.raises(ValueError, match="scale"):
        noise_fit(np.ones(100, dtype=int), scale=0.0)
