r"""A terrific ball: it holds many records, leaves many out, and hardly any lie around it.

For a record x and a radius r let

.. math:: Q_X(x, r) = \min\{\#_t B_r(x),\; \#_t\,(X \setminus B_{cr}(x)),\; t - \#_t\,(B_{cr}(x) \setminus B_r(x))\},

counts capped at t. The averages :math:`L_X(r)` of the t largest :math:`Q_X(\cdot, r)` move by at most 2 between
neighbours, as in the search for one cluster, and the first radius that passes a noisy threshold comes out; radii grow,
or shrink where the largest such ball is wanted. A ball like that is a cut: what is inside belongs together, what is
outside its c-fold is something else. The centre is found as for one cluster, and the ball is checked by one more
threshold on

.. math:: \min\{|B_r(p)|,\; |X \setminus B_{cr}(p)|,\; t - |B_{cr}(p) \setminus B_r(p)|\},

which moves by at most 1. The proof is in ``terrific_ball.proof.md`` beside this file.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fogline._typing import FloatArray, IntArray
from fogline.queries.ball_search import Ball, RadiusQuery
from fogline.queries.lattice import CentredBallLattice, drop_nonfinite, near_counts
from fogline.queries.query import Records, rows_moved

__all__ = ["SeclusionQuery", "TerrificRadiusQuery"]


@dataclass(frozen=True, eq=False)
class TerrificRadiusQuery(RadiusQuery):
    """The averages of Q at radii of a doubling sequence, or of the same sequence from its largest.

    Parameters
    ----------
    stretch : float
        The factor c.
    largest : bool
        Whether to begin with the largest radius.
    """

    stretch: float = 5.0
    largest: bool = False

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far one of the averages can move; a replaced row is one that goes and one that comes."""
        return 2 * rows_moved(neighbours, max_contributions)

    def scores(self, vectors: FloatArray) -> IntArray:
        """Q of each record at each radius, shape (n, size)."""
        t = self.target
        inner = near_counts(vectors, self.smallest, self.size)
        outer = near_counts(vectors, self.smallest, self.size, self.stretch)
        around, beyond = outer - inner, len(vectors) - outer
        scores = np.minimum(np.minimum(inner, t), np.minimum(np.minimum(beyond, t), t - np.minimum(around, t)))
        return np.asarray(scores[:, ::-1] if self.largest else scores)

    def radius(self, index: int) -> float:
        """A radius in data units."""
        return super().radius(self.size - 1 - index if self.largest else index)


@dataclass(frozen=True, eq=False)
class SeclusionQuery:
    """Whether balls around a released centre are terrific: the least of three counts, for each radius.

    Parameters
    ----------
    centre : array of shape (d,)
    radii : array
        In data units, in the order in which they are tried.
    stretch : float
    target : int
    """

    centre: FloatArray
    radii: FloatArray
    stretch: float
    target: int

    @property
    def size(self) -> int:
        """Number of radii."""
        return len(self.radii)

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far one of the numbers can move."""
        return rows_moved(neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the least of the three counts, for each radius."""
        frame = CentredBallLattice(self.centre, 2.0 * self.stretch * float(self.radii.max()))
        inner = (self.radii / frame.radius * frame.steps) ** 2
        outer = (self.stretch * self.radii / frame.radius * frame.steps) ** 2
        counts = np.zeros((3, self.size), dtype=np.int64)

        def take(rows: FloatArray) -> None:
            q = frame.vectors(drop_nonfinite(rows))
            squared = np.einsum("ij,ij->i", q, q)[:, None]
            inside, within = squared <= inner, squared <= outer
            counts[0] += inside.sum(axis=0)
            counts[1] += (~within).sum(axis=0)
            counts[2] += (within & ~inside).sum(axis=0)

        records.each(take)
        return np.asarray(np.minimum(np.minimum(counts[0], counts[1]), self.target - counts[2]))

    def decode(self, values: IntArray, noise_scale: float) -> Ball | None:  # noqa: ARG002
        """The ball at the index that was told; None where none is terrific."""
        index = int(values[0])
        if index < 0:
            return None
        return Ball(self.centre, float(self.radii[index]), float(self.target), 0.5 * self.target, self.stretch)
