r"""Where fitted branches begin and end, which are one, and which are straight.

A branch that ends abruptly fades slowly in a smoothed density, and is followed too far. In the fit of ``branch_fit``
an end is a step in the mass of a ridge, and the sums say how well each place for it fits: the sum of squares over all
places is a profile likelihood, its minimum the best end, and the range in which it rises by less than `MARGIN` holds
the true end with a confidence of about 99%. A branch is claimed up to the near end of that range only, except where no
other branch is: some response must be the likeliest. A wall of x needs no step: a branch that may well reach it does.

Fits and ends take turns. In between, ridges are cut where they have no mass, ends of two that meet are joined if one
ridge fits as well, and a ridge is made straight if it then fits about as well: noise bends a faint one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.branch_fit import KNOTS, TYPICAL, Ridge, Solution, Sums, parted, solve

__all__ = ["FittedRidges", "fit_ridges"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

PASSES = 3
"""Turns of fitting and looking for ends."""

FINE = 20.0
"""Ends are tried at so many places a bandwidth."""

REACH = 1.0
"""They are tried up to so many bandwidths beyond the ridge as it is."""

EDGE = 1.0
PLATEAU = (0.5, 2.5)
LEAST_LEVEL = 0.5
"""The mass is taken to be even for `EDGE` bandwidths inside of an end: as it is between so many bandwidths inside, and
at least so large a share of what is typical of the ridge."""

MARGIN = 6.25
"""How much worse an end may fit and still be possible: two and a half standard errors, squared."""

WALL = 4.0
"""The same for the wall: a branch ends before it only if that fits better by more than this."""

SHORTEST = 0.6
"""A ridge is at least so many bandwidths long."""

WAIST = 0.25
"""Where a ridge has less than this share of its typical mass, it is cut."""

LEAST_CLEARNESS = 4.5
"""A ridge whose mass is less than so many standard errors is dropped."""

JOIN_REACH = (1.5, 2.5)
JOIN = 6.0
"""Two ridges may be one if their ends are so many bandwidths of x and y apart, and one scores at most so much worse."""

STRAIGHT = 4.0
"""A straight ridge may score worse by so much."""

ENOUGH = 0.5
"""A branch is lengthened over a place where there is no other if the density of x there is at least this share of its
mass."""


@dataclass(frozen=True)
class FittedRidges:
    """Fitted ridges and, for each, its two ends: surely within, best, and surely beyond; in units of the box."""

    solution: Solution
    lower: FloatArray
    upper: FloatArray

    def within(self, x: FloatArray, marginal: FloatArray, reach: float) -> BoolArray:
        """Which ridges are claimed at places x, shape (ridges, places).

        `marginal` is the density of x there, and `reach` how far the nearest one is lengthened where there is none.
        """
        tiny = 1e-9
        claimed = (x >= self.lower[:, :1] - tiny) & (x <= self.upper[:, :1] + tiny)
        beyond = np.maximum(np.maximum(self.lower[:, 1:2] - x, x - self.upper[:, 1:2]), 0.0)
        enough = np.stack([marginal >= ENOUGH * ridge.masses(x) for ridge in self.solution.ridges])
        possible = (x >= self.lower[:, 2:] - tiny) & (x <= self.upper[:, 2:] + tiny)
        beyond = np.where(possible | (enough & (beyond <= reach)), beyond, np.inf)
        nearest = np.argmin(beyond, axis=0)
        bare = np.flatnonzero(~claimed.any(axis=0) & np.isfinite(beyond.min(axis=0)))
        claimed[nearest[bare], bare] = True
        return np.asarray(claimed)


def fit_ridges(sums: Sums, starts: list[Ridge], bandwidth: FloatArray) -> FittedRidges | None:
    """Fit ridges and their ends; None if nothing is left of them. The bandwidth is in widths of the box."""
    h, b = float(bandwidth[0]), float(bandwidth[1])
    if 2 * len(sums.observed) < sum(2 * len(ridge.position) + 1 for ridge in starts):
        return None
    ridges = starts
    for turn in range(PASSES):
        if turn and ridges:  # at first a ridge may be too short, and its mass pile up at its ends
            ridges = _clear_parts(solve(sums, ridges, b), h)
        if not ridges:
            return None
        solution = solve(sums, ridges, b)
        ends = [_ends(sums, solution, ridge, h) for ridge in solution.ridges]
        ridges = [
            ridge.between(low[1], high[1], KNOTS * h)
            for ridge, (low, high) in zip(solution.ridges, ends, strict=True)
            if high[1] - low[1] >= SHORTEST * h
        ]
        ridges = _joined(sums, ridges, h, b)
    ridges = _clear_parts(solve(sums, ridges, b), h) if ridges else []
    if not ridges:
        return None
    solution = _straightened(sums, solve(sums, ridges, b), b)
    lower, upper = zip(*(_ends(sums, solution, ridge, h) for ridge in solution.ridges), strict=True)
    return FittedRidges(solution, np.array(lower), np.array(upper))


# -- ends ----------------------------------------------------------------------------------------------------


def _ends(
    sums: Sums, solution: Solution, ridge: Ridge, h: float
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Begin and end of a ridge: each surely within, best, and surely beyond."""
    found = []
    for side in (1, -1):
        wall = 0.0 if side == 1 else 1.0
        places, misfit = _profile(sums, solution, ridge, h, side)
        best = int(np.argmin(misfit))
        if abs(places[0] - wall) < h / FINE and misfit[0] - misfit[best] < WALL:
            found.append((wall, wall, wall))
        else:
            possible = np.flatnonzero(misfit <= misfit[best] + MARGIN)
            found.append((float(places[possible[-1]]), float(places[best]), float(places[possible[0]])))
    return found[0], found[1]


