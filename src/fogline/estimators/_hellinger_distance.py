r"""The distance that a fit minimises, made fit for noise, and how its minimum answers to small changes.

Let :math:`g` be the release read at one bandwidth and :math:`m_\theta` the family as the release would show it. The
distance is

.. math:: \int_K \Big(\sqrt{g + c} - \sqrt{\kappa m_\theta + c}\Big)^2 dx .

Counts have a variance proportional to the density, the privacy noise has the same everywhere; with c = n times the
spectral density of the noise, :math:`\sqrt{g + c}` has the same variance at every point (Anscombe's transform for
counts with Gaussian noise), and least squares of such roots is as good as any weighting. Without noise c is 0, and
this is the Hellinger distance. c is at least two deviations of the noise, and where noise makes g + c small even so,
the root goes on as its tangent.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fogline.estimators._hellinger_field import SmoothedFamily

__all__ = ["SHARES", "minimise", "noise_constant", "response", "root", "tangent"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

TANGENT = 0.25
"""Below this part of c the root goes on as its tangent."""

SHARES = (0.05, 3.0)
"""Range of the explained share; the released count, by which it is relative, is noisy itself."""

LEAST_CONSTANT = 2.0
"""c is at least so many deviations of the noise: else roots of noise are too far from linear for honest errors."""


def noise_constant(field: SmoothedFamily, theta: FloatArray) -> float:
    """N times the spectral density of the privacy noise, where the family's derivatives look at it."""
    directions = field.jacobian(theta)
    norms = np.linalg.norm(directions, axis=0)
    directions = directions[:, norms > 0] / norms[norms > 0]
    level = field.noise_covariance(directions).trace() / max(directions.shape[1], 1) * field.volume
    tiny = 1e-6 / (field.volume * len(field.released))
    return float(max(field.count * level, LEAST_CONSTANT * math.sqrt(field.noise_variance), tiny))


def root(values: FloatArray, c: float) -> FloatArray:
    """2 sqrt(values + c), continued by its tangent below the quarter of c."""
    total, least = values + c, TANGENT * c
    inner = 2.0 * np.sqrt(np.maximum(total, least))
    return np.where(total < least, inner + (total - least) / math.sqrt(least), inner)


def _slope(values: FloatArray, c: float) -> FloatArray:
    return 1.0 / np.sqrt(np.maximum(values + c, TANGENT * c))


def _expected_root(field: SmoothedFamily, model: FloatArray, c: float) -> FloatArray:
    """Mean of the root of a noisy density around `model`, to second order: roots of noise are biased downward."""
    variance = field.noise_variance + np.maximum(model, 0.0) * field.energy / field.count
    return root(model, c) - 0.25 * variance * _slope(model, c) ** 3


def minimise(
    field: SmoothedFamily,
    start: FloatArray,
    kept: BoolArray,
    c: float,
    *,
    beside: FloatArray | None = None,
    tolerance: float = 1e-6,
) -> tuple[FloatArray, float]:
    """Return parameters and share of least distance within the bounds, from a start, and the distance.

    Parameters
    ----------
    beside : array, optional
        Smoothed density of something beside the family; its share comes last in the point.
    """
    from scipy.optimize import least_squares

    m = len(field.box)
    box = np.vstack([field.box, SHARES] if beside is None else [field.box, SHARES, (0.0, SHARES[1])])
    width = box[:, 1] - box[:, 0]
    # Derivatives are taken on both sides of a point: keep their steps inside.
    low, high = box[:, 0] + 2e-4 * width, box[:, 1] - 2e-4 * width
    low[m + 1 :] = 0.0
    released = root(field.released, c)[kept]

    def shown(point: FloatArray, shape: FloatArray) -> FloatArray:
        return np.asarray(point[m] * shape if beside is None else point[m] * shape + point[m + 1] * beside)

    def residuals(point: FloatArray) -> FloatArray:
        return np.asarray(released - _expected_root(field, shown(point, field.model(point[:m])), c)[kept])

    def derivatives(point: FloatArray) -> FloatArray:
        shape = field.model(point[:m])
        columns = [point[m] * field.jacobian(point[:m]), shape, *([] if beside is None else [beside])]
        return np.asarray(-(_slope(shown(point, shape), c)[:, None] * np.column_stack(columns))[kept])

    inside = np.clip(start, low + 1e-6 * width, high - 1e-6 * width)
    found = least_squares(
        residuals, inside, derivatives, bounds=(low, high), x_scale=width, xtol=tolerance, max_nfev=60
    )
    return np.asarray(found.x), float(found.cost)


def response(field: SmoothedFamily, point: FloatArray, c: float, kept: BoolArray) -> FloatArray:
    r"""How the minimum answers to the released density, shape (points, m + 1).

    Near the solution it moves by :math:`(J^\top J)^{-1} J^\top` times the change of the roots, which is linear in the
    released density.
    """
    slope, jacobian = tangent(field, point, c, kept)
    inverse = np.linalg.pinv(jacobian.T @ jacobian, rcond=1e-12, hermitian=True)
    return (inverse @ jacobian.T).T * slope[:, None]


def tangent(field: SmoothedFamily, point: FloatArray, c: float, kept: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Derivative of the roots in the density, and in parameters and share; 0 where nothing is kept."""
    shape = field.model(point[:-1])
    slope = np.where(kept, _slope(point[-1] * shape, c), 0.0)
    return slope, slope[:, None] * np.column_stack([point[-1] * field.jacobian(point[:-1]), shape])
