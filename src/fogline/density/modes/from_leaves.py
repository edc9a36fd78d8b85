r"""Modes of a release on leaves: point masses, modes at walls, and modes inside, each tested against noise and located.

1. Heaps are taken out of the counts and reported as point masses.
2. Peaks of the smoothed counts are tested at several scales (:mod:`fogline.density.modes.leaf_peaks`): coarse ones
   first, each replaced by what it splits into. A peak at a wall is a result of its own. One that cannot be told from a
   plateau is no mode.
3. Each mode is located by what its positions at many bandwidths say together
   (:mod:`fogline.density.modes.leaf_positions`), with an error that holds privacy, sampling and smoothing.

Everything is a function of the released counts, with simulations from a fixed seed: the same release gives the same
answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fogline._typing import BandwidthLike, BoolArray, FloatArray, IntArray
from fogline.density.counted_records import joined, nothing_counted, rounded_words
from fogline.density.modes.crests import measure_crest
from fogline.density.modes.leaf_peaks import (
    LeafCounts,
    ScaleGrid,
    ScaleTest,
    find_heaps,
    measure_roundness,
    read_scales,
    rise_from_wall,
)
from fogline.density.modes.leaf_positions import LeafPositions, locate_on_leaves
from fogline.density.modes.peaks import basins, join_basins
from fogline.density.modes.significance import NO_DOUBT, Found, Layer, merge_layers
from fogline.density.modes.tables import BoundaryMode, ModeTable, PointMass, no_modes
from fogline.density.modes.wall_shares import slope_shares
from fogline.density.shortfall import NOTHING, Shortfall, widths_in_words
from fogline.density.spec import as_bandwidth
from fogline.density.value_words import place_words

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

BEST_LEVELS = (0.05, 0.2, 0.5)
"""Levels at which peaks are sought where a number of them was asked for."""

MOST_IN_HEAPS = 0.9
"""Where point masses hold more than this part of the records, nobody is told to look for peaks among the rest."""

LEAST_VALUES = 3
"""A column with fewer values has no place that is off both walls."""

UNRESOLVED = 4
"""Where so few leaves at a wall hold half of the records, a mode among them would not be seen."""

UNSEEN_PART = 0.25
"""What hides within this part of the way to half of a hill's height at a wall is as good as at the wall."""

SURELY = 3.0
"""Standard errors by which the value at a wall must hold more than the next."""

NEAR_WALL = 2.0
"""Bandwidths from a wall within which a peak at another wall may stand in the corner."""

__all__ = ["LeafSearch", "leaf_fog_level", "read_leaf_modes", "search_leaves"]


class LeafSearch:
    """What is known of a release on leaves before modes are chosen: heaps, and tests at several scales.

    Attributes
    ----------
    counts : LeafCounts
        Without heaps.
    heaps : tuple of PointMass
    tests : tuple of ScaleTest
        Finest first.
    total : float
        Released number of records.
    names : tuple of str
        Of the columns.
    """

    def __init__(self, density: PrivateDensity, fixed: FloatArray | None = None) -> None:
        assert density.leaves is not None
        self.counts, self.heaps = find_heaps(density.leaves)
        scales = None if fixed is None else (tuple((fixed / self.counts.widths).tolist()),)
        self.tests = read_scales(self.counts, scales)
        self.total = density.count
        d = self.counts.d
        self.names = density.columns or tuple(f"column {axis + 1}" for axis in range(d))

    @property
    def layers(self) -> list[Layer]:
        """Peaks inside the box at each scale."""
        return [test.layer(scale) for scale, test in enumerate(self.tests)]


