"""The one place that validates input.

Two rules hold here. An error names the parameter and says what is wanted. And no error may depend on the
*values* of the records: what is wrong with a schema (types, shapes, column counts) is public, what is wrong
with a cell is not, so a missing or infinite value passes through `records` without a word.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Neighbours",
    "check_bounds",
    "check_count",
    "check_delta",
    "check_dense",
    "check_epsilon",
    "check_ledger",
    "check_level",
    "check_max_contributions",
    "check_neighbours",
    "check_positive",
    "records",
]

Neighbours = Literal["add-remove", "replace"]

_NUMERIC_KINDS = "iufb"
_MOST_CONTRIBUTIONS = 2**40
_FINEST = 2.0**-30
_WIDTHS = (1e-50, 1e50)
_ARROW_NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool", "decimal")


def _number(value: object, name: str) -> float:
    """Return `value` as a float, refusing what only looks like a number (booleans, text, arrays)."""
    if value is None:
        raise TypeError(f"{name} must be given as a number, got None")
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
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
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
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


def check_bounds(bounds: object, *, name: str = "bounds") -> NDArray[np.float64]:
    """Return public bounds as an array of one (low, high) pair for each axis.

    Parameters
    ----------
    bounds : sequence of d pairs, or one pair when d = 1
    name : str

    Returns
    -------
    array of shape (d, 2)
        With ``low < high``, both finite, on every axis, and of a width that doubles can divide.

    Examples
    --------
    >>> check_bounds((0, 10))
    array([[ 0., 10.]])
    >>> check_bounds([(0, 1), (5, 2)])
    Traceback (most recent call last):
    ValueError: bounds of axis 1 must be (low, high) with low < high, got (5.0, 2.0)
    """
    if bounds is None:
        raise TypeError(f"{name} must be given: a range read from the data would leak it")
    wanted = f"{name} must be one (low, high) pair an axis"
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
    for axis, (low, high) in enumerate(result.tolist()):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"{name} of axis {axis} must be finite, got ({low}, {high})")
        if not low < high:
            raise ValueError(f"{name} of axis {axis} must be (low, high) with low < high, got ({low}, {high})")
        if not math.isfinite(high - low):
            raise ValueError(f"{name} of axis {axis} are too far apart: high - low must be finite")
        # Cells are fractions of the width, and must be told apart by doubles as large as the bounds themselves.
        if high - low < _FINEST * max(abs(low), abs(high)):
            raise ValueError(f"{name} of axis {axis} are too close together for their size: shift the column")
        if not _WIDTHS[0] <= high - low <= _WIDTHS[1]:
            raise ValueError(f"{name} of axis {axis} must be between 1e-50 and 1e50 apart: rescale the column")
    return result


def records(X: object, d: int | None = None) -> NDArray[np.float64]:
    """Return the records as float64 of shape (n, d), without any error that depends on a cell.

    Parameters
    ----------
    X : array, data frame, series, or (nested) list
        One dimension means d = 1. Numbers and booleans only. A declared type that is not a number is an
        error; in a plain list, which declares nothing, a cell that is no number becomes a missing value.
    d : int, optional
        The number of columns that is wanted.

    Returns
    -------
    array of shape (n, d)
        NaN and infinities are kept; no rows is not an error.

    Examples
    --------
    >>> records([1, float("nan"), None])
    array([[ 1.], [nan], [nan]])
    >>> import numpy as np
    >>> records(np.ones((1, 2)), d=3)
    Traceback (most recent call last):
    ValueError: X must have 3 columns, got 2
    """
    array = _float_array(X, d)
    if array.ndim == 1 and array.size == 0 and d is not None:
        array = array.reshape(0, d)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"X must have one or two dimensions (records, columns), got {array.ndim}")
    if array.shape[1] == 0:
        raise ValueError("X must have at least one column")
    if d is not None and array.shape[1] != d:
        raise ValueError(f"X must have {d} column{'' if d == 1 else 's'}, got {array.shape[1]}")
    return array


def check_ledger(ledger: Any) -> Any:
    """Return `ledger` if it is None or can be asked; anything else must not pass for a budget.

    Examples
    --------
    >>> check_ledger("ledger.db")
    Traceback (most recent call last):
    TypeError: ledger must be an open fogline.Ledger, or None, got str
    """
    if ledger is not None and not callable(getattr(ledger, "ask", None)):
        raise TypeError(f"ledger must be an open fogline.Ledger, or None, got {type(ledger).__name__}")
    return ledger


def check_dense(X: object, name: str = "X") -> None:
    """Refuse a sparse matrix by name: most of its records are points at zero, and must be meant to be.

    Examples
    --------
    >>> from scipy.sparse import eye_array
    >>> check_dense(eye_array(3))
    Traceback (most recent call last):
    TypeError: X: sparse input is not supported, pass X.toarray() if zeros are values
    """
    if hasattr(X, "tocsr"):
        raise TypeError(f"{name}: sparse input is not supported, pass {name}.toarray() if zeros are values")


def _float_array(X: Any, d: int | None) -> NDArray[np.float64]:
    """Dispatch on how `X` declares its types."""
    if X is None or isinstance(X, str | bytes):
        raise TypeError(f"X must be an array, a frame or a list of records, got {type(X).__name__}")
    check_dense(X)
    if isinstance(X, np.ma.MaskedArray):
        _refuse_dtype(X.dtype, "X")
        return np.where(np.ma.getmaskarray(X), np.nan, _cast(np.ma.getdata(X), "X"))
    if isinstance(X, np.ndarray):
        return _cast(X, "X")
    if type(X).__module__.partition(".")[0] == "pyarrow":
        return _arrow(X)
    if hasattr(X, "columns") and hasattr(X, "__array__"):
        return _frame(X)
    if hasattr(X, "dtype") and hasattr(X, "to_numpy"):
        return _column(X, "X")
    if hasattr(X, "__array__"):
        return _cast(np.asarray(X), "X")
    if isinstance(X, Sequence):
        return _cells(X, d)
    raise TypeError(f"X must be an array, a frame or a list of records, got {type(X).__name__}")


def _refuse_dtype(dtype: object, name: str) -> None:
    """Raise unless a numpy, pandas or polars type is one of numbers or booleans."""
    is_numeric = getattr(dtype, "is_numeric", None)  # polars has no kinds
    if callable(is_numeric):
        numeric = bool(is_numeric()) or str(dtype) == "Boolean"
    else:
        numeric = getattr(dtype, "kind", "O") in _NUMERIC_KINDS
    if getattr(dtype, "kind", "") == "c":
        raise ValueError(f"{name} must hold real numbers. Complex data not supported")  # as scikit-learn says it
    if not numeric:
        raise TypeError(f"{name} must hold real numbers, got type {dtype}")


def _cast(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    _refuse_dtype(array.dtype, name)
    with np.errstate(all="ignore"):  # a long double beyond float64 becomes inf, without a warning about it
        return array.astype(np.float64, copy=False)


def _column(column: Any, name: str) -> NDArray[np.float64]:
    """Return one column of a frame as floats, whatever its library's idea of a missing value."""
    _refuse_dtype(column.dtype, name)
    with np.errstate(all="ignore"):
        if hasattr(column, "iloc"):  # pandas: nullable columns turn into objects unless told what NA becomes
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
        return np.asarray(column.to_numpy(), dtype=np.float64)


