"""Simulated data for modal regression with known conditional modes: the two sets of the DP-GRAMS paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_count
from fogline.datasets.simulated import Seed, _generator

__all__ = ["RegressionSample", "sinusoidal_mixture", "three_components"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegressionSample:
    """Records with a response, natural public bounds, and the true conditional modes.

    Attributes
    ----------
    X : array of shape (n, 1)
    y : array of shape (n,)
    x_bounds, y_bounds : tuple of float
        Round numbers that one would give without looking at the data; natural for what is measured.
    labels : array of int, shape (n,)
        Component that each record comes from.
    conditional_modes : callable
        Takes places x and returns the true modes of y there, one sorted array a place.
    """

    X: Array
    y: Array
    x_bounds: tuple[float, float]
    y_bounds: tuple[float, float]
    labels: NDArray[np.int64]
    conditional_modes: Callable[[ArrayLike], list[Array]]


def _top(centres: Array, weights: Array, sigma: float) -> Array:
    """Modes of a mixture of Gaussians of one deviation, sorted: fixed-point steps from each centre."""
    found = centres.copy()
    for _ in range(200):
        closeness = weights * np.exp(-0.5 * ((found[:, None] - centres) / sigma) ** 2)
        found = (closeness @ centres) / closeness.sum(axis=1)
    return np.sort(found)


# -- three components ----------------------------------------------------------------------------------------

_INTERVALS = ((0.0, 0.5), (0.4, 0.7), (0.6, 1.0))
_LEVELS = (3.0, 2.0, 1.0)
_LEVEL_SIGMA = 0.2


def _component_modes(x: ArrayLike) -> list[Array]:
    modes = []
    for place in np.asarray(x, dtype=np.float64).ravel():
        alive = [k for k, (low, high) in enumerate(_INTERVALS) if low <= place <= high]
        weights = np.array([1 / (_INTERVALS[k][1] - _INTERVALS[k][0]) for k in alive])
        modes.append(_top(np.array([_LEVELS[k] for k in alive]), weights, _LEVEL_SIGMA))
    return modes


def three_components(n: int, *, random_state: Seed = None) -> RegressionSample:
    """Draw n records in three equal parts that overlap in x (DP-GRAMS paper, section 5.1.2).

    x is uniform on (0, 0.5), (0.4, 0.7) and (0.6, 1); y is normal around 3, 2 and 1 with deviation 0.2.

    Examples
    --------
    >>> sample = three_components(300, random_state=0)
    >>> sample.X.shape, sample.y.shape
    ((300, 1), (300,))
    >>> [modes.round(3).tolist() for modes in sample.conditional_modes([0.2, 0.45])]
    [[3.0], [2.0, 3.0]]
    """
    rng = _generator(random_state)
    size = check_count(n, "n", minimum=0)
    labels = np.arange(size) * 3 // max(size, 1)
    low, high = np.array(_INTERVALS).T
    x = rng.uniform(low[labels], high[labels])
    y = rng.normal(np.array(_LEVELS)[labels], _LEVEL_SIGMA)
    return RegressionSample(x[:, None], y, (0.0, 1.0), (0.0, 4.0), labels.astype(np.int64), _component_modes)


# -- sinusoids -----------------------------------------------------------------------------------------------

_SHIFTS = (1.5, 0.0)
_WAVE_SIGMA = 0.15


def _wave(x: Array) -> Array:
    return np.asarray(0.5 * np.sin(3 * np.pi * x))


def _wave_modes(x: ArrayLike) -> list[Array]:
    places = np.asarray(x, dtype=np.float64).ravel()
    inside = (places >= 0) & (places <= 1)
    base = _top(np.array(_SHIFTS), np.ones(2), _WAVE_SIGMA)
    return [base + wave if ok else np.empty(0) for wave, ok in zip(_wave(places), inside, strict=True)]


def sinusoidal_mixture(n: int, *, random_state: Seed = None) -> RegressionSample:
    r"""Draw n records, half around each of two waves (supplement of the DP-GRAMS paper, section 1.4).

    x is uniform on (0, 1), y is normal around :math:`1.5 + 0.5\sin 3\pi x` for the first half of the records and around
    :math:`0.5\sin 3\pi x` for the second, with deviation 0.15.

    Examples
    --------
    >>> sample = sinusoidal_mixture(200, random_state=0)
    >>> [modes.round(3).tolist() for modes in sample.conditional_modes([0.0, 0.5])]
    [[0.0, 1.5], [-0.5, 1.0]]
    """
    rng = _generator(random_state)
    size = check_count(n, "n", minimum=0)
    labels = (np.arange(size) >= size // 2).astype(np.int64)
    x = rng.uniform(0.0, 1.0, size)
    y = np.array(_SHIFTS)[labels] + _wave(x) + rng.normal(0.0, _WAVE_SIGMA, size)
    return RegressionSample(x[:, None], y, (0.0, 1.0), (-1.5, 3.0), labels, _wave_modes)