def search_leaves(density: PrivateDensity, bandwidth: BandwidthLike = "auto") -> LeafSearch:
    """Search a release at the planned scales, or at one bandwidth; kept with the density."""
    if isinstance(bandwidth, str):
        if bandwidth != "auto":
            raise ValueError(f"bandwidth must be 'auto', a number or one value per axis, got {bandwidth!r}")
        fixed = None
    else:
        fixed = as_bandwidth(bandwidth, density.spec.widths)
        density.spec.require_readable(fixed)
    key = ("leaf search", None if fixed is None else tuple(fixed.tolist()))
    if key not in density._memory:
        density._memory[key] = LeafSearch(density, fixed)
    found: LeafSearch = density._memory[key]
    return found


def read_leaf_modes(density: PrivateDensity, n_modes: int | None, level: float, bandwidth: BandwidthLike) -> ModeTable:
    """Find, judge and locate the modes of a release on leaves.

    Parameters
    ----------
    density : PrivateDensity
    n_modes : int or None
        How many of the best; None: all that stand above the fogline.
    level : float
        Chance of reporting a mode where there is only noise.
    bandwidth : "auto", number or array
        As in :meth:`fogline.PrivateDensity.modes`.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> rng = np.random.default_rng(0)
    >>> stay = np.where(rng.random(20_000) < 0.3, 0.0, rng.gamma(3.0, 2.0, 20_000))
    >>> density = DensitySketch([(0, 60)], features="leaves").update(stay[:, None]).release(epsilon=1.0)
    >>> found = read_leaf_modes(density, None, 0.05, "auto")
    >>> found.positions.round(0).tolist(), [heap.value for heap in found.point_masses]
    ([[4.0]], [(0.0,)])
    """
    search = search_leaves(density, bandwidth)
    plateaus: list[FloatArray] = []
    if n_modes is None:
        starts, scales, p_values, plateaus = _significant(search, level)
        starts, scales, p_values = _with_modes_near_walls(search, starts, scales, p_values, level)
    else:
        starts, scales = _best(search, n_modes)
        p_values = _p_values(search, starts)
    chosen = _Chosen(starts, scales, p_values, np.zeros((len(starts), search.counts.d, search.counts.d)))
    if search.counts.d > 1:
        chosen, level_crests = _along_crests(search, chosen, n_modes is None)
        plateaus += level_crests
        starts = chosen.places
    at_walls = _boundary_modes(search, starts, level)
    message = "" if n_modes is None or len(starts) == n_modes else _too_few(len(starts), n_modes)
    if n_modes is None and not len(starts):
        # Beside a wall that explains all there is no peak to promise more of.
        message = f"{NOTHING} inside the box" if at_walls else _shortfall(search, level, plateaus)
    if nothing := nothing_counted(density):
        message, at_walls = nothing, ()
    message = joined(message, _beside(search, at_walls, plateaus if len(starts) else []))
    ends = tuple(wall.mode for wall in at_walls)
    if not len(starts):
        found = replace(no_modes(density.spec.d, message), boundary_modes=ends, point_masses=search.heaps)
    else:
        fixed = None if isinstance(bandwidth, str) else search.tests[0].grid.bandwidth
        found = _table(density, search, chosen, fixed, message, ends, n_modes is None)
    return _with_areas(density, found, at_walls)


def _with_areas(density: PrivateDensity, found: ModeTable, at_walls: Sequence[_Wall]) -> ModeTable:
    """Give walls the shares of their slopes, which together with those of modes and point masses are at most 1."""
    if not at_walls:
        return found
    bandwidth = np.min(found.bandwidths, axis=0) if len(found.positions) else None
    areas = basins(density, found.positions, bandwidth, boundary=[wall.position for wall in found.boundary_modes])
    shares, errors = areas.wall_shares, areas.wall_share_errors
    if density.spec.d == 1:
        sides, widths = [wall.mode.ends[0][1] for wall in at_walls], [float(wall.bandwidth[0]) for wall in at_walls]
        left = max(1.0 - sum(heap.share for heap in found.point_masses), 0.0)
        part, doubt = slope_shares(density, sides, widths, found.positions)
        # no share is known any better than a single count
        least = sum(heap.error**2 for heap in found.point_masses) * part**2 + (_noise_sd(density) / density.count) ** 2
        shares, errors = left * part, np.sqrt((left * doubt) ** 2 + least)
        free = max(left - float(areas.shares.sum()), 0.0)
        shares = shares * min(1.0, free / max(float(shares.sum()), 1e-300))
    told = zip(found.boundary_modes, shares.tolist(), errors.tolist(), strict=True)
    ends = tuple(replace(wall, share=share, share_error=error) for wall, share, error in told)
    return replace(found, boundary_modes=ends)


