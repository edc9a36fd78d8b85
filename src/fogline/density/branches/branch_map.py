"""Branches over x as they are kept, and the conditional modes that they give at any place."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from fogline._typing import FloatArray, IntArray

__all__ = ["BranchMap", "Branches", "branches_at"]


@dataclass(frozen=True, eq=False)
class BranchMap:
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
        The two parts of the standard error of a position.
    bandwidth : array of shape (d,)
        At which the branches were read, y last.
    message : str
        What would help if there is no branch; else empty.
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
        The two parts of the standard error of a position.
    """

    rows: IntArray
    branch: IntArray
    positions: FloatArray
    heights: FloatArray
    prominences: FloatArray
    slopes: FloatArray
    privacy_errors: FloatArray
    sampling_errors: FloatArray

    @property
    def standard_errors(self) -> FloatArray:
        """Standard error of each position, shape (K,)."""
        return np.asarray(np.hypot(self.privacy_errors, self.sampling_errors))


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
    columns = (found.positions, found.heights, found.prominences, found.privacy_errors, found.sampling_errors)
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
    return Branches(
        rows[order], branch[order], mean[0], mean[1], mean[2], mean[len(columns) :].T.copy(), mean[3], mean[4]
    )
