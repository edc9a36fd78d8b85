r"""Private descent on the Hellinger distance: a few noisy steps of the records themselves, under replacement.

On a public grid with weight w a point, with the kernel estimate :math:`g = \frac1n\sum_i k_i`, each record's mass
:math:`\sum_q w\,k_i(x_q) \le 1`, and the family :math:`m_\theta` smoothed by the same kernel, the loss is

.. math:: L(\theta) = 2\sum_q w\big(\sqrt{g} - \sqrt{m_\theta}\big)^2, \qquad
          \nabla L = 2\sum_q w \nabla m_\theta - 2\sum_q w\sqrt{g\,m_\theta}\,u, \qquad u = \nabla m_\theta/m_\theta .

Only the second sum sees records. At the solution the Hessian of L is the Fisher information
:math:`I = \sum_q w\,m\,u u^\top`, which is public given :math:`\theta`: gradients are asked for in the coordinates
:math:`W = I^{-1/2}`, where a step of length one is Newton's. ``method="newton"`` asks for the Hessian as well.

The proof is ``hellinger.proof.md``.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._staged import RecordPasses, Stages
from fogline.families import Family

__all__ = ["Descent", "DescentPlan", "Quadrature", "descend", "stages_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

STEPS_OF_SENSITIVITY = 2.0**24
"""The lattice is so fine that neighbours are at most about this many steps apart."""

COUNT_STEPS = 2.0**20
"""Lattice steps of one record in the counts of the start."""

MOST_RECORDS = 2**30
"""Up to here the errors of floating-point sums stay below half a lattice step."""

MOST_CELLS = 2048
CELLS_PER_BANDWIDTH = 4

START_BINS = 48
START_PORTION = Fraction(1, 5)
HESSIAN_PORTION = Fraction(1, 5)
"""Shares: of the start, and of the Hessian in a Newton step."""

LONGEST_STEP = 1.5
"""A step is cut to this length, in units of the standard error of one record."""

CURVATURES = (1.0 / 3.0, 3.0)
"""Eigenvalues of a noisy Hessian are moved into this range; at the solution they are 1."""

CURVATURE_SPREAD = 0.25
"""Near the solution a curvature is 1 within about this, and half the iterate's distance from the solution."""

NEGLIGIBLE = 1e-12
"""Points where the smoothed family is below this part of its peak are left out of the quadrature."""


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
class Descent:
    """The path of a descent and its errors; released values only."""

    theta: FloatArray
    path: FloatArray
    privacy_covariance: FloatArray
    sampling_covariance: FloatArray


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
    """

    whitening: FloatArray
    first: FloatArray
    second: FloatArray
    public_gradient: FloatArray
    public_hessian: FloatArray


class Quadrature:
    """The public grid, kernel and family of a descent."""

    def __init__(self, plan: DescentPlan) -> None:
        low, high = plan.bounds
        cells = min(MOST_CELLS, math.ceil(CELLS_PER_BANDWIDTH * (high - low) / plan.bandwidth))
        self.plan = plan
        self.cells = cells
        self.width = (high - low) / cells
        self.points = low + self.width * (np.arange(cells) + 0.5)
        kernel = np.exp(-0.5 * ((self.points[:, None] - self.points[None]) / plan.bandwidth) ** 2)
        # A column is one record: its mass on the grid is at most 1, whatever rounding does.
        self.kernel = kernel / (kernel.sum(axis=0) * self.width) * (1.0 - 1e-12)

    @property
    def sensitivity(self) -> float:
        """Greatest Hellinger distance between the kernel estimates of neighbours."""
        return math.sqrt(2.0 * self.plan.max_contributions / max(self.plan.n, 1))

    def cell_of(self, x: FloatArray) -> IntArray:
        """Cells of the usable records."""
        low, high = self.plan.bounds
        usable = x[(x >= low) & (x <= high)]  # not a number is neither
        return np.minimum((usable - low) / self.width, self.cells - 1).astype(np.int64)

    def counts(self, passes: RecordPasses) -> IntArray:
        """Secret: records in each cell."""
        if "cells" not in passes.memory:
            counts = np.zeros(self.cells, dtype=np.int64)

            def take(rows: FloatArray) -> None:
                np.add.at(counts, self.cell_of(rows[:, 0]), 1)

            passes.each(take)
            passes.memory["cells"] = counts
        return np.asarray(passes.memory["cells"])

    def root(self, counts: IntArray) -> FloatArray:
        """Secret: the root of the kernel estimate, times that of the weight; its squares sum to at most 1."""
        return np.asarray(np.sqrt(self.width * (self.kernel @ counts) / max(self.plan.n, 1)))

    def local(self, theta: FloatArray) -> Local:
        """Everything public at these parameters."""
        family, w = self.plan.family, self.width
        density = family.pdf(theta, self.points) * w
        model = self.kernel @ density
        used = model > NEGLIGIBLE * float(model.max(initial=0.0))
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
        )

    def sampling_covariance(self, theta: FloatArray) -> FloatArray:
        """Covariance of the estimate from the draw of the records, if they are the family's."""
        local = self.local(theta)
        masses = self.plan.family.pdf(theta, self.points) * self.width
        model = self.kernel @ masses
        root = np.sqrt(np.where(model > NEGLIGIBLE * model.max(), model, math.inf) / self.width)
        influence = self.kernel.T @ (local.first / root[:, None])
        spread = (influence * masses[:, None]).T @ influence / max(self.plan.n, 1)
        return np.asarray(local.whitening @ spread @ local.whitening)


