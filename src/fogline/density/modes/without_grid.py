r"""Peaks of a density in a box too large for a grid: public starts, climbed and thinned, scale by scale.

At the largest scale the density is read at the points of a Sobol sequence; the highest that lie a bandwidth apart are
climbed by guarded Newton steps, :func:`fogline.density.modes.scale_space.newton_ascent` (over-relaxed mean-shift steps
where the density is not concave), and those that meet become one. Each smaller scale starts from the peaks of the scale
above, from a pair of points on either side of each of them along its flattest axis, where a peak splits first, and from
fresh Sobol points; once the clear peaks are known (:mod:`fogline.density.modes.side_lobes`), from those where most is
left besides them. Nothing here is random: the same release gives the same peaks.

The fogline without a grid: which peaks of a density in many dimensions cannot be noise.

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

Modes of a released density where no grid can go: releases of random features, in any number of dimensions.

As in :mod:`fogline.density.modes.on_grid`, peaks are found and judged at a few scales, from the largest to the
smallest, and each mode is then located at the bandwidth that serves it best (:mod:`fogline.density.modes.scale_space`).
What differs is how peaks are found (:mod:`fogline.density.modes.without_grid`: climbed from public starts, so a peak
narrower than the space between starts, hidden at every larger scale, can be missed) and how they are told from noise
(:mod:`fogline.density.modes.without_grid`).

Draws from a released density where no grid can go.

The positive part of a reading is no use beyond a few dimensions: noise covers the whole box, and half of it is
positive, so that nearly all draws would be noise. Drawn from is instead

.. math:: t(x) = \bigl[\, g_h(x) + \mathrm{soft}\bigl(\tilde f_h(x) - g_h(x),\; u\,s(x)\bigr) \bigr]_+ \quad\text{in the
   box},

where the ground :math:`g_h` is the mixture of atoms (:mod:`fogline.density.modes.side_lobes`), smoothed by the kernel,
with an even density over the box for the share of the records that the atoms do not hold; :math:`s(x)` is the deviation
of the fog (:mod:`fogline.density.modes.without_grid`), which reaches :math:`u` deviations somewhere in the box with
probability 0.05, and :math:`\mathrm{soft}(r, c) = \mathrm{sign}(r)(|r| - c)_+` keeps of the rest what noise does not
explain. So t is within :math:`u\,s(x)` of the density everywhere, and equal to a smooth mixture where the two cannot be
told apart.

Points are drawn from the ground, nine tenths, and evenly over the box, one tenth, and then resampled in proportion to
:math:`t` over their own density: the law is t up to the error of that resampling, and points may repeat where t is far
above the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import eval_hermitenorm, ndtr

from fogline._typing import BandwidthLike, FloatArray, IntArray
from fogline.density.counted_records import nothing_counted
from fogline.density.feature_reading import RandomReading
from fogline.density.modes.on_grid import ModeTable, make_scale_space, make_table, no_modes
from fogline.density.modes.scale_space import ScaleSpace, locate_modes, newton_ascent, track_modes
from fogline.density.modes.search import SmallestShare
from fogline.density.modes.side_lobes import ClearedReading, Field, SideLobeModel, fit_side_lobes, scan
from fogline.density.shortfall import Shortfall, two_digits, widths_in_words

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = [
    "GRIDLESS",
    "FeatureSearch",
    "GridlessTuning",
    "Layer",
    "ReadingNoise",
    "Summits",
    "Survey",
    "climb",
    "fog_level_anywhere",
    "peak_chances",
    "read_modes_anywhere",
    "sample_anywhere",
    "summits_by_scale",
    "survey_of",
]


@dataclass(frozen=True)
class GridlessTuning:
    """What is tuned of the search, the test and the draws without a grid.

    Attributes
    ----------
    scan_power : int
        Starts are chosen from 2**12 Sobol points.
    fresh : int
        At most this many of the Sobol points are climbed at a scale.
    carried : int
        At most this many peaks of a scale are followed to the next smaller one.
    same : float
        Points less than this many bandwidths apart have come to the same peak.
    highest : float
        Heights of the noise are tabulated up to this many deviations.
    farthest : float
        Deviations beyond which a normal tail is zero in double precision.
    path_points_per_bandwidth : float
        Points per bandwidth on a way.
    judged : int
        At most this many peaks of a scale, the highest, are judged.
    nearest : int
        Ways to this many of the nearest goals are tried before the others.
    bend_steps : int
        Steps by which a way is bent over the ridge beside its deepest point.
    test_scales : tuple
        Scales, of eleven, at which peaks are sought and tested.
    coarser : int
        A bandwidth that is asked for is approached from this many larger ones, up to the largest that can be
        read.
    worth_judging : float
        Peaks whose height alone has a larger chance are not walked from.
    group : float
        What would help is told for a group of this share of the records, as wide as the bandwidth.
    looks : int
        Most times that atoms are fitted to clear peaks and the search is repeated on what they leave.
    most_side_lobes : int
        With more clear peaks than this, side lobes are left where they are.
    clear : float
        A peak gets an atom if the fog is as high anywhere in the box with at most this chance.
    even : float
        Share of the proposals that are spread evenly over the box.
    proposals : int
        Proposals per draw.
    reached : float
        What the ground misses is shrunk by the height that the fog reaches somewhere in the box with this
        chance.
    """

    scan_power: int = 12
    fresh: int = 32
    carried: int = 16
    same: float = 0.25
    highest: float = 60.0
    farthest: float = 37.0
    path_points_per_bandwidth: float = 3.0
    judged: int = 24
    nearest: int = 4
    bend_steps: int = 10
    test_scales: tuple[int, ...] = (1, 4, 7, 10)
    coarser: int = 3
    worth_judging: float = 0.2
    group: float = 0.5
    looks: int = 3
    most_side_lobes: int = 32
    clear: float = 0.01
    even: float = 0.1
    proposals: int = 4
    reached: float = 0.05


GRIDLESS = GridlessTuning()


SEED = 1644934066
"""The Sobol points are scrambled with this seed, the same for every release."""


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
    from scipy.stats import qmc  # slow to load, and needed beyond three columns only

    points = qmc.Sobol(d, rng=np.random.default_rng(SEED)).random_base2(GRIDLESS.scan_power)
    return np.array(points)  # a copy: scipy's is a view of memory that was in part never written


def summits_by_scale(readings: Sequence[RandomReading], guesses: FloatArray) -> list[Summits]:
    """Peaks of readings given from the smallest bandwidth to the largest, in that order; guesses are climbed too."""
    spec = readings[0].spec
    points = spec.lower + public_points(spec.d) * spec.widths
    found: list[Summits] = []
    carried = np.zeros((0, spec.d))
    for reading, values in zip(reversed(readings), reversed(scan(readings, points)), strict=True):
        # Starts a bandwidth apart: two nearer ones would climb to the same peak.
        fresh = _apart(points, values, reading.bandwidth, GRIDLESS.fresh)
        summits = climb(reading, np.concatenate([guesses, carried, fresh]))
        found.append(summits)
        top = slice(0, GRIDLESS.carried)
        # A peak that splits at the next smaller scale splits along its flattest axis: a start on either side.
        side = summits.axes[top] * reading.bandwidth
        carried = np.concatenate([summits.positions[top], summits.positions[top] + side, summits.positions[top] - side])
        carried = np.clip(carried, spec.lower, spec.upper)
    return found[::-1]


def climb(reading: RandomReading, starts: FloatArray) -> Summits:
    """Climb from all starts at once and merge those that meet; what ends on a wall is no peak."""
    points, h = starts, reading.bandwidth
    field = Field(reading)
    # Starts that have met are merged between the rounds, so that none is climbed twice to the end.
    for rounds in (6, 6, 12, 12, 12):
        points = newton_ascent(field, points, rounds=rounds)
        points = points[_distinct(points / h, GRIDLESS.same)]
    # Single precision finds the peaks; the last steps are made in double precision.
    points = newton_ascent(reading, points, rounds=3)
    value, gradient, hessian = reading.jet(points)
    scaled = hessian * h[:, None] * h
    eigenvalues, vectors = np.linalg.eigh(scaled)
    # What has not come to rest, or rests on a wall, a saddle or below zero, is no peak.
    still = np.linalg.norm(gradient * h, axis=1) < 1e-3 * np.maximum(np.abs(value), reading.noise_sd)
    kept = np.flatnonzero(still & (eigenvalues[:, -1] < 0) & (value > 0))
    kept = kept[np.argsort(-value[kept], kind="stable")]
    return Summits(reading, points[kept], value[kept], vectors[kept, :, -1])


def _apart(points: FloatArray, values: FloatArray, distance: FloatArray, most: int) -> FloatArray:
    """Give the highest points that lie a distance apart, at most this many of the highest few hundred."""
    order = np.argsort(-values, kind="stable")[: 8 * most]
    return np.asarray(points[order][_distinct(points[order] / distance, 1.0)][:most])


def _distinct(points: FloatArray, distance: float) -> IntArray:
    """Indices of points that lie further than a distance from every kept one before."""
    kept: list[int] = []
    for i, point in enumerate(points):
        if not kept or np.min(np.sum((points[kept] - point) ** 2, axis=1)) > distance**2:
            kept.append(i)
    return np.array(kept, dtype=np.int64)


@dataclass(frozen=True)
class ReadingNoise:
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
    def of(cls, reading: RandomReading, count: float) -> ReadingNoise:
        """Read the fog from a reading's coefficients."""
        power = np.abs(reading.relative) ** 2 / 2
        privacy = float(np.sum(reading.relative_noise**2))
        # The released power holds privacy noise, so less than that is chance.
        variance = max(float(power.sum()), privacy)
        rates = np.sqrt(power @ reading.angular**2 / power.sum())
        heights = np.linspace(0.0, GRIDLESS.highest, 601)
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
        left = np.clip((drop[:, None] - self.heights * sd_peak[:, None]) / sd_dip[:, None], 0.0, GRIDLESS.farthest)
        # Rice's formula: how often a smooth field on a line of this length rises above a level.
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
        return float(drops[enough[0]]) if len(enough) else GRIDLESS.highest


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
    # The characteristic is not monotone at low levels; the chance of an excursion is.
    return np.asarray(np.minimum(np.maximum.accumulate(total[::-1])[::-1], 1.0))


