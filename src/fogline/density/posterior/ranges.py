"""Shares of ranges of a single column, some of whose ends lie inside the cell of a heap.

A heap lies in a range as a whole or not at all, and its cell is too narrow to look into. So an answer has three kinds
of draws: those in which heaps lie anywhere in their cells, which make its standard error, and those in which all heaps
that an end may cut off lie outside or inside. The interval reaches from the lower end of the second to the upper end of
the third: it holds whatever the place of the heap is.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fogline._typing import FloatArray
from fogline.density.posterior.axes import Ends, cut_shares
from fogline.density.posterior.estimates import Estimate, Target, whole_records

if TYPE_CHECKING:
    from fogline.density.posterior.posterior import Posterior

__all__ = ["share_of_range", "with_heaps_beside"]


def share_of_range(posterior: Posterior, ends: Ends, *, target: Target, level: float) -> Estimate:
    """Probability of a closed range of a posterior of one column.

    Examples
    --------
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> found = share_of_range(example_posterior(), (0, 2), target="population", level=0.95)
    >>> bool(found.low < 0.7 < found.high)
    True
    """
    axis, masses, heaps = posterior.axes[0], posterior.masses(target), posterior._heaps.leaves
    weights = axis.overlap(ends)
    value, draws, even = (part @ weights for part in (masses.estimate, masses.draws, masses.even))
    leaves, shares = cut_shares(axis, weights, len(draws), posterior._seed)
    shares[:, np.isin(leaves, heaps)] = weights[leaves[np.isin(leaves, heaps)]]
    draws = draws + (masses.draws[:, leaves] * (shares - weights[leaves])).sum(axis=1)
    outside, inside = draws, draws
    (low, high), slack = axis.range(ends), 1e-6 * axis.step
    for cells in (posterior._heaps, posterior._wide_heaps):
        if not len(cells.leaves):
            continue
        estimated, drawn = cells.inside(low, high, slack)
        value = value + float(cells.change(masses.estimate, weights, estimated[0], cells.part[0]))
        even = even + cells.change(masses.even, weights, estimated[0], cells.part[0])
        moved = (
            cells.change(masses.draws, weights, where, cells.drawn_part)
            for where in (drawn, *cells.possible(low, high, slack))
        )
        draws, outside, inside = (one + change for one, change in zip((draws, outside, inside), moved, strict=True))
    share = min(max(float(value), 0.0), 1.0)
    share = 1.0 if share > 1 - 1e-12 else share  # all leaves: what rounding of their sum leaves
    spread = math.sqrt(max(share * (1 - share), 0.0))
    found = posterior._estimate(share, np.clip(draws, 0.0, 1.0), even, spread, target, level)
    if outside is not inside:
        tail = (1 - level) / 2
        least, most = float(np.quantile(outside, tail)), float(np.quantile(inside, 1 - tail))
        found = replace(found, low=min(float(found.low), max(least, 0.0)), high=max(float(found.high), min(most, 1.0)))
    return whole_records(found, posterior._count[0])


def with_heaps_beside(posterior: Posterior, points: FloatArray, found: Estimate) -> Estimate:
    """Values of a distribution function, of which those inside the cell of a heap are answers of ranges.

    Parameters
    ----------
    posterior : Posterior
        Of one column.
    points : array of shape (points,)
    found : Estimate
        The distribution function at the points.
    """
    axis, cells = posterior.axes[0], (posterior._heaps.ends, posterior._wide_heaps.ends)
    first, last = np.concatenate(cells, axis=1)
    near = np.flatnonzero(((points[:, None] >= first) & (points[:, None] <= last)).any(axis=1))
    if not len(near):
        return found
    names = ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing")
    parts = np.array([np.asarray(getattr(found, name), dtype=np.float64) for name in names])
    for k in near.tolist():
        answer = share_of_range(
            posterior, (None, min(float(points[k]), axis.bounds[1])), target=found.target, level=found.level
        )
        parts[:, k] = [getattr(answer, name) for name in names]
    value, error, low, high, privacy, sampling, smoothing = parts
    return Estimate(value, error, low, high, found.level, found.target, privacy, sampling, smoothing)
