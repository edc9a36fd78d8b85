r"""Released Fourier sums as noisy linear readings of the contents of leaves.

Weighted sums of a grid release are :math:`y = B^\top N + \sigma\varepsilon` with the contents N of the leaves, the
exact features B of a record that lies anywhere in its leaf, and white noise of known deviation. A feature averaged
over a leaf is the feature of its centre times a gain: a Dirichlet kernel of the cells, or of the values of a lattice,
that share the leaf. Leaves are equal, so :math:`A = B B^\top` is a stationary kernel on them, known from one sum over
frequencies, and :math:`b = B y` is a field with mean :math:`A N` and covariance :math:`\sigma^2 A`.

A Cholesky factorisation of A with pivots, cut off where what is left could not be told from noise, gives :math:`A
\approx R R^\top` and data :math:`z = R^\top N + \sigma\varepsilon'` with white noise: as many numbers as the release
resolves, whatever the number of its coefficients. Columns of A are made when a pivot asks for them.

Where in its leaf a record lies is noise that the contents of leaves do not hold: each frequency's noise is raised by
:math:`w_m (1 - gain_m^2)/2` times n, if places are independent, plus the sum of squared contents of leaves as far as
their records may all be at one side of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from fogline._typing import FloatArray, IntArray
from fogline.density.leaves import LeafSpec
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
    """

    grid: LeafSpec
    values: FloatArray
    response: FloatArray
    noise: float
    total: float

    def sharpened(self, steps: int = 40) -> FloatArray:
        """Contents by Richardson and Lucy's iteration, which stay positive: where a fit begins."""
        reach = np.maximum(self.response @ self.response.sum(axis=0), 1e-12)
        seen = np.maximum(self.response @ self.values, 0)
        contents = np.full(len(reach), self.total / len(reach))
        for _ in range(steps):
            ratio = seen / np.maximum(self.response @ (self.response.T @ contents), 1e-9 * self.total)
            contents = contents * np.maximum(self.response @ (self.response.T @ ratio), 0) / reach
        return contents


def require_sums(density: Any) -> SketchSpec:
    """Return the specification of a density that was released as Fourier sums on a grid; refuse all others."""
    spec = density.spec
    if not isinstance(spec, SketchSpec):
        raise ValueError("density must be a release of grid features (features='grid')")
    return spec


def leaf_sums(density: Any, *, side: int, most: int, contents: FloatArray | None = None) -> LeafSums:
    """Read a release on a regular grid of leaves.

    Parameters
    ----------
    density : PrivateDensity
        Of grid features.
    side : int
        Most leaves per axis; on an axis with a step, a leaf holds whole values.
    most : int
        Most readings.
    contents : array of shape (leaves,), optional
        What is known of the contents of the leaves: how far their records may be off the middle depends on it.
    """
    spec = require_sums(density)
    grid = LeafSpec.plan(spec.bounds, [step or None for step in spec.steps], leaves=[side] * spec.d)
    gains = _gains(spec, grid)
    if float(gains.min()) > 1 - 1e-9:  # leaves are cells: a record's feature is that of its leaf
        return _readings(density, grid, gains, 0.0, most)
    if contents is None:
        contents = _readings(density, grid, gains, density.count, most).sharpened()
    return _readings(density, grid, gains, density.count + _lumps(contents.reshape(grid.leaves)), most)


def _readings(density: Any, grid: LeafSpec, gains: FloatArray, inside: float, most: int) -> LeafSums:
    """Readings for given gains and a given sum of squared lumps inside the leaves."""
    spec, weights, noise = density.spec, density.weights, density.noise_scale
    whitening = noise / np.sqrt(noise**2 + inside * weights * (1 - gains**2) / 2)
    amplitude = np.sqrt(weights) * gains * whitening
    sums = np.sqrt(weights) * density.coefficients * whitening
    start = grid.origin - spec.origin
    places = [start[j] + grid.cell_widths[j] * np.arange(n) for j, n in enumerate(grid.leaves)]
    apart = [grid.cell_widths[j] * np.arange(1 - n, n) for j, n in enumerate(grid.leaves)]
    field = _field(spec, amplitude * sums, places).ravel()
    kernel = _field(spec, amplitude**2 + 0j, apart)
    peak = float(kernel[tuple(n - 1 for n in grid.leaves)])
    window = np.maximum(field, 0) / peak + 2 * noise / math.sqrt(peak)  # records that a pivot may speak of
    response, pivots = _pivoted(kernel, grid.leaves, window, RESOLUTION * noise, most)
    values = solve_triangular(response[pivots], field[pivots], lower=True)
    return LeafSums(grid, values, response, noise, density.count)


def _lumps(contents: FloatArray) -> float:
    """Sum of the squared contents of leaves that records share unevenly, as far as their neighbours differ.

    Where the logarithm of the density rises by t from leaf to leaf, the mean place of its records is off the middle by
    t/12 of a leaf, which squared is t^2/12 of the variance of a place; where neighbours are empty it may be anywhere.
    """
    rise = np.zeros(contents.shape)
    logs = np.log(contents + 1e-3 * float(contents.mean()) + 1e-9)
    for axis in range(contents.ndim):
        if contents.shape[axis] > 1:
            rise += np.gradient(logs, axis=axis) ** 2 / 12
    return float(np.sum(contents**2 * rise / (1 + rise)))


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
