"""What every source gives: the exact state of a sketch, or records batch by batch, and never a word about them.

A :class:`Source` is some columns of numbers, and perhaps a column that says whose record a row is. It has
one duty, :meth:`Source.state`, the exact integers of a sketch. A subclass may do no more than hand over rows
(:meth:`Source._scan`); one that can count where the data are does so. Both give the same integers, since a record's
cell is one expression in double precision and a feature vector is made of integers.

What is wrong with a schema is an error when the table is made. What is wrong with cells or lines is not known to
anyone, and when reading fails the error is one constant.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from fogline._typing import FloatArray, Ids, IntArray
from fogline._validation import check_columns, contained, records
from fogline.accounting.guarantee import ROWS
from fogline.density.random_spec import Spec
from fogline.queries.exact_counts import exact_counts

if TYPE_CHECKING:
    from fogline.sources.contributions import ContributionBound

__all__ = [
    "BATCH_ROWS",
    "Progress",
    "ReadFailed",
    "Source",
    "State",
    "Take",
    "TypedTake",
    "batch_rows",
    "chosen_columns",
    "cores",
    "read_public",
    "typed_columns",
    "unit_name",
]

T = TypeVar("T")
State = tuple[IntArray, IntArray]
Take = Callable[[FloatArray, Ids | None], object]
"""Takes a batch: its numbers, shape (rows, columns), and the ids of its rows (None where there is no unit)."""

TypedTake = Callable[[FloatArray, Sequence[Ids], Ids | None], object]
"""Takes a batch: its numbers, the cells of each column that is read as text, and the ids of its rows."""

Progress = Callable[[int], object]
"""Told how many rows were read so far. The number is as secret as the records: for the eyes of their owner."""

UNDECLARED = (
    "X: a plain list does not declare how many columns it has, and a record must not decide it; "
    "pass an array, such as numpy.array(X, dtype=float)"
)

BATCH_ROWS = 2**16
"""Rows handed over at a time: two columns of them stay in a core's cache."""


class ReadFailed(RuntimeError):
    """The records could not be read. It says nothing more, since a reader's message may quote the data."""


