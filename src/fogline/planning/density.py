r"""What the posterior of a release on leaves would know, before any budget is spent.

Nothing here has seen a private record. Data are drawn from a public guess of their shape and counted in the leaves that
the bounds imply; both stages of a release are made from the counts, with the budget's own division, partition and noise
scales; the posterior is read as after a real release. Only the noise comes from a seed, since it protects nobody.

An error is the root mean square over the runs of the posterior's own standard error, and has its three parts. With more
epsilon each part is made to fall, by the least squares fit among falling sequences, so that the luck of a simulation
never makes a plan advise to spend less in order to know more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fogline import _validation, units
from fogline._typing import BoundsLike, FloatArray, IntArray, StepsLike
from fogline.density.leaves import Boxes, BucketCounts, LeafRelease, LeafSpec, Noise
from fogline.density.partition import pilot_boxes, plan_partition
from fogline.density.posterior.estimates import Estimate
from fogline.density.posterior.posterior import Posterior
from fogline.density.spec import default_names
from fogline.planning.modes import MOST_RECORDS, SEED, tried_epsilons
from fogline.planning.scenarios import Shape, ShapeLike, width_of
from fogline.queries.exact_counts import exact_counts
from fogline.releases.leaf_release import plan_stages, settle_terms
from fogline.releases.terms import ReleaseTerms

__all__ = [
    "DensityAtEpsilon",
    "ErrorParts",
    "ExpectedDensity",
    "expected_density_error",
    "falling",
    "simulated_release",
]

RUNS = {1: 2, 2: 1, 3: 1}
"""Simulated releases per epsilon, by the number of columns."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles whose errors are predicted."""

BOXES = 10
"""Equal stretches of a column's range whose probabilities are asked for."""

HEAP = 3
"""A value that a public sample has this many times is a heap, and stays where it is when the sample is drawn again."""


@dataclass(frozen=True)
class ErrorParts:
    """Expected standard error of one number, and its parts."""

    privacy: float
    sampling: float
    smoothing: float

    @property
    def total(self) -> float:
        """All parts together.

        Examples
        --------
        >>> ErrorParts(3.0, 4.0, 0.0).total
        5.0
        """
        return float(np.sqrt(self.privacy**2 + self.sampling**2 + self.smoothing**2))


@dataclass(frozen=True)
class DensityAtEpsilon:
    """What to expect at one epsilon.

    Attributes
    ----------
    epsilon : float
    count_error : float
        Standard deviation of the privacy noise in the released count; neither sampling nor smoothing is in it.
    buckets : float
        Mean number of buckets of the partition.
    means, boxes : tuple of ErrorParts
        One per column: of its mean, and of the probability of a tenth of its range, root mean square over the tenths.
    quantiles : tuple of tuples of ErrorParts
        For each column, one per level of :attr:`ExpectedDensity.levels`.
    """

    epsilon: float
    count_error: float
    buckets: float
    means: tuple[ErrorParts, ...]
    boxes: tuple[ErrorParts, ...]
    quantiles: tuple[tuple[ErrorParts, ...], ...]


