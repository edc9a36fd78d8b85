"""One column of a posterior: its leaves, and where inside a leaf the mass may lie.

A leaf is too narrow to look into. Where it holds little, mass is taken to be even inside it; where it holds much, as
the heap of a column with many zeros does, all of it may be one value, and nobody knows which. Answers then say what
follows from every place that the value may have: ends of quantiles move outward to the ends of the leaf, and draws
place the heap anywhere in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.leaves import LeafSpec
from fogline.density.spec import default_names

__all__ = ["HEAVY_LEAF", "Ends", "Heaps", "LeafAxis", "axes_of", "cdf_at", "cut_shares", "mean_places", "quantiles_of"]

Ends = tuple[float | None, float | None]

HEAVY_LEAF = 1e-3
"""Leaves with a larger share than this are not taken to be even inside; offsets in all others average out."""

AT_EDGE = 0.25
"""How often a drawn heap lies at the lower end of its leaf, where round numbers are."""

EVENNESS = {False: 64.0, True: 8.0}
"""Concentration of the share of a leaf that a range cuts off: in a continuous column, and in one of whole values, of
which the leaf holds several."""

BESIDE = (-1.0, 1.5)
"""How much of a wide leaf at a wall is no heap, in units of what neighbours would put there. Below zero: some of the
heap lies in buckets that reach beyond the leaf. Above one: the density is highest at the wall."""


@dataclass(frozen=True, eq=False)
class LeafAxis:
    """One column of a posterior: its name, edges of its leaves and the values that a leaf stands for.

    Parameters
    ----------
    name : str
    edges : array
        In data units; with a step they lie between two values.
    step : float
        Rounding step, 0 for a continuous column.
    bounds : (float, float)

    Examples
    --------
    >>> axis = LeafAxis("stay", np.array([0.0, 2.0, 4.0]), 0.0, (0.0, 4.0))
    >>> axis.overlap((1, 4)).tolist(), axis.leaf_of(np.array([0.5, 2.0, 4.0])).tolist()
    ([0.5, 1.0], [0, 1, 1])
    """

    name: str
    edges: FloatArray
    step: float
    bounds: tuple[float, float]

    @property
    def centres(self) -> FloatArray:
        """Middle of each leaf, inside the bounds."""
        return np.asarray(np.clip((self.edges[1:] + self.edges[:-1]) / 2, *self.bounds))

    @property
    def width(self) -> float:
        """Width of a leaf."""
        return float(self.edges[1] - self.edges[0])

    @property
    def reach(self) -> float:
        """How far a value may lie from the middle of its leaf: 0 where a leaf is one value."""
        return max((self.width - self.step) / 2, 0.0) if self.width > 1.5 * self.step else 0.0

    def first(self, leaf: IntArray) -> FloatArray:
        """Least value of leaves."""
        return np.asarray(np.clip(self.edges[leaf] + self.step / 2, *self.bounds))

    def last(self, leaf: IntArray) -> FloatArray:
        """Largest value of leaves."""
        return np.asarray(np.clip(self.edges[np.asarray(leaf) + 1] - self.step / 2, *self.bounds))

    def leaf_of(self, x: FloatArray) -> IntArray:
        """Leaf of each place; places outside belong to the nearest."""
        return np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, len(self.edges) - 2)

    def above(self, x: FloatArray, *, sign: int = 1) -> FloatArray:
        """Halfway between the largest value of a lattice that is at most x and the next; with sign -1, mirrored."""
        origin = sign * self.bounds[0]
        value = np.floor((x - origin) / self.step + 1e-6)
        return np.asarray(origin + (value + 0.5) * self.step)

    def overlap(self, ends: Ends) -> FloatArray:
        """Part of each leaf that lies in a closed range; None is an open end."""
        low, high = self.range(ends)
        if self.step:  # values count as wholes: a range ends halfway to the next value
            low, high = -self.above(np.array([-low]), sign=-1)[0], self.above(np.array([high]))[0]
        start, stop = self.edges[:-1], self.edges[1:]
        inside = np.clip(np.minimum(stop, high) - np.maximum(start, low), 0.0, None)
        return np.asarray(np.minimum(inside / self.width, 1.0))

    def range(self, ends: Ends) -> tuple[float, float]:
        """Ends of a range as numbers, checked."""
        try:
            first, second = ends
            low = -math.inf if first is None else float(first)
            high = math.inf if second is None else float(second)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name}: a range is two numbers, or None for an open end, got {ends!r}") from None
        if not low <= high:
            raise ValueError(f"{self.name}: the range must rise, got {low} to {high}")
        return low, high

    def values_in(self, leaf: IntArray, rng: np.random.Generator) -> FloatArray:
        """Random values inside leaves: anywhere, or values of the lattice."""
        within = self.edges[leaf] + rng.random(len(leaf)) * self.width
        if self.step:
            within = self.bounds[0] + np.round((within - self.bounds[0]) / self.step) * self.step
        return np.asarray(np.clip(within, *self.bounds))

    def outside(self, ends: Ends) -> str:
        """Say that a range lies outside the bounds, where nothing was counted; else nothing."""
        (low, high), (first, last) = self.range(ends), self.bounds
        if low <= last and high >= first:
            return ""
        if math.isinf(low) or math.isinf(high):
            where = f"{self.name} above {low:g}" if math.isinf(high) else f"{self.name} below {high:g}"
        else:
            where = f"{self.name} from {low:g} to {high:g}"
        return f"{where} lies outside the released bounds {first:g} to {last:g}, where nothing was counted"


@dataclass(frozen=True, eq=False)
class Heaps:
    """Cells whose mass is taken to be one value, and where that value lies: as estimated, and in each draw.

    Attributes
    ----------
    leaves, stops : array of shape (heaps,)
        First leaf of each cell, and the first one after it; most cells are one leaf.
    values : array of shape (1, heaps)
        The value as estimated.
    drawn : array of shape (draws, heaps)
        Places that the value may have.
    part : array of shape (1, heaps)
        Part of the cell's mass that is the value; the rest is spread over the cell.
    drawn_part : array of shape (draws, heaps)
    ends : array of shape (2, heaps)
        Least and largest place that the value may have.
    """

    leaves: IntArray
    stops: IntArray
    values: FloatArray
    drawn: FloatArray
    part: FloatArray
    drawn_part: FloatArray
    ends: FloatArray

    @classmethod
    def of(
        cls,
        axis: LeafAxis,
        leaves: IntArray,
        values: FloatArray,
        draws: int,
        seed: int,
        *,
        stops: IntArray | None = None,
        beside: FloatArray | None = None,
        at_wall: bool = True,
    ) -> Heaps:
        """Draw places: a heap of the outermost leaf is at the wall, others anywhere in theirs.

        Parameters
        ----------
        axis : LeafAxis
        leaves, values : array of shape (heaps,)
        draws, seed : int
        stops : array of shape (heaps,), optional
            Ends of cells of several leaves.
        beside : array of shape (heaps,), optional
            For each heap, the part of its leaf's mass that neighbours would put there. That much of the leaf, or more,
            may be no heap, and about as much of the heap may lie in buckets at the wall that are wider than the leaf.
            Draws allow for both (`BESIDE`). Without it all is the heap.
        at_wall : bool
            Whether a heap of the outermost leaf is known to be at the wall; else it is there now and then.
        """
        rng = np.random.default_rng([seed, len(leaves)])
        stops = leaves + 1 if stops is None else stops
        first, last = axis.first(leaves), axis.last(stops - 1)
        share = rng.random((draws, len(leaves)))
        if axis.step:
            share = np.round(share * (last - first) / axis.step) * axis.step / np.maximum(last - first, 1e-300)
        drawn = first + share * (last - first)
        at_edge = rng.random(drawn.shape)
        drawn = np.where(at_edge < AT_EDGE, first, drawn)
        low_wall, high_wall = leaves == 0, stops == len(axis.edges) - 1
        drawn = np.where((at_edge > 1 - AT_EDGE) & high_wall, last, drawn)
        # a cell is half open, but for the one at the upper wall
        ends = np.stack([first, np.where(high_wall | (axis.step > 0), last, np.nextafter(last, -np.inf))])
        if at_wall:
            drawn = np.where(low_wall, first, np.where(high_wall, last, drawn))
            ends = np.where(low_wall, first, np.where(high_wall, last, ends))
        most = np.zeros(len(leaves)) if beside is None else np.clip(beside, 0.0, 1.0)
        drawn_part = 1 - most * rng.uniform(BESIDE[0], BESIDE[1], drawn.shape)
        part = (1 - most * sum(BESIDE) / 2)[None]
        return cls(leaves, stops, values[None, :], drawn, part, drawn_part, ends)

    def weights(self, low: float, high: float, slack: float, cut: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Part of each heap's leaf that lies in a closed range: as estimated (heaps,), and in each draw.

        Parameters
        ----------
        low, high, slack : float
            Ends of the range and how far beyond them a value still counts.
        cut : array of shape (heaps,)
            Part of the leaf that the range covers.
        """
        inside, drawn = self.inside(low, high, slack)
        return (self.part * inside + (1 - self.part) * cut)[0], self.drawn_part * drawn + (1 - self.drawn_part) * cut

    def inside(self, low: float, high: float, slack: float) -> tuple[BoolArray, BoolArray]:
        """Whether the values lie in a closed range: as estimated, and in each draw.

        Whoever asks about a single value that lies in the cell of a heap asks about the heap.
        """
        both = ((part >= low - slack) & (part <= high + slack) for part in (self.values, self.drawn))
        estimated, drawn = both
        return estimated | ((low == high) & self.possible(low, high, slack)[1]), drawn

    def possible(self, low: float, high: float, slack: float) -> tuple[BoolArray, BoolArray]:
        """Whether the values surely lie in a closed range, and whether they may."""
        first, last = self.ends
        surely = (first >= low - slack) & (last <= high + slack)
        return surely, (last >= low - slack) & (first <= high + slack)

    def change(
        self, part: FloatArray, weights: FloatArray, inside: FloatArray | BoolArray, heaped: FloatArray
    ) -> FloatArray:
        """What a range holds more because heaps lie in it as wholes or not at all.

        Parameters
        ----------
        part : array of shape (..., leaves)
        weights : array of shape (leaves,)
            Part of each leaf that the range covers.
        inside : array of shape (heaps,) or (draws, heaps)
            Whether each heap lies in the range.
        heaped : array of shape (heaps,) or (draws, heaps)
            Part of each cell that is the heap.
        """
        total = np.zeros(part.shape[:-1])
        for number, (start, stop) in enumerate(zip(self.leaves.tolist(), self.stops.tolist(), strict=True)):
            cell = part[..., start:stop]
            more = inside[..., number] * cell.sum(axis=-1) - cell @ weights[start:stop]
            total = total + heaped[..., number] * more
        return np.asarray(total)


