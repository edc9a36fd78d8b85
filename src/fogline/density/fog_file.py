r"""The file of a release: a line of JSON that says what it is, whole numbers, and a hash over both.

    fogline release 1\n         magic words and the version of the format
    <SHA-256, 64 digits>\n      of all other bytes of the file
    {...}\n                     header: one line of JSON, UTF-8
    ...                         arrays of whole numbers, one after the other, little-endian, compressed by zlib

Nothing is unpickled. Floats of the header that are read again stand as hexadecimal text, ``{"float": "0x1.8p+0"}``, so
that no digit is lost in any language; what is there for people alone stands in decimal numbers. The header can be read
with ``sed -n 3p`` and any reader of JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_BYTES", "VERSION", "check_texts", "decode_fog", "encode_fog", "is_fog"]

VERSION = 1
"""Version of the format that is written; all up to it are read."""

_MAGIC = b"fogline release "
MOST_BYTES = 2**28
"""Most bytes of arrays: far more than a release of any kind has."""

_TYPES = tuple(f"<{sign}{size}" for size in (1, 2, 4, 8) for sign in "ui")
"""Types of whole numbers that are written, the smallest first."""


def is_fog(data: bytes) -> bool:
    """Whether bytes begin as such a file does, of whichever version.

    Examples
    --------
    >>> is_fog(encode_fog({}, {})), is_fog(b"PK")
    (True, False)
    """
    return data.startswith(_MAGIC)


def encode_fog(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the file of a header and arrays of whole numbers.

    Parameters
    ----------
    header : mapping
        Of values that JSON has; ``exact`` is the part whose floats must survive, and stand in hexadecimal.
    arrays : mapping of str to array
        Of integers.

    Examples
    --------
    >>> data = encode_fog({"exact": {"scale": 0.1}}, {"counts": np.array([3, -1])})
    >>> header, arrays = decode_fog(data)
    >>> header["exact"], arrays["counts"].tolist()
    ({'scale': 0.1}, [3, -1])
    """
    listed, parts = [], []
    for name, array in arrays.items():
        # most released counts are small
        kind = _smallest_type(array)
        listed.append({"name": name, "type": kind, "shape": list(array.shape)})
        # The last axis first: starts beside starts and stops beside stops compress far better.
        parts.append(np.ascontiguousarray(array.T, dtype=kind).tobytes())
    whole = {**header, "exact": _written(header.get("exact", {})), "arrays": listed}
    line = json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    first = _MAGIC + str(VERSION).encode() + b"\n"
    rest = line + b"\n" + zlib.compress(b"".join(parts), 9)
    return first + _digest(first, rest) + rest


def decode_fog(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
    """Return header and arrays of a file, checked; every error begins with ``path``.

    Examples
    --------
    >>> data = encode_fog({"note": "stays"}, {})
    >>> decode_fog(data[:-1])
    Traceback (most recent call last):
    ValueError: path: this release was cut short or altered: its SHA-256 does not agree
    >>> decode_fog(data.replace(b"release 1", b"release 2"))                       # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: path: this release has version 2 of its format, and this fogline reads up to version 1: install a ...
    """
    first, _, rest = data.partition(b"\n")
    digits = first.removeprefix(_MAGIC)
    if not is_fog(data) or not digits.isdigit() or len(digits) > 9:
        raise ValueError("path: not a release of fogline, or its first line was altered")
    # before the hash is looked at: a newer format may have another one
    if int(digits) > VERSION:
        raise ValueError(
            f"path: this release has version {int(digits)} of its format, and this fogline reads up to version "
            f"{VERSION}: install a newer fogline"
        )
    stored, content = rest[:65], rest[65:]
    if int(digits) < 1 or _digest(first + b"\n", content) != stored:
        raise ValueError("path: this release was cut short or altered: its SHA-256 does not agree")
    try:
        return _content(content)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error):
        raise ValueError("path: this release was not written by fogline: its content cannot be read") from None


def _digest(first: bytes, rest: bytes) -> bytes:
    return hashlib.sha256(first + rest).hexdigest().encode() + b"\n"


def _content(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
    """Header and arrays of what follows the hash."""
    line, _, packed = content.partition(b"\n")
    header = json.loads(line)
    sizes, unpacked = [], 0
    for entry in header["arrays"]:
        shape = [int(length) for length in entry["shape"]]
        # types are looked up, never evaluated
        if entry["type"] not in _TYPES or min(shape, default=0) < 0:
            raise ValueError("no array of whole numbers")
        sizes.append(math.prod(shape) * int(entry["type"][2:]))
        unpacked += 8 * math.prod(shape)  # all numbers become 64 bits wide
    if unpacked > MOST_BYTES:
        raise ValueError("too large")
    unpacking = zlib.decompressobj()
    # one byte more than is stated would be enough to refuse: a bomb is not unpacked
    raw = unpacking.decompress(packed, sum(sizes) + 1)
    if len(raw) != sum(sizes) or not unpacking.eof or unpacking.unused_data:
        raise ValueError("arrays of another size")
    arrays, place = {}, 0
    for entry, size in zip(header.pop("arrays"), sizes, strict=True):
        flat = np.frombuffer(raw[place : place + size], dtype=entry["type"])
        arrays[str(entry["name"])] = flat.reshape(entry["shape"][::-1]).T.astype(np.int64)
        place += size
    header["exact"] = _read(header["exact"])
    check_texts(header)
    return header, arrays


def check_texts(value: Any) -> None:
    r"""Refuse texts that would do more in a terminal than be read: escapes, line ends, changes of direction.

    Examples
    --------
    >>> check_texts({"columns": ["stay", "Länge"]})
    >>> check_texts({"columns": ["stay\x1b[8m"]})
    Traceback (most recent call last):
    ValueError: a text that cannot be printed
    """
    if isinstance(value, str):
        if not value.isprintable():
            raise ValueError("a text that cannot be printed")
    elif isinstance(value, Mapping):
        for key, part in value.items():
            check_texts(key)
            check_texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            check_texts(part)


def _smallest_type(array: NDArray[Any]) -> str:
    if array.dtype.kind not in "iu":
        raise TypeError(f"arrays must hold whole numbers, got {array.dtype}")
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    return next(kind for kind in _TYPES if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def _written(value: Any) -> Any:
    """Values with floats in hexadecimal."""
    if isinstance(value, float):
        return {"float": float(value).hex()}
    if isinstance(value, Mapping):
        return {str(key): _written(part) for key, part in value.items()}
    return [_written(part) for part in value] if isinstance(value, list | tuple) else value


def _read(value: Any) -> Any:
    """Inverse of :func:`_written`."""
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return float.fromhex(value["float"])
        return {key: _read(part) for key, part in value.items()}
    return [_read(part) for part in value] if isinstance(value, list) else value
