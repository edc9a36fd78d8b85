r"""Clusters of a released density of up to three columns: hills of a mixture, and the part of the box that is theirs.

A mixture of Gaussians with an even background is fitted to the posterior's leaf masses, with as many components as the
release supports (:mod:`fogline.density.components.leaf_mixture`). A long, bent or skewed group takes several
components; which of them are one cluster is then decided.

**Without a number**, two components are apart where the density dips between them: along the curve

.. math:: x(\alpha) = \bigl((1-\alpha)\Sigma_i^{-1} + \alpha\Sigma_j^{-1}\bigr)^{-1}
          \bigl((1-\alpha)\Sigma_i^{-1}\mu_i + \alpha\Sigma_j^{-1}\mu_j\bigr)

that holds all summits and passes of the two, the lower summit must stand above the pass by a factor, and by more than
the posterior's draws leave open. Components that are not apart are joined, so that no cluster lies between two hills
and none is divided by a bump of the noise. A component that has no summit of its own belongs to the one that it leads
up to. **With a number**, components are joined pair by pair, those first that can be told apart least.

Each leaf belongs to the cluster that is most likely there. Share and centre of a cluster are those of the
population in its part of the box: functions of the leaf masses, whose errors the draws give.

References
----------
C. Hennig, "Methods for merging Gaussian mixture components", Advances in Data Analysis and Classification 4, 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from fogline._results import ReadingResults, column_words
from fogline._typing import FloatArray, IntArray
from fogline._validation import check_count, check_level
from fogline.density.components.leaf_cells import CELLS, LeafCells
from fogline.density.components.leaf_mixture import (
    MIXTURE_READING,
    Gaussians,
    choose,
    fit_path,
    parameter_draws,
    parameter_scores,
    shared_out,
)
from fogline.density.spec import places_in_words

if TYPE_CHECKING:
    from fogline.density.posterior.posterior import Posterior

__all__ = ["CLUSTER_READING", "ClusterReading", "ClusterReadingSettings", "read_clusters"]

MOST_CLUSTERS = 32
"""Most clusters that can be asked for."""


@dataclass(frozen=True)
class ClusterReadingSettings:
    """Tuned numbers of the reading.

    Attributes
    ----------
    background : float
        Share of the even background at the start of a fit.
    dip : float
        Least depth of the pass between two clusters below the lower of their summits, as a logarithm.
    points : int
        Places along the curve between two components.
    climb : int
        Steps from a component's mean to the summit that it leads to.
    smallest : float
        Components with less than this share are joined to the nearest, where the number of clusters is open.
    reading_factor : float
        What privacy and smoothing add to the error of a centre is multiplied by this: buckets spread their records
        alike, which draws do not know.
    most_in_atoms, most_in_many : float
        Point masses of a column are left out of the search if they hold at most this part of the records: of one of
        several columns, and where a single column has many of them.
    crossing : float
        Beside a point mass at a wall, leaves are resolved where buckets that reach across hold at most this part.
    lacking : float
        By so many standard errors more than its released share may a point mass at a wall hold.
    """

    background: float = 0.05
    dip: float = 0.3
    points: int = 41
    climb: int = 100
    smallest: float = 0.01
    reading_factor: float = 1.4
    most_in_atoms: float = 0.5
    most_in_many: float = 0.9
    crossing: float = 0.01
    lacking: float = 3.0


CLUSTER_READING = ClusterReadingSettings()


@dataclass(frozen=True, eq=False, repr=False)
class ClusterReading(ReadingResults):
    """Clusters of a release, the largest first.

    Attributes
    ----------
    centres : array of shape (k, d)
        Mean of the population in each cluster's part of the box, in data units.
    covariances : array of shape (k, d, d)
        Of the errors of the centres, which contain privacy noise, the sampling of the records and smoothing.
    shares, share_errors : array of shape (k,)
        Share of the population in that part, and standard errors: privacy noise, the sampling of the records and
        smoothing, for the part as it is drawn.
    peaks : array of shape (k, d)
        Densest place of each cluster.
    labels : int array, one number per leaf
        Which cluster each part of the box belongs to.
    edges : tuple of array
        Edges of the leaves per column.
    count, count_error : float
        Released number of records and its privacy noise: neither sampling nor smoothing is in it.
    components : int
        Components of the mixture that the clusters are made of.
    message : str
        What to know about the number of clusters; else empty.

    All standard errors contain privacy noise, sampling of the records and smoothing.
    """

    centres: FloatArray
    covariances: FloatArray
    shares: FloatArray
    share_errors: FloatArray
    peaks: FloatArray
    labels: IntArray
    edges: tuple[FloatArray, ...]
    count: float
    count_error: float
    components: int
    message: str = ""

    @property
    def centre_errors(self) -> FloatArray:
        """Standard errors of the centres, shape (k, d)."""
        return np.asarray(np.sqrt(np.einsum("kii->ki", self.covariances)))

    @property
    def sizes(self) -> FloatArray:
        """Estimated number of records in each cluster."""
        return self.shares * self.count

    @property
    def size_errors(self) -> FloatArray:
        """Standard errors of the sizes."""
        return np.hypot(self.share_errors * self.count, self.shares * self.count_error)

    def __str__(self) -> str:
        centres = places_in_words(column_words(self, self.centres.shape[1]), self.centres, self.centre_errors)
        lines = [
            f"cluster {k + 1}: {self.shares[k]:.1%} ± {self.share_errors[k]:.1%}; centre {place}"
            for k, place in enumerate(centres)
        ]
        return "\n".join([*lines, *filter(None, [self.message])]) or "no cluster"

    __repr__ = __str__

    def predict(self, points: FloatArray) -> IntArray:
        """Cluster of each point; outside the box that of the nearest leaf, -1 where a value is missing."""
        found = np.full(len(points), -1, dtype=np.int64)
        whole = np.isfinite(points).all(axis=1)
        if len(self.shares) and whole.any():
            place = tuple(
                np.clip(np.searchsorted(edge, points[whole, k], side="right") - 1, 0, len(edge) - 2)
                for k, edge in enumerate(self.edges)
            )
            found[whole] = self.labels[place]
        return found


def read_clusters(
    posterior: Posterior,
    n_clusters: int | None = None,
    *,
    level: float = 0.05,
    settings: ClusterReadingSettings = CLUSTER_READING,
) -> ClusterReading:
    """Find clusters in a posterior; free of further privacy cost.

    Parameters
    ----------
    posterior : Posterior
        Of up to three columns.
    n_clusters : int, optional
        How many; by default as many as the release shows.
    level : float
        Without a number: chance that a dip between two clusters is noise.
    settings : ClusterReadingSettings, optional

    Examples
    --------
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> found = read_clusters(example_posterior())
    >>> len(found.shares), bool(found.centres[0, 0] < 2)
    (1, True)
    """
    wanted = None if n_clusters is None else check_count(n_clusters, "n_clusters")
    if wanted is not None and wanted > MOST_CLUSTERS:
        raise ValueError(f"n_clusters must be at most {MOST_CLUSTERS}, got {wanted}")
    cells = _cells(posterior, settings)
    path = fit_path(cells, None, cells.floor, background=settings.background)
    number, _ = choose(cells, path, None, MIXTURE_READING)
    if wanted is not None and number < wanted:
        path = fit_path(cells, wanted, cells.floor, background=settings.background)
        number = max(k for k in path if k <= wanted)
    model = path[number]
    # Any mixture that explains the records better than an even spread does, not the largest one alone: what many
    # parameters cost says nothing about evenness.
    if wanted is None and not any(_beats_even(cells, path[k]) for k in path if k <= number):
        words = "no clusters: the records are spread as evenly over the bounds as the release can tell"
        return _empty(posterior, words)
    groups = _groups(cells, model, check_level(level), settings)
    if wanted is not None:
        groups = _joined_to(cells, model, groups, wanted)
    found = _regions(posterior, cells, model, groups)
    if wanted is not None and len(found.shares) < wanted:
        words = f"{wanted} clusters were asked for, but the release shows no more than {len(found.shares)}"
        return replace(found, message=words)
    return found


def _cells(posterior: Posterior, settings: ClusterReadingSettings) -> LeafCells:
    """Cells in which clusters are sought: without the point masses that are none.

    Zeros of one column, whatever the others are, are no cluster; zeros of several at once may well be one, and so may
    the few values of a column that has no others. Many values of a single column, with records between them, are a
    habit of those who wrote them down: ages end in 0 and 5.
    """
    if posterior.d == 1:
        rest, atoms = posterior.without_atoms(0)
        share = sum(float(atom.share.value) for atom in atoms)
        if len(atoms) <= CELLS.few_values or share > settings.most_in_many:
            return LeafCells.of(posterior)
        cells = LeafCells.of(rest)
        step = float(np.median(np.diff([atom.value for atom in sorted(atoms, key=lambda atom: atom.value)])))
        return replace(cells, floor=np.maximum(cells.floor, step**2 / 12 / cells.scale**2))
    without = [posterior.without_atoms(column) for column in range(posterior.d)]
    shares = [sum(float(atom.share.value) for atom in atoms) for _, atoms in without]
    spread = [bare for (bare, _), share in zip(without, shares, strict=True) if 0 < share <= settings.most_in_atoms]
    return LeafCells.of(spread[0] if len(spread) == 1 else posterior)


def _beats_even(cells: LeafCells, model: Gaussians) -> bool:
    """Whether a mixture explains the release better than an even spread over the box, by what it costs."""
    ratio = model.log_density(cells.places, cells.within) - model.log_even
    gain, error = float(cells.mass @ ratio), float(np.std(cells.draws @ ratio))
    if gain <= 0 or error <= 0:
        return False
    records = min(2 * gain / error**2, cells.count)
    return 2 * records * gain > model.parameters * math.log(max(records, 3.0))


# -- which components are one cluster ---------------------------------------------------------------------------


def _curves(model: Gaussians, points: int) -> tuple[list[tuple[int, int]], FloatArray]:
    """Pairs of components and places between them, shape (pairs, points, d)."""
    k = len(model.weights)
    inverse = np.linalg.inv(model.covariances)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    curves = np.empty((len(pairs), points, model.means.shape[1]))
    u = np.linspace(0, 1, points)
    for number, (i, j) in enumerate(pairs):
        # Steps of about equal length: beside a narrow component the broad one has its say only near its own end.
        ratio = float(np.trace(inverse[i]) / np.trace(inverse[j]))
        a = u * ratio / (1 - u + u * ratio)
        both = np.multiply.outer(1 - a, inverse[i]) + np.multiply.outer(a, inverse[j])
        pull = np.outer(1 - a, inverse[i] @ model.means[i]) + np.outer(a, inverse[j] @ model.means[j])
        curves[number] = np.linalg.solve(both, pull[:, :, None])[:, :, 0]
    return pairs, curves


def _dips(cells: LeafCells, model: Gaussians, points: int) -> tuple[list[tuple[int, int]], FloatArray, FloatArray]:
    """Depth of the pass between each pair of components, as a logarithm, and its standard error over the draws."""
    pairs, curves = _curves(model, points)
    if not pairs:
        return pairs, np.zeros(0), np.zeros(0)
    places = curves.reshape(-1, cells.d)
    height = model.log_density(places).reshape(curves.shape[:2])
    left = np.maximum.accumulate(height, axis=1)
    right = np.maximum.accumulate(height[:, ::-1], axis=1)[:, ::-1]
    deep = np.minimum(left, right) - height
    lowest = deep.argmax(axis=1)
    rows = np.arange(len(pairs))
    before = np.where(np.arange(points) <= lowest[:, None], height, -np.inf).argmax(axis=1)
    after = np.where(np.arange(points) >= lowest[:, None], height, -np.inf).argmax(axis=1)
    slopes = parameter_scores(model, places).reshape(len(pairs), points, -1)
    drawn = parameter_draws(cells, model)
    moved = [height[rows, at][:, None] + slopes[rows, at] @ drawn.T for at in (before, lowest, after)]
    off = np.abs(np.minimum(moved[0], moved[2]) - moved[1] - deep[rows, lowest][:, None])
    # By the median: a draw with a few records far from all components moves a covariance, to first order, without end.
    return pairs, deep[rows, lowest], np.asarray(np.median(off, axis=1) / ndtri(0.75))


def _summits(model: Gaussians, steps: int) -> tuple[FloatArray, IntArray]:
    """Where each component's mean leads to when it climbs the mixture, and which component prevails there."""
    inverse = np.linalg.inv(model.covariances)
    pulls = np.einsum("kij,kj->ki", inverse, model.means)
    places, k = model.means.copy(), len(model.weights)
    for _ in range(steps):
        share = shared_out(model.scores(places)[:, :k])[1]
        both = np.einsum("pk,kij->pij", share, inverse)
        places = np.linalg.solve(both, (share @ pulls)[:, :, None])[:, :, 0]
    return places, np.asarray(model.scores(places)[:, :k].argmax(axis=1))


