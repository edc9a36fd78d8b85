r"""How far a density is from its population, on a neutral resolution that belongs to no method.

Both are given as masses of equal cells of the box: 4096 in one column, 64 x 64 in two, 16 x 16 x 16 in three. With
:math:`p, q` the masses, :math:`P, Q` their cumulative sums, and the box scaled to unit sides:

==============  ====================================================================================================
hellinger       :math:`\sqrt{1 - \sum_c \sqrt{p_c q_c}}` on 64, 32 x 32 or 16 x 16 x 16 cells
w1              :math:`100 \int |P - Q|`, in percent of the box; in two and three columns the mean over 32 fixed
                directions of the projections' distance
prefix          :math:`100 \sqrt{\operatorname{mean}(P - Q)^2}` over the corners of all cells: prefix queries
boxes           :math:`100 \operatorname{mean} |p(B) - q(B)|` over 2000 fixed boxes
squared         :math:`\int (f - g)^2` of the densities on the cells of the Hellinger distance
rank            mean distance of 99 quantiles from their rank, in percent of the records (one column)
==============  ====================================================================================================

A density need not be continuous: an atom is mass in one cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_count

__all__ = [
    "COARSE_CELLS",
    "NEUTRAL_CELLS",
    "CellYardstick",
    "block_sums",
    "interval_coverage",
    "quantiles_of_cells",
    "rank_errors",
]

Array = NDArray[np.float64]

NEUTRAL_CELLS = {1: 4096, 2: 64, 3: 16}
"""Cells per axis on which everything is compared, by the number of axes."""
COARSE_CELLS = {1: 64, 2: 32, 3: 16}
"""Cells per axis of the Hellinger distance and of the integrated squared error."""
BOXES = 2000
DIRECTIONS = 32
LEVELS = np.arange(1, 100) / 100.0
_SEED = 20_150_301


def block_sums(masses: ArrayLike, cells: int) -> Array:
    """Sum the masses of equal blocks, so that every axis has `cells` of them.

    Examples
    --------
    >>> block_sums([0.1, 0.2, 0.3, 0.4], 2)
    array([0.3, 0.7])
    """
    array = np.asarray(masses, dtype=np.float64)
    for axis in range(array.ndim):
        size = array.shape[axis] // check_count(cells, "cells")
        if size * cells != array.shape[axis]:
            raise ValueError(f"cells must divide {array.shape[axis]}, got {cells}")
        array = np.asarray(np.add.reduceat(array, np.arange(0, array.shape[axis], size), axis=axis), dtype=np.float64)
    return array


@cache
def _boxes(d: int) -> NDArray[np.int64]:
    """Fixed random boxes between corners of cells, of shape (2000, d, 2)."""
    rng, cells = np.random.default_rng(_SEED), NEUTRAL_CELLS[d]
    ends = rng.integers(0, cells, size=(BOXES, d, 2))
    ends[..., 1] = (ends[..., 0] + 1 + rng.integers(0, cells, size=(BOXES, d))) % (cells + 1)
    return np.asarray(np.sort(ends, axis=-1))


@cache
def _directions(d: int) -> Array:
    """Fixed directions that cover half of the circle or of the sphere evenly."""
    turn: Array = np.arange(DIRECTIONS, dtype=np.float64) + 0.5
    if d == 2:
        angle = np.pi * turn / DIRECTIONS
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    height: Array = turn / DIRECTIONS
    angle = np.pi * (1.0 + math.sqrt(5.0)) * turn
    radius = np.sqrt(1 - height**2)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)


@cache
def _projections(d: int) -> tuple[NDArray[np.int64], Array]:
    """Order of the cells' middles along each direction, and the gaps between them."""
    cells = NEUTRAL_CELLS[d]
    middles = np.stack(np.meshgrid(*[(np.arange(cells) + 0.5) / cells] * d, indexing="ij"), axis=-1).reshape(-1, d)
    places = _directions(d) @ middles.T
    order = np.argsort(places, axis=1, kind="stable")
    return order, np.diff(np.take_along_axis(places, order, axis=1), axis=1)


def _corners(masses: Array) -> Array:
    """Mass below and left of every corner of the cells, the first being 0."""
    for axis in range(masses.ndim):
        masses = np.cumsum(masses, axis=axis)
        masses = np.concatenate([np.zeros_like(np.take(masses, [0], axis=axis)), masses], axis=axis)
    return masses


def _box_masses(corners: Array, boxes: NDArray[np.int64]) -> Array:
    """Mass of each box from the masses at the corners, by inclusion and exclusion."""
    d = corners.ndim
    total = np.zeros(len(boxes))
    for choice in np.ndindex(*(2,) * d):
        sign = (-1) ** (d - sum(choice))
        total += sign * corners[tuple(boxes[:, axis, end] for axis, end in enumerate(choice))]
    return total


