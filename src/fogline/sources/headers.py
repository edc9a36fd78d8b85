"""The first line of a text file: names of columns, read without a byte of the lines after it.

The bytes of a header are read one by one up to its line end, so that nothing of a record is touched. A first line that
looks like values is refused, and its cells appear in no message: a file without a header begins with a record.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fogline.sources.paths import COMPRESSED
from fogline.sources.reading import ReadingOptions
from fogline.sources.text_lines import BOM, cells_of

__all__ = ["Header", "looks_like_value", "opened", "read_header"]

DELIMITERS = (",", ";", "\t", "|")
MAX_HEADER = 1_000_000

_VALUE = re.compile(
    r"""\s*[-+(\[<>=~#$€£¥'.,]*\s*\d.*                    # begins with a digit: numbers, dates, times, amounts, codes
    |\s*[-+]?(?:inf|infinity|nan|null|none|true|false|n/a|\#n/a)\s*     # words for what is no name
    |.*\S@\S.*                                            # addresses
    |\s*[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-.*            # identifiers
    |\s*(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d.*""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class Header:
    """What the first line of a text file says.

    Parameters
    ----------
    names : tuple of str
    delimiter : str
    line_end : str or None
        ``"LF"``, ``"CR"`` (perhaps followed by a line feed, which is not looked for), ``"none"`` for a file that ends
        there; None where the names were stated and no byte was read.
    has_bom : bool or None
        Whether a byte order mark comes first.
    """

    names: tuple[str, ...]
    delimiter: str
    line_end: str | None = None
    has_bom: bool | None = None


def opened(file: Path) -> BinaryIO:
    """Bytes of a text file, decompressed where its name says so."""
    suffix = file.suffix.lower()
    if suffix == ".gz":
        return gzip.open(file, "rb")  # type: ignore[return-value]
    if suffix == ".zst":
        return _zstd(file)
    raw: Any = file.open("rb", buffering=0)
    content: BinaryIO = raw
    return content


def _zstd(file: Path) -> BinaryIO:
    stream: Any
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]  # from Python 3.14 on
    except ImportError:
        try:
            import pyarrow as pa
        except ImportError:
            raise ImportError("reading .zst files needs Python 3.14 or pyarrow: pip install 'fogline[arrow]'") from None
        stream = pa.input_stream(str(file), compression="zstd")
    else:
        stream = zstd.open(file, "rb")
    found: BinaryIO = stream
    return found


def read_header(file: Path, options: ReadingOptions) -> Header:
    """Names and delimiter from stated options, or from the first line alone."""
    if options.header is not None:
        stem = Path(file.stem) if file.suffix.lower() in COMPRESSED else file
        usual = "\t" if stem.suffix.lower() == ".tsv" else ","
        return Header(options.header, options.check_delimiter(options.delimiter or usual))
    line, line_end = _first_line(file)
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"path: {file.name} is UTF-16; write it in UTF-8, or as Parquet")
    if line.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        raise ValueError(f"path: {file.name} is compressed; its name must then end in .gz or .zst")
    has_bom = options.encoding == "utf-8" and line.startswith(BOM)
    line = line.removeprefix(BOM) if has_bom else line
    try:
        text = line.decode(options.encoding)
    except UnicodeDecodeError:
        raise ValueError(f"path: the header of {file.name} cannot be read as {options.encoding.upper()}") from None
    bare = re.sub('"[^"]*"', "", text)
    found = max(DELIMITERS, key=lambda delimiter: (bare.count(delimiter), -DELIMITERS.index(delimiter)))
    delimiter = options.check_delimiter(options.delimiter or found)
    names = [name.decode(options.encoding).strip() for name in cells_of(line, delimiter.encode())]
    if not any(names) or '"' in bare or "\x00" in text:
        raise ValueError(f"path: {file.name} must begin with one line of column names")
    if any(map(looks_like_value, names)):
        raise ValueError(
            f"path: the first line of {file.name} looks like values, not like names of columns, and is not shown; "
            "if it is a record, name the columns by header (--header A,B), else let every name begin with a letter"
        )
    return Header(tuple(names), delimiter, line_end, has_bom)


def looks_like_value(name: str) -> bool:
    """Whether a cell of a first line is more likely a value than the name of a column.

    Examples
    --------
    >>> [looks_like_value(cell) for cell in ("12.5", "2026-01-31", "NaN", "ann@example.org", "$ 5", "5 kg")]
    [True, True, True, True, True, True]
    >>> [looks_like_value(cell) for cell in ("age", "", "x1", "income (net)", "größe", "May", "Na")]
    [False, False, False, False, False, False, False]
    """
    return name.strip() == "NA" or _VALUE.fullmatch(name) is not None


def _first_line(file: Path) -> tuple[bytes, str]:
    """First line without its end, and what that is."""
    found = bytearray()
    try:
        with opened(file) as content:
            for byte in _bytes(content):
                if byte in b"\r\n":
                    return bytes(found), "LF" if byte == b"\n" else "CR"
                found += byte
    except (OSError, EOFError):
        raise ValueError(f"path: the header of {file.name} cannot be read") from None
    if len(found) == MAX_HEADER:
        raise ValueError(f"path: {file.name} must begin with one line of column names")
    return bytes(found), "none"


def _bytes(content: BinaryIO) -> Iterable[bytes]:
    """Bytes of a header one by one: reading ahead would touch records."""
    for _ in range(MAX_HEADER):
        byte = content.read(1)
        if not byte:
            return
        yield byte
