"""The answer of a warehouse in a file: exact counts, as secret as the records, checked before anything is paid.

What is wrong with such a file is told by its structure, never by a value in it. None of these errors can come from the
answer to the query that fogline printed: they tell of a file that is no such answer.
"""

from __future__ import annotations

import csv
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

import numpy as np

from fogline._typing import IntArray
from fogline.density.random_spec import CellSpec
from fogline.queries.fourier_sums import CellCounts
from fogline.sources.warehouse import GRID_COLUMNS, NO_CELL

__all__ = ["SecretFileOpen", "check_secret_file", "read_counts"]

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,19}(\.0*)?\s*")
_CUT_SHORT = "is the answer cut short, as by a limit of the client?"


LONGEST_ROW = 1000
"""Characters of a row: three numbers and a text of less than a hundred, in whatever way a client writes them."""

MOST_MEMORY = "512MB"
"""What DuckDB may hold of a Parquet file of counts."""


ROWS_AT_A_TIME = 2**9
"""Rows of a Parquet file of counts that are held as Python's numbers and texts."""


class SecretFileOpen(PermissionError):
    """A file of exact counts can be read by everybody on this machine."""


def check_secret_file(path: Path, *, allow_readable: bool = False) -> str:
    """Refuse a file that everybody can read; return a caution where a group can, or where it was allowed.

    Parameters
    ----------
    path : Path
    allow_readable : bool
        Whether the owner says that it may be so.
    """
    if not path.is_file():
        raise FileNotFoundError(f"counts: there is no file {str(path)!r}")
    mode = path.stat().st_mode
    if os.name != "posix" or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return ""
    if mode & stat.S_IROTH and not allow_readable:
        raise SecretFileOpen(
            f"counts: everybody on this machine can read {path.name}, and it is as secret as the records: "
            f"chmod 600 {path.name}, or say that this is meant (allow_readable)"
        )
    return f"others on this machine can read {path.name}, and it is as secret as the records: chmod 600 {path.name}"


def read_counts(path: Path, spec: CellSpec) -> tuple[IntArray, IntArray, str]:
    """Read cells, counts and the grid that all rows bear.

    Parameters
    ----------
    path : Path
        CSV (the name ends in .csv or .csv.gz) or Parquet.
    spec : SketchSpec or LeafSpec

    Returns
    -------
    cells, counts : int64 arrays
        Secret.
    grid : str
        Public: see :class:`fogline.sources.warehouse.WarehouseQuery`.
    """
    most = int(np.prod(spec.cells, dtype=object)) + 1
    rows = _rows(path, most + 1)
    cells, counts, totals, grids = [], [], [], set()
    for n, (cell, records, total, grid) in enumerate(rows):
        if n >= most:
            raise ValueError("counts: there are more rows than cells of the grid")
        cells.append(_whole(cell, "cell"))
        counts.append(_whole(records, "records"))
        totals.append(_whole(total, "total"))
        grids.add(grid)
        if len(grids) > 1 or not isinstance(grid, str):  # at once: as many long texts as rows would be held else
            raise ValueError("counts: column grid must be one and the same text in all rows, as the query gives it")
    if cells.count(NO_CELL) != 1:
        raise ValueError(f"counts: there must be one row with the cell {NO_CELL}; {_CUT_SHORT}")
    marker = cells.index(NO_CELL)
    if counts[marker] != 0:
        raise ValueError(f"counts: the row with the cell {NO_CELL} must have no records, as the query gives it")
    whole = sum(counts)
    if totals[marker] == 0:
        del totals[marker]  # queries of earlier versions left it out there
    if any(total != whole for total in totals):
        raise ValueError(
            f"counts: they do not add up to the total that every row bears: a row is missing or too many; {_CUT_SHORT}"
        )
    del cells[marker], counts[marker]
    try:
        checked = CellCounts(spec).checked(np.array(cells, dtype=np.int64), np.array(counts, dtype=np.int64))
    except (ValueError, OverflowError) as error:
        words = str(error) if isinstance(error, ValueError) else "a number is too large"
        raise ValueError(f"counts: {words}") from None
    return *checked, str(grids.pop())