def peak_chances(noise: ReadingNoise, summits: Summits, level: float) -> tuple[FloatArray, FloatArray]:
    """Chance of each peak under noise at this scale alone, and its drop in deviations of the noise.

    Peaks whose whole height could be noise are not walked from: their chance is one, their drop their height.
    """
    k = len(summits.positions)
    chances, drops = np.ones(k), np.zeros(k)
    if not k:
        return chances, drops
    value, sd = noise.look(summits.positions)
    drops[:] = value / sd
    # A way without length and without a dip leaves the chance of the height itself, which is cheap to know.
    above = noise.chance(value, sd, np.full(k, 1e-300), np.zeros(k))
    for i in np.flatnonzero((above <= level) & (np.arange(k) < GRIDLESS.judged)):
        goals = np.concatenate([summits.positions[(value > value[i])], _exits(noise.reading, summits.positions[i])])
        chances[i], drops[i] = _judge(noise, summits.positions[i], goals, level)
    return chances, drops


def _exits(reading: RandomReading, peak: FloatArray) -> FloatArray:
    """Points of the walls straight along each axis from a peak."""
    d = len(peak)
    exits = np.tile(peak, (2 * d, 1))
    exits[np.arange(d), np.arange(d)] = reading.spec.lower
    exits[d + np.arange(d), np.arange(d)] = reading.spec.upper
    return exits


