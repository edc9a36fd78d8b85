"""The part of docs/benchmarks/mixtures.md on the paper's own routes, certified, beside fogline's."""

from __future__ import annotations

from typing import Any

import numpy as np

from common import markdown, read_csv
from mixtures_routes import ROUTE_CELLS, ROUTES
from page_tools import grouped

__all__ = ["routes"]

NAMES = {
    "terrific": "terrific balls (`pgme`)",
    "halves": "halves (`pegme`)",
    "certified": '`"recursive"`',
    "spherical": '`"spherical"`',
}


def routes() -> str:
    """Recovered runs, errors and times of four routes at the theorem's separation."""
    title = "### The paper's own routes\n\n"
    rows = read_csv("mixtures_routes")
    if not rows:
        return title + "*not measured yet*\n"
    cells = grouped(rows, "d", "k", "method")
    shown = []
    for d, k, n in ROUTE_CELLS:
        line: dict[str, Any] = {"columns": d, "components": k, "records": n}
        for method in NAMES:
            line[NAMES[method]] = _cell(cells.get((str(d), str(k), method), []))
        shown.append(line)
    mine = [cells.get((str(d), str(k), "terrific"), []) for d, k, _ in ROUTE_CELLS]
    hits = [sum(row["recovered"] == "1" for row in part) for part in mine]
    wanted = ROUTES["terrific"][0]
    met = sum(len(part) >= wanted and hit >= 0.9 * wanted for part, hit in zip(mine, hits, strict=True))
    worst = max(float(row["tv"]) for part in mine for row in part)
    return (
        title
        + f"**Terrific balls recover all components in {sum(hits)} of {sum(map(len, mine))} runs**; nine of ten are "
        f"asked for in each of the {len(ROUTE_CELLS)} cells, and {met} of them have ten runs and meet it. A component "
        f"is recovered when its total variation from the true one is below 0.3; the largest of any run is {worst:.2f}. "
        "Components are round, of equal weight, and as far apart as Theorem 5.1 asks (s = 100); epsilon 1, delta 1e-6, "
        "public bounds within a factor of four. `pgme` and `pegme` of `fogline_research.certified` are the paper's "
        "Algorithms 3, 4 and 1 in certified forms. The table has the runs that recovered all components, the mean of "
        "the largest total variation, and CPU seconds per fit on a shared machine. The theorem itself promises nothing "
        "here: its condition (7) asks for more than 800 columns ([gaps](gaps.md#learning-mixtures-of-separated-"
        "gaussians)).\n\n" + markdown(shown)
    )


def _cell(part: list[dict[str, str]]) -> str:
    if not part:
        return "not run"
    hits = sum(row["recovered"] == "1" for row in part)
    tv, seconds = (float(np.mean([float(row[name]) for row in part])) for name in ("tv", "seconds"))
    return f"{hits} of {len(part)}, {tv:.3f}, {seconds:.1f} s"
