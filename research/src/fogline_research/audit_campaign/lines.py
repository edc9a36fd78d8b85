"""One line of the long audit, and how long it may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["BOX", "CONFIDENCE", "OUTLIER", "RELATIONS", "WIDE_BOX", "Check", "Line", "lines_of"]

CONFIDENCE = 0.99
"""Of each line on its own."""

RELATIONS = ("add-remove", "replace")
BOX = ((-3.0, 10.0), (0.0, 5.0))
WIDE_BOX = (*BOX, (2.0, 10.0), (-1.0, 0.0), (0.0, 100.0))
OUTLIER = np.array([30.0, 30.0])


@dataclass(frozen=True)
class Line:
    """What was checked, what was found, and whether it is as it should be.

    Attributes
    ----------
    check, found : str
    passed : bool
        For an attack on an algorithm whose claim is known to be false: whether the attack succeeded.
    claim : str
        What the algorithm claims.
    section : str
        The table of the page that the line belongs to.
    verdict : str
        In a word or two; by default "stands" or "FAILED".
    """

    check: str
    found: str
    passed: bool
    claim: str = ""
    section: str = "estimators"
    verdict: str = ""


Check = Callable[[int, bool], Iterator[Line]]
"""Takes a seed and whether to be short."""


def lines_of(check: Check, seed: int, short: bool) -> list[Line]:
    """Run a check to its end; stands here since another process cannot import a program's main module by its name.

    Examples
    --------
    >>> lines_of(lambda seed, short: iter([Line("a check", str(seed), True)]), 7, True)[0].found
    '7'
    """
    return list(check(seed, short))
