"""Ends of ranges in piles, steep walls, first records inside a bucket, and questions that logic answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, gamma, pareto

from fogline import DensitySketch
from fogline.density.posterior.axes import Heaps, LeafAxis
from fogline.density.posterior.conditions import Conditions
from fogline.testing import seeded_noise


def posterior_of(records, bounds, epsilon, seed):
    records = np.asarray(records, dtype=float)
    rows = records[:, None] if records.ndim == 1 else records
    with seeded_noise(seed):
        return DensitySketch(bounds, features="leaves").update(rows).release(epsilon=epsilon).posterior


def holds(answer, truth):
    return answer.low <= truth <= answer.high


def pile(seed, n, share, value):
    rng = np.random.default_rng([seed, 7])
    return np.where(rng.random(n) < share, value, rng.gamma(2, 10, n)).clip(0, 99.9)


# one leaf holds the pile in the first, a bucket of several leaves in the second
PILES = [(5000, 0.2, 17.3, 1.0), (2000, 0.3, 25.0, 0.5)]


@pytest.mark.parametrize(("n", "share", "value", "epsilon"), PILES)
def test_questions_that_end_at_a_pile_hold_on_both_of_its_sides(n, share, value, epsilon):
    tail = (1 - share) * gamma(2, scale=10).sf(value)
    right = np.zeros(4, dtype=int)
    for seed in range(6):
        posterior = posterior_of(pile(seed, n, share, value), [(0, 100)], epsilon, seed)
        above, beyond = (posterior.probability([(end, None)]) for end in (value, np.nextafter(value, 200)))
        at, below = posterior.probability([(value, value)]), posterior.cdf([value])
        answers = (above, tail + share), (beyond, tail), (at, share), (below, 1 - tail)
        right += [bool(np.all(holds(*pair))) for pair in answers]
        assert abs(at.value - share) < 0.1
        assert at.low == 0.0
    assert np.all(right >= 5)


def test_a_range_that_ends_far_from_a_pile_has_no_doubt_about_it():
    posterior = posterior_of(pile(0, 5000, 0.2, 17.3), [(0, 100)], 1.0, 0)
    found = posterior.probability([(10, 30)])
    assert found.high - found.low < 0.06


@settings(max_examples=30)
@given(low=st.floats(0, 8), width=st.floats(0, 8))
def test_what_is_sure_is_possible_and_every_drawn_place_is_one_of_both(low, width):
    axis = LeafAxis("stay", np.arange(9.0), 0.0, (0.0, 8.0))
    heaps = Heaps.of(axis, np.array([0, 3, 7]), np.array([0.0, 3.5, 8.0]), 50, 1)
    surely, maybe = heaps.possible(low, low + width, 0.0)
    _, drawn = heaps.inside(low, low + width, 0.0)
    assert np.all(maybe | ~surely)
    assert np.all(drawn[:, surely])
    assert not drawn[:, ~maybe].any()


@pytest.mark.parametrize("n", [5000, 20_000])
def test_outer_quantiles_of_a_u_shape_hold(n):
    right = 0
    for seed in range(6):
        posterior = posterior_of(np.random.default_rng([seed, 9]).beta(0.5, 0.5, n), [(0, 1)], 1.0, seed)
        found = posterior.quantile([0.05, 0.95])
        truth = beta(0.5, 0.5).ppf([0.05, 0.95])
        right += int(np.sum((found.low <= truth) & (truth <= found.high)))
    assert right >= 10


def test_a_low_quantile_reaches_the_first_record_of_a_wide_bucket():
    """At a least price the field knows nothing about where in its bucket the records begin."""
    right = 0
    for seed in range(6):
        records = 12 * (1 + np.random.default_rng([seed, 8]).pareto(3, 2000))
        found = posterior_of(records, [(0, 100)], 0.3, seed).quantile(0.05)
        right += holds(found, 12 * pareto(3).ppf(0.05))
        assert found.high > records.min()
    assert right >= 5


def test_a_condition_inside_the_event_has_the_share_one_and_one_outside_has_none():
    posterior = posterior_of(np.random.default_rng(0).gamma(2, 1, 5000).clip(0, 10), [(0, 10)], 1.0, 1)
    boxes, name = Conditions(posterior), posterior.columns[0]
    far = {name: (9.99, None)}
    inside, outside = boxes.share({name: (3, None)}, far), boxes.share({name: (None, 3)}, far)
    assert inside.interval == (1.0, 1.0)
    assert outside.interval == (0.0, 0.0)
    open_question = boxes.share({name: (9.995, None)}, far)
    assert open_question.low < 0.2 < 0.8 < open_question.high


@pytest.mark.parametrize("constant", [0.0, 3.0, 10.0])
def test_no_correlation_is_told_with_a_column_of_one_value(constant):
    rows = np.column_stack([np.full(5000, constant), np.random.default_rng(3).random(5000) * 10])
    found = posterior_of(rows, [(0, 10)] * 2, 1.0, 2).correlation(0, 1)
    assert "x1 holds one value" in found.message
    assert found.interval == (-1.0, 1.0)


def test_a_correlation_stays_between_its_limits():
    rng = np.random.default_rng(4)
    x = rng.normal(5, 1, 3000)
    found = posterior_of(np.column_stack([x, x + rng.normal(size=3000)]), [(0, 10)] * 2, 1.0, 4).correlation(0, 1)
    assert -1 <= found.low < 0.707 < found.high <= 1
    assert found.message == ""


def test_two_values_of_a_lattice_vary():
    rng = np.random.default_rng(5)
    smoker = (rng.random(3000) < 0.4).astype(float)
    rows = np.column_stack([smoker, rng.normal(5 + smoker, 1)])
    with seeded_noise(5):
        sketch = DensitySketch([(0, 1), (0, 10)], steps=(1, None), features="leaves").update(rows)
        found = sketch.release(epsilon=1.0).posterior.correlation(0, 1)
    assert found.message == ""
    assert holds(found, np.corrcoef(rows.T)[0, 1])
