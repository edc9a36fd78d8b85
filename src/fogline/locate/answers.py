"""What a search for structure comes back with: a ball, or a plain statement that there is none to be seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ball", "NotSeparable"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ball:
    """A released ball that holds many records.

    Attributes
    ----------
    centre : array of shape (d,)
        In data units.
    radius : float
    count : float
        Noisy number of records inside; for a terrific ball the number that it was tested for.
    count_sd : float
        Its noise; for a terrific ball the slack of that test.
    stretch : float
        For a terrific ball the c for which hardly a record lies between the ball and its c-fold; else 1.
    """

    centre: FloatArray
    radius: float
    count: float
    count_sd: float
    stretch: float = 1.0


@dataclass(frozen=True)
class NotSeparable:
    """Nothing could be told apart. It cost what it cost; it is an answer and no error.

    It is false where a truth value is asked for.

    Attributes
    ----------
    method : str
        What was tried.
    found, wanted : int
        How many parts were seen, and how many were asked for.
    advice : str
        What would help.

    Examples
    --------
    >>> bool(NotSeparable("recursive", 1, 3, "more records"))
    False
    >>> print(NotSeparable("recursive", 1, 3, "take more records"))
    recursive: 1 of 3 parts could be told apart; take more records
    """

    method: str
    found: int
    wanted: int
    advice: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"{self.method}: {self.found} of {self.wanted} parts could be told apart; {self.advice}"