@dataclass(frozen=True, eq=False)
class ExpectedDensity:
    """What a release would know, by epsilon; free, and as good as the guess of the shape.

    Attributes
    ----------
    n : int
    shape : str
        The guess, in words.
    columns : tuple of str
    bounds : tuple of (float, float)
    delta : float
    neighbours : str
    levels : tuple of float
        Of the quantiles.
    runs : int
        Simulated releases per epsilon.
    rows : tuple of DensityAtEpsilon
    """

    n: int
    shape: str
    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    delta: float
    neighbours: str
    levels: tuple[float, ...]
    runs: int
    rows: tuple[DensityAtEpsilon, ...]

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilons, smallest first."""
        return tuple(row.epsilon for row in self.rows)

    def table(self) -> list[dict[str, Any]]:
        """Return one record for each epsilon and column; plain values."""
        return [self._record(row, j) for row in self.rows for j in range(len(self.columns))]

    def _record(self, row: DensityAtEpsilon, j: int) -> dict[str, Any]:
        told = zip(self.levels, row.quantiles[j], strict=True)
        return {
            "epsilon": row.epsilon,
            "column": self.columns[j],
            "count_error": row.count_error,
            "mean": _plain(row.means[j]),
            "quantiles": [{"level": level, **_plain(parts)} for level, parts in told],
            "box_probability": _plain(row.boxes[j]),
        }

    def __str__(self) -> str:
        heading = (
            f"Expected for {self.n} records, {self.shape}, delta {self.delta:g}, {self.neighbours} "
            f"({self.runs} simulated release{'' if self.runs == 1 else 's'} per epsilon; no data were touched)"
        )
        lines = [heading, f"{'epsilon':>8} {'column':>12} {'count':>8} {'mean':>10} {'median':>10} {'box':>8}"]
        for row in self.rows:
            for j, name in enumerate(self.columns):
                median = row.quantiles[j][self.levels.index(0.5)].total
                numbers = f"{row.count_error:8.3g} {row.means[j].total:10.3g} {median:10.3g} {row.boxes[j].total:8.2%}"
                lines.append(f"{row.epsilon:8.3g} {name:>12} {numbers}")
        return "\n".join(lines)


def expected_density_error(
    bounds: BoundsLike,
    n: int,
    *,
    shape: ShapeLike = None,
    epsilons: Sequence[float] | None = None,
    delta: float = 0.0,
    steps: StepsLike = None,
    columns: Sequence[str] | None = None,
    neighbours: str = "add-remove",
    max_contributions: int = 1,
    runs: int | None = None,
) -> ExpectedDensity:
    """Return what a release of n records in up to three columns would know, by epsilon. Free: no data are touched.

    Parameters
    ----------
    bounds : array-like of shape (d, 2), list or mapping
        Public range of each column, as :func:`fogline.units.resolve_bounds` takes it.
    n : int
        Number of records, as you guess it.
    shape : "uniform", Mixture or array of shape (m, d), optional
        A guess of the density: even over the bounds (the default), a mixture, or a *public* sample that looks like the
        data. Never the data.
    epsilons : sequence of float, optional
        By default a few from 0.1 to 5.
    delta : float
        0 for a pure promise.
    steps : None, float or list
        Public rounding step of each column.
    columns : sequence of str, optional
        Names of the columns.
    neighbours, max_contributions
        As for :class:`fogline.PrivateModes`.
    runs : int, optional
        Simulated releases per epsilon; by default two for one column, else one.

    Returns
    -------
    ExpectedDensity

    Examples
    --------
    >>> from fogline.datasets.simulated import Mixture
    >>> guess = Mixture.of([0.6, 0.4], [[30.0], [65.0]], [6.0, 9.0])
    >>> expected = expected_density_error({"age": "age"}, 2000, shape=guess, epsilons=[0.1, 1.0], runs=1)
    >>> few, many = (row.means[0].total for row in expected.rows)
    >>> few > many > 0
    True
    """
    size = _validation.check_count(n, "n")
    if size > MOST_RECORDS:
        raise ValueError(f"n must be at most {MOST_RECORDS}: with more records errors only shrink, got {n}")
    width = width_of(shape)
    box = units.resolve_bounds(bounds, columns, width=width)
    if width is not None and width != len(box):
        raise ValueError(f"shape has {width} columns, but bounds has {len(box)} pairs")
    spec = LeafSpec.plan(box, steps)
    tried = tried_epsilons(epsilons, None)
    terms = [
        settle_terms(spec, ReleaseTerms.checked(each, delta, neighbours, max_contributions, allow_pure=True))
        for each in tried
    ]
    repeats = RUNS[spec.d] if runs is None else _validation.check_count(runs, "runs")
    words, draw = _guess(shape, spec)
    rows = (draw(size, np.random.default_rng([SEED, run, 0])) for run in range(repeats))
    simulated = [_run(spec, terms, drawn, [SEED, run, 1]) for run, drawn in enumerate(rows)]
    return ExpectedDensity(
        n=size,
        shape=words,
        columns=units.bounded_names(bounds, columns) or default_names(spec.d),
        bounds=tuple((float(low), float(high)) for low, high in spec.bounds),
        delta=float(delta),
        neighbours=_validation.check_neighbours(neighbours),
        levels=LEVELS,
        runs=repeats,
        rows=_rows(tried, simulated, spec.d),
    )


# -- one release --------------------------------------------------------------------------------------------------


def simulated_release(spec: LeafSpec, table: IntArray, terms: ReleaseTerms, rng: np.random.Generator) -> LeafRelease:
    """Both stages of a release of a table of leaves, as :mod:`fogline.releases.leaf_release` makes them.

    The noise has the same law, from a generator: good for planning, and no protection at all.
    """
    pilot, counts = plan_stages(spec, terms)
    first = _noisy(table, pilot_boxes(spec), pilot.noise, rng)
    return LeafRelease(spec, first, _noisy(table, plan_partition(spec, first, counts.noise), counts.noise, rng))


def _noisy(table: IntArray, boxes: Boxes, noise: Noise, rng: np.random.Generator) -> BucketCounts:
    total = np.zeros(tuple(side + 1 for side in table.shape), dtype=np.int64)
    total[tuple(slice(1, None) for _ in table.shape)] = table
    for axis in range(table.ndim):
        total = total.cumsum(axis=axis)
    exact = np.zeros(len(boxes), dtype=np.int64)
    # inclusion and exclusion over the corners of each box
    for corner in np.ndindex(*(2,) * table.ndim):
        place = tuple(boxes[:, axis, end] for axis, end in enumerate(corner))
        exact += (-1) ** (table.ndim - sum(corner)) * total[place]
    return BucketCounts(boxes, exact + _draws(noise, len(boxes), rng), noise)


def _draws(noise: Noise, size: int, rng: np.random.Generator) -> IntArray:
    if noise.kind == "laplace":  # the difference of two geometric numbers
        chance = -np.expm1(-1 / noise.scale)
        return np.asarray(rng.geometric(chance, size) - rng.geometric(chance, size), dtype=np.int64)
    return np.asarray(np.rint(noise.scale * rng.standard_normal(size)), dtype=np.int64)


def _run(spec: LeafSpec, terms: Sequence[ReleaseTerms], rows: FloatArray, seed: Sequence[int]) -> list[FloatArray]:
    """Variances at each epsilon: for each column those of its numbers, in three parts; the count's and buckets last."""
    counted = exact_counts(spec)
    counted.add_rows(rows)
    table = np.asarray(counted.table()).reshape(spec.leaves)
    found = []
    for each in terms:
        # the same coins at every epsilon, so that rows can be compared
        release = simulated_release(spec, table, each, np.random.default_rng(seed))
        posterior = Posterior.of_leaves(release)
        parts = [variance for j in range(spec.d) for variance in _variances(posterior, j, spec.bounds[j])]
        found.append(np.array([*np.ravel(parts), release.total_sd**2, len(release.counts.counts)]))
    return found


