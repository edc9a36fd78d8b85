r"""DP-GRAMS in a certified form: noisy gradient ascent on the density from public starts.

The published algorithm climbs :math:`\nabla\hat p/\hat p` from raw records, and divides by a raw density. Here the
starts are a public grid, a record enters by its kernel alone, and every quotient is one of released numbers. In each
step the points :math:`p_1, \dots, p_m` of all ascents ask for

.. math:: f(p_j) = \sum_i k(x_i, p_j), \qquad h\,\nabla f(p_j) = \sum_i \frac{x_i - p_j}{h}\, k(x_i, p_j),
          \qquad k(x, p) = e^{-|x - p|^2/2h^2},

together. These are the values of linear functionals on the Hilbert space of the kernel, with a Gram matrix G that
depends on the points only, so that a record moves them by a vector :math:`\phi` with
:math:`\phi^\top G^{-1}\phi \le k(x, x) = 1`: noise of covariance proportional to G makes *all* ascents private at the
price of one, however many there are. That is what the paper's Remark 3.1 wants of noise that is correlated over starts.
A step goes to the noisy mean of the records around a point, :math:`h\cdot h\nabla f/f`.

A published mode is the end of an ascent whose released height stands above the noise, highest first.
Proof: ``gradient_ascent.proof.md``, beside this file.

References
----------
DP-GRAMS: Algorithm 1 and Remark 3.1 of the paper; R. Hall, A. Rinaldo, L. Wasserman, "Differential privacy for
functions and functional data", JMLR 14 (2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline import _validation
from fogline._typing import FloatArray, IntArray, LedgerLike
from fogline.accounting.guarantee import Guarantee
from fogline.queries.lattice import RecordLattice, clipped
from fogline.queries.moments import ExactSum, SpreadQuery
from fogline.queries.query import Records, rows_moved
from fogline.releases.curator import Curator
from fogline.releases.terms import ReleaseTerms
from fogline.sources.passes import as_source, unit_of

__all__ = ["AscentResult", "Jets", "KernelJetQuery", "gradient_ascent_modes"]

VALUE_BITS, MAP_BITS, LENGTH_BITS = 20, 18, 16
"""Bits of a kernel value, of an entry of the whitening map, and of the longest record after it."""

RIDGE = 1e-4
"""Added to the Gram matrix: two starts that meet must not ask for the same number twice."""

MOST_NUMBERS = 1536
"""Most numbers of a step: starts times one more than the number of columns."""

TABLE_UNITS, TABLE_END = 1024, 20
"""The kernel is read from a table of so many entries per unit of its exponent, up to this exponent and zero beyond."""

KERNEL = np.append(np.rint(2.0**VALUE_BITS * np.exp(-(np.arange(TABLE_UNITS * TABLE_END) + 0.5) / TABLE_UNITS)), 0.0)

BATCH = 2**13
"""Records whose kernels are in memory at a time."""

CODE_VERSION = "gradient-ascent-1"


@dataclass(frozen=True)
class AscentTuning:
    """What is tuned; privacy holds with any.

    Attributes
    ----------
    scale : float
        Share of the budget that counts the records and finds their spread.
    steps : int
    starts : int
        Starts on each axis, in two columns; about the square of it in more.
    widest : float
        First bandwidth, in distances of neighbouring starts.
    shrink : float
        Factor of the bandwidth from a step to the next.
    signal : float
        The bandwidth shrinks while the lowest wanted peak is expected to stay so many deviations of noise high.
    rate : float
        Least bandwidth, in spreads times n^(-1/(d+6)).
    above : float
        A mode is this many deviations of the noise high.
    apart : float
        Two modes are this many bandwidths apart.
    """

    scale: float = 0.05
    steps: int = 6
    starts: int = 7
    widest: float = 0.5
    shrink: float = 0.75
    signal: float = 12.0
    rate: float = 0.9
    above: float = 3.0
    apart: float = 2.0


TUNING = AscentTuning()


@dataclass(frozen=True, eq=False)
class Jets:
    """Released heights and gradients at all points of a step.

    Attributes
    ----------
    heights : array of shape (m,)
        Noisy sums of kernel values, in records.
    gradients : array of shape (m, d)
        Noisy sums of offsets times kernel values, offsets in bandwidths.
    noise : float
        Standard deviation of a height.
    """

    heights: FloatArray
    gradients: FloatArray
    noise: float

    def moves(self, above: float) -> FloatArray:
        """Where each point goes, in bandwidths: the noisy mean around it, and never further than one bandwidth."""
        shift = self.gradients / np.maximum(self.heights, above * self.noise)[:, None]
        length = np.sqrt((shift**2).sum(axis=1, keepdims=True))
        return np.asarray(shift / np.maximum(1.0, length))


@dataclass(frozen=True, eq=False)
class KernelJetQuery:
    """Height and gradient of the summed kernels at each of some points, whitened together.

    Parameters
    ----------
    lattice : RecordLattice
    points : array of shape (m, d)
        Whole numbers: lattice vectors.
    bandwidth : float
        Of the kernel, in lattice steps.
    """

    lattice: RecordLattice
    points: FloatArray
    bandwidth: float

    @property
    def size(self) -> int:
        """How many whole numbers it gives."""
        return len(self.points) * (1 + self.lattice.d)

    @cached_property
    def root(self) -> FloatArray:
        """Symmetric root of the Gram matrix, with its ridge: what takes whitened numbers back."""
        values, vectors = self._spectrum
        return np.asarray(vectors * np.sqrt(values) @ vectors.T)

    @cached_property
    def matrix(self) -> FloatArray:
        """Inverse of that root, in whole numbers."""
        values, vectors = self._spectrum
        return np.asarray(np.rint(vectors / np.sqrt(values) @ vectors.T * 2.0**MAP_BITS))

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        gram = gram_matrix(self.points / self.bandwidth)
        values, vectors = np.linalg.eigh(gram)
        return np.maximum(values, 0.0) + RIDGE, vectors

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far neighbours can be apart: every record's vector is clipped to one length."""
        moved = rows_moved(neighbours, max_contributions)
        return math.nextafter(moved * 2.0**LENGTH_BITS * (1 + 1e-12), math.inf)

    def vectors(self, q: FloatArray) -> FloatArray:
        """Contribution of each lattice vector: whole numbers of norm at most 2**LENGTH_BITS."""
        offsets = q[:, None] - self.points
        squares = np.zeros(offsets.shape[:2])
        for axis in range(self.lattice.d):  # whole numbers: exact in any order
            squares += offsets[:, :, axis] ** 2
        entries = np.minimum(np.floor(squares * (0.5 * TABLE_UNITS / self.bandwidth**2)), TABLE_UNITS * TABLE_END)
        kernel = KERNEL[entries.astype(np.int64)]
        parts = [kernel, *(offsets[:, :, axis] / self.bandwidth * kernel for axis in range(self.lattice.d))]
        whole = np.rint(np.concatenate(parts, axis=1))
        seen = whole @ self.matrix.T  # whole numbers below 2**53, exact in any order
        reach = 2.0 ** (LENGTH_BITS + 1)
        scaled = np.clip(np.rint(seen * 2.0 ** (LENGTH_BITS - VALUE_BITS - MAP_BITS)), -reach, reach)
        return clipped(scaled, 2**LENGTH_BITS)

    def exact(self, records: Records) -> IntArray:
        """Secret: the sum over all records."""
        total = ExactSum(self.size)

        def take(rows: FloatArray) -> None:
            q = self.lattice.vectors(rows)
            for start in range(0, len(q), BATCH):
                total.add(self.vectors(q[start : start + BATCH]).sum(axis=0))

        records.each(take)
        return total.cut()

    def decode(self, values: IntArray, noise_scale: float) -> Jets:
        """Noisy heights and gradients."""
        m, unit = len(self.points), 2.0**-LENGTH_BITS
        seen = self.root @ (values * unit)
        return Jets(seen[:m], seen[m:].reshape(self.lattice.d, m).T, noise_scale * unit * math.sqrt(1.0 + RIDGE))


