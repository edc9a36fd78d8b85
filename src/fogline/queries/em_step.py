r"""One private step of expectation-maximisation, exact in integers.

For each record and each cluster the whitened offset :math:`y_j = L_j^{-1}(z - \mu_j)` is computed by integer products,
so is its length, and with it the share :math:`R_j` of the record that belongs to the cluster, by a table of
exponentials and an integer division: :math:`\sum_j R_j \le 2^8`. With :math:`v_j` the offset clipped to radius Q, the
record contributes

.. math:: \bigl(A R_j,\; M R_j v_j,\; R_j v_jv_j^\top\bigr)_{j \le k}

(the last summed over j where the clusters share one shape, and left out where the noise would drown it). All of it
is a function of the record and of earlier releases. The proof is in ``em_step.proof.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from scipy.stats import chi, chi2

from fogline._typing import FloatArray, IntArray
from fogline.queries.lattice import Projection, RecordLattice, clipped
from fogline.queries.moments import BESIDE, DIAGONAL, ExactSum
from fogline.queries.query import Records

__all__ = [
    "CentredRecords",
    "ClusterStep",
    "ClusterStepQuery",
    "GaussianClusters",
    "Kind",
    "ProjectedRecords",
    "RecordImage",
    "StepQuery",
    "StepSums",
    "best_kind",
    "mean_lever",
    "offset_noise",
    "square_lever",
]

Kind = Literal["full", "tied", "round"]

OFFSET_BITS = 8
"""Whitened offsets are in units of 2**-8."""

WHITENING_BITS = 20
"""Whitening matrices have entries in units of 2**-20."""

STEEPEST = 2.0**24
"""Largest entry of a whitening matrix, in its units."""

SHARE = 2**8
"""A record's shares in all clusters sum to at most this."""

SCORE_UNITS = 64
"""Scores are in units of 1/64 of a nat."""

FAR = 12 * SCORE_UNITS
"""A cluster this much less likely than the best has no share."""

FARTHEST_CENTRE = 2.0**16
"""No centre is further out, along any coordinate, in lattice steps: a fit to noise may put one anywhere."""

FARTHEST = 2.0**15
"""Offsets beyond this many units are cut to it before they are squared."""

WEIGHTS: dict[Kind, tuple[float, float]] = {"full": (0.22, 0.45), "tied": (0.33, 1.25), "round": (0.32, 1.0)}
"""Lengths of the count and of the offset, as fractions of that of the square (for "round": of the offset)."""

EXPONENTIALS = np.rint(2.0**15 * np.exp(-np.arange(FAR + 1) / SCORE_UNITS)).astype(np.int64)


@dataclass(frozen=True)
class StepTuning:
    """What was tuned in reading a noisy step; none of it enters the sensitivity.

    Parameters
    ----------
    pooled : int
        How far centres move is judged by the coordinates of each, and by those of all as if they were this many more.
    prior_shape : float
        Variance with which entries of a whitened covariance are expected to differ from the identity's.
    eigenvalues : tuple of float
        A step changes no variance by more than these factors.
    """

    pooled: int = 4
    prior_shape: float = 0.15
    eigenvalues: tuple[float, float] = (0.4, 2.5)


TUNING = StepTuning()


