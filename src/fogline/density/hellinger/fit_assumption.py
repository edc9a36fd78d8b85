"""What the intervals of a fitted family rest on, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FitAssumption"]


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
