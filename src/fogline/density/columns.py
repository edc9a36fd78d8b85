"""What is public about the columns of a profile: their kinds, their ranges, their categories.

Nothing here has seen a record. A column of numbers (dates are days since 1970) is cut into the leaves of
:class:`~fogline.density.leaves.LeafSpec`, with three further cells for values that are missing, below the range or
above it. A column of categories has one cell per category, one for all others and one for missing ones. So every record
is in exactly one cell of each column.

A range or a list of categories may be left open; a first stage of the release then finds it, for a part of the budget.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from fogline._validation import check_positive, check_real
from fogline.density.leaves import LeafSpec

__all__ = [
    "BEYOND",
    "KEY_BYTES",
    "MAGNITUDE_SHARE",
    "PROFILE_SETTINGS",
    "CategoryColumn",
    "ColumnPlan",
    "NumberColumn",
    "PairPlan",
    "ProfileSettings",
    "column_from_dict",
    "date_text",
    "day_number",
    "key_label",
    "magnitude_share",
    "plan_shares",
    "text_key",
]

BEYOND = ("missing", "below", "above")
"""Cells of a column of numbers besides its leaves, in this order."""

KEY_BYTES = 48
"""Texts of categories are told apart by so many bytes of their UTF-8."""

EPOCH = datetime.date(1970, 1, 1).toordinal()
"""Day 0."""

_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ].*)?", re.DOTALL)


def day_number(cell: object) -> float:
    """Days since 1970 of a date, a time or a text ``YYYY-MM-DD``, perhaps with a time behind it; NaN for all else.

    Examples
    --------
    >>> day_number("1970-01-02"), day_number("2020-02-29T12:30"), day_number("29.02.2020"), day_number(None)
    (1.0, 18321.0, nan, nan)
    """
    try:
        if isinstance(cell, datetime.date):  # a datetime is one too
            return float(datetime.date(cell.year, cell.month, cell.day).toordinal() - EPOCH)
        found = _ISO.fullmatch(cell.strip(" \t")) if isinstance(cell, str) else None
        return math.nan if found is None else float(datetime.date(*map(int, found.groups())).toordinal() - EPOCH)
    except Exception:  # no such day, or a class with errors of its own: a cell is never an error
        return math.nan


def date_text(day: float) -> str:
    """Return the date of a day since 1970, as ``YYYY-MM-DD``.

    Examples
    --------
    >>> date_text(18321.4)
    '2020-02-29'
    """
    ordinal = min(max(math.floor(day) + EPOCH, 1), datetime.date.max.toordinal())
    return datetime.date.fromordinal(ordinal).isoformat()


def text_key(text: str | None) -> bytes:
    """Bytes by which categories are told apart; empty for a missing one.

    Examples
    --------
    >>> text_key("north"), text_key(None), len(text_key("n" * 100))
    (b'north', b'', 48)
    """
    return b"" if text is None else text.encode("utf-8", "surrogatepass")[:KEY_BYTES].rstrip(b"\0")


def key_label(key: bytes) -> str:
    """Return a category's bytes as text that can be printed anywhere.

    Examples
    --------
    >>> key_label(b"north"), key_label(bytes([110, 255]))
    ('north', 'n\ufffd')
    """
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in key.decode("utf-8", "replace"))


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers or of dates.

    Parameters
    ----------
    name : str
    bounds : (float, float) or None
        The public range, in days since 1970 for dates; None where it is to be found.
    step : float
        Public rounding step, 0 for a continuous column; 1 for dates.
    kind : {"number", "date"}

    Examples
    --------
    >>> age = NumberColumn("age", (0.0, 110.0), 1.0)
    >>> age.spec.leaves, age.cells, age.is_open
    ((111,), 114, False)
    >>> NumberColumn("cost").found((0.3, 812.0)).bounds
    (0.3, 812.0)
    >>> NumberColumn("visits", step=1.0).found((0.3, 812.0)).bounds
    (0.0, 812.0)
    """

    name: str
    bounds: tuple[float, float] | None = None
    step: float = 0.0
    kind: Literal["number", "date"] = "number"

    @property
    def is_open(self) -> bool:
        """Whether the range is to be found."""
        return self.bounds is None

    @cached_property
    def spec(self) -> LeafSpec:
        """Leaves of the range."""
        if self.bounds is None:
            raise ValueError(f"bounds: column {self.name!r} has no range yet")
        try:
            return LeafSpec.plan([self.bounds], self.step or None)
        except (ValueError, TypeError) as error:
            raise type(error)(f"bounds: column {self.name!r}: {error}") from None

    @property
    def cells(self) -> int:
        """Number of cells: the leaves, and three beyond them."""
        return self.spec.n_leaves + len(BEYOND)

    def found(self, bounds: tuple[float, float]) -> NumberColumn:
        """Return the column with a range that was found, moved outward to multiples of the step."""
        low, high = bounds
        if self.step:
            low, high = math.floor(low / self.step) * self.step, math.ceil(high / self.step) * self.step
            high = high if high > low else low + self.step
        return replace(self, bounds=(low, high))

    def text(self, value: float, digits: int = 4) -> str:
        """Return a value of the column as people write it."""
        if self.kind == "date":
            return date_text(value)
        if self.step == 1:
            return f"{value:.0f}"
        rounded = float(f"{value:.{digits}g}")
        # Without an exponent where people write none.
        return f"{rounded:.0f}" if 10.0**digits <= abs(rounded) < 1e9 else f"{rounded:.{digits}g}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; floats survive the round trip exactly."""
        bounds = None if self.bounds is None else list(self.bounds)
        return {"name": self.name, "kind": self.kind, "bounds": bounds, "step": self.step}


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories.

    Parameters
    ----------
    name : str
    keys : tuple of bytes or None
        Keys of the categories (:func:`text_key`); None where they are to be found.
    is_found : bool
        Whether the categories were found by a stage of the release.

    Examples
    --------
    >>> sex = CategoryColumn.of("sex", ["f", "m"])
    >>> sex.labels, sex.cells
    (('f', 'm'), 4)
    """

    name: str
    keys: tuple[bytes, ...] | None = None
    is_found: bool = False
    kind: Literal["category"] = "category"

    @classmethod
    def of(cls, name: str, categories: Sequence[str]) -> CategoryColumn:
        """Return a column of declared categories."""
        keys = tuple(text_key(text) for text in categories)
        if not all(keys) or len(set(keys)) != len(keys):
            raise ValueError(f"categories: those of {name!r} must differ in their first {KEY_BYTES} bytes")
        return cls(name, keys)

    @property
    def is_open(self) -> bool:
        """Whether the categories are to be found."""
        return self.keys is None

    @property
    def labels(self) -> tuple[str, ...]:
        """Categories as texts."""
        return tuple(map(key_label, self.keys or ()))

    @property
    def cells(self) -> int:
        """Number of cells: one per category, one for all others, one for missing ones."""
        return len(self.keys or ()) + 2

    def found(self, keys: Sequence[bytes]) -> CategoryColumn:
        """Return the column with categories that were found."""
        return replace(self, keys=tuple(keys), is_found=True)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        keys = None if self.keys is None else [key.hex() for key in self.keys]
        return {"name": self.name, "kind": self.kind, "keys": keys, "is_found": self.is_found}


ColumnPlan = NumberColumn | CategoryColumn
"""What is public about one column."""


def column_from_dict(data: dict[str, Any]) -> ColumnPlan:
    """Inverse of ``to_dict``.

    Examples
    --------
    >>> column_from_dict(NumberColumn("age", (0.0, 110.0), 1.0).to_dict()).bounds
    (0.0, 110.0)
    """
    name = str(data["name"])
    if data["kind"] == "category":
        keys = None if data["keys"] is None else tuple(bytes.fromhex(key) for key in data["keys"])
        return CategoryColumn(name, keys, bool(data["is_found"]))
    if data["kind"] not in ("number", "date"):
        raise ValueError(f"kind must be 'number', 'date' or 'category', got {data['kind']!r}")
    step = float(data["step"])
    bounds = data["bounds"]
    if bounds is not None:
        bounds = (check_real(bounds[0], "bounds"), check_real(bounds[1], "bounds"))
    return NumberColumn(name, bounds, check_positive(step, "step") if step else 0.0, data["kind"])


# -- how stages divide a budget ----------------------------------------------------------------------


MAGNITUDE_SHARE = Fraction(1, 3)
"""Share of a column's budget for the powers of two; the cells have the rest."""

