r"""Expectation-maximisation with noisy sums, from random starts: what a private mixture must beat.

Each of T steps sums over the records, moved into the public ball of radius R,

.. math:: \bigl(r_j,\; r_j x,\; r_j xx^\top\bigr)_{j \le k},

with the responsibilities :math:`r_j` under the current mixture, adds discrete Gaussian noise and takes the moments
[1]_. All of it is measured by the public radius, not by the components: that, and the start, is what fogline's own
estimator improves on. The responsibilities of a record sum to one, so a record moves the sum by no more than if it
belonged to one component. Proof: ``dp_em.proof.md``, beside this file.

References
----------
.. [1] M. Park, J. Foulds, K. Chaudhuri, M. Welling, "DP-EM: differentially private expectation maximization",
   AISTATS 2017.
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
from fogline.accounting.zcdp import rho_of
from fogline.mechanisms.discrete_gaussian import add_gaussian
from fogline.mechanisms.errors import sealed
from fogline.mechanisms.randomness import provider_reason
from fogline.queries.em_step import SHARE, GaussianClusters, StepSums
from fogline.queries.lattice import BallLattice
from fogline.queries.moments import BESIDE, DIAGONAL, ExactSum

__all__ = ["DPEMResult", "dp_em"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

COUNT_WEIGHT, MEAN_WEIGHT = 0.2, 0.4
"""Length of the count and of the record, as fractions of that of its square."""

BATCH_ROWS = 2048

MOST_COLUMNS = 64


@dataclass(frozen=True, eq=False)
class DPEMResult:
    """A mixture by noisy expectation-maximisation. Everything here is released.

    Attributes
    ----------
    weights : array of shape (k,)
    means : array of shape (k, d)
    covariances : array of shape (k, d, d)
    guarantee : Guarantee
        Certified, under adding or removing one record.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    guarantee: Guarantee

    def score_samples(self, X: Any) -> FloatArray:
        """Logarithm of the mixture's density at each row."""
        rows = _validation.records(X, self.means.shape[1])
        scores = GaussianClusters(self.weights, self.means, self.covariances).scores(rows)
        return np.asarray(np.logaddexp.reduce(scores, axis=1))


class _PlainStep(StepSums):
    """Responsibilities as in fogline's own steps; sums of the records as they are, not whitened."""

    @property
    def longest(self) -> int:
        """No record is longer, in lattice steps."""
        return self.steps

    @property
    def units(self) -> tuple[int, int, int]:
        """Integer weights of the count, of the record and (on the diagonal) of its square."""
        q = self.longest
        return int(COUNT_WEIGHT * DIAGONAL * q * q), int(MEAN_WEIGHT * DIAGONAL * q), DIAGONAL

    def sensitivity(self, neighbours: str = "add-remove", max_contributions: int = 1) -> float:  # noqa: ARG002
        """How far the sums of neighbours can be apart, in Euclidean norm."""
        count, mean, square = self.units
        q = self.longest
        squared = SHARE**2 * (count**2 + (mean * q) ** 2 + (square * q * q) ** 2)
        return math.nextafter(math.sqrt(squared) * (1 + 1e-12), math.inf)

    def sums(self, batches: list[FloatArray]) -> IntArray:
        """Exact sum over batches of whole-number coordinates."""
        count_unit, mean_unit, _ = self.units
        first, second = np.triu_indices(self.r)
        weights = np.where(first == second, DIAGONAL, BESIDE).astype(np.float64)
        total = ExactSum(self.size)
        for q in batches:
            shares, _ = self.shares(q)
            share = shares.astype(np.float64)
            squares = [((q * share[:, [j]]).T @ q)[first, second] * weights for j in range(self.k)]
            total.add(np.concatenate([share.sum(axis=0) * count_unit, (share.T @ q * mean_unit).ravel(), *squares]))
        return total.cut()

    def moments(self, values: IntArray, least: float) -> GaussianClusters:
        """Mixture of the noisy sums; variances are kept in the range of `least` to the ball's."""
        k, r, unit = self.k, self.r, float(SHARE)
        count_unit, mean_unit, _ = self.units
        sizes = np.maximum(values[:k] / (unit * count_unit), 1.0)
        means = values[k : k + k * r].reshape(k, r) / (unit * mean_unit * self.steps) / sizes[:, None]
        means /= np.maximum(1.0, np.linalg.norm(means, axis=1, keepdims=True))
        first, second = np.triu_indices(r)
        entries = values[k + k * r :].reshape(k, -1) / (unit * np.where(first == second, DIAGONAL, BESIDE))
        squares = np.zeros((k, r, r))
        squares[:, first, second] = squares[:, second, first] = entries / self.steps**2 / sizes[:, None]
        eigenvalues, vectors = np.linalg.eigh(squares - np.einsum("ki,kj->kij", means, means))
        covariances = np.einsum("kij,kj,klj->kil", vectors, np.clip(eigenvalues, least, 1.0), vectors)
        return GaussianClusters(sizes / sizes.sum(), means, covariances)


