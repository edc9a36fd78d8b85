r"""Questions to a released density: probabilities, quantiles, means, curves, each with an error that holds all of it.

A :class:`Posterior` holds the estimated content of every leaf and some hundred draws of it. Each question is a
function of the contents: its value at the estimate is the answer, its spread over the draws the error. For the
*population* the draws contain sampling error, for the *records* they do not.

The parts of an error: *sampling* is the standard error that the table itself would have without privacy, from the
influence function of the question; *smoothing* is what is added because nobody knows how the mass of a bucket spreads
inside it; *privacy* is the rest, and never less than its share of the variance of the counts: where the parts are more
than the whole, they shrink in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fogline._results import Origin, Output, ReadingResults, framed, read_from
from fogline._typing import FloatArray
from fogline._validation import check_count, check_level
from fogline.density.leaves import BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.density.point_masses import ColumnHeaps, column_heaps, heaps_of_contents
from fogline.density.posterior.atom_cells import (
    cut_heaps,
    leaves_of,
    level_cells,
    move_to_atoms,
    tell_atoms,
    wide_heaps,
)
from fogline.density.posterior.axes import (
    HEAVY_LEAF,
    Ends,
    Heaps,
    LeafAxis,
    axes_of,
    cdf_at,
    mean_places,
    quantiles_of,
)
from fogline.density.posterior.estimates import (
    Atom,
    Band,
    Estimate,
    Target,
    as_wide_as_normal,
    check_target,
    error_parts,
    simultaneous_band,
    whole_records,
)
from fogline.density.posterior.fourier import FourierPosterior
from fogline.density.posterior.masses import BucketPosterior, LeafMasses
from fogline.density.posterior.ranges import share_of_range, with_heaps_beside
from fogline.density.posterior.released_sums import crossing_shares, resolved_slabs

__all__ = ["Ends", "LeafAxis", "LeafMasses", "Posterior", "example_posterior"]

_SURELY_SEEN = 3.0
"""Records, in units of what a cell may hold unseen, that must lie elsewhere before a column is taken to vary."""


class Posterior(ReadingResults):
    """What a release says about a density, with errors.

    Made by :attr:`fogline.PrivateDensity.posterior`. Deterministic: the same release gives the same answers.

    Parameters
    ----------
    axes : sequence of LeafAxis
    contents : callable
        Takes a target and returns :class:`LeafMasses`.
    count : (float, float)
        Released number of records and the standard deviation of its noise.
    seed : int
        Of the places of heaps.
    unseen : float
        Records that a cell may hold without being seen, on average.
    coarse : bool
        Whether leaves are those of several columns, which are wider and hold more beside an atom.
    heaps : callable, optional
        Takes the index of a column and returns its :class:`~fogline.density.point_masses.ColumnHeaps`; without it the
        same rule is applied to the estimated contents.
    conditioned : bool
        Whether the contents are those under a condition: atoms that hold nothing there are not told.
    noise_ratio : float
        Variance that the noise leaves in the counts of buckets, over that of sampling: the least part of privacy in an
        error.
    blurred : sequence of arrays, optional
        For each column and each edge of its leaves, the share of the records in buckets that reach across the edge.
    counted : callable, optional
        Returns the number of records under a condition, whose error is more than that of `count`.

    Examples
    --------
    >>> posterior = example_posterior()
    >>> posterior
    Posterior(stay; about 1000 records)
    >>> bool(posterior.quantile(0.5, "stay").value < 2)
    True
    """

    def __init__(
        self,
        axes: Sequence[LeafAxis],
        contents: Callable[[Target], LeafMasses],
        *,
        count: tuple[float, float],
        seed: int = 0,
        unseen: float = 1.0,
        coarse: bool = False,
        heaps: Callable[[int], ColumnHeaps] | None = None,
        conditioned: bool = False,
        noise_ratio: float = 0.0,
        blurred: Sequence[FloatArray] | None = None,
        counted: Callable[[], Estimate] | None = None,
    ) -> None:
        self.axes = tuple(axes)
        self._contents = contents
        self._count = count
        self._seed = seed
        self._unseen = unseen
        self._coarse = coarse
        self._heaps_of = heaps
        self._conditioned = conditioned
        self._noise_ratio = noise_ratio
        self._blurred = None if blurred is None else tuple(blurred)
        self._counted = counted
        self._memory: dict[Any, Any] = {}
        self.is_flat = False

    @classmethod
    def of_leaves(cls, release: LeafRelease, columns: Sequence[str] | None = None, *, flat: bool = True) -> Posterior:
        """Read a release on leaves; without `flat`, its field is never taken for nearly flat."""
        buckets = BucketPosterior(release, flat=flat)
        axes = axes_of(release.spec, columns)
        shape = release.spec.leaves

        def contents(target: Target) -> LeafMasses:
            return buckets.contents(target).map(lambda part: part.reshape(*part.shape[:-1], *shape))

        count, unseen = (max(release.total, 1.0), release.total_sd), 1 + release.counts.noise.sd
        blurred = [crossing_shares(release, axis, buckets.expected) for axis in range(release.spec.d)]
        seed = int(release.counts.counts.sum()) & 0xFFFFFFFF
        more: dict[str, Any] = {"seed": seed, "unseen": unseen, "blurred": blurred}
        more["heaps"] = lru_cache(partial(column_heaps, release))
        found = cls(axes, contents, count=count, noise_ratio=buckets.noise_ratio, **more)
        found.is_flat = buckets.fit.is_flat
        return found

    @classmethod
    def of_fourier(cls, density: Any, columns: Sequence[str] | None = None) -> Posterior:
        """Read a release of Fourier sums (grid features), old files among them.

        Parameters
        ----------
        density : PrivateDensity
        columns : sequence of str, optional
            Names of the columns.
        """
        found = FourierPosterior(density)
        grid = found.data.grid
        axes = axes_of(grid, columns)

        def contents(target: Target) -> LeafMasses:
            draws = found.draws(target)
            masses = LeafMasses(found.estimate(target), draws, draws)
            return masses.map(lambda part: part.reshape(*part.shape[:-1], *grid.leaves))

        # At least what the number of records itself is known to: its noise as that of one bucket of all of them.
        noise, records = density.count_sd**2, max(density.count, 1.0)
        ratio = noise / (records + noise)
        return cls(axes, contents, count=(density.count, density.count_sd), seed=found.seed, noise_ratio=ratio)

    # -- columns ---------------------------------------------------------------------------------------------

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.axes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(axis.name for axis in self.axes)

    def __repr__(self) -> str:
        return f"Posterior({', '.join(self.columns)}; about {self._count[0]:.0f} records)"

    def masses(self, target: Target = "population") -> LeafMasses:
        """Contents of leaves, normalised to one; computed when first asked for."""
        check_target(target)
        if target not in self._memory:
            self._memory[target] = self._contents(target).normalised(self.d)
        found: LeafMasses = self._memory[target]
        return found

    def _axis(self, column: str | int | None) -> int:
        if column is None:
            if self.d != 1:
                raise ValueError(f"column must be one of {', '.join(self.columns)}")
            return 0
        if isinstance(column, str):
            if column not in self.columns:
                raise ValueError(f"column {column!r} was not released; there are {', '.join(self.columns)}")
            return self.columns.index(column)
        if not 0 <= int(column) < self.d:
            raise ValueError(f"column must be below {self.d}, got {column}")
        return int(column)

    def _margin(self, column: str | int | None, target: Target) -> tuple[LeafAxis, LeafMasses]:
        axis = self._axis(column)
        key = (target, axis)
        if key not in self._memory:
            others = tuple(k - self.d for k in range(self.d) if k != axis)
            self._memory[key] = self.masses(target).map(lambda part: part.sum(axis=others))
        return self.axes[axis], self._memory[key]

    # -- questions -------------------------------------------------------------------------------------------

    @property
    def count(self) -> Estimate:
        """Released number of records; its only error is the noise, which is known exactly. No interval is below 0.

        Under a condition it is estimated, and smoothing has a part in its error.
        """
        if self._counted is not None:
            return self._counted()
        value, sd = self._count
        return Estimate(value, sd, max(value - 1.96 * sd, 0.0), value + 1.96 * sd, 0.95, "records", sd, 0.0, 0.0)

    def probability(
        self,
        box: Sequence[Ends] | None = None,
        *,
        target: Target = "population",
        level: float = 0.95,
        **ranges: Ends,
    ) -> Estimate:
        """Probability of a box: closed ranges by name, ``(40, 60)`` or ``(10, None)``, or a list with one per column.

        Outside the bounds there is nothing: a range that leaves them is cut, and one that lies outside has the
        probability 0 and a message. A heap in a leaf lies in the range as a whole or not at all, and the interval
        allows for both where the leaf is cut.

        Examples
        --------
        >>> share = example_posterior().probability(stay=(0, 2))
        >>> bool(share.low < 0.7 < share.high)
        True
        >>> print(example_posterior().probability(stay=(20, 30)).message)
        stay from 20 to 30 lies outside the released bounds 0 to 8, where nothing was counted
        """
        ends = self._ends(box, ranges)
        outside = [axis.outside(pair) for axis, pair in zip(self.axes, ends, strict=True)]
        found = self._share(ends, target=target, level=level)
        return replace(found, message="; ".join(words for words in outside if words))

    def _share(self, ends: Sequence[Ends], *, target: Target, level: float) -> Estimate:
        """Probability of a box whose ends are known per column."""
        if self.d > 1 or self._coarse:  # wide leaves: one at a wall may be cut
            from fogline.density.posterior.conditions import Conditions

            for axis, pair in zip(self.axes, ends, strict=True):
                axis.range(pair)  # refused here if it falls
            named = dict(zip(self.columns, ends, strict=True))
            return whole_records(Conditions(self).share(named, target=target, level=level), self._count[0])
        return share_of_range(self, ends[0], target=target, level=level)

    def _ends(self, box: Sequence[Ends] | None, ranges: Mapping[str, Ends]) -> list[Ends]:
        ends: list[Ends] = [(None, None)] * self.d if box is None else list(box)
        if len(ends) != self.d:
            raise ValueError(f"box must have one range per column ({self.d}), got {len(ends)}")
        for name, pair in ranges.items():
            ends[self._axis(name)] = pair
        return ends

    @cached_property
    def _heaps(self) -> Heaps:
        """Cells of a single column that hold one value and can be cut by a range; none where a leaf is one value."""
        return cut_heaps(self, self._column_heaps if self.d == 1 and self.axes[0].reach else ColumnHeaps())

    @cached_property
    def _wide_heaps(self) -> Heaps:
        """The same for cells of several leaves, on a column that was declared continuous."""
        wide = self.d == 1 and self.axes[0].reach and not self.axes[0].step
        return wide_heaps(self, self._column_heaps if wide else ColumnHeaps())

    @cached_property
    def _column_heaps(self) -> ColumnHeaps:
        """Point masses of the single column."""
        if self._heaps_of is not None:
            return self._heaps_of(0)
        masses = self.masses()
        return heaps_of_contents(masses.estimate, masses.draws, bool(self.axes[0].step))

    def places(self, column: str | int) -> FloatArray:
        """Where the records of each leaf of a column lie on average: the middle, or nearer to a wall that holds a heap.

        Examples
        --------
        >>> example_posterior().places("stay").tolist()
        [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]
        """
        axis = self._axis(column)
        if self.d > 1:
            return self.marginal(axis).places(0)
        x, heaps = self.axes[0].centres.copy(), self._heaps
        at_wall = np.isin(heaps.leaves, (0, len(x) - 1))
        leaves = heaps.leaves[at_wall]
        x[leaves] += heaps.part[0, at_wall] * (heaps.values[0, at_wall] - x[leaves])
        return x

    def cdf(
        self, x: ArrayLike, column: str | int | None = None, *, target: Target = "population", level: float = 0.95
    ) -> Estimate:
        """Distribution function of one column at points.

        Examples
        --------
        >>> posterior = example_posterior()
        >>> found = posterior.cdf([0, 2, 8], "stay")
        >>> [round(float(value), 1) for value in found.value]
        [0.0, 0.7, 1.0]
        """
        axis, masses = self._margin(column, target)
        points = np.atleast_1d(np.asarray(x, dtype=np.float64))
        if np.isnan(points).any():
            raise ValueError("x must not be nan")
        heaps = self._heaps if self.d == 1 else None
        leaves = np.empty(0, dtype=np.int64) if heaps is None else heaps.leaves
        kinds: Any = [(None, None)] * 3
        if heaps is not None:
            kinds = [(heaps.values, heaps.part), (heaps.drawn, heaps.drawn_part), (heaps.values, heaps.part)]
        parts = (masses.estimate, masses.draws, masses.even)
        value, draws, even = (
            cdf_at(axis, part, points, leaves, *places) for part, places in zip(parts, kinds, strict=True)
        )
        spread = np.sqrt(np.clip(value * (1 - value), 0, None))
        found = self._estimate(value, draws, even, spread, target, level)
        if self.d == 1 and not self._coarse:
            found = with_heaps_beside(self, points, found)
        return whole_records(found, self._count[0])

    def quantile(
        self,
        q: ArrayLike,
        column: str | int | None = None,
        *,
        target: Target = "population",
        level: float = 0.95,
    ) -> Estimate:
        """Quantiles of one column: the least value (on a lattice) or place with at least this share below.

        A quantile in the leaf of an atom is the atom's value. Ends of the interval in a leaf that holds much move
        outward to the ends of the leaf, because nobody knows where in it the records are.

        Examples
        --------
        >>> median = example_posterior().quantile(0.5, "stay")
        >>> median.low <= median.value <= median.high
        True
        """
        axis, masses = self._margin(column, target)
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(f"q must lie between 0 and 1, got {q!r}")
        value, draws, even = (quantiles_of(axis, part, levels) for part in (masses.estimate, masses.draws, masses.even))
        # influence of a record on a quantile: sqrt(q (1 - q)) over the density, here over a short stretch around it
        around = np.stack([np.clip(levels - 0.02, 0, 1), np.clip(levels + 0.02, 0, 1)])
        low, high = (quantiles_of(axis, masses.estimate, row) for row in around)
        spread = np.sqrt(levels * (1 - levels)) * (high - low) / np.maximum(around[1] - around[0], 1e-12)
        found = self._estimate(value, draws, even, spread, target, level)
        found = self._outward(axis, masses, found)
        return found[0] if np.ndim(q) == 0 else found

    def _outward(self, axis: LeafAxis, masses: LeafMasses, found: Estimate) -> Estimate:
        """Quantiles in an atom's leaf are the atom; ends inside heavy leaves move outward to the ends of the leaf."""
        value, low, high = (np.asarray(part) for part in (found.value, found.low, found.high))
        first, last = (axis.leaf_of(end) for end in (low, np.nextafter(high, -np.inf)))
        if axis.step:
            return replace(found, low=np.minimum(axis.first(first), value), high=np.maximum(axis.last(last), value))
        heavy = masses.estimate > HEAVY_LEAF
        if self.d == 1 and len(self._heaps.leaves):
            heavy[self._heaps.leaves] = True
            places = np.full(len(heavy), np.nan)
            places[self._heaps.leaves] = self._heaps.values[0]
            place = places[axis.leaf_of(value)]
            value = np.where(np.isnan(place), value, place)
        low = np.minimum(np.where(heavy[first], axis.first(first), low), value)
        high = np.maximum(np.where(heavy[last], axis.last(last), high), value)
        # Where in its leaf a quantile lies, nobody knows: even over it, as far as anybody can tell.
        inside = np.where(heavy[axis.leaf_of(value)] & (low < high), axis.reach / math.sqrt(3), 0.0)
        error, smoothing = (np.hypot(part, inside) for part in (found.standard_error, found.smoothing))
        return replace(found, value=value, low=low, high=high, standard_error=error, smoothing=smoothing)

    def mean(self, column: str | int | None = None, *, target: Target = "population", level: float = 0.95) -> Estimate:
        """Mean of one column; the interval allows for where in heavy leaves the records are.

        Examples
        --------
        >>> found = example_posterior().mean("stay")
        >>> found.low < found.value < found.high
        True
        """
        axis, masses = self._margin(column, target)
        x = self.places(axis.name)
        value, draws, even = (part @ x for part in (masses.estimate, masses.draws, masses.even))
        heavy, offsets = mean_places(axis, masses.estimate, len(masses.draws), self._seed, x)
        draws = draws + (masses.draws[:, heavy] * offsets).sum(axis=1)
        spread = math.sqrt(max(float(masses.estimate @ x**2) - float(value) ** 2, 0.0))
        return as_wide_as_normal(self._estimate(float(value), draws, even, spread, target, level), *axis.bounds)

    def variance(
        self, column: str | int | None = None, *, target: Target = "population", level: float = 0.95
    ) -> Estimate:
        """Variance of one column.

        Examples
        --------
        >>> 0.5 < example_posterior().variance("stay").value < 2
        True
        """
        axis, masses = self._margin(column, target)
        places = self.places(axis.name)
        x = places - float(masses.estimate @ places)
        # values spread inside a leaf, evenly as far as is known
        within = axis.reach * (axis.reach + axis.step) / 3

        def second(part: FloatArray) -> FloatArray:
            return np.asarray(part @ x**2 - (part @ x) ** 2 + within)

        value = float(second(masses.estimate))
        spread = math.sqrt(max(float(masses.estimate @ (x**2 - value) ** 2), 0.0))
        # a heavy leaf may hold one value, off its middle
        heavy, offsets = mean_places(axis, masses.estimate, len(masses.draws), self._seed, places)
        mass = masses.draws[:, heavy]
        first = masses.draws @ x + (mass * offsets).sum(axis=1)
        square = masses.draws @ x**2 + (mass * ((x[heavy] + offsets) ** 2 - x[heavy] ** 2)).sum(axis=1)
        draws = np.maximum(square - first**2 + within * (1 - mass.sum(axis=1)), 0.0)
        found = self._estimate(value, draws, second(masses.even), spread, target, level)
        return as_wide_as_normal(found, 0.0, (axis.bounds[1] - axis.bounds[0]) ** 2 / 4)

    def correlation(self, first: str | int, second: str | int, *, target: Target = "population") -> Estimate:
        """Correlation of two columns; not known where a column does not vary beyond a leaf, and said so.

        Examples
        --------
        >>> from fogline import DensitySketch
        >>> from fogline.testing import seeded_noise
        >>> rows = np.column_stack([np.full(2000, 3.0), np.arange(2000) / 200])
        >>> with seeded_noise(1):
        ...     density = DensitySketch([(0, 10)] * 2, features="leaves").update(rows).release(epsilon=1.0)
        >>> print(density.posterior.correlation(0, 1).message)
        x1 holds one value as far as the release shows: no correlation with it is known
        """
        i, j = self._axis(first), self._axis(second)
        if i == j:
            raise ValueError("second must be another column")
        others = tuple(k - self.d for k in range(self.d) if k not in (i, j))
        masses = self.masses(target).map(lambda part: part.sum(axis=others))
        x, y = (self.axes[k].centres for k in sorted((i, j)))
        x, y = x - x.mean(), y - y.mean()

        def value_of(part: FloatArray) -> FloatArray:
            mx, my = part.sum(axis=-1) @ x, part.sum(axis=-2) @ y
            vx, vy = part.sum(axis=-1) @ x**2 - mx**2, part.sum(axis=-2) @ y**2 - my**2
            known = (vx > 1e-12 * x[-1] ** 2) & (vy > 1e-12 * y[-1] ** 2)  # a draw may put all records into one leaf
            return np.asarray(np.clip(((part @ y) @ x - mx * my) / np.sqrt(np.where(known, vx * vy, np.inf)), -1, 1))

        for k in (i, j):
            if not self._varies(k, target):
                words = (
                    f"{self.columns[k]} holds one value as far as the release shows: no correlation with it is known"
                )
                return Estimate(0.0, 1.0, -1.0, 1.0, 0.95, target, 0.0, 0.0, 1.0, words)
        value = float(value_of(masses.estimate))
        return self._estimate(
            value, value_of(masses.draws), value_of(masses.even), max(1 - value**2, 0.0), target, 0.95
        )

    def _varies(self, column: int, target: Target) -> bool:
        """Whether more records than noise hides surely lie farther than two buckets from the leaf that holds most."""
        axis, masses = self._margin(column, target)
        # two values of a lattice differ, however narrow their leaves are
        reach = 2 * (self.bucket_side(column) - (0.0 if axis.reach else axis.width))
        near = np.abs(axis.centres - axis.centres[int(np.argmax(masses.estimate))]) <= reach
        elsewhere = np.quantile(masses.draws[:, ~near].sum(axis=1), 0.025)
        return bool(elsewhere * self._count[0] > _SURELY_SEEN * self._unseen)

    def pdf(self, x: ArrayLike, *, target: Target = "population", level: float = 0.95) -> Estimate:
        """Density at points of shape (p, d), or (p,) in one column; 0 outside the box.

        Examples
        --------
        >>> float(example_posterior().pdf([9.0]).value[0])
        0.0
        """
        points = np.asarray(x, dtype=np.float64)
        points = points.reshape(-1, 1) if self.d == 1 and points.ndim < 2 else points
        if points.ndim != 2 or points.shape[1] != self.d:
            raise ValueError(f"x must have shape (points, {self.d}), got {points.shape}")
        place, inside = self._leaf_of(points)
        masses, volume = self.masses(target), math.prod(axis.width for axis in self.axes)
        value = np.where(inside, masses.estimate[place], 0.0) / volume
        even = np.where(inside, masses.even[(slice(None), *place)], 0.0) / volume
        spread = np.sqrt(np.maximum(value, 0) / volume)
        return self._estimate(value, even, even, spread, target, level)

    def _leaf_of(self, points: FloatArray) -> tuple[tuple[Any, ...], Any]:
        inside = np.ones(len(points), dtype=bool)
        place = []
        for k, axis in enumerate(self.axes):
            column = points[:, k]
            inside &= (column >= axis.bounds[0]) & (column <= axis.bounds[1])
            index = np.searchsorted(axis.edges, np.nan_to_num(column), side="right") - 1
            place.append(np.clip(index, 0, len(axis.edges) - 2))
        return tuple(place), inside

    def band(
        self,
        column: str | int | None = None,
        *,
        kind: str = "pdf",
        points: int = 256,
        level: float = 0.95,
        edges: FloatArray | None = None,
    ) -> Band:
        """Curve of one column's density or distribution function with a band that holds all of it at once.

        It is read in at most `points` cells of equal width, or between `edges`, each moved to the nearest leaf's.

        Examples
        --------
        >>> band = example_posterior().band("stay", kind="cdf", points=8)
        >>> bool((band.low <= band.pointwise_low).all())
        True
        """
        if kind not in ("pdf", "cdf"):
            raise ValueError(f"kind must be 'pdf' or 'cdf', got {kind!r}")
        level = check_level(level, name="level")
        axis, masses = self._margin(column, "population")
        group = max(1, len(axis.centres) // check_count(points, "points"))
        starts = np.arange(0, len(axis.centres), group)
        if edges is not None:
            inside = np.searchsorted(axis.centres, np.asarray(edges, dtype=float))
            starts = np.unique([0, *inside[inside < len(axis.centres)]])
        sizes = np.diff(np.append(starts, len(axis.centres)))
        cells = [np.add.reduceat(part, starts, axis=-1) for part in (masses.estimate, masses.draws)]
        # what no draw shows may still be there: this many records in one of the cells
        unseen = self._unseen * math.log(len(starts) / (1 - level)) / self._count[0]
        if kind == "cdf":
            x = axis.edges[starts + sizes]
            value, draws = (np.cumsum(part, axis=-1) for part in cells)
            band = simultaneous_band(x, value, draws, level, np.full(len(x), unseen))
            return replace(band, high=np.minimum(band.high, 1.0))
        x = (axis.edges[starts] + axis.edges[starts + sizes]) / 2
        value, draws = (part / (sizes * axis.width) for part in cells)
        return simultaneous_band(x, value, draws, level, unseen / (sizes * axis.width))

    def marginal(self, column: str | int) -> Posterior:
        """Posterior of one column alone.

        Examples
        --------
        >>> example_posterior().marginal("stay").columns
        ('stay',)
        """
        axis = self._axis(column)
        margin = lambda target: self._margin(axis, target)[1]  # noqa: E731
        more: dict[str, Any] = {
            "seed": self._seed,
            "unseen": self._unseen,
            "coarse": self._coarse or self.d > 1,
            "heaps": self._heaps_along([axis]),
            "conditioned": self._conditioned,
            "noise_ratio": self._noise_ratio,
            "blurred": None if self._blurred is None else self._blurred[axis : axis + 1],
            "counted": self._counted,
        }
        found = Posterior([self.axes[axis]], margin, count=self._count, **more)
        return self._after("marginal", {"column": self.columns[axis]}, found)

    def _after(self, step: str, options: Mapping[str, Any], found: Posterior) -> Posterior:
        """Note the step that led from this posterior to another one, for whoever shows that."""
        if self.origin is None:
            return found
        steps = (*self.origin.arguments.get("steps", ()), (step, dict(options)))
        return read_from(Origin(self.origin.density, "Posterior", arguments={"steps": steps}), found)

    def _heaps_along(self, columns: Sequence[int]) -> Callable[[int], ColumnHeaps] | None:
        """Point masses of some of the columns, for a posterior of these."""
        heaps_of, kept = self._heaps_of, tuple(columns)
        return None if heaps_of is None else lambda k: heaps_of(kept[k])

    def resolved_edges(self, most: float) -> FloatArray:
        """Edges of the leaves of a single column between which the content is known from released counts.

        Across each of them reach buckets with at most this part of what lies between it and the one before. In a
        marginal of several columns all buckets of a stretch spread their records alike, so that what the field gets
        wrong inside does not average out.

        Examples
        --------
        >>> example_posterior().resolved_edges(0.1).tolist()
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
        """
        if self.d != 1:
            raise ValueError("resolved_edges is of a single column: take marginal(column) first")
        edges = self.axes[0].edges
        if self._blurred is None:
            return edges
        return np.asarray(edges[resolved_slabs(self._blurred[0], self.masses().estimate, most)])

    @property
    def is_coarse(self) -> bool:
        """Whether leaves are those of several columns, which are wider than those of one."""
        return self._coarse

    def bucket_side(self, column: str | int) -> float:
        """Mean side, along a column, of the released buckets that hold the records; 0 where there are no buckets.

        Examples
        --------
        >>> example_posterior().bucket_side("stay")
        1.0
        """
        axis = self._axis(column)
        if self._blurred is None:
            return 0.0
        return float(self.axes[axis].width * (1 + np.sum(self._blurred[axis])))

    def without_atoms(self, column: str | int) -> tuple[Posterior, tuple[Atom, ...]]:
        """Posterior of the records that do not hold one of a column's atoms, and these atoms.

        Where a leaf of the column is an atom, its content becomes that of its neighbours along the column.

        Examples
        --------
        >>> rest, atoms = example_posterior().without_atoms("stay")
        >>> len(atoms), rest.columns
        (0, ('stay',))
        """
        axis = self._axis(column)
        atoms = self.marginal(axis).atoms
        if not atoms:
            return self, ()
        cells = [leaves_of(self.axes[axis], atom) for atom in atoms]
        level = partial(level_cells, cells=cells, axis=axis - self.d)

        def contents(target: Target) -> LeafMasses:
            return self.masses(target).map(level)

        share = max(1.0 - sum(float(atom.share.value) for atom in atoms), 0.0)
        count = (max(share * self._count[0], 1.0), self._count[1])
        more: dict[str, Any] = {
            "seed": self._seed,
            "unseen": self._unseen,
            "coarse": self._coarse,
            "heaps": lambda k: ColumnHeaps() if k == axis else self.marginal(k)._column_heaps,
            "conditioned": True,
            "noise_ratio": self._noise_ratio,
        }
        return Posterior(self.axes, contents, count=count, **more), atoms

    def given(self, /, **ranges: Ends) -> Posterior:
        """Posterior of the other columns where these lie in closed ranges; of all of them if none would be left.

        A heap lies in the condition as a whole or not at all, and the other columns keep theirs: zeros of a column are
        zeros in every condition on another. A condition that holds nobody is refused, for nothing is known there.

        Examples
        --------
        >>> short = example_posterior().given(stay=(0, 2))
        >>> float(short.probability(stay=(4, 8)).value)
        0.0
        """
        if not ranges:
            raise ValueError("given needs at least one range, such as age=(70, 80)")
        from fogline.density.posterior.conditions import Conditions

        named = {self._axis(name) for name in ranges}
        for axis, ends in ((self._axis(name), ends) for name, ends in ranges.items()):
            self.axes[axis].range(ends)  # refused here if it falls
        boxes = Conditions(self)
        if boxes.is_empty(ranges):
            outside = (axis.outside(ranges[axis.name]) for axis in self.axes if axis.name in ranges)
            raise ValueError(f"given: {'; '.join(filter(None, outside)) or 'no record is estimated to lie there'}")
        keep = [k for k in range(self.d) if k not in named] or list(range(self.d))
        return self._after("given", ranges, boxes.within(ranges, [self.columns[k] for k in keep]))

    # -- draws -----------------------------------------------------------------------------------------------

    def draws(self, m: int | None = None, *, target: Target = "population") -> FloatArray:
        """Densities drawn from the posterior: masses of leaves that sum to one, shape (m, leaves per column).

        Examples
        --------
        >>> example_posterior().draws(10).shape
        (10, 8)
        """
        drawn = self.masses(target).draws
        size = len(drawn) if m is None else check_count(m, "m")
        if size > len(drawn):
            raise ValueError(f"m must be at most {len(drawn)}")
        return drawn[:size].copy()

    def sample(self, k: int, *, random_state: Any = None, output: Output = None) -> Any:
        """Draw k records from the estimated population; they lie in the bounds, on lattices and on atoms.

        An array, or with ``output="pandas"`` or ``"polars"`` a frame with the names of the columns.

        Examples
        --------
        >>> example_posterior().sample(5, random_state=0).shape
        (5, 1)
        """
        size = check_count(k, "k", minimum=0)
        rng = np.random.default_rng(random_state)
        mass = self.masses().estimate.ravel()
        leaf = rng.choice(mass.size, size=size, p=mass / mass.sum())
        place = np.unravel_index(leaf, self.masses().estimate.shape)
        columns = [axis.values_in(index, rng) for axis, index in zip(self.axes, place, strict=True)]
        points = np.stack(columns, axis=1) if columns else np.empty((size, 0))
        for k in range(self.d):
            move_to_atoms(points[:, k], self if self.d == 1 else self.marginal(k), rng)
        return framed(points, self.columns, output)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """Values that hold a share of the population by themselves: zeros, heaps, walls; one column only.

        They are those that :attr:`PrivateModes.point_masses_` lists, by the one rule of
        :mod:`fogline.density.point_masses`; shares and their errors are those of the posterior.
        """
        if self.d != 1 or len(self.axes[0].centres) < 3:
            return ()
        found = tell_atoms(self, self._column_heaps)
        if not self._conditioned:
            return tuple(found)
        return tuple(atom for atom in found if atom.share.value > 3 * float(atom.share.standard_error))

    # -- errors ----------------------------------------------------------------------------------------------

    def _estimate(
        self, value: Any, draws: FloatArray, even: FloatArray, spread: Any, target: Target, level: float
    ) -> Estimate:
        """Put an answer together: `spread` is the standard deviation of a record's influence on it."""
        level = check_level(level, name="level")
        tails = (1 - level) / 2
        low, high = np.quantile(draws, [tails, 1 - tails], axis=0)
        low, high = np.minimum(low, value), np.maximum(high, value)
        error = np.sqrt(np.mean((draws - value) ** 2, axis=0))
        sampling = np.square(spread) / self._count[0] if target == "population" else 0.0 * np.square(spread)
        least = self._noise_ratio * (sampling if target == "population" else np.square(error))
        parts: tuple[Any, ...] = value, error, low, high, *error_parts(error, draws, even, sampling, least)
        if np.ndim(value) == 0:
            parts = tuple(float(part) for part in parts)
        value, error, low, high, privacy, sampling, smoothing = parts
        return Estimate(value, error, low, high, level, target, privacy, sampling, smoothing)


def example_posterior() -> Posterior:
    """Posterior of a small release in one column, for examples."""
    spec = LeafSpec.plan([(0, 8)], leaves=[8])
    boxes = np.array([[[i, i + 1]] for i in range(8)])
    stage = BucketCounts(boxes, np.array([400, 300, 200, 90, 10, 0, 1, -1]), Noise("laplace", 2.0))
    return Posterior.of_leaves(LeafRelease(spec, pilot=stage, counts=stage), ["stay"])
