r"""Do two releases on leaves have the same shape? Linear functions of their counts, whose law is known.

Each group g has buckets of its own, chosen from its own pilot. *Common cells* are the finest sets of leaves that are
unions of buckets in both groups: the connected parts of the graph that joins two buckets, one of each group, wherever
they overlap. A cell c of :math:`k_{gc}` buckets has the released count

.. math:: y_{gc} = N_{gc} + \sum_{i=1}^{k_{gc}} Z_{gci}, \qquad N_{gc} \sim \mathrm{Poisson}(n_g p_c),

with the share :math:`p_c` of the density in the cell and noise Z of known law. How records spread inside a bucket,
which nobody knows, is in neither term: where both groups have one density the shares of the cells are equal, whatever
the buckets are. A function :math:`\varphi_m` with values :math:`\varphi_{mc}` on the cells is estimated by

.. math:: f_{gm} = \frac{1}{\hat n_g} \sum_c y_{gc} \bigl(\varphi_{mc} - \bar\varphi_m\bigr), \qquad
          \bar\varphi_m = \sum_c p_c \varphi_{mc},

so that :math:`f_{am} - f_{bm}` has mean zero under one density (an error of :math:`\hat n_g` enters in second order
only, because the functions are centred) and the variance

.. math:: v_m = \sum_g \frac{1}{\hat n_g} \sum_c \Bigl(p_c + \frac{k_{gc} \sigma_g^2}{\hat n_g}\Bigr)
          (\varphi_{mc} - \bar\varphi_m)^2 .

The functions are products of cosines of the pooled ranks of a record in each column, so that skewed and wide columns
are seen where their records are. Sums of squares with weights from smooth to rough are compared with those of
simulated counts of the law above, with the same cells, the same numbers of buckets and another posterior draw of the
pooled shares each time. The seed is fixed. The simulation holds the partitions fixed, although they come from pilots of
the same records; ``docs/strata.md`` has how often equal groups are told apart all the same.

Before, means of functions inside buckets were taken under the pooled estimate. What that gets wrong inside a bucket is
a difference between groups with different buckets, and the level did not hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fogline._typing import FloatArray, IntArray
from fogline.density.leaves import LeafRelease, Noise
from fogline.density.posterior.field import label_leaves

__all__ = ["LEAF_COMPARISON", "CommonCells", "LeafComparisonSettings", "LeafTest"]


@dataclass(frozen=True)
class LeafComparisonSettings:
    """Tuned numbers of the test.

    Attributes
    ----------
    frequencies : tuple of int
        Highest frequency of a cosine, for one, two and three columns.
    smoothness : tuple of float
        Widths of the weights, in frequencies, from rough to smooth.
    """

    frequencies: tuple[int, int, int] = (40, 12, 6)
    smoothness: tuple[float, ...] = (40.0, 12.0, 6.0, 3.0, 1.5)


LEAF_COMPARISON = LeafComparisonSettings()

SEED = 20
BATCH = 2**22
"""Numbers simulated at a time."""


class LeafTest:
    """What two releases have in common: functions, their noise, and the pooled shape.

    Parameters
    ----------
    releases : pair of LeafRelease
        On the same leaves.
    pooled : array of the leaves' shape
        Pooled share of each leaf.
    draws : array of shape (draws, *leaves)
        Pooled shares in posterior draws.
    settings : LeafComparisonSettings, optional
    """

    def __init__(
        self,
        releases: tuple[LeafRelease, LeafRelease],
        pooled: FloatArray,
        draws: FloatArray,
        settings: LeafComparisonSettings = LEAF_COMPARISON,
    ) -> None:
        self.releases = releases
        self.counts = [max(release.total, 1.0) for release in releases]
        self.cells = CommonCells.of(*releases)
        numbers, values = _functions(pooled, settings.frequencies[pooled.ndim - 1])
        share, means = self.cells.means(pooled.ravel(), values)
        self.means = means - share @ means
        self.drawn = self.cells.shares(draws.reshape(len(draws), -1))
        variance = np.zeros(len(values))
        for release, buckets, n in zip(releases, self.cells.buckets, self.counts, strict=True):
            size = np.bincount(buckets, minlength=self.cells.size)
            variance += (share / n + size * release.counts.noise.variance / n**2) @ self.means**2
        length = np.sqrt((numbers**2).sum(axis=1))
        weights = np.exp(-((length / np.array(settings.smoothness)[:, None]) ** 2) / 2)
        self.weights = weights / np.maximum(variance, 1e-300)

    def _statistics(self, counts: list[FloatArray]) -> FloatArray:
        """One statistic per width, for rows of counts of the cells of both groups."""
        first, second = (y @ self.means / n for y, n in zip(counts, self.counts, strict=True))
        return np.asarray((first - second) ** 2 @ self.weights.T)

    def run(self, simulations: int) -> tuple[float, float, int]:
        """Chance of a difference as large, the largest standardised difference, and the width it is largest at."""
        released = [r.counts.counts[None].astype(np.float64) for r in self.releases]
        observed = self._statistics([self.cells.sums(y, group) for group, y in enumerate(released)])[0]
        null = self._null(simulations)
        centre, spread = null.mean(axis=0), np.maximum(null.std(axis=0), 1e-300)
        standardised = (observed - centre) / spread
        best = int(standardised.argmax())
        largest = ((null - centre) / spread).max(axis=1)
        p_value = (1 + int(np.sum(largest >= standardised[best]))) / (simulations + 1)
        return p_value, float(standardised[best]), best

    def _null(self, simulations: int) -> FloatArray:
        """Statistics of simulated pairs of groups with one density."""
        rng = np.random.default_rng(SEED)
        size = max(1, BATCH // max(len(release.counts) for release in self.releases))
        rows = []
        for start in range(0, simulations, size):
            runs = min(size, simulations - start)
            share = self.drawn[np.arange(start, start + runs) % len(self.drawn)]
            pair = []
            for group, (release, n) in enumerate(zip(self.releases, self.counts, strict=True)):
                noise = _draw_noise(rng, release.counts.noise, (runs, len(release.counts)))
                pair.append(rng.poisson(n * share) + self.cells.sums(noise, group))
            rows.append(self._statistics(pair))
        return np.concatenate(rows)


@dataclass(frozen=True, eq=False)
class CommonCells:
    """The finest cells that are unions of buckets of both releases.

    Attributes
    ----------
    size : int
        Number of cells.
    leaves : array of shape (leaves,)
        Cell of each leaf.
    buckets : pair of arrays
        Cell of each bucket, for both releases.

    Examples
    --------
    >>> from fogline.density.leaves import BucketCounts, LeafSpec
    >>> spec = LeafSpec.plan([(0, 1)], leaves=[4])
    >>> def counted(*edges):
    ...     boxes = np.array([[pair] for pair in zip(edges[:-1], edges[1:])])
    ...     found = BucketCounts(boxes, np.zeros(len(boxes), dtype=np.int64), Noise("laplace", 1.0))
    ...     return LeafRelease(spec, found, found)
    >>> CommonCells.of(counted(0, 1, 2, 4), counted(0, 2, 3, 4)).leaves.tolist()
    [0, 0, 1, 1]
    """

    size: int
    leaves: IntArray
    buckets: tuple[IntArray, IntArray]

    @classmethod
    def of(cls, first: LeafRelease, second: LeafRelease) -> CommonCells:
        """Join the buckets of two releases on the same leaves where they overlap."""
        labels = [label_leaves(r.counts.boxes, r.spec.leaves).ravel() for r in (first, second)]
        sizes = [len(r.counts) for r in (first, second)]
        total = sum(sizes)
        edges = (np.ones(len(labels[0])), (labels[0], labels[1] + sizes[0]))
        size, cell = connected_components(coo_array(edges, shape=(total, total)), directed=False)
        cell = cell.astype(np.int64)
        return cls(int(size), cell[labels[0]], (cell[: sizes[0]], cell[sizes[0] :]))

    def sums(self, rows: FloatArray, group: int) -> FloatArray:
        """Rows of numbers of buckets of a group, summed over each cell."""
        cell = self.buckets[group]
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(self.size))
        return np.asarray(np.add.reduceat(rows[:, order], starts, axis=1))

    def shares(self, rows: FloatArray) -> FloatArray:
        """Shares of the cells for rows of shares of leaves."""
        found = np.stack([np.bincount(self.leaves, row, minlength=self.size) for row in rows])
        return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))

    def means(self, mass: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Share of each cell, and the means of functions (rows of values at leaves) in it, (cells, functions)."""
        weight = mass + 1e-12 / mass.size  # where there is nothing, a mean of the places
        total = np.bincount(self.leaves, weight, minlength=self.size)
        means = [np.bincount(self.leaves, weight * row, minlength=self.size) / total for row in values]
        return self.shares(mass[None])[0], np.stack(means, axis=1)


