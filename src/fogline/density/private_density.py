r"""What a release publishes: noisy Fourier sums of the records, and all that can be read from them.

Everything here is post-processing of released numbers: ask as often as you like, at any bandwidth, at no
further privacy cost.
"""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_count, check_level
from fogline.accounting.guarantee import Guarantee
from fogline.density.feature_reading import RandomReading
from fogline.density.grid_reading import Grid, Reading
from fogline.density.random_spec import UNIT, RandomSpec, Spec, spec_from_dict
from fogline.density.spec import LATTICE_BITS, WEIGHT_BITS, as_bandwidth

if TYPE_CHECKING:
    from fogline.density.modes.on_grid import ModeTable

__all__ = ["PrivateDensity"]

FloatArray = NDArray[np.float64]

FORMAT = "fogline-density-1"
DEFAULT_BANDWIDTH_HEIGHT = 8.0
"""The default bandwidth is the smallest at which the highest peak stands this many noise deviations high."""


class PrivateDensity:
    """A density released under differential privacy, at every bandwidth of its range.

    Made by :meth:`fogline.DensitySketch.release`; safe to publish, save, pickle and question without limit.

    Attributes
    ----------
    guarantee : Guarantee
        Who is protected, against what, how much.
    receipt : dict or None
        What the ledger was charged, if one paid for the release.
    count : float
        Released number of records, at least 1.
    coefficients : complex array of shape (F,)
        Released Fourier sums in records, one of each pair of frequencies, the count first.
    weights : array of shape (F,)
        Weight of each frequency in a record's unit vector (both signs together); sums to one.
    noise_scale : float
        Standard deviation of the noise on the weighted sums, in records.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> x = np.random.default_rng(0).normal(4, 1, size=(5000, 1))
    >>> density = DensitySketch([(0, 10)]).update(x).release(epsilon=1.0, delta=1e-6)
    >>> density.pdf([[4.0]]).shape
    (1,)
    >>> bool(density.noise_sd(0.05) < density.noise_sd(0.02))
    True
    """

    def __init__(
        self,
        spec: Spec,
        released: NDArray[np.int64],
        *,
        scale: float,
        guarantee: Guarantee,
        receipt: dict[str, Any] | None = None,
    ) -> None:
        self.spec: Any = spec  # of either kind: who reads a grid, or searches without one, knows which
        self.guarantee = guarantee
        self.receipt = receipt
        self._released = np.asarray(released, dtype=np.int64)
        self._scale = float(scale)
        self._readings: dict[tuple[float, ...], Any] = {}
        self._memory: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"PrivateDensity({self.spec.d} axes, about {self.count:.0f} records; {self.guarantee})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "spec": self.spec,
            "released": self._released,
            "scale": self._scale,
            "guarantee": self.guarantee,
            "receipt": self.receipt,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state.pop("spec"), state.pop("released"), **state)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivateDensity):
            return NotImplemented
        return (
            self.spec == other.spec
            and self.guarantee == other.guarantee
            and self.receipt == other.receipt
            and self._scale == other._scale
            and np.array_equal(self._released, other._released)
        )

    __hash__ = None  # type: ignore[assignment]

    # -- what was released ----------------------------------------------------------------------------

    @property
    def weights(self) -> FloatArray:
        """Weight of each kept frequency, both signs together; sums to one up to rounding down."""
        if isinstance(self.spec, RandomSpec):
            return self.spec.feature_weights
        return np.asarray((self.spec.integer_weights / 2.0**WEIGHT_BITS) ** 2)

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the noise on each weighted sum, in records."""
        if isinstance(self.spec, RandomSpec):
            return self._scale / math.sqrt(self.spec.squared_norm)
        return self._scale / 2.0**LATTICE_BITS

    @property
    def coefficients(self) -> NDArray[np.complex128]:
        """Released Fourier sums in records, the count first."""
        if isinstance(self.spec, RandomSpec):
            cosines, sines = self._released[1:].reshape(2, -1) / float(UNIT)
            count = self._released[:1] / float(self.spec.count_unit)
            return np.concatenate([count + 0j, cosines - 1j * sines])
        n = len(self.spec.frequencies)
        sums = self._released[:n].astype(np.complex128)
        sums[1:] += 1j * self._released[n:]
        return np.asarray(sums / 2.0**LATTICE_BITS / np.sqrt(self.weights), dtype=np.complex128)

    @property
    def count(self) -> float:
        """Released number of records, at least 1."""
        return max(float(self.coefficients[0].real), 1.0)

    @property
    def count_sd(self) -> float:
        """Standard deviation of the noise in :attr:`count`."""
        return self.noise_scale / float(np.sqrt(self.weights[0]))

    # -- bandwidths ---------------------------------------------------------------------------------------

    @property
    def bandwidth_range(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest bandwidth that can be read, in data units."""
        low, high = self.spec.readable
        return low, high

    def reading(self, bandwidth: float | ArrayLike | None = None) -> Any:
        """Read the density at one bandwidth; readings are kept.

        A :class:`~fogline.density.grid_reading.Reading` of a grid, or a
        :class:`~fogline.density.feature_reading.RandomReading`.
        """
        h = self.bandwidth if bandwidth is None else as_bandwidth(bandwidth, self.spec.widths)
        self.spec.require_readable(h)
        key = tuple(h.tolist())
        if key not in self._readings:
            sd = self.noise_scale / np.sqrt(self.weights)
            if isinstance(self.spec, RandomSpec):
                self._readings[key] = RandomReading(self.spec, self.coefficients, sd, self.count, h)
            else:
                self._readings[key] = Reading(self.spec, self.coefficients, sd, self.count, h)
        return self._readings[key]

    @property
    def bandwidth(self) -> FloatArray:
        """Bandwidth used where none is given: the smallest at which the highest peak is clear of the noise."""
        if "bandwidth" not in self._memory:
            low, high = self.bandwidth_range
            candidates = np.geomspace(1.0, float(high[0] / 1.5 / low[0]), 8)[:, None] * low
            chosen = candidates[-1]
            for h in candidates:
                reading = self.reading(h)
                if self._height(reading) >= DEFAULT_BANDWIDTH_HEIGHT * reading.noise_sd:
                    chosen = h
                    break
            self._memory["bandwidth"] = chosen
        return np.asarray(self._memory["bandwidth"]).copy()

    def _height(self, reading: Any) -> float:
        """Height of the highest peak; without a grid to look at, the mean density at the records, which is below it."""
        if isinstance(reading, RandomReading):
            return reading.typical_height
        return float(reading.on_grid(2.0).values.max())

    # -- questions ----------------------------------------------------------------------------------------

    def _points(self, x: ArrayLike) -> FloatArray:
        points = np.asarray(x, dtype=np.float64)
        if points.ndim == 1 and self.spec.d == 1:
            points = points[:, None]
        if points.ndim != 2 or points.shape[1] != self.spec.d:
            raise ValueError(f"x must have shape (points, {self.spec.d}), got {points.shape}")
        with np.errstate(invalid="ignore"):  # nothing is said about points where there is nothing to read: NaN
            return np.where(np.abs(points) < 1e100, points, np.nan)

    def _blocks(self, x: ArrayLike, bandwidth: Any) -> tuple[Any, list[FloatArray]]:
        reading = self.reading(bandwidth)
        points = self._points(x)
        size = max(1, 2**21 // max(1, len(reading.angular)))
        return reading, [points[i : i + size] for i in range(0, max(1, len(points)), size)]

    def pdf(self, x: ArrayLike, bandwidth: float | ArrayLike | None = None) -> FloatArray:
        """Density at points x of shape (p, d); may dip below zero, where there is only noise."""
        reading, blocks = self._blocks(x, bandwidth)
        return np.concatenate([reading.value(b) for b in blocks])

    def gradient(self, x: ArrayLike, bandwidth: float | ArrayLike | None = None) -> FloatArray:
        """Gradient of the density, shape (p, d)."""
        reading, blocks = self._blocks(x, bandwidth)
        return np.concatenate([reading.jet(b)[1] for b in blocks])

    def hessian(self, x: ArrayLike, bandwidth: float | ArrayLike | None = None) -> FloatArray:
        """Hessian of the density, shape (p, d, d)."""
        reading, blocks = self._blocks(x, bandwidth)
        return np.concatenate([reading.jet(b)[2] for b in blocks])

    def noise_sd(self, bandwidth: float | ArrayLike | None = None) -> float:
        """Exact standard deviation of the privacy noise of :meth:`pdf`, the same at every point."""
        return float(self.reading(bandwidth).noise_sd)

    def grid(self, bandwidth: float | ArrayLike | None = None, *, per_bandwidth: float = 4.0) -> Grid:
        """Density on a regular grid over the box, by FFT, with so many points a bandwidth; grid features only."""
        grid: Grid = self.reading(bandwidth).on_grid(per_bandwidth)
        return grid

    def fogline(self, bandwidth: float | ArrayLike | None = None, level: float = 0.05, *, at: Any = None) -> Any:
        """How far a peak must stand out before it cannot be noise, in density units.

        Privacy noise and sampling noise alone raise a peak of this prominence anywhere in the box with
        probability ``level``. Sampling noise grows with the density: the value holds where the density is
        highest, or at the points ``at``, one for each. With random features the noise includes their side lobes,
        and the highest place is the highest peak that was found.
        """
        reading = self.reading(bandwidth)
        places = None if at is None else self._points(at)
        if isinstance(self.spec, RandomSpec):
            from fogline.density.modes.without_grid import fog_level_anywhere

            return fog_level_anywhere(self, reading, check_level(level), places)
        from fogline.density.modes.significance import fog_level

        return fog_level(self, reading, check_level(level), places)

    def modes(self, n_modes: int | None = None, *, level: float = 0.05, bandwidth: Any = "auto") -> ModeTable:
        """Modes of the density: the best ``n_modes``, or all that stand above the fogline at ``level``."""
        k = None if n_modes is None else check_count(n_modes, "n_modes")
        if isinstance(self.spec, RandomSpec):
            from fogline.density.modes.without_grid import read_modes_anywhere

            return read_modes_anywhere(self, k, check_level(level), bandwidth)
        from fogline.density.modes.on_grid import read_modes

        return read_modes(self, k, check_level(level), bandwidth)

    def sample(self, k: int, *, bandwidth: float | ArrayLike | None = None, random_state: Any = None) -> FloatArray:
        """Draw k points from the positive part of the density; free, and as private as the density itself."""
        size = check_count(k, "k", minimum=0)
        if isinstance(self.spec, RandomSpec):
            from fogline.density.modes.without_grid import sample_anywhere

            return sample_anywhere(self, size, bandwidth, np.random.default_rng(random_state))
        grid = self.grid(bandwidth)
        mass = np.maximum(grid.values.ravel(), 0.0)
        mass = mass / mass.sum() if mass.sum() > 0 else np.full(mass.size, 1 / mass.size)
        rng = np.random.default_rng(random_state)
        points = grid.points(rng.choice(mass.size, size=size, p=mass))
        spacing = np.array([a[1] - a[0] for a in grid.axes])
        jitter = rng.uniform(-0.5, 0.5, points.shape) + rng.uniform(-0.5, 0.5, points.shape)
        return np.asarray(np.clip(points + jitter * spacing, self.spec.lower, self.spec.upper))

    def under(self, guarantee: Guarantee, receipt: dict[str, Any] | None = None) -> PrivateDensity:
        """Return the same release under the guarantee of the whole that it was a part of."""
        return PrivateDensity(self.spec, self._released, scale=self._scale, guarantee=guarantee, receipt=receipt)

    # -- files --------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the release to one file (JSON and integers, no pickle); nothing is lost."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> PrivateDensity:
        """Read a release written by :meth:`save`."""
        return cls.from_bytes(Path(path).read_bytes())

    def to_bytes(self) -> bytes:
        """The file that :meth:`save` writes."""
        header = {
            "format": FORMAT,
            "spec": self.spec.to_dict(),
            "scale": self._scale.hex(),
            "guarantee": self.guarantee.to_dict(),
            "receipt": self.receipt,
        }
        file = io.BytesIO()
        np.savez(file, header=np.array(json.dumps(header)), released=self._released)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, receipt: dict[str, Any] | None = None) -> PrivateDensity:
        """Inverse of :meth:`to_bytes`; a receipt given here takes the place of the one inside."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as content:
                header = json.loads(str(content["header"]))
                released = content["released"] if header.get("format") == FORMAT else None
        except (OSError, ValueError, KeyError):
            raise ValueError(f"path: not a density of format {FORMAT}") from None
        if released is None:
            raise ValueError(f"path: not a density of format {FORMAT}: {header.get('format')!r}")
        return cls(
            spec_from_dict(header["spec"]),
            released,
            scale=float.fromhex(header["scale"]),
            guarantee=Guarantee.from_dict(header["guarantee"]),
            receipt=header["receipt"] if receipt is None else receipt,
        )
