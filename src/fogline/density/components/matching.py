r"""A Gaussian mixture matched to released random features: weights, means and covariances together.

The released sums, divided by the count, are the characteristic function of the records at the drawn frequencies, plus
noise of known variance u. A mixture has

.. math:: \phi(\omega) = \sum_{j} w_j\, e^{-\frac12 \omega^\top L_jL_j^\top \omega}\, e^{i\omega\cdot\mu_j},

and the squared distance of the two over 2u is minus its log-likelihood. It is minimised by L-BFGS from round components
(:mod:`fogline.density.components.pursuit`), with a normal prior that the factors :math:`L_j` are alike: what the
release does not tell apart has one shape. Everything reads released numbers, so it is free.

References
----------
.. [1] N. Keriven, A. Bourrier, R. Gribonval, P. Perez, "Sketching for large-scale learning of mixture models",
   Information and Inference 7, 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from fogline._typing import FloatArray
from fogline.density.components.pursuit import SphericalComponents
from fogline.density.private_density import PrivateDensity

__all__ = ["MATCHING", "MatchedMixture", "MatchingTuning", "fit_characteristic_function"]


@dataclass(frozen=True)
class MatchingTuning:
    """What is tuned of the fit to a released characteristic function.

    Attributes
    ----------
    alike : float
        Prior deviation of a component's factor from the common one, as a part of its size.
    weights : tuple
        Range of a weight while it is sought.
    iterations : int
    """

    alike: float = 0.3
    weights: tuple[float, float] = (1e-3, 1.5)
    iterations: int = 150


MATCHING = MatchingTuning()


@dataclass(frozen=True, eq=False)
class MatchedMixture:
    """A mixture matched to a release, in the coordinates of its density.

    Attributes
    ----------
    weights : array of shape (k,)
        Not normalised.
    means : array of shape (k, d)
    covariances : array of shape (k, d, d)
    misfit : float
        Squared residual over its variance where the mixture explains all.
    criterion : float
        Bayesian information criterion: the misfit, and for each parameter the logarithm of how many numbers were
        released.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    misfit: float
    criterion: float


