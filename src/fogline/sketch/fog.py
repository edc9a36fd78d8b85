r"""The fogline: how prominent a peak noise alone would raise, and which peaks stand above it.

Noise has two parts. Privacy noise is a stationary Gaussian field whose spectrum is known exactly. Sampling noise
is that of a Poisson sample from the released density itself. Both are simulated together, on a flat ground (the
worst case: on a slope a bump makes no peak), at a few scales from the same draws. Near the walls of the box a
kernel loses the part that falls outside, so fields are divided by the part that stays,
:math:`b_h(x) = \int_{box} K_h(x-u)\,du`: data that fill the box evenly then look even.

A peak's *relief* is its prominence over the local standard deviation of the noise. At each scale the simulations
give the rate :math:`\lambda(x)` of noise peaks with a relief above x, with an exponential tail fitted to the
largest; the chance of such a peak anywhere, at any of R scales tried, is at most
:math:`1 - e^{-R\lambda(x)}`: that is a peak's p-value. The highest peak has only the edge of the box to stand out
against, so its curvature must also exceed what the highest peak of the noise has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import fft as scipy_fft
from scipy.special import ndtr

from fogline.sketch.landscape import Peaks, find_peaks
from fogline.sketch.reading import Reading

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity
    from fogline.sketch.tracks import Ladder

__all__ = ["Found", "Null", "fog_level", "peak_p_values", "significant_peaks", "simulate_null", "what_would_help"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SIMULATIONS = {1: 96, 2: 48, 3: 24}
"""Simulated fields by dimension: a field of more dimensions holds more peaks to learn from."""

TAIL_PEAKS = {1: 3, 2: 6, 3: 6}
"""How many peaks a field, the largest of all fields together, the tail is fitted to."""

PER_BANDWIDTH = 2.0
"""Grid points a bandwidth, for data and simulations alike."""

TEST_RUNGS = (2, 4, 6, 8)
"""Rungs of a ladder of nine at which peaks are tested; the finest two hold little but noise."""

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
    def fit(cls, values: FloatArray, fields: int, per_field: int) -> Tail:
        """Fit to the largest ``per_field * fields`` values of all fields together."""
        finite = np.sort(values[np.isfinite(values)])[::-1]
        m = min(per_field * fields, max(len(finite) - 1, 0))
        if m < 2:
            return cls(1.0, 0.0, 1.0)
        return cls(m / fields, float(finite[m]), max(float(np.mean(finite[:m] - finite[m])), 1e-12))

    def chance(self, x: FloatArray, tries: int) -> FloatArray:
        """Chance that some peak of ``tries`` fields exceeds x; one where x is below the tail."""
        rate = self.rate * np.exp(-np.maximum(x - self.start, 0.0) / self.scale)
        return np.asarray(np.where(x <= self.start, 1.0, -np.expm1(-tries * rate)))

    def quantile(self, level: float, tries: int) -> float:
        """Relief exceeded with chance ``level`` over ``tries`` fields."""
        rate = -np.log1p(-level) / tries
        return self.start + self.scale * float(np.log(max(self.rate / rate, 1.0)))


@dataclass(frozen=True)
class Ground:
    """A scale's grid, with the part of the kernel that stays in the box and the standard deviation of the noise."""

    reading: Reading
    shape: tuple[int, ...]
    inside: FloatArray
    sd: FloatArray

    def measure(self, fields: FloatArray) -> tuple[Peaks, FloatArray, FloatArray]:
        """Peaks of wall-corrected fields, their relief, and the curvature of each in the same units."""
        corrected = fields / self.inside
        peaks = find_peaks(corrected)
        sd = (self.sd / self.inside).ravel()[peaks.cell]
        relief = np.where(peaks.interior, peaks.prominence / sd, -np.inf)
        curvature = np.where(peaks.interior, _least_curvature(corrected, peaks) / sd, -np.inf)
        return peaks, relief, curvature


@dataclass(frozen=True)
class Null:
    """What noise alone does at some scales: tails of relief, mean and deviation of the top peak's curvature."""

    grounds: tuple[Ground, ...]
    relief: tuple[Tail, ...]
    curvature: tuple[tuple[float, float], ...]

    def p_values(self, scale: int, peaks: Peaks, relief: FloatArray, curvature: FloatArray) -> FloatArray:
        """Chance of so large a relief anywhere at any scale; for the highest peak, of so sharp a one too."""
        tries = len(self.grounds)
        p = self.relief[scale].chance(relief, tries)
        if peaks.interior.any():
            top = int(np.argmax(np.where(peaks.interior, peaks.height, -np.inf)))
            mean, sd = self.curvature[scale]
            p[top] = max(p[top], min(1.0, tries * float(ndtr((mean - curvature[top]) / sd))))
        return np.asarray(np.where(peaks.interior, p, 1.0))


