"""Directed rounding: a cost is only ever rounded up, an allowance only ever down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

__all__ = ["digits_down", "digits_up", "round_down", "round_up", "square_root_down", "square_root_up"]


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


def digits_up(value: Fraction | float, digits: int = 4) -> str:
    """Return a number for people in so many significant digits, rounded up: of what is spent nothing is hidden.

    Examples
    --------
    >>> digits_up(1.23441), digits_up(0.5), digits_up(Fraction(1, 3), 2), digits_up(3e-6 + 1e-12)
    ('1.235', '0.5', '0.34', '3.001e-06')
    """
    return _digits(Fraction(value), Context(prec=digits, rounding=ROUND_CEILING))


def digits_down(value: Fraction | float, digits: int = 4) -> str:
    """Return a number for people in so many significant digits, rounded down: of what is left nothing is made up.

    Examples
    --------
    >>> digits_down(1.23449), digits_down(0.0), digits_down(0.75)
    ('1.234', '0', '0.75')
    """
    return _digits(Fraction(value), Context(prec=digits, rounding=ROUND_FLOOR))


def _digits(value: Fraction, context: Context) -> str:
    # division is rounded once, in the direction of the context, whatever the length of its operands
    rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{float(rounded):.{context.prec}g}"
