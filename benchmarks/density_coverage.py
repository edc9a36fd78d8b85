"""Coverage of the intervals that a density states: shares of boxes, and quantiles in one column.

The answer of a method may have ``interval(kind, questions, level, target)``, which returns two arrays, the lower and
upper ends:

=========  ============================================================  ============================================
kind       questions                                                     an interval is right if
=========  ============================================================  ============================================
box        array (k, d, 2) of boxes in units of the data                 it holds the share of the mass in the box
quantile   array (k,) of levels, one column                              the level lies between the ranks of its ends
=========  ============================================================  ============================================

Boxes end at edges of neutral cells, the share counts a value at a box's lower edge and not at its upper one (except at
the upper wall). ``target`` is "population" or "records".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from density import CELLS, density_sets, draw, noise_seed, yardstick
from density_methods import METHODS, Method, Sample
from fogline_research.metrics.cell_masses import NEUTRAL_CELLS, interval_coverage

__all__ = ["QUANTILES", "coverage", "fixed_boxes"]

Array = NDArray[np.float64]
QUANTILES = np.array([0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95])
BOXES = 40


def fixed_boxes(dim: int) -> NDArray[np.int64]:
    """Boxes between edges of neutral cells, of all sizes: array of shape (40, dim, 2)."""
    rng, cells = np.random.default_rng(5), NEUTRAL_CELLS[dim]
    length = np.ceil(cells * 2.0 ** -rng.uniform(0, 6 if dim == 1 else 3, (BOXES, dim))).astype(np.int64)
    start = (rng.random((BOXES, dim)) * (cells - length + 1)).astype(np.int64)
    return np.stack([start, start + length], axis=-1)


def coverage(
    method: Method | str,
    half: str = "tune",
    dim: int = 1,
    cells: Sequence[tuple[int, float]] | None = None,
    runs: int = 1,
    *,
    level: float = 0.95,
    target: str = "population",
    names: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Measure how often stated intervals hold the truth, for every set.

    Parameters
    ----------
    method, half, dim, cells, runs, names
        As in `density.score`.
    level : float
        Stated coverage.
    target : {"population", "records"}

    Returns
    -------
    list of dict
        Per set, n, epsilon and kind: share of the intervals that are right, their mean width, number of releases. Sets
        whose answers have no such interval are left out.
    """
    function = METHODS[method] if isinstance(method, str) else method
    rows = []
    for one in density_sets(dim, half):
        for n, epsilon in cells or CELLS:
            if names is not None and one.name not in names:
                continue
            found: dict[str, list[tuple[float, float]]] = defaultdict(list)
            for run in range(runs):
                sample = draw(one.name, dim, n, run)
                seed = noise_seed(one.name, n, epsilon, run)
                answer: Any = function(sample.records, one.bounds, one.steps, epsilon, seed)
                for kind in ("box", "quantile") if dim == 1 else ("box",):
                    found[kind].append(_judge(answer, one, sample, kind, level, target))
            place = {"set": one.name, "kind of data": one.kind, "n": n, "epsilon": epsilon, "releases": runs}
            rows += [
                {**place, "kind": kind, "coverage": float(np.mean([c for c, _ in pairs])),
                 "width": float(np.mean([w for _, w in pairs]))}
                for kind, pairs in found.items()
            ]  # fmt: skip
    return rows


def _judge(answer: Any, one: Any, sample: Sample, kind: str, level: float, target: str) -> tuple[float, float]:
    """Share of right intervals of one release, and their mean width."""
    if kind == "box":
        boxes = fixed_boxes(one.d)
        low, high = (np.array(one.bounds)[:, end] for end in (0, 1))
        edges = low[:, None] + (high - low)[:, None] * boxes / NEUTRAL_CELLS[one.d]
        below, above = answer.interval("box", edges, level, target)
        truth = _population_shares(one, boxes) if target == "population" else _record_shares(sample, edges, high)
        return interval_coverage(below, above, truth), float(np.mean(np.asarray(above) - np.asarray(below)))
    below, above = (np.asarray(end) for end in answer.interval("quantile", QUANTILES, level, target))
    first, last = _ranks(one, sample, below, above, target)
    low, high = one.bounds[0]
    return interval_coverage(first, last, QUANTILES), float(np.mean(above - below) / (high - low))


def _population_shares(one: Any, boxes: NDArray[np.int64]) -> Array:
    masses = yardstick(one.name, one.d).truth
    return np.array([masses[tuple(slice(*ends) for ends in box)].sum() for box in boxes])


def _record_shares(sample: Sample, edges: Array, high: Array) -> Array:
    rows = sample.records
    upper = np.where(edges[..., 1] >= high, np.inf, edges[..., 1])
    inside = [((rows >= box[:, 0]) & (rows < top)).all(axis=1).mean() for box, top in zip(edges, upper, strict=True)]
    return np.array(inside)


def _ranks(one: Any, sample: Sample, below: Array, above: Array, target: str) -> tuple[Array, Array]:
    """Share of the mass below the lower ends, and up to the upper ends."""
    if target == "records":
        ordered = sample.ordered
        return np.searchsorted(ordered, below, "left") / len(ordered), np.searchsorted(ordered, above, "right") / len(
            ordered
        )
    masses = yardstick(one.name, 1).truth
    cdf, (low, high) = np.r_[0.0, np.cumsum(masses)], one.bounds[0]
    place = [(end - low) / (high - low) * len(masses) for end in (below, above)]
    if not one.atomic:
        first, last = (np.interp(at, np.arange(len(cdf)), cdf) for at in place)
        return np.asarray(first), np.asarray(last)
    # with atoms the truth inside a cell is not known: the whole cell of an end counts as held
    cells = [np.clip(np.floor(at), 0, len(masses) - 1).astype(np.int64) for at in place]
    return np.asarray(cdf[cells[0]]), np.asarray(cdf[cells[1] + 1])
