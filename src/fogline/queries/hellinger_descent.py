r"""The public grid of a Hellinger descent, all that is public at one parameter, and the queries of start and steps.

On a grid with weight w per point, with the kernel estimate :math:`g = \frac1n\sum_i k_i`, each record's mass
:math:`\sum_q w\,k_i(x_q) \le 1`, and the family :math:`m_\theta` smoothed by the same kernel, gradient and Hessian of
the distance are linear in :math:`\sqrt{g}`: what multiplies it is made here. A replaced record moves such a product by
at most a multiple of :math:`\sqrt{h/n}`, h the bandwidth, so a bandwidth that shrinks with the public n takes
noise away. The proof is in ``hellinger_descent.proof.md`` beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fogline._typing import FloatArray, IntArray
from fogline.families import Family
from fogline.queries.query import Records

__all__ = ["BinCounts", "BinCountsQuery", "DescentPlan", "Local", "Quadrature", "RootQuery"]


@dataclass(frozen=True)
class QuadratureTuning:
    """What was tuned in the quadrature; the sensitivity holds for any grid.

    Parameters
    ----------
    cells_per_bandwidth : int
        Cells per bandwidth of the kernel.
    start_bins : int
        Most bins of the counts from which a descent starts.
    negligible : float
        Points where the smoothed family is below this part of its peak are left out of the quadrature.
    angles, face : int
        Directions of a half circle, and those along an edge of a face of the cube, in which the move of a query is
        bounded: more of them bound it a little closer.
    """

    cells_per_bandwidth: int = 4
    start_bins: int = 48
    negligible: float = 1e-12
    angles: int = 16
    face: int = 8


TUNING = QuadratureTuning()


QUADRATURE_CELLS = 2048
"""Most cells of the grid: the proof bounds the rounding of sums of this many doubles."""

COUNT_STEPS = 2.0**20
"""Lattice steps of one record in the counts of the start."""

STEPS_OF_SENSITIVITY = 2.0**24
"""The lattice is so fine that neighbours are at most about this many steps apart."""

FINEST_UNIT = 2.0**-39
"""Least unit of a lattice in units of the matrix's norm: doubles are off by less than half of it."""

LEAST_STEPS = 2.0**14
"""Least sensitivity in lattice steps: from here on the discrete Gaussian is as good as the continuous one."""


@dataclass(frozen=True, eq=False)
class DescentPlan:
    """All that is public about a descent."""

    family: Family
    box: FloatArray
    bounds: tuple[float, float]
    bandwidth: float
    iterations: int
    newton: bool
    n: int
    max_contributions: int


@dataclass(frozen=True, eq=False)
class Local:
    r"""What is public at one parameter: all that the queries are made of.

    Parameters
    ----------
    whitening : array of shape (m, m)
        The W of above, symmetric.
    first : array of shape (points, m)
        :math:`\sqrt{w m}\,W u`: its product with :math:`\sqrt{w g}`, doubled, is the records' part of the gradient.
    second : array of shape (points, m (m + 1)/2)
        The same of :math:`W(u u^\top + 2\,\partial u)W`, upper triangles with the root of 2 off the diagonal.
    public_gradient, public_hessian : arrays
        What the mass of the family adds.
    bias : array of shape (m,)
        What the records' part of the gradient falls short of ``public_gradient`` in the mean, if n records are the
        family's: the root of an estimate is less than that of its mean.
    """

    whitening: FloatArray
    first: FloatArray
    second: FloatArray
    public_gradient: FloatArray
    public_hessian: FloatArray
    bias: FloatArray


