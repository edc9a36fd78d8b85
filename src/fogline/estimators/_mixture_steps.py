r"""Reading of a private step of expectation-maximisation for mixtures: what the noise leaves to be believed.

The sums are those of :class:`fogline.locate.mixture_step.StepQuery`. A step shows, for each component, the
offset of its mean and its covariance in the component's own whitened coordinates, where a component that is right has
offset 0 and covariance I. Both come with noise of known variance :math:`\tau^2` an entry. The component itself is
known up to an error of variance p from the steps before, so the m numbers y that a step shows have variance
:math:`p + \tau^2` or, where the step before had not converged, more. The change that is believed is

.. math:: b\,y, \qquad b = \frac{v}{v + \tau^2}, \qquad v = p \text{ or } |y|^2/m - \tau^2,

the latter where p is unknown or y is longer than p explains, and the error that is left has variance
:math:`b\,\tau^2`. Where p is unknown this is the estimator of James and Stein, else the filter of Kalman: each step
counts with the inverse of its variance, and none undoes another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline.locate.mixture_step import (
    FARTHEST_CENTRE,
    OFFSET_BITS,
    SHARE,
    GaussianClusters,
    Kind,
    StepQuery,
    mean_lever,
    square_lever,
)
from fogline.locate.private_pca import BESIDE, DIAGONAL

__all__ = ["MixtureState", "covariance_noise", "read_step", "step_kind"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EIGENVALUES = (0.4, 2.5)
"""A step changes no variance by more than these factors."""

SURPRISE = 3.0
"""A step that shows more than is expected by this many deviations finds that the one before had not converged."""

READABLE = 0.5
"""Covariances are released where the noise of a whitened one, as a Frobenius norm over the root of d, is below this."""


@dataclass(frozen=True, eq=False)
class MixtureState:
    """A mixture and how well the releases so far know it.

    Attributes
    ----------
    model : GaussianClusters
    mean_variances : array of shape (k,)
        Variance, from the privacy noise, of each coordinate of a whitened mean.
    shape_variances : array of shape (k,)
        The same of the entries of a whitened covariance; 0 where nothing but the start is known of it.
    weight_sds : array of shape (k,)
    kind : {"full", "tied", "round"}
        What the last step released of the shapes.
    """

    model: GaussianClusters
    mean_variances: FloatArray
    shape_variances: FloatArray
    weight_sds: FloatArray
    kind: Kind = "round"


def read_step(
    state: MixtureState,
    query: StepQuery,
    values: IntArray,
    scale: float,
    *,
    count: float,
    least: float,
    variance_range: tuple[float, float],
) -> MixtureState:
    """Improved mixture from the released sums of a step.

    Parameters
    ----------
    state : MixtureState
        Before the step.
    query : StepQuery
        Of the state's model.
    values, scale
        The released sums and their noise.
    count : float
        Released number of records.
    least : float
        Smallest weight that is believed.
    variance_range : (float, float)
        Smallest and largest variance of a component along any direction.
    """
    k, r, q = query.k, query.r, query.radius / 2.0**OFFSET_BITS
    count_unit, offset_unit, _ = query.units
    counts = values[:k] / float(SHARE * count_unit)
    sizes = np.maximum(counts, max(least * count, 1.0))
    unit = SHARE * offset_unit * 2.0**OFFSET_BITS * mean_lever(r, q)
    offsets = values[k : k + k * r].reshape(k, r) / unit / sizes[:, None]
    offsets, mean_variances = believed(offsets, scale / unit / sizes, state.mean_variances)
    shapes, shape_variances = _shapes(state, query, values[k + k * r :], scale, sizes, offsets)
    means = query.model.means + np.einsum("kij,kj->ki", query.factors, offsets)
    farthest = FARTHEST_CENTRE / query.steps
    covariances = np.stack([_within(f @ s @ f.T, variance_range) for f, s in zip(query.factors, shapes, strict=True)])
    model = GaussianClusters(sizes / sizes.sum(), np.clip(means, -farthest, farthest), covariances)
    weight_sds = np.full(k, scale / float(SHARE * count_unit) / max(float(sizes.sum()), 1.0))
    return MixtureState(model, mean_variances, shape_variances, weight_sds, query.kind)


def believed(seen: FloatArray, noise: FloatArray, before: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Changes that are believed, one row of numbers for each component, and the variance of what error is left.

    Parameters
    ----------
    seen : array of shape (k, m)
    noise : array of shape (k,)
        Standard deviation of the noise of each number.
    before : array of shape (k,)
        Variance of the error before this step; 0 where it is unknown.

    Examples
    --------
    >>> change, left = believed(np.array([[1.0, 1.0], [3.0, 3.0]]), np.ones(2), np.array([1.0, 0.0]))
    >>> change.round(2).tolist(), left.round(2).tolist()
    ([[0.5, 0.5], [2.67, 2.67]], [0.5, 0.89])
    """
    squared = noise**2
    shown = np.mean(seen**2, axis=1)
    expected = before + squared
    surprised = shown > expected * (1 + SURPRISE * math.sqrt(2 / seen.shape[1]))
    variance = np.where((before == 0) | surprised, np.maximum(shown - squared, before), before)
    factor = variance / np.maximum(variance + squared, 1e-300)
    return seen * factor[:, None], factor * squared


