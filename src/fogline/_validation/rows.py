"""Records: what is wrong with a schema is an error, what is wrong with a cell is not known to anyone."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_columns", "check_dense", "records"]

_NUMERIC_KINDS = "iufb"
_ARROW_NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool", "decimal")


def records(X: object, d: int | None = None, *, name: str = "X") -> NDArray[np.float64]:
    """Return the records as float64 of shape (n, d), without any error that depends on a cell.

    Parameters
    ----------
    X : array, data frame, series, or (nested) list
        One dimension means d = 1. Numbers and booleans only. A declared type that is not a number is an
        error; in a plain list, which declares nothing, a cell that is no number becomes a missing value.
    d : int, optional
        The number of columns that is wanted.
    name : str
        Of the parameter, for the errors.

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
    array = _float_array(X, d, name)
    if array.ndim == 1 and array.size == 0 and d is not None:
        array = array.reshape(0, d)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{name} must have one or two dimensions (records, columns), got {array.ndim}")
    if array.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column")
    if d is not None and array.shape[1] != d:
        raise ValueError(f"{name} must have {d} column{'' if d == 1 else 's'}, got {array.shape[1]}")
    return array


def check_columns(columns: object, available: Sequence[str], *, name: str = "columns") -> tuple[str, ...]:
    """Return the names of columns if each is one of those that there are, and none is named twice.

    Parameters
    ----------
    columns : sequence of str or None
        None: all of them.
    available : sequence of str
        Names from the schema.
    name : str
        Of the parameter, for the errors.

    Examples
    --------
    >>> check_columns(["b"], ["a", "b"])
    ('b',)
    >>> check_columns(["c"], ["a", "b"])
    Traceback (most recent call last):
    ValueError: columns: there is no column 'c'; there are a, b
    """
    if isinstance(columns, str) or not (columns is None or isinstance(columns, Sequence)):
        raise TypeError(f"{name} must be a list of names, got {columns!r}")
    chosen = tuple(available) if columns is None else tuple(columns)
    if not chosen or len(set(chosen)) != len(chosen):
        raise ValueError(f"{name} must name at least one column, and none twice")
    for column in chosen:
        if list(available).count(column) != 1:
            what = "no" if column not in available else "more than one"
            raise ValueError(f"{name}: there is {what} column {column!r}; there are {', '.join(map(str, available))}")
    return chosen


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


def _float_array(X: Any, d: int | None, name: str) -> NDArray[np.float64]:
    """Dispatch on how `X` declares its types."""
    if X is None or isinstance(X, str | bytes):
        raise TypeError(f"{name} must be an array, a frame or a list of records, got {type(X).__name__}")
    check_dense(X, name)
    if isinstance(X, np.ma.MaskedArray):
        _refuse_dtype(X.dtype, name)
        return np.where(np.ma.getmaskarray(X), np.nan, _cast(np.ma.getdata(X), name))
    if isinstance(X, np.ndarray):
        return _cast(X, name)
    if type(X).__module__.partition(".")[0] == "pyarrow":
        return _arrow(X, name)
    if hasattr(X, "columns") and hasattr(X, "__array__"):
        return _frame(X, name)
    if hasattr(X, "dtype") and hasattr(X, "to_numpy"):
        return _column(X, name)
    if hasattr(X, "__array__"):
        return _cast(np.asarray(X), name)
    if isinstance(X, Sequence):
        return _cells(X, d)
    raise TypeError(f"{name} must be an array, a frame or a list of records, got {type(X).__name__}")


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


def _frame(frame: Any, name: str) -> NDArray[np.float64]:
    """Return a data frame as floats; the error for a column that is not numeric names it."""
    names = [str(label) for label in frame.columns]
    if not names:
        raise ValueError(f"{name} must have at least one column")
    select = (lambda j: frame.iloc[:, j]) if hasattr(frame, "iloc") else frame.to_series
    columns = [_column(select(j), f"column {label!r}") for j, label in enumerate(names)]
    return np.column_stack(columns)


def _arrow(data: Any, name: str) -> NDArray[np.float64]:
    """Return an Arrow table, batch or array as floats; its declared types alone decide what is an error."""
    named = (
        [(f"column {label!r}", data.column(j)) for j, label in enumerate(data.schema.names)]
        if hasattr(data, "schema")
        else [(name, data)]
    )
    if not named:
        raise ValueError(f"{name} must have at least one column")
    columns = []
    for label, column in named:
        if not str(column.type).startswith(_ARROW_NUMBERS):
            raise TypeError(f"{label} must hold real numbers, got type {column.type}")
        columns.append(column.cast("float64", safe=False).to_numpy(zero_copy_only=False))
    return np.column_stack(columns)


def _cells(rows: Sequence[Any], d: int | None) -> NDArray[np.float64]:
    """Return a plain list as floats of shape (n, d); a list declares nothing, so nothing in it can be an error.

    A row that is not d cells contributes nothing, as a broken line of a file does. With one column a bare cell is a
    row. Without a wanted width the first row that is a list gives it.
    """
    array = np.empty(0, dtype=object)
    if _plain_numbers(rows):
        with contextlib.suppress(OverflowError):  # an integer beyond int64 in a list of others
            array = np.asarray(rows)
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


def _plain_numbers(rows: Sequence[Any]) -> bool:
    """Whether numpy may be asked: it holds a list with one long text in as many bytes for every cell."""
    plain = (float, int, bool)
    if all(type(row) in plain for row in rows):
        return True
    widths = {len(row) if type(row) in (list, tuple) else -1 for row in rows}
    return len(widths) == 1 and -1 not in widths and all(type(cell) in plain for row in rows for cell in row)


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
