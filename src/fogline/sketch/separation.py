r"""Whether two fitted clusters are two: against one cluster with a tail of records that reaches to the other.

A mixture of round clusters fits any smooth shape if it has enough of them, so their number says little. Two of them
are two *clusters* if the density falls and rises again from one to the other. If it does not, it is unimodal along the
segment between them, a mixture of uniform laws that begin at one end [1]_. The simplest such law is a cluster there
and a tail: the uniform law from there to beyond the other, blurred by the clusters' width, of characteristic function

.. math:: w\,e^{-s^2|\omega|^2/2}\,e^{-i\omega\cdot(a + h)}\,\frac{\sin \omega\cdot h}{\omega\cdot h}

from a to a + 2h. It has as many parameters as the second cluster that it replaces. Both explanations are fitted to the
released features with all the other clusters, and T is how much better the two clusters are, in squared residuals over
the variance of the noise. If cluster and tail are the truth and lie at a squared distance D from the best two
clusters, T is normal with mean -D and variance 4D, so whatever D is

.. math:: P(T > t) = Q\Bigl(\frac{t + D}{2\sqrt D}\Bigr) \le Q(\sqrt t),

Q being the upper tail of the normal law. Clusters that cannot be told from a cluster with a tail are joined.

References
----------
.. [1] A. Y. Khintchine, "On unimodal distributions", Izvestiya Nauchno-Issledovatel'skogo Instituta Matematiki i
   Mekhaniki, Tomsk 2, 1938.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm

__all__ = ["Features", "number_of_groups"]

FloatArray = NDArray[np.float64]

ITERATIONS = 60
"""Most steps of a fit."""

WIDER = 3.0
"""A fit changes the log variance by no more than this."""

WEIGHTS = (0.0, 1.5)
"""Range of a weight."""

TAIL = 1.3
"""A tail is first tried with this many times the distance of the two clusters."""

NEIGHBOURS = 5
"""A cluster is compared with so many of the nearest others."""


@dataclass(frozen=True, eq=False)
class Features:
    """Released characteristic function: real part and minus the imaginary part, with the variance of each.

    Attributes
    ----------
    frequencies : array of shape (m, d)
    cosines, sines : arrays of shape (m,)
    variance : float
    """

    frequencies: FloatArray
    cosines: FloatArray
    sines: FloatArray
    variance: float

    @property
    def d(self) -> int:
        """Number of axes."""
        return int(self.frequencies.shape[1])

    def loss(self, flat: FloatArray, k: int, *, tail: bool = False) -> tuple[float, FloatArray]:
        """Half the squared residual of k clusters of one width, over its variance, and its slope.

        Parameters are the log variance, k weights, k centres and, where the first cluster has a tail, the tail's weight
        and half of its segment.
        """
        w, d, end = self.frequencies, self.d, k + 1 + k * self.d
        weights, centres = flat[1 : k + 1], flat[k + 1 : end].reshape(k, d)
        if tail:
            weights, centres = np.append(weights, flat[end]), np.vstack([centres, centres[0] + flat[end + 1 :]])
        squares = np.sum(w**2, axis=1)
        fading = np.exp(-0.5 * squares * np.exp(flat[0]))[:, None]
        phases = w @ centres.T
        cosine, sine = fading * np.cos(phases), fading * np.sin(phases)
        if tail:
            turns, plain = w @ flat[end + 1 :], (cosine[:, -1].copy(), sine[:, -1].copy())
            shape = np.sinc(turns / np.pi)
            cosine[:, -1] *= shape
            sine[:, -1] *= shape
        even, odd = cosine @ weights - self.cosines, sine @ weights - self.sines
        along = cosine * even[:, None] + sine * odd[:, None]
        across = ((cosine * odd[:, None] - sine * even[:, None]) * weights).T @ w
        by_weight = along.sum(axis=0)
        slope = np.empty_like(flat)
        slope[0] = -0.5 * float(squares @ (along @ weights)) * np.exp(flat[0])
        slope[1 : k + 1] = by_weight[:k]
        if tail:
            across[0] += across[-1]
            flatter = weights[-1] * ((plain[0] * even + plain[1] * odd) * _sinc_slope(turns, shape)) @ w
            slope[end], slope[end + 1 :] = by_weight[-1], across[-1] + flatter
        slope[k + 1 : end] = across[:k].ravel()
        return 0.5 * float(even @ even + odd @ odd) / self.variance, slope / self.variance

    def fit(self, start: FloatArray, k: int, *, tail: bool = False) -> tuple[float, FloatArray]:
        """Squared residual of the best fit from a start, over its variance, and its parameters."""
        free: list[tuple[float | None, float | None]] = [(None, None)]
        bounds = [(float(start[0]) - WIDER, float(start[0]) + WIDER), *[WEIGHTS] * k, *free * (k * self.d)]
        found = minimize(
            lambda flat: self.loss(flat, k, tail=tail),
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[*bounds, WEIGHTS, *free * self.d] if tail else bounds,
            options={"maxiter": ITERATIONS},
        )
        return 2 * float(found.fun), np.asarray(found.x)


def _sinc_slope(turns: FloatArray, shape: FloatArray) -> FloatArray:
    """Slope of sin(t)/t, whose values are given."""
    small = np.abs(turns) < 1e-4
    return np.asarray(np.where(small, -turns / 3, (np.cos(turns) - shape) / np.where(small, 1.0, turns)))


def number_of_groups(
    features: Features, weights: FloatArray, centres: FloatArray, variance: float, *, level: float, worth: float
) -> int:
    """How many groups fitted clusters form: those that cannot be told from a cluster with a tail are one.

    Parameters
    ----------
    features : Features
    weights, centres : arrays of shape (k,) and (k, d)
        Fitted clusters; centres are relative to where all phases are zero.
    variance : float
        Their common variance along every axis.
    level : float
        Chance of keeping apart, anywhere, what is a cluster with a tail.
    worth : float
        Drop of the squared residual, over its variance, that a cluster must bring to be there at all.

    Returns
    -------
    int
    """
    if len(weights) < 2:
        return len(weights)
    start = np.concatenate([[np.log(variance)], weights, centres.ravel()])
    apart, best = _without_idle(features, start, len(weights), worth)
    k = (len(best) - 1) // (features.d + 1)
    if k < 2:
        return k
    pairs = _near_pairs(best[k + 1 :].reshape(k, -1))
    needed = float(norm.isf(level / (2 * len(pairs)))) ** 2
    joined = np.zeros((k, k), dtype=bool)
    for a, b in pairs:
        tails = [features.fit(_with_tail(best, k, *ends), k - 1, tail=True)[0] for ends in ((a, b), (b, a))]
        joined[a, b] = min(tails) - apart < needed
    return int(connected_components(joined, directed=False)[0])


def _without_idle(features: Features, start: FloatArray, k: int, worth: float) -> tuple[float, FloatArray]:
    """Fit all clusters, and take out those that explain no more than noise: greedy growth leaves some behind."""
    value, best = features.fit(start, k)
    while k > 1:
        fewer = []
        for j in range(k):
            distance = [math.inf if i == j else _distance(best, k, i, j) for i in range(k)]
            fewer.append(features.fit(_merged(best, k, int(np.argmin(distance)), j), k - 1))
        least = min(fewer, key=lambda entry: entry[0])
        if least[0] - value > worth:
            break
        k, (value, best) = k - 1, least
    return value, best


def _centre(flat: FloatArray, k: int, j: int) -> FloatArray:
    return np.asarray(flat[k + 1 :].reshape(k, -1)[j])


def _distance(flat: FloatArray, k: int, a: int, b: int) -> float:
    return float(np.linalg.norm(_centre(flat, k, a) - _centre(flat, k, b)))


def _merged(flat: FloatArray, k: int, a: int, b: int) -> FloatArray:
    """Put one cluster, the first of k - 1, in the place of two."""
    weights, centres = flat[1 : k + 1], flat[k + 1 :].reshape(k, -1)
    others = [j for j in range(k) if j not in (a, b)]
    total = max(float(weights[a] + weights[b]), 1e-9)
    middle = (weights[a] * centres[a] + weights[b] * centres[b]) / total
    return np.concatenate([flat[:1], [total], weights[others], middle, centres[others].ravel()])


def _with_tail(flat: FloatArray, k: int, a: int, b: int) -> FloatArray:
    """Put a cluster, the first of k - 1, with a tail in the place of two."""
    weights, centres = flat[1 : k + 1], flat[k + 1 :].reshape(k, -1)
    order = [a, *(j for j in range(k) if j not in (a, b))]
    half = TAIL / 2 * (centres[b] - centres[a])
    return np.concatenate([flat[:1], weights[order], centres[order].ravel(), [weights[b]], half])


def _near_pairs(centres: FloatArray) -> list[tuple[int, int]]:
    distance = np.linalg.norm(centres[:, None] - centres, axis=2)
    near = np.argsort(distance, axis=1)[:, 1 : NEIGHBOURS + 1]
    return sorted({(min(i, int(j)), max(i, int(j))) for i in range(len(centres)) for j in near[i]})