def _whole(cell: Any, column: str) -> int:
    """A whole number as files have it: an integer, or a text or decimal without a fraction."""
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        return int(cell)
    if isinstance(cell, str) and _WHOLE.fullmatch(cell):
        return int(cell.strip().split(".")[0])
    if isinstance(cell, Decimal | float):
        number = float(cell)
        if abs(number) < 2.0**53 and cell == int(number):  # false for NaN
            return int(number)
    raise ValueError(f"counts: column {column} must hold whole numbers in every row, none missing and none fractional")


def _rows(path: Path, most: int) -> Iterator[tuple[Any, ...]]:
    """Rows of the four columns, whatever their order and the case of their names; not many more than `most`."""
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return _chosen(_csv_rows(path, most))
    if name.endswith(".parquet"):
        return _chosen(_parquet_rows(path, most))
    raise ValueError(f"counts: {path.name} must be a .csv, .csv.gz or .parquet file")


def _chosen(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    lines = iter(rows)
    header = [str(name).strip().lower() for name in next(lines, ())]
    for name in GRID_COLUMNS:
        if header.count(name) != 1:
            raise ValueError(f"counts: there must be one column {name!r}; the query gives {', '.join(GRID_COLUMNS)}")
    if len(header) != len(GRID_COLUMNS):
        raise ValueError(f"counts: there are columns beside {', '.join(GRID_COLUMNS)}")
    places = [header.index(name) for name in GRID_COLUMNS]
    for row in lines:
        if not row:
            continue
        if len(row) != len(header):
            raise ValueError("counts: every row must have as many cells as the header")
        yield tuple(row[place] for place in places)


def _csv_rows(path: Path, most: int) -> Iterator[Sequence[Any]]:
    import gzip
    import zlib

    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        try:
            yield from csv.reader(_bounded_lines(file, (most + 1) * LONGEST_ROW))
        except (
            csv.Error,
            UnicodeDecodeError,
            OSError,
            EOFError,
            zlib.error,
        ):  # the last two: gzip cut short, or damaged
            raise ValueError(f"counts: {path.name} cannot be read as CSV in UTF-8") from None


def _bounded_lines(file: IO[str], most: int) -> Iterator[str]:
    """Lines of a file that may have been compressed to next to nothing: neither one nor all of them of any length."""
    while line := file.readline(LONGEST_ROW + 1):
        most -= len(line)
        if len(line) > LONGEST_ROW or most < 0:
            raise ValueError(f"counts: no answer has rows of more than {LONGEST_ROW} characters, or as many")
        yield line


def _parquet_rows(path: Path, most: int) -> Iterator[Sequence[Any]]:
    from fogline.sources.files import CLOSED, path_literals, require_duckdb

    duckdb = require_duckdb()
    # In little memory, and without a folder into which what does not fit would be written.
    limits = {**CLOSED, "memory_limit": MOST_MEMORY, "temp_directory": "", "threads": 1}
    with duckdb.connect(config=limits) as connection:
        try:
            # This file alone, though its name may look like a pattern; and not a file of any length.
            relation = f"read_parquet({path_literals([path])}, hive_partitioning=false)"
            found = connection.execute(f"SELECT * FROM {relation} LIMIT 0")
            names, kinds = zip(*((str(column[0]), str(column[1])) for column in found.description or ()), strict=True)
            yield names  # who takes them refuses more columns than an answer has, before any row is read
            columns = [_bounded_cell(name, kind) for name, kind in zip(names, kinds, strict=True)]
            connection.execute(f"SELECT {', '.join(columns)} FROM {relation} LIMIT {most}")
            while rows := connection.fetchmany(ROWS_AT_A_TIME):
                yield from rows
        except (duckdb.Error, UnicodeDecodeError):
            raise ValueError(f"counts: {path.name} cannot be read as Parquet") from None


def _bounded_cell(name: str, kind: str) -> str:
    """SQL of a column's cells, none of any length: text is cut off, and what no answer has is missing."""
    from fogline.sources.cell_sql import quoted
    from fogline.sources.files import NUMBERS

    if kind == "VARCHAR":
        return f"left({quoted(name)}, {LONGEST_ROW})"
    # The whole name of the type: BIGINT[] begins as BIGINT does, and a cell of it may hold millions of numbers.
    return quoted(name) if kind.split("(")[0] in NUMBERS and not kind.endswith("]") else "NULL"
