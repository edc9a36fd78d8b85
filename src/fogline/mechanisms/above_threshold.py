r"""Above threshold: which query in a sequence is the first to pass, and nothing else.

Given integer queries :math:`f_1, \dots, f_t`, each of which neighbours move by at most :math:`\Delta`, and a
public threshold :math:`T`, draw discrete Laplace noise :math:`\eta` of scale :math:`2\Delta/\varepsilon` and
:math:`\nu_i` of scale :math:`4\Delta/\varepsilon`, and publish the first :math:`i` with

.. math:: f_i + \nu_i \ge T + \eta ,

or that there is none. This is :math:`\varepsilon`-DP however long the sequence. Proof:
``above_threshold.proof.md``, beside this file.

References
----------
Dwork, Naor, Reingold, Rothblum and Vadhan (2009), On the complexity of differentially private data release.
Dwork and Roth (2014), The algorithmic foundations of differential privacy, section 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import IntArray
from fogline._validation import check_count, check_epsilon, check_level
from fogline.accounting.events import AboveThresholdEvent
from fogline.mechanisms.discrete_laplace import laplace_reach, laplace_scale
from fogline.mechanisms.lattice import LIMIT, exact_integers
from fogline.mechanisms.randomness import Call, EntropySource, Finish, Parameters, ask_provider

__all__ = ["above_threshold", "gamma"]

# Noise of this scale stays within 2^62 except with probability exp(-4096): see the proof.
_LARGEST_SCALE = 2.0**50


def above_threshold(
    queries: Callable[[], NDArray[Any]],
    *,
    size: int,
    threshold: int,
    sensitivity: int,
    epsilon: float,
    parameters: Parameters = (),
) -> int | None:
    """Return the index of the first query that passes a noisy threshold, or None.

    Parameters
    ----------
    queries : callable
        Returns the exact answers to all queries, int64 of shape (size,). Called once, after all noise was
        drawn.
    size : int
        Public number of queries.
    threshold : int
        Public; at most 2^60 in size.
    sensitivity : int
        Greatest change of any one query between neighbours.
    epsilon : float
    parameters : tuple of (name, value)
        Further public facts for the record.

    Examples
    --------
    >>> above_threshold(lambda: np.array([3, 9, 800, 900]), size=4, threshold=400, sensitivity=1, epsilon=1.0)
    2
    """
    size = check_count(size, "size", minimum=0)
    bound = check_count(sensitivity, "sensitivity")
    threshold = check_count(threshold, "threshold", minimum=-(2**60))
    if threshold > 2**60:
        raise ValueError("threshold must be at most 2^60")
    event = AboveThresholdEvent(check_epsilon(epsilon))
    threshold_scale, query_scale = _scales(bound, event.epsilon)

    def sample(source: EntropySource) -> Finish:
        # Clipped so that the comparison below cannot wrap.
        threshold_noise = np.clip(source.laplace(threshold_scale, 1), -2 * LIMIT, 2 * LIMIT)
        query_noise = np.clip(source.laplace(query_scale, size), -2 * LIMIT, 2 * LIMIT)

        def finish(exact: NDArray[Any]) -> IntArray:
            answers = np.clip(exact_integers(exact, size), -LIMIT, LIMIT)
            passed = answers + query_noise - threshold >= threshold_noise
            # argmax gives the first of several; the index alone comes out, never a noisy value
            return np.array([np.argmax(passed) if passed.any() else -1], dtype=np.int64)

        return finish

    described = (("size", size), ("threshold", threshold), *parameters)
    call = Call("above-threshold", described, float(bound), "linf", event)
    index = int(ask_provider(call, queries, sample)[0])
    return None if index < 0 else index


def gamma(size: int, beta: float, *, sensitivity: int, epsilon: float) -> int:
    r"""Return how far from the threshold an answer of `above_threshold` can be wrong.

    With probability at least 1 - beta, the query that passed is at least T - gamma and every one before it
    (or every one, if none passed) is below T + gamma. It is a + b, the least integers with
    :math:`P(|\eta| > a) \le \beta/2` and :math:`t\,P(|\nu| > b) \le \beta/2`.

    Parameters
    ----------
    size : int
        The number t of queries.
    beta : float
        The probability of failure.
    sensitivity, epsilon
        As in `above_threshold`.

    Examples
    --------
    >>> gamma(100, 0.05, sensitivity=1, epsilon=1.0)
    40
    """
    size, beta = check_count(size, "size"), check_level(beta, "beta")
    threshold_scale, query_scale = _scales(check_count(sensitivity, "sensitivity"), check_epsilon(epsilon))
    # P(|z| > a) is twice the tail from a + 1.
    half = Fraction(beta) / 4
    return max(0, laplace_reach(threshold_scale, half) - 1) + max(0, laplace_reach(query_scale, half / size) - 1)


def _scales(sensitivity: int, epsilon: float) -> tuple[float, float]:
    """Return the scales of the noise on the threshold and on the queries."""
    threshold_scale = laplace_scale(2 * sensitivity, epsilon)
    query_scale = laplace_scale(4 * sensitivity, epsilon)
    # the larger of the two scales
    if query_scale > _LARGEST_SCALE:
        raise ValueError("sensitivity / epsilon is too large: the noise must fit 64-bit integers")
    return threshold_scale, query_scale
