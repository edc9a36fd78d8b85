r"""Uniform and adaptive grids for two and three columns.

The uniform grid has :math:`m = (N\varepsilon/c)^{2/(d+2)}` cells per axis: noise grows with the number of cells, the
error of spreading a cell's count evenly falls with it. In two columns this is the published
:math:`\sqrt{N\varepsilon/c}`, and the same argument gives the exponent in three. The adaptive grid counts a coarse
grid with half of the budget, and splits each of its cells into as many parts as that rule gives for its noisy count,
which the other half counts. Both counts of a cell are then averaged by their variances, and its parts moved to sum to
the average.

The number of records N is secret: a small share of the budget buys a noisy one. A record is in one cell of each grid,
so that the shares add up to :math:`\varepsilon`.

References
----------
.. [1] W. Qardaji, W. Yang, N. Li, "Differentially private grids for geospatial data", ICDE 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline_research.baselines.histograms import flat_histogram

__all__ = ["GridTuning", "adaptive_grid", "uniform_grid"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class GridTuning:
    """Public choices, those of the paper; `count_share` is ours, since its N is public."""

    constant: float = 10.0
    inner_constant: float = 5.0
    first_share: float = 0.5
    least_side: int = 10
    count_share: float = 0.03


def _side(records: float, epsilon: float, constant: float, d: int) -> int:
    side: float = (max(records, 0.0) * epsilon / constant) ** (2.0 / (d + 2))
    return max(1, math.ceil(side))


def _cuts(size: int, parts: int) -> Counts:
    """First leaf of each of about equal parts of an axis, and its end."""
    return np.unique(np.round(np.linspace(0, size, min(parts, size) + 1)).astype(np.int64))


def uniform_grid(
    counts: Counts,
    epsilon: float,
    rng: np.random.Generator,
    tuning: GridTuning = GridTuning(),
) -> Array:
    """Release a grid whose size follows from the noisy number of records, spread evenly over the leaves.

    Examples
    --------
    >>> counts = np.full((8, 8), 100)
    >>> bool(np.allclose(uniform_grid(counts, 1e6, np.random.default_rng(0)), 100, atol=1e-2))
    True
    """
    paid = tuning.count_share * epsilon
    records = counts.sum() + rng.laplace(0.0, 1.0 / paid)
    side = _side(records, epsilon - paid, tuning.constant, counts.ndim)
    return flat_histogram(counts, epsilon - paid, rng, side=min(side, max(counts.shape)))


def adaptive_grid(
    counts: Counts,
    epsilon: float,
    rng: np.random.Generator,
    tuning: GridTuning = GridTuning(),
) -> Array:
    """Release a coarse grid whose full cells are split further, spread evenly over the leaves.

    Parameters
    ----------
    counts : int64 array with d axes
    epsilon : float
    rng : numpy Generator
    tuning : GridTuning

    Returns
    -------
    ndarray of the shape of `counts`
        May be negative.

    Examples
    --------
    >>> counts = np.full((32, 32), 50)
    >>> bool(np.allclose(adaptive_grid(counts, 1e6, np.random.default_rng(0)), 50, atol=1e-2))
    True
    """
    d, paid = counts.ndim, tuning.count_share * epsilon
    records = counts.sum() + rng.laplace(0.0, 1.0 / paid)
    first = tuning.first_share * (epsilon - paid)
    second = epsilon - paid - first
    side = max(
        tuning.least_side if d == 2 else tuning.least_side // 2, _side(records, epsilon, tuning.constant, d) // 4
    )
    cuts = [_cuts(size, side) for size in counts.shape]
    coarse = counts
    for axis, edges in enumerate(cuts):
        coarse = np.add.reduceat(coarse, edges[:-1], axis=axis)
    noisy = coarse + rng.laplace(0.0, 1.0 / first, coarse.shape)
    released = np.empty(counts.shape)
    for place in np.ndindex(*noisy.shape):
        region = tuple(slice(edges[k], edges[k + 1]) for edges, k in zip(cuts, place, strict=True))
        inner = _side(float(noisy[place]), second, tuning.inner_constant, d)
        released[region] = _split_cell(counts[region], float(noisy[place]), inner, first, second, rng)
    return released


def _split_cell(
    counts: Counts, noisy: float, side: int, first: float, second: float, rng: np.random.Generator
) -> Array:
    """Count the parts of one cell, and make them agree with the cell's own count."""
    cuts = [_cuts(size, side) for size in counts.shape]
    parts = counts
    for axis, edges in enumerate(cuts):
        parts = np.add.reduceat(parts, edges[:-1], axis=axis)
    values = parts + rng.laplace(0.0, 1.0 / second, parts.shape)
    own = first**2 * values.size / (second**2 + first**2 * values.size)
    values = values + (own * noisy + (1.0 - own) * values.sum() - values.sum()) / values.size
    for axis, edges in enumerate(cuts):
        sizes, form = np.diff(edges), [1] * values.ndim
        form[axis] = -1
        values = np.repeat(values / sizes.reshape(form), sizes, axis=axis)
    return np.asarray(values)
