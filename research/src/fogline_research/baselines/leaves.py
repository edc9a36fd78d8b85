"""The finest cells that a baseline counts: equal leaves, or the values of a lattice where a step is public.

Baselines know what a fogline release knows: the box and the rounding steps. On an axis with a step a leaf is one value
of the lattice (or the same number of neighbouring values, where there are too many), and its mass sits on its values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fogline_research.datasets.columns import cell_of

__all__ = ["LEAVES", "Leaves"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

LEAVES = {1: 4096, 2: 256, 3: 64}
"""Leaves per axis at most, by the number of axes."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaf cells of a public box.

    Attributes
    ----------
    bounds : sequence of (low, high)
    steps : sequence of float or None, optional
        Public rounding step of each axis.

    Examples
    --------
    >>> leaves = Leaves(((0.0, 4.0),), (1.0,))
    >>> leaves.shape, leaves.counts(np.array([[0.0], [4.0], [4.0], [9.0]]))
    ((5,), array([1, 0, 0, 0, 2]))
    >>> leaves.cell_masses(np.array([0.1, 0.2, 0.3, 0.2, 0.2]), 4)
    array([0.1, 0.2, 0.3, 0.4])
    """

    bounds: Sequence[tuple[float, float]]
    steps: Sequence[float | None] | None = None

    @property
    def d(self) -> int:
        """Number of axes."""
        return len(self.bounds)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """Number of lattice values per axis; 0 where the axis is continuous."""
        steps = self.steps or (None,) * self.d
        return tuple(
            0 if step is None else math.floor((high - low) / step + 1e-9) + 1
            for (low, high), step in zip(self.bounds, steps, strict=True)
        )

    @cached_property
    def together(self) -> tuple[int, ...]:
        """Lattice values per leaf; 1 where the axis is continuous."""
        return tuple(max(1, -(-values // LEAVES[self.d])) for values in self.values)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of leaves per axis."""
        pairs = zip(self.values, self.together, strict=True)
        return tuple(-(-values // each) if values else LEAVES[self.d] for values, each in pairs)

    def counts(self, records: Array) -> Counts:
        """Count the records of each leaf; those outside the box count nothing."""
        low, high = np.array(self.bounds).T
        rows = records[((records >= low) & (records <= high)).all(axis=1)]
        keys = np.zeros(len(rows), dtype=np.int64)
        for axis, size in enumerate(self.shape):
            keys = keys * size + self._leaf(axis, rows[:, axis])
        return np.bincount(keys, minlength=math.prod(self.shape)).reshape(self.shape)

    def _leaf(self, axis: int, column: Array) -> Counts:
        low, high = self.bounds[axis]
        if not self.values[axis]:
            return cell_of(column, low, high, self.shape[axis])
        step = float((self.steps or ())[axis] or 0.0)
        value = np.clip(np.round((column - low) / step), 0, self.values[axis] - 1).astype(np.int64)
        return value // self.together[axis]

    def cell_masses(self, masses: Array, cells: int) -> Array:
        """Masses of equal cells of the box, given those of the leaves."""
        for axis in range(self.d):
            spread = self._spread(axis, cells)
            masses = (
                np.moveaxis(np.tensordot(spread, masses, axes=(1, axis)), 0, axis) if self.d > 1 else spread @ masses
            )
        return np.asarray(masses)

    def _spread(self, axis: int, cells: int) -> Any:
        key = (axis, cells)
        if key not in self._matrices:
            self._matrices[key] = self._matrix(axis, cells)
        return self._matrices[key]

    @cached_property
    def _matrices(self) -> dict[tuple[int, int], Any]:
        return {}

    def _matrix(self, axis: int, cells: int) -> Any:
        """Share of each leaf (columns) in each cell (rows); sparse in one column, where both are many."""
        low, high = self.bounds[axis]
        size, values = self.shape[axis], self.values[axis]
        if values:
            step = float((self.steps or ())[axis] or 0.0)
            rows = cell_of(low + step * np.arange(values, dtype=np.float64), low, high, cells)
            columns = np.arange(values) // self.together[axis]
            shares = 1.0 / np.bincount(columns)[columns]
        else:
            fine = math.lcm(size, cells)
            rows, columns = np.arange(fine) // (fine // cells), np.arange(fine) // (fine // size)
            shares = np.full(fine, size / fine)
        matrix = sparse.csr_array((shares, (rows, columns)), shape=(cells, size))
        return matrix if self.d == 1 else matrix.toarray()
