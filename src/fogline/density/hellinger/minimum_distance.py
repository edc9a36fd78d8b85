r"""A family as a release would show it: cut to the box, put on the cells, smoothed by the same kernel.

Where the distribution function :math:`P_\theta` of the family is known, the masses of the public cells go through the
same transform as the counts of the records did,

.. math:: m_\theta(x) = \frac{1}{L}\sum_k e^{-h^2\omega_k^2/2}\, e^{i\omega_k x} \sum_c P_\theta(c)\,e^{-i\omega_k c},

so that bandwidth, cells, bounds and torus bias nothing. Other families are smoothed by their own `convolved`. A release
on leaves is not smoothed: there the masses of the leaves themselves are compared.

The distance that a fit minimises, made fit for noise, and how its minimum answers to small changes.

Let :math:`g` be the release read at one bandwidth and :math:`m_\theta` the family as the release would show it. The
distance is

.. math:: \int_K \Big(\sqrt{g + c} - \sqrt{\kappa m_\theta + c}\Big)^2 dx .

Counts have a variance proportional to the density, the privacy noise has the same everywhere; with c = n times the
spectral density of the noise, :math:`\sqrt{g + c}` has the same variance at every point (Anscombe's transform for
counts with Gaussian noise), and least squares of such roots is as good as any weighting. Without noise c is 0, and
this is the Hellinger distance. c is at least two deviations of the noise, and where noise makes g + c small even so,
the root goes on as its tangent.

How uncertain a stated error is, which was read at an estimate: degrees of freedom for Student's intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import fft as scipy_fft

from fogline._typing import BoolArray, ComplexArray, FloatArray
from fogline.density.private_density import PrivateDensity
from fogline.families import Family

__all__ = [
    "DISTANCE",
    "DistanceTuning",
    "SmoothedFamily",
    "degrees_of",
    "leaf_probabilities",
    "minimise",
    "noise_constant",
    "response",
    "root",
    "tangent",
]


@dataclass(frozen=True)
class DistanceTuning:
    """What is tuned of the distance and its minimiser.

    Attributes
    ----------
    points_per_bandwidth : mapping by dimension
        Points of the quadrature a bandwidth, by dimension: a smoothed density has no finer detail.
    difference : float
        Step of a numerical derivative, as a part of the parameter's range.
    tangent : float
        Below this part of c the root goes on as its tangent.
    explained_range : tuple
        Range of the explained share; the released count, by which it is relative, is noisy itself.
    least_constant : float
        c is at least this many deviations of the noise: else roots of noise are too far from linear for honest
        errors.
    least, most : float
        Degrees of freedom are kept in this range.
    """

    points_per_bandwidth: Mapping[int, float] = field(default_factory=lambda: {1: 3.0, 2: 2.0, 3: 1.5})
    difference: float = 1e-4
    tangent: float = 0.25
    explained_range: tuple[float, float] = (0.05, 3.0)
    least_constant: float = 2.0
    least: float = 4.0
    most: float = 2000000.0


DISTANCE = DistanceTuning()


class SmoothedFamily:
    """A family and a released density side by side, on a public grid.

    Parameters
    ----------
    density : PrivateDensity
        Of grid features.
    family : Family
    bandwidth : array of shape (d,)
        In data units.
    box : array of shape (m, 2)
        Bounds of the parameters.
    """

    def __init__(self, density: PrivateDensity, family: Family, bandwidth: FloatArray, box: FloatArray) -> None:
        self.family = family
        self.box = box
        self.spec: Any = density.spec
        self.reading: Any = density.reading(bandwidth)
        self.count = density.count
        d = self.spec.d
        self.shape: tuple[int, ...] = self.reading.grid_shape(DISTANCE.points_per_bandwidth[d])
        self.axes: tuple[FloatArray, ...] = self.reading.grid_axes(self.shape)
        self.inside = tuple(len(axis) for axis in self.axes)
        self.spacing = np.asarray(self.spec.periods / np.array(self.shape))
        self.volume = float(np.prod(self.spacing))
        self.released: FloatArray = self.reading.fields(self.reading.coefficients[None], self.shape)[0].ravel()
        self.noise_variance = float(self.reading.noise_sd**2)
        torus = float(np.prod(self.spec.periods))
        self.gain: FloatArray = self.reading.gain / self.reading.unit / torus
        single = np.arange(len(self.gain)) == 0
        self.energy = float(np.sum(np.where(single, 1.0, 0.5) * self.gain**2)) * torus
        """Integral of the squared kernel: the sampling variance at x is this times the density over n."""
        # With a distribution function the model goes through the same cells as the records, rounding included.
        self._by_cells = d == 1 and hasattr(family, "cdf")
        # Of the cells' transform to that of the grid; a real transform counts all but frequency 0 twice.
        start = np.exp(1j * (self.reading.angular @ (self.spec.lower - self.spec.origin)))
        self._transfer: ComplexArray = np.where(single, 1.0, 0.5) * self.gain * start
        self.points = np.stack([part.ravel() for part in np.meshgrid(*self.axes, indexing="ij")], axis=1)

    @property
    def steps(self) -> FloatArray:
        """Steps of the numerical derivatives."""
        return DISTANCE.difference * (self.box[:, 1] - self.box[:, 0])

    def model(self, theta: FloatArray) -> FloatArray:
        """Smoothed density of the family at the points of the grid."""
        return np.asarray(self.models(theta[None])[0])

    def models(self, thetas: FloatArray) -> FloatArray:
        """The same for several parameters at once, shape (parameters, points)."""
        if not self._by_cells:
            return np.stack([self._convolved(theta) for theta in thetas])
        masses = np.stack([self._cell_masses(theta) for theta in thetas])
        frequencies, size = self.reading.frequencies[:, 0], self.shape[0]
        spectra = np.zeros((len(thetas), size // 2 + 1), dtype=complex)
        spectra[:, frequencies] = self._transfer * scipy_fft.rfft(masses, self.spec.torus_cells[0])[:, frequencies]
        return np.asarray(scipy_fft.irfft(spectra, size, norm="forward")[:, : self.inside[0]])

    def _convolved(self, theta: FloatArray) -> FloatArray:
        try:
            return self.family.convolved(theta, self.points, self.reading.bandwidth)
        except ValueError:  # correlations within their bounds need not belong to a distribution
            return np.zeros(len(self.released))

    def _cell_masses(self, theta: FloatArray) -> FloatArray:
        """Mass of each cell of the box; where values are rounded, all of it sits on the steps."""
        cell, step, cells = float(self.spec.cell_widths[0]), self.spec.steps[0], self.spec.cells[0]
        width, every = (cell, 1) if step == 0 else (step, round(step / cell))
        masses = np.zeros(cells)
        places = len(masses[::every])
        # A value is counted in the cell that rounding takes it to, so the edges lie between the rounded values.
        edges = self.spec.lower[0] - float(self.spec.shift[0]) * width + width * np.arange(places + 1)
        if getattr(self.family, "has_atoms", False):  # a value on an edge is counted in the cell that begins there
            edges[:-1] = np.nextafter(edges[:-1], -np.inf)
        masses[::every] = np.diff(self.family.cdf(theta, edges))  # type: ignore[attr-defined]
        return masses

    def jacobian(self, theta: FloatArray) -> FloatArray:
        """Derivatives of the smoothed density in the parameters, shape (points, m)."""
        moves = np.diag(self.steps)
        models = self.models(np.concatenate([theta + moves, theta - moves]))
        up, down = models[: len(moves)], models[len(moves) :]
        return np.asarray(((up - down) / (2.0 * self.steps[:, None])).T)

    def masses(self, theta: FloatArray) -> FloatArray:
        """Mass of the family, not smoothed, around each point of the grid."""
        if self._by_cells:
            axis = self.axes[0]
            edges = np.concatenate([axis[:1], 0.5 * (axis[1:] + axis[:-1]), axis[-1:]])
            return np.diff(self.family.cdf(theta, edges))  # type: ignore[attr-defined]
        return self.family.pdf(theta, self.points) * self.volume

    # -- what is linear in the released density -------------------------------------------------------------------

    def _transform(self, weights: FloatArray) -> ComplexArray:
        """Fourier sums of columns of weights on the grid, shape (frequencies, columns)."""
        table = np.zeros((*self.shape, weights.shape[1]))
        table[tuple(slice(0, size) for size in self.inside)] = weights.reshape(*self.inside, -1)
        sums = scipy_fft.fftn(table, axes=tuple(range(self.spec.d)))
        return np.asarray(sums[tuple(self.reading.frequencies.T % np.array(self.shape)[:, None])])

    def noise_covariance(self, weights: FloatArray) -> FloatArray:
        """Covariance that the privacy noise gives to the weighted sums of the released density, exactly."""
        sums = self._transform(weights) * self.reading.noise[:, None]
        sums[0] = sums[0].real  # the zero frequency has no imaginary part
        return np.asarray((sums.T.conj() @ sums).real)

    def influence(self, weights: FloatArray) -> FloatArray:
        """What one record adds to n times the weighted sums, by where it lies: shape (points, columns)."""
        sums = self.gain[:, None] * self._transform(weights)
        table = np.zeros((weights.shape[1], *self.shape), dtype=complex)
        table[(slice(None), *(self.reading.frequencies.T % np.array(self.shape)[:, None]))] = sums.T
        fields = scipy_fft.ifftn(table, axes=tuple(range(1, self.spec.d + 1)), norm="forward").real
        kept = fields[(slice(None), *(slice(0, size) for size in self.inside))]
        return np.asarray(kept.reshape(weights.shape[1], -1).T)


def noise_constant(field: SmoothedFamily, theta: FloatArray) -> float:
    """N times the spectral density of the privacy noise, where the family's derivatives look at it."""
    directions = field.jacobian(theta)
    norms = np.linalg.norm(directions, axis=0)
    directions = directions[:, norms > 0] / norms[norms > 0]
    # The noise is not white: what counts is how much of it points where a parameter would move the density.
    level = field.noise_covariance(directions).trace() / max(directions.shape[1], 1) * field.volume
    # Without any noise the constant would vanish, and roots would have infinite slopes at zero.
    tiny = 1e-6 / (field.volume * len(field.released))
    return float(max(field.count * level, DISTANCE.least_constant * math.sqrt(field.noise_variance), tiny))


