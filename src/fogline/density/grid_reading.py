r"""A released density at one bandwidth: values, derivatives, grids and the exact noise of each.

With the released sums :math:`\hat F_m` (one of each pair of frequencies) and the spectrum
:math:`g_m = e^{-|h\omega_m|^2/2}` of the Gaussian kernel,

.. math:: \hat f_h(x) = \frac{1}{\hat n \prod_j L_j}\,\mathrm{Re}\sum_m \mu_m g_m \hat F_m e^{i\omega_m\cdot x},
   \qquad \mu_0 = 1,\; \mu_m = 2,

and its privacy noise is a stationary Gaussian field of variance
:math:`\sigma^2\sum_m \mu_m^2 g_m^2/q_m^2` times the square of the factor in front.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline.density.spec import SketchSpec

__all__ = ["Grid", "Reading"]

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

NEGLIGIBLE = 1e-6
"""Frequencies at which the kernel's spectrum is below this are left out of a reading."""


@dataclass(frozen=True)
class Grid:
    """Values of a field on a regular grid that covers the box: ``axes[j]`` are the coordinates of axis j."""

    axes: tuple[FloatArray, ...]
    values: FloatArray

    def points(self, flat: NDArray[np.int64]) -> FloatArray:
        """Coordinates of cells given by flat (C order) index."""
        index = np.unravel_index(flat, tuple(len(a) for a in self.axes))
        return np.stack([a[i] for a, i in zip(self.axes, index, strict=True)], axis=1)


class Reading:
    """The released density at one bandwidth.

    Parameters
    ----------
    spec : SketchSpec
    sums : complex array of shape (F,)
        Released Fourier sums, in records.
    sums_sd : array of shape (F,)
        Noise standard deviation of the real (and of the imaginary) part of each sum, in records.
    count : float
        Released number of records, at least 1.
    bandwidth : array of shape (d,)
        In data units.
    """

    def __init__(
        self, spec: SketchSpec, sums: ComplexArray, sums_sd: FloatArray, count: float, bandwidth: FloatArray
    ) -> None:
        spectrum = spec.spectrum(bandwidth)
        kept = spectrum >= NEGLIGIBLE
        self.spec = spec
        self.bandwidth = bandwidth
        self.frequencies = spec.frequencies[kept]
        self.angular = spec.angular[kept]
        self.kept = kept
        self.sums = sums
        multiplicity = np.where(np.arange(len(spectrum)) == 0, 1.0, 2.0)[kept]
        self.unit = 1 / (count * float(np.prod(spec.periods)))
        self.gain = multiplicity * spectrum[kept] * self.unit
        self.coefficients = self.gain * sums[kept]
        self.noise = self.gain * sums_sd[kept]  # standard deviation of each part of each coefficient

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise of the density, the same at every point."""
        return float(np.sqrt(np.sum(self.noise**2)))

    def phases(self, points: FloatArray) -> ComplexArray:
        r"""Matrix :math:`e^{i\omega_m\cdot x}` of shape (points, frequencies), built axis by axis."""
        shifted = points - self.spec.origin
        result: ComplexArray | None = None
        for j in range(self.spec.d):
            reach = int(np.abs(self.frequencies[:, j]).max())
            powers = np.exp(
                1j * 2 * np.pi / self.spec.periods[j] * np.outer(shifted[:, j], np.arange(-reach, reach + 1))
            )
            factor = powers[:, self.frequencies[:, j] + reach]
            result = factor if result is None else result * factor
        assert result is not None
        return result

    def value(self, points: FloatArray) -> FloatArray:
        """Density at points of shape (p, d)."""
        return np.asarray((self.phases(points) @ self.coefficients).real)

    def jet(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Density (p,), gradient (p, d) and Hessian (p, d, d) at points of shape (p, d)."""
        d = self.spec.d
        pairs = [(i, j) for i in range(d) for j in range(i, d)]
        w = self.angular
        columns = [np.ones(len(w), dtype=complex), *(1j * w[:, i] for i in range(d))]
        columns += [-w[:, i] * w[:, j] + 0j for i, j in pairs]
        out = (self.phases(points) @ (self.coefficients[:, None] * np.stack(columns, axis=1))).real
        hessian = np.empty((len(points), d, d))
        for column, (i, j) in enumerate(pairs):
            hessian[:, i, j] = hessian[:, j, i] = out[:, 1 + d + column]
        return out[:, 0], out[:, 1 : 1 + d], hessian

    # -- grids ------------------------------------------------------------------------------------------

    def grid_shape(self, per_bandwidth: float) -> tuple[int, ...]:
        """Points of the torus an axis for a grid with about ``per_bandwidth`` points a bandwidth."""
        wanted = np.maximum(
            np.ceil(self.spec.periods / self.bandwidth * per_bandwidth),
            2 * np.abs(self.frequencies).max(axis=0) + 1,
        )
        from scipy.fft import next_fast_len

        return tuple(int(next_fast_len(int(n))) for n in wanted)

    def grid_axes(self, shape: tuple[int, ...]) -> tuple[FloatArray, ...]:
        """Coordinates of the grid points within the box, starting at the lower bound."""
        axes = []
        for j, size in enumerate(shape):
            spacing = self.spec.periods[j] / size
            inside = int(np.floor(self.spec.widths[j] / spacing * (1 + 1e-12))) + 1
            axes.append(self.spec.lower[j] + spacing * np.arange(inside))
        return tuple(axes)

    def on_grid(self, per_bandwidth: float = 3.0) -> Grid:
        """Density on a regular grid over the box, by one FFT."""
        shape = self.grid_shape(per_bandwidth)
        return Grid(self.grid_axes(shape), self.fields(self.coefficients[None], shape)[0])

    def fields(self, coefficients: ComplexArray, shape: tuple[int, ...]) -> FloatArray:
        """Fields of several coefficient vectors of shape (s, kept) on the box part of a torus grid."""
        inside = tuple(slice(0, len(a)) for a in self.grid_axes(shape))
        return np.ascontiguousarray(self.torus_fields(coefficients, shape)[(slice(None), *inside)])

    def torus_fields(self, coefficients: ComplexArray, shape: tuple[int, ...]) -> FloatArray:
        """Fields of several coefficient vectors on a grid of the whole torus that starts at the lower bound."""
        from scipy.fft import ifftn

        d = self.spec.d
        start = np.exp(1j * (self.angular @ (self.spec.lower - self.spec.origin)))
        table = np.zeros((len(coefficients), *shape), dtype=complex)
        index = tuple(self.frequencies.T % np.array(shape)[:, None])
        table[(slice(None), *index)] = coefficients * start
        return np.asarray(ifftn(table, axes=tuple(range(1, d + 1)), norm="forward").real)
