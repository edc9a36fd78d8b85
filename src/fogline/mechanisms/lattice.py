r"""Adding noise to integers without overflow.

Write :math:`C = 2^{61}` and :math:`[v]_C` for `v` clipped to :math:`[-C, C]`. `noisy_sum` returns

.. math:: \bigl[[x]_C + [z]_{2C}\bigr]_C = \bigl[[x]_C + z\bigr]_C ,

the right side for *any* integer :math:`z`, however far beyond int64: where :math:`z > 2C` both sums are at
least :math:`C` and both clip to :math:`C`, and likewise below. So the outcome is a function of :math:`[x]_C
+ z` alone (post-processing), clipping the exact value cannot spread neighbours (it is a contraction in every
coordinate), and the intermediate sum stays below :math:`3 \cdot 2^{61} < 2^{63}`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.mechanisms.entropy import IntArray

__all__ = ["LIMIT", "exact_integers", "noisy_sum"]

LIMIT = 2**61


def noisy_sum(exact: IntArray, noise: IntArray) -> IntArray:
    """Return exact + noise, clipped to plus or minus 2^61 as the module describes.

    Parameters
    ----------
    exact, noise : int64 arrays of one shape
        Noise beyond int64 may have been clipped to int64 before.

    Examples
    --------
    >>> noisy_sum(np.array([1, 2**62]), np.array([5, 2**62])).tolist() == [6, LIMIT]
    True
    """
    return np.clip(np.clip(exact, -LIMIT, LIMIT) + np.clip(noise, -2 * LIMIT, 2 * LIMIT), -LIMIT, LIMIT)


def exact_integers(values: NDArray[Any], size: int) -> IntArray:
    """Return an exact answer as int64 of shape (size,); its type and shape are the caller's contract.

    Examples
    --------
    >>> exact_integers(np.array([1, 2], dtype=np.int32), 2)
    array([1, 2])
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "u" and array.dtype.itemsize == 8):
        raise TypeError(f"the exact query must return integers that fit int64, got type {array.dtype}")
    if array.shape != (size,):
        raise ValueError(f"the exact query must return {size} integers, got shape {array.shape}")
    return array.astype(np.int64, copy=False)
