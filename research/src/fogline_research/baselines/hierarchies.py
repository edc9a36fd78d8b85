r"""Noisy trees of counts: every level of a hierarchy of blocks, made consistent by least squares.

Level l of h has :math:`b^{l d}` blocks. A record is in one block per level, so that a share :math:`\varepsilon/h`
for each level makes the whole :math:`\varepsilon`-DP. The least-squares estimate of the leaves given all levels has
two passes: upwards each block averages its own count with the sum of its children, downwards the children share what
is left of their parent. HB takes the branching that makes range queries best for the size of the domain; a quadtree is
the same with two children per axis.

References
----------
.. [1] M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the accuracy of differentially private histograms through
   consistency", VLDB 2010.
.. [2] W. Qardaji, W. Yang, N. Li, "Understanding hierarchical methods for differentially private histograms", VLDB
   2013.
.. [3] G. Cormode, C. Procopiuc, D. Srivastava, E. Shen, T. Yu, "Differentially private spatial decompositions", ICDE
   2012.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fogline_research.baselines.histograms import block_counts, block_spread

__all__ = ["best_branching", "consistent_leaves", "hierarchical_histogram"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def best_branching(size: int) -> int:
    r"""Branching with the least mean variance of a range query over a domain of this size.

    With height :math:`h = \lceil\log_b N\rceil` and the level shares of equal size it is proportional to
    :math:`(b - 1) h^3 - 2 (b + 1) h^2 / 3` [2]_. A small domain is best counted flat.

    Examples
    --------
    >>> best_branching(4096), best_branching(64)
    (16, 64)
    """

    def height(b: int) -> int:
        levels, reach = 1, b
        while reach < size:
            levels, reach = levels + 1, reach * b
        return levels

    def variance(b: int) -> float:
        h = height(b)
        return (b - 1) * h**3 - 2.0 * (b + 1) * h**2 / 3.0

    return min(range(2, max(size, 2) + 1), key=variance)


def _children(level: Array, branching: int) -> Array:
    """Sum of each block's children."""
    for axis in range(level.ndim):
        level = np.add.reduceat(level, np.arange(0, level.shape[axis], branching), axis=axis)
    return level


def _repeat(level: Array, branching: int) -> Array:
    for axis in range(level.ndim):
        level = np.repeat(level, branching, axis=axis)
    return level


def _split_among(children: Array, totals: Array, branching: int) -> Array:
    """Nearest children that are not negative and sum to their parent, which is not negative."""
    d, side = children.ndim, children.shape[0] // branching
    form = tuple(size for _ in range(d) for size in (side, branching))
    axes = (*range(0, 2 * d, 2), *range(1, 2 * d, 2))
    rows = children.reshape(form).transpose(axes).reshape(side**d, branching**d)
    ordered = -np.sort(-rows, axis=1)
    levels = (np.cumsum(ordered, axis=1) - totals.reshape(-1, 1)) / np.arange(1, rows.shape[1] + 1)
    last = rows.shape[1] - 1 - np.argmax((ordered > levels)[:, ::-1], axis=1)
    shifted = np.maximum(rows - np.take_along_axis(levels, last[:, None], axis=1), 0.0)
    shifted[totals.ravel() <= 0.0] = 0.0
    back = tuple(np.argsort(axes))
    return shifted.reshape((side,) * d + (branching,) * d).transpose(back).reshape(children.shape)


def consistent_leaves(levels: list[Array], branching: int, *, nonnegative: bool = False) -> Array:
    """Least-squares estimate of the leaves, given noisy counts of all levels with the same variance.

    Parameters
    ----------
    levels : list of ndarray
        Coarsest first; each has `branching` times as many blocks per axis as the one before.
    branching : int
        Children per axis.
    nonnegative : bool
        Whether each block's children are made non-negative on the way down, without moving their sum.

    Examples
    --------
    >>> consistent_leaves([np.array([3.0]), np.array([1.0, 1.0])], 2).round(4)
    array([1.3333, 1.3333])
    """
    b = branching ** levels[0].ndim
    upward = [levels[-1]]
    for height, own in enumerate(reversed(levels[:-1]), start=2):
        weight = (b**height - b ** (height - 1)) / (b**height - 1)
        upward.append(weight * own + (1.0 - weight) * _children(upward[-1], branching))
    estimate = np.maximum(upward[-1], 0.0) if nonnegative else upward[-1]
    for below in reversed(upward[:-1]):
        if nonnegative:
            estimate = _split_among(below, estimate, branching)
            continue
        estimate = below + _repeat((estimate - _children(below, branching)) / b, branching)
    return estimate


def hierarchical_histogram(
    counts: Counts,
    epsilon: float,
    rng: np.random.Generator,
    *,
    side: int,
    branching: int | None = None,
    nonnegative: bool = False,
) -> Array:
    """Release a tree of counts whose leaves are `side` blocks per axis, and read its consistent leaves.

    Parameters
    ----------
    counts : int64 array with d axes
    epsilon : float
    rng : numpy Generator
    side : int
        Blocks per axis of the finest level.
    branching : int, optional
        Children per axis; by default the best for `side`.
    nonnegative : bool
        As in `consistent_leaves`.

    Returns
    -------
    ndarray of the shape of `counts`

    Examples
    --------
    >>> counts = np.array([4, 0, 2, 2, 1, 1, 0, 5])
    >>> hierarchical_histogram(counts, 1e9, np.random.default_rng(0), side=8, branching=2).round(6) + 0.0
    array([4., 0., 2., 2., 1., 1., 0., 5.])
    """
    blocks = block_counts(counts, side)
    b = branching or best_branching(max(blocks.shape))
    height = 1
    while b**height < max(blocks.shape):
        height += 1
    padded = np.zeros((b**height,) * blocks.ndim)
    padded[tuple(slice(0, size) for size in blocks.shape)] = blocks
    exact = [padded]
    for _ in range(height - 1):
        exact.insert(0, _children(exact[0], b))
    noisy = [level + rng.laplace(0.0, height / epsilon, level.shape) for level in exact]
    leaves = consistent_leaves(noisy, b, nonnegative=nonnegative)[tuple(slice(0, size) for size in blocks.shape)]
    return block_spread(leaves, counts.shape, side)