def dp_em(
    X: Any,
    *,
    n_components: int,
    epsilon: float,
    delta: float,
    radius: float,
    sigma_min: float | None = None,
    steps: int = 10,
    random_state: Any = None,
) -> DPEMResult:
    """Mixture of `X` by noisy expectation-maximisation, private for every data set.

    Parameters
    ----------
    X : array or frame of shape (n, d)
        Records that are missing or infinite contribute nothing; those outside the ball are moved to its surface.
    n_components : int
    epsilon, delta : float
        Privacy of the whole result; each step has an equal part of rho.
    radius : float
        Of a public ball around the origin.
    sigma_min : float, optional
        Smallest standard deviation of a component; by default a hundredth of the radius.
    steps : int, default 10
    random_state : int or Generator, optional
        Of the start: means drawn evenly from the half ball, public.

    Examples
    --------
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1, size=(20000, 2)) for m in (-4, 4)])
    >>> found = dp_em(X, n_components=2, epsilon=2.0, delta=1e-6, radius=10.0, random_state=0)
    >>> found.means.shape, found.guarantee.certified
    ((2, 2), True)
    """
    epsilon, delta = _validation.check_epsilon(epsilon), _validation.check_delta(delta)
    k, count = _validation.check_count(n_components, "n_components"), _validation.check_count(steps, "steps")
    rows = _validation.records(X)
    d = rows.shape[1]
    if d > MOST_COLUMNS:
        raise ValueError(f"X has {d} columns, at most {MOST_COLUMNS} are possible")
    lattice = BallLattice.around(np.zeros(d), radius)
    reach = float(lattice.half_widths[0])
    least = (0.01 if sigma_min is None else _validation.check_positive(sigma_min, "sigma_min") / reach) ** 2
    rng = np.random.default_rng(random_state)
    directions = rng.standard_normal((k, d))
    lengths = 0.5 * rng.random((k, 1)) ** (1 / d)
    starts = directions / np.linalg.norm(directions, axis=1, keepdims=True) * lengths
    model = GaussianClusters(np.full(k, 1 / k), starts, np.repeat(np.eye(d)[None] / (4 * d), k, axis=0))
    rho = rho_of(epsilon, delta)
    part = round_down(Fraction(rho) / count)
    for _ in range(count):
        query = _PlainStep(model, lattice.steps, "full")
        release = add_gaussian(
            sealed(lambda query=query: query.sums(_batches(rows, lattice))),  # type: ignore[misc]
            size=query.size,
            sensitivity=query.sensitivity(),
            rho=part,
        )
        model = query.moments(release.values, least)
    return DPEMResult(
        weights=model.weights,
        means=model.means * reach,
        covariances=model.covariances * reach**2,
        guarantee=Guarantee.certified_release(
            rho=rho,
            delta=delta,
            neighbours="add-remove",
            mechanism="noisy expectation-maximisation, discrete Gaussian",
            proof="dp-em",
            reason=provider_reason(),
        ),
    )


def _batches(rows: FloatArray, lattice: BallLattice) -> list[FloatArray]:
    return [lattice.vectors(rows[start : start + BATCH_ROWS]) for start in range(0, len(rows), BATCH_ROWS)]
