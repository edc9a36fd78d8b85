r"""How far a density is from the true one, by quadrature on a grid.

Every function takes the two densities as arrays of values at the nodes of one `Quadrature`: with nodes
:math:`x_i` and weights :math:`w_i`, an integral over the truth is :math:`\sum_i w_i p(x_i) f(x_i)`. Nothing is
drawn, so that differences between methods are not noise of the measurement.

`best_in_mollifier` is the yardstick of an integrally private sampler: the density that comes closest to the truth
among all whose ratio to a base is bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar

from fogline._validation import check_bounds, check_count, check_epsilon, check_level, check_positive

__all__ = ["Quadrature", "best_in_mollifier", "kl_divergence", "mode_coverage", "negative_log_likelihood"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Nodes and weights for integrals over a box: the middles of equal cells.

    Attributes
    ----------
    nodes : ndarray of shape (m, d)
    weights : ndarray of shape (m,)
        Volume of each cell.

    Examples
    --------
    >>> rule = Quadrature.box([(0, 1), (0, 2)], cells=100)
    >>> round(float(rule.weights @ (rule.nodes[:, 0] * rule.nodes[:, 1])), 6)
    1.0
    """

    nodes: Array
    weights: Array

    @classmethod
    def box(cls, bounds: object, *, cells: int) -> Quadrature:
        """Build the rule for a box, with so many cells on each axis."""
        limits, size = check_bounds(bounds), check_count(cells, "cells")
        axes = [low + (high - low) * (np.arange(size) + 0.5) / size for low, high in limits]
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        volume = float(np.prod((limits[:, 1] - limits[:, 0]) / size))
        return cls(nodes, np.full(len(nodes), volume))