def stages_of(plan: DescentPlan) -> int:
    """Numbers of answers of a descent."""
    return 1 + plan.iterations * (2 if plan.newton else 1)


def descend(stages: Stages, passes: RecordPasses | None, plan: DescentPlan) -> Descent:
    """Start from noisy counts, make the steps, and average the iterates but the first.

    Near the solution every iterate is the solution plus the noise of its own step, and what a curvature that is
    not quite right leaves of the error before it: their mean has the noise of all the steps together.
    """
    grid = Quadrature(plan)
    theta, covariance = _start(stages, passes, grid)
    path, covariances = [theta], []
    portion = (1 - START_PORTION) / plan.iterations
    for _ in range(plan.iterations):
        theta, covariance = _step(stages, passes, grid, theta, covariance, portion)
        path.append(theta)
        covariances.append(covariance)
    late = slice(1 if plan.iterations == 1 else 2, None)
    kept = len(path[late])
    mean = np.mean(path[late], axis=0)
    return Descent(
        theta=mean,
        path=np.array(path),
        privacy_covariance=np.sum(covariances[-kept:], axis=0) / kept**2,
        sampling_covariance=grid.sampling_covariance(mean),
    )


def _ask(
    stages: Stages, passes: RecordPasses | None, grid: Quadrature, name: str, matrix: FloatArray, portion: Fraction
) -> tuple[FloatArray, float]:
    """Release the product of a public matrix and the root of the kernel estimate; return it and its noise."""
    norm = max(float(np.linalg.norm(matrix, 2)), 1e-12)
    unit = grid.sensitivity * norm / STEPS_OF_SENSITIVITY
    size = matrix.shape[1]

    def query() -> IntArray:
        assert passes is not None
        return np.rint(matrix.T @ grid.root(grid.counts(passes)) / unit).astype(np.int64)

    # On either side rounding moves an entry by half a step, and floating-point sums by less than another half.
    sensitivity = STEPS_OF_SENSITIVITY * (1.0 + 1e-9) + 2.0 * math.sqrt(size)
    values, scale = stages.answer(name, query, size=size, sensitivity=sensitivity, portion=portion)
    return values.astype(np.float64) * unit, scale * unit


def _step(
    stages: Stages,
    passes: RecordPasses | None,
    grid: Quadrature,
    theta: FloatArray,
    covariance: FloatArray,
    portion: Fraction,
) -> tuple[FloatArray, FloatArray]:
    r"""One step, and the covariance of its error, given that of the iterate.

    In the coordinates W let H be the curvature and C what is believed of it. An error d of the iterate becomes
    :math:`C^{-1}\big(e + (C - H)d\big)`, with e the noise of the gradient. C is the mean of H given what was seen of
    it, and C - H a symmetric matrix whose packed entries have the variance v that is left; then
    :math:`E(C - H)P(C - H) = \frac v2 (P + I\operatorname{tr}P)`, P the covariance of d.
    """
    local, m = grid.local(theta), len(theta)
    back = np.linalg.pinv(local.whitening, hermitian=True)
    before = back @ _bounded(covariance, grid.plan.box) @ back
    curvature, doubt = np.eye(m), min(CURVATURE_SPREAD**2 + 0.25 * float(np.trace(before)), 1.0)
    if grid.plan.newton:
        seen, noise = _ask(stages, passes, grid, "hessian", -local.second, HESSIAN_PORTION * portion)
        trust = doubt / (doubt + noise**2)  # what is beyond the doubt is noise, and not believed
        noisy = local.public_hessian + _unpacked(seen, m)
        values, axes = np.linalg.eigh(trust * noisy + (1.0 - trust) * np.eye(m))
        curvature = axes @ np.diag(np.clip(values, *CURVATURES)) @ axes.T
        doubt = trust * noise**2
        portion = (1 - HESSIAN_PORTION) * portion
    seen, noise = _ask(stages, passes, grid, "gradient", 2.0 * local.first, portion)
    move = np.linalg.solve(curvature, seen - local.public_gradient)
    move *= min(1.0, LONGEST_STEP / max(float(np.linalg.norm(move)), 1e-300))
    error = noise**2 * np.eye(m) + _remainder(before, doubt)
    spread = local.whitening @ np.linalg.inv(curvature)
    low, high = grid.plan.box.T
    return np.clip(theta + local.whitening @ move, low, high), spread @ error @ spread.T


