"""Attacks on DP-GRAMS that must succeed: its claimed epsilon is not what it delivers.

Each event is fixed here, before any run. The counts give a lower bound on epsilon that holds with confidence
99%; the claim is epsilon = 1. Should one of these tests fail, either the algorithm was changed and is no
longer the published one, or the audit lost its teeth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fogline.audit.binomial_bounds import epsilon_lower_bound
from fogline.datasets.simulated import gaussian_mixture4
from fogline_research.as_published import dp_grams
from fogline_research.as_published.dp_grams import DPGramsResult

CLAIM = {"epsilon": 1.0, "delta": 1e-5}
OUTLIER = np.array([30.0, 30.0])


def lower_bound(run: Callable[[bool, int], DPGramsResult], event: Callable[[DPGramsResult], bool], runs: int) -> float:
    """Count the event with and without the odd record, from different seeds."""
    hits_1 = sum(event(run(True, 2 * seed)) for seed in range(runs))
    hits_0 = sum(event(run(False, 2 * seed + 1)) for seed in range(runs))
    return epsilon_lower_bound(hits_1, runs, hits_0, runs, delta=CLAIM["delta"], confidence=0.99)


def near_outlier(result: DPGramsResult) -> bool:
    return bool((np.linalg.norm(result.modes - OUTLIER, axis=1) < 3.0).any())


@pytest.mark.parametrize(
    ("options", "runs", "least"),
    [
        pytest.param({"initial_fraction": 1.0}, 150, 3.0, id="all records start"),
        pytest.param({}, 250, 1.5, id="defaults"),
    ],
)
def test_an_outlier_drawn_as_a_start_comes_out_as_a_mode(options, runs, least):
    """Gap 1: the starts are raw records."""
    plain = gaussian_mixture4(300, random_state=0).X
    odd = plain.copy()
    odd[0] = OUTLIER

    def run(with_outlier: bool, seed: int) -> DPGramsResult:
        return dp_grams(odd if with_outlier else plain, **CLAIM, **options, random_state=seed)

    assert lower_bound(run, near_outlier, runs) > least


def test_one_record_stops_the_ascent_of_a_public_start():
    """Gap 2: with starts that are public, the division by the density of all records still gives it away.

    All data sit near the origin, the start at (8, 0). One record near the start takes all the kernel weight
    from the others, and the ascent stays where it is.
    """
    plain = np.random.default_rng(0).normal(scale=0.1, size=(2000, 2))
    odd = plain.copy()
    odd[0] = (8.0, 0.0)

    def run(with_record: bool, seed: int) -> DPGramsResult:
        data = odd if with_record else plain
        return dp_grams(data, **CLAIM, bandwidth=1.0, starts=[[8.0, 0.0]], step_size=1.0, random_state=seed)

    def far(result: DPGramsResult) -> bool:
        return bool(np.linalg.norm(result.modes[0]) > 4.0)

    assert lower_bound(run, far, 200) > 3.0


@pytest.mark.parametrize(("bandwidth", "exact"), [(2.0, False), (5.0, True)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_in_high_dimension_raw_records_come_out(bandwidth, exact, epsilon):
    """Gap 2: at d = 50 the clip h^(1-d) vanishes for h > 1, and the noise with it."""
    X = np.random.default_rng(0).normal(scale=3.0, size=(200, 50))
    result = dp_grams(X, epsilon=epsilon, delta=1e-5, bandwidth=bandwidth, initial_fraction=1.0, random_state=0)
    assert result.clip == pytest.approx(bandwidth**-49.0)
    assert result.noise_scale < 1e-9
    assert np.abs(result.raw_modes - X).max() < 1e-9
    if exact:
        np.testing.assert_array_equal(result.raw_modes, X)
