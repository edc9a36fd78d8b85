"""Which engine reads a source: found by the source's type, without importing a library that made none of them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fogline._typing import Ids, SourceLike
from fogline.sources.files import FileTable
from fogline.sources.paths import ADDRESSES
from fogline.sources.reading import ReadingOptions, require_text_source
from fogline.sources.tables import Progress, Source, unit_name

__all__ = ["as_source", "table"]

ADAPTERS = {
    "scipy": "fogline.sources.frames",
    "duckdb": "fogline.sources.frames",
    "_duckdb": "fogline.sources.frames",
    "sqlite3": "fogline.sources.databases",
    "psycopg": "fogline.sources.databases",
    "pyspark": "fogline.sources.spark",
    "dask": "fogline.sources.dask",
}
"""Modules that adapt the types of a library, by the library's name; they have a function ``adapt``."""


def table(
    source: SourceLike,
    columns: Sequence[str] | None = None,
    *,
    query: str | None = None,
    unit: str | Ids | None = None,
    progress: Progress | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str = "utf-8",
    null: Sequence[str] = (),
    header: Sequence[str] | None = None,
) -> Source:
    """Some columns of a source as a table that every estimator's ``fit`` takes.

    Parameters
    ----------
    source : path, address, connection, frame or array
        A CSV or Parquet file, a folder of them or a pattern such as ``"visits/*.parquet"``;
        ``"postgres://..."``, ``"sqlite:///file.db"``, or a connection of psycopg or sqlite3;
        a Spark or Dask data frame, a Dask array; a DuckDB relation; a pandas, polars or Arrow table or
        whatever else narwhals knows, a reader of Arrow batches; a numpy array or a sparse matrix of scipy, whose zeros
        are values.
    columns : sequence of str, optional
        Names of the columns, in the order of the bounds; by default all, but the unit's.
    query : str, optional
        For databases: a SELECT, or the name of a table.
    unit : str or array of ids, optional
        The column that says whose record a row is. At most ``max_contributions`` records of a unit then count, chosen
        by a keyed hash; the guarantee is for whole units. For an array, which has no names, the ids themselves, one for
        each row. A row whose id is missing contributes nothing. Without a unit every row is one of its own.
    progress : callable, optional
        Told the rows read so far, where rows are read on this machine: a number as secret as the records.
    delimiter, decimal, thousands, encoding, null, header
        How a text file is read; see :class:`ReadingOptions`. Other sources state their own types and take none.

    Returns
    -------
    Table

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import PrivateModes
    >>> from fogline.sources.registry import table
    >>> rng = np.random.default_rng(0)
    >>> visits = table(rng.normal(5, 1, size=(9000, 1)), unit=rng.integers(3000, size=9000))
    >>> model = PrivateModes(epsilon=1.0, delta=1e-6, bounds=[(0, 10)], max_contributions=2).fit(visits)
    >>> model.guarantee_.unit, model.guarantee_.max_contributions, model.guarantee_.enforced
    ('unit', 2, True)
    """
    if isinstance(source, Source):
        raise TypeError("source is a table already: name its columns and its unit where it is made")
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
        "encoding": encoding,
        "null": null,
        "header": header,
    }
    is_address = isinstance(source, str) and source.startswith(ADDRESSES)
    module = _adapter(source)
    if is_address or not isinstance(source, str | Path):
        # An option that has no effect would be a silent misreading of the caller's wish.
        require_text_source(ReadingOptions(**reading), "this source")
    if is_address or module == "fogline.sources.databases":
        from fogline.sources.databases import adapt

        return adapt(source, columns, query=query, unit=unit_name(unit), progress=progress)
    # else it would be taken for a file that is not there
    if isinstance(source, str) and (other := re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", source)):
        raise ValueError(f"source: expected postgres:// or sqlite:// of addresses, got {other.group()}")
    if query is not None:
        raise TypeError("query is for databases, by a connection or an address")
    if isinstance(source, str | Path):
        return FileTable(source, columns, unit=unit_name(unit), progress=progress, **reading)
    found: Source = importlib.import_module(module or "fogline.sources.frames").adapt(source, columns, unit, progress)
    return found


def as_source(X: SourceLike) -> SourceLike:
    """Turn what has an engine of its own into a table of all its columns; arrays, frames and lists stay as they are."""
    if isinstance(X, str) and X.startswith(ADDRESSES):
        raise TypeError("X: name what to read, by fogline.sources.registry.table(address, query=...)")
    if isinstance(X, Source):
        return X
    # whether zeros of a sparse matrix are values or missing is for its owner to say
    if hasattr(X, "tocsr"):
        raise TypeError(
            "X: sparse input is not supported as it is; pass fogline.sources.registry.table(X) if zeros are values"
        )
    if isinstance(X, str | Path) or _adapter(X) is not None:
        return table(X)
    if hasattr(X, "read_next_batch") or hasattr(X, "collect_schema"):  # a reader of Arrow batches, a lazy frame
        from fogline.sources.frames import adapt

        lazy = not hasattr(X, "__array__")
        return adapt(X, None, None, None) if lazy else X
    return X


def _adapter(source: object) -> str | None:
    """Module that adapts sources of this type; by the names of its classes' modules alone."""
    # By names of modules: importing a library in order to ask isinstance would load all of them for every array.
    for cls in type(source).__mro__:
        module = ADAPTERS.get(cls.__module__.partition(".")[0])
        if module is not None:
            return module
    return None
