r"""Hills of a released density: which components of a mixture are one cluster.

A mixture tells where hills may be, but not how deep the density dips between them: along a curve it puts components
side by side, with dips that the records do not have. The height at a place :math:`x` is therefore the mixture's,
corrected by how much mass the release has there against how much the mixture has there (Hjort and Glad, 1995),

.. math:: h(x) = f(x)\, \frac{\sum_c p_c N(x; x_c, W_c + S_x)}{\sum_k w_k N(x; \mu_k, \Sigma_k + S_x)},

in a neighbourhood :math:`S_x` that has the shape of the mixture there. It is linear in the masses :math:`p_c`, so that
each posterior draw has its own heights at the same places. Ways between components are the curves

.. math:: x(\alpha) = \bigl((1-\alpha)\Sigma_i^{-1} + \alpha\Sigma_j^{-1}\bigr)^{-1}
          \bigl((1-\alpha)\Sigma_i^{-1}\mu_i + \alpha\Sigma_j^{-1}\mu_j\bigr),

which hold all summits and passes of two components, moved to where the records are, and chains of them.

**A summit is a cluster** if every way to a higher one dips below it by a factor, and by more than the draws leave
open. Its lowest place counts, however many components lie on the way: two towns that a road joins are two, though there
is no dip between a town and the road. All other components belong to the cluster to which the way is shortest, where a
step is the longer the thinner the records are.

References
----------
N. L. Hjort and I. K. Glad, "Nonparametric density estimation with a parametric start", Annals of Statistics 23, 1995.

S. Ray and B. G. Lindsay, "The topography of multivariate normal mixtures", Annals of Statistics 33, 2005.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import shortest_path
from scipy.special import ndtri

from fogline._typing import FloatArray, IntArray
from fogline.density.components.leaf_cells import LeafCells
from fogline.density.components.leaf_mixture import Gaussians, shared_out

__all__ = ["HILLS", "HillSettings", "component_hills"]

CHUNK = 2**20
"""Numbers in one array of places by cells."""


@dataclass(frozen=True)
class HillSettings:
    """Tuned numbers.

    Attributes
    ----------
    dip : float
        Least depth of the lowest place between two clusters below the lower of their summits, as a logarithm.
    points : int
        Places along the curve between two components.
    climb : int
        Steps from a component's mean to the summit that it leads to.
    kernel : float
        Width of the neighbourhood in which masses are compared, in widths of the mixture there.
    raises : int
        Steps in which the curve between two components moves to where the records are.
    thin : float
        A step where the density is half as high is longer by two to this power.
    smallest : float
        Clusters with less than this share are joined to others.
    """

    dip: float = 0.3
    points: int = 21
    climb: int = 100
    kernel: float = 0.4
    raises: int = 3
    thin: float = 4.0
    smallest: float = 0.01


HILLS = HillSettings()


@dataclass(frozen=True, eq=False)
class _Ways:
    """Summits of the components and the curves between all pairs of them, with heights.

    Attributes
    ----------
    tops, drawn_tops : array of shape (k,), (draws, k)
        Height of each component, at its own summit if it has one.
    passes, drawn_passes : array of shape (k, k), (draws, k, k)
        Height of the lowest place on the curve between two components.
    lengths : array of shape (k, k)
        Of these curves, longer where they are low.
    """

    tops: FloatArray
    drawn_tops: FloatArray
    passes: FloatArray
    drawn_passes: FloatArray
    lengths: FloatArray


def component_hills(cells: LeafCells, model: Gaussians, level: float, settings: HillSettings = HILLS) -> IntArray:
    """Cluster of each component, numbered from 0.

    Parameters
    ----------
    cells : LeafCells
        Masses of a posterior.
    model : Gaussians
        A mixture that was fitted to them.
    level : float
        Chance that a dip between two clusters is noise.
    settings : HillSettings, optional

    Examples
    --------
    >>> from fogline.density.components.leaf_mixture import fit_path
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> cells = LeafCells.of(example_posterior())
    >>> component_hills(cells, fit_path(cells, 2, cells.floor, background=0.05)[2], 0.05).tolist()
    [0, 0]
    """
    summits, leads = _summits(model, settings.climb)
    own = leads == np.arange(len(leads))
    # A way begins at a summit, not at a mean beside it that lies lower.
    ways = _ways(cells, model, np.where(own[:, None], summits, model.means), settings)
    heads = _heads(ways, np.unique(leads), level, settings.dip)
    distances = shortest_path(ways.lengths, directed=False)
    while True:
        group = np.array(heads)[distances[leads][:, heads].argmin(axis=1)]
        shares = np.array([model.weights[group == head].sum() for head in heads]) / model.weights.sum()
        if len(heads) == 1 or shares.min() >= settings.smallest:
            return np.unique(group, return_inverse=True)[1]
        del heads[int(shares.argmin())]  # a sprinkle of records is part of what lies nearest


def _summits(model: Gaussians, steps: int) -> tuple[FloatArray, IntArray]:
    """Where each component's mean leads to when it climbs the mixture, and which component prevails there."""
    inverse = np.linalg.inv(model.covariances)
    pulls = np.einsum("kij,kj->ki", inverse, model.means)
    places, k = model.means.copy(), len(model.weights)
    for _ in range(steps):
        share = shared_out(model.scores(places)[:, :k])[1]
        both = np.einsum("pk,kij->pij", share, inverse)
        places = np.linalg.solve(both, (share @ pulls)[:, :, None])[:, :, 0]
    leads = np.asarray(model.scores(places)[:, :k].argmax(axis=1))
    for _ in range(k):  # a component that prevails at another's summit climbs on from there
        leads = leads[leads]
    return places, leads


