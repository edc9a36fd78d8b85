r"""Modes of a released density where no grid can go: releases of random features, in any number of dimensions.

As in :mod:`fogline.sketch.modes`, peaks are found and judged at a few scales, from the largest to the smallest, and
each mode is then located at the bandwidth that serves it best (:mod:`fogline.sketch.tracks`). What differs is how
peaks are found (:mod:`fogline.sketch.search_climb`: climbed from public starts, so a peak narrower than the space
between starts, hidden at every larger scale, can be missed) and how they are told from noise
(:mod:`fogline.sketch.search_fog`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fogline.sketch.counted_records import nothing_counted
from fogline.sketch.modes import ModeTable, make_ladder, make_table, no_modes
from fogline.sketch.search_atoms import Atoms, ClearedReading, fit_atoms
from fogline.sketch.search_climb import Summits, summits_by_scale
from fogline.sketch.search_fog import Fog, peak_chances
from fogline.sketch.tracks import Ladder, follow, locate, polish

if TYPE_CHECKING:
    from fogline.sketch.private_density import PrivateDensity

__all__ = ["Layer", "Survey", "fog_anywhere", "fog_level_anywhere", "read_modes_anywhere", "survey_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TEST_RUNGS = (1, 4, 7, 10)
"""Rungs of a ladder of eleven at which peaks are sought and tested."""

COARSER = 3
"""A bandwidth that is asked for is approached from so many larger ones, up to the largest that can be read."""

WORTH_JUDGING = 0.2
"""Peaks whose height alone has a larger chance are not walked from."""

GROUP = 0.5
"""What would help is told for a group of this share of the records, as wide as the bandwidth."""


LOOKS = 3
"""Most times that atoms are fitted to clear peaks and the search is repeated on what they leave."""

MOST_ATOMS = 32
"""With more clear peaks than this, side lobes are left where they are."""

CLEAR = 0.01
"""A peak gets an atom if the fog is as high anywhere in the box with at most this chance."""


@dataclass(frozen=True)
class Layer:
    """Peaks of the released density at one tested rung, with the chance of each under noise at any rung."""

    rung: int
    fog: Fog
    summits: Summits
    p: FloatArray
    drop: FloatArray  # prominence in deviations of the noise

    def basins(self, points: FloatArray) -> IntArray:
        """Peak that each point climbs to, -1 for none."""
        if not len(self.summits.positions) or not len(points):
            return np.full(len(points), -1)
        h = self.summits.reading.bandwidth
        ends = polish(self.fog.field, points, rounds=40)
        apart = np.linalg.norm((ends[:, None] - self.summits.positions) / h, axis=2)
        return np.where(apart.min(axis=1) < 0.5, np.argmin(apart, axis=1), -1)


@dataclass(frozen=True)
class Survey:
    """What was seen of a release: its ladder, cleared of side lobes, the peaks on it, and the atoms that cleared it."""

    ladder: Ladder
    layers: list[Layer]
    atoms: Atoms | None


def read_modes_anywhere(density: PrivateDensity, n_modes: int | None, level: float, bandwidth: Any) -> ModeTable:
    """Find, judge and locate the modes of a density without a grid.

    Parameters
    ----------
    density : PrivateDensity
    n_modes : int or None
        How many: the best so many, or all above the fogline.
    level : float
        Chance of reporting a mode where there is only noise.
    bandwidth : "auto", number or array
        As in :meth:`PrivateDensity.modes`.

    Returns
    -------
    ModeTable
    """
    survey = survey_of(density, make_ladder(density, bandwidth))
    ladder, layers = survey.ladder, survey.layers
    if n_modes is None:
        starts, at = _chosen(layers, [np.flatnonzero(layer.p <= level) for layer in layers])
        message = "" if len(starts) else _what_would_help(density, layers, level)
    else:
        starts, at = _best(layers, n_modes)
        message = "" if len(starts) == n_modes else f"only {len(starts)} of {n_modes} peaks were found at any bandwidth"
    if not len(starts):
        return no_modes(ladder.d, message)
    located = locate(ladder, follow(ladder, starts, at))
    return make_table(ladder, located, _p_values(layers, located.position), message, common=True)


def survey_of(density: PrivateDensity, ladder: Ladder) -> Survey:
    """Peaks at the tested rungs; kept with the density.

    The first look is at the plain readings. Atoms are fitted to the peaks that are clear there, and a second look is
    at what is left; where that shows further clear peaks, atoms are fitted to all of them and the look is repeated.
    """
    key = ("survey", tuple(tuple(r.bandwidth.tolist()) for r in ladder.readings))
    if key not in density._memory:
        survey = _look(density, ladder, None)
        known = 0
        for _ in range(LOOKS):
            peaks, rungs = _chosen(survey.layers, [_clear(layer) for layer in survey.layers])
            if not known < len(peaks) <= MOST_ATOMS:
                break
            known = len(peaks)
            bandwidths = ladder.scales[rungs][:, None] * ladder.unit
            sums = density.coefficients[1:] / density.count
            survey = _look(density, ladder, fit_atoms(ladder.readings[0], sums, peaks, bandwidths))
        density._memory[key] = survey
    result: Survey = density._memory[key]
    return result


def _look(density: PrivateDensity, ladder: Ladder, atoms: Atoms | None) -> Survey:
    """Seek and judge peaks at the tested rungs."""
    count = density.count

    def reading(plain: Any) -> Any:
        return plain if atoms is None else ClearedReading(plain, atoms)

    ladder = replace(ladder, readings=tuple(map(reading, ladder.readings)))
    rungs = [0] if len(ladder.readings) == 1 else list(TEST_RUNGS)
    tested = [ladder.readings[q] for q in rungs]
    largest = density.bandwidth_range[1][0] / tested[-1].bandwidth[0]
    wider = np.geomspace(1.0, largest, COARSER + 1)[1:] if len(rungs) == 1 and largest > 1 else np.zeros(0)
    approach = [reading(density.reading(s * tested[-1].bandwidth)) for s in wider]
    starts = np.zeros((0, ladder.d)) if atoms is None else atoms.centres
    found = summits_by_scale([*tested, *approach], starts)[: len(tested)]
    layers = [_layer(q, summits, count, len(rungs)) for q, summits in zip(rungs, found, strict=True)]
    return Survey(ladder, layers, atoms)


def _layer(rung: int, summits: Summits, count: float, tries: int) -> Layer:
    fog = Fog.of(summits.reading, count)
    chances, drop = peak_chances(fog, summits, WORTH_JUDGING / tries)
    return Layer(rung, fog, summits, np.minimum(tries * chances, 1.0), drop)


def _clear(layer: Layer) -> IntArray:
    """Peaks that are worth an atom: higher than the fog, and no mere bump on a plateau."""
    height = layer.summits.heights / layer.summits.reading.unit
    high = height > layer.fog.highest(CLEAR) * np.sqrt(layer.fog.variance)
    return np.flatnonzero(high & (layer.drop > layer.fog.needed(0.5) / 2))


def _chosen(layers: list[Layer], picked: list[IntArray]) -> tuple[FloatArray, IntArray]:
    """Picked peaks and their rungs: coarse ones first, each replaced by what it splits into."""
    kept: list[tuple[Layer, int]] = []
    for layer, indices in zip(reversed(layers), reversed(picked), strict=True):
        fresh = [int(i) for i in indices]
        points = layer.summits.positions
        remaining = []
        homes = {id(parent): parent.basins(points[fresh]) for parent, _ in kept}
        labels = {child: k for k, child in enumerate(fresh)}
        for parent, i in kept:
            children = [c for c in fresh if homes[id(parent)][labels[c]] == i]
            if len(children) == 1:  # the same mode seen again: followed from the coarser view, which noise bends less
                fresh.remove(children[0])
            if len(children) <= 1:
                remaining.append((parent, i))
        kept = remaining + [(layer, i) for i in fresh]
    d = layers[0].summits.positions.shape[1]
    positions = np.array([layer.summits.positions[i] for layer, i in kept]).reshape(-1, d)
    return positions, np.array([layer.rung for layer, _ in kept], dtype=np.int64)


def _best(layers: list[Layer], k: int) -> tuple[FloatArray, IntArray]:
    """Give the k highest peaks at the scale where the k-th stands clearest above the next and above the fog."""
    available = np.array([min(len(layer.summits.heights), k) for layer in layers])
    scores = np.empty(len(layers))
    for q, layer in enumerate(layers):
        sd = np.sqrt(layer.fog.variance)
        heights = layer.summits.heights / layer.summits.reading.unit
        kth, following = np.concatenate([heights, np.zeros(k + 1)])[k - 1 : k + 1] / sd
        scores[q] = (kth - following) + 0.5 * (kth - layer.fog.highest(0.5))
    chosen = layers[int(np.argmax(np.where(available == available.max(), scores, -np.inf)))]
    points = chosen.summits.positions[:k]
    return points, np.full(len(points), chosen.rung)


def _p_values(layers: list[Layer], positions: FloatArray) -> FloatArray:
    """P-value of the clearest peak within a bandwidth of each position, over the tested scales."""
    best = np.ones(len(positions))
    for layer in layers:
        for k, position in enumerate(positions):
            offset = (layer.summits.positions - position) / layer.summits.reading.bandwidth
            near = np.linalg.norm(offset, axis=1) <= np.sqrt(len(position)) / 2
            best[k] = min([best[k], *layer.p[near]])
    return best


def fog_anywhere(density: PrivateDensity, ladder: Ladder, level: float) -> tuple[float, FloatArray, float]:
    """Prominence needed, bandwidth and share of records in one narrow place, at the scale where that share is least."""
    layers = survey_of(density, ladder).layers
    found = []
    for layer in layers:
        reading = layer.summits.reading
        share = layer.fog.needed(level / len(layers)) * float(np.sqrt(layer.fog.variance))
        found.append((share, share * reading.unit, reading.bandwidth))
    share, prominence, bandwidth = min(found, key=lambda entry: entry[0])
    return prominence, bandwidth, min(share, 1.0)


def fog_level_anywhere(
    density: PrivateDensity, reading: Any, level: float, at: FloatArray | None
) -> float | FloatArray:
    """Prominence that noise alone reaches with probability ``level``, at the highest peak found or at given points."""
    layer = survey_of(density, make_ladder(density, reading.bandwidth)).layers[0]
    places = layer.summits.positions[:1] if at is None else at
    _, sd = layer.fog.look(places)
    if at is None and not len(places):  # no peak at all: the noise of an empty place
        sd = np.array([np.sqrt(layer.fog.variance)])
    prominence = layer.fog.needed(level) * reading.unit * sd
    return float(prominence[0]) if at is None else np.asarray(prominence)


def _what_would_help(density: PrivateDensity, layers: list[Layer], level: float) -> str:
    """Say what kept every peak below the fogline; no advice to spend more where nothing was counted."""
    if said := nothing_counted(density):
        return said
    shortfall, clearest = np.inf, layers[-1]
    for layer in layers:
        ratio = layer.fog.needed(level / len(layers)) / max(float(layer.drop.max(initial=0.0)), 1e-9)
        if ratio < shortfall:
            shortfall, clearest = ratio, layer
    share = clearest.fog.privacy / clearest.fog.variance
    seen = f"has at most {100 / shortfall:.0f}% of the prominence needed"
    if shortfall <= 1:
        seen = "cannot be told from a plateau or a slope"
    return (
        f"nothing stands above the fog: the clearest peak, at bandwidth {_widths(clearest)}, {seen}; {share:.0%} of "
        f"the noise there is privacy noise; {_cure(density, layers, level)}"
    )


def _cure(density: PrivateDensity, layers: list[Layer], level: float) -> str:
    """How many records or how much epsilon would show a group as wide as the bandwidth, at the scale best for it."""
    times = [_lacking(layer, level / len(layers)) for layer in layers]
    best = int(np.argmin(times))
    group = f"a group of {GROUP:.0%} of the records, with standard deviations of {_widths(layers[best])},"
    if times[best] <= 1:
        return f"{group} would be seen: smaller or wider ones need more records, more epsilon or another bandwidth"
    return (
        f"{group} would need about {_rounded(times[best])} times the epsilon, or "
        f"{_rounded(times[best] * density.count)} records; fewer columns would need less"
    )


def _lacking(layer: Layer, level: float) -> float:
    """How many times too small the budget is for such a group in the middle of the box, which its tails may fill."""
    reading = layer.summits.reading
    d = reading.spec.d
    at_wall = 2 * float(np.exp(-np.min((reading.spec.widths / reading.bandwidth) ** 2) / 16))
    drop = GROUP * 2 ** (-d / 2) * (1 - at_wall)
    needed = layer.fog.needed(level, dip=2.0) * float(np.sqrt(layer.fog.privacy))
    return needed / drop if drop > 0 else np.inf


def _widths(layer: Layer) -> str:
    """Bandwidth of a layer in words, short where there are many columns."""
    shown = [f"{h:.3g}" for h in layer.summits.reading.bandwidth]
    return ", ".join(shown if len(shown) <= 4 else [*shown[:3], "...", shown[-1]])


def _rounded(number: float) -> str:
    """Give a number with two digits, and without an exponent unless it is huge."""
    short = float(f"{number:.2g}")
    return f"{short:.0f}" if 10 <= short < 1e9 else f"{short:g}"
