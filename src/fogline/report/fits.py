"""What a page or a JSON document says of a fitted family: parameters with errors, curves, what is explained.

Everything is read from released numbers; limits of a picture follow the fitted law, within the public bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fogline.accounting import HellingerBudget
from fogline.families import Family
from fogline.report.findings import column_names, python_call, versions
from fogline.report.svg import plus_minus

if TYPE_CHECKING:
    from fogline.estimators import PrivateHellinger

__all__ = ["FitCurve", "FitFindings", "ParameterRow", "find_fit", "fit_document", "privacy_words"]

FloatArray = NDArray[np.float64]

POINTS = 500
"""Points of a curve."""

TAIL = 0.002
"""A picture shows the fitted law between its quantiles of this level, and some more on either side."""


@dataclass(frozen=True)
class ParameterRow:
    """One parameter: its estimate, the parts of its error, its interval."""

    name: str
    estimate: float
    standard_error: float
    privacy_error: float
    sampling_error: float
    interval: tuple[float, float]

    @property
    def words(self) -> tuple[str, ...]:
        """Estimate, standard error, privacy part and sampling part for people."""
        return plus_minus(self.estimate, [self.standard_error, self.privacy_error, self.sampling_error])

    @property
    def interval_words(self) -> tuple[str, str]:
        """Both ends of the interval for people."""
        low, high = (plus_minus(end, [self.standard_error])[0] for end in self.interval)
        return low, high


@dataclass(frozen=True, eq=False)
class FitCurve:
    """The fit along one column.

    Attributes
    ----------
    axis : array of shape (n,)
    released, sd : arrays of shape (n,), or None
        The released density and its standard error, noise and sampling together; a descent releases none.
    smoothed : array of shape (n,), or None
        The explained share of the family, as smooth as the release.
    plain : array of shape (n,)
        The same, not smoothed.
    """

    axis: FloatArray
    released: FloatArray | None
    sd: FloatArray | None
    smoothed: FloatArray | None
    plain: FloatArray


@dataclass(frozen=True, eq=False)
class FitFindings:
    """A fit, read for people.

    Attributes
    ----------
    estimator : PrivateHellinger
        Fitted.
    columns : tuple of str
    family : Family
    bounds, parameter_bounds : arrays of shape (d, 2) and (m, 2)
        Public ranges of the data and of the parameters.
    rows : tuple of ParameterRow
    curve : FitCurve or None
        Where there is one column.
    """

    estimator: PrivateHellinger
    columns: tuple[str, ...]
    family: Family
    bounds: FloatArray
    parameter_bounds: FloatArray
    rows: tuple[ParameterRow, ...]
    curve: FitCurve | None

    @property
    def theta(self) -> FloatArray:
        """The estimates, in the order of the family's parameters."""
        return np.array([row.estimate for row in self.rows])

    @property
    def title(self) -> str:
        """What was fitted to what."""
        article = "an" if self.family.name[:1] in "aeiou" else "a"
        return f"{', '.join(self.columns)}: {article} {self.family.name} fit"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the parameters; where there are several columns, with those that each is about."""
        return tuple(_label(row.name, self.columns) for row in self.rows)


def _label(name: str, columns: tuple[str, ...]) -> str:
    """Say which columns a parameter is about: mu_1 is about the first, corr_12 about the first and the second.

    Examples
    --------
    >>> _label("corr_12", ("height", "weight")), _label("mu", ("height",))
    ('corr_12 (height, weight)', 'mu')
    """
    numbered = {str(j + 1): column for j, column in enumerate(columns)}
    digits = name.rpartition("_")[2]
    if len(columns) == 1 or not digits or not set(digits) <= set(numbered):
        return name
    return f"{name} ({', '.join(numbered[digit] for digit in digits)})"


def find_fit(estimator: PrivateHellinger, columns: Sequence[str] | None = None) -> FitFindings:
    """Read what a page shows from a fitted family; costs no privacy."""
    family, box, bounds = estimator._family()
    rows = tuple(
        ParameterRow(
            name=row["parameter"],
            estimate=row["estimate"],
            standard_error=row["standard_error"],
            privacy_error=row["privacy_error"],
            sampling_error=row["sampling_error"],
            interval=(row["low"], row["high"]),
        )
        for row in estimator.summary().rows
    )
    curve = _curve(estimator, family, bounds) if family.dimension == 1 else None
    return FitFindings(estimator, column_names(estimator, columns), family, bounds, box, rows, curve)


def _curve(estimator: PrivateHellinger, family: Family, bounds: FloatArray) -> FitCurve:
    theta, density, bandwidth = np.array(list(estimator.params_.values())), estimator.density_, estimator.bandwidth_
    axis = np.linspace(*_limits(estimator, family, theta, bounds), POINTS)
    explained = estimator.explained_
    plain = family.pdf(theta, axis)
    if density is None or explained is None:
        return FitCurve(axis, None, None, None, plain)
    released = density.pdf(axis[:, None], bandwidth)
    kernel = 1.0 / (2.0 * math.sqrt(math.pi) * float(bandwidth[0]))
    sampling = kernel * np.maximum(released, 0.0) / density.count
    return FitCurve(
        axis=axis,
        released=released,
        sd=np.sqrt(density.noise_sd(bandwidth) ** 2 + sampling),
        smoothed=explained.share * family.convolved(theta, axis, bandwidth),
        plain=explained.share * plain,
    )


def _limits(estimator: PrivateHellinger, family: Family, theta: FloatArray, bounds: FloatArray) -> tuple[float, float]:
    """Where the fitted law and the lumps beside it lie, within the bounds."""
    low, high = (float(end) for end in bounds[0])
    if not hasattr(family, "quantile"):
        return low, high
    ends = [float(end) for end in family.quantile(theta, [TAIL, 1.0 - TAIL])]
    lumps = () if estimator.explained_ is None else estimator.explained_.lumps
    ends += [end for lump in lumps for end in (lump.low[0], lump.high[0])]
    room = 0.12 * (max(ends) - min(ends)) + 2.0 * float(estimator.bandwidth_[0])
    least, greatest = max(low, min(ends) - room), min(high, max(ends) + room)
    return (least, greatest) if least < greatest else (low, high)


def privacy_words(estimator: PrivateHellinger) -> list[str]:
    """Return what a budget in another currency than epsilon and delta means, in plain words.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import PrivateHellinger
    >>> fit = PrivateHellinger(family="exponential", parameter_bounds={"scale": (1, 9)}, hdp=0.2).fit(np.ones((50, 1)))
    >>> "at most 0.718" in privacy_words(fit)[0], "epsilon = 4.287" in privacy_words(fit)[0]
    (True, True)
    """
    guarantee = estimator.guarantee_
    meaning = f"epsilon = {guarantee.epsilon:.4g} at delta = {guarantee.delta:g}"
    if estimator.hdp is not None:
        budget = HellingerBudget(estimator.hdp)
        chance = math.ceil(500 * (1 + budget.total_variation) + 1e-9) / 1000
        return [
            f"The budget was given as {estimator.hdp:g}-HDP: the squared Hellinger distance between what is published "
            f"and what would be, with one neighbour's data instead, is at most {estimator.hdp:g}. Whoever must guess "
            f"which of the two it was, each as likely, is right with a chance of at most {chance:g}. As the noise is "
            f"Gaussian it means more: {meaning}, which is the guarantee stated above."
        ]
    if estimator.pdp is not None:
        power, level = estimator.pdp
        return [
            f"The budget was given as ({power:g}, {level:g})-PDP, a bound of {level:g} on the power divergence of "
            f"order {power:g}. With Gaussian noise it means {meaning}, which is the guarantee stated above."
        ]
    if estimator.rho is not None:
        return [f"The budget was given as {estimator.rho:g}-zCDP, which means {meaning}, and less at a greater delta."]
    return []


def fit_document(findings: FitFindings, command: str | None = None) -> dict[str, Any]:
    """Return the findings as plain values for JSON."""
    estimator, density = findings.estimator, findings.estimator.density_
    pairs = zip(findings.rows, findings.parameter_bounds.tolist(), strict=True)
    return {
        "format": "fogline-fit-1",
        "command": command or python_call(estimator),
        "columns": list(findings.columns),
        "bounds": findings.bounds.tolist(),
        "family": findings.family.name,
        "method": estimator.method,
        "confidence": estimator.confidence,
        "parameters": [
            {
                "name": row.name,
                "estimate": row.estimate,
                "standard_error": row.standard_error,
                "privacy_error": row.privacy_error,
                "sampling_error": row.sampling_error,
                "interval": list(row.interval),
                "bounds": pair,
            }
            for row, pair in pairs
        ],
        "covariance": estimator.covariance_.tolist(),
        "explained": _explained_document(estimator.explained_),
        "path": None if estimator.path_ is None else estimator.path_.tolist(),
        "message": estimator.message_,
        "count": None if density is None else {"value": density.count, "standard_error": density.count_sd},
        "guarantee": {**estimator.guarantee_.to_dict(), "statement": str(estimator.guarantee_)},
        "currency": privacy_words(estimator),
        "bandwidth": estimator.bandwidth_.tolist(),
        "versions": versions(),
    }


def _explained_document(explained: Any) -> dict[str, Any] | None:
    if explained is None:
        return None
    lumps = [{"low": list(lump.low), "high": list(lump.high), "share": lump.share} for lump in explained.lumps]
    return {"share": explained.share, "standard_error": explained.standard_error, "lumps": lumps}