def _noise_sd(density: PrivateDensity) -> float:
    """Deviation of the noise of one count."""
    assert density.leaves is not None
    return float(density.leaves.counts.noise.sd)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Peaks that are modes: places, scales and p-values, and what is to be added to the covariance of each position."""

    places: FloatArray
    scales: IntArray
    p_values: FloatArray
    spread: FloatArray

    def only(self, kept: IntArray) -> _Chosen:
        """Some of them."""
        return _Chosen(self.places[kept], self.scales[kept], self.p_values[kept], self.spread[kept])


def _table(
    density: PrivateDensity,
    search: LeafSearch,
    chosen: _Chosen,
    fixed: FloatArray | None,
    message: str,
    ends: tuple[BoundaryMode, ...],
    distinct: bool,
) -> ModeTable:
    counts = search.counts
    bandwidths = np.array([search.tests[scale].grid.bandwidth for scale in chosen.scales])
    found = locate_on_leaves(counts, chosen.places, bandwidths, fixed)
    if distinct:
        kept = _distinct(found, chosen.p_values)
        chosen, found = chosen.only(kept), found.only(kept)
    pairs = zip(chosen.scales, chosen.places, strict=True)
    seen = np.array([_height(search.tests[scale], place) for scale, place in pairs])
    heights = np.where(np.isfinite(found.height), found.height, seen) * counts.count / density.count
    order = np.argsort(-heights, kind="stable")
    return ModeTable(
        positions=np.clip(found.position, counts.spec.lower, counts.spec.upper)[order],
        heights=heights[order],
        privacy_covariances=found.privacy[order],
        sampling_covariances=(found.other + chosen.spread)[order],
        p_values=chosen.p_values[order],
        bandwidths=found.bandwidth[order],
        message=message,
        boundary_modes=ends,
        point_masses=search.heaps,
    )


def _distinct(found: LeafPositions, p_values: FloatArray) -> IntArray:
    """Modes that lie further apart than their errors; of two that do not, the clearer one."""
    kept: list[int] = []
    for k in np.argsort(p_values, kind="stable").tolist():
        covariance = found.privacy[k] + found.other[k]
        offsets = [(found.position[k] - found.position[j], found.privacy[j] + found.other[j]) for j in kept]
        if all(float(offset @ np.linalg.solve(covariance + own, offset)) > 1 for offset, own in offsets):
            kept.append(k)
    return np.array(sorted(kept), dtype=np.int64)


def _height(test: ScaleTest, place: FloatArray) -> float:
    return float(test.released.ravel()[_cell(test.grid, place)]) / test.counts.volume


def _cell(grid: ScaleGrid, place: FloatArray) -> int:
    """Cell nearest to a place, as a flat index."""
    index = [int(np.argmin(np.abs(axis - x))) for axis, x in zip(grid.axes, place, strict=True)]
    return int(np.ravel_multi_index(index, grid.shape))


# -- which peaks are modes -----------------------------------------------------------------------------------


def _significant(search: LeafSearch, level: float) -> tuple[FloatArray, IntArray, FloatArray, list[FloatArray]]:
    """Peaks above the fogline that are no plateaus: places, scales, p-values; and where the plateaus are."""
    found = merge_layers(search.layers, level, search.counts.d)
    p_values, kept, plateaus = found.p_values.copy(), [], []
    hills = _hills(search, found, level)
    for k, place in enumerate(found.positions):
        round_top = measure_roundness(search.counts, place, hills[k])
        # A single peak must be proved round; among several the passes between them speak for them.
        if len(found.positions) == 1:
            p_values[k] = max(p_values[k], round_top.p_value)
        block = len(found.positions) > 1 and round_top.is_block and not _has_summit(search, found, k)
        if p_values[k] > level or block or round_top.level_top:
            plateaus.append(place)
        else:
            kept.append(k)
    return found.clear_positions[kept], found.clear_scale[kept], p_values[kept], plateaus


def _has_summit(search: LeafSearch, found: Found, k: int) -> bool:
    """Whether a hill of several columns surely has a summit along its crest: slabs of few records may miss it."""
    if search.counts.d == 1:
        return False
    return measure_crest(search.tests[found.clear_scale[k]], found.clear_positions[k]).has_summit


def _hills(search: LeafSearch, found: Found, level: float) -> list[BoolArray]:
    """Buckets that belong to each peak: those whose middle climbs to it, at the finest of their scales.

    A single peak has all buckets but those of modes at walls: its tails tell it from a plateau, a rise beyond them does
    not.
    """
    if not len(found.positions):
        return []
    single, scale = len(found.positions) == 1, int(found.scale.min())
    test = search.tests[scale]
    layer = test.wall_layer(scale) if single else test.layer(scale)
    own = [layer.basin(place) for place in found.positions]
    marked = (layer.p <= level) if single else np.zeros(len(layer.points), dtype=bool)
    if single and not marked.any():
        return [np.ones(len(search.counts.counts), dtype=bool)]
    marked[own] = True
    return _buckets_of(search, test, layer, marked, own)


def _buckets_of(
    search: LeafSearch, test: ScaleTest, layer: Layer, marked: BoolArray, own: Sequence[int]
) -> list[BoolArray]:
    """Buckets whose middle climbs to each of some peaks, where only marked peaks count as such."""
    roots = join_basins(layer.field, layer.peaks.basin[0], marked)
    middles = search.counts.boxes.mean(axis=2)
    factors = np.array(test.grid.factors)
    cell = np.clip((middles / factors).astype(int), 0, np.array(test.grid.shape) - 1)
    of_bucket = roots[layer.peaks.basin[0][tuple(cell.T)]]
    return [np.asarray(of_bucket == roots[peak]) for peak in own]


def _wall_hill(search: LeafSearch, test: ScaleTest, layer: Layer, peak: int, level: float) -> BoolArray:
    """Buckets that climb to a peak at a wall: behind a valley that is no noise there is another hill.

    What lies behind it says nothing about the wall. A plateau at a wall that ends in a notch would else be denser at
    the wall than the mean of itself and the notch.
    """
    peaks = test.peaks_with_walls
    standing = peaks.prominence / test.sd.ravel()[peaks.cell]
    marked = np.where(peaks.interior, test.chance(standing), layer.p) <= level
    marked[peak] = True
    return _buckets_of(search, test, layer, marked, [peak])[0]


def _along_crests(search: LeafSearch, chosen: _Chosen, drop: bool) -> tuple[_Chosen, list[FloatArray]]:
    """Modes without those on level crests, unless a number was asked for, and where these are.

    Where nobody can say whether a crest is level, the error of the position covers where the summit may be.
    """
    crests = [
        measure_crest(search.tests[scale], place, hill)
        for place, scale, hill in zip(chosen.places, chosen.scales, _hill_cells(search, chosen), strict=True)
    ]
    flat = np.array([crest.is_level for crest in crests], dtype=bool) & drop
    spread = np.array([crest.spread for crest in crests]).reshape(chosen.spread.shape)
    return replace(chosen, spread=spread).only(np.flatnonzero(~flat)), list(chosen.places[flat])


def _hill_cells(search: LeafSearch, chosen: _Chosen) -> list[BoolArray | None]:
    """Cells that climb to each mode at its scale; all of them for a single one."""
    if len(chosen.places) < 2:
        return [None] * len(chosen.places)
    hills: list[BoolArray | None] = []
    for place, scale in zip(chosen.places, chosen.scales.tolist(), strict=True):
        layer = search.tests[scale].layer(scale)
        marked = np.zeros(len(layer.points), dtype=bool)
        marked[[layer.basin(other) for other in chosen.places]] = True
        roots = join_basins(layer.field, layer.peaks.basin[0], marked)
        hills.append(np.asarray(roots[layer.peaks.basin[0]] == roots[layer.basin(place)]))
    return hills


def _p_values(search: LeafSearch, places: FloatArray) -> FloatArray:
    """P-value of the clearest peak within a bandwidth of each place, over the scales."""
    best = np.ones(len(places))
    for test, layer in zip(search.tests, search.layers, strict=True):
        for k, place in enumerate(places):
            near = np.linalg.norm((layer.points - place) / test.grid.bandwidth, axis=1) <= 1
            best[k] = min([best[k], *layer.p[near]])
    return best


def _best(search: LeafSearch, k: int) -> tuple[FloatArray, IntArray]:
    """Give the k clearest peaks of all scales together, at the strictest level that shows as many."""
    for level in BEST_LEVELS:
        found = merge_layers(search.layers, level, search.counts.d)
        if len(found.positions) >= k:
            heights = [
                _height(search.tests[scale], place)
                for place, scale in zip(found.clear_positions, found.clear_scale, strict=True)
            ]
            # Among peaks that are all certain the highest come first.
            order = np.lexsort((-np.array(heights), np.maximum(found.p_values, NO_DOUBT)))[:k]
            return found.clear_positions[order], found.clear_scale[order]
    return _highest(search, k)


def _highest(search: LeafSearch, k: int) -> tuple[FloatArray, IntArray]:
    """Give the k highest peaks at the scale where the k-th stands clearest above the next and above the noise."""
    found, scores = [], []
    for test in search.tests:
        points, heights = _separated(test)
        found.append(points[:k])
        kth, following = np.concatenate([heights, np.zeros(k + 1)])[k - 1 : k + 1]
        places = float(np.prod(test.counts.widths / test.grid.bandwidth)) / 3
        reach = np.sqrt(2 * np.log(max(places, 2.0)))
        scores.append((kth - max(following, 0.0)) + 0.5 * (kth - reach))
    available = np.array([len(points) for points in found])
    padded = np.pad(np.array(scores), 1, mode="edge")
    smoothed = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
    q = int(np.argmax(np.where(available == available.max(), smoothed, -np.inf)))
    return found[q], np.full(len(found[q]), q)


def _separated(test: ScaleTest) -> tuple[FloatArray, FloatArray]:
    """Peaks inside the box, highest first, none within a bandwidth of a higher one; heights in noise deviations."""
    peaks = test.peaks
    kept = np.flatnonzero(peaks.interior)
    kept = kept[np.argsort(-peaks.height[kept], kind="stable")]
    points = test.grid.points(peaks.cell[kept])
    heights = peaks.height[kept] / np.median(test.sd)
    chosen: list[int] = []
    for i, point in enumerate(points):
        if np.all(np.linalg.norm((points[chosen] - point) / test.grid.bandwidth, axis=1) >= 1):
            chosen.append(i)
    return points[chosen], heights[chosen]


@dataclass(frozen=True, eq=False)
class _Wall:
    """A mode at a wall, the bandwidth at which it was seen, and how far inside its top could be instead; 0: nowhere."""

    mode: BoundaryMode
    bandwidth: FloatArray
    hidden: float


def _boundary_modes(search: LeafSearch, modes: FloatArray, level: float) -> tuple[_Wall, ...]:
    """Peaks at walls, from the finest scale that shows them; none to which a mode inside climbs at that scale."""
    found: list[_Wall] = []
    places: list[FloatArray] = []
    for scale, test in enumerate(search.tests):
        layer = test.wall_layer(scale)
        for i in np.flatnonzero(layer.p <= level):
            place = layer.points[i]
            known = [np.linalg.norm((place - other) / test.grid.bandwidth) < 3 for other in places]
            owned = any(layer.basin(mode) == i for mode in modes)
            ends = _ends_of(search, test, place, _walls(test.grid, int(layer.peaks.cell[i])), level)
            side = ends[0][1] if test.counts.d == 1 else ""
            hill = _wall_hill(search, test, layer, int(i), level) if test.counts.d == 1 else None
            flat = measure_roundness(search.counts, place, hill, side=side).p_value
            if any(known) or owned or flat > level:
                continue
            places.append(place)
            on_wall = place.copy()
            for axis, end in ends:
                on_wall[axis] = test.counts.spec.bounds[axis][0 if end == "low" else 1]
            height = float(layer.peaks.height[i]) / test.counts.volume
            total = max(search.total, test.counts.count)
            position, density = tuple(on_wall.tolist()), height * test.counts.count / total
            mode = BoundaryMode(ends, position, density, 0.0, float(max(layer.p[i], flat)))
            found.append(_Wall(mode, test.grid.bandwidth, _hidden(test, int(layer.peaks.cell[i]), ends)))
    return tuple(sorted(found, key=lambda wall: -wall.mode.height))


def _hidden(test: ScaleTest, cell: int, ends: Sequence[tuple[int, str]]) -> float:
    """How far from a wall the top of its hill could lie unseen; 0 where that is next to nothing beside the hill.

    No more is known than the first two buckets at the wall say, and what the bandwidth leaves of them.
    """
    counts, most = test.counts, 0.0
    index = np.unravel_index(cell, test.grid.shape)
    for axis, side in ends:
        along = test.released[tuple(slice(None) if k == axis else i for k, i in enumerate(index))]
        along = along if side == "low" else along[::-1]
        half = np.flatnonzero(along < along[0] / 2)
        reach = float(half[0] if len(half) else len(along)) * float(test.grid.spacing[axis])
        leaf = [int(i) * f + f // 2 for i, f in zip(index, test.grid.factors, strict=True)]
        leaf[axis] = 0 if side == "low" else counts.spec.leaves[axis] - 1
        first = []
        for _ in range(2):
            first.append(int(counts.label[tuple(leaf)]))
            start, stop = counts.boxes[first[-1], axis].tolist()
            away = stop if side == "low" else counts.spec.leaves[axis] - start
            leaf[axis] = min(stop, counts.spec.leaves[axis] - 1) if side == "low" else max(start - 1, 0)
        if counts.spec.steps[axis] and _falls(counts, axis, first[0], first[1]):
            continue  # the first value itself holds more than the next
        width = max(away * float(counts.spec.cell_widths[axis]), float(test.grid.bandwidth[axis]))
        most = max(most, width if width > UNSEEN_PART * reach else 0.0)
    return most


def _falls(counts: LeafCounts, axis: int, first: int, second: int) -> bool:
    """Whether a bucket of one leaf along its column surely holds more, a leaf, than the next."""
    level = counts.counts[[first, second]] / counts.sizes[[first, second]]
    error = float(np.sqrt(np.sum(counts.variance[[first, second]] / counts.sizes[[first, second]] ** 2)))
    alone = int(np.diff(counts.boxes[first, axis])[0]) == 1
    return alone and float(level[0] - level[1]) > SURELY * error


def _with_modes_near_walls(
    search: LeafSearch, starts: FloatArray, scales: IntArray, p_values: FloatArray, level: float
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Add modes of hills that look like modes at a wall, but are higher inside; two columns and more.

    That there is a hill is certain by its standing as a mode at a wall. Where its top is, at the wall or inside, is a
    question about one place, not about the whole box, so that far less evidence decides it.
    """
    if search.counts.d == 1:
        return starts, scales, p_values
    for scale, test in enumerate(search.tests):
        layer = test.wall_layer(scale)
        for i in np.flatnonzero(layer.p <= level):
            if any(layer.basin(mode) == i for mode in starts):
                continue
            ends, place = _walls(test.grid, int(layer.peaks.cell[i])), layer.points[i]
            chances = [
                rise_from_wall(search.counts, place, axis, side, test.grid.bandwidth, search.heaps)
                for axis, side in ends
            ]
            top = _top_inside(search, layer, int(i)) if max(chances) <= level else None
            if top is not None:
                starts = np.concatenate([starts, top[0][None]])
                scales = np.append(scales, top[1])
                p_values = np.append(p_values, max(float(layer.p[i]), *chances))
    return starts, scales, p_values