def _groups(cells: LeafCells, model: Gaussians, level: float, settings: ClusterReadingSettings) -> IntArray:
    """Cluster of each component, where their number is open.

    Only components that prevail at a summit are looked at in pairs: a broad one that spans two hills must not join
    them.
    """
    _, prevails = _summits(model, settings.climb)
    group = prevails.copy()
    for _ in range(len(group)):  # a component that prevails at another's summit climbs on from there
        group = group[group]
    pairs, depth, error = _dips(cells, model, settings.points)
    joined = depth + ndtri(level) * error < settings.dip
    heads = set(group.tolist())
    for (i, j), together in zip(pairs, joined.tolist(), strict=True):
        if together and i in heads and j in heads:
            group[group == group[j]] = group[i]
    # a sprinkle of records is part of what lies nearest
    for i in np.argsort(model.weights, kind="stable").tolist():
        mine = group == group[i]
        if model.weights[mine].sum() < settings.smallest * model.weights.sum() and not mine.all():
            nearest = min(
                (float(d), other)
                for (a, b), d in zip(pairs, depth, strict=True)
                for one, other in ((a, b), (b, a))
                if mine[one] and not mine[other]
            )
            group[mine] = group[nearest[1]]
    return np.unique(group, return_inverse=True)[1]


def _joined_to(cells: LeafCells, model: Gaussians, hills: IntArray, wanted: int) -> IntArray:
    """Cluster of each component, where there are to be so many.

    Components of one hill are joined first, then hills; each time those that are told apart least, small ones before
    large ones.
    """
    k = len(model.weights)
    share = shared_out(model.scores(cells.places, cells.within)[:, :k])[1] * cells.mass[:, None]
    group = np.arange(k)
    while len(np.unique(group)) > wanted:
        names = np.unique(group)
        merged = np.stack([share[:, group == name].sum(axis=1) for name in names], axis=1)
        size = merged.sum(axis=0)
        winner = merged.argmax(axis=1)
        mistaken = np.stack([merged[winner == b].sum(axis=0) for b in range(len(names))], axis=1) / size[:, None]
        loss = np.minimum.outer(size, size) * (1 - np.maximum(mistaken, mistaken.T))
        loss += np.not_equal.outer(hills[names], hills[names])  # a loss is below one: hills come last
        loss[np.diag_indices(len(names))] = np.inf
        first, second = np.unravel_index(int(loss.argmin()), loss.shape)
        group[group == names[second]] = names[first]
    return np.unique(group, return_inverse=True)[1]