def _variances(posterior: Posterior, j: int, bounds: tuple[float, float]) -> list[list[float]]:
    """Squared parts of the errors of a column's mean, boxes and quantiles."""
    edges = np.linspace(*bounds, BOXES + 1)
    margin = posterior.marginal(j)
    boxes = [margin.probability([(float(low), float(high))]) for low, high in pairwise(edges)]
    quantiles = margin.quantile(LEVELS)
    shares = np.mean([_squares(box) for box in boxes], axis=0).tolist()
    return [_squares(margin.mean()), shares, *(_squares(quantiles[k]) for k in range(len(LEVELS)))]


def _squares(estimate: Estimate) -> list[float]:
    return [float(part) ** 2 for part in (estimate.privacy, estimate.sampling, estimate.smoothing)]


def _rows(tried: Sequence[float], simulated: Sequence[Sequence[FloatArray]], d: int) -> tuple[DensityAtEpsilon, ...]:
    means = np.mean(np.array(simulated), axis=0)  # (epsilons, numbers)
    errors = np.sqrt(np.stack([falling(column) for column in means[:, :-1].T], axis=1))
    rows = []
    for k, epsilon in enumerate(tried):
        columns = errors[k, :-1].reshape(d, 2 + len(LEVELS), 3)
        parts = [[ErrorParts(*numbers) for numbers in column] for column in columns.tolist()]
        rows.append(
            DensityAtEpsilon(
                epsilon=float(epsilon),
                count_error=float(errors[k, -1]),
                buckets=float(means[k, -1]),
                means=tuple(part[0] for part in parts),
                boxes=tuple(part[1] for part in parts),
                quantiles=tuple(tuple(part[2:]) for part in parts),
            )
        )
    return tuple(rows)


