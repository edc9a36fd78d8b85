r"""Faint branches located all at once: ridges fitted to the released Fourier sums by least squares.

Local peaks of a faint density must be smoothed over a tenth of the range of x, which flattens curves and loses half of
the kernel at a wall. So where the noise asks for the largest bandwidth, the branches are fitted together, as ridges

.. math:: f(x, y) = \sum_j p_j(x)\, \varphi_{\tau_j}(y - m_j(x)), \qquad a_j \le x \le b_j,

with splines for the position :math:`m_j` and the mass :math:`p_j` and one width :math:`\tau_j` a branch. The sums of
such a density are known, and so is the noise of the released ones: the fit is weighted least squares (Gauss-Newton),
with penalties on the bends of :math:`m_j` and the steps of :math:`p_j`. How strong they are follows from the data
by restricted maximum likelihood [1]_, which here has no free constant since the variance of the noise is known.
A skewed ridge is located at its centre rather than at its top, which a faint density could not tell apart.

References
----------
.. [1] S. Wood, M. Fasiolo, "A generalized Fellner-Schall method for smoothing parameter optimization", Biometrics 73,
   2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

if TYPE_CHECKING:
    from fogline.sketch.branch_threads import Threads
    from fogline.sketch.private_density import PrivateDensity

__all__ = ["Ridges", "fit_ridges"]

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

KNOTS = 0.6
"""Distance of the splines' knots, in bandwidths of x."""

QUADRATURE = 4
"""Points of the integral over x a knot."""

STEPS = 10
"""Gauss-Newton steps."""

LEAST_SIGNAL = 0.7
"""Sums whose largest possible value is below so many deviations of their noise are left out."""

END_REACH = 2.5
PLATEAU = 3.0
EDGE = 1.0
"""Ends are tried up to so many bandwidths inside of the last node; the mass there is compared with that of so many
bandwidths, and taken to be even for so many behind an end."""

CLEARLY = 12.0
"""An end before the last node must lower the sum of squares by so much."""

STRONGEST = 1e7
"""A penalty is at most so strong: it leaves straight lines and even masses alone."""

FLOOR = 1e-6
"""Relative to the information, what keeps the equations solvable where a branch has no mass."""

WIDTHS = (0.05, 2.0)
"""Least and largest width of a ridge, in bandwidths of y."""


@dataclass(frozen=True)
class Ridges:
    """Positions, slopes and the two parts of the standard errors of nodes, and which lie within their branch's ends."""

    positions: FloatArray
    slopes: FloatArray
    privacy_errors: FloatArray
    sampling_errors: FloatArray
    within: NDArray[np.bool_]


@dataclass
class _Ridge:
    """One branch: bases at the points of the integral and at its nodes, and the coefficients as they stand."""

    points: FloatArray
    weights: FloatArray
    basis: FloatArray
    at_nodes: FloatArray
    slope_at_nodes: FloatArray
    position: FloatArray
    mass: FloatArray
    width: float
    penalties: FloatArray


def _ridge(x: FloatArray, y: FloatArray, mass: FloatArray, knot: float, width: float) -> _Ridge:
    reach = max(knot - (float(x.max()) - float(x.min())), 0.0) / 2
    low, high = float(x.min()) - reach, float(x.max()) + reach
    pieces = max(1, round((high - low) / knot))
    inner = np.linspace(low, high, pieces + 1)
    step = (high - low) / pieces
    knots = np.concatenate([low - step * np.arange(3, 0, -1), inner, high + step * np.arange(1, 4)])
    points = low + (high - low) * (np.arange(pieces * QUADRATURE) + 0.5) / (pieces * QUADRATURE)
    size = len(knots) - 4
    spline = BSpline(knots, np.eye(size), 3)
    at_nodes = np.asarray(spline(x))
    ridge = 1e-6 * np.diff(np.eye(size), 2, axis=0)
    start = [
        np.linalg.lstsq(np.vstack([at_nodes, ridge]), np.append(v, np.zeros(size - 2)), rcond=None)[0]
        for v in (y, mass)
    ]
    return _Ridge(
        points,
        np.full(len(points), (high - low) / len(points)),
        np.asarray(spline(points)),
        at_nodes,
        np.asarray(spline.derivative()(x)),
        start[0],
        start[1],
        width,
        np.array([1e-2, 1e-2]),
    )


