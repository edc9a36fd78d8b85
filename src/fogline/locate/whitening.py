r"""Whitened records in whole numbers, and parts by whitened distance.

A map :math:`z = A^{-1}(x - c)` by arbitrary doubles is no function of the record: the same row rounds differently in
batches of different shape. Here lattice vectors are multiplied with a matrix of whole numbers, every product stays
below :math:`2^{53}`, and the image of a record is its own. Proof: ``gaussian.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline.locate.frames import Frame
from fogline.locate.partition import Parts
from fogline.locate.projection import clipped

__all__ = ["SCATTER_STEPS", "Reassigned", "Whitening", "whitening_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SCATTER_STEPS = 2**16
"""Longest whitened record, in lattice steps."""

MAP_BITS = 26
"""No row of an integer whitening map is longer than two to this."""


@dataclass(frozen=True, eq=False)
class Whitening:
    r"""The map :math:`z = A^{-1}(x - c)` in whole numbers.

    Attributes
    ----------
    frame : Frame
        Wide enough for all that is not clipped.
    root : array of shape (d, d)
        The matrix A.
    matrix : array of shape (d, d)
        Whole numbers; with `factor` it takes lattice vectors to whitened ones in steps.
    factor : float
    clip : float
        Radius of the clip in whitened units, which is `SCATTER_STEPS` steps.
    known : float
        Share of the sample's own deviation from a sphere that the root has taken up already.
    """

    frame: Frame
    root: FloatArray
    matrix: FloatArray
    factor: float
    clip: float
    known: float

    def vectors(self, rows: FloatArray) -> FloatArray:
        """Whole numbers of norm at most `SCATTER_STEPS`, one vector for each of these finite rows."""
        return clipped(self._scaled(rows), SCATTER_STEPS)

    def squares(self, rows: FloatArray) -> FloatArray:
        """Squared whitened length of each of these finite rows; infinite beyond the clip."""
        z = self._scaled(rows)
        squared = np.einsum("ij,ij->i", z, z)
        return np.asarray(np.where(squared <= float(SCATTER_STEPS) ** 2, squared, np.inf))

    def _scaled(self, rows: FloatArray) -> FloatArray:
        reach = 2.0 * SCATTER_STEPS
        return np.asarray(np.clip(np.rint(self.frame.vectors(rows) @ self.matrix.T * self.factor), -reach, reach))


@dataclass(frozen=True, eq=False)
class Reassigned:
    """Parts in which a record that lies beyond the clip of its own part, and within that of others, is in the nearest.

    A cut leaves the tail of a component on the wrong side; once the shapes are known it can be brought home.

    Attributes
    ----------
    base : Parts
    whitenings : tuple of Whitening
        One for each part.
    """

    base: Parts
    whitenings: tuple[Whitening, ...]

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.base.d

    @property
    def parts(self) -> int:
        """Number of parts."""
        return self.base.parts

    def labels(self, rows: FloatArray) -> IntArray:
        """Part of each of these finite rows."""
        labels = self.base.labels(rows)
        own = np.full(len(rows), np.inf)
        for part, whitening in enumerate(self.whitenings):
            own[labels == part] = whitening.squares(rows[labels == part])
        lost = np.flatnonzero(np.isinf(own))
        far = np.stack([whitening.squares(rows[lost]) for whitening in self.whitenings])
        labels[lost] = np.where(np.isfinite(far.min(axis=0)), np.argmin(far, axis=0), labels[lost])
        return labels


def whitening_of(centre: FloatArray, root: FloatArray, clip: float, known: float = 0.0) -> Whitening:
    """The whitening map of a centre and a root of the covariance, in data units."""
    frame = Frame(centre, 1.01 * clip * float(np.linalg.norm(root, 2)))
    wanted = np.linalg.inv(root) * (frame.radius / frame.steps * SCATTER_STEPS / clip)
    longest = float(np.sqrt((wanted**2).sum(axis=1)).max())
    bits = MAP_BITS - 1 - math.ceil(math.log2(longest))
    return Whitening(frame, root, np.rint(wanted * 2.0**bits), 2.0**-bits, clip, known)
