"""The one verb that touches records: any source in, a publishable density out.

source -> table of named columns -> exact counts -> noise, once -> PrivateDensity -> every reading, free
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fogline import _validation, units
from fogline._typing import Ids, LedgerLike, SourceLike
from fogline.accounting.budget import Budget
from fogline.accounting.cautions import LARGE_DELTA, delta_caution, warn_of
from fogline.density.counted_records import check_expected
from fogline.density.leaves import LeafSpec
from fogline.density.named_densities import Releases
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import Spec, plan_spec
from fogline.releases.joint_release import JointPart, release_parts
from fogline.releases.passes import release_source
from fogline.releases.terms import ReleaseTerms
from fogline.sources.passes import facts_of, names_of, unit_of, width_of
from fogline.sources.registry import table
from fogline.sources.tables import Source

__all__ = ["plan_release", "release", "units_of", "warn_of_count"]

MOST_COLUMNS = 3
"""Most columns of a density on leaves."""


@dataclass(frozen=True)
class _Wishes:
    """What is public about a release, as it was asked for."""

    bounds: Any
    steps: Any
    features: str | int
    shares: Mapping[str, Any] | None
    epsilon: float | None
    delta: float | None
    neighbours: str
    max_contributions: int
    ledger: LedgerLike | None
    expect_records: int | None

    def terms(self, unit: str, *, pure: bool) -> ReleaseTerms:
        """Check the budget; `pure` where the noise needs no delta."""
        budget = (self.epsilon, self.delta, self.neighbours, self.max_contributions)
        return ReleaseTerms.checked(
            *budget, unit, allow_pure=pure, mechanism="this kind of features", ledger=self.ledger
        )


def release(
    source: SourceLike,
    *,
    columns: Any = None,
    bounds: Any = None,
    epsilon: float | None = None,
    delta: float | None = 0.0,
    unit: str | Ids | None = None,
    max_contributions: int = 1,
    steps: Any = None,
    neighbours: str = "add-remove",
    ledger: LedgerLike | None = None,
    features: str | int = "auto",
    shares: Mapping[str, Any] | None = None,
    expect_records: int | None = None,
    query: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str = "utf-8",
    null: Sequence[str] = (),
    header: Sequence[str] | None = None,
) -> Any:
    r"""Release the shape of up to three columns once; everything that is read from it afterwards is free.

    Parameters
    ----------
    source : array, frame, path, address, connection or table
        Whatever :func:`fogline.table` takes. One row per record. Records with a missing or unreadable value, or outside
        the bounds, contribute nothing.
    columns : sequence of str, or several such, optional
        Names of the columns; by default those of a mapping of bounds, else all but the unit's. Of an array, which has
        no names, the names that its columns are given. Several lists, or a mapping from names to lists, ask for as many
        densities of one budget.
    bounds : sequence, mapping or str
        Public range of each column, never from the data: pairs ``(low, high)`` or names of :mod:`fogline.units`, as a
        list or by column, such as ``{"age": "age", "stay": (0, 60)}``.
    epsilon : float
        Privacy budget of the whole release.
    delta : float, default 0
        Leaves need none: the release is then epsilon-DP. Random features and Fourier sums do.
    unit : str or array of ids, optional
        The column that says whose record a row is. At most `max_contributions` records of each then count, and the
        guarantee is for whole units.
    max_contributions : int, default 1
        Most records of a unit; without `unit` it is declared, not enforced.
    steps : None, float, sequence or mapping
        Public rounding step per column (1 for whole numbers); None for a continuous one. A named range brings its own
        step unless one is given here.
    neighbours : {"add-remove", "replace"}
        Hide that a record is there (the number of records is secret too), or only what it says.
    ledger : Ledger or LedgerView, optional
        Where the budget is kept; a question that was asked before is answered from it.
    features : {"auto", "leaves", "grid", "random"} or int
        Leaves (counts in two stages) serve up to three columns and are the default; more columns must ask for random
        features, or be divided into several densities. Grid is the Fourier sums of earlier versions.
    shares : mapping, optional
        With several densities, part of the budget of each by name, such as ``{"age+stay": "2/3", "cost": "1/3"}``;
        equal by default.
    expect_records : int, optional
        About how many records you expect: ``message`` says when the released count is far from it, nothing else
        changes.
    query : str, optional
        For databases: a SELECT, or the name of a table.
    delimiter, decimal, thousands, encoding, null, header
        How a text file is read; see :class:`fogline.sources.reading.ReadingOptions`.

    Returns
    -------
    PrivateDensity or Releases
        The release; of several groups of columns, all of them by name.

    Notes
    -----
    A record adds one to the exact number of records of one leaf. On leaves both stages add discrete Laplace noise,
    :math:`P(z) \propto e^{-|z|/b}`, and compose to exactly epsilon. The proofs are ``releases/leaf_release.proof.md``
    and, for several densities, ``releases/joint_release.proof.md``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import fogline
    >>> rng = np.random.default_rng(0)
    >>> visits = pd.DataFrame({"age": rng.integers(20, 90, 5000), "stay": rng.gamma(2, 3, 5000)})
    >>> shape = fogline.release(visits, bounds={"age": "age", "stay": (0, 60)}, epsilon=1.0)
    >>> shape.columns, shape.units, shape.guarantee.delta
    (('age', 'stay'), ('years', ''), 0.0)
    >>> median = shape.quantile(0.5, "stay")
    >>> bool(median.low < 6 and median.high > 4)
    True
    """
    how = {"delimiter": delimiter, "decimal": decimal, "thousands": thousands, "encoding": encoding}
    how_else = {"null": null, "header": header, "query": query}
    wishes = _Wishes(
        bounds, steps, features, shares, epsilon, delta, neighbours, max_contributions, ledger, expect_records
    )
    check_expected(expect_records)
    _validation.check_ledger(ledger)
    if shares is not None and not _is_several(columns):
        raise ValueError("shares: are for several densities; name the columns of each in a list")
    try:
        with np.errstate(all="ignore"):  # what is paid for must not fail by a setting of the calling program
            if _is_several(columns):
                groups = _groups(columns)
                flat = list(dict.fromkeys(name for group in groups.values() for name in group))
                return _release_groups(_table(source, flat, unit, {**how, **how_else}), groups, wishes)
            chosen = list(bounds) if columns is None and isinstance(bounds, Mapping) else columns
            return _release_one(_table(source, chosen, unit, {**how, **how_else}), chosen, wishes)
    finally:
        del source, unit  # an error's traceback must not lead to the records


def _release_one(source: SourceLike, columns: Any, wishes: _Wishes) -> PrivateDensity:
    """Release one density of all columns of a source."""
    try:
        names = _names(source, columns)
        pairs, spec = plan_release(wishes.bounds, names, wishes.steps, wishes.features, width=width_of(source))
        terms = wishes.terms(unit_of(source), pure=isinstance(spec, LeafSpec))
        density = release_source(source, spec, terms, wishes.ledger, columns=names)
    finally:
        del source
    warn_of_count(density)
    return density.labelled(units=units_of(pairs), expect_records=wishes.expect_records)


def _release_groups(source: SourceLike, groups: dict[str, tuple[str, ...]], wishes: _Wishes) -> Releases:
    """Release one density per group of columns, for one budget."""
    try:
        if not isinstance(source, Source) or source.columns is None:
            raise TypeError("columns: several densities need a source whose columns have names")
        for name in source.columns:
            _validation.check_name(name, "columns")
        if wishes.features not in ("auto", "leaves"):
            raise ValueError(f"features: several densities are released on leaves, got {wishes.features!r}")
        if not isinstance(wishes.bounds, Mapping):
            raise TypeError("bounds: for several densities, give a mapping from names of columns to ranges")
        by_name = dict(zip(source.columns, units.ranges(wishes.bounds, source.columns), strict=True))
        portions = _portions(wishes.shares, groups)
        parts = []
        for name, group in groups.items():
            pairs = [by_name[column] for column in group]
            spec = _spec(pairs, len(group), _within(wishes.steps, source.columns, group), "leaves", group)
            assert isinstance(spec, LeafSpec)
            parts.append(JointPart(name, group, spec, portions[name]))
        terms = wishes.terms(unit_of(source), pure=True)
        found = release_parts(source, parts, terms, wishes.ledger, facts=facts_of(source))
    finally:
        del source
    # once, for the density with most records: all have the same delta
    warn_of_count(max(found.values(), key=lambda density: density.count))
    labelled = {
        name: density.labelled(
            units=units_of([by_name[column] for column in groups[name]]), expect_records=wishes.expect_records
        )
        for name, density in found.items()
    }
    return Releases(labelled, found.shares)


# -- columns -------------------------------------------------------------------------------------------------


def _is_several(columns: Any) -> bool:
    """Whether columns are several groups of names."""
    if isinstance(columns, Mapping):
        return True
    is_list = isinstance(columns, Sequence) and not isinstance(columns, str)
    return is_list and any(not isinstance(group, str) and isinstance(group, Sequence) for group in columns)


def _groups(columns: Any) -> dict[str, tuple[str, ...]]:
    """Groups of columns by the names of their densities."""
    entries = list(columns.values()) if isinstance(columns, Mapping) else list(columns)
    found: dict[str, tuple[str, ...]] = {}
    for k, group in enumerate(entries):
        names = (group,) if isinstance(group, str) else tuple(group)
        if not names or len(set(names)) != len(names) or not all(isinstance(name, str) for name in names):
            raise ValueError("columns: each group must name at least one column, and none twice")
        title = list(columns)[k] if isinstance(columns, Mapping) else "+".join(names)
        if _validation.check_name(title, "columns") in found:
            raise ValueError(f"columns: there are two densities named {title!r}")
        found[title] = names
    if not found:
        raise ValueError("columns must name at least one column")
    return found


def _table(source: SourceLike, columns: Any, unit: str | Ids | None, how: dict[str, Any]) -> SourceLike:
    """Table of the wanted columns, by the schema; of an array all columns, since it has no names."""
    if isinstance(source, Source):
        if unit is not None or how["query"] is not None:
            raise TypeError("source is a table already: name its unit and its query where it is made")
        # a table without names has all its columns: names are given to them later
        return source if columns is None or source.columns is None else source[list(columns)]
    # Asked of the type: a lazy frame would resolve its query for an attribute of its own.
    if not hasattr(type(source), "columns") and _is_array(source):
        return table(source, None, unit=unit, **how)
    try:
        return table(source, columns, unit=unit, **how)
    except ImportError:
        names = names_of(source)
        if unit is not None or names is None or not hasattr(source, "__array__"):
            raise
        frame: Any = source  # of pandas, where narwhals is not installed
        return frame if columns is None else frame[list(_validation.check_columns(columns, names))]


def _is_array(source: Any) -> bool:
    return hasattr(source, "__array__") or hasattr(source, "tocsr") or isinstance(source, list | tuple)


def _names(source: SourceLike, columns: Any) -> tuple[str, ...] | None:
    """Names of the columns: those of the schema, or those that an array's are given."""
    names = names_of(source)
    if names is not None:  # a name with line ends or escapes would be printed by everybody who reads the release
        return tuple(_validation.check_name(name, "columns") for name in names)
    if columns is None:
        return None
    given = _validation.check_columns(columns, list(columns))
    width = width_of(source)
    if width is not None and len(given) != width:
        raise ValueError(f"columns: an array has no names to choose by; name all its {width} columns, got {len(given)}")
    return tuple(_validation.check_name(name, "columns") for name in given)


