r"""Adding noise to integers without overflow.

Write :math:`C = 2^{61}` and :math:`[v]_C` for `v` clipped to :math:`[-C, C]`. `noisy_sum` returns

.. math:: \bigl[[x]_C + [z]_{2C}\bigr]_C = \bigl[[x]_C + z\bigr]_C ,

the right side for *any* integer :math:`z`, however far beyond int64: where :math:`z > 2C` both sums are at
least :math:`C` and both clip to :math:`C`, and likewise below. So the outcome is a function of :math:`[x]_C
+ z` alone (post-processing), clipping the exact value cannot spread neighbours (it is a contraction in every
coordinate), and the intermediate sum stays below :math:`3 \cdot 2^{61} < 2^{63}`.

Two different integer vectors are at least 1 apart in each of the three norms, so that a sensitivity below one step is
no sensitivity at all. It is taken as 1, and scales of noise are kept within what samplers and floats can do.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import IntArray
from fogline._validation import check_positive

__all__ = ["LEAST_SCALE", "LIMIT", "MOST_SCALE", "exact_integers", "in_steps", "noisy_sum", "sampled_scale"]

# Not 2**63: the sum of a clipped value and clipped noise must still fit.
LIMIT = 2**61
LEAST_SCALE = Fraction(1, 2**10)
MOST_SCALE = Fraction(2**200)


def in_steps(sensitivity: object) -> float:
    """Return a sensitivity of integers, at least one step of the lattice.

    Examples
    --------
    >>> in_steps(2.5), in_steps(1e-200)
    (2.5, 1.0)
    """
    return max(check_positive(sensitivity, "sensitivity"), 1.0)


def sampled_scale(needed: Fraction, formula: str, power: int = 1) -> Fraction:
    """Return the scale of noise to draw with, not below the one that is needed.

    Parameters
    ----------
    needed : Fraction
        The least scale that privacy asks for, or its square.
    formula : str
        What the scale is made of, for the error.
    power : {1, 2}
        2 if `needed` is the square of a scale; so is then what is returned.

    Examples
    --------
    >>> sampled_scale(Fraction(3), "sensitivity / epsilon"), sampled_scale(Fraction(1, 10**400), "", power=2)
    (Fraction(3, 1), Fraction(1, 1048576))
    >>> sampled_scale(Fraction(10**99), "sensitivity / epsilon")
    Traceback (most recent call last):
    ValueError: the scale of the noise, sensitivity / epsilon, must be at most 2^200: there would be noise only
    """
    if needed > MOST_SCALE**power:
        raise ValueError(f"the scale of the noise, {formula}, must be at most 2^200: there would be noise only")
    return max(needed, LEAST_SCALE**power)


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
    # Each part is clipped before the sum, so that it cannot wrap; the last clip is post-processing.
    return np.clip(np.clip(exact, -LIMIT, LIMIT) + np.clip(noise, -2 * LIMIT, 2 * LIMIT), -LIMIT, LIMIT)


def exact_integers(values: NDArray[Any], size: int) -> IntArray:
    """Return an exact answer as int64 of shape (size,); its type and shape are the caller's contract.

    Examples
    --------
    >>> exact_integers(np.array([1, 2], dtype=np.int32), 2)
    array([1, 2])
    """
    array = np.asarray(values)
    # floats are refused, not cast: a sum that was rounded has another sensitivity
    if array.dtype.kind not in "iu" or (array.dtype.kind == "u" and array.dtype.itemsize == 8):
        raise TypeError(f"the exact query must return integers that fit int64, got type {array.dtype}")
    if array.shape != (size,):
        raise ValueError(f"the exact query must return {size} integers, got shape {array.shape}")
    return array.astype(np.int64, copy=False)
