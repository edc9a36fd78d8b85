r"""Events that tell two neighbours apart, and what they prove.

An event "the score is at least t" happens with probability :math:`p_0` on D and :math:`p_1` on D'. Counted on
fresh runs, with Clopper-Pearson limits, it bounds from below

.. math:: \varepsilon \ge \ln\frac{\underline p_1 - \delta}{\overline p_0}, \qquad
          \mu \ge \Phi^{-1}(\underline p_1) - \Phi^{-1}(\overline p_0),

the second for Gaussian differential privacy. Thresholds are chosen on one half of the runs and counted on the
other. Four events share the error: the best for mu, the best for epsilon, and both tails, where the false
positives are near 0: a leak that happens in one run of ten hardly moves any average, but the tails see it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fogline.audit.clopper_pearson import epsilon_lower_bound, proportion_lower, proportion_upper

__all__ = ["Witness", "find_witnesses"]

FloatArray = NDArray[np.float64]

_CANDIDATES = 60


@dataclass(frozen=True)
class Witness:
    """One event and how often it happened on fresh runs.

    Attributes
    ----------
    name : str
    threshold : float
        The event is a score of at least (above) or at most (below) this.
    above : bool
    hits_1, hits_0 : int
        How often it happened where it should be frequent and where it should be rare.
    runs : int
        On each side.
    epsilon_lower, mu_lower : float
    """

    name: str
    threshold: float
    above: bool
    hits_1: int
    hits_0: int
    runs: int
    epsilon_lower: float
    mu_lower: float


def find_witnesses(
    null: FloatArray,
    other: FloatArray,
    delta: float,
    confidence: float,
    threshold: float | None,
    *,
    midpoint: float | None = None,
) -> tuple[Witness, ...]:
    """Count events on fresh runs; without a threshold, choose four on the first half and split the error.

    Parameters
    ----------
    null, other : arrays of one length
        Scores of the runs on D and on D'.
    delta : float
        At which epsilon is bounded.
    confidence : float
        With which all bounds hold together.
    threshold : float or None
        Fixed beforehand, the only event; or None, to choose.
    midpoint : float, optional
        A threshold for mu that theory gives before any run, halfway between the means of the scores. It
        takes the place of the one chosen for mu, and all runs count for it, not one half.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = find_witnesses(rng.normal(0, 1, 4000), rng.normal(1, 1, 4000), 1e-5, 0.99, None)
    >>> [witness.name for witness in found]
    ['best for mu', 'best for epsilon', 'upper tail', 'lower tail']
    >>> 0.8 < max(witness.mu_lower for witness in found) < 1.0
    True
    """
    if not (np.isfinite(null).all() and np.isfinite(other).all()):
        raise ValueError("score must give finite numbers")
    error = 1.0 - confidence
    if threshold is not None:
        return (_count("the given event", null, other, threshold, True, delta, error),)
    half = len(null) // 2
    chosen = _choose(null[:half], other[:half], delta, error / 4)
    fresh = (null[half:], other[half:])
    found = [_count(name, *fresh, value, above, delta, error / 4) for name, value, above in chosen]
    if midpoint is not None:
        found[0] = _count("midpoint", null, other, midpoint, True, delta, error / 4)
    return tuple(found)


def _choose(null: FloatArray, other: FloatArray, delta: float, error: float) -> list[tuple[str, float, bool]]:
    """Name, threshold and direction of the events to count."""
    pooled = np.concatenate([null, other])
    candidates = np.unique(np.quantile(pooled, np.linspace(0.001, 0.999, _CANDIDATES), method="higher"))
    tried = [_count("", null, other, float(t), True, delta, error) for t in candidates]
    for_mu = max(tried, key=lambda witness: witness.mu_lower)
    for_epsilon = max(tried, key=lambda witness: witness.epsilon_lower)
    return [
        ("best for mu", for_mu.threshold, True),
        ("best for epsilon", for_epsilon.threshold, True),
        ("upper tail", float(np.nextafter(null.max(), np.inf)), True),
        ("lower tail", float(np.nextafter(other.min(), -np.inf)), False),
    ]


def _count(
    name: str, null: FloatArray, other: FloatArray, threshold: float, above: bool, delta: float, error: float
) -> Witness:
    """Count an event and bound what it shows; an event below is frequent on the null side."""
    rare, frequent = (null, other) if above else (other, null)
    hits = [int(np.sum(s >= threshold if above else s <= threshold)) for s in (frequent, rare)]
    runs = len(null)
    low = proportion_lower(hits[0], runs, error=error / 2)
    high = proportion_upper(hits[1], runs, error=error / 2)
    mu = float(ndtri(low) - ndtri(high)) if low > 0 and high < 1 else 0.0
    epsilon = epsilon_lower_bound(hits[0], runs, hits[1], runs, delta=delta, confidence=1.0 - error)
    return Witness(name, threshold, above, hits[0], hits[1], runs, epsilon, max(0.0, mu))
