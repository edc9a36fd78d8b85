"""The true densities of the integral-privacy paper's experiments, with the grids that they are integrated on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fogline.datasets import RING, THREE_GAUSSIANS, Mixture, random_mixture
from fogline.metrics import Quadrature

__all__ = ["Problem", "problem"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A true density, the public box that DPB is given, and the grid that integrals are taken on.

    Attributes
    ----------
    name : str
    mixture : Mixture
        The truth. For integrals it is cut to `bounds`, which hold all but 1e-4 of it: DPB says zero outside.
    bounds, reach : tuple of (low, high)
        Of the box, and of the grid, which holds the base as well.
    cells : int
        Of the grid, on each axis.
    """

    name: str
    mixture: Mixture
    bounds: tuple[tuple[float, float], ...]
    reach: tuple[tuple[float, float], ...]
    cells: int

    @cached_property
    def rule(self) -> Quadrature:
        """Nodes and weights."""
        return Quadrature.box(self.reach, cells=self.cells)

    @cached_property
    def truth(self) -> Array:
        """True density at the nodes, cut to the box."""
        low, high = np.array(self.bounds).T
        inside = ((self.rule.nodes >= low) & (self.rule.nodes <= high)).all(axis=1)
        values = self.mixture.pdf(self.rule.nodes) * inside
        return np.asarray(values / float(self.rule.weights @ values))

    def base(self, kind: str) -> Array:
        """Base density at the nodes: "normal" is standard, "uniform" flat on the box."""
        if kind == "normal":
            d = len(self.bounds)
            square = (self.rule.nodes**2).sum(axis=1)
            return np.asarray(np.exp(-0.5 * square) / (2.0 * math.pi) ** (d / 2.0))
        low, high = np.array(self.bounds).T
        inside = ((self.rule.nodes >= low) & (self.rule.nodes <= high)).all(axis=1)
        return np.asarray(inside / float(np.prod(high - low)))


@lru_cache(maxsize=32)
def problem(name: str, places: int = 0) -> Problem:
    """Give a problem by name; `places` is the seed of Gaussians placed at random.

    Parameters
    ----------
    name : str
        "ring", "three", "random-M" or "random-2d-M" with a number M of Gaussians.

    Examples
    --------
    >>> problem("random-3").mixture.centers.shape
    (3, 1)
    """
    line, plane = ((-1.0, 2.0),), ((-6.5, 6.5), (-6.5, 6.5))
    if name == "ring":
        return Problem(name, RING, plane, plane, 100)
    if name == "three":
        return Problem(name, THREE_GAUSSIANS, line, ((-6.0, 6.0),), 1200)
    kind, _, count = name.rpartition("-")
    if kind not in ("random", "random-2d") or not count.isdigit():
        raise ValueError(f'problem must be "ring", "three", "random-M" or "random-2d-M", got {name!r}')
    if kind == "random":
        return Problem(name, random_mixture(int(count), random_state=places), line, ((-6.0, 6.0),), 1200)
    return Problem(name, random_mixture(int(count), 2, random_state=places), plane, plane, 100)
