"""What a page or a JSON document says of a fitted clustering: centres, sizes, and the density they stand in.

The picture is drawn where the clustering was done: in the columns themselves, or in the components that the columns
were projected on, of which the first two are shown.

The page of a clustering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fogline._typing import BoolArray, FloatArray, IntArray
from fogline.density.components.leaf_clusters import ClusterReading
from fogline.report._charts import size_chart, slab_bar
from fogline.report._plots import (
    MOST_COLUMNS,
    Plane,
    Profile,
    Space,
    is_sliced,
    picture_of,
    plane_map,
    profile_curve,
    telling_columns,
)
from fogline.report._svg import HUES, plus_minus, significant, tick_label
from fogline.report.frame import (
    ConsoleTable,
    column_names,
    count_words,
    few_listed,
    frame_content,
    left_out_words,
    listed,
    python_call,
    told_errors,
    values_with_errors,
    versions,
)
from fogline.report.summaries import INTERVAL, Summary, notes_of, released_facts, spread_cells

if TYPE_CHECKING:
    from fogline.estimators import PrivateModeClustering

__all__ = [
    "ClusterFindings",
    "cluster_content",
    "cluster_document",
    "cluster_frame",
    "cluster_plot",
    "cluster_summary",
    "cluster_table",
    "cluster_title",
    "find_clusters",
    "shown_columns",
]


@dataclass(frozen=True, eq=False)
class ClusterFindings:
    """What was released, and the picture of it.

    Attributes
    ----------
    estimator : PrivateModeClustering
        Fitted.
    columns : tuple of str
    picture : Plane or Profile
    bandwidth : array of shape (r,)
        At which the picture is read, along the axes of the density.
    """

    kind: ClassVar[str] = "clusters"
    estimator: PrivateModeClustering
    columns: tuple[str, ...]
    picture: Plane | Profile
    bandwidth: FloatArray

    @property
    def k(self) -> int:
        """Number of clusters."""
        return len(self.estimator.cluster_centers_)

    @property
    def bounds(self) -> FloatArray:
        """Public range of each column, shape (d, 2)."""
        return box_of(self.estimator)

    @property
    def hollow(self) -> BoolArray:
        """Whether few records lie near each centre, as far as the release can tell."""
        regions = self.estimator.regions_
        return regions.hollow if isinstance(regions, ClusterReading) else np.zeros(self.k, dtype=bool)

    @property
    def shares(self) -> FloatArray:
        """Part of the records in each cluster, between 0 and 1."""
        return np.asarray(np.clip(self.estimator.weights_, 0.0, 1.0))


def box_of(estimator: PrivateModeClustering) -> FloatArray:
    """Public range of each column of a fitted clustering, shape (d, 2)."""
    if estimator.bounds is None and estimator.density_ is not None:  # read from a release, which has its own
        return np.asarray(estimator.density_.spec.bounds, dtype=np.float64)
    return estimator._box(int(estimator.n_features_in_), getattr(estimator, "_columns", None))


def find_clusters(estimator: PrivateModeClustering, columns: Sequence[str] | None = None) -> ClusterFindings:
    """Read what a page shows from a fitted clustering; costs no privacy."""
    names = column_names(estimator, columns)
    projected = estimator.components_ is not None
    bandwidth = estimator.density_.bandwidth if projected else estimator.bandwidth_
    space = _components(estimator) if projected else _columns(estimator, names)
    return ClusterFindings(estimator, names, picture_of(space, bandwidth), bandwidth)


def _columns(estimator: PrivateModeClustering, names: tuple[str, ...]) -> Space:
    """Return the columns themselves, the map in those in which the centres differ most."""
    density, regions = estimator.density_, estimator.regions_
    assert regions is not None  # without a projection there is a grid
    covariances = regions.covariances if isinstance(regions, ClusterReading) else regions.modes.covariances
    shown = telling_columns(estimator.cluster_centers_, np.asarray(density.spec.bounds), 2)
    pair = (shown[0], shown[-1])
    return Space(density, names, estimator.cluster_centers_, covariances, pair, estimator.predict)


def _components(estimator: PrivateModeClustering) -> Space:
    """Return the components that the columns were projected on, measured in half ranges of the columns."""
    components, errors = estimator.components_, estimator.projected_standard_errors_
    box = box_of(estimator)
    # Labels are asked for in data units; a place of the map stands for the point of the columns that projects on it.
    back = np.linalg.pinv(components).T * (box[:, 1] - box[:, 0]) / 2

    def label(places: FloatArray) -> IntArray:
        return np.asarray(estimator.predict(estimator.mean_ + places @ back))

    names = tuple(f"component {j + 1}" for j in range(len(components)))
    # Errors along the components are about independent: they are the axes of the noise.
    covariances = errors[:, :, None] ** 2 * np.eye(len(names))
    return Space(estimator.density_, names, estimator.projected_centers_, covariances, (0, 1), label)


def cluster_document(findings: ClusterFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    estimator = findings.estimator
    return {
        "format": "fogline-clusters-1",
        "command": command or python_call(estimator),
        "columns": list(findings.columns),
        "bounds": findings.bounds.tolist(),
        "clusters": [_cluster(findings, k) for k in range(findings.k)],
        "projection": _projection(estimator),
        "shares": dict(estimator.shares_),
        "message": estimator.message_,
        "count": {"value": estimator.count_, "standard_error": estimator.count_standard_error_},
        "guarantee": {**estimator.guarantee_.to_dict(), "statement": str(estimator.guarantee_)},
        "level": estimator.level,
        "versions": versions(),
    }


def _projection(estimator: PrivateModeClustering) -> dict[str, Any] | None:
    if estimator.components_ is None:
        return None
    return {"components": estimator.components_.tolist(), "mean": estimator.mean_.tolist(), "unit": "half ranges"}


def _cluster(findings: ClusterFindings, k: int) -> dict[str, Any]:
    estimator = findings.estimator
    return {
        "center": estimator.cluster_centers_[k].tolist(),
        "standard_errors": estimator.standard_errors_[k].tolist(),
        "size": float(estimator.sizes_[k]),
        "size_standard_error": float(estimator.size_standard_errors_[k]),
        "share": float(findings.shares[k]),
        **({"hollow": bool(findings.hollow[k])} if len(findings.hollow) else {}),
    }


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
        "hollow": [str(k + 1) for k in np.flatnonzero(findings.hollow)],
        "flat": isinstance(picture, Plane),
        "asked": estimator.n_clusters,
        "columns": [findings.columns[j] for j in shown],
        "left_out": len(findings.columns) - len(shown),
        "bounds": [
            (name, tick_label(float(low)), tick_label(float(high)))
            for name, (low, high) in zip(findings.columns[:MOST_COLUMNS], findings.bounds, strict=False)
        ],
        "clusters": [_row(findings, k, shown) for k in range(findings.k)],
        "components": _component_rows(findings),
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


def _widths(findings: ClusterFindings, shown: Sequence[int]) -> FloatArray:
    """Ranges of some columns."""
    return np.asarray(np.diff(findings.bounds[list(shown)], axis=1)[:, 0])


def _row(findings: ClusterFindings, k: int, shown: list[int]) -> dict[str, Any]:
    estimator = findings.estimator
    where = told_errors(
        estimator.cluster_centers_[k, shown], estimator.standard_errors_[k, shown], _widths(findings, shown)
    )
    size, error = plus_minus(float(estimator.sizes_[k]), [float(estimator.size_standard_errors_[k])])
    return {
        "number": k + 1,
        "hue": HUES[k % len(HUES)],
        "where": where,
        "size": size,
        "size_error": error,
        "share": f"{100 * float(findings.shares[k]):.0f}",
    }


def _component_rows(findings: ClusterFindings) -> list[tuple[str, str]]:
    """Say what the drawn components are made of: their heaviest columns."""
    said = []
    matrix: Any = findings.estimator.components_
    for number, row in enumerate(() if matrix is None else matrix[:2]):
        heaviest = np.argsort(-np.abs(row))[:4]
        words = [f"{significant(float(row[j]), 2)} {findings.columns[j]}" for j in heaviest if abs(row[j]) > 1e-9]
        said.append((f"component {number + 1}", ", ".join(words)))
    return said


def cluster_title(findings: ClusterFindings) -> str:
    """Return the title of a page that was given none."""
    return f"Clusters of {few_listed(findings.columns)}"


def cluster_table(findings: ClusterFindings) -> ConsoleTable:
    """Centres and sizes with their errors, the count, the guarantee, and what would help."""
    estimator, rows = findings.estimator, []
    shown = shown_columns(findings) if findings.k else []
    for k in range(findings.k):
        errors = estimator.standard_errors_[k, shown]
        where = values_with_errors(estimator.cluster_centers_[k, shown], errors, _widths(findings, shown))
        size = f"{estimator.sizes_[k]:.0f} ± {estimator.size_standard_errors_[k]:.0f}"
        rows.append((str(k + 1), *where, size, f"{100 * findings.shares[k]:.0f}%"))
    return ConsoleTable(
        "Clusters",
        ("cluster", *(findings.columns[j] for j in shown), "records", "share"),
        tuple(rows),
        left_out=left_out_words(findings.columns, shown),
        sentences=count_words(estimator),
    )


def cluster_summary(findings: ClusterFindings) -> Summary:
    """Return the table of clusters: each centre with its error, and how many records there are around it."""
    estimator, rows = findings.estimator, []
    shown = shown_columns(findings) if findings.k else []
    for k in range(findings.k):
        for j in shown:
            value, error = float(estimator.cluster_centers_[k, j]), float(estimator.standard_errors_[k, j])
            cells = spread_cells(value, error, bounds=findings.bounds[j].tolist())
            first = j == shown[0]
            size = f"{estimator.sizes_[k]:.0f} ± {estimator.size_standard_errors_[k]:.0f}" if first else ""
            rows.append((str(k + 1) if first else "", findings.columns[j], *cells, size))
    left_out = left_out_words(findings.columns, shown).replace("the document of --json", "to_frame()")
    bounds = [(tick_label(float(low)), tick_label(float(high))) for low, high in findings.bounds[:MOST_COLUMNS]]
    return Summary(
        cluster_title(findings),
        released_facts(estimator, findings.columns[:MOST_COLUMNS], bounds),
        ("cluster", "column", "centre", *INTERVAL, "records"),
        tuple(rows),
        notes_of(estimator.message_, estimator.guarantee_, left_out if findings.k else ""),
        left=2,
    )


def cluster_frame(findings: ClusterFindings) -> dict[str, list[Any]]:
    """Return the clusters as columns of a frame, one row per cluster."""
    estimator = findings.estimator
    frame: dict[str, list[Any]] = {"cluster": list(range(1, findings.k + 1))}
    for j, name in enumerate(findings.columns):
        frame[name] = estimator.cluster_centers_[:, j].tolist()
        frame[f"{name}_standard_error"] = estimator.standard_errors_[:, j].tolist()
    sizes = {"size": estimator.sizes_.tolist(), "size_standard_error": estimator.size_standard_errors_.tolist()}
    return {**frame, **sizes, "share": findings.shares.tolist()}


def cluster_plot(findings: ClusterFindings, ax: Any = None) -> Any:
    """Draw the density and the centres with matplotlib, where the clustering was done."""
    from fogline.report._axes import draw_pictures

    return draw_pictures([findings.picture], ax)
