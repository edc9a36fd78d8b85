r"""Where a mode of a release on leaves is: what its positions at many bandwidths say together.

The counts, spread evenly over their buckets, are smoothed by a Gaussian kernel of bandwidth :math:`h_q` that the walls
reflect. A mode is followed through the bandwidths and lies at :math:`x_q`. To first order its error is that of the
gradient over the curvature, which is linear in the counts, so that

.. math:: \operatorname{Cov}(x_q, x_r) = \frac{1}{\hat n^2} A_q^{-1} \Bigl(\sum_j (v + \Lambda_j)\, \nabla w_{qj}
   \nabla w_{rj}^\top\Bigr) A_r^{-1},

with the kernel weights :math:`w_{qj}` of bucket j, the variance v of its noise, its expected content
:math:`\Lambda_j` and the curvature :math:`A_q`.

What smoothing does to these positions is judged by :mod:`fogline.density.modes.smoothing_bias`. In one column the
position of a symmetric peak that stands alone is the one at the bandwidth with the least error, a wide one; beside
walls and other modes it is that of the fit (in two columns this gained nothing). Bandwidths that reach a wall or
another mode have errors of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from fogline._typing import FloatArray, IntArray
from fogline.density.modes.leaf_peaks import LeafCounts, dispersion_of
from fogline.density.modes.scale_space import newton_ascent
from fogline.density.modes.smoothing_bias import (
    SMOOTHING_BIAS,
    LinearFit,
    combine_fits,
    common_shift,
    edge_probability,
    edge_shift,
    fit_position,
    positive_part,
    skewed_shift,
    symmetric_at_walls,
    wall_shift,
)

__all__ = ["LEAF_POSITIONS", "LeafPositionTuning", "LeafPositions", "ReflectedReading", "locate_on_leaves"]


@dataclass(frozen=True)
class LeafPositionTuning:
    """What is tuned of the positions.

    Attributes
    ----------
    bandwidths : mapping by dimension
        Smallest and largest bandwidth as parts of the range, and how many.
    steady : float
        Bandwidths are used at which the standard error is below this part of them, and of the peak's width: further out
        the error is not linear in the noise.
    usable_height : float
        Deviations of the noise by which a mode is above zero at a bandwidth that is used.
    off_wall, apart : float
        A mode is followed to bandwidths at which it is this many of them away from the walls, and from other modes.
    pull : float
        Error of what the tails of other modes do, as a part of it.
    astray : float
        Part of what walls and neighbours may do that does not follow its expected course over the bandwidths.
    places, slack : float
        On how many places flat tops are looked for, and how much further than those of a round top they may reach.
    steady_floor : float
        Least error of a symmetric peak that stands alone, as a part of the bandwidth or of the peak's width, the
        smaller.
    least_side : float
        A mode is followed to bandwidths of at least this part of the sides of its bucket.
    wider : tuple of float
        A start that is steady at no bandwidth is followed anew from the one at which it was found times these.
    alone : float
        A peak stands alone where walls and other modes may move it by less than this part of its error.
    """

    bandwidths: Mapping[int, tuple[float, float, int]] = field(
        default_factory=lambda: {1: (0.0008, 0.13, 19), 2: (0.015, 0.13, 9), 3: (0.04, 0.15, 6)}
    )
    steady: float = 0.35
    usable_height: float = 3.0
    off_wall: float = 0.75
    apart: float = 1.5
    pull: float = 0.5
    astray: float = 1.0
    places: int = 61
    slack: float = 1.25
    steady_floor: float = 0.002
    least_side: float = 0.4
    wider: tuple[float, ...] = (2.0, 4.0, 8.0, 16.0)
    alone: float = 0.1


LEAF_POSITIONS = LeafPositionTuning()


class ReflectedReading:
    """Counts on leaves at one bandwidth, with walls that reflect: values and derivatives, and weights of each bucket.

    Parameters
    ----------
    counts : LeafCounts
    bandwidth : array of shape (d,)
        In data units.
    """

    def __init__(self, counts: LeafCounts, bandwidth: FloatArray) -> None:
        self.counts = counts
        self.spec = counts.spec
        self.bandwidth = bandwidth

    @cached_property
    def _ends(self) -> tuple[FloatArray, ...]:
        """Ends of the distinct ranges that buckets have along each axis, in data units, and which bucket has which."""
        return tuple(self.spec.edges(axis)[ranges] for axis, (ranges, _) in enumerate(self._ranges))

    @cached_property
    def _ranges(self) -> tuple[tuple[IntArray, IntArray], ...]:
        found = (np.unique(self.counts.boxes[:, axis], axis=0, return_inverse=True) for axis in range(self.spec.d))
        return tuple((ranges, where.ravel()) for ranges, where in found)

    def weights(self, point: FloatArray, orders: Sequence[tuple[int, ...]]) -> FloatArray:
        """Derivatives, at a point, of the density that one record in each bucket makes; shape (orders, buckets)."""
        lines: list[list[FloatArray]] = []
        for axis, (_, where) in enumerate(self._ranges):
            ends, h = self._ends[axis], float(self.bandwidth[axis])
            edges = self.spec.edges(axis)
            images = (ends, 2 * edges[0] - ends[:, ::-1], 2 * edges[-1] - ends[:, ::-1])
            x = float(point[axis])
            most = max(order[axis] for order in orders)
            lines.append(
                [
                    sum(_rise(x, image, h, k) for image in images)[where]  # type: ignore[index]
                    / (ends[where, 1] - ends[where, 0])
                    for k in range(most + 1)
                ]
            )
        out = np.ones((len(orders), len(self.counts.counts)))
        for row, order in zip(out, orders, strict=True):
            for axis, k in enumerate(order):
                row *= lines[axis][k]
        return out / self.counts.count

    @cached_property
    def noise_sd(self) -> float:
        """Deviation of privacy noise where a bucket is as wide as the bandwidth, about."""
        return self.counts.noise.sd / self.counts.count / float(np.prod(2 * math.sqrt(math.pi) * self.bandwidth))

    def jet(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Density, gradient and Hessian at points of shape (p, d)."""
        d = self.spec.d
        unit = np.eye(d, dtype=int)
        pairs = [(i, j) for i in range(d) for j in range(i, d)]
        orders = [(0,) * d, *map(tuple, unit.tolist()), *(tuple((unit[i] + unit[j]).tolist()) for i, j in pairs)]
        values = np.array([self.weights(point, orders) @ self.counts.counts for point in points]).reshape(
            len(points), len(orders)
        )
        hessian = np.empty((len(points), d, d))
        for column, (i, j) in enumerate(pairs):
            hessian[:, i, j] = hessian[:, j, i] = values[:, 1 + d + column]
        return values[:, 0], values[:, 1 : 1 + d], hessian


