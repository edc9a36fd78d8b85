"""What is compared between two neighbours: exact states, as vectors of integers, and everything else that is seen.

A measure reads a source through the public functions and gives the exact integers that a release would add noise to. It
also says which vector one item of the table is, according to the reference reader, where that is sure.
"""

from __future__ import annotations

import csv
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import fogline
from fogline import DensitySketch, releases, sources
from fogline.density.leaves import LeafSpec
from fogline.density.partition import plan_partition
from fogline.density.random_spec import CellSpec, RandomSpec
from fogline.density.spec import SketchSpec
from fogline.estimators.strata import private_strata
from fogline.mechanisms.randomness import Call, Query, Sample, use_provider
from fogline.releases import leaf_release, profile
from fogline.sources.counts_file import check_secret_file, read_counts
from fogline.sources.warehouse import WarehouseQuery
from fogline.testing import seeded_noise
from fogline_research.audit_campaign.forms.base import NAMES, Opened
from fogline_research.audit_campaign.reference_reader import NOBODY, NOWHERE, UNSURE, Item, cell_of

__all__ = [
    "BOUNDS",
    "GridMeasure",
    "LeafMeasure",
    "Measure",
    "NamedReleasesMeasure",
    "PrintedMeasure",
    "ProfileMeasure",
    "RandomMeasure",
    "Reading",
    "ReleaseMeasure",
    "StrataMeasure",
    "look",
]

IntArray = NDArray[np.int64]
Public = Mapping[str, Any]

BOUNDS = (-3.0, 10.0)
"""Of every axis: not symmetric, and the edges of cells are no short binary fractions."""

CELLS = 32
"""Cells of an axis."""

TO_THE_END = "read to the end"
"""A public feature: whether a release is carried on after its last stage, to see what it publishes."""

KEY_SEED = 7
"""Of the key by which the records of a unit are chosen: the same for all readings."""


@dataclass(frozen=True)
class Reading:
    """What one reading gave.

    Attributes
    ----------
    vector : array or None
        The exact state; None where there was an error.
    seen : hashable
        Everything else that an onlooker could see: schema, error, warnings, log.
    """

    vector: IntArray | None
    seen: Hashable


class Measure(Protocol):
    """Gives the exact state of a source and the vector of one item."""

    columns: int
    is_count: bool
    """Whether vectors are counts of cells, so that records can be counted in a difference."""

    ones: int
    """Cells that a record which counts adds one to, at the most."""

    competes_where_it_counts: bool
    """Whether a record of a unit competes just where it adds to all of them."""

    norm: float
    """Largest Euclidean norm of one item's vector."""

    slack: float
    """How far the vector of a sum may be from the sum of vectors, where a sum is rounded once."""

    def read(self, opened: Opened, public: Public, most: int) -> tuple[IntArray, Hashable]:
        """Exact state, and what the schema shows; `most` records of a unit count."""

    def vector_of(self, item: Item) -> Any:
        """Vector of one item, zero where it contributes nothing; UNSURE where the reference does not say."""


@dataclass(frozen=True)
class GridMeasure:
    """Counts of the cells of a grid."""

    columns: int
    is_count: bool = True
    ones: int = 1
    competes_where_it_counts: bool = True
    norm: float = 1.0
    slack: float = 0.0

    @cached_property
    def spec(self) -> CellSpec:
        """The grid: 32 cells an axis."""
        width = BOUNDS[1] - BOUNDS[0]
        return SketchSpec.plan([BOUNDS] * self.columns, bandwidths=[[8 * width / CELLS] * self.columns])

    def read(self, opened: Opened, public: Public, most: int) -> tuple[IntArray, Hashable]:
        """Counts of all cells."""
        (keys, counts), shown = _state(opened, public, most, self.spec)
        vector = np.zeros(CELLS**self.columns, dtype=np.int64)
        vector[keys] = counts
        return vector, shown

    def vector_of(self, item: Item) -> Any:
        """One in one cell, or zero."""
        cell = cell_of(item.values, [BOUNDS] * self.columns, [CELLS] * self.columns)
        if cell is UNSURE:
            return UNSURE
        vector = np.zeros(CELLS**self.columns, dtype=np.int64)
        if cell is not NOWHERE:
            vector[cell] = 1
        return vector


@dataclass(frozen=True)
class LeafMeasure(GridMeasure):
    """Counts of public leaves."""

    @cached_property
    def spec(self) -> CellSpec:
        """The leaves: 32 per axis."""
        return LeafSpec.plan([BOUNDS] * self.columns, leaves=[CELLS] * self.columns)


