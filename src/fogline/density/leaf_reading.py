r"""A release on leaves at one bandwidth: noisy bucket densities, smoothed by a Gaussian kernel, and the exact noise.

Bucket :math:`j` is a box with sides :math:`[l_{ja}, u_{ja}]`, and its released count :math:`y_j` is spread evenly over
it. Smoothed with bandwidth :math:`h` and divided by the released number of records,

.. math:: \hat f_h(x) = \frac{1}{\hat n} \sum_j y_j \prod_a
   \frac{\Phi((x_a - l_{ja})/h_a) - \Phi((x_a - u_{ja})/h_a)}{u_{ja} - l_{ja}}
   = \frac{1}{\hat n} \sum_j y_j w_j(x) ,

which is linear in the counts. Its privacy noise has the variance :math:`v \sum_j w_j(x)^2 / \hat n^2`, where
:math:`v` is that of the noise on a count. This is the reading for researchers and for tests of noise levels. It uses
the counts alone, not the pilot, and knows neither that densities are positive nor that buckets are coarse where there
are few records.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fogline.density.grid_reading import Grid
from fogline.density.leaves import LeafRelease, LeafSpec

__all__ = ["LeafReading"]

FloatArray = NDArray[np.float64]

MOST_NUMBERS = 2**23
"""Most numbers of a table of weights that is made at a time."""


class LeafReading:
    """The released density at one bandwidth.

    Parameters
    ----------
    release : LeafRelease
    count : float
        Released number of records, at least 1.
    bandwidth : array of shape (d,)
        In data units.

    Examples
    --------
    >>> from fogline.density.leaves import BucketCounts, Noise
    >>> spec = LeafSpec.plan([(0, 1)], leaves=[4])
    >>> halves = BucketCounts(np.array([[[0, 2]], [[2, 4]]]), np.array([75, 25]), Noise("laplace", 1.0))
    >>> reading = LeafReading(LeafRelease(spec, halves, halves), 100.0, np.array([0.05]))
    >>> reading.value(np.array([[0.25], [0.5], [0.75]])).round(3).tolist()
    [1.5, 1.0, 0.5]
    """

    def __init__(self, release: LeafRelease, count: float, bandwidth: FloatArray) -> None:
        self.spec: LeafSpec = release.spec
        self.bandwidth = bandwidth
        self.stage = release.counts
        self.sd = release.counts.noise.sd / count
        self._edges = [self.spec.edges(axis) for axis in range(self.spec.d)]
        cuts = [np.unique(self.stage.boxes[:, axis]) for axis in range(self.spec.d)]
        self._cuts = [edges[cut] for edges, cut in zip(self._edges, cuts, strict=True)]
        # Between two cuts of an axis no bucket ends, so that the density is constant on their product.
        self.densities = _spread(release)[np.ix_(*(cut[:-1] for cut in cuts))] / count

    @property
    def size(self) -> int:
        """Numbers that a point needs."""
        return max(sum(self.densities.shape), self.densities.size // len(self.densities))

    # -- values ----------------------------------------------------------------------------------------------

    def value(self, points: FloatArray) -> FloatArray:
        """Density at points of shape (p, d)."""
        return self._contracted([self._kernel(points[:, axis], axis, 0) for axis in range(self.spec.d)])

    def jet(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Density (p,), gradient (p, d) and Hessian (p, d, d) at points of shape (p, d)."""
        d = self.spec.d
        kernels = [[self._kernel(points[:, axis], axis, order) for order in range(3)] for axis in range(d)]

        def derivative(*axes: int) -> FloatArray:
            return self._contracted([kernels[axis][axes.count(axis)] for axis in range(d)])

        gradient = np.stack([derivative(i) for i in range(d)], axis=1)
        hessian = np.empty((len(points), d, d))
        for i in range(d):
            for j in range(i, d):
                hessian[:, i, j] = hessian[:, j, i] = derivative(i, j)
        return derivative(), gradient, hessian

    def on_grid(self, per_bandwidth: float = 3.0) -> Grid:
        """Density on a regular grid over the box."""
        wanted = np.ceil(self.spec.widths / self.bandwidth * per_bandwidth).astype(int) + 1
        sizes = np.minimum(wanted, 2 * np.array(self.spec.leaves) + 1)  # finer than half a leaf shows nothing
        axes = tuple(np.linspace(*pair, max(int(n), 2)) for pair, n in zip(self.spec.bounds, sizes, strict=True))
        values = self.densities
        for axis, places in enumerate(axes):
            block = max(1, MOST_NUMBERS // values.shape[axis])
            blocks = [places[i : i + block] for i in range(0, len(places), block)]
            parts = [np.tensordot(self._kernel(some, axis, 0), values, axes=(1, axis)) for some in blocks]
            values = np.moveaxis(np.concatenate(parts), 0, axis)
        return Grid(axes, np.ascontiguousarray(values))

    def _kernel(self, places: FloatArray, axis: int, order: int) -> FloatArray:
        """Derivative of this order of the smoothed indicator of each interval between two cuts of an axis."""
        return -np.diff(_smoothed_step(places[:, None] - self._cuts[axis], self.bandwidth[axis], order), axis=1)

    def _contracted(self, kernels: list[FloatArray]) -> FloatArray:
        """Sum of densities times one factor per axis, for each point."""
        first, *others = kernels
        values = first @ self.densities.reshape(len(self.densities), -1)
        for kernel in others:
            values = np.einsum("pi,pij->pj", kernel, values.reshape(len(kernel), kernel.shape[1], -1))
        return np.asarray(values.reshape(len(first)))

    # -- noise -----------------------------------------------------------------------------------------------

    def noise_sd_at(self, points: FloatArray) -> FloatArray:
        """Exact standard deviation of the privacy noise of the density at points of shape (p, d)."""
        block = max(1, MOST_NUMBERS // len(self.stage))
        parts = [self._squares(points[i : i + block]) for i in range(0, max(len(points), 1), block)]
        return np.asarray(self.sd * np.sqrt(np.concatenate(parts)))

    @cached_property
    def noise_sd(self) -> float:
        """Largest standard deviation of the privacy noise over the centres and corners of the buckets."""
        ends = [self._edges[axis][self.stage.boxes[:, axis]] for axis in range(self.spec.d)]
        places = [np.column_stack([pair.mean(axis=1) for pair in ends])]
        places += [
            np.column_stack([pair[:, side] for pair, side in zip(ends, corner, strict=True)])
            for corner in np.ndindex(*(2,) * self.spec.d)
        ]
        points = np.unique(np.clip(np.concatenate(places), self.spec.lower, self.spec.upper), axis=0)
        return float(self.noise_sd_at(points).max())

    def _squares(self, points: FloatArray) -> FloatArray:
        """Sum over the buckets of squared weights at each point."""
        product = np.ones((len(points), len(self.stage)))
        for axis in range(self.spec.d):
            places, place = np.unique(points[:, axis], return_inverse=True)
            ranges, where = np.unique(self.stage.boxes[:, axis], axis=0, return_inverse=True)
            ends = self._edges[axis][ranges]
            rises = _smoothed_step(places[:, None, None] - ends, self.bandwidth[axis], 0)
            weights = (rises[..., 0] - rises[..., 1]) / (ends[:, 1] - ends[:, 0])
            product *= weights[place.ravel()[:, None], where.ravel()]
        return np.asarray(np.einsum("pj,pj->p", product, product))


def _spread(release: LeafRelease) -> FloatArray:
    """Count per volume of each leaf, every bucket spread evenly."""
    stage, spec = release.counts, release.spec
    height = stage.counts / (stage.sizes * spec.leaf_volume)
    change = np.zeros([n + 1 for n in spec.leaves], dtype=np.int64)
    # The bucket of each leaf: steps of its number at the corners, summed along each axis, in integers.
    number = np.arange(len(stage))
    for corner in np.ndindex(*(2,) * spec.d):
        place = tuple(stage.boxes[:, axis, side] for axis, side in enumerate(corner))
        np.add.at(change, place, (-1) ** sum(corner) * number)
    for axis in range(spec.d):
        np.cumsum(change, axis=axis, out=change)
    return np.asarray(height[change[tuple(slice(0, n) for n in spec.leaves)]])


def _smoothed_step(distances: FloatArray, bandwidth: float, order: int) -> FloatArray:
    """Gaussian distribution function at these distances, or its first or second derivative."""
    from scipy.special import ndtr  # here: a mistake in a schema is told without it

    z = distances / bandwidth
    if order == 0:
        return np.asarray(ndtr(z))
    bell = np.exp(-0.5 * z**2) / (np.sqrt(2 * np.pi) * bandwidth)
    return np.asarray(bell if order == 1 else -z * bell / bandwidth)