def cdf_at(
    axis: LeafAxis,
    part: FloatArray,
    points: FloatArray,
    leaves: IntArray,
    places: FloatArray | None,
    heaped: FloatArray | None = None,
) -> FloatArray:
    """Distribution functions at points; linear inside a leaf, a step at each value of a lattice and at each heap.

    Parameters
    ----------
    axis : LeafAxis
    part : array of shape (..., leaves)
    points : array of shape (points,)
    leaves, places : array of shape (heaps,), (rows or 1, heaps)
        Leaves that are heaps, and their values.
    heaped : array of shape (rows or 1, heaps), optional
        Part of each such leaf that is the value; all of it without.
    """
    rows = np.atleast_2d(part)
    cumulative = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=-1)], axis=-1)
    x = np.clip(axis.above(points) if axis.step else points, axis.edges[0], axis.edges[-1])
    place = axis.leaf_of(np.nextafter(x, -np.inf) if axis.step else x)
    within = np.broadcast_to(np.clip((x - axis.edges[place]) / axis.width, 0, 1), (len(rows), len(x))).copy()
    if places is not None:
        for number, leaf in enumerate(leaves.tolist()):
            at = np.flatnonzero(place == leaf)
            at_value = points[at] + 1e-6 * axis.step >= places[:, [number]]
            share = 1.0 if heaped is None else heaped[:, [number]]
            within[:, at] = share * at_value + (1 - share) * within[:, at]
    found = cumulative[:, place] * (1 - within) + cumulative[:, place + 1] * within
    found[:, points < axis.bounds[0]] = 0.0
    return np.asarray(found if part.ndim > 1 else found[0])


