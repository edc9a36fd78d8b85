"""Passes over a source, as often as an algorithm needs them, and what its schema tells of it.

Some sources are put together from several parts: records with the labels of their strata and their weights, or
predictors with a response. Estimators call for that without looking at a record.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._typing import BoundsLike, FloatArray, Ids, IntArray, SourceLike
from fogline._validation import check_bounds, check_columns, check_dense, records
from fogline.queries.strata import StrataCounts
from fogline.sources.contributions import id_cells
from fogline.sources.registry import as_source, table
from fogline.sources.tables import UNDECLARED, Source

__all__ = [
    "LabelledPass",
    "RecordPasses",
    "as_source",
    "facts_of",
    "joined",
    "label_text",
    "labelled_source",
    "names_of",
    "public_width",
    "unit_of",
    "width_of",
]


def width_of(source: SourceLike) -> int | None:
    """Give the number of columns of a source as its schema tells it, None where only its rows could."""
    if isinstance(source, Source):
        return source.declared_width
    shape = getattr(source, "shape", None)
    if shape is None or len(shape) not in (1, 2):
        return None
    return 1 if len(shape) == 1 else int(shape[1])


def public_width(source: SourceLike, declared: int | None) -> int:
    """Give the number of columns of a source, or the one that a public parameter declares where its schema does not."""
    width = width_of(source)
    if width is None:
        width = declared
    if width is None:
        raise ValueError(UNDECLARED)
    return width


def names_of(source: SourceLike) -> tuple[str, ...] | None:
    """Names of a source's columns, as its schema tells them; None where they have no names."""
    names = getattr(source, "columns", None)
    return None if names is None else tuple(map(str, names))


def facts_of(source: SourceLike) -> dict[str, Any]:
    """What else of a source belongs into a ledger's question: the query, where there is one."""
    return source.facts if isinstance(source, Source) else {}


def unit_of(source: SourceLike) -> str:
    """What is protected as a whole: a line of a text file, what a table's unit names, else a record."""
    return source.unit if isinstance(source, Source) else "record"


PASS_ROWS = 4096
"""Most rows that are handed over at a time: proofs of exact sums count on it, whatever batches an engine makes."""


class RecordPasses:
    """Passes over a source, batch by batch: errors of its schema come when it is made.

    Parameters
    ----------
    source : array, frame, path or Source
    d : int
        Columns that are wanted.
    """

    def __init__(self, source: SourceLike, d: int) -> None:
        source = as_source(source)
        if isinstance(source, Source):
            source.require_width(d)
            if not source.rereadable:
                raise TypeError("X can be read only once, but several passes are needed: write it to Parquet first")
        elif isinstance(source, np.ndarray) and source.ndim == 2 and not isinstance(source, np.ma.MaskedArray):
            # No rows: the schema alone decides whether this fails.
            records(source[:0], d)  # batches are converted one at a time
        else:
            source = records(source, d)
        self._source: Source | NDArray[Any] | None = source
        self._d = d
        self.facts: dict[str, Any] = facts_of(source)
        """What of the source, beside columns and unit, belongs into a ledger's question."""
        self.memory: dict[str, Any] = {}
        """Secret: what a pass wants to keep for the next."""

    def bound(self, max_contributions: int) -> None:
        """Cut the records of each unit to this many, where the source has units; the same ones in every pass."""
        if isinstance(self._source, Source):
            self._source = self._source.bounded(max_contributions)

    def each(self, take: Callable[[FloatArray], object]) -> None:
        """Hand over all records, in batches of shape (rows, d) of at most ``PASS_ROWS`` rows."""
        if self._source is None:
            raise RuntimeError("these passes are over")

        def in_parts(rows: NDArray[Any]) -> None:
            for start in range(0, len(rows), PASS_ROWS):
                take(records(rows[start : start + PASS_ROWS], self._d))

        if isinstance(self._source, Source):
            self._source.each_batch(in_parts)
        else:
            in_parts(self._source)

    def forget(self) -> None:
        """Let go of the records: an error's traceback must not lead to them."""
        self._source = None
        self.memory = {}


LONGEST_LABEL_BITS = 1000
"""A whole number with more bits is longer than any name of a category; `str` would refuse one of 4300 digits."""


def joined(X: SourceLike, y: object, width: int | None) -> SourceLike:
    """Return a source of records (x, y), y last; errors come from the schema alone.

    Parameters
    ----------
    X : array, frame, path or table
    y : array, name of a column, or None
        None: the last column of X is the response.
    width : int or None
        Columns of x that are wanted, where that is known.
    """
    source: Any = as_source(X)
    if isinstance(y, str):
        names = names_of(source)
        if names is None or names.count(y) != 1:
            raise ValueError(f"y: X has no column {y!r}" if names is None or y not in names else f"y: several {y!r}")
        order = [name for name in names if name != y] + [y]
        return source[order]
    if y is None:
        columns = width_of(source)
        if columns is not None and (columns < 2 or (width is not None and columns != width + 1)):
            raise ValueError(
                "PrivateModalRegression requires y to be passed, but the target y is None, and X has no column beyond "
                "those of x_bounds that could be it"
            )
        return source
    check_dense(y, "y")
    rows = records(source, width)
    columns = width_of(y)  # none for a plain list, which declares nothing: a row that is not one cell is missing
    if columns not in (None, 1):
        raise ValueError(f"y must be one column, got {columns}")
    if getattr(y, "ndim", 1) == 2:  # said of the form alone, as scikit-learn's regressors do
        from sklearn.exceptions import DataConversionWarning  # not at the top: modes are found without scikit-learn

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is taken flat",
            DataConversionWarning,
            stacklevel=3,
        )
    response = records(y, 1, name="y")
    if len(rows) != len(response):
        raise ValueError("X and y must have the same number of rows")
    return np.column_stack([rows, response])