def _frame(frame: Any) -> NDArray[np.float64]:
    """Return a data frame as floats; the error for a column that is not numeric names it."""
    names = [str(name) for name in frame.columns]
    if not names:
        raise ValueError("X must have at least one column")
    select = (lambda j: frame.iloc[:, j]) if hasattr(frame, "iloc") else frame.to_series
    columns = [_column(select(j), f"column {name!r}") for j, name in enumerate(names)]
    return np.column_stack(columns)


def _arrow(data: Any) -> NDArray[np.float64]:
    """Return an Arrow table, batch or array as floats; its declared types alone decide what is an error."""
    named = (
        [(f"column {name!r}", data.column(j)) for j, name in enumerate(data.schema.names)]
        if hasattr(data, "schema")
        else [("X", data)]
    )
    if not named:
        raise ValueError("X must have at least one column")
    columns = []
    for name, column in named:
        if not str(column.type).startswith(_ARROW_NUMBERS):
            raise TypeError(f"{name} must hold real numbers, got type {column.type}")
        columns.append(column.cast("float64", safe=False).to_numpy(zero_copy_only=False))
    return np.column_stack(columns)


def _cells(rows: Sequence[Any], d: int | None) -> NDArray[np.float64]:
    """Return a plain list as floats of shape (n, d); a list declares nothing, so nothing in it can be an error.

    A row that is not d cells contributes nothing, as a broken line of a file does. With one column a bare cell is a
    row. Without a wanted width the first row that is a list gives it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what numpy thinks of a cell is not news
        try:
            array = np.asarray(rows)
        except Exception:
            array = np.empty(0, dtype=object)
    if d is None:
        nested = [row for row in rows if _is_row(row)]
        d = len(nested[0]) if nested else 1
    if array.dtype.kind in _NUMERIC_KINDS and array.shape in ((len(rows), d), (len(rows),) if d == 1 else None):
        return _cast(array, "X").reshape(len(rows), d)
    missing = [math.nan] * d
    result = [missing] * len(rows)
    for i, row in enumerate(rows):
        if _is_row(row):
            if len(row) == d:
                result[i] = [_cell(cell) for cell in row]
        elif d == 1:
            result[i] = [_cell(row)]
    return np.array(result, dtype=np.float64).reshape(len(rows), d)


def _is_row(row: object) -> bool:
    if isinstance(row, np.ndarray):
        return row.ndim > 0
    return isinstance(row, Sequence) and not isinstance(row, str | bytes)


def _cell(cell: object) -> float:
    """Return a number as a float and anything else as a missing value."""
    if isinstance(cell, np.ndarray) and cell.ndim == 0 and cell is not np.ma.masked:
        cell = cell.item()
    if not isinstance(cell, Real):
        return math.nan
    try:
        return float(cell)
    except (OverflowError, TypeError, ValueError):
        return math.nan
