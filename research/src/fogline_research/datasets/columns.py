r"""Made columns, pairs and triples with a known population: what a density release is judged on.

A column is a mixture of continuous laws and atoms in a public box, so that the mass of every cell is exact. Continuous
laws are cut off at the box (records outside it contribute nothing to a release, and nobody wants to judge them),
except where ``clip=True`` says that values beyond a wall are recorded at the wall.

Each kind of difficulty has kinds in both halves: the half ``"tune"`` may be looked at while a method is made, the half
``"judge"`` only to report. `fogline_research.datasets.tables` has the pairs and triples.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

__all__ = ["COLUMNS", "Column", "Half", "Law", "PointMasses", "cell_of", "column_named", "generator"]

Array = NDArray[np.float64]
Half = Literal["tune", "judge"]


def generator(*words: object) -> np.random.Generator:
    """Make a generator that is the same for the same words, on every machine.

    Examples
    --------
    >>> bool(generator("uniform", 1000).random() == generator("uniform", 1000).random())
    True
    """
    return np.random.default_rng(zlib.crc32("/".join(map(str, words)).encode()))


def cell_of(x: Array, low: float, high: float, cells: int) -> NDArray[np.int64]:
    """Cell of each value among equal half-open cells; the upper bound belongs to the last.

    Examples
    --------
    >>> cell_of(np.array([0.0, 0.49, 0.5, 1.0]), 0.0, 1.0, 2)
    array([0, 0, 1, 1])
    """
    place = np.floor((np.asarray(x, dtype=np.float64) - low) / (high - low) * cells)
    return np.clip(place, 0, cells - 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Law:
    """A continuous part of a column: a frozen distribution of scipy, cut off or gathered at the walls of the box."""

    weight: float
    law: Any
    clip: bool = False

    def draw(self, n: int, bounds: tuple[float, float], rng: np.random.Generator) -> Array:
        """Draw records by inversion."""
        if self.clip:
            return np.asarray(np.clip(self.law.ppf(rng.random(n)), *bounds))
        first, last = self.law.cdf(bounds[0]), self.law.cdf(bounds[1])
        return np.asarray(np.clip(self.law.ppf(first + (last - first) * rng.random(n)), *bounds))

    def cell_masses(self, bounds: tuple[float, float], cells: int) -> Array:
        """Exact mass of equal cells of the box."""
        cdf = np.asarray(self.law.cdf(np.linspace(*bounds, cells + 1)))
        if self.clip:
            return np.diff(np.r_[0.0, cdf[1:-1], 1.0])
        return np.asarray(np.diff(cdf) / (cdf[-1] - cdf[0]))


@dataclass(frozen=True, eq=False)
class PointMasses:
    """A part of a column that takes a few values only."""

    weight: float
    values: Array
    probabilities: Array

    @classmethod
    def at(cls, weight: float, *values: float) -> PointMasses:
        """Equally frequent values."""
        return cls(weight, np.array(values, dtype=np.float64), np.full(len(values), 1.0 / len(values)))

    @classmethod
    def lattice(cls, weight: float, masses: Array, *, low: float = 0.0, step: float = 1.0) -> PointMasses:
        """Values low, low + step, ... with these masses, which are made to sum to 1."""
        return cls(weight, low + step * np.arange(len(masses), dtype=np.float64), masses / masses.sum())

    def draw(self, n: int, bounds: tuple[float, float], rng: np.random.Generator) -> Array:
        """Draw records."""
        return np.asarray(np.clip(rng.choice(self.values, size=n, p=self.probabilities), *bounds))

    def cell_masses(self, bounds: tuple[float, float], cells: int) -> Array:
        """Exact mass of equal cells of the box."""
        places = cell_of(self.values, *bounds, cells)
        return np.asarray(np.bincount(places, weights=self.probabilities, minlength=cells), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Column:
    """One made column.

    Attributes
    ----------
    name : str
    kind : str
        The difficulty; each has columns in both halves.
    half : {"tune", "judge"}
    box : tuple of float
        Public bounds of the column.
    parts : tuple of Law and PointMasses
        Their weights sum to 1.
    step : float or None
        Public rounding step, where the owner of such a column would know one.

    Examples
    --------
    >>> column = column_named("uniform")
    >>> column.draw(3, np.random.default_rng(0)).shape, column.bounds, column.steps
    ((3, 1), ((0.0, 1.0),), None)
    >>> column.cell_masses(4)
    array([0.25, 0.25, 0.25, 0.25])
    """

    name: str
    kind: str
    half: Half
    box: tuple[float, float]
    parts: tuple[Law | PointMasses, ...]
    step: float | None = None
    _cache: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def d(self) -> int:
        """Number of axes: 1."""
        return 1

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Public bounds, one pair per axis."""
        return (self.box,)

    @property
    def steps(self) -> tuple[float | None, ...] | None:
        """Public rounding step per axis, or None."""
        return None if self.step is None else (self.step,)

    @cached_property
    def atomic(self) -> bool:
        """Whether single values hold mass, so that ranks jump."""
        return self.step is not None or any(isinstance(part, PointMasses) or part.clip for part in self.parts)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Draw records of shape (n, 1)."""
        sizes = rng.multinomial(n, [part.weight for part in self.parts])
        drawn = [part.draw(int(size), self.box, rng) for part, size in zip(self.parts, sizes, strict=True)]
        return rng.permutation(np.concatenate(drawn))[:, None]

    def cell_masses(self, cells: int) -> Array:
        """Exact mass of equal cells of the box, which sums to 1."""
        if cells not in self._cache:
            masses = sum(part.weight * part.cell_masses(self.box, cells) for part in self.parts)
            self._cache[cells] = np.asarray(masses)
        return self._cache[cells]


# -- laws ---------------------------------------------------------------------------------------------------------


def _normal(weight: float, mean: float, sd: float, *, clip: bool = False) -> Law:
    return Law(weight, stats.norm(mean, sd), clip)


def _flat(weight: float, low: float, high: float) -> Law:
    return Law(weight, stats.uniform(low, high - low))


def _ramp(weight: float, low: float, high: float) -> Law:
    """Density that rises from nothing at `low` to its top at `high`, in a straight line."""
    return Law(weight, stats.triang(1.0, low, high - low))


def _lattice(masses: Callable[[Array], Array], last: int) -> tuple[PointMasses]:
    """Whole numbers 0 ... last with these masses."""
    return (PointMasses.lattice(1.0, masses(np.arange(last + 1.0))),)


def _ages() -> Array:
    """Mass of ages 0 to 110: four of ten people say a multiple of 5, two of ten a multiple of 10."""
    ages = np.arange(111.0)
    smooth: Array = stats.norm.pdf(ages, 44, 17) + 0.5 * stats.norm.pdf(ages, 72, 9)
    total = 0.4 * smooth
    for step, share in ((5, 0.4), (10, 0.2)):
        np.add.at(total, np.minimum(step * np.round(ages / step), 110).astype(int), share * smooth)
    return total


def _prices() -> Array:
    """Mass of prices of 0.00 to 200.00 in cents: 70% end in 99, 15% in 49 or 50, the rest in anything."""
    euros = stats.lognorm(0.7, scale=25).pdf(np.arange(200) + 0.5)
    total = np.zeros(20_001)
    for cents, share in ((99, 0.70), (49, 0.08), (50, 0.07)):
        total[cents:20_000:100] += share * euros
    total[:20_000] += 0.15 * np.repeat(euros, 100) / 100
    return total


def _wages(weight: float) -> PointMasses:
    """Wages that are said in whole five hundreds."""
    values = np.arange(500.0, 20_000.0, 500.0)
    masses = stats.lognorm(0.5, scale=3200).pdf(values)
    return PointMasses(weight, values, masses / masses.sum())


def _weights(weight: float) -> PointMasses:
    """Body weights that are said in multiples of five."""
    values = np.arange(40.0, 150.0, 5.0)
    masses = stats.gamma(25, scale=3).pdf(values)
    return PointMasses(weight, values, masses / masses.sum())


def _blocks(heights: tuple[float, ...], low: float, high: float) -> Law:
    """Piecewise constant density on equal pieces."""
    return Law(1.0, stats.rv_histogram((np.array(heights), np.linspace(low, high, len(heights) + 1)), density=True))


def _skewed() -> tuple[Column, ...]:
    return (
        Column("gamma(2) in 0:40", "skewed", "tune", (0.0, 40.0), (Law(1.0, stats.gamma(2, scale=3)),)),
        Column(
            "lognormal(1, 0.6) in 0:30", "skewed", "judge", (0.0, 30.0), (Law(1.0, stats.lognorm(0.6, scale=2.72)),)
        ),
        Column("Weibull(1.5) in 0:5", "skewed", "judge", (0.0, 5.0), (Law(1.0, stats.weibull_min(1.5)),)),
        Column("gamma(3) in 0:60", "skewed", "tune", (0.0, 60.0), (Law(1.0, stats.gamma(3)),)),
    )


def _heavy() -> tuple[Column, ...]:
    clipped = (Law(1.0, stats.cauchy(0, 1), clip=True),)
    return (
        Column("Pareto(1.5) in 0:50", "heavy-tailed", "tune", (0.0, 50.0), (Law(1.0, stats.pareto(1.5, loc=-1)),)),
        Column("t(2) in -50:50", "heavy-tailed", "judge", (-50.0, 50.0), (Law(1.0, stats.t(2)),)),
        Column("Cauchy clipped to -20:20", "heavy-tailed", "judge", (-20.0, 20.0), clipped),
        Column(
            "lognormal(0, 1.5) clipped to 0:100", "heavy-tailed", "tune", (0.0, 100.0),
            (Law(1.0, stats.lognorm(1.5), clip=True),),
        ),
    )  # fmt: skip


def _heaped() -> tuple[Column, ...]:
    cents = PointMasses.lattice(1.0, _prices(), step=0.01)
    return (
        Column("ages, many rounded", "heaped", "judge", (0.0, 110.0), (PointMasses.lattice(1.0, _ages()),), 1.0),
        Column("prices that end in 99", "heaped", "tune", (0.0, 200.0), (cents,), 0.01),
        Column(
            "weights, half in fives", "heaped", "tune", (30.0, 160.0),
            (Law(0.5, stats.gamma(25, scale=3)), _weights(0.5)),
        ),
        Column(
            "wages, some in five hundreds", "heaped", "judge", (0.0, 20_000.0),
            (Law(0.6, stats.lognorm(0.5, scale=3200)), _wages(0.4)),
        ),
    )  # fmt: skip


def _zeros() -> tuple[Column, ...]:
    def zeros(share: float, law: Any) -> tuple[Law | PointMasses, ...]:
        return (PointMasses.at(share, 0.0), Law(1.0 - share, law))

    return (
        Column("30% zeros, gamma(2)", "zero-inflated", "tune", (0.0, 100.0), zeros(0.3, stats.gamma(2, scale=10))),
        Column("60% zeros, exponential", "zero-inflated", "judge", (0.0, 60.0), zeros(0.6, stats.expon(scale=5))),
        Column("90% zeros, lognormal", "zero-inflated", "tune", (0.0, 100.0), zeros(0.9, stats.lognorm(0.8, scale=12))),
        Column("40% zeros, normal far away", "zero-inflated", "judge", (-10.0, 60.0), zeros(0.4, stats.norm(30, 5))),
    )


def _counts() -> tuple[Column, ...]:
    return (
        Column("Poisson(4)", "counts", "tune", (0.0, 30.0), _lattice(stats.poisson(4).pmf, 30), 1.0),
        Column("negative binomial(2)", "counts", "judge", (0.0, 120.0), _lattice(stats.nbinom(2, 0.1).pmf, 120), 1.0),
        Column("Poisson(200)", "counts", "judge", (0.0, 1000.0), _lattice(stats.poisson(200).pmf, 1000), 1.0),
        Column("geometric(0.02)", "counts", "tune", (0.0, 500.0), _lattice(stats.geom(0.02).pmf, 500), 1.0),
    )


def _walls() -> tuple[Column, ...]:
    both = (PointMasses.at(0.2, 0.0), PointMasses.at(0.15, 1.0), Law(0.65, stats.beta(2, 2)))
    return (
        Column("exponential in 0:10", "at walls", "tune", (0.0, 10.0), (Law(1.0, stats.expon()),)),
        Column("half-normal in 0:6", "at walls", "judge", (0.0, 6.0), (Law(1.0, stats.halfnorm()),)),
        Column("beta(0.5, 0.5)", "at walls", "judge", (0.0, 1.0), (Law(1.0, stats.arcsine()),)),
        Column("heaps at both walls", "at walls", "tune", (0.0, 1.0), both),
    )


def _spikes() -> tuple[Column, ...]:
    return (
        Column("spike at a wall, else empty", "spike", "tune", (0.0, 1.0), (Law(1.0, stats.halfnorm(scale=0.001)),)),
        Column("narrow spike, else empty", "spike", "judge", (0.0, 1.0), (_normal(1.0, 0.3713, 0.0008),)),
        Column("spike on uniform", "spike", "tune", (0.0, 1.0), (_flat(0.7, 0, 1), _normal(0.3, 0.6182, 0.001))),
        Column("heap on uniform", "spike", "judge", (0.0, 1.0), (_flat(0.8, 0, 1), PointMasses.at(0.2, 0.25))),
    )


def _modes() -> tuple[Column, ...]:
    three = (_normal(0.5, 20, 6), _normal(0.3, 50, 1.5), _normal(0.2, 75, 0.4))
    claw = (_normal(0.5, 0, 1), *(_normal(0.1, mean, 0.1) for mean in (-1.0, -0.5, 0.0, 0.5, 1.0)))
    comb = tuple(_normal(share, 6.0 * 0.62**j, 1.2 * 0.62**j) for j, share in enumerate((0.35, 0.25, 0.2, 0.12, 0.08)))
    return (
        Column("normal in -5:5", "multimodal", "tune", (-5.0, 5.0), (_normal(1.0, 0, 1),)),
        Column("three unequal normals", "multimodal", "tune", (0.0, 100.0), three),
        Column("claw", "multimodal", "judge", (-3.5, 3.5), claw),
        Column("comb of shrinking normals", "multimodal", "judge", (0.0, 12.0), comb),
        Column(
            "two equal normals", "multimodal", "tune", (0.0, 1.0), (_normal(0.5, 0.3, 0.05), _normal(0.5, 0.7, 0.05))
        ),
        Column("normal in 0:100, off the middle", "multimodal", "judge", (0.0, 100.0), (_normal(1.0, 62, 9),)),
    )


def _edges() -> tuple[Column, ...]:
    saw = tuple(_ramp(0.2, left, left + 0.2) for left in (0.0, 0.2, 0.4, 0.6, 0.8))
    return (
        Column("uniform", "flat and edged", "judge", (0.0, 1.0), (_flat(1.0, 0, 1),)),
        Column("steps", "flat and edged", "tune", (0.0, 1.0), (_blocks((1.0, 4.0, 0.5, 3.0, 0.0, 2.0, 6.0), 0, 1),)),
        Column("ramp", "flat and edged", "tune", (0.0, 1.0), (_ramp(1.0, 0, 1),)),
        Column("sawtooth", "flat and edged", "judge", (0.0, 1.0), saw),
        Column("gap in the middle", "flat and edged", "tune", (0.0, 1.0), (_flat(0.6, 0, 0.4), _flat(0.4, 0.65, 1))),
        Column(
            "two narrow blocks", "flat and edged", "judge", (0.0, 1.0), (_flat(0.5, 0.21, 0.23), _flat(0.5, 0.7, 0.75))
        ),
    )


def _wide() -> tuple[Column, ...]:
    one = (Law(1.0, stats.lognorm(0.5, scale=3)),)
    two = (_normal(0.6, 0.801, 0.001), _normal(0.4, 0.807, 0.0005))
    return (
        Column("lognormal in 1% of the box", "wide box", "tune", (0.0, 1000.0), one),
        Column("normal in 0.01% of the box", "wide box", "judge", (-1e6, 1e6), (_normal(1.0, 40, 33),)),
        Column("exponential in 0.01% of the box", "wide box", "tune", (0.0, 1e6), (Law(1.0, stats.expon(scale=33)),)),
        Column("two normals in 1% of the box", "wide box", "judge", (0.0, 1.0), two),
    )


def _few() -> tuple[Column, ...]:
    tenths = PointMasses.lattice(0.5, stats.norm.pdf(np.arange(11.0), 6, 2))
    answers = PointMasses.lattice(1.0, np.array([0.80, 0.17, 0.03]))
    grades = PointMasses.lattice(1.0, np.array([0.05, 0.09, 0.21, 0.40, 0.25]), low=1.0)
    eighths = PointMasses(0.3, np.arange(8.0, 33.0) / 8, np.full(25, 0.04))
    return (
        Column("whole numbers and normal", "few values", "judge", (0.0, 10.0), (tenths, _normal(0.5, 4, 1.5))),
        Column("eighths and gamma", "few values", "tune", (0.0, 8.0), (eighths, Law(0.7, stats.gamma(4, scale=0.6)))),
        Column("two values", "few values", "tune", (0.0, 1.0), (PointMasses.at(0.7, 0.3), PointMasses.at(0.3, 0.8))),
        Column("constant", "few values", "judge", (0.0, 10.0), (PointMasses.at(1.0, 5.1),)),
        Column("yes, no or unknown", "few values", "judge", (0.0, 2.0), (answers,), 1.0),
        Column("five grades", "few values", "tune", (1.0, 5.0), (grades,), 1.0),
    )


COLUMNS: tuple[Column, ...] = (
    *_skewed(), *_heavy(), *_heaped(), *_zeros(), *_counts(), *_walls(), *_spikes(), *_modes(), *_edges(), *_wide(),
    *_few(),
)  # fmt: skip
"""Every made column."""


def column_named(name: str) -> Column:
    """Find a made column by its name."""
    found = [column for column in COLUMNS if column.name == name]
    if not found:
        raise KeyError(f"no made column is called {name!r}")
    return found[0]
