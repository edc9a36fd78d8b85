"""Parameters: an error names the parameter and says what is wanted."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from fogline._typing import FloatArray, LedgerLike

__all__ = [
    "Neighbours",
    "check_bounds",
    "check_count",
    "check_delta",
    "check_epsilon",
    "check_ledger",
    "check_level",
    "check_max_contributions",
    "check_name",
    "check_neighbours",
    "check_pairs",
    "check_positive",
    "check_real",
    "nearest",
    "unknown_key",
]

Neighbours = Literal["add-remove", "replace"]

_MOST_CONTRIBUTIONS = 2**40
_FINEST = 2.0**-30
_WIDTHS = (1e-50, 1e50)


def _number(value: object, name: str) -> float:
    """Return `value` as a float, refusing what only looks like a number (booleans, text, arrays)."""
    if value is None:
        raise TypeError(f"{name} must be given as a number, got None")
    # True is an integer to Python, and a mistake here
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for a float") from None


def check_positive(value: object, name: str) -> float:
    """Return `value` as a finite float above zero.

    Parameters
    ----------
    value : real number
    name : str
        How the caller's user knows the parameter.

    Examples
    --------
    >>> check_positive(2, "scale")
    2.0
    """
    number = _number(value, name)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be finite and greater than 0, got {number!r}")
    return number


def check_real(value: object, name: str) -> float:
    """Return `value` as a finite float of any sign.

    Examples
    --------
    >>> check_real(-1, "power")
    -1.0
    """
    number = _number(value, name)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number!r}")
    return number


def check_epsilon(epsilon: object) -> float:
    """Return `epsilon` as a finite float above zero; no privacy (infinity, None) must not be a default.

    Examples
    --------
    >>> check_epsilon(1)
    1.0
    >>> check_epsilon(float("inf"))
    Traceback (most recent call last):
    ValueError: epsilon must be finite: epsilon=inf would publish the data without any protection
    """
    if epsilon is None:
        raise TypeError("epsilon must be given: there is no default privacy budget, got None")
    number = _number(epsilon, "epsilon")
    if number == math.inf:
        raise ValueError("epsilon must be finite: epsilon=inf would publish the data without any protection")
    return check_positive(number, "epsilon")


def check_delta(delta: object) -> float:
    """Return `delta` as a float strictly between 0 and 1.

    Examples
    --------
    >>> check_delta(1e-6)
    1e-06
    """
    if delta is None:
        raise TypeError("delta must be given: a probability well below 1/n, such as 1e-6, got None")
    return check_level(delta, "delta")


def check_level(alpha: object, name: str = "level") -> float:
    """Return a probability strictly between 0 and 1.

    Examples
    --------
    >>> check_level(0.05)
    0.05
    """
    number = _number(alpha, name)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {number!r}")
    return number


def check_count(value: object, name: str, minimum: int = 1) -> int:
    """Return a whole number of at least `minimum`.

    Examples
    --------
    >>> check_count(3, "n_modes")
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number of at least {minimum}, got {type(value).__name__}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {int(value)}")
    return int(value)


def check_max_contributions(max_contributions: object) -> int:
    """Return the greatest number of records one protected unit may contribute, at least 1.

    Examples
    --------
    >>> check_max_contributions(2)
    2
    """
    count = check_count(max_contributions, "max_contributions")
    if count > _MOST_CONTRIBUTIONS:
        raise ValueError(f"max_contributions must be at most {_MOST_CONTRIBUTIONS}: noise would drown any data")
    return count


def check_neighbours(neighbours: object) -> Neighbours:
    """Return the neighbour relation: "add-remove" (n is secret) or "replace" (n is public).

    Examples
    --------
    >>> check_neighbours("replace")
    'replace'
    """
    if neighbours == "add-remove":
        return "add-remove"
    if neighbours == "replace":
        return "replace"
    raise ValueError(f'neighbours must be "add-remove" or "replace", got {neighbours!r}')


