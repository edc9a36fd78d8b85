"""Shares and conditional posteriors of boxes, with heaps in them or out of them as wholes.

A condition is a range per column. Leaves count by the part of them that lies in the range; a leaf that is a heap of one
value counts as a whole or not at all, as estimated and, since nobody knows where in the leaf the value is, per draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fogline._typing import FloatArray, IntArray
from fogline.density.posterior.axes import HEAVY_LEAF, Ends, Heaps
from fogline.density.posterior.estimates import Estimate, Target
from fogline.density.posterior.posterior import LeafMasses, Posterior

__all__ = ["Conditions", "Ranges"]

Ranges = Mapping[str, Ends]
"""Closed ranges by column; None is an open end."""

UNSEEN_SHARE = 1e-9
"""A box with a smaller estimated share than this holds nothing, and nothing is said about what is in it."""


@dataclass(frozen=True, eq=False)
class _Weights:
    """Part of each leaf of a column that lies in a range: as estimated, and per draw where a heap is cut."""

    estimated: FloatArray
    drawn: FloatArray | None = None


class Conditions:
    """Boxes of a posterior: their shares, and the posterior within them.

    Parameters
    ----------
    posterior : Posterior

    Examples
    --------
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> boxes = Conditions(example_posterior())
    >>> round(boxes.share({"stay": (0, 2)}).value, 1)
    0.7
    >>> boxes.share({"stay": (0, 1)}, {"stay": (0, 2)}).value > 0.5
    True
    >>> boxes.within({"stay": (0, 2)}, ["stay"]).mean("stay").value < 1.5
    True
    """

    def __init__(self, posterior: Posterior) -> None:
        self.posterior = posterior
        self._margins: dict[int, Posterior] = {}

    def share(
        self, event: Ranges, given: Ranges | None = None, *, target: Target = "population", level: float = 0.95
    ) -> Estimate:
        """Probability of a box, or its part of another box."""
        both = _intersection(event, given or {})
        inside = self._masses(both, (), target)
        if not given:
            return self._answer(float(inside.estimate), inside.draws, inside.even, self.posterior, target, level)
        around = self._masses(given, (), target)
        # Where a draw sees nothing in the condition, the share may be anything, unless logic decides it.
        anything, middle = np.linspace(0, 1, len(around.draws)), 0.5
        if all(self._covers(name, ends, given.get(name, (None, None))) for name, ends in event.items()):
            anything, middle = np.ones(len(around.draws)), 1.0
        elif not all(_rises(ends) for ends in both.values()):
            anything, middle = np.zeros(len(around.draws)), 0.0
        value, draws, even = (
            np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), unknown)
            for part, whole, unknown in (
                (inside.estimate, around.estimate, middle),
                (inside.draws, around.draws, anything),
                (inside.even, around.even, anything),
            )
        )
        return self._answer(float(value), draws, even, self._counted(given), target, level)

    def _covers(self, name: str, wide: Ends, narrow: Ends) -> bool:
        """Whether a range of a column holds another one, within the bounds."""
        axis = self.posterior.axes[self.posterior.columns.index(name)]
        (low, high), (first, last) = axis.range(wide), axis.range(narrow)
        bounds = axis.bounds
        return low <= max(first, bounds[0]) and min(last, bounds[1]) <= high

    @staticmethod
    def _answer(
        value: float, draws: FloatArray, even: FloatArray, counted: Posterior, target: Target, level: float
    ) -> Estimate:
        share = min(max(value, 0.0), 1.0)
        spread = math.sqrt(share * (1 - share))
        return counted._estimate(share, np.clip(draws, 0, 1), np.clip(even, 0, 1), spread, target, level)

    def count(self, ranges: Ranges, *, level: float = 0.95) -> Estimate:
        """Number of records in a box: of the table itself, whatever the population."""
        whole = self.posterior.count
        n, sd = float(whole.value), float(whole.standard_error)
        if not ranges:
            return whole
        share = self.share(ranges, target="records", level=level)
        value, tail = float(share.value), float(whole.high - whole.value) / max(n, 1e-300)
        low, high = (n * math.hypot(float(end) - value, tail * value) for end in (share.low, share.high))
        return Estimate(
            n * value,
            math.hypot(n * float(share.standard_error), sd * value),
            max(n * value - low, 0.0),
            n * value + high,
            level,
            "records",
            math.hypot(n * float(share.privacy), sd * value),
            0.0,
            n * float(share.smoothing),
        )

    def is_empty(self, ranges: Ranges) -> bool:
        """Whether next to nothing is estimated to lie in a box."""
        return bool(self._masses(ranges, (), "population").estimate < UNSEEN_SHARE)

    def within(self, ranges: Ranges, columns: list[str]) -> Posterior:
        """Posterior of some columns where all ranges hold; these may be ranges of the same columns."""
        keep = tuple(self.posterior.columns.index(name) for name in columns)
        counted = self._counted(ranges)
        return Posterior(
            [self.posterior.axes[k] for k in sorted(keep)],
            lambda target: self._masses(ranges, keep, target),
            count=counted._count,
            seed=self.posterior._seed,
            unseen=self.posterior._unseen,
            coarse=self.posterior._coarse or self.posterior.d > 1,
            heaps=self.posterior._heaps_along(sorted(keep)),
            conditioned=True,
            noise_ratio=self.posterior._noise_ratio,
            counted=lambda: self.count(ranges),
        )

    def _counted(self, ranges: Ranges) -> Posterior:
        """A posterior that knows how many records the box holds, for errors of sampling."""
        n, sd = self.posterior._count
        share = self.share(ranges)
        value = float(share.value)
        count = (max(n * value, 1.0), math.hypot(sd * value, n * float(share.privacy)))
        ratio = self.posterior._noise_ratio
        return Posterior(self.posterior.axes, self.posterior._contents, count=count, noise_ratio=ratio)

    # -- contents --------------------------------------------------------------------------------------------

    def _masses(self, ranges: Ranges, keep: tuple[int, ...], target: Target) -> LeafMasses:
        """Contents inside a box, summed over all columns but those to keep."""
        masses = self.posterior.masses(target)
        weights = [self._weights(k, ranges.get(name)) for k, name in enumerate(self.posterior.columns)]

        def inside(part: FloatArray, drawn: bool) -> FloatArray:
            return self._contracted(part, [_chosen(weight, drawn) for weight in weights], keep)

        estimate, draws = inside(masses.estimate, False), inside(masses.draws, True)
        return LeafMasses(estimate, draws, lambda: inside(masses.even, False))

    def _weights(self, k: int, ends: Ends | None) -> _Weights | None:
        """Weights of the leaves of a column; None for all of them in full."""
        if ends is None or ends == (None, None):
            return None
        axis = self.posterior.axes[k]
        estimated = axis.overlap(ends) if _rises(ends) else np.zeros(len(axis.centres))
        if k not in self._margins:
            self._margins[k] = self.posterior if self.posterior.d == 1 else self.posterior.marginal(k)
        heaps = self._margins[k]._heaps
        if not _rises(ends):
            return _Weights(estimated)
        low, high = axis.range(ends)
        per_draw = np.tile(estimated, (len(heaps.drawn), 1))
        outer = self._cut_outer(k, (low, high))
        if len(heaps.leaves):
            found = heaps.weights(low, high, 1e-6 * axis.step, estimated[heaps.leaves])
            estimated = estimated.copy()
            estimated[heaps.leaves], per_draw[:, heaps.leaves] = found
        elif not len(outer):
            return _Weights(estimated)
        if len(outer):
            places = Heaps.of(axis, outer, axis.centres[outer], len(per_draw), self.posterior._seed, at_wall=False)
            per_draw[:, outer] = places.inside(low, high, 1e-6 * axis.step)[1]
        return _Weights(estimated, per_draw)

    def _cut_outer(self, k: int, ends: tuple[float, float]) -> IntArray:
        """Heavy leaves at the walls that a range cuts: their records may all be at the wall, as zeros are."""
        axis, margin = self.posterior.axes[k], self._margins[k]
        masses, known = margin.masses().estimate, margin._heaps.leaves.tolist()
        # a range that ends at the wall itself, such as stay <= 0, cuts the leaf too
        found = [
            leaf
            for leaf, at_low, at_high in (
                (0, ends[1] == axis.bounds[0], 0),
                (len(axis.centres) - 1, 0, ends[0] == axis.bounds[1]),
            )
            if axis.reach
            and leaf not in known
            and masses[leaf] > HEAVY_LEAF
            and any(axis.edges[leaf] - at_low < end < axis.edges[leaf + 1] + at_high for end in ends)
        ]
        return np.array(sorted(set(found)), dtype=np.int64)

    def blurred_columns(self, ranges: Ranges) -> list[str]:
        """Columns whose range ends inside a leaf at a wall that may hold a heap."""
        found = []
        for k, name in enumerate(self.posterior.columns):
            ends = ranges.get(name)
            if ends is not None and ends != (None, None) and _rises(ends):
                self._weights(k, ends)
                if len(self._cut_outer(k, self.posterior.axes[k].range(ends))):
                    found.append(name)
        return found

    def wall_heaps(self, ranges: Ranges) -> list[tuple[str, float]]:
        """Columns whose range cuts the leaf of a heap at a wall, which is taken to be at the wall; and the wall."""
        found = []
        for k, name in enumerate(self.posterior.columns):
            ends = ranges.get(name)
            if ends is None or ends == (None, None) or not _rises(ends):
                continue
            self._weights(k, ends)
            axis, heaps = self.posterior.axes[k], self._margins[k]._heaps
            for leaf, wall in ((0, axis.bounds[0]), (len(axis.centres) - 1, axis.bounds[1])):
                low, high = axis.first(np.array([leaf]))[0], axis.last(np.array([leaf]))[0]
                if leaf in heaps.leaves.tolist() and any(end is not None and low <= end <= high for end in ends):
                    found.append((name, wall))
        return found

    def _contracted(self, part: FloatArray, weights: list[FloatArray | None], keep: tuple[int, ...]) -> FloatArray:
        """Contents weighted along each column, and summed along those that are not kept."""
        for axis in reversed(range(self.posterior.d)):
            weight = weights[axis]
            place = axis + (part.ndim - _left(axis, keep))
            if axis in keep or (weight is not None and weight.ndim == 2):
                part = part if weight is None else part * _along(weight, part.ndim, place)
                part = part if axis in keep else part.sum(axis=place)
            else:
                part = part.sum(axis=place) if weight is None else np.tensordot(part, weight, (place, 0))
        return np.asarray(part)


def _left(axis: int, keep: tuple[int, ...]) -> int:
    """How many column axes an array has when `axis` is next, the last ones having been summed unless kept."""
    return axis + 1 + sum(k > axis for k in keep)


def _along(weight: FloatArray, ndim: int, place: int) -> FloatArray:
    """Weights of leaves, or of leaves per draw, shaped to multiply contents along one axis."""
    shape = [1] * ndim
    shape[place] = weight.shape[-1]
    if weight.ndim == 2:
        shape[0] = len(weight)
    return weight.reshape(shape)


def _chosen(weight: _Weights | None, drawn: bool) -> FloatArray | None:
    if weight is None:
        return None
    return weight.drawn if drawn and weight.drawn is not None else weight.estimated


def _rises(ends: Ends) -> bool:
    """Whether a range holds anything: an intersection may hold nothing."""
    low, high = ends
    return low is None or high is None or low <= high


def _intersection(first: Ranges, second: Ranges) -> dict[str, Ends]:
    """Ranges that hold where both do; one that falls holds nothing."""
    found: dict[str, Any] = dict(first)
    for name, (low, high) in second.items():
        other_low, other_high = found.get(name, (None, None))
        lows = [end for end in (low, other_low) if end is not None]
        highs = [end for end in (high, other_high) if end is not None]
        found[name] = (max(lows, default=None), min(highs, default=None))
    return found
