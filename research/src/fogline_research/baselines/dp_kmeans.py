r"""k-means with noisy counts and sums: the private clustering that the DP-GRAMS paper compares with.

Lloyd's iteration, a fixed number of times. In each, records of a public box, scaled to :math:`[-1, 1]^d`, go to their
nearest centre, and counts and sums of all clusters get Laplace noise; a record is in one cluster, so that it moves one
count by 1 and one sum by at most 1 on each axis. Of an iteration's budget the count has
:math:`\sqrt[3]{4 d \rho^2}` parts and each axis of the sum one, with :math:`\rho = 0.225`. First centres are public:
as far apart, and as far from the walls, as random placing finds them [1]_.

What differs from the original, and from implementations of it: noise is discrete Laplace on whole numbers, and the
number of iterations is public, or follows from a *public* number of records. The original reads the exact number.

References
----------
.. [1] D. Su, J. Cao, N. Li, E. Bertino, H. Jin, "Differentially private k-means clustering", CODASPY 2016.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline import _validation
from fogline.accounting._rounding import round_down
from fogline.accounting.guarantee import Guarantee
from fogline.mechanisms.discrete_laplace import add_laplace
from fogline.mechanisms.errors import sealed
from fogline.mechanisms.randomness import provider_reason

__all__ = ["DPKMeansResult", "dp_kmeans", "iterations_for", "spread_centers"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

STEPS = 2**15
"""Lattice steps of half a box: a record is a vector of whole numbers up to this, either way."""

BATCH_ROWS = 4096

MOST_COLUMNS = 1024
"""Squared distances of lattice vectors, below d 2^32, stay whole numbers that a double holds."""


@dataclass(frozen=True)
class KMeansTuning:
    """Constants of Su et al.

    Parameters
    ----------
    spread : float
        Their rho: how far, as a part of the box, a cluster's mean is from its middle along an axis.
    fewest, most : int
        Number of iterations, at least and at most.
    error : float
        Of the least budget for an iteration.
    usual : int
        Iterations where no number of records is given. Ours.
    """

    spread: float = 0.225
    fewest: int = 2
    most: int = 7
    error: float = 500.0
    usual: int = 5


TUNING = KMeansTuning()


@dataclass(frozen=True, eq=False)
class DPKMeansResult:
    """Centres by noisy k-means. Everything here is released.

    Attributes
    ----------
    centers : array of shape (k, d)
    counts : array of shape (k,)
        Noisy numbers of records at the last iteration.
    n_iterations : int
    guarantee : Guarantee
        Certified, pure, under adding or removing one record.
    """

    centers: FloatArray
    counts: FloatArray
    n_iterations: int
    guarantee: Guarantee

    def predict(self, X: Any) -> IntArray:
        """Number of the nearest centre for each row; whoever holds the rows may compute it."""
        rows = _validation.records(X, self.centers.shape[1])
        distances = ((rows[:, None] - self.centers[None]) ** 2).sum(axis=2)
        return np.asarray(distances.argmin(axis=1), dtype=np.int64)


def count_parts(d: int) -> float:
    r"""Budget of the count, with that of one axis of a sum as unit: :math:`\sqrt[3]{4 d \rho^2}`.

    Examples
    --------
    >>> round(count_parts(4), 2)
    0.93
    """
    return float((4.0 * d * TUNING.spread**2) ** (1.0 / 3.0))


def iterations_for(epsilon: float, n_clusters: int, d: int, expected_records: int) -> int:
    r"""How many iterations a budget is cut into, for a public number of records.

    .. math:: \varepsilon_m = \sqrt{\frac{500 k^3}{N^2}\bigl(d + \sqrt[3]{4 d \rho^2}\bigr)^3}, \qquad
              t = \min\{7, \max\{2, \varepsilon/\varepsilon_m\}\}

    Examples
    --------
    >>> iterations_for(1.0, 3, 4, 150), iterations_for(1.0, 3, 4, 100_000)
    (2, 7)
    """
    least = math.sqrt(TUNING.error * n_clusters**3 / expected_records**2 * (d + count_parts(d)) ** 3)
    return int(min(TUNING.most, max(TUNING.fewest, epsilon / least)))


def spread_centers(n_clusters: int, d: int, rng: np.random.Generator, attempts: int = 30) -> FloatArray:
    """First centres in [-1, 1]^d: at least 2a apart and a from the walls, for about the largest a that can be had.

    Examples
    --------
    >>> centers = spread_centers(4, 2, np.random.default_rng(0))
    >>> centers.shape, bool(np.abs(centers).max() < 1.0)
    ((4, 2), True)
    """
    low, high = 0.0, 1.0
    best = rng.uniform(-0.5, 0.5, size=(n_clusters, d))
    for _ in range(12):
        apart = 0.5 * (low + high)
        placed = _placed(n_clusters, d, apart, rng, attempts)
        if placed is None:
            high = apart
        else:
            low, best = apart, placed
    return best


def _placed(n_clusters: int, d: int, apart: float, rng: np.random.Generator, attempts: int) -> FloatArray | None:
    centers = np.zeros((0, d))
    for _ in range(attempts * n_clusters):
        point = rng.uniform(-1.0 + apart, 1.0 - apart, size=(1, d))
        if not len(centers) or np.linalg.norm(centers - point, axis=1).min() >= 2.0 * apart:
            centers = np.concatenate([centers, point])
            if len(centers) == n_clusters:
                return centers
    return None


def dp_kmeans(
    X: Any,
    *,
    n_clusters: int,
    epsilon: float,
    bounds: Any,
    n_iterations: int | None = None,
    expected_records: int | None = None,
    random_state: Any = None,
) -> DPKMeansResult:
    """Centres of `X` by k-means with noisy counts and sums, private for every data set.

    Parameters
    ----------
    X : array or frame of shape (n, d)
        Records that are missing or infinite contribute nothing; those outside the box are moved to its surface.
    n_clusters : int
    epsilon : float
        Privacy of the whole result; there is no delta.
    bounds : sequence of (low, high)
        Public, one pair per column.
    n_iterations : int, optional
        By default that of `iterations_for` where `expected_records` is given, else 5.
    expected_records : int, optional
        A public number, about as many as there are.
    random_state : int or Generator, optional
        Of the first centres, public.

    Examples
    --------
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1, size=(5000, 2)) for m in (-4, 4)])
    >>> found = dp_kmeans(X, n_clusters=2, epsilon=2.0, bounds=[(-10, 10)] * 2, random_state=0)
    >>> np.sort(found.centers[:, 0]).round().tolist(), found.guarantee.certified, found.guarantee.delta
    ([-4.0, 4.0], True, 0.0)
    """
    epsilon, k = _validation.check_epsilon(epsilon), _validation.check_count(n_clusters, "n_clusters")
    box = _validation.check_bounds(bounds)
    d = len(box)
    if d > MOST_COLUMNS:
        raise ValueError(f"bounds has {d} pairs, at most {MOST_COLUMNS} are possible")
    rows = _validation.records(X, d)
    if n_iterations is not None:
        number = _validation.check_count(n_iterations, "n_iterations")
    elif expected_records is not None:
        number = iterations_for(epsilon, k, d, _validation.check_count(expected_records, "expected_records"))
    else:
        number = TUNING.usual
    parts = Fraction(count_parts(d)) + d
    of_count = round_down(Fraction(epsilon) / number * Fraction(count_parts(d)) / parts)
    of_sums = round_down(Fraction(epsilon) / number * d / parts)
    centers = np.rint(spread_centers(k, d, np.random.default_rng(random_state)) * STEPS)
    counts = np.zeros(k)
    for _ in range(number):
        query = _ClusterSums(rows, box, centers)
        noisy = add_laplace(sealed(query.counts), size=k, sensitivity=1.0, epsilon=of_count)
        sums = add_laplace(sealed(query.sums), size=k * d, sensitivity=float(d * STEPS), epsilon=of_sums)
        counts = noisy.values.astype(np.float64)
        # A cluster that may well be empty keeps its place: a quotient of noise is nowhere.
        filled = counts >= 1.0
        means = sums.values.reshape(k, d) / np.maximum(counts, 1.0)[:, None]
        centers = np.where(filled[:, None], np.rint(np.clip(means, -STEPS, STEPS)), centers)
    half, middle = 0.5 * (box[:, 1] - box[:, 0]), 0.5 * (box[:, 0] + box[:, 1])
    return DPKMeansResult(
        centers=middle + half * centers / STEPS,
        counts=counts,
        n_iterations=number,
        guarantee=Guarantee.certified_release(
            epsilon=epsilon,
            delta=0.0,
            neighbours="add-remove",
            mechanism="k-means, discrete Laplace",
            proof="dp-kmeans",
            reason=provider_reason(),
        ),
    )


@dataclass(frozen=True, eq=False)
class _ClusterSums:
    """Exact counts and sums of the records nearest to each centre."""

    rows: FloatArray
    box: FloatArray
    centers: FloatArray

    def counts(self) -> IntArray:
        total = np.zeros(len(self.centers), dtype=np.int64)
        for _, nearest in self._batches():
            total += np.bincount(nearest, minlength=len(total))
        return total

    def sums(self) -> IntArray:
        k, d = self.centers.shape
        total = np.zeros((k, d), dtype=np.int64)
        for q, nearest in self._batches():
            np.add.at(total, nearest, q.astype(np.int64))
        return total.ravel()

    def _batches(self) -> list[tuple[FloatArray, IntArray]]:
        """Whole-number vectors of the usable records, and the number of the nearest centre, the first of equals."""
        half, middle = 0.5 * (self.box[:, 1] - self.box[:, 0]), 0.5 * (self.box[:, 0] + self.box[:, 1])
        found = []
        for start in range(0, len(self.rows), BATCH_ROWS):
            part = self.rows[start : start + BATCH_ROWS]
            part = part[np.isfinite(part).all(axis=1)]
            with np.errstate(over="ignore"):
                q = np.rint(np.clip((part - middle) / half * STEPS, -STEPS, STEPS))
            squares = (self.centers**2).sum(axis=1)[None] - 2.0 * q @ self.centers.T
            found.append((q, np.asarray(squares.argmin(axis=1), dtype=np.int64)))
        return found
