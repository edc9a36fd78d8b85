"""Pairs of a profile: groups, the level of the test under both laws of noise, power, intervals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fogline import profile
from fogline.density.column_pairs import SETTINGS, CellGroups, PairCounts, plan_groups, read_pairs
from fogline.density.columns import CategoryColumn, NumberColumn
from fogline.density.leaves import Noise
from fogline.testing import seeded_noise


def groups(name, size, ordered=True):
    return CellGroups(name, np.arange(size + 1), tuple(f"{name}{k}" for k in range(size)), ordered)


def noisy(rng, cells, n, noise):
    exact = rng.multinomial(n, np.ravel(cells)).reshape(np.shape(cells))
    if noise.kind == "gaussian":
        return exact + np.round(rng.normal(0, noise.scale, exact.shape)).astype(np.int64)
    stop = -np.expm1(-1 / noise.scale)
    return exact + rng.geometric(stop, exact.shape) - rng.geometric(stop, exact.shape)


def pair(counts, noise, ordered=True):
    (found,) = read_pairs([PairCounts(groups("a", len(counts), ordered), groups("b", counts.shape[1]), counts, noise)])
    return found


SKEWED = np.outer([0.6, 0.2, 0.1, 0.1], [0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("kind", "n", "scale", "runs"),
    [("gaussian", 4000, 120.0, 1500), ("gaussian", 1000, 5.0, 1500), ("laplace", 4000, 80.0, 250)],
)
def test_the_level_is_kept_under_noise(kind, n, scale, runs):
    """Of independent columns at most about one in twenty is called dependent, whatever the noise."""
    rng = np.random.default_rng(0)
    found = [pair(noisy(rng, SKEWED, n, Noise(kind, scale)), Noise(kind, scale)) for _ in range(runs)]
    rejected = np.mean([one.p_value < 0.05 for one in found])
    assert rejected < 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / runs)
    assert np.mean([one.is_told for one in found]) > 0.95
    assert np.mean([one.rank_correlation.low <= 0 <= one.rank_correlation.high for one in found]) > 0.9
    naive = np.mean([_naive(one, n) for one in found])
    assert scale < 10 or naive > 0.3, "without the noise in its law the test would see dependence everywhere"


def _naive(found, n):
    from scipy.stats import chi2

    expected = np.outer(found.shares.sum(axis=1), found.shares.sum(axis=0))
    return chi2.sf(n * ((found.shares - expected) ** 2 / np.maximum(expected, 1e-9)).sum(), 6) < 0.05


def test_dependence_is_found_and_its_interval_holds_the_truth():
    rng = np.random.default_rng(1)
    cells = np.array([[0.16, 0.06, 0.03], [0.06, 0.2, 0.07], [0.03, 0.09, 0.3]])
    expected = np.outer(cells.sum(axis=1), cells.sum(axis=0))
    true = np.sqrt(((cells - expected) ** 2 / expected).sum() / 2)
    found = [pair(noisy(rng, cells, 3000, Noise("gaussian", 40.0)), Noise("gaussian", 40.0)) for _ in range(200)]
    assert all(one.depends and one.rank_correlation.low > 0 for one in found)
    assert np.mean([one.association.low <= true <= one.association.high for one in found]) > 0.88
    assert abs(np.mean([one.association.value for one in found]) - true) < 0.02
    assert found[0].lift[0, 0] > 1 > found[0].lift[0, 2]
    parts = found[0].association
    assert np.hypot(parts.privacy, parts.sampling) == pytest.approx(parts.standard_error)


def test_where_noise_is_too_large_nothing_is_told():
    found = pair(np.full((3, 3), 20), Noise("gaussian", 100.0))
    assert (found.is_told, found.p_value, found.depends) == (False, 1.0, False)
    assert (found.association.low, found.association.high) == (0.0, 1.0)
    assert not pair(np.full((1, 3), 2000), Noise("gaussian", 1.0)).is_told


def test_p_values_are_adjusted_by_holm():
    tables = [np.array([[500, 500], [500, 500 + 4 * k]]) for k in range(5)]
    found = read_pairs(
        [PairCounts(groups(f"a{k}", 2), groups("b", 2), t, Noise("gaussian", 1.0)) for k, t in enumerate(tables)]
    )
    values = [one.p_value for one in found]
    assert values == sorted(values)
    assert found[0].adjusted_p_value == pytest.approx(min(5 * values[0], 1))
    assert all(a.adjusted_p_value <= b.adjusted_p_value for a, b in pairwise(found))


def test_categories_are_grouped_by_released_counts():
    plan = CategoryColumn.of("ward", list("abcdef"))
    found = plan_groups(plan, np.array([500, 60, 300, 20, 30, 5, 0, 7]), None, Noise("gaussian", 1.0))
    assert found.labels == ("a", "c", "4 others")
    assert found.of_cell.tolist() == [0, 2, 1, 2, 2, 2, 2, 3]
    coarse = plan_groups(plan, np.array([500, 30, 300, 20, 10, 5, 0, 7]), None, Noise("gaussian", 200.0))
    assert coarse.size == 2, "with much noise there are few groups"
    assert CellGroups.from_dict(found.to_dict()).of_cell.tolist() == found.of_cell.tolist()
    with pytest.raises(ValueError, match="groups of this profile"):
        CellGroups.from_dict({**found.to_dict(), "groups": [9] * len(found.to_dict()["groups"])})


def test_groups_of_numbers_are_near_quartiles_and_missing_values_are_in_none():
    rng = np.random.default_rng(0)
    stay = np.where(rng.random(8000) < 0.3, 0.0, rng.gamma(2, 3, 8000))
    table = np.column_stack([stay, stay + rng.normal(0, 1, 8000), rng.uniform(0, 1, 8000)])
    table[::10, 0] = np.nan
    with seeded_noise(0):
        found = profile(table, bounds=[(0, 60), (-5, 60), (0, 1)], pairs="all", epsilon=2.0)
    cut = found._pairs[0].first
    assert cut.size == SETTINGS.most_groups
    assert cut.of_cell[-3:].tolist() == [cut.size] * 3
    assert found._pairs[0].counts.sum() == pytest.approx(7200, abs=500)
    assert found.pair("x2", "x1").depends
    assert found.pair("x2", "x1").rank_correlation.value > 0.7
    assert not found.pair("x1", "x3").depends
    assert isinstance(found._parts[0][0], NumberColumn)
    with pytest.raises(KeyError, match="was not released"):
        found.pair("x1", "x9")