def _top_inside(search: LeafSearch, hill: Layer, i: int) -> tuple[FloatArray, int] | None:
    """Clearest peak inside the box, of all scales, that climbs to a peak at a wall at the scale of this layer."""
    best: tuple[FloatArray, int] | None = None
    standing = 0.0
    for scale, test in enumerate(search.tests):
        points = test.grid.points(test.peaks.cell)
        for k in np.flatnonzero(test.standing > standing):
            if hill.basin(points[k]) == i:
                best, standing = (points[k], scale), float(test.standing[k])
    return best


def _ends_of(
    search: LeafSearch, test: ScaleTest, place: FloatArray, ends: tuple[tuple[int, str], ...], level: float
) -> tuple[tuple[int, str], ...]:
    """Walls that a peak touches, and those nearby from which the density does not clearly rise towards it."""
    counts, found = search.counts, dict(ends)
    for axis in range(counts.d):
        for side, away in (("low", place[axis] - counts.low[axis]), ("high", counts.high[axis] - place[axis])):
            if axis in found or away > NEAR_WALL * test.grid.bandwidth[axis]:
                continue
            if rise_from_wall(counts, place, axis, side, test.grid.bandwidth, search.heaps) > level:
                found[axis] = side
    return tuple(sorted(found.items()))


def _walls(grid: ScaleGrid, cell: int) -> tuple[tuple[int, str], ...]:
    index = np.unravel_index(cell, grid.shape)
    sides = [(axis, "low" if i == 0 else "high") for axis, i in enumerate(index) if i in (0, grid.shape[axis] - 1)]
    return tuple(sides)


