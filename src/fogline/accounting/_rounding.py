"""Directed rounding: a cost is only ever rounded up, an allowance only ever down.

An interval of decimals encloses what is computed, for certain: sums, products and quotients round down at its lower end
and up at the upper one. `Decimal.exp`, `Decimal.ln` and `Decimal.sqrt` are correctly rounded, so that the neighbours of
what they return enclose the true value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation
from fractions import Fraction

__all__ = [
    "DIGITS",
    "Interval",
    "digits_down",
    "digits_up",
    "normal_tail",
    "round_down",
    "round_up",
    "square_root_down",
    "square_root_up",
]


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


DIGITS = 60
_TRAPS = [InvalidOperation, DivisionByZero]
_DOWN = Context(prec=DIGITS, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=_TRAPS)
_UP = Context(prec=DIGITS, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=_TRAPS)

_SERIES_BELOW = 3
"""Below it the tail of the normal law is computed by its series, from it on by its continued fraction."""
_TERMS = 80
"""Terms of the series: below 3 the rest is less than 10^-60."""


@dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`.

    Examples
    --------
    >>> third = Interval.of(1) / Interval.of(3)
    >>> Fraction(third.low) < Fraction(1, 3) < Fraction(third.high)
    True
    >>> one = third * Interval.of(3)
    >>> one.low <= 1 <= one.high
    True
    """

    low: Decimal
    high: Decimal

    @classmethod
    def of(cls, value: int | float | Fraction) -> Interval:
        """Return the least interval around a number."""
        exact = Fraction(value)
        top, bottom = Decimal(exact.numerator), Decimal(exact.denominator)
        return cls(_DOWN.divide(top, bottom), _UP.divide(top, bottom))

    def __add__(self, other: Interval) -> Interval:
        return Interval(_DOWN.add(self.low, other.low), _UP.add(self.high, other.high))

    def __sub__(self, other: Interval) -> Interval:
        return Interval(_DOWN.subtract(self.low, other.high), _UP.subtract(self.high, other.low))

    def __neg__(self) -> Interval:
        # not -x, which rounds to the digits of whoever calls
        return Interval(self.high.copy_negate(), self.low.copy_negate())

    def __mul__(self, other: Interval) -> Interval:
        pairs = [(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(_DOWN.multiply(*pair) for pair in pairs), max(_UP.multiply(*pair) for pair in pairs))

    def __truediv__(self, other: Interval) -> Interval:
        if other.low <= 0:
            raise ZeroDivisionError("an interval is divided by positive ones only")
        ends = (other.low, other.high)
        return Interval(
            min(_DOWN.divide(self.low, end) for end in ends), max(_UP.divide(self.high, end) for end in ends)
        )

    def exp(self) -> Interval:
        """Return the exponential.

        Examples
        --------
        >>> float(Interval.of(1).exp().low), float(Interval.of(1).exp().high)
        (2.718281828459045, 2.718281828459045)
        """
        low, high = _DOWN.exp(self.low), _UP.exp(self.high)
        return Interval(_DOWN.next_minus(low), _UP.next_plus(high))

    def sqrt(self) -> Interval:
        """Return the square root; nothing in the interval may be negative.

        Examples
        --------
        >>> float(Interval.of(2).sqrt().low)
        1.4142135623730951
        """
        low, high = _DOWN.sqrt(self.low), _UP.sqrt(self.high)
        return Interval(max(Decimal(0), _DOWN.next_minus(low)), _UP.next_plus(high))

    def ln(self) -> Interval:
        """Return the natural logarithm; everything in the interval must be positive.

        Examples
        --------
        >>> float(Interval.of(2).ln().low)
        0.6931471805599453
        """
        low, high = _DOWN.ln(self.low), _UP.ln(self.high)
        return Interval(_DOWN.next_minus(low), _UP.next_plus(high))

    def above(self) -> float:
        """Return the least float that nothing in the interval exceeds."""
        return round_up(_nearer(self.high, _UP))

    def below(self) -> float:
        """Return the greatest float that everything in the interval reaches."""
        return round_down(_nearer(self.low, _DOWN))


_LEAST = Decimal("1e-400")


def _nearer(value: Decimal, context: Context) -> Fraction:
    """Return a number as a fraction; one that no float can tell from 0 as the next one in the direction of rounding."""
    if value == 0 or value.copy_abs() >= _LEAST:
        return Fraction(value)
    return Fraction(context.quantize(value, _LEAST))


_PI = Interval(
    Decimal("3.14159265358979323846264338327950288419716939937510582097494459"),
    Decimal("3.14159265358979323846264338327950288419716939937510582097494460"),
)
_HALF = Interval.of(Fraction(1, 2))


def normal_tail(x: Interval) -> Interval:
    r"""Return :math:`\Phi(-x)`, the probability that a standard normal variable exceeds :math:`x`.

    Examples
    --------
    >>> float(normal_tail(Interval.of(2)).low), float(normal_tail(Interval.of(-2)).high)
    (0.02275013194817921, 0.9772498680518208)
    """
    # it decreases: the upper end of x gives the lower end of the tail
    return Interval(_tail_at(x.high).low, _tail_at(x.low).high)


def _tail_at(point: Decimal) -> Interval:
    size = point.copy_abs()  # not abs, which rounds to the digits of whoever calls
    x = Interval(size, size)
    square = x * x
    weight = (-(square * _HALF)).exp() / ((_PI + _PI).sqrt())
    tail = weight * _mills(x) if x.low >= _SERIES_BELOW else _HALF - weight * _series(x, square)
    return tail if point >= 0 else Interval.of(1) - tail


def _series(x: Interval, square: Interval) -> Interval:
    """Return x + x^3/3 + x^5/(3 5) + ..., which the density turns into the probability of (0, x)."""
    low = sum_low = x.low
    high = sum_high = x.high
    for odd in range(3, 2 * _TERMS + 3, 2):
        low = _DOWN.divide(_DOWN.multiply(low, square.low), Decimal(odd))
        high = _UP.divide(_UP.multiply(high, square.high), Decimal(odd))
        sum_low, sum_high = _DOWN.add(sum_low, low), _UP.add(sum_high, high)
    # the ratio of later terms is below 9/163: the rest is less than the last term
    return Interval(sum_low, _UP.add(sum_high, high))


def _mills(x: Interval) -> Interval:
    """Return the ratio of tail and density, 1/(x + 1/(x + 2/(x + 3/...))) (Laplace).

    What follows at depth n, x + n/(x + ...), is at least x and at most x + n/x; from there everything is monotone.
    """
    depth = 20 + int(3600 / (x.high * x.high))
    low, high = x.low, _UP.add(x.high, _UP.divide(Decimal(depth + 1), x.low))
    for k in range(depth, 0, -1):
        step = Decimal(k)
        low, high = _DOWN.add(x.low, _DOWN.divide(step, high)), _UP.add(x.high, _UP.divide(step, low))
    return Interval(_DOWN.divide(Decimal(1), high), _UP.divide(Decimal(1), low))
