"""What every method of a private Gaussian mixture comes back with."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline.locate.answers import NotSeparable
from fogline.sketch.private_density import PrivateDensity

__all__ = ["MixtureFit"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """A mixture in data units, with its errors; released values only.

    Attributes
    ----------
    weights : array of shape (k,)
        Sum to one.
    means : array of shape (k, d)
    covariances : array of shape (k, d, d)
    counts : array of shape (k,)
        Noisy number of records of each component.
    count_sd : float
        Noise of those numbers.
    mean_sd : array of shape (k, d)
        Standard error of each coordinate of a mean: privacy noise and the draw of the records.
    verdict : NotSeparable or None
        What could not be told apart, where that is so; the mixture is then what can be stood behind.
    composition : dict
        The cost of all releases by zCDP, and what advanced composition would have charged, where they were compared.
    density : PrivateDensity or None
        The released density, where there is one.
    components, centre : arrays of shapes (r, d) and (d,), or None
        Orthonormal directions of that density and the point they start from; its coordinates are in radii.
    criteria : dict
        Criterion of each number of components that was tried on it.
    whole : (float, float) or None
        Released number of all records and its noise, where it is known better than by the sum over components.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    counts: FloatArray
    count_sd: float
    mean_sd: FloatArray
    verdict: NotSeparable | None = None
    composition: dict[str, Any] = field(default_factory=dict)
    density: PrivateDensity | None = None
    components: FloatArray | None = None
    centre: FloatArray | None = None
    criteria: dict[int, float] = field(default_factory=dict)
    whole: tuple[float, float] | None = None

    @property
    def total(self) -> tuple[float, float]:
        """Released number of all records, at least 1, and its noise."""
        if self.whole is not None:
            return self.whole
        return max(float(self.counts.sum()), 1.0), self.count_sd * math.sqrt(len(self.counts))