# -- what is read ------------------------------------------------------------------------------------------------


def _regions(posterior: Posterior, cells: LeafCells, model: Gaussians, groups: IntArray) -> ClusterReading:
    """Parts of the box, and the population's share and mean in each."""
    axes, masses, d = posterior.axes, posterior.masses(), posterior.d
    k, number = len(model.weights), int(groups.max()) + 1
    grids = np.meshgrid(*[axis.centres for axis in axes], indexing="ij")
    points = np.stack([grid.ravel() for grid in grids], axis=1)
    labels = np.empty(len(points), dtype=np.int64)
    height = np.full((number,), -np.inf)
    peaks = np.full((number, d), np.nan)
    for start in range(0, len(points), 2**16):
        block = slice(start, start + 2**16)
        scores = model.scores(cells.scaled(points[block]))[:, :k]
        each = np.stack([shared_out(scores[:, groups == g])[0] for g in range(number)], axis=1)
        labels[block] = each.argmax(axis=1)
        whole = shared_out(scores)[0]
        for g in range(number):
            own = np.where(labels[block] == g, whole, -np.inf)
            if own.size and own.max() > height[g]:
                height[g], peaks[g] = own.max(), points[block][own.argmax()]
    # zeros count as zeros, not as the middle of their leaf
    grids = np.meshgrid(*[posterior.places(column) for column in range(d)], indexing="ij")
    values = np.stack([grid.ravel() for grid in grids], axis=1)
    value, drawn = (_share_and_mean(part, values, labels, number, d) for part in (masses.estimate, masses.draws))
    share, mean = value[0][0], value[1][0]
    kept = np.flatnonzero(share > 0)
    order = kept[np.argsort(-share[kept], kind="stable")]
    new = np.full(number, -1, dtype=np.int64)
    new[order] = np.arange(len(order))
    offsets = drawn[1][:, order] - mean[order]
    count = posterior.count
    covariances = np.einsum("bki,bkj->kij", offsets, offsets) / len(offsets)
    sampling = _sampling_variances(masses.estimate.ravel(), values, labels, mean, order) / float(count.value)
    covariances = _widened(covariances, sampling, CLUSTER_READING.reading_factor)
    nearer, unknown = _beside_wall_heaps(posterior, values, labels, share, order)
    covariances += np.einsum("ki,ij->kij", unknown, np.eye(d))
    return ClusterReading(
        centres=mean[order] - nearer,
        covariances=covariances,
        shares=share[order],
        share_errors=np.sqrt(np.mean((drawn[0][:, order] - share[order]) ** 2, axis=0)),
        peaks=peaks[order],
        labels=new[labels].reshape(masses.estimate.shape),
        edges=tuple(axis.edges for axis in axes),
        count=float(count.value),
        count_error=float(count.standard_error),
        components=k,
    )


