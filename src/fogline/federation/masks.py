r"""Masks that cancel: what each site adds to its counts so that only their sum can be read.

For a pass over the sites :math:`s_1 < \dots < s_k`, each pair :math:`a < b` expands its secret into one vector
:math:`r_{ab}` of integers modulo :math:`2^{64}`. Site :math:`s` sends

.. math:: y_s = x_s + \sum_{b > s} r_{sb} - \sum_{a < s} r_{as} \pmod{2^{64}} .

In the sum over *all* sites each :math:`r_{ab}` comes once with either sign: :math:`\sum_s y_s = \sum_s x_s`, exactly.
Without one of the pair's keys :math:`r_{ab}` cannot be told from uniform numbers, so any set of :math:`y_s` that lacks
a site shows nothing but noise.

The numbers are the output of SHAKE-256 on the key, followed by everything that the sites agreed on: pass, sites, pair,
specification, size, and the number of the block. One key serves any number of passes, each of them once.

References
----------
Bonawitz, Ivanov, Kreuter, Marcedone, McMahan, Patel, Ramage, Segal and Seth (2017), Practical secure aggregation for
privacy-preserving machine learning; here without its recovery from dropouts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["context_of", "key_check", "masked"]

Words = NDArray[np.uint64]

BLOCK_WORDS = 2**16
CHECK_BYTES = 16


def context_of(agreed: Mapping[str, Any]) -> bytes:
    """Everything public that a pass is about, as bytes: other terms, other masks."""
    return json.dumps(agreed, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def masked(exact: NDArray[np.int64], site: str, keys: Mapping[str, bytes], context: bytes) -> Words:
    """Add a site's masks to its exact integers, modulo 2^64.

    Parameters
    ----------
    exact : int64 array
    site : str
    keys : mapping
        The secret of each pair, by the name of the other site.
    context : bytes
        Of :func:`context_of`; the same at all sites.

    Examples
    --------
    >>> key, context = bytes(32), context_of({"pass": "spring"})
    >>> a = masked(np.array([3, 4]), "a", {"b": key}, context)
    >>> b = masked(np.array([10, -4]), "b", {"a": key}, context)
    >>> (a + b).view(np.int64)
    array([13,  0])
    """
    total: Words = np.ascontiguousarray(exact, dtype=np.int64).view(np.uint64).copy()
    for other, key in keys.items():
        stem = _stem(b"fogline-mask-1", site, other, key, context)
        for number, start in enumerate(range(0, total.size, BLOCK_WORDS)):
            here = total[start : start + BLOCK_WORDS]
            digest = hashlib.shake_256(stem + number.to_bytes(8, "big")).digest(8 * here.size)
            words = np.frombuffer(digest, dtype="<u8").astype(np.uint64)
            if site < other:
                here += words  # unsigned integers wrap: that is the arithmetic wanted
            else:
                here -= words
    return total


def key_check(site: str, other: str, key: bytes, context: bytes) -> str:
    """A few bytes that show whether two sites have the same key and context, and nothing of the key."""
    return hashlib.shake_256(_stem(b"fogline-check-1", site, other, key, context)).hexdigest(CHECK_BYTES)


def _stem(purpose: bytes, site: str, other: str, key: bytes, context: bytes) -> bytes:
    """Key, purpose, pair and context, each of a known or stated length, so that no two inputs run together."""
    pair = "+".join(sorted((site, other))).encode("ascii")
    return b"".join(len(part).to_bytes(8, "big") + part for part in (key, purpose, pair, context))
