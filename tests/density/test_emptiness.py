"""Emptiness of joined boxes: exact on few buckets, chance told from structure on many."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fogline.density.posterior.emptiness import JoinedSettings, blend, joined_emptiness
from fogline.density.posterior.field import Mesh


def squares(side: int) -> Mesh:
    boxes = [[[i, i + 1], [j, j + 1]] for i in range(side) for j in range(side)]
    return Mesh.of(np.array(boxes), (side, side))


def prior(states: np.ndarray, share: float, axis: int = 0) -> float:
    """Probability of a table of empty (True) and filled buckets: halves along the first column, the second, ..."""
    if states.size == 1:
        return float(not states.all())
    if states.shape[axis] == 1:
        return prior(states, share, 1 - axis)
    halves = np.split(states, 2, axis=axis)
    none = [bool(half.all()) for half in halves]
    if all(none):
        return 0.0
    weight = share if any(none) else 1 - 2 * share
    for half, is_empty in zip(halves, none, strict=True):
        weight *= 1.0 if is_empty else prior(half, share, 1 - axis)
    return weight


@pytest.mark.parametrize("seed", range(3))
def test_halves_are_summed_over_exactly(seed: int) -> None:
    mesh = Mesh.of(np.array([[[i, i + 1], [j, j + 1]] for i in range(4) for j in range(2)]), (4, 2))
    gain = np.random.default_rng(seed).normal(0.0, 2.0, 8)
    wanted, total = np.zeros(8), 0.0
    for bits in product((False, True), repeat=8):
        states = np.array(bits)
        weight = prior(states.reshape(4, 2), 0.3) * np.exp(gain[states].sum())
        wanted += weight * states
        total += weight
    once = JoinedSettings(shifts=((0.0, 0.0),), start=0.3, steps=1)
    assert joined_emptiness(mesh, gain, once) == pytest.approx(wanted / total, abs=1e-9)


def test_buckets_without_records_by_chance_are_not_empty_and_a_region_is() -> None:
    # one record expected in each of 32 x 32 buckets, seen without noise; a quarter of the box is empty
    side, rng = 32, np.random.default_rng(5)
    counts = rng.poisson(1.0, (side, side))
    counts[: side // 2, : side // 2] = 0
    gain = np.where(counts == 0, 1.0, -20.0)  # log of P(0 | 0) / P(0 | 1), and certainty
    empty = joined_emptiness(squares(side), gain.ravel()).reshape(side, side)
    region = np.zeros((side, side), dtype=bool)
    region[: side // 2, : side // 2] = True
    assert empty[region].mean() > 0.9
    assert empty[~region & (counts == 0)].mean() < 0.35


def test_a_bucket_alone_in_an_empty_region_needs_more_than_its_own_count() -> None:
    side, gain = 16, np.full(256, 0.7)
    gain[:3] = -20.0
    gain[200] = -4.0
    empty = joined_emptiness(squares(side), gain)
    assert empty[:3].max() < 0.01
    assert 0.3 < empty[200] < 1.0
    assert np.delete(empty, [0, 1, 2, 200]).mean() > 0.9


def test_one_bucket_and_three_columns() -> None:
    assert joined_emptiness(squares(1), np.array([3.0])).tolist() == [0.0]
    boxes = np.array([[[i, i + 1], [j, j + 1], [k, k + 1]] for i, j, k in np.ndindex(4, 4, 4)])
    empty = joined_emptiness(Mesh.of(boxes, (4, 4, 4)), np.where(np.arange(64) < 32, -9.0, 2.0))
    assert empty[:32].max() < 0.1 < 0.9 < empty[32:].min()


def test_blend_is_between_both_and_keeps_the_ends() -> None:
    first, second = np.array([0.0, 0.2, 1.0]), np.array([0.0, 0.6, 1.0])
    found = blend(first, second, 0.5)
    assert found[0] < 1e-6
    assert 0.2 < found[1] < 0.6
    assert found[2] > 1 - 1e-6
    assert blend(first, second, 0.0)[1] == pytest.approx(0.2)