@dataclass(frozen=True)
class Found:
    """Significant peaks: where, on which rung of the ladder, with which p-value."""

    positions: FloatArray
    scale: IntArray
    p_values: FloatArray


def simulate_null(density: PrivateDensity, readings: Sequence[Reading]) -> Null:
    """Simulate privacy plus sampling noise and fit the laws of its peaks."""
    d = density.spec.d
    grounds = tuple(_ground(density, reading) for reading in readings)
    sums = _noise_sums(density, grounds[0].shape)
    tails, curvatures = [], []
    for ground in grounds:
        reading = ground.reading
        fields = reading.fields(sums[:, reading.kept] * reading.gain, ground.shape)
        peaks, relief, curvature = ground.measure(fields)
        tails.append(Tail.fit(relief, len(sums), TAIL_PEAKS[d]))
        highest = _of_highest(peaks, curvature, len(sums))
        curvatures.append((float(np.mean(highest)), max(float(np.std(highest, ddof=1)), 1e-12)))
    return Null(grounds, tuple(tails), tuple(curvatures))


def _of_highest(peaks: Peaks, curvature: FloatArray, fields: int) -> FloatArray:
    """Curvature of the highest interior peak of each field."""
    height = np.where(peaks.interior, peaks.height, -np.inf)
    order = np.lexsort((height, peaks.field))
    last = np.searchsorted(peaks.field[order], np.arange(fields), side="right") - 1
    return np.maximum(curvature[order[last]], 0.0)


def _ground(density: PrivateDensity, reading: Reading) -> Ground:
    shape = reading.grid_shape(PER_BANDWIDTH)
    axes = reading.grid_axes(shape)
    spec = density.spec
    inside = np.ones([len(a) for a in axes])
    for j, axis in enumerate(axes):
        part = ndtr((spec.upper[j] - axis) / reading.bandwidth[j]) - ndtr((spec.lower[j] - axis) / reading.bandwidth[j])
        inside *= part.reshape([-1 if i == j else 1 for i in range(spec.d)])
    squared = 1 / float(np.prod(2 * np.sqrt(np.pi) * reading.bandwidth))  # integral of the squared kernel
    smooth = _smooth_reading(density)
    level = np.maximum(smooth.fields(smooth.coefficients[None], _at_least(smooth, shape))[0], 0)
    level = level if level.shape == inside.shape else np.full(inside.shape, level.max())
    return Ground(reading, shape, inside, np.sqrt(reading.noise_sd**2 + squared * level / density.count))


def _at_least(reading: Reading, shape: tuple[int, ...]) -> tuple[int, ...]:
    needed = 2 * np.abs(reading.frequencies).max(axis=0) + 1
    return tuple(int(max(s, n)) for s, n in zip(shape, needed, strict=True))


def _smooth_reading(density: PrivateDensity) -> Reading:
    return density.reading(np.minimum(SMOOTHER * density.bandwidth, density.bandwidth_range[1]))


def _noise_sums(density: PrivateDensity, shape: tuple[int, ...]) -> NDArray[np.complex128]:
    """Simulated noise of the Fourier sums, privacy and sampling together; shape (simulations, F)."""
    spec = density.spec
    rng = np.random.default_rng(SEED)
    simulations = SIMULATIONS[spec.d]
    size = (simulations, len(spec.frequencies))
    sums = (rng.standard_normal(size) + 1j * rng.standard_normal(size)) * (density.noise_scale / np.sqrt(density.weights))
    smooth = _smooth_reading(density)
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
            mixed = at(*(unit[i] + unit[j])) - at(*(unit[i] - unit[j])) - at(*(unit[j] - unit[i])) + at(*(-unit[i] - unit[j]))
            hessian[:, i, j] = hessian[:, j, i] = mixed / 4
    return np.asarray(-np.linalg.eigvalsh(hessian)[:, -1])


# -- verdicts -----------------------------------------------------------------------------------------------


def _rungs(ladder: Ladder) -> list[int]:
    return [q for q in TEST_RUNGS if q < len(ladder.readings)] or [0]


def null_of(density: PrivateDensity, readings: Sequence[Reading]) -> Null:
    """Laws of the noise at some bandwidths; kept with the density."""
    key = ("null", tuple(tuple(r.bandwidth.tolist()) for r in readings))
    if key not in density._memory:
        density._memory[key] = simulate_null(density, readings)
    known: Null = density._memory[key]
    return known


@dataclass(frozen=True)
class _Layer:
    """Peaks of the released density at one tested rung."""

    rung: int
    peaks: Peaks
    points: FloatArray
    p: FloatArray
    start: FloatArray
    spacing: FloatArray

    def basin(self, point: FloatArray) -> int:
        """Peak to which the grid point nearest to a place climbs."""
        shape = self.peaks.basin.shape[1:]
        cell = np.rint((point - self.start) / self.spacing).astype(int)
        return int(self.peaks.basin[(0, *np.clip(cell, 0, np.array(shape) - 1))])