def _beside_wall_heaps(
    posterior: Posterior, values: FloatArray, labels: IntArray, share: FloatArray, order: IntArray
) -> tuple[FloatArray, FloatArray]:
    r"""How much nearer to a wall with a point mass the centres may be: the middle of it, and its variance; (k, d).

    Boxes with few records are not cut at the outermost leaf, so that a part of the point mass lies in buckets that
    reach further, spread over them: at most what its released share, with its error, has more than the outermost leaf.
    With :math:`\delta` the way of a centre if that part of such buckets were at the wall, the centre moves by
    :math:`\delta/2` and its variance grows by :math:`\delta^2/12`.
    """
    d, mass = posterior.d, posterior.masses().estimate.ravel()
    nearer, unknown = np.zeros((len(order), d)), np.zeros((len(order), d))
    for column in range(d if d > 1 else 0):
        margin, axis = posterior.marginal(column), posterior.axes[column]
        for atom in margin.atoms:
            if atom.value not in axis.bounds:
                continue
            known = margin.resolved_edges(CLUSTER_READING.crossing)
            low = atom.value == axis.bounds[0]
            end = float(known[known >= atom.high][0] if low else known[known <= atom.low][-1])
            inside = values[:, column] < end if low else values[:, column] > end
            counted = values[:, column] <= atom.high if low else values[:, column] >= atom.low
            most = float(atom.share.value) + CLUSTER_READING.lacking * float(atom.share.standard_error)
            rest = float(mass[inside & ~counted].sum())
            part = float(np.clip((most - float(mass[counted].sum())) / max(rest, 1e-300), 0.0, 1.0))
            for row, g in enumerate(order.tolist()):
                own = inside & (labels == g)
                way = part * float(mass[own] @ (values[own, column] - atom.value)) / max(float(share[g]), 1e-300)
                nearer[row, column] += way / 2
                unknown[row, column] += way**2 / 12
    return nearer, unknown


