r"""The public geometry of a grid sketch: cells, torus, frequencies and their integer weights.

Nothing here has seen a record. The box :math:`\prod_j [lo_j, hi_j]` is cut into cells of width
:math:`\delta_j \le h_{min,j}/8` and laid in a torus of side :math:`L_j = N_j \delta_j`, at least
:math:`2\,pad\,h_{max,j}` longer than the box, so that a kernel hardly meets its own image. With the
frequencies :math:`\omega_m = 2\pi m/L`, a record in cell :math:`c` has the feature vector

.. math:: z_m(c) = \sqrt{a_m}\, e^{-i \omega_m \cdot c \delta}, \qquad \sum_m a_m = 1,\; a_m = a_{-m} \ge 0,

of norm one. The weights are a mean of Gaussian spectra, one for each planned bandwidth, so that every
bandwidth near a planned one can be read from the same release with a known, small loss.

Bandwidths and rounding steps as a user asks for them, checked, and as a file has them, checked again.

What both kinds of sketch specification have: a public box, planned bandwidths, and pickles without caches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_bounds
from fogline.density.value_words import LEAST_ERROR, error_words

__all__ = [
    "COUNT_WEIGHT",
    "FINEST",
    "LATTICE_BITS",
    "MAX_COEFFICIENTS",
    "PublicBox",
    "SketchSpec",
    "as_bandwidth",
    "check_steps",
    "check_stored",
    "default_names",
    "lift_to_steps",
    "places_in_words",
    "require_same",
    "wanted_bandwidths",
]

FloatArray = NDArray[np.float64]

FINEST = 1e-12
"""Bandwidths and steps below this part of the box's width are refused before anything is computed from them."""

STEP_SMOOTHING = 0.75
"""Values rounded to steps of s are read with bandwidths of 0.75 s or more: the ripple is then below 4e-5."""


def default_names(d: int) -> tuple[str, ...]:
    """Names of columns that have none: usable as keywords, as in ``posterior.given(x1=(0, 1))``.

    Examples
    --------
    >>> default_names(2)
    ('x1', 'x2')
    """
    return tuple(f"x{j + 1}" for j in range(d))


def places_in_words(
    names: Sequence[str], places: FloatArray, errors: FloatArray | None = None, widths: FloatArray | None = None
) -> list[str]:
    """Write places of shape (k, d) with the names of their columns, and with standard errors if there are any.

    With `widths`, the ranges of the columns, an error that is next to nothing is told as such, and the place has no
    more digits than that.

    Examples
    --------
    >>> places_in_words(["age", "stay"], np.array([[40.0, 3.14159]]), np.array([[0.5, 0.021]]))
    ['age 40 ± 0.5, stay 3.142 ± 0.021']
    >>> places_in_words([], np.array([[40.0]]))
    ['x1 40']
    >>> places_in_words(["x"], np.array([[0.008689]]), np.array([[0.043]]))
    ['x 0.009 ± 0.043']
    >>> places_in_words(["x"], np.array([[1.4e-6]]), np.array([[9.2e-6]]), np.array([100.0]))
    ['x 0 ± < 0.0001']
    """
    known = tuple(names) or default_names(places.shape[1])
    least = np.zeros(places.shape[1]) if widths is None else LEAST_ERROR * widths
    if widths is not None:
        places = np.where(np.abs(places) < least, 0.0, places)
    if errors is not None:
        places = np.array(
            [[_as_known(*pair) for pair in zip(*row, strict=True)] for row in zip(places, errors, strict=True)]
        )
        places = places.reshape(len(errors), len(least))
    told = [[f"{name} {value:.4g}" for name, value in zip(known, place, strict=True)] for place in places]
    if errors is not None:
        told = [
            [f"{words} ± {error_words(error, small)}" for words, error, small in zip(row, own, least, strict=True)]
            for row, own in zip(told, errors, strict=True)
        ]
    return [", ".join(row) for row in told]


def _as_known(value: float, error: float) -> float:
    """Value without digits that its error, of which two are written, does not reach."""
    return round(float(value), 1 - math.floor(math.log10(error))) if np.isfinite(error) and error > 0 else float(value)


