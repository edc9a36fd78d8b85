"""Passes over a source, as often as a staged algorithm needs them.

One way in for every kind of source: bring its records to a sketch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_max_contributions, records
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import Spec
from fogline.release.density_sketch import DensitySketch, ReleaseTerms, release_density
from fogline.release.sketch_file import ROW_BY_ROW, Provenance
from fogline.sources.registry import as_source
from fogline.sources.table import UNDECLARED, Table

__all__ = [
    "Pass",
    "RecordPasses",
    "as_source",
    "facts_of",
    "feed",
    "names_of",
    "public_width",
    "release_source",
    "sketch",
    "unit_of",
    "width_of",
]


def width_of(source: Any) -> int | None:
    """Give the number of columns of a source as its schema tells it, None where only its rows could."""
    if isinstance(source, Table):
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
    return source.facts if isinstance(source, Table) else {}


def unit_of(source: Any) -> str:
    """What is protected as a whole: a line of a text file, what a table's unit names, else a record."""
    return source.unit if isinstance(source, Table) else "record"


def sketch(source: Any, spec: Spec, *, max_contributions: int = 1) -> DensitySketch:
    """Sketch of a source's records: the same exact state from every engine.

    Parameters
    ----------
    source : array, frame, path or Table
        Whatever :func:`fogline.sources.registry.table` takes.
    spec : SketchSpec or RandomSpec
        Of :class:`fogline.DensitySketch`, its ``spec``.
    max_contributions : int, default 1
        Most records of a unit that count, where the source has a unit. A release of the sketch as it is then says that
        this was enforced.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> from fogline.datasets.tables import load_faithful
    >>> from fogline.sources.passes import sketch
    >>> spec = DensitySketch(bounds=[(1, 6), (40, 100)]).spec
    >>> counts = sketch(load_faithful().path, spec).state()[1]      # secret
    >>> int(counts.sum())
    272
    """
    result = DensitySketch.of(spec)
    feed(result, source, max_contributions=max_contributions)
    return result


def feed(sketch: DensitySketch, source: Any, *, max_contributions: int = 1) -> None:
    """Count the records of an array, a frame, a path or a :class:`Table` into a sketch.

    A source with a unit goes into an empty sketch, or into one that was cut by the same unit: what is left of a unit
    then adds up.
    """
    Pass(source, sketch, max_contributions).run()


def release_source(source: Any, spec: Spec, terms: ReleaseTerms, ledger: Any = None) -> PrivateDensity:
    """Release the density of a source once: what every estimator's ``fit`` does between validating and reading.

    Errors of the schema come first, then the noise is drawn (and, with a ledger, the budget reserved), and only then
    are the records counted. When that fails, with a ledger or without, the error is a constant, and nothing in the
    traceback below this call leads to them.
    """
    columns, facts = names_of(source), facts_of(source)
    one_pass = Pass(source, DensitySketch.of(spec), terms.max_contributions)
    del source
    try:
        terms.warn()
        return release_density(spec, terms, one_pass.run, ledger, columns=columns, facts=facts)
    finally:
        one_pass.forget()


class Pass:
    """One pass over a source: errors of its schema come when it is made, records are counted when it is run.

    Parameters
    ----------
    source : array, frame, path or Table
    sketch : DensitySketch
        What the records are counted into.
    max_contributions : int
        Most records of a unit that count, where the source has a unit.
    """

    def __init__(self, source: Any, sketch: DensitySketch, max_contributions: int = 1) -> None:
        source, most = as_source(source), check_max_contributions(max_contributions)
        self._provenance = ROW_BY_ROW
        if isinstance(source, Table):
            source.require_width(sketch.spec.d)
            if source.is_enforced:
                self._provenance = Provenance(unit=source.unit, most=most)
            source = source.bounded(most)
        else:
            source = records(source, sketch.spec.d)
        sketch.provenance.joined(self._provenance)  # refused here, before anything is read
        self._held: tuple[Any, DensitySketch] | None = (source, sketch)

    def run(self) -> NDArray[np.int64]:
        """Count the records and return the sketch's table."""
        if self._held is None:
            raise RuntimeError("this pass is over")
        source, sketch = self._held
        if isinstance(source, Table):
            sketch.add_state(*source.state(sketch.spec), provenance=self._provenance)
        else:
            sketch.update(source)
        return sketch.table()

    def forget(self) -> None:
        """Let go of the source and the sketch: an error's traceback must not lead to the records."""
        self._held = None


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
