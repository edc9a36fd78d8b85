r"""A released joint density of (x, y) read along y: one short Fourier series for each x.

With the released sums :math:`\hat F_{kl}` (k the frequencies of x, l those of y), bandwidths :math:`h, b` of x and y
and a slope s, the *profile* at x is

.. math:: \hat f_s(x, y) = \frac{1}{\hat n \prod_j L_j}\,\mathrm{Re} \sum_l e^{i\nu_l y - b^2\nu_l^2/2}
   \sum_k \mu_{kl}\, e^{i\omega_k\cdot x - |h(\omega_k + s\nu_l)|^2/2}\, \hat F_{kl}.

It is the density smoothed by the kernel :math:`K_h(u) K_b(v - s\cdot u)`: an ellipse laid along a line of slope s, so
that a ridge of that slope is smoothed along itself and not blurred across. Slope 0 is the usual product kernel. The
privacy noise of a profile is Gaussian, its variance a sum over the same coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from fogline._typing import BoolArray, ComplexArray, FloatArray

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = ["Lines", "Profiles", "mirror_basis"]


NEGLIGIBLE = 1e-5
"""Frequencies of y at which the kernel's spectrum is below this are left out."""

BLOCK = 2**20
"""Entries of the largest matrix that is made at a time."""

FADE = (1.5, 3.0)
"""A mirror image counts in full up to this many bandwidths from a wall of y, and beyond this many not at all."""


@dataclass(frozen=True)
class Lines:
    """Profiles at P places: a complex series in y each, and the noise variance of each of its terms.

    Attributes
    ----------
    terms : complex array of shape (P, L)
    variances : array of shape (P, L)
    angular : array of shape (L,)
        Frequencies of y.
    origin : float
        Where the phase is zero.
    """

    terms: ComplexArray
    variances: FloatArray
    angular: FloatArray
    origin: float

    def at(self, y: FloatArray, order: int = 0) -> FloatArray:
        """Value or derivative of each profile at one y each, shape (P,)."""
        phase = np.exp(1j * np.outer(y - self.origin, self.angular))
        return np.asarray(np.sum(phase * self.terms * (1j * self.angular) ** order, axis=1).real)

    def noise_sd(self, order: int = 0) -> FloatArray:
        """Standard deviation of the privacy noise of :meth:`at`."""
        return np.asarray(np.sqrt(self.variances @ self.angular ** (2 * order)))

    def on(self, basis: ComplexArray) -> tuple[FloatArray, FloatArray]:
        """Values on a grid of y with basis functions of shape (L, G), and their noise variance; shapes (P, G)."""
        return np.asarray((self.terms @ basis).real), np.asarray(self.variances @ np.abs(basis) ** 2)


