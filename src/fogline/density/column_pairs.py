r"""Pairs of columns of a profile: coarse groups of their values, and how much the two depend on each other.

Nothing here has seen a record. The cells of a column are put into a few groups, by its own released counts; the
release then counts the records of each pair of groups. With noisy counts :math:`N_{ij}` of variance :math:`\sigma^2`,
margins :math:`n p_i` and :math:`n q_j`, the residuals

.. math:: R_{ij} = \frac{N_{ij} - N_{i\cdot} N_{\cdot j} / N}{\sqrt{n p_i q_j}}

lie in the range of the projection :math:`P` that removes :math:`\sqrt p` and :math:`\sqrt q`. If the columns are
independent their covariance is :math:`P (I + W) P`, where :math:`W` is diagonal with entries
:math:`\sigma^2 / (n p_i q_j)`: one from sampling, the rest from the noise. So
:math:`T = R^\top (P (I + W) P)^+ R` has the chi-squared law with :math:`(r - 1)(c - 1)` degrees of freedom where the
noise is Gaussian. Laplace noise has heavier tails: its law is simulated, and bounded beyond what was simulated by
Borell's inequality for log-concave laws.

*Association* is Cramér's V, :math:`\sqrt{\phi^2 / (\min(r, c) - 1)}`, 0 for independent columns and 1 where one decides
the other; the expected share of sampling and noise in :math:`\phi^2` is taken off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import chi2

from fogline._typing import FloatArray, IntArray
from fogline.density.columns import CategoryColumn, ColumnPlan, NumberColumn
from fogline.density.leaves import LeafRelease, Noise
from fogline.density.partition import public_generator
from fogline.density.posterior.estimates import Estimate

__all__ = ["SETTINGS", "CellGroups", "ColumnPair", "PairCounts", "PairSettings", "plan_groups", "read_pairs"]


@dataclass(frozen=True)
class PairSettings:
    """Tuned numbers of pairs.

    Attributes
    ----------
    most_groups : int
        Most groups of a column.
    least_share : float
        A group with less than this share is put together with its neighbour.
    per_cell : float
        Records wanted in a cell of a pair, in standard deviations of its noise: decides how many groups there are.
    per_table : float
        Where a table holds fewer records than this many standard deviations of a cell's noise, nothing is told.
    draws : int
        Simulated tables for Laplace noise.
    tail : float
        Beyond this tail of the simulated law Borell's inequality takes over.
    level : float
        Columns are said to depend on each other where the adjusted p-value is below it.
    """

    most_groups: int = 4
    least_share: float = 0.08
    per_cell: float = 3.0
    per_table: float = 24.0
    draws: int = 4000
    tail: float = 0.01
    level: float = 0.05


SETTINGS = PairSettings()

_DEVIATIONS = 1.959964


# -- groups ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CellGroups:
    """Groups of a column's cells; public, from its plan and its released counts.

    Parameters
    ----------
    column : str
    of_cell : int64 array of shape (cells,)
        Group of each cell; `size` for cells in none: values that are missing or out of range.
    labels : tuple of str
        What each group holds, for people.
    is_ordered : bool
        Whether the groups are ranges of values, from low to high.

    Examples
    --------
    >>> groups = CellGroups("sex", np.array([0, 1, 1, 2]), ("f", "m or other"), False)
    >>> groups.size
    2
    """

    column: str
    of_cell: IntArray
    labels: tuple[str, ...]
    is_ordered: bool

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.labels)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form: where runs of equal groups begin, and the group of each run."""
        starts = np.flatnonzero(np.diff(self.of_cell, prepend=-1))
        return {
            "column": self.column,
            "cells": len(self.of_cell),
            "starts": starts.tolist(),
            "groups": self.of_cell[starts].tolist(),
            "labels": list(self.labels),
            "is_ordered": self.is_ordered,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CellGroups:
        """Inverse of :meth:`to_dict`.

        Examples
        --------
        >>> groups = CellGroups("sex", np.array([0, 1, 1, 2]), ("f", "m or other"), False)
        >>> CellGroups.from_dict(groups.to_dict()).of_cell.tolist()
        [0, 1, 1, 2]
        """
        starts, groups = (np.asarray(data[name], dtype=np.int64) for name in ("starts", "groups"))
        sizes = np.diff(np.append(starts, int(data["cells"])))
        labels = tuple(map(str, data["labels"]))
        if not len(starts) or starts[0] or (sizes < 1).any() or (groups < 0).any() or (groups > len(labels)).any():
            raise ValueError("path: the groups of this profile cannot be read")
        return cls(str(data["column"]), np.repeat(groups, sizes), labels, bool(data["is_ordered"]))


def plan_groups(plan: ColumnPlan, released: FloatArray, leaves: LeafRelease | None, noise: Noise) -> CellGroups:
    """Choose the groups of a column from what was released of it.

    Numbers and dates are cut near quantiles of their released counts, at ends of buckets; the largest categories stand
    by themselves, the others together. There are as few groups as the noise of a pair's counts calls for.

    Parameters
    ----------
    plan : NumberColumn or CategoryColumn
        Closed.
    released : array
        Released counts of categories, of all others and of missing ones; of a column of numbers they are not used.
    leaves : LeafRelease or None
        Of a column of numbers.
    noise : Noise
        That will be added to the counts of pairs.

    Examples
    --------
    >>> found = plan_groups(CategoryColumn.of("sex", ["f", "m"]), np.array([60, 40, 1, 5]), None, Noise("laplace", 1.0))
    >>> found.labels, found.of_cell.tolist()
    (('f', 'm or other'), [0, 1, 1, 2])
    """
    if isinstance(plan, CategoryColumn):
        return _category_groups(plan, np.asarray(released, dtype=np.float64), noise)
    assert leaves is not None
    return _number_groups(plan, leaves, noise)


def _wanted(total: float, noise: Noise) -> int:
    """How many groups a column has: with fewer records or more noise, fewer."""
    cells = max(total, 0.0) / (SETTINGS.per_cell * max(noise.sd, 1e-9))
    return int(min(max(math.isqrt(int(min(cells, 1e6))), 2), SETTINGS.most_groups))


def _number_groups(plan: NumberColumn, leaves: LeafRelease, noise: Noise) -> CellGroups:
    order = np.argsort(leaves.counts.boxes[:, 0, 0], kind="stable")
    stops = leaves.counts.boxes[order, 0, 1]
    below = np.maximum.accumulate(np.cumsum(leaves.counts.counts[order].astype(np.float64)))
    total = max(float(below[-1]), 1.0)
    wanted = _wanted(total, noise)
    cuts: list[int] = []
    start = 0.0
    for k in range(1, wanted):
        place = int(np.argmin(np.abs(below[:-1] - total * k / wanted))) if len(below) > 1 else -1
        if place < 0:
            break
        enough = below[place] - start >= SETTINGS.least_share * total
        if enough and total - below[place] >= SETTINGS.least_share * total:
            cuts.append(int(stops[place]))
            start = float(below[place])
    cells = leaves.spec.n_leaves
    of_cell = np.full(plan.cells, len(cuts) + 1, dtype=np.int64)
    of_cell[:cells] = np.searchsorted(np.array(cuts, dtype=np.int64), np.arange(cells), side="right")
    edges = leaves.spec.edges(0)
    return CellGroups(plan.name, of_cell, _range_labels(plan, [float(edges[cut]) for cut in cuts]), True)


def _range_labels(plan: NumberColumn, cuts: Sequence[float]) -> tuple[str, ...]:
    """What each range of values is called."""
    assert plan.bounds is not None
    # On a lattice a cut lies between two values, and the group above it begins with the next.
    firsts = [math.ceil((cut - plan.bounds[0]) / plan.step - 1e-9) * plan.step + plan.bounds[0] if plan.step else cut
              for cut in cuts]  # fmt: skip
    words = [plan.text(value, 3) for value in firsts]
    if not words:
        return ("all values",)
    return (f"below {words[0]}", *(f"{a} to {b}" for a, b in pairwise(words)), f"{words[-1]} up")


def _category_groups(plan: CategoryColumn, released: FloatArray, noise: Noise) -> CellGroups:
    """The largest categories, each by itself, and one group of all others."""
    counts = np.maximum(released[: plan.cells - 1], 0.0)  # all others among them, missing ones not
    total = max(float(counts.sum()), 1.0)
    order = [int(k) for k in np.argsort(-counts[:-1], kind="stable")]
    large = [k for k in order if counts[k] >= SETTINGS.least_share * total]
    alone = large[: _wanted(total, noise) - 1]
    rest = [k for k in range(len(counts)) if k not in alone]
    if alone and sum(counts[k] for k in rest) < SETTINGS.least_share * total:
        rest = [alone.pop(), *rest]
    of_cell = np.full(plan.cells, len(alone) + 1, dtype=np.int64)
    for group, k in enumerate(alone):
        of_cell[k] = group
    of_cell[rest] = len(alone)
    named = [plan.labels[k] for k in rest if k < len(plan.labels)]
    words = " or ".join([*named, "other"]) if len(named) < 3 else f"{len(named)} others"
    return CellGroups(plan.name, of_cell, (*(plan.labels[k] for k in alone), words), False)


# -- what was released, and what it says ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Released counts of one pair of columns.

    Parameters
    ----------
    first, second : CellGroups
    counts : int64 array of shape (groups of the first, groups of the second)
    noise : Noise
        In each count.
    """

    first: CellGroups
    second: CellGroups
    counts: IntArray
    noise: Noise


@dataclass(frozen=True, eq=False)
class ColumnPair:
    """How two columns depend on each other; made by :func:`read_pairs`.

    Parameters
    ----------
    columns : (str, str)
    groups : (tuple of str, tuple of str)
        Of each column.
    shares : array
        Estimated share of each cell among records with a value in both columns.
    association : Estimate
        Cramér's V of the groups: 0 for independent columns, 1 where one decides the other.
    rank_correlation : Estimate or None
        Spearman's correlation of the groups, where both columns have an order.
    p_value : float
        Of independence; allows for the noise.
    adjusted_p_value : float
        By Holm's rule for all pairs of the profile.
    is_told : bool
        Whether there are records enough for the noise to say anything.

    Examples
    --------
    >>> groups = [CellGroups(name, np.array([0, 1]), ("low", "high"), True) for name in "ab"]
    >>> (pair,) = read_pairs([PairCounts(*groups, np.array([[900, 100], [120, 880]]), Noise("gaussian", 5.0))])
    >>> pair.depends, round(pair.association.value, 1), round(pair.rank_correlation.value, 1)
    (True, 0.8, 0.8)
    """

    columns: tuple[str, str]
    groups: tuple[tuple[str, ...], tuple[str, ...]]
    shares: FloatArray
    association: Estimate
    rank_correlation: Estimate | None
    p_value: float
    adjusted_p_value: float
    is_told: bool

    @property
    def depends(self) -> bool:
        """Whether the columns are said to depend on each other."""
        return self.adjusted_p_value < SETTINGS.level

    @property
    def lift(self) -> FloatArray:
        """Share of each cell over what independent columns would have."""
        expected = np.outer(self.shares.sum(axis=1), self.shares.sum(axis=0))
        return np.asarray(self.shares / np.maximum(expected, 1e-12))

    def to_dict(self) -> dict[str, Any]:
        """Everything about the pair, as JSON has it."""
        rank = self.rank_correlation
        return {
            "columns": list(self.columns),
            "groups": [list(labels) for labels in self.groups],
            "shares": self.shares.tolist(),
            "association": _plain(self.association),
            "rank_correlation": None if rank is None else _plain(rank),
            "p_value": self.p_value,
            "adjusted_p_value": self.adjusted_p_value,
            "depends": self.depends,
            "is_told": self.is_told,
        }


def _plain(found: Estimate) -> dict[str, float]:
    names = ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing")
    return {name: float(getattr(found, name)) for name in names}


def read_pairs(released: Sequence[PairCounts]) -> tuple[ColumnPair, ...]:
    """Read all pairs of a profile: the surest dependence first."""
    found = [_read(pair) for pair in released]
    order = sorted(range(len(found)), key=lambda k: (found[k].p_value, -float(found[k].association.value)))
    adjusted, least = [], 0.0
    for rank, k in enumerate(order):
        least = min(max(least, (len(found) - rank) * found[k].p_value), 1.0)
        adjusted.append(replace(found[k], adjusted_p_value=least))
    return tuple(adjusted)


def _read(pair: PairCounts) -> ColumnPair:
    names, groups = (pair.first.column, pair.second.column), (pair.first.labels, pair.second.labels)
    counts = pair.counts.astype(np.float64)
    shares = np.maximum(counts, 0.0)
    shares = shares / max(float(shares.sum()), 1e-300)
    is_ordered = pair.first.is_ordered and pair.second.is_ordered
    rows, columns = counts.shape
    n = float(counts.sum())
    if min(rows, columns) < 2 or n < max(SETTINGS.per_table * pair.noise.sd, 5.0 * rows * columns):
        anything = Estimate(0.0, 1.0, 0.0, 1.0, 0.95, "population", 1.0, 0.0, 0.0)
        either = replace(anything, low=-1.0) if is_ordered else None
        return ColumnPair(names, groups, shares, anything, either, 1.0, 1.0, False)
    table = _Table(counts, pair.noise)
    p_value = table.p_value()
    rank = table.rank_correlation() if is_ordered else None
    return ColumnPair(names, groups, shares, table.association(p_value), rank, p_value, p_value, True)


class _Table:
    """Statistics of one table of noisy counts."""

    def __init__(self, counts: FloatArray, noise: Noise) -> None:
        self.counts, self.noise = counts, noise
        self.n = float(counts.sum())
        floor = 1.0 / self.n
        self.p, self.q = (np.maximum(counts.sum(axis=axis) / self.n, floor) for axis in (1, 0))
        self.p, self.q = self.p / self.p.sum(), self.q / self.q.sum()
        self.weights = np.sqrt(self.n * np.outer(self.p, self.q))
        self._left, self._right = (_complement(np.sqrt(margin)) for margin in (self.p, self.q))
        both = np.kron(self._left, self._right)
        self.covariance = np.eye(both.shape[1]) + (both.T * (noise.variance / self.weights.ravel() ** 2)) @ both

    @property
    def degrees(self) -> int:
        """Degrees of freedom."""
        return len(self.covariance)

    def residuals(self, tables: FloatArray) -> FloatArray:
        """Coordinates of the residuals of tables, shape (..., degrees)."""
        rows, columns = tables.sum(axis=-1, keepdims=True), tables.sum(axis=-2, keepdims=True)
        whole = np.maximum(tables.sum(axis=(-2, -1), keepdims=True), 1.0)
        scaled = (tables - rows * columns / whole) / self.weights
        found = self._left.T @ scaled @ self._right
        return np.asarray(found.reshape(*tables.shape[:-2], -1))

    def statistic(self, tables: FloatArray) -> FloatArray:
        """The T of the module's text."""
        z = self.residuals(tables)
        return np.asarray((z * np.linalg.solve(self.covariance, z[..., None])[..., 0]).sum(axis=-1))

    def p_value(self) -> float:
        """Probability of a statistic at least as large if the columns are independent."""
        seen = float(self.statistic(self.counts))
        if self.noise.kind == "gaussian":
            return float(chi2.sf(seen, self.degrees))
        drawn = np.sort(self.statistic(self._independent(SETTINGS.draws)))
        edge = float(drawn[math.ceil((1 - SETTINGS.tail) * len(drawn)) - 1])
        if seen <= edge:
            return float((1 + np.count_nonzero(drawn >= seen)) / (1 + len(drawn)))
        # Borell: for a log-concave law and a symmetric convex set A, P(outside tA) <= P(A) (1/P(A) - 1)^((t + 1) / 2).
        times, inside = math.sqrt(seen / max(edge, 1e-300)), 1 - SETTINGS.tail
        return float(inside * (SETTINGS.tail / inside) ** ((times + 1) / 2))

    def _independent(self, draws: int) -> FloatArray:
        """Tables of independent columns with these margins, sampled and with the noise."""
        rng = public_generator(self.counts.astype(np.int64))
        cells = np.outer(self.p, self.q).ravel()
        drawn = rng.multinomial(max(int(self.n), 1), cells / cells.sum(), size=draws).astype(np.float64)
        stop = -math.expm1(-1 / self.noise.scale)  # discrete Laplace: a difference of two geometric variables
        drawn += rng.geometric(stop, drawn.shape) - rng.geometric(stop, drawn.shape)
        return np.asarray(drawn.reshape(draws, *self.counts.shape))

    def association(self, p_value: float) -> Estimate:
        """Cramér's V, corrected for what sampling and noise add to it."""
        z = self.residuals(self.counts)
        expected = float(np.trace(self.covariance))
        squared = (float(z @ z) - expected) / self.n
        slopes = self._slopes()
        pi = np.maximum(self.counts, 0.0) / np.maximum(self.counts, 0.0).sum()
        second = 2 * float((self.covariance**2).sum()), 2.0 * self.degrees
        sampling = float((pi * slopes**2).sum()) / self.n + second[1] / self.n**2
        privacy = self.noise.variance * float((slopes**2).sum()) / self.n**2 + (second[0] - second[1]) / self.n**2
        error = math.sqrt(sampling + privacy)
        most = min(self.counts.shape) - 1
        value, low, high = (
            math.sqrt(min(max(end, 0.0) / most, 1.0))
            for end in (squared, squared - _DEVIATIONS * error, squared + _DEVIATIONS * error)
        )
        low = 0.0 if p_value >= SETTINGS.level else min(low, value)
        half = max((high - low) / (2 * _DEVIATIONS), 1e-12)
        privacy, sampling = (half * math.sqrt(part) / error for part in (privacy, sampling))
        return Estimate(value, half, low, max(high, value), 0.95, "population", privacy, sampling, 0.0)

    def _slopes(self) -> FloatArray:
        """Derivative of phi squared by each cell's share."""
        pi, cells = self.counts / self.n, np.outer(self.p, self.q)
        ratio = pi / cells
        rows, columns = (pi * ratio).sum(axis=1) / self.p, (pi * ratio).sum(axis=0) / self.q
        return np.asarray(2 * ratio - rows[:, None] - columns[None, :])

    def rank_correlation(self) -> Estimate:
        """Spearman's correlation of the groups, by their middle ranks."""
        pi = self.counts / self.n
        u, v = (np.cumsum(margin) - margin / 2 - 0.5 for margin in (self.p, self.q))
        u, v = u / math.sqrt(float(self.p @ u**2)), v / math.sqrt(float(self.q @ v**2))
        value = float(u @ pi @ v)
        slopes = np.outer(u, v) - value / 2 * (u[:, None] ** 2 + v[None, :] ** 2)
        sampling = math.sqrt(max(float((np.maximum(pi, 0) * slopes**2).sum()), 0.0) / self.n)
        privacy = self.noise.sd * math.sqrt(float((slopes**2).sum())) / self.n
        error = math.hypot(sampling, privacy)
        value = min(max(value, -1.0), 1.0)
        low, high = max(value - _DEVIATIONS * error, -1.0), min(value + _DEVIATIONS * error, 1.0)
        return Estimate(value, error, low, high, 0.95, "population", privacy, sampling, 0.0)


def _complement(direction: FloatArray) -> FloatArray:
    """Orthonormal columns that span what is orthogonal to a unit vector: a Householder reflection without its first."""
    size = len(direction)
    mirrored = direction / np.linalg.norm(direction)
    mirrored = mirrored - np.eye(size)[0]
    length = float(mirrored @ mirrored)
    if length < 1e-24:
        return np.eye(size)[:, 1:]
    return np.asarray((np.eye(size) - 2 * np.outer(mirrored, mirrored) / length)[:, 1:])