def falling(values: FloatArray) -> FloatArray:
    """The falling sequence nearest to some values, by pooling neighbours that rise.

    Examples
    --------
    >>> falling(np.array([5.0, 2.0, 4.0, 1.0])).tolist()
    [5.0, 3.0, 3.0, 1.0]
    """
    blocks: list[list[float]] = []
    for value in values.tolist():
        blocks.append([value, 1.0])
        while len(blocks) > 1 and blocks[-1][0] > blocks[-2][0]:
            (last, weight), (before, other) = blocks.pop(), blocks.pop()
            blocks.append([(last * weight + before * other) / (weight + other), weight + other])
    return np.concatenate([np.full(int(weight), value) for value, weight in blocks])


def _plain(parts: ErrorParts) -> dict[str, float]:
    named = {"privacy": parts.privacy, "sampling": parts.sampling, "smoothing": parts.smoothing}
    return {"standard_error": parts.total, **named}


# -- the guess ----------------------------------------------------------------------------------------------------


def _guess(shape: ShapeLike, spec: LeafSpec) -> tuple[str, Any]:
    """The guess in words, and how to draw records from it."""
    if shape is None or (isinstance(shape, str) and shape == "uniform"):
        return "no shape (uniform)", lambda n, rng: rng.uniform(spec.lower, spec.upper, (n, spec.d))
    if isinstance(shape, str):
        raise ValueError(f"shape must be 'uniform', a mixture or a public sample, got {shape!r}")
    if isinstance(shape, Shape):
        mixture, parts = shape, len(shape.centers)
        return f"a mixture of {parts} part{'' if parts == 1 else 's'}", lambda n, rng: mixture.sample(n, rng)[0]
    try:
        rows = np.asarray(shape, dtype=np.float64).reshape(-1, spec.d)
    except (TypeError, ValueError):
        raise ValueError("shape must be 'uniform', a mixture or an array of numbers, one row per record") from None
    rows = rows[np.all((rows >= spec.lower) & (rows <= spec.upper), axis=1)]
    if len(rows) < 2:
        raise ValueError("shape: a public sample needs at least two rows within the bounds")
    blurs = np.stack([_blur(column) for column in rows.T], axis=1)

    def draw(n: int, rng: np.random.Generator) -> FloatArray:
        chosen = rng.integers(len(rows), size=n)
        moved = rows[chosen] + blurs[chosen] * rng.standard_normal((n, spec.d))
        return np.asarray(np.clip(moved, spec.lower, spec.upper))

    return f"like a public sample of {len(rows)} rows", draw


def _blur(column: FloatArray) -> FloatArray:
    """How far each value of a public sample is moved when it is drawn again; heaps stay where they are.

    Drawn again exactly, a small sample would show each of its rows as a spike.
    """
    _, place, times = np.unique(column, return_inverse=True, return_counts=True)
    quartiles = np.quantile(column, [0.25, 0.75])
    spread = min(float(column.std()), float(quartiles[1] - quartiles[0]) / 1.34) or float(column.std())
    return np.where(times[place] >= HEAP, 0.0, 0.9 * spread * len(column) ** -0.2)
