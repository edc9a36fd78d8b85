"""Modes: what a page, a terminal or a JSON document says of them, from released values and public configuration.

A peak is judged at a few bandwidths; the one at which it stands out most counts
(:mod:`fogline.density.modes.significance`), and its *standing* is its prominence against the fogline there. Reading
this again costs nothing: the simulations are kept with the density.

In more axes than a grid can have there are no basins, hence no shares, and no fogline for the whole box: each peak was
tested where it is, and its p-value says how that went. The map then shows the two columns in which the modes differ
most, for their ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import BandwidthLike, BoolArray, FloatArray, IntArray
from fogline.density.modes.on_grid import make_scale_space
from fogline.density.modes.peaks import Basins, basins, find_peaks
from fogline.density.modes.search import search_of
from fogline.density.modes.significance import null_of, tested_scales
from fogline.density.private_density import PrivateDensity
from fogline.estimators.mode_fit import ModeFit
from fogline.report._svg import HUES, plus_minus, significant, tick_label
from fogline.report.frame import (
    ConsoleTable,
    column_names,
    count_words,
    frame_content,
    left_out_words,
    listed,
    p_value,
    python_call,
    share_with_error,
    values_with_errors,
    versions,
)
from fogline.report.summaries import INTERVAL, Summary, notes_of, released_facts, spread_cells

if TYPE_CHECKING:
    from fogline.density.modes.leaf_peaks import ScaleTest
    from fogline.density.modes.significance import NoiseField
    from fogline.report._density_plots import DensityCurve
    from fogline.report._plots import Plane, Profile

__all__ = [
    "Findings",
    "Standing",
    "Standings",
    "WideFindings",
    "estimator_document",
    "find_modes",
    "find_wide_modes",
    "mode_values",
    "modes_content",
    "modes_document",
    "modes_frame",
    "modes_plot",
    "modes_summary",
    "modes_table",
    "modes_title",
    "standings",
    "wide_modes_content",
    "wide_modes_document",
    "wide_modes_frame",
    "wide_modes_plot",
    "wide_modes_summary",
    "wide_modes_table",
    "wide_modes_title",
]


MOST_HEAPS = 5
"""Point masses that are named one by one."""


@dataclass(frozen=True)
class Standing:
    """A peak's prominence and the fogline it is held against, in density units, at its clearest bandwidth."""

    prominence: float
    fogline: float
    bandwidth: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Prominence over fogline: above 1 the peak cannot well be noise."""
        return self.prominence / self.fogline


@dataclass(frozen=True)
class Standings:
    """Standing of each mode, of the clearest other peak if there is one, and the fogline at each tested scale.

    ``scales`` holds pairs of a bandwidth and the fogline there, where the noise is largest.
    """

    modes: tuple[Standing, ...]
    other: Standing | None
    scales: tuple[tuple[tuple[float, ...], float], ...]


def standings(
    density: PrivateDensity, modes: ArrayLike, *, level: float, bandwidth: BandwidthLike = "auto"
) -> Standings:
    """Hold the modes, and the clearest peak that is none, against the fogline.

    Parameters
    ----------
    density : PrivateDensity
    modes : array-like of shape (k, d)
    level : float
        Chance that noise alone reaches the fogline anywhere.
    bandwidth : "auto", float or array-like
        As the modes were read.

    Examples
    --------
    >>> from fogline import PrivateModes
    >>> from fogline.datasets.simulated import gaussian_mixture4
    >>> found = PrivateModes(epsilon=2.0, delta=1e-5, bounds=[(-10, 10)] * 2)
    >>> found = found.fit(gaussian_mixture4(5000, random_state=0).X)
    >>> seen = standings(found.density_, found.modes_, level=0.05)
    >>> all(standing.ratio > 1 for standing in seen.modes)
    True
    """
    places = np.asarray(modes, dtype=np.float64).reshape(-1, density.spec.d)
    if density.leaves is not None:
        return _leaf_standings(density, places, level, bandwidth)
    scale_space = make_scale_space(density, bandwidth)
    null = null_of(density, [scale_space.readings[q] for q in tested_scales(scale_space)])
    best: list[Standing | None] = [None] * len(places)
    other: Standing | None = None
    scales = []
    for scale, noise_field in enumerate(null.noise_fields):
        # A level near one needs no prominence at all; ratios must stay finite.
        needed = max(null.needed(scale, level), 1e-12)
        h = tuple(noise_field.reading.bandwidth.tolist())
        scales.append((h, float(needed * noise_field.sd_released.max())))
        seen = _Peaks.of(noise_field)
        # A mode was located at its own best bandwidth, so it may lie beside the peak of this one.
        near = seen.near(places)
        for k in range(len(places)):
            for i in np.flatnonzero(near[k]):
                best[k] = _clearer(best[k], Standing(seen.prominence[i], needed * seen.sd[i], h))
        for i in np.flatnonzero(~near.any(axis=0) & ~seen.holds(places)):
            other = _clearer(other, Standing(seen.prominence[i], needed * seen.sd[i], h))
    # With a number of modes given, some of them may be no peak at any tested bandwidth.
    flat = [Standing(0.0, scales[-1][1], scales[-1][0]) if s is None else s for s in best]
    return Standings(tuple(flat), other, tuple(scales))


def _leaf_standings(density: PrivateDensity, places: FloatArray, level: float, bandwidth: BandwidthLike) -> Standings:
    """Hold modes of a release on leaves against the fogline of the scales that they were tested at."""
    from fogline.density.modes.from_leaves import search_leaves

    search = search_leaves(density, bandwidth)
    best: list[Standing | None] = [None] * len(places)
    other: Standing | None = None
    scales = []
    unit = search.counts.count / density.count / search.counts.volume
    for test, layer in zip(search.tests, search.layers, strict=True):
        needed = max(test.needed(level), 1e-12)
        h = tuple(test.grid.bandwidth.tolist())
        scales.append((h, float(needed * test.sd.max() * unit)))
        homes = {layer.basin(place) for place in places}
        for i in np.flatnonzero(np.isfinite(test.standing)).tolist():
            sd = float(test.sd.ravel()[test.peaks.cell[i]]) * unit
            standing = Standing(float(test.peaks.prominence[i]) * unit, needed * sd, h)
            near = [
                k for k, place in enumerate(places) if layer.basin(place) == i or _within(layer.points[i], place, h)
            ]
            for k in near:
                best[k] = _clearer(best[k], standing)
            if not near and i not in homes:
                other = _clearer(other, standing)
    for scale, test in enumerate(search.tests):
        for k, known in enumerate(best):
            if known is None or known.ratio < 1:
                best[k] = _hill_standing(test, scale, places[k], unit, level, known)
    flat = [Standing(0.0, scales[-1][1], scales[-1][0]) if s is None else s for s in best]
    return Standings(tuple(flat), other, tuple(scales))


def _hill_standing(
    test: ScaleTest, scale: int, place: FloatArray, unit: float, level: float, known: Standing | None
) -> Standing | None:
    """Standing of a mode near a wall: that of its hill, which was tested as one that may be highest at the wall."""
    layer = test.wall_layer(scale)
    i = layer.basin(place)
    if layer.p[i] > level:
        return known
    sd = float(test.sd.ravel()[layer.peaks.cell[i]]) * unit
    needed = max(test.wall.quantile(level, test.effective_tests), 1e-12)
    return _clearer(
        known, Standing(float(layer.peaks.prominence[i]) * unit, needed * sd, tuple(test.grid.bandwidth.tolist()))
    )


def _within(point: FloatArray, place: FloatArray, bandwidth: tuple[float, ...]) -> bool:
    return bool(np.linalg.norm((point - place) / np.array(bandwidth)) <= 1)


def _clearer(known: Standing | None, new: Standing) -> Standing:
    return new if known is None or new.ratio > known.ratio else known


@dataclass(frozen=True)
class _Peaks:
    """Peaks of the released density within the box at one tested bandwidth."""

    ground: NoiseField
    points: FloatArray
    number: IntArray
    basin: IntArray
    prominence: list[float]
    sd: list[float]

    @classmethod
    def of(cls, noise_field: NoiseField) -> _Peaks:
        reading = noise_field.reading
        peaks, standardised_prominence, _ = noise_field.measure_released()
        kept = np.flatnonzero(np.isfinite(standardised_prominence))
        axes = reading.grid_axes(noise_field.shape)
        index = np.unravel_index(peaks.cell[kept], tuple(len(a) for a in axes))
        points = np.stack([a[i] for a, i in zip(axes, index, strict=True)], axis=1)
        sd = noise_field.sd_released.ravel()[peaks.cell[kept]]
        return cls(
            noise_field, points, kept, peaks.basin[0], (standardised_prominence[kept] * sd).tolist(), sd.tolist()
        )

    def near(self, places: FloatArray) -> BoolArray:
        """Whether each place lies within a bandwidth of each peak, shape (places, peaks)."""
        offset = (places[:, None] - self.points[None]) / self.ground.reading.bandwidth
        return np.asarray(np.sum(offset**2, axis=2) <= 1)

    def holds(self, places: FloatArray) -> BoolArray:
        """Whether the basin of each peak holds one of the places."""
        axes = self.ground.reading.grid_axes(self.ground.shape)
        cells = tuple(
            np.clip(np.rint((places[:, j] - a[0]) / (a[1] - a[0])).astype(np.int64), 0, len(a) - 1)
            for j, a in enumerate(axes)
        )
        return np.isin(self.number, self.basin[cells])


@dataclass(frozen=True, eq=False)
class Findings:
    """What was released, read at one bandwidth for the picture.

    Attributes
    ----------
    estimator : ModeFit
        Fitted.
    columns : tuple of str
    bandwidth : array of shape (d,)
        At which the picture is read: the finest at which a mode was located, or the clearest peak if none was.
    basins : Basins
    standings : Standings
    noise_sd : float
        Privacy noise of the picture.
    sampling_sd : array of the grid's shape
        Noise of the draw of the records.
    fog_base, fog_height : arrays of the grid's shape
        From where a peak is measured, and how far above it must rise.
    """

    kind: ClassVar[str] = "modes"
    estimator: ModeFit
    columns: tuple[str, ...]
    bandwidth: FloatArray
    basins: Basins
    standings: Standings
    noise_sd: float
    sampling_sd: FloatArray
    fog_base: FloatArray
    fog_height: FloatArray

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def has_posterior_curve(self) -> bool:
        """Whether the picture is the posterior of one column, as on the page of its density.

        A kernel of one bandwidth would contradict modes, walls and point masses that were told at others.
        """
        return self.d == 1 and self.estimator.density_.leaves is not None

    @property
    def k(self) -> int:
        """Number of modes."""
        return len(self.modes)

    @property
    def modes(self) -> FloatArray:
        """Positions, shape (k, d)."""
        return np.asarray(self.estimator.modes_)

    @property
    def covariances(self) -> FloatArray:
        """Error of each position, shape (k, d, d)."""
        return np.asarray(self.estimator.covariances_)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public range of each column."""
        return tuple((float(low), float(high)) for low, high in self.estimator.density_.spec.bounds)


