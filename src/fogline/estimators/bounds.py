"""Bounds and quantiles of columns about which nothing is known beforehand, privately."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fogline import _validation
from fogline._typing import FloatArray, LedgerLike, SourceLike
from fogline.accounting.budget import Budget, Shares
from fogline.accounting.cautions import release_cautions
from fogline.accounting.guarantee import Guarantee
from fogline.density.columns import MAGNITUDE_SHARE, magnitude_share
from fogline.density.counted_records import check_expected, count_words, is_nothing, joined
from fogline.estimators._base import warn_of_count
from fogline.queries.magnitudes import (
    BINS,
    CELLS,
    CellsQuery,
    ColumnCells,
    MagnitudesQuery,
)
from fogline.queries.query import Query
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms
from fogline.sources.passes import as_source, names_of, public_width, unit_of

__all__ = ["PrivateBounds", "magnitude_share", "private_bounds"]

PROOF = "magnitudes"
CODE_VERSION = "bounds-1"

T = TypeVar("T")


@dataclass(frozen=True)
class PrivateBounds:
    """Released bounds of columns; everything here may be published.

    Attributes
    ----------
    columns : tuple of str
    bounds : array of shape (d, 2)
        A range for each column; NaN for a column of which too little can be seen.
    outside : array of shape (d,)
        How many records of the occupied powers of two may lie outside: a noisy count and two noise deviations more, an
        upper end, not an estimate.
    messages : tuple of str
        What is wrong with a column (no range, so few values that others may lie outside unseen, or far fewer than you
        expect), from noisy counts alone; empty if nothing is.
    message : str
        What is to say of the budget; empty if nothing is.
    counts, count_standard_errors : arrays of shape (d,)
        Released number of values of each column, at least 1, and its privacy noise: records are counted, so that there
        is neither sampling nor smoothing in it.
    shares : Shares
        What each column was paid.
    guarantee : Guarantee
    receipt : dict or None
        What a ledger was charged.
    """

    columns: tuple[str, ...]
    bounds: FloatArray
    outside: FloatArray
    messages: tuple[str, ...]
    shares: Shares
    guarantee: Guarantee
    receipt: dict[str, Any] | None = None
    cells: tuple[ColumnCells | None, ...] = field(default=(), repr=False)
    message: str = ""
    counts: FloatArray = field(default_factory=lambda: np.zeros(0))
    count_standard_errors: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def found(self) -> bool:
        """Whether there are bounds for all columns."""
        return bool(np.isfinite(self.bounds).all())

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles of each column, of shape (d,) or (d, number of q); NaN where there are no bounds. Free.

        Within the coarse range of powers of two, and straight within a cell of 1/128 of it.
        """
        wanted = np.asarray(q, dtype=np.float64)
        if wanted.ndim > 1 or not np.all((wanted >= 0) & (wanted <= 1)):
            raise ValueError("q must be a probability, or a list of them")
        rows = [
            [np.nan if cells is None else cells.quantile(float(p)) for p in np.atleast_1d(wanted)]
            for cells in self.cells
        ]
        return np.array(rows).reshape(len(self.columns), *wanted.shape)


