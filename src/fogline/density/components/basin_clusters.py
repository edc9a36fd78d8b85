r"""Clusters of up to three columns: basins of attraction of the released density.

With the number of clusters given, the peaks of greatest *prominence* are kept and all others are joined to the
neighbour over their highest pass, so that a long or bent cluster with several bumps stays one. The bandwidth is the
one at which the last peak that is kept stands out most, in deviations of the noise, against the first that is not.
Without a number, there are as many as modes that stand above the fogline, sought in the same way; where no one
bandwidth shows them all, the modes themselves are the clusters. All of it reads released numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import distance_transform_edt

from fogline._typing import BandwidthLike, FloatArray, IntArray
from fogline.density.grid_reading import Reading
from fogline.density.modes import significance
from fogline.density.modes.on_grid import ModeTable, make_scale_space, make_table, no_modes
from fogline.density.modes.peaks import Basins, basins, find_peaks
from fogline.density.modes.scale_space import ScaleSpace, locate_modes, track_modes
from fogline.density.private_density import PrivateDensity
from fogline.density.shortfall import separation_words

__all__ = ["GridClusters", "read_grid_clusters"]


VISIBLE_PROMINENCE = 2.0
"""A peak is seen where its prominence is this many deviations of the noise."""


@dataclass(frozen=True, eq=False)
class GridClusters:
    """Modes of a released density and the parts of the box that lead up to them.

    Attributes
    ----------
    modes : ModeTable
    regions : Basins
        In the order of the modes.
    bandwidth : array of shape (d,)
        Bandwidth of the basins.
    """

    modes: ModeTable
    regions: Basins
    bandwidth: FloatArray

    def labels(self, points: FloatArray) -> IntArray:
        """Cluster of each point; a place lost in the noise belongs to the nearest that is not, a missing one to -1."""
        grid, marks = self.regions.grid, self.regions.labels
        result = np.full(len(points), -1, dtype=np.int64)
        if not len(self.modes.positions):
            return result
        # Whoever asks for a label gets one: a point in the fog is nearest to some cluster.
        nearest = distance_transform_edt(marks < 0, return_distances=False, return_indices=True)
        filled = marks[tuple(nearest)]
        whole = np.isfinite(points).all(axis=1)
        index = tuple(
            np.clip(np.rint((points[whole, j] - axis[0]) / (axis[1] - axis[0])), 0, len(axis) - 1).astype(np.int64)
            for j, axis in enumerate(grid.axes)
        )
        result[whole] = filled[index]
        return result


def read_grid_clusters(
    density: PrivateDensity, n_clusters: int | None, level: float, bandwidth: BandwidthLike
) -> GridClusters:
    """Find the clusters of a density that was released on a grid of frequencies."""
    if n_clusters is not None:
        return _best_clusters(density, n_clusters, level, bandwidth)
    modes = density.modes(None, level=level, bandwidth=bandwidth)
    if len(modes.positions):  # their number is known now
        best = _best_clusters(density, len(modes.positions), level, bandwidth)
        if len(best.modes.positions) == len(modes.positions) and np.all(best.modes.p_values <= level):
            return best
    width = np.exp(np.mean(np.log(modes.bandwidths), axis=0)) if len(modes.positions) else density.bandwidth
    return GridClusters(modes, basins(density, modes.positions, width), width)


def _best_clusters(density: PrivateDensity, k: int, level: float, bandwidth: BandwidthLike) -> GridClusters:
    """Give the k clusters that stand out most, or as many as can be seen."""
    scale_space = make_scale_space(density, bandwidth)
    starts, scale = most_prominent(scale_space, k)
    width = scale_space.readings[scale].bandwidth
    if not len(starts):
        table = no_modes(density.spec.d, significance.shortfall_message(density, scale_space, level))
        return GridClusters(table, basins(density, starts, width), width)
    mode_tracks = track_modes(scale_space, starts, np.full(len(starts), scale))
    located = locate_modes(scale_space, mode_tracks)
    message = separation_words(k, len(starts), k, level)
    table = make_table(scale_space, located, significance.peak_p_values(density, scale_space, located.seen), message)
    regions = basins(density, starts, width)
    order = _matching(table.positions, located.position)
    return GridClusters(table, _reordered(regions, order), width)


def most_prominent(scale_space: ScaleSpace, k: int) -> tuple[FloatArray, int]:
    """Give the k most prominent peaks, and the scale at which the k-th stands out most against the next."""
    scores, found = np.empty(len(scale_space.readings)), []
    for q, reading in enumerate(scale_space.readings):
        places, prominence = prominent_peaks(reading)
        padded = np.concatenate([prominence, np.zeros(k + 1)])
        # A next peak below what can be seen is noise: no credit for standing clear of less.
        kth, following = padded[k - 1], max(float(padded[k]), VISIBLE_PROMINENCE * reading.noise_sd)
        scores[q] = (kth - following) / reading.noise_sd
        found.append(places[: min(k, int(np.sum(prominence > VISIBLE_PROMINENCE * reading.noise_sd)))])
    # A scale that shows fewer of the wanted clusters is no candidate, however clear those are.
    most = max(len(places) for places in found)
    enough = np.array([len(places) == most for places in found])
    scale = int(np.argmax(np.where(enough, scores, -np.inf)))
    return found[scale], scale


def prominent_peaks(reading: Reading) -> tuple[FloatArray, FloatArray]:
    """Local maxima and their prominences, most prominent first; heights below zero count as zero."""
    grid = reading.on_grid()
    # Below zero there is only noise, which must not deepen the pass between two peaks.
    peaks = find_peaks(np.maximum(grid.values, 0.0)[None])
    order = np.argsort(-peaks.prominence, kind="stable")
    return grid.points(peaks.cell[order]), peaks.prominence[order]


def _matching(ordered: FloatArray, original: FloatArray) -> IntArray:
    """For each row of a table, the row it had before it was put in order."""
    return np.array([int(np.flatnonzero(np.all(original == row, axis=1))[0]) for row in ordered], dtype=np.int64)


def _reordered(regions: Basins, order: IntArray) -> Basins:
    new = np.empty(len(order), dtype=np.int64)
    new[order] = np.arange(len(order))
    labels = np.where(regions.labels >= 0, new[regions.labels], -1)
    return Basins(regions.grid, labels, regions.shares[order], regions.share_errors[order])