class Quadrature:
    """The public grid, kernel and family of a descent."""

    def __init__(self, plan: DescentPlan) -> None:
        low, high = plan.bounds
        cells = min(QUADRATURE_CELLS, math.ceil(TUNING.cells_per_bandwidth * (high - low) / plan.bandwidth))
        self.plan = plan
        self.cells = cells
        self.width = (high - low) / cells
        self.points = low + self.width * (np.arange(cells) + 0.5)
        kernel = np.exp(-0.5 * ((self.points[:, None] - self.points[None]) / plan.bandwidth) ** 2)
        # A column is one record: its mass on the grid is at most 1, whatever rounding does.
        self.kernel = kernel / (kernel.sum(axis=0) * self.width) * (1.0 - 1e-12)
        self.root_kernel = np.sqrt(self.width * self.kernel)

    @property
    def sensitivity(self) -> float:
        """Greatest Hellinger distance between the kernel estimates of neighbours."""
        return math.sqrt(2.0 * self.plan.max_contributions / max(self.plan.n, 1))

    def furthest(self, matrix: FloatArray) -> float:
        """How far the products of a public matrix with the roots of neighbours can be apart: the lesser bound."""
        norm = float(np.linalg.norm(matrix, 2))
        return min(self.sensitivity * norm, self.furthest_by_root(matrix))

    def furthest_by_root(self, matrix: FloatArray) -> float:
        r"""The bound of order :math:`\sqrt{h/n}`: records that leave push one way, those that enter the other."""
        size = matrix.shape[1]
        scale = self.plan.max_contributions / math.sqrt(max(self.plan.n, 1))
        if size > 3:
            # Directions of more than three axes are too many to look at; lengths of rows bound all of them.
            return 2.0 * scale * float((np.linalg.norm(matrix, axis=1) @ self.root_kernel).max())
        directions, cosine = _directions(size)
        along = directions @ matrix.T
        # the worst cell for a record that comes, and below the worst for one that goes
        entering = (np.maximum(along, 0.0) @ self.root_kernel).max(axis=1)
        leaving = (np.maximum(-along, 0.0) @ self.root_kernel).max(axis=1)
        return scale * float((entering + leaving).max()) / cosine

    def bins(self) -> tuple[int, IntArray]:
        """Number of the wide bins of the start, and the bin of each cell."""
        bins = min(TUNING.start_bins, self.cells)
        return bins, np.arange(self.cells) * bins // self.cells

    def cell_of(self, x: FloatArray) -> IntArray:
        """Cells of the usable records."""
        low, high = self.plan.bounds
        usable = x[(x >= low) & (x <= high)]  # not a number is neither
        return np.minimum((usable - low) / self.width, self.cells - 1).astype(np.int64)

    def counts(self, records: Records) -> IntArray:
        """Secret: records in each cell."""
        # counted once: all later queries of a descent are functions of these counts
        if "cells" not in records.memory:
            counts = np.zeros(self.cells, dtype=np.int64)

            def take(rows: FloatArray) -> None:
                np.add.at(counts, self.cell_of(rows[:, 0]), 1)

            records.each(take)
            records.memory["cells"] = counts
        return np.asarray(records.memory["cells"])

    def root(self, counts: IntArray) -> FloatArray:
        """Secret: the root of the kernel estimate, times that of the weight; its squares sum to at most 1."""
        return np.asarray(np.sqrt(self.width * (self.kernel @ counts) / max(self.plan.n, 1)))

    def local(self, theta: FloatArray) -> Local:
        """Everything public at these parameters."""
        family, w = self.plan.family, self.width
        density = family.pdf(theta, self.points) * w
        model = self.kernel @ density
        # where the family has nothing a quotient by it would be noise
        used = model > TUNING.negligible * float(model.max(initial=0.0))
        model = np.where(used, model, 1.0)
        with np.errstate(invalid="ignore", over="ignore"):
            score = np.where(density[:, None] > 0.0, density[:, None] * family.score(theta, self.points), 0.0)
        slope = np.where(used[:, None], self.kernel @ score, 0.0)
        m = len(theta)
        bend = (self.kernel @ (family.hessian(theta, self.points) * w).reshape(self.cells, m * m)).reshape(-1, m, m)
        bend = np.where(used[:, None, None], bend, 0.0)
        first = slope * np.sqrt(w / model)[:, None]
        whitening = _whitening(first.T @ first, self.plan.box)
        first = first @ whitening
        u = (slope / model[:, None]) @ whitening
        twice = 2.0 * whitening @ (bend / model[:, None, None]) @ whitening
        second = (twice - u[:, :, None] * u[:, None, :]) * np.sqrt(w * np.where(used, model, 0.0))[:, None, None]
        return Local(
            whitening=whitening,
            first=first,
            second=_packed(second),
            public_gradient=2.0 * w * whitening @ slope.sum(axis=0),
            public_hessian=2.0 * w * whitening @ bend.sum(axis=0) @ whitening,
            bias=2.0 * first.T @ (np.sqrt(w * np.where(used, model, 0.0)) - self.mean_root(density)),
        )

    def mean_root(self, masses: FloatArray) -> FloatArray:
        r"""Mean of ``root`` over n records of a law with these masses of the cells; public, and an approximation.

        What n records add up to at a point is taken for a multiple :math:`\kappa` of a Poisson number. Where many add
        up, :math:`\kappa` is variance over mean; where one is alone, the mean of its root decides.
        """
        shares = self.width * self.kernel
        n = max(self.plan.n, 1)
        mean = np.maximum(n * (shares @ masses), 1e-300)
        crowd = n * (shares**2 @ masses) / mean
        alone = (mean / np.maximum(n * (self.root_kernel @ masses), 1e-300)) ** 2
        many = mean / np.maximum(crowd, 1e-300)
        kappa = np.maximum((alone + many * crowd) / (1.0 + many), 1e-300)
        return np.asarray(np.sqrt(kappa / n) * _root_of_poisson(mean / kappa))

    def sampling_covariance(self, theta: FloatArray) -> FloatArray:
        """Covariance of the estimate from the draw of the records, if they are the family's."""
        local = self.local(theta)
        masses = self.plan.family.pdf(theta, self.points) * self.width
        model = self.kernel @ masses
        root = np.sqrt(np.where(model > TUNING.negligible * model.max(), model, math.inf) / self.width)
        influence = self.kernel.T @ (local.first / root[:, None])
        spread = (influence * masses[:, None]).T @ influence / max(self.plan.n, 1)
        return np.asarray(local.whitening @ spread @ local.whitening)


