"""The fogline: which peaks of a released density cannot be noise.

The peaks are compared with those that privacy noise and sampling noise raise by themselves
(:mod:`fogline.sketch.noise_peaks`), at a few scales. Coarse scales come first; a coarse peak that splits into several
significant ones at a finer scale gives way to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.counted_records import nothing_counted
from fogline.sketch.landscape import Peaks, join_basins
from fogline.sketch.noise_peaks import Null, kernel_energy, measure, simulate_null, smooth_reading
from fogline.sketch.reading import Reading

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity
    from fogline.sketch.tracks import Ladder

__all__ = ["Found", "fog_level", "null_of", "peak_p_values", "significant_peaks", "tested_rungs", "what_would_help"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TEST_RUNGS = {1: (0, 3, 5, 7, 10), 2: (2, 4, 7, 10), 3: (2, 4, 7, 10)}
"""Rungs of a ladder of eleven at which peaks are tested, by dimension."""


@dataclass(frozen=True)
class Found:
    """Significant peaks: where, on which rung of the ladder, with which p-value."""

    positions: FloatArray
    scale: IntArray
    p_values: FloatArray


def tested_rungs(ladder: Ladder) -> list[int]:
    """Rungs of a ladder at which peaks are tested."""
    return [0] if len(ladder.readings) == 1 else list(TEST_RUNGS[ladder.d])


def null_of(density: PrivateDensity, readings: Sequence[Reading]) -> Null:
    """Laws of the noise at some bandwidths; kept with the density."""
    key = ("null", tuple(tuple(r.bandwidth.tolist()) for r in readings))
    if key not in density._memory:
        density._memory[key] = simulate_null(density, readings)
    known: Null = density._memory[key]
    return known


@dataclass(frozen=True)
class _Layer:
    """Peaks of the released density at one tested rung, and the field they were found in."""

    rung: int
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


def _layers(density: PrivateDensity, ladder: Ladder) -> list[_Layer]:
    rungs = tested_rungs(ladder)
    key = ("layers", tuple(tuple(ladder.readings[q].bandwidth.tolist()) for q in rungs))
    if key in density._memory:
        known: list[_Layer] = density._memory[key]
        return known
    null = null_of(density, [ladder.readings[q] for q in rungs])
    layers = []
    for scale, (rung, ground) in enumerate(zip(rungs, null.grounds, strict=True)):
        reading = ground.reading
        highest, values = ground.released()
        peaks, relief, curvature = measure(highest, ground.sd_released, values)
        p = null.p_values(scale, peaks, relief, curvature)
        axes = reading.grid_axes(ground.shape)
        index = np.unravel_index(peaks.cell, ground.sd.shape)
        points = np.stack([a[i] for a, i in zip(axes, index, strict=True)], axis=1)
        spacing = np.array([a[1] - a[0] for a in axes])
        layers.append(_Layer(rung, highest[0], peaks, points, p, np.array([a[0] for a in axes]), spacing))
    density._memory[key] = layers
    return layers


def significant_peaks(density: PrivateDensity, ladder: Ladder, level: float) -> Found:
    """Peaks above the fogline at some scale: coarse ones first, each replaced by what it splits into."""
    kept: list[tuple[_Layer, int, float]] = []
    for layer in reversed(_layers(density, ladder)):
        fresh = [(layer, int(i), float(layer.p[i])) for i in np.flatnonzero(layer.p <= level)]
        remaining = []
        for parent, i, p in kept:
            children = [c for c in fresh if parent.basin(layer.points[c[1]]) == i]
            if not children:
                children = _moved(parent, i, fresh, level)
            if len(children) == 1:  # the same mode seen again: followed from the coarser view, which noise bends less
                fresh.remove(children[0])
                remaining.append((parent, i, min(p, children[0][2])))
            elif not children:
                remaining.append((parent, i, p))
        kept = remaining + fresh
    return Found(
        np.array([entry[0].points[entry[1]] for entry in kept]).reshape(-1, ladder.d),
        np.array([entry[0].rung for entry in kept], dtype=np.int64),
        np.array([entry[2] for entry in kept]),
    )


def _moved(
    parent: _Layer, i: int, fresh: list[tuple[_Layer, int, float]], level: float
) -> list[tuple[_Layer, int, float]]:
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
    """Say what kept every peak below the fogline; no advice to spend more where nothing was counted."""
    if said := nothing_counted(density):
        return said
    rungs = tested_rungs(ladder)
    null = null_of(density, [ladder.readings[q] for q in rungs])
    shortfall, rung = np.inf, rungs[-1]
    for scale, (q, ground) in enumerate(zip(rungs, null.grounds, strict=True)):
        _, relief, _ = ground.measure_released()
        ratio = null.needed(scale, level) / max(float(relief.max(initial=0.0)), 1e-9)
        if ratio < shortfall:
            shortfall, rung = ratio, q
    reading = ladder.readings[rung]
    sampling = kernel_energy(reading) * max(float(reading.on_grid(2.0).values.max()), 0.0) / density.count
    share = reading.noise_sd**2 / (reading.noise_sd**2 + sampling)
    if shortfall <= 1:
        return "nothing stands above the fog: the highest peak is too flat to be told from a plateau"
    cure = (
        f"about {shortfall:.1f} times the epsilon (or the records) would show it if it is real"
        if share > 0.5
        else f"about {shortfall**2:.1f} times the records would show it if it is real, more epsilon alone would not"
    )
    where = ", ".join(f"{h:.3g}" for h in reading.bandwidth)
    return (
        f"nothing stands above the fog: the clearest peak, at bandwidth {where}, has {100 / shortfall:.0f}% of the "
        f"prominence needed; {share:.0%} of the noise there is privacy noise; {cure}; a larger bandwidth may show a "
        "broad peak"
    )


def fog_level(density: PrivateDensity, reading: Reading, level: float, at: FloatArray | None) -> float | FloatArray:
    """Prominence that noise alone reaches with probability ``level``, at the densest place or at given points."""
    null = null_of(density, [reading])
    relief = null.needed(0, level)
    smooth = smooth_reading(density)
    height = smooth.on_grid(2.0).values.max()[None] if at is None else smooth.value(at)
    sd = np.sqrt(reading.noise_sd**2 + kernel_energy(reading) * np.maximum(height, 0) / density.count)
    return float(relief * sd[0]) if at is None else np.asarray(relief * sd)
