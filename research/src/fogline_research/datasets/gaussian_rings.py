r"""The three problems of the integral-privacy paper: a ring, three Gaussians on a line, Gaussians placed at random.

What the paper leaves open is fixed here and has a name. The ring is that of the authors' earlier public experiments
with boosted densities: eight components on a circle of radius 4 with variance 1/4, around a standard normal base. The
second argument of the paper's :math:`\mathcal N(0.3, 0.01)` is taken for a variance, as is said of the random
Gaussians. In the plane the paper does not say where means are drawn and how wide components are: here uniformly from
the square that the ring touches, and as wide as those of the ring.

References
----------
Husain, Cranko and Nock, *Integral privacy for sampling from mollifier densities with approximation guarantees*,
section 5.
"""

from __future__ import annotations

import math

import numpy as np

from fogline._validation import check_count, check_positive
from fogline.datasets.simulated import Mixture, Sample, Seed, _draw, _generator

__all__ = [
    "PLANE_BOUNDS",
    "RANDOM_DEVIATION",
    "RING",
    "RING_DEVIATION",
    "RING_RADIUS",
    "THREE_GAUSSIANS",
    "gaussian_ring",
    "random_gaussians",
    "random_mixture",
    "ring_mixture",
    "three_gaussians",
]

RING_RADIUS = 4.0
RING_DEVIATION = 0.5
RING_COMPONENTS = 8

RANDOM_DEVIATION = 0.1
"""On the line: variance 0.01, means in the unit interval."""

PLANE_BOUNDS = (-RING_RADIUS, RING_RADIUS)
"""In the plane: range of the means on both axes; the deviation is that of the ring."""


def ring_mixture(*, radius: float = RING_RADIUS, deviation: float = RING_DEVIATION) -> Mixture:
    """Eight equal Gaussians, regularly spaced on a circle around 0.

    Examples
    --------
    >>> ring_mixture().centers[2].round(6) + 0.0
    array([0., 4.])
    """
    angles = 2.0 * math.pi * np.arange(RING_COMPONENTS) / RING_COMPONENTS
    centers = check_positive(radius, "radius") * np.column_stack([np.cos(angles), np.sin(angles)])
    width = [check_positive(deviation, "deviation")] * RING_COMPONENTS
    return Mixture.of([1.0 / RING_COMPONENTS] * RING_COMPONENTS, centers.tolist(), width)


RING = ring_mixture()
THREE_GAUSSIANS = Mixture.of([1 / 3] * 3, [[0.3], [0.5], [0.7]], [0.1, math.sqrt(0.1), math.sqrt(0.1)])


def gaussian_ring(n: int, *, random_state: Seed = None) -> Sample:
    """Draw from the ring of eight Gaussians.

    Examples
    --------
    >>> sample = gaussian_ring(100, random_state=0)
    >>> sample.X.shape, len(sample.modes)
    ((100, 2), 8)
    """
    return _draw(RING, n, random_state)


def three_gaussians(n: int, *, random_state: Seed = None) -> Sample:
    r"""Draw from :math:`\frac13 (\mathcal N(0.3, 0.01) + \mathcal N(0.5, 0.1) + \mathcal N(0.7, 0.1))`.

    The two wide components carry no mode of their own.

    Examples
    --------
    >>> sample = three_gaussians(5, random_state=0)
    >>> sample.X.shape, sample.modes.round(2).tolist()
    ((5, 1), [[0.31]])
    """
    return _draw(THREE_GAUSSIANS, n, random_state)


def random_mixture(components: int, d: int = 1, *, random_state: Seed = None) -> Mixture:
    """Place equal Gaussians at random: on the line in the unit interval, or in the plane.

    Parameters
    ----------
    components : int
        How many; the paper has 1 to 10.
    d : {1, 2}
    random_state : seed or Generator
        Of the places.

    Examples
    --------
    >>> mixture = random_mixture(10, random_state=0)
    >>> mixture.centers.shape, bool(mixture.centers.min() >= 0), float(mixture.scales[0, 0])
    ((10, 1), True, 0.1)
    """
    count = check_count(components, "components")
    if d not in (1, 2):
        raise ValueError(f"d must be 1 or 2, got {d}")
    (low, high), deviation = ((0.0, 1.0), RANDOM_DEVIATION) if d == 1 else (PLANE_BOUNDS, RING_DEVIATION)
    centers = _generator(random_state).uniform(low, high, size=(count, d))
    return Mixture.of([1.0 / count] * count, centers.tolist(), [deviation] * count)


def random_gaussians(n: int, components: int, d: int = 1, *, random_state: Seed = None) -> Sample:
    """Draw from Gaussians that are placed at random themselves.

    Examples
    --------
    >>> sample = random_gaussians(50, 3, d=2, random_state=0)
    >>> sample.X.shape, sample.centers.shape
    ((50, 2), (3, 2))
    """
    rng = _generator(random_state)
    return _draw(random_mixture(components, d, random_state=rng), n, rng)
