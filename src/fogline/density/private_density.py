r"""What a release publishes: noisy Fourier sums or counts of the records, and all that can be read from them.

Everything here is post-processing of released numbers: ask as often as you like, at any bandwidth, at no
further privacy cost.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fogline._results import AnyReading, Origin, Output, Results, framed, read_from
from fogline._validation import check_count, check_level
from fogline.accounting.guarantee import Guarantee
from fogline.density.counted_records import (
    check_expected,
    count_words,
    joined,
    narrow_words,
    release_message,
    rounded_words,
)
from fogline.density.feature_reading import RandomReading
from fogline.density.fog_file import MOST_BYTES, VERSION, check_texts, decode_fog, encode_fog, is_fog
from fogline.density.grid_reading import Grid, Reading
from fogline.density.leaf_reading import LeafReading
from fogline.density.leaves import LeafRelease, LeafSpec
from fogline.density.random_spec import UNIT, RandomSpec, Spec, spec_from_dict
from fogline.density.release_card import card_of
from fogline.density.spec import LATTICE_BITS, WEIGHT_BITS, as_bandwidth, default_names

if TYPE_CHECKING:
    from fogline.density.branches.branch_map import BranchMap
    from fogline.density.components.leaf_clusters import ClusterReading
    from fogline.density.components.leaf_mixture import MixtureReading
    from fogline.density.distances import DensityComparison
    from fogline.density.hellinger.family_fit import FamilyFit
    from fogline.density.modes.on_grid import ModeTable
    from fogline.density.posterior.estimates import Estimate, Target
    from fogline.density.posterior.posterior import Ends, Posterior
    from fogline.density.questions import Answer
    from fogline.families import Family

Told = TypeVar("Told", "FamilyFit", "ClusterReading", "MixtureReading")
"""Readings that have a message."""

__all__ = ["PrivateDensity"]

FloatArray = NDArray[np.float64]

FORMAT = "fogline-density-1"
LEAF_FORMAT = "fogline-density-leaves-1"
DEFAULT_BANDWIDTH_HEIGHT = 8.0
"""The default bandwidth is the smallest at which the highest peak stands this many noise deviations high."""


class PrivateDensity(Results):
    """A density released under differential privacy, at every bandwidth of its range.

    Made by :func:`fogline.release`; safe to publish, save, pickle and question without limit.

    Attributes
    ----------
    guarantee : Guarantee
        Who is protected, against what, how much.
    receipt : dict or None
        What the ledger was charged, if one paid for the release.
    columns : tuple of str or None
        Names of the columns, where they have any.
    units : tuple of str or None
        Units of the columns, such as "years"; empty texts where none is known.
    count : float
        Released number of records, at least 1.
    leaves : LeafRelease or None
        The released counts of both stages, where the release is one on leaves.
    coefficients : array of shape (F,)
        Released Fourier sums in records, complex, one of each pair of frequencies, the count first; or the counts of
        the buckets, real.
    weights : array of shape (F,)
        Weight of each frequency in a record's unit vector (both signs together), which sums to one; ones for buckets.
    noise_scale : float
        Standard deviation of the noise on the weighted sums, in records; or the scale of the noise on each count.

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
        leaves: LeafRelease | None = None,
        columns: Sequence[str] | None = None,
        units: Sequence[str] | None = None,
    ) -> None:
        self.columns = None if columns is None else tuple(str(name) for name in columns)
        self.units = None if units is None else tuple(str(unit) for unit in units)
        self.spec: Any = spec  # of any kind: who reads a grid, or searches without one, knows which
        self.leaves = leaves
        self.guarantee = guarantee
        self.receipt = receipt
        self._released = np.asarray(released, dtype=np.int64)
        self._scale = float(scale)
        self._readings: dict[tuple[float, ...], Any] = {}
        self._memory: dict[Any, Any] = {}

    @classmethod
    def from_leaves(
        cls,
        leaves: LeafRelease,
        *,
        guarantee: Guarantee,
        receipt: dict[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        units: Sequence[str] | None = None,
    ) -> PrivateDensity:
        """Density of a release in two stages on leaves."""
        return cls(
            leaves.spec,
            leaves.counts.counts,
            scale=leaves.counts.noise.scale,
            guarantee=guarantee,
            receipt=receipt,
            leaves=leaves,
            columns=columns,
            units=units,
        )

    def __repr__(self) -> str:
        return f"PrivateDensity({self.spec.d} axes, about {self.count:.0f} records; {self.guarantee})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "spec": self.spec,
            "released": self._released,
            "scale": self._scale,
            "guarantee": self.guarantee,
            "receipt": self.receipt,
            **({} if self.leaves is None else {"leaves": self.leaves}),
            **({} if self.columns is None else {"columns": self.columns}),
            **({} if self.units is None else {"units": self.units}),
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
            and self.leaves == other.leaves
            and self.columns == other.columns
            and self.units == other.units
            and np.array_equal(self._released, other._released)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns; x1, x2 and so on where they have none."""
        return default_names(self.spec.d) if self.columns is None else self.columns

    # -- what was released ----------------------------------------------------------------------------

    @property
    def weights(self) -> FloatArray:
        """Weight of each kept frequency, both signs together, sums to one up to rounding down; ones for buckets."""
        if self.leaves is not None:
            return np.ones(len(self._released))
        if isinstance(self.spec, RandomSpec):
            return self.spec.feature_weights
        return np.asarray((self.spec.integer_weights / 2.0**WEIGHT_BITS) ** 2)

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the noise on each weighted sum, in records; or the scale of that on each count."""
        if self.leaves is not None:
            return self._scale
        if isinstance(self.spec, RandomSpec):
            return self._scale / math.sqrt(self.spec.squared_norm)
        return self._scale / 2.0**LATTICE_BITS

    @property
    def coefficients(self) -> Any:
        """Released Fourier sums in records, the count first; or the released counts of the buckets."""
        if self.leaves is not None:
            return self._released.astype(np.float64)
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
        return max(self.total, 1.0)

    @property
    def total(self) -> float:
        """Released number of records as it is: noise may have made it negative."""
        return float(self.coefficients[0].real) if self.leaves is None else self.leaves.total

    @property
    def count_sd(self) -> float:
        """Standard deviation of the noise in :attr:`count`."""
        if self.leaves is not None:
            return self.leaves.total_sd
        return self.noise_scale / float(np.sqrt(self.weights[0]))

    # -- bandwidths ---------------------------------------------------------------------------------------

    @property
    def bandwidth_range(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest bandwidth that can be read, in data units."""
        low, high = self.spec.readable
        return low, high

    def reading(self, bandwidth: float | ArrayLike | None = None) -> Any:
        """Read the density at one bandwidth; readings are kept.

        A :class:`~fogline.density.grid_reading.Reading` of a grid, a
        :class:`~fogline.density.feature_reading.RandomReading` or a
        :class:`~fogline.density.leaf_reading.LeafReading`.
        """
        h = self.bandwidth if bandwidth is None else as_bandwidth(bandwidth, self.spec.widths)
        self.spec.require_readable(h)
        key = tuple(h.tolist())
        if self.leaves is not None and key not in self._readings:
            self._readings[key] = LeafReading(self.leaves, self.count, h)
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

    # -- the posterior ------------------------------------------------------------------------------------

    @property
    def has_posterior(self) -> bool:
        """Whether the release can be read as a posterior: up to three columns can."""
        return not isinstance(self.spec, RandomSpec)

    @property
    def posterior(self) -> Posterior:
        """What the release says about the density, with errors that hold privacy, sampling and smoothing.

        The questions below ask it; ask it directly for what the table itself would answer (``target="records"``), for
        draws, bands and atoms. Made when first asked for, and kept.
        """
        if "posterior" not in self._memory:
            from fogline.density.posterior.posterior import Posterior

            if not self.has_posterior:
                raise ValueError("posterior: random features are read by kernels; release up to three columns for it")
            if self.leaves is not None:
                made = Posterior.of_leaves(self.leaves, self.column_names)
            else:
                made = Posterior.of_fourier(self, self.column_names)
            self._memory["posterior"] = read_from(Origin(self, "Posterior"), made)
        found: Posterior = self._memory["posterior"]
        return found

    @property
    def _shape(self) -> tuple[Posterior, str]:
        """Posterior for readings that look for shapes, and what to beware of.

        A column that is rounded without having been declared so is read on its lattice: else every value would be a
        group of its own, and no family would fit.
        """
        if "shape" not in self._memory:
            from fogline.density.point_masses import lattice_of
            from fogline.density.posterior.posterior import Posterior

            rounded = None if self.leaves is None else lattice_of(self.leaves)
            if rounded is None:
                self._memory["shape"] = self.posterior, self._none_words
            else:
                lattice = rounded[0]
                told = rounded_words(self.column_names[0], lattice.spec.steps[0])
                self._memory["shape"] = Posterior.of_leaves(lattice, self.column_names), joined(told, self._none_words)
        found: tuple[Posterior, str] = self._memory["shape"]
        return found

    @property
    def _with_slopes(self) -> Posterior:
        """Posterior whose draws have slopes, for readings that judge a ridge by its spread over the draws.

        Draws of a field that was taken for nearly flat have hardly any: what noise leaves would stand out of them.
        """
        if self.leaves is None or self.spec.d == 1 or not self.posterior.is_flat:
            return self.posterior
        if "slopes" not in self._memory:
            from fogline.density.posterior.posterior import Posterior

            self._memory["slopes"] = Posterior.of_leaves(self.leaves, self.column_names, flat=False)
        found: Posterior = self._memory["slopes"]
        return found

    @property
    def _none_words(self) -> str:
        return count_words(self.count, self.count_sd, columns=self.spec.d)

    def probability(self, box: Sequence[Ends] | None = None, **options: Any) -> Estimate:
        """Probability of a box, as :meth:`Posterior.probability`."""
        return self.posterior.probability(box, **options)

    def cdf(self, x: ArrayLike, column: str | int | None = None, **options: Any) -> Estimate:
        """Distribution function of one column, as :meth:`Posterior.cdf`."""
        return self.posterior.cdf(x, column, **options)

    def quantile(self, q: ArrayLike, column: str | int | None = None, **options: Any) -> Estimate:
        """Quantiles of one column, as :meth:`Posterior.quantile`."""
        return self.posterior.quantile(q, column, **options)

    def mean(self, column: str | int | None = None, **options: Any) -> Estimate:
        """Mean of one column, as :meth:`Posterior.mean`."""
        return self.posterior.mean(column, **options)

    def variance(self, column: str | int | None = None, **options: Any) -> Estimate:
        """Variance of one column, as :meth:`Posterior.variance`."""
        return self.posterior.variance(column, **options)

    def correlation(self, first: str | int = 0, second: str | int = 1, **options: Any) -> Estimate:
        """Correlation of two columns, as :meth:`Posterior.correlation`; by default of the first two."""
        return self.posterior.correlation(first, second, **options)

    def marginal(self, column: str | int) -> Posterior:
        """Posterior of one column alone."""
        return self.posterior.marginal(column)

    def given(self, /, **ranges: Ends) -> Posterior:
        """Posterior of the other columns where these lie in closed ranges."""
        return self.posterior.given(**ranges)

    def ask(self, question: str, *, target: Target = "population", level: float = 0.95) -> Answer:
        """Answer a question in words, such as ``"P(stay > 10 | age > 70)"``; free.

        The grammar is that of :mod:`fogline.density.questions`.

        Examples
        --------
        >>> import numpy as np
        >>> from fogline import release
        >>> stay = np.random.default_rng(0).gamma(2.0, 3.0, 5000)
        >>> shape = release(stay, columns=["stay"], bounds=(0, 60), epsilon=1.0)
        >>> answer = shape.ask("median stay")
        >>> bool(answer.estimate.low < 5.3 and answer.estimate.high > 4.7)
        True
        """
        from fogline.density.questions import ask

        answer = ask(self.posterior, question, units=self.units, target=target, level=level)
        return replace(answer, message=self._none_words)

    # -- branches and fits --------------------------------------------------------------------------------

    def branches(self, y: str | int | None = None) -> BranchMap:
        """Branches of one column given the one or two others, with 95% bands; the last column if y is None.

        As :func:`fogline.density.branches.posterior_branches.read_posterior_branches`.
        """
        from fogline.density.branches.posterior_branches import read_posterior_branches

        origin = Origin(self, "PrivateModalRegression", arguments={"y": y})
        return self._reading(origin, lambda: read_posterior_branches(self._with_slopes, y))

    def fit(self, family: Family | str, column: str | int | None = None, **options: Any) -> FamilyFit:
        """Fit a family to one column, or a normal to all of up to three, by least Hellinger distance.

        As :func:`fogline.density.hellinger.leaf_fit.fit_column`.
        """
        from fogline.density.hellinger.leaf_fit import fit_column

        given = {"confidence" if name == "level" else name: value for name, value in options.items()}
        origin = Origin(self, "PrivateHellinger", {"family": family, **given}, {"column": column})
        return self._reading(origin, lambda: self._told(lambda shape: fit_column(shape, family, column, **options)))

    # -- clusters and mixtures ----------------------------------------------------------------------------

    def clusters(self, n_clusters: int | None = None, *, level: float = 0.05) -> ClusterReading:
        """Clusters of up to three columns, as :func:`fogline.density.components.leaf_clusters.read_clusters`; kept."""
        from fogline.density.components.leaf_clusters import read_clusters

        origin = Origin(self, "PrivateModeClustering", {"n_clusters": n_clusters, "level": level})
        return self._reading(origin, lambda: self._told(lambda shape: read_clusters(shape, n_clusters, level=level)))

    def mixture(self, n_components: int | None = None, *, sigma_min: float | ArrayLike | None = None) -> MixtureReading:
        """Gaussian mixture of up to three columns, as :func:`~fogline.density.components.leaf_mixture.read_mixture`."""
        from fogline.density.components.leaf_mixture import read_mixture

        origin = Origin(self, "PrivateGaussianMixture", {"n_components": n_components, "sigma_min": sigma_min})
        return self._reading(
            origin, lambda: self._told(lambda shape: read_mixture(shape, n_components, sigma_min=sigma_min))
        )

    def compare(self, other: PrivateDensity, **options: Any) -> DensityComparison:
        """Distances to another release of the same columns, and whether they differ at all.

        As :func:`fogline.density.distances.compare_densities`.
        """
        from fogline.density.distances import compare_densities

        return compare_densities(self, other, **options)

    def _told(self, read: Callable[[Posterior], Told]) -> Told:
        """Read from the shape, and say in the message what was done to see it."""
        shape, words = self._shape
        found = read(shape)
        return replace(found, message=joined(found.message, words))

    def _reading(self, origin: Origin, read: Callable[[], AnyReading]) -> AnyReading:
        """Return a reading, kept for whoever asks for the same again; it remembers where it comes from."""
        key = (origin.estimator, repr(origin.parameters), repr(origin.arguments))
        if key not in self._memory:
            self._memory[key] = read_from(origin, read())
        found: AnyReading = self._memory[key]
        return found

    # -- questions ----------------------------------------------------------------------------------------

    def _points(self, x: ArrayLike) -> FloatArray:
        points = np.asarray(self._ordered(x), dtype=np.float64)
        if points.ndim == 1 and self.spec.d == 1:
            points = points[:, None]
        if points.ndim != 2 or points.shape[1] != self.spec.d:
            raise ValueError(f"x must have shape (points, {self.spec.d}), got {points.shape}")
        with np.errstate(invalid="ignore"):  # nothing is said about points where there is nothing to read: NaN
            return np.where(np.abs(points) < 1e100, points, np.nan)

    def _ordered(self, x: Any) -> Any:
        """A frame's columns by the names of the release, whatever their order; anything else as it is."""
        names = list(map(str, getattr(x, "columns", ())))
        if self.columns is None or not names:
            return x
        missing = [name for name in self.columns if name not in names]
        if missing:
            raise ValueError(f"x has no column {missing[0]!r}: the release has {', '.join(self.columns)}")
        return x[list(self.columns)]

    def _blocks(self, x: ArrayLike, bandwidth: Any) -> tuple[Any, list[FloatArray]]:
        reading = self.reading(bandwidth)
        points = self._points(x)
        terms = reading.size if isinstance(reading, LeafReading) else len(reading.angular)
        size = max(1, 2**21 // max(1, terms))
        return reading, [points[i : i + size] for i in range(0, max(1, len(points)), size)]

    def pdf(self, x: ArrayLike, bandwidth: float | ArrayLike | None = None) -> FloatArray:
        """Density at points x of shape (p, d).

        At a bandwidth it is the kernel's reading, which may dip below zero where there is only noise. Without one, a
        release on leaves gives the posterior's density.
        """
        if bandwidth is None and self.leaves is not None:
            return np.asarray(self.posterior.pdf(self._points(x)).value)
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
        """Exact standard deviation of the privacy noise of :meth:`pdf` at this bandwidth.

        The same at every point for Fourier sums; for leaves, the largest over the centres and corners of the buckets.
        """
        return float(self.reading(bandwidth).noise_sd)

    def grid(self, bandwidth: float | ArrayLike | None = None, *, per_bandwidth: float = 4.0) -> Grid:
        """Density on a regular grid over the box, with so many points per bandwidth; up to three axes."""
        grid: Grid = self.reading(bandwidth).on_grid(per_bandwidth)
        return grid

    def fogline(self, bandwidth: float | ArrayLike | None = None, level: float = 0.05, *, at: Any = None) -> Any:
        """How far a peak must stand out before it cannot be noise, in density units.

        Privacy noise and sampling noise alone raise a peak of this prominence anywhere in the box with
        probability ``level``. Sampling noise grows with the density: the value holds where the density is
        highest, or at the points ``at``, one for each. With random features the noise includes their side lobes,
        and the highest place is the highest peak that was found.
        """
        places = None if at is None else self._points(at)
        if self.leaves is not None:
            from fogline.density.modes.from_leaves import leaf_fog_level

            h = self.bandwidth if bandwidth is None else as_bandwidth(bandwidth, self.spec.widths)
            return leaf_fog_level(self, h, check_level(level), places)
        reading = self.reading(bandwidth)
        if isinstance(self.spec, RandomSpec):
            from fogline.density.modes.without_grid import fog_level_anywhere

            return fog_level_anywhere(self, reading, check_level(level), places)
        from fogline.density.modes.significance import fog_level

        return fog_level(self, reading, check_level(level), places)

    def modes(self, n_modes: int | None = None, *, level: float = 0.05, bandwidth: Any = "auto") -> ModeTable:
        """Modes of the density: the best ``n_modes``, or all that stand above the fogline at ``level``.

        On leaves the table also has modes at walls and point masses, and errors of positions hold privacy, sampling and
        smoothing.
        """
        k = None if n_modes is None else check_count(n_modes, "n_modes")
        if self.leaves is not None:
            from fogline.density.modes.from_leaves import read_leaf_modes as read
        elif isinstance(self.spec, RandomSpec):
            from fogline.density.modes.without_grid import read_modes_anywhere as read
        else:
            from fogline.density.modes.on_grid import read_modes as read
        checked = check_level(level)
        origin = Origin(self, "PrivateModes", {"n_modes": k, "level": checked, "bandwidth": bandwidth})
        return self._reading(origin, lambda: read(self, k, checked, bandwidth))

    def sample(
        self,
        k: int,
        *,
        bandwidth: float | ArrayLike | None = None,
        random_state: Any = None,
        output: Output = None,
    ) -> Any:
        """Draw k points; free, and as private as the density itself.

        From the positive part of the kernel's reading; on leaves and without a bandwidth, from the posterior's density,
        on its lattices and atoms.

        Parameters
        ----------
        k : int
        bandwidth : float or array, optional
        random_state : int or generator, optional
        output : {"pandas", "polars"}, optional
            A frame with the names of the columns; by default an array.

        Returns
        -------
        array of shape (k, d), or a frame

        Examples
        --------
        >>> import numpy as np
        >>> from fogline import release
        >>> stay = np.random.default_rng(0).gamma(2.0, 3.0, 5000)
        >>> shape = release(stay, columns=["stay"], bounds=(0, 60), epsilon=1.0)
        >>> shape.sample(3, output="pandas").columns.tolist()
        ['stay']
        """
        return framed(self._drawn(check_count(k, "k", minimum=0), bandwidth, random_state), self.column_names, output)

    def _drawn(self, size: int, bandwidth: float | ArrayLike | None, random_state: Any) -> FloatArray:
        if bandwidth is None and self.leaves is not None:
            return np.asarray(self.posterior.sample(size, random_state=random_state))
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
        return PrivateDensity(
            self.spec,
            self._released,
            scale=self._scale,
            guarantee=guarantee,
            receipt=receipt,
            leaves=self.leaves,
            columns=self.columns,
            units=self.units,
        )

    def labelled(self, *, units: Sequence[str] | None = None, expect_records: int | None = None) -> PrivateDensity:
        """Return the same release with units of its columns, and with what :attr:`message` compares its count to."""
        found = self.under(self.guarantee, self.receipt)
        found.units = self.units if units is None else tuple(str(unit) for unit in units)
        found._memory["expected"] = check_expected(expect_records)
        return found

    @property
    def message(self) -> str:
        """What the released count and the budget give cause to say, such as that hardly a record was counted."""
        expected = self._memory.get("expected")
        found = "" if self.leaves is None else narrow_words(self.leaves, self.column_names)
        return release_message(found, self.guarantee, self.count, self.count_sd, expected, columns=self.spec.d)

    def card(self, *, date: str | None = None) -> dict[str, Any]:
        """What this release is, for an ethics board or a registry; see :mod:`fogline.density.release_card`."""
        return card_of(self, date=date)

    # -- files --------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, date: str | None = None) -> None:
        """Write the release to one file (JSON and whole numbers, no pickle); nothing is lost.

        A name that ends in ``.fog`` gives the self-describing format (:mod:`fogline.density.fog_file`), any other the
        ``.npz`` of earlier versions.

        Parameters
        ----------
        path : str or Path
        date : str, optional
            Of publication, for the card in a ``.fog``.

        Examples
        --------
        >>> import tempfile
        >>> from fogline import DensitySketch, PrivateDensity
        >>> density = DensitySketch([(0, 60)], features="leaves").update([[3.0]] * 500).release(epsilon=1.0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     density.save(f"{folder}/stay.fog")
        ...     PrivateDensity.load(f"{folder}/stay.fog") == density
        True
        """
        is_described = Path(path).suffix.lower() == ".fog"
        Path(path).write_bytes(self.to_fog(date=date) if is_described else self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> PrivateDensity:
        """Read a release written by :meth:`save`, of this version or an earlier one."""
        return cls.from_bytes(Path(path).read_bytes())

    def to_fog(self, *, date: str | None = None) -> bytes:
        """The ``.fog`` file that :meth:`save` writes."""
        import fogline

        stages = () if self.leaves is None else (("pilot", self.leaves.pilot), ("counts", self.leaves.counts))
        arrays: dict[str, NDArray[Any]] = {} if stages else {"released": self._released}
        for name, stage in stages:
            arrays |= {f"{name}_boxes": stage.boxes, f"{name}_counts": stage.counts}
        exact = {
            "spec": self.spec.to_dict(),
            "scale": self._scale,
            "noise": {name: [stage.noise.kind, stage.noise.scale] for name, stage in stages},
            "guarantee": self.guarantee.to_dict(),
            "receipt": self.receipt,
            "columns": self.columns,
            "units": self.units,
        }
        versions = {"fogline": fogline.__version__, "file": VERSION}
        return encode_fog({"versions": versions, "card": self.card(date=date), "exact": exact}, arrays)

    @classmethod
    def _from_fog(cls, data: bytes, receipt: dict[str, Any] | None) -> PrivateDensity:
        header, arrays = decode_fog(data)
        try:
            exact: dict[str, Any] = header["exact"]
            rest = {
                "guarantee": Guarantee.from_dict(exact["guarantee"]),
                "receipt": checked_receipt(exact["receipt"]) if receipt is None else receipt,
                "columns": exact["columns"],
                "units": exact["units"],
            }
            spec = spec_from_dict(exact["spec"])
            if not isinstance(spec, LeafSpec):
                return cls(spec, arrays["released"], scale=exact["scale"], **rest)
            noise = {f"{k}_noise": np.array([kind, scale.hex()]) for k, (kind, scale) in exact["noise"].items()}
            return cls.from_leaves(LeafRelease.from_arrays(spec, {**arrays, **noise}), **rest)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError("path: this release was not written by fogline: its content cannot be read") from None

    def to_bytes(self) -> bytes:
        """The file that :meth:`save` writes."""
        header = {
            "format": FORMAT if self.leaves is None else LEAF_FORMAT,
            "spec": self.spec.to_dict(),
            "scale": self._scale.hex(),
            "guarantee": self.guarantee.to_dict(),
            "receipt": self.receipt,
            **({} if self.columns is None else {"columns": list(self.columns)}),
            **({} if self.units is None else {"units": list(self.units)}),
        }
        arrays: Any = {"released": self._released} if self.leaves is None else self.leaves.to_arrays()
        file = io.BytesIO()
        np.savez(file, header=np.array(json.dumps(header)), **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, receipt: dict[str, Any] | None = None) -> PrivateDensity:
        """Inverse of :meth:`to_bytes` and :meth:`to_fog`; a receipt given here takes the place of the one inside."""
        if is_fog(data):
            return cls._from_fog(data, receipt)
        try:
            header, arrays = _earlier_file(data)
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError, zipfile.BadZipFile):
            raise ValueError(f"path: not a release of fogline, and not a density of format {FORMAT}") from None
        if header.get("format") not in (FORMAT, LEAF_FORMAT):
            raise ValueError(f"path: not a density of format {FORMAT}: {header.get('format')!r}")
        try:
            spec = spec_from_dict(header["spec"])
            rest: dict[str, Any] = {
                "guarantee": Guarantee.from_dict(header["guarantee"]),
                "receipt": checked_receipt(header["receipt"]) if receipt is None else receipt,
                **{name: header.get(name) for name in ("columns", "units")},
            }
            if header["format"] == LEAF_FORMAT:
                return cls.from_leaves(_leaves_from(spec, arrays), **rest)
            return cls(spec, arrays["released"], scale=float.fromhex(header["scale"]), **rest)
        except (KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError("path: this release was not written by fogline: its content cannot be read") from None


def _earlier_file(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of an ``.npz``, which has no hash: its size is looked at before anything is unpacked."""
    with zipfile.ZipFile(io.BytesIO(data)) as members:
        if sum(member.file_size for member in members.infolist()) > MOST_BYTES:
            raise ValueError("too large")
    with np.load(io.BytesIO(data), allow_pickle=False) as content:
        header = json.loads(str(content["header"]))
        check_texts(header)
        arrays = {name: content[name] for name in content.files if name != "header"}
    if not isinstance(header, dict):
        raise TypeError("no header")
    return header, arrays


def checked_receipt(receipt: Any) -> dict[str, Any] | None:
    """Return a receipt that a page or a card can show, or None; refuse anything else."""
    if receipt is None:
        return None
    if not isinstance(receipt, dict) or not {"dataset", "version", "commit"} <= set(receipt):
        raise TypeError("no receipt")
    return receipt


def _leaves_from(spec: Spec, arrays: dict[str, NDArray[Any]]) -> LeafRelease:
    """What a file holds of both stages."""
    try:
        if isinstance(spec, LeafSpec):
            return LeafRelease.from_arrays(spec, arrays)
    except (KeyError, ValueError):
        pass
    raise ValueError(f"path: a density of format {LEAF_FORMAT} is damaged") from None
