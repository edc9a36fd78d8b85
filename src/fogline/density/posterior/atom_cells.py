"""Cells of one column that are atoms: their leaves, their value, and what their neighbours would put into them.

Which cells are atoms is decided elsewhere (:mod:`fogline.density.point_masses`). Here a posterior tells them with their
shares, cuts ranges at them, takes them out, and moves sampled records to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fogline._typing import FloatArray
from fogline.density.posterior.axes import Heaps, LeafAxis
from fogline.density.posterior.estimates import Atom

if TYPE_CHECKING:
    from fogline.density.point_masses import ColumnHeaps
    from fogline.density.posterior.posterior import Posterior

__all__ = [
    "atom_value",
    "cell_value",
    "cut_heaps",
    "leaves_of",
    "level_beside",
    "level_cells",
    "move_to_atoms",
    "neighbour_level",
    "tell_atoms",
    "wall_level",
    "wide_heaps",
]


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


def tell_atoms(posterior: Posterior, known: ColumnHeaps) -> list[Atom]:
    """Atoms of a posterior of one column, each with its share beyond what its neighbours would put there."""
    axis, masses = posterior.axes[0], posterior.masses()
    factors = np.random.default_rng([posterior._seed, 11]).random(len(masses.draws))
    found = []
    for start, stop in known.cells:
        parts = masses.estimate, masses.draws, masses.even
        whole, drawn, even = (part[..., start:stop].sum(axis=-1) for part in parts)
        beside, beside_drawn, beside_even = (level_beside(part, start, stop) for part in parts)
        if start == 0 or stop == len(axis.centres):  # what neighbours say of a cell at a wall holds by half
            beside, beside_drawn, beside_even = beside / 2, beside_drawn * factors, beside_even / 2
        spread = math.sqrt(max(float(whole) * (1 - float(whole)), 0))
        share = posterior._estimate(
            float(whole - beside), drawn - beside_drawn, even - beside_even, spread, "population", 0.95
        )
        value = atom_value(axis, start) if stop - start == 1 else cell_value(axis, start, stop)
        found.append(Atom(value, float(axis.edges[start]), float(axis.edges[stop]), share))
    return found


def cut_heaps(posterior: Posterior, known: ColumnHeaps) -> Heaps:
    """Heaps of a posterior of one column in single leaves: atoms, and the values of a found lattice."""
    axis, masses = posterior.axes[0], posterior.masses()
    atoms = [leaves_of(axis, atom) for atom in posterior.atoms] if known.cells else []
    told = {cell.start for cell in atoms if cell.stop - cell.start == 1}
    leaves = np.array(sorted(told | set(known.teeth)), dtype=np.int64)
    values, beside = np.array([atom_value(axis, int(leaf)) for leaf in leaves]), None
    if posterior.is_coarse:  # a wide leaf: what is beside the heap counts
        beside = wall_level(masses.estimate)[leaves] / np.maximum(masses.estimate[leaves], 1e-300)
    return Heaps.of(axis, leaves, values, len(masses.draws), posterior._seed, beside=beside)


def wide_heaps(posterior: Posterior, known: ColumnHeaps) -> Heaps:
    """Atoms of a posterior of one column in cells of several leaves, anywhere in which the value may be."""
    axis, masses = posterior.axes[0], posterior.masses()
    cells = [leaves_of(axis, atom) for atom in posterior.atoms] if known.cells else []
    cells = [cell for cell in cells if cell.stop - cell.start > 1]
    starts, stops = (np.array([getattr(cell, end) for cell in cells], dtype=np.int64) for end in ("start", "stop"))
    values = np.array([cell_value(axis, cell.start, cell.stop) for cell in cells])
    found = Heaps.of(axis, starts, values, len(masses.draws), posterior._seed, stops=stops, at_wall=False)
    parts = [np.empty((len(part), len(cells))) for part in (masses.estimate[None], masses.draws)]
    for number, cell in enumerate(cells):
        for out, part in zip(parts, (masses.estimate[None], masses.draws), strict=True):
            whole = np.maximum(part[:, cell].sum(axis=1), 1e-300)
            out[:, number] = np.clip(1 - level_beside(part, cell.start, cell.stop) / whole, 0.0, 1.0)
    return replace(found, part=parts[0], drawn_part=parts[1])


def level_cells(part: FloatArray, cells: Sequence[slice], axis: int) -> FloatArray:
    """Contents of leaves in which these cells of an axis hold no more than their neighbours do.

    Examples
    --------
    >>> level_cells(np.array([1.0, 9.0, 3.0]), [slice(1, 2)], -1).tolist()
    [1.0, 2.0, 3.0]
    """
    out = np.moveaxis(part.copy(), axis, -1)
    last = out.shape[-1] - 1
    for cell in cells:
        beside = [k for k in (cell.start - 1, cell.stop) if 0 <= k <= last]
        mean = out[..., beside].mean(axis=-1)[..., None]
        out[..., cell] = np.minimum(out[..., cell], mean)
    return np.moveaxis(out, -1, axis)


def move_to_atoms(values: FloatArray, margin: Posterior, rng: np.random.Generator) -> None:
    """Move sampled values of one column, in place, to the atom of their cell, as often as it holds them."""
    for atom in margin.atoms:
        inside = np.flatnonzero((values >= atom.low) & (values < atom.high))
        whole = float(margin.masses().estimate[leaves_of(margin.axes[0], atom)].sum())
        part = min(float(atom.share.value) / max(whole, 1e-300), 1.0)
        values[inside[rng.random(len(inside)) < part]] = atom.value
