"""The shape of every column of a table, from one budget: what a custodian wants to know first."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from fogline import _validation, units
from fogline._typing import Ids, LedgerLike, SourceLike
from fogline.density.columns import CategoryColumn, ColumnPlan, NumberColumn, PairPlan, day_number
from fogline.density.counted_records import check_expected
from fogline.density.profile import Profile
from fogline.estimators._base import warn_of_count
from fogline.releases.profile import MOST_COLUMNS, MOST_PAIRS, ProfileTerms, release_profile
from fogline.releases.terms import ReleaseTerms
from fogline.sources.passes import facts_of, label_text, unit_of, width_of
from fogline.sources.typed_cells import TypedPasses, declared_kinds, typed_source

__all__ = ["profile"]

DECLARE = (
    'give numbers a range (bounds={"age": (0, 110)}) or let one be found (numeric=["cost"]), and name the others'
    ' (dates=["day"], categories=["sex"]); or choose columns'
)


def profile(
    source: SourceLike,
    *,
    columns: Sequence[str] | None = None,
    bounds: Mapping[str, Any] | Sequence[Any] | None = None,
    numeric: Sequence[str] = (),
    steps: Mapping[str, float | None] | None = None,
    dates: Sequence[str] = (),
    categories: Mapping[str, Sequence[Any] | None] | Sequence[str] = (),
    pairs: str | Sequence[Any] | None = None,
    pairs_share: float | str | Fraction = "1/5",
    epsilon: float | None = None,
    delta: float | None = None,
    unit: str | Ids | None = None,
    query: str | None = None,
    reading: Mapping[str, Any] | None = None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    expect_records: int | None = None,
    ledger: LedgerLike | None = None,
    progress: Callable[[int], object] | None = None,
) -> Profile:
    r"""Release the shape of every column of a table at once.

    One pass over the records counts all columns; one budget pays for all of them. The result tells, for each column,
    the share of missing values, of zeros and of values out of range, quartiles and deciles with errors, heaps, and a
    density with everything that can be read from one; or, for categories, the largest of them with their shares.

    Parameters
    ----------
    source : array, frame, path, address or connection
        Whatever :func:`fogline.table` takes. Types of a polars frame, an Arrow table, a Parquet file or a database are
        public and are used. A CSV file declares none, so that each of its columns is named below. Nor does a pandas
        frame on numpy types, or a Parquet file that pandas wrote of one: pandas chose those types by the data, and one
        missing value makes floats of whole numbers. Its nullable types, categories and types of Arrow are used.
    columns : sequence of str, optional
        Which columns; by default all but the unit's.
    bounds : mapping, optional
        Public ranges by column: a pair, the name of a public range (:mod:`fogline.units`), or two dates as text. For an
        array a list, one range per column.
    numeric : sequence of str
        Columns of numbers whose range is to be found, for a part of their share of the budget.
    steps : mapping, optional
        Public rounding step by column, such as ``{"age": 1}``; a named range brings its own.
    dates : sequence of str
        Columns of dates, ``YYYY-MM-DD``, perhaps with a time behind it, which is left out.
    categories : mapping or sequence of str
        Columns of categories. With a public list, ``{"sex": ["f", "m"]}``, all of them are released, and no delta is
        needed. Without, those are found that stand out: this takes a delta, and add-remove.
    pairs : "all" or sequence, optional
        Pairs of columns whose dependence is released, too: ``[("age", "stay")]``, names of columns of which all pairs
        are meant, or ``"all"``. None by default: nothing is looked for that is not paid for. The noise of each
        grows with the root of their number (with Laplace noise, with the number itself).
    pairs_share : float, str or Fraction
        Part of the whole budget that the pairs are paid.
    epsilon, delta : float
        Privacy budget of the whole profile. Without a delta noise is Laplace's, which grows with the number of columns;
        with one it is Gaussian where that is less, and grows with the root of that number.
    unit, query, max_contributions
        As for :func:`fogline.table` and :class:`fogline.PrivateModes`.
    reading : mapping, optional
        How a text file is read, such as ``{"decimal": ","}``: :class:`fogline.sources.reading.ReadingOptions`.
    neighbours : {"add-remove", "replace"}
    expect_records : int, optional
        About how many records you expect: ``message`` says when the released count is far from it.
    ledger : Ledger or LedgerView, optional
        Pays for the profile; asking again is free.
    progress : callable, optional
        Told the rows read so far, a number as secret as the records.

    Returns
    -------
    Profile

    Notes
    -----
    Every record is in one cell of each column, so that with m columns counts move by at most :math:`\sqrt m` in
    Euclidean norm when a record comes or goes. Proof: ``releases/profile.proof.md``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from fogline import profile
    >>> rng = np.random.default_rng(0)
    >>> visits = pd.DataFrame(
    ...     {"age": rng.integers(0, 90, 5000), "stay": rng.gamma(2, 3, 5000), "sex": rng.choice(["f", "m"], 5000)}
    ... )
    >>> found = profile(visits, bounds={"age": "age", "stay": (0, 60)}, categories={"sex": ["f", "m"]}, epsilon=1.0)
    >>> list(found), found["age"].kind
    (['age', 'stay', 'sex'], 'integer')
    >>> bool(abs(found["stay"].quartiles.value[1] - np.median(visits["stay"])) < 0.5)
    True
    >>> sorted(label for label, share in found["sex"].categories if abs(share.value - 0.5) < 0.1)
    ['f', 'm']
    """
    how = dict(reading or {})
    kinds = declared_kinds(source, query=query, reading=how)
    if kinds is None:
        plans = _array_plans(source, columns, bounds, steps, (numeric, dates, categories))
    else:
        names = [name for name in kinds if not (isinstance(unit, str) and name == unit)]
        chosen = names if columns is None else list(_validation.check_columns(columns, names))
        plans = _plans(chosen, kinds, bounds, numeric, steps, dates, categories)
    paired = _paired(pairs, pairs_share, [plan.name for plan in plans])
    finds = any(isinstance(plan, CategoryColumn) and plan.is_open for plan in plans)
    relation = _validation.check_neighbours(neighbours)
    if finds and relation != "add-remove":
        raise ValueError(
            'categories: finding them is proved for neighbours "add-remove" alone; give the lists, '
            'such as {"sex": ["f", "m"]}'
        )
    checked = ReleaseTerms.checked(
        epsilon, delta, relation, max_contributions, allow_pure=not finds, mechanism="finding categories"
    )
    _validation.check_ledger(ledger)
    expected = check_expected(expect_records)
    numbers = [plan.name for plan in plans if plan.kind == "number"]
    texts = [plan.name for plan in plans if plan.kind != "number"]
    named = [] if kinds is None else numbers
    opened = typed_source(source, named, texts, unit=unit, query=query, progress=progress, reading=how)
    facts = facts_of(opened)
    terms = ProfileTerms(
        checked.epsilon, checked.delta, relation, checked.max_contributions, unit_of(opened), finds_categories=finds
    )
    if any(plan.is_open for plan in plans) and not opened.rereadable:
        raise TypeError("source can be read only once, but ranges or categories are to be found first: give them all")
    if paired is not None and not opened.rereadable:
        raise TypeError("pairs: source can be read only once, but groups of columns are chosen after a first reading")
    passes = TypedPasses(opened, numbers, checked.max_contributions)
    # An error's traceback must not lead to the records.
    del source, opened, unit
    try:
        terms.warn()
        found = release_profile(plans, terms, passes, ledger, paired=paired, facts=facts, expected=expected)
    finally:
        passes.forget()
    warn_of_count(found.guarantee, found.count)
    return found


# -- pairs of columns -----------------------------------------------------------------------------------------


def _paired(pairs: Any, share: Any, names: Sequence[str]) -> PairPlan | None:
    """Pairs as they were declared, by the places of their columns; None where there are none.

    Examples
    --------
    >>> _paired("all", 0.25, ["a", "b", "c"])
    PairPlan(pairs=((0, 1), (0, 2), (1, 2)), share=Fraction(1, 4))
    >>> _paired([("c", "a")], "1/5", ["a", "b", "c"]).pairs
    ((0, 2),)
    """
    if pairs is None:
        return None
    paid = _share(share)
    if isinstance(pairs, str):
        if pairs != "all":
            raise ValueError(f'pairs must be "all", names of columns or pairs of them, got {pairs!r}')
        listed: list[tuple[Any, ...]] = list(combinations(names, 2))
    elif not isinstance(pairs, Sequence) or not pairs:
        raise TypeError(f'pairs must be "all", names of columns or pairs of them, got {pairs!r}')
    elif all(isinstance(entry, str) for entry in pairs):
        listed = list(combinations(pairs, 2))
    else:
        listed = [tuple(entry) if isinstance(entry, list | tuple) else (entry,) for entry in pairs]
    if any(len(entry) != 2 or not all(isinstance(name, str) for name in entry) for entry in listed):
        raise ValueError("pairs: each must be two names of columns")
    _check_names(dict.fromkeys(name for entry in listed for name in entry), names, "pairs")
    places = [tuple(sorted(names.index(name) for name in entry)) for entry in listed]
    found = tuple((first, second) for first, second in places)
    if not found or any(first == second for first, second in found) or len(set(found)) != len(found):
        raise ValueError("pairs must be of two different columns, each pair once, and at least one")
    if len(found) > MOST_PAIRS:
        raise ValueError(f"pairs: a profile has at most {MOST_PAIRS} pairs, got {len(found)}; name those that matter")
    return PairPlan(found, paid)


def _share(share: Any) -> Fraction:
    """Share of the budget as an exact number."""
    try:
        paid = Fraction(share if isinstance(share, str | Fraction) else repr(float(share)))
    except (TypeError, ValueError, ZeroDivisionError):
        paid = Fraction(0)
    if not 0 < paid < 1 or not math.isfinite(float(paid)) or paid.denominator > 10**9:
        raise ValueError(f"pairs_share must lie between 0 and 1, such as 0.2 or '1/5', got {share!r}")
    return paid


# -- what is declared -----------------------------------------------------------------------------------------


def _plans(
    chosen: Sequence[str],
    kinds: Mapping[str, str | None],
    bounds: Mapping[str, Any] | Sequence[Any] | None,
    numeric: Sequence[str],
    steps: Mapping[str, float | None] | None,
    dates: Sequence[str],
    categories: Mapping[str, Sequence[Any] | None] | Sequence[str],
) -> tuple[ColumnPlan, ...]:
    """Plan of each column, from what was declared and from the schema; errors name what is missing."""
    ranges = _by_name(bounds, "bounds")
    rounding = _by_name(steps, "steps")
    listed = _by_name(categories, "categories", plain=True)
    for parameter, given in (
        ("bounds", ranges),
        ("numeric", _by_name(numeric, "numeric", plain=True)),
        ("steps", rounding),
        ("dates", _by_name(dates, "dates", plain=True)),
        ("categories", listed),
    ):
        _check_names(given, chosen, parameter)
    told = {**dict.fromkeys(numeric, "number"), **dict.fromkeys(dates, "date"), **dict.fromkeys(listed, "category")}
    plans: list[ColumnPlan] = []
    undeclared = []
    for name in chosen:
        kind = told.get(name) or ("date" if _is_dated(ranges.get(name)) else None)
        kind = kind or ("number" if name in ranges and kinds[name] != "date" else None)
        kind = kind or {"integer": "number", "text": "category", "boolean": "category"}.get(
            str(kinds[name]), kinds[name]
        )
        if kind is None:
            undeclared.append(name)
            continue
        plans.append(_plan(name, kind, kinds[name], ranges, rounding, listed))
    if undeclared:
        shown = ", ".join(map(repr, undeclared[:5])) + (" ..." if len(undeclared) > 5 else "")
        raise ValueError(f"columns: nothing says what {shown} hold; {DECLARE}")
    if not plans:
        raise ValueError("columns must name at least one column")
    if len(plans) > MOST_COLUMNS:
        raise ValueError(f"columns: a profile has at most {MOST_COLUMNS} columns, got {len(plans)}")
    return tuple(plans)


def _is_dated(given: Any) -> bool:
    """Whether a public range is one of dates: two texts."""
    return isinstance(given, tuple | list) and len(given) == 2 and all(isinstance(end, str) for end in given)


def _plan(
    name: str,
    kind: str,
    declared: str | None,
    ranges: Mapping[str, Any],
    steps: Mapping[str, Any],
    listed: Mapping[str, Any],
) -> ColumnPlan:
    """Plan of one column of a known kind."""
    if kind == "category":
        if name in ranges or name in steps:
            raise ValueError(
                f"bounds: column {name!r} holds categories, which have no range; name it in numeric or dates"
            )
        given = listed.get(name)
        if given is None and declared == "boolean":
            given = ["false", "true"]
        return CategoryColumn(name) if given is None else CategoryColumn.of(name, _labels(name, given))
    pair, step = _range(name, ranges[name], kind) if name in ranges else (None, None)
    if steps.get(name) is not None:
        step = _validation.check_positive(steps[name], f"steps: column {name!r}")
    elif name not in steps and (kind == "date" or (declared == "integer" and step is None)):
        step = 1.0
    found = NumberColumn(name, pair, float(step or 0.0), "date" if kind == "date" else "number")
    if not found.is_open:
        found.spec  # noqa: B018 - a step that does not fit the range is refused here
    return found


def _range(name: str, given: Any, kind: str) -> tuple[tuple[float, float], float | None]:
    """Public range of a column as two numbers, and the step that a named range brings."""
    if isinstance(given, str):
        named = units.named(given)
        return (named[0], named[1]), named.step
    if kind == "date":
        if not isinstance(given, Sequence) or len(given) != 2:
            raise ValueError(f"bounds: those of {name!r} must be two dates, such as ('2015-01-01', '2024-12-31')")
        ends = [day_number(end) for end in given]
        if not ends[0] < ends[1]:  # false for NaN
            raise ValueError(
                f"bounds: those of {name!r} must be two dates YYYY-MM-DD, the earlier first, got {given!r}"
            )
        return (ends[0], ends[1]), 1.0
    try:
        low, high = _validation.check_bounds([given])[0].tolist()
    except (TypeError, ValueError) as error:
        raise type(error)(f"bounds: column {name!r}: {str(error).removeprefix('bounds ')}") from None
    return (low, high), getattr(given, "step", None)


def _labels(name: str, given: Any) -> list[str]:
    """Public categories of a column as texts."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"categories: those of {name!r} must be a list of texts or whole numbers, got {given!r}")
    found = [label_text(label) for label in given]
    labels = [label for label in found if label is not None]
    if not labels or len(labels) != len(found) or len(set(labels)) != len(labels):
        raise ValueError(f"categories: those of {name!r} must be different texts or whole numbers, at least one")
    return labels