@dataclass(frozen=True)
class PrintedMeasure(LeafMeasure):
    """Counts of public leaves by a printed query, as ``fogline release --counts`` reads them from the answer's file."""

    def read(self, opened: Opened, public: Public, most: int) -> tuple[IntArray, Hashable]:  # noqa: ARG002
        """Counts of all leaves, and what the answer bears beside them."""
        unit = opened.keywords.get("unit")
        query = WarehouseQuery.of(
            self.spec,
            NAMES[: self.columns],
            dialect=opened.source.dialect,
            table=opened.source.table,
            unit=unit,
            max_contributions=1 if unit is None else most,
        )
        names, rows = opened.source.run(query.sql(key=f"{KEY_SEED:x}"))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "counts.csv"
            path.touch(mode=0o600)
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([names, *rows])
            caution = check_secret_file(path)
            cells, counts, grid = read_counts(path, self.spec)
        vector = np.zeros(CELLS**self.columns, dtype=np.int64)
        vector[cells] = counts
        return vector, (tuple(names), grid == query.grid, caution)


@dataclass(frozen=True)
class RandomMeasure:
    """Sums of random features of four columns."""

    columns: int = 4
    is_count: bool = False
    ones: int = 1
    competes_where_it_counts: bool = False
    slack: float = 0.0

    @cached_property
    def spec(self) -> RandomSpec:
        """A few features."""
        return RandomSpec.plan([BOUNDS] * self.columns, n_features=64)

    @cached_property
    def norm(self) -> float:
        """Of a record's integers."""
        return float(np.sqrt(self.spec.squared_norm)) + 1.0  # the count itself is one of them here

    def read(self, opened: Opened, public: Public, most: int) -> tuple[IntArray, Hashable]:
        """Count and sums."""
        state, shown = _state(opened, public, most, self.spec)
        return _flat(state), shown

    def vector_of(self, item: Item) -> Any:
        """State of one record alone."""
        if item.values is UNSURE:
            return UNSURE
        row = np.array([item.values])
        return _flat(DensitySketch.of(self.spec).update(row).state()) - _flat(DensitySketch.of(self.spec).state())


class _ExactAnswers:
    """Answers every mechanism without noise, and keeps the exact value."""

    certified = False
    reason = "there is no noise"

    def __init__(self) -> None:
        self.exact: Any = None
        self.sensitivity = 0.0

    def answer(self, call: Call, query: Query, sample: Sample) -> NDArray[Any]:  # noqa: ARG002
        exact = np.asarray(query())
        self.exact, self.sensitivity = exact, call.sensitivity
        return exact

    def generator(self, purpose: str) -> np.random.Generator:  # noqa: ARG002
        return np.random.default_rng(KEY_SEED)


@dataclass(frozen=True)
class StrataMeasure:
    """Exact vector of :func:`fogline.private_strata`, whose labels are the ids of the table."""

    columns: int = 1
    is_count: bool = False
    ones: int = 1
    competes_where_it_counts: bool = False
    categories: tuple[Any, ...] = (1, 2, "Ann", "café")

    @cached_property
    def norm(self) -> float:
        """The sensitivity that the release declares."""
        return self._nothing.sensitivity

    @cached_property
    def slack(self) -> float:
        """Each of the four vectors that are compared is rounded to integers."""
        return float(2.0 * np.sqrt(self._nothing.exact.size))

    @cached_property
    def _nothing(self) -> _ExactAnswers:
        return self._run(np.zeros((0, self.columns)), [])[0]

    def read(self, opened: Opened, public: Public, most: int) -> tuple[IntArray, Hashable]:  # noqa: ARG002
        """Exact values of all strata."""
        keywords = dict(opened.keywords)
        provider, shown = self._run(opened.source, keywords.pop("unit"), **keywords)
        return provider.exact, shown

    def vector_of(self, item: Item) -> Any:
        """Vector of one record in the stratum that its label names."""
        if item.values is UNSURE or not (item.unit == NOBODY or item.unit[0] == "whole"):  # type: ignore[index]
            return UNSURE
        label = None if item.unit == NOBODY else item.unit[1]  # type: ignore[index]
        one, _ = self._run(np.array([item.values]), [label])
        return one.exact - self._nothing.exact

    def _run(self, source: Any, by: Any, **keywords: Any) -> tuple[_ExactAnswers, Hashable]:
        provider, width = _ExactAnswers(), BOUNDS[1] - BOUNDS[0]
        with use_provider(provider):
            strata = private_strata(
                source,
                by,
                categories=list(self.categories),
                epsilon=1.0,
                delta=1e-6,
                bounds=[BOUNDS] * self.columns,
                bandwidths=[[8 * width / CELLS] * self.columns],
                **keywords,
            )
        return provider, tuple(strata)


