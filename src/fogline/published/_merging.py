"""The two merges of the DP-GRAMS paper (section 3): to a known number of modes, or by distance.

Both replace a group of candidates by its mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

__all__ = ["merge", "merge_to_count", "merge_within"]

Array = NDArray[np.float64]


def _group_means(points: Array, labels: NDArray[np.int64]) -> Array:
    """Mean of each group, largest group first (ties: first seen first)."""
    names, members = np.unique(labels, return_inverse=True)
    counts = np.bincount(members, minlength=names.size)
    sums = np.zeros((names.size, points.shape[1]))
    np.add.at(sums, members, points)
    return np.asarray((sums / counts[:, None])[np.argsort(-counts, kind="stable")])


def merge_to_count(points: Array, n_modes: int) -> Array:
    """Agglomerate `points` into at most `n_modes` groups (Ward's linkage) and return the group means.

    The paper says "hierarchical clustering" without naming the linkage; Ward's is our choice, because with
    noisy candidates single linkage would spend its groups on outliers. Fewer points than modes come back as
    they are.

    Examples
    --------
    >>> merge_to_count(np.array([[0.0], [0.2], [5.0]]), 2).tolist()
    [[0.1], [5.0]]
    """
    if points.shape[0] <= n_modes:
        return points.copy()
    return _group_means(points, fcluster(linkage(points, method="ward"), n_modes, criterion="maxclust"))


def merge_within(points: Array, radius: float) -> Array:
    """Group points joined by a chain of steps no longer than `radius`; return the group means.

    Examples
    --------
    >>> merge_within(np.array([[0.0], [1.0], [2.0], [5.0]]), 1.0).tolist()
    [[1.0], [5.0]]
    """
    n = points.shape[0]
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    _, labels = connected_components(graph, directed=False)
    return _group_means(points, labels)


def merge(points: Array, *, n_modes: int | None, radius: float) -> Array:
    """Merge to `n_modes` groups when that number is known, else within `radius`.

    Examples
    --------
    >>> merge(np.array([[0.0], [0.2], [5.0]]), n_modes=None, radius=1.0).tolist()
    [[0.1], [5.0]]
    """
    return merge_within(points, radius) if n_modes is None else merge_to_count(points, n_modes)
