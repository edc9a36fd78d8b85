r"""Mixtures of Gaussians that are far enough apart for a proof: the family G(d, k, sigma_min, sigma_max, R, w_min, s).

With :math:`\sigma_i^2` the largest variance of component i along any direction, components are s apart when

.. math:: \|\mu_i - \mu_j\| \ge s\,\max(\sigma_i, \sigma_j)

or, in the units of the recursive algorithm's theorem, when

.. math:: \|\mu_i - \mu_j\| \ge
          s\,(\sigma_i + \sigma_j)\Bigl(\sqrt{k\log n} + \frac1{\sqrt{w_i}} + \frac1{\sqrt{w_j}}\Bigr).

Means are placed as tightly as that allows, small components first and close to each other, so that very different
scales meet in one mixture.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal, J. Ullman, "Differentially private algorithms for learning mixtures of
   separated Gaussians", NeurIPS 2019, Definition 2.2 and condition (6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_count, check_positive

__all__ = ["SeparatedMixture", "separated_mixture"]

Array = NDArray[np.float64]

MOST_TRIES = 10_000


@dataclass(frozen=True, eq=False)
class SeparatedMixture:
    """A mixture of Gaussians with known parameters.

    Attributes
    ----------
    weights : array of shape (k,)
    means : array of shape (k, d)
    covariances : array of shape (k, d, d)
    radius : float
        No mean is further from the origin.
    """

    weights: Array
    means: Array
    covariances: Array
    radius: float

    @property
    def sigmas(self) -> Array:
        """Largest standard deviation of each component along any direction."""
        return np.asarray(np.sqrt(np.linalg.eigvalsh(self.covariances)[:, -1]))

    def sample(self, n: int, random_state: Any = None) -> tuple[Array, NDArray[np.int64]]:
        """Draw records and the component of each."""
        rng = np.random.default_rng(random_state)
        labels = rng.choice(len(self.weights), size=check_count(n, "n", minimum=0), p=self.weights)
        X = rng.standard_normal((n, self.means.shape[1]))
        for j, (mean, root) in enumerate(zip(self.means, np.linalg.cholesky(self.covariances), strict=True)):
            X[labels == j] = X[labels == j] @ root.T + mean
        return X, labels.astype(np.int64)


def separated_mixture(
    d: int,
    k: int,
    *,
    separation: float,
    sigma_min: float = 1.0,
    sigma_max: float = 1.0,
    weight_min: float | None = None,
    radius: float | None = None,
    flatness: float = 1.0,
    records: int | None = None,
    random_state: Any = None,
) -> SeparatedMixture:
    r"""Draw a separated and bounded mixture.

    Parameters
    ----------
    d, k : int
        Dimension and number of components.
    separation : float
        The number s; in the units of the theorem where `records` is given, else in standard deviations.
    sigma_min, sigma_max : float
        Range of the components' sigma: one has each end, the others lie evenly between their logarithms.
    weight_min : float, optional
        Smallest weight; by default all are the same. Else the first has it and the others are random.
    radius : float, optional
        Bound on the means; an error where the components do not fit.
    flatness : float
        Ratio of the largest to the smallest standard deviation within a component, in random directions.
    records : int, optional
        The number n of the theorem's condition.
    random_state : int or Generator

    Examples
    --------
    >>> mixture = separated_mixture(3, 4, separation=10.0, sigma_max=5.0, random_state=0)
    >>> mixture.sigmas.round(2)
    array([1.  , 1.71, 2.92, 5.  ])
    >>> X, labels = mixture.sample(100, random_state=1)
    >>> X.shape, labels.shape
    ((100, 3), (100,))
    """
    d, k = check_count(d, "d"), check_count(k, "k")
    s = check_positive(separation, "separation")
    low, high = check_positive(sigma_min, "sigma_min"), check_positive(sigma_max, "sigma_max")
    if low > high:
        raise ValueError(f"sigma_min must not exceed sigma_max, got {low} and {high}")
    if check_positive(flatness, "flatness") < 1:
        raise ValueError(f"flatness must be at least 1, got {flatness}")
    rng = np.random.default_rng(random_state)
    sigmas = np.geomspace(low, high, k) if k > 1 else np.array([high])
    weights = _weights(k, weight_min, rng)
    apart = _distances(sigmas, weights, s, None if records is None else check_count(records, "records"))
    means = _placed(apart, d, rng)
    means -= (means.max(axis=0) + means.min(axis=0)) / 2
    reach = float(np.linalg.norm(means, axis=1).max())
    if radius is not None and reach > check_positive(radius, "radius"):
        raise ValueError(f"radius must be at least {reach:.4g} for components so far apart, got {radius}")
    shapes = []
    for sigma in sigmas:
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        inner = flatness ** -rng.random(max(d - 2, 0))
        widths = np.concatenate([[1.0], inner, [1.0 / flatness]])[:d]
        shapes.append((turn * (sigma * widths) ** 2) @ turn.T)
    covariances = np.array(shapes)
    return SeparatedMixture(weights, means, (covariances + covariances.swapaxes(1, 2)) / 2, reach)


def _weights(k: int, weight_min: float | None, rng: np.random.Generator) -> Array:
    if weight_min is None:
        return np.full(k, 1 / k)
    least = check_positive(weight_min, "weight_min")
    if least > 1 / k:
        raise ValueError(f"weight_min must be at most 1/k = {1 / k:.4g}, got {weight_min}")
    rest = rng.dirichlet(np.ones(max(k - 1, 1)))[: k - 1]
    return np.concatenate([[least], least + (1 - k * least) * rest]) if k > 1 else np.ones(1)


def _distances(sigmas: Array, weights: Array, separation: float, records: int | None) -> Array:
    """Least distance of each pair of means."""
    if records is None:
        return separation * np.maximum.outer(sigmas, sigmas)
    ends = 1 / np.sqrt(weights)
    spread = math.sqrt(len(sigmas) * math.log(max(records, 2)))
    return np.asarray(separation * np.add.outer(sigmas, sigmas) * (spread + np.add.outer(ends, ends)))


def _placed(apart: Array, d: int, rng: np.random.Generator) -> Array:
    """Means, each as near to an earlier one as all the distances allow."""
    means = np.zeros((len(apart), d))
    for j in range(1, len(apart)):
        for attempt in range(MOST_TRIES):
            beside = int(rng.integers(j))
            direction = rng.standard_normal(d)
            step = apart[j, beside] * (1.001 + 0.1 * attempt**0.5 * rng.random())
            means[j] = means[beside] + step * direction / np.linalg.norm(direction)
            if (np.linalg.norm(means[:j] - means[j], axis=1) >= apart[j, :j]).all():
                break
        else:
            raise RuntimeError("no place was found for a component")
    return means
