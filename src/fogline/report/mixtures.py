"""What a page or a JSON document says of a fitted Gaussian mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fogline.report.findings import column_names, python_call, versions
from fogline.report.space import telling_columns

if TYPE_CHECKING:
    from fogline.estimators import PrivateGaussianMixture

__all__ = ["MixtureFindings", "find_mixture", "mixture_document"]

FloatArray = NDArray[np.float64]

MOST_DRAWN = 4
"""Most columns whose pairs are drawn."""


@dataclass(frozen=True, eq=False)
class MixtureFindings:
    """What was released.

    Attributes
    ----------
    estimator : PrivateGaussianMixture
        Fitted.
    columns : tuple of str
    drawn : list of int
        Columns whose pairs are drawn: those in which the components differ most.
    """

    estimator: PrivateGaussianMixture
    columns: tuple[str, ...]
    drawn: list[int]

    @property
    def k(self) -> int:
        """Number of components."""
        return len(self.estimator.weights_)

    @property
    def deviations(self) -> FloatArray:
        """Standard deviation of each component along each column, shape (k, d)."""
        return np.asarray(np.sqrt(np.einsum("kii->ki", self.estimator.covariances_)))

    @property
    def limits(self) -> FloatArray:
        """Range of each column that holds the components, shape (d, 2)."""
        means, reach = self.estimator.means_, 3.2 * self.deviations
        return np.stack([(means - reach).min(axis=0), (means + reach).max(axis=0)], axis=1)

    @property
    def size_errors(self) -> FloatArray:
        """Standard error of the number of records of each component."""
        return np.sqrt(self.estimator.count_standard_error_**2 + np.maximum(self.estimator.counts_, 0.0))


def find_mixture(estimator: PrivateGaussianMixture, columns: Sequence[str] | None = None) -> MixtureFindings:
    """Read what a page shows from a fitted mixture; costs no privacy."""
    names = column_names(estimator, columns)
    everywhere = MixtureFindings(estimator, names, [])
    return MixtureFindings(estimator, names, telling_columns(estimator.means_, everywhere.limits, MOST_DRAWN))


def mixture_document(findings: MixtureFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    estimator = findings.estimator
    return {
        "format": "fogline-mixture-1",
        "command": command or python_call(estimator),
        "columns": list(findings.columns),
        "method": estimator.method,
        "components": [_component(findings, k) for k in range(findings.k)],
        "criteria": {str(k): value for k, value in estimator.criteria_.items()},
        "composition": estimator.composition_,
        "message": estimator.message_,
        "guarantee": {**estimator.guarantee_.to_dict(), "statement": str(estimator.guarantee_)},
        "versions": versions(),
    }


def _component(findings: MixtureFindings, k: int) -> dict[str, Any]:
    estimator = findings.estimator
    return {
        "weight": float(estimator.weights_[k]),
        "count": float(estimator.counts_[k]),
        "count_standard_error": float(findings.size_errors[k]),
        "mean": estimator.means_[k].tolist(),
        "standard_errors": estimator.standard_errors_[k].tolist(),
        "covariance": estimator.covariances_[k].tolist(),
    }
