r"""The fogline: how prominent a peak noise alone would raise, and which peaks stand above it.

Noise has two parts. Privacy noise is a stationary Gaussian field whose spectrum is known exactly. Sampling noise
is that of a Poisson sample from the released density itself. Both are simulated together, at a few scales from
the same draws, on flat ground (on a slope a bump makes no peak) and along level lines (on a ridge a bump cannot be
walked around, so its prominence is larger). Near the walls of the box a kernel loses the part that falls
outside, so that part is folded back, as if the walls were mirrors: data that fill the box evenly then look even,
and data that stay away from the walls look as before.

A peak's *standardised prominence* is its prominence over the local standard deviation of the noise. At each scale the
simulations give the rate :math:`\lambda(x)` of noise peaks with one above x, with an exponential tail fitted to the
largest; the chance of such a peak anywhere, at any of R scales tried, is at most :math:`1 - e^{-R\lambda(x)}`: that is
a peak's p-value. The highest peak has only the edge of the box to stand out against, so its curvature must also exceed
what the highest peak of the noise has, unless a lower peak stands out: then there are two at least.

The fogline: which peaks of a released density cannot be noise.

The peaks are compared with those that privacy noise and sampling noise raise by themselves
(:mod:`fogline.density.modes.significance`), at a few scales. Coarse scales come first; a coarse peak that splits into
several significant ones at a finer scale gives way to them.

Records that gather at a wall of the box: no mode, and worth a word.

A mode has lower ground all around it. Where a column ends (stays cannot be shorter than nothing) the densest place is
often the end itself, or so close to it that its kernel reaches over. The walls are mirrors, so there the density rises
all the way to the wall, nothing stands out, and the largest group of all may be missing from a list of modes. This says
so, from the release alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import fft as scipy_fft
from scipy.ndimage import map_coordinates, maximum_filter1d
from scipy.special import ndtr

from fogline._typing import ComplexArray, FloatArray, IntArray
from fogline.density.counted_records import nothing_counted
from fogline.density.grid_reading import Reading
from fogline.density.modes.peaks import Peaks, find_peaks, join_basins, line_prominences
from fogline.density.modes.scale_space import ScaleSpace
from fogline.density.modes.search import SmallestShare
from fogline.density.shortfall import NOTHING, Shortfall, widths_in_words
from fogline.density.value_words import place_words

if TYPE_CHECKING:
    from fogline.density.modes.scale_space import ScaleSpace
    from fogline.density.private_density import PrivateDensity

__all__ = [
    "SIGNIFICANCE",
    "Found",
    "Layer",
    "NoiseField",
    "NullDistribution",
    "SignificanceTuning",
    "Tail",
    "at_a_wall",
    "fog_level",
    "kernel_energy",
    "merge_layers",
    "noise_sums",
    "null_of",
    "peak_p_values",
    "ridge_tail",
    "shortfall_message",
    "significant_peaks",
    "simulate_null",
    "smooth_reading",
    "tested_scales",
]


@dataclass(frozen=True)
class SignificanceTuning:
    """What is tuned of the null distribution of peaks, and of the look at the walls.

    Attributes
    ----------
    simulations : mapping by dimension
        Simulated fields by dimension: a field of more dimensions holds more peaks to learn from.
    tail_peaks : mapping by dimension
        How many peaks a field, the largest of all fields together, the tail is fitted to.
    null_points_per_bandwidth : float
        Grid points per bandwidth, for data and simulations alike.
    finer : mapping by dimension
        The released density is looked at on a grid this many times finer per axis, by dimension.
    ridges : int
        Noise on a ridge cannot be walked around: ridges as long as this many lines across the box are allowed
        for.
    ridge_peaks : float
        How many peaks a line the tail of ridges is fitted to.
    ridge_lines : int
        About this many grid lines per axis of each simulation are used for them: neighbouring ones are much alike.
    smoother : float
        Sampling noise is simulated from the density at this many times its default bandwidth.
    test_scales : mapping by dimension
        Scales, of eleven, at which peaks are tested, by dimension.
    clearly : float
        Standard deviations by which a wall must be denser than all modes: far beyond what noise does anywhere
        in a box.
    near : float
        A mode within this many bandwidths of the place is taken for it.
    fade : float
        Images in a wall fade out in the gap between the walls, from this many deviations of a normal law above one half
        to as many below.
    """

    simulations: Mapping[int, int] = field(default_factory=lambda: {1: 256, 2: 32, 3: 20})
    tail_peaks: Mapping[int, float] = field(default_factory=lambda: {1: 0.5, 2: 2.0, 3: 4.0})
    null_points_per_bandwidth: float = 2.0
    finer: Mapping[int, int] = field(default_factory=lambda: {1: 4, 2: 4, 3: 2})
    ridges: int = 2
    ridge_peaks: float = 0.1
    ridge_lines: int = 6
    smoother: float = 1.5
    test_scales: Mapping[int, tuple[int, ...]] = field(
        default_factory=lambda: {1: (0, 3, 5, 7, 10), 2: (2, 4, 7, 10), 3: (2, 4, 7, 10)}
    )
    clearly: float = 6.0
    near: float = 3.0
    fade: float = 4.0


SIGNIFICANCE = SignificanceTuning()


NO_DOUBT = 1e-9
"""P-value below which a peak is certain."""

SEED = 5772156649
"""Simulations only calibrate a threshold: a fixed seed makes reading a release repeatable."""


@dataclass(frozen=True)
class Tail:
    """Noise peaks per field above a standardised prominence x: ``rate * exp(-(x - start)/scale)`` beyond ``start``."""

    rate: float
    start: float
    scale: float

    @classmethod
    def fit(cls, values: FloatArray, fields: int, per_field: float) -> Tail:
        """Fit to the largest ``per_field * fields`` values of all fields together."""
        finite_values = np.sort(values[np.isfinite(values)])[::-1]
        m = min(round(per_field * fields), max(len(finite_values) - 1, 0))
        # Too few peaks to fit a tail to: a law under which nothing is significant.
        if m < 2:
            return cls(1.0, 0.0, 1.0)
        return cls(
            m / fields, float(finite_values[m]), max(float(np.mean(finite_values[:m] - finite_values[m])), 1e-12)
        )

    def expected(self, x: FloatArray) -> FloatArray:
        """Expected number of peaks above x in one field; above the start of the tail only."""
        return np.asarray(self.rate * np.exp(-np.maximum(x - self.start, 0.0) / self.scale))

    def chance(self, x: FloatArray, effective_tests: float) -> FloatArray:
        """Chance that some peak of ``effective_tests`` fields exceeds x; one where x is below the tail."""
        return np.asarray(np.where(x <= self.start, 1.0, -np.expm1(-effective_tests * self.expected(x))))

    def quantile(self, level: float, effective_tests: float) -> float:
        """Standardised prominence exceeded with chance ``level`` over ``effective_tests`` fields."""
        rate = -np.log1p(-level) / effective_tests
        return self.start + self.scale * float(np.log(max(self.rate / rate, 1.0)))


@dataclass(frozen=True)
class NoiseField:
    """A scale's grid over the box, and the standard deviation of the noise on it.

    ``sd`` is that of the simulations, ``sd_released`` that of the released density; they differ where the density
    is sharper than the smooth version that the simulations draw their samples from.
    """

    reading: Reading
    shape: tuple[int, ...]
    sd: FloatArray
    sd_released: FloatArray

    def simulated(self, sums: ComplexArray) -> FloatArray:
        """Fields of simulated sums."""
        return folded_fields(self.reading, sums, self.shape)

    def released(self) -> tuple[FloatArray, FloatArray]:
        """Released density on this grid, as batches of one: the highest value around each point, and the value there.

        Highest values are taken from a finer grid: a narrow ridge that runs between grid points would otherwise
        look like a string of peaks.
        """
        d = len(self.shape)
        step = SIGNIFICANCE.finer[d]
        fine = folded_fields(self.reading, self.reading.sums[None], tuple(step * n for n in self.shape))[0]
        every = tuple(slice(0, None, step) for _ in range(d))
        inside = (None, *(slice(0, n) for n in self.sd.shape))
        # The peaks are sought among the highest values nearby, and judged by the values themselves.
        highest = fine
        for axis in range(d):  # an even window around each kept point: neighbours share no fine point, hence no ties
            highest = maximum_filter1d(highest, step, axis=axis, mode="nearest")
        return np.ascontiguousarray(highest[every][inside]), np.ascontiguousarray(fine[every][inside])

    def measure_released(self) -> tuple[Peaks, FloatArray, FloatArray]:
        """Peaks of the released density with standardised prominence and curvature."""
        highest, values = self.released()
        return measure(highest, self.sd_released, values)


def measure(
    fields: FloatArray, sd: FloatArray, values: FloatArray | None = None
) -> tuple[Peaks, FloatArray, FloatArray]:
    """Peaks of a batch of fields, their standardised prominence, and the least curvature of each (of ``values``)."""
    peaks = find_peaks(fields)
    scale = sd.ravel()[peaks.cell]
    # A peak on the edge of the grid leans on a wall: it has no prominence of its own.
    standardised_prominence = np.where(peaks.interior, peaks.prominence / scale, -np.inf)
    least = _least_curvature(fields if values is None else values, peaks)
    return peaks, standardised_prominence, np.where(peaks.interior, least / scale, -np.inf)


def folded_fields(reading: Reading, sums: ComplexArray, shape: tuple[int, ...]) -> FloatArray:
    """Fields over the box of sums of shape (s, F), with what lies outside folded back over the walls.

    The torus is only a few bandwidths longer than the box. Read off the torus, the mirror image of one wall would see
    records at the other and raise a ghost far inside the box. An image therefore sees its own side alone: its kernel
    fades out in the empty gap between the walls.
    """
    spec = reading.spec
    reach = np.abs(spec.frequencies).max(axis=0)
    # Both of each pair of frequencies in one table, so that an axis is one matrix product.
    table = np.zeros((len(sums), *(2 * reach + 1)), dtype=np.complex128)
    table[(slice(None), *(reach - spec.frequencies).T)] = sums.conj()
    table[(slice(None), *(reach + spec.frequencies).T)] = sums
    for j, axis in enumerate(reading.grid_axes(shape)):
        folding = _folding(reading, j, axis, int(reach[j]))
        table = np.moveaxis(np.tensordot(table, folding, axes=(j + 1, 1)), -1, j + 1)
    return np.ascontiguousarray(table.real * reading.unit)


def _folding(reading: Reading, j: int, axis: FloatArray, reach: int) -> ComplexArray:
    """Matrix (points, frequencies) from the sums of one axis to kernel sums and their images in both walls."""
    # A search asks for the same few matrices again and again; they take most of its time. Large ones are not kept.
    make = _folding_of if len(axis) * (2 * reach + 1) <= _KEPT else _folding_of.__wrapped__
    return make(_axis(reading, j), axis.tobytes(), reach, SIGNIFICANCE.fade)


class _Axis(NamedTuple):
    """One axis of a reading: the box, the torus around it, and the bandwidth."""

    lower: float
    upper: float
    width: float
    period: float
    origin: float
    bandwidth: float


def _axis(reading: Reading, j: int) -> _Axis:
    spec = reading.spec
    public = (spec.lower[j], spec.upper[j], spec.widths[j], spec.periods[j], spec.origin[j], reading.bandwidth[j])
    return _Axis(*map(float, public))


_KEPT = 2**18
"""Most entries of a matrix that is kept: 4 MB."""


@lru_cache(maxsize=24)
def _folding_of(line: _Axis, points: bytes, reach: int, fading: float) -> ComplexArray:
    """Compute the matrix of `_folding` from public numbers alone; not to be written to."""
    axis, h = np.frombuffer(points), line.bandwidth
    low, width, period = line.lower, line.width, line.period
    # The other half of the frequencies has the conjugate waves.
    omega = 2 * np.pi / period * np.arange(reach + 1)
    angles = np.outer(axis - line.origin, omega)
    folding = (np.cos(angles) + 1j * np.sin(angles)) * np.exp(-0.5 * (h * omega) ** 2)
    gap = period - width
    size = max(4 * (2 * reach + 1), int(np.ceil(8 * period / h)))
    steps = period * np.arange(size) / size
    weights = _mirror_weights(line, axis)
    # A regular rule around the torus for each wall, that begins or ends at the other wall, beyond the gap.
    rules = (low - axis, steps - gap, gap - steps), (low + 2 * width - axis, steps, steps - width)
    for weight, (image, places, outside) in zip(weights, rules, strict=True):
        # A smooth fade keeps high frequencies, of which there is mostly noise, out of the images.
        fade = ndtr(fading * (1 - 2 * np.clip(outside / gap, 0.0, 1.0)))
        near = weight > 0
        kernel = np.exp(-0.5 * ((image[near, None] - places) / h) ** 2) * (fade * period / size)
        # A rule goes once around in equal steps, so that its sums over waves are a Fourier transform, up to a phase.
        sums = np.fft.rfft(kernel / (np.sqrt(2 * np.pi) * h), axis=1)[:, : reach + 1].conj()
        folding[near] += weight[near, None] * sums * np.exp(1j * (places[0] + low - line.origin) * omega)
    kept: ComplexArray = np.concatenate([folding[:, :0:-1].conj(), folding], axis=1)
    kept.flags.writeable = False
    return kept


def _mirror_weights(line: _Axis, axis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of the mirror images in the two walls: one at the wall, fading out by three bandwidths."""
    distances = (axis - line.lower) / line.bandwidth, (line.upper - axis) / line.bandwidth
    low, high = (np.cos(np.pi / 2 * np.clip((t - 1.5) / 1.5, 0, 1)) ** 2 for t in distances)
    return low, high