def _functions(pooled: FloatArray, highest: int) -> tuple[FloatArray, FloatArray]:
    """Frequencies, and products of cosines of the pooled ranks at each leaf, shape (functions, leaves)."""
    d = pooled.ndim
    waves = []
    for axis in range(d):
        margin = pooled.sum(axis=tuple(k for k in range(d) if k != axis))
        rank = np.cumsum(margin) - margin / 2  # a heap has one rank
        waves.append(np.cos(math.pi * np.arange(highest + 1)[:, None] * rank))
    numbers = np.array([n for n in np.ndindex(*(highest + 1,) * d) if 0 < sum(k * k for k in n) <= highest**2])
    values = np.empty((len(numbers), pooled.size))
    for row, number in enumerate(numbers.tolist()):
        product = np.ones(())
        for axis, k in enumerate(number):
            product = np.multiply.outer(product, waves[axis][k])
        values[row] = product.ravel()
    return numbers.astype(np.float64), values


def _draw_noise(rng: np.random.Generator, noise: Noise, shape: tuple[int, ...]) -> FloatArray:
    """Noise as it was in a release; to compare with, it protects nobody."""
    if noise.kind == "gaussian":
        return np.asarray(np.rint(rng.normal(0.0, noise.scale, shape)))
    chance = -math.expm1(-1 / noise.scale)
    return np.asarray(rng.geometric(chance, shape) - rng.geometric(chance, shape), dtype=np.float64)
