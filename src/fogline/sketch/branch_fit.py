r"""Branches located all at once: ridges fitted to the released Fourier sums by least squares.

Local peaks of a faint density must be smoothed over a tenth of the range of x, which flattens curves, loses half of the
kernel at a wall and lets a ridge that ends abruptly fade away slowly. So the branches are fitted together, as ridges

.. math:: f(x, y) = \sum_j p_j(x)\, \varphi_{\tau_j}(y - m_j(x)), \qquad a_j \le x \le b_j,

with splines for the position :math:`m_j` and the mass :math:`p_j` and one width :math:`\tau_j` a branch. The sums of
such a density are known, and so is the noise of the released ones: the fit is weighted least squares (Gauss-Newton),
with penalties on the bends of :math:`m_j` and the steps of :math:`p_j`. How strong they are follows from the data
by restricted maximum likelihood [1]_, which here has no free constant since the variance of the noise is known.
All is in units of the box: x and y run from 0 to 1, and the whole mass is 1.
A skewed ridge is located at its centre rather than at its top, which a faint density could not tell apart.

References
----------
.. [1] S. Wood, M. Fasiolo, "A generalized Fellner-Schall method for smoothing parameter optimization", Biometrics 73,
   2017.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity

__all__ = ["KNOTS", "Ridge", "Solution", "Sums", "parted", "solve"]

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

KNOTS = 0.6
"""Distance of the splines' knots, in bandwidths of x."""

QUADRATURE = 4
"""Points of the integral over x a knot."""

STEPS = 10
SETTLED = 0.05
"""Gauss-Newton steps, and the largest last one, in standard errors of what it moves."""

LEAST_SIGNAL = 0.7
"""Sums whose largest possible value is below so many deviations of their noise are left out."""

PENALTIES = (0.16, 0.16)
STRONGEST = 1e8
"""Penalties of positions and masses at first, and the strongest, which leaves lines straight and masses even."""

CHARGE = 4.5
"""Where two fits are compared, a degree of freedom of a position must lower the misfit by so much."""

FLOOR = 1e-6
"""Relative to the information, what keeps the equations solvable where a branch has no mass."""

WIDTHS = (0.05, 2.0)
TYPICAL = 0.6
KNOWN = 0.25
"""Least, largest and typical width of a ridge, in bandwidths of y, and how much the logarithm of its square is held to
that: a ridge that is free to be thin winds its way through the noise."""

FARTHEST = 0.025
"""A step moves a ridge at most so far, and half its width."""


@dataclass(frozen=True)
class Sums:
    """The released sums that say something, in units of their noise, privacy and sampling together.

    Attributes
    ----------
    observed : complex array of shape (F,)
    scale : array of shape (F,)
        What the sum of a density of mass one is multiplied by.
    privacy : array of shape (F,)
        Share of the privacy noise in the variance.
    angular : array of shape (F, 2)
    origin : array of shape (2,)
    """

    observed: ComplexArray
    scale: FloatArray
    privacy: FloatArray
    angular: FloatArray
    origin: FloatArray

    @classmethod
    def of(cls, density: PrivateDensity) -> Sums:
        """Sums of a release; both parts of one have the variance of half a record each from sampling."""
        noise = density.noise_scale**2 / density.weights
        total = noise + density.count / 2
        kept = density.count / np.sqrt(total) >= LEAST_SIGNAL
        root = np.sqrt(total[kept])
        return cls(
            density.coefficients[kept] / root,
            density.count / root,
            noise[kept] / total[kept],
            density.spec.angular[kept] * density.spec.widths,
            np.asarray((density.spec.origin - density.spec.lower) / density.spec.widths),
        )

    def waves(self, x: FloatArray, y: FloatArray, width: float) -> ComplexArray:
        """Sums of unit masses at points (x, y), spread in y by `width`; shape (F, points)."""
        shape = (self.scale * np.exp(-0.5 * (self.angular[:, 1] * width) ** 2))[:, None]
        return np.asarray(shape * self.axis_waves(0, x) * self.axis_waves(1, y))

    def axis_waves(self, axis: int, places: FloatArray) -> ComplexArray:
        """Waves of one axis at places on it; each of its few different frequencies is computed once."""
        frequencies, index = self._different[axis]
        return np.asarray(np.exp(-1j * np.outer(frequencies, places - self.origin[axis]))[index])

    @cached_property
    def _different(self) -> list[tuple[FloatArray, NDArray[np.intp]]]:
        return [np.unique(column, return_inverse=True) for column in self.angular.T]


