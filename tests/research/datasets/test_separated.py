"""Separated mixtures: as far apart, as bounded and as flat as they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline_research.datasets.separated import separated_mixture


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 7), st.floats(1, 200), st.floats(1, 1000), st.integers(0, 99))
def test_components_are_as_far_apart_as_they_say(d, k, separation, ratio, seed):
    mixture = separated_mixture(d, k, separation=separation, sigma_max=ratio, random_state=seed)
    sigmas = mixture.sigmas
    for i in range(k):
        for j in range(i):
            apart = np.linalg.norm(mixture.means[i] - mixture.means[j])
            assert apart >= separation * max(sigmas[i], sigmas[j]) * (1 - 1e-9)
    assert np.linalg.norm(mixture.means, axis=1).max() <= mixture.radius * (1 + 1e-9)
    assert sigmas.max() == pytest.approx(ratio)


def test_the_units_of_the_theorem():
    n = 1000
    mixture = separated_mixture(4, 3, separation=2.0, records=n, weight_min=0.1, sigma_max=3.0, random_state=0)
    w, s = mixture.weights, mixture.sigmas
    assert w[0] == pytest.approx(0.1)
    assert w.sum() == pytest.approx(1.0)
    assert w.min() >= 0.1 - 1e-12
    for i in range(3):
        for j in range(i):
            least = 2 * (s[i] + s[j]) * (np.sqrt(3 * np.log(n)) + w[i] ** -0.5 + w[j] ** -0.5)
            assert np.linalg.norm(mixture.means[i] - mixture.means[j]) >= least * (1 - 1e-9)


def test_flatness_and_samples():
    mixture = separated_mixture(4, 2, separation=10.0, flatness=5.0, random_state=0)
    widths = np.sqrt(np.linalg.eigvalsh(mixture.covariances))
    np.testing.assert_allclose(widths[:, -1] / widths[:, 0], 5.0)
    X, labels = mixture.sample(40_000, random_state=1)
    again, _ = mixture.sample(40_000, random_state=1)
    assert np.array_equal(X, again)
    for j in range(2):
        np.testing.assert_allclose(np.cov(X[labels == j].T), mixture.covariances[j], atol=0.05)
        np.testing.assert_allclose(X[labels == j].mean(axis=0), mixture.means[j], atol=0.05)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"separation": 0.0}, "separation"),
        ({"sigma_min": 2.0}, "sigma_min"),
        ({"flatness": 0.5}, "flatness"),
        ({"weight_min": 0.9}, "weight_min"),
        ({"radius": 0.1}, "radius"),
        ({"records": 0}, "records"),
    ],
)
def test_bad_input_is_named(wrong, name):
    with pytest.raises(ValueError, match=name):
        separated_mixture(2, 3, **({"separation": 5.0} | wrong))
