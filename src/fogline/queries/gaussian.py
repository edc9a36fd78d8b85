r"""A Gaussian at an unknown place, of unknown shape: mean and covariance by steps that clip where the last one looked.

First the place: around the current centre and within the current radius r, the records' sum and their numbers in rings
are released; the mean becomes the next centre, the ring that holds nearly all records the next radius. Noise is
proportional to r, so that r shrinks by a large factor at each step until it fits the records. Then the shape: with
:math:`\hat\Sigma = AA^\top` the current covariance, records are whitened, :math:`z = A^{-1}(x - c)`, clipped at the
radius C that a Gaussian of d dimensions rarely exceeds, and

.. math:: \sum_i 1, \qquad \sum_i z_i, \qquad \sum_i z_i z_i^\top

are released. Each step sees eigenvalues that were below the noise of the one before. The deviation of the last one from
a multiple of the identity is shrunk by the share of it that is noise of known size. This is the iterative scheme of
[1]_ with the guarantee of the learner that [2]_ asks for (Theorem 5.20).

A *spherical* Gaussian in a given ball needs one release for number, mean and variance ([2]_, Algorithm 6). Records are
centred at the middle c of the ball and drawn into it; their number, sum and squared lengths get noise:

.. math:: \hat n, \quad \hat\mu = c + \frac1{\hat n}\sum v, \quad
          \hat\sigma^2 = \frac1d\Bigl(\frac1{\hat n}\sum |v|^2 - |\hat\mu - c|^2\Bigr).

Centring comes first, so that a record moves the sum by the radius r and not by |c| + r; and the variance is taken about
the released mean, not from pairs of neighbouring rows, which one record more would all shift. Both proofs are in
``gaussian.proof.md`` beside this file.

References
----------
.. [1] S. Biswas, Y. Dong, G. Kamath, J. Ullman, "CoinPress: practical private mean and covariance estimation",
   NeurIPS 2020.
.. [2] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

from fogline._typing import FloatArray, IntArray
from fogline.queries.lattice import CentredBallLattice
from fogline.queries.moments import BESIDE, DIAGONAL
from fogline.queries.partition import (
    SCATTER_STEPS,
    Partition,
    Parts,
    Whitening,
    block_sensitivity,
    block_sum,
    whitening_of,
)
from fogline.queries.query import Records

__all__ = ["Gaussian", "PlaceQuery", "Scatter", "ScatterQuery", "SphericalGaussian", "SphericalQuery", "clip_radius"]

RINGS = 24
"""Rings around a centre, each the root of two times narrower than the one outside it."""


@dataclass(frozen=True)
class ScatterTuning:
    """What was tuned in the release of a shape; the sensitivity is computed from the weights, whatever they are.

    Parameters
    ----------
    count_weight : float
        Length of the count in a record's block, where that of its square is 5.
    mean_weight : float
        Length of the record itself in its block.
    clip_quantile : float
        Part of a Gaussian's records that are not clipped once it is whitened.
    widest : float
        Variance in whitened units beyond which too much is clipped to say how much there was.
    least_eigenvalue : float
        A shrunk covariance keeps at least this part of its mean variance in every direction.
    """

    count_weight: float = 1.0
    mean_weight: float = 2.0
    clip_quantile: float = 0.95
    widest: float = 4.0
    least_eigenvalue: float = 0.05


TUNING = ScatterTuning()


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A released Gaussian.

    Attributes
    ----------
    mean : array of shape (d,)
    covariance : array of shape (d, d)
    count, count_sd : float
        Noisy number of records, and its noise.
    mean_sd : array of shape (d,)
        Standard error of each coordinate of the mean: noise and sampling.
    """

    mean: FloatArray
    covariance: FloatArray
    count: float
    count_sd: float
    mean_sd: FloatArray