def gram_matrix(points: FloatArray) -> FloatArray:
    r"""Gram matrix of heights, then of each derivative, at points in bandwidths, in the space of the Gaussian kernel.

    With :math:`u = p_i - p_j`: :math:`\langle f(p_i), f(p_j)\rangle = k`,
    :math:`\langle \partial_a f(p_i), f(p_j)\rangle = -u_a k`,
    :math:`\langle \partial_a f(p_i), \partial_b f(p_j)\rangle = (\delta_{ab} - u_a u_b) k`.

    Examples
    --------
    >>> (gram_matrix(np.array([[0.0], [1.0]])).round(3) + 0.0).tolist()
    [[1.0, 0.607, 0.0, -0.607], [0.607, 1.0, 0.607, 0.0], [0.0, 0.607, 1.0, 0.0], [-0.607, 0.0, 0.0, 1.0]]
    """
    m, d = points.shape
    u = points[:, None] - points
    kernel = np.exp(-0.5 * (u**2).sum(axis=2))
    gram = np.empty(((1 + d) * m, (1 + d) * m))
    gram[:m, :m] = kernel
    for a in range(d):
        rows = slice((1 + a) * m, (2 + a) * m)
        gram[rows, :m] = -u[:, :, a] * kernel
        gram[:m, rows] = gram[rows, :m].T
        for b in range(d):
            gram[rows, (1 + b) * m : (2 + b) * m] = (float(a == b) - u[:, :, a] * u[:, :, b]) * kernel
    return gram


