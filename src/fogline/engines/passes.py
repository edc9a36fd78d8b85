"""Passes over a source, as often as a staged algorithm needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import records
from fogline.engines.feed import facts_of
from fogline.engines.registry import as_source
from fogline.engines.tables import Table

__all__ = ["RecordPasses"]

BATCH_ROWS = 4096
"""Most rows that are handed over at a time: proofs of exact sums count on it, whatever batches an engine makes."""


class RecordPasses:
    """Passes over a source, batch by batch: errors of its schema come when it is made.

    Parameters
    ----------
    source : array, frame, path or Table
    d : int
        Columns that are wanted.
    """

    def __init__(self, source: Any, d: int) -> None:
        source = as_source(source)
        if isinstance(source, Table):
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
        if isinstance(self._source, Table):
            self._source = self._source.bounded(max_contributions)

    def each(self, take: Callable[[NDArray[np.float64]], object]) -> None:
        """Hand over all records, in batches of shape (rows, d) of at most ``BATCH_ROWS`` rows."""
        if self._source is None:
            raise RuntimeError("these passes are over")

        def in_parts(rows: Any) -> None:
            for start in range(0, len(rows), BATCH_ROWS):
                take(records(rows[start : start + BATCH_ROWS], self._d))

        if isinstance(self._source, Table):
            self._source.each_batch(in_parts)
        else:
            in_parts(self._source)

    def forget(self) -> None:
        """Let go of the records: an error's traceback must not lead to them."""
        self._source = None
        self.memory = {}
