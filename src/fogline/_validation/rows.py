"""Records: what is wrong with a schema is an error, what is wrong with a cell is not known to anyone."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fogline._typing import ArrowColumn, FloatArray, FrameColumn
from fogline._validation.containment import contained, quiet

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["check_columns", "check_dense", "records"]

_NUMERIC_KINDS = "iufb"
_ARROW_NUMBERS = ("integer", "floating", "boolean", "decimal", "null")

T = TypeVar("T")


def records(X: object, d: int | None = None, *, name: str = "X", public: bool = False) -> FloatArray:
    """Return the records as float64 of shape (n, d), without any error that depends on a cell.

    Parameters
    ----------
    X : array, data frame, series, or (nested) list
        One dimension means d = 1. Numbers and booleans only. A declared type that is not a number is an
        error; in a plain list and in an array or a column of objects, which declare nothing, a cell that is no number
        becomes a missing value.
    d : int, optional
        The number of columns that is wanted.
    name : str
        Of the parameter, for the errors.
    public : bool
        Whether the rows are no secret, as points to read a density at: then the first row of a plain list may say
        how many columns there are where `d` does not.

    Returns
    -------
    array of shape (n, d)
        NaN and infinities are kept; no rows is not an error.

    Examples
    --------
    >>> records([1, float("nan"), None], d=1)
    array([[ 1.], [nan], [nan]])
    >>> import numpy as np
    >>> records(np.ones((1, 2)), d=3)
    Traceback (most recent call last):
    ValueError: X must have 3 columns, got 2
    """
    array = _float_array(X, d, name, public)
    # an empty list has no columns of its own: no records are an answer like any other
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
        # two columns of one name: nobody could tell which is meant
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


def _float_array(X: object, d: int | None, name: str, public: bool) -> FloatArray:
    """Dispatch on how `X` declares its types."""
    if X is None or isinstance(X, str | bytes):
        raise TypeError(f"{name} must be an array, a frame or a list of records, got {type(X).__name__}")
    check_dense(X, name)
    if isinstance(X, np.ma.MaskedArray):
        values = _cast(np.asarray(np.ma.getdata(X, subok=False)), name)
        return np.where(np.ma.getmaskarray(X), np.nan, values)
    if isinstance(X, np.ndarray):
        return _cast(np.asarray(X), name)  # of a subclass the numbers alone: a matrix has no rows of one dimension
    if _library(X) == "pyarrow":
        return _arrow(X, name)
    if hasattr(X, "columns") and hasattr(X, "__array__"):
        return _frame(X, name)
    if hasattr(X, "dtype") and hasattr(X, "to_numpy"):
        return _column(cast(FrameColumn, X), name)
    if hasattr(X, "__array__"):
        return _cast(_foreign(lambda: np.asarray(X), name), name)
    if isinstance(X, Sequence):
        return _cells(X, d if d is not None else _first_width(X, name, public))
    raise TypeError(f"{name} must be an array, a frame or a list of records, got {type(X).__name__}")


def _library(X: object) -> str:
    return type(X).__module__.partition(".")[0]


def _foreign(convert: Callable[[], T], name: str) -> T:
    """Result of another library's conversion, whose errors may quote a cell."""
    return contained(convert, lambda: ValueError(f"{name} could not be read as numbers"))


def _refuse_dtype(dtype: object, name: str) -> None:
    """Raise unless a numpy, pandas or polars type is one of numbers, booleans or nothing in particular."""
    is_numeric = getattr(dtype, "is_numeric", None)  # polars has no kinds
    if callable(is_numeric):
        numeric = bool(is_numeric()) or str(dtype) in ("Boolean", "Null", "Object")
    else:
        numeric = getattr(dtype, "kind", "O") in _NUMERIC_KINDS or dtype == np.dtype(object)
    if getattr(dtype, "kind", "") == "c":
        raise ValueError(f"{name} must hold real numbers. Complex data not supported")  # as scikit-learn says it
    if not numeric:
        raise TypeError(f"{name} must hold real numbers, got type {dtype}")


def _cast(array: NDArray[Any], name: str) -> FloatArray:
    """Return an array as floats; one of objects declares nothing, so that each cell is judged alone."""
    _refuse_dtype(array.dtype, name)
    if array.dtype == object:
        return _objects(array.ravel().tolist()).reshape(array.shape)
    with quiet():  # a long double beyond float64 becomes inf, a signalling NaN a quiet one, without a warning about it
        return array.astype(np.float64, copy=False)


def _objects(cells: Sequence[Any]) -> FloatArray:
    with quiet():
        return np.fromiter((_cell(cell) for cell in cells), dtype=np.float64, count=len(cells))


def _column(column: FrameColumn, name: str) -> FloatArray:
    """Return one column of a frame as floats, whatever its library's idea of a missing value."""
    dtype = column.dtype
    if hasattr(dtype, "pyarrow_dtype"):  # pandas on Arrow
        return _arrow_column(dtype.pyarrow_dtype, column, name)
    _refuse_dtype(dtype, name)
    if str(dtype) in ("object", "Object"):
        return _objects(_foreign(lambda: column.to_list(), name))
    if hasattr(column, "iloc"):  # pandas: nullable columns turn into objects unless told what NA becomes
        return _foreign(lambda: np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan), np.float64), name)
    if _library(column) == "polars":
        return _foreign(lambda: np.asarray(_polars_doubles(cast("pl.Series", column)), np.float64), name)
    return _foreign(lambda: np.asarray(column.to_numpy(), dtype=np.float64), name)


