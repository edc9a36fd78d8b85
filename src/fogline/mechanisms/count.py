"""A private count: one integer, noisy, and never below zero.

Under add-remove a unit with at most c records moves the count by at most c. With a zCDP budget the noise is a
discrete Gaussian, with a pure one a discrete Laplace. Cutting at zero afterwards is post-processing.
Proof: ``count.proof.md``, beside this file.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fogline._typing import IntArray
from fogline._validation import check_max_contributions
from fogline.accounting.events import GaussianEvent, LaplaceEvent
from fogline.mechanisms.discrete_gaussian import add_gaussian
from fogline.mechanisms.discrete_laplace import add_laplace

__all__ = ["NoisyCount", "private_count"]


@dataclass(frozen=True)
class NoisyCount:
    """A released count.

    Parameters
    ----------
    value : int
        At least 0.
    scale : float
        Of the noise: a discrete Gaussian or Laplace, as `event` says.
    event : GaussianEvent or LaplaceEvent
        What was done, for the accounting.
    """

    value: int
    scale: float
    event: GaussianEvent | LaplaceEvent


def private_count(
    query: Callable[[], int],
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    max_contributions: int = 1,
) -> NoisyCount:
    """Release a count under rho-zCDP or epsilon-DP.

    Parameters
    ----------
    query : callable
        Returns the exact count. Called once, after the noise was drawn.
    rho, epsilon : float
        Exactly one of them: Gaussian noise for `rho`, Laplace noise for `epsilon`.
    max_contributions : int
        By how much one unit may move the count.

    Returns
    -------
    NoisyCount

    Examples
    --------
    >>> private_count(lambda: 1000, epsilon=1.0).value > 900
    True
    """
    bound = check_max_contributions(max_contributions)

    def exact() -> IntArray:
        return np.array([operator.index(query())], dtype=np.int64)

    if rho is not None and epsilon is None:
        gaussian = add_gaussian(exact, size=1, sensitivity=bound, rho=rho)
        return NoisyCount(max(0, int(gaussian.values[0])), gaussian.scale, gaussian.event)
    if epsilon is not None and rho is None:
        laplace = add_laplace(exact, size=1, sensitivity=bound, epsilon=epsilon)
        return NoisyCount(max(0, int(laplace.values[0])), laplace.scale, laplace.event)
    raise TypeError("exactly one of rho and epsilon must be given")
