r"""The public geometry of a sketch by random features: integer coordinates, integer frequencies, equal weights.

Nothing here has seen a record. Beyond three axes no grid of frequencies is small enough, so frequencies are drawn
instead: :math:`\omega_1, \dots, \omega_F` from a mixture of the spectra :math:`N(0, \mathrm{diag}(h_j^{-2}))` of the
planned bandwidths, each spectrum with a quota of them, in blocks of orthogonal directions [1]_. A record :math:`x` has
the feature vector

.. math:: z(x) = \Bigl(\sqrt{a_0},\; \sqrt{\tfrac{1-a_0}{F}}\cos\omega_m\cdot x,\;
          \sqrt{\tfrac{1-a_0}{F}}\sin\omega_m\cdot x\Bigr)_{m \le F}

of norm one, whose inner products are :math:`a_0` plus :math:`1 - a_0` times a Gaussian kernel, up to an error of order
:math:`1/\sqrt{2F}` [2]_. A bandwidth :math:`h` is read with the weights
:math:`r_m = N(\omega_m; 0, h^{-2})/p(\omega_m)`, :math:`p` the mixture, divided by their sum.

The draw is public, from the seed of the specification. Rows are made orthogonal by elementwise operations in a fixed
order, and the frequencies are rounded to integers: the same everywhere, and where a mathematical library should differ
in the last place after all, the digest of the integers differs too and sketches refuse to merge.

References
----------
.. [1] F. X. Yu, A. T. Suresh, K. Choromanski, D. Holtmann-Rice, S. Kumar, "Orthogonal random features", NeurIPS 2016.
.. [2] A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NeurIPS 2007.

Which features a sketch has: a grid of frequencies up to three axes, random frequencies beyond.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._validation import check_bounds, check_count
from fogline.density.leaves import LeafSpec
from fogline.density.spec import (
    COUNT_WEIGHT,
    PublicBox,
    SketchSpec,
    check_steps,
    check_stored,
    lift_to_steps,
    require_same,
    wanted_bandwidths,
)

__all__ = [
    "MAX_AXES",
    "CellSpec",
    "FourierSpec",
    "RandomSpec",
    "Spec",
    "plan_spec",
    "spec_from_dict",
    "standard_frequencies",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_AXES = 128
"""Most axes of a sketch: beyond, kernel density estimation is hopeless and the records should be projected first."""

COORDINATE_BITS = 12
"""A coordinate is one of 2**12 cells of its axis."""

PHASE_BITS = 20
"""A full turn is 2**20 units of phase."""

TABLE_BITS = 12
"""Phases are rounded down to 2**12 directions, whose cosine and sine are looked up."""

UNIT = 2**15 - 1
"""A direction has integer cosine and sine of modulus at most this: both fit 16 bits."""

FEWEST, MOST = 512, 8192
"""Range of the automatic number of frequencies."""

MAX_FREQUENCIES = 2**16
"""Most frequencies that may be asked for."""

TARGET_ERROR = 0.05
"""Aim of the automatic number: largest error of the kernel over the box, as a fraction of its height."""

SPACING = 1.1
"""Neighbouring scales differ by a factor of at most exp(SPACING / sqrt(d)), so that all between can be read."""

AUTO_RANGE = (0.035, 0.1)
"""Smallest and largest automatic bandwidth: these fractions of the width, times sqrt(d)."""

WIDEST = 0.7
"""No automatic bandwidth is a larger fraction of the width."""

SEED = 20130218
"""Public seed of the frequencies; it protects nobody and hides nothing."""


@lru_cache(maxsize=8)
def standard_frequencies(n_features: int, d: int, seed: int) -> FloatArray:
    r"""Draw vectors :math:`N(0, I_d)`, orthogonal within blocks of d, shape (n_features, d).

    Rows of a block of normal numbers are made orthogonal (modified Gram-Schmidt) and given back their own lengths.
    Coordinates run along the first axis: sums over it add slab to slab, in the same order on every machine.
    """
    blocks = -(-n_features // d)
    # a public seed: frequencies are part of the specification, not of the noise
    rows = np.random.default_rng(seed).standard_normal((d, blocks, d))
    lengths = np.sqrt(np.add.reduce(rows * rows, axis=0))
    for i in range(d):
        lead = rows[:, :, i]
        lead /= np.sqrt(np.add.reduce(lead * lead, axis=0))
        rest = rows[:, :, i + 1 :]
        rest -= lead[:, :, None] * np.add.reduce(lead[:, :, None] * rest, axis=0)
    frequencies: FloatArray = (rows * lengths).reshape(d, blocks * d)[:, :n_features].T.copy()
    # cached, and shared by all specifications of this size
    frequencies.flags.writeable = False
    return frequencies


@dataclass(frozen=True)
class RandomSpec(PublicBox):
    """What every holder of data must agree on before sums of random features can be merged; public.

    Parameters
    ----------
    bounds : tuple of (float, float)
        The box, one pair an axis.
    scales : tuple of tuple of float
        Planned bandwidths in data units, smallest first; proportional to each other.
    shares : tuple of float
        Share of the frequencies that each scale is given; sums to one.
    n_features : int
        Number of frequencies; a release has one coefficient for the count and two for each.
    seed : int
        Public seed of the frequencies.

    Examples
    --------
    >>> spec = RandomSpec.plan([(0, 1)] * 5)
    >>> spec.n_coefficients == 2 * spec.n_features + 1
    True
    """

    bounds: tuple[tuple[float, float], ...]
    scales: tuple[tuple[float, ...], ...]
    shares: tuple[float, ...]
    n_features: int
    seed: int = SEED

    @classmethod
    def plan(
        cls,
        bounds: ArrayLike | None,
        bandwidths: Any = "auto",
        steps: Any = None,
        *,
        shares: Any = None,
        n_features: int | None = None,
        seed: int = SEED,
    ) -> RandomSpec:
        """Check the user's wishes and complete them; every error names its parameter.

        Parameters
        ----------
        bounds, bandwidths, steps
            As for :class:`fogline.DensitySketch`. Between planned bandwidths that are far apart others are put in.
        shares : sequence of float, optional
            Share of each bandwidth; by default larger bandwidths have more.
        n_features : int, optional
            Number of frequencies. More make the kernel truer (its error falls like one over the square root) and cost
            time; the privacy noise of the density does not depend on it. By default enough for an error of about
            ``TARGET_ERROR``, up to ``MOST``.
        seed : int
            Public seed of the frequencies.
        """
        box = check_bounds(bounds)
        widths = box[:, 1] - box[:, 0]
        planned, weights = _scales(bandwidths, widths, shares)
        planned, weights = lift_to_steps(planned, weights, check_steps(steps, widths))
        size = _enough(planned, widths) if n_features is None else check_count(n_features, "features")
        spec = cls(
            bounds=tuple((float(lo), float(hi)) for lo, hi in box),
            scales=tuple(tuple(map(float, row)) for row in planned),
            shares=weights,
            n_features=size,
            seed=check_count(seed, "seed", minimum=0),
        )
        spec._check_size()
        return spec

    # -- sizes ---------------------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[float, ...]:
        """Rounding steps: none are kept, bandwidths of this many axes are far wider."""
        return (0.0,) * self.d

    @cached_property
    def cell_widths(self) -> FloatArray:
        """Width of a cell of each axis."""
        return self.widths / 2.0**COORDINATE_BITS

    @cached_property
    def origin(self) -> FloatArray:
        """Where every phase is zero: the centre of the cell in the middle of the box."""
        return self.lower + (2.0 ** (COORDINATE_BITS - 1) + 0.5) * self.cell_widths

    @property
    def n_coefficients(self) -> int:
        """Number of integers of a release: the count, then a cosine and a sine for each frequency."""
        return 2 * self.n_features + 1

    # -- frequencies and weights -----------------------------------------------------------------------

    @cached_property
    def quotas(self) -> IntArray:
        """How many frequencies each scale is given."""
        # cumulative sums are rounded, not the parts: they add up to all frequencies
        ends = np.round(np.cumsum(self.shares) / sum(self.shares) * self.n_features).astype(np.int64)
        return np.diff(ends, prepend=0)

    def _rounded(self) -> FloatArray:
        """Frequencies rounded to whole units of phase a cell, shape (F, d), still as doubles of any size."""
        standard = standard_frequencies(self.n_features, self.d, self.seed)
        bandwidths = np.repeat(self.planned, self.quotas, axis=0)
        turns = standard / bandwidths * self.cell_widths / (2 * np.pi)
        return np.rint(turns * 2.0**PHASE_BITS)

    @cached_property
    def frequencies(self) -> IntArray:
        """Integer frequencies, in units of phase a cell, shape (F, d)."""
        return self._rounded().astype(np.int64)

    @cached_property
    def angular(self) -> FloatArray:
        """Angular frequencies in data units, shape (F, d)."""
        return 2 * np.pi * self.frequencies / 2.0**PHASE_BITS / self.cell_widths

    @cached_property
    def count_unit(self) -> int:
        """Integer that a record adds to the count's coefficient: the floor of weight, in units of the table."""
        return math.isqrt(int(UNIT**2 * self.n_features * COUNT_WEIGHT / (1 - COUNT_WEIGHT)))

    @cached_property
    def squared_norm(self) -> int:
        """Largest squared norm of a record's integer vector."""
        return self.n_features * UNIT**2 + self.count_unit**2

    @cached_property
    def feature_weights(self) -> FloatArray:
        """Weight of the count and of each frequency in a record's unit vector; sums to one."""
        squares = np.full(self.n_features + 1, float(UNIT**2))
        squares[0] = float(self.count_unit**2)
        return squares / float(self.squared_norm)

    def log_spectrum(self, bandwidth: FloatArray) -> FloatArray:
        r"""Logarithm of the normal density :math:`N(\omega_m; 0, h^{-2})`, up to a constant, shape (F,)."""
        return np.asarray(np.log(bandwidth).sum() - 0.5 * np.sum((self.angular * bandwidth) ** 2, axis=1))

    @cached_property
    def _log_mixture(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            parts = np.log(self.quotas / self.n_features)[:, None] + np.stack([*map(self.log_spectrum, self.planned)])
        return np.asarray(np.logaddexp.reduce(parts, axis=0))

    def importance(self, bandwidth: FloatArray) -> FloatArray:
        """Weight of each frequency in a reading at a bandwidth; sums to one."""
        # in logarithms: in many dimensions densities of frequencies leave the range of floats
        logs = self.log_spectrum(bandwidth) - self._log_mixture
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    @property
    def readable(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest bandwidth that can be read from a release, in data units."""
        margin = 1 / math.sqrt(self.d)
        return (1 - 0.4 * min(margin, 0.625)) * self.planned[0], (1 + margin) * self.planned[-1]

    # -- agreement ---------------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """Fingerprint of the integer frequencies."""
        return hashlib.sha256(self.frequencies.astype("<i8").tobytes()).hexdigest()[:32]

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; floats survive the round trip exactly."""
        return {
            "features": "random",
            "bounds": [list(b) for b in self.bounds],
            "scales": [list(s) for s in self.scales],
            "shares": list(self.shares),
            "n_features": self.n_features,
            "seed": self.seed,
            "digest": self.digest,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RandomSpec:
        """Inverse of :meth:`to_dict`; refused where this machine would use other frequencies."""
        spec = cls(
            bounds=tuple((float(lo), float(hi)) for lo, hi in data["bounds"]),
            scales=tuple(tuple(map(float, s)) for s in data["scales"]),
            shares=tuple(map(float, data["shares"])),
            n_features=check_count(data["n_features"], "n_features"),
            seed=check_count(data["seed"], "seed", minimum=0),
        )
        check_stored(spec.bounds, spec.scales, spec.shares, spec.steps)
        spec._check_size()
        # another version of numpy may draw other normal numbers from one seed
        if spec.digest != data["digest"]:
            raise ValueError("digest: the frequencies of this sketch cannot be made again on this machine")
        return spec

    def require_same(self, other: Any) -> None:
        """Raise an error that names the first field in which two specifications differ."""
        require_same(self, other)

    def _check_size(self) -> None:
        if self.d > MAX_AXES:
            raise ValueError(f"bounds has {self.d} axes: at most {MAX_AXES} can be sketched; project the records first")
        if self.n_features > MAX_FREQUENCIES:
            raise ValueError(f"features must be at most {MAX_FREQUENCIES} frequencies, got {self.n_features}")
        reach = np.abs(self._rounded()).sum(axis=1).max() * 2.0 ** (COORDINATE_BITS - 1)
        if not reach < 2.0**31:  # asked of the doubles: as integers they could have wrapped
            raise ValueError(f"bandwidths are too small a part of the box for {self.d} axes")
        log_heights = -np.log(np.sqrt(2 * np.pi) * np.stack(self.readable)).sum(axis=1)
        if np.abs(log_heights).max() > 600:
            raise ValueError("bounds: densities in these units leave the range of floating point; rescale the columns")


def _scales(bandwidths: Any, widths: FloatArray, shares: Any) -> tuple[FloatArray, tuple[float, ...]]:
    """Planned bandwidths, smallest first, close enough that all between can be read, and their shares."""
    d = len(widths)
    wanted = wanted_bandwidths(bandwidths, widths)
    if wanted is None:
        ends = np.minimum(np.array(AUTO_RANGE) * math.sqrt(d), (WIDEST * AUTO_RANGE[0] / AUTO_RANGE[1], WIDEST))
        wanted = ends[:, None] * widths
    if shares is not None:
        return wanted, tuple(map(float, shares))
    wanted = wanted[np.argsort(wanted[:, 0], kind="stable")]
    filled = [wanted[:1]]
    for small, large in itertools.pairwise(wanted):
        gaps = max(1, math.ceil(math.log(float(large[0] / small[0])) * math.sqrt(d) / SPACING - 1e-9))
        steps = np.arange(1, gaps + 1) / gaps
        filled.append(small * (large / small) ** steps[:, None])
    planned = np.concatenate(filled)
    ranks = np.arange(1, len(planned) + 1)
    return planned, tuple((ranks / ranks.sum()).tolist())


def _enough(planned: FloatArray, widths: FloatArray) -> int:
    r"""Give a number of frequencies for which the kernel is off by about ``TARGET_ERROR`` at most, over the box.

    At one point the error has variance :math:`1/(2F)`; about :math:`\prod_j (1 + w_j/h_j)` points of the box are
    independent, and the largest of N normal errors is near :math:`\sqrt{2\log N}` deviations.
    """
    log_points = float(np.log1p(widths / planned[len(planned) // 2]).sum())
    wanted = log_points / TARGET_ERROR**2
    return int(min(max(2 ** math.ceil(math.log2(wanted)), FEWEST), MOST))


CellSpec = SketchSpec | LeafSpec
"""A public specification by which records are counted in cells of a grid."""

FourierSpec = SketchSpec | RandomSpec
"""A public specification by which records are summed as vectors of Fourier features."""

Spec = SketchSpec | RandomSpec | LeafSpec
"""A public specification of any kind."""


@overload
def plan_spec(
    bounds: ArrayLike | None,
    bandwidths: Any = "auto",
    steps: Any = None,
    *,
    features: Literal["auto", "grid", "random"] | int = "auto",
    shares: Any = None,
) -> FourierSpec: ...


@overload
def plan_spec(
    bounds: ArrayLike | None, bandwidths: Any = "auto", steps: Any = None, *, features: str | int, shares: Any = None
) -> Spec: ...


def plan_spec(
    bounds: ArrayLike | None, bandwidths: Any = "auto", steps: Any = None, *, features: Any = "auto", shares: Any = None
) -> Spec:
    """Plan a sketch of the kind that suits the number of axes, or of the kind that is asked for.

    Parameters
    ----------
    bounds, bandwidths, steps
        As for :class:`fogline.DensitySketch`.
    features : {"auto", "grid", "random", "leaves"} or int
        Grid features up to three axes and random ones beyond, or the one named. A number is that of the frequencies
        of random features. Leaves have no planned bandwidths.
    shares : sequence of float, optional
        Share of each bandwidth.

    Examples
    --------
    >>> plan_spec([(0, 1)] * 3).to_dict()["features"], plan_spec([(0, 1)] * 4).to_dict()["features"]
    ('grid', 'random')
    >>> plan_spec([(0, 1)] * 2, features=1000).n_features
    1000
    """
    is_kind = isinstance(features, str) and features in ("auto", "grid", "random", "leaves")
    # True is an integer to Python, and no number of frequencies
    if not is_kind and (isinstance(features, bool | str) or not isinstance(features, int | np.integer)):
        raise ValueError(
            f"features must be 'auto', 'grid', 'random', 'leaves' or a number of frequencies, got {features!r}"
        )
    d = len(check_bounds(bounds))
    if features == "leaves":
        if shares is not None or not (isinstance(bandwidths, str) and bandwidths == "auto"):
            raise ValueError("bandwidths: leaves are planned without any; a release is read at whichever bandwidth")
        return LeafSpec.plan(bounds, steps)
    if features == "grid" or (features == "auto" and d <= 3):
        return SketchSpec.plan(bounds, bandwidths, steps, shares=shares)
    size = None if is_kind else check_count(features, "features")
    return RandomSpec.plan(bounds, bandwidths, steps, shares=shares, n_features=size)


def spec_from_dict(data: dict[str, Any]) -> Spec:
    """Specification of any kind from its JSON-safe form."""
    kinds: dict[Any, type[Spec]] = {"grid": SketchSpec, "random": RandomSpec, "leaves": LeafSpec}
    kind = data.get("kind", data.get("features"))
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"features: there are no features of kind {kind!r}")
    return kinds[kind].from_dict(data)
