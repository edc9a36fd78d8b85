"""Several densities of one source in one pass: of each unit the same records count in all of them.

A record becomes one whole number per density, its cell or none, by itself. One that lies in no cell of any density does
not compete. Of each unit at most c of the others are kept, once, and counted in every density that they lie in. Without
a unit all records count; a source that can be read only once serves as well. A cluster does it in one job: each task
counts for all densities, and with a unit a task has all records of the units that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fogline._typing import FloatArray, IntArray
from fogline.density.columns import ColumnPlan
from fogline.density.random_spec import CellSpec
from fogline.queries.fourier_sums import CellCounts, row_cells
from fogline.sources.contributions import ClusterTable, ContributionBound
from fogline.sources.tables import Source, State, Take
from fogline.sources.typed_cells import _CodedSource

__all__ = ["Handed", "JointPass", "joint_states", "suits_one_pass"]


def suits_one_pass(source: Source) -> bool:
    """Whether several densities are counted in one pass here: by the form of the source, which is public.

    A database or a file without a unit is grouped by its engine, once per density.
    """
    return isinstance(source, ClusterTable) or source.unit_column is not None or not source.rereadable


class _JointCoder:
    """A record as its cell in each of several grids; as many as there are cells for none."""

    plans: tuple[ColumnPlan, ...] = ()

    def __init__(self, specs: Sequence[CellSpec], places: Sequence[Sequence[int]]) -> None:
        self._specs, self._places = specs, places
        self._totals = np.array([float(np.prod(spec.cells)) for spec in specs])
        self.width = len(specs)

    def code(self, numbers: FloatArray, texts: Sequence[Sequence[object]]) -> FloatArray:  # noqa: ARG002
        """Cells of records; NaN throughout for one that lies in none."""
        columns = [
            row_cells(np.ascontiguousarray(numbers[:, places]), spec)
            for spec, places in zip(self._specs, self._places, strict=True)
        ]
        coded = np.column_stack(columns).astype(np.float64)
        coded[np.all(coded >= self._totals, axis=1)] = np.nan
        return coded


class Handed(Source):
    """Records that somebody hands over once, such as those of one task of a cluster."""

    rereadable = False

    def __init__(self, scan: Callable[[Take], None], width: int, unit: str | None) -> None:
        super().__init__(None, width, unit)
        self._hand_over = scan

    def _scan(self, take: Take) -> None:
        self._hand_over(take)


def joint_states(
    source: Source, specs: Sequence[CellSpec], places: Sequence[Sequence[int]], bound: ContributionBound | None
) -> list[State]:
    """Secret: exact states of several grids, from one reading.

    Parameters
    ----------
    source : Source
    specs : sequence of SketchSpec or LeafSpec
    places : sequence of sequence of int
        Which columns of the source each grid has.
    bound : ContributionBound or None
        Of each unit, in all grids together; None where the source has no unit.
    """
    totals = [int(np.prod(spec.cells)) for spec in specs]
    counts = [np.zeros(total + 1, dtype=np.int64) for total in totals]

    def take(coded: FloatArray) -> None:
        kept = coded[~np.isnan(coded[:, 0])].astype(np.int64)
        for j, total in enumerate(totals):
            counts[j] += np.bincount(kept[:, j], minlength=total + 1)

    coded: Source = _CodedSource(source, _JointCoder(specs, places), None)
    (coded if bound is None else coded._bounded(bound)).each_batch(take)
    found = [(np.flatnonzero(count[:-1]), count) for count in counts]
    return [(keys.astype(np.int64), count[keys]) for keys, count in found]


class JointPass:
    """One pass over a source for several grids: records are counted when the first table is asked for.

    Parameters
    ----------
    source : Source
        With names of columns; errors of its schema came when it was made.
    specs : sequence of SketchSpec or LeafSpec
    columns : sequence of sequence of str
        Of each grid.
    max_contributions : int
        Most records of a unit that count, where the source has a unit.
    """

    def __init__(
        self, source: Source, specs: Sequence[CellSpec], columns: Sequence[Sequence[str]], max_contributions: int
    ) -> None:
        names = source.columns or ()
        places = [[names.index(name) for name in group] for group in columns]
        # Drawn before anything else, so that an audit can replay the choice.
        self._bound = None if source.unit_column is None else ContributionBound.draw(max_contributions)
        self._source: Source | None = source
        self._specs, self._places = tuple(specs), places
        self._tables: list[IntArray] | None = None

    def table(self, part: int) -> IntArray:
        """Secret: exact table of one grid; the first call reads the source."""
        if self._source is None:
            raise RuntimeError("this pass is over")
        if self._tables is None:
            self._tables = self._counted(self._source)
        return self._tables[part]

    def _counted(self, source: Source) -> list[IntArray]:
        if isinstance(source, ClusterTable):
            cut: Any = source if self._bound is None else source._bounded(self._bound)
            cut._require_bound()
            states = cut._guarded(lambda: cut._joint_states(self._specs, self._places))
        else:
            states = joint_states(source, self._specs, self._places, self._bound)
        tables = []
        for spec, state in zip(self._specs, states, strict=True):
            counts = CellCounts(spec)
            counts.add_state(*counts.checked(*state))
            tables.append(counts.table())
        return tables

    def forget(self) -> None:
        """Let go of the source and of the tables: an error's traceback must not lead to the records."""
        self._source, self._tables = None, None