class Profiles:
    """The joint density at one bandwidth, read along its last axis.

    Parameters
    ----------
    density : PrivateDensity
        Of x (one or two axes) and y.
    bandwidth : array of shape (d,)
        In data units, y last.
    sharpened : bool, default False
        Read level profiles with a kernel of sixth order, whose bias is of the order of the bandwidth's sixth power: the
        spectrum :math:`e^{-z}` becomes :math:`e^{-z}(1 + z + z^2/2)`.
    """

    def __init__(self, density: PrivateDensity, bandwidth: FloatArray, *, sharpened: bool = False) -> None:
        spec = density.spec
        spec.require_readable(bandwidth)
        self.density = density
        self.spec = spec
        self.x_bandwidth, self.y_bandwidth = bandwidth[:-1], float(bandwidth[-1])
        # Of each pair of frequencies the one that is not negative in y.
        flipped = spec.frequencies[:, -1] < 0
        sign = np.where(flipped, -1, 1)
        order = np.argsort(sign * spec.frequencies[:, -1], kind="stable")
        angular = (sign[:, None] * spec.angular)[order]
        gain = np.where(order == 0, 1.0, 2.0) * np.exp(-0.5 * (self.y_bandwidth * angular[:, -1]) ** 2)
        kept = gain >= NEGLIGIBLE
        self._order = order[kept]
        self._gain = gain[kept] / (density.count * float(np.prod(spec.periods)))
        if sharpened:
            exponent = 0.5 * np.sum((angular[kept] * bandwidth) ** 2, axis=1)
            self._gain = self._gain * (1 + exponent + exponent**2 / 2)
        self._x_angular = angular[kept, :-1]
        self._y_angular = angular[kept, -1]
        level = (sign * spec.frequencies[:, -1])[order][kept]
        # Frequencies are in the order of y, so the sum over those of x is a sum over runs.
        self._starts = np.flatnonzero(np.concatenate([[True], level[1:] != level[:-1]]))
        self._row = np.cumsum(np.concatenate([[0], level[1:] != level[:-1]]))
        self.angular = self._y_angular[self._starts]
        self._sums = self._chosen(density.coefficients, flipped)
        self._noise = self._gain * (density.noise_scale / np.sqrt(density.weights))[self._order]
        self._flipped = flipped

    def _chosen(self, sums: ComplexArray, flipped: BoolArray) -> ComplexArray:
        return np.asarray(np.where(flipped, np.conj(sums), sums)[..., self._order] * self._gain)

    def _smoothing(self, slopes: FloatArray | None) -> FloatArray:
        """Spectrum of the kernel in x, along lines of the given slopes (P, dx) or level: shape (P or 1, F)."""
        tilted: FloatArray = self._x_angular[None]
        if slopes is not None:
            tilted = tilted + slopes[:, None, :] * self._y_angular[None, :, None]
        return np.asarray(np.exp(-0.5 * np.sum((tilted * self.x_bandwidth) ** 2, axis=2)))

    def _phases(self, x: FloatArray) -> ComplexArray:
        return np.asarray(np.exp(1j * ((x - self.spec.origin[:-1]) @ self._x_angular.T)))

    def lines(self, x: FloatArray, slopes: FloatArray | None = None) -> Lines:
        """Profiles at places x of shape (P, dx), smoothed along lines of the given slopes."""
        terms = [np.zeros((0, len(self.angular)), dtype=complex)]
        variances = [np.zeros((0, len(self.angular)))]
        for part in self._blocks(len(x)):
            smooth = self._smoothing(None if slopes is None else slopes[part])
            terms.append(np.add.reduceat(self._phases(x[part]) * smooth * self._sums, self._starts, axis=1))
            noise = np.add.reduceat((smooth * self._noise) ** 2, self._starts, axis=1)
            # Level profiles have the same noise at every x.
            variances.append(np.broadcast_to(noise, terms[-1].shape))
        return Lines(np.concatenate(terms), np.concatenate(variances), self.angular, float(self.spec.origin[-1]))

    def _blocks(self, size: int) -> Iterator[slice]:
        step = max(1, BLOCK // max(1, len(self._sums)))
        return (slice(i, i + step) for i in range(0, size, step))

    def simulated(self, sums: ComplexArray, x: FloatArray) -> ComplexArray:
        """Terms of the level profiles at x that other sums, of shape (S, F), would give; shape (S, P, L)."""
        chosen = self._chosen(sums, self._flipped) * self._smoothing(None)
        phases = self._phases(x)
        ends = [*self._starts[1:], len(self._sums)]
        return np.stack([chosen[:, a:b] @ phases[:, a:b].T for a, b in zip(self._starts, ends, strict=True)], axis=2)

    def sum_sd(self, x: FloatArray, weights: FloatArray, basis: ComplexArray) -> float:
        """Noise deviation of the sum, with weights of shape (P, G), of the level profiles at x on a grid of y."""
        along_y = weights @ basis.T
        total = np.zeros(len(self._row), dtype=complex)
        for part in self._blocks(len(x)):
            total += np.sum(self._phases(x[part]) * along_y[part][:, self._row], axis=0)
        return float(np.sqrt(np.sum(np.abs(total * self._smoothing(None)[0] * self._noise) ** 2)))

    def roughness(self) -> FloatArray:
        r"""How fast the privacy noise of :math:`\partial_y \hat f` changes along each axis of x.

        Its correlation at a distance t is about :math:`e^{-\lambda^2 t^2/2}`.
        """
        energy = (self._smoothing(None)[0] * self._noise * self._y_angular) ** 2
        return np.asarray(np.sqrt(energy @ self._x_angular**2 / max(float(energy.sum()), 1e-300)))

    def marginal(self, lines: Lines) -> tuple[FloatArray, FloatArray]:
        """Density of x, smoothed, at the places of some lines, and its noise deviation."""
        period = float(self.spec.periods[-1])
        return lines.terms[:, 0].real * period, np.sqrt(lines.variances[:, 0]) * period

    def normal(self, lines: Lines) -> FloatArray:
        """What turns joint densities at the places of some lines into conditional ones."""
        marginal, sd = self.marginal(lines)
        return np.asarray(1 / np.maximum(marginal, np.maximum(2 * sd, 1e-300)))

    def inside(self, x: FloatArray) -> FloatArray:
        """Share of the kernel at places x that lies within the range of x."""
        bounds = np.asarray(self.spec.bounds)[:-1]
        above, below = (ndtr((wall - x) / self.x_bandwidth) for wall in (bounds[:, 1], bounds[:, 0]))
        return np.asarray(np.prod(above - below, axis=1))

    def y_axis(self, per_bandwidth: float) -> FloatArray:
        """A grid over the range of y, walls included."""
        low, high = self.spec.bounds[-1]
        return np.linspace(low, high, int(np.ceil((high - low) / self.y_bandwidth * per_bandwidth)) + 1)

    @property
    def kernel_energy(self) -> float:
        """Integral of the squared kernel: sampling variance is this times density over count."""
        return 1 / float(np.prod(2 * np.sqrt(np.pi) * np.append(self.x_bandwidth, self.y_bandwidth)))


def mirror_basis(profiles: Profiles, y: FloatArray) -> ComplexArray:
    """Basis functions on a grid of y with the walls of y as mirrors, shape (L, G).

    What a kernel loses over a wall is folded back, so that responses which fill their range evenly look even.
    """
    low, high = profiles.spec.bounds[-1]
    origin = float(profiles.spec.origin[-1])
    basis = np.exp(1j * np.outer(profiles.angular, y - origin))
    for wall in (low, high):
        distance = np.abs(y - wall) / profiles.y_bandwidth
        # Deep inside, a mirror image is a second copy of the records: it fades out before it counts.
        weight = np.clip((FADE[1] - distance) / (FADE[1] - FADE[0]), 0.0, 1.0)
        basis = basis + weight * np.exp(1j * np.outer(profiles.angular, 2 * wall - y - origin))
    return np.asarray(basis)
