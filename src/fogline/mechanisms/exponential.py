r"""The exponential mechanism, sampled exactly.

Among candidates with utilities :math:`u_i`, each of which neighbours move by at most :math:`\Delta`, draw
one with

.. math:: P(i) = \frac{w_i}{\sum_j w_j}, \qquad
          w_i = e^{-\varepsilon (u_{\max} - u_i) / (2\Delta)} .

Utilities, sensitivity and epsilon are floats or integers, hence rational numbers, and the exponents are
computed as such. The draw compares a uniform number, of which more bits can be had, with the partial sums of
weights, of which more digits can be had, until the answer is certain: no rounding enters the probabilities.
In practice the first 256 bits, drawn before the data is touched, decide.
Proof of epsilon-DP and of bounded range: ``exponential.proof.md``, beside this file.

References
----------
McSherry and Talwar (2007), Mechanism design via differential privacy.
Dong, Durfee and Rogers (2020), Optimal differential privacy composition for exponential mechanisms.
Ilvento (2020), Implementing the exponential mechanism with base-2 differential privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import IntArray
from fogline._validation import check_count, check_epsilon, check_positive
from fogline.accounting.events import ExponentialEvent
from fogline.mechanisms.randomness import Call, EntropySource, Finish, Parameters, ask_provider

__all__ = ["choose"]

_BITS = 256
_LOG_2 = Fraction(7, 10)  # a little above the logarithm of 2


def choose(
    utilities: Callable[[], NDArray[Any]],
    *,
    size: int,
    sensitivity: float,
    epsilon: float,
    parameters: Parameters = (),
) -> int:
    """Choose one of `size` candidates, those with a high utility much more often.

    Parameters
    ----------
    utilities : callable
        Returns the exact utilities, integers or floats of shape (size,). Called once, after the random bits
        were drawn. Floats are taken at their word: the sensitivity must hold for them as computed, rounding
        included. A value that is not finite counts as the lowest float.
    size : int
        Public number of candidates, at least 1.
    sensitivity : float
        Greatest change of any one utility between neighbours.
    epsilon : float
        The choice is epsilon-DP, and epsilon^2/8-zCDP.
    parameters : tuple of (name, value)
        Further public facts for the record.

    Returns
    -------
    int
        The index of the candidate.

    Examples
    --------
    >>> choose(lambda: np.array([0, 500, 3]), size=3, sensitivity=1, epsilon=1.0)
    1
    """
    size = check_count(size, "size")
    rate = Fraction(check_epsilon(epsilon)) / (2 * Fraction(check_positive(sensitivity, "sensitivity")))
    event = ExponentialEvent(float(epsilon))

    def sample(source: EntropySource) -> Finish:
        # drawn before the utilities are known, as all noise is
        draw = int.from_bytes(source.bytes(_BITS // 8))

        def finish(exact: NDArray[Any]) -> IntArray:
            exponents, inverse = _exponents(exact, size, rate)
            bits, uniform = _BITS, draw
            # More bits only where those drawn do not decide: hardly ever, and exactly when they are needed.
            while (index := _decide(exponents, inverse, uniform, bits)) is None:
                uniform = (uniform << bits) | int.from_bytes(source.bytes(bits // 8))
                bits *= 2
            return np.array([index], dtype=np.int64)

        return finish

    call = Call("exponential", (("size", size), *parameters), float(sensitivity), "linf", event)
    return int(ask_provider(call, utilities, sample)[0])


def _exponents(exact: NDArray[Any], size: int, rate: Fraction) -> tuple[list[Fraction], NDArray[np.intp]]:
    """Return the distinct exponents rate * (max - utility), exactly, and which one each candidate has."""
    array = np.asarray(exact)
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise TypeError(f"utilities must be integers or floats of at most 64 bits, got type {array.dtype}")
    if array.shape != (size,):
        raise ValueError(f"utilities must have shape ({size},), got {array.shape}")
    if array.dtype.kind == "f":
        # A NaN would sort behind all numbers and be the best candidate.
        array = np.where(np.isfinite(array), array, np.finfo(array.dtype).min)
    # equal utilities share one exponential, which is computed to many digits
    distinct, inverse = np.unique(array, return_inverse=True)
    # unique sorts: the last is the best, so that every exponent is at least 0 and no weight overflows
    values = [Fraction(value) for value in distinct.tolist()]
    return [rate * (values[-1] - value) for value in values], inverse


def _decide(exponents: Sequence[Fraction], inverse: NDArray[np.intp], uniform: int, bits: int) -> int | None:
    """Return the index that a uniform number with these leading bits selects, or None if more are needed.

    The number lies in [uniform, uniform + 1) / 2^bits. Index i is selected when the number times the sum of
    all weights lies in [W_i, W_(i+1)), with W_i the sum of the weights before i. Every weight is known to
    within one unit of 2^-bits, so every sum of them to within one unit a candidate.
    """
    weights = [_fixed_point(exponent, bits) for exponent in exponents]
    sums = np.cumsum(np.array(weights, dtype=object)[inverse])
    total, slack = int(sums[-1]), len(inverse)
    # all ends of the interval are moved outward by what the weights may be off
    low = (uniform * (total - slack)) >> bits
    high = ((uniform + 1) * (total + slack) >> bits) + 1
    # The selected index is the number of sums W_1, ..., W_size that are not above the target.
    first = int(np.searchsorted(sums, low - slack, side="right"))
    last = int(np.searchsorted(sums, high + slack, side="right"))
    return first if first == last and first < len(inverse) else None


def _fixed_point(exponent: Fraction, bits: int) -> int:
    """Return exp(-exponent) in units of 2^-bits, off by less than one unit."""
    # the weight is below half a unit
    if exponent > (bits + 1) * _LOG_2:
        return 0
    # exp is at most 1 and its slope too: with 20 digits to spare both roundings are far below a unit. The
    # library's exp is correctly rounded at any precision.
    context = Context(prec=bits * 31 // 100 + 25, rounding=ROUND_HALF_EVEN)
    argument = context.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator))
    scaled: Fraction = Fraction(context.exp(argument)) * 2**bits
    return round(scaled)
