"""Several densities of one source in one pass: of each unit the same records count in all of them.

A record becomes one whole number per density, its cell or none, by itself. One that lies in no cell of any density does
not compete. Of each unit at most c of the others are kept, once, and counted in every density that they lie in. Without
a unit all records count; a source that can be read only once serves as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fogline._typing import FloatArray, IntArray
from fogline.density.columns import ColumnPlan
from fogline.density.random_spec import CellSpec
from fogline.queries.fourier_sums import row_cells
from fogline.sources.contributions import ClusterTable, ContributionBound
from fogline.sources.tables import Source
from fogline.sources.typed_cells import _CodedSource

__all__ = ["JointPass", "suits_one_pass"]


def suits_one_pass(source: Source) -> bool:
    """Whether several densities are counted in one pass here: by the form of the source, which is public.

    A database or a file without a unit is grouped by its engine, once per density; a cluster cuts units where they are.
    """
    return not isinstance(source, ClusterTable) and (source.unit_column is not None or not source.rereadable)


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
        self._specs, self._coder = tuple(specs), _JointCoder(specs, places)
        self._tables: list[IntArray] | None = None

    def table(self, part: int) -> IntArray:
        """Secret: exact table of one grid; the first call reads the source."""
        if self._source is None:
            raise RuntimeError("this pass is over")
        if self._tables is None:
            self._tables = self._counted(self._source)
        return self._tables[part]

    def _counted(self, source: Source) -> list[IntArray]:
        totals = [int(np.prod(spec.cells)) for spec in self._specs]
        counts = [np.zeros(total + 1, dtype=np.int64) for total in totals]

        def take(coded: FloatArray) -> None:
            kept = coded[~np.isnan(coded[:, 0])].astype(np.int64)
            for j, total in enumerate(totals):
                counts[j] += np.bincount(kept[:, j], minlength=total + 1)

        coded: Source = _CodedSource(source, self._coder, None)
        (coded if self._bound is None else coded._bounded(self._bound)).each_batch(take)
        return [found[:-1].reshape(spec.cells) for found, spec in zip(counts, self._specs, strict=True)]

    def forget(self) -> None:
        """Let go of the source and of the tables: an error's traceback must not lead to the records."""
        self._source, self._tables = None, None
