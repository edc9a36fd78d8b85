"""Spark data frames, by the data frame interface alone, so that Spark Connect serves too.

For a grid the cells are grouped and counted by Spark. Random features are summed partition by partition and the sums
are added up in two rounds. With a unit, Spark's grouping brings its rows together and they are cut there. What comes
back are rows of results, which Spark takes once from each task that was finished: a task that dies or runs twice does
not count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fogline._typing import ArrowBatch, IntArray, SourceLike
from fogline._validation import quiet, records
from fogline.density.random_spec import CellSpec, Spec
from fogline.queries.exact_counts import ExactCounts, exact_counts
from fogline.sources.cell_sql import SPARK, CellSql, quoted
from fogline.sources.contributions import ClusterTable, ContributionBound, kept_state
from fogline.sources.files import has_arrow, scan_batches
from fogline.sources.tables import Progress, Source, State, Take, chosen_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["SparkTable", "adapt"]

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean")
IDS = ("tinyint", "smallint", "int", "bigint", "float", "double", "string", "varchar", "char")
FAN_IN = 4
"""Tasks that add up the sums of others."""

Step = Callable[[Iterator[ArrowBatch]], Iterator[ArrowBatch]]
"""What a task of Spark does with the batches of its partition."""

STATE = "part int, density int, first binary, second binary"
"""A state on its way: the second array has the rows of the first, or two."""


def adapt(source: SourceLike, columns: Sequence[str] | None, unit: str | None, progress: Progress | None) -> Source:
    """Table of a Spark data frame."""
    if not hasattr(source, "mapInArrow"):
        raise TypeError(f"X: pass a data frame of Spark, not {type(source).__name__}")
    frame: Any = source
    return SparkTable(frame, columns, unit, progress)


class SparkTable(ClusterTable):
    """Some columns of a Spark data frame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        Classic or of Spark Connect.
    columns, unit, progress
        As for :func:`fogline.sources.registry.table`; nothing is told of the progress, which Spark shows itself.
    """

    _failure = "Spark could not read the records"

    def __init__(
        self, frame: DataFrame, columns: Sequence[str] | None, unit: str | None, progress: Progress | None
    ) -> None:
        kinds = dict(frame.dtypes)
        if not has_arrow():
            raise ImportError("Spark needs pyarrow: pip install 'fogline[arrow]'")
        chosen = chosen_columns(columns, unit, list(frame.columns))
        super().__init__(chosen, len(chosen), unit, progress)
        self._frame = frame
        # types of the schema alone: no row is looked at
        for name in chosen:
            if kinds[name].split("(")[0] not in NUMBERS:
                raise TypeError(f"columns: column {name!r} holds {kinds[name]}, not numbers")
        if unit is not None and kinds[unit].split("(")[0] not in IDS:
            raise TypeError(f"unit: column {unit!r} holds {kinds[unit]}, not integers or texts")

    def _doubles(self) -> DataFrame:
        """The numbers as doubles x0, x1, ..., and the unit."""
        numbers = [f"CAST({quoted(name, '`')} AS DOUBLE) AS x{j}" for j, name in enumerate(self.columns or ())]
        unit = [] if self.unit_column is None else [f"{quoted(self.unit_column, '`')} AS unit"]
        return self._frame.selectExpr(*numbers, *unit)

    def _people(self) -> DataFrame:
        """One row per unit, with all of its rows."""
        rows = f"collect_list(struct({', '.join(f'x{j}' for j in range(self.width))})) AS rows"
        # all rows of a unit in one place, whatever partition they were in
        return self._doubles().where("unit IS NOT NULL").groupBy("unit").agg(_expression(rows))

    def _state(self, spec: Spec) -> State:
        if self._bound is not None:
            return self._reduced(self._people(), [spec], _bounded_step(spec, self._bound))[0]
        if not isinstance(spec, CellSpec):
            return self._reduced(self._doubles(), [spec], _state_step(spec))[0]
        sql = CellSql.of(spec, SPARK)
        cells = self._doubles().where(sql.inside).selectExpr(f"{sql.cell} AS cell")
        answer = cells.groupBy("cell").count().toArrow()
        keys = answer.column("cell").to_numpy().astype(np.int64)
        # Spark gives groups in an order that depends on its tasks.
        order = np.argsort(keys)
        return keys[order], answer.column("count").to_numpy().astype(np.int64)[order]

    def _joint_states(self, specs: Sequence[CellSpec], places: Sequence[Sequence[int]]) -> list[State]:
        if self._bound is not None:
            return self._reduced(self._people(), specs, _joint_step(specs, places, self._bound, self.width))
        found = [CellSql.of(spec, SPARK, where) for spec, where in zip(specs, places, strict=True)]
        cells = ", ".join(
            f"named_struct('density', {k}, 'cell', CASE WHEN {sql.inside} THEN {sql.cell} END)"
            for k, sql in enumerate(found)
        )
        each = self._doubles().selectExpr(f"inline(array({cells}))").where("cell IS NOT NULL")
        answer = each.groupBy("density", "cell").count().toArrow()
        density, keys, counts = (
            answer.column(name).to_numpy().astype(np.int64) for name in ("density", "cell", "count")
        )
        # by density, then cell: groups come in no order
        order = np.lexsort((keys, density))
        density, keys, counts = density[order], keys[order], counts[order]
        return [(keys[density == k], counts[density == k]) for k in range(len(specs))]

    def _reduced(self, frame: DataFrame, specs: Sequence[Spec], step: Step) -> list[State]:
        """Sums of the states of all partitions, by way of a few tasks that add up those of others."""
        # in two steps, so that the driver never holds the states of all partitions
        partial = frame.mapInArrow(step, STATE).repartition(FAN_IN, "part")
        answer = partial.mapInArrow(_merge_step(specs), STATE).toArrow()
        totals = [exact_counts(spec) for spec in specs]
        for batch in answer.to_batches():
            _add_packed(totals, batch)
        return [total.state() for total in totals]

    def _rows(self, take: Take) -> None:
        scan_batches(self._doubles().toArrow().to_batches(), take, has_unit=self.unit_column is not None)


def _state_step(spec: Spec) -> Step:
    """What a task does without a unit: batches of doubles to one row, its state."""

    def step(batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        counts = exact_counts(spec)
        for batch in batches:
            counts.add_rows(records(batch, spec.d))
        yield _packed([counts.state()])

    return step


def _bounded_step(spec: Spec, bound: ContributionBound) -> Step:
    """What a task does with units that each come with all of their rows, so that no unit can be torn apart."""

    def step(batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        with quiet():
            # A task's batches come once: they cannot be read again in parts.
            state = kept_state(spec, bound, lambda take: _scan_people(batches, take), rereadable=False)
        yield _packed([state])

    return step


def _joint_step(
    specs: Sequence[CellSpec], places: Sequence[Sequence[int]], bound: ContributionBound, width: int
) -> Step:
    """What a task does with units that each come with all of their rows, for several grids."""

    def step(batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        from fogline.sources.joint_pass import Handed, joint_states

        with quiet():
            states = joint_states(Handed(lambda take: _scan_people(batches, take), width, "unit"), specs, places, bound)
        yield _packed(states)

    return step


def _scan_people(batches: Iterator[ArrowBatch], take: Take) -> None:
    """Hand over the rows of units that come as lists."""
    for batch in batches:
        lists = batch.column("rows")
        numbers = [column.to_numpy(zero_copy_only=False) for column in lists.flatten().flatten()]
        take(np.column_stack(numbers), batch.column("unit").take(lists.value_parent_indices()))


def _merge_step(specs: Sequence[Spec]) -> Step:
    """What a task does that adds up states."""

    def step(batches: Iterator[ArrowBatch]) -> Iterator[ArrowBatch]:
        totals = [exact_counts(spec) for spec in specs]
        for batch in batches:
            _add_packed(totals, batch)
        yield _packed([total.state() for total in totals])

    return step


def _packed(states: Sequence[State]) -> ArrowBatch:
    """States of several densities, a row for each."""
    import pyarrow as pa
    from pyspark import TaskContext

    task = TaskContext.get()
    # By the number of the partition: nothing in the data decides which task adds it up.
    part = 0 if task is None else int(task.partitionId()) % FAN_IN
    content = {"first": [state[0] for state in states], "second": [state[1] for state in states]}
    arrays = {
        name: pa.array([np.ascontiguousarray(a, dtype="<i8").tobytes() for a in parts], pa.binary())
        for name, parts in content.items()
    }
    numbers = {"part": [part] * len(states), "density": list(range(len(states)))}
    rows: ArrowBatch = pa.RecordBatch.from_pydict(
        {**{name: pa.array(values, pa.int32()) for name, values in numbers.items()}, **arrays}
    )
    return rows


def _add_packed(totals: Sequence[ExactCounts], batch: ArrowBatch) -> None:
    for density, first, second in zip(
        *(batch.column(n).to_pylist() for n in ("density", "first", "second")), strict=True
    ):
        total = totals[density]
        shape = total.state()[1].shape if not isinstance(total.spec, CellSpec) else (-1,)
        # checked: workers run elsewhere, and what comes back is data
        total.add_state(*total.checked(_words(first), _words(second).reshape(shape)))


def _expression(sql: str) -> Column:
    from pyspark.sql.functions import expr

    return expr(sql)


def _words(content: bytes) -> IntArray:
    return np.frombuffer(content, dtype="<i8").astype(np.int64)
