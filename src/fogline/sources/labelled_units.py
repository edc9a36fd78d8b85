"""Strata of a table with a unit: records with labels, of which each unit contributes at most so many, in one pass.

A record becomes its numbers and the number of its stratum, by itself. One that could not count (outside the box,
without a stratum, without a weight) does not compete. Of each unit at most c of the others are kept, over all strata
together (:mod:`fogline.sources.contributions`), and counted each in its stratum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import FloatArray, Ids, IntArray, SourceLike
from fogline._validation import check_columns, records
from fogline.density.columns import ColumnPlan
from fogline.density.random_spec import Spec
from fogline.queries.strata import StrataCounts, weight_parts
from fogline.sources.contributions import ContributionBound
from fogline.sources.passes import LabelledPass, names_of, width_of
from fogline.sources.tables import Source, Take, TypedTake
from fogline.sources.typed_cells import _CodedSource, declared_kinds, typed_source

__all__ = ["UnitLabelledPass", "labelled_unit_source"]


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