def _rise(x: float, ends: FloatArray, h: float, order: int) -> FloatArray:
    """Smoothed indicator of ranges at a place, or its derivative."""
    z = (x - ends) / h
    if order == 0:
        smooth = ndtr(z)
    else:
        bell = np.exp(-0.5 * z**2) / (math.sqrt(2 * math.pi) * h)
        smooth = bell if order == 1 else -z * bell / h
    return np.asarray(smooth[:, 0] - smooth[:, 1])


@dataclass(frozen=True, eq=False)
class LeafPositions:
    """Located modes.

    Attributes
    ----------
    position : array of shape (k, d)
    privacy, other : arrays of shape (k, d, d)
        Covariance of each position: of the privacy noise, and of the draw of the records with smoothing.
    bandwidth : array of shape (k, d)
        About the bandwidth that each position rests on.
    height : array of shape (k,)
        Density of the counts at that bandwidth.
    skewness : array of shape (k,)
        Probability that smoothing moves the mode.
    """

    position: FloatArray
    privacy: FloatArray
    other: FloatArray
    bandwidth: FloatArray
    height: FloatArray
    skewness: FloatArray

    def only(self, kept: IntArray) -> LeafPositions:
        """Some of the modes."""
        parts = (self.position, self.privacy, self.other, self.bandwidth, self.height, self.skewness)
        return LeafPositions(*(part[kept] for part in parts))


