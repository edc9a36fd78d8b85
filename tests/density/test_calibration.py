"""Intervals hold the truth about as often as they say, over releases with fixed seeds."""

import numpy as np
import pytest
from scipy import stats

from fogline import DensitySketch
from fogline.testing import seeded_noise

LOWEST, HIGHEST = 0.88, 0.995
LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])

LAWS = {
    "normal": (stats.norm(0.4, 0.12), 0.0),
    "skewed": (stats.gamma(2, scale=0.08), 0.0),
    "zeros": (stats.expon(scale=0.15), 0.3),
}


def drawn(law, zeros, n, seed):
    rng = np.random.default_rng(seed)
    within = law.ppf(law.cdf(0) + (law.cdf(1) - law.cdf(0)) * rng.random(n))
    return np.where(rng.random(n) < zeros, 0.0, within)


def truth_of(target, law, zeros, records):
    """Distribution function: share at most x, or below x."""
    ordered = np.sort(records)

    def share(x, *, at=True):
        x = np.asarray(x)
        if target == "records":
            return np.searchsorted(ordered, x, side="right" if at else "left") / len(ordered)
        smooth = np.clip((law.cdf(x) - law.cdf(0)) / (law.cdf(1) - law.cdf(0)), 0, 1)
        return zeros * (x >= 0 if at else x > 0) + (1 - zeros) * smooth

    return share


@pytest.fixture(scope="module")
def releases():
    """Posteriors with the records behind them, at several sizes and budgets."""
    found = []
    for number, (law, zeros) in enumerate(LAWS.values()):
        for run, (n, epsilon) in enumerate([(500, 1.0), (3000, 0.3), (3000, 3.0), (20_000, 1.0)]):
            records = drawn(law, zeros, n, [number, run])
            sketch = DensitySketch([(0.0, 1.0)], features="leaves").update(records[:, None])
            with seeded_noise(100 * number + run):
                found.append((sketch.release(epsilon=epsilon).posterior, law, zeros, records))
    return found


def rates(releases, target):
    """Share of right intervals: of boxes, and of quantiles."""
    boxes, quantiles = [], []
    for number, (posterior, law, zeros, records) in enumerate(releases):
        share = truth_of(target, law, zeros, records)
        rng = np.random.default_rng([7, number])
        for low, high in np.sort(rng.random((8, 2)), axis=1):
            found = posterior.probability([(low, high)], target=target)
            boxes.append(found.low <= share(high) - share(low, at=False) <= found.high)
        found = posterior.quantile(LEVELS, target=target)
        quantiles += ((share(found.low, at=False) <= LEVELS) & (share(found.high) >= LEVELS)).tolist()
    return np.mean(boxes), np.mean(quantiles)


@pytest.mark.parametrize("target", ["population", "records"])
def test_coverage_is_near_its_level(releases, target):
    of_boxes, of_quantiles = rates(releases, target)
    assert LOWEST <= of_boxes <= HIGHEST
    assert LOWEST <= of_quantiles <= HIGHEST


def test_coverage_falls_with_the_level(releases):
    """Half of the intervals at level 0.5 must miss: an interval that is always right says nothing."""
    right = []
    for posterior, law, zeros, records in releases:
        share = truth_of("population", law, zeros, records)
        found = posterior.cdf(np.linspace(0.05, 0.6, 12), level=0.5)
        truth = share(np.linspace(0.05, 0.6, 12))
        right += ((found.low <= truth) & (truth <= found.high)).tolist()
    assert 0.3 < np.mean(right) < 0.7
