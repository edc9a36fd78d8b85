r"""Peaks, basins and prominences of fields on a grid.

Every grid point climbs to its highest neighbour until it stands on a local maximum: the points that end on the
same one are its *basin*. Two basins meet at a *pass*, the highest of the lower ends of the steps between them.
Joining basins over passes from the highest down gives each peak the pass over which it first meets a higher one; its
*prominence* is its height above that pass. The outside of the box can be made a neighbour of the edge: a peak whose
basin drains over the edge first is measured against the edge.

All fields of a batch are handled in one go: simulations of the noise need hundreds.

Clusters of a released density: which mode each place leads up to, and how much of the mass lies there.

Every grid point climbs to a peak (:mod:`fogline.density.modes.peaks`). Peaks that are not modes are bumps of the
noise: going down from the highest pass, each joins the first neighbour it meets, but two modes are never joined.
Places where the density is below twice its noise, and bumps that no pass above that level leads to, belong to
no mode. All of it reads released numbers only.

The share of a basin A is the linear functional :math:`\hat N_A/\hat n` of the released sums, so the variance that
the privacy noise gives it is known exactly for the region as drawn; :math:`s(1-s)/\hat n` is added for the draw of
the records.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft as scipy_fft

from fogline._typing import BandwidthLike, BoolArray, FloatArray, IntArray
from fogline.density.grid_reading import Grid, Reading
from fogline.density.leaf_reading import LeafReading
from fogline.density.leaves import BucketCounts, LeafRelease
from fogline.density.point_masses import take_out_heaps
from fogline.density.posterior.field import label_leaves

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = [
    "Basins",
    "Peaks",
    "basins",
    "find_peaks",
    "find_peaks_both_ways",
    "join_basins",
    "line_prominences",
    "wall_prominences",
]


@dataclass(frozen=True)
class Peaks:
    """Local maxima of a batch of fields.

    Attributes
    ----------
    field : array of int
        Which field of the batch each peak belongs to.
    cell : array of int
        Flat index of the peak's grid point within its field.
    height : array
    prominence : array
        Height above the pass to a higher peak or to the outside.
    interior : array of bool
        Whether the peak lies off the edge of the grid.
    basin : array of int of the batch's shape
        Number of the peak to which each grid point climbs.
    """

    field: IntArray
    cell: IntArray
    height: FloatArray
    prominence: FloatArray
    interior: BoolArray
    basin: IntArray


def find_peaks(fields: FloatArray, *, outside: bool = True) -> Peaks:
    """All local maxima of a batch of fields of shape (s, n_1, ..., n_d), with their prominences.

    Without an ``outside`` the box has no way out: a peak at a wall is measured against what lies inside, and the
    highest of all against the lowest place.
    """
    return find_peaks_both_ways(fields)[0 if outside else 1]


def find_peaks_both_ways(fields: FloatArray) -> tuple[Peaks, Peaks]:
    """Peaks with a way out and without one, as of :func:`find_peaks`."""
    summits, basin = _climbed(fields)
    flat = fields.reshape(len(fields), -1)
    size = flat.shape[1]
    heights = flat.ravel()[summits]
    found = []
    for passes in _key_passes(fields, basin, heights):
        prominence = heights - passes
        highest = np.isinf(prominence)
        prominence[highest] = heights[highest] - flat.min(axis=1)[summits[highest] // size]
        interior = ~_edge(fields.shape[1:]).ravel()[summits % size]
        found.append(Peaks(summits // size, summits % size, heights, prominence, interior, basin))
    return found[0], found[1]


def _climbed(fields: FloatArray) -> tuple[IntArray, IntArray]:
    """Summits, as indices of the flat batch, and the number of the summit that each point climbs to."""
    size = int(np.prod(fields.shape[1:]))
    uphill = _uphill(fields).reshape(len(fields), size)
    root = _jumped((uphill + size * np.arange(len(fields))[:, None]).ravel())
    # Fields of the batch keep apart since their points have numbers of their own.
    summits = np.flatnonzero(root == np.arange(len(root)))
    number = np.empty(len(root), dtype=np.int64)
    number[summits] = np.arange(len(summits))
    return summits, number[root].reshape(fields.shape)


def line_prominences(fields: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Peaks inside fields on one axis, of shape (s, n): field, cell and prominence, as of :func:`find_peaks`.

    One pass over the batch, for simulations: no basins, and nothing of peaks at walls.

    Examples
    --------
    >>> import numpy as np
    >>> [part.tolist() for part in line_prominences(np.array([[0.0, 3.0, 2.5, 2.75, 0.0], [2.0, 1.0, 1.5, 1.0, 1.0]]))]
    [[0, 0, 1], [1, 3, 2], [3.0, 0.25, 0.5]]
    """
    size, n = fields.shape
    inner = np.zeros((size, n), dtype=bool)
    inner[:, 1:-1] = (fields[:, 1:-1] > fields[:, :-2]) & _falls(fields)[:, 1:-1]
    flat, cells = fields.ravel(), np.flatnonzero(inner)
    # The beginning of each field stands for the outside, higher than all; valleys lie between neighbours on the list.
    places = np.sort(np.concatenate([n * np.arange(size), cells]))
    height = np.append(np.where(inner.ravel()[places], flat[places], np.inf), np.inf)
    valley = np.minimum.reduceat(flat, places)
    number, found = np.arange(len(height)), np.zeros(len(height))
    while np.isfinite(height).any():
        right = valley[1:] >= valley[:-1]
        beyond = np.where(right, height[2:], height[:-2])
        # Over the higher of its two valleys a peak meets a higher one: this is its pass, and it is joined to that.
        done = np.isfinite(height[1:-1]) & (beyond >= height[1:-1])
        joined = np.flatnonzero(done) + 1
        found[number[joined]] = height[joined] - np.maximum(valley[joined - 1], valley[joined])
        kept = np.setdiff1d(np.arange(len(height)), joined, assume_unique=True)
        height, number = height[kept], number[kept]
        valley = np.minimum.reduceat(valley, kept[:-1])
    prominence = found[:-1][inner.ravel()[places]]
    return cells // n, cells % n, prominence