def _sampling_variances(
    mass: FloatArray, values: FloatArray, labels: IntArray, mean: FloatArray, order: IntArray
) -> FloatArray:
    """Variance of the mean of each cluster's records, times the number of all records, shape (k, d)."""
    found = np.empty((len(order), values.shape[1]))
    for row, g in enumerate(order.tolist()):
        own = labels == g
        share = max(float(mass[own].sum()), 1e-300)
        found[row] = mass[own] @ (values[own] - mean[g]) ** 2 / share**2
    return found


def _widened(covariances: FloatArray, sampling: FloatArray, factor: float) -> FloatArray:
    """Covariances whose part beyond sampling is enlarged; no variance is left below that of sampling."""
    variance = np.einsum("kii->ki", covariances)
    wanted = sampling + factor**2 * np.maximum(variance - sampling, 0.0)
    scale = np.sqrt(np.maximum(wanted, variance) / np.maximum(variance, 1e-300))
    return np.asarray(covariances * scale[:, :, None] * scale[:, None, :])


def _share_and_mean(
    part: FloatArray, points: FloatArray, labels: IntArray, number: int, d: int
) -> tuple[FloatArray, FloatArray]:
    """Share and mean of each part of the box for rows of leaf masses: shapes (rows, k) and (rows, k, d)."""
    rows = part.reshape(-1, len(points))
    share, mean = np.empty((len(rows), number)), np.empty((len(rows), number, d))
    for g in range(number):
        own = np.flatnonzero(labels == g)
        inside = rows[:, own]
        share[:, g] = inside.sum(axis=1)
        middle = points[own].mean(axis=0) if len(own) else np.zeros(d)
        offset = inside @ (points[own] - middle) / np.maximum(share[:, g], 1e-300)[:, None]
        mean[:, g] = middle + offset
    return share, mean


def _empty(posterior: Posterior, message: str) -> ClusterReading:
    none, shape = np.zeros((0, posterior.d)), posterior.masses().estimate.shape
    edges, count = tuple(axis.edges for axis in posterior.axes), posterior.count
    nowhere = np.full(shape, -1, dtype=np.int64)
    counted = float(count.value), float(count.standard_error)
    return ClusterReading(
        none,
        np.zeros((0, posterior.d, posterior.d)),
        np.zeros(0),
        np.zeros(0),
        none,
        nowhere,
        edges,
        *counted,
        0,
        message,
    )