def _heads(ways: _Ways, summits: IntArray, level: float, dip: float) -> list[int]:
    """Summits that are clusters: the highest, and those from which every way to a higher one surely dips."""
    order = [int(summit) for summit in summits[np.argsort(-ways.tops[summits], kind="stable")]]
    first, second = _lowest_passes(ways.passes)
    at_chance = ndtri(level / max(len(order) - 1, 1))
    heads = order[:1]
    for rank, head in enumerate(order[1:], start=1):
        higher = order[:rank]
        heights = ways.passes[first[head, higher], second[head, higher]]
        best = higher[int(heights.argmax())]
        way = first[head, best], second[head, best]
        above = np.exp(-dip) * ways.tops[head] - ways.passes[way]
        drawn = np.exp(-dip) * ways.drawn_tops[:, head] - ways.drawn_passes[:, way[0], way[1]]
        # by the median: a draw may put a few records into an empty middle
        error = float(np.median(np.abs(drawn - above)) / ndtri(0.75))
        if above + at_chance * error > 0:
            heads.append(head)
    return heads


def _lowest_passes(passes: FloatArray) -> tuple[IntArray, IntArray]:
    """For each two components, the pair whose pass is the lowest place of the best chain between them."""
    k = len(passes)
    first, second = np.zeros((2, k, k), dtype=np.int64)
    tree = np.arange(k)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    for i, j in sorted(pairs, key=lambda pair: -passes[pair]):
        if tree[i] == tree[j]:
            continue
        here, there = np.flatnonzero(tree == tree[i]), np.flatnonzero(tree == tree[j])
        for one, other in ((here, there), (there, here)):
            first[np.ix_(one, other)], second[np.ix_(one, other)] = i, j
        tree[there] = tree[i]
    return first, second


# -- heights ----------------------------------------------------------------------------------------------------


def _ways(cells: LeafCells, model: Gaussians, ends: FloatArray, settings: HillSettings) -> _Ways:
    """Heights of the ends, one per component, and along the curves between all of them."""
    k, kernel = len(ends), settings.kernel
    tops = _heights(cells, model, ends, kernel, cells.mass)
    drawn_tops = _heights(cells, model, ends, kernel, cells.draws)
    highest = max(float(tops.max()), 1e-300)
    passes, lengths = np.diag(tops), np.zeros((k, k))
    drawn_passes = np.zeros((len(cells.draws), k, k))
    one, other = np.triu_indices(k, 1)
    if len(one) == 0:
        return _Ways(tops, drawn_tops, passes, drawn_passes, lengths)
    curves, heights = _raised(cells, model, _curves(model, ends, settings.points), settings)
    lowest = curves[np.arange(len(one)), heights.argmin(axis=1)]
    passes[one, other] = passes[other, one] = heights.min(axis=1)
    drawn = _heights(cells, model, lowest, kernel, cells.draws)
    drawn_passes[:, one, other] = drawn_passes[:, other, one] = drawn
    thinness = np.maximum(heights / highest, 1e-12) ** -settings.thin
    steps = np.linalg.norm(np.diff(curves, axis=1), axis=2)
    way = np.maximum((steps * (thinness[:, 1:] + thinness[:, :-1]) / 2).sum(axis=1), 1e-12)
    lengths[one, other] = lengths[other, one] = way
    return _Ways(tops, drawn_tops, passes, drawn_passes, lengths)


