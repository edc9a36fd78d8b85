r"""How the text of a file becomes numbers: options that a user states, and one rule for what a number is.

Nothing here is guessed from records. A cell is a number if, without blanks around it, the whole of it is

.. code-block:: text

    [sign] digits [decimal mark [digits]] [e [sign] digits]     or     [sign] decimal mark digits [e [sign] digits]

with a sign ``+`` or ``-``, ASCII digits, and ``e`` or ``E``. Where a thousands separator is stated, the digits before
the decimal mark may be written in groups: one to three digits, then groups of exactly three. The value is the double
nearest to what is written (ties to even), an infinity where that is beyond the range. Everything else (the empty cell,
words such as ``NA``, ``nan`` or ``inf``, hexadecimal numbers, underscores, per cent signs, dates, a stated null word)
is missing.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["BLANKS", "NumberRule", "ReadingOptions", "require_text_source"]

BLANKS = b" \t"
"""What may stand around a number."""

PLAIN = "0123456789+-eE \t"
"""Signs of a number besides its decimal mark; whatever is made of them alone, ``float`` reads as the rule does."""


@dataclass(frozen=True)
class ReadingOptions:
    """How a text file is read; the defaults are a CSV file in UTF-8 with a header and decimal points.

    Parameters
    ----------
    delimiter : str, optional
        One ASCII character between the cells of a line. By default the one of ``, ; tab |`` that is most frequent in
        the header; where there is none, a tab for ``.tsv`` and else a comma.
    decimal : {".", ","}
        The decimal mark.
    thousands : str, optional
        One character between groups of three digits, such as ``","``, ``"."``, ``"'"`` or a (narrow) no-break space.
    encoding : str, default "utf-8"
        UTF-8, or an encoding with one byte per character that contains ASCII, such as latin-1 or cp1252.
    null : sequence of str
        Words that stand for a missing value although they look like one, such as ``"-999"``; compared as text,
        without blanks around them. Cells that are no number need not be named.
    header : sequence of str, optional
        Names of the columns of a file without a header: every line is then a record.

    Examples
    --------
    >>> from fogline.sources.reading import ReadingOptions
    >>> german = ReadingOptions(delimiter=";", decimal=",", thousands=".")
    >>> german.number("1.234,50"), german.number("1234.50")
    (1234.5, nan)
    >>> ReadingOptions(decimal=",", thousands=",")
    Traceback (most recent call last):
    ValueError: thousands must differ from the decimal mark, got ',' for both
    """

    delimiter: str | None = None
    decimal: str = "."
    thousands: str | None = None
    encoding: str = "utf-8"
    null: tuple[str, ...] = ()
    header: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", _checked_encoding(self.encoding))
        object.__setattr__(self, "null", _checked_words(self.null, self.encoding))
        if self.header is not None:
            object.__setattr__(self, "header", _checked_names(self.header))
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {self.decimal!r}")
        if self.thousands is not None:
            self._check_thousands(self.thousands)
        if self.delimiter is not None:
            self.check_delimiter(self.delimiter)

    def _check_thousands(self, character: object) -> None:
        if not isinstance(character, str) or len(character) != 1 or character.isalnum() or character in '+-"\r\n\t\x00':
            raise ValueError(f"thousands must be one character that is no letter, digit or sign, got {character!r}")
        if character == self.decimal:
            raise ValueError(f"thousands must differ from the decimal mark, got {character!r} for both")
        try:
            # a sign that the encoding does not have could never be found in the file
            character.encode(self.encoding)
        except UnicodeEncodeError:
            raise ValueError(f"thousands: there is no {character!r} in {self.encoding}") from None

    def check_delimiter(self, character: object) -> str:
        """Return the delimiter, stated or found in a header, unless the other options contradict it."""
        if (
            not isinstance(character, str)
            or len(character) != 1
            or not character.isascii()
            or character.isalnum()
            or character in '+-"\r\n\x00'
        ):
            raise ValueError(
                f"delimiter must be one ASCII character that is no letter, digit, sign or quote, got {character!r}"
            )
        if character == self.decimal:
            raise ValueError(
                f"decimal must differ from the delimiter, got {character!r} for both; state the right delimiter"
            )
        if character == self.thousands:
            raise ValueError(
                f"thousands must differ from the delimiter, got {character!r} for both; write the file with another"
            )
        return character

    @property
    def facts(self) -> dict[str, Any]:
        """The options that differ from their defaults, as JSON has them."""
        default = asdict(ReadingOptions())
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value != default[name]
        }

    def number(self, text: str) -> float:
        """What a cell with this text counts as: a number, or NaN for a missing value."""
        return NumberRule(self).value(text.encode(self.encoding, "surrogateescape"))


class NumberRule:
    """The rule for numbers on the bytes of cells.

    Parameters
    ----------
    options : ReadingOptions
    """

    def __init__(self, options: ReadingOptions) -> None:
        self.decimal = options.decimal.encode()
        self.separator = b"" if options.thousands is None else options.thousands.encode(options.encoding)
        self.null = frozenset(word.encode(options.encoding) for word in options.null)
        character = re.escape(self.decimal)
        whole = rb"[0-9]+"
        if self.separator:
            # groups of exactly three, or none: "1,5" is no number with a thousands comma
            whole += rb"|[0-9]{1,3}(?:" + re.escape(self.separator) + rb"[0-9]{3})+"
        exponent = rb"(?:[eE][+-]?[0-9]+)?"
        body = rb"(?:(?:" + whole + rb")(?:" + character + rb"[0-9]*)?|" + character + rb"[0-9]+)"
        self._pattern = re.compile(rb"[+-]?" + body + exponent)
        self._plain = (PLAIN + options.decimal + "\n").encode()

    def value(self, cell: bytes) -> float:
        """The number that a cell is, NaN where it is none."""
        bare = cell.strip(BLANKS)
        # By a pattern of our own: float() would also read "1_000" and "infinity".
        if bare in self.null or self._pattern.fullmatch(bare) is None:
            return math.nan
        if self.separator:
            bare = bare.replace(self.separator, b"")
        return float(bare.replace(self.decimal, b"."))

    def values(self, cells: list[bytes]) -> list[float]:
        """The numbers that cells are: for each the same as :meth:`value`, faster where all of them are plain."""
        joined = b"\n".join(cells)
        # only signs of plain numbers are left: float() then reads what the pattern allows
        if not (self.separator or self.null or joined.translate(None, self._plain)):
            try:
                pointed = cells if self.decimal == b"." else joined.replace(self.decimal, b".").split(b"\n")
                return list(map(float, pointed)) if all(cells) else [float(c) if c else math.nan for c in pointed]
            except ValueError:
                pass
        return list(map(self.value, cells))

    def is_null(self, cell: bytes) -> bool:
        """Whether a cell is one of the stated null words."""
        # compared as text: "-999.0" is not the word "-999"
        return cell.strip(BLANKS) in self.null


def require_text_source(options: ReadingOptions, source: str) -> None:
    """Raise an error that names the first option stated for a source that is no text file."""
    for name in options.facts:
        raise TypeError(f"{name} is for text files; {source} states its own types")


def _checked_encoding(encoding: object) -> str:
    """Name of a codec in which bytes below 128 are always the ASCII character, so that lines can be cut as bytes."""
    if not isinstance(encoding, str):
        raise TypeError(f"encoding must be the name of an encoding, got {type(encoding).__name__}")
    try:
        name = codecs.lookup(encoding).name
        # An encoding in which each byte is one character has as many characters as bytes.
        single = bytes(range(256)).decode(name, "replace")
    except (LookupError, UnicodeError, ValueError):
        raise ValueError(f"encoding: there is no text encoding {encoding!r}") from None
    if name in ("utf-8", "utf-8-sig"):
        return "utf-8"
    ascii_text = bytes(range(128)).decode("ascii")
    # a line feed must be a line feed wherever it stands, or lines cannot be cut as bytes
    if len(single) != 256 or not single.startswith(ascii_text) or re.search("escape|iso2022", name):
        raise ValueError(
            f"encoding: lines cannot be cut safely in {encoding!r}, since bytes of ASCII are parts of other characters "
            "there; write the file in UTF-8, or as Parquet"
        )
    return name


def _checked_words(words: object, encoding: str) -> tuple[str, ...]:
    found = (words,) if isinstance(words, str) else tuple(words) if isinstance(words, Sequence) else None
    if found is None or not all(isinstance(word, str) for word in found):
        raise TypeError("null must be a list of words")
    for word in found:
        if not word.strip(" \t") or re.search('["\r\n]', word):
            raise ValueError(f"null: a word must not be empty or hold quotes or line breaks, got {word!r}")
        try:
            word.encode(encoding)
        except UnicodeEncodeError:
            raise ValueError(f"null: {word!r} cannot be written in {encoding}") from None
    return tuple(word.strip(" \t") for word in found)


def _checked_names(names: object) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError("header must be a list of names, one for each column of the file")
    if not names or not all(name.strip() for name in names) or len(set(names)) != len(names):
        raise ValueError("header must name every column of the file, and none twice")
    return tuple(names)
