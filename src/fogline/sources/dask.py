"""Dask data frames and arrays: each partition is summed where it is, the sums are added up in a tree.

With a unit its rows are brought into one partition by a shuffle and cut there. What is shuffled are doubles and ids in
their one form, since a shuffle would bring a partition to the types that were declared for the frame, and fail where a
record does not have them. A partition's result is taken once, however often its task was run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray, Ids, SourceLike
from fogline._validation import quiet, records
from fogline.density.random_spec import CellSpec, Spec
from fogline.queries.exact_counts import exact_counts
from fogline.sources.contributions import (
    MISSING,
    TEXT,
    ClusterTable,
    ContributionBound,
    Identities,
    kept_state,
    unit_buckets,
)
from fogline.sources.frames import ArrayTable, FrameTable, PartTable, numbers_or_missing
from fogline.sources.joint_pass import Handed, joint_states
from fogline.sources.tables import BATCH_ROWS, Progress, Source, State, Take, chosen_columns

if TYPE_CHECKING:
    import pandas as pd
    from dask.array import Array as DaskArray
    from dask.dataframe import DataFrame as DaskFrame

__all__ = ["DaskTable", "adapt"]

T = TypeVar("T")

BUCKET, VALUE, NAME = "bucket", "value", "name"
"""Columns of what is shuffled, beside the numbers x0, x1, ...: where a row goes (equal for equal ids, whatever types
they come in), an id that is an integer, and one that is a text, in hexadecimal digits; without a text the integer is
the id."""

FAN_IN = 4
"""States that one task adds up."""


def adapt(source: SourceLike, columns: Sequence[str] | None, unit: str | None, progress: Progress | None) -> Source:
    """Table of a Dask data frame or array."""
    if not hasattr(type(source), "to_delayed"):
        raise TypeError(f"X: pass a data frame or an array of Dask, not {type(source).__name__}")
    given: Any = source
    return DaskTable(given, columns, unit, progress)


class DaskTable(ClusterTable):
    """Some columns of a Dask data frame, or a Dask array.

    Parameters
    ----------
    source : dask.dataframe.DataFrame or dask.array.Array
    columns, unit, progress
        As for :func:`fogline.sources.registry.table`; nothing is told of the progress, which Dask shows itself.
    """

    _failure = "Dask could not read the records"

    def __init__(
        self, source: DaskFrame | DaskArray, columns: Sequence[str] | None, unit: str | None, progress: Progress | None
    ) -> None:
        given: Any = _as_given(source)
        self._source = given
        if not hasattr(given, "columns"):
            if columns is not None or unit is not None:
                raise TypeError("columns and unit: an array has no names of columns")
            if given.ndim not in (1, 2):
                raise ValueError(f"X must have one or two dimensions (records, columns), got {given.ndim}")
            records(np.empty((0, 1), dtype=given.dtype))
            super().__init__(None, 1 if given.ndim == 1 else int(given.shape[1]), None, progress)
            return
        chosen = chosen_columns(columns, unit, [str(name) for name in given.columns])
        super().__init__(chosen, len(chosen), unit, progress)
        FrameTable(given._meta, chosen, unit, None)  # the types of the columns

    def _partitions(self) -> list[Any]:
        """Delayed partitions, each with all columns, and with all rows of a unit if its rows are to be cut."""
        source = self._source
        if self.columns is None:
            whole = source.rechunk({1: -1}) if source.ndim == 2 else source
            return list(whole.to_delayed().ravel())
        if self._bound is not None and self.unit_column is not None:
            empty = _with_buckets(source._meta, self.columns, self.unit_column, self._bound)
            named = source.map_partitions(_with_buckets, self.columns, self.unit_column, self._bound, meta=empty)
            # all rows of a unit in one partition, by a bucket that its id decides
            source = named.shuffle(on=BUCKET)
        return list(source.to_delayed())

    def _state(self, spec: Spec) -> State:
        from dask.delayed import delayed

        # Not pure: a pure task is named by a hash of its arguments, and a cluster may reuse what it has under that
        # name.
        partial, join = delayed(_partition_state, pure=False), delayed(_joined, pure=False)
        states = [partial(part, self.columns, self.unit_column, spec, self._bound) for part in self._partitions()]
        # in a tree: no task holds more than a few states
        while len(states) > 1:
            states = [join(states[i : i + FAN_IN], spec) for i in range(0, len(states), FAN_IN)]
        # A frame without partitions is a data set without records, and an answer like any other.
        total: State = states[0].compute() if states else exact_counts(spec).state()
        return total

    def _joint_states(self, specs: Sequence[CellSpec], places: Sequence[Sequence[int]]) -> list[State]:
        from dask.delayed import delayed

        partial, join = delayed(_joint_partition, pure=False), delayed(_joined_each, pure=False)
        how = (self.columns, self.unit_column, self.width, specs, places, self._bound)
        states = [partial(part, *how) for part in self._partitions()]
        while len(states) > 1:
            states = [join(states[i : i + FAN_IN], specs) for i in range(0, len(states), FAN_IN)]
        total: list[State] = states[0].compute() if states else [exact_counts(spec).state() for spec in specs]
        return total

    def _rows(self, take: Take) -> None:
        for part in self._partitions():
            _partition(part.compute(), self.columns, self.unit_column, self.width)._scan(take)


def _as_given(source: T) -> T:
    """A frame without the step by which Dask makes Arrow's texts of all objects, where nothing was computed of them.

    Dask puts it there unless told otherwise. It takes a partition at once, and one cell that is bytes and no UTF-8
    makes it fail, and the release with it.
    """
    whole: Any = getattr(source, "expr", None)
    node = whole
    while type(node).__name__ == "Projection":
        node = node.frame
    step = type(node).__name__
    if step == "ArrowStringConversion":
        plain = node.frame
    elif step == "FromPandas" and "pyarrow_strings_enabled" in node._parameters:
        plain = node.substitute_parameters({"pyarrow_strings_enabled": False})
    else:
        return source
    kind: Any = type(source)
    remade: T = kind(whole.substitute(node, plain))
    return remade


def _with_buckets(part: pd.DataFrame, columns: Sequence[str], unit: str, bound: ContributionBound) -> pd.DataFrame:
    """Numbers of a partition's rows and the ids of their units, as columns whose types no record decides."""
    import pandas as pd

    # no rows first: a partition without records has the same columns and types
    parts = [_named_rows(np.zeros((0, len(columns))), [], bound)]
    PartTable(part, columns, unit)._scan(lambda rows, ids: parts.append(_named_rows(rows, cast(Ids, ids), bound)))
    return pd.concat(parts, ignore_index=True)


