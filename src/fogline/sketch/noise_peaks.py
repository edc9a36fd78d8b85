r"""The fogline: how prominent a peak noise alone would raise, and which peaks stand above it.

Noise has two parts. Privacy noise is a stationary Gaussian field whose spectrum is known exactly. Sampling noise
is that of a Poisson sample from the released density itself. Both are simulated together, at a few scales from
the same draws, on flat ground (on a slope a bump makes no peak) and along level lines (on a ridge a bump cannot be
walked around, so its prominence is larger). Near the walls of the box a kernel loses the part that falls
outside, so that part is folded back, as if the walls were mirrors: data that fill the box evenly then look even,
and data that stay away from the walls look as before.

A peak's *relief* is its prominence over the local standard deviation of the noise. At each scale the simulations
give the rate :math:`\lambda(x)` of noise peaks with a relief above x, with an exponential tail fitted to the
largest; the chance of such a peak anywhere, at any of R scales tried, is at most
:math:`1 - e^{-R\lambda(x)}`: that is a peak's p-value. The highest peak has only the edge of the box to stand out
against, so its curvature must also exceed what the highest peak of the noise has, unless a lower peak stands out: then
there are two at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import fft as scipy_fft
from scipy.ndimage import map_coordinates, maximum_filter1d
from scipy.special import ndtr

from fogline.sketch.landscape import Peaks, find_peaks
from fogline.sketch.reading import Reading

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity

__all__ = ["Ground", "Null", "Tail", "kernel_energy", "noise_sums", "simulate_null", "smooth_reading"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SIMULATIONS = {1: 256, 2: 32, 3: 20}
"""Simulated fields by dimension: a field of more dimensions holds more peaks to learn from."""

TAIL_PEAKS = {1: 0.5, 2: 2.0, 3: 4.0}
"""How many peaks a field, the largest of all fields together, the tail is fitted to."""

PER_BANDWIDTH = 2.0
"""Grid points a bandwidth, for data and simulations alike."""

FINER = {1: 4, 2: 4, 3: 2}
"""The released density is looked at on a grid so many times finer an axis, by dimension."""

RIDGES = 2
"""Noise on a ridge cannot be walked around: ridges as long as so many lines across the box are allowed for."""

RIDGE_PEAKS = 0.1
"""How many peaks a line the tail of ridges is fitted to."""

RIDGE_LINES = 6
"""About so many grid lines an axis of each simulation are used for them: neighbouring ones are much alike."""

SEED = 5772156649
"""Simulations only calibrate a threshold: a fixed seed makes reading a release repeatable."""

SMOOTHER = 1.5
"""Sampling noise is simulated from the density at this many times its default bandwidth."""


@dataclass(frozen=True)
class Tail:
    """Rate of noise peaks above a relief, a field: ``rate * exp(-(x - start)/scale)`` beyond ``start``."""

    rate: float
    start: float
    scale: float

    @classmethod
    def fit(cls, values: FloatArray, fields: int, per_field: float) -> Tail:
        """Fit to the largest ``per_field * fields`` values of all fields together."""
        finite = np.sort(values[np.isfinite(values)])[::-1]
        m = min(round(per_field * fields), max(len(finite) - 1, 0))
        if m < 2:
            return cls(1.0, 0.0, 1.0)
        return cls(m / fields, float(finite[m]), max(float(np.mean(finite[:m] - finite[m])), 1e-12))

    def expected(self, x: FloatArray) -> FloatArray:
        """Expected number of peaks above x in one field; above the start of the tail only."""
        return np.asarray(self.rate * np.exp(-np.maximum(x - self.start, 0.0) / self.scale))

    def chance(self, x: FloatArray, tries: float) -> FloatArray:
        """Chance that some peak of ``tries`` fields exceeds x; one where x is below the tail."""
        return np.asarray(np.where(x <= self.start, 1.0, -np.expm1(-tries * self.expected(x))))

    def quantile(self, level: float, tries: float) -> float:
        """Relief exceeded with chance ``level`` over ``tries`` fields."""
        rate = -np.log1p(-level) / tries
        return self.start + self.scale * float(np.log(max(self.rate / rate, 1.0)))


@dataclass(frozen=True)
class Ground:
    """A scale's grid over the box, and the standard deviation of the noise on it.

    ``sd`` is that of the simulations, ``sd_released`` that of the released density; they differ where the density
    is sharper than the smooth version that the simulations draw their samples from.
    """

    reading: Reading
    shape: tuple[int, ...]
    sd: FloatArray
    sd_released: FloatArray

    def simulated(self, sums: NDArray[np.complex128]) -> FloatArray:
        """Fields of simulated sums."""
        fields = self.reading.torus_fields(sums[:, self.reading.kept] * self.reading.gain, self.shape)
        return fold(fields, self.reading)

    def released(self) -> tuple[FloatArray, FloatArray]:
        """Released density on this grid, as batches of one: the highest value around each point, and the value there.

        Highest values are taken from a finer grid: a narrow ridge that runs between grid points would otherwise
        look like a string of peaks.
        """
        d = len(self.shape)
        step = FINER[d]
        fine = fold(
            self.reading.torus_fields(self.reading.coefficients[None], tuple(step * n for n in self.shape)),
            self.reading,
        )[0]
        every = tuple(slice(0, None, step) for _ in range(d))
        inside = (None, *(slice(0, n) for n in self.sd.shape))
        highest = fine
        for axis in range(d):  # an even window around each kept point: neighbours share no fine point, hence no ties
            highest = maximum_filter1d(highest, step, axis=axis, mode="nearest")
        return np.ascontiguousarray(highest[every][inside]), np.ascontiguousarray(fine[every][inside])

    def measure_released(self) -> tuple[Peaks, FloatArray, FloatArray]:
        """Peaks of the released density with relief and curvature."""
        highest, values = self.released()
        return measure(highest, self.sd_released, values)


def measure(
    fields: FloatArray, sd: FloatArray, values: FloatArray | None = None
) -> tuple[Peaks, FloatArray, FloatArray]:
    """Peaks of a batch of fields, their relief, and the least curvature of each (of ``values``) in the same units."""
    peaks = find_peaks(fields)
    scale = sd.ravel()[peaks.cell]
    relief = np.where(peaks.interior, peaks.prominence / scale, -np.inf)
    least = _least_curvature(fields if values is None else values, peaks)
    return peaks, relief, np.where(peaks.interior, least / scale, -np.inf)


def fold(fields: FloatArray, reading: Reading) -> FloatArray:
    """Fold what lies outside the box back over its walls; fields of the torus in, fields of the box out."""
    for j, axis in enumerate(reading.grid_axes(fields.shape[1:])):
        torus = np.moveaxis(fields, j + 1, -1)
        spacing = axis[1] - axis[0]
        index = np.arange(len(axis))
        low, high = _mirror_weights(reading, j, axis)
        beyond = 2 * reading.spec.widths[j] / spacing - index
        whole = np.floor(beyond).astype(int)
        part = beyond - whole
        size = torus.shape[-1]
        upper = (1 - part) * torus[..., whole % size] + part * torus[..., (whole + 1) % size]
        folded = torus[..., index] + low * torus[..., -index % size] + high * upper
        fields = np.moveaxis(folded, -1, j + 1)
    return np.ascontiguousarray(fields)


def _mirror_weights(reading: Reading, j: int, axis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of the mirror images in the two walls: one at the wall, fading out by three bandwidths."""
    h = reading.bandwidth[j]
    distances = (axis - reading.spec.lower[j]) / h, (reading.spec.upper[j] - axis) / h
    low, high = (np.cos(np.pi / 2 * np.clip((t - 1.5) / 1.5, 0, 1)) ** 2 for t in distances)
    return low, high


