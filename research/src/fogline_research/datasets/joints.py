"""Made pairs and triples of columns: what a joint density release is judged on.

A joint is a sampler in a public box; records outside the box are drawn again. Its population is counted from four
million draws on the cells that are asked for, and kept in a folder (``FOGLINE_POPULATIONS``, by default among the
temporary files), under the check sum of the sampler's first records, so that an edited sampler is counted anew. Beside
a hundred thousand records such a population adds 1% to a sampling error.

Each kind of difficulty has joints in both halves, as in `fogline_research.datasets.columns`.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fogline_research.datasets.columns import Half, cell_of, generator

__all__ = ["JOINTS", "POPULATION_DRAWS", "Joint"]

Array = NDArray[np.float64]
Sampler = Callable[[int, np.random.Generator], Array]

POPULATION_DRAWS = 4_000_000
_CHUNK = 250_000
_MOST_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Joint:
    """One made pair or triple of columns.

    Attributes
    ----------
    name, kind : str
    half : {"tune", "judge"}
    bounds : tuple of (low, high)
    sampler : function (n, rng) -> array of shape (n, d)
        May leave the box.
    steps : tuple of float or None, optional
        Public rounding step per axis.

    Examples
    --------
    >>> square = Joint("square", "flat", "tune", ((0.0, 1.0),) * 2, lambda n, rng: rng.uniform(0, 2, (n, 2)))
    >>> records = square.draw(1000, np.random.default_rng(0))
    >>> records.shape, bool(records.max() <= 1.0)
    ((1000, 2), True)
    """

    name: str
    kind: str
    half: Half
    bounds: tuple[tuple[float, float], ...]
    sampler: Sampler
    steps: tuple[float | None, ...] | None = None
    atomic: bool = False
    _cache: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def d(self) -> int:
        """Number of axes."""
        return len(self.bounds)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n records in the box."""
        low, high = np.array(self.bounds).T
        kept, missing = [np.empty((0, self.d))], n
        for _ in range(_MOST_ROUNDS):
            rows = self.sampler(max(missing, 64), rng)
            rows = rows[((rows >= low) & (rows <= high)).all(axis=1)][:missing]
            kept.append(rows)
            missing -= len(rows)
            if not missing:
                return np.concatenate(kept)
        raise RuntimeError(f"the sampler of {self.name!r} hardly meets its box")

    def cell_masses(self, cells: int) -> Array:
        """Masses of equal cells of the box, counted from `POPULATION_DRAWS` draws."""
        if cells not in self._cache:
            self._cache[cells] = self._stored(cells)
        return self._cache[cells]

    def _stored(self, cells: int) -> Array:
        folder = Path(os.environ.get("FOGLINE_POPULATIONS") or Path(tempfile.gettempdir()) / "fogline_populations")
        check_sum = zlib.crc32(self.draw(1000, generator("check sum", self.name)).tobytes())
        path = folder / f"{zlib.crc32(self.name.encode()):08x}-{check_sum:08x}-{POPULATION_DRAWS}-{cells}.npy"
        if path.exists():
            return np.asarray(np.load(path, allow_pickle=False))
        masses = self._counted(cells)
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.npy")
        np.save(partial, masses)
        partial.replace(path)
        return masses

    def _counted(self, cells: int) -> Array:
        rng, total = generator("population", self.name), np.zeros(cells**self.d, dtype=np.int64)
        for _ in range(POPULATION_DRAWS // _CHUNK):
            rows, keys = self.draw(_CHUNK, rng), np.zeros(_CHUNK, dtype=np.int64)
            for axis, (low, high) in enumerate(self.bounds):
                keys = keys * cells + cell_of(rows[:, axis], low, high, cells)
            total += np.bincount(keys, minlength=total.size)
        return np.asarray((total / total.sum()).reshape((cells,) * self.d))


# -- parts of samplers ----------------------------------------------------------------------------------------------


def _normals(mean: tuple[float, ...], covariance: list[list[float]]) -> Sampler:
    root = np.linalg.cholesky(np.array(covariance))
    return lambda n, rng: np.array(mean) + rng.standard_normal((n, len(mean))) @ root.T


def _clusters(parts: Sequence[tuple[float, tuple[float, ...], tuple[float, ...]]]) -> Sampler:
    """Normals with (weight, mean, standard deviations); a weight that is left over is uniform in the unit box."""
    weights = [weight for weight, _, _ in parts]
    means, widths = (np.array([part[k] for part in parts]) for k in (1, 2))
    rest = max(0.0, 1.0 - sum(weights))

    def sample(n: int, rng: np.random.Generator) -> Array:
        which = rng.choice(len(parts) + 1, size=n, p=[*weights, rest])
        inner = np.minimum(which, len(parts) - 1)
        rows = means[inner] + widths[inner] * rng.standard_normal((n, means.shape[1]))
        return np.where((which == len(parts))[:, None], rng.random(rows.shape), rows)

    return sample


def _banana(n: int, rng: np.random.Generator) -> Array:
    x, y = rng.standard_normal((2, n))
    return np.stack([1.2 * x, 0.35 * y + 0.9 * x**2], axis=1)


def _ring(n: int, rng: np.random.Generator) -> Array:
    angle, radius = 2 * np.pi * rng.random(n), rng.normal(1.0, 0.05, n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _shell(n: int, rng: np.random.Generator) -> Array:
    way = rng.standard_normal((n, 3))
    return np.asarray(way / np.linalg.norm(way, axis=1, keepdims=True) * rng.normal(1.0, 0.06, (n, 1)))


def _round_some(x: Array, step: float, share: float, rng: np.random.Generator) -> Array:
    return np.where(rng.random(len(x)) < share, step * np.round(x / step), x)


def _skewed_heaped(n: int, rng: np.random.Generator) -> Array:
    gamma = rng.gamma(2.0, 3.0, n)
    ages = np.round(_round_some(np.round(rng.normal(45 + gamma, 16, n)), 5.0, 0.5, rng))
    return np.stack([gamma, ages], axis=1)


def _zeros_skewed(n: int, rng: np.random.Generator) -> Array:
    size = rng.lognormal(1.0, 0.7, n)
    return np.stack([np.where(rng.random(n) < 0.55, 0.0, rng.gamma(1.5, 2.0, n) * np.sqrt(size)), size], axis=1)


def _hospital(n: int, rng: np.random.Generator) -> Array:
    """Whole years of age and days of stay: the old stay longer, births are short, a fifth goes home the same day."""
    born = rng.random(n) < 0.1
    age = np.where(born, 0.0, np.round(rng.normal(np.where(rng.random(n) < 0.6, 70, 38), 13, n)))
    stay = rng.gamma(1.6, np.where(born, 1.2, 1.0 + np.maximum(age, 0.0) / 22), n)
    return np.stack([age, np.where(rng.random(n) < 0.2, 0.0, stay)], axis=1)


def _hospital_cost(n: int, rng: np.random.Generator) -> Array:
    rows = _hospital(n, rng)
    return np.column_stack([rows, np.exp(rng.normal(6.5 + 0.35 * np.sqrt(rows[:, 1]), 0.5))])


def _work(n: int, rng: np.random.Generator) -> Array:
    """Hours per week in whole numbers, most of them 40, and a wage that rises with them."""
    hours = np.where(rng.random(n) < 0.45, 40.0, np.round(rng.normal(36, 12, n)))
    return np.stack([hours, rng.lognormal(np.log(15 + 1.1 * np.clip(hours, 1, 80)), 0.5, n)], axis=1)


def _ridge(n: int, rng: np.random.Generator) -> Array:
    """A thin diagonal that is gathered at the walls."""
    x = rng.normal(0.5, 0.4, n)
    return np.clip(np.stack([x, x + rng.normal(0, 0.015, n)], axis=1), 0.0, 1.0)


def _spikes(side: int, d: int) -> Sampler:
    """Narrow normals on a grid, with unequal weights."""
    weights = np.random.default_rng(7).dirichlet(np.ones(side**d))
    middles = np.stack(np.meshgrid(*[(np.arange(side) + 0.37) / side] * d, indexing="ij"), axis=-1).reshape(-1, d)
    return lambda n, rng: middles[rng.choice(len(middles), n, p=weights)] + 0.004 * rng.standard_normal((n, d))


def _counts(n: int, rng: np.random.Generator) -> Array:
    rate = rng.gamma(1.5, 4.0, n)
    return np.stack([rng.poisson(rate), rng.poisson(0.5 * rate + 1.0)], axis=1).astype(np.float64)


def _checkers(n: int, rng: np.random.Generator) -> Array:
    row, column = rng.integers(0, 4, n), rng.integers(0, 2, n)
    return (np.stack([row, 2 * column + row % 2], axis=1) + rng.random((n, 2))) / 4


def _mixed_triple(n: int, rng: np.random.Generator) -> Array:
    rows = _skewed_heaped(n, rng)
    return np.column_stack([rows, np.where(rng.random(n) < 0.5, 0.0, rng.exponential(2 + rows[:, 0] / 3))])


def _heavy(n: int, rng: np.random.Generator) -> Array:
    return np.stack([rng.pareto(1.5, n), rng.standard_t(2, n)], axis=1)


def _heavy_together(n: int, rng: np.random.Generator) -> Array:
    scale = 1.0 / np.sqrt(rng.gamma(1.0, 1.0, (n, 1)))
    return np.asarray(scale * (rng.standard_normal((n, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])))


def _uniform(d: int) -> Sampler:
    return lambda n, rng: rng.random((n, d))


def _corner(d: int) -> Sampler:
    return lambda n, rng: rng.exponential(1.0, (n, d))


_UNIT2 = ((0.0, 1.0), (0.0, 1.0))
_UNIT3 = ((0.0, 1.0),) * 3
_THREE_CLUSTERS = [(0.5, (0.25, 0.3), (0.08, 0.06)), (0.3, (0.7, 0.65), (0.02, 0.03)), (0.2, (0.8, 0.2), (0.005, 0.01))]
_BACKGROUND = [(0.4, (0.3, 0.7), (0.05, 0.02)), (0.3, (0.6, 0.35), (0.01, 0.08))]
_TRIPLE_CLUSTERS = [
    (0.5, (0.3, 0.3, 0.4), (0.09, 0.07, 0.08)),
    (0.35, (0.7, 0.6, 0.7), (0.03, 0.04, 0.02)),
    (0.15, (0.8, 0.2, 0.2), (0.01, 0.02, 0.01)),
]
_PLANE = [[1.0, 0.5, 0.74], [0.5, 1.0, 0.74], [0.74, 0.74, 0.74]]


def _pairs() -> tuple[Joint, ...]:
    return (
        Joint(
            "correlated normals", "tilted", "tune", ((-4.0, 4.0),) * 2, _normals((0.0, 0.0), [[1.0, 0.8], [0.8, 1.0]])
        ),
        Joint(
            "thin tilted normal", "tilted", "judge", ((-4.0, 4.0),) * 2, _normals((0.3, 0.3), [[1, 0.995], [0.995, 1]])
        ),
        Joint("banana", "curved", "tune", ((-4.0, 4.0), (-2.0, 8.0)), _banana),
        Joint("ring", "curved", "judge", ((-1.5, 1.5),) * 2, _ring),
        Joint("three unequal clusters", "clusters", "judge", _UNIT2, _clusters(_THREE_CLUSTERS)),
        Joint("two clusters on uniform", "clusters", "tune", _UNIT2, _clusters(_BACKGROUND)),
        Joint("skewed and heaped", "mixed", "tune", ((0.0, 40.0), (0.0, 110.0)), _skewed_heaped, (None, 1.0)),
        Joint("zeros and skewed", "mixed", "judge", ((0.0, 40.0), (0.0, 30.0)), _zeros_skewed),
        Joint("independent heavy tails", "heavy-tailed", "judge", ((0.0, 50.0), (-30.0, 30.0)), _heavy),
        Joint("heavy tails together", "heavy-tailed", "tune", ((-30.0, 30.0),) * 2, _heavy_together),
        Joint("diagonal ridge at walls", "at walls", "tune", _UNIT2, _ridge),
        Joint("in the corner", "at walls", "judge", ((0.0, 12.0),) * 2, _corner(2)),
        Joint("age and stay", "two columns of a table", "judge", ((0.0, 110.0), (0.0, 60.0)), _hospital, (1.0, None)),
        Joint("hours and wage", "two columns of a table", "tune", ((0.0, 99.0), (0.0, 300.0)), _work, (1.0, None)),
        Joint("grid of spikes", "spikes and counts", "tune", _UNIT2, _spikes(5, 2)),
        Joint("two counts", "spikes and counts", "judge", ((0.0, 50.0), (0.0, 40.0)), _counts, (1.0, 1.0)),
        Joint("uniform square", "flat and edged", "judge", _UNIT2, _uniform(2)),
        Joint("checkers", "flat and edged", "tune", _UNIT2, _checkers),
        Joint(
            "normals in 1% of each axis", "wide box", "tune", _UNIT2, _clusters([(1.0, (0.31, 0.62), (0.002, 0.002))])
        ),
        Joint("narrow in one axis", "wide box", "judge", _UNIT2, _clusters([(1.0, (0.4, 0.5), (0.15, 0.002))])),
    )


def _triples() -> tuple[Joint, ...]:
    ball = _normals((0.0, 0.0, 0.0), [[1.0, 0.6, 0.3], [0.6, 1.0, 0.5], [0.3, 0.5, 1.0]])
    return (
        Joint("three correlated normals", "tilted", "tune", ((-4.0, 4.0),) * 3, ball),
        Joint("thin plane", "tilted", "judge", ((-4.0, 4.0),) * 3, _normals((0.0, 0.0, 0.0), _PLANE)),
        Joint("clusters in space", "clusters", "tune", _UNIT3, _clusters(_TRIPLE_CLUSTERS)),
        Joint("shell", "clusters", "judge", ((-1.4, 1.4),) * 3, _shell),
        Joint(
            "skewed, heaped and zeros", "mixed", "tune", ((0.0, 40.0), (0.0, 110.0), (0.0, 40.0)), _mixed_triple,
            (None, 1.0, None),
        ),
        Joint(
            "age, stay and cost", "mixed", "judge", ((0.0, 110.0), (0.0, 60.0), (0.0, 10_000.0)), _hospital_cost,
            (1.0, None, None),
        ),
        Joint("uniform cube", "flat and at walls", "judge", _UNIT3, _uniform(3)),
        Joint("in the corner of a cube", "flat and at walls", "tune", ((0.0, 10.0),) * 3, _corner(3)),
    )  # fmt: skip


JOINTS: tuple[Joint, ...] = (*_pairs(), *_triples())
"""Every made pair and triple."""
