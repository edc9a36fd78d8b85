r"""The discrete Laplace mechanism on integer vectors, and a private count.

To an integer vector that neighbours move by at most :math:`\Delta` in the sum of absolute values, add
independent noise with

.. math:: P(z) = \frac{1 - a}{1 + a}\,a^{|z|}, \quad z \in \mathbb Z, \qquad a = e^{-1/b}, \quad b \ge
          \Delta/\varepsilon .

The answer is :math:`\varepsilon`-DP.

A private count is one noisy integer, never below zero. Under add-remove a unit with at most c records moves the count
by at most c. With a zCDP budget the noise is a discrete Gaussian, with a pure one a discrete Laplace. Cutting at zero
afterwards is post-processing. Both proofs: ``discrete_laplace.proof.md``, beside this file.

References
----------
Ghosh, Roughgarden and Sundararajan (2012), Universally utility-maximizing privacy mechanisms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import IntArray
from fogline._validation import check_count, check_epsilon, check_max_contributions, check_positive
from fogline.accounting._rounding import round_up
from fogline.accounting.events import GaussianEvent, LaplaceEvent
from fogline.mechanisms import randomness as _opendp
from fogline.mechanisms.discrete_gaussian import add_gaussian
from fogline.mechanisms.lattice import exact_integers, in_steps, noisy_sum, sampled_scale
from fogline.mechanisms.randomness import (
    Call,
    EntropySource,
    Finish,
    Parameters,
    ask_provider,
    current_provider,
)

__all__ = [
    "NoisyCount",
    "NoisyCounts",
    "add_laplace",
    "laplace_reach",
    "laplace_scale",
    "laplace_tail",
    "private_count",
]

# OpenDP rounds its own bound up, by a few units in the last place: with this much more noise it is satisfied as well.
_MARGIN = 1 + Fraction(1, 2**49)
_DIGITS = Context(prec=60, Emin=-(10**17), Emax=10**17)


@dataclass(frozen=True)
class NoisyCounts:
    """A released integer vector.

    Parameters
    ----------
    values : int64 array
        The noisy values, clipped to plus or minus 2^61.
    scale : float
        The b of the discrete Laplace. Its standard deviation is a little below sqrt(2) times this.
    event : LaplaceEvent
        What was done, for the accounting.
    """

    values: IntArray
    scale: float
    event: LaplaceEvent


def laplace_scale(sensitivity: float, epsilon: float) -> float:
    """Return the scale at which the discrete Laplace is epsilon-DP, rounded up and at least 2^-10.

    Parameters
    ----------
    sensitivity : float
        Greatest distance between the exact vectors of neighbours, as a sum of absolute values.
    epsilon : float

    Examples
    --------
    >>> round(laplace_scale(1.0, 0.5), 12)
    2.0
    """
    sensitivity, epsilon = check_positive(sensitivity, "sensitivity"), check_epsilon(epsilon)
    scale = sampled_scale(Fraction(sensitivity) / Fraction(epsilon), "sensitivity / epsilon")
    return round_up(scale * _MARGIN)


def add_laplace(
    query: Callable[[], NDArray[Any]],
    *,
    size: int,
    sensitivity: float,
    epsilon: float,
    parameters: Parameters = (),
) -> NoisyCounts:
    """Release an integer vector under epsilon-DP.

    Parameters
    ----------
    query : callable
        Returns the exact vector, int64 of shape (size,). Called once, after the noise was drawn.
    size : int
        Public length of the vector.
    sensitivity : float
        Greatest distance between the exact vectors of neighbours, as a sum of absolute values. Below 1, which integers
        cannot move by, it counts as 1.
    epsilon : float
    parameters : tuple of (name, value)
        Further public facts for the record.

    Returns
    -------
    NoisyCounts

    Examples
    --------
    >>> import numpy as np
    >>> release = add_laplace(lambda: np.array([7, 9]), size=2, sensitivity=1, epsilon=0.5)
    >>> release.values.shape, round(release.scale, 6)
    ((2,), 2.0)
    """
    size = check_count(size, "size", minimum=0)
    sensitivity, epsilon = in_steps(sensitivity), check_epsilon(epsilon)
    scale = laplace_scale(sensitivity, epsilon)
    event = LaplaceEvent(sensitivity=sensitivity, scale=scale)
    # Two opinions before any noise is drawn: exact rationals, and for certified releases OpenDP's map.
    provider = current_provider()
    spent = Fraction(sensitivity) / Fraction(scale)
    if spent > epsilon or (provider.certified and _opendp.laplace_epsilon(scale, sensitivity) > epsilon):
        raise RuntimeError("the noise scale does not meet epsilon: nothing was released")

    def sample(source: EntropySource) -> Finish:
        noise = source.laplace(scale, size)
        return lambda exact: noisy_sum(exact_integers(exact, size), noise)

    call = Call("laplace", (("size", size), ("scale", scale), *parameters), sensitivity, "l1", event)
    return NoisyCounts(ask_provider(call, query, sample), scale, event)


def laplace_tail(scale: float, start: int) -> Decimal:
    r"""Return an upper bound, sharp to some 50 digits, on the probability that a draw is at least `start`.

    For ``start >= 0`` it is exactly :math:`a^{start}/(1 + a)`.

    Examples
    --------
    >>> round(float(laplace_tail(1.0, 3)), 6)
    0.036397
    """
    start = check_count(start, "start", minimum=0)
    # the float as the binary number that it is
    inverse = _DIGITS.divide(Decimal(1), Decimal(check_positive(scale, "scale")))
    ratio = _DIGITS.exp(-inverse)
    tail = _DIGITS.divide(_DIGITS.exp(_DIGITS.multiply(-inverse, Decimal(start))), _DIGITS.add(1, ratio))
    # Five operations at 60 digits, with an exponent that magnifies the error of the quotient at most
    # start/scale times: far below this, as long as start/scale is below 10^8.
    return _DIGITS.multiply(tail, Decimal(1) + Decimal(10) ** -50)


def laplace_reach(scale: float, probability: Fraction | float) -> int:
    """Return the least integer k >= 0 for which a draw is at least k with at most this probability.

    Examples
    --------
    >>> laplace_reach(1.0, 0.01)
    5
    """
    target = Fraction(probability)
    if target <= 0:
        raise ValueError("probability must be greater than 0")

    # compared as a fraction: rounding to a float could turn the answer around
    def exceeds(start: int) -> bool:
        return Fraction(laplace_tail(scale, start)) > target

    low, high = -1, 1
    # Doubling, then bisection: the tail falls, so the first that does not exceed is the least.
    while exceeds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


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
        # operator.index refuses floats: a count that was rounded somewhere has another sensitivity.
        return np.array([operator.index(query())], dtype=np.int64)

    if rho is not None and epsilon is None:
        gaussian = add_gaussian(exact, size=1, sensitivity=bound, rho=rho)
        # post-processing: no count is negative
        return NoisyCount(max(0, int(gaussian.values[0])), gaussian.scale, gaussian.event)
    if epsilon is not None and rho is None:
        laplace = add_laplace(exact, size=1, sensitivity=bound, epsilon=epsilon)
        return NoisyCount(max(0, int(laplace.values[0])), laplace.scale, laplace.event)
    raise TypeError("exactly one of rho and epsilon must be given")