@dataclass(frozen=True)
class Null:
    """What noise alone does at some scales: tails of relief, mean and deviation of the top peak's curvature."""

    grounds: tuple[Ground, ...]
    relief: tuple[Tail, ...]
    ridge: tuple[Tail | None, ...]
    curvature: tuple[tuple[float, float], ...]
    tries: float  # scales that count: neighbouring ones see much the same noise

    def chance(self, scale: int, relief: FloatArray) -> FloatArray:
        """Chance of so large a relief anywhere, on a plain or on ridges, at any of the scales."""
        tries, ridge = self.tries, self.ridge[scale]
        p = self.relief[scale].chance(relief, tries)
        return p if ridge is None else np.maximum(p, ridge.chance(relief, RIDGES * tries))

    def needed(self, scale: int, level: float) -> float:
        """Relief above which :meth:`chance` falls below ``level``."""
        tries, ridge = self.tries, self.ridge[scale]
        plain = self.relief[scale].quantile(level, tries)
        return plain if ridge is None else max(plain, ridge.quantile(level, RIDGES * tries))

    def p_values(self, scale: int, peaks: Peaks, relief: FloatArray, curvature: FloatArray) -> FloatArray:
        """Chance of so large a relief anywhere at any scale; for the highest peak, of so sharp a one too.

        The highest peak need not be sharp where a lower one stands out: the pass between them is below both. A long
        or bent ridge beside another is a mode although it is flat along its crest.
        """
        p = np.where(peaks.interior, self.chance(scale, relief), 1.0)
        if peaks.interior.any():
            top = int(np.argmax(np.where(peaks.interior, peaks.height, -np.inf)))
            mean, sd = self.curvature[scale]
            sharp = min(1.0, self.tries * float(ndtr((mean - curvature[top]) / sd)))
            divided = float(np.delete(p, top).min(initial=1.0))
            p[top] = max(p[top], min(sharp, divided))
        return np.asarray(p)


