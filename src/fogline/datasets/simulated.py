"""Simulated data sets: the DP-GRAMS paper's two mixtures, three of our own, and the uniform box."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from fogline._typing import FloatArray
from fogline._validation import check_count
from fogline.datasets.mixtures import Mixture, Sample, mixture_modes

__all__ = [
    "GAUSSIAN_MIXTURE4",
    "OWN_MIXTURES",
    "T_MIXTURE5",
    "gaussian_mixture4",
    "own_mixture",
    "t_mixture5",
    "uniform_box",
]

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