@dataclass(frozen=True, eq=False)
class CellYardstick:
    """Judge of densities on one population.

    Attributes
    ----------
    truth : ndarray with `NEUTRAL_CELLS` on each axis
        Masses of the population, which sum to 1.

    Examples
    --------
    >>> flat = np.full(4096, 1 / 4096)
    >>> half = np.r_[np.full(2048, 1 / 2048), np.zeros(2048)]
    >>> errors = CellYardstick(flat).errors(half)
    >>> round(errors["hellinger"] ** 2, 6), round(errors["w1"], 6), round(errors["squared"], 6)
    (0.292893, 25.0, 1.0)
    """

    truth: Array

    def __post_init__(self) -> None:
        """Check the shape and that it is a distribution."""
        _require_masses(self.truth)

    def errors(self, masses: ArrayLike) -> dict[str, float]:
        """Compute every distance of a density from the population.

        Parameters
        ----------
        masses : array-like
            On the neutral cells; not negative, of sum 1.
        """
        q = np.asarray(masses, dtype=np.float64)
        _require_masses(q)
        if q.shape != self.truth.shape:
            raise ValueError(f"masses must have the shape {self.truth.shape}, got {q.shape}")
        d = q.ndim
        p_coarse, q_coarse = block_sums(self.truth, COARSE_CELLS[d]), block_sums(q, COARSE_CELLS[d])
        corners = _corners(q - self.truth)
        inner = corners[(slice(1, None),) * d]
        return {
            "hellinger": math.sqrt(max(0.0, 1.0 - float(np.sqrt(p_coarse * q_coarse).sum()))),
            "w1": 100.0 * _sliced(q - self.truth, corners),
            "prefix": 100.0 * math.sqrt(float(np.mean(inner**2))),
            "boxes": 100.0 * float(np.mean(np.abs(_box_masses(corners, _boxes(d))))),
            "squared": float(np.sum((p_coarse - q_coarse) ** 2) * p_coarse.size),
        }


def _require_masses(masses: Array) -> None:
    d = masses.ndim
    if d not in NEUTRAL_CELLS or masses.shape != (NEUTRAL_CELLS[d],) * d:
        raise ValueError(f"masses must be on the neutral cells {NEUTRAL_CELLS}, got shape {masses.shape}")
    if not np.isfinite(masses).all() or masses.min() < 0.0 or abs(masses.sum() - 1.0) > 1e-6:
        raise ValueError("masses must be finite, not negative, and sum to 1")


def _sliced(difference: Array, corners: Array) -> float:
    if difference.ndim == 1:
        # the cdfs are compared at the upper edges of the cells, as prefix queries are
        return float(np.mean(np.abs(corners[1:])))
    order, gaps = _projections(difference.ndim)
    moved = np.cumsum(difference.ravel()[order], axis=1)[:, :-1]
    return float(np.mean(np.sum(np.abs(moved) * gaps, axis=1)))


# -- one column: ranks and intervals --------------------------------------------------------------------------------


def quantiles_of_cells(masses: ArrayLike, bounds: Sequence[float], levels: ArrayLike = LEVELS) -> Array:
    """Quantiles of a density of one column that is even inside each cell.

    Examples
    --------
    >>> quantiles_of_cells([0.5, 0.5], (0.0, 4.0), [0.25, 0.5, 0.75])
    array([1., 2., 3.])
    """
    cdf = np.r_[0.0, np.cumsum(np.asarray(masses, dtype=np.float64))]
    cdf /= cdf[-1]
    wanted, low, high = np.asarray(levels, dtype=np.float64), float(bounds[0]), float(bounds[1])
    cell = np.clip(np.searchsorted(cdf, wanted, side="left") - 1, 0, len(cdf) - 2)
    share = (wanted - cdf[cell]) / np.maximum(cdf[cell + 1] - cdf[cell], 1e-300)
    return np.asarray(low + (high - low) * (cell + np.clip(share, 0.0, 1.0)) / (len(cdf) - 1))


def rank_errors(ordered: ArrayLike, answers: ArrayLike, levels: ArrayLike = LEVELS, *, tolerance: float = 0.0) -> Array:
    """Distance of each answer from the rank that was asked for, as a share of the records.

    Parameters
    ----------
    ordered : array-like of shape (n,)
        The records, in order.
    answers, levels : array-like
    tolerance : float
        Answers as near as this to a heap of records are taken to name it.

    Examples
    --------
    >>> rank_errors([1.0, 2.0, 2.0, 2.0, 9.0], [2.0, 2.5], [0.5, 0.5]).round(3)
    array([0. , 0.3])
    """
    rows, places = np.asarray(ordered, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    wanted = np.asarray(levels, dtype=np.float64)
    below = np.searchsorted(rows, places - tolerance, side="left") / len(rows)
    upto = np.searchsorted(rows, places + tolerance, side="right") / len(rows)
    return np.asarray(np.maximum(0.0, np.maximum(below - wanted, wanted - upto)))


def interval_coverage(low: ArrayLike, high: ArrayLike, truth: ArrayLike) -> float:
    """Share of the intervals that hold the truth, ends included.

    Examples
    --------
    >>> interval_coverage([0.0, 0.0], [1.0, 1.0], [0.5, 2.0])
    0.5
    """
    inside = (np.asarray(low) <= np.asarray(truth)) & (np.asarray(truth) <= np.asarray(high))
    return float(np.mean(inside))