def find_modes(estimator: ModeFit, columns: Sequence[str] | None = None) -> Findings | WideFindings:
    """Read what a page shows from a fitted estimator; costs no privacy."""
    has_grid = search_of(estimator.density_.spec).has_grid
    return _find_on_grid(estimator, columns) if has_grid else find_wide_modes(estimator, columns)


def _find_on_grid(estimator: ModeFit, columns: Sequence[str] | None) -> Findings:
    density = estimator.density_
    names = column_names(estimator, columns)
    seen = standings(density, estimator.modes_, level=estimator.level, bandwidth=estimator.bandwidth)
    bandwidth = _picture_bandwidth(estimator, seen)
    reading = density.reading(bandwidth)
    ends = [wall.position for wall in estimator.boundary_modes_]
    found = basins(density, estimator.modes_, bandwidth, boundary=ends)
    squared = 1 / float(np.prod(2 * np.sqrt(np.pi) * bandwidth))
    values = found.grid.values
    # Fog is drawn under a curve only: a map has no height to draw it at.
    base, height = _fog(estimator, found, bandwidth, seen) if len(names) == 1 else (0 * values, 0 * values)
    return Findings(
        estimator=estimator,
        columns=names,
        bandwidth=bandwidth,
        basins=found,
        standings=seen,
        noise_sd=reading.noise_sd,
        sampling_sd=np.sqrt(squared * np.maximum(values, 0) / density.count),
        fog_base=base,
        fog_height=height,
    )


