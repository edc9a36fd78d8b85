"""Several tables of one source in one pass: densities of groups of its columns, or the strata of a label.

Of each unit the same records count in all of them. A record becomes a few whole numbers by itself: its cell, or none,
in each of several densities, or its stratum. One that could not count (outside every box, without a stratum, without a
weight) does not compete. Of each unit at most c of the others are kept, once, over all tables together
(:mod:`fogline.sources.contributions`), and counted in every density that they lie in, or in their stratum.

Without a unit all records count, and a source that can be read only once serves as well. A cluster does it in one job:
each task counts for all densities, and with a unit a task has all records of the units that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import FloatArray, Ids, IntArray, SourceLike
from fogline._validation import check_columns, records
from fogline.density.columns import ColumnPlan
from fogline.density.random_spec import CellSpec, Spec
from fogline.queries.fourier_sums import CellCounts, row_cells
from fogline.queries.strata import StrataCounts, weight_parts
from fogline.sources.contributions import ClusterTable, ContributionBound
from fogline.sources.passes import LabelledPass, names_of, width_of
from fogline.sources.tables import Source, State, Take, TypedTake
from fogline.sources.typed_cells import _CodedSource, declared_kinds, typed_source

__all__ = ["Handed", "JointPass", "UnitLabelledPass", "joint_states", "labelled_unit_source", "suits_one_pass"]


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
    # the last place counts records that are in another grid and not in this one
    counts = [np.zeros(total + 1, dtype=np.int64) for total in totals]

    def take(coded: FloatArray) -> None:
        # NaN stands for a record that lies in none of the grids
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
            # checked: with a cluster the states come from elsewhere
            counts.add_state(*counts.checked(*state))
            tables.append(counts.table())
        return tables

    def forget(self) -> None:
        """Let go of the source and of the tables: an error's traceback must not lead to the records."""
        self._source, self._tables = None, None


class _LabelledRows(Source):
    """Rows in memory with labels and ids beside them."""

    def __init__(self, rows: FloatArray, labels: Ids | None, ids: Ids) -> None:
        super().__init__(None, rows.shape[1], "unit")
        self._held = (rows, labels, ids)
        self.texts = () if labels is None else ("by",)

    def _scan(self, take: Take) -> None:
        take(self._held[0], self._held[2])

    def _scan_typed(self, take: TypedTake) -> None:
        rows, labels, ids = self._held
        take(rows, () if labels is None else (labels,), ids)


def labelled_unit_source(
    X: SourceLike,
    by: str | Ids | None,
    columns: Sequence[str] | None,
    weights: ArrayLike | None,
    unit: str | Ids,
    how: dict[str, Any],
    width: int | None,
) -> Source:
    """Table of the columns, the weights last, with labels as its one column of texts; errors of the schema come here.

    Parameters
    ----------
    X, by, columns, weights, unit
        As for :func:`fogline.private_strata`: all names of columns of X, or all arrays beside it.
    how : dict
        ``query``, and how a text file is read.
    width : int, optional
        How many columns the bounds have.
    """
    given = [part for part in (by, weights, unit) if part is not None]
    if isinstance(X, Source):
        raise TypeError("X: pass the source itself, since by, weights and unit name columns of it")
    if all(isinstance(part, str) for part in given):
        return _named(X, by, columns, weights, str(unit), how)
    if any(isinstance(part, str) for part in given):
        raise TypeError("by, weights and unit must all be names of columns, or all be arrays")
    for name, value in how.items():
        if value is not None:
            raise TypeError(f"{name} needs by and unit to name columns of the source")
    names = names_of(X)
    if columns is not None and names is None:
        raise TypeError("columns: an array has no names of columns; pass the columns that are wanted")
    frame: Any = X
    wanted = frame if columns is None else frame[list(check_columns(columns, names or ()))]
    rows = records(wanted, width_of(wanted) or width)
    if weights is not None:
        rows = np.column_stack([rows, _as_long(records(weights, 1, name="weights"), rows, "weights")])
    labels: Any = by
    ids: Any = unit
    return _LabelledRows(rows, None if by is None else _as_long(labels, rows, "by"), _as_long(ids, rows, "unit"))


