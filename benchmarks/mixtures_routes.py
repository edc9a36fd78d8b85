"""The paper's own routes to a mixture beside fogline's, at the separation of its theorem: a part of mixtures.py.

`terrific` and `halves` are `pgme` and `pegme` of `fogline_research.certified`; `certified` is the default for
components far apart, `method="recursive"`. The number of records grows with that of components and columns.
"""

from __future__ import annotations

from typing import Any

from fogline_research.experiments import MixtureCell, reproduce_mixtures
from mixtures_separated import FIRST_SEED

__all__ = ["ROUTES", "ROUTE_CELLS", "routes", "routes_groups"]

ROUTE_CELLS = ((10, 2, 20_000), (10, 4, 50_000), (10, 8, 100_000), (50, 2, 50_000), (50, 4, 100_000), (50, 8, 200_000))
"""Columns, components, records."""

ROUTES = {
    "terrific": (10, 10, 10, 10, 10, 10),
    "certified": (10, 10, 10, 10, 10, 3),
    "spherical": (10, 10, 10, 10, 10, 3),
    "halves": (10, 10, 3, 10, 3, 1),
}
"""Runs in each cell: ten where nine of ten are asked for, fewer of the others where a fit takes long."""

SEPARATION = 100.0
"""In units of Theorem 5.1."""


def routes_groups(quick: bool) -> list[list[dict[str, Any]]]:
    """One group a run, the route that has a target first."""
    keys = [
        {"d": d, "k": k, "n": n, "method": method, "seed": FIRST_SEED + run}
        for method, numbers in ROUTES.items()
        for (d, k, n), runs in zip(ROUTE_CELLS, numbers, strict=True)
        for run in range(runs)
    ]
    return [[key] for key in (keys[:1] if quick else keys)]


def routes(keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Whether all components were recovered, and the largest total variation of one."""
    rows = []
    for key in keys:
        cell = MixtureCell("separated", key["d"], key["k"], key["n"], SEPARATION)
        (row,) = reproduce_mixtures(runs=1, cells=[cell], methods=[key["method"]], seed=key["seed"])
        measured = ("recovered", "components", "tv", "plain_tv", "weights", "seconds")
        rows.append({name: getattr(row, name) for name in measured})
    return rows
