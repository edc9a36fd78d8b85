"""The Bernstein mechanism: exact sums, sensitivity, replay, the polynomial, the density that it becomes."""

from __future__ import annotations

import dataclasses
import itertools
import math
import pickle

import numpy as np
import pytest
from canaries import by_turns
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, norm

import fogline_research.baselines.bernstein as module
from fogline.audit import attack, canary_pairs, random_pairs, replay
from fogline.mechanisms.errors import ReleaseFailed
from fogline.testing import seeded_noise
from fogline_research.baselines import BernsteinDensity
from fogline_research.baselines.bernstein import (
    _iterated,
    _kernel_table,
    _lattice_sums,
    _polynomial,
    _positive,
    lattice_sensitivity,
)
from fogline_research.baselines.noisy_histogram import _cell_counts
from fogline_research.datasets.gaussian_rings import RING, gaussian_ring
from fogline_research.metrics import Quadrature, kl_divergence

RELATIONS = ("add-remove", "replace")
TABLE = _kernel_table(10, 0.1, 2)
UNIT = np.array([[0.0, 1.0], [0.0, 1.0]])
coordinate = st.one_of(st.floats(0, 1), st.floats(allow_nan=True, allow_infinity=True))
point = st.tuples(coordinate, coordinate)


def sums(rows):
    rows = np.array(rows, dtype=float).reshape(-1, 2)
    return _lattice_sums(_cell_counts(rows, UNIT, (len(TABLE),) * 2), TABLE, 2)


# -- exact and bounded ------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(point, max_size=5), point, point)
def test_neighbours_are_as_near_as_is_claimed(rows, one, other):
    added = np.abs(sums([*rows, one]) - sums(rows)).sum()
    replaced = np.abs(sums([*rows, one]) - sums([*rows, other])).sum()
    for rule in ("sum", "sup"):
        assert added <= lattice_sensitivity(TABLE, 2, "add-remove", rule)
        assert replaced <= lattice_sensitivity(TABLE, 2, "replace", rule)


def test_the_bound_is_reached():
    widest = int(np.argmax(TABLE.sum(axis=1)))
    place = (widest + 0.5) / len(TABLE)
    assert sums([[place, place]]).sum() == lattice_sensitivity(TABLE, 2, "add-remove")


def test_the_originals_bound_is_larger():
    table = _kernel_table(40, 1 / 40, 2)
    ratio = lattice_sensitivity(table, 2, "add-remove", "sup") / lattice_sensitivity(table, 2, "add-remove")
    assert ratio == pytest.approx((41 / math.sqrt(2 * math.pi)) ** 2, rel=0.01)
    assert lattice_sensitivity(table, 2, "replace") == 2 * lattice_sensitivity(table, 2, "add-remove")


@pytest.mark.parametrize("d", [1, 2, 3])
def test_sums_are_exact_for_any_number_of_records(d):
    table = _kernel_table(3, 0.5, d)
    rng = np.random.default_rng(d)
    counts = rng.integers(0, 2**20, size=len(table) ** d)
    found = _lattice_sums(counts, table, d).reshape((4,) * d)
    cells = list(itertools.product(range(len(table)), repeat=d))
    for point in itertools.product(range(4), repeat=d):
        exact = sum(
            int(n) * math.prod(int(table[c, v]) for c, v in zip(cell, point, strict=True))
            for n, cell in zip(counts, cells, strict=True)
        )
        assert found[point] == exact
    huge = np.zeros_like(counts)
    huge[0] = 2**50
    assert _lattice_sums(huge, table, d).max() == 2**61


def test_sums_are_the_kernel_estimate():
    rng = np.random.default_rng(0)
    rows = rng.random((200, 2))
    nodes = np.arange(11) / 10
    kernels = np.exp(-0.5 * ((rows[:, :, None] - nodes) / 0.1) ** 2)
    expected = np.einsum("na,nb->ab", kernels[:, 0], kernels[:, 1])
    np.testing.assert_allclose(sums(rows).reshape(11, 11) / 2.0**28, expected, atol=0.02 * expected.max())


# -- private ----------------------------------------------------------------------------------------------------


def fitted(neighbours, d=1, **options):
    settings_ = {"epsilon": 1.0, "bounds": [(-1, 3)] * d, "degree": 6, "neighbours": neighbours, **options}
    return lambda X: BernsteinDensity.fit(X, **settings_)


