"""Whose record a row is: ids of any engine as integers, equal in every engine for equal ids.

An id is an integer or a text. A text that is an integer in its plain decimal form counts as that integer, so that a
table and the CSV file exported from it have the same people; a floating-point id that is a whole number does too, since
some frames hold integers with gaps that way. An integer that does not fit into 64 bits counts as its text. Anything
else (NULL, the empty text, NaN, a float of 2^63 or more, a type that is no id) is missing, and a row whose id is
missing contributes nothing: it cannot be said whose contribution it would be.

Every id is read alone: what others are beside it, and of which types, does not matter. A text need not be UTF-8: of one
that is not, each byte that cannot be read stands for itself, so that ids that differ stay apart.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["INTEGER", "MISSING", "TEXT", "Identities", "escaped", "id_cells"]

IntArray = NDArray[np.int64]

MISSING, INTEGER, TEXT = -1, 0, 1
"""Kinds of ids."""

SHORT = r"0|-?[1-9][0-9]{0,17}"
"""Texts that stand for an integer below 10^18, which has 64 bits for sure."""

_PLAIN = re.compile(r"0|-?[1-9][0-9]{0,18}")
_LEAST, _MOST = -(2**63), 2**63 - 1


class Identities:
    """Ids of one pass as pairs (value, kind): integers are their own value, texts are numbered as they come.

    Examples
    --------
    >>> people = Identities()
    >>> values, kinds = people.read(["7", 7, "Ann", None, "07"])
    >>> values.tolist(), kinds.tolist()
    ([7, 7, 0, 0, 1], [0, 0, 1, -1, 1])
    >>> people.texts
    ['Ann', '07']
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def texts(self) -> list[str]:
        """Texts by their numbers."""
        return list(self._numbers)

    def read(self, ids: Any) -> tuple[IntArray, NDArray[np.int8]]:
        """Values and kinds of a batch of ids: a numpy or Arrow array, or a list."""
        if hasattr(ids, "to_pylist"):
            return self._arrow(ids)
        array = ids if isinstance(ids, np.ndarray) else None
        if array is not None and array.dtype.kind in "iu" and not _is_beyond(array):
            return array.astype(np.int64), np.zeros(len(array), dtype=np.int8)
        if array is not None and array.dtype.kind == "f":
            with np.errstate(all="ignore"):  # a signalling NaN, a long double beyond the doubles
                return _whole(array.astype(np.float64))
        return self._objects(id_cells(ids))

    def _arrow(self, ids: Any) -> tuple[IntArray, NDArray[np.int8]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = _undictionaried(ids)
        if pa.types.is_integer(ids.type):
            if pa.types.is_uint64(ids.type) and _is_beyond(np.asarray(pc.fill_null(ids, 0))):
                return self._objects(ids.to_pylist())
            if not ids.null_count:
                return np.asarray(ids).astype(np.int64, copy=False), np.zeros(len(ids), dtype=np.int8)
            values = np.asarray(pc.fill_null(ids, 0)).astype(np.int64)
            return values, np.where(np.asarray(ids.is_null()), np.int8(MISSING), np.int8(INTEGER))
        if pa.types.is_floating(ids.type):
            return _whole(np.asarray(ids.cast("float64").to_numpy(zero_copy_only=False)))
        if _is_text(ids.type):
            texts = ids.cast(pa.large_binary())
            if pc.all(pc.match_substring_regex(texts, f"^({SHORT})$"), skip_nulls=False).as_py():
                return self._arrow(texts.cast(pa.large_string()).cast(pa.int64()))
        return self._objects(id_cells(ids))

    def _objects(self, ids: list[Any]) -> tuple[IntArray, NDArray[np.int8]]:
        values, kinds = np.zeros(len(ids), dtype=np.int64), np.full(len(ids), MISSING, dtype=np.int8)
        for i, cell in enumerate(ids):
            found = _identity(cell)
            if isinstance(found, int):
                values[i], kinds[i] = found, INTEGER
            elif found is not None:
                values[i], kinds[i] = self._numbers.setdefault(found, len(self._numbers)), TEXT
        return values, kinds


def id_cells(ids: Any) -> list[Any]:
    """Cells of a batch of ids one by one: of a numpy or Arrow array, or of a list."""
    if isinstance(ids, np.ndarray):
        return list(ids.tolist())
    if not hasattr(ids, "to_pylist"):
        return list(ids)
    import pyarrow as pa

    ids = _undictionaried(ids)
    if not _is_text(ids.type):
        return list(ids.to_pylist())
    texts = ids.cast(pa.large_binary()).to_pylist()  # a text need not be UTF-8, and its bytes can always be read
    return [None if text is None else escaped(text) for text in texts]


def _undictionaried(ids: Any) -> Any:
    import pyarrow as pa

    return ids.cast(ids.type.value_type) if pa.types.is_dictionary(ids.type) else ids


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def escaped(text: bytes) -> str:
    """A text from its bytes, different for different bytes, whether they are UTF-8 or not."""
    return text.decode("utf-8", "surrogateescape")


def _identity(cell: Any) -> int | str | None:
    """An id in its one form: an integer of 64 bits, a text that is none, or nothing."""
    try:
        found = _integer(cell)
        if found is not None and _LEAST <= found <= _MOST:
            return found
        if found is not None:
            # As many digits as it has: `str` has a limit of 4300, beyond which it raises an error.
            return str(cell) if isinstance(cell, str) else format(Decimal(found), "f")
        return str(cell) or None if isinstance(cell, str) else None
    except Exception:  # of a class with errors of its own
        return None


def _integer(cell: Any) -> int | None:
    """The integer that an id stands for, if it does."""
    if isinstance(cell, str):
        return int(cell) if _PLAIN.fullmatch(cell) else None
    if isinstance(cell, bool | np.bool_ | np.timedelta64):
        return None
    if isinstance(cell, int | np.integer):
        return int(cell)
    if isinstance(cell, float | np.floating):
        return int(cell) if float(cell).is_integer() and abs(float(cell)) < 2.0**63 else None
    return None


def _is_beyond(ids: NDArray[Any]) -> bool:
    """Whether unsigned integers hold one that would wrap."""
    return bool(ids.dtype.kind == "u" and len(ids) and ids.max() > _MOST)


def _whole(ids: NDArray[np.float64]) -> tuple[IntArray, NDArray[np.int8]]:
    """Floating-point ids: whole numbers alone are ids."""
    with np.errstate(all="ignore"):
        usable = (np.abs(ids) < 2.0**63) & (np.floor(ids) == ids)
    values = np.where(usable, ids, 0.0).astype(np.int64)
    return values, np.where(usable, np.int8(INTEGER), np.int8(MISSING))
