"""Lines of text as compiled loops: the same cells, numbers and ids as ``plain_batches`` in ``text_lines.py``.

A number of at most 19 significant digits is rounded correctly from its digits and its power of ten: by one operation
of doubles where both are exact (Clinger 1990), else from 128 bits of the power of five (Lemire, "Number parsing at a
gigabyte per second", 2021), which leaves what it cannot decide. That, and what has more digits or is near the ends of
the range, is read by Python's ``float``. All of them give the nearest double, so which way a cell takes does not show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from fogline._typing import BoolArray, FloatArray, Ids, IntArray, WordArray
from fogline.sources.reading import NumberRule
from fogline.sources.tables import BATCH_ROWS
from fogline.sources.text_lines import MAX_LINE, Batch, Layout, TypedBatch, ids_of

__all__ = ["FastReader"]

F = TypeVar("F", bound=Callable[..., object])
ByteArray: TypeAlias = NDArray[np.uint8]
Whole: TypeAlias = int | np.int64
Places: TypeAlias = tuple[IntArray, IntArray, int]
"""For each cell of a line the column of its number, or -1; that of its text, or -1; how many cells have a name."""

Rule: TypeAlias = tuple[np.uint8, np.uint8, ByteArray, ByteArray, IntArray, bool]
"""Delimiter, decimal mark, thousands separator, null words one after the other and their ends, whether it is UTF-8."""

LEAST_POWER, MOST_POWER = -290, 270
"""Powers of ten between which no number of 19 digits is subnormal or infinite."""

HARD = 2**12
"""Cells that are left to ``float`` before a batch ends."""

MISSING, NUMBER, LEFT = 0, 1, 2
"""What became of a cell: no number, a number, one for ``float``."""

NO_ID, WHOLE, TEXT, QUOTED = 0, 1, 2, 3
"""What an id is: missing, a short integer, a text, a text that was in quotes."""

_QUOTE, _FEED, _RETURN, _ZERO = 34, 10, 13, 48


def _power_table() -> WordArray:
    """128 bits of 5^q, normalised, truncated but for the inverses of what has at most 64 bits, which are rounded up."""
    table = np.empty((MOST_POWER - LEAST_POWER + 1, 2), dtype=np.uint64)
    for q in range(LEAST_POWER, MOST_POWER + 1):
        five = 5 ** abs(q)
        bits = five.bit_length()
        if q >= 0:
            word = five << (128 - bits) if bits <= 128 else five >> (bits - 128)
        # 5^27 is the largest power of five that fits 64 bits
        elif q >= -27:
            word = (1 << (bits + 127)) // five + 1
        else:
            word = (1 << (2 * bits + 128)) // five + 1
            word >>= word.bit_length() - 128
        table[q - LEAST_POWER] = word >> 64, word & (2**64 - 1)
    return table


_FIVES = _power_table()
_TENS = 10.0 ** np.arange(23)
_TWOS = 2.0 ** np.arange(-1074, 972)


class FastReader:
    """Reads blocks of whole lines.

    Parameters
    ----------
    layout : Layout
    rule : NumberRule
    """

    def __init__(self, layout: Layout, rule: NumberRule) -> None:
        self._layout, self._number_rule = layout, rule
        slots = np.full(layout.cells, -1, dtype=np.int64)
        # by place of the cell: most cells of a line are skipped without a look
        slots[list(layout.numbers)] = np.arange(len(layout.numbers))
        stops = np.zeros(256, dtype=np.bool_)
        stops[[ord(layout.delimiter), _FEED, _RETURN]] = True
        null = sorted(rule.null)
        ends = np.cumsum([0, *map(len, null)])
        # The unit's cell, if there is one, is the first of the texts.
        self._texts = (*(() if layout.unit is None else (layout.unit,)), *layout.texts)
        noted = np.full(layout.cells, -1, dtype=np.int64)
        noted[list(self._texts)] = np.arange(len(self._texts))
        self._places = slots, noted, MAX_LINE + 1 if layout.width is None else layout.width
        self._rule = (
            np.uint8(ord(layout.delimiter)),
            np.uint8(rule.decimal[0]),
            np.frombuffer(rule.separator, dtype=np.uint8),
            np.frombuffer(b"".join(null), dtype=np.uint8),
            ends.astype(np.int64),
            layout.options.encoding == "utf-8",
        )
        self._stops = stops
        # Compiled now, not with the first block: what the process holds must not tell that there was a line.
        self._read_lines(np.frombuffer(b"", dtype=np.uint8), 0, 0)

    def _read_lines(self, content: Any, at: Whole, capacity: int) -> tuple[Any, ...]:
        """Lines from a place on, as many as there is room for: rows, notes, hard cells, and where it ended."""
        rows = np.empty((capacity, len(self._layout.numbers)))
        notes = np.zeros((len(self._texts), capacity, 4), dtype=np.int64)
        # Room for one more line: a line is finished before its cells are counted against HARD.
        hard = np.empty((HARD + rows.shape[1], 4), dtype=np.int64)
        return rows, notes, hard, _read(content, at, self._places, self._rule, self._stops, rows, notes, hard)

    def batches(self, block: bytes) -> list[Batch]:
        """Rows of the block, with the ids where there is a unit."""
        return [(rows, ids) for rows, _, ids in self.typed_batches(block)]

    def typed_batches(self, block: bytes) -> list[TypedBatch]:
        """Rows of the block, with their texts, and with the ids where there is a unit."""
        found: list[TypedBatch] = []
        at: Whole = 0
        content = np.frombuffer(block, dtype=np.uint8)
        capacity = min(BATCH_ROWS, len(block))
        while at < len(block):
            rows, notes, hard, (count, at, left) = self._read_lines(content, at, capacity)
            # the few that no 128 bits decide: float() rounds them as it rounds all others
            for row, column, begin, end in hard[:left].tolist():
                rows[row, column] = self._number_rule.value(block[begin:end])
            has_unit = self._layout.unit is not None
            ids = self._ids(block, notes[0, :count]) if has_unit else None
            found.append((rows[:count], [self._cells(block, note[:count]) for note in notes[has_unit:]], ids))
        return found

    def _ids(self, block: bytes, ids: IntArray) -> Ids:
        if not self._number_rule.null and (ids[:, 0] == WHOLE).all():
            return ids[:, 3].copy()
        return self._cells(block, ids)

    def _cells(self, block: bytes, ids: IntArray) -> Ids:
        cells = (
            b"" if form == NO_ID else block[a:b].replace(b'""', b'"') if form == QUOTED else block[a:b]
            for form, a, b in ids[:, :3].tolist()
        )
        return ids_of(cells, self._layout.options, self._number_rule)


def _compiled(function: F) -> F:
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def _inlined(function: F) -> F:
    """For what is called for every cell: to pass arrays would take longer than to read it."""
    return cast(F, numba.njit(cache=True, nogil=True, inline="always")(function))


@_compiled
def _read(
    block: ByteArray,
    at: Whole,
    places: Places,
    rule: Rule,
    stops: BoolArray,
    rows: FloatArray,
    ids: IntArray,
    hard: IntArray,
) -> tuple[Whole, Whole, Whole]:
    """Read lines from a place on until there is no more room; returns rows, the next place, and cells that are left.

    Tuples are taken apart here, once: to do so for every line would count references for longer than it takes to read.
    """
    slots, noted, width = places
    delimiter, decimal, separator, words, ends, has_marks = rule
    has_null = len(ends) > 1
    row = 0
    left: Whole = 0
    while at < len(block) and row < len(rows) and left < HARD:
        begin, left_before = at, left
        for j in range(rows.shape[1]):
            rows[row, j] = np.nan
        if has_marks and block[at] == 0xEF and block[at + 1] == 0xBB and block[at + 2] == 0xBF:
            at += 3
        place, fits = 0, True
        while place >= 0:
            slot, start, state, mine = slots[place], at, MISSING, noted[place]
            if slot >= 0 and mine < 0 and not has_null:
                at, state, value = _plain_number(block, start, decimal, stops)
                if state == NUMBER:
                    rows[row, slot] = value
            elif slot < 0 and mine < 0 and block[start] != _QUOTE:
                at, state = _next_stop(block, start, stops), NUMBER
            if state != NUMBER:
                at, left = _read_cell(
                    block,
                    start,
                    mine,
                    slot,
                    decimal,
                    separator,
                    words,
                    ends,
                    stops,
                    rows,
                    ids,
                    hard,
                    row,
                    left,
                )
            place = place + 1 if block[at] == delimiter else -1
            at += place >= 0
            if place == len(slots):
                at, fits = _rest(block, at, width - place, delimiter, stops)
                place = -1
        # Too long a line, or one with too many cells, contributes nothing: what was noted of it is taken back.
        if not fits or at - begin > MAX_LINE:
            left = left_before
            for j in range(rows.shape[1]):
                rows[row, j] = np.nan
            for k in range(len(ids)):
                ids[k, row, 0] = NO_ID
        row += 1
        at += 2 if block[at] == _RETURN and at + 1 < len(block) and block[at + 1] == _FEED else 1
    return row, at, left


@_compiled
def _read_cell(
    block: ByteArray,
    begin: Whole,
    mine: Whole,
    slot: Whole,
    decimal: np.uint8,
    separator: ByteArray,
    words: ByteArray,
    ends: IntArray,
    stops: BoolArray,
    rows: FloatArray,
    ids: IntArray,
    hard: IntArray,
    row: Whole,
    left: Whole,
) -> tuple[Whole, Whole]:
    """Read one cell of a line; returns where it ends, and how many cells are left to ``float``."""
    first, last, at, form = _find_cell(block, begin, stops)
    if mine >= 0:
        _note_id(block, first, last, form, ids, mine, row)
    if slot < 0:
        return at, left
    first, last = _trimmed(block, first, last)
    if len(ends) > 1 and _is_null(block, first, last, words, ends):
        return at, left
    state, value = _number(block, first, last, decimal, separator)
    if state == NUMBER:
        rows[row, slot] = value
    elif state == LEFT:
        hard[left, 0], hard[left, 1], hard[left, 2], hard[left, 3] = row, slot, first, last
        left += 1
    return at, left


@_compiled
def _rest(block: ByteArray, at: Whole, named: Whole, delimiter: np.uint8, stops: BoolArray) -> tuple[Whole, bool]:
    """Where a line ends of which cells are left, and whether all of them beyond those with a name are empty."""
    fits = True
    while True:
        if named > 0 and block[at] != _QUOTE:
            at = _next_stop(block, at, stops)
        else:
            first, last, at, _ = _find_cell(block, at, stops)
            first, last = _trimmed(block, first, last)
            if named <= 0 and first < last:
                fits = False
        if block[at] != delimiter:
            return at, fits
        at += 1
        named -= 1


@_compiled
def _find_cell(block: ByteArray, begin: Whole, stops: BoolArray) -> tuple[Whole, Whole, Whole, int]:
    """Where the content of a cell begins and ends, where the cell itself ends, and whether it was in quotes."""
    at = begin
    if block[begin] == _QUOTE:
        at = begin + 1
        while True:
            sign = block[at]
            # a quote that is never closed ends with its line: it must not swallow the records after it
            if sign in (_FEED, _RETURN):
                return begin, at, at, TEXT
            if sign == _QUOTE and block[at + 1] != _QUOTE:
                break
            at += 2 if sign == _QUOTE else 1
        if stops[block[at + 1]]:
            return begin + 1, at, at + 1, QUOTED
    at = _next_stop(block, at, stops)
    return begin, at, at, TEXT


@_inlined
def _next_stop(block: ByteArray, begin: Whole, stops: BoolArray) -> np.int64:
    """Next place of a sign that stops; by an unsigned index, which need not be looked at for being negative."""
    at = np.uint64(begin)
    while not stops[block[at]]:
        at += np.uint64(1)
    return np.int64(at)


@_compiled
def _trimmed(block: ByteArray, first: Whole, last: Whole) -> tuple[Whole, Whole]:
    while first < last and (block[first] == 32 or block[first] == 9):
        first += 1
    while last > first and (block[last - 1] == 32 or block[last - 1] == 9):
        last -= 1
    return first, last


@_compiled
def _is_null(block: ByteArray, first: Whole, last: Whole, words: ByteArray, ends: IntArray) -> bool:
    for i in range(len(ends) - 1):
        if ends[i + 1] - ends[i] == last - first:
            same = True
            for j in range(last - first):
                same &= block[first + j] == words[ends[i] + j]
            if same:
                return True
    return False


@_compiled
def _note_id(block: ByteArray, first: Whole, last: Whole, form: Whole, ids: IntArray, k: Whole, row: Whole) -> None:
    """Write down a text: its form, where it is, and its value if it is a plain integer of at most 18 digits."""
    ids[k, row, 0], ids[k, row, 1], ids[k, row, 2] = form, first, last
    at = first + 1 if first < last and block[first] == 45 else first
    size = last - at
    if first == last:
        ids[k, row, 0] = NO_ID
    # 18 digits fit 64 bits; a leading zero is part of a text, "007" is not 7
    if size < 1 or size > 18 or (block[at] == _ZERO and last - first > 1):
        return
    value: Whole = 0
    for i in range(at, last):
        digit = np.int64(block[i]) - _ZERO
        if digit < 0 or digit > 9:
            return
        value = 10 * value + digit
    ids[k, row, 0], ids[k, row, 3] = WHOLE, value if at == first else -value


@_inlined
def _plain_number(block: ByteArray, begin: Whole, decimal: np.uint8, stops: BoolArray) -> tuple[np.int64, int, float]:
    """Read sign, digits, decimal mark, digits, if that is all of a cell; returns its end, what it is, and its value."""
    at, one, ten, zero = np.uint64(begin), np.uint64(1), np.uint64(10), np.uint8(_ZERO)
    sign = block[at]
    negative = sign == 45
    if negative or sign == 43:
        at += one
        sign = block[at]
    word, start, fraction = np.uint64(0), at, np.uint64(0)
    digit = np.uint8(sign - zero)
    while digit <= 9:
        word = word * ten + np.uint64(digit)
        at += one
        sign = block[at]
        digit = np.uint8(sign - zero)
    digits = at - start
    if sign == decimal:
        at += one
        start = at
        sign = block[at]
        digit = np.uint8(sign - zero)
        while digit <= 9:
            word = word * ten + np.uint64(digit)
            at += one
            sign = block[at]
            digit = np.uint8(sign - zero)
        fraction = at - start
        digits += fraction
    # 19 digits always fit 64 bits, 20 may not; anything else goes by the whole rule
    if digits == 0 or digits > 19 or not stops[sign]:
        return np.int64(at), MISSING, np.nan
    state, value = _rounded(word, -np.int64(fraction))
    return np.int64(at), state, -value if negative else value


@_compiled
def _number(block: ByteArray, at: Whole, last: Whole, decimal: np.uint8, separator: ByteArray) -> tuple[int, float]:
    """Read what stands between two places by the whole rule; returns what it is, and its value."""
    negative = at < last and block[at] == 45
    if at < last and (negative or block[at] == 43):
        at += 1
    at, word, size, whole = _whole_part(block, at, last, separator)
    if whole < 0:
        return MISSING, np.nan
    fraction: Whole = 0
    if at < last and block[at] == decimal:
        start = at + 1
        at, word, size = _digits(block, start, last, word, size)
        fraction = at - start
    if whole + fraction == 0:
        return MISSING, np.nan
    power = -fraction
    if at < last and (block[at] == 101 or block[at] == 69):
        at += 1
        minus = at < last and block[at] == 45
        if at < last and (minus or block[at] == 43):
            at += 1
        start = at
        exponent = np.int64(0)
        while at < last and _ZERO <= block[at] <= 57:
            # capped: "1e99999999999999999999" must not wrap around to a small power
            exponent = min(10 * exponent + np.int64(block[at]) - _ZERO, np.int64(10**8))
            at += 1
        if at == start:
            return MISSING, np.nan
        power += -exponent if minus else exponent
    if at != last:
        return MISSING, np.nan
    if size > 19:
        return LEFT, np.nan
    state, value = _rounded(word, power)
    return state, -value if negative else value


@_compiled
def _digits(block: ByteArray, at: Whole, last: Whole, word: np.uint64, size: Whole) -> tuple[Whole, np.uint64, Whole]:
    """Read digits; returns their end, the integer that they continue, and how many of its digits count."""
    while at < last and _ZERO <= block[at] <= 57:
        digit = np.uint64(block[at] - np.uint8(_ZERO))
        # leading zeros are no digits that count
        size += size > 0 or digit > 0
        word = word * np.uint64(10) + digit
        at += 1
    return at, word, size


@_compiled
def _whole_part(
    block: ByteArray, at: Whole, last: Whole, separator: ByteArray
) -> tuple[Whole, np.uint64, Whole, Whole]:
    """Read the digits before a decimal mark, perhaps in groups; their number is -1 where the groups are wrong."""
    start = at
    at, word, size = _digits(block, at, last, np.uint64(0), 0)
    whole = at - start
    grouped = False
    while len(separator) and at + len(separator) <= last:
        same = True
        for i in range(len(separator)):
            same &= block[at + i] == separator[i]
        if not same:
            break
        # "1234,567" has no group of three before its separator
        if not grouped and not 1 <= whole <= 3:
            return at, word, size, -1
        start = at + len(separator)
        at, word, size = _digits(block, start, last, word, size)
        if at - start != 3:
            return at, word, size, -1
        grouped = True
        whole += 3
    return at, word, size, whole


@_inlined
def _rounded(word: np.uint64, power: Whole) -> tuple[int, float]:
    """The double nearest to word * 10^power; left where that is not decided here."""
    if word == 0:
        return NUMBER, 0.0
    # both are doubles exactly, so that one operation rounds once
    if word <= np.uint64(2**53) and -22 <= power <= 22:
        exact = np.float64(word)
        return NUMBER, exact / _TENS[-power] if power < 0 else exact * _TENS[power]
    if power < LEAST_POWER or power > MOST_POWER:
        return LEFT, np.nan
    zeros, shifted = _leading_zeros(word)
    high, low = _product(shifted, _FIVES[power - LEAST_POWER, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = _product(shifted, _FIVES[power - LEAST_POWER, 1])
        low += more
        if more > low:
            high += np.uint64(1)
    # the truncated table cannot tell on which side the true product is
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and (power < -27 or power > 55):
        return LEFT, np.nan
    upper = np.int64(high >> np.uint64(63))
    mantissa = high >> np.uint64(upper + 9)
    is_tie = low <= np.uint64(1) and -4 <= power <= 23 and mantissa & np.uint64(3) == np.uint64(1)
    if is_tie and mantissa << np.uint64(upper + 9) == high:  # halfway: to even
        mantissa &= ~np.uint64(1)
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    # 217706 / 2^16 is the logarithm of 10 to the base 2, exact enough for all powers here
    exponent = ((217706 * power) >> 16) + 63 + upper - zeros - 52
    return NUMBER, np.float64(mantissa) * _TWOS[exponent + 1074]


@_inlined
def _leading_zeros(word: np.uint64) -> tuple[int, np.uint64]:
    """How many zero bits come first, and the word without them."""
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(64 - step) == np.uint64(0):
            word <<= np.uint64(step)
            zeros += step
    return zeros, word


@_inlined
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The 128 bits of a product."""
    # by halves: there is no integer of 128 bits here
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low, mid, other = a0 * b0, a1 * b0, a0 * b1
    carry = (low >> half) + (mid & mask) + (other & mask)
    return a1 * b1 + (mid >> half) + (other >> half) + (carry >> half), a * b