def _profile(sums: Sums, solution: Solution, ridge: Ridge, h: float, side: int) -> tuple[FloatArray, FloatArray]:
    """Places for the lower (side 1) or upper end of a ridge, from outside inwards, and the sum of squares at each."""
    end, wall = (ridge.low, 0.0) if side == 1 else (ridge.high, 1.0)
    step = h / FINE
    length = ridge.high - ridge.low
    outside = int(np.floor(min(REACH * h, side * (end - wall)) / step + 1e-9))
    innermost = max(length - SHORTEST * h, 0.0)
    cells = np.arange(-outside, int(min(innermost + EDGE * h, length) / step))
    away = np.asarray((cells + 0.5) * step, dtype=np.float64)
    x = np.asarray(end + side * away, dtype=np.float64)
    mass = ridge.masses(x)
    fitted = np.where(away > 0, mass, 0.0)
    near = (away >= PLATEAU[0] * h) & (away <= PLATEAU[1] * h)
    level = max(float(np.median(mass[near if near.any() else away > 0])), LEAST_LEVEL * _typical_mass(ridge))
    tried = np.asarray(np.arange(-outside, int(innermost / step) + 1) * step, dtype=np.float64)
    even = np.where(away >= tried[:, None], level, 0.0)
    masses = np.where(away >= tried[:, None] + EDGE * h, fitted, even)
    waves = parted(sums.waves(x, ridge.positions(x), ridge.width)) * step
    residual = parted(solution.residual)
    change = masses - fitted
    squares = np.einsum("tp,tp->t", change @ (waves.T @ waves), change)  # |r - W c|^2, without W c for every c
    misfit = residual @ residual - 2 * change @ (waves.T @ residual) + squares
    return np.asarray(end + side * tried, dtype=np.float64), np.asarray(misfit)


def _typical_mass(ridge: Ridge) -> float:
    """Mean of the mass a unit of x, weighted by itself: a tail without mass does not lower it."""
    mass = np.maximum(ridge.masses(ridge.points()), 0.0)
    return float(np.sum(mass**2) / max(float(np.sum(mass)), 1e-12))


# -- which ridges there are -------------------------------------------------------------------------------------


def _clear_parts(solution: Solution, h: float) -> list[Ridge]:
    """Ridges cut where they have no mass, without those that have little at all."""
    parts = []
    for k, ridge in enumerate(solution.ridges):
        x = np.linspace(ridge.low, ridge.high, 4 * len(ridge.points()) + 1)
        full = ridge.masses(x) >= WAIST * _typical_mass(ridge)
        if solution.clearness(k) < LEAST_CLEARNESS:
            continue
        if full.all():
            parts.append(ridge)
            continue
        change = np.diff(np.concatenate([[0], full.astype(np.int8), [0]]))
        first, last = np.flatnonzero(change == 1), np.flatnonzero(change == -1) - 1
        parts += [
            ridge.between(float(x[i]), float(x[j]), KNOTS * h)
            for i, j in zip(first, last, strict=True)
            if x[j] - x[i] >= SHORTEST * h
        ]
    return parts


def _straightened(sums: Sums, solution: Solution, b: float) -> Solution:
    """Each ridge in turn made straight, if that fits about as well."""
    for k, ridge in enumerate(solution.ridges):
        if ridge.straight:
            continue
        ridges = [*solution.ridges[:k], ridge.straightened(TYPICAL * b), *solution.ridges[k + 1 :]]
        tried = solve(sums, ridges, b)
        if tried.score <= solution.score + STRAIGHT:
            solution = tried
    return solution


def _joined(sums: Sums, ridges: list[Ridge], h: float, b: float) -> list[Ridge]:
    """Ridges whose ends meet made one, the best pair first, as long as one fits about as well as two."""
    while pairs := _meeting(ridges, h, b):
        before = solve(sums, ridges, b).score
        tried = []
        for i, j in pairs:
            others = [ridge for k, ridge in enumerate(ridges) if k not in (i, j)]
            tried.append(solve(sums, [*others, _bridged(ridges[i], ridges[j], h)], b))
        best = min(tried, key=lambda solution: solution.score)
        if best.score > before + JOIN:
            break
        ridges = best.ridges
    return ridges


def _meeting(ridges: list[Ridge], h: float, b: float) -> list[tuple[int, int]]:
    """Pairs of ridges of which one begins where the other ends."""
    pairs = []
    for i, first in enumerate(ridges):
        for j, second in enumerate(ridges):
            ahead = min(second.low - first.low, second.high - first.high)
            follows = i != j and ahead >= SHORTEST * h / 2
            if follows and abs(second.low - first.high) <= JOIN_REACH[0] * h:
                middle = np.array([(first.high + second.low) / 2])
                led = float(np.abs(first.positions(middle) - second.positions(middle))[0])
                ends = first.positions(np.array([first.high])) - second.positions(np.array([second.low]))
                if min(led, float(np.abs(ends)[0])) <= JOIN_REACH[1] * b:
                    pairs.append((i, j))
    return pairs


def _bridged(first: Ridge, second: Ridge, h: float) -> Ridge:
    """One ridge along two that meet, straight in between."""
    x = np.linspace(first.low, second.high, 200)
    left, right = sorted((first.high, second.low))
    before, after = x <= left - 0.2 * h, x >= right + 0.2 * h
    own = before | after
    columns = [
        np.interp(x, x[own], np.where(before, a, c)[own])
        for a, c in (
            (first.positions(x), second.positions(x)),
            (first.masses(x), second.masses(x)),
        )
    ]
    width = (first.width + second.width) / 2
    return Ridge.through(x, columns[0], columns[1], (first.low, second.high), KNOTS * h, width)
