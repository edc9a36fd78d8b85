r"""Noisy histograms: one count per cell, Laplace or geometric noise, and two ways to make a density of it.

A record is in one cell, so that one person who comes or goes moves the vector of counts by 1 in the sum of absolute
values: Laplace noise of scale :math:`1/\varepsilon` per count makes the histogram pure :math:`\varepsilon`-DP,
whatever the number of cells. The two-sided geometric law with ratio :math:`e^{-\varepsilon}` does the same on whole
numbers. The number of records is secret throughout.

These are baselines for measurements: the noise is drawn in floating point from a seeded generator, so nothing here is
certified and nothing protects anybody.

References
----------
.. [1] C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating noise to sensitivity in private data analysis", TCC
   2006.
.. [2] A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

__all__ = [
    "COUNT_SHARE",
    "FEW_CELLS",
    "block_counts",
    "block_spread",
    "flat_histogram",
    "geometric_noise",
    "monotone_cdf",
    "positive_part",
    "simplex_projection",
    "smooth_histogram",
]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

COUNT_SHARE = 0.05
"""Share of the budget for the number of records, where a projection needs one that is better than the cells' sum."""
FEW_CELLS = 256
"""Up to this many cells their noisy sum is a better number of records than that share would buy."""


def _groups(shape: tuple[int, ...], side: int) -> list[Counts]:
    """First leaf of each block per axis: blocks of equal size, the last one may be shorter."""
    return [np.arange(0, size, -(-size // side), dtype=np.int64) for size in shape]


def block_counts(counts: NDArray[np.generic], side: int) -> NDArray[np.generic]:
    """Sum the leaves of equal blocks, at most `side` per axis.

    Examples
    --------
    >>> block_counts(np.array([1, 2, 3, 4, 5]), 2)
    array([6, 9])
    """
    for axis, starts in enumerate(_groups(counts.shape, side)):
        counts = np.add.reduceat(counts, starts, axis=axis)
    return counts


def block_spread(blocks: Array, shape: tuple[int, ...], side: int) -> Array:
    """Spread the number of each block evenly over its leaves: the inverse of `block_counts` for even blocks.

    Examples
    --------
    >>> block_spread(np.array([6.0, 9.0]), (5,), 2)
    array([2. , 2. , 2. , 4.5, 4.5])
    """
    for axis, starts in enumerate(_groups(shape, side)):
        sizes = np.diff(np.r_[starts, shape[axis]])
        form = [1] * blocks.ndim
        form[axis] = -1
        blocks = np.repeat(blocks / sizes.reshape(form), sizes, axis=axis)
    return blocks


def geometric_noise(epsilon: float, size: int | tuple[int, ...], rng: np.random.Generator) -> Array:
    r"""Whole numbers with :math:`P(k) \propto e^{-\varepsilon |k|}`: a difference of two geometric numbers."""
    success = -np.expm1(-epsilon)
    return (rng.geometric(success, size) - rng.geometric(success, size)).astype(np.float64)


def flat_histogram(
    counts: Counts,
    epsilon: float,
    rng: np.random.Generator,
    *,
    side: int,
    noise: Literal["laplace", "geometric"] = "laplace",
) -> Array:
    """Release the counts of `side` blocks per axis, spread evenly over their leaves.

    Parameters
    ----------
    counts : int64 array with d axes
        Exact counts of the leaves.
    epsilon : float
    rng : numpy Generator
    side : int
        Blocks per axis.
    noise : {"laplace", "geometric"}

    Returns
    -------
    ndarray of the shape of `counts`
        May be negative.

    Examples
    --------
    >>> flat_histogram(np.array([4, 0, 2, 2]), 1e9, np.random.default_rng(0), side=2).round(6) + 0.0
    array([2., 2., 2., 2.])
    """
    blocks = block_counts(counts, side).astype(np.float64)
    blocks += (
        rng.laplace(0.0, 1.0 / epsilon, blocks.shape)
        if noise == "laplace"
        else geometric_noise(epsilon, blocks.shape, rng)
    )
    return block_spread(blocks, counts.shape, side)


def smooth_histogram(counts: Counts, *, side: int) -> Array:
    """Histogram of `side` cells per axis without noise, spread over the leaves: a smoother that protects nobody."""
    return positive_part(block_spread(block_counts(counts, side).astype(np.float64), counts.shape, side))


def positive_part(values: Array) -> Array:
    """Cut negative numbers off and scale the rest to sum 1; even masses where nothing is left.

    Examples
    --------
    >>> positive_part(np.array([3.0, -1.0, 1.0]))
    array([0.75, 0.  , 0.25])
    """
    masses = np.maximum(values, 0.0)
    total = masses.sum()
    return np.asarray(masses / total if total > 0 else np.full(values.shape, 1.0 / values.size))


def monotone_cdf(values: Array) -> Array:
    """Masses of one column whose cumulative sums are the rising ones nearest to those of noisy counts.

    Unlike the positive part this keeps long ranges where they were: negative noise cancels the positive beside it.

    Examples
    --------
    >>> monotone_cdf(np.array([3.0, -1.0, 1.0, 1.0]))
    array([0.625, 0.   , 0.125, 0.25 ])
    """
    sums = np.cumsum(values)
    rising = np.clip(isotonic_regression(sums).x, 0.0, None)
    return positive_part(np.diff(np.r_[0.0, rising]))


def simplex_projection(values: Array, total: float) -> Array:
    r"""Nearest non-negative vector of the given sum, in the sum of squares, scaled to sum 1.

    It is :math:`(x_i - \tau)_+` with the one :math:`\tau` that gives the sum.

    Examples
    --------
    >>> simplex_projection(np.array([3.0, -1.0, 1.0]), 2.0)
    array([1., 0., 0.])
    """
    if not total > 0:
        return np.full(values.shape, 1.0 / values.size)
    ordered = np.sort(values, axis=None)[::-1]
    levels = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    kept = int(np.flatnonzero(ordered > levels)[-1])
    return positive_part(values - levels[kept])
