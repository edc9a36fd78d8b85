r"""Clusters of a released density of up to three columns: hills of a mixture, and the part of the box that is theirs.

A mixture of Gaussians with an even background is fitted to the posterior's leaf masses, with as many components as the
release supports (:mod:`fogline.density.components.leaf_mixture`). A long, bent or skewed group takes several
components; which of them are one cluster is then decided.

**Without a number**, those that share a hill of the density (:mod:`fogline.density.components.hills`), so that no
cluster lies between two hills and none is divided by a bump of the noise. **With a number**, components are joined pair
by pair, those first that can be told apart least.

Each leaf belongs to the cluster that is most likely there. Share and centre of a cluster are those of the
population in its part of the box: functions of the leaf masses, whose errors the draws give.

References
----------
C. Hennig, "Methods for merging Gaussian mixture components", Advances in Data Analysis and Classification 4, 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from fogline._results import ReadingResults, column_words
from fogline._typing import BoolArray, FloatArray, IntArray
from fogline._validation import check_count, check_level
from fogline.density.components.hills import component_hills
from fogline.density.components.leaf_cells import CELLS, LeafCells
from fogline.density.components.leaf_mixture import (
    MIXTURE_READING,
    Gaussians,
    choose,
    fit_path,
    shared_out,
)
from fogline.density.counted_records import joined
from fogline.density.posterior.atom_cells import leaves_of
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
    near : float
        Half the width of what is called near a centre, in standard deviations of its cluster per column.
    hollow : float
        Few records lie near a centre where the density is below this part of that at which half of them live,
    most_near : float
        and not where more than this part of them is near it: a value.
    """

    background: float = 0.05
    reading_factor: float = 1.4
    most_in_atoms: float = 0.5
    most_in_many: float = 0.9
    crossing: float = 0.01
    lacking: float = 3.0
    near: float = 0.25
    most_near: float = 0.5
    hollow: float = 0.5


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
        What to know about the number of clusters, and about centres where few records are; else empty.
    hollow : array of bool of shape (k,)
        Whether few records lie near a centre, as in a cluster that is bent or a ring: it is then a centre of mass, and
        no typical record.

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
    hollow: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))

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
        names, widths = column_words(self, self.centres.shape[1]), np.array([e[-1] - e[0] for e in self.edges])
        centres = places_in_words(names, self.centres, self.centre_errors, widths)
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
        words = "no clusters: groups describe the records no better than an even spread over the bounds does"
        return _empty(posterior, words)
    groups = component_hills(cells, model, check_level(level))
    if wanted is not None:
        groups = _joined_to(cells, model, groups, wanted)
    found = _regions(posterior, cells, model, groups)
    if wanted is not None and len(found.shares) < wanted:
        words = f"{wanted} clusters were asked for, but the release shows no more than {len(found.shares)}"
        found = replace(found, message=words)
    return replace(found, message=joined(found.message, _hollow_words(found.hollow)))


def _hollow_words(hollow: BoolArray) -> str:
    """Say at which centres few records are; empty if there are none."""
    numbers = [str(k + 1) for k in np.flatnonzero(hollow)]
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f"the centre of cluster {numbers[0]} is a centre of mass: few records lie near it"
    listed = f"{', '.join(numbers[:-1])} and {numbers[-1]}"
    return f"the centres of clusters {listed} are centres of mass: few records lie near them"


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
    unknown += _within_heaps(posterior, labels, share, order)
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
        hollow=_hollow(masses.estimate.ravel(), values, labels, mean[order] - nearer, order),
    )


def _hollow(
    mass: FloatArray,
    values: FloatArray,
    labels: IntArray,
    centres: FloatArray,
    order: IntArray,
    settings: ClusterReadingSettings = CLUSTER_READING,
) -> BoolArray:
    """Whether the density near each centre is below a part of that at which half of its cluster's records live.

    Half of them, and not their mean: one value that holds many has any density. Leaves are of equal size.
    """
    found = np.zeros(len(order), dtype=bool)
    for row, g in enumerate(order.tolist()):
        own = np.flatnonzero(labels == g)
        weight, places = mass[own] / max(float(mass[own].sum()), 1e-300), values[own]
        spread = np.sqrt(weight @ (places - centres[row]) ** 2)
        near = np.all(np.abs(values - centres[row]) <= settings.near * spread, axis=1)
        # All of it in less than a leaf or two, or most of it near the centre: a value.
        if not near.any() or float(weight[near[own]].sum()) > settings.most_near:
            continue
        by_density = np.argsort(weight, kind="stable")
        half = int(np.searchsorted(np.cumsum(weight[by_density]), 0.5))
        typical = float(mass[own][by_density[min(half, len(own) - 1)]])
        found[row] = float(mass[near].mean()) < settings.hollow * typical
    return found


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


def _within_heaps(posterior: Posterior, labels: IntArray, share: FloatArray, order: IntArray) -> FloatArray:
    """Variance of the centres because a point mass lies anywhere in its cell, shape (k, d).

    Records spread over many cells average out where they lie inside; those of one value do not. With several columns
    all records of a leaf along a column may have one value.
    """
    d = posterior.d
    unknown = np.zeros((len(order), d))
    if d > 1:
        mass, label = posterior.masses().estimate, labels.reshape(posterior.masses().estimate.shape)
        for row, g in enumerate(order.tolist()):
            own = np.where(label == g, mass, 0.0) / max(float(share[g]), 1e-300)
            for column, axis in enumerate(posterior.axes):
                along = own.sum(axis=tuple(k for k in range(d) if k != column))
                unknown[row, column] = 0.0 if axis.step else float(along @ along) * axis.width**2 / 12
        return unknown
    if posterior.axes[0].step:
        return unknown
    for atom in posterior.atoms:
        cell = leaves_of(posterior.axes[0], atom)
        rows = np.flatnonzero(order == labels[(cell.start + cell.stop - 1) // 2])
        part = np.minimum(max(float(atom.share.value), 0.0) / np.maximum(share[order[rows]], 1e-300), 1.0)
        unknown[rows, 0] += (part * (atom.high - atom.low)) ** 2 / 12
    return unknown


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
