"""Passes over a source, as often as an algorithm needs them, and what its schema tells of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fogline._typing import FloatArray
from fogline._validation import records
from fogline.sources.registry import as_source
from fogline.sources.tables import UNDECLARED, Source

__all__ = [
    "RecordPasses",
    "as_source",
    "facts_of",
    "names_of",
    "public_width",
    "unit_of",
    "width_of",
]


def width_of(source: Any) -> int | None:
    """Give the number of columns of a source as its schema tells it, None where only its rows could."""
    if isinstance(source, Source):
        return source.declared_width
    shape = getattr(source, "shape", None)
    if shape is None or len(shape) not in (1, 2):
        return None
    return 1 if len(shape) == 1 else int(shape[1])


def public_width(source: Any, declared: int | None) -> int:
    """Give the number of columns of a source, or the one that a public parameter declares where its schema does not."""
    width = width_of(source)
    if width is None:
        width = declared
    if width is None:
        raise ValueError(UNDECLARED)
    return width


def names_of(source: Any) -> tuple[str, ...] | None:
    """Names of a source's columns, as its schema tells them; None where they have no names."""
    names = getattr(source, "columns", None)
    return None if names is None else tuple(map(str, names))


def facts_of(source: Any) -> dict[str, Any]:
    """What else of a source belongs into a ledger's question: the query, where there is one."""
    return source.facts if isinstance(source, Source) else {}


def unit_of(source: Any) -> str:
    """What is protected as a whole: a line of a text file, what a table's unit names, else a record."""
    return source.unit if isinstance(source, Source) else "record"


BATCH_ROWS = 4096
"""Most rows that are handed over at a time: proofs of exact sums count on it, whatever batches an engine makes."""


class RecordPasses:
    """Passes over a source, batch by batch: errors of its schema come when it is made.

    Parameters
    ----------
    source : array, frame, path or Source
    d : int
        Columns that are wanted.
    """

    def __init__(self, source: Any, d: int) -> None:
        source = as_source(source)
        if isinstance(source, Source):
            source.require_width(d)
            if not source.rereadable:
                raise TypeError("X can be read only once, but several passes are needed: write it to Parquet first")
        elif isinstance(source, np.ndarray) and source.ndim == 2 and not isinstance(source, np.ma.MaskedArray):
            records(source[:0], d)  # batches are converted one at a time
        else:
            source = records(source, d)
        self._source: Any = source
        self._d = d
        self.facts: dict[str, Any] = facts_of(source)
        """What of the source, beside columns and unit, belongs into a ledger's question."""
        self.memory: dict[str, Any] = {}
        """Secret: what a pass wants to keep for the next."""

    def bound(self, max_contributions: int) -> None:
        """Cut the records of each unit to so many, where the source has units; the same ones in every pass."""
        if isinstance(self._source, Source):
            self._source = self._source.bounded(max_contributions)

    def each(self, take: Callable[[FloatArray], object]) -> None:
        """Hand over all records, in batches of shape (rows, d) of at most ``BATCH_ROWS`` rows."""
        if self._source is None:
            raise RuntimeError("these passes are over")

        def in_parts(rows: Any) -> None:
            for start in range(0, len(rows), BATCH_ROWS):
                take(records(rows[start : start + BATCH_ROWS], self._d))

        if isinstance(self._source, Source):
            self._source.each_batch(in_parts)
        else:
            in_parts(self._source)

    def forget(self) -> None:
        """Let go of the records: an error's traceback must not lead to them."""
        self._source = None
        self.memory = {}
