r"""A density released by random features, at one bandwidth: values, derivatives and the exact noise of each.

With the released sums :math:`\hat F_m` of :math:`e^{-i\omega_m\cdot x}` over the records and weights
:math:`r_m`, :math:`\sum_m r_m = 1`, that turn the drawn frequencies into the kernel's spectrum,

.. math:: \hat f_h(x) = \frac{K_h(0)}{\hat n}\,\mathrm{Re}\sum_m r_m \hat F_m e^{i\omega_m\cdot x},
   \qquad K_h(0) = \prod_j \frac{1}{\sqrt{2\pi}\,h_j}.

Its privacy noise is a stationary Gaussian field of standard deviation
:math:`\sigma \sqrt{\sum_m r_m^2 / a_m}\,K_h(0)/\hat n`, about the same for any number of frequencies. Drawing them
leaves an error of its own, which only more frequencies make smaller: :attr:`RandomReading.feature_sd`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fogline.density.random_spec import RandomSpec

__all__ = ["RandomReading"]

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

NEGLIGIBLE = 1e-7
"""Frequencies that together carry less of a reading than this are left out of it."""

BLOCK = 2**21
"""Phases computed at a time."""


class RandomReading:
    """The released density at one bandwidth.

    Parameters
    ----------
    spec : RandomSpec
    sums : complex array of shape (F + 1,)
        Released sums in records: the count, then one for each frequency.
    sums_sd : array of shape (F + 1,)
        Noise standard deviation of the real (and of the imaginary) part of each sum, in records.
    count : float
        Released number of records, at least 1.
    bandwidth : array of shape (d,)
        In data units.

    Attributes
    ----------
    unit : float
        Height of the kernel: the density, were all records at one point. Densities of many axes are tiny or huge
        numbers; divided by it they are not.
    angular : array of shape (kept, d)
    weights : array of shape (kept,)
        Weight of each kept frequency; their sum is one, up to what was left out.
    gain : array of shape (kept,)
        What a released sum is multiplied by: the weight over the number of records.
    relative, relative_noise : arrays of shape (kept,)
        Coefficients and the noise of each of their parts, in multiples of ``unit``.
    """

    def __init__(
        self, spec: RandomSpec, sums: ComplexArray, sums_sd: FloatArray, count: float, bandwidth: FloatArray
    ) -> None:
        weights = spec.importance(bandwidth)
        order = np.argsort(weights, kind="stable")
        kept = np.ones(len(weights), dtype=bool)
        kept[order[np.cumsum(weights[order]) < NEGLIGIBLE]] = False
        self.spec = spec
        self.bandwidth = bandwidth
        self.kept = kept
        self.angular = spec.angular[kept]
        self.unit = math.exp(-float(np.log(np.sqrt(2 * np.pi) * bandwidth).sum()))
        self.weights = weights[kept]
        self.gain = self.weights / count
        self.relative = self.gain * sums[1:][kept]
        self.relative_noise = self.gain * sums_sd[1:][kept]
        self._count = count

    @property
    def coefficients(self) -> ComplexArray:
        """Coefficient of each kept frequency, in density units."""
        return self.unit * self.relative

    @property
    def noise(self) -> FloatArray:
        """Standard deviation of each part of each coefficient, in density units."""
        return self.unit * self.relative_noise

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise of the density, the same at every point."""
        return self.unit * float(np.sqrt(np.sum(self.relative_noise**2)))

    @property
    def feature_sd(self) -> float:
        r"""Standard deviation, about, of the error that comes from drawing frequencies, at a typical point.

        From the released sums less their noise: :math:`\tfrac12\sum_m r_m^2 |\varphi_m|^2`, :math:`\varphi` the
        characteristic function of the records.
        """
        energy = np.abs(self.relative) ** 2 - 2 * self.relative_noise**2
        return self.unit * math.sqrt(max(float(energy.sum()), 0.0) / 2)

    @property
    def typical_height(self) -> float:
        r"""Mean density at the records themselves, each without its own kernel: at most that of the highest peak.

        It is :math:`K_h(0)\,(\sum_m r_m|\varphi_m|^2 - 1/n)`, from the released sums less their noise; may come out
        negative where there is only noise.
        """
        energy = (np.abs(self.relative) ** 2 - 2 * self.relative_noise**2) / self.weights
        return self.unit * (float(energy.sum()) - 1 / self._count)

    def phases(self, points: FloatArray) -> ComplexArray:
        r"""Matrix :math:`e^{i\omega_m\cdot x}` of shape (points, frequencies)."""
        angles = (points - self.spec.origin) @ self.angular.T
        result = np.empty(angles.shape, dtype=np.complex128)
        np.cos(angles, out=result.real)
        np.sin(angles, out=result.imag)
        return result

    def _waves(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Real and imaginary part of each frequency's term at each point; the density is the sum of the real parts."""
        angles = (points - self.spec.origin) @ self.angular.T
        cosine, sine = np.cos(angles), np.sin(angles)
        real, imaginary = self.relative.real, self.relative.imag
        return cosine * real - sine * imaginary, sine * real + cosine * imaginary

    def _split(self, points: FloatArray) -> list[FloatArray]:
        size = max(1, BLOCK // max(1, len(self.angular)))
        return [points[i : i + size] for i in range(0, max(1, len(points)), size)]

    def value(self, points: FloatArray) -> FloatArray:
        """Density at points of shape (p, d)."""
        return self.unit * np.concatenate([self._waves(p)[0].sum(axis=1) for p in self._split(points)])

    def slope(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Density (p,) and gradient (p, d): what a mean-shift step needs, without the cost of the Hessian."""
        waves = [self._waves(p) for p in self._split(points)]
        value = np.concatenate([even.sum(axis=1) for even, _ in waves])
        gradient = np.concatenate([-(odd @ self.angular) for _, odd in waves])
        return self.unit * value, self.unit * gradient

    def jet(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Density (p,), gradient (p, d) and Hessian (p, d, d) at points of shape (p, d)."""
        d, w = self.spec.d, self.angular
        first, second = np.triu_indices(d)
        products = w[:, first] * w[:, second]
        parts = []
        for block in self._split(points):
            even, odd = self._waves(block)
            parts.append((even.sum(axis=1), -(odd @ w), -(even @ products)))
        value, gradient, upper = (self.unit * np.concatenate(part) for part in zip(*parts, strict=True))
        hessian = np.empty((len(value), d, d))
        hessian[:, first, second] = hessian[:, second, first] = upper
        return value, gradient, hessian

    def on_grid(self, per_bandwidth: float = 3.0) -> None:
        """Refuse: the frequencies of random features do not lie on a grid."""
        raise ValueError(
            f"random features in {self.spec.d} axes have no grid of {per_bandwidth:g} points a bandwidth: "
            "use pdf() at points of your own, modes() or sample()"
        )