class _SilentAnswers(_ExactAnswers):
    """Keeps the exact values of all mechanisms, and answers each with zeros: what is public then stays the same."""

    def __init__(self, stages: int | None = None) -> None:
        super().__init__()
        self.exacts: list[IntArray] = []
        self._stages = stages

    @property
    def is_done(self) -> bool:
        """Whether all stages have been asked that one wants to see."""
        return len(self.exacts) == self._stages

    def answer(self, call: Call, query: Query, sample: Sample) -> NDArray[Any]:  # noqa: ARG002
        exact = np.asarray(query())
        self.exacts.append(exact.astype(np.int64))
        if self.is_done:
            raise _EnoughSeenError
        return np.zeros_like(exact)


class _EnoughSeenError(Exception):
    """The last stage has been asked: what follows is a function of the answers, which are the same for all tables."""


@dataclass(frozen=True)
class ReleaseMeasure:
    """Exact values of all stages of :func:`fogline.release`, whose answers are zeros.

    The partition of the second stage comes from the answers of the first. They are the same for both tables of a pair,
    as they would be if a replay answered; so the exact values of both stages can be compared.
    """

    columns: int
    is_count: bool = True
    competes_where_it_counts: bool = True
    norm: float = 1.0
    slack: float = 0.0

    @property
    def ones(self) -> int:
        """One in the pilot, one in the counts."""
        return 2

    def release(self, source: Any, keywords: Public, most: int) -> Any:
        """Release a source; `keywords` are those of its table."""
        bounds = [BOUNDS] * self.columns
        return fogline.release(source, bounds=bounds, epsilon=1.0, max_contributions=most, **keywords)

    def read(self, opened: Opened, public: Public, most: int) -> tuple[IntArray, Hashable]:
        """Exact values of all stages, one after the other, and all that is published."""
        provider = _SilentAnswers(None if public.get(TO_THE_END, True) else self._stages)
        shown: Hashable = ()
        has_unit = opened.keywords.get("unit") is not None
        with use_provider(provider), _known_partitions():
            try:
                shown = _published(self.release(opened.source, opened.keywords, most if has_unit else 1))
            except Exception:
                if not provider.is_done:
                    raise
        return np.concatenate(provider.exacts), shown

    def vector_of(self, item: Item) -> Any:
        """Exact values of one record alone, by an array."""
        if item.values is UNSURE or self._is_open(item):
            return UNSURE
        return self._of(np.array([item.values])) - self._nothing

    def _is_open(self, item: Item) -> bool:  # noqa: ARG002
        return False

    def _of(self, rows: NDArray[Any]) -> IntArray:
        return self.read(Opened(rows), {TO_THE_END: False}, 1)[0]

    @cached_property
    def _nothing(self) -> IntArray:
        return self._of(np.zeros((0, self.columns)))

    @cached_property
    def _stages(self) -> int:
        """Mechanisms that a release asks, on a table without records."""
        provider = _SilentAnswers()
        with use_provider(provider), _known_partitions():
            self.release(*self._no_records(), 1)
        return len(provider.exacts)

    def _no_records(self) -> tuple[Any, Public]:
        return np.zeros((0, self.columns)), {}


@dataclass(frozen=True)
class NamedReleasesMeasure(ReleaseMeasure):
    """Exact values of several named densities of one budget, of two columns: each alone, and both together.

    What a record adds to each of them the reference does not say: it knows records that count in all columns or none.
    """

    competes_where_it_counts: bool = False

    @property
    def ones(self) -> int:
        """One in each stage of each density."""
        return 6

    def release(self, source: Any, keywords: Public, most: int) -> Any:
        """Release three densities."""
        groups = {"first": ["a"], "second": ["b"], "both": ["a", "b"]}
        bounds = {"a": BOUNDS, "b": BOUNDS}
        return fogline.release(
            source, columns=groups, bounds=bounds, epsilon=1.0, max_contributions=most, **dict(keywords)
        )

    def vector_of(self, item: Item) -> Any:  # noqa: ARG002
        """Not said: a record may count in some of the densities."""
        return UNSURE

    def _no_records(self) -> tuple[Any, Public]:
        import polars as pl

        return pl.DataFrame({"a": [], "b": []}, schema={"a": pl.Float64, "b": pl.Float64}), {}