def simulate_null(density: PrivateDensity, readings: Sequence[Reading]) -> Null:
    """Simulate privacy plus sampling noise and fit the laws of its peaks."""
    d = density.spec.d
    grounds = tuple(_ground(density, reading) for reading in readings)
    sums = noise_sums(density, grounds[0].shape)
    tails, ridges, curvatures = [], [], []
    rarest = np.full(len(sums), np.inf)
    for ground in grounds:
        fields = ground.simulated(sums)
        peaks, relief, curvature = measure(fields, ground.sd)
        tails.append(Tail.fit(relief, len(sums), TAIL_PEAKS[d]))
        largest = np.full(len(sums), -np.inf)
        np.maximum.at(largest, peaks.field, relief)
        rarest = np.minimum(rarest, tails[-1].expected(largest))
        ridges.append(None if d == 1 else _ridge_tail(fields / ground.sd))
        highest = _of_highest(peaks, curvature, len(sums))
        curvatures.append((float(np.mean(highest)), max(float(np.std(highest, ddof=1)), 1e-12)))
    # With R independent scales the rarest of R Exp(1) variables has mean 1/R: read the number that counts from it.
    tries = float(np.clip(1 / np.mean(rarest), 1.0, len(grounds)))
    return Null(grounds, tuple(tails), tuple(ridges), tuple(curvatures), tries)