def _require_replaced(neighbours: str) -> None:
    if neighbours != "replace":
        raise ValueError('neighbours must be "replace": the number of rows is public')


@dataclass(frozen=True, eq=False)
class BinCounts:
    """Released numbers of records in a few wide bins, and the variance of their noise."""

    counts: FloatArray
    variance: float


@dataclass(frozen=True, eq=False)
class BinCountsQuery:
    """Numbers of records in the wide bins of a grid."""

    grid: Quadrature

    @property
    def size(self) -> int:
        """Number of bins."""
        return self.grid.bins()[0]

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the counts of neighbours can be apart: a replaced record moves one down and one up."""
        _require_replaced(neighbours)
        return max_contributions * math.sqrt(2.0) * COUNT_STEPS * (1.0 + 1e-12)

    def exact(self, records: Records) -> IntArray:
        """Secret: the counts."""
        bins, group = self.grid.bins()
        counts = np.bincount(group, weights=self.grid.counts(records), minlength=bins)
        return np.asarray(np.rint(counts * COUNT_STEPS), dtype=np.int64)

    def decode(self, values: IntArray, noise_scale: float) -> BinCounts:
        """Noisy counts of records."""
        return BinCounts(values / COUNT_STEPS, (noise_scale / COUNT_STEPS) ** 2)


@dataclass(frozen=True, eq=False)
class RootQuery:
    """The product of a public matrix and the root of the kernel estimate.

    Parameters
    ----------
    grid : Quadrature
    matrix : array of shape (points, size)
        From public parameters and released iterates.

    Attributes
    ----------
    unit : float
        Of the lattice that the product is rounded to; made once, before any record is seen.
    apart : float
        How many units the exact products of neighbours can be apart.
    """

    grid: Quadrature
    matrix: FloatArray
    unit: float = field(init=False)
    apart: float = field(init=False)

    def __post_init__(self) -> None:
        norm = max(float(np.linalg.norm(self.matrix, 2)), 1e-12)
        furthest = self.grid.furthest(self.matrix)
        unit = max(furthest / STEPS_OF_SENSITIVITY, FINEST_UNIT * norm)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "apart", max(furthest / unit, LEAST_STEPS))

    @property
    def size(self) -> int:
        """Length of the product."""
        return int(self.matrix.shape[1])

    def sensitivity(self, neighbours: str, max_contributions: int) -> float:
        """How far the products of neighbours can be apart; the unit counts on the contributions of the plan."""
        _require_replaced(neighbours)
        if max_contributions > self.grid.plan.max_contributions:
            raise ValueError("max_contributions must not exceed that of the plan")
        # On either side rounding moves an entry by half a step, and floating-point sums by less than another half.
        return self.apart * (1.0 + 1e-9) + 2.0 * math.sqrt(self.size)

    def exact(self, records: Records) -> IntArray:
        """Secret: the product, in lattice steps."""
        return np.rint(self.matrix.T @ self.grid.root(self.grid.counts(records)) / self.unit).astype(np.int64)

    def decode(self, values: IntArray, noise_scale: float) -> tuple[FloatArray, float]:
        """The product and the deviation of its noise."""
        return values.astype(np.float64) * self.unit, noise_scale * self.unit


def _directions(size: int) -> tuple[FloatArray, float]:
    """Unit vectors such that any other, or its opposite, has an angle with one of them of at least the cosine."""
    if size == 1:
        return np.ones((1, 1)), 1.0
    if size == 2:
        angles = math.pi / TUNING.angles * np.arange(TUNING.angles)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1), math.cos(0.5 * math.pi / TUNING.angles)
    middles = (np.arange(TUNING.face) + 0.5) * (2.0 / TUNING.face) - 1.0
    one, two = (part.ravel() for part in np.meshgrid(middles, middles))
    faces = [np.insert(np.stack([one, two], axis=1), axis, 1.0, axis=1) for axis in range(3)]
    vectors = np.concatenate(faces)
    # On a face a point is at most 1/face off in either coordinate, and the face is at least 1 away from the origin.
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), math.sqrt(1.0 - 2.0 / TUNING.face**2)


def _root_of_poisson(mean: FloatArray) -> FloatArray:
    """Mean of the root of a Poisson number."""
    from scipy.special import gammaln

    number = np.arange(1.0, 200.0)
    small = np.minimum(mean, 80.0)[:, None]
    summed = np.exp(number * np.log(np.maximum(small, 1e-300)) - small - gammaln(number + 1.0)) @ np.sqrt(number)
    large = np.maximum(mean, 80.0)
    return np.asarray(np.where(mean > 80.0, np.sqrt(large) * (1.0 - 0.125 / large - 7.0 / 128.0 / large**2), summed))


def _whitening(information: FloatArray, box: FloatArray) -> FloatArray:
    """Inverse root of the information; directions without any are held down, in units of the parameter bounds."""
    units = box[:, 1] - box[:, 0]
    values, axes = np.linalg.eigh(information * np.outer(units, units))
    floor = max(1.0, 1e-8 * float(values[-1]))
    scaled = axes @ np.diag(1.0 / np.sqrt(np.maximum(values, floor))) @ axes.T
    # Symmetric in units of the bounds; back in those of the parameters any root of the inverse will do.
    root = units[:, None] * scaled
    values, axes = np.linalg.eigh(root @ root.T)
    return np.asarray(axes @ np.diag(np.sqrt(np.maximum(values, 0.0))) @ axes.T)


def _packed(matrices: FloatArray) -> FloatArray:
    """Upper triangles, the entries off the diagonal times the root of 2: Euclidean norms are Frobenius norms."""
    rows, columns = np.triu_indices(matrices.shape[1])
    return np.asarray(matrices[:, rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0)))