def private_bounds(
    X: SourceLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    coverage: float = 0.99,
    shares: Mapping[str, Any] | None = None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    expect_records: int | None = None,
    ledger: LedgerLike | None = None,
) -> PrivateBounds:
    """Find a range for each column, to be used as public bounds afterwards.

    Values are counted by sign and power of two, with noise; the occupied powers are cut into cells and counted again.
    Where bounds are known (an age, a percentage: :mod:`fogline.units`), use them and keep the budget.

    Parameters
    ----------
    X : array, frame, path or engine table
        One row per record. Values that are missing, infinite or at least 2^64 in size count nowhere.
    epsilon, delta : float
        Privacy budget for all columns together; both required.
    coverage : float, default 0.99
        Share of the records that a range should hold. Tails are cut only where that is safe in spite of the noise.
    shares : mapping, optional
        Part of the budget for each column, by name, such as ``{"age": "1/4", "income": "3/4"}``; equal by default.
    neighbours, max_contributions, ledger
        As for :class:`fogline.PrivateModes`.
    expect_records : int, optional
        About how many records you expect, as a public guess: with few of them the budget is divided accordingly
        (`magnitude_share`), and ``messages`` say when the released count of a column is far from it, nothing
        else changes.

    Returns
    -------
    PrivateBounds

    Notes
    -----
    Bounds lie on a grid: 128 cells between two powers of two of the same or of opposite sign. Records are overlooked
    where a power of two, or later a block of cells, holds fewer than about five noise deviations of them: with few
    records a message says so, and nothing else does. The proof is ``queries/magnitudes.proof.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import private_bounds
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(1950, 2010, 20000), rng.lognormal(10, 0.5, 20000)])
    >>> found = private_bounds(X, epsilon=1.0, delta=1e-6)
    >>> bool(found.bounds[0, 0] <= 1951 and found.bounds[0, 1] >= 2008)      # 1944 to 2016, say
    True
    >>> few = private_bounds(X[:1], epsilon=1.0, delta=1e-6)
    >>> few.messages[0].partition(";")[0]
    'column 0: too few values stand out of the noise'
    """
    source = as_source(X)
    terms = ReleaseTerms.checked(epsilon, delta, neighbours, max_contributions, unit_of(source), ledger=ledger)
    _validation.check_ledger(ledger)
    level = _validation.check_level(coverage, "coverage")
    expected = check_expected(expect_records)
    names = names_of(source)
    width = len(names) if names else public_width(source, len(shares) if isinstance(shares, Mapping) else None)
    columns = names or tuple(str(j) for j in range(width))
    paid = _shares(shares, columns, terms.rho)
    split = tuple(
        magnitude_share(expected, paid[name].rho, terms.neighbours, terms.max_contributions) for name in columns
    )
    curator = Curator(source, terms, width=width)
    del X, source
    counted, guarantee, receipt = curator.release(
        lambda curator: _count(columns, paid, split, curator),
        mechanism="discrete Gaussian noise on counts of magnitudes and cells",
        proof=PROOF,
        name="bounds",
        code_version=CODE_VERSION,
        parameters={
            "columns": None if names is None else list(names),
            "width": width,
            "shares": [_paid_words(paid[name].portion, part) for name, part in zip(columns, split, strict=True)],
        },
        # questions of earlier versions said no split: answers that were paid for under them stay free
        formerly={"shares": [str(paid[name].portion) for name in columns]},
        max_payload=8 * width * (BINS + CELLS) + 2**16 + 2**10 * width + 8 * len(json.dumps(columns)),
        ledger=ledger,
    )
    cells = tuple(found.cells for found in counted)
    ranges = [(np.nan, np.nan) if found is None else found.bounds(level) for found in cells]
    # the column with most values: others may have missing ones
    most = max(found.count for found in counted)
    warn_of_count(guarantee, most)
    return PrivateBounds(
        columns=columns,
        bounds=np.array(ranges),
        outside=np.array([np.nan if found is None else found.outside(level) for found in cells]),
        messages=tuple(
            _message(repr(name) if names else name, found, expected)
            for name, found in zip(columns, counted, strict=True)
        ),
        shares=paid,
        guarantee=guarantee,
        receipt=receipt,
        cells=cells,
        message=joined(*release_cautions(guarantee.epsilon, guarantee.delta, most)),
        counts=np.array([found.count for found in counted]),
        count_standard_errors=np.array([found.count_sd for found in counted]),
    )


@dataclass(frozen=True)
class _Counted:
    """Released counts of one column: its cells, if a range stood out, and the number of its values with its noise."""

    cells: ColumnCells | None
    count: float
    count_sd: float


def _shares(shares: object, columns: tuple[str, ...], rho: float) -> Shares:
    if len(set(columns)) != len(columns):
        raise ValueError("X must have columns of different names")
    if shares is None:
        return Budget(rho=rho).split(**{name: Fraction(1, len(columns)) for name in columns})
    if not isinstance(shares, Mapping) or set(shares) != set(columns):
        raise ValueError(f"shares must name each of the columns {', '.join(columns)}")
    try:
        return Budget(rho=rho).split(**{name: shares[name] for name in columns})
    except (ValueError, TypeError) as error:
        raise type(error)(f"shares: {error}") from None


def _paid_words(portion: Fraction, magnitudes: Fraction) -> str:
    """Return the share of a column as a ledger's question has it: with its split where that is not the fixed one."""
    return str(portion) if magnitudes == MAGNITUDE_SHARE else f"{portion}, {magnitudes} of it for powers of two"


def _message(column: str, found: _Counted, expected: int | None) -> str:
    """Say from noisy counts what is wrong with a column; nothing if nothing is."""
    advice = "more records, or a larger epsilon, would"
    cells, told = found.cells, ""
    said = count_words(found.count, found.count_sd, expected, bounded=False)
    if cells is None:
        told = "too few values stand out of the noise"
        # Advice to spend more would be wrong where no value was counted at all.
        told = told if is_nothing(found.count, found.count_sd) else joined(told, f"{advice} show a range")
    elif cells.is_few:
        told = f"only about {cells.total:.0f} values stand out, and others may lie outside; {advice} tell"
    words = joined(told, said)
    return f"column {column}: {words}" if words else ""


def _count(
    columns: tuple[str, ...], shares: Shares, split: tuple[Fraction, ...], curator: Curator
) -> tuple[_Counted, ...]:
    """Both counts of all columns: powers of two first, then cells of the ranges that they showed."""
    width = len(columns)

    def ask(query: Query[T], j: int, part: Fraction, named: str) -> T:
        return curator.ask(query, shares[columns[j]].portion * part, f"{columns[j]}: {named}")

    magnitudes = [ask(MagnitudesQuery(j, width), j, split[j], "magnitudes") for j in range(width)]
    ranges = tuple(found.range() for found in magnitudes)
    cells = [
        None if found is None else ask(CellsQuery(j, ranges), j, 1 - split[j], "cells")
        for j, found in enumerate(ranges)
    ]
    # of the number of a column's values the cells tell with less noise, where there are any
    known = [(part, whole if part is None else part) for whole, part in zip(magnitudes, cells, strict=True)]
    return tuple(_Counted(part, counted.total, counted.total_sd) for part, counted in known)
