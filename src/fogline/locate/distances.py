r"""How many records lie near each record, at all radii at once, in blocks that fit into memory.

Lattice vectors have squared distances :math:`D = |x|^2 + |y|^2 - 2x\cdot y`, whole numbers that float64 holds exactly.
Radii are powers of two, so that the bin of a distance is read off the exponent of the double:
:math:`D \le 4^i \iff \lfloor\log_2(D - \tfrac12)\rfloor < 2i`. One product of matrices and one count for each block do
for all radii; a block has at most :data:`BLOCK_CELLS` distances.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK_CELLS", "near_counts"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BLOCK_CELLS = 2**20
"""Most distances that are in memory at a time."""

EXPONENT_BIAS, MANTISSA_BITS = 1023, 52
"""Of a double."""


def near_counts(vectors: FloatArray, smallest: int, size: int, stretch: float = 1.0) -> IntArray:
    r"""Count, for each vector x and each :math:`i < size`, the vectors y with :math:`|x - y| \le c\,2^{s+i}`.

    Parameters
    ----------
    vectors : array of shape (n, d)
        Whole numbers with squared distances below 2**53.
    smallest : int
        The exponent s.
    size : int
        Number of radii.
    stretch : float
        The factor c of all radii.

    Returns
    -------
    array of shape (n, size)
        Every vector counts itself.

    Examples
    --------
    >>> near_counts(np.array([[0.0], [1.0], [3.0], [9.0]]), smallest=0, size=4).tolist()
    [[2, 2, 3, 3], [2, 3, 3, 4], [1, 2, 3, 4], [1, 1, 1, 3]]
    """
    n = len(vectors)
    squared = np.einsum("ij,ij->i", vectors, vectors)
    counts = np.zeros((n, size), dtype=np.int64)
    height = max(1, BLOCK_CELLS // max(n, 1))
    for start in range(0, n, height):
        block = vectors[start : start + height]
        distances = (squared[start : start + height, None] + squared) - 2.0 * (block @ vectors.T)
        bins = _radius_index(distances, stretch, smallest, size)
        bins += (size + 1) * np.arange(len(block))[:, None]
        table = np.bincount(bins.ravel(), minlength=len(block) * (size + 1)).reshape(len(block), size + 1)
        counts[start : start + height] = np.cumsum(table, axis=1)[:, :size]
    return counts


def _radius_index(squared_distances: FloatArray, stretch: float, smallest: int, size: int) -> IntArray:
    """Index of the first radius that reaches so far; `size` if none does."""
    shifted = np.maximum(squared_distances - 0.5, 0.5)
    if stretch != 1.0:
        shifted /= stretch**2
    exponents = (shifted.view(np.int64) >> MANTISSA_BITS) - EXPONENT_BIAS
    return np.asarray(np.clip((exponents >> 1) + 1 - smallest, 0, size))