@dataclass(frozen=True, eq=False)
class PlaceQuery:
    """Numbers in rings, and the sum, of the records of each part seen from its frame.

    Parameters
    ----------
    partition : Parts
    frames : tuple of CentredBallLattice
        One for each part.
    kept : float
        Share of a part's records that its next frame should hold.
    """

    partition: Parts
    frames: tuple[CentredBallLattice, ...]
    kept: float

    @property
    def block(self) -> int:
        """Length of a block."""
        return RINGS + self.partition.d

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.block * self.partition.parts

    @property
    def steps(self) -> int:
        """Longest record; also what it adds to its ring."""
        return self.frames[0].steps

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the sums of neighbours can be apart: a ring and a vector, both of length up to T."""
        return block_sensitivity(2 * self.steps**2, neighbours, max_contributions)

    def exact(self, records: Records) -> IntArray:
        """Secret: the sum over all records."""
        limits = float(self.steps) ** 2 * 0.5 ** np.arange(RINGS - 1, 0, -1)  # squares of the rings' outer radii

        def contribution(part: int, rows: FloatArray) -> FloatArray:
            q = self.frames[part].vectors(rows)
            rings = np.bincount(np.searchsorted(limits, np.einsum("ij,ij->i", q, q)), minlength=RINGS)
            return np.concatenate([rings * float(self.steps), q.sum(axis=0)])

        return block_sum(self.partition, records, self.block, contribution)

    def decode(self, values: IntArray, noise_scale: float) -> tuple[tuple[CentredBallLattice, float], ...]:
        """The next frame of each part, and its noisy count."""
        blocks = values.reshape(-1, self.block)
        return tuple(self._read(frame, block, noise_scale) for frame, block in zip(self.frames, blocks, strict=True))

    def _read(self, frame: CentredBallLattice, block: IntArray, scale: float) -> tuple[CentredBallLattice, float]:
        noise = scale / self.steps
        inside = np.cumsum(block[:RINGS]) / self.steps  # rings are in the order of their radii
        # not below what the noise of all rings may add up to
        count = max(float(inside[-1]), 2 * noise * math.sqrt(RINGS), 1.0)
        enough = np.flatnonzero(inside >= self.kept * count - 2 * noise)
        # Where noise hides all records, the frame stays as it is.
        ring = int(enough[0]) if len(enough) else RINGS - 1
        seen = frame.radius * 2.0 ** (-(RINGS - 1 - ring) / 2)
        shift = block[RINGS:] / count / frame.steps * frame.radius
        expected = frame.d * (noise / count * frame.radius) ** 2
        squared = max(float(shift @ shift), 1e-300)
        shift = shift * math.sqrt(max(0.0, 1 - expected / squared))  # what noise explains of the length is no shift
        # the next frame must hold what this one saw, from its new centre
        moved = math.sqrt(float(shift @ shift))
        shift = shift * min(1.0, frame.radius / max(moved, 1e-300))
        return CentredBallLattice(frame.centre + shift, min(frame.radius, seen + moved)), count


def clip_radius(d: int) -> float:
    """Radius that a whitened record of d dimensions rarely exceeds.

    Examples
    --------
    >>> round(clip_radius(20), 2)
    5.6
    """
    return math.sqrt(float(chi2.ppf(TUNING.clip_quantile, d)))


def clipped_variance(d: int, clip: float) -> float:
    """Mean of min(|z|, clip)^2 / d for a standard Gaussian z: what clipping leaves of the variance."""
    return float(chi2.cdf(clip**2, d + 2) + clip**2 / d * chi2.sf(clip**2, d))


def unclipped_variance(d: int, clip: float, seen: float) -> float:
    """Variance of a spherical Gaussian of which clipping leaves what is seen.

    Examples
    --------
    >>> round(unclipped_variance(5, 2.5, 1.2 * clipped_variance(5, 2.5 / 1.2**0.5)), 6)
    1.2
    """

    def left(variance: float) -> float:
        return variance * clipped_variance(d, clip / math.sqrt(variance))

    shown = min(seen, left(TUNING.widest))
    if shown <= 0:
        return seen
    # what clipping leaves grows with the variance, so that there is one root between these ends
    found = brentq(lambda variance: left(variance) - shown, shown * (1 - 1e-9), TUNING.widest * (1 + 1e-9))
    return float(found) / shown * seen


@dataclass(frozen=True, eq=False)
class ScatterQuery:
    r"""Number, sum and summed squares :math:`zz^\top` of the whitened records of each part.

    A record contributes :math:`(a,\; Mz,\; 5z_i^2,\; 7z_iz_j\;(i<j))`; as :math:`49 \le 2 \cdot 25` the last part is no
    longer than :math:`5|z|^2`.

    Parameters
    ----------
    partition : Parts
    whitenings : tuple of Whitening
        One for each part.
    """

    partition: Parts
    whitenings: tuple[Whitening, ...]

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.partition.d

    @property
    def block(self) -> int:
        """Length of a block."""
        return 1 + self.d + self.d * (self.d + 1) // 2

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.block * self.partition.parts

    @property
    def count_unit(self) -> int:
        """What a record adds to the count."""
        return int(TUNING.count_weight * SCATTER_STEPS**2)

    @property
    def mean_unit(self) -> int:
        """Weight M of the record itself."""
        return int(TUNING.mean_weight * SCATTER_STEPS)

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the sums of neighbours can be apart."""
        T = SCATTER_STEPS
        # the three parts stand in different places of the vector: their squares add up
        longest = self.count_unit**2 + (self.mean_unit * T) ** 2 + (DIAGONAL * T**2) ** 2
        return block_sensitivity(longest, neighbours, max_contributions)

    @cached_property
    def _triangle(self) -> tuple[IntArray, IntArray, FloatArray]:
        first, second = np.triu_indices(self.d)
        return first, second, np.where(first == second, DIAGONAL, BESIDE).astype(np.float64)

    def exact(self, records: Records) -> IntArray:
        """Secret: the sum over all records."""
        first, second, weights = self._triangle

        def contribution(part: int, rows: FloatArray) -> FloatArray:
            z = self.whitenings[part].vectors(rows)
            square = (z.T @ z)[first, second] * weights  # whole numbers below 2**53 for any batch of 2**16 rows
            count = float(self.count_unit) * len(z)
            return np.concatenate([[count], z.sum(axis=0) * self.mean_unit, square])

        return block_sum(self.partition, records, self.block, contribution)

    def decode(self, values: IntArray, noise_scale: float) -> tuple[Scatter, ...]:
        """Mean and covariance of each part, in its whitened units."""
        first, second, weights = self._triangle
        found = []
        for whitening, block in zip(self.whitenings, values.reshape(-1, self.block), strict=True):
            unit = whitening.clip / SCATTER_STEPS
            count_sd = noise_scale / self.count_unit
            count = max(float(block[0]) / self.count_unit, 1.0)
            # divisors stay above the noise; the count itself is told as it is
            safe = max(count, 2 * count_sd)
            square = np.zeros((self.d, self.d))
            square[first, second] = block[1 + self.d :] / weights / safe * unit**2
            square = square + np.triu(square, 1).T
            shift = block[1 : 1 + self.d] / self.mean_unit / safe * unit
            found.append(
                Scatter(
                    whitening=whitening,
                    count=count,
                    count_sd=count_sd,
                    shift=shift,
                    shift_sd=noise_scale / self.mean_unit / safe * unit,
                    covariance=square - np.outer(shift, shift),
                    diagonal_sd=noise_scale / DIAGONAL / safe * unit**2,
                    beside_sd=noise_scale / BESIDE / safe * unit**2,
                )
            )
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Scatter:
    """Released moments of one part, in whitened units, with the noise of each entry."""

    whitening: Whitening
    count: float
    count_sd: float
    shift: FloatArray
    shift_sd: float
    covariance: FloatArray
    diagonal_sd: float
    beside_sd: float

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.shift)

    def unclipped(self) -> Scatter:
        r"""The moments that a Gaussian would have without the clip.

        One of variance v shows :math:`v\,h(c)`, with :math:`c = C/\sqrt v` and h of `clipped_variance`; a small
        deviation from the sphere shows by the factor :math:`h(c) - 2c^2\,P(|z| > c)/(d(d+2))`, as longer records are
        clipped more.
        """
        d = self.d
        seen = float(np.trace(self.covariance)) / d
        variance = unclipped_variance(d, self.whitening.clip, seen)
        clip = self.whitening.clip / math.sqrt(max(variance, 1e-12))
        left = clipped_variance(d, clip)
        beside = left - 2 * clip**2 * float(chi2.sf(clip**2, d)) / (d * (d + 2))
        deviation = self.covariance - seen * np.eye(d)
        return replace(
            self,
            covariance=variance * np.eye(d) + deviation / beside,
            shift=self.shift / math.sqrt(left),
            diagonal_sd=self.diagonal_sd / beside,
            beside_sd=self.beside_sd / beside,
        )

    @property
    def noise(self) -> float:
        """Expected squared Frobenius norm of the noise."""
        return self.d * self.diagonal_sd**2 + self.d * (self.d - 1) * self.beside_sd**2

    def shrunk(self) -> tuple[FloatArray, float]:
        """The covariance with its deviation from a sphere shrunk by what noise and sampling explain of it."""
        d = self.d
        seen = float(np.trace(self.covariance)) / d
        level = max(seen, self.diagonal_sd / math.sqrt(d), 1e-12)
        deviation = self.covariance - seen * np.eye(d)
        sampling = (1 - self.whitening.known) ** 2 * level**2 * d * (d + 1) / max(self.count, 1.0)
        size = float((deviation**2).sum())
        # as much of the deviation as noise and sampling do not explain, in the manner of James and Stein
        kept = max(0.0, 1.0 - (self.noise + sampling) / max(size, 1e-300))
        return level * np.eye(d) + kept * deviation, kept

    def next_whitening(self) -> Whitening:
        """The map of the next step: by this covariance, but not below what noise hides."""
        covariance, kept = self.shrunk()
        values, vectors = np.linalg.eigh(covariance)
        hidden = kept * self.beside_sd * math.sqrt(self.d)  # half the edge of the noise's spectrum
        # a direction that noise hides is not whitened: dividing by its spread would blow the noise up
        values = np.maximum(values, max(hidden, 1e-9 * float(np.abs(values).max())))
        root = self.whitening.root @ (vectors * np.sqrt(values))
        known = kept + (1 - kept) * self.whitening.known
        return whitening_of(self.mean, root, clip_radius(self.d), known)

    @property
    def mean(self) -> FloatArray:
        """The mean in data units."""
        return np.asarray(self.whitening.frame.centre + self.whitening.root @ self.shift)

    def gaussian(self) -> Gaussian:
        """The Gaussian with these moments, in data units."""
        covariance, _ = self.shrunk()
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, TUNING.least_eigenvalue * float(values.mean()))
        half = self.whitening.root @ (vectors * np.sqrt(values))
        whole = half @ half.T
        noise = self.shift_sd**2 * (self.whitening.root**2).sum(axis=1)
        error = np.sqrt(np.diag(whole) / max(self.count, 1.0) + noise)
        return Gaussian(self.mean, (whole + whole.T) / 2, self.count, self.count_sd, error)


SPHERICAL_COUNT_WEIGHT, SQUARE_WEIGHT = 0.5, 0.5
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
        return int(SPHERICAL_COUNT_WEIGHT * self.steps)

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
