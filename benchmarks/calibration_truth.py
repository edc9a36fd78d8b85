"""What is true of a made set: exact distribution functions and moments, of the population and of drawn records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fogline_research.datasets.columns import Column, Law, PointMasses

__all__ = ["ColumnTruth", "RecordTruth", "Truth", "column_truth"]

Array = NDArray[np.float64]
STRATA = 200_000
"""Points of the midpoint rule for moments of a law."""


class Truth(Protocol):
    """Distribution function and moments of one column."""

    @property
    def mean(self) -> float:
        """Mean."""
        ...

    @property
    def variance(self) -> float:
        """Variance."""
        ...

    def at_most(self, x: Any) -> Array:
        """P(X <= x)."""
        ...

    def below(self, x: Any) -> Array:
        """P(X < x)."""
        ...


@dataclass(frozen=True, eq=False)
class RecordTruth:
    """The table itself.

    Examples
    --------
    >>> table = RecordTruth(np.array([1.0, 2.0, 2.0, 5.0]))
    >>> table.below(2.0).item(), table.at_most(2.0).item(), table.mean
    (0.25, 0.75, 2.5)
    """

    ordered: Array

    @cached_property
    def mean(self) -> float:
        """Mean."""
        return float(self.ordered.mean())

    @cached_property
    def variance(self) -> float:
        """Variance."""
        return float(self.ordered.var())

    def at_most(self, x: Any) -> Array:
        """P(X <= x)."""
        return np.asarray(np.searchsorted(self.ordered, x, side="right") / len(self.ordered))

    def below(self, x: Any) -> Array:
        """P(X < x)."""
        return np.asarray(np.searchsorted(self.ordered, x, side="left") / len(self.ordered))


@dataclass(frozen=True, eq=False)
class ColumnTruth:
    """The population of a made column, exactly.

    Examples
    --------
    >>> from fogline_research.datasets.columns import column_named
    >>> zeros = ColumnTruth(column_named("30% zeros, gamma(2)"))
    >>> zeros.below(0.0).item(), round(zeros.at_most(0.0).item(), 3), round(zeros.mean, 1)
    (0.0, 0.3, 14.0)
    """

    column: Column

    def at_most(self, x: Any) -> Array:
        """P(X <= x)."""
        return np.asarray(sum(part.weight * self._of_part(part, np.asarray(x), "right") for part in self.column.parts))

    def below(self, x: Any) -> Array:
        """P(X < x)."""
        return np.asarray(sum(part.weight * self._of_part(part, np.asarray(x), "left") for part in self.column.parts))

    def _of_part(self, part: Law | PointMasses, x: Array, side: Any) -> Array:
        low, high = self.column.box
        if isinstance(part, PointMasses):
            order = np.argsort(part.values)
            cumulative = np.r_[0.0, np.cumsum(part.probabilities[order])]
            return np.asarray(cumulative[np.searchsorted(part.values[order], x, side=side)])
        first, last = (0.0, 1.0) if part.clip else (part.law.cdf(low), part.law.cdf(high))
        share = (part.law.cdf(x) - first) / (last - first)
        none, all_of_it = (x < low, x >= high) if side == "right" else (x <= low, x > high)
        return np.asarray(np.where(none, 0.0, np.where(all_of_it, 1.0, share)))

    @cached_property
    def _moments(self) -> tuple[float, float]:
        low, high = self.column.box
        first = second = 0.0
        for part in self.column.parts:
            if isinstance(part, PointMasses):
                x, weight = np.clip(part.values, low, high), part.weight * part.probabilities
            else:
                start, stop = (0.0, 1.0) if part.clip else (part.law.cdf(low), part.law.cdf(high))
                u = start + (stop - start) * (np.arange(STRATA) + 0.5) / STRATA
                x, weight = np.clip(part.law.ppf(u), low, high), np.full(STRATA, part.weight / STRATA)
            first, second = first + float(weight @ x), second + float(weight @ x**2)
        return first, second - first**2

    @property
    def mean(self) -> float:
        """Mean."""
        return self._moments[0]

    @property
    def variance(self) -> float:
        """Variance."""
        return self._moments[1]


@lru_cache(maxsize=64)
def column_truth(column: Column) -> ColumnTruth:
    """Truth of a column, kept because its moments take a moment."""
    return ColumnTruth(column)