def _start(stages: Stages, passes: RecordPasses | None, grid: Quadrature) -> tuple[FloatArray, FloatArray]:
    """Parameters nearest to noisy counts of a few wide bins, in the distance of roots, and their covariance."""
    bins = min(START_BINS, grid.cells)
    group = np.arange(grid.cells) * bins // grid.cells

    def query() -> IntArray:
        assert passes is not None
        counts = np.bincount(group, weights=grid.counts(passes), minlength=bins)
        return np.asarray(np.rint(counts * COUNT_STEPS), dtype=np.int64)

    sensitivity = grid.plan.max_contributions * math.sqrt(2.0) * COUNT_STEPS * (1.0 + 1e-12)
    values, scale = stages.answer("start", query, size=bins, sensitivity=sensitivity, portion=START_PORTION)
    variance = (scale / COUNT_STEPS) ** 2
    roots = np.sqrt(np.maximum(values / COUNT_STEPS + variance, 0.0))

    def missed(theta: FloatArray) -> FloatArray:
        masses = np.bincount(group, weights=grid.plan.family.pdf(theta, grid.points) * grid.width, minlength=bins)
        return np.asarray(np.sqrt(max(grid.plan.n, 1) * masses + variance) - roots)

    theta = nearest(missed, grid.plan.family, grid.plan.box)
    return theta, _start_covariance(missed, theta, grid.plan.box)


def _start_covariance(missed: Any, theta: FloatArray, box: FloatArray) -> FloatArray:
    """Covariance of the start: roots of noisy counts have variance 1/4."""
    width = box[:, 1] - box[:, 0]
    columns = []
    for j, step in enumerate(1e-4 * width):
        up, down = theta.copy(), theta.copy()
        up[j], down[j] = min(theta[j] + step, box[j, 1]), max(theta[j] - step, box[j, 0])
        columns.append((missed(up) - missed(down)) / (up[j] - down[j]))
    jacobian = np.stack(columns, axis=1)
    return np.asarray(np.linalg.inv(4.0 * jacobian.T @ jacobian + np.diag(1.0 / width**2)))


def _remainder(before: FloatArray, doubt: float) -> FloatArray:
    """Mean of D P D over symmetric D whose packed entries have this variance, P the covariance before the step."""
    return np.asarray(0.5 * doubt * (before + np.trace(before) * np.eye(len(before))))


def _bounded(covariance: FloatArray, box: FloatArray) -> FloatArray:
    """Covariance of an error that is known not to reach beyond the bounds."""
    limit = np.diag((box[:, 1] - box[:, 0]) ** 2)
    return np.asarray(covariance @ np.linalg.solve(covariance + limit, limit))


def nearest(missed: Any, family: Family, box: FloatArray) -> FloatArray:
    """Minimise a sum of squares over a box of parameters: the best of a lattice, then downhill."""
    from scipy.optimize import least_squares

    size = max(2, int(400.0 ** (1.0 / len(box))))
    axes = [
        np.geomspace(low, high, size) if limit[0] == 0.0 else np.linspace(low, high, size)
        for (low, high), limit in zip(box.tolist(), family.limits, strict=True)
    ]
    lattice = [np.array(theta) for theta in itertools.product(*axes)]
    best = lattice[int(np.argmin([float(np.sum(missed(theta) ** 2)) for theta in lattice]))]
    width = box[:, 1] - box[:, 0]
    inside = np.clip(best, box[:, 0] + 1e-6 * width, box[:, 1] - 1e-6 * width)
    found = least_squares(missed, inside, bounds=(box[:, 0], box[:, 1]), x_scale=width, max_nfev=50)
    return np.asarray(found.x)


# -- small matrices -----------------------------------------------------------------------------------------------


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


def _unpacked(vector: FloatArray, m: int) -> FloatArray:
    rows, columns = np.triu_indices(m)
    matrix = np.zeros((m, m))
    matrix[rows, columns] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    return np.asarray(matrix + np.triu(matrix, 1).T)
