"""A page to explore a release without fogline: one file with the numbers of its posterior and a small script.

The page holds, for each cell of a coarse grid, what the release makes plausible and some draws from the posterior.
A slice is a sum over cells, and its interval is the spread of the draws: the browser adds them up, offline. Cells are
narrow where the population is and wide where it is not. Masses are written as 16-bit logarithms,

.. math:: m = m_{max} e^{-k / 2500},

with k = 65535 for nothing, which keeps each of them to within 0.02% and the file below one megabyte.

Numbers of a whole column (mean, quantiles, with their intervals) are those of the release itself, and are shown as long
as no slice is chosen. In a slice the script reads them from the grid, and so as to be no surer than the release: the
interval of a mean is at least as wide as a normal one with the draws' error, and that of a quantile ends at edges of
cells, since nobody knows where in a cell it lies.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from fogline._typing import FloatArray
from fogline.density.posterior.estimates import Estimate
from fogline.density.posterior.posterior import Posterior
from fogline.density.private_density import PrivateDensity
from fogline.report.density import density_content, find_density
from fogline.report.frame import count_content, few_listed, page_environment, power_of_ten, versions

__all__ = ["interactive_values", "render_interactive", "write_interactive"]

CELLS = {1: 160, 2: 44, 3: 18}
"""Most cells per column, by the number of columns."""

DRAWS = {1: 200, 2: 80, 3: 50}
"""Draws from the posterior that the page holds."""

LEVELS = (0.5, 0.8, 0.95)
"""Levels of intervals that the page offers."""

QUANTILES = np.arange(1, 100) / 100

SCALE = 2500.0
NOTHING = 65535


def _edges(posterior: Posterior, axis: int, most: int, heaps: Collection[int]) -> list[int]:
    """Leaves at which cells begin: half of the cells even in width, half of them even in mass; heaps are alone."""
    margin = posterior.masses().estimate.sum(axis=tuple(k for k in range(posterior.d) if k != axis))
    size = len(margin)
    if size <= most:
        return list(range(size + 1))
    even = np.linspace(0, size, most // 2 + 1).round().astype(int)
    below = np.cumsum(margin) / max(float(margin.sum()), 1e-300)
    by_mass = np.searchsorted(below, np.linspace(0, 1, most // 2 + 1)[1:-1]) + 1
    alone = {end for leaf in heaps for end in (leaf, leaf + 1)}
    return sorted({0, size, *even.tolist(), *np.minimum(by_mass, size).tolist(), *alone})


def _heaps(posterior: Posterior, axis: int) -> dict[int, float]:
    """Leaves of a column that hold an atom, and the atom's value."""
    margin = posterior.marginal(axis) if posterior.d > 1 else posterior
    leaf_of = posterior.axes[axis].leaf_of
    return {int(leaf_of(np.array([(atom.low + atom.high) / 2]))[0]): float(atom.value) for atom in margin.atoms}


def _whole(posterior: Posterior, axis: int) -> dict[str, Any]:
    """Mean and 99 quantiles of a whole column, each with its interval, by the level of the interval."""
    name = posterior.columns[axis]

    def rows(found: Estimate) -> list[list[float]]:
        ends = np.stack([np.atleast_1d(part) for part in (found.value, found.low, found.high)], axis=1)
        return [[float(f"{value:.6g}") for value in row] for row in ends.tolist()]

    return {
        f"{level:g}": {
            "mean": rows(posterior.mean(name, level=level))[0],
            "quantiles": rows(posterior.quantile(QUANTILES, name, level=level)),
        }
        for level in LEVELS
    }


def _packed(masses: FloatArray) -> dict[str, Any]:
    """Masses as 16-bit logarithms below the largest."""
    top = max(float(masses.max(initial=0.0)), 1e-300)
    with np.errstate(divide="ignore"):
        steps = np.rint(-np.log(np.maximum(masses, 0.0) / top) * SCALE)
    packed = np.where(np.isfinite(steps), np.clip(steps, 0, NOTHING), NOTHING).astype("<u2")
    return {"top": top, "values": base64.b64encode(packed.tobytes()).decode()}


