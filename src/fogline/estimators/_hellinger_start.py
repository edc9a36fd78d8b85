r"""Where a Hellinger descent starts: the parameters nearest to noisy counts of a few wide bins.

With the noise variance v of a count, :math:`\sqrt{\text{count} + v}` has a variance near 1/4, of which
:math:`v/(n p_b + v)` is privacy's and the rest sampling's, so least squares of such roots is efficient, and its errors
are known. Counts have the sensitivity of one record; steps of a descent, through a root, that of
:math:`\sqrt{n}` of them: the start is worth half the budget.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._hellinger_quadrature import DescentPlan, Quadrature
from fogline.estimators._staged import RecordPasses, Stages
from fogline.families import Family

__all__ = ["START_PORTION", "Start", "nearest", "start_at", "start_of", "start_variance"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

COUNT_STEPS = 2.0**20
"""Lattice steps of one record in the counts of the start."""

START_BINS = 48
START_PORTION = Fraction(1, 2)
"""Share of the budget."""


@dataclass(frozen=True, eq=False)
class Start:
    """Parameters to start from, and what is known of their error; released values only."""

    theta: FloatArray
    privacy_covariance: FloatArray
    sampling_covariance: FloatArray
    variances: Callable[[FloatArray], FloatArray]


def start_of(stages: Stages, passes: RecordPasses | None, grid: Quadrature) -> Start:
    """Release the counts and fit the family to them."""
    bins, group = _bins(grid)

    def query() -> IntArray:
        assert passes is not None
        counts = np.bincount(group, weights=grid.counts(passes), minlength=bins)
        return np.asarray(np.rint(counts * COUNT_STEPS), dtype=np.int64)

    sensitivity = grid.plan.max_contributions * math.sqrt(2.0) * COUNT_STEPS * (1.0 + 1e-12)
    values, scale = stages.answer("start", query, size=bins, sensitivity=sensitivity, portion=START_PORTION)
    variance = (scale / COUNT_STEPS) ** 2
    roots = np.sqrt(np.maximum(values / COUNT_STEPS + variance, 0.0))
    theta = nearest(lambda theta: np.sqrt(_masses(grid, theta) + variance) - roots, grid.plan.family, grid.plan.box)
    return start_at(grid, theta, variance)


def start_variance(plan: DescentPlan, rho: float) -> float:
    """Variance of the noise of a count."""
    return 2.0 * plan.max_contributions**2 / (2.0 * float(START_PORTION) * rho)


def start_at(grid: Quadrature, theta: FloatArray, variance: float) -> Start:
    """The start at these parameters, with its errors."""
    privacy, sampling = _covariances(grid, theta, variance)
    return Start(theta, privacy, sampling, lambda at: np.asarray(np.diag(sum(_covariances(grid, at, variance)))))


def _bins(grid: Quadrature) -> tuple[int, IntArray]:
    bins = min(START_BINS, grid.cells)
    return bins, np.arange(grid.cells) * bins // grid.cells


def _masses(grid: Quadrature, theta: FloatArray) -> FloatArray:
    """Records that the family puts in each bin."""
    bins, group = _bins(grid)
    masses = grid.plan.family.pdf(theta, grid.points) * grid.width
    return np.asarray(max(grid.plan.n, 1) * np.bincount(group, weights=masses, minlength=bins))


def _covariances(grid: Quadrature, theta: FloatArray, variance: float) -> tuple[FloatArray, FloatArray]:
    """Covariance of the start from privacy and from sampling."""
    box = grid.plan.box
    width = box[:, 1] - box[:, 0]
    columns = []
    for j, step in enumerate(1e-4 * width):
        up, down = theta.copy(), theta.copy()
        up[j], down[j] = min(theta[j] + step, box[j, 1]), max(theta[j] - step, box[j, 0])
        change = np.sqrt(_masses(grid, up) + variance) - np.sqrt(_masses(grid, down) + variance)
        columns.append(change / (up[j] - down[j]))
    jacobian = np.stack(columns, axis=1)
    # What the counts say nothing about is known from the bounds; that is privacy's part.
    bounds = np.diag(1.0 / width**2)
    inverse = np.linalg.inv(4.0 * jacobian.T @ jacobian + bounds)
    counts = _masses(grid, theta)
    part = (counts / (counts + variance))[:, None]
    sampling = inverse @ (4.0 * (jacobian * part).T @ jacobian) @ inverse
    # Where nothing is known of a parameter, sampling moves it by next to nothing: keep the matrix positive.
    sampling += np.diag(1e-18 * width**2)
    return np.asarray(inverse - sampling + np.diag(2e-18 * width**2)), np.asarray(sampling)


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