@pytest.mark.parametrize("relation", RELATIONS)
def test_replay_on_all_canaries(relation):
    pairs = canary_pairs([(-1, 3)], neighbours=relation, n=50, block=None)
    report = replay(fitted(relation), by_turns(pairs, relation))
    assert report.passed, str(report)
    assert 0.5 < report.largest_ratio <= 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_replay_on_random_pairs_in_the_plane(relation):
    report = replay(fitted(relation, 2), random_pairs([(-1, 3)] * 2, neighbours=relation, pairs=10, seed=0))
    assert report.passed, str(report)


def half_the_bound(table, d, neighbours, rule="sum"):
    return lattice_sensitivity(table, d, neighbours, rule) / 2


def no_bounds(rows, box, shape):
    share = (np.nan_to_num(rows) - box[:, 0]) / (box[:, 1] - box[:, 0])
    cell = np.clip((share * shape).astype(np.int64), 0, np.array(shape) - 1)
    counts = np.bincount(np.ravel_multi_index(tuple(cell.T), shape), minlength=math.prod(shape))
    return counts * (1 + (len(rows) > 50))  # and everybody counts twice in a large table


@pytest.mark.parametrize(("name", "broken"), [("lattice_sensitivity", half_the_bound), ("_cell_counts", no_bounds)])
def test_mutants_fail_replay(monkeypatch, name, broken):
    monkeypatch.setattr(module, name, broken)
    pairs = canary_pairs([(-1, 3)], neighbours="add-remove", n=50, block=None)
    assert not replay(fitted("add-remove"), pairs, until_failure=True).passed


def test_a_bandwidth_from_the_records_fails_replay():
    def tuned(X):
        rows = np.asarray(X, dtype=float)
        spread = np.nanstd(rows[np.isfinite(rows)]) if rows.size else 0.3
        return fitted("add-remove", bandwidth=float(np.clip(spread, 0.1, 1.0)))(X)

    pairs = canary_pairs([(-1, 3)], neighbours="add-remove", n=50, block=None)
    assert not replay(tuned, pairs, until_failure=True).passed


def test_the_values_do_not_tell_too_much():
    """The likelihood ratio of one record more."""
    crowd = np.zeros((30, 1))
    more = np.append(crowd, [[2.3]], axis=0)
    table = _kernel_table(6, 1 / 6, 1)
    row = table[int((2.3 + 1) / 4 * len(table))]
    seeds = itertools.count()

    def release(X):
        with seeded_noise(next(seeds)):
            return fitted("add-remove")(X)

    expected = _lattice_sums(_cell_counts(crowd, np.array([[-1.0, 3.0]]), (len(table),)), table, 1)

    def score(result):
        noise = result.values - expected
        return float((np.abs(noise) - np.abs(noise - row)).sum() / result.noise_scale)

    report = attack(release, crowd, more, claim=release(crowd).guarantee, score=score, runs=300)
    assert not report.broken


def test_missing_and_outside_records_change_nothing():
    X = np.linspace(0, 2, 50)[:, None]
    dirty = np.append(X, [[math.nan], [math.inf], [3.1], [-1e300]], axis=0)
    with seeded_noise(2):
        one = fitted("add-remove")(X)
    with seeded_noise(2):
        other = fitted("add-remove")(dirty)
    np.testing.assert_array_equal(one.values, other.values)


def test_the_guarantee_and_what_is_kept():
    X = np.full((40, 1), 1.2345678)
    density = fitted("replace")(X)
    assert density.guarantee.certified
    assert density.guarantee.neighbours == "replace"
    assert (density.guarantee.epsilon, density.guarantee.delta) == (1.0, 0.0)
    assert np.float64(1.2345678).tobytes() not in pickle.dumps(density)
    with seeded_noise(0):
        assert not fitted("replace")(X).guarantee.certified
    with pytest.raises(dataclasses.FrozenInstanceError):
        density.shift = 0.0


def test_the_noise_has_its_scale():
    with seeded_noise(0):
        density = BernsteinDensity.fit(np.empty((0, 2)), epsilon=0.5, bounds=UNIT)
    expected = lattice_sensitivity(_kernel_table(40, 1 / 40, 2), 2, "add-remove") / 0.5
    assert density.noise_scale == pytest.approx(expected)
    assert np.abs(density.values).mean() == pytest.approx(expected, rel=0.1)


