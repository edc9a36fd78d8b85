"""One way in for every kind of source: bring its records to a sketch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_dense, records
from fogline.engines.files import FileTable
from fogline.sketch import DensitySketch, PrivateDensity
from fogline.sketch.density_sketch import ReleaseTerms, release_density
from fogline.sketch.planning import Spec
from fogline.sketch.random_spec import RandomSpec

__all__ = ["Pass", "as_source", "feed", "names_of", "release_source", "unit_of", "width_of"]


def as_source(X: Any) -> Any:
    """Turn a path into a table of all its columns; anything else is left as it is, but no sparse matrix."""
    check_dense(X)
    return FileTable(X) if isinstance(X, str | Path) else X


def width_of(source: Any) -> int | None:
    """Give the number of columns of a source as its schema tells it, None where only its rows could."""
    if isinstance(source, FileTable):
        return len(source.columns)
    shape = getattr(source, "shape", None)
    if shape is None or len(shape) not in (1, 2):
        return None
    return 1 if len(shape) == 1 else int(shape[1])


def names_of(source: Any) -> tuple[str, ...] | None:
    """Names of a source's columns, as its schema tells them; None where they have no names."""
    names = getattr(source, "columns", None)
    return None if names is None else tuple(map(str, names))


def unit_of(source: Any) -> str:
    """What one row of a source is: a line of a text file, else a record."""
    return source.unit if isinstance(source, FileTable) else "record"


def feed(sketch: DensitySketch, source: Any) -> None:
    """Count the records of an array, a frame, a path or a :class:`FileTable` into a sketch."""
    Pass(source, sketch).run()


def release_source(source: Any, spec: Spec, terms: ReleaseTerms, ledger: Any = None) -> PrivateDensity:
    """Release the density of a source once: what every estimator's ``fit`` does between validating and reading.

    Errors of the schema come first, then the noise is drawn (and, with a ledger, the budget reserved), and only then
    are the records counted. When that fails, with a ledger or without, the error is a constant, and nothing in the
    traceback below this call leads to them.
    """
    columns = names_of(source)
    one_pass = Pass(source, DensitySketch.of(spec))
    del source
    try:
        return release_density(spec, terms, one_pass.run, ledger, columns=columns)
    finally:
        one_pass.forget()


class Pass:
    """One pass over a source: errors of its schema come when it is made, records are counted when it is run.

    Parameters
    ----------
    source : array, frame, path or FileTable
    sketch : DensitySketch
        What the records are counted into.
    """

    def __init__(self, source: Any, sketch: DensitySketch) -> None:
        source = as_source(source)
        if isinstance(source, FileTable):
            source.require_width(sketch.spec.d)
        else:
            source = records(source, sketch.spec.d)
        self._held: tuple[Any, DensitySketch] | None = (source, sketch)

    def run(self) -> NDArray[np.int64]:
        """Count the records and return the sketch's table."""
        if self._held is None:
            raise RuntimeError("this pass is over")
        source, sketch = self._held
        if not isinstance(source, FileTable):
            sketch.update(source)
        elif isinstance(sketch.spec, RandomSpec):
            source.each_batch(sketch.update)
        else:
            sketch.add_cells(*source.count_cells(sketch.spec))
        return sketch.table()

    def forget(self) -> None:
        """Let go of the source and the sketch: an error's traceback must not lead to the records."""
        self._held = None