def locate_on_leaves(
    counts: LeafCounts, starts: FloatArray, bandwidths: FloatArray, fixed: FloatArray | None = None
) -> LeafPositions:
    """Follow each start, found at some bandwidth, through all of them, and say where its mode is.

    Parameters
    ----------
    counts : LeafCounts
    starts : array of shape (k, d)
    bandwidths : array of shape (k, d)
        Where each start was found, in data units.
    fixed : array of shape (d,), optional
        A bandwidth that was asked for: its modes, not those of the density behind it.
    """
    unit = counts.widths
    if fixed is None:
        low, high, size = LEAF_POSITIONS.bandwidths[counts.d]
        least = float(np.min(1 / np.array(counts.spec.leaves)))
        scales = np.geomspace(min(max(low, least), high / 2), high, size)
        readings = [ReflectedReading(counts, scale * unit) for scale in scales]
    else:
        scales, readings = np.ones(1), [ReflectedReading(counts, fixed)]
        unit = fixed
    paths = [_follow(readings, start, h, fixed is not None) for start, h in zip(starts, bandwidths, strict=True)]
    _part(paths, readings)
    found = []
    for k, track in enumerate(paths):
        others = [other for j, other in enumerate(paths) if j != k]
        evidence = _Evidence.of(counts, readings, scales, unit, track, others)
        for wider in LEAF_POSITIONS.wider if fixed is None else ():
            if len(evidence.scales):
                break
            # At the bandwidth that shows a hill best its top may be a bump of the noise, which leads nowhere.
            again = _follow(readings, starts[k], wider * bandwidths[k], False)
            evidence = _Evidence.of(counts, readings, scales, unit, again, others)
        found.append(evidence.answer(starts[k], bandwidths[k]))
    stack = [np.array([answer[i] for answer in found]) for i in range(6)]
    located = LeafPositions(*stack)
    return located if counts.d > 1 or fixed is not None else _with_flat_tops(counts, located)


def _with_flat_tops(counts: LeafCounts, located: LeafPositions) -> LeafPositions:
    r"""Widen the errors of modes on flat tops, such as that of two modes which merge; one column.

    At the bandwidth :math:`h` that a position rests on, all places y on the same hill are collected whose density is
    not clearly below that at the position x, :math:`f_h(x) - f_h(y) \leq 1.96\,\mathrm{sd}`. Near a round top with
    curvature :math:`f''` both sides are about :math:`|f''| (x - y)^2/2` and :math:`|x - y|` times the deviation of
    :math:`f'`, so these places reach twice as far as the interval of the position. Where they reach much further, the
    highest of them is not known: the error grows with them.
    """
    other = located.other.copy()
    for k, x in enumerate(located.position):
        reading = ReflectedReading(counts, located.bandwidth[k])
        error = math.sqrt(float(located.privacy[k, 0, 0] + located.other[k, 0, 0]))
        reach = max(4 * float(located.bandwidth[k, 0]), 4 * error)
        halves = (located.position[:, 0] + x[0]) / 2
        low = max([counts.low[0], x[0] - reach, *halves[located.position[:, 0] < x[0]]])
        high = min([counts.high[0], x[0] + reach, *halves[located.position[:, 0] > x[0]]])
        places = np.linspace(low, high, LEAF_POSITIONS.places)
        rows = np.stack([reading.weights(np.array([place]), [(0,)])[0] for place in (x[0], *places)])
        below = rows[0] - rows[1:]
        as_high = below @ counts.counts <= 1.96 * np.sqrt(below**2 @ counts.variance)
        furthest = float(np.abs(places - x[0])[as_high].max(initial=0.0))
        wide = furthest / (2 * 1.96 * LEAF_POSITIONS.slack)
        other[k, 0, 0] += max(wide**2 - error**2, 0.0)
    return replace(located, other=other)


