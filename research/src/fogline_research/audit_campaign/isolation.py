r"""Record isolation, tried on hostile tables: one record moves the exact state by its own vector, or not at all.

For two tables that differ in one record the states that a reader gives must differ by that record's vector or not at
all; with a unit and its bound c, by at most c records of that unit. Whatever else can be seen (the schema, an error, a
warning, a line of a log) must be the same. :func:`check_isolation` tries this on many pairs and shrinks what it finds.

The definition and an argument for each reader are in ``docs/isolation.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fogline_research.audit_campaign.forms import Place, Source, source_named
from fogline_research.audit_campaign.hostile_tables import HostileTables, Record, Shape, vocabulary
from fogline_research.audit_campaign.isolation_measures import BOUNDS, CELLS, Measure, Reading, look
from fogline_research.audit_campaign.reference_reader import NOBODY, UNSURE, Item

__all__ = ["Case", "IsolationReport", "Violation", "check_isolation", "shrink", "try_case"]

WALK = 4
"""Neighbours of a walk: few, so that many palettes are tried."""

MOST_SHOWN = 3
"""Violations that are kept and shrunk."""

MOST_TRIES = 80
"""Smaller cases that are tried for a violation."""


@dataclass(frozen=True)
class Case:
    """A pair of tables and what is public about them: all that is needed to try it again.

    Parameters
    ----------
    source : str
        Name of a source, as in :data:`fogline_research.audit_campaign.forms.SOURCES`.
    shape : Shape
    public : mapping
        Public features.
    most : int
        c, the most records of a unit that count.
    before, after : tuple of Record
        A record that is in both is the same object.
    """

    source: str
    shape: Shape
    public: Mapping[str, Any]
    most: int
    before: tuple[Record, ...]
    after: tuple[Record, ...]


@dataclass(frozen=True)
class Violation:
    """A case in which one record touched another, or was seen, and in what way."""

    case: Case
    what: str


@dataclass
class IsolationReport:
    """What was tried on a source, and what was found.

    Attributes
    ----------
    source : str
    pairs : int
        Pairs that were tried.
    read : int
        Those of them of which both tables were read.
    refused : int
        Those of them of which both tables were refused as the empty table is: by what is public.
    violations : int
    found : list of Violation
        The first few, shrunk.
    drawn : Counter
        How often each feature of the vocabulary was drawn.
    seeds : list of int
        Seeds of the campaigns that found a violation.
    failures : list of str
        Why parts of a campaign have no report.
    """

    source: str
    pairs: int = 0
    read: int = 0
    refused: int = 0
    violations: int = 0
    found: list[Violation] = field(default_factory=list)
    drawn: Counter[str] = field(default_factory=Counter)
    seeds: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def check_isolation(
    source: str | Source, cases: int, seed: int, *, servers: Mapping[str, Any] | None = None, shrinking: bool = True
) -> IsolationReport:
    """Try so many pairs of hostile tables on a source.

    Parameters
    ----------
    source : str or Source
        One of :data:`fogline_research.audit_campaign.forms.SOURCES`, by its name.
    cases : int
        How many pairs.
    seed : int
    servers : mapping, optional
        Servers that run, by name: the address of a Postgres server, a Spark session.
    shrinking : bool
        Whether violations are made as small as they go.

    Examples
    --------
    >>> report = check_isolation("numpy array", cases=20, seed=1)
    >>> report.pairs, report.violations
    (20, 0)
    """
    source = source_named(source) if isinstance(source, str) else source
    report = IsolationReport(source.name)
    with Place.new(servers) as place:
        for walk in _walks(source, cases, seed, report.drawn):
            readings = _readings(source, walk, place)
            for case, before, after in zip(walk, readings, readings[1:], strict=False):
                report.pairs += source.form.bundle
                if before.vector is not None and after.vector is not None:
                    report.read += source.form.bundle
                elif before.seen == after.seen == _readings(source, [_empty(case)], place)[0].seen:
                    report.refused += source.form.bundle
                what = _compared(source, case, before, after)
                if what:
                    report.violations += 1
                    if len(report.found) < MOST_SHOWN:
                        found = Violation(case, what)
                        report.found.append(shrink(source, found, place) if shrinking else found)
    report.seeds += [seed] if report.violations else []
    return report


def _walks(source: Source, cases: int, seed: int, drawn: Counter[str]) -> Iterator[list[Case]]:
    """Walks as lists of cases, each of which begins with the table with which the one before ends."""
    form, left = source.form, cases
    rng = np.random.default_rng([seed, *source.name.encode()])
    decks: dict[str, list[str]] = {}
    makers = [
        HostileTables(shape, [BOUNDS] * shape.columns, int(rng.integers(2**32)), CELLS, decks)
        for shape in source.shapes
    ]
    turn = 0
    while left > 0:
        maker = makers[turn % len(makers)]
        turn += 1
        public = {name: values[rng.integers(len(values))] for name, values in form.options.items()}
        most = int(rng.integers(1, 4))
        steps = min(WALK, -(-left // form.bundle))
        walks = [maker.walk(steps) for _ in range(form.bundle)]
        left -= steps * form.bundle
        drawn.update(f"public: {name}, {value!r}" for name, value in public.items())
        tables = [sum(beside, ()) for beside in zip(*(walk.tables for walk in walks), strict=True)]
        yield [Case(source.name, maker.shape, public, most, before, after) for before, after in pairwise(tables)]
    for maker in makers:
        drawn.update(maker.drawn)
        for name in vocabulary(maker.shape):
            drawn[name] += 0


def try_case(case: Case, *, servers: Mapping[str, Any] | None = None, source: Source | None = None) -> str:
    """Try one pair again; says what is wrong, nothing if it is isolated."""
    with Place.new(servers) as place:
        return _tried(source or source_named(case.source), case, place)


def _empty(case: Case) -> Case:
    return replace(case, before=(), after=())


def _tried(source: Source, case: Case, place: Place) -> str:
    before, after = _readings(source, [case], place)
    return _compared(source, case, before, after)


def _readings(source: Source, walk: Sequence[Case], place: Place) -> list[Reading]:
    first = walk[0]
    tables = [first.before, *(case.after for case in walk)]
    measure = source.measure(first.shape)
    opened = source.form.each(tables, first.shape, first.public, place)
    return [look(measure, one, first.public, first.most) for one in opened]


# -- the property ---------------------------------------------------------------------------------------------


def _compared(source: Source, case: Case, before: Reading, after: Reading) -> str:
    """What one record did to others, in words; nothing where the pair is isolated."""
    if before.seen != after.seen:
        return f"seen: {before.seen!r} and {after.seen!r}"
    if before.vector is None or after.vector is None:
        return ""
    measure = source.measure(case.shape)
    had, has = (source.form.items(rows, case.shape, case.public) for rows in (case.before, case.after))
    added, removed, common = _difference(had, has)
    moved = after.vector - before.vector
    if case.shape.ids is None or source.is_labelled:
        return _moved_by_records(measure, moved, added, removed)
    return _moved_by_units(measure, moved, added, removed, common, case.most)


def _difference(had: list[Item], has: list[Item]) -> tuple[list[Item], list[Item], list[Item]]:
    """Items that were added, removed, and are in both."""
    known = {item.key: item for item in [*had, *has]}
    before, after = Counter(item.key for item in had), Counter(item.key for item in has)
    return tuple([known[key] for key in part.elements()] for part in (after - before, before - after, after & before))  # type: ignore[return-value]


def _moved_by_records(measure: Measure, moved: Any, added: list[Item], removed: list[Item]) -> str:
    rest, unsure = moved.copy(), [0, 0]
    for sign, items in ((1, added), (-1, removed)):
        for item in items:
            vector = measure.vector_of(item)
            if vector is UNSURE:
                unsure[sign < 0] += 1
            else:
                rest -= sign * vector
    return _beyond(measure, rest, *unsure)


def _beyond(measure: Measure, rest: Any, most_more: int, most_less: int) -> str:
    """What is left of a difference beyond so many records more and so many less."""
    if measure.is_count:
        more, less = int(rest[rest > 0].sum()), -int(rest[rest < 0].sum())
        if more <= most_more * measure.ones and less <= most_less * measure.ones:
            return ""
        each = f", each counted {measure.ones} times," if measure.ones > 1 else ""
        return f"{more} records more and {less} less, where at most {most_more} and {most_less}{each} may be"
    distance = math.sqrt(sum(int(x) ** 2 for x in rest))
    allowed = (most_more + most_less) * measure.norm + measure.slack
    return "" if distance <= allowed * (1 + 1e-12) else f"moved by {distance:g}, where at most {allowed:g} may be"


def _moved_by_units(
    measure: Measure, moved: Any, added: list[Item], removed: list[Item], common: list[Item], most: int
) -> str:
    more = less = 0
    shared = {item.unit for item in common}
    is_unsure = any(_is_unsure(item) for item in common)
    for unit in {item.unit for item in [*added, *removed]} - {NOBODY}:
        gains = [item for item in added if item.unit == unit]
        losses = [item for item in removed if item.unit == unit]
        torn = unit in shared or is_unsure or _is_unsure([*gains, *losses][0])
        more += most if gains or torn else 0
        less += most if losses or torn else 0
    beyond = _beyond(measure, moved, more, less)
    # a line that nobody can be sure of may hold a record of the same unit, which then is the one that is kept
    return beyond or ("" if is_unsure else _too_few(measure, moved, added, removed, shared, most))


def _too_few(measure: Measure, moved: Any, added: list[Item], removed: list[Item], shared: Any, most: int) -> str:
    """Where one unit came with sure records alone, as many of them are kept as may be, and no others."""
    units = {item.unit for item in added} - {NOBODY}
    if removed or not measure.competes_where_it_counts or len(units) != 1 or units & shared:
        return ""
    vectors = [measure.vector_of(item) for item in added if item.unit != NOBODY]
    (unit,) = units
    if any(vector is UNSURE for vector in vectors) or unit[0] != "whole":  # type: ignore[index]
        return ""
    total = sum(vectors)
    if (moved > total).any() or moved.sum() != min(most * measure.ones, int(total.sum())):
        kept, all_of_them = (int(vector.sum()) // measure.ones for vector in (moved, total))
        return f"{kept} records of a unit with {all_of_them} are kept, where c is {most}"
    return ""


def _is_unsure(item: Item) -> bool:
    return isinstance(item.unit, tuple) and item.unit[0] is UNSURE


# -- shrinking ------------------------------------------------------------------------------------------------

SIMPLE: dict[str, Any] = {"integer": 5, "unsigned": 5, "truth": True, "line": b"5"}
"""The plainest cell of a kind; 5.0 elsewhere."""

SIMPLE_IDS: dict[str, Any] = {"line": b"1", "double": 1.0}


def shrink(source: Source, violation: Violation, place: Place, most_tries: int = MOST_TRIES) -> Violation:
    """Make a violation small: leave out one record after another, then make cells and ids plain."""
    attempts = 0

    def smaller(case: Case) -> bool:
        nonlocal violation, attempts
        if attempts >= most_tries or set(map(id, case.before)) == set(map(id, case.after)):
            return False
        attempts += 1
        what = _tried(source, case, place)
        if what:
            violation = Violation(case, what)
        return bool(what)

    for record in _records(violation.case):
        smaller(_without(violation.case, record))
    for record in _records(violation.case):
        current = record
        for simplify in _simplifications(record, violation.case.shape):
            simpler = simplify(current)
            if smaller(_replaced(violation.case, current, simpler)):
                current = simpler
    return violation


def _records(case: Case) -> list[Record]:
    """Each record once, those of both tables first."""
    before, after = ({id(record): record for record in rows} for rows in (case.before, case.after))
    every = {**before, **after}
    return [every[key] for key in sorted(every, key=lambda key: key not in before or key not in after)]


def _without(case: Case, record: Record) -> Case:
    before, after = (tuple(one for one in rows if one is not record) for rows in (case.before, case.after))
    return replace(case, before=before, after=after)


def _simplifications(record: Record, shape: Shape) -> Iterator[Callable[[Record], Record]]:
    """Ways to make a record plainer, the boldest first."""
    plain = SIMPLE.get(shape.cells.split()[0], 5.0)
    yield lambda one: replace(one, cells=(plain,) * len(one.cells))
    for j in range(min(len(record.cells), 4)):
        yield lambda one, j=j: replace(one, cells=(*one.cells[:j], plain, *one.cells[j + 1 :]))  # type: ignore[misc]
    if shape.ids is not None:
        unit = SIMPLE_IDS.get(shape.ids, "1" if shape.ids.startswith("text") else 1)
        yield lambda one: replace(one, unit=unit)


def _replaced(case: Case, record: Record, other: Record) -> Case:
    before, after = (tuple(other if one is record else one for one in rows) for rows in (case.before, case.after))
    return replace(case, before=before, after=after)