def as_bandwidth(bandwidth: Any, widths: FloatArray, *, name: str = "bandwidth") -> FloatArray:
    """Bandwidth an axis in data units: an array is taken as it is, a scalar as a fraction of each width."""
    value = _numbers(bandwidth, name)
    if value.ndim == 0:
        with np.errstate(all="ignore"):  # any bits may come as a number: they are looked at below
            value = value * widths
    if value.shape != widths.shape:
        raise ValueError(f"{name} must be a number or one value per axis ({len(widths)}), got shape {value.shape}")
    if not np.all(np.isfinite(value) & (value > 0) & (value <= widths)):
        raise ValueError(f"{name} must be positive and at most the width of the box, got {bandwidth!r}")
    if np.any(value < FINEST * widths):
        raise ValueError(f"{name} must be at least {FINEST:g} of the width of the box, got {bandwidth!r}")
    return value


def _numbers(value: Any, name: str) -> FloatArray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or a list of numbers, got {value!r}") from None


def wanted_bandwidths(bandwidths: Any, widths: FloatArray) -> FloatArray | None:
    """Bandwidths that a user asks for, shape (scales, axes), in data units; None for "auto"."""
    if isinstance(bandwidths, str):
        if bandwidths != "auto":
            raise ValueError(f"bandwidths must be 'auto', a number or a list of bandwidths, got {bandwidths!r}")
        return None
    is_list = isinstance(bandwidths, Sequence | np.ndarray) and np.size(np.asarray(bandwidths, dtype=object))
    entries = list(bandwidths) if is_list else [bandwidths]
    if not entries:
        raise ValueError("bandwidths must hold at least one bandwidth")
    return np.array([as_bandwidth(b, widths, name="bandwidths") for b in entries])


def check_steps(steps: Any, widths: FloatArray) -> FloatArray:
    """Public rounding step of each axis in data units, 0 for a continuous one."""
    if steps is None:
        return np.zeros(len(widths))
    entries = list(steps) if isinstance(steps, Sequence | np.ndarray) and not isinstance(steps, str) else [steps]
    if len(entries) != len(widths):
        raise ValueError(f"steps must have one value per axis ({len(widths)}), got {len(entries)}")
    value = np.array([0.0 if s is None else float(_numbers(s, "steps")) for s in entries])
    if not np.all(np.isfinite(value) & (value >= 0) & (value < widths)):
        raise ValueError(f"steps must be None or positive and below the width of the axis, got {steps!r}")
    if np.any((value > 0) & (value < FINEST * widths)):
        raise ValueError(f"steps must be None or at least {FINEST:g} of the width of the axis, got {steps!r}")
    return value


def lift_to_steps(
    planned: FloatArray, shares: tuple[float, ...], steps: FloatArray
) -> tuple[FloatArray, tuple[float, ...]]:
    """Sort the scales, check that they are proportional, and lift those too fine for the rounding of the data."""
    if len(shares) != len(planned) or not np.isclose(sum(shares), 1) or min(shares) <= 0:
        raise ValueError(f"shares must be positive, one for each bandwidth, and sum to 1, got {shares}")
    order = np.argsort(planned[:, 0], kind="stable")
    planned, shares = planned[order], tuple(shares[i] for i in order)
    ratio = planned / planned[0]
    if not np.allclose(ratio, ratio[:, :1], rtol=1e-9):
        raise ValueError("bandwidths must be proportional to each other; rescale the box to mix shapes")
    lift = float(np.max(STEP_SMOOTHING * steps / planned[0], initial=0.0))
    if lift > 1:
        factors = np.maximum(ratio[:, 0], lift)
        planned = factors[:, None] * planned[0]
    return planned, shares


def check_stored(
    bounds: tuple[tuple[float, float], ...],
    scales: tuple[tuple[float, ...], ...],
    shares: tuple[float, ...],
    steps: tuple[float, ...],
) -> None:
    """Refuse fields of a specification from a file that no plan could have made; every error names its field."""
    box = check_bounds(list(bounds))
    widths = box[:, 1] - box[:, 0]
    if not scales or any(len(row) != len(widths) for row in scales):
        raise ValueError(f"scales must hold one bandwidth an axis ({len(widths)}) in each row, and at least one row")
    planned = np.array(scales)
    # Lifting to the steps of one axis lifts the others with it, at most from FINEST of the width to all of it.
    if not np.all((planned >= FINEST * widths) & (planned <= widths / FINEST)):
        raise ValueError("scales must be positive and finite, neither far finer nor far wider than the box")
    if np.any(np.diff(planned[:, 0]) < 0):
        raise ValueError("scales must be in order, the smallest first")
    lift_to_steps(planned, shares, check_steps(list(steps), widths))


