"""What a fit tells: a table of the parameters, what part of the data is explained, a picture. Released values only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.accounting.cautions import release_cautions
from fogline.accounting.guarantee import Guarantee
from fogline.estimators._hellinger_fit import HellingerFit
from fogline.estimators._hellinger_lumps import Lump
from fogline.families import Family
from fogline.sketch.counted_records import is_nothing, joined
from fogline.sketch.private_density import PrivateDensity

__all__ = [
    "Explained",
    "FitSummary",
    "descent_message",
    "draw_fit",
    "estimates_of",
    "explained_part",
    "intervals",
    "message_of",
    "summary_of",
]

FloatArray = NDArray[np.float64]


FEW = 20.0
"""With fewer records than this a message says that errors are rough."""


@dataclass(frozen=True)
class Explained:
    """Which part of the records the family explains.

    Parameters
    ----------
    share : float
        Mass of the fitted family as a part of the released count, at most 1.
    standard_error : float
        Of the share, noise of the count included.
    lumps : tuple of Lump
        Where more records lie than the family, noise and chance put there; they had no say in the fit.
    """

    share: float
    standard_error: float
    lumps: tuple[Lump, ...]

    @property
    def contamination(self) -> float:
        """The rest of the records."""
        return 1.0 - self.share

    def __str__(self) -> str:
        told = f"the family explains {100 * self.share:.0f}% of the records (+- {100 * self.standard_error:.2g}%)"
        for lump in self.lumps:
            sides = " x ".join(f"{low:.4g} to {high:.4g}" for low, high in zip(lump.low, lump.high, strict=True))
            told += f"; {100 * lump.share:.0f}% in excess at {sides}"
        return told


@dataclass(frozen=True)
class FitSummary:
    """Table of a fit; prints as text.

    Parameters
    ----------
    family : str
    level : float
        Confidence of the intervals.
    rows : tuple of dict
        One a parameter: `parameter`, `estimate`, `standard_error`, `privacy_error`, `sampling_error`, `low`, `high`.
    notes : tuple of str
        What is explained, messages, the guarantee.
    """

    family: str
    level: float
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        interval = f"{100 * self.level:g}% interval"
        head = f"{self.family:12} {'estimate':>10} {'std. error':>10} {'(privacy':>10} {'sampling)':>10}  {interval}"
        lines = [head, "-" * len(head)]
        for row in self.rows:
            lines.append(
                f"{row['parameter']:12} {row['estimate']:10.4g} {row['standard_error']:10.3g} "
                f"{row['privacy_error']:10.3g} {row['sampling_error']:10.3g}  {row['low']:.4g} to {row['high']:.4g}"
            )
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__


def intervals(
    family: Family,
    estimates: Mapping[str, float],
    errors: Mapping[str, float],
    degrees: Mapping[str, float],
    box: FloatArray,
    level: float,
) -> dict[str, tuple[float, float]]:
    """Student's intervals of the parameters, of positive ones in their logarithm, within their public bounds.

    The error of a positive parameter grows with it, so that its logarithm is nearer to a normal law.
    """
    from scipy.special import stdtrit

    result = {}
    for (name, value), limit, (low, high) in zip(estimates.items(), family.limits, box.tolist(), strict=True):
        reach = float(stdtrit(degrees[name], 0.5 + 0.5 * level)) * errors[name]
        if limit[0] == 0.0:
            factor = math.exp(min(reach / value, 700.0))
            ends = (value / factor, value * factor)
        else:
            ends = (value - reach, value + reach)
        result[name] = (max(ends[0], low), min(ends[1], high))
    return result


def summary_of(fitted: Any, family: str, level: float) -> FitSummary:
    """Table of a fitted estimator."""
    parts = [np.sqrt(np.diag(part)) for part in (fitted.privacy_covariance_, fitted.sampling_covariance_)]
    rows = [
        {
            "parameter": name,
            "estimate": value,
            "standard_error": fitted.standard_errors_[name],
            "privacy_error": float(parts[0][j]),
            "sampling_error": float(parts[1][j]),
            "low": fitted.confidence_intervals_[name][0],
            "high": fitted.confidence_intervals_[name][1],
        }
        for j, (name, value) in enumerate(fitted.params_.items())
    ]
    told = ("" if fitted.explained_ is None else str(fitted.explained_), fitted.message_, str(fitted.guarantee_))
    return FitSummary(family, level, tuple(rows), tuple(note for note in told if note))


def explained_part(fit: HellingerFit, density: PrivateDensity) -> Explained:
    """Share of the released count that the fitted family explains, and what lies beside it."""
    variance = float(fit.privacy_covariance[-1, -1] + fit.sampling_covariance[-1, -1])
    count = density.count_sd / density.count
    error = float(np.sqrt(variance + (fit.share * count) ** 2))
    return Explained(min(fit.share, 1.0), error, fit.lumps)


def draw_fit(
    family: Family,
    theta: FloatArray,
    share: float,
    density: PrivateDensity | None,
    bandwidth: Any,
    box: FloatArray,
    ax: Any,
) -> Any:
    """Draw the released density with its noise, and the fit over it; limits come from the bounds."""
    if family.dimension != 1:
        raise ValueError("plot draws one column; with more, draw density_.grid() and the family yourself")
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("plot needs matplotlib: pip install 'fogline[plot]'") from None
        ax = plt.subplots()[1]
    x = np.linspace(box[0, 0], box[0, 1], 600)
    if density is None:
        ax.plot(x, family.pdf(theta, x), color="C1", label=f"{family.name} family")
    else:
        values, sd = density.pdf(x[:, None], bandwidth), density.noise_sd(bandwidth)
        ax.fill_between(x, values - 2 * sd, values + 2 * sd, color="C0", alpha=0.25, linewidth=0)
        ax.plot(x, values, color="C0", label="released density")
        ax.plot(x, share * family.convolved(theta, x, bandwidth), color="C1", label=f"{family.name} family, as smooth")
    ax.set_ylabel("density")
    ax.legend()
    return ax


def estimates_of(
    family: Family, theta: FloatArray, privacy: FloatArray, sampling: FloatArray, degrees: FloatArray
) -> dict[str, Any]:
    """Estimates and their errors, by the names of a fitted estimator's attributes."""
    errors = np.sqrt(np.diag(privacy + sampling)).tolist()
    return {
        "params_": dict(zip(family.parameters, theta.tolist(), strict=True)),
        "privacy_covariance_": privacy,
        "sampling_covariance_": sampling,
        "covariance_": privacy + sampling,
        "standard_errors_": dict(zip(family.parameters, errors, strict=True)),
        "degrees_of_freedom_": dict(zip(family.parameters, degrees.tolist(), strict=True)),
    }


def message_of(family: Family, box: FloatArray, theta: FloatArray, count: float, sd: float = 0.0) -> str:
    """What to beware of, from released values; no advice where nothing was counted."""
    if is_nothing(count, sd):
        return "the estimates are of noise alone"
    told = []
    if count < FEW:
        told.append(f"there are only about {count:.0f} records: errors are rough")
    width = box[:, 1] - box[:, 0]
    ends = (theta < box[:, 0] + 1e-3 * width) | (theta > box[:, 1] - 1e-3 * width)
    at_bound = [name for name, end in zip(family.parameters, ends, strict=True) if end]
    if at_bound:
        told.append(f"{' and '.join(at_bound)} lies at the end of parameter_bounds: widen them, if that is plausible")
    return "; ".join(told)


def descent_message(family: Family, box: FloatArray, theta: FloatArray, n: int, guarantee: Guarantee) -> str:
    """What to beware of after a descent, whose number of rows is public."""
    cautions = release_cautions(guarantee.epsilon, guarantee.delta, float(n))
    return joined(message_of(family, box, theta, float(n)), *cautions)