def _ridge_tail(standard: FloatArray) -> Tail:
    """Relief of noise along straight lines across the box: what a narrow, level ridge would show."""
    lines = []
    for axis in range(1, standard.ndim):
        line = np.moveaxis(standard, axis, -1)
        thinned = line[(slice(None), *(slice(None, None, max(1, n // RIDGE_LINES)) for n in line.shape[1:-1]))]
        lines.append(thinned.reshape(-1, line.shape[-1]))
    tails = [(find_peaks(batch), len(batch)) for batch in lines]
    relief = np.concatenate([np.where(peaks.interior, peaks.prominence, -np.inf) for peaks, _ in tails])
    return Tail.fit(relief, sum(count for _, count in tails), RIDGE_PEAKS)


def _of_highest(peaks: Peaks, curvature: FloatArray, fields: int) -> FloatArray:
    """Curvature of the highest interior peak of each field."""
    height = np.where(peaks.interior, peaks.height, -np.inf)
    order = np.lexsort((height, peaks.field))
    last = np.searchsorted(peaks.field[order], np.arange(fields), side="right") - 1
    return np.maximum(curvature[order[last]], 0.0)


def _ground(density: PrivateDensity, reading: Reading) -> Ground:
    shape = reading.grid_shape(PER_BANDWIDTH)
    axes = reading.grid_axes(shape)
    privacy = np.full([len(a) for a in axes], reading.noise_sd**2)
    sampling = np.full(privacy.shape, kernel_energy(reading) / density.count)
    for j, axis in enumerate(axes):  # a point and its mirror image share their noise the more, the closer they are
        line = [-1 if i == j else 1 for i in range(len(axes))]
        for weight, wall in zip(_mirror_weights(reading, j, axis), (axis - axis[0], axis[-1] - axis), strict=True):
            shared = np.exp(-((wall / reading.bandwidth[j]) ** 2))
            privacy = privacy * (1 + weight**2 + 2 * weight * shared).reshape(line)
            sampling = sampling * (1 + weight * shared).reshape(line)
    smooth = smooth_reading(density)
    smooth_level, level = (np.maximum(_level(r, axes), 0) for r in (smooth, reading))
    return Ground(
        reading,
        shape,
        sd=np.sqrt(privacy + sampling * smooth_level),
        sd_released=np.sqrt(privacy + sampling * np.maximum(level, smooth_level)),
    )


def kernel_energy(reading: Reading) -> float:
    """Integral of the squared kernel: sampling variance is this times density over count."""
    return 1 / float(np.prod(2 * np.sqrt(np.pi) * reading.bandwidth))


def _level(reading: Reading, axes: tuple[FloatArray, ...]) -> FloatArray:
    """Folded density of a reading, interpolated to another grid over the box."""
    own = reading.grid_shape(PER_BANDWIDTH)
    field = fold(reading.torus_fields(reading.coefficients[None], own), reading)[0]
    steps = [(a - a[0]) / (b[1] - b[0]) for a, b in zip(axes, reading.grid_axes(own), strict=True)]
    return np.asarray(map_coordinates(field, np.meshgrid(*steps, indexing="ij"), order=1, mode="nearest"))


def _at_least(reading: Reading, shape: tuple[int, ...]) -> tuple[int, ...]:
    needed = 2 * np.abs(reading.frequencies).max(axis=0) + 1
    return tuple(int(max(s, n)) for s, n in zip(shape, needed, strict=True))


def smooth_reading(density: PrivateDensity) -> Reading:
    """Reading from which sampling noise is simulated: smoother than the density's own."""
    reading: Reading = density.reading(np.minimum(SMOOTHER * density.bandwidth, density.bandwidth_range[1]))
    return reading


def noise_sums(density: PrivateDensity, shape: tuple[int, ...]) -> NDArray[np.complex128]:
    """Simulated noise of the Fourier sums, privacy and sampling together; shape (simulations, F)."""
    spec = density.spec
    rng = np.random.default_rng(SEED)
    simulations = SIMULATIONS[spec.d]
    size = (simulations, len(spec.frequencies))
    sums = (rng.standard_normal(size) + 1j * rng.standard_normal(size)) * (
        density.noise_scale / np.sqrt(density.weights)
    )
    smooth = smooth_reading(density)
    full = _at_least(smooth, shape)
    level = np.maximum(smooth.fields(smooth.coefficients[None], full)[0], 0)
    expected = level / max(level.sum(), 1e-300) * density.count
    drawn = rng.poisson(expected, size=(simulations, *expected.shape)) - expected
    torus = np.zeros((simulations, *full))
    torus[(slice(None), *(slice(0, n) for n in expected.shape))] = drawn
    spectrum = scipy_fft.fftn(torus, axes=tuple(range(1, spec.d + 1)))
    held = np.all(2 * np.abs(spec.frequencies) < np.array(full), axis=1)
    index = tuple(spec.frequencies[held].T % np.array(full)[:, None])
    phase = np.exp(-1j * (spec.angular[held] @ (spec.lower - spec.origin)))
    sums[:, held] += spectrum[(slice(None), *index)] * phase
    return np.asarray(sums)


def _least_curvature(fields: FloatArray, peaks: Peaks) -> FloatArray:
    """Smallest eigenvalue of minus the second differences at each peak (clipped into the grid at its edge)."""
    shape = fields.shape[1:]
    d = len(shape)
    centre = [np.clip(i, 1, n - 2) for i, n in zip(np.unravel_index(peaks.cell, shape), shape, strict=True)]

    def at(*offset: int) -> FloatArray:
        return np.asarray(fields[(peaks.field, *(c + o for c, o in zip(centre, offset, strict=True)))])

    unit = np.eye(d, dtype=int)
    hessian = np.empty((len(peaks.cell), d, d))
    for i in range(d):
        hessian[:, i, i] = at(*unit[i]) - 2 * at(*(0 * unit[i])) + at(*(-unit[i]))
        for j in range(i):
            mixed = (
                at(*(unit[i] + unit[j]))
                - at(*(unit[i] - unit[j]))
                - at(*(unit[j] - unit[i]))
                + at(*(-unit[i] - unit[j]))
            )
            hessian[:, i, j] = hessian[:, j, i] = mixed / 4
    return np.asarray(-np.linalg.eigvalsh(hessian)[:, -1])
