"""The stable histogram: its threshold by brute force, its order, its silence about rare and odd keys."""

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.accounting import Cost, cost
from fogline.mechanisms import stable_histogram
from fogline.mechanisms.stable_histogram import stable_threshold
from fogline.testing import seeded_noise

pytestmark = pytest.mark.quick


def partitions(total, largest=None):
    largest = total if largest is None else largest
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


@given(st.integers(1, 7), st.floats(0.1, 5.0), st.floats(1e-9, 0.2))
@settings(max_examples=60, deadline=None)
def test_threshold_covers_every_way_to_spread_records_and_is_least(c, epsilon, delta):
    scale = c / epsilon
    a = math.exp(-1 / scale)
    threshold = stable_threshold(scale, delta, c)

    def worst(t):
        return max(sum(a ** (t - m) / (1 + a) for m in part) for part in partitions(c))

    assert threshold >= c
    assert worst(threshold) <= delta * (1 + 1e-9)
    assert threshold == c or worst(threshold - 1) > delta * (1 - 1e-9)


def test_near_the_textbook_threshold():
    assert abs(stable_threshold(1.0, 1e-6, 1) - (1 + math.log(1 / 1e-6))) < 2


def test_a_lone_key_shows_about_delta_of_the_time():
    delta, shown = 0.05, 0
    with seeded_noise(1):
        for _ in range(4000):
            shown += "lone" in stable_histogram(lambda: ["lone"], epsilon=1.0, delta=delta).counts
    assert shown / 4000 <= delta + 4 * math.sqrt(delta / 4000)
    assert shown > 0  # the threshold is not needlessly high


def test_common_keys_show_with_noisy_counts_in_public_order():
    keys = ["b"] * 300 + ["a"] * 200 + [3] * 400 + [(1, "x")] * 250 + [b"z"] * 220 + ["rare"]
    orders = []
    for seed in range(3):
        random.Random(seed).shuffle(keys)
        with seeded_noise(5):
            released = stable_histogram(lambda: keys, epsilon=1.0, delta=1e-8)
        orders.append(released.counts)
        assert list(released.counts) == [3, "a", "b", b"z", (1, "x")]
        assert all(abs(released.counts[key] - keys.count(key)) < 40 for key in released.counts)
    assert orders[0] == orders[1] == orders[2]
    assert cost(released.event) == Cost(0.5, 1e-8)


def test_what_is_no_key_contributes_nothing():
    odd = [
        None,
        1.0,
        float("nan"),
        True,
        np.bool_(True),
        [1],
        {"a": 1},
        (1, None),
        ((1, 2), 3),
        object(),
    ] * 200
    keys = itertools.chain(odd, [np.int64(7)] * 100, [7] * 100, [np.str_("s")] * 200)
    with seeded_noise(2):
        counts = stable_histogram(lambda: keys, epsilon=1.0, delta=1e-6).counts
    assert list(counts) == [7, "s"]
    assert all(type(key) in (int, str) for key in counts)
    assert abs(counts[7] - 200) < 30


def test_no_records_is_an_empty_answer():
    released = stable_histogram(list, epsilon=1.0, delta=1e-6, max_contributions=3)
    assert released.counts == {}
    assert released.scale == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"epsilon": 0}, "epsilon"), ({"delta": 0}, "delta"), ({"max_contributions": 0}, "max_contributions")],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        stable_histogram(list, **{"epsilon": 1.0, "delta": 1e-6, **change})
