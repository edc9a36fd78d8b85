r"""Many quantiles by the recursive exponential mechanism, and the density between them.

The median of the records is drawn from the exponential mechanism, then the medians of the records below and above it,
and so on for h levels: :math:`m = 2^h - 1` quantiles. With n records of which i lie left of a point, the
utility is :math:`-|i - n/2|`; one record more or less moves it by 1/2, so that drawing an interval between neighbouring
records with probability proportional to its length times :math:`\exp(-\varepsilon_h |i - n/2|)` is
:math:`\varepsilon_h`-DP. The medians of one level read disjoint records, whose boundaries earlier levels have released:
each level costs :math:`\varepsilon_h = \varepsilon/h` together. No number of records is needed.

Equal values would leave intervals of no length. Every record is therefore moved at random within one leaf (or one step
of the lattice) first, which each record does by itself, and which costs nothing.

References
----------
.. [1] H. Kaplan, S. Schnapp, U. Stemmer, "Differentially private approximate quantiles", ICML 2022.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cells_of_quantiles", "median_draw", "recursive_quantiles"]

Array = NDArray[np.float64]

UTILITY_SENSITIVITY = 0.5
"""How far one record moves the utility of a median, at most."""


def median_draw(ordered: Array, low: float, high: float, epsilon: float, rng: np.random.Generator) -> float:
    """Draw a median of ordered records between two ends by the exponential mechanism.

    Examples
    --------
    >>> round(median_draw(np.array([1.0, 2.0, 2.001, 7.0]), 0.0, 9.0, 1e4, np.random.default_rng(0)), 2)
    2.0
    """
    edges, score = _median_scores(ordered, low, high, epsilon)
    if not np.isfinite(score).any():
        return low
    chosen = int(np.argmax(score + rng.gumbel(size=len(score))))
    return float(edges[chosen] + (edges[chosen + 1] - edges[chosen]) * rng.random())


def _median_scores(ordered: Array, low: float, high: float, epsilon: float) -> tuple[Array, Array]:
    """Ends of the intervals between records, and the logarithm of each one's weight."""
    edges = np.concatenate([[low], ordered, [high]])
    utility = -np.abs(np.arange(len(ordered) + 1) - len(ordered) / 2.0)
    with np.errstate(divide="ignore"):
        return edges, np.log(np.diff(edges)) + epsilon * utility / (2.0 * UTILITY_SENSITIVITY)


def recursive_quantiles(
    records: Array, low: float, high: float, epsilon: float, rng: np.random.Generator, *, levels: int, width: float
) -> Array:
    """Release 2^levels - 1 equally spaced quantiles of the records in [low, high].

    Parameters
    ----------
    records : array of shape (n,)
    low, high : float
        Public bounds.
    epsilon : float
        Of all quantiles together.
    rng : numpy Generator
    levels : int
    width : float
        Every record is moved at random within this length first.

    Returns
    -------
    ndarray of shape (2^levels - 1,)
        Not falling.

    Examples
    --------
    >>> records = np.arange(1.0, 1000.0)
    >>> recursive_quantiles(records, 0, 1000, 1e3, np.random.default_rng(0), levels=2, width=0.0).round(-1)
    array([250., 500., 750.])
    """
    inside = records[(records >= low) & (records <= high)]
    moved = inside + width * (rng.random(len(inside)) - 0.5)
    ordered = np.sort(np.clip(moved, low, high))
    answers = np.empty(2**levels - 1)

    def recurse(rows: Array, left: float, right: float, first: int, last: int) -> None:
        if first > last:
            return
        middle = (first + last) // 2
        answers[middle] = median_draw(rows, left, right, epsilon / levels, rng)
        cut = int(np.searchsorted(rows, answers[middle]))
        recurse(rows[:cut], left, answers[middle], first, middle - 1)
        recurse(rows[cut:], answers[middle], right, middle + 1, last)

    recurse(ordered, low, high, 0, len(answers) - 1)
    return answers


def cells_of_quantiles(quantiles: Array, low: float, high: float, cells: int) -> Array:
    """Masses of equal cells of a density that is even between neighbouring quantiles.

    Examples
    --------
    >>> cells_of_quantiles(np.array([0.25]), 0.0, 1.0, 4).round(4)
    array([0.5   , 0.1667, 0.1667, 0.1667])
    """
    knots = np.concatenate([[low], quantiles, [high]])
    levels = np.linspace(0.0, 1.0, len(knots))
    edges = np.linspace(low, high, cells + 1)
    cdf = np.interp(edges, knots, levels)
    cdf[0], cdf[-1] = 0.0, 1.0
    return np.diff(cdf)
