r"""Peaks of a density in a box too large for a grid: public starts, climbed and thinned, scale by scale.

At the largest scale the density is read at the points of a Sobol sequence; the highest that lie a bandwidth apart
are climbed by the guarded Newton steps of :func:`fogline.sketch.tracks.polish` (over-relaxed mean-shift steps where
the density is not concave), and those that meet become one. Each smaller scale starts from the peaks of the scale
above, from a pair of points on either side of each of them along its flattest axis, where a peak splits first, and
from fresh Sobol points; once the clear peaks are known (:mod:`fogline.sketch.search_atoms`), from those where most is
left besides them. Nothing here is random: the same release gives the same peaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from fogline.sketch.random_reading import RandomReading
from fogline.sketch.search_field import Field, scan
from fogline.sketch.tracks import polish

__all__ = ["Summits", "climb", "summits_by_scale"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SCAN_POWER = 12
"""Starts are chosen from 2**12 Sobol points."""

SEED = 1644934066
"""The Sobol points are scrambled with this seed, the same for every release."""

FRESH = 32
"""At most so many of the Sobol points are climbed at a scale."""

CARRIED = 16
"""At most so many peaks of a scale are followed to the next smaller one."""

SAME = 0.25
"""Points less than this many bandwidths apart have come to the same peak."""


@dataclass(frozen=True)
class Summits:
    """Local maxima of one reading within the box, highest first."""

    reading: RandomReading
    positions: FloatArray  # (k, d)
    heights: FloatArray  # (k,)
    axes: FloatArray  # (k, d) flattest axis at each, of unit length in bandwidths


@lru_cache(maxsize=8)
def public_points(d: int) -> FloatArray:
    """Well spread points of the unit cube, the same for every release."""
    points = qmc.Sobol(d, rng=np.random.default_rng(SEED)).random_base2(SCAN_POWER)
    return np.array(points)  # a copy: scipy's is a view of memory that was in part never written


def summits_by_scale(readings: Sequence[RandomReading], guesses: FloatArray) -> list[Summits]:
    """Peaks of readings given from the smallest bandwidth to the largest, in that order; guesses are climbed too."""
    spec = readings[0].spec
    points = spec.lower + public_points(spec.d) * spec.widths
    found: list[Summits] = []
    carried = np.zeros((0, spec.d))
    for reading, values in zip(reversed(readings), reversed(scan(readings, points)), strict=True):
        fresh = _apart(points, values, reading.bandwidth, FRESH)
        summits = climb(reading, np.concatenate([guesses, carried, fresh]))
        found.append(summits)
        top = slice(0, CARRIED)
        side = summits.axes[top] * reading.bandwidth
        carried = np.concatenate([summits.positions[top], summits.positions[top] + side, summits.positions[top] - side])
        carried = np.clip(carried, spec.lower, spec.upper)
    return found[::-1]


def climb(reading: RandomReading, starts: FloatArray) -> Summits:
    """Climb from all starts at once and merge those that meet; what ends on a wall is no peak."""
    points, h = starts, reading.bandwidth
    field = Field(reading)
    for rounds in (6, 6, 12, 12, 12):
        points = polish(field, points, rounds=rounds)
        points = points[_distinct(points / h, SAME)]
    points = polish(reading, points, rounds=3)
    value, gradient, hessian = reading.jet(points)
    scaled = hessian * h[:, None] * h
    eigenvalues, vectors = np.linalg.eigh(scaled)
    still = np.linalg.norm(gradient * h, axis=1) < 1e-3 * np.maximum(np.abs(value), reading.noise_sd)
    kept = np.flatnonzero(still & (eigenvalues[:, -1] < 0) & (value > 0))
    kept = kept[np.argsort(-value[kept], kind="stable")]
    return Summits(reading, points[kept], value[kept], vectors[kept, :, -1])


def _apart(points: FloatArray, values: FloatArray, distance: FloatArray, most: int) -> FloatArray:
    """Give the highest points that lie a distance apart, at most so many of the highest few hundred."""
    order = np.argsort(-values, kind="stable")[: 8 * most]
    return np.asarray(points[order][_distinct(points[order] / distance, 1.0)][:most])


def _distinct(points: FloatArray, distance: float) -> IntArray:
    """Indices of points that lie further than a distance from every kept one before."""
    kept: list[int] = []
    for i, point in enumerate(points):
        if not kept or np.min(np.sum((points[kept] - point) ** 2, axis=1)) > distance**2:
            kept.append(i)
    return np.array(kept, dtype=np.int64)