@dataclass(frozen=True)
class NullDistribution:
    """What noise alone does at some scales: tails of prominence, mean and deviation of the top peak's curvature."""

    noise_fields: tuple[NoiseField, ...]
    standardised_prominence: tuple[Tail, ...]
    ridge: tuple[Tail | None, ...]
    curvature: tuple[tuple[float, float], ...]
    effective_tests: float  # scales that count: neighbouring ones see much the same noise

    def chance(self, scale: int, standardised_prominence: FloatArray) -> FloatArray:
        """Chance of so large a prominence anywhere, on a plain or on ridges, at any of the scales."""
        effective_tests, ridge = self.effective_tests, self.ridge[scale]
        p = self.standardised_prominence[scale].chance(standardised_prominence, effective_tests)
        return (
            p
            if ridge is None
            else np.maximum(p, ridge.chance(standardised_prominence, SIGNIFICANCE.ridges * effective_tests))
        )

    def needed(self, scale: int, level: float) -> float:
        """Standardised prominence above which :meth:`chance` falls below ``level``."""
        effective_tests, ridge = self.effective_tests, self.ridge[scale]
        plain = self.standardised_prominence[scale].quantile(level, effective_tests)
        return plain if ridge is None else max(plain, ridge.quantile(level, SIGNIFICANCE.ridges * effective_tests))

    def p_values(
        self, scale: int, peaks: Peaks, standardised_prominence: FloatArray, curvature: FloatArray
    ) -> FloatArray:
        """Chance of so large a prominence anywhere at any scale; for the highest peak, of so sharp a one too.

        The highest peak need not be sharp where a lower one stands out: the pass between them is below both. A long
        or bent ridge beside another is a mode although it is flat along its crest.
        """
        p = np.where(peaks.interior, self.chance(scale, standardised_prominence), 1.0)
        if peaks.interior.any():
            top = int(np.argmax(np.where(peaks.interior, peaks.height, -np.inf)))
            mean, sd = self.curvature[scale]
            # A plateau has no pass to a higher peak: only curvature tells its summit from noise on flat ground.
            sharp = min(1.0, self.effective_tests * float(ndtr((mean - curvature[top]) / sd)))
            divided = float(np.delete(p, top).min(initial=1.0))
            p[top] = max(p[top], min(sharp, divided))
        return np.asarray(p)


