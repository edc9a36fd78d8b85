r"""Mixtures with known density, hence known modes.

A component is Gaussian or Student t with a diagonal scale: with :math:`u = x - \mu`,
:math:`\Delta = \sum_j (u_j/s_j)^2`,

.. math:: f(x) \propto (1 + \Delta/\nu)^{-(\nu + d)/2}, \qquad \nu = \infty \text{ for the Gaussian}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from fogline._typing import FloatArray, IntArray

__all__ = ["Mixture", "Sample", "mixture_modes"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Draws from a known density, with what a method should find in them.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The records.
    modes : ndarray of shape (k, d)
        The local maxima of the density that `X` was drawn from.
    centers : ndarray of shape (c, d)
        The centres of its components. The DP-GRAMS paper measures error against these; they differ from the
        modes where components overlap.
    labels : ndarray of shape (n,)
        The component of each record.
    """

    X: FloatArray
    modes: FloatArray
    centers: FloatArray
    labels: IntArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of Gaussian and t components with diagonal scales.

    Attributes
    ----------
    weights : ndarray of shape (c,)
        Shares of the components; they sum to 1.
    centers, scales : ndarray of shape (c, d)
        Location and scale of each component, an axis at a time.
    dof : ndarray of shape (c,)
        Degrees of freedom; infinite for a Gaussian component.

    Examples
    --------
    >>> normal = Mixture.of([1.0], [[0.0]], [1.0])
    >>> normal.pdf(np.array([[0.0]])).round(4)
    array([0.3989])
    """

    weights: FloatArray
    centers: FloatArray
    scales: FloatArray
    dof: FloatArray

    @classmethod
    def of(
        cls,
        weights: list[float],
        centers: list[list[float]],
        scales: list[float] | list[list[float]],
        dof: list[float] | None = None,
    ) -> Mixture:
        """Build a mixture from lists; one scale a component means the same on every axis."""
        share = np.array(weights, dtype=np.float64)
        centre = np.array(centers, dtype=np.float64)
        scale = np.array(scales, dtype=np.float64)
        scale = np.broadcast_to(scale[:, None] if scale.ndim == 1 else scale, centre.shape).copy()
        freedom = np.full(share.shape, np.inf) if dof is None else np.array(dof, dtype=np.float64)
        if centre.ndim != 2 or share.shape != (centre.shape[0],) or freedom.shape != share.shape:
            raise ValueError("weights, centers, scales and dof must describe the same number of components")
        if (share <= 0).any() or abs(share.sum() - 1.0) > 1e-9:
            raise ValueError(f"weights must be positive and sum to 1, got {weights}")
        if (scale <= 0).any() or (freedom <= 0).any():
            raise ValueError("scales and dof must be positive")
        return cls(share, centre, scale, freedom)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Draw n records and the component of each."""
        labels = rng.choice(self.weights.size, size=n, p=self.weights)
        X = self.scales[labels] * rng.standard_normal((n, self.centers.shape[1]))
        dof = self.dof[labels]
        heavy = np.isfinite(dof)
        X[heavy] /= np.sqrt(rng.chisquare(dof[heavy]) / dof[heavy])[:, None]
        return X + self.centers[labels], labels

    def _parts(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weighted component densities at one point, slopes c and scaled offsets A u."""
        d = x.size
        offset = (x - self.centers) / self.scales
        distance = np.einsum("cj,cj->c", offset, offset)
        finite_values = np.isfinite(self.dof)
        nu = np.where(finite_values, self.dof, 1.0)  # placeholder where unused, so that no inf - inf arises
        slope = np.where(finite_values, (nu + d) / (nu + distance), 1.0)
        log_t = gammaln(0.5 * (nu + d)) - gammaln(0.5 * nu) - 0.5 * d * np.log(nu * np.pi)
        log_t -= 0.5 * (nu + d) * np.log1p(distance / nu)
        log_density = np.where(finite_values, log_t, -0.5 * distance - 0.5 * d * np.log(2.0 * np.pi))
        density = self.weights * np.exp(log_density - np.log(self.scales).sum(axis=1))
        return density, slope, offset / self.scales

    def pdf(self, x: FloatArray) -> FloatArray:
        """Density at points of shape (k, d)."""
        return np.array([self._parts(point)[0].sum() for point in np.atleast_2d(x)])

    def derivatives(self, x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        r"""Density, gradient and Hessian at one point.

        With :math:`c = (\nu + d)/(\nu + \Delta)` and :math:`A = \mathrm{diag}(1/s^2)`,
        :math:`\nabla f = -f c A u` and
        :math:`\nabla^2 f = f\,[c^2 (1 + 2/(\nu + d))\, A u u^\top A - c A]`.
        """
        density, slope, scaled = self._parts(x)
        gradient = -(density * slope) @ scaled
        bend = density * slope**2 * (1.0 + 2.0 / (self.dof + x.size))
        hessian = np.einsum("c,ci,cj->ij", bend, scaled, scaled)
        hessian -= np.diag((density * slope) @ (1.0 / self.scales**2))
        return float(density.sum()), gradient, hessian

    def _climb(self, x: FloatArray) -> FloatArray:
        """One fixed-point step: the average of the centres that balances the gradient, always uphill."""
        density, slope, _ = self._parts(x)
        pull = (density * slope)[:, None] / self.scales**2
        return np.asarray((pull * self.centers).sum(axis=0) / pull.sum(axis=0))


def mixture_modes(mixture: Mixture, *, tolerance: float = 1e-10) -> FloatArray:
    """Local maxima of a mixture's density, highest first.

    From every centre and every midpoint of two centres, climb by fixed-point steps, then polish by Newton's
    method; keep the points where the Hessian is negative definite, once each.

    Parameters
    ----------
    mixture : Mixture
        The density.
    tolerance : float
        Newton stops when a step is shorter than this.

    Returns
    -------
    ndarray of shape (k, d)

    Examples
    --------
    >>> close = Mixture.of([0.5, 0.5], [[-1.5], [1.5]], [1.0, 1.0])
    >>> mixture_modes(close).round(3).tolist()       # pulled inwards from -1.5 and 1.5
    [[-1.463], [1.463]]
    >>> len(mixture_modes(Mixture.of([0.5, 0.5], [[-0.9], [0.9]], [1.0, 1.0])))      # too close: one mode
    1
    """
    centers = mixture.centers
    first, second = np.triu_indices(len(centers), k=1)
    found: list[tuple[float, FloatArray]] = []
    smallest = float(mixture.scales.min())
    for start in np.concatenate([centers, 0.5 * (centers[first] + centers[second])]):
        x = start
        for _ in range(2000):
            x, previous = mixture._climb(x), x
            if np.abs(x - previous).max() < 1e-7 * smallest:
                break
        for _ in range(20):
            _, gradient, hessian = mixture.derivatives(x)
            step = np.linalg.solve(hessian, gradient)
            x = x - step
            if np.abs(step).max() < tolerance:
                break
        height, _, hessian = mixture.derivatives(x)
        is_maximum = np.linalg.eigvalsh(hessian).max() < 0
        if is_maximum and all(np.abs(x - other).max() > 1e-4 * smallest for _, other in found):
            found.append((height, x))
    found.sort(key=lambda pair: (-round(pair[0], 12), tuple(pair[1])))
    return np.array([x for _, x in found]).reshape(-1, centers.shape[1])
