r"""Side lobes taken away: the known part of a density goes through the exact kernel, only the rest through features.

Random features make the Gaussian kernel on average only: a peak comes with ripples all over the box, of
:math:`1/\sqrt{2F}` its size, which move other peaks and hide small ones. They are public and linear in the density.
So let a mixture of Gaussian *atoms* :math:`g = \sum_j p_j N(\mu_j, S_j)` be near the density. Its characteristic
function :math:`\varphi_g` and its smoothed version :math:`g * k_h` are known in closed form, and

.. math:: \tilde f_h(x) = (g * k_h)(x) + K_h(0)\,\mathrm{Re}\sum_m r_m\bigl(\hat F_m/\hat n - \varphi_g(\omega_m)\bigr)
   e^{i\omega_m\cdot x}

has the same mean over the draw of the frequencies as the plain reading, whatever the atoms, and the same privacy
noise; but only what the atoms miss still ripples. The atoms are a control variate, no model of the data: a peak that
the release does not have cannot come from them.

They are fitted to the released sums by damped least squares, from peaks found in the plain reading.

The density of a release as a sum of waves, evaluated fast at many points at once.

With coefficients :math:`c_m = a_m + i b_m` at angular frequencies :math:`\omega_m` and
:math:`\theta_m = \omega_m\cdot(x - x_0)`, :math:`x_0` the origin of the phases,

.. math:: f(x) = \sum_m a_m\cos\theta_m - b_m\sin\theta_m,

and so for its derivatives: two matrix products, of the cosines and of the sines. Single precision costs a tenth of
double precision and is off by :math:`10^{-6}` of a coefficient's size, far below any noise. Lengths are in bandwidths
and heights in kernels, so that no unit of the data can leave its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fogline._typing import ComplexArray, FloatArray
from fogline.density.feature_reading import RandomReading

__all__ = ["SIDE_LOBES", "ClearedReading", "Field", "SideLobeModel", "SideLobeTuning", "fit_side_lobes", "scan"]


@dataclass(frozen=True)
class SideLobeTuning:
    """What is tuned of the mixture that side lobes are removed by.

    Attributes
    ----------
    most_parameters : int
        With more parameters than this, atoms have axes along the columns only.
    rounds : int
        Most steps of the fit.
    thinnest : float
        Components are at least this wide, in units of the smallest planned bandwidth.
    widest : float
        Components are at most this wide, in units of the largest planned bandwidth.
    stray : float
        Components stay within this many bandwidths of the peak that they come from.
    lightest : float
        Components have at least this weight.
    """

    most_parameters: int = 240
    rounds: int = 30
    thinnest: float = 0.05
    widest: float = 1.5
    stray: float = 1.0
    lightest: float = 1e-4


SIDE_LOBES = SideLobeTuning()


@dataclass(frozen=True)
class SideLobeModel:
    """A Gaussian mixture: weights (k,), centres (k, d), covariances (k, d, d); weights need not sum to one."""

    weights: FloatArray
    centres: FloatArray
    covariances: FloatArray

    def spectrum(self, angular: FloatArray, origin: FloatArray) -> ComplexArray:
        """Characteristic function at frequencies of shape (F, d), for phases that are zero at the origin."""
        spread = np.einsum("fi,kij,fj->kf", angular, self.covariances, angular, optimize=True)
        turned = (self.centres - origin) @ angular.T
        return np.asarray(self.weights @ np.exp(-0.5 * spread - 1j * turned))

    def smoothed(self, points: FloatArray, bandwidth: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Kernel average with its gradient and Hessian, lengths in bandwidths; shapes (p,), (p, d), (p, d, d)."""
        d = len(bandwidth)
        value, gradient, hessian = np.zeros(len(points)), np.zeros((len(points), d)), np.zeros((len(points), d, d))
        for weight, centre, covariance in zip(self.weights, self.centres, self.covariances, strict=True):
            inverse = np.linalg.inv(covariance / np.outer(bandwidth, bandwidth) + np.eye(d))
            offset = (points - centre) / bandwidth
            pull = offset @ inverse
            part = weight * np.sqrt(np.linalg.det(inverse)) * np.exp(-0.5 * np.sum(pull * offset, axis=1))
            value += part
            gradient -= part[:, None] * pull
            hessian += part[:, None, None] * (pull[:, :, None] * pull[:, None] - inverse)
        return value, gradient, hessian