def _follow(readings: Sequence[ReflectedReading], start: FloatArray, bandwidth: FloatArray, fixed: bool) -> FloatArray:
    """Positions of a mode at all bandwidths, NaN where it cannot be followed; shape (Q, d)."""
    track = np.full((len(readings), len(start)), np.nan)
    ratio = [float(np.mean(np.log(reading.bandwidth / bandwidth))) for reading in readings]
    resolved = [fixed or _resolved(reading, start) for reading in readings]
    usable = resolved if any(resolved) else [True] * len(readings)
    first = int(np.argmin(np.where(usable, np.abs(ratio), np.inf)))
    for direction in (1, -1):
        here = start
        for q in range(first, len(readings) if direction > 0 else -1, direction):
            reading = readings[q]
            if not usable[q]:
                break
            there = newton_ascent(reading, here[None], rounds=12)[0]
            _, _, hessian = reading.jet(there[None])
            scaled = hessian[0] * reading.bandwidth[:, None] * reading.bandwidth
            jumped = q != first and np.abs((there - here) / reading.bandwidth).max() > 1.0
            wall = np.minimum(there - reading.spec.lower, reading.spec.upper - there)
            at_wall = np.any(wall < LEAF_POSITIONS.off_wall * reading.bandwidth) and not fixed
            hidden = any(resolved) and not fixed and not _resolved(reading, there)
            if jumped or at_wall or hidden or np.linalg.eigvalsh(scaled)[-1] >= 0:
                break
            track[q] = here = there
    return track


def _resolved(reading: ReflectedReading, place: FloatArray) -> bool:
    """Whether a peak has not merely the shape of its bucket."""
    return bool(np.all(reading.bandwidth >= LEAF_POSITIONS.least_side * _bucket_sides(reading.counts, place)))