def check_bounds(
    bounds: object, *, name: str = "bounds", width: int | None = None, columns: Sequence[str] | None = None
) -> FloatArray:
    """Return public bounds as an array of one (low, high) pair for each axis.

    Parameters
    ----------
    bounds : sequence of d pairs, or one pair when d = 1
    name : str
    width : int, optional
        Number of columns, where one pair may serve all of them.
    columns : sequence of str, optional
        Names of the axes, for the errors. :func:`fogline.units.resolve_bounds` takes bounds by these names.

    Returns
    -------
    array of shape (d, 2)
        With ``low < high``, both finite, on every axis, and of a width that doubles can divide.

    Examples
    --------
    >>> check_bounds((0, 10))
    array([[ 0., 10.]])
    >>> check_bounds((0, 10), width=2).shape
    (2, 2)
    >>> check_bounds([(0, 1), (5, 2)])
    Traceback (most recent call last):
    ValueError: bounds of axis 1 must be (low, high) with low < high, got (5.0, 2.0)
    """
    import numpy as np  # here, since the command line checks its words before it loads numerical libraries

    if bounds is None:
        raise TypeError(f"{name} must be given: a range read from the data would leak it")
    wanted = f"{name} must be one (low, high) pair per axis"
    try:
        array = np.asarray(bounds)
    except ValueError:
        raise ValueError(f"{wanted}, got pairs of unequal length") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{wanted}, of real numbers")
    if array.ndim == 1 and array.shape == (2,):
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != 2 or array.shape[0] == 0:
        raise ValueError(f"{wanted}, an array of shape (d, 2), got shape {array.shape}")
    result = np.array(array, dtype=np.float64)
    check_pairs(result.tolist(), name=name, columns=columns)
    return np.repeat(result, width, axis=0) if len(result) == 1 and width is not None and width > 1 else result


def check_pairs(
    pairs: Iterable[tuple[float, float]], *, name: str = "bounds", columns: Sequence[str] | None = None
) -> None:
    """Raise an error unless each pair is a range ``low < high`` of finite floats that doubles can divide.

    Examples
    --------
    >>> check_pairs([(0.0, 1.0), (5.0, 2.0)])
    Traceback (most recent call last):
    ValueError: bounds of axis 1 must be (low, high) with low < high, got (5.0, 2.0)
    >>> check_pairs([(0.0, 1.0), (5.0, 2.0)], columns=["age", "stay"])
    Traceback (most recent call last):
    ValueError: bounds of 'stay' must be (low, high) with low < high, got (5.0, 2.0)
    """
    labels = [repr(column) for column in columns or ()]
    for axis, (low, high) in enumerate(pairs):
        where = f"{name} of {labels[axis] if axis < len(labels) else f'axis {axis}'}"
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"{where} must be finite, got ({low}, {high})")
        if not low < high:
            raise ValueError(f"{where} must be (low, high) with low < high, got ({low}, {high})")
        if not math.isfinite(high - low):
            raise ValueError(f"{where} are too far apart: high - low must be finite")
        # Cells are fractions of the width, and must be told apart by doubles as large as the bounds themselves.
        if high - low < _FINEST * max(abs(low), abs(high)):
            raise ValueError(f"{where} are too close together for their size: shift the column")
        if not _WIDTHS[0] <= high - low <= _WIDTHS[1]:
            raise ValueError(f"{where} must be between 1e-50 and 1e50 apart: rescale the column")


def check_name(value: object, name: str) -> str:
    """Return a name that people can read and every system can hold.

    Examples
    --------
    >>> check_name("", "dataset")
    Traceback (most recent call last):
    ValueError: dataset must be a text of 1 to 200 printable characters
    """
    # names are printed in terminals and pages: no line ends, no escapes
    if not isinstance(value, str) or not value or not value.isprintable() or len(value) > 200:
        raise ValueError(f"{name} must be a text of 1 to 200 printable characters")
    return value


def nearest(word: str, known: Collection[str]) -> str:
    """Say which known word was perhaps meant, or which words there are.

    Examples
    --------
    >>> nearest("agee", ["age", "stay"]), nearest("weight", ["age", "stay"])
    ("did you mean 'age'?", 'there are age, stay')
    """
    import difflib

    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


def unknown_key(content: Iterable[str], keys: Collection[str], where: str) -> str | None:
    """Say what is wrong with the first key of a table that means nothing there; None if all mean something.

    Examples
    --------
    >>> unknown_key({"file": "a.csv", "units": "x"}, ["file", "unit"], "[source]")
    "[source] has an unknown key 'units'; did you mean 'unit'?"
    """
    found = next((key for key in content if key not in keys), None)
    return None if found is None else f"{where} has an unknown key {found!r}; {nearest(found, keys)}"


def check_ledger(ledger: object) -> LedgerLike | None:
    """Return `ledger` if it is None or can be asked; anything else must not pass for a budget.

    Examples
    --------
    >>> check_ledger("ledger.db")
    Traceback (most recent call last):
    TypeError: ledger must be an open fogline.Ledger, or None, got str
    """
    if ledger is not None and not callable(getattr(ledger, "ask", None)):
        raise TypeError(f"ledger must be an open fogline.Ledger, or None, got {type(ledger).__name__}")
    return cast("LedgerLike | None", ledger)
