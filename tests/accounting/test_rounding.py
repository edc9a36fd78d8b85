"""Directed rounding."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.accounting._rounding import round_down, round_up, square_root_up

rationals = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)


@given(rationals)
def test_directions_and_tightness(value):
    up, down = round_up(value), round_down(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))


@given(rationals)
def test_square_root_is_the_least_that_covers(value):
    root = square_root_up(value)
    assert Fraction(root) ** 2 >= value
    assert Fraction(math.nextafter(root, 0.0)) ** 2 < value


def test_negative_square_root_is_refused():
    with pytest.raises(ValueError, match="negative"):
        square_root_up(Fraction(-1))
