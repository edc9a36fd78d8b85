"""What both kinds of sketch specification have: a public box, planned bandwidths, and pickles without caches."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PublicBox"]

FloatArray = NDArray[np.float64]


class PublicBox:
    """Base of the specifications, which are frozen dataclasses with these fields.

    Attributes
    ----------
    bounds : tuple of (float, float)
        The box, one pair an axis.
    scales : tuple of tuple of float
        Planned bandwidths in data units, smallest first.
    """

    bounds: tuple[tuple[float, float], ...]
    scales: tuple[tuple[float, ...], ...]

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: what was computed from them so far would tell how a sketch was used."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def d(self) -> int:
        """Number of axes."""
        return len(self.bounds)

    @cached_property
    def lower(self) -> FloatArray:
        """Lower corner of the box."""
        return np.array([lo for lo, _ in self.bounds])

    @cached_property
    def upper(self) -> FloatArray:
        """Upper corner of the box."""
        return np.array([hi for _, hi in self.bounds])

    @cached_property
    def widths(self) -> FloatArray:
        """Side lengths of the box."""
        return self.upper - self.lower

    @cached_property
    def planned(self) -> FloatArray:
        """Planned bandwidths as an array of shape (scales, axes), in data units."""
        return np.array(self.scales)

    @property
    def readable(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest bandwidth that can be read from a release, in data units."""
        raise NotImplementedError

    def require_readable(self, bandwidth: FloatArray, *, name: str = "bandwidth") -> None:
        """Raise an error if a release cannot be read at a bandwidth."""
        low, high = self.readable
        if np.any(bandwidth < low * (1 - 1e-9)) or np.any(bandwidth > high * (1 + 1e-9)):
            raise ValueError(
                f"{name} {bandwidth.tolist()} is outside the range of this release, {low.tolist()} to {high.tolist()}"
            )