def simulate_null(density: PrivateDensity, readings: Sequence[Reading]) -> NullDistribution:
    """Simulate privacy plus sampling noise and fit the laws of its peaks."""
    d = density.spec.d
    noise_fields = tuple(_noise_field(density, reading) for reading in readings)
    sums = noise_sums(density, noise_fields[0].shape)
    tails, ridges, curvatures = [], [], []
    rarest = np.full(len(sums), np.inf)
    for noise_field in noise_fields:
        fields = noise_field.simulated(sums)
        peaks, standardised_prominence, curvature = measure(fields, noise_field.sd)
        tails.append(Tail.fit(standardised_prominence, len(sums), SIGNIFICANCE.tail_peaks[d]))
        largest = np.full(len(sums), -np.inf)
        np.maximum.at(largest, peaks.field, standardised_prominence)
        # The same simulated sums are read at all scales, so that their dependence is that of a release.
        rarest = np.minimum(rarest, tails[-1].expected(largest))
        # On one axis there is no crest along which noise could raise a string of peaks.
        ridges.append(None if d == 1 else ridge_tail(fields / noise_field.sd))
        highest = _of_highest(peaks, curvature, len(sums))
        curvatures.append((float(np.mean(highest)), max(float(np.std(highest, ddof=1)), 1e-12)))
    # With R independent scales the rarest of R Exp(1) variables has mean 1/R: read the number that counts from it.
    effective_tests = float(np.clip(1 / np.mean(rarest), 1.0, len(noise_fields)))
    return NullDistribution(noise_fields, tuple(tails), tuple(ridges), tuple(curvatures), effective_tests)


