"""The page of a clustering."""

from __future__ import annotations

from typing import Any

import numpy as np

from fogline.report.bars import size_chart, slab_bar
from fogline.report.clusters import ClusterFindings
from fogline.report.frame import frame_content, listed
from fogline.report.plane import Plane, plane_map
from fogline.report.profile import profile_curve
from fogline.report.space import MOST_COLUMNS, is_sliced, telling_columns
from fogline.report.svg import HUES, plus_minus, significant, tick_label

__all__ = ["cluster_content", "shown_columns"]

BOUGHT = {
    "scale": "number of records, their mean and their spread",
    "projection": "the directions in which records differ most",
    "density": "the density, from which clusters are found",
    "refinement": "better centres and sizes, step by step",
}
"""What each part of the budget is spent on."""

FOUND = "Directions in which the records differ most, as far as the noise lets one see."
DIRECTIONS = {
    "auto": FOUND,
    "private": FOUND,
    "random": "Random directions, the same for any data.",
    "identity": "The columns as they are.",
    "given": "Directions that were given beforehand.",
}
"""What the axes of a projection are."""


def cluster_content(findings: ClusterFindings) -> dict[str, Any]:
    """Return what the page says, for its template."""
    estimator = findings.estimator
    picture = findings.picture
    drawn = plane_map(picture) if isinstance(picture, Plane) else profile_curve(picture)
    shown = shown_columns(findings)
    shares = findings.shares / max(float(findings.shares.sum()), 1.0)
    slabs = [(f"{k + 1} · {share:.0%}", share, HUES[k % len(HUES)]) for k, share in enumerate(shares.tolist())]
    return {
        **frame_content(estimator, estimator.density_, (estimator.count_, estimator.count_standard_error_)),
        "k": findings.k,
        "flat": isinstance(picture, Plane),
        "asked": estimator.n_clusters,
        "columns": [findings.columns[j] for j in shown],
        "left_out": len(findings.columns) - len(shown),
        "bounds": [
            (name, tick_label(float(low)), tick_label(float(high)))
            for name, (low, high) in zip(findings.columns[:MOST_COLUMNS], findings.bounds, strict=False)
        ],
        "clusters": [_row(findings, k, shown) for k in range(findings.k)],
        "components": _components(findings),
        "direction": DIRECTIONS["given" if not isinstance(estimator.projection, str) else estimator.projection],
        "axes": picture.names if isinstance(picture, Plane) else (picture.name,),
        "slices": is_sliced(estimator.density_),
        "bandwidth": listed([significant(float(h)) for h in np.unique(findings.bandwidth.round(12))[:2]]),
        "budget": [(name, BOUGHT[name], f"{share:.0%}") for name, share in estimator.shares_.items()],
        "figures": [drawn],
        "chart": size_chart(estimator.sizes_, estimator.size_standard_errors_) if findings.k else "",
        "bar": slab_bar(slabs, label="Share of the released count in each cluster", rest="in none"),
    }


def shown_columns(findings: ClusterFindings) -> list[int]:
    """Columns of a table."""
    return telling_columns(findings.estimator.cluster_centers_, findings.bounds, MOST_COLUMNS)


def _row(findings: ClusterFindings, k: int, shown: list[int]) -> dict[str, Any]:
    estimator = findings.estimator
    where = zip(estimator.cluster_centers_[k, shown], estimator.standard_errors_[k, shown], strict=True)
    size, error = plus_minus(float(estimator.sizes_[k]), [float(estimator.size_standard_errors_[k])])
    return {
        "number": k + 1,
        "hue": HUES[k % len(HUES)],
        "where": [plus_minus(float(value), [float(error)]) for value, error in where],
        "size": size,
        "size_error": error,
        "share": f"{100 * float(findings.shares[k]):.0f}",
    }


def _components(findings: ClusterFindings) -> list[tuple[str, str]]:
    """Say what the drawn components are made of: their heaviest columns."""
    said = []
    matrix: Any = findings.estimator.components_
    for number, row in enumerate(() if matrix is None else matrix[:2]):
        heaviest = np.argsort(-np.abs(row))[:4]
        words = [f"{significant(float(row[j]), 2)} {findings.columns[j]}" for j in heaviest if abs(row[j]) > 1e-9]
        said.append((f"component {number + 1}", ", ".join(words)))
    return said
