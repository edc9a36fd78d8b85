"""Contamination that hides in a family: how it must be spread so that no test of the fit finds it."""

from __future__ import annotations

import itertools
import math

import numpy as np

from fogline._typing import FloatArray

__all__ = ["hidden_directions"]


def hidden_directions(seen: FloatArray, influence: FloatArray, power: float, most: float) -> FloatArray:
    """Shares of other records in all cells that move each parameter most, up and down, without being found.

    Parameters
    ----------
    seen : array of shape (cells, cells)
        Quadratic form of the noncentrality.
    influence : array of shape (cells, parameters)
        Move of each parameter by a share of one in a cell.
    power, most : float
        Largest noncentrality that is not found, as a root; largest share in all.

    Returns
    -------
    array of shape (2 parameters, cells)

    Examples
    --------
    >>> hidden_directions(np.eye(2), np.array([[1.0], [1.0]]), 0.1, 0.2).round(3).tolist()
    [[0.071, 0.071], [0.0, 0.0]]
    """
    from scipy.optimize import nnls

    size, m = influence.shape
    values, vectors = np.linalg.eigh((seen + seen.T) / 2)
    # What no residual shows is limited by the largest share below, not by the test.
    values = np.maximum(values, 1e-6 * max(float(values[-1]), 1e-300))
    found = np.zeros((2 * m, size))
    for row, (j, sign) in enumerate(itertools.product(range(m), (1.0, -1.0))):
        slope = sign * influence[:, j]
        root = np.sqrt(values)
        share = nnls(root[:, None] * vectors.T, (vectors.T @ slope) / root, maxiter=50 * size)[0]
        size_seen = math.sqrt(max(float(share @ seen @ share), 1e-300))
        limit = most / max(float(share.sum()), 1e-300)
        found[row] = share * min(power / size_seen, limit)
    return found
