"""Methods that publish a density: the baselines of the research package, and fogline.

A method is a function ``(records, bounds, steps, epsilon, seed)`` whose result has ``cell_masses(resolution)``: masses
of equal cells of the box. A baseline is a family (one idea) at one of several resolutions and readings, so that a
family can be given the best of them in hindsight.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fogline_research.baselines.grids import adaptive_grid, uniform_grid
from fogline_research.baselines.hierarchies import hierarchical_histogram
from fogline_research.baselines.histograms import (
    COUNT_SHARE,
    FEW_CELLS,
    flat_histogram,
    monotone_cdf,
    positive_part,
    simplex_projection,
    smooth_histogram,
)
from fogline_research.baselines.leaves import LEAVES, Leaves
from fogline_research.baselines.partitions import partition_histogram
from fogline_research.baselines.quantiles import cells_of_quantiles, recursive_quantiles

__all__ = ["METHODS", "Answer", "Baseline", "Method", "Sample", "baselines"]

Array = NDArray[np.float64]
Bounds = Sequence[tuple[float, float]]
Steps = Sequence[float | None] | None


class Answer(Protocol):
    """What a method gives back."""

    def cell_masses(self, resolution: int) -> Array:
        """Masses of equal cells, `resolution` per axis."""
        ...


Method = Callable[[Array, Bounds, Steps, float, int], Answer]


@dataclass(frozen=True, eq=False)
class Sample:
    """Records of one run and what the baselines share of them."""

    records: Array
    bounds: Bounds
    steps: Steps

    @functools.cached_property
    def leaves(self) -> Leaves:
        """Public leaves."""
        return Leaves(self.bounds, self.steps)

    @functools.cached_property
    def ordered(self) -> Array:
        """First column, in order."""
        return np.sort(self.records[:, 0])

    @functools.cached_property
    def counts(self) -> NDArray[np.int64]:
        """Exact counts of the leaves."""
        return self.leaves.counts(self.records)


@dataclass(frozen=True, eq=False)
class Baseline:
    """One family at one resolution: gives the masses of neutral cells."""

    family: str
    variant: str
    masses: Callable[[Sample, float, np.random.Generator, int], Array]
    private: bool = True

    @property
    def name(self) -> str:
        """Family and variant."""
        return f"{self.family}@{self.variant}"


Noisy = Callable[[NDArray[np.int64], float, np.random.Generator], Array]


def _clip(release: Noisy, sample: Sample, epsilon: float, rng: np.random.Generator, cells: int) -> Array:
    return sample.leaves.cell_masses(positive_part(release(sample.counts, epsilon, rng)), cells)


def _monotone(release: Noisy, sample: Sample, epsilon: float, rng: np.random.Generator, cells: int) -> Array:
    return sample.leaves.cell_masses(monotone_cdf(release(sample.counts, epsilon, rng)), cells)


def _simplex(
    release: Noisy, share: float, sample: Sample, epsilon: float, rng: np.random.Generator, cells: int
) -> Array:
    values = release(sample.counts, (1.0 - share) * epsilon, rng)
    total = sample.counts.sum() + rng.laplace(0.0, 1.0 / (share * epsilon)) if share else values.sum()
    return sample.leaves.cell_masses(simplex_projection(values, float(total)), cells)


def _readings(family: str, variant: str, release: Noisy, *, d: int, share: float = 0.0) -> list[Baseline]:
    """One release with every reading: positive part, projection on the simplex, in one column a rising cdf."""
    found = [
        Baseline(family, f"{variant}|clip", functools.partial(_clip, release)),
        Baseline(family, f"{variant}|simplex", functools.partial(_simplex, release, share)),
    ]
    if d == 1:
        found.append(Baseline(family, f"{variant}|monotone", functools.partial(_monotone, release)))
    return found


def _empirical(side: int, sample: Sample, epsilon: float, rng: np.random.Generator, cells: int) -> Array:
    del epsilon, rng
    return sample.leaves.cell_masses(smooth_histogram(sample.counts, side=side), cells)


def _quantiles(levels: int, sample: Sample, epsilon: float, rng: np.random.Generator, cells: int) -> Array:
    (low, high), step = sample.bounds[0], (sample.steps or (None,))[0]
    width = step or (high - low) / sample.leaves.shape[0]
    answers = recursive_quantiles(sample.records[:, 0], low, high, epsilon, rng, levels=levels, width=width)
    if step is None:
        return cells_of_quantiles(answers, low, high, cells)
    # the mass between two quantiles belongs to the values of the lattice: one cell per value, half a step to each side
    values = sample.leaves.values[0]
    lattice = cells_of_quantiles(answers, low - step / 2, low + (values - 0.5) * step, values)
    per_leaf = np.add.reduceat(lattice, np.arange(0, values, sample.leaves.together[0]))
    return sample.leaves.cell_masses(per_leaf, cells)


def _flat_baselines(d: int, sides: Sequence[int]) -> list[Baseline]:
    found: list[Baseline] = []
    for side in sides:
        share = 0.0 if side**d <= FEW_CELLS else COUNT_SHARE
        flat = functools.partial(flat_histogram, side=side)
        found += _readings("laplace", str(side), flat, d=d, share=share)
        whole = functools.partial(flat_histogram, side=side, noise="geometric")
        found += _readings("geometric", str(side), whole, d=d, share=share)
        found.append(Baseline("smoother", str(side), functools.partial(_empirical, side), private=False))
    return found


def _tree_baselines(d: int, family: str, side: int, branching: int | None = None) -> list[Baseline]:
    label = f"{side}" if branching is None else f"{side}/{branching}"
    release = functools.partial(hierarchical_histogram, side=side, branching=branching)
    down = functools.partial(release, nonnegative=True)
    found = _readings(family, label, release, d=d)
    return [*found, Baseline(family, f"{label}|down", functools.partial(_clip, down))]


def _bucket_baselines(d: int, side: int) -> list[Baseline]:
    found: list[Baseline] = []
    for tree in (False, True):
        release = functools.partial(partition_histogram, side=side, tree=tree)
        found += _readings("dawa", f"{side}{'+tree' if tree else ''}", release, d=d)
    return found


def _column_baselines() -> list[Baseline]:
    found = _flat_baselines(1, (16, 32, 64, 128, 256, 512, 1024, 2048, 4096))
    for side in (256, 1024, 4096):
        found += [*_tree_baselines(1, "hb", side), *_bucket_baselines(1, side)]
    found += [Baseline("aq", str(2**levels - 1), functools.partial(_quantiles, levels)) for levels in (4, 6, 8)]
    return found


def _joint_baselines(d: int) -> list[Baseline]:
    found = _flat_baselines(d, (4, 8, 16, 32, 64, 128, 256) if d == 2 else (2, 4, 8, 16, 32, 64))
    for side in (64, 256) if d == 2 else (16, 64):
        for branching in (4, 8) if d == 2 else (4,):
            found += _tree_baselines(d, "hb", side, branching)
        found += _tree_baselines(d, "quadtree", side, 2)
    for side in (32, 64, 128, 256) if d == 2 else (16, 32, 64):
        found += _bucket_baselines(d, side)
    found += _readings("uniform grid", "rule", uniform_grid, d=d)
    return [*found, *_readings("adaptive grid", "rule", adaptive_grid, d=d)]


@functools.cache
def baselines(d: int) -> tuple[Baseline, ...]:
    """All baselines for this number of columns; "limit" is the empirical distribution itself."""
    found = _column_baselines() if d == 1 else _joint_baselines(d)
    return (*found, Baseline("limit", "leaves", functools.partial(_empirical, LEAVES[d]), private=False))


# -- fogline --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Kernel:
    """Today's Fourier release, read with its kernel: positive part, scaled to sum 1."""

    density: Any
    bounds: Bounds

    def cell_masses(self, resolution: int) -> Array:
        d = len(self.bounds)
        fine = 2 * resolution if d == 2 else resolution  # cells of three columns are wide and its kernel wider
        axes = [low + (high - low) * (np.arange(fine) + 0.5) / fine for low, high in self.bounds]
        nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        masses = positive_part(np.asarray(self.density.pdf(nodes))).reshape((fine,) * d)
        for axis in range(d if fine > resolution else 0):
            masses = np.add.reduceat(masses, np.arange(0, fine, 2), axis=axis)
        return masses


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The leaf release, read by its posterior."""

    posterior: Any
    bounds: Bounds

    def cell_masses(self, resolution: int) -> Array:
        masses = np.asarray(self.posterior.masses().estimate, dtype=np.float64)
        for axis, column in enumerate(self.posterior.axes):
            shares = _shares_of_cells(column, resolution)
            masses = np.moveaxis(np.tensordot(masses, shares, (axis, 0)), -1, axis)
        return positive_part(masses)


def _shares_of_cells(column: Any, resolution: int) -> Array:
    """Share of each leaf in each of equal cells of the bounds; values of a lattice lie in one cell each."""
    low, high = column.bounds
    leaves = len(column.centres)
    per_leaf = max(1, round(column.width / column.step)) if column.step else max(1, resolution // leaves)
    first = column.first(np.arange(leaves))
    if column.step:
        places = first[:, None] + column.step * np.arange(per_leaf)
    else:
        places = first[:, None] + column.width * (np.arange(per_leaf) + 0.5) / per_leaf
    cells = np.clip(((places - low) / (high - low) * resolution).astype(np.int64), 0, resolution - 1)
    shares = np.zeros((leaves, resolution))
    np.add.at(shares, (np.repeat(np.arange(leaves), per_leaf), cells.ravel()), 1.0 / per_leaf)
    return shares


def fourier(records: Array, bounds: Bounds, steps: Steps, epsilon: float, seed: int) -> Answer:
    """Fogline 0.2: Gaussian noise on Fourier coefficients, the kernel at its default bandwidth."""
    from fogline import DensitySketch
    from fogline.testing import seeded_noise

    sketch = DensitySketch(bounds, features="grid", steps=steps).update(records)
    with seeded_noise(seed):  # the same law as the operating system's, and the same again in the next run
        return _Kernel(sketch.release(epsilon=epsilon, delta=1e-6), bounds)


def fogline(records: Array, bounds: Bounds, steps: Steps, epsilon: float, seed: int) -> Answer:
    """The release on leaves, pure epsilon, read by the posterior."""
    from fogline import DensitySketch
    from fogline.testing import seeded_noise

    sketch = DensitySketch(bounds, features="leaves", steps=steps).update(records)
    with seeded_noise(seed):
        return _Posterior(sketch.release(epsilon=epsilon).posterior, bounds)


METHODS: dict[str, Method] = {"fogline": fogline, "fourier": fourier}
"""Methods that are not baselines, by name."""
