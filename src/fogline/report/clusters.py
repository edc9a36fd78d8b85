"""What a page or a JSON document says of a fitted clustering: centres, sizes, and the density they stand in.

The picture is drawn where the clustering was done: in the columns themselves, or in the components that the columns
were projected on, of which the first two are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fogline.report.findings import column_names, python_call, versions
from fogline.report.plane import Plane
from fogline.report.profile import Profile
from fogline.report.space import Space, picture_of, telling_columns

if TYPE_CHECKING:
    from fogline.estimators import PrivateModeClustering

__all__ = ["ClusterFindings", "cluster_document", "find_clusters"]

FloatArray = NDArray[np.float64]


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
        return np.broadcast_to(np.asarray(self.estimator.bounds, dtype=np.float64), (len(self.columns), 2))

    @property
    def shares(self) -> FloatArray:
        """Part of the records in each cluster, between 0 and 1."""
        return np.asarray(np.clip(self.estimator.weights_, 0.0, 1.0))


def find_clusters(estimator: PrivateModeClustering, columns: Sequence[str] | None = None) -> ClusterFindings:
    """Read what a page shows from a fitted clustering; costs no privacy."""
    names = column_names(estimator, columns)
    projected = estimator.components_ is not None
    bandwidth = estimator.density_.bandwidth if projected else estimator.bandwidth_
    space = _components(estimator) if projected else _columns(estimator, names)
    return ClusterFindings(estimator, names, picture_of(space, bandwidth), bandwidth)


def _columns(estimator: Any, names: tuple[str, ...]) -> Space:
    """Return the columns themselves, the map in those in which the centres differ most."""
    density, found = estimator.density_, estimator.regions_.modes
    shown = telling_columns(found.positions, np.asarray(density.spec.bounds), 2)
    pair = (shown[0], shown[-1])
    return Space(density, names, found.positions, found.covariances, pair, estimator.predict)


def _components(estimator: Any) -> Space:
    """Return the components that the columns were projected on, measured in half ranges of the columns."""
    components, errors = estimator.components_, estimator.projected_standard_errors_
    box = np.broadcast_to(np.asarray(estimator.bounds, dtype=np.float64), (int(estimator.n_features_in_), 2))
    back = np.linalg.pinv(components).T * (box[:, 1] - box[:, 0]) / 2

    def label(places: FloatArray) -> NDArray[np.int64]:
        return np.asarray(estimator.predict(estimator.mean_ + places @ back))

    names = tuple(f"component {j + 1}" for j in range(len(components)))
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


def _projection(estimator: Any) -> dict[str, Any] | None:
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
    }
