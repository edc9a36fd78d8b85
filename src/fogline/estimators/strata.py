"""Densities of several public categories, privately: one pass, one release, one budget for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline import _validation
from fogline.density.counted_records import check_expected
from fogline.density.random_spec import plan_spec
from fogline.density.strata import Strata, strata_message
from fogline.estimators._base import warn_of_count
from fogline.queries.strata import StrataCounts
from fogline.release.density_sketch import ReleaseTerms
from fogline.release.strata import release_strata
from fogline.sources.contributions import id_cells
from fogline.sources.passes import names_of, width_of
from fogline.sources.registry import table
from fogline.sources.table import Table

__all__ = ["private_strata"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LONGEST_LABEL_BITS = 1000
"""A whole number with more bits is longer than any name of a category; `str` would refuse one of 4300 digits."""

ALL = "all"
"""Name of the one stratum where there are no categories."""


def private_strata(
    X: Any,
    by: Any = None,
    *,
    categories: Sequence[Any] | None = None,
    others: str | None = "other",
    columns: Sequence[str] | None = None,
    query: str | None = None,
    reading: Mapping[str, Any] | None = None,
    weights: Any = None,
    weight_bound: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    bounds: ArrayLike | None = None,
    bandwidths: Any = "auto",
    steps: Any = None,
    features: Any = "auto",
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    expect_records: int | None = None,
    ledger: Any = None,
) -> Strata:
    r"""Release one density for each category, for the price of one.

    Parameters
    ----------
    X : array, frame, path or whatever an engine reads
        One row a record.
    by : str or array of labels, optional
        The column that says which category a record is of; for an array, the labels themselves. Without it there is one
        stratum of all records, which is of use with weights.
    categories : sequence
        Public labels, texts or whole numbers. A category that no record has is released like any other.
    others : str or None, default "other"
        Name of a further stratum for records whose label is missing or not among the categories; with None they
        contribute nothing. Which of them there are is never told.
    columns : sequence of str, optional
        Names of the columns of the density; by default all but those of `by` and `weights`.
    query : str, optional
        For databases: a SELECT, or the name of a table.
    reading : mapping, optional
        For text files: options of :class:`fogline.sources.reading.ReadingOptions`, such as ``{"decimal": ","}``.
    weights : str or array, optional
        Survey weights: a column, or for an array the weights themselves. One that is missing, zero or negative makes
        its record contribute nothing; one above the bound counts as the bound.
    weight_bound : float
        With weights, a public bound W. A record counts as w/W of one, so that the noise is that of records without
        weights: a bound far above most weights drowns them.
    epsilon, delta : float
        Privacy budget of all strata together; both required.
    bounds, bandwidths, steps, features
        As for :class:`fogline.DensitySketch`, the same for all strata.
    neighbours, max_contributions, ledger
        As for :class:`fogline.PrivateModes`. A person's records may lie in several strata. There is no unit here:
        `max_contributions` is declared by the caller, not enforced, and the guarantee says so.
    expect_records : int, optional
        About how many records you expect in all strata together: ``message`` says when the released counts are far from
        it, nothing else changes. Not with weights, whose counts are not of records.

    Returns
    -------
    Strata
        Densities by category, with ``modes()``, ``compare(a, b)`` and ``plot()``; ``message`` says what to check, when
        the released counts or the budget give cause.

    Notes
    -----
    Each record adds a vector of norm at most one to one stratum. Under add-remove the noise is that of a single release
    of all records, for each of the strata; under replace it is :math:`\sqrt 2` times that, since a record may leave one
    stratum and enter another. Proof: ``queries/strata.proof.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import private_strata
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 6000)
    >>> height = np.where(sex == "f", rng.normal(165, 7, 6000), rng.normal(178, 7, 6000))
    >>> strata = private_strata(height, sex, categories=["f", "m"], epsilon=1.0, delta=1e-6, bounds=[(120, 220)])
    >>> list(strata)
    ['f', 'm', 'other']
    >>> tops = [strata.modes(1)[name].positions[0, 0] for name in ("f", "m")]
    >>> bool(abs(tops[0] - 165) < 4 and abs(tops[1] - 178) < 4)
    True
    >>> strata.compare("f", "m").p_value
    0.001
    """
    names = _names(by, categories, others)
    bound = _bound(weights, weight_bound)
    terms = ReleaseTerms.checked(epsilon, delta, neighbours, max_contributions)
    _validation.check_ledger(ledger)
    if check_expected(expect_records) is not None and bound is not None:
        raise ValueError("expect_records: with weights the release counts weights over their bound, not records")
    source = _source(X, by, columns, weights, {"query": query, **(reading or {})}, bounds)
    terms = ReleaseTerms.checked(epsilon, delta, neighbours, max_contributions, source.row)
    width = source.width - (bound is not None)
    spec = plan_spec(_validation.check_bounds(bounds, width=width), bandwidths, steps, features=features)
    if width != spec.d:
        raise ValueError(f"columns: there are {width} columns, but bounds has {spec.d} axes")
    one_pass = _LabelledPass(source, StrataCounts(spec, len(names), bound), names, others is not None)
    named = None if source.columns is None else source.columns[:width]
    facts = {
        "weights": weights if isinstance(weights, str) else None,
        "by": by if isinstance(by, str) else None,
        "others": others,
        **source.facts,
    }
    del X, source, by, weights
    try:
        strata = release_strata(
            spec, names, terms, one_pass.run, ledger, columns=named, weight_bound=bound, facts=facts
        )
    finally:
        one_pass.forget()
    strata.message = strata_message(strata, names[: len(names) - one_pass.has_others], expect_records)
    warn_of_count(strata.guarantee, strata.count)
    return strata


def _names(by: Any, categories: Any, others: Any) -> tuple[str, ...]:
    """Names of the strata, from public parameters."""
    if by is None:
        if categories is not None:
            raise ValueError("by must be given with categories: a column, or the labels")
        return (ALL,)
    if categories is None or isinstance(categories, str) or not isinstance(categories, Sequence | np.ndarray):
        raise TypeError("categories must be a list of public labels: labels read from the data would leak them")
    found = [label_text(label) for label in categories]
    if not found or None in found or len(set(found)) != len(found):
        raise ValueError("categories must be different texts or whole numbers, at least one")
    names = [_validation.check_name(name, "categories") for name in found]
    if others is not None:
        if _validation.check_name(others, "others") in names:
            raise ValueError(f"others must not be one of the categories, got {others!r}")
        names.append(others)
    return tuple(names)


def _bound(weights: Any, weight_bound: Any) -> float | None:
    if (weights is None) != (weight_bound is None):
        raise TypeError("weights and weight_bound must be given together: a bound read from the data would leak it")
    return None if weight_bound is None else _validation.check_positive(weight_bound, "weight_bound")


def _source(X: Any, by: Any, columns: Any, weights: Any, how: dict[str, Any], bounds: Any) -> Table:
    """Table of the columns, the weights last, whose ids are the labels: errors of the schema come here."""
    if isinstance(X, Table) and X.unit_column is not None:
        raise TypeError(
            "X: strata do not cut the records of a unit; keep at most max_contributions rows of each before, "
            "pass that source itself, and declare max_contributions"
        )
    if isinstance(X, Table):
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
            return table(X, [*columns, *([] if weights is None else [weights])], unit=by, **how)
        for name, value in how.items():
            if value is not None:
                raise TypeError(f"{name} needs by or weights to name columns of the source")
        names = names_of(X)
        if columns is not None and names is None:
            raise TypeError("columns: an array has no names of columns; pass the columns that are wanted")
        wanted = X if columns is None else X[list(_validation.check_columns(columns, names or ()))]
        rows = _validation.records(wanted, width_of(wanted) or len(_validation.check_bounds(bounds)))
        if weights is not None:
            extra = _validation.records(weights, 1, name="weights")
            if len(extra) != len(rows):
                raise ValueError("weights must have one weight for each record")
            rows = np.column_stack([rows, extra])
        return table(rows, unit=by)
    except (TypeError, ValueError) as error:
        message = str(error)
        if message.startswith("unit"):
            raise type(error)(f"by{message.removeprefix('unit')}") from None
        raise


def label_text(label: Any) -> str | None:
    """Label as a text, the same for a number and its digits; None for what is no label.

    Examples
    --------
    >>> [label_text(label) for label in ("f ", 3, 3.0, True, None, float("nan"), "")]
    ['f', '3', '3', 'true', None, None, None]
    """
    if isinstance(label, str):
        return label.strip() or None
    if isinstance(label, bool | np.bool_):
        return "true" if label else "false"
    if isinstance(label, int | np.integer):
        return str(int(label)) if int(label).bit_length() < LONGEST_LABEL_BITS else None
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return None


class _LabelledPass:
    """One pass over a table with labels: records are counted when it is run."""

    def __init__(self, source: Table, counts: StrataCounts, names: Sequence[str], has_others: bool) -> None:
        self._held: tuple[Table, StrataCounts] | None = (source, counts)
        self.has_others = has_others and source.unit_column is not None
        categories = names[: len(names) - self.has_others]
        self._index = {name: i for i, name in enumerate(categories)}
        self._rest = len(categories) if has_others else -1

    def run(self) -> IntArray:
        """Count the records, each in its stratum, and return the exact vector."""
        if self._held is None:
            raise RuntimeError("this pass is over")
        source, counts = self._held

        def take(rows: FloatArray, labels: Any) -> None:
            stratum = np.zeros(len(rows), dtype=np.int64) if labels is None else self._strata(labels)
            if counts.weight_bound is None:
                counts.add(rows, stratum)
            else:
                counts.add(rows[:, :-1], stratum, rows[:, -1])

        source.each_unit_batch(take)
        return counts.vector()

    def _strata(self, labels: Any) -> IntArray:
        """Stratum of each label; -1 for none."""
        known: dict[Any, int] = {}
        cells = id_cells(labels)
        found = np.empty(len(cells), dtype=np.int64)
        for i, label in enumerate(cells):
            key = str(label) if isinstance(label, str) else label_text(label)
            if key not in known:
                text = label_text(key)
                known[key] = self._rest if text is None else self._index.get(text, self._rest)
            found[i] = known[key]
        return found

    def forget(self) -> None:
        """Let go of the records: an error's traceback must not lead to them."""
        self._held = None