def _raised(
    cells: LeafCells, model: Gaussians, curves: FloatArray, settings: HillSettings
) -> tuple[FloatArray, FloatArray]:
    """Curves that follow the records, and their heights.

    Components along an arc are joined by a chord beside it. Each place moves across its curve to the mean of the masses
    around, some steps, and of all positions of a curve the one counts whose lowest place is highest.
    """
    number, points, d = curves.shape

    def heights(at: FloatArray) -> FloatArray:
        return _heights(cells, model, at.reshape(-1, d), settings.kernel, cells.mass).reshape(number, points)

    best, found, now = curves, heights(curves), curves
    for _ in range(settings.raises):
        flat = now.reshape(-1, d)
        near = _near(cells, model, flat, 1.0, np.column_stack([cells.mass, cells.mass[:, None] * cells.places]).T)
        step = np.where(near[0] > 0, near[1:] / np.maximum(near[0], 1e-300) - flat.T, 0.0).T.reshape(now.shape)
        along = np.gradient(now, axis=1)
        along /= np.maximum(np.linalg.norm(along, axis=2, keepdims=True), 1e-300)
        step -= (step * along).sum(axis=2, keepdims=True) * along
        step[:, [0, -1]] = 0.0
        now = now + step
        height = heights(now)
        better = height.min(axis=1) > found.min(axis=1)
        best = np.where(better[:, None, None], now, best)
        found = np.where(better[:, None], height, found)
    return best, found


def _curves(model: Gaussians, ends: FloatArray, points: int) -> FloatArray:
    """Places between the components of each pair, shape (pairs, points, d), moved so that they meet the ends."""
    k = len(model.weights)
    inverse = np.linalg.inv(model.covariances)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    curves = np.empty((len(pairs), points, model.means.shape[1]))
    u = np.linspace(0, 1, points)
    moved = ends - model.means
    for number, (i, j) in enumerate(pairs):
        # Steps of about equal length: beside a narrow component the broad one has its say only near its own end.
        ratio = float(np.trace(inverse[i]) / np.trace(inverse[j]))
        a = u * ratio / (1 - u + u * ratio)
        both = np.multiply.outer(1 - a, inverse[i]) + np.multiply.outer(a, inverse[j])
        pull = np.outer(1 - a, inverse[i] @ model.means[i]) + np.outer(a, inverse[j] @ model.means[j])
        curve = np.linalg.solve(both, pull[:, :, None])[:, :, 0]
        curves[number] = curve + np.outer(1 - u, moved[i]) + np.outer(u, moved[j])
    return curves


def _heights(cells: LeafCells, model: Gaussians, places: FloatArray, kernel: float, masses: FloatArray) -> FloatArray:
    """Density at places for each row of masses: that of the mixture, corrected by the masses around."""
    even = model.background * np.exp(model.log_even) if model.background > 0 else 0.0
    around = _around(model, places, kernel)
    expected = _normal(places, around, model.means, model.covariances) @ model.weights + even
    factor = np.exp(model.log_density(places)) / np.maximum(expected, 1e-300)
    return _near(cells, model, places, kernel, masses) * factor


def _around(model: Gaussians, places: FloatArray, kernel: float) -> FloatArray:
    """Neighbourhood of each place: a part of the mixture's own width there."""
    share = shared_out(model.scores(places)[:, : len(model.weights)])[1]
    inverse = np.einsum("pk,kij->pij", share, np.linalg.inv(model.covariances))
    return np.asarray(kernel**2 * np.linalg.inv(inverse))


def _near(cells: LeafCells, model: Gaussians, places: FloatArray, kernel: float, masses: FloatArray) -> FloatArray:
    """Density of each row of masses around each place, shape (..., places)."""
    around = _around(model, places, kernel)
    size = max(1, CHUNK // max(len(cells.mass), 1))
    blocks = [slice(start, start + size) for start in range(0, len(places), size)]
    near = (_normal(places[block], around[block], cells.places, cells.within) for block in blocks)
    return np.concatenate([masses @ part.T for part in near], axis=-1)


def _normal(places: FloatArray, around: FloatArray, means: FloatArray, covariances: FloatArray) -> FloatArray:
    """Normal densities at places, shape (places, means), with the sum of both covariances.

    Factors of all covariances at once, entry by entry: there are millions of them, of at most three columns.
    """
    d = places.shape[1]
    root: dict[tuple[int, int], FloatArray] = {}
    z: list[FloatArray] = []
    exponent, size = np.zeros((len(places), len(means))), np.ones((len(places), len(means)))
    for i in range(d):
        for j in range(i + 1):
            entry = np.add.outer(around[:, i, j], covariances[:, i, j])
            for m in range(j):
                entry -= root[i, m] * root[j, m]
            root[i, j] = np.sqrt(np.maximum(entry, 1e-300)) if i == j else entry / root[j, j]
        offset = np.subtract.outer(places[:, i], means[:, i])
        for m in range(i):
            offset -= root[i, m] * z[m]
        z.append(offset / root[i, i])
        exponent += z[i] ** 2
        size *= root[i, i]
    return np.asarray(np.exp(-0.5 * exponent) / (size * (2 * np.pi) ** (d / 2)))
