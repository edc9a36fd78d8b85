r"""Draws from a secret density that stays close to a public one: integral privacy by exact rejection.

Let :math:`Q_0` be a public base and :math:`a(x) \in [e^{-\varepsilon/2}, 1]` a secret function of the point, learnt
from the data by whatever means. Propose points of the base, accept each with probability :math:`a(x)`, publish the
first that is accepted. Its density is

.. math:: \frac{dQ}{dQ_0}(x) = \frac{a(x)}{Z}, \qquad Z = \int a \, dQ_0 \in [e^{-\varepsilon/2}, 1] ,

hence between :math:`e^{-\varepsilon/2}` and :math:`e^{\varepsilon/2}` whatever the data were. The normaliser Z is never
computed: clamping the acceptance probability itself takes its place.

The number of proposals is public: large enough that none is accepted with probability at most 2^-20, and then a further
point of the base is published. Time does not tell how many were looked at if all of them are (``constant_time``).
Proposals and coins come from the operating system byte by byte, not from a generator that could be run backwards:
the rejected proposals would tell much more than the accepted one.
Proof, floats included: ``mollified_draws.proof.md``, beside this file.

References
----------
Husain, Cranko and Nock, Integral privacy for sampling from mollifier densities with approximation guarantees.
von Neumann (1951), Various techniques used in connection with random digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fogline._typing import FloatArray, IntArray
from fogline._validation import check_count, check_epsilon
from fogline.accounting.events import IntegralDrawEvent
from fogline.mechanisms.randomness import Call, EntropySource, Finish, Parameters, ask_provider

__all__ = ["check_drawable", "mollified_draws", "proposals_of"]


COIN = 2**53
"""A coin is a whole number below this; a proposal is accepted if its coin is below its threshold."""

GRID = 2**52
"""Uniform numbers are the middles of this many intervals: with one bit more the middle of the last would round to 1."""

LOG_STEPS = 2**32
"""Logarithms of acceptance probabilities are whole numbers of one over this."""

FALLBACK = 2.0**-20
"""At most how often no proposal is accepted."""

MOST_PROPOSALS = 2**16
"""More proposals per draw than this are refused: the acceptance would be hopeless."""

_ROWS = 2**20
"""Proposals made at a time."""


class Drawable(Protocol):
    """What a base has to offer here; see `fogline.families.base_measures`."""

    d: int

    def points(self, uniforms: FloatArray) -> FloatArray:
        """Return a point for each row of uniform numbers strictly between 0 and 1, a function of that row."""


def mollified_draws(
    log_acceptance: Callable[[FloatArray], NDArray[Any]],
    base: Drawable,
    *,
    size: int,
    epsilon: float,
    constant_time: bool = False,
    parameters: Parameters = (),
) -> FloatArray:
    """Draw points from a secret density in the mollifier of `epsilon` around a public base.

    Parameters
    ----------
    log_acceptance : callable
        Secret: takes points of shape (n, d) and returns the logarithm of the probability to accept each. Clamped to
        [-epsilon/2, 0]; NaN counts as the least. The density is proportional to its exponential times the base's.
    base : Base
        Public.
    size : int
        Number of draws.
    epsilon : float
        Of one draw.
    constant_time : bool
        Look at all proposals, whichever is accepted first. Same law, more time.
    parameters : tuple of (name, value)
        Further public facts for the record.

    Returns
    -------
    array of shape (size, d)

    Examples
    --------
    >>> from fogline.families.base_measures import NormalBase
    >>> drawn = mollified_draws(lambda x: 10.0 * x[:, 0], NormalBase([0.0], [[1.0]]), size=2000, epsilon=4.0)
    >>> bool(0.6 < (drawn > 0).mean() < 0.99)      # exp(2) times as likely above 0 as below
    True
    """
    size, epsilon = check_count(size, "size"), check_epsilon(epsilon)
    proposals = check_drawable(epsilon)
    # in parts of bounded memory: draws are independent of each other
    at_once = max(1, _ROWS // proposals)
    parts = [
        _drawn(log_acceptance, base, min(at_once, size - start), epsilon, proposals, constant_time, parameters)
        for start in range(0, size, at_once)
    ]
    return np.concatenate(parts)


def proposals_of(epsilon: float) -> int:
    """Return how many points of the base are proposed for one draw: a function of epsilon alone.

    Examples
    --------
    >>> [proposals_of(epsilon) for epsilon in (0.1, 1.0, 2.0, 10.0)]
    [5, 15, 31, 2051]
    """
    missed = -math.expm1(-check_epsilon(epsilon) / 2.0)
    return 1 if missed == 0.0 else max(1, math.ceil(math.log(FALLBACK) / math.log(missed))) if missed < 1.0 else 2**62


def check_drawable(epsilon: float) -> int:
    """Return the number of proposals, or refuse an epsilon for which rejection is hopeless.

    Examples
    --------
    >>> check_drawable(60.0)
    Traceback (most recent call last):
    ValueError: epsilon=60 per draw leaves no hope for rejection, which may need exp(epsilon/2) proposals per draw: use
    at most 16
    """
    proposals = proposals_of(epsilon)
    if proposals > MOST_PROPOSALS:
        most = math.floor(2.0 * math.log(MOST_PROPOSALS / -math.log(FALLBACK)))
        raise ValueError(
            f"epsilon={epsilon:g} per draw leaves no hope for rejection, which may need exp(epsilon/2) proposals per "
            f"draw: use at most {most}"
        )
    return proposals


def _drawn(
    log_acceptance: Callable[[FloatArray], NDArray[Any]],
    base: Drawable,
    size: int,
    epsilon: float,
    proposals: int,
    constant_time: bool,
    parameters: Parameters,
) -> FloatArray:
    """Make one batch of draws through the provider."""
    widest = log_width(epsilon)
    made: list[tuple[FloatArray, IntArray]] = []

    def sample(source: EntropySource) -> Finish:
        # one proposal more than is looked at: it is what comes out where all others are rejected
        uniforms = (_coins(source, size * (proposals + 1) * base.d) // 2 + 0.5) / GRID
        uniforms = uniforms.reshape(size, proposals + 1, base.d)
        coins = _coins(source, size * proposals).reshape(size, proposals)
        made[:] = [(uniforms[:, :proposals], coins)]

        def finish(exact: NDArray[Any]) -> NDArray[Any]:
            accepted = coins < thresholds(exact, epsilon)
            first = np.where(accepted.any(axis=1), np.argmax(accepted, axis=1), proposals)
            return base.points(uniforms[np.arange(size), first])

        return finish

    def query() -> IntArray:
        # Popped, so that a query asked twice fails instead of seeing the same proposals again.
        (offered, coins) = made.pop()

        def look(uniforms: FloatArray) -> IntArray:
            logs = log_acceptance(base.points(uniforms.reshape(-1, base.d)))
            return on_lattice(logs, widest).reshape(uniforms.shape[:-1])

        return look(offered) if constant_time else _until_accepted(look, offered, coins, epsilon)

    event = IntegralDrawEvent(epsilon, size)
    described = (("size", size), ("proposals", proposals), *parameters)
    call = Call("mollified draws", described, float(widest), "linf", event)
    return np.asarray(ask_provider(call, query, sample), dtype=np.float64)


def _until_accepted(
    look: Callable[[FloatArray], IntArray], offered: FloatArray, coins: IntArray, epsilon: float
) -> IntArray:
    """Look at proposals in turn, a few more each time, for the draws that have none yet; the rest count as 0."""
    size, proposals, _ = offered.shape
    logs = np.zeros((size, proposals), dtype=np.int64)
    waiting, start, width = np.arange(size), 0, 1
    while len(waiting) and start < proposals:
        stop = min(start + width, proposals)
        seen = look(offered[waiting, start:stop])
        logs[waiting, start:stop] = seen
        waiting = waiting[~(coins[waiting, start:stop] < thresholds(seen, epsilon)).any(axis=1)]
        # Doubling keeps the number of calls of a slow model small.
        start, width = stop, 2 * width
    return logs


def log_width(epsilon: float) -> int:
    """Return epsilon/2 in steps of the logarithm, rounded down: how far a log-acceptance may lie below 0.

    Examples
    --------
    >>> log_width(1.0) == LOG_STEPS // 2
    True
    """
    # down, so that the clamp is never wider than epsilon/2
    return math.floor(Fraction(epsilon) / 2 * LOG_STEPS)


def on_lattice(logs: NDArray[Any], widest: int) -> IntArray:
    """Return log-acceptances in whole steps, clamped to [-widest, 0]; NaN is the least.

    Examples
    --------
    >>> (on_lattice(np.array([3.0, -0.25, -9.0, np.nan, -np.inf]), LOG_STEPS // 2) / LOG_STEPS).tolist()
    [0.0, -0.25, -0.5, -0.5, -0.5]
    """
    with np.errstate(all="ignore"):
        steps = np.rint(np.asarray(logs, dtype=np.float64) * LOG_STEPS)
    steps = np.where(steps >= -widest, steps, -widest)  # also where it is NaN
    return np.minimum(steps, 0.0).astype(np.int64)


def thresholds(logs: NDArray[Any], epsilon: float) -> IntArray:
    """Return how many of the `COIN` coins accept, for log-acceptances in steps: at least exp(-epsilon/2) of all.

    Examples
    --------
    >>> (thresholds(np.array([0, -LOG_STEPS, -9 * LOG_STEPS]), 2.0) / COIN).round(4).tolist()
    [1.0, 0.3679, 0.3679]
    """
    # the floating-point exponential decides nothing that privacy rests on: the clamp is in whole numbers
    wanted = np.rint(COIN * np.exp(np.minimum(logs, 0) / LOG_STEPS))
    return np.asarray(np.clip(wanted, least_threshold(epsilon), COIN), dtype=np.int64)


def least_threshold(epsilon: float) -> int:
    """Return a whole number just above exp(-epsilon/2) * `COIN`.

    Examples
    --------
    >>> least_threshold(2.0) / COIN > math.exp(-1.0) * (1 - 1e-15)
    True
    """
    context = Context(prec=60, rounding=ROUND_FLOOR)
    half = Fraction(epsilon) / 2
    power = context.exp(context.divide(Decimal(-half.numerator), Decimal(half.denominator)))
    # up: a smaller least threshold would widen the ratio that epsilon allows
    return min(COIN, math.floor(Fraction(power) * COIN + Fraction(1, 2**40)) + 1)


def _coins(source: EntropySource, size: int) -> IntArray:
    """Return whole numbers, uniform below `COIN`."""
    return (np.frombuffer(source.bytes(8 * size), dtype="<u8") >> np.uint64(11)).astype(np.int64)
