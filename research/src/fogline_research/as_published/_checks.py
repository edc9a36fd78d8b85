"""What the published algorithms ask of their input beyond `fogline._validation`.

They have no rule for missing values, so unlike the certified estimators they refuse them aloud. That an error
may depend on a record is one more way in which they are not private.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fogline._validation import check_positive, records

__all__ = ["NotPrivate", "check_fraction", "complete_records", "frozen_array"]


@dataclass(frozen=True, kw_only=True)
class NotPrivate:
    """Stands where a `Guarantee` would: nothing is claimed.

    A `Guarantee` cannot say this, since an infinite epsilon is an error there, and rightly so. The names that
    readers of a guarantee look at are the same.

    Examples
    --------
    >>> print(NotPrivate(mechanism="mean shift", reason="a function of the raw records, without noise"))
    Not private (mean shift): a function of the raw records, without noise.
    """

    mechanism: str
    reason: str
    certified: ClassVar[bool] = False
    epsilon: ClassVar[float] = float("inf")
    delta: ClassVar[float] = 1.0
    rho: ClassVar[None] = None
    proof: ClassVar[str] = ""

    def __str__(self) -> str:
        return f"Not private ({self.mechanism}): {self.reason}."


def complete_records(X: object, name: str = "X", d: int | None = None) -> NDArray[np.float64]:
    """Return `X` as a finite float array of shape (n, d) with at least one row.

    Examples
    --------
    >>> complete_records([1, 2, 3]).shape
    (3, 1)
    """
    array = records(X, public=True)  # nothing is claimed here
    if array.shape[0] == 0:
        raise ValueError(f"{name} must hold at least one row")
    if d is not None and array.shape[1] != d:
        raise ValueError(f"{name} must have {d} columns, as X has, got {array.shape[1]}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite: the published algorithms have no rule for missing values")
    return array


def check_fraction(value: object, name: str) -> float:
    """Return `value` as a float in (0, 1].

    Examples
    --------
    >>> check_fraction(1, "density_filter")
    1.0
    """
    number = check_positive(value, name)
    if number > 1.0:
        raise ValueError(f"{name} must lie in (0, 1], got {number!r}")
    return number


def frozen_array(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy of `values` that cannot be written to: results are frozen all the way down.

    Examples
    --------
    >>> frozen_array(np.zeros(2)).flags.writeable
    False
    """
    copy = np.array(values, dtype=np.float64)
    copy.setflags(write=False)
    return copy