def interactive_values(density: PrivateDensity) -> dict[str, Any]:
    """Return the numbers that the page's script works with, as plain values.

    Parameters
    ----------
    density : PrivateDensity
        Of up to three columns.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 60)], features="leaves").update([[3.0]] * 500).release(epsilon=1.0)
    >>> values = interactive_values(density)
    >>> values["columns"][0]["name"], len(values["columns"][0]["edges"]) <= 170
    ('x1', True)
    """
    if not density.has_posterior:
        raise ValueError("path: a page to explore needs a release of up to three columns")
    posterior, names = density.posterior, density.column_names
    d = posterior.d
    masses = posterior.masses()
    heaps = [_heaps(posterior, axis) for axis in range(d)]
    starts = [_edges(posterior, axis, CELLS[d], heaps[axis]) for axis in range(d)]
    estimate, draws = masses.estimate, masses.draws[: DRAWS[d]]
    for axis, cells in enumerate(starts):
        estimate = np.add.reduceat(estimate, cells[:-1], axis=axis)
        draws = np.add.reduceat(draws, cells[:-1], axis=axis + 1)
    units = density.units or ("",) * d
    columns = [
        {
            "name": names[j],
            "unit": units[j],
            "low": float(axis.bounds[0]),
            "high": float(axis.bounds[1]),
            "step": float(axis.step),
            "heaps": [k for k, leaf in enumerate(starts[j][:-1]) if leaf in heaps[j]],
            "heap_values": [float(f"{heaps[j][leaf]:.10g}") for leaf in starts[j][:-1] if leaf in heaps[j]],
            "edges": [float(f"{edge:.10g}") for edge in axis.edges[starts[j]].tolist()],
            "whole": _whole(posterior, j),
        }
        for j, axis in enumerate(posterior.axes)
    ]
    return {
        "format": "fogline-explore-1",
        "scale": SCALE,
        "nothing": NOTHING,
        "columns": columns,
        "draws": len(draws),
        "estimate": _packed(np.asarray(estimate)),
        "posterior": _packed(np.asarray(draws)),
        "count": {"value": density.count, "standard_error": density.count_sd},
    }


def render_interactive(density: PrivateDensity, *, title: str | None = None) -> str:
    """Return the page as a string; costs no privacy.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> density = DensitySketch([(0, 60)], features="leaves").update([[3.0]] * 500).release(epsilon=1.0)
    >>> render_interactive(density).startswith("<!doctype html>")
    True
    """
    environment = page_environment()
    from markupsafe import Markup

    folder = resources.files("fogline.report").joinpath("templates")
    names = ("report.css", "interactive.css", "interactive.js")
    sheet, more, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    values = interactive_values(density)
    # What is text in the page's data could end the element it stands in: no "<" is left in it.
    data = json.dumps(values, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    findings = find_density(density)
    content = density_content(findings)
    guarantee = density.guarantee
    page: str = environment.get_template("interactive.html.j2").render(
        title=title or f"The shape of {few_listed(findings.columns)}",
        style=Markup(sheet + more),
        script=Markup(script),
        data=Markup(data),
        style_hash=_hash(sheet + more),
        script_hash=_hash(script),
        columns=values["columns"],
        answers=content["answers"],
        guarantee=guarantee,
        sentence=str(guarantee),
        explanation=guarantee.explain(),
        epsilon=f"{guarantee.epsilon:.4g}",
        delta=power_of_ten(guarantee.delta),
        message=density.message,
        versions=versions(),
        receipt=density.receipt,
        **count_content(density.count, density.count_sd),
    )
    return page


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write_interactive(density: PrivateDensity, path: str | Path, *, title: str | None = None) -> Path:
    """Write a page on which a release can be explored in a browser, without fogline and without a network.

    Parameters
    ----------
    density : PrivateDensity
        Of up to three columns.
    path : str or Path
        Where to write; a file that exists is replaced.
    title : str, optional

    Returns
    -------
    Path
    """
    target = Path(path)
    target.write_text(render_interactive(density, title=title), encoding="utf-8")
    return target
