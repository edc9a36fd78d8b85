"""How far each mode stands above the fogline, in the terms in which it was judged.

A peak is judged at a few bandwidths; the one at which it stands out most counts
(:mod:`fogline.sketch.fog`). Reading this again costs nothing: the simulations are kept with the density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline.sketch import PrivateDensity
from fogline.sketch.fog import null_of, tested_rungs
from fogline.sketch.modes import make_ladder

if TYPE_CHECKING:
    from fogline.sketch.noise_peaks import Ground

__all__ = ["Standing", "Standings", "standings"]

FloatArray = NDArray[np.float64]


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


def standings(density: PrivateDensity, modes: ArrayLike, *, level: float, bandwidth: Any = "auto") -> Standings:
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
    >>> from fogline.datasets import gaussian_mixture4
    >>> found = PrivateModes(epsilon=2.0, delta=1e-5, bounds=[(-10, 10)] * 2)
    >>> found = found.fit(gaussian_mixture4(5000, random_state=0).X)
    >>> seen = standings(found.density_, found.modes_, level=0.05)
    >>> all(standing.ratio > 1 for standing in seen.modes)
    True
    """
    places = np.asarray(modes, dtype=np.float64).reshape(-1, density.spec.d)
    ladder = make_ladder(density, bandwidth)
    null = null_of(density, [ladder.readings[q] for q in tested_rungs(ladder)])
    best: list[Standing | None] = [None] * len(places)
    other: Standing | None = None
    scales = []
    for scale, ground in enumerate(null.grounds):
        needed = max(null.needed(scale, level), 1e-12)
        h = tuple(ground.reading.bandwidth.tolist())
        scales.append((h, float(needed * ground.sd_released.max())))
        seen = _Peaks.of(ground)
        near = seen.near(places)
        for k in range(len(places)):
            for i in np.flatnonzero(near[k]):
                best[k] = _clearer(best[k], Standing(seen.prominence[i], needed * seen.sd[i], h))
        for i in np.flatnonzero(~near.any(axis=0) & ~seen.holds(places)):
            other = _clearer(other, Standing(seen.prominence[i], needed * seen.sd[i], h))
    flat = [Standing(0.0, scales[-1][1], scales[-1][0]) if s is None else s for s in best]
    return Standings(tuple(flat), other, tuple(scales))


def _clearer(known: Standing | None, new: Standing) -> Standing:
    return new if known is None or new.ratio > known.ratio else known


@dataclass(frozen=True)
class _Peaks:
    """Peaks of the released density within the box at one tested bandwidth."""

    ground: Ground
    points: FloatArray
    number: NDArray[np.int64]
    basin: NDArray[np.int64]
    prominence: list[float]
    sd: list[float]

    @classmethod
    def of(cls, ground: Ground) -> _Peaks:
        reading = ground.reading
        peaks, relief, _ = ground.measure_released()
        kept = np.flatnonzero(np.isfinite(relief))
        axes = reading.grid_axes(ground.shape)
        index = np.unravel_index(peaks.cell[kept], tuple(len(a) for a in axes))
        points = np.stack([a[i] for a, i in zip(axes, index, strict=True)], axis=1)
        sd = ground.sd_released.ravel()[peaks.cell[kept]]
        return cls(ground, points, kept, peaks.basin[0], (relief[kept] * sd).tolist(), sd.tolist())

    def near(self, places: FloatArray) -> NDArray[np.bool_]:
        """Whether each place lies within a bandwidth of each peak, shape (places, peaks)."""
        offset = (places[:, None] - self.points[None]) / self.ground.reading.bandwidth
        return np.asarray(np.sum(offset**2, axis=2) <= 1)

    def holds(self, places: FloatArray) -> NDArray[np.bool_]:
        """Whether the basin of each peak holds one of the places."""
        axes = self.ground.reading.grid_axes(self.ground.shape)
        cells = tuple(
            np.clip(np.rint((places[:, j] - a[0]) / (a[1] - a[0])).astype(np.int64), 0, len(a) - 1)
            for j, a in enumerate(axes)
        )
        return np.isin(self.number, self.basin[cells])
