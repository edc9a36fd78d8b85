r"""A smooth random field on buckets of unequal size: the Matérn field by finite volumes.

The stochastic equation :math:`(\kappa^2 - \Delta)^{\alpha/2} s = W` on the box, with no flow through its walls, is
integrated over each bucket. With volumes :math:`h_j`, conductances :math:`g_{ij}` (face area over distance of centres)
and :math:`K = \kappa^2 \operatorname{diag}(h) + G`, the precision of the field is :math:`c K` for
:math:`\alpha = 1` (rough) and :math:`c K \operatorname{diag}(1/h) K` for :math:`\alpha = 2` (smooth); the constant c
sets the standard deviation. In one column K is tridiagonal and one Newton step is a banded Cholesky factorisation; in
two and three columns it is sparse.

References
----------
F. Lindgren, H. Rue, J. Lindström (2011), "An explicit link between Gaussian fields and Gaussian Markov random fields",
JRSS B 73.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.sparse.linalg import splu

from fogline._typing import FloatArray, IntArray

__all__ = ["Factor", "FieldPrior", "Mesh", "Smoothness", "field_rate"]


@dataclass(frozen=True)
class Smoothness:
    """Parameters of the field: correlation length as a part of the box, standard deviation, order 1 or 2."""

    length: float
    deviation: float
    order: int


class Factor:
    """A factorised precision: how to solve with it, and the logarithm of its determinant (found when asked for)."""

    def __init__(self, solve: Callable[[FloatArray], FloatArray], pivots: Callable[[], FloatArray]) -> None:
        self.solve = solve
        self._pivots = pivots

    @cached_property
    def log_determinant(self) -> float:
        """Sum of the logarithms of the pivots."""
        return float(np.log(self._pivots()).sum())


@dataclass(frozen=True)
class Mesh:
    """Buckets as a graph: volumes (their sum is 1), pairs of neighbours and the conductance between them.

    Examples
    --------
    >>> mesh = Mesh.of(np.array([[[0, 4]], [[4, 6]], [[6, 8]]]), (8,))
    >>> mesh.volumes.tolist(), mesh.first.tolist(), mesh.second.tolist()
    ([0.5, 0.25, 0.25], [0, 1], [1, 2])
    """

    volumes: FloatArray
    centres: FloatArray
    first: IntArray
    second: IntArray
    conductance: FloatArray
    leaves: tuple[int, ...]

    @classmethod
    def of(cls, boxes: IntArray, leaves: tuple[int, ...]) -> Mesh:
        """Mesh of boxes that tile a grid of leaves; in one column the boxes must be in order."""
        sizes = np.asarray(leaves, dtype=np.float64)
        spans = boxes / sizes[:, None]
        extent, centres = spans[:, :, 1] - spans[:, :, 0], spans.mean(axis=2)
        volumes = extent.prod(axis=1)
        if len(leaves) == 1:
            first = np.arange(len(boxes) - 1)
            return cls(volumes, centres, first, first + 1, 1 / np.diff(centres[:, 0]), leaves)
        first, second, area = _faces(label_leaves(boxes, leaves), leaves)
        distance = np.linalg.norm(centres[first] - centres[second], axis=1)
        return cls(volumes, centres, first, second, area / distance, leaves)

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.leaves)

    @property
    def size(self) -> int:
        """Number of buckets."""
        return len(self.volumes)

    @cached_property
    def adjacency(self) -> sparse.csr_matrix:
        """Conductances as a symmetric matrix."""
        pairs = np.concatenate([self.first, self.second]), np.concatenate([self.second, self.first])
        weights = np.concatenate([self.conductance, self.conductance])
        return sparse.coo_matrix((weights, pairs), shape=(self.size, self.size)).tocsr()

    def neighbour_mean(self, values: FloatArray) -> FloatArray:
        """Mean over the neighbours of each bucket, weighted by conductance; 0 where there are none."""
        degree = np.asarray(self.adjacency.sum(axis=1)).ravel()
        return np.asarray(self.adjacency @ values / np.maximum(degree, 1e-300))


def label_leaves(boxes: IntArray, leaves: tuple[int, ...]) -> IntArray:
    """Number of the box that holds each leaf, as an array with one axis per column."""
    label = np.empty(leaves, dtype=np.int64)
    for number, box in enumerate(boxes.tolist()):
        label[tuple(slice(start, stop) for start, stop in box)] = number
    return label


def _faces(label: IntArray, leaves: tuple[int, ...]) -> tuple[IntArray, IntArray, FloatArray]:
    """Pairs of boxes that share a face, and its area in units of the box."""
    size, keys, areas = int(label.max()) + 1, [], []
    for axis, count in enumerate(leaves):
        ahead = np.moveaxis(label, axis, 0)[1:].ravel()
        behind = np.moveaxis(label, axis, 0)[:-1].ravel()
        apart = ahead != behind
        keys.append(np.minimum(ahead, behind)[apart] * size + np.maximum(ahead, behind)[apart])
        areas.append(np.full(int(apart.sum()), count / math.prod(leaves)))
    pairs, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    area = np.bincount(inverse.ravel(), np.concatenate(areas), minlength=len(pairs)).astype(np.float64)
    return pairs // size, pairs % size, area


class FieldPrior:
    """The precision of the field on a mesh for one smoothness.

    Attributes
    ----------
    log_determinant : float
    root : sparse matrix
        ``root @ root.T`` is the precision.
    """

    def __init__(self, mesh: Mesh, smoothness: Smoothness) -> None:
        self.mesh, self.smoothness = mesh, smoothness
        rate = field_rate(smoothness, mesh.d)
        scale = _variance(mesh, rate, smoothness.order) / smoothness.deviation**2
        if mesh.d == 1:
            self._line(rate, scale, smoothness.order)
        else:
            self._graph(rate, scale, smoothness.order)

    def _line(self, rate: float, scale: float, order: int) -> None:
        """Banded form: rows of the precision's diagonals, the main one first."""
        mesh, n = self.mesh, self.mesh.size
        flow = np.zeros(n + 1)
        flow[1:n] = mesh.conductance
        diagonal = rate**2 * mesh.volumes + flow[:-1] + flow[1:]
        off = np.zeros(n)
        off[: n - 1] = -mesh.conductance
        factor = cholesky_banded(np.vstack([diagonal, off]), lower=True, check_finite=False)
        log_k = 2 * float(np.log(factor[0]).sum())
        if order == 1:
            self._bands = np.vstack([scale * diagonal, scale * off, np.zeros(n)])
            self.log_determinant = log_k + n * math.log(scale)
        else:
            weight = scale / mesh.volumes
            main = diagonal**2 * weight
            main[1:] += off[:-1] ** 2 * weight[:-1]
            main[:-1] += off[:-1] ** 2 * weight[1:]
            next_one, next_two = np.zeros(n), np.zeros(n)
            next_one[:-1] = off[:-1] * (diagonal[:-1] * weight[:-1] + diagonal[1:] * weight[1:])
            next_two[:-2] = off[:-2] * off[1:-1] * weight[1:-1]
            self._bands = np.vstack([main, next_one, next_two])
            self.log_determinant = 2 * log_k + float(np.log(weight).sum())
        self._off, self._diagonal, self._rate, self._scale, self._order = off, diagonal, rate, scale, order

    def _graph(self, rate: float, scale: float, order: int) -> None:
        mesh = self.mesh
        degree = np.asarray(mesh.adjacency.sum(axis=1)).ravel()
        stiffness = (sparse.diags(rate**2 * mesh.volumes + degree) - mesh.adjacency).tocsc()
        log_k = _factorised(stiffness).log_determinant
        if order == 1:
            self._precision = (scale * stiffness).tocsc()
            self.log_determinant = log_k + mesh.size * math.log(scale)
        else:
            half = (stiffness @ sparse.diags(np.sqrt(scale / mesh.volumes))).tocsc()
            self._precision = (half @ half.T).tocsc()
            self.log_determinant = 2 * log_k + float(np.log(scale / mesh.volumes).sum())
            self._half = half
        self._precision.sort_indices()
        columns = np.repeat(np.arange(mesh.size), np.diff(self._precision.indptr))
        self._own = np.flatnonzero(self._precision.indices == columns)
        self._rate, self._scale, self._order = rate, scale, order

    @cached_property
    def root(self) -> sparse.csc_matrix:
        """A matrix whose product with its transpose is the precision, for draws."""
        mesh = self.mesh
        if self._order == 1:
            faces = np.arange(len(mesh.first))
            weight = np.sqrt(mesh.conductance)
            rows, columns = np.concatenate([mesh.first, mesh.second]), np.concatenate([faces, faces])
            shape = (mesh.size, len(faces))
            flow = sparse.coo_matrix((np.concatenate([weight, -weight]), (rows, columns)), shape=shape)
            own = sparse.diags(self._rate * np.sqrt(mesh.volumes))
            return (math.sqrt(self._scale) * sparse.hstack([own, flow])).tocsc()
        if mesh.d > 1:
            return self._half
        stiffness = sparse.diags([self._diagonal, self._off[:-1], self._off[:-1]], [0, 1, -1])
        return (stiffness @ sparse.diags(np.sqrt(self._scale / mesh.volumes))).tocsc()

    def factor(self, weights: FloatArray) -> Factor:
        """Factorise the precision plus a diagonal."""
        if self.mesh.d > 1:
            matrix = self._precision.copy()
            matrix.data[self._own] += weights
            return _factorised(matrix)
        bands = self._bands.copy()
        bands[0] += weights
        rows = bands[:2] if self._order == 1 else bands
        lower = cholesky_banded(rows, lower=True, check_finite=False)
        solve = lambda right: cho_solve_banded((lower, True), right, check_finite=False)  # noqa: E731
        return Factor(solve, lambda: lower[0] ** 2)

    def quadratic(self, values: FloatArray) -> float:
        """The quadratic form of the precision."""
        if self.mesh.d > 1:
            return float(values @ (self._precision @ values))
        bands = self._bands
        total = float(bands[0] @ values**2) + 2 * float(bands[1, :-1] @ (values[1:] * values[:-1]))
        return total + 2 * float(bands[2, :-2] @ (values[2:] * values[:-2]))


def _factorised(matrix: sparse.csc_matrix) -> Factor:
    decomposition = splu(matrix, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}, diag_pivot_thresh=0.0)
    return Factor(decomposition.solve, lambda: np.abs(decomposition.U.diagonal()))


def field_rate(smoothness: Smoothness, d: int) -> float:
    """The kappa of a correlation length."""
    if smoothness.order == 1:
        return 2 / smoothness.length
    return math.sqrt(8 * (2 - d / 2)) / smoothness.length


def _variance(mesh: Mesh, rate: float, order: int) -> float:
    """Variance of the field for c = 1; for rough fields in two and three columns, that of a cell of mean volume."""
    if order == 2:
        return {1: 1 / (4 * rate**3), 2: 1 / (4 * math.pi * rate**2), 3: 1 / (8 * math.pi * rate)}[mesh.d]
    if mesh.d == 1:
        return 1 / (2 * rate)
    side: float = float(np.mean(mesh.volumes)) ** (1 / mesh.d)
    if mesh.d == 2:
        return math.log1p((math.pi / (side * rate)) ** 2) / (4 * math.pi)
    return float((1 - rate * side / math.pi * math.atan(math.pi / (rate * side))) / (2 * math.pi * side))
