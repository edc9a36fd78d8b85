r"""The plain baseline: a noisy histogram, smoothed by the kernel, and its highest peaks.

Count the records in each cell of a public grid, add discrete Gaussian noise to every count, smooth with a
Gaussian of bandwidth h, and take the highest maxima that lie a bandwidth apart. One record moves one count by
one, so the sensitivity is 1: the same as that of fogline's sketch, which must therefore do better by spending
its noise on the frequencies that matter. Proof: ``noisy_histogram.proof.md``, beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, maximum_filter

from fogline._validation import check_bounds, check_count, check_delta, check_epsilon, check_positive, records
from fogline.accounting.guarantee import Guarantee
from fogline.accounting.zcdp import rho_of
from fogline.mechanisms.discrete_gaussian import add_gaussian
from fogline.mechanisms.randomness import provider_reason

__all__ = ["NoisyHistogramResult", "noisy_histogram_modes"]

Array = NDArray[np.float64]

_CELLS_A_BANDWIDTH = 4
_MOST_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class NoisyHistogramResult:
    """What a noisy histogram says of the modes. Everything here is released.

    Attributes
    ----------
    modes : ndarray of shape (k, d)
        Highest first; k is at most the number asked for.
    heights : ndarray of shape (k,)
        Smoothed density at the modes' cells, normalised by the noisy total.
    counts : ndarray of int64
        The noisy counts, one axis a dimension.
    noise_scale : float
        Scale of the discrete Gaussian on every count.
    guarantee : Guarantee
        Certified, under adding or removing one record.
    """

    modes: Array
    heights: Array
    counts: NDArray[np.int64]
    noise_scale: float
    guarantee: Guarantee


def noisy_histogram_modes(
    X: object,
    *,
    epsilon: float,
    delta: float,
    bounds: object,
    bandwidth: float | Sequence[float],
    n_modes: int,
    cells: int | Sequence[int] | None = None,
) -> NoisyHistogramResult:
    """Modes of `X` from a smoothed noisy histogram, private for every data set.

    Parameters
    ----------
    X : array or frame of shape (n, d)
        Records that are missing, infinite or outside the bounds contribute nothing.
    epsilon, delta : float
        Privacy of the whole result.
    bounds : sequence of (low, high)
        Public range of each axis.
    bandwidth : float or one value an axis
        Bandwidth of the smoothing, in the units of `X`; public.
    n_modes : int
        How many modes at most.
    cells : int or one value an axis, optional
        Cells of the grid. By default four to a bandwidth.

    Returns
    -------
    NoisyHistogramResult

    Notes
    -----
    The peak within a cell is placed by the quadratic through the smoothed values around it. The noise of the
    smoothed counts has standard deviation close to ``scale / prod(2 sqrt(pi) h_j / width_j)**0.5``: finer
    cells cost nothing, up to the time it takes to fill them.

    Examples
    --------
    >>> X = np.repeat([[2.0], [7.0]], 5000, axis=0)
    >>> result = noisy_histogram_modes(X, epsilon=1.0, delta=1e-6, bounds=(0, 10), bandwidth=0.5, n_modes=2)
    >>> np.sort(result.modes.ravel()).round(0)
    array([2., 7.])
    >>> result.guarantee.certified
    True
    """
    epsilon, delta, n_modes = check_epsilon(epsilon), check_delta(delta), check_count(n_modes, "n_modes")
    box = check_bounds(bounds)
    d = box.shape[0]
    h = _per_axis(bandwidth, d)
    shape = _grid_shape(cells, box, h)
    table = records(X, d)
    rho = rho_of(epsilon, delta)
    release = add_gaussian(
        lambda: _cell_counts(table, box, shape),
        size=math.prod(shape),
        sensitivity=1.0,
        rho=rho,
    )
    counts = release.values.reshape(shape)
    widths = (box[:, 1] - box[:, 0]) / shape
    smooth = gaussian_filter(counts.astype(np.float64), h / widths, mode="constant", truncate=6.0)
    peaks = _separated_peaks(smooth, widths / h, n_modes)
    offsets = np.array([_quadratic_offset(smooth, peak) for peak in peaks]).reshape(-1, d)
    modes = np.clip(box[:, 0] + (peaks + 0.5 + offsets) * widths, box[:, 0], box[:, 1])
    total = max(1.0, float(counts.sum()))
    return NoisyHistogramResult(
        modes=modes,
        heights=smooth[tuple(peaks.T)] / (total * float(np.prod(widths))),
        counts=counts,
        noise_scale=release.scale,
        guarantee=Guarantee.certified_release(
            rho=rho,
            delta=delta,
            neighbours="add-remove",
            mechanism="noisy histogram, discrete Gaussian",
            proof="noisy-histogram",
            reason=provider_reason(),
        ),
    )


def _per_axis(bandwidth: float | Sequence[float], d: int) -> Array:
    values = [bandwidth] * d if np.ndim(bandwidth) == 0 else list(np.asarray(bandwidth).tolist())
    if len(values) != d:
        raise ValueError(f"bandwidth must be one number or one an axis ({d}), got {len(values)}")
    return np.array([check_positive(value, "bandwidth") for value in values])


def _grid_shape(cells: int | Sequence[int] | None, box: Array, h: Array) -> tuple[int, ...]:
    """Return the public number of cells on each axis."""
    d = box.shape[0]
    if cells is None:
        counts = np.maximum(1.0, np.ceil((box[:, 1] - box[:, 0]) / h * _CELLS_A_BANDWIDTH))
        if float(np.prod(counts)) > _MOST_CELLS:
            raise ValueError(f"bandwidth is too small: the grid would need more than {_MOST_CELLS} cells")
        return tuple(int(count) for count in counts)
    values = [cells] * d if isinstance(cells, int) else list(cells)
    if len(values) != d:
        raise ValueError(f"cells must be one number or one an axis ({d}), got {len(values)}")
    shape = tuple(check_count(value, "cells") for value in values)
    if math.prod(shape) > _MOST_CELLS:
        raise ValueError(f"cells must be at most {_MOST_CELLS} in all, got {math.prod(shape)}")
    return shape


def _cell_counts(X: Array, box: Array, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Count the records in each cell, row-major; every record counts in one cell or in none."""
    low, high = box.T
    inside = ((low <= X) & (high >= X)).all(axis=1)
    share = (X[inside] - low) / (high - low)
    cell = np.minimum((share * shape).astype(np.int64), np.array(shape) - 1)
    flat = np.ravel_multi_index(tuple(cell.T), shape)
    return np.bincount(flat, minlength=math.prod(shape)).astype(np.int64)