# -- a polynomial, a density ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_linear_functions_are_kept(rounds):
    lattice = np.arange(8) / 7
    values = 1.0 + 2.0 * lattice[:, None] - lattice[None, :]
    unit = np.random.default_rng(0).random((20, 2))
    found = _polynomial(_iterated(values, rounds), unit)
    np.testing.assert_allclose(found, 1.0 + 2.0 * unit[:, 0] - unit[:, 1])


def test_iterating_goes_to_the_interpolant():
    lattice = np.arange(9) / 8
    values = np.sin(4 * lattice)
    errors = [np.abs(_polynomial(_iterated(values, r), lattice[:, None]) - values).max() for r in (1, 4, 64, 4096)]
    assert all(a > b for a, b in itertools.pairwise(errors))
    assert errors[-1] < 1e-3


def test_one_round_is_the_plain_bernstein_polynomial():
    values = np.array([1.0, 3.0, 0.0])
    u = 0.3
    plain = values @ [(1 - u) ** 2, 2 * u * (1 - u), u**2]
    assert _polynomial(_iterated(values, 1), np.array([[u]]))[0] == pytest.approx(plain)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_density_is_positive_and_integrates_to_one(d):
    for X in (np.empty((0, d)), np.full((500, d), 0.4), np.random.default_rng(0).random((2000, d))):
        with seeded_noise(d):
            density = BernsteinDensity.fit(X, epsilon=1.0, bounds=[(0, 2)] * d)
        rule = Quadrature.box([(0, 2)] * d, cells={1: 2000, 2: 120, 3: 24}[d])
        values = density.pdf(rule.nodes)
        assert values.min() > 0
        assert rule.weights @ values == pytest.approx(1.0, abs=0.03 if d == 3 else 0.01)
    assert density.pdf(np.full((1, d), 2.1)) == [0.0]


def test_more_budget_is_nearer_to_the_ring():
    X = gaussian_ring(5000, random_state=0).X
    box = [(-6.5, 6.5)] * 2
    rule = Quadrature.box(box, cells=60)
    truth = RING.pdf(rule.nodes)
    losses = []
    for epsilon in (0.03, 0.3, 3.0):
        with seeded_noise(1):
            density = BernsteinDensity.fit(X, epsilon=epsilon, bounds=box)
        losses.append(kl_divergence(truth, density.pdf(rule.nodes), rule.weights))
    assert losses[0] > losses[1] > losses[2]
    assert losses[2] < 0.8


def test_draws_follow_the_density():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    with seeded_noise(0):
        density = BernsteinDensity.fit(X, epsilon=5.0, bounds=(-5, 5))
    draws = density.sample(4000, random_state=1)
    grid = np.linspace(-5, 5, 4001)
    law = np.concatenate([[0.0], np.cumsum(density.pdf((grid[1:, None] + grid[:-1, None]) / 2)) * (10 / 4000)])
    assert kstest(draws[:, 0], lambda x: np.interp(x, grid, law)).pvalue > 1e-3
    assert kstest(draws[:, 0], norm.cdf).statistic < 0.1
    assert density.sample(0).shape == (0, 1)


def test_values_that_are_all_equal_are_uniform():
    shift, floor, total = _positive(np.zeros((4, 4)))
    assert (shift, floor, total) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"bounds": [(1, 0)]}, "bounds"),
        ({"bounds": [(0, 1)] * 4}, "one to three axes"),
        ({"degree": 0}, "degree"),
        ({"iterations": 0}, "iterations"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"bandwidth": 1e-7}, "bandwidth must be at most"),
        ({"bandwidth": 3.0, "degree": 10}, "bandwidth must be at most"),
        ({"neighbours": "swap"}, "neighbours"),
        ({"sensitivity": "max"}, "sensitivity"),
    ],
)
def test_bad_input_names_the_parameter(change, message):
    options = {"epsilon": 1.0, "bounds": [(0, 1)]} | change
    with pytest.raises(ValueError, match=message):
        BernsteinDensity.fit([[0.5]], **options)


def test_a_failure_after_the_noise_says_nothing(monkeypatch):
    monkeypatch.setattr(module, "_cell_counts", lambda rows, *_: 1 // (len(rows) - 4))
    with pytest.raises(ReleaseFailed) as caught:
        BernsteinDensity.fit(np.zeros((4, 1)), epsilon=1.0, bounds=(-1, 1))
    assert caught.value.__cause__ is caught.value.__context__ is None