# -- words ---------------------------------------------------------------------------------------------------


def _too_few(found: int, wanted: int) -> str:
    return f"only {found} of {wanted} peaks exist at any bandwidth"


def _place_words(search: LeafSearch, place: Iterable[float | None]) -> str:
    pairs = zip(search.names, place, search.counts.widths.tolist(), strict=True)
    return ", ".join(f"{name} {place_words(value, width)}" for name, value, width in pairs if value is not None)


def _heap_words(search: LeafSearch, heap: PointMass) -> str:
    """Name a value, or the cell that holds it where no more than that is known."""
    return heap.words(search.names, search.counts.spec.steps, (" ", " somewhere in "))


def _beside(search: LeafSearch, at_walls: Sequence[_Wall], plateaus: Sequence[FloatArray]) -> str:
    """Say what was found that is no mode, and whether more records could make it one."""
    said = []
    for wall in at_walls[:2]:
        mode = wall.mode
        where = f"{mode.words(search.names)}, around {_place_words(search, mode.position)}"
        leaning = f"records are densest at {where}: what leans on a wall is not counted as a mode"
        if wall.hidden:
            said.append(
                f"{leaning}; more records or more epsilon could show whether there is a mode within "
                f"{wall.hidden:.2g} of that end"
            )
        else:
            said.append(f"{leaning}, and neither more records nor more epsilon would make it one")
        if near := _unresolved(search, mode):
            said.append(f"half of the records lie within {near:.3g} of it: only narrower bounds would show more")
    heaps = search.heaps[:3]
    if heaps:
        listed = ", ".join(f"{_heap_words(search, heap)} ({heap.share:.0%})" for heap in heaps)
        said.append(f"single values hold many records: {listed}; they are point masses, not modes")
        if heaps[0].share > MOST_IN_HEAPS and "somewhere in" in _heap_words(search, heaps[0]):
            said.append(
                "if these records are not all equal, the bounds are far too wide: narrower ones would show more"
            )
    if search.counts.spacing:
        said.append(rounded_words(search.names[0], search.counts.spacing))
    for place in plateaus[:1]:
        said.append(
            f"around {_place_words(search, place)} the density is flat on top: a plateau has no mode, and more records "
            "would show the same if it is one"
        )
    return joined(*said)