def _judge(noise: ReadingNoise, peak: FloatArray, goals: FloatArray, level: float) -> tuple[float, float]:
    """Chance of the dips on the ways from a peak to its goals, the largest, and the drop there in deviations."""
    distance = np.linalg.norm((goals - peak) / noise.reading.bandwidth, axis=1)
    # Goals that are the peak itself, up to rounding, lead nowhere.
    goals = goals[np.argsort(distance, kind="stable")][int(np.sum(distance <= 1e-3)) :]
    for nearest in (GRIDLESS.nearest, len(goals)):  # a bump on a plateau is found out by its nearest neighbours
        chance, drop, dips = _worst(noise, peak, [np.stack([peak, goal]) for goal in goals[:nearest]])
        worst = int(np.argmax(chance))
        if chance[worst] > level:
            return float(chance[worst]), float(drop[worst])
    bent = _over_the_ridge(noise, dips, goals - peak)
    curved = [np.stack([peak, middle, goal]) for middle, goal in zip(bent, goals, strict=True)]
    chance_bent, drop_bent, _ = _worst(noise, peak, curved)
    better = chance_bent > chance  # the bent way is taken only where it dips less
    chance, drop = np.where(better, chance_bent, chance), np.where(better, drop_bent, drop)
    worst = int(np.argmax(chance))
    return float(chance[worst]), float(drop[worst])


