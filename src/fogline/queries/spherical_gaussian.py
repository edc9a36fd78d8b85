r"""A spherical Gaussian in a given ball: number, mean and variance from one release.

Records are centred at the middle c of the ball and drawn into it; their number, sum and squared lengths get noise:

.. math:: \hat n, \quad \hat\mu = c + \frac1{\hat n}\sum v, \quad
          \hat\sigma^2 = \frac1d\Bigl(\frac1{\hat n}\sum |v|^2 - |\hat\mu - c|^2\Bigr).

Centring comes first, so that a record moves the sum by the radius r and not by |c| + r; and the variance is taken about
the released mean, not from pairs of neighbouring rows, which one record more would all shift. The proof is in
``spherical_gaussian.proof.md`` beside this file.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019, Algorithm 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fogline._typing import FloatArray, IntArray
from fogline.queries.lattice import CentredBallLattice
from fogline.queries.partition import Partition, block_sensitivity, block_sum
from fogline.queries.query import Records

__all__ = ["SphericalGaussian", "SphericalQuery"]


COUNT_WEIGHT, SQUARE_WEIGHT = 0.5, 0.5
"""Length of the count and of the squared length in a record's block, as fractions of the longest record."""


@dataclass(frozen=True, eq=False)
class SphericalGaussian:
    """A released spherical Gaussian.

    Attributes
    ----------
    mean : array of shape (d,)
    sigma : float
        Standard deviation along every axis.
    count : float
        Noisy number of records.
    count_sd, mean_sd, variance_sd : float
        Noise of the count, of each coordinate of the mean, and of the variance.
    """

    mean: FloatArray
    sigma: float
    count: float
    count_sd: float
    mean_sd: float
    variance_sd: float


@dataclass(frozen=True, eq=False)
class SphericalQuery:
    """Number, sum and summed squared length of the records of each part, from the ball of that part.

    Parameters
    ----------
    partition : Partition
    frames : tuple of CentredBallLattice
        One for each part, all of one dimension.
    sigma_min : float
        No sigma is believed to be smaller.
    """

    partition: Partition
    frames: tuple[CentredBallLattice, ...]
    sigma_min: float = 0.0

    @property
    def steps(self) -> int:
        """Longest record."""
        return self.frames[0].steps

    @property
    def count_unit(self) -> int:
        """What a record adds to the count."""
        return int(COUNT_WEIGHT * self.steps)

    @property
    def square_unit(self) -> int:
        """What a record on the surface adds to the squared length."""
        return int(SQUARE_WEIGHT * self.steps)

    @property
    def block(self) -> int:
        """Length of a block."""
        return self.partition.d + 2

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.block * self.partition.parts

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the sums of neighbours can be apart."""
        longest = self.count_unit**2 + self.steps**2 + self.square_unit**2
        return block_sensitivity(longest, neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the sum over all records."""

        def contribution(part: int, rows: FloatArray) -> FloatArray:
            q = self.frames[part].vectors(rows)
            squared = np.einsum("ij,ij->i", q, q) * (SQUARE_WEIGHT / self.steps)
            capped = np.minimum(np.floor(squared), float(self.square_unit))
            return np.concatenate([[float(self.count_unit * len(q))], q.sum(axis=0), [capped.sum()]])

        return block_sum(self.partition, records, self.block, contribution)

    def decode(self, values: IntArray, noise_scale: float) -> tuple[SphericalGaussian, ...]:
        """The Gaussian of each part."""
        blocks = values.reshape(-1, self.block)
        return tuple(self._read(frame, block, noise_scale) for frame, block in zip(self.frames, blocks, strict=True))

    def _read(self, frame: CentredBallLattice, block: IntArray, scale: float) -> SphericalGaussian:
        unit = frame.radius / frame.steps
        count_sd = scale / self.count_unit
        count = max(float(block[0]) / self.count_unit, 1.0)
        safe = max(count, 2 * count_sd)
        shift = block[1:-1] / safe * unit
        mean_sd = scale / safe * unit
        square = float(block[-1]) / safe * self.steps / SQUARE_WEIGHT * unit**2
        length = max(float(shift @ shift) - frame.d * mean_sd**2, 0.0)  # noise lengthens the shift by so much
        variance = (square - length) / frame.d
        return SphericalGaussian(
            mean=frame.centre + np.clip(shift, -frame.radius, frame.radius),
            sigma=math.sqrt(max(variance, self.sigma_min**2, unit**2)),
            count=count,
            count_sd=count_sd,
            mean_sd=mean_sd,
            variance_sd=scale / safe * self.steps / SQUARE_WEIGHT * unit**2 / frame.d,
        )
