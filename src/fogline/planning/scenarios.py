"""Public guesses of the shape of data, and what a release of data drawn from them publishes: no record is touched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from fogline._typing import BandwidthLike, BoundsLike, FloatArray, IntArray, StepsLike
from fogline._validation import Neighbours
from fogline.accounting.guarantee import Guarantee
from fogline.density.modes.on_grid import ModeTable
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import FourierSpec, RandomSpec
from fogline.queries.exact_counts import exact_counts
from fogline.queries.fourier_sums import lattice_sums

__all__ = ["Guess", "Setting", "Shape", "guess_of", "width_of"]

Draw = Callable[[int, np.random.Generator], FloatArray]

NO_GUARANTEE = Guarantee(
    epsilon=0.0,
    delta=0.0,
    rho=None,
    neighbours="add-remove",
    unit="record",
    max_contributions=1,
    enforced=True,
    certified=False,
    reason="this is a simulation, without any data",
    mechanism="seeded noise",
    proof="",
)


@runtime_checkable
class Shape(Protocol):
    """A density that can be drawn from and climbed, such as `fogline.datasets.simulated.Mixture`."""

    @property
    def centers(self) -> FloatArray:
        """Where its parts are, one row each."""

    def sample(self, n: int, rng: np.random.Generator, /) -> tuple[FloatArray, Any]:
        """Draw n records and what is known of them."""

    def derivatives(self, x: FloatArray, /) -> tuple[float, FloatArray, FloatArray]:
        """Density, gradient and Hessian at one point."""


ShapeLike: TypeAlias = Shape | ArrayLike | None
"""A public guess of a density: None or "uniform" for no shape at all, a mixture, or a public sample."""


class ModeSettings(Protocol):
    """Parameters of an estimator of which fits are simulated."""

    epsilon: float | None
    delta: float | None
    bounds: BoundsLike
    n_modes: int | None
    level: float
    bandwidth: BandwidthLike
    steps: StepsLike
    neighbours: str
    max_contributions: int


@dataclass(frozen=True)
class Setting:
    """Everything public that a simulated fit depends on."""

    spec: FourierSpec
    n: int
    delta: float
    level: float
    neighbours: Neighbours
    max_contributions: int
    n_modes: int | None
    bandwidth: str | tuple[float, ...]
    runs: int

    def density(self, exact: IntArray, noise: FloatArray, scale: float) -> PrivateDensity:
        """Return what a release of the sums `exact` with this much noise publishes."""
        # At such scales the discrete Gaussian and a rounded continuous one cannot be told apart.
        released = exact + np.rint(scale * noise).astype(np.int64)
        return PrivateDensity(replace(self.spec), released, scale=scale, guarantee=NO_GUARANTEE)

    def read(self, density: PrivateDensity) -> ModeTable:
        """Read its modes as a fit would."""
        fixed = self.bandwidth if isinstance(self.bandwidth, str) else np.array(self.bandwidth)
        return density.modes(self.n_modes, level=self.level, bandwidth=fixed)

    def sums(self, rows: FloatArray) -> IntArray:
        """Return the exact sums of some records."""
        counts = exact_counts(self.spec)
        counts.add_rows(rows)
        return counts.table() if isinstance(self.spec, RandomSpec) else lattice_sums(counts.table(), self.spec)


@dataclass(frozen=True)
class Guess:
    """A shape: what it is called, where its modes are, how to draw from it; equal if its key is."""

    key: object
    words: str = field(compare=False)
    modes: FloatArray = field(compare=False)
    draw: Draw = field(compare=False)


def width_of(shape: ShapeLike) -> int | None:
    """Return the number of columns of a shape that has one."""
    if shape is None or isinstance(shape, str):
        return None
    if isinstance(shape, Shape):
        return int(np.shape(shape.centers)[1])
    found = np.shape(shape)
    return int(found[1]) if len(found) == 2 else 1


def guess_of(shape: ShapeLike, setting: Setting) -> Guess:
    """Return the guessed shape as something to draw records from."""
    spec = setting.spec
    if shape is None or (isinstance(shape, str) and shape == "uniform"):
        none = np.zeros((0, spec.d))
        return Guess(
            "uniform", "no shape (uniform)", none, lambda n, rng: rng.uniform(spec.lower, spec.upper, (n, spec.d))
        )
    if isinstance(shape, str):
        raise ValueError(f"shape must be 'uniform', a mixture or a public sample, got {shape!r}")
    if isinstance(shape, Shape):
        mixture = shape
        modes = _summits(mixture, spec)
        words = f"a mixture with {len(modes)} mode{'' if len(modes) == 1 else 's'}"
        return Guess(mixture, words, modes, lambda n, rng: mixture.sample(n, rng)[0])
    return _sample_guess(shape, setting)


def _sample_guess(shape: ShapeLike, setting: Setting) -> Guess:
    """Return the guess that new records are like those of a public sample, each a little off."""
    spec = setting.spec
    try:
        rows = np.asarray(shape, dtype=np.float64).reshape(-1, spec.d)
    except (TypeError, ValueError):
        raise ValueError("shape must be 'uniform', a mixture or an array of numbers, one row per record") from None
    rows = rows[np.all((rows >= spec.lower) & (rows <= spec.upper), axis=1)]
    if len(rows) < 2:
        raise ValueError("shape: a public sample needs at least two rows within the bounds")
    # Drawn again exactly, a small sample would show each of its rows as a peak.
    blur = spec.planned[0] / 2
    # Exact sums, read as if they bore noise about as large as that of the draw, so that the scale fits the sample.
    still, sums = np.zeros(spec.n_coefficients), setting.sums(rows)
    step = 1 / setting.density(sums, still, 1.0).noise_scale  # of the released integers, per record
    scale = np.sqrt(len(rows)) / 16 * step
    modes = setting.read(setting.density(sums, still, scale)).positions
    words = f"like a public sample of {len(rows)} rows with {len(modes)} mode{'' if len(modes) == 1 else 's'}"

    def draw(n: int, rng: np.random.Generator) -> FloatArray:
        moved = rows[rng.integers(len(rows), size=n)] + blur * rng.standard_normal((n, spec.d))
        return np.asarray(np.clip(moved, spec.lower, spec.upper))

    return Guess((hashlib.sha256(rows.tobytes()).hexdigest(), len(rows)), words, modes, draw)


def _summits(shape: Shape, spec: FourierSpec) -> FloatArray:
    """Local maxima of a mixture within the box, highest first: guarded Newton steps from each centre."""
    found: list[tuple[float, FloatArray]] = []
    for centre in np.asarray(shape.centers, dtype=np.float64):
        x = centre.copy()
        for _ in range(200):
            _, gradient, hessian = shape.derivatives(x)
            values, vectors = np.linalg.eigh(hessian)
            step = vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), 1e-300))
            length = float(np.max(np.abs(step) / spec.planned[0]))
            # Centres of a mixture may lie on a slope between two of its modes: short steps do not leap over one.
            x = x + step * min(1.0, 0.25 / max(length, 1e-300))
            if length < 1e-9:
                break
        height, _, hessian = shape.derivatives(x)
        apart = [float(np.max(np.abs(x - other) / spec.planned[0])) > 1e-3 for _, other in found]
        inside = bool(np.all((x >= spec.lower) & (x <= spec.upper)))
        if inside and all(apart) and np.linalg.eigvalsh(hessian).max() < 0:
            found.append((height, x))
    found.sort(key=lambda pair: -pair[0])
    return np.array([x for _, x in found]).reshape(-1, spec.d)