def _named(
    X: SourceLike, by: Any, columns: Sequence[str] | None, weights: Any, unit: str, how: dict[str, Any]
) -> Source:
    """By names of columns."""
    special = {"by": by, "weights": weights, "unit": unit}
    used = [name for name in special.values() if name is not None]
    if len(set(used)) != len(used):
        raise ValueError("by, weights and unit must be different columns")
    reading = {name: value for name, value in how.items() if name != "query"}
    if columns is None:
        known = declared_kinds(X, query=how.get("query"), reading=reading)
        if known is None:
            raise TypeError("columns: an array has no names of columns; pass labels and ids as arrays")
        columns = [name for name in known if name not in used]
    for role, name in special.items():
        if name is not None and name in columns:
            raise ValueError(f"columns: {name!r} is given as {role}, so it is no column of the density")
    numbers = [*columns, *([] if weights is None else [weights])]
    return typed_source(X, numbers, [] if by is None else [by], unit=unit, query=how.get("query"), reading=reading)


def _as_long(values: Any, rows: FloatArray, name: str) -> Any:
    if len(values) != len(rows):
        raise ValueError(f"{name} must have one entry for each record")
    return values


class _StratumCoder:
    """A record as its numbers and its stratum; NaN throughout for one that cannot count."""

    plans: tuple[ColumnPlan, ...] = ()

    def __init__(self, spec: Spec, weight_bound: float | None, strata: Any) -> None:
        self._spec, self._bound, self._strata = spec, weight_bound, strata
        self.width = spec.d + (weight_bound is not None) + 1

    def code(self, numbers: FloatArray, texts: Sequence[Sequence[Any]]) -> FloatArray:
        """Records with their strata."""
        stratum = self._strata(texts[0]) if texts else np.zeros(len(numbers), dtype=np.int64)
        with np.errstate(all="ignore"):
            axes = numbers[:, : self._spec.d]
            counts = np.all((axes >= self._spec.lower) & (axes <= self._spec.upper), axis=1) & (stratum >= 0)
            if self._bound is not None:
                counts &= weight_parts(numbers[:, -1], self._bound) > 0
        coded = np.column_stack([numbers, stratum.astype(np.float64)])
        # left out before units are cut: what cannot count must not take the place of what can
        coded[~counts] = np.nan
        return coded


class UnitLabelledPass(LabelledPass):
    """One pass over a table with labels and a unit: records are cut and counted when it is run.

    Parameters
    ----------
    source : Source
        Of :func:`labelled_unit_source`.
    counts : StrataCounts
    names : sequence of str
        Of the strata.
    has_others : bool
        Whether the last of them is that of all other labels.
    max_contributions : int
        Most records of a unit that count, over all strata together.
    """

    def __init__(
        self, source: Source, counts: StrataCounts, names: Sequence[str], has_others: bool, max_contributions: int
    ) -> None:
        super().__init__(source, counts, names, has_others and bool(source.texts))
        # Drawn before anything else, so that an audit can replay the choice.
        self._bound = ContributionBound.draw(max_contributions)

    def run(self) -> IntArray:
        """Count what is kept of each unit, each record in its stratum, and return the exact vector."""
        if self._held is None:
            raise RuntimeError("this pass is over")
        source, counts = self._held
        coder = _StratumCoder(counts.spec, counts.weight_bound, self._strata)

        def take(coded: FloatArray) -> None:
            stratum, axes = coded[:, -1].astype(np.int64), coded[:, : counts.spec.d]
            counts.add(axes, stratum, None if counts.weight_bound is None else coded[:, -2])

        _CodedSource(source, coder, None)._bounded(self._bound).each_batch(take)
        return counts.vector()