@dataclass(frozen=True, eq=False)
class GaussianClusters:
    """A mixture of Gaussian clusters in projected coordinates.

    Attributes
    ----------
    weights : array of shape (k,)
        Sum to one.
    means : array of shape (k, r)
    covariances : array of shape (k, r, r)
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray

    def scores(self, z: FloatArray) -> FloatArray:
        """Log of weight times density of each cluster, shape (n, k)."""
        result = np.empty((len(z), len(self.weights)))
        for j, (weight, mean, covariance) in enumerate(zip(self.weights, self.means, self.covariances, strict=True)):
            factor = np.linalg.cholesky(covariance)
            offset = np.linalg.solve(factor, (z - mean).T)
            size = np.log(np.diag(factor)).sum() + 0.5 * len(mean) * math.log(2 * math.pi)
            result[:, j] = math.log(weight) - size - 0.5 * np.sum(offset**2, axis=0)
        return result


class RecordImage(Protocol):
    """How a record becomes a vector of whole numbers: by the record and by released numbers alone."""

    def vectors(self, rows: FloatArray) -> FloatArray:
        """Whole numbers, as doubles, one vector for each row that counts."""


@dataclass(frozen=True, eq=False)
class ProjectedRecords:
    """Records on a few released directions, rounded to lattice steps."""

    projection: Projection

    def vectors(self, rows: FloatArray) -> FloatArray:
        """Projected coordinates in lattice steps."""
        return np.rint(self.projection.coordinates(rows) * self.projection.lattice.steps)


@dataclass(frozen=True, eq=False)
class CentredRecords:
    """Records in all columns, less a released centre in lattice steps."""

    lattice: RecordLattice
    centre: FloatArray

    def vectors(self, rows: FloatArray) -> FloatArray:
        """Lattice vectors less the centre."""
        return np.asarray(self.lattice.vectors(rows) - self.centre)


def imaged(records: Records, image: RecordImage) -> list[FloatArray]:
    """Secret: images of all records, kept from one step to the next as long as the image is the same."""
    # Kept with the records, so that they are forgotten together.
    kept = records.memory.get("images")
    # by identity: another image, however alike, may round otherwise
    if kept is None or kept[0] is not image:
        batches: list[FloatArray] = []
        records.each(lambda rows: batches.append(image.vectors(rows)))
        kept = records.memory["images"] = (image, batches)
    found: list[FloatArray] = kept[1]
    return found


@dataclass(frozen=True, eq=False)
class StepSums:
    """Sums of one step over vectors of whole numbers.

    Parameters
    ----------
    model : GaussianClusters
        From earlier releases.
    steps : int
        Lattice steps in a half width: coordinates come as whole numbers of them.
    kind : {"full", "tied", "round"}
        A covariance for each cluster, one shape for all, or none.

    Attributes
    ----------
    factors : array of shape (k, r, r)
        Cholesky factors of the covariances.
    whitenings, centres, constants : arrays of shapes (k, r, r), (k, r) and (k,)
        Whole numbers that turn a record into offsets and scores. They are made once, before any record is seen: a
        library need not give the same last bit twice.
    """

    model: GaussianClusters
    steps: int
    kind: Kind
    factors: FloatArray = field(init=False)
    whitenings: FloatArray = field(init=False)
    centres: FloatArray = field(init=False)
    constants: IntArray = field(init=False)

    def __post_init__(self) -> None:
        factors = np.linalg.cholesky(self.model.covariances)
        inverses = np.linalg.inv(factors * self.steps) * 2.0**WHITENING_BITS
        sizes = np.log(np.einsum("kii->ki", factors) * self.steps).sum(axis=1) - np.log(self.model.weights)
        object.__setattr__(self, "factors", factors)
        # A nearly singular covariance is a fit to noise; the clip keeps products exact all the same.
        object.__setattr__(self, "whitenings", np.clip(np.rint(inverses), -STEEPEST, STEEPEST))
        centres = np.clip(np.rint(self.model.means * self.steps), -FARTHEST_CENTRE, FARTHEST_CENTRE)
        object.__setattr__(self, "centres", centres)
        object.__setattr__(self, "constants", np.rint(SCORE_UNITS * sizes).astype(np.int64))

    @property
    def k(self) -> int:
        """Number of clusters."""
        return len(self.model.weights)

    @property
    def r(self) -> int:
        """Number of coordinates."""
        return int(self.model.means.shape[1])

    @property
    def radius(self) -> int:
        """Clip of the whitened offsets, in units of 2**-8."""
        return int((math.sqrt(self.r) + 0.5) * 2**OFFSET_BITS)

    @property
    def units(self) -> tuple[int, int, int]:
        """Integer weights of the count, of the offset and (on the diagonal) of its square."""
        q = self.radius
        count, offset = WEIGHTS[self.kind]
        if self.kind == "round":
            return max(1, int(count * q)), 1, 0
        return max(1, int(count * DIAGONAL * q * q)), max(1, int(offset * DIAGONAL * q)), DIAGONAL

    @staticmethod
    def lengths(kind: Kind) -> tuple[float, float]:
        """Lengths of the count and of the offset, as fractions of that of the square or, without one, of the offset."""
        return WEIGHTS[kind]

    @property
    def pairs(self) -> int:
        """Number of released entries of squares."""
        blocks = {"full": self.k, "tied": 1, "round": 0}[self.kind]
        return blocks * self.r * (self.r + 1) // 2

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.k * (1 + self.r) + self.pairs

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the sums of neighbours can be apart, in Euclidean norm."""
        count, offset, square = self.units
        q = self.radius
        # Counts and squares of one record are never negative, so two of them are at most at right angles; offsets can
        # be opposite.
        twice, opposite = (1, 1) if neighbours == "add-remove" else (2, 4)
        squared = SHARE**2 * (twice * count**2 + opposite * (offset * q) ** 2 + twice * (square * q * q) ** 2)
        return math.nextafter(max_contributions * math.sqrt(squared) * (1 + 1e-12), math.inf)

    def shares(self, z: FloatArray) -> tuple[IntArray, list[FloatArray]]:
        """Integer shares of each record in the clusters, shape (n, k), and its clipped offsets from each."""
        offsets, scores = [], np.empty((len(z), self.k), dtype=np.int64)
        for j in range(self.k):
            exact = (z - self.centres[j]) @ self.whitenings[j].T  # whole numbers below 2**53
            y = np.clip(np.rint(exact * 2.0 ** (OFFSET_BITS - WHITENING_BITS)), -FARTHEST, FARTHEST)
            squared = np.einsum("ij,ij->i", y, y).astype(np.int64)
            # whole numbers throughout: the share of a record must not depend on its batch
            scores[:, j] = SCORE_UNITS * squared // 2 ** (2 * OFFSET_BITS + 1) + self.constants[j]
            offsets.append(clipped(y, self.radius))
        # from an integer table: floating-point exponentials differ between machines, shares must not
        behind = np.minimum(scores - scores.min(axis=1, keepdims=True), FAR)
        likely = np.where(behind < FAR, EXPONENTIALS[behind], 0)
        # Rounded down, so that the shares of a record never sum to more than SHARE.
        return SHARE * likely // likely.sum(axis=1, keepdims=True), offsets

    def sums(self, batches: list[FloatArray]) -> IntArray:
        """Secret: the sum over batches of whole-number coordinates."""
        count_unit, offset_unit, _ = self.units
        first, second = np.triu_indices(self.r)
        weights = np.where(first == second, DIAGONAL, BESIDE).astype(np.float64)
        total = ExactSum(self.size)
        for z in batches:
            shares, offsets = self.shares(z)
            parts = [shares.sum(axis=0).astype(np.float64) * count_unit]
            squares = []
            for j, v in enumerate(offsets):
                share = shares[:, j].astype(np.float64)
                parts.append(share @ v * offset_unit)
                if self.kind != "round":
                    squares.append(((v * share[:, None]).T @ v)[first, second] * weights)
            if self.kind == "tied":
                squares = [np.sum(squares, axis=0)]
            total.add(np.concatenate([*parts, *squares]))
        return total.cut()


