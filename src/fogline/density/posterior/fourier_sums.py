r"""Released Fourier sums as noisy linear readings of the contents of leaves.

Weighted sums of a grid release are :math:`y = B^\top N + \sigma\varepsilon` with the contents N of the leaves, the exact
features B of a record that lies anywhere in its leaf, and white noise of known deviation. A feature averaged over a
leaf is the feature of its centre times a gain: a Dirichlet kernel of the cells, or of the values of a lattice, that
share the leaf. Leaves are equal, so :math:`A = B B^\top` is a stationary kernel on them, known from one sum over
frequencies, and :math:`b = B y` is a field with mean :math:`A N` and covariance :math:`\sigma^2 A`.

A Cholesky factorisation of A with pivots, cut off where what is left could not be told from noise, gives :math:`A
\approx R R^\top` and data :math:`z = R^\top N + \sigma\varepsilon'` with white noise: as many numbers as the release
resolves, whatever the number of its coefficients. Columns of A are made when a pivot asks for them.

Where in its leaf a record lies is sampling noise that the contents of leaves do not hold: each frequency's noise is
raised by the mean of it, :math:`n w_m (1 - gain_m^2)/2`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from fogline.density.leaves import LeafSpec
from fogline.density.posterior.arrays import FloatArray, IntArray
from fogline.density.spec import SketchSpec

__all__ = ["LeafSums", "leaf_sums", "require_sums"]

ComplexArray = NDArray[np.complex128]

RESOLUTION = 0.3
"""Pivots stop where what is left of a leaf's kernel moves no reading by more than this many noise deviations."""


@dataclass(frozen=True, eq=False)
class LeafSums:
    """Data of a fit: independent readings of leaf contents.

    Attributes
    ----------
    grid : LeafSpec
        The leaves.
    values : array of shape (r,)
        Readings, in records.
    response : array of shape (leaves, r)
        Mean reading of one record in each leaf.
    noise : float
        Standard deviation of the privacy noise of each reading.
    total : float
        Number of records that the fit is scaled by, at least 1.
    smoothed : array of shape (leaves,)
        Kernel-smoothed contents, which may be negative: where a fit begins.
    """

    grid: LeafSpec
    values: FloatArray
    response: FloatArray
    noise: float
    total: float
    smoothed: FloatArray


def require_sums(density: Any) -> SketchSpec:
    """Return the specification of a density that was released as Fourier sums on a grid; refuse all others."""
    spec = density.spec
    if not isinstance(spec, SketchSpec):
        raise ValueError("density must be a release of grid features (features='grid')")
    return spec


def leaf_sums(density: Any, *, side: int, most: int) -> LeafSums:
    """Read a release on a regular grid of leaves.

    Parameters
    ----------
    density : PrivateDensity
        Of grid features.
    side : int
        Most leaves per axis; on an axis with a step, a leaf holds whole values.
    most : int
        Most readings.
    """
    spec = require_sums(density)
    grid = LeafSpec.plan(spec.bounds, [step or None for step in spec.steps], leaves=[side] * spec.d)
    weights, noise, total = density.weights, density.noise_scale, density.count
    gains = _gains(spec, grid)
    inside = total * weights * np.clip(1 - gains**2, 0, 1) / 2
    whitening = noise / np.sqrt(noise**2 + inside)
    amplitude = np.sqrt(weights) * gains * whitening
    sums = np.sqrt(weights) * density.coefficients * whitening
    start = grid.origin - spec.origin
    places = [start[j] + grid.cell_widths[j] * np.arange(n) for j, n in enumerate(grid.leaves)]
    apart = [grid.cell_widths[j] * np.arange(1 - n, n) for j, n in enumerate(grid.leaves)]
    field = _field(spec, amplitude * sums, places)
    kernel = _field(spec, amplitude**2 + 0j, apart)
    peak = float(kernel[tuple(n - 1 for n in grid.leaves)])
    window = np.maximum(field, 0) / peak + 2 * noise / math.sqrt(peak)  # records that a pivot may speak of
    response, pivots = _pivoted(kernel, grid.leaves, window.ravel(), RESOLUTION * noise, most)
    values = solve_triangular(response[pivots], field.ravel()[pivots], lower=True)
    return LeafSums(grid, values, response, noise, total, field.ravel() / max(float(kernel.sum()), 1e-300))


def _gains(spec: SketchSpec, grid: LeafSpec) -> FloatArray:
    """Mean feature of a leaf over that of its centre, per frequency."""
    gains = np.ones(len(spec.frequencies))
    for j in range(spec.d):
        angle = spec.angular[:, j]
        values = grid.values_per_leaf[j]
        part = spec.steps[j] if values else spec.cell_widths[j]
        whole = values * part if values else grid.cell_widths[j]
        # a ratio of sines: in float the argument of the lower one is never a multiple of pi but 0
        below = np.sinc(angle * part / (2 * np.pi))
        gains *= np.sinc(angle * whole / (2 * np.pi)) / np.where(np.abs(below) < 1e-9, 1e-9, below)
    return np.clip(gains, -1, 1)


def _field(spec: SketchSpec, sums: ComplexArray, places: list[FloatArray]) -> FloatArray:
    r"""Real part of :math:`\sum_m s_m e^{i\omega_m\cdot x}` on a product of places, axis by axis."""
    table = np.zeros([2 * reach + 1 for reach in spec.reach], dtype=complex)
    table[tuple(spec.frequencies[:, j] + reach for j, reach in enumerate(spec.reach))] = sums
    for j, reach in enumerate(spec.reach):
        phases = np.exp(2j * np.pi / spec.periods[j] * np.outer(np.arange(-reach, reach + 1), places[j]))
        table = np.tensordot(table, phases, (0, 0))
    return np.ascontiguousarray(table.real)


def _pivoted(
    kernel: FloatArray, leaves: tuple[int, ...], weights: FloatArray, least: float, most: int
) -> tuple[FloatArray, IntArray]:
    """Cholesky factor of a stationary kernel with pivots, where ``weights`` times its rest is largest first."""
    size = math.prod(leaves)
    rest = np.full(size, float(kernel[tuple(n - 1 for n in leaves)]))
    floor = 1e-12 * float(rest[0])
    rows = np.empty((min(most, size), size))
    pivots: list[int] = []
    while len(pivots) < len(rows):
        moved = weights**2 * rest
        pivot = int(np.argmax(moved))
        if pivots and (moved[pivot] < least**2 or rest[pivot] <= floor):
            break
        place = np.unravel_index(pivot, leaves)
        column = kernel[tuple(slice(n - 1 - k, 2 * n - 1 - k) for n, k in zip(leaves, place, strict=True))].ravel()
        done = len(pivots)
        row = (column - rows[:done, pivot] @ rows[:done]) / math.sqrt(rest[pivot])
        rows[done] = row
        pivots.append(pivot)
        rest = np.maximum(rest - row**2, 0)
        rest[pivot] = 0.0
    return np.ascontiguousarray(rows[: len(pivots)].T), np.array(pivots, dtype=np.int64)
