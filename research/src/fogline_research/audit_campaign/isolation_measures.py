"""What is compared between two neighbours: exact states, as vectors of integers, and everything else that is seen.

A measure reads a source through the public functions and gives the exact integers that a release would add noise to. It
also says which vector one item of the table is, according to the reference reader, where that is sure.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fogline import DensitySketch, releases, sources
from fogline.density.leaves import LeafSpec
from fogline.density.random_spec import CellSpec, RandomSpec
from fogline.density.spec import SketchSpec
from fogline.estimators.strata import private_strata
from fogline.mechanisms.randomness import Call, Query, Sample, use_provider
from fogline.testing import seeded_noise
from fogline_research.audit_campaign.forms.base import Opened
from fogline_research.audit_campaign.reference_reader import NOBODY, NOWHERE, UNSURE, Item, cell_of

__all__ = ["BOUNDS", "GridMeasure", "LeafMeasure", "Measure", "RandomMeasure", "Reading", "StrataMeasure", "look"]

IntArray = NDArray[np.int64]
Public = Mapping[str, Any]

BOUNDS = (-3.0, 10.0)
"""Of every axis: not symmetric, and the edges of cells are no short binary fractions."""

CELLS = 32
"""Cells of an axis."""

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
class RandomMeasure:
    """Sums of random features of four columns."""

    columns: int = 4
    is_count: bool = False
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
