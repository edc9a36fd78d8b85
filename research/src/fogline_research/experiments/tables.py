"""Tables of the papers by name: which cells, methods and runs make each, short by default and in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fogline_research.experiments._shared import Progress
from fogline_research.experiments.clusters import METHODS, cluster_cells, reproduce_clusters
from fogline_research.experiments.hellinger import hellinger_cells, reproduce_hellinger
from fogline_research.experiments.modes import paper_cells, reproduce_modes
from fogline_research.experiments.regression import regression_cells, reproduce_regression

__all__ = ["TABLES", "PaperTable", "reproduce_table"]

RUNS = {"modes": 20, "regression": 20, "clusters": 20, "hellinger": 1000}
"""Runs that the papers report, by kind."""


@dataclass(frozen=True)
class PaperTable:
    """One table of a paper.

    Attributes
    ----------
    shows : str
        Which table it is, and what is in it.
    kind : {"modes", "regression", "clusters", "hellinger"}
        What its rows are.
    cells : callable
        Its cells, all of them.
    methods : tuple of str
        Those that the paper has, and the certified one.
    """

    shows: str
    kind: str
    cells: Callable[[], list[Any]]
    methods: tuple[str, ...]


def _modes(mixture: str) -> list[Any]:
    return [cell for cell in paper_cells() if cell.mixture == mixture]


def _regression(dataset: str) -> list[Any]:
    return [cell for cell in regression_cells() if cell.dataset == dataset]


def _clusters(datasets: Sequence[str]) -> list[Any]:
    return [cell for cell in cluster_cells() if cell.dataset in datasets]


def _at_epsilon_1(table: str) -> list[Any]:
    return [replace(cell, table=table) for cell in cluster_cells() if cell.epsilon == 1.0]


def _hellinger(table: str) -> list[Any]:
    return [cell for cell in hellinger_cells() if cell.table == table]


_PRIVATE = ("certified", "published", "dp_kmeans")

TABLES: dict[str, PaperTable] = {
    "main-1": PaperTable(
        "DP-GRAMS, table 1: clusters at epsilon 1", "clusters", partial(_at_epsilon_1, "main-1"), METHODS
    ),
    "supplement-1": PaperTable(
        "supplement, table 1: modes of four Gaussians",
        "modes",
        partial(_modes, "gaussian4"),
        ("certified", "published", "mean_shift"),
    ),
    "supplement-2": PaperTable(
        "supplement, table 2: modes of five t laws",
        "modes",
        partial(_modes, "t5"),
        ("certified", "published", "mean_shift"),
    ),
    "supplement-3": PaperTable(
        "supplement, table 3: regression, three components",
        "regression",
        partial(_regression, "three_component"),
        ("certified", "published"),
    ),
    "supplement-4": PaperTable(
        "supplement, table 4: regression, two sinusoids",
        "regression",
        partial(_regression, "sinusoidal"),
        ("certified", "published"),
    ),
    "supplement-5": PaperTable("supplement, table 5: Iris", "clusters", partial(_clusters, ("iris",)), _PRIVATE),
    "supplement-6": PaperTable("supplement, table 6: Digits", "clusters", partial(_clusters, ("digits",)), _PRIVATE),
    "supplement-7": PaperTable(
        "supplement, table 7: MNIST in 50 components", "clusters", partial(_clusters, ("mnist",)), _PRIVATE
    ),
    "supplement-8": PaperTable(
        "supplement, table 8: clusters at epsilon 1", "clusters", partial(_at_epsilon_1, "supplement-8"), METHODS
    ),
    **{
        f"e{number}": PaperTable(
            f"Hellinger, table E.{number}",
            "hellinger",
            partial(_hellinger, f"E.{number}"),
            ("certified", "published", "mle"),
        )
        for number in range(1, 21)
    },
}
"""By name, in the order of the papers."""

_ENGINES: dict[str, Callable[..., list[Any]]] = {
    "modes": reproduce_modes,
    "regression": reproduce_regression,
    "clusters": reproduce_clusters,
    "hellinger": reproduce_hellinger,
}


def reproduce_table(
    name: str,
    *,
    full: bool = False,
    runs: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """Rerun one table: its first and last cell with two runs, or all of it with as many as the paper has.

    Parameters
    ----------
    name : str
        Of `TABLES`.
    full : bool
    runs : int, optional
        Other than these.
    seed, progress
        As for the engines.

    Returns
    -------
    list
        Rows of the table's kind.

    Examples
    --------
    >>> {row.table for row in reproduce_table("e18", runs=1, seed=0)}
    {'E.18'}
    """
    if name not in TABLES:
        raise ValueError(f"name must be among {', '.join(TABLES)}, got {name!r}")
    table = TABLES[name]
    cells = table.cells()
    if not cells:
        raise ValueError(f"{name} needs MNIST: name the folder of its four packed files in FOGLINE_MNIST")
    if not full:
        cells = list(dict.fromkeys([cells[0], cells[-1]]))
    number = runs if runs is not None else RUNS[table.kind] if full else 2
    return _ENGINES[table.kind](runs=number, cells=cells, methods=table.methods, seed=seed, progress=progress)
