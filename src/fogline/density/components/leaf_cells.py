r"""Leaf masses of a posterior as some thousand weighted cells, for readings that look at all of them many times.

The leaves of each axis are joined to groups, narrow where there is much mass and wide where there is little. A cell of
such groups keeps its mass :math:`p_c`, its mean :math:`x_c` and its covariance :math:`W_c` about it, so that the
moments of any union of cells are those of its leaves. Coordinates are scaled by the released mean and spread of each
column: columns in grams and in millimetres then count alike.

A value of a lattice stands for its step: its records are spread evenly over it, and no shape is narrower. Else every
whole number would be a group of its own, of no width. Only a column of two or three values has nothing but them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fogline._typing import FloatArray, IntArray

if TYPE_CHECKING:
    from fogline.density.posterior.axes import LeafAxis
    from fogline.density.posterior.posterior import Posterior

__all__ = ["CELLS", "CellSettings", "LeafCells", "group_starts", "joined_groups"]


@dataclass(frozen=True)
class CellSettings:
    """How leaves are joined.

    Attributes
    ----------
    groups : tuple of int
        Most groups per axis, for one, two and three columns.
    even : float
        Part of the groups that divide the occupied range evenly; the others follow the mass.
    tail : float
        Share of the mass beyond each end of the occupied range.
    least : float
        Cells with less mass than this, in the estimate and in the draws, are left out.
    narrowest : float
        Least spread of a column, as a fraction of its public range.
    few_values : int
        A lattice with at most so many values is a list of them: each may be a group.
    """

    groups: tuple[int, int, int] = (320, 48, 20)
    even: float = 0.6
    tail: float = 5e-4
    least: float = 1e-6
    narrowest: float = 1e-4
    few_values: int = 3


CELLS = CellSettings()


@dataclass(frozen=True, eq=False)
class LeafCells:
    """Weighted cells in scaled coordinates.

    Attributes
    ----------
    mass : array of shape (cells,)
        Estimated share of each cell; they sum to one.
    draws : array of shape (draws, cells)
        The same of each posterior draw.
    places : array of shape (cells, d)
        Mean of each cell.
    within : array of shape (cells, d, d)
        Covariance inside each cell.
    volume : array of shape (cells,)
    centre, scale : array of shape (d,)
        Data units are ``centre + scale * places``.
    lower, upper : array of shape (d,)
        The public box, scaled.
    floor : array of shape (d,)
        Variance of mass that is spread evenly over one leaf.
    count : float
        Released number of records.
    """

    mass: FloatArray
    draws: FloatArray
    places: FloatArray
    within: FloatArray
    volume: FloatArray
    centre: FloatArray
    scale: FloatArray
    lower: FloatArray
    upper: FloatArray
    floor: FloatArray
    count: float

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.places.shape[1])

    @cached_property
    def moments(self) -> FloatArray:
        r"""Per cell 1, :math:`x_c` and :math:`x_c x_c^\top + W_c`, in a row of 1 + d + d^2 numbers."""
        square = np.einsum("ci,cj->cij", self.places, self.places) + self.within
        return np.hstack([np.ones((len(self.mass), 1)), self.places, square.reshape(len(square), -1)])

    @cached_property
    def farthest(self) -> float:
        """Largest square of a cell's coordinates, with what lies inside it."""
        return float(self.moments[:, 1 + self.d :].max())

    def scaled(self, points: FloatArray) -> FloatArray:
        """Points in data units as scaled ones."""
        return np.asarray((points - self.centre) / self.scale)

    @classmethod
    def of(cls, posterior: Posterior, settings: CellSettings = CELLS) -> LeafCells:
        """Join the leaves of a posterior of up to three columns.

        Examples
        --------
        >>> from fogline.density.posterior.posterior import example_posterior
        >>> cells = LeafCells.of(example_posterior())
        >>> round(float(cells.mass.sum()), 6), abs(round(float(cells.mass @ cells.places[:, 0]), 6))
        (1.0, 0.0)
        """
        masses, d = posterior.masses(), posterior.d
        margins = [masses.estimate.sum(axis=tuple(k for k in range(d) if k != axis)) for axis in range(d)]
        within_leaf = np.array([_variance_inside(axis, settings) for axis in posterior.axes])
        values = [posterior.places(axis) for axis in range(d)]  # zeros count as zeros, not as the middle of their leaf
        centre = np.array([float(m @ value) for m, value in zip(margins, values, strict=True)])
        spread = [float(m @ (value - c) ** 2) for m, value, c in zip(margins, values, centre, strict=True)]
        ranges = np.array([axis.bounds[1] - axis.bounds[0] for axis in posterior.axes])
        scale = np.maximum(np.sqrt(np.array(spread) + within_leaf), settings.narrowest * ranges)
        starts = [group_starts(m, settings.groups[d - 1], settings) for m in margins]
        x = [(value - c) / s for value, c, s in zip(values, centre, scale, strict=True)]
        mass, places, within = _moments(masses.estimate, x, starts)
        drawn = joined_groups(masses.draws, starts).reshape(len(masses.draws), -1)
        widths = np.ones(())
        for axis, start, s in zip(posterior.axes, starts, scale, strict=True):
            width = np.diff(np.append(axis.edges[start], axis.edges[-1])) / s
            widths = np.multiply.outer(widths, width)
        kept = np.maximum(mass, drawn.mean(axis=0)) > settings.least
        floor = np.maximum(within_leaf, (1e-6 * ranges) ** 2)
        # A column that is narrower than the buckets may be one value: no group of records is told by its width there.
        alike = np.array(spread) <= np.square([posterior.bucket_side(axis) for axis in range(d)])
        floor = np.where(alike & (d > 1), np.maximum(floor, np.array(spread) + within_leaf), floor) / scale**2
        return cls(
            mass=mass[kept] / mass[kept].sum(),
            draws=drawn[:, kept] / np.maximum(drawn[:, kept].sum(axis=1, keepdims=True), 1e-300),
            places=places[kept],
            within=within[kept] + np.diag(within_leaf / scale**2),
            volume=widths.ravel()[kept],
            centre=centre,
            scale=scale,
            lower=(np.array([axis.bounds[0] for axis in posterior.axes]) - centre) / scale,
            upper=(np.array([axis.bounds[1] for axis in posterior.axes]) - centre) / scale,
            floor=floor,
            count=float(posterior.count.value),
        )