@dataclass(frozen=True, eq=False)
class StepQuery(StepSums):
    """Sums of one step over the images of the records.

    Parameters
    ----------
    image : RecordImage
        The same one in all steps: images are made once.
    """

    image: RecordImage

    def exact(self, records: Records) -> IntArray:
        """Secret: the sum over all records."""
        return self.sums(imaged(records, self.image))


@dataclass(frozen=True, eq=False)
class ClusterStep:
    """What a step says of clusters.

    Attributes
    ----------
    model : GaussianClusters
        The improved clusters.
    centre_variances : array of shape (k, r)
        Variances of their centres' coordinates.
    weight_sds : array of shape (k,)
        Noise of each weight.
    """

    model: GaussianClusters
    centre_variances: FloatArray
    weight_sds: FloatArray


@dataclass(frozen=True, eq=False)
class ClusterStepQuery(StepQuery):
    """A step that improves clusters.

    Parameters
    ----------
    count : float
        Released number of records.
    centre_variances : array of shape (k, r)
        What is known of the errors of the model's centres.
    """

    count: float
    centre_variances: FloatArray

    def decode(self, values: IntArray, noise_scale: float) -> ClusterStep:
        """The improved clusters, and how well they are known."""
        k, r, q = self.k, self.r, self.radius / 2.0**OFFSET_BITS
        count_unit, offset_unit, _ = self.units
        unit = 2.0**OFFSET_BITS
        counts = values[:k] / float(SHARE * count_unit)
        count_sd = noise_scale / float(SHARE * count_unit)
        # a quarter of an even share: divisors stay above what noise can make of an empty cluster
        sizes = np.maximum(counts, max(0.25 * self.count / k, 1.0))
        offsets = values[k : k + k * r].reshape(k, r) / (SHARE * offset_unit * unit) / sizes[:, None] / mean_lever(r, q)
        noise = noise_scale / (SHARE * offset_unit * unit) / sizes / mean_lever(r, q)
        spreads = np.einsum("kii->ki", self.model.covariances)
        gains = _gains(offsets, noise, np.mean(self.centre_variances / spreads, axis=1))
        believed = gains[:, None] * offsets
        shapes = self._shapes(values[k + k * r :], noise_scale, sizes, believed)
        means, covariances = np.empty((k, r)), np.empty((k, r, r))
        for j in range(k):
            factor = self.factors[j]
            means[j] = self.model.means[j] + factor @ believed[j]
            covariances[j] = _believable(factor @ shapes[j] @ factor.T, 1 / self.steps)
        # a cluster that noise has emptied keeps a chance to come back
        weights = np.maximum(sizes / sizes.sum(), 0.2 / k)
        farthest = FARTHEST_CENTRE / self.steps  # no record is further from the centre of the projection
        model = GaussianClusters(weights / weights.sum(), np.clip(means, -farthest, farthest), covariances)
        variances = (gains * noise**2)[:, None] * spreads
        return ClusterStep(model, variances, np.full(k, count_sd / max(self.count, 1.0)))

    def _shapes(self, values: IntArray, scale: float, sizes: FloatArray, offsets: FloatArray) -> FloatArray:
        """Whitened covariance of each cluster, shrunk to the identity by its noise."""
        k, r = self.k, self.r
        identity = np.eye(r)
        if self.kind == "round":
            return np.repeat(identity[None], k, axis=0)
        first, second = np.triu_indices(r)
        units = SHARE * np.where(first == second, DIAGONAL, BESIDE) * 4.0**OFFSET_BITS
        blocks = values.reshape(-1, len(first)) / units
        divisors = sizes if self.kind == "full" else np.array([sizes.sum()])
        factor = square_lever(r, self.radius / 2.0**OFFSET_BITS)
        result = np.empty((len(blocks), r, r))
        for j, (block, divisor) in enumerate(zip(blocks, divisors, strict=True)):
            square = np.zeros((r, r))
            square[first, second] = square[second, first] = block / divisor / factor
            centred = square - (np.outer(offsets[j], offsets[j]) if self.kind == "full" else 0.0)
            variance = (scale / (SHARE * BESIDE * 4.0**OFFSET_BITS) / divisor / factor) ** 2
            shrunk = identity + (centred - identity) * TUNING.prior_shape / (TUNING.prior_shape + variance)
            values_, vectors = np.linalg.eigh(shrunk)
            result[j] = (vectors * np.clip(values_, *TUNING.eigenvalues)) @ vectors.T
        return result if self.kind == "full" else np.repeat(result, k, axis=0)


