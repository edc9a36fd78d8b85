"""The secret side of a sketch: exact counts of records, and what must be known of them to release them.

Whatever becomes of the counts (merged, saved, read again, taken over by a site), three facts go with them: which
records they are (:mod:`~fogline.sketch.origins`), how they were counted (:mod:`~fogline.sketch.provenance`), and
whether some were taken back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fogline import _validation
from fogline.sketch.histogram import CellCounts
from fogline.sketch.origins import Origin, keep_at, require_apart, require_own
from fogline.sketch.planning import Spec
from fogline.sketch.provenance import NOTHING, ON_TRUST, ROW_BY_ROW, Provenance
from fogline.sketch.random_features import PhaseSums
from fogline.sketch.random_spec import RandomSpec
from fogline.sketch.sketch_file import SketchFile, read_sketch, write_sketch

__all__ = ["RecordCounts"]

MOST_PARTS = 2**20
"""Counts made elsewhere are taken on trust only so far that their sum, over all parts, stays below 2^61."""


class RecordCounts:
    """Exact, mergeable counts of records in a public box: a :class:`fogline.DensitySketch` before its release."""

    spec: Spec

    @classmethod
    def of(cls, spec: Spec) -> Self:
        """Empty sketch of a given specification."""
        sketch = cls.__new__(cls)
        sketch._start(spec)
        return sketch

    def _start(self, spec: Spec) -> None:
        self.spec = spec
        self._counts = PhaseSums(spec) if isinstance(spec, RandomSpec) else CellCounts(spec)
        self._origins: tuple[Origin, ...] = (Origin(),)
        self._files: dict[Path, tuple[str, ...]] = {}
        self._declared = 0
        self._signed = False
        self._provenance = NOTHING
        self._whole = True
        self._counting_lock = threading.RLock()
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a DensitySketch holds secret counts and is not pickled: use save(), and guard the file")

    @contextmanager
    def _counting(self, added: Provenance) -> Iterator[None]:
        """Count within this, one thread at a time; what stays counted in part can be neither released nor resumed."""
        with self._counting_lock:
            self._require_whole()
            joined = self._provenance.joined(added)
            self._whole = False
            yield
            self._provenance, self._whole = joined, True

    def _require_whole(self) -> None:
        if not self._whole:
            raise RuntimeError(
                "counting was interrupted, and some records may be in here twice: count into a new sketch"
            )

    def update(self, X: Any) -> Self:
        """Count more records; X has one row a record and one column an axis. Returns the sketch itself.

        Refused where the records that are in here were cut by a unit: nobody knows whose the new ones are.
        """
        rows = _validation.records(X, self.spec.d)
        with self._counting(ROW_BY_ROW):
            self._counts.add_rows(rows)
        return self

    def subtract(self, X: Any) -> Self:
        """Take records back, exactly: those of a person who asks to be deleted. Returns the sketch itself.

        Nothing is said about records that were never there: they count as minus one, and a person's entries, added and
        taken back, that do not cancel must be at most ``max_contributions`` (see the proof, section 6). The guarantee
        of a later release says that records were taken back. Refused where records were cut by a unit, since nobody
        knows which of them were kept.
        """
        rows = _validation.records(X, self.spec.d)
        with self._counting(ROW_BY_ROW):
            self._signed = True
            self._counts.take_rows(rows)
        return self

    def add_cells(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> Self:
        """Add counts of distinct cells that were made elsewhere by the same rule. Returns the sketch itself.

        They are taken on trust, as of records that were not cut by a unit, and the guarantee says so.
        """
        if not isinstance(self._counts, CellCounts):
            raise TypeError("cells are counted for grid features; records are added by update()")
        return self.add_state(keys, counts)

    def add_state(
        self, keys: NDArray[np.int64], counts: NDArray[np.int64], *, provenance: Provenance = ON_TRUST
    ) -> Self:
        """Add the :meth:`state` of other records, made to this specification. Returns the sketch itself.

        Parameters
        ----------
        keys, counts : int64 arrays
        provenance : Provenance
            How the records were counted, for engines that saw to it. By default this is taken on trust, and the
            guarantee says so.
        """
        state = self._counts.checked(keys, counts, signed=self._signed)
        self._declare(1)
        with self._counting(provenance):
            self._counts.add_state(*state)
        return self

    def _declare(self, parts: int) -> None:
        if self._declared + parts > MOST_PARTS:
            raise ValueError(f"counts of more than {MOST_PARTS} parts cannot be added up safely")
        self._declared += parts

    @classmethod
    def from_state(
        cls,
        spec: Spec,
        state: tuple[Any, Any],
        *,
        signed: bool = False,
        provenance: Provenance = ON_TRUST,
        origins: Sequence[Origin] = (),
        files: Mapping[Path, tuple[str, ...]] | None = None,
    ) -> Self:
        """Sketch with a given :meth:`state`, checked as far as that can be; ``signed`` if records were taken back.

        The rest is for files: how the records were counted, whose they are, and where they are kept.
        """
        sketch = cls.of(spec)
        sketch._origins = tuple(origins) or sketch._origins
        sketch._signed = signed
        sketch.add_state(*state, provenance=provenance)
        sketch._files = dict(files or {})
        return sketch

    def merge(self, other: RecordCounts, *, disjoint_persons: bool = False) -> Self:
        """Return a new sketch of both record sets; refused, with the field that differs, for unlike sketches.

        A release of the merged sketch counts as one of its parts, and one of a part as one of the whole. Sketches that
        share records are refused: a file and its copy, a snapshot and the stream that ran on. Where the records were
        cut by a unit, both must be cut by the same, and what is left of a unit adds up.

        Parameters
        ----------
        other : DensitySketch
        disjoint_persons : bool
            Declare that no unit is in both, so that what is left of one does not add up.
        """
        self.spec.require_same(other.spec)
        provenance = self._provenance.joined(other._provenance, disjoint=disjoint_persons)
        return self.merge_as(other, provenance)

    def merge_as(self, other: RecordCounts, provenance: Provenance) -> Self:
        """Merge where somebody else knows how the records of both were counted: the sites that did it."""
        for part in (self, other):  # the merged sketch would pass for one of this process
            part.require_own()
        require_apart(self._origins, other._origins)
        merged = type(self).of(self.spec)
        merged._origins = (*self._origins, *other._origins)
        merged._files = {**self._files, **other._files}
        merged._declare(self._declared + other._declared)
        merged._signed = self._signed or other._signed
        with merged._counting(provenance):
            for part in (self, other):
                merged._counts.add_state(*part.state())
        return merged

    def require_own(self) -> None:
        """Refuse a copy that came into this process by a fork: its releases are not seen where it was made."""
        require_own(self._process)

    def state(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Secret: cells that are not empty and their counts, or the count and the sums of random features.

        Equal record sets have equal states.
        """
        with self._counting_lock:
            self._require_whole()
            return self._counts.state()

    @property
    def payers(self) -> list[str]:
        """Who paid for releases of these records so far: ids of ledgers, or that there was none."""
        return sorted({origin.payer for origin in self._origins})

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Which records are in here: ids, which say nothing about them."""
        return self._origins

    @property
    def provenance(self) -> Provenance:
        """How the records were counted: row by row, or cut to at most so many of each unit. Public."""
        return self._provenance

    @property
    def signed(self) -> bool:
        """Whether records were taken back."""
        return self._signed

    def table(self) -> NDArray[np.int64]:
        """Secret: counts as an array with one axis for each of the box's, or the integer vector of random features."""
        with self._counting_lock:
            self._require_whole()
            return self._counts.table()

    def save(self, path: str | Path) -> None:
        """Write the sketch, counts included, to a file: a snapshot, whole or not at all, while a stream runs on.

        The file is as secret as the records, and for its owner alone (mode 0600).
        """
        place = Path(path).resolve()
        with self._counting_lock:
            origins = self.kept_at(place)
            write_sketch(place, SketchFile(self.spec, self.state(), self._signed, self._provenance, origins))

    def kept_at(self, path: Path) -> tuple[Origin, ...]:
        """Note that the records go into a file, and give their origins as they stand there; none for no records."""
        self.require_own()
        if not self._provenance.counted and not any(self.payers):
            return ()
        keep_at(self._origins, path, self._files)
        return self._origins

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a sketch written by :meth:`save`."""
        place = Path(path).resolve()
        found = read_sketch(place)
        return cls.from_state(
            found.spec,
            found.state,
            signed=found.signed,
            provenance=found.provenance,
            origins=found.origins,
            files={place: tuple(origin.run for origin in found.origins)},
        )