def _named_rows(rows: FloatArray, ids: Ids, bound: ContributionBound) -> pd.DataFrame:
    import pandas as pd

    people = Identities()
    values, kinds = people.read(ids)
    texts = np.array([text.encode("utf-8", "surrogatepass").hex() for text in people.texts], dtype=object)
    names = np.full(len(values), "", dtype=object)
    names[kinds == TEXT] = texts[values[kinds == TEXT]]
    frame = pd.DataFrame({f"x{j}": rows[:, j] for j in range(rows.shape[1])})
    frame[BUCKET] = unit_buckets(ids, bound)
    frame[VALUE] = values
    # A declared type, the same in every partition: an object column would be guessed from its cells.
    frame[NAME] = pd.array(names, dtype="string")
    return frame[kinds != MISSING]


def _scan_named(part: pd.DataFrame, width: int, take: Take) -> None:
    """Hand over the rows of a partition that :func:`_with_buckets` made."""
    names = part[NAME].to_list()
    ids = [
        bytes.fromhex(n).decode("utf-8", "surrogatepass") if n else v for n, v in zip(names, part[VALUE], strict=True)
    ]
    rows = np.column_stack([part[f"x{j}"].to_numpy(dtype=np.float64) for j in range(width)])
    for start in range(0, len(rows), BATCH_ROWS):
        here = slice(start, start + BATCH_ROWS)
        take(rows[here], ids[here])


def _partition(
    part: pd.DataFrame | NDArray[Any], columns: Sequence[str] | None, unit: str | None, width: int
) -> Source:
    if columns is not None:
        return PartTable(part, columns, unit)
    return ArrayTable(numbers_or_missing(part, width))


def _partition_state(
    part: pd.DataFrame | NDArray[Any],
    columns: Sequence[str] | None,
    unit: str | None,
    spec: Spec,
    bound: ContributionBound | None,
) -> State:
    with quiet():
        if bound is None:
            return _partition(part, columns, unit, spec.d)._state(spec)
        return kept_state(spec, bound, lambda take: _scan_named(part, spec.d, take))


def _joined(states: list[State], spec: Spec) -> State:
    total = exact_counts(spec)
    for state in states:
        total.add_state(*total.checked(*state))
    return total.state()


def _joint_partition(
    part: pd.DataFrame,
    columns: Sequence[str],
    unit: str | None,
    width: int,
    specs: Sequence[CellSpec],
    places: Sequence[Sequence[int]],
    bound: ContributionBound | None,
) -> list[State]:
    """States of several grids of one partition, which with a bound has all rows of its units."""
    with quiet():
        if bound is None:
            return joint_states(_partition(part, columns, unit, width), specs, places, None)
        return joint_states(Handed(lambda take: _scan_named(part, width, take), width, unit), specs, places, bound)


def _joined_each(parts: list[list[State]], specs: Sequence[CellSpec]) -> list[State]:
    return [_joined(list(states), spec) for states, spec in zip(zip(*parts, strict=True), specs, strict=True)]