def batch_rows(width: int) -> int:
    """Rows handed over at a time of a table with many columns: fewer, so that memory does not grow with the columns.

    A multiple of the rows that passes take at a time, so that these are cut at the same places whatever the width.

    Examples
    --------
    >>> [batch_rows(width) for width in (2, 16, 100, 5000)]
    [65536, 65536, 8192, 4096]
    """
    # about a million numbers at a time, whatever the width
    return min(BATCH_ROWS, 4096 * max(1, 2**20 // max(1, width) // 4096))


def cores() -> int:
    """How many processors this process may use."""
    # what this process may use, not what the machine has: a container may be given less
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def unit_name(unit: object) -> str | None:
    """Name of the unit's column, for sources whose ids are a column of theirs."""
    if unit is not None and not isinstance(unit, str):
        raise TypeError(f"unit must be the name of a column, got {type(unit).__name__}")
    return unit


def chosen_columns(columns: object, unit: object, names: Sequence[str]) -> tuple[str, ...]:
    """Names of the wanted columns, by default all but the unit's; errors where a schema has no such names."""
    if unit_name(unit) is not None:
        check_columns([unit], names, name="unit")
    return check_columns([name for name in names if name != unit] if columns is None else columns, names)


def typed_columns(
    columns: Sequence[str] | None, texts: Sequence[str], unit: object, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the columns of numbers and of those that are read as text; a table may have either kind alone."""
    as_texts = check_columns(list(texts), names, name="texts") if texts else ()
    numbers = () if as_texts and columns is not None and not columns else chosen_columns(columns, unit, names)
    return numbers, as_texts


def read_public(table: Source) -> FloatArray:
    """Read a table that holds no secret, such as a sample that somebody published: all rows as one array."""
    batches = [np.empty((0, table.width))]
    # a copy: readers may fill the same buffer again
    table.each_batch(lambda rows: batches.append(rows.copy()))
    return np.concatenate(batches)


class Source(ABC):
    """Some columns of a source, and perhaps the unit that each row belongs to.

    Parameters
    ----------
    columns : sequence of str or None
        Names of the columns, in the order of the bounds; None where they have none.
    width : int or None
        How many columns there are; None where the source does not declare it, and the bounds will.
    unit : str or None
        The column that says whose record a row is; None: every row is a unit of its own.
    progress : callable, optional
        Told the rows read so far (:data:`Progress`), where rows are read here and not counted elsewhere.
    """

    _failure = "the source could not be read"
    _row = "record"
    rereadable = True
    """Whether the source can be read again from its beginning."""
    texts: tuple[str, ...] = ()
    """Columns that are handed over cell by cell, as texts, numbers or dates, beside those of numbers."""

    def __init__(
        self,
        columns: Sequence[str] | None,
        width: int | None,
        unit: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.columns = None if columns is None else tuple(columns)
        self._width = width
        self.unit_column = unit
        self.progress = progress

    def __repr__(self) -> str:
        unit = f", unit={self.unit_column!r}" if self.unit_column is not None else ""
        return f"{type(self).__name__}(columns={None if self.columns is None else list(self.columns)}{unit})"

    # A pickle would carry records, or the way to them, into a file that nobody guards.
    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a table leads to secret records and is not pickled")

    @property
    def unit(self) -> str:
        """What the guarantee protects: what a row is, or what the unit's column names."""
        if self.unit_column is None:
            return self._row
        # a column that is called "record" must not pass for the row itself
        return self.unit_column if self.unit_column not in ROWS else f"value of {self.unit_column}"

    @property
    def row(self) -> str:
        """What one row is, whatever the unit."""
        return self._row

    @property
    def is_enforced(self) -> bool:
        """Whether the rows of a unit are cut to what it may contribute."""
        return self.unit_column is not None

    @property
    def facts(self) -> dict[str, Any]:
        """What, beside columns and unit, tells questions about this source from others about the same data set."""
        return {}

    def __getitem__(self, columns: list[str]) -> Self:
        """Some of the columns, in another order; the unit stays."""
        if self.columns is None:
            raise TypeError("columns: this source has no names of columns")
        chosen = check_columns(columns, self.columns)
        other = copy.copy(self)
        other.columns, other._width = chosen, len(chosen)
        return other

    def __copy__(self) -> Self:
        # By hand: the way of copy.copy asks __getstate__, which refuses. A copy in this process leads nowhere that the
        # original does not.
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    @property
    def declared_width(self) -> int | None:
        """How many columns there are as far as the source declares it: a plain list does not."""
        return self._width

    @property
    def width(self) -> int:
        """How many columns there are."""
        if self._width is None:
            raise ValueError(UNDECLARED)
        return self._width

    def require_width(self, d: int) -> None:
        """Raise an error unless there is one column for each of d axes; where none were declared, this does so."""
        # a plain list declares no width: the bounds do, which are public
        if self._width is None:
            self._width = d
        if d != self._width:
            raise ValueError(f"columns: {self._width} columns were named, but bounds has {d} axes")

    # -- records --------------------------------------------------------------------------------------------

    def state(self, spec: Spec) -> State:
        """Secret: exact state of the sketch of all records, as :meth:`fogline.DensitySketch.state` gives it."""
        self.require_width(spec.d)
        # Before the data are touched: an unbounded unit would void the guarantee, not only weaken it.
        self._require_bound()
        return self._guarded(lambda: self._state(spec))

    def each_batch(self, take: Callable[[FloatArray], object]) -> None:
        """Hand the records over, batch by batch, as arrays of shape (rows, columns) with NaN for what is no number."""
        self._require_bound()
        self._guarded(lambda: self._counted_scan(lambda rows, _: take(rows)))

    def each_unit_batch(self, take: Take) -> None:
        """Hand over the records with the ids of their units: for what bounds the contributions."""
        self._guarded(lambda: self._counted_scan(take))

    def each_typed_batch(self, take: TypedTake) -> None:
        """Hand over the records with the cells of :attr:`texts` and the ids of their units, as they are."""
        self._guarded(lambda: self._counted_typed_scan(take))

    def _counted_typed_scan(self, take: TypedTake) -> None:
        """Hand over typed records and tell how many; what the taker raises comes through."""
        tell, done = self.progress, 0

        def take_and_tell(rows: FloatArray, texts: Sequence[Ids], ids: Ids | None) -> None:
            nonlocal done
            take(rows, texts, ids)
            done += len(rows)
            if tell is not None:
                tell(done)

        # as in _counted_scan: what a first batch loads must not tell that there was a record
        if self._width is not None:
            take(np.zeros((0, self._width)), [[] for _ in self.texts], self._no_ids())
        self._scan_typed(take_and_tell)

    def _no_ids(self) -> Ids | None:
        return None if self.unit_column is None else np.zeros(0, dtype=np.int64)

    def bounded(self, max_contributions: int) -> Source:
        """The same table with no more records of a unit than it may contribute; itself where every row is a unit."""
        from fogline.sources.contributions import ContributionBound

        return self if self.unit_column is None else self._bounded(ContributionBound.draw(max_contributions))

    def _bounded(self, bound: ContributionBound) -> Source:
        from fogline.sources.contributions import BoundedTable

        return BoundedTable(self, bound)

    def _unordered(self) -> Source:
        """The same table for what does not depend on the order of the rows, where any order is cheaper."""
        return self

    def _for_cells(self) -> Source:
        """The same table for counts of cells, where neither the order nor the layout in memory matters."""
        return self._unordered()

    @abstractmethod
    def _scan(self, take: Take) -> None:
        """Hand over all rows; may raise anything."""

    def _scan_typed(self, take: TypedTake) -> None:
        """Hand over all rows with the cells of :attr:`texts`; may raise anything."""
        if self.texts:
            raise NotImplementedError
        self._scan(lambda rows, ids: take(rows, (), ids))

    def _state(self, spec: Spec) -> State:
        counts = exact_counts(spec)
        self._counted_scan(lambda rows, _: counts.add_rows(records(rows, spec.d)))
        return counts.state()

    def _counted_scan(self, take: Take) -> None:
        tell, done = self.progress, 0
        # No rows first: what is loaded and compiled with a batch must not tell that there was a record.
        if self._width is not None:
            take(np.zeros((0, self._width)), self._no_ids())
        if tell is None:
            self._scan(take)
            return

        def take_and_tell(rows: FloatArray, ids: Ids | None) -> None:
            nonlocal done
            take(rows, ids)
            done += len(rows)
            tell(done)

        self._scan(take_and_tell)

    def _require_bound(self) -> None:
        if self.unit_column is not None:
            raise RuntimeError("this table has a unit: bound its contributions first")

    def _guarded(self, read: Callable[[], T]) -> T:
        failure = self._failure
        # one constant error: a reader's own may quote a cell
        return contained(read, lambda: ReadFailed(failure))
