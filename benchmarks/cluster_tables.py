"""Tables with known groups, made and real, for studies of readings: one half to tune on, the other to judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs, make_moons

from fogline.datasets.tables import load_faithful

__all__ = ["KINDS", "GroupedTable", "Kind"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """Records, their groups and public bounds."""

    X: FloatArray
    groups: NDArray[np.int64]
    bounds: list[tuple[float, float]]
    steps: list[float | None] | None = None

    @property
    def k(self) -> int:
        """Number of groups."""
        return len(np.unique(self.groups))


@dataclass(frozen=True)
class Kind:
    """One kind of table: how it is made, whether it is tuned on, and whether its size is fixed."""

    make: Callable[[np.random.Generator, int], GroupedTable]
    half: str
    real: bool = False


def _table(parts: list[FloatArray], bounds: Any, steps: Any = None) -> GroupedTable:
    X = np.concatenate(parts)
    groups = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return GroupedTable(X, groups, list(bounds), steps)


def _sizes(n: int, *shares: float) -> list[int]:
    return [max(2, round(n * share)) for share in shares]


def _two(rng: np.random.Generator, n: int) -> GroupedTable:
    a, b = _sizes(n, 0.5, 0.5)
    return _table([rng.normal((3, 3), 1, (a, 2)), rng.normal((7, 6), 1, (b, 2))], [(0, 10), (0, 10)])


def _three_widths(rng: np.random.Generator, n: int) -> GroupedTable:
    a, b, c = _sizes(n, 0.6, 0.3, 0.1)
    parts = [rng.normal((20, 400), (6, 90), (a, 2)), rng.normal((60, 700), (3, 30), (b, 2)),
             rng.normal((75, 200), (2, 60), (c, 2))]  # fmt: skip
    return _table(parts, [(0, 100), (0, 1500)])


def _moons(rng: np.random.Generator, n: int) -> GroupedTable:
    X, y = make_moons(n, noise=0.08, random_state=int(rng.integers(2**31)))
    return GroupedTable(X * 4, y, [(-12, 12), (-12, 12)])


def _skewed(rng: np.random.Generator, n: int) -> GroupedTable:
    a, b = _sizes(n, 0.6, 0.4)
    first = np.column_stack([rng.gamma(2, 2, a), rng.gamma(3, 5, a)])
    second = np.column_stack([18 + rng.gamma(2, 1.5, b), 20 + rng.gamma(2, 6, b)])
    return _table([first, second], [(0, 40), (0, 100)])


def _five(rng: np.random.Generator, n: int) -> GroupedTable:
    centres = [(2, 2), (2, 8), (8, 2), (8, 8), (5, 5)]
    return _table([rng.normal(c, 0.7, (n // 5, 2)) for c in centres], [(0, 10), (0, 10)])


def _one_column(rng: np.random.Generator, n: int) -> GroupedTable:
    a, b, c = _sizes(n, 0.5, 0.3, 0.2)
    parts = [rng.normal(10, 2, (a, 1)), rng.normal(22, 3, (b, 1)), rng.normal(40, 1, (c, 1))]
    return _table(parts, [(0, 60)])


def _noisy(rng: np.random.Generator, n: int) -> GroupedTable:
    a, b, c = _sizes(n, 0.4, 0.3, 0.3)
    parts = [np.concatenate([rng.normal((3, 7), 0.6, (a, 2)), rng.uniform(0, 10, (n // 8, 2))]),
             rng.normal((7, 7), 0.6, (b, 2)), rng.normal((5, 2), 0.6, (c, 2))]  # fmt: skip
    return _table(parts, [(0, 10), (0, 10)])


def _faithful(rng: np.random.Generator, n: int) -> GroupedTable:  # noqa: ARG001
    table = load_faithful()
    return GroupedTable(table.X, (table.X[:, 0] > 3.1).astype(np.int64), list(table.bounds), list(table.steps))


def _wine(rng: np.random.Generator, n: int) -> GroupedTable:  # noqa: ARG001
    table = load_wine()
    return GroupedTable(table.data[:, [6, 9]], table.target, [(0, 6), (0, 15)])


# -- the half that is judged on -------------------------------------------------------------------------------


def _four_skewed(rng: np.random.Generator, n: int) -> GroupedTable:
    a, b, c, e = _sizes(n, 0.4, 0.3, 0.2, 0.1)
    parts = [
        np.column_stack([rng.lognormal(1, 0.4, a), rng.normal(3000, 300, a)]),
        np.column_stack([12 + rng.gamma(3, 1, b), 4000 + rng.gamma(2, 300, b)]),
        np.column_stack([rng.normal(10, 1.5, c), rng.normal(1200, 250, c)]),
        np.column_stack([24 - rng.gamma(2, 0.6, e), rng.normal(1500, 200, e)]),
    ]
    return _table(parts, [(0, 30), (0, 9000)])


def _blobs(spread: Any, turn: bool) -> Callable[[np.random.Generator, int], GroupedTable]:
    def make(rng: np.random.Generator, n: int) -> GroupedTable:
        centres = [(-6.0, -4.0), (0.0, 5.0), (6.0, -2.0)]
        X, y = make_blobs(n, centers=centres, cluster_std=spread, random_state=int(rng.integers(2**31)))
        X = X @ np.array([[0.6, -0.6], [-0.4, 0.8]]) if turn else X
        return GroupedTable(X, y, [(-12, 12), (-12, 12)])

    return make


def _zeros(rng: np.random.Generator, n: int) -> GroupedTable:
    a, b, c = _sizes(n, 0.3, 0.4, 0.3)
    parts = [np.column_stack([rng.normal(30, 8, a), np.zeros(a)]),
             np.column_stack([rng.normal(35, 9, b), rng.normal(25, 5, b)]),
             np.column_stack([rng.normal(70, 7, c), rng.normal(40, 6, c)])]  # fmt: skip
    return _table(parts, [(0, 100), (0, 80)])


def _wall(rng: np.random.Generator, n: int) -> GroupedTable:
    a, b = _sizes(n, 0.6, 0.4)
    first = np.column_stack([rng.exponential(4, a), rng.exponential(6, a)])
    return _table([first, rng.normal((30, 40), (4, 5), (b, 2))], [(0, 60), (0, 80)])


def _five_in_three(rng: np.random.Generator, n: int) -> GroupedTable:
    centres = [(2, 2, 2), (2, 8, 5), (8, 2, 8), (8, 8, 2), (5, 5, 8)]
    shares = (0.3, 0.25, 0.2, 0.15, 0.1)
    parts = [rng.normal(c, s, (round(n * share), 3)) for c, s, share in
             zip(centres, (0.6, 0.9, 0.7, 1.0, 0.5), shares, strict=True)]  # fmt: skip
    return _table(parts, [(0, 10)] * 3)


def _two_skewed_column(rng: np.random.Generator, n: int) -> GroupedTable:
    a, b = _sizes(n, 0.7, 0.3)
    return _table([rng.gamma(2, 2, (a, 1)), 30 + rng.gamma(4, 1.5, (b, 1))], [(0, 80)])


def _iris(rng: np.random.Generator, n: int) -> GroupedTable:  # noqa: ARG001
    table = load_iris()
    return GroupedTable(table.data[:, [0, 2]], table.target, [(3, 9), (0, 8)])


def _iris_petals(rng: np.random.Generator, n: int) -> GroupedTable:  # noqa: ARG001
    table = load_iris()
    return GroupedTable(table.data[:, [2, 3]], table.target, [(0, 8), (0, 3)])


def _wine_alcohol(rng: np.random.Generator, n: int) -> GroupedTable:  # noqa: ARG001
    table = load_wine()
    return GroupedTable(table.data[:, [0, 12]], table.target, [(10, 16), (0, 2000)])


def _tumour_edges(rng: np.random.Generator, n: int) -> GroupedTable:  # noqa: ARG001
    table = load_breast_cancer()
    return GroupedTable(table.data[:, [2, 7]], table.target, [(0, 250), (0, 0.25)])


def _penguins(rng: np.random.Generator, n: int) -> GroupedTable:  # noqa: ARG001
    """Bill length and flipper length of three species: means, deviations and correlations as published, 342 birds."""
    parts = []
    for size, mean, sd, r in ((151, (38.8, 190.0), (2.66, 6.5), 0.33), (68, (48.8, 195.8), (3.34, 7.1), 0.47),
                              (123, (47.5, 217.2), (3.08, 6.5), 0.66)):  # fmt: skip
        cov = np.array([[sd[0] ** 2, r * sd[0] * sd[1]], [r * sd[0] * sd[1], sd[1] ** 2]])
        parts.append(rng.multivariate_normal(mean, cov, size))
    return _table(parts, [(20, 70), (150, 250)])


def _tumours(rng: np.random.Generator, n: int) -> GroupedTable:  # noqa: ARG001
    table = load_breast_cancer()
    return GroupedTable(table.data[:, [20, 27]], table.target, [(0, 40), (0, 0.4)])


def _digits(*wanted: int) -> Callable[[np.random.Generator, int], GroupedTable]:
    """Handwritten digits by two sums of pixels that do not come from the data: ink in the middle, upper less lower."""

    def make(rng: np.random.Generator, n: int) -> GroupedTable:  # noqa: ARG001
        table = load_digits()
        own = np.isin(table.target, wanted)
        pixels = table.images[own]
        middle = pixels[:, 2:6, 3:5].sum(axis=(1, 2))
        tilt = pixels[:, :4, 4:].sum(axis=(1, 2)) - pixels[:, 4:, 4:].sum(axis=(1, 2))
        return GroupedTable(np.column_stack([middle, tilt]), table.target[own], [(0, 128), (-128, 128)], [1.0, 1.0])

    return make


KINDS: dict[str, Kind] = {
    "two": Kind(_two, "tune"),
    "three widths": Kind(_three_widths, "tune"),
    "moons": Kind(_moons, "tune"),
    "two skewed": Kind(_skewed, "tune"),
    "five": Kind(_five, "tune"),
    "three in noise": Kind(_noisy, "tune"),
    "one column": Kind(_one_column, "tune"),
    "geyser": Kind(_faithful, "tune", real=True),
    "wine": Kind(_wine, "tune", real=True),
    "four skewed": Kind(_four_skewed, "tune"),
    "tilted": Kind(_blobs(1.0, turn=True), "tune"),
    "varied": Kind(_blobs([1.0, 2.5, 0.5], turn=False), "judge"),
    "zeros": Kind(_zeros, "judge"),
    "wall": Kind(_wall, "judge"),
    "one skewed column": Kind(_two_skewed_column, "judge"),
    "five in three columns": Kind(_five_in_three, "judge"),
    "iris": Kind(_iris, "judge", real=True),
    "penguins": Kind(_penguins, "judge", real=True),
    "tumours": Kind(_tumours, "judge", real=True),
    "digits 0 1 7": Kind(_digits(0, 1, 7), "judge", real=True),
    "digits 0 6": Kind(_digits(0, 6), "judge", real=True),
    "iris petals": Kind(_iris_petals, "judge", real=True),
    "wine, alcohol": Kind(_wine_alcohol, "judge", real=True),
    "tumour edges": Kind(_tumour_edges, "judge", real=True),
}