FEW_SHARE, FEW = Fraction(1, 2), 60.0
"""The share where fewer records are expected than so many times the noise that all of a column's budget would give."""


def magnitude_share(expected: int | None, rho: float, neighbours: str, max_contributions: int = 1) -> Fraction:
    """Return the share of a column's budget for the powers of two, by the number of records that is expected.

    With few records the range is what fails: half of the budget then has the least error. With more of them the fixed
    share is within 1.5% of the best one (``benchmarks/shares.py``). Nothing but public numbers decides.

    Parameters
    ----------
    expected : int or None
        About how many records there are, as a guess; None for the fixed share.
    rho : float
        Of the column.
    neighbours, max_contributions
        Of the release.

    Examples
    --------
    >>> [str(magnitude_share(n, 0.0013, "add-remove")) for n in (1000, 3000, None)]
    ['1/2', '1/3', '1/3']
    """
    moved = max_contributions * (1.0 if neighbours == "add-remove" else math.sqrt(2.0))
    noise = moved / math.sqrt(2.0 * rho)
    return FEW_SHARE if expected is not None and expected < FEW * noise else MAGNITUDE_SHARE


@dataclass(frozen=True)
class PairPlan:
    """Pairs of columns that are counted, and what they are paid; public.

    Parameters
    ----------
    pairs : tuple of (int, int)
        Places of the columns of each pair.
    share : Fraction
        Part of the whole budget, between 0 and 1.

    Examples
    --------
    >>> PairPlan(((0, 1), (0, 3))).columns
    (0, 1, 3)
    """

    pairs: tuple[tuple[int, int], ...]
    share: Fraction = Fraction(1, 5)

    @property
    def columns(self) -> tuple[int, ...]:
        """Places of all columns of a pair."""
        return tuple(sorted({place for pair in self.pairs for place in pair}))


