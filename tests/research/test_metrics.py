"""The error measures: values by hand, properties by hypothesis."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fogline_research.metrics import ellipse_covers, matching_mse, nearest_mode_mse, penalised_mse

pytestmark = pytest.mark.quick

PENALTY = 4.0
ERRORS = {
    "matching": matching_mse,
    "nearest": nearest_mode_mse,
    "penalised": lambda true, found: penalised_mse(true, found, penalty=PENALTY),
}

coordinates = st.floats(-50, 50, allow_nan=False).map(lambda x: round(x, 3))
modes = st.integers(1, 6).flatmap(lambda k: arrays(np.float64, (k, 2), elements=coordinates))


@pytest.fixture(params=ERRORS, name="error")
def _error(request):
    return ERRORS[request.param]


@pytest.mark.parametrize("name", ERRORS)
@given(true=modes, found=modes, data=st.data())
def test_order_of_modes_does_not_matter(name, true, found, data):
    shuffled_true = true[data.draw(st.permutations(range(len(true))))]
    shuffled_found = found[data.draw(st.permutations(range(len(found))))]
    error = ERRORS[name]
    assert error(shuffled_true, shuffled_found) == pytest.approx(error(true, found), abs=1e-9)


@pytest.mark.parametrize("name", ERRORS)
@given(true=modes)
def test_the_truth_has_no_error(name, true):
    assert ERRORS[name](true, true) == 0.0


@given(true=modes, found=modes)
def test_penalised_error_is_zero_only_for_the_same_modes(true, found):
    same = sorted(map(tuple, true)) == sorted(map(tuple, found))
    assert (penalised_mse(true, found, penalty=PENALTY) == 0.0) == same


@given(true=modes, found=modes)
def test_matching_error_of_equal_numbers_is_zero_only_for_the_same_modes(true, found):
    count = min(len(true), len(found))
    a, b = true[:count], found[:count]
    assert (matching_mse(a, b) == 0.0) == (sorted(map(tuple, a)) == sorted(map(tuple, b)))


@given(true=modes, found=modes)
def test_penalised_error_is_symmetric_and_bounded(true, found):
    value = penalised_mse(true, found, penalty=PENALTY)
    assert 0.0 <= value <= PENALTY
    assert value == pytest.approx(penalised_mse(found, true, penalty=PENALTY), abs=1e-9)


@given(true=modes, found=modes)
def test_nearest_error_is_the_lowest_of_matchings_that_cover_the_truth(true, found):
    if len(found) == len(true):
        assert nearest_mode_mse(true, found) <= matching_mse(true, found) + 1e-9


@given(true=modes, found=modes, extra=modes)
def test_more_found_modes_never_raise_the_nearest_error(true, found, extra):
    assert nearest_mode_mse(true, np.concatenate([found, extra])) <= nearest_mode_mse(true, found)


@given(true=modes, found=modes, scale=st.floats(0.1, 10))
def test_errors_scale_with_the_square_of_the_unit(true, found, scale):
    assert matching_mse(scale * true, scale * found) == pytest.approx(scale**2 * matching_mse(true, found))


def test_hungarian_matching_is_not_greedy():
    # the nearest pair (1, 1.4) leaves 0 and 9 far apart; the best matching crosses it
    assert matching_mse([0.0, 1.0], [1.4, 0.9]) == pytest.approx((0.81 + 0.16) / 2)


def test_matching_error_rewards_spurious_modes_and_the_penalised_one_does_not():
    true, found = [[0.0], [10.0]], [[1.0], [9.0]]
    repeated = found * 10
    assert matching_mse(true, found) == 1.0
    assert matching_mse(true, repeated) == pytest.approx(0.1)
    assert penalised_mse(true, repeated, penalty=PENALTY) == pytest.approx((2 * 1.0 + 18 * PENALTY) / 20)


def test_a_missed_mode_costs_the_penalty():
    assert penalised_mse([[0.0], [100.0]], [[0.0]], penalty=9.0) == 4.5
    assert penalised_mse([[0.0]], [[100.0]], penalty=9.0) == 9.0


def test_nothing_found():
    empty = np.empty((0, 1))
    assert matching_mse([[0.0]], empty) == math.inf
    assert nearest_mode_mse([[0.0]], empty) == math.inf
    assert penalised_mse([[0.0]], empty, penalty=9.0) == 9.0


def test_bad_input_names_the_parameter(error):
    with pytest.raises(ValueError, match="true_modes must hold at least one"):
        error(np.empty((0, 2)), [[1.0, 2.0]])
    with pytest.raises(ValueError, match="found_modes must have the 2 columns"):
        error([[1.0, 2.0]], [[1.0]])
    with pytest.raises(ValueError, match="found_modes must be finite"):
        error([[1.0]], [[math.nan]])
    with pytest.raises(ValueError, match="true_modes must have shape"):
        error(np.zeros((1, 1, 1)), [[1.0]])
    with pytest.raises(ValueError, match="penalty"):
        penalised_mse([[1.0]], [[1.0]], penalty=0.0)


def test_ellipse_covers_at_its_level():
    rng = np.random.default_rng(0)
    covariance = np.array([[2.0, 0.8], [0.8, 1.0]])
    draws = rng.multivariate_normal([1.0, -1.0], covariance, size=4000)
    hits = sum(ellipse_covers(x, [1.0, -1.0], covariance, level=0.9) for x in draws)
    assert abs(hits / 4000 - 0.9) < 4 * math.sqrt(0.09 / 4000)


def test_ellipse_boundary_in_one_dimension():
    assert ellipse_covers([1.95], [0.0], [[1.0]])
    assert not ellipse_covers([1.97], [0.0], [[1.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [0.0], [[-1.0]]), "covariance must be positive definite"),
        (([0.0], [0.0], np.eye(2)), "covariance must have shape"),
        (([[0.0]], [0.0], np.eye(1)), "true and centre must be vectors"),
    ],
)
def test_ellipse_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        ellipse_covers(*arguments)
    with pytest.raises(ValueError, match="level"):
        ellipse_covers([0.0], [0.0], [[1.0]], level=1.0)
