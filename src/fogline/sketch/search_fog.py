r"""The fogline without a grid: which peaks of a density in many dimensions cannot be noise.

Three things raise false peaks: privacy noise, the draw of the records, and the *side lobes* of random features,
whose kernel is exact only on average. All three live in the released coefficients. Over all of space the field
:math:`\mathrm{Re}\sum_m c_m e^{i\omega_m\cdot x}` has the mean square

.. math:: v = \tfrac12\sum_m |c_m|^2,

of which real peaks, being narrow, make up nearly nothing: v is the variance of the fog far from the records, read
from the release itself. Near them the draw adds :math:`\hat f(x)\int k^2/\hat n`. Near walls a kernel loses the part
that falls outside; values and deviations are divided by the part inside, so that data that fill the box evenly look
even.

How high such a field rises somewhere in the box is given by its expected Euler characteristic (Adler and Taylor
2007): with :math:`t_j` the width of the box over the correlation length :math:`(\sum|c|^2/\sum|c|^2\omega_j^2)^{1/2}`
and :math:`e_j` the elementary symmetric polynomials,

.. math:: P(\sup > u) \approx \sum_{j=0}^{d} e_j(t)\,\rho_j(u), \qquad
   \rho_0 = \Phi(-u),\quad \rho_j = (2\pi)^{-(j+1)/2} He_{j-1}(u)\,e^{-u^2/2}.

A peak is *not* a mode if some way leads from it, without descending, to a higher peak or out of the box. On such a
way the released density may dip by noise alone, as deep as a field on a line: Rice's
:math:`\Phi(-u) + \ell e^{-u^2/2}/2\pi`. So if the deepest point of a way lies D below the peak, at most

.. math:: p = \min_a\; P(\sup > a) + P_\ell\bigl((D - a s_{peak})/s_{dip}\bigr)

is the chance of that under noise, and the peak's p-value is the largest over the ways tried, times the number of
scales. Tried are the straight ways to all higher peaks and along each axis to the walls, and each bent once over the
ridge beside its deepest point. The best way of all might dip less than those: prominence is then overrated. Where
the density falls off along straight lines from its peak (flat, or log-concave) the straight way is such a way and
the test is on the safe side; a strongly curved ridge may be taken for two modes.

References
----------
R. J. Adler, J. E. Taylor, "Random Fields and Geometry", Springer 2007, theorem 12.4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import eval_hermitenorm, ndtr

from fogline.sketch.random_reading import RandomReading
from fogline.sketch.search_climb import Summits
from fogline.sketch.search_field import Field

__all__ = ["Fog", "peak_chances"]

FloatArray = NDArray[np.float64]

HIGHEST = 60.0
"""Heights of the noise are tabulated up to so many deviations."""

FARTHEST = 37.0
"""Deviations beyond which a normal tail is zero in double precision."""

PER_BANDWIDTH = 3.0
"""Points a bandwidth on a way."""

JUDGED = 24
"""At most so many peaks of a scale, the highest, are judged."""

NEAREST = 4
"""Ways to so many of the nearest goals are tried before the others."""

BEND_STEPS = 10
"""Steps by which a way is bent over the ridge beside its deepest point."""


@dataclass(frozen=True)
class Fog:
    """What noise, draw and side lobes do to one reading; heights as kernel averages (the kernel is 1 at zero)."""

    reading: RandomReading
    field: Field
    variance: float
    privacy: float  # the part of the variance that is privacy noise
    sampling: float  # times the density: what the draw adds near records
    rates: FloatArray  # (d,) inverse correlation lengths
    heights: FloatArray  # tabulated u
    chances: FloatArray  # P(sup > u) over the box

    @classmethod
    def of(cls, reading: RandomReading, count: float) -> Fog:
        """Read the fog from a reading's coefficients."""
        power = np.abs(reading.relative) ** 2 / 2
        privacy = float(np.sum(reading.relative_noise**2))
        variance = max(float(power.sum()), privacy)
        rates = np.sqrt(power @ reading.angular**2 / power.sum())
        heights = np.linspace(0.0, HIGHEST, 601)
        return cls(
            reading,
            Field(reading),
            variance,
            privacy,
            2.0 ** (-reading.spec.d / 2) / count,
            rates,
            heights,
            excursion_chances(heights, reading.spec.widths * rates),
        )

    def look(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Kernel average and its deviation at points, both over the part of the kernel inside the box."""
        value = self.field.relative(points)
        inside = self.inside(points)
        return value / inside, np.sqrt(self.variance + self.sampling * np.maximum(value, 0)) / inside

    def inside(self, points: FloatArray) -> FloatArray:
        """Part of the kernel around each point that lies in the box."""
        spec, h = self.reading.spec, self.reading.bandwidth
        return np.asarray(np.prod(ndtr((spec.upper - points) / h) - ndtr((spec.lower - points) / h), axis=1))

    def chance(self, drop: FloatArray, sd_peak: FloatArray, sd_dip: FloatArray, length: FloatArray) -> FloatArray:
        """Chance of so deep a dip on ways of given lengths (in correlation lengths) below a peak, by noise alone."""
        left = np.clip((drop[:, None] - self.heights * sd_peak[:, None]) / sd_dip[:, None], 0.0, FARTHEST)
        on_line = ndtr(-left) + length[:, None] / (2 * np.pi) * np.exp(-0.5 * left**2)
        return np.asarray(np.minimum(np.min(self.chances + on_line, axis=1), 1.0))

    def highest(self, level: float) -> float:
        """Height, in deviations, that the fog reaches somewhere in the box with chance ``level``."""
        return float(self.heights[np.argmax(self.chances <= level)])

    def needed(self, level: float, *, dip: float = 1.0) -> float:
        """Drop, in deviations at the peak, that has a chance of ``level`` on a way across the box.

        At a wall the deviation is twice that inside, since half of the kernel is lost: ``dip=2``.
        """
        drops = self.heights
        one = np.ones_like(drops)
        across = float(np.max(self.reading.spec.widths * self.rates))
        enough = np.flatnonzero(self.chance(drops, one, dip * one, across * one) <= level)
        return float(drops[enough[0]]) if len(enough) else HIGHEST


def excursion_chances(u: FloatArray, lengths: FloatArray) -> FloatArray:
    """Expected Euler characteristic of the part above u of a smooth unit field, as a chance that falls with u."""
    d = len(lengths)
    polynomial = np.ones(1)
    for t in lengths:  # coefficients of the product of (1 + t_j z) are the elementary symmetric polynomials
        polynomial = np.convolve(polynomial, [1.0, t])
    total = ndtr(-u)
    for j in range(1, d + 1):
        density = (2 * np.pi) ** (-(j + 1) / 2) * eval_hermitenorm(j - 1, u) * np.exp(-0.5 * u**2)
        total = total + polynomial[j] * density
    return np.asarray(np.minimum(np.maximum.accumulate(total[::-1])[::-1], 1.0))


def peak_chances(fog: Fog, summits: Summits, level: float) -> tuple[FloatArray, FloatArray]:
    """Chance of each peak under noise at this scale alone, and its drop in deviations of the noise.

    Peaks whose whole height could be noise are not walked from: their chance is one, their drop their height.
    """
    k = len(summits.positions)
    chances, drops = np.ones(k), np.zeros(k)
    if not k:
        return chances, drops
    value, sd = fog.look(summits.positions)
    drops[:] = value / sd
    above = fog.chance(value, sd, np.full(k, 1e-300), np.zeros(k))
    for i in np.flatnonzero((above <= level) & (np.arange(k) < JUDGED)):
        goals = np.concatenate([summits.positions[(value > value[i])], _exits(fog.reading, summits.positions[i])])
        chances[i], drops[i] = _judge(fog, summits.positions[i], goals, level)
    return chances, drops


def _exits(reading: RandomReading, peak: FloatArray) -> FloatArray:
    """Points of the walls straight along each axis from a peak."""
    d = len(peak)
    exits = np.tile(peak, (2 * d, 1))
    exits[np.arange(d), np.arange(d)] = reading.spec.lower
    exits[d + np.arange(d), np.arange(d)] = reading.spec.upper
    return exits


def _judge(fog: Fog, peak: FloatArray, goals: FloatArray, level: float) -> tuple[float, float]:
    """Chance of the dips on the ways from a peak to its goals, the largest, and the drop there in deviations."""
    distance = np.linalg.norm((goals - peak) / fog.reading.bandwidth, axis=1)
    goals = goals[np.argsort(distance, kind="stable")][int(np.sum(distance <= 1e-3)) :]
    for nearest in (NEAREST, len(goals)):  # a bump on a plateau is found out by its nearest neighbours
        chance, drop, dips = _worst(fog, peak, [np.stack([peak, goal]) for goal in goals[:nearest]])
        worst = int(np.argmax(chance))
        if chance[worst] > level:
            return float(chance[worst]), float(drop[worst])
    bent = _over_the_ridge(fog, dips, goals - peak)
    curved = [np.stack([peak, middle, goal]) for middle, goal in zip(bent, goals, strict=True)]
    chance_bent, drop_bent, _ = _worst(fog, peak, curved)
    better = chance_bent > chance  # the bent way is taken only where it dips less
    chance, drop = np.where(better, chance_bent, chance), np.where(better, drop_bent, drop)
    worst = int(np.argmax(chance))
    return float(chance[worst]), float(drop[worst])


def _worst(fog: Fog, peak: FloatArray, ways: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each way (corners of shape (c, d)) the chance of its deepest dip, the drop to it, and where it is."""
    steps = fog.reading.bandwidth / PER_BANDWIDTH
    points = [_walk(way, steps) for way in ways]
    owner = np.repeat(np.arange(len(ways)), [len(p) for p in points])
    value, sd = fog.look(np.concatenate([peak[None], *points]))
    top, top_sd = value[0], sd[0]
    depth = (top - value[1:]) / (top_sd + sd[1:])
    order = np.lexsort((depth, owner))
    deepest = order[np.searchsorted(owner[order], np.arange(len(ways)), side="right") - 1]
    length = np.array([np.sum(np.linalg.norm(np.diff(way, axis=0) * fog.rates, axis=1)) for way in ways])
    drop = top - value[1:][deepest]
    dip_sd = sd[1:][deepest]
    chance = fog.chance(drop, np.full(len(ways), top_sd), dip_sd, length)
    return chance, 2 * drop / (top_sd + dip_sd), np.concatenate(points)[deepest]


def _walk(way: FloatArray, steps: FloatArray) -> FloatArray:
    """Points along a way of straight pieces, without its start."""
    pieces = []
    for start, end in pairwise(way):
        size = max(2, int(np.ceil(np.linalg.norm((end - start) / steps))))
        pieces.append(start + np.linspace(0, 1, size + 1)[1:, None] * (end - start))
    return np.concatenate(pieces)


def _over_the_ridge(fog: Fog, dips: FloatArray, directions: FloatArray) -> FloatArray:
    """Climb from each dip across its way, to the ridge beside it."""
    spec, h = fog.reading.spec, fog.reading.bandwidth
    along = directions / h
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    points = dips.copy()
    for _ in range(BEND_STEPS):
        value, gradient, _ = fog.field.jet(points)
        slope = gradient * h / np.maximum(value, fog.reading.noise_sd)[:, None]
        slope -= np.sum(slope * along, axis=1, keepdims=True) * along
        slope *= np.minimum(1.0, 0.5 / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300))
        points = np.clip(points + slope * h, spec.lower, spec.upper)
    return points