def fit_characteristic_function(density: PrivateDensity, atoms: SphericalComponents) -> MatchedMixture:
    """Fit a Gaussian mixture to a release by random features, from round components.

    Parameters
    ----------
    density : PrivateDensity
        Released by random features.
    atoms : SphericalComponents
        As :func:`fogline.density.components.pursuit.matching_pursuit` found them.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> from fogline.density.components.pursuit import ClusterPrior, matching_pursuit
    >>> from fogline.testing import seeded_noise
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, [1.0, 0.4, 0.4, 0.4], size=(20000, 4)) for m in (-2, 2)])
    >>> with seeded_noise(0):
    ...     density = DensitySketch([(-6, 6)] * 4, features=512).update(X).release(epsilon=2.0, delta=1e-6)
    >>> round_ones = matching_pursuit(density, 2, ClusterPrior.of_box(np.full(4, -6.0), np.full(4, 6.0), (0.01, 4.0)))
    >>> found = fit_characteristic_function(density, round_ones)
    >>> bool(found.covariances[0, 0, 0] > 2 * found.covariances[0, 1, 1])
    True
    """
    task = _Match.of(density)
    k, d = atoms.centres.shape
    released = 2 * len(task.frequencies)
    if k == 0:
        value = float(task.cosines @ task.cosines + task.sines @ task.sines) / task.unit
        return MatchedMixture(np.zeros(0), np.zeros((0, d)), np.zeros((0, d, d)), value, value)
    # Triangular factors keep every covariance positive without a constraint.
    factors = np.sqrt(atoms.variances)[:, None, None] * np.eye(d)
    start = task.packed(atoms.weights, atoms.centres - task.origin, factors)
    bounds = [MATCHING.weights] * k + [(None, None)] * (len(start) - k)
    found = minimize(
        task.loss,
        start,
        args=(k,),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": MATCHING.iterations},
    )
    weights, means, factors = task.unpacked(np.asarray(found.x), k)
    even, odd = task.residual(weights, *task.waves(means, factors))
    misfit = float(even @ even + odd @ odd) / task.unit
    # Bayesian information criterion: misfit is minus twice the log-likelihood, up to a constant.
    parameters = k * (1 + d + d * (d + 1) // 2)
    covariances = factors @ np.swapaxes(factors, 1, 2)
    return MatchedMixture(weights, means + task.origin, covariances, misfit, misfit + parameters * math.log(released))


@dataclass(frozen=True, eq=False)
class _Match:
    """Least squares in units of the noise; factors are lower triangular."""

    frequencies: FloatArray
    cosines: FloatArray
    sines: FloatArray
    unit: float
    origin: FloatArray

    @classmethod
    def of(cls, density: PrivateDensity) -> _Match:
        sums = density.coefficients[1:] / density.count
        noise = density.noise_scale / math.sqrt(float(density.weights[1])) / density.count
        spec = density.spec
        return cls(spec.angular, sums.real, -sums.imag, noise**2 + 0.5 / density.count, spec.origin)

    @property
    def lower(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        rows, columns = np.tril_indices(self.frequencies.shape[1])
        return rows, columns

    def packed(self, weights: FloatArray, means: FloatArray, factors: FloatArray) -> FloatArray:
        rows, columns = self.lower
        return np.concatenate([weights, means.ravel(), factors[:, rows, columns].ravel()])

    def unpacked(self, flat: FloatArray, k: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        d = self.frequencies.shape[1]
        rows, columns = self.lower
        factors = np.zeros((k, d, d))
        factors[:, rows, columns] = flat[k + k * d :].reshape(k, -1)
        return flat[:k], flat[k : k + k * d].reshape(k, d), factors

    def waves(self, means: FloatArray, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cosine and sine part of each component of weight one, shape (frequencies, k)."""
        phases = self.frequencies @ means.T
        spread = np.stack([np.sum((self.frequencies @ factor) ** 2, axis=1) for factor in factors], axis=1)
        fading = np.exp(-0.5 * spread)
        return fading * np.cos(phases), fading * np.sin(phases)

    def residual(self, weights: FloatArray, cosine: FloatArray, sine: FloatArray) -> tuple[FloatArray, FloatArray]:
        return cosine @ weights - self.cosines, sine @ weights - self.sines

    def loss(self, flat: FloatArray, k: int) -> tuple[float, FloatArray]:
        """Half the squared residual over its variance and the prior, and the slope of both."""
        weights, means, factors = self.unpacked(flat, k)
        cosine, sine = self.waves(means, factors)
        even, odd = self.residual(weights, cosine, sine)
        along = (cosine * even[:, None] + sine * odd[:, None]) / self.unit
        across = (cosine * odd[:, None] - sine * even[:, None]) / self.unit
        by_means = (across * weights).T @ self.frequencies
        by_factors = np.stack(
            [-(self.frequencies.T * (along[:, j] * weights[j])) @ (self.frequencies @ factors[j]) for j in range(k)]
        )
        value, pull = _alike(factors)
        value += 0.5 * float(even @ even + odd @ odd) / self.unit
        return value, self.packed(along.sum(axis=0), by_means, by_factors + pull)


def _alike(factors: FloatArray) -> tuple[float, FloatArray]:
    """Minus the log prior that the factors are alike, and its slope with their size held fixed."""
    off = factors - factors.mean(axis=0)
    size = float(np.mean(np.einsum("kii->ki", np.abs(factors)))) + 1e-12
    scaled = off / (MATCHING.alike * size)
    value = 0.5 * float(np.sum(scaled**2))
    d = factors.shape[1]
    slope = scaled / (MATCHING.alike * size)
    signs = np.sign(np.einsum("kii->ki", factors))
    by_size = -2 * value / size / signs.size
    slope[:, np.arange(d), np.arange(d)] += by_size * signs
    return value, slope