@dataclass(frozen=True)
class Ridge:
    """One branch from `low` to `high`: spline coefficients of its position and mass, its width, and its penalties.

    A straight one has the strongest penalty on its bends, whatever the data say.
    """

    low: float
    high: float
    knots: FloatArray
    position: FloatArray
    mass: FloatArray
    width: float
    penalties: tuple[float, float]
    straight: bool = False

    @classmethod
    def through(
        cls, x: FloatArray, y: FloatArray, mass: FloatArray, ends: tuple[float, float], knot: float, width: float
    ) -> Ridge:
        """A ridge between two ends, at least a knot apart, near points (x, y) with the given masses."""
        low, high = ends
        pieces = max(1, round((high - low) / knot))
        knots = np.linspace(low, high, pieces + 1)
        step = (high - low) / pieces
        knots = np.concatenate([low - step * np.arange(3.0, 0.0, -1.0), knots, high + step * np.arange(1.0, 4.0)])
        size = len(knots) - 4
        basis = np.asarray(BSpline(knots, np.eye(size), 3)(x))
        even = 1e-6 * np.diff(np.eye(size), 2, axis=0)
        start = [
            np.linalg.lstsq(np.vstack([basis, even]), np.append(v, np.zeros(size - 2)), rcond=None)[0]
            for v in (y, mass)
        ]
        return cls(low, high, knots, start[0], start[1], width, PENALTIES)

    def straightened(self, width: float) -> Ridge:
        """A straight ridge of another width between the same ends."""
        x = self.points()
        masses = self.masses(x)
        line = np.polynomial.Polynomial.fit(x, self.positions(x), 1, w=np.sqrt(np.maximum(masses, 0.0) + FLOOR))
        knot = float(self.knots[1] - self.knots[0])
        ridge = Ridge.through(x, line(x), masses, (self.low, self.high), knot, width)
        return replace(ridge, penalties=(STRONGEST, self.penalties[1]), straight=True)

    def between(self, low: float, high: float, knot: float) -> Ridge:
        """The same ridge with other ends."""
        x = np.linspace(low, high, max(8, QUADRATURE * round((high - low) / knot)))
        ridge = Ridge.through(x, self.positions(x), self.masses(x), (low, high), knot, self.width)
        return replace(ridge, penalties=self.penalties, straight=self.straight)

    def basis(self, x: FloatArray, order: int = 0) -> FloatArray:
        """Values or derivatives of the splines at x, shape (points, size)."""
        spline = BSpline(self.knots, np.eye(len(self.position)), 3)
        return np.asarray((spline if order == 0 else spline.derivative(order))(x))

    def positions(self, x: FloatArray) -> FloatArray:
        """Where the ridge is; beyond its ends it goes straight on."""
        within = np.clip(x, self.low, self.high)
        slope = self.basis(within, 1) @ self.position
        return np.asarray(self.basis(within) @ self.position + (x - within) * slope)

    def masses(self, x: FloatArray) -> FloatArray:
        """Mass of the ridge a unit of x; beyond its ends as at them."""
        return np.asarray(self.basis(np.clip(x, self.low, self.high)) @ self.mass)

    def points(self) -> FloatArray:
        """Points of the integral over x."""
        size = (len(self.knots) - 7) * QUADRATURE
        return np.asarray(self.low + (self.high - self.low) * (np.arange(size) + 0.5) / size)


@dataclass(frozen=True)
class Solution:
    """Ridges as fitted, what is left of the sums, and covariances of all coefficients: whole, and of privacy alone."""

    ridges: list[Ridge]
    residual: ComplexArray
    covariance: FloatArray
    privacy: FloatArray

    @property
    def misfit(self) -> float:
        """Sum of squares: minus twice the log likelihood."""
        return float(np.sum(np.abs(self.residual) ** 2))

    def blocks(self) -> list[slice]:
        """Where the coefficients of the positions of each ridge are; those of its masses follow them."""
        starts = np.cumsum([0, *(2 * len(r.position) + 1 for r in self.ridges)])
        return [slice(int(a), int(a) + len(r.position)) for a, r in zip(starts, self.ridges, strict=False)]

    def freedom(self, k: int) -> float:
        """Degrees of freedom that the position of a ridge uses: 2 for a straight one."""
        own, size = self.blocks()[k], len(self.ridges[k].position)
        held = self.ridges[k].penalties[0] * float(np.sum(self.covariance[own, own] * _penalties(size)[0]))
        return size - held

    @property
    def score(self) -> float:
        """Misfit, and a charge for each degree of freedom: lower is better."""
        return self.misfit + CHARGE * sum(self.freedom(k) for k in range(len(self.ridges)))

    def clearness(self, k: int) -> float:
        """Mass of a ridge over its standard error."""
        ridge, stop = self.ridges[k], self.blocks()[k].stop
        own = slice(stop, stop + len(ridge.mass))
        share = ridge.basis(ridge.points()).mean(axis=0)
        return float(share @ ridge.mass / np.sqrt(share @ self.covariance[own, own] @ share))


