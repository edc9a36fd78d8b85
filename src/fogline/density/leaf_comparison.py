r"""Do two releases on leaves have the same shape? Linear functions of their counts, whose noise is known exactly.

Each group g has its own buckets, with counts :math:`y_{gj}`. Both together give a pooled density q. A function
:math:`\varphi_m` on the box is estimated in a group by

.. math:: f_{gm} = \frac{1}{\hat n_g} \sum_j y_{gj} \bigl(\bar\varphi_{mj} - \bar\varphi_m\bigr),

with means :math:`\bar\varphi_{mj}` of the function over bucket j and :math:`\bar\varphi_m` over the box, both under q.
Where the groups have one shape, the difference of two such numbers has mean zero whatever the buckets are, up to what q
gets wrong inside a bucket, and the variance

.. math:: v_m = \sum_g \Bigl(\frac{\sigma_g^2}{\hat n_g^2} \sum_j (\bar\varphi_{mj} - \bar\varphi_m)^2
          + \frac{1}{\hat n_g} \mathrm{Var}_q(\bar\varphi_m)\Bigr).

The functions are products of cosines of the ranks of a record in each column, so that skewed and wide columns are
seen where their records are. Sums of squares with weights from smooth to rough are compared with those of simulated
counts: records drawn into the same buckets from one density for both groups, with noise as it was. That density is
another posterior draw of q each time, so that what q gets wrong inside buckets is in the null distribution too. The
seed is fixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fogline.density.leaves import LeafRelease, Noise
from fogline.density.posterior.arrays import FloatArray, IntArray
from fogline.density.posterior.field import label_leaves

__all__ = ["LEAF_COMPARISON", "LeafComparisonSettings", "LeafTest"]


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
        d = pooled.ndim
        numbers, values = _functions(pooled, settings.frequencies[d - 1])
        mass = pooled.ravel()
        middle = values @ mass
        self.parts = [_bucket_means(release, values, mass, middle) for release in releases]
        self.drawn = [_bucket_shares(release, draws.reshape(len(draws), -1)) for release in releases]
        variance = np.zeros(len(values))
        for release, (share, mean), n in zip(releases, self.parts, self.counts, strict=True):
            variance += release.counts.noise.variance / n**2 * (mean**2).sum(axis=0) + share @ mean**2 / n
        length = np.sqrt((numbers**2).sum(axis=1))
        weights = np.exp(-((length / np.array(settings.smoothness)[:, None]) ** 2) / 2)
        self.weights = weights / np.maximum(variance, 1e-300)

    def _statistics(self, counts: list[FloatArray]) -> FloatArray:
        """One statistic per width, for rows of counts of both groups."""
        first, second = (y @ mean / n for y, (_, mean), n in zip(counts, self.parts, self.counts, strict=True))
        return np.asarray((first - second) ** 2 @ self.weights.T)

    def run(self, simulations: int) -> tuple[float, float, int]:
        """Chance of a difference as large, the largest standardised difference, and the width it is largest at."""
        observed = self._statistics([r.counts.counts[None].astype(np.float64) for r in self.releases])[0]
        null = self._null(simulations)
        centre, spread = null.mean(axis=0), np.maximum(null.std(axis=0), 1e-300)
        standardised = (observed - centre) / spread
        best = int(standardised.argmax())
        largest = ((null - centre) / spread).max(axis=1)
        p_value = (1 + int(np.sum(largest >= standardised[best]))) / (simulations + 1)
        return p_value, float(standardised[best]), best

    def _null(self, simulations: int) -> FloatArray:
        rng = np.random.default_rng(SEED)
        size = max(1, BATCH // max(len(release.counts) for release in self.releases))
        rows = []
        for start in range(0, simulations, size):
            runs = min(size, simulations - start)
            pair = []
            for release, drawn, n in zip(self.releases, self.drawn, self.counts, strict=True):
                share = drawn[np.arange(start, start + runs) % len(drawn)]
                pair.append(rng.poisson(n * share) + _draw_noise(rng, release.counts.noise, share.shape))
            rows.append(self._statistics(pair))
        return np.concatenate(rows)


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


def _bucket_means(
    release: LeafRelease, values: FloatArray, mass: FloatArray, middle: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Pooled share of each bucket, and the means of all functions in it less those in the box, (buckets, functions)."""
    label: IntArray = label_leaves(release.counts.boxes, release.spec.leaves).ravel()
    size = len(release.counts)
    weight = mass + 1e-12 / mass.size  # where there is nothing, a mean of the places
    share = np.bincount(label, mass, minlength=size)
    total = np.bincount(label, weight, minlength=size)
    means = np.stack([np.bincount(label, weight * row, minlength=size) / total for row in values], axis=1)
    return share / share.sum(), means - middle


def _bucket_shares(release: LeafRelease, rows: FloatArray) -> FloatArray:
    """Shares of the buckets for rows of shares of leaves."""
    label: IntArray = label_leaves(release.counts.boxes, release.spec.leaves).ravel()
    size = len(release.counts)
    found = np.stack([np.bincount(label, row, minlength=size) for row in rows])
    return np.asarray(found / np.maximum(found.sum(axis=1, keepdims=True), 1e-300))


def _draw_noise(rng: np.random.Generator, noise: Noise, shape: tuple[int, ...]) -> FloatArray:
    """Noise as it was in a release; to compare with, it protects nobody."""
    if noise.kind == "gaussian":
        return np.asarray(np.rint(rng.normal(0.0, noise.scale, shape)))
    chance = -math.expm1(-1 / noise.scale)
    return np.asarray(rng.geometric(chance, shape) - rng.geometric(chance, shape), dtype=np.float64)
