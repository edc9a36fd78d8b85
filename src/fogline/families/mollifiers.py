r"""Mollifiers: sets of densities so close to each other that draws from any of them look alike.

A set of densities is an :math:`\varepsilon`-mollifier when no two of them differ anywhere by a factor of more than
:math:`e^\varepsilon`. The one used here is relative to a public base :math:`Q_0`,

.. math:: M_\varepsilon = \{Q : -\varepsilon/2 \le \log (dQ/dQ_0)(x) \le \varepsilon/2 \text{ for all } x\} .

Any density with a finite ratio to the base can be brought into it by scaling and shifting the ratio (:func:`mollify`),
which keeps its modes; :func:`log_ratio_range` is how membership is checked.

References
----------
Husain, Cranko and Nock, Integral privacy for sampling from mollifier densities with approximation guarantees
(Definition 3, figure 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_bounds, check_count, check_epsilon

__all__ = ["LogRange", "Mollified", "log_ratio_range", "mollify", "scale_into"]

FloatArray = NDArray[np.float64]
Function = Callable[[FloatArray], ArrayLike]

_MARGIN = 1.0 - 2.0**-40
"""Scales are shortened by this factor, which is more than floats round."""


@dataclass(frozen=True)
class LogRange:
    """The least and the greatest value of a log-density ratio over a domain.

    Examples
    --------
    >>> LogRange(-0.5, 0.5).in_mollifier(1.0), LogRange(-0.5, 0.6).in_mollifier(1.0)
    (True, False)
    """

    low: float
    high: float

    @property
    def spread(self) -> float:
        """How far apart the ends are."""
        return self.high - self.low

    def within(self, bound: float) -> bool:
        """Say whether both ends lie within plus or minus `bound`, compared without rounding."""
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        return finite and max(-Fraction(self.low), Fraction(self.high)) <= Fraction(bound)

    def in_mollifier(self, epsilon: float) -> bool:
        """Say whether a density with this range of log-ratios to the base lies in the mollifier of `epsilon`."""
        return self.within(check_epsilon(epsilon) / 2.0)


def log_ratio_range(
    log_ratio: Function,
    domain: ArrayLike,
    *,
    cells: int | None = None,
    lipschitz: float = 0.0,
) -> LogRange:
    """Return the range of a log-density ratio over a domain.

    Parameters
    ----------
    log_ratio : callable
        Takes points of shape (n, d), returns n numbers. One that is NaN makes both ends NaN.
    domain : array-like of shape (n, d), or of shape (d, 2) with `cells`
        The points themselves, for which the range is exact; or, with `cells`, a box, whose lattice of so many cells
        an axis, corners included, takes its place.
    cells : int, optional
    lipschitz : float
        If the ratio is known to change by no more than this a unit of distance, the range is widened by what could
        happen between the lattice's points, and holds for all of the box.

    Examples
    --------
    >>> log_ratio_range(lambda x: 0.1 * x[:, 0], [(-2, 3)], cells=10)
    LogRange(low=-0.2, high=0.30000000000000004)
    >>> log_ratio_range(lambda x: 0.1 * x[:, 0], [[1.0], [2.0]])
    LogRange(low=0.1, high=0.2)
    """
    if cells is None:
        points, gap = np.asarray(domain, dtype=np.float64), 0.0
        if points.ndim != 2 or len(points) == 0:
            raise ValueError(f"domain must hold points, of shape (n, d), got shape {points.shape}")
    else:
        box = check_bounds(domain, name="domain")
        axes = [np.linspace(low, high, check_count(cells, "cells") + 1) for low, high in box]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box))
        gap = float(np.linalg.norm(np.ptp(box, axis=1) / cells)) / 2.0
    values = np.asarray(log_ratio(points), dtype=np.float64)
    if values.shape != (len(points),):
        raise ValueError(f"log_ratio must return one number a point, got shape {values.shape}")
    return LogRange(float(values.min()) - lipschitz * gap, float(values.max()) + lipschitz * gap)


def scale_into(least: float, most: float, *, epsilon: float) -> float:
    r"""Return the largest s for which :math:`1 - s + s r` lies in the mollifier for every r from `least` to `most`.

    A ratio r to the base has mean 1 under it, so `least` is at most 1 and `most` at least 1, and so has
    :math:`1 - s + s r`: the mixture of base and density with weights 1 - s and s.

    Examples
    --------
    >>> round(scale_into(0.0, 5.0, epsilon=2.0), 4)       # the upper end decides: (e - 1) / 4
    0.4296
    >>> scale_into(0.9, 1.1, epsilon=2.0)                 # it is there already
    1.0
    """
    half = check_epsilon(epsilon) / 2.0
    if not (0.0 <= least <= 1.0 <= most < math.inf):
        raise ValueError(f"a density's ratio to the base runs from at most 1 to at least 1, got {least} to {most}")
    below = math.inf if least == 1.0 else -math.expm1(-half) / (1.0 - least)
    above = math.inf if most == 1.0 else math.expm1(half) / (most - 1.0)
    return 1.0 if min(below, above) > 1.0 else min(below, above) * _MARGIN


@dataclass(frozen=True)
class Mollified:
    """A density ratio brought into a mollifier: ``1 - scale + scale * ratio``.

    Modes stay where they are, and gradients of the ratio keep their direction.
    """

    ratio: Function
    scale: float

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the new ratio to the base."""
        return 1.0 - self.scale + self.scale * np.asarray(self.ratio(x), dtype=np.float64)

    def log_ratio(self, x: FloatArray) -> FloatArray:
        """Return its logarithm."""
        return np.asarray(np.log(self(x)))


def mollify(ratio: Function, domain: ArrayLike, *, epsilon: float, cells: int | None = None) -> Mollified:
    """Bring a density into the mollifier by scaling and shifting its ratio to the base.

    Parameters
    ----------
    ratio : callable
        Takes points of shape (n, d), returns the ratio of the density to the base, not its logarithm.
    domain, cells
        As for :func:`log_ratio_range`. The extremes are taken from there; for the result to lie in the mollifier the
        domain must hold the places where the ratio is least and greatest.
    epsilon : float

    Examples
    --------
    >>> peak = lambda x: 3 * x[:, 0] ** 2                 # a density on (0, 1)
    >>> tame = mollify(peak, [(0, 1)], cells=100, epsilon=1.0)
    >>> log_ratio_range(tame.log_ratio, [(0, 1)], cells=100).in_mollifier(1.0)
    True
    >>> round(tame.scale, 3)
    0.324
    """
    extremes = log_ratio_range(ratio, domain, cells=cells)
    return Mollified(ratio, scale_into(min(extremes.low, 1.0), max(extremes.high, 1.0), epsilon=epsilon))