def _part(paths: Sequence[FloatArray], readings: Sequence[ReflectedReading]) -> None:
    """End two tracks where they come so close that they are one: beyond, neither is the mode it was."""
    for q, reading in enumerate(readings):
        for j, first in enumerate(paths):
            for second in paths[:j]:
                apart = np.abs((first[q] - second[q]) / reading.bandwidth).max()
                if apart < LEAF_POSITIONS.apart:
                    first[q:] = second[q:] = np.nan


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Positions of one mode at the bandwidths that can be used, their covariance, and the width of its peak.

    Lengths are in units of `unit`, the rows of matrices run over bandwidths and then axes.
    """

    positions: FloatArray
    scales: FloatArray
    unit: FloatArray
    privacy: FloatArray
    total: FloatArray
    moved: FloatArray
    width: FloatArray
    heights: FloatArray
    nearest_wall: FloatArray
    sharp: float = 0.0

    @classmethod
    def of(
        cls,
        counts: LeafCounts,
        readings: Sequence[ReflectedReading],
        scales: FloatArray,
        unit: FloatArray,
        track: FloatArray,
        others: Sequence[FloatArray],
    ) -> _Evidence:
        """Collect what can be used of a track."""
        d = counts.d
        eye = np.eye(d, dtype=int)
        orders = [(0,) * d, *map(tuple, eye.tolist())]
        rows, places, kept, heights, flats, pulls, heaped = [], [], [], [], [], [], []
        for q in np.flatnonzero(np.isfinite(track[:, 0])).tolist():
            reading, x = readings[q], track[q]
            weights = reading.weights(x, orders)
            height = float(weights[0] @ counts.counts)
            sd = math.sqrt(float(weights[0] ** 2 @ counts.variance))
            hessian = reading.jet(x[None])[2][0] * unit[:, None] * unit
            flat = np.linalg.inv(-hessian)
            gradient = flat @ (weights[1:] * unit[:, None])
            more = float(dispersion_of(*(weights[0] ** 2 @ part for part in counts.roughness)))
            error = math.sqrt(more * float((gradient**2 @ counts.variance).max()))
            if height < LEAF_POSITIONS.usable_height * sd or error > LEAF_POSITIONS.steady * scales[q]:
                continue
            rows.append(gradient)
            places.append(x / unit)
            kept.append(scales[q])
            heaped.append(more)
            heights.append(height)
            flats.append(height * np.diag(flat) - scales[q] ** 2)
            pulls.append([_apart(reading, x, other[q], height) for other in others])
        if not kept:
            empty = np.zeros((0, 0))
            return cls(np.zeros((0, d)), np.zeros(0), unit, empty, empty, empty, np.zeros(d), np.zeros(0), np.zeros(d))
        h = np.array(kept)
        width = np.sqrt(np.clip(np.median(flats, axis=0), (0.3 * h[0]) ** 2, (2 * h[-1]) ** 2))
        # A bump of the noise is more curved than the peak below it: the error is at least that of a normal peak.
        for row, flat, scale in zip(rows, flats, h, strict=True):
            seen, model = np.mean(np.asarray(flat) + scale**2), np.mean(width**2 + scale**2)
            row *= max(1.0, model / max(float(seen), 1e-300))
        stacked = np.concatenate(rows)
        privacy = counts.noise.variance * stacked @ stacked.T
        rough = np.repeat(np.sqrt(heaped), d)[:, None] * stacked
        total = (rough * counts.variance) @ rough.T
        sides = _bucket_sides(counts, places[0] * unit) / unit
        # Where in a bucket as wide as the peak its records lie, nobody knows.
        inside = sides / math.sqrt(12) * (sides / (sides + 2 * width)) ** 2
        # Nor where between two values of a lattice a mode is.
        steps = np.array(counts.spec.steps) / unit
        unseen = np.broadcast_to(np.hypot(inside, steps / math.sqrt(12)), (len(h), d))
        ends = [_wall_shift(counts, x, scale, width, unit) for x, scale in zip(places, h, strict=True)]
        pulled = np.stack([_neighbours_shift(pull, scale, width, unit) for pull, scale in zip(pulls, h, strict=True)])
        # What neighbours do without any smoothing belongs to the mode; the rest is taken away, as far as it is known.
        extra = pulled - _neighbours_shift(pulls[0], 0.0, width, unit)
        moved = np.stack([unseen, np.stack(ends), LEAF_POSITIONS.pull * np.abs(pulled)])
        near = np.minimum(places[0] - counts.low / unit, counts.high / unit - places[0])
        # At a third of its width a peak is seen as it is, and a bump of the noise is not.
        q = int(np.argmin(np.abs(np.log(3 * h / width[0]))))
        sharp = _edge_at(counts, places[q] * unit, h[q] * unit, width * unit) if d == 1 else 0.0
        return cls(np.array(places) - extra, h, unit, privacy, total, moved, width, np.array(heights), near, sharp)

    def answer(self, start: FloatArray, bandwidth: FloatArray) -> tuple[FloatArray, ...]:
        """Position, covariances, bandwidth, height and probability of being skewed; data units."""
        d = len(start)
        if not len(self.scales):  # nothing is steady: somewhere within the bandwidth it was found at
            wide = np.diag((bandwidth / 2) ** 2)
            return start, wide / 2, wide / 2, bandwidth, np.array(np.nan), np.array(1.0)
        own = np.repeat((SMOOTHING_BIAS.floor * self.scales) ** 2, d)
        # What walls and neighbours do follows their course only roughly: a part of it is each bandwidth's own.
        own += (LEAF_POSITIONS.astray**2 * self.moved[1:] ** 2).sum(axis=0).ravel()
        plain = self.total + np.diag(own) + sum(map(common_shift, self.moved))
        fixed = np.array_equal(self.scales, [1.0])  # a bandwidth that was asked for: nothing is to be undone
        laws = [plain] if fixed else [plain, plain + skewed_shift(self.scales, self.width)]
        if d == 1 and not fixed:
            laws.append(plain + edge_shift(self.scales, self.width))
        fits = [fit_position(self.positions, law) for law in laws]
        evidence = np.array([fit.evidence for fit in fits])
        if d == 1 and not fixed and (steadiest := self._steadiest(plain)) is not None:
            fits[0] = steadiest
        symmetric = symmetric_at_walls(self.nearest_wall, self.width)
        mean, gain, covariance, skewness = combine_fits(fits, evidence, symmetric, self.sharp)
        privacy = gain @ self.privacy @ gain.T
        rest = positive_part(covariance - privacy)
        influence = np.abs(gain).reshape(d, len(self.scales), d).sum(axis=(0, 2))
        typical = float(np.exp(influence @ np.log(self.scales) / influence.sum()))
        nearest = int(np.argmin(np.abs(np.log(self.scales / typical))))
        square = self.unit[:, None] * self.unit
        return (
            mean * self.unit,
            privacy * square,
            rest * square,
            typical * self.unit,
            self.heights[nearest],
            skewness,
        )

    def _steadiest(self, plain: FloatArray) -> LinearFit | None:
        """Position at the bandwidth with the least error, for a peak that smoothing does not move; None if not alone.

        Positions at neighbouring bandwidths have nearly the same error, so that their best combination is a difference
        of large numbers: what little is wrong with their covariance moves it further than it gains.
        """
        size, d = self.positions.shape
        blocks = plain.reshape(size, d, size, d)[np.arange(size), :, np.arange(size), :].copy()
        # A peak that is not moved has no third order either: the least error is a small part of the peak's width.
        least = LEAF_POSITIONS.steady_floor**2 / (1 / self.scales[:, None] ** 2 + 1 / self.width**2)
        spare = least - (SMOOTHING_BIAS.floor * self.scales[:, None]) ** 2
        blocks[:, np.arange(d), np.arange(d)] += np.minimum(spare, 0.0)
        q = int(np.argmin(np.einsum("qii,i->q", blocks, 1 / self.width**2)))
        if np.any(self.moved[1:, q] ** 2 > LEAF_POSITIONS.alone**2 * np.diag(blocks[q])):
            return None
        gain = np.zeros((d, size * d))
        gain[:, q * d : (q + 1) * d] = np.eye(d)
        return LinearFit(self.positions[q], blocks[q], gain, 0.0)


def _edge_at(counts: LeafCounts, place: FloatArray, bandwidth: FloatArray, width: FloatArray) -> float:
    """How likely a peak of one column has an edge: its sides differ far more than those of a skewed hill."""
    reading = ReflectedReading(counts, bandwidth)
    heights = [float(reading.weights(place + side * width, [(0,)])[0] @ counts.counts) for side in (-1, 0, 1)]
    return edge_probability(abs(heights[2] - heights[0]) / max(heights[1], 1e-300))


def _bucket_sides(counts: LeafCounts, place: FloatArray) -> FloatArray:
    """Sides of the bucket at a place, in data units."""
    leaf = np.clip(((place - counts.low) / counts.spec.cell_widths).astype(int), 0, np.array(counts.spec.leaves) - 1)
    box = counts.boxes[counts.label[tuple(leaf)]]
    return np.asarray((box[:, 1] - box[:, 0]) * counts.spec.cell_widths)


def _apart(reading: ReflectedReading, x: FloatArray, other: FloatArray, height: float) -> tuple[FloatArray, float]:
    """Way to another mode and its relative height; nowhere if it cannot be followed to this bandwidth."""
    if not np.isfinite(other).all():
        return np.full(len(x), np.inf), 0.0
    return other - x, float(reading.jet(other[None])[0][0]) / max(height, 1e-300)


def _wall_shift(counts: LeafCounts, place: FloatArray, scale: float, width: FloatArray, unit: FloatArray) -> FloatArray:
    """How far walls may move a mode at one bandwidth, per axis, in units."""
    return wall_shift(np.minimum(place - counts.low / unit, counts.high / unit - place), scale, width)


def _neighbours_shift(
    others: Sequence[tuple[FloatArray, float]], scale: float, width: FloatArray, unit: FloatArray
) -> FloatArray:
    """How far the tails of other modes pull a mode at one bandwidth, per axis, in units, if all are normal."""
    pull = np.zeros(len(unit))
    for way, ratio in others:
        towards = way / unit
        if np.isfinite(towards).all():
            pull += towards * ratio * math.exp(-0.5 * float(np.sum(towards**2 / (scale**2 + width**2))))
    return pull