# -- what is public ------------------------------------------------------------------------------------------


def plan_release(
    bounds: Any, names: tuple[str, ...] | None, steps: Any, features: str | int, *, width: int | None = None
) -> tuple[list[Any], Spec]:
    """Public ranges and specification of the release of some columns; every error comes before anything is spent.

    Parameters
    ----------
    bounds, steps, features
        As for :func:`release`.
    names : tuple of str or None
        Of the columns.
    width : int, optional
        How many columns there are, where that is known; else as many as have names, or bounds.
    """
    pairs = units.ranges(bounds, names)
    width = width or len(pairs)
    # one range serves all columns
    pairs = pairs * width if len(pairs) == 1 else pairs
    return pairs, _spec(pairs, width, steps, features, names)


def _spec(pairs: list[Any], width: int, steps: Any, features: str | int, names: tuple[str, ...] | None) -> Spec:
    """Plan the release; every error comes before anything is spent."""
    if len(pairs) != width:
        raise ValueError(f"bounds has {len(pairs)} ranges, but there are {width} columns")
    if isinstance(features, str) and features in ("auto", "leaves"):
        if width > MOST_COLUMNS:
            raise ValueError(
                f"columns: a density has up to {MOST_COLUMNS} columns, got {width}; divide them into several densities "
                "of one budget, such as columns=[['a', 'b'], ['c', 'd']], or ask for features='random'"
            )
        features = "leaves"
    return plan_spec([tuple(pair) for pair in pairs], steps=units.steps_of(pairs, steps, names), features=features)