def labelled_source(
    X: SourceLike,
    by: str | Ids | None,
    columns: Sequence[str] | None,
    weights: ArrayLike | None,
    how: dict[str, Any],
    bounds: BoundsLike,
) -> Source:
    """Table of the columns, the weights last, whose ids are the labels: errors of the schema come here."""
    if isinstance(X, Source) and X.unit_column is not None:
        raise TypeError(
            "X: pass the source itself and name its unit here (unit=...): a table with a unit gives no labels"
        )
    if isinstance(X, Source):
        raise TypeError("X: pass the source itself, since by and weights name columns of it")
    try:
        if isinstance(by, str) or isinstance(weights, str):
            if not all(name is None or isinstance(name, str) for name in (by, weights)):
                raise TypeError("weights and by must both be names of columns, or both be arrays")
            if columns is None:
                every = table(X, None, unit=by, **how).columns or ()
                columns = [name for name in every if name != weights]
            for name, role in ((by, "by"), (weights, "weights")):
                if name is not None and name in columns:
                    raise ValueError(f"columns: {name!r} is given as {role}, so it is no column of the density")
            return table(X, [*columns, *([] if weights is None else [str(weights)])], unit=by, **how)
        for name, value in how.items():
            if value is not None:
                raise TypeError(f"{name} needs by or weights to name columns of the source")
        names = names_of(X)
        if columns is not None and names is None:
            raise TypeError("columns: an array has no names of columns; pass the columns that are wanted")
        frame: Any = X
        wanted = frame if columns is None else frame[list(check_columns(columns, names or ()))]
        rows = records(wanted, width_of(wanted) or len(check_bounds(bounds)))
        if weights is not None:
            extra = records(weights, 1, name="weights")
            if len(extra) != len(rows):
                raise ValueError("weights must have one weight for each record")
            rows = np.column_stack([rows, extra])
        return table(rows, unit=by)
    except (TypeError, ValueError) as error:
        message = str(error)
        # The user wrote `by`, not `unit`: errors name the parameter as it was given.
        if message.startswith("unit"):
            raise type(error)(f"by{message.removeprefix('unit')}") from None
        raise


def label_text(label: object) -> str | None:
    """Label as a text, the same for a number and its digits; None for what is no label.

    Examples
    --------
    >>> [label_text(label) for label in ("f ", 3, 3.0, True, None, float("nan"), "")]
    ['f', '3', '3', 'true', None, None, None]
    """
    try:
        return _label_text(label)
    except KeyboardInterrupt:
        raise
    except BaseException:  # an object with methods of its own may raise anything, and is no label
        return None


def _label_text(label: object) -> str | None:
    if isinstance(label, str):
        return label.strip() or None
    if isinstance(label, bool | np.bool_):
        return "true" if label else "false"
    if isinstance(label, np.timedelta64):  # which numpy takes for an integer
        return None
    if isinstance(label, int | np.integer):
        return str(int(label)) if int(label).bit_length() < LONGEST_LABEL_BITS else None
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return None


class LabelledPass:
    """One pass over a table with labels: records are counted when it is run."""

    def __init__(self, source: Source, counts: StrataCounts, names: Sequence[str], has_others: bool) -> None:
        self._held: tuple[Source, StrataCounts] | None = (source, counts)
        self.has_others = has_others and source.unit_column is not None
        categories = names[: len(names) - self.has_others]
        self._index = {name: i for i, name in enumerate(categories)}
        self._rest = len(categories) if has_others else -1

    def run(self) -> IntArray:
        """Count the records, each in its stratum, and return the exact vector."""
        if self._held is None:
            raise RuntimeError("this pass is over")
        source, counts = self._held

        def take(rows: FloatArray, labels: Ids | None) -> None:
            # Without labels there is one stratum, and every record is in it.
            stratum = np.zeros(len(rows), dtype=np.int64) if labels is None else self._strata(labels)
            if counts.weight_bound is None:
                counts.add(rows, stratum)
            else:
                counts.add(rows[:, :-1], stratum, rows[:, -1])

        source.each_unit_batch(take)
        return counts.vector()

    def _strata(self, labels: Ids) -> IntArray:
        """Stratum of each label; -1 for none."""
        known: dict[Any, int] = {}
        cells = id_cells(labels)
        found = np.empty(len(cells), dtype=np.int64)
        for i, label in enumerate(cells):
            # A subclass of str may define its own hash, and its own text: only plain texts are looked up.
            key = str.__str__(label) if isinstance(label, str) else label_text(label)
            if key not in known:
                text = label_text(key)
                known[key] = self._rest if text is None else self._index.get(text, self._rest)
            found[i] = known[key]
        return found

    def forget(self) -> None:
        """Let go of the records: an error's traceback must not lead to them."""
        self._held = None