def quantiles_of(axis: LeafAxis, part: FloatArray, levels: FloatArray) -> FloatArray:
    """Quantiles, linear inside a leaf; on a lattice the middle of the leaf."""
    rows = np.atleast_2d(part)
    out = np.empty((len(rows), len(levels)))
    for i, row in enumerate(rows):
        cumulative = np.cumsum(row)
        goal = np.minimum(levels * cumulative[-1], cumulative[-1] * (1 - 1e-12))
        leaf = np.minimum(np.searchsorted(cumulative, goal, side="left"), len(row) - 1)
        below = np.where(leaf > 0, cumulative[leaf - 1], 0.0)
        within = np.where(row[leaf] > 0, (goal - below) / np.where(row[leaf] > 0, row[leaf], 1.0), 0.5)
        out[i] = axis.centres[leaf] if axis.step else axis.edges[leaf] + np.clip(within, 0, 1) * axis.width
    return out if part.ndim > 1 else out[0]


def mean_places(
    axis: LeafAxis, estimate: FloatArray, draws: int, seed: int, places: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Where the mass of heavy leaves may lie on average, per draw: offsets from its place, shape (draws, leaves).

    They follow the arcsine law: where one leaf holds all, an interval comes near both ends of the leaf; where there are
    many, offsets average out. A place off the middle is that of a heap at a wall. Half of the draws believe in the heap
    and are wrong by as far as it is from the wall; the others hold that the leaf is no heap at all, and put its mass
    anywhere in it: data that lie in less than a leaf beside the wall look just like zeros.
    """
    heavy = np.flatnonzero(estimate > HEAVY_LEAF) if axis.reach else np.empty(0, dtype=np.int64)
    rng = np.random.default_rng([seed, 7])
    angles = rng.uniform(-np.pi / 2, np.pi / 2, (draws, len(heavy)))
    shift = (axis.centres - places)[heavy]
    offsets = (axis.reach - np.abs(shift)) * np.sin(angles)
    anywhere = shift + axis.reach * rng.uniform(-1, 1, offsets.shape)
    doubted = (np.abs(shift) > 0) & (rng.random(offsets.shape) < 0.5)
    return heavy, np.asarray(np.where(doubted, anywhere, offsets))


def cut_shares(axis: LeafAxis, weights: FloatArray, draws: int, seed: int) -> tuple[IntArray, FloatArray]:
    """How much of the leaves that a range cuts lies inside it, per draw: those leaves, and shares (draws, leaves).

    The estimate takes a leaf to be even inside. Its slope is not known, and where a leaf holds much, that counts.

    Parameters
    ----------
    axis : LeafAxis
    weights : array of shape (leaves,)
        Part of each leaf that the range covers.
    draws, seed : int

    Examples
    --------
    >>> axis = LeafAxis("stay", np.array([0.0, 2.0, 4.0]), 0.0, (0.0, 4.0))
    >>> leaves, shares = cut_shares(axis, axis.overlap((1, 4)), 1000, 0)
    >>> leaves.tolist(), round(float(shares.mean()), 1)
    ([0], 0.5)
    """
    leaves = np.flatnonzero((weights > 1e-6) & (weights < 1 - 1e-6))
    evenness, part = EVENNESS[bool(axis.step)], weights[leaves]
    rng = np.random.default_rng([seed, 13])
    return leaves, np.asarray(rng.beta(evenness * part, evenness * (1 - part), (draws, len(leaves))))


def axes_of(spec: LeafSpec, columns: Sequence[str] | None) -> list[LeafAxis]:
    """Axes of a plan, with the names of its columns or x1, x2, ..."""
    names = list(default_names(spec.d)) if columns is None else [str(name) for name in columns]
    if len(names) != spec.d or len(set(names)) != spec.d:
        raise ValueError(f"columns must be {spec.d} different names, got {names}")
    return [LeafAxis(names[k], spec.edges(k), spec.steps[k], spec.bounds[k]) for k in range(spec.d)]