def _polars_doubles(column: pl.Series) -> FloatArray:
    import polars as pl

    return column.cast(pl.Float64, strict=False).to_numpy()  # integers of 128 bits have no type in numpy


def _frame(frame: pd.DataFrame | pl.DataFrame, name: str) -> FloatArray:
    """Return a data frame as floats; the error for a column that is not numeric names it."""
    names = [str(label) for label in frame.columns]
    if not names:
        raise ValueError(f"{name} must have at least one column")
    # by place: names may come twice, or be no texts
    select = (lambda j: frame.iloc[:, j]) if hasattr(frame, "iloc") else frame.to_series
    columns = [_column(cast(FrameColumn, select(j)), f"column {label!r}") for j, label in enumerate(names)]
    return np.column_stack(columns)


def _arrow(data: pa.Table | pa.RecordBatch | pa.Array, name: str) -> FloatArray:
    """Return an Arrow table, batch or array as floats; its declared types alone decide what is an error."""
    named = (
        [(f"column {label!r}", data.column(j)) for j, label in enumerate(data.schema.names)]
        if hasattr(data, "schema")
        else [(name, data)]
    )
    if not named:
        raise ValueError(f"{name} must have at least one column")
    return np.column_stack([_arrow_column(column.type, column, label) for label, column in named])


def _arrow_column(kind: pa.DataType, column: ArrowColumn | FrameColumn, name: str) -> FloatArray:
    """Return a column of Arrow as floats; a dictionary is a way to store its values, whose type it declares."""
    import pyarrow as pa

    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(getattr(pa.types, f"is_{number}")(values) for number in _ARROW_NUMBERS):
        raise TypeError(f"{name} must hold real numbers, got type {kind}")

    def doubles() -> FloatArray:
        given: Any = column
        stored = given if hasattr(given, "cast") else given.array.__arrow_array__()  # pandas on Arrow
        return np.asarray(stored.cast(values).cast("float64", safe=False).to_numpy(zero_copy_only=False))

    return _foreign(doubles, name)


def _first_width(rows: Sequence[Any], name: str, public: bool) -> int:
    """Number of columns of a plain list that nobody has declared: of the first row, where rows are no secret."""
    if not public:
        raise ValueError(
            f"{name}: a plain list does not declare how many columns it has, and a record must not decide it; "
            f"pass an array, such as numpy.array({name}, dtype=float)"
        )
    nested = [row for row in rows if _is_row(row)]
    return len(nested[0]) if nested else 1


def _cells(rows: Sequence[Any], d: int) -> FloatArray:
    """Return a plain list as floats of shape (n, d); a list declares nothing, so nothing in it can be an error.

    A row that is not d cells contributes nothing, as a broken line of a file does. With one column a bare cell is a
    row.
    """
    if _plain_numbers(rows, d):
        with contextlib.suppress(OverflowError), quiet():  # an integer beyond the doubles: cell by cell it is missing
            return np.array(rows, dtype=np.float64).reshape(len(rows), d)
    with quiet():
        result = [_row_cells(row, d) for row in rows]
    return np.array(result, dtype=np.float64).reshape(len(rows), d)


def _plain_numbers(rows: Sequence[Any], d: int) -> bool:
    """Whether numpy may be asked: every cell is a number of Python's own, and every row has d of them."""
    # by type, not isinstance: a class of its own may raise where numpy asks it for a float
    plain = (float, int, bool)
    if d == 1 and all(type(row) in plain for row in rows):
        return True
    if not all(type(row) in (list, tuple) and len(row) == d for row in rows):
        return False
    return all(type(cell) in plain for row in rows for cell in row)


def _is_row(row: object) -> TypeGuard[Sequence[Any]]:
    if isinstance(row, np.ndarray):
        return row.ndim > 0
    return isinstance(row, Sequence) and not isinstance(row, str | bytes)


def _row_cells(row: object, d: int) -> list[float]:
    """Return a row of d cells as floats, all of them missing where it has not d cells or an error of its own."""
    try:
        cells = (list(row) if len(row) == d else []) if _is_row(row) else [row] if d == 1 else []
    except KeyboardInterrupt:
        raise
    except BaseException:
        cells = []
    return [_cell(cell) for cell in cells] if len(cells) == d else [math.nan] * d


def _cell(cell: object) -> float:
    """Return a number as a float and anything else, a text of digits too, as a missing value."""
    try:
        if isinstance(cell, np.ndarray) and cell.ndim == 0 and cell is not np.ma.masked:
            cell = cell.item()
        if isinstance(cell, np.timedelta64):  # an integer to numpy, but a duration to whoever wrote it
            return math.nan
        return float(cell) if isinstance(cell, Real | Decimal | np.bool_) else math.nan
    except KeyboardInterrupt:
        raise
    except BaseException:  # beyond the doubles, a signalling NaN of decimals, a class with any error of its own
        return math.nan