LATTICE_BITS = 22
"""A record's vector has norm at most 2**22 lattice steps; the sums fit int64 up to 2**41 records."""


class PublicBox:
    """Base of the specifications, which are frozen dataclasses with these fields.

    Attributes
    ----------
    bounds : tuple of (float, float)
        The box, one pair an axis.
    scales : tuple of tuple of float
        Planned bandwidths in data units, smallest first.
    """

    bounds: tuple[tuple[float, float], ...]
    scales: tuple[tuple[float, ...], ...]

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: what was computed from them so far would tell how a sketch was used."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def d(self) -> int:
        """Number of axes."""
        return len(self.bounds)

    @cached_property
    def lower(self) -> FloatArray:
        """Lower corner of the box."""
        return np.array([lo for lo, _ in self.bounds])

    @cached_property
    def upper(self) -> FloatArray:
        """Upper corner of the box."""
        return np.array([hi for _, hi in self.bounds])

    @cached_property
    def widths(self) -> FloatArray:
        """Side lengths of the box."""
        return self.upper - self.lower

    @cached_property
    def planned(self) -> FloatArray:
        """Planned bandwidths as an array of shape (scales, axes), in data units."""
        return np.array(self.scales)

    @property
    def readable(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest bandwidth that can be read from a release, in data units."""
        raise NotImplementedError

    def require_readable(self, bandwidth: FloatArray, *, name: str = "bandwidth") -> None:
        """Raise an error if a release cannot be read at a bandwidth."""
        low, high = self.readable
        if np.any(bandwidth < low * (1 - 1e-9)) or np.any(bandwidth > high * (1 + 1e-9)):
            raise ValueError(
                f"{name} {bandwidth.tolist()} is outside the range of this release, {low.tolist()} to {high.tolist()}"
            )


IntArray = NDArray[np.int64]

MAX_COEFFICIENTS = 200_000
"""Most real coefficients a release may have: noise costs 14 microseconds each."""

MAX_CELLS = 2**25
"""Most cells of the box: the dense table made at release time stays below 256 MiB."""

COUNT_WEIGHT = 0.05
"""Least weight of the zero frequency, so that the noisy count is off by at most 1/sqrt(0.05) = 4.5 sigma."""

CUTOFF = 4.0
"""Frequencies with ``|h_min * omega| > CUTOFF`` carry exp(-8) of the largest weight or less: left out."""

PAD = 3.0
"""The torus is ``2 * PAD`` times the largest planned bandwidth longer than the box."""

CELLS_PER_BANDWIDTH = 8
"""Cell width is at most the smallest planned bandwidth over this."""

WEIGHT_BITS = 24
"""Integer weights are q_m = floor(2**24 * sqrt(2 a_m))."""

AUTO_SCALES: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {
    1: ((1 / 64, 1 / 28, 1 / 12), (0.3, 0.3, 0.4)),
    2: ((1 / 36, 1 / 20, 1 / 11), (0.08, 0.32, 0.6)),
    3: ((1 / 18, 1 / 13, 1 / 8), (0.08, 0.32, 0.6)),
}
"""Planned bandwidths by dimension, as fractions of the box width, and their shares of the weight."""


def require_same(mine: Any, theirs: Any) -> None:
    """Raise an error that names the first field in which two specifications differ."""
    other = theirs.to_dict()
    kinds = [data.get("kind", data.get("features")) for data in (mine.to_dict(), other)]
    if kinds[0] != kinds[1] and "leaves" in kinds:
        raise ValueError(
            f"sketches differ in features: {kinds[0]} and {kinds[1]}; counts of leaves and counts for Fourier sums are "
            "of other cells: count the records again, with the same features"
        )
    for field, value in mine.to_dict().items():
        if other.get(field) != value:
            raise ValueError(f"sketches differ in {field}: {value} and {other.get(field)}")


@dataclass(frozen=True)
class SketchSpec(PublicBox):
    """What every holder of data must agree on before sums can be merged; public.

    Parameters
    ----------
    bounds : tuple of (float, float)
        The box, one pair an axis.
    scales : tuple of tuple of float
        Planned bandwidths in data units, smallest first; proportional to each other.
    shares : tuple of float
        Weight of each scale; sums to one.
    steps : tuple of float
        Public rounding step of each axis, 0 for a continuous one.
    """

    bounds: tuple[tuple[float, float], ...]
    scales: tuple[tuple[float, ...], ...]
    shares: tuple[float, ...]
    steps: tuple[float, ...]

    @classmethod
    def plan(
        cls, bounds: ArrayLike | None, bandwidths: Any = "auto", steps: Any = None, *, shares: Any = None
    ) -> SketchSpec:
        """Check the user's wishes and complete them; every error names its parameter."""
        box = check_bounds(bounds)
        d = len(box)
        _check_axes(d)
        widths = box[:, 1] - box[:, 0]
        step = check_steps(steps, widths)
        wanted = wanted_bandwidths(bandwidths, widths)
        if wanted is None:
            fractions, weights = AUTO_SCALES[d]
            planned = np.array(fractions)[:, None] * widths
        else:
            planned = wanted
            weights = tuple([1 / len(planned)] * len(planned)) if shares is None else tuple(map(float, shares))
        planned, weights = lift_to_steps(planned, weights, step)
        spec = cls(
            bounds=tuple((float(lo), float(hi)) for lo, hi in box),
            scales=tuple(tuple(map(float, row)) for row in planned),
            shares=weights,
            steps=tuple(map(float, step)),
        )
        spec._check_size()
        return spec

    # -- sizes ---------------------------------------------------------------------------------------

    @cached_property
    def cell_widths(self) -> FloatArray:
        """Width of a cell; on an axis with a step it divides the step, so that every value has a cell's centre."""
        finest = self.planned[0] / CELLS_PER_BANDWIDTH
        step = np.array(self.steps)
        # cells end with the box
        whole = self.widths / np.ceil(self.widths / finest)
        with np.errstate(divide="ignore", invalid="ignore"):
            stepped = step / np.ceil(step / finest)
        return np.asarray(np.where(step > 0, stepped, whole))

    @cached_property
    def shift(self) -> FloatArray:
        """What is added before the floor: 0 (cells begin at the lower bound) or 1/2 (cells centred on the steps)."""
        return np.where(np.array(self.steps) > 0, 0.5, 0.0)

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """Number of cells of the box, an axis."""
        return tuple(
            round(w / c) if s == 0 else int(np.floor(w / c + 0.5)) + 1
            for w, c, s in zip(self.widths, self.cell_widths, self.steps, strict=True)
        )

    @cached_property
    def origin(self) -> FloatArray:
        """Centre of the first cell: where the phase of every frequency is zero."""
        return self.lower + (0.5 - self.shift) * self.cell_widths

    @cached_property
    def torus_cells(self) -> tuple[int, ...]:
        """Number of cells of the torus, an axis."""
        from scipy.fft import next_fast_len  # here: a mistake in a schema is told without it

        margin = 2 * PAD * self.planned[-1] / self.cell_widths
        return tuple(
            int(next_fast_len(int(np.ceil(n + m)), real=True)) for n, m in zip(self.cells, margin, strict=True)
        )

    @cached_property
    def periods(self) -> FloatArray:
        """Side lengths of the torus."""
        return np.array(self.torus_cells) * self.cell_widths

    # -- frequencies and weights -----------------------------------------------------------------------

    @cached_property
    def reach(self) -> tuple[int, ...]:
        """Largest frequency index of each axis."""
        return tuple(
            int(np.floor(CUTOFF * p / (2 * np.pi * h))) for p, h in zip(self.periods, self.planned[0], strict=True)
        )

    @cached_property
    def frequencies(self) -> IntArray:
        """One of each pair (m, -m) within the cut-off, the zero frequency first; shape (F, d)."""
        axes = [np.arange(0 if j == 0 else -r, r + 1) for j, r in enumerate(self.reach)]
        m = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
        # an ellipsoid, not a box: its corners would carry hardly any weight
        inside = np.sum((2 * np.pi * m / self.periods * self.planned[0]) ** 2, axis=1) <= CUTOFF**2
        m = m[inside]
        # of m and -m the one whose first nonzero entry is positive
        positive = np.zeros(len(m), dtype=bool)
        undecided = np.ones(len(m), dtype=bool)
        for j in range(self.d):
            positive |= undecided & (m[:, j] > 0)
            undecided &= m[:, j] == 0
        zero = np.zeros((1, self.d), dtype=np.int64)
        return np.concatenate([zero, m[positive]]).astype(np.int64)

    @cached_property
    def angular(self) -> FloatArray:
        """Angular frequencies in data units, shape (F, d)."""
        return 2 * np.pi * self.frequencies / self.periods

    @property
    def n_coefficients(self) -> int:
        """Number of real coefficients of a release: one for frequency zero, two for each other."""
        return 2 * len(self.frequencies) - 1

    @cached_property
    def integer_weights(self) -> IntArray:
        r"""Integers :math:`q_0 = \lfloor 2^{24}\sqrt{a_0}\rfloor`, :math:`q_m = \lfloor 2^{24}\sqrt{2 a_m}\rfloor`.

        Their squares sum to at most :math:`2^{48}`: checked in integers, since the proof leans on it.
        """
        pairs = self.pair_weights
        weights = np.floor(2.0**WEIGHT_BITS * np.sqrt(pairs) * (1 - 1e-12)).astype(np.int64)
        if sum(int(q) ** 2 for q in weights) > 2 ** (2 * WEIGHT_BITS) or weights.min() < 1:
            raise AssertionError("integer weights must be positive and of norm at most one")
        return weights

    @cached_property
    def pair_weights(self) -> FloatArray:
        """Weight of each kept frequency together with its mirror image; sums to one."""
        energy = np.zeros(len(self.frequencies))
        multiplicity = np.where(np.arange(len(energy)) == 0, 1.0, 2.0)
        for scale, share in zip(self.planned, self.shares, strict=True):
            spectrum = self.spectrum(scale) * multiplicity
            energy += share * spectrum / spectrum.sum()
        if energy[0] < COUNT_WEIGHT:
            energy[1:] *= (1 - COUNT_WEIGHT) / energy[1:].sum()
            energy[0] = COUNT_WEIGHT
        return energy

    def spectrum(self, bandwidth: FloatArray) -> FloatArray:
        r"""Fourier transform :math:`\exp(-\sum_j h_j^2\omega_j^2/2)` of the Gaussian kernel at the kept frequencies."""
        return np.asarray(np.exp(-0.5 * np.sum((self.angular * bandwidth) ** 2, axis=1)))

    @property
    def readable(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest bandwidth that can be read from a release, in data units."""
        smallest = 1.0 if any(self.steps) else 0.75
        return smallest * self.planned[0], 2.0 * self.planned[-1]

    # -- agreement ---------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; floats survive the round trip exactly."""
        return {
            "features": "grid",
            "bounds": [list(b) for b in self.bounds],
            "scales": [list(s) for s in self.scales],
            "shares": list(self.shares),
            "steps": list(self.steps),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SketchSpec:
        """Inverse of :meth:`to_dict`; refused where no plan could have made it."""
        spec = cls(
            bounds=tuple((float(lo), float(hi)) for lo, hi in data["bounds"]),
            scales=tuple(tuple(map(float, s)) for s in data["scales"]),
            shares=tuple(map(float, data["shares"])),
            steps=tuple(map(float, data["steps"])),
        )
        check_stored(spec.bounds, spec.scales, spec.shares, spec.steps)
        spec._check_size()
        return spec

    def require_same(self, other: Any) -> None:
        """Raise an error that names the first field in which two specifications differ."""
        require_same(self, other)

    def _check_size(self) -> None:
        _check_axes(self.d)
        cells = float(math.prod(self.cells))
        volume = {1: 2.0, 2: np.pi, 3: 4 * np.pi / 3}[self.d]
        coefficients = volume * float(np.prod([r + 0.5 for r in self.reach]))
        tables = max(float(n) * (2 * r + 1) for n, r in zip(self.cells, self.reach, strict=True))
        excess = max(
            coefficients / MAX_COEFFICIENTS,
            cells / MAX_CELLS,
            math.prod(self.torus_cells) / (8 * MAX_CELLS),
            (tables / MAX_CELLS) ** (self.d / 2),
        )
        if excess > 1:
            fitting = self.planned[0] / self.widths * excess ** (1 / self.d) * 1.05
            shown = ", ".join(f"{f:.2g}" for f in fitting)
            advice = f"a smallest bandwidth of about [{shown}] of the box width would fit"
            if np.any((np.array(self.steps) > 0) & (self.cell_widths < self.planned[0] / (2 * CELLS_PER_BANDWIDTH))):
                advice = "steps so fine need no mention: leave them out"
            raise ValueError(
                f"bandwidths are too small for this box ({coefficients:.3g} coefficients, {cells:.3g} cells): {advice}"
            )


def _check_axes(d: int) -> None:
    if d > 3:
        raise ValueError(f"bounds has {d} axes: grid features serve up to 3; use features='random' or 'auto' for more")
