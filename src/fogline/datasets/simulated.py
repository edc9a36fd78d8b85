r"""Simulated data sets: the DP-GRAMS paper's two mixtures, three of our own, and the uniform box.

Mixtures have a known density, hence known modes. A component is Gaussian or Student t with a diagonal scale: with
:math:`u = x - \mu`, :math:`\Delta = \sum_j (u_j/s_j)^2`,

.. math:: f(x) \propto (1 + \Delta/\nu)^{-(\nu + d)/2}, \qquad \nu = \infty \text{ for the Gaussian}.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from fogline._typing import FloatArray, IntArray
from fogline._validation import check_count

__all__ = [
    "GAUSSIAN_MIXTURE4",
    "OWN_MIXTURES",
    "T_MIXTURE5",
    "Mixture",
    "Sample",
    "gaussian_mixture4",
    "mixture_modes",
    "own_mixture",
    "t_mixture5",
    "uniform_box",
]


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
    # Midpoints too: where components overlap, a mode may lie between centres and attract none of them.
    for start in np.concatenate([centers, 0.5 * (centers[first] + centers[second])]):
        x = start
        # Fixed-point steps climb safely but slowly near the top; Newton finishes from where it converges.
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
    # Rounded heights, then places: symmetric mixtures have modes of equal height, in an order that must be stable.
    found.sort(key=lambda pair: (-round(pair[0], 12), tuple(pair[1])))
    return np.array([x for _, x in found]).reshape(-1, centers.shape[1])


Seed = int | np.random.Generator | None

GAUSSIAN_MIXTURE4 = Mixture.of([0.25] * 4, [[3.0, 3.0], [3.0, -3.0], [-3.0, 3.0], [-3.0, -3.0]], [1.0, 1.0, 1.0, 1.0])
T_MIXTURE5 = Mixture.of(
    [0.2] * 5,
    [[0.0, 0.0], [6.0, 0.0], [-6.0, 0.0], [0.0, 6.0], [0.0, -6.0]],
    [0.1, 0.9, 1.3, 1.0, 0.4],
    dof=[15.0, 6.0, 10.0, 8.0, 20.0],
)
OWN_MIXTURES = {
    1: Mixture.of([0.5, 0.3, 0.2], [[-2.0], [1.0], [3.2]], [0.6, 0.9, 0.4]),
    2: Mixture.of(
        [0.4, 0.25, 0.2, 0.15],
        [[-3.0, -2.0], [0.0, 3.0], [3.0, 0.0], [3.0, -2.0]],
        [[0.8, 1.2], [1.0, 0.6], [0.7, 0.7], [0.7, 0.7]],
    ),
    3: Mixture.of(
        [0.45, 0.3, 0.25],
        [[-2.0, 0.0, 1.0], [2.0, 1.2, -1.0], [2.0, -1.2, -1.0]],
        [[0.7, 1.0, 0.9], [0.8, 0.8, 0.8], [0.6, 0.8, 1.0]],
    ),
}


def _generator(random_state: Seed) -> np.random.Generator:
    """Return a generator of the data's own.

    A seed is mixed with a tag: an algorithm given the same seed would otherwise begin with the very draws
    that chose the components, and might take all its starts from one of them.
    """
    if isinstance(random_state, int | np.integer):
        return np.random.default_rng([int(random_state), int.from_bytes(b"data")])
    return np.random.default_rng(random_state)


@lru_cache(maxsize=32)
def _modes(mixture: Mixture) -> FloatArray:
    return mixture_modes(mixture)


def _draw(mixture: Mixture, n: int, random_state: Seed) -> Sample:
    X, labels = mixture.sample(check_count(n, "n", minimum=0), _generator(random_state))
    return Sample(X, _modes(mixture).copy(), mixture.centers.copy(), labels)


def gaussian_mixture4(n: int, *, random_state: Seed = None) -> Sample:
    r"""Draw from four equal unit Gaussians at :math:`(\pm 3, \pm 3)` (DP-GRAMS paper, section 5.1.1).

    Examples
    --------
    >>> sample = gaussian_mixture4(5, random_state=0)
    >>> sample.X.shape, sample.modes.shape
    ((5, 2), (4, 2))
    >>> bool(abs(sample.modes).max() < 3)        # neighbours pull each mode a little inwards
    True
    """
    return _draw(GAUSSIAN_MIXTURE4, n, random_state)


def t_mixture5(n: int, *, random_state: Seed = None) -> Sample:
    """Draw from five equal bivariate t distributions of very different scales (DP-GRAMS, section 5.1.1).

    Examples
    --------
    >>> t_mixture5(5, random_state=0).modes.shape
    (5, 2)
    """
    return _draw(T_MIXTURE5, n, random_state)


def own_mixture(n: int, d: int, *, random_state: Seed = None) -> Sample:
    """Draw from a Gaussian mixture of our own in d = 1, 2 or 3: unequal weights and scales, two modes close.

    Examples
    --------
    >>> [len(own_mixture(1, d, random_state=0).modes) for d in (1, 2, 3)]
    [3, 4, 3]
    """
    if d not in OWN_MIXTURES:
        raise ValueError(f"d must be one of {sorted(OWN_MIXTURES)}, got {d}")
    return _draw(OWN_MIXTURES[d], n, random_state)


def uniform_box(n: int, d: int, *, low: float = 0.0, high: float = 1.0, random_state: Seed = None) -> Sample:
    """Draw uniformly from the box [low, high]^d, which has no mode at all.

    Examples
    --------
    >>> sample = uniform_box(100, 2, random_state=0)
    >>> sample.X.shape, sample.modes.shape
    ((100, 2), (0, 2))
    """
    check_count(d, "d")
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"low must lie below high, both finite; got low={low}, high={high}")
    rows = check_count(n, "n", minimum=0)
    X = _generator(random_state).uniform(low, high, size=(rows, d))
    return Sample(X, np.empty((0, d)), np.empty((0, d)), np.zeros(rows, dtype=np.int64))