def _unresolved(search: LeafSearch, wall: BoundaryMode) -> float:
    """Width of a few leaves at a wall that hold half of the records of a single column; 0 where they do not."""
    counts = search.counts
    if counts.d > 1 or counts.spec.leaves[0] <= 2 * UNRESOLVED or counts.spec.steps[0]:
        return 0.0
    boxes = counts.boxes[:, 0].astype(np.float64)
    boxes = boxes if wall.ends[0][1] == "low" else counts.spec.leaves[0] - boxes[:, ::-1]
    part = np.clip((UNRESOLVED - boxes[:, 0]) / (boxes[:, 1] - boxes[:, 0]), 0.0, 1.0)
    within = float(UNRESOLVED * counts.spec.cell_widths[0])
    return within if float(part @ counts.counts) > 0.5 * counts.count else 0.0


def _shortfall(search: LeafSearch, level: float, plateaus: Sequence[FloatArray]) -> str:
    """Say what was looked for, how near it came, and what would help."""
    if sum(heap.share for heap in search.heaps) > MOST_IN_HEAPS:
        return f"{NOTHING} beside single values, and there is hardly a record beside them"
    if max(search.counts.spec.leaves) < LEAST_VALUES:
        return f"{NOTHING}: a column of {max(search.counts.spec.leaves)} values has no inside"
    if plateaus:
        where = _place_words(search, plateaus[0])
        return (
            f"{NOTHING}: the highest peak, at {where}, is too flat to be told from a plateau; more records or epsilon "
            "would show a mode only if it is round on top"
        )
    factor, nearest = np.inf, search.tests[-1]
    place: FloatArray | None = None
    for test in search.tests:
        standing = test.standing
        best = int(np.argmax(standing)) if len(standing) else -1
        ratio = test.needed(level) / max(float(standing[best]) if best >= 0 else 0.0, 1e-9)
        if ratio < factor:
            factor, nearest, place = ratio, test, test.grid.points(test.peaks.cell[best : best + 1])[0]
    if place is None or not np.isfinite(factor) or factor > 1e3:
        return f"{NOTHING}: no peak inside the box at any bandwidth"
    counts = search.counts
    at = counts.label[tuple(_leaf(nearest, place))]
    share = counts.noise.variance / float(counts.variance[at])
    where = f"peak, at {_place_words(search, place)} and bandwidth {widths_in_words(nearest.grid.bandwidth)},"
    return Shortfall(where, max(factor, 1.0), share).message(noise="the noise there")


def _leaf(test: ScaleTest, place: FloatArray) -> list[int]:
    index = np.unravel_index(_cell(test.grid, place), test.grid.shape)
    return [int(i) * f + f // 2 for i, f in zip(index, test.grid.factors, strict=True)]


def leaf_fog_level(
    density: PrivateDensity, bandwidth: FloatArray, level: float, at: FloatArray | None
) -> float | FloatArray:
    """Prominence that noise alone reaches with probability ``level``, at the densest place or at given points."""
    search = search_leaves(density, bandwidth)
    test = search.tests[0]
    unit = test.needed(level) / test.counts.volume * test.counts.count / density.count
    if at is None:
        return float(unit * test.sd.ravel()[int(np.argmax(test.released))])
    return np.array([unit * test.sd.ravel()[_cell(test.grid, place)] for place in at])
