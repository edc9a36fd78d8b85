"""Dask data frames and arrays: each partition is summed where it is, the sums are added up in a tree.

With a unit its rows are brought into one partition by a shuffle and cut there. A partition's result is taken once,
however often its task was run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fogline._validation import records
from fogline.engines.contributions import ClusterTable, ContributionBound, kept_state, unit_buckets
from fogline.engines.frames import ArrayTable, FrameTable, column_ids
from fogline.engines.tables import Progress, State, Table, Take, chosen_columns
from fogline.sketch import DensitySketch
from fogline.sketch.planning import Spec

__all__ = ["DaskTable", "adapt"]

BUCKET = "fogline unit bucket"
"""Column by which rows are shuffled: equal for equal ids, whatever types they come in."""

FAN_IN = 4
"""States that one task adds up."""


def adapt(source: Any, columns: Sequence[str] | None, unit: Any, progress: Progress | None) -> Table:
    """Table of a Dask data frame or array."""
    if not hasattr(type(source), "to_delayed"):
        raise TypeError(f"X: pass a data frame or an array of Dask, not {type(source).__name__}")
    return DaskTable(source, columns, unit, progress)


class DaskTable(ClusterTable):
    """Some columns of a Dask data frame, or a Dask array.

    Parameters
    ----------
    source : dask.dataframe.DataFrame or dask.array.Array
    columns, unit, progress
        As for :func:`fogline.engines.table`; nothing is told of the progress, which Dask shows itself.
    """

    _failure = "Dask could not read the records"

    def __init__(self, source: Any, columns: Sequence[str] | None, unit: str | None, progress: Progress | None) -> None:
        self._source = source
        if not hasattr(source, "columns"):
            if columns is not None or unit is not None:
                raise TypeError("columns and unit: an array has no names of columns")
            if source.ndim not in (1, 2):
                raise ValueError(f"X must have one or two dimensions (records, columns), got {source.ndim}")
            records(np.empty((0, 1), dtype=source.dtype))
            super().__init__(None, 1 if source.ndim == 1 else int(source.shape[1]), None, progress)
            return
        chosen = chosen_columns(columns, unit, [str(name) for name in source.columns])
        super().__init__(chosen, len(chosen), unit, progress)
        FrameTable(source._meta, chosen, unit, None)  # the types of the columns

    def _partitions(self) -> list[Any]:
        """Delayed partitions, each with all columns, and with all rows of a unit if its rows are to be cut."""
        source = self._source
        if self.columns is None:
            whole = source.rechunk({1: -1}) if source.ndim == 2 else source
            return list(whole.to_delayed().ravel())
        if self._bound is not None:
            meta = source._meta.assign(**{BUCKET: np.zeros(0, dtype=np.int64)})
            source = source.map_partitions(_with_buckets, self.unit_column, self._bound, meta=meta).shuffle(on=BUCKET)
        return list(source.to_delayed())

    def _state(self, spec: Spec) -> State:
        from dask.delayed import delayed

        partial, join = delayed(_partition_state, pure=False), delayed(_joined, pure=False)
        states = [partial(part, self.columns, self.unit_column, spec, self._bound) for part in self._partitions()]
        while len(states) > 1:
            states = [join(states[i : i + FAN_IN], spec) for i in range(0, len(states), FAN_IN)]
        total: State = states[0].compute() if states else DensitySketch.of(spec).state()
        return total

    def _rows(self, take: Take) -> None:
        for part in self._partitions():
            _partition(part.compute(), self.columns, self.unit_column)._scan(take)


def _with_buckets(part: Any, unit: str, bound: ContributionBound) -> Any:
    import narwhals as nw

    buckets = unit_buckets(column_ids(nw.from_native(part[unit], series_only=True)), bound)
    return part.assign(**{BUCKET: buckets})


def _partition(part: Any, columns: Sequence[str] | None, unit: str | None) -> Table:
    return ArrayTable(part) if columns is None else FrameTable(part, columns, unit, None)


def _partition_state(
    part: Any, columns: Sequence[str] | None, unit: str | None, spec: Spec, bound: ContributionBound | None
) -> State:
    table = _partition(part, columns, unit)
    return table._state(spec) if bound is None else kept_state(spec, bound, table._scan)


def _joined(states: list[State], spec: Spec) -> State:
    total = DensitySketch.of(spec)
    for state in states:
        total.add_state(*state)
    return total.state()
