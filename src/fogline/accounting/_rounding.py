"""Directed rounding: a cost is only ever rounded up, an allowance only ever down."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["round_down", "round_up", "square_root_down", "square_root_up"]


def round_up(value: Fraction) -> float:
    """Return the least float that is not below `value`.

    Examples
    --------
    >>> Fraction(round_up(Fraction(1, 3))) >= Fraction(1, 3)
    True
    """
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def round_down(value: Fraction) -> float:
    """Return the greatest float that is not above `value`.

    Examples
    --------
    >>> Fraction(round_down(Fraction(1, 3))) <= Fraction(1, 3)
    True
    """
    return -round_up(-value)


def square_root_up(value: Fraction) -> float:
    """Return the least float whose square, taken exactly, is not below `value`.

    Examples
    --------
    >>> square_root_up(Fraction(2)) == 2**0.5
    True
    >>> square_root_up(Fraction(9, 4))
    1.5
    >>> square_root_up(Fraction(1, 2**2000)) == 2.0**-1000
    True
    """
    if value < 0:
        raise ValueError("value must not be negative")
    # Halved exponents: a root that a float can hold may have a square that none can.
    exponent = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    root = math.ldexp(math.sqrt(value / Fraction(4) ** exponent), exponent)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    while root > 0 and Fraction(math.nextafter(root, 0.0)) ** 2 >= value:
        root = math.nextafter(root, 0.0)
    return root


def square_root_down(value: Fraction) -> float:
    """Return a float whose square, taken exactly, is not above `value`: the greatest one, or the one below it.

    Examples
    --------
    >>> Fraction(square_root_down(Fraction(2))) ** 2 <= 2, square_root_down(Fraction(9, 4))
    (True, 1.5)
    """
    root = square_root_up(value)
    return root if Fraction(root) ** 2 <= value else math.nextafter(root, 0.0)
