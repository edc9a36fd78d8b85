"""What a fit of a family to a release says: parameters, errors, intervals, and what they rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fogline._results import ReadingResults
from fogline._typing import FloatArray
from fogline.density.hellinger.outliers import ExcessMass
from fogline.families import Family

__all__ = ["FamilyFit", "FitAssumption", "parameter_intervals"]


@dataclass(frozen=True)
class FitAssumption:
    """What the intervals of a fit rest on.

    Attributes
    ----------
    holds : bool
        Whether the family was found to fit what was kept of the records.
    p_value : float
        Chance of residuals as large, if the family were right.
    hidden : float
        Share of other records that could hide in the family without being found, in the place that hides most.
    shift : float
        How far they could move an estimate, in standard errors.
    breakdown : float
        Where the family does not fit: how many times as far from the records as the best parameters the true ones are
        allowed to be.
    untold : str
        Why the records do not tell the parameters at all; else empty.
    """

    holds: bool
    p_value: float
    hidden: float
    shift: float
    breakdown: float
    untold: str = ""

    def __str__(self) -> str:
        if self.untold:
            return f"{self.untold}: the intervals are the bounds of the parameters"
        if not self.holds:
            return (
                f"the family does not fit all of the records (p = {self.p_value:.1g}): intervals are widened to "
                f"parameters up to {self.breakdown:g} times as far from the records as the best ones"
            )
        told = "the intervals hold if the records are of the family"
        if self.shift > 0.5:
            told += (
                f"; up to {100 * self.hidden:.2g}% of other records could hide in it and move an estimate by "
                f"{self.shift:.1f} standard errors: for such contamination the intervals are no promise, "
                "robust_intervals allow for it"
            )
        return told


@dataclass(frozen=True, eq=False, repr=False)
class FamilyFit(ReadingResults):
    """A family fitted to a released density; all of it read from released numbers.

    Attributes
    ----------
    family : Family
    columns : tuple of str
        Columns that it was fitted to.
    params, standard_errors : dict
        Estimates and their standard errors by parameter: privacy noise, the sampling of the records and smoothing.
    intervals, robust_intervals : dict
        (low, high) by parameter at `level`, with privacy, sampling and smoothing inside; the second hold for hidden
        contamination as well, as `assumption` describes it.
    level : float
    covariance, sampling_covariance, smoothing_covariance : arrays of shape (m, m)
        Error of the estimates in all, and its parts; the rest is the privacy noise.
    share, share_error : float
        Part of the records that the family explains, and its standard error: privacy noise, the sampling of the records
        and smoothing.
    lumps : tuple of ExcessMass
        Where more records lie than the family puts there; they had no say in the fit.
    assumption : FitAssumption
    message : str
        What to beware of; else empty.
    box : array of shape (m, 2)
        Bounds of the parameters.
    widening, robust_widening : arrays of shape (m, 2)
        How far the intervals reach below and above the estimates beside their errors.

    Examples
    --------
    >>> from fogline.density.hellinger.leaf_fit import fit_posterior
    >>> from fogline.density.posterior.posterior import example_posterior
    >>> fit = fit_posterior(example_posterior(), "exponential", parameter_bounds={"scale": (0.2, 10)})
    >>> low, high = fit.intervals["scale"]
    >>> low < fit.params["scale"] < high
    True
    """

    family: Family
    columns: tuple[str, ...]
    params: dict[str, float]
    standard_errors: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    robust_intervals: dict[str, tuple[float, float]]
    level: float
    covariance: FloatArray
    sampling_covariance: FloatArray
    smoothing_covariance: FloatArray
    share: float
    share_error: float
    lumps: tuple[ExcessMass, ...]
    assumption: FitAssumption
    message: str
    box: FloatArray
    widening: FloatArray
    robust_widening: FloatArray

    def intervals_at(self, level: float, *, robust: bool = False) -> dict[str, tuple[float, float]]:
        """Intervals at another level, by parameter."""
        theta, errors = (np.array(list(part.values())) for part in (self.params, self.standard_errors))
        wider = self.robust_widening if robust else self.widening
        return parameter_intervals(self.family, theta, errors, wider, self.box, level)

    @property
    def privacy_covariance(self) -> FloatArray:
        """What the privacy noise adds to the error."""
        return np.asarray(self.covariance - self.sampling_covariance - self.smoothing_covariance)

    def __str__(self) -> str:
        lines = [f"{self.family.name} family of {', '.join(self.columns)}"]
        for name, value in self.params.items():
            low, high = self.intervals[name]
            error = self.standard_errors[name]
            lines.append(f"{name} {value:.4g} ± {error:.2g} ({100 * self.level:g}% interval {low:.4g} to {high:.4g})")
        lines.append(f"the family explains {100 * self.share:.0f}% ± {100 * self.share_error:.1f}% of the records")
        return "\n".join([*lines, str(self.assumption), *([self.message] if self.message else [])])

    __repr__ = __str__


def parameter_intervals(
    family: Family, theta: FloatArray, errors: FloatArray, wider: FloatArray, box: FloatArray, level: float
) -> dict[str, tuple[float, float]]:
    """Intervals: normal, of positive parameters in the logarithm, widened by `wider` below and above."""
    from scipy.special import ndtri  # here: who only reads a fit need not load it

    z = float(ndtri(0.5 + 0.5 * level))
    found = {}
    for j, name in enumerate(family.parameters):
        low, high = theta[j] - wider[j, 0], theta[j] + wider[j, 1]
        if family.limits[j][0] == 0.0 and theta[j] > 0:
            factor = math.exp(min(z * errors[j] / theta[j], 700.0))
            low, high = min(low, theta[j]) / factor, high * factor
        else:
            low, high = low - z * errors[j], high + z * errors[j]
        found[name] = (float(max(low, box[j, 0])), float(min(high, box[j, 1])))
    return found
