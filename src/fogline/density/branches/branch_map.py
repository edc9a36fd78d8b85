"""Branches over x as they are kept, and the conditional modes that they give at any place."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from fogline._results import ReadingResults, column_words
from fogline._typing import FloatArray, IntArray

__all__ = ["BranchMap", "Branches", "branches_at"]


@dataclass(frozen=True, eq=False, repr=False)
class BranchMap(ReadingResults):
    """Branches on a grid of x: K nodes, each a conditional mode.

    Attributes
    ----------
    axes : tuple of arrays
        Grid of x, one array per axis.
    place : array of int, shape (K,)
        Flat index of each node's place in the grid.
    branch : array of int, shape (K,)
        Number of the branch, 0 first, the one with the most places.
    positions, heights, prominences : arrays of shape (K,)
        Mode, conditional density there, and how far it stands out, both in units of y's density.
    slopes : array of shape (K, dx)
    privacy_errors, sampling_errors : arrays of shape (K,)
        What privacy noise and the sampling of the records contribute to the standard error of a position; smoothing is
        in ``smoothing_errors``.
    bandwidth : array of shape (d,)
        At which the branches were read, y last.
    message : str
        What would help if there is no branch; else empty.
    smoothing_errors : array of shape (K,), optional
        What pooling along x and smoothing along y may have moved a position by, where it is known; privacy noise and
        sampling are in the other two.
    low, high : arrays of shape (K,), optional
        95% intervals with privacy, sampling and smoothing inside, where they are known.
    wall_sides : array of int, shape (K,), optional
        -1 and 1 for modes at the lower and upper wall of y, 0 for others.
    response : int, optional
        Column of the density that is y, where the branches come from a posterior.
    """

    axes: tuple[FloatArray, ...]
    place: IntArray
    branch: IntArray
    positions: FloatArray
    heights: FloatArray
    prominences: FloatArray
    slopes: FloatArray
    privacy_errors: FloatArray
    sampling_errors: FloatArray
    bandwidth: FloatArray
    message: str
    smoothing_errors: FloatArray | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None
    wall_sides: IntArray | None = None
    response: int | None = None

    def at(self, x: ArrayLike) -> Branches:
        """Conditional modes at places x of shape (rows, dx); a list of numbers where there is one column of x."""
        places = np.asarray(x, dtype=np.float64)
        if places.ndim < 2 and len(self.axes) == 1:
            places = places.reshape(-1, 1)
        if places.ndim != 2 or places.shape[1] != len(self.axes):
            raise ValueError(f"x must have shape (rows, {len(self.axes)}), got {places.shape}")
        return branches_at(self, places)

    def __str__(self) -> str:
        numbers = np.unique(self.branch)
        if not len(numbers):
            return self.message or "no branch"
        names = list(column_words(self, len(self.axes) + 1))
        response = names.pop(-1 if self.response is None else self.response)
        lines = []
        for number in numbers.tolist():
            own = np.flatnonzero(self.branch == number)
            index = np.unravel_index(self.place[own], tuple(len(axis) for axis in self.axes))
            ends = [(axis[i].min(), axis[i].max()) for axis, i in zip(self.axes, index, strict=True)]
            where = ", ".join(f"{name} {low:.4g} to {high:.4g}" for name, (low, high) in zip(names, ends, strict=True))
            modes = self.positions[own]
            told = f"branch {number + 1}: {where}; modes of {response} {modes.min():.4g} to {modes.max():.4g}"
            if self.low is not None and self.high is not None:
                told += f", 95% band ± {np.median(self.high[own] - self.low[own]) / 2:.2g}"
            if self.wall_sides is not None and np.mean(self.wall_sides[own] != 0) > 0.5:
                told += f", at the {'lower' if np.median(self.wall_sides[own]) < 0 else 'upper'} wall of {response}"
            lines.append(told)
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Branches:
    """Conditional modes at some places x: one entry for each mode, in the order of the places, highest first.

    Attributes
    ----------
    rows : array of int, shape (K,)
        Row of x that a mode belongs to.
    branch : array of int, shape (K,)
        Number of its branch, the longest 0: what has one number may be drawn as one line.
    positions, heights, prominences : arrays of shape (K,)
        Mode, conditional density there, and how far it stands out.
    slopes : array of shape (K, dx)
    privacy_errors, sampling_errors : arrays of shape (K,)
        What privacy noise and the sampling of the records contribute to the standard error of a position; smoothing is
        in ``smoothing_errors``.
    smoothing_errors : array of shape (K,), optional
        What smoothing may have moved a position by, where it is known; privacy noise and sampling are in the other two.
    low, high : arrays of shape (K,), optional
        95% intervals of the positions, with privacy noise, sampling and smoothing inside, where they are known.
    wall_sides : array of int, shape (K,), optional
        -1 and 1 for modes at the lower and upper wall of y, 0 for others.
    """

    rows: IntArray
    branch: IntArray
    positions: FloatArray
    heights: FloatArray
    prominences: FloatArray
    slopes: FloatArray
    privacy_errors: FloatArray
    sampling_errors: FloatArray
    smoothing_errors: FloatArray | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None
    wall_sides: IntArray | None = None

    @property
    def standard_errors(self) -> FloatArray:
        """Standard error of each position, shape (K,): of privacy and sampling, and of smoothing where it is known."""
        error = np.hypot(self.privacy_errors, self.sampling_errors)
        return np.asarray(error if self.smoothing_errors is None else np.hypot(error, self.smoothing_errors))


def branches_at(found: BranchMap, x: FloatArray) -> Branches:
    """Conditional modes at places x of shape (P, dx), between the places of the grid along their slopes.

    Outside of the grid there are none.
    """
    shape = tuple(len(a) for a in found.axes)
    node = np.full((int(found.branch.max(initial=-1)) + 1, int(np.prod(shape))), -1)
    node[found.branch, found.place] = np.arange(len(found.place))
    start, step = np.array([a[0] for a in found.axes]), np.array([a[1] - a[0] for a in found.axes])
    end = np.array([a[-1] for a in found.axes])
    inside = np.all((x >= start) & (x <= end), axis=1)
    cell = np.where(inside[:, None], x - start, 0.0) / step
    low = np.clip(np.floor(cell).astype(int), 0, np.array(shape) - 2)
    columns = [found.positions, found.heights, found.prominences, found.privacy_errors, found.sampling_errors]
    banded = found.smoothing_errors is not None and found.low is not None and found.high is not None
    if banded:
        # reaches below and above a position, so that an interval moves along with the slope
        columns += [found.smoothing_errors, found.positions - found.low, found.high - found.positions]  # type: ignore[list-item,operator]
        columns.append(np.zeros(len(found.place)) if found.wall_sides is None else found.wall_sides.astype(np.float64))
    total = np.zeros((len(columns) + len(shape), len(node), len(x)))
    weight = np.zeros((len(node), len(x)))
    for corner in product((0, 1), repeat=len(shape)):
        share = np.prod(np.where(np.array(corner) == 1, cell - low, 1 - (cell - low)), axis=1) * inside
        k = node[:, np.ravel_multi_index(tuple((low + corner).T), shape)]
        share = np.where(k >= 0, share, 0.0)
        weight += share
        if len(found.place):
            ahead = np.einsum("bpj,pj->bp", found.slopes[k], (cell - low - corner) * step)
            values = [c[k] + (ahead if c is found.positions else 0.0) for c in columns]
            total += share * np.stack([*values, *np.moveaxis(found.slopes[k], 2, 0)])
    # Beside an end only some corners have a node: half of the weight must.
    branch, rows = np.nonzero(weight >= 0.5 - 1e-9)
    mean = total[:, branch, rows] / weight[branch, rows]
    order = np.lexsort((-mean[1], rows))
    mean = mean[:, order]
    slopes = mean[len(columns) :].T.copy()
    plain = (rows[order], branch[order], mean[0], mean[1], mean[2], slopes, mean[3], mean[4])
    if not banded:
        return Branches(*plain)
    wall = np.rint(mean[8]).astype(np.int64)
    position, low, high = mean[0], mean[0] - mean[6], mean[0] + mean[7]
    if len(found.place):  # bands of nodes end at the walls of y; a slope must not lead beyond them
        ends = float(np.min(found.low)), float(np.max(found.high))  # type: ignore[arg-type]
        position, low, high = (np.clip(part, *ends) for part in (position, low, high))
    plain = (*plain[:2], position, *plain[3:])
    return Branches(*plain, smoothing_errors=mean[5], low=low, high=high, wall_sides=wall)
