r"""Whether a hill of two or three columns has a summit, or is level along its crest like a ring, an arc or a plateau.

Projected on its axes a ring is not even, so that :func:`~fogline.density.modes.leaf_peaks.measure_roundness` does not
know it from a hill. Here a hill is measured along itself. Its upper part, all cells around the top that are at least
`CRESTS.part` as high, is walked through from the cell that is farthest from the top, and the length of the shortest way
inside it is the coordinate :math:`s`: an arc is unrolled, a ring is folded at its top. Thirds of :math:`s` are compared
in two ways: by the records beside them, which are equally many on a level crest, and by their mean density, which is
the same everywhere on a plateau, whatever its outline. On a hill one third has more of both.

Four answers are possible. Both ways surely show a denser third: there is a summit, and its position has the error of
its position. One of them does not, although a normal hill of this height would have shown it: the crest is level, and
there is no mode. The thirds look more like those of a level crest than like those of a normal hill, but not clearly so:
then the summit may be anywhere on the upper part, and the error of its position has to cover that. Or they look like
those of a hill, but not surely, and noise added once more puts the highest place elsewhere: then the error covers the
places where it was put. A hill whose upper part reaches a wall of the box is not judged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.ndimage import distance_transform_edt, label
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.modes.leaf_peaks import LeafCounts, ScaleGrid, ScaleTest

__all__ = ["CRESTS", "Crest", "CrestTuning", "measure_crest"]


@dataclass(frozen=True)
class CrestTuning:
    """What is tuned of the look along a crest.

    Attributes
    ----------
    part : float
        The upper part of a hill has at least this share of the height of its top.
    beside : float
        Records within this many bandwidths of the upper part belong to it.
    roundness : tuple of float
        How much more the richest third of a normal hill has than the others, as a part of the mean: in records, and in
        density.
    loose, far : float
        A summit is not held to its place where, with noise added once more, the highest place of the hill is farther
        away than this many bandwidths in this share of the simulations.
    doubt, sure : float
        A crest is level if its thirds differ by fewer deviations than the first, and by the second fewer than those of
        a normal hill would.
    clear : float
        Thirds that differ by more deviations than this are no noise.
    low : float
        It is level too where they surely differ by less than this part of what those of a normal hill would, and has
        a summit where they surely differ by more.
    shortest : float
        Upper parts shorter than this many bandwidths are as round as the kernel.
    blurred : float
        So many bandwidths at either end of a long way are left out, since the kernel blurs them.
    """

    part: float = 0.35
    beside: float = 1.5
    roundness: tuple[float, float] = (0.45, 0.25)
    loose: float = 0.04
    far: float = 3.0
    doubt: float = 2.0
    sure: float = 3.0
    clear: float = 2.5
    low: float = 0.33
    shortest: float = 3.0
    blurred: float = 1.0


CRESTS = CrestTuning()


@dataclass(frozen=True, eq=False)
class Crest:
    """What is known of a hill along its crest.

    Attributes
    ----------
    deviations : array of shape (2,)
        By how many deviations of the noise the richest third exceeds the other two, in records and in density.
    of_normal : array of shape (2,)
        About what a normal hill of this height would show.
    elsewhere : float
        Share of the simulations in which the highest place of the hill is far from the top.
    extent : array of shape (d, d)
        Second moments of the upper part around the top, in data units: an ellipse of these covers it.
    wandering : array of shape (d, d)
        Second moments of the highest places of the simulations around the top.
    """

    deviations: FloatArray
    of_normal: FloatArray
    elsewhere: float
    extent: FloatArray
    wandering: FloatArray

    @property
    def is_level(self) -> bool:
        """Whether a normal hill would have shown far more."""
        few = (self.deviations < CRESTS.doubt) & (self.deviations < self.of_normal - CRESTS.sure)
        return bool(np.any(few | (self.deviations < CRESTS.low * self.of_normal - CRESTS.doubt)))

    @property
    def may_be_level(self) -> bool:
        """Whether this is nearer to a level crest than to a normal hill."""
        return bool(np.any(self.deviations < np.minimum(self.of_normal / 2, CRESTS.clear)))

    @property
    def has_summit(self) -> bool:
        """Whether the thirds surely differ by more than those of a level crest would."""
        return bool(np.all(self.deviations >= CRESTS.low * self.of_normal + CRESTS.doubt))

    @property
    def spread(self) -> FloatArray:
        """Second moments of where the summit may be, beyond the error of its position: none where there surely is one.

        At the finest bandwidths noise moves the highest cell of any hill, and says nothing about its crest: where the
        thirds surely differ, the position is that of wider bandwidths, and its error holds what is left to doubt.
        """
        if self.may_be_level:
            return self.extent
        if self.has_summit or self.elsewhere <= CRESTS.loose:
            return np.zeros_like(self.extent)
        return self.wandering


def measure_crest(test: ScaleTest, place: FloatArray, hill: BoolArray | None = None) -> Crest:
    """Compare thirds of the upper part of a hill along its crest.

    Parameters
    ----------
    test : ScaleTest
        The scale at which the hill is seen; two columns or more.
    place : array of shape (d,)
        Where its peak is.
    hill : array of bool of the grid's shape, optional
        Cells that belong to the peak; all by default.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> from fogline.density.modes.from_leaves import search_leaves
    >>> from fogline.testing import seeded_noise
    >>> rng = np.random.default_rng(0)
    >>> angle, far = rng.uniform(0, 2 * np.pi, 20_000), rng.normal(3, 0.4, 20_000)
    >>> ring, hill = np.c_[far * np.cos(angle), far * np.sin(angle)], rng.normal(size=(20_000, 2))
    >>> for records in (ring, hill):
    ...     with seeded_noise(1):
    ...         density = DensitySketch([(-6, 6)] * 2, features="leaves").update(records).release(epsilon=1.0)
    ...     test = search_leaves(density).tests[4]
    ...     top = test.grid.points(np.array([test.released.argmax()]))[0]
    ...     print(measure_crest(test, top).is_level)
    True
    False
    """
    grid, field = test.grid, test.released
    cell = _top_near(grid, field, place)
    upper = field >= CRESTS.part * field[cell]
    if hill is not None:
        upper &= hill
    parts, _ = label(upper, np.ones((3,) * field.ndim))
    inside = parts == parts[cell]
    cells = np.flatnonzero(inside.ravel())
    points = grid.points(cells)
    away = points - place
    extent = away.T @ away / len(cells)
    start = int(np.searchsorted(cells, np.ravel_multi_index(cell, grid.shape)))
    ways = _ways(inside, cells, np.array(grid.sigmas))
    far = int(np.argmax(dijkstra(ways, indices=start)))
    along = dijkstra(ways, indices=far)
    deviations, normal = np.full((2, 2), np.inf)
    # A wall cuts thirds off, and zeros that were taken out leave a gap beside it: there the rise from the wall decides.
    index = np.stack(np.unravel_index(cells, grid.shape), axis=1)
    at_wall = bool(np.any((index == 0) | (index == np.array(grid.shape) - 1)))
    if along.max() >= CRESTS.shortest and not at_wall:
        deviations, normal = _compare_thirds(test.counts, grid, inside, along)
    tops = cells[np.argmax((field + test.counts.fields(test.counts.simulated(), grid))[:, inside], axis=1)]
    moved = grid.points(tops) - place
    elsewhere = float(np.mean(np.linalg.norm(moved / grid.bandwidth, axis=1) > CRESTS.far))
    return Crest(deviations, normal, elsewhere, extent, moved.T @ moved / len(moved))


def _top_near(grid: ScaleGrid, field: FloatArray, place: FloatArray) -> tuple[int, ...]:
    """Highest cell within a bandwidth of a place."""
    index = [int(np.argmin(np.abs(axis - x))) for axis, x in zip(grid.axes, place, strict=True)]
    window = tuple(
        slice(max(i - math.ceil(sigma), 0), i + math.ceil(sigma) + 1)
        for i, sigma in zip(index, grid.sigmas, strict=True)
    )
    near = np.unravel_index(int(np.argmax(field[window])), field[window].shape)
    return tuple(int(i) + part.start for i, part in zip(near, window, strict=True))


def _ways(inside: BoolArray, cells: IntArray, sigmas: FloatArray) -> csr_array:
    """Steps between neighbouring cells of the upper part, with their lengths in bandwidths."""
    number = np.full(inside.shape, -1)
    number.ravel()[cells] = np.arange(len(cells))
    rows, columns, lengths = [], [], []
    for step in product((-1, 0, 1), repeat=inside.ndim):
        if not step > (0,) * inside.ndim:
            continue
        here = tuple(slice(max(-s, 0), n - max(s, 0)) for s, n in zip(step, inside.shape, strict=True))
        there = tuple(slice(max(s, 0), n - max(-s, 0)) for s, n in zip(step, inside.shape, strict=True))
        both = (number[here] >= 0) & (number[there] >= 0)
        rows.append(number[here][both])
        columns.append(number[there][both])
        lengths.append(np.full(int(both.sum()), math.sqrt(float(np.sum((np.array(step) / sigmas) ** 2)))))
    first, second = np.concatenate(rows), np.concatenate(columns)
    length = np.concatenate(lengths)
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    return csr_array((np.concatenate([length, length]), ends), shape=(len(cells), len(cells)))


def _compare_thirds(
    counts: LeafCounts, grid: ScaleGrid, inside: BoolArray, along: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Deviations by which the richest third of a way exceeds the others, and about those of a normal hill."""
    length = float(along.max())
    ends = CRESTS.blurred * min(max(length / 4 - 1, 0.0), 1.0)
    third = np.full(inside.shape, -1)
    third[inside] = np.clip((3 * (along - ends) / (length - 2 * ends)).astype(int), 0, 2)
    third[inside] = np.where(np.abs(along - length / 2) <= length / 2 - ends, third[inside], -1)
    away, nearest = distance_transform_edt(~inside, sampling=1 / np.array(grid.sigmas), return_indices=True)
    beside = np.where(away <= CRESTS.beside, third[tuple(nearest)], -1)
    deviations, normal = [], []
    for of_cell, roundness, by_area in zip((beside, third), CRESTS.roundness, (False, True), strict=True):
        leaves = _leaves_of_thirds(counts, grid, of_cell)
        # A third is as long as the others, so that their records are compared as they are.
        size = leaves.sum(axis=1) if by_area else np.ones(3)
        if not np.all(size):
            return np.full(2, np.inf), np.full(2, np.inf)
        part = leaves / counts.sizes
        level = max(float(part.sum(axis=0) @ counts.counts), 0.0) / float(size.sum())
        weights = [part[k] / size[k] - (part.sum(axis=0) - part[k]) / (size.sum() - size[k]) for k in range(3)]
        sd = [math.sqrt(float(w**2 @ counts.variance)) for w in weights]
        deviations.append(max(float(w @ counts.counts) / one for w, one in zip(weights, sd, strict=True)))
        normal.append(roundness * level / max(sd))
    return np.array(deviations), np.array(normal)


def _leaves_of_thirds(counts: LeafCounts, grid: ScaleGrid, third: IntArray) -> FloatArray:
    """Leaves of each bucket on each third, from the third of each cell; shape (3, buckets)."""
    for axis, factor in enumerate(grid.factors):
        third = np.repeat(third, factor, axis=axis)
    size = len(counts.counts)
    return np.stack([np.bincount(counts.label[third == k], minlength=size).astype(np.float64) for k in range(3)])