def _separated_peaks(smooth: Array, steps: Array, n_modes: int) -> NDArray[np.int64]:
    """Return the cells of the highest local maxima, at least a bandwidth apart, highest first.

    `steps` is the width of a cell in bandwidths.
    """
    candidates = np.argwhere(smooth == maximum_filter(smooth, size=3, mode="nearest"))
    order = np.argsort(-smooth[tuple(candidates.T)], kind="stable")
    chosen: list[NDArray[np.int64]] = []
    for cell in candidates[order]:
        if all((((cell - other) * steps) ** 2).sum() >= 1.0 for other in chosen):
            chosen.append(cell)
            if len(chosen) == n_modes:
                break
    return np.array(chosen, dtype=np.int64).reshape(-1, smooth.ndim)


def _quadratic_offset(smooth: Array, cell: NDArray[np.int64]) -> Array:
    """Return where, in cells from the middle of `cell`, the quadratic through its neighbours peaks."""
    d = smooth.ndim
    last = np.array(smooth.shape) - 1
    unit = np.eye(d, dtype=np.int64)

    def value(shift: NDArray[np.int64]) -> float:
        return float(smooth[tuple(np.clip(cell + shift, 0, last))])

    gradient = np.array([value(e) - value(-e) for e in unit]) / 2.0
    hessian = np.empty((d, d))
    for i, a in enumerate(unit):
        hessian[i, i] = value(a) - 2.0 * value(0 * a) + value(-a)
        for j, b in enumerate(unit[:i]):
            mixed = value(a + b) - value(a - b) - value(b - a) + value(-a - b)
            hessian[i, j] = hessian[j, i] = mixed / 4.0
    if np.linalg.eigvalsh(hessian).max() >= 0.0:
        return np.zeros(d)
    # Beyond one cell the quadratic extrapolates: the maximum is known to be here.
    return np.clip(-np.linalg.solve(hessian, gradient), -1.0, 1.0)
