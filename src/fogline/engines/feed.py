"""One way in for every kind of source: bring its records to a sketch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fogline._validation import check_dense
from fogline.engines.files import FileTable
from fogline.sketch import DensitySketch

__all__ = ["as_source", "feed", "width_of"]


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


def feed(sketch: DensitySketch, source: Any) -> None:
    """Count the records of an array, a frame, a path or a :class:`FileTable` into a sketch."""
    source = as_source(source)
    if isinstance(source, FileTable):
        sketch.add_cells(*source.count_cells(sketch.spec))
    else:
        sketch.update(source)
