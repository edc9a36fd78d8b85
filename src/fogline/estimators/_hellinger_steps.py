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

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._hellinger_degrees import degrees_of
from fogline.estimators._hellinger_quadrature import DescentPlan, Quadrature
from fogline.estimators._hellinger_start import START_PORTION, Start, start_at, start_of, start_variance
from fogline.estimators._staged import RecordPasses, Stages

__all__ = ["Descent", "descend", "planned_errors", "stages_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

STEPS_OF_SENSITIVITY = 2.0**24
"""The lattice is so fine that neighbours are at most about this many steps apart."""

MOST_RECORDS = 2**30
"""Up to here the errors of floating-point sums stay below half a lattice step."""

HESSIAN_PORTION = Fraction(1, 5)
"""Share of the Hessian in a Newton step."""

CURVATURES = (1.0 / 3.0, 3.0)
"""Eigenvalues of a noisy Hessian are moved into this range; at the solution they are 1."""

CURVATURE_SPREAD = 0.25
"""Near the solution a curvature is 1 within about this, and half the iterate's distance from the solution."""


@dataclass(frozen=True, eq=False)
class Descent:
    """The path of a descent and its errors; released values only."""

    theta: FloatArray
    path: FloatArray
    privacy_covariance: FloatArray
    sampling_covariance: FloatArray
    degrees: FloatArray


def stages_of(plan: DescentPlan) -> int:
    """Numbers of answers of a descent."""
    return 1 + plan.iterations * (2 if plan.newton else 1)


def descend(stages: Stages, passes: RecordPasses | None, plan: DescentPlan) -> Descent:
    r"""Start from noisy counts, make the steps, and weigh each by what is known of its error.

    A step is a noisy measurement of where the distance is least. With P the covariance of the iterate's error and R
    that of the measurement, the iterate moves by the part :math:`K = P(P + R)^{-1}` of the step (Kalman's gain), and
    :math:`(I - K)P` is left: no step makes it worse.
    """
    grid = Quadrature(plan)
    start = start_of(stages, passes, grid)
    theta, belief = start.theta, _Belief.of(start)
    path = [theta]
    for _ in range(plan.iterations):
        target, error = _step(stages, passes, grid, theta, belief.privacy)
        gain = belief.gain(error)
        theta = np.clip(theta + gain @ (target - theta), *plan.box.T)
        belief = belief.after(gain, error)
        path.append(theta)
    sampling = belief.sampling(start.sampling_covariance, grid.sampling_covariance(theta))
    return Descent(
        theta=theta,
        path=np.array(path),
        privacy_covariance=belief.privacy,
        sampling_covariance=sampling,
        degrees=degrees_of(start.variances, theta, belief.privacy + sampling, plan.box),
    )


@dataclass(frozen=True, eq=False)
class _Belief:
    """Covariance of the privacy error of an iterate, and which part of it is still the start."""

    privacy: FloatArray
    start: FloatArray

    @classmethod
    def of(cls, start: Start) -> _Belief:
        return cls(start.privacy_covariance, np.eye(len(start.theta)))

    def gain(self, error: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve((self.privacy + error).T, self.privacy.T).T)

    def after(self, gain: FloatArray, error: FloatArray) -> _Belief:
        rest = np.eye(len(gain)) - gain
        return _Belief(rest @ self.privacy @ rest.T + gain @ error @ gain.T, rest @ self.start)

    def sampling(self, start: FloatArray, steps: FloatArray) -> FloatArray:
        """Covariance from the draw of the records, which start and steps have in common."""
        root = self.start @ np.linalg.cholesky(start)
        root += (np.eye(len(root)) - self.start) @ np.linalg.cholesky(steps)
        return np.asarray(root @ root.T)


def planned_errors(plan: DescentPlan, rho: float, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Privacy and sampling covariance of a descent near these parameters, from public quantities alone."""
    grid = Quadrature(plan)
    start = start_at(grid, theta, start_variance(plan, rho))
    belief = _Belief.of(start)
    local = grid.local(theta)
    back = np.linalg.pinv(local.whitening, hermitian=True)
    portions = _portions(plan)
    noise = 2.0 * grid.sensitivity / math.sqrt(2.0 * float(portions["gradient"]) * rho)
    for _ in range(plan.iterations):
        before = back @ _bounded(belief.privacy, plan.box) @ back
        doubt = _doubt(before)
        if plan.newton:
            norm = float(np.linalg.norm(local.second, 2))
            seen = norm * grid.sensitivity / math.sqrt(2.0 * float(portions["hessian"]) * rho)
            doubt *= seen**2 / (doubt + seen**2)
        error = local.whitening @ (noise**2 * np.eye(len(theta)) + _remainder(before, doubt)) @ local.whitening.T
        belief = belief.after(belief.gain(error), error)
    return belief.privacy, belief.sampling(start.sampling_covariance, grid.sampling_covariance(theta))


def _portions(plan: DescentPlan) -> dict[str, Fraction]:
    """Portion of the budget of each answer of a step."""
    step = (1 - START_PORTION) / plan.iterations
    hessian = HESSIAN_PORTION * step if plan.newton else Fraction(0)
    return {"hessian": hessian, "gradient": step - hessian}


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
    stages: Stages, passes: RecordPasses | None, grid: Quadrature, theta: FloatArray, covariance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Where a step leads, and the covariance of its error, given that of the iterate.

    In the coordinates W let H be the curvature and C what is believed of it. An error d of the iterate becomes
    :math:`C^{-1}\big(e + (C - H)d\big)`, with e the noise of the gradient. C is the mean of H given what was seen of
    it, and C - H a symmetric matrix whose packed entries have the variance v that is left; then
    :math:`E(C - H)P(C - H) = \frac v2 (P + I\operatorname{tr}P)`, P the covariance of d.
    """
    local, m, portions = grid.local(theta), len(theta), _portions(grid.plan)
    back = np.linalg.pinv(local.whitening, hermitian=True)
    before = back @ _bounded(covariance, grid.plan.box) @ back
    curvature, doubt = np.eye(m), _doubt(before)
    if grid.plan.newton:
        seen, noise = _ask(stages, passes, grid, "hessian", -local.second, portions["hessian"])
        trust = doubt / (doubt + noise**2)  # what is beyond the doubt is noise, and not believed
        noisy = local.public_hessian + _unpacked(seen, m)
        values, axes = np.linalg.eigh(trust * noisy + (1.0 - trust) * np.eye(m))
        curvature = axes @ np.diag(np.clip(values, *CURVATURES)) @ axes.T
        doubt = trust * noise**2
    seen, noise = _ask(stages, passes, grid, "gradient", 2.0 * local.first, portions["gradient"])
    move = np.linalg.solve(curvature, seen - local.public_gradient)
    error = noise**2 * np.eye(m) + _remainder(before, doubt)
    spread = local.whitening @ np.linalg.inv(curvature)
    return theta + local.whitening @ move, np.asarray(spread @ error @ spread.T)


def _doubt(before: FloatArray) -> float:
    """Variance of a curvature around 1, at an iterate with this error."""
    return min(CURVATURE_SPREAD**2 + 0.25 * float(np.trace(before)), 1.0)


def _remainder(before: FloatArray, doubt: float) -> FloatArray:
    """Mean of D P D over symmetric D whose packed entries have this variance, P the covariance before the step."""
    return np.asarray(0.5 * doubt * (before + np.trace(before) * np.eye(len(before))))


def _bounded(covariance: FloatArray, box: FloatArray) -> FloatArray:
    """Covariance of an error that is known not to reach beyond the bounds."""
    limit = np.diag((box[:, 1] - box[:, 0]) ** 2)
    return np.asarray(covariance @ np.linalg.solve(covariance + limit, limit))


def _unpacked(vector: FloatArray, m: int) -> FloatArray:
    rows, columns = np.triu_indices(m)
    matrix = np.zeros((m, m))
    matrix[rows, columns] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    return np.asarray(matrix + np.triu(matrix, 1).T)
