"""Disjoint parts of the records, cut by released numbers, and sums over all parts at once.

A record belongs to one part, and which one is a function of the record and of what was released before. A vector with
one block for each part is therefore moved by a record in one block only: many parts cost what one costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fogline.locate.frames import Each, Frame, finite
from fogline.locate.private_pca import ExactSum

__all__ = ["Cut", "NearestParts", "Partition", "Parts", "block_sensitivity", "block_sum"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Parts(Protocol):
    """Disjoint parts of the records: which one a record is in depends on the record and on released numbers alone."""

    @property
    def d(self) -> int:
        """Number of columns."""

    @property
    def parts(self) -> int:
        """Number of parts."""

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows."""


@dataclass(frozen=True, eq=False)
class Cut:
    """One part cut into slabs across a direction.

    Attributes
    ----------
    part : int
        Which part is cut; it becomes the first slab.
    frame : Frame
    direction : array of shape (d,)
        In whole numbers.
    edges : array
        Where it is cut, in the units of the products of lattice vectors and direction, growing.
    children : tuple of int
        Parts of the slabs beyond the first.
    """

    part: int
    frame: Frame
    direction: FloatArray
    edges: FloatArray
    children: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Partition:
    """All records, cut one part after another.

    Attributes
    ----------
    d : int
        Number of columns.
    cuts : tuple of Cut
        In the order in which they were made.

    Examples
    --------
    >>> frame = Frame.around([0.0], 8.0)
    >>> halves = Partition(1).divided(0, frame, np.array([2.0**20]), np.array([0.0]))
    >>> halves.parts, halves.labels(np.array([[-3.0], [5.0]])).tolist()
    (2, [0, 1])
    """

    d: int
    cuts: tuple[Cut, ...] = ()

    @property
    def parts(self) -> int:
        """Number of parts."""
        return 1 + sum(len(cut.children) for cut in self.cuts)

    def divided(self, part: int, frame: Frame, direction: FloatArray, edges: FloatArray) -> Partition:
        """The partition with one part cut further."""
        children = tuple(range(self.parts, self.parts + len(edges)))
        return Partition(self.d, (*self.cuts, Cut(part, frame, direction, edges, children)))

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows."""
        labels = np.zeros(len(rows), dtype=np.int64)
        for cut in self.cuts:
            here = np.flatnonzero(labels == cut.part)
            slabs = np.searchsorted(cut.edges, cut.frame.vectors(rows[here]) @ cut.direction, side="right")
            labels[here] = np.array([cut.part, *cut.children])[slabs]
        return labels


@dataclass(frozen=True, eq=False)
class NearestParts:
    """Records by the nearest of several released centres, in whole numbers.

    Parameters
    ----------
    frame : Frame
    centres : array of shape (parts, d)

    Examples
    --------
    >>> parts = NearestParts(Frame.around([0.0], 10.0), np.array([[-5.0], [5.0]]))
    >>> parts.labels(np.array([[-1.0], [2.0], [80.0]])).tolist()
    [0, 1, 1]
    """

    frame: Frame
    centres: FloatArray

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.frame.d

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.centres)

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows."""
        q = self.frame.vectors(rows)
        squares = [((q - centre) ** 2).sum(axis=1) for centre in self.frame.vectors(self.centres)]
        return np.asarray(np.argmin(np.stack(squares), axis=0), dtype=np.int64)


def block_sum(
    partition: Parts, passes: Each, size: int, contribution: Callable[[int, FloatArray], FloatArray]
) -> IntArray:
    """Exact sum of one block for each part.

    Parameters
    ----------
    partition : Parts
    passes : Each
    size : int
        Of a block.
    contribution : callable
        Given a part and its rows, their summed block: whole numbers below 2**53.
    """
    total = ExactSum(partition.parts * size)

    def take(rows: FloatArray) -> None:
        rows = finite(rows)
        labels = partition.labels(rows)
        blocks = [contribution(part, rows[labels == part]) for part in range(partition.parts)]
        total.add(np.concatenate(blocks))

    passes.each(take)
    return total.cut()


def block_sensitivity(longest_squared: int, neighbours: str, max_contributions: int) -> float:
    """How far neighbours can be apart where a record's block is no longer than a given root of a whole number.

    One block comes or goes under add-remove; under replace one goes and one comes, in the same place or not.
    """
    moved = 1 if neighbours == "add-remove" else 2
    return math.nextafter(moved * max_contributions * math.sqrt(longest_squared) * (1 + 1e-12), math.inf)
