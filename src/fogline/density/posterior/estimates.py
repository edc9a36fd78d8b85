"""What the posterior answers: a value, its error and where the error comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from fogline._typing import FloatArray

__all__ = [
    "TARGETS",
    "Atom",
    "Band",
    "Estimate",
    "Target",
    "as_wide_as_normal",
    "check_target",
    "error_parts",
    "number_like",
    "simultaneous_band",
    "told",
    "whole_records",
]

Target = Literal["population", "records"]
TARGETS: tuple[Target, ...] = ("population", "records")


def told(value: float | FloatArray, error: float) -> str:
    """A number with four digits, or as many as its error leaves known: large numbers may have small errors.

    Examples
    --------
    >>> told(2.9134, 0.05), told(18_998.2, 0.96), told(18_998.0, 0.0)
    ('2.913', '18998.2', '18998')
    """
    size = abs(float(value))
    known = 0.0 if size == 0 or error <= 0 else math.floor(math.log10(size)) - math.floor(math.log10(error)) + 2
    whole = len(str(round(size))) if error <= 0 and size == round(size) < 1e12 else 0
    return f"{float(value):.{int(min(max(4, known, whole), 12))}g}"


@dataclass(frozen=True)
class Estimate:
    """A number, or an array of numbers, with its whole error.

    Parameters
    ----------
    value : float or array
    standard_error : float or array
        Of all error together: privacy noise, smoothing and, for the population, sampling of the records.
    low, high : float or array
        Ends of the interval that holds the true value with probability `level`; the same errors are in it.
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
        value, low, high = (told(part, float(self.standard_error)) for part in (self.value, self.low, self.high))
        return f"{value} ± {self.standard_error:.2g} ({100 * self.level:g}% interval {low} to {high}; {parts})"

    def __getitem__(self, index: int) -> Estimate:
        names = ("value", "standard_error", "low", "high", "privacy", "sampling", "smoothing")
        part: dict[str, Any] = {name: float(np.asarray(getattr(self, name))[index]) for name in names}
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
        The curve and the simultaneous band, which contains privacy noise, the sampling of the records and smoothing.
    pointwise_low, pointwise_high : array
        Intervals of single points, with privacy noise, sampling and smoothing inside.
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


def as_wide_as_normal(found: Estimate, least: float, most: float) -> Estimate:
    """Widen the interval of a moment to that of a normal law with its standard error, within what is possible.

    A few records far out move a moment much. Draws put some there by chance, nearly all of them; that there are none is
    at the edge of what they show, and must lie inside the interval.
    """
    reach = -float(ndtri((1 - found.level) / 2)) * found.standard_error
    low, high = max(float(found.value - reach), least), min(float(found.value + reach), most)
    return replace(found, low=min(float(found.low), low), high=max(float(found.high), high))


def error_parts(error: Any, draws: FloatArray, even: FloatArray, sampling: Any, least: Any) -> tuple[Any, Any, Any]:
    """Parts of a standard error whose squares add up to its square: privacy, sampling, smoothing.

    Sampling is that of the influence function, smoothing what draws have beyond those that spread evenly, privacy the
    rest. Prior knowledge makes the whole smaller than these parts now and then. Privacy then is at least its share of
    the variance of counts, and all three shrink in proportion.

    Parameters
    ----------
    error : float or array
        The whole standard error.
    draws, even : array
        Answers per draw, and those of draws whose records spread evenly inside their buckets.
    sampling, least : float or array
        Variance of sampling, and the least one of privacy.

    Examples
    --------
    >>> drawn = np.array([-5.0, 5.0])
    >>> tuple(float(part) for part in error_parts(5.0, drawn, drawn, 16.0, 1.0))
    (3.0, 4.0, 0.0)
    """
    whole = np.square(error)
    smoothing = np.clip(draws.var(axis=0) - even.var(axis=0), 0, None)
    privacy = np.maximum(whole - sampling - smoothing, np.minimum(least, whole))
    scale = whole / np.maximum(privacy + sampling + smoothing, 1e-300)
    found = [np.sqrt(part * scale) for part in (privacy, sampling, smoothing)]
    return found[0], found[1], found[2]


def number_like(before: float | FloatArray, after: FloatArray) -> float | FloatArray:
    """A number where there was a number."""
    return after if np.ndim(before) else float(after)


def whole_records(found: Estimate, count: float) -> Estimate:
    """Move the ends of an interval for the records' share outward to whole records: a table has no halves.

    Examples
    --------
    >>> share = Estimate(0.5, 0.1, 0.33, 0.67, 0.95, "records", 0.1, 0.0, 0.0)
    >>> whole_records(share, 10.0).interval
    (0.3, 0.7)
    """
    if found.target != "records":
        return found
    low, high = np.asarray(found.low), np.asarray(found.high)
    # the number of all records is known with noise and need not be whole: an end may be so many records more than
    # none, or fewer than all, and the outer one of both counts, or an interval would just miss none or all
    near = 1e-6  # of a record: what rounding may leave
    low = np.minimum(np.floor(low * count + near), count - np.ceil((1 - low) * count - near)) / count
    high = np.maximum(np.ceil(high * count - near), count - np.floor((1 - high) * count + near)) / count
    ends = np.minimum(np.maximum(low, 0.0), found.value), np.maximum(np.minimum(high, 1.0), found.value)
    return replace(found, low=number_like(found.low, ends[0]), high=number_like(found.high, ends[1]))


def simultaneous_band(x: FloatArray, value: FloatArray, draws: FloatArray, level: float, unseen: FloatArray) -> Band:
    """Scale pointwise intervals, on each side by their own length, until they hold whole curves."""
    tails = (1 - level) / 2
    low, high = np.quantile(draws, [tails, 1 - tails], axis=0)
    low, high = np.minimum(low, value), np.maximum(high, value)
    above, below = (np.maximum(part, 0.5 * unseen) for part in (high - value, value - low))
    reach = np.where(draws > value, (draws - value) / above, (value - draws) / below)
    factor = max(1.0, float(np.quantile(reach.max(axis=1), level)))
    wide_low = np.maximum(value - np.maximum(factor * below, unseen), 0.0)
    wide_high = value + np.maximum(factor * above, unseen)
    return Band(x, value, wide_low, wide_high, low, high, level)


def check_target(target: str) -> None:
    """Refuse what is no target."""
    if target not in TARGETS:
        raise ValueError(f"target must be 'population' or 'records', got {target!r}")
