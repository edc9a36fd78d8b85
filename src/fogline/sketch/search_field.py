r"""The density of a release as a sum of waves, evaluated fast at many points at once.

With coefficients :math:`c_m = a_m + i b_m` at angular frequencies :math:`\omega_m` and
:math:`\theta_m = \omega_m\cdot(x - x_0)`, :math:`x_0` the origin of the phases,

.. math:: f(x) = \sum_m a_m\cos\theta_m - b_m\sin\theta_m,

and so for its derivatives: two matrix products, of the cosines and of the sines. Single precision costs a tenth of
double precision and is off by :math:`10^{-6}` of a coefficient's size, far below any noise. Lengths are in bandwidths
and heights in kernels, so that no unit of the data can leave its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.random_reading import RandomReading
from fogline.sketch.search_atoms import ClearedReading

__all__ = ["Field", "scan"]

FloatArray = NDArray[np.float64]

BLOCK = 2**20
"""At most so many phases are held at once."""


class Field:
    """A reading in single precision; has what :func:`fogline.sketch.tracks.polish` asks of a reading."""

    def __init__(self, reading: RandomReading) -> None:
        self.spec = reading.spec
        self.bandwidth = reading.bandwidth
        self.noise_sd = reading.noise_sd
        self.unit = reading.unit
        self.atoms = reading.atoms if isinstance(reading, ClearedReading) else None
        w, c = reading.angular * reading.bandwidth, reading.relative
        self._upper = np.triu_indices(self.spec.d)
        second = -w[:, self._upper[0]] * w[:, self._upper[1]]
        of_cosine = [c.real[:, None], -w * c.imag[:, None], second * c.real[:, None]]
        of_sine = [-c.imag[:, None], -w * c.real[:, None], -second * c.imag[:, None]]
        self._angular = w.T.astype(np.float32)
        self._cosine, self._sine = (np.concatenate(t, axis=1).astype(np.float32) for t in (of_cosine, of_sine))

    def jet(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Density (p,), gradient (p, d) and Hessian (p, d, d) at points of shape (p, d)."""
        d, h = self.spec.d, self.bandwidth
        out = self._waves(points, self._cosine, self._sine)
        value, gradient = out[:, 0], out[:, 1 : 1 + d]
        hessian = np.empty((len(points), d, d))
        hessian[:, self._upper[0], self._upper[1]] = hessian[:, self._upper[1], self._upper[0]] = out[:, 1 + d :]
        if self.atoms is not None:
            known = self.atoms.smoothed(points, h)
            value, gradient, hessian = value + known[0], gradient + known[1], hessian + known[2]
        return self.unit * value, self.unit * gradient / h, self.unit * hessian / (h[:, None] * h)

    def value(self, points: FloatArray) -> FloatArray:
        """Density at points of shape (p, d)."""
        return self.unit * self.relative(points)

    def relative(self, points: FloatArray) -> FloatArray:
        """Density over the height of the kernel, at points of shape (p, d)."""
        value = self._waves(points, self._cosine[:, :1], self._sine[:, :1])[:, 0]
        return value if self.atoms is None else value + self.atoms.smoothed(points, self.bandwidth)[0]

    def _waves(self, points: FloatArray, cosine: Any, sine: Any) -> FloatArray:
        return _sums((points - self.spec.origin) / self.bandwidth, self._angular, cosine, sine)


def scan(readings: Sequence[RandomReading], points: FloatArray) -> FloatArray:
    """Kernel averages of several readings of one release at the same points, shape (readings, p).

    Of cleared readings without their atoms: peaks that those miss stand out there. The phases, which are what costs,
    are made once for all readings.
    """
    spec, h = readings[0].spec, readings[0].bandwidth
    coefficients = np.zeros((spec.n_features, len(readings)), dtype=np.complex128)
    for column, reading in zip(coefficients.T, readings, strict=True):
        column[reading.kept] = reading.relative
    cosine, sine = coefficients.real.astype(np.float32), -coefficients.imag.astype(np.float32)
    return _sums((points - spec.origin) / h, (spec.angular * h).T.astype(np.float32), cosine, sine).T


def _sums(offset: FloatArray, angular: Any, cosine: Any, sine: Any) -> FloatArray:
    """Cosines and sines of the phases times their coefficients, shape (p, columns)."""
    small = offset.astype(np.float32)
    size = max(1, BLOCK // max(1, angular.shape[1]))
    blocks = [np.zeros((0, cosine.shape[1]))]
    for start in range(0, len(small), size):
        phase = small[start : start + size] @ angular
        blocks.append((np.cos(phase) @ cosine + np.sin(phase) @ sine).astype(np.float64))
    return np.concatenate(blocks)
