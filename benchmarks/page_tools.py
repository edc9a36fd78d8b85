"""What the parts of the page share: rows in cells, medians, plots."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from common import RESULTS

__all__ = ["Cells", "Rows", "grouped", "median_of", "plots", "saved"]

Rows = list[dict[str, str]]
Cells = dict[tuple[str, ...], Rows]


def grouped(rows: Rows, *names: str) -> Cells:
    """Rows with the same values of some columns together."""
    cells: Cells = {}
    for row in rows:
        cells.setdefault(tuple(row[name] for name in names), []).append(row)
    return cells


def median_of(rows: Rows, name: str) -> float:
    """Median of a column; nan where nothing was measured."""
    return median(float(row[name]) for row in rows) if rows else math.nan


def plots() -> Any:
    """Pyplot, for files that are the same whenever the numbers are."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "fogline"
    import matplotlib.pyplot as plt

    return plt


def saved(figure: Any, name: str) -> str:
    """Write a figure beside the page; its address for the page."""
    import matplotlib.pyplot as plt

    figure.savefig(RESULTS / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    return f"benchmarks/{name}.svg"
