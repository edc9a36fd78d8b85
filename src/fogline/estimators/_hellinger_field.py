r"""A family as a release would show it: cut to the box, put on the cells, smoothed by the same kernel.

Where the distribution function :math:`P_\theta` of the family is known, the masses of the public cells go through the
same transform as the counts of the records did,

.. math:: m_\theta(x) = \frac{1}{L}\sum_k e^{-h^2\omega_k^2/2}\, e^{i\omega_k x} \sum_c P_\theta(c)\,e^{-i\omega_k c},

so that bandwidth, cells, bounds and torus bias nothing. Other families are smoothed by their own `convolved`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft as scipy_fft

from fogline.families import Family
from fogline.sketch.private_density import PrivateDensity

__all__ = ["SmoothedFamily"]

FloatArray = NDArray[np.float64]

POINTS_PER_BANDWIDTH = {1: 3.0, 2: 2.0, 3: 1.5}
"""Points of the quadrature a bandwidth, by dimension: a smoothed density has no finer detail."""

DIFFERENCE = 1e-4
"""Step of a numerical derivative, as a part of the parameter's range."""


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
        self.shape: tuple[int, ...] = self.reading.grid_shape(POINTS_PER_BANDWIDTH[d])
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
        self._by_cells = d == 1 and hasattr(family, "cdf")
        # Of the cells' transform to that of the grid; a real transform counts all but frequency 0 twice.
        start = np.exp(1j * (self.reading.angular @ (self.spec.lower - self.spec.origin)))
        self._transfer: NDArray[np.complex128] = np.where(single, 1.0, 0.5) * self.gain * start
        self.points = np.stack([part.ravel() for part in np.meshgrid(*self.axes, indexing="ij")], axis=1)

    @property
    def steps(self) -> FloatArray:
        """Steps of the numerical derivatives."""
        return DIFFERENCE * (self.box[:, 1] - self.box[:, 0])

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
        edges = self.spec.lower[0] - float(self.spec.shift[0]) * width + width * np.arange(places + 1)
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

    def _transform(self, weights: FloatArray) -> NDArray[np.complex128]:
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