def step_kind(weights: FloatArray, r: int, count: float, scale: float) -> Kind:
    """Choose what a step releases of the shapes, from released numbers: only what its noise would not drown."""
    smaller = float(np.quantile(weights, 0.25, method="lower"))
    if covariance_noise("full", r, count * smaller, scale) < READABLE:
        return "full"
    return "tied" if covariance_noise("tied", r, count, scale) < READABLE else "round"


def covariance_noise(kind: Kind, r: int, records: float, scale: float) -> float:
    """Noise of a whitened covariance, as a Frobenius norm over the root of r, of a step with noise `scale`."""
    q = math.sqrt(r) + 0.5
    norm = math.hypot(*StepQuery.lengths(kind), 1.0)
    return math.sqrt(r) * scale * q * q * norm / square_lever(r, q) / max(records, 1.0)


def _shapes(
    state: MixtureState, query: StepQuery, values: IntArray, scale: float, sizes: FloatArray, offsets: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Whitened covariance of each component, and the variance of its entries' error."""
    k, r = query.k, query.r
    identity = np.eye(r)
    if query.kind == "round":
        return np.repeat(identity[None], k, axis=0), state.shape_variances
    first, second = np.triu_indices(r)
    isometric = np.where(first != second, math.sqrt(2), 1.0)
    lever = square_lever(r, query.radius / 2.0**OFFSET_BITS)
    units = SHARE * np.where(first != second, BESIDE, DIAGONAL) * 4.0**OFFSET_BITS * lever
    divisors = sizes if query.kind == "full" else np.array([sizes.sum()])
    moved = np.einsum("ki,kj->kij", offsets, offsets)
    if query.kind == "tied":
        moved = np.einsum("k,kij->ij", sizes / sizes.sum(), moved)[None]
    changes = values.reshape(-1, len(first)) / units / divisors[:, None] - (moved + identity)[:, first, second]
    noise = math.sqrt(2) * scale / (SHARE * BESIDE * 4.0**OFFSET_BITS * lever) / divisors  # of the isometric entries
    before = state.shape_variances[: len(changes)]
    changes, variances = believed(changes * isometric, noise, before)
    square = np.zeros((len(changes), r, r))
    square[:, first, second] = square[:, second, first] = changes / isometric
    eigenvalues, vectors = np.linalg.eigh(identity + square)
    shapes = np.einsum("kij,kj,klj->kil", vectors, np.clip(eigenvalues, *EIGENVALUES), vectors)
    if query.kind == "tied":
        return np.repeat(shapes, k, axis=0), np.repeat(variances, k)
    return shapes, variances


def _within(covariance: FloatArray, variance_range: tuple[float, float]) -> FloatArray:
    """Keep the variance along every direction in its range."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((vectors * np.clip(values, *variance_range)) @ vectors.T)