def _within(steps: Any, columns: Sequence[str], group: Sequence[str]) -> Any:
    """Steps of one group of columns, of a mapping for all of them."""
    if not isinstance(steps, Mapping):
        return steps
    for name in steps:
        if name not in columns:
            raise ValueError(f"steps: there is no column {name!r}; there are {', '.join(columns)}")
    return {name: step for name, step in steps.items() if name in group}


def units_of(pairs: Sequence[Any]) -> tuple[str, ...] | None:
    """Units of named ranges; None where no range has one."""
    found = tuple(str(getattr(pair, "unit", "")) for pair in pairs)
    return found if any(found) else None


def _portions(shares: Mapping[str, Any] | None, groups: Mapping[str, Any]) -> dict[str, Fraction]:
    """Exact shares of the budget by name."""
    if shares is None:
        return dict.fromkeys(groups, Fraction(1, len(groups)))
    if set(shares) != set(groups):
        raise ValueError(f"shares must name each of the densities {', '.join(groups)}")
    try:
        split = Budget(rho=1.0).split(**{name: shares[name] for name in groups})
    except (ValueError, TypeError) as error:
        raise type(error)(f"shares: {error}") from None
    return {name: share.portion for name, share in split.items()}


def warn_of_count(density: PrivateDensity) -> None:
    """Warn of a delta above one over the released count, unless delta alone gave cause to before the release."""
    # a larger delta was warned of before anything was spent
    if density.guarantee.delta <= LARGE_DELTA:
        warn_of(filter(None, [delta_caution(density.guarantee.delta, density.count)]))