def _picture_bandwidth(estimator: ModeFit, seen: Standings) -> FloatArray:
    if len(estimator.modes_):
        return np.asarray(np.min(estimator.bandwidth_, axis=0))
    return estimator.density_.bandwidth if seen.other is None else np.array(seen.other.bandwidth)


def _fog(estimator: ModeFit, found: Basins, bandwidth: FloatArray, seen: Standings) -> tuple[FloatArray, FloatArray]:
    """Where the fog begins and how thick it is, along one column: it lies in the passes between the peaks.

    Without a mode all is fog, up to where the highest summit would have to rise.
    """
    values, axis = found.grid.values, found.grid.axes[0]
    if not len(estimator.modes_):
        # How far the clearest peak would still have to rise.
        missing = 0.0 if seen.other is None else max(seen.other.fogline - seen.other.prominence, 0.0)
        base = np.full(values.shape, min(float(values.min()), 0.0))
        return base, float(values.max()) + missing - base
    peaks = find_peaks(values[None])
    base = (peaks.height - peaks.prominence)[peaks.basin[0]]
    for k, mode in enumerate(estimator.modes_):
        home = peaks.basin[0][int(np.argmin(np.abs(axis - mode[0])))]
        base[found.labels == k] = peaks.height[home] - peaks.prominence[home]
    # beyond the basins of modes a curve may fall far below its pass: the fog lies on it, and does not float above
    beyond = ~np.isin(found.labels, range(len(estimator.modes_)))
    base[beyond] = np.minimum(base, values)[beyond]
    return np.maximum(base, 0.0), np.asarray(estimator.density_.fogline(bandwidth, estimator.level, at=axis[:, None]))