def ridge_tail(standard: FloatArray) -> Tail:
    """Standardised prominence of noise along straight lines across the box: what a narrow, level ridge would show."""
    lines = []
    for axis in range(1, standard.ndim):
        line = np.moveaxis(standard, axis, -1)
        thinned = line[
            (slice(None), *(slice(None, None, max(1, n // SIGNIFICANCE.ridge_lines)) for n in line.shape[1:-1]))
        ]
        lines.append(thinned.reshape(-1, line.shape[-1]))
    standardised_prominence = np.concatenate([line_prominences(batch)[2] for batch in lines])
    return Tail.fit(standardised_prominence, sum(map(len, lines)), SIGNIFICANCE.ridge_peaks)


def _of_highest(peaks: Peaks, curvature: FloatArray, fields: int) -> FloatArray:
    """Curvature of the highest interior peak of each field."""
    height = np.where(peaks.interior, peaks.height, -np.inf)
    order = np.lexsort((height, peaks.field))
    last = np.searchsorted(peaks.field[order], np.arange(fields), side="right") - 1
    return np.maximum(curvature[order[last]], 0.0)


def _noise_field(density: PrivateDensity, reading: Reading) -> NoiseField:
    shape = reading.grid_shape(SIGNIFICANCE.null_points_per_bandwidth)
    axes = reading.grid_axes(shape)
    privacy = np.full([len(a) for a in axes], reading.noise_sd**2)
    sampling = np.full(privacy.shape, kernel_energy(reading) / density.count)
    for j, axis in enumerate(axes):  # a point and its mirror image share their noise the more, the closer they are
        line = [-1 if i == j else 1 for i in range(len(axes))]
        for weight, wall in zip(
            _mirror_weights(_axis(reading, j), axis), (axis - axis[0], axis[-1] - axis), strict=True
        ):
            shared = np.exp(-((wall / reading.bandwidth[j]) ** 2))
            privacy = privacy * (1 + weight**2 + 2 * weight * shared).reshape(line)
            sampling = sampling * (1 + weight * shared).reshape(line)
    smooth = smooth_reading(density)
    # The released density may be sharper than the smooth one: the larger deviation of the two is the safe one.
    smooth_level, level = (np.maximum(_level(r, axes), 0) for r in (smooth, reading))
    return NoiseField(
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
    own = reading.grid_shape(SIGNIFICANCE.null_points_per_bandwidth)
    field = folded_fields(reading, reading.sums[None], own)[0]
    steps = [(a - a[0]) / (b[1] - b[0]) for a, b in zip(axes, reading.grid_axes(own), strict=True)]
    return np.asarray(map_coordinates(field, np.meshgrid(*steps, indexing="ij"), order=1, mode="nearest"))


def _at_least(reading: Reading, shape: tuple[int, ...]) -> tuple[int, ...]:
    needed = 2 * np.abs(reading.frequencies).max(axis=0) + 1
    return tuple(int(max(s, n)) for s, n in zip(shape, needed, strict=True))


def smooth_reading(density: PrivateDensity) -> Reading:
    """Reading from which sampling noise is simulated: smoother than the density's own."""
    reading: Reading = density.reading(
        np.minimum(SIGNIFICANCE.smoother * density.bandwidth, density.bandwidth_range[1])
    )
    return reading


def noise_sums(density: PrivateDensity, shape: tuple[int, ...]) -> ComplexArray:
    """Simulated noise of the Fourier sums, privacy and sampling together; shape (simulations, F)."""
    spec = density.spec
    rng = np.random.default_rng(SEED)
    simulations = SIGNIFICANCE.simulations[spec.d]
    size = (simulations, len(spec.frequencies))
    # At such scales the discrete Gaussian cannot be told from the continuous one.
    sums = (rng.standard_normal(size) + 1j * rng.standard_normal(size)) * (
        density.noise_scale / np.sqrt(density.weights)
    )
    smooth = smooth_reading(density)
    full = _at_least(smooth, shape)
    level = np.maximum(smooth.fields(smooth.coefficients[None], full)[0], 0)
    expected = level / max(level.sum(), 1e-300) * density.count
    # Poisson counts on the grid stand for the draw of the records; their mean is what noise is added to.
    drawn = rng.poisson(expected, size=(simulations, *expected.shape)) - expected
    torus = np.zeros((simulations, *full))
    torus[(slice(None), *(slice(0, n) for n in expected.shape))] = drawn
    spectrum = scipy_fft.fftn(torus, axes=tuple(range(1, spec.d + 1)))
    # Frequencies beyond the grid would alias; at them the kernel leaves nothing of the sampling noise anyway.
    resolved = np.all(2 * np.abs(spec.frequencies) < np.array(full), axis=1)
    index = tuple(spec.frequencies[resolved].T % np.array(full)[:, None])
    phase = np.exp(-1j * (spec.angular[resolved] @ (spec.lower - spec.origin)))
    sums[:, resolved] += spectrum[(slice(None), *index)] * phase
    return np.asarray(sums)


def _least_curvature(fields: FloatArray, peaks: Peaks) -> FloatArray:
    """Smallest eigenvalue of minus the second differences at each peak (clipped into the grid at its edge)."""
    shape = fields.shape[1:]
    d = len(shape)
    # Second differences need both neighbours.
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


@dataclass(frozen=True)
class Found:
    """Significant peaks: where, at which scale, with which p-value; and where and at which scale they are clearest."""

    positions: FloatArray
    scale: IntArray
    p_values: FloatArray
    clear_positions: FloatArray
    clear_scale: IntArray


def tested_scales(scale_space: ScaleSpace) -> list[int]:
    """Scales at which peaks are tested."""
    return [0] if len(scale_space.readings) == 1 else list(SIGNIFICANCE.test_scales[scale_space.d])


def null_of(density: PrivateDensity, readings: Sequence[Reading]) -> NullDistribution:
    """Laws of the noise at some bandwidths; kept with the density."""
    key = ("null", tuple(tuple(r.bandwidth.tolist()) for r in readings))
    if key not in density._memory:
        density._memory[key] = simulate_null(density, readings)
    known: NullDistribution = density._memory[key]
    return known


@dataclass(frozen=True)
class Layer:
    """Peaks of the released density at one tested scale, and the field they were found in."""

    scale: int
    field: FloatArray
    peaks: Peaks
    points: FloatArray
    p: FloatArray
    start: FloatArray
    spacing: FloatArray

    def basin(self, point: FloatArray) -> int:
        """Peak to which the grid point nearest to a place climbs."""
        cell = np.rint((point - self.start) / self.spacing).astype(int)
        return int(self.peaks.basin[(0, *np.clip(cell, 0, np.array(self.field.shape) - 1))])

    def hills(self, level: float) -> IntArray:
        """Hill of each peak: a significant peak, and all the others that are joined to it over the highest passes."""
        return join_basins(self.field, self.peaks.basin[0], self.p <= level)


def _layers(density: PrivateDensity, scale_space: ScaleSpace) -> list[Layer]:
    scales = tested_scales(scale_space)
    key = ("layers", tuple(tuple(scale_space.readings[q].bandwidth.tolist()) for q in scales))
    if key in density._memory:
        known: list[Layer] = density._memory[key]
        return known
    null = null_of(density, [scale_space.readings[q] for q in scales])
    layers = []
    for scale, (scale_index, noise_field) in enumerate(zip(scales, null.noise_fields, strict=True)):
        reading = noise_field.reading
        highest, values = noise_field.released()
        peaks, standardised_prominence, curvature = measure(highest, noise_field.sd_released, values)
        p = null.p_values(scale, peaks, standardised_prominence, curvature)
        axes = reading.grid_axes(noise_field.shape)
        index = np.unravel_index(peaks.cell, noise_field.sd.shape)
        points = np.stack([a[i] for a, i in zip(axes, index, strict=True)], axis=1)
        spacing = np.array([a[1] - a[0] for a in axes])
        layers.append(Layer(scale_index, highest[0], peaks, points, p, np.array([a[0] for a in axes]), spacing))
    density._memory[key] = layers
    return layers


def significant_peaks(density: PrivateDensity, scale_space: ScaleSpace, level: float) -> Found:
    """Peaks above the fogline at some scale: coarse ones first, each replaced by what it splits into."""
    return merge_layers(_layers(density, scale_space), level, scale_space.d)


def merge_layers(layers: Sequence[Layer], level: float, d: int) -> Found:
    """Significant peaks of all scales, finest first in `layers`: coarse ones, each replaced by what it splits into."""
    kept: list[tuple[Layer, int, float]] = []
    clearest: dict[tuple[int, int], tuple[Layer, int, float]] = {}
    for layer in reversed(layers):
        fresh = [(layer, int(i), float(layer.p[i])) for i in np.flatnonzero(layer.p <= level)]
        clearest |= {(layer.scale, i): (layer, i, p) for _, i, p in fresh}
        remaining = []
        for parent, i, p in kept:
            # A coarse peak stays one mode until a finer scale shows at least two significant ones in its basin.
            children = [c for c in fresh if parent.basin(layer.points[c[1]]) == i]
            if not children:
                children = _moved(parent, i, fresh, level)
            if len(children) == 1:  # the same mode seen again: followed from the coarser view, which noise bends less
                fresh.remove(children[0])
                remaining.append((parent, i, min(p, children[0][2])))
                # Of views that leave no doubt the finest moves a peak least.
                if max(children[0][2], NO_DOUBT) <= max(clearest[parent.scale, i][2], NO_DOUBT):
                    clearest[parent.scale, i] = children[0]
            elif not children:
                remaining.append((parent, i, p))
        kept = remaining + fresh
    clear = [clearest[parent.scale, i] for parent, i, _ in kept]
    return Found(
        np.array([entry[0].points[entry[1]] for entry in kept]).reshape(-1, d),
        np.array([entry[0].scale for entry in kept], dtype=np.int64),
        np.array([entry[2] for entry in kept]),
        np.array([entry[0].points[entry[1]] for entry in clear]).reshape(-1, d),
        np.array([entry[0].scale for entry in clear], dtype=np.int64),
    )


def _moved(
    parent: Layer, i: int, fresh: list[tuple[Layer, int, float]], level: float
) -> list[tuple[Layer, int, float]]:
    """Peak of a finer scale that stands on the same hill as a coarse one, though not in its basin.

    On a long crest the highest place is where the noise of each scale puts it. Two peaks are the same if each lies on
    the other's hill.
    """
    hills = parent.hills(level)
    found = []
    for candidate in fresh:
        layer, j, _ = candidate
        finer = layer.hills(level)
        there = hills[parent.basin(layer.points[j])] == hills[i]
        if there and finer[layer.basin(parent.points[i])] == finer[j]:
            found.append(candidate)
    return found


def peak_p_values(density: PrivateDensity, scale_space: ScaleSpace, positions: FloatArray) -> FloatArray:
    """P-value of the clearest peak within a bandwidth of each position, over the tested scales."""
    best = np.ones(len(positions))
    for layer in _layers(density, scale_space):
        bandwidth = scale_space.readings[layer.scale].bandwidth
        for k, position in enumerate(positions):
            near = np.linalg.norm((layer.points - position) / bandwidth, axis=1) <= 1
            best[k] = min([best[k], *layer.p[near]])
    return best


def shortfall_message(density: PrivateDensity, scale_space: ScaleSpace, level: float) -> str:
    """Say what kept every peak below the fogline; no advice to spend more where nothing was counted."""
    if said := nothing_counted(density):
        return said
    scales = tested_scales(scale_space)
    null = null_of(density, [scale_space.readings[q] for q in scales])
    factor, scale_index = np.inf, scales[-1]
    for scale, (q, noise_field) in enumerate(zip(scales, null.noise_fields, strict=True)):
        _, standardised_prominence, _ = noise_field.measure_released()
        # Prominence grows with the signal over the noise, so the ratio is how many times that must grow.
        ratio = null.needed(scale, level) / max(float(standardised_prominence.max(initial=0.0)), 1e-9)
        if ratio < factor:
            factor, scale_index = ratio, q
    reading = scale_space.readings[scale_index]
    sampling = kernel_energy(reading) * max(float(reading.on_grid(2.0).values.max()), 0.0) / density.count
    share = reading.noise_sd**2 / (reading.noise_sd**2 + sampling)
    if factor <= 1:
        return f"{NOTHING}: the highest peak is too flat to be told from a plateau"
    shortfall = Shortfall(f"peak, at bandwidth {widths_in_words(reading.bandwidth)},", factor, share)
    return f"{shortfall.message(noise='the noise there')}; a larger bandwidth may show a broad peak"


def fog_level(density: PrivateDensity, reading: Reading, level: float, at: FloatArray | None) -> float | FloatArray:
    """Prominence that noise alone reaches with probability ``level``, at the densest place or at given points."""
    null = null_of(density, [reading])
    standardised_prominence = null.needed(0, level)
    smooth = smooth_reading(density)
    height = smooth.on_grid(2.0).values.max()[None] if at is None else smooth.value(at)
    sd = np.sqrt(reading.noise_sd**2 + kernel_energy(reading) * np.maximum(height, 0) / density.count)
    return float(standardised_prominence * sd[0]) if at is None else np.asarray(standardised_prominence * sd)


class GridSearch:
    """The search in densities that have a grid, see :class:`~fogline.density.modes.search.ModeSearch`."""

    has_grid = True

    def smallest_share(self, density: PrivateDensity, scale_space: ScaleSpace, level: float) -> SmallestShare:
        """Return the smallest part of the records that would be seen, at the scale where that is."""
        scales = tested_scales(scale_space)
        null = null_of(density, [scale_space.readings[q] for q in scales])
        height = max(float(smooth_reading(density).on_grid(2.0).values.max()), 0.0)
        found = []
        for scale, q in enumerate(scales):
            reading = scale_space.readings[q]
            sd = np.sqrt(reading.noise_sd**2 + kernel_energy(reading) * height / density.count)
            prominence = float(null.needed(scale, level) * sd)
            found.append(SmallestShare(prominence, reading.bandwidth, prominence * float(scale_space.peak[q])))
        best = min(found, key=lambda entry: entry.share)
        return best._replace(share=min(best.share, 1.0))


def at_a_wall(density: PrivateDensity, scale_space: ScaleSpace, modes: FloatArray) -> str:
    """Say where records are denser, at a wall, than at any of the modes; empty if they are not.

    Parameters
    ----------
    density : PrivateDensity
    scale_space : ScaleSpace
        Bandwidths at which modes were sought.
    modes : array of shape (k, d)
        Those that are reported; with none of them a wall is compared with the mean of the box.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> sketch = DensitySketch([(0, 10)]).update(np.random.default_rng(0).exponential(1, size=(5000, 1)))
    >>> "records are densest at the low end of column 1" in sketch.release(epsilon=1.0, delta=1e-5).modes().message
    True
    """
    scales = tested_scales(scale_space)
    null = null_of(density, [scale_space.readings[q] for q in scales])
    for noise_field in null.noise_fields[::-1]:  # the broadest view has the least noise
        said = _seen(noise_field, modes, density.columns)
        if said:
            return said
    return ""


def _seen(noise_field: NoiseField, modes: FloatArray, columns: Sequence[str] | None) -> str:
    reading = noise_field.reading
    field = folded_fields(reading, reading.sums[None], noise_field.shape)[0]
    axes = reading.grid_axes(noise_field.shape)
    place = np.unravel_index(int(np.argmax(field)), field.shape)
    boundary_axes = [j for j, i in enumerate(place) if i in (0, field.shape[j] - 1)]
    where = np.array([axis[i] for axis, i in zip(axes, place, strict=True)])
    if not boundary_axes or np.any(np.linalg.norm((modes - where) / reading.bandwidth, axis=1) <= SIGNIFICANCE.near):
        return ""
    other, error = _elsewhere(noise_field, field, axes, modes)
    if field[place] - other <= SIGNIFICANCE.clearly * np.hypot(noise_field.sd_released[place], error):
        return ""
    names = [f"column {j + 1}" for j in range(field.ndim)] if columns is None else columns
    ends = " and ".join(f"the {'low' if place[j] == 0 else 'high'} end of {names[j]}" for j in boundary_axes)
    widths = reading.spec.widths.tolist()
    around = ", ".join(place_words(value, width) for value, width in zip(where.tolist(), widths, strict=True))
    return (
        f"records are densest at {ends}, around ({around}): what leans on a wall is not counted as a mode; "
        "a shorter range of that column, or its logarithm, may show one"
    )


def _elsewhere(
    noise_field: NoiseField, field: FloatArray, axes: tuple[FloatArray, ...], modes: FloatArray
) -> tuple[float, float]:
    """Height of the highest mode and its standard deviation, or of an even density, which has none."""
    if not len(modes):
        return 1 / float(np.prod(noise_field.reading.spec.widths)), 0.0
    cells = [tuple(int(np.argmin(np.abs(axis - x))) for axis, x in zip(axes, mode, strict=True)) for mode in modes]
    highest = max(cells, key=lambda cell: float(field[cell]))
    return float(field[highest]), float(noise_field.sd_released[highest])