@dataclass(frozen=True)
class ProfileSettings:
    """Tuned numbers of a profile's release.

    Attributes
    ----------
    search : Fraction
        Part of a column's share of the budget that finds its range or its categories, where they are open. The error
        of a range and that of the counts inside it fall alike with the number of records, so that one share suits all
        numbers.
    magnitudes : Fraction
        Part of that, for a range, that counts powers of two; the cells of the coarse range have the rest.
    pilot : Fraction
        Part of what is left for the pilot.
    aside : Fraction
        Part of delta that is set aside for finding categories.
    coverage : float
        Share of the records that a range that is found should hold.
    most_categories : int
        Most categories of a column that are found.
    unknown : (float, float)
        Range of a column of which nothing stands out of the noise.
    """

    search: Fraction = Fraction(1, 2)
    magnitudes: Fraction = Fraction(1, 3)
    pilot: Fraction = Fraction(3, 20)
    aside: Fraction = Fraction(1, 10)
    coverage: float = 0.995
    most_categories: int = 30
    unknown: tuple[float, float] = (-1.0, 1.0)


PROFILE_SETTINGS = ProfileSettings()


def plan_shares(plans: Sequence[ColumnPlan], paired: PairPlan | None = None) -> dict[str, Fraction]:
    """Divide a budget between the stages, by name; the parts sum to exactly one.

    Examples
    --------
    >>> plan_shares([NumberColumn("a", (0.0, 1.0))])
    {'pilot': Fraction(3, 20), 'counts': Fraction(17, 20)}
    >>> shares = plan_shares([NumberColumn("a"), CategoryColumn("b"), NumberColumn("c", (0.0, 1.0))])
    >>> sum(shares.values()), shares["categories: b"], shares["magnitudes"] + shares["ranges"]
    (Fraction(1, 1), Fraction(1, 6), Fraction(1, 6))
    >>> plan_shares([NumberColumn(name, (0.0, 1.0)) for name in "ab"], PairPlan(((0, 1),), Fraction(1, 5)))
    {'pilot': Fraction(3, 25), 'counts': Fraction(17, 25), 'pairs': Fraction(1, 5)}
    """
    if paired is not None:
        alone = {name: (1 - paired.share) * part for name, part in plan_shares(plans).items()}
        return {**alone, "pairs": paired.share}
    each = PROFILE_SETTINGS.search / len(plans)
    ranges = each * sum(isinstance(plan, NumberColumn) and plan.is_open for plan in plans)
    shares: dict[str, Fraction] = {}
    if ranges:
        shares = {
            "magnitudes": PROFILE_SETTINGS.magnitudes * ranges,
            "ranges": (1 - PROFILE_SETTINGS.magnitudes) * ranges,
        }
    for plan in plans:
        if isinstance(plan, CategoryColumn) and plan.is_open:
            shares[f"categories: {plan.name}"] = each
    rest = 1 - sum(shares.values())
    return {**shares, "pilot": PROFILE_SETTINGS.pilot * rest, "counts": (1 - PROFILE_SETTINGS.pilot) * rest}
