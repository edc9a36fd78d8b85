"""Draws on cells: counts in the mollifier whatever goes in, the law in whole numbers, replay and attack."""

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fogline.accounting import IntegralGuarantee
from fogline.audit import attack, replay
from fogline.audit.neighbour_pairs import Pair
from fogline.audit.replay import AUDITED
from fogline.families.base_measures import NormalBase, UniformBase
from fogline.mechanisms.errors import ReleaseFailed
from fogline.mechanisms.mollified_cells import AXIS_BITS, cell_centres, count_range, counts_of, mollified_cells
from fogline.mechanisms.mollified_draws import COIN
from fogline.testing import seeded_noise

MODULE = importlib.import_module("fogline.mechanisms.mollified_cells")  # its package has a function of that name
CELLS = 2 ** AXIS_BITS[1]
LINE, NORMAL = UniformBase([(0, 1)]), NormalBase([0.0], [[1.0]])
PROOF = "mechanisms/mollified_cells.proof.md"


def secret(side):
    return counts_of(side * 1e6 * (cell_centres(1)[:, 0] - 0.5), epsilon=1.0)


# -- counts -------------------------------------------------------------------------------------------------------


@given(
    st.floats(1e-9, 60.0),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=2**5, max_size=2**5),
)
def test_any_numbers_become_counts_in_the_mollifier(epsilon, values):
    counts = counts_of(np.array(values), epsilon=epsilon)
    least, most = count_range(epsilon, len(values))
    assert sum(counts.tolist()) == COIN
    assert counts.min() >= least
    assert counts.max() <= most


@given(st.floats(1e-6, 30.0), st.sampled_from([2**12, 2**14, 2**15]))
def test_the_range_is_that_of_the_mollifier(epsilon, cells):
    least, most = count_range(epsilon, cells)
    assert least * cells / COIN >= math.exp(-epsilon / 2) * (1 - 1e-12)
    assert most * cells / COIN <= math.exp(epsilon / 2) * (1 + 1e-12)
    assert least <= COIN // cells <= most


def test_the_counts_are_the_best_there_are():
    """Against the known optimum: the target's ratio, scaled and clamped to the mollifier."""
    target = stats.beta(2, 5).pdf(cell_centres(1)[:, 0]) + 1e-12
    target /= target.mean()
    counts = counts_of(np.log(target), epsilon=1.0) * (CELLS / COIN)
    gain = (target * np.log(counts)).mean()
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = counts_of(np.log(counts) + 0.1 * rng.normal(size=CELLS), epsilon=1.0) * (CELLS / COIN)
        assert (target * np.log(other)).mean() <= gain + 1e-9
    inside = (counts > 1.001 * counts.min()) & (counts < 0.999 * counts.max())
    assert inside.any()
    np.testing.assert_allclose(np.diff(np.log(counts[inside] / target[inside])), 0, atol=1e-6)


# -- draws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [LINE, NORMAL], ids=["uniform", "normal"])
def test_draws_follow_the_counts(base):
    counts = counts_of(np.sin(9 * cell_centres(1)[:, 0]), epsilon=2.0)
    with seeded_noise(1):
        drawn = mollified_cells(lambda: counts, base, size=20_000, epsilon=2.0)
    heights = np.concatenate([[0.0], np.cumsum(counts) / COIN])
    law = lambda u: np.interp(u, np.linspace(0, 1, CELLS + 1), heights)  # noqa: E731
    assert stats.kstest(base.uniforms(drawn)[:, 0], law).pvalue > 1e-3
    assert stats.kstest(base.uniforms(drawn)[:, 0], "uniform").pvalue < 1e-6