def _believable(covariance: FloatArray, step: float) -> FloatArray:
    """Keep a covariance positive definite: no deviation below half a lattice step, none beyond the box."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((vectors * np.clip(values, (step / 2) ** 2, (2.0**16 * step) ** 2)) @ vectors.T)


def _gains(offsets: FloatArray, noise: FloatArray, known: FloatArray) -> FloatArray:
    """How much of each measured offset to believe: its variance over that and the noise's.

    The variance is that of the centre it is measured from, or what the offsets themselves show beyond their noise
    where that is more: a start may be further off than its noise says.
    """
    r = offsets.shape[1]
    seen = np.mean(offsets**2, axis=1) - noise**2
    variance = np.maximum((r * seen + TUNING.pooled * seen.mean()) / (r + TUNING.pooled), known)
    return np.asarray(variance / (variance + noise**2))


def square_lever(r: int, q: float) -> float:
    """Mean square of a clipped standard normal vector, over its dimension."""
    return float((r * chi2.cdf(q * q, r + 2) + q * q * chi2.sf(q * q, r)) / r)


def mean_lever(r: int, q: float) -> float:
    """By how much the mean of clipped standard normal vectors moves for a small shift of their centre."""
    if r == 1:
        return float(chi.cdf(q, 1))
    tail = q * math.exp(math.lgamma((r - 1) / 2) - math.lgamma(r / 2)) / math.sqrt(2) * chi2.sf(q * q, r - 1)
    return float(chi2.cdf(q * q, r) + (1 - 1 / r) * tail)


def offset_noise(k: int, r: int, count: float, scale: float, kind: Kind) -> float:
    """Noise of a centre, in whitened units along each coordinate, of a step whose noise is `scale` sensitivities."""
    q = math.sqrt(r) + 0.5
    a, b = WEIGHTS[kind]
    norm = math.hypot(a, b, 0.0 if kind == "round" else 1.0)
    return scale * q * norm / b / max(count / k, 1.0)


def best_kind(k: int, r: int, count: float, scale: float) -> Kind:
    """Choose what a step releases, from released numbers: covariances where their noise would be below one half."""
    q = math.sqrt(r) + 0.5

    def noise(kind: Kind, records: float) -> float:
        norm = math.hypot(*WEIGHTS[kind], 1.0)
        return math.sqrt(2 * r) * scale * q * q * norm / max(records, 1.0)

    if noise("full", count / k) < 0.5:
        return "full"
    return "tied" if r > 1 and noise("tied", count) < 0.5 else "round"