def solve(sums: Sums, ridges: list[Ridge], bandwidth: float) -> Solution:
    """Fit all ridges together by Gauss-Newton steps; `bandwidth`, of y, limits their widths."""
    across = [sums.axis_waves(0, r.points()) for r in ridges]
    bases = [r.basis(r.points()) for r in ridges]
    for _ in range(STEPS):
        model, jacobian, penalty, coefficients, most = _linearised(sums, ridges, across, bases, TYPICAL * bandwidth)
        residual = sums.observed - model
        design, target = parted(jacobian), parted(residual)
        information = design.T @ design
        floor = np.maximum(np.diag(information), FLOOR * np.median(np.diag(information)) + FLOOR)
        inverse = np.asarray(np.linalg.inv(information + penalty + FLOOR * np.diag(floor)), dtype=np.float64)
        step = inverse @ (design.T @ target - penalty @ coefficients)
        ridges = _moved(ridges, coefficients + np.clip(step, -most, most), bandwidth, inverse)
        if np.max(np.abs(step) / np.sqrt(np.diag(inverse))) < SETTLED:
            break
    share = np.tile(sums.privacy, 2)
    privacy = np.asarray(inverse @ (design.T * share) @ design @ inverse, dtype=np.float64)
    return Solution(
        ridges, sums.observed - _linearised(sums, ridges, across, bases, TYPICAL * bandwidth)[0], inverse, privacy
    )


def _linearised(
    sums: Sums, ridges: list[Ridge], across: list[ComplexArray], bases: list[FloatArray], typical: float
) -> tuple[ComplexArray, ComplexArray, FloatArray, FloatArray, FloatArray]:
    """Sums of the ridges, derivatives by all coefficients, the penalty, the coefficients, and the largest steps."""
    angular = sums.angular[:, 1]
    model = np.zeros(len(angular), dtype=complex)
    columns, blocks, values, most = [], [], [], []
    for ridge, phase, basis in zip(ridges, across, bases, strict=True):
        mass = basis @ ridge.mass
        waves = phase * sums.axis_waves(1, basis @ ridge.position)
        length = (ridge.high - ridge.low) / len(basis)
        waves *= (length * sums.scale * np.exp(-0.5 * (angular * ridge.width) ** 2))[:, None]
        own = waves @ mass
        model += own
        columns += [-1j * angular[:, None] * ((waves * mass) @ basis), waves @ basis]
        columns.append((-0.5 * angular**2 * own * ridge.width**2)[:, None])
        size = len(ridge.position)
        bend, even = _penalties(size)
        blocks += [ridge.penalties[0] * bend, ridge.penalties[1] * even, np.full((1, 1), KNOWN)]
        values += [ridge.position, ridge.mass, np.full(1, 2 * np.log(ridge.width / typical))]
        most += [np.full(size, 0.5 * ridge.width + FARTHEST), np.full(size, np.abs(ridge.mass).max()), np.full(1, 0.3)]
    size = sum(len(block) for block in blocks)
    penalty = np.zeros((size, size))
    place = 0
    for block in blocks:
        penalty[place : place + len(block), place : place + len(block)] = block
        place += len(block)
    return model, np.hstack(columns), penalty, np.concatenate(values), np.concatenate(most)


def parted(values: ComplexArray) -> FloatArray:
    """Real parts above imaginary parts: the same lengths and products in real numbers."""
    return np.concatenate([values.real, values.imag])


def _penalties(size: int) -> tuple[FloatArray, FloatArray]:
    bend, even = (np.diff(np.eye(size), order, axis=0) for order in (2, 1))
    return np.asarray(bend.T @ bend), np.asarray(even.T @ even)


def _moved(ridges: list[Ridge], coefficients: FloatArray, b: float, inverse: FloatArray) -> list[Ridge]:
    """Ridges with other coefficients, and with penalties by restricted maximum likelihood."""
    place, moved = 0, []
    for ridge in ridges:
        size = len(ridge.position)
        parts = [coefficients[place + k * size : place + (k + 1) * size] for k in (0, 1)]
        width = TYPICAL * b * float(np.exp(coefficients[place + 2 * size] / 2))
        penalties = []
        for k, (matrix, values) in enumerate(zip(_penalties(size), parts, strict=True)):
            own = slice(place + k * size, place + (k + 1) * size)
            free = max(size - 2 + k - ridge.penalties[k] * float(np.sum(inverse[own, own] * matrix)), 1e-6)
            strength = min(free / max(float(values @ matrix @ values), 1e-12), STRONGEST)
            penalties.append(STRONGEST if k == 0 and ridge.straight else strength)
        moved.append(
            replace(
                ridge,
                position=parts[0],
                mass=parts[1],
                width=float(np.clip(width, WIDTHS[0] * b, WIDTHS[1] * b)),
                penalties=(penalties[0], penalties[1]),
            )
        )
        place += 2 * size + 1
    return moved
