"""Accuracy before spending: exact noise, honest chances, no data, no budget."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fogline import PrivateModes
from fogline.datasets.simulated import GAUSSIAN_MIXTURE4, Mixture, mixture_modes
from fogline.planning import modes as module
from fogline.planning.modes import EPSILONS, expected_mode_error
from fogline.testing import seeded_noise

TWO = Mixture.of([0.6, 0.4], [[3.0], [7.0]], [0.8, 0.8])


def planned(**changed):
    return PrivateModes(**{"delta": 1e-6, "bounds": [(0, 10)], **changed})


@pytest.fixture(scope="module")
def two():
    return expected_mode_error(planned(), 2000, shape=TWO, epsilons=[1.0, 0.02, 0.2])


@pytest.mark.quick
def test_the_noise_is_exactly_that_of_a_fit(two):
    for neighbours, contributions in (("add-remove", 1), ("replace", 3)):
        estimator = planned(neighbours=neighbours, max_contributions=contributions)
        row = expected_mode_error(estimator, 50, epsilons=[0.7], runs=1).rows[0]
        density = estimator.set_params(epsilon=0.7).fit([[5.0]]).density_
        assert row.noise_scale == pytest.approx(density.noise_scale, rel=1e-9)
        assert row.count_error == pytest.approx(density.count_sd, rel=1e-9)


def test_more_epsilon_finds_more_and_errs_less(two):
    assert two.epsilons == (0.02, 0.2, 1.0)
    assert two.rows[0].detected.max() < 0.5
    assert two.rows[2].detected.tolist() == [1.0, 1.0]
    assert (two.rows[2].privacy_errors < two.rows[1].privacy_errors).all()
    assert two.rows[2].smallest_share < two.rows[1].smallest_share < two.rows[0].smallest_share
    assert two.modes == pytest.approx(mixture_modes(TWO), abs=1e-6)
    assert max(row.spurious for row in two.rows) < 0.2


def test_more_epsilon_never_looks_worse(two):
    """Few simulated fits may say by chance that noise helps: such rows are pooled, others stay as they are."""
    assert module.never_worse(two.rows)[2].privacy_errors == pytest.approx(two.rows[2].privacy_errors)
    low, middle, high = two.rows
    found = np.array([0.75, 0.5])
    changed = (
        replace(low, detected=found, spurious=0.1, smallest_share=0.5),
        replace(middle, detected=found[::-1], spurious=0.4, smallest_share=0.2, privacy_errors=2 * low.privacy_errors),
        replace(high, detected=np.ones(2), spurious=0.0, smallest_share=0.3),
    )
    rows = module.never_worse(changed)
    assert [row.detected.tolist() for row in rows] == [[0.625, 0.5], [0.625, 0.75], [1.0, 1.0]]
    assert [row.spurious for row in rows] == pytest.approx([0.25, 0.25, 0.0])
    assert [row.smallest_share for row in rows] == pytest.approx([0.5, 0.25, 0.25])
    for earlier, later in pairwise(rows):
        worse = later.privacy_errors > earlier.privacy_errors * (1 + 1e-12)
        assert not worse.any()


def test_expected_errors_are_those_that_fits_make(two):
    errors = []
    for seed in range(24):
        X = TWO.sample(2000, np.random.default_rng(seed))[0]
        with seeded_noise(seed):
            found = planned(epsilon=1.0).fit(X).modes_
        errors.append([np.abs(found - mode).min() for mode in two.modes])
    made = np.sqrt(np.mean(np.square(errors), axis=0))
    assert (made / two.rows[2].errors[:, 0] < 1.6).all()
    assert (made / two.rows[2].errors[:, 0] > 0.5).all()


def test_uniform_shows_the_fogline_and_no_mode():
    expected = expected_mode_error(planned(), 1000, epsilons=[0.1, 1.0], runs=6)
    assert expected.modes.shape == (0, 1)
    assert [row.spurious < 0.5 for row in expected.rows] == [True, True]
    assert expected.rows[0].smallest_share > 2 * expected.rows[1].smallest_share
    assert [record["mode"] for record in expected.table()] == [None, None]
    assert "smallest share" in str(expected)


@pytest.mark.parametrize(("factor", "low", "high"), [(0.4, 0.0, 0.2), (1.0, 0.15, 0.95), (2.0, 0.9, 1.0)])
def test_the_smallest_share_is_where_a_peak_begins_to_show(factor, low, high):
    share = expected_mode_error(planned(), 1000, epsilons=[0.5]).rows[0].smallest_share
    rng = np.random.default_rng(0)
    gathered = int(100_000 * factor * share)
    sample = np.concatenate([rng.uniform(0, 10, 100_000 - gathered), rng.normal(4, 0.03, gathered)])
    expected = expected_mode_error(planned(), 1000, shape=sample, epsilons=[0.5])
    assert expected.modes == pytest.approx(np.array([[4.0]]), abs=0.01)
    assert low <= expected.rows[0].detected[0] <= high


def test_a_public_sample_stands_for_the_data():
    sample = TWO.sample(3000, np.random.default_rng(5))[0]
    expected = expected_mode_error(planned(), 2000, shape=sample, epsilons=[1.0], runs=6)
    assert expected.modes == pytest.approx(mixture_modes(TWO), abs=0.3)
    assert expected.rows[0].detected.tolist() == [1.0, 1.0]
    odd = np.concatenate([sample, [[np.nan], [np.inf], [1e9]]])
    again = expected_mode_error(planned(), 2000, shape=odd, epsilons=[1.0], runs=6)
    assert again is expected, "rows that contribute nothing do not change the guess"


def test_two_columns_take_no_longer_than_a_few_fits_and_a_repeat_is_remembered():
    box, epsilons = [(-10, 10)] * 2, [0.2, 0.5, 2.0]
    X = GAUSSIAN_MIXTURE4.sample(5000, np.random.default_rng(0))[0]
    start = time.process_time()
    for epsilon in epsilons:
        planned(bounds=box, epsilon=epsilon).fit(X)
    middle = time.process_time()
    expected = expected_mode_error(planned(bounds=box), 5000, shape=GAUSSIAN_MIXTURE4, epsilons=epsilons)
    taken = time.process_time() - middle
    assert taken < 12 * (middle - start), "about twice the fits on a quiet machine"
    assert expected.modes.shape == (4, 2)
    assert expected.rows[-1].detected.min() == 1
    again = expected_mode_error(planned(bounds=box), 5000, shape=GAUSSIAN_MIXTURE4, epsilons=epsilons)
    assert again is expected


def test_one_pair_of_bounds_serves_all_columns_of_the_shape():
    shape = Mixture.of([1.0], [[5.0, 5.0]], [1.0])
    expected = expected_mode_error(planned(), 2000, shape=shape, epsilons=[2.0], runs=1)
    assert len(expected.bounds) == 2


def test_options_of_the_estimator_count():
    known = expected_mode_error(planned(n_modes=2, bandwidth=0.1, steps=0.1), 2000, shape=TWO, epsilons=[1.0], runs=3)
    assert known.rows[0].detected.tolist() == [1.0, 1.0]
    assert known.rows[0].bandwidth == pytest.approx([1.0])


def test_epsilons_by_default_hold_the_estimators_own(monkeypatch):
    monkeypatch.setattr(module, "_simulated", lambda setting, guess, epsilons: epsilons)
    assert expected_mode_error(planned(), 100) == EPSILONS
    assert expected_mode_error(planned(epsilon=0.7), 100) == tuple(sorted((*EPSILONS, 0.7)))


def test_nothing_is_spent_or_kept():
    class Purse:
        def __getattr__(self, name):
            raise AssertionError(f"the ledger was asked for {name}")

    estimator = planned(epsilon=1.0)
    estimator.ledger = Purse()
    before = dict(vars(estimator))
    expected_mode_error(estimator, 100, epsilons=[1.0], runs=1)
    assert vars(estimator) == before


def test_the_table_is_plain_and_errors_of_the_unseen_are_none(two):
    table = two.table()
    assert len(table) == 6
    assert table[-1]["privacy_errors"] == pytest.approx(two.rows[2].privacy_errors[1].tolist())
    unseen = [record for record in table if record["detected"] == 0]
    assert all(record["standard_errors"] is None for record in unseen)
    assert str(two).count("\n") == 7


@pytest.mark.parametrize(
    ("changed", "asked", "message"),
    [
        ({}, {"n": 0}, "n must"),
        ({}, {"n": 10**9}, "n must be at most"),
        ({}, {"n": 2.5}, "n must"),
        ({"delta": None}, {}, "delta"),
        ({"bounds": None}, {}, "bounds"),
        ({"level": 2.0}, {}, "level"),
        ({"bandwidth": 1e-4}, {}, "bandwidth"),
        ({}, {"epsilons": []}, "epsilons must"),
        ({}, {"epsilons": [np.inf]}, "epsilon"),
        ({}, {"shape": "square"}, "shape must"),
        ({}, {"shape": [["a"]]}, "shape must"),
        ({}, {"shape": np.zeros((5, 0))}, "shape"),
        ({}, {"shape": [[99.0], [98.0]]}, "shape: a public sample"),
        ({"bounds": [(0, 1)] * 3}, {"shape": TWO}, "shape has 1 columns"),
        ({}, {"runs": 0}, "runs must"),
    ],
)
def test_bad_input_is_named(changed, asked, message):
    with pytest.raises((ValueError, TypeError), match=message):
        expected_mode_error(planned(**changed), **{"n": 100, **asked})