def _layers(density: PrivateDensity, ladder: Ladder) -> list[_Layer]:
    rungs = _rungs(ladder)
    null = null_of(density, [ladder.readings[q] for q in rungs])
    layers = []
    for scale, (rung, ground) in enumerate(zip(rungs, null.grounds, strict=True)):
        reading = ground.reading
        field = reading.fields(reading.coefficients[None], ground.shape)
        peaks, relief, curvature = ground.measure(field)
        p = null.p_values(scale, peaks, relief, curvature)
        axes = reading.grid_axes(ground.shape)
        index = np.unravel_index(peaks.cell, field.shape[1:])
        points = np.stack([a[i] for a, i in zip(axes, index, strict=True)], axis=1)
        spacing = np.array([a[1] - a[0] for a in axes])
        layers.append(_Layer(rung, peaks, points, p, np.array([a[0] for a in axes]), spacing))
    return layers


def significant_peaks(density: PrivateDensity, ladder: Ladder, level: float) -> Found:
    """Peaks above the fogline at some scale: coarse ones first, each replaced by what it splits into."""
    kept: list[tuple[_Layer, int, float]] = []
    for layer in reversed(_layers(density, ladder)):
        fresh = [(layer, int(i), float(layer.p[i])) for i in np.flatnonzero(layer.p <= level)]
        remaining = []
        for parent, i, p in kept:
            children = [c for c in fresh if parent.basin(layer.points[c[1]]) == i]
            if len(children) == 1:  # the same mode seen again: keep the clearer view
                fresh.remove(children[0])
                remaining.append(min([(parent, i, p), children[0]], key=lambda entry: entry[2]))
            elif not children:
                remaining.append((parent, i, p))
        kept = remaining + fresh
    return Found(
        np.array([entry[0].points[entry[1]] for entry in kept]).reshape(-1, ladder.d),
        np.array([entry[0].rung for entry in kept], dtype=np.int64),
        np.array([entry[2] for entry in kept]),
    )


def peak_p_values(density: PrivateDensity, ladder: Ladder, positions: FloatArray) -> FloatArray:
    """P-value of the clearest peak within a bandwidth of each position, over the tested scales."""
    best = np.ones(len(positions))
    for layer in _layers(density, ladder):
        bandwidth = ladder.readings[layer.rung].bandwidth
        for k, position in enumerate(positions):
            near = np.linalg.norm((layer.points - position) / bandwidth, axis=1) <= 1
            best[k] = min([best[k], *layer.p[near]])
    return best


def what_would_help(density: PrivateDensity, ladder: Ladder, level: float) -> str:
    """Say what kept every peak below the fogline."""
    rungs = _rungs(ladder)
    null = null_of(density, [ladder.readings[q] for q in rungs])
    shortfall, rung = np.inf, rungs[-1]
    for scale, (q, ground) in enumerate(zip(rungs, null.grounds, strict=True)):
        reading = ground.reading
        _, relief, _ = ground.measure(reading.fields(reading.coefficients[None], ground.shape))
        ratio = null.relief[scale].quantile(level, len(rungs)) / max(float(relief.max(initial=0.0)), 1e-9)
        if ratio < shortfall:
            shortfall, rung = ratio, q
    reading = ladder.readings[rung]
    spread = 1 / float(np.prod(2 * np.sqrt(np.pi) * reading.bandwidth))
    sampling = spread * max(float(reading.on_grid(2.0).values.max()), 0.0) / density.count
    share = reading.noise_sd**2 / (reading.noise_sd**2 + sampling)
    if shortfall <= 1:
        return "nothing stands above the fog: the highest peak is too flat to be told from a plateau"
    cure = (
        f"about {shortfall:.1f} times the epsilon (or the records) would show it if it is real"
        if share > 0.5
        else f"about {shortfall**2:.1f} times the records would show it if it is real; more epsilon would help little"
    )
    return (
        f"nothing stands above the fog: the clearest peak, at bandwidth {np.round(reading.bandwidth, 4).tolist()}, has "
        f"{100 / shortfall:.0f}% of the prominence needed; {share:.0%} of the noise there is privacy noise; {cure}, "
        "as would a larger bandwidth if the peak is broad"
    )


def fog_level(density: PrivateDensity, reading: Reading, level: float, at: FloatArray | None) -> float | FloatArray:
    """Prominence that noise alone reaches with probability ``level``, at the densest place or at given points."""
    null = null_of(density, [reading])
    relief = null.relief[0].quantile(level, 1)
    smooth = _smooth_reading(density)
    spread = 1 / float(np.prod(2 * np.sqrt(np.pi) * reading.bandwidth))
    height = smooth.on_grid(2.0).values.max()[None] if at is None else smooth.value(at)
    sd = np.sqrt(reading.noise_sd**2 + spread * np.maximum(height, 0) / density.count)
    return float(relief * sd[0]) if at is None else np.asarray(relief * sd)