def _variance_inside(axis: LeafAxis, settings: CellSettings) -> float:
    """Variance of mass that is spread evenly over one leaf; a value of a lattice stands for its whole step."""
    if axis.step and len(axis.centres) > settings.few_values:
        return axis.width**2 / 12
    return axis.reach * (axis.reach + axis.step) / 3


def group_starts(margin: FloatArray, groups: int, settings: CellSettings = CELLS) -> IntArray:
    """First leaves of the groups of one axis: part of them even over the occupied range, part by mass.

    Examples
    --------
    >>> group_starts(np.array([0.0, 0.0, 0.4, 0.4, 0.2, 0.0, 0.0, 0.0]), 3).tolist()
    [0, 2, 3, 4, 5]
    """
    if len(margin) <= groups:
        return np.arange(len(margin))
    share = margin / margin.sum()
    below = np.cumsum(share)
    first = int(np.searchsorted(below, settings.tail))
    last = min(int(np.searchsorted(below, 1 - settings.tail)) + 1, len(margin))
    inside = np.zeros(len(margin))
    inside[first:last] = 1 / (last - first)
    measure = np.cumsum(settings.even * inside + (1 - settings.even) * share)
    cuts = np.searchsorted(measure, np.arange(1, groups) / groups * measure[-1]) + 1
    starts = np.unique(np.concatenate([[0, first, last], cuts]))
    return np.asarray(starts[starts < len(margin)])


def joined_groups(part: FloatArray, starts: list[IntArray]) -> FloatArray:
    """Sums over groups of leaves; the last axes are the columns."""
    d = len(starts)
    for axis, start in enumerate(starts):
        part = np.add.reduceat(part, start, axis=axis - d)
    return part


def _moments(
    mass: FloatArray, x: list[FloatArray], starts: list[IntArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mass, mean and covariance of each cell, flat; an empty cell is that of even mass."""
    d = len(x)
    even = mass + 1e-12 / mass.size
    grids = [xi.reshape([-1 if k == i else 1 for k in range(d)]) for i, xi in enumerate(x)]
    total = joined_groups(even, starts).ravel()
    means = np.stack([joined_groups(even * g, starts).ravel() / total for g in grids], axis=1)
    within = np.empty((len(total), d, d))
    for i in range(d):
        for j in range(i, d):
            square = joined_groups(even * grids[i] * grids[j], starts).ravel() / total - means[:, i] * means[:, j]
            within[:, i, j] = within[:, j, i] = np.maximum(square, 0.0) if i == j else square
    return joined_groups(mass, starts).ravel(), means, within
