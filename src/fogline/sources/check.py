"""What would be read of a file, before anything is: from its header and the options, without a byte of a record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fogline.sources.files import FileTable
from fogline.sources.paths import COMPRESSED
from fogline.sources.reading import ReadingOptions
from fogline.sources.text_lines import Header

__all__ = ["FileCheck", "check"]

MADE_UP = ("1234.5", "1234,5", "1,234.50", "1.234,50", " 7 ", "-2.5e3", "12%", "2026-01-31", "NA", "")
"""Cells that show what the options mean; no file was asked for them."""

NO_QUOTED_BREAKS = (
    "A line is a record and ends at LF, CR or CRLF, within quotes too: a quoted cell with a line break is two lines. "
    "Where cells hold line breaks, use Parquet, or write the file without them."
)
ROWS_ARE_RECORDS = "A row is a record; a value that is NaN, infinite or missing contributes nothing."


@dataclass(frozen=True)
class FileCheck:
    """What would be read of a file; public throughout.

    Parameters
    ----------
    path : str
        As given.
    kind : {"text", "Parquet"}
    files : int
        How many files there are.
    columns : tuple of str
        Columns that would be read, in their order.
    unit : str or None
    names : tuple of str
        All names of the header or the schema.
    options : ReadingOptions
        As stated.
    header : Header or None
        Delimiter and line end of a text file's header.
    compression : str or None
        ``".gz"`` or ``".zst"``.
    """

    path: str
    kind: str
    files: int
    columns: tuple[str, ...]
    unit: str | None
    names: tuple[str, ...]
    options: ReadingOptions
    header: Header | None
    compression: str | None

    @property
    def made_up(self) -> dict[str, float | None]:
        """What made-up cells would count as under the options: a number, or None for a missing value."""
        if self.header is None:
            return {}
        values = {cell: self.options.number(cell) for cell in (*MADE_UP, *self.options.null)}
        return {cell: None if math.isnan(value) else value for cell, value in values.items()}

    @property
    def isolation(self) -> str:
        """What a record of this file is."""
        return ROWS_ARE_RECORDS if self.header is None else NO_QUOTED_BREAKS

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is worth a second look."""
        if self.header is None:
            return ()
        found = ["A CSV column has no type: whether it holds numbers shows only in the released count."]
        if self.options.header is not None:
            found.append("The names were stated, so the first line is a record; nothing of the file was read.")
        if self.compression is not None:
            found.append("The file is compressed: its beginning was decompressed up to the end of the header.")
        if self.header.delimiter == "," and self.options.decimal == ".":
            found.append(
                "A cell with a comma in it must be in quotes, else it is two cells, and its line contributes nothing."
            )
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        text = self.header
        return {
            "format": "fogline-check-1",
            "path": self.path,
            "kind": self.kind,
            "files": self.files,
            "columns": list(self.columns),
            "unit": self.unit,
            "names": list(self.names),
            "delimiter": None if text is None else text.delimiter,
            "header_line_end": None if text is None else text.line_end,
            "byte_order_mark": None if text is None else text.has_bom,
            "compression": self.compression,
            "reading": self.options.facts,
            "made_up": [{"cell": cell, "counts_as": value} for cell, value in self.made_up.items()],
            "isolation": self.isolation,
            "remarks": list(self.remarks),
        }


def check(
    path: str | Path, columns: Sequence[str] | None = None, *, unit: str | None = None, **reading: Any
) -> FileCheck:
    """Say what would be read of a file; free, since no record is touched.

    Parameters
    ----------
    path : str or Path
        As for :class:`FileTable`: a text or Parquet file, a folder, a pattern.
    columns, unit
        As for :func:`fogline.sources.registry.table`.
    **reading
        Options of :class:`ReadingOptions`: delimiter, decimal, thousands, encoding, null, header.

    Returns
    -------
    FileCheck

    Raises
    ------
    ValueError, TypeError, OSError
        What :func:`fogline.sources.registry.table` would raise; the message begins with the parameter's name.

    Examples
    --------
    >>> from fogline.datasets.tables import load_faithful
    >>> from fogline.sources.check import check
    >>> found = check(load_faithful().path, ["waiting"])
    >>> found.columns, found.header.delimiter
    (('waiting',), ',')
    >>> found.made_up["1234.5"], found.made_up["1.234,50"]
    (1234.5, None)
    """
    table = FileTable(path, columns, unit=unit, **reading)
    suffix = table._files[0].suffix.lower()
    return FileCheck(
        path=str(path),
        kind="Parquet" if table._is_parquet else "text",
        files=len(table._files),
        columns=table.columns,
        unit=unit,
        names=tuple(table._names),
        options=table._options,
        header=None if table._is_parquet else table._header,
        compression=suffix if suffix in COMPRESSED else None,
    )