@pytest.mark.parametrize("d", [2, 3])
def test_cells_are_in_order_in_every_number_of_columns(d):
    centres = cell_centres(d)
    counts = counts_of(np.where((centres > 0.5).all(axis=1), 50.0, -50.0), epsilon=2.0)
    with seeded_noise(2):
        drawn = mollified_cells(lambda: counts, UniformBase([(0, 1)] * d), size=4000, epsilon=2.0)
    expected = counts[(centres > 0.5).all(axis=1)].sum() / COIN
    assert (drawn > 0.5).all(axis=1).mean() == pytest.approx(expected, abs=0.03)
    assert expected > 1.5 * 0.5**d


@pytest.mark.parametrize(
    "bad",
    [
        np.full(CELLS, COIN // CELLS + 1),
        np.r_[COIN, np.zeros(CELLS - 1, dtype=np.int64)],
        np.full(CELLS, COIN / CELLS),
        np.zeros(3, dtype=np.int64),
        np.full(CELLS, -1),
    ],
    ids=["sum", "one cell", "floats", "shape", "negative"],
)
def test_counts_that_are_none_are_the_base(bad):
    with seeded_noise(3):
        drawn = mollified_cells(lambda: bad, LINE, size=4000, epsilon=1.0)
    assert stats.kstest(drawn[:, 0], "uniform").pvalue > 1e-4


def test_a_failure_says_nothing():
    def bad():
        raise ValueError("secret")

    with pytest.raises(ReleaseFailed) as caught:
        mollified_cells(bad, LINE, size=1, epsilon=1.0)
    assert caught.value.__context__ is None


# -- audit --------------------------------------------------------------------------------------------------------


def released(side):
    counts = secret(side)
    drawn = mollified_cells(lambda: counts, NORMAL, size=5, epsilon=1.0)
    return SimpleNamespace(
        draws=drawn, guarantee=IntegralGuarantee.of(1.0, draws=5, mechanism="draws", proof=PROOF, reason=AUDITED)
    )


def test_replay_on_data_that_have_nothing_in_common():
    report = replay(released, [Pair("opposite", -1, 1), Pair("none", 0, 1)])
    assert report.passed, str(report)
    assert 0.7 < report.largest_ratio <= 1.0


def test_without_the_check_the_audit_fails(monkeypatch):
    real = MODULE.count_range
    monkeypatch.setattr(MODULE, "counts_of", lambda values, epsilon: counts_of(values, epsilon=3 * epsilon))
    monkeypatch.setattr(MODULE, "count_range", lambda epsilon, cells: (1, real(epsilon, cells)[1] * 9))
    monkeypatch.setattr(MODULE, "float", lambda _: float(real(1.0, CELLS)[1] - real(1.0, CELLS)[0]), raising=False)

    def leaky(side):
        counts = counts_of(side * 1e6 * (cell_centres(1)[:, 0] - 0.5), epsilon=3.0)
        return mollified_cells(lambda: counts, NORMAL, size=5, epsilon=1.0)

    assert "declared sensitivity apart" in str(replay(leaky, [Pair("opposite", -1, 1)]))


def attacked(epsilon=1.0, runs=6000):
    """Tell a model that sends all to the right from one that sends all to the left, by one draw."""
    claim = IntegralGuarantee.of(1.0, draws=1, mechanism="draws", proof=PROOF)
    tables = {side: counts_of(side * 1e6 * (cell_centres(1)[:, 0] - 0.5), epsilon=epsilon) for side in (-1, 1)}
    sides = {
        side: iter(mollified_cells(lambda t=table: t, NORMAL, size=2 * runs, epsilon=epsilon))
        for side, table in tables.items()
    }
    event = lambda x: float(x[0] > 0)  # noqa: E731
    return attack(lambda side: next(sides[side]), -1, 1, claim, score=event, threshold=0.5, runs=runs)


def test_one_draw_does_not_tell_too_much():
    with seeded_noise(7):
        report = attacked()
    assert not report.broken
    assert report.epsilon_lower > 0.6


def test_one_draw_at_twice_the_epsilon_does():
    with seeded_noise(7):
        assert attacked(epsilon=2.0).broken
