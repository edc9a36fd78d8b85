"""Text files line by line: a line is cut out of the bytes by one rule and read from its own bytes alone.

A line ends at a line feed, at a carriage return, or at both together; nothing else ends it, and nothing prevents its
end. Its cells stand between delimiters. A cell that begins with a double quote goes on to the next quote that is not
doubled, or to the end of its line; where something other than a delimiter follows the closing quote the cell is what
is written, quotes and all, and no number. What cells are worth is the rule of :mod:`fogline.sources.reading`. A line of
more than :data:`MAX_LINE` bytes contributes nothing, nor does one with more cells than there are names, unless those
beyond are empty; a byte order mark at the beginning of any line is no part of it.

Every line gives exactly one row, an empty one too, so that no line moves another. The compiled loops of
``_lines_numba.py`` read the same numbers where numba is installed. The proof that a record cannot see its neighbours
is in ``text_lines.proof.md`` beside this file.

The first line holds the names of the columns. Its bytes are read one by one up to its line end, so that nothing of a
record is touched. A first line that looks like values is refused, and its cells appear in no message: a file without a
header begins with a record.
"""

from __future__ import annotations

import gzip
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from fogline._typing import FloatArray, Ids
from fogline._validation import compiled_loops
from fogline.sources.paths import COMPRESSED
from fogline.sources.reading import BLANKS, NumberRule, ReadingOptions
from fogline.sources.tables import Take, TypedTake, cores

if TYPE_CHECKING:
    from fogline.sources._lines_numba import FastReader

__all__ = [
    "BOM",
    "MAX_LINE",
    "Header",
    "Layout",
    "blocks_of",
    "cells_of",
    "looks_like_value",
    "opened",
    "plain_batches",
    "plain_typed_batches",
    "read_header",
    "scan_blocks",
    "scan_typed_blocks",
]

BOM = b"\xef\xbb\xbf"
MAX_LINE = 2_000_000
"""Most bytes of a line that is read."""

BLOCK_BYTES = 2**20
"""Bytes that are read at a time: what is made of them stays small, whatever the file's size."""

PLAIN_ROWS = 2**12
"""Lines whose cells are held as Python objects at a time."""

Batch = tuple[FloatArray, Ids | None]
TypedBatch = tuple[FloatArray, Sequence[Ids], Ids | None]


@dataclass(frozen=True)
class Layout:
    """Where in a line the wanted cells are, and how they are read.

    Parameters
    ----------
    options : ReadingOptions
    delimiter : str
    numbers : tuple of int
        Places of the cells that are numbers, from 0, one for each column.
    unit : int or None
        Place of the cell that is an id.
    texts : tuple of int
        Places of the cells that are handed over as texts.
    width : int or None
        How many columns have a name. A line with a cell beyond them contributes nothing: a decimal comma or a thousands
        separator that is no delimiter would else be read as one, and its number as another.
    """

    options: ReadingOptions
    delimiter: str
    numbers: tuple[int, ...]
    unit: int | None = None
    texts: tuple[int, ...] = ()
    width: int | None = None

    @property
    def cells(self) -> int:
        """How many cells of a line must be known."""
        places: tuple[int, ...] = (*self.numbers, *self.texts)
        return 1 + max(places if self.unit is None else (*places, self.unit))


# -- from bytes to lines --------------------------------------------------------------------------------------


