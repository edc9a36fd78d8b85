"""Numbers in words, with no more digits than are known: a value that is known to its cell, an error next to nothing."""

from __future__ import annotations

import math

__all__ = ["LEAST_ERROR", "cell_values", "cell_words", "error_words", "place_words"]

LEAST_ERROR = 1e-6
"""Errors below this part of a column's range are told as being below it: no release knows a place any better."""


def cell_values(value: float, low: float, high: float, step: float | None = None) -> tuple[float, ...]:
    """Give the one value that a point mass can have, or both ends of the cell that it lies in, rounded outward.

    Parameters
    ----------
    value : float
        The value, or the middle of its cell; at a wall, the wall.
    low, high : float
        Ends of the cell.
    step : float, optional
        Distance of the column's values, if it is public.

    Examples
    --------
    >>> cell_values(50.01220703, 50.0, 50.0244140625), cell_values(0.0, 0.0, 0.0244140625)
    ((50.0, 50.025), (0.0,))
    >>> cell_values(7.0, 6.5, 7.5, step=1.0), cell_values(8.0, 6.5, 9.5, step=1.0)
    ((7.0,), (7.0, 9.0))
    """
    width = high - low
    if not width > 0 or value in (low, high):
        return (value,)
    if step:
        return (value,) if width < 1.5 * step else (low + step / 2, high - step / 2)
    places = 1 - math.floor(math.log10(width))
    unit = 10.0**-places
    # a cell that ends at a round number stays there, whatever the last bits say
    first, last = math.floor(low / unit + 1e-6), math.ceil(high / unit - 1e-6)
    return round(first * unit, places), round(last * unit, places)


def cell_words(value: float, low: float, high: float, step: float | None = None) -> str:
    """Write what is known of a point mass's place, as in :func:`cell_values`.

    Examples
    --------
    >>> cell_words(50.01220703, 50.0, 50.0244140625), cell_words(7.0, 6.5, 7.5, step=1.0)
    ('50 to 50.025', '7')
    """
    return " to ".join(f"{known:.10g}" for known in cell_values(value, low, high, step))


def place_words(value: float, width: float) -> str:
    """Write a place in a column of this width, to about a thousandth of it and without an exponent where that is short.

    Examples
    --------
    >>> place_words(5.4688, 10.0), place_words(3187.4, 12_000.0), place_words(1712363281.25, 3e7)
    ('5.47', '3190', '1712360000')
    """
    places = math.ceil(2.5 - math.log10(width)) if width > 0 else 0
    return f"{round(value, places) + 0.0:.12g}"


def error_words(error: float, least: float = 0.0) -> str:
    """Write an error with two digits; one below `least` as being below it.

    Examples
    --------
    >>> error_words(0.0213), error_words(9.2e-06, 1e-4)
    ('0.021', '< 0.0001')
    """
    return f"< {least:.2g}" if 0 <= error < least else f"{error:.2g}"