def root(values: FloatArray, c: float) -> FloatArray:
    """2 sqrt(values + c), continued by its tangent below the quarter of c."""
    total, least = values + c, DISTANCE.tangent * c
    # A released density dips below zero; the tangent keeps the residual finite and its slope bounded there.
    inner = 2.0 * np.sqrt(np.maximum(total, least))
    return np.where(total < least, inner + (total - least) / math.sqrt(least), inner)


def _slope(values: FloatArray, c: float) -> FloatArray:
    return 1.0 / np.sqrt(np.maximum(values + c, DISTANCE.tangent * c))


def _expected_root(field: SmoothedFamily, model: FloatArray, c: float) -> FloatArray:
    """Mean of the root of a noisy density around `model`, to second order: roots of noise are biased downward."""
    variance = field.noise_variance + np.maximum(model, 0.0) * field.energy / field.count
    return root(model, c) - 0.25 * variance * _slope(model, c) ** 3


def minimise(
    field: SmoothedFamily,
    start: FloatArray,
    kept: BoolArray,
    c: float,
    *,
    beside: FloatArray | None = None,
    tolerance: float = 1e-6,
) -> tuple[FloatArray, float]:
    """Return parameters and share of least distance within the bounds, from a start, and the distance.

    Parameters
    ----------
    beside : array, optional
        Smoothed density of something beside the family; its share comes last in the point.
    """
    from scipy.optimize import least_squares

    m = len(field.box)
    box = np.vstack(
        [field.box, DISTANCE.explained_range]
        if beside is None
        else [field.box, DISTANCE.explained_range, (0.0, DISTANCE.explained_range[1])]
    )
    width = box[:, 1] - box[:, 0]
    # Derivatives are taken on both sides of a point: keep their steps inside.
    low, high = box[:, 0] + 2e-4 * width, box[:, 1] - 2e-4 * width
    low[m + 1 :] = 0.0
    # The model's root is biased as the release's is, so noise does not pull the fit.
    released = root(field.released, c)[kept]

    def shown(point: FloatArray, shape: FloatArray) -> FloatArray:
        return np.asarray(point[m] * shape if beside is None else point[m] * shape + point[m + 1] * beside)

    def residuals(point: FloatArray) -> FloatArray:
        return np.asarray(released - _expected_root(field, shown(point, field.model(point[:m])), c)[kept])

    def derivatives(point: FloatArray) -> FloatArray:
        shape = field.model(point[:m])
        columns = [point[m] * field.jacobian(point[:m]), shape, *([] if beside is None else [beside])]
        return np.asarray(-(_slope(shown(point, shape), c)[:, None] * np.column_stack(columns))[kept])

    inside = np.clip(start, low + 1e-6 * width, high - 1e-6 * width)
    found = least_squares(
        residuals, inside, derivatives, bounds=(low, high), x_scale=width, xtol=tolerance, max_nfev=60
    )
    return np.asarray(found.x), float(found.cost)


