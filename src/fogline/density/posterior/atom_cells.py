"""Cells of one column that are atoms: their leaves, their value, and what their neighbours would put into them."""

from __future__ import annotations

import numpy as np

from fogline._typing import FloatArray
from fogline.density.posterior.axes import LeafAxis
from fogline.density.posterior.estimates import Atom

__all__ = ["atom_value", "cell_value", "leaves_of", "level_beside", "neighbour_level", "wall_level"]


def neighbour_level(part: FloatArray) -> FloatArray:
    """Larger of the mean contents of a few leaves to either side."""
    reach = 4
    padded = np.concatenate([np.zeros((*part.shape[:-1], reach)), part, np.zeros((*part.shape[:-1], reach))], axis=-1)
    n = part.shape[-1]
    left = sum(padded[..., k : k + n] for k in range(reach)) / reach
    right = sum(padded[..., reach + 1 + k : reach + 1 + k + n] for k in range(reach)) / reach
    return np.maximum(left, right)


def wall_level(p: FloatArray) -> FloatArray:
    """What neighbours would put into the outermost leaves; nothing for all others."""
    out, around = np.zeros(len(p)), neighbour_level(p)
    out[[0, -1]] = around[[0, -1]]
    return out


def level_beside(part: FloatArray, start: int, stop: int) -> FloatArray:
    """What the denser side of a cell would put into it: the mean of up to four leaves there, for each of its leaves."""
    sides = (part[..., max(start - 4, 0) : start], part[..., stop : stop + 4])
    levels = [side.mean(axis=-1) for side in sides if side.shape[-1]]
    return np.asarray(np.max(levels, axis=0) * (stop - start))


def atom_value(axis: LeafAxis, leaf: int) -> float:
    """Value of an atom of one leaf: its middle; at a wall, the wall."""
    if not axis.step and leaf == 0:
        return axis.bounds[0]
    if not axis.step and leaf == len(axis.centres) - 1:
        return axis.bounds[1]
    return float(axis.centres[leaf])


def leaves_of(axis: LeafAxis, atom: Atom) -> slice:
    """Leaves of an atom's cell."""
    start, stop = np.rint((np.array([atom.low, atom.high]) - axis.edges[0]) / axis.width).astype(int).tolist()
    return slice(start, stop)


def cell_value(axis: LeafAxis, start: int, stop: int) -> float:
    """Middle of a cell of several leaves; at a wall, the wall."""
    if start == 0 or stop == len(axis.centres):
        return axis.bounds[0] if start == 0 else axis.bounds[1]
    return float((axis.edges[start] + axis.edges[stop]) / 2)
