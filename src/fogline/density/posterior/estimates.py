"""What the posterior answers: a value, its error and where the error comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fogline._typing import FloatArray

__all__ = ["TARGETS", "Atom", "Band", "Estimate", "Target"]

Target = Literal["population", "records"]
TARGETS: tuple[Target, ...] = ("population", "records")


@dataclass(frozen=True)
class Estimate:
    """A number, or an array of numbers, with its whole error.

    Parameters
    ----------
    value : float or array
    standard_error : float or array
        Of all error together: privacy noise, smoothing and, for the population, sampling of the records.
    low, high : float or array
        Ends of the interval that holds the true value with probability `level`.
    level : float
    target : {"population", "records"}
        Whether the true value is that of the density behind the records, or that of the table itself.
    privacy, sampling, smoothing : float or array
        Parts of the standard error; their squares add up to its square as nearly as they can be told apart.
    message : str
        What to know of it, such as that a range lies outside the released bounds; mostly empty.

    Examples
    --------
    >>> print(Estimate(4.0, 0.5, 3.0, 5.0, 0.95, "population", 0.3, 0.4, 0.0))
    4 ± 0.5 (95% interval 3 to 5; privacy 0.3, sampling 0.4, smoothing 0)
    """

    value: float | FloatArray
    standard_error: float | FloatArray
    low: float | FloatArray
    high: float | FloatArray
    level: float
    target: Target
    privacy: float | FloatArray
    sampling: float | FloatArray
    smoothing: float | FloatArray
    message: str = ""

    @property
    def interval(self) -> tuple[float | FloatArray, float | FloatArray]:
        """Ends of the interval."""
        return self.low, self.high

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return f"{self._words} [{self.message}]" if self.message else self._words

    @property
    def _words(self) -> str:
        if np.ndim(self.value):
            return "\n".join(str(self[i]) for i in range(len(np.asarray(self.value))))
        parts = f"privacy {self.privacy:.2g}, sampling {self.sampling:.2g}, smoothing {self.smoothing:.2g}"
        return (
            f"{self.value:.4g} ± {self.standard_error:.2g} "
            f"({100 * self.level:g}% interval {self.low:.4g} to {self.high:.4g}; {parts})"
        )

    def __getitem__(self, index: int) -> Estimate:
        names = ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing")
        part = {name: float(np.asarray(getattr(self, name))[index]) for name in names}
        return Estimate(**part, level=self.level, target=self.target)

    def __len__(self) -> int:
        return len(np.atleast_1d(self.value))


@dataclass(frozen=True)
class Band:
    """A curve with a band that holds all of it at once with probability `level`.

    Parameters
    ----------
    x : array
        Places along the axis, in data units.
    value, low, high : array
        The curve and the simultaneous band.
    pointwise_low, pointwise_high : array
        Intervals of single points.
    level : float
    """

    x: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    pointwise_low: FloatArray
    pointwise_high: FloatArray
    level: float


@dataclass(frozen=True)
class Atom:
    """A value, or a cell too narrow to look into, that holds more mass than what surrounds it explains.

    Parameters
    ----------
    value : float
        The value, or the middle of the cell; at a wall of the box, the wall.
    low, high : float
        Ends of the cell.
    share : Estimate
        Part of the population that it holds beyond its surroundings.
    """

    value: float
    low: float
    high: float
    share: Estimate