def _values(values: ArrayLike, weights: ArrayLike, name: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != np.shape(weights) or array.ndim != 1:
        raise ValueError(f"{name} must have one value for each weight, got shape {array.shape}")
    if not (array >= 0).all() or not np.isfinite(array).all():
        raise ValueError(f"{name} must hold densities: finite and not negative")
    return array


def negative_log_likelihood(p: ArrayLike, q: ArrayLike, weights: ArrayLike) -> float:
    r"""Expected loss of a density: :math:`-\int p \log q`.

    Parameters
    ----------
    p, q : array-like of shape (m,)
        Values of the truth and of the density that is judged.
    weights : array-like of shape (m,)
        Of the quadrature.

    Returns
    -------
    float
        Infinite where `q` vanishes and `p` does not.

    Examples
    --------
    >>> rule = Quadrature.box([(0, 2)], cells=50)
    >>> flat = np.full(50, 0.5)
    >>> round(negative_log_likelihood(flat, flat, rule.weights), 6)         # log 2
    0.693147
    """
    truth, model = _values(p, weights, "p"), _values(q, weights, "q")
    covered = truth > 0
    with np.errstate(divide="ignore"):
        loss = -np.log(model[covered])
    return float((np.asarray(weights)[covered] * truth[covered]) @ loss)


def kl_divergence(p: ArrayLike, q: ArrayLike, weights: ArrayLike) -> float:
    r"""Kullback-Leibler divergence :math:`\int p \log(p/q)`.

    Parameters
    ----------
    p, q, weights
        As in `negative_log_likelihood`.

    Examples
    --------
    >>> rule = Quadrature.box([(-12, 12)], cells=2000)
    >>> x = rule.nodes[:, 0]
    >>> normal = lambda mean: np.exp(-0.5 * (x - mean) ** 2) / np.sqrt(2 * np.pi)
    >>> round(kl_divergence(normal(0.0), normal(2.0), rule.weights), 6)       # half the squared distance
    2.0
    """
    return negative_log_likelihood(p, q, weights) - negative_log_likelihood(p, p, weights)


def mode_coverage(p: ArrayLike, q: ArrayLike, weights: ArrayLike, *, mass: float = 0.95) -> float:
    r"""Probability, under the truth, of the region where the model is dense.

    .. math:: P(q > t) \quad \text{for the } t \text{ with} \quad Q(q > t) = \text{mass}.

    The integral-privacy paper prints both inequalities the other way round, while its text (and the definition
    that it cites) speaks of the *high* density region of the model: this is the one.

    Parameters
    ----------
    p, q, weights
        As in `negative_log_likelihood`; `q` need not be normalised.
    mass : float
        Share of the model in the region.

    Returns
    -------
    float
        About `mass` if the two are equal. The last cell of the region counts with the part of it that is needed,
        so that the result does not jump with the grid.

    References
    ----------
    Tolstikhin et al. (2017), *AdaGAN: boosting generative models*.

    Examples
    --------
    >>> rule = Quadrature.box([(-8, 8)], cells=2000)
    >>> x = rule.nodes[:, 0]
    >>> normal = lambda scale: np.exp(-0.5 * (x / scale) ** 2) / scale / np.sqrt(2 * np.pi)
    >>> round(mode_coverage(normal(1.0), normal(1.0), rule.weights), 4)
    0.95
    >>> round(mode_coverage(normal(1.0), normal(0.5), rule.weights), 3)         # a model that is too narrow
    0.673
    """
    truth, model = _values(p, weights, "p"), _values(q, weights, "q")
    share = check_level(mass, "mass")
    order = np.argsort(-model, kind="stable")
    volume = np.asarray(weights, dtype=np.float64)[order]
    modelled = np.cumsum(volume * model[order])
    if not modelled[-1] > 0:
        raise ValueError("q must have some mass")
    covered = np.cumsum(volume * truth[order])
    return float(np.interp(share * modelled[-1], np.r_[0.0, modelled], np.r_[0.0, covered]))


def best_in_mollifier(
    p: ArrayLike, q0: ArrayLike, weights: ArrayLike, *, epsilon: float, width: float | None = None
) -> Array:
    r"""Density nearest to `p` among those whose ratio to `q0` is bounded.

    Minimise :math:`KL(p, q)` over all densities with :math:`e^{-\varepsilon/2} \le q/q_0 \le e^{\varepsilon/2}`, the
    mollifier :math:`M_\varepsilon`. The problem is convex and its solution is water between two banks,

    .. math:: q = \min\bigl(\max(p/\lambda,\; a\,q_0),\; b\,q_0\bigr), \qquad \int q = 1,

    with one number :math:`\lambda` to search for (stationarity: :math:`p/q = \lambda` wherever neither bound holds).

    Parameters
    ----------
    p, q0, weights
        As in `negative_log_likelihood`.
    epsilon : float
        Of the mollifier.
    width : float, optional
        If given, the logarithm of the ratio has to lie in *some* interval of this width that contains 0, instead of
        the fixed one: what rejection with an acceptance probability in :math:`[e^{-\text{width}}, 1]` can reach.

    Returns
    -------
    ndarray of shape (m,)

    Examples
    --------
    >>> rule = Quadrature.box([(0, 1)], cells=1000)
    >>> flat, tent = np.ones(1000), 2 - 4 * abs(rule.nodes[:, 0] - 0.5)
    >>> best = best_in_mollifier(tent, flat, rule.weights, epsilon=1.0)
    >>> round(float(abs(np.log(best)).max()), 6), round(float(rule.weights @ best), 6)
    (0.5, 1.0)
    >>> kl_divergence(tent, best, rule.weights) < kl_divergence(tent, flat, rule.weights)
    True
    """
    truth, base = _values(p, weights, "p"), _values(q0, weights, "q0")
    water = _Water(truth, base, np.asarray(weights, dtype=np.float64))
    half = check_epsilon(epsilon) / 2.0
    if width is None:
        return water.between(math.exp(-half), math.exp(half))
    span = math.exp(check_positive(width, "width"))
    # The constraints least * q0 <= q <= span * least * q0 are linear in (q, least): the best loss is convex in it.
    found = minimize_scalar(
        lambda least: negative_log_likelihood(truth, water.between(least, span * least), weights),
        bounds=(1.0 / span, 1.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return water.between(float(found.x), span * float(found.x))


class _Water:
    """Fill p over a multiplier between two multiples of q0, so that the whole is 1.

    In the order of p / q0 the nodes on the lower bank come first and those on the upper bank last, so that the mass at
    any level takes two searches in cumulative sums.
    """

    def __init__(self, p: Array, q0: Array, volume: Array) -> None:
        self.p, self.q0 = p, q0 / float(volume @ q0)
        ratio = np.divide(p, self.q0, out=np.zeros_like(p), where=self.q0 > 0)
        order = np.argsort(ratio, kind="stable")
        self.ratio = ratio[order]
        self.truth = np.r_[0.0, np.cumsum((volume * p)[order])]
        self.base = np.r_[0.0, np.cumsum((volume * self.q0)[order])]

    def mass(self, level: float, least: float, most: float) -> float:
        """Whole of the density that is p times `level` between the banks."""
        low = int(np.searchsorted(self.ratio, least / level, side="left"))
        high = int(np.searchsorted(self.ratio, most / level, side="right"))
        middle = level * (self.truth[high] - self.truth[low])
        return float(least * self.base[low] + middle + most * (self.base[-1] - self.base[high]))

    def between(self, least: float, most: float) -> Array:
        """Density between least * q0 and most * q0."""
        seen = self.ratio[self.ratio > 0]
        if least >= 1.0 or most <= 1.0 or not seen.size:
            return self.q0
        first, last = math.log(0.5 * least / seen[-1]), math.log(2.0 * most / seen[0])
        if self.mass(math.exp(last), least, most) <= 1.0:  # all of p is on the upper bank: what is left costs nothing
            empty = float(self.base[np.searchsorted(self.ratio, 0.0, side="right")])
            return self.q0 * np.where(self.p > 0, most, (1.0 - most * (self.base[-1] - empty)) / empty)
        log_level = brentq(lambda t: self.mass(math.exp(t), least, most) - 1.0, first, last, xtol=1e-13)
        return np.clip(self.p * math.exp(float(log_level)), least * self.q0, most * self.q0)