def fit_ridges(
    density: PrivateDensity,
    bandwidth: FloatArray,
    x: FloatArray,
    position: FloatArray,
    height: FloatArray,
    threads: Threads,
) -> Ridges | None:
    """Fit all branches together, starting from nodes at places x of shape (K, 1); None if there are too few sums."""
    spec = density.spec
    h, b = bandwidth
    noise = density.noise_scale**2 / density.weights
    total = noise + density.count / 2
    kept = density.count / np.sqrt(total) >= LEAST_SIGNAL
    noise, total, angular = noise[kept], total[kept], spec.angular[kept]
    scale = density.count / np.sqrt(total)
    observed = density.coefficients[kept] / np.sqrt(total)
    groups = threads.groups()
    ridges = [
        _ridge(x[g, 0], position[g], height[g] * np.sqrt(2 * np.pi) * 1.2 * b, KNOTS * h, 0.6 * b) for g in groups
    ]
    if 2 * len(total) < sum(2 * len(r.position) + 1 for r in ridges):
        return None
    across = [_waves(angular[:, 0], r.points - spec.origin[0]) * r.weights for r in ridges]
    for _ in range(STEPS):
        model, jacobian, penalty, coefficients, parts = _linearised(
            ridges, across, angular[:, 1], spec.origin[1], scale
        )
        residual = observed - model
        design = np.vstack([jacobian.real, jacobian.imag])
        target = np.concatenate([residual.real, residual.imag])
        information = design.T @ design
        floor = np.maximum(np.diag(information), FLOOR * np.median(np.diag(information)) + FLOOR)
        inverse = np.asarray(np.linalg.inv(information + penalty + FLOOR * np.diag(floor)), dtype=np.float64)
        step = inverse @ (design.T @ target - penalty @ coefficients)
        _move(ridges, coefficients + np.clip(step, -parts, parts), b)
        _reweigh(ridges, inverse)
    share = np.tile(noise / total, 2)
    spread = np.asarray(inverse @ (design.T * share) @ design @ inverse, dtype=np.float64)
    fitted = _linearised(ridges, across, angular[:, 1], spec.origin[1], scale)[0]
    found = _read(ridges, groups, x, inverse, spread)
    for ridge, phase, nodes in zip(ridges, across, groups, strict=True):
        waves = phase * _waves(angular[:, 1], ridge.basis @ ridge.position - spec.origin[1])
        waves *= (scale * np.exp(-0.5 * (angular[:, 1] * ridge.width) ** 2))[:, None]
        low, high = _ends(ridge, waves, observed - fitted, h)
        found.within[nodes] = (x[nodes, 0] >= low) & (x[nodes, 0] <= high)
    return found


def _ends(ridge: _Ridge, waves: ComplexArray, residual: ComplexArray, h: float) -> tuple[float, float]:
    """Where a branch begins and ends: the steps in its mass, from nothing to what it is further inside, that fit best.

    A branch that was found up to its last node goes on to it unless an earlier end fits clearly better.
    """
    mass = ridge.basis @ ridge.mass
    ends = []
    for side in (1, -1):
        t = side * ridge.points
        order = np.argsort(t)
        away = (t - t[order[0]])[order]
        near = away <= min(END_REACH * h, away[-1] / 2)
        level = float(np.quantile(mass[order][away <= PLATEAU * h], 0.7))
        tried = away[near]
        beyond = away[None, :] >= tried[:, None] - 1e-12
        inside = away[None, :] >= tried[:, None] + EDGE * h
        steps = np.where(inside, mass[order], np.where(beyond, level, 0.0))
        change = (steps - mass[order]) @ waves[:, order].T
        misfit = np.sum(np.abs(residual - change) ** 2, axis=1)
        best = int(np.argmin(misfit))
        if misfit[0] - misfit[best] < CLEARLY:
            best = 0
        ends.append(side * (t[order[0]] + tried[best] - (away[1] - away[0]) / 2))
    return ends[0] - 1e-9, ends[1] + 1e-9