@dataclass(frozen=True)
class ProfileMeasure(ReleaseMeasure):
    """Exact values of all stages of :func:`fogline.profile`: one column of numbers, the second of categories.

    `found` says that both are numbers whose ranges are found, in stages of their own. Every record is counted in every
    column, among the missing where it has no value; of a line that cannot be read the reference does not say it.
    """

    found: bool = False
    competes_where_it_counts: bool = False

    @property
    def ones(self) -> int:
        """One per column in the pilot and in the counts, and in the stages before them."""
        return (4 if self.found else 2) * self.columns

    def release(self, source: Any, keywords: Public, most: int) -> Any:
        """Profile a source."""
        given: dict[str, Any] = {"epsilon": 1.0, "max_contributions": most, **keywords}
        if isinstance(source, np.ndarray):
            return fogline.profile(source, bounds=None if self.found else [BOUNDS] * self.columns, **given)
        columns = ["a", "b"][: self.columns]
        given |= {"columns": columns, "steps": dict.fromkeys(columns[:1])}  # a step of an integer type: without
        if self.found:
            return fogline.profile(source, numeric=columns, **given | {"steps": dict.fromkeys(columns)})
        lists = {name: ["1", "2", "Ann", "café", "true"] for name in columns[1:]}
        return fogline.profile(source, bounds={"a": BOUNDS}, categories=lists, **given)

    def _is_open(self, item: Item) -> bool:
        return self.found or self.columns > 1 or any(np.isnan(item.values))


@contextmanager
def _known_partitions() -> Iterator[None]:
    """Plan each partition once: it is a function of released numbers, which are the same for all tables here."""
    before = {module: module.plan_partition for module in (leaf_release, profile)}
    for module in before:
        module.plan_partition = _known_partition  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module, real in before.items():
            module.plan_partition = real  # type: ignore[attr-defined]


_partitions: dict[tuple[Any, ...], Any] = {}


def _known_partition(spec: LeafSpec, pilot: Any, noise: Any) -> Any:
    key = (repr(spec.to_dict()), pilot.counts.tobytes(), pilot.boxes.tobytes(), pilot.noise, noise)
    if key not in _partitions:
        _partitions[key] = plan_partition(spec, pilot, noise)
    return _partitions[key]


def _published(found: Any) -> Hashable:
    """What a release says of itself, as text."""
    return json.dumps(found.to_dict() if hasattr(found, "to_dict") else repr(found), sort_keys=True, default=repr)


def look(measure: Measure, opened: Opened, public: Public, most: int) -> Reading:
    """Read a source once, under the public circumstances that are asked for, and keep all that is seen."""
    log = _Log()
    logging.getLogger().addHandler(log)
    try:
        with warnings.catch_warnings(record=True) as said, _circumstances(public):
            warnings.simplefilter("always")
            try:
                vector, shown = measure.read(opened, public, most)
                outcome: Hashable = ("read", shown)
            except Exception as error:
                vector, outcome = None, ("error", type(error).__name__, str(error))
    finally:
        logging.getLogger().removeHandler(log)
    heard = tuple(f"{warning.category.__name__}: {warning.message}" for warning in said if not _is_outside(warning))
    return Reading(vector, (outcome, heard, tuple(log.lines)))


@contextmanager
def _circumstances(public: Public) -> Iterator[None]:
    """Public settings of the process, and the fixed key of the choice."""
    with ExitStack() as stack:
        stack.enter_context(seeded_noise(KEY_SEED))
        if public.get("numpy errors") == "raise":
            stack.enter_context(np.errstate(all="raise"))
        if public.get("pyarrow") == "hidden":
            stack.enter_context(_hidden("pyarrow"))
        yield


@contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Make a package look as if it were not installed."""
    taken = {key: sys.modules[key] for key in sys.modules if key == name or key.startswith(f"{name}.")}
    for key in {name, *taken}:
        sys.modules[key] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for key in {name, *taken}:
            sys.modules.pop(key, None)
        sys.modules.update(taken)


def _state(opened: Opened, public: Public, most: int, spec: Any) -> tuple[Any, Hashable]:
    if public.get("entry") == "fit":
        return releases.sketch(opened.source, spec).state(), ()
    table = sources.table(opened.source, **opened.keywords)
    shown = (table.columns, _width(table), table.unit, table.row, repr(table), repr(sorted(table.facts.items())))
    return releases.sketch(table, spec, max_contributions=most).state(), shown


def _width(table: Any) -> Hashable:
    """Number of columns; a plain list does not tell it."""
    try:
        return int(table.width)
    except ValueError as error:
        return str(error)


def _flat(state: tuple[Any, Any]) -> IntArray:
    return np.concatenate([np.ravel(part).astype(np.int64) for part in state])


def _is_outside(warning: warnings.WarningMessage) -> bool:
    """Whether a warning is about the process and not about data: open files and the like."""
    return issubclass(warning.category, ResourceWarning)


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
