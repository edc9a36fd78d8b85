r"""Point masses: values that hold a share of the records by themselves. One rule, for every reading of a release.

A cell of released counts with content c and density :math:`c/s` (s leaves) is a point mass if all of these hold:

1. it is narrow: one leaf, or at most a two-hundredth of the range;
2. its density is above `contrast` times that of its densest neighbour, and, at a wall, above `contrast` times what a
   density that falls exponentially from the wall would have there, by its next two cells:
   :math:`\varrho_1 (\varrho_1/\varrho_2)^{(x_1 - x_0)/(x_2 - x_1)}`;
3. the excess over the mean level :math:`\bar\varrho` of its neighbours, :math:`c - \bar\varrho s`, is above
   `deviations` times its error (noise of the cell and of its neighbours, and the draw of the records) and above
   `least_share` of all records.

The share is the excess. At a wall the density beside the point mass may go on as it is or fall to zero, so for the
share half of the level is taken away, with an error of :math:`\bar\varrho s/\sqrt{12}`.

With several columns the cells of the rule are the buckets, and then, for each column, its slabs: all buckets that are
one leaf thin along the column, in the same leaf, taken together and compared with what lies beside them. Thicker
buckets around that leaf may hold more of the value, from none to all of their content u: the share is what is seen, and
its error has :math:`u/\sqrt 3`, the root mean square of what may be missing.

In one column that was declared continuous but is rounded, every value would be a point mass. There the rule is applied
as if the step had been declared (:func:`lattice_of`), and the leaves of the values are kept beside it (`teeth`), since
a question whose range cuts such a leaf must still take its content as a whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec
from fogline.density.posterior.field import Mesh

__all__ = [
    "POINT_MASSES",
    "ColumnHeaps",
    "Heap",
    "HeapsAndRest",
    "PointMassTuning",
    "column_heaps",
    "heaps_of_contents",
    "lattice_of",
    "take_out_heaps",
]


@dataclass(frozen=True)
class PointMassTuning:
    """What is tuned of the rule.

    Attributes
    ----------
    contrast, lattice_contrast : float
        How many times denser than its neighbours a point mass is, on a continuous column and on one with a step.
    deviations, least_share : float
        Deviations of the noise by which it stands out, and the least share of the records that it holds.
    widest : float
        Widest bucket that may be one value, as a part of the range.
    least_values, least_teeth : int
        Values that a lattice has at least, and how many of them must be seen one by one.
    clear_gaps, in_gaps : float
        A column is taken for a lattice where its gaps would hold this many deviations of the noise if it were none, and
        hold at most this part of it.
    """

    contrast: float = 4.0
    lattice_contrast: float = 2.0
    deviations: float = 4.5
    least_share: float = 2e-3
    widest: float = 1 / 200
    least_values: int = 8
    least_teeth: int = 3
    clear_gaps: float = 8.0
    in_gaps: float = 0.15


POINT_MASSES = PointMassTuning()


@dataclass(frozen=True, eq=False)
class Heap:
    """A point mass.

    Attributes
    ----------
    box : int array of shape (d, 2)
        Its leaves.
    share, error : float
        Part of the records that it holds beyond its surroundings, and the standard error of that: privacy noise, the
        sampling of the records and smoothing: what lies beside it at a wall, and what thicker buckets may hold of it.
    axis : int or None
        The column whose value it is, whatever the others are; None for a cell of all columns.
    """

    box: IntArray
    share: float
    error: float
    axis: int | None = None


@dataclass(frozen=True, eq=False)
class HeapsAndRest:
    """Point masses of a release, largest first, and its counts without them.

    Attributes
    ----------
    release : LeafRelease
        The release as it was read: on the lattice, where a column is rounded.
    kept : array of shape (buckets,)
        Its counts, point masses replaced by the level around them.
    in_order : array of shape (buckets of the release that was given,)
        The same in the order of that release; buckets without a value of the lattice keep their counts.
    heaps : tuple of Heap
    spacing : float
        Step of rounded values, in data units, where it was not declared but seen; else 0.
    """

    release: LeafRelease
    kept: FloatArray
    in_order: FloatArray
    heaps: tuple[Heap, ...]
    spacing: float = 0.0


@dataclass(frozen=True, eq=False)
class ColumnHeaps:
    """Leaves of one column that are point masses: starts and stops; and leaves of values of a rounded column."""

    cells: tuple[tuple[int, int], ...] = ()
    teeth: tuple[int, ...] = ()


def take_out_heaps(release: LeafRelease) -> HeapsAndRest:
    """Find the point masses of a release and take them out of its counts.

    Examples
    --------
    >>> from fogline.density.leaves import Noise
    >>> spec = LeafSpec.plan([(0, 9)], steps=1)
    >>> boxes = np.array([[[i, i + 1]] for i in range(10)])
    >>> stage = BucketCounts(boxes, np.array([300, 80, 100, 120, 100, 80, 60, 40, 20, 10]), Noise("laplace", 2.0))
    >>> found = take_out_heaps(LeafRelease(spec, stage, stage))
    >>> [heap.box.tolist() for heap in found.heaps], found.kept[:3].tolist()
    ([[[0, 1]]], [80.0, 80.0, 100.0])
    """
    if (rounded := lattice_of(release)) is not None:
        lattice, on_it = rounded
        found = take_out_heaps(lattice)
        in_order = release.counts.counts.astype(np.float64)
        in_order[on_it] = found.kept
        return HeapsAndRest(lattice, found.kept, in_order, found.heaps, lattice.spec.steps[0])
    spec, stage = release.spec, release.counts
    counts, total = stage.counts.astype(np.float64), max(release.total, 1.0)
    mesh = Mesh.of(stage.boxes, spec.leaves)
    first, second = np.concatenate([mesh.first, mesh.second]), np.concatenate([mesh.second, mesh.first])
    is_heap, level, excess, error = _heap_buckets(release, (first, second))
    kept = np.where(is_heap, level, counts)
    heaps = [Heap(stage.boxes[k], excess[k] / total, error[k] / total) for k in np.flatnonzero(is_heap)]
    for axis in range(spec.d if spec.d > 1 else 0):
        kept, slabs = _slab_heaps(release, kept, axis, (first, second))
        heaps += slabs
    heaps.sort(key=lambda heap: -heap.share)
    return HeapsAndRest(release, kept, kept, tuple(heaps))


def column_heaps(release: LeafRelease, axis: int) -> ColumnHeaps:
    """Point masses of one column, whatever the others are.

    Examples
    --------
    >>> from fogline.density.leaves import Noise
    >>> spec = LeafSpec.plan([(0, 8)], leaves=[8])
    >>> boxes = np.array([[[i, i + 1]] for i in range(8)])
    >>> stage = BucketCounts(boxes, np.array([50, 60, 70, 900, 70, 60, 50, 40]), Noise("laplace", 2.0))
    >>> column_heaps(LeafRelease(spec, stage, stage), 0).cells
    ((3, 4),)
    """
    if release.spec.d > 1:
        mesh = Mesh.of(release.counts.boxes, release.spec.leaves)
        faces = np.concatenate([mesh.first, mesh.second]), np.concatenate([mesh.second, mesh.first])
        _, found = _slab_heaps(release, release.counts.counts.astype(np.float64), axis, faces)
        return ColumnHeaps(tuple(sorted((int(h.box[axis, 0]), int(h.box[axis, 1])) for h in found)))
    found_all = take_out_heaps(release)
    if not found_all.spacing:
        return ColumnHeaps(tuple(sorted((int(h.box[0, 0]), int(h.box[0, 1])) for h in found_all.heaps)))
    return _of_rounded(release, found_all)


def _of_rounded(release: LeafRelease, found: HeapsAndRest) -> ColumnHeaps:
    """Leaves of the values of a rounded column, where such a leaf is a bucket of its own."""
    stage, step = release.counts, found.spacing
    low, width = float(release.spec.edges(0)[0]), float(release.spec.cell_widths[0])
    start, stop = stage.boxes[:, 0, 0], stage.boxes[:, 0, 1]
    near = np.rint((low + (start + stop) / 2 * width) / step) * step
    leaf = np.clip(np.floor((near - low) / width + 1e-9).astype(np.int64), 0, release.spec.leaves[0] - 1)
    alone = (stop - start == 1) & (leaf == start)
    large = stage.counts > max(POINT_MASSES.deviations * stage.noise.sd, POINT_MASSES.least_share * release.total)
    origin = float(found.release.spec.bounds[0][0])
    values = {round((origin + step * int(h.box[0, 0])) / step) for h in found.heaps if h.box[0, 1] - h.box[0, 0] == 1}
    teeth = np.flatnonzero(alone & large).tolist()
    cells = [(int(start[k]), int(stop[k])) for k in teeth if round(near[k] / step) in values]
    return ColumnHeaps(tuple(cells), tuple(int(start[k]) for k in teeth))


def heaps_of_contents(contents: FloatArray, draws: FloatArray, lattice: bool) -> ColumnHeaps:
    """Apply the rule to estimated shares of leaves and draws of them, for a release that has no counts.

    Examples
    --------
    >>> p = np.array([0.05, 0.05, 0.7, 0.05, 0.05, 0.05, 0.05])
    >>> heaps_of_contents(p, p + 0.001 * np.random.default_rng(0).normal(size=(50, 7)), False).cells
    ((2, 3),)
    """
    if len(contents) < 3:
        return ColumnHeaps()
    padded = np.pad(contents, 1, mode="reflect")
    left, right = padded[:-2], padded[2:]
    mean = (left + right) / 2
    error = np.sqrt(np.mean((draws - contents) ** 2, axis=0) * 1.5)
    floor = float(error.min())
    falls = [_falling(contents[order], np.arange(3.0), floor) for order in ([0, 1, 2], [-1, -2, -3])]
    highest = np.maximum(left, right)
    highest[[0, -1]] = np.maximum(highest[[0, -1]], falls)
    found = _stands_out(contents, highest, contents - mean, error, 1.0, lattice)
    return ColumnHeaps(tuple((int(k), int(k) + 1) for k in np.flatnonzero(found)))


def _stands_out(
    density: FloatArray, highest: FloatArray, excess: FloatArray, error: FloatArray, total: float, lattice: bool
) -> BoolArray:
    """Parts 2 and 3 of the rule."""
    contrast = POINT_MASSES.lattice_contrast if lattice else POINT_MASSES.contrast
    least = np.maximum(POINT_MASSES.deviations * error, POINT_MASSES.least_share * total)
    return np.asarray((density > contrast * highest) & (excess > least))


def _falling(density: FloatArray, places: FloatArray, noise: float) -> float:
    """Density of the first of three cells, if it falls exponentially from the first on at the rate of the others."""
    one, two = max(float(density[1]), 0.0), max(float(density[2]), 0.0) + noise
    if one <= two:
        return one
    return float(one * (one / two) ** ((places[1] - places[0]) / (places[2] - places[1])))


def _heap_buckets(
    release: LeafRelease, faces: tuple[IntArray, IntArray]
) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """Which buckets are point masses, the level around, what they hold beyond it, and its error; in records."""
    spec, stage, (first, second) = release.spec, release.counts, faces
    sizes, counts = stage.sizes.astype(np.float64), stage.counts.astype(np.float64)
    total = max(release.total, 1.0)
    spans = stage.boxes[:, :, 1] - stage.boxes[:, :, 0]
    narrow = ((spans == 1) | (spans / np.array(spec.leaves) <= POINT_MASSES.widest)).all(axis=1)
    neighbours = np.bincount(first, minlength=len(counts))
    if not (neighbours > 0).any():  # one bucket: one value for all that anybody knows
        error = np.sqrt(stage.noise.variance + np.maximum(counts, 0.0))
        return narrow & (counts > POINT_MASSES.deviations * stage.noise.sd), 0.0 * counts, counts, error
    density = np.maximum(counts, 0.0) / sizes
    highest = np.zeros(len(counts))
    np.maximum.at(highest, first, density[second])
    # Noise in a neighbour must not hide a heap, nor its absence make one.
    level = np.bincount(first, density[second], minlength=len(counts)) / np.maximum(neighbours, 1) * sizes
    at_wall = ((stage.boxes[:, :, 0] == 0) | (stage.boxes[:, :, 1] == np.array(spec.leaves))).any(axis=1)
    if spec.d == 1 and len(counts) >= 3:
        middle = stage.boxes[:, 0].mean(axis=1)
        for order in ([0, 1, 2], [-1, -2, -3]):
            noise = stage.noise.sd / float(sizes[order[2]])
            highest[order[0]] = max(highest[order[0]], _falling(density[order], middle[order], noise))
    noise_part = stage.noise.variance * (1 + 1 / np.maximum(neighbours, 1)) + np.maximum(counts, 0.0)
    lattice = all(bool(step) for step in spec.steps)
    found = narrow & (neighbours > 0)
    found &= _stands_out(density, highest, counts - level, np.sqrt(noise_part), total, lattice)
    unknown = np.where(at_wall, level / math.sqrt(12), 0.0)
    return found, level, counts - np.where(at_wall, level / 2, level), np.sqrt(noise_part + unknown**2)


def _slab_heaps(
    release: LeafRelease, counts: FloatArray, axis: int, faces: tuple[IntArray, IntArray]
) -> tuple[FloatArray, list[Heap]]:
    """Point masses of one of several columns, whatever the others are: zeros, most often; and the counts without them.

    The partition cuts full boxes at the outermost leaves, and lattices into single values. What the thin buckets of one
    leaf hold beyond their neighbours along the column is added up over all of them.
    """
    spec, stage, found = release.spec, release.counts, list[Heap]()
    sizes, (first, second) = stage.sizes.astype(np.float64), faces
    start, stop = stage.boxes[:, axis, 0], stage.boxes[:, axis, 1]
    thin, total = stop - start == 1, max(release.total, 1.0)
    density = np.maximum(counts, 0.0) / sizes
    sides = []
    for across in (stop[second] == start[first], start[second] == stop[first]):
        across = across & thin[first]
        faced = np.bincount(first[across], minlength=len(counts))
        mean = np.bincount(first[across], density[second[across]], minlength=len(counts)) / np.maximum(faced, 1)
        sides.append((faced > 0, mean * sizes))
    last, kept = spec.leaves[axis] - 1, counts
    for leaf in range(spec.leaves[axis]):
        at_wall = leaf in (0, last)
        slab = np.flatnonzero(thin & (start == leaf) & (sides[0][0] | sides[1][0]))
        if not len(slab):
            continue
        seen = float(counts[slab].sum())
        levels = [float(level[slab].sum()) for faced, level in sides if faced[slab].any()]
        around = sum(levels) / len(levels)
        highest = np.array([max(*levels, _marginal_fall(stage, counts, axis, leaf) if at_wall else 0.0)])
        error = math.sqrt(2 * len(slab) * stage.noise.variance + max(seen, 0.0))
        measured = np.array([seen]), highest, np.array([seen - around]), np.array([error])
        if not _stands_out(*measured, total, bool(spec.steps[axis]))[0]:
            continue
        part = 0.5 if at_wall else 1.0
        kept = kept.copy()
        kept[slab] = sum(level[slab] for faced, level in sides if faced[slab].any()) / len(levels)
        box = np.stack([np.zeros(spec.d, dtype=np.int64), np.array(spec.leaves)], axis=1)
        box[axis] = leaf, leaf + 1
        unknown = around / math.sqrt(12) if at_wall else 0.0
        # Buckets that are thicker do not tell how many of their records have the value: none, all, or anything between.
        hidden = max(float(counts[~thin & (start <= leaf) & (stop > leaf)].sum()), 0.0) / math.sqrt(3)
        error = math.hypot(error, unknown, hidden)
        found.append(Heap(box, (seen - part * around) / total, error / total, axis))
    return kept, found


def _marginal_fall(stage: BucketCounts, counts: FloatArray, axis: int, leaf: int) -> float:
    """What an exponential fall from a wall would put into the outermost leaf of a column, in records."""
    start, stop = stage.boxes[:, axis, 0], stage.boxes[:, axis, 1]
    order = [0, 1, 2] if leaf == 0 else [leaf, leaf - 1, leaf - 2]
    if min(order) < 0:
        return 0.0
    content, buckets = np.zeros(3), 1
    for k, place in enumerate(order):
        inside = (start <= place) & (stop > place)
        content[k], buckets = float((counts / (stop - start))[inside].sum()), int(inside.sum())
    return _falling(content, np.arange(3.0), stage.noise.sd * math.sqrt(max(buckets, 1)))


# -- rounded columns -----------------------------------------------------------------------------------------


def lattice_of(release: LeafRelease) -> tuple[LeafRelease, BoolArray] | None:
    """Counts as if a step had been declared, where a column that was declared continuous is rounded; None elsewhere.

    Beside them, which buckets hold a value of the lattice.

    Seen through buckets of many widths, rounded values are heaps here and ripples there. The steps 1, 2, 5 and their
    decimal multiples are tried, the widest first. If the records are multiples of a step, then buckets without any
    multiple are empty: they must hold far less than the level around them tells, which must be far above the noise.
    """
    spec, stage = release.spec, release.counts
    if spec.d != 1 or spec.steps[0]:
        return None
    (low, high), width = spec.bounds[0], float(spec.cell_widths[0])
    edges = low + width * np.append(stage.boxes[:, 0, 0], stage.boxes[-1, 0, 1])
    counts = stage.counts.astype(np.float64)
    mass = np.concatenate([[0.0], np.cumsum(counts)])
    sizes, middle = np.diff(edges), (edges[1:] + edges[:-1]) / 2
    largest = math.floor(math.log10((high - low) / POINT_MASSES.least_values))
    for step in sorted((m * 10.0**k for k in range(largest - 3, largest + 1) for m in (1, 2, 5)), reverse=True):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if not POINT_MASSES.least_values <= last - first <= spec.leaves[0] / 2:
            continue
        # A value at the edge of two buckets belongs to the upper one; the last edge belongs to the last bucket.
        begin = np.ceil(edges / step - 1e-9)
        begin[-1] = last + 1
        values = np.diff(np.clip(begin, first, last + 1)).astype(np.int64)
        # The lower of both sides: beside a single heap one of them is empty in any case.
        before, here, after = (np.interp(middle + k * 2 * step, edges, mass) for k in (-1, 0, 1))
        around = np.maximum(np.minimum(here - before, after - here), 0.0) / (2 * step)
        empty = (values == 0) & (sizes <= step)
        expected, seen = float((around * sizes)[empty].sum()), float(counts[empty].sum())
        error = stage.noise.sd * math.sqrt(max(int(empty.sum()), 1))
        single = (values == 1) & (sizes <= step) & (counts > 3 * stage.noise.sd)
        if expected < POINT_MASSES.clear_gaps * error or single.sum() < POINT_MASSES.least_teeth:
            continue
        if seen <= POINT_MASSES.in_gaps * expected + 2 * error:
            return _on_lattice(stage, step, first, last, values)
    return None


def _on_lattice(
    stage: BucketCounts, step: float, first: int, last: int, values: IntArray
) -> tuple[LeafRelease, BoolArray] | None:
    """Counts by the numbers of values that buckets hold; what lies in buckets without any is left out."""
    lattice = LeafSpec.plan([(first * step, last * step)], steps=step)
    if lattice.leaves != (last - first + 1,):
        return None
    ends = np.concatenate([[0], np.cumsum(values)])
    kept = values > 0
    boxes = np.stack([ends[:-1], ends[1:]], axis=1)[kept][:, None, :]
    counts = BucketCounts(boxes, stage.counts[kept], stage.noise)
    return LeafRelease(lattice, counts, counts), np.asarray(kept)