def _falls(fields: FloatArray) -> BoolArray:
    """Whether the first different value to the right of each point is lower."""
    size, n = fields.shape
    changes = np.full((size, n), n - 1)
    changes[:, :-1] = np.where(np.diff(fields, axis=1) != 0, np.arange(1, n), n - 1)
    following = np.minimum.accumulate(changes[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.take_along_axis(fields, following, axis=1) < fields)


def wall_prominences(fields: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Peaks at the two ends of fields on one axis: field, cell and prominence, without a way out.

    Examples
    --------
    >>> import numpy as np
    >>> [part.tolist() for part in wall_prominences(np.array([[2.0, 1.0, 3.0, 0.5, 0.75]]))]
    [[0, 0], [0, 4], [1.0, 0.25]]
    """
    found = []
    last = fields.shape[1] - 1
    for cell, inward in ((0, fields), (last, fields[:, ::-1])):
        peak = np.flatnonzero(inward[:, 0] > inward[:, 1]) if last else np.zeros(0, dtype=np.int64)
        rows = inward[peak]
        lowest = np.minimum.accumulate(rows, axis=1)
        higher = rows > rows[:, :1]
        until = np.where(higher.any(axis=1), np.argmax(higher, axis=1), last)
        found.append((peak, np.full(len(peak), cell), rows[:, 0] - lowest[np.arange(len(peak)), until]))
    field, cells, prominence = (np.concatenate(part) for part in zip(*found, strict=True))
    return field, cells, prominence


def join_basins(values: FloatArray, basin: IntArray, marked: BoolArray, level: float = -np.inf) -> IntArray:
    """Join the basins of one field over their passes, highest first, but never two marked peaks.

    Parameters
    ----------
    values, basin : arrays of the field's shape
        The field and, as of :func:`find_peaks`, the peak that each point climbs to.
    marked : array of bool, one per peak
        Peaks to be kept apart; all others join the first neighbour they meet.
    level : float
        Passes below are not gone over.

    Returns
    -------
    array of int
        One peak of each peak's component, the same for all of them.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([0.0, 3.0, 2.5, 2.7, 0.0, 2.0, 0.0])
    >>> basin = find_peaks(values[None]).basin[0]
    >>> root = join_basins(values, basin, np.array([True, False, True]))
    >>> bool(root[0] == root[1]), bool(root[0] == root[2])
    (True, False)
    """
    labelled = marked.copy()
    parent = np.arange(len(marked))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = int(parent[i])
        return i

    for a, b in _passes(values, basin, len(marked), level):
        first, second = find(a), find(b)
        # Two components that both hold a marked peak stay apart: they are two modes.
        if first != second and not (labelled[first] and labelled[second]):
            parent[first] = second
            labelled[second] = labelled[first] or labelled[second]
    return np.array([find(i) for i in range(len(marked))], dtype=np.int64)


def _passes(values: FloatArray, basin: IntArray, peaks: int, level: float) -> list[tuple[int, int]]:
    """Pairs of basins that touch above ``level``, highest pass first."""
    heights, pairs = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for axis in range(values.ndim):
        here = (slice(None),) * axis + (slice(None, -1),)
        there = (slice(None),) * axis + (slice(1, None),)
        low = np.minimum(values[here], values[there])
        a, b = basin[here], basin[there]
        meets = (a != b) & (low >= level)
        heights.append(low[meets])
        pairs.append(np.minimum(a, b)[meets] * peaks + np.maximum(a, b)[meets])
    height, pair = np.concatenate(heights), np.concatenate(pairs)
    # Stable, so that equal heights join in the same order on every machine.
    order = np.argsort(-height, kind="stable")
    _, first = np.unique(pair[order], return_index=True)
    kept = pair[order][np.sort(first)]
    return list(zip((kept // peaks).tolist(), (kept % peaks).tolist(), strict=True))


def _edge(shape: tuple[int, ...]) -> BoolArray:
    edge = np.zeros(shape, dtype=bool)
    for axis in range(len(shape)):
        line = [slice(None)] * len(shape)
        for end in (0, -1):
            line[axis] = slice(end, end + 1 or None)
            edge[tuple(line)] = True
    return edge


def _offsets(d: int) -> list[tuple[int, ...]]:
    """One of each pair of opposite neighbours, diagonals included."""
    return [o for o in product((-1, 0, 1), repeat=d) if o > (0,) * d]


def _slices(offset: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    here = tuple(slice(max(0, -o), -o if o > 0 else None) for o in offset)
    there = tuple(slice(max(0, o), o if o < 0 else None) for o in offset)
    return (slice(None), *here), (slice(None), *there)


def _uphill(fields: FloatArray) -> IntArray:
    """Flat index (within a field) of each point's highest neighbour, or of itself on a maximum."""
    best = fields.copy()
    index = np.broadcast_to(np.arange(int(np.prod(fields.shape[1:]))).reshape(fields.shape[1:]), fields.shape)
    to = index.copy()
    for offset in _offsets(fields.ndim - 1):
        for a, b in (_slices(offset), _slices(offset)[::-1]):
            higher = fields[b] > best[a]
            np.copyto(best[a], fields[b], where=higher)
            np.copyto(to[a], index[b], where=higher)
    return to


def _key_passes(fields: FloatArray, basin: IntArray, heights: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Height of the pass over which each peak first meets a higher one: or the outside; and where there is no way out.

    In rounds, all peaks at once. A peak whose highest pass leads to a higher peak is done: that is its pass, and its
    basin becomes a part of the other's. At least the lower end of the highest pass of all is done in each round, and
    most often more than half of the peaks are. A basin that reaches the edge at height e and is joined at height p
    gives the one that it joins a way out of :math:`\min(e, p)`.
    """
    peaks, edge = len(heights), _edge(fields.shape[1:])
    levels, ends = [], []
    for offset in np.eye(fields.ndim - 1, dtype=int).tolist():  # passes lead over faces: a third of the pairs or less
        a, b = _slices(tuple(offset))
        differ = basin[a] != basin[b]
        levels.append(np.minimum(fields[a][differ], fields[b][differ]))
        ends.append(np.stack([basin[a][differ], basin[b][differ]]))
    level, (first, second) = np.concatenate(levels), np.concatenate(ends, axis=1)
    out, closed = np.full(peaks, -np.inf), np.full(peaks, -np.inf)
    np.maximum.at(out, basin[:, edge].ravel(), fields[:, edge].ravel())
    order = np.empty(peaks, dtype=np.int64)  # of the heights: of two that are equal, the later one counts as higher
    order[np.argsort(heights, kind="stable")] = np.arange(peaks)
    way_out = out.copy()
    while len(level):
        highest = np.full(peaks, -np.inf)
        np.maximum.at(highest, first, level)
        np.maximum.at(highest, second, level)
        onto = np.arange(peaks)
        for here, there in ((first, second), (second, first)):
            done = (level == highest[here]) & (order[there] > order[here])
            onto[here[done]] = there[done]
        joined = np.flatnonzero(onto != np.arange(peaks))
        closed[joined] = highest[joined]
        way_out[joined] = np.maximum(highest[joined], out[joined])
        onto = _jumped(onto)
        np.maximum.at(out, onto[joined], np.minimum(highest[joined], out[joined]))
        first, second = onto[first], onto[second]
        apart = first != second
        level, first, second = level[apart], first[apart], second[apart]
    # Those that no higher one is left to meet can only leave.
    return np.where(np.isneginf(closed), out, way_out), closed


def _jumped(onto: IntArray) -> IntArray:
    """Where each path ends that leads from every number to the next: it halves in every round."""
    while True:
        further = onto[onto]
        if np.array_equal(further, onto):
            return onto
        onto = further


BASIN_POINTS_PER_BANDWIDTH = 4.0
"""Grid points per bandwidth."""

BASIN_FLOOR = 2.0
"""A place belongs to a mode where the density is at least this many deviations of its privacy noise."""


@dataclass(frozen=True, eq=False)
class Basins:
    """Basins of attraction of the modes, on a grid.

    Attributes
    ----------
    grid : Grid
        Density on a regular grid over the box.
    labels : array of int of the grid's shape
        Number of the mode that each grid point leads to, -1 where the density is lost in the noise.
    shares : array of shape (k,)
        Share of the released mass in each basin.
    share_errors : array of shape (k,)
        Standard error of each share, privacy and sampling together, for the region as drawn. There is no smoothing in
        it, since counts are added up; that the region would be drawn elsewhere next time is not in it.
    wall_shares : array of shape (w,)
        Share in the area of each place at a wall that was given beside the modes.
    wall_share_errors : array of shape (w,)
        Standard errors of these, as of `share_errors`: privacy and sampling, and no smoothing.
    """

    grid: Grid
    labels: IntArray
    shares: FloatArray
    share_errors: FloatArray
    wall_shares: FloatArray = field(default_factory=lambda: np.zeros(0))
    wall_share_errors: FloatArray = field(default_factory=lambda: np.zeros(0))


def basins(
    density: PrivateDensity, modes: ArrayLike, bandwidth: BandwidthLike = None, *, boundary: ArrayLike = ()
) -> Basins:
    """Divide the box among the modes of a released density.

    Areas do not overlap. In a release on leaves point masses belong to no area, so that the shares of modes, of places
    at walls and of point masses together are at most 1.

    Parameters
    ----------
    density : PrivateDensity
    modes : array-like of shape (k, d)
        Where the modes are, such as ``PrivateModes.modes_``; k may be 0.
    bandwidth : optional
        As in :meth:`PrivateDensity.pdf`.
    boundary : array-like of shape (w, d)
        Places at walls that have areas of their own, such as those of ``PrivateModes.boundary_modes_``; releases on
        leaves only.

    Returns
    -------
    Basins

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(3, 0.5, 30_000), rng.normal(7, 0.5, 20_000)])
    >>> density = DensitySketch([(0, 10)]).update(x[:, None]).release(epsilon=1.0, delta=1e-6)
    >>> found = basins(density, [[3.0], [7.0]])
    >>> found.shares.round(1).tolist()
    [0.6, 0.4]
    """
    reading = density.reading(bandwidth)
    grid = reading.on_grid(BASIN_POINTS_PER_BANDWIDTH)
    places = np.asarray(modes, dtype=np.float64).reshape(-1, density.spec.d)
    if density.leaves is not None:
        ends = np.asarray(boundary, dtype=np.float64).reshape(-1, density.spec.d)
        return _leaf_basins(density, grid, np.concatenate([places, ends]), len(places), reading.bandwidth)
    labels = _labels(grid, places, reading)
    shape = reading.grid_shape(BASIN_POINTS_PER_BANDWIDTH)
    shares = np.zeros(len(places))
    errors = np.zeros(len(places))
    weights = _cell_volumes(grid)
    for k in range(len(places)):
        region = np.where(labels == k, weights, 0.0)
        shares[k] = np.sum(region * grid.values)
        noise = _privacy_variance(density, reading, shape, region, shares[k])
        inside = float(np.clip(shares[k], 0.0, 1.0))
        # The region was drawn around the same noise; that it would be drawn elsewhere next time is not in the error.
        errors[k] = np.sqrt(noise + inside * (1 - inside) / density.count)
    return Basins(grid, labels, shares, errors)


def _leaf_basins(density: PrivateDensity, grid: Grid, places: FloatArray, k: int, bandwidth: FloatArray) -> Basins:
    """Areas of k modes and of places at walls, in the density without its point masses."""
    release = density.leaves
    assert release is not None
    found = take_out_heaps(release)
    counts = BucketCounts(release.counts.boxes, np.rint(found.in_order).astype(np.int64), release.counts.noise)
    reading = LeafReading(LeafRelease(release.spec, counts, counts), density.count, bandwidth)
    smooth = reading.on_grid(BASIN_POINTS_PER_BANDWIDTH)
    labels = _labels(smooth, places, reading)
    left = max(1.0 - sum(heap.share for heap in found.heaps), 0.0)
    # Counts far out are noise around few records: they count for the hill that they lead up to, as all others do.
    whole = _labels(smooth, places, reading, -np.inf)
    shares, errors = _leaf_shares(density, grid, whole, len(places), found.in_order, left)
    return Basins(grid, np.where(labels < k, labels, -1), shares[:k], errors[:k], shares[k:], errors[k:])


def _leaf_shares(
    density: PrivateDensity, grid: Grid, labels: IntArray, k: int, kept: FloatArray, left: float
) -> tuple[FloatArray, FloatArray]:
    """Shares of regions and their errors in a release on leaves: sums of counts, each by the part of it inside.

    Parameters
    ----------
    kept : array of shape (buckets,)
        Counts without point masses.
    left : float
        Share of the records beside point masses.
    """
    spec, stage = density.spec, density.leaves.counts  # type: ignore[union-attr]
    bucket = label_leaves(stage.boxes, spec.leaves).ravel()
    centres = [(spec.edges(axis)[1:] + spec.edges(axis)[:-1]) / 2 for axis in range(spec.d)]
    index = [
        np.clip(np.rint((c - a[0]) / (a[1] - a[0])).astype(np.int64), 0, len(a) - 1)
        for c, a in zip(centres, grid.axes, strict=True)
    ]
    owner = labels[np.ix_(*index)].ravel()
    shares, errors = np.zeros(k), np.zeros(k)
    whole = max(float(kept.sum()), 1.0)
    for i in range(k):
        inside = np.bincount(bucket, owner == i, minlength=len(kept)) / stage.sizes
        shares[i] = left * max(float(inside @ kept), 0.0) / whole
        own = float(np.clip(shares[i], 0.0, 1.0))
        moved = stage.noise.variance * float(np.sum((inside - own) ** 2)) / density.count**2
        errors[i] = np.sqrt(moved + own * (1 - own) / density.count)
    # What belongs to no area may come out negative by noise: the others then share all that there is.
    return shares * min(1.0, left / max(float(shares.sum()), 1e-300)), errors


def _labels(grid: Grid, modes: FloatArray, reading: Reading | LeafReading, floor: float = BASIN_FLOOR) -> IntArray:
    values = grid.values
    if not len(modes):
        return np.full(values.shape, -1, dtype=np.int64)
    level = floor * reading.noise_sd
    peaks = find_peaks(values[None])
    basin = peaks.basin[0]
    home = basin[_nearest(grid, modes)]
    marked = np.zeros(len(peaks.height), dtype=bool)
    marked[home] = True
    # Bumps that are no mode belong to the mode they lead to, not to themselves.
    root = join_basins(values, basin, marked, level)
    labels = np.full(values.shape, -1, dtype=np.int64)
    component = root[basin]
    for owner in np.unique(root[home]):
        members = np.flatnonzero(root[home] == owner)
        region = np.flatnonzero((component == owner) & (values >= level))
        if len(members) == 1:
            labels.flat[region] = members[0]
        else:  # one peak at this bandwidth, several modes at finer ones: to the nearest of them
            offset = (grid.points(region)[:, None] - modes[members]) / reading.bandwidth
            labels.flat[region] = members[np.argmin(np.sum(offset**2, axis=2), axis=1)]
    return labels


def _nearest(grid: Grid, points: FloatArray) -> tuple[IntArray, ...]:
    return tuple(
        np.clip(np.rint((points[:, j] - a[0]) / (a[1] - a[0])).astype(np.int64), 0, len(a) - 1)
        for j, a in enumerate(grid.axes)
    )


def _cell_volumes(grid: Grid) -> FloatArray:
    """Weights of the trapezoid rule."""
    total = np.ones(grid.values.shape)
    for j, axis in enumerate(grid.axes):
        width = np.full(len(axis), axis[1] - axis[0])
        width[[0, -1]] /= 2
        total *= width.reshape([-1 if i == j else 1 for i in range(len(grid.axes))])
    return total


def _privacy_variance(
    density: PrivateDensity, reading: Reading, shape: tuple[int, ...], region: FloatArray, share: float
) -> float:
    """Variance of a share from the privacy noise, that of the count in its divisor included."""
    torus = np.zeros(shape)
    torus[tuple(slice(0, n) for n in region.shape)] = region
    spectrum = scipy_fft.fftn(torus)[tuple(reading.frequencies.T % np.array(shape)[:, None])]
    moved = np.abs(spectrum) * reading.noise
    # The zero frequency is the count: it moves the mass of the region and the divisor at once.
    moved[0] = density.count_sd * abs(float(spectrum[0].real) * reading.gain[0] - share / density.count)
    return float(np.sum(moved**2))