def modes_document(findings: Findings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    estimator = findings.estimator
    scales = [{"bandwidth": list(h), "prominence": value} for h, value in findings.standings.scales]
    found = []
    for k, standing in enumerate(findings.standings.modes):
        beside = {
            "prominence": standing.prominence,
            "fogline": standing.fogline,
            "share": float(findings.basins.shares[k]),
            "share_error": float(findings.basins.share_errors[k]),
        }
        found.append({**mode_values(estimator, k), **beside})
    bounds = [list(pair) for pair in findings.bounds]
    return estimator_document(estimator, findings.columns, bounds, found, command, scales=scales)


def estimator_document(
    estimator: ModeFit,
    columns: Sequence[str],
    bounds: list[list[float]],
    found: list[dict[str, Any]],
    command: str | None,
    *,
    scales: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the document of modes that are described already."""
    density = estimator.density_
    low, high = density.bandwidth_range
    return {
        "format": "fogline-modes-1",
        "command": command or python_call(estimator),
        "columns": list(columns),
        "bounds": bounds,
        "modes": found,
        **beside_values(estimator, columns),
        "message": estimator.message_,
        "count": {"value": density.count, "standard_error": density.count_sd},
        "guarantee": {**estimator.guarantee_.to_dict(), "statement": str(estimator.guarantee_)},
        "fogline": {"level": estimator.level, "scales": scales},
        "bandwidths": {
            **({} if density.leaves is not None else {"planned": density.spec.planned.tolist()}),
            "smallest": low.tolist(),
            "largest": high.tolist(),
            "steps": list(density.spec.steps),
        },
        "versions": versions(),
    }


def beside_values(estimator: ModeFit, columns: Sequence[str]) -> dict[str, Any]:
    """Return modes at walls and point masses as plain values; nothing for a release that cannot tell them."""
    if estimator.density_.leaves is None:
        return {}
    ends = [
        {
            "walls": [{"column": columns[axis], "side": side} for axis, side in mode.ends],
            "position": list(mode.position),
            "height": mode.height,
            "share": mode.share,
            "share_error": mode.share_error,
            "p_value": mode.p_value,
        }
        for mode in estimator.boundary_modes_
    ]
    heaps = [
        {"value": list(heap.value), "low": list(heap.low), "high": list(heap.high), "share": heap.share,
         "share_error": heap.error}
        for heap in estimator.point_masses_
    ]  # fmt: skip
    return {"boundary_modes": ends, "point_masses": heaps}


def beside_words(estimator: ModeFit, columns: Sequence[str]) -> tuple[str, ...]:
    """Say where records are densest at a wall, and which values hold many of them; nothing where there are none."""
    said = []
    for mode in estimator.boundary_modes_:
        said.append(
            f"Mode at a wall: {mode.words(list(columns))}, density {significant(mode.height)}, "
            f"{share_with_error(mode.share, mode.share_error)} of the records on its slopes, "
            f"p-value {p_value(mode.p_value)}."
        )
    for heap in estimator.point_masses_[:MOST_HEAPS]:
        value = heap.words(columns, estimator.density_.spec.steps).replace("-", "−")
        said.append(f"Point mass: {value}, {100 * heap.share:.1f}% ± {100 * heap.error:.1f}% of the records.")
    if len(estimator.point_masses_) > MOST_HEAPS:
        said.append(f"And {len(estimator.point_masses_) - MOST_HEAPS} smaller point masses.")
    return tuple(said)


def mode_values(estimator: ModeFit, k: int) -> dict[str, Any]:
    """Return one mode as plain values."""
    return {
        "position": estimator.modes_[k].tolist(),
        "standard_errors": estimator.standard_errors_[k].tolist(),
        "privacy_errors": np.sqrt(np.diag(estimator.privacy_covariances_[k])).tolist(),
        "sampling_errors": np.sqrt(np.diag(estimator.sampling_covariances_[k])).tolist(),
        "covariance": estimator.covariances_[k].tolist(),
        "height": float(estimator.heights_[k]),
        "p_value": float(estimator.p_values_[k]),
        "bandwidth": estimator.bandwidth_[k].tolist(),
    }


def modes_table(findings: Findings) -> ConsoleTable:
    """Modes with their errors and shares, the count, the guarantee, and what would help."""
    estimator, rows = findings.estimator, []
    shares, errors = findings.basins.shares, findings.basins.share_errors
    for k in range(findings.k):
        where = values_with_errors(estimator.modes_[k], estimator.standard_errors_[k])
        height = [significant(float(estimator.heights_[k])), p_value(float(estimator.p_values_[k]))]
        ratio = findings.standings.modes[k].ratio
        # A mode near a wall is told by the rise from the wall, not by its height above the passes of the whole box.
        standing = f"{significant(ratio, 2)} × fogline" if ratio >= 1 else "by the wall"
        rows.append((str(k + 1), *where, *height, standing, share_with_error(float(shares[k]), float(errors[k]))))
    return ConsoleTable(
        "Modes, highest first",
        ("mode", *findings.columns, "density", "p-value", "prominence", "share of mass"),
        tuple(rows),
        sentences=(*beside_words(estimator, findings.columns), *count_words(estimator)),
    )


def modes_content(findings: Findings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    from fogline.report._charts import share_bar, standing_chart

    estimator, density = findings.estimator, findings.estimator.density_
    rest = 1 - float(findings.basins.shares.sum())
    return {
        **frame_content(estimator, density),
        "d": findings.d,
        "k": findings.k,
        "columns": findings.columns,
        "bounds": [(tick_label(low), tick_label(high)) for low, high in findings.bounds],
        "steps": [tick_label(s) if s else "" for s in density.spec.steps],
        "modes": [_mode(findings, k) for k in range(findings.k)],
        "known": estimator.n_modes is not None,
        "beside": beside_words(estimator, findings.columns),
        "bandwidth": listed(
            [f"{significant(h)} ({name})" for h, name in zip(findings.bandwidth, findings.columns, strict=True)]
        ),
        "rest": f"{100 * min(max(rest, 0.0), 1.0):.0f}%",
        "other": None if findings.standings.other is None else significant(findings.standings.other.ratio, 2),
        # beyond the fogline and no mode all the same
        "other_stands_out": findings.standings.other is not None and findings.standings.other.ratio > 1,
        "posterior": findings.has_posterior_curve,
        "walls": bool(estimator.boundary_modes_),
        "atoms": findings.has_posterior_curve and bool(estimator.point_masses_),
        "figures": _figures(findings),
        "chart": standing_chart(findings),
        "bar": share_bar(findings),
    }


def _figures(findings: Findings) -> list[str]:
    """Pictures of the density; of one column that was counted on leaves the one that its own page has, with modes."""
    from fogline.report._plots import figures

    if not findings.has_posterior_curve:
        return figures(findings)
    from fogline.report._density_plots import posterior_curve

    curve, marks = _marked_curve(findings)
    dense_ends = [mode.ends[0][1] for mode in findings.estimator.boundary_modes_]
    return [posterior_curve(curve, marks=marks, dense_ends=dense_ends)]


def _marked_curve(findings: Findings) -> tuple[DensityCurve, Profile]:
    """Curve of the posterior of one column, and its modes on it with the stretches that are theirs."""
    from fogline.report._plots import Profile
    from fogline.report.density import read_curve

    density = findings.estimator.density_
    curve = read_curve(density.posterior, 0, findings.columns[0])
    curve = curve if density.units is None else replace(curve, unit=density.units[0])
    x, value, _, _ = curve.outlines(curve.limits)
    grid = findings.basins.grid.axes[0]
    nearest = np.clip(np.rint((x - grid[0]) / (grid[1] - grid[0])).astype(np.int64), 0, len(grid) - 1)
    labels, errors = findings.basins.labels[nearest], np.sqrt(findings.covariances[:, 0, 0])
    places = findings.modes[:, 0]
    return curve, Profile(curve.name, curve.limits, x, value, np.zeros(len(x)), labels, places, errors)


def modes_title(findings: Findings) -> str:
    """Return the title of a page that was given none."""
    return f"Modes of {listed(findings.columns)}"


def _mode(findings: Findings, k: int) -> dict[str, Any]:
    estimator, standing = findings.estimator, findings.standings.modes[k]
    privacy = np.sqrt(np.diag(estimator.privacy_covariances_[k]))
    sampling = np.sqrt(np.diag(estimator.sampling_covariances_[k]))
    where = [
        plus_minus(*pair)
        for pair in zip(
            estimator.modes_[k].tolist(),
            zip(estimator.standard_errors_[k].tolist(), privacy.tolist(), sampling.tolist(), strict=True),
            strict=True,
        )
    ]
    return {
        "number": k + 1,
        "hue": HUES[k % len(HUES)],
        "where": where,
        "height": significant(float(estimator.heights_[k])),
        "p_value": p_value(float(estimator.p_values_[k])),
        "bandwidth": " × ".join(significant(float(h), 2) for h in estimator.bandwidth_[k]),
        "ratio": significant(standing.ratio, 2),
        "above": standing.ratio >= 1,
        "share": f"{100 * float(np.clip(findings.basins.shares[k], 0, 1)):.0f}",
        "share_error": f"{100 * float(findings.basins.share_errors[k]):.1f}".removesuffix(".0"),
    }


@dataclass(frozen=True, eq=False)
class WideFindings:
    """What was released, and a map of it.

    Attributes
    ----------
    estimator : ModeFit
        Fitted.
    columns : tuple of str
    picture : Plane
    """

    kind: ClassVar[str] = "wide modes"
    estimator: ModeFit
    columns: tuple[str, ...]
    picture: Plane

    @property
    def k(self) -> int:
        """Number of modes."""
        return len(self.estimator.modes_)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public range of each column."""
        return tuple((float(low), float(high)) for low, high in self.estimator.density_.spec.bounds)

    @property
    def shown(self) -> list[int]:
        """Columns of a table."""
        from fogline.report._plots import MOST_COLUMNS, telling_columns

        return telling_columns(self.estimator.modes_, np.asarray(self.bounds), MOST_COLUMNS)


def find_wide_modes(estimator: ModeFit, columns: Sequence[str] | None = None) -> WideFindings:
    """Read what a page shows from a fitted estimator; costs no privacy."""
    from fogline.report._plots import Space, read_plane, telling_columns

    density, modes = estimator.density_, estimator.modes_
    names = column_names(estimator, columns)
    bandwidth = np.min(estimator.bandwidth_, axis=0) if len(modes) else density.bandwidth
    first, second = telling_columns(modes, np.asarray(density.spec.bounds), 2)

    def label(places: FloatArray) -> IntArray:
        # Without basins the nearest mode, in bandwidths, owns a place of the map.
        offset = (places[:, None] - modes) / bandwidth
        return np.asarray(np.argmin(np.sum(offset**2, axis=2), axis=1))

    space = Space(density, names, modes, estimator.covariances_, (first, second), label)
    return WideFindings(estimator, names, read_plane(space, bandwidth))


def wide_modes_document(findings: WideFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    found = [mode_values(findings.estimator, k) for k in range(findings.k)]
    bounds = [list(pair) for pair in findings.bounds]
    return estimator_document(findings.estimator, findings.columns, bounds, found, command, scales=[])


def wide_modes_content(findings: WideFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    from fogline.report._plots import plane_map

    estimator, shown = findings.estimator, findings.shown
    rows = []
    for k in range(findings.k):
        where = zip(estimator.modes_[k, shown], estimator.standard_errors_[k, shown], strict=True)
        rows.append(
            {
                "number": k + 1,
                "hue": HUES[k % len(HUES)],
                "where": [plus_minus(float(value), [float(error)]) for value, error in where],
                "height": significant(float(estimator.heights_[k])),
                "p_value": p_value(float(estimator.p_values_[k])),
            }
        )
    return {
        **frame_content(estimator, estimator.density_),
        "k": findings.k,
        "columns": [findings.columns[j] for j in shown],
        "left_out": len(findings.columns) - len(shown),
        "bounds": [tuple(map(tick_label, findings.bounds[j])) for j in shown],
        "modes": rows,
        "known": estimator.n_modes is not None,
        "figures": [plane_map(findings.picture)],
    }


def wide_modes_title(findings: WideFindings) -> str:
    """Return the title of a page that was given none."""
    return f"Modes of {len(findings.columns)} columns"


def wide_modes_table(findings: WideFindings) -> ConsoleTable:
    """Modes with their errors in the columns that tell most, the count, the guarantee, and what would help."""
    estimator, shown, rows = findings.estimator, findings.shown, []
    for k in range(findings.k):
        where = values_with_errors(estimator.modes_[k, shown], estimator.standard_errors_[k, shown])
        height = [significant(float(estimator.heights_[k])), p_value(float(estimator.p_values_[k]))]
        rows.append((str(k + 1), *where, *height))
    return ConsoleTable(
        "Modes, highest first",
        ("mode", *(findings.columns[j] for j in shown), "density", "p-value"),
        tuple(rows),
        left_out=left_out_words(findings.columns, shown),
        sentences=count_words(estimator),
    )


# -- results ------------------------------------------------------------------------------------------------------


def modes_summary(findings: Findings) -> Summary:
    """Return the table of modes: each position with its error, and how far the mode stands out."""
    shares, errors = findings.basins.shares, findings.basins.share_errors
    parts = [share_with_error(*pair) for pair in zip(shares.tolist(), errors.tolist(), strict=True)]
    remarks = [
        f"Mode {k + 1} {_standing_words(standing)} and has {part} of the mass."
        for k, (standing, part) in enumerate(zip(findings.standings.modes, parts, strict=True))
    ]
    return _summary(findings, range(findings.d), remarks)


def _standing_words(standing: Standing) -> str:
    """Say by what a mode was told."""
    if standing.ratio < 1:
        return "is told by the rise of the density from a wall"
    return f"stands {significant(standing.ratio, 2)} times the fogline high"


def wide_modes_summary(findings: WideFindings) -> Summary:
    """Return the table of modes of many columns, in those that tell most."""
    left_out = left_out_words(findings.columns, findings.shown).replace("the document of --json", "to_frame()")
    return _summary(findings, findings.shown, [left_out] if left_out else [])


def _summary(findings: Findings | WideFindings, shown: Sequence[int], remarks: Sequence[str]) -> Summary:
    estimator, rows = findings.estimator, []
    for k in range(findings.k):
        parts = estimator.privacy_covariances_[k], estimator.sampling_covariances_[k]
        for j in shown:
            cells = spread_cells(
                float(estimator.modes_[k, j]),
                float(estimator.standard_errors_[k, j]),
                *(float(np.sqrt(part[j, j])) for part in parts),
            )
            first = j == shown[0]
            more = p_value(float(estimator.p_values_[k])) if first else ""
            rows.append((str(k + 1) if first else "", findings.columns[j], *cells, more))
    bounds = [(tick_label(low), tick_label(high)) for low, high in findings.bounds]
    named = listed(findings.columns) if len(findings.columns) <= 3 else f"{len(findings.columns)} columns"
    return Summary(
        f"Modes of {named}",
        released_facts(estimator, findings.columns, bounds),
        ("mode", "column", "position", *INTERVAL, "privacy", "sampling", "p-value"),
        tuple(rows),
        notes_of(estimator.message_, estimator.guarantee_, *remarks),
        left=2,
    )


def modes_frame(findings: Findings) -> dict[str, list[Any]]:
    """Return the modes as columns of a frame, one row per mode."""
    shares = {"share": findings.basins.shares.tolist(), "share_standard_error": findings.basins.share_errors.tolist()}
    return {**wide_modes_frame(findings), **shares}


def wide_modes_frame(findings: Findings | WideFindings) -> dict[str, list[Any]]:
    """Return the modes of any number of columns as columns of a frame, one row per mode."""
    estimator = findings.estimator
    frame: dict[str, list[Any]] = {"mode": list(range(1, findings.k + 1))}
    for j, name in enumerate(findings.columns):
        frame[name] = estimator.modes_[:, j].tolist()
        frame[f"{name}_standard_error"] = estimator.standard_errors_[:, j].tolist()
    return {**frame, "density": estimator.heights_.tolist(), "p_value": estimator.p_values_.tolist()}


def modes_plot(findings: Findings, ax: Any = None) -> Any:
    """Draw the density and its modes with matplotlib."""
    from fogline.report._axes import axes_for, draw_pictures, mark_profile
    from fogline.report._plots import pictures_of

    if not findings.has_posterior_curve:
        return draw_pictures(pictures_of(findings), ax)
    from fogline.report._density_plots import draw_curve

    (one,) = axes_for(ax)
    curve, marks = _marked_curve(findings)
    draw_curve(curve, one)
    mark_profile(marks, one)
    return one


def wide_modes_plot(findings: WideFindings, ax: Any = None) -> Any:
    """Draw the two columns in which modes differ most."""
    from fogline.report._axes import draw_pictures

    return draw_pictures([findings.picture], ax)
