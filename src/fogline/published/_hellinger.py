r"""What private minimum Hellinger distance needs of the data: the loss, its derivatives, and constants of its noise.

With a kernel density :math:`g_n` and a family :math:`f_\theta` with score :math:`u_\theta`, appendix E of the paper has

.. math:: L_n(\theta) = 2\,HD^2(g_n, f_\theta) = 4 - 4\int\sqrt{g_n f_\theta}, \qquad
          \nabla L_n = -2\int\sqrt{g_n f_\theta}\,u_\theta, \qquad
          H_n = -\int\sqrt{g_n f_\theta}\,(u_\theta u_\theta^\top + 2\nabla u_\theta).

Each integral is a weighted sum over nodes: a fine grid, or the paper's draws from :math:`g_n`. Both read raw records.

References
----------
Deng and Vidyashankar, *Private Minimum Hellinger Distance Estimation via Hellinger Distance Differential Privacy*,
supplement, sections 6.7 and 6.8 and appendix E.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline.families import UnivariateFamily, family_named

__all__ = [
    "Nodes",
    "aberrant",
    "fisher_information",
    "gradient",
    "gradient_constant",
    "hessian",
    "hessian_constant",
    "kernel_values",
    "loss",
    "node_grid",
    "node_sample",
    "one_dimensional",
    "rule_of_thumb",
]

Array = NDArray[np.float64]

_GRID_CELLS = 600
_LOW, _HIGH = -2.4573, 2.5758
"""Standard normal quantiles of 0.7% and 99.5%."""

# Nodes for means under the family: probabilities expit(t) on an even grid of t, which converges geometrically.
_T = np.linspace(-22.0, 22.0, 177)
_PROBABILITY = 1.0 / (1.0 + np.exp(-_T))
_MASS = _PROBABILITY * _PROBABILITY[::-1] * (_T[1] - _T[0])


@dataclass(frozen=True, eq=False)
class Nodes:
    r"""Where an integral :math:`\int\sqrt{g_n}\,\phi` is summed: points, and the weights that take in :math:`g_n`."""

    x: Array
    weights: Array


def one_dimensional(family: object) -> UnivariateFamily:
    """Return a family on the line, from its name or as it is.

    Examples
    --------
    >>> one_dimensional("bivariate normal")
    Traceback (most recent call last):
    ValueError: family must have one dimension, got bivariate normal...
    """
    found = family_named(family)
    if found.dimension != 1:
        raise ValueError(f"family must have one dimension, got {family}")
    return cast(UnivariateFamily, found)


def rule_of_thumb(x: Array) -> float:
    r"""Half-width of the kernel, :math:`0.9 \min(s, \mathrm{IQR}/1.34)\, n^{-1/5}`; 1 where the data do not vary.

    The supplement asks for a compact kernel and a rate, no more. Silverman's figure, read as the *half-width* of
    Epanechnikov's kernel, gives the printed non-private means of sigma to about 0.01 at every n.

    Examples
    --------
    >>> round(rule_of_thumb(np.random.default_rng(0).normal(5, 2, size=1000)), 2)
    0.44
    """
    low, high = np.quantile(x, [0.25, 0.75])
    spreads = [value for value in (float(np.std(x)), float(high - low) / 1.34) if value > 0.0]
    return 0.9 * min(spreads) * len(x) ** -0.2 if spreads else 1.0


def kernel_values(at: Array, x: Array, bandwidth: float) -> Array:
    r"""Density estimate with Epanechnikov's kernel :math:`\tfrac34(1 - t^2)` on [-1, 1], from sorted records.

    Within a window of width 2h the estimate is a polynomial in sums of the records, so that a point costs two
    searches whatever the number of records.

    Examples
    --------
    >>> kernel_values(np.array([0.0, 0.5, 2.0]), np.array([0.0]), 1.0)
    array([0.75  , 0.5625, 0.    ])
    """
    middle = float(x[len(x) // 2])
    x, at = x - middle, at - middle
    first, second = (np.concatenate([[0.0], np.cumsum(power)]) for power in (x, x * x))
    low, high = np.searchsorted(x, at - bandwidth), np.searchsorted(x, at + bandwidth)
    number = high - low
    square = number * at * at - 2.0 * at * (first[high] - first[low]) + second[high] - second[low]
    values = 0.75 / (len(x) * bandwidth) * (number - square / bandwidth**2)
    return np.where(number > 0, np.maximum(values, 0.0), 0.0)


def node_grid(x: Array, bandwidth: float) -> Nodes:
    """Midpoints of even cells over where the density estimate of the sorted records is positive.

    Examples
    --------
    >>> nodes = node_grid(np.array([0.0]), 1.0)
    >>> round(float(np.sum(nodes.weights**2) / (nodes.x[1] - nodes.x[0])), 4)
    1.0
    """
    low, high = x[0] - bandwidth, x[-1] + bandwidth
    width = (high - low) / _GRID_CELLS
    points = low + width * (np.arange(_GRID_CELLS) + 0.5)
    return Nodes(points, width * np.sqrt(kernel_values(points, x, bandwidth)))


def node_sample(x: Array, bandwidth: float, size: int, rng: np.random.Generator) -> Nodes:
    """The paper's Monte-Carlo integrals: draws from the density estimate, which are records moved by the kernel.

    Examples
    --------
    >>> nodes = node_sample(np.array([7.0]), 1.0, 1000, np.random.default_rng(0))
    >>> float(abs(nodes.x - 7.0).max()) < 1.0
    True
    """
    points = rng.choice(x, size) + bandwidth * (2.0 * rng.beta(2.0, 2.0, size) - 1.0)
    # A draw at the very edge of all windows may round to an estimate of 0.
    values = np.maximum(kernel_values(points, x, bandwidth), 1e-12)
    return Nodes(points, 1.0 / (size * np.sqrt(values)))


def loss(family: UnivariateFamily, theta: ArrayLike, nodes: Nodes) -> float:
    r"""Return :math:`L_n(\theta) = 4 - 4\int\sqrt{g_n f_\theta}`.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> nodes = node_grid(np.sort(np.random.default_rng(0).normal(size=500)), 0.3)
    >>> loss(Normal(), [0.0, 1.0], nodes) < loss(Normal(), [1.0, 1.0], nodes) < 4.0
    True
    """
    inside, _ = _mirrored(family, theta)
    return 4.0 - 4.0 * float(_roots(family, inside, nodes).sum())


def gradient(family: UnivariateFamily, theta: ArrayLike, nodes: Nodes) -> Array:
    r"""Return :math:`\nabla L_n(\theta)`.

    A parameter that must be positive may be pushed below 0 by noise; the loss is then continued evenly, as the formulas
    of the normal density are in sigma.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> nodes = node_grid(np.sort(np.random.default_rng(0).normal(5, 2, size=500)), 0.5)
    >>> bool(gradient(Normal(), [4.0, 2.0], nodes)[0] < 0.0)
    True
    """
    inside, signs = _mirrored(family, theta)
    return signs * (-2.0 * _roots(family, inside, nodes) @ family.score(inside, nodes.x))


def hessian(family: UnivariateFamily, theta: ArrayLike, nodes: Nodes) -> Array:
    r"""Return :math:`H_n(\theta)`, continued as the gradient is.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> nodes = node_grid(np.sort(np.random.default_rng(0).normal(size=5000)), 0.2)
    >>> hessian(Normal(), [0.0, 1.0], nodes).round() + 0.0  # the Fisher information, about
    array([[1., 0.], [0., 2.]])
    """
    inside, signs = _mirrored(family, theta)
    parts = _curvature(family, inside, nodes.x)
    return np.outer(signs, signs) * -np.tensordot(_roots(family, inside, nodes), parts, axes=1)


def fisher_information(family: UnivariateFamily, theta: ArrayLike) -> Array:
    """Return the Fisher information of one record.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> fisher_information(Normal(), [5.0, 2.0]).round(6) + 0.0
    array([[0.25, 0.  ], [0.  , 0.5 ]])
    """
    inside, _ = _mirrored(family, theta)
    scores = family.score(inside, family.quantile(inside, _PROBABILITY))
    return np.asarray((scores * _MASS[:, None]).T @ scores)


def gradient_constant(family: UnivariateFamily, theta: ArrayLike) -> float:
    r"""Return the constant of Proposition 20, :math:`C = \max_i 2\sqrt2\,(\int f_\theta u_i^2)^{1/2}`, at one theta.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> round(gradient_constant(Normal(), [5.0, 2.0]), 6)
    2.0
    """
    return 2.0 * math.sqrt(2.0 * float(np.diag(fisher_information(family, theta)).max()))


def hessian_constant(family: UnivariateFamily, theta: ArrayLike) -> float:
    r"""Return its counterpart for the Hessian, :math:`\max_{ij} \sqrt2\,(\int f (u_i u_j + 2 u_{ij})^2)^{1/2}`.

    Examples
    --------
    >>> from fogline.families import Normal
    >>> round(hessian_constant(Normal(), [5.0, 2.0]), 3)  # sqrt(2 * 36)/4
    2.121
    """
    inside, _ = _mirrored(family, theta)
    parts = _curvature(family, inside, family.quantile(inside, _PROBABILITY))
    return math.sqrt(2.0 * float(np.tensordot(_MASS, parts**2, axes=1).max()))


def aberrant(estimates: ArrayLike, center: ArrayLike, scale: ArrayLike) -> NDArray[np.bool_]:
    """Say which private estimates of a mean section E.3 leaves out of its tables.

    Those outside the 0.7% and 99.5% quantiles of a normal law with the *non-private* estimates of mean and standard
    deviation: a rule for a simulation, which no user of a private release could follow.

    Examples
    --------
    >>> aberrant([5.0, 11.0, -1.0, np.nan], center=5.0, scale=2.0)
    array([False,  True,  True,  True])
    """
    values, middle, width = (np.asarray(part, dtype=np.float64) for part in (estimates, center, scale))
    z = (values - middle) / width
    return ~((z >= _LOW) & (z <= _HIGH))


def _mirrored(family: UnivariateFamily, theta: ArrayLike) -> tuple[Array, Array]:
    """Return parameters that the family takes, and the signs that the mirror at 0 gives to derivatives."""
    values = np.asarray(theta, dtype=np.float64)
    mirrored = np.array([low == 0.0 for low, _ in family.limits]) & (values <= 0.0)
    inside = np.where(mirrored, np.maximum(-values, np.finfo(np.float64).tiny), values)
    return inside, np.where(mirrored, -1.0, 1.0)


def _roots(family: UnivariateFamily, theta: Array, nodes: Nodes) -> Array:
    return nodes.weights * np.exp(0.5 * family.logpdf(theta, nodes.x))


def _curvature(family: UnivariateFamily, theta: Array, x: Array) -> Array:
    score = family.score(theta, x)
    return score[:, :, None] * score[:, None, :] + 2.0 * family.log_hessian(theta, x)