@dataclass(frozen=True, eq=False)
class AscentResult:
    """Modes by noisy gradient ascent. Everything here is released.

    Attributes
    ----------
    modes : array of shape (k, d)
        Highest first; fewer than asked for where fewer stand above the noise.
    heights : array of shape (k,)
        Noisy sums of kernel values there, in records.
    path : array of shape (steps + 1, m, d)
        All ascents, from their public starts on.
    bandwidths : array of shape (steps,)
        Of each step, in half widths of the box.
    guarantee : Guarantee
        Certified.
    receipt : dict or None
        What a ledger was charged.
    """

    modes: FloatArray
    heights: FloatArray
    path: FloatArray
    bandwidths: FloatArray
    guarantee: Guarantee
    receipt: dict[str, Any] | None


@dataclass(frozen=True, eq=False)
class _Plan:
    """All that is public about an ascent."""

    lattice: RecordLattice
    n_modes: int | None
    steps: int
    starts: FloatArray

    @classmethod
    def checked(cls, bounds: Any, n_modes: int | None, n_steps: int | None, n_starts: int | None) -> _Plan:
        lattice = RecordLattice.of(bounds)
        d = lattice.d
        if n_starts is None:
            side = max(2, round(TUNING.starts ** (2.0 / d))) if d > 1 else 2 * TUNING.starts
        else:
            side = _validation.check_count(n_starts, "n_starts")
        if side**d * (1 + d) > MOST_NUMBERS:
            raise ValueError(f"n_starts: {side} on each of {d} axes are too many for this method")
        places = (2.0 * np.arange(side) + 1.0) / side - 1.0
        grid = np.stack(np.meshgrid(*[places] * d, indexing="ij"), axis=-1).reshape(-1, d)
        wanted = None if n_modes is None else _validation.check_count(n_modes, "n_modes")
        steps = TUNING.steps if n_steps is None else _validation.check_count(n_steps, "n_steps")
        return cls(lattice, wanted, steps, np.rint(grid * lattice.steps))

    @property
    def spacing(self) -> float:
        """Distance of neighbouring starts, in lattice steps."""
        return float(2.0 * self.lattice.steps / len(self.starts) ** (1.0 / self.lattice.d))

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: what makes two questions the same."""
        return {
            "bounds": self.lattice.box.tolist(),
            "n_modes": self.n_modes,
            "steps": self.steps,
            "starts": len(self.starts),
        }

    def payload(self) -> int:
        """Most bytes that all answers, and what is remembered with them, can take."""
        return 8 * (self.steps * (4 * self.starts.size + 2) + self.lattice.d + 2) + 2**16


def gradient_ascent_modes(
    X: Any,
    *,
    epsilon: float,
    delta: float,
    bounds: Any,
    n_modes: int | None = None,
    n_steps: int | None = None,
    n_starts: int | None = None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    ledger: LedgerLike | None = None,
) -> AscentResult:
    """Modes of `X` by noisy gradient ascent from a public grid of starts, private for every data set.

    Parameters
    ----------
    X : array, frame, path or engine table
        One row per record; rows outside the box, or with a missing cell, contribute nothing.
    epsilon, delta : float
        Privacy of the whole result; every step has an equal part of rho.
    bounds : sequence of (low, high)
        Public, one pair per column.
    n_modes : int, optional
        How many are wanted; by default all that stand above the noise.
    n_steps : int, optional
        T; 6 by default.
    n_starts : int, optional
        Starts on each axis.
    neighbours, max_contributions, ledger
        As for every estimator of fogline.

    Returns
    -------
    AscentResult

    Examples
    --------
    >>> from fogline.testing import seeded_noise
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1, size=(3000, 2)) for m in (-4, 4)])
    >>> with seeded_noise(0):
    ...     found = gradient_ascent_modes(X, epsilon=2.0, delta=1e-5, bounds=[(-10, 10)] * 2, n_modes=2)
    >>> np.sort(found.modes[:, 0]).round().tolist(), found.guarantee.epsilon, found.path.shape
    ([-4.0, 4.0], 2.0, (7, 49, 2))
    """
    source = as_source(X)
    terms = ReleaseTerms.checked(epsilon, delta, neighbours, max_contributions, unit_of(source), ledger=ledger)
    _validation.check_ledger(ledger)
    plan = _Plan.checked(bounds, n_modes, n_steps, n_starts)
    curator = Curator(source, terms, width=plan.lattice.d)
    del X, source
    found, guarantee, receipt = curator.release(
        lambda curator: _ascend(plan, curator),
        mechanism="discrete Gaussian noise, joint over the starts, on heights and gradients of a kernel density",
        proof="gradient-ascent",
        name="gradient-ascent-modes",
        code_version=CODE_VERSION,
        parameters=plan.to_dict(),
        max_payload=plan.payload(),
        ledger=ledger,
    )
    return AscentResult(*found, guarantee, receipt)


def _ascend(plan: _Plan, curator: Curator) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Let all starts climb, step by step; what a step asks depends on earlier answers."""
    lattice, share = plan.lattice, Fraction(TUNING.scale)
    spread = curator.ask(SpreadQuery(lattice), share, "scale")
    deviation = math.sqrt(spread.variance / lattice.d) * lattice.steps
    least = TUNING.rate * deviation * spread.count ** (-1.0 / (lattice.d + 6.0))
    points, bandwidth = plan.starts, TUNING.widest * plan.spacing
    path, bandwidths = [points], []
    kept: dict[str, NDArray[Any]] = {}
    for step in range(plan.steps):
        jets = curator.ask(KernelJetQuery(lattice, points, bandwidth), (1 - share) / plan.steps, "step")

        def move(
            now: FloatArray = points, answer: Jets = jets, bandwidth: float = bandwidth
        ) -> dict[str, NDArray[Any]]:
            moved = np.rint(now + bandwidth * answer.moves(TUNING.above))
            reach = float(lattice.steps)
            # The peaks are those of the heights where the points were: these were released.
            chosen = _peaks(now, answer, bandwidth, plan.n_modes)
            narrower = _next_bandwidth(answer, chosen, bandwidth, least, lattice.d)
            return {
                "points": np.clip(moved, -reach, reach),
                "peaks": chosen,
                "heights": answer.heights[chosen],
                "bandwidth": np.array(narrower),
            }

        kept = curator.remember(f"points{step}", move)
        bandwidths.append(bandwidth)
        points, bandwidth = kept["points"], float(kept["bandwidth"])
        path.append(points)
    modes = lattice.places(points[kept["peaks"]])
    places = np.stack([lattice.places(at) for at in path])
    return modes, kept["heights"], places, np.array(bandwidths) / lattice.steps


def _peaks(points: FloatArray, jets: Jets, bandwidth: float, most: int | None) -> IntArray:
    """Indices of points that stand above the noise and are apart from each other, highest first."""
    chosen: list[int] = []
    for index in np.argsort(-jets.heights, kind="stable").tolist():
        if jets.heights[index] < TUNING.above * jets.noise or len(chosen) == most:
            break
        offsets = (points[chosen] - points[index]) / bandwidth
        if not chosen or float((offsets**2).sum(axis=1).min()) > TUNING.apart**2:
            chosen.append(index)
    return np.array(chosen, dtype=np.int64)


def _next_bandwidth(jets: Jets, chosen: IntArray, bandwidth: float, least: float, d: int) -> float:
    """A narrower bandwidth, if the lowest peak would still stand well above the noise."""
    narrower = max(TUNING.shrink * bandwidth, min(least, bandwidth))
    lowest = float(jets.heights[chosen].min()) if len(chosen) else 0.0
    # A height shrinks with the bandwidth, at worst like its d-th power.
    return narrower if lowest * (narrower / bandwidth) ** d > TUNING.signal * jets.noise else bandwidth
