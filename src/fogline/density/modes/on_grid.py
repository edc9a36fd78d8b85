r"""Modes of a released density: which peaks are real, and where they are.

With the number of modes given, this many of the best peaks are taken from the scale that separates them most clearly
from the next one. Otherwise a peak is a mode if it stands above the fogline (:mod:`fogline.density.modes.significance`)
at some scale. Either way each is then located at the bandwidth that serves it best
(:mod:`fogline.density.modes.scale_space`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fogline._typing import BandwidthLike, FloatArray, IntArray
from fogline.density.counted_records import joined
from fogline.density.grid_reading import Reading
from fogline.density.modes import significance
from fogline.density.modes.peaks import find_peaks
from fogline.density.modes.scale_space import SCALE_SPACE, Located, ScaleSpace, error_shape, locate_modes, track_modes
from fogline.density.modes.significance import at_a_wall
from fogline.density.modes.tables import ModeTable, no_modes
from fogline.density.spec import as_bandwidth

if TYPE_CHECKING:
    from fogline.density.private_density import PrivateDensity

__all__ = ["ModeTable", "make_scale_space", "make_table", "no_modes", "read_modes"]


def read_modes(density: PrivateDensity, n_modes: int | None, level: float, bandwidth: BandwidthLike) -> ModeTable:
    """Find, judge and locate the modes of a density."""
    scale_space = make_scale_space(density, bandwidth)
    if n_modes is None:
        found = significance.significant_peaks(density, scale_space, level)
        starts, at = found.positions, found.scale
        message = "" if len(starts) else significance.shortfall_message(density, scale_space, level)
    else:
        starts, at = best_peaks(scale_space, n_modes)
        message = "" if len(starts) == n_modes else f"only {len(starts)} of {n_modes} peaks exist at any bandwidth"
    if not len(starts):
        return no_modes(density.spec.d, joined(message, at_a_wall(density, scale_space, starts)))
    mode_tracks = track_modes(scale_space, starts, at)
    located = locate_modes(scale_space, mode_tracks)
    p_values = significance.peak_p_values(density, scale_space, located.seen)
    if n_modes is None:  # what is reported is what was tested: a track that left its peak is no mode
        clear = p_values <= level
        located, p_values = located.only(clear), p_values[clear]
        message = "" if clear.any() else significance.shortfall_message(density, scale_space, level)
    message = joined(message, at_a_wall(density, scale_space, located.position))
    if not len(p_values):
        return no_modes(density.spec.d, message)
    return make_table(scale_space, located, p_values, message)


def make_scale_space(density: PrivateDensity, bandwidth: BandwidthLike = "auto") -> ScaleSpace:
    """Readings at bandwidths in geometric progression, or at the one the user asks for."""
    spec = density.spec
    unit = spec.planned[0]
    if isinstance(bandwidth, str):
        if bandwidth != "auto":
            raise ValueError(f"bandwidth must be 'auto', a number or one value per axis, got {bandwidth!r}")
        low = density.bandwidth_range[0][0] / unit[0]
        high = min(SCALE_SPACE.reach * spec.planned[-1][0], density.bandwidth_range[1][0]) / unit[0]
        scales = np.geomspace(low, high, SCALE_SPACE.size)
    else:
        fixed = as_bandwidth(bandwidth, spec.widths)
        unit, scales = fixed, np.array([1.0])
    readings = tuple(density.reading(s * unit) for s in scales)
    return ScaleSpace(readings, scales, unit, density.count)


def best_peaks(scale_space: ScaleSpace, k: int) -> tuple[FloatArray, IntArray]:
    """Give the k highest peaks at the scale where the k-th stands clearest above the next and above the noise.

    Heights are in noise deviations; noise alone reaches about the square root of twice the log of the number of
    places it can peak at. A real mode persists from scale to scale, a bump of the noise does not: the score of a
    scale is the mean over itself and its neighbours.
    """
    candidates = [separated_peaks(reading) for reading in scale_space.readings]
    available = np.array([min(len(points), k) for points, _ in candidates])
    scores = np.empty(len(candidates))
    for q, (reading, (_, heights)) in enumerate(zip(scale_space.readings, candidates, strict=True)):
        kth, following = np.concatenate([heights, np.zeros(k + 1)])[k - 1 : k + 1] / reading.noise_sd
        places = float(np.prod(reading.spec.widths / reading.bandwidth)) / 3
        reach = np.sqrt(2 * np.log(max(places, 2.0)))
        scores[q] = (kth - max(following, 0.0)) + 0.5 * (kth - reach)
    padded = np.pad(scores, 1, mode="edge")
    smoothed = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
    q = int(np.argmax(np.where(available == available.max(), smoothed, -np.inf)))
    points = candidates[q][0][:k]
    return points, np.full(len(points), q)


def separated_peaks(reading: Reading) -> tuple[FloatArray, FloatArray]:
    """Local maxima within the box, highest first, none closer than a bandwidth to a higher one."""
    grid = reading.on_grid()
    peaks = find_peaks(grid.values[None])
    kept = np.flatnonzero(peaks.interior)
    kept = kept[np.argsort(-peaks.height[kept], kind="stable")]
    points = grid.points(peaks.cell[kept])
    heights = peaks.height[kept]
    chosen: list[int] = []
    for i, point in enumerate(points):
        apart = np.linalg.norm((points[chosen] - point) / reading.bandwidth, axis=1)
        if np.all(apart >= 1):
            chosen.append(i)
    return points[chosen], heights[chosen]


def make_table(
    scale_space: ScaleSpace, located: Located, p_values: FloatArray, message: str, *, common: bool = False
) -> ModeTable:
    """Put what is known of located modes together, highest first.

    Heights are those at each mode's own bandwidth, or in ``common`` at the smallest of them: in many dimensions the
    kernel lowers a peak so much that heights at different bandwidths cannot be compared.
    """
    d = scale_space.d
    scales = np.full_like(located.scale, located.scale.min()) if common else located.scale
    heights = np.array(
        [scale_space.readings[q].value(x[None])[0] for q, x in zip(scales, located.position, strict=True)]
    )
    shape = _error_shape(scale_space, located) / d
    order = np.argsort(-heights, kind="stable")
    return ModeTable(
        positions=located.position[order],
        heights=heights[order],
        privacy_covariances=(located.privacy_variance[:, None, None] * shape)[order],
        sampling_covariances=(located.sampling_variance[:, None, None] * shape + located.smoothing)[order],
        p_values=p_values[order],
        bandwidths=(scale_space.scales[located.scale][:, None] * scale_space.unit)[order],
        message=message,
    )


def _error_shape(scale_space: ScaleSpace, located: Located) -> FloatArray:
    """Shape of each mode's error ellipsoid, of trace d in units of the scale space: long where the peak is flat."""
    shapes = np.empty((len(located.scale), scale_space.d, scale_space.d))
    for k, (q, x) in enumerate(zip(located.scale, located.position, strict=True)):
        hessian = scale_space.readings[q].jet(x[None])[2][0] * scale_space.unit[:, None] * scale_space.unit
        shapes[k] = error_shape(hessian)[0] * scale_space.unit[:, None] * scale_space.unit
    return shapes