def blocks_of(content: BinaryIO, *, skip_header: bool, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Whole lines of a file, many at a time, each with its end; the last one gets one if it has none.

    Parameters
    ----------
    content : binary file
    skip_header : bool
        Whether the first line is left out.
    size : int
        Bytes that are read at a time. It decides how many lines come together, and nothing else.
    """
    pending = b""
    while data := content.read(size):
        pending += data
        end = _last_end(pending)
        if end:
            block, pending = pending[:end], pending[end:]
            if skip_header:
                block, skip_header = block[_first_end(block) :], False
            yield block
        if len(pending) > MAX_LINE + 2:  # one line, too long however it goes on
            pending = pending[: MAX_LINE + 1] + (b"\r" if pending.endswith(b"\r") else b"")
    if pending and not skip_header:
        yield pending if pending.endswith(b"\r") else pending + b"\n"


def _last_end(content: bytes) -> int:
    """Where the last line that is surely whole ends: after a final carriage return a line feed may still come."""
    line_feed = content.rfind(b"\n")
    return max(line_feed, content.rfind(b"\r", line_feed + 1, len(content) - 1)) + 1


def _first_end(block: bytes) -> int:
    """Where the first line of a block of whole lines ends."""
    ends = [end for end in (block.find(b"\n"), block.find(b"\r")) if end >= 0]
    first = min(ends)
    return first + (2 if block[first : first + 2] == b"\r\n" else 1)


def lines_of(block: bytes) -> list[bytes]:
    """Lines of a block, without their ends."""
    return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]


# -- from a line to its cells ---------------------------------------------------------------------------------


def cells_of(line: bytes, delimiter: bytes) -> list[bytes]:
    """Cells of one line, without the quotes around them."""
    if b'"' not in line:
        return line.split(delimiter)
    cells, at = [], 0
    while at <= len(line):
        cell, at = _cell(line, at, delimiter)
        cells.append(cell)
        at += 1
    return cells


def _cell(line: bytes, begin: int, delimiter: bytes) -> tuple[bytes, int]:
    """The cell that begins at a place, and where it ends."""
    closing = begin
    if line[begin : begin + 1] == b'"':
        closing = line.find(b'"', begin + 1)
        while closing >= 0 and line[closing + 1 : closing + 2] == b'"':
            closing = line.find(b'"', closing + 2)
        # never closed: the rest of the line as it is, quotes and all
        if closing < 0:
            return line[begin:], len(line)
        if line[closing + 1 : closing + 2] in (delimiter, b""):
            return line[begin + 1 : closing].replace(b'""', b'"'), closing + 1
    end = line.find(delimiter, closing)
    end = len(line) if end < 0 else end
    return line[begin:end], end


def plain_batches(block: bytes, layout: Layout, rule: NumberRule) -> Iterator[Batch]:
    """Rows of a block of whole lines, with the ids where there is a unit: the rule in its plain form."""
    for rows, _, ids in plain_typed_batches(block, layout, rule):
        yield rows, ids


def plain_typed_batches(block: bytes, layout: Layout, rule: NumberRule) -> Iterator[TypedBatch]:
    """Rows of a block of whole lines, with their texts, and with the ids where there is a unit."""
    lines = lines_of(block)
    for start in range(0, len(lines), PLAIN_ROWS):
        columns = _columns(lines[start : start + PLAIN_ROWS], layout)
        numbers = [rule.values(columns(place)) for place in layout.numbers]
        rows = np.column_stack(numbers) if numbers else np.empty((len(lines[start : start + PLAIN_ROWS]), 0))
        texts = [ids_of(columns(place), layout.options, rule) for place in layout.texts]
        unit = layout.unit
        yield rows, texts, None if unit is None else ids_of(columns(unit), layout.options, rule)


def _columns(lines: list[bytes], layout: Layout) -> Callable[[int], list[bytes]]:
    """Cells of lines by their place: those of each line alone, at once where all lines are short, alike and plain."""
    delimiter, wanted = layout.delimiter.encode(), layout.cells
    text = delimiter.join(lines)
    most = len(lines[0].split(delimiter))
    alike = wanted <= most <= (layout.width or most) and {line.count(delimiter) for line in lines} == {most - 1}
    # A shortcut for speed alone: its cells are those of the rule below, line by line.
    if alike and len(text) <= MAX_LINE and not (b'"' in text or BOM in text):
        cells = text.split(delimiter)
        return lambda place: cells[place::most]
    table = [_line_cells(line, delimiter, layout) for line in lines]
    return lambda place: [cells[place] if place < len(cells) else b"" for cells in table]


def _line_cells(line: bytes, delimiter: bytes, layout: Layout) -> list[bytes]:
    """Cells of one line, none if it is too long or has more of them than there are names."""
    if len(line) > MAX_LINE:
        return []
    cells = cells_of(line.removeprefix(BOM) if layout.options.encoding == "utf-8" else line, delimiter)
    beyond = () if layout.width is None else cells[layout.width :]
    return [] if any(cell.strip(BLANKS) for cell in beyond) else cells


def ids_of(cells: Iterable[bytes], options: ReadingOptions, rule: NumberRule) -> list[str | None]:
    """Ids as texts, in which bytes that are no text stand for themselves; None for an empty cell or a null word."""
    return [
        None if not cell or rule.is_null(cell) else cell.decode(options.encoding, "surrogateescape") for cell in cells
    ]


# -- passes ---------------------------------------------------------------------------------------------------


def scan_blocks(blocks: Iterable[bytes], layout: Layout, take: Take) -> None:
    """Hand over the rows of all blocks, in their order."""
    scan_typed_blocks(blocks, layout, lambda rows, _, ids: take(rows, ids))


def scan_typed_blocks(blocks: Iterable[bytes], layout: Layout, take: TypedTake) -> None:
    """Hand over the rows of all blocks with their texts, in their order."""
    rule = NumberRule(layout.options)
    fast = _fast_reader() if compiled_loops() else None
    if fast is None:
        for block in blocks:
            for batch in plain_typed_batches(block, layout, rule):
                take(*batch)
        return
    reader = fast(layout, rule)
    threads = cores()
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Sequence[TypedBatch]]] = deque()
        for block in blocks:
            waiting.append(pool.submit(reader.typed_batches, block))
            # Blocks are handed over in their order and few are held, so memory does not grow with the file.
            if len(waiting) > threads + 1:
                _hand_over(waiting.popleft(), take)
        while waiting:
            _hand_over(waiting.popleft(), take)


def _hand_over(batches: Future[Sequence[TypedBatch]], take: TypedTake) -> None:
    for batch in batches.result():
        take(*batch)


@cache
def _fast_reader() -> type[FastReader] | None:
    """Give the compiled reader where the ``fast`` extra is installed, else nothing."""
    try:
        from fogline.sources._lines_numba import FastReader
    except ImportError:
        return None
    return FastReader


# -- the header -----------------------------------------------------------------------------------------------

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
    # Unbuffered: a buffer would read records behind the header.
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
        is_tsv = stem.suffix.lower() == ".tsv"
        if options.delimiter is None and not is_tsv and len(options.header) > 1:
            # A guess would read "p1;70,5" as two cells, of which the second is 5.
            raise ValueError(
                "delimiter must be given beside header: a file without a line of names does not show what stands "
                "between its cells (delimiter=',' or --delimiter ,)"
            )
        usual = "\t" if is_tsv else ","
        return Header(options.header, options.check_delimiter(options.delimiter or usual))
    line, line_end = _first_line(file)
    # In UTF-16 a line feed is a part of other characters: lines could not be cut.
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
    # A delimiter within quotes is part of a name.
    bare = re.sub('"[^"]*"', "", text)
    # of equally frequent ones the first in the list
    found = max(DELIMITERS, key=lambda delimiter: (bare.count(delimiter), -DELIMITERS.index(delimiter)))
    delimiter = options.check_delimiter(options.delimiter or found)
    names = [name.decode(options.encoding).strip() for name in cells_of(line, delimiter.encode())]
    if not any(names) or '"' in bare or "\x00" in text:
        raise ValueError(f"path: {file.name} must begin with one line of column names")
    # Also as the line would be cut unasked: another delimiter would make one name of a whole record.
    unasked = [cell.decode(options.encoding) for cell in cells_of(line, found.encode())]
    if any(map(looks_like_value, [*names, *unasked])):
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