def _by_name(given: Any, parameter: str, *, plain: bool = False) -> dict[str, Any]:
    """Return what was declared by the name of the column; a list of names declares no more than that."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): value for name, value in given.items()}
    if not plain or isinstance(given, str) or not isinstance(given, Sequence):
        wanted = "a list of names" if plain else "a mapping by the names of the columns"
        raise TypeError(f"{parameter} must be {wanted}, got {given!r}")
    return dict.fromkeys(map(str, given))


def _check_names(given: Mapping[str, Any], chosen: Sequence[str], parameter: str) -> None:
    for name in given:
        if name not in chosen:
            near = difflib.get_close_matches(name, chosen, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{parameter}: there is no column {name!r} among those of the profile{hint}")


def _array_plans(
    source: SourceLike,
    columns: Sequence[str] | None,
    bounds: Any,
    steps: Any,
    others: tuple[Any, Any, Any],
) -> tuple[ColumnPlan, ...]:
    """Plan of an array, whose columns have no names: they are called x1, x2, ..."""
    if columns is not None or any(others):
        raise TypeError("columns: an array has no names of columns, and all of them are numbers; pass a data frame")
    width = width_of(source)
    if width is None:
        raise TypeError("source must be an array, a frame, a path, an address or a connection")
    names = [f"x{j + 1}" for j in range(width)]
    if bounds is not None and not isinstance(bounds, Mapping):
        if len(bounds) != width:
            raise ValueError(f"bounds has {len(bounds)} ranges, but there are {width} columns")
        bounds = {name: pair for name, pair in zip(names, bounds, strict=True) if pair is not None}
    ranges, rounding = _by_name(bounds, "bounds"), _by_name(steps, "steps")
    _check_names(ranges, names, "bounds")
    _check_names(rounding, names, "steps")
    return tuple(_plan(name, "number", "number", ranges, rounding, {}) for name in names)
