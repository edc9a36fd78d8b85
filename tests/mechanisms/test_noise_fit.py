"""Goodness of fit of every sampler, system's and seeded, against exact probabilities; mutants fail."""

import hashlib
import math

import numpy as np
import pytest
from scipy import stats

from fogline.mechanisms.randomness import SystemSource
from fogline.testing import SeededSource

# False alarms at this level happen once in a million runs of a test; the mutants are far below it.
LEVEL = 1e-6


def seeded():
    return SeededSource(np.random.default_rng(20240229))


def masses(kind, scale):
    """Exact probabilities on a wide range of integers."""
    reach = math.ceil((12 if kind == "gaussian" else 45) * scale) + 2
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-(z**2) / (2 * scale**2)) if kind == "gaussian" else np.exp(-np.abs(z) / scale)
    return z, weights / weights.sum()


def p_values(draws, kind, scale):
    """Chi-square over bins of at least 25 expected draws, and a two-sided test of the variance."""
    z, mass = masses(kind, scale)
    edges, running = [], 0.0
    for value, probability in zip(z, mass, strict=True):
        running += probability * len(draws)
        if running >= max(25, len(draws) / 60):
            edges.append(value)
            running = 0.0
    edges = edges[:-1] if running else edges
    bins = np.searchsorted(edges, draws)
    expected = np.bincount(np.searchsorted(edges, z), weights=mass, minlength=len(edges) + 1) * len(draws)
    observed = np.bincount(bins, minlength=len(expected))
    fit = stats.chisquare(observed, expected, sum_check=False).pvalue if len(expected) > 1 else 1.0
    variance, fourth = (mass * z**2.0).sum(), (mass * z**4.0).sum()
    score = (np.mean(draws.astype(float) ** 2) - variance) / math.sqrt((fourth - variance**2) / len(draws))
    return fit, 2 * stats.norm.sf(abs(score))


CASES = [
    ("gaussian", 0.7),
    ("gaussian", 3.3),
    ("gaussian", 211.7),
    ("laplace", 0.6),
    ("laplace", 4.2),
    ("laplace", 90.0),
]


@pytest.mark.parametrize(("kind", "scale"), CASES)
def test_system_source_fits(kind, scale):
    draws = getattr(SystemSource(), kind)(scale, 20_000)
    assert draws.dtype == np.int64
    assert min(p_values(draws, kind, scale)) > LEVEL


@pytest.mark.parametrize(("kind", "scale"), [*CASES, ("gaussian", 5000.3), ("gaussian", 20_000.0), ("laplace", 9000.5)])
def test_seeded_source_fits(kind, scale):
    draws = getattr(seeded(), kind)(scale, 60_000)
    assert draws.dtype == np.int64
    assert min(p_values(draws, kind, scale)) > LEVEL


@pytest.mark.parametrize(("kind", "scale"), [*CASES, ("gaussian", 5000.3)])
def test_a_mutant_with_less_noise_fails_the_same_test(kind, scale):
    draws = getattr(seeded(), kind)(0.8 * scale, 20_000)
    assert min(p_values(draws, kind, scale)) < LEVEL


@pytest.mark.parametrize("scale", [4097.0, 1e9, 1e15])
def test_rejection_at_large_scales_is_gaussian(scale):
    draws = seeded().gaussian(scale, 50_000)
    assert stats.kstest(draws / scale, "norm").pvalue > LEVEL
    assert stats.kstest(seeded().gaussian(0.8 * scale, 20_000) / scale, "norm").pvalue < LEVEL


def test_seeded_noise_is_fast_at_any_scale():
    import time

    for scale in (3.0, 4000.0, 1e9):
        source = seeded()
        source.gaussian(scale, 10)
        start = time.process_time()
        source.gaussian(scale, 100_000)
        assert time.process_time() - start < 0.3  # 0.03 on a quiet machine


def test_bytes_are_uniform():
    for source in (SystemSource(), seeded()):
        counts = np.bincount(np.frombuffer(source.bytes(1 << 16), dtype=np.uint8), minlength=256)
        assert stats.chisquare(counts).pvalue > LEVEL


def test_sizes_and_independence():
    for source in (SystemSource(), seeded()):
        assert source.gaussian(2.0, 0).shape == source.laplace(2.0, 0).shape == (0,)
        a = source.gaussian(100.0, 4000)
        assert abs(np.corrcoef(a[:-1], a[1:])[0, 1]) < 0.1
    first, second = SystemSource().gaussian(1e6, 50), SystemSource().gaussian(1e6, 50)
    assert hashlib.sha256(first.tobytes()).digest() != hashlib.sha256(second.tobytes()).digest()


def test_huge_scales_saturate_and_do_not_wrap():
    draws = SystemSource().laplace(1e19, 200)
    assert draws.max() == np.iinfo(np.int64).max
    assert draws.min() == np.iinfo(np.int64).min