def _linearised(
    ridges: list[_Ridge], across: list[ComplexArray], angular: FloatArray, origin: float, scale: FloatArray
) -> tuple[ComplexArray, ComplexArray, FloatArray, FloatArray, FloatArray]:
    """Sums of the ridges, derivatives by all coefficients, the penalty, the coefficients, and the largest steps."""
    model = np.zeros(len(angular), dtype=complex)
    columns, blocks, values, most = [], [], [], []
    for ridge, phase in zip(ridges, across, strict=True):
        centre, mass = ridge.basis @ ridge.position, ridge.basis @ ridge.mass
        waves = phase * _waves(angular, centre - origin)
        waves *= (scale * np.exp(-0.5 * (angular * ridge.width) ** 2))[:, None]
        own = waves @ mass
        model += own
        columns += [-1j * angular[:, None] * ((waves * mass) @ ridge.basis), waves @ ridge.basis]
        columns.append((-0.5 * angular**2 * own * ridge.width**2)[:, None])
        size = len(ridge.position)
        bend, even = _penalties(size)
        blocks += [ridge.penalties[0] * bend, ridge.penalties[1] * even, np.full((1, 1), 0.1)]
        values += [ridge.position, ridge.mass, np.zeros(1)]
        most += [np.full(size, 0.5 * ridge.width + 0.1), np.full(size, np.abs(ridge.mass).max()), np.full(1, 0.3)]
    size = sum(len(block) for block in blocks)
    penalty = np.zeros((size, size))
    place = 0
    for block in blocks:
        penalty[place : place + len(block), place : place + len(block)] = block
        place += len(block)
    return model, np.hstack(columns), penalty, np.concatenate(values), np.concatenate(most)


def _waves(angular: FloatArray, points: FloatArray) -> ComplexArray:
    """Waves of all frequencies at all points; each of the few different frequencies is computed once."""
    values, index = np.unique(angular, return_inverse=True)
    return np.asarray(np.exp(-1j * np.outer(values, points))[index])


def _penalties(size: int) -> tuple[FloatArray, FloatArray]:
    bend, even = (np.diff(np.eye(size), order, axis=0) for order in (2, 1))
    return np.asarray(bend.T @ bend), np.asarray(even.T @ even)


def _move(ridges: list[_Ridge], coefficients: FloatArray, b: float) -> None:
    place = 0
    for ridge in ridges:
        size = len(ridge.position)
        ridge.position = coefficients[place : place + size]
        ridge.mass = coefficients[place + size : place + 2 * size]
        factor = float(np.exp(coefficients[place + 2 * size] / 2))
        ridge.width = float(np.clip(ridge.width * factor, WIDTHS[0] * b, WIDTHS[1] * b))
        place += 2 * size + 1


def _reweigh(ridges: list[_Ridge], inverse: FloatArray) -> None:
    """Strengths of the penalties by restricted maximum likelihood."""
    place = 0
    for ridge in ridges:
        size = len(ridge.position)
        for k, (matrix, values) in enumerate(zip(_penalties(size), (ridge.position, ridge.mass), strict=True)):
            own = slice(place + k * size, place + (k + 1) * size)
            rank = size - 2 + k
            old = ridge.penalties[k]
            free = max(rank - old * float(np.sum(inverse[own, own] * matrix)), 1e-6)
            ridge.penalties[k] = min(free / max(float(values @ matrix @ values), 1e-12), STRONGEST)
        place += 2 * size + 1


def _read(
    ridges: list[_Ridge], groups: list[NDArray[np.int64]], x: FloatArray, inverse: FloatArray, spread: FloatArray
) -> Ridges:
    zeros = [np.zeros(len(x)) for _ in range(4)]
    found = Ridges(zeros[0], zeros[1], zeros[2], zeros[3], np.ones(len(x), dtype=bool))
    place = 0
    for ridge, nodes in zip(ridges, groups, strict=True):
        size = len(ridge.position)
        own = slice(place, place + size)
        found.positions[nodes] = ridge.at_nodes @ ridge.position
        found.slopes[nodes] = ridge.slope_at_nodes @ ridge.position
        variance, privacy = (
            np.einsum("ki,ij,kj->k", ridge.at_nodes, m[own, own], ridge.at_nodes) for m in (inverse, spread)
        )
        found.privacy_errors[nodes] = np.sqrt(privacy)
        found.sampling_errors[nodes] = np.sqrt(np.maximum(variance - privacy, 0.0))
        place += 2 * size + 1
    return found
