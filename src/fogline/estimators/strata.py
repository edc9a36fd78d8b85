"""Densities of several public categories, privately: one pass, one release, one budget for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fogline import _validation, units
from fogline._typing import BandwidthLike, BoundsLike, Ids, LedgerLike, SourceLike, StepsLike
from fogline.density.counted_records import check_expected
from fogline.density.random_spec import plan_spec
from fogline.density.strata import Strata, strata_message
from fogline.estimators._base import warn_of_count
from fogline.queries.strata import StrataCounts
from fogline.releases.density_sketch import ReleaseTerms
from fogline.releases.strata import release_strata
from fogline.sources.joint_pass import UnitLabelledPass, labelled_unit_source
from fogline.sources.passes import LabelledPass, label_text, labelled_source
from fogline.sources.tables import Source

__all__ = ["private_strata"]


ALL = "all"
"""Name of the one stratum where there are no categories."""


def private_strata(
    X: SourceLike,
    by: str | Ids | None = None,
    *,
    categories: Sequence[Any] | None = None,
    others: str | None = "other",
    columns: Sequence[str] | None = None,
    query: str | None = None,
    reading: Mapping[str, Any] | None = None,
    unit: str | Ids | None = None,
    weights: ArrayLike | None = None,
    weight_bound: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    bounds: BoundsLike = None,
    bandwidths: BandwidthLike = "auto",
    steps: StepsLike = None,
    features: str | int = "auto",
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    expect_records: int | None = None,
    ledger: LedgerLike | None = None,
) -> Strata:
    r"""Release one density for each category, for the price of one.

    Parameters
    ----------
    X : array, frame, path or whatever an engine reads
        One row per record.
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
    unit : str or array of ids, optional
        The column that says whose record a row is, for an array the ids themselves. At most `max_contributions` records
        of each then count, over all strata together, and the guarantee is for whole units. From files, frames in
        memory, databases and arrays.
    weights : str or array, optional
        Survey weights: a column, or for an array the weights themselves. One that is missing, zero or negative makes
        its record contribute nothing; one above the bound counts as the bound.
    weight_bound : float
        With weights, a public bound W. A record counts as w/W of one, so that the noise is that of records without
        weights: a bound far above most weights drowns them.
    epsilon, delta : float
        Privacy budget of all strata together; both required, except that leaves need no delta.
    bounds, bandwidths, steps, features
        As for :class:`fogline.DensitySketch`, the same for all strata.
    neighbours, max_contributions, ledger
        As for :class:`fogline.PrivateModes`. A person's records may lie in several strata. Without a unit
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
    pure = isinstance(features, str) and features == "leaves"
    terms = ReleaseTerms.checked(epsilon, delta, neighbours, max_contributions, allow_pure=pure, ledger=ledger)
    _validation.check_ledger(ledger)
    if check_expected(expect_records) is not None and bound is not None:
        raise ValueError("expect_records: with weights the release counts weights over their bound, not records")
    how = {"query": query, **(reading or {})}
    pairs = _pairs(bounds)  # of a plain list only the bounds tell how many columns it has
    if unit is None:
        source = labelled_source(X, by, columns, weights, how, pairs)
    else:
        source = labelled_unit_source(
            X, by, columns, weights, unit, how, None if pairs is None else len(_validation.check_bounds(pairs))
        )
    # what a row is called is known only after the source was looked at
    terms = replace(terms, unit=source.row if unit is None else source.unit)
    width = source.width - (bound is not None)
    known = None if source.columns is None else source.columns[:width]
    spec = plan_spec(units.resolve_bounds(bounds, known, width=width), bandwidths, steps, features=features)
    if width != spec.d:
        raise ValueError(f"columns: there are {width} columns, but bounds has {spec.d} axes")
    one_pass = _pass(source, StrataCounts(spec, len(names), bound), names, others is not None, unit, terms)
    named = units.bounded_names(bounds, known)
    facts = {
        "weights": weights if isinstance(weights, str) else None,
        "by": by if isinstance(by, str) else None,
        "others": others,
        **source.facts,
    }
    # An error's traceback must not lead to the records.
    del X, source, by, weights, unit
    try:
        strata = release_strata(
            spec, names, terms, one_pass.run, ledger, columns=named, weight_bound=bound, facts=facts
        )
    finally:
        one_pass.forget()
    strata.message = strata_message(strata, names[: len(names) - one_pass.has_others], expect_records)
    warn_of_count(strata.guarantee, strata.count)
    return strata


def _pass(
    source: Source,
    counts: StrataCounts,
    names: tuple[str, ...],
    has_others: bool,
    unit: str | Ids | None,
    terms: ReleaseTerms,
) -> LabelledPass:
    """The one pass over the records; with a unit they are cut."""
    if unit is None:
        return LabelledPass(source, counts, names, has_others)
    return UnitLabelledPass(source, counts, names, has_others, terms.max_contributions)


def _names(by: str | Ids | None, categories: Sequence[Any] | None, others: str | None) -> tuple[str, ...]:
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


def _pairs(bounds: BoundsLike) -> BoundsLike:
    """Bounds as pairs, in their own order: only their number counts."""
    return bounds if bounds is None else units.resolve_bounds(bounds)


def _bound(weights: ArrayLike | None, weight_bound: float | None) -> float | None:
    if (weights is None) != (weight_bound is None):
        raise TypeError("weights and weight_bound must be given together: a bound read from the data would leak it")
    return None if weight_bound is None else _validation.check_positive(weight_bound, "weight_bound")