def response(field: SmoothedFamily, point: FloatArray, c: float, kept: BoolArray) -> FloatArray:
    r"""How the minimum answers to the released density, shape (points, m + 1).

    Near the solution it moves by :math:`(J^\top J)^{-1} J^\top` times the change of the roots, which is linear in the
    released density.
    """
    slope, jacobian = tangent(field, point, c, kept)
    # A parameter that the kept part does not determine must not make the others infinite.
    inverse = np.linalg.pinv(jacobian.T @ jacobian, rcond=1e-12, hermitian=True)
    return (inverse @ jacobian.T).T * slope[:, None]


def tangent(field: SmoothedFamily, point: FloatArray, c: float, kept: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Derivative of the roots in the density, and in parameters and share; 0 where nothing is kept."""
    shape = field.model(point[:-1])
    slope = np.where(kept, _slope(point[-1] * shape, c), 0.0)
    return slope, slope[:, None] * np.column_stack([point[-1] * field.jacobian(point[:-1]), shape])


def degrees_of(
    variances: Callable[[FloatArray], FloatArray], theta: FloatArray, covariance: FloatArray, box: FloatArray
) -> FloatArray:
    r"""Degrees of freedom of the variances that are stated for an estimate, by Satterthwaite's rule.

    A variance :math:`v_j(\theta)` read at an estimate with the covariance C varies by about :math:`g^\top C g` in its
    logarithm, g the gradient of :math:`\log v_j`; a chi-squared variable of :math:`\nu` degrees of freedom by
    :math:`2/\nu`.

    Parameters
    ----------
    variances : callable
        From parameters to the variance of each.
    theta : array of shape (m,)
    covariance : array of shape (m, m)
        Has these variances on its diagonal.
    box : array of shape (m, 2)
        Bounds of the parameters.

    Examples
    --------
    >>> box = np.array([[-1e3, 1e3], [1e-3, 1e3]])
    >>> normal = lambda theta: np.array([theta[1] ** 2 / 50, theta[1] ** 2 / 100])
    >>> degrees_of(normal, np.array([0.0, 2.0]), np.diag(normal([0.0, 2.0])), box).round()
    array([53., 53.])
    """
    own = np.diag(covariance)
    gradient = np.zeros((len(theta), len(theta)))
    for j, error in enumerate(np.sqrt(own)):
        moved = theta.copy()
        # Half an error to the side where there is room.
        moved[j] += 0.5 * error if theta[j] + 0.5 * error <= box[j, 1] else max(-0.5 * error, box[j, 0] - theta[j])
        if moved[j] != theta[j]:
            change = np.log(np.maximum(variances(moved), 1e-300) / np.maximum(own, 1e-300))
            gradient[j] = change / (moved[j] - theta[j])
    spread = np.einsum("ij,ik,kj->j", gradient, covariance, gradient)
    return np.asarray(2.0 / np.clip(spread, 2.0 / DISTANCE.most, 2.0 / DISTANCE.least))


def leaf_probabilities(family: Family, theta: FloatArray, edges: Sequence[FloatArray]) -> FloatArray:
    """Probabilities of cells under a family that is cut to the box, flat; they sum to one.

    Parameters
    ----------
    family : Family
    theta : array of shape (m,)
    edges : sequence of arrays
        Of the cells, one per axis.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> leaf_probabilities(Normal(), np.array([0.0, 1.0]), [np.array([-1.0, 0.0, 1.0])])
    array([0.5, 0.5])
    """
    if family.dimension == 1 and hasattr(family, "cdf"):
        # A cell holds its lower end: a family with a mass at zero has all of it in the cell that begins there.
        ends = np.append(np.nextafter(edges[0][:-1], -np.inf), edges[0][-1])
        mass = np.diff(family.cdf(theta, ends))
    else:
        centres = [(e[1:] + e[:-1]) / 2 for e in edges]
        points = np.stack([g.ravel() for g in np.meshgrid(*centres, indexing="ij")], axis=1)
        # The mean density of a cell is nearly that of the family with the variance of the cell added.
        widths = np.array([float(e[1] - e[0]) for e in edges]) / math.sqrt(12.0)
        try:
            mass = family.convolved(theta, points if family.dimension > 1 else points[:, 0], widths)
        except ValueError:  # correlations within their bounds need not belong to a distribution
            mass = np.zeros(len(points))
    mass = np.maximum(np.nan_to_num(mass), 0.0)
    total = float(mass.sum())
    return np.asarray(mass / total if total > 0 else np.full(len(mass), 1e-300))