def _worst(
    noise: ReadingNoise, peak: FloatArray, ways: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each way (corners of shape (c, d)) the chance of its deepest dip, the drop to it, and where it is."""
    steps = noise.reading.bandwidth / GRIDLESS.path_points_per_bandwidth
    points = [_walk(way, steps) for way in ways]
    owner = np.repeat(np.arange(len(ways)), [len(p) for p in points])
    value, sd = noise.look(np.concatenate([peak[None], *points]))
    top, top_sd = value[0], sd[0]
    # Deepest in deviations, not in height: near walls the deviation is larger.
    depth = (top - value[1:]) / (top_sd + sd[1:])
    order = np.lexsort((depth, owner))
    deepest = order[np.searchsorted(owner[order], np.arange(len(ways)), side="right") - 1]
    length = np.array([np.sum(np.linalg.norm(np.diff(way, axis=0) * noise.rates, axis=1)) for way in ways])
    drop = top - value[1:][deepest]
    dip_sd = sd[1:][deepest]
    chance = noise.chance(drop, np.full(len(ways), top_sd), dip_sd, length)
    return chance, 2 * drop / (top_sd + dip_sd), np.concatenate(points)[deepest]


def _walk(way: FloatArray, steps: FloatArray) -> FloatArray:
    """Points along a way of straight pieces, without its start."""
    pieces = []
    for start, end in pairwise(way):
        size = max(2, int(np.ceil(np.linalg.norm((end - start) / steps))))
        pieces.append(start + np.linspace(0, 1, size + 1)[1:, None] * (end - start))
    return np.concatenate(pieces)


def _over_the_ridge(noise: ReadingNoise, dips: FloatArray, directions: FloatArray) -> FloatArray:
    """Climb from each dip across its way, to the ridge beside it."""
    spec, h = noise.reading.spec, noise.reading.bandwidth
    along = directions / h
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    points = dips.copy()
    for _ in range(GRIDLESS.bend_steps):
        value, gradient, _ = noise.field.jet(points)
        slope = gradient * h / np.maximum(value, noise.reading.noise_sd)[:, None]
        # Across the way only: along it the climb would end at the peak or at the goal.
        slope -= np.sum(slope * along, axis=1, keepdims=True) * along
        slope *= np.minimum(1.0, 0.5 / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300))
        points = np.clip(points + slope * h, spec.lower, spec.upper)
    return points


@dataclass(frozen=True)
class Layer:
    """Peaks of the released density at one tested scale, with the chance of each under noise at any scale."""

    scale: int
    noise: ReadingNoise
    summits: Summits
    p: FloatArray
    drop: FloatArray  # prominence in deviations of the noise

    def basins(self, points: FloatArray) -> IntArray:
        """Peak that each point climbs to, -1 for none."""
        if not len(self.summits.positions) or not len(points):
            return np.full(len(points), -1)
        h = self.summits.reading.bandwidth
        ends = newton_ascent(self.noise.field, points, rounds=40)
        apart = np.linalg.norm((ends[:, None] - self.summits.positions) / h, axis=2)
        return np.where(apart.min(axis=1) < 0.5, np.argmin(apart, axis=1), -1)


@dataclass(frozen=True)
class Survey:
    """What was seen of a release: scales cleared of side lobes, the peaks at them, the mixture that cleared them."""

    scale_space: ScaleSpace
    layers: list[Layer]
    atoms: SideLobeModel | None


def read_modes_anywhere(
    density: PrivateDensity, n_modes: int | None, level: float, bandwidth: BandwidthLike
) -> ModeTable:
    """Find, judge and locate the modes of a density without a grid.

    Parameters
    ----------
    density : PrivateDensity
    n_modes : int or None
        How many of the best; None: all above the fogline.
    level : float
        Chance of reporting a mode where there is only noise.
    bandwidth : "auto", number or array
        As in :meth:`PrivateDensity.modes`.

    Returns
    -------
    ModeTable
    """
    survey = survey_of(density, make_scale_space(density, bandwidth))
    scale_space, layers = survey.scale_space, survey.layers
    if n_modes is None:
        starts, at = _chosen(layers, [np.flatnonzero(layer.p <= level) for layer in layers])
        message = "" if len(starts) else _shortfall_message(density, layers, level)
    else:
        starts, at = _best(layers, n_modes)
        message = "" if len(starts) == n_modes else f"only {len(starts)} of {n_modes} peaks were found at any bandwidth"
    if not len(starts):
        return no_modes(scale_space.d, message)
    located = locate_modes(scale_space, track_modes(scale_space, starts, at))
    return make_table(scale_space, located, _p_values(layers, located.seen), message, common=True)


def survey_of(density: PrivateDensity, scale_space: ScaleSpace) -> Survey:
    """Peaks at the tested scales; kept with the density.

    The first look is at the plain readings. Atoms are fitted to the peaks that are clear there, and a second look is
    at what is left; where that shows further clear peaks, atoms are fitted to all of them and the look is repeated.
    """
    key = ("survey", tuple(tuple(r.bandwidth.tolist()) for r in scale_space.readings))
    if key not in density._memory:
        survey = _look(density, scale_space, None)
        known = 0
        for _ in range(GRIDLESS.looks):
            peaks, scales = _chosen(survey.layers, [_clear(layer) for layer in survey.layers])
            # No new clear peak, or more than can be fitted: a further look would show the same.
            if not known < len(peaks) <= GRIDLESS.most_side_lobes:
                break
            known = len(peaks)
            bandwidths = scale_space.scales[scales][:, None] * scale_space.unit
            sums = density.coefficients[1:] / density.count
            survey = _look(density, scale_space, fit_side_lobes(scale_space.readings[0], sums, peaks, bandwidths))
        density._memory[key] = survey
    result: Survey = density._memory[key]
    return result


def _look(density: PrivateDensity, scale_space: ScaleSpace, atoms: SideLobeModel | None) -> Survey:
    """Seek and judge peaks at the tested scales."""
    count = density.count

    def reading(plain: RandomReading) -> RandomReading:
        return plain if atoms is None else ClearedReading(plain, atoms)

    scale_space = replace(scale_space, readings=tuple(map(reading, scale_space.readings)))
    scales = [0] if len(scale_space.readings) == 1 else list(GRIDLESS.test_scales)
    tested = [scale_space.readings[q] for q in scales]
    largest = density.bandwidth_range[1][0] / tested[-1].bandwidth[0]
    # A single small bandwidth hides its peaks from public starts: larger ones lead there, and are not tested.
    wider = np.geomspace(1.0, largest, GRIDLESS.coarser + 1)[1:] if len(scales) == 1 and largest > 1 else np.zeros(0)
    approach = [reading(density.reading(s * tested[-1].bandwidth)) for s in wider]
    starts = np.zeros((0, scale_space.d)) if atoms is None else atoms.centres
    found = summits_by_scale([*tested, *approach], starts)[: len(tested)]
    layers = [_layer(q, summits, count, len(scales)) for q, summits in zip(scales, found, strict=True)]
    return Survey(scale_space, layers, atoms)


def _layer(scale: int, summits: Summits, count: float, effective_tests: int) -> Layer:
    noise = ReadingNoise.of(summits.reading, count)
    chances, drop = peak_chances(noise, summits, GRIDLESS.worth_judging / effective_tests)
    # Bonferroni over the tested scales: without simulations their dependence is not known.
    return Layer(scale, noise, summits, np.minimum(effective_tests * chances, 1.0), drop)


def _clear(layer: Layer) -> IntArray:
    """Peaks that are worth an atom: higher than the fog, and no mere bump on a plateau."""
    height = layer.summits.heights / layer.summits.reading.unit
    high = height > layer.noise.highest(GRIDLESS.clear) * np.sqrt(layer.noise.variance)
    return np.flatnonzero(high & (layer.drop > layer.noise.needed(0.5) / 2))


def _chosen(layers: list[Layer], picked: list[IntArray]) -> tuple[FloatArray, IntArray]:
    """Picked peaks and their scales: coarse ones first, each replaced by what it splits into."""
    kept: list[tuple[Layer, int]] = []
    for layer, indices in zip(reversed(layers), reversed(picked), strict=True):
        fresh = [int(i) for i in indices]
        points = layer.summits.positions
        remaining = []
        homes = {id(parent): parent.basins(points[fresh]) for parent, _ in kept}
        labels = {child: k for k, child in enumerate(fresh)}
        for parent, i in kept:
            children = [c for c in fresh if homes[id(parent)][labels[c]] == i]
            if len(children) == 1:  # the same mode seen again: followed from the coarser view, which noise bends less
                fresh.remove(children[0])
            if len(children) <= 1:
                remaining.append((parent, i))
        kept = remaining + [(layer, i) for i in fresh]
    d = layers[0].summits.positions.shape[1]
    positions = np.array([layer.summits.positions[i] for layer, i in kept]).reshape(-1, d)
    return positions, np.array([layer.scale for layer, _ in kept], dtype=np.int64)


def _best(layers: list[Layer], k: int) -> tuple[FloatArray, IntArray]:
    """Give the k highest peaks at the scale where the k-th stands clearest above the next and above the fog."""
    available = np.array([min(len(layer.summits.heights), k) for layer in layers])
    scores = np.empty(len(layers))
    for q, layer in enumerate(layers):
        sd = np.sqrt(layer.noise.variance)
        heights = layer.summits.heights / layer.summits.reading.unit
        kth, following = np.concatenate([heights, np.zeros(k + 1)])[k - 1 : k + 1] / sd
        # Clear of the next peak counts in full, clear of the fog by half: with a given number of modes the gap matters
        # more.
        scores[q] = (kth - following) + 0.5 * (kth - layer.noise.highest(0.5))
    chosen = layers[int(np.argmax(np.where(available == available.max(), scores, -np.inf)))]
    points = chosen.summits.positions[:k]
    return points, np.full(len(points), chosen.scale)


def _p_values(layers: list[Layer], positions: FloatArray) -> FloatArray:
    """P-value of the clearest peak within a bandwidth of each position, over the tested scales."""
    best = np.ones(len(positions))
    for layer in layers:
        for k, position in enumerate(positions):
            offset = (layer.summits.positions - position) / layer.summits.reading.bandwidth
            # Distances grow like the root of the number of axes, also those between two views of the same peak.
            near = np.linalg.norm(offset, axis=1) <= np.sqrt(len(position)) / 2
            best[k] = min([best[k], *layer.p[near]])
    return best


class FeatureSearch:
    """The search in densities of random features, see :class:`~fogline.density.modes.search.ModeSearch`."""

    has_grid = False

    def smallest_share(self, density: PrivateDensity, scale_space: ScaleSpace, level: float) -> SmallestShare:
        """Return the smallest part of the records that would be seen, at the scale where that is."""
        layers = survey_of(density, scale_space).layers
        found = []
        for layer in layers:
            reading = layer.summits.reading
            share = layer.noise.needed(level / len(layers)) * float(np.sqrt(layer.noise.variance))
            found.append(SmallestShare(share * reading.unit, reading.bandwidth, share))
        best = min(found, key=lambda entry: entry.share)
        return best._replace(share=min(best.share, 1.0))


def fog_level_anywhere(
    density: PrivateDensity, reading: RandomReading, level: float, at: FloatArray | None
) -> float | FloatArray:
    """Prominence that noise alone reaches with probability ``level``, at the highest peak found or at given points."""
    layer = survey_of(density, make_scale_space(density, reading.bandwidth)).layers[0]
    places = layer.summits.positions[:1] if at is None else at
    _, sd = layer.noise.look(places)
    if at is None and not len(places):  # no peak at all: the noise of an empty place
        sd = np.array([np.sqrt(layer.noise.variance)])
    prominence = layer.noise.needed(level) * reading.unit * sd
    return float(prominence[0]) if at is None else np.asarray(prominence)


def _shortfall_message(density: PrivateDensity, layers: list[Layer], level: float) -> str:
    """Say what kept every peak below the fogline; no advice to spend more where nothing was counted."""
    if said := nothing_counted(density):
        return said
    factor, clearest = np.inf, layers[-1]
    for layer in layers:
        ratio = layer.noise.needed(level / len(layers)) / max(float(layer.drop.max(initial=0.0)), 1e-9)
        if ratio < factor:
            factor, clearest = ratio, layer
    share = clearest.noise.privacy / clearest.noise.variance
    # Only some of the ways down from a peak are tried, so its prominence is an upper bound.
    seen = f"has at most {100 / factor:.0f}% of the prominence needed"
    shortfall = Shortfall(f"peak, at bandwidth {_widths(clearest)},", factor, share)
    return shortfall.message(
        seen=seen if factor > 1 else "cannot be told from a plateau or a slope",
        noise="the noise there",
        advice=_shortfall_advice(density, layers, level),
    )


def _shortfall_advice(density: PrivateDensity, layers: list[Layer], level: float) -> str:
    """How many records or how much epsilon would show a group as wide as the bandwidth, at the scale best for it."""
    times = [_lacking(layer, level / len(layers)) for layer in layers]
    best = int(np.argmin(times))
    group = f"a group of {GRIDLESS.group:.0%} of the records, with standard deviations of {_widths(layers[best])},"
    if times[best] <= 1:
        return f"{group} would be seen: smaller or wider ones need more records, more epsilon or another bandwidth"
    return (
        f"{group} would need about {two_digits(times[best])} times the epsilon, or "
        f"{two_digits(times[best] * density.count)} records; fewer columns would need less"
    )


def _lacking(layer: Layer, level: float) -> float:
    """How many times too small the budget is for such a group in the middle of the box, which its tails may fill."""
    reading = layer.summits.reading
    d = reading.spec.d
    # The lowest way out leads over the nearest wall, where a group as wide as the bandwidth still has this height.
    at_wall = 2 * float(np.exp(-np.min((reading.spec.widths / reading.bandwidth) ** 2) / 16))
    drop = GRIDLESS.group * 2 ** (-d / 2) * (1 - at_wall)
    needed = layer.noise.needed(level, dip=2.0) * float(np.sqrt(layer.noise.privacy))
    return needed / drop if drop > 0 else np.inf


def _widths(layer: Layer) -> str:
    return widths_in_words(layer.summits.reading.bandwidth)


def sample_anywhere(density: PrivateDensity, k: int, bandwidth: BandwidthLike, rng: np.random.Generator) -> FloatArray:
    """Draw k points from a released density without a grid; free, and as private as the density itself.

    Parameters
    ----------
    density : PrivateDensity
    k : int
    bandwidth : optional
        As in :meth:`PrivateDensity.pdf`.
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (k, d)
        Within the box. The law is that of this module: the density where it is clear of the noise, not its positive
        part.
    """
    spec = density.spec
    if k == 0:
        return np.zeros((0, spec.d))
    plain = density.reading(bandwidth)
    atoms = survey_of(density, make_scale_space(density)).atoms or SideLobeModel(
        np.zeros(0), np.zeros((0, spec.d)), np.zeros((0, spec.d, spec.d))
    )
    reading = ClearedReading(plain, atoms)
    noise = ReadingNoise.of(reading, density.count)
    # What the clear peaks do not hold is somewhere in the box: without better knowledge, anywhere.
    rest = max(0.0, 1.0 - float(atoms.weights.sum()))
    shares = np.append(atoms.weights, rest)
    even = float(np.exp(-np.log(reading.unit) - np.log(spec.widths).sum()))  # even density as a kernel average

    points = _proposals(reading, shares / shares.sum(), GRIDLESS.proposals * k + 1000, rng)
    known = atoms.smoothed(points, reading.bandwidth)[0]
    inside = noise.inside(points)
    ground = known + rest * even * inside
    missed = noise.field.relative(points) - ground
    threshold = noise.highest(GRIDLESS.reached) * np.sqrt(noise.variance + noise.sampling * np.maximum(ground, 0))
    target = np.maximum(ground + np.sign(missed) * np.maximum(np.abs(missed) - threshold, 0), 0)
    proposed = (1 - GRIDLESS.even) * (known + rest * even) / shares.sum() + GRIDLESS.even * even
    weights = target / proposed
    # Nothing is left of the density where noise explains it all: the proposals themselves are then the best guess.
    if weights.sum() <= 0:
        weights = np.ones(len(points))
    # Systematic resampling: each point is drawn about as often as its weight says.
    grid = (rng.random() + np.arange(k)) / k
    cumulative = np.cumsum(weights / weights.sum())
    chosen = np.minimum(np.searchsorted(cumulative, grid), len(points) - 1)
    return np.asarray(rng.permutation(points[chosen]))


def _proposals(reading: ClearedReading, shares: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Points of the box from the ground and from an even density; the last share is that of the even part."""
    spec, atoms, d = reading.spec, reading.atoms, reading.spec.d
    component = rng.choice(len(shares), size=size, p=shares)
    # Some proposals everywhere keep the weights bounded where the ground misses a part of the density.
    component[rng.random(size) < GRIDLESS.even] = len(shares) - 1
    points = rng.uniform(spec.lower, spec.upper, (size, d))
    for j, (centre, covariance) in enumerate(zip(atoms.centres, atoms.covariances, strict=True)):
        here = component == j
        wide = covariance + np.diag(reading.bandwidth**2)
        points[here] = centre + rng.standard_normal((int(here.sum()), d)) @ np.linalg.cholesky(wide).T
    within = np.all((points >= spec.lower) & (points <= spec.upper), axis=1)
    # A fit may lie outside of the box with all its mass; then the box itself is all that is known.
    if not within.any():
        return np.asarray(rng.uniform(spec.lower, spec.upper, (size, d)))
    return np.asarray(points[within])