class ClearedReading(RandomReading):
    """A reading whose coefficients are what the atoms miss; the atoms come back through the exact kernel."""

    def __init__(self, reading: RandomReading, atoms: SideLobeModel) -> None:
        self.__dict__.update(reading.__dict__)  # the same reading, but for what follows
        self.atoms = atoms
        self.relative = reading.relative - reading.weights * atoms.spectrum(reading.angular, reading.spec.origin)

    def value(self, points: FloatArray) -> FloatArray:
        """Density at points of shape (p, d)."""
        return super().value(points) + self.unit * self.atoms.smoothed(points, self.bandwidth)[0]

    def jet(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Density (p,), gradient (p, d) and Hessian (p, d, d) at points of shape (p, d)."""
        h = self.bandwidth
        value, gradient, hessian = super().jet(points)
        known = self.atoms.smoothed(points, h)
        return (
            value + self.unit * known[0],
            gradient + self.unit * known[1] / h,
            hessian + self.unit * known[2] / (h[:, None] * h),
        )


def fit_side_lobes(
    reading: RandomReading, sums: ComplexArray, peaks: FloatArray, bandwidths: FloatArray
) -> SideLobeModel:
    """Fit atoms to released sums, one from each peak.

    Parameters
    ----------
    reading : RandomReading
        Any reading of the release; only its specification is used.
    sums : complex array of shape (F,)
        Released sums over the count.
    peaks : array of shape (k, d)
    bandwidths : array of shape (k, d)
        Bandwidth at which each peak was found: atoms begin as wide.
    """
    spec = reading.spec
    unit, d, k = spec.planned[0], spec.d, len(peaks)
    # Whole covariances as long as the normal equations stay small; many peaks in many axes get diagonal ones.
    full = k * (1 + d + d * (d + 1) // 2) <= SIDE_LOBES.most_parameters
    rows, columns = np.triu_indices(d) if full else (np.arange(d), np.arange(d))
    angular = spec.angular * unit
    moments = angular[:, rows] * angular[:, columns] * np.where(rows == columns, 0.5, 1.0)
    spread = np.zeros((k, len(rows)))
    # A peak found at a bandwidth is about as wide as it: at a smaller one it would have been found before.
    spread[:, rows == columns] = (bandwidths / unit) ** 2
    places = (peaks - spec.origin) / unit
    waves = _Waves(
        angular,
        moments,
        rows,
        columns,
        places,
        SIDE_LOBES.stray * bandwidths / unit,
        SIDE_LOBES.widest * float(spec.planned[-1][0] / unit[0]),
    )
    fitted = _least_squares(waves, sums, np.column_stack([np.full(k, SIDE_LOBES.lightest), places, spread]))
    covariances = np.zeros((k, d, d))
    covariances[:, rows, columns] = covariances[:, columns, rows] = fitted[:, 1 + d :]
    return SideLobeModel(fitted[:, 0], spec.origin + fitted[:, 1 : 1 + d] * unit, covariances * np.outer(unit, unit))


@dataclass(frozen=True)
class _Waves:
    """Characteristic functions of atoms in units of the smallest planned bandwidth, and their derivatives."""

    angular: FloatArray
    moments: FloatArray
    rows: Any
    columns: Any
    places: FloatArray
    stray: FloatArray
    widest: float

    def of(self, state: FloatArray) -> ComplexArray:
        """One row an atom, of weight one."""
        d = self.angular.shape[1]
        return np.asarray(np.exp(-state[:, 1 + d :] @ self.moments.T - 1j * (state[:, 1 : 1 + d] @ self.angular.T)))

    def derivatives(self, state: FloatArray, waves: ComplexArray) -> FloatArray:
        """Jacobian of real and imaginary parts, shape (2F, parameters)."""
        factors = [np.ones((len(self.angular), 1)), -1j * self.angular, -self.moments + 0j]
        parts = []
        for atom, wave in zip(state, waves, strict=True):
            parts += [wave[:, None] * factors[0], *(atom[0] * wave[:, None] * f for f in factors[1:])]
        jacobian = np.concatenate(parts, axis=1)
        return np.concatenate([jacobian.real, jacobian.imag])

    def within(self, state: FloatArray) -> FloatArray:
        """Nearest state with weights and widths that a mixture can have."""
        d = self.angular.shape[1]
        state = state.copy()
        state[:, 0] = np.clip(state[:, 0], SIDE_LOBES.lightest, 1.0)
        state[:, 1 : 1 + d] = np.clip(state[:, 1 : 1 + d], self.places - self.stray, self.places + self.stray)
        square = np.zeros((len(state), d, d))
        square[:, self.rows, self.columns] = square[:, self.columns, self.rows] = state[:, 1 + d :]
        values, vectors = np.linalg.eigh(square)
        square = np.einsum("kij,kj,klj->kil", vectors, np.clip(values, SIDE_LOBES.thinnest**2, self.widest**2), vectors)
        state[:, 1 + d :] = square[:, self.rows, self.columns]
        return state


def _least_squares(waves: _Waves, target: ComplexArray, state: FloatArray) -> FloatArray:
    """Levenberg-Marquardt steps, kept within what a mixture can be."""
    damping = 1e-2
    current = waves.of(state)
    overlap = (current @ current.conj().T).real  # weights that fit best with centres and widths as they are
    # Weights enter linearly: solved first, the steps start near the valley.
    best = np.linalg.lstsq(overlap, (current.conj() @ target).real, rcond=1e-6)[0]
    state = waves.within(np.column_stack([best, state[:, 1:]]))
    current = waves.of(state)
    rest = target - state[:, 0] @ current
    cost = float(np.sum(np.abs(rest) ** 2))
    for _ in range(SIDE_LOBES.rounds):
        jacobian = waves.derivatives(state, current)
        normal = jacobian.T @ jacobian
        slope = jacobian.T @ np.concatenate([rest.real, rest.imag])
        gained = 0.0
        while damping < 1e6:
            # Scaled by the diagonal: weights, centres and widths have different units.
            damped = normal + damping * np.diag(np.diag(normal) + 1e-9 * np.trace(normal) / len(normal))
            tried = waves.within(state + np.linalg.solve(damped, slope).reshape(state.shape))
            made = waves.of(tried)
            left = target - tried[:, 0] @ made
            new_cost = float(np.sum(np.abs(left) ** 2))
            if new_cost < cost:
                gained = cost - new_cost
                state, current, rest, cost = tried, made, left, new_cost
                damping = max(damping / 4, 1e-6)
                break
            damping *= 4
        # Either no damping helped, or what is left to gain is below the noise of the release.
        if gained <= 1e-5 * cost:
            break
    return state


SingleArray: TypeAlias = NDArray[np.float32]

BLOCK = 2**20
"""At most this many phases are held at once."""


class Field:
    """A reading in single precision; what :func:`~fogline.density.modes.scale_space.newton_ascent` climbs."""

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
        # Single precision is enough for the climb: its error is far below the noise.
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

    def _waves(self, points: FloatArray, cosine: SingleArray, sine: SingleArray) -> FloatArray:
        return _sums((points - self.spec.origin) / self.bandwidth, self._angular, cosine, sine)


def scan(readings: Sequence[RandomReading], points: FloatArray) -> FloatArray:
    """Kernel averages of several readings of one release at the same points, shape (readings, p).

    Of cleared readings without their atoms: peaks that those miss stand out there. The phases, which are what costs,
    are made once for all readings.
    """
    spec, h = readings[0].spec, readings[0].bandwidth
    coefficients = np.zeros((spec.n_features, len(readings)), dtype=np.complex128)
    for column, reading in zip(coefficients.T, readings, strict=True):
        # Readings leave out different frequencies; here each has its place in the whole table.
        column[reading.kept] = reading.relative
    cosine, sine = coefficients.real.astype(np.float32), -coefficients.imag.astype(np.float32)
    return _sums((points - spec.origin) / h, (spec.angular * h).T.astype(np.float32), cosine, sine).T


def _sums(offset: FloatArray, angular: SingleArray, cosine: SingleArray, sine: SingleArray) -> FloatArray:
    """Cosines and sines of the phases times their coefficients, shape (p, columns)."""
    small = offset.astype(np.float32)
    size = max(1, BLOCK // max(1, angular.shape[1]))
    blocks = [np.zeros((0, cosine.shape[1]))]
    for start in range(0, len(small), size):
        phase = small[start : start + size] @ angular
        blocks.append((np.cos(phase) @ cosine + np.sin(phase) @ sine).astype(np.float64))
    return np.concatenate(blocks)
