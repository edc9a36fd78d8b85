"""The Gaussian kernel as the published algorithms use it: weights, densities, rules of thumb.

Everything here reads raw records and is private in nothing. All functions are exact up to floating point;
work over many points is cut into blocks so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf
from scipy.spatial.distance import cdist

__all__ = [
    "data_scale",
    "kernel_density",
    "kernel_factor",
    "kernel_weights",
    "row_blocks",
    "shift",
    "silverman_bandwidth",
]

Array = NDArray[np.float64]

_BLOCK_CELLS = 1 << 17  # 1 MiB of weights at a time: measured fastest, since a block then stays in cache


def data_scale(X: Array) -> float:
    """Root of the mean variance over the axes; 1 when the records do not vary.

    Examples
    --------
    >>> data_scale(np.array([[0.0, 0.0], [2.0, 0.0]]))
    0.7071067811865476
    """
    scale = float(np.sqrt(np.mean(np.var(X, axis=0))))
    return scale if scale > 0 else 1.0


def silverman_bandwidth(X: Array) -> float:
    r"""Silverman's rule for a Gaussian kernel, one bandwidth for all axes.

    .. math:: h = s \left(\frac{4}{(d+2)\,n}\right)^{1/(d+4)}, \qquad s = \text{``data_scale''}(X).

    References
    ----------
    Silverman, *Density Estimation for Statistics and Data Analysis* (1986), section 4.3.2.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> round(silverman_bandwidth(X), 2)
    0.32
    """
    n, d = X.shape
    return float(data_scale(X) * (4.0 / ((d + 2.0) * n)) ** (1.0 / (d + 4.0)))


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Cut `rows` into slices whose product with `columns` stays near a fixed number of cells.

    Examples
    --------
    >>> [s.stop - s.start for s in row_blocks(5, 1 << 16)]
    [2, 2, 1]
    """
    step = max(1, _BLOCK_CELLS // max(1, columns))
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def _half_squares(points: Array, X: Array, bandwidth: float) -> Array:
    """Return ``|x - X_i|^2 / 2h^2`` as a (points, records) array, from the differences of the coordinates.

    The expansion |x|^2 - 2x.X + |X|^2 would be quicker in high dimension, but it cancels: a start *is* a
    record, and its own distance must come out as exactly zero.
    """
    scale = np.sqrt(0.5) / bandwidth
    left, right = points * scale, X * scale
    return np.asarray(cdist(left, right, "sqeuclidean"))


def kernel_weights(points: Array, X: Array, bandwidth: float) -> tuple[Array, Array]:
    r"""Kernel of each record at each point, relative to the largest, and the sums over records.

    Their quotient is the record's share of the density at the point,

    .. math:: w_i(x) = \frac{K((x - X_i)/h)}{\sum_j K((x - X_j)/h)} = \frac{K((x-X_i)/h)}{n h^d \hat p_h(x)}.

    The largest exponent is taken out first, so a point far from all records keeps finite weights. The
    quotient is left to the caller, who may need it for a batch only.

    Returns
    -------
    weights : ndarray of shape (points, n)
    totals : ndarray of shape (points, 1)

    Examples
    --------
    >>> weights, totals = kernel_weights(np.array([[0.5], [900.0]]), np.array([[0.0], [1.0]]), 1.0)
    >>> (weights / totals).round(3).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    weights = _half_squares(points, X, bandwidth)
    np.subtract(weights.min(axis=1, keepdims=True), weights, out=weights)
    np.exp(weights, out=weights)
    return weights, weights.sum(axis=1, keepdims=True)


def kernel_density(points: Array, X: Array, bandwidth: float) -> Array:
    r"""Gaussian kernel density estimate :math:`\hat p_h` at `points`.

    Examples
    --------
    >>> kernel_density(np.array([[0.0]]), np.array([[0.0]]), 1.0).round(4)
    array([0.3989])
    """
    n, d = X.shape
    density = np.empty(points.shape[0])
    for rows in row_blocks(points.shape[0], n):
        density[rows] = np.exp(-_half_squares(points[rows], X, bandwidth)).sum(axis=1)
    return np.asarray(density / (n * (np.sqrt(2.0 * np.pi) * bandwidth) ** d))


def kernel_factor(starts: Array, bandwidth: float) -> Array:
    """Return L with ``L @ L.T`` the kernel matrix of the starts, up to 1e-10: noise ``L @ z`` has that covariance.

    Pivoted Cholesky stops at the numerical rank, which for a smooth kernel is far below the number of starts
    and does not mind starts that coincide.

    Examples
    --------
    >>> kernel_factor(np.array([[1.0], [1.0]]), 1.0).shape
    (2, 1)
    """
    scaled = starts / bandwidth
    square = np.einsum("ij,ij->i", scaled, scaled)
    matrix = np.exp(-0.5 * np.maximum(square[:, None] + square - 2.0 * scaled @ scaled.T, 0.0))
    factor, pivots, rank, _ = dpstrf(matrix, lower=1, tol=1e-10)
    result = np.zeros((starts.shape[0], rank))
    result[pivots - 1] = np.tril(factor)[:, :rank]
    return result


def shift(points: Array, X: Array, values: Array, bandwidth: float) -> Array:
    """Mean of `values` (one row a record of `X`), weighted by the kernel of the records at each point.

    Examples
    --------
    >>> shift(np.array([[0.5]]), np.array([[0.0], [1.0]]), np.array([[2.0], [4.0]]), 1.0).tolist()
    [[3.0]]
    """
    moved = np.empty((points.shape[0], values.shape[1]))
    for rows in row_blocks(points.shape[0], X.shape[0]):
        weights, totals = kernel_weights(points[rows], X, bandwidth)
        moved[rows] = weights @ values / totals
    return moved
