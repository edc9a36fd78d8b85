r"""A lower bound on epsilon from counted events, valid at a stated confidence.

If a mechanism is :math:`(\varepsilon, \delta)`-private, then for every event and every pair of neighbours
:math:`p_1 \le e^{\varepsilon} p_0 + \delta` and, with the complementary event,
:math:`1 - p_0 \le e^{\varepsilon} (1 - p_1) + \delta`. Running it often on both neighbours and counting the
event bounds :math:`p_1` from below and :math:`p_0` from above (Clopper and Pearson), and so epsilon from
below.
"""

from __future__ import annotations

import math

from scipy.stats import beta

__all__ = ["epsilon_lower_bound", "proportion_lower", "proportion_upper", "visible_probability"]


def proportion_lower(hits: int, runs: int, *, error: float) -> float:
    """Exact lower limit of a binomial proportion, one-sided, wrong with probability at most `error`.

    Examples
    --------
    >>> round(proportion_lower(10, 10, error=0.05), 4)
    0.7411
    """
    return 0.0 if hits == 0 else float(beta.ppf(error, hits, runs - hits + 1))


def proportion_upper(hits: int, runs: int, *, error: float) -> float:
    """Exact upper limit of a binomial proportion, one-sided, wrong with probability at most `error`.

    Examples
    --------
    >>> round(proportion_upper(0, 10, error=0.05), 4)
    0.2589
    """
    return 1.0 if hits == runs else float(beta.ppf(1.0 - error, hits + 1, runs - hits))


def _log_ratio(numerator: float, denominator: float) -> float:
    if numerator <= 0.0:
        return 0.0
    return math.inf if denominator <= 0.0 else math.log(numerator / denominator)


def epsilon_lower_bound(
    hits_1: int, runs_1: int, hits_0: int, runs_0: int, *, delta: float, confidence: float = 0.95
) -> float:
    r"""Smallest epsilon that the counts leave possible, at the stated confidence.

    .. math:: \hat\varepsilon = \max\left(0,\; \ln\frac{\underline p_1 - \delta}{\overline p_0},\;
              \ln\frac{1 - \overline p_0 - \delta}{1 - \underline p_1}\right)

    with one-sided Clopper-Pearson limits, each wrong with probability at most ``(1 - confidence) / 2``, so
    that both hold together with probability at least `confidence`.

    Parameters
    ----------
    hits_1, runs_1 : int
        How often the event happened, and in how many runs, on the data where it should be frequent.
    hits_0, runs_0 : int
        The same on the neighbour where it should be rare. The event must be fixed before these runs are
        made; the bound is one-directional, so swap the pairs to test the other direction.
    delta : float
        The delta that the mechanism claims.
    confidence : float
        Probability with which the bound holds, over the runs.

    Returns
    -------
    float
        A lower bound on epsilon, at least 0 (every mechanism has epsilon >= 0).

    References
    ----------
    Clopper and Pearson (1934), *Biometrika* 26. Jagielski, Ullman and Oprea (2020), *Auditing differentially
    private machine learning*, for the use made of it here.

    Examples
    --------
    >>> round(epsilon_lower_bound(2000, 2000, 0, 2000, delta=1e-5), 2)
    6.29
    >>> epsilon_lower_bound(50, 100, 50, 100, delta=1e-5)
    0.0
    """
    for name, hits, runs in (("1", hits_1, runs_1), ("0", hits_0, runs_0)):
        if runs < 1:
            raise ValueError(f"runs_{name} must be at least 1, got {runs}")
        if not 0 <= hits <= runs:
            raise ValueError(f"hits_{name} must lie between 0 and runs_{name}={runs}, got {hits}")
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must lie in [0, 1), got {delta}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence}")
    # Half of the error for each limit: the union bound needs no independence.
    error = (1.0 - confidence) / 2.0
    low = proportion_lower(hits_1, runs_1, error=error)
    high = proportion_upper(hits_0, runs_0, error=error)
    return max(0.0, _log_ratio(low - delta, high), _log_ratio(1.0 - high - delta, 1.0 - low))


def visible_probability(
    runs: int, *, epsilon: float = 1.0, delta: float = 1e-5, confidence: float = 0.99, power: float = 0.9
) -> float:
    """Return the least probability of a leak that this many runs can see.

    The leak is an event that happens with this probability on one data set and never on its neighbour, such as a raw
    record that comes out now and then. It is seen when the counts of the event show more than the claimed epsilon; that
    happens with probability `power`. A rarer leak stays hidden more often than that: an attack says nothing about it.

    Parameters
    ----------
    runs : int
        On each data set, with the event fixed beforehand. `fogline.audit.attack` chooses its events on one half of the
        runs and counts on the other, so that half of its runs count here.
    epsilon, delta : float
        The claim.
    confidence : float
        Of the bound. Where several events share the error of an attack, that of one of them.
    power : float

    Returns
    -------
    float
        In (0, 1]; infinite where this few runs cannot show more than the claim, whatever happens in them.

    Examples
    --------
    >>> round(visible_probability(834, confidence=1 - 1e-6), 2)
    0.1
    >>> round(visible_probability(8700, confidence=1 - 1e-6), 3)
    0.01
    >>> visible_probability(5)
    inf
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1, got {runs}")
    if not 0.0 < power < 1.0:
        raise ValueError(f"power must lie in (0, 1), got {power}")

    def shown(hits: int) -> bool:
        return epsilon_lower_bound(hits, runs, 0, runs, delta=delta, confidence=confidence) > epsilon

    if not shown(runs):
        return math.inf
    # More hits show more, so bisection finds the least number that does.
    low, high = 0, runs  # low hits do not show it, high hits do
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return float(beta.ppf(power, high, runs - high + 1))
